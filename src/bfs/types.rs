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

/// A kernel that runs a level, or a part of one, on the GPU. Names are those of Zhang et al. 2018 (table 2) and Remis 2016 (TGM).
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
    /// All kernels.
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

    /// The kernels that search in this direction. Every device runs the first one (TG, BG) without preparation.
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
    /// All strategies.
    pub const ALL: [Self; 6] = [Self::Tc, Self::Tg, Self::Tgm, Self::Bc, Self::Bg, Self::Bgc];

    /// The strategies of the CPU.
    pub const CPU: [Self; 2] = [Self::Tc, Self::Bc];

    /// The strategy of the CPU in this direction.
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

    /// The plan of a level that runs by this strategy.
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
pub enum Placement {
    /// On the CPU.
    #[default]
    Cpu,
    /// On the GPU.
    Gpu(GpuKernel),
    /// On both at the same time; the results are merged when both are done (Remis' Concurrent).
    Split {
        /// The GPU's share of the work, in thousandths.
        gpu_permille: u16,
        /// The kernel of the GPU's part. If its direction is not that of the level, the first kernel [of the level's
        /// direction](GpuKernel::of) runs instead, since records of older versions name no kernel.
        #[serde(default)]
        kernel: GpuKernel,
    },
    /// On both until the end of the search, each on its own copy of the state. For each vertex the smaller of its two levels counts (Remis'
    /// Asynchronous).
    Apart {
        /// The GPU's share of the frontier, in thousandths.
        gpu_permille: u16,
    },
}

/// The plan of one level (by default top-down on the CPU).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LevelPlan {
    /// Direction of the level.
    pub direction: Direction,
    /// Where the level runs.
    pub placement: Placement,
}

impl LevelPlan {
    /// The plan of a level that both devices run. The GPU runs this share of it, in thousandths, by `kernel`.
    pub fn split(kernel: GpuKernel, gpu_permille: u16) -> Self {
        Self { direction: kernel.direction(), placement: Placement::Split { gpu_permille, kernel } }
    }

    /// The kernel of the GPU (`None`: the CPU runs the level alone, or [`Placement::Apart`]).
    pub fn kernel(self) -> Option<GpuKernel> {
        match self.placement {
            Placement::Gpu(kernel) => Some(kernel),
            Placement::Split { kernel, .. } if kernel.direction() == self.direction => Some(kernel),
            Placement::Split { .. } => Some(GpuKernel::of(self.direction)[0]),
            Placement::Cpu | Placement::Apart { .. } => None,
        }
    }
}

/// The counts with which a planner plans a level. They are counts of the searched structure (internal vertices, distinct arcs).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LevelStats {
    /// The level to be planned: level 0 expands the root.
    pub level: u32,
    /// Vertices of the searched structure.
    pub vertices: u64,
    /// Arcs of the searched structure.
    pub arcs: u64,
    /// Vertices in the frontier.
    pub frontier_vertices: u64,
    /// Arcs that leave the frontier: exact for small frontiers and on devices, else estimated. After a bottom-up level the estimate uses
    /// the mean degree of each word of the bitmap; after a top-down level it does so for hubs, and samples the other vertices. Over ranks
    /// it uses the mean degrees after every level, for all vertices but the first 64.
    pub frontier_edges: u64,
    /// Whether `frontier_edges` is an estimate.
    #[serde(default)]
    pub frontier_is_estimated: bool,
    /// Vertices not yet visited.
    pub unvisited_vertices: u64,
    /// Arcs of vertices not yet visited: all arcs less the `frontier_edges` of all levels up to this one.
    pub unvisited_edges: u64,
    /// Whether an estimate was subtracted for `unvisited_edges`.
    #[serde(default)]
    pub unvisited_is_estimated: bool,
    /// Vertices in the frontier before this one (0 at level 0).
    pub previous_frontier_vertices: u64,
    /// Direction of the level before (`None` at level 0).
    pub previous_direction: Option<Direction>,
    /// Where the level before ran (`None` at level 0).
    #[serde(default)]
    pub previous_placement: Option<Placement>,
    /// Time of the CPU's part of the level before, if that was split, in nanoseconds, else 0.
    #[serde(default)]
    pub previous_cpu_ns: u64,
    /// Time of the GPU's part of the level before, if that was split, in nanoseconds, else 0.
    #[serde(default)]
    pub previous_gpu_ns: u64,
    /// Sampled: mean number of neighbours that an unvisited vertex would look at until it finds one in the frontier or has none left
    /// (`None`: the planner did not ask, or nothing was sampled).
    pub sampled_probes: Option<f32>,
    /// Share of hubs (vertices with more arcs than the mean) among the vertices that have arcs: SURF's p_h. The same at all levels.
    #[serde(default)]
    pub hub_share: f32,
    /// Sampled: share of all hubs that are in the frontier (Enterprise's gamma; `None`: the planner did not ask, or the engine does not
    /// know).
    #[serde(default)]
    pub sampled_hubs: Option<f32>,
}

/// The record of a level.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LevelRecord {
    /// The counts with which the planner planned the level.
    pub stats: LevelStats,
    /// The plan of the planner.
    pub plan: LevelPlan,
    /// Levels of this record: 1, or more where several levels too small to share among threads ran in one step.
    pub levels: u32,
    /// Vertices found, at all levels of this record.
    pub found: u64,
    /// Time of the level in nanoseconds, conversions and the decision included.
    pub elapsed_ns: u64,
    /// Part of `elapsed_ns` spent converting the frontier between queue and bitmap.
    pub conversion_ns: u64,
    /// Part of `elapsed_ns` spent deciding (sampling included).
    pub decision_ns: u64,
    /// Part of `elapsed_ns` spent handing memory over between CPU and GPU.
    #[serde(default)]
    pub handover_ns: u64,
    /// Time of the CPU's part of a split level, in nanoseconds, else 0.
    #[serde(default)]
    pub cpu_ns: u64,
    /// Time of the GPU's part of a split level, in nanoseconds, else 0.
    #[serde(default)]
    pub gpu_ns: u64,
    /// Part of `elapsed_ns` spent copying frontier and bitmap to where the GPU reads them; 0 unless both devices ran the level.
    #[serde(default)]
    pub copy_ns: u64,
    /// Part of `elapsed_ns` spent starting the GPU, and waiting for it when the CPU's part was done; 0 unless both devices ran the level.
    /// Over ranks, the part that waited for the messages of all ranks.
    #[serde(default)]
    pub wait_ns: u64,
    /// Part of `elapsed_ns` spent merging what the GPU found; 0 unless both devices ran the level. If they did, `conversion_ns`,
    /// `decision_ns`, `handover_ns`, `cpu_ns`, `copy_ns`, `wait_ns` and `merge_ns` make up the time of the level. Over ranks, the part that
    /// read the messages.
    #[serde(default)]
    pub merge_ns: u64,
    /// Time of the devices' kernels at this level by the devices' own clocks, in nanoseconds. The rest of the time belongs to the queue,
    /// the driver and the CPU. 0 where no device measures it ([`Device::open_timed`](crate::opencl::Device::open_timed)).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device_ns: u64,
    /// CPU threads that took part.
    pub threads: u32,
    /// The level was launched together with the one before, whose record has the time of both.
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
    /// Parent of every vertex: the root is its own parent; [`NONE`](crate::graph::NONE) where not reached.
    pub parent: Vec<Vertex>,
    /// Level of every vertex: 0 for the root, [`NONE`](crate::graph::NONE) where not reached.
    pub level: Vec<u32>,
}
