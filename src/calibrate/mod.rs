//! What things cost on this machine, measured.

mod evaluation;
mod fit;
mod handover;
mod levels;
mod thresholds;

pub use evaluation::{Contestant, Directions, Evaluation, Judged, RootEvaluation, evaluate};
pub use fit::{fit, fit_zhang, plan as plan_by, table_regret};
pub use handover::{HandoverTable, HandoverTimes, WayTimes, measure, measure_quickly};
pub use levels::{LevelTable, LevelTimes, Turns, measure as measure_levels};
pub use thresholds::{Measured, thresholds};
