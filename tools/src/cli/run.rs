//! `socbfs run`: one search.

use std::{path::PathBuf, time::Duration};

use clap::{ArgMatches, Args};

#[cfg(feature = "mpi")]
use crate::shell::config::ClusterArgs;
use crate::shell::{
    config::{LayoutArgs, SearchArgs, without_effect},
    energy::SensorArgs,
    error::Failure,
    output::{Output, both, print},
    progress, say,
    source::{self, READ, Source, with_graph_help},
};
use crate::{
    analysis::{Levels, count_as_policies},
    bench::{LevelEnergies, LevelEnergyError, measure_level_energies},
    record::ChosenPolicy,
    report::{self, ArrayFormat, Column, write_array},
};
use socbfs::{
    graph::{Order, Vertex},
    input::Format,
    runtime::{Prepared, Runtime},
    search::{Outcome, Search},
    validate::{ValidateError, validate},
    words::{counted, seconds},
};

const EXAMPLES: &str = "\
Examples:
  socbfs run kronecker:18 --root 5 --trace
  socbfs run road.gr --root 0 --parents tree.npy --levels levels.csv
  python3 -c 'import numpy; print(numpy.load(\"tree.npy\"))'
  sudo socbfs run kronecker:18 --root 5 --trace --energy auto

One search from a cold start is not a benchmark: use `socbfs bench` to measure.";

/// Search a graph from one root
///
/// Prints the number of vertices reached, checks the tree, and writes it on request. Parents and levels are in the vertex numbers of the
/// input, one for every vertex: the root is its own parent and on level 0; a vertex that was not reached has -1.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct RunArgs {
    /// File or generator
    #[arg(value_name = "GRAPH")]
    pub(super) graph: PathBuf,

    /// Vertex to start from, counted from 0 (in formats that count from 1, vertex 1 is root 0)
    #[arg(long, value_name = "R")]
    pub(super) root: Vertex,

    /// Write the parent of every vertex (.npy, .csv or .txt)
    #[arg(long, value_name = "FILE")]
    pub(super) parents: Option<PathBuf>,

    /// Write the level of every vertex (.npy, .csv or .txt)
    #[arg(long, value_name = "FILE")]
    pub(super) levels: Option<PathBuf>,

    /// Print a table of the levels, and the policy that decided them with its bounds; ~ marks estimates that the policy read. With
    /// --energy, repeat the search until the energy of each level is known to 5 %, for a minute at most
    #[arg(long)]
    pub(super) trace: bool,

    /// In the table of --trace, print exact counts instead of the policy's estimates: those of the searched structure (with
    /// --keep-leaves, of the whole graph)
    #[arg(long, requires = "trace")]
    pub(super) exact: bool,

    /// Print all columns of that table, not only those that fit 80 characters
    #[arg(long, requires = "trace")]
    pub(super) wide: bool,

    /// Format of the file, if its name and content do not determine it
    #[arg(long, value_name = "FORMAT", value_parser = READ, help_heading = "Graph")]
    pub(super) format: Option<Format>,

    #[command(flatten)]
    pub(super) layout: LayoutArgs,

    #[command(flatten)]
    pub(super) sensors: SensorArgs,

    #[command(flatten)]
    pub(super) search: SearchArgs,

    #[cfg(feature = "mpi")]
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,
}

/// An array to write: its format and its output.
pub(super) type Array = Option<(ArrayFormat, Output)>;

impl RunArgs {
    /// Opens the outputs for parents and levels, if `writes` says that this process writes them.
    pub(super) fn outputs(&self, writes: bool) -> Result<(Array, Array), Failure> {
        let open = |path: &PathBuf| Ok::<_, Failure>((ArrayFormat::of_path(path)?, Output::open(path)?));
        let open = |path: &Option<PathBuf>| path.as_ref().filter(|_| writes).map(open).transpose();
        Ok((open(&self.parents)?, open(&self.levels)?))
    }
}

pub(super) fn run(arguments: &RunArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let config = arguments.search.resolve(matches)?;
    let source = Source::parse(&arguments.graph, arguments.format)?;
    let (parents, levels) = arguments.outputs(true)?;
    if !arguments.trace {
        without_effect(matches, &["energy"], "a search is too short to measure", "--trace measures the energy of its levels")?;
    }
    config.apply()?;
    config.check_device()?;

    let (edges, _) = source.load()?;
    let layout = source::build(&source.name(), &edges, &arguments.layout.options())?;
    let Prepared { mut search, choice, .. } = config.search_telling(&layout, &progress::steps())?;
    config.check_roots(&[arguments.root])?;
    let outcome = search.run(arguments.root)?;
    match validate(&edges, arguments.layout.directed, arguments.root, search.parents()) {
        Ok(_) => {}
        Err(ValidateError::Violation(violation)) => {
            say(&format!("error: the tree from root {} failed validation: {violation}", arguments.root));
            return Err(Failure::Invalid);
        }
        Err(other) => return Err(other.into()),
    }

    // The tree that was validated: that of a later search may be another one.
    let written =
        parents.map_or(Ok(()), |(format, output)| output.finish(|out| write_array(out, format, Column::Parent, search.parents())));
    let levels = levels.map_or(Ok(()), |(format, output)| {
        let tree = search.result(arguments.root);
        output.finish(|out| write_array(out, format, Column::Level, &tree.level))
    });

    // Vertices that keep their numbers need no mapping. The time since the last level is then that of ending the search.
    let is_mapped = layout.order() != Order::Original;
    let mapping = is_mapped.then(|| ("mapping", format!("{} of it", seconds(outcome.mapping.as_secs_f64()))));
    let mut text = summary(&outcome, layout.vertices(), mapping);
    if arguments.trace {
        text.push('\n');
        let exact = arguments.exact.then(|| count_as_policies(&layout, &Levels::of_last(&search, arguments.root)));
        let records = search.records().to_vec();
        let energies = arguments.sensors.is_asked(matches).then(|| energies(arguments, &config, &mut search)).transpose()?;
        let measured = energies.as_ref().and_then(|energies| energies.as_ref().ok());
        text.push_str(&report::trace(&records, &exact.unwrap_or_default(), measured, arguments.wide));
        match energies {
            Some(Ok(energies)) => text.push_str(&report::level_energies(&energies)),
            Some(Err(why)) => text.push_str(&format!("energy: not measured: {why}\n")),
            None => {}
        }
        let leaves = layout.stats().leaves;
        if leaves > 0 {
            let leaves = counted(leaves, "vertex", "vertices");
            let said =
                format!("{leaves} with a single edge: left out of the levels, parents found at the end (--keep-leaves searches them)");
            report::wrapped(&said, report::COLUMNS).iter().for_each(|line| text.extend([line, "\n"]));
        }
        text.push('\n');
        text.push_str(&report::chosen(&ChosenPolicy::from(&choice)));
    }
    both(both(written, levels), print(&text))
}

/// Longest time for which a search is repeated until the energy of its levels is known.
const LONGEST: Duration = Duration::from_secs(60);

/// The energy of the levels of the last search, or why it is not measured.
fn energies(arguments: &RunArgs, config: &Runtime, search: &mut Search<'_>) -> Result<Result<LevelEnergies, String>, Failure> {
    let meter = match arguments.sensors.meter(config.profile.power().as_ref())? {
        Ok(meter) => meter,
        Err(none) => return Ok(Err(none.reason().unwrap_or("no sensor").to_owned())),
    };
    let progress = progress::Bar::still("Measuring energy by level", LONGEST.as_secs());
    let measured =
        measure_level_energies(search, arguments.root, &meter, LONGEST, &mut |passed| progress.between(passed.as_secs() as usize));
    match measured {
        Ok(energies) => Ok(Ok(energies)),
        Err(LevelEnergyError::Measure(error)) => Err(error.into()),
        Err(why) => Ok(Err(why.to_string())),
    }
}

/// The lines about a search whose tree has passed, with one `more`.
pub(super) fn summary(outcome: &Outcome, vertices: usize, more: Option<(&str, String)>) -> String {
    let lines = [
        Some(("root", outcome.root.to_string())),
        Some(("reached", format!("{} of {vertices} vertices", outcome.reached))),
        Some(("levels", outcome.levels.to_string())),
        Some(("edges", outcome.edges.to_string())),
        Some(("time", seconds(outcome.elapsed.as_secs_f64()))),
        more,
        Some(("validation", "passed".to_owned())),
    ];
    lines.into_iter().flatten().map(|(name, value)| format!("{:<12}{value}\n", format!("{name}:"))).collect()
}
