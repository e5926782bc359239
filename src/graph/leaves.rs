//! Vertices with a single edge, which an undirected search can leave out.
//!
//! A leaf has one possible parent, its *host*, and is reached if and only if its host is. So the searched structure holds neither the
//! leaves nor the arcs to them; the parents of the leaves are written when the search is over. (On a Kronecker graph of scale 20, one round
//! removes 99.7 % of the vertices that repeated rounds would remove.)

use rayon::prelude::*;

use super::{Csr, GraphError, NONE, Vertex};
use crate::memory::Slab;

/// The leaves of a layout.
#[derive(Debug, Default)]
pub struct Leaves {
    /// Internal numbers of the hosts, in ascending order.
    hosts: Slab<Vertex>,
    /// Bitmap of the hosts by internal number, and for each word the number of hosts before it; both empty without hosts.
    bits: Slab<u64>,
    before: Slab<u32>,
    /// The leaves of the i-th host are `of[first[i]..first[i + 1]]`; empty without hosts.
    first: Slab<u32>,
    /// Original numbers of the leaves.
    of: Slab<Vertex>,
    /// The host of every leaf, in the order of the leaves' original numbers: its internal number, and its original number.
    host_of: Slab<Vertex>,
    name_of: Slab<Vertex>,
    /// Leaves that are each other's only neighbour: for each such leaf the pair of the leaf and its neighbour (original numbers), sorted.
    pairs: Slab<[Vertex; 2]>,
}

impl Leaves {
    /// Removes the leaves from `csr`, whose rows from `core` on are the vertices with one arc, in the order of their original numbers.
    /// `to_original` maps rows to original numbers. `place` maps original vertices to rows; the entry of a leaf becomes a place of its own
    /// past the padding (see [`first_place`]), or [`NONE`] if its neighbour is a leaf as well.
    ///
    /// The lists of the other rows must no longer contain these rows.
    pub(super) fn take_off(csr: &mut Csr, core: usize, to_original: &mut Slab<Vertex>, place: &mut [Vertex]) -> Result<Self, GraphError> {
        let core_arcs = csr.offsets[core] as usize;
        // The searches rely on it that every leaf gets a place.
        if csr.targets.len() - core_arcs != to_original.len() - core {
            return Err(GraphError::EdgesChanged);
        }
        let mut keys: Slab<u64> = Slab::zeroed(to_original.len() - core, "leaves")?;
        keys.par_iter_mut()
            .zip(&csr.targets[core_arcs..])
            .zip(&to_original[core..])
            .for_each(|((key, &neighbour), &leaf)| *key = u64::from(neighbour) << 32 | u64::from(leaf));
        keys.par_sort_unstable();
        let hanging = keys.partition_point(|&key| (key >> 32) < core as u64);
        let (keys, paired) = keys.split_at(hanging);
        let mut pairs: Slab<[Vertex; 2]> = Slab::zeroed(paired.len(), "leaves")?;
        for (pair, &key) in pairs.iter_mut().zip(paired) {
            *pair = [key as Vertex, to_original[(key >> 32) as usize]];
        }
        pairs.sort_unstable();
        let count = keys.chunk_by(|a, b| a >> 32 == b >> 32).count();
        let what = "leaves";
        let words = if count == 0 { 0 } else { core.div_ceil(64) };
        let mut leaves = Self {
            hosts: Slab::zeroed(count, what)?,
            bits: Slab::zeroed(words, what)?,
            before: Slab::zeroed(words, what)?,
            first: Slab::zeroed(if count == 0 { 0 } else { count + 1 }, what)?,
            of: Slab::zeroed(keys.len(), what)?,
            host_of: Slab::zeroed(keys.len(), what)?,
            name_of: Slab::zeroed(keys.len(), what)?,
            pairs,
        };
        // Slots follow the order of the input, in which parents are read when they are mapped back.
        let past = first_place(core);
        let rows = csr.targets[core_arcs..].iter().zip(&to_original[core..]).filter(|&(&host, _)| (host as usize) < core);
        for (slot, (&host, &leaf)) in rows.enumerate() {
            (leaves.host_of[slot], leaves.name_of[slot]) = (host, to_original[host as usize]);
            place[leaf as usize] = (past + slot) as Vertex;
        }
        let mut end = 0;
        for (index, of_host) in keys.chunk_by(|a, b| a >> 32 == b >> 32).enumerate() {
            let host = (of_host[0] >> 32) as Vertex;
            leaves.hosts[index] = host;
            leaves.bits[host as usize / 64] |= 1 << (host % 64);
            for &key in of_host {
                leaves.of[end] = key as Vertex;
                end += 1;
            }
            leaves.first[index + 1] = end as u32;
        }
        let mut before = 0;
        for (entry, bits) in leaves.before.iter_mut().zip(&leaves.bits[..]) {
            *entry = before;
            before += bits.count_ones();
        }
        for &[leaf, _] in &leaves.pairs[..] {
            place[leaf as usize] = NONE;
        }
        csr.offsets.truncate(core + 1);
        csr.targets.truncate(core_arcs);
        to_original.truncate(core);
        Ok(leaves)
    }

    /// The hosts as internal numbers, in ascending order.
    pub fn hosts(&self) -> &[Vertex] {
        &self.hosts
    }

    /// The host of every leaf as an internal number, in the order of the leaves' original numbers.
    pub fn host_of(&self) -> &[Vertex] {
        &self.host_of
    }

    /// The host of every leaf as an original number, in the order of the leaves' original numbers.
    pub(crate) fn name_of(&self) -> &[Vertex] {
        &self.name_of
    }

    /// The leaves of the `index`-th host, as original numbers.
    pub fn of(&self, index: usize) -> &[Vertex] {
        &self.of[self.first[index] as usize..self.first[index + 1] as usize]
    }

    /// Bitmap of the hosts, a word for every 64 internal numbers; empty without hosts.
    pub(crate) fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// Index of the host whose bit is `lowest` in `word`; it must be set in [`bits`](Self::bits).
    #[inline]
    pub(crate) fn index_at(&self, word: usize, lowest: u64) -> usize {
        (self.before[word] + (self.bits[word] & (lowest - 1)).count_ones()) as usize
    }

    /// Whether `v`, an internal number, is a host.
    #[inline]
    pub fn is_host(&self, v: Vertex) -> bool {
        self.bits.get(v as usize / 64).is_some_and(|bits| bits >> (v % 64) & 1 == 1)
    }

    /// Index of the host `v`, an internal number (`None`: it is not a host).
    #[inline]
    pub fn index_of(&self, v: Vertex) -> Option<usize> {
        let (word, bit) = (v as usize / 64, 1 << (v % 64));
        self.bits.get(word).is_some_and(|bits| bits & bit != 0).then(|| self.index_at(word, bit))
    }

    /// The leaves of `host`, an internal number.
    pub fn of_host(&self, host: Vertex) -> &[Vertex] {
        self.index_of(host).map_or(&[], |index| self.of(index))
    }

    /// Leaves that are each other's only neighbour, each with that neighbour; sorted original numbers.
    pub fn pairs(&self) -> &[[Vertex; 2]] {
        &self.pairs
    }

    /// The only neighbour of `leaf` if that is a leaf as well; original numbers.
    pub(super) fn paired_with(&self, leaf: Vertex) -> Option<Vertex> {
        self.pairs.binary_search_by_key(&leaf, |&[leaf, _]| leaf).ok().map(|at| self.pairs[at][1])
    }

    /// Number of leaves.
    pub(super) fn count(&self) -> usize {
        self.of.len() + self.pairs.len()
    }

    /// Number of edges that have a leaf at an end.
    pub(super) fn edges(&self) -> u64 {
        (self.of.len() + self.pairs.len() / 2) as u64
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.hosts.bytes()
            + self.bits.bytes()
            + self.before.bytes()
            + self.first.bytes()
            + self.of.bytes()
            + self.host_of.bytes()
            + self.name_of.bytes()
            + self.pairs.bytes()
    }
}

/// The place of the first leaf in a layout of `vertices` rows: after the padding, "no neighbour", and dropped vertices.
pub(super) fn first_place(vertices: usize) -> usize {
    vertices.next_multiple_of(64) + 2
}
