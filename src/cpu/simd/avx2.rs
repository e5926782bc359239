//! The kernels for AVX2: 8 vertices at a time.

use std::arch::x86_64::*;

use super::{
    super::bottom_up::{BottomUp, Probe},
    SimdKernels, sse2,
};
use crate::graph::Vertex;

pub(super) const KERNELS: SimdKernels = kernels!(Avx2, sse2::map_back, "avx2,popcnt,bmi1");

struct Avx2;

/// All-ones in the lanes whose bit is set in `lanes`.
#[inline(always)]
unsafe fn spread(lanes: u32) -> __m256i {
    // SAFETY: the CPU has AVX2 (caller).
    unsafe {
        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(lanes as i32), bits), bits)
    }
}

/// All-ones in the lanes of `mask` whose vertex in `of` was visited when the level began.
#[inline(always)]
unsafe fn visited_lanes(level: &BottomUp<'_>, of: __m256i, mask: __m256i) -> __m256i {
    // SAFETY: the bitmap covers all vertices and `none`, and lanes outside `mask` are not read. Halves of a 64-bit word lie in order on
    // this little-endian machine.
    unsafe {
        let halves = level.visited.as_ptr().cast::<i32>();
        let words = _mm256_mask_i32gather_epi32::<4>(_mm256_setzero_si256(), halves, _mm256_srli_epi32::<5>(of), mask);
        // Moves the tested bit to the sign: the shift is 31 - (vertex number modulo 32).
        let up = _mm256_sub_epi32(_mm256_set1_epi32(31), _mm256_and_si256(of, _mm256_set1_epi32(31)));
        _mm256_and_si256(mask, _mm256_srai_epi32::<31>(_mm256_sllv_epi32(words, up)))
    }
}

/// The lanes whose sign is set.
#[inline(always)]
unsafe fn lanes_of(mask: __m256i) -> u32 {
    // SAFETY: the CPU has AVX2 (caller).
    unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(mask)) as u32 }
}

impl Probe for Avx2 {
    #[inline(always)]
    unsafe fn column(level: &BottomUp<'_>, k: usize, word: usize, asking: u64) -> (u64, u64) {
        let (mut hits, mut exhausted) = (0u64, 0u64);
        // SAFETY: columns, originals and parents cover all words, and this thread owns the word.
        unsafe {
            let column = level.columns.get_unchecked(k).as_ptr().add(word * 64);
            let originals = level.originals.get_unchecked(k).as_ptr().add(word * 64);
            let parent = level.parent.get().add(word * 64);
            let none = _mm256_set1_epi32(level.none as i32);
            for block in 0..8 {
                let lanes = (asking >> (8 * block)) as u32 & 0xff;
                if lanes == 0 {
                    continue;
                }
                let neighbours = _mm256_loadu_si256(column.add(8 * block).cast());
                let hit = visited_lanes(level, neighbours, spread(lanes));
                let values = _mm256_loadu_si256(originals.add(8 * block).cast());
                // Not a masked store, which is microcode on AMD before Zen 5: 3.9 ns instead of 0.5. This thread owns all eight parents.
                let parents = parent.add(8 * block).cast::<__m256i>();
                _mm256_storeu_si256(parents, _mm256_blendv_epi8(_mm256_loadu_si256(parents), values, hit));
                hits |= u64::from(lanes_of(hit)) << (8 * block);
                exhausted |= u64::from(lanes_of(_mm256_cmpeq_epi32(neighbours, none))) << (8 * block);
            }
        }
        (hits, exhausted)
    }

    #[inline(always)]
    unsafe fn reached(parents: *const Vertex) -> u64 {
        let mut open = 0u64;
        // SAFETY: there are 64 parents (caller).
        unsafe {
            let none = _mm256_set1_epi32(-1);
            for block in 0..8 {
                let parents = _mm256_loadu_si256(parents.add(8 * block).cast());
                open |= u64::from(lanes_of(_mm256_cmpeq_epi32(parents, none))) << (8 * block);
            }
        }
        !open
    }
}
