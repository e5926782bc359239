//! One search after another over one layout: a planner chooses how each level runs, and the engine runs it.

mod owned;

use std::{
    cell::OnceCell,
    time::{Duration, Instant},
};

pub use crate::graph::Stopper;
pub use owned::OwnedSearch;

use crate::{
    bfs::{AnyPlanner, BfsResult, LevelRecord, Planner, Records, Uses, level_loop_until},
    cpu::{ParallelThresholds, Simd},
    gpu::{DeviceUse, GpuSetup},
    graph::{Layout, NONE, Place, Vertex},
    hybrid::{EngineError, HybridEngine},
    opencl::{DeviceError, WRONG_NUMBERS},
    threads::Team,
    words::numbered,
};

/// Level records kept of one search, at most; deeper levels are added up in the last one.
const RECORDS: usize = 4096;

/// Options of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchOptions {
    /// Decides the direction of each level, and where it runs. A policy of the crate `socbfs-policy` becomes one by `on`, or by `into` for
    /// the CPU.
    pub planner: AnyPlanner,
    /// Number of threads (0: one for each of `cpus`; if that is empty, one for every CPU the process may run on).
    pub threads: usize,
    /// CPUs the threads are bound to, one each in turn, the calling thread first (empty: not bound).
    pub cpus: Vec<usize>,
    /// The least amounts of work for which threads share a level (`None`: the defaults, measured on two cores of a desktop processor).
    pub parallel: Option<ParallelThresholds>,
    /// Vector instructions (`None`: the best this CPU has).
    pub simd: Option<Simd>,
    /// OpenCL devices. Levels on the GPU run on the first; plans that split levels use all of them alongside the CPU.
    pub devices: Vec<GpuSetup>,
    /// Prepare for every planner, so that [`Search::set_planner`] may change it to any.
    pub every_planner: bool,
    /// Continue on the CPU alone if a device fails during a search, by the same planner if it can ([`Planner::on_cpu`]), otherwise by the
    /// default one.
    pub fall_back: bool,
    /// Stops searches ([`Search::stopper`]), also those that measure while a `Runtime` prepares this one.
    pub stopper: Stopper,
}

/// A reason why a search can't be set up or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The root is not a vertex of the graph.
    #[error("root {root} is not a vertex: the graph has {}", numbered(*.vertices as u64))]
    RootOutOfRange {
        /// The root asked for.
        root: Vertex,
        /// Vertices of the graph.
        vertices: usize,
    },
    /// The target is not a vertex of the graph.
    #[error("target {target} is not a vertex: the graph has {}", numbered(*.vertices as u64))]
    TargetOutOfRange {
        /// The target asked for.
        target: Vertex,
        /// Vertices of the graph.
        vertices: usize,
    },
    /// One of the caller's arrays does not have the required length.
    #[error("{given} {what} are given, {wanted} are needed")]
    Length {
        /// What the array holds.
        what: &'static str,
        /// Its length.
        given: usize,
        /// The length needed (for roots: the largest allowed).
        wanted: usize,
    },
    /// A level does not fit the number type of the caller's array.
    #[error("the search is deeper than {deepest} levels, the most that the array can hold: pass an array of 32-bit numbers")]
    TooDeep {
        /// The deepest level that can be written.
        deepest: u32,
    },
    /// The record that is replayed has no search from this root.
    #[error("the replayed record has no search from root {0}; record one, or replay from the recorded roots")]
    NotRecorded(Vertex),
    /// Threads could not be started or bound.
    #[error("{0}")]
    Threads(String),
    /// Memory, vector instructions or a device are not available.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The planner needs a device, and there is none.
    #[error("policy {policy} needs an OpenCL device; `socbfs devices` lists the devices, --device chooses one")]
    NoDevice {
        /// Its name.
        policy: String,
    },
    /// The planner needs a device, and the search has lost its devices.
    #[error("policy {policy} needs an OpenCL device, but that of this search failed ({reason}) and it continues on the CPU")]
    FellBack {
        /// Its name.
        policy: String,
        /// What failed ([`Search::fallen_back`]).
        reason: String,
    },
    /// A [`Stopper`] or the deadline ended the search before it was done. It has the root ([`NONE`]: the search has none).
    #[error("the search{} was stopped before it finished", if *.0 == NONE { String::new() } else { format!(" from root {}", .0) })]
    Stopped(Vertex),
    /// A device failed in the middle of a search.
    #[error("the search failed on {device}")]
    Device {
        /// The device.
        device: String,
        /// What failed.
        #[source]
        source: DeviceError,
    },
}

impl SearchError {
    /// Whether the cause is a lack of memory of the host.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Engine(error) if error.is_out_of_memory())
    }
}

/// What one search did. The tree itself is read through [`Search::parents`].
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// The root, or the first of several sources, as an original number ([`NONE`]: there was no source).
    pub root: Vertex,
    /// Number of sources, as given: repeats count.
    pub sources: u64,
    /// Vertices reached, the sources included.
    pub reached: u64,
    /// Levels of the tree or forest: sources alone are 1.
    pub levels: u32,
    /// Edges for TEPS (both ends reached; repeats counted, self-loops not). After an early end the edges that leave the tree count as well:
    /// half each, in a directed graph whole.
    pub edges: u64,
    /// Why the search ended.
    #[serde(skip)]
    pub end: End,
    /// Time from the call to the parents in original numbers.
    #[serde(skip)]
    pub elapsed: Duration,
    /// The part of `elapsed` after the last level, in which parents are mapped back to original numbers. If the layout keeps these numbers,
    /// it only ends the search.
    #[serde(skip)]
    pub mapping: Duration,
}

/// Where searches begin: one root or a set of sources (original numbers). A vertex and a slice of vertices convert into it.
#[derive(Debug, Clone, Copy)]
pub enum Sources<'a> {
    /// One root.
    Root(Vertex),
    /// All of these at once. A source may be given more than once, and there may be no source: then nothing is reached, and there is no
    /// level.
    All(&'a [Vertex]),
}

impl Sources<'_> {
    /// The vertices.
    pub fn as_slice(&self) -> &[Vertex] {
        match self {
            Self::Root(root) => std::slice::from_ref(root),
            Self::All(sources) => sources,
        }
    }
}

impl From<Vertex> for Sources<'_> {
    fn from(root: Vertex) -> Self {
        Self::Root(root)
    }
}

impl<'a, S: AsRef<[Vertex]> + ?Sized> From<&'a S> for Sources<'a> {
    fn from(sources: &'a S) -> Self {
        Self::All(sources.as_ref())
    }
}

/// What [`Search::run`] is asked for. Sources convert into a whole search from there; other fields are set before `..`:
/// `Run { depth: Some(2), ..root.into() }`.
#[derive(Debug)]
pub struct Run<'a> {
    /// Where it begins.
    pub sources: Sources<'a>,
    /// End at this distance from the sources: vertices farther away are not searched.
    pub depth: Option<u32>,
    /// End after the level that reaches this vertex (an original number).
    pub target: Option<Vertex>,
    /// Write the tree to these arrays: [`Search::parents`] is empty afterwards.
    pub output: Option<Output<'a>>,
    /// Do not count what was reached, which is never part of the time, for searches that follow one another in a window whose energy is
    /// measured. [`Outcome::reached`] and [`Outcome::edges`] are 0. If a device took part and there is no `output`, [`Outcome::levels`]
    /// does not count a last level that consists of leaves which the layout left out.
    pub uncounted: bool,
}

impl<'a, S: Into<Sources<'a>>> From<S> for Run<'a> {
    fn from(sources: S) -> Self {
        Self { sources: sources.into(), depth: None, target: None, output: None, uncounted: false }
    }
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Everything that can be reached was reached.
    Complete,
    /// The search reached the depth limit. Vertices beyond it, if there are any, are not in the tree.
    Depth,
    /// The target was reached. The tree has all vertices up to the target's level, and no others.
    Target,
}

/// Where a search writes its tree: the caller's arrays, with an entry for each vertex. Arrays that are not given are not written. Distances
/// alone take no longer than parents: the CPU records them as vertices are found (up to level 254; in a deeper search they are computed
/// from the parents). If the search has a device, the tree is copied from the search's own array. What was reached is counted from
/// `parents` or `levels`, and is 0 without them.
#[derive(Debug, Default)]
pub struct Output<'a> {
    /// Parents: that of a source is the source itself; [`NONE`] where not reached.
    pub parents: Option<&'a mut [Vertex]>,
    /// Distances from the nearest source, [`NONE`] where not reached.
    pub levels: Option<&'a mut [u32]>,
    /// The source to which the parents of each vertex lead, one of the nearest; [`NONE`] where not reached. Written after the search, in a
    /// pass that is not part of its time.
    pub sources: Option<&'a mut [Vertex]>,
}

/// Why a level loop stops.
#[derive(Clone, Copy)]
enum Halt {
    /// The search was stopped: there is no tree.
    Stopped,
    /// The search has ended: the tree is what was reached.
    Ended(End),
}

/// Searches one layout, again and again, without allocating in [`run`](Search::run).
///
/// ```
/// use socbfs::{BuildOptions, Layout, Search, SearchOptions, graph::{EdgeList, Listing, NONE}};
///
/// let edges = EdgeList::new(6, vec![[0, 1], [1, 2], [2, 3], [0, 3]], Listing::Once)?;
/// let layout = Layout::build(&edges, &BuildOptions::default())?;
/// let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() })?;
/// for root in [0, 2] {
///     let outcome = search.run(root)?;
///     assert_eq!((outcome.reached, outcome.levels, outcome.edges), (4, 3, 4));
///     assert_eq!((search.parents()[root as usize], search.parents()[5]), (root, NONE));
/// }
/// for level in search.records() {
///     println!("{:?} on {:?}: {} vertices in {} ns", level.plan.direction, level.plan.placement, level.found, level.elapsed_ns);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Search<'g> {
    layout: &'g Layout,
    options: SearchOptions,
    engine: HybridEngine<'g>,
    /// The vertices that take part in a search, once they have been counted.
    searched: OnceCell<u64>,
    records: Records,
    devices: Vec<DeviceUse>,
    fallen_back: Option<String>,
    stopper: Stopper,
    deadline: Option<Instant>,
    /// Settings of the engine, for the engine that replaces it after a device failed.
    single_levels: bool,
    /// Whether the last search had levels in the layout: false if its sources are vertices that the layout leaves out.
    begins_inside: bool,
    /// Whether it had sources that no level searches.
    outside: bool,
    /// No vertex of its forest is deeper.
    deepest: u32,
    /// Whether the engine has the tree of the last search: false before the first search, and if the last one was stopped or failed, or
    /// wrote its tree into the caller's arrays.
    has_tree: bool,
}

/// The number of threads (0: one for each of `cpus`, or for every CPU the process may run on).
pub fn threads_of(threads: usize, cpus: &[usize]) -> usize {
    match (threads, cpus.len()) {
        (0, 0) => std::thread::available_parallelism().map_or(1, usize::from),
        (0, cpus) => cpus,
        (threads, _) => threads,
    }
}

/// The number of vertices that take part in a search of `layout`, as planners count them (`LevelStats::vertices`): those with an arc. A
/// vertex whose neighbours are all left-out leaves has none.
fn searched(layout: &Layout) -> u64 {
    let (out, incoming) = (layout.csr(), layout.incoming());
    (0..out.vertices() as Vertex).filter(|&v| out.degree(v) > 0 || incoming.degree(v) > 0).count() as u64
}

/// What `planner` needs from the engine.
fn uses(planner: &AnyPlanner, layout: &Layout, vertices: &OnceCell<u64>) -> Uses {
    let mut uses = planner.uses();
    if uses.alone && !uses.at_home_on_gpu {
        let vertices = *vertices.get_or_init(|| searched(layout));
        uses.at_home_on_gpu = planner.begins_on_gpu(vertices, layout.csr().arcs() as u64, layout.hubs().share);
    }
    uses
}

impl<'g> Search<'g> {
    /// Allocates everything a search needs and starts its threads.
    ///
    /// # Errors
    /// [`SearchError`] if memory, threads or vector instructions are refused.
    pub fn new(layout: &'g Layout, options: &SearchOptions) -> Result<Self, SearchError> {
        let vertices = OnceCell::new();
        let wanted = uses(&options.planner, layout, &vertices);
        let every = options.every_planner && !options.devices.is_empty();
        let uses = if every { Uses { alone: true, together: true, ..wanted } } else { wanted };
        let setups = if uses == Uses::default() { &[][..] } else { &options.devices[..] };
        if setups.is_empty() && uses != Uses::default() {
            return Err(SearchError::NoDevice { policy: options.planner.name() });
        }
        let team = Team::new(threads_of(options.threads, &options.cpus), &options.cpus).map_err(SearchError::Threads)?;
        let engine =
            HybridEngine::new(layout, team, options.parallel.unwrap_or_default(), options.simd.unwrap_or_else(Simd::detect), setups, uses)?;
        let records = Records::with_capacity(layout.vertices().clamp(1, RECORDS));
        let devices = engine.devices().collect();
        Ok(Self {
            layout,
            options: options.clone(),
            engine,
            searched: vertices,
            records,
            devices,
            fallen_back: None,
            stopper: options.stopper.clone(),
            deadline: None,
            single_levels: false,
            begins_inside: false,
            outside: false,
            deepest: 0,
            has_tree: false,
        })
    }

    /// As [`Search::new`], with this planner in place of that of `options`. It may place levels on the devices of `options`
    /// ([`Planner::uses`]). `examples/own_policy.rs` has one.
    ///
    /// # Errors
    /// As [`Search::new`].
    ///
    /// ```
    /// # use socbfs_io::Generator;
    /// # use socbfs::{BuildOptions, Layout, LevelPlan, LevelStats, Planner, Search, SearchOptions, Strategy};
    /// /// Bottom-up where most arcs of vertices not yet visited leave the frontier.
    /// #[derive(Clone)]
    /// struct Half;
    ///
    /// impl Planner for Half {
    ///     fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
    ///         if 2 * stats.frontier_edges > stats.unvisited_edges { Strategy::Bc.plan() } else { Strategy::Tc.plan() }
    ///     }
    /// }
    ///
    /// # let layout = Layout::build(&Generator::graph500(10).generate(&|_| ())?, &BuildOptions::default())?;
    /// let mut search = Search::with_planner(&layout, &SearchOptions::default(), Half)?;
    /// let outcome = search.run(5)?;
    /// println!("{} vertices, {:?}", outcome.reached, search.records().iter().map(|level| level.plan.direction).collect::<Vec<_>>());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_planner(
        layout: &'g Layout,
        options: &SearchOptions,
        planner: impl Planner + Clone + Send + Sync + 'static,
    ) -> Result<Self, SearchError> {
        Self::new(layout, &SearchOptions { planner: AnyPlanner::new(planner), ..options.clone() })
    }

    /// A handle with which any thread can stop searches.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Replaces the handle: from now on `stopper` stops searches.
    pub fn set_stopper(&mut self, stopper: Stopper) {
        self.stopper = stopper;
    }

    /// Stops searches, as a [`Stopper`] does, as soon as a level ends after `deadline` (`None`: never).
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Whether a [`Stopper`] or the deadline says that a search should end.
    pub fn is_stopped(&self) -> bool {
        self.stopper.is_stopped() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// The threads of the search.
    pub fn team(&self) -> &Team {
        self.engine.team()
    }

    /// Changes the planner.
    ///
    /// # Errors
    /// [`SearchError::NoDevice`] if the search was not set up for what the planner does (see [`SearchOptions::every_planner`]), and
    /// [`SearchError::FellBack`] if it was, but has lost its devices.
    pub fn set_planner(&mut self, planner: AnyPlanner) -> Result<(), SearchError> {
        let wanted = uses(&planner, self.layout, &self.searched);
        if !self.engine.uses().covers(wanted) {
            let policy = planner.name();
            return Err(match self.fallen_back.clone() {
                Some(reason) => SearchError::FellBack { policy, reason },
                None => SearchError::NoDevice { policy },
            });
        }
        self.engine.set_home(wanted.at_home_on_gpu);
        self.options.planner = planner;
        Ok(())
    }

    /// Sets whether a search continues on the CPU alone if a device fails (see [`SearchOptions::fall_back`]), from the next search on.
    pub fn set_fall_back(&mut self, fall_back: bool) {
        self.options.fall_back = fall_back;
    }

    /// The devices that the search was set up with.
    pub fn devices(&self) -> &[DeviceUse] {
        &self.devices
    }

    /// Why the search continues without its devices, if it does (see [`SearchOptions::fall_back`]).
    pub fn fallen_back(&self) -> Option<&str> {
        self.fallen_back.as_deref()
    }

    /// The layout that is searched.
    pub fn layout(&self) -> &'g Layout {
        self.layout
    }

    /// Number of threads that the search uses.
    pub fn threads(&self) -> usize {
        self.team().size()
    }

    /// Vector instructions that the search uses.
    pub fn simd(&self) -> Simd {
        self.engine.simd()
    }

    /// Searches from a root: the result is a tree, in which the root is its own parent, at level 0. From several sources it is a forest, in
    /// which the level of a vertex is its distance from the nearest source. A [`Run`] also ends early, or writes to the caller's arrays.
    ///
    /// With a depth or a target, every level is run by itself. With a target, a device that owns the state hands it to the host after each
    /// level. A device that owns the state gets several sources from the host, with the whole state.
    ///
    /// # Errors
    /// [`SearchError::RootOutOfRange`], [`SearchError::TargetOutOfRange`], [`SearchError::Length`], [`SearchError::NotRecorded`],
    /// [`SearchError::Stopped`], and [`SearchError::Device`] if a device fails.
    ///
    /// ```
    /// # use socbfs::{BuildOptions, Layout, Output, Run, Search, SearchOptions, graph::{EdgeList, Listing}, search::End};
    /// # let path = (0..9).map(|v| [v, v + 1]).collect();
    /// # let layout = Layout::build(&EdgeList::new(10, path, Listing::Once)?, &BuildOptions::default())?;
    /// # let mut search = Search::new(&layout, &SearchOptions::default())?;
    /// // On the path 0 - 1 - ... - 9: everything from vertex 3.
    /// let outcome = search.run(3)?;
    /// assert_eq!((outcome.reached, outcome.levels, search.parents()[9]), (10, 7, 8));
    /// // The distance of each vertex from vertex 1 or 8, and which of them is nearer.
    /// let outcome = search.run(&[1, 8])?;
    /// assert_eq!((outcome.sources, outcome.reached, outcome.levels), (2, 10, 4));
    /// let (mut distances, mut nearest) = ([0; 10], [0; 10]);
    /// search.levels_into(&mut distances);
    /// search.sources_into(&mut nearest);
    /// assert_eq!(distances, [1, 0, 1, 2, 3, 3, 2, 1, 0, 1]);
    /// assert_eq!(nearest, [1, 1, 1, 1, 1, 8, 8, 8, 8, 8]);
    /// // Everything within a distance of 2. Four edges lie between these vertices, and two leave them, which count half.
    /// let near = search.run(Run { depth: Some(2), ..4.into() })?;
    /// assert_eq!((near.end, near.reached, near.edges), (End::Depth, 5, 5));
    /// // Everything up to vertex 6.
    /// let route = search.run(Run { target: Some(6), ..0.into() })?;
    /// assert_eq!((route.end, route.levels, search.parents()[6]), (End::Target, 7, 5));
    /// // The distances alone.
    /// let output = Output { levels: Some(&mut distances), ..Output::default() };
    /// assert_eq!(search.run(Run { output: Some(output), ..0.into() })?.reached, 10);
    /// assert_eq!(distances, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn run<'a>(&mut self, run: impl Into<Run<'a>>) -> Result<Outcome, SearchError> {
        let mut run = run.into();
        self.check(&run)?;
        let root = run.sources.as_slice().first().copied();
        self.tell_root(root)?;
        let begin = Instant::now();
        // An error leaves no tree, also one in the work that the search before left for this one.
        self.has_tree = false;
        let outcome = match self.search(&mut run, begin) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.fall_back(error)?;
                self.tell_root(root)?;
                self.search(&mut run, begin).map_err(|error| self.failed(error))?
            }
        };
        let Some(mut outcome) = outcome else { return Err(SearchError::Stopped(root.unwrap_or(NONE))) };
        // If a device took part, a last level of leaves is not counted yet.
        self.deepest = outcome.levels;
        if let Some(Output { parents, sources: Some(labels), .. }) = &mut run.output {
            self.engine.label(parents.as_deref(), labels, self.deepest, self.outside);
        }
        self.has_tree = run.output.is_none();
        if run.uncounted && self.has_tree {
            return Ok(outcome);
        }
        // If a device took part, the engine finds a last level of leaves in the parents, which it has even if the caller's arrays have them
        // too.
        if self.may_end_in_leaves(outcome.end) && self.engine.leaf_is_deepest().is_none() {
            outcome.levels += u32::from(self.engine.leaf_is_below(outcome.levels));
        }
        let found = match &run.output {
            None => Some(self.parents()),
            Some(Output { parents, levels, .. }) => parents.as_deref().or(levels.as_deref()),
        };
        if let Some(found) = found.filter(|_| !run.uncounted) {
            (outcome.reached, outcome.edges) = self.counts(found);
        }
        Ok(outcome)
    }

    fn tell_root(&mut self, root: Option<Vertex>) -> Result<(), SearchError> {
        match root.filter(|&root| !self.options.planner.set_root(root)) {
            Some(root) => Err(SearchError::NotRecorded(root)),
            None => Ok(()),
        }
    }

    /// The numbers of vertices and edges that a search reached, as in [`Outcome`], for one that did not count them ([`Run::uncounted`]).
    /// `found` is an array that it has written: parents or levels.
    ///
    /// # Panics
    /// If `found` has not exactly one entry per vertex.
    pub fn counts(&self, found: &[u32]) -> (u64, u64) {
        let degrees = self.layout.input_degrees();
        assert_eq!(found.len(), degrees.len(), "one entry per vertex");
        let (reached, edges) = self.engine.count_reached(found, degrees);
        (reached, if self.layout.directed() { edges } else { edges / 2 })
    }

    /// Refuses what can't be run.
    fn check(&self, run: &Run<'_>) -> Result<(), SearchError> {
        let vertices = self.layout.vertices();
        if let Some(target) = run.target.filter(|&target| target as usize >= vertices) {
            return Err(SearchError::TargetOutOfRange { target, vertices });
        }
        if let Some(Output { parents, levels, sources }) = &run.output {
            for (what, array) in [("parents", parents), ("levels", levels), ("sources", sources)] {
                if let Some(given) = array.as_ref().map(|array| array.len()).filter(|&given| given != vertices) {
                    return Err(SearchError::Length { what, given, wanted: vertices });
                }
            }
        }
        match run.sources.as_slice().iter().find(|&&source| source as usize >= vertices) {
            Some(&root) => Err(SearchError::RootOutOfRange { root, vertices }),
            None => Ok(()),
        }
    }

    /// Returns `None` if the search was stopped.
    fn search(&mut self, run: &mut Run<'_>, begin: Instant) -> Result<Option<Outcome>, DeviceError> {
        let Run { sources, depth, target, output, .. } = run;
        let (sources, depth, target, mut output) = (sources.as_slice(), *depth, *target, output.as_mut());
        self.engine.note_distances(output.as_ref().is_some_and(|output| output.levels.is_some()));
        let layout = self.layout;
        let has_limit = depth.is_some() || target.is_some();
        let target_place = target.map(|target| layout.place(target));
        // A target that is no further than level 1 is a limit of depth.
        let limit = match (target, target_place) {
            (Some(target), _) if sources.contains(&target) => Some((0, End::Target)),
            (_, Some(Place::Paired(other))) if depth != Some(0) && sources.contains(&other) => Some((1, End::Target)),
            _ => depth.map(|depth| (depth, End::Depth)),
        };
        let (mut any_searched, mut any_leaf, mut any_outside) = (false, false, false);
        for &source in sources {
            match layout.place(source) {
                Place::Searched(_) => any_searched = true,
                Place::LeafOf(_) => any_leaf = true,
                Place::Paired(_) | Place::Alone => any_outside = true,
            }
        }
        let goes_on = limit.is_none_or(|(depth, _)| depth > 0);
        self.begins_inside = any_searched || any_leaf && goes_on;
        let (mut levels, mut end_of, found);
        if self.begins_inside {
            // If all sources are left-out leaves, the search begins at their neighbours, one level late.
            let above = u32::from(!any_searched);
            let limit = limit.map(|(depth, end)| (depth - above, end));
            // If the target is a left-out leaf, the search looks for its neighbour, and runs one more level after the neighbour's.
            let (target, below) = match target_place {
                Some(Place::Searched(target)) => (Some(target), 0),
                Some(Place::LeafOf(host)) => (Some(host), 1),
                Some(Place::Paired(_) | Place::Alone) | None => (None, 0),
            };
            let mut target_level = None;
            let (stopper, deadline) = (&self.stopper, self.deadline);
            let (planner, records) = (&mut self.options.planner, &mut self.records);
            let halt = |engine: &mut HybridEngine<'g>, levels: u32, now: Instant| {
                if stopper.is_stopped() || deadline.is_some_and(|deadline| now >= deadline) {
                    return Ok(Some(Halt::Stopped));
                }
                if let Some(target) = target {
                    if target_level.is_none() && engine.has_reached(target)? {
                        target_level = Some(levels + below);
                    }
                    if target_level.is_some_and(|level| levels >= level) {
                        return Ok(Some(Halt::Ended(End::Target)));
                    }
                }
                Ok(limit.filter(|&(depth, _)| levels >= depth).map(|(_, end)| Halt::Ended(end)))
            };
            let all_levels = |engine: &mut HybridEngine<'g>| level_loop_until(engine, planner, sources, records, halt);
            let ended = if has_limit { self.engine.level_by_level(all_levels)? } else { all_levels(&mut self.engine)? };
            (levels, end_of) = match ended {
                // The target's level has only leaves that were left out.
                (levels, None) if target_level.is_some_and(|level| levels >= level) => (levels + 1, End::Target),
                (levels, None) => (levels, End::Complete),
                // The last frontier, which was not searched, is a level of the tree too.
                (levels, Some(Halt::Ended(end))) => (levels + 1, end),
                (_, Some(Halt::Stopped)) => {
                    self.engine.give_up();
                    return Ok(None);
                }
            };
            levels += above;
            found = Instant::now();
            self.finish(end_of, output.as_deref_mut())?;
            if self.may_end_in_leaves(end_of) {
                levels += u32::from(self.engine.leaf_is_deepest() == Some(true));
            }
        } else {
            if self.is_stopped() {
                return Ok(None);
            }
            self.records.clear();
            self.engine.begin_dropped()?;
            found = Instant::now();
            self.finish(End::Complete, output.as_deref_mut())?;
            // Depth 0 cuts nothing off if no source has a neighbour.
            end_of = if any_leaf { End::Depth } else { End::Complete };
            levels = u32::from(!sources.is_empty());
        }
        self.outside = any_outside || any_leaf && !self.begins_inside;
        if self.outside {
            let pairs = self.enter_outside(sources, goes_on, output);
            if pairs && goes_on {
                levels = levels.max(2);
            } else if pairs && !self.begins_inside {
                end_of = End::Depth;
            }
        }
        if let Some((_, End::Target)) = limit {
            end_of = End::Target;
        }
        let (root, sources, end) = (sources.first().copied().unwrap_or(NONE), sources.len() as u64, Instant::now());
        let (elapsed, mapping) = (end - begin, end - found);
        Ok(Some(Outcome { root, sources, reached: 0, levels, edges: 0, end: end_of, elapsed, mapping }))
    }

    /// Enters the sources that no level searches and, if the search `goes_on` beyond level 0, the leaves that are the only neighbours of
    /// such sources. Returns whether there is such a leaf that is not a source itself.
    fn enter_outside(&mut self, sources: &[Vertex], goes_on: bool, mut output: Option<&mut Output<'_>>) -> bool {
        let (layout, begins_inside) = (self.layout, self.begins_inside);
        let engine = &mut self.engine;
        let mut enter = |vertex: Vertex, parent: Vertex, level: u32| {
            engine.enter_parent(vertex, parent);
            if let Some(Output { parents, levels, .. }) = &mut output {
                for (array, value) in [(parents, parent), (levels, level)] {
                    if let Some(entry) = array.as_deref_mut().and_then(|array| array.get_mut(vertex as usize)) {
                        *entry = value;
                    }
                }
            }
        };
        let neighbour = |&source: &Vertex| if let Place::Paired(other) = layout.place(source) { Some((source, other)) } else { None };
        for (source, other) in sources.iter().filter_map(neighbour) {
            if goes_on { enter(other, source, 1) } else { enter(other, NONE, NONE) }
        }
        // After the neighbours, which may be sources themselves.
        for &source in sources {
            match layout.place(source) {
                Place::Searched(_) => {}
                Place::LeafOf(_) if begins_inside => {}
                _ => enter(source, source, 0),
            }
        }
        sources.iter().filter_map(neighbour).any(|(_, other)| engine.parents().get(other as usize) != Some(&other))
    }

    /// Ends a search: puts the parents where [`Search::parents`] reads them, or into the caller's arrays.
    fn finish(&mut self, end: End, mut output: Option<&mut Output<'_>>) -> Result<(), DeviceError> {
        let all = end == End::Complete;
        let mut is_done = false;
        if let Some(Output { parents, levels, sources }) = &mut output {
            is_done = self.engine.finish_into(parents.as_deref_mut(), levels.as_deref_mut(), all);
            // The sources are found by the parents.
            if is_done && (sources.is_none() || parents.is_some()) {
                return Ok(());
            }
        }
        if all { self.engine.finish() } else { self.engine.finish_early() }?;
        let Some(output) = output.filter(|_| !is_done) else { return Ok(()) };
        if let Some(parents) = output.parents.as_deref_mut() {
            parents.copy_from_slice(self.engine.parents());
        }
        if let Some(levels) = output.levels.as_deref_mut() {
            self.read_off(levels);
        }
        Ok(())
    }

    /// Whether the last level of the forest may consist of leaves that were left out.
    fn may_end_in_leaves(&self, end: End) -> bool {
        end == End::Complete && self.begins_inside
    }

    fn failed(&self, source: DeviceError) -> SearchError {
        let named = |device: &DeviceUse| match source.code {
            WRONG_NUMBERS => format!("{} (driver {})", device.name, device.driver),
            _ => device.name.clone(),
        };
        // The devices on which a call has failed. If there is none (wrong numbers), any device may be at fault.
        let failed: Vec<_> =
            self.devices.iter().zip(self.engine.failed_devices()).filter_map(|(device, failed)| failed.then_some(device)).collect();
        let suspects = if failed.is_empty() { self.devices.iter().collect() } else { failed };
        let device = suspects.into_iter().map(named).collect::<Vec<_>>().join(" or ");
        SearchError::Device { device, source }
    }

    /// Sets the search up again, without devices. If it may not, or has none any more, the error is that of the device.
    fn fall_back(&mut self, error: DeviceError) -> Result<(), SearchError> {
        if !self.options.fall_back || self.fallen_back.is_some() {
            return Err(self.failed(error));
        }
        let reason = format!("{}: {error}", self.failed(error));
        log::warn!("{reason}; continuing on the CPU alone");
        let options = SearchOptions {
            planner: self.options.planner.on_cpu().unwrap_or_default(),
            devices: Vec::new(),
            fall_back: false,
            ..self.options.clone()
        };
        let new = Self::new(self.layout, &options)?;
        let devices = std::mem::take(&mut self.devices);
        let (stopper, deadline, single_levels) = (self.stopper.clone(), self.deadline, self.single_levels);
        *self = Self { devices, fallen_back: Some(reason), stopper, deadline, ..new };
        self.set_single_levels(single_levels);
        Ok(())
    }

    /// Parents of the last search, by original vertex: the root's is the root itself; [`NONE`] where not reached. Empty before the first
    /// search, and after one that was stopped, that failed on a device, or that wrote its tree into the caller's arrays.
    pub fn parents(&self) -> &[Vertex] {
        if self.has_tree { self.engine.parents() } else { &[] }
    }

    /// Writes the levels of the last search to `levels`, by original vertex ([`NONE`] where not reached). They are computed from the
    /// parents, in time linear in the number of vertices ([`Output::levels`] is faster). A vertex whose parents lead to no root has no
    /// level: a device's driver then has a bug, which `validate` of the crate `socbfs-io` finds.
    ///
    /// # Panics
    /// If `levels` has not exactly one entry per vertex, or if there is no tree ([`Search::parents`] is then empty).
    pub fn levels_into(&self, levels: &mut [u32]) {
        assert_eq!(levels.len(), self.parents().len(), "one level per vertex");
        self.read_off(levels);
    }

    /// Writes the source from which each vertex was reached to `sources`, by original vertex ([`NONE`] where not reached): the one to which
    /// its parents lead, which is one of the nearest. All threads take part; this time is not part of [`Outcome::elapsed`]. If the
    /// layout is renumbered, the first call maps 4 bytes for each vertex that is searched.
    ///
    /// # Panics
    /// As [`Search::levels_into`].
    pub fn sources_into(&mut self, sources: &mut [Vertex]) {
        assert_eq!(sources.len(), self.parents().len(), "one source per vertex");
        self.engine.label(None, sources, self.deepest, self.outside);
    }

    fn read_off(&self, levels: &mut [u32]) {
        if !self.engine.levels_into(levels) {
            levels_of(self.engine.parents(), levels);
        }
    }

    /// What happened at each level of the last search.
    pub fn records(&self) -> &[LevelRecord] {
        self.records.get()
    }

    /// The last search's tree as owned arrays.
    pub fn result(&self, root: Vertex) -> BfsResult {
        let mut level = vec![NONE; self.parents().len()];
        self.levels_into(&mut level);
        BfsResult { root, parent: self.parents().to_vec(), level }
    }
}

/// What measurements and tests switch; a program has no use for it.
impl Search<'_> {
    /// Sets whether a device may run a level before it is planned, if the plan is certain, from the next search on. If it may not, the
    /// record of each level has a time of its own.
    pub fn set_looks_ahead(&mut self, looks_ahead: bool) {
        self.engine.set_looks_ahead(looks_ahead);
    }

    /// Sets whether every level is run and recorded by itself, from the next search on. If not, consecutive levels that are too small for
    /// several threads run in one step and have one record.
    pub fn set_single_levels(&mut self, single_levels: bool) {
        self.single_levels = single_levels;
        self.engine.set_single_levels(single_levels);
    }

    /// Sets whether CPU and devices run their parts of a split level one after the other, the devices first, from the next search on. Each
    /// side is then timed while the other is idle.
    pub fn set_split_in_turn(&mut self, in_turn: bool) {
        self.engine.split_in_turn = in_turn;
    }

    /// Sets whether the state is handed to the device and back before every level on the CPU, from the next search on, so that a handover
    /// can be timed where it would happen.
    pub fn set_handover_round_levels(&mut self, handover: bool) {
        self.engine.handover_round_levels = handover;
    }
}

/// See [`Search::levels_into`].
pub fn levels_of(parents: &[Vertex], levels: &mut [u32]) {
    /// Two marks, larger than any level: vertices whose parents are being followed, and vertices whose parents lead to no root.
    const FOLLOWED: u32 = NONE - 1;
    const ASTRAY: u32 = NONE - 2;
    assert_eq!(levels.len(), parents.len(), "one level per vertex");
    levels.fill(NONE);
    let mut any_astray = false;
    for v in 0..parents.len() {
        // Follows parents to the first vertex whose level is known, counting the steps; then follows them again, writing levels.
        let (mut at, mut steps) = (v, 0);
        while levels[at] == NONE && parents[at] != NONE && parents[at] as usize != at {
            levels[at] = FOLLOWED;
            at = parents[at] as usize;
            steps += 1;
        }
        if levels[at] == NONE && parents[at] as usize == at {
            levels[at] = 0;
        }
        // A cycle, or a parent that was not reached.
        let is_astray = levels[at] >= ASTRAY;
        any_astray |= is_astray && steps > 0;
        let top = levels[at];
        at = v;
        while levels[at] == FOLLOWED {
            levels[at] = if is_astray { ASTRAY } else { top + steps };
            steps -= 1;
            at = parents[at] as usize;
        }
    }
    if any_astray {
        levels.iter_mut().filter(|level| **level == ASTRAY).for_each(|level| *level = NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BuildOptions, EdgeList, Listing, Order};

    /// Where searches begin is decided by this number when a search is set up, and again by the planner at level 0.
    #[test]
    fn vertices_are_counted_as_planners_see_them() {
        // A triangle, a star of which only the centre is not left out, and a vertex without an edge.
        let edges = [[0, 1], [1, 2], [2, 0]].into_iter().chain((4..20).map(|v| [3, v])).collect();
        let edges = EdgeList::new(21, edges, Listing::Once).unwrap();
        for directed in [false, true] {
            for order in [Order::Original, Order::Degree, Order::Bfs] {
                let layout = Layout::build(&edges, &BuildOptions { directed, order, ..BuildOptions::default() }).unwrap();
                let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
                search.run(0).unwrap();
                assert_eq!(searched(&layout), search.records()[0].stats.vertices, "{directed} {order:?}");
            }
        }
    }

    #[test]
    fn levels_are_computed_from_parents_even_if_these_form_no_tree() {
        let levels = |parents: &[Vertex]| {
            let mut levels = vec![7; parents.len()];
            levels_of(parents, &mut levels);
            levels
        };
        assert_eq!(levels(&[1, 1, 0, 2, NONE]), [1, 0, 2, 3, NONE]);
        assert_eq!(levels(&[]), [0; 0]);
        // A tree next to a cycle and vertices that lead into it; a parent that was not reached; several cycles.
        assert_eq!(levels(&[1, 2, 1, 0, 4, 4]), [NONE, NONE, NONE, NONE, 0, 1]);
        assert_eq!(levels(&[NONE, 0, 1, 3]), [NONE, NONE, NONE, 0]);
        assert_eq!(levels(&[1, 0, 3, 2]), [NONE; 4]);
        // Each vertex is visited twice, for any number of cycles.
        let pairs: Vec<Vertex> = (0..300_000).map(|v| v ^ 1).collect();
        assert!(levels(&pairs).iter().all(|&level| level == NONE));
        let n = 300_000;
        let circle: Vec<Vertex> = (0..n).map(|v| (v + 1) % n).collect();
        assert!(levels(&circle).iter().all(|&level| level == NONE));
        let path: Vec<Vertex> = (0..n).map(|v| v.saturating_sub(1)).collect();
        assert!(levels(&path).iter().enumerate().all(|(v, &level)| level as usize == v));
        let astray: Vec<Vertex> = (0..n).map(|v| if v == 0 { NONE } else { v - 1 }).collect();
        assert!(levels(&astray).iter().all(|&level| level == NONE));
    }
}
