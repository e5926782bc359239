//! Child processes in which the program tries a driver. A child must not outlive its parent: in a driver that hangs it would hold the
//! device for ever, unnoticed.

use std::process::Command;

use super::error::Failure;

/// Tells a process which one it ends with.
const PARENT: &str = "SOCBFS_CHILD_OF";

/// Lets what `command` starts end with this thread, however that ends. To be started by a thread that lives as long as the process.
pub(super) fn ends_with_us(command: &mut Command) {
    command.env(PARENT, std::process::id().to_string());
}

/// At the start of every process: ends with the one that started it, if that asked for it. (The process itself asks the system for this,
/// since a parent can do so only in unsafe code, between fork and exec.)
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn end_with_parent() -> Result<(), Failure> {
    use nix::{
        sys::{prctl, signal::Signal},
        unistd::getppid,
    };
    let Some(parent) = std::env::var(PARENT).ok().and_then(|parent| parent.parse::<i32>().ok()) else { return Ok(()) };
    // A driver that hangs in the kernel's or its own code hears no milder signal.
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGKILL) {
        log::debug!("this process may outlive the one that started it: {error}");
    }
    // It may have ended before the system knew.
    if getppid().as_raw() == parent { Ok(()) } else { Err(Failure::new("the program that started this one has ended")) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn end_with_parent() -> Result<(), Failure> {
    Ok(())
}
