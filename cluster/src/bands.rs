//! Bounds between CPU and device for one rank, measured by searches of all ranks.

use super::{
    ClusterError,
    options::ClusterOptions,
    part::Part,
    placing::Places,
    ranks::{Ranks, sum},
    runner::LevelTraffic,
    search::ClusterSearch,
};
use socbfs::{
    bfs::{Direction, LevelRecord},
    graph::Vertex,
};
use socbfs_boards::measure::Line;
use socbfs_policy::{Band, Bands, NEVER, work_of};

/// Number of roots, and of searches from each root in every place; the fastest one counts. One more search comes first as a warm-up.
const ROOTS: usize = 3;
const TURNS: usize = 3;
/// The fitted bounds are used only if searches with them take less than this share of the time of CPU alone or device alone, whichever is
/// faster, as in one process ([`thresholds`](socbfs_boards::measure::thresholds)).
const GAIN: f64 = 0.97;

/// The fastest searches from each root in one place: their total time; direction, work and nanoseconds of their levels.
#[derive(Debug, Clone, Default)]
struct Fastest {
    total_ns: u64,
    levels: Vec<(Direction, u64, u64)>,
}

impl Fastest {
    /// The line through the levels of one direction: the fastest level is the fixed part.
    fn line(&self, direction: Direction) -> Option<Line> {
        let levels = || self.levels.iter().filter(|level| level.0 == direction);
        let fixed_ns = levels().map(|&(.., ns)| ns).min()? as f64;
        let work: f64 = levels().map(|&(_, work, _)| work as f64).sum();
        let time: f64 = levels().map(|&(.., ns)| ns as f64 - fixed_ns).sum();
        Some(Line { fixed_ns, ns_per_unit: if work > 0.0 { time / work } else { 0.0 } })
    }

    /// The levels of one direction that are faster on `device`.
    fn band(&self, device: &Self, direction: Direction) -> Band {
        let crossing = self.line(direction).zip(device.line(direction)).map(|(cpu, device)| cpu.crossing(device));
        Band::gpu_from(crossing.unwrap_or(NEVER))
    }
}

/// Searches on the CPU and on the device in turn, and compares the times of this rank's own part. Returns bounds for [`Places::By`] if this
/// rank `wants` them and has a device. All ranks call it and search together; a rank that does not want bounds runs as `options` says.
///
/// # Errors
/// As [`ClusterSearch::run_uncounted`].
pub fn measured_bands(part: &Part, ranks: &impl Ranks, options: &ClusterOptions, wants: bool) -> Result<Option<Bands>, ClusterError> {
    let wants = wants && options.device.is_some();
    if sum(ranks, wants.into()) == 0 {
        return Ok(None);
    }
    let step = (part.vertices() / ROOTS).max(1);
    let mut roots: Vec<Vertex> =
        (0..ROOTS).filter_map(|i| (i * step..part.vertices()).map(|v| v as Vertex).find(|&v| part.has_edge(v))).collect();
    roots.dedup();
    let mut search = ClusterSearch::new(part, ranks, options)?;
    let mut searches = |places: &[Places]| -> Result<Vec<Fastest>, ClusterError> {
        let mut all = vec![Fastest::default(); places.len()];
        for &root in &roots {
            let mut best = vec![(u64::MAX, Vec::new()); places.len()];
            for turn in 0..=TURNS {
                for (place, best) in places.iter().zip(&mut best) {
                    if wants {
                        search.set_places(Some(*place));
                    }
                    search.run_uncounted(&[root])?;
                    let own: u64 = search.traffic().iter().map(|level| level.compute_ns).sum();
                    if turn > 0 && own < best.0 {
                        // Level 0 of a root that is a leaf runs nowhere.
                        let of = search.records().iter().zip(search.traffic()).filter(|(record, _)| record.stats.frontier_edges > 0);
                        let level = |(record, traffic): (&LevelRecord, &LevelTraffic)| {
                            let direction = record.plan.direction;
                            (direction, work_of(&record.stats, direction) / ranks.size() as u64, traffic.compute_ns)
                        };
                        *best = (own, of.map(level).collect());
                    }
                }
            }
            for (fastest, (total_ns, levels)) in all.iter_mut().zip(best) {
                fastest.total_ns += total_ns;
                fastest.levels.extend(levels);
            }
        }
        Ok(all)
    };
    let always = Bands::by(|_| Band::gpu_from(0));
    let [cpu, device] = &searches(&[Places::By(Bands::CPU), Places::By(always)])?[..] else { return Ok(None) };
    let lines = Bands::by(|direction| cpu.band(device, direction));
    // Lines are a simple model, so times of whole searches decide.
    let candidates = [Bands::CPU, always, lines];
    let measured = searches(&candidates.map(Places::By))?;
    let mut best = (Bands::CPU, f64::INFINITY);
    for (bands, fastest) in candidates.into_iter().zip(measured) {
        let gain = if bands == lines { GAIN } else { 1.0 };
        if (fastest.total_ns as f64) < gain * best.1 {
            best = (bands, fastest.total_ns as f64);
        }
    }
    Ok(wants.then_some(best.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crossing_is_where_the_device_becomes_faster() {
        let levels = |levels: &[(u64, u64)]| {
            let levels = levels.iter().map(|&(work, ns)| (Direction::TopDown, work, ns)).collect();
            Fastest { total_ns: 0, levels }
        };
        let from = |cpu: &Fastest, device: &Fastest| cpu.band(device, Direction::TopDown).gpu_from.unwrap();
        // 1000 ns and 2 ns a unit against 5000 ns and 1 ns a unit.
        let (cpu, device) = (levels(&[(0, 1000), (1000, 3000)]), levels(&[(0, 5000), (1000, 6000)]));
        assert_eq!(from(&cpu, &device), 4000);
        assert_eq!(from(&device, &cpu), NEVER);
        assert_eq!(from(&levels(&[(0, 10), (10, 100)]), &levels(&[(0, 5), (10, 10)])), 0);
        assert_eq!(from(&levels(&[]), &device), NEVER);
    }
}
