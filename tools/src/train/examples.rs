//! The examples from which a network learns: the inputs, label and weight of each level.

use super::records::{SearchSample, names};
use socbfs::bfs::Direction;
use socbfs_policy::{
    Frontiers,
    mlp::{NetworkKind, log_inputs, surf_inputs},
};

/// One level.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The network's inputs.
    pub inputs: Vec<f32>,
    /// The label: bottom-up was faster.
    pub bottom_up: bool,
    /// The weight of the level. The weights of each graph sum to 1.
    pub weight: f64,
}

/// Share of a graph's weight that is distributed by time.
const STAKE: f64 = 0.5;

/// The levels of `searches`, except level 0, which no policy decides.
///
/// SURF learns from equally many levels of each graph; here instead each graph has the same weight. Its levels share one half of that
/// equally, and the other half in proportion to the time between both directions: a wrong decision is as bad as the time it costs.
/// (Measured on held-out graphs with three seeds: single networks of SURF's form save 97.4 to 98.1 % of the time that can be saved, 97.2 to
/// 97.5 % with equal weights, and have as many directions right.)
pub fn examples(form: NetworkKind, searches: &[&SearchSample]) -> Vec<Example> {
    let mut all = Vec::new();
    for graph in names(searches) {
        let of_graph = || searches.iter().filter(|search| search.graph == graph);
        let levels = || of_graph().flat_map(|search| search.levels.iter().skip(1));
        let (count, stake) = (levels().count(), levels().map(|level| level.stake_ns() as f64).sum::<f64>());
        for search in of_graph() {
            let mut frontiers = Frontiers::default();
            for (index, level) in search.levels.iter().enumerate() {
                let stats = search.stats(index, None);
                frontiers.note(&stats);
                if index == 0 {
                    continue;
                }
                let inputs = match form {
                    NetworkKind::Surf => surf_inputs(&stats, frontiers.growth_before()).to_vec(),
                    NetworkKind::Mlp => log_inputs(&stats).to_vec(),
                };
                let equal = 1.0 / count as f64;
                let by_time = if stake > 0.0 { level.stake_ns() as f64 / stake } else { equal };
                let weight = (1.0 - STAKE) * equal + STAKE * by_time;
                all.push(Example { inputs, bottom_up: level.faster() == Direction::BottomUp, weight });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::LevelSample;

    #[test]
    fn graphs_weigh_equally_and_levels_half_by_time() {
        let level = |top_down_ns, bottom_up_ns| LevelSample {
            frontier_vertices: 1,
            frontier_edges: 2,
            unvisited_vertices: 3,
            unvisited_edges: 4,
            sampled_probes: None,
            sampled_hubs: None,
            top_down_ns,
            bottom_up_ns,
        };
        let search = |graph: &str, levels| SearchSample { graph: graph.into(), root: 0, vertices: 9, arcs: 20, hub_share: 0.5, levels };
        let a = search("a", vec![level(1, 1000), level(10, 40), level(100, 30)]);
        let b = search("b", vec![level(1, 1000), level(50, 40), level(100, 110)]);
        for form in NetworkKind::ALL {
            let of: Vec<(bool, f64)> = examples(form, &[&a, &b]).into_iter().map(|example| (example.bottom_up, example.weight)).collect();
            assert_eq!(of, [(false, 0.4), (true, 0.6), (true, 0.5), (false, 0.5)]);
        }
    }
}
