//! What `socbfs analyze` leaves behind.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Profile, Redundant, Repeated};
use crate::graph::Vertex;

/// Name of the record format, in every record.
pub const SCHEMA: &str = "socbfs-analysis";

/// Version of the record format: raised by every change that a reader of older records has to know.
pub const SCHEMA_VERSION: u32 = 1;

/// The analyses of some graphs on one machine. Times are in nanoseconds unless a name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Machine, system, build, command, time: a [`bench::Environment`](crate::bench::Environment).
    pub environment: Value,
    /// The graphs, in the order asked for.
    pub graphs: Vec<GraphAnalysis>,
}

/// One graph. An analysis that was not asked for is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphAnalysis {
    /// File or generator.
    pub name: String,
    /// What was searched: a [`bench::GraphRecord`](crate::bench::GraphRecord).
    pub graph: Value,
    /// How it was laid out: a [`bench::LayoutRecord`](crate::bench::LayoutRecord).
    pub layout: Value,
    /// The roots, as original numbers. Figures of one search are of the first.
    pub roots: Vec<Vertex>,
    /// The levels of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Redundant work, top-down and bottom-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redundant: Option<Redundant>,
    /// Repeated work of an asynchronous search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repeated>,
}

impl Analysis {
    /// A record without graphs.
    pub fn new(environment: Value) -> Self {
        Self { schema: SCHEMA.to_owned(), schema_version: SCHEMA_VERSION, environment, graphs: Vec::new() }
    }
}
