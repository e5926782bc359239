//! Replay: the plans of earlier searches again, level by level.

use std::{ops::Range, sync::Arc};

use super::{
    PolicyError,
    history::History,
    rule::{Known, LevelDevice, Rule},
};
use socbfs::{
    bfs::{Ahead, Direction, LevelPlan, LevelRecord, LevelStats, Placement, Strategy, Surely, Uses},
    graph::Vertex,
};

/// The name for help and records. The policy is made from records, so it has no text or TOML and is in no list.
const KNOWN: Known =
    Known { kind: "replay", parameters: "", summary: "", from: "", default: |kind| Err(PolicyError::Unknown(kind.to_owned())) };

/// The plan of every level of one search, or of one search from each of several roots.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The plans by level, one search after another.
    plans: Arc<[LevelPlan]>,
    /// The roots in ascending order, with their searches (empty: the plans hold for every root).
    roots: Arc<[(Vertex, SearchPlans)]>,
    /// Whether every level is sampled, without an effect on the plan, so that records hold everything that a policy may know.
    observe: bool,
    /// Whether a device may run levels ahead.
    ahead: bool,
    /// The current search.
    search: SearchPlans,
}

/// The plans of one search.
#[derive(Debug, Clone, PartialEq, Default)]
struct SearchPlans {
    /// Begin and end among all plans.
    levels: Range<usize>,
    /// The first level from which all plans are the same.
    same_from: usize,
}

impl SearchPlans {
    /// The search of `all[begin..]`.
    fn of(all: &[LevelPlan], begin: usize) -> Self {
        let plans = &all[begin..];
        let same_from = plans.iter().rposition(|plan| Some(plan) != plans.last()).map_or(0, |last| last + 1);
        Self { levels: begin..all.len(), same_from }
    }
}

/// The plans of `records`. A record of several levels counts as that many plans.
fn plans_of(records: &[LevelRecord]) -> impl Iterator<Item = LevelPlan> {
    records.iter().flat_map(|record| std::iter::repeat_n(record.plan, record.levels.max(1) as usize))
}

impl Replay {
    /// The given plans, by level, for every root; the last one holds for all later levels. An empty list means top-down on the CPU.
    pub fn new(plans: &[LevelPlan]) -> Self {
        let plans: Arc<[LevelPlan]> = if plans.is_empty() { Arc::from([Strategy::Tc.plan()]) } else { Arc::from(plans) };
        let search = SearchPlans::of(&plans, 0);
        Self { plans, roots: Arc::from([]), observe: false, ahead: false, search }
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
            roots.push((root, SearchPlans::of(&plans, begin)));
        }
        roots.sort_by_key(|&(root, ref search)| (root, search.levels.start));
        roots.dedup_by_key(|&mut (root, _)| root);
        Self { roots: roots.into(), ..Self::new(&plans) }
    }

    /// The same plans, with every sample that can be taken.
    pub fn observing(self) -> Self {
        Self { observe: true, ..self }
    }

    /// The same plans, where a device runs levels ahead as it does for other policies: without a wait after each level, from the level on
    /// after which all plans are the same. The records then hold one time for such levels together.
    pub fn running_ahead(self) -> Self {
        Self { ahead: true, ..self }
    }

    /// All plans by level, of several roots one search after another.
    pub fn plans(&self) -> &[LevelPlan] {
        &self.plans
    }

    /// Whether it has plans for this root.
    pub fn has_root(&self, root: Vertex) -> bool {
        self.of_root(root).is_some()
    }

    /// The search from `root`. (Plans that hold for every root are the current search from the beginning.)
    fn of_root(&self, root: Vertex) -> Option<&SearchPlans> {
        if self.roots.is_empty() {
            return Some(&self.search);
        }
        let at = self.roots.binary_search_by_key(&root, |&(root, _)| root).ok()?;
        Some(&self.roots[at].1)
    }

    /// Selects the plans of the search from `root`. False if there are none.
    pub(super) fn set_root(&mut self, root: Vertex) -> bool {
        let of_root = self.of_root(root).cloned();
        let known = of_root.is_some();
        self.search = of_root.unwrap_or_default();
        known
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

    /// The last plan, once all later levels have it.
    fn surely(&self, stats: &LevelStats, _plan: LevelPlan, _runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        let Some(&last) = self.plans[self.search.levels.clone()].last() else { return [None; Ahead::PLANS] };
        let is_sure = self.ahead && !self.observe && stats.level as usize + 1 >= self.search.same_from;
        [Direction::TopDown, Direction::BottomUp].map(|direction| (is_sure && last.direction == direction).then(|| Surely::always(last)))
    }

    fn plan(&self, stats: &LevelStats, _runs: LevelDevice, _memory: &mut History) -> LevelPlan {
        let plans = &self.plans[self.search.levels.clone()];
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

    #[test]
    fn levels_are_run_ahead_once_all_plans_are_the_same() {
        let (first, second) = ([record(Strategy::Tg, 2), record(Strategy::Bg, 1), record(Strategy::Tg, 2)], [record(Strategy::Bgc, 3)]);
        let waiting = Replay::of_roots([(9, &first[..]), (4, &second[..]), (6, &[record(Strategy::Tg, 1), record(Strategy::Bg, 1)][..])]);
        let sure = |replay: &Replay, root, level| {
            let mut replay = replay.clone();
            assert!(replay.set_root(root));
            let surely = replay.surely(&LevelStats { level, ..LevelStats::default() }, LevelPlan::default(), LevelDevice::Cpu);
            let mut plans = surely.into_iter().flatten();
            let plan = plans.next();
            assert!(plans.next().is_none() && plan.is_none_or(|plan| plan.above_zero == Surely::always(plan.plan).above_zero));
            plan.and_then(|plan| Strategy::of(plan.plan))
        };
        let ahead = waiting.clone().running_ahead();
        assert_eq!(
            [0, 1, 2, 3, 4, 70].map(|level| sure(&ahead, 9, level)),
            [None, None, Some(Strategy::Tg), Some(Strategy::Tg), Some(Strategy::Tg), Some(Strategy::Tg)]
        );
        assert_eq!([0, 1].map(|level| sure(&ahead, 4, level)), [Some(Strategy::Bgc); 2]);
        assert_eq!(sure(&ahead, 6, 0), Some(Strategy::Bg));
        for replay in [waiting, ahead.observing()] {
            assert_eq!([9, 4, 6].map(|root| sure(&replay, root, 3)), [None; 3]);
        }
        // Plans for every root.
        let ahead = Replay::of(&first).running_ahead();
        assert_eq!([1, 2].map(|level| sure(&ahead, 7, level)), [None, Some(Strategy::Tg)]);
    }
}
