//! The contest of a calibration whose winner `auto` uses.

use serde::{Deserialize, Serialize};

/// The policies among which a contest chooses for `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decider {
    /// The cost model of all terms, fitted.
    CostModel,
    /// The cost model of Zhang's terms, fitted.
    #[serde(rename = "cost-model:zhang")]
    Zhang,
    /// [`SampledCosts`](socbfs::SampledCosts) with the shipped constants.
    Sampled,
    /// Our network, with weights trained for this calibration.
    Mlp,
}

impl Decider {
    /// Whether it decides directions only, so that it can search on a device alone.
    fn decides_directions(self) -> bool {
        matches!(self, Self::Sampled | Self::Mlp)
    }
}

impl std::fmt::Display for Decider {
    /// The name of the policy, as on the command line and in TOML.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

/// Scores of policies on graphs to which they were not fitted, and the best policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contest {
    /// The policy with the least mean regret: with a device, of those that decide directions only.
    pub policy: Decider,
    /// Number of graphs held out, over all parts.
    pub graphs: usize,
    /// The score of each policy.
    pub candidates: Vec<Candidate>,
}

/// The score of one policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Candidate {
    /// The policy.
    pub policy: Decider,
    /// Mean over the graphs of the time beyond the per-level oracle's, as a share of the oracle's time. Times are from the tables of levels
    /// and do not include the decisions.
    pub regret: f64,
    /// The largest regret on one graph.
    pub worst_regret: f64,
}

impl Contest {
    /// The contest of these policies, whose scores are of so many graphs. `None` if none of the policies can be used.
    pub fn of(graphs: usize, candidates: Vec<Candidate>, with_device: bool) -> Option<Self> {
        let usable = candidates.iter().filter(|candidate| !with_device || candidate.policy.decides_directions());
        let policy = usable.min_by(|a, b| a.regret.total_cmp(&b.regret))?.policy;
        Some(Self { policy, graphs, candidates })
    }
}
