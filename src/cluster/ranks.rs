//! What a cluster needs of a message-passing library: a few collective operations, each called by all ranks in the same order.
//!
//! An operation does not return an error: where a rank is lost, MPI ends the whole run. No operation allocates.

use std::sync::{Barrier, Mutex, PoisonError};

/// One rank's connection to all others.
pub trait Ranks {
    /// This rank, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// Returns when all ranks have called it.
    fn barrier(&self);

    /// Every rank gives as many bytes; all of them arrive in `all`, in the order of ranks.
    fn all_gather(&self, own: &[u8], all: &mut [u8]);

    /// Rank `r` gives `lengths[r]` bytes, which arrive at `offsets[r]` of `all`. All ranks know all lengths.
    fn all_gather_varying(&self, own: &[u8], all: &mut [u8], lengths: &[i32], offsets: &[i32]);

    /// Rank `r` receives the `lengths[r]` bytes at `offsets[r]` of `own`; what rank `r` sends here, `expected[r]` bytes, arrives at
    /// `places[r]` of `all`.
    fn all_to_all(&self, own: Messages<'_>, all: &mut [u8], expected: &[i32], places: &[i32]);

    /// The bytes of rank `from` on every rank.
    fn broadcast(&self, from: usize, bytes: &mut [u8]);
}

/// What one rank sends: a piece for each rank.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a> {
    /// All pieces.
    pub bytes: &'a [u8],
    /// Length of the piece for each rank.
    pub lengths: &'a [i32],
    /// Where it begins.
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

/// `value` of every rank.
pub fn values(ranks: &(impl Ranks + ?Sized), value: u64) -> Vec<u64> {
    let mut all = vec![0; 8 * ranks.size()];
    ranks.all_gather(&value.to_le_bytes(), &mut all);
    all.as_chunks_of_8().map(u64::from_le_bytes).collect()
}

/// Slices of 8 bytes. (`as_chunks` is of a later Rust.)
trait Eights {
    fn as_chunks_of_8(&self) -> impl Iterator<Item = [u8; 8]>;
}

impl Eights for [u8] {
    fn as_chunks_of_8(&self) -> impl Iterator<Item = [u8; 8]> {
        self.chunks_exact(8).map(|chunk| std::array::from_fn(|i| chunk[i]))
    }
}

/// A text of every rank.
pub fn texts(ranks: &(impl Ranks + ?Sized), text: &str) -> Vec<String> {
    let lengths = values(ranks, text.len() as u64);
    let lengths: Vec<i32> = lengths.iter().map(|&length| length as i32).collect();
    let offsets: Vec<i32> = (0..lengths.len()).map(|r| lengths[..r].iter().sum()).collect();
    let mut all = vec![0; lengths.iter().sum::<i32>() as usize];
    ranks.all_gather_varying(text.as_bytes(), &mut all, &lengths, &offsets);
    let of = |(&length, &offset): (&i32, &i32)| String::from_utf8_lossy(&all[offset as usize..][..length as usize]).into_owned();
    lengths.iter().zip(&offsets).map(of).collect()
}

/// Ranks that are threads of one process: a cluster without MPI, to test with and to count messages.
#[derive(Debug)]
pub struct ThreadRanks<'b> {
    rank: usize,
    board: &'b Board,
}

/// What [`ThreadRanks`] share.
#[derive(Debug)]
pub struct Board {
    all_here: Barrier,
    /// What each rank has put up for the others.
    pieces: Vec<Mutex<Vec<u8>>>,
    /// Per rank, where its pieces for the ranks begin and how long they are.
    tables: Vec<Mutex<Vec<(i32, i32)>>>,
}

impl Board {
    /// A board for `size` ranks.
    pub fn new(size: usize) -> Self {
        Self {
            all_here: Barrier::new(size),
            pieces: (0..size).map(|_| Mutex::default()).collect(),
            tables: (0..size).map(|_| Mutex::default()).collect(),
        }
    }
}

impl<'b> ThreadRanks<'b> {
    /// Runs `work` as each of `size` ranks, each on a thread of its own; gives what they return, in the order of ranks.
    ///
    /// # Panics
    /// Where `work` panics on a rank after the others have met it for the last time.
    pub fn run<T: Send>(size: usize, work: impl Fn(&ThreadRanks<'_>) -> T + Sync) -> Vec<T> {
        let board = Board::new(size);
        let (board, work) = (&board, &work);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..size).map(|rank| scope.spawn(move || work(&ThreadRanks { rank, board }))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    }

    /// Puts `bytes` up, lets all ranks look at what the others put up, and takes it down.
    fn exchange(&self, bytes: &[u8], table: impl Iterator<Item = (i32, i32)>, mut look: impl FnMut(usize, &[u8], &[(i32, i32)])) {
        {
            let mut piece = self.board.pieces[self.rank].lock().unwrap_or_else(PoisonError::into_inner);
            piece.clear();
            piece.extend_from_slice(bytes);
            let mut own = self.board.tables[self.rank].lock().unwrap_or_else(PoisonError::into_inner);
            own.clear();
            own.extend(table);
        }
        self.board.all_here.wait();
        for from in 0..self.size() {
            let piece = self.board.pieces[from].lock().unwrap_or_else(PoisonError::into_inner);
            let table = self.board.tables[from].lock().unwrap_or_else(PoisonError::into_inner);
            look(from, &piece, &table);
        }
        self.board.all_here.wait();
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
        self.board.all_here.wait();
    }

    fn all_gather(&self, own: &[u8], all: &mut [u8]) {
        self.exchange(own, std::iter::empty(), |from, piece, _| all[from * own.len()..][..own.len()].copy_from_slice(piece));
    }

    fn all_gather_varying(&self, own: &[u8], all: &mut [u8], lengths: &[i32], offsets: &[i32]) {
        self.exchange(own, std::iter::empty(), |from, piece, _| {
            all[offsets[from] as usize..][..lengths[from] as usize].copy_from_slice(piece);
        });
    }

    fn all_to_all(&self, own: Messages<'_>, all: &mut [u8], expected: &[i32], places: &[i32]) {
        let table = own.offsets.iter().copied().zip(own.lengths.iter().copied());
        self.exchange(own.bytes, table, |from, pieces, table| {
            let (offset, length) = table[self.rank];
            assert_eq!(length, expected[from], "a rank sends another number of bytes than it announced");
            all[places[from] as usize..][..length as usize].copy_from_slice(&pieces[offset as usize..][..length as usize]);
        });
    }

    fn broadcast(&self, from: usize, bytes: &mut [u8]) {
        let own = if self.rank == from { bytes.to_vec() } else { Vec::new() };
        self.exchange(&own, std::iter::empty(), |rank, piece, _| {
            if rank == from {
                bytes.copy_from_slice(piece);
            }
        });
    }
}
