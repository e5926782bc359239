//! Mapping back on x86-64: parents are loaded one by one, combined into vectors, and written past the caches.
//!
//! A gather takes longer than the same loads if the processor runs it as microcode (Zen 4, and many others since firmware updates of 2023).
//! The search does not read the written parents again, and in the caches they would displace the data of the next search. A line that is
//! written whole past the caches is not read from memory first.

use std::{arch::x86_64::*, ops::Range};

use super::{super::tuning::PAST_CACHES, MapBack, scalar};

/// Vertices in a cache line of the output.
const LINE: usize = 16;

/// The four numbers of `from` at the places that `place` returns for each lane.
///
/// # Safety
/// The places are in range.
#[inline(always)]
unsafe fn assembled(from: *const u32, place: impl Fn(usize) -> usize) -> __m128i {
    // SAFETY: the places are in range (caller), and SSE2 is part of x86-64.
    unsafe {
        let lane = |lane: usize| _mm_cvtsi32_si128(*from.add(place(lane)) as i32);
        _mm_unpacklo_epi64(_mm_unpacklo_epi32(lane(0), lane(1)), _mm_unpacklo_epi32(lane(2), lane(3)))
    }
}

/// See [`SimdKernels::map_back`](super::SimdKernels::map_back).
///
/// # Safety
/// As the kernels of [`SimdKernels`](super::SimdKernels).
pub(super) unsafe fn map_back(work: &MapBack<'_>, vertices: Range<usize>) {
    if work.place.len() < PAST_CACHES {
        // SAFETY: the caller's promise, passed on.
        return unsafe { scalar::map_back(work, vertices) };
    }
    // SAFETY: as promised by the caller.
    let lead = unsafe { work.out.get().add(vertices.start) }.align_offset(4 * LINE).min(vertices.len());
    let (begin, lines) = (vertices.start + lead, (vertices.len() - lead) / LINE);
    // SAFETY: the caller's promise, passed on.
    unsafe { scalar::map_back(work, vertices.start..begin) };
    let places = &work.place[begin..begin + lines * LINE];
    for (line, places) in places.chunks_exact(LINE).enumerate() {
        // SAFETY: places are in range, and this thread owns the output (caller), which is aligned from `begin` on.
        unsafe {
            let out = work.out.get().add(begin + line * LINE);
            for four in 0..LINE / 4 {
                let parents = assembled(work.parent.as_ptr(), |lane| places[4 * four + lane] as usize);
                _mm_stream_si128(out.add(4 * four).cast(), parents);
            }
        }
    }
    // SAFETY: the caller's promise, passed on. The fence orders the stores past the caches before the next stores of this thread, which
    // show other threads that it is done.
    unsafe {
        _mm_sfence();
        scalar::map_back(work, begin + lines * LINE..vertices.end);
    }
}
