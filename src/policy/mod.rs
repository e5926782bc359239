//! Who decides the direction of each level. Policies are pure: no clock, no device (design rule 3).

mod alpha_beta;
mod planner;
mod sampled;

use serde::{Deserialize, Serialize};

pub use planner::PolicyPlanner;
pub use sampled::SampledCosts;

/// Beamer's alpha as the GAP benchmark ships it: a starting point, not an optimum.
pub const DEFAULT_ALPHA: f64 = 15.0;

/// Beamer's beta as the GAP benchmark ships it.
pub const DEFAULT_BETA: f64 = 18.0;

/// A policy, as named on the command line and tagged in TOML.
///
/// On the command line `auto`, `tc`, `bc`, `alpha-beta`, `alpha-beta:ALPHA,BETA`, `sampled` or `sampled:WORD,VERTEX,PROBE`; in TOML
/// a table with the key `kind` and, for `alpha-beta`, the optional keys `alpha` and `beta`, for `sampled` the optional keys
/// `word`, `vertex` and `probe` (see [`SampledCosts`]).
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
    Sampled(SampledCosts),
}

/// A policy that could not be understood.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The name is not one of ours.
    #[error("unknown policy {0:?}; known: auto, tc, bc, alpha-beta[:ALPHA,BETA], sampled[:WORD,VERTEX,PROBE]")]
    Unknown(String),
    /// The policy has no such parameter.
    #[error("policy {kind} does not take {given}")]
    NoParameters {
        /// The policy.
        kind: &'static str,
        /// What was given.
        given: String,
    },
    /// The text behind `alpha-beta:` is not two numbers.
    #[error("alpha-beta takes two numbers, as in alpha-beta:15,18; {0:?} is not that")]
    NotTwoNumbers(String),
    /// The text behind `sampled:` is not three numbers.
    #[error("sampled takes three costs, as in sampled:0.5,0.25,0.35; {0:?} is not that")]
    NotThreeNumbers(String),
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
            Self::Sampled(_) => "sampled",
        }
    }

    /// Checks the values of the parameters.
    ///
    /// # Errors
    /// [`PolicyError::OutOfRange`] for a threshold that is not a finite number above 0.
    pub fn validate(&self) -> Result<(), PolicyError> {
        match *self {
            Self::AlphaBeta { alpha, beta } => positive("alpha", alpha).and_then(|()| positive("beta", beta)),
            Self::Sampled(SampledCosts { word, vertex, probe }) => {
                positive("word", word).and_then(|()| positive("vertex", vertex)).and_then(|()| positive("probe", probe))
            }
            Self::Auto | Self::Tc | Self::Bc => Ok(()),
        }
    }

    fn from_kind(kind: &str) -> Result<Self, PolicyError> {
        match kind {
            "auto" => Ok(Self::Auto),
            "tc" => Ok(Self::Tc),
            "bc" => Ok(Self::Bc),
            "sampled" => Ok(Self::Sampled(SampledCosts::default())),
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
            Self::Sampled(_) => {
                let bad = || PolicyError::NotThreeNumbers(parameters.to_owned());
                let mut numbers = parameters.split(',').map(|text| text.trim().parse::<f64>().map_err(|_| bad()));
                let mut number = || numbers.next().unwrap_or_else(|| Err(bad()));
                let costs = SampledCosts { word: number()?, vertex: number()?, probe: number()? };
                if numbers.next().is_some() {
                    return Err(bad());
                }
                Self::Sampled(costs)
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
            Self::Sampled(costs) if *costs != SampledCosts::default() => {
                write!(f, "sampled:{},{},{}", costs.word, costs.vertex, costs.probe)
            }
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
    word: Option<f64>,
    vertex: Option<f64>,
    probe: Option<f64>,
}

impl TryFrom<PolicyTable> for Policy {
    type Error = PolicyError;

    fn try_from(table: PolicyTable) -> Result<Self, PolicyError> {
        let PolicyTable { kind, alpha, beta, word, vertex, probe } = table;
        let none_of = |policy: &Self, keys: &[(&str, Option<f64>)]| match keys.iter().find_map(|&(key, value)| Some((key, value?))) {
            Some((key, value)) => Err(PolicyError::NoParameters { kind: policy.kind(), given: format!("{key} = {value}") }),
            None => Ok(()),
        };
        let (thresholds, costs) = ([("alpha", alpha), ("beta", beta)], [("word", word), ("vertex", vertex), ("probe", probe)]);
        let mut policy = Self::from_kind(&kind)?;
        if !matches!(policy, Self::AlphaBeta { .. }) {
            none_of(&policy, &thresholds)?;
        }
        if !matches!(policy, Self::Sampled(_)) {
            none_of(&policy, &costs)?;
        }
        match &mut policy {
            Self::AlphaBeta { alpha: a, beta: b } => (*a, *b) = (alpha.unwrap_or(*a), beta.unwrap_or(*b)),
            Self::Sampled(costs) => {
                costs.word = word.unwrap_or(costs.word);
                costs.vertex = vertex.unwrap_or(costs.vertex);
                costs.probe = probe.unwrap_or(costs.probe);
            }
            _ => {}
        }
        policy.validate()?;
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_display_are_inverse() {
        for text in ["auto", "tc", "bc", "sampled", "sampled:0.5,1,2.25", "alpha-beta:15,18", "alpha-beta:0.5,24.25"] {
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
            ("kind = 'tc'\nalpha = 3", "tc does not take alpha"),
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
        for policy in [Policy::Auto, Policy::Bc, Policy::AlphaBeta { alpha: 2.5, beta: 7.0 }, Policy::Sampled(SampledCosts::default())] {
            assert_eq!(toml::from_str::<Policy>(&toml::to_string(&policy).unwrap()).unwrap(), policy);
        }
    }

    #[test]
    fn costs_of_sampling_come_from_toml_and_text() {
        let policy: Policy = toml::from_str("kind = \"sampled\"\nprobe = 0.75").unwrap();
        assert_eq!(policy, Policy::Sampled(SampledCosts { probe: 0.75, ..SampledCosts::default() }));
        for bad in ["sampled:1,2", "sampled:1,2,3,4", "sampled:1,x,3", "sampled:0,1,1", "sampled:1,1,-1"] {
            assert!(bad.parse::<Policy>().is_err(), "{bad}");
        }
        assert!(toml::from_str::<Policy>("kind = \"sampled\"\nalpha = 3.0").is_err());
        assert!(toml::from_str::<Policy>("kind = \"tc\"\nword = 3.0").is_err());
    }
}
