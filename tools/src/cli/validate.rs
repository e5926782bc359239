//! `socbfs validate`: a BFS tree produced by any program.

use std::path::PathBuf;

use clap::Args;

use super::run::SourceArgs;
use crate::{
    report::read_array,
    shell::{Bar, Failure, READ, Source, print, with_graph_help, worse_of},
};
use socbfs::{SearchError, words::counted};
use socbfs_io::{
    Format,
    validate::{ValidateError, Validated, validate_forest},
};

const EXAMPLES: &str = "\
PARENTS has one number per vertex: its parent (the root is its own parent), or -1 for a vertex that
was not reached.
  .npy                 NumPy, one dimension, int32, int64, uint32 or uint64
  .csv                 vertex,parent (the header line may be missing; a vertex without a row was
                       not reached)
  .txt                 one number per line: the first line is vertex 0
The last line of a .csv or .txt file must end like the others.

Examples:
  socbfs validate road.gr tree.npy --root 0 && echo a breadth-first tree";

/// Check a breadth-first tree, or the forest of several sources, against its graph
///
/// Applies the five checks of Graph500: the tree has no cycle, tree edges span one level, the ends of every edge are at most one level
/// apart, the whole component is reached, every tree edge is an edge of the graph. If a check fails, the command prints the first that
/// failed, with its vertices, and the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct ValidateArgs {
    /// File or generator
    #[arg(value_name = "GRAPH")]
    pub(super) graph: PathBuf,

    /// Parent of every vertex (.npy, .csv or .txt)
    #[arg(value_name = "PARENTS")]
    pub(super) parents: PathBuf,

    #[command(flatten)]
    pub(super) sources: SourceArgs,

    /// Arcs lead from source to target only
    #[arg(long)]
    pub(super) directed: bool,

    /// Format of the graph file, if its name and content do not determine it
    #[arg(long, value_name = "FORMAT", value_parser = READ)]
    pub(super) format: Option<Format>,

    /// With mpirun: only rank 0 has the file GRAPH
    #[cfg(feature = "mpi")]
    #[arg(long)]
    pub(super) from_rank_0: bool,
}

pub(super) fn run(arguments: &ValidateArgs) -> Result<(), Failure> {
    let sources = arguments.sources.resolve()?;
    let source = Source::parse(&arguments.graph, arguments.format)?;
    let (edges, _) = source.load()?;
    let vertices = edges.vertices();
    if let Some(&root) = sources.iter().find(|&&source| source as usize >= vertices) {
        return Err(SearchError::RootOutOfRange { root, vertices }.into());
    }
    let parents = read_array(&arguments.parents, vertices)?;
    let progress = Bar::start("Validating", 0);
    let verdict = validate_forest(&edges, arguments.directed, &sources, &parents);
    drop(progress);
    match verdict {
        Ok(found) => report_verdict(Ok(found), true),
        Err(ValidateError::Violation(violation)) => report_verdict(Err(violation.to_string()), true),
        Err(other) => Err(other.into()),
    }
}

/// Prints the verdict on a tree, if this process `tells` it.
pub(super) fn report_verdict(verdict: Result<Validated, String>, tells: bool) -> Result<(), Failure> {
    let text = match &verdict {
        Ok(found) => {
            let reached = counted(found.reached, "vertex", "vertices");
            format!("valid: {reached} on {}\n", counted(found.levels.into(), "level", "levels"))
        }
        Err(fault) => format!("INVALID: {fault}\n"),
    };
    // A reader that has gone must not turn the verdict into a success.
    worse_of(if tells { print(&text) } else { Ok(()) }, verdict.map(drop).map_err(|_| Failure::Invalid))
}
