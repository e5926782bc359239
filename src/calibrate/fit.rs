//! Placeholder until the fit is merged.

use super::LevelTable;
use crate::{
    bfs::{Direction, Strategy},
    policy::{CostModel, Form, StrategyCost},
};

/// Fit.
pub fn fit(tables: &[LevelTable]) -> Option<CostModel> {
    fit_zhang(tables).map(|model| CostModel { form: Form::Full, ..model })
}

/// Fit.
pub fn fit_zhang(tables: &[LevelTable]) -> Option<CostModel> {
    let mut model = CostModel { form: Form::Zhang, ..CostModel::default() };
    for strategy in Strategy::ALL {
        let (mut edges, mut ns) = (0.0, 0.0);
        for level in tables.iter().flat_map(|table| &table.levels) {
            if let Some(own) = level.own_ns(strategy) {
                ns += own;
                edges += match strategy.direction() {
                    Direction::TopDown => level.stats.frontier_edges,
                    Direction::BottomUp => level.stats.unvisited_edges,
                } as f64;
            }
        }
        if edges > 0.0 {
            *model.of_mut(strategy) = Some(match strategy.direction() {
                Direction::TopDown => StrategyCost { frontier_edge_ns: ns / edges, ..StrategyCost::default() },
                Direction::BottomUp => StrategyCost { unvisited_edge_ns: ns / edges, ..StrategyCost::default() },
            });
        }
    }
    model.tc.and(model.bc).map(|_| model)
}
