//! What is measured of this machine before a first search (handovers, thresholds, directions), and the calibration file, which holds
//! what was measured earlier.

mod calibration;
mod contest;
mod directions;
mod handover;
mod searched;
mod thresholds;
mod trained;

#[cfg(test)]
pub(crate) use calibration::tests::with_device as example;
pub use calibration::{
    Calibration, CoRun, Difference, GraphNumbers, GroupTimes, Identity, Made, MeasuredDevice, OpenClIdentity, Power, SCHEMA,
    StrategyNumbers,
};
pub use contest::{Candidate, Contest, Decider};
pub use directions::{DirectionCosts, measure_bottom_up, measure_bottom_up_on_cpu};
pub use handover::{HandoverTable, HandoverTimes, WayTimes, copies_in_place, measure, measure_permitted, measure_quickly};
pub use thresholds::{Line, Measured, thresholds};
pub use trained::Trained;

/// A value replaces the usual one only if it takes at most this share of its time: a smaller gain may be noise.
pub const GAIN: f64 = 0.95;
