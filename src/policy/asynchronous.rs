//! Asynchronous: from one level on, both devices search to the end independently (Remis 2016, section 3.3).

use super::{
    Policy, SampledCosts,
    rule::{History, Known, LevelDevice, Parameter, Rule, Uses, Value},
};
use crate::bfs::{Direction, LevelStats, Placement};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "asynchronous",
    parameters: "EDGES,PERMILLE",
    summary: "CPU and device search to the end independently",
    default: || Ok(Policy::Asynchronous(Parting::default())),
}];

/// When the searches of both devices part, and how they divide the frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parting {
    /// They part at the first level whose frontier has at least this many arcs.
    pub from_edges: u64,
    /// The GPU's share of these arcs, in thousandths.
    pub gpu_permille: u16,
}

impl Default for Parting {
    /// In the thesis they part after a quarter of the graph at most. A frontier of some thousand arcs occurs a level or two before.
    fn default() -> Self {
        Self { from_edges: 4096, gpu_permille: 500 }
    }
}

impl Rule for Parting {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Count(&mut self.from_edges).named("from_edges"), Value::Permille(&mut self.gpu_permille).named("gpu_permille")]
    }

    fn shows_defaults(&self) -> bool {
        false
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        Uses::TOGETHER
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn wants_sample(&self, stats: &LevelStats, _runs: LevelDevice, _memory: &History) -> bool {
        SampledCosts::default().wants_sample(stats)
    }

    fn is_bottom_up(&self, stats: &LevelStats, _memory: &History) -> bool {
        SampledCosts::default().is_bottom_up(stats)
    }

    fn placement(&self, _direction: Direction, stats: &LevelStats, _runs: LevelDevice) -> Placement {
        let is_now = stats.frontier_edges >= self.from_edges && stats.frontier_vertices > 1;
        if is_now { Placement::Apart { gpu_permille: self.gpu_permille } } else { Placement::Cpu }
    }
}
