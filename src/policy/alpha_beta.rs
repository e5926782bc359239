//! Direction by alpha and beta (Beamer, Asanović and Patterson 2012, section 5).

use super::{
    Policy,
    rule::{Known, Memory, Parameter, Rule, Value},
};
use crate::bfs::LevelStats;

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "alpha-beta",
    parameters: "ALPHA,BETA",
    summary: "direction by Beamer's rule, with GAP's 15,18",
    default: || Ok(Policy::AlphaBeta(AlphaBeta::default())),
}];

/// Bottom-up from the level at which more than 1/alpha of the unexplored edges leave the frontier, until the frontier
/// shrinks and holds fewer than 1/beta of the vertices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlphaBeta {
    /// Bottom-up when frontier edges exceed unvisited edges / alpha.
    pub alpha: f64,
    /// Top-down again when the frontier shrinks and is below vertices / beta.
    pub beta: f64,
}

impl Default for AlphaBeta {
    /// As the GAP benchmark ships them: a starting point, not an optimum.
    fn default() -> Self {
        Self { alpha: 15.0, beta: 18.0 }
    }
}

impl AlphaBeta {
    /// Alpha and beta of Beamer et al. 2012, for the policies whose papers take the rule from there.
    pub const PAPER: Self = Self { alpha: 14.0, beta: 24.0 };
}

impl Rule for AlphaBeta {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Positive(&mut self.alpha).named("alpha"), Value::Positive(&mut self.beta).named("beta")]
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &Memory) -> bool {
        if memory.was_bottom_up {
            let shrinks = stats.frontier_vertices < stats.previous_frontier_vertices;
            !(shrinks && (stats.frontier_vertices as f64) < stats.vertices as f64 / self.beta)
        } else {
            stats.frontier_edges as f64 > stats.unvisited_edges as f64 / self.alpha
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(frontier_vertices: u64, previous: u64, frontier_edges: u64, unvisited_edges: u64) -> LevelStats {
        LevelStats {
            level: 3,
            vertices: 1800,
            arcs: 30_000,
            frontier_vertices,
            frontier_edges,
            unvisited_vertices: 900,
            unvisited_edges,
            previous_frontier_vertices: previous,
            previous_direction: None,
            previous_placement: None,
            previous_cpu_ns: 0,
            previous_gpu_ns: 0,
            sampled_probes: None,
            ..LevelStats::default()
        }
    }

    fn bottom_up(was_bottom_up: bool, stats: &LevelStats) -> bool {
        AlphaBeta::default().is_bottom_up(stats, &Memory { was_bottom_up, ..Memory::default() })
    }

    #[test]
    fn turns_bottom_up_above_one_alphath_of_the_unexplored_edges() {
        assert!(!bottom_up(false, &stats(10, 1, 1000, 15_000)));
        assert!(bottom_up(false, &stats(10, 1, 1001, 15_000)));
    }

    #[test]
    fn turns_back_when_the_frontier_shrinks_below_one_betath_of_the_vertices() {
        assert!(bottom_up(true, &stats(100, 200, 5, 10)), "not below n / beta");
        assert!(!bottom_up(true, &stats(99, 200, 5, 10)));
        assert!(bottom_up(true, &stats(99, 50, 5, 10)), "the frontier grows");
    }
}
