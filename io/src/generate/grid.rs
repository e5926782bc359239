//! A two-dimensional grid with deleted edges.

use super::{
    hash::{Seeded, threshold},
    source::Source,
};
use socbfs::graph::Vertex;

pub(super) fn grid(width: u64, height: u64, deletion: f64, seed: u64) -> Source {
    let (random, deletion) = (Seeded::new(seed), threshold(deletion));
    // The edges of vertex `v` to the right and downwards that were not deleted. Two random numbers are drawn for every vertex, also at the
    // borders of the grid, so that the downward edge always uses the second one.
    Source::of_vertices(width * height, move |v| {
        let mut numbers = random.item(v);
        let right = !numbers.chance(deletion) && v % width + 1 < width;
        let down = !numbers.chance(deletion) && v / width + 1 < height;
        let edge = |target: u64| [v as Vertex, target as Vertex];
        right.then(|| edge(v + 1)).into_iter().chain(down.then(|| edge(v + width)))
    })
}
