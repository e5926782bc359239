//! Decides, from what is known about a rank's own board, whether the rank runs its part of a level on its CPU or on its device.
//!
//! The direction of a level is the same on all ranks. Each rank decides by itself where it expands the level. The resulting bits are the
//! same, so the other ranks need not know: boards may differ, and a board may have no device. The rules are as pure as policies: they
//! compare counts that all ranks have, divided by the number of ranks, with bounds that were set before the search.

use socbfs::{
    GpuSetup,
    bfs::{Direction, GpuKernel, LevelPlan, LevelStats, Placement, Planner},
};
use socbfs_boards::runtime::UndividedDevice;
use socbfs_policy::{Band, Bands, NEVER, PolicyPlanner, work_of};

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
    /// [`measured_bands`](crate::measured_bands) measures them, and [`Places::or`] adds them to the known ones.
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
        let work = work_of(stats, direction) / ranks;
        let reached = |from: Option<u64>| from.is_some_and(|from| from < NEVER && work >= from);
        let Band { gpu_from, split_from, up_to, .. } = *bands.of(direction);
        (reached(gpu_from) || reached(split_from)) && !reached(up_to)
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
    fn policies_that_name_the_device_use_it_where_there_is_one() {
        use socbfs::bfs::Strategy;
        use socbfs_policy::LevelDevice;
        for (strategy, with_device, expected) in [
            (Strategy::Bg, true, Placement::Gpu(GpuKernel::Bg)),
            (Strategy::Bg, false, Placement::Cpu),
            (Strategy::Tc, true, Placement::Cpu),
        ] {
            let policy = PolicyPlanner::new(socbfs_policy::Policy::Fixed(strategy), LevelDevice::Cpu);
            let device = with_device.then_some((GpuKernel::Bgc, Places::By(Bands::CPU)));
            let mut planner = RankPlanner { policy, device, ranks: 2 };
            let plan = planner.plan(&LevelStats::default());
            assert_eq!((plan.direction, plan.placement), (strategy.direction(), expected));
        }
    }
}
