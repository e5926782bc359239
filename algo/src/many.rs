//! Many roots in one pass: bit-parallel multi-source search (Then et al., "The More the Merrier", VLDB 2014).
//!
//! Each vertex has one word for the searches that have seen it and one for those whose frontier it is in, with a bit for each of up to 64
//! roots. A neighbour that many searches meet at the same level is looked at once for all of them, and in graphs of small diameter nearly
//! all searches meet. While the joint frontier is small, all searches go top-down. After that every level is split by search. Searches
//! whose frontiers have few arcs, and fewer than are still unexplored, go top-down. The others go bottom-up, where a vertex stops looking
//! when all of these searches have reached it. (One search that lags behind would make every vertex look at all of its neighbours.)
//!
//! A leaf that the layout leaves out is reached one level after its only neighbour. A search from such a leaf begins at that neighbour, one
//! level late: the sink counts its levels from 1.
//!
//! Deep graphs of small degrees are searched from one root after another (`alone`), unless memory is short.
//!
//! Space: 32 bytes per vertex, and 32 more for written levels. Searches report what they find to a [`Visitor`], or write it into the
//! caller's arrays of levels and parents (`level_rows`).

mod alone;
mod level_rows;

use std::{
    borrow::Borrow,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use socbfs::{
    EngineError,
    graph::{Layout, NONE, Place, Vertex},
    memory::{self, Pod, Shared, Slab, as_wide_atomics, prefetch},
    search::{SearchError, Stopper, threads_of},
    threads::{Team, share},
};

pub use level_rows::LevelNumber;

use alone::Alone;
use level_rows::{PLANES, Rows, Written};

/// Roots of one pass, at most. More roots are searched in several passes, one after another.
pub const ROOTS: usize = 64;
/// A search goes top-down as long as its frontier has less than one sixteenth of all arcs, and fewer than are still unexplored. A single
/// bottom-up search whose frontier is rarely met makes every vertex look at most of its neighbours. (64 roots of Kronecker 20: at level 2,
/// sixty searches have at most 3.5 % of the arcs each, and bottom-up without the 32 lightest of them still takes 21 of 31 million looks. At
/// level 3, the two lightest searches, with 4 %, cause two of five looks.) The number of arcs of all these searches together does not
/// matter: pushing along an arc takes no longer than pulling along it.
const FEW_ARCS: u64 = 16;
/// A top-down level writes the vertices that it finds into a queue as long as less than one in 32 of all arcs leaves the joint frontier. A
/// level with more arcs reaches a large part of all vertices. `bottom_up` then reads the words of all vertices in order, even if no search
/// goes bottom-up (64 roots of Kronecker 20, level 2: 11 ms instead of 17, although memory was slower in that run).
const FEW_QUEUED: u64 = 32;
/// The arcs of each search are counted at this many first vertices, which are hubs if vertices are ordered by degree.
const COUNTED: usize = 1 << 10;
/// The arcs of each search are counted at every vertex with at least this many arcs, a hub in any order.
const COUNTED_ARCS: u32 = 512;
/// At other vertices, the arcs of each search are counted at one in this many.
const SAMPLED: usize = 64;
/// The calling thread alone runs levels with fewer arcs than this.
const SHARED_ARCS: u64 = 8 << 10;
/// Vertices of a queue that a thread takes at a time.
const QUEUED: usize = 64;
/// Vertices of the graph that a thread takes at a time.
const VERTICES: usize = 4 << 10;
/// Vertices that a thread collects before it appends them to the shared queue.
const BUFFER: usize = 64;
/// Bytes that the arrays of [`ManySearch`] take for each vertex: three words of bits, two queues, and the planes.
const BYTES: u64 = 3 * 8 + 2 * 4 + 8 * PLANES as u64;
/// How far ahead the words of vertices are prefetched.
const AHEAD: usize = 16;

/// Receives what a pass finds, from several threads at once. Bit `i` of `searches` is the search from the `i`-th root of the pass; vertices
/// are given by their original numbers. Each search reports a vertex at most once. In deep graphs of small degrees (roads, grids) only one
/// thread reports at a time.
pub trait Visitor: Sync {
    /// Whether the pass calls [`Visitor::parent`].
    const PARENTS: bool = false;

    /// These searches have reached `vertex` at `level`. Two threads never call this for the same vertex at once.
    fn reached(&self, vertex: Vertex, level: u32, searches: u64);

    /// In these searches `parent` is a parent of `vertex`.
    fn parent(&self, vertex: Vertex, parent: Vertex, searches: u64) {
        let _ = (vertex, parent, searches);
    }

    /// `vertex` may soon be reached: a visitor that writes may prefetch the place that it will write to.
    fn soon(&self, vertex: Vertex) {
        let _ = vertex;
    }

    /// The deepest level that the visitor accepts: a pass that goes deeper ends with [`SearchError::TooDeep`]. Deeper
    /// levels may be reported before that error.
    fn deepest(&self) -> u32 {
        NONE - 1
    }
}

impl<F: Fn(Vertex, u32, u64) + Sync> Visitor for F {
    fn reached(&self, vertex: Vertex, level: u32, searches: u64) {
        self(vertex, level, searches);
    }
}

/// Receives what a pass finds, by internal vertices; the rules of [`Visitor`] apply.
trait Sink: Sync {
    const PARENTS: bool;

    /// Search number `search` begins at `root` (an original number), whose place in the layout is `place`.
    fn begins(&self, root: Vertex, place: Place, search: usize);

    /// These searches have reached `v` at `level`. Searches that began at a left-out leaf reach `v` one level deeper, and each search
    /// reaches the left-out leaves of `v` one level after `v`.
    fn reached(&self, v: Vertex, level: u32, searches: u64);

    /// In these searches `parent` is a parent of `v`.
    fn parent(&self, v: Vertex, parent: Vertex, searches: u64);

    /// `v` may soon be reached.
    fn soon(&self, v: Vertex);

    /// As [`Visitor::deepest`].
    fn deepest(&self) -> u32;

    /// Vertices reached from now on are at `level`.
    fn next_level(&mut self, team: &Team, level: u32);
}

/// The searches from these roots that are one level late, since their root is a leaf that the layout leaves out.
fn late(layout: &Layout, roots: &[Vertex]) -> u64 {
    let is_late = |&(_, &root): &(usize, &Vertex)| matches!(layout.place(root), Place::LeafOf(_));
    roots.iter().enumerate().filter(is_late).fold(0, |bits, (search, _)| bits | 1 << search)
}

/// Reports what a pass finds to a visitor.
struct VisitorSink<'a, V> {
    layout: &'a Layout,
    visitor: &'a V,
    roots: &'a [Vertex],
    late: u64,
}

impl<V: Visitor> VisitorSink<'_, V> {
    /// Reports that these searches have reached `v` and, one level deeper, its leaves.
    fn tell(&self, v: Vertex, level: u32, searches: u64) {
        let name = self.layout.to_original(v);
        self.visitor.reached(name, level, searches);
        for &leaf in self.layout.leaves().of_host(v) {
            let mut reached = searches;
            each_bit(searches & self.late, |search| {
                if self.roots[search] == leaf {
                    reached &= !(1 << search);
                }
            });
            if reached != 0 {
                self.visitor.reached(leaf, level + 1, reached);
                if V::PARENTS {
                    self.visitor.parent(leaf, name, reached);
                }
            }
        }
    }
}

impl<V: Visitor> Sink for VisitorSink<'_, V> {
    const PARENTS: bool = V::PARENTS;

    fn begins(&self, root: Vertex, place: Place, search: usize) {
        let tell = |vertex: Vertex, level: u32| {
            self.visitor.reached(vertex, level, 1 << search);
            if V::PARENTS {
                self.visitor.parent(vertex, root, 1 << search);
            }
        };
        match place {
            Place::Searched(internal) => {
                self.tell(internal, 0, 1 << search);
                if V::PARENTS {
                    self.visitor.parent(root, root, 1 << search);
                }
            }
            Place::LeafOf(host) => {
                tell(root, 0);
                self.tell(host, 1, 1 << search);
                if V::PARENTS {
                    self.visitor.parent(self.layout.to_original(host), root, 1 << search);
                }
            }
            Place::Paired(other) => {
                tell(root, 0);
                tell(other, 1);
            }
            Place::Alone => tell(root, 0),
        }
    }

    #[inline]
    fn reached(&self, v: Vertex, level: u32, searches: u64) {
        for (level, searches) in [(level, searches & !self.late), (level + 1, searches & self.late)] {
            if searches != 0 {
                self.tell(v, level, searches);
            }
        }
    }

    #[inline]
    fn parent(&self, v: Vertex, parent: Vertex, searches: u64) {
        self.visitor.parent(self.layout.to_original(v), self.layout.to_original(parent), searches);
    }

    #[inline]
    fn soon(&self, v: Vertex) {
        self.visitor.soon(self.layout.to_original(v));
    }

    fn deepest(&self) -> u32 {
        self.visitor.deepest()
    }

    fn next_level(&mut self, _: &Team, _: u32) {}
}

#[inline]
fn each_bit(mut bits: u64, mut visit: impl FnMut(usize)) {
    while bits != 0 {
        visit(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

/// The result of all passes over the roots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ManyOutcome {
    /// Vertices reached, summed over the roots.
    pub reached: u64,
    /// Levels of the deepest tree (1: a root alone, 0: no roots).
    pub levels: u32,
    /// Time from the call to its end.
    pub elapsed: Duration,
}

/// Searches one layout from many roots at once, again and again, without allocating. Borrows the layout, or shares it (`Arc<Layout>`).
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
/// use socbfs::{BuildOptions, Layout, graph::{EdgeList, Listing}};
/// use socbfs_algo::ManySearch;
///
/// let path = (0..9).map(|v| [v, v + 1]).collect();
/// let layout = Layout::build(&EdgeList::new(10, path, Listing::Once)?, &BuildOptions::default())?;
/// let mut searches = ManySearch::new(&layout, 2, &[])?;
/// // The sum of the distances from each root, as for closeness, without an array of levels.
/// let roots = [0, 4, 9];
/// let sums = [(); 3].map(|()| AtomicU64::new(0));
/// let add = |_vertex: u32, level: u32, searches: u64| {
///     for (_, sum) in sums.iter().enumerate().filter(|(search, _)| searches >> search & 1 == 1) {
///         sum.fetch_add(level.into(), Relaxed);
///     }
/// };
/// let outcome = searches.run(&roots, &add)?;
/// assert_eq!((outcome.reached, outcome.levels), (30, 10));
/// assert_eq!(sums.map(AtomicU64::into_inner), [45, 25, 45]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ManySearch<L> {
    layout: L,
    team: Team,
    /// Empty if roots are searched one after another.
    words: Words,
    /// Levels as bits: [`PLANES`] words for each vertex (see `level_rows`). Empty as well then.
    planes: Slab<u64>,
    /// For each thread, if roots are searched one after another.
    alone: Vec<Mutex<Alone>>,
    stopper: Stopper,
    deadline: Option<Instant>,
}

/// The arrays of a pass.
#[derive(Debug)]
struct Words {
    /// By vertex, the searches that have seen it.
    seen: Slab<u64>,
    /// By vertex, the searches in whose frontier it is.
    frontier: Slab<u64>,
    /// By vertex, the searches in whose next frontier it is.
    next: Slab<u64>,
    /// The vertices of the joint frontier, if they have been queued.
    queue: Slab<Vertex>,
    next_queue: Slab<Vertex>,
}

/// Conditions that end a pass early.
struct Limits<'a> {
    stopper: &'a Stopper,
    deadline: Option<Instant>,
    /// Whether a thread has found them reached: another one may reset the stopper at any time.
    found: AtomicBool,
}

impl<'a> Limits<'a> {
    fn new(stopper: &'a Stopper, deadline: Option<Instant>) -> Self {
        Self { stopper, deadline, found: AtomicBool::new(false) }
    }

    /// Threads ask this also within a level, which may take seconds. What they then leave undone is never seen, since the pass ends.
    fn are_reached(&self) -> bool {
        // Relaxed: the flag orders no other data, and the end of the team's work makes it visible to the caller.
        let are_reached =
            self.found.load(Relaxed) || self.stopper.is_stopped() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if are_reached {
            self.found.store(true, Relaxed);
        }
        are_reached
    }
}

/// Counts of the joint frontier.
#[derive(Debug)]
struct Joint {
    vertices: AtomicUsize,
    /// Arcs that leave the joint frontier.
    arcs: AtomicU64,
    /// Vertices found, summed over the searches.
    found: AtomicU64,
    /// Arcs that leave the frontier of each search, estimated.
    of_search: [AtomicU64; ROOTS],
    /// Number of levels (0 to 2) by which vertices found with the frontier lie deeper than its level: searches from left-out leaves are one
    /// level late, and left-out leaves lie one level below their hosts.
    deeper: AtomicU32,
}

impl Default for Joint {
    fn default() -> Self {
        Self {
            vertices: AtomicUsize::new(0),
            arcs: AtomicU64::new(0),
            found: AtomicU64::new(0),
            of_search: [const { AtomicU64::new(0) }; ROOTS],
            deeper: AtomicU32::new(0),
        }
    }
}

impl Joint {
    /// The searches that go top-down, and the others that have a frontier. `explored`: the arcs of each search's earlier frontiers.
    fn split(&self, all_arcs: u64, explored: &[u64; ROOTS]) -> (u64, u64) {
        if self.arcs.load(Relaxed) < all_arcs / FEW_QUEUED {
            return (u64::MAX, 0);
        }
        let (mut light, mut heavy) = (0, 0);
        for (search, (arcs, explored)) in self.of_search.iter().zip(explored).enumerate() {
            let arcs = arcs.load(Relaxed);
            let unexplored = all_arcs.saturating_sub(explored + arcs);
            let is_light = arcs == 0 || (arcs < all_arcs / FEW_ARCS && arcs < unexplored);
            *if is_light { &mut light } else { &mut heavy } |= 1 << search;
        }
        (light, heavy)
    }
}

/// One thread's part of a [`Joint`].
struct ThreadCounts {
    vertices: usize,
    arcs: u64,
    found: u64,
    of_search: [u64; ROOTS],
    deeper: u32,
}

impl ThreadCounts {
    fn new() -> Self {
        Self { vertices: 0, arcs: 0, found: 0, of_search: [0; ROOTS], deeper: 0 }
    }

    #[inline]
    fn add(&mut self, layout: &Layout, v: usize, searches: u64, late: u64) {
        let degree = layout.csr().degree(v as Vertex);
        let has_leaf = u32::from(layout.leaves().is_host(v as Vertex));
        self.deeper = self.deeper.max(has_leaf + u32::from(searches & late != 0));
        self.vertices += 1;
        self.arcs += u64::from(degree);
        self.found += u64::from(searches.count_ones());
        let weight = if v < COUNTED || degree >= COUNTED_ARCS { 1 } else { SAMPLED };
        if v % weight == 0 {
            each_bit(searches, |search| self.of_search[search] += u64::from(degree) * weight as u64);
        }
    }

    fn add_to(&self, joint: &Joint) {
        // Relaxed: the counters order no other data, and the end of the team's work makes them visible to the reader.
        joint.vertices.fetch_add(self.vertices, Relaxed);
        joint.arcs.fetch_add(self.arcs, Relaxed);
        joint.found.fetch_add(self.found, Relaxed);
        joint.deeper.fetch_max(self.deeper, Relaxed);
        for (all, &part) in joint.of_search.iter().zip(&self.of_search) {
            if part > 0 {
                all.fetch_add(part, Relaxed);
            }
        }
    }
}

/// A queue that several threads fill, each through a buffer of its own.
struct Filling<'a> {
    queue: Shared<Vertex>,
    len: &'a AtomicUsize,
    capacity: usize,
}

struct Buffer<'a> {
    filling: &'a Filling<'a>,
    vertices: [Vertex; BUFFER],
    len: usize,
}

impl<'a> Buffer<'a> {
    fn new(filling: &'a Filling<'a>) -> Self {
        Self { filling, vertices: [0; BUFFER], len: 0 }
    }

    #[inline]
    fn push(&mut self, vertex: Vertex) {
        self.vertices[self.len] = vertex;
        self.len += 1;
        if self.len == BUFFER {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let at = self.filling.len.fetch_add(self.len, Relaxed);
        assert!(at + self.len <= self.filling.capacity, "a vertex was queued twice");
        // SAFETY: the places `at..at + len` lie in the queue, and were handed out to this thread alone.
        unsafe { std::ptr::copy_nonoverlapping(self.vertices.as_ptr(), self.filling.queue.get().add(at), self.len) };
        self.len = 0;
    }
}

impl<L: Borrow<Layout>> ManySearch<L> {
    /// Allocates everything that searches need, and starts `threads` threads, bound to `cpus` if any are given (0: one for each of `cpus`;
    /// if that is empty, one for every CPU that the process may run on).
    ///
    /// # Errors
    /// [`SearchError`] if memory or threads are refused.
    pub fn new(layout: L, threads: usize, cpus: &[usize]) -> Result<Self, SearchError> {
        let team = Team::new(threads_of(threads, cpus), cpus).map_err(SearchError::Threads)?;
        let borrowed = layout.borrow();
        // Pages are provided when they are written, so a lack of memory would end the program in the middle of a search.
        let check = |bytes: u64| memory::check_available(bytes, "many searches at once").map_err(EngineError::from);
        let fits_alone = check(alone::BYTES.saturating_mul(borrowed.padded() as u64).saturating_mul(team.size() as u64)).is_ok();
        let singles = if fits_alone && alone::is_deep(borrowed).map_err(EngineError::from)? { team.size() } else { 0 };
        let vertices = if singles > 0 { 0 } else { borrowed.csr().vertices() };
        check(BYTES.saturating_mul(vertices as u64))?;
        let words = || Slab::zeroed(vertices, "bits of many searches").map_err(EngineError::from);
        let queue = || Slab::zeroed(vertices, "frontier queue").map_err(EngineError::from);
        let (seen, frontier, next) = (words()?, words()?, words()?);
        let (queue, next_queue) = (queue()?, queue()?);
        let planes = Slab::zeroed(vertices.saturating_mul(PLANES), "levels of many searches").map_err(EngineError::from)?;
        let single = |_| Alone::new(borrowed).map(Mutex::new).map_err(EngineError::from);
        let alone = (0..singles).map(single).collect::<Result<_, _>>()?;
        let words = Words { seen, frontier, next, queue, next_queue };
        Ok(Self { layout, team, words, planes, alone, stopper: Stopper::default(), deadline: None })
    }

    /// A handle with which any thread can stop searches.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Replaces the handle: from now on `stopper` stops searches.
    pub fn set_stopper(&mut self, stopper: Stopper) {
        self.stopper = stopper;
    }

    /// Sets a deadline (`None`: none), at which a search stops.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Number of threads in use.
    pub fn threads(&self) -> usize {
        self.team.size()
    }

    /// The layout that is searched.
    pub fn layout(&self) -> &Layout {
        self.layout.borrow()
    }

    /// Searches from up to [`ROOTS`] roots (original numbers; a repeated root is a search of its own), and reports to `visitor` what is
    /// found.
    ///
    /// # Errors
    /// [`SearchError::RootOutOfRange`], [`SearchError::Length`] if there are more roots, [`SearchError::Stopped`], [`SearchError::TooDeep`]
    /// (see [`Visitor::deepest`]).
    pub fn run<V: Visitor>(&mut self, roots: &[Vertex], visitor: &V) -> Result<ManyOutcome, SearchError> {
        let begin = Instant::now();
        let Self { layout, team, words, alone, stopper, deadline, .. } = self;
        let (layout, limits) = (borrow_once(layout, words, alone), Limits::new(stopper, *deadline));
        check_roots(layout, roots)?;
        if roots.len() > ROOTS {
            return Err(SearchError::Length { what: "roots of one pass", given: roots.len(), wanted: ROOTS });
        }
        // Two threads may have found the same vertex alone.
        let telling = Mutex::new(());
        let outcome = if alone.is_empty() {
            words.pass(layout, team, roots, &mut VisitorSink { layout, visitor, roots, late: late(layout, roots) }, &limits)
        } else {
            alone::pass(alone, (layout, team, &limits), roots, visitor.deepest(), &|first, trees| {
                let _one = telling.lock().unwrap_or_else(PoisonError::into_inner);
                for (search, tree) in trees.iter().enumerate() {
                    for v in (0..layout.vertices()).filter(|&v| tree.levels[v] != NONE) {
                        visitor.reached(v as Vertex, tree.levels[v], 1 << (first + search));
                        if V::PARENTS {
                            visitor.parent(v as Vertex, tree.parents[v], 1 << (first + search));
                        }
                    }
                }
            })
        };
        Ok(ManyOutcome { elapsed: begin.elapsed(), ..outcome? })
    }

    /// Searches from any number of roots, and writes the level of every vertex: that of vertex `v` in the search from `roots[i]` into
    /// `levels[v * roots.len() + i]`, so that the levels of a vertex lie together. Bytes are fastest, as long as no level is deeper than
    /// 254.
    ///
    /// # Errors
    /// As [`ManySearch::run`]; [`SearchError::Length`] if `levels` does not have one entry per vertex and root; [`SearchError::TooDeep`].
    ///
    /// ```
    /// # use socbfs::{BuildOptions, Layout, graph::{EdgeList, Listing}};
    /// # use socbfs_algo::ManySearch;
    /// # let layout = Layout::build(&EdgeList::new(4, vec![[0, 1], [1, 2]], Listing::Once)?, &BuildOptions::default())?;
    /// # let mut searches = ManySearch::new(&layout, 1, &[])?;
    /// // The path 0 - 1 - 2, and vertex 3 without an edge: a row for each vertex, a column for each root.
    /// let mut levels = [0_u8; 4 * 2];
    /// searches.levels_into(&[0, 2], &mut levels)?;
    /// assert_eq!(levels, [0, 2, 1, 1, 2, 0, u8::MAX, u8::MAX]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn levels_into<N: LevelNumber>(&mut self, roots: &[Vertex], levels: &mut [N]) -> Result<ManyOutcome, SearchError> {
        self.trees_into(roots, levels, &mut [])
    }

    /// As [`ManySearch::levels_into`], and writes the parents into `parents` in the same order (the parent of a root is the root itself;
    /// [`NONE`]: not reached). An empty `parents` is not written.
    ///
    /// # Errors
    /// As [`ManySearch::levels_into`], for both arrays.
    pub fn trees_into<N: LevelNumber>(
        &mut self,
        roots: &[Vertex],
        levels: &mut [N],
        parents: &mut [Vertex],
    ) -> Result<ManyOutcome, SearchError> {
        let begin = Instant::now();
        let Self { layout, team, words, planes, alone, stopper, deadline } = self;
        let (layout, limits) = (borrow_once(layout, words, alone), Limits::new(stopper, *deadline));
        check_roots(layout, roots)?;
        let wanted = layout.vertices().saturating_mul(roots.len());
        let lengths = [("levels", levels.len(), false), ("parents", parents.len(), parents.is_empty())];
        for (what, given, is_optional) in lengths {
            if given != wanted && !is_optional {
                return Err(SearchError::Length { what, given, wanted });
            }
        }
        let (with_parents, in_planes) = (!parents.is_empty(), roots.len() >= level_rows::ENOUGH);
        if !alone.is_empty() {
            let (levels, parents) = (Shared::new(levels), Shared::new(parents));
            let outcome = alone::pass(alone, (layout, team, &limits), roots, N::DEEPEST, &|first, trees| {
                for v in 0..layout.vertices() {
                    for (search, tree) in trees.iter().enumerate() {
                        let entry = v * roots.len() + first + search;
                        // SAFETY: the arrays have an entry for every vertex and root (checked above), and each root is one thread's.
                        unsafe {
                            *levels.get().add(entry) = N::of_code(tree.levels[v].wrapping_add(1));
                            if with_parents {
                                *parents.get().add(entry) = tree.parents[v];
                            }
                        }
                    }
                }
            })?;
            return Ok(ManyOutcome { elapsed: begin.elapsed(), ..outcome });
        }
        if with_parents {
            fill(team, parents, NONE);
        }
        if !in_planes {
            fill(team, levels, N::NONE);
        }
        let mut all = ManyOutcome::default();
        for (pass, roots_of_pass) in roots.chunks(ROOTS).enumerate() {
            let rows = Rows { stride: roots.len(), first: pass * ROOTS, columns: roots_of_pass.len() };
            if in_planes {
                fill(team, planes, 0);
            }
            let late = late(layout, roots_of_pass);
            let planes = in_planes.then(|| Shared::new(planes));
            let (levels, parents) = (Shared::new(levels), Shared::new(parents));
            let one = if with_parents {
                Written::<N, true> { layout, roots: roots_of_pass, rows, levels, parents, planes, late }.pass(words, team, &limits)?
            } else {
                Written::<N, false> { layout, roots: roots_of_pass, rows, levels, parents, planes, late }.pass(words, team, &limits)?
            };
            all.reached += one.reached;
            all.levels = all.levels.max(one.levels);
        }
        Ok(ManyOutcome { elapsed: begin.elapsed(), ..all })
    }
}

/// The layout that a whole call searches. It is borrowed once, since `Borrow` may be implemented by safe code that returns another layout
/// each time.
///
/// # Panics
/// If the arrays of the search are not made for the layout.
fn borrow_once<'a, L: Borrow<Layout>>(layout: &'a L, words: &Words, alone: &[Mutex<Alone>]) -> &'a Layout {
    let layout = layout.borrow();
    let fits = match alone {
        [] => layout.csr().vertices() == words.seen.len(),
        [one, ..] => one.lock().unwrap_or_else(PoisonError::into_inner).fits(layout),
    };
    assert!(fits, "the layout of a search became another one");
    layout
}

fn check_roots(layout: &Layout, roots: &[Vertex]) -> Result<(), SearchError> {
    let vertices = layout.vertices();
    let strange = roots.iter().find(|&&root| root as usize >= vertices);
    strange.map_or(Ok(()), |&root| Err(SearchError::RootOutOfRange { root, vertices }))
}

impl Words {
    /// Runs one pass; the roots are in range and at most [`ROOTS`].
    fn pass<S: Sink>(
        &mut self,
        layout: &Layout,
        team: &Team,
        roots: &[Vertex],
        sink: &mut S,
        limits: &Limits<'_>,
    ) -> Result<ManyOutcome, SearchError> {
        let Self { seen, frontier, next, queue, next_queue } = self;
        let csr = layout.csr();
        for words in [&mut *seen, frontier, next] {
            fill(team, words, 0);
        }
        let mut joint = Joint::default();
        let (late, mut levels) = (late(layout, roots), u32::from(!roots.is_empty()));
        let mut queued = 0;
        for (search, &root) in roots.iter().enumerate() {
            let (place, bit) = (layout.place(root), 1 << search);
            sink.begins(root, place, search);
            *joint.found.get_mut() += 1;
            let internal = match place {
                Place::Searched(internal) => {
                    levels = levels.max(1 + u32::from(layout.leaves().index_of(internal).is_some()));
                    internal
                }
                Place::LeafOf(host) => {
                    levels = levels.max(2 + u32::from(layout.leaves().of_host(host).len() > 1));
                    host
                }
                Place::Paired(_) => {
                    *joint.found.get_mut() += 1;
                    levels = levels.max(2);
                    NONE
                }
                Place::Alone => NONE,
            };
            if internal != NONE {
                let word = &mut frontier[internal as usize];
                let degree = u64::from(csr.degree(internal));
                if *word == 0 {
                    queue[queued] = internal;
                    queued += 1;
                    *joint.arcs.get_mut() += degree;
                }
                *word |= bit;
                *joint.of_search[search].get_mut() = degree;
                seen[internal as usize] |= bit;
            }
        }
        *joint.vertices.get_mut() = queued;
        let mut reached = std::mem::take(joint.found.get_mut());
        let (mut level, mut is_queue, mut next_is_clear) = (0, true, true);
        let mut explored = [0; ROOTS];
        // Also if no root has anything to search.
        if let (true, Some(&first)) = (limits.are_reached(), roots.first()) {
            return Err(SearchError::Stopped(first));
        }
        loop {
            // Also before the first level, which roots without anything to search do not have.
            if levels > sink.deepest().saturating_add(1) {
                return Err(SearchError::TooDeep { deepest: sink.deepest() });
            }
            let (vertices, arcs) = (*joint.vertices.get_mut(), *joint.arcs.get_mut());
            // A level that was left undone may have found nothing.
            if level > 0 && limits.are_reached() {
                return Err(SearchError::Stopped(roots[0]));
            }
            if vertices == 0 {
                break;
            }
            level += 1;
            sink.next_level(team, level);
            let (light, heavy) = joint.split(csr.arcs() as u64, &explored);
            for (explored, arcs) in explored.iter_mut().zip(&mut joint.of_search) {
                *explored += *arcs.get_mut();
            }
            joint = Joint::default();
            let alone = arcs < SHARED_ARCS;
            if !next_is_clear {
                fill(team, next, 0);
            }
            let queued = if is_queue { vertices } else { collect(team, (&*frontier, light), queue) };
            // One thread alone needs no lists sorted by number. (In the order of the input, where levels are small, `top_down` is used.)
            let is_pushed = layout.is_by_degree() || layout.is_mapped() && team.size() == 1;
            let stays_queue = heavy == 0 && arcs < csr.arcs() as u64 / FEW_QUEUED;
            let lists = (layout, limits);
            let found = if stays_queue {
                top_down::<S, true>(team, alone, lists, seen, (&*frontier, light, &mut *next), (&queue[..queued], &mut *next_queue), sink)
            } else if S::PARENTS || !is_pushed {
                top_down::<S, false>(team, alone, lists, seen, (&*frontier, light, &mut *next), (&queue[..queued], &mut *next_queue), sink)
            } else {
                push(team, lists, (&*frontier, light, &mut *next), &queue[..queued]);
                0
            };
            (is_queue, next_is_clear) = (stays_queue, stays_queue);
            if stays_queue {
                forget(team, alone, frontier, &queue[..queued]);
                std::mem::swap(frontier, next);
                std::mem::swap(queue, next_queue);
                mark_seen(team, alone, layout, seen, (frontier, &queue[..found]), (sink, level, late), &joint);
            } else {
                bottom_up(team, lists, seen, (&*frontier, heavy, &mut *next), (sink, level, late), &joint);
                std::mem::swap(frontier, next);
            }
            let (found, deeper) = (*joint.found.get_mut(), *joint.deeper.get_mut());
            if found > 0 {
                levels = levels.max(level + deeper + 1);
            }
            reached += found;
        }
        let leaves = layout.leaves();
        let hosts = leaves.hosts().iter().enumerate();
        reached += hosts.map(|(index, &host)| u64::from(seen[host as usize].count_ones()) * leaves.of(index).len() as u64).sum::<u64>();
        Ok(ManyOutcome { reached, levels, ..ManyOutcome::default() })
    }
}

/// Sets all entries to `value`.
fn fill<T: Pod>(team: &Team, entries: &mut [T], value: T) {
    let (len, grain) = (entries.len(), (2 << 20) / size_of::<T>());
    let entries = Shared::new(entries);
    share(team, len, grain, len < grain / 4, &|_, range| {
        // SAFETY: ranges are handed out once, and lie inside the entries.
        unsafe { std::slice::from_raw_parts_mut(entries.get().add(range.start), range.len()) }.fill(value);
    });
}

/// Makes a queue of the vertices in the frontiers of these searches. Returns its length.
fn collect(team: &Team, (frontier, searches): (&[u64], u64), queue: &mut [Vertex]) -> usize {
    let len = AtomicUsize::new(0);
    let filling = Filling { capacity: queue.len(), queue: Shared::new(queue), len: &len };
    let all = if searches == 0 { 0 } else { frontier.len() };
    share(team, all, VERTICES, all < 4 * VERTICES, &|_, range| {
        let mut buffer = Buffer::new(&filling);
        for v in range {
            if frontier[v] & searches != 0 {
                buffer.push(v as Vertex);
            }
        }
        buffer.flush();
    });
    len.into_inner()
}

/// Pushes the searches `light` of the queue's vertices to their neighbours. Afterwards `next` has the searches that are new at a vertex,
/// and the next queue (if `QUEUE`) has the vertices with new searches. Returns the length of the next queue. Without a queue and without
/// parents, `next` may have searches that reached the vertex at an earlier level: `bottom_up` removes these.
fn top_down<S: Sink, const QUEUE: bool>(
    team: &Team,
    alone: bool,
    (layout, limits): (&Layout, &Limits<'_>),
    seen: &[u64],
    (frontier, light, next): (&[u64], u64, &mut [u64]),
    (queue, next_queue): (&[Vertex], &mut [Vertex]),
    sink: &S,
) -> usize {
    let len = AtomicUsize::new(0);
    let filling = Filling { capacity: next_queue.len(), queue: Shared::new(next_queue), len: &len };
    let next = as_wide_atomics(next);
    share(team, queue.len(), QUEUED, alone, &|_, range| {
        if limits.are_reached() {
            return;
        }
        let mut buffer = Buffer::new(&filling);
        for &u in &queue[range] {
            let searches = frontier[u as usize] & light;
            if searches == 0 {
                continue;
            }
            let list = layout.csr().neighbours(u);
            for (at, &v) in list.iter().enumerate() {
                let checks_seen = QUEUE || S::PARENTS;
                if let Some(&ahead) = list.get(at + AHEAD) {
                    if checks_seen {
                        prefetch(&raw const seen[ahead as usize]);
                    }
                    prefetch(next[ahead as usize].as_ptr());
                }
                let new = if checks_seen { searches & !seen[v as usize] } else { searches };
                // A plain load first: usually another vertex has already pushed all of these searches.
                if new & !next[v as usize].load(Relaxed) == 0 {
                    continue;
                }
                // Relaxed: the thread that sets a bit first has it, and the end of the team's work orders the words for the next step.
                let before = next[v as usize].fetch_or(new, Relaxed);
                if QUEUE && before == 0 {
                    buffer.push(v);
                }
                if S::PARENTS && new & !before != 0 {
                    sink.parent(v, u, new & !before);
                }
            }
        }
        buffer.flush();
    });
    len.into_inner()
}

/// As [`top_down`] without a queue and without parents, if lists are sorted by vertex number or there is one thread: every thread goes
/// through the whole queue, and writes the words of its own range of vertices. Threads therefore share no word and need no atomic access.
/// No word is tested before it is written, since that branch would be mispredicted. (64 roots of Kronecker 20, level 2, one thread: 6 ms
/// instead of 10.)
fn push(team: &Team, (layout, limits): (&Layout, &Limits<'_>), (frontier, light, next): (&[u64], u64, &mut [u64]), queue: &[Vertex]) {
    let (vertices, ranges) = (next.len(), team.size());
    // The ranges receive about the same number of arcs.
    let offsets = &layout.incoming().offsets;
    let begin = |range: usize| {
        let before = (layout.csr().arcs() as u64 * range as u64 / ranges as u64) as u32;
        if range == ranges { vertices } else { offsets.partition_point(|&offset| offset < before).min(vertices) }
    };
    let next = Shared::new(next);
    share(team, ranges, 1, queue.is_empty(), &|_, handed_out| {
        for range in handed_out {
            let (first, end) = (begin(range), begin(range + 1));
            // SAFETY: ranges do not overlap, lie in the slice, and are handed out once.
            let own = unsafe { std::slice::from_raw_parts_mut(next.get().add(first), end - first) };
            for (at, &u) in queue.iter().enumerate() {
                let searches = frontier[u as usize] & light;
                if at % QUEUED == 0 && limits.are_reached() {
                    return;
                }
                if searches == 0 {
                    continue;
                }
                let mut list = layout.csr().neighbours(u);
                if ranges > 1 {
                    list = &list[..list.partition_point(|&v| (v as usize) < end)];
                    list = &list[list.partition_point(|&v| (v as usize) < first)..];
                }
                for &v in list {
                    own[v as usize - first] |= searches;
                }
            }
        }
    });
}

/// Clears the frontier, all of whose vertices are in the queue.
fn forget(team: &Team, alone: bool, frontier: &mut [u64], queue: &[Vertex]) {
    let frontier = Shared::new(frontier);
    share(team, queue.len(), VERTICES, alone, &|_, range| {
        for &u in &queue[range] {
            // SAFETY: queues hold vertices, each once.
            unsafe { *frontier.get().add(u as usize) = 0 };
        }
    });
}

/// After [`top_down`] with a queue: adds the new searches to `seen`, and reports them.
fn mark_seen<S: Sink>(
    team: &Team,
    alone: bool,
    layout: &Layout,
    seen: &mut [u64],
    (frontier, queue): (&[u64], &[Vertex]),
    (sink, level, late): (&S, u32, u64),
    joint: &Joint,
) {
    let seen = Shared::new(seen);
    share(team, queue.len(), QUEUED, alone, &|_, range| {
        let mut part = ThreadCounts::new();
        for &v in &queue[range] {
            let searches = frontier[v as usize];
            // SAFETY: queues hold vertices, each once.
            unsafe { *seen.get().add(v as usize) |= searches };
            sink.reached(v, level, searches);
            part.add(layout, v as usize, searches, late);
        }
        part.add_to(joint);
    });
}

/// Every vertex that not all of the searches `heavy` have reached looks for the missing ones at its neighbours. Writes the new searches
/// into `next` and `seen`; those that [`top_down`] left in `next` are included if they are new.
fn bottom_up<S: Sink>(
    team: &Team,
    (layout, limits): (&Layout, &Limits<'_>),
    seen: &mut [u64],
    (frontier, heavy, next): (&[u64], u64, &mut [u64]),
    (sink, level, late): (&S, u32, u64),
    joint: &Joint,
) {
    let (vertices, lists) = (next.len(), layout.incoming());
    assert_eq!((frontier.len(), lists.vertices()), (vertices, vertices), "a word for each vertex");
    let (seen, next) = (Shared::new(seen), Shared::new(next));
    share(team, vertices, VERTICES, vertices < 4 * VERTICES, &|_, range| {
        if limits.are_reached() {
            return;
        }
        let mut part = ThreadCounts::new();
        // SAFETY: ranges are handed out once, and lie inside both slices.
        let (seen, next) = unsafe {
            let own = |words: Shared<u64>| std::slice::from_raw_parts_mut(words.get().add(range.start), range.len());
            (own(seen), own(next))
        };
        for at in 0..range.len() {
            let v = (range.start + at) as Vertex;
            // Prefetches what the visitor will write, since its arrays may be in another order.
            if let Some(seen) = seen.get(at + AHEAD) {
                if heavy & !seen != 0 {
                    sink.soon(v + AHEAD as Vertex);
                }
            }
            let wanted = heavy & !seen[at];
            let mut new = 0;
            if wanted != 0 {
                for &u in lists.neighbours(v) {
                    // SAFETY: neighbours are vertices, each of which has a word (asserted above).
                    let searches = unsafe { frontier.get_unchecked(u as usize) } & wanted;
                    if S::PARENTS && searches & !new != 0 {
                        sink.parent(v, u, searches & !new);
                    }
                    new |= searches;
                    if new == wanted {
                        break;
                    }
                }
            }
            let reached = next[at];
            new |= reached & !seen[at];
            if new != reached {
                next[at] = new;
            }
            if new != 0 {
                seen[at] |= new;
                sink.reached(v, level, new);
                part.add(layout, v as usize, new, late);
            }
        }
        part.add_to(joint);
    });
}
