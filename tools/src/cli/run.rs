//! `socbfs run`: one search.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::{ArgMatches, Args};

use super::bench::{ROOT, graph_record, record, search_record};
#[cfg(feature = "mpi")]
use crate::shell::ClusterArgs;
use crate::{
    analysis::{Levels, count_as_policies},
    bench::{LevelEnergies, LevelEnergyError, measure_level_energies},
    record::{ChosenPolicy, EnergyRecord, Environment, GraphRecord, LayoutRecord, Record, RootRecord, SearchRecord},
    report::{self, ArrayFormat, Column, write_array},
    shell::{
        Bar, Failure, LayoutArgs, Measured, Output, READ, SearchArgs, SensorArgs, Source, invalid, print, progress, read, source,
        take_stdout, with_graph_help, without_effect, worse_of,
    },
};
use socbfs::{
    EdgeList, Outcome, Search, Vertex, files,
    words::{counted, seconds},
};
use socbfs_boards::runtime::{Prepared, Runtime};
use socbfs_io::{
    Format,
    validate::{ValidateError, validate_forest},
};

const EXAMPLES: &str = "\
Examples:
  socbfs run kronecker:18 --root 5 --trace
  socbfs run road.gr --root 0 --parents tree.npy --levels levels.csv
  socbfs run road.gr --sources 5,9,12 --levels distances.npy --nearest nearest.npy
  python3 -c 'import numpy; print(numpy.load(\"tree.npy\"))'
  socbfs run kronecker:18 --root 5 --json - | jq .roots[0].level_records
  sudo socbfs run kronecker:18 --root 5 --trace --energy auto

One search from a cold start is not a benchmark: use `socbfs bench` to measure.";

/// Search a graph from one root, or from several sources at once
///
/// Prints the number of vertices reached, checks the tree, and writes it on request. Parents and levels are in the vertex numbers of the
/// input, one for every vertex: the root is its own parent and on level 0; a vertex that was not reached has -1. From several sources the
/// result is a forest: the level of a vertex is its distance from the nearest.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct RunArgs {
    /// File or generator
    #[arg(value_name = "GRAPH")]
    pub(super) graph: PathBuf,

    #[command(flatten)]
    pub(super) sources: SourceArgs,

    /// Write the parent of every vertex (.npy, .csv or .txt)
    #[arg(long, value_name = "FILE")]
    pub(super) parents: Option<PathBuf>,

    /// Write the level of every vertex (.npy, .csv or .txt)
    #[arg(long, value_name = "FILE")]
    pub(super) levels: Option<PathBuf>,

    /// Write the source from which each vertex was reached, one of the nearest (.npy, .csv or .txt)
    #[arg(long, value_name = "FILE")]
    pub(super) nearest: Option<PathBuf>,

    /// Write the record, as of a benchmark with one root ("-": standard output, in place of the text)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

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

/// Where a search begins.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct SourceArgs {
    /// Vertex to start from, counted from 0 (in formats that count from 1, vertex 1 is root 0)
    #[arg(long, value_name = "R")]
    pub(super) root: Option<Vertex>,

    /// Vertices to start from, all at once: numbers with commas between them, or a file with a number on each line
    #[arg(long, value_name = "LIST")]
    pub(super) sources: Option<String>,
}

impl SourceArgs {
    /// The vertices; whether they are in the graph is not known yet.
    pub(super) fn resolve(&self) -> Result<Vec<Vertex>, Failure> {
        let text = match (&self.root, &self.sources) {
            (Some(root), _) => return Ok(vec![*root]),
            (None, text) => text.as_deref().unwrap_or_default(),
        };
        let refused = |reason: &str| Failure::new(reason).cure("give vertices as numbers from 0");
        let number = |at: &str, text: &str| text.parse().map_err(|_| refused(&format!("{at}: {text:?} is not the number of a vertex")));
        let found: Vec<Vertex> = if text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',') {
            text.split(',').filter(|number| !number.is_empty()).map(|text| number("--sources", text)).collect::<Result<_, _>>()?
        } else {
            let lines = read(Path::new(text), files::Kind::Stream, files::RECORD)?;
            let lines = lines.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty());
            lines.map(|(line, at): (&str, u64)| number(&format!("{text}:{at}"), line)).collect::<Result<_, _>>()?
        };
        // The library searches from no source. Here it is an empty variable, or an empty file.
        if found.is_empty() { Err(refused("a search needs at least one source")) } else { Ok(found) }
    }
}

/// An array to write: its format and its output.
pub(super) type Array = Option<(ArrayFormat, Output)>;

impl RunArgs {
    /// Opens the outputs for parents, levels and sources, if `writes` says that this process writes them.
    pub(super) fn outputs(&self, writes: bool) -> Result<[Array; 3], Failure> {
        let open = |path: &PathBuf| Ok::<_, Failure>((ArrayFormat::of_path(path)?, Output::open(path)?));
        let open = |path: &Option<PathBuf>| path.as_ref().filter(|_| writes).map(open).transpose();
        Ok([open(&self.parents)?, open(&self.levels)?, open(&self.nearest)?])
    }
}

pub(super) fn run(arguments: &RunArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let config = arguments.search.resolve(matches)?;
    let source = Source::parse(&arguments.graph, arguments.format)?;
    let sources = arguments.sources.resolve()?;
    let [parents, levels, nearest] = arguments.outputs(true)?;
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let in_place = take_stdout([&json]);
    if !arguments.trace {
        without_effect(matches, &["energy"], "a search is too short to measure", "--trace measures the energy of its levels")?;
    }
    let environment = json.as_ref().map(|_| Environment::read(Path::new(ROOT)));
    config.apply()?;
    config.check_device()?;

    let (edges, acquisition_seconds) = source.load()?;
    let layout = source::build(&source.name(), &edges, &arguments.layout.options())?;
    let prepared = config.search_telling(&layout, &progress::steps())?;
    let settings = search_record(&config, &prepared);
    let Prepared { mut search, choice, .. } = prepared;
    config.check_roots(sources.get(..1).unwrap_or_default())?;
    let (outcome, violation, took) = validated(&mut search, &edges, arguments.layout.directed, &sources)?;
    let recorded = environment.map(|environment| {
        let graph = graph_record(&source, layout.stats().clone(), layout.directed(), acquisition_seconds);
        let layout_record = LayoutRecord::new(&layout, arguments.layout.order);
        recorded(&search, &outcome, (violation.clone(), took), (environment, graph, layout_record, settings))
    });
    let recorded = || json.zip(recorded).map_or(Ok(()), |(json, record)| json.finish_json(|out| report::json(&record, out)));
    if let Some(violation) = violation {
        return worse_of(recorded(), Err(invalid(outcome.root, &violation)));
    }

    // The tree that was validated: that of a later search may be another one.
    let written =
        parents.map_or(Ok(()), |(format, output)| output.finish(|out| write_array(out, format, Column::Parent, search.parents())));
    let levels = levels.map_or(Ok(()), |(format, output)| {
        let tree = search.result(outcome.root);
        output.finish(|out| write_array(out, format, Column::Level, &tree.level))
    });

    let nearest = nearest.map_or(Ok(()), |(format, output)| {
        let mut of = vec![0; layout.vertices()];
        search.sources_into(&mut of);
        output.finish(|out| write_array(out, format, Column::Source, &of))
    });

    // Vertices that keep their numbers need no mapping. The time since the last level is then that of ending the search.
    let is_mapped = layout.is_mapped();
    let mapping = is_mapped.then(|| ("mapping", format!("{} of it", seconds(outcome.mapping.as_secs_f64()))));
    let mut text = summary(&outcome, layout.vertices(), mapping);
    if arguments.trace {
        text.push('\n');
        let exact = arguments.exact.then(|| count_as_policies(&layout, &Levels::of_last(&search, &sources)));
        let records = search.records().to_vec();
        let energies = arguments.sensors.is_asked(matches).then(|| energies(arguments, &sources, &config, &mut search)).transpose()?;
        let measured = energies.as_ref().and_then(|energies| energies.as_ref().ok());
        text.push_str(&report::trace(&records, &exact.unwrap_or_default(), measured, arguments.wide));
        match energies {
            Some(Ok(energies)) => text.push_str(&report::level_energies(&energies)),
            Some(Err(none)) => text.push_str(&format!("energy: not measured: {}\n", none.why())),
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
    let printed = if in_place { Ok(()) } else { print(&text) };
    worse_of(worse_of(worse_of(worse_of(written, levels), nearest), recorded()), printed)
}

/// Searches from `sources`. Returns also what is wrong with the tree, if anything is, and how long its validation took.
fn validated(
    search: &mut Search<'_>,
    edges: &EdgeList,
    directed: bool,
    sources: &[Vertex],
) -> Result<(Outcome, Option<String>, Duration), Failure> {
    let progress = Bar::still("Searching", 0);
    let outcome = search.run(sources)?;
    drop(progress);
    let _progress = Bar::start("Validating", 0);
    let begin = Instant::now();
    let violation = match validate_forest(edges, directed, sources, search.parents()) {
        Ok(_) => None,
        Err(ValidateError::Violation(violation)) => Some(violation.to_string()),
        Err(other) => return Err(other.into()),
    };
    Ok((outcome, violation, begin.elapsed()))
}

/// The record of a search, of which validation found this, in this time.
fn recorded(
    search: &Search<'_>,
    outcome: &Outcome,
    (violation, took): (Option<String>, Duration),
    (environment, graph, layout, settings): (Environment, GraphRecord, LayoutRecord, SearchRecord),
) -> Record {
    let root = RootRecord::new(layout.order, outcome, violation, took.as_secs_f64(), search.records().to_vec());
    let settings = SearchRecord { fallen_back: search.fallen_back().map(str::to_owned), ..settings };
    let energy = EnergyRecord::unavailable("one search is too short to measure (--trace measures its levels)", None);
    Record { energy, ..record(environment, graph, layout, settings, (1, vec![root])) }
}

/// Longest time for which a search is repeated until the energy of its levels is known.
const LONGEST: Duration = Duration::from_secs(60);

/// The energy of the levels of the last search.
fn energies(
    arguments: &RunArgs,
    sources: &[Vertex],
    config: &Runtime,
    search: &mut Search<'_>,
) -> Result<Measured<LevelEnergies>, Failure> {
    let meter = match arguments.sensors.meter(config.profile.power().as_ref())? {
        Ok(meter) => meter,
        Err(none) => return Ok(Err(none)),
    };
    let progress = Bar::still("Measuring energy by level", LONGEST.as_secs());
    let measured = measure_level_energies(search, sources, &meter, LONGEST, &mut |passed| progress.between(passed.as_secs() as usize));
    match measured {
        Ok(energies) => Ok(Ok(energies)),
        Err(LevelEnergyError::Measure(error)) => Err(error.into()),
        Err(why) => Ok(Err(EnergyRecord::unavailable(why.to_string(), None).into())),
    }
}

/// The lines about a search whose tree has passed, with one `more`.
pub(super) fn summary(outcome: &Outcome, vertices: usize, more: Option<(&str, String)>) -> String {
    let lines = [
        Some(if outcome.sources == 1 { ("root", outcome.root.to_string()) } else { ("sources", outcome.sources.to_string()) }),
        Some(("reached", format!("{} of {vertices} vertices", outcome.reached))),
        Some(("levels", outcome.levels.to_string())),
        Some(("edges", outcome.edges.to_string())),
        Some(("time", seconds(outcome.elapsed.as_secs_f64()))),
        more,
        Some(("validation", "passed".to_owned())),
    ];
    lines.into_iter().flatten().map(|(name, value)| format!("{:<12}{value}\n", format!("{name}:"))).collect()
}
