//! What models are worth on graphs that they were not fitted to.

use serde::Serialize;

use super::{LevelTable, fit, fit_zhang};
use crate::{
    bfs::{GpuKernel, LevelStats, Planner, Strategy},
    policy::{CostModel, Policy, PolicyPlanner, Runs},
};

/// Parts into which the graphs are divided: each is judged by a model fitted to all others.
const PARTS: usize = 5;

/// The model that decides against the plain form of Zhang 2018, on graphs held out of the fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Graphs held out, one part after the other.
    pub graphs: usize,
    /// Mean over the graphs of the time beyond the per-level oracle's, as a share of it, by the table of levels.
    pub regret: f64,
    /// The same of the graph on which it is largest.
    pub worst_regret: f64,
    /// The same as `regret` by Zhang's form.
    pub regret_zhang: f64,
    /// The same as `worst_regret` by Zhang's form.
    pub worst_regret_zhang: f64,
}

/// Fits models to all graphs but a fifth of them, and lets them plan the searches of that fifth, and so on in turn. `graphs` holds the
/// tables of each graph. `None` where there are too few graphs to divide, or to fit.
pub fn held_out(graphs: &[&[LevelTable]]) -> Option<Gain> {
    if graphs.len() < 2 {
        return None;
    }
    let (mut own, mut zhang) = (Vec::new(), Vec::new());
    for part in 0..PARTS.min(graphs.len()) {
        let is_out = |place: usize| place % PARTS == part;
        let fitted: Vec<LevelTable> =
            graphs.iter().enumerate().filter(|(place, _)| !is_out(*place)).flat_map(|(_, tables)| tables.iter().cloned()).collect();
        let (model, plain) = (fit(&fitted)?, fit_zhang(&fitted)?);
        for (_, tables) in graphs.iter().enumerate().filter(|(place, _)| is_out(*place)) {
            if let (Some(regret), Some(plain)) = (regret(&model, tables), regret(&plain, tables)) {
                own.push(regret);
                zhang.push(plain);
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let worst = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    (!own.is_empty()).then(|| Gain {
        graphs: own.len(),
        regret: mean(&own),
        worst_regret: worst(&own),
        regret_zhang: mean(&zhang),
        worst_regret_zhang: worst(&zhang),
    })
}

/// What the searches of `tables` cost as `model` plans them, beyond the oracle's, as a share of its.
fn regret(model: &CostModel, tables: &[LevelTable]) -> Option<f64> {
    let planned: Option<f64> = tables.iter().map(|table| table.cost_ns(&plans(model, table))).sum();
    let oracle: f64 = tables.iter().map(|table| table.oracle().1).sum();
    Some(planned? / oracle - 1.0).filter(|regret| regret.is_finite())
}

/// What `model` decides at each level of `table`, in a search of its own.
fn plans(model: &CostModel, table: &LevelTable) -> Vec<Strategy> {
    // Of the GPU kernels the model chooses itself.
    let runs = if table.strategies.iter().any(|strategy| strategy.is_gpu()) { Runs::Gpu(GpuKernel::Bg) } else { Runs::Cpu };
    let mut planner = PolicyPlanner::new(Policy::CostModel(Box::new(*model)), runs);
    planner.begin();
    let mut previous: Option<Strategy> = None;
    let mut plans = Vec::with_capacity(table.levels.len());
    for times in &table.levels {
        // The table was observed in a search top-down on the CPU.
        let mut stats = LevelStats {
            previous_direction: previous.map(Strategy::direction),
            previous_placement: previous.map(Strategy::placement),
            ..times.stats
        };
        if !planner.wants_sample(&stats) {
            stats.sampled_probes = None;
        }
        previous = Strategy::of(planner.plan(&stats));
        plans.extend(previous);
    }
    plans
}
