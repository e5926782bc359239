//! What engines are made of: the state of a search, and the team of threads that runs its levels.

mod state;
mod team;

pub use state::{Allocate, Frontier, OnHost, SearchState};
pub use team::{AffinityGuard, MOST_THREADS, Team};

/// How often a thread of a [`Team`] looks for work before it looks at the clock. (Not in `team.rs`, since `tests/loom` has its own.)
const LOOKS: u32 = 64;
