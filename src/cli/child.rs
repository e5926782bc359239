//! Child processes in which the program tries a driver. A child must not outlive its parent: in a driver that hangs it would hold the
//! device for ever, unnoticed.

use std::process::Command;

use super::error::Failure;

/// The environment variable that names the parent with which a process ends.
const PARENT: &str = "SOCBFS_CHILD_OF";

/// Makes the process that `command` starts end with this thread, for any reason. The thread has to live as long as its process.
pub(super) fn ends_with_us(command: &mut Command) {
    command.env(PARENT, std::process::id().to_string());
}

/// Called at the start of every process: makes it end with its parent, if the parent asked for that. (The child asks the system for this
/// itself, since a parent can do so only in unsafe code, between fork and exec.)
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn end_with_parent() -> Result<(), Failure> {
    use nix::{
        sys::{prctl, signal::Signal},
        unistd::getppid,
    };
    let Some(parent) = std::env::var(PARENT).ok().and_then(|parent| parent.parse::<i32>().ok()) else { return Ok(()) };
    // A driver that hangs in the kernel's or its own code reacts to no milder signal.
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
