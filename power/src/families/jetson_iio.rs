//! Rails of Jetson boards up to JetPack 4: `/sys/bus/i2c/drivers/ina3221x/0-0041/iio:device1/{rail_name_N,in_powerN_input}`, in
//! milliwatts, else `in_voltageN_input` (mV) x `in_currentN_input` (mA).

use std::{path::Path, time::Duration};

use super::power_file;
use crate::{Channel, Family, Source, SystemFiles, is_unconnected, line, name_of};

/// The driver reads the chip at every read. The chip averages, so shorter intervals show nothing new.
const INTERVAL: Duration = Duration::from_millis(20);

/// The rails of `tree`.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    const DRIVER: &str = "sys/bus/i2c/drivers/ina3221x";
    let mut found = Vec::new();
    for device in tree.list(DRIVER, |name| name.contains('-')) {
        let chip = name_of(&device);
        for folder in tree.list(Path::new(DRIVER).join(&chip), |name| name.starts_with("iio")) {
            found.extend((0..3).filter_map(|rail| source(&folder, &chip, rail)));
        }
    }
    found
}

fn source(folder: &Path, chip: &str, rail: u32) -> Option<Source> {
    let label = line(folder.join(format!("rail_name_{rail}")))?;
    if is_unconnected(&label) {
        return None;
    }
    let file = |what: &str| folder.join(format!("in_{what}{rail}_input"));
    let place = file("power").display().to_string();
    let ways = vec![(vec![file("power")], 1e-3), (vec![file("voltage"), file("current")], 1e-6)];
    // The id counts from 1, as the chip's inputs do.
    let channel = Channel::rail(Family::JetsonIio, format!("{chip}:{}", rail + 1), Some(label), INTERVAL, place);
    Some(power_file::source(channel, ways, None))
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
    fn rails_of_jetpack_4_are_found() {
        let fixture = Fixture::new();
        fixture.files(
            "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0",
            &[
                ("rail_name_0", "POM_5V_IN"),
                ("in_power0_input", "4321"),
                ("rail_name_1", "POM_5V_GPU"),
                ("in_power1_input", "82"),
                ("rail_name_2", "POM_5V_CPU"),
                ("in_power2_input", ""),
            ],
        );
        fixture.files("sys/bus/i2c/drivers/ina3221x/6-0041/iio:device1", &[("rail_name_0", "NC"), ("in_power0_input", "0")]);
        let mut found = discover(&fixture.tree());
        assert_eq!(
            found.iter().map(|s| s.channels[0].name()).collect::<Vec<_>>(),
            ["jetson-iio:6-0040:1", "jetson-iio:6-0040:2", "jetson-iio:6-0040:3"]
        );
        assert!((watts(&mut found[0]) - 4.321).abs() < 1e-9);
        assert_eq!(found[0].channels[0].scope, Scope::BoardInput);
        assert_eq!(found[1].channels[0].domain, Domain::Gpu);
        assert!(found[0].channels[0].part.overlaps(&found[1].channels[0].part));
        assert!(matches!(found[2].sensor, Err(Unusable::Dead { .. })));
    }
}
