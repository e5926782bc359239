//! Energy of searches.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use socbfs::Direction;
use socbfs_power::{Domain, Energy, Joules, Skipped, Watts};

/// The energy part of a record: measured energy, or why there is none.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EnergyRecord {
    /// Why there is no energy (`None` where there is).
    pub unavailable: Option<String>,
    /// How to make energy available, where that is known.
    pub cure: Option<String>,
    /// The measured energy.
    pub measured: Option<MeasuredEnergy>,
    /// Sensors that exist but were not used, and why.
    pub skipped: Vec<Skipped>,
    /// What Green Graph500 asks for besides (`None`: the run was not made by its rules).
    #[serde(default)]
    pub green: Option<Green>,
}

/// What the rules of Green Graph500 (version 1.1) ask to report of a run besides its energy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Green {
    /// Clocks and power saving while the power was measured, a line for each part of the machine.
    pub power_saving: Vec<String>,
}

/// Measured energy. Energies are in joules, powers in watts, times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredEnergy {
    /// What the counted sensors cover together.
    pub scope: String,
    /// The counted sensors.
    pub sensors: Vec<String>,
    /// Shortest length of a window.
    pub window_seconds: f64,
    /// Fewest refreshes in a window.
    pub window_refreshes: u64,
    /// Energy of the idle machine, before the searches.
    pub idle: Energy,
    /// The windows.
    pub windows: Vec<EnergyWindow>,
    /// Statistics over the windows (`None` where a window is incomplete).
    pub summary: Option<EnergySummary>,
    /// Why there are no statistics.
    pub problem: Option<String>,
    /// Modelled energy of strategies and levels.
    pub model: Model,
}

/// One window: searches from all roots in turn, repeated, and nothing else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergyWindow {
    /// Energy of the window.
    pub energy: Energy,
    /// Number of searches in the window.
    pub searches: u64,
    /// Sum of the times of the searches. The rest of the window is spent on reading the clock and the records.
    pub search_seconds: f64,
    /// Harmonic mean of the searches' traversed edges per second.
    pub teps: f64,
    /// Refreshes of the slowest counted sensor.
    pub refreshes: u64,
    /// Time of the levels by strategy (ranks send none).
    #[serde(skip_deserializing)]
    pub strategies: Vec<StrategyTime>,
}

/// The time of one strategy's levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StrategyTime {
    /// Direction.
    pub direction: Direction,
    /// The device, the kernel of a GPU, or both devices.
    pub device: Cow<'static, str>,
    /// Seconds.
    pub seconds: f64,
}

/// Statistics over the windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnergySummary {
    /// Millions of traversed edges per second and watt: harmonic mean TEPS over the mean power, idle power included (the metric of
    /// Green Graph500).
    pub mteps_per_watt: socbfs::stats::Summary,
    /// The same metric over the power above idle (`None` where the idle machine took as much).
    pub mteps_per_watt_net_of_idle: Option<socbfs::stats::Summary>,
    /// Mean power.
    pub watts: socbfs::stats::Summary,
    /// Energy of a search.
    pub joules_per_search: socbfs::stats::Summary,
    /// Energy of a search without the energy that the idle machine would have taken (`None` as above).
    pub joules_per_search_net_of_idle: Option<socbfs::stats::Summary>,
    /// Energy of a search times the time of a search.
    pub energy_delay_joule_seconds: socbfs::stats::Summary,
    /// Power of the idle machine.
    pub idle_watts: Watts,
    /// Mean power by domain, over all windows.
    pub domains: Vec<DomainWatts>,
    /// Valid readings of all counted sensors in all windows.
    pub samples: u64,
    /// Number of times that their counters wrapped to zero.
    pub wraps: u64,
}

/// The mean power of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DomainWatts {
    /// The domain.
    pub domain: Domain,
    /// Mean power.
    pub watts: Watts,
    /// Whether the domain is a part of the sum.
    pub counted: bool,
}

/// Modelled energy of strategies and levels: the power of the strategy, measured in a window in which no other strategy ran, times its
/// time. A level is far too short to be measured by itself. The residual shows how well the model fits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Model {
    /// Why the model is absent or incomplete.
    pub unavailable: Option<String>,
    /// The strategies that ran.
    pub strategies: Vec<StrategyPower>,
    /// (measured - modelled) / measured, over all windows.
    pub residual: Option<f64>,
    /// The levels of every root, in the order of the record's roots.
    pub roots: Vec<Vec<LevelModel>>,
}

/// A strategy: its calibrated power, and its modelled energy in all windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StrategyPower {
    /// Direction.
    pub direction: Direction,
    /// The device, the kernel of a GPU, or both devices.
    pub device: Cow<'static, str>,
    /// Calibrated power (`None`: not calibrated; [`Model::unavailable`] has the reason).
    pub watts: Option<Watts>,
    /// Time in all windows, in seconds.
    pub seconds: f64,
    /// Share of the time of all searches.
    pub time_share: f64,
    /// Modelled energy of this strategy's levels in one search.
    pub modelled_joules_per_search: Option<Joules>,
}

/// The modelled energy of one level record.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LevelModel {
    /// First level of the record.
    pub level: u32,
    /// Modelled energy.
    pub modelled_joules: Joules,
}

/// The energy of one policy's windows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyEnergy {
    /// The policy.
    pub policy: String,
    /// The windows of the policy, in the order of measurement.
    pub windows: Vec<EnergyWindow>,
    /// Statistics of the windows (`None`: one is incomplete).
    pub summary: Option<EnergySummary>,
    /// Why there are no statistics.
    #[serde(default)]
    pub problem: Option<String>,
    /// MTEPS/W of the policy over that of the baseline in the same turn.
    pub over_baseline: Option<socbfs::stats::Summary>,
}

/// The energy of policies on one graph. Every turn has a window of each policy, so that a drift of the machine affects all of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PoliciesEnergy {
    /// What the counted sensors cover together.
    pub scope: String,
    /// The counted sensors.
    pub sensors: Vec<String>,
    /// The policy that the others are compared with.
    pub baseline: String,
    /// Energy of the idle machine, before the windows.
    pub idle: Energy,
    /// The policies.
    pub policies: Vec<PolicyEnergy>,
}
