//! The benchmark: roots, warm-up, timed searches, energy windows, records.

mod board;
mod cluster;
mod cluster_energy;
mod default_scale;
mod energy;
mod environment;
mod grid;
mod level_energy;
mod record;
mod replay;
mod roots;
mod runner;
mod summary;
mod warnings;

pub use board::BOARD_SCHEMA;
pub use cluster::{MeasuredRoots, measure_cluster};
pub use cluster_energy::measure_cluster_energy;
pub use default_scale::{default_scale, kronecker_bytes};
pub(crate) use energy::window;
pub use energy::{EnergyError, EnergyOptions, measure_energy, measure_policies_energy, measure_repeated_energy};
pub(crate) use environment::{TICKS_PER_SECOND, slows};
pub use environment::{power_saving, temperatures};
pub use grid::grid_edges;
pub use level_energy::{LevelEnergies, LevelEnergy, LevelEnergyError, measure_level_energies};
pub use record::{RecordError, SCHEMA, SCHEMA_VERSION, read_record, scale_and_edge_factor};
pub(crate) use record::{WRITE_ONE, read_run};
pub use replay::read_plans;
pub use roots::{RootSource, roots};
pub use runner::{MeasureError, measure};
pub use socbfs::memory::available_bytes_below as available_memory;
pub use warnings::{of_machine, warnings};
