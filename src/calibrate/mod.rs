//! What things cost on this machine, measured.

mod handover;
mod thresholds;

pub use handover::{HandoverTable, HandoverTimes, WayTimes, measure, measure_quickly};
pub use thresholds::{Measured, thresholds};
