//! 16 words at a time, with the vector instructions of the CPU.

use super::{
    COLUMNS, ROWS,
    wave::{PLANES, Tile},
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

    /// Each row moved to the next, and `first` in the first.
    unsafe fn down(self, first: u32) -> Self;
    /// Each row moved to the one before, and `last` in the last.
    unsafe fn up(self, last: u32) -> Self;

    /// For row i bit i of `rows` in the first column, and bit 16 + i in the last.
    #[inline(always)]
    unsafe fn columns(rows: u32) -> Self {
        let mut words = [0; ROWS];
        if rows != 0 {
            words = std::array::from_fn(|i| (rows >> i & 1) | (rows >> (i + ROWS) & 1) << (COLUMNS - 1));
        }
        // SAFETY: the caller's promise.
        unsafe { Self::load(words.as_ptr()) }
    }

    /// Whether no bit is set.
    #[inline(always)]
    unsafe fn is_empty(self) -> bool {
        let mut rows = [0u32; ROWS];
        // SAFETY: the caller's promise.
        unsafe { self.store(rows.as_mut_ptr()) };
        rows.iter().fold(0, |all, row| all | row) == 0
    }

    /// A bit for each of `cells` that is at least `from`, and for each that is one less.
    #[inline(always)]
    unsafe fn compare(cells: &[u16; COLUMNS], from: u16) -> (u32, u32) {
        cells
            .iter()
            .enumerate()
            .fold((0, 0), |(later, before), (i, &cell)| (later | u32::from(cell >= from) << i, before | u32::from(cell == from - 1) << i))
    }

    /// For each cell of `row` the number whose digits the planes have, or one above 127 if it is not among `reached`.
    #[inline(always)]
    unsafe fn times(planes: &[Tile; PLANES], row: usize, reached: u32) -> [u8; COLUMNS] {
        // Eight rows of bits for every eight columns: the planes, and twice whether a cell was not reached.
        let mut squares = [0_u64; COLUMNS / 8];
        for k in 0..8 {
            let word = planes.get(k).map_or(!reached, |plane| plane[row]);
            for (part, square) in squares.iter_mut().enumerate() {
                *square |= u64::from(word >> (8 * part) & 0xff) << (8 * k);
            }
        }
        // Transposed: a byte for each column (Warren, Hacker's Delight, section 7-3).
        for (shift, mask) in [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)] {
            for square in &mut squares {
                let moved = (*square ^ *square >> shift) & mask;
                *square ^= moved ^ moved << shift;
            }
        }
        let mut times = [0; COLUMNS];
        for (part, square) in squares.iter().enumerate() {
            times[8 * part..][..8].copy_from_slice(&square.to_le_bytes());
        }
        times
    }
}

/// Implements [`Lanes`] with $parts vectors. (Loops, not closures: a closure does not have the features of the function it is in.)
macro_rules! lanes {
    ($name:ident: $parts:literal of $vector:ty, $zero:expr; $from:ident => $load:expr; ($to:ident, $value:ident) => $($store:expr),+;
        ($a:ident, $b:ident) => $($two:ident $both:expr),+; ($v:ident, $bits:ident) => $($one:ident $shift:expr),+; $($more:item)*) => {
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
                    $(unsafe { $store };)+
                }
            }

            $(#[inline(always)]
            unsafe fn $two(mut self, other: Self) -> Self {
                for part in 0..$parts {
                    let ($a, $b) = (self.0[part], other.0[part]);
                    self.0[part] = unsafe { $both };
                }
                self
            })+

            $(#[inline(always)]
            unsafe fn $one<const BITS: i32>(mut self) -> Self {
                for part in 0..$parts {
                    let ($v, $bits) = (self.0[part], BITS);
                    self.0[part] = unsafe { $shift };
                }
                self
            })+

            $($more)*
        }
    };
}

// Two rows in a number.
lanes!(Plain: 8 of u64, 0;
    from => u64::from(*from) | u64::from(*from.add(1)) << 32;
    (to, value) => to.write(value as u32), to.add(1).write((value >> 32) as u32);
    (a, b) => or a | b, and a & b, xor a ^ b;
    (v, bits) => left (v << bits) & (0x1_0000_0001 * u64::from(u32::MAX << bits)), right (v >> bits) & (0x1_0000_0001 * u64::from(u32::MAX >> bits));

    #[inline(always)]
    unsafe fn down(self, first: u32) -> Self {
        let mut before = u64::from(first);
        Self(self.0.map(|rows| rows << 32 | std::mem::replace(&mut before, rows >> 32)))
    }

    #[inline(always)]
    unsafe fn up(self, last: u32) -> Self {
        Self(std::array::from_fn(|i| self.0[i] >> 32 | self.0.get(i + 1).copied().unwrap_or(last.into()) << 32))
    }
);

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64 as x86;

#[cfg(target_arch = "x86_64")]
lanes!(Avx2: 2 of x86::__m256i, x86::_mm256_setzero_si256();
    from => x86::_mm256_loadu_si256(from.cast());
    (to, value) => x86::_mm256_storeu_si256(to.cast(), value);
    (a, b) => or x86::_mm256_or_si256(a, b), and x86::_mm256_and_si256(a, b), xor x86::_mm256_xor_si256(a, b);
    (v, bits) => left x86::_mm256_sll_epi32(v, x86::_mm_cvtsi32_si128(bits)), right x86::_mm256_srl_epi32(v, x86::_mm_cvtsi32_si128(bits));

    #[inline(always)]
    unsafe fn down(self, first: u32) -> Self {
        unsafe {
            let before = x86::_mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
            let (low, high) = (x86::_mm256_permutevar8x32_epi32(self.0[0], before), x86::_mm256_permutevar8x32_epi32(self.0[1], before));
            Self([x86::_mm256_blend_epi32::<1>(low, x86::_mm256_set1_epi32(first as i32)), x86::_mm256_blend_epi32::<1>(high, low)])
        }
    }

    #[inline(always)]
    unsafe fn up(self, last: u32) -> Self {
        unsafe {
            let after = x86::_mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0);
            let (low, high) = (x86::_mm256_permutevar8x32_epi32(self.0[0], after), x86::_mm256_permutevar8x32_epi32(self.0[1], after));
            Self([x86::_mm256_blend_epi32::<0x80>(low, high), x86::_mm256_blend_epi32::<0x80>(high, x86::_mm256_set1_epi32(last as i32))])
        }
    }

    #[inline(always)]
    unsafe fn columns(rows: u32) -> Self {
        unsafe {
            let (rows, number) = (x86::_mm256_set1_epi32(rows as i32), x86::_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
            let mut own = [x86::_mm256_srlv_epi32(rows, number), x86::_mm256_srlv_epi32(x86::_mm256_srli_epi32::<8>(rows), number)];
            for own in &mut own {
                let last = x86::_mm256_and_si256(x86::_mm256_slli_epi32::<15>(*own), x86::_mm256_set1_epi32(i32::MIN));
                *own = x86::_mm256_or_si256(x86::_mm256_and_si256(*own, x86::_mm256_set1_epi32(1)), last);
            }
            Self(own)
        }
    }

    #[inline(always)]
    unsafe fn is_empty(self) -> bool {
        unsafe {
            let all = x86::_mm256_or_si256(self.0[0], self.0[1]);
            x86::_mm256_testz_si256(all, all) == 1
        }
    }

    #[inline(always)]
    unsafe fn times(planes: &[Tile; PLANES], row: usize, reached: u32) -> [u8; COLUMNS] {
        let mut times = [0; COLUMNS];
        unsafe {
            // Each byte of a word eight times, of which each keeps one bit.
            let part = x86::_mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
            let bits = x86::_mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
            let is_reached = x86::_mm256_and_si256(x86::_mm256_shuffle_epi8(x86::_mm256_set1_epi32(reached as i32), part), bits);
            let mut sum = x86::_mm256_xor_si256(x86::_mm256_cmpeq_epi8(is_reached, bits), x86::_mm256_set1_epi8(-1));
            for k in 0..PLANES {
                let own = x86::_mm256_and_si256(x86::_mm256_shuffle_epi8(x86::_mm256_set1_epi32(planes[k][row] as i32), part), bits);
                let digit = x86::_mm256_and_si256(x86::_mm256_cmpeq_epi8(own, bits), x86::_mm256_set1_epi8(1 << k));
                sum = x86::_mm256_or_si256(sum, digit);
            }
            x86::_mm256_storeu_si256(times.as_mut_ptr().cast(), sum);
        }
        times
    }

    #[inline(always)]
    unsafe fn compare(cells: &[u16; COLUMNS], from: u16) -> (u32, u32) {
        unsafe {
            let (own, from, one) = (cells.as_ptr().cast::<x86::__m256i>(), x86::_mm256_set1_epi16(from as i16), x86::_mm256_set1_epi16(1));
            let (mut later, mut before) = ([one; 2], [one; 2]);
            for half in 0..2 {
                let cells = x86::_mm256_loadu_si256(own.add(half));
                later[half] = x86::_mm256_cmpeq_epi16(x86::_mm256_max_epu16(cells, from), cells);
                before[half] = x86::_mm256_cmpeq_epi16(x86::_mm256_add_epi16(cells, one), from);
            }
            // A byte for each cell; vectors are packed in halves.
            let mut bits = [0; 2];
            for (bits, [low, high]) in bits.iter_mut().zip([later, before]) {
                let bytes = x86::_mm256_permute4x64_epi64::<0xd8>(x86::_mm256_packs_epi16(low, high));
                *bits = x86::_mm256_movemask_epi8(bytes) as u32;
            }
            (bits[0], bits[1])
        }
    }
);

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64 as arm;

#[cfg(target_arch = "aarch64")]
lanes!(Neon: 4 of arm::uint32x4_t, arm::vdupq_n_u32(0);
    from => arm::vld1q_u32(from);
    (to, value) => arm::vst1q_u32(to, value);
    (a, b) => or arm::vorrq_u32(a, b), and arm::vandq_u32(a, b), xor arm::veorq_u32(a, b);
    (v, bits) => left arm::vshlq_u32(v, arm::vdupq_n_s32(bits)), right arm::vshlq_u32(v, arm::vdupq_n_s32(-bits));

    #[inline(always)]
    unsafe fn down(self, first: u32) -> Self {
        unsafe {
            let [a, b, c, d] = self.0;
            Self([arm::vextq_u32::<3>(arm::vdupq_n_u32(first), a), arm::vextq_u32::<3>(a, b), arm::vextq_u32::<3>(b, c), arm::vextq_u32::<3>(c, d)])
        }
    }

    #[inline(always)]
    unsafe fn up(self, last: u32) -> Self {
        unsafe {
            let [a, b, c, d] = self.0;
            Self([arm::vextq_u32::<1>(a, b), arm::vextq_u32::<1>(b, c), arm::vextq_u32::<1>(c, d), arm::vextq_u32::<1>(d, arm::vdupq_n_u32(last))])
        }
    }

    #[inline(always)]
    unsafe fn columns(rows: u32) -> Self {
        unsafe {
            let mut own = [arm::vdupq_n_u32(rows); 4];
            for part in 0..4 {
                let shifts = arm::vaddq_s32(arm::vld1q_s32([0, -1, -2, -3].as_ptr()), arm::vdupq_n_s32(-4 * part as i32));
                let bits = arm::vshlq_u32(own[part], shifts);
                let last = arm::vshlq_n_u32::<31>(arm::vshrq_n_u32::<16>(bits));
                own[part] = arm::vorrq_u32(arm::vandq_u32(bits, arm::vdupq_n_u32(1)), last);
            }
            Self(own)
        }
    }

    #[inline(always)]
    unsafe fn is_empty(self) -> bool {
        unsafe {
            let [a, b, c, d] = self.0;
            arm::vmaxvq_u32(arm::vorrq_u32(arm::vorrq_u32(a, b), arm::vorrq_u32(c, d))) == 0
        }
    }
);
