//! The operations that a cluster needs of a message-passing library: a few collective ones, each called by all ranks in the same order.
//!
//! An operation does not return an error: if a rank is lost, MPI ends the whole run. No operation allocates.

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::{Barrier, Mutex, PoisonError},
};

use super::ClusterError;

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
    fold(ranks, value, 0, u64::wrapping_add)
}

/// The largest `value` of all ranks.
pub fn max(ranks: &(impl Ranks + ?Sized), value: u64) -> u64 {
    fold(ranks, value, 0, u64::max)
}

fn fold(ranks: &(impl Ranks + ?Sized), value: u64, first: u64, join: impl Fn(u64, u64) -> u64) -> u64 {
    values(ranks, value).into_iter().fold(first, join)
}

/// The `value` of every rank, in the order of ranks.
pub fn values(ranks: &(impl Ranks + ?Sized), value: u64) -> Vec<u64> {
    let mut all = vec![0; 8 * ranks.size()];
    ranks.all_gather(&value.to_le_bytes(), &mut all);
    all.as_chunks_of_8().map(u64::from_le_bytes).collect()
}

/// Splits bytes into arrays of 8. (`as_chunks` needs a later Rust.)
trait Eights {
    fn as_chunks_of_8(&self) -> impl Iterator<Item = [u8; 8]>;
}

impl Eights for [u8] {
    fn as_chunks_of_8(&self) -> impl Iterator<Item = [u8; 8]> {
        self.chunks_exact(8).map(|chunk| std::array::from_fn(|i| chunk[i]))
    }
}

/// Values that [`add_up`] adds in one piece: 4 MiB.
const ADDED: usize = 1 << 20;

/// Replaces each value by its sum over all ranks, piece by piece: each rank adds its share of a piece and sends the sums to all others.
pub fn add_up(ranks: &(impl Ranks + ?Sized), values: &mut [u32]) {
    let (rank, size) = (ranks.rank(), ranks.size());
    if size == 1 {
        return;
    }
    let number = |bytes: &[u8]| u32::from_le_bytes(std::array::from_fn(|i| bytes[i]));
    let (mut bytes, mut arrived) = (Vec::new(), Vec::new());
    for piece in values.chunks_mut(ADDED) {
        let begin = |rank: usize| piece.len() * rank / size;
        let lengths: Vec<i32> = (0..size).map(|rank| 4 * (begin(rank + 1) - begin(rank)) as i32).collect();
        let offsets: Vec<i32> = (0..size).map(|rank| 4 * begin(rank) as i32).collect();
        bytes.clear();
        bytes.extend(piece.iter().flat_map(|value| value.to_le_bytes()));
        // The values in this rank's share, from every rank.
        let own = lengths[rank] as usize;
        arrived.clear();
        arrived.resize(own * size, 0);
        let (expected, places) = (vec![lengths[rank]; size], (0..size).map(|rank| (own * rank) as i32).collect::<Vec<_>>());
        ranks.all_to_all(Messages { bytes: &bytes, lengths: &lengths, offsets: &offsets }, &mut arrived, &expected, &places);
        let (share, others) = arrived.split_at_mut(own);
        for (at, sum) in share.chunks_exact_mut(4).enumerate() {
            let more = (0..size - 1).map(|other| number(&others[other * own + 4 * at..]));
            sum.copy_from_slice(&more.fold(number(sum), u32::wrapping_add).to_le_bytes());
        }
        ranks.all_gather_varying(share, &mut bytes, &lengths, &offsets);
        for (value, bytes) in piece.iter_mut().zip(bytes.chunks_exact(4)) {
            *value = number(bytes);
        }
    }
}

/// The `text` of every rank, in the order of ranks.
///
/// # Errors
/// [`ClusterError::Message`] if a length that arrives is impossible.
pub fn texts(ranks: &(impl Ranks + ?Sized), text: &str) -> Result<Vec<String>, ClusterError> {
    let lengths = checked(values(ranks, text.len() as u64), i32::MAX as usize)?;
    let offsets = starts(&lengths);
    let mut all = vec![0; total(&lengths)];
    ranks.all_gather_varying(text.as_bytes(), &mut all, &lengths, &offsets);
    let of = |(&length, &offset): (&i32, &i32)| String::from_utf8_lossy(&all[offset as usize..][..length as usize]).into_owned();
    Ok(lengths.iter().zip(&offsets).map(of).collect())
}

/// The lengths that all ranks have announced. Refuses one beyond `most`, and a sum that one message can't have.
pub(super) fn checked(announced: Vec<u64>, most: usize) -> Result<Vec<i32>, ClusterError> {
    let mut left = i32::MAX;
    let check = |(rank, length)| {
        let possible = i32::try_from(length).ok().filter(|&length: &i32| length as usize <= most && length <= left);
        let length = possible.ok_or(ClusterError::Message { rank })?;
        left -= length;
        Ok(length)
    };
    announced.into_iter().enumerate().map(check).collect()
}

/// Sends rank `r` the next `lengths[r]` of the bytes, after the lengths themselves. Writes the bytes that arrive to `all`, in the order of
/// ranks, and returns their lengths. No rank sends another more than `most` bytes.
pub(super) fn all_to_all(
    ranks: &impl Ranks,
    bytes: &[u8],
    lengths: &[i32],
    most: usize,
    all: &mut Vec<u8>,
) -> Result<Vec<i32>, ClusterError> {
    let size = ranks.size();
    let fours = vec![4; size];
    let own: Vec<u8> = lengths.iter().flat_map(|length| length.to_le_bytes()).collect();
    let mut announced = vec![0; 4 * size];
    ranks.all_to_all(Messages { bytes: &own, lengths: &fours, offsets: &starts(&fours) }, &mut announced, &fours, &starts(&fours));
    // A negative length becomes one that is too large.
    let announced = announced.chunks_exact(4).map(|bytes| u32::from_le_bytes(std::array::from_fn(|i| bytes[i])).into()).collect();
    let expected = checked(announced, most)?;
    all.resize(total(&expected), 0);
    ranks.all_to_all(Messages { bytes, lengths, offsets: &starts(lengths) }, all, &expected, &starts(&expected));
    Ok(expected)
}

/// The ranks with the bytes of each, which lie one after the other.
pub(super) fn of_ranks<'a>(all: &'a [u8], lengths: &'a [i32]) -> impl Iterator<Item = (usize, &'a [u8])> {
    let bytes = |(start, &length): (i32, &i32)| &all[start as usize..][..length as usize];
    starts(lengths).into_iter().zip(lengths).map(bytes).enumerate()
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
pub(super) fn total(lengths: &[i32]) -> usize {
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
