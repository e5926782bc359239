//! `socbfs sweep`: the efficiency frontier of a board.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{ArgMatches, Args, ValueEnum};

use super::{
    bench::{fitting_scale, graph_record},
    calibrate::{clock, parse_time},
};
use crate::{
    bench::RootSource,
    board::{clusters, operating_points},
    record::{Environment, PointRecord, SweepRecord},
    report,
    shell::{
        Bar, Failure, LayoutArgs, Output, OutputArgs, READ, SearchArgs, SensorArgs, SoFar, Source, print, results, say, source,
        with_graph_help, without_effect, worse_of,
    },
    sweep::{self, Axes, ClockError, Clocks, Live, SWEEP_SCHEMA, SWEEP_SCHEMA_VERSION, SweepError, SweepOptions, Turn, usable_cpus},
};
use socbfs::{
    DeviceChoice,
    words::{self, counted},
};
use socbfs_boards::runtime::{Origin, Profile, Runtime, RuntimeError};
use socbfs_io::Format;
use socbfs_machine::is_live;
use socbfs_policy::Objective;

const EXAMPLES: &str = "\
Examples:
  socbfs sweep --dry-run                 what can vary here, and how long it takes
  socbfs sweep kronecker:20              speed against watts, in ten minutes
  sudo socbfs sweep kronecker:20         with clocks, which are put back
  socbfs sweep road.gr --budget 2m --axes threads
  socbfs sweep --html sweep.html --json sweep.json
  socbfs sweep -o board.toml             then: socbfs bench --board board.toml --at efficient

The same command continues after an interruption if --json or --html names a
file. docs/sweep.md describes the method.";

/// Find the operating points at which this board is fastest, and most efficient
///
/// Runs the same searches on different CPUs, with different numbers of threads, at different clocks, with and without the GPU. Prints the
/// points that no other point beats in both speed and power, and how much the best ones gain over the default: all CPUs, clocks as they
/// are. Clocks need root; they are put back at the end, and also after an error, Ctrl-C or SIGKILL.
#[derive(Debug, Args)]
#[command(after_help = with_graph_help(EXAMPLES))]
pub(super) struct SweepArgs {
    /// File or generator [default: a Kronecker graph of scale 20, or a smaller one that fits the machine]
    #[arg(value_name = "GRAPH")]
    graph: Option<PathBuf>,

    /// Format of the file, if its name and content do not determine it
    #[arg(long, value_name = "FORMAT", value_parser = READ, help_heading = "Graph", requires = "graph")]
    format: Option<Format>,

    #[command(flatten)]
    layout: LayoutArgs,

    /// What varies, as a comma-separated list
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',', default_values_t = [Axis::Clusters, Axis::Threads, Axis::Clocks, Axis::Device])]
    axes: Vec<Axis>,

    /// Policies to compare at every point: one more axis
    #[arg(long, value_name = "POLICY", value_delimiter = ';')]
    policies: Vec<String>,

    /// Time for all points: 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "10m")]
    budget: Duration,

    /// Roots, searched in turn at every point
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    roots: u16,

    /// Seed of the order of the points, and of the roots
    #[arg(long, value_name = "S", default_value_t = 2)]
    seed: u64,

    /// Throw a point away if other programs run while it is measured, and try it again later, three times in all
    #[arg(long)]
    strict: bool,

    /// Print what varies and how long it takes, and measure nothing
    #[arg(long)]
    dry_run: bool,

    /// Print all points, not only the frontier
    #[arg(long, help_heading = "Output")]
    all: bool,

    /// Write the profile of the board with the best points to a new file, for --at [default: no file]
    #[arg(long, short = 'o', value_name = "FILE", help_heading = "Output")]
    output_board: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,

    #[command(flatten)]
    sensors: SensorArgs,

    #[command(flatten)]
    search: SearchArgs,
}

/// What can vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Axis {
    /// The clusters of the chip, alone and together
    Clusters,
    /// The number of threads
    Threads,
    /// The clocks of CPUs, GPU and memory (needs root)
    Clocks,
    /// The CPUs alone, the GPU alone, or both
    Device,
}

/// Share of a point's time that is not measured: setting up the search, validating, cooling down.
const OVERHEAD: f64 = 0.4;

impl SweepArgs {
    fn varies(&self, axis: Axis) -> bool {
        self.axes.contains(&axis)
    }

    /// Seconds of searches at a point: many points fit the budget, and none is shorter than sensors need.
    fn seconds(&self) -> f64 {
        (self.budget.as_secs_f64() / 80.0).clamp(0.3, 10.0)
    }

    fn source(&self) -> Result<Source, Failure> {
        match &self.graph {
            Some(graph) => Source::parse(graph, self.format),
            None => source::checked(source::kronecker(fitting_scale().min(20), 16, self.seed)).map(Source::Generated),
        }
    }

    /// What varies on the machine below `root`. Adds to `left_out` what does not, and why.
    fn axes(&self, config: &Runtime, root: &Path, left_out: &mut Vec<String>) -> Result<Axes, Failure> {
        let clusters = clusters(root);
        let wanted = config.cpus.value.numbers();
        let usable: Vec<usize> = usable_cpus().into_iter().filter(|cpu| wanted.is_empty() || wanted.contains(cpu)).collect();
        let mut domains = if self.varies(Axis::Clocks) { sweep::domains(root, &clusters) } else { Vec::new() };
        if self.varies(Axis::Clocks) && domains.is_empty() {
            left_out.push("clocks: the kernel shows none that can be set (a virtual machine, a container, or a fixed clock)".to_owned());
        } else if is_live(root) && !domains.iter().all(Clocks::may_set) {
            left_out.push("clocks: only root may set them; run the same command with sudo".to_owned());
            domains.clear();
        }
        let named = config.device.value.to_string();
        // With another policy or objective levels run on a named device and on the CPUs.
        let is_alone = self.policies.is_empty() && config.policy.origin == Origin::BuiltIn && config.objective.value == Objective::Time;
        let mut devices = vec![("cpu", false)];
        if self.varies(Axis::Device) {
            match config.chosen() {
                Ok(found) if found.is_empty() => left_out.push("device: no GPU (`socbfs devices` says why)".to_owned()),
                Ok(_) if config.device.value != DeviceChoice::Auto => devices.insert(0, (&named, is_alone)),
                Ok(_) if is_alone => devices = vec![("auto", false), ("gpu", true), ("cpu", false)],
                Ok(_) => devices.insert(0, ("auto", false)),
                Err(error) => left_out.push(format!("device: {}", words::with_causes("", &error))),
            }
        }
        let clusters = if self.varies(Axis::Clusters) { &clusters[..] } else { &[] };
        Ok(Axes::new(clusters, &usable, domains, &devices, &self.policies, self.varies(Axis::Threads)))
    }

    fn plan(&self, axes: &Axes, record: &SweepRecord, meter: Result<f64, &str>) -> String {
        let mut text = String::new();
        for choice in &axes.choices {
            let clocks: Vec<String> = choice
                .domains
                .iter()
                .map(|&domain| {
                    let domain = &axes.domains[domain];
                    let mhz = |khz: Option<&u64>| khz.map_or(0, |khz| khz / 1000);
                    let (low, high) = (mhz(domain.steps_khz.first()), mhz(domain.steps_khz.last()));
                    format!("{} {low} to {high} MHz in {} steps", domain.name, domain.steps_khz.len())
                })
                .collect();
            text += &format!("{}{}\n", choice.name, if clocks.is_empty() { String::new() } else { format!(": {}", clocks.join(", ")) });
        }
        for reason in &record.left_out {
            text += &format!("left out: {reason}\n");
        }
        let each = match meter {
            Ok(seconds) => seconds,
            Err(why) => {
                text += &format!("no watts: {why}\n");
                self.seconds()
            }
        };
        let most = (self.budget.as_secs_f64() / (each * (1.0 + OVERHEAD))) as u64;
        let grid = counted(record.grid, "point", "points");
        text + &format!(
            "{grid} in all; in {} up to {} are measured, about {:.1} s each, first those far apart, then those near the best\n",
            clock(self.budget.as_secs_f64()),
            most.max(1).min(record.grid.max(1) * 2),
            each * (1.0 + OVERHEAD)
        )
    }
}

impl From<SweepError> for Failure {
    fn from(error: SweepError) -> Self {
        match error {
            SweepError::Runtime(error) => error.into(),
            SweepError::Search(error) => error.into(),
            other => Self::because("", &other),
        }
    }
}

impl From<ClockError> for Failure {
    fn from(error: ClockError) -> Self {
        let cure = match error {
            ClockError::Busy => "wait for its end; it may be putting clocks back",
            ClockError::NotBack { .. } => "write it into the file as root, or restart the machine",
            _ => "leave clocks out: --axes clusters,threads,device",
        };
        Self::because("", &error).cure(cure)
    }
}

pub(super) fn run(arguments: &SweepArgs, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
    without_effect(matches, &["threads"], "sweep varies the number of threads", "--cpus limits which are used, --axes what varies")?;
    without_effect(matches, &["set_clocks"], "sweep sets clocks itself", "omit --FLAG")?;
    let root = arguments.sensors.root();
    let config = arguments.search.resolve(matches)?;
    let source = arguments.source()?;
    let outputs = arguments.output.open()?;
    let board = arguments.output_board.as_deref().map(|file| Output::open_new(file, "name another file")).transpose()?;
    let meter = arguments.sensors.meter(config.profile.power().as_ref())?;
    let mut left_out = Vec::new();
    let axes = arguments.axes(&config, root, &mut left_out)?;
    let mut record = SweepRecord {
        schema: SWEEP_SCHEMA.into(),
        schema_version: SWEEP_SCHEMA_VERSION,
        environment: Environment::read(root),
        graph: None,
        roots: usize::from(arguments.roots),
        scope: meter.as_ref().ok().map(|meter| meter.scope().to_owned()),
        sensors: meter.as_ref().map_or_else(|_| Vec::new(), socbfs_power::Meter::sensors),
        idle_watts: None,
        default: axes.point(&Axes::default_spot()),
        grid: axes.grid(),
        left_out,
        points: Vec::new(),
        frontier: Vec::new(),
        best: Vec::new(),
        drift: None,
        complete: false,
        warnings: Vec::new(),
    };
    let why = meter.as_ref().err().map(|energy| energy.why().to_owned());
    let least = meter.as_ref().map(|meter| sweep::point_window(arguments.seconds()).least_seconds(meter));
    let plan = arguments.plan(&axes, &record, least.map_err(|_| why.as_deref().unwrap_or_default()));
    if arguments.dry_run {
        return print(&plan);
    }
    if !quiet {
        say(plan.lines().next_back().unwrap_or_default());
    }
    record.warnings.extend(why.map(|why| format!("no watts: {why}")));
    let turn = Turn::take(root)?;
    // Before threads start: the process that puts clocks back is a copy of this one.
    let clocks = if axes.domains.is_empty() { None } else { Some(Clocks::keep(turn, &axes.domains, results())?) };
    config.apply()?;

    let (environment, show_all) = (record.environment.clone(), arguments.all);
    let so_far = SoFar::new(
        record,
        outputs,
        move |record: &SweepRecord, outputs| outputs.publish(record, || report::sweep(record, show_all)),
        |record, why| {
            record.frontier = sweep::frontier(&record.points);
            record.best = sweep::best(&record.points, &record.default);
            record.warnings.extend(why.map(|why| format!("points are missing, since {why}")));
            !record.points.is_empty()
        },
    );
    let ended = so_far.run(|| {
        let kept: Vec<PointRecord> = so_far.resume(&environment, &config, std::slice::from_ref(&source), ["point", "points"])?;
        measure(arguments, &config, &source, &axes, meter.as_ref().ok(), clocks, kept, &so_far, quiet)
    });
    let written = board.map_or(Ok(()), |board| write_board(board, &config.profile, &so_far.lock().record));
    worse_of(ended, written)
}

/// Writes `profile` with the best points to `board`, if there are any.
fn write_board(board: Output, profile: &Profile, record: &SweepRecord) -> Result<(), Failure> {
    let best = sweep::best(&record.points, &record.default);
    if best.is_empty() {
        return Ok(());
    }
    let text = operating_points(&profile.text, &profile.place, record, &best).map_err(RuntimeError::Profile)?;
    board.finish(|out| out.write_all(text.as_bytes()))
}

#[expect(clippy::too_many_arguments, reason = "called once")]
fn measure(
    arguments: &SweepArgs,
    config: &Runtime,
    source: &Source,
    axes: &Axes,
    meter: Option<&socbfs_power::Meter>,
    clocks: Option<Clocks>,
    kept: Vec<PointRecord>,
    so_far: &SoFar<SweepRecord>,
    quiet: bool,
) -> Result<(), Failure> {
    let (edges, acquisition_seconds) = source.load()?;
    let layout = source::build(&source.name(), &edges, &arguments.layout.options())?;
    let seeds = RootSource { seed1: arguments.seed, seed2: arguments.seed.wrapping_add(1) };
    let roots = source::draw_roots(&source.name(), &layout, usize::from(arguments.roots), seeds)?;
    let how = (arguments.seconds(), arguments.strict);
    let mut machine = Live::new(config, arguments.sensors.root().to_owned(), (&edges, &layout, &roots), meter, clocks, how);
    {
        let record = &mut so_far.lock().record;
        record.graph = Some(graph_record(source, layout.stats().clone(), layout.directed(), acquisition_seconds));
        record.roots = roots.len();
        record.idle_watts = machine.idle().and_then(|idle| idle.watts);
        record.points.clone_from(&kept);
    }
    let options = SweepOptions { budget: arguments.budget, seed: arguments.seed };
    let budget = arguments.budget.as_secs();
    let progress = Bar::still("Sweeping", budget);
    let began = std::time::Instant::now();
    let ended = sweep::sweep(&mut machine, axes, options, &kept, |point| {
        if !quiet {
            progress.between_saying(began.elapsed().as_secs().min(budget), &report::point_line(&point));
        }
        let state = &mut *so_far.lock();
        state.record.points.push(point.clone());
        state.keep(&point);
        Ok(())
    });
    drop(progress);
    let back = machine.put_back().map_err(Failure::from);
    let ended = ended.map_err(Failure::from).map(|ended| {
        let record = &mut so_far.lock().record;
        (record.drift, record.complete) = (ended.drift, true);
    });
    worse_of(ended, back)?;
    let record = &so_far.lock().record;
    if record.points.iter().all(|point| point.measured.is_none()) {
        let why = record.points.iter().flat_map(|point| &point.thrown_away).next_back().cloned().unwrap_or_default();
        return Err(
            Failure::new(format!("every point was thrown away: {why}")).cure("end other programs, cool the machine, and run it again")
        );
    }
    Ok(())
}
