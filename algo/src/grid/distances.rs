//! From the bit planes of a wave to distances.

use std::sync::atomic::Ordering::Relaxed;

use super::{
    COLUMNS, ROWS,
    lanes::{self, Lanes, SHORTS},
    wave::{DECODED, Tile, TileState, UNTOUCHED, plane},
};
use socbfs::{Simd, memory::Pod};

/// A type of distances.
pub(super) trait Distance: Pod + Eq + Into<u32> {
    /// The distance of cells that were not reached.
    const NONE: Self;
    /// Half-words per cell.
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

/// Writes the distances of a tile over its planes; returns how many cells were reached, or `None` if it was done before.
///
/// # Safety
/// `words` is the array of distances behind its first padding, `line` the number of cells from a row to the next. No other thread uses the
/// tile.
#[inline(always)]
unsafe fn decode<V: Lanes, D: Distance>(state: &TileState, words: *mut u32, line: usize, free: &[u32], unvisited: &Tile) -> Option<u64> {
    // SAFETY: the caller's promise.
    unsafe {
        let start = words.add(state.cell as usize / 2 * D::HALVES);
        let row = |i: usize| start.cast::<D>().add(i * line).cast::<[D; COLUMNS]>();
        let (begin, used) = (state.begin.load(Relaxed), state.planes.swap(DECODED, Relaxed));
        if used == DECODED {
            return None;
        }
        if begin == UNTOUCHED {
            for i in 0..ROWS {
                row(i).write_unaligned([D::NONE; COLUMNS]);
            }
            return Some(0);
        }
        // From Gray codes to numbers: a bit is the sum of the bits above and its own.
        let used = (used as usize).min(32);
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
            let visited = free[i] & !unvisited[i];
            reached += u64::from(visited.count_ones());
            for half in 0..COLUMNS / SHORTS {
                let cells = D::decode::<V>(&planes[..used], i, (half * SHORTS) as u32, begin, visited);
                row(i).cast::<[D; SHORTS]>().add(half).write_unaligned(cells);
            }
        }
        Some(reached)
    }
}

/// [`decode`] for one kind of vector instructions and one type of distances.
pub(super) type Decode = unsafe fn(&TileState, *mut u32, usize, &[u32], &Tile) -> Option<u64>;

pub(super) fn decoder<D: Distance>(simd: Simd) -> Decode {
    match simd {
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 | Simd::Avx512 => avx2::<D>,
        _ => decode::<lanes::Plain, D>,
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn avx2<D: Distance>(state: &TileState, words: *mut u32, line: usize, free: &[u32], unvisited: &Tile) -> Option<u64> {
    // SAFETY: the caller's promise.
    unsafe { decode::<lanes::Avx2, D>(state, words, line, free, unvisited) }
}
