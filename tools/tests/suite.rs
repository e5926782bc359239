//! All integration tests as modules of one program, since each further test program takes seconds to link and contains the library again.
//!
//! Add a new file of tests as a module here. Tests with a counting allocator are programs of their own (see Cargo.toml).
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

#[path = "../../tests/fixtures/mod.rs"]
mod fixtures;
#[path = "../../tests/implementations/mod.rs"]
mod implementations;
#[path = "../../tests/reference/mod.rs"]
mod reference;
#[path = "../../tests/searches/mod.rs"]
mod searches;

mod analysis;
mod bands;
mod board_tools;
mod built;
mod calibrate;
mod command;
mod devices;
mod drivers;
mod fuzz;
mod gpu_command;
mod grids;
mod lost_device;
mod markdown;
mod marks;
mod pages;
mod ranks;
mod records;
mod replay;
mod security;
mod simulated_boards;
mod sweeps;
mod terminal;
mod trained;
mod vm_energy;

/// The folder of the repository.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Measures until the result is complete, or 10 times. On a busy machine the thread that reads a sensor may come so late that a window has
/// a gap, and then the window rightly has no energy.
fn undisturbed<T>(mut measure: impl FnMut() -> T, is_complete: impl Fn(&T) -> bool) -> T {
    for _ in 1..10 {
        let measured = measure();
        if is_complete(&measured) {
            return measured;
        }
    }
    measure()
}
