//! INA2xx through the IIO driver ina2xx-adc, which distribution kernels without the hwmon driver have. Power in milliwatts is
//! `in_power2_raw` x `in_power2_scale`, else the product of voltage and current in millivolts and milliamperes, scaled alike.

use std::{path::Path, time::Duration};

use super::{hwmon::device_of, power_file};
use crate::{Channel, Family, Source, SystemFiles, line, name_of};

/// Interval if the driver does not report how often it converts.
const USUAL_INTERVAL: Duration = Duration::from_millis(20);

/// The INA2xx chips of `tree` under IIO.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let devices = tree.list("sys/bus/iio/devices", |name| name.starts_with("iio:device"));
    devices.iter().filter_map(|device| source(device)).collect()
}

fn source(device: &Path) -> Option<Source> {
    let name = line(device.join("name"))?;
    if !matches!(&name[..], "ina219" | "ina220" | "ina226" | "ina230" | "ina231") {
        return None;
    }
    let place = device.join("in_power2_raw").display().to_string();
    let hertz = line(device.join("in_sampling_frequency")).and_then(|text| text.parse::<f64>().ok()).filter(|&hertz| hertz > 0.0);
    // A number that is no frequency of a chip may have a period that no `Duration` can hold.
    let period = |hertz: f64| Duration::from_secs_f64((1.0 / hertz).clamp(0.005, 5.0));
    let interval = hertz.map_or(USUAL_INTERVAL, period);
    let scaled = |name: &str| ["raw", "scale"].map(|part| device.join(format!("in_{name}_{part}")));
    let ways = vec![(scaled("power2").into(), 1e-3), ([scaled("voltage1"), scaled("current3")].concat(), 1e-6)];
    // The parent of an IIO device is its I2C device, as the target of the link shows.
    let id = device.canonicalize().ok().and_then(|path| path.parent().map(name_of)).filter(|name| name.contains('-'));
    let id = id.unwrap_or_else(|| device_of(device));
    let label = line(device.join("label")).or_else(|| line(device.join("of_node/label")));
    Some(power_file::source(Channel::rail(Family::IioIna2xx, id, label, interval, place), ways, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        channel::Domain,
        families::tests::fixture::{Fixture, watts},
    };

    #[test]
    fn raw_values_are_scaled_to_watts() {
        let fixture = Fixture::new();
        let device = "sys/devices/i2c-2/2-0044/iio:device0";
        fixture.files(
            device,
            &[
                ("name", "ina226"),
                ("in_power2_raw", "2880"),
                ("in_power2_scale", "6.25"),
                ("in_sampling_frequency", "50"),
                ("label", "VDD_G3D"),
            ],
        );
        fixture.link("sys/bus/iio/devices/iio:device0", "../../../devices/i2c-2/2-0044/iio:device0");
        fixture.files("sys/bus/iio/devices/iio:device1", &[("name", "adc"), ("in_power2_raw", "1"), ("in_power2_scale", "1")]);
        let mut found = discover(&fixture.tree());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].channels[0].name(), "iio-ina2xx:2-0044");
        assert_eq!((found[0].channels[0].domain, found[0].channels[0].refresh), (Domain::Gpu, Duration::from_millis(20)));
        assert!((watts(&mut found[0]) - 18.0).abs() < 1e-9);
    }

    #[test]
    fn any_frequency_gives_an_interval() {
        let fixture = Fixture::new();
        let device = "sys/bus/iio/devices/iio:device0";
        fixture.files(device, &[("name", "ina219"), ("in_power2_raw", "1"), ("in_power2_scale", "1")]);
        for (hertz, milliseconds) in [("1e-30", 5000), ("0.5", 2000), ("1e30", 5), ("0", 20), ("-1", 20), ("x", 20)] {
            fixture.file(&format!("{device}/in_sampling_frequency"), hertz);
            assert_eq!(discover(&fixture.tree())[0].channels[0].refresh, Duration::from_millis(milliseconds), "{hertz}");
        }
    }
}
