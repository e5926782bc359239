//! Batteries: `/sys/class/power_supply/*/{status,current_now,voltage_now,power_now}`, in microamperes, microvolts and microwatts as the
//! kernel defines them. A fuel gauge that has neither may have means over some seconds, `current_avg` and `power_avg`. Vendors differ in
//! the sign of the current, and some in its unit, so the absolute value is taken, and a board profile may give a scale. Only a battery that
//! is discharging feeds the machine.

use std::{path::Path, time::Duration};

use super::power_file::Power;
use crate::{Channel, Component, Family, Held, Lost, Pace, Reading, Scope, Source, SystemFiles, Unusable, Watts, line, name_of};

/// Fuel gauges update their values between a few times a second and once in several seconds.
const INTERVAL: Duration = Duration::from_millis(500);

/// The batteries of `tree`, without those of mice, pens and other devices.
pub fn discover(tree: &SystemFiles) -> Vec<Source> {
    let supplies = tree.list("sys/class/power_supply", |_| true);
    let battery = |path: &&std::path::PathBuf| {
        line(path.join("type")).as_deref() == Some("Battery") && line(path.join("scope")).as_deref() != Some("Device")
    };
    supplies.iter().filter(battery).map(|supply| source(supply)).collect()
}

fn source(supply: &Path) -> Source {
    let id = name_of(supply);
    let meter = Channel::meter(Family::PowerSupply, &supply.display().to_string(), Scope::BoardInput, Component::supply(&id), INTERVAL);
    Source::single(Channel { id, ..meter }, Pace::Every(INTERVAL), open(supply))
}

/// Opens a battery, and returns a function that reads it.
fn open(supply: &Path) -> Result<impl Fn() -> Result<Reading, Lost> + use<>, Unusable> {
    let file = |name: &str| supply.join(name);
    let place = || supply.display().to_string();
    let status = Held::open(&file("status"))?;
    let by_current = |current: &str| (vec![file(current), file("voltage_now")], 1e-12);
    let by_power = |power: &str| (vec![file(power)], 1e-6);
    let power = Power::open(vec![by_current("current_now"), by_power("power_now"), by_current("current_avg"), by_power("power_avg")])?;
    let power = power.ok_or_else(|| {
        let reason = "there is neither power_now nor both current_now and voltage_now".to_owned();
        Unusable::Protocol { place: place(), reason }
    })?;
    let read = move || match status.value(|status| Some(status == "Discharging"))? {
        true => Ok(Reading::Power(Watts(power.read()?.0.abs()))),
        false => Err(Lost::NotDischarging),
    };
    match read() {
        Ok(_) => Ok(read),
        Err(Lost::NotDischarging) => Err(Unusable::NotDischarging { status: line(file("status")).unwrap_or_else(|| "unknown".to_owned()) }),
        Err(reason) => Err(Unusable::Dead { place: place(), reason }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        families::tests::fixture::{Fixture, sample, watts},
        selection::Selection,
    };

    fn battery(fixture: &Fixture, name: &str, files: &[(&str, &str)]) {
        let folder = format!("sys/class/power_supply/{name}");
        fixture.files(&folder, &[("type", "Battery"), ("status", "Discharging")]);
        fixture.files(&folder, files);
    }

    #[test]
    fn currents_of_either_sign_are_consumption() {
        for current in ["1600000", "-1600000"] {
            let fixture = Fixture::new();
            battery(&fixture, "battery", &[("current_now", current), ("voltage_now", "3800000")]);
            assert!((watts(&mut discover(&fixture.tree())[0]) - 6.08).abs() < 1e-9, "{current}");
        }
    }

    #[test]
    fn a_charging_battery_is_not_a_sensor() {
        let fixture = Fixture::new();
        battery(&fixture, "battery", &[("current_now", "500000"), ("voltage_now", "4000000")]);
        let mut found = discover(&fixture.tree());
        fixture.file("sys/class/power_supply/battery/status", "Charging\n");
        assert_eq!(sample(&mut found[0]), [(0, Reading::Unavailable(Lost::NotDischarging))]);
        let charging = discover(&fixture.tree());
        let error = charging[0].sensor.as_ref().unwrap_err();
        assert!(error.to_string().contains("Charging") && error.cure().unwrap().contains("charger"), "{error}");
    }

    #[test]
    fn power_is_read_and_batteries_of_other_devices_are_ignored() {
        let fixture = Fixture::new();
        battery(&fixture, "BAT0", &[("power_now", "7250000"), ("voltage_now", "11000000")]);
        battery(&fixture, "hidpp_battery_0", &[("scope", "Device"), ("power_now", "1")]);
        battery(&fixture, "BAT1", &[("voltage_now", "11000000")]);
        fixture.files("sys/class/power_supply/AC", &[("type", "Mains"), ("online", "0")]);
        let mut found = discover(&fixture.tree());
        assert_eq!(found.len(), 2);
        assert!((watts(&mut found[0]) - 7.25).abs() < 1e-9);
        assert!(matches!(&found[1].sensor, Err(Unusable::Protocol { reason, .. }) if reason.contains("power_now")));
        // Two batteries share the load, so they add up, and one of them is not the machine, unless the other one is idle.
        assert!(!found[0].channels[0].part.overlaps(&found[1].channels[0].part));
        let scope = |name: &str| Selection::named(discover(&fixture.tree()), &[name.to_owned()], None).unwrap().scope().to_owned();
        fixture.file("sys/class/power_supply/BAT1/power_now", "3000000");
        assert_eq!((scope("power-supply:BAT0"), scope("power-supply")), ("soc-rails".to_owned(), "board-input".to_owned()));
        fixture.file("sys/class/power_supply/BAT1/power_now", "0");
        assert_eq!(scope("power-supply:BAT0"), "board-input");
    }
}
