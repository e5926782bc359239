//! What a search is made of: directions, plans, statistics, and the level loop.

mod level_loop;
mod types;

pub use level_loop::{Engine, LevelWork, Planner, Records, level_loop, level_loop_until};
pub use types::{BfsResult, Direction, GpuKernel, LevelPlan, LevelRecord, LevelStats, Placement, Strategy};
