//! Placeholder until the fit is merged.

use super::LevelTable;
use crate::{
    bfs::Strategy,
    policy::{CostModel, Form, StrategyCost},
};

/// Fit.
pub fn fit(tables: &[LevelTable]) -> Option<CostModel> {
    if tables.is_empty() {
        return None;
    }
    let mut model = CostModel::default();
    for strategy in Strategy::ALL {
        if tables.iter().any(|table| table.strategies.contains(&strategy)) {
            model.strategies[strategy as usize] = Some(StrategyCost { ns: 1.0, watts: None });
        }
    }
    Some(model)
}

/// Fit.
pub fn fit_zhang(tables: &[LevelTable]) -> Option<CostModel> {
    fit(tables).map(|model| CostModel { form: Form::Zhang, ..model })
}
