//! How ranks hold the edges of a graph: all edges on every rank, or a slice on each.

use std::ops::Range;

use super::{
    ClusterError,
    ranks::{Ranks, all_to_all, max, of_ranks, starts, total},
    search::all_or_none,
};
use socbfs::{
    graph::{EdgeList, EdgeSlice, EdgeStream, Listing, Vertex},
    memory,
};

/// The edges of a graph that a rank holds.
#[derive(Debug)]
pub enum Edges<'e, E> {
    /// Every rank has all of them: in memory, or generated again each time, which takes less time than receiving them.
    All(&'e E),
    /// Each rank has a slice; together the slices are all edges. Ranks send each other the edges that they need.
    Slice(&'e EdgeSlice),
}

impl<E> Clone for Edges<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Edges<'_, E> {}

impl<'e, E: EdgeStream> From<&'e E> for Edges<'e, E> {
    fn from(edges: &'e E) -> Self {
        Self::All(edges)
    }
}

impl<'e> From<&'e EdgeSlice> for Edges<'e, EdgeList> {
    fn from(slice: &'e EdgeSlice) -> Self {
        Self::Slice(slice)
    }
}

/// Which ranks need an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needs {
    /// The owner of its first end.
    First,
    /// The owners of both ends.
    Both,
}

/// Edges that all ranks together exchange in one round. So no rank receives more than 8 MiB (with up to 1024 ranks).
const ROUND: usize = 1 << 20;

impl<E: EdgeStream> Edges<'_, E> {
    /// Number of vertices.
    pub(super) fn vertices(&self) -> usize {
        match self {
            Self::All(edges) => edges.vertices(),
            Self::Slice(slice) => slice.vertices(),
        }
    }

    /// The edges that this rank has.
    pub(super) fn own(&self) -> Piece<'_, E> {
        match self {
            Self::All(edges) => Piece::All(edges),
            Self::Slice(slice) => Piece::Slice(slice),
        }
    }

    /// Calls `visit` with streams that contain each edge that this rank `needs` once, and perhaps other edges. `owner` returns the rank
    /// that owns a vertex, if any. All ranks call it.
    ///
    /// # Errors
    /// [`ClusterError::Message`], and on all ranks if one of them has too little memory for the exchange.
    pub(super) fn for_each_needed<R: Ranks>(
        &self,
        ranks: &R,
        needs: Needs,
        owner: impl Fn(Vertex) -> Option<usize>,
        mut visit: impl FnMut(&Piece<'_, E>),
    ) -> Result<(), ClusterError> {
        let slice = match self {
            Self::All(edges) => {
                visit(&Piece::All(edges));
                return Ok(());
            }
            Self::Slice(slice) => slice,
        };
        let size = ranks.size();
        let step = (ROUND / size).max(1024);
        let room = memory::check_available(8 * (4 * step + 2 * ROUND) as u64, "the exchange of edges");
        all_or_none(ranks, room.map_err(ClusterError::from))?;
        let mut exchange = Exchange::new(size, 8 * step);
        let rounds = max(ranks, slice.len().div_ceil(step) as u64) as usize;
        for round in 0..rounds {
            let range = (round * step).min(slice.len())..((round + 1) * step).min(slice.len());
            let arrived = exchange.exchange(ranks, slice, range, needs, &owner)?;
            visit(&Piece::Arrived { edges: arrived, vertices: slice.vertices(), listing: slice.listing() });
        }
        Ok(())
    }
}

/// Some edges as a stream.
#[derive(Debug)]
pub(super) enum Piece<'a, E> {
    All(&'a E),
    Slice(&'a EdgeSlice),
    /// Edges that arrived from all ranks, this one included.
    Arrived {
        edges: &'a [[Vertex; 2]],
        vertices: usize,
        listing: Listing,
    },
}

/// Edges in one part of a slice, or of the edges that arrived.
const PART: usize = 64 << 10;

fn part_of(part: usize, length: usize) -> Range<usize> {
    part * PART..length.min((part + 1) * PART)
}

impl<E: EdgeStream> EdgeStream for Piece<'_, E> {
    fn vertices(&self) -> usize {
        match self {
            Self::All(edges) => edges.vertices(),
            Self::Slice(slice) => slice.vertices(),
            Self::Arrived { vertices, .. } => *vertices,
        }
    }

    fn listing(&self) -> Listing {
        match self {
            Self::All(edges) => edges.listing(),
            Self::Slice(slice) => slice.listing(),
            Self::Arrived { listing, .. } => *listing,
        }
    }

    fn parts(&self) -> usize {
        match self {
            Self::All(edges) => edges.parts(),
            Self::Slice(slice) => slice.len().div_ceil(PART),
            Self::Arrived { edges, .. } => edges.len().div_ceil(PART),
        }
    }

    #[inline]
    fn for_each_of(&self, part: usize, mut visit: impl FnMut(Vertex, Vertex)) {
        match self {
            Self::All(edges) => edges.for_each_of(part, visit),
            Self::Slice(slice) => slice.for_each(part_of(part, slice.len()), visit),
            Self::Arrived { edges, .. } => edges[part_of(part, edges.len())].iter().for_each(|&[source, target]| visit(source, target)),
        }
    }

    fn position(&self, part: usize, index: usize) -> usize {
        match self {
            Self::All(edges) => edges.position(part, index),
            Self::Slice(slice) => slice.position(part * PART + index),
            Self::Arrived { .. } => part * PART + index,
        }
    }
}

/// Buffers for what is sent and received in a round.
struct Exchange {
    bytes: Vec<u8>,
    /// By rank: bytes to send to it, and where the next edge goes.
    lengths: Vec<i32>,
    places: Vec<usize>,
    arriving: Vec<u8>,
    arrived: Vec<[Vertex; 2]>,
    /// Bytes that a rank sends another in one round, at most.
    most: usize,
}

impl Exchange {
    fn new(size: usize, most: usize) -> Self {
        Self { bytes: Vec::new(), lengths: vec![0; size], places: vec![0; size], arriving: Vec::new(), arrived: Vec::new(), most }
    }

    /// Sends the entries `range` of this rank's slice to the ranks that need them. Returns the edges that arrived.
    fn exchange(
        &mut self,
        ranks: &impl Ranks,
        slice: &EdgeSlice,
        range: Range<usize>,
        needs: Needs,
        owner: &impl Fn(Vertex) -> Option<usize>,
    ) -> Result<&[[Vertex; 2]], ClusterError> {
        let ranks_of = |source: Vertex, target: Vertex| {
            let first = owner(source);
            let second = if needs == Needs::Both { owner(target).filter(|&second| Some(second) != first) } else { None };
            first.into_iter().chain(second)
        };
        self.lengths.fill(0);
        slice.for_each(range.clone(), |source, target| ranks_of(source, target).for_each(|rank| self.lengths[rank] += 8));
        for (place, start) in self.places.iter_mut().zip(starts(&self.lengths)) {
            *place = start as usize;
        }
        self.bytes.resize(total(&self.lengths), 0);
        slice.for_each(range, |source, target| {
            ranks_of(source, target).for_each(|rank| {
                let place = &mut self.places[rank];
                self.bytes[*place..][..4].copy_from_slice(&source.to_le_bytes());
                self.bytes[*place + 4..][..4].copy_from_slice(&target.to_le_bytes());
                *place += 8;
            });
        });
        let lengths = all_to_all(ranks, &self.bytes, &self.lengths, self.most, &mut self.arriving)?;
        self.arrived.clear();
        let vertex = |bytes: &[u8]| Vertex::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        for (rank, bytes) in of_ranks(&self.arriving, &lengths) {
            let first = self.arrived.len();
            self.arrived.extend(bytes.chunks_exact(8).map(|pair| [vertex(pair), vertex(&pair[4..])]));
            let is_edge = |ends: &[Vertex; 2]| ends.iter().all(|&end| (end as usize) < slice.vertices());
            if bytes.len() % 8 != 0 || !self.arrived[first..].iter().all(is_edge) {
                return Err(ClusterError::Message { rank });
            }
        }
        Ok(&self.arrived)
    }
}
