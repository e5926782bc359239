//! `socbfs report`: pages and pictures of records.

use std::{collections::BTreeSet, path::PathBuf};

use clap::Args;

use crate::{
    bench::read_record,
    report::{figures, html},
    shell::{Failure, Output, print, print_documents, read, worse_of},
};
use socbfs::files;

const EXAMPLES: &str = "\
Examples:
  socbfs analyze kronecker:18 --json a.json
  socbfs report a.json --html a.html
  socbfs report odroid.json jetson.json --html both.html
  socbfs report boards/results/*.json --figure boards --markdown
  socbfs report a.json --figure redundant --svg redundant.svg";

/// Show recorded results: figures, tables, a page
///
/// Reads records that `analyze`, `bench`, `run`, `policies` or `sweep` wrote with --json, on this machine or another. One record
/// gives the page that the command itself writes with --html; several are put side by side, those of boards also in one table (the figure
/// `boards`). The page is a single file that needs no network and no scripts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArgs {
    /// Records
    #[arg(value_name = "FILE.json", required = true)]
    records: Vec<PathBuf>,

    /// Write a page ("-": standard output)
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Show only this figure: a name of `analyze --only`, or of a link in the page
    #[arg(long, value_name = "NAME")]
    figure: Option<String>,

    /// All columns of tables, not only those that fit 80 characters
    #[arg(long)]
    wide: bool,

    /// Print markdown, with all columns
    #[arg(long, conflicts_with_all = ["wide", "html", "svg"])]
    markdown: bool,

    /// Write the chart of --figure (of the first graph that has it) as SVG
    #[arg(long, value_name = "FILE", requires = "figure")]
    svg: Option<PathBuf>,
}

pub(super) fn run(arguments: &ReportArgs) -> Result<(), Failure> {
    let page = arguments.html.as_deref().map(Output::open).transpose()?;
    let svg = arguments.svg.as_deref().map(Output::open).transpose()?;
    let (mut documents, mut records) = (Vec::new(), Vec::new());
    for path in &arguments.records {
        let name = path.display().to_string();
        let text = read(path, files::Kind::Stream, files::RECORD).map_err(|failure| failure.or_cure(CURE))?;
        let record = read_record(&text).map_err(|error| Failure::because(&format!("can't read {name}"), &error).cure(CURE))?;
        documents.push(figures::document(&name, &record).map_err(|error| Failure::because("", &error).cure(CURE))?);
        records.push(record);
    }
    let wants_boards = arguments.figure.as_ref().map_or(records.len() > 1, |wanted| wanted == "boards");
    documents.splice(0..0, figures::boards(&records).filter(|_| wants_boards));
    let names: BTreeSet<_> =
        documents.iter().flat_map(|document| &document.sections).flat_map(|section| &section.figures).map(|figure| figure.id).collect();
    if let Some(wanted) = &arguments.figure {
        documents
            .iter_mut()
            .flat_map(|document| &mut document.sections)
            .for_each(|section| section.figures.retain(|figure| figure.id == wanted));
        documents.retain(|document| document.sections.iter().any(|section| !section.figures.is_empty()));
    }
    let figures = || documents.iter().flat_map(|document| &document.sections).flat_map(|section| &section.figures);
    if let Some(wanted) = arguments.figure.as_ref().filter(|_| figures().next().is_none()) {
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Failure::new(format!("these records have no figure {wanted}")).cure(format!("the records have {names}")));
    }
    if arguments.markdown {
        return print(&documents.iter().map(figures::markdown).collect::<String>());
    }
    if page.is_none() && svg.is_none() {
        return print_documents(&documents, arguments.wide);
    }
    let draw = |svg: Output| {
        let picture =
            figures().find_map(html::picture).ok_or_else(|| Failure::new("this figure is a table: it has no chart").cure("omit --svg"))?;
        svg.finish_page(&picture)
    };
    let drawn = svg.map_or(Ok(()), draw);
    let written = page.map_or(Ok(()), |page| page.finish_page(&html::page(&documents, None)));
    worse_of(drawn, written)
}

const CURE: &str = "write a record with --json FILE of `socbfs analyze`, `bench`, `run`, `policies` or `sweep`";
