//! The clusters of cores that Linux reports.

use std::{collections::BTreeSet, path::Path};

use socbfs_boards::board::{Cluster, CpuList};
use socbfs_machine::{self as machine, line, number};

/// The properties that all cores of a cluster share.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    /// Name of the core, or the kernel's name for the kind.
    core_type: Option<String>,
    /// Name of the kind if the kernel itself distinguishes kinds of cores (hybrid x86 processors).
    hybrid: Option<&'static str>,
    max_mhz: Option<u32>,
    capacity: Option<u32>,
}

/// Groups the CPUs that are online by kind of core, from the files below `root`, in the order of their first CPU. Empty if Linux does not
/// report which CPUs are online.
pub(crate) fn clusters(root: &Path) -> Vec<Cluster> {
    let folder = root.join("sys/devices/system/cpu");
    let Some(online) = number::<CpuList>(&folder.join("online")) else { return Vec::new() };
    let parts = core_names(&machine::text(root.join("proc/cpuinfo")).unwrap_or_default());
    let hybrid: Vec<(&'static str, CpuList)> = [("performance", "cpu_core"), ("efficient", "cpu_atom")]
        .into_iter()
        .filter_map(|(name, device)| Some((name, number(root.join("sys/devices").join(device).join("cpus"))?)))
        .collect();

    let mut groups: Vec<(Kind, Vec<usize>)> = Vec::new();
    for &cpu in online.numbers() {
        let core_type = parts.iter().find(|(number, _)| *number == cpu).map(|(_, name)| name.clone());
        let kind = Kind {
            hybrid: hybrid.iter().find(|(_, cpus)| cpus.numbers().contains(&cpu)).map(|(name, _)| *name),
            max_mhz: number::<u32>(&folder.join(format!("cpu{cpu}/cpufreq/cpuinfo_max_freq"))).map(|khz| khz.div_ceil(1000)),
            capacity: number(folder.join(format!("cpu{cpu}/cpu_capacity"))),
            core_type,
        };
        // On x86, some cores of one kind have a higher clock than the others, but all belong to one cluster.
        let same = |other: &Kind| match (&kind.core_type, kind.hybrid) {
            (Some(_), _) => *other == kind,
            (None, hybrid) => other.core_type.is_none() && other.hybrid == hybrid,
        };
        match groups.iter_mut().find(|(other, _)| same(other)) {
            Some((other, cpus)) => {
                other.max_mhz = other.max_mhz.max(kind.max_mhz);
                other.capacity = other.capacity.max(kind.capacity);
                cpus.push(cpu);
            }
            None => groups.push((kind, vec![cpu])),
        }
    }

    let names = names(&groups.iter().map(|(kind, _)| kind).collect::<Vec<_>>());
    let cluster = |((kind, cpus), name): ((Kind, Vec<usize>), String)| {
        let siblings = |cpu: &usize| {
            let names = ["core_cpus_list", "thread_siblings_list"]; // the newer name first
            names.iter().find_map(|name| line(folder.join(format!("cpu{cpu}/topology/{name}")))).unwrap_or_else(|| cpu.to_string())
        };
        let cores = cpus.iter().map(siblings).collect::<BTreeSet<_>>().len();
        Cluster {
            name,
            // A system has fewer CPUs than 2^32.
            cores: u32::try_from(cores).unwrap_or(u32::MAX),
            core_type: kind.core_type,
            max_mhz: kind.max_mhz.filter(|&mhz| mhz > 0),
            // If some siblings are offline, cores have different numbers of CPUs, which a profile can't describe.
            cpus: if cpus.len() % cores == 0 { CpuList::from_numbers(cpus) } else { None },
            capacity: kind.capacity.filter(|capacity| (1..=1024).contains(capacity)),
        }
    };
    groups.into_iter().zip(names).map(cluster).collect()
}

/// Names of the clusters, by their speed or by the kernel's names.
fn names(kinds: &[&Kind]) -> Vec<String> {
    let ordered: &[&str] = match kinds.len() {
        1 => &["all"],
        2 => &["little", "big"],
        3 => &["little", "middle", "big"],
        _ => &[],
    };
    let speed = |kind: &Kind| (kind.capacity, kind.max_mhz);
    let name = |(place, kind): (usize, &&Kind)| {
        if let Some(hybrid) = kind.hybrid {
            return hybrid.to_owned();
        }
        let slower = kinds.iter().filter(|other| speed(other) < speed(kind)).count();
        let unique = kinds.iter().filter(|other| speed(other) == speed(kind)).count() == 1;
        match ordered.get(slower) {
            Some(name) if unique => (*name).to_owned(),
            _ => format!("cluster{place}"),
        }
    };
    kinds.iter().enumerate().map(name).collect()
}

/// The core of every processor in `/proc/cpuinfo` on ARM: the processor's number and the core's name. Empty on x86.
fn core_names(cpuinfo: &str) -> Vec<(usize, String)> {
    let (mut found, mut cpu, mut implementer) = (Vec::new(), None, None);
    for line in cpuinfo.lines() {
        let Some((key, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match key.trim() {
            "processor" => (cpu, implementer) = (value.parse().ok(), None),
            "CPU implementer" => implementer = Some(value),
            "CPU part" => {
                if let (Some(cpu), Some(implementer)) = (cpu, implementer) {
                    let number = format!("{implementer}:{value}");
                    let name = CORES.lines().find_map(|line| line.strip_prefix(&number)?.strip_prefix(' ')).map(str::to_owned);
                    found.push((cpu, name.unwrap_or(number)));
                }
            }
            _ => {}
        }
    }
    found
}

/// Names of ARM and Qualcomm cores, one a line, after the fields implementer and part of MIDR (ARM's technical reference manuals; for
/// Qualcomm `arch/arm64/include/asm/cputype.h` of Linux).
const CORES: &str = include_str!("cores.txt");

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture(name: &str) -> Vec<Cluster> {
        clusters(crate::fixtures::machine(&format!("board/{name}")).path())
    }

    fn cluster(name: &str, cores: u32, core_type: Option<&str>, mhz: u32, cpus: &str, capacity: Option<u32>) -> Cluster {
        Cluster {
            name: name.into(),
            cores,
            core_type: core_type.map(str::to_owned),
            max_mhz: Some(mhz),
            cpus: Some(cpus.parse().unwrap()),
            capacity,
        }
    }

    #[test]
    fn cores_of_one_kind_form_a_cluster() {
        assert_eq!(
            fixture("odroid-xu4"),
            [
                cluster("little", 4, Some("Cortex-A7"), 1400, "0-3", Some(377)),
                cluster("big", 4, Some("Cortex-A15"), 2000, "4-7", Some(1024))
            ]
        );
        // Three clusters by clock, although two of them have the same core.
        assert_eq!(
            fixture("rb5"),
            [
                cluster("little", 4, Some("Kryo 485 Silver"), 1805, "0-3", Some(284)),
                cluster("middle", 3, Some("Cortex-A77"), 2420, "4-6", Some(871)),
                cluster("big", 1, Some("Cortex-A77"), 2842, "7", Some(1024)),
            ]
        );
    }

    #[test]
    fn hardware_threads_of_a_core_count_as_one_core() {
        assert_eq!(fixture("i7-4790"), [cluster("all", 4, None, 4000, "0-7", None)]);
    }

    #[test]
    fn hybrid_processors_have_a_cluster_for_each_kind_of_core() {
        // The favoured core has a higher clock but no cluster of its own.
        assert_eq!(
            fixture("core-ultra"),
            [cluster("performance", 2, None, 4800, "0-3", None), cluster("efficient", 2, None, 3800, "4-5", None)]
        );
    }

    #[test]
    fn machines_without_files_have_no_clusters() {
        assert_eq!(clusters(Path::new("/nonexistent")), []);
    }

    #[test]
    fn unknown_cores_are_named_by_their_numbers() {
        let text = "processor : 0\nCPU implementer : 0x61\nCPU part : 0x023\n\nprocessor : 1\nCPU part : 0xd03\n";
        assert_eq!(core_names(text), [(0, "0x61:0x023".to_owned())]);
    }
}
