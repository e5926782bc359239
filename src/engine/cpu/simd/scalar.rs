//! The kernels without vector instructions: the reference in the tests of the others.

use std::ops::Range;

use super::{
    super::bottom_up::{BottomUp, FoundCounts, Probe, bottom_up},
    MapBack, SimdKernels, Visited,
};
use crate::graph::{NONE, Vertex};

pub(super) const KERNELS: SimdKernels = SimdKernels { bottom_up: level, visited, map_back };

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

pub(super) unsafe fn map_back(work: &MapBack<'_>, vertices: Range<usize>) {
    for (v, &place) in vertices.clone().zip(&work.place[vertices]) {
        // SAFETY: places are in range, and this thread owns the output (caller).
        unsafe { *work.out.get().add(v) = *work.parent.get_unchecked(place as usize) };
    }
}
