//! Measures searches by SURF's rules (section 4.3, and the data module that its authors published).

use crate::{
    bench::{RootSource, roots},
    calibrate::{Turns, measure_levels},
    train::records::SearchSample,
};
use socbfs::{
    bfs::Strategy,
    graph::Vertex,
    search::{Search, SearchError},
};

/// What is measured, and which searches count.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    /// Number of searches wanted of each graph.
    pub roots: usize,
    /// Least share of the vertices (those without an edge left out) that a search must reach; else another root is drawn.
    pub least_vertices: f64,
    /// Least share of the edges that a search must reach.
    pub least_edges: f64,
    /// Number of roots tried for each search wanted.
    pub tries: usize,
    /// How often each search is run in either direction; the first quartile counts.
    pub turns: Turns,
    /// Strategies for top-down levels; the fastest one counts.
    pub top_down: Vec<Strategy>,
    /// Strategies for bottom-up levels; the fastest one counts.
    pub bottom_up: Vec<Strategy>,
    /// Seed from which roots are drawn.
    pub seed: u64,
}

/// Roots drawn as for a benchmark, without those whose searches reach too little. Fewer than wanted, or none, if the graph consists of
/// small components.
///
/// # Errors
/// [`SearchError`] where a search fails.
pub fn eligible(search: &mut Search<'_>, rules: &Rules) -> Result<Vec<Vertex>, SearchError> {
    let layout = search.layout();
    let source = RootSource { seed1: rules.seed, seed2: rules.seed.wrapping_add(1) };
    let drawn = roots(layout.vertices(), |v| layout.input_degree(v), rules.roots * rules.tries.max(1), source);
    let (vertices, edges) = (layout.stats().vertices - layout.stats().isolated, layout.stats().edges);
    let mut eligible = Vec::new();
    for root in drawn {
        if eligible.len() == rules.roots {
            break;
        }
        let outcome = search.run(root)?;
        let enough = |reached: u64, all: u64, least: f64| reached as f64 >= least * all as f64;
        if enough(outcome.reached, vertices, rules.least_vertices) && enough(outcome.edges, edges, rules.least_edges) {
            eligible.push(root);
        }
    }
    Ok(eligible)
}

/// Measures the search from `root` in both directions. `None` where a level could not be measured in one of them.
///
/// # Errors
/// [`SearchError`] where the search was not set up for the strategies, or a device fails.
pub fn collect(search: &mut Search<'_>, graph: &str, root: Vertex, rules: &Rules) -> Result<Option<SearchSample>, SearchError> {
    let strategies: Vec<Strategy> = rules.top_down.iter().chain(&rules.bottom_up).copied().collect();
    let table = measure_levels(search, root, &strategies, &rules.turns)?;
    Ok(SearchSample::new(graph, &table, |times| {
        let fastest = |strategies: &[Strategy]| strategies.iter().filter_map(|&strategy| times.own_ns(strategy)).min_by(f64::total_cmp);
        Some([fastest(&rules.top_down)?, fastest(&rules.bottom_up)?])
    }))
}
