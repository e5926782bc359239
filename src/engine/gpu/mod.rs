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
pub(crate) use {
    arrivals::check_parents,
    part::{PartArrays, PartFrontier, PartGpu, PartState},
};

use self::{graph::DeviceGraph, levels::RunAhead, setup::Kernels, slots::Slot};
use super::state::Allocate;
use crate::{
    bfs::{Ahead, GpuKernel},
    graph::Layout,
    memory::{OutOfMemory, ShareError, SharedSlice, SharingMode, Slab},
    opencl::{Buffer, Device, DeviceError, Kernel, OpenClError},
    policy::SampledCosts,
};

/// Levels in one launch of one group, so that no driver's watchdog takes it for a hang.
const RUN_LEVELS: u32 = 512;

/// Where a device reads the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphMemory {
    /// The host's own arrays, without a copy (CL_MEM_USE_HOST_PTR).
    InPlace,
    /// A copy in the device's memory.
    Device,
}

/// Options of kernels: how they are compiled, and their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GpuOptions {
    /// Items in a work-group (`None`: 1 on an OpenCL device that is a CPU, else 256, as far as the device allows). 1 is a
    /// variant of the kernels of its own, in which every item works through vertices by itself.
    pub group: Option<usize>,
    /// Spread the neighbours over at least this many buffers, 1 to 16 (0: as few as the device allows).
    pub parts: usize,
    /// One work-group runs frontiers of up to this many arcs, level after level, in one launch (`None`: 16 for each of its items; 8192
    /// where an item works by itself).
    pub run_arcs: Option<u32>,
    /// Words of the visited bitmap that BGC keeps in local memory (`None`: 1024, as far as there is room).
    pub cached_words: Option<usize>,
    /// Steps (levels, or runs of small ones) launched together before the host waits, as far as the planner is sure of them: 1 to 16
    /// (`None`: 8). A step that finds nothing costs a launch, a wait saved a round trip.
    pub steps: Option<usize>,
    /// What a bottom-up level costs on this device, where it decides a direction by itself, as in an asynchronous search (`None`: as on the
    /// CPU).
    pub costs: Option<SampledCosts>,
    /// Vertices looked at in a sample of unvisited ones (`None`: 256).
    pub places: Option<u32>,
    /// Neighbours looked at of each, at most (`None`: 64).
    pub probes: Option<u32>,
    /// Vertices are claimed by bins instead of by atomics, where an item works by itself (`None`: where that may gain something, which
    /// [`Search::set_bins`](crate::search::Search::set_bins) changes).
    pub bins: Option<bool>,
    /// Where the graph lies (`None`: in the device's memory where that is not the host's and has room, else in the host's).
    pub graph: Option<GraphMemory>,
}

/// A reason why the GPU engine can't be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GpuEngineError {
    /// OpenCL refused.
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
    /// Memory can't be shared.
    #[error(transparent)]
    Share(#[from] ShareError),
    /// The host has no memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A call failed.
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
    /// The device computes something else than the kernels say.
    #[error("kernel {kernel:?} finds wrong levels: driver {driver} has a bug that neither kind of kernels avoids; choose another device")]
    Wrong {
        /// The kernel.
        kernel: GpuKernel,
        /// Version of the driver.
        driver: String,
    },
}

/// Memory that a device shares.
pub(crate) struct OnDevice<'a> {
    pub(crate) device: &'a Arc<Device>,
    pub(crate) way: SharingMode,
}

impl Allocate<ShareError> for OnDevice<'_> {
    fn numbers(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, ShareError> {
        SharedSlice::on(self.device, self.way, len, what)
    }

    fn queue(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, ShareError> {
        // A mapping is of the whole array, both ways; a copy is of the entries in use, often a few of as many as there are vertices.
        let way = if self.way == SharingMode::SvmFine { self.way } else { SharingMode::Copy };
        SharedSlice::on(self.device, way, len, what)
    }

    fn words(&self, len: usize, what: &'static str) -> Result<SharedSlice<u64>, ShareError> {
        SharedSlice::on(self.device, self.way, len, what)
    }
}

/// Runs levels on one device. Every call of a level works on a [`SearchState`] that the device owns, in which
/// `visited[current]` is up to date and the queue holds no vertex twice.
#[derive(Debug)]
pub(crate) struct GpuEngine<'g> {
    layout: &'g Layout,
    device: Arc<Device>,
    graph: DeviceGraph<'g>,
    kernels: Kernels,
    /// Slots of counters: see [`slots`].
    counters: Buffer<u32>,
    /// Where they are read to: memory that outlives a read which fails and continues all the same, as the stack would not.
    arrived: Slab<u32>,
    slots_in_flight: bool,
    /// Conditions of steps that were not planned one by one.
    guards: Buffer<u32>,
    /// Where they are written from, for the same reason.
    guard_words: Slab<u32>,
    /// The slot of the last step.
    slot: u32,
    /// That slot says where the search stands.
    seeded: bool,
    /// The bits of its state.
    device_state: u32,
    /// What the planner would surely decide.
    ahead: Ahead,
    /// What the guards on the device say.
    guarded: Option<Ahead>,
    /// Levels that have been run before they are planned.
    run_ahead: RunAhead,
    /// See [`GpuEngine::count_times`].
    counted_ns: u64,
    /// The last slot that was read, with samples where they were taken.
    sampled: Option<Slot>,
    /// Two masks, which change places; always zero outside of TGM levels.
    masks: [Buffer<u8>; 2],
    /// Vertices of a queue that is checked; else nothing.
    seen: Slab<u64>,
    /// Padding and vertices without an edge: the host's, and the device's.
    host_closed: Slab<u64>,
    excluded: Buffer<u64>,
    /// Levels of vertices found in an asynchronous search.
    level_of: Option<Buffer<u32>>,
    group: usize,
    groups: usize,
    /// One group runs frontiers of up to this many arcs.
    run_arcs: u64,
    /// There are lists long enough to be cut, by a group of several items.
    has_long_lists: bool,
    /// There is room for claims by bins; TG uses them.
    offers_bins: bool,
    bins: bool,
    /// Half of the words of that room.
    most_pieces: u32,
    /// The graph has few arcs a vertex and no hub: most levels are small.
    roads: bool,
    /// So they were in the current search.
    long_runs: bool,
    most_steps: usize,
    /// Steps of the next chain: half as many as in the last one if only the first of that applied, since each of the others cost a launch.
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

    /// Adds the times of kernels that have ended to what [`take_counted_ns`](Self::take_counted_ns) gives, where the device keeps times.
    pub(crate) fn count_times(&mut self) -> Result<(), DeviceError> {
        let counted = &mut self.counted_ns;
        self.device.times_of_ended(|time| *counted += time.end_ns.saturating_sub(time.start_ns))
    }

    /// Nanoseconds of the kernels whose times were counted since this was last asked.
    pub(crate) fn take_counted_ns(&mut self) -> u64 {
        std::mem::take(&mut self.counted_ns)
    }

    /// Items in a work-group.
    pub(crate) fn group(&self) -> usize {
        self.group
    }

    /// Whether there is room for claims by bins.
    pub(crate) fn offers_bins(&self) -> bool {
        self.offers_bins
    }

    /// Whether TG claims vertices by bins.
    pub(crate) fn has_bins(&self) -> bool {
        self.bins
    }

    /// Buffers over which the neighbours are spread.
    pub(crate) fn parts(&self) -> usize {
        self.graph.split().parts
    }

    /// Whether the device was given the host's own arrays of neighbours.
    pub(crate) fn is_zero_copy(&self) -> bool {
        self.graph.is_zero_copy()
    }

    fn next_slot(&mut self) -> u32 {
        self.slot = (self.slot + 1) % slots::SLOTS;
        self.slot
    }

    /// Has the slots of all steps read without waiting.
    pub(crate) fn call_slots(&mut self) -> Result<(), DeviceError> {
        self.slots_in_flight = true;
        // SAFETY: nothing looks at `arrived` before a wait (`found`, or a blocking read of the same), and `drop` waits or keeps it.
        unsafe { self.counters.read_later(0..self.arrived.len(), &mut self.arrived) }
    }

    /// Reads the slots of all steps. Waits for them.
    fn read_slots(&mut self) -> Result<(), DeviceError> {
        self.counters.read(0..self.arrived.len(), &mut self.arrived)
    }

    /// A slot that was read.
    fn read_slot(&self, slot: u32) -> Slot {
        Slot::of(&self.arrived, slot)
    }

    /// Starts `groups` work-groups of a kernel.
    fn start(&self, kernel: &Kernel, groups: usize) -> Result<(), DeviceError> {
        // SAFETY: these are the kernels of kernels/*.cl, which stay inside the arrays that `bind` and the levels give them: every index is
        // compared with the number of vertices, arcs or words (tests/gpu_races.rs has Oclgrind check that). Memory changes hands in
        // `handover` only, after a wait.
        unsafe { kernel.run(groups, self.group) }
    }

    /// Groups for `items` pieces of work, each for one item.
    fn groups_for(&self, items: usize) -> usize {
        items.div_ceil(self.group).clamp(1, self.groups)
    }
}

impl Drop for GpuEngine<'_> {
    fn drop(&mut self) {
        if self.slots_in_flight {
            self.counters.end_reads(&self.arrived);
        }
    }
}
