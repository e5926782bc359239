//! Heat: zones near the temperature at which the kernel slows the chip, devices that it slows now, and how often heat has slowed a
//! processor since the start.

use std::{path::Path, process::Command};

use super::{Check, Finding, Subject};
use crate::bench::slows;
use socbfs_machine::{is_live, line, list, list_numbered, number};

/// A zone counts as near a trip point from this many degrees below it: a search of some seconds warms a small chip by more.
const NEAR: f64 = 5.0;

pub(super) const CHECKS: &[Check] = &[("temperature", zones), ("throttling", throttled)];

const COOL: &str = "cool it (heat sink, fan, pauses), then look again: socbfs doctor";

/// A thermal zone, and the lowest of its trip points at which the kernel slows or stops the machine.
struct Zone {
    name: String,
    celsius: f64,
    trip: Option<(f64, String)>,
}

impl Zone {
    fn read(path: &Path) -> Option<Self> {
        let celsius = number::<f64>(&path.join("temp"))? / 1000.0;
        // A temperature outside of any chip's range comes from a sensor that is not connected.
        if !(-40.0..200.0).contains(&celsius) {
            return None;
        }
        let mut trip: Option<(f64, String)> = None;
        for kind_file in list(path, |name| name.starts_with("trip_point_") && name.ends_with("_type")) {
            let Some(kind) = line(&kind_file).filter(|kind| matches!(kind.as_str(), "passive" | "hot" | "critical")) else { continue };
            let temperature_file = format!("{}_temp", kind_file.to_string_lossy().trim_end_matches("_type"));
            let Some(at) = number::<f64>(Path::new(&temperature_file)).map(|at| at / 1000.0).filter(|at| *at > 0.0) else { continue };
            if trip.as_ref().is_none_or(|(lowest, _)| at < *lowest) {
                trip = Some((at, kind));
            }
        }
        Some(Self { name: line(path.join("type")).unwrap_or_else(|| "a zone".to_owned()), celsius, trip })
    }

    /// Degrees below the trip point.
    fn left(&self) -> f64 {
        self.trip.as_ref().map_or(f64::INFINITY, |(at, _)| at - self.celsius)
    }
}

fn zones(subject: &Subject<'_>) -> Finding {
    let folder = subject.root.join("sys/class/thermal");
    let zones: Vec<Zone> = list_numbered(&folder, "thermal_zone").iter().filter_map(|zone| Zone::read(zone)).collect();
    let nearest = zones.iter().min_by(|a, b| a.left().total_cmp(&b.left()).then(b.celsius.total_cmp(&a.celsius)));
    let Some(zone) = nearest else {
        return Finding::unknown("the system shows no temperature (no sys/class/thermal/thermal_zone*)");
    };
    let Zone { name, celsius, .. } = zone;
    match &zone.trip {
        None => Finding::ok(format!("{name} has {celsius:.0} °C; no zone reports the temperature at which it slows down")),
        Some((at, kind)) if zone.left() <= NEAR => {
            Finding::warning(format!("{name} has {celsius:.0} °C, and the chip slows down at {at:.0} °C ({kind})"), COOL)
        }
        Some((at, kind)) => Finding::ok(format!("{name} has {celsius:.0} °C, {:.0} below its limit ({kind}, {at:.0} °C)", zone.left())),
    }
}

/// Checks whether a processor is slowed by heat or low voltage, now or since the start.
fn throttled(subject: &Subject<'_>) -> Finding {
    let (mut looked, mut before, mut cure) = (0, Vec::new(), COOL);
    for device in list_numbered(&subject.root.join("sys/class/thermal"), "cooling_device") {
        let Some(kind) = line(device.join("type")).filter(|kind| slows(kind)) else { continue };
        let (Some(state), Some(most)) = (number::<u64>(&device.join("cur_state")), number::<u64>(&device.join("max_state"))) else {
            continue;
        };
        looked += 1;
        if state > 0 {
            return Finding::warning(format!("the kernel slows down {kind} now (step {state} of {most})"), COOL);
        }
    }
    if let Some(bits) = raspberry(subject.root) {
        looked += 1;
        if bits & 0xf != 0 {
            return Finding::warning(format!("the firmware says: {} now", raspberry_words(bits)), raspberry_cure(bits));
        }
        if bits >> 16 & 0xf != 0 {
            before.push(format!("the firmware says: {} since the start", raspberry_words(bits >> 16)));
            cure = raspberry_cure(bits >> 16);
        }
    }
    let counts: Vec<u64> = list_numbered(&subject.root.join("sys/devices/system/cpu"), "cpu")
        .iter()
        .flat_map(|cpu| ["core", "package"].map(|part| number(cpu.join(format!("thermal_throttle/{part}_throttle_count")))))
        .flatten()
        .collect();
    if let Some(most) = counts.iter().max() {
        looked += 1;
        if *most > 0 {
            before.push(format!("slowed by heat {most} times since the start"));
        }
    }
    match (looked, before.is_empty()) {
        (0, _) => Finding::unknown("the system does not report it (no cooling device of a processor, no counter)"),
        (_, true) => Finding::ok("not slowed now; no slowdown was counted since the start"),
        (..) => Finding::warning(format!("{}; not now", before.join("; ")), cure),
    }
}

/// The bits that the firmware of a Raspberry Pi reports: 0 too little voltage, 1 clock capped, 2 throttled, 3 soft limit of the
/// temperature; the same from bit 16 on for the time since the start.
///
/// Source: Raspberry Pi documentation, `vcgencmd get_throttled`.
fn raspberry(root: &Path) -> Option<u64> {
    let file = line(root.join("sys/devices/platform/soc/soc:firmware/get_throttled"));
    // A program is run on the running system only. Below another root, files and programs may be those of another machine.
    let programs = ["/usr/bin/vcgencmd", "/opt/vc/bin/vcgencmd"].map(Path::new);
    let text = file.or_else(|| said_by(programs.into_iter().find(|path| is_live(root) && path.exists())?))?;
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

/// The output of `vcgencmd get_throttled`, without its prefix.
fn said_by(command: &Path) -> Option<String> {
    let output = Command::new(command).arg("get_throttled").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().strip_prefix("throttled=")?.to_owned())
}

fn raspberry_words(bits: u64) -> String {
    let words = ["too little voltage", "clock capped", "throttled", "soft limit of the temperature"];
    let set: Vec<&str> = words.into_iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, word)| word).collect();
    set.join(", ")
}

fn raspberry_cure(bits: u64) -> &'static str {
    if bits & 1 == 1 { "use the maker's power supply and a short cable, then look again: vcgencmd get_throttled" } else { COOL }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;
    use crate::doctor::{
        Verdict,
        tests::{Machine, of},
    };

    fn found(machine: &Machine) -> Vec<Finding> {
        machine.run(CHECKS, |_| ())
    }

    fn zone(machine: &Machine, number: u32, name: &str, temperature: &str, trips: &[(&str, &str)]) {
        let folder = format!("sys/class/thermal/thermal_zone{number}");
        machine.file(&format!("{folder}/type"), name);
        machine.file(&format!("{folder}/temp"), temperature);
        for (index, (kind, at)) in trips.iter().enumerate() {
            machine.file(&format!("{folder}/trip_point_{index}_type"), kind);
            machine.file(&format!("{folder}/trip_point_{index}_temp"), at);
        }
    }

    #[test]
    fn a_zone_near_its_limit_is_a_warning() {
        let machine = Machine::new(&[]);
        zone(&machine, 0, "soc-thermal", "41000", &[("active", "35000"), ("passive", "75000"), ("critical", "115000")]);
        let findings = found(&machine);
        let finding = of(&findings, "temperature");
        assert!(finding.verdict == Verdict::Ok && finding.reason.contains("34 below its limit (passive, 75 °C)"), "{finding:?}");
        zone(&machine, 1, "gpu-thermal", "71000", &[("passive", "75000")]);
        // A sensor that is not connected.
        zone(&machine, 2, "broken", "-274000", &[("passive", "1000")]);
        let findings = found(&machine);
        let finding = of(&findings, "temperature");
        assert!(
            finding.verdict == Verdict::Warning && finding.reason.contains("gpu-thermal has 71 °C, and the chip slows down at 75 °C"),
            "{finding:?}"
        );
    }

    #[test]
    fn a_throttled_processor_is_a_warning_and_a_running_fan_is_not() {
        let machine = Machine::new(&[
            ("sys/class/thermal/cooling_device0/type", "pwm-fan\n"),
            ("sys/class/thermal/cooling_device0/cur_state", "3\n"),
            ("sys/class/thermal/cooling_device0/max_state", "3\n"),
            ("sys/class/thermal/cooling_device1/type", "thermal-cpufreq-0\n"),
            ("sys/class/thermal/cooling_device1/cur_state", "0\n"),
            ("sys/class/thermal/cooling_device1/max_state", "13\n"),
        ]);
        assert_eq!(of(&found(&machine), "throttling").verdict, Verdict::Ok);
        machine.file("sys/class/thermal/cooling_device1/cur_state", "5\n");
        let findings = found(&machine);
        let finding = of(&findings, "throttling");
        assert!(
            finding.verdict == Verdict::Warning && finding.reason.contains("slows down thermal-cpufreq-0 now (step 5 of 13)"),
            "{finding:?}"
        );
    }

    #[test]
    fn throttling_counts_since_the_start_are_reported() {
        let machine = Machine::new(&[
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "0\n"),
            ("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "0\n"),
        ]);
        assert_eq!(of(&found(&machine), "throttling").verdict, Verdict::Ok);
        machine.file("sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "12\n");
        assert!(of(&found(&machine), "throttling").reason.contains("12 times since the start; not now"));
    }

    #[test]
    fn throttling_is_read_from_the_firmware_of_a_raspberry_pi() {
        let program = "#!/bin/sh\ntouch \"$0.has-run\"\n[ \"$1\" = get_throttled ] && echo throttled=0x50005\n";
        let machine = Machine::new(&[("usr/bin/vcgencmd", program)]);
        fs::set_permissions(machine.path("usr/bin/vcgencmd"), fs::Permissions::from_mode(0o755)).unwrap();
        // The program in a copy of another machine's files is not run.
        found(&machine);
        assert!(!machine.path("usr/bin/vcgencmd.has-run").exists());
        assert_eq!(said_by(&machine.path("usr/bin/vcgencmd")).as_deref(), Some("0x50005"));
        machine.file("sys/devices/platform/soc/soc:firmware/get_throttled", "50005\n");
        let findings = found(&machine);
        let finding = of(&findings, "throttling");
        assert!(finding.reason.contains("too little voltage, throttled now"), "{finding:?}");
        assert!(finding.cure.as_ref().unwrap().contains("power supply"), "{finding:?}");
        // The kernel's file takes precedence.
        machine.file("sys/devices/platform/soc/soc:firmware/get_throttled", "20000\n");
        assert!(of(&found(&machine), "throttling").reason.contains("clock capped since the start; not now"));
        machine.file("sys/devices/platform/soc/soc:firmware/get_throttled", "10000\n");
        let findings = found(&machine);
        let finding = of(&findings, "throttling");
        assert!(finding.reason.contains("too little voltage since the start; not now"), "{finding:?}");
        assert!(finding.cure.as_ref().unwrap().contains("power supply"), "{finding:?}");
        machine.file("sys/devices/platform/soc/soc:firmware/get_throttled", "0\n");
        assert_eq!(of(&found(&machine), "throttling").verdict, Verdict::Ok);
    }
}
