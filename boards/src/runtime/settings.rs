//! The settings of a search, each resolved once (docs/settings.md has their order).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{
    CalibrationChoice, Profile, RecordedPlans, RuntimeError,
    prepare::{MEMORY_WAY, WORK_GROUP},
};
use crate::board::{CpuList, Goal, OperatingPoint};
use socbfs::threads::MOST_THREADS;
use socbfs::{
    Simd,
    graph::{Stopper, Vertex},
    memory::SharingMode,
    opencl::DeviceChoice,
    search::{SearchError, SearchOptions},
};
use socbfs_policy::{Objective, Policy};

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A flag, or a call of a program that uses the library.
    Flag,
    /// An environment variable.
    Environment,
    /// A profile that was named.
    #[serde(rename = "board file")]
    Board,
    /// The profile that fits this machine.
    #[serde(rename = "detected board")]
    Detected,
    /// A calibration.
    Calibration,
    /// A value that the profile lists as an estimate.
    #[serde(rename = "board's estimate")]
    Estimate,
    /// A measurement at the start of this search.
    Measured,
    /// The built-in default.
    BuiltIn,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T: Default> Default for Setting<T> {
    fn default() -> Self {
        Self { value: T::default(), origin: Origin::BuiltIn }
    }
}

impl<T> Setting<T> {
    /// A value that comes from a flag or a program.
    pub fn flag(value: T) -> Self {
        Self { value, origin: Origin::Flag }
    }

    /// The first of these values that is given.
    pub(super) fn first<const N: usize>(of: [(Option<T>, Origin); N]) -> Option<Self> {
        of.into_iter().find_map(|(value, origin)| Some(Self { value: value?, origin }))
    }
}

/// The settings of a search on this machine: at first those of the board's profile, and defaults. A flag or a program replaces fields.
#[derive(Debug, Clone)]
pub struct Runtime {
    /// The board profile.
    pub profile: Profile,
    /// Threads (0: one for each of `cpus`, or for every CPU the process may run on). [`team`](Self::team) says how many search.
    pub threads: Setting<usize>,
    /// CPUs to bind to (empty: not bound).
    pub cpus: Setting<CpuList>,
    /// Vertices of a batch, for searches over several processes (`None`: the default).
    pub batch: Setting<Option<usize>>,
    /// Policy.
    pub policy: Setting<Policy>,
    /// The record to replay.
    pub recorded: Option<RecordedPlans>,
    /// Vector instructions (`None`: the best this CPU has).
    pub simd: Setting<Option<Simd>>,
    /// OpenCL devices.
    pub device: Setting<DeviceChoice>,
    /// How memory is shared with them (`None`: measured).
    pub memory_way: Setting<Option<SharingMode>>,
    /// Work-items in a work-group (`None`: by the kind of device).
    pub work_group: Setting<Option<usize>>,
    /// Least number of buffers for the neighbours (0: as few as possible).
    pub parts: Setting<usize>,
    /// Which calibration to take.
    pub calibration: Setting<CalibrationChoice>,
    /// What the cost model minimises.
    pub objective: Setting<Objective>,
    /// Whether devices measure the times of their kernels, which records then contain
    /// ([`LevelRecord::device_ns`](socbfs::bfs::LevelRecord::device_ns)).
    pub device_times: bool,
    /// Whether a search on the CPU alone is prepared by a trial of the costs of bottom-up levels, which takes as long as 12 to 48 searches
    /// (if no calibration and no policy gives costs, and directions matter).
    pub tries_costs: bool,
    /// Stops the measurements with which searches are prepared. The searches keep it
    /// ([`Search::stopper`](socbfs::search::Search::stopper)).
    pub stopper: Stopper,
}

impl Runtime {
    /// Settings with the profile that fits this machine, and defaults otherwise.
    ///
    /// # Errors
    /// [`RuntimeError::Profile`] if a compiled-in profile can't be read, which a test rules out.
    pub fn detect() -> Result<Self, RuntimeError> {
        Ok(Self::new(Profile::detected()?))
    }

    /// The settings of `profile`, and defaults otherwise.
    pub fn new(profile: Profile) -> Self {
        fn of<T: Default>(board: Option<T>, origin: Origin) -> Setting<T> {
            board.map_or_else(Setting::default, |value| Setting { value, origin })
        }
        let (board, origin) = (&profile.board, profile.origin);
        Self {
            threads: of(board.cpu.threads, origin),
            cpus: of(board.cpu.cpus.clone(), origin),
            batch: of(board.cpu.batch.map(Some), origin),
            policy: of(board.policy.clone(), origin),
            recorded: None,
            simd: Setting::default(),
            device: Setting::default(),
            memory_way: Setting::default(),
            work_group: Setting::default(),
            parts: Setting::default(),
            calibration: Setting::default(),
            objective: Setting::default(),
            device_times: false,
            tries_costs: true,
            stopper: Stopper::default(),
            profile,
        }
    }

    /// The number of threads that search (0: one for every CPU the process may run on). CPUs that were given count more than a number of
    /// threads that was not.
    pub fn team(&self) -> Setting<usize> {
        let is_given = |origin: Origin| matches!(origin, Origin::Flag | Origin::Environment);
        let is_implied = self.threads.value == 0 || (is_given(self.cpus.origin) && !is_given(self.threads.origin));
        match self.cpus.value.numbers().len() {
            cpus if cpus > 0 && is_implied => Setting { value: cpus, origin: self.cpus.origin },
            _ => self.threads.clone(),
        }
    }

    /// Checks, before a graph is read or generated, that not more threads are to search than may.
    ///
    /// # Errors
    /// [`RuntimeError::TooManyThreads`].
    pub fn check_threads(&self) -> Result<(), RuntimeError> {
        let threads = self.team().value;
        if threads > MOST_THREADS { Err(RuntimeError::TooManyThreads(threads)) } else { Ok(()) }
    }

    /// Runs on the operating point of the profile that is best at `goal`: its CPUs, one thread for each, and its device. Settings of a flag
    /// or the environment stay. Clocks are not set; the point is returned with those at which it was measured.
    ///
    /// # Errors
    /// [`RuntimeError::NoOperatingPoint`].
    pub fn run_at(&mut self, goal: Goal) -> Result<OperatingPoint, RuntimeError> {
        fn give<T>(setting: &mut Setting<T>, value: T, origin: Origin) {
            if !matches!(setting.origin, Origin::Flag | Origin::Environment) {
                *setting = Setting { value, origin };
            }
        }
        let (points, origin) = (&self.profile.board.operating_points, self.profile.origin);
        let Some(point) = points.iter().find(|point| point.goal == goal).cloned() else {
            return Err(RuntimeError::NoOperatingPoint { profile: self.profile.name().to_owned(), goal: goal.name() });
        };
        give(&mut self.threads, point.cpus.numbers().len(), origin);
        give(&mut self.cpus, point.cpus.clone(), origin);
        if let Some(device) = &point.device {
            let Ok(device) = device.parse();
            give(&mut self.device, device, origin);
        }
        Ok(point)
    }

    /// Replaces the policy. A record to replay belongs to the policy before, and goes with it.
    pub fn set_policy(&mut self, policy: Setting<Policy>) {
        self.policy = policy;
        self.recorded = None;
    }

    /// The options of the search.
    pub fn options(&self) -> SearchOptions {
        SearchOptions {
            planner: self.policy.value.clone().into(),
            threads: self.team().value,
            cpus: self.cpus.value.numbers().to_vec(),
            simd: self.simd.value,
            stopper: self.stopper.clone(),
            ..SearchOptions::default()
        }
    }

    /// The policy as on the command line.
    pub fn policy_text(&self) -> String {
        self.recorded.as_ref().map_or_else(|| self.policy.value.to_string(), |recorded| format!("replay:{}", recorded.name()))
    }

    /// Checks that the record to replay, if there is one, has searches from these roots.
    ///
    /// # Errors
    /// [`RuntimeError::Replay`] with the first root that the record does not have.
    pub fn check_roots(&self, roots: &[Vertex]) -> Result<(), RuntimeError> {
        let Some(recorded) = &self.recorded else { return Ok(()) };
        Ok(roots.iter().try_for_each(|&root| recorded.check_root(root))?)
    }

    /// Checks, before a graph is read or generated, that the device of the settings is available.
    ///
    /// # Errors
    /// [`RuntimeError::NoDevice`], [`RuntimeError::Device`], [`SearchError::NoDevice`].
    pub fn check_device(&self) -> Result<(), RuntimeError> {
        let policy = &self.policy.value;
        let named = matches!(self.device.value, DeviceChoice::Gpu | DeviceChoice::Named(_));
        if (policy.needs_device() || named) && self.chosen()?.is_empty() && policy.needs_device() {
            return Err(SearchError::NoDevice { policy: policy.to_string() }.into());
        }
        Ok(())
    }

    /// Binds the process to the CPUs of the settings, and starts as many threads for building and validating as for searching. A command
    /// calls it once. A program that has threads of its own does not need it to search.
    ///
    /// # Errors
    /// [`RuntimeError`] if threads can't be bound or started, or the calibration can't be used.
    pub fn apply(&self) -> Result<(), RuntimeError> {
        log::info!("board = {:?} ({})", self.profile.name(), self.profile.reason);
        self.check_calibration()?;
        self.check_threads()?;
        let threads = self.team();
        bind(self.cpus.value.numbers())?;
        for (name, origin, value) in [
            ("threads", threads.origin, threads.value.to_string()),
            ("cpus", self.cpus.origin, self.cpus.value.to_string()),
            ("policy", self.policy.origin, self.policy_text()),
        ]
        .into_iter()
        // The device determines the other settings; they are written when it is opened.
        .chain(self.device_settings(None, None).into_iter().filter(|(name, ..)| ![MEMORY_WAY, WORK_GROUP].contains(name)))
        {
            log::info!("{name} = {value:?} ({origin})");
        }
        start_threads(threads.value)
    }
}

/// Starts the thread pool that reads files, builds graphs and validates trees (0: one thread for every usable CPU).
/// The system may refuse the threads, or the pool was started before.
fn start_threads(threads: usize) -> Result<(), RuntimeError> {
    // With 0, rayon would obey RAYON_NUM_THREADS.
    let usable = || std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let threads = if threads == 0 { usable() } else { threads };
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().map_err(|source| RuntimeError::Threads { threads, source })
}

/// Restricts the process, and every thread it starts, to `cpus` (none: no restriction).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind(cpus: &[usize]) -> Result<(), RuntimeError> {
    use nix::{
        sched::{CpuSet, sched_getaffinity, sched_setaffinity},
        unistd::Pid,
    };
    if cpus.is_empty() {
        return Ok(());
    }
    let refuse = |error: nix::Error| RuntimeError::Bind { cpus: list(cpus), source: error.into() };
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).map_err(refuse)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|error| match (error, cpus) {
        // None of them exists, or the process may use none of them.
        (nix::Error::EINVAL, &[first, ..]) => RuntimeError::NotOnline(first),
        _ => refuse(error),
    })?;
    // Linux ignores CPUs that do not exist.
    let allowed = sched_getaffinity(Pid::from_raw(0)).map_err(refuse)?;
    let absent = cpus.iter().find(|&&cpu| !allowed.is_set(cpu).unwrap_or(false));
    absent.map_or(Ok(()), |&cpu| Err(RuntimeError::NotOnline(cpu)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind(cpus: &[usize]) -> Result<(), RuntimeError> {
    if cpus.is_empty() { Ok(()) } else { Err(RuntimeError::NoBinding(list(cpus))) }
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::{board::Board, runtime::Step};
    use socbfs::{
        bfs::Strategy,
        graph::{BuildOptions, Layout},
    };
    use socbfs_io::Generator;

    fn profile(text: &'static str) -> Profile {
        let board = Board::parse(text, "b.toml").unwrap();
        Profile { board, text: text.into(), place: "b.toml".into(), origin: Origin::Board, reason: "asked for".into() }
    }

    const SETS_ALL: &str = "schema = 1\n[board]\nname = 'b'\n[cpu]\nthreads = 3\ncpus = '1-3'\n[policy]\nkind = 'bc'";
    const SETS_NONE: &str = "schema = 1\n[board]\nname = 'n'";

    #[test]
    fn settings_come_from_the_board_else_they_are_the_defaults() {
        let all = Runtime::new(profile(SETS_ALL));
        assert_eq!(all.team(), Setting { value: 3, origin: Origin::Board });
        assert_eq!(all.cpus.value.numbers(), [1, 2, 3]);
        assert_eq!(all.policy, Setting { value: Policy::Fixed(Strategy::Bc), origin: Origin::Board });
        let detected = Runtime::new(Profile { origin: Origin::Detected, ..profile(SETS_ALL) });
        assert_eq!(detected.policy, Setting { value: Policy::Fixed(Strategy::Bc), origin: Origin::Detected });
        let bare = Runtime::new(profile(SETS_NONE));
        assert_eq!(bare.team(), Setting { value: 0, origin: Origin::BuiltIn });
        assert_eq!(bare.policy, Setting { value: Policy::default(), origin: Origin::BuiltIn });
        assert_eq!(bare.profile.name(), "n");
    }

    #[test]
    fn the_given_cpus_set_the_number_of_threads() {
        let on = |text, cpus: &str| Runtime { cpus: Setting::flag(cpus.parse().unwrap()), ..Runtime::new(profile(text)) };
        let runtime = on(SETS_NONE, "4-6");
        assert_eq!((runtime.team(), runtime.options().cpus), (Setting { value: 3, origin: Origin::Flag }, vec![4, 5, 6]));
        // The board's number of threads is for its own CPUs.
        let runtime = on(SETS_ALL, "4,5");
        assert_eq!(runtime.team(), Setting { value: 2, origin: Origin::Flag });
        assert_eq!(Runtime { threads: Setting::flag(7), ..runtime }.team(), Setting { value: 7, origin: Origin::Flag });
    }

    #[test]
    fn too_many_threads_are_refused() {
        let many = Runtime { threads: Setting::flag(MOST_THREADS + 1), ..Runtime::new(profile(SETS_NONE)) };
        assert!(matches!(many.check_threads(), Err(RuntimeError::TooManyThreads(_))));
        assert!(matches!(many.apply(), Err(RuntimeError::TooManyThreads(_))));
    }

    /// Otherwise a first search would take as long as up to 192 of them.
    #[test]
    fn a_search_may_go_without_the_trial_of_costs() {
        let layout = Layout::build(&Generator::graph500(12).generate(&|_| ()).unwrap(), &BuildOptions::default()).unwrap();
        for tries_costs in [false, true] {
            let (device, calibration) = (Setting::flag(DeviceChoice::Cpu), Setting::flag(CalibrationChoice::Off));
            let runtime = Runtime { tries_costs, device, calibration, ..Runtime::new(profile(SETS_NONE)) };
            let steps = RefCell::new(Vec::new());
            runtime.search_telling(&layout, &|step| steps.borrow_mut().push(step)).unwrap();
            assert_eq!(steps.into_inner().contains(&Some(Step::Directions)), tries_costs);
        }
    }
}
