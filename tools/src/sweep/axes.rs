//! What can vary on a machine, and the grid of all combinations.

use std::collections::BTreeMap;

use socbfs_boards::board::{Cluster, CpuList};

use super::clocks::{Domain, is_memory};
use crate::record::OperatingPoint;

/// A choice of CPUs, device and policy; the clocks of its domains are free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The choice in words: `4 big + 4 little`.
    pub name: String,
    /// The CPUs, one for each thread.
    pub cpus: CpuList,
    /// The value of `--device`.
    pub device: String,
    /// The value of `--policy`.
    pub policy: Option<String>,
    /// The domains that the choice uses: places in [`Axes::domains`].
    pub domains: Vec<usize>,
}

/// A point of the grid: a choice, and the step of each of its clocks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Spot {
    /// The place of the choice in [`Axes::choices`].
    pub choice: usize,
    /// For each of its domains the place of the frequency in [`Domain::steps_khz`]. Empty: clocks as they were found.
    pub steps: Vec<usize>,
}

/// All that can vary.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axes {
    /// The choices; the first is the default.
    pub choices: Vec<Choice>,
    /// The clocks.
    pub domains: Vec<Domain>,
}

/// A cluster of a machine: its name, and its CPUs, one of each core before the second of any.
type Cores = (String, Vec<usize>);

impl Axes {
    /// The choices of CPUs of `clusters` (all CPUs of a cluster, and fewer; clusters alone and together) with each of `devices` (the value
    /// of `--device`, and whether it then searches without the CPUs) and each of `policies` (empty: the default policy). `vary_threads`:
    /// whether a cluster runs with fewer threads than it has CPUs. `usable`: the CPUs that the process may run on.
    pub fn new(
        clusters: &[Cluster],
        usable: &[usize],
        domains: Vec<Domain>,
        devices: &[(&str, bool)],
        policies: &[String],
        vary_threads: bool,
    ) -> Self {
        let cores = |cluster: &Cluster| -> Option<Cores> {
            let cpus: Vec<usize> = cluster.cpus.as_ref()?.numbers().iter().copied().filter(|cpu| usable.contains(cpu)).collect();
            (!cpus.is_empty()).then(|| (cluster.name.clone(), cpus))
        };
        let mut clusters: Vec<Cores> = clusters.iter().filter_map(cores).collect();
        if clusters.is_empty() {
            clusters = vec![("all".to_owned(), usable.to_vec())];
        }
        let mut places: Vec<Vec<(&str, &[usize])>> = Vec::new();
        // Every set of clusters as a whole, all of them first: the default.
        for set in (1_u32..1 << clusters.len()).rev() {
            let members = clusters.iter().enumerate().filter(|(place, _)| set >> place & 1 == 1);
            places.push(members.map(|(_, (name, cpus))| (&**name, &**cpus)).collect());
        }
        places.sort_by_key(|place| std::cmp::Reverse(place.len()));
        for (name, cpus) in clusters.iter().filter(|_| vary_threads) {
            places.extend(counts(cpus.len()).into_iter().map(|count| vec![(&**name, &cpus[..count])]));
        }
        // What remains to choose beside a device that searches alone is the CPU that waits for it.
        let waiting: Vec<Vec<(&str, &[usize])>> = clusters.iter().map(|(name, cpus)| vec![(&**name, &cpus[..1])]).collect();
        let policies: Vec<Option<&String>> = if policies.is_empty() { vec![None] } else { policies.iter().map(Some).collect() };
        let mut choices = Vec::new();
        for policy in policies {
            for &(device, is_alone) in devices {
                for place in if is_alone { &waiting } else { &places } {
                    let cpus: Vec<usize> = place.iter().flat_map(|(_, cpus)| *cpus).copied().collect();
                    let words: Vec<String> = place.iter().map(|(name, cpus)| format!("{} {name}", cpus.len())).collect();
                    let device_words = match device {
                        "cpu" => None,
                        "auto" => Some("GPU".to_owned()),
                        named if is_alone => Some(format!("{named} alone")),
                        named => Some(named.to_owned()),
                    };
                    let with = device_words.iter().chain(policy).fold(String::new(), |words, word| words + ", " + word);
                    let is_used = |domain: &Domain| match domain.cpus.is_empty() {
                        true => device != "cpu" || is_memory(&domain.name),
                        false => domain.cpus.iter().any(|cpu| cpus.contains(cpu)),
                    };
                    let used = domains.iter().enumerate().filter(|(_, domain)| is_used(domain)).map(|(place, _)| place).collect();
                    choices.push(Choice {
                        name: words.join(" + ") + &with,
                        cpus: CpuList::from_numbers(cpus).unwrap_or_default(),
                        device: device.to_owned(),
                        policy: policy.cloned(),
                        domains: used,
                    });
                }
            }
        }
        Self { choices, domains }
    }

    /// Number of points of the grid.
    pub fn grid(&self) -> u64 {
        self.choices.iter().map(|choice| choice.domains.iter().map(|&domain| self.steps(domain) as u64).product::<u64>()).sum()
    }

    /// Number of frequencies of a domain.
    pub fn steps(&self, domain: usize) -> usize {
        self.domains[domain].steps_khz.len()
    }

    /// The spot of the default: all CPUs, the first device and policy, clocks as they were found.
    pub fn default_spot() -> Spot {
        Spot { choice: 0, steps: Vec::new() }
    }

    /// What runs at `spot`.
    pub fn point(&self, spot: &Spot) -> OperatingPoint {
        let choice = &self.choices[spot.choice];
        let clocks = choice.domains.iter().zip(&spot.steps).map(|(&domain, &step)| (&self.domains[domain], step));
        let clocks_khz: BTreeMap<String, u64> = clocks.map(|(domain, step)| (domain.name.clone(), domain.steps_khz[step])).collect();
        let at = |(name, khz): (&String, &u64)| match clocks_khz.len() {
            1 => format!("{} MHz", khz / 1000),
            _ => format!("{name} {} MHz", khz / 1000),
        };
        let clocks: Vec<String> = clocks_khz.iter().map(at).collect();
        let clocks = if clocks.is_empty() { String::new() } else { format!(" at {}", clocks.join(", ")) };
        OperatingPoint {
            name: choice.name.clone() + &clocks,
            cpus: choice.cpus.clone(),
            device: choice.device.clone(),
            policy: choice.policy.clone(),
            clocks_khz,
        }
    }

    /// The spot of `point`, where the axes have it: that of an earlier run of the same sweep.
    pub fn spot(&self, point: &OperatingPoint) -> Option<Spot> {
        let is_of = |choice: &Choice| (&choice.cpus, &choice.device, &choice.policy) == (&point.cpus, &point.device, &point.policy);
        let choice = self.choices.iter().position(is_of)?;
        if point.clocks_khz.is_empty() {
            return Some(Spot { choice, steps: Vec::new() });
        }
        let step = |&domain: &usize| {
            let domain = &self.domains[domain];
            domain.steps_khz.iter().position(|khz| point.clocks_khz.get(&domain.name) == Some(khz))
        };
        let steps: Option<Vec<usize>> = self.choices[choice].domains.iter().map(step).collect();
        Some(Spot { choice, steps: steps? })
    }
}

/// Numbers of threads below `cpus`: all up to four, then powers of two.
fn counts(cpus: usize) -> Vec<usize> {
    (1..cpus).filter(|count| *count <= 4 || count.is_power_of_two()).rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(name: &str, cpus: &str) -> Cluster {
        Cluster { name: name.into(), cores: 4, core_type: None, max_mhz: None, cpus: Some(cpus.parse().unwrap()), capacity: None }
    }

    #[test]
    fn clusters_run_alone_together_and_with_fewer_threads() {
        let clusters = [cluster("little", "0-3"), cluster("big", "4-7")];
        let usable: Vec<usize> = (0..8).collect();
        let axes = Axes::new(&clusters, &usable, Vec::new(), &[("cpu", false)], &[], true);
        let names: Vec<&str> = axes.choices.iter().map(|choice| &*choice.name).collect();
        let whole = ["4 little + 4 big", "4 big", "4 little"];
        assert_eq!(names[..3], whole);
        assert_eq!(names[3..], ["3 little", "2 little", "1 little", "3 big", "2 big", "1 big"]);
        assert_eq!(axes.choices[6].cpus.to_string(), "4-6");
        let few = Axes::new(&clusters, &[0, 1, 5], Vec::new(), &[("cpu", false), ("gpu", false)], &["tc".into()], false);
        let names: Vec<&str> = few.choices.iter().map(|choice| &*choice.name).collect();
        assert_eq!(names[..4], ["2 little + 1 big, tc", "1 big, tc", "2 little, tc", "2 little + 1 big, gpu, tc"]);
        let alone = Axes::new(&clusters, &usable, Vec::new(), &[("auto", false), ("gpu", true), ("cpu", false)], &[], true);
        let names: Vec<&str> = alone.choices.iter().map(|choice| &*choice.name).collect();
        assert_eq!(names[..2], ["4 little + 4 big, GPU", "4 big, GPU"]);
        let gpu: Vec<&str> = names.iter().filter(|name| name.contains("alone")).copied().collect();
        assert_eq!(gpu, ["1 little, gpu alone", "1 big, gpu alone"]);
        assert_eq!(Axes::new(&[], &[0, 1], Vec::new(), &[("cpu", false)], &[], true).choices.len(), 2);
    }
}
