//! What happens on Ctrl-C, SIGTERM and SIGHUP: a command that has something worth keeping says it, no half-written file stays behind,
//! and the exit code is 130.

use std::sync::{Mutex, PoisonError};

use super::error::Failure;
use crate::files;

/// The exit code of an interrupted command, as a shell has it for SIGINT.
const INTERRUPTED: i32 = 130;

type LastWords = Box<dyn FnOnce() + Send>;

/// What the command in progress would still say.
static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// Watches for the signals.
pub(super) fn watch() -> Result<(), Failure> {
    let handler = || {
        // Held to the end, so that the command itself does not say the same beside it.
        let mut words = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(speak) = words.take() {
            speak();
        }
        files::remove_temporaries();
        // SAFETY: ends the process. (Not by `exit`: that runs what OpenCL drivers have left to be done at the end, while the command's
        // threads are still in the midst of them, and some crash or hang over it.)
        unsafe { nix::libc::_exit(INTERRUPTED) };
    };
    ctrlc::set_handler(handler).map_err(|error| Failure::because("can't watch for Ctrl-C", &error))
}

/// From now on `speak` is called when the command is interrupted, until the [`Words`] are dropped.
pub(super) fn last_words(speak: impl FnOnce() + Send + 'static) -> Words {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(speak));
    Words
}

/// The command in progress has last words.
#[must_use]
pub(super) struct Words;

impl Drop for Words {
    fn drop(&mut self) {
        LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
