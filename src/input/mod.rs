//! Readers, writers and generators.

pub mod generate;
