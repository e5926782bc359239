//! `socbfs bench`: the Graph500 benchmark.

use std::{
    io::IsTerminal as _,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use clap::{ArgMatches, Args, ValueEnum, parser::ValueSource};

#[cfg(feature = "mpi")]
use crate::shell::ClusterArgs;
use crate::{
    bench::{RootSource, SCHEMA, SCHEMA_VERSION, available_memory, default_scale, measure, scale_and_edge_factor, temperatures, warnings},
    record::{
        CalibrationRecord, ChosenPolicy, EnergyRecord, Environment, GraphRecord, LayoutRecord, Record, RootRecord, SearchRecord, Summary,
    },
    report,
    shell::{
        Bar, EnergyArgs, Failure, LayoutArgs, OutputArgs, Outputs, READ, SearchArgs, SoFar, Source, invalid, progress, results, say,
        source, with_graph_help, worse_of,
    },
};
use socbfs::LayoutStats;
use socbfs_boards::runtime::{Prepared, Runtime};
use socbfs_io::{Format, generate::Generator};

const EXAMPLES: &str = "\
Examples:
  socbfs bench                               a Kronecker graph that fits this machine
  socbfs bench --kronecker 22 --threads 2
  socbfs bench road.gr --roots 16 --json r.json
  socbfs bench grid:1500x1500 --policy tc
  socbfs bench road.gr --roots 16 --policy replay:r.json
  socbfs bench --json - | jq .summary.teps.harmonic_mean
  socbfs bench --energy smartpower3:/dev/ttyUSB0
  socbfs bench --html r.html                 a page
  socbfs bench --report board                a board's report in markdown
  socbfs bench --report board --scales 16..=18 --json board.json

The report on standard output has the keys of Graph500 3.x. For a graph that is
not Kronecker, SCALE is the smallest whose 2^SCALE holds its vertices, and
edgefactor its edges per vertex, rounded. With `--json -` standard output is the
record instead of the report, with `--html -` the page.";

/// Search a graph from 64 roots, validate every tree, report TEPS
///
/// Searches once untimed from the first root, then once from every root. A search is timed from its call until all parents are available
/// in the vertex numbers of the input. Then the five checks of Graph500 compare every tree with the edges as given, untimed. If a tree
/// fails, no speed is reported and the exit code is 1. Roots are drawn by the rule of Graph500 3.x.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct BenchArgs {
    /// File or generator [default: a Kronecker graph that fits the machine]
    #[arg(value_name = "GRAPH", conflicts_with = "kronecker")]
    pub(super) graph: Option<PathBuf>,

    /// Kronecker graph of 2^SCALE vertices
    #[arg(long, value_name = "SCALE", help_heading = "Graph")]
    pub(super) kronecker: Option<u32>,

    /// Edges per vertex of the Kronecker graph
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Graph", conflicts_with = "graph")]
    pub(super) edgefactor: u64,

    /// Seed of the Kronecker graph and of the roots: the generator's seeds are S and S + 1
    #[arg(long, value_name = "S", default_value_t = 2, help_heading = "Graph")]
    pub(super) seed: u64,

    /// Format of the file, if its name and content do not determine it
    #[arg(long, value_name = "FORMAT", value_parser = READ, help_heading = "Graph", requires = "graph")]
    format: Option<Format>,

    #[command(flatten)]
    pub(super) layout: LayoutArgs,

    #[command(flatten)]
    pub(super) search: SearchArgs,

    /// Number of roots (fewer if the graph has fewer vertices with an edge)
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = parse_roots, help_heading = "Search")]
    pub(super) roots: usize,

    #[command(flatten)]
    pub(super) energy: EnergyArgs,

    #[cfg(feature = "mpi")]
    #[command(flatten)]
    pub(super) cluster: ClusterArgs,

    /// What goes to standard output: graph500 (the keys of Graph500), or board (markdown: what the machine is, and its speed, power and
    /// efficiency over Kronecker graphs of several scales)
    #[arg(long, value_name = "KIND", value_enum, default_value_t = ReportKind::Graph500, hide_possible_values = true, help_heading = "Output")]
    report: ReportKind,

    /// Scales of --report board, such as 18 or 16..=22 or 16,20; those that do not fit the memory are left out
    #[arg(long, value_name = "LIST", default_value = "16..=22", help_heading = "Output")]
    pub(super) scales: Scales,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// Scales of Kronecker graphs, ascending, without duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scales(pub(super) Vec<u32>);

impl FromStr for Scales {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.trim().parse::<u32>().map_err(|_| format!("{:?} is not a scale; scales look like 16..=22 or 16,20", text.trim()))
        };
        let mut scales = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once("..=") {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(format!("{} contains no scale", part.trim()));
            }
            if last > 40 {
                return Err(format!("scale {last} is beyond what 32-bit vertices can number"));
            }
            scales.extend(first..=last);
        }
        scales.sort_unstable();
        scales.dedup();
        Ok(Self(scales))
    }
}

/// What goes to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportKind {
    Graph500,
    Board,
}

fn parse_roots(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least one root is needed".to_owned()),
        Ok(roots) => Ok(roots),
        Err(_) => Err("not a number".to_owned()),
    }
}

/// Root of the live system's files (/proc, /sys).
pub(super) const ROOT: &str = "/";

pub(super) fn run(arguments: &BenchArgs, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
    if matches.value_source("scales") == Some(ValueSource::CommandLine) {
        return Err(Failure::new("--scales is for --report board").cure("one scale is --kronecker SCALE"));
    }
    let config = arguments.search.resolve(matches)?;
    let outputs = arguments.output.open()?;
    arguments.energy.check(&config.profile)?;
    let environment = Environment::read(Path::new(ROOT));
    config.apply()?;
    config.check_device()?;
    let source = arguments.source()?;
    let publish = move |record: &Option<Arc<Record>>, outputs| record.as_ref().map_or(Ok(()), |run| publish(run, outputs, quiet));
    let so_far = SoFar::new(None, outputs, publish, closed);
    so_far.run(|| {
        let record = arguments.measure_so_far(&config, environment, &source, &so_far)?;
        so_far.lock().record = Some(Arc::new(record));
        Ok(())
    })
}

/// The run with the roots that are validated, from the first one on. It is shared while its energy is measured.
type Validated = SoFar<Option<Arc<Record>>>;

/// Completes the record of a run that ended early. Returns whether there is anything to publish: a validated root.
fn closed(record: &mut Option<Arc<Record>>, why: Option<&str>) -> bool {
    let Some(run) = record.as_mut().filter(|run| !run.roots.is_empty()) else { return false };
    // A run that is shared was complete before, and its energy is being measured.
    if let (Some(why), Some(run)) = (why, Arc::get_mut(run)) {
        run.energy = EnergyRecord::unavailable(why, None);
        run.sum_up();
    }
    true
}

impl Record {
    /// Sets what follows from the roots.
    fn sum_up(&mut self) {
        self.valid = self.roots.iter().all(|root| root.validation.passed);
        self.summary = Summary::new(&self.roots, self.graph.counts.edges);
        self.warnings = warnings(self);
    }
}

impl BenchArgs {
    /// Loads the graph, searches it from every root, validates every tree, and measures the energy. `config` must have been applied.
    pub(super) fn measure(&self, config: &Runtime, environment: Environment, source: &Source) -> Result<Record, Failure> {
        let unpublished = SoFar::new(None, Outputs::default(), |_, _| Ok(()), |_, _| false);
        self.measure_so_far(config, environment, source, &unpublished)
    }

    /// As `measure`. `so_far` has the roots that are validated.
    fn measure_so_far(&self, config: &Runtime, environment: Environment, source: &Source, so_far: &Validated) -> Result<Record, Failure> {
        let (edges, acquisition_seconds) = source.load()?;
        let layout = source::build(&source.name(), &edges, &self.layout.options())?;
        let seeds = RootSource { seed1: self.seed, seed2: self.seed.wrapping_add(1) };
        let drawn = source::draw_roots(&source.name(), &layout, self.roots, seeds)?;
        let prepared = config.search_telling(&layout, &progress::steps())?;
        config.check_roots(&drawn)?;
        let graph = graph_record(source, layout.stats().clone(), layout.directed(), acquisition_seconds);
        let settings = search_record(config, &prepared);
        let Prepared { mut search, options, .. } = prepared;
        let record = record(environment, graph, LayoutRecord::new(&layout, self.layout.order), settings, (self.roots, Vec::new()));
        so_far.lock().record = Some(Arc::new(Record { complete: false, ..record }));
        let progress = Bar::still(&format!("{}, {} roots", source.name(), drawn.len()), 2 * drawn.len() as u64);
        measure(&edges, &layout, &mut search, &drawn, &mut |done, root| {
            progress.between(done);
            if let (Some(root), Some(run)) = (root, so_far.lock().record.as_mut().and_then(Arc::get_mut)) {
                run.roots.push(root);
            }
        })?;
        drop(progress);
        let record = {
            // One lock, so that an interruption finds the record.
            let mut state = so_far.lock();
            let mut record = state.record.take().map_or_else(|| Err(Failure::new("the run has no record")), Ok)?;
            if let Some(run) = Arc::get_mut(&mut record) {
                run.complete = run.roots.len() == drawn.len();
                run.search.fallen_back = search.fallen_back().map(str::to_owned);
                run.sum_up();
            }
            state.record = Some(Arc::clone(&record));
            record
        };

        let energy = match &record.summary {
            Some(_) => self.energy.measure(&config.profile, &layout, search, &options, &record.roots)?,
            None => EnergyRecord::unavailable("the run has no speed", None),
        };

        let mut record = Record::clone(&record);
        record.environment.temperatures_after = temperatures(Path::new(ROOT));
        record.energy = energy;
        record.warnings = warnings(&record);
        Ok(record)
    }

    /// Whether `--report board` is given.
    pub(super) fn is_board(&self) -> bool {
        self.report == ReportKind::Board
    }

    /// Whether the arguments name a graph.
    #[cfg(feature = "mpi")]
    pub(super) fn names_graph(&self) -> bool {
        self.graph.is_some() || self.kronecker.is_some()
    }

    pub(super) fn source(&self) -> Result<Source, Failure> {
        self.source_or(fitting_scale)
    }

    /// The graph that the arguments name, else the Kronecker graph of scale `fitting`.
    pub(super) fn source_or(&self, fitting: impl FnOnce() -> u32) -> Result<Source, Failure> {
        if let Some(graph) = &self.graph {
            return Source::parse(graph, self.format);
        }
        let scale = self.kronecker.unwrap_or_else(|| {
            let scale = fitting();
            log::info!("no graph given: Kronecker graph of scale {scale}, which fits this machine");
            scale
        });
        source::checked(source::kronecker(scale, self.edgefactor, self.seed)).map(Source::Generated)
    }
}

/// The scale of a Kronecker graph that fits this machine.
pub(super) fn fitting_scale() -> u32 {
    default_scale(rayon::current_num_threads(), available_memory(Path::new(ROOT)))
}

/// The record of searches whose energy has not been measured, with the number of roots that were requested.
pub(super) fn record(
    environment: Environment,
    graph: GraphRecord,
    layout: LayoutRecord,
    search: SearchRecord,
    (roots_asked, roots): (usize, Vec<RootRecord>),
) -> Record {
    let mut record = Record {
        schema: SCHEMA.into(),
        schema_version: SCHEMA_VERSION,
        environment,
        layout,
        search,
        cluster: None,
        roots_asked,
        complete: true,
        valid: false,
        summary: None,
        energy: EnergyRecord::unavailable("the run was interrupted before it was measured", None),
        graph,
        roots,
        warnings: Vec::new(),
    };
    record.sum_up();
    record
}

/// The settings of a search that is set up.
pub(super) fn search_record(config: &Runtime, prepared: &Prepared<'_>) -> SearchRecord {
    let search = &prepared.search;
    SearchRecord {
        devices: prepared.devices.clone(),
        thresholds: prepared.costs.measured,
        fallen_back: search.fallen_back().map(str::to_owned),
        calibration: prepared.calibration.as_ref().map(CalibrationRecord::from),
        ..SearchRecord::new(config, ChosenPolicy::from(&prepared.choice), search.threads(), search.simd())
    }
}

/// The record of the graph of `source`, which has these counts.
pub(super) fn graph_record(source: &Source, counts: LayoutStats, directed: bool, acquisition_seconds: f64) -> GraphRecord {
    let (scale, edge_factor) = match source {
        Source::Generated(Generator::Kronecker { scale, edge_factor, .. }) => (*scale, *edge_factor),
        _ => scale_and_edge_factor(counts.vertices, counts.edges),
    };
    GraphRecord {
        source: source.name(),
        generated: matches!(source, Source::Generated(_)),
        scale,
        edge_factor,
        directed,
        acquisition_seconds,
        counts,
    }
}

/// Prints the report, and the table for people on standard error: last on a terminal, where the report would push it out of sight. If one
/// output fails, the others are still written: the run took long.
pub(super) fn publish(record: &Record, outputs: Outputs, quiet: bool) -> Result<(), Failure> {
    let on_terminal = results().is_terminal();
    let table = || {
        say(report::table(record).trim_end());
        say("");
    };
    if !quiet && !on_terminal {
        table();
    }
    let published = outputs.publish(record, || report::graph500(record) + if on_terminal && !quiet { "\n" } else { "" });
    if !quiet && on_terminal {
        table();
    }
    worse_of(published, all_valid(&record.roots))
}

/// Reports the root that failed validation, if one did.
pub(super) fn all_valid(roots: &[RootRecord]) -> Result<(), Failure> {
    let wrong = roots.iter().find(|root| !root.validation.passed);
    wrong.map_or(Ok(()), |root| Err(invalid(root.root, root.validation.violation.as_deref().unwrap_or("unknown"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_read_from_ranges_and_lists() {
        let read = |text: &str| text.parse::<Scales>().map(|scales| scales.0);
        assert_eq!(read("16..=19"), Ok(vec![16, 17, 18, 19]));
        assert_eq!(read("20, 10,12..=13,12"), Ok(vec![10, 12, 13, 20]));
        for (bad, reason) in [
            ("", "is not a scale"),
            ("16..22", "is not a scale"),
            ("22..=16", "contains no scale"),
            ("x", "is not a scale"),
            ("41", "beyond"),
        ] {
            assert!(read(bad).unwrap_err().contains(reason), "{bad}");
        }
    }
}
