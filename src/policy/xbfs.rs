//! XBFS's direction rule (Gaihre, Wu, Yao and Liu, XBFS, HPDC 2019; the released code, hpda-lab/XBFS, is run with 0.1).
//!
//! Bottom-up at every level whose frontier has at least a tenth of all arcs, the root's included; top-down at all others.

use crate::bfs::LevelStats;

/// Share of all arcs from which a level is bottom-up.
pub const DEFAULT_RATIO: f64 = 0.1;

pub(super) fn bottom_up(ratio: f64, stats: &LevelStats) -> bool {
    stats.frontier_edges as f64 / stats.arcs as f64 >= ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_arcs_decides_at_every_level() {
        let at =
            |level, frontier_edges| bottom_up(DEFAULT_RATIO, &LevelStats { level, arcs: 5000, frontier_edges, ..LevelStats::default() });
        // 5000 / 10 = 500.
        assert!(!at(3, 499) && at(3, 500) && at(4, 5000) && !at(5, 10));
        assert!(at(0, 500), "a root with a tenth of the arcs");
    }
}
