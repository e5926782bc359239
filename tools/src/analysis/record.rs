//! The record that `socbfs analyze` writes.

use crate::record::{Analysis, Environment};

/// Name of the record format, in every record.
pub const SCHEMA: &str = "socbfs-analysis";

/// Version of the record format: raised by every change that matters to a reader of older records.
pub const SCHEMA_VERSION: u32 = 2;

impl Analysis {
    /// A record without graphs.
    pub fn new(environment: Environment, only: Vec<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            environment,
            only,
            graphs: Vec::new(),
            handover: Vec::new(),
            paper: None,
            warnings: Vec::new(),
        }
    }
}
