//! Size, degrees and components of a graph, computed from its edge list.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;
use serde::Serialize;

use super::{
    EdgeList, GraphError, Stopper, Vertex,
    buckets::{Buckets, for_each},
    build::count_degrees,
};
use crate::memory;

/// Vertices per task.
const VERTICES: usize = 1 << 12;

/// Counts of a graph. Edges are undirected unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphInfo {
    /// Vertices, isolated ones included.
    pub vertices: u64,
    /// Number of entries of the edge list.
    pub listed: u64,
    /// Entries that join a vertex to itself.
    pub self_loops: u64,
    /// Distinct edges without self-loops and without regard to direction.
    pub distinct_edges: u64,
    /// Distinct arcs of the directed graph, without self-loops. An edge is two arcs if it is listed in both directions, or the list is
    /// [`Listing::Symmetric`](super::Listing::Symmetric).
    pub distinct_arcs: u64,
    /// Every edge is listed equally often in both directions, and the source does not list edges once by definition.
    pub both_directions: bool,
    /// Entries that repeat an edge: all but the self-loops and one entry for each distinct edge (two if `both_directions`).
    pub repeats: u64,
    /// Vertices without an edge to another vertex.
    pub isolated: u64,
    /// Quantiles of the number of distinct neighbours.
    pub degree: DegreeQuantiles,
    /// Connected components; an isolated vertex is one.
    pub components: u64,
    /// Vertices of the largest component.
    pub largest_component: u64,
    /// What dropping the vertices without edges saves.
    pub remapping: Remapping,
}

/// Quantiles of the degree over all vertices, isolated ones included: the smallest degree that at least this share of the vertices does not
/// exceed. All 0 for a graph without vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct DegreeQuantiles {
    /// Smallest degree.
    pub min: u32,
    /// 25 % of the vertices have at most this degree.
    pub p25: u32,
    /// 50 % of the vertices have at most this degree.
    pub p50: u32,
    /// 75 % of the vertices have at most this degree.
    pub p75: u32,
    /// 90 % of the vertices have at most this degree.
    pub p90: u32,
    /// 99 % of the vertices have at most this degree.
    pub p99: u32,
    /// Largest degree.
    pub max: u32,
}

/// A column of table 6 in Zhang et al. 2018: numbers of vertices before and after those of degree zero are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Remapping {
    /// Vertices of the graph.
    pub original: u64,
    /// Vertices that have an edge to another vertex.
    pub optimized: u64,
    /// Share of the vertices that is saved, in percent; 0 for a graph without vertices.
    pub saved_percent: f64,
}

/// Computes the counts of `edges` on the current rayon pool. Takes 56 bytes for each vertex and 4 for each entry, and 8 more for each entry
/// while it sorts.
///
/// # Errors
/// [`GraphError::VertexOutOfRange`] with the first edge that names a vertex the graph does not have;
/// [`GraphError::OutOfMemory`] if the graph needs more memory than there is.
pub fn info(edges: &EdgeList) -> Result<GraphInfo, GraphError> {
    let n = edges.vertices();
    // 24 bytes and, for the buckets, four words for each vertex. Without this check, a failed allocation would end the program.
    let of_vertices = n as u64 * (4 * size_of::<usize>() as u64 + 24);
    memory::check_available(of_vertices + 12 * edges.len() as u64, "counting the graph")?;
    // Sorts edges by their smaller end: edges that lead away from it go into its even bucket, edges that lead to it into its odd one.
    let place = |u: Vertex, v: Vertex| (u != v).then(|| (2 * u.min(v) as usize + usize::from(u > v), u.max(v)));
    let buckets = Buckets::sort(edges, 2 * n, place)?;

    let degree: Vec<AtomicU32> = (0..n).into_par_iter().map(|_| AtomicU32::new(0)).collect();
    let pairs = (0..n).into_par_iter().with_min_len(VERTICES).map(|v| Pairs::count(&buckets, v, &degree));
    let pairs = pairs.reduce(Pairs::default, Pairs::plus);
    let mut degrees: Vec<u32> = degree.into_iter().map(AtomicU32::into_inner).collect();
    let isolated = degrees.par_iter().filter(|&&degree| degree == 0).count() as u64;
    degrees.par_sort_unstable();

    let (components, largest_component) = components(edges);
    let listed = edges.len() as u64;
    // With repeats, the entries of a vertex may be equally many in both directions although those of a pair are not.
    let may_be = !edges.listing().is_once() && pairs.edges > 0 && !pairs.asymmetric;
    let both_directions = may_be && (pairs.listed == 2 * pairs.edges || count_degrees(edges, n, &Stopper::default())?.symmetric());
    let once = if both_directions { 2 * pairs.edges } else { pairs.edges };
    let vertices = n as u64;
    Ok(GraphInfo {
        vertices,
        listed,
        self_loops: listed - pairs.listed,
        distinct_edges: pairs.edges,
        distinct_arcs: if edges.listing().is_mirrored(true) { 2 * pairs.edges } else { pairs.arcs },
        both_directions,
        repeats: pairs.listed - once,
        isolated,
        degree: DegreeQuantiles::of_sorted(&degrees),
        components,
        largest_component,
        remapping: Remapping {
            original: vertices,
            optimized: vertices - isolated,
            saved_percent: if n == 0 { 0.0 } else { 100.0 * isolated as f64 / vertices as f64 },
        },
    })
}

/// Counts over pairs of different vertices that an edge joins.
#[derive(Debug, Clone, Copy, Default)]
struct Pairs {
    /// Entries of the list.
    listed: u64,
    /// Pairs joined in some direction.
    edges: u64,
    /// Directions in which pairs are joined: one or two for each pair.
    arcs: u64,
    /// Some pair is listed in one direction only, or the entries of some vertex are not equally many in both.
    asymmetric: bool,
}

impl Pairs {
    /// Counts the pairs whose smaller end is `v`, and adds them to the degrees of both ends.
    fn count(buckets: &Buckets, v: usize, degree: &[AtomicU32]) -> Self {
        let [forward, backward] = [2 * v, 2 * v + 1].map(|bucket| buckets.distinct(bucket));
        let listed = [2 * v, 2 * v + 1].map(|bucket| buckets.listed(bucket) as u64);
        let arcs = (forward.len() + backward.len()) as u64;
        let mut edges = 0;
        let (mut left, mut right) = (forward, backward);
        while let Some(&other) = left.first().into_iter().chain(right.first()).min() {
            left = &left[usize::from(left.first() == Some(&other))..];
            right = &right[usize::from(right.first() == Some(&other))..];
            degree[other as usize].fetch_add(1, Relaxed);
            edges += 1;
        }
        degree[v].fetch_add(edges, Relaxed);
        Self { listed: listed[0] + listed[1], edges: u64::from(edges), arcs, asymmetric: forward != backward || listed[0] != listed[1] }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            listed: self.listed + other.listed,
            edges: self.edges + other.edges,
            arcs: self.arcs + other.arcs,
            asymmetric: self.asymmetric | other.asymmetric,
        }
    }
}

impl DegreeQuantiles {
    fn of_sorted(degrees: &[u32]) -> Self {
        let Some(last) = degrees.len().checked_sub(1) else { return Self::default() };
        // In 64 bits, since 43 million vertices times 100 exceed 32 bits. The quotient is at most the number of vertices.
        let percentile = |percent: u64| degrees[(degrees.len() as u64 * percent).div_ceil(100) as usize - 1];
        Self {
            min: degrees[0],
            p25: percentile(25),
            p50: percentile(50),
            p75: percentile(75),
            p90: percentile(90),
            p99: percentile(99),
            max: degrees[last],
        }
    }
}

/// Number of connected components and of vertices of the largest one. All edges must be in range.
///
/// All threads join the trees of one forest over the vertices (Jayanti and Tarjan, "Concurrent disjoint set union", 2021, with the smaller
/// number as the root). For an edge, a compare-and-swap makes the root of one end the parent of the root of the other. It fails if that
/// vertex is no longer a root, and is tried again from there. A vertex's parent only ever changes to an ancestor, so stale reads cost
/// steps, not correctness.
fn components(edges: &EdgeList) -> (u64, u64) {
    let n = edges.vertices();
    // Vertices fit 32 bits: an edge list has at most `MAX_VERTICES`.
    let parent: Vec<AtomicU32> = (0..n).into_par_iter().map(|v| AtomicU32::new(v as Vertex)).collect();
    let root = |mut v: Vertex| loop {
        let above = parent[v as usize].load(Relaxed);
        if above == v {
            return v;
        }
        let further = parent[above as usize].load(Relaxed);
        if further != above {
            // Path halving. No retry is needed if it fails: it only shortens later walks.
            let _ = parent[v as usize].compare_exchange_weak(above, further, Relaxed, Relaxed);
        }
        v = further;
    };
    for_each(edges, |u, v| {
        let (mut a, mut b) = (root(u), root(v));
        while a != b {
            let (low, high) = (a.min(b), a.max(b));
            match parent[high as usize].compare_exchange(high, low, Relaxed, Relaxed) {
                Ok(_) => break,
                Err(above) => (a, b) = (root(low), root(above)),
            }
        }
    });
    let size: Vec<AtomicU64> = (0..n).into_par_iter().map(|_| AtomicU64::new(0)).collect();
    (0..n).into_par_iter().for_each(|v| {
        size[root(v as Vertex) as usize].fetch_add(1, Relaxed);
    });
    let sizes = size.into_par_iter().map(AtomicU64::into_inner);
    sizes.map(|size| (u64::from(size > 0), size)).reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1.max(b.1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    use super::*;
    use crate::graph::Listing;

    fn of(vertices: usize, edges: &[[Vertex; 2]], listing: Listing) -> GraphInfo {
        info(&EdgeList::new(vertices, edges.to_vec(), listing).unwrap()).unwrap()
    }

    #[test]
    fn graphs_without_edges_have_their_counts() {
        let none = of(0, &[], Listing::Unknown);
        assert_eq!((none.vertices, none.components, none.largest_component, none.both_directions), (0, 0, 0, false));
        assert_eq!(none.remapping, Remapping { original: 0, optimized: 0, saved_percent: 0.0 });
        let bare = of(3, &[[1, 1], [1, 1]], Listing::Unknown);
        assert_eq!((bare.listed, bare.self_loops, bare.repeats, bare.distinct_edges), (2, 2, 0, 0));
        assert_eq!((bare.isolated, bare.components, bare.largest_component, bare.both_directions), (3, 3, 1, false));
        assert_eq!(bare.remapping.saved_percent, 100.0);
    }

    #[test]
    fn all_figures_of_a_small_graph_are_counted() {
        // A triangle with repeats and a loop, an edge listed in both directions, two isolated vertices.
        let edges = [[0, 1], [1, 2], [2, 0], [0, 2], [2, 0], [1, 1], [3, 4], [4, 3]];
        let info = of(7, &edges, Listing::Unknown);
        let expected = GraphInfo {
            vertices: 7,
            listed: 8,
            self_loops: 1,
            distinct_edges: 4,
            distinct_arcs: 6,
            both_directions: false,
            repeats: 3,
            isolated: 2,
            degree: DegreeQuantiles { min: 0, p25: 0, p50: 1, p75: 2, p90: 2, p99: 2, max: 2 },
            components: 4,
            largest_component: 3,
            remapping: Remapping { original: 7, optimized: 5, saved_percent: 200.0 / 7.0 },
        };
        assert_eq!(info, expected);
    }

    #[test]
    fn both_directions_need_equal_counts() {
        let both = [[0, 1], [1, 0], [1, 2], [2, 1], [0, 1], [1, 0]];
        let info = of(3, &both, Listing::Unknown);
        assert!(info.both_directions);
        assert_eq!((info.distinct_edges, info.distinct_arcs, info.repeats), (2, 4, 2));
        assert!(of(3, &both, Listing::BothDirections).both_directions);
        // Listed once by definition, the same entries are repeats.
        let once = of(3, &both, Listing::Once);
        assert_eq!((once.both_directions, once.repeats, once.distinct_arcs), (false, 4, 4));
        let symmetric = of(3, &[[1, 0], [2, 1], [1, 0], [2, 2]], Listing::Symmetric);
        assert_eq!((symmetric.both_directions, symmetric.repeats, symmetric.distinct_edges, symmetric.distinct_arcs), (false, 1, 2, 4));
        assert!(!of(3, &both[..5], Listing::Unknown).both_directions);
        assert!(!of(3, &both[..3], Listing::BothDirections).both_directions);
        // Vertex 0 has three entries in each direction, but neither pair is listed equally often.
        let uneven = of(3, &[[0, 1], [0, 1], [1, 0], [0, 2], [2, 0], [2, 0]], Listing::Unknown);
        assert_eq!((uneven.both_directions, uneven.repeats, uneven.distinct_edges), (false, 4, 2));
    }

    #[test]
    fn quantiles_are_taken_by_nearest_rank() {
        let degrees: Vec<u32> = (1..=200).collect();
        let quantiles = DegreeQuantiles::of_sorted(&degrees);
        assert_eq!(quantiles, DegreeQuantiles { min: 1, p25: 50, p50: 100, p75: 150, p90: 180, p99: 198, max: 200 });
        let one = DegreeQuantiles::of_sorted(&[7]);
        assert_eq!((one.min, one.p25, one.p99, one.max), (7, 7, 7, 7));
    }

    #[test]
    fn edges_out_of_range_are_refused() {
        let list = EdgeList::new(2, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        assert!(matches!(info(&list), Err(GraphError::VertexOutOfRange { index: 1, .. })));
    }

    #[test]
    fn long_path_and_star_are_one_component() {
        let n = 200_000;
        let path: Vec<[Vertex; 2]> = (1..n).rev().map(|v| [v, v - 1]).collect();
        let star: Vec<[Vertex; 2]> = (0..n - 1).map(|v| [n - 1, v]).collect();
        for (edges, max) in [(path, 2), (star, n - 1)] {
            for threads in [1, 4] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let info = pool.install(|| of(n as usize, &edges, Listing::Once));
                assert_eq!((info.components, info.largest_component, info.degree.max), (1, u64::from(n), max));
            }
        }
    }

    proptest! {
        #[test]
        fn info_agrees_with_naive_counts(n in 1..30_u32, seeds in prop::collection::vec(any::<[u32; 2]>(), 0..80)) {
            let edges: Vec<[Vertex; 2]> = seeds.iter().map(|seed| seed.map(|s| s % n)).collect();
            let info = of(n as usize, &edges, Listing::Unknown);
            let joined: Vec<[Vertex; 2]> = edges.iter().copied().filter(|[u, v]| u != v).collect();
            let distinct: BTreeSet<[Vertex; 2]> = joined.iter().map(|&[u, v]| [u.min(v), u.max(v)]).collect();
            let mut degree = vec![0; n as usize];
            distinct.iter().flatten().for_each(|&v| degree[v as usize] += 1);
            // Finds components by spreading the smallest number until nothing changes.
            let mut label: Vec<Vertex> = (0..n).collect();
            for _ in 0..n {
                for &[u, v] in &distinct {
                    let low = label[u as usize].min(label[v as usize]);
                    (label[u as usize], label[v as usize]) = (low, low);
                }
            }
            let size = |l| label.iter().filter(|&&label| label == l).count() as u64;
            prop_assert_eq!(info.self_loops as usize, edges.len() - joined.len());
            prop_assert_eq!(info.distinct_edges as usize, distinct.len());
            prop_assert_eq!(info.distinct_arcs as usize, joined.iter().collect::<BTreeSet<_>>().len());
            prop_assert_eq!(info.isolated as usize, degree.iter().filter(|&&d| d == 0).count());
            prop_assert_eq!(info.degree.max, degree.iter().copied().max().unwrap_or(0));
            prop_assert_eq!(info.components as usize, label.iter().collect::<BTreeSet<_>>().len());
            prop_assert_eq!(info.largest_component, (0..n).map(size).max().unwrap_or(0));
            let entries = info.self_loops + info.repeats + info.distinct_edges * if info.both_directions { 2 } else { 1 };
            prop_assert_eq!(entries as usize, edges.len());
        }
    }
}
