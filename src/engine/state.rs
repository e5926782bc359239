//! The state of one search, which CPU and GPU hand over to each other.

use crate::{
    bfs::{Direction, LevelPlan, LevelStats, LevelWork, Placement},
    graph::{Hubs, Layout, NONE, Vertex},
    memory::{OutOfMemory, SharedSlice},
    opencl::DeviceError,
};

/// The representation of the frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frontier {
    /// The first entries of the queue, each vertex once.
    Queue { len: usize },
    /// The vertices visited since the last bottom-up level began: those in one visited bitmap but not in the other.
    Bitmap { len: u64 },
    /// A byte for every vertex, in the GPU's own memory.
    Mask { len: u64 },
}

impl Frontier {
    /// Number of vertices.
    pub(crate) fn len(self) -> u64 {
        match self {
            Self::Queue { len } => len as u64,
            Self::Bitmap { len } | Self::Mask { len } => len,
        }
    }
}

/// Parents, visited bitmaps and frontier of one search, and its counters.
///
/// The arrays have one owner at a time. These invariants hold whichever side owns them:
/// - a vertex with a parent has been visited;
/// - `visited[current]` holds every visited vertex if `bitmap_is_current` (top-down levels that CPU threads share do not write it), and
///   the bits of padding and of vertices without an edge (*excluded*);
/// - after a bottom-up level `visited[1 - current]` is the bitmap as it stood when that level began.
#[derive(Debug)]
pub struct SearchState {
    /// Parents (original numbers) by internal vertex. After the padding there is one entry for "no neighbour" and one for dropped vertices.
    /// If searches end in this state, entries for the parents of left-out leaves follow. The CPU fills them when it maps back.
    pub(crate) parent: SharedSlice<Vertex>,
    /// Parents by original vertex; empty where the order is the original one, and in states that are not mapped back.
    pub(crate) mapped: SharedSlice<Vertex>,
    /// Two visited bitmaps, each with a zero word at its end.
    pub(crate) visited: [SharedSlice<u64>; 2],
    /// Index of the bitmap in use.
    pub(crate) current: usize,
    /// Whether `visited[current]` holds every visited vertex (see above).
    pub(crate) bitmap_is_current: bool,
    /// Whether `visited[current]` holds only excluded vertices and vertices visited in this search.
    pub(crate) bitmap_is_of_search: bool,
    /// Frontier queue.
    pub(crate) queue: SharedSlice<Vertex>,
    /// The next frontier queue.
    pub(crate) next: SharedSlice<Vertex>,
    /// The representation of the frontier.
    pub(crate) frontier: Frontier,
    /// The level to be planned.
    pub(crate) level: u32,
    /// Number of arcs that leave the frontier, as last reported to the planner.
    pub(crate) frontier_edges: u64,
    /// Number of arcs that leave the frontier, if it was counted when the frontier was made. A device counts exactly. A bottom-up level of
    /// the CPU uses the mean degrees of bitmap words.
    pub(crate) counted_edges: Option<u64>,
    /// Whether `counted_edges` uses a mean degree that differs from the degree of some vertex.
    pub(crate) counted_are_estimated: bool,
    /// As `counted_edges` and `counted_are_estimated`, for the frontier that a level has just made.
    pub(crate) next_edges: Option<u64>,
    pub(crate) next_are_estimated: bool,
    /// Number of arcs of all earlier frontiers.
    pub(crate) expanded_edges: u64,
    /// Whether `frontier_edges` is an estimate (`edges_are_estimated`), and whether `expanded_edges` contains one
    /// (`expanded_are_estimated`).
    pub(crate) edges_are_estimated: bool,
    expanded_are_estimated: bool,
    /// Number of vertices visited that have an arc; where a device begins the search, also the root without one.
    pub(crate) visited_count: u64,
    /// Size of the previous frontier.
    pub(crate) previous_frontier: u64,
    /// Direction of the previous level.
    pub(crate) previous_direction: Option<Direction>,
    /// Where the previous level ran.
    pub(crate) previous_placement: Option<Placement>,
    /// If the previous level was split: nanoseconds that the CPU took for its part.
    pub(crate) previous_cpu_ns: u64,
    /// If the previous level was split: nanoseconds that the GPU took for its part.
    pub(crate) previous_gpu_ns: u64,
    /// Number of internal vertices, padding included.
    pub(crate) padded: usize,
    /// The only source that is a left-out leaf (an original number); [`NONE`]: there is none, or there are several.
    pub(crate) leaf_root: Vertex,
    /// Whether all sources are left-out leaves. Then the search begins at their neighbours, one level late.
    pub(crate) is_late: bool,
    /// Entries of the queue that follow the frontier's: vertices without an arc that were reached with it, and take no part in the search.
    pub(crate) idle: usize,
    /// Number of hubs: vertices with more arcs than the mean.
    pub(crate) hubs: u64,
    /// The mean number of arcs, rounded down; hubs have more.
    pub(crate) hub_arcs: u32,
    /// Share of the hubs among all vertices that have arcs.
    hub_share: f32,
}

impl SearchState {
    /// Makes the state for `layout`, with arrays from `allocate`. Queues have room for every vertex once, and for a few entries that are
    /// written but not kept. `maps_back`: searches end in this state, and their parents are mapped back to original vertices.
    ///
    /// # Errors
    /// Those of `allocate`.
    pub(crate) fn new<E>(layout: &Layout, allocate: &impl Allocate<E>, maps_back: bool) -> Result<Self, E> {
        let (padded, words) = (layout.padded(), layout.padded() / 64);
        let capacity = layout.csr().vertices() + 4;
        let (mapped, leaves) =
            if !maps_back || layout.internal_places().is_empty() { (0, 0) } else { (layout.vertices(), layout.leaves().host_of().len()) };
        let Hubs { arcs: hub_arcs, count: hubs, share: hub_share } = layout.hubs();
        let mut state = Self {
            parent: allocate.numbers(layout.first_leaf() + leaves, "parents")?,
            mapped: allocate.numbers(mapped, "parents in original order")?,
            visited: [allocate.words(words + 1, "bitmaps")?, allocate.words(words + 1, "bitmaps")?],
            current: 0,
            bitmap_is_current: false,
            bitmap_is_of_search: false,
            queue: allocate.queue(capacity, "frontier queue")?,
            next: allocate.queue(capacity, "frontier queue")?,
            frontier: Frontier::Queue { len: 0 },
            level: 0,
            frontier_edges: 0,
            counted_edges: None,
            counted_are_estimated: false,
            next_edges: None,
            next_are_estimated: false,
            expanded_edges: 0,
            edges_are_estimated: false,
            expanded_are_estimated: false,
            visited_count: 0,
            previous_frontier: 0,
            previous_direction: None,
            previous_placement: None,
            previous_cpu_ns: 0,
            previous_gpu_ns: 0,
            padded,
            leaf_root: NONE,
            is_late: false,
            idle: 0,
            hubs: hubs as u64,
            hub_arcs,
            hub_share,
        };
        state.set_dummies();
        Ok(state)
    }

    /// The statistics for the planner: `edges` arcs leave the frontier, and `searched` vertices take part in the search.
    pub(crate) fn stats(&mut self, edges: u64, searched: u64, layout: &Layout) -> LevelStats {
        let arcs = layout.csr().arcs() as u64;
        self.frontier_edges = edges;
        LevelStats {
            level: self.level,
            vertices: searched,
            arcs,
            frontier_vertices: self.frontier.len(),
            frontier_edges: edges,
            frontier_is_estimated: self.edges_are_estimated,
            unvisited_vertices: searched.saturating_sub(self.visited_count),
            unvisited_edges: arcs.saturating_sub(self.expanded_edges + edges),
            unvisited_is_estimated: self.edges_are_estimated || self.expanded_are_estimated,
            previous_frontier_vertices: self.previous_frontier,
            previous_direction: self.previous_direction,
            previous_placement: self.previous_placement,
            previous_cpu_ns: self.previous_cpu_ns,
            previous_gpu_ns: self.previous_gpu_ns,
            sampled_probes: None,
            hub_share: self.hub_share,
            sampled_hubs: None,
        }
    }

    /// Counts a level that was run as planned.
    pub(crate) fn done(&mut self, plan: LevelPlan, work: &LevelWork) {
        self.expanded_edges += self.frontier_edges;
        self.expanded_are_estimated |= std::mem::take(&mut self.edges_are_estimated);
        self.counted_edges = self.next_edges.take();
        self.counted_are_estimated = std::mem::take(&mut self.next_are_estimated);
        self.previous_direction = Some(plan.direction);
        self.previous_placement = Some(plan.placement);
        (self.previous_cpu_ns, self.previous_gpu_ns) = (work.cpu_ns, work.gpu_ns);
        self.level += work.levels;
        self.idle = 0;
        self.bitmap_is_of_search |= self.bitmap_is_current;
        self.visited_count += work.found;
    }

    /// Returns all arrays to the host after a failed search, ready for another search. The device must have finished its work.
    ///
    /// # Errors
    /// The driver's error; the state is then unusable.
    pub(crate) fn reclaim(&mut self) -> Result<(), DeviceError> {
        for numbers in [&mut self.parent, &mut self.mapped, &mut self.queue, &mut self.next] {
            numbers.reclaim()?;
        }
        for words in &mut self.visited {
            words.reclaim()?;
        }
        self.set_dummies();
        self.current = 0;
        self.restart();
        Ok(())
    }

    /// Sets the entries that no search changes: "no neighbour" has a parent and is not visited; a dropped vertex is never reached.
    pub(crate) fn set_dummies(&mut self) {
        if let Some([no_neighbour, dropped, ..]) = self.parent.get_mut(self.padded..) {
            (*no_neighbour, *dropped) = (0, NONE);
        }
        for words in &mut self.visited {
            if let Some(last) = words.last_mut() {
                *last = 0;
            }
        }
    }

    /// Resets the counters to the beginning of a search: one source, level 0.
    pub(crate) fn restart(&mut self) {
        self.frontier = Frontier::Queue { len: 1 };
        (self.bitmap_is_current, self.bitmap_is_of_search) = (false, false);
        (self.level, self.idle) = (0, 0);
        self.frontier_edges = 0;
        (self.counted_edges, self.next_edges) = (None, None);
        self.expanded_edges = 0;
        (self.counted_are_estimated, self.next_are_estimated) = (false, false);
        (self.edges_are_estimated, self.expanded_are_estimated) = (false, false);
        self.visited_count = 1;
        self.previous_frontier = 0;
        self.previous_direction = None;
        self.previous_placement = None;
        (self.previous_cpu_ns, self.previous_gpu_ns) = (0, 0);
    }
}

/// The source of the arrays of a state of a search: the host's memory, or memory that a device shares.
pub trait Allocate<E> {
    /// `len` zeroed numbers.
    fn numbers(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, E>;
    /// `len` zeroed numbers, of which a handover transfers only the first few.
    fn queue(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, E>;
    /// `len` zeroed words.
    fn words(&self, len: usize, what: &'static str) -> Result<SharedSlice<u64>, E>;
}

/// Allocates in the host's memory.
pub struct OnHost;

impl Allocate<OutOfMemory> for OnHost {
    fn numbers(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, OutOfMemory> {
        SharedSlice::host(len, what)
    }

    fn queue(&self, len: usize, what: &'static str) -> Result<SharedSlice<u32>, OutOfMemory> {
        self.numbers(len, what)
    }

    fn words(&self, len: usize, what: &'static str) -> Result<SharedSlice<u64>, OutOfMemory> {
        SharedSlice::host(len, what)
    }
}
