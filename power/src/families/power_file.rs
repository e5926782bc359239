//! Files that show power as a number, or as numbers whose product is the power. A driver often has both, and either may fail: each way is
//! tried in turn, at every sample.

use std::path::PathBuf;

use crate::{Channel, Held, Lost, Pace, Reading, Source, Unusable, Watts};

/// One way to compute the power: files whose numbers are multiplied, and the watts of a product of 1.
pub(super) type Way = (Vec<PathBuf>, f64);

/// The ways whose files exist, kept open.
#[derive(Debug)]
pub(super) struct Power {
    ways: Vec<(Vec<Held>, f64)>,
}

impl Power {
    /// Opens every way of `ways` whose files all exist (`None` if there is none).
    ///
    /// # Errors
    /// If files exist, but no way can be opened: the problem of the first one.
    pub(super) fn open(ways: Vec<Way>) -> Result<Option<Self>, Unusable> {
        let (mut opened, mut problem) = (Vec::new(), None);
        for (files, unit) in ways {
            match files.iter().map(|file| Held::open_if_any(file)).collect::<Result<Vec<_>, _>>() {
                Ok(held) => opened.extend(held.into_iter().collect::<Option<Vec<Held>>>().map(|held| (held, unit))),
                Err(error) => problem = problem.or(Some(error)),
            }
        }
        match problem {
            Some(problem) if opened.is_empty() => Err(problem),
            _ => Ok(Some(Self { ways: opened }).filter(|power| !power.ways.is_empty())),
        }
    }

    /// The power by the first way that has a value. If none has, the reason of the first one.
    pub(super) fn read(&self) -> Result<Watts, Lost> {
        let by = |(files, unit): &(Vec<Held>, f64)| {
            let watts = files.iter().try_fold(*unit, |product, file| file.number().map(|number| product * number))?;
            if watts.is_finite() { Ok(Watts(watts)) } else { Err(Lost::Malformed) }
        };
        let mut reason = Lost::Gone;
        for (index, way) in self.ways.iter().enumerate() {
            match by(way) {
                Ok(watts) => return Ok(watts),
                Err(lost) if index == 0 => reason = lost,
                Err(_) => {}
            }
        }
        Err(reason)
    }
}

/// The source of `channel`, whose power is read by the first of these ways that has a value. `cable_watts` is the highest power of a meter
/// in a cable, which may be plugged in either way round.
pub(super) fn source(channel: Channel, ways: Vec<Way>, cable_watts: Option<f64>) -> Source {
    let place = || channel.place.clone();
    let absent = || Unusable::Unreadable { place: place(), reason: Lost::System(nix::libc::ENOENT) };
    let opened = Power::open(ways).and_then(|power| power.ok_or_else(absent));
    let alive = opened.and_then(|power| {
        let read = move || match (power.read()?, cable_watts) {
            (watts, None) => Ok(Reading::Power(watts)),
            (watts, Some(most)) if watts.0.abs() <= most => Ok(Reading::Power(Watts(watts.0.abs()))),
            _ => Err(Lost::TooHigh),
        };
        match read() {
            Ok(_) | Err(Lost::TooHigh) => Ok(read),
            Err(reason) => Err(Unusable::Dead { place: place(), reason }),
        }
    });
    let pace = Pace::Every(channel.refresh);
    Source::single(channel, pace, alive)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::{
        discover,
        tests::fixture::{Fixture, watts},
    };

    /// Folder and other files of a sensor, the files of each way with their content, and the watts of each way.
    type Case<'c> = (&'c str, &'c [(&'c str, &'c str)], [&'c [(&'c str, &'c str)]; 2], [f64; 2]);

    const CASES: &[Case<'_>] = &[
        ("sys/class/hwmon/hwmon0", &[("name", "amdgpu")], [&[("power1_average", "9000000")], &[("power1_input", "8000000")]], [9.0, 8.0]),
        (
            "sys/class/hwmon/hwmon0",
            &[("name", "ina226")],
            [&[("power1_input", "5000000")], &[("in1_input", "5000"), ("curr1_input", "900")]],
            [5.0, 4.5],
        ),
        (
            "sys/bus/iio/devices/iio:device0",
            &[("name", "ina226")],
            [
                &[("in_power2_raw", "2880"), ("in_power2_scale", "6.25")],
                &[("in_voltage1_raw", "4000"), ("in_voltage1_scale", "1.25"), ("in_current3_raw", "1000"), ("in_current3_scale", "0.5")],
            ],
            [18.0, 2.5],
        ),
        (
            "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0",
            &[("rail_name_1", "VDD_SYS_GPU")],
            [&[("in_power1_input", "1500")], &[("in_voltage1_input", "5000"), ("in_current1_input", "280")]],
            [1.5, 1.4],
        ),
        (
            "sys/bus/i2c/drivers/INA231/3-0045",
            &[("sensor_name", "sensor_arm"), ("enable", "1")],
            [&[("sensor_W", "2.5")], &[("sensor_V", "1.2"), ("sensor_A", "2.0")]],
            [2.5, 2.4],
        ),
        (
            "sys/class/power_supply/BAT0",
            &[("type", "Battery"), ("status", "Discharging")],
            [&[("current_now", "-1000000"), ("voltage_now", "8000000")], &[("power_now", "8200000")]],
            [8.0, 8.2],
        ),
        (
            "sys/class/power_supply/BAT0",
            &[("type", "Battery"), ("status", "Discharging")],
            [&[("power_now", "8200000")], &[("current_avg", "1000000"), ("voltage_now", "8000000")]],
            [8.2, 8.0],
        ),
    ];

    #[test]
    fn the_second_way_is_read_where_the_first_one_fails_or_is_absent() {
        for (folder, files, [first, second], [one, two]) in CASES {
            let made = || {
                let fixture = Fixture::new();
                fixture.files(folder, files);
                fixture.files(folder, second);
                fixture
            };
            let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-9, "{folder} {first:?}: {found} W, not {wanted} W");
            near(watts(&mut discover(&made().tree())[0]), *two);
            for broken in first.iter() {
                let fixture = made();
                fixture.files(folder, first);
                let mut found = discover(&fixture.tree());
                near(watts(&mut found[0]), *one);
                // An empty file gives no value, as one that fails.
                fixture.file(&format!("{folder}/{}", broken.0), "");
                near(watts(&mut found[0]), *two);
                near(watts(&mut discover(&fixture.tree())[0]), *two);
                fixture.files(folder, first);
                near(watts(&mut found[0]), *one);
            }
        }
    }

    #[test]
    fn the_reason_is_that_of_the_first_way() {
        let fixture = Fixture::new();
        fixture.files("sys/class/hwmon/hwmon0", &[("name", "ina226"), ("power1_input", "x"), ("in1_input", ""), ("curr1_input", "1")]);
        let found = discover(&fixture.tree());
        let error = found[0].sensor.as_ref().unwrap_err();
        assert!(matches!(error, Unusable::Dead { reason: Lost::Malformed, place } if place.ends_with("power1_input")), "{error}");
        fixture.files("sys/class/hwmon/hwmon0", &[("in1_input", "1e300"), ("curr1_input", "1e300")]);
        assert!(discover(&fixture.tree())[0].sensor.is_err(), "infinite watts");
    }
}
