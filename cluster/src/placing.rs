//! Decides, from what is known about a rank's own board, whether the rank runs its part of a level on its CPU or on its device.
//!
//! The direction of a level is the same on all ranks. Each rank decides by itself where it expands the level. The resulting bits are the
//! same, so the other ranks need not know: boards may differ, and a board may have no device. The rules are as pure as policies: they
//! compare counts that all ranks have, divided by the number of ranks, with bounds that were set before the search.

use super::{
    ClusterError, ClusterOptions, LevelTraffic,
    part::Part,
    ranks::{Ranks, sum},
    search::ClusterSearch,
};
use socbfs::{
    GpuSetup,
    bfs::{Direction, GpuKernel, LevelPlan, LevelRecord, LevelStats, Placement, Planner},
    graph::Vertex,
    policy::{Band, Bands, NEVER, PolicyPlanner},
};
use socbfs_boards::{measure::Line, runtime::UndividedDevice};

/// The OpenCL device of a rank.
#[derive(Debug, Clone)]
pub struct RankDevice {
    /// The device, and how it shares memory.
    pub setup: GpuSetup,
    /// Kernel of its bottom-up levels if the policy names none: BG or BGC.
    pub bottom_up: GpuKernel,
    /// The levels that run on the device.
    pub places: Places,
    /// Whether the rank continues on the CPU if the device fails during a search. The same applies to a failure before the first search,
    /// unless the policy names kernels of a device.
    pub fall_back: bool,
}

/// A device of a rank that is ready to search.
#[derive(Debug)]
pub struct PreparedRank {
    /// The device, with the levels that it runs.
    pub device: RankDevice,
    /// Whether bounds of the levels that it runs have to be measured, since policy and board do not give all of them.
    /// [`measured_bands`] measures them, and [`Places::or`] adds them to the known ones.
    pub wants_bounds: bool,
}

impl From<UndividedDevice> for PreparedRank {
    fn from(UndividedDevice { setup, bottom_up, bands, wants_bounds, was_found }: UndividedDevice) -> Self {
        let places = bands.map_or(Places::Every, Places::By);
        Self { device: RankDevice { setup, bottom_up, places, fall_back: was_found }, wants_bounds }
    }
}

/// The levels that run on a rank's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Places {
    /// All levels.
    Every,
    /// Levels whose work is inside the bounds. The work is the rank's own share: arcs from the frontier top-down, unvisited vertices
    /// bottom-up. No level is split: a level that the bounds give to both devices runs on the GPU.
    By(Bands),
}

impl Places {
    /// Returns these bounds. A bound that is missing here comes from `measured`.
    #[must_use]
    pub fn or(self, measured: Bands) -> Self {
        match self {
            Self::Every => Self::Every,
            Self::By(known) => Self::By(known.or(measured)),
        }
    }

    fn on_device(&self, direction: Direction, stats: &LevelStats, ranks: u64) -> bool {
        let Self::By(bands) = self else { return true };
        let work = work(direction, stats) / ranks;
        let reached = |from: Option<u64>| from.is_some_and(|from| from < NEVER && work >= from);
        let Band { gpu_from, split_from, up_to, .. } = *bands.of(direction);
        (reached(gpu_from) || reached(split_from)) && !reached(up_to)
    }
}

/// The work of a level, summed over all ranks.
fn work(direction: Direction, stats: &LevelStats) -> u64 {
    match direction {
        Direction::TopDown => stats.frontier_edges,
        Direction::BottomUp => stats.unvisited_vertices,
    }
}

/// Plans levels: a policy decides directions, and [`Places`] where this rank runs its part.
#[derive(Debug)]
pub(super) struct RankPlanner {
    policy: PolicyPlanner,
    device: Option<(GpuKernel, Places)>,
    ranks: u64,
}

impl RankPlanner {
    pub(super) fn new(policy: PolicyPlanner, device: Option<&RankDevice>, ranks: usize) -> Self {
        Self { policy, device: device.map(|device| (device.bottom_up, device.places)), ranks: ranks as u64 }
    }

    /// Changes where levels run from the next search on (`None`: on the CPU).
    pub(super) fn set_places(&mut self, places: Option<Places>) {
        self.device = self.device.zip(places).map(|((bottom_up, _), places)| (bottom_up, places));
    }
}

impl Planner for RankPlanner {
    fn begin(&mut self) {
        self.policy.begin();
    }

    fn wants_sample(&self, stats: &LevelStats) -> bool {
        self.policy.wants_sample(stats)
    }

    fn wants_hubs(&self, stats: &LevelStats) -> bool {
        self.policy.wants_hubs(stats)
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        let LevelPlan { direction, placement } = self.policy.plan(stats);
        let placement = match (self.device, placement) {
            (None, _) => Placement::Cpu,
            (Some(_), Placement::Gpu(kernel)) => Placement::Gpu(kernel),
            (Some((bottom_up, places)), _) if places.on_device(direction, stats, self.ranks) => {
                Placement::Gpu(if direction == Direction::BottomUp { bottom_up } else { GpuKernel::Tg })
            }
            _ => Placement::Cpu,
        };
        LevelPlan { direction, placement }
    }
}

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
                            (direction, work(direction, &record.stats) / ranks.size() as u64, traffic.compute_ns)
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
    let always = Bands { top_down: Band::gpu_from(0), bottom_up: Band::gpu_from(0) };
    let [cpu, device] = &searches(&[Places::By(Bands::CPU), Places::By(always)])?[..] else { return Ok(None) };
    let [top_down, bottom_up] = [Direction::TopDown, Direction::BottomUp].map(|direction| cpu.band(device, direction));
    let lines = Bands { top_down, bottom_up };
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
    fn bounds_apply_to_the_work_of_one_rank() {
        let bands = Bands { top_down: Band { up_to: Some(500), ..Band::gpu_from(100) }, bottom_up: Band::split_from(10, 500) };
        let at = |frontier_edges, unvisited_vertices| LevelStats { frontier_edges, unvisited_vertices, ..LevelStats::default() };
        for (direction, stats, ranks, on_device) in [
            (Direction::TopDown, at(99, 1000), 1, false),
            (Direction::TopDown, at(100, 0), 1, true),
            (Direction::TopDown, at(399, 0), 4, false),
            (Direction::TopDown, at(400, 0), 4, true),
            (Direction::TopDown, at(2000, 0), 4, false),
            (Direction::BottomUp, at(0, 19), 2, false),
            (Direction::BottomUp, at(0, 20), 2, true),
        ] {
            assert_eq!(Places::By(bands).on_device(direction, &stats, ranks), on_device, "{direction:?} {stats:?} over {ranks} ranks");
            assert!(Places::Every.on_device(direction, &stats, ranks));
            assert!(!Places::By(Bands::CPU).on_device(direction, &stats, ranks));
        }
    }

    #[test]
    fn known_bounds_are_kept_and_measured_ones_fill_gaps() {
        // The bounds of a board file: an upper bound top-down, and a lower bound bottom-up.
        let known =
            Bands { top_down: Band { up_to: Some(500), ..Band::default() }, bottom_up: Band { gpu_from: Some(70), ..Band::default() } };
        let measured = Bands { top_down: Band::gpu_from(100), bottom_up: Band::gpu_from(0) };
        let Places::By(bands) = Places::By(known).or(measured) else { panic!("no bounds") };
        assert_eq!((bands.top_down.gpu_from, bands.top_down.up_to, bands.bottom_up.gpu_from), (Some(100), Some(500), Some(70)));
        assert_eq!(Places::By(Bands::default()).or(measured), Places::By(measured));
        assert_eq!(Places::Every.or(measured), Places::Every);
    }

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

    #[test]
    fn policies_that_name_the_device_use_it_where_there_is_one() {
        use socbfs::{bfs::Strategy, policy::LevelDevice};
        for (strategy, with_device, expected) in [
            (Strategy::Bg, true, Placement::Gpu(GpuKernel::Bg)),
            (Strategy::Bg, false, Placement::Cpu),
            (Strategy::Tc, true, Placement::Cpu),
        ] {
            let policy = PolicyPlanner::new(socbfs::policy::Policy::Fixed(strategy), LevelDevice::Cpu);
            let device = with_device.then_some((GpuKernel::Bgc, Places::By(Bands::CPU)));
            let mut planner = RankPlanner { policy, device, ranks: 2 };
            let plan = planner.plan(&LevelStats::default());
            assert_eq!((plan.direction, plan.placement), (strategy.direction(), expected));
        }
    }
}
