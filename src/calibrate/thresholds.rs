//! From how much work on the GPU is the faster device, measured on the graph at hand.

use crate::{
    bfs::{Direction, LevelRecord, Placement},
    graph::{NONE, Vertex},
    policy::{Adaptive, Band, Bands, ChangeCost, Concurrent, CostModel, LevelDevice, NEVER, Policy, SampledCosts, Selective},
    search::{Search, SearchError},
};

/// Roots searched from, spread over the vertices, beside the one with most edges.
const ROOTS: usize = 3;
/// Searches from each root by each device; the fastest counts.
const TURNS: usize = 2;

/// Thresholds that change device within a search must gain this much over the better device alone to be taken.
const GAIN: f64 = 0.97;

/// What was measured to find thresholds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Measured {
    /// From how much work on the GPU, and both, run levels of either direction.
    pub bands: Bands,
    /// TC: nanoseconds over arcs of the frontier (`None`: no such level occurred).
    pub tc: Option<Line>,
    /// TG.
    pub tg: Option<Line>,
    /// BC: nanoseconds over unvisited vertices.
    pub bc: Option<Line>,
    /// BG or BGC.
    pub bg: Option<Line>,
    /// Top-down levels on both (`None`: none was split).
    pub split_top_down: Option<Line>,
    /// Bottom-up levels on both.
    pub split_bottom_up: Option<Line>,
    /// Nanoseconds of one handover of the search's state, conversions included.
    pub handover_ns: f64,
    /// Nanoseconds that searches from the same roots took on the CPU alone.
    pub cpu_ns: u64,
    /// The same on the GPU alone.
    pub gpu_ns: u64,
}

impl Measured {
    /// The policy that knows all of it.
    pub fn adaptive(&self) -> Adaptive {
        // One handover is measured, whatever its direction.
        let handover = ChangeCost { fixed_ns: self.handover_ns, ..ChangeCost::default() };
        let model = CostModel { to_gpu: handover, to_cpu: handover, ..SampledCosts::default().into() };
        Adaptive { model, ..Adaptive::of(self.bands) }
    }
}

/// How long a level takes: a fixed time and a time for every unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Line {
    /// Nanoseconds of a level without work.
    pub fixed_ns: f64,
    /// Nanoseconds per unit: an arc of the frontier (top-down), an unvisited vertex (bottom-up).
    pub ns_per_unit: f64,
}

impl Line {
    /// From how much work on `gpu` is the faster one.
    fn crossing(self, gpu: Self) -> u64 {
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

/// Searches with either device alone and with both in turn, and compares what their levels cost. `runs` says by which kernels
/// the GPU searches, `splits` whether levels on both are measured too. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] where the search was not set up with a device for [`Policy::Selective`], or a device fails.
pub fn thresholds(search: &mut Search<'_>, runs: LevelDevice, splits: bool) -> Result<Measured, SearchError> {
    let roots = roots(search);
    let sampled = Policy::Sampled(SampledCosts::default());
    // The first search of each kind warms up: pages, caches, kernels that a driver finishes at their first launch.
    let cpu = records(search, sampled.clone(), LevelDevice::Cpu, &roots)?;
    let gpu = records(search, sampled, runs, &roots)?;
    let in_turn = selective(Adaptive::of(Bands { top_down: Band::gpu_from(0), bottom_up: Band::CPU }));
    let both = records(search, in_turn, runs, &roots)?;
    let mut moved: Vec<u64> = both
        .levels
        .iter()
        .filter(|record| {
            let was_gpu = matches!(record.stats.previous_placement, Some(Placement::Gpu(_)));
            was_gpu != matches!(record.plan.placement, Placement::Gpu(_))
        })
        .map(|record| record.handover_ns + record.conversion_ns)
        .collect();
    moved.sort_unstable();
    let handover_ns = moved.get(moved.len() / 2).copied().unwrap_or(0) as f64;
    let (cpu_ns, gpu_ns) = (cpu.elapsed_ns, gpu.elapsed_ns);
    let (cpu, gpu) = (cpu.levels, gpu.levels);
    let (tc, tg) = (line(&cpu, Direction::TopDown), line(&gpu, Direction::TopDown));
    let (bc, bg) = (line(&cpu, Direction::BottomUp), line(&gpu, Direction::BottomUp));
    let split = if splits { records(search, together(), runs, &roots)?.levels } else { Vec::new() };
    let (split_top_down, split_bottom_up) = (line(&split, Direction::TopDown), line(&split, Direction::BottomUp));
    let band = |cpu: Option<Line>, gpu: Option<Line>, both: Option<Line>, direction| match (cpu, gpu) {
        (Some(cpu), Some(gpu)) => Band {
            // Both have to be faster than either alone.
            split_from: Some(both.map_or(NEVER, |both| cpu.crossing(both).max(gpu.crossing(both)))),
            gpu_permille: share(&split, direction),
            ..Band::gpu_from(cpu.crossing(gpu))
        },
        _ => Band::CPU,
    };
    let lines =
        Bands { top_down: band(tc, tg, split_top_down, Direction::TopDown), bottom_up: band(bc, bg, split_bottom_up, Direction::BottomUp) };
    // Lines are a simple model. Whole searches have the last word, and the simplest of equals.
    let always = Bands { top_down: Band::gpu_from(0), bottom_up: Band::gpu_from(0) };
    let (simplest, mut least) = if cpu_ns <= gpu_ns { (Bands::CPU, cpu_ns) } else { (always, gpu_ns) };
    let mut measured = Measured { bands: simplest, tc, tg, bc, bg, split_top_down, split_bottom_up, handover_ns, cpu_ns, gpu_ns };
    let never_split = |band: Band| Band { split_from: Some(NEVER), ..band };
    let alone = Bands { top_down: never_split(lines.top_down), bottom_up: never_split(lines.bottom_up) };
    for bands in [alone, lines] {
        if bands == measured.bands || (bands == lines && !splits) {
            continue;
        }
        let adaptive = Policy::Adaptive(Box::new(Measured { bands, ..measured }.adaptive()));
        let by_lines = records(search, if splits { adaptive } else { selective(Measured { bands, ..measured }.adaptive()) }, runs, &roots)?;
        if (by_lines.elapsed_ns as f64) < GAIN * least as f64 {
            (measured.bands, least) = (bands, by_lines.elapsed_ns);
        }
    }
    // The share is worth knowing even where splitting does not pay here.
    measured.bands.top_down.gpu_permille = lines.top_down.gpu_permille;
    measured.bands.bottom_up.gpu_permille = lines.bottom_up.gpu_permille;
    Ok(measured)
}

/// Every level split.
fn together() -> Policy {
    let half = Band::split_from(0, 500);
    Policy::Concurrent(Box::new(Concurrent::new(Adaptive::of(Bands { top_down: half, bottom_up: half }))))
}

/// The GPU's share of split levels of this direction, in thousandths: the median of what searches came to.
fn share(levels: &[LevelRecord], direction: Direction) -> Option<u16> {
    let share = |record: &LevelRecord| match record.plan.placement {
        Placement::Split { gpu_permille, .. } if record.plan.direction == direction => Some(gpu_permille),
        _ => None,
    };
    let mut shares: Vec<u16> = levels.iter().filter_map(share).collect();
    shares.sort_unstable();
    shares.get(shares.len() / 2).copied()
}

fn selective(adaptive: Adaptive) -> Policy {
    Policy::Selective(Box::new(Selective::new(adaptive)))
}

/// The vertex with most edges, and some others that have any.
fn roots(search: &Search<'_>) -> Vec<Vertex> {
    let degrees = search.layout().input_degrees();
    let most = (0..degrees.len()).max_by_key(|&v| degrees[v]);
    let step = (degrees.len() / ROOTS).max(1);
    let spread =
        (0..ROOTS).filter_map(|i| (i * step..degrees.len()).find(|&v| degrees[v] > 0 && search.layout().to_internal(v as Vertex) != NONE));
    let mut roots: Vec<Vertex> = most.into_iter().chain(spread).map(|v| v as Vertex).collect();
    roots.sort_unstable();
    roots.dedup();
    roots
}

/// The fastest search from each root.
#[derive(Default)]
struct Searches {
    levels: Vec<LevelRecord>,
    elapsed_ns: u64,
}

fn records(search: &mut Search<'_>, policy: Policy, runs: LevelDevice, roots: &[Vertex]) -> Result<Searches, SearchError> {
    search.set_policy(policy, runs)?;
    // A level that is run ahead has no time of its own.
    search.set_looks_ahead(false);
    let result = roots_records(search, roots);
    search.set_looks_ahead(true);
    result
}

fn roots_records(search: &mut Search<'_>, roots: &[Vertex]) -> Result<Searches, SearchError> {
    let mut all = Searches::default();
    for &root in roots {
        search.run(root)?;
        let mut best: Option<(std::time::Duration, Vec<LevelRecord>)> = None;
        for _ in 0..TURNS {
            let elapsed = search.run(root)?.elapsed;
            if best.as_ref().is_none_or(|(least, _)| elapsed < *least) {
                best = Some((elapsed, search.records().to_vec()));
            }
        }
        if let Some((elapsed, levels)) = best {
            all.elapsed_ns += elapsed.as_nanos() as u64;
            all.levels.extend(levels);
        }
    }
    Ok(all)
}

/// The straight line through the levels of one direction: the cheapest level is the fixed part, and the rest is in
/// proportion to the work.
fn line(records: &[LevelRecord], direction: Direction) -> Option<Line> {
    let levels = || records.iter().filter(|record| record.plan.direction == direction);
    let own =
        |record: &LevelRecord| (record.elapsed_ns - record.handover_ns.min(record.elapsed_ns)) as f64 / f64::from(record.levels.max(1));
    let fixed_ns = levels().map(own).min_by(f64::total_cmp)?;
    let (mut work, mut time) = (0.0, 0.0);
    for record in levels().filter(|record| record.levels <= 1) {
        work += match direction {
            Direction::TopDown => record.stats.frontier_edges,
            Direction::BottomUp => record.stats.unvisited_vertices,
        } as f64;
        time += own(record) - fixed_ns;
    }
    Some(Line { fixed_ns, ns_per_unit: if work > 0.0 { time / work } else { 0.0 } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfs::{LevelPlan, LevelStats};

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
        // A GPU that is slower at everything, and one that is faster at everything.
        assert_eq!(gpu.crossing(Line { fixed_ns: 30_000.0, ns_per_unit: 1.5 }), NEVER);
        assert_eq!(gpu.crossing(Line { fixed_ns: 0.0, ns_per_unit: 0.5 }), 0);
    }

    #[test]
    fn a_line_goes_through_the_cheapest_level() {
        let levels = [(0, 100, 1), (1000, 2100, 1), (3000, 6100, 1), (7, 5000, 50)]
            .map(|(work, elapsed, levels)| record(Direction::TopDown, work, elapsed, levels));
        assert_eq!(line(&levels, Direction::TopDown), Some(Line { fixed_ns: 100.0, ns_per_unit: 2.0 }));
        assert_eq!(line(&levels, Direction::BottomUp), None);
    }
}
