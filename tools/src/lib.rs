//! The command `socbfs`: benchmark, calibration, comparison of policies, training, reports and pages.
//!
//! [`command`] is the `main` of the program. The other items are public for its tests.

pub mod analysis;
pub mod bench;
pub mod board;
pub mod calibrate;
mod cli;
mod doctor;
pub mod maps;
pub mod record;
pub mod report;
mod shell;
pub mod sweep;
pub mod train;

pub use cli::main as command;

/// Files of other machines, for tests.
#[cfg(test)]
#[path = "../../tests/fixtures/mod.rs"]
mod fixtures;
