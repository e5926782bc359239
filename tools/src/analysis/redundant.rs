//! Work that a level does beyond finding its vertices (Remis 2016, figure 2.3), top-down and bottom-up.

use serde::{Deserialize, Serialize};

use super::ExactLevel;

/// The redundant work of the search from one root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Redundant {
    /// The levels in order.
    pub levels: Vec<RedundantLevel>,
}

/// One level. `arcs = discovering + repeat + backward`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RedundantLevel {
    /// The counts.
    #[serde(flatten)]
    pub counts: ExactLevel,
    /// Share of the arcs that discover nothing (`None`: the level has no arcs).
    pub excess: Option<f64>,
}

/// The redundant work of `levels`.
pub fn redundant(levels: &[ExactLevel]) -> Redundant {
    let excess = |level: &ExactLevel| (level.arcs > 0).then(|| (level.arcs - level.discovering) as f64 / level.arcs as f64);
    Redundant { levels: levels.iter().map(|level| RedundantLevel { counts: *level, excess: excess(level) }).collect() }
}
