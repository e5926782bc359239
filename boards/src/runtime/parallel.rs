//! The least amounts of work for which threads share a level on this machine, by the size of the processor's cache.

use std::path::Path;

use super::Runtime;
use crate::board::CpuList;
use socbfs::ParallelThresholds;
use socbfs_machine::{Cache, caches};

impl Runtime {
    /// The thresholds of a search.
    pub(super) fn parallel(&self) -> ParallelThresholds {
        let cpus = self.cpus.value.numbers();
        // Clusters of big and little cores have caches of different sizes, so read the caches of the team's first CPU.
        let first = cpus.first().copied().unwrap_or(0);
        let caches = caches(&Path::new("/sys/devices/system/cpu").join(format!("cpu{first}/cache")));
        by_caches(&caches, self.team().value, cpus)
    }
}

/// The thresholds by the `caches` of a CPU, for a team of `threads` (0: one for every CPU) bound to `cpus` (empty: to none).
fn by_caches(caches: &[Cache], threads: usize, cpus: &[usize]) -> ParallelThresholds {
    let second = caches.iter().find(|cache| cache.level == 2);
    let sharers = second.and_then(|cache| cache.shared_by.as_deref()?.parse::<CpuList>().ok());
    let shared = sharers.is_some_and(|list| {
        let list = list.numbers();
        if cpus.is_empty() {
            // A cache that only the threads of one core share does not count if the team also has threads on other cores.
            let all = std::thread::available_parallelism().map_or(1, usize::from);
            list.len() > 1 && list.len() >= if threads == 0 { all } else { threads.min(all) }
        } else {
            let used = &cpus[..if threads == 0 { cpus.len() } else { threads.min(cpus.len()) }];
            used.len() > 1 && used.iter().all(|cpu| list.contains(cpu))
        }
    });
    ParallelThresholds::for_cache(second.map(|cache| cache.bytes), shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_and_private_second_level_caches_are_distinguished() {
        let caches = |bytes, shared_by: &str| {
            let of = |level, bytes| Cache { level, kind: "Unified".into(), bytes, shared_by: Some(shared_by.into()) };
            vec![of(1, 32 << 10), of(2, bytes)]
        };
        let hubs = |caches: &[Cache], cpus: &[usize]| by_caches(caches, cpus.len(), cpus).hub_arcs;
        // Four Cortex-A53, and the same team with two of its threads on another cluster.
        let a53 = caches(512 << 10, "0-3");
        assert_eq!(hubs(&a53, &[0, 1, 2, 3]), 64 << 10);
        assert_eq!(hubs(&a53, &[0, 1, 4, 5]), 1 << 20);
        // Two threads although four CPUs are named, and the big cluster of the Odroid-XU4.
        assert_eq!(by_caches(&a53, 2, &[0, 1, 4, 5]).hub_arcs, 64 << 10);
        assert_eq!(hubs(&caches(2 << 20, "4-7"), &[4, 5, 6, 7]), 64 << 10);
        // Two cores with a cache each, and two threads of one core.
        assert_eq!(hubs(&caches(1 << 20, "0"), &[0, 1]), 2 << 20);
        assert_eq!(hubs(&caches(1 << 20, "0-1"), &[0, 1]), 64 << 10);
        assert_eq!(hubs(&[], &[0, 1]), ParallelThresholds::default().hub_arcs);
        assert_eq!(by_caches(&caches(512 << 10, "0"), 0, &[]).hub_arcs, 1 << 20);
    }
}
