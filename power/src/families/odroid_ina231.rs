//! INA231 through the vendor kernel of Odroid-XU+E and XU3: `/sys/bus/i2c/drivers/INA231/3-0040/sensor_W` in watts (else `sensor_V` x
//! `sensor_A`), about four times a second. A sensor reads 0 W while it is switched off and in the first seconds after it was switched on. A
//! rail of a running chip never has 0 W, so 0 W is not a reading.

use std::{path::Path, time::Duration};

use super::power_file::Power;
use crate::{Channel, Family, Lost, Pace, Reading, Source, SystemFiles, Unusable, line, name_of, number};

/// Default `update_period` of the vendor kernel, in microseconds.
const USUAL_PERIOD: u64 = 263_808;

/// The rails of `tree`.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let devices = tree.list("sys/bus/i2c/drivers/INA231", |name| name.contains('-'));
    devices.iter().filter_map(|device| source(device)).collect()
}

fn source(device: &Path) -> Option<Source> {
    let (file, enable) = (|name: &str| device.join(name), device.join("enable"));
    let place = file("sensor_W").display().to_string();
    let power = Power::open(vec![(vec![file("sensor_W")], 1.0), (vec![file("sensor_V"), file("sensor_A")], 1.0)]).transpose()?;
    let period = Duration::from_micros(number(device.join("update_period")).filter(|&period| period >= 1000).unwrap_or(USUAL_PERIOD));
    let read = if line(&enable).as_deref() == Some("0") {
        let enable = enable.display().to_string();
        Err(Unusable::Disabled { cure: format!("echo 1 | sudo tee {enable}, then wait 3 seconds"), place: enable })
    } else {
        power.map(|power| {
            move || match power.read()? {
                watts if watts.0 > 0.0 => Ok(Reading::Power(watts)),
                _ => Err(Lost::Disabled),
            }
        })
    };
    let channel = Channel::rail(Family::OdroidIna231, name_of(device), line(device.join("sensor_name")), period, place);
    Some(Source::single(channel, Pace::Every(period), read))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        channel::Domain,
        families::tests::fixture::{Fixture, sample, watts},
    };

    #[test]
    fn rails_have_names_and_a_disabled_rail_has_a_cure() {
        let fixture = Fixture::new();
        for (device, name, enable, power) in [
            ("3-0040", "sensor_arm", "1", "2.345"),
            ("3-0041", "sensor_mem", "1", "0.123"),
            ("3-0044", "sensor_g3d", "0", "0.000"),
            ("3-0045", "sensor_kfc", "1", "0.000"),
        ] {
            let folder = format!("sys/bus/i2c/drivers/INA231/{device}");
            fixture.files(&folder, &[("sensor_name", name), ("enable", enable), ("sensor_W", power), ("update_period", "263808")]);
        }
        fixture.file("sys/bus/i2c/drivers/INA231/bind", "");
        let mut found = discover(&fixture.tree());
        assert_eq!(found.len(), 4);
        assert!((watts(&mut found[0]) - 2.345).abs() < 1e-9);
        assert_eq!(found[0].channels[0].refresh, Duration::from_micros(263_808));
        assert_eq!(found[1].channels[0].domain, Domain::Memory);
        assert_eq!(found[2].channels[0].domain, Domain::Gpu);
        let cure = found[2].sensor.as_ref().unwrap_err().cure().unwrap();
        assert!(cure.contains("3-0044/enable") && cure.contains("wait 3 seconds"), "{cure}");
        // A sensor that was just switched on gives no reading yet, and not 0 W.
        assert_eq!(sample(&mut found[3]), [(0, Reading::Unavailable(Lost::Disabled))]);
        fixture.file("sys/bus/i2c/drivers/INA231/3-0045/sensor_W", "0.250\n");
        assert!((watts(&mut found[3]) - 0.25).abs() < 1e-9);
    }
}
