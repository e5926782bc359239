//! Figures of every strategy over all measured levels.

use super::fit::{corun, zhang_edges};
use crate::record::LevelTable;
use socbfs::{
    bfs::{LevelStats, Strategy},
    stats::Summary,
};
use socbfs_boards::measure::{CoRun, StrategyNumbers};
use socbfs_policy::CostModel;

/// The speeds of each of `strategies` in the levels of `tables` that are [timed](LevelTable::is_timed), and the errors of `model` and
/// `zhang`. Strategies that were not measured are left out.
pub fn numbers(tables: &[LevelTable], strategies: &[Strategy], model: &CostModel, zhang: &CostModel) -> Vec<StrategyNumbers> {
    strategies.iter().filter_map(|&strategy| of_strategy(tables, strategy, model, zhang)).collect()
}

fn of_strategy(tables: &[LevelTable], strategy: Strategy, model: &CostModel, zhang: &CostModel) -> Option<StrategyNumbers> {
    let levels = || tables.iter().flat_map(|table| table.levels.iter().filter(|times| table.is_timed(times)));
    let measured = || levels().filter_map(|times| Some((times, times.own_ns(strategy)?)));
    let speeds: Vec<f64> = measured()
        .map(|(times, own)| (zhang_edges(&times.stats, strategy.direction()), own))
        .filter(|&(edges, own)| edges > 0 && own > 0.0)
        .map(|(edges, own)| edges as f64 / own * 1e3)
        .collect();
    let speed = Summary::of(&speeds)?;
    let fastest_levels = measured()
        .filter(|(times, own)| Strategy::ALL.into_iter().filter_map(|other| times.own_ns(other)).all(|other| *own <= other))
        .count();
    let residual = |model: &CostModel| {
        let (mut off, mut all) = (0.0, 0.0);
        for (times, own) in measured() {
            if let Some(cost) = model.of(strategy) {
                off += (cost.level_ns(&times.stats, probes(&times.stats)) - own).abs();
                all += own;
            }
        }
        if all > 0.0 { off / all } else { 0.0 }
    };
    Some(StrategyNumbers {
        strategy,
        levels: speeds.len(),
        fastest_levels,
        mean_mega_edges_per_s: speed.mean,
        first_quartile_mega_edges_per_s: speed.first_quartile,
        median_mega_edges_per_s: speed.median,
        third_quartile_mega_edges_per_s: speed.third_quartile,
        residual: residual(model),
        residual_zhang: residual(zhang),
        watts: None,
        corun: corun(tables, strategy).map(|Summary { count: levels, first_quartile, median, third_quartile, .. }| CoRun {
            levels,
            first_quartile,
            median,
            third_quartile,
        }),
    })
}

/// Neighbours that an unvisited vertex looks at, as the models count them: the sampled number, or one.
fn probes(stats: &LevelStats) -> f64 {
    stats.sampled_probes.map_or(1.0, f64::from)
}
