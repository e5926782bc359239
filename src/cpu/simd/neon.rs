//! The kernels for NEON: 16 vertices at a time, as four vectors of four. NEON has no gather, so the words of the bitmap are loaded and
//! tested one by one; the ends of lists, the choice of parents and stores use vectors, and the masks of 16 vertices are turned into bits
//! together.

use std::arch::aarch64::*;

use super::{
    super::bottom_up::{BottomUp, Probe},
    SimdKernels,
    scalar::{self, Scalar},
};
use crate::graph::Vertex;

pub(super) const KERNELS: SimdKernels = kernels!(Neon, scalar::map_back, "neon");

struct Neon;

/// The bit of each of 16 lanes, in four vectors of four.
const LANES: [u32; 16] = [1, 2, 4, 8, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15];

/// Weights that turn the bytes of a mask of 16 lanes into bits, eight bytes at a time.
const WEIGHTS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// Up to this many of 16 vertices are tested one by one. By LLVM's models of A53 and A72 one takes 27 and 7 cycles, and some 10 more where
/// its branch is predicted wrongly; all 16 together take 217 and 72.
const FEW: u32 = 4;

/// Joins four masks of four lanes into one mask of 16 bytes, and applies [`WEIGHTS`].
#[inline(always)]
unsafe fn weighted(masks: [uint32x4_t; 4]) -> uint8x16_t {
    // SAFETY: the CPU has NEON (caller). All bits of a lane are equal, so any part of it can represent it.
    unsafe {
        let low = vuzp1q_u16(vreinterpretq_u16_u32(masks[0]), vreinterpretq_u16_u32(masks[1]));
        let high = vuzp1q_u16(vreinterpretq_u16_u32(masks[2]), vreinterpretq_u16_u32(masks[3]));
        let bytes = vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high));
        vandq_u8(bytes, vld1q_u8(WEIGHTS.as_ptr()))
    }
}

/// Two masks of 16 lanes as bits: the first in bits 0 to 15, the second in bits 16 to 31.
#[inline(always)]
unsafe fn bits_of(first: [uint32x4_t; 4], second: [uint32x4_t; 4]) -> u32 {
    // SAFETY: the CPU has NEON (caller).
    unsafe {
        let pairs = vpaddq_u8(weighted(first), weighted(second));
        let fours = vpaddq_u8(pairs, pairs);
        let eights = vpaddq_u8(fours, fours);
        vgetq_lane_u32::<0>(vreinterpretq_u32_u8(eights))
    }
}

/// The visited bits of the 16 vertices at `of` when the level began. (By the model of LLVM for A53, A72 and A76, general registers take
/// 0.8 of the cycles of words that are loaded into the lanes of vectors, one after the other.)
#[inline(always)]
unsafe fn visited_bits(level: &BottomUp<'_>, of: *const Vertex) -> u32 {
    // Two sums, so that an addition need not wait for the one before it.
    let mut bits = [0; 2];
    for lane in 0..16 {
        // SAFETY: the bitmap covers all vertices and `none`; every entry is one of those (caller). Halves of a 64-bit word lie in order on
        // this little-endian machine.
        let bit = unsafe {
            let vertex = *of.add(lane);
            *level.visited.as_ptr().cast::<u32>().add((vertex >> 5) as usize) >> (vertex & 31) & 1
        };
        bits[lane / 8] |= bit << lane;
    }
    bits[0] | bits[1]
}

impl Probe for Neon {
    #[inline(always)]
    unsafe fn column(level: &BottomUp<'_>, k: usize, word: usize, asking: u64) -> (u64, u64) {
        if asking.count_ones() <= 2 * FEW {
            // SAFETY: the caller's promise, passed on.
            return unsafe { Scalar::column(level, k, word, asking) };
        }
        let (mut hits, mut exhausted, mut few) = (0u64, 0u64, 0u64);
        // SAFETY: columns, originals and parents cover all words, and this thread owns the word.
        unsafe {
            let column = level.columns.get_unchecked(k).as_ptr().add(word * 64);
            let originals = level.originals.get_unchecked(k).as_ptr().add(word * 64);
            let parent = level.parent.get().add(word * 64);
            let none = vdupq_n_u32(level.none);
            for block in 0..4 {
                let asking = (asking >> (16 * block)) as u32 & 0xffff;
                if asking.count_ones() <= FEW {
                    few |= u64::from(asking) << (16 * block);
                    continue;
                }
                let hit = visited_bits(level, column.add(16 * block)) & asking;
                let (all, mut end) = (vdupq_n_u32(hit), [none; 4]);
                for four in 0..4 {
                    let first = 16 * block + 4 * four;
                    let lanes = vtstq_u32(all, vld1q_u32(LANES.as_ptr().add(4 * four)));
                    end[four] = vceqq_u32(vld1q_u32(column.add(first)), none);
                    let place = parent.add(first);
                    vst1q_u32(place, vbslq_u32(lanes, vld1q_u32(originals.add(first)), vld1q_u32(place)));
                }
                hits |= u64::from(hit) << (16 * block);
                exhausted |= u64::from(bits_of(end, [vdupq_n_u32(0); 4])) << (16 * block);
            }
            if few != 0 {
                let (hit, end) = Scalar::column(level, k, word, few);
                hits |= hit;
                exhausted |= end;
            }
        }
        (hits, exhausted)
    }

    #[inline(always)]
    unsafe fn reached(parents: *const Vertex) -> u64 {
        let mut open = 0u64;
        // SAFETY: there are 64 parents (caller).
        unsafe {
            let none = vdupq_n_u32(u32::MAX);
            let open_lanes = |first: usize| {
                let lanes = |four: usize| vceqq_u32(vld1q_u32(parents.add(first + 4 * four)), none);
                [lanes(0), lanes(1), lanes(2), lanes(3)]
            };
            for half in 0..2 {
                open |= u64::from(bits_of(open_lanes(32 * half), open_lanes(32 * half + 16))) << (32 * half);
            }
        }
        !open
    }
}
