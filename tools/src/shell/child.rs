//! Child processes in which the program tries an OpenCL driver. A child must not outlive its parent: if the driver hangs, the child would
//! hold the device for ever, unnoticed.

use std::process::Command;

use super::error::Failure;

/// Environment variable with the process id of the parent. A child that has it ends with that parent.
const PARENT: &str = "SOCBFS_CHILD_OF";

/// Makes the process that `command` starts end when the thread that started it ends, for any reason. That thread must therefore live as
/// long as this process.
pub(crate) fn ends_with_us(command: &mut Command) {
    command.env(PARENT, std::process::id().to_string());
}

/// Makes this process end with its parent, if the parent asked for it with [`ends_with_us`]. Every process calls this at its start. (The
/// parent could set it up only in unsafe code, between fork and exec.)
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn end_with_parent() -> Result<(), Failure> {
    use nix::{
        sys::{prctl, signal::Signal},
        unistd::getppid,
    };
    let Some(parent) = std::env::var(PARENT).ok().and_then(|parent| parent.parse::<i32>().ok()) else { return Ok(()) };
    // A process whose driver hangs may not react to other signals.
    if let Err(error) = prctl::set_pdeathsig(Signal::SIGKILL) {
        log::debug!("this process may outlive the one that started it: {error}");
    }
    // The parent may have ended before `set_pdeathsig` took effect.
    if getppid().as_raw() == parent { Ok(()) } else { Err(Failure::new("the program that started this one has ended")) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn end_with_parent() -> Result<(), Failure> {
    Ok(())
}
