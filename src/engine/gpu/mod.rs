//! The GPU engine: TG, TGM, BG and BGC as OpenCL kernels over a state that the device owns.

mod graph;

use std::sync::Arc;

pub(crate) use graph::MOST_PARTS;

use self::graph::DeviceGraph;
use super::state::{Allocate, Frontier, SearchState};
use crate::{
    bfs::{GpuKernel, LevelWork},
    graph::{Layout, Vertex},
    memory::{ShareError, SharedSlice, Way},
    opencl::{Buffer, Device, DeviceError, DeviceKind, Kernel, OpenClError, Program},
};

/// The kernels' source, in the order in which it is compiled.
const SOURCES: [&str; 6] = [
    include_str!("../../../kernels/common.cl"),
    include_str!("../../../kernels/reset.cl"),
    include_str!("../../../kernels/convert.cl"),
    include_str!("../../../kernels/top_down.cl"),
    include_str!("../../../kernels/bottom_up.cl"),
    include_str!("../../../kernels/hubs.cl"),
];

/// Items in a work-group of a GPU, where the device allows that many.
const GROUP: usize = 256;
/// Work-groups per compute unit of a GPU: they loop, there is none per vertex (Remis 2016, section 4.3).
const GROUPS_PER_UNIT: usize = 8;
/// Vertices that a group collects before it appends them to the queue.
const COLLECTED: usize = 2048;
/// Vertices that an item of its own collects.
const COLLECTED_ALONE: usize = 512;
/// Rounds of work-groups a heavy vertex is worth: arcs from which all groups expand it together.
const HEAVY_ROUNDS: usize = 32;
/// Words of the visited bitmap that BGC copies to local memory, at most: the 32,768 vertices of highest degree.
const CACHED_WORDS: usize = 1024;
/// Frontiers with up to this many arcs per item of one group are run by that group, level after level, in one launch.
const RUN_ARCS_PER_ITEM: u64 = 16;
/// The same where an item works by itself.
const RUN_ARCS_ALONE: u64 = 8 << 10;
/// Levels in one such launch, so that no driver's watchdog takes it for a hang.
const RUN_LEVELS: u32 = 512;
/// Vertices looked at to estimate a bottom-up level, and neighbours of each, at most.
const PLACES_SAMPLED: usize = 256;
const PROBES: u32 = 64;
/// Vertices looked at to estimate how many hubs are in the frontier: a few hundred of them are hubs where every fifth vertex is one, so
/// that the share is off by a few hundredths.
const HUB_PLACES: usize = 1024;

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

/// The kernels, with the arguments set that never change.
#[derive(Debug)]
struct Kernels {
    reset: Kernel,
    map_back: Kernel,
    stamp_queue: Kernel,
    stamp_bitmap: Kernel,
    bitmap_to_queue: Kernel,
    mask_to_queue: Kernel,
    queue_to_mask: Kernel,
    bitmap_to_mask: Kernel,
    tg: Kernel,
    tgm: Kernel,
    /// Of a group of several items only.
    heavy: Option<[Kernel; 2]>,
    tg_run: Kernel,
    bg: Kernel,
    bgc: Kernel,
    sample: Kernel,
    hubs_in_queue: Kernel,
    hubs_in_bitmap: Kernel,
    hubs_in_mask: Kernel,
}

impl Kernels {
    fn new(program: &Program, several: bool) -> Result<Self, OpenClError> {
        let kernel = |name| program.kernel(name);
        Ok(Self {
            reset: kernel("reset")?,
            map_back: kernel("map_back")?,
            stamp_queue: kernel("stamp_queue")?,
            stamp_bitmap: kernel("stamp_bitmap")?,
            bitmap_to_queue: kernel("bitmap_to_queue")?,
            mask_to_queue: kernel("mask_to_queue")?,
            queue_to_mask: kernel("queue_to_mask")?,
            bitmap_to_mask: kernel("bitmap_to_mask")?,
            tg: kernel("tg")?,
            tgm: kernel("tgm")?,
            heavy: if several { Some([kernel("tg_heavy")?, kernel("tgm_heavy")?]) } else { None },
            tg_run: kernel("tg_run")?,
            bg: kernel("bg")?,
            bgc: kernel("bgc")?,
            sample: kernel("sample")?,
            hubs_in_queue: kernel("hubs_in_queue")?,
            hubs_in_bitmap: kernel("hubs_in_bitmap")?,
            hubs_in_mask: kernel("hubs_in_mask")?,
        })
    }

    /// The largest work-group that all of them take.
    fn max_group(&self) -> usize {
        let Self { reset, map_back, stamp_queue, stamp_bitmap, bitmap_to_queue, mask_to_queue, .. } = self;
        let Self { queue_to_mask, bitmap_to_mask, tg, tgm, heavy, tg_run, bg, bgc, sample, .. } = self;
        let Self { hubs_in_queue, hubs_in_bitmap, hubs_in_mask, .. } = self;
        [reset, map_back, stamp_queue, stamp_bitmap, bitmap_to_queue, mask_to_queue, queue_to_mask, bitmap_to_mask]
            .into_iter()
            .chain([tg, tgm, tg_run, bg, bgc, sample, hubs_in_queue, hubs_in_bitmap, hubs_in_mask])
            .chain(heavy.iter().flatten())
            .map(Kernel::max_group)
            .min()
            .unwrap_or(1)
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
    /// The slot of the last launch.
    slot: u32,
    /// The frontier as bytes, and the next one: always zero outside of TGM levels.
    masks: [Buffer<u8>; 2],
    /// Padding and vertices without an edge.
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

impl<'g> GpuEngine<'g> {
    /// Builds the kernels and puts the graph on `device`. `closed` are the bits of vertices that take no part.
    pub(crate) fn new(layout: &'g Layout, device: &Arc<Device>, closed: &[u64], options: GpuOptions) -> Result<Self, GpuEngineError> {
        let graph = DeviceGraph::new(device, layout, options.parts.min(MOST_PARTS))?;
        let is_cpu = device.info().kind == DeviceKind::Cpu;
        let mut group = Self::fitting(options.group.unwrap_or(if is_cpu { 1 } else { GROUP }), device.max_work_group());
        let source = SOURCES.concat();
        // Words of local memory that one kernel may declare.
        let words = device.local_bytes() as usize / 4;
        let mut room = words;
        let (kernels, heavy_arcs) = loop {
            // Three numbers an item for a batch, and what is left (but for some room to spare) for what was found.
            let (left, most, least) =
                if group == 1 { (room, COLLECTED_ALONE, 16) } else { (room.saturating_sub(3 * group + 64), COLLECTED, 2 * group) };
            let collected = (left.min(most) / group * group).max(least);
            let heavy = if group == 1 { 0 } else { HEAVY_ROUNDS * group };
            let flags = format!("-DGROUP={group} -DNEXT={collected} -DHEAVY={heavy} {}", graph.options(layout));
            let built = device.program(&source, &flags).and_then(|program| Kernels::new(&program, group > 1));
            match built {
                // A kernel may take less than the device promises, and what its local memory allows.
                Ok(kernels) if kernels.max_group() < group => group = Self::fitting(kernels.max_group(), device.max_work_group()),
                Ok(kernels) => break (kernels, heavy),
                // A driver may count what all kernels declare together.
                Err(OpenClError::LocalMemory { .. }) if collected > least => room /= 2,
                Err(OpenClError::LocalMemory { .. }) if group > 1 => {
                    (group, room) = (Self::fitting(group / 2, device.max_work_group()), words);
                }
                Err(error) => return Err(error.into()),
            }
        };
        let units = device.info().compute_units.max(1) as usize;
        let heavies =
            (0..layout.csr().vertices()).filter(|&v| heavy_arcs > 0 && layout.csr().degree(v as Vertex) as usize >= heavy_arcs).count();
        let padded = layout.padded();
        let free_local = (device.local_bytes().saturating_sub(kernels.bgc.local_bytes()) / 4) as usize;
        let engine = Self {
            counters: Buffer::new(device, SLOT * SLOTS as usize, "counters")?,
            slot: 0,
            masks: [Buffer::new(device, padded, "frontier mask")?, Buffer::new(device, padded, "frontier mask")?],
            closed: Buffer::from_host(device, closed, "bitmaps")?,
            level_of: None,
            group,
            groups: if group == 1 { units } else { units * GROUPS_PER_UNIT },
            run_arcs: options.run_arcs.map_or(if group == 1 { RUN_ARCS_ALONE } else { RUN_ARCS_PER_ITEM * group as u64 }, u64::from),
            heavy: (heavies > 0).then_some(heavy_arcs as u64),
            cached_words: options.cached_words.unwrap_or(CACHED_WORDS).min(padded / 32).min(free_local).max(1),
            layout,
            device: Arc::clone(device),
            graph,
            kernels,
        };
        engine.counters.fill(0)?;
        engine.clear_masks()?;
        engine.bind(&Buffer::new(device, heavies.max(1), "heavy vertices")?)?;
        device.finish()?;
        Ok(engine)
    }

    /// The largest work-group of our kernels that is not above either number: 1 or a multiple of 32.
    fn fitting(wanted: usize, most: usize) -> usize {
        let group = wanted.min(most) / 32 * 32;
        if group == 0 { 1 } else { group }
    }

    /// Sets the arguments that never change.
    fn bind(&self, heavy: &Buffer<u32>) -> Result<(), DeviceError> {
        let Self { kernels, graph, counters, .. } = self;
        let (out, incoming) = (graph.out(), graph.incoming());
        let (padded, words) = (self.layout.padded() as u32, (self.layout.padded() / 32) as u32);
        kernels.reset.set_buffer(2, &self.closed)?;
        kernels.reset.set_buffer(4, counters)?;
        kernels.reset.set(6, padded)?;
        if let Some(place) = &graph.place {
            kernels.map_back.set_buffer(0, place)?;
            kernels.map_back.set(3, place.len() as u32)?;
        }
        kernels.stamp_bitmap.set(3, words)?;
        kernels.bitmap_to_queue.set(2, words)?;
        kernels.bitmap_to_queue.set_buffer(4, counters)?;
        kernels.mask_to_queue.set(1, padded / 4)?;
        kernels.mask_to_queue.set_buffer(3, counters)?;
        kernels.queue_to_mask.set_buffer(3, counters)?;
        kernels.bitmap_to_mask.set(2, words)?;
        kernels.bitmap_to_mask.set_buffer(4, counters)?;
        for kernel in [&kernels.tg, &kernels.tgm] {
            kernel.set_buffer(2, &out.offsets)?;
            kernel.set_buffer(3, &graph.to_original)?;
            kernel.set_buffer(7, heavy)?;
            kernel.set_buffer(8, counters)?;
            out.bind(kernel, 10)?;
        }
        kernels.tgm.set(1, padded)?;
        for kernel in kernels.heavy.iter().flatten() {
            kernel.set_buffer(0, heavy)?;
            kernel.set_buffer(1, &out.offsets)?;
            kernel.set_buffer(2, &graph.to_original)?;
            kernel.set_buffer(6, counters)?;
            out.bind(kernel, 8)?;
        }
        kernels.tg_run.set_buffer(2, &out.offsets)?;
        kernels.tg_run.set_buffer(3, &graph.to_original)?;
        kernels.tg_run.set(7, self.run_arcs as u32)?;
        kernels.tg_run.set(8, RUN_LEVELS)?;
        kernels.tg_run.set_buffer(9, counters)?;
        out.bind(&kernels.tg_run, 11)?;
        for (kernel, columns) in [(&kernels.bg, 10), (&kernels.bgc, 12)] {
            kernel.set_buffer(3, &incoming.offsets)?;
            kernel.set_buffer(4, &out.offsets)?;
            kernel.set_buffer(5, &graph.to_original)?;
            kernel.set_buffer(8, counters)?;
            let parts = graph.bind_columns(kernel, columns)?;
            incoming.bind(kernel, parts)?;
        }
        kernels.bgc.set_local(10, 4 * self.cached_words)?;
        kernels.bgc.set(11, self.cached_words as u32)?;
        kernels.sample.set_buffer(1, &incoming.offsets)?;
        kernels.sample.set(2, self.layout.csr().vertices() as u32)?;
        kernels.sample.set(3, PLACES_SAMPLED as u32)?;
        kernels.sample.set(4, PROBES)?;
        kernels.sample.set_buffer(5, counters)?;
        incoming.bind(&kernels.sample, 7)?;
        let (vertices, places) = (self.layout.csr().vertices() as u32, self.hub_places() as u32);
        kernels.hubs_in_queue.set_buffer(2, &out.offsets)?;
        kernels.hubs_in_queue.set_buffer(5, counters)?;
        for (kernel, offsets) in [(&kernels.hubs_in_bitmap, 2), (&kernels.hubs_in_mask, 1)] {
            kernel.set_buffer(offsets, &out.offsets)?;
            kernel.set(offsets + 1, vertices)?;
            kernel.set(offsets + 3, places)?;
            kernel.set_buffer(offsets + 4, counters)?;
        }
        Ok(())
    }

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

    /// Makes room for the levels of an asynchronous search.
    pub(crate) fn remember_levels(&mut self) -> Result<(), OpenClError> {
        let levels = Buffer::new(&self.device, self.layout.padded(), "levels")?;
        let set = |kernel: &Kernel, index| kernel.set_buffer(index, &levels);
        set(&self.kernels.stamp_queue, 1)
            .and_then(|()| set(&self.kernels.stamp_bitmap, 2))
            .map_err(|error| OpenClError::Call { device: self.device.info().name.clone(), error })?;
        self.level_of = Some(levels);
        Ok(())
    }

    fn next_slot(&mut self) -> u32 {
        self.slot = (self.slot + 1) % SLOTS;
        self.slot
    }

    fn read_slot(&self) -> Result<[u32; SLOT], DeviceError> {
        let mut values = [0; SLOT];
        let at = self.slot as usize * SLOT;
        self.counters.read(at..at + SLOT, &mut values)?;
        Ok(values)
    }

    /// Groups for `items` pieces of work, each for one item.
    fn groups_for(&self, items: usize) -> usize {
        items.div_ceil(self.group).clamp(1, self.groups)
    }

    /// Hands the whole state to the device.
    pub(crate) fn acquire(&self, state: &mut SearchState) -> Result<(), DeviceError> {
        let queued = if let Frontier::Queue { len, .. } = state.frontier { len } else { 0 };
        let (numbers, words) = (state.parent.device_len(), state.visited[0].device_len());
        state.parent.to_device(0..numbers)?;
        for bitmap in &mut state.visited {
            bitmap.to_device(0..words)?;
        }
        state.queue.to_device(0..queued)?;
        state.next.to_device(0..0)
    }

    /// Hands the state to the device without its contents but for what a search never changes.
    pub(crate) fn acquire_empty(&self, state: &mut SearchState) -> Result<(), DeviceError> {
        let (numbers, words) = (state.parent.device_len(), state.visited[0].device_len());
        state.parent.to_device(self.layout.padded()..numbers)?;
        for bitmap in &mut state.visited {
            bitmap.to_device(words - 1..words)?;
        }
        state.queue.to_device(0..0)?;
        state.next.to_device(0..0)
    }

    /// Hands the whole state back to the host, which knows no masks.
    pub(crate) fn release(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        if let Frontier::Mask { .. } = state.frontier {
            self.make_queue(state)?;
        }
        let queued = if let Frontier::Queue { len, .. } = state.frontier { len } else { 0 };
        let (numbers, words) = (state.parent.device_len(), state.visited[0].device_len());
        state.parent.to_host(0..numbers)?;
        for bitmap in &mut state.visited {
            bitmap.to_host(0..words)?;
        }
        state.queue.to_host(0..queued)?;
        state.next.to_host(0..0)
    }

    /// Hands the state back without its contents: a search is over, or begins anew.
    pub(crate) fn release_empty(&self, state: &mut SearchState) -> Result<(), DeviceError> {
        state.parent.to_host(0..0)?;
        for bitmap in &mut state.visited {
            bitmap.to_host(0..0)?;
        }
        state.queue.to_host(0..0)?;
        state.next.to_host(0..0)
    }

    /// Makes `root` the frontier of level 0.
    pub(crate) fn begin(&mut self, state: &mut SearchState, root: Vertex) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        state.restart();
        state.bitmap_is_current = true;
        state.counted_edges = Some(u64::from(self.layout.csr().degree(root)));
        let kernel = &self.kernels.reset;
        kernel.set_buffer(0, &state.parent)?;
        kernel.set_buffer(1, &state.visited[state.current])?;
        kernel.set_buffer(3, &state.queue)?;
        kernel.set(5, slot)?;
        kernel.set(7, root)?;
        kernel.set(8, self.layout.to_original(root))?;
        kernel.launch(self.groups_for(self.layout.padded()), self.group)
    }

    /// Brings the parents into the order of the original vertices, where that differs, and hands them to the host.
    pub(crate) fn map_back(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        let Some(place) = &self.graph.place else {
            let numbers = state.parent.device_len();
            return state.parent.to_host(0..numbers);
        };
        let vertices = place.len();
        state.mapped.to_device(0..0)?;
        let kernel = &self.kernels.map_back;
        kernel.set_buffer(1, &state.parent)?;
        kernel.set_buffer(2, &state.mapped)?;
        kernel.launch(self.groups_for(vertices), self.group)?;
        state.mapped.to_host(0..vertices)
    }

    /// Runs exactly one level.
    pub(crate) fn run_one(&mut self, state: &mut SearchState, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        if kernel == GpuKernel::Tg { self.run_queue(state) } else { self.run(state, kernel) }
    }

    /// Runs one level, or with TG a run of levels too small to share.
    pub(crate) fn run(&mut self, state: &mut SearchState, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        match kernel {
            GpuKernel::Tg if state.frontier_edges < self.run_arcs => self.run_small(state),
            GpuKernel::Tg => self.run_queue(state),
            GpuKernel::Tgm => self.run_mask(state),
            GpuKernel::Bg | GpuKernel::Bgc => {
                let words = 0..(self.layout.padded() / 32) as u32;
                self.launch_bottom_up(state, kernel, words)?;
                let frontier = state.frontier.len();
                if let Frontier::Mask { .. } = state.frontier {
                    self.masks[0].fill(0)?;
                }
                let counted = self.read_slot()?;
                state.current = 1 - state.current;
                Ok(self.found(state, Frontier::Bitmap { len: u64::from(counted[FOUND]) }, frontier, counted[EDGES]))
            }
        }
    }

    /// Takes note of a level that found the new `frontier`, which `edges` leave.
    fn found(&self, state: &mut SearchState, frontier: Frontier, before: u64, edges: u32) -> LevelWork {
        state.frontier = frontier;
        state.bitmap_is_current = true;
        state.previous_frontier = before;
        state.next_edges = Some(u64::from(edges));
        LevelWork { levels: 1, found: frontier.len(), finished: frontier.len() == 0, ..LevelWork::default() }
    }

    /// The frontier as a queue; returns its length.
    fn make_queue(&mut self, state: &mut SearchState) -> Result<usize, DeviceError> {
        let len = state.frontier.len() as usize;
        let per_item = if self.group == 1 { 64 } else { 1 };
        match state.frontier {
            Frontier::Queue { .. } => return Ok(len),
            Frontier::Bitmap { .. } => {
                let slot = self.next_slot();
                let kernel = &self.kernels.bitmap_to_queue;
                kernel.set_buffer(0, &state.visited[state.current])?;
                kernel.set_buffer(1, &state.visited[1 - state.current])?;
                kernel.set_buffer(3, &state.queue)?;
                kernel.set(5, slot)?;
                // Compaction needs every word to have its item: these groups do not loop.
                kernel.launch((self.layout.padded() / 32).div_ceil(per_item * self.group), self.group)?;
            }
            Frontier::Mask { .. } => {
                let slot = self.next_slot();
                let kernel = &self.kernels.mask_to_queue;
                kernel.set_buffer(0, &self.masks[0])?;
                kernel.set_buffer(2, &state.queue)?;
                kernel.set(4, slot)?;
                kernel.launch((self.layout.padded() / 4).div_ceil(per_item * self.group), self.group)?;
            }
        }
        state.frontier = Frontier::Queue { len, claims: false };
        Ok(len)
    }

    /// The frontier as a mask.
    fn make_mask(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        let len = state.frontier.len();
        match state.frontier {
            Frontier::Mask { .. } => return Ok(()),
            Frontier::Queue { len, .. } => {
                let slot = self.next_slot();
                let kernel = &self.kernels.queue_to_mask;
                kernel.set_buffer(0, &state.queue)?;
                kernel.set(1, len as u32)?;
                kernel.set_buffer(2, &self.masks[0])?;
                kernel.set(4, slot)?;
                kernel.launch(self.groups_for(len), self.group)?;
            }
            Frontier::Bitmap { .. } => {
                let slot = self.next_slot();
                let kernel = &self.kernels.bitmap_to_mask;
                kernel.set_buffer(0, &state.visited[state.current])?;
                kernel.set_buffer(1, &state.visited[1 - state.current])?;
                kernel.set_buffer(3, &self.masks[0])?;
                kernel.set(5, slot)?;
                kernel.launch(self.groups_for(self.layout.padded() / 32), self.group)?;
            }
        }
        state.frontier = Frontier::Mask { len };
        Ok(())
    }

    /// Levels by one group, until the frontier is empty or large.
    fn run_small(&mut self, state: &mut SearchState) -> Result<LevelWork, DeviceError> {
        let len = self.make_queue(state)?;
        let slot = self.next_slot();
        let kernel = &self.kernels.tg_run;
        kernel.set_buffer(0, &state.queue)?;
        kernel.set(1, len as u32)?;
        kernel.set_buffer(4, &state.visited[state.current])?;
        kernel.set_buffer(5, &state.parent)?;
        kernel.set_buffer(6, &state.next)?;
        kernel.set(10, slot)?;
        kernel.launch(1, self.group)?;
        let counted = self.read_slot()?;
        if counted[LEVELS] % 2 == 1 {
            std::mem::swap(&mut state.queue, &mut state.next);
        }
        state.expanded_edges += u64::from(counted[EXPANDED]);
        let frontier = Frontier::Queue { len: counted[TAIL] as usize, claims: false };
        let work = self.found(state, frontier, u64::from(counted[EXTRA]), counted[EDGES]);
        Ok(LevelWork { levels: counted[LEVELS], found: u64::from(counted[FOUND]), ..work })
    }

    /// TG, one level.
    fn run_queue(&mut self, state: &mut SearchState) -> Result<LevelWork, DeviceError> {
        let len = self.make_queue(state)?;
        self.launch_top_down(state, len, state.exact_edges())?;
        let counted = self.read_slot()?;
        std::mem::swap(&mut state.queue, &mut state.next);
        let frontier = Frontier::Queue { len: counted[TAIL] as usize, claims: false };
        Ok(self.found(state, frontier, len as u64, counted[EDGES]))
    }

    /// Starts TG over the first `len` entries of the queue. `edges` leave them, if that is known and no estimate: then heavy vertices
    /// can be ruled out. What it finds is in the next queue.
    pub(crate) fn launch_top_down(&mut self, state: &SearchState, len: usize, edges: Option<u64>) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let kernel = &self.kernels.tg;
        kernel.set_buffer(0, &state.queue)?;
        kernel.set(1, len as u32)?;
        kernel.set_buffer(4, &state.visited[state.current])?;
        kernel.set_buffer(5, &state.parent)?;
        kernel.set_buffer(6, &state.next)?;
        kernel.set(9, slot)?;
        // An item of its own takes work as it comes.
        let groups = if self.group == 1 { self.groups.min(len.max(1)) } else { self.groups_for(len) };
        kernel.launch(groups, self.group)?;
        if let Some(heavy) = self.heavy_kernel(0, edges) {
            heavy.set_buffer(5, &state.next)?;
            self.launch_heavy(heavy, state, slot)?;
        }
        Ok(())
    }

    /// The kernel for the heavy vertices that TG (`which` is 0) or TGM (1) has put aside, unless `edges`, the exact number of arcs that
    /// leave the frontier, rules out that there are any.
    fn heavy_kernel(&self, which: usize, edges: Option<u64>) -> Option<&Kernel> {
        let (kernels, arcs) = (self.kernels.heavy.as_ref()?, self.heavy?);
        edges.is_none_or(|edges| edges >= arcs).then_some(&kernels[which])
    }

    /// Launches it; its output is set already.
    fn launch_heavy(&self, heavy: &Kernel, state: &SearchState, slot: u32) -> Result<(), DeviceError> {
        heavy.set_buffer(3, &state.visited[state.current])?;
        heavy.set_buffer(4, &state.parent)?;
        heavy.set(7, slot)?;
        heavy.launch(self.groups, self.group)
    }

    /// How many vertices TG found, and how many arcs leave them. Waits for it.
    pub(crate) fn top_down_result(&self) -> Result<(usize, u64), DeviceError> {
        let counted = self.read_slot()?;
        Ok((counted[TAIL] as usize, u64::from(counted[EDGES])))
    }

    /// Starts BG or BGC over a range of 32-bit words of the bitmap. What it finds is in `visited[1 - current]`.
    pub(crate) fn launch_bottom_up(
        &mut self,
        state: &SearchState,
        kernel: GpuKernel,
        words: std::ops::Range<u32>,
    ) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let kernel = if kernel == GpuKernel::Bgc { &self.kernels.bgc } else { &self.kernels.bg };
        kernel.set_buffer(0, &state.visited[state.current])?;
        kernel.set_buffer(1, &state.visited[1 - state.current])?;
        kernel.set_buffer(2, &state.parent)?;
        kernel.set(6, words.start)?;
        kernel.set(7, words.end)?;
        kernel.set(9, slot)?;
        let items = if self.group == 1 { words.len().div_ceil(256) } else { words.len() * 32 };
        kernel.launch(self.groups_for(items), self.group)
    }

    /// How many vertices BG found, and how many arcs leave them. Waits for it.
    pub(crate) fn bottom_up_result(&self) -> Result<(u64, u64), DeviceError> {
        let counted = self.read_slot()?;
        Ok((u64::from(counted[FOUND]), u64::from(counted[EDGES])))
    }

    fn run_mask(&mut self, state: &mut SearchState) -> Result<LevelWork, DeviceError> {
        self.make_mask(state)?;
        let before = state.frontier.len();
        let slot = self.next_slot();
        let kernel = &self.kernels.tgm;
        kernel.set_buffer(0, &self.masks[0])?;
        kernel.set_buffer(4, &state.visited[state.current])?;
        kernel.set_buffer(5, &state.parent)?;
        kernel.set_buffer(6, &self.masks[1])?;
        kernel.set(9, slot)?;
        let items = if self.group == 1 { self.layout.padded().div_ceil(1024) } else { self.layout.padded() };
        kernel.launch(self.groups_for(items), self.group)?;
        if let Some(heavy) = self.heavy_kernel(1, state.exact_edges()) {
            heavy.set_buffer(5, &self.masks[1])?;
            self.launch_heavy(heavy, state, slot)?;
        }
        let counted = self.read_slot()?;
        self.masks.swap(0, 1);
        Ok(self.found(state, Frontier::Mask { len: u64::from(counted[FOUND]) }, before, counted[EDGES]))
    }

    /// See [`Engine::sample`](crate::bfs::Engine::sample).
    pub(crate) fn sample(&mut self, state: &SearchState) -> Result<Option<f32>, DeviceError> {
        let slot = self.next_slot();
        let kernel = &self.kernels.sample;
        kernel.set_buffer(0, &state.visited[state.current])?;
        kernel.set(6, slot)?;
        kernel.launch(self.groups_for(PLACES_SAMPLED), self.group)?;
        let counted = self.read_slot()?;
        Ok((counted[FOUND] > 0).then(|| counted[EXTRA] as f32 / counted[FOUND] as f32))
    }

    /// Vertices looked at for hubs, of all that there are.
    fn hub_places(&self) -> usize {
        self.layout.csr().vertices().min(HUB_PLACES)
    }

    /// See [`Engine::sample_hubs`](crate::bfs::Engine::sample_hubs).
    pub(crate) fn sample_hubs(&mut self, state: &SearchState) -> Result<Option<f32>, DeviceError> {
        let len = state.frontier.len();
        if state.hubs == 0 || len == 0 {
            return Ok(None);
        }
        let slot = self.next_slot();
        // What the sample is taken of: the entries of the queue, or the hubs themselves.
        let all = match state.frontier {
            Frontier::Queue { len, .. } => {
                let (kernel, places) = (&self.kernels.hubs_in_queue, len.min(HUB_PLACES));
                kernel.set_buffer(0, &state.queue)?;
                kernel.set(1, len as u32)?;
                kernel.set(3, state.hub_arcs)?;
                kernel.set(4, places as u32)?;
                kernel.set(6, slot)?;
                kernel.launch(self.groups_for(places), self.group)?;
                len as f64
            }
            Frontier::Bitmap { .. } => {
                let (kernel, places) = (&self.kernels.hubs_in_bitmap, self.hub_places());
                kernel.set_buffer(0, &state.visited[state.current])?;
                kernel.set_buffer(1, &state.visited[1 - state.current])?;
                kernel.set(4, state.hub_arcs)?;
                kernel.set(7, slot)?;
                kernel.launch(self.groups_for(places), self.group)?;
                state.hubs as f64
            }
            Frontier::Mask { .. } => {
                let (kernel, places) = (&self.kernels.hubs_in_mask, self.hub_places());
                kernel.set_buffer(0, &self.masks[0])?;
                kernel.set(3, state.hub_arcs)?;
                kernel.set(6, slot)?;
                kernel.launch(self.groups_for(places), self.group)?;
                state.hubs as f64
            }
        };
        let counted = self.read_slot()?;
        let share = all * f64::from(counted[EXTRA]) / f64::from(counted[FOUND]) / state.hubs as f64;
        Ok((counted[FOUND] > 0).then_some(share.min(1.0) as f32))
    }

    /// Has every vertex of the frontier remember that it is at `level`.
    pub(crate) fn stamp(&self, state: &SearchState, level: u32) -> Result<(), DeviceError> {
        match state.frontier {
            Frontier::Queue { len: 0, .. } | Frontier::Mask { .. } => Ok(()),
            Frontier::Queue { len, .. } => {
                let kernel = &self.kernels.stamp_queue;
                kernel.set_buffer(0, &state.queue)?;
                kernel.set(2, len as u32)?;
                kernel.set(3, level)?;
                kernel.launch(self.groups_for(len), self.group)
            }
            Frontier::Bitmap { .. } => {
                let kernel = &self.kernels.stamp_bitmap;
                kernel.set_buffer(0, &state.visited[state.current])?;
                kernel.set_buffer(1, &state.visited[1 - state.current])?;
                kernel.set(4, level)?;
                kernel.launch(self.groups_for(self.layout.padded() / 32), self.group)
            }
        }
    }

    /// Clears the masks, which a search that was left in the middle may have left set.
    pub(crate) fn clear_masks(&self) -> Result<(), DeviceError> {
        self.masks[0].fill(0)?;
        self.masks[1].fill(0)
    }

    /// Forgets all levels: 0 for everybody.
    pub(crate) fn clear_levels(&self) -> Result<(), DeviceError> {
        match &self.level_of {
            Some(buffer) => buffer.fill(0),
            None => Ok(()),
        }
    }

    /// The levels stamped, by internal vertex (0: found before the searches parted, or not at all), into `levels`.
    pub(crate) fn read_levels(&self, levels: &mut [u32]) -> Result<(), DeviceError> {
        match &self.level_of {
            Some(buffer) => buffer.read(0..buffer.len(), levels),
            None => Ok(()),
        }
    }
}
