//! The plans of a policy for measured levels, made without running them, and their cost.

use crate::record::LevelTable;
use socbfs::bfs::{GpuKernel, LevelPlan, LevelStats, Planner};
use socbfs_policy::{LevelDevice, Policy, PolicyPlanner};

/// The plans of `planner` for the levels of one search. `levels` hold every sample. As in a search, the planner gets only the samples that
/// it wants, and sees the level before as run by its own plan.
pub fn plans(planner: &mut PolicyPlanner, levels: impl IntoIterator<Item = LevelStats>) -> Vec<LevelPlan> {
    let mut previous: Option<LevelPlan> = None;
    planner.begin();
    let plan = |mut stats: LevelStats| {
        stats.previous_direction = previous.map(|plan| plan.direction);
        stats.previous_placement = previous.map(|plan| plan.placement);
        let (probes, hubs) = (stats.sampled_probes.take(), stats.sampled_hubs.take());
        if planner.wants_sample(&stats) {
            stats.sampled_probes = probes;
        }
        if planner.wants_hubs(&stats) {
            stats.sampled_hubs = hubs;
        }
        let plan = planner.plan(&stats);
        previous = Some(plan);
        plan
    };
    levels.into_iter().map(plan).collect()
}

/// The cost in nanoseconds of the levels of `table` by the plans of `policy`. `None` if one of the plans was not measured.
pub(super) fn plans_ns(table: &LevelTable, policy: &Policy) -> Option<f64> {
    let on_gpu = table.strategies.iter().any(|strategy| strategy.is_gpu());
    let mut planner = PolicyPlanner::new(policy.clone(), if on_gpu { LevelDevice::Gpu(GpuKernel::Bg) } else { LevelDevice::Cpu });
    table.cost_ns(&plans(&mut planner, table.levels.iter().map(|level| level.stats)))
}

/// The cost of the searches of `tables` by the plans of `policy` beyond that of the oracle's plans, as a share of the oracle's. `None` if a
/// plan was not measured, or there is no time to compare.
pub fn table_regret(tables: &[LevelTable], policy: &Policy) -> Option<f64> {
    let planned: Option<f64> = tables.iter().map(|table| plans_ns(table, policy)).sum();
    let oracle: f64 = tables.iter().map(|table| table.oracle().1).sum();
    Some(planned? / oracle - 1.0).filter(|regret| regret.is_finite())
}
