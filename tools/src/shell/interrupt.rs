//! Signals. After SIGINT (Ctrl-C), SIGTERM or SIGHUP a command prints the results that it has so far, no half-written file remains, and the
//! exit code is 130; a second signal ends the process at once. A signal that was ignored when the process began, as SIGHUP is under nohup,
//! stays ignored. SIGQUIT keeps its default action, for debuggers; before it, the process only removes its temporary files. A file that
//! grows beyond the limit of the shell (SIGXFSZ) is a write error like any other.

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

use super::{Failure, progress};
use socbfs::files;

/// The exit code of an interrupted command, as shells use it for SIGINT.
const INTERRUPTED: i32 = 130;

type LastWords = Box<dyn FnOnce() + Send>;

/// Prints the results so far of the command in progress, if a signal ends it.
static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// The program to which signals are passed on, if there is one.
static CHILD: Mutex<Option<Child>> = Mutex::new(None);

#[derive(Debug, Clone, Copy)]
struct Child {
    /// `None`: not started yet.
    process: Option<Pid>,
    /// The first signal that this process received.
    signal: Option<i32>,
}

fn child() -> std::sync::MutexGuard<'static, Option<Child>> {
    CHILD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the signal handlers, and starts the thread that acts on signals.
pub(crate) fn watch() -> Result<(), Failure> {
    let watch = || {
        let ends: Vec<i32> = [consts::SIGINT, consts::SIGTERM, consts::SIGHUP].into_iter().filter(|&signal| !is_ignored(signal)).collect();
        let mut signals = Signals::new(ends.iter().copied().chain([consts::SIGQUIT].into_iter().filter(|&signal| !is_ignored(signal))))?;
        // A second signal ends the process in the handler itself, even if the thread below is blocked.
        let again = Arc::new(AtomicBool::new(false));
        for &signal in &ends {
            flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&again))?;
            flag::register(signal, Arc::clone(&again))?;
        }
        // A handler that does nothing: a command that we start would inherit "ignored", but inherits no handler.
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
    // SAFETY: a `sigaction` of zeros is valid, and the call only writes to it.
    let (result, action) = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(signal, std::ptr::null(), &raw mut action), action)
    };
    result == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Ends the process after an interruption: prints the results so far, and removes temporary files.
fn end() -> ! {
    // Locked until the end, so that the command itself does not print the same results meanwhile.
    let mut words = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    // The output and the shell's prompt begin on a line of their own.
    if !progress::clear() && io::stderr().is_terminal() {
        let _ = writeln!(io::stderr());
    }
    if let Some(speak) = words.take() {
        speak();
    }
    files::remove_temporaries();
    // SAFETY: ends the process. (Not by `exit`, which runs the exit handlers of OpenCL drivers: some crash or hang if threads of the
    // command are still using the driver.)
    unsafe { libc::_exit(INTERRUPTED) };
}

/// Passes `signal` on to the child program. Returns false if there is none.
fn pass_on(signal: i32) -> bool {
    let mut child = child();
    let Some(child) = child.as_mut() else { return false };
    child.signal.get_or_insert(signal);
    // A terminal sends these signals to its whole foreground group, so the child has already received this one.
    let of_terminal = matches!(signal, consts::SIGINT | consts::SIGQUIT) && in_foreground();
    if let (Some(process), Ok(signal), false) = (child.process, Signal::try_from(signal), of_terminal) {
        let _ = kill(process, signal); // fails if the child has ended just now
    }
    true
}

/// Whether this process is in the foreground group of its terminal.
fn in_foreground() -> bool {
    std::fs::File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(&terminal).is_ok_and(|group| group == getpgrp()))
}

/// Passes signals on to the program that is about to start, until the result is dropped.
pub(crate) fn passing() -> Passing {
    *child() = Some(Child { process: None, signal: None });
    Passing
}

/// While this exists, signals are passed on to a child program.
#[must_use]
pub(crate) struct Passing;

impl Passing {
    /// Sets the process id of the program, and passes on a signal that came earlier.
    pub(crate) fn to(&self, process: u32) {
        let process = i32::try_from(process).ok().map(Pid::from_raw);
        let early = child().as_mut().and_then(|child| {
            child.process = process;
            child.signal
        });
        if let Some(signal) = early {
            pass_on(signal);
        }
    }

    /// Whether this process received a signal.
    pub(crate) fn interrupted(&self) -> bool {
        child().is_some_and(|child| child.signal.is_some())
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        *child() = None;
    }
}

/// Makes an interruption call `speak`, until the returned [`Words`] are dropped.
pub(crate) fn last_words(speak: impl FnOnce() + Send + 'static) -> Words {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(speak));
    Words
}

/// While this exists, an interruption prints the results so far of the command in progress.
#[must_use]
pub(crate) struct Words;

impl Drop for Words {
    fn drop(&mut self) {
        LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
