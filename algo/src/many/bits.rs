//! A bit for each search of a pass. (Loops, since what adapters of arrays are made of is not compiled into its callers: 3 times the time.)

use std::ops::{BitAnd, BitOrAssign, Sub};

use super::ROOTS;
use socbfs::memory::Pod;

/// A set of searches, in `W` words of [`ROOTS`] bits: bit `i % ROOTS` of word `i / ROOTS` is the search from the `i`-th root of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Bits<const W: usize>(pub(super) [u64; W]);

impl<const W: usize> Pod for Bits<W> {}

impl<const W: usize> Bits<W> {
    pub(super) const NONE: Self = Self([0; W]);
    pub(super) const ALL: Self = Self([u64::MAX; W]);

    pub(super) fn one(search: usize) -> Self {
        let mut one = Self::NONE;
        one.0[search / ROOTS] = 1 << (search % ROOTS);
        one
    }

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        let mut all = 0;
        for word in self.0 {
            all |= word;
        }
        all == 0
    }

    #[inline]
    pub(super) fn count(self) -> u64 {
        let mut count = 0;
        for word in self.0 {
            count += u64::from(word.count_ones());
        }
        count
    }

    /// Calls `visit` with each search.
    #[inline]
    pub(super) fn each(self, mut visit: impl FnMut(usize)) {
        for word in 0..W {
            let mut bits = self.0[word];
            while bits != 0 {
                visit(ROOTS * word + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Words as the sets of `words.len() / W` vertices.
    pub(super) fn of_words(words: &mut [u64]) -> &mut [Self] {
        // SAFETY: a set has the layout of `W` words, and these lie in the slice, which stays borrowed.
        unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() / W) }
    }

    /// The words of the sets.
    pub(super) fn words(sets: &mut [Self]) -> &mut [u64] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(sets.as_mut_ptr().cast(), sets.len() * W) }
    }
}

impl<const W: usize> BitAnd for Bits<W> {
    type Output = Self;

    #[inline]
    fn bitand(mut self, other: Self) -> Self {
        for word in 0..W {
            self.0[word] &= other.0[word];
        }
        self
    }
}

impl<const W: usize> BitOrAssign for Bits<W> {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        for word in 0..W {
            self.0[word] |= other.0[word];
        }
    }
}

/// The searches that the other set does not have.
impl<const W: usize> Sub for Bits<W> {
    type Output = Self;

    #[inline]
    fn sub(mut self, other: Self) -> Self {
        for word in 0..W {
            self.0[word] &= !other.0[word];
        }
        self
    }
}
