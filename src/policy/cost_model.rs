//! Placeholder until the cost model is merged.

use serde::{Deserialize, Serialize};

/// Form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Full.
    #[default]
    Full,
    /// Zhang.
    Zhang,
}

/// Objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Time.
    #[default]
    Time,
    /// Energy.
    Energy,
    /// Edp.
    Edp,
}

/// Cost of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyCost {
    /// ns per unit.
    pub ns: f64,
    /// Watts.
    pub watts: Option<f64>,
}

/// Model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// Form.
    pub form: Form,
    /// Objective.
    pub objective: Objective,
    /// Strategies.
    #[serde(skip)]
    pub strategies: [Option<StrategyCost>; 6],
}

/// Error.
#[derive(Debug, thiserror::Error)]
#[error("bad model")]
pub struct CostModelError;

impl CostModel {
    /// Checks.
    ///
    /// # Errors
    /// One.
    pub fn validate(&self) -> Result<(), CostModelError> {
        let bad = self.strategies.iter().flatten().any(|cost| !cost.ns.is_finite() || cost.ns < 0.0);
        if bad { Err(CostModelError) } else { Ok(()) }
    }

    /// Time.
    pub fn own_ns(&self, _stats: &crate::bfs::LevelStats, strategy: crate::bfs::Strategy) -> Option<f64> {
        Some(self.strategies[strategy as usize]?.ns)
    }
}
