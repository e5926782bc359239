//! R-MAT: every edge falls into one quadrant of the adjacency matrix, into one quadrant of that quadrant, and so on down to a
//! single entry, each time with the same four probabilities.

use super::{hash::Seeded, source::Source};
use socbfs::graph::Vertex;

pub(super) fn rmat(scale: u32, edges: u64, [a, b, c]: [f64; 3], seed: u64) -> Source {
    // Upper ends of the quadrants a, b and c on a scale of 2^32; d takes the rest.
    let ends = [a, a + b, a + b + c].map(|sum| (sum * 4_294_967_296.0).round() as u64);
    let random = Seeded::new(seed);
    // Each quadrant is drawn with 32 bits, so that a random number gives two quadrants.
    let edge = move |index: u64| {
        let mut numbers = random.item(index);
        let (mut source, mut target) = (0, 0);
        let mut bits = 0;
        for level in 0..scale {
            bits = if level % 2 == 0 { numbers.bits() } else { bits >> 32 };
            let draw = bits & 0xffff_ffff;
            let [in_a, in_ab, in_abc] = ends.map(|end| Vertex::from(draw < end));
            // c or d: lower half of the matrix; b or d: right half.
            source = (source << 1) | (1 - in_ab);
            target = (target << 1) | ((in_ab - in_a) + (1 - in_abc));
        }
        [source, target]
    };
    Source::of_edges(1 << scale, edges, move |units, list| list.extend(units.map(edge)))
}
