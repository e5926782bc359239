//! Measurements of this machine: strategies, handovers, settings, power.

mod bands;
mod calibration;
mod claims;
mod comparison;
mod directions;
mod evaluation;
mod figures;
mod fit;
mod handover;
mod holdout;
mod json_lines;
mod levels;
mod parallel;
mod partial;
mod plan;
mod thresholds;
mod trained;
mod training;
mod watts;
mod work_group;

pub use bands::bands;
#[cfg(test)]
pub(crate) use calibration::tests::with_device as example;
pub use calibration::{
    Calibration, Difference, GraphNumbers, Identity, Made, MeasuredDevice, OpenClIdentity, Power, SCHEMA, StrategyNumbers,
};
pub use claims::choose_claims;
pub use comparison::ComparisonError;
pub use directions::{bottom_up_permille, measure_bottom_up};
pub use evaluation::{Contestant, Directions, Evaluation, Judged, RootEvaluation, evaluate};
pub use figures::numbers;
pub use fit::{fit, fit_zhang};
#[cfg(all(test, feature = "cli"))]
pub(crate) use handover::tests::times as handover_times;
pub use handover::{HandoverTable, HandoverTimes, WayTimes, measure, measure_permitted, measure_quickly};
pub use holdout::{Candidate, Contest, Decider, held_out};
pub use json_lines::{JsonLines, complete_lines};
pub use levels::{LevelTable, LevelTimes, SHARES, Turns, measure as measure_levels};
pub use parallel::{ParallelKey, ParallelTimes, best_parallel, measure_parallel};
pub use partial::{Header, MeasuredGraph, OTHER_BUILD, Partial, PartialError, PartialHeader};
pub use plan::{plans, table_regret};
pub use thresholds::{Measured, thresholds};
pub use trained::Trained;
pub use training::{TRAINING_GRAPHS, training_graph};
pub(crate) use watts::impossible;
pub use watts::{PowerWindows, StrategyPowers, measure_power, strategy_watts, watts_of};
pub use work_group::{GroupTimes, best_work_group, measure_work_groups};
