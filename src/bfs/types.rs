//! The types that all policies and engines use.

use serde::{Deserialize, Serialize};

use crate::graph::Vertex;

/// The side from which a level is expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Frontier vertices look for unvisited neighbours (push).
    #[default]
    TopDown,
    /// Unvisited vertices look for a neighbour in the frontier (pull).
    BottomUp,
}

/// A kernel that runs a level on the GPU, or its part of one, by the names of Zhang et al. 2018 (table 2) and Remis 2016 (TGM).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuKernel {
    /// Top-down over a queue of frontier vertices.
    #[default]
    Tg,
    /// Top-down over a mask of all vertices.
    Tgm,
    /// Bottom-up.
    Bg,
    /// Bottom-up with the frontier bits of the vertices of highest degree in local memory.
    Bgc,
}

impl GpuKernel {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tg, Self::Tgm, Self::Bg, Self::Bgc];

    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tg => "tg",
            Self::Tgm => "tgm",
            Self::Bg => "bg",
            Self::Bgc => "bgc",
        }
    }

    /// The direction it searches in.
    pub fn direction(self) -> Direction {
        match self {
            Self::Tg | Self::Tgm => Direction::TopDown,
            Self::Bg | Self::Bgc => Direction::BottomUp,
        }
    }

    /// Those that search in this direction, first the one that every device runs without preparation: TG, BG.
    pub fn of(direction: Direction) -> [Self; 2] {
        match direction {
            Direction::TopDown => [Self::Tg, Self::Tgm],
            Direction::BottomUp => [Self::Bg, Self::Bgc],
        }
    }
}

/// A way to run a whole level on one device: the five of Zhang et al. 2018 (table 2), and TGM (Remis 2016).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Top-down on the CPU.
    Tc,
    /// Top-down on the GPU over a queue.
    Tg,
    /// Top-down on the GPU over a mask.
    Tgm,
    /// Bottom-up on the CPU.
    Bc,
    /// Bottom-up on the GPU.
    Bg,
    /// Bottom-up on the GPU with hubs in local memory.
    Bgc,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Tc, Self::Tg, Self::Tgm, Self::Bc, Self::Bg, Self::Bgc];

    /// Those of the CPU.
    pub const CPU: [Self; 2] = [Self::Tc, Self::Bc];

    /// That of the CPU in this direction.
    pub const fn on_cpu(direction: Direction) -> Self {
        match direction {
            Direction::TopDown => Self::Tc,
            Direction::BottomUp => Self::Bc,
        }
    }

    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tc => "tc",
            Self::Bc => "bc",
            Self::Tg => GpuKernel::Tg.name(),
            Self::Tgm => GpuKernel::Tgm.name(),
            Self::Bg => GpuKernel::Bg.name(),
            Self::Bgc => GpuKernel::Bgc.name(),
        }
    }

    /// The direction it searches in.
    pub fn direction(self) -> Direction {
        match self {
            Self::Tc | Self::Tg | Self::Tgm => Direction::TopDown,
            Self::Bc | Self::Bg | Self::Bgc => Direction::BottomUp,
        }
    }

    /// Where it runs.
    pub fn placement(self) -> Placement {
        match self {
            Self::Tc | Self::Bc => Placement::Cpu,
            Self::Tg => Placement::Gpu(GpuKernel::Tg),
            Self::Tgm => Placement::Gpu(GpuKernel::Tgm),
            Self::Bg => Placement::Gpu(GpuKernel::Bg),
            Self::Bgc => Placement::Gpu(GpuKernel::Bgc),
        }
    }

    /// Whether it runs on the GPU.
    pub fn is_gpu(self) -> bool {
        !matches!(self, Self::Tc | Self::Bc)
    }

    /// The plan that means it.
    pub fn plan(self) -> LevelPlan {
        LevelPlan { direction: self.direction(), placement: self.placement() }
    }

    /// The strategy of `plan`: `None` where both devices run the level.
    pub fn of(plan: LevelPlan) -> Option<Self> {
        match plan.placement {
            Placement::Cpu => Some(Self::on_cpu(plan.direction)),
            Placement::Gpu(kernel) if kernel.direction() == plan.direction => Some(Self::from(kernel)),
            _ => None,
        }
    }
}

impl From<GpuKernel> for Strategy {
    fn from(kernel: GpuKernel) -> Self {
        match kernel {
            GpuKernel::Tg => Self::Tg,
            GpuKernel::Tgm => Self::Tgm,
            GpuKernel::Bg => Self::Bg,
            GpuKernel::Bgc => Self::Bgc,
        }
    }
}

/// Where a level runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Placement {
    /// On the CPU.
    #[default]
    Cpu,
    /// On the GPU.
    Gpu(GpuKernel),
    /// On both at the same time, merged when both are done (Remis' Concurrent).
    Split {
        /// The GPU's share of the work, in thousandths.
        gpu_permille: u16,
        /// The kernel of the GPU's part. One of the other direction stands for the first [of its own](GpuKernel::of), as in records of
        /// versions that knew no other.
        #[serde(default)]
        kernel: GpuKernel,
    },
    /// On both to the end of the search, each on a copy of its own, merged by the smaller level (Remis' Asynchronous).
    Apart {
        /// The GPU's share of the frontier, in thousandths.
        gpu_permille: u16,
    },
}

/// The plan of one level (by default top-down on the CPU).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LevelPlan {
    /// Direction.
    pub direction: Direction,
    /// Placement.
    pub placement: Placement,
}

impl LevelPlan {
    /// A level that both devices run: the GPU, by `kernel`, this share of it in thousandths.
    pub fn split(kernel: GpuKernel, gpu_permille: u16) -> Self {
        Self { direction: kernel.direction(), placement: Placement::Split { gpu_permille, kernel } }
    }

    /// The kernel that runs the level on the GPU, or the GPU's part of a split one (`None`: the CPU alone, or the search parts).
    pub fn kernel(self) -> Option<GpuKernel> {
        match self.placement {
            Placement::Gpu(kernel) => Some(kernel),
            Placement::Split { kernel, .. } if kernel.direction() == self.direction => Some(kernel),
            Placement::Split { .. } => Some(GpuKernel::of(self.direction)[0]),
            Placement::Cpu | Placement::Apart { .. } => None,
        }
    }
}

/// The counts that a policy has when it plans a level, all of the searched structure (internal vertices, distinct arcs).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LevelStats {
    /// Level to be planned: 0 expands the root.
    pub level: u32,
    /// Vertices of the searched structure.
    pub vertices: u64,
    /// Arcs of the searched structure.
    pub arcs: u64,
    /// Vertices in the frontier (after a top-down level of several threads a few may be counted twice; the level's record
    /// has the exact number).
    pub frontier_vertices: u64,
    /// Whether a few of the frontier may be counted twice, and `unvisited_vertices` be too small by as many.
    #[serde(default)]
    pub vertices_are_estimated: bool,
    /// Arcs that leave the frontier: exact for small ones and on devices, else estimated (after bottom-up levels by the mean degrees of
    /// words of the bitmap, after top-down levels hubs so and the others from a sample).
    pub frontier_edges: u64,
    /// Whether `frontier_edges` is such an estimate.
    #[serde(default)]
    pub frontier_is_estimated: bool,
    /// Vertices not yet visited.
    pub unvisited_vertices: u64,
    /// Arcs of vertices not yet visited, by the same estimates.
    pub unvisited_edges: u64,
    /// Whether `unvisited_edges` is the rest after estimates were subtracted.
    #[serde(default)]
    pub unvisited_is_estimated: bool,
    /// Vertices in the frontier before this one (0 at level 0).
    pub previous_frontier_vertices: u64,
    /// Direction of the level before (`None` at level 0).
    pub previous_direction: Option<Direction>,
    /// Where the level before ran (`None` at level 0).
    #[serde(default)]
    pub previous_placement: Option<Placement>,
    /// Where the level before was split: how long the CPU took for its part, in nanoseconds, else 0.
    #[serde(default)]
    pub previous_cpu_ns: u64,
    /// The same of the GPU.
    #[serde(default)]
    pub previous_gpu_ns: u64,
    /// Sampled: neighbours an unvisited vertex would look at, on average, until it finds one in the frontier or has
    /// none left (`None` where the policy did not ask or nothing was sampled).
    pub sampled_probes: Option<f32>,
    /// Share of all vertices that are hubs: that have more arcs than the mean (SURF's p_h; of the graph, the same at all levels).
    #[serde(default)]
    pub hub_share: f32,
    /// Sampled: share of all hubs that are in the frontier (Enterprise's gamma; `None` where the policy did not ask).
    #[serde(default)]
    pub sampled_hubs: Option<f32>,
}

/// The record of a level.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LevelRecord {
    /// What the policy saw.
    pub stats: LevelStats,
    /// What it decided.
    pub plan: LevelPlan,
    /// Levels this record stands for: 1, or more where a run of levels too small to share went by in one go.
    pub levels: u32,
    /// Vertices found (at all of these levels).
    pub found: u64,
    /// Time of the level, conversions and the decision included, in nanoseconds.
    pub elapsed_ns: u64,
    /// Share of it spent converting the frontier between queue and bitmap, in nanoseconds.
    pub conversion_ns: u64,
    /// Share of it spent deciding (sampling included), in nanoseconds.
    pub decision_ns: u64,
    /// Share of it spent handing memory over between CPU and GPU, in nanoseconds.
    #[serde(default)]
    pub handover_ns: u64,
    /// Where the level was split: the time of the CPU's part, in nanoseconds, else 0.
    #[serde(default)]
    pub cpu_ns: u64,
    /// The same of the GPU's part.
    #[serde(default)]
    pub gpu_ns: u64,
    /// Where both devices ran the level: share of it spent copying frontier and bitmap to where the GPU reads them, in nanoseconds,
    /// else 0.
    #[serde(default)]
    pub copy_ns: u64,
    /// The same spent starting the GPU, and waiting for it when the CPU's part was done.
    #[serde(default)]
    pub wait_ns: u64,
    /// The same spent merging what the GPU found. Together with `conversion_ns`, `decision_ns`, `handover_ns`, `cpu_ns`, `copy_ns` and
    /// `wait_ns` it makes up the time of a level that both ran.
    #[serde(default)]
    pub merge_ns: u64,
    /// Time of the devices' kernels at this level by the devices' own clocks, in nanoseconds: what is left of the time is that of the
    /// queue, the driver and the CPU. 0 where no device keeps it ([`Device::open_timed`](crate::opencl::Device::open_timed)).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device_ns: u64,
    /// Threads that took part.
    pub threads: u32,
    /// It was launched together with the level before, whose record has the time of both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_previous: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The tree of one search, in original vertex numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfsResult {
    /// Root.
    pub root: Vertex,
    /// Parent of every vertex: the root's is itself, [`NONE`](crate::graph::NONE) where not reached.
    pub parent: Vec<Vertex>,
    /// Level of every vertex: 0 for the root, [`NONE`](crate::graph::NONE) where not reached.
    pub level: Vec<u32>,
}
