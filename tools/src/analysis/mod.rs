//! What the papers count and plot about searches, as data (Zhang 2018, Remis 2016, SURF 2022, Sunway 2021).
//!
//! All values are exact counts or measurements, never the estimates that policies read. [`Analysis`](crate::record::Analysis) is the record
//! that
//! `socbfs analyze --json` writes and `socbfs report` reads; [`mod@crate::report`] makes figures from it.

mod comparison;
mod exact;
mod graph_profile;
mod handover;
mod paper;
mod ranks;
mod record;
mod redundant;
mod repeated;
mod split;

pub use comparison::remapped;
pub use exact::{Levels, count, count_as_policies};
pub use graph_profile::profile;
pub use handover::mapped_levels;
pub use ranks::rank_scaling;
pub use record::{SCHEMA, SCHEMA_VERSION};
pub use redundant::redundant;
pub use repeated::repeated;
pub use split::split_sweep;
