//! Numbers that hold distances.

use super::{COLUMNS, lanes::Lanes};
use socbfs::memory::Pod;

/// A type of distances. On [edges](super::wave::Wave::edges) they are one more, and `BLOCKED` is 0.
pub(super) trait Distance: Pod + Ord + Into<u32> {
    /// The distance of cells that were not reached.
    const NONE: Self;
    /// On edges, a blocked cell.
    const BLOCKED: Self;
    /// The longest distance. One more would be taken for the neighbour of a cell that was not reached.
    const DEEPEST: u32;
    /// A number that fits.
    fn of(number: u32) -> Self;
    /// The distance one step nearer; `NONE` has some value that no cell has.
    fn nearer(self) -> Self;
    /// The entry of an edge for this distance; `NONE` for `NONE`.
    fn behind(self) -> Self;
    /// The entry of an edge one step further; `NONE` for a cell that is blocked or was not reached.
    fn further(self) -> Self;
    /// The difference, modulo 2^bits.
    fn minus(self, other: Self) -> Self;
    /// As [`Lanes::compare`].
    unsafe fn compare<V: Lanes>(cells: &[Self; COLUMNS], from: u32) -> (u32, u32);
}

macro_rules! distance {
    ($name:ty; $($more:item)*) => {
        impl Distance for $name {
            const NONE: Self = Self::MAX;
            const BLOCKED: Self = 0;
            const DEEPEST: u32 = Self::MAX as u32 - 2;

            #[inline(always)]
            fn of(number: u32) -> Self {
                number as Self
            }

            #[inline(always)]
            fn nearer(self) -> Self {
                self.wrapping_sub(1)
            }

            #[inline(always)]
            fn behind(self) -> Self {
                self.saturating_add(1)
            }

            #[inline(always)]
            fn further(self) -> Self {
                self.wrapping_sub(1).saturating_add(2)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            $($more)*
        }
    };
}

distance!(u16;
    #[inline(always)]
    unsafe fn compare<V: Lanes>(cells: &[Self; COLUMNS], from: u32) -> (u32, u32) {
        // SAFETY: the caller's promise.
        unsafe { V::compare(cells, from as Self) }
    }
);

distance!(u32;
    #[inline(always)]
    unsafe fn compare<V: Lanes>(cells: &[Self; COLUMNS], from: u32) -> (u32, u32) {
        // Those at least as far get 2, those one step nearer 1, all others 0.
        let mut near = [0; COLUMNS];
        for i in 0..COLUMNS {
            near[i] = if cells[i] >= from { 2 } else { u16::from(cells[i] + 1 == from) };
        }
        // SAFETY: the caller's promise.
        unsafe { V::compare(&near, 2) }
    }
);
