//! How calls of Python run: Ctrl-C and a timeout end them, a panic becomes an exception, and messages go to Python's `logging`.

use std::{
    any::Any,
    cell::UnsafeCell,
    error::Error,
    mem::{self, ManuallyDrop},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{
            AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use bfs::{
    graph::{GraphError, RowsError, Stopper},
    search::SearchError,
    words::{with_causes, with_cure},
};
use log::{Level, LevelFilter, Log, Metadata, Record};
use pyo3::{
    create_exception,
    exceptions::{
        PyFileNotFoundError, PyIndexError, PyIsADirectoryError, PyMemoryError, PyOSError, PyPermissionError, PyRuntimeError,
        PyTimeoutError, PyValueError,
    },
    prelude::*,
};
use socbfs_boards::runtime::RuntimeError;
use socbfs_io::{Fault, InputError};

create_exception!(socbfs, InternalError, PyRuntimeError, "A bug in socbfs. The graph can still be searched.");

/// How often a call that waits looks whether a signal has arrived.
const LOOK: Duration = Duration::from_millis(50);
/// How long a call that ends early waits for its work to end too. A driver, for example, may not return for minutes.
const GRACE: Duration = Duration::from_millis(150);

/// Flags of the command that are arguments of Python, too, and what may follow them.
const ARGUMENTS: [&str; 6] = ["device", "threads", "policy", "board", "at", "format"];
const VALUES: [&str; 8] = ["cpu", "gpu", "auto", "NAME", "FILE", "N", "el", "metis"];

/// A message of the libraries, which name flags: `--device cpu` is `device=cpu` here, and `--device` alone `device`.
fn in_python(text: &str) -> String {
    let (mut said, mut rest) = (String::new(), text);
    while let Some((before, flag)) = rest.split_once("--") {
        said += before;
        let length = flag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(flag.len());
        let (name, after) = flag.split_at(length);
        let is_word = said.is_empty() || said.ends_with([' ', '(']);
        if !is_word || !ARGUMENTS.contains(&name) {
            (said, rest) = (said + "--", flag);
            continue;
        }
        said += name;
        let value = after
            .strip_prefix(' ')
            .filter(|value| VALUES.contains(&value.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()));
        (said, rest) = (said + if value.is_some() { "=" } else { "" }, value.unwrap_or(after));
    }
    said + rest
}

fn said(error: &(dyn Error + 'static)) -> String {
    in_python(&with_causes("", error))
}

/// An error as a Python exception.
pub(crate) struct Failure(pub(crate) PyErr);

impl Failure {
    pub(crate) fn memory(what: &str) -> Self {
        Self(PyMemoryError::new_err(format!("no memory for {what}; use a smaller graph")))
    }

    fn panic(panic: &(dyn Any + Send)) -> Self {
        let said = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Self(InternalError::new_err(format!("a bug in socbfs: {}; please report it", said.unwrap_or("unknown panic"))))
    }
}

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
        let text = said(&error);
        Self(match error {
            GraphError::OutOfMemory(_) => PyMemoryError::new_err(text),
            GraphError::EdgesChanged => PyRuntimeError::new_err(text),
            GraphError::Stopped => PyTimeoutError::new_err(text),
            _ => PyValueError::new_err(text),
        })
    }
}

impl From<RowsError> for Failure {
    fn from(error: RowsError) -> Self {
        Self(PyValueError::new_err(said(&error)))
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        let text = said(&error);
        Self(match &*error.fault {
            _ if error.is_out_of_memory() => PyMemoryError::new_err(text),
            Fault::Open { reason, .. } if reason.kind() == std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
            Fault::Open { reason, .. } if reason.kind() == std::io::ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
            Fault::Directory => PyIsADirectoryError::new_err(text),
            Fault::Stopped => PyTimeoutError::new_err(text),
            _ => PyOSError::new_err(text),
        })
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Search(error) => error.into(),
            RuntimeError::TooManyThreads(_) => Self(PyValueError::new_err(said(&error))),
            error => Self(PyRuntimeError::new_err(in_python(&with_cure(&error, error.cure())))),
        }
    }
}

impl From<SearchError> for Failure {
    fn from(error: SearchError) -> Self {
        let text = said(&error);
        Self(match error {
            error if error.is_out_of_memory() => PyMemoryError::new_err(text),
            SearchError::RootOutOfRange { .. } | SearchError::TargetOutOfRange { .. } => PyIndexError::new_err(text),
            SearchError::Stopped(_) => PyTimeoutError::new_err(text),
            SearchError::TooDeep { .. } => PyValueError::new_err(format!("{text} (dtype=\"int32\")")),
            SearchError::Length { .. } => PyValueError::new_err(text),
            _ => PyRuntimeError::new_err(text),
        })
    }
}

/// The number of this process among those that were forked one from another since the module was loaded, from 1.
static PROCESS: AtomicU32 = AtomicU32::new(1);

/// See [`PROCESS`].
pub(crate) fn process() -> u32 {
    PROCESS.load(Relaxed) // it changes while there is one thread
}

/// Python calls it in the child of a fork.
#[pyfunction]
pub(crate) fn forked() {
    PROCESS.fetch_add(1, Relaxed);
}

/// How long a thread sleeps between two tries to take a [`Lock`].
const NAP: Duration = Duration::from_micros(20);

/// A lock that is held for moments. A fork copies it also while a thread holds it, and not that thread: the child then takes it, with a
/// default content unless that thread only read, since it may have changed half of the other.
pub(crate) struct Lock<T> {
    /// Twice the number of the [`process`] whose thread holds it, and one more if that may change the content; 0: none holds it.
    holder: AtomicU32,
    content: UnsafeCell<T>,
}

// SAFETY: only the thread that has taken the lock uses the content.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T: Default> Lock<T> {
    pub(crate) const fn new(content: T) -> Self {
        Self { holder: AtomicU32::new(0), content: UnsafeCell::new(content) }
    }

    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        self.hold(true, work)
    }

    /// As [`with`](Self::with); unless it `changes` the content, a fork meanwhile leaves that as it is.
    pub(crate) fn hold<R>(&self, changes: bool, work: impl FnOnce(&mut T) -> R) -> R {
        /// Opens the lock, also after a panic. Release: the next holder sees what this one has written.
        struct Held<'a>(&'a AtomicU32);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.store(0, Release);
            }
        }
        let (own, mut before) = (process(), 0);
        // Acquire: what the last holder wrote is visible.
        while let Err(holder) = self.holder.compare_exchange(before, own << 1 | u32::from(changes), Acquire, Relaxed) {
            before = if holder >> 1 == own { 0 } else { holder };
            thread::sleep(NAP * u32::from(before == 0));
        }
        let _held = Held(&self.holder);
        if before & 1 != 0 {
            // SAFETY: this thread has taken the lock. The old content is not dropped: it may be half changed.
            unsafe { self.content.get().write(T::default()) };
        }
        // SAFETY: this thread has taken the lock.
        work(unsafe { &mut *self.content.get() })
    }
}

/// A reference to an object of Python that any thread may drop. (PyO3 notes those that are dropped without the interpreter's lock under a
/// lock of its own, which the child of a fork may find held for ever.)
pub(crate) struct Kept<T>(ManuallyDrop<Py<T>>);

/// Objects whose references were dropped, until a call has the interpreter's lock.
static DROPPED: Lock<Vec<Py<PyAny>>> = Lock::new(Vec::new());

impl<T> Kept<T> {
    pub(crate) fn new(object: Py<T>) -> Self {
        Self(ManuallyDrop::new(object))
    }

    pub(crate) fn into_py(self) -> Py<T> {
        let mut kept = ManuallyDrop::new(self);
        // SAFETY: `kept` is not used again, nor dropped.
        unsafe { ManuallyDrop::take(&mut kept.0) }
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: nothing uses it after this.
        let object = unsafe { ManuallyDrop::take(&mut self.0) };
        DROPPED.with(|dropped| dropped.push(object.into_any()));
    }
}

/// Does the work of a call that is over at once; what may last is given to [`lasting`]. PyO3 would make a panic a `PanicException`, which
/// is no `Exception`.
pub(crate) fn at_once<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::panic(&*panic).into()))
}

/// Does the `work` of a call that may last, without the interpreter's lock. Unless it `is_short`, a thread of its own does it, and the
/// calling thread waits for that, a signal whose handler raises an exception (Ctrl-C), or the end of `seconds` (TimeoutError). Work that
/// does not end soon after it was stopped is left behind, so it must own, or keep alive, all that it uses.
pub(crate) fn lasting<T: Send + 'static>(
    py: Python<'_>,
    seconds: Option<f64>,
    is_short: bool,
    work: impl FnOnce(&Stopper) -> Result<T, Failure> + Send + 'static,
) -> PyResult<T> {
    // Seconds that can't be represented are too many to matter.
    let deadline = seconds.and_then(|seconds| Instant::now().checked_add(Duration::try_from_secs_f64(seconds).ok()?));
    let stopper = Stopper::at(deadline);
    let own = stopper.clone();
    let guarded = move || catch_unwind(AssertUnwindSafe(|| work(&own))).unwrap_or_else(|panic| Err(Failure::panic(&*panic)));
    if is_short {
        let done = py.detach(guarded);
        deliver(py)?;
        return done.map_err(PyErr::from);
    }
    let (sender, receiver) = mpsc::channel();
    let started = thread::Builder::new().name("socbfs-call".to_owned()).spawn(move || {
        let _ = sender.send(guarded()); // a call that has ended wants no result
    });
    started.map_err(|error| PyRuntimeError::new_err(format!("can't start a thread: {error}; end other programs")))?;
    let receiver = Mutex::new(receiver); // `detach` asks for what threads may share
    let wait = |most: Duration| py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(most)).ok();
    let left = |most: Duration| deadline.map_or(most, |deadline| most.min(deadline.saturating_duration_since(Instant::now())));
    loop {
        let done = wait(left(LOOK));
        if let Err(interrupt) = deliver(py).and_then(|()| py.check_signals()) {
            stopper.stop();
            if done.is_none() {
                drop(wait(GRACE));
            }
            return Err(interrupt);
        }
        if let Some(done) = done {
            return done.map_err(PyErr::from);
        }
        if left(LOOK).is_zero() {
            return Err(match wait(GRACE) {
                Some(Err(failure)) => failure.into(),
                _ => PyTimeoutError::new_err("the call did not finish within its timeout"),
            });
        }
    }
}

/// Messages of the library that Python has not got yet.
static MESSAGES: Lock<Vec<(Level, String, String)>> = Lock::new(Vec::new());

/// Keeps messages until a call takes them to the loggers `socbfs.*` of Python's `logging`. No thread of the library waits for the
/// interpreter's lock, and none needs an interpreter that has ended meanwhile.
struct Messages;

impl Log for Messages {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        // Details, of which a search may write some, are left out.
        about.level() <= Level::Info
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            // The crates beside `socbfs` are modules here: `socbfs_io::scan` is `socbfs.io.scan`.
            let target = record.target().replace("::", ".").replacen("socbfs_", "socbfs.", 1);
            let message = (record.level(), target, record.args().to_string());
            MESSAGES.with(|messages| messages.push(message));
        }
    }

    fn flush(&self) {}
}

/// Lets messages of the library go to Python's `logging`.
pub(crate) fn take_messages() {
    // Another logger was installed before if the module is initialised a second time.
    if log::set_logger(&Messages).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

/// Drops what is left to be dropped, and gives the messages that have arrived to Python. A handler that raises an exception ends the call.
fn deliver(py: Python<'_>) -> PyResult<()> {
    drop(DROPPED.with(mem::take));
    let messages = MESSAGES.with(mem::take);
    for (level, target, message) in messages {
        let level = match level {
            Level::Error => 40,
            Level::Warn => 30,
            _ => 20,
        };
        py.import("logging")?.call_method1("getLogger", (target,))?.call_method1("log", (level, "%s", message))?;
    }
    Ok(())
}
