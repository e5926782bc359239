//! The GPU engine: TG, TGM, BG and BGC as OpenCL kernels over a state that the device owns.

mod arguments;
mod arrivals;
mod bind;
mod convert;
mod graph;
mod handover;
mod levels;
mod part;
mod sampling;
mod setup;
mod slots;
mod split;
mod stamps;

use std::sync::Arc;

pub(super) use arrivals::{check_found, check_total};
pub use {
    arrivals::check_parents,
    part::{PartArrays, PartFrontier, PartGpu, PartState},
};

use self::{arrivals::Completions, graph::DeviceGraph, levels::RunAhead, setup::Kernels, slots::Slot};
use crate::engine::Allocate;
use crate::{
    bfs::{Ahead, GpuKernel},
    graph::Layout,
    memory::{OutOfMemory, ShareError, SharedSlice, SharingMode, Slab},
    opencl::{Buffer, Device, DeviceError, Kernel, OpenClError},
    policy::SampledCosts,
};

/// The most levels that one launch of a single work-group runs, so that no driver's watchdog mistakes the launch for a hang.
const RUN_LEVELS: u32 = 512;

/// Nanoseconds that one launch should take at most.
const LAUNCH_NS: u64 = 500_000_000;
/// The most launches of a level.
const MOST_LAUNCHES: u64 = 256;

/// Where a device reads the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphMemory {
    /// The host's own arrays, without a copy (CL_MEM_USE_HOST_PTR).
    InPlace,
    /// A copy in the device's memory.
    Device,
}

/// A device to search on.
#[derive(Debug, Clone)]
pub struct GpuSetup {
    /// The device.
    pub device: Arc<Device>,
    /// How memory is shared with it.
    pub way: SharingMode,
    /// Options of the engine that runs on it.
    pub options: GpuOptions,
}

/// A device of a search, with its settings.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeviceUse {
    /// Name of the device.
    pub name: String,
    /// Name of its platform.
    pub platform: String,
    /// Version of its driver.
    pub driver: String,
    /// Items in a work-group.
    pub group: usize,
    /// Work-groups of a launch, at most.
    #[serde(default)]
    pub groups: usize,
    /// Buffers over which the neighbours are spread.
    pub parts: usize,
    /// Whether it reads the host's own arrays of neighbours.
    pub zero_copy: bool,
}

/// Options of the GPU engine: how its kernels are compiled and launched, and where the graph lies.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GpuOptions {
    /// Work-items in a work-group, a multiple of 32 (`None`: 32 on an OpenCL device that is a CPU, else 256). The device gets the next
    /// smaller multiple that it allows; less than 32 counts as 32.
    pub group: Option<usize>,
    /// Spread the neighbours over at least this many buffers, 1 to 16 (0: as few as the device allows).
    pub parts: usize,
    /// One work-group runs frontiers of fewer arcs than this, level after level, in one launch (`None`: 16 per work-item).
    pub run_arcs: Option<u32>,
    /// Words of the visited bitmap that BGC keeps in local memory (`None`: 1024, as far as there is room).
    pub cached_words: Option<usize>,
    /// Steps (levels, or runs of small levels) that are launched together before the host waits, as far as the planner is sure of them: 1
    /// to 16 (`None`: 8). A step that does not apply costs a launch; each wait avoided saves a round trip.
    pub steps: Option<usize>,
    /// Costs of a bottom-up level on this device, which decide directions in an asynchronous search (`None`: as on the CPU).
    pub costs: Option<SampledCosts>,
    /// Vertices tried for a sample of unvisited vertices (`None`: 256).
    pub places: Option<u32>,
    /// Neighbours tested per sampled vertex, at most (`None`: 64).
    pub probes: Option<u32>,
    /// Arcs that one launch goes through, about (`None`: as many as take half a second, at the speed measured so far). A larger level is
    /// several launches, since drivers of phones and boards end a kernel that runs for some seconds.
    pub launch_arcs: Option<u64>,
    /// Where the device reads the graph. `None`: a copy in the device's memory if the device has its own memory and there is room beside
    /// what else a search needs, otherwise the host's arrays.
    pub graph: Option<GraphMemory>,
}

/// A reason why the GPU engine can't be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuEngineError {
    /// OpenCL can't be set up.
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
    /// Memory can't be shared.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// The host has not enough memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A call to the device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Counters of the kernels would wrap around.
    #[error(
        "{vertices} vertices are more than the {most} that kernels can count on this device: search this graph on the CPU (--device cpu)"
    )]
    TooManyVertices {
        /// Vertices, padding included.
        vertices: usize,
        /// The most that this device's kernels count.
        most: usize,
    },
    /// The device computes wrong results.
    #[error("kernel {kernel:?} finds wrong levels: driver {driver} has a bug; update it, or choose another device")]
    Wrong {
        /// The kernel.
        kernel: GpuKernel,
        /// Version of the driver.
        driver: String,
    },
}

impl GpuOptions {
    /// The options to try after a set-up that failed with `error`, if the device had no memory left beside its copy of the graph: the graph
    /// stays in the host's memory.
    pub fn without_a_copy(self, device: &Device, error: &GpuEngineError) -> Option<Self> {
        let (GpuEngineError::OpenCl(error) | GpuEngineError::Share(ShareError::OpenCl(error))) = error else { return None };
        if !matches!(error, OpenClError::OutOfMemory { .. }) || self.graph.is_some() || device.info().unified_memory {
            return None;
        }
        log::warn!("{error}: the graph stays in the host's memory, where kernels read it more slowly");
        Some(Self { graph: Some(GraphMemory::InPlace), ..self })
    }
}

/// Allocates memory that the host shares with a device.
pub struct OnDevice<'a> {
    pub(crate) device: &'a Arc<Device>,
    pub(crate) way: SharingMode,
}

impl Allocate<ShareError> for OnDevice<'_> {
    fn numbers(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, ShareError> {
        SharedSlice::on(self.device, self.way, len, what)
    }

    fn queue(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, ShareError> {
        // A mapping covers the whole array in both directions. A copy covers only the entries in use. These are often few, although the
        // array has room for every vertex.
        let way = if self.way == SharingMode::SvmFine { self.way } else { SharingMode::Copy };
        SharedSlice::on(self.device, way, len, what)
    }

    fn words(&self, len: usize, what: &'static str) -> Result<SharedSlice<u64>, ShareError> {
        SharedSlice::on(self.device, self.way, len, what)
    }
}

/// Runs levels on one device. Every call of a level works on a `SearchState` that the device owns, in which `visited[current]` is up to
/// date and the queue holds no vertex twice.
#[derive(Debug)]
pub struct GpuEngine<'g> {
    layout: &'g Layout,
    device: Arc<Device>,
    graph: DeviceGraph<'g>,
    kernels: Kernels,
    /// Slots of counters: see [`slots`].
    counters: Buffer<u32>,
    /// Destination of reads of `counters`. It is not on the stack, since a read that failed may still write to it later.
    arrived: SharedSlice<u32>,
    /// Whether a transfer to `arrived` or from `guard_words` may not have ended.
    in_flight: bool,
    /// Launches of kernels that complete the work of another one; see [`slots::COMPLETIONS`].
    completions: Completions,
    /// Conditions under which steps apply that are launched before they are planned.
    guards: Buffer<u32>,
    /// Source of writes to `guards`; not on the stack for the same reason.
    guard_words: SharedSlice<u32>,
    /// The slot of the last step.
    slot: u32,
    /// Whether that slot holds the current state of the search.
    seeded: bool,
    /// The state bits of that slot.
    device_state: u32,
    /// The decisions that the planner is sure of at later levels.
    ahead: Ahead,
    /// The decisions that the guards on the device encode (`None`: unknown).
    guarded: Option<Ahead>,
    /// Levels that have been run before they were planned.
    run_ahead: RunAhead,
    /// Whether the device has work in the split level that was started last.
    has_part: bool,
    /// See [`GpuEngine::count_times`].
    counted_ns: u64,
    /// The last slot that was read, with samples if any were taken.
    sampled: Option<Slot>,
    /// Two frontier masks, used in turn by TGM. Both are all zero unless the frontier is a mask.
    masks: [Buffer<u8>; 2],
    /// Bits of the vertices of a queue that is being checked; all zero otherwise.
    seen: Slab<u64>,
    /// Bits of padding and of vertices without an edge, on the host (`host_closed`) and on the device (`excluded`).
    host_closed: Slab<u64>,
    excluded: Buffer<u64>,
    /// Levels of vertices found in an asynchronous search.
    level_of: Option<Buffer<u32>>,
    group: usize,
    groups: usize,
    /// One work-group runs frontiers of fewer arcs than this.
    run_arcs: u64,
    /// Whether there are lists long enough to be cut into pieces.
    has_long_lists: bool,
    /// Whether the graph has few arcs per vertex and no hub, so that most levels are small.
    roads: bool,
    /// Whether the steps of the next chain are those for long runs of small levels.
    long_runs: bool,
    launch_arcs: Option<u64>,
    most_steps: usize,
    /// The most steps of the next chain. If at most one step of the last chain ran levels, it is half the length of that chain, since all
    /// other steps cost a launch and ran nothing.
    steps: usize,
    places: usize,
    probes: u32,
    cached_words: usize,
}

impl GpuEngine<'_> {
    /// The device.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Adds the times of kernels that have ended to the sum that [`take_counted_ns`](Self::take_counted_ns) returns, if the device keeps
    /// times.
    pub(crate) fn count_times(&mut self) -> Result<(), DeviceError> {
        let counted = &mut self.counted_ns;
        self.device.times_of_ended(|time| *counted += time.end_ns.saturating_sub(time.start_ns))
    }

    /// Nanoseconds of the kernels whose times were counted since the last call.
    pub(crate) fn take_counted_ns(&mut self) -> u64 {
        std::mem::take(&mut self.counted_ns)
    }

    /// Work-items in a work-group.
    pub(crate) fn group(&self) -> usize {
        self.group
    }

    /// Work-groups of a launch, at most.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// Number of buffers over which the neighbours are spread.
    pub(crate) fn parts(&self) -> usize {
        self.graph.split().parts
    }

    /// Whether the device was given the host's own arrays of neighbours.
    pub(crate) fn is_zero_copy(&self) -> bool {
        self.graph.is_zero_copy()
    }

    /// Number of launches for a level that goes through at most `arcs` arcs.
    fn launches(&self, arcs: u64) -> u32 {
        let launches = match self.launch_arcs {
            Some(most) => arcs.div_ceil(most.max(1)),
            None => self.device.ns_of(arcs).div_ceil(LAUNCH_NS),
        };
        launches.clamp(1, MOST_LAUNCHES) as u32
    }

    fn next_slot(&mut self) -> u32 {
        self.slot = (self.slot + 1) % slots::SLOTS;
        self.slot
    }

    /// Starts to read the slots of all steps, without waiting.
    pub(crate) fn call_slots(&mut self) -> Result<(), DeviceError> {
        self.in_flight = true;
        // SAFETY: `arrived` is not accessed before a wait: `found` is called after one, and `read_slots` waits. `drop` waits for the read,
        // or keeps the memory.
        unsafe { self.counters.read_later(0..self.arrived.len(), &mut self.arrived) }
    }

    /// Waits for the slots of all steps, and reads them.
    fn read_slots(&mut self) -> Result<(), DeviceError> {
        self.counters.read(0..self.arrived.len(), &mut self.arrived)?;
        self.in_flight = false;
        self.completions.check(&self.arrived)
    }

    /// Slot `slot` as it was last read.
    fn read_slot(&self, slot: u32) -> Slot {
        Slot::of(&self.arrived, slot)
    }

    /// Starts `groups` work-groups of a kernel.
    fn start(&self, kernel: &Kernel, groups: usize) -> Result<(), DeviceError> {
        // SAFETY: these are the kernels of kernels/*.cl, which stay inside the arrays that `bind` and the levels give them: every index is
        // compared with the number of vertices, arcs or words (tests/gpu_races.rs has Oclgrind check that). Memory that kernels were given
        // goes back to the host only after a wait: in `handover`, or in a level that both run (`hybrid::concurrent`).
        unsafe { kernel.run(groups, self.group) }
    }

    /// Number of work-groups for `items` pieces of work, one per work-item; at most `self.groups`.
    fn groups_for(&self, items: usize) -> usize {
        items.div_ceil(self.group).clamp(1, self.groups)
    }
}

impl Drop for GpuEngine<'_> {
    fn drop(&mut self) {
        if self.in_flight {
            // If this fails, the memory of both sides is kept.
            let _ = self.device.finish();
        }
    }
}
