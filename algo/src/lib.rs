//! What is searched with [`socbfs`] but is not one tree: many roots of a graph in one pass ([`many`]), and grids of free cells without a
//! graph ([`grid`]).

pub mod grid;
pub mod many;

pub use many::{ManyOutcome, ManySearch, Visitor};
