//! `socbfs compare`: two recorded runs side by side.

use std::path::PathBuf;

use clap::Args;

use crate::report::{Comparison, Run, figures, html};
use crate::shell::{
    error::Failure,
    output::{Output, both, print, read, take_stdout},
};
use socbfs::files;

const EXAMPLES: &str = "\
Examples:
  socbfs bench --json before.json
  socbfs bench --json after.json --policy alpha-beta:50,18
  socbfs compare before.json after.json

The speed of a machine drifts: trust a ratio only if A and B were run in turn,
more than once.";

/// Compare two records of `socbfs bench --json`
///
/// Prints the ratio of the harmonic means and the median of the ratios root by root, and warns of every field in which machine, build,
/// graph, roots or settings differ. A run is called faster if it is from three quarters of the roots (if the roots differ: if the 95 %
/// interval of the ratio does not contain 1). Runs over different graphs are refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CompareArgs {
    /// The baseline
    #[arg(value_name = "A.json")]
    a: PathBuf,

    /// The candidate
    #[arg(value_name = "B.json")]
    b: PathBuf,

    /// Compare runs over different graphs
    #[arg(long)]
    force: bool,

    /// Write a page: both runs side by side, with intervals and what differs ("-": standard output)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(super) fn run(arguments: &CompareArgs) -> Result<(), Failure> {
    let html = arguments.html.as_deref().map(Output::open).transpose()?;
    let names = [&arguments.a, &arguments.b].map(|path| path.display().to_string());
    let load = |path: &PathBuf, name: &str| {
        let text = read(path, files::Kind::Stream, files::RECORD)?;
        Ok::<_, Failure>(Run::parse(&text, name)?)
    };
    let runs = [load(&arguments.a, &names[0])?, load(&arguments.b, &names[1])?];
    let comparison = Comparison::new((&names[0], &runs[0]), (&names[1], &runs[1]), arguments.force)?;
    for (field, [left, right]) in &comparison.differences {
        log::warn!("{field} differs: {left} | {right}");
    }
    let in_place = take_stdout([&html]);
    let drawn = html.map_or(Ok(()), |html| write_comparison(html, &names, &runs));
    both(drawn, if in_place { Ok(()) } else { print(&comparison.table([&names[0], &names[1]])) })
}

/// Writes a page with both runs.
fn write_comparison(html: Output, names: &[String; 2], runs: &[Run; 2]) -> Result<(), Failure> {
    let mut documents = Vec::new();
    for (name, run) in names.iter().zip(runs) {
        let mut document = figures::document(name, &run.value).map_err(|error| Failure::because("", &error))?;
        // The page puts sections of the same title side by side, and the same graph may have been read under two names.
        document.sections.iter_mut().for_each(|section| section.title = "Both runs".to_owned());
        documents.push(document);
    }
    let ratio = figures::compared(&runs[0].record, &runs[1].record);
    html.finish_page(&html::page(&documents, Some(&ratio)))
}
