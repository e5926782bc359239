//! The record of a board's benchmark: Kronecker graphs of several scales, one run each, and the identity of the machine.

use crate::record::{BoardIdentity, BoardRecord, Drivers, Environment, Record};

/// Name of the format of a board's record.
pub const BOARD_SCHEMA: &str = "socbfs-board";

impl BoardRecord {
    /// A record without runs.
    pub fn new(environment: Environment, board: BoardIdentity, opencl: Drivers) -> Self {
        Self {
            schema: BOARD_SCHEMA.into(),
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
