//! Levels of one rank of a cluster on its device, with the same kernels as any other search.
//!
//! A rank has rows for its own vertices. In a top-down level, frontier vertices, which may belong to any rank, look for rows. In a
//! bottom-up level, the rows look for a parent among all vertices. To the kernels this is a directed graph whose vertices have one number
//! as sources and another as targets. Visited bits of neighbours are indexed by vertex; parents, visited bits of rows, and bits of found
//! rows are indexed by row.
//!
//! Every level ends with all bits on the host, which has to send them to the other ranks. Parents stay on the device until the host needs
//! them.

use std::time::Instant;

use super::{
    DeviceUse, GpuEngineError, GpuSetup, OnDevice,
    arguments::{Memory, Number, set},
    arrivals::demand,
    graph::GraphArrays,
    kernels::Kernels,
    side::DeviceSide,
    slots::{IS_BITMAP, IS_QUEUE, LEVELS, TAIL},
};
use crate::{
    bfs::GpuKernel,
    engine::Allocate,
    graph::{Csr, Vertex},
    memory::{Pod, ShareError, SharedSlice, SharingMode, Slab},
    opencl::{Buffer, DeviceError},
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
    side: DeviceSide<'g>,
    /// A frontier that was converted from a bitmap. The host does not read it.
    frontier: Buffer<Vertex>,
    /// Arcs of the part.
    arcs: u64,
    way: SharingMode,
}

impl<'g> PartGpu<'g> {
    /// Builds the kernels and puts a rank's part of a graph on its device. Bitmaps of all vertices have `words` words.
    pub fn new(arrays: PartArrays<'g>, words: usize, setup: &GpuSetup) -> Result<Self, GpuEngineError> {
        let GpuSetup { device, way, options } = setup;
        let PartArrays { lists, by_source, columns, names, to_original } = arrays;
        let of_graph = GraphArrays { out: by_source, incoming: Some(lists), columns, names, to_original, places: [&[]; 3] };
        let side = DeviceSide::new(device, of_graph, options, 2 * words, 64 * words)?;
        // Four more entries for what kernels write and do not keep, as in other searches.
        let frontier = Buffer::new(device, 64 * words + 4, "frontier queue")?;
        let found = Buffer::<Vertex>::new(device, lists.vertices() + 4, "frontier queue")?;
        let nothing = Buffer::new(device, words, "bitmaps")?;
        nothing.fill(0_u64)?;
        let Kernels { bitmap_to_queue, bg, bgc, .. } = &side.kernels;
        // Nothing reads the rows that are found top-down.
        side.set(&[("queue_a", Memory(&frontier)), ("queue_b", Memory(&found))])?;
        set(bitmap_to_queue, &[("visited_b", Memory(&nothing)), ("words", Number(2 * words as u32))])?;
        for kernel in [bg, bgc] {
            // The kernels add up the arcs that leave the rows found. A rank does not use that sum, and lists by source have no rows, so the
            // offsets of the rows' lists replace them.
            set(kernel, &[("offsets_out", Memory(&side.graph.incoming().offsets))])?;
        }
        device.finish()?;
        Ok(Self { side, frontier, arcs: lists.arcs() as u64, way: *way })
    }

    /// Allocates a state that the host shares with the device.
    pub fn state(&self, words: usize, rows: usize, queue: usize) -> Result<PartState, ShareError> {
        PartState::new(&OnDevice { device: &self.side.device, way: self.way }, words, rows, queue)
    }

    /// Describes the device for a record.
    pub fn used(&self) -> DeviceUse {
        self.side.used()
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
        self.side.seed(IS_QUEUE, 1, 0, 0, 0)?;
        let PartState { visited, own, next, parent, .. } = state;
        let arrays = [("visited", Memory(visited)), ("own", Memory(own)), ("next", Memory(next)), ("parent", Memory(parent))];
        set(self.side.bottom_up(kernel), &arrays)?;
        self.side.launch_bottom_up(kernel, 0, 0..2 * own.device_len() as u32, self.arcs)?;
        let found = self.wait()?;
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
        let Kernels { bitmap_to_queue, tg, tg_pieces, .. } = &self.side.kernels;
        // Nothing is flipped, so `visited_b` is not used.
        for kernel in [tg, tg_pieces] {
            set(kernel, &[("visited_a", Memory(&state.next)), ("visited_b", Memory(&state.next)), ("parent", Memory(&state.parent))])?;
        }
        match frontier {
            PartFrontier::Queue(len) => {
                set(tg, &[("queue_a", Memory(&state.queue))])?;
                self.side.seed(IS_QUEUE, len as u64, edges, 0, 0)?;
            }
            PartFrontier::Bitmap(len) => {
                set(tg, &[("queue_a", Memory(&self.frontier))])?;
                set(bitmap_to_queue, &[("visited_a", Memory(&state.bitmap))])?;
                self.side.seed(IS_BITMAP, len, edges, 0, 0)?;
                let slot = self.side.next_slot();
                let kernel = &self.side.kernels.bitmap_to_queue;
                set(kernel, &[("slot", Number(slot))])?;
                self.side.start(kernel, (2 * state.bitmap.device_len()).div_ceil(self.side.group))?;
            }
        }
        self.side.launch_top_down(GpuKernel::Tg, 0, 0, edges)?;
        let found = self.wait()?;
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

    /// Waits for a level. Returns the number of rows it found.
    fn wait(&mut self) -> Result<u64, DeviceError> {
        self.side.device.expect(self.arcs);
        self.side.read_slots()?;
        let level = self.side.read_slot(self.side.slot);
        demand(level.get(LEVELS) == 1)?;
        Ok(u64::from(level.get(TAIL)))
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
