//! Work that a level does beyond finding its vertices (Remis 2016, figure 2.3), top-down and bottom-up.

use crate::record::{ExactLevel, Redundant, RedundantLevel};

/// The redundant work of `levels`.
pub fn redundant(levels: &[ExactLevel]) -> Redundant {
    let excess = |level: &ExactLevel| (level.arcs > 0).then(|| (level.arcs - level.discovering) as f64 / level.arcs as f64);
    Redundant { levels: levels.iter().map(|level| RedundantLevel { counts: *level, excess: excess(level) }).collect() }
}
