//! Policies scored on held-out graphs: the contest whose winner `auto` uses.

use socbfs_boards::measure::{Candidate, Contest, Decider};

use super::{
    fit::{fit, fit_zhang},
    plan::table_regret,
};
use crate::record::LevelTable;
use socbfs_policy::{CostModel, Policy};

/// Number of parts into which the graphs are divided. Each part judges the models that were fitted to all others.
const PARTS: usize = 5;

/// Divides the graphs into fifths. For each fifth, fits both forms of the model to all other graphs, and scores these models and `others`,
/// which are not fitted here, on the searches of the fifth. `graphs` holds the tables of each graph. `None` if there are too few graphs to
/// divide or to fit, or if no graph could be scored.
pub fn held_out(graphs: &[&[LevelTable]], others: &[(Decider, Policy)]) -> Option<Contest> {
    if graphs.len() < 2 {
        return None;
    }
    let policies = [Decider::CostModel, Decider::Zhang].into_iter().chain(others.iter().map(|(policy, _)| *policy));
    let mut regrets: Vec<(Decider, Vec<f64>)> = policies.map(|policy| (policy, Vec::new())).collect();
    for part in 0..PARTS.min(graphs.len()) {
        let is_out = |place: usize| place % PARTS == part;
        let fitted: Vec<LevelTable> =
            graphs.iter().enumerate().filter(|(place, _)| !is_out(*place)).flat_map(|(_, tables)| tables.iter().cloned()).collect();
        let model = |model: CostModel| Policy::CostModel(Box::new(model));
        let (full, zhang) = (model(fit(&fitted)?), model(fit_zhang(&fitted)?));
        let policies: Vec<&Policy> = [&full, &zhang].into_iter().chain(others.iter().map(|(_, policy)| policy)).collect();
        for (_, tables) in graphs.iter().enumerate().filter(|(place, _)| is_out(*place)) {
            let of_graph: Option<Vec<f64>> = policies.iter().map(|policy| table_regret(tables, policy)).collect();
            for ((_, regrets), regret) in regrets.iter_mut().zip(of_graph.iter().flatten()) {
                regrets.push(*regret);
            }
        }
    }
    let judged = |(policy, regrets): &(Decider, Vec<f64>)| Candidate {
        policy: *policy,
        regret: regrets.iter().sum::<f64>() / regrets.len() as f64,
        worst_regret: regrets.iter().copied().fold(0.0, f64::max),
    };
    let held_out = regrets.first()?.1.len();
    if held_out == 0 {
        return None;
    }
    let candidates: Vec<Candidate> = regrets.iter().map(judged).collect();
    let on_device = graphs.iter().flat_map(|tables| tables.iter()).any(|table| table.strategies.iter().any(|strategy| strategy.is_gpu()));
    Contest::of(held_out, candidates, on_device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::{
        SampledCosts,
        bfs::{LevelStats, Strategy},
    };

    /// A search of a graph of `vertices` whose frontier grows by the factor `growth` at each level. An arc top-down costs 1 ns; bottom-up
    /// levels cost what `sampled` says, but `times` as much for each vertex and each probe.
    fn table(vertices: u64, growth: u64, probes: impl Fn(u64) -> f32, times: f64) -> LevelTable {
        let usual = SampledCosts::default();
        let costs = SampledCosts { vertex: times * usual.vertex, probe: times * usual.probe, ..usual };
        let (mut frontier, mut visited, mut levels) = (1, 1, Vec::new());
        while visited < vertices {
            let unvisited = vertices - visited;
            let stats = LevelStats {
                level: levels.len() as u32,
                vertices,
                arcs: 16 * vertices,
                frontier_vertices: frontier,
                frontier_edges: 16 * frontier,
                unvisited_vertices: unvisited,
                unvisited_edges: 16 * unvisited,
                sampled_probes: Some(probes(levels.len() as u64)),
                ..LevelStats::default()
            };
            let top_down = stats.frontier_edges as f64;
            let bottom_up = costs.bottom_up(&stats, probes(stats.level.into()).into());
            let (mut own, mut after) = ([None; 6], [[None; 6]; 6]);
            for (strategy, time) in [(Strategy::Tc, top_down), (Strategy::Bc, bottom_up)] {
                own[strategy as usize] = Some(time);
                for previous in Strategy::CPU {
                    after[previous as usize][strategy as usize] = Some(time);
                }
            }
            levels.push(serde_json::json!({ "stats": stats, "found": frontier, "own": own, "after": after }));
            frontier = (frontier * growth).min(unvisited);
            visited += frontier;
        }
        serde_json::from_value(serde_json::json!({ "root": 0, "strategies": ["tc", "bc"], "levels": levels })).unwrap()
    }

    fn contest(tables: &[Vec<LevelTable>]) -> Contest {
        let graphs: Vec<&[LevelTable]> = tables.iter().map(Vec::as_slice).collect();
        held_out(&graphs, &[(Decider::Sampled, "sampled".parse().unwrap())]).unwrap()
    }

    fn regret(contest: &Contest, policy: Decider) -> f64 {
        contest.candidates.iter().find(|candidate| candidate.policy == policy).unwrap().regret
    }

    #[test]
    fn the_model_wins_where_the_machine_differs_from_the_constants() {
        // A bottom-up level costs twelve times as much as by the constants, for vertices and for probes.
        let tables: Vec<Vec<LevelTable>> =
            (0..20).map(|i| vec![table(100_000 + 7000 * i, 3 + i % 5, |level| 1.0 + (level % 4) as f32, 12.0)]).collect();
        let contest = contest(&tables);
        assert_eq!((contest.policy, contest.graphs), (Decider::CostModel, 20), "{contest:?}");
        assert!(regret(&contest, Decider::CostModel) < 0.01 && regret(&contest, Decider::Sampled) > 0.05, "{contest:?}");
        let on_device = Contest::of(20, contest.candidates, true).unwrap();
        assert_eq!((on_device.policy, on_device.candidates.len()), (Decider::Sampled, 3), "the only one that decides directions alone");
    }

    #[test]
    fn the_constants_win_where_the_graphs_do_not_determine_the_model() {
        // If every vertex finds its parent at the first probe, the fit can't tell the cost of a vertex from that of a probe.
        let tables: Vec<Vec<LevelTable>> =
            [1.0, 8.0].map(|most: f32| vec![table(400_000, 3, |level| (1.0 + 3.0 * (level % 4) as f32).min(most), 1.0)]).to_vec();
        let contest = contest(&tables);
        assert_eq!((contest.policy, contest.graphs), (Decider::Sampled, 2), "{contest:?}");
        assert!(regret(&contest, Decider::Sampled) < regret(&contest, Decider::CostModel), "{contest:?}");
    }

    #[test]
    fn too_few_graphs_give_no_contest() {
        let tables = vec![table(1000, 3, |_| 1.0, 1.0)];
        assert_eq!(held_out(&[&tables], &[]), None);
        assert_eq!(held_out(&[], &[]), None);
    }
}
