//! One search over several machines: each holds a part of the graph, and after each level they exchange the vertices that they found.
//!
//! The parts, from the lowest layer up:
//!
//! - [`Ranks`]: the collective operations that the other parts need. [`ThreadRanks`] are threads of this process; with the feature `mpi`,
//!   `MpiRanks` are the processes of `mpirun`.
//! - [`Deal`]: vertices are dealt to ranks by words of 64, in the order of degrees, so that hubs, arcs and bitmaps are spread evenly.
//! - [`read`]: each rank reads a slice of a file, and ranks send each other the edges that they need ([`Edges`]).
//! - [`Part`]: the part of the graph that a rank keeps: the adjacency lists of its own vertices, in both directions; about 1/P of the arcs.
//! - [`ClusterSearch`]: every rank has the visited bits and the frontier of all vertices, so all plan the same level without an exchange.
//!   One exchange per level sends the vertices found, as gaps where these are shorter than bits. Parents are never sent. Leaves are left
//!   out of the search.
//! - [`RankDevice`]: a rank with a device expands its part of a level there if the device is faster. The other ranks need not know.
//! - [`Exchange::Pairs`]: for comparison, the plain scheme of Sunway 2021: a queue for each owner, and an all-to-all exchange.
//! - [`ClusterValidator`]: the five checks of Graph500; each rank checks its own vertices against the edges as listed.
//!
//! Sources: Zhou et al. 2021 ("BFS Parallel Algorithm Based on Sunway TaihuLight", queues per owner, sorted batches); Beamer et al. 2013
//! (distributed bottom-up); Lv et al. 2012 (bitmaps and lists compressed, vertices sieved).

mod bands;
#[cfg(test)]
#[path = "../tests/damaged/mod.rs"]
mod damaged;
mod deal;
mod edges;
mod host;
mod levels;
mod message;
#[cfg(feature = "mpi")]
mod mpi;
mod options;
mod pairs;
mod part;
mod placing;
mod ranks;
mod reading;
mod runner;
mod search;
mod validate;

pub use self::{
    bands::measured_bands,
    deal::Deal,
    edges::Edges,
    host::{Host, all_gather, is_launched},
    options::{ClusterOptions, Exchange},
    part::{Part, PartCounts},
    placing::{Places, PreparedRank, RankDevice},
    ranks::{Board, Messages, Ranks, ThreadRanks, max, sum, texts, values},
    reading::{read, read_on_first},
    runner::LevelTraffic,
    search::ClusterSearch,
    validate::{ClusterValidator, RankTree},
};
#[cfg(feature = "mpi")]
pub use mpi::MpiRanks;

use socbfs::{
    GpuEngineError, SimdError,
    graph::{GraphError, Vertex},
    memory::OutOfMemory,
    words::{naming, numbered},
};

/// The reason why a search over several ranks can't be set up or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The graph does not fit, or is wrong.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The CPU does not have the vector instructions.
    #[error(transparent)]
    Simd(#[from] SimdError),
    /// Threads could not be started.
    #[error("{0}")]
    Threads(String),
    /// The root is not a vertex of the graph.
    #[error("root {root} is not a vertex: the graph has {}", numbered(*.vertices as u64))]
    RootOutOfRange {
        /// The given root.
        root: Vertex,
        /// Vertices of the graph.
        vertices: usize,
    },
    /// Ranks were given different sources.
    #[error("rank {rank} searches from another root, or other sources, than rank 0; give all ranks the same")]
    OtherSources {
        /// The first rank that differs from rank 0.
        rank: usize,
    },
    /// Ranks were given different graphs.
    #[error("the graph of rank {rank} differs from that of rank 0 in its {what}; give all ranks the same file or generator")]
    Different {
        /// What differs.
        what: &'static str,
        /// The first rank that differs from rank 0.
        rank: usize,
    },
    /// A rank has a different file than rank 0.
    #[error("rank {rank}: {path}: {difference}; copy rank 0's file there, or give --from-rank-0")]
    OtherFile {
        /// The path that was given to that rank.
        path: String,
        /// What differs.
        difference: String,
        /// The first rank that differs from rank 0.
        rank: usize,
    },
    /// A rank can't read the graph. Every rank returns this error.
    #[error("rank {rank}: {reason}")]
    File {
        /// The rank.
        rank: usize,
        /// What it could not read, and why.
        reason: String,
    },
    /// The device of this rank can't be used.
    #[error("{}", naming(device, source))]
    Gpu {
        /// The device.
        device: String,
        /// The error of the device.
        #[source]
        source: GpuEngineError,
    },
    /// Another rank can't be set up, so there is no search.
    #[error("rank {rank} can't search: {reason}")]
    SetUp {
        /// The rank.
        rank: usize,
        /// The error of that rank.
        reason: String,
    },
    /// The device of a rank failed during a search.
    #[error("the search failed on the device of rank {rank}, {reason}")]
    Device {
        /// The rank.
        rank: usize,
        /// The device, and what failed.
        reason: String,
    },
    /// A message of a rank is malformed.
    #[error("the data from rank {rank} are malformed: is the network or its memory faulty?")]
    Message {
        /// The rank.
        rank: usize,
    },
    /// The pairs of one level may exceed one message.
    #[error(
        "this rank has {arcs} arcs, and a level of --exchange pairs may send 8 bytes for each: more than the 2 GiB of one message; use more ranks"
    )]
    TooManyPairs {
        /// Arcs of this rank.
        arcs: u64,
    },
}

impl ClusterError {
    /// Whether all ranks return this error, with the same text, if one of them does.
    pub fn is_of_all(&self) -> bool {
        matches!(
            self,
            Self::File { .. }
                | Self::OtherFile { .. }
                | Self::Different { .. }
                | Self::RootOutOfRange { .. }
                | Self::OtherSources { .. }
                | Self::Device { .. }
        )
    }
}

impl From<OutOfMemory> for ClusterError {
    fn from(error: OutOfMemory) -> Self {
        Self::Graph(error.into())
    }
}
