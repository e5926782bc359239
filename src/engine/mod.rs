//! Engines: who runs a level.
