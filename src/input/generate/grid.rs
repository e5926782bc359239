//! A two-dimensional grid with deleted edges.

use std::ops::Range;

use super::{
    hash::{Seeded, threshold},
    source::Source,
};
use crate::graph::Vertex;

pub(super) struct Grid {
    width: u64,
    height: u64,
    deletion: u128,
    random: Seeded,
}

impl Grid {
    pub(super) fn new(width: u64, height: u64, deletion: f64, seed: u64) -> Self {
        Self { width, height, deletion: threshold(deletion), random: Seeded::new(seed) }
    }

    /// The edges of vertex `v` to the right and downwards that were not deleted. Two random numbers are drawn for every vertex, also at the
    /// borders of the grid, so that the downward edge always uses the second one.
    fn edges(&self, v: u64) -> impl Iterator<Item = [Vertex; 2]> {
        let mut numbers = self.random.item(v);
        let right = !numbers.chance(self.deletion) && v % self.width + 1 < self.width;
        let down = !numbers.chance(self.deletion) && v / self.width + 1 < self.height;
        let edge = |target: u64| [v as Vertex, target as Vertex];
        right.then(|| edge(v + 1)).into_iter().chain(down.then(|| edge(v + self.width)))
    }
}

impl Source for Grid {
    fn vertices(&self) -> u64 {
        self.width * self.height
    }

    fn units(&self) -> u64 {
        self.vertices()
    }

    fn known_edges(&self) -> Option<u64> {
        None
    }

    fn count(&self, units: Range<u64>) -> usize {
        units.map(|v| self.edges(v).count()).sum()
    }

    fn fill(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>) {
        edges.extend(units.flat_map(|v| self.edges(v)));
    }
}
