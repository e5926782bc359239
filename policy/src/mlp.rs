//! Direction by a small neural network: SURF (Yoon and Oh 2022), and our own network of the same kind.
//!
//! Both are multilayer perceptrons with one hidden layer of rectified linear units and one logistic output. A level is bottom-up if the
//! output is at least 1/2, so the sign of its argument decides, and no exponential is computed. Level 0 is always top-down. The two
//! networks differ in their inputs:
//!
//! - `surf` has SURF's six inputs as published, unscaled ([`surf_inputs`]), and its six hidden units;
//! - `mlp` has logarithms of what the engines count and sample ([`log_inputs`]), which suit graphs of every size.
//!
//! The weights are ours (SURF's have no licence): `socbfs train` made them, and each file begins with its command line.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};

use super::{
    Policy, PolicyError,
    history::History,
    rule::{Known, LevelDevice, Parameter, Rule, Special, Value},
};
use socbfs::{
    bfs::{LevelStats, SampledCosts},
    words::line_at,
};

/// In the order of [`NetworkKind::ALL`].
pub(super) const KNOWN: &[Known] = &[
    Known {
        kind: "surf",
        parameters: "",
        summary: "direction by SURF's neural network, with weights trained here, else built-in ones for the CPU; surf:FILE uses those of FILE",
        from: "SURF 2022",
        default: |_| network(NetworkKind::Surf),
    },
    Known {
        kind: "mlp",
        parameters: "",
        summary: "direction by our neural network, with weights trained here, else built-in ones for the CPU; mlp:FILE uses those of FILE",
        from: "",
        default: |_| network(NetworkKind::Mlp),
    },
];

/// A network with the shipped weights.
fn network(form: NetworkKind) -> Result<Policy, PolicyError> {
    Mlp::shipped(form).map(Policy::Mlp).map_err(|reason| PolicyError::Weights { policy: form.name(), reason })
}

/// Number of SURF's inputs.
pub const SURF_INPUTS: usize = 6;
/// Number of SURF's hidden units.
pub const SURF_HIDDEN: usize = 6;
/// Number of inputs of our network.
pub const LOG_INPUTS: usize = 11;
/// Number of hidden units of our network.
pub const LOG_HIDDEN: usize = 32;

/// The costs of bottom-up levels in a network's inputs. The weights were trained with these costs, so they stay even if the defaults of
/// `sampled` change.
const COSTS: SampledCosts = SampledCosts { word: 0.5, vertex: 0.25, probe: 0.35 };

/// The schema of weights that this version reads and writes.
const SCHEMA: u32 = 1;

static SHIPPED_SURF: LazyLock<Result<Mlp, WeightsError>> = LazyLock::new(|| Mlp::parse(include_str!("weights/surf.toml")));
static SHIPPED_LOG: LazyLock<Result<Mlp, WeightsError>> = LazyLock::new(|| Mlp::parse(include_str!("weights/mlp.toml")));

/// The form of a network: its inputs and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkKind {
    /// As published: [`surf_inputs`], 6 hidden units.
    Surf,
    /// Ours: [`log_inputs`], 32 hidden units.
    Mlp,
}

impl NetworkKind {
    /// Both forms.
    pub const ALL: [Self; 2] = [Self::Surf, Self::Mlp];

    /// The policy's name, as on the command line and in TOML.
    pub fn name(self) -> &'static str {
        match self {
            Self::Surf => "surf",
            Self::Mlp => "mlp",
        }
    }

    /// Numbers of inputs and of hidden units.
    pub fn sizes(self) -> (usize, usize) {
        match self {
            Self::Surf => (SURF_INPUTS, SURF_HIDDEN),
            Self::Mlp => (LOG_INPUTS, LOG_HIDDEN),
        }
    }
}

/// The weights of a network as they are written, in a file or under the key `network` of a policy's TOML.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weights {
    /// Version of this format: 1.
    pub schema: u32,
    /// The form of the network.
    pub policy: NetworkKind,
    /// Bias of the output.
    pub bias: f32,
    /// The hidden units.
    pub hidden: Vec<Unit>,
}

impl Weights {
    /// As TOML: a line for each hidden unit, every number in the fewest digits that read back exactly.
    pub fn to_toml(&self) -> String {
        let mut text = format!("schema = {}\npolicy = \"{}\"\nbias = {:?}\nhidden = [\n", self.schema, self.policy.name(), self.bias);
        for unit in &self.hidden {
            // Debug writes the shortest digits, with a point or an exponent, so that TOML reads a float.
            text.push_str(&format!("    {{ output = {:?}, bias = {:?}, weights = {:?} }},\n", unit.output, unit.bias, unit.weights));
        }
        text.push_str("]\n");
        text
    }
}

/// A hidden unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Weight of each input, in their order.
    pub weights: Vec<f32>,
    /// Bias.
    pub bias: f32,
    /// Its weight in the output.
    pub output: f32,
}

/// Why weights are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The text is not TOML of this kind.
    #[error("{0}")]
    Toml(String),
    /// The weights were written by another version.
    #[error("weights of schema {0}, but this version knows only schema {SCHEMA}: train them again")]
    Schema(u32),
    /// Weights of one policy were given to the other.
    #[error("these are weights of policy {found}, not of {wanted}")]
    OtherPolicy {
        /// The policy that they were given to.
        wanted: &'static str,
        /// The policy that they are for.
        found: &'static str,
    },
    /// The network has another size than its policy.
    #[error("{policy} has {wanted} {what}, not {found}")]
    Size {
        /// The policy.
        policy: &'static str,
        /// The list that is too long or too short.
        what: &'static str,
        /// Its required length.
        wanted: usize,
        /// Its length.
        found: usize,
    },
    /// A number is not finite.
    #[error("{0} has a value that is not a finite number")]
    NotFinite(String),
}

/// One hidden layer and one output, at their sizes.
#[derive(Debug, Clone, PartialEq)]
struct Layers<const INPUTS: usize, const HIDDEN: usize> {
    /// By input, then by hidden unit: all units advance together, which suits vector instructions and fixes the order of
    /// every sum.
    weights: [[f32; HIDDEN]; INPUTS],
    biases: [f32; HIDDEN],
    outputs: [f32; HIDDEN],
    bias: f32,
}

impl<const INPUTS: usize, const HIDDEN: usize> Layers<INPUTS, HIDDEN> {
    fn new(weights: &Weights) -> Result<Self, WeightsError> {
        let policy = weights.policy.name();
        let sized = |what, wanted, found| {
            if wanted == found { Ok(()) } else { Err(WeightsError::Size { policy, what, wanted, found }) }
        };
        sized("hidden units", HIDDEN, weights.hidden.len())?;
        let mut layers = Self { weights: [[0.0; HIDDEN]; INPUTS], biases: [0.0; HIDDEN], outputs: [0.0; HIDDEN], bias: weights.bias };
        for (h, unit) in weights.hidden.iter().enumerate() {
            sized("weights in each hidden unit", INPUTS, unit.weights.len())?;
            if !unit.weights.iter().chain([&unit.bias, &unit.output]).all(|value| value.is_finite()) {
                return Err(WeightsError::NotFinite(format!("hidden unit {h}")));
            }
            for (row, &weight) in layers.weights.iter_mut().zip(&unit.weights) {
                row[h] = weight;
            }
            (layers.biases[h], layers.outputs[h]) = (unit.bias, unit.output);
        }
        if weights.bias.is_finite() { Ok(layers) } else { Err(WeightsError::NotFinite("the output".to_owned())) }
    }

    /// The argument of the logistic function.
    #[inline]
    fn logit(&self, inputs: &[f32; INPUTS]) -> f32 {
        let mut hidden = self.biases;
        for (row, &input) in self.weights.iter().zip(inputs) {
            for (sum, &weight) in hidden.iter_mut().zip(row) {
                *sum += weight * input;
            }
        }
        hidden.iter().zip(&self.outputs).fold(self.bias, |sum, (&unit, &weight)| sum + unit.max(0.0) * weight)
    }

    fn unit(&self, h: usize) -> Unit {
        Unit { weights: self.weights.iter().map(|row| row[h]).collect(), bias: self.biases[h], output: self.outputs[h] }
    }
}

#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one of it in a search, behind an Arc or in a planner")]
enum Network {
    Surf(Layers<SURF_INPUTS, SURF_HIDDEN>),
    Mlp(Layers<LOG_INPUTS, LOG_HIDDEN>),
}

/// A network ready to decide.
#[derive(Debug, Clone)]
pub struct Mlp {
    network: Arc<Network>,
    /// Where the weights were read (`None`: they are the shipped ones, or it is unknown).
    origin: Option<Arc<str>>,
}

/// Networks are equal if they have the same weights, whatever file these are from.
impl PartialEq for Mlp {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.network, &other.network) || self.network == other.network
    }
}

impl Mlp {
    /// The network with the shipped weights, trained for the CPU.
    ///
    /// # Errors
    /// None: the shipped files are tested. (The type is that of weights from elsewhere.)
    pub fn shipped(form: NetworkKind) -> Result<Self, WeightsError> {
        match form {
            NetworkKind::Surf => SHIPPED_SURF.clone(),
            NetworkKind::Mlp => SHIPPED_LOG.clone(),
        }
    }

    /// Reads weights from TOML.
    ///
    /// # Errors
    /// [`WeightsError`] if the text is not TOML of weights, or a size or value is invalid.
    pub fn parse(text: &str) -> Result<Self, WeightsError> {
        let weights: Weights = toml::from_str(text).map_err(|error| WeightsError::Toml(with_line(&error, text)))?;
        Self::new(&weights)
    }

    /// A network with these weights.
    ///
    /// # Errors
    /// [`WeightsError`] if a size or value is invalid.
    pub fn new(weights: &Weights) -> Result<Self, WeightsError> {
        if weights.schema != SCHEMA {
            return Err(WeightsError::Schema(weights.schema));
        }
        let network = match weights.policy {
            NetworkKind::Surf => Network::Surf(Layers::new(weights)?),
            NetworkKind::Mlp => Network::Mlp(Layers::new(weights)?),
        };
        Ok(Self { network: Arc::new(network), origin: None })
    }

    /// A network of this form with these weights.
    ///
    /// # Errors
    /// As [`Mlp::new`]; [`WeightsError::OtherPolicy`] if the weights are of the other form.
    pub fn of(form: NetworkKind, weights: &Weights) -> Result<Self, WeightsError> {
        if weights.policy != form {
            return Err(WeightsError::OtherPolicy { wanted: form.name(), found: weights.policy.name() });
        }
        Self::new(weights)
    }

    /// Whether it makes the same decisions as the network of [`Mlp::shipped`].
    pub fn is_shipped(&self) -> bool {
        Self::shipped(self.form()).is_ok_and(|shipped| shipped == *self)
    }

    /// The same network, with the name of the file that its weights were read from. Records show that name after the policy's name.
    pub fn from_origin(self, origin: &str) -> Self {
        Self { origin: Some(origin.into()), ..self }
    }

    /// Where the weights were read (`None`: the shipped ones, or unknown).
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// The form of the network.
    pub fn form(&self) -> NetworkKind {
        match *self.network {
            Network::Surf(_) => NetworkKind::Surf,
            Network::Mlp(_) => NetworkKind::Mlp,
        }
    }

    /// The weights, to be written down.
    pub fn weights(&self) -> Weights {
        let (bias, hidden) = match &*self.network {
            Network::Surf(layers) => (layers.bias, (0..SURF_HIDDEN).map(|h| layers.unit(h)).collect()),
            Network::Mlp(layers) => (layers.bias, (0..LOG_HIDDEN).map(|h| layers.unit(h)).collect()),
        };
        Weights { schema: SCHEMA, policy: self.form(), bias, hidden }
    }

    /// Whether [`LevelStats::sampled_probes`] is one of the inputs at this level (see [`wants_sample`]).
    fn wants_sample(&self, stats: &LevelStats) -> bool {
        self.form() == NetworkKind::Mlp && wants_sample(stats)
    }

    /// Decides. `growth_before` is the growth of the frontier before this one, in vertices (see [`surf_inputs`]).
    #[inline]
    fn is_bottom_up(&self, stats: &LevelStats, growth_before: i64) -> bool {
        stats.level > 0 && self.logit(stats, growth_before) >= 0.0
    }

    /// The argument of the logistic function, whose sign decides.
    #[inline]
    pub fn logit(&self, stats: &LevelStats, growth_before: i64) -> f32 {
        match &*self.network {
            Network::Surf(layers) => layers.logit(&surf_inputs(stats, growth_before)),
            Network::Mlp(layers) => layers.logit(&log_inputs(stats)),
        }
    }
}

impl Rule for Mlp {
    fn known(&self) -> &'static Known {
        &KNOWN[self.form() as usize]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Special(self).named("network")]
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn wants_sample(&self, stats: &LevelStats, _runs: LevelDevice, _memory: &History) -> bool {
        Mlp::wants_sample(self, stats)
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &History) -> bool {
        Mlp::is_bottom_up(self, stats, memory.frontiers.growth_before())
    }
}

/// The weights as a parameter: as text the file that they were read from, as TOML the weights themselves.
impl Special for Mlp {
    fn text(&self) -> Option<String> {
        self.origin().map(str::to_owned)
    }

    /// Refuses every text: only the command line reads files.
    fn set_text(&mut self, _text: &str) -> Option<()> {
        None
    }

    fn toml(&self) -> Option<toml::Value> {
        if self.is_shipped() { None } else { toml::Value::try_from(self.weights()).ok() }
    }

    fn set_toml(&mut self, value: &toml::Value) -> Result<(), PolicyError> {
        let refused = |reason| PolicyError::Weights { policy: self.form().name(), reason };
        let weights: Weights =
            value.clone().try_into().map_err(|error: toml::de::Error| refused(WeightsError::Toml(error.message().to_owned())))?;
        *self = Self::of(self.form(), &weights).map_err(refused)?;
        Ok(())
    }
}

/// The inputs of SURF, unscaled and in its order (section 4 and table 1 of the paper), with n vertices, m arcs, and F(t) vertices in the
/// frontier of level t (0 before level 0). The paper does not divide `s_f` and `c_f` by n, but the program of its authors does:
///
/// 1. `m_d`: m / n, the mean degree;
/// 2. `p_h`: share of vertices with more arcs than `m_d` (the paper samples it, here it is exact);
/// 3. `s_f`: (F(t) - F(t-1)) / n, the growth of the frontier;
/// 4. `c_f`: s_f(t) - s_f(t-1), the growth of its growth;
/// 5. `r_f`: F(t) / n;
/// 6. `r_u`: unvisited vertices / n.
///
/// `growth_before` is F(t-1) - F(t-2).
#[inline]
pub fn surf_inputs(stats: &LevelStats, growth_before: i64) -> [f32; SURF_INPUTS] {
    let n = stats.vertices.max(1) as f32;
    let growth = stats.frontier_vertices as i64 - stats.previous_frontier_vertices as i64;
    [
        stats.arcs as f32 / n,
        stats.hub_share,
        growth as f32 / n,
        (growth - growth_before) as f32 / n,
        stats.frontier_vertices as f32 / n,
        stats.unvisited_vertices as f32 / n,
    ]
}

/// The inputs of our network, each but the ninth as [`log2`]: vertices, arcs, frontier vertices, frontier edges, unvisited vertices,
/// unvisited edges, vertices in the frontier before, neighbours that a bottom-up level would look at (sampled, or estimated without a
/// sample), the share of hubs, the sum of bitmap words and unvisited vertices, and the cost of a bottom-up level in top-down arcs by the
/// constants of `sampled`. The last two are sums, which a network can't compute from logarithms.
#[inline]
pub fn log_inputs(stats: &LevelStats) -> [f32; LOG_INPUTS] {
    let probes = match stats.sampled_probes {
        Some(probes) if wants_sample(stats) => f64::from(probes),
        _ => estimated_probes(stats),
    };
    [
        log2(stats.vertices),
        log2(stats.arcs),
        log2(stats.frontier_vertices),
        log2(stats.frontier_edges),
        log2(stats.unvisited_vertices),
        log2(stats.unvisited_edges),
        log2(stats.previous_frontier_vertices),
        log2((probes * stats.unvisited_vertices as f64) as u64),
        stats.hub_share,
        log2(stats.vertices / 64 + stats.unvisited_vertices),
        log2(COSTS.bottom_up(stats, probes) as u64),
    ]
}

/// The number of neighbours that an unvisited vertex would look at on average if its neighbours were random. The probability that a
/// neighbour is in the frontier is then the frontier's share of all arcs. A vertex looks at no more neighbours than it has.
fn estimated_probes(stats: &LevelStats) -> f64 {
    let degree = stats.unvisited_edges as f64 / stats.unvisited_vertices.max(1) as f64;
    let until_found = stats.arcs as f64 / stats.frontier_edges.max(1) as f64;
    degree.min(until_found)
}

/// Whether a sample is worth its few microseconds to our network. It is if `sampled`, with `COSTS`, would take a sample for a top-down
/// level of twice the cost.
#[inline]
fn wants_sample(stats: &LevelStats) -> bool {
    let doubled = LevelStats { frontier_edges: stats.frontier_edges.saturating_mul(2), ..*stats };
    COSTS.wants_sample(&doubled)
}

/// log2(count + 1), interpolated linearly between powers of two: at most 0.09 too small, and the same bits on every machine.
#[inline]
pub fn log2(count: u64) -> f32 {
    const FRACTION: f32 = (1 << 23) as f32;
    const ONE: u32 = 127 << 23;
    ((count as f32 + 1.0).to_bits() - ONE) as f32 / FRACTION
}

/// What is wrong in a text, after its line there.
fn with_line(error: &toml::de::Error, text: &str) -> String {
    error.span().map_or_else(String::new, |at| format!("line {}: ", line_at(text, at.start))) + error.message().trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Frontiers, LevelDevice, Policy, PolicyPlanner};
    use socbfs::bfs::{Direction, Planner};

    /// 1000 vertices, 8000 arcs.
    fn stats(level: u32, frontier: u64, previous: u64, unvisited: u64) -> LevelStats {
        LevelStats {
            level,
            vertices: 1000,
            arcs: 8000,
            frontier_vertices: frontier,
            frontier_edges: 10 * frontier,
            unvisited_vertices: unvisited,
            unvisited_edges: 6 * unvisited,
            previous_frontier_vertices: previous,
            hub_share: 0.25,
            ..LevelStats::default()
        }
    }

    /// A SURF network whose first two hidden units are as given (all others are 0).
    fn surf(first: [f32; 6], second: [f32; 6], outputs: [f32; 2], bias: f32) -> Weights {
        let unit = |weights: [f32; 6], bias, output| Unit { weights: weights.to_vec(), bias, output };
        let mut hidden = vec![unit([0.0; 6], 0.0, 0.0); 6];
        hidden[0] = unit(first, 0.5, outputs[0]);
        hidden[1] = unit(second, -0.25, outputs[1]);
        Weights { schema: 1, policy: NetworkKind::Surf, bias, hidden }
    }

    #[test]
    fn the_inputs_of_surf_are_those_of_the_paper() {
        // Frontiers of 1, 50, 300: s_f = 250 / 1000, before 49 / 1000, c_f = 201 / 1000.
        let inputs = surf_inputs(&stats(2, 300, 50, 649), 49);
        assert_eq!(inputs, [8.0, 0.25, 0.25, 0.201, 0.3, 0.649]);
        // Level 0: s_f = c_f = F / n.
        assert_eq!(surf_inputs(&stats(0, 1, 0, 999), 0), [8.0, 0.25, 0.001, 0.001, 0.001, 0.999]);
        // A frontier that shrinks: s_f = -200 / 1000, c_f = -450 / 1000.
        assert_eq!(surf_inputs(&stats(3, 100, 300, 549), 250)[2..4], [-0.2, -0.45]);
    }

    #[test]
    fn a_network_gives_the_output_computed_by_hand() {
        // Hidden 0: 8 * 0.125 - 0.3 * 2 + 0.5 = 0.9; hidden 1: -8 * 1 - 0.25 is below 0, so 0; output: 0.9 * 2 - 1.75 = 0.05.
        let weights = surf([0.125, 0.0, 0.0, 0.0, -2.0, 0.0], [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [2.0, 100.0], -1.75);
        let mlp = Mlp::new(&weights).unwrap();
        let at = stats(2, 300, 50, 649);
        assert!((mlp.logit(&at, 49) - 0.05).abs() < 1e-6);
        assert!(mlp.is_bottom_up(&at, 49));
        // Hidden 1 now: 8 + 0.25 * 4 - 0.25 = 8.75, times -0.01: 0.05 - 0.0875.
        let weights = surf([0.125, 0.0, 0.0, 0.0, -2.0, 0.0], [1.0, 4.0, 0.0, 0.0, 0.0, 0.0], [2.0, -0.01], -1.75);
        let mlp = Mlp::new(&weights).unwrap();
        assert!((mlp.logit(&at, 49) + 0.0375).abs() < 1e-6);
        assert!(!mlp.is_bottom_up(&at, 49));
        assert_eq!(mlp.weights(), weights);
    }

    #[test]
    fn an_output_of_one_half_is_bottom_up_except_at_level_0() {
        let even = Mlp::new(&surf([0.0; 6], [0.0; 6], [0.0; 2], 0.0)).unwrap();
        assert!(even.is_bottom_up(&stats(1, 5, 1, 994), 1));
        assert!(!even.is_bottom_up(&stats(0, 1, 0, 999), 0));
        let below = Mlp::new(&surf([0.0; 6], [0.0; 6], [0.0; 2], -f32::MIN_POSITIVE)).unwrap();
        assert!(!below.is_bottom_up(&stats(1, 5, 1, 994), 1));
    }

    #[test]
    fn growth_is_remembered_from_level_to_level() {
        let mut frontiers = Frontiers::default();
        let mut growth_before = |stats| {
            frontiers.note(&stats);
            frontiers.growth_before()
        };
        assert_eq!(growth_before(stats(0, 1, 0, 999)), 0);
        assert_eq!(growth_before(stats(1, 50, 1, 949)), 1);
        assert_eq!(growth_before(stats(2, 300, 50, 649)), 49);
        assert_eq!(growth_before(stats(3, 100, 300, 549)), 250);
        // Levels 4 to 8 ran in one step.
        assert_eq!(growth_before(stats(9, 90, 80, 200)), 0);
        assert_eq!(growth_before(stats(10, 60, 90, 140)), 10);
    }

    #[test]
    fn the_planner_remembers_growth_within_one_search_only() {
        // Bottom-up where c_f > 0.1: the output is c_f + 0.5 (hidden unit 0) minus 0.6.
        let weights = surf([0.0, 0.0, 0.0, 1.0, 0.0, 0.0], [0.0; 6], [1.0, 0.0], -0.6);
        let mut planner = PolicyPlanner::new(Policy::Mlp(Mlp::new(&weights).unwrap()), LevelDevice::Cpu);
        for _ in 0..2 {
            planner.begin();
            let levels = [stats(0, 1, 0, 999), stats(1, 50, 1, 949), stats(2, 300, 50, 649), stats(3, 500, 300, 149)];
            assert!(levels.iter().all(|stats| !planner.wants_sample(stats)));
            let plans = levels.map(|stats| planner.plan(&stats).direction);
            // c_f is 0.048, 0.201, -0.05 from level 1 on.
            assert_eq!(plans, [Direction::TopDown, Direction::TopDown, Direction::BottomUp, Direction::TopDown]);
        }
    }

    #[test]
    fn logarithms_are_exact_at_powers_of_two_and_close_in_between() {
        for power in 0..40 {
            assert_eq!(log2((1 << power) - 1), if power < 25 { power as f32 } else { log2((1 << power) - 1) });
        }
        for count in (0..100_000).step_by(7) {
            let error = ((count + 1) as f32).log2() - log2(count);
            assert!((-1e-5..0.0861).contains(&error), "{count}: {error}");
        }
        assert!(log2(u64::MAX) <= 64.0);
    }

    #[test]
    fn a_sample_is_an_input_only_where_it_is_worth_its_time() {
        let cheap = stats(2, 3, 1, 900);
        // Twice 30,000 arcs are more than a bottom-up level costs at best (40,000), and less than at worst (153,000).
        let dear = LevelStats {
            vertices: 100_000,
            arcs: 80_000,
            frontier_edges: 30_000,
            unvisited_vertices: 64_900,
            unvisited_edges: 389_400,
            ..stats(2, 3000, 50, 0)
        };
        assert!(!wants_sample(&cheap) && wants_sample(&dear));
        let sampled = |stats: LevelStats| log_inputs(&LevelStats { sampled_probes: Some(3.0), ..stats });
        assert_eq!(sampled(cheap), log_inputs(&cheap));
        // 64,900 unvisited vertices look at 3 neighbours each; without the sample at 80,000 / 30,000.
        assert_eq!((sampled(dear)[7], log_inputs(&dear)[7]), (log2(194_700), log2(173_066)));
        // 0.5 for each of 1562.5 words, and for each of 64,900 vertices 0.25 and 3 times 0.35.
        assert_eq!(sampled(dear)[10], log2(781 + 16_225 + 68_145));
        let surf = Mlp::shipped(NetworkKind::Surf).unwrap();
        assert!(!surf.wants_sample(&dear));
        assert!(Mlp::shipped(NetworkKind::Mlp).unwrap().wants_sample(&dear));
    }

    #[test]
    fn weights_are_written_and_read() {
        for form in NetworkKind::ALL {
            let shipped = Mlp::shipped(form).unwrap();
            assert_eq!(shipped.form(), form);
            let text = shipped.weights().to_toml();
            assert_eq!(toml::from_str::<Weights>(&text).unwrap(), shipped.weights());
            assert_eq!(Mlp::parse(&text).unwrap(), shipped);
            // As a policy's TOML: by name if the weights are shipped, else in full.
            let policy = Policy::Mlp(shipped.clone());
            assert_eq!(toml::to_string(&policy).unwrap().trim(), format!("kind = \"{}\"", form.name()));
            let mut weights = shipped.weights();
            weights.hidden[1].weights[2] = 0.1;
            weights.bias = -1.5e-7;
            let own = Policy::Mlp(Mlp::new(&weights).unwrap());
            assert_ne!(own, policy);
            assert_eq!(toml::from_str::<Policy>(&toml::to_string(&own).unwrap()).unwrap(), own);
        }
    }

    #[test]
    fn names_and_origins_are_printed() {
        for form in NetworkKind::ALL {
            let policy: Policy = form.name().parse().unwrap();
            assert_eq!(policy.to_string(), form.name());
            let Policy::Mlp(mlp) = policy else { panic!("{policy:?}") };
            assert_eq!(Policy::Mlp(mlp.from_origin("w.toml")).to_string(), format!("{}:w.toml", form.name()));
        }
        assert!("surf:3".parse::<Policy>().is_err());
    }

    #[test]
    fn bad_weights_are_refused_with_their_reason() {
        let good = surf([0.0; 6], [0.0; 6], [0.0; 2], 0.0).to_toml();
        for (text, reason) in [
            (good.replace("schema = 1", "schema = 2"), "schema 2"),
            (good.replace("\"surf\"", "\"mlp\""), "32 hidden units, not 6"),
            (good.replace("\"surf\"", "\"perceptron\""), "perceptron"),
            (good.replace("bias = 0.0\n", "bias = nan\n"), "the output has a value"),
            (good.replacen("bias = 0.5", "bias = inf", 1), "hidden unit 0 has a value"),
            (good.replacen("[0.0, ", "[", 1), "6 weights in each hidden unit, not 5"),
            (good.replace("bias = 0.0\n", ""), "bias"),
            (format!("speed = 3\n{good}"), "speed"),
            ("hello".to_owned(), "line 1"),
        ] {
            let error = Mlp::parse(&text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let read = |text: &str| toml::from_str::<Policy>(text).unwrap_err().to_string();
        let network = good.replace("hidden = ", "hidden=").replace('\n', " ").replace("schema", "network = { schema");
        let network =
            network.replace("  bias", ", bias").replace(" policy", ", policy").replace(" bias = 0.0 hidden", ", bias = 0.0, hidden") + "}";
        assert!(read(&format!("kind = 'mlp'\n{network}")).contains("weights of policy surf, not of mlp"), "{network}");
        assert!(read(&format!("kind = 'tc'\n{network}")).contains("tc does not take network"), "{network}");
        assert!(read("kind = 'surf'\nalpha = 1").contains("surf does not take alpha"));
    }
}
