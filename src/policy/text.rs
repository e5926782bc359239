//! Policies as text and as TOML.

use serde::{Deserialize, Serialize};

use super::{
    CostModel, Form, Gunrock, Mlp, NEVER, Parting, Policy, PolicyError, SampledCosts, Splitting, Threshold, Thresholds, mlp::Weights,
};

/// Splits `text` at its commas into exactly `N` values.
fn values<T: std::str::FromStr, const N: usize>(text: &str, policy: &Policy, wanted: &'static str) -> Result<[T; N], PolicyError> {
    let bad = || PolicyError::BadParameters { kind: policy.kind(), wanted, given: text.to_owned() };
    let parsed: Result<Vec<T>, _> = text.split(',').map(|value| value.trim().parse::<T>().map_err(|_| bad())).collect();
    parsed?.try_into().map_err(|_| bad())
}

/// A number of edges or vertices, or `never`.
#[derive(Clone, Copy)]
struct Amount(u64);

impl std::str::FromStr for Amount {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "never" { Ok(Self(NEVER)) } else { text.parse().map(Self) }
    }
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == NEVER { f.write_str("never") } else { self.0.fmt(f) }
    }
}

impl std::str::FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let Some((kind, parameters)) = text.split_once(':') else { return Self::from_kind(text) };
        let named = Self::from_kind(kind)?;
        let policy = match &named {
            Self::AlphaBeta { .. } => {
                let [alpha, beta] = values(parameters, &named, "two numbers, as in alpha-beta:15,18")?;
                Self::AlphaBeta { alpha, beta }
            }
            Self::Sampled(_) => {
                let [word, vertex, probe] = values(parameters, &named, "three costs, as in sampled:0.5,0.25,0.35")?;
                Self::Sampled(SampledCosts { word, vertex, probe })
            }
            Self::Selective(_) => {
                let wanted = "edges of the frontier and unvisited vertices from which on the GPU runs a level (or never), as in \
                              selective:100000,never";
                let [Amount(edges), Amount(vertices)] = values(parameters, &named, wanted)?;
                Self::Selective(Some(Thresholds { top_down: Threshold::at(edges), bottom_up: Threshold::at(vertices) }))
            }
            Self::Concurrent(_) => {
                let wanted = "edges of the frontier and unvisited vertices from which on a level is split (or never), and the GPU's \
                              share in thousandths, as in concurrent:100000,100000,500";
                let [Amount(edges), Amount(vertices), Amount(share)] = values(parameters, &named, wanted)?;
                let gpu_permille = share.min(u64::from(u16::MAX)) as u16;
                Self::Concurrent(Splitting { top_down_from_edges: edges, bottom_up_from_vertices: vertices, gpu_permille })
            }
            Self::Asynchronous(_) => {
                let wanted = "edges of the frontier at which the searches part, and the GPU's share in thousandths, as in \
                              asynchronous:4096,500";
                let [Amount(from_edges), Amount(share)] = values(parameters, &named, wanted)?;
                Self::Asynchronous(Parting { from_edges, gpu_permille: share.min(u64::from(u16::MAX)) as u16 })
            }
            Self::Gunrock(_) => {
                let [do_a, do_b] = values(parameters, &named, "two factors, as in gunrock:0.001,0.2")?;
                Self::Gunrock(Gunrock { do_a, do_b })
            }
            Self::Enterprise { .. } => {
                let [gamma] = values(parameters, &named, "a share of the hubs, as in enterprise:0.3")?;
                Self::Enterprise { gamma }
            }
            Self::EnterpriseReleased { .. } => {
                let [edge_share] = values(parameters, &named, "a share of the arcs, as in enterprise-released:0.3")?;
                Self::EnterpriseReleased { edge_share }
            }
            Self::Xbfs { .. } => {
                let [ratio] = values(parameters, &named, "a share of the arcs, as in xbfs:0.1")?;
                Self::Xbfs { ratio }
            }
            Self::Daga { .. } => {
                let [alpha, beta] = values(parameters, &named, "two numbers, as in daga:14,24")?;
                Self::Daga { alpha, beta }
            }
            Self::Yasui { .. } => {
                let [alpha, beta] = values(parameters, &named, "two numbers, as in yasui:14,24")?;
                Self::Yasui { alpha, beta }
            }
            Self::RemisSelective { .. } => {
                let wanted = "vertices of the frontier from which on the GPU runs a level, as in remis-selective:10000";
                let [vertices] = values(parameters, &named, wanted)?;
                Self::RemisSelective { vertices }
            }
            Self::RemisConcurrent { .. } => {
                let wanted = "vertices of the frontier from which on a level is split, and the GPU's share in thousandths, as in \
                              remis-concurrent:10000,500";
                let [vertices, share] = values::<u32, 2>(parameters, &named, wanted)?;
                Self::RemisConcurrent { vertices, gpu_permille: share.min(u32::from(u16::MAX)) as u16 }
            }
            Self::CostModel(_) => {
                let form = match parameters.trim() {
                    "full" => Form::Full,
                    "zhang" => Form::Zhang,
                    _ => {
                        let wanted = "a form, full or zhang, as in cost-model:zhang";
                        return Err(PolicyError::BadParameters { kind: named.kind(), wanted, given: parameters.to_owned() });
                    }
                };
                Self::CostModel(Box::new(CostModel::shipped(form)))
            }
            Self::Auto | Self::Tc | Self::Bc | Self::Gpu(_) | Self::Mlp(_) | Self::Replay(_) => {
                return Err(PolicyError::NoParameters { kind: named.kind(), given: parameters.to_owned() });
            }
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
            Self::Selective(Some(thresholds)) => {
                write!(f, "selective:{},{}", Amount(thresholds.top_down.go), Amount(thresholds.bottom_up.go))
            }
            Self::Concurrent(splitting) if *splitting != Splitting::default() => {
                let (edges, vertices) = (Amount(splitting.top_down_from_edges), Amount(splitting.bottom_up_from_vertices));
                write!(f, "concurrent:{edges},{vertices},{}", splitting.gpu_permille)
            }
            Self::Asynchronous(parting) if *parting != Parting::default() => {
                write!(f, "asynchronous:{},{}", parting.from_edges, parting.gpu_permille)
            }
            Self::Gunrock(Gunrock { do_a, do_b }) => write!(f, "gunrock:{do_a},{do_b}"),
            Self::Enterprise { gamma } => write!(f, "enterprise:{gamma}"),
            Self::EnterpriseReleased { edge_share } => write!(f, "enterprise-released:{edge_share}"),
            Self::Xbfs { ratio } => write!(f, "xbfs:{ratio}"),
            Self::Daga { alpha, beta } => write!(f, "daga:{alpha},{beta}"),
            Self::Yasui { alpha, beta } => write!(f, "yasui:{alpha},{beta}"),
            Self::RemisSelective { vertices } => write!(f, "remis-selective:{vertices}"),
            Self::RemisConcurrent { vertices, gpu_permille } => write!(f, "remis-concurrent:{vertices},{gpu_permille}"),
            Self::Mlp(mlp) => match mlp.origin() {
                Some(origin) => write!(f, "{}:{origin}", self.kind()),
                None => f.write_str(self.kind()),
            },
            Self::CostModel(model) if model.form == Form::Zhang => f.write_str("cost-model:zhang"),
            other => f.write_str(other.kind()),
        }
    }
}

/// A policy as it stands in a TOML table. A struct of its own, because serde ignores unknown keys beside a tag without fields.
/// A threshold that is missing on one side is never reached; TOML's integers have 63 bits, and "never" is the absence of
/// a number.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PolicyTable {
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<Form>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    word: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vertex: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_down_gpu_from_edges: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_down_gpu_stay_from_edges: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bottom_up_gpu_from_vertices: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bottom_up_gpu_stay_from_vertices: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_down_split_from_edges: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bottom_up_split_from_vertices: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_edges: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_permille: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    do_a: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    do_b: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gamma: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edge_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_from_vertices: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    split_from_vertices: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Weights>,
}

impl PolicyTable {
    /// The keys that are set, with their values, for a message.
    fn set(&self) -> impl Iterator<Item = (&'static str, String)> {
        fn shown<T: ToString>(key: &'static str, value: Option<T>) -> Option<(&'static str, String)> {
            value.map(|value| (key, value.to_string()))
        }
        [
            shown("form", self.form.map(|form| if form == Form::Zhang { "zhang" } else { "full" })),
            shown("alpha", self.alpha),
            shown("beta", self.beta),
            shown("word", self.word),
            shown("vertex", self.vertex),
            shown("probe", self.probe),
            shown("top_down_gpu_from_edges", self.top_down_gpu_from_edges),
            shown("top_down_gpu_stay_from_edges", self.top_down_gpu_stay_from_edges),
            shown("bottom_up_gpu_from_vertices", self.bottom_up_gpu_from_vertices),
            shown("bottom_up_gpu_stay_from_vertices", self.bottom_up_gpu_stay_from_vertices),
            shown("top_down_split_from_edges", self.top_down_split_from_edges),
            shown("bottom_up_split_from_vertices", self.bottom_up_split_from_vertices),
            shown("from_edges", self.from_edges),
            shown("gpu_permille", self.gpu_permille),
            shown("do_a", self.do_a),
            shown("do_b", self.do_b),
            shown("gamma", self.gamma),
            shown("edge_share", self.edge_share),
            shown("ratio", self.ratio),
            shown("gpu_from_vertices", self.gpu_from_vertices),
            shown("split_from_vertices", self.split_from_vertices),
            self.network.as_ref().map(|network| ("network", format!("weights of {}", network.policy.name()))),
        ]
        .into_iter()
        .flatten()
    }
}

/// The keys that a policy takes.
fn keys(policy: &Policy) -> &'static [&'static str] {
    match policy {
        Policy::AlphaBeta { .. } | Policy::Daga { .. } | Policy::Yasui { .. } => &["alpha", "beta"],
        Policy::Gunrock(_) => &["do_a", "do_b"],
        Policy::Enterprise { .. } => &["gamma"],
        Policy::EnterpriseReleased { .. } => &["edge_share"],
        Policy::Xbfs { .. } => &["ratio"],
        Policy::RemisSelective { .. } => &["gpu_from_vertices"],
        Policy::RemisConcurrent { .. } => &["split_from_vertices", "gpu_permille"],
        Policy::Sampled(_) => &["word", "vertex", "probe"],
        Policy::Selective(_) => {
            &["top_down_gpu_from_edges", "top_down_gpu_stay_from_edges", "bottom_up_gpu_from_vertices", "bottom_up_gpu_stay_from_vertices"]
        }
        Policy::Concurrent(_) => &["top_down_split_from_edges", "bottom_up_split_from_vertices", "gpu_permille"],
        Policy::Asynchronous(_) => &["from_edges", "gpu_permille"],
        Policy::Mlp(_) => &["network"],
        Policy::CostModel(_) => &["form"],
        Policy::Auto | Policy::Tc | Policy::Bc | Policy::Gpu(_) | Policy::Replay(_) => &[],
    }
}

impl TryFrom<PolicyTable> for Policy {
    type Error = PolicyError;

    fn try_from(table: PolicyTable) -> Result<Self, PolicyError> {
        let mut policy = Self::from_kind(&table.kind)?;
        let known = keys(&policy);
        if let Some((key, value)) = table.set().find(|(key, _)| !known.contains(key)) {
            return Err(PolicyError::NoParameters { kind: policy.kind(), given: format!("{key} = {value}") });
        }
        let any = table.set().next().is_some();
        let threshold = |go: Option<u64>, stay: Option<u64>| match (go, stay) {
            (None, None) => Threshold::NEVER,
            (go, stay) => Threshold { go: go.unwrap_or(NEVER), stay: stay.or(go).unwrap_or(NEVER) },
        };
        match &mut policy {
            Self::AlphaBeta { alpha, beta } | Self::Daga { alpha, beta } | Self::Yasui { alpha, beta } => {
                (*alpha, *beta) = (table.alpha.unwrap_or(*alpha), table.beta.unwrap_or(*beta));
            }
            Self::Gunrock(rule) => {
                rule.do_a = table.do_a.unwrap_or(rule.do_a);
                rule.do_b = table.do_b.unwrap_or(rule.do_b);
            }
            Self::Enterprise { gamma } => *gamma = table.gamma.unwrap_or(*gamma),
            Self::EnterpriseReleased { edge_share } => *edge_share = table.edge_share.unwrap_or(*edge_share),
            Self::Xbfs { ratio } => *ratio = table.ratio.unwrap_or(*ratio),
            Self::RemisSelective { vertices } => *vertices = table.gpu_from_vertices.unwrap_or(*vertices),
            Self::RemisConcurrent { vertices, gpu_permille } => {
                *vertices = table.split_from_vertices.unwrap_or(*vertices);
                *gpu_permille = table.gpu_permille.unwrap_or(*gpu_permille);
            }
            Self::Sampled(costs) => {
                costs.word = table.word.unwrap_or(costs.word);
                costs.vertex = table.vertex.unwrap_or(costs.vertex);
                costs.probe = table.probe.unwrap_or(costs.probe);
            }
            Self::Selective(thresholds) => {
                *thresholds = any.then(|| Thresholds {
                    top_down: threshold(table.top_down_gpu_from_edges, table.top_down_gpu_stay_from_edges),
                    bottom_up: threshold(table.bottom_up_gpu_from_vertices, table.bottom_up_gpu_stay_from_vertices),
                });
            }
            Self::Concurrent(splitting) => {
                splitting.top_down_from_edges = table.top_down_split_from_edges.unwrap_or(splitting.top_down_from_edges);
                splitting.bottom_up_from_vertices = table.bottom_up_split_from_vertices.unwrap_or(splitting.bottom_up_from_vertices);
                splitting.gpu_permille = table.gpu_permille.unwrap_or(splitting.gpu_permille);
            }
            Self::Asynchronous(parting) => {
                parting.from_edges = table.from_edges.unwrap_or(parting.from_edges);
                parting.gpu_permille = table.gpu_permille.unwrap_or(parting.gpu_permille);
            }
            Self::Mlp(mlp) => {
                if let Some(weights) = &table.network {
                    let policy = mlp.form().name();
                    *mlp = Mlp::of(mlp.form(), weights).map_err(|reason| PolicyError::Weights { policy, reason })?;
                }
            }
            Self::CostModel(model) => {
                if let Some(form) = table.form {
                    **model = CostModel::shipped(form);
                }
            }
            Self::Auto | Self::Tc | Self::Bc | Self::Gpu(_) | Self::Replay(_) => {}
        }
        policy.validate()?;
        Ok(policy)
    }
}

impl From<Policy> for PolicyTable {
    fn from(policy: Policy) -> Self {
        let mut table = Self { kind: policy.kind().to_owned(), ..Self::default() };
        let amount = |value: u64| (value != NEVER).then_some(value);
        match policy {
            Policy::AlphaBeta { alpha, beta } | Policy::Daga { alpha, beta } | Policy::Yasui { alpha, beta } => {
                (table.alpha, table.beta) = (Some(alpha), Some(beta));
            }
            Policy::Gunrock(Gunrock { do_a, do_b }) => (table.do_a, table.do_b) = (Some(do_a), Some(do_b)),
            Policy::Enterprise { gamma } => table.gamma = Some(gamma),
            Policy::EnterpriseReleased { edge_share } => table.edge_share = Some(edge_share),
            Policy::Xbfs { ratio } => table.ratio = Some(ratio),
            Policy::RemisSelective { vertices } => table.gpu_from_vertices = Some(vertices),
            Policy::RemisConcurrent { vertices, gpu_permille } => {
                (table.split_from_vertices, table.gpu_permille) = (Some(vertices), Some(gpu_permille));
            }
            Policy::Sampled(costs) => (table.word, table.vertex, table.probe) = (Some(costs.word), Some(costs.vertex), Some(costs.probe)),
            Policy::Selective(Some(Thresholds { top_down, bottom_up })) => {
                table.top_down_gpu_from_edges = amount(top_down.go);
                table.top_down_gpu_stay_from_edges = amount(top_down.stay);
                table.bottom_up_gpu_from_vertices = amount(bottom_up.go);
                table.bottom_up_gpu_stay_from_vertices = amount(bottom_up.stay);
            }
            Policy::Concurrent(splitting) => {
                table.top_down_split_from_edges = amount(splitting.top_down_from_edges);
                table.bottom_up_split_from_vertices = amount(splitting.bottom_up_from_vertices);
                table.gpu_permille = Some(splitting.gpu_permille);
            }
            Policy::Asynchronous(parting) => {
                table.from_edges = amount(parting.from_edges);
                table.gpu_permille = Some(parting.gpu_permille);
            }
            Policy::Mlp(mlp) => table.network = (!mlp.is_shipped()).then(|| mlp.weights()),
            Policy::CostModel(model) => table.form = Some(model.form),
            Policy::Selective(None) | Policy::Auto | Policy::Tc | Policy::Bc | Policy::Gpu(_) | Policy::Replay(_) => {}
        }
        table
    }
}
