//! Replay: the plans of an earlier search once more, level by level.

use std::sync::Arc;

use crate::bfs::{LevelPlan, LevelRecord, LevelStats, Strategy};

/// The plan of every level.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// By level; the last one holds for all levels after it.
    plans: Arc<[LevelPlan]>,
    /// Whether every level is sampled, though nothing comes of it: so that records hold all that a policy can know.
    observe: bool,
}

impl Replay {
    /// The given plans, by level. An empty list is top-down on the CPU.
    pub fn new(plans: &[LevelPlan]) -> Self {
        let plans = if plans.is_empty() { Arc::from([Strategy::Tc.plan()]) } else { Arc::from(plans) };
        Self { plans, observe: false }
    }

    /// The plans of the search that `records` are from. A record of several levels is that many plans.
    pub fn of(records: &[LevelRecord]) -> Self {
        let plans: Vec<LevelPlan> =
            records.iter().flat_map(|record| std::iter::repeat_n(record.plan, record.levels.max(1) as usize)).collect();
        Self::new(&plans)
    }

    /// The same plans, with everything sampled on the way that can be.
    pub fn observing(self) -> Self {
        Self { observe: true, ..self }
    }

    /// The plan of each level.
    pub fn plans(&self) -> &[LevelPlan] {
        &self.plans
    }

    pub(super) fn observes(&self) -> bool {
        self.observe
    }

    pub(super) fn plan(&self, stats: &LevelStats) -> LevelPlan {
        self.plans[(stats.level as usize).min(self.plans.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_several_levels_is_several_plans() {
        let record = |strategy: Strategy, levels| LevelRecord { plan: strategy.plan(), levels, ..LevelRecord::default() };
        let replay = Replay::of(&[record(Strategy::Tc, 1), record(Strategy::Bc, 1), record(Strategy::Tg, 3), record(Strategy::Bc, 1)]);
        let at = |level| Strategy::of(replay.plan(&LevelStats { level, ..LevelStats::default() }));
        let plans = [Strategy::Tc, Strategy::Bc, Strategy::Tg, Strategy::Tg, Strategy::Tg, Strategy::Bc, Strategy::Bc];
        for (level, wanted) in plans.into_iter().enumerate() {
            assert_eq!(at(level as u32), Some(wanted));
        }
        assert_eq!(Replay::new(&[]).plans(), [Strategy::Tc.plan()]);
    }
}
