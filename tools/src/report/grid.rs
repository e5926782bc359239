//! A search over a grid as text.

use std::fmt::{self, Write};

use super::{
    cells::{listed, written},
    energy,
};
use crate::record::GridRecord;
use socbfs::{
    search::End,
    words::{counted, general, grouped, seconds},
};

/// The search as text: what it reached, its time, the path and the energy, as far as the record has them.
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
    if let Some(measured) = &record.energy {
        writeln!(out)?;
        let summary = measured.summary().map_or_else(Vec::new, energy::of_summary);
        listed(out, &[energy::source(measured), summary].concat());
    }
    Ok(())
}
