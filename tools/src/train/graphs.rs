//! Generated graphs to learn from, of every kind, size and density that the generators make.

use socbfs_io::generate::hash::{Numbers, Seeded};

/// Scale of the smallest graphs: on smaller ones a search takes as long as reading the clock.
const SMALLEST_SCALE: u32 = 10;

/// The names (as on the command line) of `count` graphs with up to 2^`largest_scale` vertices, drawn by `seed`. Kinds alternate, so that
/// any five in a row have one of each: Graph500's Kronecker graph, R-MAT with random probabilities (as Zhang et al. 2018 train with),
/// uniform, Rodinia's, and a grid. Each graph depends only on the seed and its index, so a longer list begins with a shorter one.
pub fn generated(count: usize, seed: u64, largest_scale: u32) -> Vec<String> {
    (0..count).map(|index| draw(index, &mut Seeded::new(seed).item(index as u64), largest_scale.max(SMALLEST_SCALE))).collect()
}

/// A random fifth of `names` (SURF splits its graphs 4 : 1), drawn by `seed`.
pub fn every_fifth<'n>(names: &[&'n str], seed: u64) -> Vec<&'n str> {
    let mut drawn: Vec<(u64, &str)> =
        names.iter().enumerate().map(|(index, &name)| (Seeded::new(seed).item(index as u64).bits(), name)).collect();
    drawn.sort_unstable();
    drawn.into_iter().map(|(_, name)| name).take(names.len().div_ceil(5)).collect()
}

fn draw(index: usize, numbers: &mut Numbers, largest: u32) -> String {
    let scale = SMALLEST_SCALE + numbers.below(u64::from(largest - SMALLEST_SCALE + 1)) as u32;
    let seed = numbers.below(1 << 20);
    // 2 to 31 edges a vertex; each octave is as likely as the next.
    let octave = 2_u64 << numbers.below(4);
    let edge_factor = octave + numbers.below(octave);
    let decimal = |thousandths: u64| thousandths as f64 / 1000.0;
    match index % 5 {
        0 => format!("kronecker:{scale},edgefactor={edge_factor},seed={seed}"),
        1 => {
            let [a, b, c, d] = probabilities(numbers).map(decimal);
            format!("rmat:{scale},edgefactor={edge_factor},a={a},b={b},c={c},d={d},seed={seed}")
        }
        2 => format!("uniform:{scale},edgefactor={edge_factor},seed={seed}"),
        3 => format!("rodinia:{},seed={seed}", (1 << (scale - 1)) + numbers.below(1 << (scale - 1))),
        _ => {
            // From square to 32 times as high as wide. Most of the grid must stay in one piece when edges are deleted.
            let width = 1 << (scale / 2 - numbers.below(3) as u32);
            let height = (1_u64 << scale) / width;
            format!("grid:{width}x{height},deletion={},seed={seed}", decimal(numbers.below(200)))
        }
    }
}

/// Four probabilities in thousandths, drawn uniformly among all that sum to one, each at least a hundredth.
fn probabilities(numbers: &mut Numbers) -> [u64; 4] {
    let mut cuts = [numbers.below(961), numbers.below(961), numbers.below(961)];
    cuts.sort_unstable();
    [cuts[0] + 10, cuts[1] - cuts[0] + 10, cuts[2] - cuts[1] + 10, 970 - cuts[2]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_graphs_in_shorter_and_longer_lists() {
        let graphs = generated(40, 7, 14);
        assert_eq!(generated(15, 7, 14), graphs[..15]);
        assert_ne!(generated(15, 8, 14), graphs[..15]);
        for kind in ["kronecker:", "rmat:", "uniform:", "rodinia:", "grid:"] {
            assert_eq!(graphs.iter().filter(|graph| graph.starts_with(kind)).count(), 8, "{kind}");
        }
    }

    #[test]
    fn every_fifth_draws_a_fifth_of_the_names() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let drawn = |seed| every_fifth(&names, seed);
        assert_eq!(drawn(1).len(), 2);
        assert_eq!(drawn(1), drawn(1));
        assert!((2..20).any(|seed| drawn(seed) != drawn(1)));
        assert!(every_fifth(&[], 1).is_empty());
    }

    #[test]
    fn probabilities_sum_to_one() {
        for item in 0..1000 {
            let drawn = probabilities(&mut Seeded::new(3).item(item));
            assert_eq!(drawn.iter().sum::<u64>(), 1000);
            assert!(drawn.iter().all(|&p| p >= 10), "{drawn:?}");
        }
    }
}
