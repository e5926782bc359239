//! R-MAT: every edge falls into one quadrant of the adjacency matrix, into one quadrant of that quadrant, and so on down to a
//! single entry, each time with the same four probabilities.

use std::ops::Range;

use super::{hash::Seeded, source::Source};
use crate::graph::Vertex;

pub(super) struct Rmat {
    scale: u32,
    edges: u64,
    /// Upper ends of the quadrants a, b and c on a scale of 2^32; d takes the rest.
    ends: [u64; 3],
    random: Seeded,
}

impl Rmat {
    pub(super) fn new(scale: u32, edges: u64, [a, b, c]: [f64; 3], seed: u64) -> Self {
        let end = |sum: f64| (sum * 4_294_967_296.0).round() as u64;
        Self { scale, edges, ends: [end(a), end(a + b), end(a + b + c)], random: Seeded::new(seed) }
    }

    /// Edge `index`. Each quadrant is drawn with 32 bits, so that a random number gives two quadrants.
    #[inline]
    fn edge(&self, index: u64) -> [Vertex; 2] {
        let mut numbers = self.random.item(index);
        let (mut source, mut target) = (0, 0);
        let mut bits = 0;
        for level in 0..self.scale {
            bits = if level % 2 == 0 { numbers.bits() } else { bits >> 32 };
            let draw = bits & 0xffff_ffff;
            let [in_a, in_ab, in_abc] = self.ends.map(|end| Vertex::from(draw < end));
            // c or d: lower half of the matrix; b or d: right half.
            source = (source << 1) | (1 - in_ab);
            target = (target << 1) | ((in_ab - in_a) + (1 - in_abc));
        }
        [source, target]
    }
}

impl Source for Rmat {
    fn vertices(&self) -> u64 {
        1 << self.scale
    }

    fn units(&self) -> u64 {
        self.edges
    }

    fn fill(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>) {
        edges.extend(units.map(|index| self.edge(index)));
    }
}
