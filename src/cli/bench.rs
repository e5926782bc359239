//! `socbfs bench`: the Graph500 benchmark.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args};

use super::{
    calibration::Found,
    config::{LayoutArgs, SearchArgs},
    device::Prepared,
    energy::EnergyArgs,
    error::Failure,
    output::{Output, print},
    progress::Progress,
    say,
    source::{self, FormatParser, Source, with_graph_help},
};
use crate::{
    bench::{
        EnergyRecord, Environment, GraphRecord, LayoutRecord, Record, RootSource, SCHEMA, SCHEMA_VERSION, SearchRecord, Summary,
        available_memory, default_scale, measure, roots, scale_and_edge_factor, temperatures, warnings,
    },
    graph::Layout,
    input::{Format, generate::Generator},
    report,
};

const EXAMPLES: &str = "\
Examples:
  socbfs bench                               a Kronecker graph that fits this machine
  socbfs bench --kronecker 22 --threads 2
  socbfs bench road.gr --roots 16 --json r.json
  socbfs bench grid:1500x1500 --policy tc
  socbfs bench road.gr --roots 16 --policy replay:r.json
  socbfs bench --json - | jq .summary.teps.harmonic_mean
  socbfs bench --energy smartpower3:/dev/ttyUSB0

The report on standard output has the keys of Graph500 3.x. For a graph that is
not Kronecker, SCALE is the smallest whose 2^SCALE holds its vertices, and
edgefactor its edges per vertex, rounded. With `--json -` the record takes the
report's place.";

/// Search a graph from 64 roots, validate every tree, report TEPS
///
/// Searches once untimed from the first root, then once from every root. Timed is a search from its call to the parents in the vertex
/// numbers of the input. Every tree is then checked, untimed, by the five checks of Graph500 against the edges as given; where one
/// fails no speed is reported and the exit code is 1. Roots are drawn by the rule of Graph500 3.x.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct BenchArgs {
    /// File or generator [default: a Kronecker graph that fits the machine]
    #[arg(value_name = "GRAPH", conflicts_with = "kronecker")]
    graph: Option<PathBuf>,

    /// Kronecker graph of 2^SCALE vertices
    #[arg(long, value_name = "SCALE", help_heading = "Graph")]
    kronecker: Option<u32>,

    /// Edges per vertex of the Kronecker graph
    #[arg(long, value_name = "N", default_value_t = 16, help_heading = "Graph", conflicts_with = "graph")]
    edgefactor: u64,

    /// Seed of the Kronecker graph and of the roots: the generator's seeds are S and S + 1
    #[arg(long, value_name = "S", default_value_t = 2, help_heading = "Graph")]
    seed: u64,

    /// Format of the file, where name and content do not say it
    #[arg(long, value_name = "FORMAT", value_parser = FormatParser::READ, help_heading = "Graph", requires = "graph")]
    format: Option<Format>,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    search: SearchArgs,

    /// Roots (fewer if the graph has fewer vertices with an edge)
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = parse_roots, help_heading = "Search")]
    roots: usize,

    #[command(flatten)]
    energy: EnergyArgs,

    /// Write the whole record, raw times and levels included, as JSON ("-": standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
}

fn parse_roots(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("at least one root is needed".to_owned()),
        Ok(roots) => Ok(roots),
        Err(_) => Err("not a number".to_owned()),
    }
}

/// The live system.
const ROOT: &str = "/";

pub(super) fn run(arguments: &BenchArgs, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
    let config = arguments.search.resolve(matches)?;
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    arguments.energy.check(&config.profile)?;
    let environment = Environment::read(Path::new(ROOT));
    config.apply()?;
    let source = arguments.source()?;
    let (edges, acquisition_seconds) = source.load()?;
    let layout = source::build(&source.name(), &edges, &arguments.layout.options())?;
    let seeds = RootSource { seed1: arguments.seed, seed2: arguments.seed.wrapping_add(1) };
    let drawn = roots(edges.vertices(), |vertex| layout.input_degree(vertex), arguments.roots, seeds);
    if drawn.is_empty() {
        return Err(Failure::new(format!("{} has no edge between two vertices: there is nothing to search", source.name())));
    }
    let Prepared { mut search, devices, measured, options, calibration } = config.prepare(&layout)?;
    config.check_roots(&drawn)?;
    let (threads, simd) = (search.threads(), search.simd());
    let progress = Progress::still("Searching", drawn.len() as u64);
    let records = measure(&edges, &layout, &mut search, &drawn, &mut |done| progress.between(done))?;
    drop(progress);

    let valid = records.iter().all(|root| root.validation.passed);
    let fallen_back = search.fallen_back().map(str::to_owned);
    let summary = Summary::new(&records, layout.stats().edges);
    let energy = match &summary {
        Some(_) => arguments.energy.measure(&config.profile, &layout, search, &options, &records)?,
        None => EnergyRecord::unavailable("the run has no speed", None),
    };
    let mut record = Record {
        schema: SCHEMA,
        schema_version: SCHEMA_VERSION,
        environment: Environment { temperatures_after: temperatures(Path::new(ROOT)), ..environment },
        graph: graph_record(&source, &layout, acquisition_seconds),
        layout: LayoutRecord::new(&layout, arguments.layout.order()),
        search: SearchRecord {
            policy: config.policy_text(),
            threads,
            simd,
            cpus: config.cpus.value.numbers().to_vec(),
            board: config.profile.name().to_owned(),
            devices,
            thresholds: measured,
            fallen_back,
            calibration: calibration.as_ref().map(Found::record),
            objective: config.objective.value,
        },
        roots_asked: arguments.roots,
        valid,
        summary,
        energy,
        roots: records,
        warnings: Vec::new(),
    };
    record.warnings = warnings(&record);
    publish(&record, json, quiet)
}

impl BenchArgs {
    fn source(&self) -> Result<Source, Failure> {
        if let Some(graph) = &self.graph {
            return Source::parse(graph, self.format);
        }
        let scale = self.kronecker.unwrap_or_else(|| {
            let scale = default_scale(rayon::current_num_threads(), available_memory(Path::new(ROOT)));
            log::info!("no graph given: Kronecker graph of scale {scale}, which fits this machine");
            scale
        });
        source::checked(source::kronecker(scale, self.edgefactor, self.seed)).map(Source::Generated)
    }
}

fn graph_record(source: &Source, layout: &Layout, acquisition_seconds: f64) -> GraphRecord {
    let counts = layout.stats().clone();
    let (scale, edge_factor) = match source {
        Source::Generated(Generator::Kronecker { scale, edge_factor, .. }) => (*scale, *edge_factor),
        _ => scale_and_edge_factor(counts.vertices, counts.edges),
    };
    GraphRecord {
        source: source.name(),
        generated: matches!(source, Source::Generated(_)),
        scale,
        edge_factor,
        directed: layout.directed(),
        acquisition_seconds,
        counts,
    }
}

/// The table first: on a terminal the report then stands last.
fn publish(record: &Record, json: Option<Output>, quiet: bool) -> Result<(), Failure> {
    if !quiet {
        say(report::table(record).trim_end());
        say("");
    }
    if !matches!(json, Some(Output::Stdout)) {
        print(&report::graph500(record))?;
    }
    if let Some(json) = json {
        json.finish(|out| report::json(record, out))?;
    }
    match record.roots.iter().find(|root| !root.validation.passed) {
        None => Ok(()),
        Some(root) => {
            let violation = root.validation.violation.as_deref().unwrap_or("unknown");
            say(&format!("error: the tree from root {} failed validation: {violation}", root.root));
            Err(Failure::Invalid)
        }
    }
}
