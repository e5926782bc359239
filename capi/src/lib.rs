//! The C interface of socbfs. `include/socbfs.h` is made from this file, comments included.
//!
//! Every entry point catches panics, checks its pointers for null, and sets the message of its thread if it fails. Handles are used as
//! shared references; those that change have locks inside, so that a program that uses one from two threads gets a code and no data race.
#![allow(non_camel_case_types, reason = "the names of C")]

mod grid;
mod handle;
mod log_to;
mod message;

use std::{
    cell::RefCell,
    ffi::{CStr, CString, c_char, c_void},
    path::Path,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use bfs::{
    CpuEngineError, DeviceChoice, Direction, EngineError, Layout, LevelRecord, Output, Placement, Run,
    graph::{BuildOptions, EdgeList, GraphError, Listing, NONE, Numbers, RowArrays},
    search::{End, OwnedSearch, SearchError, Stopper},
    threads::MOST_THREADS,
    words::{with_causes, with_cure},
};
use socbfs_algo::{Components, ManySearch, many::LevelNumber};
use socbfs_boards::{
    Runtime,
    board::Goal,
    runtime::{Origin, Profile, RuntimeError, Setting, Step},
};
use socbfs_io::{Fault, InputError, ReadOptions};
use socbfs_power::{Meter, Selection, SystemFiles, Window};

use self::{
    handle::{array, array_mut, free, give, lock, out, pointer, text},
    log_to::Logger,
    message::{Failure, entry},
};

/// The result of a call.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum socbfs_code {
    /// The call succeeded.
    SOCBFS_OK = 0,
    /// A pointer that must not be null is null.
    SOCBFS_NULL = 1,
    /// A number is out of range, or an array has the wrong length.
    SOCBFS_ARGUMENT = 2,
    /// The file can't be read, or the file or the arrays do not hold a graph.
    SOCBFS_INPUT = 3,
    /// There is not enough memory, or threads can't be started.
    SOCBFS_MEMORY = 4,
    /// A device, a board or a setting is not available.
    SOCBFS_DEVICE = 5,
    /// The call was stopped: a search has no tree, and nothing was made.
    SOCBFS_STOPPED = 6,
    /// Another thread uses the handle.
    SOCBFS_BUSY = 7,
    /// There is no power sensor that may be read, or the window was not measured.
    SOCBFS_NO_SENSOR = 8,
    /// A bug in the library. Free the handle; other handles are not affected.
    SOCBFS_PANIC = 9,
}

/// The parent or the level of a vertex that was not reached; as a depth or a target: no such limit.
pub const SOCBFS_NONE: u32 = u32::MAX;

/// Flag of a graph: arcs are kept as they are. Without it every edge is undirected.
pub const SOCBFS_DIRECTED: u32 = 1;

/// The search reached every vertex that can be reached.
pub const SOCBFS_COMPLETE: u32 = 0;
/// The search ended at the depth limit.
pub const SOCBFS_DEPTH: u32 = 1;
/// The search ended when it had reached the target.
pub const SOCBFS_TARGET: u32 = 2;

/// A graph, ready to be searched. Searches keep what they need of it: the graph may be freed before them.
pub struct socbfs_graph {
    layout: Arc<Layout>,
}

/// Settings of searches: device, policy, board, threads.
pub struct socbfs_runtime {
    runtime: Runtime,
}

/// Searches one graph any number of times.
pub struct socbfs_search {
    search: Mutex<OwnedSearch>,
    components: Mutex<Components>,
    stopper: Stopper,
    /// Why the search continues without its device, once a program has asked.
    fallen_back: OnceLock<CString>,
}

/// Searches one graph from many roots, up to 256 of them in a pass.
pub struct socbfs_many {
    search: Mutex<ManySearch<Arc<Layout>>>,
    stopper: Stopper,
}

/// Stops calls that make a graph, and measurements for a search.
pub struct socbfs_stopper {
    stopper: Stopper,
}

thread_local! {
    /// What stops the calls of this thread: see `socbfs_stopped_by`.
    static STOPPED_BY: RefCell<Stopper> = RefCell::default();
}

/// What stops the calls of this thread that make something.
fn stopped_by() -> Stopper {
    // A thread that is ending has none any more.
    STOPPED_BY.try_with(|stopper| stopper.borrow().clone()).unwrap_or_default()
}

/// Stops the work of a handle, or lets it run again. A null handle has no stopper.
fn hold(stopper: Option<&Stopper>, stops: bool) {
    if let Some(stopper) = stopper {
        if stops { stopper.stop() } else { stopper.reset() }
    }
}

/// Measures energy.
pub struct socbfs_meter {
    meter: Mutex<(Meter, Option<Window>)>,
    scope: CString,
}

/// What a search did.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct socbfs_outcome {
    /// Vertices reached, the root included (of many searches: their sum).
    pub reached: u64,
    /// Edges as Graph500 counts them: both ends reached, repeats counted, self-loops not. After SOCBFS_DEPTH and SOCBFS_TARGET the edges
    /// that leave the tree count as well: half each, in a directed graph whole. 0 for many searches.
    pub edges: u64,
    /// Nanoseconds from the call to the parents or levels.
    pub nanoseconds: u64,
    /// Levels of the (deepest) tree: a root alone is 1.
    pub levels: u32,
    /// SOCBFS_COMPLETE, SOCBFS_DEPTH or SOCBFS_TARGET.
    pub end: u32,
}

/// The CPU ran a level.
pub const SOCBFS_ON_CPU: u32 = 0;
/// The GPU ran a level.
pub const SOCBFS_ON_GPU: u32 = 1;
/// A level was split between CPU and GPU.
pub const SOCBFS_ON_BOTH: u32 = 2;
/// From this level on, CPU and GPU searched independently to the end.
pub const SOCBFS_APART: u32 = 3;

/// What one level of a search did, or several levels that were too small to share among threads and ran in one step. Vertices are those of
/// the searched structure, which leaves some out: vertices without an edge, and most with a single one.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct socbfs_level {
    /// Vertices in the frontier.
    pub frontier_vertices: u64,
    /// Arcs that leave the frontier. May be an estimate.
    pub frontier_edges: u64,
    /// Vertices not yet visited.
    pub unvisited_vertices: u64,
    /// Arcs of vertices not yet visited. May be an estimate.
    pub unvisited_edges: u64,
    /// Vertices found.
    pub found: u64,
    /// Time, with what follows.
    pub nanoseconds: u64,
    /// The part of it that decided how the level runs.
    pub decision_ns: u64,
    /// The part of it that converted the frontier between queue and bitmap.
    pub conversion_ns: u64,
    /// The part of it that handed memory over between CPU and GPU.
    pub handover_ns: u64,
    /// The (first) level: 0 expands the root.
    pub level: u32,
    /// Number of levels.
    pub levels: u32,
    /// 1: bottom-up, unvisited vertices look for a neighbour in the frontier; 0: top-down.
    pub bottom_up: u32,
    /// SOCBFS_ON_CPU, SOCBFS_ON_GPU, SOCBFS_ON_BOTH or SOCBFS_APART.
    pub place: u32,
    /// The planned share of the GPU in thousandths.
    pub gpu_permille: u32,
    /// CPU threads that took part.
    pub threads: u32,
}

/// The energy of a window of time.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct socbfs_energy {
    /// Energy of all rails that are added up.
    pub joules: f64,
    /// Length of the window.
    pub seconds: f64,
}

/// Reports steps that take long: a text when a step begins, null when it ends. It must not call the library, and must not throw.
pub type socbfs_progress = Option<unsafe extern "C" fn(user: *mut c_void, step: *const c_char)>;

/// Receives messages: level 1 is an error, 2 a warning, 3 information, 4 debugging. `message` is valid until the callback returns. Called
/// from any thread. It must not call socbfs_log_to, and must not throw.
pub type socbfs_log = Option<unsafe extern "C" fn(user: *mut c_void, level: u32, message: *const c_char)>;

/// The version of the library, as text.
#[unsafe(no_mangle)]
pub extern "C" fn socbfs_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The reason and the cure of this thread's last failed call. Valid until the thread's next failed call; never null.
#[unsafe(no_mangle)]
pub extern "C" fn socbfs_message() -> *const c_char {
    message::last()
}

/// Sends messages of the library up to `level` to `callback` (level 0 or a null callback: nowhere). This is the only setting for the whole
/// process. Returns SOCBFS_ARGUMENT if the program is a Rust program with its own logger.
///
/// # Safety
/// `callback` may be called with `user`, from any thread, until the next call of this function has returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_log_to(level: u32, callback: socbfs_log, user: *mut c_void) -> socbfs_code {
    entry(|| Logger::install(level, callback, user))
}

/// Makes a stopper, which stops calls as soon as socbfs_stopper_stop is called, or `seconds` from now (a negative number: no deadline).
///
/// # Safety
/// `stopper` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_stopper_new(seconds: f64, stopper: *mut *mut socbfs_stopper) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let stopper = unsafe { out(stopper, "stopper") }?;
        give(stopper, socbfs_stopper { stopper: Stopper::at(deadline(seconds)?) });
        Ok(())
    })
}

/// Stops calls. It may be called from any thread and from a signal handler, but not after the stopper is freed.
///
/// # Safety
/// `stopper` is null or a stopper.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_stopper_stop(stopper: *const socbfs_stopper) {
    // SAFETY: the caller's promise.
    hold(unsafe { stopper.as_ref() }.map(|stopper| &stopper.stopper), true);
}

/// From now on, `stopper` stops the calls of this thread that make a graph, also while they wait for a pipe, and the measurements of
/// socbfs_search_new on a device: they return SOCBFS_STOPPED. Null: nothing stops them. A call of a driver is not stopped. The stopper may
/// be freed before it is replaced here.
///
/// # Safety
/// `stopper` is null or a stopper.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_stopped_by(stopper: *const socbfs_stopper) {
    // SAFETY: the caller's promise.
    let stopper = unsafe { stopper.as_ref() }.map(|stopper| stopper.stopper.clone()).unwrap_or_default();
    // A thread that is ending makes nothing any more.
    let _ = STOPPED_BY.try_with(|stopped_by| *stopped_by.borrow_mut() = stopper);
}

/// Frees a stopper, as socbfs_graph_free frees a graph.
///
/// # Safety
/// As for socbfs_graph_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_stopper_free(stopper: *mut *mut socbfs_stopper) {
    // SAFETY: the caller's promise.
    unsafe { free(stopper) }
}

/// The time that is `seconds` from now; `None` for a negative number, and for one that is too large to matter.
fn deadline(seconds: f64) -> Result<Option<Instant>, Failure> {
    if seconds.is_nan() {
        return Err(Failure::argument("the deadline is not a number of seconds".to_owned()));
    }
    Ok(Duration::try_from_secs_f64(seconds).ok().and_then(|wait| Instant::now().checked_add(wait)))
}

/// Makes a graph from compressed sparse rows: the targets of vertex v are targets[offsets[v]] to targets[offsets[v + 1] - 1]. `offsets` has
/// vertices + 1 numbers. Both arrays are read in place, without a copy, and are not needed after the call: the graph has sorted arrays of
/// its own. `threads` is the number of threads that build it (0: one for every CPU that the process may run on).
///
/// # Safety
/// The arrays have the lengths described here; `graph` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_graph_from_csr(
    vertices: u32,
    offsets: *const u32,
    targets: *const u32,
    flags: u32,
    threads: u32,
    graph: *mut *mut socbfs_graph,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let offsets = unsafe { array(offsets, offsets_of(vertices)?, "offsets") }?;
        let entries = offsets[vertices as usize] as usize;
        // SAFETY: the caller's promise.
        let targets = unsafe { array(targets, entries, "targets") }?;
        // SAFETY: the caller's promise.
        unsafe { from_rows(Numbers::Bits32(offsets), targets, flags, threads, graph) }
    })
}

/// As socbfs_graph_from_csr, with offsets of 64 bits.
///
/// # Safety
/// As for socbfs_graph_from_csr.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_graph_from_csr64(
    vertices: u32,
    offsets: *const u64,
    targets: *const u32,
    flags: u32,
    threads: u32,
    graph: *mut *mut socbfs_graph,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let offsets = unsafe { array(offsets, offsets_of(vertices)?, "offsets") }?;
        let last = offsets[vertices as usize];
        let entries =
            usize::try_from(last).map_err(|_| Failure::argument(format!("{last} targets are more than this system can address")))?;
        // SAFETY: the caller's promise.
        let targets = unsafe { array(targets, entries, "targets") }?;
        // SAFETY: the caller's promise.
        unsafe { from_rows(Numbers::Bits64(offsets), targets, flags, threads, graph) }
    })
}

/// The number of offsets of `vertices` vertices, which may not fit into 32 bits.
fn offsets_of(vertices: u32) -> Result<usize, Failure> {
    let offsets = (vertices as usize).checked_add(1);
    offsets.ok_or_else(|| Failure::argument(format!("{vertices} vertices are more than this system can address")))
}

/// # Safety
/// `graph` points to a pointer.
unsafe fn from_rows(offsets: Numbers<'_>, targets: &[u32], flags: u32, threads: u32, graph: *mut *mut socbfs_graph) -> Result<(), Failure> {
    let rows = RowArrays::new(offsets, Numbers::Bits32(targets), Listing::Unknown)?;
    // SAFETY: passed on.
    unsafe { build(flags, threads, graph, |options| Ok(Layout::build_from(&rows, options)?)) }
}

/// Makes a graph from edges: pairs[2 * i] and pairs[2 * i + 1] are the ends of edge i. The edges are copied.
///
/// # Safety
/// `pairs` holds 2 * edges numbers; `graph` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_graph_from_edges(
    vertices: u32,
    pairs: *const u32,
    edges: usize,
    flags: u32,
    threads: u32,
    graph: *mut *mut socbfs_graph,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise; two numbers are a pair.
        let pairs = unsafe { array(pairs.cast::<[u32; 2]>(), edges, "pairs") }?;
        let mut list = Vec::new();
        list.try_reserve_exact(edges).map_err(|error| Failure::memory(format!("{edges} edges: {error}; use a smaller graph")))?;
        list.extend_from_slice(pairs);
        let list = EdgeList::new(vertices as usize, list, Listing::Unknown)?;
        // SAFETY: the caller's promise.
        unsafe { build(flags, threads, graph, |options| Ok(Layout::build(&list, options)?)) }
    })
}

/// Makes a graph from a file, in any of the formats that `socbfs convert --help` lists. `path` is passed to the system as it is.
///
/// # Safety
/// `path` is a string that ends in 0; `graph` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_graph_from_file(
    path: *const c_char,
    flags: u32,
    threads: u32,
    graph: *mut *mut socbfs_graph,
) -> socbfs_code {
    entry(|| {
        if path.is_null() {
            return Err(Failure::null("path"));
        }
        // SAFETY: the caller's promise.
        let path = unsafe { CStr::from_ptr(path) };
        let path: &Path = Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(path.to_bytes()));
        // SAFETY: the caller's promise.
        unsafe {
            build(flags, threads, graph, |options| {
                let reading = ReadOptions { stopper: options.stopper.clone(), ..ReadOptions::default() };
                Ok(Layout::build(&socbfs_io::read(path, &reading)?, options)?)
            })
        }
    })
}

/// Refuses more threads than the limit: the system would start them, and lack threads elsewhere.
fn refuse_too_many(threads: u32) -> Result<(), Failure> {
    if threads as usize > MOST_THREADS {
        return Err(RuntimeError::TooManyThreads(threads as usize).into());
    }
    Ok(())
}

/// # Safety
/// `graph` points to a pointer.
unsafe fn build(
    flags: u32,
    threads: u32,
    graph: *mut *mut socbfs_graph,
    make: impl FnOnce(&BuildOptions) -> Result<Layout, Failure> + Send,
) -> Result<(), Failure> {
    // SAFETY: passed on.
    let graph = unsafe { out(graph, "graph") }?;
    if flags & !SOCBFS_DIRECTED != 0 {
        return Err(Failure::argument(format!("flags {flags:#x} are not known: 0 or SOCBFS_DIRECTED")));
    }
    refuse_too_many(threads)?;
    let options = BuildOptions { directed: flags & SOCBFS_DIRECTED != 0, stopper: stopped_by(), ..BuildOptions::default() };
    // A pool of its own: a library must not start the global pool of the process.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build();
    let pool =
        pool.map_err(|error| Failure::memory(format!("can't start {}: {error}; use fewer", bfs::words::threads(threads as usize))))?;
    let layout = Arc::new(pool.install(|| make(&options))?);
    give(graph, socbfs_graph { layout });
    Ok(())
}

/// The number of vertices (0 for a null graph).
///
/// # Safety
/// `graph` is null or a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_graph_vertices(graph: *const socbfs_graph) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { graph.as_ref() }.map_or(0, |graph| graph.layout.vertices() as u32)
}

/// The number of edges as listed, without self-loops (0 for a null graph). If the list has both directions of every edge, each edge counts
/// once.
///
/// # Safety
/// `graph` is null or a graph.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_graph_edges(graph: *const socbfs_graph) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { graph.as_ref() }.map_or(0, |graph| graph.layout.stats().edges)
}

/// Frees a graph and sets the pointer to null. A null pointer is ignored, so that the same variable may be freed twice.
///
/// # Safety
/// `graph` is null, or points to null or to a graph that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_graph_free(graph: *mut *mut socbfs_graph) {
    // SAFETY: the caller's promise.
    unsafe { free(graph) }
}

/// Makes settings of searches, each as on the command line of `socbfs`; null (0) selects what fits this machine. `device` is "auto", "cpu",
/// "gpu" or a name (null: "cpu"), `policy` is one that `socbfs bench --help` lists, but none with a file (`replay:FILE`, `surf:FILE`,
/// `mlp:FILE`), `board` is the name or the file of a profile.
///
/// # Safety
/// Each text is null or a string that ends in 0; `runtime` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_runtime_new(
    device: *const c_char,
    policy: *const c_char,
    board: *const c_char,
    threads: u32,
    runtime: *mut *mut socbfs_runtime,
) -> socbfs_code {
    // SAFETY: the caller's promise.
    unsafe { socbfs_runtime_new_at(device, policy, board, threads, std::ptr::null(), runtime) }
}

/// As socbfs_runtime_new, on an operating point of the board's profile, as `socbfs sweep` measures them: its CPUs and, unless they are
/// given, its number of threads and its device. `at` is "fastest", "efficient" (most MTEPS/W), "product" (least energy times time) or null.
/// Clocks are not set.
///
/// # Safety
/// As for socbfs_runtime_new; `at` is null or a string that ends in 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_runtime_new_at(
    device: *const c_char,
    policy: *const c_char,
    board: *const c_char,
    threads: u32,
    at: *const c_char,
    runtime: *mut *mut socbfs_runtime,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (device, policy, board, at, runtime) =
            unsafe { (text(device, "device")?, text(policy, "policy")?, text(board, "board")?, text(at, "at")?, out(runtime, "runtime")?) };
        let profile = match board {
            Some(board) => Profile::named(Path::new(board)),
            None => Profile::detected(),
        };
        let at = at.map(str::parse::<Goal>).transpose().map_err(|error| Failure::argument(with_causes("", &error)))?;
        let given = device.is_some();
        let Ok(device) = device.unwrap_or("cpu").parse();
        let device = Setting { value: device, origin: if given { Origin::Flag } else { Origin::BuiltIn } };
        let policy =
            policy.map(str::parse::<socbfs_policy::Policy>).transpose().map_err(|error| Failure::argument(with_causes("", &error)))?;
        let mut settings = Runtime { device, ..Runtime::new(profile?) };
        if let Some(policy) = policy {
            settings.policy = Setting::flag(policy);
        }
        if threads > 0 {
            settings.threads = Setting::flag(threads as usize);
        }
        if let Some(goal) = at {
            settings.run_at(goal)?;
        }
        settings.check_threads()?;
        give(runtime, socbfs_runtime { runtime: settings });
        Ok(())
    })
}

/// Frees a runtime, as socbfs_graph_free frees a graph.
///
/// # Safety
/// As for socbfs_graph_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_runtime_free(runtime: *mut *mut socbfs_runtime) {
    // SAFETY: the caller's promise.
    unsafe { free(runtime) }
}

/// Sets up a search: opens devices, allocates everything, starts threads. With a null `runtime` it runs on the CPU, with the settings that
/// fit this machine. `progress` may be null.
///
/// # Safety
/// `graph` is a graph, `runtime` null or a runtime; `progress` may be called with `user` until the call returns; `search` points to a
/// pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_new(
    graph: *const socbfs_graph,
    runtime: *const socbfs_runtime,
    progress: socbfs_progress,
    user: *mut c_void,
    search: *mut *mut socbfs_search,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (graph, runtime, search) = unsafe { (pointer(graph, "graph")?, runtime.as_ref(), out(search, "search")?) };
        let tell = |step: Option<Step>| {
            let Some(progress) = progress else { return };
            let text = match step {
                None => std::ptr::null(),
                Some(Step::Kernels) => c"compiling the kernels for the device".as_ptr(),
                Some(Step::WorkGroups) => c"comparing sizes of work-groups".as_ptr(),
                Some(Step::Thresholds) => c"measuring where CPU and device are faster".as_ptr(),
                Some(Step::Directions) => c"measuring the costs of both directions".as_ptr(),
            };
            // SAFETY: the caller's promise.
            unsafe { progress(user, text) };
        };
        let settings = match runtime {
            Some(runtime) => runtime.runtime.clone(),
            None => Runtime { device: Setting::flag(DeviceChoice::Cpu), ..Runtime::detect()? },
        };
        let settings = Runtime { stopper: stopped_by(), ..settings };
        let mut owned =
            OwnedSearch::new(Arc::clone(&graph.layout), |layout| Ok::<_, RuntimeError>(settings.search_telling(layout, &tell)?.search))?;
        // Searches are stopped by socbfs_search_stop alone.
        let stopper = Stopper::default();
        owned.with(|search| search.set_stopper(stopper.clone()));
        let components = Mutex::default();
        give(search, socbfs_search { search: Mutex::new(owned), components, stopper, fallen_back: OnceLock::new() });
        Ok(())
    })
}

/// Searches from `root`. It allocates nothing. `outcome` may be null.
///
/// # Safety
/// `search` is a search; `outcome` is null or points to an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_run(search: *const socbfs_search, root: u32, outcome: *mut socbfs_outcome) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (search, outcome) = unsafe { (pointer(search, "search")?, outcome.as_mut()) };
        searched(search, root.into(), outcome)
    })
}

/// Searches from `root` up to distance `depth`, or until `target` is reached (SOCBFS_NONE: no such limit). The tree is the complete tree
/// cut off below the last level; the outcome says why the search ended. It allocates nothing. `outcome` may be null.
///
/// # Safety
/// As for socbfs_search_run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_run_until(
    search: *const socbfs_search,
    root: u32,
    depth: u32,
    target: u32,
    outcome: *mut socbfs_outcome,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (search, outcome) = unsafe { (pointer(search, "search")?, outcome.as_mut()) };
        searched(search, Run { depth: limit(depth), target: limit(target), ..root.into() }, outcome)
    })
}

/// As socbfs_search_run_until, from the `count` vertices of `sources` at once: levels are distances from the nearest of them, and each
/// source is its own parent. A source may be given more than once; without a source nothing is reached. It allocates nothing.
///
/// # Safety
/// As for socbfs_search_run; `sources` has `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_run_from(
    search: *const socbfs_search,
    sources: *const u32,
    count: usize,
    depth: u32,
    target: u32,
    outcome: *mut socbfs_outcome,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (search, sources, outcome) = unsafe { (pointer(search, "search")?, array(sources, count, "sources")?, outcome.as_mut()) };
        searched(search, Run { depth: limit(depth), target: limit(target), ..sources.into() }, outcome)
    })
}

/// As socbfs_search_run_until, but writes the parents to `parents` and the levels to `levels`: arrays of the caller with `length` numbers,
/// one for each vertex. Either may be null; they must not overlap. If no device takes part, nothing is copied, and levels alone (of at most
/// 255 levels) take no longer than parents alone. Afterwards socbfs_search_parents and socbfs_search_levels have no result. It allocates
/// nothing. `outcome` may be null; if both arrays are, its `reached` and `edges` are 0.
///
/// # Safety
/// As for socbfs_search_run; `parents` and `levels` are null or have room for `length` numbers each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_run_into(
    search: *const socbfs_search,
    root: u32,
    depth: u32,
    target: u32,
    parents: *mut u32,
    levels: *mut u32,
    length: usize,
    outcome: *mut socbfs_outcome,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let given = |start: *mut u32, what: &str| unsafe { (!start.is_null()).then(|| array_mut(start, length, what)).transpose() };
        // SAFETY: the caller's promise.
        let (search, outcome) = unsafe { (pointer(search, "search")?, outcome.as_mut()) };
        apart((parents.cast_const(), length, "parents"), (levels.cast_const(), length, "levels"))?;
        let output = Output { parents: given(parents, "parents")?, levels: given(levels, "levels")?, sources: None };
        searched(search, Run { depth: limit(depth), target: limit(target), output: Some(output), ..root.into() }, outcome)
    })
}

/// Searches, and counts what was reached if there is an outcome.
fn searched(search: &socbfs_search, run: Run<'_>, outcome: Option<&mut socbfs_outcome>) -> Result<(), Failure> {
    let mut search = lock(&search.search)?;
    #[cfg(feature = "planted-panic")]
    #[allow(clippy::panic, reason = "it is what this feature is for")]
    if run.sources.as_slice() == [SOCBFS_NONE - 1] {
        panic!("planted");
    }
    let done = search.with(|search| search.run(Run { uncounted: outcome.is_none(), ..run }))?;
    if let Some(outcome) = outcome {
        let nanoseconds = done.elapsed.as_nanos() as u64;
        *outcome = socbfs_outcome { reached: done.reached, edges: done.edges, nanoseconds, levels: done.levels, end: code_of(done.end) };
    }
    Ok(())
}

fn limit(number: u32) -> Option<u32> {
    (number != SOCBFS_NONE).then_some(number)
}

fn code_of(end: End) -> u32 {
    match end {
        End::Complete => SOCBFS_COMPLETE,
        End::Depth => SOCBFS_DEPTH,
        End::Target => SOCBFS_TARGET,
    }
}

/// Refuses arrays that share memory: each is its start, which may be null, its length, and its name.
fn apart<A, B>((a, of_a, first): (*const A, usize, &str), (b, of_b, second): (*const B, usize, &str)) -> Result<(), Failure> {
    let end = |start: usize, size: usize, length: usize| start.saturating_add(size.saturating_mul(length));
    let overlap = a.addr() < end(b.addr(), size_of::<B>(), of_b) && b.addr() < end(a.addr(), size_of::<A>(), of_a);
    if overlap && !a.is_null() && !b.is_null() {
        return Err(Failure::argument(format!("{first} and {second} overlap")));
    }
    Ok(())
}

/// Gives the parents of the last search, one for each vertex: the root is its own parent, SOCBFS_NONE stands for a vertex not reached. The
/// array belongs to the search, and is valid until its next search or until it is freed. `count` receives the number of parents and may be
/// null. Before the first search, and after one that was stopped, the count is 0 and the array null.
///
/// # Safety
/// `search` is a search, `parents` points to a pointer, `count` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_parents(search: *const socbfs_search, parents: *mut *const u32, count: *mut u32) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (search, parents) = unsafe { (pointer(search, "search")?, parents.as_mut().ok_or_else(|| Failure::null("parents"))?) };
        let search = lock(&search.search)?;
        let all = search.get().parents();
        // The pointer of an empty slice points to no memory.
        *parents = if all.is_empty() { std::ptr::null() } else { all.as_ptr() };
        // SAFETY: the caller's promise.
        if let Some(count) = unsafe { count.as_mut() } {
            *count = all.len() as u32;
        }
        Ok(())
    })
}

/// Writes the levels of the last search to `levels`: 0 for the root, SOCBFS_NONE for a vertex not reached. `length` must be the number of
/// vertices. It allocates nothing.
///
/// # Safety
/// `search` is a search, `levels` has room for `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_levels(search: *const socbfs_search, levels: *mut u32, length: usize) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (search, levels) = unsafe { (pointer(search, "search")?, array_mut(levels, length, "levels")?) };
        let search = lock(&search.search)?;
        fits(&search, length, "levels")?;
        search.get().levels_into(levels);
        Ok(())
    })
}

/// Writes the source from which the last search reached each vertex to `sources`, one of the nearest: SOCBFS_NONE for a vertex not reached.
/// `length` must be the number of vertices. It allocates nothing but the first time.
///
/// # Safety
/// `search` is a search, `sources` has room for `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_sources(search: *const socbfs_search, sources: *mut u32, length: usize) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (search, sources) = unsafe { (pointer(search, "search")?, array_mut(sources, length, "sources")?) };
        let mut search = lock(&search.search)?;
        fits(&search, length, "sources")?;
        search.with(|search| search.sources_into(sources));
        Ok(())
    })
}

/// Finds the connected components, in a directed graph the weak ones. Writes the number of each vertex's component to `labels` and how many
/// there are to `count`, which may be NULL. Components are numbered from 0 in the order of their first vertices. The threads of the search
/// take part, and no device. The first call allocates 20 bytes for each vertex that is searched, or twice as many. The result of the last
/// search stays.
///
/// # Safety
/// `labels` has `length` entries, one for each vertex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_components(
    search: *const socbfs_search,
    labels: *mut u32,
    length: usize,
    count: *mut usize,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (search, labels) = unsafe { (pointer(search, "search")?, array_mut(labels, length, "labels")?) };
        let mut components = lock(&search.components)?;
        let found = lock(&search.search)?.with(|search| components.find(search, labels))?;
        // SAFETY: the caller's promise.
        if let Some(count) = unsafe { count.as_mut() } {
            *count = found;
        }
        Ok(())
    })
}

/// Writes what each level of the last search did to `levels`, in their order: at most `room` of them. `levels` may be null if `room` is 0.
/// `count` receives their number, which is 4096 at most (deeper levels are added up in the last entry), and may be null. A search that was
/// stopped has the levels that it ran. It allocates nothing.
///
/// # Safety
/// `search` is a search, `levels` has room for `room` entries, `count` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_account(
    search: *const socbfs_search,
    levels: *mut socbfs_level,
    room: usize,
    count: *mut usize,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (search, levels, count) = unsafe { (pointer(search, "search")?, array_mut(levels, room, "levels")?, count.as_mut()) };
        let search = lock(&search.search)?;
        let records = search.get().records();
        for (level, record) in levels.iter_mut().zip(records) {
            *level = c_level(record);
        }
        if let Some(count) = count {
            *count = records.len();
        }
        Ok(())
    })
}

fn c_level(record: &LevelRecord) -> socbfs_level {
    let LevelRecord { stats, plan, .. } = record;
    let (place, gpu_permille) = match plan.placement {
        Placement::Cpu => (SOCBFS_ON_CPU, 0),
        Placement::Gpu(_) => (SOCBFS_ON_GPU, 1000),
        Placement::Split { gpu_permille, .. } => (SOCBFS_ON_BOTH, gpu_permille),
        Placement::Apart { gpu_permille } => (SOCBFS_APART, gpu_permille),
    };
    socbfs_level {
        frontier_vertices: stats.frontier_vertices,
        frontier_edges: stats.frontier_edges,
        unvisited_vertices: stats.unvisited_vertices,
        unvisited_edges: stats.unvisited_edges,
        found: record.found,
        nanoseconds: record.elapsed_ns,
        decision_ns: record.decision_ns,
        conversion_ns: record.conversion_ns,
        handover_ns: record.handover_ns,
        level: stats.level,
        levels: record.levels,
        bottom_up: (plan.direction == Direction::BottomUp).into(),
        place,
        gpu_permille: gpu_permille.into(),
        threads: record.threads,
    }
}

/// Checks that an array of `length` entries has one for each vertex of the last tree.
fn fits(search: &OwnedSearch, length: usize, what: &str) -> Result<(), Failure> {
    let parents = search.get().parents().len();
    if parents == length {
        return Ok(());
    }
    let why = if parents == 0 { "; there is no tree of a search" } else { "" };
    Err(Failure::argument(format!("there is room for {length} {what}, but the tree has {parents} vertices{why}")))
}

/// Why the search continues on the CPU without its device, in words; null if it has all devices that it was set up with, for a null search,
/// and while another thread searches. With the device "auto", a search whose device is lost goes on without it, and one whose device can't
/// be opened is set up without it, which only a message of socbfs_log_to says. Valid until the search is freed.
///
/// # Safety
/// `search` is null or a search.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_fallen_back(search: *const socbfs_search) -> *const c_char {
    // SAFETY: the caller's promise.
    let Some(search) = (unsafe { search.as_ref() }) else { return std::ptr::null() };
    // A panic must not unwind into the caller. No message is stored, since this function returns no code.
    let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let guard = lock(&search.search).ok()?;
        let why = guard.get().fallen_back()?;
        Some(search.fallen_back.get_or_init(|| message::without_zeros(why)).as_ptr())
    }));
    asked.ok().flatten().unwrap_or(std::ptr::null())
}

/// Stops the running search and those that follow, until socbfs_search_go_on. It may be called from any thread and from a signal handler,
/// but not after the search is freed.
///
/// # Safety
/// `search` is null or a search.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_stop(search: *const socbfs_search) {
    // SAFETY: the caller's promise.
    hold(unsafe { search.as_ref() }.map(|search| &search.stopper), true);
}

/// Lets searches run again.
///
/// # Safety
/// `search` is null or a search.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_go_on(search: *const socbfs_search) {
    // SAFETY: the caller's promise.
    hold(unsafe { search.as_ref() }.map(|search| &search.stopper), false);
}

/// Searches that have not ended within `seconds` from now are stopped between two levels (a negative number: no deadline).
///
/// # Safety
/// `search` is a search.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_deadline(search: *const socbfs_search, seconds: f64) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let search = unsafe { pointer(search, "search") }?;
        let deadline = deadline(seconds)?;
        lock(&search.search)?.with(|search| search.set_deadline(deadline));
        Ok(())
    })
}

/// Frees a search, as socbfs_graph_free frees a graph. No call with it may be running.
///
/// # Safety
/// As for socbfs_graph_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_search_free(search: *mut *mut socbfs_search) {
    // SAFETY: the caller's promise.
    unsafe { free(search) }
}

/// Sets up searches from many roots, on `threads` threads (0: one for every CPU that the process may run on).
///
/// # Safety
/// `graph` is a graph; `many` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_many_new(graph: *const socbfs_graph, threads: u32, many: *mut *mut socbfs_many) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (graph, many) = unsafe { (pointer(graph, "graph")?, out(many, "many")?) };
        refuse_too_many(threads)?;
        let search = ManySearch::new(Arc::clone(&graph.layout), threads as usize, &[])?;
        let stopper = search.stopper();
        give(many, socbfs_many { search: Mutex::new(search), stopper });
        Ok(())
    })
}

/// Searches from `count` roots, up to 256 in a pass, and writes levels as bytes (255: not reached): levels[v * count + i] is the level of
/// vertex v in the search from roots[i]. Returns SOCBFS_ARGUMENT if a level is deeper than 254, or `length` is not vertices * count. It
/// allocates nothing. `outcome` may be null.
///
/// # Safety
/// `many` is a handle; the arrays have the lengths given; `outcome` is null or points to an outcome.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_many_levels8(
    many: *const socbfs_many,
    roots: *const u32,
    count: usize,
    levels: *mut u8,
    length: usize,
    outcome: *mut socbfs_outcome,
) -> socbfs_code {
    // SAFETY: the caller's promise.
    unsafe { many_trees(many, roots, count, levels, std::ptr::null_mut(), length, outcome) }
}

/// As socbfs_many_levels8 with levels of 32 bits, and with parents in the same order if `parents` is not null. Each array has `length`
/// numbers.
///
/// # Safety
/// As for socbfs_many_levels8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_many_trees(
    many: *const socbfs_many,
    roots: *const u32,
    count: usize,
    levels: *mut u32,
    parents: *mut u32,
    length: usize,
    outcome: *mut socbfs_outcome,
) -> socbfs_code {
    // SAFETY: the caller's promise.
    unsafe { many_trees(many, roots, count, levels, parents, length, outcome) }
}

/// # Safety
/// As for socbfs_many_levels8.
unsafe fn many_trees<N: LevelNumber>(
    many: *const socbfs_many,
    roots: *const u32,
    count: usize,
    levels: *mut N,
    parents: *mut u32,
    length: usize,
    outcome: *mut socbfs_outcome,
) -> socbfs_code {
    entry(|| {
        apart((parents.cast_const(), length, "parents"), (levels.cast_const(), length, "levels"))?;
        apart((roots, count, "roots"), (levels.cast_const(), length, "levels"))?;
        apart((roots, count, "roots"), (parents.cast_const(), length, "parents"))?;
        // SAFETY: the caller's promise.
        let (many, roots, levels, parents, outcome) = unsafe {
            let parents = if parents.is_null() { &mut [][..] } else { array_mut(parents, length, "parents")? };
            (pointer(many, "many")?, array(roots, count, "roots")?, array_mut(levels, length, "levels")?, parents, outcome.as_mut())
        };
        let done = lock(&many.search)?.trees_into(roots, levels, parents)?;
        if let Some(outcome) = outcome {
            let nanoseconds = done.elapsed.as_nanos() as u64;
            *outcome = socbfs_outcome { reached: done.reached, levels: done.levels, nanoseconds, ..socbfs_outcome::default() };
        }
        Ok(())
    })
}

/// Stops the running searches and those that follow, until socbfs_many_go_on. It may be called from any thread and from a signal handler,
/// but not after the handle is freed.
///
/// # Safety
/// `many` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_many_stop(many: *const socbfs_many) {
    // SAFETY: the caller's promise.
    hold(unsafe { many.as_ref() }.map(|many| &many.stopper), true);
}

/// Lets searches run again.
///
/// # Safety
/// `many` is null or a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_many_go_on(many: *const socbfs_many) {
    // SAFETY: the caller's promise.
    hold(unsafe { many.as_ref() }.map(|many| &many.stopper), false);
}

/// Searches that have not ended within `seconds` from now are stopped (a negative number: no deadline).
///
/// # Safety
/// `many` is a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_many_deadline(many: *const socbfs_many, seconds: f64) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let many = unsafe { pointer(many, "many") }?;
        let deadline = deadline(seconds)?;
        lock(&many.search)?.set_deadline(deadline);
        Ok(())
    })
}

/// Frees the handle, as socbfs_graph_free frees a graph. No call with it may be running.
///
/// # Safety
/// As for socbfs_graph_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_many_free(many: *mut *mut socbfs_many) {
    // SAFETY: the caller's promise.
    unsafe { free(many) }
}

/// Opens the power sensors that fit this machine. Returns SOCBFS_NO_SENSOR if there is none that may be read; the message says what would
/// help.
///
/// # Safety
/// `meter` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_meter_new(meter: *mut *mut socbfs_meter) -> socbfs_code {
    // SAFETY: the caller's promise.
    entry(|| unsafe { start_meter(meter, || Ok(Profile::detected()?.power())) })
}

/// As socbfs_meter_new, but the board profile of `runtime` says which rails add up.
///
/// # Safety
/// `runtime` is a runtime; `meter` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_meter_new_for(runtime: *const socbfs_runtime, meter: *mut *mut socbfs_meter) -> socbfs_code {
    // SAFETY: the caller's promise.
    entry(|| unsafe { start_meter(meter, || Ok(pointer(runtime, "runtime")?.runtime.profile.power())) })
}

/// Starts a meter with the rails that `profile` adds up.
///
/// # Safety
/// `meter` is null or points to a pointer.
unsafe fn start_meter(
    meter: *mut *mut socbfs_meter,
    profile: impl FnOnce() -> Result<Option<socbfs_power::Profile>, Failure>,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let meter = unsafe { out(meter, "meter") }?;
    let profile = profile()?;
    let started = Selection::automatic(socbfs_power::discover(&SystemFiles::new("/")), profile.as_ref()).and_then(Meter::start);
    let started = started.map_err(|error| Failure::no_sensor(with_cure(&error, error.cure())))?;
    let scope = message::without_zeros(started.scope());
    give(meter, socbfs_meter { meter: Mutex::new((started, None)), scope });
    Ok(())
}

/// What the meter measures, in words (null for a null meter). Valid until the meter is freed.
///
/// # Safety
/// `meter` is null or a meter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_meter_scope(meter: *const socbfs_meter) -> *const c_char {
    // SAFETY: the caller's promise.
    unsafe { meter.as_ref() }.map_or(std::ptr::null(), |meter| meter.scope.as_ptr())
}

/// Begins a window of time, and discards an open one.
///
/// # Safety
/// `meter` is a meter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_meter_begin(meter: *const socbfs_meter) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let meter = unsafe { pointer(meter, "meter") }?;
        let (meter, window) = &mut *lock(&meter.meter)?;
        // A discarded window is ended too: the meter keeps readings as long as a window is open.
        if let Some(before) = window.take() {
            drop(meter.end(before));
        }
        *window = Some(meter.begin());
        Ok(())
    })
}

/// Ends the window and reports its energy. Returns SOCBFS_NO_SENSOR if the window could not be measured (it was too short, or a sensor was
/// lost): `energy` is then left as it is, because the number would be wrong.
///
/// # Safety
/// `meter` is a meter; `energy` points to a socbfs_energy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_meter_end(meter: *const socbfs_meter, energy: *mut socbfs_energy) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (meter, energy) = unsafe { (pointer(meter, "meter")?, energy.as_mut().ok_or_else(|| Failure::null("energy"))?) };
        let (meter, window) = &mut *lock(&meter.meter)?;
        let Some(window) = window.take() else {
            return Err(Failure::argument("no window was begun: call socbfs_meter_begin first".to_owned()));
        };
        let measured = meter.end(window);
        let Some(joules) = measured.joules else {
            return Err(Failure::no_sensor(measured.problem.unwrap_or_else(|| "the window was not measured".to_owned())));
        };
        *energy = socbfs_energy { joules: joules.0, seconds: measured.seconds };
        Ok(())
    })
}

/// Frees a meter, as socbfs_graph_free frees a graph.
///
/// # Safety
/// As for socbfs_graph_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_meter_free(meter: *mut *mut socbfs_meter) {
    // SAFETY: the caller's promise.
    unsafe { free(meter) }
}

// The constant in the header must have the library's value.
const _: () = assert!(SOCBFS_NONE == NONE);

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        let code = match &error {
            error if error.is_out_of_memory() => socbfs_code::SOCBFS_MEMORY,
            SearchError::Stopped(_) => socbfs_code::SOCBFS_STOPPED,
            SearchError::RootOutOfRange { .. }
            | SearchError::TargetOutOfRange { .. }
            | SearchError::Length { .. }
            | SearchError::TooDeep { .. }
            | SearchError::NotRecorded(_) => socbfs_code::SOCBFS_ARGUMENT,
            SearchError::Threads(_) | SearchError::Engine(EngineError::Cpu(CpuEngineError::Threads(_))) => socbfs_code::SOCBFS_MEMORY,
            _ => socbfs_code::SOCBFS_DEVICE,
        };
        Self { code, message: with_causes("", &error) }
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Search(error) => error.into(),
            RuntimeError::TooManyThreads(_) => Self::argument(with_causes("", &error)),
            error => Self::device(with_cure(&error, error.cure())),
        }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let text = with_causes("", &error);
        match &error {
            error if error.is_out_of_memory() => Self::memory(text),
            InputError { fault, .. } if matches!(**fault, Fault::Stopped) => Self::stopped(text),
            _ => Self::input(text),
        }
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Self {
        let text = with_causes("", &error);
        match error {
            GraphError::OutOfMemory(_) => Self::memory(text),
            GraphError::Stopped => Self::stopped(text),
            _ => Self::input(text),
        }
    }
}

impl From<bfs::graph::RowsError> for Failure {
    fn from(error: bfs::graph::RowsError) -> Self {
        Self::input(with_causes("", &error))
    }
}
