//! `socbfs info`: the size and shape of a graph.

use std::path::PathBuf;

use clap::Args;

use crate::{
    report,
    shell::{Bar, Failure, READ, Source, print, print_json, with_graph_help},
};
use socbfs::graph;
use socbfs_io::Format;

const EXAMPLES: &str = "\
Examples:
  socbfs info web.mtx.gz
  socbfs info kronecker:16 --json | jq .vertices";

/// Describe a graph: counts, degrees, components
///
/// Edges are taken as undirected. "Remapping" is what the search saves by dropping the vertices without an edge.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct InfoArgs {
    /// File or generator
    #[arg(value_name = "GRAPH")]
    graph: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Format of the file, if its name and content do not determine it
    #[arg(long, value_name = "FORMAT", value_parser = READ)]
    format: Option<Format>,
}

pub(super) fn run(arguments: &InfoArgs) -> Result<(), Failure> {
    let source = Source::parse(&arguments.graph, arguments.format)?;
    let (edges, _) = source.load()?;
    let progress = Bar::start("Counting", 0);
    let info = graph::info(&edges).map_err(|error| Failure::because(&source.name(), &error))?;
    drop(progress);
    if arguments.json { print_json(&info) } else { print(&report::info(&info)) }
}
