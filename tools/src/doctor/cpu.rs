//! Processors: CPUs that are offline, governors, and limits of the clock.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{Check, Finding, Subject};
use socbfs_boards::board::CpuList;
use socbfs_machine::{is_gpu, line, list, list_numbered, name, number};

pub(super) const CHECKS: &[Check] = &[("cpus", online), ("governor", governor), ("clock-limit", limit), ("gpu-governor", gpu_governor)];

/// The number of CPUs that are online on the machine with the files below `root` (`None`: they do not say).
pub fn online_cpus(root: &Path) -> Option<usize> {
    let online: CpuList = line(root.join("sys/devices/system/cpu/online"))?.parse().ok()?;
    Some(online.numbers().len())
}

fn online(subject: &Subject<'_>) -> Finding {
    let folder = subject.root.join("sys/devices/system/cpu");
    let cpus = |name: &str| line(folder.join(name))?.parse::<CpuList>().ok();
    let (Some(present), Some(online)) = (cpus("present"), cpus("online")) else {
        return Finding::unknown("the system does not report its CPUs (no sys/devices/system/cpu)");
    };
    let off: Vec<usize> = present.numbers().iter().copied().filter(|cpu| !online.numbers().contains(cpu)).collect();
    let count = online.numbers().len();
    if off.is_empty() {
        let usable = subject.usable_cpus;
        let limited = if usable < count { format!(", this process may use {usable}") } else { String::new() };
        return Finding::ok(format!("{count} online, none switched off{limited}"));
    }
    if line(folder.join("smt/control")).is_some_and(|control| control.contains("off")) {
        return Finding::ok(format!("{count} online; simultaneous multithreading is switched off"));
    }
    let numbers = off.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
    Finding::warning(
        format!("switched off: {numbers}; {count} are online"),
        format!("for c in {numbers}; do echo 1 | sudo tee /sys/devices/system/cpu/cpu$c/online; done"),
    )
}

/// The folders of cpufreq, each for the clock of one or several CPUs.
fn policies(subject: &Subject<'_>) -> Vec<PathBuf> {
    let folder = subject.root.join("sys/devices/system/cpu");
    let policies = list_numbered(&folder.join("cpufreq"), "policy");
    if !policies.is_empty() {
        return policies;
    }
    list_numbered(&folder, "cpu").into_iter().map(|cpu| cpu.join("cpufreq")).filter(|path| path.is_dir()).collect()
}

const NO_CPUFREQ: &str = "the kernel does not set the clock here (no cpufreq): a virtual machine, a container, or a fixed clock";

fn governor(subject: &Subject<'_>) -> Finding {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for policy in policies(subject) {
        if let Some(governor) = line(policy.join("scaling_governor")) {
            *found.entry(governor).or_default() += 1;
        }
    }
    if found.is_empty() {
        return Finding::unknown(NO_CPUFREQ);
    }
    let names = found.keys().cloned().collect::<Vec<_>>().join(", ");
    if found.keys().all(|governor| governor == "performance") {
        return Finding::ok(names);
    }
    Finding::warning(
        format!("{names}: the clocks change with the load, and a search may end before they have risen"),
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
    )
}

fn limit(subject: &Subject<'_>) -> Finding {
    let (mut read, mut limited) = (0, Vec::new());
    for policy in policies(subject) {
        let value = |name: &str| number::<u64>(&policy.join(name));
        let (Some(limit), Some(highest)) = (value("scaling_max_freq"), value("cpuinfo_max_freq")) else { continue };
        read += 1;
        if limit < highest {
            limited.push((policy, limit, highest));
        }
    }
    let Some((first, limit, highest)) = limited.first() else {
        return match read {
            0 => Finding::unknown(NO_CPUFREQ),
            _ => Finding::ok("every CPU may reach its highest clock"),
        };
    };
    let cures: Vec<String> = limited
        .iter()
        .map(|(policy, _, highest)| format!("echo {highest} | sudo tee {}/scaling_max_freq", subject.place(policy)))
        .collect();
    Finding::warning(
        format!(
            "{} of {read} clocks are limited below their highest: {} at {} of {} MHz",
            limited.len(),
            name(first),
            limit / 1000,
            highest / 1000
        ),
        cures.join("; "),
    )
}

/// Checks the governor of GPUs whose clock devfreq sets, such as Mali and Adreno.
fn gpu_governor(subject: &Subject<'_>) -> Finding {
    let found: Vec<(String, String)> = list(&subject.root.join("sys/class/devfreq"), is_gpu)
        .iter()
        .filter_map(|device| Some((name(device), line(device.join("governor"))?)))
        .collect();
    let Some((device, governor)) = found.iter().find(|(_, governor)| governor != "performance").or(found.first()) else {
        return Finding::unknown("the kernel shows no clock of a GPU (no sys/class/devfreq)");
    };
    if governor == "performance" {
        return Finding::ok(format!("{governor} ({device})"));
    }
    Finding::warning(
        format!("{governor} ({device}): the GPU's clock changes with the load"),
        format!("echo performance | sudo tee /sys/class/devfreq/{device}/governor"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{
        Verdict,
        tests::{Machine, of},
    };

    const CPU: &str = "sys/devices/system/cpu";

    fn found(machine: &Machine) -> Vec<Finding> {
        machine.run(CHECKS, |_| ())
    }

    #[test]
    fn offline_cpus_are_named() {
        let machine = Machine::new(&[("sys/devices/system/cpu/present", "0-7\n"), ("sys/devices/system/cpu/online", "0-3,6-7\n")]);
        let findings = found(&machine);
        let finding = of(&findings, "cpus");
        assert_eq!(finding.verdict, Verdict::Warning);
        assert!(finding.reason.contains("4 5") && finding.reason.contains("6 are online"), "{finding:?}");
        assert!(finding.cure.as_deref().unwrap().starts_with("for c in 4 5; do echo 1"));
        // Simultaneous multithreading is switched off as a whole, which is done on purpose for measurements.
        machine.file(&format!("{CPU}/smt/control"), "off\n");
        assert_eq!(of(&found(&machine), "cpus").verdict, Verdict::Ok);
        machine.file(&format!("{CPU}/online"), "0-7\n");
        assert!(of(&found(&machine), "cpus").reason.contains("this process may use 4"));
    }

    #[test]
    fn governors_of_all_clusters_are_checked() {
        let machine = Machine::new(&[]);
        machine.file(&format!("{CPU}/cpufreq/policy0/scaling_governor"), "performance\n");
        assert_eq!(of(&found(&machine), "governor").verdict, Verdict::Ok);
        machine.file(&format!("{CPU}/cpufreq/policy4/scaling_governor"), "ondemand\n");
        let findings = found(&machine);
        let finding = of(&findings, "governor");
        assert!(finding.verdict == Verdict::Warning && finding.reason.contains("ondemand, performance"), "{finding:?}");
        // Old kernels only have a folder for each CPU.
        let old = Machine::new(&[("sys/devices/system/cpu/cpu3/cpufreq/scaling_governor", "interactive\n")]);
        assert!(of(&found(&old), "governor").reason.contains("interactive"));
    }

    #[test]
    fn a_lowered_clock_limit_is_reported_with_its_cure() {
        let machine = Machine::new(&[]);
        for (policy, limit) in [(0, "1400000"), (4, "1200000")] {
            machine.file(&format!("{CPU}/cpufreq/policy{policy}/scaling_max_freq"), limit);
            machine.file(&format!("{CPU}/cpufreq/policy{policy}/cpuinfo_max_freq"), if policy == 0 { "1400000" } else { "2000000" });
        }
        let findings = found(&machine);
        let finding = of(&findings, "clock-limit");
        assert!(finding.reason.contains("1 of 2 clocks") && finding.reason.contains("policy4 at 1200 of 2000 MHz"), "{finding:?}");
        assert_eq!(finding.cure.as_deref(), Some("echo 2000000 | sudo tee /sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq"));
        machine.file(&format!("{CPU}/cpufreq/policy4/scaling_max_freq"), "2000000");
        assert_eq!(of(&found(&machine), "clock-limit").verdict, Verdict::Ok);
    }

    #[test]
    fn the_governor_of_the_gpu_is_checked() {
        let machine =
            Machine::new(&[("sys/class/devfreq/fb000000.gpu/governor", "simple_ondemand\n"), ("sys/class/devfreq/dmc/governor", "x\n")]);
        let findings = found(&machine);
        let finding = of(&findings, "gpu-governor");
        assert!(finding.verdict == Verdict::Warning && finding.cure.as_ref().unwrap().contains("fb000000.gpu/governor"), "{finding:?}");
        machine.file("sys/class/devfreq/fb000000.gpu/governor", "performance\n");
        assert_eq!(of(&found(&machine), "gpu-governor").verdict, Verdict::Ok);
    }
}
