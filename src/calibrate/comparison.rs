//! Settings that are chosen by searches with each value in turn.

use crate::{graph::GraphError, input::generate::GenerateError, search::SearchError};

/// Another value than the usual one has to take at most this part of its time: less may be noise.
pub(super) const GAIN: f64 = 0.95;

/// Why settings can't be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComparisonError {
    /// A graph to measure on can't be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// It can't be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A search on it fails.
    #[error(transparent)]
    Search(#[from] SearchError),
}
