//! Calibration: strategies, settings and power, measured on this machine, and the models fitted to them.

mod directions;
mod evaluation;
mod figures;
mod fit;
mod holdout;
mod json_lines;
mod levels;
mod partial;
mod plan;
mod training;
mod watts;
mod work_group;

pub use directions::bottom_up_permille;
pub use evaluation::{Contestant, evaluate};
pub use figures::numbers;
pub use fit::{fit, fit_zhang};
pub use holdout::held_out;
pub use json_lines::{JsonLines, complete_lines, read_line};
pub use levels::{Turns, measure as measure_levels};
pub use partial::{Header, MeasuredGraph, OTHER_BUILD, Partial, PartialError, PartialHeader};
pub use plan::{plans, table_regret};
pub use training::{TRAINING_GRAPHS, training_graph};
pub(crate) use watts::in_windows;
pub use watts::{PowerWindows, StrategyPowers, measure_power};
pub use work_group::{ComparisonError, best_work_group, measure_work_groups};

/// A calibration with every table and key that exists.
#[cfg(test)]
pub(crate) fn example() -> socbfs_boards::measure::Calibration {
    let text = include_str!("../../../tests/fixtures/calibration.toml");
    socbfs_boards::measure::Calibration::parse(text, "calibration.toml").unwrap()
}
