//! The weights of the networks of [`policy::mlp`](socbfs_policy::mlp): levels measured in both directions and labelled by the faster one
//! (SURF, section 4.3), held-out graphs for the scores, and (with the feature `train`) the training itself.

mod collect;
mod examples;
#[cfg(feature = "train")]
mod fit;
mod graphs;
mod records;
mod score;

pub use collect::{Rules, collect, eligible};
pub use examples::{Example, examples};
#[cfg(feature = "train")]
pub use fit::{FitError, FitOptions, LEAST_GRAPHS, NETWORKS, fit};
pub use graphs::{every_fifth, generated};
pub use records::{LevelSample, Machine, RecordsError, RecordsFile, SearchSample, Structure, names};
pub use score::{GraphScore, Mean, mean, score};
