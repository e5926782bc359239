//! What may have disturbed a run, each with advice.

use super::{Build, Record, Summary};

/// A search this many times slower than the median of comparable searches was disturbed, not difficult.
const OUTLIER_FACTOR: f64 = 2.0;

/// Load above this share of the CPUs before the run says that something else is running.
const BUSY_SHARE: f64 = 0.5;

/// The warnings that `record` deserves, in order of importance.
pub fn warnings(record: &Record) -> Vec<String> {
    let found = [unoptimised(record), few_roots(record), too_many_threads(record), busy(record), governor(record), huge_pages(record)];
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
    let (threads, usable) = (record.search.threads, record.environment.cpu.usable);
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

/// Only searches that traversed about as much as the median one can be compared: a root in a small component is quick.
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
