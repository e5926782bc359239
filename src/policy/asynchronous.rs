//! Asynchronous: from one level on both devices search to the end, each by itself (Remis 2016, section 3.3).

use serde::{Deserialize, Serialize};

use crate::bfs::LevelStats;

/// When the searches part, and how the frontier is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parting {
    /// At the first level whose frontier has at least this many arcs.
    pub from_edges: u64,
    /// The GPU's share of its arcs, in thousandths.
    pub gpu_permille: u16,
}

impl Default for Parting {
    /// The thesis parts after a quarter of the graph at most, since what comes later is done twice less often; a frontier of
    /// some thousand arcs is there a level or two before.
    fn default() -> Self {
        Self { from_edges: 4096, gpu_permille: 500 }
    }
}

impl Parting {
    /// Whether the searches part at this level.
    pub(super) fn is_now(&self, stats: &LevelStats) -> bool {
        stats.frontier_edges >= self.from_edges && stats.frontier_vertices > 1
    }
}
