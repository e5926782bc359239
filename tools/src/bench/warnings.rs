//! Possible disturbances of a run, each with advice.

use std::collections::BTreeSet;

use crate::record::{ClusterRoot, Environment, OUTLIER_FACTOR, QUIET, Record, RootRecord, Summary};
use socbfs::{stats::RateSummary, words::mteps};

/// Share of the CPUs above which the load before the run means that the machine was busy.
const BUSY_SHARE: f64 = 0.5;

/// Share of the time above which waiting means that there are too many ranks for the graph.
const WAITING_SHARE: f64 = 0.5;

/// A root lies in a small component if it reaches less than this share of the edges that the median search reaches.
const SMALL_SHARE: f64 = 0.01;

/// Small components decide the harmonic mean if it is this many times as high without them.
const DECISIVE: f64 = 1.1;

/// Most roots that a warning names.
const MOST_NAMED: usize = 4;

/// The warnings about `record`, in order of importance.
pub fn warnings(record: &Record) -> Vec<String> {
    let mut all = of_machine(&record.environment, record.search.threads, &record.search.cpus);
    all.extend([few_roots(record), waiting(record), green(record)].into_iter().flatten());
    if let Some(summary) = &record.summary {
        all.extend(small_components(&record.roots, summary));
        all.extend(outliers(record, summary));
    }
    all
}

/// The warnings about the build and the machine, whatever is measured on `threads` threads. `cpus`: the CPU of each (empty: not bound).
pub fn of_machine(environment: &Environment, threads: usize, cpus: &[usize]) -> Vec<String> {
    let turns = take_turns(threads, cpus, environment.cpu.usable);
    [unoptimised(environment), turns, busy(environment), governor(environment), huge_pages(environment)].into_iter().flatten().collect()
}

fn unoptimised(environment: &Environment) -> Option<String> {
    (environment.build.opt_level == "0")
        .then(|| "this is a debug build, many times slower than it could be: run it with `cargo run --release --`".to_owned())
}

fn green(record: &Record) -> Option<String> {
    record.energy.green.as_ref().map(|_| {
        "Green Graph500 lists a machine only if it is at least as fast as the slowest of that year's Graph500 list; this run does not compare"
            .to_owned()
    })
}

fn few_roots(record: &Record) -> Option<String> {
    let (asked, found) = (record.roots_asked, record.roots.len());
    let why = if record.complete { "the graph has no more vertices with an edge" } else { "the run did not end" };
    (record.valid && found < asked).then(|| format!("{found} roots instead of {asked}: {why}; the spread is less certain"))
}

/// `bound`: the CPU of each thread (empty: not bound).
fn take_turns(threads: usize, bound: &[usize], usable: usize) -> Option<String> {
    let bound: BTreeSet<usize> = bound.iter().copied().collect();
    let usable = if bound.is_empty() { usable } else { bound.len() };
    (threads > usable).then(|| {
        format!("{threads} threads on {usable} CPUs take turns, and a level waits for the slowest: use --threads {usable} or fewer")
    })
}

fn busy(environment: &Environment) -> Option<String> {
    let load = environment.load?;
    (load > BUSY_SHARE * environment.cpu.usable as f64)
        .then(|| format!("the machine was busy before the run (load {load:.2}): end other programs and run again"))
}

fn governor(environment: &Environment) -> Option<String> {
    let slow: Vec<&str> = environment.cpu.governors.iter().map(String::as_str).filter(|governor| *governor != "performance").collect();
    (!slow.is_empty()).then(|| {
        format!(
            "frequency governor {}: clocks may change during the run; `cpupower frequency-set -g performance` (as root) fixes them",
            slow.join(", ")
        )
    })
}

fn huge_pages(environment: &Environment) -> Option<String> {
    (environment.system.huge_pages.as_deref() == Some("never")).then(|| {
        "huge pages are off, random access is slower: `echo madvise > /sys/kernel/mm/transparent_hugepage/enabled` (as root) turns them on"
            .to_owned()
    })
}

fn waiting(record: &Record) -> Option<String> {
    // A search that failed validation has no time.
    let cluster = record.cluster.as_ref().filter(|_| record.valid)?;
    let seconds = record.roots.iter().filter_map(|root| root.seconds).sum();
    // (The traffic of a deep search has fewer entries than levels: the last one sums up the rest.)
    let levels = record.roots.iter().map(|root| u64::from(root.levels)).sum::<u64>() as f64 / record.roots.len() as f64;
    waits_too_long(&cluster.roots, levels, seconds)
}

/// `levels`: the mean number of levels of a search. `seconds`: the time of all searches together.
fn waits_too_long(roots: &[ClusterRoot], levels: f64, seconds: f64) -> Option<String> {
    let waited = roots.iter().map(|root| root.wait_ns).sum::<u64>() as f64 * 1e-9;
    (waited > WAITING_SHARE * seconds).then(|| {
        format!(
            "the ranks waited {:.0} % of the time for each other and the network: a search exchanges after each of its {levels:.0} levels; one board may be faster, so run it without mpirun and compare",
            100.0 * waited / seconds
        )
    })
}

/// A search in a small component takes much time per edge. The harmonic mean, which Graph500 asks for, counts it as much as any other.
fn small_components(roots: &[RootRecord], summary: &Summary) -> Option<String> {
    let (small, others): (Vec<&RootRecord>, Vec<&RootRecord>) =
        roots.iter().partition(|root| (root.edges as f64) < SMALL_SHARE * summary.edges.median);
    let rate = |root: &&RootRecord| Some((root.seconds.filter(|&seconds| seconds > 0.0)?, root.edges as f64));
    let without = RateSummary::of(others.iter().filter_map(rate))?.harmonic_mean;
    if small.is_empty() || without < DECISIVE * summary.teps.harmonic_mean {
        return None;
    }
    let mut named: Vec<String> = small.iter().take(MOST_NAMED).map(|root| root.root.to_string()).collect();
    if small.len() > MOST_NAMED {
        named.push("...".to_owned());
    }
    let verbs = if small.len() == 1 { ["reaches", "lowers"] } else { ["reach", "lower"] };
    Some(format!(
        "{} of {} roots ({}) {} less than 1 % of the edges that the median search reaches, and {} the harmonic mean from {} to {}: compare \
         median searches, here {}, or search a larger graph, where such roots are rarer; more roots (--roots) make the mean steadier",
        small.len(),
        roots.len(),
        named.join(", "),
        verbs[0],
        verbs[1],
        mteps(without),
        mteps(summary.teps.harmonic_mean),
        mteps(summary.teps.median),
    ))
}

/// Compares only searches that traversed about as many edges as the median search: a search in a small component is quick.
fn outliers(record: &Record, summary: &Summary) -> Option<String> {
    let comparable = |edges: u64| (edges as f64 - summary.edges.median).abs() <= 0.1 * summary.edges.median;
    let limit = OUTLIER_FACTOR * summary.seconds.median;
    let slow = record.roots.iter().filter(|root| comparable(root.edges) && root.seconds.is_some_and(|seconds| seconds > limit)).count();
    (slow > 0).then(|| {
        format!("{slow} of {} searches took more than {OUTLIER_FACTOR} times the median: the machine is noisy; {QUIET}", record.roots.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ValidationRecord;

    /// The warning about ten searches of 1 ms, of which the first `small` reach few edges instead.
    fn with_small(small: u32, edges: u64, seconds: f64) -> Option<String> {
        let root = |root: u32| {
            let (edges, seconds) = if root < small { (edges, seconds) } else { (16_775_818, 0.001) };
            RootRecord {
                root,
                sources: 1,
                reached: 2,
                levels: 2,
                edges,
                seconds: Some(seconds),
                mapping_seconds: Some(0.0),
                validation: ValidationRecord { passed: true, violation: None, seconds: 0.5 },
                level_records: Vec::new(),
            }
        };
        let roots: Vec<RootRecord> = (0..10).map(root).collect();
        small_components(&roots, &Summary::new(&roots, 16_775_900)?)
    }

    #[test]
    fn small_components_that_decide_the_harmonic_mean_give_a_warning() {
        // A search of the whole graph has 16,776 MTEPS. One of a single edge in 4 us has 0.25 MTEPS.
        let one = with_small(1, 1, 4e-6).unwrap_or_default();
        for part in
            ["1 of 10 roots (0) reaches less than 1 % of", "lowers the harmonic mean from 16,776 MTEPS to 2.500 MTEPS", "here 16,776"]
        {
            assert!(one.contains(part), "{part} in {one}");
        }
        assert!(with_small(3, 1, 4e-6).unwrap_or_default().contains("3 of 10 roots (0, 1, 2) reach less"));
        assert!(with_small(5, 1, 4e-6).unwrap_or_default().contains("5 of 10 roots (0, 1, 2, 3, ...) reach less"));
        // If most roots are in small components, the median search is one of them.
        assert_eq!(with_small(6, 1, 4e-6), None);
        assert_eq!(with_small(0, 1, 4e-6), None);
        // A small component with about as much time per edge as the others changes nothing.
        assert_eq!(with_small(1, 100_000, 6e-6), None);
    }

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
        assert_eq!(waits_too_long(&[], 1.0, 0.0), None);
        assert_eq!(waits_too_long(&[root(400_000_000), root(500_000_000)], 7.0, 2.0), None);
        let text = waits_too_long(&[root(1_000_000_000), root(600_000_000)], 6000.0, 2.0).unwrap_or_default();
        assert!(text.contains("waited 80 %") && text.contains("its 6000 levels"), "{text}");
    }
}
