//! Uniform random graph: both ends of every edge are drawn from all vertices.

use super::{hash::Seeded, source::Source};
use socbfs::graph::Vertex;

pub(super) fn uniform(vertices: u64, edges: u64, seed: u64) -> Source {
    let random = Seeded::new(seed);
    let edge = move |index: u64| {
        let mut numbers = random.item(index);
        [numbers.below(vertices) as Vertex, numbers.below(vertices) as Vertex]
    };
    Source::of_edges(vertices, edges, move |units, list| list.extend(units.map(edge)))
}
