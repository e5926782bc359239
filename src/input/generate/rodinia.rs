//! The random graph of the Rodinia benchmark suite's breadth-first search: every vertex draws a number of edges from 2 to 4 and joins
//! itself to as many vertices, drawn uniformly from all (itself included). As both ends count an edge, the average degree is 6. Rodinia
//! takes its seed from the clock and prints weights; this generator only has the same distribution.

use std::ops::Range;

use super::{
    hash::{Numbers, Seeded},
    source::Source,
};
use crate::graph::Vertex;

/// Fewest edges a vertex draws.
const LEAST: u64 = 2;
/// Most edges a vertex draws.
const MOST: u64 = 4;

pub(super) struct Rodinia {
    vertices: u64,
    random: Seeded,
}

impl Rodinia {
    pub(super) fn new(vertices: u64, seed: u64) -> Self {
        Self { vertices, random: Seeded::new(seed) }
    }

    /// Number of edges that a vertex draws, and the random numbers for their targets.
    fn draw(&self, vertex: u64) -> (u64, Numbers) {
        let mut numbers = self.random.item(vertex);
        (LEAST + numbers.below(MOST - LEAST + 1), numbers)
    }
}

impl Source for Rodinia {
    fn vertices(&self) -> u64 {
        self.vertices
    }

    fn units(&self) -> u64 {
        self.vertices
    }

    fn known_edges(&self) -> Option<u64> {
        None
    }

    fn count(&self, units: Range<u64>) -> usize {
        units.map(|vertex| self.draw(vertex).0 as usize).sum()
    }

    fn fill(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>) {
        for vertex in units {
            let (count, mut numbers) = self.draw(vertex);
            edges.extend((0..count).map(|_| [vertex as Vertex, numbers.below(self.vertices) as Vertex]));
        }
    }
}
