//! Results as Graph500 text, JSON, tables, figures and pages, and arrays of parents and levels as files.

mod arrays;
mod board;
mod calibration;
mod cells;
mod comparison;
mod devices;
mod effect;
mod energy;
pub mod figures;
mod graph500;
mod grid;
pub mod html;
mod info;
pub(crate) mod npy;
mod policies;
mod possible;
mod table;
mod trace;
mod traffic;

use std::io::{self, Write};

pub use arrays::{ArrayError, ArrayFormat, Column, read_array, write_array};
pub use board::board;
pub use calibration::{CalibrationReport, calibration};
pub use cells::{COLUMNS, hanging, wrapped};
pub(crate) use cells::{Cell, Table, aligned, folded_by, written};
pub use comparison::{Comparison, InTurn, Run, over_graphs};
pub use devices::{ChosenWay, DeviceReport, Devices, Platform, devices};
pub use effect::Effect;
pub use figures::{point_line, policies_end, policies_of_last, sweep};
pub use graph500::graph500;
pub use grid::grid;
pub use info::info;
pub use policies::{POLICIES_SCHEMA, POLICIES_SCHEMA_VERSION};
pub use table::table;
pub use trace::{bands, chosen, level_energies, trace};
pub use traffic::traffic;

use serde::Serialize;

/// Writes `record` as one line of JSON.
///
/// # Errors
/// Errors of writing to `out`.
pub fn json(record: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, record)?;
    out.write_all(b"\n")
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use socbfs_power::{Domain, DomainPower, Energy, Family, Joules, RailEnergy, Watts};

    use super::*;
    use crate::{
        bench::{SCHEMA, SCHEMA_VERSION},
        record::{
            ChosenPolicy, EnergyRecord, EnergySummary, EnergyWindow, Environment, GraphRecord, LayoutRecord, MeasuredEnergy, Model, Record,
            RootRecord, SearchRecord, StrategyPower, Summary, ValidationRecord,
        },
    };
    use socbfs::{
        Simd,
        bfs::{Direction, LevelPlan, LevelRecord, LevelStats, Placement},
        graph::{LayoutStats, Order, StepRecord},
    };
    use socbfs_policy::Objective;

    /// A level with made-up counts; an even level is top-down.
    pub(crate) fn level(level: u32) -> LevelRecord {
        let direction = if level % 2 == 0 { Direction::TopDown } else { Direction::BottomUp };
        LevelRecord {
            stats: LevelStats {
                level,
                vertices: 1_000,
                arcs: 20_000,
                frontier_vertices: 1 + 500 * u64::from(level),
                frontier_edges: 40,
                unvisited_vertices: 900,
                unvisited_edges: 12_345,
                previous_frontier_vertices: 0,
                previous_direction: None,
                previous_placement: None,
                previous_cpu_ns: 0,
                previous_gpu_ns: 0,
                sampled_probes: (level > 0).then_some(2.5),
                ..LevelStats::default()
            },
            plan: LevelPlan { direction, placement: Placement::Cpu },
            levels: 1 + 9 * level,
            found: 77,
            elapsed_ns: 1_500_000,
            conversion_ns: 200,
            decision_ns: 90,
            handover_ns: 0,
            cpu_ns: 0,
            gpu_ns: 0,
            copy_ns: 0,
            wait_ns: 0,
            merge_ns: 0,
            device_ns: 0,
            threads: 2,
            with_previous: false,
        }
    }

    /// A valid run with one root for each of `seconds` (a quarter of each is mapping).
    pub(crate) fn record(seconds: &[f64]) -> Record {
        let root = |(index, &seconds): (usize, &f64)| RootRecord {
            root: index as u32,
            sources: 1,
            reached: 645_643,
            levels: 6,
            edges: 16_775_818,
            seconds: Some(seconds),
            mapping_seconds: Some(seconds / 4.0),
            validation: ValidationRecord { passed: true, violation: None, seconds: 0.5 },
            level_records: vec![level(0)],
        };
        let roots: Vec<RootRecord> = seconds.iter().enumerate().map(root).collect();
        let counts = LayoutStats { vertices: 1 << 20, listed: 16 << 20, edges: 16_775_900, unique_edges: 15_700_000, ..Default::default() };
        Record {
            schema: SCHEMA.into(),
            schema_version: SCHEMA_VERSION,
            environment: Environment::read(Path::new("/nowhere")),
            graph: GraphRecord {
                source: "kronecker scale=20".into(),
                generated: true,
                scale: 20,
                edge_factor: 16,
                directed: false,
                acquisition_seconds: 1.5,
                counts,
            },
            layout: LayoutRecord {
                order_asked: Order::Auto,
                order: Order::Degree,
                construction_seconds: 0.25,
                bytes: 123 << 20,
                steps: vec![StepRecord { step: "count degrees".into(), seconds: 0.125, peak_bytes: Some(1 << 30) }],
            },
            search: SearchRecord {
                policy: "auto".into(),
                chosen: ChosenPolicy {
                    policy: "auto".into(),
                    origin: socbfs_boards::runtime::Origin::BuiltIn,
                    reason: "only the CPU searches".into(),
                    bands: Vec::new(),
                },
                threads: 2,
                simd: Simd::Scalar,
                cpus: vec![0, 1],
                board: "generic".into(),
                devices: Vec::new(),
                thresholds: None,
                fallen_back: None,
                calibration: None,
                objective: Objective::Time,
            },
            cluster: None,
            roots_asked: roots.len(),
            complete: true,
            valid: true,
            summary: Summary::new(&roots, 16_775_900),
            energy: EnergyRecord::unavailable("no power sensor was found on this machine", None),
            roots,
            warnings: Vec::new(),
        }
    }

    /// The energy of one window of 10 s.
    fn window_energy(watts: f64) -> Energy {
        let rail = RailEnergy {
            sensor: "powercap:intel-rapl:0".into(),
            family: Family::Powercap,
            label: Some("package-0".into()),
            domain: Domain::Package,
            counted: true,
            joules: Some(Joules(10.0 * watts)),
            watts: Some(Watts(watts)),
            signal: socbfs_power::SignalKind::Counter,
            samples: 21,
            rate_hertz: 2.1,
            refresh_ms: 1.0,
            wraps: 1,
            missed: 0,
            rejected: 0,
            coverage: 1.0,
            problem: None,
        };
        Energy {
            scope: "cpu-package".into(),
            begin_monotonic_seconds: 77.0,
            seconds: 10.0,
            joules: rail.joules,
            watts: rail.watts,
            complete: true,
            problem: None,
            domains: vec![DomainPower { domain: Domain::Package, watts: Watts(watts), counted: true }],
            rails: vec![rail],
        }
    }

    /// Two windows of 1000 searches, at 20 W and 30 W, on a machine that idles at 5 W.
    pub(crate) fn measured_energy() -> EnergyRecord {
        let window = |watts: f64| EnergyWindow {
            energy: window_energy(watts),
            searches: 1000,
            search_seconds: 9.9,
            teps: 5e9,
            refreshes: 10_000,
            strategies: Vec::new(),
        };
        let (idle, windows) = (window_energy(5.0), vec![window(20.0), window(30.0)]);
        let strategy = StrategyPower {
            direction: Direction::BottomUp,
            device: "cpu".into(),
            watts: Some(Watts(26.0)),
            seconds: 8.0,
            time_share: 0.4,
            modelled_joules_per_search: Some(Joules(0.104)),
        };
        EnergyRecord {
            measured: Some(MeasuredEnergy {
                scope: "cpu-package".into(),
                sensors: vec!["powercap:intel-rapl:0".into()],
                window_seconds: 10.0,
                window_refreshes: 200,
                summary: EnergySummary::new(&idle, &windows).ok(),
                idle,
                windows,
                problem: None,
                model: Model { strategies: vec![strategy], residual: Some(-0.0125), ..Model::default() },
            }),
            ..EnergyRecord::default()
        }
    }

    #[test]
    fn json_is_one_line_with_schema_and_raw_values() {
        let mut text = Vec::new();
        json(&record(&[0.001, 0.002]), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["schema"], "socbfs-bench");
        assert_eq!(value["schema_version"], 1);
        assert_eq!(value["graph"]["edges"], 16_775_900);
        assert_eq!(value["roots"][1]["seconds"], 0.002);
        assert_eq!(value["roots"][1]["level_records"][0]["elapsed_ns"], 1_500_000);
    }
}
