//! Who decides the direction of each level. Policies are pure: no clock, no device (design rule 3).

mod alpha_beta;
mod planner;
mod sampled;

use serde::{Deserialize, Serialize};

pub use planner::PolicyPlanner;

/// Beamer's alpha as the GAP benchmark ships it: a starting point, not an optimum.
pub const DEFAULT_ALPHA: f64 = 15.0;

/// Beamer's beta as the GAP benchmark ships it.
pub const DEFAULT_BETA: f64 = 18.0;

/// A policy, as named on the command line and tagged in TOML.
///
/// On the command line `auto`, `tc`, `bc`, `alpha-beta`, `alpha-beta:ALPHA,BETA` or `sampled`; in TOML a table with the key
/// `kind` and, for `alpha-beta`, the optional keys `alpha` and `beta`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", try_from = "PolicyTable")]
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
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The name is not one of ours.
    #[error("unknown policy {0:?}; known: auto, tc, bc, alpha-beta[:ALPHA,BETA], sampled")]
    Unknown(String),
    /// The policy has no parameters, but some were given.
    #[error("policy {kind} takes no parameters, but {given} was given")]
    NoParameters {
        /// The policy.
        kind: &'static str,
        /// What was given.
        given: String,
    },
    /// The text behind `alpha-beta:` is not two numbers.
    #[error("alpha-beta takes two numbers, as in alpha-beta:15,18; {0:?} is not that")]
    NotTwoNumbers(String),
    /// A threshold that can't be one.
    #[error("{name} is {value}; it must be a finite number above 0")]
    OutOfRange {
        /// Name of the threshold.
        name: &'static str,
        /// Its value.
        value: f64,
    },
}

impl Policy {
    /// The name without parameters, as on the command line and in TOML.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Tc => "tc",
            Self::Bc => "bc",
            Self::AlphaBeta { .. } => "alpha-beta",
            Self::Sampled => "sampled",
        }
    }

    /// Checks the values of the parameters.
    ///
    /// # Errors
    /// [`PolicyError::OutOfRange`] for a threshold that is not a finite number above 0.
    pub fn validate(&self) -> Result<(), PolicyError> {
        match *self {
            Self::AlphaBeta { alpha, beta } => positive("alpha", alpha).and_then(|()| positive("beta", beta)),
            Self::Auto | Self::Tc | Self::Bc | Self::Sampled => Ok(()),
        }
    }

    fn from_kind(kind: &str) -> Result<Self, PolicyError> {
        match kind {
            "auto" => Ok(Self::Auto),
            "tc" => Ok(Self::Tc),
            "bc" => Ok(Self::Bc),
            "sampled" => Ok(Self::Sampled),
            "alpha-beta" => Ok(Self::AlphaBeta { alpha: DEFAULT_ALPHA, beta: DEFAULT_BETA }),
            _ => Err(PolicyError::Unknown(kind.to_owned())),
        }
    }
}

fn positive(name: &'static str, value: f64) -> Result<(), PolicyError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(PolicyError::OutOfRange { name, value }) }
}

impl std::str::FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let Some((kind, parameters)) = text.split_once(':') else { return Self::from_kind(text) };
        let policy = match Self::from_kind(kind)? {
            Self::AlphaBeta { .. } => {
                let bad = || PolicyError::NotTwoNumbers(parameters.to_owned());
                let (alpha, beta) = parameters.split_once(',').ok_or_else(bad)?;
                let number = |text: &str| text.trim().parse().map_err(|_| bad());
                Self::AlphaBeta { alpha: number(alpha)?, beta: number(beta)? }
            }
            other => return Err(PolicyError::NoParameters { kind: other.kind(), given: parameters.to_owned() }),
        };
        policy.validate()?;
        Ok(policy)
    }
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AlphaBeta { alpha, beta } => write!(f, "alpha-beta:{alpha},{beta}"),
            other => f.write_str(other.kind()),
        }
    }
}

/// A policy as it stands in a TOML table. A struct of its own, because serde ignores unknown keys beside a tag without fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyTable {
    kind: String,
    alpha: Option<f64>,
    beta: Option<f64>,
}

impl TryFrom<PolicyTable> for Policy {
    type Error = PolicyError;

    fn try_from(table: PolicyTable) -> Result<Self, PolicyError> {
        let policy = match Self::from_kind(&table.kind)? {
            Self::AlphaBeta { alpha, beta } => Self::AlphaBeta { alpha: table.alpha.unwrap_or(alpha), beta: table.beta.unwrap_or(beta) },
            other => {
                for (key, value) in [("alpha", table.alpha), ("beta", table.beta)] {
                    if let Some(value) = value {
                        return Err(PolicyError::NoParameters { kind: other.kind(), given: format!("{key} = {value}") });
                    }
                }
                other
            }
        };
        policy.validate()?;
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_display_are_inverse() {
        for text in ["auto", "tc", "bc", "sampled", "alpha-beta:15,18", "alpha-beta:0.5,24.25"] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        assert_eq!("alpha-beta".parse(), Ok(Policy::AlphaBeta { alpha: DEFAULT_ALPHA, beta: DEFAULT_BETA }));
        assert_eq!("alpha-beta: 2 , 3".parse(), Ok(Policy::AlphaBeta { alpha: 2.0, beta: 3.0 }));
    }

    #[test]
    fn bad_text_is_refused_with_its_reason() {
        let refused = |text: &str| text.parse::<Policy>().unwrap_err();
        assert_eq!(refused("fast"), PolicyError::Unknown("fast".into()));
        assert_eq!(refused(""), PolicyError::Unknown(String::new()));
        assert_eq!(refused("tc:1"), PolicyError::NoParameters { kind: "tc", given: "1".into() });
        for text in ["alpha-beta:", "alpha-beta:15", "alpha-beta:15;18", "alpha-beta:15,x", "alpha-beta:1,2,3"] {
            assert!(matches!(refused(text), PolicyError::NotTwoNumbers(_)), "{text}");
        }
        assert_eq!(refused("alpha-beta:0,18"), PolicyError::OutOfRange { name: "alpha", value: 0.0 });
        assert_eq!(refused("alpha-beta:15,-1"), PolicyError::OutOfRange { name: "beta", value: -1.0 });
        assert!(matches!(refused("alpha-beta:nan,1"), PolicyError::OutOfRange { name: "alpha", .. }));
        assert!(matches!(refused("alpha-beta:1,inf"), PolicyError::OutOfRange { name: "beta", .. }));
    }

    #[test]
    fn toml_gives_the_same_policies() {
        let read = |text: &str| toml::from_str::<Policy>(text);
        assert_eq!(read("kind = 'tc'").unwrap(), Policy::Tc);
        assert_eq!(read("kind = 'alpha-beta'\nalpha = 50").unwrap(), Policy::AlphaBeta { alpha: 50.0, beta: DEFAULT_BETA });
        for (text, reason) in [
            ("kind = 'tc'\nalpha = 3", "takes no parameters"),
            ("kind = 'alpha-beta'\ngamma = 3", "gamma"),
            ("kind = 'alpha-beta'\nbeta = 0", "above 0"),
            ("alpha = 3", "kind"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn written_toml_reads_back() {
        for policy in [Policy::Auto, Policy::Bc, Policy::AlphaBeta { alpha: 2.5, beta: 7.0 }] {
            assert_eq!(toml::from_str::<Policy>(&toml::to_string(&policy).unwrap()).unwrap(), policy);
        }
    }
}
