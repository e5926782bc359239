//! BC: unvisited vertices look for a neighbour in the frontier.
//!
//! The frontier needs no bitmap of its own. All neighbours of the levels before the frontier's have been visited, so
//! an unvisited vertex that has a visited neighbour has it in the frontier: the level reads the *visited* bitmap as it
//! was when the level began, and writes the next one beside it.
//!
//! A word of 64 visited vertices is skipped. The others test their first neighbours column by column, many vertices at
//! a time. A vertex without a hit there is collected and opens its list, which has been prefetched by then. Lists begin
//! with the neighbours of highest degree, the likeliest to be in the frontier (Yasui and Fujisawa 2015), and a vertex
//! stops at the first hit (Beamer et al. 2012).

use std::ops::Range;

use super::prefetch::prefetch;
use crate::{
    graph::Vertex,
    memory::{Shared, Slab},
};

/// A bottom-up level.
///
/// Invariants that the kernels rely on: `visited` has one word for every 64 vertices (padding bits set) and one zero
/// word after them, so that [`Layout::padded`](crate::graph::Layout::padded), "no neighbour", reads as not visited;
/// all neighbours are below 64 times the number of words. `own` has one word for every 64 rows; columns, offsets, `parent` and
/// `next` cover all of them.
#[derive(Debug)]
pub(crate) struct BottomUp<'a> {
    /// Visited bitmap when the level began, by neighbour.
    pub(crate) visited: &'a [u64],
    /// The same by row: of the vertices that look for a parent. It is `visited` itself where every vertex has a row.
    pub(crate) own: &'a [u64],
    /// `own` when the level is done; each word is written by the thread that has it in its range.
    pub(crate) next: Shared<u64>,
    /// Parents (original numbers) by internal vertex; each is written by the thread that has its word in its range.
    pub(crate) parent: Shared<Vertex>,
    /// Columns of first neighbours.
    pub(crate) columns: &'a [Slab<Vertex>],
    /// The same neighbours by original number.
    pub(crate) originals: &'a [Slab<Vertex>],
    /// Adjacency.
    pub(crate) offsets: &'a [u32],
    /// Adjacency.
    pub(crate) targets: &'a [Vertex],
    /// Mean (out-)degree of the vertices of each word; may be empty, then nothing is counted.
    pub(crate) degrees: &'a [u32],
    /// Internal to original numbers; empty where they are the same.
    pub(crate) to_original: &'a [Vertex],
    /// "No neighbour" in a column.
    pub(crate) none: Vertex,
}

/// The counts of a bottom-up level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FoundCounts {
    /// Vertices.
    pub(crate) vertices: u64,
    /// Estimate of the arcs that leave them, by the mean degrees of their words (0 where those are not known).
    pub(crate) edges: u64,
}

impl BottomUp<'_> {
    /// Counts what was found in `words`, when they are done. (Counting while the kernel finds costs it registers: 8 % of the level.)
    ///
    /// # Safety
    /// `words` are in range and the calling thread's own, all written.
    #[inline(always)]
    unsafe fn count(&self, words: Range<usize>) -> FoundCounts {
        let mut found = FoundCounts::default();
        let visited = &self.own[words.clone()];
        // SAFETY: as promised by the caller.
        let next = unsafe { std::slice::from_raw_parts(self.next.get().add(words.start), words.len()) };
        if self.degrees.is_empty() {
            for (&next, &visited) in next.iter().zip(visited) {
                found.vertices += u64::from((next & !visited).count_ones());
            }
        } else {
            for ((&next, &visited), &degree) in next.iter().zip(visited).zip(&self.degrees[words]) {
                let new = u64::from((next & !visited).count_ones());
                found.vertices += new;
                found.edges += new * u64::from(degree);
            }
        }
        found
    }

    /// Whether `v` was visited when the level began.
    ///
    /// # Safety
    /// `v` is a vertex or [`BottomUp::none`].
    #[inline(always)]
    pub(super) unsafe fn is_visited(&self, v: Vertex) -> bool {
        // SAFETY: the bitmap covers all vertices and `none`.
        unsafe { *self.visited.get_unchecked((v >> 6) as usize) >> (v & 63) & 1 == 1 }
    }

    /// Makes `parent` (an internal number) the parent of `v`.
    ///
    /// # Safety
    /// Both are vertices, and `v` belongs to a word of the calling thread.
    #[inline(always)]
    pub(super) unsafe fn set_parent(&self, v: usize, parent: Vertex) {
        // SAFETY: as promised by the caller.
        unsafe {
            let original = if self.to_original.is_empty() { parent } else { *self.to_original.get_unchecked(parent as usize) };
            *self.parent.get().add(v) = original;
        }
    }
}

/// The steps that differ between kinds of vector instructions.
pub(super) trait Probe {
    /// Asks the `k`-th neighbour of the vertices `asking` of word `word`; gives those that have it in the frontier
    /// their parent and returns them. The second result holds those that have no `k`-th neighbour (at least among the
    /// ones that are left).
    ///
    /// # Safety
    /// The CPU has the instructions, `k` is a column and `word` a word of the calling thread.
    unsafe fn column(level: &BottomUp<'_>, k: usize, word: usize, asking: u64) -> (u64, u64);

    /// The first of `list` that is in the frontier.
    ///
    /// # Safety
    /// The CPU has the instructions; `list` holds vertices.
    unsafe fn list(level: &BottomUp<'_>, list: &[Vertex]) -> Option<Vertex>;
}

/// How far ahead of the vertex that opens its list its offsets and its list are prefetched, in vertices.
const AHEAD_OFFSETS: usize = 32;
/// See [`AHEAD_OFFSETS`].
const AHEAD_LIST: usize = 12;

/// Runs the level over `words`; `remaining` has room for all their vertices. Counts what it finds.
///
/// # Safety
/// The CPU has `P`'s instructions, the invariants of [`BottomUp`] hold, and no other thread has any of `words`.
#[inline(always)]
pub(super) unsafe fn bottom_up<P: Probe>(level: &BottomUp<'_>, words: Range<usize>, remaining: &mut [Vertex]) -> FoundCounts {
    let mut count = 0;
    let columns = level.columns.len();
    assert!(words.end <= level.own.len() && remaining.len() >= 64 * words.len());
    for word in words.clone() {
        // SAFETY: the range of words was checked above; the rest is the caller's promise.
        unsafe {
            let visited = *level.own.get_unchecked(word);
            let next = level.next.get().add(word);
            if visited == u64::MAX {
                *next = u64::MAX;
                continue;
            }
            let mut asking = !visited;
            let mut hits = 0;
            for k in 0..columns {
                let (hit, exhausted) = P::column(level, k, word, asking);
                hits |= hit;
                asking &= !(hit | exhausted);
                if asking == 0 {
                    break;
                }
            }
            *next = visited | hits;
            while asking != 0 {
                *remaining.get_unchecked_mut(count) = (word * 64) as Vertex + asking.trailing_zeros();
                count += 1;
                asking &= asking - 1;
            }
        }
    }
    let remaining = &remaining[..count];
    for (i, &v) in remaining.iter().enumerate() {
        // SAFETY: all of `remaining` are vertices of this thread's words; prefetching any address is harmless.
        unsafe {
            if let Some(&ahead) = remaining.get(i + AHEAD_OFFSETS) {
                prefetch(level.offsets.as_ptr().add(ahead as usize));
            }
            if let Some(&ahead) = remaining.get(i + AHEAD_LIST) {
                let start = *level.offsets.get_unchecked(ahead as usize) as usize;
                prefetch(level.targets.as_ptr().wrapping_add(start + columns));
                prefetch(level.targets.as_ptr().wrapping_add(start + columns + 16));
            }
            let begin = *level.offsets.get_unchecked(v as usize) as usize;
            let end = *level.offsets.get_unchecked(v as usize + 1) as usize;
            let list = level.targets.get_unchecked((begin + columns).min(end)..end);
            if let Some(parent) = P::list(level, list) {
                level.set_parent(v as usize, parent);
                *level.next.get().add((v >> 6) as usize) |= 1 << (v & 63);
            }
        }
    }
    debug_assert!(remaining.iter().all(|&v| words.contains(&((v >> 6) as usize))));
    // SAFETY: the words were all written above.
    unsafe { level.count(words) }
}
