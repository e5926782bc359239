//! The inner loops of levels on the CPU, for searches that keep a state of their own: those of a cluster's rank, and from many roots.

pub use crate::cpu::{BottomUp, FoundCounts, SPREAD, SimdKernels, expand_rows};
