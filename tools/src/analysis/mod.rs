//! What the papers count and plot about searches, as data (Zhang 2018, Remis 2016, SURF 2022, Sunway 2021).
//!
//! All values are exact counts or measurements, never the estimates that policies read. [`Analysis`] is the record that
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

pub use comparison::{Dropped, DroppedInput, PolicyComparison, Remapped, dropped_inputs, remapped};
pub use exact::{ExactLevel, Levels, count, count_as_policies};
pub use graph_profile::{Profile, SearchedRoot, profile};
pub use handover::{DeviceHandover, MappedLevel, MappedLevels, mapped_levels};
pub use ranks::{RankScaling, RankTimes, rank_scaling};
pub use record::{Analysis, Claim, GraphAnalysis, Paper, PaperComparison, SCHEMA, SCHEMA_VERSION};
pub use redundant::{Redundant, RedundantLevel, redundant};
pub use repeated::{MOST_SPLITS, Repeated, SplitLevel, repeated};
pub use split::{SplitDirection, SplitShare, SplitSweep, split_sweep};
