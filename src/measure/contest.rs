//! The contest of a calibration whose winner `auto` uses.

use serde::{Deserialize, Serialize};

use crate::policy::{Adaptive, Bands, Policy, SampledCosts, Selective};

/// The policies among which a contest chooses for `auto`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decider {
    /// The cost model of all terms, fitted.
    #[default]
    CostModel,
    /// The cost model of Zhang's terms, fitted.
    #[serde(rename = "cost-model:zhang")]
    Zhang,
    /// [`SampledCosts`] with the shipped constants, on the CPU.
    Sampled,
    /// Our network, with weights trained for this calibration.
    Mlp,
}

impl Decider {
    /// The name of the policy, as on the command line and in TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::CostModel => "cost-model",
            Self::Zhang => "cost-model:zhang",
            Self::Sampled => "sampled",
            Self::Mlp => "mlp",
        }
    }

    /// The policy of [`Decider::Sampled`]. If there is a device, the policy has the form that leaves the device idle.
    pub fn sampled(with_device: bool) -> Policy {
        if with_device {
            Policy::Selective(Box::new(Selective::new(Adaptive::of(Bands::CPU))))
        } else {
            Policy::Sampled(SampledCosts::default())
        }
    }
}

impl std::fmt::Display for Decider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Scores of policies on graphs to which they were not fitted, and the best policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contest {
    /// The policy with the least mean regret.
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
    /// Removes the score of `policy`, which is out of date. `None` if no other policy is left.
    pub fn without(mut self, policy: Decider) -> Option<Self> {
        self.candidates.retain(|candidate| candidate.policy != policy);
        self.policy = best(&self.candidates)?;
        Some(self)
    }
}

/// The policy with the least regret, the first one if several are equal.
pub fn best(candidates: &[Candidate]) -> Option<Decider> {
    candidates.iter().min_by(|a, b| a.regret.total_cmp(&b.regret)).map(|candidate| candidate.policy)
}
