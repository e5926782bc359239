//! The GPU engine: TG, TGM, BG and BGC as OpenCL kernels over a state that the device owns.

mod arguments;
mod arrivals;
mod convert;
mod graph;
mod handover;
mod kernels;
mod levels;
mod part;
mod sampling;
mod setup;
mod side;
mod slots;
mod split;
mod stamps;

use std::sync::Arc;

pub(super) use arrivals::{check_found, check_total};
pub use {
    arrivals::check_parents,
    part::{PartArrays, PartFrontier, PartGpu, PartState},
};

use self::{levels::RunAhead, side::DeviceSide, slots::Slot};
use crate::engine::Allocate;
use crate::{
    bfs::{Ahead, GpuKernel, SampledCosts},
    graph::Layout,
    memory::{OutOfMemory, ShareError, SharedSlice, SharingMode, Slab},
    opencl::{Buffer, Device, DeviceError, OpenClError},
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

impl GpuSetup {
    /// Calls `make` with the options. If the device had no memory left beside its copy of the graph, calls it again, and the graph stays in
    /// the host's memory. Also returns the options that were used.
    pub fn build<T>(&self, make: impl Fn(GpuOptions) -> Result<T, GpuEngineError>) -> Result<(T, GpuOptions), GpuEngineError> {
        match make(self.options) {
            Err(GpuEngineError::OpenCl(error) | GpuEngineError::Share(ShareError::OpenCl(error)))
                if matches!(error, OpenClError::OutOfMemory { .. })
                    && self.options.graph.is_none()
                    && !self.device.info().unified_memory =>
            {
                log::warn!("{error}: the graph stays in the host's memory, where kernels read it more slowly");
                let options = GpuOptions { graph: Some(GraphMemory::InPlace), ..self.options };
                Ok((make(options)?, options))
            }
            made => Ok((made?, self.options)),
        }
    }

    /// Judges a check of the kernels with work-groups of `group` items, which returns the first kernel that is wrong. If this returns
    /// `false`, the kernels have to be built and checked again, with smaller work-groups.
    ///
    /// # Errors
    /// [`GpuEngineError::Wrong`], and the error of a launch that smaller work-groups do not cure.
    pub fn passes(&self, group: usize, wrong: Result<Option<GpuKernel>, DeviceError>) -> Result<bool, GpuEngineError> {
        match wrong {
            Ok(None) => self.device.remember_groups(),
            Ok(Some(kernel)) => return Err(GpuEngineError::Wrong { kernel, driver: self.device.info().driver.clone() }),
            Err(error) if self.device.halves_groups(error, group) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
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
    side: DeviceSide<'g>,
    /// Whether the slot of the last step holds the current state of the search.
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
    /// One work-group runs frontiers of fewer arcs than this.
    run_arcs: u64,
    /// Whether the graph has few arcs per vertex and no hub, so that most levels are small.
    roads: bool,
    /// Whether the steps of the next chain are those for long runs of small levels.
    long_runs: bool,
    most_steps: usize,
    /// The most steps of the next chain. If at most one step of the last chain ran levels, it is half the length of that chain, since all
    /// other steps cost a launch and ran nothing.
    steps: usize,
    places: usize,
    probes: u32,
}

impl GpuEngine<'_> {
    /// The device.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.side.device
    }

    /// Adds the times of kernels that have ended to the sum that [`take_counted_ns`](Self::take_counted_ns) returns, if the device keeps
    /// times.
    pub(crate) fn count_times(&mut self) -> Result<(), DeviceError> {
        let counted = &mut self.counted_ns;
        self.side.device.times_of_ended(|time| *counted += time.end_ns.saturating_sub(time.start_ns))
    }

    /// Nanoseconds of the kernels whose times were counted since the last call.
    pub(crate) fn take_counted_ns(&mut self) -> u64 {
        std::mem::take(&mut self.counted_ns)
    }

    /// Describes the device for a record.
    pub(crate) fn used(&self) -> DeviceUse {
        self.side.used()
    }

    /// Starts to read the slots of all steps, without waiting.
    pub(crate) fn call_slots(&mut self) -> Result<(), DeviceError> {
        let DeviceSide { counters, arrived, in_flight, .. } = &mut self.side;
        *in_flight = true;
        // SAFETY: `arrived` is not accessed before a wait: `found` is called after one, and `read_slots` waits. `drop` waits for the read,
        // or keeps the memory.
        unsafe { counters.read_later(0..arrived.len(), arrived) }
    }
}
