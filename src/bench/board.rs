//! The benchmark of a board: Kronecker graphs of several scales, one record each, and what the machine is.

use serde::Serialize;

use super::{Environment, Record};

/// Name of the format of a board's record.
pub const BOARD_SCHEMA: &str = "socbfs-board";

/// A benchmark of a board. Serialised to JSON as it stands.
#[derive(Debug, Clone, Serialize)]
pub struct BoardRecord {
    /// [`BOARD_SCHEMA`].
    pub schema: &'static str,
    /// Version of this format; that of the runs is in each of them.
    pub schema_version: u32,
    /// Machine, system, build, command, time, as they were before the first run.
    pub environment: Environment,
    /// The board.
    pub board: BoardIdentity,
    /// The OpenCL devices of the machine.
    pub opencl: Drivers,
    /// Every root of every run passed the five checks.
    pub valid: bool,
    /// Every scale was searched, or left out for the memory that it takes.
    pub complete: bool,
    /// The runs, by rising scale.
    pub runs: Vec<Record>,
    /// Scales that were not searched.
    pub left_out: Vec<LeftOut>,
}

/// The identity of a board.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoardIdentity {
    /// Name of the profile in force.
    pub profile: String,
    /// Why that one.
    pub reason: String,
    /// The machine's own name, in the device tree or DMI.
    pub machine: Option<String>,
    /// The chip, as the profile has it.
    pub soc: Option<String>,
}

/// The OpenCL devices, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Drivers {
    /// Why there is none to be named.
    pub problem: Option<String>,
    /// Name, platform, version and driver of each.
    pub devices: Vec<DriverRecord>,
}

/// An OpenCL device and its driver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DriverRecord {
    /// Its name.
    pub name: String,
    /// Its platform.
    pub platform: String,
    /// OpenCL's version.
    pub version: String,
    /// Version of the driver.
    pub driver: String,
    /// Why it can't be used.
    pub unusable: Option<String>,
}

/// A scale that was not searched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The scale.
    pub scale: u32,
    /// Why.
    pub reason: String,
}

impl BoardRecord {
    /// A record without runs.
    pub fn new(environment: Environment, board: BoardIdentity, opencl: Drivers) -> Self {
        Self {
            schema: BOARD_SCHEMA,
            schema_version: 1,
            environment,
            board,
            opencl,
            valid: true,
            complete: false,
            runs: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// Adds a run.
    pub fn add(&mut self, run: Record) {
        self.valid &= run.valid;
        self.runs.push(run);
    }
}
