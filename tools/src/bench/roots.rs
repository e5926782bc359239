//! The roots of a benchmark.

use std::collections::HashSet;

use socbfs::Vertex;
use socbfs_io::generate::mrg::Mrg;

/// The random stream that roots are drawn from: Graph500's generator under these seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct RootSource {
    /// First seed.
    pub seed1: u64,
    /// Second seed.
    pub seed2: u64,
}

impl RootSource {
    /// The seeds of the Graph500 benchmark.
    pub const GRAPH500: Self = Self { seed1: 2, seed2: 3 };
}

impl Default for RootSource {
    fn default() -> Self {
        Self::GRAPH500
    }
}

/// Draws `count` different roots from `0..vertices` by the rule of Graph500 3.x. Returns fewer only where fewer vertices have a degree
/// above 0.
///
/// `degree` gives the degree of a vertex, self-loops not counted (the number of successors in a directed graph).
///
/// The rule takes pairs of fractions d0 and d1 one after another from the generator's stream, beginning 2^129 numbers after its start. Each
/// pair gives the candidate floor((d0 + d1) N) mod N; candidates that were drawn before or have no edge are skipped. The rule is the same
/// where N is not a power of two. After N pairs, the reference code gives up and takes whatever was drawn last. Here the missing roots are
/// then the lowest numbers among the vertices that qualify; this only happens to graphs with hardly any edges or with about `count`
/// vertices.
pub fn roots(vertices: usize, degree: impl Fn(Vertex) -> u32, count: usize, source: RootSource) -> Vec<Vertex> {
    let mut roots = Vec::new();
    let mut seen = HashSet::new();
    let mut stream = Mrg::new(source.seed1, source.seed2);
    stream.skip(2, 0, 0);
    for _ in 0..vertices {
        if roots.len() == count {
            return roots;
        }
        let sum = stream.fraction() + stream.fraction();
        // Both fractions are below 1, so the product fits 64 bits, and the remainder is a vertex.
        let candidate = ((sum * vertices as f64) as u64 % vertices as u64) as Vertex;
        if !seen.contains(&candidate) && degree(candidate) > 0 {
            seen.insert(candidate);
            roots.push(candidate);
        }
    }
    let missing = count - roots.len();
    // The numbers fit 32 bits, since a graph has at most `MAX_VERTICES` vertices.
    roots.extend((0..vertices).map(|v| v as Vertex).filter(|v| !seen.contains(v) && degree(*v) > 0).take(missing));
    roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs_io::generate::Generator;

    fn golden(scale: u32, first: &[Vertex]) {
        let edges = Generator::graph500(scale).generate(&|_| ()).unwrap();
        let mut degree = vec![0; edges.vertices()];
        edges.for_each(0..edges.len(), |u, v| {
            if u != v {
                degree[u as usize] += 1;
                degree[v as usize] += 1;
            }
        });
        let all = roots(edges.vertices(), |v| degree[v as usize], 64, RootSource::GRAPH500);
        assert_eq!(&all[..first.len()], first);
        assert_eq!(all.len(), 64);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 64);
        assert!(all.iter().all(|&v| degree[v as usize] > 0));
    }

    #[test]
    fn roots_of_scale_10_are_the_reference() {
        golden(10, &[458, 214, 220]);
    }

    #[test]
    fn roots_of_scale_16_are_the_reference() {
        golden(16, &[29348, 8064]);
    }

    #[test]
    #[cfg_attr(debug_assertions, ignore = "16.8 million edges: run with --release")]
    fn roots_of_scale_20_are_the_reference() {
        golden(20, &[469_580, 129_031]);
    }

    #[test]
    #[ignore = "67 million edges and 0.6 GB: run with --release and --ignored"]
    fn roots_of_scale_22_are_the_reference() {
        golden(22, &[1_878_321, 1_619_978]);
    }

    #[test]
    fn roots_are_found_where_few_vertices_qualify() {
        let source = RootSource::default();
        assert!(roots(0, |_| 1, 64, source).is_empty());
        assert!(roots(1000, |_| 0, 64, source).is_empty());
        assert!(roots(1000, |_| 1, 0, source).is_empty());
        assert_eq!(roots(1, |_| 3, 64, source), [0]);
        let only = roots(100_000, |v| u32::from(v == 77_777), 64, source);
        assert_eq!(only, [77_777]);
        let mut all = roots(64, |_| 1, 64, source);
        all.sort_unstable();
        assert!(all.into_iter().eq(0..64));
    }

    #[test]
    fn roots_are_drawn_where_the_vertices_are_not_a_power_of_two() {
        let some = roots(1000, |v| v % 3, 64, RootSource::GRAPH500);
        assert!(some.len() == 64 && some.iter().all(|v| v % 3 > 0 && *v < 1000));
        // The roots are drawn at random, not counted up from 0.
        assert!(some.iter().any(|&v| v > 500) && some.windows(2).any(|pair| pair[0] > pair[1]));
        assert_ne!(some, roots(1000, |v| v % 3, 64, RootSource { seed1: 2, seed2: 4 }));
    }
}
