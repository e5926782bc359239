//! What engines are made of: the state of a search.

mod state;

pub use state::{Allocate, Frontier, OnHost, SearchState};
