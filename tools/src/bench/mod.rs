//! The benchmark: roots, warm-up, timed searches, energy windows, records.

mod board;
mod cluster;
mod cluster_energy;
mod default_scale;
mod energy;
mod environment;
mod record;
mod replay;
mod roots;
mod runner;
mod summary;
mod warnings;

pub use board::{BOARD_SCHEMA, BoardIdentity, BoardRecord, DriverRecord, Drivers, LeftOut};
pub use cluster::{ClusterLevel, ClusterRecord, ClusterRoot, MeasuredRoots, RankDeviceRecord, measure_cluster};
pub use cluster_energy::measure_cluster_energy;
pub use default_scale::{default_scale, kronecker_bytes};
pub use energy::{
    EnergyError, EnergyOptions, EnergyRecord, EnergySummary, EnergyWindow, LevelModel, MeasuredEnergy, Model, PoliciesEnergy, PolicyEnergy,
    StrategyPower, measure_energy, measure_policies_energy,
};
pub use environment::{Build, Cpu, Environment, System, Temperature, available_memory, temperatures};
pub use record::{
    CalibrationRecord, ChosenPolicy, GraphRecord, LayoutRecord, ParallelRecord, Record, RootRecord, SCHEMA, SCHEMA_VERSION, SearchRecord,
    ValidationRecord, read_record, scale_and_edge_factor,
};
pub use replay::{RecordError, read_plans};
pub use roots::{RootSource, roots};
pub use runner::{MeasureError, measure};
pub use summary::Summary;
pub use warnings::warnings;
