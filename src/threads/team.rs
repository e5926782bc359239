//! A permanent team of threads. A thread without work spins briefly for the next piece of work, and then sleeps.
//!
//! A level of a search can take a few microseconds, less than waking a thread of a general pool. A level loop that waits for all its
//! threads loses a scheduling quantum whenever the system takes a core away. So the caller of [`Team::run`] starts at once, the others join
//! late or not at all, and the work is handed out in chunks: the call ends when the caller finds no more chunks and the threads that joined
//! have finished theirs.

use std::{
    cell::{Cell, UnsafeCell},
    hint,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicU32, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        },
    },
    thread::{self, JoinHandle, Thread},
    time::{Duration, Instant},
};

use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    unistd::Pid,
};

use super::LOOKS;

/// Most threads of a team.
pub const MOST_THREADS: usize = 4096;

/// How long a thread without work spins before it sleeps: longer than the serial part between two levels.
const SPIN: Duration = Duration::from_micros(100);
/// While the caller spins for the last helper, it offers its core to other threads once in this many turns.
const SPINS_PER_YIELD: u32 = 4096;
/// A caller that has spun this many turns (some milliseconds) for the last helper sleeps between two checks.
const YIELDS_UNTIL: u32 = 64 * SPINS_PER_YIELD;
/// How long the caller sleeps between two checks.
const NAP: Duration = Duration::from_micros(50);
/// Set in [`Gate::state`] while helpers may join; the lower bits count those inside.
const OPEN: u32 = 1 << 31;

type Job = *const (dyn Fn(usize) + Sync);

/// The state that caller and helpers share.
struct Gate {
    /// Number of calls so far; helpers wait for it to change.
    calls: AtomicU32,
    /// [`OPEN`] and the number of helpers inside.
    state: AtomicU32,
    /// Helpers asleep or about to fall asleep.
    sleepers: AtomicUsize,
    /// Thread handles of the helpers (helper `i` at `i - 1`), once all of them have started.
    helpers: OnceLock<Box<[Thread]>>,
    job: UnsafeCell<Option<Job>>,
    leave: AtomicBool,
    /// There are more threads than processors: a waiting thread yields its processor.
    crowded: bool,
    /// A helper's share of the work panicked.
    panicked: AtomicBool,
}

// SAFETY: `job` is written only by the one caller while the gate is closed and empty, and read only by helpers that have entered an open
// gate; entering (acquire) follows opening (release).
unsafe impl Sync for Gate {}
// SAFETY: the job pointer is only dereferenced between the opening and the end of `Team::run`, which borrows it.
unsafe impl Send for Gate {}

impl Gate {
    /// Wakes the two helpers below thread `index` in a binary tree whose root is the caller, if any helper sleeps. Each helper wakes those
    /// below it, so no thread pays for more than two wake-ups (a system call each) before it begins to work.
    fn wake_below(&self, index: usize) {
        // This load is sequentially consistent, and so is a helper's announcement that it falls asleep. So either the helper sees the call
        // that this thread has made or seen, or this thread sees that the helper sleeps.
        if self.sleepers.load(SeqCst) == 0 {
            return;
        }
        let below = 2 * index..2 * index + 2;
        self.helpers.get().into_iter().flat_map(|helpers| helpers.iter().take(below.end).skip(below.start)).for_each(Thread::unpark);
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("calls", &self.calls).field("state", &self.state).finish_non_exhaustive()
    }
}

/// A caller and its helper threads.
#[derive(Debug)]
pub struct Team {
    gate: Arc<Gate>,
    helpers: Vec<JoinHandle<()>>,
    /// CPUs that the team may run on; empty: any.
    cpus: Vec<usize>,
    /// The process that started the team: a forked child has none of the helpers.
    process: u32,
    /// Makes the type `!Sync`: a team runs one job at a time, so it may move to another thread, but two threads must not share it.
    one_caller: PhantomData<Cell<()>>,
}

impl Team {
    /// A team of `size` threads, the caller being one of them. `cpus` (if not empty) binds the threads in turn, the caller first.
    ///
    /// # Errors
    /// A sentence that names what the system refused.
    pub fn new(size: usize, cpus: &[usize]) -> Result<Self, String> {
        bind(&cpus[..cpus.len().min(1)])?;
        Self::start(size, cpus, |index| if cpus.is_empty() { Vec::new() } else { vec![cpus[index % cpus.len()]] })
    }

    /// A team of the caller of `team` and one more thread, which may run on any CPU of `team`. That thread mostly waits for devices. It is
    /// not bound to the caller's CPU alone, since it would then have to wait for that CPU.
    ///
    /// # Errors
    /// As for [`Team::new`].
    pub(crate) fn beside(team: &Self) -> Result<Self, String> {
        Self::start(2, &team.cpus, |_| team.cpus.clone())
    }

    fn start(size: usize, cpus: &[usize], of_helper: impl Fn(usize) -> Vec<usize>) -> Result<Self, String> {
        if size > MOST_THREADS {
            return Err(format!("{size} threads are more than the limit of {MOST_THREADS}"));
        }
        let processors = match cpus {
            [] => thread::available_parallelism().map_or(1, usize::from),
            _ => cpus.iter().enumerate().filter(|&(place, cpu)| !cpus[..place].contains(cpu)).count(),
        };
        let gate = Arc::new(Gate {
            calls: AtomicU32::new(0),
            state: AtomicU32::new(0),
            sleepers: AtomicUsize::new(0),
            helpers: OnceLock::new(),
            job: UnsafeCell::new(None),
            leave: AtomicBool::new(false),
            crowded: size > processors,
            panicked: AtomicBool::new(false),
        });
        let mut team = Self { gate, helpers: Vec::new(), cpus: cpus.to_vec(), process: std::process::id(), one_caller: PhantomData };
        for index in 1..size.max(1) {
            let gate = Arc::clone(&team.gate);
            let own = of_helper(index);
            let (report, bound) = std::sync::mpsc::sync_channel(1);
            let helper = thread::Builder::new()
                .name(format!("socbfs-{index}"))
                .spawn(move || {
                    let result = bind(&own);
                    let go_on = result.is_ok();
                    let _ = report.send(result);
                    if go_on {
                        help(&gate, index);
                    }
                })
                .map_err(|error| format!("can't start thread {index} of {size}: {error}; use fewer with --threads"))?;
            team.helpers.push(helper);
            bound.recv().unwrap_or_else(|_| Err(format!("thread {index} ended before it started")))?;
        }
        team.gate.helpers.get_or_init(|| team.helpers.iter().map(|helper| helper.thread().clone()).collect());
        Ok(team)
    }

    /// Number of threads, the caller included.
    pub fn size(&self) -> usize {
        self.helpers.len() + 1
    }

    /// Whether a helper sleeps, so that it would come late to a small piece of work.
    pub fn sleeps(&self) -> bool {
        self.gate.sleepers.load(Relaxed) > 0
    }

    /// Wakes the helpers, which then spin as after a piece of work.
    pub fn wake(&self) {
        if self.sleeps() {
            // A call without work: the gate is closed, so no helper enters.
            self.gate.calls.fetch_add(1, SeqCst); // see `wake_below`
            self.gate.wake_below(0);
        }
    }

    /// Runs `work(0)` on the caller and `work(i)` on every helper that arrives before the caller is done; returns when all of them are
    /// done. `work` must hand out its own chunks, since no thread waits for a late helper.
    ///
    /// # Panics
    /// If `work` panics on any thread, or calls `run` of the same team.
    pub fn run(&self, work: &(dyn Fn(usize) + Sync)) {
        let gate = &*self.gate;
        if self.helpers.is_empty() {
            work(0);
            return;
        }
        assert_eq!(gate.state.load(Acquire), 0, "a team runs one piece of work at a time");
        // SAFETY: the gate is closed and empty, and stays so: only `run` opens it, and only this thread can be in `run` (a team is not
        // `Sync`). So no thread reads `job`. The lifetime is erased, but this call returns only after every thread that could read the
        // pointer has left.
        unsafe { *gate.job.get() = Some(std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(work)) };
        // Release: a helper that enters (acquire) has the job, even if it has not seen this call yet and still answers an earlier one.
        gate.state.store(OPEN, Release);
        gate.calls.fetch_add(1, SeqCst); // see `wake_below`
        gate.wake_below(0);
        let closing = CloseOnDrop(gate);
        work(0);
        drop(closing);
        // A helper sets it before it leaves, and this thread has seen all of them leave.
        assert!(!gate.panicked.load(Acquire), "a helper thread panicked in the middle of a level");
    }
}

/// Closes the gate and waits until it is empty, even if the caller's own share of the work panics.
struct CloseOnDrop<'a>(&'a Gate);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, AcqRel);
        let mut spins = 0u32;
        // Acquire: what helpers wrote before they left (release) is visible when this returns.
        while self.0.state.load(Acquire) != 0 {
            spins = spins.saturating_add(1);
            // A helper that lost its core needs the caller's core to finish. A helper of a lower scheduling class gets that core only while
            // the caller sleeps.
            match spins {
                YIELDS_UNTIL.. => thread::sleep(NAP),
                _ if self.0.crowded || spins % SPINS_PER_YIELD == 0 => thread::yield_now(),
                _ => hint::spin_loop(),
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A fork does not copy the helper threads, so there is none to wait for.
            self.helpers.drain(..).for_each(std::mem::forget);
            return;
        }
        // A helper looks at it after it has seen the call below, which orders it.
        self.gate.leave.store(true, Release);
        self.gate.calls.fetch_add(1, SeqCst);
        for helper in self.helpers.drain(..) {
            helper.thread().unpark();
            let _ = helper.join();
        }
    }
}

/// The loop of a helper.
fn help(gate: &Gate, index: usize) {
    let mut seen = 0;
    loop {
        seen = wait(gate, seen);
        if gate.leave.load(Acquire) {
            return;
        }
        gate.wake_below(index);
        // Enter if the gate is still open. Acquire: the job and all that the caller wrote before it opened the gate are visible.
        let entered = gate.state.fetch_update(AcqRel, Acquire, |state| (state & OPEN != 0).then_some(state + 1)).is_ok();
        if entered {
            // SAFETY: the gate was open when this thread entered, and the caller waits for it, so the job is set and alive.
            let job = unsafe { (*gate.job.get()).map(|job| &*job) };
            if job.is_some_and(|job| catch_unwind(AssertUnwindSafe(|| job(index))).is_err()) {
                gate.panicked.store(true, Release);
            }
            gate.state.fetch_sub(1, Release); // see `CloseOnDrop`
        }
    }
}

/// Waits until the number of calls differs from `seen`; returns it.
fn wait(gate: &Gate, seen: u32) -> u32 {
    let begin = Instant::now();
    loop {
        for _ in 0..LOOKS {
            let calls = gate.calls.load(SeqCst);
            if calls != seen {
                return calls;
            }
            hint::spin_loop();
        }
        if gate.crowded {
            thread::yield_now();
        }
        if begin.elapsed() > SPIN {
            break;
        }
    }
    gate.sleepers.fetch_add(1, SeqCst); // see `wake_below`
    let calls = loop {
        let calls = gate.calls.load(SeqCst);
        if calls != seen {
            break calls;
        }
        thread::park();
    };
    gate.sleepers.fetch_sub(1, SeqCst);
    calls
}

/// Gives the calling thread back, when dropped, the CPUs on which it could run before: a [`Team`] binds the thread that makes it.
#[derive(Debug)]
pub struct AffinityGuard {
    before: Option<CpuSet>,
    /// Makes the type `!Send`: it is about one thread.
    one_thread: PhantomData<*const ()>,
}

impl AffinityGuard {
    /// Notes the CPUs of the calling thread.
    pub fn new() -> Self {
        Self { before: sched_getaffinity(Pid::from_raw(0)).ok(), one_thread: PhantomData }
    }

    /// As [`AffinityGuard::new`], and binds the thread to the first of `cpus`, if there is one. It is not bound if the system refuses.
    pub(crate) fn bound(cpus: &[usize]) -> Option<Self> {
        let first = cpus.get(..1)?;
        let guard = Self::new();
        let _ = bind(first);
        Some(guard)
    }
}

impl Default for AffinityGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(Pid::from_raw(0), before);
        }
    }
}

/// Binds the calling thread to these CPUs, if any are named.
fn bind(cpus: &[usize]) -> Result<(), String> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    cpus.iter().try_for_each(|&cpu| set.set(cpu)).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set)).map_err(|errno| {
        let named: Vec<String> = cpus.iter().map(usize::to_string).collect();
        format!(
            "can't bind a thread to CPU {}: {}; `nproc` and `taskset -p $$` show the CPUs that may be used",
            named.join(" or "),
            errno.desc()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_threads_are_refused_before_memory_is_allocated() {
        for size in [MOST_THREADS + 1, u32::MAX as usize, usize::MAX] {
            assert!(Team::new(size, &[]).unwrap_err().contains("more than the limit"));
        }
    }

    #[test]
    fn every_chunk_is_done_once_even_if_helpers_are_late() {
        for size in 1..5 {
            let team = Team::new(size, &[]).unwrap();
            for round in 0..2000usize {
                let next = AtomicUsize::new(0);
                let done: Vec<AtomicU32> = (0..17).map(|_| AtomicU32::new(0)).collect();
                team.run(&|_| {
                    loop {
                        let chunk = next.fetch_add(1, Relaxed);
                        if chunk >= done.len() {
                            break;
                        }
                        done[chunk].fetch_add(1, Relaxed);
                    }
                });
                assert!(done.iter().all(|count| count.load(Relaxed) == 1));
                if round % 500 == 0 {
                    thread::sleep(Duration::from_millis(1)); // let the helpers fall asleep
                }
            }
        }
    }

    #[test]
    fn sleeping_helpers_all_wake_up_for_a_run() {
        for size in [2, 3, 4, 7, 12] {
            let team = Team::new(size, &[]).unwrap();
            for round in 0..5 {
                // Before every round but the first, wait until all helpers sleep.
                let begin = Instant::now();
                while round > 0 && team.gate.sleepers.load(SeqCst) + 1 < size {
                    assert!(begin.elapsed() < Duration::from_secs(60), "{size} threads: a helper does not fall asleep");
                    thread::sleep(SPIN);
                }
                let arrived = AtomicUsize::new(0);
                team.run(&|_| {
                    arrived.fetch_add(1, SeqCst);
                    let begin = Instant::now();
                    while arrived.load(SeqCst) < size && begin.elapsed() < Duration::from_secs(60) {
                        thread::yield_now();
                    }
                });
                assert_eq!(arrived.into_inner(), size, "round {round}");
            }
        }
    }

    #[test]
    fn a_panic_of_a_helper_reaches_the_caller() {
        let team = Team::new(2, &[]).unwrap();
        let helped = AtomicBool::new(false);
        let result = catch_unwind(AssertUnwindSafe(|| {
            team.run(&|index| {
                if index == 1 {
                    helped.store(true, SeqCst);
                    panic!("on purpose");
                }
                while !helped.load(SeqCst) {
                    thread::yield_now();
                }
            });
        }));
        assert!(result.is_err());
    }

    #[test]
    fn a_nested_run_of_a_team_is_refused() {
        thread_local! {
            static TEAM: Team = Team::new(2, &[]).unwrap();
        }
        TEAM.with(|team| {
            let nested = catch_unwind(AssertUnwindSafe(|| {
                team.run(&|index| {
                    if index == 0 {
                        TEAM.with(|team| team.run(&|_| ()));
                    }
                });
            }));
            assert!(nested.is_err());
            let ran = AtomicBool::new(false);
            team.run(&|_| ran.store(true, Relaxed));
            assert!(ran.into_inner(), "the team is as good as before");
        });
    }

    /// The CPUs that the calling thread may run on.
    fn allowed() -> Vec<usize> {
        let set = sched_getaffinity(Pid::from_raw(0)).unwrap();
        (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap()).collect()
    }

    #[test]
    fn threads_beside_a_bound_caller_are_not_bound_to_its_cpu() {
        let all = allowed();
        // In a separate thread, because the binding outlasts the team.
        let bound = thread::spawn(move || {
            let team = Team::new(1, &all).unwrap();
            assert_eq!(allowed(), all[..1]);
            let pair = Team::beside(&team).unwrap();
            let seen = std::sync::Mutex::new(None);
            pair.run(&|index| {
                if index == 1 {
                    *seen.lock().unwrap() = Some(allowed());
                }
                while seen.lock().unwrap().is_none() {
                    thread::yield_now();
                }
            });
            assert_eq!(seen.into_inner().unwrap(), Some(all));
        });
        bound.join().unwrap();
    }

    #[test]
    fn an_impossible_cpu_is_named_in_the_error() {
        let error = Team::new(2, &[100_000]).unwrap_err();
        assert!(error.contains("CPU 100000"), "{error}");
    }
}
