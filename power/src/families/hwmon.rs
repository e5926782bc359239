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
    Channel, Component, Domain, Family, Held, Pace, Reading, Scope, Signal, Source, SystemFiles, Unusable, is_unconnected, line, name_of,
    name_of_target,
};

/// How a driver shows power. In names of files, `#` is the number of the channel. A channel with the file `energy`, in microjoules, is read
/// by this counter; any other by the first of `ways` that gives a value.
struct Driver {
    family: Family,
    /// What the file `name` may contain.
    names: &'static [&'static str],
    /// How many channels a chip may have. The driver may lack the files of some.
    channels: u32,
    /// File of the label. Without one, a chip with a single channel has the label in its folder, or that of the device tree.
    label: &'static str,
    /// File of the counter of energy.
    energy: &'static str,
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
    energy: "energy#_input",
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
        measures: system_or_supply,
        ..RAIL
    },
    Driver {
        family: Family::AcpiPowerMeter,
        names: &["power_meter"],
        label: "power#_oem_info",
        ways: &[AVERAGE],
        milliseconds: 1000,
        measures: machine_or_part,
        ..RAIL
    },
];

/// What a chip without a row shows: hwmon fixes the names of the files and their units, microwatts and microjoules. The numbers of powers
/// and of energies have nothing to do with each other.
const OTHERS: &[Driver] = &[
    Driver { family: Family::Hwmon, channels: 256, label: "power#_label", energy: "", ways: &[POWER, AVERAGE], milliseconds: 1000, ..RAIL },
    Driver { family: Family::Hwmon, channels: 256, label: "energy#_label", ways: &[], milliseconds: 1000, ..RAIL },
];

/// Files with the time between two values.
const INTERVALS: [&str; 2] = ["update_interval", "power1_average_interval"];

/// A mean over a longer time than this one is not the power of a window.
const LONGEST: Duration = Duration::from_secs(5);

/// A chip with a folder under `/sys/class/hwmon`.
struct Chip {
    /// The folder of its files: its own, or that of its device (`power_meter` of older kernels).
    path: PathBuf,
    /// The folder of its device, where some drivers have a part of the files.
    beside: PathBuf,
    /// What its file `name` contains.
    name: String,
    /// The device: `0-0040` for address 0x40 on I2C bus 0.
    device: String,
    /// The label in its folder, or that of the device tree.
    label: Option<String>,
}

/// The chips of `tree`.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let folders = tree.list("sys/class/hwmon", |name| name.starts_with("hwmon"));
    folders.iter().flat_map(|folder| chip(folder).unwrap_or_default()).collect()
}

fn chip(folder: &Path) -> Option<Vec<Source>> {
    let beside = folder.join("device");
    let (name, path) = [folder, &beside].into_iter().find_map(|path| Some((line(path.join("name"))?, path.to_owned())))?;
    let row = DRIVERS.iter().position(|driver| driver.names.contains(&&name[..]));
    let drivers = row.map_or(OTHERS, |row| &DRIVERS[row..=row]);
    let label = line(path.join("label")).or_else(|| line(beside.join("of_node/label")));
    let chip = Chip { path, beside, name, device: device_of(folder), label };
    let channels = drivers.iter().flat_map(|driver| (1..=driver.channels).map(move |channel| (driver, channel)));
    Some(channels.filter_map(|(driver, channel)| source(driver, &chip, channel)).collect())
}

fn source(driver: &Driver, chip: &Chip, channel: u32) -> Option<Source> {
    let name = |name: &str| name.replace('#', &channel.to_string());
    let file = |path: &str| chip.path.join(name(path));
    let text = |path: &str| line(file(path)).or_else(|| line(chip.beside.join(name(path))));
    let ways: Vec<Way> = driver.ways.iter().map(|files| (files.iter().map(|name| file(name)).collect(), 1e-6)).collect();
    let energy = file(driver.energy);
    let first = ways.iter().map(|(files, _)| &files[0]).chain([&energy]).find(|path| path.exists() && !path.is_dir())?;
    let single = driver.channels == 1;
    let label = text(driver.label).or_else(|| chip.label.clone().filter(|_| single));
    if label.as_deref().is_some_and(is_unconnected) {
        return None;
    }
    let shown = |name: &&str| text(name)?.parse().ok().filter(|&milliseconds| milliseconds > 0);
    let interval = Duration::from_millis(INTERVALS.iter().find_map(shown).unwrap_or(driver.milliseconds));
    let id = match driver.family {
        Family::Hwmon => {
            format!("{}-{}/{}", chip.name, chip.device, name_of(first).trim_end_matches("_input").trim_end_matches("_average"))
        }
        _ if single => chip.device.clone(),
        _ => format!("{}:{channel}", chip.device),
    };
    let mut channel = (driver.measures)(chip, Channel::rail(driver.family, id, label, interval, first.display().to_string()));
    if interval > LONGEST {
        let reason = format!("a mean over {} s is too long: write fewer milliseconds into {}", interval.as_secs(), INTERVALS.join(" or "));
        let problem = Unusable::Protocol { place: channel.place.clone(), reason };
        return Some(Source::new(vec![channel], Err(problem)));
    }
    let place = energy.display().to_string();
    let counter = Held::open(&energy).and_then(|counter| match counter.counter() {
        Ok(_) => Ok(counter),
        Err(reason) => Err(Unusable::Dead { place: place.clone(), reason }),
    });
    if counter.is_err() && !ways.is_empty() {
        return Some(power_file::source(channel, ways, driver.cable_watts));
    }
    (channel.signal, channel.place) = (Signal::Counter { joules_per_count: 1e-6, range: u64::MAX }, place);
    let read = counter.map(|counter| move || counter.counter().map(Reading::Counter));
    Some(Source::single(channel, Pace::Every(KEEP_ALIVE), read))
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

/// The input of a Mac is one of the supplies of its system, the battery another one. It reads 0 W on battery, and charges it otherwise.
fn system_or_supply(_: &Chip, channel: Channel) -> Channel {
    let is_input = channel.label.as_deref().is_some_and(|label| label.eq_ignore_ascii_case("AC Input Power"));
    Channel { part: if is_input { Component::supply(&channel.id) } else { channel.part }, ..channel }
}

/// An ACPI meter measures the machine, unless its firmware names a part: "CPU Power Socket 0" of NVIDIA's Grace. Which of them contain
/// others is not known, so those of one socket never add up.
fn machine_or_part(chip: &Chip, channel: Channel) -> Channel {
    match channel.label.as_deref().filter(|label| Domain::of_label(label).is_some_and(|domain| domain != Domain::Board)) {
        None => board_input(chip, channel),
        Some(label) => {
            let socket = label.rsplit(' ').next().and_then(|number| number.parse().ok());
            Channel { part: socket.map_or_else(Component::board, Component::package), ..channel }
        }
    }
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
        selection::{SelectError, Selection},
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
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "coretemp"), ("temp1_input", "1")]);
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
    fn the_system_of_a_mac_is_measured_also_where_its_input_comes_first_and_is_unplugged() {
        let fixture = Fixture::new();
        fixture.files("sys/class/hwmon/hwmon2", &[("name", "macsmc_hwmon"), ("power1_label", "AC Input Power")]);
        fixture.files("sys/class/hwmon/hwmon2", &[("power2_label", "Total System Power"), ("power2_input", "6234000")]);
        for input in ["0", "45000000"] {
            fixture.file("sys/class/hwmon/hwmon2/power1_input", input);
            let selection = Selection::named(discover(&fixture.tree()), &["macsmc".to_owned()], None).unwrap();
            assert_eq!(selection.picks().find(|pick| pick.counted).unwrap().channel.id, "hwmon2:2", "{input}");
            let skipped: Vec<String> = selection.skipped().iter().map(ToString::to_string).collect();
            let why = "macsmc:hwmon2:1 (AC Input Power): reads 0.000 W, and a power must be above 0";
            assert_eq!(skipped, if input == "0" { vec![why] } else { Vec::new() });
        }
    }

    #[test]
    fn chips_of_other_drivers_are_listed_and_only_named_ones_added_up() {
        let fixture = Fixture::new();
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "scmi_sensors"), ("energy1_label", "sys"), ("energy1_input", "99000000")]);
        fixture.files("sys/class/hwmon/hwmon0", &[("power1_label", "big_power"), ("power1_input", "1200000"), ("energy2_input", "x")]);
        fixture.files("sys/class/hwmon/hwmon0", &[("power200_average", "700000")]);
        let mut found = discover(&fixture.tree());
        let [big, last, energy, broken] = ["power1", "power200", "energy1", "energy2"].map(|id| format!("hwmon:scmi_sensors-hwmon0/{id}"));
        assert_eq!(names(&found), [&big[..], &last, &energy, &broken]);
        assert!((watts(&mut found[0]) - 1.2).abs() < 1e-9 && (watts(&mut found[1]) - 0.7).abs() < 1e-9);
        assert_eq!((found[0].channels[0].domain, found[2].channels[0].label.as_deref()), (Domain::CpuBig, Some("sys")));
        // The counter has the number of another rail's power, and a broken one is no power.
        assert_eq!(sample(&mut found[2]), [(0, Reading::Counter(99_000_000))]);
        assert!(matches!(&found[3].sensor, Err(Unusable::Dead { place, .. }) if place.ends_with("energy2_input")));
        let named = |name: &str| Selection::named(discover(&fixture.tree()), &[name.to_owned()], None);
        let selection = named("hwmon:big_power").unwrap();
        assert_eq!((selection.picks().count(), selection.scope()), (1, "soc-rails"));
        for error in [named("hwmon").unwrap_err(), Selection::automatic(discover(&fixture.tree()), None).unwrap_err()] {
            assert!(error.to_string().starts_with(&format!("{big}, {last}, {energy} found, but no board profile")), "{error}");
        }
    }

    #[test]
    fn an_acpi_meter_of_a_part_is_not_the_machine() {
        let fixture = Fixture::new();
        let meter = |number: u32, info: &str| {
            let folder = format!("sys/class/hwmon/hwmon{number}");
            fixture.files(&folder, &[("name", "power_meter"), ("power1_average", "95000000")]);
            fixture.files(&format!("{folder}/device"), &[("power1_oem_info", info), ("power1_average_interval", "50")]);
        };
        let named = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("acpi-power-meter{name}")).collect();
            Selection::named(discover(&fixture.tree()), &names, None)
        };
        // A server's firmware may write anything here.
        for (info, scope) in [("CPU Power Socket 0", "soc-rails"), ("Module Power", "soc-rails"), ("none", "board-input")] {
            meter(0, info);
            assert_eq!(named(&[""]).unwrap().scope(), scope, "{info}");
        }
        meter(1, "");
        assert_eq!(named(&[":hwmon0"]).unwrap().scope(), "soc-rails", "one of two");
        for (number, info) in
            ["Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0", "CPU Power Socket 1"].iter().enumerate()
        {
            meter(number as u32, info);
        }
        let found = discover(&fixture.tree());
        assert_eq!((found[2].channels[0].domain, found[2].channels[0].refresh), (Domain::Cpu, Duration::from_millis(50)));
        assert!(matches!(named(&[""]), Err(SelectError::Unnamed { found }) if found.len() == 4));
        assert!(matches!(named(&[":hwmon0", ":hwmon2"]), Err(SelectError::Overlap { .. })), "the module contains the CPU");
        assert_eq!(named(&[":CPU Power Socket 0", ":CPU Power Socket 1"]).unwrap().scope(), "soc-rails");
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
