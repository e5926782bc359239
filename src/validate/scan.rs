//! One pass over the edge list: checks 3 and 4, the marks for check 5, and the edges that count for TEPS.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::Violation;
use crate::graph::{EdgeList, GraphError, NONE, Vertex};

/// Edges per task, a power of two.
const CHUNK: usize = 1 << 13;

/// The levels of all vertices.
pub(super) trait Levels: Copy + Sync {
    /// In place of a level: not reached. At least two more than the deepest level.
    const UNREACHED: u32;

    fn at(self, vertex: Vertex) -> u32;
}

/// In one byte each, for trees of levels up to [`Short::DEEPEST`].
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

/// In four bytes each.
#[derive(Clone, Copy)]
pub(super) struct Long<'a>(pub(super) &'a [AtomicU32]);

impl Levels for Long<'_> {
    const UNREACHED: u32 = NONE;

    #[inline]
    fn at(self, vertex: Vertex) -> u32 {
        self.0[vertex as usize].load(Relaxed)
    }
}

/// What the pass counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) edges: u64,
    pub(super) self_loops: u64,
}

/// What the pass works on. The vertices of all edges are in range.
pub(super) struct Scan<'a, L> {
    pub(super) edges: &'a EdgeList,
    pub(super) levels: L,
    pub(super) parent: &'a [Vertex],
    /// Set for every vertex that is found joined to its parent.
    pub(super) confirmed: &'a [AtomicBool],
}

impl<L: Levels> Scan<'_, L> {
    pub(super) fn run(&self, directed: bool) -> Result<Counts, Violation> {
        if directed { self.pass::<true>() } else { self.pass::<false>() }
    }

    fn pass<const DIRECTED: bool>(&self) -> Result<Counts, Violation> {
        let listed = self.edges.len();
        let parts = (0..listed.div_ceil(CHUNK)).into_par_iter().map_init(
            || vec![[0; 2]; CHUNK],
            |buffer, chunk| {
                let start = chunk * CHUNK;
                self.part::<DIRECTED>(start..(start + CHUNK).min(listed), buffer)
            },
        );
        // Nothing stops at the first fault: which one that is depends on the threads.
        let (counts, faults) = parts.reduce(Default::default, |(a, faults_a), (b, faults_b)| {
            let counts = Counts { edges: a.edges + b.edges, self_loops: a.self_loops + b.self_loops };
            (counts, [first(faults_a[0], faults_b[0]), first(faults_a[1], faults_b[1])])
        });
        match faults.into_iter().flatten().next() {
            None => Ok(counts),
            Some((_, violation)) => Err(violation),
        }
    }

    /// Counts, and the first faults of check 3 and of check 4, among the edges `range`.
    fn part<const DIRECTED: bool>(&self, range: std::ops::Range<usize>, buffer: &mut [[Vertex; 2]]) -> (Counts, [Fault; 2]) {
        let (levels, unreached) = (self.levels, L::UNREACHED);
        let (mut inside, mut loops, mut wrong, mut candidates) = (0_u64, 0_u64, false, 0);
        // Half of the branches would be mispredicted here, so there are none: edges that may be tree edges are written to the buffer
        // whatever they are, and kept by moving on.
        self.edges.for_each(range.clone(), |u, v| {
            let (a, b) = (levels.at(u), levels.at(v));
            let (tree_edge, joined) = if DIRECTED {
                // Unreached lies two above the deepest level, so that one comparison makes both checks.
                wrong |= b > a.saturating_add(1);
                ((a != unreached) & (a.wrapping_add(1) == b), [v, u])
            } else {
                wrong |= a.abs_diff(b) > 1;
                (a != b, if a < b { [v, u] } else { [u, v] })
            };
            inside += u64::from(a != unreached);
            loops += u64::from((a != unreached) & (u == v));
            buffer[candidates % CHUNK] = joined;
            candidates += usize::from(tree_edge);
        });
        for &[child, parent] in &buffer[..candidates] {
            if self.parent[child as usize] == parent {
                self.confirmed[child as usize].store(true, Relaxed);
            }
        }
        let faults = if wrong { self.faults::<DIRECTED>(range) } else { [None; 2] };
        (Counts { edges: inside - loops, self_loops: loops }, faults)
    }

    /// The first faults of check 3 and of check 4 among the edges `range`, the slow way.
    fn faults<const DIRECTED: bool>(&self, range: std::ops::Range<usize>) -> [Fault; 2] {
        let (mut gap, mut not_spanned) = (None, None);
        let mut edge = range.start;
        self.edges.for_each(range, |source_vertex, target_vertex| {
            let [source_level, target_level] = [source_vertex, target_vertex].map(|v| self.levels.at(v));
            match [source_level, target_level].map(|level| level != L::UNREACHED) {
                [true, true] => {
                    if target_level > source_level + 1 || !DIRECTED && source_level > target_level + 1 {
                        gap = gap.or(Some((edge, Violation::LevelGap { edge, source_vertex, source_level, target_vertex, target_level })));
                    }
                }
                [true, false] => {
                    not_spanned =
                        not_spanned.or(Some((edge, Violation::NotSpanned { edge, reached: source_vertex, missed: target_vertex })));
                }
                [false, true] if !DIRECTED => {
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

/// A violation and the edge it is about.
type Fault = Option<(usize, Violation)>;

fn first(a: Fault, b: Fault) -> Fault {
    [a, b].into_iter().flatten().min_by_key(|(edge, _)| *edge)
}

/// Checks that all edges join vertices of the graph.
pub(super) fn check_range(edges: &EdgeList) -> Result<(), GraphError> {
    let (listed, vertices) = (edges.len(), edges.vertices());
    let outside = (0..listed.div_ceil(CHUNK)).into_par_iter().find_map_first(|chunk| {
        let range = chunk * CHUNK..(chunk * CHUNK + CHUNK).min(listed);
        let mut largest = 0;
        edges.for_each(range.clone(), |u, v| largest = largest.max(u).max(v));
        if (largest as usize) < vertices {
            return None;
        }
        let (mut index, mut found) = (range.start, None);
        edges.for_each(range, |source_vertex, target_vertex| {
            if found.is_none() && source_vertex.max(target_vertex) as usize >= vertices {
                found = Some(GraphError::VertexOutOfRange { index, source_vertex, target_vertex, vertices });
            }
            index += 1;
        });
        found
    });
    outside.map_or(Ok(()), Err)
}
