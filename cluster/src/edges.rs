//! How ranks hold the edges of a graph: all edges on every rank, or a slice on each.

use std::ops::Range;

use super::{
    ClusterError,
    ranks::{Arrived, Ranks, all_or_none, all_to_all, max},
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
        mut visit: impl FnMut(&Edges<'_, E>),
    ) -> Result<(), ClusterError> {
        let Self::Slice(slice) = self else {
            visit(self);
            return Ok(());
        };
        let size = ranks.size();
        let step = (ROUND / size).max(1024);
        all_or_none(ranks, memory::check_available(8 * (4 * step + 2 * ROUND) as u64, "the exchange of edges"))?;
        let rounds = max(ranks, slice.len().div_ceil(step) as u64) as usize;
        for round in 0..rounds {
            let range = (round * step).min(slice.len())..((round + 1) * step).min(slice.len());
            let (edges, counts) = by_owner(slice, range, needs, size, &owner);
            let mut arrived = Arrived::default();
            all_to_all(ranks, &edges, &counts, step, &mut arrived)?;
            let is_edge = |ends: &[Vertex; 2]| ends.iter().all(|&end| (end as usize) < slice.vertices());
            if let Some((rank, _)) = arrived.of_ranks().find(|(_, edges)| !edges.iter().all(is_edge)) {
                return Err(ClusterError::Message { rank });
            }
            let all = 0..arrived.all.len();
            let arrived = EdgeSlice::new(EdgeList::new(slice.vertices(), arrived.all, slice.listing())?, all);
            visit(&Edges::Slice(&arrived));
        }
        Ok(())
    }
}

/// The entries `range` of a slice in the order of the ranks that need them, and the number for each rank. An entry that two ranks need
/// occurs twice.
fn by_owner(
    slice: &EdgeSlice,
    range: Range<usize>,
    needs: Needs,
    size: usize,
    owner: &impl Fn(Vertex) -> Option<usize>,
) -> (Vec<[Vertex; 2]>, Vec<usize>) {
    let ranks_of = |source: Vertex, target: Vertex| {
        let first = owner(source);
        let second = if needs == Needs::Both { owner(target).filter(|&second| Some(second) != first) } else { None };
        first.into_iter().chain(second)
    };
    let mut counts = vec![0; size];
    slice.for_each(range.clone(), |source, target| ranks_of(source, target).for_each(|rank| counts[rank] += 1));
    let mut places: Vec<usize> = (0..size).map(|rank| counts[..rank].iter().sum()).collect();
    let mut edges = vec![[0; 2]; counts.iter().sum()];
    slice.for_each(range, |source, target| {
        ranks_of(source, target).for_each(|rank| {
            edges[places[rank]] = [source, target];
            places[rank] += 1;
        });
    });
    (edges, counts)
}

/// Edges in one part of a slice.
const PART: usize = 64 << 10;

fn part_of(part: usize, length: usize) -> Range<usize> {
    part * PART..length.min((part + 1) * PART)
}

/// The edges that this rank has.
impl<E: EdgeStream> EdgeStream for Edges<'_, E> {
    fn vertices(&self) -> usize {
        match self {
            Self::All(edges) => edges.vertices(),
            Self::Slice(slice) => slice.vertices(),
        }
    }

    fn listing(&self) -> Listing {
        match self {
            Self::All(edges) => edges.listing(),
            Self::Slice(slice) => slice.listing(),
        }
    }

    fn parts(&self) -> usize {
        match self {
            Self::All(edges) => edges.parts(),
            Self::Slice(slice) => slice.len().div_ceil(PART),
        }
    }

    #[inline]
    fn for_each_of(&self, part: usize, visit: impl FnMut(Vertex, Vertex)) {
        match self {
            Self::All(edges) => edges.for_each_of(part, visit),
            Self::Slice(slice) => slice.for_each(part_of(part, slice.len()), visit),
        }
    }

    fn position(&self, part: usize, index: usize) -> usize {
        match self {
            Self::All(edges) => edges.position(part, index),
            Self::Slice(slice) => slice.position(part * PART + index),
        }
    }
}
