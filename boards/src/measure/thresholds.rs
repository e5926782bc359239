//! Measures, on the graph that is searched, how much work a level needs for the GPU to be the faster device.

use super::searched::{ROOTS, Took, fastest, median, own_ns, probes, roots, timed};
use socbfs::{
    SampledCosts,
    bfs::{Direction, LevelRecord, Placement, Strategy},
    graph::Vertex,
    search::{Search, SearchError},
};
use socbfs_policy::{Adaptive, Band, Bands, ChangeCost, CostModel, LevelDevice, ModelTerms, NEVER, Policy, StrategyCost, work_of};

/// Bands that change the device within a search are chosen only if searches take less than this share of the time of the best bands so far.
const GAIN: f64 = 0.97;

/// The results of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Measured {
    /// The amounts of work from which the GPU, and both, run levels of either direction.
    pub bands: Bands,
    /// Time of the CPU's top-down levels divided by their time by [`CostModel::shipped`].
    pub top_down_factor: f64,
    /// The same factor of bottom-up levels.
    pub bottom_up_factor: f64,
    /// TC: nanoseconds by arcs of the frontier (`None`: no such level occurred).
    pub tc: Option<Line>,
    /// TG: nanoseconds by arcs of the frontier.
    pub tg: Option<Line>,
    /// BC: nanoseconds by unvisited vertices.
    pub bc: Option<Line>,
    /// BG or BGC: nanoseconds by unvisited vertices.
    pub bg: Option<Line>,
    /// Top-down levels on both devices (`None`: none was split).
    pub split_top_down: Option<Line>,
    /// Bottom-up levels on both devices.
    pub split_bottom_up: Option<Line>,
    /// Nanoseconds of one handover of the search's state, with conversions.
    pub handover_ns: f64,
    /// Nanoseconds of the searches on the CPU alone.
    pub cpu_ns: u64,
    /// Nanoseconds of the searches from the same roots on the GPU alone.
    pub gpu_ns: u64,
    /// Whether searches that ran every level on the GPU, in the direction that a sample of the unvisited vertices says, took less time than
    /// those with `bands`. They look further ahead.
    #[serde(default)]
    pub gpu_alone: bool,
}

impl Measured {
    /// The costs of the CPU on this graph. A machine's costs depend on how much of a graph its caches hold, so they differ more between
    /// graphs than between the two directions.
    fn cpu_model(&self) -> CostModel {
        let shipped = CostModel::shipped(ModelTerms::Full);
        let times = |cost: Option<StrategyCost>, factor| cost.map(|cost| cost.times(factor));
        CostModel { tc: times(shipped.tc, self.top_down_factor), bc: times(shipped.bc, self.bottom_up_factor), ..shipped }
    }

    /// The policy `adaptive` with the measured bands and costs.
    pub fn adaptive(&self) -> Adaptive {
        // One cost of a handover was measured, for both ways.
        let handover = ChangeCost { fixed_ns: self.handover_ns, ..ChangeCost::default() };
        let model = CostModel { to_gpu: handover, to_cpu: handover, ..self.cpu_model() };
        Adaptive::new(self.bands, model)
    }
}

/// The time of a level: a fixed part, and a part for every unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Line {
    /// Nanoseconds of a level without work.
    pub fixed_ns: f64,
    /// Nanoseconds per unit: an arc of the frontier (top-down), an unvisited vertex (bottom-up).
    pub ns_per_unit: f64,
}

impl Line {
    /// The amount of work from which `gpu` is faster.
    pub fn crossing(self, gpu: Self) -> u64 {
        let (gain, cost) = (self.ns_per_unit - gpu.ns_per_unit, gpu.fixed_ns - self.fixed_ns);
        if cost <= 0.0 && gain >= 0.0 {
            0
        } else if gain <= 0.0 {
            NEVER
        } else {
            (cost / gain).min(NEVER as f64) as u64
        }
    }
}

/// Searches with each device alone and with both in turn, and compares the times of their levels. `runs` gives the GPU's kernels, and
/// `splits` says whether levels on both devices are measured too. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] if the search was not set up with a device for the policy `selective`, or a device fails.
pub fn thresholds(search: &mut Search<'_>, runs: LevelDevice, splits: bool) -> Result<Measured, SearchError> {
    let roots = roots(search, ROOTS);
    let sampled = Policy::Sampled(SampledCosts::default());
    let changing = selective(Adaptive::of(Bands { top_down: Band::gpu_from(0), bottom_up: Band::CPU }));
    let mut kinds = vec![(sampled.clone(), LevelDevice::Cpu), (sampled.clone(), runs), (changing, runs)];
    // A policy that splits every level.
    let together = || Policy::Adaptive(Box::new(Adaptive::of(Bands::by(|_| Band::split_from(0, 500))).concurrent()));
    kinds.extend(splits.then(|| (together(), runs)));
    let mut searches = in_turn(search, &kinds, &roots, false)?.into_iter();
    let mut next = || searches.next().unwrap_or_default();
    let (cpu, gpu, both, split) = (next(), next(), next(), next().levels);
    let is_moved = |record: &&LevelRecord| {
        let was_gpu = matches!(record.stats.previous_placement, Some(Placement::Gpu(_)));
        was_gpu != matches!(record.plan.placement, Placement::Gpu(_))
    };
    let moved = both.levels.iter().filter(is_moved).map(|record| record.handover_ns + record.conversion_ns);
    let handover_ns = median(moved.collect()).unwrap_or(0) as f64;
    let (cpu_ns, gpu_ns) = (cpu.elapsed_ns, gpu.elapsed_ns);
    let (cpu, gpu) = (cpu.levels, gpu.levels);
    let (top_down, bottom_up) = (factor(&cpu, Direction::TopDown), factor(&cpu, Direction::BottomUp));
    // A direction that did not occur gets the factor of the other one.
    let (top_down_factor, bottom_up_factor) = (top_down.or(bottom_up).unwrap_or(1.0), bottom_up.or(top_down).unwrap_or(1.0));
    let lines = |direction| [&cpu, &gpu, &split].map(|levels| line(levels, direction));
    let ([tc, tg, split_top_down], [bc, bg, split_bottom_up]) = (lines(Direction::TopDown), lines(Direction::BottomUp));
    let lines = Bands::by(|direction| match lines(direction) {
        [Some(cpu), Some(gpu), both] => Band {
            // Both together have to be faster than either device alone.
            split_from: Some(both.map_or(NEVER, |both| cpu.crossing(both).max(gpu.crossing(both)))),
            gpu_permille: share(&split, direction),
            ..Band::gpu_from(cpu.crossing(gpu))
        },
        _ => Band::CPU,
    });
    // Lines are a simple model, so the times of whole searches decide, in which a device runs levels ahead. The first of equal candidates
    // wins, which is the simplest.
    let always = Bands::by(|_| Band::gpu_from(0));
    let alone = Bands::by(|direction| Band { split_from: Some(NEVER), ..*lines.of(direction) });
    let mut measured = Measured {
        bands: Bands::CPU,
        top_down_factor,
        bottom_up_factor,
        tc,
        tg,
        bc,
        bg,
        split_top_down,
        split_bottom_up,
        handover_ns,
        cpu_ns,
        gpu_ns,
        gpu_alone: false,
    };
    let mut candidates = vec![(Bands::CPU, 1.0), (always, 1.0)];
    for (bands, is_possible) in [(alone, true), (lines, splits)] {
        if is_possible && candidates.iter().all(|(others, _)| *others != bands) {
            candidates.push((bands, GAIN));
        }
    }
    let policy = |&(bands, _): &(Bands, f64)| {
        let adaptive = Measured { bands, ..measured }.adaptive();
        (if splits { Policy::Adaptive(Box::new(adaptive)) } else { selective(adaptive) }, runs)
    };
    let kinds: Vec<_> = candidates.iter().map(policy).chain([(sampled, runs)]).collect();
    let mut searches = in_turn(search, &kinds, &roots, true)?;
    let gpu_alone = searches.pop().unwrap_or_default();
    let mut least = f64::INFINITY;
    for ((bands, gain), searches) in candidates.into_iter().zip(searches) {
        if (searches.elapsed_ns as f64) < gain * least {
            (measured.bands, least) = (bands, searches.elapsed_ns as f64);
        }
    }
    measured.gpu_alone = (gpu_alone.elapsed_ns as f64) < least;
    // The share is worth knowing even if splitting does not pay here.
    measured.bands.top_down.gpu_permille = lines.top_down.gpu_permille;
    measured.bands.bottom_up.gpu_permille = lines.bottom_up.gpu_permille;
    Ok(measured)
}

/// The GPU's share of split levels of this direction, in thousandths: the median over these records.
fn share(levels: &[LevelRecord], direction: Direction) -> Option<u16> {
    let share = |record: &LevelRecord| match record.plan.placement {
        Placement::Split { gpu_permille, .. } if record.plan.direction == direction => Some(gpu_permille),
        _ => None,
    };
    median(levels.iter().filter_map(share).collect())
}

fn selective(adaptive: Adaptive) -> Policy {
    Policy::Adaptive(Box::new(adaptive.selective()))
}

/// The fastest searches from all roots by one policy.
#[derive(Default, Clone)]
struct Searches {
    levels: Vec<LevelRecord>,
    elapsed_ns: u64,
}

/// Searches from the same roots by each of these policies in turn. With `looks_ahead`, a device runs levels ahead, whose records have no
/// times of their own.
fn in_turn(
    search: &mut Search<'_>,
    kinds: &[(Policy, LevelDevice)],
    roots: &[Vertex],
    looks_ahead: bool,
) -> Result<Vec<Searches>, SearchError> {
    search.set_looks_ahead(looks_ahead);
    let result = roots.iter().try_fold(vec![Searches::default(); kinds.len()], |mut all, &root| {
        for (sum, (elapsed, levels)) in all.iter_mut().zip(fastest(search, kinds, root)?) {
            sum.elapsed_ns += elapsed.as_nanos() as u64;
            sum.levels.extend(levels);
        }
        Ok(all)
    });
    search.set_looks_ahead(true);
    result
}

/// The time of the CPU's levels of one direction divided by their time by [`CostModel::shipped`] (`None`: there were none).
fn factor(records: &[LevelRecord], direction: Direction) -> Option<f64> {
    let model = CostModel::shipped(ModelTerms::Full);
    let cost = model.of(Strategy::on_cpu(direction))?;
    let mut took = Took::default();
    for record in timed(records).filter(|record| record.plan.direction == direction && record.levels <= 1) {
        took.add(own_ns(record), cost.level_ns(&record.stats, probes(&record.stats)));
    }
    took.factor()
}

/// The line through the levels of one direction: the cheapest level is the fixed part, and the rest is in proportion to the work.
fn line(records: &[LevelRecord], direction: Direction) -> Option<Line> {
    let levels = || timed(records).filter(|record| record.plan.direction == direction);
    let own =
        |record: &LevelRecord| (record.elapsed_ns - record.handover_ns.min(record.elapsed_ns)) as f64 / f64::from(record.levels.max(1));
    let fixed_ns = levels().map(own).min_by(f64::total_cmp)?;
    let (mut work, mut time) = (0.0, 0.0);
    for record in levels().filter(|record| record.levels <= 1) {
        work += work_of(&record.stats, direction) as f64;
        time += own(record) - fixed_ns;
    }
    Some(Line { fixed_ns, ns_per_unit: if work > 0.0 { time / work } else { 0.0 } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::bfs::{LevelPlan, LevelStats};

    fn record(direction: Direction, work: u64, elapsed_ns: u64, levels: u32) -> LevelRecord {
        LevelRecord {
            stats: LevelStats {
                level: 1,
                vertices: 100,
                arcs: 1000,
                frontier_vertices: 3,
                frontier_edges: work,
                unvisited_vertices: work,
                unvisited_edges: 10,
                previous_frontier_vertices: 1,
                previous_direction: None,
                previous_placement: None,
                previous_cpu_ns: 0,
                previous_gpu_ns: 0,
                sampled_probes: None,
                ..LevelStats::default()
            },
            plan: LevelPlan { direction, placement: Placement::Cpu },
            levels,
            found: 1,
            elapsed_ns,
            conversion_ns: 0,
            decision_ns: 0,
            handover_ns: 0,
            cpu_ns: 0,
            gpu_ns: 0,
            copy_ns: 0,
            wait_ns: 0,
            merge_ns: 0,
            device_ns: 0,
            threads: 1,
            with_previous: false,
        }
    }

    #[test]
    fn lines_cross_where_the_gpu_gets_faster() {
        let (cpu, gpu) = (Line { fixed_ns: 1000.0, ns_per_unit: 2.0 }, Line { fixed_ns: 21_000.0, ns_per_unit: 1.0 });
        assert_eq!(cpu.crossing(gpu), 20_000);
        // A GPU that is slower at every level, and one that is faster at every level.
        assert_eq!(gpu.crossing(Line { fixed_ns: 30_000.0, ns_per_unit: 1.5 }), NEVER);
        assert_eq!(gpu.crossing(Line { fixed_ns: 0.0, ns_per_unit: 0.5 }), 0);
    }

    #[test]
    fn slower_levels_of_a_graph_give_a_factor_for_each_direction() {
        // Three vertices and 1000 arcs top-down: 170 + 3 * 6.7 + 1000 * 1.5 ns.
        let top_down = record(Direction::TopDown, 1000, 2 * 1690, 1);
        // 1000 unvisited vertices that look at one neighbour each, in 100 / 64 words: 6 + 1000 * (2.2 + 0.44) ns.
        let bottom_up = record(Direction::BottomUp, 1000, 5 * 2646, 1);
        let levels = [top_down, bottom_up, record(Direction::TopDown, 7, 5000, 50)];
        let found = [Direction::TopDown, Direction::BottomUp].map(|direction| factor(&levels, direction).unwrap());
        assert!((found[0] - 2.0).abs() < 0.01 && (found[1] - 5.0).abs() < 0.01, "{found:?}");
        assert_eq!(factor(&levels[..1], Direction::BottomUp), None);
        // The time of level 0 includes the reset of the state.
        let mut first = record(Direction::TopDown, 1000, 1 << 30, 1);
        first.stats.level = 0;
        assert_eq!(factor(&[first, levels[0]], Direction::TopDown), Some(found[0]));
        assert_eq!(line(&[first], Direction::TopDown), None);
    }

    #[test]
    fn a_line_goes_through_the_cheapest_level() {
        let levels = [(0, 100, 1), (1000, 2100, 1), (3000, 6100, 1), (7, 5000, 50)]
            .map(|(work, elapsed, levels)| record(Direction::TopDown, work, elapsed, levels));
        assert_eq!(line(&levels, Direction::TopDown), Some(Line { fixed_ns: 100.0, ns_per_unit: 2.0 }));
        assert_eq!(line(&levels, Direction::BottomUp), None);
    }
}
