//! The threads of a search: a [`Team`] that stays from one search to the next, and the distribution of work over it.

mod share;
mod team;

pub(crate) use share::Pieces;
pub use share::{SharedBuffers, share, share_and_sum};
pub use team::{AffinityGuard, MOST_THREADS, Team};

/// How often a thread of a [`Team`] looks for work before it looks at the clock. (Not in `team.rs`, since `tests/loom` has its own.)
const LOOKS: u32 = 64;
