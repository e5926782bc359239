//! The record of a board's benchmark: Kronecker graphs of several scales, one run each, and the identity of the machine.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Environment, Record};

/// A benchmark of a board, in the form of its JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BoardRecord {
    /// [`BOARD_SCHEMA`](crate::bench::BOARD_SCHEMA).
    pub schema: Cow<'static, str>,
    /// Version of this format. Each run has the version of its own format.
    pub schema_version: u32,
    /// Machine, system, build, command and time before the first run.
    pub environment: Environment,
    /// The board.
    pub board: BoardIdentity,
    /// The OpenCL devices of the machine.
    pub opencl: Drivers,
    /// Every root of every run passed the five checks.
    pub valid: bool,
    /// Every scale was searched, or left out because memory is short.
    pub complete: bool,
    /// The runs, in ascending order of scale.
    pub runs: Vec<Record>,
    /// Scales that were not searched.
    pub left_out: Vec<LeftOut>,
}

/// The identity of a board.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BoardIdentity {
    /// Name of the board profile that was used.
    pub profile: String,
    /// Why this profile was chosen.
    pub reason: String,
    /// Name of the machine in the device tree or DMI.
    pub machine: Option<String>,
    /// The chip, as the profile names it.
    pub soc: Option<String>,
}

/// The OpenCL devices, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Drivers {
    /// Why no device can be listed.
    pub problem: Option<String>,
    /// The devices, each with its driver.
    pub devices: Vec<DriverRecord>,
}

/// An OpenCL device and its driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverRecord {
    /// Name of the device.
    pub name: String,
    /// Name of its platform.
    pub platform: String,
    /// OpenCL version of the device.
    pub version: String,
    /// Version of the driver.
    pub driver: String,
    /// Why the device can't be used (`None`: it can).
    pub unusable: Option<String>,
}

/// A scale that was not searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The scale.
    pub scale: u32,
    /// Why it was not searched.
    pub reason: String,
}
