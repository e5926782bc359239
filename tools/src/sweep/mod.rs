//! The efficiency frontier: the same searches at many operating points, and which points nothing beats in both speed and power.

mod axes;
mod clocks;
mod live;
mod plan;
mod run;

pub use axes::{Axes, Choice, Spot};
pub use clocks::{ClockError, Clocks, Domain, Turn, domains};
pub use live::{Live, SweepError, point_window, usable_cpus};
pub use plan::{Done, best, frontier, next, score};
pub use run::{Ended, Machine, SweepOptions, Tried, sweep};

/// The schema of a sweep's record.
pub const SWEEP_SCHEMA: &str = "socbfs-sweep";
/// Version of the schema.
pub const SWEEP_SCHEMA_VERSION: u32 = 1;
