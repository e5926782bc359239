//! Levels of one rank of a cluster on its device, with the same kernels as any other search.
//!
//! A rank has rows for its own vertices. In a top-down level, frontier vertices, which may belong to any rank, look for rows. In a
//! bottom-up level, the rows look for a parent among all vertices. To the kernels this is a directed graph whose vertices have one number
//! as sources and another as targets. Visited bits of neighbours are indexed by vertex; parents, visited bits of rows, and bits of found
//! rows are indexed by row.
//!
//! Every level ends with all bits on the host, which has to send them to the other ranks. Parents stay on the device until the host needs
//! them.

use std::{sync::Arc, time::Instant};

use super::{
    GpuEngineError, OnDevice, arguments as args,
    arrivals::{Completions, demand},
    graph::{DeviceGraph, GraphArrays, MOST_PARTS},
    setup::{Built, Kernels},
    slots::{self, COUNTERS, IS_BITMAP, IS_QUEUE, LEVELS, SLOTS, Slot, TAIL},
};
use crate::{
    bfs::GpuKernel,
    engine::Allocate,
    gpu::{DeviceUse, GpuSetup},
    graph::{Csr, Vertex},
    memory::{Pod, ShareError, SharedSlice, SharingMode, Slab},
    opencl::{Buffer, Device, DeviceError, Kernel},
};

/// The part of a graph that a rank keeps, for its device.
#[derive(Debug, Clone, Copy)]
pub struct PartArrays<'g> {
    /// The neighbours of each row.
    pub lists: &'g Csr,
    /// The same arcs by neighbour: the rows of each vertex.
    pub by_source: &'g Csr,
    /// First neighbours of the rows, by internal number.
    pub columns: &'g [Slab<Vertex>],
    /// First neighbours of the rows, by original number.
    pub names: &'g [Slab<Vertex>],
    /// Internal to original numbers; empty where they are the same.
    pub to_original: &'g [Vertex],
}

/// The state that host and device own in turn. Bitmaps of rows have a word for every 64 rows.
#[derive(Debug)]
pub struct PartState {
    /// Parents by row, in original numbers.
    pub parent: SharedSlice<Vertex>,
    /// Visited bits of all vertices, followed by a zero word.
    pub visited: SharedSlice<u64>,
    /// Visited bits of the rows when the level began.
    pub own: SharedSlice<u64>,
    /// Visited bits of the rows when the level is done.
    pub next: SharedSlice<u64>,
    /// The frontier as bits.
    pub bitmap: SharedSlice<u64>,
    /// The frontier as a queue.
    pub queue: SharedSlice<Vertex>,
    /// Whether parents have never been transferred to the device. For vertices without a parent, the device may then hold other values than
    /// the host.
    pub parents_are_new: bool,
    /// Whether the host has set parents since the device last had them.
    pub host_has_found: bool,
}

impl PartState {
    /// Allocates a state with bitmaps of `words` words for vertices and of `rows` words for rows, and a queue of `queue` entries.
    /// `allocate` makes the arrays.
    pub fn new<E>(allocate: &impl Allocate<E>, words: usize, rows: usize, queue: usize) -> Result<Self, E> {
        Ok(Self {
            parent: allocate.numbers(64 * rows, "parents")?,
            visited: allocate.words(words + 1, "bitmaps")?,
            own: allocate.words(rows, "bitmaps")?,
            next: allocate.words(rows, "bitmaps")?,
            bitmap: allocate.words(words, "bitmaps")?,
            queue: allocate.queue(queue, "frontier queue")?,
            parents_are_new: true,
            host_has_found: true,
        })
    }

    /// Hands the parents to the host, which already owns all other arrays.
    pub fn parents_to_host(&mut self) -> Result<(), DeviceError> {
        let all = 0..self.parent.device_len();
        self.parent.to_host(all)
    }

    /// Hands the parents to the device. They are transferred only if the host has changed some: the device still has the parents that it
    /// found itself, and needs no others to find more.
    fn parents_to_device(&mut self) -> Result<(), DeviceError> {
        let carried = if self.parents_are_new || self.host_has_found { self.parent.device_len() } else { 0 };
        self.parent.to_device(0..carried)?;
        (self.parents_are_new, self.host_has_found) = (false, false);
        Ok(())
    }
}

/// The frontier of a top-down level.
#[derive(Debug, Clone, Copy)]
pub enum PartFrontier {
    /// This many entries at the beginning of [`PartState::queue`].
    Queue(usize),
    /// The bits of [`PartState::bitmap`], with their number.
    Bitmap(u64),
}

/// The result of a level on the device.
#[derive(Debug, Clone, Copy)]
pub struct PartWork {
    /// Rows found.
    pub found: u64,
    /// Time spent on handovers.
    pub handover_ns: u64,
}

/// The device of one rank.
#[derive(Debug)]
pub struct PartGpu<'g> {
    device: Arc<Device>,
    graph: DeviceGraph<'g>,
    kernels: Kernels,
    /// Slots of counters, and where they are read to: see [`GpuEngine`](super::GpuEngine).
    counters: Buffer<u32>,
    arrived: SharedSlice<u32>,
    /// Launches of `tg_pieces`; see [`slots::COMPLETIONS`].
    completions: Completions,
    slot: u32,
    /// A frontier that was converted from a bitmap, and the rows found top-down. The host reads neither.
    frontier: Buffer<Vertex>,
    found: Buffer<Vertex>,
    /// A bitmap of all vertices without any bit set.
    nothing: Buffer<u64>,
    /// Arcs of the part.
    arcs: u64,
    group: usize,
    groups: usize,
    has_long_lists: bool,
    way: SharingMode,
}

impl<'g> PartGpu<'g> {
    /// Builds the kernels and puts a rank's part of a graph on its device. Bitmaps of all vertices have `words` words.
    pub fn new(arrays: PartArrays<'g>, words: usize, setup: &GpuSetup) -> Result<Self, GpuEngineError> {
        let GpuSetup { device, way, options } = setup;
        let PartArrays { lists, by_source, columns, names, to_original } = arrays;
        let of_graph = GraphArrays { out: by_source, incoming: Some(lists), columns, names, to_original, places: [&[]; 3] };
        let graph = DeviceGraph::of(device, of_graph, options.parts.min(MOST_PARTS), options.graph)?;
        let built = Built::new(device, &graph, options.group, 64 * words)?;
        let (pieces, cached) = (built.pieces(device)?, built.cached_words(device, options.cached_words, 2 * words));
        let Built { kernels, group, groups } = built;
        let longest = (0..by_source.vertices()).map(|v| by_source.degree(v as Vertex) as usize).max().unwrap_or(0);
        let gpu = Self {
            counters: Buffer::new(device, COUNTERS, "counters")?,
            arrived: SharedSlice::for_transfers(device, COUNTERS, "counters")?,
            completions: Completions::default(),
            slot: 0,
            // Four more entries for what kernels write and do not keep, as in other searches.
            frontier: Buffer::new(device, 64 * words + 4, "frontier queue")?,
            found: Buffer::new(device, lists.vertices() + 4, "frontier queue")?,
            nothing: Buffer::new(device, words, "bitmaps")?,
            arcs: lists.arcs() as u64,
            group,
            groups,
            has_long_lists: longest > group,
            way: *way,
            device: Arc::clone(device),
            graph,
            kernels,
        };
        gpu.counters.fill(0)?;
        gpu.nothing.fill(0)?;
        let guards = Buffer::new(device, slots::GUARDS, "conditions")?;
        guards.fill(0)?;
        gpu.bind(&guards, &pieces, words, cached)?;
        device.finish()?;
        Ok(gpu)
    }

    /// Allocates a state that the host shares with the device.
    pub fn state(&self, words: usize, rows: usize, queue: usize) -> Result<PartState, ShareError> {
        PartState::new(&OnDevice { device: &self.device, way: self.way }, words, rows, queue)
    }

    /// Describes the device for a record.
    pub fn used(&self) -> DeviceUse {
        let info = self.device.info();
        DeviceUse {
            name: info.name.clone(),
            platform: info.platform.clone(),
            driver: info.driver.clone(),
            group: self.group,
            groups: self.groups,
            parts: self.graph.split().parts,
            zero_copy: self.graph.is_zero_copy(),
        }
    }

    /// Sets the arguments that never change.
    fn bind(&self, guards: &Buffer<u32>, pieces: &Buffer<u32>, words: usize, cached: usize) -> Result<(), DeviceError> {
        let Self { kernels, graph, counters, .. } = self;
        let (out, incoming) = (graph.out(), graph.incoming());
        kernels.seed.set_buffer(args::seed::all_counters, counters)?;
        {
            use args::bitmap_to_queue as arg;
            kernels.bitmap_to_queue.set_buffer(arg::visited_b, &self.nothing)?;
            kernels.bitmap_to_queue.set(arg::words, 2 * words as u32)?;
            kernels.bitmap_to_queue.set_buffer(arg::queue_a, &self.frontier)?;
            kernels.bitmap_to_queue.set_buffer(arg::queue_b, &self.found)?;
            kernels.bitmap_to_queue.set_buffer(arg::all_counters, counters)?;
            kernels.bitmap_to_queue.set_buffer(arg::guards, guards)?;
            kernels.bitmap_to_queue.set(arg::guard, 0)?;
        }
        {
            use args::tg as arg;
            kernels.tg.set_buffer(arg::queue_b, &self.found)?;
            kernels.tg.set_buffer(arg::offsets, &out.offsets)?;
            kernels.tg.set_buffer(arg::to_original, &graph.to_original)?;
            kernels.tg.set_buffer(arg::pieces, pieces)?;
            kernels.tg.set(arg::most_pieces, (pieces.len() / 2) as u32)?;
            kernels.tg.set(arg::least, 0)?;
            kernels.tg.set(arg::launch, 0)?;
            kernels.tg.set(arg::launches, 1)?;
            kernels.tg.set_buffer(arg::all_counters, counters)?;
            kernels.tg.set_buffer(arg::guards, guards)?;
            kernels.tg.set(arg::guard, 0)?;
            out.bind(&kernels.tg, arg::REST)?;
        }
        {
            use args::tg_pieces as arg;
            let tg_pieces = &kernels.tg_pieces;
            tg_pieces.set_buffer(arg::queue_b, &self.found)?;
            tg_pieces.set_buffer(arg::offsets, &out.offsets)?;
            tg_pieces.set_buffer(arg::to_original, &graph.to_original)?;
            tg_pieces.set_buffer(arg::pieces, pieces)?;
            tg_pieces.set(arg::most_pieces, (pieces.len() / 2) as u32)?;
            tg_pieces.set_buffer(arg::all_counters, counters)?;
            out.bind(tg_pieces, arg::REST)?;
        }
        for (kernel, columns) in [(&kernels.bg, args::bg::REST), (&kernels.bgc, args::bgc::REST)] {
            use args::bg as arg;
            kernel.set_buffer(arg::offsets, &incoming.offsets)?;
            // The kernels add up the arcs that leave the rows found. A rank does not use that sum, and lists by source have no rows, so the
            // offsets of the rows' lists replace them.
            kernel.set_buffer(arg::offsets_out, &incoming.offsets)?;
            kernel.set_buffer(arg::to_original, &graph.to_original)?;
            kernel.set_buffer(arg::all_counters, counters)?;
            kernel.set_buffer(arg::guards, guards)?;
            kernel.set(arg::guard, 0)?;
            let parts = graph.bind_columns(kernel, columns)?;
            incoming.bind(kernel, parts)?;
        }
        kernels.bgc.set_local(args::bgc::cache, 4 * cached)?;
        kernels.bgc.set(args::bgc::cached, cached as u32)
    }

    /// Runs a bottom-up level: the unvisited rows look for a neighbour that was visited before the level.
    pub fn bottom_up(&mut self, state: &mut PartState, kernel: GpuKernel) -> Result<PartWork, DeviceError> {
        let begin = Instant::now();
        lend(&mut state.visited, None)?;
        lend(&mut state.own, None)?;
        // The level writes every word, so none is transferred.
        state.next.to_device(0..0)?;
        state.parents_to_device()?;
        let lent = Instant::now();
        // A frontier of one vertex, so that the level applies.
        self.seed(IS_QUEUE, 1, 0)?;
        let words = 2 * state.own.device_len() as u32;
        let slot = self.next_slot();
        let kernel: &Kernel = if kernel == GpuKernel::Bgc { &self.kernels.bgc } else { &self.kernels.bg };
        {
            use args::bg as arg;
            kernel.set_buffer(arg::visited, &state.visited)?;
            kernel.set_buffer(arg::own, &state.own)?;
            kernel.set_buffer(arg::next, &state.next)?;
            kernel.set_buffer(arg::parent, &state.parent)?;
            kernel.set(arg::first, 0)?;
            kernel.set(arg::end, words)?;
            kernel.set(arg::slot, slot)?;
        }
        self.start(kernel, (words as usize * 32).div_ceil(self.group).clamp(1, self.groups))?;
        let found = self.wait(slot)?;
        let back = Instant::now();
        take_back(&mut state.visited)?;
        take_back(&mut state.own)?;
        take_back(&mut state.next)?;
        Self::check(state, found)?;
        Ok(PartWork { found, handover_ns: ((lent - begin) + back.elapsed()).as_nanos() as u64 })
    }

    /// Runs a top-down level over the arcs, about `edges`, from the frontier to rows. (`next` begins equal to `own`.)
    pub fn top_down(&mut self, state: &mut PartState, frontier: PartFrontier, edges: u64) -> Result<PartWork, DeviceError> {
        let begin = Instant::now();
        match frontier {
            PartFrontier::Queue(len) => lend(&mut state.queue, Some(len))?,
            PartFrontier::Bitmap(_) => lend(&mut state.bitmap, None)?,
        }
        let all = 0..state.next.device_len();
        state.next.to_device(all)?;
        state.parents_to_device()?;
        let lent = Instant::now();
        match frontier {
            PartFrontier::Queue(len) => {
                self.seed(IS_QUEUE, len as u64, edges)?;
                self.kernels.tg.set_buffer(args::tg::queue_a, &state.queue)?;
            }
            PartFrontier::Bitmap(len) => {
                self.seed(IS_BITMAP, len, edges)?;
                let slot = self.next_slot();
                let kernel = &self.kernels.bitmap_to_queue;
                kernel.set_buffer(args::bitmap_to_queue::visited_a, &state.bitmap)?;
                kernel.set(args::bitmap_to_queue::slot, slot)?;
                self.start(kernel, (2 * state.bitmap.device_len()).div_ceil(self.group))?;
                self.kernels.tg.set_buffer(args::tg::queue_a, &self.frontier)?;
            }
        }
        let slot = self.next_slot();
        let tg_pieces = self.has_long_lists.then_some(&self.kernels.tg_pieces);
        for kernel in [&self.kernels.tg].into_iter().chain(tg_pieces) {
            // Both kernels begin with the same parameters. Nothing is flipped, so `visited_b` is not used.
            use args::tg as arg;
            kernel.set_buffer(arg::visited_a, &state.next)?;
            kernel.set_buffer(arg::visited_b, &state.next)?;
            kernel.set_buffer(arg::parent, &state.parent)?;
        }
        self.kernels.tg.set(args::tg::slot, slot)?;
        self.start(&self.kernels.tg, self.groups)?;
        if let Some(kernel) = tg_pieces {
            kernel.set_buffer(args::tg_pieces::queue_a, &self.frontier)?;
            kernel.set(args::tg_pieces::slot, slot)?;
            self.start(kernel, self.groups)?;
            self.completions.add(1);
        }
        let found = self.wait(slot)?;
        let back = Instant::now();
        match frontier {
            PartFrontier::Queue(_) => take_back(&mut state.queue)?,
            PartFrontier::Bitmap(_) => take_back(&mut state.bitmap)?,
        }
        take_back(&mut state.next)?;
        Self::check(state, found)?;
        Ok(PartWork { found, handover_ns: ((lent - begin) + back.elapsed()).as_nanos() as u64 })
    }

    /// Refuses bits that no level can have left: visited rows stay visited, and the number of new rows is the one counted.
    fn check(state: &PartState, found: u64) -> Result<(), DeviceError> {
        let (mut lost, mut new) = (0, 0);
        for (&before, &now) in state.own.iter().zip(state.next.iter()) {
            lost |= before & !now;
            new += u64::from((now & !before).count_ones());
        }
        demand(lost == 0 && new == found)
    }

    fn next_slot(&mut self) -> u32 {
        self.slot = (self.slot + 1) % SLOTS;
        self.slot
    }

    /// Gives the device the state of the search.
    fn seed(&mut self, form: u32, len: u64, edges: u64) -> Result<(), DeviceError> {
        let capped = |number: u64| number.min(u64::from(u32::MAX)) as u32;
        let slot = self.next_slot();
        let kernel = &self.kernels.seed;
        kernel.set(args::seed::slot, slot)?;
        kernel.set(args::seed::len, capped(len))?;
        kernel.set(args::seed::edges, capped(edges))?;
        kernel.set(args::seed::visited_before, 0)?;
        kernel.set(args::seed::expanded, 0)?;
        kernel.set(args::seed::state, form)?;
        self.start(kernel, 1)
    }

    /// Waits for a level. Returns the number of rows it found.
    fn wait(&mut self, slot: u32) -> Result<u64, DeviceError> {
        self.device.expect(self.arcs);
        self.counters.read(0..self.arrived.len(), &mut self.arrived)?;
        self.completions.check(&self.arrived)?;
        let level = Slot::of(&self.arrived, slot);
        demand(level.get(LEVELS) == 1)?;
        Ok(u64::from(level.get(TAIL)))
    }

    fn start(&self, kernel: &Kernel, groups: usize) -> Result<(), DeviceError> {
        // SAFETY: these are the kernels of kernels/*.cl, which stay inside what `bind` and the levels give them. Sources index `by_source`
        // and `visited`, which cover all vertices; rows index `lists`, columns, parents, `own` and `next`, which cover all rows. A row's
        // number is not above its vertex's, so that it may index `by_source` too (TG adds up the arcs of what it found, which are not
        // read). Handovers to the host wait first.
        unsafe { kernel.run(groups, self.group) }
    }
}

/// Lets the device read all values, or the first `count`. (With [`SharingMode::Copy`] the host's values stay valid, so that none are copied
/// back.)
fn lend<T: Pod>(slice: &mut SharedSlice<T>, count: Option<usize>) -> Result<(), DeviceError> {
    let valid = 0..count.unwrap_or(slice.device_len());
    if slice.way() == Some(SharingMode::Copy) { slice.read_both(valid) } else { slice.to_device(valid) }
}

/// Hands the values back to the host.
fn take_back<T: Pod>(slice: &mut SharedSlice<T>) -> Result<(), DeviceError> {
    let all = 0..slice.device_len();
    slice.to_host(all)
}
