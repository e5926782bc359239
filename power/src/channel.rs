//! What a sensor measures, and the form of its readings.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{Component, Watts};

/// An enum whose values have kebab-case names, the same on the command line, in JSON and in TOML.
macro_rules! named {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$doc])* #[serde(rename = $name)] $variant,)+
        }

        impl $type {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name, in kebab case.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(text: &str) -> Result<Self, UnknownName> {
                Self::ALL.iter().copied().find(|value| value.name() == text).ok_or_else(|| UnknownName {
                    name: text.to_owned(),
                    known: Self::ALL.iter().map(|value| value.name()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    };
}

/// The error of a name that no value has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is none of {known}")]
pub struct UnknownName {
    /// The name.
    pub name: String,
    /// The valid names, separated by commas.
    pub known: String,
}

named! {
    /// A kind of sensor.
    Family {
        /// RAPL of Intel and AMD through Linux's powercap.
        Powercap = "powercap",
        /// RAPL through perf's `power` events.
        Perf = "perf",
        /// hwmon drivers ina2xx, ina238 and ina233: INA219 to 260, 700, 780, SY24655, SQ52206.
        Ina2xx = "ina2xx",
        /// hwmon driver ina3221: three channels.
        Ina3221 = "ina3221",
        /// INA231 through the vendor kernel of Odroid-XU+E and XU3.
        OdroidIna231 = "odroid-ina231",
        /// Rails of Jetson up to JetPack 4, through IIO.
        JetsonIio = "jetson-iio",
        /// IIO driver ina2xx-adc.
        IioIna2xx = "iio-ina2xx",
        /// hwmon driver amdgpu.
        Amdgpu = "amdgpu",
        /// hwmon driver powerz: USB meters KM003C and KM002C.
        Powerz = "powerz",
        /// hwmon driver macsmc-hwmon: Apple M1 and later.
        Macsmc = "macsmc",
        /// hwmon driver acpi_power_meter: servers.
        AcpiPowerMeter = "acpi-power-meter",
        /// Any other hwmon driver.
        Hwmon = "hwmon",
        /// Rails of Google's Pixel, through IIO.
        Odpm = "odpm",
        /// Batteries: phones, laptops.
        PowerSupply = "power-supply",
        /// `vcgencmd pmic_read_adc` of Raspberry Pi 5.
        Vcgencmd = "vcgencmd",
        /// Hardkernel SmartPower2.
        Smartpower2 = "smartpower2",
        /// Hardkernel SmartPower3.
        Smartpower3 = "smartpower3",
        /// Yokogawa WT310 through USBTMC.
        Wt310 = "wt310",
        /// NVIDIA GPUs (feature `nvml`).
        Nvml = "nvml",
        /// A file of time-stamped watts from any meter.
        External = "external",
    }
}

named! {
    /// What a rail feeds.
    Domain {
        /// All cores.
        Cpu = "cpu",
        /// The fast cores.
        CpuBig = "cpu-big",
        /// The slow cores.
        CpuLittle = "cpu-little",
        /// One core.
        CpuCore = "cpu-core",
        /// The GPU.
        Gpu = "gpu",
        /// The memory.
        Memory = "memory",
        /// The chip without its cores, or what is common to all its parts.
        Soc = "soc",
        /// The processor's package: cores, caches, integrated GPU.
        Package = "package",
        /// The whole board.
        Board = "board",
    }
}

impl Domain {
    /// The domain that a label of the kernel or the device tree names (`None` if it names none).
    pub fn of_label(label: &str) -> Option<Self> {
        let label = label.to_ascii_uppercase();
        let has = |words: &[&str]| words.iter().any(|word| label.contains(word));
        // The first match decides: VDD_CPU_GPU_CV feeds more than the CPU, VDDQ_VDD2_1V8AO more than the memory.
        Some(match () {
            () if is_input(&label) => Self::Board,
            () if has(&["CPU_GPU"]) => Self::Soc,
            () if has(&["KFC", "LITTLE", "CPUCL0"]) => Self::CpuLittle,
            () if has(&["VDD_ARM", "BIG", "CPUCL2"]) => Self::CpuBig,
            () if has(&["G3D", "GPU"]) => Self::Gpu,
            () if has(&["CPU"]) => Self::Cpu,
            () if has(&["DDR", "MEM", "VDDRQ", "VDD_MIF", "DRAM"]) => Self::Memory,
            () if has(&["SOC", "CORE", "VDD_INT", "CV", "MODULE"]) => Self::Soc,
            () => return None,
        })
    }
}

/// Whether `label` names a rail that carries the input of the whole board, and so contains all other rails.
pub(crate) fn is_input(label: &str) -> bool {
    ["VDD_IN", "POM_5V_IN", "5V_IN", "VIN", "Total System Power", "AC Input Power"].iter().any(|input| label.eq_ignore_ascii_case(input))
}

/// Whether `label` names an input of a chip that is connected to nothing: NVIDIA's device trees call it "NC".
pub(crate) fn is_unconnected(label: &str) -> bool {
    label == "NC"
}

named! {
    /// How much of the machine a measured power covers.
    Scope {
        /// The processor's package, and its memory if that has a counter of its own.
        CpuPackage = "cpu-package",
        /// Rails of the chip and its memory, not all of the board.
        SocRails = "soc-rails",
        /// A card with a supply of its own.
        Card = "card",
        /// The input of the board, or its battery.
        BoardInput = "board-input",
        /// The mains.
        Wall = "wall",
    }
}

/// The kind of value that a channel reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Signal {
    /// A counter of energy.
    Counter {
        /// Joules of one count.
        joules_per_count: f64,
        /// The value at which it starts again at zero ([`u64::MAX`] if it never does).
        range: u64,
    },
    /// A power.
    Power,
}

/// One measured thing: a rail, a package, a battery, the input of a meter.
#[derive(Debug, Clone, PartialEq)]
pub struct Channel {
    /// Family of its sensor.
    pub family: Family,
    /// Its name within the family, the same at every boot: `0-0040`, `1-0042:2`, `intel-rapl:0`.
    pub id: String,
    /// Label, if the kernel, the device tree or the meter gives one.
    pub label: Option<String>,
    /// What it feeds.
    pub domain: Domain,
    /// What it covers when it is counted.
    pub scope: Scope,
    /// The part of the machine that it measures.
    pub part: Component,
    /// The kind of value that it reads.
    pub signal: Signal,
    /// Interval at which the sensor has a new value.
    pub refresh: Duration,
    /// File, device or address where it is read, to be shown to the user.
    pub place: String,
}

impl Channel {
    /// A rail, whose `label` says what it feeds: the chip if nothing else is known, or the whole board if it is the board's input.
    pub(crate) fn rail(family: Family, id: String, label: Option<String>, refresh: Duration, place: String) -> Self {
        let (scope, part) = match label.as_deref() {
            Some(label) if is_input(label) => (Scope::BoardInput, Component::board()),
            _ => (Scope::SocRails, Component::rail(&id)),
        };
        let domain = label.as_deref().and_then(Domain::of_label).unwrap_or(Domain::Soc);
        Self { family, id, label, domain, scope, part, signal: Signal::Power, refresh, place }
    }

    /// What a meter of the whole board, with its only channel, measures at `place`.
    pub(crate) fn meter(family: Family, place: &str, scope: Scope, part: Component, refresh: Duration) -> Self {
        let (id, place, domain) = (place.to_owned(), place.to_owned(), Domain::Board);
        Self { family, id, label: None, domain, scope, part, signal: Signal::Power, refresh, place }
    }

    /// Its name on the command line: `ina2xx:0-0040`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.family, self.id)
    }

    /// Its name, with the label if it has one: `ina2xx:0-0040 (VDD_ARM)`.
    pub fn described(&self) -> String {
        let label = self.label.as_ref().map_or_else(String::new, |label| format!(" ({label})"));
        format!("{}{label}", self.name())
    }

    /// Whether `name` (without the family) means this channel: its id, its label or, for a channel of power, the id of its device.
    pub fn answers_to(&self, name: &str) -> bool {
        self.id == name
            || self.label.as_deref() == Some(name)
            || self.id.strip_prefix(name).is_some_and(|rest| rest.starts_with(':') && self.signal == Signal::Power)
    }
}

/// The result of one read of a channel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// A counter's value.
    Counter(u64),
    /// A power.
    Power(Watts),
    /// No value at this read.
    Unavailable(Lost),
}

/// Why a read gave no value. Holds no text, since it may occur at every read and a read allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Lost {
    /// The system call failed with this `errno`.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    System(i32),
    /// The sensor has disappeared: its file or connection has ended.
    #[error("the sensor has disappeared")]
    Gone,
    /// The output is not a number in the sensor's format.
    #[error("its output is not in the expected format")]
    Malformed,
    /// The value is above what the meter can measure. (The first one after it was plugged in may be.)
    #[error("its value is above what it can measure")]
    TooHigh,
    /// The battery is not discharging, so it does not feed the machine.
    #[error("the battery is not discharging")]
    NotDischarging,
    /// The meter itself says that it has no data.
    #[error("the meter reports that it has no data")]
    NoData,
    /// The sensor is switched off, or has only just been switched on.
    #[error("the sensor is switched off")]
    Disabled,
}

impl From<&std::io::Error> for Lost {
    fn from(error: &std::io::Error) -> Self {
        error.raw_os_error().map_or(Self::Gone, Self::System)
    }
}

/// Receives the readings of a sensor.
pub trait Sink {
    /// Takes one reading of the sensor's channel number `channel`. The reading was true at `at`, in nanoseconds of CLOCK_MONOTONIC.
    fn put(&mut self, channel: usize, at: u64, reading: Reading);
}

impl<F: FnMut(usize, u64, Reading)> Sink for F {
    fn put(&mut self, channel: usize, at: u64, reading: Reading) {
        self(channel, at, reading);
    }
}

/// When and how a sensor is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It is read at this interval, and a read returns at once.
    Every(Duration),
    /// A read takes long, or waits until the sensor sends (at most about 100 ms), so the sensor needs a thread of its own. The value is
    /// the pause between two reads.
    Waits(Duration),
}

/// A sensor with one or several channels. Its files are open, and a read allocates nothing (unless it has to run a command).
pub trait Sensor: Send + fmt::Debug {
    /// When and how it is read.
    fn pace(&self) -> Pace;

    /// Reads every channel that has a new value, and passes each reading on with the time at which it was true. That time is taken from
    /// CLOCK_MONOTONIC right after the read, unless the sensor has a clock of its own.
    fn sample(&mut self, sink: &mut dyn Sink);
}

/// The current time in nanoseconds of CLOCK_MONOTONIC.
pub fn monotonic() -> u64 {
    // This clock always exists. If it failed, every window would be empty, which is reported.
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
        .map_or(0, |time| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_families_are_parsed() {
        for family in Family::ALL {
            assert_eq!(family.to_string().parse::<Family>().unwrap(), *family);
        }
        let error = "rapl".parse::<Family>().unwrap_err().to_string();
        assert!(error.contains("rapl") && error.contains("powercap, perf"), "{error}");
    }

    #[test]
    fn labels_give_the_domain_of_a_rail() {
        for (label, domain) in [
            ("VDD_ARM", Some(Domain::CpuBig)),
            ("VDD_KFC", Some(Domain::CpuLittle)),
            ("VDD_G3D", Some(Domain::Gpu)),
            ("VDD_MEM", Some(Domain::Memory)),
            ("VDD_IN", Some(Domain::Board)),
            ("VDD_CPU_GPU_CV", Some(Domain::Soc)),
            ("VDD_CPU_CV", Some(Domain::Cpu)),
            ("VDD_GPU_SOC", Some(Domain::Gpu)),
            ("VDD_SOC", Some(Domain::Soc)),
            ("DDR_VDD2", Some(Domain::Memory)),
            ("S2M_VDD_CPUCL2", Some(Domain::CpuBig)),
            ("S4M_VDD_CPUCL0_M", Some(Domain::CpuLittle)),
            ("Total System Power", Some(Domain::Board)),
            ("3V3_SYS", None),
        ] {
            assert_eq!(Domain::of_label(label), domain, "{label}");
        }
    }

    #[test]
    fn the_clock_goes_forward() {
        let before = monotonic();
        assert!(before > 0 && monotonic() >= before);
    }
}
