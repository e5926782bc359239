//! Policies compared: the times of every level by every strategy, and the judgement.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use socbfs::{GpuKernel, LayoutStats, LevelPlan, LevelStats, Strategy, Vertex};

use super::{Environment, PolicyComparison};

pub(crate) const STRATEGIES: usize = Strategy::ALL.len();

/// Shares of the GPU, in thousandths, at which split levels are measured.
pub const SHARES: [u16; 3] = [250, 500, 750];

/// A strategy, or a policy, is given up where it takes more than this factor of the fastest strategy, or of the oracle.
pub const GIVEN_UP: f64 = 8.0;

/// A search is an outlier if it takes this many times the median of comparable searches.
pub const OUTLIER_FACTOR: f64 = 2.0;

/// What helps against noise.
pub const QUIET: &str = "end other programs, fix the clocks, bind threads with --cpus, and run again";

/// The record of `socbfs policies`.
#[derive(Debug, Serialize, Deserialize)]
pub struct PoliciesReport {
    /// [`POLICIES_SCHEMA`](crate::report::POLICIES_SCHEMA).
    pub schema: Cow<'static, str>,
    /// [`POLICIES_SCHEMA_VERSION`](crate::report::POLICIES_SCHEMA_VERSION).
    pub schema_version: u32,
    /// Machine, system, build, command, time.
    pub environment: Environment,
    /// The policy that searches use on this machine unless another is given (empty: the record is older than this field).
    #[serde(default)]
    pub default_policy: String,
    /// The results by graph.
    pub graphs: Vec<PolicyGraph>,
    /// What a reader has to know, such as an error that ended the comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The results on one graph.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PolicyGraph {
    /// File or generator.
    pub name: String,
    /// Counts of the searched structure.
    pub layout: LayoutStats,
    /// The policies: those that need a device are missing if it can't be used for this graph.
    #[serde(flatten)]
    pub compared: PolicyComparison,
}

/// The results on one graph: every policy from every root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The results of each root.
    pub roots: Vec<RootEvaluation>,
}

/// A policy that a graph makes hopeless: one of its searches took more than 8 times as long as the oracle's, and was stopped.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GivenUp {
    /// Its name.
    pub policy: String,
    /// Nanoseconds after which the search was stopped.
    pub elapsed_ns: f64,
    /// The same, divided by the oracle's time.
    pub over_oracle: f64,
}

/// The results of searches from one root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RootEvaluation {
    /// Edges of the search by Graph500's rule.
    pub edges: u64,
    /// The cost of every level by every strategy.
    pub table: LevelTable,
    /// The result of the oracle: its plans replayed.
    pub oracle: Judged,
    /// The results of the policies, in the order given.
    pub policies: Vec<Judged>,
    /// Searches by each policy (0: the record is older than this field).
    #[serde(default)]
    pub turns: usize,
}

/// The figures of a policy from one root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Its plan for each level.
    pub plans: Vec<LevelPlan>,
    /// Time of the levels in nanoseconds: median over the turns. (Mapping parents back to original numbers is left out: it is the same for
    /// all.)
    pub elapsed_ns: f64,
    /// The same of every turn (empty: the record is older than this field).
    #[serde(default)]
    pub turns_ns: Vec<f64>,
    /// Time from the call to the tree in nanoseconds, with mapping of the parents: median over the turns.
    pub total_ns: f64,
    /// Median over the turns of the policy's time divided by the oracle's time of the same turn.
    pub over_oracle: f64,
    /// Time spent deciding, sampling included, in nanoseconds: median over the turns.
    pub decision_ns: f64,
    /// The cost of its levels by the table (`None`: it has plans that were not measured).
    pub table_ns: Option<f64>,
    /// Its directions against the faster one of each level, as SURF counts (section 5.2). `None` if only one was measured.
    pub directions: Option<Directions>,
    /// Number of levels with the same plan as the oracle's.
    pub as_oracle: usize,
}

/// Whether two policies, with their times of each turn, differ by more than chance: the sign test, wrong once in twenty times. Fewer than
/// five turns can't tell, and do not ask for more.
pub fn told_apart<'a>(turns: impl Iterator<Item = (&'a f64, &'a f64)>) -> bool {
    let (less, count) = turns.fold((0, 0), |(less, count), (one, other)| (less + usize::from(one < other), count + 1));
    let lead = (2 * less).abs_diff(count);
    count < 5 || lead * lead > 4 * count
}

/// Directions compared with the faster one of each level.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Directions {
    /// Number of levels compared.
    pub levels: usize,
    /// Number of levels in the faster direction.
    pub right: usize,
    /// Nanoseconds between the faster and the slower direction, summed over all levels.
    pub saveable_ns: f64,
    /// The same sum over the levels in the faster direction.
    pub saved_ns: f64,
}

/// The cost of each level of a search from one root by each strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelTable {
    /// The root, as an original number.
    pub root: Vertex,
    /// The measured strategies.
    pub strategies: Vec<Strategy>,
    /// The levels; the last one finds nothing.
    pub levels: Vec<LevelTimes>,
}

/// One level. Times are in nanoseconds, indexed by [`Strategy`] in the order of [`Strategy::ALL`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelTimes {
    /// The counts that a policy may see, with all samples. Counts that depend on earlier plans are those of a top-down search.
    pub stats: LevelStats,
    /// Number of vertices found.
    pub found: u64,
    pub(crate) own: [Option<f64>; STRATEGIES],
    /// As `own`, but the mean of the turns instead of their first quartile.
    #[serde(default)]
    pub(crate) mean: [Option<f64>; STRATEGIES],
    pub(crate) after: [[Option<f64>; STRATEGIES]; STRATEGIES],
    /// Split levels, by [`GpuKernel`] and share: with the handovers of splitting, but without a change from another strategy.
    #[serde(default)]
    pub(crate) shared: [[Option<f64>; SHARES.len()]; GpuKernel::ALL.len()],
    /// The parts of the level split with the fastest of these shares, by [`GpuKernel`].
    #[serde(default)]
    pub parts: [Option<SplitParts>; GpuKernel::ALL.len()],
    /// The strategies that were given up here, since they take more than 8 times as long as the best one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<Strategy>,
}

/// The parts of a split level, in nanoseconds: the CPU's and the GPU's, each from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SplitParts {
    /// Each part while the other device is idle.
    pub alone_ns: [f64; 2],
    /// Both at the same time.
    pub both_ns: [f64; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Judged {
        /// As fast as the oracle: `elapsed_ns` for the levels, and no time to decide or to map parents.
        pub(crate) fn taking(elapsed_ns: f64) -> Self {
            Self {
                plans: Vec::new(),
                elapsed_ns,
                turns_ns: Vec::new(),
                total_ns: elapsed_ns,
                over_oracle: 1.0,
                decision_ns: 0.0,
                table_ns: None,
                directions: None,
                as_oracle: 0,
            }
        }
    }

    #[test]
    fn times_are_told_apart_by_the_turns_in_which_one_is_less() {
        let apart = |ones: &[f64]| told_apart(ones.iter().zip(&[1.0; 16]));
        assert!(apart(&[0.9; 7]) && apart(&[1.1; 7]) && apart(&[0.9; 4]));
        assert!(!apart(&[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.1]) && !apart(&[0.9, 1.1, 0.9, 1.1, 0.9, 1.1]));
        let mut most = [0.9; 16];
        most[3..6].fill(1.2);
        assert!(apart(&most));
        most[6] = 1.2;
        assert!(!apart(&most));
    }
}
