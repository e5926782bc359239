//! The kernels without vector instructions; tests compare the other kernels with them.

use std::ops::Range;

use super::{
    super::bottom_up::{BottomUp, FoundCounts, Probe, bottom_up},
    MapBack, NOT_MET, Settle, SimdKernels, Visited,
};
use crate::{
    graph::{NONE, Vertex},
    memory::Shared,
};

pub(super) const KERNELS: SimdKernels = SimdKernels { bottom_up: level, visited, settle, map_back };

pub(super) struct Scalar;

impl Probe for Scalar {
    #[inline(always)]
    unsafe fn column(level: &BottomUp<'_>, k: usize, word: usize, asking: u64) -> (u64, u64) {
        let (mut hits, mut exhausted) = (0, 0);
        let mut rest = asking;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let v = word * 64 + lane as usize;
            // SAFETY: columns cover all words; their entries are vertices or `none`.
            unsafe {
                let neighbour = *level.columns.get_unchecked(k).get_unchecked(v);
                let hit = u64::from(level.is_visited(neighbour));
                hits |= hit << lane;
                exhausted |= u64::from(neighbour == level.none) << lane;
                if hit != 0 {
                    *level.parent.get().add(v) = *level.originals.get_unchecked(k).get_unchecked(v);
                }
            }
        }
        (hits, exhausted)
    }

    #[inline(always)]
    unsafe fn list(level: &BottomUp<'_>, list: &[Vertex]) -> Option<Vertex> {
        // SAFETY: lists hold vertices.
        list.iter().copied().find(|&neighbour| unsafe { level.is_visited(neighbour) })
    }
}

unsafe fn level(level: &BottomUp<'_>, words: Range<usize>, remaining: &mut [Vertex]) -> FoundCounts {
    // SAFETY: the caller's promise, passed on; plain code runs everywhere.
    unsafe { bottom_up::<Scalar>(level, words, remaining) }
}

pub(super) unsafe fn visited(work: &Visited<'_>, words: Range<usize>) -> u64 {
    let mut count = 0;
    for word in words {
        let mut bits = work.excluded[word];
        for (lane, &parent) in work.parent[word * 64..][..64].iter().enumerate() {
            bits |= u64::from(parent != NONE) << lane;
        }
        // SAFETY: this thread owns the word (caller), and the bitmap has one for each of `excluded`.
        unsafe { *work.words.get().add(word) = bits };
        count += u64::from(bits.count_ones());
    }
    count
}

unsafe fn settle(work: &Settle<'_>, words: Range<usize>) -> [u64; 2] {
    // SAFETY: the caller's promise, passed on.
    unsafe { settle_by(work, words, visited) }
}

/// See [`SimdKernels::settle`]. The kernel `visited` makes the bitmaps while the parents are in the first-level cache.
///
/// # Safety
/// As the kernels of [`SimdKernels`].
#[inline(always)]
pub(super) unsafe fn settle_by(work: &Settle<'_>, words: Range<usize>, visited: unsafe fn(&Visited<'_>, Range<usize>) -> u64) -> [u64; 2] {
    /// Words at a time: they have 2 KiB of parents.
    const AT_ONCE: usize = 8;
    let mut counts = [0; 2];
    for begin in words.clone().step_by(AT_ONCE) {
        let words = begin..words.end.min(begin + AT_ONCE);
        let (first, len) = (64 * words.start, 64 * words.len());
        let excluded = &work.excluded[words.clone()];
        // SAFETY: this thread owns the notes, parents and bitmaps of the words (caller), no other borrow of them is alive, and every note
        // has a name.
        unsafe {
            let bitmap = |bits: Shared<u64>| {
                let parent = std::slice::from_raw_parts(work.parent.get().add(first), len);
                let of_words = std::slice::from_raw_parts_mut(bits.get().add(words.start), words.len());
                visited(&Visited { parent, excluded, words: Shared::new(of_words) }, 0..words.len())
            };
            counts[0] += bitmap(work.before);
            let notes = std::slice::from_raw_parts_mut(work.notes.get().add(first), len);
            let parents = std::slice::from_raw_parts_mut(work.parent.get().add(first), len);
            for (&note, parent) in notes.iter().zip(parents) {
                // No branch: the processor can't predict which vertices were met.
                let name = *work.names.get_unchecked(usize::from(note));
                *parent = if *parent == NONE { name } else { *parent };
            }
            notes.fill(NOT_MET);
            counts[1] += bitmap(work.now);
        }
    }
    counts
}

pub(super) unsafe fn map_back(work: &MapBack<'_>, vertices: Range<usize>) {
    for (v, &place) in vertices.clone().zip(&work.place[vertices]) {
        // SAFETY: places are in range, and this thread owns the output (caller).
        unsafe { *work.out.get().add(v) = *work.parent.get_unchecked(place as usize) };
    }
}
