//! Selective: each level runs on one device (Remis 2016, section 3.1). It is [`Adaptive`] without split levels.

use super::{
    Adaptive, Band, Bands, NEVER, Policy,
    rule::{History, Known, LevelDevice, Parameter, Rule, Uses, Value},
};
use crate::bfs::{Ahead, LevelPlan, LevelStats, Surely};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "selective",
    parameters: "EDGES,VERTICES",
    summary: "the better device of each level, by measured thresholds",
    from: "after Remis 2016",
    default: |_| Ok(Policy::Selective(Box::default())),
}];

/// The policy `adaptive` without split levels: of its bands only the GPU's bounds count.
#[derive(Debug, Clone, PartialEq)]
pub struct Selective(Adaptive);

impl Selective {
    /// The given policy without split levels.
    pub fn new(mut adaptive: Adaptive) -> Self {
        let never = |band: Band| Band { split_from: Some(NEVER), gpu_permille: None, ..band };
        adaptive.bands = Bands { top_down: never(adaptive.bands.top_down), bottom_up: never(adaptive.bands.bottom_up) };
        Self(adaptive)
    }

    /// The policy that plans the levels.
    pub fn adaptive(&self) -> &Adaptive {
        &self.0
    }

    /// As [`adaptive`](Self::adaptive), for values that are filled in.
    pub fn adaptive_mut(&mut self) -> &mut Adaptive {
        &mut self.0
    }
}

impl Default for Selective {
    fn default() -> Self {
        Self::new(Adaptive::default())
    }
}

impl Rule for Selective {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let Bands { top_down, bottom_up } = &mut self.0.bands;
        vec![
            Value::Amount(&mut top_down.gpu_from).named("top_down_gpu_from"),
            Value::Amount(&mut bottom_up.gpu_from).named("bottom_up_gpu_from"),
        ]
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        Uses::EITHER
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn wants_sample(&self, stats: &LevelStats, runs: LevelDevice, memory: &History) -> bool {
        self.0.wants_sample(stats, runs, memory)
    }

    fn surely(&self, stats: &LevelStats, _plan: LevelPlan, runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        self.0.surely(stats, runs)
    }

    fn plan(&self, stats: &LevelStats, runs: LevelDevice, memory: &mut History) -> LevelPlan {
        self.0.plan(stats, runs, memory)
    }
}
