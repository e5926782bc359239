//! The kernels for AVX-512: 16 vertices at a time, gathers and masked stores.
#![allow(clippy::incompatible_msrv, reason = "built only by compilers that have these intrinsics (build.rs)")]

use std::{arch::x86_64::*, ops::Range};

use super::{
    super::bottom_up::{BottomUp, Probe},
    NOT_MET, Settle, SimdKernels, sse2,
};
use crate::graph::Vertex;

pub(super) const KERNELS: SimdKernels =
    SimdKernels { settle, ..kernels!(Avx512, sse2::map_back, "avx512f,avx512bw,avx512vl,avx512dq,avx2,popcnt,bmi1") };

struct Avx512;

/// The lanes among `lanes` whose vertex in `of` was visited when the level began.
#[inline(always)]
unsafe fn visited_lanes(level: &BottomUp<'_>, of: __m512i, lanes: __mmask16) -> __mmask16 {
    // SAFETY: the bitmap covers all vertices and `none`, and lanes outside `lanes` are not read. Halves of a 64-bit word lie in order on
    // this little-endian machine.
    unsafe {
        let halves = level.visited.as_ptr().cast::<i32>();
        let words = _mm512_mask_i32gather_epi32::<4>(_mm512_setzero_si512(), lanes, _mm512_srli_epi32::<5>(of), halves);
        let bits = _mm512_rolv_epi32(_mm512_set1_epi32(1), of); // a rotation takes its count modulo 32
        _mm512_mask_test_epi32_mask(lanes, words, bits)
    }
}

impl Probe for Avx512 {
    #[inline(always)]
    unsafe fn column(level: &BottomUp<'_>, k: usize, word: usize, asking: u64) -> (u64, u64) {
        let (mut hits, mut exhausted) = (0u64, 0u64);
        // SAFETY: columns, originals and parents cover all words, and this thread owns the word.
        unsafe {
            let column = level.columns.get_unchecked(k).as_ptr().add(word * 64).cast::<i32>();
            let originals = level.originals.get_unchecked(k).as_ptr().add(word * 64).cast::<i32>();
            let parent = level.parent.get().add(word * 64).cast::<i32>();
            let none = _mm512_set1_epi32(level.none as i32);
            for block in 0..4 {
                let lanes = (asking >> (16 * block)) as __mmask16;
                if lanes == 0 {
                    continue;
                }
                let neighbours = _mm512_loadu_epi32(column.add(16 * block));
                let hit = visited_lanes(level, neighbours, lanes);
                _mm512_mask_storeu_epi32(parent.add(16 * block), hit, _mm512_maskz_loadu_epi32(hit, originals.add(16 * block)));
                hits |= u64::from(hit) << (16 * block);
                exhausted |= u64::from(_mm512_cmpeq_epi32_mask(neighbours, none)) << (16 * block);
            }
        }
        (hits, exhausted)
    }

    #[inline(always)]
    unsafe fn list(level: &BottomUp<'_>, list: &[Vertex]) -> Option<Vertex> {
        let mut rest = list;
        while !rest.is_empty() {
            let lanes = if rest.len() >= 16 { 0xffff } else { (1 << rest.len()) - 1 };
            // SAFETY: only the lanes of the list are read, and they hold vertices.
            let hit = unsafe {
                let neighbours = _mm512_maskz_loadu_epi32(lanes, rest.as_ptr().cast());
                visited_lanes(level, neighbours, lanes)
            };
            if hit != 0 {
                return rest.get(hit.trailing_zeros() as usize).copied();
            }
            rest = &rest[rest.len().min(16)..];
        }
        None
    }

    #[inline(always)]
    unsafe fn reached(parents: *const Vertex) -> u64 {
        let mut bits = 0;
        // SAFETY: there are 64 parents (caller).
        unsafe {
            let none = _mm512_set1_epi32(-1);
            for block in 0..4 {
                let parents = _mm512_loadu_epi32(parents.add(16 * block).cast());
                bits |= u64::from(_mm512_cmpneq_epi32_mask(parents, none)) << (16 * block);
            }
        }
        bits
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,popcnt,bmi1")]
unsafe fn settle(work: &Settle<'_>, words: Range<usize>) -> [u64; 2] {
    let mut counts = [0; 2];
    for word in words {
        let (mut before, mut met) = (work.excluded[word], 0);
        // SAFETY: this thread owns the notes, parents and bitmaps of the word (caller), and every note has a name.
        unsafe {
            let parents = work.parent.get().add(64 * word).cast::<i32>();
            let notes = work.notes.get().add(64 * word);
            let (none, not_met) = (_mm512_set1_epi32(-1), _mm512_set1_epi32(NOT_MET.into()));
            for block in 0..4 {
                let old = _mm512_loadu_epi32(parents.add(16 * block));
                let note = _mm512_cvtepu16_epi32(_mm256_loadu_si256(notes.add(16 * block).cast()));
                let visited = _mm512_cmpneq_epi32_mask(old, none);
                let new = _mm512_cmpneq_epi32_mask(note, not_met) & !visited;
                let names = _mm512_mask_i32gather_epi32::<4>(none, new, note, work.names.as_ptr().cast());
                _mm512_mask_storeu_epi32(parents.add(16 * block), new, names);
                _mm256_storeu_si256(notes.add(16 * block).cast(), _mm256_set1_epi16(-1));
                before |= u64::from(visited) << (16 * block);
                met |= u64::from(new) << (16 * block);
            }
            *work.before.get().add(word) = before;
            *work.now.get().add(word) = before | met;
        }
        counts[0] += u64::from(before.count_ones());
        counts[1] += u64::from((before | met).count_ones());
    }
    counts
}
