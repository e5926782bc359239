//! Concurrent: both devices run the levels above a threshold, with shares that adapt until both end together (Remis 2016, section 3.2,
//! where the share is fixed). It is [`Adaptive`] without levels on the GPU alone.

use super::{
    Adaptive, Band, Bands, NEVER, Policy,
    rule::{History, Known, LevelDevice, Parameter, Rule, Uses, Value},
};
use crate::bfs::{Ahead, LevelPlan, LevelStats, Surely};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "concurrent",
    parameters: "EDGES,VERTICES,PERMILLE",
    summary: "large levels are split between CPU and GPU; the ratio adapts",
    from: "after Remis 2016",
    default: |_| Ok(Policy::Concurrent(Box::default())),
}];

/// The work from which levels are split if no bound is given: such levels take a fraction of a millisecond or more.
const FROM: u64 = 256 << 10;

/// The policy `adaptive` with no level on the GPU alone: of its bands only the bounds of split levels count.
#[derive(Debug, Clone, PartialEq)]
pub struct Concurrent {
    adaptive: Adaptive,
    /// The share of the first split level of either direction, if the policy was selected with one.
    gpu_permille: Option<u16>,
}

impl Concurrent {
    /// The given policy with no level on the GPU alone.
    pub fn new(mut adaptive: Adaptive) -> Self {
        let never = |band: Band| Band { gpu_from: Some(NEVER), ..band };
        adaptive.bands = Bands { top_down: never(adaptive.bands.top_down), bottom_up: never(adaptive.bands.bottom_up) };
        Self { adaptive, gpu_permille: None }
    }

    /// The policy that plans the levels.
    pub fn adaptive(&self) -> &Adaptive {
        &self.adaptive
    }

    /// As [`adaptive`](Self::adaptive), for values that are filled in.
    pub fn adaptive_mut(&mut self) -> &mut Adaptive {
        // The share of the policy is given, as its bounds are, so nothing that is filled in replaces it.
        for band in [&mut self.adaptive.bands.top_down, &mut self.adaptive.bands.bottom_up] {
            band.gpu_permille = self.gpu_permille.or(band.gpu_permille);
        }
        &mut self.adaptive
    }
}

impl Default for Concurrent {
    fn default() -> Self {
        Self::new(Adaptive::default())
    }
}

impl Rule for Concurrent {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let Bands { top_down, bottom_up } = &mut self.adaptive.bands;
        vec![
            Value::Amount(&mut top_down.split_from).named("top_down_split_from"),
            Value::Amount(&mut bottom_up.split_from).named("bottom_up_split_from"),
            Value::Share(&mut self.gpu_permille).named("gpu_permille"),
        ]
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        Uses::TOGETHER
    }

    fn ready(&mut self) {
        for band in [&mut self.adaptive.bands.top_down, &mut self.adaptive.bands.bottom_up] {
            band.split_from = band.split_from.or(Some(FROM));
            band.gpu_permille = self.gpu_permille.or(band.gpu_permille);
        }
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn wants_sample(&self, stats: &LevelStats, runs: LevelDevice, memory: &History) -> bool {
        self.adaptive.wants_sample(stats, runs, memory)
    }

    fn surely(&self, stats: &LevelStats, _plan: LevelPlan, runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        self.adaptive.surely(stats, runs)
    }

    fn plan(&self, stats: &LevelStats, runs: LevelDevice, memory: &mut History) -> LevelPlan {
        self.adaptive.plan(stats, runs, memory)
    }
}
