//! From how much work on the GPU is the faster device, measured on the graph at hand.

use crate::{
    bfs::{Direction, LevelRecord, Placement},
    graph::{NONE, Vertex},
    policy::{Line, Policy, Runs, SampledCosts, Threshold, Thresholds},
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
    /// The thresholds of [`Policy::Selective`].
    pub thresholds: Thresholds,
    /// TC: nanoseconds over arcs of the frontier (`None`: no such level occurred).
    pub tc: Option<Line>,
    /// TG.
    pub tg: Option<Line>,
    /// BC: nanoseconds over unvisited vertices.
    pub bc: Option<Line>,
    /// BG or BGC.
    pub bg: Option<Line>,
    /// Nanoseconds of one hand-over of the search's state, conversions included.
    pub handover_ns: f64,
    /// Nanoseconds that searches from the same roots took on the CPU alone.
    pub cpu_ns: u64,
    /// The same on the GPU alone.
    pub gpu_ns: u64,
}

/// Searches with either device alone and with both in turn, and compares what their levels cost. `runs` says by which kernels
/// the GPU searches. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] where the search was not set up with a device for [`Policy::Selective`], or a device fails.
pub fn thresholds(search: &mut Search<'_>, runs: Runs) -> Result<Measured, SearchError> {
    let roots = roots(search);
    let sampled = Policy::Sampled(SampledCosts::default());
    // The first search of each kind warms up: pages, caches, kernels that a driver finishes at their first launch.
    let cpu = records(search, sampled.clone(), Runs::Cpu, &roots)?;
    let gpu = records(search, sampled, runs, &roots)?;
    let in_turn = Policy::Selective(Some(Thresholds { top_down: Threshold::at(0), bottom_up: Threshold::NEVER }));
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
    let between = |cpu: Option<Line>, gpu: Option<Line>| match (cpu, gpu) {
        (Some(cpu), Some(gpu)) => Threshold::between(cpu, gpu, handover_ns),
        _ => Threshold::NEVER,
    };
    let lines = Thresholds { top_down: between(tc, tg), bottom_up: between(bc, bg) };
    // Lines are a simple model. Whole searches have the last word, and the simplest of equals.
    let never = Thresholds { top_down: Threshold::NEVER, bottom_up: Threshold::NEVER };
    let always = Thresholds { top_down: Threshold::at(0), bottom_up: Threshold::at(0) };
    let (mut thresholds, least) = if cpu_ns <= gpu_ns { (never, cpu_ns) } else { (always, gpu_ns) };
    if lines != never && lines != always {
        let by_lines = records(search, Policy::Selective(Some(lines)), runs, &roots)?;
        if (by_lines.elapsed_ns as f64) < GAIN * least as f64 {
            thresholds = lines;
        }
    }
    Ok(Measured { thresholds, tc, tg, bc, bg, handover_ns, cpu_ns, gpu_ns })
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

fn records(search: &mut Search<'_>, policy: Policy, runs: Runs, roots: &[Vertex]) -> Result<Searches, SearchError> {
    search.set_policy(policy, runs)?;
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
            threads: 1,
        }
    }

    #[test]
    fn a_line_goes_through_the_cheapest_level() {
        let levels = [(0, 100, 1), (1000, 2100, 1), (3000, 6100, 1), (7, 5000, 50)]
            .map(|(work, elapsed, levels)| record(Direction::TopDown, work, elapsed, levels));
        assert_eq!(line(&levels, Direction::TopDown), Some(Line { fixed_ns: 100.0, ns_per_unit: 2.0 }));
        assert_eq!(line(&levels, Direction::BottomUp), None);
    }
}
