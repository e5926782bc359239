//! Who decides the direction of each level. Policies are pure: no clock, no device (design rule 3).

mod alpha_beta;
mod planner;
mod sampled;

use serde::{Deserialize, Serialize};

pub use planner::PolicyPlanner;

/// A policy, as named on the command line and tagged in TOML.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Policy {
    /// The best for the graph at hand.
    #[default]
    Auto,
    /// Always top-down on the CPU.
    Tc,
    /// Always bottom-up on the CPU.
    Bc,
    /// Beamer's alpha and beta.
    AlphaBeta {
        /// Bottom-up when frontier edges exceed unvisited edges / alpha.
        alpha: f64,
        /// Top-down again when the frontier shrinks and is below vertices / beta.
        beta: f64,
    },
    /// Costs compared on a sample of unvisited vertices.
    Sampled,
}

/// A policy that could not be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(pub String);

impl std::str::FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let (name, arguments) = text.split_once(':').map_or((text, None), |(name, arguments)| (name, Some(arguments)));
        match (name, arguments) {
            ("auto", None) => Ok(Self::Auto),
            ("tc", None) => Ok(Self::Tc),
            ("bc", None) => Ok(Self::Bc),
            ("sampled", None) => Ok(Self::Sampled),
            ("alpha-beta", None) => Ok(Self::AlphaBeta { alpha: 15.0, beta: 18.0 }),
            _ => Err(PolicyError(format!("unknown policy {text:?}; known: auto, tc, bc, alpha-beta[:A,B], sampled"))),
        }
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Tc => f.write_str("tc"),
            Self::Bc => f.write_str("bc"),
            Self::AlphaBeta { alpha, beta } => write!(f, "alpha-beta:{alpha},{beta}"),
            Self::Sampled => f.write_str("sampled"),
        }
    }
}
