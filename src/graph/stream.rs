//! Edges that are read in parts, several times, and need not all be in memory at once.

use std::ops::Range;

use super::{EdgeList, Listing, Vertex};

/// Entries of one part, the unit that one thread reads at a time.
pub const PART: usize = 256 << 10;

/// A source of edges that gives the same entries every time it is read.
///
/// An [`EdgeList`] is such a source. So is a generator (`GeneratedEdges` of the crate `socbfs-io`), which makes its edges
/// anew each time. With it, each rank of a cluster keeps its part of a graph that no single rank could hold.
pub trait EdgeStream: Sync {
    /// Number of vertices, isolated ones included.
    fn vertices(&self) -> usize;

    /// How the source lists an undirected edge.
    fn listing(&self) -> Listing;

    /// Number of parts.
    fn parts(&self) -> usize;

    /// Calls `visit(source, target)` for the entries of one part.
    ///
    /// # Panics
    /// May panic if `part` is not below [`parts`](Self::parts).
    fn for_each_of(&self, part: usize, visit: impl FnMut(Vertex, Vertex));

    /// The position in the list of entry `index` of `part`, for error messages.
    fn position(&self, part: usize, index: usize) -> usize {
        part * PART + index
    }

    /// Whether another thread or program may write to the entries between two readings. The builder then compares what it reads each time.
    fn may_change(&self) -> bool {
        false
    }
}

impl EdgeStream for EdgeList {
    fn vertices(&self) -> usize {
        Self::vertices(self)
    }

    fn listing(&self) -> Listing {
        Self::listing(self)
    }

    fn parts(&self) -> usize {
        self.len().div_ceil(PART)
    }

    #[inline]
    fn for_each_of(&self, part: usize, visit: impl FnMut(Vertex, Vertex)) {
        let range: Range<usize> = part * PART..self.len().min((part + 1) * PART);
        self.for_each(range, visit);
    }
}

/// A range of the entries of a graph, over all of its vertices: the entries that one rank of a cluster has read from a file.
#[derive(Debug)]
pub struct EdgeSlice {
    list: EdgeList,
    range: Range<usize>,
}

impl EdgeSlice {
    /// The entries `range` of `list`.
    ///
    /// # Panics
    /// If `range` reaches beyond the list.
    pub fn new(list: EdgeList, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= list.len(), "entries {range:?} of {}", list.len());
        Self { list, range }
    }

    /// Number of vertices of the graph, isolated ones included.
    pub fn vertices(&self) -> usize {
        self.list.vertices()
    }

    /// How the source lists an undirected edge.
    pub fn listing(&self) -> Listing {
        self.list.listing()
    }

    /// Number of entries of the slice.
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// The position in the list of entry `index` of the slice.
    pub fn position(&self, index: usize) -> usize {
        self.range.start + index
    }

    /// Whether the slice has no entries.
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Calls `visit(source, target)` for the entries `range` of the slice.
    ///
    /// # Panics
    /// If `range` reaches beyond [`len`](Self::len).
    #[inline]
    pub fn for_each(&self, range: Range<usize>, visit: impl FnMut(Vertex, Vertex)) {
        assert!(range.end <= self.len(), "entries {range:?} of {}", self.len());
        self.list.for_each(self.range.start + range.start..self.range.start + range.end, visit);
    }
}
