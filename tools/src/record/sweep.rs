//! Searches at many operating points of a board.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use socbfs_boards::board::{CpuList, Goal};
use socbfs_power::Watts;

use super::{EnergySummary, Environment, GraphRecord};

/// A sweep, in the form of its JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SweepRecord {
    /// [`SWEEP_SCHEMA`](crate::sweep::SWEEP_SCHEMA).
    pub schema: Cow<'static, str>,
    /// Version of this format.
    pub schema_version: u32,
    /// Machine, system, build, command and time before the first point.
    pub environment: Environment,
    /// The graph (`None`: the sweep ended before it was built).
    pub graph: Option<GraphRecord>,
    /// Number of roots of the searches.
    pub roots: usize,
    /// What the counted sensors cover together (`None`: there is no energy, for the reason in `warnings`).
    pub scope: Option<String>,
    /// The counted sensors.
    pub sensors: Vec<String>,
    /// Power of the idle machine, before the first point.
    pub idle_watts: Option<Watts>,
    /// The default: all CPUs, clocks as they were found.
    pub default: OperatingPoint,
    /// Number of points that the axes have together.
    pub grid: u64,
    /// Axes that this machine does not have, or that this process may not move, each with the cure.
    pub left_out: Vec<String>,
    /// The points, in the order of their measurement.
    pub points: Vec<PointRecord>,
    /// The points that no other point beats in both speed and power, the most efficient first: places in `points`.
    pub frontier: Vec<usize>,
    /// The best point of each objective.
    pub best: Vec<BestPoint>,
    /// Speed of the default when it was measured last, over that at the beginning.
    pub drift: Option<f64>,
    /// The sweep ended by itself: no neighbour of a best point was left, or the budget was spent.
    pub complete: bool,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

/// What searches run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperatingPoint {
    /// The point in words: `4 big at 1800 MHz`.
    pub name: String,
    /// CPUs that threads are bound to, one each.
    pub cpus: CpuList,
    /// The value of `--device`.
    pub device: String,
    /// The value of `--policy` (`None`: the default).
    pub policy: Option<String>,
    /// Fixed clocks in kHz, by the name of their domain. A domain that is absent runs as it was found.
    pub clocks_khz: BTreeMap<String, u64>,
}

/// An operating point that was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointRecord {
    /// The point.
    pub point: OperatingPoint,
    /// The measurement (`None`: every try was thrown away).
    pub measured: Option<PointMeasured>,
    /// Why tries were thrown away.
    pub thrown_away: Vec<String>,
}

/// CPUs that other programs may use while a point is measured without disturbing it.
pub const OTHER_CPUS: f64 = 0.02;

/// Searches at an operating point. Powers are in watts, energies in joules, times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PointMeasured {
    /// Harmonic mean of the traversed edges per second, over all windows.
    pub teps: f64,
    /// Mean time of a search.
    pub search_seconds: f64,
    /// Number of searches.
    pub searches: u64,
    /// (Largest - smallest) / mean over the windows: of MTEPS/W, or of TEPS where there is no power.
    pub spread: f64,
    /// Power and energy over the windows (`None`: no sensor, or an incomplete window).
    pub energy: Option<EnergySummary>,
    /// Why there is no energy although there is a sensor.
    #[serde(default)]
    pub problem: Option<String>,
    /// The hottest zone before and after, in degrees Celsius.
    pub celsius: [Option<f64>; 2],
    /// Seconds that the point waited for the machine to cool down.
    pub waited_seconds: f64,
    /// CPUs that other programs used meanwhile (`None`: not known). With `--strict` no point has more than [`OTHER_CPUS`].
    #[serde(default)]
    pub other_cpus: Option<f64>,
}

/// The best point of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BestPoint {
    /// The goal.
    pub goal: Goal,
    /// The place of the point among the points of the sweep.
    pub place: usize,
    /// How many times better than the default it is (`None`: the default was thrown away).
    pub over_default: Option<f64>,
}
