//! What the tests of all families have in common.

pub(crate) mod fixture;
mod fuzz;
