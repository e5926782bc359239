//! The plain scheme of Sunway 2021 (section 4, algorithms 2 to 5), for comparison: every rank expands its own frontier and sends each
//! neighbour, with its parent, to the rank that owns the neighbour.
//!
//! A rank processes its frontier in batches that fit a local memory. It sorts a batch first (algorithm 5), so that offsets and lists are
//! read in the order in which they lie in memory. All levels are top-down, since a rank knows the state of its own vertices only.

use std::time::Instant;

use bytemuck::{cast_slice, cast_slice_mut};

use super::{
    ClusterError, ClusterOptions, LevelTraffic,
    part::Part,
    ranks::{Messages, Ranks},
    runner::{Halt, Runner, advance},
};
use socbfs::{
    bfs::{Engine, LevelPlan, LevelStats, LevelWork},
    graph::{NONE, Vertex},
    memory::{self, Slab},
};

/// Bytes of a pair: the vertex as a row of its owner, and the original number of its parent.
const PAIR: usize = 8;

/// Bytes of a bitmap of a rank's rows; the same number on every rank.
fn row_bytes(part: &Part) -> usize {
    8 * part.words.div_ceil(part.deal.ranks)
}

/// Runs levels on one rank by exchanging pairs.
#[derive(Debug)]
pub(super) struct PairsEngine<'p, R: Ranks> {
    part: &'p Part,
    ranks: &'p R,
    batch: usize,
    sorted: bool,
    /// Parents by row, in original numbers.
    parent: Slab<Vertex>,
    /// Rows of the frontier, and of the next one.
    frontier: Slab<Vertex>,
    next: Slab<Vertex>,
    len: usize,
    /// Number of this rank's rows on the deepest level that is not empty.
    deepest: usize,
    /// Number of neighbours of leaves that are sources, at the beginning of `next`: level 0 finds them.
    joining: usize,
    /// The current batch.
    held: Slab<Vertex>,
    outgoing: Slab<[Vertex; 2]>,
    incoming: Slab<[Vertex; 2]>,
    /// A bit for each row of some kind: of this rank, and of all ranks.
    bits: Slab<u8>,
    all_bits: Slab<u8>,
    /// A bit for each vertex that is a source or is not searched.
    entered: Slab<u64>,
    /// Room for the exchange of the neighbours of leaves that are sources.
    leaves: Slab<Vertex>,
    /// What that exchange took in the current search, until it is added to level 0.
    begun: LevelTraffic,
    /// By rank: bytes to send and where they begin; bytes that arrive and where they begin.
    out_lengths: Vec<i32>,
    out_offsets: Vec<i32>,
    in_lengths: Vec<i32>,
    in_offsets: Vec<i32>,
    /// The `out_lengths` of all ranks.
    announced: Vec<i32>,
    /// Vertices that each rank found, and the arcs that leave them.
    found: Vec<[u64; 2]>,
    /// The counts before the next level, the same on every rank.
    stats: LevelStats,
    traffic: Vec<LevelTraffic>,
}

impl<'p, R: Ranks> PairsEngine<'p, R> {
    pub(super) fn new(part: &'p Part, ranks: &'p R, options: &ClusterOptions) -> Result<Self, ClusterError> {
        let rows = part.lists.vertices();
        let size = part.deal.ranks;
        // One level may send a pair for every arc of this rank, and receive one for every arc to its rows.
        let bytes = part.lists.arcs() * PAIR;
        if bytes > i32::MAX as usize {
            return Err(ClusterError::TooManyPairs { arcs: part.lists.arcs() as u64 });
        }
        memory::check_available(2 * bytes as u64, "pairs that are exchanged").map_err(socbfs::graph::GraphError::from)?;
        Ok(Self {
            part,
            ranks,
            batch: options.batch.max(1),
            sorted: options.sorted,
            parent: Slab::zeroed(rows, "parents")?,
            frontier: Slab::zeroed(rows, "frontier queue")?,
            next: Slab::zeroed(rows, "frontier queue")?,
            len: 0,
            deepest: 0,
            joining: 0,
            held: Slab::zeroed(options.batch.clamp(1, rows.max(1)), "frontier queue")?,
            outgoing: Slab::zeroed(part.lists.arcs(), "messages")?,
            incoming: Slab::zeroed(part.lists.arcs(), "messages")?,
            bits: Slab::zeroed(row_bytes(part), "bitmaps")?,
            all_bits: Slab::zeroed(row_bytes(part) * size, "bitmaps")?,
            entered: Slab::zeroed(part.unsearched.len(), "bitmaps")?,
            leaves: part.room_for_leaves()?,
            begun: LevelTraffic::default(),
            out_lengths: vec![0; size],
            out_offsets: vec![0; size],
            in_lengths: vec![0; size],
            in_offsets: vec![0; size],
            announced: vec![0; size * size],
            found: vec![[0; 2]; size],
            stats: LevelStats::default(),
            traffic: Vec::with_capacity(LevelTraffic::KEPT),
        })
    }

    /// Sends all ranks the bits of this rank's rows.
    fn share_bits(&mut self) {
        self.ranks.all_gather(&self.bits, &mut self.all_bits);
    }

    /// The bit of a vertex, as its owner sent it.
    fn bit(&self, v: Vertex) -> bool {
        let at = self.part.deal.owner(v) * self.bits.len() + (self.part.deal.row(v) / 8) as usize;
        self.all_bits[at] >> (v % 8) & 1 == 1
    }

    /// Counts the pairs for each rank, and computes where each rank's pairs begin in the outgoing buffer.
    fn place(&mut self) {
        let part = self.part;
        self.out_lengths.fill(0);
        for &row in &self.frontier[..self.len] {
            for &target in part.lists.neighbours(row) {
                self.out_lengths[part.deal.owner(target)] += PAIR as i32;
            }
        }
        let mut at = 0;
        for (offset, &length) in self.out_offsets.iter_mut().zip(&self.out_lengths) {
            *offset = at;
            at += length;
        }
    }

    fn fill(&mut self) {
        let part = self.part;
        // The offsets advance while pairs are written, and are reset at the end.
        for begin in (0..self.len).step_by(self.batch) {
            let len = self.batch.min(self.len - begin);
            let held = &mut self.held[..len];
            held.copy_from_slice(&self.frontier[begin..begin + len]);
            if self.sorted {
                held.sort_unstable();
            }
            for &row in &*held {
                let parent = part.original(part.deal.vertex(row));
                for &target in part.lists.neighbours(row) {
                    let offset = &mut self.out_offsets[part.deal.owner(target)];
                    self.outgoing[*offset as usize / PAIR] = [part.deal.row(target), parent];
                    *offset += PAIR as i32;
                }
            }
        }
        for (offset, &length) in self.out_offsets.iter_mut().zip(&self.out_lengths) {
            *offset -= length;
        }
    }
}

impl<R: Ranks> Runner for PairsEngine<'_, R> {
    fn parents(&self) -> &[Vertex] {
        &self.parent
    }

    fn traffic(&self) -> &[LevelTraffic] {
        &self.traffic
    }

    fn finish(&mut self, _: &[Vertex]) -> Result<(), Halt> {
        self.bits.fill(0);
        for (row, &parent) in self.parent.iter().enumerate() {
            self.bits[row / 8] |= u8::from(parent != NONE) << (row % 8);
        }
        self.share_bits();
        for &[row, neighbour, original] in self.part.leaves.iter() {
            if self.parent[row as usize] == NONE && self.bit(neighbour) {
                self.parent[row as usize] = original;
            }
        }
        Ok(())
    }

    fn leaf_is_deepest(&mut self) -> bool {
        self.bits.fill(0);
        for &row in &self.frontier[..self.deepest] {
            self.bits[row as usize / 8] |= 1 << (row % 8);
        }
        self.share_bits();
        self.part.any_leaf(&self.parent, |neighbour| self.bit(neighbour))
    }
}

impl<R: Ranks> Engine for PairsEngine<'_, R> {
    type Error = Halt;

    fn begin(&mut self, sources: &[Vertex]) -> Result<u64, Halt> {
        let part = self.part;
        self.traffic.clear();
        let Self { parent, frontier, next, len, joining, .. } = self;
        (*len, *joining) = (0, 0);
        self.stats = part.begin(sources, &mut self.entered, |v| {
            if part.deal.owns(v) {
                frontier[*len] = part.deal.row(v);
                *len += 1;
            }
        });
        parent.fill(NONE);
        for &source in sources {
            if let Some(row) = part.own_row(source) {
                parent[row] = source;
            }
        }
        self.begun = part.neighbours_of_leaves(self.ranks, sources, &mut self.leaves, |leaf, neighbour| {
            let row = part.deal.row(neighbour);
            if part.deal.owns(neighbour) && parent[row as usize] == NONE {
                parent[row as usize] = leaf;
                next[*joining] = row;
                *joining += 1;
            }
        })?;
        self.deepest = self.len;
        Ok(0)
    }

    fn stats(&mut self) -> LevelStats {
        self.stats
    }

    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, Halt> {
        let begin = Instant::now();
        let (part, size, own) = (self.part, self.part.deal.ranks, self.part.deal.rank);
        self.place();
        self.fill();
        let computed = Instant::now();
        self.ranks.all_gather(cast_slice(&self.out_lengths), cast_slice_mut(&mut self.announced));
        let mut at = 0;
        for rank in 0..size {
            let length = self.announced[rank * size + own];
            let is_possible =
                usize::try_from(length).is_ok_and(|length| length % PAIR == 0 && length <= PAIR * self.incoming.len() - at as usize);
            if !is_possible {
                return Err(ClusterError::Message { rank }.into());
            }
            (self.in_lengths[rank], self.in_offsets[rank]) = (length, at);
            at += length;
        }
        let of_others = |lengths: &[i32]| lengths.iter().map(|&length| length as u64).sum::<u64>() - lengths[own] as u64;
        let messages = Messages { bytes: cast_slice(&self.outgoing), lengths: &self.out_lengths, offsets: &self.out_offsets };
        self.ranks.all_to_all(messages, cast_slice_mut(&mut self.incoming), &self.in_lengths, &self.in_offsets);
        let arrived = Instant::now();

        // The rows that this rank found, and the arcs that leave them.
        let mut found = std::mem::take(&mut self.joining);
        let mut edges: u64 = self.next[..found].iter().map(|&row| u64::from(part.lists.degree(row))).sum();
        for rank in 0..size {
            let (begin, length) = (self.in_offsets[rank] as usize / PAIR, self.in_lengths[rank] as usize / PAIR);
            for &[row, parent] in &self.incoming[begin..begin + length] {
                let own = self.parent.get_mut(row as usize);
                // The last word may have rows that no vertex has.
                let own = own.filter(|_| (parent as usize) < part.vertices() && (part.deal.vertex(row) as usize) < part.vertices());
                let own = own.ok_or(ClusterError::Message { rank })?;
                if *own == NONE {
                    *own = parent;
                    self.next[found] = row;
                    found += 1;
                    edges += u64::from(part.lists.degree(row));
                }
            }
        }
        self.ranks.all_gather(cast_slice(&[found as u64, edges]), cast_slice_mut(&mut self.found));
        let [all, all_edges] = self.found.iter().fold([0_u64; 2], |[all, edges], [v, e]| [all.wrapping_add(*v), edges.wrapping_add(*e)]);
        advance(&mut self.stats, plan.direction, (all, all_edges, false));
        if all > 0 {
            std::mem::swap(&mut self.frontier, &mut self.next);
            self.deepest = found;
        }
        self.len = found;
        let elapsed = |from: Instant, to: Instant| to.duration_since(from).as_nanos() as u64;
        let header = (size - 1) as u64 * (4 * size as u64 + 16);
        let mut traffic = LevelTraffic {
            received: of_others(&self.in_lengths) + header,
            sent: of_others(&self.out_lengths) + header,
            messages: 3,
            wait_ns: elapsed(computed, arrived),
            compute_ns: elapsed(begin, computed),
        };
        traffic.add(std::mem::take(&mut self.begun));
        traffic.append_to(&mut self.traffic);
        Ok(LevelWork {
            levels: 1,
            found: all,
            finished: all == 0,
            wait_ns: traffic.wait_ns,
            merge_ns: elapsed(arrived, Instant::now()),
            threads: 1,
            ..LevelWork::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ClusterSearch, Exchange, ThreadRanks,
        damaged::{Damaged, Operation},
    };
    use socbfs::{
        bfs::Strategy,
        graph::{EdgeList, Listing, Order},
    };
    use socbfs_policy::Policy;

    /// In a graph of one word every rank knows all degrees, so both exchanges have the same counts, and all are exact.
    #[test]
    fn levels_have_the_same_counts_as_with_the_other_exchange() {
        // A path of 20 vertices, each with a leaf, and an edge between two of them.
        let edges = (1..20).map(|v| [v - 1, v]).chain((0..20).map(|v| [v, 20 + v])).chain([[3, 12]]).collect();
        let list = EdgeList::new(40, edges, Listing::Once).unwrap();
        for root in [4, 25] {
            let of_ranks = ThreadRanks::run(2, |ranks| {
                let part = Part::build(&list, Order::Original, ranks).unwrap();
                [Exchange::Pairs, Exchange::Found].map(|exchange| {
                    let options = ClusterOptions { exchange, policy: Policy::Fixed(Strategy::Tc), ..ClusterOptions::default() };
                    let mut search = ClusterSearch::new(&part, ranks, &options).unwrap();
                    search.run(root).unwrap();
                    search.records().iter().map(|level| level.stats).collect::<Vec<LevelStats>>()
                })
            });
            for [pairs, found] in of_ranks {
                assert!(pairs.iter().skip(1).all(|stats| stats.frontier_edges > 0), "{pairs:?}");
                assert_eq!(pairs, found, "root {root}");
            }
        }
    }

    /// Searches a cycle of five vertices on a rank with this damage: to the announced lengths (false), or to the pairs (true).
    fn search(damage: impl Fn(bool, &mut [u8]) + Sync) -> Result<u64, ClusterError> {
        let damage = |operation: Operation, bytes: &mut [u8]| match operation {
            Operation::AllToAll => damage(true, bytes),
            // Only lengths have 4 bytes.
            Operation::AllGather if bytes.len() == 4 => damage(false, bytes),
            _ => {}
        };
        let edges = (0..5).map(|v| [v, (v + 1) % 5]).collect();
        let list = EdgeList::new(5, edges, Listing::Once).unwrap();
        let of_ranks = ThreadRanks::run(1, |ranks| {
            let part = Part::build(&list, Order::Original, ranks).unwrap();
            let ranks = Damaged { ranks, damage: &damage };
            let options = ClusterOptions { exchange: Exchange::Pairs, ..ClusterOptions::default() };
            ClusterSearch::new(&part, &ranks, &options).unwrap().run(0).map(|outcome| outcome.reached)
        });
        of_ranks.into_iter().next().unwrap()
    }

    #[test]
    fn damaged_messages_are_errors() {
        assert_eq!(search(|_, _| ()).unwrap(), 5);
        for length in [-8, 4, 1 << 20] {
            let damage = |pairs: bool, bytes: &mut [u8]| {
                if !pairs {
                    bytes[..4].copy_from_slice(&i32::to_le_bytes(length));
                }
            };
            assert!(matches!(search(damage), Err(ClusterError::Message { rank: 0 })), "length {length}");
        }
        // The row of a pair, and its parent.
        for (at, first) in [(0, 5), (4, 5)] {
            for number in [first, NONE] {
                let damage = |pairs: bool, bytes: &mut [u8]| {
                    if pairs {
                        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
                    }
                };
                assert!(matches!(search(damage), Err(ClusterError::Message { rank: 0 })), "{number} at {at}");
            }
        }
    }
}
