//! Who decides the direction of each level. Policies are pure: no clock, no device (design rule 3).

mod alpha_beta;
mod asynchronous;
mod concurrent;
mod cost_model;
mod planner;
mod replay;
mod sampled;
mod selective;
mod text;

use serde::{Deserialize, Serialize};

pub use asynchronous::Parting;
pub use concurrent::Splitting;
pub use cost_model::{CostModel, Form, Objective, StrategyCost};
pub use planner::{PolicyPlanner, Runs};
pub use replay::Replay;
pub use sampled::SampledCosts;
pub use selective::{Line, NEVER, Threshold, Thresholds};
use text::PolicyTable;

use crate::bfs::{GpuKernel, Placement};

/// Beamer's alpha as the GAP benchmark ships it: a starting point, not an optimum.
pub const DEFAULT_ALPHA: f64 = 15.0;

/// Beamer's beta as the GAP benchmark ships it.
pub const DEFAULT_BETA: f64 = 18.0;

/// A policy, as named on the command line and tagged in TOML.
///
/// On the command line a name, with parameters behind a colon: `alpha-beta:ALPHA,BETA`, `sampled:WORD,VERTEX,PROBE`,
/// `selective:EDGES,VERTICES`, `concurrent:EDGES,VERTICES,PERMILLE`, `asynchronous:EDGES,PERMILLE`. In TOML a table with the
/// key `kind` and the optional keys `alpha`, `beta`; `word`, `vertex`, `probe`; `top_down_gpu_from_edges`,
/// `bottom_up_gpu_from_vertices`; `top_down_split_from_edges`, `bottom_up_split_from_vertices`, `gpu_permille`; `from_edges`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(try_from = "PolicyTable", into = "PolicyTable")]
#[non_exhaustive]
pub enum Policy {
    /// The best for the graph and the devices at hand.
    #[default]
    Auto,
    /// Always top-down on the CPU.
    Tc,
    /// Always bottom-up on the CPU.
    Bc,
    /// Always the same kernel on the GPU: `tg`, `tgm`, `bg` or `bgc`.
    Gpu(GpuKernel),
    /// Beamer's alpha and beta.
    AlphaBeta {
        /// Bottom-up when frontier edges exceed unvisited edges / alpha.
        alpha: f64,
        /// Top-down again when the frontier shrinks and is below vertices / beta.
        beta: f64,
    },
    /// Costs compared on a sample of unvisited vertices.
    Sampled(SampledCosts),
    /// CPU or GPU, level by level. `None`: by thresholds that are yet to be measured; until then everything runs on the CPU.
    Selective(Option<Thresholds>),
    /// Both at the same time, level by level.
    Concurrent(Splitting),
    /// Both from one level on to the end.
    Asynchronous(Parting),
    /// The plans of an earlier search. (Made from records; it has no text or TOML to be made from.)
    Replay(Replay),
}

/// A policy that could not be understood.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The name is not one of ours.
    #[error(
        "unknown policy {0:?}; known: auto, tc, bc, tg, tgm, bg, bgc, alpha-beta[:ALPHA,BETA], sampled[:WORD,VERTEX,PROBE], \
         selective[:EDGES,VERTICES], concurrent[:EDGES,VERTICES,PERMILLE], asynchronous[:EDGES,PERMILLE]"
    )]
    Unknown(String),
    /// The policy has no such parameter.
    #[error("policy {kind} does not take {given}")]
    NoParameters {
        /// The policy.
        kind: &'static str,
        /// What was given.
        given: String,
    },
    /// The text behind the colon is not what the policy takes.
    #[error("{kind} takes {wanted}; {given:?} is not that")]
    BadParameters {
        /// The policy.
        kind: &'static str,
        /// What it takes, with an example.
        wanted: &'static str,
        /// What was given.
        given: String,
    },
    /// A share that is more than the whole.
    #[error("gpu_permille is {0}; it must be a number of thousandths, 1 to 999")]
    NotAShare(u16),
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
            Self::Gpu(kernel) => kernel.name(),
            Self::AlphaBeta { .. } => "alpha-beta",
            Self::Sampled(_) => "sampled",
            Self::Selective(_) => "selective",
            Self::Concurrent(_) => "concurrent",
            Self::Asynchronous(_) => "asynchronous",
            Self::Replay(_) => "replay",
        }
    }

    /// Whether it makes no sense without an OpenCL device.
    pub fn needs_device(&self) -> bool {
        match self {
            Self::Gpu(_) | Self::Selective(_) | Self::Concurrent(_) | Self::Asynchronous(_) => true,
            Self::Replay(replay) => replay.plans().iter().any(|plan| plan.placement != Placement::Cpu),
            _ => false,
        }
    }

    /// Checks the values of the parameters.
    ///
    /// # Errors
    /// [`PolicyError::OutOfRange`] for a threshold that is not a finite number above 0, [`PolicyError::NotAShare`].
    pub fn validate(&self) -> Result<(), PolicyError> {
        match *self {
            Self::AlphaBeta { alpha, beta } => positive("alpha", alpha).and_then(|()| positive("beta", beta)),
            Self::Sampled(SampledCosts { word, vertex, probe }) => {
                positive("word", word).and_then(|()| positive("vertex", vertex)).and_then(|()| positive("probe", probe))
            }
            Self::Concurrent(Splitting { gpu_permille, .. }) | Self::Asynchronous(Parting { gpu_permille, .. }) => {
                if (1..1000).contains(&gpu_permille) { Ok(()) } else { Err(PolicyError::NotAShare(gpu_permille)) }
            }
            Self::Auto | Self::Tc | Self::Bc | Self::Gpu(_) | Self::Selective(_) | Self::Replay(_) => Ok(()),
        }
    }

    fn from_kind(kind: &str) -> Result<Self, PolicyError> {
        match kind {
            "auto" => Ok(Self::Auto),
            "tc" => Ok(Self::Tc),
            "bc" => Ok(Self::Bc),
            "tg" => Ok(Self::Gpu(GpuKernel::Tg)),
            "tgm" => Ok(Self::Gpu(GpuKernel::Tgm)),
            "bg" => Ok(Self::Gpu(GpuKernel::Bg)),
            "bgc" => Ok(Self::Gpu(GpuKernel::Bgc)),
            "sampled" => Ok(Self::Sampled(SampledCosts::default())),
            "alpha-beta" => Ok(Self::AlphaBeta { alpha: DEFAULT_ALPHA, beta: DEFAULT_BETA }),
            "selective" => Ok(Self::Selective(None)),
            "concurrent" => Ok(Self::Concurrent(Splitting::default())),
            "asynchronous" => Ok(Self::Asynchronous(Parting::default())),
            _ => Err(PolicyError::Unknown(kind.to_owned())),
        }
    }
}

fn positive(name: &'static str, value: f64) -> Result<(), PolicyError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(PolicyError::OutOfRange { name, value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_display_are_inverse() {
        for text in ["auto", "tc", "bc", "tg", "tgm", "bg", "bgc", "sampled", "sampled:0.5,1,2.25", "alpha-beta:15,18"]
            .into_iter()
            .chain(["alpha-beta:0.5,24.25", "selective", "selective:1000,never", "selective:0,77", "concurrent"])
            .chain(["concurrent:100,never,250", "asynchronous", "asynchronous:99,1"])
        {
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
            assert!(matches!(refused(text), PolicyError::BadParameters { kind: "alpha-beta", .. }), "{text}");
        }
        for text in ["selective:1", "selective:1,2,3", "selective:-1,2", "concurrent:1,2", "concurrent:1,2,x", "asynchronous:1"] {
            assert!(matches!(refused(text), PolicyError::BadParameters { .. }), "{text}");
        }
        assert_eq!(refused("concurrent:1,1,1000"), PolicyError::NotAShare(1000));
        assert_eq!(refused("asynchronous:1,0"), PolicyError::NotAShare(0));
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
            ("kind = 'selective'\ngpu_permille = 3", "selective does not take gpu_permille"),
            ("kind = 'concurrent'\ngpu_permille = 1000", "1 to 999"),
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
        let thresholds = Thresholds { top_down: Threshold::at(5), bottom_up: Threshold { go: NEVER, stay: 7 } };
        for policy in [
            Policy::Auto,
            Policy::Bc,
            Policy::Gpu(GpuKernel::Tgm),
            Policy::AlphaBeta { alpha: 2.5, beta: 7.0 },
            Policy::Sampled(SampledCosts::default()),
            Policy::Selective(None),
            Policy::Selective(Some(thresholds)),
            Policy::Concurrent(Splitting { gpu_permille: 1, ..Splitting::default() }),
            Policy::Asynchronous(Parting { from_edges: 1, gpu_permille: 999 }),
        ] {
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
