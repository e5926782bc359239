//! Roots, warm-up, timed searches, records.

mod roots;

pub use roots::{RootSource, roots};
