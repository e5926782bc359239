//! Direction by alpha and beta (Beamer, Asanović and Patterson 2012, section 5), and two systems that use this rule and also decide where
//! the levels run.
//!
//! - `alpha-beta`: on the device in use.
//! - `yasui`: Yasui and Fujisawa's search (Fast and scalable NUMA-based thread parallel breadth-first search, HPCS 2015): on the CPU alone,
//!   even if there are devices. Zhang et al. 2018 (section 5.1) compare their policy with it, without its support for several memory
//!   nodes. Most of its speed comes from the layout: vertices renumbered by descending degree, those without an edge dropped, every list
//!   sorted. That is the layout of `--order degree`, which `--order auto` chooses for skewed graphs; the policy uses the layout it is
//!   given.
//! - `daga`: Daga, Nutter and Meswani's hybrid++ (Efficient breadth-first search on a heterogeneous processor, IEEE Big Data 2014), as
//!   Zhang et al. 2018 describe it (sections 1 and 5.1): top-down levels run on the CPU (TC), bottom-up levels on the GPU (BG, since hubs
//!   in local memory came with Zhang). hybrid++ has an addition for graphs whose degrees hardly differ (their searches never turn
//!   bottom-up). Zhang does not describe it, so it is not implemented here.

use super::{
    Policy, PolicyError,
    rule::{History, Known, LevelDevice, Parameter, Rule, Uses, Value},
};
use crate::bfs::{Direction, LevelStats, Placement, Strategy};

const fn known(kind: &'static str, summary: &'static str, default: fn() -> Result<Policy, PolicyError>) -> Known {
    Known { kind, parameters: "ALPHA,BETA", summary, default }
}

/// The names of the rule, in the order of [`Whose`].
pub(super) const KNOWN: &[Known] = &[
    known("alpha-beta", "direction by Beamer's rule, with GAP's 15,18", || Ok(Policy::AlphaBeta(AlphaBeta::of(Whose::Beamer)))),
    known("yasui", "Yasui's: alpha-beta on the CPU, with 14,24; its layout is --order degree", || {
        Ok(Policy::AlphaBeta(AlphaBeta::of(Whose::Yasui)))
    }),
    known("daga", "Daga's: top-down on the CPU, bottom-up on the device, with 14,24", || Ok(Policy::AlphaBeta(AlphaBeta::of(Whose::Daga)))),
];

/// The system of the rule, which says where levels run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Whose {
    /// On the device in use.
    #[default]
    Beamer,
    /// On the CPU.
    Yasui,
    /// Top-down on the CPU, bottom-up on the GPU.
    Daga,
}

/// Bottom-up from the level at which more than 1/alpha of the unexplored edges leave the frontier, until the frontier
/// shrinks and holds fewer than 1/beta of the vertices.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlphaBeta {
    /// Bottom-up when frontier edges exceed unvisited edges / alpha.
    pub alpha: f64,
    /// Top-down again when the frontier shrinks and is below vertices / beta.
    pub beta: f64,
    /// Where levels run.
    pub whose: Whose,
}

impl Default for AlphaBeta {
    fn default() -> Self {
        Self::of(Whose::Beamer)
    }
}

impl AlphaBeta {
    /// With the published numbers of the system: a starting point, not an optimum. GAP ships 15 and 18; Beamer et al. 2012 have 14 and 24,
    /// which the other papers took over (Yasui's tunes them to each of its machines).
    pub const fn of(whose: Whose) -> Self {
        let (alpha, beta) = if matches!(whose, Whose::Beamer) { (15.0, 18.0) } else { (14.0, 24.0) };
        Self { alpha, beta, whose }
    }
}

impl Rule for AlphaBeta {
    fn known(&self) -> &'static Known {
        &KNOWN[self.whose as usize]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Positive(&mut self.alpha).named("alpha"), Value::Positive(&mut self.beta).named("beta")]
    }

    fn uses(&self, runs: LevelDevice) -> Uses {
        match self.whose {
            Whose::Beamer if runs != LevelDevice::Cpu => Uses::GPU,
            Whose::Beamer | Whose::Yasui => Uses::CPU,
            Whose::Daga => Uses::EITHER,
        }
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &History) -> bool {
        if memory.was_bottom_up {
            let shrinks = stats.frontier_vertices < stats.previous_frontier_vertices;
            !(shrinks && (stats.frontier_vertices as f64) < stats.vertices as f64 / self.beta)
        } else {
            stats.frontier_edges as f64 > stats.unvisited_edges as f64 / self.alpha
        }
    }

    fn placement(&self, direction: Direction, _stats: &LevelStats, runs: LevelDevice) -> Placement {
        match (self.whose, direction) {
            (Whose::Beamer, _) => runs.placement(direction),
            (Whose::Yasui, _) | (Whose::Daga, Direction::TopDown) => Placement::Cpu,
            (Whose::Daga, Direction::BottomUp) => Strategy::Bg.placement(),
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
            ..LevelStats::default()
        }
    }

    fn bottom_up(was_bottom_up: bool, stats: &LevelStats) -> bool {
        AlphaBeta::default().is_bottom_up(stats, &History { was_bottom_up, ..History::default() })
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
