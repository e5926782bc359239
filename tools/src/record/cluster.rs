//! A search over ranks: its distribution and traffic.

use serde::{Deserialize, Serialize};
use socbfs::SharingMode;
use socbfs_cluster::{Exchange, PartCounts};
use socbfs_policy::Bands;

/// The distribution of a search over ranks, and their traffic.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// Number of processes.
    pub processes: usize,
    /// Name of the message-passing library.
    pub library: String,
    /// What the ranks exchange after each level.
    pub exchange: Exchange,
    /// Number of vertices in a batch.
    pub batch: usize,
    /// Whether batches are sorted.
    pub sorted: bool,
    /// The ranks that have a device, by rank.
    pub devices: Vec<RankDeviceRecord>,
    /// The graph and its parts.
    pub graph: PartCounts,
    /// Arcs of the rank with most arcs, over the mean.
    pub arcs_max_over_mean: f64,
    /// One entry for every root searched.
    pub roots: Vec<ClusterRoot>,
}

/// The device of a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankDeviceRecord {
    /// The rank.
    pub rank: usize,
    /// Name of the device.
    pub name: String,
    /// Version of the device's driver.
    pub driver: String,
    /// The sharing mode of its memory.
    pub memory_way: SharingMode,
    /// Arcs of the rank from which the device runs a top-down level, and unvisited vertices of the rank from which it runs a bottom-up
    /// level (`None`: it runs all levels).
    pub bands: Option<Bands>,
    /// Number of levels that the device ran, in all timed searches.
    pub levels: u64,
    /// Why the rank continued without the device, if it did.
    pub fallen_back: Option<String>,
}

/// The traffic of one search between ranks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClusterRoot {
    /// Bytes received by the rank that received most.
    pub received_most: u64,
    /// Bytes sent by all ranks together.
    pub sent: u64,
    /// Time that a rank waited for the others and for the network, in nanoseconds: mean over ranks.
    pub wait_ns: u64,
    /// The traffic after each level.
    pub levels: Vec<ClusterLevel>,
}

/// The traffic between ranks after one level.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClusterLevel {
    /// Bytes received by the rank that received most.
    pub received_most: u64,
    /// Bytes sent by all ranks together.
    pub sent: u64,
    /// Number of collective operations.
    pub messages: u32,
    /// Longest and mean time that a rank waited, in nanoseconds.
    pub wait_ns: [u64; 2],
    /// Computing time of the slowest rank over the mean.
    pub compute_max_over_mean: f64,
}
