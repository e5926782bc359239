//! 16 words at a time, with the vector instructions of the CPU.

use super::{ROWS, wave::Tile};

/// Numbers of 16 bits that one step makes of planes.
pub(super) const SHORTS: usize = 16;
const BIT: [u16; SHORTS] = {
    let mut bits = [0; SHORTS];
    let mut i = 0;
    while i < SHORTS {
        bits[i] = 1 << i;
        i += 1;
    }
    bits
};

/// The words of the 16 rows of a tile.
///
/// # Safety (of all functions)
/// The CPU has the instructions; 16 words can be read or written at the pointer.
pub(super) trait Lanes: Copy {
    unsafe fn load(from: *const u32) -> Self;
    unsafe fn store(self, to: *mut u32);
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn xor(self, other: Self) -> Self;
    unsafe fn left<const BITS: i32>(self) -> Self;
    unsafe fn right<const BITS: i32>(self) -> Self;

    /// The union of all rows.
    #[inline(always)]
    unsafe fn union(self) -> u32 {
        let mut rows = [0u32; ROWS];
        // SAFETY: the caller's promise.
        unsafe { self.store(rows.as_mut_ptr()) };
        rows.iter().fold(0, |all, row| all | row)
    }

    /// For 16 cells of `row`, from bit `shift` on: `begin`, plus 2^k for each of the (at most 16) planes that has its bit, if the cell is
    /// among `reached`; `u16::MAX` for all others.
    #[inline(always)]
    unsafe fn sum_of_planes(planes: &[Tile], row: usize, shift: u32, begin: u16, reached: u32) -> [u16; SHORTS] {
        let mut cells = [0u16; SHORTS];
        for (k, plane) in planes.iter().enumerate() {
            let word = (plane[row] >> shift) as u16;
            for i in 0..SHORTS {
                cells[i] |= if word & BIT[i] == BIT[i] { 1 << k } else { 0 };
            }
        }
        let reached = (reached >> shift) as u16;
        for i in 0..SHORTS {
            cells[i] = if reached & BIT[i] == BIT[i] { cells[i].wrapping_add(begin) } else { u16::MAX };
        }
        cells
    }
}

/// Implements [`Lanes`] with $parts vectors. (Loops, not closures: a closure does not have the features of the function it is in.)
macro_rules! lanes {
    ($name:ident: $parts:literal of $vector:ty, $zero:expr; $from:ident => $load:expr; ($to:ident, $value:ident) => $store:expr;
        ($a:ident, $b:ident) => $or:expr, $and:expr, $xor:expr; ($v:ident, $bits:ident) => $left:expr, $right:expr; $($more:item)*) => {
        #[derive(Clone, Copy)]
        pub(super) struct $name([$vector; $parts]);

        // SAFETY (of all blocks): the caller's promise.
        #[allow(unused_unsafe, clippy::undocumented_unsafe_blocks, reason = "documented for all of them; some need none")]
        #[allow(clippy::needless_range_loop, reason = "see above")]
        impl Lanes for $name {
            #[inline(always)]
            unsafe fn load(from: *const u32) -> Self {
                let mut lanes = [unsafe { $zero }; $parts];
                for part in 0..$parts {
                    let $from = unsafe { from.add(part * ROWS / $parts) };
                    lanes[part] = unsafe { $load };
                }
                Self(lanes)
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut u32) {
                for part in 0..$parts {
                    let ($to, $value) = (unsafe { to.add(part * ROWS / $parts) }, self.0[part]);
                    unsafe { $store };
                }
            }

            #[inline(always)]
            unsafe fn or(mut self, other: Self) -> Self {
                for part in 0..$parts {
                    let ($a, $b) = (self.0[part], other.0[part]);
                    self.0[part] = unsafe { $or };
                }
                self
            }

            #[inline(always)]
            unsafe fn and(mut self, other: Self) -> Self {
                for part in 0..$parts {
                    let ($a, $b) = (self.0[part], other.0[part]);
                    self.0[part] = unsafe { $and };
                }
                self
            }

            #[inline(always)]
            unsafe fn xor(mut self, other: Self) -> Self {
                for part in 0..$parts {
                    let ($a, $b) = (self.0[part], other.0[part]);
                    self.0[part] = unsafe { $xor };
                }
                self
            }

            #[inline(always)]
            unsafe fn left<const BITS: i32>(mut self) -> Self {
                for part in 0..$parts {
                    let ($v, $bits) = (self.0[part], BITS);
                    self.0[part] = unsafe { $left };
                }
                self
            }

            #[inline(always)]
            unsafe fn right<const BITS: i32>(mut self) -> Self {
                for part in 0..$parts {
                    let ($v, $bits) = (self.0[part], BITS);
                    self.0[part] = unsafe { $right };
                }
                self
            }

            $($more)*
        }
    };
}

lanes!(Plain: 16 of u32, 0; from => *from; (to, value) => *to = value; (a, b) => a | b, a & b, a ^ b; (v, bits) => v << bits, v >> bits;);

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

// AVX-512 would halve the instructions for a tile, and was not faster (Zen 5): a visit waits for the lists, not for the vectors.
#[cfg(target_arch = "x86_64")]
lanes!(Avx2: 2 of x86::__m256i, x86::_mm256_setzero_si256();
    from => x86::_mm256_loadu_si256(from.cast());
    (to, value) => x86::_mm256_storeu_si256(to.cast(), value);
    (a, b) => x86::_mm256_or_si256(a, b), x86::_mm256_and_si256(a, b), x86::_mm256_xor_si256(a, b);
    (v, bits) => x86::_mm256_sll_epi32(v, x86::_mm_cvtsi32_si128(bits)), x86::_mm256_srl_epi32(v, x86::_mm_cvtsi32_si128(bits));

    #[inline(always)]
    unsafe fn sum_of_planes(planes: &[Tile], row: usize, shift: u32, begin: u16, reached: u32) -> [u16; SHORTS] {
        let mut cells = [0u16; SHORTS];
        unsafe {
            let bit = x86::_mm256_loadu_si256(BIT.as_ptr().cast());
            let mut sum = x86::_mm256_setzero_si256();
            for (k, plane) in planes.iter().enumerate() {
                let word = x86::_mm256_and_si256(x86::_mm256_set1_epi16((plane[row] >> shift) as i16), bit);
                let value = x86::_mm256_set1_epi16((1u16 << k) as i16);
                sum = x86::_mm256_or_si256(sum, x86::_mm256_and_si256(x86::_mm256_cmpeq_epi16(word, bit), value));
            }
            let reached = x86::_mm256_and_si256(x86::_mm256_set1_epi16((reached >> shift) as i16), bit);
            let sum = x86::_mm256_add_epi16(sum, x86::_mm256_set1_epi16(begin as i16));
            // All ones where a cell was not reached: the complement of the comparison.
            let missed = x86::_mm256_xor_si256(x86::_mm256_cmpeq_epi16(reached, bit), x86::_mm256_set1_epi16(-1));
            x86::_mm256_storeu_si256(cells.as_mut_ptr().cast(), x86::_mm256_or_si256(sum, missed));
        }
        cells
    }
);

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64 as arm;

#[cfg(target_arch = "aarch64")]
lanes!(Neon: 4 of arm::uint32x4_t, arm::vdupq_n_u32(0);
    from => arm::vld1q_u32(from);
    (to, value) => arm::vst1q_u32(to, value);
    (a, b) => arm::vorrq_u32(a, b), arm::vandq_u32(a, b), arm::veorq_u32(a, b);
    (v, bits) => arm::vshlq_u32(v, arm::vdupq_n_s32(bits)), arm::vshlq_u32(v, arm::vdupq_n_s32(-bits));
);
