//! A calibration as text.

use std::fmt::Write;

use serde::Serialize;

use super::cells::{Cell, Table, aligned, written};
use socbfs::words::{counted, mteps, seconds};
use socbfs_boards::measure::{Calibration, Candidate, StrategyNumbers};

/// The result of `socbfs calibrate`, as its `--json` writes it.
#[derive(Debug, Serialize)]
pub struct CalibrationReport {
    /// The file to which the calibration was written.
    pub file: String,
    /// The content of that file.
    pub calibration: Calibration,
}

/// The strategies, which were measured at this number of levels.
fn strategies(all: &[StrategyNumbers], levels: usize) -> Table {
    let quartiles = |of: &StrategyNumbers| {
        let all = [of.first_quartile_mega_edges_per_s, of.third_quartile_mega_edges_per_s];
        all.map(|speed| format!("{speed:.1}")).join(" .. ")
    };
    Table::of(
        all,
        &[
            ("strategy", &|of| Cell::word(of.strategy.name())),
            // A mean would be that of a few levels with nearly no vertex left.
            ("median speed", &|of| Cell::word(mteps(1e6 * of.median_mega_edges_per_s))),
            ("quartiles, MTEPS", &|of| Cell::word(quartiles(of))),
            ("fastest at", &|of| Cell::share(of.fastest_levels as f64 / levels.max(1) as f64)),
            ("residual", &|of| Cell::share(of.residual)),
            ("by Zhang", &|of| Cell::share(of.residual_zhang)),
            ("power", &|of| Cell::of(of.watts, |watts| Cell::word(format!("{watts:.2} W")))),
        ],
    )
}

fn contest(candidates: &[Candidate]) -> Table {
    Table::of(
        candidates,
        &[
            ("policy", &|of| Cell::word(of.policy.to_string())),
            ("mean regret", &|of| Cell::share(of.regret)),
            ("worst", &|of| Cell::share(of.worst_regret)),
        ],
    )
}

/// The calibration as text: the machine, a table of strategies, and the policy that `auto` uses.
pub fn calibration(report: &CalibrationReport) -> String {
    written(|out| write(out, report))
}

fn write(out: &mut String, report: &CalibrationReport) -> std::fmt::Result {
    let Calibration { identity, made, graphs, power, device: device_numbers, .. } = &report.calibration;
    let device = identity.device.as_ref().map_or_else(String::new, |device| format!(", {} by {}", device.name, device.memory_way));
    writeln!(out, "{}, {}, {}{device}", identity.board, counted(identity.threads as u64, "thread", "threads"), identity.simd)?;
    let (roots, levels) = (graphs.iter().map(|graph| graph.roots).sum::<usize>(), graphs.iter().map(|graph| graph.levels).sum::<usize>());
    writeln!(
        out,
        "{}, {}, {}, measured in {}\n",
        counted(graphs.len() as u64, "graph", "graphs"),
        counted(roots as u64, "root", "roots"),
        counted(levels as u64, "level", "levels"),
        seconds(made.seconds)
    )?;
    aligned(out, &strategies(&report.calibration.strategies, levels))?;
    writeln!(out)?;
    if let Some(numbers) = device_numbers.as_ref().filter(|numbers| !numbers.work_groups.is_empty()) {
        let all: Vec<String> = numbers.work_groups.iter().map(|group| format!("{} {:.2}x", group.items, group.relative)).collect();
        writeln!(out, "time by size of work-group, over that of the first: {}", all.join(", "))?;
    }
    if let Some(permille) = device_numbers.as_ref().and_then(|numbers| numbers.bottom_up_permille) {
        writeln!(out, "bottom-up on the device costs {:.2} times what sampled assumes without it", f64::from(permille) / 1e3)?;
    }
    let ratio = |of: &StrategyNumbers| {
        of.corun
            .map(|corun| format!("{} {:.2} ({:.2} .. {:.2})", of.strategy.name(), corun.median, corun.first_quartile, corun.third_quartile))
    };
    let ratios: Vec<String> = report.calibration.strategies.iter().filter_map(ratio).collect();
    if !ratios.is_empty() {
        writeln!(out, "time of its part while both devices work, over the time alone (quartiles):\n  {}", ratios.join(", "))?;
    }
    if let Some(power) = power {
        let idle = power.idle_watts.map_or_else(|| "n/a".to_owned(), |watts| format!("{watts:.2} W"));
        writeln!(out, "power: {} by {}; idle {idle}", power.scope, power.sensors.join(" + "))?;
    }
    let also = if device_numbers.is_some() { " on a device that is named, else by adaptive and these costs" } else { "" };
    match &report.calibration.auto {
        Some(auto) => {
            writeln!(out, "on {} held out of the fit, beyond the per-level oracle:", counted(auto.graphs as u64, "graph", "graphs"))?;
            aligned(out, &contest(&auto.candidates))?;
            writeln!(out, "auto decides by {}{also}", auto.policy)?;
        }
        None => writeln!(out, "too few graphs to hold some out of the fit: auto decides by {}{also}", report.calibration.decider())?,
    }
    writeln!(out, "written to {}", report.file)
}
