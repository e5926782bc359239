//! `socbfs bench`, `run` and `validate` as one of several processes of `mpirun`.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bytemuck::cast_slice_mut;
use clap::{ArgMatches, parser::ValueSource};

use super::{
    bench::{BenchArgs, fitting_scale, graph_record, publish, record},
    run::{Array, RunArgs, summary},
    validate::{ValidateArgs, report_verdict},
};
use crate::shell::energy::unmeasured;
use crate::shell::{
    config::{ClusterArgs, LayoutArgs, SearchArgs, without_effect},
    error::Failure,
    output::{Output, Outputs, print, worse_of},
    progress::Bar,
    source::{Source, start_pool},
    tell,
};
use crate::{
    bench::{MeasuredRoots, RootSource, measure_cluster, roots, temperatures},
    record::{ChosenPolicy, ClusterRecord, EnergyRecord, Environment, LayoutRecord, SearchRecord},
    report::{self, Column, read_array, write_array},
};
use socbfs::{
    Simd,
    bfs::Strategy,
    graph::{EdgeSlice, EdgeStream as _, LayoutStats, Order, Vertex},
    opencl::DeviceChoice,
    search::SearchError,
};
use socbfs_boards::runtime::{CalibrationChoice, Origin, Runtime, Setting};
use socbfs_cluster::{
    ClusterError, ClusterOptions, ClusterSearch, ClusterValidator, Edges, Exchange, MpiRanks, Part, Places, PreparedRank, RankDevice,
    RankTree, Ranks, all_gather, max, measured_bands, read, read_on_first, texts, values,
};
use socbfs_io::{ReadOptions, generate::GeneratedEdges};
use socbfs_policy::{Bands, NEVER, Objective, Policy, Published};

impl ClusterArgs {
    /// The settings of a search over ranks: those of any search, and the batch.
    fn resolve(&self, search: &SearchArgs, matches: &ArgMatches) -> Result<Runtime, Failure> {
        let mut config = search.resolve(matches)?;
        let Setting { value, origin } = config.objective;
        if value != Objective::Time {
            let given = if origin == Origin::Flag { format!("--objective {value}") } else { format!("the objective {value} ({origin})") };
            return Err(Failure::new(format!("{given} is for one process: ranks share no model of costs"))
                .cure("start it without mpirun, or give --objective time"));
        }
        if self.exchange == Exchange::Pairs {
            let of_devices = ["memory_way", "work_group", "parts"];
            without_effect(matches, &of_devices, "--exchange pairs searches without a device", "omit --FLAG")?;
            without_effect(matches, &["simd"], "--exchange pairs uses no vector instructions", "omit --FLAG")?;
            not_calibrated(&config)?;
            if !matches!(config.device.value, DeviceChoice::Auto | DeviceChoice::Cpu) {
                return Err(Failure::new("--exchange pairs searches on CPUs only, and --device names a device").cure("omit one of the two"));
            }
            let Setting { value: threads, origin } = config.team();
            if threads > 1 && matches!(origin, Origin::Flag | Origin::Environment) {
                return Err(Failure::new(format!("--exchange pairs searches with one thread on each rank, not {threads}"))
                    .cure("start more ranks, or omit --threads"));
            }
            (config.device.value, config.threads) = (DeviceChoice::Cpu, Setting::flag(1));
        }
        if let Some(batch) = self.batch {
            config.batch = Setting::flag(Some(batch));
        }
        log::info!("batch = {} ({})", config.batch.value.unwrap_or(ClusterOptions::BATCH), config.batch.origin);
        Ok(config)
    }
}

/// Runs `work` as one rank. An error on one rank ends all ranks, with a message that names the rank.
pub(super) fn as_rank(ranks: &MpiRanks, work: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    match work() {
        Err(failure @ Failure::Error { .. }) => {
            let code = failure.code();
            // Most errors, such as a wrong flag, occur on all ranks: rank 0 reports its own and ends the others before they report theirs.
            if ranks.rank() > 0 {
                std::thread::sleep(BEFORE_OTHERS + BETWEEN_RANKS * ranks.rank().min(64) as u32);
            }
            tell(&failure.context(&format!("rank {}", ranks.rank())));
            ranks.abort(code.into())
        }
        other => other,
    }
}

/// Time that a failed rank other than 0 waits, so that rank 0 can report the same error first.
const BEFORE_OTHERS: Duration = Duration::from_millis(200);
/// Additional time per rank number (at most 64), so that failed ranks report one after the other.
const BETWEEN_RANKS: Duration = Duration::from_millis(20);

/// Converts errors of a search over ranks to failures. Rank 0 reports an error that all ranks have, once for all of them.
fn once_for_all<'r>(ranks: &'r MpiRanks, context: &'r str) -> impl Fn(ClusterError) -> Failure + 'r {
    move |error| {
        if let ClusterError::SetUp { .. } = error {
            // The rank that failed reports the reason, and ends this one while it waits here.
            ranks.barrier();
        }
        let is_of_all = error.is_of_all();
        let failure = Failure::because(context, &error);
        if is_of_all { of_all(ranks, &failure) } else { failure }
    }
}

/// Handles a failure that all ranks have: rank 0 prints it, and every rank gets a failure that prints nothing more.
fn of_all(ranks: &MpiRanks, failure: &Failure) -> Failure {
    if ranks.rank() == 0 {
        tell(failure);
    }
    // The other ranks wait until it is printed.
    ranks.barrier();
    Failure::Command(failure.code())
}

/// Returns `own` if no rank has failed. Otherwise the first rank that failed prints its error, and all ranks get a failure. All ranks must
/// call it.
fn agreed<T>(ranks: &MpiRanks, own: Result<T, Failure>) -> Result<T, Failure> {
    let Some(first) = values(ranks, own.is_err().into()).iter().position(|&failed| failed != 0) else { return own };
    if let Err(failure) = own {
        if ranks.rank() == first {
            tell(&failure.context(&format!("rank {first}")));
        }
    }
    ranks.barrier();
    // The exit code of an error, whose message has been printed.
    Err(Failure::Command(Failure::new("").code()))
}

/// The edges that a rank has.
enum Loaded {
    /// All edges, generated anew each time they are read.
    Made(GeneratedEdges),
    /// Some edges of a file.
    Read(EdgeSlice),
}

impl<'e> From<&'e Loaded> for Edges<'e, GeneratedEdges> {
    fn from(loaded: &'e Loaded) -> Self {
        match loaded {
            Loaded::Made(edges) => Self::All(edges),
            Loaded::Read(slice) => Self::Slice(slice),
        }
    }
}

impl Loaded {
    /// Reads a file together with the other ranks, or prepares a generator. Also returns the seconds that this took.
    fn load(source: &Source, from_rank_0: bool, ranks: &MpiRanks) -> Result<(Self, f64), Failure> {
        start_pool()?;
        let start = Instant::now();
        let loaded = match source {
            Source::Generated(generator) if from_rank_0 => {
                let failure = Failure::new(format!("{generator} is generated: --from-rank-0 is for files"))
                    .cure("omit --from-rank-0: each rank generates the edges");
                return Err(of_all(ranks, &failure));
            }
            Source::Generated(generator) => {
                Self::Made(generator.stream().map_err(|error| Failure::because(&format!("can't generate {generator}"), &error))?)
            }
            Source::File(path, format) => {
                let progress = Bar::start(&format!("Reading {}", path.display()), 0);
                let options = ReadOptions { format: *format, progress: Some(&progress), ..ReadOptions::default() };
                let slice = if from_rank_0 { read_on_first(path, &options, ranks) } else { read(path, &options, ranks) };
                Self::Read(slice.map_err(once_for_all(ranks, ""))?)
            }
        };
        Ok((loaded, start.elapsed().as_secs_f64()))
    }

    fn vertices(&self) -> usize {
        match self {
            Self::Made(edges) => edges.vertices(),
            Self::Read(slice) => slice.vertices(),
        }
    }
}

/// Version and commit of this program.
const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), " of commit ", env!("SOCBFS_COMMIT"));

/// Fails on all ranks if they run different programs, which would wait for each other or misread each other's messages.
fn same_program(ranks: &MpiRanks) -> Result<(), Failure> {
    let all = texts(ranks, PROGRAM)?;
    match all.iter().position(|other| *other != all[0]) {
        None => Ok(()),
        Some(rank) => {
            let failure = Failure::new(format!("rank 0 runs socbfs {}, but rank {rank} runs {}", all[0], all[rank]))
                .cure("copy the same program to all machines: `cross/deploy` does");
            Err(of_all(ranks, &failure))
        }
    }
}

/// The policy for a search over ranks, with the reason for it: alpha-beta instead of `auto` (tc for pairs), otherwise the configured
/// policy, which must decide only directions or name one kernel.
fn own_policy(config: &Runtime, exchange: Exchange) -> Result<(Policy, &'static str), Failure> {
    let asked = &config.policy;
    let names_kernel = matches!(asked.value, Policy::Fixed(strategy) if strategy != Strategy::Tgm);
    match &asked.value {
        Policy::Fixed(Strategy::Tc) => Ok((asked.value.clone(), "asked for")),
        Policy::Auto(_) if exchange == Exchange::Pairs => Ok((Policy::Fixed(Strategy::Tc), "pairs are sent top-down, by CPUs")),
        other if exchange == Exchange::Pairs => {
            // Without the flag, the policy of the environment or of the board would hold.
            Err(Failure::new(format!("--exchange pairs is top-down on CPUs only, and the policy is {other}")).cure("give --policy tc"))
        }
        Policy::Auto(_) => Ok((Policy::Published(Published::alpha_beta()), "every rank has to decide the same, without a sample")),
        // Without its sample it would run most levels top-down.
        other if other.needs_samples() => {
            Err(Failure::new(format!("policy {other} is for one process: it decides by a sample, which ranks do not take"))
                .cure("use alpha-beta, or another policy that decides by counts"))
        }
        other if names_kernel || !other.needs_device() && !matches!(other, Policy::Replay(_)) => {
            Ok((other.clone(), "asked for"))
        }
        other => Err(Failure::new(format!(
            "policy {other} is for one process: over several ranks a policy decides only directions, and each rank decides where its part runs"
        ))
        .cure("use alpha-beta, tc, bc, tg, bg, bgc, or another policy that decides directions only")),
    }
}

/// The policy, which must be the same on all ranks. All ranks must call it.
fn policy(config: &Runtime, exchange: Exchange, ranks: &MpiRanks) -> Result<(Policy, ChosenPolicy), Failure> {
    let asked = &config.policy;
    let (policy, reason) = agreed(ranks, own_policy(config, exchange))?;
    let texts = texts(ranks, &policy.to_string())?;
    if let Some(rank) = texts.iter().position(|other| *other != texts[0]) {
        let failure = Failure::new(format!("rank 0 has policy {}, but rank {rank} has {}", texts[0], texts[rank]))
            .cure("the board files differ: name one policy for all with --policy");
        return Err(of_all(ranks, &failure));
    }
    let origin = if matches!(asked.value, Policy::Auto(_)) { Origin::BuiltIn } else { asked.origin };
    let chosen = ChosenPolicy { policy: policy.to_string(), origin, reason: reason.to_owned(), bands: Vec::new() };
    Ok((policy, chosen))
}

/// The device of this rank, if it has one.
fn device(config: &Runtime) -> Result<Option<PreparedRank>, Failure> {
    let prepared = config.undivided_device()?.map(PreparedRank::from);
    if prepared.is_none() {
        if config.policy.value.needs_device() {
            return Err(SearchError::NoDevice { policy: config.policy.value.to_string() }.into());
        }
        not_calibrated(config)?;
    }
    Ok(prepared)
}

/// Refuses a calibration that was named for a rank without a device.
fn not_calibrated(config: &Runtime) -> Result<(), Failure> {
    if matches!(config.calibration, Setting { value: CalibrationChoice::File(_), origin: Origin::Flag }) {
        return Err(Failure::new("--calibration is for ranks with a device (it says which levels run there), and this rank has none")
            .cure("omit --calibration"));
    }
    Ok(())
}

/// Measures which levels run on this rank's device, if no profile, calibration or flag determines it. All ranks must call it.
fn resolve_bounds(ready: &mut Ready, ranks: &MpiRanks) -> Result<(), Failure> {
    let measured = measured_bands(&ready.part, ranks, &ready.options, ready.wants_bounds).map_err(once_for_all(ranks, ""))?;
    if let (Some(measured), Some(device)) = (measured, &mut ready.options.device) {
        let known = if let Places::By(bands) = device.places { bands } else { Bands::CPU };
        for (name, known, band) in [("top_down", known.top_down, measured.top_down), ("bottom_up", known.bottom_up, measured.bottom_up)] {
            if known.gpu_from.is_some() {
                continue;
            }
            let from = band.gpu_from.filter(|&from| from < NEVER).map_or_else(|| "never".to_owned(), |from| from.to_string());
            log::info!("rank {}: {name}.gpu_from = {from} (measured)", ranks.rank());
        }
        device.places = device.places.or(measured);
    }
    Ok(())
}

fn options(arguments: &ClusterArgs, config: &Runtime, policy: Policy, device: Option<RankDevice>) -> ClusterOptions {
    let threads = match config.team().value {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    ClusterOptions {
        policy,
        device,
        threads,
        cpus: config.cpus.value.numbers().to_vec(),
        simd: config.simd.value,
        exchange: arguments.exchange,
        batch: config.batch.value.unwrap_or(ClusterOptions::BATCH),
        sorted: !arguments.unsorted,
    }
}

fn not_directed(directed: bool) -> Result<(), Failure> {
    if directed { Err(only_one_process("over several ranks every edge leads both ways: --directed")) } else { Ok(()) }
}

/// Refuses --directed and `flags`, which only a search in one process takes.
fn for_ranks(layout: &LayoutArgs, matches: &ArgMatches, flags: &[&str]) -> Result<(), Failure> {
    not_directed(layout.directed)?;
    match flags.iter().find(|&&flag| matches.value_source(flag) == Some(ValueSource::CommandLine)) {
        Some(flag) => Err(only_one_process(&format!("--{}", flag.replace('_', "-")))),
        None => Ok(()),
    }
}

fn only_one_process(what: &str) -> Failure {
    Failure::new(format!("{what} is for one process")).cure("start it without mpirun")
}

/// A search over ranks that is set up, except for bounds of its devices that have to be measured.
struct Ready {
    edges: Loaded,
    acquisition_seconds: f64,
    part: Part,
    construction_seconds: f64,
    options: ClusterOptions,
    wants_bounds: bool,
    chosen: ChosenPolicy,
}

impl Ready {
    fn new(cluster: &ClusterArgs, layout: &LayoutArgs, config: &Runtime, source: &Source, ranks: &MpiRanks) -> Result<Self, Failure> {
        let (policy, chosen) = policy(config, cluster.exchange, ranks)?;
        // Before a graph is read or generated.
        agreed(ranks, config.check_device().map_err(Failure::from))?;
        let (edges, acquisition_seconds) = Loaded::load(source, cluster.from_rank_0, ranks)?;
        let prepared = agreed(ranks, device(config))?;
        let wants_bounds = prepared.as_ref().is_some_and(|prepared| prepared.wants_bounds);
        let options = options(cluster, config, policy, prepared.map(|prepared| prepared.device));
        let start = Instant::now();
        let part = Part::build(&edges, layout.order, ranks).map_err(once_for_all(ranks, &source.name()))?;
        let construction_seconds = max(ranks, start.elapsed().as_nanos() as u64) as f64 * 1e-9;
        Ok(Self { edges, acquisition_seconds, part, construction_seconds, options, wants_bounds, chosen })
    }
}

/// `socbfs bench` over ranks.
pub(super) fn bench(arguments: &BenchArgs, matches: &ArgMatches, quiet: bool, ranks: &MpiRanks) -> Result<(), Failure> {
    same_program(ranks)?;
    let first = ranks.rank() == 0;
    let prepare = || {
        if arguments.is_board() {
            return Err(only_one_process("--report board"));
        }
        for_ranks(&arguments.layout, matches, &["html", "scales", "keep_leaves", "device_times"])?;
        let config = arguments.cluster.resolve(&arguments.search, matches)?;
        let json = arguments.output.json.as_deref().filter(|_| first).map(Output::open).transpose()?;
        arguments.energy.check(&config.profile)?;
        // Before the process is bound to CPUs, and before the graph is read, so that the CPUs, the load and the temperatures are those
        // that the run found.
        let environment = Environment::read(Path::new(super::bench::ROOT));
        config.apply()?;
        let named = arguments.names_graph().then(|| arguments.source()).transpose()?;
        Ok((config, json, environment, named))
    };
    let (config, json, environment, named) = agreed(ranks, prepare())?;
    let source = match named {
        Some(source) => source,
        // No rank has named a graph. Their machines may differ, so they search the largest graph that fits each of them.
        None => {
            let smallest = values(ranks, fitting_scale().into()).into_iter().min();
            arguments.source_or(|| smallest.map_or_else(fitting_scale, |scale| scale as u32))?
        }
    };
    let mut ready = Ready::new(&arguments.cluster, &arguments.layout, &config, &source, ranks)?;
    let seeds = RootSource { seed1: arguments.seed, seed2: arguments.seed.wrapping_add(1) };
    let drawn = roots(ready.part.vertices(), |v| u32::from(ready.part.has_edge(v)), arguments.roots, seeds);
    if drawn.is_empty() {
        return Err(Failure::new(format!("{} has no edge between two vertices: there is nothing to search", source.name())));
    }
    let progress = first.then(|| Bar::still("Searching", drawn.len() as u64));
    resolve_bounds(&mut ready, ranks)?;
    let Ready { edges, part, mut options, .. } = ready;
    let MeasuredRoots { records, exchanged, devices } = measure_cluster(&edges, &part, ranks, &options, &drawn, &mut |done| {
        if let Some(progress) = &progress {
            progress.between(done);
        }
    })
    .map_err(once_for_all(ranks, ""))?;
    drop(progress);
    let own = devices.iter().find(|device| device.rank == ranks.rank());
    if own.is_none_or(|device| device.fallen_back.is_some()) {
        options.device = None;
    }
    let counts = part.counts();
    let stats = LayoutStats {
        vertices: part.vertices() as u64,
        searched_vertices: counts.searched,
        isolated: counts.isolated,
        leaves: counts.leaves,
        listed: counts.listed,
        self_loops: counts.self_loops,
        edges: counts.edges,
        unique_edges: counts.arcs.iter().sum::<u64>() / 2 + counts.leaves,
        max_degree: counts.max_degree,
        skew: counts.skew,
        both_directions: counts.both_directions,
    };
    let layout = LayoutRecord {
        order_asked: arguments.layout.order,
        order: part.order(),
        construction_seconds: ready.construction_seconds,
        bytes: counts.bytes.iter().sum(),
        steps: Vec::new(),
    };
    let search = SearchRecord {
        fallen_back: devices.iter().find_map(|device| Some(format!("rank {}: {}", device.rank, device.fallen_back.as_ref()?))),
        ..SearchRecord::new(&config, ready.chosen, options.threads, options.simd.unwrap_or_else(Simd::detect))
    };
    let graph = graph_record(&source, stats, false, ready.acquisition_seconds);
    let mut record = record(environment, graph, layout, search, (arguments.roots, records));
    record.cluster = Some(ClusterRecord {
        processes: ranks.size(),
        library: MpiRanks::library(),
        exchange: options.exchange,
        batch: options.batch,
        sorted: options.sorted,
        arcs_max_over_mean: counts.imbalance(),
        graph: counts.clone(),
        devices,
        roots: exchanged,
    });
    record.energy = match &record.summary {
        Some(_) => match ClusterSearch::new(&part, ranks, &options) {
            Ok(mut search) => arguments.energy.measure_cluster(&config.profile, &mut search, ranks, &record.roots)?,
            // This rank alone has the error, and the others would wait.
            Err(error @ ClusterError::Message { .. }) => return Err(error.into()),
            // All ranks have an error.
            Err(error) => unmeasured(&error.into(), first),
        },
        None => EnergyRecord::unavailable("the run has no speed", None),
    };
    if first {
        record.environment.temperatures_after = temperatures(Path::new(super::bench::ROOT));
        record.warnings = crate::bench::warnings(&record);
        return publish(&record, Outputs { json, html: None }, quiet);
    }
    if record.valid { Ok(()) } else { Err(Failure::Invalid) }
}

/// `socbfs run` over ranks.
pub(super) fn run(arguments: &RunArgs, matches: &ArgMatches, ranks: &MpiRanks) -> Result<(), Failure> {
    same_program(ranks)?;
    let prepare = || {
        for_ranks(&arguments.layout, matches, &["exact", "energy", "json", "nearest", "keep_leaves", "device_times"])?;
        let config = arguments.cluster.resolve(&arguments.search, matches)?;
        let source = Source::parse(&arguments.graph, arguments.format)?;
        let sources = arguments.sources.resolve()?;
        let [parents, levels, _] = arguments.outputs(ranks.rank() == 0)?;
        config.apply()?;
        Ok((config, source, sources, parents, levels))
    };
    let (config, source, sources, parents, levels) = agreed(ranks, prepare())?;
    let mut ready = Ready::new(&arguments.cluster, &arguments.layout, &config, &source, ranks)?;
    resolve_bounds(&mut ready, ranks)?;
    let Ready { edges, part, options, .. } = ready;
    let mut search = ClusterSearch::new(&part, ranks, &options).map_err(once_for_all(ranks, ""))?;
    let outcome = search.run(&sources).map_err(once_for_all(ranks, ""))?;
    let tree = RankTree { sources, parents: search.parents_by_row().to_vec() };
    let validator = ClusterValidator::new(&part, ranks);
    let trees = [tree];
    if let Err(violation) = validator.validate(&edges, &trees).map_err(once_for_all(ranks, ""))?.remove(0) {
        if ranks.rank() == 0 {
            crate::shell::say(&format!("error: the tree from root {} failed validation: {violation}", outcome.root));
        }
        return Err(Failure::Invalid);
    }
    // Only rank 0 has opened the files.
    let write = |array: Array, column: Column, values: &[u32]| {
        array.map_or(Ok(()), |(format, output)| output.finish(|out| write_array(out, format, column, values)))
    };
    let mut written = Ok(());
    if arguments.parents.is_some() {
        let whole = validator.parents(&trees[0]).map_err(once_for_all(ranks, ""))?;
        written = write(parents, Column::Parent, &whole);
    }
    if arguments.levels.is_some() {
        written = worse_of(written, write(levels, Column::Level, &validator.levels(&trees[0])?));
    }
    let traffic = all_gather(ranks, &search.traffic().to_vec())?;
    if ranks.rank() != 0 {
        return Ok(());
    }
    let received = traffic.iter().map(|rank| rank.iter().map(|level| level.received).sum::<u64>()).max().unwrap_or(0);
    let of_ranks = ("ranks", format!("{}, which received up to {received} bytes", ranks.size()));
    let mut text = summary(&outcome, part.vertices(), Some(of_ranks));
    if arguments.trace {
        text.push('\n');
        text.push_str(&report::trace(search.records(), &[], None, arguments.wide));
        text.push('\n');
        text.push_str(&report::traffic(&traffic));
    }
    worse_of(written, print(&text))
}

/// Parents that rank 0 sends at once.
const PIECE: usize = 1 << 20;

/// The tree in a file that rank 0 has, which sends it to all ranks.
fn parents_of_first(path: &Path, vertices: usize, ranks: &MpiRanks) -> Result<Vec<Vertex>, Failure> {
    // An error of rank 0 ends all ranks (`as_rank`).
    let mut parents = if ranks.rank() == 0 { read_array(path, vertices)? } else { vec![0; vertices] };
    for piece in parents.chunks_mut(PIECE) {
        ranks.broadcast(0, cast_slice_mut(piece));
    }
    Ok(parents)
}

/// `socbfs validate` over ranks.
pub(super) fn validate(arguments: &ValidateArgs, ranks: &MpiRanks) -> Result<(), Failure> {
    same_program(ranks)?;
    let prepare = || {
        not_directed(arguments.directed)?;
        Ok((arguments.sources.resolve()?, Source::parse(&arguments.graph, arguments.format)?))
    };
    let (sources, source) = agreed(ranks, prepare())?;
    let (edges, _) = Loaded::load(&source, arguments.from_rank_0, ranks)?;
    let vertices = edges.vertices();
    if let Some(&root) = sources.iter().find(|&&source| source as usize >= vertices) {
        return Err(SearchError::RootOutOfRange { root, vertices }.into());
    }
    let parents = parents_of_first(&arguments.parents, vertices, ranks)?;
    let part = Part::build(&edges, Order::Auto, ranks).map_err(once_for_all(ranks, &source.name()))?;
    let validator = ClusterValidator::new(&part, ranks);
    let verdict = match validator.tree_of(&sources, &parents) {
        Err(fault) => Err(fault),
        Ok(tree) => {
            drop(parents);
            validator.validate(&edges, &[tree]).map_err(once_for_all(ranks, ""))?.remove(0)
        }
    };
    report_verdict(verdict, ranks.rank() == 0)
}
