//! The plain scheme of Sunway 2021 (section 4, algorithms 2 to 5), for comparison: every rank expands its own frontier and sends each
//! neighbour, with its parent, to the rank that owns the neighbour.
//!
//! A rank processes its frontier in batches that fit a local memory. It sorts a batch first (algorithm 5), so that offsets and lists are
//! read in the order in which they lie in memory. All levels are top-down, since a rank knows the state of its own vertices only.

use std::time::Instant;

use super::{
    ClusterError, ClusterOptions, LevelTraffic,
    part::Part,
    ranks::{Messages, Ranks},
};
use socbfs::{
    bfs::{Direction, Engine, LevelPlan, LevelStats, LevelWork},
    graph::{NONE, Vertex},
    memory::{self, Slab},
};

/// Bytes of a pair: the vertex as a row of its owner, and the original number of its parent.
const PAIR: usize = 8;

/// Bytes of a bitmap of a rank's rows; the same number on every rank.
fn reached_bytes(part: &Part) -> usize {
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
    pub(super) parent: Slab<Vertex>,
    /// Rows of the frontier, and of the next one.
    frontier: Slab<Vertex>,
    next: Slab<Vertex>,
    len: usize,
    /// Number of this rank's rows on the deepest level that is not empty.
    deepest: usize,
    /// The current batch.
    held: Slab<Vertex>,
    outgoing: Slab<u8>,
    incoming: Slab<u8>,
    /// A bit for each row that was reached: of this rank, and of all ranks.
    bits: Slab<u8>,
    all_bits: Slab<u8>,
    /// By rank: bytes to send and where they begin; bytes that arrive and where they begin.
    out_lengths: Vec<i32>,
    out_offsets: Vec<i32>,
    in_lengths: Vec<i32>,
    in_offsets: Vec<i32>,
    announced: Vec<u8>,
    table: Vec<u8>,
    level: u32,
    /// Whether the root is a leaf. Its arc is not among those that are searched.
    root_is_leaf: bool,
    frontier_vertices: u64,
    frontier_edges: u64,
    /// Whether `frontier_edges` is an estimate, and whether that of an earlier level was: only the root's degree may be.
    edges_are_estimated: bool,
    expanded_are_estimated: bool,
    previous_frontier: u64,
    unvisited: u64,
    unexplored: u64,
    pub(super) traffic: Vec<LevelTraffic>,
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
            held: Slab::zeroed(options.batch.clamp(1, rows.max(1)), "frontier queue")?,
            // A root that is a leaf sends one pair more.
            outgoing: Slab::zeroed(bytes + PAIR, "messages")?,
            incoming: Slab::zeroed(bytes + PAIR, "messages")?,
            bits: Slab::zeroed(reached_bytes(part), "bitmaps")?,
            all_bits: Slab::zeroed(reached_bytes(part) * size, "bitmaps")?,
            out_lengths: vec![0; size],
            out_offsets: vec![0; size],
            in_lengths: vec![0; size],
            in_offsets: vec![0; size],
            announced: vec![0; 4 * size],
            table: vec![0; 4 * size * size.max(4)],
            level: 0,
            root_is_leaf: false,
            frontier_vertices: 0,
            frontier_edges: 0,
            edges_are_estimated: false,
            expanded_are_estimated: false,
            previous_frontier: 0,
            unvisited: 0,
            unexplored: 0,
            traffic: Vec::with_capacity(4096),
        })
    }

    pub(super) fn begin_isolated(&mut self) {
        self.parent.fill(NONE);
        (self.len, self.deepest) = (0, 0);
        self.traffic.clear();
    }

    /// Gives each leaf its parent if that parent was reached. Each rank first sends all others a bit for each row: whether it was reached.
    pub(super) fn finish(&mut self) {
        let part = self.part;
        self.bits.fill(0);
        for (row, &parent) in self.parent.iter().enumerate() {
            self.bits[row / 8] |= u8::from(parent != NONE) << (row % 8);
        }
        self.ranks.all_gather(&self.bits, &mut self.all_bits);
        for &[row, neighbour, original] in part.leaves.iter() {
            let at = part.deal.owner(neighbour) * self.bits.len() + (part.deal.row(neighbour) / 8) as usize;
            let parent = &mut self.parent[row as usize];
            if *parent == NONE && self.all_bits[at] >> (neighbour % 8) & 1 == 1 {
                *parent = original;
            }
        }
    }

    /// Rows of this rank on the deepest level that is not empty.
    pub(super) fn deepest(&self) -> &[Vertex] {
        &self.frontier[..self.deepest]
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
                let parent = part.original(part.deal.vertex(row)).to_le_bytes();
                for &target in part.lists.neighbours(row) {
                    let offset = &mut self.out_offsets[part.deal.owner(target)];
                    let pair = &mut self.outgoing[*offset as usize..][..PAIR];
                    pair[..4].copy_from_slice(&part.deal.row(target).to_le_bytes());
                    pair[4..].copy_from_slice(&parent);
                    *offset += PAIR as i32;
                }
            }
        }
        for (offset, &length) in self.out_offsets.iter_mut().zip(&self.out_lengths) {
            *offset -= length;
        }
    }
}

impl<R: Ranks> Engine for PairsEngine<'_, R> {
    type Error = ClusterError;

    fn begin(&mut self, root: Vertex) -> Result<u64, ClusterError> {
        self.parent.fill(NONE);
        self.traffic.clear();
        (self.level, self.frontier_vertices, self.previous_frontier, self.len) = (0, 1, 0, 0);
        let part = self.part;
        self.root_is_leaf = part.unsearched[(root >> 6) as usize] >> (root & 63) & 1 == 1;
        (self.frontier_edges, self.edges_are_estimated) =
            if self.root_is_leaf { (1, false) } else { (part.degree_like(root), Part::is_estimated(root)) };
        self.expanded_are_estimated = false;
        self.unvisited = part.counts().searched - u64::from(!self.root_is_leaf);
        self.unexplored = part.counts().arcs.iter().sum();
        if part.deal.owns(root) {
            let row = part.deal.row(root);
            self.parent[row as usize] = part.original(root);
            self.frontier[0] = row;
            self.len = 1;
        }
        self.deepest = self.len;
        Ok(0)
    }

    fn stats(&mut self) -> LevelStats {
        let counts = self.part.counts();
        LevelStats {
            level: self.level,
            vertices: counts.searched,
            arcs: counts.arcs.iter().sum(),
            frontier_vertices: self.frontier_vertices,
            frontier_edges: self.frontier_edges,
            frontier_is_estimated: self.edges_are_estimated,
            unvisited_vertices: self.unvisited,
            unvisited_edges: self.unexplored.saturating_sub(self.frontier_edges),
            unvisited_is_estimated: self.edges_are_estimated || self.expanded_are_estimated,
            previous_frontier_vertices: self.previous_frontier,
            previous_direction: (self.level > 0).then_some(Direction::TopDown),
            hub_share: self.part.hub_share,
            ..LevelStats::default()
        }
    }

    fn sample(&mut self) -> Result<Option<f32>, ClusterError> {
        Ok(None)
    }

    fn sample_hubs(&mut self) -> Result<Option<f32>, ClusterError> {
        Ok(None)
    }

    fn run(&mut self, _: LevelPlan) -> Result<LevelWork, ClusterError> {
        let begin = Instant::now();
        let (part, size, vertices) = (self.part, self.part.deal.ranks, self.part.vertices());
        let is_leaf = |row: Vertex| part.lists.degree(row) == 0;
        // A leaf has no list here. If the root is a leaf, its neighbour is sent as a pair.
        let leaf = (self.level == 0 && self.len == 1 && is_leaf(self.frontier[0])).then(|| self.frontier[0]);
        let neighbour = leaf.and_then(|row| part.neighbour_of_leaf(row));
        self.place();
        if let (Some(row), Some(neighbour)) = (leaf, neighbour) {
            let to = part.deal.owner(neighbour);
            self.out_lengths.fill(0);
            self.out_offsets.fill(0);
            self.out_lengths[to] = PAIR as i32;
            self.outgoing[..4].copy_from_slice(&part.deal.row(neighbour).to_le_bytes());
            self.outgoing[4..PAIR].copy_from_slice(&part.original(part.deal.vertex(row)).to_le_bytes());
        } else {
            self.fill();
        }
        for (bytes, length) in self.announced.chunks_exact_mut(4).zip(&self.out_lengths) {
            bytes.copy_from_slice(&length.to_le_bytes());
        }
        let computed = Instant::now();
        self.ranks.all_gather(&self.announced, &mut self.table[..4 * size * size]);
        let announced = |from: usize, to: usize| {
            let at = 4 * (from * size + to);
            i32::from_le_bytes(std::array::from_fn(|i| self.table[at + i]))
        };
        let (mut at, mut received) = (0, 0);
        for rank in 0..size {
            let length = announced(rank, part.deal.rank);
            let is_possible = usize::try_from(length).is_ok_and(|length| length % PAIR == 0 && length <= self.incoming.len() - at as usize);
            if !is_possible {
                return Err(ClusterError::Message { rank });
            }
            (self.in_lengths[rank], self.in_offsets[rank]) = (length, at);
            at += length;
            received += if rank == part.deal.rank { 0 } else { length as u64 };
        }
        let sent: u64 = (0..size).filter(|&rank| rank != part.deal.rank).map(|rank| self.out_lengths[rank] as u64).sum();
        let messages = Messages { bytes: &self.outgoing, lengths: &self.out_lengths, offsets: &self.out_offsets };
        self.ranks.all_to_all(messages, &mut self.incoming, &self.in_lengths, &self.in_offsets);
        let arrived = Instant::now();

        let (mut found, mut edges) = (0, 0);
        for rank in 0..size {
            let (begin, length) = (self.in_offsets[rank] as usize, self.in_lengths[rank] as usize);
            for pair in self.incoming[begin..begin + length].chunks_exact(PAIR) {
                let [row, parent] = [0, 4].map(|at| u32::from_le_bytes(std::array::from_fn(|i| pair[at + i])));
                let own = self.parent.get_mut(row as usize);
                // The last word may have rows that no vertex has.
                let own = own.filter(|_| (parent as usize) < vertices && (part.deal.vertex(row) as usize) < vertices);
                let own = own.ok_or(ClusterError::Message { rank })?;
                if *own == NONE {
                    *own = parent;
                    self.next[found] = row;
                    found += 1;
                    edges += u64::from(part.lists.degree(row));
                }
            }
        }
        // What this rank found, and the arcs that leave that.
        let mut own = [0; 16];
        own[..8].copy_from_slice(&(found as u64).to_le_bytes());
        own[8..].copy_from_slice(&edges.to_le_bytes());
        self.ranks.all_gather(&own, &mut self.table[..16 * size]);
        let number = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|i| bytes[i]));
        let of_ranks = || self.table[..16 * size].chunks_exact(16);
        let all = of_ranks().map(|bytes| number(&bytes[..8])).fold(0, u64::wrapping_add);
        let all_edges = of_ranks().map(|bytes| number(&bytes[8..])).fold(0, u64::wrapping_add);
        if self.level > 0 || !self.root_is_leaf {
            self.unexplored = self.unexplored.saturating_sub(self.frontier_edges);
            self.expanded_are_estimated |= self.edges_are_estimated;
        }
        (self.frontier_edges, self.edges_are_estimated) = (all_edges, false);
        self.unvisited = self.unvisited.saturating_sub(all);
        self.previous_frontier = self.frontier_vertices;
        if all > 0 {
            std::mem::swap(&mut self.frontier, &mut self.next);
            self.deepest = found;
        }
        self.len = found;
        self.level += 1;
        self.frontier_vertices = all;
        let elapsed = |from: Instant, to: Instant| to.duration_since(from).as_nanos() as u64;
        let header = (size - 1) as u64 * (4 * size as u64 + 16);
        let traffic = LevelTraffic {
            received: received + header,
            sent: sent + header,
            messages: 3,
            wait_ns: elapsed(computed, arrived),
            compute_ns: elapsed(begin, computed),
        };
        if self.traffic.len() < 4096 {
            self.traffic.push(traffic);
        } else if let Some(last) = self.traffic.last_mut() {
            last.add(traffic);
        }
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
        policy::Policy,
    };

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
