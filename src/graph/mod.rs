//! Edge lists, compressed sparse rows, and the layout that is searched.

mod blocks;
pub mod buckets;
pub mod build;
mod columns;
mod csr;
mod edges;
mod info;
mod layout;
mod leaves;
mod order;
mod rows;
mod stop;
mod stream;

pub use blocks::{Adjacency, Block, Blocks, Lists};
pub use buckets::check_range;
pub use columns::Columns;
pub use csr::{Csr, accumulate};
pub use edges::{EdgeList, Listing, RowsError, SerializedRows};
pub use edges::{arrays, check_offsets};
pub use info::{DegreeQuantiles, GraphInfo, Remapping, info};
pub use layout::{BuildOptions, Layout, LayoutStats, Order, StepRecord};
pub use layout::{Hubs, Place, ROW_CONTINUES};
pub use leaves::Leaves;
pub use rows::{Numbers, RowArrays};
pub use stop::Stopper;
pub use stream::{EdgeSlice, EdgeStream};

use crate::words::numbered;

/// A vertex number: 32 bits everywhere (ARCHITECTURE.md, rule 4).
pub type Vertex = u32;

/// "No vertex": the parent and the level of a vertex that was not reached.
pub const NONE: Vertex = Vertex::MAX;

/// Largest number of vertices of a graph, a multiple of 64. The layout pads vertices to a multiple of 64; numbers must be left for the two
/// past the padding, for the place of every leaf's parent, and for [`NONE`].
pub const MAX_VERTICES: usize = (u32::MAX - 127) as usize;

/// Why a graph can't be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// More vertices than 32-bit numbers can name.
    #[error("the graph has {0} vertices; socbfs numbers vertices with 32 bits and takes at most {MAX_VERTICES}")]
    TooManyVertices(u64),
    /// More directed arcs than 32-bit offsets can address.
    #[error("the graph needs {0} adjacency entries; socbfs uses 32-bit offsets and takes at most {max}", max = u32::MAX)]
    TooManyArcs(u64),
    /// An edge names a vertex that the graph does not have.
    #[error("edge {index} joins {source_vertex} and {target_vertex}, but the graph has {}", numbered(*.vertices as u64))]
    VertexOutOfRange {
        /// Position of the edge in the list.
        index: usize,
        /// First end.
        source_vertex: Vertex,
        /// Second end.
        target_vertex: Vertex,
        /// Number of vertices of the graph.
        vertices: usize,
    },
    /// Another thread wrote to the arrays of edges while the graph was built from them.
    #[error("the edges changed while the graph was built from them; let no thread write to their arrays meanwhile, or pass a copy")]
    EdgesChanged,
    /// A [`Stopper`] ended the building of the graph.
    #[error("the building of the graph was stopped before it finished")]
    Stopped,
    /// There is not enough memory.
    #[error(transparent)]
    OutOfMemory(#[from] crate::memory::OutOfMemory),
}
