//! The bands of the policy `adaptive`, derived from the measured costs of levels.

use super::levels::{LevelTable, LevelTimes, SHARES};
use socbfs::{
    bfs::{Direction, GpuKernel, Strategy},
    policy::{Band, Bands, NEVER},
};

/// A level that takes more than this many times as long as in the other direction does not count: no policy runs it in this direction.
const IN_QUESTION: f64 = 2.0;

/// The zone of split levels and the second zone of the CPU must each save this share of the time of a search on average: less may be noise.
const WORTH: f64 = 0.005;

/// A level: its work, and its costs on the CPU, on the GPU, and split with the best of [`SHARES`]. Each is the cost beyond the cheapest of
/// the three, as a share of the time of its search.
struct Sample {
    work: u64,
    beyond: [f64; 3],
}

/// The bands with which the levels of `tables` cost least beyond their cheapest placements, without handover. Each search counts the same.
/// A placement that was not measured is never reached.
pub fn bands(tables: &[LevelTable]) -> Bands {
    Bands { top_down: band(tables, Direction::TopDown), bottom_up: band(tables, Direction::BottomUp) }
}

fn least(level: &LevelTimes, of: impl Fn(Strategy) -> bool) -> Option<f64> {
    Strategy::ALL.into_iter().filter(|&strategy| of(strategy)).filter_map(|strategy| level.own_ns(strategy)).min_by(f64::total_cmp)
}

fn band(tables: &[LevelTable], direction: Direction) -> Band {
    let mut samples: Vec<Sample> = Vec::new();
    for table in tables {
        let whole = table.oracle().1.max(1.0);
        // Level 0 is left out, since it includes the reset of the state.
        for level in table.levels.iter().skip(1) {
            let on = |is_gpu: bool| least(level, |strategy| strategy.direction() == direction && strategy.is_gpu() == is_gpu);
            let Some(cpu) = on(false) else { continue };
            let both = GpuKernel::of(direction).into_iter().flat_map(|kernel| SHARES.map(|share| level.split_ns(kernel, share)));
            let both = both.flatten().fold(f64::INFINITY, f64::min);
            let times = [cpu, on(true).unwrap_or(f64::INFINITY), both];
            let best = times.into_iter().fold(f64::INFINITY, f64::min);
            let other = least(level, |strategy| strategy.direction() != direction).unwrap_or(f64::INFINITY);
            if best > IN_QUESTION * other {
                continue;
            }
            let work = match direction {
                Direction::TopDown => level.stats.frontier_edges,
                Direction::BottomUp => level.stats.unvisited_vertices,
            };
            samples.push(Sample { work, beyond: times.map(|ns| (ns - best) / whole) });
        }
    }
    samples.sort_by_key(|sample| sample.work);
    best_band(&samples, WORTH * tables.len() as f64)
}

/// The band whose levels cost least beyond their best placements, if split levels and the second zone of the CPU must each save `worth`. It
/// sets no share of the GPU: the policy computes shares from its costs.
fn best_band(samples: &[Sample], worth: f64) -> Band {
    // The zones in order of work, as indices into `beyond`: CPU, GPU, both, CPU again. `ways` holds, for each zone, the least cost of the
    // levels so far if the last one is in this zone, and the index of the level at which each zone begins.
    let zones = [0, 1, 2, 0];
    let never = samples.len();
    let mut ways = [(0.0, [never; 4]), (f64::INFINITY, [never; 4]), (f64::INFINITY, [never; 4]), (f64::INFINITY, [never; 4])];
    for (place, sample) in samples.iter().enumerate() {
        // Levels of the same work must be in the same zone.
        let may_begin = place == 0 || samples[place - 1].work < sample.work;
        let before = ways;
        for zone in 0..zones.len() {
            let worth = if zone < 2 { 0.0 } else { worth };
            let mut best = before[zone];
            for earlier in before.iter().take(if may_begin { zone } else { 0 }) {
                if earlier.0 + worth < best.0 {
                    best = *earlier;
                    best.0 += worth;
                    best.1[zone] = place;
                }
            }
            ways[zone] = (best.0 + sample.beyond[zones[zone]], best.1);
        }
    }
    let (_, begins) = ways.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, [never; 4]));
    // A bound may lie anywhere between two levels; it is set to the work of the upper one.
    let from = |zone: usize| Some(samples.get(begins[zone]).map_or(NEVER, |sample| if begins[zone] == 0 { 0 } else { sample.work }));
    Band { gpu_from: from(1), split_from: from(2), up_to: from(3), gpu_permille: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::bfs::{LevelPlan, LevelStats, Placement};

    /// A search whose levels have this much work top-down, with times by placement: CPU, GPU, and both with the best share.
    fn table(levels: &[u64], cpu: impl Fn(f64) -> f64, gpu: impl Fn(f64) -> f64, both: impl Fn(f64) -> f64) -> LevelTable {
        let level = |&frontier_edges: &u64| {
            let stats = LevelStats { frontier_edges, unvisited_vertices: 1000, ..LevelStats::default() };
            let work = frontier_edges as f64;
            let own = |plan: LevelPlan| match (plan.direction, plan.placement) {
                (Direction::BottomUp, _) => None,
                (_, Placement::Cpu) => Some(cpu(work)),
                (_, Placement::Gpu(_)) => Some(gpu(work)),
                (_, Placement::Split { gpu_permille, .. }) => Some(both(work) * if gpu_permille == 750 { 1.0 } else { 1.5 }),
                _ => None,
            };
            LevelTimes::simulated(stats, 1, own, |_, _| 0.0)
        };
        LevelTable { root: 0, strategies: vec![Strategy::Tc, Strategy::Tg], levels: levels.iter().map(level).collect() }
    }

    #[test]
    fn bounds_lie_where_the_times_cross() {
        let work: Vec<u64> = (0..60).map(|step| 1.3f64.powi(step) as u64).collect();
        // The GPU from 10,000 / 0.5 = 20,000 on; both from (30,000 - 10,000) / 0.25 = 80,000 on.
        let found = bands(&[table(&work, |work| work, |work| 10_000.0 + 0.5 * work, |work| 30_000.0 + 0.25 * work)]).top_down;
        let near = |found: Option<u64>, wanted: u64| assert!((wanted..=wanted * 14 / 10).contains(&found.unwrap()), "{found:?} {wanted}");
        near(found.gpu_from, 20_000);
        near(found.split_from, 80_000);
        assert_eq!((found.up_to, found.gpu_permille), (Some(NEVER), None));
        // A GPU that becomes slow at large levels, and no gain by splitting.
        let drowning = |work: f64| if work < 500_000.0 { 10_000.0 + 0.5 * work } else { 3.0 * work };
        let found = bands(&[table(&work, |work| work, drowning, |work| 9.0 * work)]).top_down;
        near(found.gpu_from, 20_000);
        near(found.up_to, 500_000);
        assert_eq!(found.split_from, Some(NEVER));
        // A GPU that is slower at every level, and one that is faster at every level.
        let slow = bands(&[table(&work, |work| work, |work| 5.0 * work + 1.0, |work| 9.0 * work)]).top_down;
        assert_eq!((slow.gpu_from, slow.split_from, slow.up_to), (Some(NEVER), Some(NEVER), Some(NEVER)));
        let fast = bands(&[table(&work, |work| 2.0 * work + 2.0, |work| work, |work| 9.0 * work)]).top_down;
        assert_eq!((fast.gpu_from, fast.split_from), (Some(0), Some(NEVER)));
        assert_eq!(bands(&[]), Bands::CPU);
    }
}
