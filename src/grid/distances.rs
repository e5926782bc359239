//! From the bit planes of a wave to distances.

use std::ops::Range;

use super::{
    COLUMNS, ROWS, Shape,
    lanes::{self, Lanes, SHORTS},
    wave::{Tile, TileState, UNTOUCHED, plane},
};
use crate::{
    cpu::Simd,
    memory::{Plain, Shared},
};

/// A type of distances.
pub(super) trait Distance: Plain + Eq + Into<u32> {
    /// The distance of cells that were not reached.
    const NONE: Self;
    /// Words per cell, times two.
    const HALVES: usize;
    /// As [`Lanes::sum_of_planes`].
    unsafe fn decode<V: Lanes>(planes: &[Tile], row: usize, shift: u32, begin: u32, reached: u32) -> [Self; SHORTS];
    /// The distance one step nearer; `NONE` has some value that no cell has.
    fn nearer(self) -> Self;
}

impl Distance for u16 {
    const NONE: Self = Self::MAX;
    const HALVES: usize = 1;

    #[inline(always)]
    unsafe fn decode<V: Lanes>(planes: &[Tile], row: usize, shift: u32, begin: u32, reached: u32) -> [Self; SHORTS] {
        // SAFETY: the caller's promise.
        unsafe { V::sum_of_planes(planes, row, shift, begin as Self, reached) }
    }

    #[inline(always)]
    fn nearer(self) -> Self {
        self.wrapping_sub(1)
    }
}

impl Distance for u32 {
    const NONE: Self = Self::MAX;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn decode<V: Lanes>(planes: &[Tile], row: usize, shift: u32, begin: u32, reached: u32) -> [Self; SHORTS] {
        let (low, high) = planes.split_at(planes.len().min(16));
        // SAFETY: the caller's promise.
        let [low, high] = [low, high].map(|planes| unsafe { V::sum_of_planes(planes, row, shift, 0, u32::MAX) });
        std::array::from_fn(|i| {
            let time = u32::from(low[i]) | u32::from(high[i]) << 16;
            if reached >> shift >> i & 1 == 1 { time.wrapping_add(begin) } else { Self::MAX }
        })
    }

    #[inline(always)]
    fn nearer(self) -> Self {
        self.wrapping_sub(1)
    }
}

/// The planes of all tiles, to be turned into distances.
///
/// # Safety (of [`Planes::decode`])
/// `cells` has the cells of an array of distances from after its first row of padding, `free` and `unvisited` have [`Shape::words`] words,
/// and each tile is in the range of one thread.
#[derive(Debug)]
pub(super) struct Planes<'a> {
    pub(super) shape: Shape,
    pub(super) states: &'a [TileState],
    pub(super) free: &'a [u32],
    pub(super) unvisited: &'a [u32],
    pub(super) words: Shared<u32>,
}

impl Planes<'_> {
    /// Writes the distances of all tiles whose number in their strip is in `range`; returns how many cells were reached.
    #[inline(always)]
    unsafe fn decode<V: Lanes, D: Distance>(&self, range: Range<usize>) -> u64 {
        let mut reached = 0;
        for number in range {
            for strip in 0..self.shape.strips {
                // SAFETY: the caller's promise.
                reached += unsafe { self.tile::<V, D>((strip + super::BORDER) * self.shape.pitch() + number + super::BORDER) };
            }
        }
        reached
    }

    #[inline(always)]
    unsafe fn tile<V: Lanes, D: Distance>(&self, tile: usize) -> u64 {
        use std::sync::atomic::Ordering::Relaxed; // the wave has ended
        let (state, line) = (&self.states[tile], self.shape.line());
        // SAFETY: the caller's promise: the tile is this thread's own.
        unsafe {
            let start = self.words.get().add(state.cell as usize * D::HALVES / 2);
            let row = |i: usize| start.cast::<D>().add(i * line).cast::<[D; COLUMNS]>();
            let begin = state.begin.load(Relaxed);
            if begin == UNTOUCHED {
                for i in 0..ROWS {
                    row(i).write_unaligned([D::NONE; COLUMNS]);
                }
                return 0;
            }
            // From Gray codes to numbers: a bit is the sum of the bits above and its own.
            let used = (state.planes.load(Relaxed) as usize).min(32);
            let (mut planes, mut sum): ([Tile; 32], Tile) = ([[0; ROWS]; 32], [0; ROWS]);
            for k in (0..used).rev() {
                let bits = start.add(plane(k, line / 2 * D::HALVES)).cast::<Tile>().read_unaligned();
                for i in 0..ROWS {
                    sum[i] ^= bits[i];
                }
                planes[k] = sum;
            }
            let mut reached = 0;
            for i in 0..ROWS {
                let visited = self.free[tile * ROWS + i] & !self.unvisited[tile * ROWS + i];
                reached += u64::from(visited.count_ones());
                for half in 0..COLUMNS / SHORTS {
                    let cells = D::decode::<V>(&planes[..used], i, (half * SHORTS) as u32, begin, visited);
                    row(i).cast::<[D; SHORTS]>().add(half).write_unaligned(cells);
                }
            }
            reached
        }
    }
}

/// [`Planes::decode`] for each kind of vector instructions.
pub(super) type Decode = unsafe fn(&Planes<'_>, Range<usize>) -> u64;

pub(super) fn decoder<D: Distance>(simd: Simd) -> Decode {
    match simd {
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 | Simd::Avx512 => avx2::<D>,
        _ => plain::<D>,
    }
}

unsafe fn plain<D: Distance>(planes: &Planes<'_>, range: Range<usize>) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { planes.decode::<lanes::Plain, D>(range) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn avx2<D: Distance>(planes: &Planes<'_>, range: Range<usize>) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { planes.decode::<lanes::Avx2, D>(range) }
}
