//! Replay: the plans of earlier searches again, level by level.

use std::{ops::Range, sync::Arc};

use super::{
    PolicyError,
    rule::{History, Known, LevelDevice, Rule, Uses},
};
use crate::{
    bfs::{LevelPlan, LevelRecord, LevelStats, Placement, Strategy},
    graph::Vertex,
};

/// The name for help and records. The policy is made from records, so it has no text or TOML and is in no list.
const KNOWN: Known = Known { kind: "replay", parameters: "", summary: "", default: || Err(PolicyError::Unknown("replay".to_owned())) };

/// The plan of every level of one search, or of one search from each of several roots.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The plans by level, one search after another.
    plans: Arc<[LevelPlan]>,
    /// The roots in ascending order, with the begin and end of their plans (empty: the plans hold for every root).
    roots: Arc<[(Vertex, usize, usize)]>,
    /// Whether every level is sampled, without an effect on the plan, so that records hold everything that a policy may know.
    observe: bool,
    /// Begin and end of the plans of the current search.
    search: Range<usize>,
}

/// The plans of `records`. A record of several levels counts as that many plans.
fn plans_of(records: &[LevelRecord]) -> impl Iterator<Item = LevelPlan> {
    records.iter().flat_map(|record| std::iter::repeat_n(record.plan, record.levels.max(1) as usize))
}

impl Replay {
    /// The given plans, by level, for every root; the last one holds for all later levels. An empty list means top-down on the CPU.
    pub fn new(plans: &[LevelPlan]) -> Self {
        let plans: Arc<[LevelPlan]> = if plans.is_empty() { Arc::from([Strategy::Tc.plan()]) } else { Arc::from(plans) };
        let search = 0..plans.len();
        Self { plans, roots: Arc::from([]), observe: false, search }
    }

    /// The plans of the search that made `records`.
    pub fn of(records: &[LevelRecord]) -> Self {
        Self::new(&plans_of(records).collect::<Vec<_>>())
    }

    /// The plans of the searches from these roots (original numbers). If a root occurs twice, its first search counts.
    pub fn of_roots<'a>(searches: impl IntoIterator<Item = (Vertex, &'a [LevelRecord])>) -> Self {
        let (mut plans, mut roots) = (Vec::new(), Vec::new());
        for (root, records) in searches {
            let begin = plans.len();
            plans.extend(plans_of(records));
            if plans.len() == begin {
                plans.push(Strategy::Tc.plan());
            }
            roots.push((root, begin, plans.len()));
        }
        roots.sort();
        roots.dedup_by_key(|&mut (root, ..)| root);
        Self { roots: roots.into(), ..Self::new(&plans) }
    }

    /// The same plans, with every sample that can be taken.
    pub fn observing(self) -> Self {
        Self { observe: true, ..self }
    }

    /// All plans by level, of several roots one search after another.
    pub fn plans(&self) -> &[LevelPlan] {
        &self.plans
    }

    /// Whether it has plans for this root.
    pub fn has_root(&self, root: Vertex) -> bool {
        self.of_root(root).is_some()
    }

    /// Begin and end of the plans of a search from `root`.
    fn of_root(&self, root: Vertex) -> Option<Range<usize>> {
        if self.roots.is_empty() {
            return Some(0..self.plans.len());
        }
        let at = self.roots.binary_search_by_key(&root, |&(root, ..)| root).ok()?;
        let (_, begin, end) = self.roots[at];
        Some(begin..end)
    }

    /// Selects the plans of the search from `root`. False if there are none.
    pub(super) fn set_root(&mut self, root: Vertex) -> bool {
        let of_root = self.of_root(root);
        self.search = of_root.clone().unwrap_or_default();
        of_root.is_some()
    }
}

impl Rule for Replay {
    fn known(&self) -> &'static Known {
        &KNOWN
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        let on_gpu = |plan: &LevelPlan| matches!(plan.placement, Placement::Gpu(_));
        let on_both = |plan: &LevelPlan| matches!(plan.placement, Placement::Split { .. } | Placement::Apart { .. });
        Uses {
            alone: self.plans.iter().any(on_gpu),
            at_home_on_gpu: self.plans.iter().all(on_gpu),
            together: self.plans.iter().any(on_both),
        }
    }

    fn may_sample(&self) -> bool {
        self.observe
    }

    fn wants_sample(&self, _stats: &LevelStats, _runs: LevelDevice, _memory: &History) -> bool {
        self.observe
    }

    fn wants_hubs(&self) -> bool {
        self.observe
    }

    fn plan(&self, stats: &LevelStats, _runs: LevelDevice, _memory: &mut History) -> LevelPlan {
        let plans = &self.plans[self.search.clone()];
        plans.get(stats.level as usize).or(plans.last()).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(strategy: Strategy, levels: u32) -> LevelRecord {
        LevelRecord { plan: strategy.plan(), levels, ..LevelRecord::default() }
    }

    /// The strategy at `level` of the search from `root`.
    fn at(replay: &Replay, root: Vertex, level: u32) -> Option<Strategy> {
        let mut replay = replay.clone();
        replay.set_root(root).then_some(())?;
        Strategy::of(replay.plan(&LevelStats { level, ..LevelStats::default() }, LevelDevice::Cpu, &mut History::default()))
    }

    #[test]
    fn a_record_of_several_levels_gives_several_plans() {
        let replay = Replay::of(&[record(Strategy::Tc, 1), record(Strategy::Bc, 1), record(Strategy::Tg, 3), record(Strategy::Bc, 1)]);
        let plans = [Strategy::Tc, Strategy::Bc, Strategy::Tg, Strategy::Tg, Strategy::Tg, Strategy::Bc, Strategy::Bc];
        for (level, wanted) in (0..).zip(plans) {
            assert_eq!(at(&replay, 7, level), Some(wanted));
        }
        assert_eq!(Replay::new(&[]).plans(), [Strategy::Tc.plan()]);
    }

    #[test]
    fn each_root_has_its_own_plans() {
        let (first, second) = ([record(Strategy::Tc, 2), record(Strategy::Bg, 1)], [record(Strategy::Bc, 1)]);
        let replay = Replay::of_roots([(9, &first[..]), (4, &second[..]), (6, &[]), (9, &second[..])]);
        assert_eq!([0, 1, 2, 3].map(|level| at(&replay, 9, level)), [Strategy::Tc, Strategy::Tc, Strategy::Bg, Strategy::Bg].map(Some));
        assert_eq!([0, 1].map(|level| at(&replay, 4, level)), [Strategy::Bc; 2].map(Some));
        assert_eq!(at(&replay, 6, 0), Some(Strategy::Tc));
        assert!(replay.has_root(4) && !replay.has_root(5) && Replay::of(&first).has_root(5));
        assert_eq!(replay.plans().len(), 6);
    }
}
