#![doc = include_str!("../README.md")]

mod channel;
mod counter;
mod curve;
mod energy;
pub mod families;
mod meter;
mod part;
mod pattern;
mod problem;
mod selection;
mod source;
mod tree;
mod units;
mod watch;

pub(crate) use channel::is_unconnected;
pub use channel::{Channel, Domain, Family, Lost, Pace, Reading, Scope, Sensor, Signal, Sink, UnknownName, monotonic};
pub use counter::{Advance, Counter};
pub use energy::{DomainPower, Energy, RailEnergy, SignalKind};
pub use families::discover;
pub use meter::{Meter, Watch, Window};
pub use part::Component;
pub use pattern::{Pattern, PatternError};
pub use problem::Unusable;
pub use selection::{Pick, Profile, Rail, SelectError, Selection, Skipped, open_named};
pub(crate) use socbfs_machine::{line, name as name_of, number, text};
pub use source::Source;
pub use tree::SystemFiles;
pub(crate) use tree::{Held, name_of_target};
pub use units::{Joules, Watts};
pub use watch::{Change, TooSlow};
