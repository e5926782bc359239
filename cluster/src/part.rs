//! One rank's part of a graph.

use bytemuck::{cast_slice, cast_slice_mut};
use rayon::prelude::*;

use super::{
    ClusterError, LevelTraffic,
    deal::Deal,
    edges::{Edges, Needs},
    ranks::{Ranks, add_up, all_or_none, gathered, max, sum, values},
};
use socbfs::{
    bfs::LevelStats,
    graph::{
        Columns, Csr, EdgeStream, GraphError, MAX_VERTICES, NONE, Order, Stopper, Vertex, accumulate,
        build::{Arcs, Collected, Degrees, Naming, by_degree, count_degrees, skew},
    },
    memory::{self, Slab},
    part::PartArrays,
};

/// Leaves among the sources of a search whose neighbours are exchanged at once.
const LEAVES: usize = 256;

/// The part of a graph that one rank keeps: the lists of its own vertices, the same arcs indexed by their source, and what all ranks keep
/// (the order of vertices and a few bits of each).
///
/// Vertices are numbered and ordered as in a [`Layout`](socbfs::graph::Layout), and dealt by words of 64 ([`Deal`]). *Leaves*, vertices
/// with one neighbour, are not searched: a leaf is reached exactly if its neighbour is.
#[derive(Debug, Default)]
pub struct Part {
    pub(super) deal: Deal,
    /// Vertices of the input.
    vertices: usize,
    /// Words of the bitmap of all vertices.
    pub(super) words: usize,
    order: Order,
    /// Original number by internal number; empty where they are the same.
    pub(super) to_original: Slab<Vertex>,
    /// Internal number by original number, [`NONE`] where the vertex has no edge; empty where they are the same.
    to_internal: Slab<Vertex>,
    /// Neighbours of each row of this rank.
    pub(super) lists: Csr,
    /// The same arcs by neighbour: the rows of this rank that each vertex is a neighbour of.
    pub(super) by_source: Csr,
    /// First neighbours of the rows.
    pub(super) columns: Columns,
    /// A bit for each vertex that is not searched: padding, vertices without an edge, and leaves.
    pub(super) unsearched: Slab<u64>,
    /// A bit for each internal number without an edge, padding included. In the order of degrees, vertices without an edge have no number.
    isolated: Slab<u64>,
    /// The leaves of this rank in ascending order of rows: row, neighbour, and original number of the neighbour.
    pub(super) leaves: Slab<[Vertex; 3]>,
    /// Number of listed edges that touch each row, for TEPS.
    input_degree: Slab<u32>,
    /// Mean number of neighbours of the searched vertices of each word.
    pub(super) word_degrees: Slab<u32>,
    /// Number of neighbours of each vertex of the first word, whose degrees differ most.
    pub(super) first_degrees: Slab<u32>,
    /// See [`LevelStats::hub_share`](socbfs::bfs::LevelStats::hub_share).
    pub(super) hub_share: f32,
    counts: PartCounts,
}

/// Counts of a graph that is dealt to ranks.
#[derive(Debug, Clone, Default, serde::Serialize, serde::Deserialize)]
pub struct PartCounts {
    /// Entries of the input, as listed.
    pub listed: u64,
    /// Self-loops among them.
    pub self_loops: u64,
    /// Edges for TEPS: without self-loops, repeats counted; a file that lists both directions counts each pair once.
    pub edges: u64,
    /// Vertices without an edge to another vertex.
    pub isolated: u64,
    /// Vertices with one neighbour, which are not searched.
    pub leaves: u64,
    /// Vertices that are searched.
    pub searched: u64,
    /// Arcs that are searched, by rank.
    pub arcs: Vec<u64>,
    /// Bytes that each rank holds, by rank.
    pub bytes: Vec<u64>,
    /// Bytes of data that every rank holds a copy of.
    pub replicated_bytes: u64,
    /// Largest number of distinct neighbours of a vertex.
    pub max_degree: u32,
    /// See [`LayoutStats::skew`](socbfs::graph::LayoutStats::skew).
    pub skew: f64,
    /// Whether the input lists every undirected edge in both directions.
    pub both_directions: bool,
}

impl PartCounts {
    /// The most arcs of a rank, divided by the mean over all ranks.
    pub fn imbalance(&self) -> f64 {
        let (most, sum) = (self.arcs.iter().copied().max().unwrap_or(0), self.arcs.iter().sum::<u64>());
        if sum == 0 { 1.0 } else { most as f64 * self.arcs.len() as f64 / sum as f64 }
    }
}

impl Part {
    /// Builds the part of this rank. All ranks call it with edges of the same graph, on their own rayon pools.
    ///
    /// If every rank has all edges, it visits them twice and keeps its own: generating an edge takes less time than receiving it. If each
    /// rank has a slice ([`EdgeSlice`](socbfs::graph::EdgeSlice)), it counts the edges of its slice. The ranks add up the degrees, and then
    /// send every edge to the owners of its ends, in pieces of bounded size. The part is the same either way.
    ///
    /// For [`Order::Bfs`] vertices are ordered by degree, since no rank has the lists of all vertices.
    ///
    /// # Errors
    /// [`ClusterError`], on all ranks, if the graph does not fit one of them, an edge is out of range, or ranks have different graphs;
    /// [`ClusterError::Message`].
    pub fn build<'e, E: EdgeStream + 'e>(edges: impl Into<Edges<'e, E>>, order: Order, ranks: &impl Ranks) -> Result<Self, ClusterError> {
        let edges = edges.into();
        let deal = Deal { ranks: ranks.size(), rank: ranks.rank() };
        let n = edges.vertices();
        // First, since the ranks add up arrays of this length, and the fingerprints that this listing needs.
        same_everywhere(ranks, "number of vertices", n as u64)?;
        same_everywhere(ranks, "listing of undirected edges", edges.listing() as u64)?;
        if n > MAX_VERTICES {
            return Err(GraphError::TooManyVertices(n as u64).into());
        }
        let room = memory::check_available(32 * n as u64, "what every rank keeps of the graph").map_err(GraphError::from);
        let mut degrees = all_or_none(ranks, room.and_then(|()| count_degrees(&edges, n, &Stopper::default())))?;
        if let Edges::Slice(_) = edges {
            add_up_degrees(&mut degrees, ranks);
        }
        let both_directions = degrees.symmetric();
        if !both_directions {
            degrees.outgoing.par_iter_mut().zip(&degrees.incoming[..]).for_each(|(out, &arriving)| *out += arriving);
        }
        degrees.incoming = Slab::default();
        let degree = degrees.outgoing;
        same_everywhere(ranks, "number of edges", degrees.entries)?;
        same_everywhere(ranks, "degrees", mixed(&degree))?;

        let (with_edges, skew) = skew(degree.par_iter().copied());
        // For a neighbourhood, too: no rank has the lists of all vertices.
        let order = if order.renumbers(skew) { Order::Degree } else { Order::Original };
        let (by_rank, rank) = all_or_none(ranks, by_degree(&degree))?;
        let by_degree = order == Order::Degree;
        let internal = |v: usize| if by_degree { rank[v] } else { v as Vertex };
        let vertices = if by_degree { by_rank.len() } else { n };
        let words = vertices.div_ceil(64);
        let rows = 64 * deal.words(words);

        let room = || Ok::<_, ClusterError>((Slab::<Vertex>::zeroed(n, "vertex order")?, Slab::<u32>::zeroed(rows, "vertex degrees")?));
        let (mut row, mut input_degree) = all_or_none(ranks, room())?;
        row.par_iter_mut().enumerate().for_each(|(v, row)| {
            let internal = internal(v);
            *row = if internal != NONE && deal.owns(internal) { deal.row(internal) } else { NONE };
        });
        for (&row, &degree) in row.iter().zip(&degree[..]) {
            if row != NONE {
                input_degree[row as usize] = degree;
            }
        }
        drop(degree);
        let own: u64 = input_degree.par_iter().map(|&degree| u64::from(degree)).sum();
        let forward = if both_directions { Arcs::Forward } else { Arcs::Both };
        let stored = if by_degree { &[][..] } else { &by_rank[..] };
        let collected = || {
            if own > u64::from(u32::MAX) {
                return Err(GraphError::TooManyArcs(own));
            }
            // 8 bytes while they are sorted; then three arrays at once hold them.
            memory::check_available(own.saturating_mul(3 * 4), "this rank's part of the graph")?;
            Collected::begin(forward, &input_degree, Naming { row: &row, key: &rank, stored })
        };
        let mut collected = all_or_none(ranks, collected())?;
        let owner = |v: Vertex| Some(internal(v as usize)).filter(|&internal| internal != NONE).map(|internal| deal.owner(internal));
        let needs = if both_directions { Needs::First } else { Needs::Both };
        let (never, mut added) = (Stopper::default(), Ok(()));
        edges.for_each_needed(ranks, needs, owner, |piece| {
            if added.is_ok() {
                added = collected.add(piece, &never).map(drop);
            }
        })?;
        let lists = added.and_then(|()| collected.into_lists(usize::MAX, &never));
        let lists = all_or_none(ranks, lists)?;
        drop(row);

        let own_max = (0..lists.vertices() as Vertex).map(|row| lists.degree(row)).max().unwrap_or(0);
        let mut part = Self {
            deal,
            vertices: n,
            words,
            order,
            to_original: if by_degree { by_rank } else { Slab::default() },
            to_internal: if by_degree { rank } else { Slab::default() },
            lists,
            input_degree,
            counts: PartCounts {
                listed: degrees.entries,
                self_loops: degrees.self_loops,
                edges: if both_directions { (degrees.entries - degrees.self_loops) / 2 } else { degrees.entries - degrees.self_loops },
                max_degree: max(ranks, own_max.into()) as u32,
                isolated: n as u64 - with_edges,
                skew,
                both_directions,
                ..PartCounts::default()
            },
            ..Self::default()
        };
        part.take_leaves_out(vertices, ranks)?;
        all_or_none(ranks, part.index())?;
        part.count_degrees(ranks)?;
        part.counts.arcs = values(ranks, part.lists.arcs() as u64);
        part.hub_share = part.share_of_hubs(ranks);
        part.counts.replicated_bytes = part.replicated_bytes();
        part.counts.bytes = values(ranks, part.bytes());
        Ok(part)
    }

    /// Gathers the own words of every rank into one bitmap of all vertices, with one word of 0 after it.
    fn gather_words(&self, own: &[u64], ranks: &impl Ranks) -> Result<Slab<u64>, ClusterError> {
        let longest = self.words.div_ceil(self.deal.ranks);
        let mut own = own.to_vec();
        own.resize(longest, 0);
        let all = gathered(ranks, &own);
        let mut words: Slab<u64> = all_or_none(ranks, Slab::zeroed(self.words + 1, "bitmaps"))?;
        for (rank, of_rank) in all.chunks_exact(longest.max(1)).enumerate() {
            let deal = Deal { rank, ..self.deal };
            for (own, &word) in of_rank.iter().enumerate().take(deal.words(self.words)) {
                words[deal.word(own)] = word;
            }
        }
        Ok(words)
    }

    fn own_words(&self) -> usize {
        self.deal.words(self.words)
    }

    /// Removes leaves from the lists, and marks all vertices that are not searched.
    fn take_leaves_out(&mut self, vertices: usize, ranks: &impl Ranks) -> Result<(), ClusterError> {
        let rows = 64 * self.own_words();
        let bits_of = |test: &dyn Fn(Vertex) -> bool| -> Vec<u64> {
            (0..rows / 64).map(|word| (0..64).fold(0, |bits, bit| bits | u64::from(test((word * 64 + bit) as Vertex)) << bit)).collect()
        };
        let has_one = bits_of(&|row| self.lists.degree(row) == 1);
        let has_one = self.gather_words(&has_one, ranks)?;
        let is_set = |bits: &[u64], v: Vertex| bits[(v >> 6) as usize] >> (v & 63) & 1 == 1;
        // If two vertices have only each other, the second is the leaf of the first.
        let own_leaves = bits_of(&|row| {
            self.lists.degree(row) == 1 && {
                let (vertex, neighbour) = (self.deal.vertex(row), self.lists.neighbours(row)[0]);
                !is_set(&has_one, neighbour) || neighbour < vertex
            }
        });
        let leaf = self.gather_words(&own_leaves, ranks)?;
        let unsearched = bits_of(&|row| {
            self.deal.vertex(row) as usize >= vertices || self.lists.degree(row) == 0 || is_set(&leaf, self.deal.vertex(row))
        });

        let isolated = bits_of(&|row| self.lists.degree(row) == 0);

        let kept: usize = self.lists.targets.par_iter().filter(|&&target| !is_set(&leaf, target)).count();
        // The lists of the leaves themselves are removed as well.
        let own = own_leaves.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let lost = (0..rows as Vertex).filter(|&row| is_set(&own_leaves, row) && !is_set(&leaf, self.lists.neighbours(row)[0])).count();
        let room = || {
            let lists = Csr { offsets: Slab::zeroed(rows + 1, "adjacency offsets")?, targets: Slab::zeroed(kept - lost, "adjacency")? };
            Ok::<_, ClusterError>((lists, Slab::zeroed(own, "leaves")?))
        };
        let (mut lists, mut leaves): (Csr, Slab<[Vertex; 3]>) = all_or_none(ranks, room())?;
        let mut rest = leaves.iter_mut();
        let mut at = 0;
        for row in 0..rows as Vertex {
            let neighbours = self.lists.neighbours(row);
            if is_set(&own_leaves, row) {
                if let Some(leaf) = rest.next() {
                    *leaf = [row, neighbours[0], self.original(neighbours[0])];
                }
            } else {
                for &target in neighbours.iter().filter(|&&target| !is_set(&leaf, target)) {
                    lists.targets[at] = target;
                    at += 1;
                }
            }
            lists.offsets[row as usize + 1] = at as u32;
        }
        (self.lists, self.leaves) = (lists, leaves);
        self.unsearched = self.gather_words(&unsearched, ranks)?;
        self.isolated = self.gather_words(&isolated, ranks)?;
        self.counts.leaves = sum(ranks, own as u64);
        self.counts.searched = self.unsearched[..self.words].iter().map(|word| u64::from(word.count_zeros())).sum();
        Ok(())
    }

    /// Indexes the arcs by source, and takes the first neighbours of each row.
    fn index(&mut self) -> Result<(), memory::OutOfMemory> {
        let (lists, sources) = (&self.lists, 64 * self.words);
        let rows = 0..lists.vertices() as Vertex;
        self.by_source = grouped(rows.flat_map(|row| lists.neighbours(row).iter().map(move |&source| [source, row])), sources)?;
        self.columns = Columns::new(lists, false, lists.vertices(), sources as Vertex, self.order, &self.to_original)?;
        Ok(())
    }

    /// Computes the mean degrees of all words, and the degrees of the first word.
    fn count_degrees(&mut self, ranks: &impl Ranks) -> Result<(), ClusterError> {
        let means: Vec<u64> = (0..self.own_words() as u32)
            .map(|word| {
                let arcs: u32 = (word * 64..word * 64 + 64).map(|row| self.lists.degree(row)).sum();
                let open = (!self.unsearched[self.deal.word(word as usize)]).count_ones();
                u64::from((arcs + open / 2) / open.max(1))
            })
            .collect();
        let means = self.gather_words(&means, ranks)?;
        self.word_degrees = all_or_none(ranks, Slab::zeroed(self.words, "vertex degrees"))?;
        for (mean, &all) in self.word_degrees.iter_mut().zip(&means[..]) {
            *mean = all as u32;
        }
        self.first_degrees = all_or_none(ranks, Slab::zeroed(64, "vertex degrees"))?;
        if self.deal.rank == 0 && self.words > 0 {
            self.first_degrees.iter_mut().zip(0..).for_each(|(degree, row)| *degree = self.lists.degree(row));
        }
        ranks.broadcast(0, cast_slice_mut(&mut self.first_degrees));
        Ok(())
    }

    /// Share of the vertices with more arcs than the mean, among those that have arcs, as in a [`Layout`](socbfs::graph::Layout).
    fn share_of_hubs(&self, ranks: &impl Ranks) -> f32 {
        let above = |arcs: u32| (0..self.lists.vertices() as Vertex).filter(|&row| self.lists.degree(row) > arcs).count() as u64;
        let with_arcs = sum(ranks, above(0)).max(1);
        let mean = (self.counts.arcs.iter().sum::<u64>() / with_arcs) as u32;
        sum(ranks, above(mean)) as f32 / with_arcs as f32
    }

    /// Vertices of the input.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// The order of vertices that was chosen.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether an original vertex has an edge to another.
    ///
    /// # Panics
    /// If `original` is not a vertex.
    pub fn has_edge(&self, original: Vertex) -> bool {
        assert!((original as usize) < self.vertices, "vertex {original} of {}", self.vertices);
        let internal = self.internal(original);
        internal != NONE && !self.is_isolated(internal)
    }

    /// Counts of the graph and of all parts.
    pub fn counts(&self) -> &PartCounts {
        &self.counts
    }

    /// Bytes that this rank holds.
    pub fn bytes(&self) -> u64 {
        self.lists.bytes()
            + self.by_source.targets.bytes()
            + self.columns.bytes()
            + self.leaves.bytes()
            + self.input_degree.bytes()
            + self.replicated_bytes()
    }

    fn replicated_bytes(&self) -> u64 {
        self.to_original.bytes()
            + self.to_internal.bytes()
            + self.by_source.offsets.bytes()
            + self.unsearched.bytes()
            + self.isolated.bytes()
            + self.word_degrees.bytes()
    }

    /// The arrays that a device needs.
    pub(super) fn arrays(&self) -> PartArrays<'_> {
        PartArrays {
            lists: &self.lists,
            by_source: &self.by_source,
            columns: self.columns.numbers(),
            names: self.columns.originals(),
            to_original: &self.to_original,
        }
    }

    /// The internal number of an original vertex, [`NONE`] where it has no edge.
    pub(super) fn internal(&self, original: Vertex) -> Vertex {
        self.to_internal.get(original as usize).copied().unwrap_or(original)
    }

    /// The original number of an internal vertex.
    pub(super) fn original(&self, internal: Vertex) -> Vertex {
        self.to_original.get(internal as usize).copied().unwrap_or(internal)
    }

    /// Whether a vertex has no edge to another.
    pub(super) fn is_isolated(&self, internal: Vertex) -> bool {
        self.isolated[(internal >> 6) as usize] >> (internal & 63) & 1 == 1
    }

    /// Whether a vertex is searched: it has two neighbours or more, or is the one of a pair that is not the leaf.
    pub(super) fn is_searched(&self, internal: Vertex) -> bool {
        self.unsearched[(internal >> 6) as usize] >> (internal & 63) & 1 == 0
    }

    /// Number of searched neighbours of a searched vertex: exact for the first 64 vertices, else the mean of its word.
    pub(super) fn degree_like(&self, v: Vertex) -> u64 {
        u64::from(if Self::is_estimated(v) { self.word_degrees[(v >> 6) as usize] } else { self.first_degrees[v as usize] })
    }

    /// Whether [`degree_like`](Self::degree_like) estimates the degree of `v`.
    pub(super) fn is_estimated(v: Vertex) -> bool {
        v >= 64
    }

    /// The neighbour of a leaf of this rank.
    pub(super) fn neighbour_of_leaf(&self, row: Vertex) -> Option<Vertex> {
        let at = self.leaves.partition_point(|&[leaf, _, _]| leaf < row);
        self.leaves.get(at).filter(|&&[leaf, _, _]| leaf == row).map(|&[_, neighbour, _]| neighbour)
    }

    /// Whether a leaf of this rank that is not a source has a neighbour that `is` accepts. In `parents`, by row, sources are their own
    /// parents.
    pub(super) fn any_leaf(&self, parents: &[Vertex], is: impl Fn(Vertex) -> bool) -> bool {
        self.leaves.iter().any(|&[row, neighbour, _]| parents[row as usize] != self.original(self.deal.vertex(row)) && is(neighbour))
    }

    /// Sets `visited` to a search that has reached only the `sources` (original numbers), and calls `enter` with each that is searched,
    /// once. Returns the counts before level 0. If no source is searched, they are those of one vertex without an arc.
    pub(super) fn begin(&self, sources: &[Vertex], visited: &mut [u64], mut enter: impl FnMut(Vertex)) -> LevelStats {
        visited.copy_from_slice(&self.unsearched);
        let mut stats = LevelStats {
            vertices: self.counts.searched,
            arcs: self.counts.arcs.iter().sum(),
            hub_share: self.hub_share,
            ..LevelStats::default()
        };
        for v in sources.iter().map(|&source| self.internal(source)).filter(|&v| v != NONE) {
            let (word, bit) = (&mut visited[(v >> 6) as usize], 1 << (v & 63));
            if *word & bit == 0 {
                *word |= bit;
                stats.frontier_vertices += 1;
                stats.frontier_edges += self.degree_like(v);
                stats.frontier_is_estimated |= Self::is_estimated(v);
                enter(v);
            }
        }
        stats.unvisited_vertices = stats.vertices - stats.frontier_vertices;
        stats.unvisited_edges = stats.arcs.saturating_sub(stats.frontier_edges);
        stats.unvisited_is_estimated = stats.frontier_is_estimated;
        stats.frontier_vertices = stats.frontier_vertices.max(1);
        stats
    }

    /// Room for the neighbours of leaves that [`neighbours_of_leaves`](Self::neighbours_of_leaves) exchanges.
    pub(super) fn room_for_leaves(&self) -> Result<Slab<Vertex>, memory::OutOfMemory> {
        Slab::zeroed(LEAVES * (1 + self.deal.ranks), "messages")
    }

    /// Calls `enter` on every rank with each source that is a leaf (as an original number) and its neighbour. The owners of the leaves send
    /// the neighbours. Returns what that took.
    ///
    /// # Errors
    /// [`ClusterError::Message`].
    pub(super) fn neighbours_of_leaves(
        &self,
        ranks: &impl Ranks,
        sources: &[Vertex],
        room: &mut [Vertex],
        mut enter: impl FnMut(Vertex, Vertex),
    ) -> Result<LevelTraffic, ClusterError> {
        let is_leaf = |&v: &Vertex| v != NONE && !self.is_searched(v) && !self.is_isolated(v);
        let mut leaves = sources.iter().map(|&source| self.internal(source)).filter(is_leaf);
        let (own, all) = room.split_at_mut(LEAVES);
        let (size, mut traffic) = (self.deal.ranks, LevelTraffic::default());
        loop {
            let mut len = 0;
            for (own, leaf) in own.iter_mut().zip(leaves.clone()) {
                let row = self.deal.owns(leaf).then(|| self.deal.row(leaf));
                *own = row.and_then(|row| self.neighbour_of_leaf(row)).unwrap_or(NONE);
                len += 1;
            }
            if len == 0 {
                return Ok(traffic);
            }
            ranks.all_gather(cast_slice(&own[..len]), cast_slice_mut(&mut all[..len * size]));
            let bytes = (4 * len * (size - 1)) as u64;
            traffic.add(LevelTraffic { received: bytes, sent: bytes, messages: 1, ..LevelTraffic::default() });
            for (at, leaf) in leaves.by_ref().take(len).enumerate() {
                let rank = self.deal.owner(leaf);
                let neighbour = all[rank * len + at];
                // Leaves have neighbours that are searched.
                if neighbour as usize >= 64 * self.words || !self.is_searched(neighbour) {
                    return Err(ClusterError::Message { rank });
                }
                enter(self.original(leaf), neighbour);
            }
        }
    }

    /// Listed edges that touch each row of this rank.
    pub(super) fn input_degrees(&self) -> &[u32] {
        &self.input_degree
    }

    /// Rows of this rank that are vertices, each with its original number.
    pub fn own_vertices(&self) -> impl Iterator<Item = (usize, Vertex)> + '_ {
        self.vertices_of(self.deal.rank)
    }

    /// As [`own_vertices`](Self::own_vertices), of any rank: all ranks know the order of vertices. Rows that are no vertices come last.
    pub(super) fn vertices_of(&self, rank: usize) -> impl Iterator<Item = (usize, Vertex)> + '_ {
        let vertices = if self.order == Order::Degree { self.to_original.len() } else { self.vertices };
        let deal = Deal { rank, ..self.deal };
        (0..64 * deal.words(self.words)).filter_map(move |row| {
            let internal = deal.vertex(row as Vertex);
            ((internal as usize) < vertices).then(|| (row, self.original(internal)))
        })
    }

    /// Whether any rank owns an original vertex. A vertex without an edge may have no number and so no owner.
    pub(super) fn has_owner(&self, original: Vertex) -> bool {
        self.internal(original) != NONE
    }

    /// Those of the `sources` (original numbers) that no rank owns, each once.
    pub(super) fn without_owner(&self, sources: &[Vertex]) -> Vec<Vertex> {
        let mut alone: Vec<Vertex> = sources.iter().copied().filter(|&source| !self.has_owner(source)).collect();
        alone.sort_unstable();
        alone.dedup();
        alone
    }

    /// The row of an original vertex if this rank owns it. A vertex without an edge that is not numbered has no owner.
    pub(super) fn own_row(&self, original: Vertex) -> Option<usize> {
        let internal = self.internal(original);
        (internal != NONE && self.deal.owns(internal)).then(|| self.deal.row(internal) as usize)
    }
}

/// The second numbers of `pairs` by the first, which are below `keys`, in the order of `pairs`.
pub(super) fn grouped(pairs: impl DoubleEndedIterator<Item = [Vertex; 2]> + Clone, keys: usize) -> Result<Csr, memory::OutOfMemory> {
    let mut offsets: Slab<u32> = Slab::zeroed(keys + 1, "adjacency offsets")?;
    pairs.clone().for_each(|[key, _]| offsets[key as usize] += 1);
    let sum = accumulate(&mut offsets);
    let mut targets = Slab::zeroed(sum as usize, "adjacency")?;
    // Each list is filled backwards: its end moves to its beginning.
    for [key, value] in pairs.rev() {
        let end = &mut offsets[key as usize];
        *end -= 1;
        targets[*end as usize] = value;
    }
    Ok(Csr { offsets, targets })
}

/// Adds up the counts of all ranks.
fn add_up_degrees(degrees: &mut Degrees, ranks: &impl Ranks) {
    add_up(ranks, &mut degrees.outgoing);
    add_up(ranks, &mut degrees.incoming);
    degrees.entries = sum(ranks, degrees.entries);
    degrees.self_loops = sum(ranks, degrees.self_loops);
    // All ranks have the same listing, so all of them call `sum` here or none does.
    degrees.up_and_down = degrees.up_and_down.map(|up_and_down| up_and_down.map(|fingerprints| sum(ranks, fingerprints)));
}

/// Returns an error if ranks have different graphs: they would wait for each other for ever, or find a wrong tree. `value` tells graphs
/// apart by `what`.
fn same_everywhere(ranks: &impl Ranks, what: &'static str, value: u64) -> Result<(), ClusterError> {
    let all = values(ranks, value);
    all.iter().position(|&other| other != all[0]).map_or(Ok(()), |rank| Err(ClusterError::Different { what, rank }))
}

/// A number that different degrees hardly ever have in common.
fn mixed(degrees: &[u32]) -> u64 {
    degrees
        .par_iter()
        .enumerate()
        .map(|(v, &degree)| (v as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(degree % 64).wrapping_mul(u64::from(degree) | 1))
        .reduce(|| 0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ThreadRanks,
        damaged::{Damaged, Operation},
    };
    use socbfs::graph::{BuildOptions, EdgeList, EdgeSlice, Layout, Listing};
    use socbfs_io::generate::Generator;

    #[test]
    fn all_ranks_know_the_share_of_hubs() {
        // A cycle of 20 vertices, one of which has eleven more neighbours. The mean is 3.1.
        let edges = (0..20).map(|v| [v, (v + 1) % 20]).chain((5..16).map(|v| [0, v])).collect();
        let list = EdgeList::new(20, edges, Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let shares = ThreadRanks::run(3, |ranks| Part::build(&list, Order::Original, ranks).unwrap().hub_share);
        assert_eq!(shares, [1.0 / 20.0; 3]);
        assert_eq!(shares[0], layout.hubs().share);
    }

    fn assert_same(part: &Part, other: &Part, what: &str) {
        let numbers = |part: &Part| (part.deal, part.vertices, part.words, part.order, part.first_degrees.to_vec());
        assert_eq!(numbers(part), numbers(other), "{what}");
        assert_eq!(serde_json::to_value(&part.counts).unwrap(), serde_json::to_value(&other.counts).unwrap(), "{what}");
        let slabs = |part: &Part| {
            let numbers = [
                &part.to_original,
                &part.to_internal,
                &part.lists.offsets,
                &part.lists.targets,
                &part.by_source.offsets,
                &part.by_source.targets,
                &part.input_degree,
                &part.word_degrees,
            ];
            numbers.into_iter().chain(part.columns.numbers()).chain(part.columns.originals()).map(|slab| slab.to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(slabs(part), slabs(other), "{what}");
        let bits = |part: &Part| [part.unsearched.to_vec(), part.isolated.to_vec()];
        assert_eq!((bits(part), part.leaves.to_vec()), (bits(other), other.leaves.to_vec()), "{what}");
    }

    /// Slices of any lengths, read by any number of ranks, make the same parts as all edges on every rank.
    #[test]
    fn slices_make_the_same_parts_as_all_edges() {
        let kronecker = Generator::graph500(10).generate(&|_| ()).unwrap();
        let mut edges = Vec::new();
        kronecker.for_each(0..kronecker.len(), |source, target| edges.push([source, target]));
        let both: Vec<[Vertex; 2]> = edges.iter().flat_map(|&[source, target]| [[source, target], [target, source]]).collect();
        let grid = Generator::Grid { width: 20, height: 9, deletion: 0.1, seed: 1 }.generate(&|_| ()).unwrap();
        let mut of_grid = Vec::new();
        grid.for_each(0..grid.len(), |source, target| of_grid.push([source, target]));
        for (vertices, edges) in [(1024, edges), (1024, both), (180, of_grid), (3, vec![]), (5, vec![[2, 2], [4, 4]]), (4, vec![[3, 0]])] {
            for listing in [Listing::Once, Listing::Unknown, Listing::BothDirections] {
                let all = EdgeList::new(vertices, edges.clone(), listing).unwrap();
                for (size, order) in [(1, Order::Auto), (2, Order::Degree), (3, Order::Original), (4, Order::Auto), (7, Order::Degree)] {
                    ThreadRanks::run(size, |ranks| {
                        let whole = Part::build(&all, order, ranks).unwrap();
                        let begin = |rank: usize| if rank == 1 && size > 1 { edges.len() / 9 } else { edges.len() * rank / size };
                        let range = begin(ranks.rank())..begin(ranks.rank() + 1);
                        // The slice as a list of its own, and as a range of the list of all edges.
                        let own = EdgeList::new(vertices, edges[range.clone()].to_vec(), listing).unwrap();
                        let run = EdgeList::new(vertices, edges.clone(), listing).unwrap();
                        for slice in [EdgeSlice::new(own, 0..range.len()), EdgeSlice::new(run, range)] {
                            let part = Part::build(&slice, order, ranks).unwrap();
                            assert_same(&part, &whole, &format!("{size} ranks, {order:?}, {listing:?}, {} edges", edges.len()));
                        }
                    });
                }
            }
        }
    }

    /// An edge to a vertex out of range makes the build fail on all ranks.
    #[test]
    fn all_ranks_report_an_edge_out_of_range_in_one_slice() {
        let errors = ThreadRanks::run(3, |ranks| {
            let edges = if ranks.rank() == 1 { vec![[0, 1], [2, 9]] } else { vec![[1, 2]] };
            let length = edges.len();
            let slice = EdgeSlice::new(EdgeList::new(5, edges, Listing::Once).unwrap(), 0..length);
            Part::build(&slice, Order::Auto, ranks).unwrap_err().to_string()
        });
        assert!(errors.iter().all(|error| error.contains("joins 2 and 9")), "{errors:?}");
    }

    /// The position of an edge that is refused is that in the whole list, also if a rank reads a range of it.
    #[test]
    fn a_refused_edge_has_its_position_in_the_whole_list() {
        let entries = vec![[0, 1], [1, 2], [2, 3], [2, 9], [3, 4], [4, 0]];
        let errors = ThreadRanks::run(3, |ranks| {
            let list = EdgeList::new(5, entries.clone(), Listing::Once).unwrap();
            Part::build(&EdgeSlice::new(list, 2 * ranks.rank()..2 * ranks.rank() + 2), Order::Auto, ranks).unwrap_err().to_string()
        });
        assert!(errors.iter().all(|error| error.contains("edge 3 joins 2 and 9")), "{errors:?}");
    }

    /// The ranks add up arrays of all vertices, so they compare the number of vertices first, and what decides the number of sums.
    #[test]
    fn slices_of_different_graphs_are_refused_by_all_ranks() {
        let built = |of_rank: fn(usize) -> (usize, Listing)| {
            ThreadRanks::run(3, |ranks| {
                let (vertices, listing) = of_rank(ranks.rank());
                let list = EdgeList::new(vertices, vec![[0, 1], [1, 2]], listing).unwrap();
                Part::build(&EdgeSlice::new(list, 0..2), Order::Auto, ranks).map(|_| ()).unwrap_err()
            })
        };
        let vertices = built(|rank| if rank == 2 { (5, Listing::Once) } else { (4, Listing::Once) });
        assert!(
            vertices.iter().all(|error| matches!(error, ClusterError::Different { what: "number of vertices", rank: 2 })),
            "{vertices:?}"
        );
        let listing = built(|rank| (4, if rank == 1 { Listing::Unknown } else { Listing::Once }));
        assert!(
            listing.iter().all(|error| matches!(error, ClusterError::Different { what: "listing of undirected edges", rank: 1 })),
            "{listing:?}"
        );
    }

    /// A source of no edges that announces more vertices than 32 bits can number.
    struct TooMany;

    impl EdgeStream for TooMany {
        fn vertices(&self) -> usize {
            MAX_VERTICES + 1
        }

        fn listing(&self) -> Listing {
            Listing::Once
        }

        fn parts(&self) -> usize {
            0
        }

        fn for_each_of(&self, _: usize, _: impl FnMut(Vertex, Vertex)) {}
    }

    #[test]
    fn too_many_vertices_are_refused() {
        for error in ThreadRanks::run(2, |ranks| Part::build(&TooMany, Order::Auto, ranks).unwrap_err()) {
            assert!(matches!(error, ClusterError::Graph(GraphError::TooManyVertices(_))), "{error}");
        }
    }

    /// Builds a part of a cycle of five vertices, from slices, on a rank with this damage.
    fn build(damage: impl Fn(&mut [u8]) + Sync) -> Result<u64, ClusterError> {
        let damage = |operation: Operation, bytes: &mut [u8]| {
            if operation == Operation::AllToAll {
                damage(bytes);
            }
        };
        let of_ranks = ThreadRanks::run(1, |ranks| {
            let edges = EdgeList::new(5, (0..5).map(|v| [v, (v + 1) % 5]).collect(), Listing::Once).unwrap();
            let ranks = Damaged { ranks, damage: &damage };
            Part::build(&EdgeSlice::new(edges, 0..5), Order::Original, &ranks).map(|part| part.counts.arcs[0])
        });
        of_ranks.into_iter().next().unwrap()
    }

    #[test]
    fn damaged_edges_are_errors() {
        assert_eq!(build(|_| ()).unwrap(), 10);
        // The announced length, which is sent alone, and the ends of an edge.
        for length in [-8, i32::MIN, i32::MAX, 8 * (1 << 20) + 8] {
            let damaged = build(|bytes| {
                if bytes.len() == 4 {
                    bytes.copy_from_slice(&i32::to_le_bytes(length));
                }
            });
            assert!(matches!(damaged, Err(ClusterError::Message { rank: 0 })), "{length}");
        }
        for (at, vertex) in [(0, 5), (4, NONE), (36, 5)] {
            let damaged = build(|bytes| {
                if bytes.len() > 4 {
                    bytes[at..at + 4].copy_from_slice(&u32::to_le_bytes(vertex));
                }
            });
            assert!(matches!(damaged, Err(ClusterError::Message { rank: 0 })), "{vertex} at {at}");
        }
    }
}
