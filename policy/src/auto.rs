//! `auto`: the best policy for this graph and these devices.
//!
//! The choice depends on the machine: `runtime` replaces `auto` by another policy if there is a device or a calibration. Otherwise `auto`
//! decides as `sampled` does, the best of the policies that need neither.

use super::{
    Policy,
    history::History,
    rule::{Known, LevelDevice, Rule},
};
use socbfs::bfs::{Ahead, LevelPlan, LevelStats, SampledCosts, Surely};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "auto",
    parameters: "",
    summary: "the best policy for this graph and these devices",
    from: "",
    default: |_| Ok(Policy::Auto(Auto)),
}];

/// The policy `auto`. It decides as `sampled` does unless `runtime` replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Auto;

impl Rule for Auto {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn wants_sample(&self, stats: &LevelStats, _runs: LevelDevice, _memory: &History) -> bool {
        SampledCosts::default().wants_sample(stats)
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn surely(&self, stats: &LevelStats, plan: LevelPlan, runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        SampledCosts::default().surely(stats, plan, runs)
    }

    fn is_bottom_up(&self, stats: &LevelStats, _memory: &History) -> bool {
        SampledCosts::default().is_bottom_up(stats)
    }
}
