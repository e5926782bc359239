//! Signals. After SIGINT (Ctrl-C), SIGTERM or SIGHUP a command prints the results that it has so far, no half-written file remains, and the
//! exit code is 130; a second signal ends the process at once. A signal that was ignored when the process began, as SIGHUP is under nohup,
//! stays ignored. SIGQUIT is for debuggers: the process removes only its temporary files. A file that grows beyond the limit of the shell
//! (SIGXFSZ) is a write error like any other.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use nix::{
    libc,
    sys::signal::{Signal, kill},
    unistd::{Pid, getpgrp, tcgetpgrp},
};
use signal_hook::{consts, flag, iterator::Signals, low_level};

use super::error::Failure;
use crate::files;

/// The exit code of an interrupted command, as shells use it for SIGINT.
const INTERRUPTED: i32 = 130;

type LastWords = Box<dyn FnOnce() + Send>;

/// The output of the command in progress in case of a signal.
static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// A program to which signals are passed on.
static CHILD: Mutex<Option<Child>> = Mutex::new(None);

#[derive(Debug, Clone, Copy)]
struct Child {
    /// `None`: about to be started.
    process: Option<Pid>,
    /// The first signal that came.
    signal: Option<i32>,
}

fn child() -> std::sync::MutexGuard<'static, Option<Child>> {
    CHILD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches for the signals.
pub(super) fn watch() -> Result<(), Failure> {
    let watch = || {
        let ends: Vec<i32> = [consts::SIGINT, consts::SIGTERM, consts::SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect();
        let mut signals = Signals::new(ends.iter().copied().chain([consts::SIGQUIT].into_iter().filter(|&signal| !is_ignored(signal))))?;
        // The second signal of these ends the process in the handler itself, whatever the thread below waits for.
        let again = Arc::new(AtomicBool::new(false));
        for &signal in &ends {
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        // A handler, and not "ignored", which a command that we start would inherit.
        flag::register(consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        let handle = move || {
            for signal in signals.forever() {
                if pass_on(signal) {
                    again.store(false, Ordering::SeqCst);
                } else if signal == consts::SIGQUIT {
                    files::remove_temporaries();
                    let _ = low_level::emulate_default_handler(signal);
                } else {
                    end();
                }
            }
        };
        std::thread::Builder::new().name("socbfs-signals".into()).spawn(handle).map(|_| ())
    };
    watch().map_err(|error: io::Error| Failure::because("can't watch for Ctrl-C", &error))
}

/// Whether `signal` is ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: an action of zeros is a value; the call only writes to it.
    let (result, action) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action), action)
    };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Ends the process as interrupted.
fn end() -> ! {
    // Held to the end, so that the command itself does not say the same beside it.
    let mut words = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    if io::stderr().is_terminal() {
        // What is said, and the shell's prompt, do not stand behind a half line of progress.
        let _ = writeln!(io::stderr());
    }
    if let Some(speak) = words.take() {
        speak();
    }
    files::remove_temporaries();
    // SAFETY: ends the process. (Not by `exit`: that runs what OpenCL drivers have left to be done at the end, while the command's
    // threads are still in the midst of them, and some crash or hang over it.)
    unsafe { libc::_exit(INTERRUPTED) };
}

/// Passes `signal` on to the program that runs; false where there is none.
fn pass_on(signal: i32) -> bool {
    let mut child = child();
    let Some(child) = child.as_mut() else { return false };
    child.signal.get_or_insert(signal);
    // A terminal sends its own to all of its foreground group: the program has it already.
    let of_terminal = matches!(signal, consts::SIGINT | consts::SIGQUIT) && in_foreground();
    if let (Some(process), Ok(signal), false) = (child.process, Signal::try_from(signal), of_terminal) {
        let _ = kill(process, signal); // it may have ended just now
    }
    true
}

/// Whether a terminal counts this process among those in its foreground.
fn in_foreground() -> bool {
    std::fs::File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}

/// Until it is dropped, signals go to the program that is about to start.
pub(super) fn passing() -> Passing {
    *child() = Some(Child { process: None, signal: None });
    Passing
}

/// Signals are passed on.
#[must_use]
pub(super) struct Passing;

impl Passing {
    /// The program runs as `process`.
    pub(super) fn to(&self, process: u32) {
        let process = i32::try_from(process).ok().map(Pid::from_raw);
        let early = child().as_mut().and_then(|child| {
            child.process = process;
            child.signal
        });
        if let Some(signal) = early {
            pass_on(signal);
        }
    }

    /// Whether a signal came.
    pub(super) fn interrupted(&self) -> bool {
        child().is_some_and(|child| child.signal.is_some())
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        *child() = None;
    }
}

/// An interruption of the command calls `speak`, until the [`Words`] are dropped.
pub(super) fn last_words(speak: impl FnOnce() + Send + 'static) -> Words {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(speak));
    Words
}

/// The command in progress has output for an interruption.
#[must_use]
pub(super) struct Words;

impl Drop for Words {
    fn drop(&mut self) {
        LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
