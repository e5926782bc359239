//! Breadth-first search for chips whose CPU and GPU share memory.
//!
//! Data flows one way: [`input`] reads or generates a [`graph::EdgeList`], [`graph::Layout`] turns it into the
//! structure that is searched, [`search::Search`] searches it level by level (a [`policy`] decides, an [`engine`]
//! runs), [`validate`] checks the tree, [`mod@bench`] records, [`report`] prints.

pub mod bench;
pub mod bfs;
pub mod board;
pub mod calibrate;
#[cfg(feature = "cli")]
mod cli;
#[cfg(feature = "cli")]
mod doctor;
pub mod engine;
pub mod files;
pub mod graph;
pub mod input;
mod machine;
pub mod memory;
pub mod opencl;
pub mod policy;
pub mod report;
pub mod runtime;
pub mod search;
pub mod stats;
pub mod train;
pub mod validate;

/// What the command allocates with.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::Allocator as CommandAllocator;
/// What the command's `main` calls.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use cli::main as command;

/// The README's example is compiled and run as a test of documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
