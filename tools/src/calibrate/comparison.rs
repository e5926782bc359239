//! Settings chosen by searching with each value in turn.

use socbfs::{graph::GraphError, opencl::OpenClError, search::SearchError};
use socbfs_io::generate::GenerateError;

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
    /// The device can't be opened.
    #[error(transparent)]
    Open(#[from] OpenClError),
    /// A search fails.
    #[error(transparent)]
    Search(#[from] SearchError),
}
