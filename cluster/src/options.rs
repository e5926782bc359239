//! The options of a search over ranks.

use super::placing::RankDevice;
use socbfs::Simd;
use socbfs_policy::Policy;

/// The data that ranks send each other after a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// The vertices that were found, to all ranks.
    #[default]
    Found,
    /// Each neighbour of the frontier with its parent, to its owner (Sunway 2021, algorithm 2); top-down only.
    Pairs,
}

/// Options of a search over ranks.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// The policy that decides the direction of each level. It must decide the same on every rank, so it gets no samples. If it names a
    /// kernel of a device and the rank has a device, that kernel runs the levels of its direction.
    pub policy: Policy,
    /// The device of this rank; ranks may have different ones, or none. ([`Exchange::Pairs`] takes none.)
    pub device: Option<RankDevice>,
    /// Threads of each rank.
    pub threads: usize,
    /// CPUs the threads are bound to.
    pub cpus: Vec<usize>,
    /// Vector instructions (`None`: the best this CPU has).
    pub simd: Option<Simd>,
    /// What ranks send each other.
    pub exchange: Exchange,
    /// Vertices of the frontier that a thread processes at a time: as many as fit a cache or a local memory.
    pub batch: usize,
    /// Sort each batch first (Sunway 2021, algorithm 5), so that lists are read in the order of memory.
    pub sorted: bool,
}

impl ClusterOptions {
    /// Vertices in a batch by default: 16 KiB of numbers, half of the first-level cache of a small core.
    pub const BATCH: usize = 4096;

    pub(super) fn simd(&self) -> Simd {
        self.simd.unwrap_or_else(Simd::detect)
    }
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            policy: Policy::Published(socbfs_policy::Published::alpha_beta()),
            device: None,
            threads: 1,
            cpus: Vec::new(),
            simd: None,
            exchange: Exchange::Found,
            batch: Self::BATCH,
            sorted: true,
        }
    }
}
