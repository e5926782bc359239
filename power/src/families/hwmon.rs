//! Sensors with a driver under `/sys/class/hwmon`: one row for each kind of driver. The number in `hwmonN` changes from boot to boot, so a
//! chip is identified by its device.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    power_file::{self, Way},
    powercap::KEEP_ALIVE,
};
use crate::{
    channel::{Channel, Domain, Family, Pace, Reading, Scope, Signal, is_unconnected},
    part::Component,
    problem::Unusable,
    source::Source,
    tree::{Held, SystemFiles, line, name_of, name_of_target, number},
};

/// How a driver shows power. In names of files, `#` is the number of the channel. A channel with a file `energy#_input`, in microjoules, is
/// read by this counter; any other by the first of `ways` that gives a value.
struct Driver {
    family: Family,
    /// What the file `name` may contain.
    names: &'static [&'static str],
    /// How many channels a chip may have. The driver may lack the files of some.
    channels: u32,
    /// File of the label. Without one, a chip with a single channel has the label in its folder, or that of the device tree.
    label: &'static str,
    /// Files whose values are multiplied. The product is in microwatts.
    ways: &'static [&'static [&'static str]],
    /// Milliseconds between new values if no file shows them.
    milliseconds: u64,
    /// The highest power of a meter that is plugged into a cable. The sign of its current is the direction in which it is plugged in.
    cable_watts: Option<f64>,
    /// What the channel measures, if that is not a rail which its label describes.
    measures: fn(&Chip, Channel) -> Channel,
}

const POWER: &[&str] = &["power#_input"];
const AVERAGE: &[&str] = &["power#_average"];
const PRODUCT: &[&str] = &["in#_input", "curr#_input"];

/// A chip on a rail, as most drivers show it.
const RAIL: Driver = Driver {
    family: Family::Ina2xx,
    names: &[],
    channels: 1,
    label: "",
    ways: &[POWER, PRODUCT],
    milliseconds: 10,
    cable_watts: None,
    measures: |_, channel| channel,
};

/// The intervals follow from how the drivers set up the chips, except where the comment says otherwise.
const DRIVERS: &[Driver] = &[
    // These chips convert continuously, in 1 to 3 ms, and have no `update_interval`.
    Driver { names: &["ina219", "ina220", "ina233"], ..RAIL },
    // 16 conversions of voltage and current.
    Driver { names: &["ina226", "ina230", "ina231", "ina234", "ina260", "sy24655"], milliseconds: 35, ..RAIL },
    // 16 conversions of voltage, current and temperature. INA228, 700, 780 and SQ52206 accumulate energy, in 40 bits: years at any power.
    Driver { names: &["ina228", "ina237", "ina238", "ina700", "ina780", "sq52206"], milliseconds: 51, ..RAIL },
    // Shunt and bus voltage of three channels take 7 ms. A disabled channel fails with ENODATA; `in7` and `curr4` are sums.
    Driver { family: Family::Ina3221, names: &["ina3221"], channels: 3, label: "in#_label", ways: &[PRODUCT], milliseconds: 10, ..RAIL },
    // A kernel may have both files, of which one fails, depending on the firmware. The driver queries the firmware at every read; the
    // firmware averages over a millisecond to a second, depending on the generation.
    Driver {
        family: Family::Amdgpu,
        names: &["amdgpu"],
        label: "power#_label",
        ways: &[AVERAGE, POWER],
        milliseconds: 50,
        measures: gpu_or_package,
        ..RAIL
    },
    // KM003C and KM002C, which stand 50 V and 6 A. The interval is that seen on a USB meter sold as giving 100 values a second.
    Driver {
        family: Family::Powerz,
        names: &["powerz"],
        ways: &[&["in0_input", "curr1_input"]],
        milliseconds: 40,
        cable_watts: Some(300.0),
        measures: board_input,
        ..RAIL
    },
    // Apple documents no interval, so a long one is assumed.
    Driver {
        family: Family::Macsmc,
        names: &["macsmc_hwmon"],
        channels: 32,
        label: "power#_label",
        ways: &[POWER],
        milliseconds: 1000,
        ..RAIL
    },
    Driver { family: Family::AcpiPowerMeter, names: &["power_meter"], ways: &[AVERAGE], milliseconds: 1000, measures: board_input, ..RAIL },
];

/// Files with the time between two values.
const INTERVALS: [&str; 2] = ["update_interval", "power1_average_interval"];

/// A mean over a longer time than this one is not the power of a window.
const LONGEST: Duration = Duration::from_secs(5);

/// A chip with a folder under `/sys/class/hwmon`.
struct Chip {
    /// The folder of its files: its own, or that of its device (`power_meter` of older kernels).
    path: PathBuf,
    /// The device: `0-0040` for address 0x40 on I2C bus 0.
    device: String,
    /// The label in its folder, or that of the device tree.
    label: Option<String>,
}

/// The chips of `tree` that have a row.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let folders = tree.list("sys/class/hwmon", |name| name.starts_with("hwmon"));
    folders.iter().flat_map(|folder| chip(folder).unwrap_or_default()).collect()
}

fn chip(folder: &Path) -> Option<Vec<Source>> {
    let (name, path) = [folder.to_owned(), folder.join("device")].into_iter().find_map(|path| Some((line(path.join("name"))?, path)))?;
    let driver = DRIVERS.iter().find(|driver| driver.names.contains(&&name[..]))?;
    let label = line(path.join("label")).or_else(|| line(folder.join("device/of_node/label")));
    let chip = Chip { path, device: device_of(folder), label };
    Some((1..=driver.channels).filter_map(|channel| source(driver, &chip, channel)).collect())
}

fn source(driver: &Driver, chip: &Chip, channel: u32) -> Option<Source> {
    let file = |name: &str| chip.path.join(name.replace('#', &channel.to_string()));
    let ways: Vec<Way> = driver.ways.iter().map(|files| (files.iter().map(|name| file(name)).collect(), 1e-6)).collect();
    let first = ways.iter().map(|(files, _)| &files[0]).find(|path| path.exists())?.display().to_string();
    let single = driver.channels == 1;
    let label = line(file(driver.label)).or_else(|| chip.label.clone().filter(|_| single));
    if label.as_deref().is_some_and(is_unconnected) {
        return None;
    }
    let shown = |name: &&str| number(file(name)).filter(|&milliseconds| milliseconds > 0);
    let interval = Duration::from_millis(INTERVALS.iter().find_map(shown).unwrap_or(driver.milliseconds));
    let id = if single { chip.device.clone() } else { format!("{}:{channel}", chip.device) };
    let mut channel = (driver.measures)(chip, Channel::rail(driver.family, id, label, interval, first));
    if interval > LONGEST {
        let reason = format!("a mean over {} s is too long: write fewer milliseconds into {}", interval.as_secs(), INTERVALS.join(" or "));
        let problem = Unusable::Protocol { place: channel.place.clone(), reason };
        return Some(Source::new(vec![channel], Err(problem)));
    }
    let energy = file("energy#_input");
    match Held::open_if_any(&energy) {
        Ok(Some(counter)) if counter.counter().is_ok() => {
            channel.signal = Signal::Counter { joules_per_count: 1e-6, range: u64::MAX };
            channel.place = energy.display().to_string();
            Some(Source::single(channel, Pace::Every(KEEP_ALIVE), Ok(move || counter.counter().map(Reading::Counter))))
        }
        _ => Some(power_file::source(channel, ways, driver.cable_watts)),
    }
}

/// A chip for which amdgpu shows the voltage of the northbridge (`in1`) is an APU (Linux, drivers/gpu/drm/amd/pm/amdgpu_pm.c: "only APUs
/// have vddnb"). Its power is that of the whole package, so it is never added to RAPL's. Any other chip is a card.
fn gpu_or_package(chip: &Chip, channel: Channel) -> Channel {
    let (domain, scope, part) = if chip.path.join("in1_label").exists() {
        (Domain::Package, Scope::CpuPackage, Component::package(0))
    } else {
        (Domain::Gpu, Scope::Card, Component::card(&chip.device))
    };
    Channel { domain, scope, part, ..channel }
}

fn board_input(_: &Chip, channel: Channel) -> Channel {
    Channel { domain: Domain::Board, scope: Scope::BoardInput, part: Component::board(), ..channel }
}

/// The name of the device that the class device `path` belongs to, or the last part of `path` if it has no link to one.
pub(super) fn device_of(path: &Path) -> String {
    name_of_target(&path.join("device")).unwrap_or_else(|| name_of(path))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{
        channel::Lost,
        families::tests::fixture::{Fixture, sample, watts},
        meter::Meter,
        selection::Selection,
    };

    fn names(found: &[Source]) -> Vec<String> {
        found.iter().map(|source| source.channels[0].name()).collect()
    }

    #[test]
    fn every_driver_gives_the_power_of_its_files() {
        // The chip, its files, and the channel with its interval in milliseconds, its scope and watts.
        type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], (&'c str, u64, Scope, f64));
        let cases: &[Case<'_>] = &[
            ("ina219", &[("power1_input", "18000000")], ("ina2xx:0-0040", 10, Scope::SocRails, 18.0)),
            ("ina231", &[("power1_input", "18000000"), ("update_interval", "70")], ("ina2xx:0-0040", 70, Scope::SocRails, 18.0)),
            ("ina234", &[("power1_input", "2500000"), ("update_interval", "2")], ("ina2xx:0-0040", 2, Scope::SocRails, 2.5)),
            ("ina260", &[("power1_input", "2500000")], ("ina2xx:0-0040", 35, Scope::SocRails, 2.5)),
            ("sy24655", &[("power1_average", "1"), ("power1_input", "2500000")], ("ina2xx:0-0040", 35, Scope::SocRails, 2.5)),
            // AGX Thor.
            ("ina238", &[("power1_input", "24000000"), ("label", "VIN")], ("ina2xx:0-0040", 51, Scope::BoardInput, 24.0)),
            ("ina237", &[("in1_input", "12000"), ("curr1_input", "1500")], ("ina2xx:0-0040", 51, Scope::SocRails, 18.0)),
            ("ina233", &[("power1_label", "pout1"), ("power1_input", "3000000")], ("ina2xx:0-0040", 10, Scope::SocRails, 3.0)),
            ("powerz", &[("in0_input", "5100"), ("curr1_input", "-1000")], ("powerz:0-0040", 40, Scope::BoardInput, 5.1)),
            ("powerz", &[("in0_input", "5100"), ("curr1_input", "1000")], ("powerz:0-0040", 40, Scope::BoardInput, 5.1)),
            (
                "power_meter",
                &[("power1_average", "142000000"), ("power1_average_interval", "1500")],
                ("acpi-power-meter:0-0040", 1500, Scope::BoardInput, 142.0),
            ),
        ];
        for (chip, files, (name, milliseconds, scope, expected)) in cases {
            let fixture = Fixture::new();
            fixture.files("sys/class/hwmon/hwmon3", &[("name", chip)]);
            fixture.files("sys/class/hwmon/hwmon3", files);
            fixture.link("sys/class/hwmon/hwmon3/device", "../../../bus/i2c/devices/0-0040");
            let mut found = discover(&fixture.tree());
            assert_eq!(names(&found), [*name], "{chip}");
            assert_eq!(
                (found[0].channels[0].refresh, found[0].channels[0].scope),
                (Duration::from_millis(*milliseconds), *scope),
                "{chip}"
            );
            assert!((watts(&mut found[0]) - expected).abs() < 1e-9, "{chip}");
        }
        let fixture = Fixture::new();
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "coretemp"), ("power1_input", "1")]);
        fixture.files("sys/class/hwmon/hwmon1", &[("name", "amdgpu"), ("temp1_input", "40000")]);
        assert_eq!(discover(&fixture.tree()).len(), 0);
    }

    #[test]
    fn rails_are_identified_by_device_and_label() {
        let fixture = Fixture::new();
        fixture.files("sys/class/hwmon/hwmon1", &[("name", "ina219"), ("power1_input", "1")]);
        fixture.files("sys/class/hwmon/hwmon3", &[("name", "ina231"), ("power1_input", "1")]);
        fixture.file("sys/bus/i2c/devices/0-0040/of_node/label", "VDD_ARM\0");
        fixture.file("sys/bus/i2c/devices/1-0045/of_node/label", "");
        fixture.link("sys/class/hwmon/hwmon1/device", "../../../bus/i2c/devices/1-0045");
        fixture.link("sys/class/hwmon/hwmon3/device", "../../../bus/i2c/devices/0-0040");
        let found = discover(&fixture.tree());
        assert_eq!(names(&found), ["ina2xx:1-0045", "ina2xx:0-0040"]);
        let [unlabelled, arm] = [&found[0].channels[0], &found[1].channels[0]];
        assert_eq!((&unlabelled.label, unlabelled.domain), (&None, Domain::Soc));
        assert_eq!((arm.label.as_deref(), arm.domain), (Some("VDD_ARM"), Domain::CpuBig));
    }

    #[test]
    fn a_chip_without_a_power_reading_is_dead() {
        let fixture = Fixture::new();
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "ina226"), ("power1_input", "")]);
        fixture.files("sys/class/hwmon/hwmon1", &[("name", "ina226"), ("power1_input", "5000000")]);
        let found = discover(&fixture.tree());
        assert!(matches!(found[0].sensor, Err(Unusable::Dead { .. })));
        assert!(found[1].sensor.is_ok());
    }

    #[test]
    fn a_dead_channel_is_named_and_the_others_work() {
        let fixture = Fixture::new();
        fixture.files(
            "sys/class/hwmon/hwmon2",
            &[
                ("name", "ina3221"),
                ("in1_label", "VDD_IN"),
                ("in1_input", "19000"),
                ("curr1_input", "1500"),
                ("in2_label", "VDD_CPU_GPU_CV"),
                ("in2_input", "19000"),
                ("curr2_input", "400"),
                ("in3_label", "VDD_SOC"),
                ("in3_input", ""),
                ("curr3_input", "0"),
                ("in7_label", "sum of shunt voltages"),
                ("in7_input", "9"),
                ("curr4_input", "1900"),
            ],
        );
        fixture.link("sys/class/hwmon/hwmon2/device", "../../../../1-0040");
        let mut found = discover(&fixture.tree());
        assert_eq!(names(&found), ["ina3221:1-0040:1", "ina3221:1-0040:2", "ina3221:1-0040:3"]);
        assert!((watts(&mut found[0]) - 28.5).abs() < 1e-9);
        assert!((watts(&mut found[1]) - 7.6).abs() < 1e-9);
        assert!(matches!(&found[2].sensor, Err(Unusable::Dead { place, .. }) if place.ends_with("in3_input")));
        // VDD_IN carries the whole board, so adding another rail would count that rail twice.
        assert_eq!((found[0].channels[0].scope, found[0].channels[0].domain), (Scope::BoardInput, Domain::Board));
        assert!(found[0].channels[0].part.overlaps(&found[1].channels[0].part));
        assert!(!found[1].channels[0].part.overlaps(&found[2].channels[0].part));
    }

    #[test]
    fn a_channel_without_files_is_ignored() {
        let fixture = Fixture::new();
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "ina3221"), ("in2_input", "5000"), ("curr2_input", "100")]);
        // NVIDIA's name of an input that is connected to nothing.
        fixture.files("sys/class/hwmon/hwmon0", &[("in3_label", "NC"), ("in3_input", "0"), ("curr3_input", "0")]);
        assert_eq!(discover(&fixture.tree()).len(), 1);
    }

    #[test]
    fn an_apu_overlaps_its_package_and_a_card_does_not() {
        let fixture = Fixture::new();
        fixture.files(
            "sys/class/hwmon/hwmon4",
            &[("name", "amdgpu"), ("power1_input", "15012000"), ("power1_label", "PPT"), ("in1_label", "vddnb")],
        );
        fixture.link("sys/class/hwmon/hwmon4/device", "../../../0000:04:00.0");
        fixture.files("sys/class/hwmon/hwmon5", &[("name", "amdgpu"), ("power1_average", "9000000"), ("power1_input", "1")]);
        let mut found = discover(&fixture.tree());
        assert_eq!(names(&found), ["amdgpu:0000:04:00.0", "amdgpu:hwmon5"]);
        assert!((watts(&mut found[0]) - 15.012).abs() < 1e-9);
        assert!((watts(&mut found[1]) - 9.0).abs() < 1e-9);
        let [apu, card] = [&found[0].channels[0], &found[1].channels[0]];
        assert!(apu.part.overlaps(&Component::package(0)) && !card.part.overlaps(&Component::package(0)));
        assert_eq!((apu.scope, apu.domain, apu.label.as_deref()), (Scope::CpuPackage, Domain::Package, Some("PPT")));
        assert_eq!((card.scope, card.domain), (Scope::Card, Domain::Gpu));
    }

    #[test]
    fn the_total_of_a_mac_contains_its_rails() {
        let fixture = Fixture::new();
        // hwmon-common.dtsi and hwmon-laptop.dtsi of Linux give these labels.
        fixture.files(
            "sys/class/hwmon/hwmon1",
            &[("name", "macsmc_hwmon"), ("power1_label", "Total System Power"), ("power2_label", "AC Input Power")],
        );
        fixture.files("sys/class/hwmon/hwmon1", &[("power3_label", "3.8 V Rail Power"), ("power3_input", "4100000")]);
        fixture.files("sys/class/hwmon/hwmon1", &[("power1_input", "7250000"), ("power2_input", "9000000")]);
        fixture.link("sys/class/hwmon/hwmon1/device", "../../../macsmc-hwmon");
        let found = discover(&fixture.tree());
        assert_eq!(names(&found), ["macsmc:macsmc-hwmon:1", "macsmc:macsmc-hwmon:2", "macsmc:macsmc-hwmon:3"]);
        let named = |name: &str| Selection::named(discover(&fixture.tree()), &[name.to_owned()], None).unwrap();
        let counted =
            |selection: &Selection| selection.picks().filter(|pick| pick.counted).map(|pick| pick.channel.id.clone()).collect::<Vec<_>>();
        assert_eq!((counted(&named("macsmc")), named("macsmc").scope()), (vec!["macsmc-hwmon:1".to_owned()], "board-input"));
        assert_eq!(counted(&named("macsmc:3.8 V Rail Power")), ["macsmc-hwmon:3"]);
    }

    #[test]
    fn the_first_sample_of_a_usb_meter_may_be_absurd() {
        let fixture = Fixture::new();
        // As it was seen on a meter that had just been plugged in.
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "powerz"), ("in0_input", "188000"), ("curr1_input", "170000")]);
        let mut found = discover(&fixture.tree());
        assert_eq!(sample(&mut found[0]), [(0, Reading::Unavailable(Lost::TooHigh))]);
        fixture.files("sys/class/hwmon/hwmon0", &[("in0_input", "5000"), ("curr1_input", "-900")]);
        assert!((watts(&mut found[0]) - 4.5).abs() < 1e-9);
    }

    #[test]
    fn a_mean_over_minutes_is_refused_and_files_may_lie_with_the_device() {
        let fixture = Fixture::new();
        fixture.files(
            "sys/devices/ACPI000D:00",
            &[("name", "power_meter"), ("power1_average", "142000000"), ("power1_average_interval", "300000")],
        );
        fixture.link("sys/class/hwmon/hwmon2/device", "../../../devices/ACPI000D:00");
        let found = discover(&fixture.tree());
        assert_eq!(names(&found), ["acpi-power-meter:ACPI000D:00"]);
        assert!(found[0].sensor.as_ref().unwrap_err().to_string().contains("300 s"));
        fixture.file("sys/devices/ACPI000D:00/power1_average_interval", "1000");
        assert!((watts(&mut discover(&fixture.tree())[0]) - 142.0).abs() < 1e-9);
    }

    /// An accumulator that is updated every 51 ms, as those of INA228 and SQ52206 are, and the power beside it, which is not read.
    #[test]
    fn an_accumulator_gives_the_energy_of_a_window() {
        let fixture = Fixture::new();
        let files = [("name", "ina228"), ("label", "VIN"), ("power1_input", "1"), ("energy1_input", "5000000000000")];
        fixture.files("sys/class/hwmon/hwmon0", &files);
        let (begin, stop) = (crate::monotonic(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut last, mut longest) = (begin, 0);
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(51));
                    let now = crate::monotonic();
                    // 12 W.
                    fixture.file("sys/class/hwmon/hwmon0/energy1_input", &(5_000_000_000_000 + (now - begin) * 12 / 1000).to_string());
                    longest = longest.max(now - last);
                    last = now;
                }
                longest
            });
            let meter = Meter::start(Selection::automatic(discover(&fixture.tree()), None).unwrap()).unwrap();
            assert_eq!((meter.sensors(), meter.scope()), (vec!["ina2xx:hwmon0".to_owned()], "board-input"));
            let energy = meter.idle(Duration::from_secs(5));
            stop.store(true, Ordering::Relaxed);
            // The time of the last update is not known, at either end: 1.02 % of 5 s, more if the machine was busy.
            let allowed = 0.0015 + writer.join().unwrap() as f64 / 1e9 / energy.seconds;
            assert!((energy.watts.unwrap().0 / 12.0 - 1.0).abs() <= allowed, "{allowed} {energy:?}");
        });
    }
}
