//! Properties of a graph that matter to a search (Remis 2016, figures 2.1, 2.2 and 2.4; SURF 2022, table 2).

use crate::record::{ExactLevel, Profile, SearchedRoot};
use rayon::prelude::*;

use socbfs::{Layout, Vertex};

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
