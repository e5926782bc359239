//! Edge lists as files and generators give them.

use std::ops::Range;

use super::{GraphError, MAX_VERTICES, Vertex};

/// How the source of an edge list lists an undirected edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Listing {
    /// Once, in either direction (the format says so, or a generator made it).
    Once,
    /// Twice, once in each direction (the format says so: METIS, an undirected `.sg`).
    BothDirections,
    /// The format does not say; the builder finds out (see [`Layout::build`](super::Layout::build)).
    Unknown,
}

/// Edges exactly as a file or a generator lists them: self-loops and repeats included, original vertex numbers.
#[derive(Debug)]
pub struct EdgeList {
    vertices: usize,
    edges: Vec<[Vertex; 2]>,
    listing: Listing,
}

impl EdgeList {
    /// Takes `edges` over `0..vertices`.
    ///
    /// # Errors
    /// [`GraphError::TooManyVertices`]; ends out of range are found by the builder, which reads every edge anyway.
    pub fn new(vertices: usize, edges: Vec<[Vertex; 2]>, listing: Listing) -> Result<Self, GraphError> {
        if vertices > MAX_VERTICES {
            return Err(GraphError::TooManyVertices(vertices as u64));
        }
        Ok(Self { vertices, edges, listing })
    }

    /// Number of vertices, isolated ones included.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// Number of entries as listed (an undirected edge that is listed in both directions counts twice).
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// True where no edge is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the source lists an undirected edge.
    pub fn listing(&self) -> Listing {
        self.listing
    }

    /// Calls `visit(source, target)` for the entries `range` in the order of the source.
    pub fn for_each(&self, range: Range<usize>, mut visit: impl FnMut(Vertex, Vertex)) {
        for &[source, target] in &self.edges[range] {
            visit(source, target);
        }
    }
}
