//! Readers, writers and generators.
