//! What bottom-up levels cost on a device relative to top-down ones, from tables of levels.

use crate::record::LevelTable;
use socbfs::{
    SampledCosts,
    bfs::{Direction, Strategy},
};
use socbfs_boards::measure::DirectionCosts;
use socbfs_policy::CostModel;

/// The cost of bottom-up levels relative to top-down ones on the device of these tables, in thousandths of that ratio by [`SampledCosts`].
/// `None` if no level ran near the point at which the direction changes.
pub fn bottom_up_permille<'a>(tables: impl IntoIterator<Item = &'a LevelTable>) -> Option<u32> {
    let model = CostModel::from(SampledCosts::default());
    let mut took = DirectionCosts::default();
    for times in tables.into_iter().flat_map(|table| table.levels.iter().filter(|times| table.is_timed(times))) {
        for (strategy, direction) in [(Strategy::Tg, Direction::TopDown), (Strategy::Bg, Direction::BottomUp)] {
            if let Some(ns) = times.own_ns(strategy) {
                took.add(&model, &times.stats, direction, ns);
            }
        }
    }
    took.permille()
}
