//! The parts of a search: directions, plans, statistics, and the level loop.

mod ahead;
mod any_planner;
mod level_loop;
mod sampled;
mod types;

pub use ahead::{Ahead, Linear, Surely};
pub use any_planner::AnyPlanner;
pub use level_loop::{Engine, LevelWork, Planner, Records, Uses, level_loop, level_loop_until};
pub use sampled::SampledCosts;
pub use types::{BfsResult, Direction, GpuKernel, LevelPlan, LevelRecord, LevelStats, Placement, Strategy};
