//! Power sensors of boards and chips, and the energy of a window of time, on Linux. This crate knows nothing about graphs.
//!
//! [`discover`] finds the sensors of a machine. A [`Selection`] holds the channels that are added up, and refuses to count anything twice.
//! A [`Meter`] samples them in the background and reports the [`Energy`] of a window.
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
//! - The energy of a counter is the difference of two reads, also across a wrap, zone by zone. A power is sampled at the sensor's own
//!   interval and integrated by the trapezoidal rule. Both are clipped to the window.
//! - There is never a silent zero: a counter that stands still is not used as a sensor, a dead channel is skipped and reported, and a
//!   sensor that vanishes leaves the window incomplete.
//! - Files are opened once, so they stay readable when the process gives up root, and read with `pread`. A sample allocates nothing (unless
//!   the sensor has to run a command).

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
