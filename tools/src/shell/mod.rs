//! What commands share: the flags of searches and graphs, errors with their cures, outputs, progress, signals.

pub(crate) mod clocks;
pub(crate) mod config;
pub(crate) mod energy;
pub(crate) mod error;
pub(crate) mod fatal;
pub(crate) mod interrupt;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod shown;
pub(crate) mod so_far;
pub(crate) mod source;

use std::{
    io::{Write as _, stderr},
    sync::{Mutex, PoisonError},
};

#[cfg(feature = "mpi")]
pub(crate) use config::ClusterArgs;
pub(crate) use config::{
    GraphsArgs, HostArgs, LayoutArgs, PolicyArg, Root, RootArgs, SearchArgs, by_name, root, with_variables, without_effect,
};
pub(crate) use energy::{EnergyArgs, GLANCE, Measured, SensorArgs, WindowArgs, kept, parse_count, profile_at, seconds_in};
pub(crate) use error::Failure;
pub(crate) use output::{
    Output, OutputArgs, Outputs, document, keep_stdout, print, print_coloured, print_documents, print_json, protect, read, results,
    take_stdout, worse_of,
};
pub(crate) use progress::Bar;
pub(crate) use so_far::SoFar;
pub(crate) use source::{Listed, READ, Source, WRITTEN, with_graph_help};

use socbfs::Vertex;

/// A line for each flag that an environment variable sets. They are printed once, after the first error.
pub(crate) static VARIABLES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints `error: ...`, the cure and, after the first error, the environment variables that set flags.
pub(crate) fn tell(failure: &Failure) {
    if let Failure::Error { message, cure } = failure {
        say(&shown::line(&format!("error: {message}")));
        if let Some(cure) = cure {
            say(&shown::line(&format!("  help: {cure}")));
        }
        tell_variables();
    }
}

/// Says that the tree from `root` failed validation.
pub(crate) fn invalid(root: Vertex, violation: &str) -> Failure {
    say(&format!("error: the tree from root {root} failed validation: {violation}"));
    Failure::Invalid
}

/// Prints the environment variables that set flags, unless they have been printed: an error may be about their values.
pub(crate) fn tell_variables() {
    let lines = std::mem::take(&mut *VARIABLES.lock().unwrap_or_else(PoisonError::into_inner));
    lines.iter().for_each(|line| say(&format!("  help: {line}")));
}

/// Prints a line on standard error. `eprintln!` would panic if the reader of standard error has gone.
pub(crate) fn say(line: &str) {
    let _ = writeln!(stderr(), "{}", shown::fitting(&shown::text(line), stderr()));
}
