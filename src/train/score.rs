//! How a policy's directions compare with the faster ones, as SURF counts (section 5.2, table 3).
//!
//! **Accuracy**: share of the levels whose direction is the faster one. **Reduced time**: "the running time saved by the correct
//! decisions at all iterations", as a share of what could be saved: the sum of |top-down - bottom-up| over the levels decided
//! rightly, divided by that sum over all levels. Both are taken over all searches of a graph; the mean over graphs then
//! weighs each graph alike. Level 0, which is top-down for everyone, counts for nobody.

use serde::Serialize;

use super::records::SearchSample;
use crate::{
    bfs::{LevelPlan, Planner},
    calibrate::Directions,
    policy::{Policy, PolicyPlanner, Runs},
};

/// How a policy did on one graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphScore {
    /// The graph.
    pub graph: String,
    /// Searches of it.
    pub searches: usize,
    /// Its levels, and those in the faster direction.
    pub directions: Directions,
}

/// Means over graphs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Mean {
    /// Graphs.
    pub graphs: usize,
    /// Share of levels in the faster direction.
    pub accuracy: f64,
    /// Share of the saveable time that was saved.
    pub reduced_time: f64,
}

/// Lets `policy` decide every level of `searches` and counts, graph by graph in the order in which they first occur. It is asked as
/// in a search: what it does not want to have sampled, it does not see.
pub fn score<'s>(policy: &Policy, searches: impl IntoIterator<Item = &'s SearchSample>) -> Vec<GraphScore> {
    let mut planner = PolicyPlanner::new(policy.clone(), Runs::Cpu);
    let mut scores: Vec<GraphScore> = Vec::new();
    for search in searches {
        let directions = directions(&mut planner, search);
        match scores.iter_mut().find(|score| score.graph == search.graph) {
            Some(score) => {
                score.searches += 1;
                score.directions = score.directions.and(directions);
            }
            None => scores.push(GraphScore { graph: search.graph.clone(), searches: 1, directions }),
        }
    }
    scores
}

fn directions(planner: &mut PolicyPlanner, search: &SearchSample) -> Directions {
    let mut all = Directions::default();
    let mut previous: Option<LevelPlan> = None;
    planner.begin();
    for (level, sample) in search.levels.iter().enumerate() {
        let mut stats = search.stats(level, previous.map(|plan| plan.direction));
        stats.previous_placement = previous.map(|plan| plan.placement);
        let (probes, hubs) = (stats.sampled_probes.take(), stats.sampled_hubs.take());
        if planner.wants_sample(&stats) {
            stats.sampled_probes = probes;
        }
        if planner.wants_hubs(&stats) {
            stats.sampled_hubs = hubs;
        }
        let plan = planner.plan(&stats);
        previous = Some(plan);
        if level == 0 {
            continue;
        }
        let stake = sample.stake_ns() as f64;
        all.levels += 1;
        all.saveable_ns += stake;
        if plan.direction == sample.faster() {
            all.right += 1;
            all.saved_ns += stake;
        }
    }
    all
}

/// The means over graphs, each of the same weight.
pub fn mean(scores: &[GraphScore]) -> Mean {
    let count = scores.len().max(1) as f64;
    let of = |value: fn(&Directions) -> f64| scores.iter().map(|score| value(&score.directions)).sum::<f64>() / count;
    Mean { graphs: scores.len(), accuracy: of(Directions::accuracy), reduced_time: of(Directions::reduced_time) }
}
