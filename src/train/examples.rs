//! What a network learns from: inputs, label and weight of each level.

use super::records::SearchSample;
use crate::{
    bfs::Direction,
    policy::mlp::{Form, Frontiers, log_inputs, surf_inputs},
};

/// One level.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The network's inputs.
    pub inputs: Vec<f32>,
    /// The label: bottom-up was faster.
    pub bottom_up: bool,
    /// What the level counts for. The weights of each graph sum to 1.
    pub weight: f64,
}

/// The levels of `searches` but those of level 0, which nobody decides.
///
/// SURF learns from equally many levels of each graph: here each graph has the same weight, and its levels share it. Our network shares
/// out one half of it that way, the other half in proportion to the time that lies between both directions: a wrong decision is
/// as bad as the time it costs.
pub fn examples(form: Form, searches: &[&SearchSample]) -> Vec<Example> {
    let mut all = Vec::new();
    let mut graphs: Vec<&str> = searches.iter().map(|search| search.graph.as_str()).collect();
    graphs.sort_unstable();
    graphs.dedup();
    for graph in graphs {
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
                let equal = 1.0 / count as f64;
                let (inputs, weight) = match form {
                    Form::Surf => (surf_inputs(&stats, frontiers.growth_before()).to_vec(), equal),
                    Form::Mlp if stake > 0.0 => (log_inputs(&stats).to_vec(), 0.5 * equal + 0.5 * level.stake_ns() as f64 / stake),
                    Form::Mlp => (log_inputs(&stats).to_vec(), equal),
                };
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
    fn graphs_weigh_alike_and_time_counts_for_ours() {
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
        let b = search("b", vec![level(1, 1000), level(5, 4)]);
        let of = |form| -> Vec<(bool, f64)> {
            examples(form, &[&a, &b]).into_iter().map(|example| (example.bottom_up, example.weight)).collect()
        };
        assert_eq!(of(Form::Surf), [(false, 0.5), (true, 0.5), (true, 1.0)]);
        assert_eq!(of(Form::Mlp), [(false, 0.4), (true, 0.6), (true, 1.0)]);
    }
}
