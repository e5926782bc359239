//! What the engines of a rank have in common: the ranks search in step, and count what they send.

use std::fmt;

use super::ClusterError;
use socbfs::{
    DeviceUse,
    bfs::{Direction, Engine, LevelStats},
    graph::Vertex,
    memory::OutOfMemory,
};

/// What one rank sent and received at one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct LevelTraffic {
    /// Bytes received from other ranks.
    pub received: u64,
    /// Bytes of this rank's messages, times the number of ranks that received them.
    pub sent: u64,
    /// Collective operations.
    pub messages: u32,
    /// Time from the end of this rank's own work to the arrival of all messages, in nanoseconds: other ranks' work and the network.
    pub wait_ns: u64,
    /// Time of this rank's own work at the level, in nanoseconds, without reading the messages that arrived.
    pub compute_ns: u64,
}

impl LevelTraffic {
    /// Adds the traffic of another level.
    pub fn add(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.messages += other.messages;
        self.wait_ns += other.wait_ns;
        self.compute_ns += other.compute_ns;
    }

    /// Levels whose traffic is kept. The last entry also sums up the traffic of deeper levels.
    pub(super) const KEPT: usize = 4096;

    /// Appends the traffic of a level to that of the levels before.
    pub(super) fn append_to(self, levels: &mut Vec<Self>) {
        if levels.len() < Self::KEPT {
            levels.push(self);
        } else if let Some(last) = levels.last_mut() {
            last.add(self);
        }
    }
}

/// Changes counts from those before a level to those before the next one, whose frontier is the `found` vertices with `edges` arcs.
pub(super) fn advance(stats: &mut LevelStats, direction: Direction, (found, edges, is_estimated): Found) {
    stats.level += 1;
    (stats.previous_frontier_vertices, stats.previous_direction) = (stats.frontier_vertices, Some(direction));
    (stats.frontier_vertices, stats.frontier_edges, stats.frontier_is_estimated) = (found, edges, is_estimated);
    stats.unvisited_vertices = stats.unvisited_vertices.saturating_sub(found);
    stats.unvisited_edges = stats.unvisited_edges.saturating_sub(edges);
    stats.unvisited_is_estimated |= is_estimated;
}

/// Vertices that a level found over all ranks, the arcs that leave them, and whether that number is an estimate.
pub(super) type Found = (u64, u64, bool);

/// Runs the searches of one rank with one of the exchanges.
pub(super) trait Runner: Engine<Error = Halt> {
    /// Parents by row, in original numbers.
    fn parents(&self) -> &[Vertex];
    /// The traffic at each level of the last search.
    fn traffic(&self) -> &[LevelTraffic];
    /// Gives each leaf its parent if that parent was reached, and each source itself. Parents of vertices that were not reached are
    /// [`NONE`] afterwards.
    fn finish(&mut self, sources: &[Vertex]) -> Result<(), Halt>;
    /// Whether a leaf of this rank that is not a source is a neighbour of a vertex of the deepest level that was searched. All ranks call
    /// it.
    fn leaf_is_deepest(&mut self) -> bool;

    fn threads(&self) -> usize {
        1
    }

    /// The device on which levels may run.
    fn device(&self) -> Option<DeviceUse> {
        None
    }

    /// Finds out whether any rank has a device. All ranks call it. Returns why this rank's could not be set up, if the rank continues
    /// without it.
    fn announce(&mut self) -> Option<String> {
        None
    }

    /// The error of the device, as a text for all ranks ("": none).
    fn failure(&self) -> String {
        String::new()
    }

    /// Continues on the CPU alone if the device has failed. Returns what failed.
    fn fall_back(&mut self) -> Result<Option<String>, OutOfMemory> {
        Ok(None)
    }
}

impl fmt::Debug for dyn Runner + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner").field("threads", &self.threads()).field("device", &self.device()).finish_non_exhaustive()
    }
}

/// The reason why a search stops early.
#[derive(Debug)]
pub(super) enum Halt {
    /// The device of a rank failed. The search begins again without it.
    Again,
    /// The device of a rank failed, and that rank may not continue without it.
    Failed,
    /// An error that ends the search.
    Error(ClusterError),
}

impl<E: Into<ClusterError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}
