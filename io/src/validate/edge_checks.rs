//! Checks 3 and 4, the marks for check 5, and the count of edges for TEPS.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::Violation;
use socbfs::graph::{EdgeList, NONE, Vertex, buckets::Buckets};

/// Vertices per task.
const VERTICES: usize = 1 << 10;
/// Edges per task.
const EDGES: usize = 1 << 13;
/// Neighbours per block of the inner loop.
const BLOCK: usize = 1 << 9;

/// The levels of all vertices.
pub(super) trait Levels: Copy + Sync {
    /// Value of a vertex that was not reached: at least two more than the deepest level.
    const UNREACHED: u32;

    fn at(self, vertex: Vertex) -> u32;
}

/// Levels of one byte, for trees of levels up to [`Short::DEEPEST`].
#[derive(Clone, Copy)]
pub(super) struct Short<'a>(pub(super) &'a [u8]);

impl Short<'_> {
    pub(super) const DEEPEST: u32 = Self::UNREACHED - 2;
}

impl Levels for Short<'_> {
    const UNREACHED: u32 = 255;

    #[inline]
    fn at(self, vertex: Vertex) -> u32 {
        u32::from(self.0[vertex as usize])
    }
}

/// Levels of four bytes.
#[derive(Clone, Copy)]
pub(super) struct Long<'a>(pub(super) &'a [AtomicU32]);

impl Levels for Long<'_> {
    const UNREACHED: u32 = NONE;

    #[inline]
    fn at(self, vertex: Vertex) -> u32 {
        self.0[vertex as usize].load(Relaxed)
    }
}

/// The data of one scan over all edges.
pub(super) struct Scan<'a, L> {
    pub(super) edges: &'a EdgeList,
    /// The same edges without repeats and self-loops: an arc at its source, an undirected edge at its smaller end.
    pub(super) adjacency: &'a Buckets,
    pub(super) directed: bool,
    pub(super) levels: L,
    pub(super) parent: &'a [Vertex],
    /// Set for every vertex that an edge joins to its parent.
    pub(super) confirmed: &'a [AtomicBool],
}

impl<L: Levels> Scan<'_, L> {
    /// Returns the number of listed edges, without self-loops, with both ends in the tree.
    pub(super) fn run(&self) -> Result<u64, Violation> {
        let n = self.adjacency.count();
        let tasks = (0..n.div_ceil(VERTICES)).into_par_iter().map(|task| {
            let vertices = task * VERTICES..(task * VERTICES + VERTICES).min(n);
            if self.directed { self.part::<true>(vertices) } else { self.part::<false>(vertices) }
        });
        let (edges, wrong) = tasks.reduce(|| (0, false), |a, b| (a.0 + b.0, a.1 | b.1));
        if wrong { Err(self.first_fault()) } else { Ok(edges) }
    }

    /// The number of listed edges that `adjacency` holds at these vertices with both ends in the tree, and whether any edge at these
    /// vertices fails check 3 or 4.
    fn part<const DIRECTED: bool>(&self, vertices: std::ops::Range<usize>) -> (u64, bool) {
        let mut candidates = [0; BLOCK];
        let (mut edges, mut wrong) = (0, false);
        for u in vertices {
            let level = self.levels.at(u as Vertex);
            if level != L::UNREACHED {
                // If the checks pass, the other ends are in the tree as well.
                edges += self.adjacency.listed(u) as u64;
            } else if DIRECTED {
                continue;
            }
            let parent = self.parent[u];
            let mut joined = false;
            for block in self.adjacency.distinct(u).chunks(BLOCK) {
                // Half of the branches on levels would be mispredicted, so the loop has none. It writes every neighbour to `candidates`,
                // and moves the index only past those that may be children.
                let mut count = 0;
                for &v in block {
                    let other = self.levels.at(v);
                    // The value for "not reached" is two above the deepest level, so that one comparison makes both checks.
                    wrong |= if DIRECTED { other > level.saturating_add(1) } else { other.abs_diff(level) > 1 };
                    joined |= v == parent;
                    candidates[count % BLOCK] = v;
                    count += usize::from(other == level.wrapping_add(1));
                }
                for &v in &candidates[..count] {
                    if self.parent[v as usize] == u as Vertex {
                        self.confirmed[v as usize].store(true, Relaxed);
                    }
                }
            }
            if !DIRECTED && joined {
                self.confirmed[u].store(true, Relaxed);
            }
        }
        (edges, wrong)
    }

    /// The violation to report; there is one. Goes through the whole list as given, since the first fault that a thread finds may not be
    /// the first in the list.
    fn first_fault(&self) -> Violation {
        let listed = self.edges.len();
        let tasks = (0..listed.div_ceil(EDGES)).into_par_iter().map(|task| self.faults(task * EDGES..(task * EDGES + EDGES).min(listed)));
        let faults = tasks.reduce(|| [None; 2], |a, b| [first(a[0], b[0]), first(a[1], b[1])]);
        match faults.into_iter().flatten().next() {
            Some((_, violation)) => violation,
            None => unreachable!("the adjacency holds the same edges as the list"),
        }
    }

    /// The first fault of check 3 and the first of check 4 among the edges `range`.
    fn faults(&self, range: std::ops::Range<usize>) -> [Fault; 2] {
        let (mut gap, mut not_spanned) = (None, None);
        let mut edge = range.start;
        self.edges.for_each(range, |source_vertex, target_vertex| {
            let [source_level, target_level] = [source_vertex, target_vertex].map(|v| self.levels.at(v));
            match [source_level, target_level].map(|level| level != L::UNREACHED) {
                [true, true] => {
                    if target_level > source_level + 1 || !self.directed && source_level > target_level + 1 {
                        gap = gap.or(Some((edge, Violation::LevelGap { edge, source_vertex, source_level, target_vertex, target_level })));
                    }
                }
                [true, false] => {
                    not_spanned =
                        not_spanned.or(Some((edge, Violation::NotSpanned { edge, reached: source_vertex, missed: target_vertex })));
                }
                [false, true] if !self.directed => {
                    not_spanned =
                        not_spanned.or(Some((edge, Violation::NotSpanned { edge, reached: target_vertex, missed: source_vertex })));
                }
                [false, _] => {}
            }
            edge += 1;
        });
        [gap, not_spanned]
    }
}

/// A violation, with the position of its edge in the list.
type Fault = Option<(usize, Violation)>;

fn first(a: Fault, b: Fault) -> Fault {
    [a, b].into_iter().flatten().min_by_key(|(edge, _)| *edge)
}
