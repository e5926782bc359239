//! Many roots in one pass: bit-parallel multi-source search (Then et al., "The More the Merrier", VLDB 2014).
//!
//! Each vertex has a bit for each search that has seen it, and one for each search whose frontier it is in: one word for up to 64 roots,
//! four for up to 256. A neighbour that many searches meet at the same level is looked at once for all of them, and in graphs of small
//! diameter nearly all searches meet. (A look takes a line of the caches either way: 256 roots take 1.5 to 3.6 times as long as 64.) While
//! the joint frontier is small, all searches go top-down. After that every level is split by search. Searches whose frontiers have few
//! arcs, and fewer than are still unexplored, go top-down. The others go bottom-up, where a vertex stops looking when all of these searches
//! have reached it. (One search that lags behind would make every vertex look at all of its neighbours.)
//!
//! A leaf that the layout leaves out is reached one level after its only neighbour. A search from such a leaf begins at that neighbour, one
//! level late: the sink counts its levels from 1.
//!
//! Deep graphs of small degrees are searched from one root after another (`alone`), unless memory is short.
//!
//! Space: 33 bytes per vertex, and 32 more for written levels; 105 and 128 if there is memory for it, from the first call on that has more
//! than 128 roots. Searches report what they find to a [`Visitor`], or write it into the caller's arrays of levels and parents
//! (`level_rows`).

mod alone;
mod bits;
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
    memory::{self, Pod, Shared, Slab, as_atomics, as_byte_atomics, as_wide_atomics, prefetch},
    search::{SearchError, Stopper, threads_of},
    threads::{Team, share},
};

pub use level_rows::LevelNumber;

use alone::Alone;
use bits::Bits;
use level_rows::{PLANES, Rows};

/// Roots of [`ManySearch::run`], at most: a bit of a word for each.
pub const ROOTS: usize = 64;
/// Words of each vertex in a pass for more roots, which [`ManySearch::levels_into`] makes where memory allows. (Eight take 0.9 to 1.3 times
/// as long for each root.)
const WIDE: usize = 4;
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
trait Sink<const W: usize>: Sync {
    const PARENTS: bool;

    /// Search number `search` begins at `root` (an original number), whose place in the layout is `place`.
    fn begins(&self, root: Vertex, place: Place, search: usize);

    /// These searches have reached `v` at `level`. Searches that began at a left-out leaf reach `v` one level deeper, and each search
    /// reaches the left-out leaves of `v` one level after `v`.
    fn reached(&self, v: Vertex, level: u32, searches: Bits<W>);

    /// In these searches `parent` is a parent of `v`.
    fn parent(&self, v: Vertex, parent: Vertex, searches: Bits<W>);

    /// `v` may soon be reached.
    fn soon(&self, v: Vertex);

    /// As [`Visitor::deepest`].
    fn deepest(&self) -> u32;

    /// Vertices reached from now on are at `level`.
    fn next_level(&mut self, team: &Team, level: u32);
}

/// The searches from these roots that are one level late, since their root is a leaf that the layout leaves out.
fn late<const W: usize>(layout: &Layout, roots: &[Vertex]) -> Bits<W> {
    let mut late = Bits::NONE;
    for (search, _) in roots.iter().enumerate().filter(|&(_, &root)| matches!(layout.place(root), Place::LeafOf(_))) {
        late |= Bits::one(search);
    }
    late
}

/// Reports what a pass finds to a visitor.
struct VisitorSink<'a, V> {
    layout: &'a Layout,
    visitor: &'a V,
    roots: &'a [Vertex],
    late: Bits<1>,
}

impl<V: Visitor> VisitorSink<'_, V> {
    /// Reports that these searches have reached `v` and, one level deeper, its leaves.
    fn tell(&self, v: Vertex, level: u32, searches: u64) {
        let name = self.layout.to_original(v);
        self.visitor.reached(name, level, searches);
        for &leaf in self.layout.leaves().of_host(v) {
            let mut reached = searches;
            (Bits([searches]) & self.late).each(|search| {
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

impl<V: Visitor> Sink<1> for VisitorSink<'_, V> {
    const PARENTS: bool = V::PARENTS;

    fn begins(&self, root: Vertex, place: Place, search: usize) {
        let tell = |vertex: Vertex, level: u32| {
            self.visitor.reached(vertex, level, 1 << search);
            if V::PARENTS {
                self.visitor.parent(vertex, root, 1 << search);
            }
        };
        if !matches!(place, Place::Searched(_)) {
            tell(root, 0);
        }
        match place {
            Place::Searched(internal) | Place::LeafOf(internal) => {
                self.reached(internal, 0, Bits::one(search));
                if V::PARENTS {
                    self.visitor.parent(self.layout.to_original(internal), root, 1 << search);
                }
            }
            Place::Paired(other) => tell(other, 1),
            Place::Alone => {}
        }
    }

    #[inline]
    fn reached(&self, v: Vertex, level: u32, searches: Bits<1>) {
        for (level, Bits([searches])) in [(level, searches - self.late), (level + 1, searches & self.late)] {
            if searches != 0 {
                self.tell(v, level, searches);
            }
        }
    }

    #[inline]
    fn parent(&self, v: Vertex, parent: Vertex, searches: Bits<1>) {
        self.visitor.parent(self.layout.to_original(v), self.layout.to_original(parent), searches.0[0]);
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
    /// Levels as bits: [`PLANES`] words for each word of bits (see `level_rows`). Empty as well then.
    planes: Slab<u64>,
    /// For each thread, if roots are searched one after another.
    alone: Vec<Mutex<Alone>>,
    stopper: Stopper,
    deadline: Option<Instant>,
}

/// The arrays of a pass, each with one or [`WIDE`] words for a vertex.
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
    /// By vertex, 1 if it is in the next queue.
    is_queued: Slab<u8>,
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
struct Joint<const W: usize> {
    vertices: AtomicUsize,
    /// Arcs that leave the joint frontier.
    arcs: AtomicU64,
    /// Vertices found, summed over the searches.
    found: AtomicU64,
    /// Arcs that leave the frontier of each search, estimated.
    of_search: [[AtomicU64; ROOTS]; W],
    /// Number of levels (0 to 2) by which vertices found with the frontier lie deeper than its level: searches from left-out leaves are one
    /// level late, and left-out leaves lie one level below their hosts.
    deeper: AtomicU32,
}

impl<const W: usize> Default for Joint<W> {
    fn default() -> Self {
        Self {
            vertices: AtomicUsize::new(0),
            arcs: AtomicU64::new(0),
            found: AtomicU64::new(0),
            of_search: [const { [const { AtomicU64::new(0) }; ROOTS] }; W],
            deeper: AtomicU32::new(0),
        }
    }
}

impl<const W: usize> Joint<W> {
    /// The searches that go top-down, and the others that have a frontier. `explored`: the arcs of each search's earlier frontiers.
    fn split(&self, all_arcs: u64, explored: &[[u64; ROOTS]; W]) -> (Bits<W>, Bits<W>) {
        if self.arcs.load(Relaxed) < all_arcs / FEW_QUEUED {
            return (Bits::ALL, Bits::NONE);
        }
        let (mut light, mut heavy) = (Bits::NONE, Bits::NONE);
        for (search, (arcs, explored)) in self.of_search.as_flattened().iter().zip(explored.as_flattened()).enumerate() {
            let arcs = arcs.load(Relaxed);
            let unexplored = all_arcs.saturating_sub(explored + arcs);
            let is_light = arcs == 0 || (arcs < all_arcs / FEW_ARCS && arcs < unexplored);
            *if is_light { &mut light } else { &mut heavy } |= Bits::one(search);
        }
        (light, heavy)
    }
}

/// One thread's part of a [`Joint`].
struct ThreadCounts<const W: usize> {
    vertices: usize,
    arcs: u64,
    found: u64,
    of_search: [[u64; ROOTS]; W],
    deeper: u32,
}

impl<const W: usize> ThreadCounts<W> {
    fn new() -> Self {
        Self { vertices: 0, arcs: 0, found: 0, of_search: [[0; ROOTS]; W], deeper: 0 }
    }

    #[inline]
    fn add(&mut self, layout: &Layout, v: usize, searches: Bits<W>, late: Bits<W>) {
        let degree = layout.csr().degree(v as Vertex);
        let has_leaf = u32::from(layout.leaves().is_host(v as Vertex));
        self.deeper = self.deeper.max(has_leaf + u32::from(!(searches & late).is_empty()));
        self.vertices += 1;
        self.arcs += u64::from(degree);
        self.found += searches.count();
        let weight = if v < COUNTED || degree >= COUNTED_ARCS { 1 } else { SAMPLED };
        if v % weight == 0 {
            let arcs = u64::from(degree) * weight as u64;
            let of_search = self.of_search.as_flattened_mut();
            searches.each(|search| of_search[search] += arcs);
        }
    }

    fn add_to(&self, joint: &Joint<W>) {
        // Relaxed: the counters order no other data, and the end of the team's work makes them visible to the reader.
        joint.vertices.fetch_add(self.vertices, Relaxed);
        joint.arcs.fetch_add(self.arcs, Relaxed);
        joint.found.fetch_add(self.found, Relaxed);
        joint.deeper.fetch_max(self.deeper, Relaxed);
        for (all, &part) in joint.of_search.as_flattened().iter().zip(self.of_search.as_flattened()) {
            if part > 0 {
                all.fetch_add(part, Relaxed);
            }
        }
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
        let arrays = |width: usize| {
            // For each vertex: words of bits and of their planes, two queues, and a mark.
            check((((3 + PLANES) * 8 * width + 2 * 4 + 1) as u64).saturating_mul(vertices as u64))?;
            let words = |each: usize| Slab::zeroed(vertices.saturating_mul(each * width), "bits of many searches");
            let (seen, frontier, next, planes) = (words(1)?, words(1)?, words(1)?, words(PLANES)?);
            let [queue, next_queue] = [Slab::zeroed(vertices, "frontier queue")?, Slab::zeroed(vertices, "frontier queue")?];
            let is_queued = Slab::zeroed(vertices, "frontier queue")?;
            Ok::<_, EngineError>((Words { seen, frontier, next, queue, next_queue, is_queued }, planes))
        };
        let (words, planes) = arrays(WIDE).or_else(|_| arrays(1))?;
        let single = |_| Alone::new(borrowed).map(Mutex::new).map_err(EngineError::from);
        let alone = (0..singles).map(single).collect::<Result<_, _>>()?;
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

    /// Searches from any number of roots, up to 256 in a pass, and writes the level of every vertex: that of vertex `v` in the search from
    /// `roots[i]` into `levels[v * roots.len() + i]`, so that the levels of a vertex lie together. Bytes are fastest, as long as no level
    /// is deeper than 254.
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
        let mut first = 0;
        while first < roots.len() {
            // Two passes of one word are as fast as one of four. (Without memory for these, there is one word for each vertex.)
            let is_wide = words.seen.len() > words.queue.len() && roots.len() - first > 2 * ROOTS;
            let columns = (roots.len() - first).min(if is_wide { WIDE * ROOTS } else { ROOTS });
            let roots_of_pass = &roots[first..first + columns];
            let rows = Rows { stride: roots.len(), first, columns };
            let arrays = (Shared::new(levels), Shared::new(parents), in_planes.then_some(&mut planes[..]));
            let one = if is_wide {
                level_rows::pass::<N, WIDE>(words, (layout, team, &limits), roots_of_pass, rows, arrays, with_parents)?
            } else {
                level_rows::pass::<N, 1>(words, (layout, team, &limits), roots_of_pass, rows, arrays, with_parents)?
            };
            all.reached += one.reached;
            all.levels = all.levels.max(one.levels);
            first += columns;
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
        [] => layout.csr().vertices() == words.queue.len(),
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
    /// Runs one pass of `W` words a vertex; the roots are in range, at most 64 for each word, and the arrays have this many words.
    fn pass<S: Sink<W>, const W: usize>(
        &mut self,
        layout: &Layout,
        team: &Team,
        roots: &[Vertex],
        sink: &mut S,
        limits: &Limits<'_>,
    ) -> Result<ManyOutcome, SearchError> {
        let Self { seen, frontier, next, queue, next_queue, is_queued } = self;
        let csr = layout.csr();
        let [seen, mut frontier, mut next] = [seen, frontier, next].map(|words| Bits::<W>::of_words(&mut words[..W * csr.vertices()]));
        for bits in [&mut *seen, frontier, next] {
            fill(team, bits, Bits::NONE);
        }
        // A visitor may have panicked in the last pass.
        fill(team, is_queued, 0);
        let mut joint = Joint::default();
        let (late, mut levels) = (late(layout, roots), u32::from(!roots.is_empty()));
        let mut queued = 0;
        for (search, &root) in roots.iter().enumerate() {
            let (place, bit) = (layout.place(root), Bits::one(search));
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
                let bits = &mut frontier[internal as usize];
                let degree = u64::from(csr.degree(internal));
                if bits.is_empty() {
                    queue[queued] = internal;
                    queued += 1;
                    *joint.arcs.get_mut() += degree;
                }
                *bits |= bit;
                *joint.of_search.as_flattened_mut()[search].get_mut() = degree;
                seen[internal as usize] |= bit;
            }
        }
        *joint.vertices.get_mut() = queued;
        let mut reached = std::mem::take(joint.found.get_mut());
        let (mut level, mut is_queue, mut next_is_clear) = (0, true, true);
        let mut explored = [[0; ROOTS]; W];
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
            for (explored, arcs) in explored.as_flattened_mut().iter_mut().zip(joint.of_search.as_flattened_mut()) {
                *explored += *arcs.get_mut();
            }
            joint = Joint::default();
            let alone = arcs < SHARED_ARCS;
            if !next_is_clear {
                fill(team, next, Bits::NONE);
            }
            let queued = if is_queue { vertices } else { collect(team, (&*frontier, light), queue) };
            // One thread alone needs no lists sorted by number. (In the order of the input, where levels are small, `top_down` is used.)
            let is_pushed = layout.is_by_degree() || layout.is_mapped() && team.size() == 1;
            let stays_queue = arcs < csr.arcs() as u64 / FEW_QUEUED;
            let lists = (layout, limits);
            let (from, queues) = ((&*frontier, light, &mut *next), (&queue[..queued], &mut **next_queue, &mut **is_queued));
            let found = if stays_queue || S::PARENTS || !is_pushed {
                top_down(team, (alone, stays_queue), lists, seen, from, queues, sink)
            } else {
                push(team, lists, from, queues.0);
                0
            };
            (is_queue, next_is_clear) = (stays_queue, stays_queue);
            if stays_queue {
                forget(team, alone, frontier, &queue[..queued]);
                std::mem::swap(&mut frontier, &mut next);
                std::mem::swap(queue, next_queue);
                mark_seen(team, alone, layout, seen, (frontier, &queue[..found], is_queued), (sink, level, late), &joint);
            } else {
                bottom_up(team, lists, seen, (&*frontier, heavy, &mut *next), (sink, level, late), &joint);
                std::mem::swap(&mut frontier, &mut next);
            }
            let (found, deeper) = (*joint.found.get_mut(), *joint.deeper.get_mut());
            if found > 0 {
                levels = levels.max(level + deeper + 1);
            }
            reached += found;
        }
        let leaves = layout.leaves();
        let hosts = leaves.hosts().iter().enumerate();
        reached += hosts.map(|(index, &host)| seen[host as usize].count() * leaves.of(index).len() as u64).sum::<u64>();
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

/// Appends vertices to a queue that several threads fill up to `len`.
fn append(queue: &[AtomicU32], len: &AtomicUsize, vertices: impl Iterator<Item = Vertex> + Clone) {
    let places = len.fetch_add(vertices.clone().count(), Relaxed)..;
    for (place, vertex) in places.zip(vertices) {
        queue[place].store(vertex, Relaxed);
    }
}

/// Makes a queue of the vertices in the frontiers of these searches. Returns its length.
fn collect<const W: usize>(team: &Team, (frontier, searches): (&[Bits<W>], Bits<W>), queue: &mut [Vertex]) -> usize {
    let (queue, len) = (as_atomics(queue), AtomicUsize::new(0));
    let all = if searches.is_empty() { 0 } else { frontier.len() };
    share(team, all, VERTICES, all < 4 * VERTICES, &|_, range| {
        append(queue, &len, range.filter(|&v| !(frontier[v] & searches).is_empty()).map(|v| v as Vertex));
    });
    len.into_inner()
}

/// Pushes the searches `light` of the queue's vertices to their neighbours. Afterwards `next` has the searches that are new at a vertex,
/// and the next queue (if `queues`) the vertices with new searches. Returns its length. Without a queue and without parents, `next` may
/// have searches that reached the vertex at an earlier level: `bottom_up` removes these.
fn top_down<S: Sink<W>, const W: usize>(
    team: &Team,
    (alone, queues): (bool, bool),
    (layout, limits): (&Layout, &Limits<'_>),
    seen: &[Bits<W>],
    (frontier, light, next): (&[Bits<W>], Bits<W>, &mut [Bits<W>]),
    (queue, next_queue, is_queued): (&[Vertex], &mut [Vertex], &mut [u8]),
    sink: &S,
) -> usize {
    let len = AtomicUsize::new(0);
    let (next, next_queue, is_queued) = (as_wide_atomics(Bits::words(next)), as_atomics(next_queue), as_byte_atomics(is_queued));
    share(team, queue.len(), QUEUED, alone, &|_, range| {
        if limits.are_reached() {
            return;
        }
        let (mut found, mut count) = ([0; BUFFER], 0);
        for &u in &queue[range] {
            let searches = frontier[u as usize] & light;
            if searches.is_empty() {
                continue;
            }
            let list = layout.csr().neighbours(u);
            for (at, &v) in list.iter().enumerate() {
                if let Some(&ahead) = list.get(at + AHEAD) {
                    if queues || S::PARENTS {
                        prefetch(&raw const seen[ahead as usize]);
                    }
                    prefetch(next[W * ahead as usize].as_ptr());
                }
                let new = if queues || S::PARENTS { searches - seen[v as usize] } else { searches };
                let mut first = Bits::<W>::NONE;
                for word in 0..W {
                    let (new, all) = (new.0[word], &next[W * v as usize + word]);
                    // A plain load first: usually another vertex has already pushed all of these searches.
                    if new & !all.load(Relaxed) != 0 {
                        // Relaxed: who sets a bit first has it, and the end of the team's work orders the words for the next step.
                        first.0[word] = new & !all.fetch_or(new, Relaxed);
                    }
                }
                if first.is_empty() {
                    continue;
                }
                // Two threads may be first, each at a word of its own.
                if queues && is_queued[v as usize].swap(1, Relaxed) == 0 {
                    (found[count], count) = (v, count + 1);
                    if count == BUFFER {
                        append(next_queue, &len, found.into_iter());
                        count = 0;
                    }
                }
                if S::PARENTS {
                    sink.parent(v, u, first);
                }
            }
        }
        append(next_queue, &len, found[..count].iter().copied());
    });
    len.into_inner()
}

/// As [`top_down`] without a queue and without parents, if lists are sorted by vertex number or there is one thread: every thread goes
/// through the whole queue, and writes the words of its own range of vertices. Threads therefore share no word and need no atomic access.
/// No word is tested before it is written, since that branch would be mispredicted. (64 roots of Kronecker 20, level 2, one thread: 6 ms
/// instead of 10.)
fn push<const W: usize>(
    team: &Team,
    (layout, limits): (&Layout, &Limits<'_>),
    (frontier, light, next): (&[Bits<W>], Bits<W>, &mut [Bits<W>]),
    queue: &[Vertex],
) {
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
                if searches.is_empty() {
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
fn forget<const W: usize>(team: &Team, alone: bool, frontier: &mut [Bits<W>], queue: &[Vertex]) {
    let frontier = Shared::new(frontier);
    share(team, queue.len(), VERTICES, alone, &|_, range| {
        for &u in &queue[range] {
            // SAFETY: queues hold vertices, each once.
            unsafe { *frontier.get().add(u as usize) = Bits::NONE };
        }
    });
}

/// After [`top_down`] with a queue: adds the new searches to `seen`, and reports them.
fn mark_seen<S: Sink<W>, const W: usize>(
    team: &Team,
    alone: bool,
    layout: &Layout,
    seen: &mut [Bits<W>],
    (frontier, queue, is_queued): (&[Bits<W>], &[Vertex], &mut [u8]),
    (sink, level, late): (&S, u32, Bits<W>),
    joint: &Joint<W>,
) {
    let (seen, is_queued) = (Shared::new(seen), Shared::new(is_queued));
    share(team, queue.len(), QUEUED, alone, &|_, range| {
        let mut part = ThreadCounts::new();
        for &v in &queue[range] {
            let searches = frontier[v as usize];
            // SAFETY: queues hold vertices, each once.
            unsafe {
                *seen.get().add(v as usize) |= searches;
                *is_queued.get().add(v as usize) = 0;
            }
            sink.reached(v, level, searches);
            part.add(layout, v as usize, searches, late);
        }
        part.add_to(joint);
    });
}

/// Every vertex that not all of the searches `heavy` have reached looks for the missing ones at its neighbours. Writes the new searches
/// into `next` and `seen`; those that [`top_down`] left in `next` are included if they are new.
fn bottom_up<S: Sink<W>, const W: usize>(
    team: &Team,
    (layout, limits): (&Layout, &Limits<'_>),
    seen: &mut [Bits<W>],
    (frontier, heavy, next): (&[Bits<W>], Bits<W>, &mut [Bits<W>]),
    (sink, level, late): (&S, u32, Bits<W>),
    joint: &Joint<W>,
) {
    let (vertices, lists) = (next.len(), layout.incoming());
    assert_eq!((frontier.len(), lists.vertices()), (vertices, vertices), "bits for each vertex");
    let (seen, next) = (Shared::new(seen), Shared::new(next));
    share(team, vertices, VERTICES, vertices < 4 * VERTICES, &|_, range| {
        if limits.are_reached() {
            return;
        }
        let mut part = ThreadCounts::new();
        // SAFETY: ranges are handed out once, and lie inside both slices.
        let (seen, next) = unsafe {
            let own = |bits: Shared<Bits<W>>| std::slice::from_raw_parts_mut(bits.get().add(range.start), range.len());
            (own(seen), own(next))
        };
        for at in 0..range.len() {
            let v = (range.start + at) as Vertex;
            // Prefetches what the visitor will write, since its arrays may be in another order.
            if let Some(&seen) = seen.get(at + AHEAD) {
                if !(heavy - seen).is_empty() {
                    sink.soon(v + AHEAD as Vertex);
                }
            }
            let wanted = heavy - seen[at];
            let mut missing = wanted;
            if !wanted.is_empty() {
                for &u in lists.neighbours(v) {
                    // SAFETY: neighbours are vertices, each of which has bits (asserted above).
                    let found = *unsafe { frontier.get_unchecked(u as usize) } & missing;
                    if S::PARENTS && !found.is_empty() {
                        sink.parent(v, u, found);
                    }
                    missing = missing - found;
                    if missing.is_empty() {
                        break;
                    }
                }
            }
            let mut new = wanted - missing;
            let reached = next[at];
            new |= reached - seen[at];
            if new != reached {
                next[at] = new;
            }
            if !new.is_empty() {
                seen[at] |= new;
                sink.reached(v, level, new);
                part.add(layout, v as usize, new, late);
            }
        }
        part.add_to(joint);
    });
}
