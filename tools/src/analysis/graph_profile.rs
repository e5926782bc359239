//! Properties of a graph that matter to a search (Remis 2016, figures 2.1, 2.2 and 2.4; SURF 2022, table 2).

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::ExactLevel;
use socbfs::graph::{Layout, Vertex};

/// Properties of the graph, and the levels of the search from its first root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Vertices of the input.
    pub vertices: u64,
    /// Distinct edges without self-loops (arcs of a directed graph).
    pub edges: u64,
    /// Vertices with an edge to another vertex.
    pub with_edges: u64,
    /// Mean degree m_d: arcs for each vertex with an edge.
    pub mean_degree: f64,
    /// p_h: share of the vertices with an edge whose degree is above the mean.
    pub hub_share: f64,
    /// Mean over the roots of the number of levels, the root's included.
    pub mean_levels: f64,
    /// The searches, in the order of the roots.
    pub searches: Vec<SearchedRoot>,
    /// The levels of the search from the first root.
    pub levels: Vec<ExactLevel>,
}

/// Extent of the search from one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchedRoot {
    /// The root, as an original number.
    pub root: Vertex,
    /// Vertices reached, the root included.
    pub reached: u64,
    /// Number of levels, the root's included: D + 1.
    pub levels: u32,
}

/// Profiles `layout`; `levels` are those of the first of `searches`.
pub fn profile(layout: &Layout, searches: Vec<SearchedRoot>, levels: &[ExactLevel]) -> Profile {
    let csr = layout.csr();
    let stats = layout.stats();
    let with_edges = stats.vertices - stats.isolated;
    let mean_degree = csr.arcs() as f64 / with_edges.max(1) as f64;
    let hubs = (0..csr.vertices() as Vertex).into_par_iter().filter(|&v| f64::from(csr.degree(v)) > mean_degree).count();
    Profile {
        vertices: stats.vertices,
        edges: stats.unique_edges,
        with_edges,
        mean_degree,
        hub_share: hubs as f64 / with_edges.max(1) as f64,
        mean_levels: searches.iter().map(|search| f64::from(search.levels)).sum::<f64>() / searches.len().max(1) as f64,
        searches,
        levels: levels.to_vec(),
    }
}
