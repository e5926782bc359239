//! Power sensors and the permission to read them.

use serde::Serialize;
use socbfs_power::Skipped;

use super::{Check, Finding, NOT_TRIED, Subject};
use socbfs_machine::number;

/// What `--energy auto` would measure, or why it would measure nothing; and, for the doctor, all sensors.
#[derive(Debug, Clone, Default, Serialize)]
pub struct SensorProbe {
    /// The part of the machine that the sensors cover.
    pub scope: Option<String>,
    /// The sensors that are added up (empty: none).
    pub sensors: Vec<String>,
    /// The reason why nothing is measured.
    pub reason: Option<String>,
    /// How to cure that.
    pub cure: Option<String>,
    /// Whether it measures nothing only because no board profile names the usable sensors.
    #[serde(skip)]
    pub unnamed: bool,
    /// Sensors that work, whether or not `--energy auto` measures them.
    #[serde(skip)]
    pub usable: Vec<String>,
    /// Sensors that exist but can't be used.
    #[serde(skip)]
    pub unusable: Vec<Skipped>,
}

pub(super) const CHECKS: &[Check] = &[("power-sensors", sensors), ("perf-events", perf)];

fn sensors(subject: &Subject<'_>) -> Finding {
    let Some(probe) = &subject.probe.sensors else { return Finding::unknown(NOT_TRIED) };
    if let Some(scope) = &probe.scope {
        return Finding::ok(format!("{scope}: {}", probe.sensors.join(" + ")));
    }
    // What cures another sensor, such as an idle battery, does not help then.
    let curable = probe.unusable.iter().filter(|_| !probe.unnamed).find_map(|skipped| Some((skipped, skipped.cure.clone()?)));
    if let Some((skipped, cure)) = curable {
        return Finding::warning(format!("energy is n/a: {skipped}"), cure);
    }
    if !probe.usable.is_empty() {
        let names = probe.usable.join(",");
        return Finding::warning(
            format!("energy is n/a: {names} found, but no board profile says which of them to add up"),
            format!("socbfs bench --energy {names}    # or only those that feed what you measure"),
        );
    }
    let reason = probe.unusable.first().map(ToString::to_string).or_else(|| probe.reason.clone());
    let reason = reason.unwrap_or_else(|| "no power sensor was found on this machine".to_owned());
    Finding::unknown(format!("energy is n/a: {reason}; a meter can be named: socbfs bench --help"))
}

/// Checks perf's power events, which can read the processor's energy counters where only root may read the files of powercap.
fn perf(subject: &Subject<'_>) -> Finding {
    if !subject.root.join("sys/bus/event_source/devices/power/type").exists() {
        return Finding::ok("not needed: no sensor here is read through perf");
    }
    if subject.probe.sensors.as_ref().is_some_and(|probe| probe.scope.is_some()) {
        return Finding::ok("not needed: energy is measured already");
    }
    let Some(paranoid) = number::<i32>(&subject.root.join("proc/sys/kernel/perf_event_paranoid")) else {
        return Finding::unknown("the system does not report which users may use them (no proc/sys/kernel/perf_event_paranoid)");
    };
    if paranoid <= 0 || subject.is_root {
        return Finding::ok(format!("open to this user (perf_event_paranoid {paranoid})"));
    }
    Finding::warning(
        format!("perf_event_paranoid is {paranoid}: only root may read the power events of the processor"),
        "sudo sysctl kernel.perf_event_paranoid=0",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        Verdict,
        tests::{Machine, of},
    };

    fn found(machine: &Machine, probe: Option<SensorProbe>) -> Vec<Finding> {
        machine.run(CHECKS, |subject| subject.probe.sensors = probe.clone())
    }

    #[test]
    fn measured_sensors_are_reported() {
        let machine = Machine::new(&[("sys/bus/event_source/devices/power/type", "9"), ("proc/sys/kernel/perf_event_paranoid", "2\n")]);
        let probe = SensorProbe { sensors: vec!["a".into(), "b".into()], scope: Some("soc-rails".into()), ..SensorProbe::default() };
        let findings = found(&machine, Some(probe));
        assert_eq!((of(&findings, "power-sensors").verdict, &*of(&findings, "power-sensors").reason), (Verdict::Ok, "soc-rails: a + b"));
        assert_eq!(of(&findings, "perf-events").verdict, Verdict::Ok);
    }

    #[test]
    fn machines_without_sensors_give_no_warning() {
        let probe = SensorProbe { reason: Some("no power sensor was found".into()), ..SensorProbe::default() };
        assert_eq!(of(&found(&Machine::new(&[]), Some(probe)), "power-sensors").verdict, Verdict::Unknown);
        assert_eq!(of(&found(&Machine::new(&[]), None), "power-sensors").verdict, Verdict::Unknown);
    }

    #[test]
    fn unreadable_sensors_are_reported_with_their_cure() {
        let skipped = |cure: Option<&str>| {
            let channel = socbfs_power::Channel {
                family: socbfs_power::Family::Powercap,
                id: "intel-rapl:0".into(),
                label: None,
                domain: socbfs_power::Domain::Package,
                scope: socbfs_power::Scope::CpuPackage,
                part: socbfs_power::Component::package(0),
                signal: socbfs_power::Signal::Power,
                refresh: std::time::Duration::ZERO,
                place: "energy_uj".into(),
            };
            let problem = match cure {
                Some(cure) => socbfs_power::Unusable::Permission { place: "energy_uj".into(), cure: cure.into() },
                None => socbfs_power::Unusable::Still { milliseconds: 1000 },
            };
            Skipped::new(&channel, &problem)
        };
        let probe = SensorProbe { unusable: vec![skipped(None), skipped(Some("sudo chmod"))], ..SensorProbe::default() };
        let findings = found(&Machine::new(&[]), Some(probe));
        let finding = of(&findings, "power-sensors");
        assert_eq!((finding.verdict, finding.cure.as_deref()), (Verdict::Warning, Some("sudo chmod")));
        assert!(finding.reason.contains("powercap:intel-rapl:0") && finding.reason.contains("may not be read"), "{finding:?}");
        // A battery that is being charged beside one that works.
        let unnamed =
            SensorProbe { unnamed: true, usable: vec!["b".into()], unusable: vec![skipped(Some("unplug it"))], ..SensorProbe::default() };
        let findings = found(&Machine::new(&[]), Some(unnamed));
        assert!(of(&findings, "power-sensors").reason.starts_with("energy is n/a: b found"), "{findings:?}");
        // A counter that never changes, as in virtual machines, is not a fault.
        let still = SensorProbe { unusable: vec![skipped(None)], ..SensorProbe::default() };
        let findings = found(&Machine::new(&[]), Some(still));
        let finding = of(&findings, "power-sensors");
        assert!(finding.verdict == Verdict::Unknown && finding.reason.contains("did not change"), "{finding:?}");
    }

    #[test]
    fn usable_sensors_without_a_known_sum_are_named() {
        let probe = SensorProbe { usable: vec!["ina2xx:0-0040".into(), "ina2xx:0-0041".into()], ..SensorProbe::default() };
        let findings = found(&Machine::new(&[]), Some(probe));
        let cure = of(&findings, "power-sensors").cure.clone().unwrap();
        assert!(cure.starts_with("socbfs bench --energy ina2xx:0-0040,ina2xx:0-0041 "), "{cure}");
    }

    #[test]
    fn perf_is_checked_only_where_it_has_a_sensor() {
        let paranoid = ("proc/sys/kernel/perf_event_paranoid", "3\n");
        assert_eq!(of(&found(&Machine::new(&[paranoid]), None), "perf-events").verdict, Verdict::Ok);
        let machine = Machine::new(&[paranoid, ("sys/bus/event_source/devices/power/type", "9\n")]);
        let findings = found(&machine, None);
        assert!(of(&findings, "perf-events").verdict == Verdict::Warning && of(&findings, "perf-events").reason.contains("is 3"));
        let root = machine.run(CHECKS, |subject| subject.is_root = true);
        assert_eq!(of(&root, "perf-events").verdict, Verdict::Ok);
        machine.file(paranoid.0, "-1\n");
        assert_eq!(of(&found(&machine, None), "perf-events").verdict, Verdict::Ok);
    }
}
