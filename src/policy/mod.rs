//! Who decides the direction of each level. Policies are pure: no clock, no device (design rule 3).

mod alpha_beta;
mod asynchronous;
mod concurrent;
mod cost_model;
mod daga;
mod enterprise;
mod gunrock;
mod known;
pub mod mlp;
mod planner;
mod remis;
mod replay;
mod sampled;
mod selective;
mod text;
mod xbfs;
mod yasui;

use serde::{Deserialize, Serialize};

pub use asynchronous::Parting;
pub use concurrent::Splitting;
pub use cost_model::{ChangeCost, CostModel, CostModelError, Form, Objective, StrategyCost};
pub use gunrock::Gunrock;
pub use known::{KNOWN, Known};
pub use mlp::Mlp;
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
/// On the command line a name, with parameters behind a colon ([`KNOWN`] lists them). In TOML a table with the key
/// `kind` and optional keys for the parameters, which `boards/README.md` lists.
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
    /// Gunrock's rule for the direction.
    Gunrock(Gunrock),
    /// The rule for the direction in the paper of Enterprise.
    Enterprise {
        /// Bottom-up where the frontier holds more than this share of all hubs.
        gamma: f64,
    },
    /// The rule for the direction in the released code of Enterprise.
    EnterpriseReleased {
        /// Bottom-up from the first frontier on that at least this share of all arcs leaves.
        edge_share: f64,
    },
    /// XBFS's rule for the direction.
    Xbfs {
        /// Bottom-up where at least this share of all arcs leaves the frontier.
        ratio: f64,
    },
    /// Daga's: top-down on the CPU, bottom-up on the GPU.
    Daga {
        /// As in [`Policy::AlphaBeta`].
        alpha: f64,
        /// As in [`Policy::AlphaBeta`].
        beta: f64,
    },
    /// Yasui's: the CPU alone.
    Yasui {
        /// As in [`Policy::AlphaBeta`].
        alpha: f64,
        /// As in [`Policy::AlphaBeta`].
        beta: f64,
    },
    /// Remis' Selective with its one threshold.
    RemisSelective {
        /// The GPU runs levels whose frontier has at least so many vertices.
        vertices: u32,
    },
    /// Remis' Concurrent with its one threshold and a share that stays as it is.
    RemisConcurrent {
        /// Levels whose frontier has at least so many vertices are split.
        vertices: u32,
        /// The GPU's share, in thousandths.
        gpu_permille: u16,
    },
    /// A neural network decides the direction: `surf` or `mlp`.
    Mlp(Mlp),
    /// The strategy that should take least, by a model of their costs.
    CostModel(Box<CostModel>),
    /// The plans of earlier searches. (Made from records; it has no text or TOML to be made from.)
    Replay(Replay),
}

/// A policy that could not be understood.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The name is not one of ours.
    #[error("unknown policy {0:?}; known: {names}, and replay:FILE, surf:FILE, mlp:FILE on the command line", names = known::names())]
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
    /// Weights of a network that are none.
    #[error("policy {policy}: {reason}")]
    Weights {
        /// The policy.
        policy: &'static str,
        /// What is wrong with them.
        reason: mlp::WeightsError,
    },
    /// The costs of a model can't be right.
    #[error("cost model: {0}")]
    CostModel(CostModelError),
    /// A share that is more than the whole.
    #[error("gpu_permille is {0}; it must be a number of thousandths, 1 to 999")]
    NotAShare(u16),
    /// A share that is more than the whole, or less than nothing.
    #[error("{name} is {value}; it must be a share of the whole, 0 to 1")]
    NotAFraction {
        /// Name of the share.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A factor that is no number.
    #[error("{name} is {value}; it must be a finite number")]
    NotFinite {
        /// Name of the factor.
        name: &'static str,
        /// Its value.
        value: f64,
    },
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
            Self::Gunrock(_) => "gunrock",
            Self::Enterprise { .. } => "enterprise",
            Self::EnterpriseReleased { .. } => "enterprise-released",
            Self::Xbfs { .. } => "xbfs",
            Self::Daga { .. } => "daga",
            Self::Yasui { .. } => "yasui",
            Self::RemisSelective { .. } => "remis-selective",
            Self::RemisConcurrent { .. } => "remis-concurrent",
            Self::Mlp(mlp) => mlp.form().name(),
            Self::CostModel(_) => "cost-model",
            Self::Replay(_) => "replay",
        }
    }

    /// Whether it makes no sense without an OpenCL device.
    pub fn needs_device(&self) -> bool {
        match self {
            Self::Gpu(_) => true,
            Self::Replay(replay) => replay.plans().iter().any(|plan| plan.placement != Placement::Cpu),
            other => other.runs_on_both(),
        }
    }

    /// Whether it is about when to use the CPU and when the GPU, or both.
    pub fn runs_on_both(&self) -> bool {
        matches!(
            self,
            Self::Selective(_)
                | Self::Concurrent(_)
                | Self::Asynchronous(_)
                | Self::Daga { .. }
                | Self::RemisSelective { .. }
                | Self::RemisConcurrent { .. }
        )
    }

    /// Whether it decides the direction only, so that its levels run where [`Runs`] says.
    pub fn decides_directions_only(&self) -> bool {
        matches!(
            self,
            Self::Auto
                | Self::AlphaBeta { .. }
                | Self::Sampled(_)
                | Self::Gunrock(_)
                | Self::Enterprise { .. }
                | Self::EnterpriseReleased { .. }
                | Self::Xbfs { .. }
                | Self::Mlp(_)
        )
    }

    /// Checks the values of the parameters.
    ///
    /// # Errors
    /// [`PolicyError::OutOfRange`] for a threshold that is not a finite number above 0, [`PolicyError::NotAShare`] and
    /// [`PolicyError::NotAFraction`] for a share that is none, [`PolicyError::NotFinite`].
    pub fn validate(&self) -> Result<(), PolicyError> {
        match *self {
            Self::AlphaBeta { alpha, beta } | Self::Daga { alpha, beta } | Self::Yasui { alpha, beta } => {
                positive("alpha", alpha).and_then(|()| positive("beta", beta))
            }
            // Factors of 0 and less are the release's way to say "always".
            Self::Gunrock(Gunrock { do_a, do_b }) => finite("do_a", do_a).and_then(|()| finite("do_b", do_b)),
            Self::Enterprise { gamma } => fraction("gamma", gamma),
            Self::EnterpriseReleased { edge_share } => fraction("edge_share", edge_share),
            Self::Xbfs { ratio } => fraction("ratio", ratio),
            Self::Sampled(SampledCosts { word, vertex, probe }) => {
                positive("word", word).and_then(|()| positive("vertex", vertex)).and_then(|()| positive("probe", probe))
            }
            Self::Concurrent(Splitting { gpu_permille, .. })
            | Self::Asynchronous(Parting { gpu_permille, .. })
            | Self::RemisConcurrent { gpu_permille, .. } => {
                if (1..1000).contains(&gpu_permille) {
                    Ok(())
                } else {
                    Err(PolicyError::NotAShare(gpu_permille))
                }
            }
            Self::Auto
            | Self::Tc
            | Self::Bc
            | Self::Gpu(_)
            | Self::Selective(_)
            | Self::RemisSelective { .. }
            | Self::Mlp(_)
            | Self::Replay(_) => Ok(()),
            Self::CostModel(ref model) => model.validate().map_err(PolicyError::CostModel),
        }
    }

    /// A network with the shipped weights.
    fn network(form: mlp::Form) -> Result<Self, PolicyError> {
        Mlp::shipped(form).map(Self::Mlp).map_err(|reason| PolicyError::Weights { policy: form.name(), reason })
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
            "cost-model" => Ok(Self::CostModel(Box::new(CostModel::shipped(Form::Full)))),
            "asynchronous" => Ok(Self::Asynchronous(Parting::default())),
            "gunrock" => Ok(Self::Gunrock(Gunrock::default())),
            "enterprise" => Ok(Self::Enterprise { gamma: enterprise::DEFAULT_GAMMA }),
            "enterprise-released" => Ok(Self::EnterpriseReleased { edge_share: enterprise::DEFAULT_EDGE_SHARE }),
            "xbfs" => Ok(Self::Xbfs { ratio: xbfs::DEFAULT_RATIO }),
            "daga" => Ok(Self::Daga { alpha: daga::DEFAULT_ALPHA, beta: daga::DEFAULT_BETA }),
            "yasui" => Ok(Self::Yasui { alpha: yasui::DEFAULT_ALPHA, beta: yasui::DEFAULT_BETA }),
            "remis-selective" => Ok(Self::RemisSelective { vertices: remis::DEFAULT_LARGE_FRONTIER }),
            "remis-concurrent" => Ok(Self::RemisConcurrent { vertices: remis::DEFAULT_LARGE_FRONTIER, gpu_permille: 500 }),
            "surf" => Self::network(mlp::Form::Surf),
            "mlp" => Self::network(mlp::Form::Mlp),
            _ => Err(PolicyError::Unknown(kind.to_owned())),
        }
    }
}

fn positive(name: &'static str, value: f64) -> Result<(), PolicyError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(PolicyError::OutOfRange { name, value }) }
}

fn fraction(name: &'static str, value: f64) -> Result<(), PolicyError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(PolicyError::NotAFraction { name, value }) }
}

fn finite(name: &'static str, value: f64) -> Result<(), PolicyError> {
    if value.is_finite() { Ok(()) } else { Err(PolicyError::NotFinite { name, value }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_display_are_inverse() {
        for text in ["auto", "tc", "bc", "tg", "tgm", "bg", "bgc", "sampled", "sampled:0.5,1,2.25", "alpha-beta:15,18"]
            .into_iter()
            .chain(["alpha-beta:0.5,24.25", "selective", "selective:1000,never", "selective:0,77", "concurrent"])
            .chain(["concurrent:100,never,250", "asynchronous", "asynchronous:99,1", "gunrock:0.001,0.2", "gunrock:0.00005,-1"])
            .chain(["enterprise:0.3", "enterprise-released:0.25", "xbfs:0.1", "daga:14,24", "yasui:10,1.5", "remis-selective:77"])
            .chain(["remis-concurrent:0,1"])
        {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        assert_eq!("alpha-beta".parse(), Ok(Policy::AlphaBeta { alpha: DEFAULT_ALPHA, beta: DEFAULT_BETA }));
        assert_eq!("alpha-beta: 2 , 3".parse(), Ok(Policy::AlphaBeta { alpha: 2.0, beta: 3.0 }));
        for (text, whole) in [
            ("gunrock", "gunrock:0.001,0.2"),
            ("enterprise", "enterprise:0.3"),
            ("enterprise-released", "enterprise-released:0.3"),
            ("xbfs", "xbfs:0.1"),
            ("daga", "daga:14,24"),
            ("yasui", "yasui:14,24"),
            ("remis-selective", "remis-selective:10000"),
            ("remis-concurrent", "remis-concurrent:10000,500"),
        ] {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), whole);
        }
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
        for text in ["gunrock:1", "enterprise:", "enterprise:30%", "xbfs:0.1,0.2", "daga:1", "yasui:a,b", "remis-selective:-1"] {
            assert!(matches!(refused(text), PolicyError::BadParameters { .. }), "{text}");
        }
        assert_eq!(refused("yasui:0,1"), PolicyError::OutOfRange { name: "alpha", value: 0.0 });
        assert_eq!(refused("gunrock:1,inf"), PolicyError::NotFinite { name: "do_b", value: f64::INFINITY });
        assert_eq!(refused("enterprise:1.5"), PolicyError::NotAFraction { name: "gamma", value: 1.5 });
        assert_eq!(refused("enterprise-released:-0.1"), PolicyError::NotAFraction { name: "edge_share", value: -0.1 });
        assert!(matches!(refused("xbfs:nan"), PolicyError::NotAFraction { name: "ratio", .. }));
        assert_eq!(refused("remis-concurrent:5,1000"), PolicyError::NotAShare(1000));
        for text in ["replay", "replay:r.json"] {
            assert!(matches!(refused(text), PolicyError::Unknown(_)), "{text}");
        }
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
            ("kind = 'alpha-beta'\ngamma = 3", "alpha-beta does not take gamma"),
            ("kind = 'alpha-beta'\ndelta = 3", "delta"),
            ("kind = 'enterprise'\ngamma = 3", "0 to 1"),
            ("kind = 'xbfs'\nalpha = 3", "xbfs does not take alpha"),
            ("kind = 'remis-selective'\nsplit_from_vertices = 3", "remis-selective does not take split_from_vertices"),
            ("kind = 'replay'", "unknown policy"),
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
            Policy::Gunrock(Gunrock { do_a: 100.0, do_b: -1.0 }),
            Policy::Enterprise { gamma: 0.25 },
            Policy::EnterpriseReleased { edge_share: 0.5 },
            Policy::Xbfs { ratio: 0.0 },
            Policy::Daga { alpha: 1.0, beta: 2.0 },
            Policy::Yasui { alpha: 3.0, beta: 4.0 },
            Policy::RemisSelective { vertices: 5 },
            Policy::RemisConcurrent { vertices: 6, gpu_permille: 7 },
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
