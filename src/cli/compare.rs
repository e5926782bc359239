//! `socbfs compare`: two recorded runs.

use std::path::PathBuf;

use clap::Args;

use super::{error::Failure, output::print, say};
use crate::files;
use crate::report::{Comparison, ComparisonError, Run};

const EXAMPLES: &str = "\
Examples:
  socbfs bench --json before.json
  socbfs bench --json after.json --policy alpha-beta:50,18
  socbfs compare before.json after.json

A machine drifts: trust a ratio only if A and B were run in turn, more than once.";

/// Compare two records of `socbfs bench --json`
///
/// Prints the ratio of the harmonic means and the median of the ratios root by root, and warns of every field in which machine, build, graph or
/// settings differ. Runs over different graphs are refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArgs {
    /// The run compared with
    #[arg(value_name = "A.json")]
    a: PathBuf,

    /// The run that is compared
    #[arg(value_name = "B.json")]
    b: PathBuf,

    /// Compare runs over different graphs
    #[arg(long)]
    force: bool,
}

pub(super) fn run(arguments: &CompareArgs) -> Result<(), Failure> {
    let names = [&arguments.a, &arguments.b].map(|path| path.display().to_string());
    let load = |path: &PathBuf, name: &str| {
        let text = files::read_text(path, files::Kind::Stream, files::RECORD)
            .map_err(|error| Failure::because(&format!("can't read {name}"), &error))?;
        Run::parse(&text, name).map_err(|error| failure(&error))
    };
    let (a, b) = (load(&arguments.a, &names[0])?, load(&arguments.b, &names[1])?);
    let comparison = Comparison::new((&names[0], &a), (&names[1], &b), arguments.force).map_err(|error| failure(&error))?;
    for (field, [left, right]) in &comparison.differences {
        say(&format!("warning: {field} differs: {left} | {right}"));
    }
    print(&comparison.table([&names[0], &names[1]]))
}

fn failure(error: &ComparisonError) -> Failure {
    let failure = Failure::because("", error);
    match error {
        ComparisonError::NotARecord { .. } => failure.cure("write a record with `socbfs bench --json FILE`"),
        ComparisonError::Version { .. } => failure.cure("record both runs anew with the same build"),
        _ => failure,
    }
}
