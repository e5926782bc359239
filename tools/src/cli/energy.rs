//! `socbfs energy`: the energy of a command.

use std::{ffi::OsString, fmt::Write as _, io, os::unix::process::ExitStatusExt, path::PathBuf, process::Command, time::SystemTime};

use clap::Args;
use serde::Serialize;
use socbfs_power::{Energy, RailEnergy, SignalKind, Skipped};

use crate::{
    report,
    shell::{Failure, Output, SensorArgs, interrupt, parse_count, profile_at, results, say},
};
use socbfs::{stats, words::seconds};

const EXAMPLES: &str = "\
Examples:
  socbfs energy -- make -j4
  socbfs energy --repeat 5 -- ./bfs -g 20
  socbfs energy --energy ina2xx:0-0040,ina2xx:0-0045 --json e.json -- ./search

The command keeps its standard output: the energy is reported on standard error, as
perf stat does. Ctrl-C and signals are passed on to the command; the energy until it
ends is reported. Exit code: the command's, 128 + n if signal n ended it, 127 if there
is no such command, 126 if it can't be run.";

/// Measure the energy of a command
///
/// The energy includes idle power. Without a usable sensor the command still runs, and the reason is reported.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CommandArgs {
    #[command(flatten)]
    sensors: SensorArgs,

    /// Board profile that says which rails add up [default: the one detected]
    #[arg(long, value_name = "NAME|FILE", env = "SOCBFS_BOARD", hide_env_values = true)]
    board: Option<PathBuf>,

    /// Run the command N times and report the spread
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = parse_count)]
    repeat: usize,

    /// Write the energies as JSON ("-": standard output)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What `energy --json` writes.
#[derive(Debug, Serialize)]
struct CommandRecord {
    schema: &'static str,
    schema_version: u32,
    /// Time of the start, RFC 3339 in UTC.
    time: String,
    command: Vec<String>,
    /// Exit code of each run (`None`: ended by a signal).
    exit_codes: Vec<Option<i32>>,
    /// Why there is no energy.
    unavailable: Option<String>,
    /// Energy of each run: joules, watts, seconds.
    runs: Vec<Energy>,
    /// Sensors that were found but not used, each with the reason.
    skipped: Vec<Skipped>,
}

pub(super) fn run(arguments: &CommandArgs, quiet: bool) -> Result<(), Failure> {
    let json = arguments.json.as_deref().map(Output::open).transpose()?;
    let meter = arguments.sensors.meter(profile_at(arguments.board.as_deref())?.as_ref())?;
    let (unavailable, cure, skipped) = match &meter {
        Ok(meter) => (None, None, meter.skipped().to_vec()),
        Err(record) => (record.unavailable.clone(), record.cure.as_deref(), record.skipped.clone()),
    };
    let command: Vec<String> = arguments.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut record = CommandRecord {
        schema: "socbfs-energy",
        schema_version: 1,
        time: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        unavailable,
        skipped,
        exit_codes: Vec::new(),
        runs: Vec::new(),
        command,
    };
    let mut code = 0;
    for _ in 0..arguments.repeat {
        let window = meter.as_ref().ok().map(|meter| (meter, meter.begin()));
        let passing = interrupt::passing();
        let mut command = Command::new(&arguments.command[0]);
        command.args(&arguments.command[1..]);
        let mut child = match results().try_clone().and_then(|results| command.stdout(results).spawn()) {
            Ok(child) => child,
            Err(error) => {
                crate::shell::tell(
                    &Failure::because(&format!("can't run {}", record.command[0]), &error).cure("check the spelling of the command"),
                );
                // The exit codes of a shell for a command that does not exist, and for one that can't be run.
                let failed: u8 = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
                if record.exit_codes.is_empty() {
                    return Err(Failure::Command(failed));
                }
                // It was removed or replaced after a run: what was measured until then is reported.
                code = i32::from(failed);
                break;
            }
        };
        passing.to(child.id());
        let status = child.wait().map_err(|error| Failure::because(&format!("can't wait for {}", record.command[0]), &error));
        let energy = window.map(|(meter, window)| meter.end(window));
        let (status, interrupted) = (status?, passing.interrupted());
        drop(passing);
        record.runs.extend(energy);
        record.exit_codes.push(status.code());
        // The exit code of a shell for a command that a signal ended.
        code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        if code != 0 || interrupted {
            break;
        }
    }
    if !quiet {
        say(&summary(&record, cure));
    }
    let written = json.map_or(Ok(()), |json| json.finish_json(|out| report::json(&record, out)));
    if code == 0 {
        return written;
    }
    // The exit code of a command that failed is passed on, also if the record could not be written.
    if let Err(failure) = written {
        crate::shell::tell(&failure);
    }
    Err(Failure::Command(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Formats the energies as text.
fn summary(record: &CommandRecord, cure: Option<&str>) -> String {
    let mut text = format!("\n  Energy of {}\n\n", record.command.join(" "));
    // Writing to a String can't fail.
    let _ = match (&record.runs[..], &record.unavailable) {
        ([], reason) => writeln!(text, "  n/a: {}", reason.as_deref().unwrap_or("the command was not measured")),
        (runs, _) => runs.iter().try_for_each(|energy| one_run(&mut text, energy)).and_then(|()| spread(&mut text, record)),
    };
    if let Some(cure) = cure {
        let _ = writeln!(text, "  help: {cure}");
    }
    text
}

/// A run of fewer refreshes of its slowest sensor gets a warning: its energy may be off by one refresh at either end.
const FEW_REFRESHES: f64 = 10.0;

fn one_run(text: &mut String, energy: &Energy) -> std::fmt::Result {
    for rail in &energy.rails {
        writeln!(text, "  {}", rail_line(rail))?;
    }
    match (energy.joules, energy.watts, &energy.problem) {
        (Some(joules), Some(watts), _) => {
            writeln!(text, "  {joules:>12}  {watts:>10}  sum of the counted: {}, in {}", energy.scope, seconds(energy.seconds))?;
        }
        (.., problem) => writeln!(text, "  {:>12}  {:>10}  {}", "n/a", "n/a", problem.as_deref().unwrap_or("the window was too short"))?,
    }
    let counted = energy.rails.iter().filter(|rail| rail.counted);
    match counted.max_by(|a, b| a.refresh_ms.total_cmp(&b.refresh_ms)) {
        // A counter may stand still for so short a time.
        Some(rail) if energy.seconds * 1e3 < FEW_REFRESHES * rail.refresh_ms => {
            let (sensor, refresh) = (&rail.sensor, seconds(rail.refresh_ms / 1e3));
            writeln!(text, "  warning: {sensor} has a new value every {refresh}: measure a command that takes longer")
        }
        _ => Ok(()),
    }
}

fn rail_line(rail: &RailEnergy) -> String {
    let value = |value: Option<String>| value.unwrap_or_else(|| "n/a".to_owned());
    let label = rail.label.as_deref().map_or_else(String::new, |label| format!(" {label}"));
    let counted = if rail.counted { "counted" } else { "a part" };
    let samples = if rail.signal == SignalKind::Counter {
        format!("{} wraps", rail.wraps)
    } else {
        format!("{} samples, {:.1}/s", rail.samples, rail.rate_hertz)
    };
    format!(
        "{:>12}  {:>10}  {}{label} ({}), {counted}, {samples}",
        value(rail.joules.map(|joules| joules.to_string())),
        value(rail.watts.map(|watts| watts.to_string())),
        rail.sensor,
        rail.domain
    )
}

/// The mean over the runs, without one that failed: it may have ended early.
fn spread(text: &mut String, record: &CommandRecord) -> std::fmt::Result {
    let good = record.runs.iter().zip(&record.exit_codes).filter(|(_, code)| **code == Some(0));
    let joules: Option<Vec<f64>> = good.map(|(run, _)| run.joules.map(|joules| joules.0)).collect();
    let summary = joules.filter(|joules| joules.len() > 1).and_then(|joules| stats::Summary::of(&joules));
    let Some(stats::Summary { mean, stddev, count, min, max, .. }) = summary else { return Ok(()) };
    writeln!(text, "\n  {mean:.4} J +/- {:.4} J over {count} runs ({min:.4} .. {max:.4})", stddev.unwrap_or(0.0))
}
