//! Possible disturbances of a run, each with advice.

use std::collections::BTreeSet;

use super::{Build, ClusterRoot, Record, Summary};

/// A search is an outlier if it takes this many times the median of comparable searches.
const OUTLIER_FACTOR: f64 = 2.0;

/// Share of the CPUs above which the load before the run means that the machine was busy.
const BUSY_SHARE: f64 = 0.5;

/// Share of the time above which waiting means that there are too many ranks for the graph.
const WAITING_SHARE: f64 = 0.5;

/// The warnings about `record`, in order of importance.
pub fn warnings(record: &Record) -> Vec<String> {
    let found = [
        unoptimised(record),
        few_roots(record),
        too_many_threads(record),
        busy(record),
        governor(record),
        huge_pages(record),
        waiting(record),
    ];
    let mut all: Vec<String> = found.into_iter().flatten().collect();
    if let Some(summary) = &record.summary {
        all.extend(outliers(record, summary));
    }
    all
}

fn unoptimised(record: &Record) -> Option<String> {
    let Build { opt_level, .. } = record.environment.build;
    (opt_level == "0")
        .then(|| "this is a debug build, many times slower than it could be: run it with `cargo run --release -- bench`".to_owned())
}

fn few_roots(record: &Record) -> Option<String> {
    let (asked, found) = (record.roots_asked, record.roots.len());
    (record.valid && found < asked)
        .then(|| format!("{found} roots instead of {asked}: the graph has no more vertices with an edge; the spread is less certain"))
}

fn too_many_threads(record: &Record) -> Option<String> {
    take_turns(record.search.threads, &record.search.cpus, record.environment.cpu.usable)
}

/// `bound`: the CPU of each thread (empty: not bound).
fn take_turns(threads: usize, bound: &[usize], usable: usize) -> Option<String> {
    let bound: BTreeSet<usize> = bound.iter().copied().collect();
    let usable = if bound.is_empty() { usable } else { bound.len() };
    (threads > usable).then(|| {
        format!("{threads} threads on {usable} CPUs take turns, and a level waits for the slowest: use --threads {usable} or fewer")
    })
}

fn busy(record: &Record) -> Option<String> {
    let load = record.environment.load?;
    (load > BUSY_SHARE * record.environment.cpu.usable as f64)
        .then(|| format!("the machine was busy before the run (load {load:.2}): end other programs and run again"))
}

fn governor(record: &Record) -> Option<String> {
    let slow: Vec<&str> =
        record.environment.cpu.governors.iter().map(String::as_str).filter(|governor| *governor != "performance").collect();
    (!slow.is_empty()).then(|| {
        format!(
            "frequency governor {}: clocks may change during the run; `cpupower frequency-set -g performance` (as root) fixes them",
            slow.join(", ")
        )
    })
}

fn huge_pages(record: &Record) -> Option<String> {
    (record.environment.system.huge_pages.as_deref() == Some("never")).then(|| {
        "huge pages are off, random access is slower: `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` (as root) turns them on"
            .to_owned()
    })
}

fn waiting(record: &Record) -> Option<String> {
    let seconds = record.roots.iter().filter_map(|root| root.seconds).sum();
    waits_too_long(&record.cluster.as_ref()?.roots, seconds)
}

/// `seconds`: the time of all searches together.
fn waits_too_long(roots: &[ClusterRoot], seconds: f64) -> Option<String> {
    let waited = roots.iter().map(|root| root.wait_ns).sum::<u64>() as f64 * 1e-9;
    let levels = roots.iter().map(|root| root.levels.len()).sum::<usize>() as f64 / roots.len() as f64;
    (waited > WAITING_SHARE * seconds).then(|| {
        format!(
            "the ranks waited {:.0} % of the time for each other and the network: a search exchanges after each of its {levels:.0} levels; one board may be faster, so run it without mpirun and compare",
            100.0 * waited / seconds
        )
    })
}

/// Compares only searches that traversed about as many edges as the median search: a search in a small component is quick.
fn outliers(record: &Record, summary: &Summary) -> Option<String> {
    let comparable = |edges: u64| (edges as f64 - summary.edges.median).abs() <= 0.1 * summary.edges.median;
    let limit = OUTLIER_FACTOR * summary.seconds.median;
    let slow = record.roots.iter().filter(|root| comparable(root.edges) && root.seconds.is_some_and(|seconds| seconds > limit)).count();
    (slow > 0).then(|| {
        format!(
            "{slow} of {} searches took more than {OUTLIER_FACTOR} times the median: the machine is noisy; end other programs, fix the clocks, bind threads with --cpus, and run again",
            record.roots.len()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_threads_than_cpus_give_a_warning() {
        assert_eq!(take_turns(2, &[], 2), None);
        assert_eq!(take_turns(2, &[4, 5], 8), None);
        for (threads, bound, cpus) in [(3, &[][..], 2), (3, &[4, 5], 2), (2, &[4, 4], 1)] {
            let text = take_turns(threads, bound, 2).unwrap_or_default();
            assert!(text.contains(&format!("--threads {cpus} or fewer")), "{text}");
        }
    }

    #[test]
    fn long_waits_of_ranks_give_a_warning() {
        let root = |wait_ns| ClusterRoot { received_most: 0, sent: 0, wait_ns, levels: Vec::new() };
        assert_eq!(waits_too_long(&[], 0.0), None);
        assert_eq!(waits_too_long(&[root(400_000_000), root(500_000_000)], 2.0), None);
        let text = waits_too_long(&[root(1_000_000_000), root(600_000_000)], 2.0).unwrap_or_default();
        assert!(text.contains("waited 80 %"), "{text}");
    }
}
