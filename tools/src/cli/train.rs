//! `socbfs train`: measures levels in both directions, trains the networks, and scores them on held-out graphs.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{ArgMatches, Args, builder::RangedU64ValueParser};
use serde::Serialize;

use crate::shell::{
    config::{LayoutArgs, SearchArgs, without_effect},
    error::Failure,
    output::{Output, print, protect, take_stdout, worse_of},
    progress::{self, Bar},
    say,
    source::{self, Source, with_graph_help},
};
use crate::{
    calibrate::Turns,
    record::Environment,
    report::{Cell, Table, aligned},
    train::{self, GraphScore, Machine, Mean, RecordsFile, Rules, SearchSample, Structure, mean, score},
};
use socbfs::{bfs::Strategy, opencl::DeviceChoice};
use socbfs_boards::{
    measure::Trained,
    runtime::{self, CalibrationChoice, FoundCalibration, Origin, Prepared, Runtime, Setting},
};
use socbfs_policy::{Mlp, Objective, Policy, mlp::NetworkKind};

const EXAMPLES: &str = "\
Examples:
  socbfs train --collect-only                  measure generated graphs; Ctrl-C at any time
  socbfs train road.gr web.mtx --held-out social.txt
  socbfs bench kronecker:20 --policy mlp       uses the trained weights
  socbfs train --mlp mlp.toml                  weights in a file of their own
  socbfs bench kronecker:20 --policy mlp:mlp.toml

Training needs a build with `--features train`. Without it there are only
--collect-only and --judge-only.

Without --surf and --mlp the weights go into the calibration of this machine, which
`socbfs calibrate` makes. --calibration FILE names another calibration. With
--calibration off the networks are only scored.";

/// Train the networks of the policies surf and mlp on this machine
///
/// Searches many graphs, every level in both directions, and keeps the times in a file of records, which an interrupted run continues
/// when it is started again. The networks learn from these records to predict the faster direction, and are scored on held-out graphs.
/// The same records and seed give the same weights. They go into the calibration of this machine, where the policies surf and mlp find
/// them; the next `socbfs calibrate` decides whether auto uses mlp.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES), mut_arg("policy", |flag| flag.hide(true)))]
pub(super) struct TrainArgs {
    /// Graphs to learn from, beside the generated ones
    #[arg(value_name = "GRAPH")]
    graphs: Vec<PathBuf>,

    /// A held-out graph: scored, not learned from (may be repeated) [default: every fifth graph, drawn by the seed]
    #[arg(long, value_name = "GRAPH")]
    held_out: Vec<PathBuf>,

    /// File that keeps the measured searches
    #[arg(long, value_name = "FILE", default_value = "socbfs-training.jsonl")]
    records: PathBuf,

    /// Number of generated graphs: Kronecker, R-MAT, uniform, Rodinia and grids in turn
    #[arg(long, value_name = "N", default_value_t = 50)]
    generated: usize,

    /// The largest generated graphs have 2^SCALE vertices
    #[arg(long, value_name = "SCALE", default_value_t = 18, value_parser = clap::value_parser!(u32).range(10..=26))]
    largest_scale: u32,

    /// Number of searches of each graph
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    roots: u16,

    /// Number of runs of each search in each direction; a time is the first quartile
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    turns: u16,

    /// Measure levels of the OpenCL device instead of the CPU
    #[arg(long)]
    gpu: bool,

    /// Seed of graphs, roots, choice of graphs and first weights
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Only measure, or continue to measure
    #[arg(long, conflicts_with_all = ["judge_only", "surf", "mlp", "json", "steps"])]
    collect_only: bool,

    /// Measure nothing and learn nothing: score the policies as they are, with the existing records
    #[arg(long, conflicts_with_all = ["surf", "mlp", "steps", "graphs", "generated", "largest_scale", "roots", "turns", "gpu"])]
    #[arg(conflicts_with_all = ["directed", "order", "keep_leaves"])]
    judge_only: bool,

    /// Write SURF's network (policy surf) as TOML, and nothing into the calibration
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    surf: Option<PathBuf>,

    /// Write our network (policy mlp) as TOML, and nothing into the calibration
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    mlp: Option<PathBuf>,

    /// Write accuracy and reduced time of every held-out graph as JSON ("-": standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,

    /// Training steps of each of four networks: surf takes the best of them, mlp their mean
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    steps: usize,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    search: SearchArgs,
}

/// Share of the vertices that a search must reach: roots that reach less are replaced by others (SURF's data module).
const LEAST_VERTICES: f64 = 0.5;
/// Share of the edges that a search must reach, by the same rule.
const LEAST_EDGES: f64 = 0.7;
/// Roots that are tried for each search to be measured.
const TRIES: usize = 4;
/// A graph with this many measured levels gets no further search: deep graphs would take hours, and their levels are much alike.
const ENOUGH_LEVELS: usize = 1000;
/// Time after which a search is not repeated any more, once all its levels have been measured.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn run(arguments: &TrainArgs, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
    without_effect(matches, &["policy", "objective"], "train measures both directions", "omit --FLAG")?;
    let mut config = arguments.search.resolve_for_calibration(matches)?;
    if !arguments.gpu {
        // Weights for levels of the CPU go into the calibration for searches without a device: no other search would use them.
        if config.device.origin == Origin::Flag && !matches!(config.device.value, DeviceChoice::Auto | DeviceChoice::Cpu) {
            return Err(Failure::new("--device names a device, but train measures levels of the CPU")
                .cure("add --gpu to measure those of the device, or omit --device"));
        }
        config.device.value = DeviceChoice::Cpu;
    }
    let for_calibration = arguments.for_calibration(&config);
    match &config.calibration.value {
        CalibrationChoice::File(file) if !for_calibration => protect(file)?,
        _ => {}
    }
    if arguments.judge_only {
        // Otherwise the file is an output as well, and is claimed as one when it is opened.
        protect(&arguments.records)?;
    }
    // No policy chooses what is measured: a fixed one prepares the search for the device or the CPU.
    let fixed = Policy::Fixed(if arguments.gpu { Strategy::Tg } else { Strategy::Tc });
    config.set_policy(Setting { value: fixed, origin: config.policy.origin });
    // The environment sets the objective for searches; this command ignores it too.
    config.objective.value = Objective::Time;
    config.apply()?;
    let generated = train::generated(arguments.generated, arguments.seed, arguments.largest_scale);
    let named = |paths: &[PathBuf]| paths.iter().map(|path| (path.display().to_string(), path.clone())).collect::<Vec<_>>();
    let mut graphs: Vec<(String, PathBuf)> = generated.into_iter().map(|name| (name.clone(), PathBuf::from(name))).collect();
    graphs.extend(named(&arguments.graphs));
    graphs.extend(named(&arguments.held_out));
    // Checked now, so that a misspelt name does not fail after an hour.
    for (_, path) in &graphs {
        if let Source::File(path, _) = Source::parse(path, None)? {
            std::fs::metadata(&path).map_err(|error| Failure::because(&format!("can't read {}", path.display()), &error))?;
        }
    }
    let surf = arguments.surf.as_deref().map(Output::open).transpose()?;
    let mlp = arguments.mlp.as_deref().map(Output::open).transpose()?;
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let in_place = take_stdout([&surf, &mlp, &json]);
    if !arguments.collect_only && !arguments.judge_only && cfg!(not(feature = "train")) {
        // Refused now, since to measure takes hours.
        return Err(without_training());
    }
    #[cfg(feature = "train")]
    if !arguments.collect_only && !arguments.judge_only {
        // So are graphs that are too few.
        enough(arguments, graphs.iter().map(|(name, _)| name.as_str()).collect())?;
    }
    // Opened now, so that a calibration that is missing or can't be written does not fail after hours.
    let calibration = if for_calibration { Some(Output::open(&target(&config)?.file)?) } else { None };
    let records = if arguments.judge_only { RecordsFile::read(&arguments.records)? } else { measure(arguments, &config, &graphs)? };
    if arguments.collect_only {
        return Ok(());
    }
    // The file of records may hold more: only graphs of this command line count.
    let asked = |search: &&SearchSample| arguments.judge_only || graphs.iter().any(|(name, _)| *name == search.graph);
    let searches: Vec<&SearchSample> = records.searches().iter().filter(asked).collect();
    let held_out = held_out(arguments, &train::names(&searches));
    let (judge, learn): (Vec<&SearchSample>, Vec<&SearchSample>) =
        searches.into_iter().partition(|search| held_out.contains(&search.graph));
    if judge.is_empty() {
        return Err(Failure::new(format!("{} holds no held-out search to score", arguments.records.display()))
            .cure("measure more graphs: without --held-out every fifth one is held out"));
    }
    let networks = if arguments.judge_only {
        NetworkKind::ALL.into_iter().map(Mlp::shipped).collect::<Result<Vec<Mlp>, _>>().map_err(|error| Failure::because("", &error))?
    } else {
        learn_all(&learn, arguments.seed, arguments.steps)?
    };
    let judged = judge_all(&networks, &judge);
    // If one output fails, the others are still written, since the results took hours.
    let mut result = Ok(());
    for (form, output) in [(NetworkKind::Surf, surf), (NetworkKind::Mlp, mlp)] {
        if let (Some(network), Some(output)) = (networks.iter().find(|network| network.form() == form), output) {
            let text = written(network, &records, &learn, &judged);
            result = worse_of(result, output.finish(|out| out.write_all(text.as_bytes())));
        }
    }
    if let Some(output) = calibration {
        let trained: Vec<(NetworkKind, Trained)> =
            networks.iter().filter_map(|network| Some((network.form(), trained(network, arguments.gpu, &learn, &judged)?))).collect();
        let written = target(&config).and_then(|target| write_into(target, output, trained)).map(|file| {
            if !quiet {
                let file = file.display();
                say(&format!("weights of surf and mlp are in {file}; `socbfs calibrate` decides whether auto uses them"));
            }
        });
        result = worse_of(result, written);
    }
    if let Some(json) = json {
        let written = json.finish_json(|out| serde_json::to_writer_pretty(out, &judged).map_err(std::io::Error::from));
        result = worse_of(result, written);
    }
    worse_of(result, if in_place { Ok(()) } else { print(&table(&judged)) })
}

impl TrainArgs {
    /// Whether the weights go into the calibration, and not to files.
    fn for_calibration(&self, config: &Runtime) -> bool {
        let elsewhere = self.surf.is_some() || self.mlp.is_some() || config.calibration.value == CalibrationChoice::Off;
        !elsewhere && !self.collect_only && !self.judge_only && cfg!(feature = "train")
    }
}

/// The calibration for the searches that are measured.
fn target(config: &Runtime) -> Result<FoundCalibration, Failure> {
    let device = config.chosen()?;
    config.calibration(device.first().map(|info| (info, config.way_asked(info))))?.ok_or_else(|| {
        Failure::new("there is no calibration for this machine and these settings to write the weights into")
            .cure("`socbfs calibrate` makes one; --mlp FILE writes weights to a file of their own, --calibration off only scores")
    })
}

/// Writes networks into a calibration, by the `output` to its file, without changing its other tables. Returns the file.
fn write_into(found: FoundCalibration, output: Output, trained: Vec<(NetworkKind, Trained)>) -> Result<PathBuf, Failure> {
    let FoundCalibration { mut calibration, file } = found;
    for (form, trained) in trained {
        calibration.set_trained(form, trained);
    }
    let text = runtime::text(&calibration, &file)?;
    output.finish(|out| out.write_all(text.as_bytes()))?;
    Ok(file)
}

/// The entry of a calibration for a network; `None` if the network was not scored.
fn trained(network: &Mlp, on_device: bool, learn: &[&SearchSample], judged: &[Judgement]) -> Option<Trained> {
    let mean = judged.iter().find(|judgement| judgement.policy == network.form().name())?.mean;
    let environment = Environment::read(Path::new("/"));
    Some(Trained {
        version: environment.build.version.to_string(),
        commit: environment.build.commit.to_string(),
        date: environment.time,
        command: environment.command,
        on_device,
        graphs: train::names(learn).len(),
        held_out: mean.graphs,
        accuracy: mean.accuracy,
        reduced_time: mean.reduced_time,
        network: network.weights(),
    })
}

/// The graphs of these names that are held out.
fn held_out(arguments: &TrainArgs, names: &[&str]) -> Vec<String> {
    if !arguments.held_out.is_empty() {
        return arguments.held_out.iter().map(|path| path.display().to_string()).collect();
    }
    train::every_fifth(names, arguments.seed).into_iter().map(str::to_owned).collect()
}

/// What helps if too few graphs are left to learn from.
#[cfg(feature = "train")]
const MORE_GRAPHS: &str = "name more graphs, or raise --generated; without --held-out every fifth graph is held out";

/// Checks that enough of the graphs `names` are left to learn from.
#[cfg(feature = "train")]
fn enough(arguments: &TrainArgs, mut names: Vec<&str>) -> Result<(), Failure> {
    names.sort_unstable();
    names.dedup();
    let held_out = held_out(arguments, &names);
    names.retain(|name| !held_out.iter().any(|graph| graph == name));
    if names.len() < train::LEAST_GRAPHS {
        return Err(Failure::because("", &train::FitError::TooFewGraphs(names.len())).cure(MORE_GRAPHS));
    }
    Ok(())
}

#[cfg(feature = "train")]
fn learn_all(searches: &[&SearchSample], seed: u64, steps: usize) -> Result<Vec<Mlp>, Failure> {
    let options = train::FitOptions { seed, steps };
    let learn = |form: NetworkKind| {
        let progress = Bar::start(&format!("Training {}", form.name()), (train::NETWORKS * options.steps) as u64);
        train::fit(form, searches, &options, &|done| progress.add(done)).map_err(|error| {
            let failure = Failure::because(&format!("can't train {}", form.name()), &error);
            // Graphs were skipped.
            if matches!(error, train::FitError::TooFewGraphs(_)) { failure.cure(MORE_GRAPHS) } else { failure }
        })
    };
    NetworkKind::ALL.into_iter().map(learn).collect()
}

#[cfg(not(feature = "train"))]
fn learn_all(_searches: &[&SearchSample], _seed: u64, _steps: usize) -> Result<Vec<Mlp>, Failure> {
    Err(without_training())
}

fn without_training() -> Failure {
    Failure::new("this program was built without training")
        .cure("build it with `cargo build --release --features train`, or only measure with --collect-only")
}

/// The scores of a policy on the held-out graphs.
#[derive(Debug, Serialize)]
struct Judgement {
    policy: String,
    mean: Mean,
    graphs: Vec<GraphScore>,
}

/// Scores the networks, and for comparison two policies that need neither training nor measuring.
fn judge_all(networks: &[Mlp], searches: &[&SearchSample]) -> Vec<Judgement> {
    let named = networks.iter().map(|network| (network.form().name(), Policy::Mlp(network.clone())));
    let others = ["sampled", "alpha-beta"].into_iter().filter_map(|name| Some((name, name.parse().ok()?)));
    named
        .chain(others)
        .map(|(name, policy)| {
            let graphs = score(&policy, searches.iter().copied());
            Judgement { policy: name.to_owned(), mean: mean(&graphs), graphs }
        })
        .collect()
}

/// Characters of the name of a graph in the table; the ends of longer names stay.
const NAME: usize = 32;

/// Formats the scores of table 3 of SURF, one below the other so that they fit a terminal.
fn table(judged: &[Judgement]) -> String {
    let Some(first) = judged.first() else { return String::new() };
    let short = |name: &str| match name.chars().count() {
        length if length > NAME => format!("..{}", name.chars().skip(length + 2 - NAME).collect::<String>()),
        _ => name.to_owned(),
    };
    let mut text = String::new();
    type Score = (&'static str, fn(&GraphScore) -> f64, fn(&Mean) -> f64);
    let scores: [Score; 2] = [
        ("accuracy (%)", |graph| graph.directions.accuracy(), |mean| mean.accuracy),
        ("reduced time (%)", |graph| graph.directions.reduced_time(), |mean| mean.reduced_time),
    ];
    for (title, of, mean) in scores {
        let row = |graph: String, levels: String, shares: &mut dyn Iterator<Item = f64>| {
            [graph, levels].into_iter().chain(shares.map(|share| format!("{:.2}", 100.0 * share))).map(Cell::word).collect::<Vec<Cell>>()
        };
        let columns = [title, "levels"].into_iter().chain(judged.iter().map(|judgement| &*judgement.policy)).map(str::to_owned).collect();
        let mut rows: Vec<Vec<Cell>> = (0..first.graphs.len())
            .map(|index| {
                let (graph, levels) = (&first.graphs[index].graph, first.graphs[index].directions.levels);
                row(short(graph), levels.to_string(), &mut judged.iter().map(|judgement| of(&judgement.graphs[index])))
            })
            .collect();
        rows.push(row("mean".to_owned(), String::new(), &mut judged.iter().map(|judgement| mean(&judgement.mean))));
        // Writing to a String can't fail.
        let _ = aligned(&mut text, &Table { columns, rows });
        text.push('\n');
    }
    text
}

/// The weights as TOML, with their origin but without the time, so that the same records and program give the same file.
fn written(network: &Mlp, records: &RecordsFile, learn: &[&SearchSample], judged: &[Judgement]) -> String {
    let environment = Environment::read(Path::new("/"));
    let name = network.form().name();
    let levels = |searches: &[&SearchSample]| searches.iter().map(|search| search.levels.len().saturating_sub(1)).sum::<usize>();
    let mut text = format!(
        "# Weights of the policy {name}, trained by socbfs {} ({}):\n#   {}\n# Measured on {}.\n# Learned from {} levels of {} searches of {} graphs.\n",
        environment.build.version,
        environment.build.commit,
        environment.command.iter().map(|word| base_name(word)).collect::<Vec<_>>().join(" "),
        records.machine(),
        levels(learn),
        learn.len(),
        train::names(learn).len(),
    );
    if let Some(judgement) = judged.iter().find(|judgement| judgement.policy == name) {
        let Mean { graphs, accuracy, reduced_time } = judgement.mean;
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "# On {graphs} graphs held out: {:.2} % of the directions right, {:.2} % of the saveable time saved.",
            100.0 * accuracy,
            100.0 * reduced_time
        );
    }
    text.push('\n');
    text.push_str(&network.weights().to_toml());
    text
}

/// The name of a file without its folders, which mean nothing on another machine.
fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Measures the searches that the file of records lacks.
fn measure(arguments: &TrainArgs, config: &Runtime, graphs: &[(String, PathBuf)]) -> Result<RecordsFile, Failure> {
    let rules = Rules {
        roots: usize::from(arguments.roots),
        least_vertices: LEAST_VERTICES,
        least_edges: LEAST_EDGES,
        tries: TRIES,
        turns: Turns { turns: usize::from(arguments.turns), patience: PATIENCE, splits: false, ..Turns::default() },
        top_down: if arguments.gpu { vec![Strategy::Tg] } else { vec![Strategy::Tc] },
        bottom_up: if arguments.gpu { vec![Strategy::Bg] } else { vec![Strategy::Bc] },
        seed: arguments.seed,
    };
    // Only a search that has been set up can describe the machine.
    let tiny = Source::parse(Path::new("grid:2x2"), None)?.load()?.0;
    let layout = source::build("grid:2x2", &tiny, &arguments.layout.options())?;
    let structure = Structure::from(&arguments.layout.options());
    let machine = machine(&config.search_telling(&layout, &progress::steps())?, config, structure);
    let mut records = RecordsFile::open(&arguments.records, machine)?;
    let progress = Bar::still("Measuring", graphs.len() as u64);
    for (index, (name, path)) in graphs.iter().enumerate() {
        progress.between(index);
        if records.count(name) >= rules.roots || records.levels(name) >= ENOUGH_LEVELS {
            continue;
        }
        let source = Source::parse(path, None)?;
        let (edges, _) = source.load()?;
        let layout = source::build(name, &edges, &arguments.layout.options())?;
        drop(edges);
        let mut search = config.search_telling(&layout, &progress::steps())?.search;
        let roots = train::eligible(&mut search, &rules)?;
        if roots.is_empty() {
            log::warn!("{name} is skipped: no search reaches half of its vertices and 70 % of its edges");
        }
        for &root in &roots {
            if records.levels(name) >= ENOUGH_LEVELS {
                break;
            }
            if records.searches().iter().any(|search| search.graph == *name && search.root == root) {
                continue;
            }
            if let Some(sample) = train::collect(&mut search, name, root, &rules)? {
                records.push(sample)?;
            }
        }
        progress.result(&format!("{name}: {} searches", records.count(name)));
    }
    drop(progress);
    Ok(records)
}

fn machine(prepared: &Prepared<'_>, config: &Runtime, structure: Structure) -> Machine {
    let cpu = Environment::read(Path::new("/")).cpu.model.unwrap_or_else(|| "unknown".to_owned());
    let Prepared { search, options, .. } = prepared;
    // A board may have two devices of one name.
    let device = search.devices().first().zip(options.devices.first());
    let device = device.map(|(used, setup)| format!("TG and BG on {}, {} compute units", used.name, setup.device.compute_units()));
    let (threads, cpus) = (search.threads(), config.cpus.value.clone());
    Machine { cpu, threads, cpus, simd: search.simd().to_string(), device, structure }
}
