//! What is searched with [`socbfs`] but is not one tree: many roots of a graph in one pass ([`many`]), connected components
//! ([`components`]), and grids of free cells without a graph ([`grid`]).

pub mod components;
pub mod grid;
pub mod many;

pub use components::Components;
pub use many::{ManyOutcome, ManySearch, Visitor};
