//! Searches planned without a machine: the decisions of a policy at measured levels, and their cost.

use super::LevelTable;
use crate::{
    bfs::{GpuKernel, LevelPlan, LevelStats, Planner},
    policy::{LevelDevice, Policy, PolicyPlanner},
};

/// What `planner` plans for the levels of one search. `levels` hold everything that can be sampled; it is asked as in a search: what it
/// does not want to have sampled it does not see, and the level before was run as it planned.
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

/// The cost of the levels of `table` in nanoseconds if `policy` plans them. `None` where a plan was not measured.
pub(super) fn plans_ns(table: &LevelTable, policy: &Policy) -> Option<f64> {
    let on_gpu = table.strategies.iter().any(|strategy| strategy.is_gpu());
    let mut planner = PolicyPlanner::new(policy.clone(), if on_gpu { LevelDevice::Gpu(GpuKernel::Bg) } else { LevelDevice::Cpu });
    table.cost_ns(&plans(&mut planner, table.levels.iter().map(|level| level.stats)))
}

/// What the searches of `tables` cost as `policy` plans them, beyond the oracle's plans, as a share of those. `None` where a plan
/// was not measured, or there is no time to compare.
pub fn table_regret(tables: &[LevelTable], policy: &Policy) -> Option<f64> {
    let planned: Option<f64> = tables.iter().map(|table| plans_ns(table, policy)).sum();
    let oracle: f64 = tables.iter().map(|table| table.oracle().1).sum();
    Some(planned? / oracle - 1.0).filter(|regret| regret.is_finite())
}
