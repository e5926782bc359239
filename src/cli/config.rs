//! The settings of a search, each resolved once: flag > environment variable > board profile > calibration > built-in default.

use std::{
    ffi::OsStr,
    fmt, fs,
    path::{Path, PathBuf},
    str::FromStr,
};

use clap::{
    Arg, ArgMatches, Args, Command, ValueEnum,
    builder::{PossibleValue, TypedValueParser},
    parser::ValueSource,
};

use super::{calibration::CalibrationChoice, error::Failure, profile::Profile};
use crate::{
    bench::RecordedPlans,
    board::{CpuList, MOST_THREADS},
    engine::Simd,
    graph::{BuildOptions, Order, Vertex},
    memory::Way,
    opencl::DeviceChoice,
    policy::{KNOWN, Mlp, Objective, Policy, PolicyError, mlp::Form},
    search::SearchOptions,
};

/// Flags of every command that searches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub(super) struct SearchArgs {
    /// Threads [default: one for every CPU the process may run on]
    #[arg(long, value_name = "N", env = "SOCBFS_THREADS", hide_env_values = true)]
    threads: Option<usize>,

    /// Run on these CPUs only and bind the threads to them, one each in turn: 0-3,6
    #[arg(long, value_name = "LIST", env = "SOCBFS_CPUS", hide_env_values = true)]
    cpus: Option<CpuList>,

    /// Who decides direction and device of each level; parameters stand behind a colon, as in alpha-beta:15,18 [default: auto]
    #[arg(long, value_name = "POLICY", env = "SOCBFS_POLICY", hide_env_values = true, value_parser = PolicyParser)]
    policy: Option<PolicyArg>,

    /// Vector instructions: scalar, neon, avx2, avx512 [default: the best this CPU has]
    #[arg(long, value_name = "KIND", env = "SOCBFS_SIMD", hide_env_values = true)]
    simd: Option<Simd>,

    /// OpenCL device: auto (a GPU, if there is one and the policy can use it), cpu (none), gpu, a name or a part of a device's or
    /// platform's (of several the largest; NAME#2: the second in the list of `socbfs devices`), or two such with a comma between
    /// [default: auto]
    #[arg(long, value_name = "DEVICE", env = "SOCBFS_DEVICE", hide_env_values = true)]
    device: Option<DeviceChoice>,

    /// How memory is shared with the device: alloc-host-ptr, use-host-ptr, svm-coarse, svm-fine, copy [default: the fastest measured]
    #[arg(long, value_name = "WAY", env = "SOCBFS_MEMORY_WAY", hide_env_values = true)]
    memory_way: Option<Way>,

    /// Items in a work-group of the device: 1, or a multiple of 32 [default: 1 where the device is a CPU, else 256]
    #[arg(long, value_name = "N", env = "SOCBFS_WORK_GROUP", hide_env_values = true)]
    work_group: Option<usize>,

    /// Buffers over which the device's copy of the neighbours is spread, at least [default: as few as it takes]
    #[arg(long, value_name = "N", env = "SOCBFS_PARTS", hide_env_values = true, value_parser = clap::value_parser!(u8).range(1..=16))]
    parts: Option<u8>,

    /// Calibration that `socbfs calibrate` wrote: a file, auto (the one of this machine and these settings, if there is one), off
    /// [default: auto]
    #[arg(long, value_name = "FILE|off", env = "SOCBFS_CALIBRATION", hide_env_values = true)]
    calibration: Option<CalibrationChoice>,

    /// What the cost model minimises: time, energy, edp (energy times delay); all but time need the power of each strategy, from a
    /// calibration or a board profile [default: time]
    #[arg(long, value_name = "OBJECTIVE", env = "SOCBFS_OBJECTIVE", hide_env_values = true)]
    objective: Option<Objective>,

    /// Board profile with defaults for this machine: a name of `socbfs board list`, or a TOML file [default: the one detected]
    #[arg(long, value_name = "NAME|FILE", env = "SOCBFS_BOARD", hide_env_values = true)]
    board: Option<PathBuf>,
}

/// A policy as a flag.
#[derive(Debug, Clone)]
pub(super) enum PolicyArg {
    /// One that has a name.
    Named(Policy),
    /// The plans of a record.
    Replay(PathBuf),
    /// A network with weights of `socbfs train`.
    Network(Form, PathBuf),
}

impl FromStr for PolicyArg {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        for form in Form::ALL {
            if let Some(file) = text.strip_prefix(form.name()).and_then(|rest| rest.strip_prefix(':')).filter(|file| !file.is_empty()) {
                return Ok(Self::Network(form, file.into()));
            }
        }
        match text.strip_prefix("replay:") {
            Some(file) if !file.is_empty() => Ok(Self::Replay(file.into())),
            Some(_) => Err(PolicyError::BadParameters {
                kind: "replay",
                wanted: "a record of `socbfs bench --json`, as in replay:r.json",
                given: String::new(),
            }),
            None => text.parse().map(Self::Named),
        }
    }
}

/// Reads a policy, and lists those that there are in `--help` and to shell completions.
#[derive(Debug, Clone, Copy)]
struct PolicyParser;

impl TypedValueParser for PolicyParser {
    type Value = PolicyArg;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<PolicyArg, clap::Error> {
        <PolicyArg as FromStr>::from_str.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let named = KNOWN.iter().map(|known| {
            let parameters = if known.parameters.is_empty() { String::new() } else { format!(" [:{}]", known.parameters) };
            PossibleValue::new(known.kind).help(format!("{}{parameters}", known.summary))
        });
        let replay = PossibleValue::new("replay:FILE").help("root by root the plans of a record that `bench --json` wrote");
        Some(Box::new(named.chain([replay])))
    }
}

impl PolicyArg {
    /// The policy; of a replay with its record.
    fn read(&self) -> Result<(Policy, Option<RecordedPlans>), Failure> {
        match self {
            Self::Named(policy) => Ok((policy.clone(), None)),
            Self::Replay(file) => {
                let name = file.display().to_string();
                let text = fs::read_to_string(file).map_err(|error| {
                    Failure::because(&format!("can't read {name}"), &error).cure("write a record with `socbfs bench --json FILE`")
                })?;
                let recorded = RecordedPlans::parse(&text, &name)?;
                Ok((Policy::Replay(recorded.replay().clone()), Some(recorded)))
            }
            Self::Network(form, file) => {
                let name = file.display().to_string();
                let cure = "write weights with `socbfs train`, or leave the file away: there are weights for the CPU of ours";
                let text = fs::read_to_string(file).map_err(|error| Failure::because(&format!("can't read {name}"), &error).cure(cure))?;
                let network = Mlp::parse(&text).and_then(|network| Mlp::of(*form, &network.weights()));
                let network = network.map_err(|error| Failure::because(&name, &error).cure(cure))?;
                Ok((Policy::Mlp(network.from_origin(&name)), None))
            }
        }
    }
}

/// Flags of every command that builds the searchable structure.
#[derive(Debug, Args)]
#[command(next_help_heading = "Graph")]
pub(super) struct LayoutArgs {
    /// Keep arcs as they are instead of making every edge undirected
    #[arg(long)]
    pub(super) directed: bool,

    /// Order of the vertices inside the searched structure
    #[arg(long, value_enum, default_value_t = OrderArg::Auto)]
    order: OrderArg,
}

/// [`Order`] as a flag.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrderArg {
    /// Chosen by what the graph is
    Auto,
    /// As given: nothing to map back
    Original,
    /// By descending degree, vertices without edges dropped
    Degree,
}

impl LayoutArgs {
    /// The order asked for.
    pub(super) fn order(&self) -> Order {
        match self.order {
            OrderArg::Auto => Order::Auto,
            OrderArg::Original => Order::Original,
            OrderArg::Degree => Order::Degree,
        }
    }

    /// How to build the layout.
    pub(super) fn options(&self) -> BuildOptions {
        BuildOptions { directed: self.directed, order: self.order() }
    }
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Flag,
    Environment,
    /// A profile that was asked for.
    Board,
    /// The profile that fits this machine.
    Detected,
    /// A calibration.
    Calibration,
    BuiltIn,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::Board => "board file",
            Self::Detected => "detected board",
            Self::Calibration => "calibration",
            Self::BuiltIn => "built-in",
        })
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting<T> {
    pub(super) value: T,
    pub(super) origin: Origin,
}

/// The settings of a search.
#[derive(Debug, Clone)]
pub(super) struct SearchConfig {
    /// The board profile.
    pub(super) profile: Profile,
    /// Threads (0: one for every CPU the process may run on).
    pub(super) threads: Setting<usize>,
    /// CPUs to bind to (empty: not bound).
    pub(super) cpus: Setting<CpuList>,
    /// Policy.
    pub(super) policy: Setting<Policy>,
    /// Of a replay: the record.
    pub(super) recorded: Option<RecordedPlans>,
    /// Vector instructions (`None`: the best this CPU has).
    pub(super) simd: Setting<Option<Simd>>,
    /// OpenCL devices.
    pub(super) device: Setting<DeviceChoice>,
    /// How memory is shared with them (`None`: measured).
    pub(super) memory_way: Setting<Option<Way>>,
    /// Items in a work-group (`None`: by the kind of device).
    pub(super) work_group: Setting<Option<usize>>,
    /// Buffers for the neighbours, at least (0: as few as it takes).
    pub(super) parts: Setting<usize>,
    /// Which calibration to take.
    pub(super) calibration: Setting<CalibrationChoice>,
    /// What the cost model minimises.
    pub(super) objective: Setting<Objective>,
}

impl SearchArgs {
    /// Resolves the settings; `matches` are those of the subcommand and tell a flag from an environment variable.
    pub(super) fn resolve(&self, matches: &ArgMatches) -> Result<SearchConfig, Failure> {
        self.resolve_on(self.board.as_deref(), matches)
    }

    /// As [`SearchArgs::resolve`], on this board instead of that of `--board`.
    pub(super) fn resolve_on(&self, board: Option<&Path>, matches: &ArgMatches) -> Result<SearchConfig, Failure> {
        let profile = board.map_or_else(Profile::detected, Profile::named)?;
        let (policy, recorded) = self.policy.as_ref().map(PolicyArg::read).transpose()?.unzip();
        let config = self.merge(profile, policy, |id| match matches.value_source(id) {
            Some(ValueSource::EnvVariable) => Origin::Environment,
            _ => Origin::Flag,
        });
        let config = SearchConfig { recorded: recorded.flatten(), ..config };
        if config.threads.value > MOST_THREADS {
            return Err(Failure::new(format!("{} threads are more than the {MOST_THREADS} that make sense", config.threads.value))
                .cure("leave --threads away: every CPU then gets one"));
        }
        Ok(config)
    }

    fn merge(&self, profile: Profile, policy: Option<Policy>, origin: impl Fn(&str) -> Origin) -> SearchConfig {
        fn pick<T: Default>(given: Option<T>, origin: Origin, board: Option<T>, board_origin: Origin) -> Setting<T> {
            match (given, board) {
                (Some(value), _) => Setting { value, origin },
                (None, Some(value)) => Setting { value, origin: board_origin },
                (None, None) => Setting { value: T::default(), origin: Origin::BuiltIn },
            }
        }
        let board = &profile.board;
        let cpus = pick(self.cpus.clone(), origin("cpus"), board.cpu.cpus.clone(), profile.origin);
        let mut threads = pick(self.threads, origin("threads"), board.cpu.threads, profile.origin);
        // One thread for each CPU named, unless a number was asked for.
        if threads.value == 0 && !cpus.value.numbers().is_empty() {
            threads = Setting { value: cpus.value.numbers().len(), origin: cpus.origin };
        }
        let policy = pick(policy, origin("policy"), board.policy.clone(), profile.origin);
        let simd = pick(self.simd.map(Some), origin("simd"), None, profile.origin);
        let device = pick(self.device.clone(), origin("device"), None, profile.origin);
        let memory_way = pick(self.memory_way.map(Some), origin("memory_way"), None, profile.origin);
        let work_group = pick(self.work_group.map(Some), origin("work_group"), None, profile.origin);
        let parts = pick(self.parts.map(usize::from), origin("parts"), None, profile.origin);
        let calibration = pick(self.calibration.clone(), origin("calibration"), None, profile.origin);
        let objective = pick(self.objective, origin("objective"), None, profile.origin);
        SearchConfig { profile, threads, cpus, policy, recorded: None, simd, device, memory_way, work_group, parts, calibration, objective }
    }
}

impl SearchConfig {
    /// The options of the search.
    pub(super) fn options(&self) -> SearchOptions {
        SearchOptions {
            policy: self.policy.value.clone(),
            threads: self.threads.value,
            cpus: self.cpus.value.numbers().to_vec(),
            simd: self.simd.value,
            ..SearchOptions::default()
        }
    }

    /// The policy as on the command line.
    pub(super) fn policy_text(&self) -> String {
        self.recorded.as_ref().map_or_else(|| self.policy.value.to_string(), |recorded| format!("replay:{}", recorded.name()))
    }

    /// Whether the record that is replayed, if one is, knows searches from these roots.
    pub(super) fn check_roots(&self, roots: &[Vertex]) -> Result<(), Failure> {
        let Some(recorded) = &self.recorded else { return Ok(()) };
        Ok(roots.iter().try_for_each(|&root| recorded.check_root(root))?)
    }

    /// Sets the process up: bound to the CPUs asked for, with as many threads for building and validating as for searching.
    pub(super) fn apply(&self) -> Result<(), Failure> {
        log::info!("board = {:?} ({})", self.profile.name(), self.profile.reason);
        self.check_calibration()?;
        bind(self.cpus.value.numbers())?;
        for (name, origin, value) in [
            ("threads", self.threads.origin, self.threads.value.to_string()),
            ("cpus", self.cpus.origin, self.cpus.value.to_string()),
            ("policy", self.policy.origin, self.policy_text()),
        ]
        .into_iter()
        .chain(self.device_settings(None))
        {
            log::info!("{name} = {value:?} ({origin})");
        }
        threads(self.threads.value)
    }
}

/// Starts the pool on which files are read, graphs built and trees validated (0: one thread for every usable CPU).
pub(super) fn threads(count: usize) -> Result<(), Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(count)
        .build_global()
        .map_err(|error| Failure::because(&format!("can't start {count} threads"), &error).cure("ask for fewer with --threads"))
}

/// Restricts the process, and every thread it starts, to `cpus` (none: no restriction).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind(cpus: &[usize]) -> Result<(), Failure> {
    use nix::{
        sched::{CpuSet, sched_setaffinity},
        unistd::Pid,
    };
    if cpus.is_empty() {
        return Ok(());
    }
    let refuse = |error: nix::Error| {
        Failure::because(&format!("can't run on CPUs {}", list(cpus)), &error)
            .cure("`cat /sys/devices/system/cpu/online` shows the CPUs there are; a container may allow fewer")
    };
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).map_err(refuse)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(refuse)?;
    // The system silently leaves out CPUs that are not there.
    let allowed = nix::sched::sched_getaffinity(Pid::from_raw(0)).map_err(refuse)?;
    match cpus.iter().find(|&&cpu| !allowed.is_set(cpu).unwrap_or(false)) {
        Some(cpu) => Err(Failure::new(format!("CPU {cpu} is not online, or this process may not run on it"))
            .cure("`cat /sys/devices/system/cpu/online` shows the CPUs there are; a container may allow fewer")),
        None => Ok(()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind(cpus: &[usize]) -> Result<(), Failure> {
    if cpus.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!("can't bind threads to CPUs {} on this system", list(cpus))).cure("leave --cpus away"))
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Board;

    fn arguments(threads: Option<usize>, cpus: Option<&str>) -> SearchArgs {
        SearchArgs {
            threads,
            cpus: cpus.map(|c| c.parse().unwrap()),
            policy: None,
            simd: None,
            device: None,
            memory_way: None,
            work_group: None,
            parts: None,
            calibration: None,
            objective: None,
            board: None,
        }
    }

    fn profile(text: &'static str) -> Profile {
        let board = Board::parse(text, "b.toml").unwrap();
        Profile { board, text: text.into(), place: "b.toml".into(), origin: Origin::Board, reason: "asked for".into() }
    }

    const SETS_ALL: &str = "schema = 1\n[board]\nname = 'b'\n[cpu]\nthreads = 3\ncpus = '1-3'\n[policy]\nkind = 'bc'";
    const SETS_NONE: &str = "schema = 1\n[board]\nname = 'n'";

    #[test]
    fn a_flag_wins_over_the_environment_over_the_board_over_the_default() {
        let origin = |id: &str| if id == "policy" { Origin::Environment } else { Origin::Flag };
        let all = arguments(Some(7), Some("0")).merge(profile(SETS_ALL), Some(Policy::Tc), origin);
        assert_eq!(all.threads, Setting { value: 7, origin: Origin::Flag });
        assert_eq!(all.policy, Setting { value: Policy::Tc, origin: Origin::Environment });
        let none = arguments(None, None).merge(profile(SETS_ALL), None, origin);
        assert_eq!(none.threads, Setting { value: 3, origin: Origin::Board });
        assert_eq!(none.cpus.value.numbers(), [1, 2, 3]);
        assert_eq!(none.policy, Setting { value: Policy::Bc, origin: Origin::Board });
        let detected = Profile { origin: Origin::Detected, ..profile(SETS_ALL) };
        let detected = arguments(None, None).merge(detected, None, origin);
        assert_eq!(detected.policy, Setting { value: Policy::Bc, origin: Origin::Detected });
        let bare = arguments(None, None).merge(profile(SETS_NONE), None, origin);
        assert_eq!(bare.threads, Setting { value: 0, origin: Origin::BuiltIn });
        assert_eq!(bare.policy, Setting { value: Policy::Auto, origin: Origin::BuiltIn });
        assert_eq!(bare.profile.name(), "n");
    }

    #[test]
    fn cpus_say_how_many_threads() {
        let config = arguments(None, Some("4-6")).merge(profile(SETS_NONE), None, |_| Origin::Flag);
        assert_eq!(config.threads, Setting { value: 3, origin: Origin::Flag });
        assert_eq!(config.options().cpus, [4, 5, 6]);
    }
}
