//! The record that `socbfs analyze` writes.

use serde::{Deserialize, Serialize};

use super::{DeviceHandover, Dropped, MappedLevels, PolicyComparison, Profile, RankScaling, Redundant, Remapped, Repeated, SplitSweep};
use crate::bench::{Environment, GraphRecord, LayoutRecord};
use socbfs::graph::Vertex;

/// Name of the record format, in every record.
pub const SCHEMA: &str = "socbfs-analysis";

/// Version of the record format: raised by every change that matters to a reader of older records.
pub const SCHEMA_VERSION: u32 = 2;

/// The analyses of some graphs on one machine. Times are in nanoseconds unless a name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// [`SCHEMA`].
    pub schema: String,
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Machine, system, build, command, time.
    pub environment: Environment,
    /// Analyses that were requested (empty: all).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// The graphs, in the order of the request.
    pub graphs: Vec<GraphAnalysis>,
    /// Cost of the handover, by device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handover: Vec<DeviceHandover>,
    /// SURF's network without each of its inputs, over all graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<Dropped>,
    /// A paper's figures, each with that of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paper: Option<PaperComparison>,
    /// The analyses that were left out, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The analyses of one graph. Those that were not requested are absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GraphAnalysis {
    /// File or generator.
    pub name: String,
    /// The graph that was searched.
    pub graph: GraphRecord,
    /// The layout that was searched.
    pub layout: LayoutRecord,
    /// The roots, as original numbers. Analyses of a single search use the first one.
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
    /// The level with most arcs, shared by CPU and GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitSweep>,
    /// Times of levels in memory of the host alone, and with a handover before each level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<MappedLevels>,
    /// Strategies and policies, level by level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<PolicyComparison>,
    /// One search over several ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RankScaling>,
    /// What renumbering saves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remapped: Option<Remapped>,
}

/// A paper whose experiments are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Zhang et al. 2018, "An adaptive breadth-first search algorithm on integrated architectures".
    Zhang,
    /// Remis 2016, "Breadth-first search for social network graphs on heterogenous platforms" (thesis).
    Remis,
    /// Yoon and Oh 2022, "SURF: direction-optimizing breadth-first search using workload state on GPUs".
    Surf,
    /// Zhou et al. 2021, "BFS parallel algorithm based on Sunway TaihuLight".
    Sunway,
}

/// The figures of a paper, each with that of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaperComparison {
    /// The paper.
    pub paper: Paper,
    /// Whether smaller graphs than the paper's were searched.
    pub quick: bool,
    /// Claims of its text, figures and means.
    pub claims: Vec<Claim>,
    /// The cells of its tables.
    #[serde(default)]
    pub cells: Vec<Claim>,
    /// Graphs of the paper that were searched: the paper's name, and the name here.
    #[serde(default)]
    pub searched: Vec<(String, String)>,
    /// Graphs of the paper that were not searched: the name, and the reason or where to get the graph.
    pub missing: Vec<(String, String)>,
}

/// One figure of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The quantity, with its unit.
    pub what: String,
    /// The table, figure or section of the paper.
    pub place: String,
    /// The paper's value.
    pub paper: f64,
    /// The value of this machine (`None`: it can't be compared).
    pub ours: Option<f64>,
    /// Why the values can't be compared, or how far they can.
    pub note: String,
}

impl Analysis {
    /// A record without graphs.
    pub fn new(environment: Environment, only: Vec<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            environment,
            only,
            graphs: Vec::new(),
            handover: Vec::new(),
            dropped: None,
            paper: None,
            warnings: Vec::new(),
        }
    }
}
