//! Graph500 text, JSON and tables.
