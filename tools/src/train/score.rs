//! Compares the directions of a policy with the faster ones, as SURF counts (section 5.2, table 3).
//!
//! **Accuracy**: share of the levels whose direction is the faster one. **Reduced time**: "the running time saved by the correct decisions
//! at all iterations", as a share of what could be saved: the sum of |top-down - bottom-up| over the levels decided correctly, divided by
//! that sum over all levels. Both are taken over all searches of a graph; the mean over graphs then gives each graph the same weight. Level
//! 0, which is always top-down, does not count.

use serde::Serialize;

use super::records::SearchSample;
use crate::{calibrate::plans, record::Directions};
use socbfs_policy::{LevelDevice, Policy, PolicyPlanner};

/// The score of a policy on one graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphScore {
    /// The graph.
    pub graph: String,
    /// Number of searches of it.
    pub searches: usize,
    /// Its levels, and those in the faster direction.
    pub directions: Directions,
}

/// Means over graphs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Mean {
    /// Number of graphs.
    pub graphs: usize,
    /// Share of levels in the faster direction.
    pub accuracy: f64,
    /// Share of the saveable time that was saved.
    pub reduced_time: f64,
}

/// Lets `policy` decide every level of `searches`, and counts by graph, in the order in which graphs first occur. As in a search, the
/// policy sees only the samples that it wants.
pub fn score<'s>(policy: &Policy, searches: impl IntoIterator<Item = &'s SearchSample>) -> Vec<GraphScore> {
    let mut planner = PolicyPlanner::new(policy.clone(), LevelDevice::Cpu);
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
    let plans = plans(planner, (0..search.levels.len()).map(|level| search.stats(level, None)));
    for (level, plan) in search.levels.iter().zip(plans).skip(1) {
        all.count(plan.direction, level.top_down_ns as f64, level.bottom_up_ns as f64);
    }
    all
}

/// The means over graphs, each of the same weight.
pub fn mean(scores: &[GraphScore]) -> Mean {
    let count = scores.len().max(1) as f64;
    let of = |value: fn(&Directions) -> f64| scores.iter().map(|score| value(&score.directions)).sum::<f64>() / count;
    Mean { graphs: scores.len(), accuracy: of(Directions::accuracy), reduced_time: of(Directions::reduced_time) }
}
