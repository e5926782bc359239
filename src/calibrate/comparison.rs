//! Settings chosen by searching with each value in turn.

use crate::{graph::GraphError, input::generate::GenerateError, search::SearchError};

/// A value replaces the usual one only if it takes at most this share of its time: a smaller gain may be noise.
pub(super) const GAIN: f64 = 0.95;

/// Why settings can't be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComparisonError {
    /// A graph to measure on can't be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A graph to measure on can't be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A search fails.
    #[error(transparent)]
    Search(#[from] SearchError),
}
