//! What things cost on this machine, measured.

mod handover;

pub use handover::{HandoverTable, HandoverTimes, WayTimes, measure, measure_quickly};
