//! The random graph of the Rodinia benchmark suite's breadth-first search: every vertex draws a number of edges from 2 to 4 and joins
//! itself to as many vertices, drawn uniformly from all (itself included). As both ends count an edge, the average degree is 6. Rodinia
//! takes its seed from the clock and prints weights; this generator only has the same distribution.

use super::{hash::Seeded, source::Source};
use socbfs::graph::Vertex;

/// Fewest edges a vertex draws.
const LEAST: u64 = 2;
/// Most edges a vertex draws.
const MOST: u64 = 4;

pub(super) fn rodinia(vertices: u64, seed: u64) -> Source {
    let random = Seeded::new(seed);
    Source::of_vertices(vertices, move |vertex| {
        let mut numbers = random.item(vertex);
        let count = LEAST + numbers.below(MOST - LEAST + 1);
        (0..count).map(move |_| [vertex as Vertex, numbers.below(vertices) as Vertex])
    })
}
