//! The kernels without vector instructions; tests compare the other kernels with them.

use std::ops::Range;

use super::{
    super::bottom_up::{BottomUp, Probe},
    MapBack, SimdKernels,
};
use crate::graph::{NONE, Vertex};

pub(super) const KERNELS: SimdKernels = kernels!(Scalar, map_back);

pub(super) struct Scalar;

impl Probe for Scalar {
    #[inline(always)]
    unsafe fn column(level: &BottomUp<'_>, k: usize, word: usize, asking: u64) -> (u64, u64) {
        let (mut hits, mut exhausted) = (0, 0);
        let mut rest = asking;
        while rest != 0 {
            let lane = rest.trailing_zeros();
            rest &= rest - 1;
            let v = word * 64 + lane as usize;
            // SAFETY: columns cover all words; their entries are vertices or `none`.
            unsafe {
                let neighbour = *level.columns.get_unchecked(k).get_unchecked(v);
                let hit = u64::from(level.is_visited(neighbour));
                hits |= hit << lane;
                exhausted |= u64::from(neighbour == level.none) << lane;
                if hit != 0 {
                    *level.parent.get().add(v) = *level.originals.get_unchecked(k).get_unchecked(v);
                }
            }
        }
        (hits, exhausted)
    }

    #[inline(always)]
    unsafe fn reached(parents: *const Vertex) -> u64 {
        // SAFETY: there are 64 parents (caller).
        (0..64).map(|lane| u64::from(unsafe { *parents.add(lane) } != NONE) << lane).fold(0, |bits, bit| bits | bit)
    }
}

pub(super) unsafe fn map_back(work: &MapBack<'_>, vertices: Range<usize>) {
    for (v, &place) in vertices.clone().zip(&work.place[vertices]) {
        // SAFETY: places are in range, and this thread owns the output (caller).
        unsafe { *work.out.get().add(v) = *work.parent.get_unchecked(place as usize) };
    }
}
