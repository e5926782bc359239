//! Board profiles written for a board owner: a first one from what Linux reports, one with bands measured here or with best points.

mod init;
mod manifest;
mod points;
mod rewrite;
mod topology;
mod tune;

pub use init::init;
pub use manifest::{ManifestError, manifest, unpack};
pub use points::operating_points;
pub use rewrite::rewritten;
pub(crate) use topology::clusters;
pub use tune::{TuneError, tune};
