//! Records: all that is written and read as JSON. Types without behaviour; the rooms that make and show them have it.

mod analysis;
mod board;
mod cluster;
mod energy;
mod environment;
mod grid;
mod policies;
mod run;
mod sweep;

pub use analysis::{
    Analysis, Claim, DeviceHandover, ExactLevel, GraphAnalysis, MappedLevel, MappedLevels, Paper, PaperComparison, PolicyComparison,
    Profile, RankScaling, RankTimes, Redundant, RedundantLevel, Remapped, Repeated, SearchedRoot, SplitDirection, SplitLevel, SplitShare,
    SplitSweep,
};
pub use board::{BoardIdentity, BoardRecord, DriverRecord, Drivers, LeftOut};
pub use cluster::{ClusterLevel, ClusterRecord, ClusterRoot, RankDeviceRecord};
pub use energy::{
    DomainWatts, EnergyRecord, EnergySummary, EnergyWindow, Green, LevelModel, MeasuredEnergy, Model, PoliciesEnergy, PolicyEnergy,
    StrategyPower, StrategyTime,
};
pub use environment::{Build, Cpu, Environment, System, Temperature};
pub use grid::{GridRecord, MapRecord};
pub(crate) use policies::STRATEGIES;
pub use policies::{
    Directions, Evaluation, GIVEN_UP, GivenUp, Judged, LevelTable, LevelTimes, OUTLIER_FACTOR, PoliciesReport, PolicyGraph, QUIET,
    RootEvaluation, SHARES, SplitParts,
};
pub use run::{
    CalibrationRecord, ChosenPolicy, GraphRecord, LayoutRecord, ParallelRecord, Record, RootRecord, SearchRecord, Summary, ValidationRecord,
};
pub use sweep::{BestPoint, OperatingPoint, PointMeasured, PointRecord, SweepRecord};
