//! Searches that measure before a first search, and the time of their levels.

use std::time::Duration;

use socbfs::{
    bfs::{LevelRecord, LevelStats},
    graph::{NONE, Vertex},
    search::{Search, SearchError},
};
use socbfs_policy::{LevelDevice, Policy, expected_probes};

/// Number of roots besides the one with most edges for a measurement on a device.
pub(super) const ROOTS: usize = 3;

/// Searches from each root by each policy. The policies take turns, so that other load disturbs all of them; the fastest search counts.
const TURNS: usize = 3;

/// A policy that took more than this many times as long as the fastest one is not measured again: on roads, a handover at each level takes
/// a hundred times as long as the search.
const LOST: u32 = 4;

/// The vertex with most edges, and up to `others` that have edges, spread over the vertices.
pub(super) fn roots(search: &Search<'_>, others: usize) -> Vec<Vertex> {
    let degrees = search.layout().input_degrees();
    let most = (0..degrees.len()).max_by_key(|&v| degrees[v]);
    let step = (degrees.len() / others).max(1);
    let spread =
        (0..others).filter_map(|i| (i * step..degrees.len()).find(|&v| degrees[v] > 0 && search.layout().to_internal(v as Vertex) != NONE));
    let mut roots: Vec<Vertex> = most.into_iter().chain(spread).map(|v| v as Vertex).collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}

/// The fastest search from this root by each policy: its time and its records.
pub(super) fn fastest(
    search: &mut Search<'_>,
    kinds: &[(Policy, LevelDevice)],
    root: Vertex,
) -> Result<Vec<(Duration, Vec<LevelRecord>)>, SearchError> {
    let mut best = vec![(Duration::MAX, Vec::new()); kinds.len()];
    // The first search by each policy is a warm-up: pages, caches, kernels that a driver finishes at their first launch.
    for turn in 0..=TURNS {
        let least = best.iter().map(|best| best.0).min().unwrap_or(Duration::MAX);
        for ((policy, runs), best) in kinds.iter().zip(&mut best) {
            if turn > 1 && best.0 > least.saturating_mul(LOST) {
                continue;
            }
            search.set_planner(policy.clone().on(*runs))?;
            let elapsed = search.run(root)?.elapsed;
            if turn > 0 && elapsed < best.0 {
                *best = (elapsed, search.records().to_vec());
            }
        }
    }
    Ok(best)
}

/// The records whose time is that of their level alone: that of level 0 includes the reset of the state.
pub(super) fn timed(records: &[LevelRecord]) -> impl Iterator<Item = &LevelRecord> {
    records.iter().filter(|record| record.stats.level > 0)
}

/// The measured time of levels in one direction, and their time by the costs of `sampled`, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Took {
    ns: f64,
    should_ns: f64,
}

impl Took {
    pub(super) fn add(&mut self, ns: f64, should_ns: f64) {
        self.ns += ns;
        self.should_ns += should_ns;
    }

    /// The measured time over the other (`None`: there was none).
    pub(super) fn factor(self) -> Option<f64> {
        (self.ns > 0.0 && self.should_ns > 0.0).then(|| self.ns / self.should_ns)
    }
}

/// The neighbours that an unvisited vertex looks at: sampled, else expected.
pub(super) fn probes(stats: &LevelStats) -> f64 {
    let list = stats.unvisited_edges as f64 / stats.unvisited_vertices.max(1) as f64;
    stats.sampled_probes.map_or_else(|| expected_probes(stats.arcs, stats.frontier_edges, list), f64::from)
}

/// The median (`None`: there is no value).
pub(super) fn median<T: Ord + Copy>(mut values: Vec<T>) -> Option<T> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Nanoseconds of the level itself.
pub(super) fn own_ns(record: &LevelRecord) -> f64 {
    record.elapsed_ns.saturating_sub(record.conversion_ns + record.decision_ns + record.handover_ns) as f64
}
