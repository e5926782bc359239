//! `socbfs analyze`: the papers' counts and plots.

use std::{path::Path, time::Duration};

use clap::{ArgMatches, Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::{
    bench::{ROOT, graph_record},
    policies::{Among, Compare, Patience, compare},
};
use crate::{
    analysis::{Levels, count, mapped_levels, profile, rank_scaling, redundant, remapped, repeated, split_sweep},
    bench::{RootSource, of_machine},
    record::{Analysis, DeviceHandover, Environment, ExactLevel, GraphAnalysis, LayoutRecord, RankScaling, SearchedRoot},
    report::figures::Document,
    shell::{
        Bar, EnergyArgs, Failure, GraphsArgs, OutputArgs, Outputs, SoFar, Source, document, print_documents, progress, source,
        with_graph_help, without_effect, worse_of,
    },
};
use socbfs::{BuildOptions, EdgeList, Layout, Search, SearchOptions, Strategy, Vertex};
use socbfs_boards::{
    measure,
    runtime::{Origin, Prepared, Runtime, Setting},
};
use socbfs_cluster::ClusterOptions;
use socbfs_policy::{LevelDevice, Policy};

const EXAMPLES: &str = "\
Examples:
  socbfs analyze kronecker:18 --html k.html
  socbfs analyze web.mtx.gz road.gr --only profile,redundant --json a.json
  socbfs analyze kronecker:20 --root 5 --only repeated
  socbfs report a.json --html later.html

Counts are exact, never the estimates that policies read. Energy is measured only
if --energy is given. With --json or --html, each finished graph is kept in
FILE.partial at once: if the run does not end, the same command continues there.";

/// Count and measure what the figures of papers on breadth-first search show
///
/// Prints every analysis as a sentence, bars and a table. --html writes a page of charts, --json a record from which `socbfs report`
/// makes the same page.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES), mut_arg("policy", |flag| flag.hide(true)))]
pub(super) struct AnalyzeArgs {
    #[command(flatten)]
    pub(super) graphs: GraphsArgs,

    /// Only these analyses, as a comma-separated list
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    only: Vec<Kind>,

    /// Vertex to start from, counted from 0 [default: drawn as by `bench`]
    #[arg(long, value_name = "R", conflicts_with = "roots")]
    root: Option<Vertex>,

    /// Number of roots to draw; figures of a single search use the first
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    roots: u16,

    /// Searches of each policy, strategy and share; figures are their median or first quartile
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,

    /// Seconds on a graph after which the strategies are not searched with again, and so many again for the policies
    #[arg(long, value_name = "S", default_value_t = 120)]
    patience: u32,

    #[command(flatten)]
    pub(super) energy: EnergyArgs,

    /// Names of the policies to compare (empty: all that can run here). Not a flag: `reproduce` sets it.
    #[arg(skip)]
    pub(super) policies: Vec<String>,

    /// Where `repeated` cuts the frontier: the share of its arcs in the first part, in thousandths
    #[arg(long, value_name = "PERMILLE", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..1000))]
    share: u16,

    /// All columns of tables, not only those that fit 80 characters
    #[arg(long, help_heading = "Output")]
    pub(super) wide: bool,

    #[command(flatten)]
    output: OutputArgs,
}

/// An analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Frontier and its arcs by level, degrees, depth (Remis, figures 2.1, 2.2 and 2.4; SURF, table 2)
    Profile,
    /// Arcs and probes that discover nothing (Remis, figure 2.3)
    Redundant,
    /// Vertices that both halves of an asynchronous search find (Remis, figures 5.5 to 5.7)
    Repeated,
    /// The level with the most arcs, split between CPU and GPU by every share (Remis, figure 5.13)
    Split,
    /// Every level by every strategy (Remis, figures 5.1 to 5.4 and 5.8)
    Levels,
    /// Every level by every strategy as a heat map, with the choices of oracle and policy (Zhang, table 5)
    Heat,
    /// The cost of handing memory over before every level, and by size (Remis, figures 4.2 and 4.3)
    Handover,
    /// Speed and efficiency of the policies (Zhang, figures 4 and 5; Remis, figures 5.9 to 5.12)
    Performance,
    /// Right directions, time saved (SURF, tables 3 and 4)
    Surf,
    /// Vertices without edges dropped (Zhang, table 6)
    Remapping,
    /// One search over several ranks, each a thread of this process (Sunway, figure 6)
    Ranks,
}

/// Analyses that compare policies.
const COMPARED: [Kind; 4] = [Kind::Levels, Kind::Heat, Kind::Performance, Kind::Surf];
/// Analyses that need a search prepared for every policy.
const MEASURED: [Kind; 6] = [Kind::Split, Kind::Handover, Kind::Levels, Kind::Heat, Kind::Performance, Kind::Surf];
/// Analyses that need an OpenCL device, each with its name in a sentence.
const ON_DEVICE: [(Kind, &str); 2] = [(Kind::Split, "split levels"), (Kind::Handover, "handover")];
/// What to do if there is none.
const DEVICE: &str = "name one with --device NAME (`socbfs devices` lists them)";
/// Most roots from which policies are compared: each root takes hundreds of searches.
const MOST_COMPARED: usize = 4;

pub(super) fn run(arguments: &AnalyzeArgs, matches: &ArgMatches) -> Result<(), Failure> {
    let so_far = so_far(arguments.output.open()?, arguments.wide, closed);
    so_far.run(|| analysis(arguments, matches, &so_far))
}

/// An analysis without graphs, and where it goes; `wide` is for its tables on the terminal.
pub(super) fn so_far(
    outputs: Outputs,
    wide: bool,
    close: impl Fn(&mut Analysis, Option<&str>) -> bool + Send + 'static,
) -> SoFar<Analysis> {
    SoFar::new(Analysis::new(Environment::default(), Vec::new()), outputs, move |analysis, outputs| publish(analysis, outputs, wide), close)
}

/// Adds to the analysis why graphs are missing, if they are. Returns whether it has any.
pub(super) fn closed(analysis: &mut Analysis, why: Option<&str>) -> bool {
    analysis.warnings.extend(why.map(|why| format!("graphs are missing, since {why}")));
    !analysis.graphs.is_empty()
}

/// What the analyses of one graph add to the record.
#[derive(Default, Serialize, Deserialize)]
struct OfGraph {
    graph: GraphAnalysis,
    handover: Vec<DeviceHandover>,
    warnings: Vec<String>,
}

/// Runs the analyses that `arguments` names, and adds each graph that is finished to `so_far`.
pub(super) fn analysis(arguments: &AnalyzeArgs, matches: &ArgMatches, so_far: &SoFar<Analysis>) -> Result<(), Failure> {
    let cure = "omit --FLAG; `socbfs policies --only` compares chosen policies";
    without_effect(matches, &["policy"], "analyze compares several policies", cure)?;
    let mut config = arguments.graphs.search.resolve(matches)?;
    // The environment and the board set these for searches, and no figure depends on them.
    config.set_policy(Setting { value: Policy::default(), origin: Origin::BuiltIn });
    let sources = arguments.graphs.sources()?;
    let environment = Environment::read(Path::new(ROOT));
    let energy = arguments.energy.is_asked(matches);
    if energy && arguments.wants(Kind::Performance) {
        arguments.energy.check(&config.profile)?;
    }
    config.apply()?;
    let only = arguments.only.iter().filter_map(|kind| Some(kind.to_possible_value()?.get_name().to_owned())).collect();
    let mut record = Analysis::new(environment.clone(), only);
    // Counts are exact on any machine.
    if arguments.measures() || arguments.wants(Kind::Ranks) {
        record.warnings = of_machine(&environment, config.team().value, config.cpus.value.numbers());
    }
    so_far.lock().record = record;
    let kept: Vec<OfGraph> = so_far.resume(&environment, &config, &sources, ["graph", "graphs"])?;
    let measure = |source: &Source| arguments.graph(source, &config, energy, so_far);
    so_far.each(
        &sources,
        kept,
        |part| &part.graph.name,
        measure,
        |analysis, part, warning| {
            analysis.warnings.extend(warning);
            let warnings: Vec<String> = part.warnings.iter().filter(|warning| !analysis.warnings.contains(warning)).cloned().collect();
            analysis.warnings.extend(warnings);
            analysis.handover.extend_from_slice(&part.handover);
            analysis.graphs.push(part.graph.clone());
            Ok(())
        },
        |analysis| show_last(analysis, arguments.wide),
    )
}

/// Prints the figures of the graph that was measured last.
fn show_last(analysis: &Analysis, wide: bool) -> Result<(), Failure> {
    let graphs = analysis.graphs.last().cloned().into_iter().collect();
    let mut document = document(&Analysis { graphs, ..Analysis::new(analysis.environment.clone(), analysis.only.clone()) })?;
    // Those over all graphs come at the end.
    document.sections.truncate(1);
    print_documents(&[document], wide)
}

/// Writes record and page, and prints the figures that are not of a single graph: those have been printed.
fn publish(analysis: &Analysis, outputs: Outputs, wide: bool) -> Result<(), Failure> {
    let in_place = outputs.take_stdout();
    let written = outputs.write(analysis);
    if in_place {
        return written;
    }
    let print = |mut document: Document| {
        // A comparison with a paper is the result, and comes last.
        let paper = analysis.paper.is_some().then(|| document.sections.remove(0));
        document.sections.drain(..analysis.graphs.len());
        document.sections.extend(paper);
        print_documents(&[document], wide)
    };
    worse_of(written, document(analysis).and_then(print))
}

impl AnalyzeArgs {
    fn wants(&self, kind: Kind) -> bool {
        self.only.is_empty() || self.only.contains(&kind)
    }

    fn measures(&self) -> bool {
        MEASURED.into_iter().any(|kind| self.wants(kind))
    }

    /// Runs the analyses of one graph. Costs of handovers, which belong to the machine, are measured once for all.
    fn graph(&self, source: &Source, config: &Runtime, energy: bool, so_far: &SoFar<Analysis>) -> Result<OfGraph, Failure> {
        let (edges, acquisition_seconds) = source.load()?;
        // Counts are those of the whole graph, leaves included.
        let options = BuildOptions { keep_leaves: true, ..self.graphs.layout.options() };
        let layout = source::build(&source.name(), &edges, &options)?;
        let roots = self.drawn(source, &layout)?;
        let mut part = OfGraph::default();
        let ranks = if self.wants(Kind::Ranks) { self.ranks(config, source, (&edges, &layout), &roots, &mut part.warnings)? } else { None };
        // The list of edges is large, and only the validation before an energy measurement still needs it.
        let edges = (self.wants(Kind::Performance) && energy).then_some(edges);
        part.graph = GraphAnalysis {
            name: source.name(),
            graph: graph_record(source, layout.stats().clone(), layout.directed(), acquisition_seconds),
            layout: LayoutRecord::new(&layout, self.graphs.layout.order),
            roots: roots.clone(),
            ranks,
            remapped: self.wants(Kind::Remapping).then(|| remapped(&layout)),
            ..GraphAnalysis::default()
        };
        let measures = self.measures();
        let prepare = if measures { Runtime::search_for_all } else { Runtime::search_telling };
        let mut prepared = prepare(config, &layout, &progress::steps())?;
        let search = &mut prepared.search;
        let progress = Bar::still(&format!("Counting on {}", source.name()), roots.len() as u64);
        let Some(&first) = roots.first() else { return Ok(part) };
        let levels = Levels::search(search, first)?;
        let counts = count(&layout, &levels);
        if self.wants(Kind::Profile) {
            let mut searches = Vec::with_capacity(roots.len());
            for &root in &roots {
                let outcome = search.run(root)?;
                searches.push(SearchedRoot { root, reached: outcome.reached, levels: outcome.levels });
                progress.between(searches.len());
            }
            part.graph.profile = Some(profile(&layout, searches, &counts));
        }
        part.graph.redundant = self.wants(Kind::Redundant).then(|| redundant(&counts));
        part.graph.repeated = self.wants(Kind::Repeated).then(|| repeated(&layout, &levels, self.share));
        drop(progress);
        if measures {
            self.measured(&mut part, config, &mut prepared, &counts, edges.as_ref(), so_far)?;
        }
        Ok(part)
    }

    /// Runs the analyses that measure time or energy.
    fn measured(
        &self,
        OfGraph { graph, handover, warnings }: &mut OfGraph,
        config: &Runtime,
        prepared: &mut Prepared<'_>,
        counts: &[ExactLevel],
        edges: Option<&EdgeList>,
        so_far: &SoFar<Analysis>,
    ) -> Result<(), Failure> {
        let (turns, root) = (usize::from(self.turns), graph.roots[0]);
        let has_levels = counts.first().is_some_and(|first| first.arcs > 0);
        if !has_levels {
            warnings.push(format!("{}: the root has no neighbour, and nothing can be measured", graph.name));
            return Ok(());
        }
        let setup = prepared.options.devices.first().cloned();
        let on_device: Vec<&str> = ON_DEVICE.into_iter().filter(|(kind, _)| self.wants(*kind)).map(|(_, name)| name).collect();
        if !on_device.is_empty() && (setup.is_none() || prepared.devices.is_empty()) {
            let what = on_device.join(" and ");
            // Analyses of earlier graphs are kept, for example if the device was lost after them.
            if so_far.lock().record.graphs.is_empty()
                && !self.only.is_empty()
                && self.only.iter().all(|kind| ON_DEVICE.iter().any(|(on_device, _)| on_device == kind))
            {
                return Err(Failure::new(format!("{what}: no OpenCL device is used, and nothing else is asked for")).cure(DEVICE));
            }
            let are = if on_device == ["handover"] { "is" } else { "are" };
            warnings.push(format!("{what} {are} left out: no OpenCL device is used; {DEVICE}"));
        } else if let Some(setup) = setup {
            if self.wants(Kind::Split) {
                let heavy = counts.iter().rev().max_by_key(|level| level.arcs).copied().unwrap_or_default();
                let model = prepared.calibration.as_ref().map(|found| &found.calibration.model);
                graph.split = Some(split_sweep(&mut prepared.search, root, heavy.level, heavy.arcs, turns, model)?);
            }
            if self.wants(Kind::Handover) {
                let alone = SearchOptions {
                    planner: Policy::Fixed(Strategy::Tc).on(LevelDevice::Cpu),
                    devices: Vec::new(),
                    every_planner: false,
                    ..prepared.options.clone()
                };
                let mut plain = Search::new(prepared.search.layout(), &alone)?;
                graph.mapped = Some(mapped_levels(&mut plain, &mut prepared.search, root, turns)?);
                if so_far.lock().record.handover.is_empty() {
                    let progress = Bar::start("Measuring handovers", 0);
                    let table = measure::measure(&setup.device);
                    drop(progress);
                    let device = prepared.devices.first().map_or_else(String::new, |device| device.used.name.clone());
                    handover.push(DeviceHandover { device, way: setup.way, table });
                }
            }
        }
        if COMPARED.into_iter().any(|kind| self.wants(kind)) {
            let roots = &graph.roots[..graph.roots.len().min(MOST_COMPARED)];
            let asked = Compare {
                among: Among::Names(&self.policies),
                turns,
                patience: Patience::Together(Duration::from_secs(self.patience.into())),
                baseline: None,
                energy: edges.map(|edges| (&self.energy, edges)),
                exact: counts,
            };
            let compared = compare(config, prepared, &graph.name, roots, &asked)?;
            if let Some(done) = compared.evaluation.roots.iter().map(|root| root.turns).min().filter(|&done| done < turns) {
                warnings.push(format!(
                    "{}: policies were compared in {done} of {turns} turns: searches took longer than --patience {}",
                    graph.name, self.patience
                ));
            }
            graph.policies = Some(compared);
        }
        Ok(())
    }

    /// Measures the search from the first root over ranks; `None` if the graph is directed.
    fn ranks(
        &self,
        config: &Runtime,
        source: &Source,
        (edges, layout): (&EdgeList, &Layout),
        roots: &[Vertex],
        warnings: &mut Vec<String>,
    ) -> Result<Option<RankScaling>, Failure> {
        let Some(&root) = roots.first() else { return Ok(None) };
        if layout.directed() {
            warnings.push(format!("{}: a search over ranks takes undirected graphs only", source.name()));
            return Ok(None);
        }
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let sizes: Vec<usize> = std::iter::successors(Some(1), |ranks| Some(2 * ranks)).take_while(|&ranks| ranks <= cpus.max(2)).collect();
        let progress = Bar::start(&format!("Searching {} over ranks", source.name()), 0);
        let options = ClusterOptions {
            simd: config.simd.value,
            batch: config.batch.value.unwrap_or(ClusterOptions::BATCH),
            ..ClusterOptions::default()
        };
        let found = rank_scaling(edges, root, &sizes, usize::from(self.turns), &options).map_err(|error| Failure::because("", &error))?;
        drop(progress);
        Ok(Some(found))
    }

    /// The root of `--root`, or drawn roots; vertex 0 if the graph has no edges.
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
