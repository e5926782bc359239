//! Enterprise's direction rules (Liu and Huang, Enterprise: breadth-first graph traversal on GPUs, SC 2015).
//!
//! The paper: bottom-up at the levels whose frontier holds more than 30 % (gamma) of all hub vertices (SURF 2022, section 2.2 and
//! algorithm 6: decided anew at every level; a hub has more arcs than the mean). The released code (iHeartGraph/Enterprise) knows no
//! hubs there: from the first level after the root's on whose frontier has 30 % of all arcs it is bottom-up, to the end.

use super::planner::Memory;
use crate::bfs::LevelStats;

/// Gamma of the paper: share of all hubs.
pub const DEFAULT_GAMMA: f64 = 0.3;

/// Share of all arcs in the released code.
pub const DEFAULT_EDGE_SHARE: f64 = 0.3;

/// The paper's rule. A graph without hubs, or a frontier of which nothing is known, is none that holds many.
pub(super) fn bottom_up(gamma: f64, stats: &LevelStats) -> bool {
    stats.sampled_hubs.is_some_and(|hubs| f64::from(hubs) > gamma)
}

/// The released code's rule.
pub(super) fn released_bottom_up(share: f64, memory: Memory, stats: &LevelStats) -> bool {
    memory.was_bottom_up || (stats.level > 0 && stats.frontier_edges as f64 / stats.arcs as f64 >= share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_asks_for_more_than_gamma_of_the_hubs() {
        let with = |hubs| LevelStats { level: 2, sampled_hubs: hubs, ..LevelStats::default() };
        // 31 and 29 of 100 hubs; exactly half by a gamma of one half.
        assert!(bottom_up(DEFAULT_GAMMA, &with(Some(0.31))) && !bottom_up(DEFAULT_GAMMA, &with(Some(0.29))));
        assert!(!bottom_up(0.5, &with(Some(0.5))));
        assert!(!bottom_up(DEFAULT_GAMMA, &with(None)));
    }

    #[test]
    fn the_release_turns_once_at_its_share_of_the_arcs() {
        let with = |level, frontier_edges| LevelStats { level, arcs: 1000, frontier_edges, ..LevelStats::default() };
        let at = |was, level, edges| {
            released_bottom_up(DEFAULT_EDGE_SHARE, Memory { was_bottom_up: was, been_bottom_up: was }, &with(level, edges))
        };
        // 30 % of 1000.
        assert!(!at(false, 1, 299) && at(false, 1, 300));
        assert!(!at(false, 0, 900), "never at the root");
        assert!(at(true, 5, 1), "and stays");
    }
}
