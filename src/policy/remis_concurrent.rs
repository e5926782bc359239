//! Concurrent as in the thesis (Remis 2016, section 3.2): both devices run the levels above one threshold, in vertices of the frontier,
//! with a fixed share. The direction is that of `remis-selective`.

use super::{
    Policy, RemisSelective,
    rule::{History, Known, LevelDevice, Parameter, Rule, Uses, Value},
};
use crate::bfs::{Direction, LevelStats, Placement};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "remis-concurrent",
    parameters: "VERTICES,PERMILLE",
    summary: "Remis' Concurrent: such frontiers on both, by a fixed share",
    default: || Ok(Policy::RemisConcurrent(RemisConcurrent::default())),
}];

/// The threshold and the share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemisConcurrent {
    /// Levels whose frontier has at least this many vertices are split.
    pub vertices: u64,
    /// The GPU's share, in thousandths.
    pub gpu_permille: u16,
}

impl Default for RemisConcurrent {
    fn default() -> Self {
        Self { vertices: RemisSelective::default().vertices, gpu_permille: 500 }
    }
}

impl RemisConcurrent {
    fn threshold(self) -> RemisSelective {
        RemisSelective { vertices: self.vertices }
    }
}

impl Rule for RemisConcurrent {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Count(&mut self.vertices).named("split_from_vertices"), Value::Permille(&mut self.gpu_permille).named("gpu_permille")]
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        Uses::TOGETHER
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &History) -> bool {
        self.threshold().is_bottom_up(stats, memory)
    }

    fn placement(&self, direction: Direction, stats: &LevelStats, runs: LevelDevice) -> Placement {
        let Self { gpu_permille, .. } = *self;
        if self.threshold().is_large(stats) { Placement::Split { gpu_permille, kernel: runs.kernel(direction) } } else { Placement::Cpu }
    }
}
