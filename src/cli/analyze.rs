//! `socbfs analyze`: the papers' counts and plots.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, ValueEnum};
use serde_json::Value;

use super::{
    bench::{ROOT, graph_record},
    config::{LayoutArgs, SearchArgs},
    error::Failure,
    output::{Output, both, print_documents},
    progress::{self, Progress},
    source::{self, FormatParser, Source, with_graph_help},
};
use crate::{
    analysis::{Analysis, GraphAnalysis, Levels, SearchedRoot, count, profile, redundant, repeated},
    bench::{Environment, LayoutRecord, RootSource},
    graph::{Layout, Vertex},
    input::Format,
    report::{figures, html},
    runtime::{Prepared, Runtime},
};

const EXAMPLES: &str = "\
Examples:
  socbfs analyze kronecker:18 --html k.html
  socbfs analyze web.mtx.gz road.gr --only profile,redundant --json a.json
  socbfs analyze kronecker:20 --root 5 --only repeated
  socbfs report a.json --html later.html

Counts are exact, never the estimates that policies read.";

/// Count and measure what papers on breadth-first search draw
///
/// Prints every analysis as a sentence, bars and a table; --html writes a page of charts, --json a record of which `socbfs report` makes the
/// same page.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct AnalyzeArgs {
    /// Files or generators
    #[arg(value_name = "GRAPH", required = true)]
    graphs: Vec<PathBuf>,

    /// Only these analyses, with commas between them
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    only: Vec<Kind>,

    /// Vertex to start from, as numbered in the input [default: drawn as by `bench`]
    #[arg(long, value_name = "R", conflicts_with = "roots")]
    root: Option<Vertex>,

    /// Roots to draw; what is of one search is of the first
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    roots: u16,

    /// Where the frontier of an asynchronous search is cut: the first half's share of its arcs, in thousandths
    #[arg(long, value_name = "PERMILLE", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..1000))]
    share: u16,

    /// Format of the files, where name and content do not say it
    #[arg(long, value_name = "FORMAT", value_parser = FormatParser::READ, help_heading = "Graph")]
    format: Option<Format>,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    search: SearchArgs,

    /// Write a page of charts: one file that needs no network ("-": standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,

    /// Write the record, of which `socbfs report` makes the page ("-": standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
}

/// An analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Frontier and its arcs by level, degrees, depth (Remis, figures 2.1 to 2.4; SURF, table 2)
    Profile,
    /// Arcs and probes that discover nothing (Remis, figure 2.3)
    Redundant,
    /// Vertices that both halves of an asynchronous search find (Remis, figures 5.5 to 5.7)
    Repeated,
}

pub(super) fn run(arguments: &AnalyzeArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let config = arguments.search.resolve(matches)?;
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let page = arguments.html.as_deref().map(Output::open).transpose()?;
    let environment = Environment::read(Path::new(ROOT));
    config.apply()?;
    let mut analysis = Analysis::new(value(&environment)?);
    for path in &arguments.graphs {
        let source = Source::parse(path, arguments.format)?;
        analysis.graphs.push(arguments.graph(&source, &config)?);
    }
    // Figures are made of the record alone, so that `socbfs report` makes the same.
    let record = value(&analysis)?;
    let document = figures::document("this run", &record).map_err(|error| Failure::because("", &error))?;
    let in_place = [&json, &page].into_iter().any(|output| matches!(output, Some(Output::Stdout)));
    let written = json.map_or(Ok(()), |json| json.finish(|out| crate::report::json(&record, out)));
    let shown = page.map_or(Ok(()), |page| page.finish(|out| out.write_all(html::page(std::slice::from_ref(&document)).as_bytes())));
    let printed = if in_place { Ok(()) } else { print_documents(std::slice::from_ref(&document)) };
    both(both(written, shown), printed)
}

/// A record as JSON.
pub(super) fn value(record: &impl serde::Serialize) -> Result<Value, Failure> {
    serde_json::to_value(record).map_err(|error| Failure::because("can't write JSON", &error))
}

impl AnalyzeArgs {
    fn wants(&self, kind: Kind) -> bool {
        self.only.is_empty() || self.only.contains(&kind)
    }

    fn graph(&self, source: &Source, config: &Runtime) -> Result<GraphAnalysis, Failure> {
        let (edges, acquisition_seconds) = source.load()?;
        let layout = source::build(&source.name(), &edges, &self.layout.options())?;
        drop(edges);
        let roots = self.drawn(source, &layout)?;
        config.check_roots(&roots)?;
        let mut graph = GraphAnalysis {
            name: source.name(),
            graph: value(&graph_record(source, &layout, acquisition_seconds))?,
            layout: value(&LayoutRecord::new(&layout, self.layout.order()))?,
            roots: roots.clone(),
            profile: None,
            redundant: None,
            repeated: None,
        };
        let Prepared { mut search, .. } = config.search_telling(&layout, &progress::steps())?;
        let progress = Progress::still(&format!("Counting on {}", source.name()), roots.len() as u64);
        let Some(&first) = roots.first() else { return Ok(graph) };
        let levels = Levels::search(&mut search, first)?;
        let counts = count(&layout, &levels);
        if self.wants(Kind::Profile) {
            let mut searches = Vec::with_capacity(roots.len());
            for &root in &roots {
                let outcome = search.run(root)?;
                searches.push(SearchedRoot { root, reached: outcome.reached, levels: outcome.levels });
                progress.between(searches.len());
            }
            graph.profile = Some(profile(&layout, searches, &counts));
        }
        graph.redundant = self.wants(Kind::Redundant).then(|| redundant(&counts));
        graph.repeated = self.wants(Kind::Repeated).then(|| repeated(&layout, &levels, self.share));
        Ok(graph)
    }

    /// The root asked for, or those drawn; of a graph without edges the first vertex.
    fn drawn(&self, source: &Source, layout: &Layout) -> Result<Vec<Vertex>, Failure> {
        if let Some(root) = self.root {
            return Ok(vec![root]);
        }
        if layout.vertices() > 0 && layout.stats().unique_edges == 0 {
            return Ok(vec![0]);
        }
        source::draw_roots(&source.name(), layout, usize::from(self.roots), RootSource::GRAPH500)
    }
}
