//! Kernels for NEON: 4 vertices at a time. NEON can't gather, so the bitmap words are loaded one by one; the tests,
//! the choice of parents and the stores are vectors.

use std::{arch::aarch64::*, ops::Range};

use super::{
    super::bottom_up::{BottomUp, Found, Probe, bottom_up},
    Kernels, MapBack, Visited, scalar,
};
use crate::graph::Vertex;

pub(super) const KERNELS: Kernels = Kernels { bottom_up: level, visited, map_back };

struct Neon;

/// Weights that turn a mask of four lanes into four bits.
const WEIGHTS: [u32; 4] = [1, 2, 4, 8];

/// All-ones in the lanes whose bit is set in `lanes`.
#[inline(always)]
unsafe fn spread(lanes: u32) -> uint32x4_t {
    // SAFETY: the CPU has NEON (caller).
    unsafe { vtstq_u32(vdupq_n_u32(lanes), vld1q_u32(WEIGHTS.as_ptr())) }
}

/// The lanes of a mask as bits.
#[inline(always)]
unsafe fn lanes_of(mask: uint32x4_t) -> u64 {
    // SAFETY: the CPU has NEON (caller).
    unsafe { u64::from(vaddvq_u32(vandq_u32(mask, vld1q_u32(WEIGHTS.as_ptr())))) }
}

/// All-ones in the lanes whose vertex in `of` was visited when the level began.
#[inline(always)]
unsafe fn visited_lanes(level: &BottomUp<'_>, of: uint32x4_t) -> uint32x4_t {
    // SAFETY: the bitmap covers all vertices and `none`; every lane holds one of those (caller). Halves of a 64-bit
    // word lie in order on this little-endian machine.
    unsafe {
        let halves = level.visited.as_ptr().cast::<u32>();
        let places = vshrq_n_u32::<5>(of);
        let words = [
            *halves.add(vgetq_lane_u32::<0>(places) as usize),
            *halves.add(vgetq_lane_u32::<1>(places) as usize),
            *halves.add(vgetq_lane_u32::<2>(places) as usize),
            *halves.add(vgetq_lane_u32::<3>(places) as usize),
        ];
        let bits = vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(vandq_u32(of, vdupq_n_u32(31))));
        vtstq_u32(vld1q_u32(words.as_ptr()), bits)
    }
}

impl Probe for Neon {
    #[inline(always)]
    unsafe fn column(level: &BottomUp<'_>, k: usize, word: usize, asking: u64) -> (u64, u64) {
        let (mut hits, mut exhausted) = (0u64, 0u64);
        // SAFETY: columns, originals and parents cover all words, and this thread owns the word.
        unsafe {
            let column = level.columns.get_unchecked(k).as_ptr().add(word * 64);
            let originals = level.originals.get_unchecked(k).as_ptr().add(word * 64);
            let parent = level.parent.get().add(word * 64);
            let none = vdupq_n_u32(level.none);
            for block in 0..16 {
                let lanes = (asking >> (4 * block)) as u32 & 0xf;
                if lanes == 0 {
                    continue;
                }
                let neighbours = vld1q_u32(column.add(4 * block));
                let hit = vandq_u32(visited_lanes(level, neighbours), spread(lanes));
                let place = parent.add(4 * block);
                vst1q_u32(place, vbslq_u32(hit, vld1q_u32(originals.add(4 * block)), vld1q_u32(place)));
                hits |= lanes_of(hit) << (4 * block);
                exhausted |= lanes_of(vceqq_u32(neighbours, none)) << (4 * block);
            }
        }
        (hits, exhausted)
    }

    #[inline(always)]
    unsafe fn list(level: &BottomUp<'_>, list: &[Vertex]) -> Option<Vertex> {
        let mut rest = list;
        while rest.len() >= 4 {
            // SAFETY: four vertices are left.
            let hit = unsafe { lanes_of(visited_lanes(level, vld1q_u32(rest.as_ptr()))) };
            if hit != 0 {
                return rest.get(hit.trailing_zeros() as usize).copied();
            }
            rest = &rest[4..];
        }
        // SAFETY: lists hold vertices.
        rest.iter().copied().find(|&neighbour| unsafe { level.is_visited(neighbour) })
    }
}

#[target_feature(enable = "neon")]
unsafe fn level(level: &BottomUp<'_>, words: Range<usize>, left: &mut [Vertex]) -> Found {
    // SAFETY: the caller's promise, passed on.
    unsafe { bottom_up::<Neon>(level, words, left) }
}

#[target_feature(enable = "neon")]
unsafe fn visited(work: &Visited<'_>, words: Range<usize>) -> u64 {
    let mut count = 0;
    for word in words {
        let mut open = 0u64;
        let parents = &work.parent[word * 64..][..64];
        // SAFETY: 64 parents were sliced; this thread owns the word (caller).
        unsafe {
            let none = vdupq_n_u32(u32::MAX);
            for block in 0..16 {
                open |= lanes_of(vceqq_u32(vld1q_u32(parents.as_ptr().add(4 * block)), none)) << (4 * block);
            }
            let bits = !open | work.closed[word];
            *work.words.get().add(word) = bits;
            count += u64::from(bits.count_ones());
        }
    }
    count
}

unsafe fn map_back(work: &MapBack<'_>, vertices: Range<usize>) -> u64 {
    // SAFETY: the caller's promise, passed on. (Without gathers there is nothing to gain from vectors.)
    unsafe { scalar::map_back(work, vertices) }
}
