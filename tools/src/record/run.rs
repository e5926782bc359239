//! The record of a benchmark run: raw values, so that every derived number can be checked.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use socbfs::{LayoutStats, LevelRecord, Order, Simd, StepRecord, Vertex, stats::RateSummary};
use socbfs_boards::{
    measure::{Decider, Measured},
    runtime::{Bound, Origin, SearchDevice},
};
use socbfs_policy::{ModelTerms, Objective};

use super::{ClusterRecord, EnergyRecord, Environment};

/// A whole benchmark run, in the form of its JSON. Times are in seconds except where a name says otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`](crate::bench::SCHEMA).
    pub schema: Cow<'static, str>,
    /// [`SCHEMA_VERSION`](crate::bench::SCHEMA_VERSION).
    pub schema_version: u32,
    /// Machine, system, build, command, time.
    pub environment: Environment,
    /// The graph that was searched.
    pub graph: GraphRecord,
    /// The layout of the graph.
    pub layout: LayoutRecord,
    /// The settings of the search.
    pub search: SearchRecord,
    /// The distribution over ranks, and their traffic (`None`: one process).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterRecord>,
    /// Number of roots that were requested.
    pub roots_asked: usize,
    /// False if the run ended before all roots were searched and validated.
    #[serde(default = "yes")]
    pub complete: bool,
    /// Every root passed the five checks.
    pub valid: bool,
    /// One entry for every root searched, in the order searched.
    pub roots: Vec<RootRecord>,
    /// Statistics (`None` where a root failed validation or a search traversed no edge: then there is no speed).
    pub summary: Option<Summary>,
    /// Energy, or why it was not measured.
    pub energy: EnergyRecord,
    /// Possible disturbances of the figures.
    pub warnings: Vec<String>,
}

/// The graph as its source gives it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GraphRecord {
    /// File name, or the generator with every parameter.
    pub source: String,
    /// True for a generated graph.
    pub generated: bool,
    /// log2 of the vertices, rounded up (Graph500's SCALE; exact for a Kronecker graph).
    pub scale: u32,
    /// Edges per vertex, rounded (Graph500's edgefactor; exact for a Kronecker graph).
    pub edge_factor: u64,
    /// Whether arcs keep their direction.
    pub directed: bool,
    /// Time to read or generate the graph.
    pub acquisition_seconds: f64,
    /// Counts of vertices and edges.
    #[serde(flatten)]
    pub counts: LayoutStats,
}

/// The searched structure and how it was built.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LayoutRecord {
    /// Order that was requested.
    pub order_asked: Order,
    /// Order that was chosen.
    pub order: Order,
    /// Time of the whole construction, from edge list in memory to searchable structure.
    pub construction_seconds: f64,
    /// Bytes of the structure.
    pub bytes: u64,
    /// The steps of construction.
    pub steps: Vec<StepRecord>,
}

/// The settings of the search.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SearchRecord {
    /// The requested policy, as on the command line.
    pub policy: String,
    /// The policy that planned the levels, and why it was chosen.
    pub chosen: ChosenPolicy,
    /// Threads that searched.
    pub threads: usize,
    /// Vector instructions of the search.
    pub simd: Simd,
    /// CPUs to which the threads were bound, in order (empty: not bound).
    pub cpus: Vec<usize>,
    /// Name of the board profile.
    pub board: String,
    /// OpenCL devices (none: the CPU alone).
    pub devices: Vec<SearchDevice>,
    /// Thresholds between CPU and GPU, where they were measured before the search.
    pub thresholds: Option<Measured>,
    /// Why the search continued without its devices, if it did.
    pub fallen_back: Option<String>,
    /// The calibration from which the policy may come (`None`: none was used).
    pub calibration: Option<CalibrationRecord>,
    /// The objective of the cost model.
    pub objective: Objective,
}

/// The policy that planned the levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChosenPolicy {
    /// The policy, as on the command line.
    pub policy: String,
    /// Where the policy came from: a flag, the environment, a board, a calibration, or built in.
    pub origin: Origin,
    /// Why this policy was chosen.
    pub reason: String,
    /// The bounds with which the policy places levels (empty: it has none).
    pub bands: Vec<Bound>,
}

/// The calibration that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CalibrationRecord {
    /// File of the calibration.
    pub file: String,
    /// Date of the calibration, RFC 3339 in UTC.
    pub date: String,
    /// Commit of socbfs that made it.
    pub commit: String,
    /// Terms of its model.
    pub form: ModelTerms,
    /// What plans the levels where `auto` minimises time on the CPU, or on a device that was named.
    pub auto: Decider,
}

/// The search from one root.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RootRecord {
    /// The root, as an original number.
    pub root: Vertex,
    /// Number of sources of the search: 1, the root (as in records that do not say it).
    #[serde(default = "one")]
    pub sources: u64,
    /// Vertices reached, the root included.
    pub reached: u64,
    /// Levels of the tree, the root's included.
    pub levels: u32,
    /// Edges for TEPS: both ends reached; repeats counted, self-loops not.
    pub edges: u64,
    /// Time from the call to the parents in original numbers (`None` where validation failed).
    pub seconds: Option<f64>,
    /// Part of `seconds` that mapped parents back to original numbers (0 where the layout has these numbers, `None` where validation
    /// failed).
    pub mapping_seconds: Option<f64>,
    /// Result of the five checks.
    pub validation: ValidationRecord,
    /// The records of the levels (empty where validation failed).
    pub level_records: Vec<LevelRecord>,
}

fn one() -> u64 {
    1
}

fn yes() -> bool {
    true
}

/// The result of the five checks for one root.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ValidationRecord {
    /// Whether all five checks passed.
    pub passed: bool,
    /// The first check that failed, with its vertices.
    pub violation: Option<String>,
    /// Time of the checks.
    pub seconds: f64,
}

/// Statistics of a run in which every root passed validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of roots.
    pub roots: usize,
    /// Seconds of a search, mapping back to original numbers included.
    pub seconds: socbfs::stats::Summary,
    /// Edges for TEPS of a search.
    pub edges: socbfs::stats::Summary,
    /// Traversed edges per second, mapping included.
    pub teps: RateSummary,
    /// Traversed edges per second without the mapping back to original numbers.
    pub teps_without_mapping: RateSummary,
    /// Share of the search time that the mapping took (0: the layout does not renumber vertices).
    pub mapping_share: f64,
    /// Harmonic mean over the roots of (edges of the whole graph / time): the metric of Remis 2016. It also counts edges that were not
    /// traversed, so it can't be compared with TEPS.
    pub whole_graph_edges_per_second: f64,
    /// Seconds of the five checks of a tree.
    pub validation_seconds: socbfs::stats::Summary,
}
