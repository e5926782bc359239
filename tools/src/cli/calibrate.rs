//! `socbfs calibrate`: the cost of each strategy on this machine.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::{ArgMatches, Args};

use crate::shell::energy::SensorArgs;
use crate::shell::{
    config::{SearchArgs, without_effect},
    error::Failure,
    interrupt,
    output::{Output, Outputs},
    progress::{Bar, steps},
    say,
    so_far::{continuing, partial_of},
};
use crate::{
    bench::{RootSource, available_memory, roots},
    calibrate::{
        self, MeasuredGraph, Partial, PartialHeader, PowerWindows, StrategyPowers, TRAINING_GRAPHS, Turns, best_work_group, fit, fit_zhang,
        held_out, measure_levels, measure_power, measure_work_groups, numbers, training_graph,
    },
    record::LevelTable,
    record::{Build, Environment},
    report::{self, CalibrationReport},
};
use socbfs::{
    SampledCosts,
    bfs::Strategy,
    files,
    graph::{BuildOptions, Layout, Vertex},
    search::Search,
    stats::Summary,
    words::{counted, seconds},
};
use socbfs_boards::{
    board::DocumentError,
    measure,
    measure::{Calibration, Decider, GraphNumbers, Identity, Made, MeasuredDevice, Power, SCHEMA, Trained},
    runtime::{self, CalibrationChoice, Machine, Setting, Step, during},
};
use socbfs_io::generate::Generator;
use socbfs_policy::{LevelDevice, Objective, Policy, mlp::NetworkKind};
use socbfs_power::Meter;

const EXAMPLES: &str = "\
Examples:
  socbfs calibrate                       takes about 15 minutes; later searches use it
  socbfs calibrate --quick               takes a minute and a half
  socbfs calibrate --device gpu          fails without a GPU
  socbfs calibrate -o here.toml && socbfs bench --calibration here.toml

On Ctrl-C it keeps its measurements in FILE.partial, and the next call continues
from there.";

/// Measure what every strategy costs on this machine, for `auto`
///
/// Searches generated graphs (the training set of Zhang et al. 2018, section 3.2, and as many small graphs, grids and graphs of low
/// degree), every level by every strategy, and fits a cost model. `auto` then uses whichever predictor had the lowest regret on held-out
/// graphs: the model, Zhang's plain form of it, `sampled`, or, if `socbfs train` made weights here, `mlp`. With a power sensor it also
/// measures the power of each strategy, for `--objective energy`, which always uses the model. The calibration holds for this board,
/// processor, OpenCL driver, number of threads and vector instructions; for other settings calibrate again with their flags.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("policy", |flag| flag.hide(true)))]
pub(super) struct CalibrateArgs {
    /// Take less than 2 minutes instead of less than 20
    #[arg(long)]
    quick: bool,

    /// Where to write the calibration [default: a file in ~/.config/socbfs/calibration/, where searches look for it]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Measure at most N graphs
    #[arg(long, value_name = "N", default_value_t = TRAINING_GRAPHS as u16, value_parser = clap::value_parser!(u16).range(2..=TRAINING_GRAPHS as i64))]
    graphs: u16,

    /// Seed of the training set
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=MOST_SEED))]
    seed: u64,

    /// Time to spend on graphs: 90s, 10m [default: 15m; 80s with --quick]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    budget: Option<Duration>,

    #[command(flatten)]
    search: SearchArgs,

    #[command(flatten)]
    sensors: SensorArgs,

    /// Write the calibration and the regret of each predictor as JSON ("-": standard output)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    json: Option<PathBuf>,
}

pub(super) fn parse_time(text: &str) -> Result<Duration, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(number) => (number, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    match number.parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("not a time from 0.1s to a day, as in 90s or 10m".to_owned()),
    }
}

/// Largest seed: TOML has no larger integer.
const MOST_SEED: u64 = i64::MAX as u64;

/// How thoroughly to measure.
#[derive(Clone, Copy)]
struct Care {
    /// Time for graphs, without the power measurement.
    budget: Duration,
    /// Number of roots of each graph.
    roots: usize,
    turns: Turns,
    power: PowerWindows,
}

/// The least number of graphs, measured even if the time is up: a model can't be fitted to fewer.
const LEAST_GRAPHS: usize = 4;

/// Roots drawn for each one that is kept; those that reach the most vertices are kept.
const TRIED: usize = 3;

/// Bytes of memory that an edge needs at most while a graph is built and searched: the list, the layout twice, a device's copy.
const BYTES_PER_EDGE: u64 = 64;

pub(super) fn run(arguments: &CalibrateArgs, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
    let flags = ["policy", "calibration", "objective"];
    without_effect(matches, &flags, "calibrate measures every strategy", "--output says where the calibration goes")?;
    if let Some(file) = &arguments.output {
        replaceable(file)?;
    }
    let mut config = arguments.search.resolve_for_calibration(matches)?;
    // The environment sets these for searches; this command ignores them too.
    config.set_policy(Setting { value: Policy::default(), origin: config.policy.origin });
    config.calibration.value = CalibrationChoice::Off;
    config.objective.value = Objective::Time;
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let meter = arguments.sensors.meter(config.profile.power().as_ref())?;
    config.apply()?;
    let mut machine = config.machine()?;
    let mut identity = config.identity(machine.device.as_ref().map(|(device, way)| (device.info(), *way)));
    let file = arguments.file(&identity.file_name())?;
    let output = Output::open(&file)?;

    let partial_file = partial_of(&file);
    let build = format!("{} {}", Build::THIS.version, Build::THIS.commit);
    let mut header = PartialHeader::new(build, identity.clone(), arguments.seed, arguments.quick);
    let permits = |way| {
        let device = machine.device.as_ref().map(|(device, _)| device.info());
        device.is_some_and(|info| config.way_asked(info).is_none() && config.permits(info, way))
    };
    let is_continued = header.take_choices_of(&partial_file, permits);
    if let (Some((_, way)), Some(used)) = (&mut machine.device, &mut identity.device) {
        if let Some(before) = header.identity.device.as_ref().filter(|_| is_continued) {
            used.clone_from(before);
        } else if used.work_group.is_none() {
            header.work_groups = during(Step::WorkGroups, &steps(), || measure_work_groups(&machine.options))?;
            used.work_group = best_work_group(&header.work_groups);
        }
        *way = used.memory_way;
        for setup in &mut machine.options.devices {
            setup.way = used.memory_way;
            setup.options.group = used.work_group;
        }
        header.identity = identity.clone();
    }
    let (mut partial, mut graphs, reason) = Partial::open(&partial_file, &header)?;
    if let Some(notice) = continuing(&partial_file, reason, graphs.len(), ["graph", "graphs"]).filter(|_| !quiet) {
        say(&notice);
    }

    let kept = format!("the measurements are kept in {}: the same command continues from there", partial_file.display());
    let last_words = interrupt::last_words(move || say(&kept));
    let strategies = identity.strategies();
    let mut care = arguments.care();
    care.turns.splits = machine.device.is_some();
    let mut for_power = 0.0;
    if let Ok(meter) = &meter {
        let window = care.power.least_seconds(meter);
        for_power = window * (strategies.len() + 1) as f64;
        if arguments.budget.is_none() {
            care.budget = care.budget.saturating_sub(Duration::from_secs_f64(for_power)).max(care.budget / 2);
        }
    }
    let measuring = Measuring { machine: &machine, strategies, care, seed: arguments.seed };
    measuring.all(arguments.graphs.into(), for_power, &mut partial, &mut graphs)?;

    let tables: Vec<LevelTable> = graphs.iter().flat_map(|graph| graph.tables.iter().cloned()).collect();
    let (Some(mut model), Some(mut model_zhang)) = (fit(&tables), fit_zhang(&tables)) else {
        return Err(Failure::new(format!("{} graphs are too few to fit a model to", graphs.len()))
            .cure("run it again with more time (--budget, --graphs); it continues where it stopped"));
    };
    let mut strategy_numbers = numbers(&tables, strategies, &model, &model_zhang);
    let mut power = None;
    match meter {
        Ok(meter) => {
            let progress = Bar::still("Measuring power", strategies.len() as u64 + 1);
            let (graph, powers) = measuring.power(&meter, &progress)?;
            drop(progress);
            if let Some(problem) = &powers.problem {
                log::warn!("the power of some strategies is not known: {problem}");
            }
            for (strategy, watts) in powers.strategies {
                let watts = watts.map(|watts| watts.0);
                for numbers in strategy_numbers.iter_mut().filter(|numbers| numbers.strategy == strategy) {
                    numbers.watts = watts;
                }
                for cost in [&mut model, &mut model_zhang].into_iter().filter_map(|model| model.of_mut(strategy).as_mut()) {
                    cost.watts = watts;
                }
            }
            power = Some(Power {
                scope: meter.scope().to_owned(),
                sensors: meter.sensors(),
                idle_watts: powers.idle.map(|watts| watts.0),
                window_seconds: care.power.seconds,
                graph,
            });
        }
        Err(unavailable) => log::info!("no power: {}", unavailable.reason().unwrap_or("no sensor")),
    }
    let device = machine.device.as_ref().map(|(device, _)| {
        let handover = if arguments.quick { measure::measure_quickly(device) } else { measure::measure(device) };
        let launch_ns = handover.ways.iter().filter_map(|way| way.sizes.first()).map(|times| times.device_fill_ns).min();
        let bottom_up_permille = calibrate::bottom_up_permille(graphs.iter().flat_map(|graph| &graph.tables));
        MeasuredDevice { launch_ns, work_groups: header.work_groups.clone(), bottom_up_permille, handover }
    });
    let environment = Environment::read(Path::new("/"));
    let by_graph: Vec<&[LevelTable]> = graphs.iter().map(|graph| &graph.tables[..]).collect();
    let [surf, mlp] = NetworkKind::ALL.map(|form| kept_network(&file, &identity, form));
    let others = arguments.contestants(mlp.as_ref(), identity.device.is_some())?;
    let auto = held_out(&by_graph, &others);
    let calibration = Calibration {
        schema: SCHEMA,
        made: Made {
            version: Build::THIS.version.into_owned(),
            commit: Build::THIS.commit.into_owned(),
            date: environment.time,
            command: environment.command,
            seed: arguments.seed,
            quick: arguments.quick,
            seconds: graphs.iter().map(|graph| graph.seconds).sum(),
        },
        identity,
        auto,
        model,
        model_zhang,
        strategies: strategy_numbers,
        power,
        parallel: Default::default(),
        device,
        graphs: graphs.iter().map(graph_numbers).collect(),
        surf,
        mlp,
    };
    let text = runtime::text(&calibration, &file)?;
    output.finish(|out| out.write_all(text.as_bytes()))?;
    partial.remove();
    drop(last_words);
    let report = CalibrationReport { file: file.display().to_string(), calibration };
    Outputs { json, html: None }.publish(&report, || report::calibration(&report))
}

/// Refuses a file that the user names for the calibration if it holds anything else, such as a board profile.
fn replaceable(file: &Path) -> Result<(), Failure> {
    // A new file is made, and a device is written to.
    if !file.is_file() {
        return Ok(());
    }
    let refused = |reason: &str| {
        Failure::new(format!("can't write {}: {reason}", file.display())).cure("name another file with --output, or remove this one")
    };
    match files::read_text(file, files::Kind::Regular, files::CONFIGURATION) {
        Ok(text) if text.trim().is_empty() || Calibration::is_recognised(&text) => Ok(()),
        Ok(_) => Err(refused("it exists, and is not a calibration")),
        Err(error) => Err(refused(&format!("it exists, and can't be read as a calibration: {error}"))),
    }
}

/// The network in `file`, if that is a calibration of the same machine: `socbfs train` made it, and this command does not train it again.
fn kept_network(file: &Path, identity: &Identity, form: NetworkKind) -> Option<Trained> {
    let before = match Calibration::load(file) {
        Ok(before) => before,
        Err(DocumentError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => {
            log::warn!("trained weights of {} are lost if there were any: {error}", form.name());
            return None;
        }
    };
    let trained = before.trained(form)?;
    let mut machine = before.identity.clone();
    if let (Some(before), Some(now)) = (&mut machine.device, &identity.device) {
        // Calibrations choose these by times, so the next one may choose others. The weights are good for both.
        (before.memory_way, before.work_group) = (now.memory_way, now.work_group);
    }
    if let Some(difference) = machine.difference(identity) {
        log::warn!("weights of {} in {} are not kept: {difference}", form.name(), file.display());
        return None;
    }
    Some(trained.clone())
}

fn graph_numbers(graph: &MeasuredGraph) -> GraphNumbers {
    GraphNumbers {
        graph: graph.graph.clone(),
        vertices: graph.vertices,
        edges: graph.edges,
        roots: graph.tables.len(),
        levels: graph.tables.iter().map(|table| table.levels.len()).sum(),
    }
}

impl CalibrateArgs {
    /// The path of the calibration. Creates the folder of the user's calibrations if the path is in it.
    fn file(&self, name: &str) -> Result<PathBuf, Failure> {
        if let Some(file) = &self.output {
            if file == Path::new("-") {
                return Err(Failure::new("a calibration goes to a file, not to standard output").cure("--json - prints it as JSON"));
            }
            return Ok(file.clone());
        }
        let folder = runtime::folder()
            .ok_or_else(|| Failure::new("there is no folder for calibrations: HOME is not set").cure("name a file with --output"))?;
        fs::create_dir_all(&folder)
            .map_err(|error| Failure::because(&format!("can't make {}", folder.display()), &error).cure("name a file with --output"))?;
        Ok(folder.join(name))
    }

    /// The policies to compare the models with: `sampled`, which needs no fitting, and `mlp` if it was trained for the device used here.
    fn contestants(&self, mlp: Option<&Trained>, with_device: bool) -> Result<Vec<(Decider, Policy)>, Failure> {
        let mut all = vec![(Decider::Sampled, Policy::Sampled(SampledCosts::default()))];
        if let Some(trained) = mlp.filter(|trained| trained.on_device == with_device) {
            let network = trained.network(NetworkKind::Mlp).map_err(|error| Failure::because("mlp", &error))?;
            all.push((Decider::Mlp, Policy::Mlp(network)));
        }
        Ok(all)
    }

    fn care(&self) -> Care {
        let (budget, roots, turns, patience, seconds, refreshes) =
            if self.quick { (80.0, 1, 3, 1.0, 1.5, 10) } else { (900.0, 2, 5, 4.0, 5.0, 50) };
        let budget = self.budget.unwrap_or(Duration::from_secs_f64(budget));
        // If the budget is small, no graph may take a large part of it.
        let patience = Duration::from_secs_f64(patience).min(budget / 16);
        let power = PowerWindows { seconds: f64::min(seconds, budget.as_secs_f64() / 8.0), refreshes };
        Care { budget, roots, turns: Turns { turns, patience, splits: false, ..Turns::default() }, power }
    }
}

/// What is measured of each graph, and by which strategies.
struct Measuring<'m> {
    machine: &'m Machine,
    strategies: &'m [Strategy],
    care: Care,
    seed: u64,
}

impl Measuring<'_> {
    /// Measures graphs until all are measured or the time is up.
    fn all(&self, count: usize, for_power: f64, partial: &mut Partial, graphs: &mut Vec<MeasuredGraph>) -> Result<(), Failure> {
        let care = &self.care;
        let most_scale = most_scale(available_memory(Path::new("/")));
        let budget = care.budget.as_secs_f64();
        let progress = Bar::still("Calibrating", budget as u64 + 1);
        // Warm-up: a driver builds kernels at their first use, which may take longer than measuring a graph.
        let begin = Instant::now();
        let warm = Generator::Uniform { vertices: 256, edges: 1024, seed: self.seed };
        self.graph(&Turns { turns: 1, ..care.turns }, 0, &warm)?;
        let warm_up = begin.elapsed().as_secs_f64();
        for place in 0..count {
            // A calibration that is continued has this graph already. Graphs that its budget left out are measured now, if there is time.
            if graphs.iter().any(|graph| graph.place == place) {
                continue;
            }
            let spent: f64 = graphs.iter().map(|graph| graph.seconds).sum();
            let left = (budget - warm_up - spent).max(0.0);
            progress.between_saying(spent as u64, &format!("Calibrating: {} graphs, {} left", graphs.len(), clock(left + for_power)));
            let generator = training_graph(place, self.seed, most_scale);
            let is_needed = graphs.len() < LEAST_GRAPHS;
            if left <= 0.0 && !is_needed {
                break;
            }
            // A graph that would probably take longer than the time left is skipped: a later one may be smaller.
            if is_needed || expected_seconds(&generator, graphs).is_none_or(|expected| expected <= left) {
                if let Some(graph) = self.graph(&care.turns, place, &generator)? {
                    partial.add(&graph)?;
                    let levels = graph.tables.iter().map(|table| table.levels.len() as u64).sum();
                    progress.result(&format!("{}: {} in {}", graph.graph, counted(levels, "level", "levels"), seconds(graph.seconds)));
                    graphs.push(graph);
                }
            }
        }
        Ok(())
    }

    /// Measures one graph. Returns `None` if it has no edges or does not fit the device.
    fn graph(&self, turns: &Turns, place: usize, generator: &Generator) -> Result<Option<MeasuredGraph>, Failure> {
        let begin = Instant::now();
        let layout = self.layout(generator)?;
        let mut search = match Search::new(&layout, &self.machine.options) {
            Ok(search) => search,
            // The device still works: it has no room for this graph, but may have for others. A lost device is an error.
            Err(error) if self.machine.device.as_ref().is_some_and(|(device, _)| device.finish().is_ok()) => {
                log::warn!("{generator} is left out: {}", Failure::from(error));
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let mut tables = Vec::with_capacity(self.care.roots);
        for root in self.roots(&layout, &mut search, self.care.roots)? {
            tables.push(measure_levels(&mut search, root, self.strategies, turns)?);
        }
        if tables.is_empty() {
            return Ok(None);
        }
        let stats = layout.stats();
        let (vertices, edges) = (stats.vertices, stats.listed);
        Ok(Some(MeasuredGraph { place, graph: generator.to_string(), vertices, edges, seconds: begin.elapsed().as_secs_f64(), tables }))
    }

    fn layout(&self, generator: &Generator) -> Result<Layout, Failure> {
        let failed = |error: &dyn std::error::Error| Failure::new(format!("can't generate {generator}: {error}"));
        let edges = generator.generate(&|_| ()).map_err(|error| failed(&error))?;
        Layout::build(&edges, &BuildOptions::default()).map_err(|error| failed(&error))
    }

    /// Draws roots and keeps the `count` that reach the most vertices: a search that ends at once gives no information.
    fn roots(&self, layout: &Layout, search: &mut Search<'_>, count: usize) -> Result<Vec<Vertex>, Failure> {
        let seeds = RootSource { seed1: self.seed, seed2: self.seed.wrapping_add(1) };
        let drawn = roots(layout.vertices(), |vertex| layout.input_degree(vertex), TRIED * count, seeds);
        search.set_planner(Policy::default().on(LevelDevice::Cpu))?;
        let mut reached = Vec::with_capacity(drawn.len());
        for root in drawn {
            reached.push((search.run(root)?.reached, root));
        }
        reached.sort_by_key(|(reached, _)| std::cmp::Reverse(*reached));
        reached.truncate(count);
        Ok(reached.into_iter().map(|(_, root)| root).collect())
    }

    /// Measures the power of each strategy, on a graph of a size in the middle of the training set.
    fn power(&self, meter: &Meter, progress: &Bar) -> Result<(String, StrategyPowers), Failure> {
        let scale = most_scale(available_memory(Path::new("/"))).min(17);
        let generator = Generator::Kronecker { scale, edge_factor: 16, seed1: self.seed, seed2: self.seed.wrapping_add(1) };
        let layout = self.layout(&generator)?;
        let mut search = Search::new(&layout, &self.machine.options)?;
        let roots = self.roots(&layout, &mut search, 4)?;
        let mut done = 0;
        let powers = measure_power(&mut search, &roots, self.strategies, meter, &self.care.power, || {
            done += 1;
            progress.between(done);
        })?;
        Ok((generator.to_string(), powers))
    }
}

/// Approximate number of edges of a graph.
fn edges(generator: &Generator) -> u64 {
    match *generator {
        Generator::Grid { width, height, .. } => 2 * width * height,
        _ => generator.work(),
    }
}

/// The expected time of a graph, from the median time per edge of the graphs of its kind (grids, others); `None` if there are none.
fn expected_seconds(generator: &Generator, graphs: &[MeasuredGraph]) -> Option<f64> {
    let is_grid = |name: &str| name.starts_with("grid");
    let kind = is_grid(&generator.to_string());
    let per_edge = |at_least: u64| -> Vec<f64> {
        let alike = graphs.iter().filter(|graph| is_grid(&graph.graph) == kind && graph.edges >= at_least);
        alike.map(|graph| graph.seconds / graph.edges.max(1) as f64).collect()
    };
    // Small graphs take more time per edge, so graphs with less than a quarter of the edges count only if there are no others.
    let alike = Some(per_edge(edges(generator) / 4)).filter(|alike| !alike.is_empty()).unwrap_or_else(|| per_edge(0));
    Some(Summary::of(&alike)?.median * edges(generator) as f64)
}

/// The largest scale, up to 19, whose graph of 16 edges per vertex takes no more than half of the available memory.
fn most_scale(available: Option<u64>) -> u32 {
    let edges = available.unwrap_or(1 << 30) / 2 / BYTES_PER_EDGE;
    (edges / 16).max(1).ilog2().min(19)
}

/// Formats a time as in "1 min 20 s".
pub(super) fn clock(seconds: f64) -> String {
    let seconds = seconds.ceil() as u64;
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {} s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::example;
    use socbfs::memory::SharingMode;
    use socbfs_boards::measure::OpenClIdentity;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_time("20m"), Ok(Duration::from_secs(1200)));
        for bad in ["", "m", "-3s", "nan", "0", "1h", "90000"] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
        assert_eq!((clock(59.2), clock(61.0)), ("60 s".replace("60 s", "1 min 0 s"), "1 min 1 s".to_owned()));
    }

    #[test]
    fn the_largest_scale_fits_the_memory() {
        assert_eq!(most_scale(Some(64 << 30)), 19);
        assert_eq!(most_scale(Some(1 << 30)), 19);
        assert_eq!(most_scale(Some(512 << 20)), 18);
        assert_eq!(most_scale(Some(64 << 20)), 15);
        assert_eq!(most_scale(Some(0)), 0);
    }

    #[test]
    fn times_are_expected_from_graphs_of_the_same_kind_and_size() {
        let graph =
            |graph: &str, edges, seconds| MeasuredGraph { place: 0, graph: graph.into(), vertices: 9, edges, seconds, tables: Vec::new() };
        let uniform = |edges| Generator::Uniform { vertices: 1024, edges, seed: 1 };
        let measured = [
            graph("uniform a", 1000, 1.0),
            graph("uniform b", 100_000, 2.0),
            graph("rmat", 100_000, 3.0),
            graph("rmat", 100_000, 90.0),
            graph("grid c", 1000, 50.0),
        ];
        assert_eq!(expected_seconds(&uniform(1000), &[]), None);
        // The median ignores the time of 90 s.
        assert!((expected_seconds(&uniform(400_000), &measured).unwrap() - 12.0).abs() < 1e-9);
        // No measured graph is large enough, so all that are not grids count.
        let all = [1e-3, 2e-5, 3e-5, 9e-4];
        let middle = Summary::of(&all).unwrap().median;
        assert!((expected_seconds(&uniform(1_000_000), &measured).unwrap() - 1e6 * middle).abs() < 1e-6);
        assert_eq!(expected_seconds(&Generator::Grid { width: 5, height: 5, deletion: 0.0, seed: 1 }, &measured[..4]), None);
    }

    #[test]
    fn trained_weights_are_kept_if_other_settings_of_the_device_are_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        let before = example();
        fs::write(&file, before.to_toml().unwrap()).unwrap();
        let kept = |change: fn(&mut OpenClIdentity)| {
            let mut identity = before.identity.clone();
            change(identity.device.as_mut().unwrap());
            kept_network(&file, &identity, NetworkKind::Mlp)
        };
        assert!(before.mlp.is_some());
        assert_eq!(kept(|_| ()), before.mlp);
        assert_eq!(kept(|device| device.memory_way = SharingMode::Copy), before.mlp);
        assert_eq!(kept(|device| device.work_group = Some(128)), before.mlp);
        assert_eq!(kept(|device| device.driver = "r13".into()), None);
    }
}
