//! The errors of preparing a search for this machine, each with its cure.

use std::io;

use super::{Origin, ReplayError};
use crate::board::{self, DocumentError, Quirk};
use socbfs::threads::MOST_THREADS;
use socbfs::{memory::SharingMode, opencl::OpenClError, search::SearchError, words};
use socbfs_policy::{Objective, PolicyError};

/// A reason why a search can't be prepared for this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The board profile can't be used.
    #[error(transparent)]
    Profile(DocumentError),
    /// The calibration can't be used.
    #[error(transparent)]
    Calibration(DocumentError),
    /// A calibration can't be written as TOML.
    #[error("the calibration can't be written as TOML")]
    Unwritable(#[source] toml::ser::Error),
    /// There is no such profile.
    #[error("there is no board profile {0:?}, compiled in or as a file")]
    NoProfile(String),
    /// The profile has no such operating point.
    #[error("the board profile {profile} has no operating point {goal:?}")]
    NoOperatingPoint {
        /// The profile.
        profile: String,
        /// What the point would be best at.
        goal: &'static str,
    },
    /// OpenCL reports no device.
    #[error("OpenCL can't be used")]
    NoDevice(#[source] OpenClError),
    /// A device that was named does not exist, or can't be used.
    #[error("the device can't be used")]
    Device(#[source] OpenClError),
    /// Several devices are named for a search that splits no level.
    #[error("{0} devices are named, but each of several processes uses one: name one, or give each process its own")]
    SeveralDevices(usize),
    /// A device can't be opened.
    #[error("the device can't be opened")]
    Open(#[source] OpenClError),
    /// The device does not offer the given sharing mode, or a quirk of the board rules it out.
    #[error("{device} does not offer {way}{}", quirk.map_or_else(String::new, |quirk| format!(": the board has the quirk {quirk}")))]
    SharingMode {
        /// The device.
        device: String,
        /// The given sharing mode.
        way: SharingMode,
        /// The quirk of the board that rules the mode out, if one does.
        quirk: Option<Quirk>,
        /// The sharing modes that can be used.
        offered: Vec<SharingMode>,
    },
    /// Only the cost model minimises anything but time.
    #[error("--objective {objective} is for the cost model, and the policy is {policy} ({origin})")]
    Objective {
        /// The objective.
        objective: Objective,
        /// The policy.
        policy: String,
        /// What gave the policy.
        origin: Origin,
    },
    /// The power of some strategies is unknown.
    #[error("--objective {objective} needs the power of every strategy: {place} that of {strategies}")]
    NoPower {
        /// The objective.
        objective: Objective,
        /// The places that do not give it, as a clause with its verb.
        place: String,
        /// Strategies without power.
        strategies: String,
    },
    /// More threads than the limit.
    #[error("{0} threads are more than the limit of {MOST_THREADS}")]
    TooManyThreads(usize),
    /// Threads can't be started.
    #[error("can't start {}", words::threads(*.threads))]
    Threads {
        /// Number of threads (0: one for every CPU).
        threads: usize,
        /// The cause.
        #[source]
        source: rayon::ThreadPoolBuildError,
    },
    /// The process can't be bound to these CPUs.
    #[error("can't run on CPUs {cpus}")]
    Bind {
        /// The CPUs.
        cpus: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A CPU is not online, or the process may not run on it.
    #[error("CPU {0} is not online, or this process may not run on it")]
    NotOnline(usize),
    /// This system can't bind threads.
    #[error("can't bind threads to CPUs {0} on this system")]
    NoBinding(String),
    /// The record to replay does not fit.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The policy is invalid.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The search can't be set up, or failed.
    #[error(transparent)]
    Search(#[from] SearchError),
}

impl RuntimeError {
    /// What the user can do about the error, if anything.
    pub fn cure(&self) -> Option<String> {
        Some(match self {
            Self::Profile(DocumentError::Read { .. }) => "check the path, and that it is a text file".to_owned(),
            Self::Profile(DocumentError::Version { found: None, .. }) => "write `schema = 1` as its first line".to_owned(),
            Self::Profile(DocumentError::Version { .. }) => {
                "use a socbfs that reads this schema, or copy the values into a profile that `socbfs board init` writes".to_owned()
            }
            Self::Profile(_) => {
                "`socbfs board init` writes one to start from; boards/README.md in the repository describes every key".to_owned()
            }
            Self::Calibration(DocumentError::Read { .. }) => "check the path; `socbfs calibrate -o FILE` writes one".to_owned(),
            Self::Calibration(_) => "`socbfs calibrate` makes a new one; --calibration off searches without one".to_owned(),
            Self::NoOperatingPoint { .. } => "`socbfs sweep -o FILE` measures them; then give --board FILE".to_owned(),
            Self::NoProfile(_) => format!("compiled in: {}", board::shipped().collect::<Vec<_>>().join(", ")),
            Self::Device(OpenClError::NoGpu { .. }) => "--device NAME takes one of them, even if it is the CPU".to_owned(),
            Self::NoDevice(OpenClError::Driver { .. }) => "--device cpu searches without OpenCL".to_owned(),
            Self::Device(_) => "`socbfs devices` lists the devices, --device chooses one".to_owned(),
            Self::SeveralDevices(_) => "`mpirun -n 1 socbfs ... --device A : -n 1 socbfs ... --device B` gives each its own".to_owned(),
            Self::SharingMode { offered, .. } => {
                format!("it offers {}", offered.iter().map(SharingMode::to_string).collect::<Vec<_>>().join(", "))
            }
            Self::Objective { origin: Origin::Flag, .. } => "omit --policy, or give --policy cost-model".to_owned(),
            Self::Objective { .. } => "give --policy auto or --policy cost-model".to_owned(),
            Self::NoPower { .. } => {
                "`socbfs calibrate` measures it where `socbfs sensors` finds a sensor; else write [power.watts] into a board profile"
                    .to_owned()
            }
            Self::TooManyThreads(_) => "omit --threads: every CPU then gets one".to_owned(),
            Self::Threads { .. } => "ask for fewer with --threads".to_owned(),
            Self::Bind { .. } | Self::NotOnline(_) => {
                "`cat /sys/devices/system/cpu/online` shows the CPUs that --cpus can name; a container may allow fewer".to_owned()
            }
            Self::NoBinding(_) => "omit --cpus".to_owned(),
            Self::Replay(ReplayError::OtherGraph { .. }) => {
                "replay it on its own graph, or record this one with `socbfs bench GRAPH --json FILE`".to_owned()
            }
            Self::Replay(ReplayError::UnknownRoot { .. }) => {
                "search from its roots (`bench` draws the same ones from the same --roots and --seed)".to_owned()
            }
            Self::Unwritable(_) | Self::NoDevice(_) | Self::Open(_) | Self::Policy(_) | Self::Search(_) => {
                return None;
            }
        })
    }
}
