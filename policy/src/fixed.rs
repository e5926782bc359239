//! One strategy at every level (Zhang et al. 2018, table 2; TGM: Remis 2016).

use super::{
    Policy, PolicyError,
    history::History,
    rule::{Known, LevelDevice, Rule},
};
use socbfs::bfs::{Ahead, Direction, LevelPlan, LevelStats, Placement, Strategy, Surely, Uses};

const fn known(kind: &'static str, summary: &'static str, from: &'static str) -> Known {
    Known { kind, parameters: "", summary, from, default }
}

fn default(kind: &str) -> Result<Policy, PolicyError> {
    let strategy = Strategy::ALL.into_iter().find(|strategy| strategy.name() == kind);
    strategy.map(Policy::Fixed).ok_or_else(|| PolicyError::Unknown(kind.to_owned()))
}

/// The names of the strategies, in the order of [`Strategy::ALL`].
pub(super) const KNOWN: &[Known] = &[
    known("tc", "top-down on the CPU", "Zhang 2018"),
    known("tg", "top-down on the OpenCL device, over a queue", "Zhang 2018"),
    known("tgm", "top-down on the device, over a mask", "Remis 2016"),
    known("bc", "bottom-up on the CPU", "Zhang 2018"),
    known("bg", "bottom-up on the device", "Zhang 2018"),
    known("bgc", "bottom-up on the device with hubs in local memory", "Zhang 2018"),
];

impl Rule for Strategy {
    fn known(&self) -> &'static Known {
        &KNOWN[*self as usize]
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        if self.is_gpu() { Uses::GPU } else { Uses::CPU }
    }

    fn is_bottom_up(&self, _stats: &LevelStats, _memory: &History) -> bool {
        self.direction() == Direction::BottomUp
    }

    fn surely(&self, _stats: &LevelStats, plan: LevelPlan, _runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        [Some(Surely::always(plan)), None]
    }

    fn placement(&self, _direction: Direction, _stats: &LevelStats, _runs: LevelDevice) -> Placement {
        Strategy::placement(*self)
    }
}
