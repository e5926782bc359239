//! What a profile holds: one type for every table, one field for every key. `boards/README.md` is the same for authors of profiles.
//!
//! Everything but `schema` and `[board] name` may be absent, which means "not known": the program then asks the system, measures,
//! or takes its built-in default.

use serde::{Deserialize, Serialize};
use socbfs_power::{Domain, Family, Scope};

use super::{CpuList, Pattern};
use crate::memory::SharingMode;

/// A board profile; `P` is the type of its policy, which checks its own values as it is deserialised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Board<P> {
    /// Version of the format: [`SCHEMA`](super::SCHEMA).
    pub schema: u32,
    /// Keys whose values were not measured on this board, as paths (`adaptive.top_down.gpu_from`, `cpu.clusters[0].capacity`); a
    /// table (`speeds`) stands for all keys in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub estimates: Vec<String>,
    /// What the board is.
    pub board: Identity,
    /// How a machine is known to be this board.
    #[serde(default)]
    pub detect: Detect,
    /// The processor, and how many threads to run on it.
    #[serde(default)]
    pub cpu: Cpu,
    /// The OpenCL devices there are.
    #[serde(default)]
    pub opencl: OpenCl,
    /// The policy, with its thresholds.
    pub policy: Option<P>,
    /// From which size on a level runs on the GPU, or on both.
    #[serde(default)]
    pub adaptive: Adaptive,
    /// How fast each strategy is.
    #[serde(default)]
    pub speeds: Speeds,
    /// What the power sensors of the board measure.
    #[serde(default)]
    pub power: Power,
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
    /// Physical memory in bytes; absent where the board is sold with several sizes.
    pub memory_bytes: Option<u64>,
    /// Theoretical bandwidth of the memory in 10^6 bytes per second.
    pub memory_bandwidth_mega_bytes_per_s: Option<u64>,
    /// Where the facts are from.
    pub url: Option<String>,
    /// What else there is to know.
    pub notes: Option<String>,
}

/// The table `[detect]`. A machine is this board if an entry of `device_tree` stands in its device tree, or every list of `dmi_*` that
/// is given has an entry that matches (and one is given), or an entry of `cpu_model` matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Detect {
    /// Strings of the root node's `compatible`, exactly as they stand there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device_tree: Vec<String>,
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
    /// CPUs the threads are bound to, one each in turn.
    pub cpus: Option<CpuList>,
    /// Vertices of the frontier that a thread of a rank processes at a time: what fits a cache or a local memory.
    pub batch: Option<usize>,
    /// Arcs from which on threads share a top-down level.
    pub parallel_arcs: Option<u64>,
    /// The same of a frontier with hubs.
    pub parallel_hub_arcs: Option<u64>,
    /// The same of a graph with rows of neighbours, such as a road network.
    pub parallel_row_arcs: Option<u64>,
    /// Vertices that a thread takes at a time in a bottom-up level, a multiple of 64.
    pub piece: Option<usize>,
    /// Groups of cores of one kind, in the order of their CPU numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<Cluster>,
}

/// A table `[[cpu.clusters]]`: cores of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// What it is called: `big`, `little`, `performance`.
    pub name: String,
    /// Physical cores.
    pub cores: u32,
    /// Name of the core: `Cortex-A15`.
    pub core_type: Option<String>,
    /// Highest clock in MHz.
    pub max_mhz: Option<u32>,
    /// Numbers Linux gives to its CPUs; with simultaneous multithreading several for each core.
    pub cpus: Option<CpuList>,
    /// Speed of one core as Linux counts it (`cpu_capacity`): 1024 for the fastest core of the chip.
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

/// A table `[[opencl.devices]]`. Limits here are the tighter ones of what the driver says and what works: the smaller of driver and
/// profile holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenClDevice {
    /// `CL_DEVICE_NAME`. The first device of the profile whose pattern matches describes a device.
    pub name: Pattern,
    /// Where OpenCL on this device comes from, if not from the vendor's driver.
    pub via: Option<Via>,
    /// Compute units.
    pub compute_units: Option<u32>,
    /// Largest buffer in bytes.
    pub max_alloc_bytes: Option<u64>,
    /// Most work-items in a work-group.
    pub max_work_group: Option<u32>,
    /// Work-items in a work-group: 1, or a multiple of 32.
    pub work_group: Option<u32>,
    /// What a bottom-up level costs over a top-down one, in thousandths of what `sampled` says.
    pub bottom_up_permille: Option<u32>,
    /// Local memory of a work-group in bytes.
    pub local_bytes: Option<u64>,
    /// Memory the device may use in bytes.
    pub global_bytes: Option<u64>,
    /// How both devices best see the same memory.
    pub memory_way: Option<SharingMode>,
    /// Whether local memory is faster than global memory, so that caching hubs in it (BGC) can pay.
    pub bgc: Option<bool>,
    /// What has to be taken care of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quirks: Vec<Quirk>,
}

/// Where OpenCL comes from if not from the vendor's driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Via {
    /// PoCL: on the CPU, or on NVIDIA's GPU through CUDA. The vendor has no OpenCL for the board.
    Pocl,
    /// Mesa's rusticl.
    Rusticl,
}

impl Via {
    /// Whether a platform of this name is it.
    pub fn is(self, platform: &str) -> bool {
        match self {
            Self::Pocl => platform == "Portable Computing Language",
            Self::Rusticl => platform == "rusticl",
        }
    }
}

/// Something of a device or its driver that has to be taken care of. socbfs keeps to every limit by itself, maps memory before it stores
/// to it and believes no driver that has too little memory: [`Quirk::MaxAllocUnchecked`], [`Quirk::UnmappedStoresLost`],
/// [`Quirk::MemoryUnderstated`] and [`Quirk::OptIn`] only inform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Quirk {
    /// A buffer above the largest is not refused: the limit has to be kept by the program.
    MaxAllocUnchecked,
    /// More memory can be used than the driver says.
    MemoryUnderstated,
    /// Mapping copies: it costs time in proportion to the size. Neither `alloc-host-ptr` nor `use-host-ptr` is offered.
    MapCopies,
    /// `CL_MEM_USE_HOST_PTR` copies: `use-host-ptr` is not offered, and the graph is copied to the device's memory.
    UseHostPtrCopies,
    /// What the host stores while a buffer is not mapped is lost.
    UnmappedStoresLost,
    /// CPU and GPU caches are not coherent: `svm-fine` is not offered.
    NotCoherent,
    /// Local memory is global memory: bottom-up levels run without hubs in it (BG).
    LocalIsGlobal,
    /// Does not run by default: the user has to switch it on (the notes of the board say how).
    OptIn,
}

/// The table `[adaptive]`: where the levels of a search run, direction by direction.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adaptive {
    /// By the arcs that leave the frontier.
    #[serde(default)]
    pub top_down: Band,
    /// By the vertices not yet visited.
    #[serde(default)]
    pub bottom_up: Band,
    /// What it costs to go from one device to the other.
    #[serde(default)]
    pub handover: Handover,
}

/// The bound that is never reached, as any above it: a graph has fewer vertices, and fewer arcs.
pub const NEVER: u64 = 1 << 32;

/// A table `[adaptive.top_down]` or `[adaptive.bottom_up]`, where levels of one direction run, by their work: below `gpu_from` a level is
/// the CPU's, from there on the GPU's, from `split_from` on that of both, from `up_to` on the CPU's again. What is `None` was not said:
/// another origin may fill it, and a search takes it for [`NEVER`] (the share for a half).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// The GPU runs levels of this much work and more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_from: Option<u64>,
    /// Both run levels of this much work and more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_from: Option<u64>,
    /// The CPU runs levels of this much work and more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_to: Option<u64>,
    /// The GPU's share of the first split level, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_permille: Option<u16>,
}

/// The table `[adaptive.handover]`: the mean of the ways to the GPU and back, for all that a search hands over.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Handover {
    /// Microseconds, whatever the size of the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fixed_us: Option<f64>,
    /// Microseconds for each 10^6 vertices of the graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mega_vertex_us: Option<f64>,
}

/// The table `[speeds]`. Edges of bottom-up are probed edges.
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

/// The table `[power]`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// What the sum of the counted rails covers.
    pub scope: Option<Scope>,
    /// Power of each strategy, to minimise energy without a calibration.
    #[serde(default, skip_serializing_if = "StrategyWatts::is_empty")]
    pub watts: StrategyWatts,
    /// The rails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rails: Vec<Rail>,
}

/// The table `[power.watts]`: power while nothing but this strategy runs, idle power included, all of one scope.
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
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Quirk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::MaxAllocUnchecked => "max-alloc-unchecked",
            Self::MemoryUnderstated => "memory-understated",
            Self::MapCopies => "map-copies",
            Self::UseHostPtrCopies => "use-host-ptr-copies",
            Self::UnmappedStoresLost => "unmapped-stores-lost",
            Self::NotCoherent => "not-coherent",
            Self::LocalIsGlobal => "local-is-global",
            Self::OptIn => "opt-in",
        })
    }
}

impl OpenClDevice {
    /// Whether this describes the device of this name on this platform.
    pub fn describes(&self, name: &str, platform: &str) -> bool {
        self.name.matches(name) && self.via.is_none_or(|via| via.is(platform))
    }

    /// Whether memory may be shared with it in this way: no quirk rules it out.
    pub fn permits(&self, way: SharingMode) -> bool {
        self.against(way).is_none()
    }

    /// The quirk that rules this way out.
    pub fn against(&self, way: SharingMode) -> Option<Quirk> {
        self.quirks.iter().copied().find(|quirk| match quirk {
            Quirk::MapCopies => matches!(way, SharingMode::AllocHostPtr | SharingMode::UseHostPtr),
            Quirk::UseHostPtrCopies => way == SharingMode::UseHostPtr,
            Quirk::NotCoherent => way == SharingMode::SvmFine,
            _ => false,
        })
    }

    /// Whether hubs in local memory can pay, where that is known.
    pub fn has_local_memory(&self) -> Option<bool> {
        self.bgc.or_else(|| self.quirks.contains(&Quirk::LocalIsGlobal).then_some(false))
    }
}

/// A table `[[power.rails]]`: one sensor and what it measures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rail {
    /// The kind of sensor.
    pub family: Family,
    /// Which one of its kind, by what does not change from boot to boot: the I2C device `0-0040`, `1-0040:2` for its second channel, the
    /// powercap zone `intel-rapl:0`.
    pub id: Option<Pattern>,
    /// Which one, by the label the kernel gives: `VDD_IN`, `package-0`. With `id` both must match.
    pub label: Option<Pattern>,
    /// What it feeds.
    pub domain: Domain,
    /// Whether it is a part of the sum that `scope` names; a rail that another counted one contains is not.
    pub counted: bool,
    /// 1, or -1 where the sensor shows consumption as a negative number.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub sign: i8,
    /// Factor from what the sensor says, in the unit its family has, to what is meant.
    #[serde(default = "unscaled", skip_serializing_if = "is_unscaled")]
    pub scale: f64,
}

fn one() -> i8 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_one(sign: &i8) -> bool {
    *sign == 1
}

fn unscaled() -> f64 {
    1.0
}

#[expect(clippy::float_cmp, reason = "the default itself")]
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_unscaled(scale: &f64) -> bool {
    *scale == unscaled()
}
