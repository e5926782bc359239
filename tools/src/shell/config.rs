//! Flags of every command that searches.

use std::{
    env, fs,
    marker::PhantomData,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Arc, PoisonError},
};

use clap::{
    ArgMatches, Args, Command,
    builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, Resettable, TypedValueParser},
    parser::ValueSource,
};
use serde::de::{DeserializeOwned, IntoDeserializer};

use super::{Failure, Listed, READ, Source, VARIABLES, clocks, protect, read};
use crate::{bench::read_plans, board::unpack};
use socbfs::{BuildOptions, DeviceChoice, Order, SharingMode, Simd, files, words};
use socbfs_boards::{
    board::{self, CpuList, Goal},
    runtime::{CalibrationChoice, Origin, Profile, RecordedPlans, Runtime, Setting},
};
#[cfg(feature = "mpi")]
use socbfs_cluster::Exchange;
use socbfs_io::Format;
use socbfs_policy::{Mlp, Objective, Policy, PolicyError, mlp::NetworkKind};

/// `command`, ready to parse `words`, with the lines of [`VARIABLES`]. A variable that is set but empty counts as not set, as for most
/// programs. clap would parse the empty value.
pub(crate) fn with_variables(command: Command, words: &[String]) -> Command {
    let command = without_empty_variables(command);
    let used = words.iter().fold(&command, |command, word| command.find_subcommand(word).unwrap_or(command));
    let is_given = |flag: &str| words.iter().any(|word| word.split('=').next().and_then(|name| name.strip_prefix("--")) == Some(flag));
    let lines = used.get_arguments().filter_map(|argument| {
        let (flag, variable) = (argument.get_long()?, argument.get_env()?);
        let sets = env::var_os(variable).is_some() && !is_given(flag);
        sets.then(|| format!("--{flag} is set by the environment variable {}", variable.to_string_lossy()))
    });
    VARIABLES.lock().unwrap_or_else(PoisonError::into_inner).extend(lines);
    command
}

fn without_empty_variables(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let value = argument.get_env().and_then(env::var_os);
        if value.is_some_and(|value| value.is_empty()) { argument.env(Resettable::Reset) } else { argument }
    });
    command.mut_subcommands(without_empty_variables)
}

/// Where to look for the files that identify the board.
#[derive(Debug, Args)]
pub(crate) struct RootArgs {
    /// Look at another machine: at a copy of its proc and sys in this folder, or at its manifest (`socbfs board manifest` writes one)
    #[arg(long, value_name = "DIR|FILE", default_value = "/", hide_default_value = true, value_parser = root())]
    pub(crate) sysfs_root: Root,
}

/// The folder with the files of a machine.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    path: PathBuf,
    /// The folder of a manifest's files, which exists as long as this value.
    _unpacked: Option<Arc<files::Temporary>>,
}

impl std::ops::Deref for Root {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl From<PathBuf> for Root {
    fn from(path: PathBuf) -> Self {
        Self { path, _unpacked: None }
    }
}

/// Parses the path of a folder or a manifest that exists. Without the check, a misspelt one would look like a machine that has nothing.
pub(crate) fn root() -> impl TypedValueParser<Value = Root> {
    PathBufValueParser::new().try_map(|path| match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => Ok(Root::from(path)),
        Ok(_) => unpacked(&path),
        Err(error) => Err(format!("{error}; name a folder that holds the folders proc and sys of a machine, or a manifest of it")),
    })
}

/// Unpacks the manifest `file` into a new temporary folder, which only this user can read.
fn unpacked(file: &Path) -> Result<Root, String> {
    let place = file.display().to_string();
    let text = files::read_text(file, files::Kind::Stream, files::CONFIGURATION).map_err(|error| error.to_string())?;
    let make = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path);
    let ((), folder) = files::Temporary::make(&env::temp_dir(), "socbfs-machine-", make)
        .map_err(|error| format!("no folder can be made in {}: {error}", env::temp_dir().display()))?;
    unpack(&text, &place, folder.path()).map_err(|error| words::with_causes(&error.to_string(), &error))?;
    Ok(Root { path: folder.path().to_owned(), _unpacked: Some(Arc::new(folder)) })
}

/// Flags of every command that searches, also over a grid.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct HostArgs {
    /// Threads; 0 is the default [default: one for every CPU the process may run on]
    #[arg(long, value_name = "N", env = "SOCBFS_THREADS", hide_env_values = true)]
    threads: Option<usize>,

    /// Run on these CPUs only and bind the threads to them, one each in turn: 0-3,6
    #[arg(long, value_name = "LIST", env = "SOCBFS_CPUS", hide_env_values = true)]
    cpus: Option<CpuList>,

    /// Vector instructions: scalar, neon, avx2, avx512 [default: the best that this CPU and this build have]
    #[arg(long, value_name = "KIND", env = "SOCBFS_SIMD", hide_env_values = true)]
    simd: Option<Simd>,

    /// Board profile with defaults for this machine: a name of `socbfs board list`, or a TOML file [default: the one detected]
    #[arg(long, value_name = "NAME|FILE", env = "SOCBFS_BOARD", hide_env_values = true)]
    board: Option<PathBuf>,
}

/// Flags of every command that searches a graph.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchArgs {
    #[command(flatten)]
    host: HostArgs,

    /// Policy that decides direction and device of each level; parameters follow a colon, as in alpha-beta:15,18 [default: auto]
    #[arg(long, value_name = "POLICY", env = "SOCBFS_POLICY", hide_env_values = true, value_parser = POLICIES)]
    policy: Option<PolicyArg>,

    /// OpenCL device: auto (a GPU, if there is one and the policy can use it), cpu (none), gpu, or NAME: the name of a device or of its
    /// platform, or a part of it (the largest of several; NAME#2: the second in the list of `socbfs devices`). NAME,NAME gives two devices
    /// [default: auto]
    #[arg(long, value_name = "DEVICE", env = "SOCBFS_DEVICE", hide_env_values = true)]
    device: Option<DeviceChoice>,

    /// How memory is shared with the device: alloc-host-ptr, use-host-ptr, svm-coarse, svm-fine, copy [default: from the board file or
    /// the calibration, else the fastest measured]
    #[arg(long, value_name = "WAY", env = "SOCBFS_MEMORY_WAY", hide_env_values = true)]
    memory_way: Option<SharingMode>,

    /// Work-items in a work-group of the device, a multiple of 32
    /// [default: from the board file or the calibration, else 1 if the device is a CPU, 256 on a GPU]
    #[arg(long, value_name = "N", env = "SOCBFS_WORK_GROUP", hide_env_values = true, value_parser = parse_work_group)]
    work_group: Option<usize>,

    /// Minimum number of device buffers for the adjacency, 1 to 16 [default: as few as needed]
    #[arg(long, value_name = "N", env = "SOCBFS_PARTS", hide_env_values = true, value_parser = clap::value_parser!(u8).range(1..=16))]
    parts: Option<u8>,

    /// Calibration that `socbfs calibrate` wrote: a file, auto (the one for this machine and these settings, if there is one), off
    /// [default: auto]
    #[arg(long, value_name = "FILE|off", env = "SOCBFS_CALIBRATION", hide_env_values = true)]
    calibration: Option<CalibrationChoice>,

    /// What the cost model minimises: time, energy, or edp (energy times delay). The latter two need the power of each strategy, from a
    /// calibration or a board profile [default: time]
    #[arg(long, value_name = "OBJECTIVE", env = "SOCBFS_OBJECTIVE", hide_env_values = true)]
    objective: Option<Objective>,

    /// Let devices record the times of their kernels: records then hold them for each level, beside the host's time
    #[arg(long)]
    pub(crate) device_times: bool,

    /// Run on the operating point of the board file that is best at this: fastest, efficient (most MTEPS/W), product (least energy times
    /// time). `socbfs sweep -o FILE` measures them
    #[arg(long, value_name = "GOAL", hide_possible_values = true, value_parser = by_name::<Goal>(&GOALS))]
    at: Option<Goal>,

    /// Set the clocks at which the operating point was measured, until the command ends (needs root). They are put back also after an
    /// error, Ctrl-C or SIGKILL
    #[arg(long, requires = "at")]
    set_clocks: bool,
}

fn parse_work_group(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&items| board::is_work_group(items)).ok_or_else(|| "not a multiple of 32".to_owned())
}

/// Refuses `flags` (names of arguments, `work_group` for `--work-group`) that have no effect on the command. `why` gives the reason and
/// names the command.
pub(crate) fn without_effect(matches: &ArgMatches, flags: &[&str], why: &str, cure: &str) -> Result<(), Failure> {
    let given = flags.iter().find(|&&flag| matches.value_source(flag) == Some(ValueSource::CommandLine));
    let Some(flag) = given.map(|flag| flag.replace('_', "-")) else { return Ok(()) };
    Err(Failure::new(format!("{why}: --{flag} has no effect here")).cure(cure.replace("FLAG", &flag)))
}

/// The value of `--policy`.
#[derive(Debug, Clone)]
pub(crate) enum PolicyArg {
    /// A policy given by its name and parameters.
    Named(Policy),
    /// The plans of a record in this file.
    Replay(PathBuf),
    /// A network with weights of `socbfs train` in this file.
    Network(NetworkKind, PathBuf),
}

impl FromStr for PolicyArg {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        for form in NetworkKind::ALL {
            if let Some(file) = text.strip_prefix(form.name()).and_then(|rest| rest.strip_prefix(':')).filter(|file| !file.is_empty()) {
                return Ok(Self::Network(form, file.into()));
            }
        }
        match text.strip_prefix("replay:") {
            Some(file) if !file.is_empty() => Ok(Self::Replay(file.into())),
            Some(_) => Err(PolicyError::BadParameters {
                kind: "replay",
                wanted: "a record of `socbfs bench --json`, as in replay:r.json".into(),
                given: String::new(),
            }),
            None => text.parse().map(Self::Named),
        }
    }
}

const POLICIES: Listed<PolicyArg> = Listed(
    || {
        let named = socbfs_policy::known().map(|known| {
            let parameters = if known.parameters.is_empty() { String::new() } else { format!(" [:{}]", known.parameters) };
            (known.kind, format!("{}{parameters}", known.summary))
        });
        let replay = ("replay:FILE", "root by root the plans of a record that `bench --json` wrote".to_owned());
        named.chain([replay]).collect()
    },
    PhantomData,
);

/// The profile that the user names, or the one that fits this machine. No output of the command may replace its file.
pub(crate) fn profile(name: Option<&Path>) -> Result<Profile, Failure> {
    let Some(name) = name else { return Ok(Profile::detected()?) };
    // A file of the same name as a compiled-in profile is not read.
    if name.to_str().and_then(board::shipped_text).is_none() {
        protect(name)?;
    }
    Ok(Profile::named(name)?)
}

impl PolicyArg {
    /// The policy for a comparison of several, in which a replay has no place: its plans are for the roots of its record.
    pub(crate) fn compared(&self) -> Result<Policy, Failure> {
        if let Self::Replay(file) = self {
            let message = format!("replay:{} can't be compared: a record has plans for its own roots only", file.display());
            return Err(Failure::new(message).cure("`socbfs bench --policy replay:FILE` replays it"));
        }
        Ok(self.read()?.0)
    }

    /// Reads the policy and, for a replay, its record.
    fn read(&self) -> Result<(Policy, Option<RecordedPlans>), Failure> {
        match self {
            Self::Named(policy) => Ok((policy.clone(), None)),
            Self::Replay(file) => {
                let name = file.display().to_string();
                let text = read(file, files::Kind::Stream, files::RECORD)
                    .map_err(|failure| failure.or_cure("write a record with `socbfs bench --json FILE`"))?;
                let recorded = read_plans(&text, &name)?;
                Ok((Policy::Replay(recorded.replay().clone()), Some(recorded)))
            }
            Self::Network(form, file) => {
                let name = file.display().to_string();
                let cure = "write weights with `socbfs train`, or omit the file to use the built-in weights for the CPU";
                let text = read(file, files::Kind::Regular, files::CONFIGURATION).map_err(|failure| failure.or_cure(cure))?;
                let network = Mlp::parse(&text).and_then(|network| Mlp::of(*form, &network.weights()));
                let network = network.map_err(|error| Failure::because(&name, &error).cure(cure))?;
                Ok((Policy::Mlp(network.from_origin(&name)), None))
            }
        }
    }
}

/// Parses the name that a record has for a value. `names` are the allowed ones, each with its help.
pub(crate) fn by_name<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    names: &[(&'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names.iter().map(|&(name, help)| PossibleValue::new(name).help(help)))
        .try_map(|name| T::deserialize(IntoDeserializer::<serde::de::value::Error>::into_deserializer(name)))
}

const GOALS: [(&str, &str); 3] = [("fastest", ""), ("efficient", ""), ("product", "")];

const ORDERS: [(&str, &str); 4] = [
    ("auto", "Chosen by the properties of the graph"),
    ("original", "As given: nothing to map back"),
    ("degree", "By descending degree, vertices without edges dropped"),
    ("bfs", "Breadth-first: neighbours near each other, the same vertices dropped"),
];

/// Flags of every command that builds the searchable structure.
#[derive(Debug, Args)]
#[command(next_help_heading = "Graph")]
pub(crate) struct LayoutArgs {
    /// Keep arcs as they are instead of making every edge undirected
    #[arg(long)]
    pub(crate) directed: bool,

    /// Order of the vertices inside the searched structure
    #[arg(long, default_value = "auto", value_parser = by_name::<Order>(&ORDERS))]
    pub(crate) order: Order,

    /// Search vertices with a single edge like any other. Without it, an undirected graph in another order than its own is searched
    /// without them, and they get their parents after the search
    #[arg(long)]
    pub(crate) keep_leaves: bool,
}

/// Arguments of commands that search several graphs.
#[derive(Debug, Args)]
pub(crate) struct GraphsArgs {
    /// Files or generators
    #[arg(value_name = "GRAPH", required = true)]
    graphs: Vec<PathBuf>,

    /// Format of the files, if their names and contents do not determine it
    #[arg(long, value_name = "FORMAT", value_parser = READ, help_heading = "Graph")]
    format: Option<Format>,

    #[command(flatten)]
    pub(crate) layout: LayoutArgs,

    #[command(flatten)]
    pub(crate) search: SearchArgs,
}

impl GraphsArgs {
    /// The graphs, in the order in which they are named.
    /// All are parsed before the first is read, so that no output can replace one that is read later.
    pub(crate) fn sources(&self) -> Result<Vec<Source>, Failure> {
        self.graphs.iter().map(|path| Source::parse(path, self.format)).collect()
    }
}

impl LayoutArgs {
    /// How to build the layout.
    pub(crate) fn options(&self) -> BuildOptions {
        BuildOptions { directed: self.directed, order: self.order, keep_leaves: self.keep_leaves, ..BuildOptions::default() }
    }
}

/// Replaces a setting by the value of its flag, or of its environment variable.
fn give<T>(setting: &mut Setting<T>, value: Option<T>, id: &str, matches: &ArgMatches) {
    if let Some(value) = value {
        let environment = matches.value_source(id) == Some(ValueSource::EnvVariable);
        *setting = Setting { value, origin: if environment { Origin::Environment } else { Origin::Flag } };
    }
}

impl HostArgs {
    /// Resolves these settings; the others keep their defaults. `matches` as for [`SearchArgs::resolve`].
    pub(crate) fn resolve(&self, matches: &ArgMatches) -> Result<Runtime, Failure> {
        let mut runtime = Runtime::new(profile(self.board.as_deref())?);
        self.give(&mut runtime, matches);
        runtime.check_threads()?;
        Ok(runtime)
    }

    fn give(&self, runtime: &mut Runtime, matches: &ArgMatches) {
        give(&mut runtime.threads, self.threads, "threads", matches);
        give(&mut runtime.cpus, self.cpus.clone(), "cpus", matches);
        give(&mut runtime.simd, self.simd.map(Some), "simd", matches);
    }
}

impl SearchArgs {
    /// Resolves the settings; `matches` are those of the subcommand, and distinguish a flag from an environment variable.
    pub(crate) fn resolve(&self, matches: &ArgMatches) -> Result<Runtime, Failure> {
        if let Some(CalibrationChoice::File(file)) = &self.calibration {
            protect(file)?;
        }
        self.resolve_for_calibration(matches)
    }

    /// As [`SearchArgs::resolve`], for a command that may write the calibration that it is given.
    pub(crate) fn resolve_for_calibration(&self, matches: &ArgMatches) -> Result<Runtime, Failure> {
        self.resolve_with(profile(self.host.board.as_deref())?, matches)
    }

    /// As [`SearchArgs::resolve`], on this board instead of that of `--board`.
    pub(crate) fn resolve_on(&self, board: &Path, matches: &ArgMatches) -> Result<Runtime, Failure> {
        self.resolve_with(profile(Some(board))?, matches)
    }

    fn resolve_with(&self, profile: Profile, matches: &ArgMatches) -> Result<Runtime, Failure> {
        if self.device == Some(DeviceChoice::Cpu) && matches.value_source("device") == Some(ValueSource::CommandLine) {
            let of_devices = ["memory_way", "work_group", "parts", "device_times"];
            without_effect(matches, &of_devices, "--device cpu searches without a device", "omit --FLAG, or give --device auto")?;
        }
        let (policy, recorded) = self.policy.as_ref().map(PolicyArg::read).transpose()?.unzip();
        // `batch` is set by the arguments of searches over ranks (`ClusterArgs`).
        let mut runtime = Runtime { recorded: recorded.flatten(), device_times: self.device_times, ..Runtime::new(profile) };
        self.host.give(&mut runtime, matches);
        give(&mut runtime.policy, policy, "policy", matches);
        give(&mut runtime.device, self.device.clone(), "device", matches);
        give(&mut runtime.memory_way, self.memory_way.map(Some), "memory_way", matches);
        give(&mut runtime.work_group, self.work_group.map(Some), "work_group", matches);
        give(&mut runtime.parts, self.parts.map(usize::from), "parts", matches);
        give(&mut runtime.calibration, self.calibration.clone(), "calibration", matches);
        give(&mut runtime.objective, self.objective, "objective", matches);
        if let Some(goal) = self.at {
            let point = runtime.run_at(goal)?;
            if self.set_clocks {
                // Commands that look for sensors below another root find the clocks there too.
                let root = matches.try_get_one::<Root>("sysfs_root").ok().flatten();
                clocks::set(root.map_or(Path::new("/"), |root| root), &point)?;
            } else if !point.clocks_khz.is_empty() {
                let clocks: Vec<String> = point.clocks_khz.iter().map(|(name, khz)| format!("{name} at {} MHz", khz / 1000)).collect();
                log::warn!("the operating point was measured with {}; clocks are not set (--set-clocks sets them)", clocks.join(", "));
            }
        }
        runtime.check_threads()?;
        Ok(runtime)
    }
}

/// Flags of searches over ranks.
#[cfg(feature = "mpi")]
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster (with mpirun)")]
pub(crate) struct ClusterArgs {
    /// What ranks send each other after a level: found (which vertices were found, to all), or pairs (each neighbour with its parent, to
    /// its owner; top-down only: the plain scheme, for comparison)
    #[arg(long, default_value = "found", hide_possible_values = true, value_parser = by_name::<Exchange>(&[("found", ""), ("pairs", "")]))]
    pub(crate) exchange: Exchange,

    /// Vertices of the frontier that a thread processes at a time: as many as fit a cache or a local memory [default: cpu.batch of the
    /// board file, else 4096]
    #[arg(long, value_name = "N", value_parser = parse_batch)]
    pub(crate) batch: Option<usize>,

    /// Process batches in the order in which they arrive, unsorted
    #[arg(long)]
    pub(crate) unsorted: bool,

    /// Only rank 0 has the file GRAPH: it reads it and sends every rank a part
    #[arg(long)]
    pub(crate) from_rank_0: bool,
}

#[cfg(feature = "mpi")]
impl ClusterArgs {
    /// Refuses flags that have no effect without mpirun. `--from-rank-0` is allowed: the only process reads the file anyway.
    pub(crate) fn none_is_given(matches: &ArgMatches) -> Result<(), Failure> {
        let cure = "start it with mpirun -n 2 or more, or omit --FLAG";
        without_effect(matches, &["exchange", "batch", "unsorted"], "this program was started alone, and not as one of several ranks", cure)
    }
}

#[cfg(feature = "mpi")]
fn parse_batch(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(batch @ 1..=board::MOST_BATCH) => Ok(batch),
        _ => Err(format!("a number from 1 to {} is needed", board::MOST_BATCH)),
    }
}
