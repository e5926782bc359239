//! What a search is made of: directions, plans, statistics, and the level loop.

mod search;
mod types;

pub use search::{Outcome, Search, SearchError, SearchOptions};
pub use types::{BfsResult, Direction, LevelPlan, LevelRecord, LevelStats, Placement};
