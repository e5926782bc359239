//! The record of a search over a grid.

use std::{borrow::Cow, path::PathBuf};

use serde::Serialize;
use socbfs::Simd;
use socbfs_algo::grid::{Cell, Connectivity, GridOutcome};

use super::{EnergyRecord, Environment};

/// A search over a grid, in the form of its JSON.
#[derive(Debug, Clone, Serialize)]
pub struct GridRecord {
    /// `socbfs-grid`.
    pub schema: &'static str,
    /// Its version, 1.
    pub schema_version: u32,
    /// Machine, system, build, command, time.
    pub environment: Environment,
    /// The map.
    pub map: MapRecord,
    /// To which cells a step may lead.
    pub connectivity: Connectivity,
    /// Threads that searched.
    pub threads: usize,
    /// CPUs to which the threads were bound, in order (empty: not bound).
    pub cpus: Vec<usize>,
    /// Vector instructions of the search.
    pub simd: Simd,
    /// The sources, as given.
    pub sources: Vec<Cell>,
    /// The cell at which the search ended, if it was reached (`None`: no target was given).
    pub target: Option<Cell>,
    /// The distance at which the search ended at the latest (`None`: no limit was given).
    pub depth: Option<u32>,
    /// What the search did.
    pub outcome: GridOutcome,
    /// Steps between two cells that were reached, those in both directions once: the edges for TEPS.
    pub edges: u64,
    /// Time from the call to the distances, in seconds.
    pub seconds: f64,
    /// The time of the first search, which was not counted: memory and caches were cold.
    pub first_seconds: f64,
    /// The cells from the target to its nearest source, both included (`None`: no target, or it was not reached).
    pub path: Option<Vec<Cell>>,
    /// The middle of each of them in metres, x and y in the frame of the map, with `--metres`.
    pub path_metres: Option<Vec<[f64; 2]>>,
    /// Energy, with `--energy`, or why it was not measured (`None`: it was not asked for).
    pub energy: Option<EnergyRecord>,
}

/// A map and how it was read.
#[derive(Debug, Clone, Serialize)]
pub struct MapRecord {
    /// The file.
    pub file: PathBuf,
    /// Its format.
    pub format: Cow<'static, str>,
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub columns: usize,
    /// Free cells.
    pub free: u64,
    /// The radius by which blocked cells were inflated before (`None`: they were not).
    pub inflated_cells: Option<u32>,
    /// Cells of which the map does not say whether they are free.
    pub unknown: u64,
    /// Whether those were taken as free.
    pub unknown_is_free: bool,
    /// Time to read the file, in seconds.
    pub seconds: f64,
}
