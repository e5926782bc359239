//! The report of the Graph500 reference code 3.x, byte for byte in form, so that tools that parse it work.

use std::fmt::{self, Write};

use super::numbers::general;
use crate::{
    bench::{Record, Summary},
    stats::{self, RateSummary},
};

/// Column at which the values start.
const COLUMN: usize = 32;

/// What stands in place of the report where a root failed validation.
const INVALID: &str = "No results printed for invalid run.\n";

/// The report of `record`, or the line that stands in its place where a root failed validation.
pub fn graph500(record: &Record) -> String {
    let Some(summary) = record.summary.as_ref().filter(|_| record.valid) else { return INVALID.to_owned() };
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = write(&mut text, record, summary);
    text
}

fn write(out: &mut String, record: &Record, summary: &Summary) -> fmt::Result {
    line(out, "SCALE", &record.graph.scale.to_string())?;
    line(out, "edgefactor", &record.graph.edge_factor.to_string())?;
    line(out, "NBFS", &summary.roots.to_string())?;
    line(out, "graph_generation", &general(record.graph.acquisition_seconds, 6))?;
    // One process, whatever its number of threads.
    line(out, "num_mpi_processes", "1")?;
    line(out, "construction_time", &general(record.layout.construction_seconds, 6))?;
    statistics(out, "bfs  ", "time", &summary.seconds, 6)?;
    statistics(out, "", "nedge", &summary.edges, 11)?;
    teps(out, &summary.teps)?;
    statistics(out, "bfs  ", "validate", &summary.validation_seconds, 6)
}

/// A single root has no spread: 0, where the reference code divides by zero.
fn statistics(out: &mut String, prefix: &str, what: &str, q: &stats::Summary, digits: usize) -> fmt::Result {
    for (name, value) in [
        ("min", q.min),
        ("firstquartile", q.first_quartile),
        ("median", q.median),
        ("thirdquartile", q.third_quartile),
        ("max", q.max),
        ("mean", q.mean),
        ("stddev", q.stddev.unwrap_or(0.0)),
    ] {
        line(out, &format!("{prefix}{name}_{what}"), &general(value, digits))?;
    }
    Ok(())
}

fn teps(out: &mut String, t: &RateSummary) -> fmt::Result {
    for (name, value) in
        [("min", t.min), ("firstquartile", t.first_quartile), ("median", t.median), ("thirdquartile", t.third_quartile), ("max", t.max)]
    {
        line(out, &format!("bfs  {name}_TEPS"), &general(value, 6))?;
    }
    // The official figure is marked, three columns before the values.
    writeln!(out, "{:<width$}!  {}", "bfs  harmonic_mean_TEPS:", general(t.harmonic_mean, 6), width = COLUMN - 3)?;
    line(out, "bfs  harmonic_stddev_TEPS", &general(t.harmonic_stddev.unwrap_or(0.0), 6))
}

fn line(out: &mut String, key: &str, value: &str) -> fmt::Result {
    writeln!(out, "{:<COLUMN$}{value}", format!("{key}:"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::record;

    /// The form as the reference code's format strings give it, filled in by hand.
    const EXPECTED: &str = "\
SCALE:                          20
edgefactor:                     16
NBFS:                           2
graph_generation:               1.5
num_mpi_processes:              1
construction_time:              0.25
bfs  min_time:                  0.001
bfs  firstquartile_time:        0.001
bfs  median_time:               0.0015
bfs  thirdquartile_time:        0.002
bfs  max_time:                  0.002
bfs  mean_time:                 0.0015
bfs  stddev_time:               0.000707107
min_nedge:                      16775818
firstquartile_nedge:            16775818
median_nedge:                   16775818
thirdquartile_nedge:            16775818
max_nedge:                      16775818
mean_nedge:                     16775818
stddev_nedge:                   0
bfs  min_TEPS:                  8.38791e+09
bfs  firstquartile_TEPS:        8.38791e+09
bfs  median_TEPS:               1.11839e+10
bfs  thirdquartile_TEPS:        1.67758e+10
bfs  max_TEPS:                  1.67758e+10
bfs  harmonic_mean_TEPS:     !  1.11839e+10
bfs  harmonic_stddev_TEPS:      5.27213e+09
bfs  min_validate:              0.5
bfs  firstquartile_validate:    0.5
bfs  median_validate:           0.5
bfs  thirdquartile_validate:    0.5
bfs  max_validate:              0.5
bfs  mean_validate:             0.5
bfs  stddev_validate:           0
";

    #[test]
    fn the_form_is_the_reference_codes() {
        assert_eq!(graph500(&record(&[0.001, 0.002])), EXPECTED);
    }

    #[test]
    fn an_invalid_run_has_no_figures() {
        let mut record = record(&[0.001]);
        record.valid = false;
        assert_eq!(graph500(&record), INVALID);
        record.valid = true;
        record.summary = None;
        assert_eq!(graph500(&record), INVALID);
    }
}
