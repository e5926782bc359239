//! The compiled part of the Python package `socbfs`. The part that users see, with its documentation and types, is `socbfs/__init__.py`.
//!
//! Arrays of rows are read in place, and searches run without the interpreter's lock, so that other threads of the program continue.

use std::{
    error::Error,
    io::ErrorKind,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bfs::{
    DeviceChoice, Layout, ManySearch, Output, Policy, Runtime, Until,
    engine::{AffinityGuard, CpuEngineError, HybridError},
    graph::{BuildOptions, EdgeList, EdgeStream, GraphError, Listing, NONE, Numbers, RowArrays, RowsError},
    input::InputError,
    many::LevelNumber,
    power::{Meter, Selection, Tree, Window},
    runtime::{Given, Profile, RuntimeError, Setting},
    search::{End, OwnedSearch, SearchError},
    words::{with_causes, with_cure},
};
use numpy::{Element, Ix1, Ix2, PyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, dtype, ndarray::Dimension};
use pyo3::{
    exceptions::{
        PyFileNotFoundError, PyIndexError, PyIsADirectoryError, PyMemoryError, PyOSError, PyPermissionError, PyRuntimeError,
        PyTimeoutError, PyTypeError, PyValueError,
    },
    prelude::*,
    types::PyDict,
};

/// Vertices that fit NumPy's int32, in which -1 stands for "not reached".
const MOST_VERTICES: usize = i32::MAX as usize;

/// An error as a Python exception.
struct Failure(PyErr);

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        failure.0
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self(error)
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Self {
        let text = with_causes("", &error);
        Self(match error {
            GraphError::OutOfMemory(_) => PyMemoryError::new_err(text),
            // The file changed while it was read.
            GraphError::Changed(_) => PyOSError::new_err(text),
            _ => PyValueError::new_err(text),
        })
    }
}

impl From<RowsError> for Failure {
    fn from(error: RowsError) -> Self {
        Self(PyValueError::new_err(with_causes("", &error)))
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let text = with_causes("", &error);
        Self(match &error {
            InputError::OutOfMemory { .. } | InputError::Graph { reason: GraphError::OutOfMemory(_), .. } => PyMemoryError::new_err(text),
            InputError::Open { reason, .. } if reason.kind() == ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            InputError::Open { reason, .. } if reason.kind() == ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
            InputError::Directory { .. } => PyIsADirectoryError::new_err(text),
            _ => PyOSError::new_err(text),
        })
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Search(error) => error.into(),
            RuntimeError::TooManyThreads(_) => Self(PyValueError::new_err(with_causes("", &error))),
            error => Self(PyRuntimeError::new_err(with_cure(&error, error.cure()))),
        }
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        let text = with_causes("", &error);
        Self(match error {
            SearchError::RootOutOfRange { .. } | SearchError::TargetOutOfRange { .. } => PyIndexError::new_err(text),
            SearchError::Stopped(_) => PyTimeoutError::new_err(text),
            SearchError::TooDeep { .. } => PyValueError::new_err(format!("{text} (dtype=\"int32\")")),
            SearchError::Length { .. } => PyValueError::new_err(text),
            SearchError::Engine(HybridError::Cpu(CpuEngineError::OutOfMemory(_))) => PyMemoryError::new_err(text),
            _ => PyRuntimeError::new_err(text),
        })
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The content is usable after a panic: a search that panicked was not put back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A vertex number from Python. A negative number or one beyond 32 bits is out of range like any other.
fn vertex(number: i64, what: &str, vertices: usize) -> PyResult<u32> {
    u32::try_from(number)
        .ok()
        .filter(|&number| (number as usize) < vertices)
        .ok_or_else(|| PyIndexError::new_err(format!("{what} {number} is not a vertex: the graph has {vertices} vertices, counted from 0")))
}

/// Signed numbers as unsigned ones. A negative number becomes too large, and is refused as such.
fn numbers32(array: &[i32]) -> Numbers<'_> {
    // SAFETY: both types have the same size and alignment, and every bit pattern of one is valid for the other.
    Numbers::Bits32(unsafe { std::slice::from_raw_parts(array.as_ptr().cast(), array.len()) })
}

fn numbers64(array: &[i64]) -> Numbers<'_> {
    // SAFETY: as above.
    Numbers::Bits64(unsafe { std::slice::from_raw_parts(array.as_ptr().cast(), array.len()) })
}

/// The first `count` numbers, or all if there are fewer.
fn first(numbers: Numbers<'_>, count: u64) -> Numbers<'_> {
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(numbers.len());
    match numbers {
        Numbers::Bits32(numbers) => Numbers::Bits32(&numbers[..count]),
        Numbers::Bits64(numbers) => Numbers::Bits64(&numbers[..count]),
    }
}

enum Indices<'py> {
    Int32(PyReadonlyArray1<'py, i32>),
    Int64(PyReadonlyArray1<'py, i64>),
}

impl<'py> Indices<'py> {
    fn of(object: &Bound<'py, PyAny>, what: &str) -> PyResult<Self> {
        if let Ok(array) = object.extract() {
            return Ok(Self::Int32(array));
        }
        object.extract().map(Self::Int64).map_err(|_| {
            PyTypeError::new_err(format!("{what} is not a one-dimensional array of int32 or int64: use {what}.astype(numpy.int64)"))
        })
    }

    fn numbers(&self, what: &str) -> PyResult<Numbers<'_>> {
        let refused = |_| {
            let cure = format!("numpy.require({what}, requirements=\"CA\")");
            PyValueError::new_err(format!("{what} is not contiguous, or its elements are not aligned: use {cure}"))
        };
        Ok(match self {
            Self::Int32(array) => numbers32(array.as_slice().map_err(refused)?),
            Self::Int64(array) => numbers64(array.as_slice().map_err(refused)?),
        })
    }
}

/// A graph and its searches.
#[pyclass(frozen, module = "socbfs._socbfs")]
struct Core {
    layout: Arc<Layout>,
    runtime: Runtime,
    /// Searches that no thread uses at the moment.
    idle: Mutex<Vec<OwnedSearch>>,
    idle_many: Mutex<Vec<ManySearch<Arc<Layout>>>>,
}

/// The settings with these names, as on the command line.
fn runtime(device: &str, policy: Option<&str>, board: Option<PathBuf>, threads: usize) -> Result<Runtime, Failure> {
    let refused = |error: &(dyn Error + 'static)| Failure(PyValueError::new_err(with_causes("", error)));
    let device: DeviceChoice = device.parse().map_err(|error| refused(&error))?;
    let policy = policy.map(str::parse::<Policy>).transpose().map_err(|error| refused(&error))?;
    let given = Given {
        device: Some(Setting::flag(device)),
        policy: policy.map(Setting::flag),
        threads: (threads > 0).then(|| Setting::flag(threads)),
        ..Given::default()
    };
    let profile = board.map_or_else(Profile::detected, |board| Profile::named(&board))?;
    Ok(Runtime::new(profile, given)?)
}

/// An array with unspecified entries. If NumPy has no memory for it, the error is `MemoryError`; `PyArray::new` would panic.
fn empty<'py, T: Element, D: Dimension>(py: Python<'py>, shape: impl IntoPyObject<'py>) -> PyResult<Bound<'py, PyArray<T, D>>> {
    let array = py.import("numpy")?.call_method1("empty", (shape, dtype::<T>(py)))?;
    Ok(array.cast_into()?)
}

impl Core {
    fn build<E: Into<Failure>>(
        py: Python<'_>,
        directed: bool,
        runtime: Runtime,
        make: impl FnOnce(&BuildOptions) -> Result<Layout, E> + Send,
    ) -> PyResult<Self> {
        let options = BuildOptions { directed, ..BuildOptions::default() };
        let threads = runtime.threads.value;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let many = bfs::words::threads(threads);
        let pool = pool.map_err(|error| PyRuntimeError::new_err(format!("can't start {many}: {error}; use fewer")))?;
        let layout = py.detach(|| pool.install(|| make(&options).map_err(Into::into)))?;
        if layout.vertices() > MOST_VERTICES {
            return Err(PyValueError::new_err(format!("Python's int32 can number {MOST_VERTICES} vertices; the C library takes more")));
        }
        Ok(Self { layout: Arc::new(layout), runtime, idle: Mutex::default(), idle_many: Mutex::default() })
    }

    fn vertices(&self) -> usize {
        self.layout.vertices()
    }

    fn take(&self) -> Result<OwnedSearch, Failure> {
        if let Some(search) = locked(&self.idle).pop() {
            return Ok(search);
        }
        Ok(OwnedSearch::new(Arc::clone(&self.layout), |layout| Ok::<_, RuntimeError>(self.runtime.search(layout)?.search))?)
    }

    fn take_many(&self) -> Result<ManySearch<Arc<Layout>>, Failure> {
        if let Some(search) = locked(&self.idle_many).pop() {
            return Ok(search);
        }
        // The thread belongs to the program.
        let _restored = AffinityGuard::new();
        Ok(ManySearch::new(Arc::clone(&self.layout), self.runtime.threads.value, self.runtime.cpus.value.numbers())?)
    }

    /// Levels of many searches, and parents if wanted. Row v holds those of vertex v, one for each root.
    fn many<'py, N: LevelNumber + Element>(
        &self,
        py: Python<'py>,
        roots: &[u32],
        with_parents: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let shape = [self.vertices(), roots.len()];
        let levels = empty::<N, Ix2>(py, shape)?;
        let parents = with_parents.then(|| empty::<u32, Ix2>(py, shape)).transpose()?;
        {
            // SAFETY: nothing else has references to these arrays, which are returned only after every entry has been written.
            let (levels, parents) = unsafe {
                (levels.as_slice_mut()?, parents.as_ref().map(|parents| parents.as_slice_mut()).transpose()?.unwrap_or_default())
            };
            py.detach(|| {
                let mut search = self.take_many()?;
                let done = search.trees_into(roots, levels, parents);
                locked(&self.idle_many).push(search);
                done.map(drop).map_err(Failure::from)
            })?;
        }
        Ok((levels.into_any(), parents.map(Bound::into_any)))
    }
}

#[pymethods]
impl Core {
    #[staticmethod]
    fn from_rows(
        offsets: &Bound<'_, PyAny>,
        targets: &Bound<'_, PyAny>,
        directed: bool,
        settings: (String, Option<String>, Option<PathBuf>, usize),
    ) -> PyResult<Self> {
        let runtime = runtime(&settings.0, settings.1.as_deref(), settings.2, settings.3)?;
        let (py, offsets, targets) = (offsets.py(), Indices::of(offsets, "indptr")?, Indices::of(targets, "indices")?);
        let (offsets, targets) = (offsets.numbers("indptr")?, targets.numbers("indices")?);
        // SciPy's array of targets may be longer than its last offset.
        let entries = offsets.len().checked_sub(1).map_or(0, |last| offsets.get(last));
        let rows = RowArrays::new(offsets, first(targets, entries), Listing::Unknown).map_err(Failure::from)?;
        if rows.vertices() > MOST_VERTICES {
            return Err(PyValueError::new_err(format!("int32 can number {MOST_VERTICES} vertices, this graph has {}", rows.vertices())));
        }
        Self::build(py, directed, runtime, |options| Layout::build_from(&rows, options))
    }

    #[staticmethod]
    fn from_pairs(
        pairs: PyReadonlyArray2<'_, u32>,
        vertices: usize,
        directed: bool,
        settings: (String, Option<String>, Option<PathBuf>, usize),
    ) -> PyResult<Self> {
        let runtime = runtime(&settings.0, settings.1.as_deref(), settings.2, settings.3)?;
        let py = pairs.py();
        let flat = pairs.as_slice()?;
        if flat.len() % 2 != 0 || pairs.as_array().shape()[1] != 2 {
            return Err(PyValueError::new_err("edges have two ends: an array of shape (edges, 2)"));
        }
        Self::build(py, directed, runtime, |options| {
            let mut list = Vec::new();
            let edges = flat.len() / 2;
            list.try_reserve_exact(edges)
                .map_err(|_| PyMemoryError::new_err(format!("no memory for {edges} edges; use a smaller graph")))?;
            list.extend(flat.chunks_exact(2).map(|ends| [ends[0], ends[1]]));
            Ok::<_, Failure>(Layout::build(&EdgeList::new(vertices, list, Listing::Unknown)?, options)?)
        })
    }

    #[staticmethod]
    fn from_file(
        py: Python<'_>,
        path: PathBuf,
        directed: bool,
        settings: (String, Option<String>, Option<PathBuf>, usize),
    ) -> PyResult<Self> {
        let runtime = runtime(&settings.0, settings.1.as_deref(), settings.2, settings.3)?;
        Self::build(py, directed, runtime, |options| {
            let edges = bfs::read(&path, &Default::default())?;
            Ok::<_, Failure>(Layout::build(&edges, options)?)
        })
    }

    #[getter]
    fn counts(&self) -> (usize, u64, bool) {
        (self.vertices(), self.layout.stats().edges, self.layout.directed())
    }

    /// Degrees as they count for TEPS.
    fn degrees<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.layout.input_degrees())
    }

    /// (parents or None, levels or None, levels of the tree, seconds, why it ended, why it had no device or None)
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn bfs<'py>(
        &self,
        py: Python<'py>,
        root: i64,
        with_parents: bool,
        with_levels: bool,
        depth: Option<u32>,
        target: Option<i64>,
        timeout: Option<f64>,
    ) -> PyResult<TreeArrays<'py>> {
        let vertices = self.vertices();
        let root = vertex(root, "root", vertices)?;
        let target = target.map(|target| vertex(target, "target", vertices)).transpose()?;
        // A timeout that is too long to be represented sets no limit.
        let wait = match timeout {
            Some(seconds) if seconds.is_nan() || seconds < 0.0 => {
                return Err(PyValueError::new_err(format!("timeout {seconds} is not a number of seconds")));
            }
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            None => None,
        };
        let array = |is_wanted: bool| is_wanted.then(|| empty::<u32, Ix1>(py, [vertices])).transpose();
        let (parents, levels) = (array(with_parents)?, array(with_levels)?);
        let (partial, fallen_back) = {
            // SAFETY: nothing else has references to these arrays, which are returned only after every entry has been written.
            let output = unsafe {
                Output {
                    parents: parents.as_ref().map(|array| array.as_slice_mut()).transpose()?,
                    levels: levels.as_ref().map(|array| array.as_slice_mut()).transpose()?,
                }
            };
            py.detach(|| {
                let mut owned = self.take()?;
                let done = owned.with(|search| {
                    search.set_deadline(wait.and_then(|wait| Instant::now().checked_add(wait)));
                    search.run_into(root, Until { depth, target }, output)
                });
                let fallen_back = owned.get().fallen_back().map(str::to_owned);
                locked(&self.idle).push(owned);
                done.map(|partial| (partial, fallen_back)).map_err(Failure::from)
            })?
        };
        let end = match partial.end {
            End::Complete => "complete",
            End::Depth => "depth",
            End::Target => "target",
        };
        Ok((parents, levels, partial.outcome.levels, partial.outcome.elapsed.as_secs_f64(), end, fallen_back))
    }

    /// Number of vertices reached, and of edges as they count for TEPS, from parents or levels that `bfs` has returned.
    fn reached(&self, py: Python<'_>, found: PyReadonlyArray1<'_, u32>) -> PyResult<(u64, u64)> {
        let found = found.as_slice()?;
        if found.len() != self.vertices() {
            return Err(PyValueError::new_err(format!("{} entries are given for {} vertices", found.len(), self.vertices())));
        }
        py.detach(|| {
            let owned = self.take()?;
            let counts = owned.get().counts(found);
            locked(&self.idle).push(owned);
            Ok::<_, Failure>(counts)
        })
        .map_err(PyErr::from)
    }

    fn bfs_many<'py>(
        &self,
        py: Python<'py>,
        roots: Vec<i64>,
        bytes: bool,
        with_parents: bool,
    ) -> PyResult<(Bound<'py, PyAny>, Option<Bound<'py, PyAny>>)> {
        let roots = roots.into_iter().map(|root| vertex(root, "root", self.vertices())).collect::<PyResult<Vec<u32>>>()?;
        if bytes { self.many::<u8>(py, &roots, with_parents) } else { self.many::<u32>(py, &roots, with_parents) }
    }
}

type TreeArrays<'py> = (Option<Bound<'py, PyArray1<u32>>>, Option<Bound<'py, PyArray1<u32>>>, u32, f64, &'static str, Option<String>);
type TwoArrays<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<i32>>);

/// The vertices in the order in which a search with a queue would visit the tree, and the predecessors, as SciPy returns them.
#[pyfunction]
fn queue_order<'py>(py: Python<'py>, parents: PyReadonlyArray1<'py, u32>, root: u32) -> PyResult<TwoArrays<'py>> {
    const NO_PREDECESSOR: i32 = -9999;
    let parents = parents.as_slice()?;
    let no_tree = || PyValueError::new_err("the parents are not a tree");
    let (order, predecessors) = py
        .detach(|| {
            // The children of each parent, as compressed rows.
            let mut starts = vec![0_u32; parents.len() + 1];
            let children = || (0..).zip(parents).filter(|&(v, &parent): &(u32, &u32)| parent != NONE && v != root);
            for (_, &parent) in children() {
                *starts.get_mut(parent as usize + 1)? += 1;
            }
            for v in 1..starts.len() {
                starts[v] += starts[v - 1];
            }
            let mut places = starts.clone();
            let mut rows = vec![0_u32; starts[parents.len()] as usize];
            for (v, &parent) in children() {
                let place = &mut places[parent as usize];
                rows[*place as usize] = v;
                *place += 1;
            }
            let mut order = Vec::with_capacity(rows.len() + 1);
            order.push(root as i32);
            let mut at = 0;
            while at < order.len() && order.len() <= parents.len() {
                let v = order[at] as usize;
                order.extend(rows[starts[v] as usize..starts[v + 1] as usize].iter().map(|&child| child as i32));
                at += 1;
            }
            let predecessors = (0..)
                .zip(parents)
                .map(|(v, &parent): (u32, &u32)| if parent == NONE || v == root { NO_PREDECESSOR } else { parent as i32 })
                .collect::<Vec<_>>();
            Some((order, predecessors))
        })
        .ok_or_else(no_tree)?;
    Ok((PyArray1::from_vec(py, order), PyArray1::from_vec(py, predecessors)))
}

/// The OpenCL devices of this machine.
#[pyfunction]
fn devices(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let found = match py.detach(bfs::devices) {
        Ok(found) => found,
        Err(bfs::OpenClError::NoLibrary | bfs::OpenClError::NoPlatform) => Vec::new(),
        Err(error) => return Err(PyRuntimeError::new_err(with_causes("", &error))),
    };
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
}

/// Measures energy.
#[pyclass(frozen, module = "socbfs._socbfs")]
struct Sensors {
    scope: String,
    meter: Mutex<(Meter, Option<Window>)>,
}

#[pymethods]
impl Sensors {
    #[new]
    #[pyo3(signature = (board=None))]
    fn new(py: Python<'_>, board: Option<PathBuf>) -> PyResult<Self> {
        let profile = board.map_or_else(Profile::detected, |board| Profile::named(&board)).map_err(Failure::from)?.power();
        let started = py.detach(|| Selection::automatic(bfs::power::discover(&Tree::new("/")), profile.as_ref()).and_then(Meter::start));
        let meter = started.map_err(|error| PyOSError::new_err(with_cure(&error, error.cure())))?;
        Ok(Self { scope: meter.scope().to_owned(), meter: Mutex::new((meter, None)) })
    }

    #[getter]
    fn scope(&self) -> &str {
        &self.scope
    }

    fn begin(&self, py: Python<'_>) {
        // Without the interpreter's lock: another thread may have the meter, and the end of a window waits for a reading.
        py.detach(|| {
            let (meter, window) = &mut *locked(&self.meter);
            // A discarded window is ended too: the meter keeps readings as long as a window is open.
            if let Some(before) = window.take() {
                drop(meter.end(before));
            }
            *window = Some(meter.begin());
        });
    }

    /// (joules or None, seconds, why joules is None)
    fn end(&self, py: Python<'_>) -> PyResult<(Option<f64>, f64, Option<String>)> {
        let measured = py.detach(|| {
            let (meter, window) = &mut *locked(&self.meter);
            window.take().map(|window| meter.end(window))
        });
        let no_window = || PyValueError::new_err("no window was begun: use it as a context, with socbfs.Energy() as energy");
        let measured = measured.ok_or_else(no_window)?;
        Ok((measured.joules.map(|joules| joules.0), measured.seconds, measured.problem))
    }
}

/// Lets messages of the library go to the loggers `socbfs.*` of Python's `logging`.
fn forward_messages(py: Python<'_>) -> PyResult<()> {
    // The level of a logger is asked for each message, since a program may change it at any time. To ask takes the interpreter's lock, so
    // details, of which a search may write some, are left out. No thread writes a message while the one that waits for it has the lock.
    let logger = pyo3_log::Logger::new(py, pyo3_log::Caching::Loggers)?.filter(log::LevelFilter::Info);
    // It was installed before if the module is initialised a second time.
    let _ = logger.install();
    Ok(())
}

#[pymodule]
fn _socbfs(module: &Bound<'_, PyModule>) -> PyResult<()> {
    forward_messages(module.py())?;
    // The module needs symbols of the interpreter, also where it tries the drivers.
    if let Ok(program) = module.py().import("sys")?.getattr("executable")?.extract::<PathBuf>() {
        bfs::opencl::probe_with(program);
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Core>()?;
    module.add_class::<Sensors>()?;
    module.add_function(wrap_pyfunction!(queue_order, module)?)?;
    module.add_function(wrap_pyfunction!(devices, module)?)
}
