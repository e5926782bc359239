//! The operations that a cluster needs of a message-passing library: a few collective ones, each called by all ranks in the same order.
//!
//! An operation does not return an error: if a rank is lost, MPI ends the whole run. No operation allocates. Numbers are sent as they lie
//! in memory, so all machines have the same byte order.

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::{Barrier, Mutex, PoisonError},
};

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::ClusterError;
use socbfs::words::with_causes;

/// One rank's connection to all others.
pub trait Ranks {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Returns when all ranks have called it.
    fn barrier(&self);

    /// Every rank sends `own`, of the same length on all ranks. All of them arrive in `all`, in the order of ranks, and fill
    /// it.
    fn all_gather(&self, own: &[u8], all: &mut [u8]);

    /// Rank `r` sends `lengths[r]` bytes, which arrive at `offsets[r]` of `all` on every rank. All ranks pass the same lengths.
    fn all_gather_varying(&self, own: &[u8], all: &mut [u8], lengths: &[i32], offsets: &[i32]);

    /// Rank `r` receives the `lengths[r]` bytes at `offsets[r]` of `own`. The `expected[r]` bytes that rank `r` sends to this rank arrive
    /// at `places[r]` of `all`.
    fn all_to_all(&self, own: Messages<'_>, all: &mut [u8], expected: &[i32], places: &[i32]);

    /// Copies the bytes of rank `from` to `bytes` of every rank.
    fn broadcast(&self, from: usize, bytes: &mut [u8]);
}

/// The message of one rank: a piece for each rank.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a> {
    /// All pieces.
    pub bytes: &'a [u8],
    /// Length of the piece for each rank.
    pub lengths: &'a [i32],
    /// Where the piece for each rank begins.
    pub offsets: &'a [i32],
}

/// The sum of `value` over all ranks.
pub fn sum(ranks: &(impl Ranks + ?Sized), value: u64) -> u64 {
    values(ranks, value).into_iter().fold(0, u64::wrapping_add)
}

/// The largest `value` of all ranks.
pub fn max(ranks: &(impl Ranks + ?Sized), value: u64) -> u64 {
    values(ranks, value).into_iter().fold(0, u64::max)
}

/// The `value` of every rank, in the order of ranks.
pub fn values(ranks: &(impl Ranks + ?Sized), value: u64) -> Vec<u64> {
    gathered(ranks, &[value])
}

/// The values of every rank, equally many of each, in the order of ranks.
pub(super) fn gathered<T: Pod>(ranks: &(impl Ranks + ?Sized), own: &[T]) -> Vec<T> {
    let mut all = vec![T::zeroed(); own.len() * ranks.size()];
    ranks.all_gather(cast_slice(own), cast_slice_mut(&mut all));
    all
}

/// Values that [`add_up`] adds in one piece: 4 MiB.
const ADDED: usize = 1 << 20;

/// Replaces each value by its sum over all ranks, piece by piece: each rank adds its share of a piece and sends the sums to all others.
pub fn add_up(ranks: &(impl Ranks + ?Sized), values: &mut [u32]) {
    let (rank, size) = (ranks.rank(), ranks.size());
    if size == 1 {
        return;
    }
    for piece in values.chunks_mut(ADDED) {
        let shares: Vec<usize> = (0..size).map(|rank| piece.len() * (rank + 1) / size - piece.len() * rank / size).collect();
        let lengths: Vec<i32> = shares.iter().map(|&share| 4 * share as i32).collect();
        // The values in this rank's share, from every rank.
        let expected = vec![lengths[rank]; size];
        let mut arrived = vec![0_u32; shares[rank] * size];
        let own = Messages { bytes: cast_slice(piece), lengths: &lengths, offsets: &starts(&lengths) };
        ranks.all_to_all(own, cast_slice_mut(&mut arrived), &expected, &starts(&expected));
        let (share, others) = arrived.split_at_mut(shares[rank]);
        for other in others.chunks_exact(share.len().max(1)) {
            share.iter_mut().zip(other).for_each(|(sum, &more)| *sum = sum.wrapping_add(more));
        }
        ranks.all_gather_varying(cast_slice(share), cast_slice_mut(piece), &lengths, &starts(&lengths));
    }
}

/// The `text` of every rank, in the order of ranks.
///
/// # Errors
/// [`ClusterError::Message`] if a length that arrives is impossible.
pub fn texts(ranks: &(impl Ranks + ?Sized), text: &str) -> Result<Vec<String>, ClusterError> {
    let all = gathered_varying(ranks, text.as_bytes(), i32::MAX as usize)?;
    Ok(all.of_ranks().map(|(_, text)| String::from_utf8_lossy(text).into_owned()).collect())
}

/// Values that arrived from all ranks, in the order of ranks.
#[derive(Debug, Default)]
pub(super) struct Arrived<T> {
    pub(super) all: Vec<T>,
    /// Bytes of each rank.
    lengths: Vec<i32>,
}

impl<T: Pod> Arrived<T> {
    /// Makes room for the values whose bytes all ranks have announced. Refuses a rank with more than `most` values, with a part of one, or
    /// with more than one message can have in sum.
    fn make_room(&mut self, announced: Vec<u64>, most: usize) -> Result<(), ClusterError> {
        let mut left = i32::MAX;
        let check = |(rank, length)| {
            let is_possible =
                |&length: &i32| length as usize / size_of::<T>() <= most && length <= left && length as usize % size_of::<T>() == 0;
            let length = i32::try_from(length).ok().filter(is_possible).ok_or(ClusterError::Message { rank })?;
            left -= length;
            Ok(length)
        };
        self.lengths = announced.into_iter().enumerate().map(check).collect::<Result<_, ClusterError>>()?;
        self.all.resize(total(&self.lengths) / size_of::<T>(), T::zeroed());
        Ok(())
    }

    /// The ranks with the values of each.
    pub(super) fn of_ranks(&self) -> impl Iterator<Item = (usize, &[T])> {
        let values = |(start, &length): (i32, &i32)| &self.all[start as usize / size_of::<T>()..][..length as usize / size_of::<T>()];
        starts(&self.lengths).into_iter().zip(&self.lengths).map(values).enumerate()
    }
}

/// The values of every rank, of different numbers, at most `most` of each.
pub(super) fn gathered_varying<T: Pod>(ranks: &(impl Ranks + ?Sized), own: &[T], most: usize) -> Result<Arrived<T>, ClusterError> {
    let mut arrived = Arrived { all: Vec::new(), lengths: Vec::new() };
    arrived.make_room(values(ranks, size_of_val(own) as u64), most)?;
    ranks.all_gather_varying(cast_slice(own), cast_slice_mut(&mut arrived.all), &arrived.lengths, &starts(&arrived.lengths));
    Ok(arrived)
}

/// Sends rank `r` the next `counts[r]` of the values, after their number. `arrived` then holds the values from all ranks. No rank sends
/// another more than `most` values.
pub(super) fn all_to_all<T: Pod>(
    ranks: &impl Ranks,
    own: &[T],
    counts: &[usize],
    most: usize,
    arrived: &mut Arrived<T>,
) -> Result<(), ClusterError> {
    let lengths: Vec<i32> = counts.iter().map(|count| (count * size_of::<T>()) as i32).collect();
    let fours = vec![4; counts.len()];
    // A negative length becomes one that is too large.
    let mut announced = vec![0_u32; counts.len()];
    let own_lengths = Messages { bytes: cast_slice(&lengths), lengths: &fours, offsets: &starts(&fours) };
    ranks.all_to_all(own_lengths, cast_slice_mut(&mut announced), &fours, &starts(&fours));
    arrived.make_room(announced.into_iter().map(u64::from).collect(), most)?;
    let own = Messages { bytes: cast_slice(own), lengths: &lengths, offsets: &starts(&lengths) };
    ranks.all_to_all(own, cast_slice_mut(&mut arrived.all), &arrived.lengths, &starts(&arrived.lengths));
    Ok(())
}

/// Where the bytes of each rank begin, if they lie one after the other.
pub(super) fn starts(lengths: &[i32]) -> Vec<i32> {
    lengths
        .iter()
        .scan(0, |at, &length| {
            let start = *at;
            *at += length;
            Some(start)
        })
        .collect()
}

/// The sum of lengths that are not negative.
fn total(lengths: &[i32]) -> usize {
    lengths.iter().map(|&length| length as usize).sum()
}

/// Ranks that are threads of one process: a cluster without MPI, for tests and for counting messages.
///
/// Every operation of a rank waits for all ranks exactly twice: when it has offered its slices, and when it has read those of the others.
/// So no rank reads what another offered to an earlier operation, even if ranks call different operations.
#[derive(Debug)]
pub struct ThreadRanks<'b> {
    rank: usize,
    board: &'b Board,
    /// Makes the type `!Sync`: two threads that shared a rank could together do the waiting that is meant for two ranks.
    one_caller: PhantomData<Cell<()>>,
}

/// The data that [`ThreadRanks`] share.
#[derive(Debug)]
pub struct Board {
    all_here: Barrier,
    /// The data that each rank offers to the others.
    pieces: Vec<Mutex<Piece>>,
}

/// The data that one rank offers: pointers to its slices, which stay in place until all ranks have read them.
#[derive(Debug, Clone, Copy)]
struct Piece {
    bytes: *const [u8],
    lengths: *const [i32],
    offsets: *const [i32],
}

// SAFETY: a piece points to shared slices of plain numbers, which may be read from any thread.
unsafe impl Send for Piece {}

/// Waits for all ranks when it is dropped, also while a rank unwinds: the slices that a rank offers must outlive the reads of other ranks.
struct UntilAllHaveLooked<'b>(&'b Barrier);

impl Drop for UntilAllHaveLooked<'_> {
    fn drop(&mut self) {
        self.0.wait();
    }
}

impl Board {
    /// A board for `size` ranks.
    pub fn new(size: usize) -> Self {
        let nothing = Piece { bytes: &[], lengths: &[], offsets: &[] };
        Self { all_here: Barrier::new(size), pieces: (0..size).map(|_| Mutex::new(nothing)).collect() }
    }
}

impl<'b> ThreadRanks<'b> {
    /// Runs `work` as each of `size` ranks, each on its own thread. Returns their results in the order of ranks.
    ///
    /// # Panics
    /// If `work` panics on a rank after the last operation of all ranks. (If it panics earlier, the other ranks wait for ever.)
    pub fn run<T: Send>(size: usize, work: impl Fn(&ThreadRanks<'_>) -> T + Sync) -> Vec<T> {
        let board = Board::new(size);
        let (board, work) = (&board, &work);
        std::thread::scope(|scope| {
            let ranks = (0..size).map(|rank| ThreadRanks { rank, board, one_caller: PhantomData });
            let threads: Vec<_> = ranks.map(|ranks| scope.spawn(move || work(&ranks))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    /// Offers `own` to all ranks, and calls `look` with what each rank offers.
    fn exchange(&self, own: Messages<'_>, mut look: impl FnMut(usize, Messages<'_>)) {
        let piece = |rank: usize| self.board.pieces[rank].lock().unwrap_or_else(PoisonError::into_inner);
        *piece(self.rank) = Piece { bytes: own.bytes, lengths: own.lengths, offsets: own.offsets };
        self.board.all_here.wait();
        let _all = UntilAllHaveLooked(&self.board.all_here);
        for from in 0..self.size() {
            let Piece { bytes, lengths, offsets } = *piece(from);
            // SAFETY: every operation waits twice, and each rank is one thread, so all ranks are between the two waits of one operation.
            // Rank `from` has just offered these slices, and it borrows them until all ranks, this one included, wait again.
            let put_up = unsafe { Messages { bytes: &*bytes, lengths: &*lengths, offsets: &*offsets } };
            look(from, put_up);
        }
    }

    /// As [`exchange`](Self::exchange), with the same bytes for every rank.
    fn exchange_bytes(&self, bytes: &[u8], mut look: impl FnMut(usize, &[u8])) {
        self.exchange(Messages { bytes, lengths: &[], offsets: &[] }, |from, piece| look(from, piece.bytes));
    }
}

impl Ranks for ThreadRanks<'_> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.board.pieces.len()
    }

    fn barrier(&self) {
        // Waits twice, as every operation must.
        self.exchange_bytes(&[], |_, _| ());
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) {
        // MPI takes the length of `all` for that of all messages.
        assert_eq!(all.len(), own.len() * self.size(), "a rank has room for another number of bytes than the ranks send");
        self.exchange_bytes(own, |from, piece| all[from * own.len()..][..own.len()].copy_from_slice(piece));
    }

    fn all_gather_varying(&self, own: &[u8], all: &mut [u8], lengths: &[i32], offsets: &[i32]) {
        self.exchange_bytes(own, |from, piece| {
            all[offsets[from] as usize..][..lengths[from] as usize].copy_from_slice(piece);
        });
    }

    fn all_to_all(&self, own: Messages<'_>, all: &mut [u8], expected: &[i32], places: &[i32]) {
        self.exchange(own, |from, pieces| {
            let (offset, length) = (pieces.offsets[self.rank], pieces.lengths[self.rank]);
            assert_eq!(length, expected[from], "a rank sends another number of bytes than it announced");
            all[places[from] as usize..][..length as usize].copy_from_slice(&pieces.bytes[offset as usize..][..length as usize]);
        });
    }

    fn broadcast(&self, from: usize, bytes: &mut [u8]) {
        // The other ranks offer nothing: they write to `bytes`.
        if self.rank == from {
            self.exchange_bytes(bytes, |_, _| ());
        } else {
            self.exchange_bytes(&[], |rank, piece| {
                if rank == from {
                    bytes.copy_from_slice(piece);
                }
            });
        }
    }
}

/// The first rank whose text is not empty, and that text.
pub(super) fn first_of(texts: Vec<String>) -> Option<(usize, String)> {
    texts.into_iter().enumerate().find(|(_, text)| !text.is_empty())
}

/// Returns the result of each rank, or an error on every rank: if one rank returned alone, the others would wait for it.
pub(super) fn all_or_none<T>(ranks: &impl Ranks, made: Result<T, impl Into<ClusterError>>) -> Result<T, ClusterError> {
    let made = made.map_err(Into::into);
    let own = made.as_ref().err().map_or_else(String::new, |error| with_causes("", error));
    let failed = first_of(texts(ranks, &own)?);
    match (made, failed) {
        // Only the first rank that failed returns its own error.
        (_, Some((rank, reason))) if rank != ranks.rank() => Err(ClusterError::SetUp { rank, reason }),
        (made, _) => made,
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::damaged::{Damaged, Operation};

    /// If ranks call different operations, no rank reads what another offered to an earlier one, which may be freed by then.
    #[test]
    fn a_rank_offers_nothing_beyond_its_current_operation() {
        let old = [[1; 8], [2; 8]];
        let is_refused = ThreadRanks::run(2, |ranks| {
            let mut all = [0; 16];
            ranks.all_gather(&old[ranks.rank()], &mut all);
            assert_eq!(all, *old.as_flattened());
            if ranks.rank() == 0 {
                // What rank 0 offers is empty, and rank 1 reports that it does not have the length that was agreed.
                ranks.barrier();
                ranks.barrier();
                return true;
            }
            let refused = catch_unwind(AssertUnwindSafe(|| ranks.all_gather(&[3; 8], &mut all))).is_err();
            if refused {
                ranks.barrier();
            }
            refused
        });
        assert!(is_refused[1], "rank 1 read the bytes of an earlier operation");
    }

    #[test]
    fn damaged_lengths_of_texts_are_errors() {
        let all = |length: u64| {
            let damage = |operation: Operation, bytes: &mut [u8]| {
                if operation == Operation::AllGather {
                    bytes[8..].copy_from_slice(&length.to_le_bytes());
                }
            };
            ThreadRanks::run(2, |ranks| texts(&Damaged { ranks, damage }, ["a", "bc"][ranks.rank()]))
        };
        assert!(all(2).into_iter().all(|texts| texts.unwrap() == ["a", "bc"]));
        // The longest text that one message can hold has no room for that of rank 0.
        for length in [i32::MAX as u64, 1 << 31, u64::MAX] {
            assert!(all(length).into_iter().all(|texts| matches!(texts, Err(ClusterError::Message { rank: 1 }))), "{length}");
        }
    }

    /// Does not compile if two threads can share a rank: both traits would then have the function.
    #[test]
    fn threads_can_not_share_a_rank() {
        trait Any<Marker> {
            fn exists() {}
        }
        impl<T> Any<()> for T {}
        impl<T: Sync> Any<bool> for T {}
        <ThreadRanks<'_> as Any<_>>::exists();
    }
}
