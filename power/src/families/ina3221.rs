//! INA3221 through its hwmon driver: three channels, without a file of power. P = `inN_input` (mV) x `currN_input` (mA). A disabled channel
//! fails with ENODATA and is left out; `in7` and `curr4` are sums and are not read.

use std::time::Duration;

use super::{
    hwmon::{Chip, chips},
    power_file,
};
use crate::{
    channel::{Channel, Family, is_unconnected},
    source::Source,
    tree::{SystemFiles, line, number},
};

/// Shunt and bus voltage of three channels take 7 ms at the default 1.1 ms per conversion. If the chip averages, the driver's
/// `update_interval` is longer.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// The channels of all chips of `tree`.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let chips = chips(tree, |name| name == "ina3221");
    chips.iter().flat_map(|chip| (1..=3).filter_map(|channel| source(chip, channel))).collect()
}

fn source(chip: &Chip, channel: u32) -> Option<Source> {
    let volts = chip.path.join(format!("in{channel}_input"));
    let amperes = chip.path.join(format!("curr{channel}_input"));
    let label = line(chip.path.join(format!("in{channel}_label")));
    // The driver has no files for a channel that the device tree leaves out.
    if !volts.exists() || label.as_deref().is_some_and(is_unconnected) {
        return None;
    }
    let interval = number(chip.path.join("update_interval")).map_or(SHORTEST_INTERVAL, Duration::from_millis).max(SHORTEST_INTERVAL);
    let place = volts.display().to_string();
    let channel = Channel::rail(Family::Ina3221, format!("{}:{channel}", chip.device), label, interval, place);
    Some(power_file::source(channel, vec![(vec![volts, amperes], 1e-6)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        channel::{Domain, Scope},
        families::tests::fixture::{Fixture, watts},
        problem::Unusable,
    };

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
        assert_eq!(
            found.iter().map(|s| s.channels[0].name()).collect::<Vec<_>>(),
            ["ina3221:1-0040:1", "ina3221:1-0040:2", "ina3221:1-0040:3"]
        );
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
}
