//! Policies against the strategies of every level (Zhang 2018, tables 5 and 6; SURF 2022, tables 3 and 4).

use serde::{Deserialize, Serialize};

use super::ExactLevel;
use crate::{
    bfs::Direction,
    board::StrategyWatts,
    calibrate::{Directions, Evaluation, Judged, LevelTable, LevelTimes, RootEvaluation},
    graph::Layout,
    policy::{
        Mlp,
        mlp::{Form, SURF_INPUTS, surf_inputs},
    },
};

/// Policies on one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyComparison {
    /// The policies, in the order in which every evaluation has them.
    pub policies: Vec<String>,
    /// Searches of each policy and strategy.
    pub turns: usize,
    /// Edges of the whole graph.
    pub edges: u64,
    /// Power while levels run by each strategy, where it is known.
    pub watts: Option<StrategyWatts>,
    /// Exact counts of the levels from the first root (empty: not counted; the evaluation has the estimates that policies read).
    #[serde(default)]
    pub exact: Vec<ExactLevel>,
    /// How the policies did.
    pub evaluation: Evaluation,
}

impl PolicyComparison {
    /// Where `policy` stands among the policies; by its name without parameters.
    pub fn place(&self, policy: &str) -> Option<usize> {
        self.policies.iter().position(|name| name.split(':').next() == Some(policy))
    }

    /// Megateps of `policy` by Graph500's rule: harmonic mean over the roots.
    pub fn mteps(&self, policy: &str) -> Option<f64> {
        let place = self.place(policy)?;
        self.mteps_of(|root| &root.policies[place])
    }

    /// The same of what `judged` takes of each root.
    pub fn mteps_of(&self, judged: impl Fn(&RootEvaluation) -> &Judged) -> Option<f64> {
        let roots = &self.evaluation.roots;
        let ns_per_edge: f64 = roots.iter().map(|root| judged(root).total_ns / root.edges as f64).sum();
        Some(1e3 * roots.len() as f64 / ns_per_edge).filter(|mteps| mteps.is_finite() && *mteps > 0.0)
    }

    /// Directions of the policy at `place`, all roots together (`None`: only one direction was measured on its device).
    pub fn directions(&self, place: usize) -> Option<Directions> {
        let all: Option<Vec<Directions>> = self.evaluation.roots.iter().map(|root| root.policies[place].directions).collect();
        all.map(|all| all.into_iter().fold(Directions::default(), Directions::and))
    }
}

/// Dropping the vertices without edges (Zhang 2018, table 6).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Remapped {
    /// Vertices of the input.
    pub before: u64,
    /// Vertices with an edge to another one.
    pub after: u64,
    /// Share of the vertices that is saved.
    pub saved: f64,
    /// Whether the layout renumbers vertices.
    pub renumbered: bool,
    /// Seconds of the step that orders vertices.
    pub seconds: f64,
    /// Its share of construction.
    pub share: f64,
}

/// What the construction of `layout` saved and spent by renumbering.
pub fn remapped(layout: &Layout) -> Remapped {
    let stats = layout.stats();
    let after = stats.vertices - stats.isolated;
    let seconds: f64 = layout.steps().iter().filter(|step| step.step == "order vertices").map(|step| step.seconds).sum();
    Remapped {
        before: stats.vertices,
        after,
        saved: stats.isolated as f64 / stats.vertices.max(1) as f64,
        renumbered: layout.order() == crate::graph::Order::Degree,
        seconds,
        share: seconds / layout.construction_time().as_secs_f64().max(1e-9),
    }
}

/// SURF's network with one input held at its mean.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DroppedInput {
    /// The input, by the paper's name; "none" for the whole network.
    pub input: String,
    /// Accuracy by graph (`None`: no level has both directions measured).
    pub accuracy: Vec<Option<f64>>,
}

/// Names of SURF's inputs, in its order.
const INPUTS: [&str; SURF_INPUTS] = ["m_d", "p_h", "s_f", "c_f", "r_f", "r_u"];

/// The accuracy of SURF's network as shipped on the levels of `graphs`, whole and with each input held at its mean over all of these levels:
/// what it loses is what the input was worth to it. (A network that is trained anew without the input may find a way round.)
pub fn dropped_inputs(graphs: &[&[LevelTable]]) -> Vec<DroppedInput> {
    let Ok(whole) = Mlp::shipped(Form::Surf) else { return Vec::new() };
    let levels = || graphs.iter().flat_map(|tables| tables.iter()).flat_map(decided);
    let count = levels().count().max(1) as f64;
    let mean = |input: usize| levels().map(|(times, growth)| f64::from(surf_inputs(&times.stats, growth)[input])).sum::<f64>() / count;
    let accuracy = |network: &Mlp| graphs.iter().map(|tables| accuracy(network, tables)).collect();
    let held = |(input, name): (usize, &&str)| {
        let mut weights = whole.weights();
        for unit in &mut weights.hidden {
            unit.bias += std::mem::take(&mut unit.weights[input]) * mean(input) as f32;
        }
        let network = Mlp::new(&weights).ok()?;
        Some(DroppedInput { input: (*name).to_owned(), accuracy: accuracy(&network) })
    };
    let first = DroppedInput { input: "none".to_owned(), accuracy: accuracy(&whole) };
    std::iter::once(first).chain(INPUTS.iter().enumerate().filter_map(held)).collect()
}

/// Share of levels in the faster direction on the CPU.
fn accuracy(network: &Mlp, tables: &[LevelTable]) -> Option<f64> {
    let mut judged = Directions::default();
    for (times, growth) in tables.iter().flat_map(decided) {
        let [top_down, bottom_up] = times.directions_ns(false)?;
        let bottom_up_chosen = network.is_bottom_up(&times.stats, growth);
        judged.count(if bottom_up_chosen { Direction::BottomUp } else { Direction::TopDown }, top_down, bottom_up);
    }
    (judged.levels > 0).then(|| judged.accuracy())
}

/// The levels of one search but the first, whose direction is given; each with the growth of the frontier before it.
fn decided(table: &LevelTable) -> impl Iterator<Item = (&LevelTimes, i64)> {
    let growth = |times: &LevelTimes| times.stats.frontier_vertices as i64 - times.stats.previous_frontier_vertices as i64;
    table.levels.windows(2).map(move |pair| (&pair[1], growth(&pair[0])))
}
