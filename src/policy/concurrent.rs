//! Concurrent: above a threshold both devices run the level, with shares that adapt until both end together (Remis 2016,
//! section 3.2, where the share is fixed).

use serde::{Deserialize, Serialize};

use super::selective::Threshold;
use crate::bfs::{Direction, LevelStats, Placement};

/// Shares stay inside this range, so that neither side is ever left without a measurement.
const LEAST: u16 = 10;
const MOST: u16 = 990;

/// When to split a level, and how at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Splitting {
    /// Top-down levels are split from this many arcs of the frontier on.
    pub top_down_from_edges: u64,
    /// Bottom-up levels are split from this many unvisited vertices on.
    pub bottom_up_from_vertices: u64,
    /// The GPU's share of the first split level, in thousandths.
    pub gpu_permille: u16,
}

impl Default for Splitting {
    /// Levels of a fraction of a millisecond and more, cut in the middle.
    fn default() -> Self {
        Self { top_down_from_edges: 256 << 10, bottom_up_from_vertices: 256 << 10, gpu_permille: 500 }
    }
}

impl Splitting {
    /// Whether a level is split.
    pub(super) fn is_split(&self, stats: &LevelStats, direction: Direction) -> bool {
        let from = match direction {
            Direction::TopDown => self.top_down_from_edges,
            Direction::BottomUp => self.bottom_up_from_vertices,
        };
        Threshold::at(from).is_gpu(super::selective::work(stats, direction), false)
    }
}

/// The GPU's share of the next split level of `direction`, where the last one had `share`: the one with which both would have
/// ended together, half way there, since no two levels are alike.
pub(super) fn adapted(share: u16, direction: Direction, stats: &LevelStats) -> u16 {
    let Some(Placement::Split { gpu_permille }) = stats.previous_placement else { return share };
    if stats.previous_direction != Some(direction) || stats.previous_cpu_ns == 0 || stats.previous_gpu_ns == 0 {
        return share;
    }
    let gpu_speed = f64::from(gpu_permille) / stats.previous_gpu_ns as f64;
    let cpu_speed = f64::from(1000 - gpu_permille.min(1000)) / stats.previous_cpu_ns as f64;
    let even = 1000.0 * gpu_speed / (gpu_speed + cpu_speed).max(f64::MIN_POSITIVE);
    (((even + f64::from(share)) / 2.0) as u16).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(share: u16, cpu: u64, gpu: u64) -> LevelStats {
        LevelStats {
            level: 3,
            vertices: 1000,
            arcs: 10_000,
            frontier_vertices: 100,
            frontier_edges: 3000,
            unvisited_vertices: 500,
            unvisited_edges: 5000,
            previous_frontier_vertices: 10,
            previous_direction: Some(Direction::TopDown),
            previous_placement: Some(Placement::Split { gpu_permille: share }),
            previous_cpu_ns: cpu,
            previous_gpu_ns: gpu,
            sampled_probes: None,
            ..LevelStats::default()
        }
    }

    #[test]
    fn shares_move_to_where_both_end_together() {
        let adapt = |share, cpu, gpu| adapted(share, Direction::TopDown, &stats(share, cpu, gpu));
        assert_eq!(adapt(500, 1000, 1000), 500);
        // The GPU took three times as long for half of the work: a quarter would have been even, half way is 375.
        assert_eq!(adapt(500, 1000, 3000), 375);
        assert_eq!(adapt(500, 3000, 1000), 625);
        assert_eq!(adapt(10, 1, 1_000_000), LEAST);
        // Nothing was measured, or of the other direction.
        assert_eq!(adapt(300, 0, 10), 300);
        assert_eq!(adapted(300, Direction::BottomUp, &stats(500, 1000, 3000)), 300);
        // Over and over, it gets there: a GPU of half the CPU's speed ends with a third.
        let mut share = 500;
        for _ in 0..12 {
            share = adapt(share, u64::from(1000 - share) * 10, u64::from(share) * 20);
        }
        assert!((325..=340).contains(&share), "{share}");
    }

    #[test]
    fn work_decides_what_is_split() {
        let splitting = Splitting { top_down_from_edges: 3000, bottom_up_from_vertices: 501, gpu_permille: 500 };
        assert!(splitting.is_split(&stats(500, 1, 1), Direction::TopDown));
        assert!(!splitting.is_split(&stats(500, 1, 1), Direction::BottomUp));
    }
}
