//! The graphs on which strategies are measured.

use socbfs_io::generate::{Generator, hash::Numbers};

/// Number of graphs of one round: each R-MAT scale of the paper once, and four others.
const ROUND: u64 = 8;

/// Number of rounds after which every scale has the 20 graphs of the paper.
pub const ROUNDS: u64 = 20;

/// Number of graphs of the whole training set.
pub const TRAINING_GRAPHS: usize = (ROUND * ROUNDS) as usize;

/// The graph with index `place` in the training set of `seed`, with at most 2^`most_scale` vertices.
///
/// The set is that of Zhang et al. 2018, section 3.2 (R-MAT of scales 16 to 19 with 16 edges per vertex and random A, B, C, D, 20 graphs of
/// each scale), and as many graphs of kinds that the paper lacks: uniform random graphs, grids like roads, small graphs, and graphs of low
/// degree. The kinds alternate, so that every round of the set has all of them, roughly by size.
pub fn training_graph(place: usize, seed: u64, most_scale: u32) -> Generator {
    let mut random = Numbers::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (place as u64).wrapping_mul(0xD1B5_4A32_D192_ED03));
    let scale = |scale: u32| scale.clamp(8, most_scale.max(8));
    let graph_seed = random.bits() >> 32;
    match place as u64 % ROUND {
        0 => {
            let vertices = 1 << scale(between(&mut random, 11, 17) as u32);
            Generator::Uniform { vertices, edges: vertices << between(&mut random, 1, 5), seed: graph_seed }
        }
        1 => {
            let (width, height) = (between(&mut random, 24, 224), between(&mut random, 24, 224));
            Generator::Grid { width, height, deletion: between(&mut random, 0, 20) as f64 / 100.0, seed: graph_seed }
        }
        2 => rmat(scale(16), 16, &mut random, graph_seed),
        3 => {
            let edge_factor = between(&mut random, 2, 32);
            rmat(scale(between(&mut random, 9, 14) as u32), edge_factor, &mut random, graph_seed)
        }
        4 => rmat(scale(17), 16, &mut random, graph_seed),
        5 => {
            let edge_factor = between(&mut random, 1, 4);
            rmat(scale(between(&mut random, 15, 18) as u32), edge_factor, &mut random, graph_seed)
        }
        6 => rmat(scale(18), 16, &mut random, graph_seed),
        _ => rmat(scale(19), 16, &mut random, graph_seed),
    }
}

/// An R-MAT graph with four random probabilities in hundredths, so that they sum to 1 and the graph's name gives them exactly. None is so
/// near to 1 that nearly all edges are the same.
fn rmat(scale: u32, edge_factor: u64, random: &mut Numbers, seed: u64) -> Generator {
    const LEAST: u64 = 5;
    let drawn = [(); 4].map(|()| between(random, 1, 1000));
    let sum: u64 = drawn.iter().sum();
    let share = |index: usize| LEAST + drawn[index] * (100 - 4 * LEAST) / sum;
    let (a, b, c) = (share(0), share(1), share(2));
    let of = |hundredths: u64| hundredths as f64 / 100.0;
    Generator::Rmat { scale, edge_factor, a: of(a), b: of(b), c: of(c), d: of(100 - a - b - c), seed }
}

/// A number from `least` to `most`.
fn between(random: &mut Numbers, least: u64, most: u64) -> u64 {
    least + random.bits() % (most - least + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_contains_the_twenty_graphs_of_each_scale_of_the_paper() {
        let graphs: Vec<Generator> = (0..TRAINING_GRAPHS).map(|place| training_graph(place, 1, 31)).collect();
        for wanted in 16..=19 {
            let of_paper = |graph: &&Generator| matches!(graph, Generator::Rmat { scale, edge_factor: 16, .. } if *scale == wanted);
            assert!(graphs.iter().filter(of_paper).count() >= 20, "{wanted}");
        }
        let mut names: Vec<String> = graphs.iter().map(Generator::to_string).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), graphs.len(), "no two are the same");
        assert!(graphs.iter().all(|graph| graph.validate().is_ok()));
        assert!(graphs.iter().any(|graph| matches!(graph, Generator::Grid { .. })));
        assert!(graphs.iter().any(|graph| matches!(graph, Generator::Uniform { .. })));
    }

    #[test]
    fn the_same_seed_gives_the_same_graphs_and_another_seed_others() {
        assert_eq!(training_graph(5, 7, 31), training_graph(5, 7, 31));
        assert_ne!(training_graph(5, 7, 31), training_graph(5, 8, 31));
        let large = |graph: &Generator| match graph {
            Generator::Rmat { scale, .. } => *scale > 14,
            Generator::Uniform { vertices, .. } => *vertices > 1 << 14,
            _ => false,
        };
        assert!(!(0..64).any(|place| large(&training_graph(place, 3, 14))), "scales are clamped to what fits");
    }
}
