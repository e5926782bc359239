//! The environment of a run: everything that determines whether two figures may be compared. A value that can't be read is absent, never
//! made up.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use socbfs_machine::Cache;

/// Machine, system, build, command and time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Time of the start, RFC 3339 in UTC.
    pub time: String,
    /// The command line.
    pub command: Vec<String>,
    /// How the program was built.
    pub build: Build,
    /// The processor.
    pub cpu: Cpu,
    /// Physical memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The operating system.
    pub system: System,
    /// Load of the machine before the run, one-minute average.
    pub load: Option<f64>,
    /// Temperatures before the run.
    pub temperatures: Vec<Temperature>,
    /// Temperatures after the run (filled in by the caller).
    pub temperatures_after: Vec<Temperature>,
}

/// How the program was built.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Build {
    /// Version of socbfs.
    pub version: Cow<'static, str>,
    /// Commit, with "+" where the source differs from the commit; "unknown" outside a checkout.
    pub commit: Cow<'static, str>,
    /// Compiler and its version.
    pub compiler: Cow<'static, str>,
    /// Target triple.
    pub target: Cow<'static, str>,
    /// Optimisation level.
    pub opt_level: Cow<'static, str>,
    /// Instruction sets that the compiler may use everywhere.
    pub target_features: Cow<'static, str>,
}

/// The processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cpu {
    /// Model, as the system names it.
    pub model: Option<String>,
    /// CPUs that are online, as a list: "0-7".
    pub online: Option<String>,
    /// Number of CPUs that the process may use.
    pub usable: usize,
    /// Caches of the first CPU.
    pub caches: Vec<Cache>,
    /// Highest frequency of each CPU in kHz, in order of CPU number (big.LITTLE systems have several).
    pub max_khz: Vec<u64>,
    /// Frequency governors in use, without repeats.
    pub governors: Vec<String>,
    /// Instruction sets found at run time that a kernel may choose.
    pub simd: Vec<Cow<'static, str>>,
}

/// The operating system.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct System {
    /// Name and version of the distribution.
    pub name: Option<String>,
    /// Version of the kernel.
    pub kernel: Option<String>,
    /// Setting of transparent huge pages: "always", "madvise" or "never".
    pub huge_pages: Option<String>,
}

/// One temperature sensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Temperature {
    /// Name of the zone.
    pub zone: String,
    /// Temperature in degrees Celsius.
    pub celsius: f64,
}
