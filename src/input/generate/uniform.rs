//! Uniform random graph: both ends of every edge are drawn from all vertices.

use std::ops::Range;

use super::{hash::Seeded, source::Source};
use crate::graph::Vertex;

pub(super) struct Uniform {
    vertices: u64,
    edges: u64,
    random: Seeded,
}

impl Uniform {
    pub(super) fn new(vertices: u64, edges: u64, seed: u64) -> Self {
        Self { vertices, edges, random: Seeded::new(seed) }
    }
}

impl Source for Uniform {
    fn vertices(&self) -> u64 {
        self.vertices
    }

    fn units(&self) -> u64 {
        self.edges
    }

    fn fill(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>) {
        edges.extend(units.map(|edge| {
            let mut numbers = self.random.item(edge);
            [numbers.below(self.vertices) as Vertex, numbers.below(self.vertices) as Vertex]
        }));
    }
}
