//! Policies decide in which direction and where each level runs. They are pure: no clock, no device (design rule 3).
//!
//! The file of a policy holds everything about it: its name, help and source (`KNOWN`), its parameters with defaults and ranges (which
//! define its text and TOML), its requirements on devices, and its rule. A rule that compares a few numbers of a level is a row in
//! `published.rs`. A policy with a file of its own needs, here, a module and a line in the list.

mod adaptive;
mod auto;
mod band;
mod cost_model;
mod fixed;
mod history;
pub mod mlp;
mod own_planner;
mod own_rule;
mod planner;
mod published;
mod replay;
mod rule;
mod sampled;
mod text;

use std::borrow::Cow;

pub use adaptive::{Adaptive, Bands, work_of};
pub use auto::Auto;
pub use band::{Band, NEVER};
pub use cost_model::{
    ChangeCost, CostModel, CostModelError, LEAST_RATIO, ModelTerms, Objective, StrategyCost, expected_probes, together_ns,
};
pub use history::Frontiers;
pub use mlp::Mlp;
pub use own_rule::{OwnRule, RuleError, RuleName, rule_names};
pub use planner::PolicyPlanner;
pub use published::Published;
pub use replay::Replay;
use rule::Rule;
pub use rule::{Known, LevelDevice};

use socbfs::bfs::{AnyPlanner, GpuKernel, Planner, SampledCosts, Strategy, Uses};

/// Defines [`Policy`] from the list: its variants, and access to the rule of each.
macro_rules! policies {
    ($($(#[$doc:meta])* $module:ident: $name:ident($type:ty),)*) => {
        /// A policy, as named on the command line and tagged in TOML.
        ///
        /// On the command line a policy is a name, with parameters after a colon ([`known`] lists them). In TOML it is a table with the key
        /// `kind` and optional keys for the parameters, which `boards/README.md` lists.
        ///
        /// ```
        /// use socbfs_policy::Policy;
        ///
        /// let beamer: Policy = "alpha-beta:15,18".parse()?;
        /// assert_eq!((beamer.kind(), beamer.needs_device()), ("alpha-beta", false));
        /// let typo = "alfa-beta".parse::<Policy>().unwrap_err();
        /// assert!(typo.to_string().contains("known: auto, "), "{typo}");
        /// for known in socbfs_policy::known() {
        ///     println!("{}: {}", known.kind, known.summary);
        /// }
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum Policy {
            $($(#[$doc])* $name($type),)*
            /// The plans of earlier searches. (It is made from records and has no text or TOML.)
            Replay(Replay),
            /// A planner of the program's own ([`Policy::planner`]). (It has no text or TOML.)
            Planner(AnyPlanner),
        }

        /// The policies that each file defines, in the order of the list.
        const FILES: &[&[Known]] = &[$($module::KNOWN),*];

        impl Policy {
            fn rule(&self) -> &dyn Rule {
                match self {
                    $(Self::$name(rule) => rule.as_rule(),)*
                    Self::Replay(replay) => replay,
                    Self::Planner(planner) => planner,
                }
            }

            fn rule_mut(&mut self) -> &mut dyn Rule {
                match self {
                    $(Self::$name(rule) => rule.as_rule_mut(),)*
                    Self::Replay(replay) => replay,
                    Self::Planner(planner) => planner,
                }
            }
        }
    };
}

policies! {
    /// The best for this graph and these devices.
    auto: Auto(Auto),
    /// Always the same strategy: `tc`, `bc`, `tg`, `tgm`, `bg` or `bgc`.
    fixed: Fixed(Strategy),
    /// Costs compared on a sample of unvisited vertices.
    sampled: Sampled(SampledCosts),
    /// The strategy with the least predicted cost, by a model.
    cost_model: CostModel(Box<CostModel>),
    /// A rule of a published system: direction, or direction and device, by a few numbers of the level.
    published: Published(Published),
    /// A neural network decides the direction: `surf` or `mlp`.
    mlp: Mlp(Mlp),
    /// CPU, GPU or both, level by level, by costs and bounds (`selective` and `concurrent` too).
    adaptive: Adaptive(Box<Adaptive>),
    /// A rule that a user wrote.
    own_rule: OwnRule(OwnRule),
}

impl Default for Policy {
    fn default() -> Self {
        Self::Auto(Auto)
    }
}

/// All policies with a name.
pub fn known() -> impl Iterator<Item = &'static Known> {
    FILES.iter().copied().flatten()
}

/// The names with their parameters, for a message.
fn names() -> String {
    let name = |known: &Known| match known.parameters {
        "" => known.kind.to_owned(),
        parameters => format!("{}[:{parameters}]", known.kind),
    };
    known().map(name).collect::<Vec<_>>().join(", ")
}

/// The parameters of the policy of this name, for a message.
fn takes(kind: &str) -> String {
    let mut policy = Policy::from_kind(kind).unwrap_or_default();
    let names: Vec<&str> = policy.rule_mut().parameters().iter().map(|own| own.name).collect();
    if names.is_empty() { "; it takes no parameter".to_owned() } else { format!("; it takes {}", names.join(", ")) }
}

/// Why a policy could not be understood.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// No policy has this name.
    #[error("unknown policy {0:?}; known: {names}, and replay:FILE, surf:FILE, mlp:FILE on the command line", names = names())]
    Unknown(String),
    /// The policy has no such parameter.
    #[error("policy {kind} does not take {given}{}", takes(kind))]
    NoParameters {
        /// The policy.
        kind: &'static str,
        /// What was given.
        given: String,
    },
    /// The text after the colon is not what the policy takes.
    #[error("{kind} takes {wanted}; {given:?} does not fit")]
    BadParameters {
        /// The policy.
        kind: &'static str,
        /// The parameters that it takes.
        wanted: Cow<'static, str>,
        /// What was given.
        given: String,
    },
    /// The text after `rule:` is not a rule.
    #[error("rule: {0}")]
    Rule(#[from] RuleError),
    /// The policy `rule` without its rule.
    #[error("rule takes a condition, as in rule:frontier_edges > unvisited_edges / 14 and level > 1")]
    NoRule,
    /// Invalid weights of a network.
    #[error("policy {policy}: {reason}")]
    Weights {
        /// The policy.
        policy: &'static str,
        /// What is wrong.
        reason: mlp::WeightsError,
    },
    /// Invalid costs of a model.
    #[error("cost model: {0}")]
    CostModel(CostModelError),
    /// A share outside 1 to 999 thousandths.
    #[error("{name} is {value}; it must be a number of thousandths, 1 to 999")]
    NotAShare {
        /// Name of the share.
        name: &'static str,
        /// Its value.
        value: i64,
    },
    /// A share below 0 or above 1.
    #[error("{name} is {value}; it must be a share of the whole, 0 to 1")]
    NotAFraction {
        /// Name of the share.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A factor that is not a finite number.
    #[error("{name} is {value}; it must be a finite number")]
    NotFinite {
        /// Name of the factor.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// An invalid threshold.
    #[error("{name} is {value}; it must be a finite number above 0")]
    OutOfRange {
        /// Name of the threshold.
        name: &'static str,
        /// Its value.
        value: f64,
    },
}

impl Policy {
    /// A planner of the program's own as a policy, for what takes a policy: a `Runtime` of the crate `socbfs-boards`, a comparison with the
    /// oracle, a search over ranks. Each search has a copy of the planner. Records name it `planner:`, and the type.
    ///
    /// ```
    /// use socbfs_io::Generator;
    /// use socbfs::{BuildOptions, Layout, LevelPlan, LevelStats, Planner, Strategy};
    /// use socbfs_boards::Runtime;
    /// use socbfs_policy::Policy;
    ///
    /// /// Bottom-up at the two levels in the middle.
    /// #[derive(Clone)]
    /// struct Middle;
    ///
    /// impl Planner for Middle {
    ///     fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
    ///         if (2..4).contains(&stats.level) { Strategy::Bc.plan() } else { Strategy::Tc.plan() }
    ///     }
    /// }
    ///
    /// let layout = Layout::build(&Generator::graph500(10).generate(&|_| ())?, &BuildOptions::default())?;
    /// let mut runtime = Runtime::detect()?;
    /// runtime.policy.value = Policy::planner(Middle);
    /// let mut prepared = runtime.search(&layout)?;
    /// prepared.run(5)?;
    /// assert_eq!(prepared.choice.policy.to_string(), "planner:Middle");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn planner(planner: impl Planner + Clone + Send + Sync + 'static) -> Self {
        Self::Planner(AnyPlanner::new(planner))
    }

    /// The name without parameters, as on the command line and in TOML.
    pub fn kind(&self) -> &'static str {
        self.rule().known().kind
    }

    fn from_kind(kind: &str) -> Result<Self, PolicyError> {
        let known = known().find(|known| known.kind == kind).ok_or_else(|| PolicyError::Unknown(kind.to_owned()))?;
        (known.default)(kind)
    }

    /// Its requirements on devices. `runs` says where levels run if the policy decides only directions.
    pub fn uses(&self, runs: LevelDevice) -> Uses {
        self.rule().uses(runs)
    }

    /// It as the planner of a search. `runs` says where levels run if the policy decides only directions.
    pub fn on(self, runs: LevelDevice) -> AnyPlanner {
        AnyPlanner::new(PolicyPlanner::new(self, runs))
    }

    /// Whether it needs an OpenCL device.
    pub fn needs_device(&self) -> bool {
        self.uses(LevelDevice::Cpu) != Uses::default()
    }

    /// Whether it decides little without samples, which an engine may not take.
    pub fn needs_samples(&self) -> bool {
        self.rule().needs_samples()
    }

    /// Whether it decides directions only, so that its levels run on any device.
    pub fn decides_directions(&self) -> bool {
        !self.needs_device() && self.uses(LevelDevice::Gpu(GpuKernel::Bg)) == Uses::GPU
    }

    /// Whether it chooses between CPU, GPU, and both.
    pub fn runs_on_both(&self) -> bool {
        self.needs_device() && !self.uses(LevelDevice::Cpu).at_home_on_gpu
    }

    /// The bounds and costs by which [`Policy::Adaptive`] plans levels.
    pub fn adaptive(&self) -> Option<&Adaptive> {
        if let Self::Adaptive(adaptive) = self { Some(adaptive) } else { None }
    }

    /// Whether it decides directions by the default [`SampledCosts`].
    pub fn has_usual_costs(&self) -> bool {
        matches!(self, Self::Auto(_)) || matches!(self, Self::Sampled(costs) if *costs == SampledCosts::default())
    }

    /// As [`adaptive`](Self::adaptive), for values that a board, a calibration or a measurement fills in.
    pub fn adaptive_mut(&mut self) -> Option<&mut Adaptive> {
        if let Self::Adaptive(adaptive) = self { Some(adaptive) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_display_are_inverse() {
        for text in ["auto", "tc", "bc", "tg", "tgm", "bg", "bgc", "sampled", "sampled:0.5,1,2.25", "alpha-beta:15,18"]
            .into_iter()
            .chain(["alpha-beta:0.5,24.25", "selective", "selective:1000,never", "selective:0,77", "concurrent"])
            .chain(["adaptive", "adaptive:top_down_gpu_from=90000,bottom_up_split_from=never,bottom_up_gpu_permille=250"])
            .chain(["adaptive:1,2,3,400,5,never,7,800", "concurrent:bottom_up_split_from=5", "selective:bottom_up_gpu_from=5"])
            .chain(["concurrent:100,never,250", "asynchronous", "asynchronous:99,1", "gunrock:0.001,0.2", "gunrock:0.00005,-1"])
            .chain(["enterprise:0.3", "enterprise-released:0.25", "xbfs:0.1", "daga:14,24", "yasui:10,1.5", "remis-selective:77"])
            .chain(["remis-concurrent:0,1"])
        {
            assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
        }
        assert_eq!("alpha-beta".parse(), Ok(Policy::Published(Published::alpha_beta())));
        assert_eq!("alpha-beta: 2 , 3".parse::<Policy>(), "alpha-beta:2,3".parse());
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
        for text in ["selective:1", "selective:1,2,3", "selective:-1,2", "concurrent:1,2", "concurrent:1,2,x", "asynchronous:1"]
            .into_iter()
            .chain(["adaptive:1", "adaptive:gpu_from=1", "adaptive:top_down_up_to=x", "adaptive:top_down_up_to"])
        {
            assert!(matches!(refused(text), PolicyError::BadParameters { .. }), "{text}");
        }
        assert_eq!(refused("concurrent:1,1,1000"), PolicyError::NotAShare { name: "gpu_permille", value: 1000 });
        assert_eq!(refused("adaptive:top_down_gpu_permille=0"), PolicyError::NotAShare { name: "top_down_gpu_permille", value: 0 });
        assert_eq!(refused("asynchronous:1,0"), PolicyError::NotAShare { name: "gpu_permille", value: 0 });
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
        assert_eq!(refused("remis-concurrent:5,1000"), PolicyError::NotAShare { name: "gpu_permille", value: 1000 });
        for text in ["replay", "replay:r.json"] {
            assert!(matches!(refused(text), PolicyError::Unknown(_)), "{text}");
        }
        assert!(refused("mlp:w.toml").to_string().contains("only the command line reads mlp:FILE; \"w.toml\" does not fit"));
    }

    #[test]
    fn policies_are_read_from_toml_or_refused_with_a_reason() {
        let read = |text: &str| toml::from_str::<Policy>(text);
        assert_eq!(read("kind = 'tc'").unwrap(), Policy::Fixed(Strategy::Tc));
        assert_eq!(read("kind = 'alpha-beta'\nalpha = 50").unwrap(), "alpha-beta:50,18".parse().unwrap());
        for (text, reason) in [
            ("kind = 'tc'\nalpha = 3", "tc does not take alpha"),
            ("kind = 'selective'\ngpu_permille = 3", "selective does not take gpu_permille"),
            ("kind = 'concurrent'\ngpu_permille = 1000", "gpu_permille is 1000; it must be a number of thousandths, 1 to 999"),
            ("kind = 'concurrent'\ngpu_permille = 70000", "gpu_permille is 70000; it"),
            ("kind = 'adaptive'\ntop_down_gpu_permille = -5", "top_down_gpu_permille is -5; it"),
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
        for policy in [
            Policy::Auto(Auto),
            Policy::Fixed(Strategy::Bc),
            Policy::Fixed(Strategy::Tgm),
            "alpha-beta:2.5,7".parse().unwrap(),
            Policy::Sampled(SampledCosts::default()),
            Policy::Adaptive(Box::default()),
            Policy::Adaptive(Box::new(Adaptive::of(Bands {
                top_down: Band { gpu_from: Some(5), up_to: Some(1 << 40), ..Band::default() },
                bottom_up: Band { gpu_permille: Some(999), split_from: Some(NEVER), ..Band::default() },
            }))),
            "selective".parse().unwrap(),
            "selective:5,never".parse().unwrap(),
            "concurrent".parse().unwrap(),
            "concurrent:7,never,1".parse().unwrap(),
            "asynchronous:1,999".parse().unwrap(),
            "gunrock:100,-1".parse().unwrap(),
            "enterprise:0.25".parse().unwrap(),
            "enterprise-released:0.5".parse().unwrap(),
            "xbfs:0".parse().unwrap(),
            "daga:1,2".parse().unwrap(),
            "yasui:3,4".parse().unwrap(),
            "remis-selective:5".parse().unwrap(),
            "remis-concurrent:6,7".parse().unwrap(),
        ] {
            assert_eq!(toml::from_str::<Policy>(&toml::to_string(&policy).unwrap()).unwrap(), policy);
        }
    }

    #[test]
    fn every_known_name_is_parsed_as_its_policy() {
        let mut names = std::collections::BTreeSet::new();
        for known in known() {
            assert!(names.insert(known.kind), "{known:?}");
            let Some(mut policy) = known.policy() else {
                // `rule` has no default, and its text is not a list.
                assert_eq!((known.kind, known.kind.parse::<Policy>()), ("rule", Err(PolicyError::NoRule)));
                continue;
            };
            assert_eq!(known.kind.parse(), Ok(policy.clone()));
            assert_eq!(policy.kind(), known.kind);
            // Text and TOML read back as the same policy.
            assert_eq!(policy.to_string().parse(), Ok(policy.clone()), "{known:?}");
            assert_eq!(toml::from_str(&toml::to_string(&policy).unwrap()), Ok(policy.clone()), "{known:?}");
            // The help names as many parameters as there are.
            let words = known.parameters.split(',').filter(|word| !word.is_empty()).count();
            let parameters = policy.rule_mut().parameters().len();
            match &policy {
                // Weights have no text, and the help abbreviates the parameters of the bands.
                Policy::Mlp(_) => assert_eq!((words, parameters), (0, 1)),
                Policy::Adaptive(_) if known.kind == "adaptive" => assert_eq!(parameters, 8),
                _ => assert_eq!(words, parameters, "{known:?}"),
            }
            let with = |count: usize| format!("{}:{}", known.kind, vec!["1"; count].join(",")).parse::<Policy>();
            assert_eq!(with(words).is_ok(), words > 0 && !["cost-model", "adaptive"].contains(&known.kind), "{known:?}");
            assert!(with(parameters + 1).is_err(), "{known:?}");
        }
        assert_eq!("cost-model:zhang".parse::<Policy>().unwrap().to_string(), "cost-model:zhang");
        assert!("cost-model:1".parse::<Policy>().is_err());
        assert!(super::names().starts_with("auto, tc, tg, tgm, bc, bg, bgc, sampled[:WORD,VERTEX,PROBE], "));
    }

    #[test]
    fn every_file_with_a_rule_is_in_the_list() {
        // The list has a line for every module with a rule.
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut rules = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let file = if path.is_dir() { path.join("mod.rs") } else { path };
            if file.parent() != Some(&folder) || file.file_name().is_some_and(|name| name != "lib.rs") {
                // A folder of data has no such file.
                let text = std::fs::read_to_string(&file).unwrap_or_default();
                rules += usize::from(text.contains("pub(super) const KNOWN: &[Known]"));
            }
        }
        assert_eq!(FILES.len(), rules);
    }

    #[test]
    fn the_page_about_policies_names_the_source_of_each() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/policies.md")).unwrap();
        for known in known() {
            let is_named = |cell: &str| cell.split('`').any(|word| word.split(['[', ':']).next() == Some(known.kind));
            let rows = page.lines().filter_map(|row| row.strip_prefix("| ")?.split_once(" |"));
            let row = rows.into_iter().find(|(names, _)| is_named(names)).unwrap_or_else(|| panic!("{known:?}"));
            let source = row.1.split_once('|').unwrap().0.trim();
            assert!(source.contains(known.from) && source.is_empty() == known.from.is_empty(), "{known:?}: {source}");
        }
    }

    #[test]
    fn policies_declare_the_devices_they_use() {
        let uses = |text: &str, runs| text.parse::<Policy>().unwrap().uses(runs);
        let bgc = LevelDevice::Gpu(GpuKernel::Bgc);
        for (text, on_cpu, on_gpu) in [
            ("auto", Uses::CPU, Uses::GPU),
            ("tc", Uses::CPU, Uses::CPU),
            ("bgc", Uses::GPU, Uses::GPU),
            ("yasui", Uses::CPU, Uses::CPU),
            ("xbfs", Uses::CPU, Uses::GPU),
            ("cost-model", Uses::CPU, Uses::CPU),
            ("daga", Uses::EITHER, Uses::EITHER),
            ("selective:5,never", Uses::EITHER, Uses::EITHER),
            ("concurrent", Uses::TOGETHER, Uses::TOGETHER),
            ("adaptive", Uses { alone: true, ..Uses::TOGETHER }, Uses { alone: true, ..Uses::TOGETHER }),
            ("adaptive:never,5,never,500,never,never,never,500", Uses::TOGETHER, Uses::TOGETHER),
            ("adaptive:5,never,never,500,never,never,never,500", Uses::EITHER, Uses::EITHER),
        ] {
            assert_eq!((uses(text, LevelDevice::Cpu), uses(text, bgc)), (on_cpu, on_gpu), "{text}");
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
