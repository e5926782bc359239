//! The report in exactly the form of the Graph500 reference code 3.x, so that tools that parse it work.

use std::fmt::{self, Write};

use super::cells::{NONE, written};
use crate::record::{EnergyRecord, EnergySummary, Record, Summary};
use socbfs::{
    stats::{self, RateSummary},
    words::general,
};

/// Column at which the values start.
const COLUMN: usize = 32;

/// The line that replaces the report if a root failed validation.
pub(super) const INVALID: &str = "No results printed for invalid run.\n";

/// The report of `record`, or the line that replaces it if a root failed validation or the run has no speed.
pub fn graph500(record: &Record) -> String {
    let Some(summary) = record.summary.as_ref().filter(|_| record.valid) else { return INVALID.to_owned() };
    written(|out| write(out, record, summary))
}

fn write(out: &mut String, record: &Record, summary: &Summary) -> fmt::Result {
    line(out, "SCALE", &record.graph.scale.to_string())?;
    line(out, "edgefactor", &record.graph.edge_factor.to_string())?;
    line(out, "NBFS", &summary.roots.to_string())?;
    line(out, "graph_generation", &general(record.graph.acquisition_seconds, 6))?;
    // 1 if it is not a cluster, whatever its number of threads.
    let processes = record.cluster.as_ref().map_or(1, |cluster| cluster.processes);
    line(out, "num_mpi_processes", &processes.to_string())?;
    line(out, "construction_time", &general(record.layout.construction_seconds, 6))?;
    statistics(out, "bfs  ", "time", &summary.seconds, 6)?;
    statistics(out, "", "nedge", &summary.edges, 11)?;
    teps(out, &summary.teps)?;
    statistics(out, "bfs  ", "validate", &summary.validation_seconds, 6)?;
    energy(out, &record.energy)
}

/// Writes keys of our own in the form of the reference code. A report without energy has the reason alone, in one line; else it has all
/// keys, and one without a figure is "n/a". A missing key could mean an old program, and a zero could be a measurement.
fn energy(out: &mut String, energy: &EnergyRecord) -> fmt::Result {
    if let (None, Some(reason)) = (&energy.measured, energy.reason()) {
        return line(out, "energy  reason", reason);
    }
    let summary = energy.summary();
    let measured = energy.measured.as_ref();
    let text = |value: Option<String>| value.unwrap_or_else(|| NONE.to_owned());
    let number = |value: Option<f64>| text(value.map(|value| general(value, 6)));
    line(out, "energy  scope", &text(measured.map(|m| m.scope.clone())))?;
    line(out, "energy  sensors", &text(measured.map(|m| m.sensors.join("+"))))?;
    line(out, "energy  NWINDOWS", &text(summary.map(|s| s.watts.count.to_string())))?;
    let seconds: Option<f64> = summary.and(measured).map(|m| m.windows.iter().map(|w| w.energy.seconds).sum());
    line(out, "energy  window_time", &number(seconds))?;
    line(out, "energy  searches", &text(summary.and(measured).map(|m| m.windows.iter().map(|w| w.searches).sum::<u64>().to_string())))?;
    line(out, "energy  samples", &text(summary.map(|s| s.samples.to_string())))?;
    line(out, "energy  wraps", &text(summary.map(|s| s.wraps.to_string())))?;
    line(out, "energy  idle_power", &number(summary.map(|s| s.idle_watts.0)))?;
    for (what, of) in [
        ("power", (|s: &EnergySummary| s.watts) as fn(&EnergySummary) -> stats::Summary),
        ("joules_per_search", |s| s.joules_per_search),
        ("joule_seconds", |s| s.energy_delay_joule_seconds),
    ] {
        let q = summary.map(of);
        for (name, value) in [("min", q.map(|q| q.min)), ("mean", q.map(|q| q.mean)), ("max", q.map(|q| q.max))] {
            line(out, &format!("energy  {name}_{what}"), &number(value))?;
        }
    }
    let net = summary.and_then(|s| s.mteps_per_watt_net_of_idle);
    line(out, "energy  net_MTEPS_per_watt", &number(net.map(|q| q.mean)))?;
    // The figure of Green Graph500 is marked, as the harmonic mean is.
    let total = number(summary.map(|s| s.mteps_per_watt.mean));
    writeln!(out, "{:<width$}!  {total}", "energy  mean_MTEPS_per_watt:", width = COLUMN - 3)?;
    line(out, "energy  stddev_MTEPS_per_watt", &number(summary.and_then(|s| s.mteps_per_watt.stddev)))?;
    energy.reason().map_or(Ok(()), |reason| line(out, "energy  reason", reason))
}

/// Writes the statistics of a quantity. A single root has no spread: its stddev is 0, where the reference code divides by zero.
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
    use crate::report::tests::{measured_energy, record};

    /// The format strings of the reference code, filled in by hand, and our own keys.
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
energy  reason:                 no power sensor was found on this machine
";

    #[test]
    fn the_form_is_that_of_the_reference_code() {
        assert_eq!(graph500(&record(&[0.001, 0.002])), EXPECTED);
    }

    #[test]
    fn energy_has_its_keys_with_a_sensor_and_the_reason_without() {
        let mut with = record(&[0.001, 0.002]);
        with.energy = measured_energy();
        let (with, without) = (graph500(&with), graph500(&record(&[0.001, 0.002])));
        let keys = |text: &str| text.lines().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect::<Vec<_>>();
        let (with_keys, mut others) = (keys(&with), keys(&without));
        assert_eq!(others.pop().as_deref(), Some("energy  reason"));
        assert_eq!(with_keys[..others.len()], others);
        assert!(with_keys[others.len()..].iter().all(|key| key.starts_with("energy  ")) && with_keys.len() == others.len() + 20);
        for line in [
            "energy  scope:                  cpu-package\n",
            "energy  sensors:                powercap:intel-rapl:0\n",
            "energy  NWINDOWS:               2\n",
            "energy  window_time:            20\n",
            "energy  idle_power:             5\n",
            "energy  mean_power:             25\n",
            "energy  mean_joules_per_search: 0.25\n",
            // 5 GTEPS over 20 W and 30 W: 250 and 166.67; net of 5 W 333.3 and 200.
            "energy  net_MTEPS_per_watt:     266.667\n",
            "energy  mean_MTEPS_per_watt: !  208.333\n",
        ] {
            assert!(with.contains(line), "{line:?} in\n{with}");
        }
        assert!(!with.contains("n/a"), "{with}");
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
