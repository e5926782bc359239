//! Selective as in the thesis (Remis 2016, section 3.1): one threshold, in vertices of the frontier. The CPU runs levels below it, and the
//! GPU the others.
//!
//! For the direction the thesis names one possible rule: the first levels top-down, large ones in either direction, the last ones
//! bottom-up. Here large levels are bottom-up too, since searches of skewed graphs gain most by that.
//!
//! The thesis measures the threshold on each platform, and so must a user of this policy; the default is our own starting value. The
//! policies `adaptive`, `selective` and `concurrent` follow the same idea, but measure their thresholds, count work in the unit of the
//! direction, include the cost of a handover, and adapt the shares.

use super::{
    Policy,
    rule::{History, Known, LevelDevice, Parameter, Rule, Uses, Value},
};
use crate::bfs::{Direction, LevelStats, Placement};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "remis-selective",
    parameters: "VERTICES",
    summary: "Remis' Selective: frontiers of 10000 vertices or more on the device",
    default: || Ok(Policy::RemisSelective(RemisSelective::default())),
}];

/// The threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemisSelective {
    /// The GPU runs levels whose frontier has at least this many vertices.
    pub vertices: u64,
}

impl Default for RemisSelective {
    fn default() -> Self {
        Self { vertices: 10_000 }
    }
}

impl RemisSelective {
    /// Whether the frontier is large.
    pub(super) fn is_large(self, stats: &LevelStats) -> bool {
        stats.frontier_vertices >= self.vertices
    }
}

impl Rule for RemisSelective {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Count(&mut self.vertices).named("gpu_from_vertices")]
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        Uses::EITHER
    }

    /// Bottom-up from the first large frontier on.
    fn is_bottom_up(&self, stats: &LevelStats, memory: &History) -> bool {
        memory.been_bottom_up || self.is_large(stats)
    }

    fn placement(&self, direction: Direction, stats: &LevelStats, runs: LevelDevice) -> Placement {
        if self.is_large(stats) { runs.on_gpu().placement(direction) } else { Placement::Cpu }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_large_frontier_ends_the_top_down_levels() {
        let with = |frontier_vertices| LevelStats { frontier_vertices, ..LevelStats::default() };
        let (never, once) = (History::default(), History { been_bottom_up: true, ..History::default() });
        let rule = RemisSelective { vertices: 100 };
        assert!(!rule.is_large(&with(99)) && rule.is_large(&with(100)));
        assert!(!rule.is_bottom_up(&with(99), &never) && rule.is_bottom_up(&with(100), &never) && rule.is_bottom_up(&with(3), &once));
    }
}
