//! Selective and Concurrent as the thesis has them (Remis 2016, sections 3.1 and 3.2): one threshold, in vertices of the frontier.
//!
//! Below the threshold the CPU runs a level, from it on the GPU (Selective), or both with fixed shares (Concurrent). For the direction
//! the thesis names one course among others: the first levels top-down, large ones in either direction, the last ones bottom-up. Large
//! ones are bottom-up here as well, which a search of a skewed graph gains most by.
//!
//! The thesis measures its threshold on each platform, and so must the reader; the default is a number to begin with, and ours. The
//! policies `selective` and `concurrent` are about the same: they measure, count work in the unit of the direction, know what handing over
//! costs, and adapt the shares.

use super::planner::Memory;
use crate::bfs::LevelStats;

/// Vertices of a frontier that is large.
pub const DEFAULT_LARGE_FRONTIER: u32 = 10_000;

/// Whether the frontier is large enough for the GPU.
pub(super) fn is_large(vertices: u32, stats: &LevelStats) -> bool {
    stats.frontier_vertices >= u64::from(vertices)
}

/// From the first large frontier on.
pub(super) fn bottom_up(vertices: u32, memory: Memory, stats: &LevelStats) -> bool {
    memory.been_bottom_up || is_large(vertices, stats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_large_frontier_ends_the_top_down_levels() {
        let with = |frontier_vertices| LevelStats { frontier_vertices, ..LevelStats::default() };
        let (never, once) = (Memory::default(), Memory { was_bottom_up: false, been_bottom_up: true });
        assert!(!is_large(100, &with(99)) && is_large(100, &with(100)));
        assert!(!bottom_up(100, never, &with(99)) && bottom_up(100, never, &with(100)) && bottom_up(100, once, &with(3)));
    }
}
