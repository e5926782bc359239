//! Records that a driver is listing or opening devices, for messages about a driver that hangs or ends the process meanwhile.

use std::{
    io,
    mem::MaybeUninit,
    ptr,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use nix::libc;

/// Time that drivers may take before a warning.
const PATIENCE: Duration = Duration::from_secs(10);

static ASKING: AtomicBool = AtomicBool::new(false);

/// Whether drivers are listing or opening devices right now.
pub fn is_asking() -> bool {
    ASKING.load(SeqCst)
}

/// Calls `ask`, which lists devices, and prints a warning if it takes long.
pub fn asking<T>(ask: impl FnOnce() -> T) -> T {
    watched("listing the OpenCL devices", ask)
}

/// Calls `open`, which opens the device `name`, and prints a warning if it takes long.
pub fn opening<T>(name: &str, open: impl FnOnce() -> T) -> T {
    // The name comes from the driver, so it must be escaped before it reaches a terminal.
    watched(&format!("opening the OpenCL device {}", name.escape_debug()), open)
}

fn watched<T>(what: &str, ask: impl FnOnce() -> T) -> T {
    let line = format!("warning: {what} has not finished after {} s; --device cpu searches without OpenCL\n", PATIENCE.as_secs());
    asking_for(PATIENCE, ask, move || {
        if log::log_enabled!(log::Level::Warn) {
            // Not through the logger, which may need thread-local values with destructors: see `asking_for`.
            let _ = nix::unistd::write(io::stderr(), line.as_bytes());
        }
    })
}

/// The state of the call and of the thread that watches it.
#[derive(PartialEq)]
enum State {
    Starting,
    Waiting,
    Answered,
}

fn locked(lock: &Mutex<State>) -> MutexGuard<'_, State> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `ask`. If that takes longer than `patience`, another thread calls `late`.
///
/// A driver that hangs while it is loaded holds the lock of the dynamic linker, and thread-local values with destructors are registered
/// under that lock. The watching thread has registered what it needs before `ask` begins, and `late` must not need more.
fn asking_for<T>(patience: Duration, ask: impl FnOnce() -> T, late: impl FnOnce() + Send + 'static) -> T {
    let shared = Arc::new((Mutex::new(State::Starting), Condvar::new()));
    let set = |(lock, changed): &(Mutex<State>, Condvar), state| {
        *locked(lock) = state;
        changed.notify_all();
    };
    let theirs = Arc::clone(&shared);
    let watch = move || {
        set(&theirs, State::Waiting);
        let ended = theirs.1.wait_timeout_while(locked(&theirs.0), patience, |state| *state == State::Waiting);
        if ended.is_ok_and(|(_, ended)| ended.timed_out()) {
            late();
        }
    };
    // If the thread can't be started, there is no warning. That does no harm.
    if thread::Builder::new().name("socbfs-asking".into()).spawn(watch).is_ok() {
        drop(shared.1.wait_while(locked(&shared.0), |state| *state == State::Starting));
    }
    ASKING.store(true, SeqCst);
    let answer = keeping_abort(ask);
    ASKING.store(false, SeqCst);
    set(&shared, State::Answered);
    answer
}

/// Calls `ask`, then restores the action on SIGABRT. LLVM, which most drivers contain, replaces the program's handler when it is loaded.
/// Only the program's own handler can explain a later abort, by a driver or by an allocation that failed.
fn keeping_abort<T>(ask: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action it only fills `before`.
    let is_known = unsafe { libc::sigaction(libc::SIGABRT, ptr::null(), before.as_mut_ptr()) } == 0;
    let answer = ask();
    if is_known {
        // SAFETY: `before` is filled above; the action was in force before.
        unsafe { libc::sigaction(libc::SIGABRT, before.as_ptr(), ptr::null_mut()) };
    }
    answer
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn only_late_drivers_are_reported() {
        let (sender, late) = mpsc::channel();
        let (soon, in_time) = (sender.clone(), Duration::from_secs(60));
        assert_eq!(asking_for(in_time, || 7, move || soon.send(()).unwrap()), 7);
        let wait = || late.recv_timeout(Duration::from_secs(20)).is_ok();
        assert!(asking_for(Duration::from_millis(10), wait, move || sender.send(()).unwrap()));
    }
}
