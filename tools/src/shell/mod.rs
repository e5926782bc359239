//! What commands share: the flags of searches and graphs, errors with their cures, outputs, progress, signals.

pub(crate) mod config;
pub(crate) mod error;
pub(crate) mod fatal;
pub(crate) mod interrupt;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod shown;
pub(crate) mod so_far;
pub(crate) mod source;

use std::io::{Write as _, stderr};

use error::Failure;

/// Prints `error: ...` and the cure.
pub(crate) fn tell(failure: &Failure) {
    if let Failure::Error { message, cure } = failure {
        say(&shown::line(&format!("error: {message}")));
        if let Some(cure) = cure {
            say(&shown::line(&format!("  help: {cure}")));
        }
    }
}

/// Prints a line on standard error. `eprintln!` would panic if the reader of standard error has gone.
pub(crate) fn say(line: &str) {
    let _ = writeln!(stderr(), "{}", shown::text(line));
}
