//! Power sensors of boards and chips, and the energy of a window of time. Knows nothing of graphs. Linux.
//!
//! [`discover`] finds what a machine has; a [`Selection`] says which channels are added up, and refuses to count anything twice; a
//! [`Meter`] samples them in the background and reports the [`Energy`] of a window.
//!
//! ```no_run
//! use socbfs_power::{Meter, Selection, Tree, discover};
//!
//! # fn main() -> Result<(), socbfs_power::SelectError> {
//! let meter = Meter::start(Selection::automatic(discover(&Tree::new("/")), None)?)?;
//! let window = meter.begin();
//! // ... the work ...
//! let energy = meter.end(window);
//! match energy.joules {
//!     Some(joules) => println!("{joules} of {}", energy.scope),
//!     None => println!("not measured: {}", energy.problem.unwrap_or_default()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! - A counter's energy is the difference of two reads, across its wrap, zone by zone; a power is integrated by trapezoid, sampled at
//!   the sensor's own interval. Both are clipped to the window.
//! - A counter that stands still is not a sensor, a dead channel is skipped and named, a sensor that vanishes leaves the window incomplete:
//!   there is never a silent zero.
//! - Files are opened once and read with `pread`; a sample allocates nothing. They stay readable when the process gives up root.

mod channel;
mod counter;
mod curve;
mod energy;
pub mod families;
mod meter;
mod part;
mod problem;
mod selection;
mod source;
mod tree;
mod units;

pub use channel::{Channel, Domain, Family, Lost, Pace, Reading, Scope, Sensor, Signal, Sink, UnknownName, monotonic};
pub use counter::{Advance, Counter};
pub use energy::{DomainPower, Energy, RailEnergy, SignalKind};
pub use families::discover;
pub use meter::{Meter, Window};
pub use part::Part;
pub use problem::Unusable;
pub use selection::{Pick, Profile, Rail, SelectError, Selection, Skipped, open_named};
pub use source::Source;
pub use tree::Tree;
pub use units::{Joules, Watts};
