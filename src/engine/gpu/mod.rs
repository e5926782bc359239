//! The GPU engine: TG, TGM, BG and BGC as OpenCL kernels over a state that the device owns.

mod arrivals;
mod bind;
mod convert;
mod graph;
mod handover;
mod levels;
mod sampling;
mod setup;
mod split;
mod stamps;

use std::sync::Arc;

pub(super) use arrivals::{check_found, check_parents, check_total};

use self::{graph::DeviceGraph, setup::Kernels};
use super::state::Allocate;
use crate::{
    bfs::GpuKernel,
    graph::Layout,
    memory::{OutOfMemory, ShareError, SharedSlice, Slab, Way},
    opencl::{Buffer, Device, DeviceError, OpenClError},
};

/// Counters of a launch, as in `kernels/common.cl`.
const SLOT: usize = 8;
const SLOTS: u32 = 4;
const TAIL: usize = 0;
const FOUND: usize = 2;
const EDGES: usize = 3;
const LEVELS: usize = 5;
const EXPANDED: usize = 6;
/// Size of the frontier before the last, probes of a sample, hubs of another: never two of them.
const EXTRA: usize = 7;

/// How kernels are built for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GpuOptions {
    /// Items in a work-group (`None`: 1 on an OpenCL device that is a CPU, else 256, as far as the device allows). 1 is a
    /// variant of the kernels of its own, in which every item works through vertices by itself.
    pub group: Option<usize>,
    /// Spread the neighbours over at least this many buffers, 1 to 16 (0: as few as the device allows).
    pub parts: usize,
    /// Frontiers of up to so many arcs are run by one work-group, level after level, in one launch (`None`: 16 for each of its
    /// items; 8192 where an item works by itself).
    pub run_arcs: Option<u32>,
    /// Words of the visited bitmap that BGC keeps in local memory (`None`: 1024, as far as there is room).
    pub cached_words: Option<usize>,
}

/// Why the GPU engine can't be set up.
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
    pub(crate) way: Way,
}

impl Allocate<ShareError> for OnDevice<'_> {
    fn numbers(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, ShareError> {
        SharedSlice::on(self.device, self.way, len, what)
    }

    fn words(&self, len: usize, what: &'static str) -> Result<SharedSlice<u64>, ShareError> {
        SharedSlice::on(self.device, self.way, len, what)
    }
}

/// Runs levels on one device. Every call of a level works on a [`SearchState`] that the device owns, in which
/// `visited[current]` is up to date and the queue holds nobody twice.
#[derive(Debug)]
pub(crate) struct GpuEngine<'g> {
    layout: &'g Layout,
    device: Arc<Device>,
    graph: DeviceGraph<'g>,
    kernels: Kernels,
    counters: Buffer<u32>,
    /// Where they are read to: memory that outlives a read which fails and goes on all the same, as the stack would not.
    arrived: Slab<u32>,
    /// The slot of the last launch.
    slot: u32,
    /// The frontier as bytes, and the next one: always zero outside of TGM levels.
    masks: [Buffer<u8>; 2],
    /// Vertices of a queue that is checked; else nothing.
    seen: Slab<u64>,
    /// Padding and vertices without an edge: the host's, and the device's.
    host_closed: Slab<u64>,
    closed: Buffer<u64>,
    /// Levels of vertices found in an asynchronous search.
    level_of: Option<Buffer<u32>>,
    group: usize,
    groups: usize,
    /// Frontiers of up to so many arcs are run by one group.
    run_arcs: u64,
    /// Arcs from which a vertex is heavy, if there is one so heavy.
    heavy: Option<u64>,
    cached_words: usize,
}

impl GpuEngine<'_> {
    /// The device.
    pub(crate) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Items in a work-group.
    pub(crate) fn group(&self) -> usize {
        self.group
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
        self.slot = (self.slot + 1) % SLOTS;
        self.slot
    }

    /// The counters of the last launch. Waits for it.
    fn read_slot(&mut self) -> Result<[u32; SLOT], DeviceError> {
        let at = self.slot as usize * SLOT;
        self.counters.read(at..at + SLOT, &mut self.arrived)?;
        let mut values = [0; SLOT];
        values.copy_from_slice(&self.arrived);
        self.check_counts(&values)?;
        Ok(values)
    }

    /// Groups for `items` pieces of work, each for one item.
    fn groups_for(&self, items: usize) -> usize {
        items.div_ceil(self.group).clamp(1, self.groups)
    }
}
