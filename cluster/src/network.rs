//! The speed of messages between ranks.

use std::time::Instant;

use super::ranks::{Messages, Ranks, max};

/// The connection between two ranks, measured while all other ranks send nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The two ranks.
    pub ranks: [usize; 2],
    /// Median time in which each of the two sends the other one byte, in nanoseconds.
    pub exchange_ns: u64,
    /// Bytes per second that each of the two sends the other, both at once.
    pub bytes_per_second: f64,
}

/// Bytes of a long message.
const LONG: usize = 1 << 20;
/// Number of short and of long exchanges. The first of each only warms up.
const SHORT_TURNS: usize = 15;
const LONG_TURNS: usize = 4;

/// Measures every pair of ranks in turn. All ranks call it and get the same result.
pub fn measure_links(ranks: &impl Ranks) -> Vec<Link> {
    let size = ranks.size();
    let own = vec![0x5a; LONG];
    let mut arrived = vec![0; LONG];
    let (mut lengths, places) = (vec![0; size], vec![0; size]);
    let mut links = Vec::with_capacity(size * size.saturating_sub(1) / 2);
    for first in 0..size {
        for second in first + 1..size {
            let other = match ranks.rank() {
                rank if rank == first => Some(second),
                rank if rank == second => Some(first),
                _ => None,
            };
            // All ranks take part in the call; only two of them send bytes.
            let mut median = |bytes: usize, turns: usize| {
                lengths.fill(0);
                if let Some(other) = other {
                    lengths[other] = bytes as i32;
                }
                let bytes = if other.is_some() { bytes } else { 0 };
                let mut times: Vec<u64> = (0..turns)
                    .map(|_| {
                        ranks.barrier();
                        let begin = Instant::now();
                        let messages = Messages { bytes: &own[..bytes], lengths: &lengths, offsets: &places };
                        ranks.all_to_all(messages, &mut arrived[..bytes], &lengths, &places);
                        begin.elapsed().as_nanos() as u64
                    })
                    .skip(1)
                    .collect();
                times.sort_unstable();
                let time = if other.is_some() { times[times.len() / 2] } else { 0 };
                max(ranks, time).max(1)
            };
            let exchange_ns = median(1, SHORT_TURNS);
            let long_ns = median(LONG, LONG_TURNS);
            links.push(Link { ranks: [first, second], exchange_ns, bytes_per_second: LONG as f64 / (long_ns as f64 * 1e-9) });
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadRanks;

    #[test]
    fn every_pair_is_measured_once_and_all_ranks_get_all_links() {
        let of_ranks = ThreadRanks::run(3, |ranks| measure_links(ranks));
        assert!(of_ranks.iter().all(|links| links == &of_ranks[0]));
        assert_eq!(of_ranks[0].iter().map(|link| link.ranks).collect::<Vec<_>>(), [[0, 1], [0, 2], [1, 2]]);
        assert!(of_ranks[0].iter().all(|link| link.bytes_per_second > 0.0 && link.exchange_ns > 0));
        assert!(ThreadRanks::run(1, |ranks| measure_links(ranks))[0].is_empty());
    }
}
