//! Edges that are gone through part by part, several times, without all of them being in memory at once.

use std::ops::Range;

use super::{EdgeList, Listing, Vertex};

/// Entries of one part: what a thread takes at a time.
pub const PART: usize = 256 << 10;

/// A source of edges that gives the same entries every time it is gone through.
///
/// An [`EdgeList`] is one; so is a generator ([`GeneratedEdges`](crate::input::generate::GeneratedEdges)), which makes its edges anew each
/// time: a cluster's ranks keep their own part of a graph that none of them could hold.
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
    /// May panic where `part` is not below [`parts`](Self::parts).
    fn for_each_of(&self, part: usize, visit: impl FnMut(Vertex, Vertex));

    /// A name for entry `index` of `part` in an error: its position in the list.
    fn position(&self, part: usize, index: usize) -> usize {
        part * PART + index
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
