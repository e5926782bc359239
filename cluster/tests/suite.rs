//! All integration tests as modules of one program, since each further test program takes seconds to link and contains the library again.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

#[path = "../../tests/implementations/mod.rs"]
mod implementations;
#[path = "../../tests/losing/mod.rs"]
mod losing;
#[path = "../../tests/reference/mod.rs"]
mod reference;
#[path = "../../tests/searches/mod.rs"]
mod searches;

mod cluster;
mod cluster_devices;
mod faults;
