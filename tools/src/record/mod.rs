//! Records: all that is written and read as JSON. Types without behaviour; the rooms that make and show them have it.

mod analysis;
mod board;
mod cluster;
mod energy;
mod environment;
mod grid;
mod policies;
mod run;
mod sweep;

pub use analysis::*;
pub use board::*;
pub use cluster::*;
pub use energy::*;
pub use environment::*;
pub use grid::*;
pub(crate) use policies::STRATEGIES;
pub use policies::*;
pub use run::*;
pub use sweep::*;
