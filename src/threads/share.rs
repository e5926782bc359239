//! The distribution of a level's work over the threads of the team.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use crossbeam_utils::CachePadded;

use super::Team;
use crate::memory::{Pod, Slab};

/// One buffer per thread.
pub struct SharedBuffers<'a, T: Pod>(pub &'a [Slab<T>]);

impl<T: Pod> SharedBuffers<'_, T> {
    /// # Safety
    /// Only thread `thread` requests buffer `thread`, and not while it still holds it.
    #[allow(clippy::mut_from_ref, reason = "each buffer has one user (see Safety)")]
    pub unsafe fn of(&self, thread: usize) -> &mut [T] {
        let slab = &self.0[thread];
        // SAFETY: the memory belongs to the slab, and the caller is its only user.
        unsafe { std::slice::from_raw_parts_mut(slab.shared().get(), slab.len()) }
    }
}

/// Hands `0..len` out to the team in pieces of at most `most`, or to the caller if it works `alone`. Towards the end the pieces of a team
/// become smaller, down to an eighth of `most`, so that no thread waits long for a slow or late one.
pub fn share(team: &Team, len: usize, most: usize, alone: bool, work: &(dyn Fn(usize, Range<usize>) + Sync)) {
    share_and_sum(team, len, most, alone, &|thread, range| {
        work(thread, range);
        [0; 2]
    });
}

/// As [`share`], for work that returns counts. Returns their sums, and the number of threads that took part. (Each thread adds up its own
/// counts: adding every piece to a shared sum would move a cache line between cores for each piece.)
pub fn share_and_sum(
    team: &Team,
    len: usize,
    most: usize,
    alone: bool,
    work: &(dyn Fn(usize, Range<usize>) -> [u64; 2] + Sync),
) -> ([u64; 2], u32) {
    if alone {
        // Small levels: no atomics.
        let mut sums = [0; 2];
        for begin in (0..len).step_by(most) {
            let [first, second] = work(0, begin..len.min(begin + most));
            sums = [sums[0] + first, sums[1] + second];
        }
        return (sums, u32::from(len > 0));
    }
    let pieces = Pieces::new(len, most, team.size());
    let joint = CachePadded::new(([AtomicU64::new(0), AtomicU64::new(0)], AtomicU32::new(0)));
    let run = |thread: usize| {
        let (mut sums, mut worked) = ([0; 2], false);
        while let Some(piece) = pieces.next(thread) {
            let [first, second] = work(thread, piece);
            sums = [sums[0] + first, sums[1] + second];
            worked = true;
        }
        if worked {
            joint.0.iter().zip(sums).for_each(|(joint, sum)| _ = joint.fetch_add(sum, Relaxed));
            joint.1.fetch_add(1, Relaxed);
        }
    };
    team.run(&run);
    let ([first, second], worked) = joint.into_inner();
    // A late helper may enter twice, and is then counted twice.
    ([first.into_inner(), second.into_inner()], worked.into_inner().min(team.size() as u32))
}

/// Bits of a count of units.
const HALF: u32 = 32;

/// `0..len`, handed out piece by piece to several threads: to the caller and every second helper from the front, to the others from the
/// back. So each of two threads keeps to its end at all levels of a search, and finds in its own cache what it wrote before.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// Units handed out at the front, and above [`HALF`] bits at the back, on a cache line that holds nothing else: every thread writes it.
    /// In the end they add up to more than there are, by some pieces of each thread.
    taken: CachePadded<AtomicU64>,
    len: usize,
    /// All units.
    units: u64,
    /// The least size of a piece: a unit. Pieces begin at multiples of it, so at cache lines if as many entries fill whole lines.
    least: usize,
    /// The most units of a piece.
    most: u64,
    threads: usize,
}

impl Pieces {
    pub(crate) fn new(len: usize, most: usize, threads: usize) -> Self {
        // So few units that neither half overflows.
        let least = if threads == 1 { most } else { most / 8 }.max((len >> (HALF - 1)) + 1);
        Self { taken: CachePadded::default(), len, units: len.div_ceil(least) as u64, least, most: (most / least).max(1) as u64, threads }
    }

    /// Returns the next piece for `thread`; each piece is handed out once.
    #[inline]
    pub(crate) fn next(&self, thread: usize) -> Option<Range<usize>> {
        self.take(thread, (self.left(self.taken.load(Relaxed)) / (4 * self.threads as u64)).clamp(1, self.most))
    }

    /// Takes `size` units, or as many as are left: others may have taken some since the caller has chosen the size.
    fn take(&self, thread: usize, size: u64) -> Option<Range<usize>> {
        let at_back = thread % 2 == 1;
        let taken = self.taken.fetch_add(if at_back { size << HALF } else { size }, Relaxed);
        let size = size.min(self.left(taken));
        let begin = taken % (1 << HALF) + if at_back { self.left(taken) - size } else { 0 };
        (size > 0).then(|| begin as usize * self.least..self.len.min((begin + size) as usize * self.least))
    }

    /// Units that are left.
    fn left(&self, taken: u64) -> u64 {
        self.units.saturating_sub(taken % (1 << HALF) + (taken >> HALF))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_everything_once_and_become_smaller() {
        for len in [0, 1, 63, 64, 1000, 100_001] {
            // The thread that takes each piece: the first, the second, or both, of which the second is three times as fast.
            for (threads, turn) in [(1, [0; 4]), (2, [0; 4]), (2, [1; 4]), (2, [1, 1, 0, 1]), (8, [0; 4]), (8, [3, 3, 2, 3])] {
                let pieces = Pieces::new(len, 64, threads);
                let mut parts = [(0..0), (len..len)];
                let mut sizes = Vec::new();
                for thread in turn.into_iter().cycle() {
                    let Some(piece) = pieces.next(thread) else { break };
                    sizes.push(piece.len());
                    match thread % 2 {
                        0 => assert_eq!(std::mem::replace(&mut parts[0].end, piece.end), piece.start),
                        _ => assert_eq!(std::mem::replace(&mut parts[1].start, piece.start), piece.end),
                    }
                }
                assert!(parts[0].end == parts[1].start && (0..9).all(|thread| pieces.next(thread).is_none()));
                assert!(sizes.iter().all(|&size| size <= 64), "{sizes:?}");
                if len == 100_001 {
                    // The end of the range is not a whole unit.
                    let whole = sizes.iter().filter(|&&size| size % 8 == 0).copied().collect::<Vec<_>>();
                    assert!(whole.len() + 1 >= sizes.len() && whole.is_sorted_by(|one, next| one >= next), "{sizes:?}");
                    assert_eq!((whole[0], whole.last()), (64, Some(&if threads == 1 { 64 } else { 8 })), "{threads} threads");
                    let at_back = parts[1].len() as f64 / len as f64;
                    assert!((at_back - turn.iter().filter(|&&thread| thread % 2 == 1).count() as f64 / 4.0).abs() < 0.01, "{at_back}");
                }
            }
        }
    }

    #[test]
    fn no_more_is_taken_than_is_left() {
        for (len, first) in [(10, 7), (64, 57), (100, 0), (100, 99), (1, 0), (1, 1)] {
            for turn in [[0, 0], [1, 1], [0, 1], [1, 0]] {
                // Units of one.
                let pieces = Pieces::new(len, 8, 2);
                let taken = turn.map(|thread| pieces.take(thread, first)).into_iter().flatten();
                let mut all: Vec<_> = taken.chain(pieces.take(turn[1], 200)).flatten().collect();
                all.sort_unstable();
                assert_eq!(all, (0..len).collect::<Vec<_>>());
                assert!(pieces.take(0, 1).is_none() && pieces.take(1, 1).is_none());
            }
        }
    }

    /// Cores of different speeds take pieces at their own pace. The clock is simulated: the core that is free first takes the next piece,
    /// and each word takes it 1 / speed. (The speeds are the `capacity` values that the kernels of the Odroid-XU4 and of a Snapdragon
    /// report.)
    #[test]
    fn big_and_little_cores_finish_at_about_the_same_time() {
        for speeds in [&[1.0; 8][..], &[1.0, 1.0, 1.0, 1.0, 0.35, 0.35, 0.35, 0.35], &[1.0, 0.8, 0.8, 0.8, 0.3, 0.3, 0.3, 0.3], &[1.0, 1.0]]
        {
            // Words of 2^16 vertices, of Kronecker 20 without its leaves, and of 2^21.
            for (words, most) in [(1 << 10, 1.09), (7907, 1.01), (1 << 15, 1.005)] {
                let pieces = Pieces::new(words, 64, speeds.len());
                let mut free = vec![0.0; speeds.len()];
                let first = |free: &[f64]| (0..free.len()).min_by(|&a, &b| free[a].total_cmp(&free[b])).unwrap();
                let mut core = first(&free);
                while let Some(piece) = pieces.next(core) {
                    free[core] += piece.len() as f64 / speeds[core];
                    core = first(&free);
                }
                let ideal = words as f64 / speeds.iter().sum::<f64>();
                let over = free.iter().copied().fold(0.0, f64::max) / ideal;
                assert!(over <= most, "{speeds:?}, {words} words: {over} of the least time");
            }
        }
    }

    #[test]
    fn sums_include_all_pieces() {
        for size in [1, 2, 5] {
            let team = Team::new(size, &[]).unwrap();
            for alone in [false, true] {
                let (sums, threads) =
                    share_and_sum(&team, 10_000, 16, alone, &|_, range| [range.len() as u64, range.map(|i| i as u64).sum()]);
                assert_eq!(sums, [10_000, 10_000 * 9_999 / 2]);
                assert!((1..=if alone { 1 } else { size as u32 }).contains(&threads));
            }
            assert_eq!(share_and_sum(&team, 0, 16, false, &|_, _| [1, 1]), ([0, 0], 0));
        }
    }
}
