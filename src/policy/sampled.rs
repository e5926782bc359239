//! Direction by comparing two costs, one of them sampled.
//!
//! Beamer's rule compares edges with edges, as if an unvisited vertex looked at its whole list. How many neighbours it
//! really looks at depends on the graph and on the level, and a few dozen vertices tell. Costs are in units of one
//! top-down edge.

use crate::bfs::{Direction, LevelStats};

/// Bottom-up, cost of a word of 64 vertices that is looked at at all.
const WORD: f64 = 0.5;
/// Bottom-up, cost of one unvisited vertex: its share of the columns of first neighbours.
const VERTEX: f64 = 0.25;
/// Bottom-up, cost of each neighbour looked at.
const PROBE: f64 = 0.35;
/// Below this share of top-down cost in the cheapest bottom-up level possible, no sample is worth its time.
const HOPELESS: f64 = 1.0;

/// What a bottom-up level costs at least: every word, every unvisited vertex, one neighbour each.
fn least_bottom_up(stats: &LevelStats) -> f64 {
    let words = stats.vertices as f64 / 64.0;
    WORD * words + (VERTEX + PROBE) * stats.unvisited_vertices as f64
}

/// Whether the decision is open: top-down costs more than the best bottom-up level could.
pub(super) fn wants_sample(stats: &LevelStats) -> bool {
    stats.frontier_edges as f64 > HOPELESS * least_bottom_up(stats)
}

/// Decides.
pub(super) fn bottom_up(stats: &LevelStats) -> bool {
    let top_down = stats.frontier_edges as f64;
    let Some(probes) = stats.sampled_probes else {
        // Nothing was sampled: either the decision was clear, or nobody is left unvisited.
        return stats.previous_direction == Some(Direction::BottomUp) && top_down > least_bottom_up(stats);
    };
    let words = stats.vertices as f64 / 64.0;
    WORD * words + (VERTEX + PROBE * f64::from(probes)) * (stats.unvisited_vertices as f64) < top_down
}
