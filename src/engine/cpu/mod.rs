//! The CPU engine: TC and BC on a team of threads.

mod bottom_up;
mod prefetch;
mod simd;
mod split;
mod top_down;

use std::{
    convert::Infallible,
    ops::Range,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

pub use simd::{Simd, SimdError};

use self::{
    bottom_up::{BottomUp, Found},
    prefetch::prefetch,
    simd::{Kernels, MapBack, Visited},
    top_down::TopDown,
};
use super::{
    Team,
    state::{Frontier, OnHost, SearchState},
};
use crate::{
    bfs::{Direction, Engine, LevelPlan, LevelStats, LevelWork},
    graph::{Layout, NONE, Order, Vertex},
    memory::{OutOfMemory, Shared, Slab, as_atomics},
};

/// Words of the bitmap that a thread takes at a time in a bottom-up level: 4096 vertices.
const WORDS: usize = 64;
/// Original vertices that a thread maps back at a time, at least and at most (a quarter of its share between: fewer pieces than that
/// leave threads idle, more move the output's cache lines about; measured, two threads on Kronecker 20: a fifth less time by 64 Ki than by
/// 16 Ki).
const MAPPED: Range<usize> = 16 << 10..64 << 10;
/// Parents that a thread resets at a time.
const RESET: usize = 256 << 10;
/// Fewer parents than this are reset by the caller alone.
const SHARED_RESET: usize = 64 << 10;
/// The same where the graph has rows of neighbours: the caller, which searches such a graph almost alone, has them in its cache then.
const SHARED_ROW_RESET: usize = 256 << 10;
/// Frontiers of up to this many vertices have their edges counted exactly.
const COUNTED: usize = 96;
/// Words of the bitmap that hold the vertices of highest degree, whose arcs are never left to a sample.
const HUB_WORDS: usize = 16;
/// Vertices whose degrees are looked at where a frontier's edges are estimated.
const DEGREES_SAMPLED: usize = 64;
/// Unvisited vertices looked at to estimate a bottom-up level.
const VERTICES_SAMPLED: usize = 64;
/// Places tried to find them.
const PLACES_TRIED: usize = 256;
/// Neighbours of each looked at, at most.
const PROBES: usize = 64;
/// Top-down levels with fewer arcs than this are run by the caller alone: waking and meeting others takes longer.
const SHARED_ARCS: u64 = 8 << 10;
/// The same where the graph has rows of neighbours: one thread needs a few nanoseconds a vertex, and two would pass the
/// cache lines of a thin wave to and fro.
const SHARED_ROW_ARCS: u64 = 256 << 10;
/// The same where the lists of the frontier are not short on average ([`MEDIUM_LISTS`]): the caller goes through them at 1 to 2 ns
/// an arc, and the vertices that lists share are vertices whose cache lines threads take from each other.
const SHARED_MEDIUM_ARCS: u64 = 64 << 10;
/// The same where the frontier has hubs with long lists ([`HUB_LISTS`]): the caller has just reset the parents, so that they lie
/// in its own cache, and another thread has to fetch every line from there (measured on two cores: from twice to four times as
/// long with two threads for 15 Ki to 500 Ki arcs, equally long at some millions).
const SHARED_HUB_ARCS: u64 = 2 << 20;
/// Mean degree of a frontier whose lists are not short.
const MEDIUM_LISTS: u64 = 16;
/// Mean degree of a frontier with hubs.
const HUB_LISTS: u64 = 48;
/// Arcs per vertex of the graph up to which threads hardly meet at a parent's cache line.
const FEW_MEETINGS: u64 = 4;
/// At the level before, one in so many arcs led to an unvisited vertex: then it can't be foretold which do now.
const OFTEN_FOUND: u64 = 4;
/// Bottom-up levels and mapping of fewer words than this are run by the caller alone, and conversions of a few times as many.
const SHARED_WORDS: usize = 256;
/// The same of bottom-up levels with fewer unvisited vertices than this.
const SHARED_UNVISITED: u64 = 8 << 10;
/// From this level on, runs of small levels are one call: a graph this deep has thousands of them.
const DEEP: u32 = 16;

/// Memory and counters of one search at a time.
#[derive(Debug)]
pub struct CpuEngine<'g> {
    layout: &'g Layout,
    team: Team,
    simd: Simd,
    kernels: Kernels,
    state: SearchState,
    /// Bits of padding and of vertices without an edge.
    closed: Slab<u64>,
    closed_count: u64,
    /// A queue whose entries come with claims, and the next one: several threads may enter a vertex, so that they have room for more
    /// entries than there are vertices. The state's own queues, which a device may see, hold every vertex once.
    claimed: Slab<Vertex>,
    next_claimed: Slab<Vertex>,
    /// The claim of each entry (see `top_down`).
    claims: Slab<Vertex>,
    next_claims: Slab<Vertex>,
    /// Per thread, vertices that found no frontier neighbour in the columns.
    left: Vec<Slab<Vertex>>,
    /// Mean degree of the vertices of each word of the bitmap, where they are ordered by degree (else empty): neighbours in that order
    /// are alike.
    degrees: Slab<u32>,
    /// The first words of the visited bitmap (at most [`HUB_WORDS`], none without `degrees`) when the frontier was last counted.
    hubs: Vec<u64>,
    /// Small levels are run one at a time: somebody wants to know who was found at which.
    pub(super) single_levels: bool,
}

impl<'g> CpuEngine<'g> {
    /// Allocates the search state for `layout`.
    ///
    /// # Errors
    /// [`OutOfMemory`], or [`SimdError`] where `simd` is not to be had here.
    pub fn new(layout: &'g Layout, team: Team, simd: Simd) -> Result<Self, CpuEngineError> {
        let state = SearchState::new(layout, &OnHost)?;
        Self::with_state(layout, team, simd, state)
    }

    /// The same over `state`.
    pub(super) fn with_state(layout: &'g Layout, team: Team, simd: Simd, state: SearchState) -> Result<Self, CpuEngineError> {
        let kernels = simd.kernels()?;
        let (vertices, padded) = (layout.csr().vertices(), layout.padded());
        let words = padded / 64;
        let mut closed: Slab<u64> = Slab::zeroed(words, "bitmaps")?;
        let mut closed_count = 0;
        for v in 0..padded {
            if v >= vertices || (layout.csr().degree(v as Vertex) == 0 && layout.incoming().degree(v as Vertex) == 0) {
                closed[v / 64] |= 1 << (v % 64);
                closed_count += 1;
            }
        }
        let mut left = Vec::new();
        for _ in 0..team.size() {
            left.push(Slab::zeroed(WORDS * 64, "per-thread buffers")?);
        }
        let claimed = if team.size() == 1 { 0 } else { claimed_capacity(layout, team.size()) };
        let claimed_queue = || Slab::zeroed(claimed, "frontier queue");
        let by_degree = if layout.order() == Order::Degree { words } else { 0 };
        let mut degrees = Slab::zeroed(by_degree, "bitmaps")?;
        for (word, mean) in degrees.iter_mut().enumerate() {
            let range = word * 64..(word * 64 + 64).min(vertices);
            let arcs: u64 = range.clone().map(|v| u64::from(layout.csr().degree(v as Vertex))).sum();
            *mean = (arcs as f64 / range.len().max(1) as f64).round() as u32;
        }
        Ok(Self {
            layout,
            simd,
            kernels,
            state,
            closed,
            closed_count,
            claimed: claimed_queue()?,
            next_claimed: claimed_queue()?,
            claims: claimed_queue()?,
            next_claims: claimed_queue()?,
            left,
            degrees,
            hubs: vec![0; by_degree.min(HUB_WORDS)],
            single_levels: false,
            team,
        })
    }

    /// Threads.
    pub fn threads(&self) -> usize {
        self.team.size()
    }

    /// Vector instructions in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Parents by original vertex, after [`CpuEngine::map_back`].
    pub fn parents(&self) -> &[Vertex] {
        if self.layout.internal_places().is_empty() { &self.state.parent[..self.layout.vertices()] } else { &self.state.mapped }
    }

    /// Brings the parents into the order of the original vertices, where that differs.
    pub fn map_back(&mut self) {
        let place = self.layout.internal_places();
        if place.is_empty() {
            return;
        }
        let work = MapBack { place, parent: &self.state.parent, out: Shared::new(&mut self.state.mapped) };
        let kernel = self.kernels.map_back;
        let grain = (place.len() / (4 * self.team.size())).clamp(MAPPED.start, MAPPED.end);
        share(&self.team, place.len(), grain, place.len() < SHARED_WORDS * 64, &|_, vertices| {
            // SAFETY: places are checked by the layout (all below `padded + 2`), ranges are handed out once, and the
            // kernel was chosen for this CPU.
            unsafe { kernel(&work, vertices) };
        });
    }

    /// Begins and ends the search from a root that the layout dropped because it has no edge: nobody is reached.
    pub fn begin_dropped(&mut self) {
        self.state.parent[..self.layout.padded()].fill(NONE);
    }

    /// Enters a dropped root, an original number, as its own parent, after [`CpuEngine::map_back`].
    pub fn adopt_dropped(&mut self, root: Vertex) {
        if let Some(parent) = self.state.mapped.get_mut(root as usize) {
            *parent = root;
        }
    }

    /// A vertex without successors or predecessors has nothing to search; everyone else is in play.
    pub(super) fn searched(&self) -> u64 {
        self.layout.padded() as u64 - self.closed_count
    }

    /// The arcs that leave the frontier: exact up to [`COUNTED`] vertices of a queue; above, hubs are all counted and the others
    /// are estimated from a sample. (A sample alone is worth little where a few vertices have most arcs.)
    fn count_frontier_edges(&mut self) -> u64 {
        if let Frontier::Queue { len, .. } = self.state.frontier {
            if len <= COUNTED {
                return self.count_queue_edges();
            }
        }
        let (mut hub_edges, mut hubs) = (0, 0);
        let visited = self.visited_hubs();
        for (word, &visited) in visited.iter().enumerate().take(self.hubs.len()) {
            // Hubs visited now that had not been when the frontier before was counted are in this one.
            let new = visited & !self.hubs[word];
            hub_edges += self.edges_of(word, new);
            hubs += u64::from(new.count_ones());
            self.hubs[word] = visited;
        }
        let others = self.state.frontier.len().saturating_sub(hubs);
        let first = (self.hubs.len() * 64) as Vertex;
        let (mut sum, mut count) = (0, 0);
        self.look_at_frontier(self.hubs.len(), |v, weight| {
            // No branch: which are hubs can't be foretold.
            let weight = weight * u64::from(v >= first);
            sum += weight * self.degree_like(v);
            count += weight;
        });
        hub_edges + if count == 0 { others } else { (sum as f64 * others as f64 / count as f64) as u64 }
    }

    /// Shows `look` about [`DEGREES_SAMPLED`] vertices of the frontier, spread evenly, each with the number of vertices that it speaks
    /// for. A bitmap is looked at from word `first` on; one vertex speaks for its word there: neighbours in the order are alike in degree.
    #[inline(always)]
    fn look_at_frontier(&self, first: usize, mut look: impl FnMut(Vertex, u64)) {
        let state = &self.state;
        match state.frontier {
            Frontier::Queue { len, .. } => {
                let (queue, step) = (self.frontier_queue(), (len / DEGREES_SAMPLED).max(1));
                for i in 0..DEGREES_SAMPLED.min(len) {
                    look(queue[i * step], 1);
                }
            }
            Frontier::Bitmap { .. } | Frontier::Mask { .. } => {
                let (now, before) = (&state.visited[state.current], &state.visited[1 - state.current]);
                let words = first..self.closed.len();
                let stride = (words.len() / DEGREES_SAMPLED).max(1);
                for word in words.step_by(stride) {
                    let bits = now[word] & !before[word];
                    if bits != 0 {
                        look((word * 64) as Vertex + bits.trailing_zeros(), bits.count_ones().into());
                    }
                }
            }
        }
    }

    /// The degree of `v`, or the mean of its word where that is as good and less far away.
    fn degree_like(&self, v: Vertex) -> u64 {
        u64::from(self.degrees.get(v as usize / 64).copied().unwrap_or_else(|| self.layout.csr().degree(v)))
    }

    /// The arcs of the vertices `bits` of `word`, in a layout ordered by degree: exact in the first word, whose degrees differ most,
    /// and by the mean elsewhere.
    fn edges_of(&self, word: usize, mut bits: u64) -> u64 {
        if word > 0 {
            return u64::from(bits.count_ones()) * u64::from(self.degrees[word]);
        }
        let mut edges = 0;
        while bits != 0 {
            edges += u64::from(self.layout.csr().degree(bits.trailing_zeros()));
            bits &= bits - 1;
        }
        edges
    }

    /// The arcs that leave the first `len` vertices of the queue, which is the frontier.
    fn count_queue_edges(&mut self) -> u64 {
        let mut sum = 0;
        let queue = match self.state.frontier {
            Frontier::Queue { len, claims: true } => &self.claimed[..len],
            Frontier::Queue { len, claims: false } => &self.state.queue[..len],
            Frontier::Bitmap { .. } | Frontier::Mask { .. } => &[],
        };
        for &u in queue {
            sum += u64::from(self.layout.csr().degree(u));
            if let Some(word) = self.hubs.get_mut(u as usize / 64) {
                *word |= 1 << (u % 64);
            }
        }
        sum
    }

    /// Visited bitmap from the parents; returns the number of vertices visited.
    fn make_bitmap(&mut self) -> u64 {
        let words = self.closed.len();
        let total = AtomicU64::new(0);
        let work =
            Visited { parent: &self.state.parent, closed: &self.closed, words: Shared::new(&mut self.state.visited[self.state.current]) };
        let kernel = self.kernels.visited;
        share(&self.team, words, 8 * WORDS, words < 4 * SHARED_WORDS, &|_, range| {
            // SAFETY: every word is handed out once, parents cover all words, and the kernel was chosen for this CPU.
            total.fetch_add(unsafe { kernel(&work, range) }, Relaxed);
        });
        total.into_inner() - self.closed_count
    }

    /// Makes the visited bitmap and counts exactly who was visited; returns how many were counted twice before.
    fn bring_bitmap_up_to_date(&mut self) -> u64 {
        let visited = self.make_bitmap();
        // A device may have counted too few.
        let repeats = self.state.visited_count.saturating_sub(visited);
        self.state.visited_count = visited;
        self.state.bitmap_is_current = true;
        repeats
    }

    /// The frontier where it is a queue, repeats included; else nothing.
    pub(super) fn frontier_queue(&self) -> &[Vertex] {
        match self.state.frontier {
            Frontier::Queue { len, claims: true } => &self.claimed[..len],
            Frontier::Queue { len, claims: false } => &self.state.queue[..len],
            Frontier::Bitmap { .. } | Frontier::Mask { .. } => &[],
        }
    }

    /// Makes a queue without the repeats whose claims do not stand (see `top_down`).
    fn settle_queue(&mut self) {
        let state = &mut self.state;
        let Frontier::Queue { len, claims: true } = state.frontier else { return };
        let (parent, queue) = (&state.parent[..], &mut state.queue[..]);
        let mut kept = 0;
        for (&v, &claim) in self.claimed[..len].iter().zip(&self.claims[..len]) {
            queue[kept] = v;
            kept += usize::from(parent[v as usize] == claim);
        }
        state.frontier = Frontier::Queue { len: kept, claims: false };
    }

    /// Brings the state into a form that needs no memory of the CPU's own: no repeats in the queue, and the visited bitmap
    /// up to date. Returns how many vertices of the frontier were counted twice before.
    pub(super) fn settle(&mut self) -> u64 {
        self.settle_queue();
        if self.state.bitmap_is_current { 0 } else { self.bring_bitmap_up_to_date() }
    }

    /// The first words of the visited bitmap, as far as there are [`hubs`](Self::hubs), from the parents.
    fn visited_hubs(&self) -> [u64; HUB_WORDS] {
        let mut words = [0; HUB_WORDS];
        let work = Visited { parent: &self.state.parent, closed: &self.closed, words: Shared::new(&mut words) };
        // SAFETY: parents and `closed` cover all words, of which there are no fewer than of hubs; `words` has room for these and
        // nobody else has it; the kernel was chosen for this CPU.
        unsafe { (self.kernels.visited)(&work, 0..self.hubs.len()) };
        words
    }

    /// Takes note of the hubs that were visited while another engine had the state.
    pub(super) fn recount_hubs(&mut self) {
        let (visited, hubs) = (self.visited_hubs(), self.hubs.len());
        self.hubs.copy_from_slice(&visited[..hubs]);
    }

    /// The state, for engines beside this one.
    pub(super) fn state(&mut self) -> &mut SearchState {
        &mut self.state
    }

    /// The state, to be read.
    pub(super) fn state_ref(&self) -> &SearchState {
        &self.state
    }

    /// Bits of padding and of vertices without an edge.
    pub(super) fn closed(&self) -> &[u64] {
        &self.closed
    }

    /// The frontier queue from the two visited bitmaps.
    fn make_queue(&mut self) -> usize {
        let (now, before) = (&self.state.visited[self.state.current], &self.state.visited[1 - self.state.current]);
        let tail = AtomicUsize::new(0);
        let words = self.closed.len();
        let capacity = self.state.queue.len();
        let queue = Shared::new(&mut self.state.queue);
        share(&self.team, words, 8 * WORDS, words < 16 * SHARED_WORDS, &|_, range| {
            let count: u32 = range.clone().map(|word| (now[word] & !before[word]).count_ones()).sum();
            let mut at = tail.fetch_add(count as usize, Relaxed);
            assert!(at + count as usize <= capacity, "the queue overflows");
            for word in range {
                let mut bits = now[word] & !before[word];
                while bits != 0 {
                    // SAFETY: `fetch_add` reserved this place for this thread, and the room was checked.
                    unsafe { *queue.get().add(at) = (word * 64) as Vertex + bits.trailing_zeros() };
                    at += 1;
                    bits &= bits - 1;
                }
            }
        });
        tail.into_inner()
    }

    /// Runs small levels until the frontier is empty or large; returns (levels, found).
    fn run_small(&mut self, mut len: usize, alone: bool) -> (u32, u64) {
        let layout = self.layout;
        let (mut levels, mut total) = (0, 0);
        let mean_degree = layout.csr().arcs() as u64 / self.searched().max(1) + 1;
        // A team member is fast enough to keep a run to itself while others could not be told in time; a lone thread
        // stops where another direction may be worth a thought.
        let enough = if self.single_levels {
            0
        } else if alone && layout.rows().is_empty() {
            self.searched() / 64
        } else if alone {
            u64::MAX
        } else {
            SHARED_ARCS / mean_degree
        };
        loop {
            let (parent, queue, next) = (&mut self.state.parent[..], &self.state.queue[..len], &mut self.state.next[..]);
            // SAFETY: `parent` covers all vertices and "no neighbour", the queue holds vertices, `next` has room for
            // one more than all of them, and no helper is at work.
            let found = unsafe {
                if layout.rows().is_empty() {
                    top_down::expand(layout.csr(), layout.original_numbers(), parent, queue, next)
                } else {
                    top_down::expand_rows(layout.rows(), layout.csr(), parent, queue, next)
                }
            };
            std::mem::swap(&mut self.state.queue, &mut self.state.next);
            levels += 1;
            total += found as u64;
            self.state.previous_frontier = len as u64;
            len = found;
            self.state.frontier = Frontier::Queue { len, claims: false };
            if len == 0 || self.state.level + levels < DEEP || len as u64 > enough {
                break;
            }
            // `stats` counts the arcs of the first level only. Rows hold no degrees, and their graphs hardly differ in them.
            self.state.expanded_edges += if layout.rows().is_empty() {
                self.count_queue_edges()
            } else {
                len as u64 * layout.csr().arcs() as u64 / self.searched().max(1)
            };
        }
        (levels, total)
    }

    fn run_top_down(&mut self) -> LevelWork {
        let begin = Instant::now();
        let mut conversion_ns = 0;
        if let Frontier::Bitmap { .. } = self.state.frontier {
            let len = self.make_queue();
            self.state.frontier = Frontier::Queue { len, claims: false };
            conversion_ns = begin.elapsed().as_nanos() as u64;
        }
        let Frontier::Queue { len, claims } = self.state.frontier else { unreachable!("made a queue above") };
        self.state.bitmap_is_current = false;
        let alone = self.team.size() == 1;
        let edges = self.state.frontier_edges;
        let degree = edges / len.max(1) as u64;
        let enough = match degree {
            _ if !self.layout.rows().is_empty() => SHARED_ROW_ARCS,
            HUB_LISTS.. => SHARED_HUB_ARCS,
            MEDIUM_LISTS.. => SHARED_MEDIUM_ARCS,
            _ => SHARED_ARCS,
        };
        if alone || (!claims && edges < enough) {
            let (levels, found) = self.run_small(len, alone);
            let finished = self.state.frontier.len() == 0;
            return LevelWork { levels, found, finished, conversion_ns, threads: 1, ..LevelWork::default() };
        }
        let (tail, piece, repeats) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
        let arrived = AtomicU32::new(0);
        let store_all = edges < FEW_MEETINGS * self.searched() && OFTEN_FOUND * len as u64 >= self.state.previous_edges;
        let together = edges >= enough;
        let next = if together { &mut self.next_claimed[..] } else { &mut self.state.next[..] };
        let level = TopDown {
            csr: self.layout.csr(),
            to_original: self.layout.original_numbers(),
            parent: as_atomics(&mut self.state.parent),
            queue: if claims { &self.claimed[..len] } else { &self.state.queue[..len] },
            claims: if claims { &self.claims[..len] } else { &[] },
            capacity: next.len(),
            next: Shared::new(next),
            next_claims: Shared::new(&mut self.next_claims),
            tail: &tail,
            piece: &piece,
            repeats: &repeats,
            grain: (len / (8 * self.team.size())).clamp(16, 1024),
            store_all,
        };
        if together {
            self.team.run(&|_| {
                arrived.fetch_add(1, Relaxed);
                level.work();
            });
            std::mem::swap(&mut self.claimed, &mut self.next_claimed);
            std::mem::swap(&mut self.claims, &mut self.next_claims);
        } else {
            arrived.store(1, Relaxed);
            level.work();
            std::mem::swap(&mut self.state.queue, &mut self.state.next);
        }
        let found = tail.into_inner();
        // A helper that comes late may enter twice.
        let threads = arrived.into_inner().min(self.team.size() as u32);
        self.state.previous_frontier = len as u64;
        self.state.frontier = Frontier::Queue { len: found, claims: together };
        let repeats_before = repeats.into_inner();
        self.state.visited_count -= repeats_before;
        let (found, finished) = (found as u64, found == 0);
        LevelWork { levels: 1, found, finished, repeats_before, conversion_ns, threads, ..LevelWork::default() }
    }

    fn run_bottom_up(&mut self) -> LevelWork {
        let begin = Instant::now();
        let (mut conversion_ns, mut repeats_before) = (0, 0);
        let frontier = self.state.frontier.len();
        if !self.state.bitmap_is_current {
            repeats_before = self.bring_bitmap_up_to_date();
            conversion_ns = begin.elapsed().as_nanos() as u64;
        }
        let (Found { vertices: found, edges }, threads) = self.bottom_up_over(0..self.closed.len());
        self.state.current = 1 - self.state.current;
        if !self.degrees.is_empty() {
            let (now, before) = (&self.state.visited[self.state.current], &self.state.visited[1 - self.state.current]);
            let new = now[0] & !before[0];
            // The kernel takes the mean of every word.
            let edges = edges + self.edges_of(0, new) - u64::from(new.count_ones()) * u64::from(self.degrees[0]);
            let hubs = self.hubs.len();
            self.hubs.copy_from_slice(&now[..hubs]);
            self.state.next_edges = Some(edges.min(self.layout.csr().arcs() as u64));
        }
        self.state.bitmap_is_current = true;
        self.state.previous_frontier = frontier - repeats_before.min(frontier);
        self.state.frontier = Frontier::Bitmap { len: found };
        LevelWork { levels: 1, found, finished: found == 0, repeats_before, conversion_ns, threads, ..LevelWork::default() }
    }

    /// A bottom-up level for the vertices of `words` of the bitmap; what is visited then is in `visited[1 - current]`. Returns
    /// what was found, and by how many threads.
    fn bottom_up_over(&mut self, words: Range<usize>) -> (Found, u32) {
        let (total, total_edges, arrived) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU32::new(0));
        let unvisited = self.searched().saturating_sub(self.state.visited_count);
        let [first, second] = &mut self.state.visited;
        let (now, next) = if self.state.current == 0 { (first, second) } else { (second, first) };
        let lists = self.layout.incoming();
        let level = BottomUp {
            visited: now,
            next: Shared::new(&mut next[..self.closed.len()]),
            parent: Shared::new(&mut self.state.parent),
            columns: self.layout.columns(),
            originals: self.layout.column_originals(),
            offsets: &lists.offsets,
            targets: &lists.targets,
            degrees: &self.degrees,
            to_original: self.layout.original_numbers(),
            none: self.layout.padded() as Vertex,
        };
        let left: SharedBuffers<'_> = SharedBuffers(&self.left);
        let kernel = self.kernels.bottom_up;
        let last = AtomicU32::new(u32::MAX);
        let alone = words.len() < SHARED_WORDS || unvisited < SHARED_UNVISITED;
        share(&self.team, words.len(), WORDS, alone, &|thread, range| {
            if last.swap(thread as u32, Relaxed) != thread as u32 {
                arrived.fetch_or(1 << (thread % 32), Relaxed);
            }
            let range = words.start + range.start..words.start + range.end;
            // SAFETY: words are handed out once; the slabs have the sizes that `BottomUp` asks for (see `new`); the
            // kernel was chosen for this CPU; buffer `thread` is this thread's own.
            let found = unsafe { kernel(&level, range, left.of(thread)) };
            total.fetch_add(found.vertices, Relaxed);
            total_edges.fetch_add(found.edges, Relaxed);
        });
        (Found { vertices: total.into_inner(), edges: total_edges.into_inner() }, arrived.into_inner().count_ones())
    }
}

impl Engine for CpuEngine<'_> {
    type Error = Infallible;

    fn begin(&mut self, root: Vertex) -> Result<u64, Infallible> {
        // Looked at right after the parents are reset.
        prefetch(&raw const self.layout.csr().offsets[root as usize]);
        let padded = self.layout.padded();
        let parent = Shared::new(&mut self.state.parent);
        let shared = if self.layout.rows().is_empty() { SHARED_RESET } else { SHARED_ROW_RESET };
        share(&self.team, padded, RESET, padded < shared, &|_, range| {
            // SAFETY: ranges are handed out once and lie inside the slab.
            unsafe { std::slice::from_raw_parts_mut(parent.get().add(range.start), range.len()) }.fill(NONE);
        });
        self.state.parent[root as usize] = self.layout.to_original(root);
        self.state.queue[0] = root;
        self.state.restart();
        let hubs = self.hubs.len();
        self.hubs.copy_from_slice(&self.closed[..hubs]);
        Ok(0)
    }

    fn stats(&mut self) -> LevelStats {
        let edges = match self.state.counted_edges {
            Some(edges) => edges,
            None => self.count_frontier_edges().min(self.layout.csr().arcs() as u64),
        };
        self.state.stats(edges, self.searched(), self.layout)
    }

    fn sample(&mut self) -> Result<Option<f32>, Infallible> {
        let vertices = self.layout.csr().vertices() as u64;
        let (lists, parent) = (self.layout.incoming(), &self.state.parent);
        let (mut sampled, mut probes) = (0, 0);
        // Multiples of the golden ratio are spread evenly, whatever the order of the vertices means.
        let mut place = 0u64;
        let mut batch = [0; VERTICES_SAMPLED];
        // Nearly every access misses the caches, so that each step is done for a whole batch, the next one's data on their way.
        for _ in 0..PLACES_TRIED / VERTICES_SAMPLED {
            for v in &mut batch {
                place = place.wrapping_add(0x9e37_79b9_7f4a_7c15);
                *v = ((u128::from(place) * u128::from(vertices)) >> 64) as Vertex;
                prefetch(&raw const parent[*v as usize]);
                prefetch(&raw const lists.offsets[*v as usize]);
            }
            let mut unvisited = 0;
            for i in 0..batch.len() {
                let v = batch[i];
                if parent[v as usize] == NONE && lists.degree(v) > 0 {
                    prefetch(&raw const lists.targets[lists.offsets[v as usize] as usize]);
                    batch[unvisited] = v;
                    unvisited += 1;
                }
            }
            for &v in &batch[..unvisited] {
                for &w in lists.neighbours(v).iter().take(2) {
                    prefetch(&raw const parent[w as usize]);
                }
            }
            for &v in &batch[..unvisited.min(VERTICES_SAMPLED - sampled)] {
                let list = lists.neighbours(v);
                // A visited neighbour of an unvisited vertex is in the frontier.
                let looked = list.iter().take(PROBES).position(|&w| parent[w as usize] != NONE);
                probes += looked.map_or(list.len().min(PROBES), |position| position + 1);
                sampled += 1;
            }
            // Half of a full sample is worth more than another round of misses.
            if sampled >= VERTICES_SAMPLED / 2 {
                break;
            }
        }
        Ok((sampled > 0).then(|| probes as f32 / sampled as f32))
    }

    fn sample_hubs(&mut self) -> Result<Option<f32>, Infallible> {
        let (csr, state) = (self.layout.csr(), &self.state);
        let (mut sum, mut count) = (0, 0);
        self.look_at_frontier(0, |v, weight| {
            sum += weight * u64::from(csr.degree(v) > state.hub_arcs);
            count += weight;
        });
        let in_frontier = state.frontier.len() as f64 * sum as f64 / count.max(1) as f64;
        Ok((state.hubs > 0).then(|| (in_frontier / state.hubs as f64).min(1.0) as f32))
    }

    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, Infallible> {
        let work = match plan.direction {
            Direction::TopDown => self.run_top_down(),
            Direction::BottomUp => self.run_bottom_up(),
        };
        self.state.done(plan, &work);
        Ok(work)
    }
}

/// Entries that `threads` threads need in a queue with claims: each may enter a vertex once, and no more can be found than there are
/// arcs.
fn claimed_capacity(layout: &Layout, threads: usize) -> usize {
    let (vertices, arcs) = (layout.csr().vertices(), layout.csr().arcs());
    vertices.saturating_mul(threads).min(arcs.max(vertices)) + 4
}

/// One buffer per thread.
struct SharedBuffers<'a>(&'a [Slab<Vertex>]);

impl SharedBuffers<'_> {
    /// # Safety
    /// Only thread `thread` asks for buffer `thread`, and not while it holds it already.
    #[allow(clippy::mut_from_ref, reason = "each buffer has one user (see Safety)")]
    unsafe fn of(&self, thread: usize) -> &mut [Vertex] {
        let slab = &self.0[thread];
        // SAFETY: the memory is the slab's own, and its one user is the caller.
        unsafe { std::slice::from_raw_parts_mut(slab.shared().get(), slab.len()) }
    }
}

/// Hands `0..len` out to the team in ranges of `grain`, or to the caller alone.
fn share(team: &Team, len: usize, grain: usize, alone: bool, work: &(dyn Fn(usize, Range<usize>) + Sync)) {
    let next = AtomicUsize::new(0);
    let run = |thread: usize| loop {
        let begin = next.fetch_add(grain, Relaxed);
        if begin >= len {
            break;
        }
        work(thread, begin..len.min(begin + grain));
    };
    if alone { run(0) } else { team.run(&run) }
}

/// Why the CPU engine can't be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CpuEngineError {
    /// The memory is not there.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The vector instructions are not there.
    #[error(transparent)]
    Simd(#[from] SimdError),
    /// Threads could not be started.
    #[error("{0}")]
    Threads(String),
}
