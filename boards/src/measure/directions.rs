//! The cost of bottom-up levels on a device, relative to top-down ones.

use std::time::{Duration, Instant};

use super::searched::{ROOTS, Took, fastest, own_ns, probes, roots, timed};
use socbfs::{
    SampledCosts,
    bfs::{Direction, LevelStats, Placement, Strategy},
    search::{Search, SearchError},
};
use socbfs_policy::{CostModel, LevelDevice, Policy};

/// A level counts only if, by the costs of `sampled`, neither direction takes more than this many times as long as the other. Elsewhere the
/// faster direction is clear, and the cost of an arc is not a measure: most arcs of a frontier late in the search are cheap.
const NEAR: f64 = 4.0;

/// On graphs with fewer arcs than this, a measurement before a search does not pay.
const LEAST_ARCS: u64 = 1 << 18;

/// Largest result, in thousandths; the smallest one is its inverse. Anything beyond would be a disturbance.
const MOST_PERMILLE: f64 = 16_000.0;

/// The times of a device's levels in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DirectionCosts {
    top_down: Took,
    bottom_up: Took,
}

impl DirectionCosts {
    /// Adds a level that took `ns` nanoseconds, if the directions cost about the same there.
    pub fn add(&mut self, model: &CostModel, stats: &LevelStats, direction: Direction, ns: f64) {
        let should = |direction| model.of(Strategy::on_cpu(direction)).map_or(0.0, |cost| cost.level_ns(stats, probes(stats)));
        let (top_down, bottom_up) = (should(Direction::TopDown), should(Direction::BottomUp));
        if top_down * NEAR < bottom_up || bottom_up * NEAR < top_down {
            return;
        }
        match direction {
            Direction::TopDown => self.top_down.add(ns, top_down),
            Direction::BottomUp => self.bottom_up.add(ns, bottom_up),
        }
    }

    /// The cost of bottom-up levels relative to top-down ones, in thousandths (`None`: not seen in both directions).
    pub fn permille(&self) -> Option<u32> {
        let permille = 1000.0 * self.bottom_up.factor()? / self.top_down.factor()?;
        Some(permille.clamp(1e6 / MOST_PERMILLE, MOST_PERMILLE).round() as u32)
    }
}

/// The cost of bottom-up levels relative to top-down ones on the device of `search`, in thousandths of that ratio by [`SampledCosts`], from
/// searches of its graph in two ways, one of which turns bottom-up early. `None` if no level ran near the point at which the direction
/// changes, or if the graph is too small for directions to matter. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] if the search was not set up with a device, or the device fails.
pub fn measure_bottom_up(search: &mut Search<'_>, runs: LevelDevice) -> Result<Option<u32>, SearchError> {
    if (search.layout().csr().arcs() as u64) < LEAST_ARCS {
        return Ok(None);
    }
    let usual = SampledCosts::default();
    let kinds = [usual, usual.times((1000.0 / NEAR) as u32)].map(|costs| (Policy::Sampled(costs), runs));
    let model = CostModel::from(usual);
    let mut took = DirectionCosts::default();
    search.set_looks_ahead(false);
    let mut levels = Vec::new();
    let searched = roots(search, ROOTS).into_iter().take(2).try_for_each(|root| -> Result<(), SearchError> {
        levels.extend(fastest(search, &kinds, root)?.into_iter().flat_map(|(_, levels)| levels));
        Ok(())
    });
    search.set_looks_ahead(true);
    searched?;
    for record in timed(&levels).filter(|record| record.levels <= 1 && matches!(record.plan.placement, Placement::Gpu(_))) {
        took.add(&model, &record.stats, record.plan.direction, own_ns(record));
    }
    Ok(took.permille())
}

/// As [`LEAST_ARCS`] for the CPU, on which a trial takes about 10 ms for a graph of 200,000 arcs. (With half the usual costs, bips98_606,
/// which has 30,000 arcs, took 1.2 times as long as with the best on a Zen 3 in the order of the input, and facebook_combined 1.4 times.)
const LEAST_ARCS_ON_CPU: u64 = 1 << 13;

/// The costs of bottom-up levels that a CPU may have, in thousandths of those of [`SampledCosts`], the usual ones first. Where gathers are
/// slow, or lists are far from the processor, they are higher.
const ON_CPU: [u32; 3] = [1000, 500, 2000];

/// Number of roots besides the one with most edges on the CPU: which costs are best depends on the root.
const ROOTS_ON_CPU: usize = 15;

/// After this time, no further root is searched on the CPU.
const ENOUGH: Duration = Duration::from_millis(50);

/// Other costs than the usual ones must save this share of the time, so that a disturbance does not choose them.
const LEAST_GAIN: f64 = 0.05;

/// The cost of bottom-up levels on the CPU, as that of [`measure_bottom_up`] on a device: the one of a few with which searches of this
/// graph take least time. `None` if the usual costs are as good, or if the graph is too small for directions to matter. The search's policy
/// is left changed.
///
/// # Errors
/// [`SearchError`].
pub fn measure_bottom_up_on_cpu(search: &mut Search<'_>) -> Result<Option<u32>, SearchError> {
    // A graph with rows is a road or a grid, in which no level is bottom-up.
    if (search.layout().csr().arcs() as u64) < LEAST_ARCS_ON_CPU || !search.layout().rows().is_empty() {
        return Ok(None);
    }
    let kinds = ON_CPU.map(|permille| (Policy::Sampled(SampledCosts::default().times(permille)), LevelDevice::Cpu));
    let (begin, mut took) = (Instant::now(), [Duration::ZERO; ON_CPU.len()]);
    for root in roots(search, ROOTS_ON_CPU).into_iter().take_while(|_| begin.elapsed() <= ENOUGH) {
        for (took, (elapsed, _)) in took.iter_mut().zip(fastest(search, &kinds, root)?) {
            *took += elapsed;
        }
    }
    let (permille, best) = ON_CPU.into_iter().zip(took).min_by_key(|(_, took)| *took).unwrap_or_default();
    Ok((best < took[0].mul_f64(1.0 - LEAST_GAIN)).then_some(permille))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::{
        graph::{BuildOptions, Layout},
        search::SearchOptions,
    };
    use socbfs_io::Generator;

    /// 1000 words, 10,000 unvisited vertices that look at two neighbours each: bottom-up costs 500 + 2500 + 7000 arcs.
    fn stats(frontier_edges: u64) -> LevelStats {
        LevelStats {
            vertices: 64_000,
            arcs: 1_000_000,
            frontier_vertices: 5000,
            frontier_edges,
            unvisited_vertices: 10_000,
            unvisited_edges: 200_000,
            sampled_probes: Some(2.0),
            ..LevelStats::default()
        }
    }

    /// The measurement leaves a search that finds the same as before, whatever it chose.
    #[test]
    fn the_costs_on_the_cpu_are_among_those_tried() {
        let edges = Generator::graph500(12).generate(&|_| ()).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
        let before = search.run(5).unwrap();
        let chosen = measure_bottom_up_on_cpu(&mut search).unwrap();
        assert!(chosen.is_none_or(|permille| ON_CPU[1..].contains(&permille)), "{chosen:?}");
        let after = search.run(5).unwrap();
        assert_eq!((before.reached, before.levels), (after.reached, after.levels));
    }

    #[test]
    fn small_graphs_and_roads_are_not_measured() {
        for generator in [Generator::graph500(8), Generator::Grid { width: 300, height: 300, deletion: 0.0, seed: 1 }] {
            let layout = Layout::build(&generator.generate(&|_| ()).unwrap(), &BuildOptions::default()).unwrap();
            let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
            assert_eq!(measure_bottom_up_on_cpu(&mut search).unwrap(), None);
        }
    }

    #[test]
    fn cheaper_bottom_up_levels_give_a_smaller_number() {
        let model = CostModel::from(SampledCosts::default());
        let mut took = DirectionCosts::default();
        // 10 ns an arc top-down, and half of that bottom-up for work that should take as long.
        took.add(&model, &stats(8000), Direction::TopDown, 80_000.0);
        assert_eq!(took.permille(), None, "one direction says nothing");
        took.add(&model, &stats(12_000), Direction::BottomUp, 100_000.0);
        assert_eq!(took.permille(), Some(500));
        // A level at which no policy goes bottom-up, and one at which none goes top-down: neither counts.
        took.add(&model, &stats(4000), Direction::TopDown, 1e9);
        took.add(&model, &stats(120_000), Direction::BottomUp, 1e9);
        assert_eq!(took.permille(), Some(500));
        took.add(&model, &stats(10_000), Direction::BottomUp, 1e12);
        assert_eq!(took.permille(), Some(MOST_PERMILLE as u32), "bounded");
    }
}
