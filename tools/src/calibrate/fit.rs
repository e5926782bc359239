//! A cost model fitted to the measured costs of levels.
//!
//! First, each strategy's terms are fitted by least squares without negative coefficients. A model has to decide well rather than to
//! predict well, so then each term is moved by up to the factor [`MOST`] as long as the model's plans for the same searches cost less.

use super::plan::plans_ns;
use crate::record::{LevelTable, LevelTimes, SHARES, SplitParts};
use socbfs::{
    bfs::{Direction, GpuKernel, LevelStats, Strategy},
    stats::Summary,
};
use socbfs_policy::{ChangeCost, CostModel, LEAST_RATIO, ModelTerms, Policy, StrategyCost, together_ns};

/// Most levels of one table that count, spread over the table: a road has thousands that are alike.
const LEVELS: usize = 256;
/// Largest regret that counts for one search. Beyond twice the oracle's time, a search is simply wrong; how wrong says nothing about the
/// others.
const WORST: f64 = 1.0;
/// Largest factor between a moved term and its least-squares value.
const MOST: f64 = 1.5;
/// Split levels must save this share of the time of a search on average: less may be noise.
const WORTH: f64 = 0.005;
/// Factors by which a term is moved in one step.
const STEPS: [f64; 6] = [0.7, 0.85, 0.95, 1.05, 1.18, 1.43];
/// Most rounds over all terms.
const ROUNDS: usize = 5;
/// The weight of an error treats shorter levels as if they took this many nanoseconds: their differences are noise.
const NOISE_NS: f64 = 1000.0;
/// Parts of split levels that take fewer nanoseconds do not count: a host thread waits for the device, and waking it takes some of them.
const LEAST_PART_NS: f64 = 50_000.0;

/// Fits the model of all terms. `None` if a direction was not measured on the CPU.
pub fn fit(tables: &[LevelTable]) -> Option<CostModel> {
    let mut model = CostModel { form: ModelTerms::Full, ..CostModel::default() };
    for strategy in Strategy::ALL {
        let corun = corun(tables, strategy).map(|ratios| ratios.median.max(LEAST_RATIO));
        *model.of_mut(strategy) = strategy_cost(tables, strategy).map(|cost| StrategyCost { corun, ..cost });
    }
    let turned =
        |from: Direction| move |a: Strategy, b: Strategy| a.direction() == from && b.direction() != from && a.is_gpu() == b.is_gpu();
    model.to_bottom_up = change_cost(tables, turned(Direction::TopDown));
    model.to_top_down = change_cost(tables, turned(Direction::BottomUp));
    let moved =
        |to_gpu: bool| move |a: Strategy, b: Strategy| a.direction() == b.direction() && b.is_gpu() == to_gpu && a.is_gpu() != to_gpu;
    model.to_gpu = change_cost(tables, moved(true));
    model.to_cpu = change_cost(tables, moved(false));
    model.top_down_split = split_cost(tables, &model, Direction::TopDown);
    model.bottom_up_split = split_cost(tables, &model, Direction::BottomUp);
    model.validate().ok()?;
    let oracles: Vec<f64> = tables.iter().map(|table| table.oracle().1.max(1.0)).collect();
    let refined = without_useless_splits(refine(model, tables, &oracles), tables, &oracles);
    // Other load during the measurement makes bad models; then the shipped ratios are better.
    let shipped = CostModel::shipped(ModelTerms::Full);
    let is_worse = !refined.has_gpu() && sum_of_regrets(&shipped, tables, &oracles) < sum_of_regrets(&refined, tables, &oracles);
    Some(if is_worse { shipped } else { refined })
}

/// Fits the model of the paper: each strategy's mean speed over all levels (Zhang et al. 2018, section 3.2). The parameter alpha of eq. 4
/// is in the measured speed as well as in the estimate, and cancels out.
pub fn fit_zhang(tables: &[LevelTable]) -> Option<CostModel> {
    let mut model = CostModel { form: ModelTerms::Zhang, ..CostModel::default() };
    for strategy in Strategy::ALL {
        let speeds: Vec<f64> = samples(tables, strategy)
            .map(|(stats, ns)| (zhang_edges(stats, strategy.direction()), ns))
            .filter(|&(edges, ns)| edges > 0 && ns > 0.0)
            .map(|(edges, ns)| edges as f64 / ns)
            .collect();
        let mean_ns = speeds.len() as f64 / speeds.iter().sum::<f64>();
        *model.of_mut(strategy) = (!speeds.is_empty()).then(|| StrategyCost::zhang(strategy, mean_ns));
    }
    model.validate().ok()?;
    Some(model)
}

/// The levels that count.
fn levels(tables: &[LevelTable]) -> impl Iterator<Item = &LevelTimes> {
    let step = |table: &LevelTable| table.levels.len().div_ceil(LEVELS).max(1);
    tables.iter().flat_map(move |table| table.levels.iter().filter(|level| table.is_timed(level)).step_by(step(table)))
}

/// The levels by `strategy`: what a policy may know of them, and their time in nanoseconds.
fn samples(tables: &[LevelTable], strategy: Strategy) -> impl Iterator<Item = (&LevelStats, f64)> {
    levels(tables).filter_map(move |level| Some((&level.stats, level.own_ns(strategy)?)))
}

fn strategy_cost(tables: &[LevelTable], strategy: Strategy) -> Option<StrategyCost> {
    let [top_down, bottom_up] = [Direction::TopDown, Direction::BottomUp].map(|one| f64::from(u8::from(strategy.direction() == one)));
    let by_words = if strategy == Strategy::Tgm { 1.0 } else { bottom_up };
    let rows: Vec<_> = samples(tables, strategy)
        .map(|(stats, ns)| {
            let unvisited = bottom_up * stats.unvisited_vertices as f64;
            let terms = [
                1.0,
                top_down * stats.frontier_vertices as f64,
                top_down * stats.frontier_edges as f64,
                by_words * stats.vertices as f64 / 64.0,
                unvisited,
                unvisited * stats.sampled_probes.map_or(1.0, f64::from),
                0.0,
            ];
            (terms, ns, ns)
        })
        .collect();
    let mut cost = StrategyCost::default();
    for ((_, term), value) in cost.terms_mut().into_iter().zip(least_squares(&rows)) {
        *term = value;
    }
    (!rows.is_empty()).then_some(cost)
}

/// The cost of the changes that took these times in nanoseconds, each with the time of its level, changes included: most of the noise of a
/// change is that of its level.
fn change(times: impl Iterator<Item = (LevelStats, f64, f64)>) -> Option<ChangeCost> {
    let terms = |stats: LevelStats| [1.0, stats.vertices as f64 / 64.0, stats.frontier_vertices as f64];
    let rows: Vec<_> = times.map(|(stats, ns, level_ns)| (terms(stats), ns, level_ns)).collect();
    let [fixed_ns, word_ns, frontier_vertex_ns] = least_squares(&rows);
    (!rows.is_empty()).then_some(ChangeCost { fixed_ns, word_ns, frontier_vertex_ns })
}

/// The cost of a change from one strategy to another, over the pairs for which `are` is true.
fn change_cost(tables: &[LevelTable], are: impl Fn(Strategy, Strategy) -> bool) -> ChangeCost {
    let pairs = Strategy::ALL.into_iter().flat_map(|previous| Strategy::ALL.map(|strategy| (previous, strategy)));
    let pairs: Vec<_> = pairs.filter(|&(previous, strategy)| are(previous, strategy)).collect();
    let time = |level: &LevelTimes, a, b| Some((level.stats, level.change_ns(a, b)?, level.step_ns(Some(a), b)?));
    change(levels(tables).flat_map(|level| pairs.iter().filter_map(move |&(a, b)| time(level, a, b)))).unwrap_or_default()
}

impl SplitParts {
    /// The ratio by which the part of the CPU (0) or the GPU (1) takes longer while both work (`None`: the times do not tell). It loses its
    /// extra time while both work, which is until the first one ends.
    pub(crate) fn ratio(&self, side: usize) -> Option<f64> {
        let (overlap, own) = (self.both_ns[0].min(self.both_ns[1]), self.both_ns[side]);
        let alone = overlap - (own - self.alone_ns[side]);
        (2.0 * overlap >= own && alone > 0.0).then_some(overlap / alone)
    }
}

/// The number of edges that Zhang 2018 takes as the work of a level: edges out of the frontier top-down (equation 2), edges of unvisited
/// vertices bottom-up (equation 4).
pub(super) fn zhang_edges(stats: &LevelStats, direction: Direction) -> u64 {
    match direction {
        Direction::TopDown => stats.frontier_edges,
        Direction::BottomUp => stats.unvisited_edges,
    }
}

/// The ratios of [`SplitParts::ratio`] of the parts that `strategy` ran (`None`: no split level was long enough).
pub(super) fn corun(tables: &[LevelTable], strategy: Strategy) -> Option<Summary> {
    let kernels = GpuKernel::of(strategy.direction()).into_iter().filter(|&kernel| !strategy.is_gpu() || strategy == kernel.into());
    let parts = levels(tables).flat_map(|level| kernels.clone().filter_map(|kernel| level.parts[kernel as usize]));
    let long = parts.filter(|parts| parts.alone_ns.iter().all(|ns| *ns >= LEAST_PART_NS));
    Summary::of(&long.filter_map(|parts| parts.ratio(usize::from(strategy.is_gpu()))).collect::<Vec<_>>())
}

/// The time of a split level beyond that of its two parts (`None`: none was measured). A part counts with its share of the whole
/// time. The prediction gives it the whole fixed cost of its device, so predictions are too long where that is large. With the same rule
/// here they are closer, but decisions are worse: on simulated boards the mean regret of `adaptive` rises from 1.4 % to 1.8 %.
fn split_cost(tables: &[LevelTable], model: &CostModel, direction: Direction) -> Option<ChangeCost> {
    let kinds: Vec<_> = GpuKernel::of(direction).into_iter().flat_map(|kernel| SHARES.map(|share| (kernel, share))).collect();
    let beyond = |level: &LevelTimes, (kernel, share): (GpuKernel, u16)| {
        let part = f64::from(share) / 1000.0;
        let (cpu, gpu) = (Strategy::on_cpu(direction), kernel.into());
        let alone = [level.own_ns(cpu)? * (1.0 - part), level.own_ns(gpu)? * part];
        let parts_ns = together_ns(alone, [model.of(cpu)?.ratio(), model.of(gpu)?.ratio()]);
        let ns = level.split_ns(kernel, share)?;
        Some((level.stats, ns - parts_ns, ns))
    };
    change(levels(tables).flat_map(|level| kinds.iter().filter_map(move |&kind| beyond(level, kind))))
}

/// Non-negative coefficients with which the terms of the rows come closest to their times. The square of an error is divided by the time of
/// its level, the last value of a row. Coordinate descent on the normal equations is as good as any method for so few terms.
fn least_squares<const N: usize>(rows: &[([f64; N], f64, f64)]) -> [f64; N] {
    let mut gram = [[0.0; N]; N];
    let mut right = [0.0; N];
    for (terms, ns, level_ns) in rows {
        let weight = 1.0 / level_ns.max(NOISE_NS);
        for i in 0..N {
            for j in 0..N {
                gram[i][j] += weight * terms[i] * terms[j];
            }
            right[i] += weight * terms[i] * ns;
        }
    }
    let mut solution = [0.0; N];
    for _ in 0..10_000 {
        let mut moved = false;
        for i in 0..N {
            if gram[i][i] <= 0.0 {
                continue;
            }
            let others: f64 = (0..N).filter(|&j| j != i).map(|j| gram[i][j] * solution[j]).sum();
            let value = ((right[i] - others) / gram[i][i]).max(0.0);
            moved |= (value - solution[i]).abs() > 1e-9 * value.abs();
            solution[i] = value;
        }
        if !moved {
            break;
        }
    }
    solution
}

/// Sum of the regrets of the model's plans for all searches, each at most [`WORST`]. `oracles` holds the oracle's times in nanoseconds.
fn sum_of_regrets(model: &CostModel, tables: &[LevelTable], oracles: &[f64]) -> f64 {
    let policy = Policy::CostModel(Box::new(*model));
    let costs = tables.iter().zip(oracles);
    costs.map(|(table, oracle)| plans_ns(table, &policy).map_or(WORST, |ns| (ns / oracle - 1.0).min(WORST))).sum()
}

/// The model without the costs of split levels of a direction if they do not save enough: searches that split no level need less memory and
/// less time to decide.
fn without_useless_splits(mut model: CostModel, tables: &[LevelTable], oracles: &[f64]) -> CostModel {
    let splits: [fn(&mut CostModel) -> &mut Option<ChangeCost>; 2] =
        [|model| &mut model.top_down_split, |model| &mut model.bottom_up_split];
    for split in splits {
        let mut without = model;
        *split(&mut without) = None;
        if sum_of_regrets(&without, tables, oracles) - sum_of_regrets(&model, tables, oracles) < WORTH * tables.len() as f64 {
            model = without;
        }
    }
    model
}

/// Moves terms as long as the model's plans for the searches of `tables` get cheaper.
fn refine(mut model: CostModel, tables: &[LevelTable], oracles: &[f64]) -> CostModel {
    let regret = |model: &CostModel| sum_of_regrets(model, tables, oracles);
    let fitted = model;
    let mut least = regret(&model);
    for _ in 0..ROUNDS {
        let before = least;
        for strategy in Strategy::ALL {
            let Some(mut start) = fitted.of(strategy).copied() else { continue };
            for (place, (_, fitted)) in start.terms_mut().into_iter().enumerate().filter(|(_, (_, fitted))| **fitted > 0.0) {
                for step in STEPS {
                    let mut tried = model;
                    if let Some(cost) = tried.of_mut(strategy) {
                        let (_, value) = &mut cost.terms_mut()[place];
                        **value = (**value * step).clamp(*fitted / MOST, *fitted * MOST);
                    }
                    let now = regret(&tried);
                    if now < least - 1e-9 {
                        (least, model) = (now, tried);
                    }
                }
            }
        }
        if before - least < 1e-4 * tables.len() as f64 {
            break;
        }
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::table_regret;

    #[test]
    fn least_squares_finds_the_coefficients_of_the_times() {
        let rows: Vec<_> = (0..50)
            .map(|i| {
                let (a, b) = (f64::from(i * 37 % 101) * 100.0, f64::from(i * i % 53) * 1000.0);
                let ns = 5000.0 + 3.0 * a + 0.25 * b;
                ([1.0, a, b], ns, ns)
            })
            .collect();
        let [fixed, a, b] = least_squares(&rows);
        assert!((fixed - 5000.0).abs() < 1.0 && (a - 3.0).abs() < 1e-3 && (b - 0.25).abs() < 1e-3, "{fixed} {a} {b}");
        // A coefficient that would be negative is 0, and the others fit as well as they can.
        let falling: Vec<_> = (1..9).map(|i| ([1.0, f64::from(i)], 9000.0 - 100.0 * f64::from(i), 9000.0)).collect();
        let [fixed, slope] = least_squares(&falling);
        assert!(slope == 0.0 && (8400.0..8700.0).contains(&fixed), "{fixed} {slope}");
        assert_eq!(least_squares::<2>(&[]), [0.0, 0.0]);
    }

    /// A change is the difference of two times of a level, each with its noise. So it may seem to take no time at all.
    #[test]
    fn the_cost_of_a_change_is_found_below_the_noise_of_its_levels() {
        let level = |i: u64| {
            let frontier_vertices = 1 + i * i * 37;
            let (level_ns, noise) = (40.0 * frontier_vertices as f64, [-0.04, 0.04, 0.02, -0.02][i as usize % 4]);
            let stats = LevelStats { vertices: 64 << (i % 5), frontier_vertices, ..LevelStats::default() };
            (stats, 9000.0 + frontier_vertices as f64 + noise * level_ns, level_ns)
        };
        let cost = change((1..200).map(level)).unwrap();
        assert!((cost.fixed_ns / 9000.0 - 1.0).abs() < 0.1 && (cost.frontier_vertex_ns - 1.0).abs() < 0.1, "{cost:?}");
    }

    /// A table of TC and BC, made from JSON, with times by `time`, and 500 ns for every change before a level that has vertices left to
    /// find.
    fn table(levels: &[LevelStats], time: impl Fn(&LevelStats, Strategy) -> f64) -> LevelTable {
        let levels: Vec<serde_json::Value> = levels
            .iter()
            .map(|stats| {
                let mut own = [None; 6];
                let mut after = [[None; 6]; 6];
                for strategy in Strategy::CPU {
                    own[strategy as usize] = Some(time(stats, strategy));
                    for previous in Strategy::CPU {
                        let change = if previous == strategy || stats.unvisited_vertices == 0 { 0.0 } else { 500.0 };
                        after[previous as usize][strategy as usize] = Some(time(stats, strategy) + change);
                    }
                }
                serde_json::json!({ "stats": stats, "found": 1, "own": own, "after": after })
            })
            .collect();
        serde_json::from_value(serde_json::json!({ "root": 0, "strategies": ["tc", "bc"], "levels": levels })).unwrap()
    }

    /// A search whose frontier grows and then shrinks, before a level that has nothing left to find; `size` scales the graph.
    fn search(size: u64) -> Vec<LevelStats> {
        let vertices = 1000 * size;
        [1, 40, 9 * size, 300 * size, 500 * size, 30 * size, 2, 161 * size - 43]
            .iter()
            .scan(0, |visited, &frontier| {
                *visited += frontier;
                let unvisited = vertices - *visited;
                Some(LevelStats {
                    vertices,
                    frontier_vertices: frontier,
                    frontier_edges: frontier * (7 + *visited % 13),
                    unvisited_vertices: unvisited,
                    unvisited_edges: unvisited * (3 + size % 7),
                    sampled_probes: Some(1.0 + (*visited % 5) as f32 / 2.0),
                    ..LevelStats::default()
                })
            })
            .enumerate()
            .map(|(level, stats)| LevelStats { level: level as u32, ..stats })
            .collect()
    }

    #[test]
    fn fit_recovers_the_model_that_generated_the_times() {
        let time = |stats: &LevelStats, strategy: Strategy| match strategy {
            // The search is over before the last level begins.
            _ if stats.unvisited_vertices == 0 => 70.0,
            Strategy::Tc => 800.0 + 6.0 * stats.frontier_vertices as f64 + 1.5 * stats.frontier_edges as f64,
            _ => {
                let probes = f64::from(stats.sampled_probes.unwrap_or(1.0));
                1500.0 + 4.0 * stats.vertices as f64 / 64.0 + (2.0 + 0.5 * probes) * stats.unvisited_vertices as f64
            }
        };
        let tables: Vec<LevelTable> = (5..60).map(|size| table(&search(size), time)).collect();
        let model = fit(&tables).unwrap();
        // Least squares give exactly these numbers. Where a level is too short for a sample, a step away from them may decide better.
        let close = |got: f64, wanted: f64| assert!((got / wanted - 1.0).abs() < 0.06, "{got} is not {wanted}");
        let (tc, bc) = (model.tc.unwrap(), model.bc.unwrap());
        close(tc.frontier_vertex_ns, 6.0);
        close(tc.frontier_edge_ns, 1.5);
        close(bc.unvisited_vertex_ns, 2.0);
        close(bc.probe_ns, 0.5);
        close(model.to_bottom_up.fixed_ns, 500.0);
        assert!(!model.has_gpu());
        // The regret that remains: the oracle looks ahead, and the model does not.
        let full = table_regret(&tables, &Policy::CostModel(Box::new(model))).unwrap();
        let zhang = table_regret(&tables, &Policy::CostModel(Box::new(fit_zhang(&tables).unwrap()))).unwrap();
        assert!(full < 0.01 && zhang > 2.0 * full, "{full} {zhang}");
    }

    #[test]
    fn the_fit_of_zhang_takes_the_mean_speed() {
        let mut levels = search(9);
        levels.truncate(3);
        for stats in &mut levels {
            (stats.frontier_edges, stats.unvisited_edges) = (1000, 5000);
        }
        // Level 0 does not count, since it includes the reset. Top-down speeds are 1 and 3 arcs a nanosecond, bottom-up speeds 5 and 5.
        let tables = [table(&levels, |stats, strategy| match (stats.level, strategy) {
            (1, Strategy::Tc) => 1000.0,
            (2, Strategy::Tc) => 1000.0 / 3.0,
            (_, Strategy::Tc) => 77.0,
            _ => 1000.0,
        })];
        let model = fit_zhang(&tables).unwrap();
        assert_eq!(model.form, ModelTerms::Zhang);
        assert!((model.tc.unwrap().frontier_edge_ns - 0.5).abs() < 1e-12);
        assert!((model.bc.unwrap().unvisited_edge_ns - 0.2).abs() < 1e-12);
        assert_eq!(fit_zhang(&[]), None);
        assert_eq!(fit(&[]), None);
    }
}
