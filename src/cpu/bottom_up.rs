//! BC: unvisited vertices look for a neighbour in the frontier.
//!
//! The frontier needs no separate bitmap. All neighbours of the levels before the frontier have been visited, so a visited neighbour of an
//! unvisited vertex is in the frontier: the level reads the *visited* bitmap as it was when the level began, and writes the next bitmap to
//! another array.
//!
//! A word of 64 visited vertices is skipped. The vertices of other words test their first neighbours column by column, many vertices at a
//! time. A vertex without a hit there is collected, and its list is prefetched before it is searched. Lists begin with the neighbours of
//! highest degree, the likeliest to be in the frontier (Yasui and Fujisawa 2015), and a vertex stops at the first hit (Beamer et al. 2012).

use std::ops::Range;

use super::top_down::look_ahead;
use crate::{
    graph::{Adjacency, Lists, Vertex},
    memory::{Shared, Slab},
};

/// A bottom-up level.
///
/// Invariants that the kernels rely on: `visited` has one word for every 64 vertices (padding bits set) and one zero word after them, so
/// that [`Layout::padded`](crate::graph::Layout::padded), the number for "no neighbour", reads as not visited; all neighbours are below 64
/// times the number of words. `own` has one word for every 64 rows; columns, offsets, `parent` and `next` cover all of them.
#[derive(Debug)]
pub struct BottomUp<'a> {
    /// Visited bitmap as it was when the level began, by neighbour.
    pub visited: &'a [u64],
    /// Visited bitmap of the vertices that look for a parent, by row. It is `visited` itself if every vertex has a row.
    pub own: &'a [u64],
    /// `own` as it is after the level; each word is written by the thread that has it in its range.
    pub next: Shared<u64>,
    /// Parents (original numbers) by internal vertex; each is written by the thread that has its word in its range.
    pub parent: Shared<Vertex>,
    /// Columns of first neighbours.
    pub columns: &'a [Slab<Vertex>],
    /// The neighbours in `columns`, by original number.
    pub originals: &'a [Slab<Vertex>],
    /// Adjacency.
    pub lists: Lists<'a>,
    /// Mean (out-)degree of the vertices of each word; if empty, arcs are not counted.
    pub degrees: &'a [u32],
    /// Internal to original numbers; empty where they are the same.
    pub to_original: &'a [Vertex],
    /// "No neighbour" in a column.
    pub none: Vertex,
}

/// The counts of a bottom-up level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FoundCounts {
    /// Number of vertices found.
    pub vertices: u64,
    /// Estimate of the arcs that leave these vertices, from the mean degrees of their words (0 if those are unknown).
    pub edges: u64,
}

impl BottomUp<'_> {
    /// Counts what was found in `words`, after they are done. (Counting inside the kernel costs it registers: 8 % of the level.)
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
    /// Tests the `k`-th neighbours of the vertices `asking` of word `word`. A vertex whose neighbour is in the frontier gets it as parent,
    /// and its bit is set in the first result. The second result has the bits of vertices without a `k`-th neighbour (at least of those in
    /// `asking`).
    ///
    /// # Safety
    /// The CPU has the instructions, `k` is a column and `word` a word of the calling thread.
    unsafe fn column(level: &BottomUp<'_>, k: usize, word: usize, asking: u64) -> (u64, u64);

    /// The first vertex of `list` that is in the frontier.
    ///
    /// # Safety
    /// The CPU has the instructions; `list` holds vertices.
    #[inline(always)]
    unsafe fn list(level: &BottomUp<'_>, list: &[Vertex]) -> Option<Vertex> {
        // SAFETY: lists hold vertices.
        list.iter().copied().find(|&neighbour| unsafe { level.is_visited(neighbour) })
    }

    /// The bits of those of 64 parents that are not [`NONE`](crate::graph::NONE).
    ///
    /// # Safety
    /// The CPU has the instructions, and there are 64 parents.
    unsafe fn reached(parents: *const Vertex) -> u64;
}

/// Runs the level over `words`, and counts what it finds. `remaining` has room for all vertices of `words`.
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
    // SAFETY: `remaining` holds vertices of this thread's words, and lists hold vertices.
    unsafe {
        match level.lists {
            Lists::Numbers(lists) => {
                search_lists(level, remaining, lists, columns, |list| P::list(level, list));
            }
            Lists::Blocks(lists) => {
                search_lists(level, remaining, lists, 0, |blocks| blocks.iter().find_map(|block| block.first(block.met(level.visited))))
            }
        }
    }
    debug_assert!(remaining.iter().all(|&v| words.contains(&((v >> 6) as usize))));
    // SAFETY: the words were all written above.
    unsafe { level.count(words) }
}

/// Searches the lists of `remaining`, beyond their first entries, of which there are `tested`.
///
/// # Safety
/// `remaining` holds vertices of the calling thread's words. `find` may be called with any part of a list.
#[inline(always)]
unsafe fn search_lists<T>(
    level: &BottomUp<'_>,
    remaining: &[Vertex],
    (offsets, entries): Adjacency<'_, T>,
    tested: usize,
    find: impl Fn(&[T]) -> Option<Vertex>,
) {
    for (i, &v) in remaining.iter().enumerate() {
        // SAFETY: as promised by the caller.
        unsafe {
            look_ahead((offsets, entries), remaining, i, tested);
            let begin = *offsets.get_unchecked(v as usize) as usize;
            let end = *offsets.get_unchecked(v as usize + 1) as usize;
            if let Some(parent) = find(entries.get_unchecked((begin + tested).min(end)..end)) {
                level.set_parent(v as usize, parent);
                *level.next.get().add((v >> 6) as usize) |= 1 << (v & 63);
            }
        }
    }
}
