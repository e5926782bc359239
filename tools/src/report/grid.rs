//! A search over a grid as text.

use std::fmt::{self, Write};

use super::{
    cells::{Cell, Table, aligned_by, listed, written},
    energy,
};
use crate::record::GridRecord;
use socbfs::{
    search::End,
    words::{counted, general, grouped, seconds},
};
use socbfs_algo::grid::GridLevel;

/// Rows of the table of levels: with the lines around it, it fits a terminal.
const ROWS: usize = 12;

/// The search as text: what it reached, its time, the path, the levels and the energy, as far as the record has them.
pub fn grid(record: &GridRecord) -> String {
    written(|out| write(out, record))
}

fn write(out: &mut String, record: &GridRecord) -> fmt::Result {
    let (map, outcome) = (&record.map, &record.outcome);
    let mut line = |name: &str, value: String| writeln!(out, "{:<12}{value}", format!("{name}:"));
    let taken = if map.unknown_is_free { "taken as free" } else { "taken as blocked" };
    let unknown = if map.unknown > 0 { format!(", {} unknown: {taken}", grouped(map.unknown)) } else { String::new() };
    line("map", format!("{} x {} cells (rows x columns), {} free{unknown}", map.rows, map.columns, grouped(map.free)))?;
    line("sources", grouped(outcome.sources))?;
    let early = match outcome.end {
        End::Depth => ", until --depth",
        End::Target => ", until the target",
        _ => "",
    };
    line("reached", format!("{} of {} free cells{early}", grouped(outcome.reached), grouped(map.free)))?;
    line("levels", grouped(outcome.levels.into()))?;
    line("edges", grouped(record.edges))?;
    let speed = general(outcome.reached as f64 / record.seconds / 1e6, 4);
    line("time", format!("{}, {speed} million cells per second", seconds(record.seconds)))?;
    if let Some(target) = record.target {
        let path = record.path.as_ref().map(|path| (path.len() - 1, path.last()));
        line(
            "path",
            match path {
                Some((steps, Some(source))) => {
                    let steps = counted(steps as u64, "step", "steps");
                    let length = |path: &Vec<[f64; 2]>| {
                        let metres: f64 =
                            path.windows(2).map(|of| (of[1][0] - of[0][0]).hypot(of[1][1] - of[0][1])).fold(0.0, |sum, step| sum + step);
                        format!(", {metres:.2} m")
                    };
                    format!("{steps}{} from {target} to source {source}", record.path_metres.as_ref().map_or_else(String::new, length))
                }
                _ => format!("none: {target} was not reached"),
            },
        )?;
    }
    if !record.levels.is_empty() {
        writeln!(out)?;
        levels(out, &record.levels)?;
    }
    if let Some(measured) = &record.energy {
        writeln!(out)?;
        let summary = measured.summary().map_or_else(Vec::new, energy::of_summary);
        listed(out, &[energy::source(measured), summary].concat());
    }
    Ok(())
}

/// A row for each level, or for as many in a row as leave few rows.
fn levels(out: &mut String, levels: &[GridLevel]) -> fmt::Result {
    let sum = |levels: &[GridLevel], of: fn(&GridLevel) -> u64| levels.iter().map(of).sum::<u64>();
    let table = Table::of(
        levels.chunks(levels.len().div_ceil(ROWS)),
        &[
            ("level", &|levels| {
                let (first, last) = (levels[0].level, levels[levels.len() - 1].level);
                Cell::word(if first == last { first.to_string() } else { format!("{first}-{last}") })
            }),
            ("cells", &|levels| Cell::count(sum(levels, |level| level.found))),
            ("tiles visited", &|levels| Cell::count(sum(levels, |level| level.tiles))),
            ("threads", &|levels| Cell::count(levels.iter().map(|level| level.threads.into()).max().unwrap_or(0))),
            ("time", &|levels| Cell::ns(sum(levels, |level| level.elapsed_ns) as f64)),
        ],
    );
    aligned_by(out, "", &table, &|_| false)
}
