//! Waits for a device that end, whatever its driver does.
//!
//! No call of OpenCL that waits has a time limit, and some drivers never return from one after a kernel has hung. So a thread of its own
//! makes that call ([`Waiter`]), and the caller waits for the thread with a limit. If the limit passes, the thread is abandoned inside the
//! driver: the device counts as lost, and all that the driver may still touch is kept (see [`kept`](super::kept)).
//!
//! Waking a thread twice takes longer than a small level. So the caller first asks for the state of the last command's event, which does
//! not wait, and wakes the thread only if that command does not end soon. (PoCL on two cores, medians in turn: 29.2 us for an empty launch
//! with clFinish, 33.8 us with the thread alone, 29.2 us with both; 97.7, 121.7 and 97.6 us for a kernel of 65 us.)

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use opencl3::{
    command_queue::{CommandQueue, finish},
    event::{CL_COMPLETE, Event},
    types::cl_command_queue,
};

use super::error::{Called, DeviceError};

/// How long the state of an event is asked for before the thread is woken.
const SOON: Duration = Duration::from_micros(50);
/// Parts in which a limit passes. A process that was stopped or starved counts one part, however long that took.
const PARTS: u32 = 20;

/// A queue that another thread may wait for.
struct Queue(cl_command_queue);

// SAFETY: any thread may use a queue of OpenCL (OpenCL 1.2, appendix A.2). It lives as long as the thread uses it: `Waiter` is dropped
// before it, or it is never released.
unsafe impl Send for Queue {}

/// What the thread does.
enum State {
    /// It sleeps.
    Idle,
    /// It is to wait for the queue, or does so.
    Waits,
    /// It has waited for the queue, with this result.
    Ended(Result<(), i32>),
    /// It is to end.
    Leaves,
}

struct Shared {
    state: Mutex<State>,
    /// The state has become `Waits` or `Leaves`.
    asked: Condvar,
    /// The state has become `Ended`.
    ended: Condvar,
}

/// A thread that waits for a queue.
pub(super) struct Waiter {
    shared: Arc<Shared>,
    /// `None` once it is abandoned.
    thread: Option<JoinHandle<()>>,
}

impl Waiter {
    /// Starts the thread.
    pub(super) fn new(queue: &CommandQueue) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::new(State::Idle), asked: Condvar::new(), ended: Condvar::new() });
        let (its, queue) = (Arc::clone(&shared), Queue(queue.get()));
        let thread = thread::Builder::new().name("socbfs-wait".into()).spawn(move || serve(&its, &queue))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Waits until the queue is empty. `None` if that takes longer than `limit` (zero: no limit); the waiter then is of no more use.
    pub(super) fn finish(&mut self, limit: Duration) -> Option<Result<(), DeviceError>> {
        let mut state = locked(&self.shared.state);
        *state = State::Waits;
        self.shared.asked.notify_one();
        let mut parts = 0;
        loop {
            if let State::Ended(result) = *state {
                *state = State::Idle;
                return Some(result.called("clFinish"));
            }
            if limit.is_zero() {
                state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            if parts == PARTS {
                *state = State::Leaves;
                drop(state);
                self.thread = None;
                return None;
            }
            let waited = self.shared.ended.wait_timeout(state, limit / PARTS).unwrap_or_else(PoisonError::into_inner);
            parts += u32::from(waited.1.timed_out());
            state = waited.0;
        }
    }

    /// Does not join the thread: it does not exist in the child of a fork.
    pub(super) fn forget(&mut self) {
        std::mem::forget(self.thread.take());
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            *locked(&self.shared.state) = State::Leaves;
            self.shared.asked.notify_one();
            let _ = thread.join();
        }
    }
}

fn serve(shared: &Shared, queue: &Queue) {
    let mut state = locked(&shared.state);
    loop {
        match *state {
            State::Leaves => return,
            State::Waits => {
                drop(state);
                let result = finish(queue.0);
                state = locked(&shared.state);
                if let State::Waits = *state {
                    *state = State::Ended(result);
                    shared.ended.notify_one();
                }
            }
            State::Idle | State::Ended(_) => state = shared.asked.wait(state).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the command of `event`, which was flushed, ends soon.
///
/// # Errors
/// Errors of the driver; that of the command.
pub(super) fn ends_soon(event: &Event) -> Result<bool, DeviceError> {
    const CALL: &str = "clGetEventInfo";
    let begin = Instant::now();
    loop {
        match event.command_execution_status().called(CALL)?.0 {
            // The state of an event is no synchronisation; this call is, and returns at once.
            CL_COMPLETE => return event.wait().called("clWaitForEvents").map(|()| true),
            code @ ..0 => return Err(DeviceError { call: CALL, code }),
            _ if begin.elapsed() >= SOON => return Ok(false),
            _ => thread::yield_now(),
        }
    }
}

/// Lets the process end although a driver may wait for its lost device when it is unloaded: what programs and libraries do at the end of
/// the process gets some seconds, and then the process ends with its exit code. (Only where the C library reports that code.)
pub(super) fn end_in_time() {
    #[cfg(target_env = "gnu")]
    {
        use std::{ffi::c_int, ffi::c_void, ptr, sync::Once};

        use nix::libc;

        /// What is done at the end of a process takes no longer, unless it hangs.
        const LIMIT: Duration = Duration::from_secs(3);
        unsafe extern "C" {
            fn on_exit(call: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
        }
        extern "C" fn exits(code: c_int, _: *mut c_void) {
            let ends = move || {
                thread::sleep(LIMIT);
                // SAFETY: ends the process.
                unsafe { libc::_exit(code) };
            };
            // Without the thread the process ends as it would have.
            drop(thread::Builder::new().spawn(ends));
        }
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // The functions are called in the reverse order of their registration, so this one is called before those of the drivers.
            // SAFETY: the function stays in memory: this library has a thread, abandoned in a driver, which keeps it loaded.
            unsafe { on_exit(exits, ptr::null_mut()) };
        });
    }
}
