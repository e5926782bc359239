//! The five checks, and the faults that they find.

use std::fmt;

use serde::Serialize;

use socbfs::{
    graph::{GraphError, NONE, Vertex},
    words::plural,
};

/// One of the five checks of Graph500.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// 1: the tree has no cycle, and all parents lead to the root.
    Tree,
    /// 2: each tree edge spans exactly one level.
    TreeLevels,
    /// 3: the ends of each input edge are at most one level apart.
    EdgeLevels,
    /// 4: the tree spans the whole component.
    Component,
    /// 5: each vertex and its parent are joined by an input edge.
    TreeEdges,
}

impl Check {
    /// Number in the specification, 1 to 5.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }

    /// The condition that the check tests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tree => "the tree has no cycle",
            Self::TreeLevels => "each tree edge spans one level",
            Self::EdgeLevels => "the ends of each edge are at most one level apart",
            Self::Component => "the tree spans the whole component",
            Self::TreeEdges => "each vertex and its parent are joined by an edge",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "check {} ({})", self.number(), self.name())
    }
}

/// The first fault of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(tag = "fault", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Violation {
    /// The root is not its own parent.
    #[error("{}: the root {root} must be its own parent, but {}", self.check(), given_parent(*parent))]
    RootParent {
        /// Root.
        root: Vertex,
        /// Parent of the root ([`NONE`]: none).
        parent: Vertex,
    },
    /// The parents of a vertex run into a cycle. (A vertex other than the root that is its own parent is a cycle of length 1.)
    #[error(
        "{}: the parents of vertex {vertex} never reach the root, but run into a cycle of {} at vertex {cycle}",
        self.check(),
        plural(*length, "vertex", "vertices")
    )]
    Cycle {
        /// Smallest vertex whose parents don't lead to the root.
        vertex: Vertex,
        /// Smallest vertex on the cycle.
        cycle: Vertex,
        /// Vertices on the cycle.
        length: u64,
    },
    /// The parents of a vertex end at a vertex that was not reached or does not exist.
    #[error("{}: the parents of vertex {vertex} end at vertex {last}, whose parent {parent} {}", self.check(), absence(*exists))]
    DeadEnd {
        /// Smallest vertex whose parents don't lead to the root.
        vertex: Vertex,
        /// The last vertex with a parent.
        last: Vertex,
        /// Parent of the last vertex.
        parent: Vertex,
        /// The parent is a vertex of the graph (without a parent of its own).
        exists: bool,
    },
    /// The level given for a vertex is not that of the tree.
    #[error("{}: vertex {vertex} is given {}, but by its parents it has {}", self.check(), Level(*given), Level(*found))]
    Level {
        /// Vertex.
        vertex: Vertex,
        /// Level that came with the parents ([`NONE`]: not reached).
        given: u32,
        /// Level computed from the parents ([`NONE`]: not reached).
        found: u32,
    },
    /// The ends of an edge are too many levels apart.
    #[error("{}: edge {edge} joins {source_vertex} on level {source_level} and {target_vertex} on level {target_level}", self.check())]
    LevelGap {
        /// Position in the edge list.
        edge: usize,
        /// First end.
        source_vertex: Vertex,
        /// Level of the first end.
        source_level: u32,
        /// Second end.
        target_vertex: Vertex,
        /// Level of the second end.
        target_level: u32,
    },
    /// An edge leads out of the tree.
    #[error("{}: edge {edge} joins {reached}, which was reached, and {missed}, which was not", self.check())]
    NotSpanned {
        /// Position in the edge list.
        edge: usize,
        /// The end in the tree.
        reached: Vertex,
        /// The end outside.
        missed: Vertex,
    },
    /// The parent of a vertex is not its neighbour.
    #[error("{}: vertex {vertex} has the parent {parent}, but no edge joins them", self.check())]
    NotAnEdge {
        /// Vertex.
        vertex: Vertex,
        /// Parent of the vertex.
        parent: Vertex,
    },
}

impl Violation {
    /// The check that failed.
    pub fn check(&self) -> Check {
        match self {
            Self::RootParent { .. } | Self::Cycle { .. } | Self::DeadEnd { .. } => Check::Tree,
            Self::Level { .. } => Check::TreeLevels,
            Self::LevelGap { .. } => Check::EdgeLevels,
            Self::NotSpanned { .. } => Check::Component,
            Self::NotAnEdge { .. } => Check::TreeEdges,
        }
    }
}

/// In words: the root's parent, which is not the root.
fn given_parent(parent: Vertex) -> String {
    if parent == NONE { "it has none".to_owned() } else { format!("{parent} is given") }
}

fn absence(exists: bool) -> &'static str {
    if exists { "was not reached" } else { "is not a vertex of the graph" }
}

/// Displays a level in words.
struct Level(u32);

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == NONE { f.write_str("no level") } else { write!(f, "level {}", self.0) }
    }
}

/// Why a tree is not valid, or can't be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValidateError {
    /// A check failed: the tree is wrong.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// An array does not fit the graph.
    #[error("{found} {what} are given for a graph of {}", plural(*.vertices as u64, "vertex", "vertices"))]
    Length {
        /// Parents or levels.
        what: &'static str,
        /// Entries of the array.
        found: usize,
        /// Vertices of the graph.
        vertices: usize,
    },
    /// The root is not a vertex of the graph.
    #[error("root {root} is not a vertex: the graph has {}, numbered from 0", plural(*.vertices as u64, "vertex", "vertices"))]
    RootOutOfRange {
        /// Root.
        root: Vertex,
        /// Vertices of the graph.
        vertices: usize,
    },
    /// The edge list is broken.
    #[error(transparent)]
    Graph(#[from] GraphError),
}
