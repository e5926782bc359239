//! Power sensors of boards and chips, and the energy of a window of time. Knows nothing of graphs.

mod channel;
mod counter;
mod curve;
pub mod families;
mod part;
mod problem;
mod source;
mod tree;
mod units;

pub use channel::{Channel, Domain, Family, Lost, Pace, Reading, Scope, Sensor, Signal, Sink, UnknownName, monotonic};
pub use counter::{Advance, Counter};
pub use part::Part;
pub use problem::Unusable;
pub use source::Source;
pub use tree::Tree;
pub use units::{Joules, Watts};
