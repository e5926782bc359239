//! Board profiles written for a board owner: a first one from what Linux reports, changes that keep comments, bands measured here.

mod edit;
mod init;
mod manifest;
mod points;
mod topology;
mod tune;

pub use edit::{Change, edit};
pub use init::init;
pub use manifest::{ManifestError, manifest, unpack};
pub use points::operating_points;
pub(crate) use topology::clusters;
pub use tune::{TuneError, Tuned, tune};
