//! INA219, 220, 226, 230 and 231 through the hwmon driver ina2xx: `power1_input` in microwatts, else `in1_input` (mV) x `curr1_input` (mA).

use std::time::Duration;

use super::{
    hwmon::{Chip, chips},
    power_file,
};
use crate::{
    channel::{Channel, Family},
    source::Source,
    tree::{SystemFiles, number},
};

/// Default `update_interval` of the driver (INA226, 230, 231).
const USUAL_INTERVAL: Duration = Duration::from_millis(35);

/// INA219 and 220 convert continuously, in about 1 ms, and have no `update_interval`.
const FAST_INTERVAL: Duration = Duration::from_millis(10);

/// The INA2xx chips of `tree` under hwmon.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    chips(tree, |name| matches!(name, "ina219" | "ina220" | "ina226" | "ina230" | "ina231")).iter().map(source).collect()
}

fn source(chip: &Chip) -> Source {
    let file = |name: &str| chip.path.join(name);
    let usual = if matches!(&chip.name[..], "ina219" | "ina220") { FAST_INTERVAL } else { USUAL_INTERVAL };
    let interval = number(file("update_interval")).filter(|&milliseconds| milliseconds > 0).map_or(usual, Duration::from_millis);
    let place = file("power1_input").display().to_string();
    let channel = Channel::rail(Family::Ina2xx, chip.device.clone(), chip.label.clone(), interval, place);
    power_file::source(channel, vec![(vec![file("power1_input")], 1e-6), (vec![file("in1_input"), file("curr1_input")], 1e-6)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        channel::Domain,
        families::tests::fixture::{Fixture, watts},
        problem::Unusable,
    };

    #[test]
    fn rails_are_identified_by_device_and_label() {
        let fixture = Fixture::new();
        for (number, chip, device) in [(3, "ina231", "0-0040"), (1, "ina219", "1-0045")] {
            let folder = format!("sys/class/hwmon/hwmon{number}");
            fixture.files(&folder, &[("name", chip), ("power1_input", "18000000"), ("curr1_input", "-1500")]);
            fixture.file(&format!("sys/bus/i2c/devices/{device}/of_node/label"), if number == 3 { "VDD_ARM\0" } else { "" });
            fixture.link(&format!("{folder}/device"), format!("../../../bus/i2c/devices/{device}"));
        }
        fixture.file("sys/class/hwmon/hwmon3/update_interval", "70");
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "coretemp"), ("power1_input", "1")]);
        let mut found = discover(&fixture.tree());
        assert_eq!(found.len(), 2);
        let [unlabelled, arm] = [&found[0].channels[0], &found[1].channels[0]];
        assert_eq!((&unlabelled.name()[..], unlabelled.refresh, &unlabelled.label), ("ina2xx:1-0045", FAST_INTERVAL, &None));
        assert_eq!((&arm.name()[..], arm.refresh, arm.domain), ("ina2xx:0-0040", Duration::from_millis(70), Domain::CpuBig));
        assert_eq!(arm.label.as_deref(), Some("VDD_ARM"));
        assert!((watts(&mut found[1]) - 18.0).abs() < 1e-9);
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
}
