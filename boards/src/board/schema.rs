//! The content of a profile: one type for every table, one field for every key. `boards/README.md` describes it for authors of profiles.
//!
//! Everything except `schema` and `[board] name` may be absent, which means "not known": the program then asks the system, measures, or
//! uses its built-in default.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use socbfs::{bfs::Strategy, memory::SharingMode};
use socbfs_policy::Band;
use socbfs_power::{Pattern, Rail, Scope};

use super::CpuList;

/// A board profile. `P` is the type of its policy, which checks its own values when it is deserialised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board<P> {
    /// Version of the format: [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Keys whose values were not measured on this board, as paths (`adaptive.top_down.gpu_from`, `cpu.clusters[0].capacity`). The path of
    /// a table (`speeds`) stands for all keys in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub estimates: Vec<String>,
    /// Name and description of the board.
    pub board: Identity,
    /// The properties that identify a machine as this board.
    #[serde(default, skip_serializing_if = "is_default")]
    pub detect: Detect,
    /// The processor, and the threads that run on it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cpu: Cpu,
    /// The OpenCL devices of the board.
    #[serde(default, skip_serializing_if = "is_default")]
    pub opencl: OpenCl,
    /// The policy, with its thresholds.
    pub policy: Option<P>,
    /// The least work for which a level runs on the GPU, or on both devices.
    #[serde(default, skip_serializing_if = "is_default")]
    pub adaptive: Adaptive,
    /// The speed of each strategy.
    #[serde(default, skip_serializing_if = "is_default")]
    pub speeds: Speeds,
    /// The power sensors of the board and what they measure.
    #[serde(default, skip_serializing_if = "is_default")]
    pub power: Power,
    /// Where searches run best.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operating_points: Vec<OperatingPoint>,
}

/// The table `[board]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name of the board: a-z, 0-9 and `-`.
    pub name: String,
    /// Its maker.
    pub vendor: Option<String>,
    /// The chip.
    pub soc: Option<String>,
    /// Physical memory in bytes; absent if the board is sold with several sizes.
    pub memory_bytes: Option<u64>,
    /// Theoretical bandwidth of the memory in 10^6 bytes per second.
    pub memory_bandwidth_mega_bytes_per_s: Option<u64>,
    /// The source of these facts.
    pub url: Option<String>,
    /// Other facts.
    pub notes: Option<String>,
}

/// The table `[detect]`. A machine is this board if its device tree has an entry of `device_tree`; or if an entry of `device_tree_model`
/// matches; or if every given list of `dmi_*` has an entry that matches (and at least one list is given); or if an entry of `cpu_model`
/// matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detect {
    /// Strings of the root node's `compatible`. Case is ignored: Hardkernel's Linux 3.10 writes "Hardkernel,odroid-xu3".
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_tree: Vec<String>,
    /// The root node's `model`. Makers' own kernels often name the board only there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_tree_model: Vec<Pattern>,
    /// DMI's `sys_vendor`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dmi_vendor: Vec<Pattern>,
    /// DMI's `product_name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dmi_product: Vec<Pattern>,
    /// DMI's `board_name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dmi_board: Vec<Pattern>,
    /// `model name` of `/proc/cpuinfo`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_model: Vec<Pattern>,
}

/// The table `[cpu]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Threads (0: one for every CPU the process may run on).
    pub threads: Option<usize>,
    /// CPUs that the threads are bound to, one each in turn.
    pub cpus: Option<CpuList>,
    /// Vertices of the frontier that a thread of a search over several processes works off at a time: as many as fit a cache or a local
    /// memory.
    pub batch: Option<usize>,
    /// Groups of cores of one kind, in the order of their CPU numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
}

/// A table `[[cpu.clusters]]`: cores of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Its name: `big`, `little`, `performance`.
    pub name: String,
    /// Physical cores.
    pub cores: u32,
    /// Name of the core: `Cortex-A15`.
    pub core_type: Option<String>,
    /// Highest clock in MHz.
    pub max_mhz: Option<u32>,
    /// Linux's numbers of its CPUs; with simultaneous multithreading, several for each core.
    pub cpus: Option<CpuList>,
    /// Linux's measure of the speed of one core (`cpu_capacity`): 1024 for the fastest core of the chip.
    pub capacity: Option<u32>,
}

/// The table `[opencl]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenCl {
    /// Devices, the preferred one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<OpenClDevice>,
}

impl OpenCl {
    /// The tables of GPUs. PoCL's device on a CPU is described by its local memory, which is global memory, or by one of its names.
    pub fn gpus(&self) -> impl Iterator<Item = &OpenClDevice> {
        let is_cpu = |device: &OpenClDevice| {
            let pocl = device.via == Some(Via::Pocl) && device.quirks.contains(&Quirk::LocalIsGlobal);
            pocl || ["pthread", "cpu"].iter().any(|name| device.name.as_str().starts_with(name))
        };
        self.devices.iter().filter(move |device| !is_cpu(device))
    }
}

/// A table `[[opencl.devices]]`. A limit is the smaller of what the driver reports and what the profile sets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenClDevice {
    /// Pattern of `CL_DEVICE_NAME`. The first table whose pattern matches describes the device.
    pub name: Pattern,
    /// The OpenCL implementation of this device, if it is not the vendor's driver.
    pub via: Option<Via>,
    /// Compute units, whatever the driver reports.
    pub compute_units: Option<u32>,
    /// Largest buffer in bytes.
    pub max_alloc_bytes: Option<u64>,
    /// Most work-items in a work-group.
    pub max_work_group: Option<u32>,
    /// Work-items in a work-group, a multiple of 32.
    pub work_group: Option<u32>,
    /// The cost of a bottom-up level relative to a top-down one, in thousandths of the ratio that `sampled` assumes.
    pub bottom_up_permille: Option<u32>,
    /// Local memory of a work-group in bytes.
    pub local_bytes: Option<u64>,
    /// Memory the device may use in bytes.
    pub global_bytes: Option<u64>,
    /// Seconds that a wait for the device may take, besides ten times what its work should take.
    pub timeout_s: Option<u64>,
    /// The best sharing mode.
    pub memory_way: Option<SharingMode>,
    /// Whether local memory is faster than global memory, so that it can pay to cache hubs in it (BGC).
    pub bgc: Option<bool>,
    /// Properties of the device or its driver that need care.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<Quirk>,
}

/// An OpenCL implementation other than the vendor's driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Via {
    /// PoCL, on the CPU or on NVIDIA's GPU through CUDA; for boards whose vendor has no OpenCL driver.
    Pocl,
    /// Mesa's rusticl.
    Rusticl,
}

impl Via {
    /// Whether this is the name of the implementation's platform.
    pub fn is(self, platform: &str) -> bool {
        match self {
            Self::Pocl => platform == "Portable Computing Language",
            Self::Rusticl => platform == "rusticl",
        }
    }
}

/// A property of a device or its driver that needs care. socbfs always keeps every limit, maps memory before it stores to it, and does not
/// trust a driver that reports too little memory. So [`Quirk::MaxAllocUnchecked`], [`Quirk::UnmappedStoresLost`],
/// [`Quirk::MemoryUnderstated`] and [`Quirk::OptIn`] only inform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Quirk {
    /// The driver does not refuse a buffer above the largest size: the program has to keep the limit.
    MaxAllocUnchecked,
    /// More memory can be used than the driver reports.
    MemoryUnderstated,
    /// Mapping copies the buffer, which costs time in proportion to its size. Neither `alloc-host-ptr` nor `use-host-ptr` is offered.
    MapCopies,
    /// `CL_MEM_USE_HOST_PTR` copies memory. `use-host-ptr` is not offered, and the graph is copied to the device's memory.
    UseHostPtrCopies,
    /// Stores of the host to a buffer that is not mapped are lost.
    UnmappedStoresLost,
    /// The caches of CPU and GPU are not coherent. `svm-fine` is not offered.
    NotCoherent,
    /// Local memory is part of global memory. Bottom-up levels run without hubs in it (BG).
    LocalIsGlobal,
    /// The compiler fails at many kernels in one program. Each file of kernels is built as a program of its own.
    ProgramPerFile,
    /// The device does not run by default: the user has to switch it on (the notes of the board say how).
    OptIn,
}

/// The table `[adaptive]`: where the levels of a search run, direction by direction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adaptive {
    /// Top-down levels, by the arcs that leave the frontier.
    #[serde(default, skip_serializing_if = "is_default")]
    pub top_down: Band,
    /// Bottom-up levels, by the unvisited vertices.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bottom_up: Band,
    /// The cost of a change from one device to the other.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handover: Handover,
}

/// The table `[adaptive.handover]`: the cost of handing over the state of a search, as the mean of the ways to the GPU and back.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Microseconds independent of the size of the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_us: Option<f64>,
    /// Microseconds for each 10^6 vertices of the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mega_vertex_us: Option<f64>,
}

/// A table `[[operating_points]]`: what searches run on, as `socbfs sweep` found it best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperatingPoint {
    /// What it is best at.
    pub goal: Goal,
    /// CPUs that threads are bound to, one each.
    pub cpus: CpuList,
    /// The OpenCL device, as in `--device`.
    pub device: Option<String>,
    /// Clocks in kHz at which the point was measured, by cluster or device. They are not set.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clocks_khz: BTreeMap<String, u64>,
    /// Speed at this point, in 10^6 traversed edges per second.
    pub mteps: Option<f64>,
    /// Power at this point.
    pub watts: Option<f64>,
}

/// What an operating point can be best at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// Most traversed edges per second.
    Fastest,
    /// Most traversed edges per joule (MTEPS/W).
    Efficient,
    /// Least product of the energy and the time of a search.
    Product,
}

impl Goal {
    /// All goals.
    pub const ALL: [Self; 3] = [Self::Fastest, Self::Efficient, Self::Product];

    /// The name, as in `--at`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fastest => "fastest",
            Self::Efficient => "efficient",
            Self::Product => "product",
        }
    }
}

/// The error of a name that no [`Goal`] has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no operating point: it is fastest, efficient or product")]
pub struct UnknownGoal(pub String);

impl FromStr for Goal {
    type Err = UnknownGoal;

    fn from_str(name: &str) -> Result<Self, UnknownGoal> {
        Self::ALL.into_iter().find(|goal| goal.name() == name).ok_or_else(|| UnknownGoal(name.to_owned()))
    }
}

/// The table `[speeds]`. Edges are those out of the frontier (top-down), or those of unvisited vertices (bottom-up).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speeds {
    /// Top-down on the CPU, 10^6 edges per second.
    pub tc_mega_edges_per_s: Option<f64>,
    /// Top-down on the GPU over a queue.
    pub tg_mega_edges_per_s: Option<f64>,
    /// Top-down on the GPU over a mask of all vertices.
    pub tgm_mega_edges_per_s: Option<f64>,
    /// Bottom-up on the CPU.
    pub bc_mega_edges_per_s: Option<f64>,
    /// Bottom-up on the GPU.
    pub bg_mega_edges_per_s: Option<f64>,
    /// Bottom-up on the GPU with hubs in local memory.
    pub bgc_mega_edges_per_s: Option<f64>,
    /// Time of a launch that does nothing, in microseconds.
    pub launch_us: Option<f64>,
}

impl Speeds {
    /// The key of the speed of `strategy`.
    pub fn key(strategy: Strategy) -> String {
        format!("{}_mega_edges_per_s", strategy.name())
    }

    /// The speed of `strategy`, in 10^6 edges per second.
    pub fn of(&self, strategy: Strategy) -> Option<f64> {
        [
            self.tc_mega_edges_per_s,
            self.tg_mega_edges_per_s,
            self.tgm_mega_edges_per_s,
            self.bc_mega_edges_per_s,
            self.bg_mega_edges_per_s,
            self.bgc_mega_edges_per_s,
        ][strategy as usize]
    }
}

/// The table `[power]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// What the sum of the counted rails covers.
    pub scope: Option<Scope>,
    /// Power of each strategy, to minimise energy without a calibration.
    #[serde(default, skip_serializing_if = "is_default")]
    pub watts: StrategyWatts,
    /// The rails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<Rail>,
}

/// The table `[power.watts]`: power while only this strategy runs, idle power included, all of one scope.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyWatts {
    /// Top-down on the CPU.
    pub tc: Option<f64>,
    /// Top-down on the GPU over a queue.
    pub tg: Option<f64>,
    /// Top-down on the GPU over a mask of all vertices.
    pub tgm: Option<f64>,
    /// Bottom-up on the CPU.
    pub bc: Option<f64>,
    /// Bottom-up on the GPU.
    pub bg: Option<f64>,
    /// Bottom-up on the GPU with hubs in local memory.
    pub bgc: Option<f64>,
}

impl StrategyWatts {
    /// A table of the powers that `of` returns.
    pub fn by(of: impl Fn(Strategy) -> Option<f64>) -> Self {
        let [tc, tg, tgm, bc, bg, bgc] = Strategy::ALL.map(of);
        Self { tc, tg, tgm, bc, bg, bgc }
    }

    /// The power of `strategy` (`None`: not known).
    pub fn of(&self, strategy: Strategy) -> Option<f64> {
        let Self { tc, tg, tgm, bc, bg, bgc } = *self;
        [tc, tg, tgm, bc, bg, bgc][strategy as usize]
    }
}

/// Whether a table sets nothing.
fn is_default<T: Default + PartialEq>(table: &T) -> bool {
    *table == T::default()
}

impl fmt::Display for Quirk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl OpenClDevice {
    /// Whether this table describes the device of this name on this platform.
    pub fn describes(&self, name: &str, platform: &str) -> bool {
        self.name.matches(name) && self.via.is_none_or(|via| via.is(platform))
    }

    /// Whether no quirk rules out this sharing mode.
    pub fn permits(&self, way: SharingMode) -> bool {
        self.against(way).is_none()
    }

    /// The quirk that rules out this sharing mode, if there is one.
    pub fn against(&self, way: SharingMode) -> Option<Quirk> {
        self.quirks.iter().copied().find(|quirk| match quirk {
            Quirk::MapCopies => matches!(way, SharingMode::AllocHostPtr | SharingMode::UseHostPtr),
            Quirk::UseHostPtrCopies => way == SharingMode::UseHostPtr,
            Quirk::NotCoherent => way == SharingMode::SvmFine,
            _ => false,
        })
    }

    /// Whether hubs in local memory can pay, if that is known.
    pub fn has_local_memory(&self) -> Option<bool> {
        self.bgc.or_else(|| self.quirks.contains(&Quirk::LocalIsGlobal).then_some(false))
    }
}
