//! `socbfs convert`: from one file format to another.

use std::{
    fs,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::shell::{Bar, Failure, Output, READ, Source, WRITTEN, say, with_graph_help};
use socbfs::{EdgeList, words::counted};
use socbfs_io::{self as input, Fault, Format, InputError, WriteOptions};

const EXAMPLES: &str = "\
Examples:
  socbfs convert web.mtx.gz web.sg
  socbfs convert edges.txt graph.mtx --from el
  socbfs convert citations.el citations.sg --directed";

/// Convert a graph file to another format
///
/// Self-loops and repeated edges are kept. The output appears under its name only when it is complete.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct ConvertArgs {
    /// File or generator
    #[arg(value_name = "IN")]
    input: PathBuf,

    /// File to write; the ending .el, .mtx or .sg determines its format
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// Format of IN, if its name and content do not determine it
    #[arg(long, value_name = "FORMAT", value_parser = READ)]
    from: Option<Format>,

    /// Format of OUT, if its name does not determine it
    #[arg(long, value_name = "FORMAT", value_parser = WRITTEN)]
    to: Option<Format>,

    /// Write a directed graph: arcs as they are. A symmetric .mtx file gives them in both directions
    #[arg(long)]
    directed: bool,
}

pub(super) fn run(arguments: &ConvertArgs, quiet: bool) -> Result<(), Failure> {
    // Errors of readers call the option by its name in other commands.
    let of_input = |failure: Failure| failure.renamed("--format", "--from");
    let source = Source::parse(&arguments.input, arguments.from).map_err(of_input)?;
    let format = target_format(&arguments.output, arguments.to)?;
    let (edges, _) = source.load().map_err(of_input)?;
    let written = write(&arguments.output, format, &edges, arguments.directed, quiet);
    written.map_err(|error| match error {
        // The fault is in the graph that was read, so the error names the input.
        InputError { fault, .. } if matches!(*fault, Fault::Graph(_)) => InputError { path: arguments.input.clone(), fault }.into(),
        other => other.into(),
    })
}

/// The format in which `path` is written. Fails before any long work begins if the format or the file can't be written.
pub(super) fn target_format(path: &Path, given: Option<Format>) -> Result<Format, Failure> {
    let known = || Format::WRITABLE.map(Format::name).join(", ");
    let format = given.or_else(|| Format::of_path(path).0).ok_or_else(|| {
        Failure::new(format!("{}: the name does not determine the format to write", path.display()))
            .cure(format!("end it with .el, .mtx or .sg, or name one with --to: {}", known()))
    })?;
    if !Format::WRITABLE.contains(&format) {
        return Err(Failure::new(format!("{format} is read, but not written")).cure(format!("write one of {}", known())));
    }
    // The test would open a named pipe and close it, which its reader takes for the end.
    if fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()) {
        return Ok(format);
    }
    // Tests whether the file can be written. Nothing is committed, so that nothing is left of it.
    match Output::open(path)? {
        Output::Stdout(_) => Err(Failure::new("a graph is written to a file, not to standard output").cure("name a file")),
        Output::File(..) => Ok(format),
    }
}

/// Writes `edges` to `path`, and prints the size of the graph.
pub(super) fn write(path: &Path, format: Format, edges: &EdgeList, directed: bool, quiet: bool) -> Result<(), InputError> {
    let progress = Bar::start(&format!("Writing {}", path.display()), edges.len() as u64);
    input::write(path, format, edges, &WriteOptions { directed, progress: Some(&progress) })?;
    drop(progress);
    if !quiet {
        let vertices = counted(edges.vertices() as u64, "vertex", "vertices");
        // A symmetric list has one entry for two arcs, both of which are written.
        let listed =
            if directed { counted(input::lines_of(edges, true), "arc", "arcs") } else { counted(edges.len() as u64, "edge", "edges") };
        say(&format!("{}: {vertices}, {listed}, {format}", path.display()));
    }
    Ok(())
}
