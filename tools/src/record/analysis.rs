//! What the papers count and draw.

use serde::{Deserialize, Serialize};
use socbfs::{Direction, GpuKernel, SharingMode, Vertex};
use socbfs_boards::{board::StrategyWatts, measure::HandoverTable};

use super::{Environment, Evaluation, GivenUp, GraphRecord, LayoutRecord, PoliciesEnergy};

/// The analyses of some graphs on one machine. Times are in nanoseconds unless a name says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// [`SCHEMA`](crate::analysis::SCHEMA).
    pub schema: String,
    /// [`SCHEMA_VERSION`](crate::analysis::SCHEMA_VERSION).
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

/// Policies on one graph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyComparison {
    /// The policies, in the order of every evaluation.
    pub policies: Vec<String>,
    /// Number of searches by each policy and strategy.
    pub turns: usize,
    /// Edges of the whole graph.
    pub edges: u64,
    /// Power while levels run by each strategy (`None`: not known).
    pub watts: Option<StrategyWatts>,
    /// Exact counts of the levels from the first root (empty: not counted; the evaluation has the estimates that policies read).
    #[serde(default)]
    pub exact: Vec<ExactLevel>,
    /// Times and plans of the policies.
    pub evaluation: Evaluation,
    /// Further policies, which were given up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given_up: Vec<GivenUp>,
    /// Energy of the policies, measured in alternating windows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<PoliciesEnergy>,
    /// Why `energy` is absent although it was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_energy: Option<String>,
}

/// What dropping the vertices without edges saves (Zhang 2018, table 6).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Remapped {
    /// Vertices of the input.
    pub before: u64,
    /// Vertices with an edge to another vertex.
    pub after: u64,
    /// Share of the vertices that is dropped.
    pub saved: f64,
    /// Whether the layout renumbers vertices.
    pub renumbered: bool,
    /// Time of the step that orders vertices, in seconds.
    pub seconds: f64,
    /// Share of that step in the time of construction.
    pub share: f64,
}

/// Exact counts of one level t of a search. F_t is the set of its vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExactLevel {
    /// t; the root has level 0.
    pub level: u32,
    /// Vertices of F_t.
    pub vertices: u64,
    /// Arcs that leave F_t: what a top-down step explores.
    pub arcs: u64,
    /// Vertices of F_(t+1): each is discovered by one arc.
    pub discovering: u64,
    /// Arcs from F_t to F_(t+1) beyond the discovering ones.
    pub repeat: u64,
    /// Arcs from F_t to levels up to t.
    pub backward: u64,
    /// Neighbours that a bottom-up step looks at. Each vertex outside F_0 to F_t looks at its incoming arcs in the stored order, up to the
    /// first neighbour in F_t or to the end.
    pub probes: u64,
    /// Vertices outside F_0 to F_t with an incoming arc, including those that are never reached.
    pub unvisited_vertices: u64,
    /// Arcs into these vertices.
    pub unvisited_arcs: u64,
}

/// Properties of the graph, and the levels of the search from its first root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Vertices of the input.
    pub vertices: u64,
    /// Distinct edges without self-loops (arcs of a directed graph).
    pub edges: u64,
    /// Vertices with an edge to another vertex.
    pub with_edges: u64,
    /// Mean degree m_d: arcs for each vertex with an edge.
    pub mean_degree: f64,
    /// p_h: share of the vertices with an edge whose degree is above the mean.
    pub hub_share: f64,
    /// Mean over the roots of the number of levels, the root's included.
    pub mean_levels: f64,
    /// The searches, in the order of the roots.
    pub searches: Vec<SearchedRoot>,
    /// The levels of the search from the first root.
    pub levels: Vec<ExactLevel>,
}

/// Extent of the search from one root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchedRoot {
    /// The root, as an original number.
    pub root: Vertex,
    /// Vertices reached, the root included.
    pub reached: u64,
    /// Number of levels, the root's included: D + 1.
    pub levels: u32,
}

/// Cost of the handover to one device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeviceHandover {
    /// The device.
    pub device: String,
    /// The sharing mode that searches use.
    pub way: SharingMode,
    /// Cost of every sharing mode, by size.
    pub table: HandoverTable,
}

/// The levels of a search on the CPU, in nanoseconds: medians over the turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MappedLevels {
    /// Level by level.
    pub levels: Vec<MappedLevel>,
    /// The largest arrays that are handed over: name and size in bytes.
    pub arrays: Vec<(String, u64)>,
}

/// One level, top-down.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MappedLevel {
    /// Number of the level.
    pub level: u32,
    /// Time in memory of the host alone.
    pub plain_ns: f64,
    /// Time in memory that is shared with the device, and handed to it and back before the level.
    pub mapped_ns: f64,
    /// Time of the handover alone, there and back.
    pub handover_ns: f64,
}

/// The same search over different numbers of ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankScaling {
    /// The root, as an original number.
    pub root: Vertex,
    /// Number of searches that measure each time; the median counts.
    pub turns: usize,
    /// The times, by exchange and number of ranks.
    pub times: Vec<RankTimes>,
}

/// One exchange and number of ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankTimes {
    /// `found`: each rank sends all others which vertices it found; `pairs`: a queue for each owner and an all-to-all, as in the paper.
    pub exchange: String,
    /// Number of ranks; each is one thread of this process.
    pub ranks: usize,
    /// The slowest rank's time, in seconds: median over the turns.
    pub seconds: f64,
    /// The time with one rank over this time (1 if one rank was not measured).
    pub speedup: f64,
    /// Bytes that ranks received from others, all levels and ranks.
    pub received: u64,
    /// Levels, the root's included.
    pub levels: u32,
    /// Vertices reached, the root included.
    pub reached: u64,
}

/// The redundant work of the search from one root.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Redundant {
    /// The levels in order.
    pub levels: Vec<RedundantLevel>,
}

/// One level. `arcs = discovering + repeat + backward`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RedundantLevel {
    /// The counts.
    #[serde(flatten)]
    pub counts: ExactLevel,
    /// Share of the arcs that discover nothing (`None`: the level has no arcs).
    pub excess: Option<f64>,
}

/// The vertices that both halves of an asynchronous search find, for a search divided at each of its levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeated {
    /// Share of the frontier's arcs in the first half, in thousandths.
    pub share_permille: u16,
    /// One entry for each level, in ascending order.
    pub splits: Vec<SplitLevel>,
}

/// The search divided at one level k.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SplitLevel {
    /// k.
    pub level: u32,
    /// y2: share of the reached vertices that are on levels up to k.
    pub traversed: f64,
    /// y1 by the thesis' rule (each half counts all of F_0 to F_k as visited): share of the reached vertices that both halves find.
    pub repeated_thesis: f64,
    /// y1 by this engine's rule: the other half of F_k counts as not visited.
    pub repeated_ours: f64,
    /// Levels that the first half (with the lower vertex numbers) still searches, by the thesis' rule.
    pub depth_a: u32,
    /// Levels that the second half still searches, by the thesis' rule.
    pub depth_b: u32,
    /// Levels that remain for the undivided search: D - k.
    pub left: u32,
    /// Depth of the deeper half minus `left`.
    pub extra_levels: i64,
}

/// The level with most arcs, split between CPU and GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitSweep {
    /// Number of the level.
    pub level: u32,
    /// Arcs that leave its frontier.
    pub arcs: u64,
    /// Number of searches that measure each time; the median counts.
    pub turns: usize,
    /// Results by the GPU's kernel: TG, TGM, BG, BGC.
    pub directions: Vec<SplitDirection>,
}

/// The level in one direction, by one kernel of the GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SplitDirection {
    /// The direction.
    pub direction: Direction,
    /// The kernel of the GPU's part.
    pub kernel: GpuKernel,
    /// Times by share, in ascending order.
    pub shares: Vec<SplitShare>,
    /// The share with the shortest `both_ns`, in thousandths.
    pub best_permille: u16,
    /// The share at which the GPU's part, run alone, begins to take longer than the CPU's, interpolated between the measured shares
    /// (`None`: there is no such share).
    pub crossing_permille: Option<f64>,
    /// Time of the faster device with the whole level over that of the best share: above 1, splitting pays.
    pub gain: f64,
    /// Time of the CPU's and the GPU's part while both work, over the time alone, as `corun_ns` assumes (`None`: not known).
    #[serde(default)]
    pub corun: Option<[f64; 2]>,
    /// Whether `corun` is from the calibration. Otherwise it is of this level, with the share at which both devices end closest together.
    #[serde(default)]
    pub is_calibrated: bool,
    /// Mean over the shares that split the level of |predicted - measured| / measured: by the longer part alone, and by `corun_ns`.
    #[serde(default)]
    pub off: Option<[f64; 2]>,
}

/// One share. Times are in nanoseconds. A part's time runs from its start (for the GPU: its first kernel) to its end, without copies,
/// handover and merging.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SplitShare {
    /// The GPU's share in thousandths.
    pub gpu_permille: u16,
    /// Time of the CPU's part while the GPU is idle.
    pub cpu_ns: f64,
    /// Time of the GPU's part while the CPU is idle.
    pub gpu_ns: f64,
    /// Time until both parts are done, as predicted from the parts alone and the ratios `corun`.
    #[serde(default)]
    pub corun_ns: Option<f64>,
    /// Time until both parts are done, run at the same time.
    pub both_ns: f64,
    /// Time of the whole level with both parts at the same time, copies, handover and merging included.
    pub level_ns: f64,
    /// `both_ns` over the longer of the parts run alone, which is the time predicted without `corun`: above 1, they slow each other down.
    pub contention: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Judged, LevelTable, RootEvaluation};

    impl PolicyComparison {
        /// Searches from one root that reach the whole graph, without energy.
        pub(crate) fn of_root(policies: Vec<String>, root: RootEvaluation) -> Self {
            Self {
                policies,
                turns: root.turns,
                edges: root.edges,
                watts: None,
                exact: Vec::new(),
                evaluation: Evaluation { roots: vec![root] },
                given_up: Vec::new(),
                energy: None,
                no_energy: None,
            }
        }

        /// One search of `edges` edges by `surf` alone.
        pub(crate) fn by_surf(edges: u64, judged: Judged) -> Self {
            let table = LevelTable { root: 0, strategies: Vec::new(), levels: Vec::new() };
            Self::of_root(
                vec!["surf".to_owned()],
                RootEvaluation { edges, table, oracle: judged.clone(), policies: vec![judged], turns: 1 },
            )
        }
    }
}
