//! Checks of a search tree.
