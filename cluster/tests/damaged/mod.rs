//! A rank to which data arrive damaged, for tests.

use super::ranks::{Messages, Ranks, ThreadRanks};

/// The operation with which data arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    AllGather,
    AllGatherVarying,
    AllToAll,
    Broadcast,
}

/// A rank. `damage` changes the data that arrive.
pub(super) struct Damaged<'r, F> {
    pub(super) ranks: &'r ThreadRanks<'r>,
    pub(super) damage: F,
}

impl<F: Fn(Operation, &mut [u8])> Ranks for Damaged<'_, F> {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn size(&self) -> usize {
        self.ranks.size()
    }

    fn barrier(&self) {
        self.ranks.barrier();
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) {
        self.ranks.all_gather(own, all);
        (self.damage)(Operation::AllGather, &mut all[..own.len() * self.ranks.size()]);
    }

    fn all_gather_varying(&self, own: &[u8], all: &mut [u8], lengths: &[i32], offsets: &[i32]) {
        self.ranks.all_gather_varying(own, all, lengths, offsets);
        (self.damage)(Operation::AllGatherVarying, all);
    }

    fn all_to_all(&self, own: Messages<'_>, all: &mut [u8], expected: &[i32], places: &[i32]) {
        self.ranks.all_to_all(own, all, expected, places);
        (self.damage)(Operation::AllToAll, all);
    }

    fn broadcast(&self, from: usize, bytes: &mut [u8]) {
        self.ranks.broadcast(from, bytes);
        (self.damage)(Operation::Broadcast, bytes);
    }
}
