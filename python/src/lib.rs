//! The compiled part of the Python package `socbfs`. The part that users see, with its documentation and types, is `socbfs/__init__.py`.
//!
//! Arrays of rows are read in place, and searches run without the interpreter's lock, so that other threads of the program continue.

mod call;
mod grid;
mod order;

use std::{
    error::Error,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bfs::{
    DeviceChoice, Direction, Layout, LevelRecord, LevelStats, Output, Placement, Run,
    graph::{BuildOptions, EdgeList, GraphError, Listing, Numbers, Order, RowArrays, RowsError, Stopper},
    search::{End, OwnedSearch},
    threads::AffinityGuard,
    words::{with_causes, with_cure},
};
use numpy::{
    Element, Ix1, Ix2, PyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods, dtype,
    ndarray::Dimension,
};
use pyo3::{
    exceptions::{PyIndexError, PyOSError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyDict},
};
use socbfs_algo::{Components, ManySearch, many::LevelNumber};
use socbfs_boards::{
    Runtime,
    board::Goal,
    runtime::{Origin, Profile, RuntimeError, Setting},
};
use socbfs_io::{ReadOptions, UnknownFormat};
use socbfs_power::{Meter, Selection, SystemFiles, Window};

use self::call::{Failure, InternalError, Kept, Lock, at_once, forked, lasting, process, take_messages};

/// Vertices that fit NumPy's int32, in which -1 stands for "not reached".
const MOST_VERTICES: usize = i32::MAX as usize;
/// Work on fewer vertices and arcs than this is over before Ctrl-C could be missed, also on a slow board (0.1 s).
const SHORT: u64 = 4 << 20;
/// Searches of a graph before a trial of costs ([`Runtime::tries_costs`]), which takes as long as up to 192 of them: whoever searches a
/// few times is not to wait for it.
const BEFORE_TRIAL: usize = 48;

/// A vertex number from Python. A negative number or one beyond 32 bits, or even 64, is out of range like any other.
fn vertex(number: &Bound<'_, PyAny>, what: &str, vertices: usize) -> PyResult<u32> {
    let out_of_range =
        || PyIndexError::new_err(format!("{what} {number} is not a vertex: the graph has {vertices} vertices, counted from 0"));
    match number.extract::<i64>() {
        Ok(found) => u32::try_from(found).ok().filter(|&found| (found as usize) < vertices).ok_or_else(out_of_range),
        Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => Err(out_of_range()),
        Err(error) => Err(error),
    }
}

/// Vertices to search from: one, or an array of them that nothing else refers to.
enum Roots {
    One([u32; 1]),
    Many(Lent<u32>),
}

impl Roots {
    fn of(object: &Bound<'_, PyAny>, vertices: usize) -> PyResult<Self> {
        match object.cast::<PyArray1<u32>>() {
            Ok(array) => Lent::new(array, || PyValueError::new_err("the roots are not contiguous")).map(Self::Many),
            Err(_) => Ok(Self::One([vertex(object, "root", vertices)?])),
        }
    }

    fn numbers(&self) -> &[u32] {
        match self {
            Self::One(root) => root,
            Self::Many(roots) => roots.numbers(),
        }
    }
}

/// The numbers of an array of Python that a thread of ours reads.
struct Lent<T> {
    start: *const T,
    length: usize,
    /// Keeps the numbers where they are: NumPy refuses to resize an array that something else refers to.
    _array: Kept<PyAny>,
}

// SAFETY: numbers may be read from any thread, and a `Kept` may be dropped by any.
unsafe impl<T: Element> Send for Lent<T> {}

impl<T: Element> Lent<T> {
    fn new<D: Dimension>(array: &Bound<'_, PyArray<T, D>>, refused: impl FnOnce() -> PyErr) -> PyResult<Self> {
        // SAFETY: the slice is used only here. Python may write to the array at any time: see `numbers`.
        let numbers = unsafe { array.as_slice() }.map_err(|_| refused())?;
        Ok(Self { start: numbers.as_ptr(), length: numbers.len(), _array: Kept::new(array.clone().into_any().unbind()) })
    }

    /// The numbers. Another thread of Python may change them at any time, so nothing may rely on an earlier look at them.
    fn numbers(&self) -> &[T] {
        // SAFETY: the array is contiguous and aligned (`as_slice` has checked it), and stays where it is for the life of `self`.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// A new array of Python that a thread of ours fills.
struct Room<T, D> {
    start: *mut T,
    length: usize,
    array: Kept<PyArray<T, D>>,
}

// SAFETY: nothing else has references to the array, and a `Kept` may be dropped by any thread.
unsafe impl<T: Element, D> Send for Room<T, D> {}

impl<T: Element, D: Dimension> Room<T, D> {
    /// An array with unspecified entries. If NumPy has no memory for it, the error is `MemoryError`; `PyArray::new` would panic.
    fn new<'py>(py: Python<'py>, shape: impl IntoPyObject<'py>) -> PyResult<Self> {
        let array = py.import("numpy")?.call_method1("empty", (shape, dtype::<T>(py)))?.cast_into::<PyArray<T, D>>()?;
        // SAFETY: nothing else refers to the array.
        let entries = unsafe { array.as_slice_mut() }?;
        Ok(Self { start: entries.as_mut_ptr(), length: entries.len(), array: Kept::new(array.unbind()) })
    }

    fn entries(&mut self) -> &mut [T] {
        // SAFETY: nothing else has references to the array, which is returned to Python only after every entry has been written.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }
}

fn check_vertices(vertices: usize) -> PyResult<()> {
    let refused = || PyValueError::new_err(format!("Python's int32 can number {MOST_VERTICES} vertices; the C library takes more"));
    if vertices <= MOST_VERTICES { Ok(()) } else { Err(refused()) }
}

/// A vector as long as a graph. A lack of memory must not end the process.
fn vector<T: Clone>(length: usize, value: T, what: &str) -> Result<Vec<T>, Failure> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(length).map_err(|_| Failure::memory(what))?;
    vector.resize(length, value);
    Ok(vector)
}

enum Indices {
    Int32(Lent<i32>),
    Int64(Lent<i64>),
}

impl Indices {
    fn of(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        let refused = || {
            let cure = format!("numpy.require({what}, requirements=\"CA\")");
            PyValueError::new_err(format!("{what} is not contiguous, or its elements are not aligned: use {cure}"))
        };
        if let Ok(array) = object.extract::<PyReadonlyArray1<'_, i32>>() {
            return Lent::new(&array, refused).map(Self::Int32);
        }
        let array = object.extract::<PyReadonlyArray1<'_, i64>>().map_err(|_| {
            PyTypeError::new_err(format!("{what} is not a one-dimensional array of int32 or int64: use {what}.astype(numpy.int64)"))
        })?;
        Lent::new(&array, refused).map(Self::Int64)
    }

    /// The numbers as unsigned ones. A negative number becomes too large, and is refused as such.
    fn numbers(&self) -> Numbers<'_> {
        match self {
            Self::Int32(array) => {
                let numbers = array.numbers();
                // SAFETY: both types have the same size and alignment, and every bit pattern of one is valid for the other.
                Numbers::Bits32(unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len()) })
            }
            Self::Int64(array) => {
                let numbers = array.numbers();
                // SAFETY: as above.
                Numbers::Bits64(unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), numbers.len()) })
            }
        }
    }
}

/// The rows of a sparse matrix, and its targets up to the last offset: SciPy's array may be longer.
fn rows_of<'a>(offsets: Numbers<'a>, targets: Numbers<'a>) -> Result<(Numbers<'a>, RowArrays<'a>), RowsError> {
    let last = offsets.len().checked_sub(1).map_or(0, |last| offsets.get(last));
    let count = usize::try_from(last).unwrap_or(usize::MAX).min(targets.len());
    let targets = match targets {
        Numbers::Bits32(numbers) => Numbers::Bits32(&numbers[..count]),
        Numbers::Bits64(numbers) => Numbers::Bits64(&numbers[..count]),
    };
    Ok((targets, RowArrays::new(offsets, targets, Listing::Unknown)?))
}

/// A graph and its searches.
#[pyclass(frozen, module = "socbfs._socbfs")]
struct Core(Arc<Searched>);

struct Searched {
    layout: Arc<Layout>,
    runtime: Runtime,
    /// How often a search was taken, and those that no thread uses at the moment, each with whether a trial has prepared it.
    idle: Lock<(usize, Vec<(OwnedSearch, bool)>)>,
    idle_many: Lock<Vec<ManySearch<Arc<Layout>>>>,
    idle_components: Lock<Vec<Components>>,
}

/// Device, policy, board, threads, operating point.
type Settings = (Option<String>, Option<String>, Option<PathBuf>, usize, Option<String>);

/// The levels of the last search, as bytes: for each, the numbers of `_LEVEL` in `__init__.py`.
fn account(records: &[LevelRecord]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(records.len() * 15 * size_of::<u64>());
    for LevelRecord { stats, plan, levels, found, elapsed_ns, decision_ns, conversion_ns, handover_ns, threads, .. } in records {
        let (place, gpu_permille) = match plan.placement {
            Placement::Cpu => (0, 0),
            Placement::Gpu(_) => (1, 1000),
            Placement::Split { gpu_permille, .. } => (2, gpu_permille),
            Placement::Apart { gpu_permille } => (3, gpu_permille),
        };
        let (LevelStats { level, frontier_vertices, frontier_edges, unvisited_vertices, unvisited_edges, .. }, direction) =
            (*stats, u64::from(plan.direction == Direction::BottomUp));
        let whole = [level, *levels, *threads, place, u32::from(gpu_permille)].map(u64::from);
        let counts = [direction, frontier_vertices, frontier_edges, unvisited_vertices, unvisited_edges, *found];
        let times = [*elapsed_ns, *decision_ns, *conversion_ns, *handover_ns];
        bytes.extend(whole.into_iter().chain(counts).chain(times).flat_map(u64::to_ne_bytes));
    }
    bytes
}

/// Why a search ended, as Python names it.
fn end_name(end: End) -> &'static str {
    match end {
        End::Complete => "complete",
        End::Depth => "depth",
        End::Target => "target",
    }
}

/// The settings with these names, as on the command line.
fn runtime((device, policy, board, threads, at): Settings) -> Result<Runtime, Failure> {
    let refused = |error: &(dyn Error + 'static)| Failure(PyValueError::new_err(with_causes("", error)));
    let origin = if device.is_some() { Origin::Flag } else { Origin::BuiltIn };
    let Ok(device) = device.as_deref().unwrap_or("cpu").parse();
    let at = at.as_deref().map(str::parse::<Goal>).transpose().map_err(|error| refused(&error))?;
    let policy = policy.as_deref().map(str::parse::<socbfs_policy::Policy>).transpose().map_err(|error| refused(&error))?;
    let profile = board.map_or_else(Profile::detected, |board| Profile::named(&board))?;
    let mut runtime = Runtime { device: Setting { value: device, origin }, ..Runtime::new(profile) };
    if let Some(policy) = policy {
        runtime.policy = Setting::flag(policy);
    }
    if threads > 0 {
        runtime.threads = Setting::flag(threads);
    }
    if let Some(goal) = at {
        runtime.run_at(goal)?;
    }
    runtime.check_threads()?;
    Ok(runtime)
}

impl Searched {
    fn vertices(&self) -> usize {
        self.layout.vertices()
    }

    /// Whether a look at every vertex and arc `times` times is over at once.
    fn is_short(&self, times: usize) -> bool {
        (self.vertices() as u64 + self.layout.csr().arcs() as u64).saturating_mul(times as u64) < SHORT
    }

    /// Whether no driver of a device may take any time.
    fn is_on_cpu(&self) -> bool {
        self.runtime.device.value == DeviceChoice::Cpu
    }

    /// A search that no thread uses, and whether a trial has prepared it. If it `has_time`, one may do so now.
    fn take(&self, stopper: &Stopper, has_time: bool) -> Result<(OwnedSearch, bool), Failure> {
        let (taken, idle) = self.idle.with(|(taken, idle)| {
            *taken = taken.saturating_add(1);
            (*taken, idle.pop())
        });
        let tries_costs = has_time && self.is_on_cpu() && taken > BEFORE_TRIAL;
        if let Some(search) = idle.filter(|(_, has_tried)| *has_tried || !tries_costs) {
            return Ok(search);
        }
        let runtime = Runtime { stopper: stopper.clone(), tries_costs, ..self.runtime.clone() };
        let search = OwnedSearch::new(Arc::clone(&self.layout), |layout| Ok::<_, RuntimeError>(runtime.search(layout)?.search))?;
        Ok((search, tries_costs))
    }

    fn take_many(&self) -> Result<ManySearch<Arc<Layout>>, Failure> {
        if let Some(search) = self.idle_many.with(Vec::pop) {
            return Ok(search);
        }
        // The thread belongs to the program.
        let _restored = AffinityGuard::new();
        Ok(ManySearch::new(Arc::clone(&self.layout), self.runtime.team().value, self.runtime.cpus.value.numbers())?)
    }
}

impl Core {
    fn build(
        py: Python<'_>,
        settings: Settings,
        timeout: Option<f64>,
        make: impl FnOnce(&Stopper) -> Result<Layout, Failure> + Send + 'static,
    ) -> PyResult<Self> {
        let made = lasting(py, timeout, false, move |stopper| {
            let runtime = runtime(settings)?;
            let threads = runtime.team().value;
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let many = bfs::words::threads(threads);
            let pool = pool.map_err(|error| PyRuntimeError::new_err(format!("can't start {many}: {error}; use fewer")))?;
            let layout = pool.install(|| make(stopper))?;
            check_vertices(layout.vertices())?;
            Ok(Searched {
                layout: Arc::new(layout),
                runtime,
                idle: Lock::new((0, Vec::new())),
                idle_many: Lock::new(Vec::new()),
                idle_components: Lock::new(Vec::new()),
            })
        })?;
        Ok(Self(Arc::new(made)))
    }

    /// Levels of many searches, and parents if wanted. Row v holds those of vertex v, one for each root.
    fn many<'py, N: LevelNumber + Element>(
        &self,
        py: Python<'py>,
        roots: Roots,
        with_parents: bool,
        timeout: Option<f64>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let shape = [self.0.vertices(), roots.numbers().len()];
        let mut levels = Room::<N, Ix2>::new(py, shape)?;
        let mut parents = with_parents.then(|| Room::<u32, Ix2>::new(py, shape)).transpose()?;
        let searched = Arc::clone(&self.0);
        let (levels, parents) = lasting(py, timeout, searched.is_short(roots.numbers().len()), move |stopper| {
            let mut search = searched.take_many()?;
            search.set_stopper(stopper.clone());
            let done = search.trees_into(roots.numbers(), levels.entries(), parents.as_mut().map(Room::entries).unwrap_or_default());
            searched.idle_many.with(|idle| idle.push(search));
            done?;
            Ok((levels.array, parents.map(|parents| parents.array)))
        })?;
        Ok((levels.into_py().into_bound(py).into_any(), parents.map(|parents| parents.into_py().into_bound(py).into_any())))
    }
}

#[pymethods]
impl Core {
    #[staticmethod]
    fn from_rows(
        offsets: &Bound<'_, PyAny>,
        targets: &Bound<'_, PyAny>,
        directed: bool,
        settings: Settings,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        at_once(|| {
            let (py, offsets, targets) = (offsets.py(), Indices::of(offsets, "indptr")?, Indices::of(targets, "indices")?);
            Self::build(py, settings, timeout, move |stopper| {
                let (_, rows) = rows_of(offsets.numbers(), targets.numbers())?;
                Ok(Layout::build_from(&rows, &BuildOptions { directed, stopper: stopper.clone(), ..BuildOptions::default() })?)
            })
        })
    }

    #[staticmethod]
    fn from_pairs(
        pairs: PyReadonlyArray2<'_, u32>,
        vertices: usize,
        directed: bool,
        settings: Settings,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        at_once(|| {
            let py = pairs.py();
            let refused = || PyValueError::new_err("edges have two ends: a contiguous array of shape (edges, 2)");
            if pairs.shape()[1] != 2 {
                return Err(refused());
            }
            let pairs = Lent::new(&pairs, refused)?;
            Self::build(py, settings, timeout, move |stopper| {
                let (flat, mut list) = (pairs.numbers(), Vec::new());
                let edges = flat.len() / 2;
                list.try_reserve_exact(edges).map_err(|_| Failure::memory(&format!("{edges} edges")))?;
                for part in flat.chunks(2 << 20) {
                    if stopper.is_stopped() {
                        return Err(GraphError::Stopped.into());
                    }
                    list.extend(part.chunks_exact(2).map(|ends| [ends[0], ends[1]]));
                }
                let options = BuildOptions { directed, stopper: stopper.clone(), ..BuildOptions::default() };
                Ok(Layout::build(&EdgeList::new(vertices, list, Listing::Unknown)?, &options)?)
            })
        })
    }

    #[staticmethod]
    fn from_file(
        py: Python<'_>,
        path: PathBuf,
        format: Option<&str>,
        directed: bool,
        settings: Settings,
        timeout: Option<f64>,
    ) -> PyResult<Self> {
        at_once(|| {
            let format = format.map(str::parse).transpose().map_err(|error: UnknownFormat| PyValueError::new_err(error.to_string()))?;
            Self::build(py, settings, timeout, move |stopper| {
                let edges = socbfs_io::read(&path, &ReadOptions { format, stopper: stopper.clone(), ..ReadOptions::default() })?;
                Ok(Layout::build(&edges, &BuildOptions { directed, stopper: stopper.clone(), ..BuildOptions::default() })?)
            })
        })
    }

    /// The graph of `state`.
    #[staticmethod]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn from_state(
        offsets: PyReadonlyArray1<'_, i64>,
        targets: PyReadonlyArray1<'_, i32>,
        degrees: PyReadonlyArray1<'_, u32>,
        edges: u64,
        directed: bool,
        order: &str,
        settings: Settings,
    ) -> PyResult<Self> {
        at_once(|| {
            let refused = || PyValueError::new_err("this is not the state of a graph");
            let py = offsets.py();
            let (order, _) = *ORDERS.iter().find(|(_, name)| *name == order).ok_or_else(refused)?;
            let (offsets, targets) = (Indices::Int64(Lent::new(&offsets, refused)?), Indices::Int32(Lent::new(&targets, refused)?));
            let degrees = Lent::new(&degrees, refused)?;
            Self::build(py, settings, None, move |stopper| {
                let listing = if directed { Listing::Once } else { Listing::BothDirections };
                let rows = RowArrays::new(offsets.numbers(), targets.numbers(), listing)?;
                let options = BuildOptions { directed, order, stopper: stopper.clone(), ..BuildOptions::default() };
                let mut layout = Layout::build_from(&rows, &options)?;
                if degrees.numbers().len() != layout.vertices() {
                    return Err(refused().into());
                }
                layout.set_listed(degrees.numbers(), edges);
                Ok(layout)
            })
        })
    }

    /// What `from_state` makes the same graph of: the distinct neighbours of each vertex as compressed sparse rows, the degrees as they
    /// count for TEPS, the number of edges, whether arcs are directed, and the order of the vertices.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<State<'py>> {
        at_once(|| {
            let layout = Arc::clone(&self.0.layout);
            let (offsets, targets, degrees) = lasting(py, None, self.0.is_short(1), move |stopper| {
                let (vertices, stats) = (layout.vertices(), layout.stats());
                let arcs = stats.unique_edges as usize * if layout.directed() { 1 } else { 2 };
                let (mut offsets, mut targets) = (vector(vertices + 1, 0_i64, "the rows of the graph")?, Vec::new());
                targets.try_reserve_exact(arcs).map_err(|_| Failure::memory("the rows of the graph"))?;
                for v in 0..vertices {
                    if v % (1 << 16) == 0 && stopper.is_stopped() {
                        return Err(GraphError::Stopped.into());
                    }
                    targets.extend(layout.neighbours(v as u32).map(|target| target as i32));
                    offsets[v + 1] = targets.len() as i64;
                }
                let mut degrees = vector(vertices, 0, "the degrees of the graph")?;
                degrees.copy_from_slice(layout.input_degrees());
                Ok((offsets, targets, degrees))
            })?;
            let array = |numbers| PyArray1::from_vec(py, numbers);
            let (layout, offsets) = (&self.0.layout, PyArray1::from_vec(py, offsets));
            Ok((offsets, array(targets), PyArray1::from_vec(py, degrees), layout.stats().edges, layout.directed(), order_of(layout)))
        })
    }

    #[getter]
    fn counts(&self) -> PyResult<(usize, u64, bool)> {
        at_once(|| Ok((self.0.vertices(), self.0.layout.stats().edges, self.0.layout.directed())))
    }

    /// Degrees as they count for TEPS of the vertices from `begin` to before `end`.
    fn degrees(&self, py: Python<'_>, begin: usize, end: usize) -> PyResult<Py<PyArray1<u32>>> {
        at_once(|| {
            let degrees = self.0.layout.input_degrees().get(begin..end).ok_or_else(|| PyIndexError::new_err("no such vertices"))?;
            let mut room = Room::<u32, Ix1>::new(py, [degrees.len()])?;
            room.entries().copy_from_slice(degrees);
            Ok(room.array.into_py())
        })
    }

    /// The order of the vertices, and the devices beside the CPU: those in use or, before the first search, the one that was asked for.
    fn about(&self) -> PyResult<(&'static str, Vec<String>)> {
        at_once(|| {
            let used = |(search, _): &(OwnedSearch, bool)| search.get().devices().iter().map(|used| used.name.clone()).collect();
            let asked = || match &self.0.runtime.device.value {
                DeviceChoice::Cpu => Vec::new(),
                DeviceChoice::Auto => vec!["a GPU if there is one".to_owned()],
                device => vec![device.to_string()],
            };
            Ok((order_of(&self.0.layout), self.0.idle.with(|(_, idle)| idle.last().map_or_else(asked, used))))
        })
    }

    /// (parents or None, levels or None, sources or None, levels of the tree, seconds, why it ended, why it had no device or None, account
    /// of the levels)
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn bfs(
        &self,
        py: Python<'_>,
        sources: &Bound<'_, PyAny>,
        with_parents: bool,
        with_levels: bool,
        with_sources: bool,
        depth: Option<u32>,
        target: Option<&Bound<'_, PyAny>>,
        timeout: Option<f64>,
    ) -> PyResult<TreeArrays> {
        at_once(|| {
            let vertices = self.0.vertices();
            let given = Roots::of(sources, vertices)?;
            let target = target.map(|target| vertex(target, "target", vertices)).transpose()?;
            let array = |is_wanted: bool| is_wanted.then(|| Room::<u32, Ix1>::new(py, [vertices])).transpose();
            let (mut parents, mut levels, mut sources) = (array(with_parents)?, array(with_levels)?, array(with_sources)?);
            let searched = Arc::clone(&self.0);
            let is_short = searched.is_short(1) && (given.numbers().len() as u64) < SHORT && searched.is_on_cpu();
            let (parents, levels, sources, deepest, seconds, end, fallen_back, account) = lasting(py, timeout, is_short, move |stopper| {
                let (mut owned, has_tried) = searched.take(stopper, timeout.is_none())?;
                let output = Output {
                    parents: parents.as_mut().map(Room::entries),
                    levels: levels.as_mut().map(Room::entries),
                    sources: sources.as_mut().map(Room::entries),
                };
                let done = owned.with(|search| {
                    search.set_stopper(stopper.clone());
                    search.run(Run { depth, target, output: Some(output), uncounted: true, ..given.numbers().into() })
                });
                let fallen_back = owned.get().fallen_back().map(str::to_owned);
                let account = account(owned.get().records());
                searched.idle.with(|(_, idle)| idle.push((owned, has_tried)));
                let outcome = done?;
                let end = end_name(outcome.end);
                let seconds = outcome.elapsed.as_secs_f64();
                let [parents, levels, sources] = [parents, levels, sources].map(|array| array.map(|room| room.array));
                Ok((parents, levels, sources, outcome.levels, seconds, end, fallen_back, account))
            })?;
            let [parents, levels, sources] = [parents, levels, sources].map(|array| array.map(Kept::into_py));
            Ok((parents, levels, sources, deepest, seconds, end, fallen_back, PyBytes::new(py, &account).unbind()))
        })
    }

    /// How many connected components there are, and the number of each vertex's.
    fn components(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<(usize, Py<PyArray1<u32>>)> {
        at_once(|| {
            let mut labels = Room::<u32, Ix1>::new(py, [self.0.vertices()])?;
            let searched = Arc::clone(&self.0);
            let is_short = searched.is_short(1) && searched.is_on_cpu();
            let (count, labels) = lasting(py, timeout, is_short, move |stopper| {
                let (mut owned, has_tried) = searched.take(stopper, false)?;
                let mut components = searched.idle_components.with(Vec::pop).unwrap_or_default();
                let found = owned.with(|search| {
                    search.set_stopper(stopper.clone());
                    components.find(search, labels.entries())
                });
                searched.idle.with(|(_, idle)| idle.push((owned, has_tried)));
                searched.idle_components.with(|idle| idle.push(components));
                Ok((found?, labels.array))
            })?;
            Ok((count, labels.into_py()))
        })
    }

    /// Number of vertices reached, and of edges as they count for TEPS, from parents or levels that `bfs` has returned.
    fn reached(&self, py: Python<'_>, found: PyReadonlyArray1<'_, u32>) -> PyResult<(u64, u64)> {
        at_once(|| {
            let found = Lent::new(&found, || PyValueError::new_err("the entries are not contiguous"))?;
            let searched = Arc::clone(&self.0);
            if found.length != searched.vertices() {
                return Err(PyValueError::new_err(format!("{} entries are given for {} vertices", found.length, searched.vertices())));
            }
            lasting(py, None, searched.is_short(1), move |stopper| {
                let (owned, has_tried) = searched.take(stopper, false)?;
                let counts = owned.get().counts(found.numbers());
                searched.idle.with(|(_, idle)| idle.push((owned, has_tried)));
                Ok(counts)
            })
        })
    }

    fn bfs_many<'py>(
        &self,
        py: Python<'py>,
        roots: &Bound<'py, PyAny>,
        bytes: bool,
        with_parents: bool,
        timeout: Option<f64>,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        at_once(|| {
            let roots = Roots::of(roots, self.0.vertices())?;
            if bytes { self.many::<u8>(py, roots, with_parents, timeout) } else { self.many::<u32>(py, roots, with_parents, timeout) }
        })
    }
}

type MaybeArray = Option<Py<PyArray1<u32>>>;
type TreeArrays = (MaybeArray, MaybeArray, MaybeArray, u32, f64, &'static str, Option<String>, Py<PyBytes>);
type TwoArrays<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>);
type State<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<u32>>, u64, bool, &'static str);

const ORDERS: [(Order, &str); 3] = [(Order::Original, "original"), (Order::Degree, "degree"), (Order::Bfs, "bfs")];

fn order_of(layout: &Layout) -> &'static str {
    ORDERS.iter().find(|(order, _)| *order == layout.order()).map_or("", |(_, name)| name)
}

/// The vertices in the order in which SciPy's search visits them, and their predecessors (see `order`).
#[pyfunction]
fn breadth_first_order<'py>(
    py: Python<'py>,
    offsets: &Bound<'py, PyAny>,
    targets: &Bound<'py, PyAny>,
    root: &Bound<'py, PyAny>,
    directed: bool,
    timeout: Option<f64>,
) -> PyResult<TwoArrays<'py>> {
    at_once(|| {
        let (offsets, targets) = (Indices::of(offsets, "indptr")?, Indices::of(targets, "indices")?);
        let root = vertex(root, "root", offsets.numbers().len().saturating_sub(1))?;
        let is_short = ((offsets.numbers().len() + targets.numbers().len()) as u64) < SHORT / 4;
        let (order, predecessors) = lasting(py, timeout, is_short, move |stopper| {
            order::breadth_first((offsets.numbers(), targets.numbers()), root, directed, stopper)
        })?;
        Ok((PyArray1::from_vec(py, order), PyArray1::from_vec(py, predecessors)))
    })
}

/// The OpenCL devices of this machine.
#[pyfunction]
#[pyo3(signature = (timeout=None))]
fn devices(py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    at_once(|| {
        let found = lasting(py, timeout, false, |_| match bfs::devices() {
            Ok(found) => Ok(found),
            Err(bfs::OpenClError::NoLibrary | bfs::OpenClError::NoPlatform) => Ok(Vec::new()),
            Err(error) => Err(Failure(PyRuntimeError::new_err(with_causes("", &error)))),
        })?;
        let described = |info: &bfs::DeviceInfo| {
            let device = PyDict::new(py);
            device.set_item("name", &info.name)?;
            device.set_item("platform", &info.platform)?;
            device.set_item("driver", &info.driver)?;
            device.set_item("compute_units", info.compute_units)?;
            device.set_item("unusable", info.unusable.as_ref().map(ToString::to_string))?;
            Ok(device)
        };
        found.iter().map(described).collect()
    })
}

type Metered = Arc<Mutex<(Meter, Option<Window>)>>;

/// Measures energy.
#[pyclass(frozen, module = "socbfs._socbfs")]
struct Sensors {
    scope: String,
    /// A thread holds it as long as it waits for a reading.
    meter: Metered,
    /// The process that opened the sensors: a forked child has none of the threads that read them.
    process: u32,
}

impl Sensors {
    fn meter(&self) -> PyResult<Metered> {
        if self.process != process() {
            return Err(PyOSError::new_err("the process was forked after the sensors were opened: make a new socbfs.Energy in the child"));
        }
        Ok(Arc::clone(&self.meter))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The content is usable after a panic: a window that was not put back is lost.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Sensors {
    #[new]
    #[pyo3(signature = (board=None, timeout=None))]
    fn new(py: Python<'_>, board: Option<PathBuf>, timeout: Option<f64>) -> PyResult<Self> {
        at_once(|| {
            let meter = lasting(py, timeout, false, |_| {
                let profile = board.map_or_else(Profile::detected, |board| Profile::named(&board))?.power();
                let started = Selection::automatic(socbfs_power::discover(&SystemFiles::new("/")), profile.as_ref()).and_then(Meter::start);
                started.map_err(|error| Failure(PyOSError::new_err(with_cure(&error, error.cure()))))
            })?;
            Ok(Self { scope: meter.scope().to_owned(), meter: Arc::new(Mutex::new((meter, None))), process: process() })
        })
    }

    #[getter]
    fn scope(&self) -> &str {
        &self.scope
    }

    fn begin(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        at_once(|| {
            // Another thread may have the meter, and the end of a window waits for a reading.
            let meter = self.meter()?;
            let is_short = meter.try_lock().is_ok_and(|meter| meter.1.is_none());
            lasting(py, timeout, is_short, move |_| {
                let (meter, window) = &mut *locked(&meter);
                // A discarded window is ended too: the meter keeps readings as long as a window is open.
                if let Some(before) = window.take() {
                    drop(meter.end(before));
                }
                *window = Some(meter.begin());
                Ok(())
            })
        })
    }

    /// (joules or None, seconds, why joules is None)
    fn end(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<(Option<f64>, f64, Option<String>)> {
        at_once(|| {
            let meter = self.meter()?;
            let measured = lasting(py, timeout, false, move |_| {
                let (meter, window) = &mut *locked(&meter);
                Ok(window.take().map(|window| meter.end(window)))
            })?;
            let no_window = || PyValueError::new_err("no window was begun: use it as a context, with socbfs.Energy() as energy");
            let measured = measured.ok_or_else(no_window)?;
            Ok((measured.joules.map(|joules| joules.0), measured.seconds, measured.problem))
        })
    }
}

/// Panics, at once or in work that lasts, for the tests of what becomes of a panic.
#[cfg(feature = "planted-panic")]
#[pyfunction]
#[allow(clippy::panic, reason = "it is what this feature is for")]
fn planted_panic(py: Python<'_>, lasts: bool) -> PyResult<()> {
    at_once(|| if lasts { lasting(py, None, false, |_| panic!("planted")) } else { panic!("planted") })
}

// Free-threaded builds of Python are not tested: they switch their lock on.
#[pymodule(gil_used = true)]
fn _socbfs(module: &Bound<'_, PyModule>) -> PyResult<()> {
    take_messages();
    // The module needs symbols of the interpreter, also where it tries the drivers.
    if let Ok(program) = module.py().import("sys")?.getattr("executable")?.extract::<PathBuf>() {
        bfs::opencl::probe_with(program);
    }
    let hook = PyDict::new(module.py());
    hook.set_item("after_in_child", wrap_pyfunction!(forked, module)?)?;
    module.py().import("os")?.call_method("register_at_fork", (), Some(&hook))?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("InternalError", module.py().get_type::<InternalError>())?;
    module.add_class::<Core>()?;
    module.add_class::<Sensors>()?;
    module.add_class::<grid::GridCore>()?;
    #[cfg(feature = "planted-panic")]
    module.add_function(wrap_pyfunction!(planted_panic, module)?)?;
    module.add_function(wrap_pyfunction!(breadth_first_order, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)
}
