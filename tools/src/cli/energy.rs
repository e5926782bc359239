//! `socbfs energy`, and the energy flags of `bench`.

use std::{
    ffi::OsString,
    fmt::Write as _,
    io,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use clap::{ArgMatches, Args, parser::ValueSource};
use serde::Serialize;
use socbfs::power::{Energy, Meter, Profile, RailEnergy, SelectError, Selection, SignalKind, Skipped, Source, Tree, discover};

#[cfg(feature = "mpi")]
use crate::bench::measure_cluster_energy;
use crate::shell::{
    config::{self, Root, root},
    error::Failure,
    interrupt,
    output::{Output, protect},
    progress::Progress,
    say,
};
use crate::{
    bench::{EnergyError, EnergyOptions, measure_energy},
    record::{EnergyRecord, RootRecord},
    report,
};
use socbfs::{
    graph::Layout,
    runtime,
    search::{Search, SearchOptions},
    stats,
    words::seconds,
};

/// Where to look for sensors, and which of them to use.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Energy")]
pub(super) struct SensorArgs {
    /// auto (the sensors that the last line of `socbfs sensors` names), off, or a comma-separated list of sensors to add up: FAMILY,
    /// FAMILY:ID, FAMILY:LABEL, or a meter: smartpower2:/dev/ttyUSB0, smartpower3:udp:6000, wt310:/dev/usbtmc0, external:FILE (lines of
    /// seconds and watts)
    #[arg(long, value_name = "SENSOR", env = "SOCBFS_ENERGY", hide_env_values = true, value_delimiter = ',', default_value = "auto")]
    energy: Vec<String>,

    /// Look for sensors below this folder, or in this manifest, instead of below /
    #[arg(long, value_name = "DIR|FILE", default_value = "/", hide = true, value_parser = root())]
    sysfs_root: Root,
}

/// The energy flags of `bench`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Energy")]
pub(super) struct EnergyArgs {
    #[command(flatten)]
    sensors: SensorArgs,

    /// Minimum length of a window of searches, in seconds
    #[arg(long, value_name = "S", default_value_t = EnergyOptions::default().window.seconds, value_parser = parse_seconds)]
    energy_seconds: f64,

    /// Number of windows, over which the spread of the result is taken
    #[arg(long, value_name = "N", default_value_t = EnergyOptions::default().repeats, value_parser = parse_count)]
    energy_repeats: usize,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    seconds_in(text, 0.1, 86_400.0)
}

pub(super) fn seconds_in(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = text.parse().ok().filter(|value| (least..=most).contains(value));
    number.ok_or_else(|| format!("not a number of seconds from {least} to {most}"))
}

fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1000) => Ok(count),
        _ => Err("not a number from 1 to 1000".to_owned()),
    }
}

/// The choice of sensors by `--energy`.
enum Wish<'a> {
    Off,
    Auto,
    Named(&'a [String]),
}

impl SensorArgs {
    fn wish(&self) -> Result<Wish<'_>, Failure> {
        match &self.energy[..] {
            [one] if one == "auto" => Ok(Wish::Auto),
            [one] if one == "off" => Ok(Wish::Off),
            names if names.iter().any(|name| name == "auto" || name == "off" || name.is_empty()) => {
                Err(Failure::new("--energy is auto, off, or a list of sensors").cure("`socbfs sensors` lists them"))
            }
            names => Ok(Wish::Named(names)),
        }
    }

    pub(super) fn sources(&self) -> Vec<Source> {
        discover(&Tree::new(&*self.sysfs_root))
    }

    /// Starts the meter. The inner `Err` gives the reason why nothing is measured; the outer one is for a wrong `--energy`, and for sensors
    /// that are named in it and can't be used.
    pub(super) fn meter(&self, profile: Option<&Profile>) -> Result<Result<Meter, EnergyRecord>, Failure> {
        let refused = |error: SelectError, skipped: Vec<Skipped>| EnergyRecord {
            skipped,
            ..EnergyRecord::unavailable(error.to_string(), error.cure())
        };
        match self.wish()? {
            Wish::Off => Ok(Err(EnergyRecord::unavailable("switched off with --energy off", None))),
            Wish::Auto => {
                let sources = self.sources();
                let skipped = Selection::everything(sources, None).skipped().to_vec();
                let started = Selection::automatic(self.sources(), profile).and_then(Meter::start);
                if let Ok([first, rest @ ..]) = started.as_ref().map(Meter::missing) {
                    let domains = rest.iter().fold(first.to_string(), |names, domain| format!("{names}, {domain}"));
                    log::warn!(
                        "the energy is without that of {domains}: the board profile counts it, and no sensor of it was found \
                         (`socbfs sensors` lists the sensors; is the driver of the missing one loaded?)"
                    );
                }
                Ok(started.map_err(|error| refused(error, skipped)))
            }
            Wish::Named(names) => {
                for file in names.iter().filter_map(|name| name.strip_prefix("external:")) {
                    protect(Path::new(file))?;
                }
                let meter = Selection::named(self.sources(), names, profile).and_then(Meter::start);
                meter.map(Ok).map_err(|error| select_failure(&error))
            }
        }
    }
}

/// A sensor error with its cure.
fn select_failure(error: &SelectError) -> Failure {
    let failure = Failure::because("can't measure energy", error);
    match error.cure() {
        Some(cure) => failure.cure(cure),
        None => failure.cure("`socbfs sensors` shows the sensors, and why they can't be used"),
    }
}

/// The power sensors in the profile at `path`, or in that of the detected board.
pub(super) fn profile_at(path: Option<&Path>) -> Result<Option<Profile>, Failure> {
    Ok(config::profile(path)?.power())
}

impl EnergyArgs {
    /// Whether a flag or the environment asks for energy. Commands that need minutes for the measurement make it only on request.
    pub(super) fn is_asked(&self, matches: &ArgMatches) -> bool {
        match matches.value_source("energy") {
            Some(ValueSource::CommandLine) => true,
            Some(ValueSource::EnvVariable) => !matches!(self.sensors.wish(), Ok(Wish::Off)),
            _ => false,
        }
    }

    /// Checks before the work begins that the sensors named in `--energy` can be used.
    pub(super) fn check(&self, board: &runtime::Profile) -> Result<(), Failure> {
        if let Wish::Named(_) = self.sensors.wish()? {
            self.sensors.meter(board.power().as_ref())?.map_err(|_| Failure::new("no sensor"))?;
        }
        Ok(())
    }

    /// Starts the meter after the searches, which are kept if it fails (the `Err` gives the reason why nothing is measured). Also returns
    /// the windows to measure.
    pub(super) fn windows(&self, board: &runtime::Profile) -> (Result<Meter, EnergyRecord>, EnergyOptions) {
        let mut options = EnergyOptions { repeats: self.energy_repeats, ..EnergyOptions::default() };
        options.window.seconds = self.energy_seconds;
        match self.sensors.meter(board.power().as_ref()) {
            Ok(meter) => (meter, options),
            Err(failure) => (Err(lost(&failure, true)), options),
        }
    }

    /// Measures the energy of searches over ranks from the roots of `records`, by the sensors of every rank's board.
    #[cfg(feature = "mpi")]
    pub(super) fn measure_cluster<R: socbfs_cluster::Ranks>(
        &self,
        board: &runtime::Profile,
        search: &mut socbfs_cluster::ClusterSearch<'_, R>,
        ranks: &R,
        records: &[RootRecord],
    ) -> Result<EnergyRecord, Failure> {
        let (meter, options) = self.windows(board);
        let host = socbfs_cluster::Host::read(&self.sensors.sysfs_root);
        let progress = (ranks.rank() == 0).then(|| Progress::still("Measuring energy", options.repeats as u64 + 1));
        let mut finished = |done| {
            if let Some(progress) = &progress {
                progress.between(done);
            }
        };
        let measured = measure_cluster_energy(search, ranks, records, host, meter.as_ref(), &options, &mut finished);
        drop(progress);
        Ok(kept(measured, ranks.rank() == 0)?.unwrap_or_else(|unavailable| unavailable))
    }

    /// Measures the energy of searches from the roots of `records`.
    pub(super) fn measure(
        &self,
        board: &runtime::Profile,
        layout: &Layout,
        search: Search<'_>,
        search_options: &SearchOptions,
        records: &[RootRecord],
    ) -> Result<EnergyRecord, Failure> {
        let (meter, options) = self.windows(board);
        let meter = match meter {
            Ok(meter) => meter,
            Err(unavailable) => return Ok(unavailable),
        };
        let window = options.window.least_seconds(&meter);
        // Idling and two strategies take a third of a window each.
        let minutes = window * (options.repeats as f64 + 1.0) / 60.0;
        if minutes > 1.5 {
            log::warn!(
                "this sensor has a new value every {} ms: measuring takes about {minutes:.0} minutes (--energy off leaves it out)",
                meter.slowest().as_millis()
            );
        }
        let progress = Progress::still("Measuring energy", options.repeats as u64 + 1);
        let measured = measure_energy(layout, search, search_options, records, &meter, &options, &mut |done| progress.between(done));
        drop(progress);
        Ok(kept(measured, true)?.unwrap_or_else(|unavailable| unavailable))
    }
}

/// The energy that was measured after validated searches, which are kept if that failed: the inner `Err` is then their record without
/// energy, and this process warns if it `tells`. A search that differs from the validated one is an error all the same, and so is one that
/// other ranks do not know of, since they would wait for this rank.
pub(super) fn kept<T>(measured: Result<T, EnergyError>, tells: bool) -> Result<Result<T, EnergyRecord>, Failure> {
    match measured {
        Ok(energy) => Ok(Ok(energy)),
        Err(error @ EnergyError::Different { .. }) => Err(error.into()),
        Err(EnergyError::Cluster(error)) if !error.is_of_all() => Err(error.into()),
        Err(error) => Ok(Err(lost(&error.into(), tells))),
    }
}

/// The record of a run whose energy could not be measured. This process warns of it if it `tells`.
pub(super) fn lost(failure: &Failure, tells: bool) -> EnergyRecord {
    if tells {
        log::warn!("no energy was measured: {failure}");
    }
    let cure = if let Failure::Error { cure, .. } = failure { cure.clone() } else { None };
    EnergyRecord::unavailable(failure.to_string(), cure)
}

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
        let mut child = match Command::new(&arguments.command[0]).args(&arguments.command[1..]).spawn() {
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
            let counted = energy.rails.iter().filter(|rail| rail.counted);
            match counted.max_by(|a, b| a.refresh_ms.total_cmp(&b.refresh_ms)) {
                Some(rail) if energy.seconds * 1e3 < FEW_REFRESHES * rail.refresh_ms => {
                    let (sensor, refresh) = (&rail.sensor, seconds(rail.refresh_ms / 1e3));
                    writeln!(text, "  warning: {sensor} has a new value every {refresh}: measure a command that takes longer")
                }
                _ => Ok(()),
            }
        }
        (.., problem) => writeln!(text, "  {:>12}  {:>10}  {}", "n/a", "n/a", problem.as_deref().unwrap_or("the window was too short")),
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
    match joules.filter(|joules| joules.len() > 1).and_then(|joules| stats::Summary::of(&joules)) {
        Some(summary) => writeln!(
            text,
            "\n  {:.4} J +/- {:.4} J over {} runs ({:.4} .. {:.4})",
            summary.mean,
            summary.stddev.unwrap_or(0.0),
            summary.count,
            summary.min,
            summary.max
        ),
        None => Ok(()),
    }
}

/// Time over which `socbfs sensors` measures the values that it shows.
pub(super) const GLANCE: Duration = Duration::from_millis(1000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::MeasureError;
    use socbfs::search::SearchError;
    use socbfs_cluster::ClusterError;

    #[test]
    fn validated_searches_are_kept_unless_a_search_is_wrong_or_other_ranks_wait() {
        let kept = |error: EnergyError| kept::<()>(Err(error), true).map(Result::unwrap_err);
        let unavailable = kept(MeasureError::from(SearchError::Threads("no thread".into())).into()).unwrap();
        assert_eq!(unavailable.reason(), Some("no thread"));
        assert!(kept(ClusterError::Device { rank: 1, reason: "GPU".into() }.into()).is_ok());
        // Only this rank knows of it.
        assert_eq!(kept(ClusterError::Message { rank: 1 }.into()).unwrap_err().code(), 2);
        assert_eq!(kept(EnergyError::Different { root: 0, found: 2, validated: 3 }).unwrap_err().code(), 2);
    }

    #[test]
    fn energy_arguments_mean_auto_off_or_named_sensors() {
        let arguments = |names: &[&str]| SensorArgs {
            energy: names.iter().map(|&n| n.to_owned()).collect(),
            sysfs_root: PathBuf::from("/nowhere").into(),
        };
        assert!(matches!(arguments(&["auto"]).wish(), Ok(Wish::Auto)));
        assert!(matches!(arguments(&["off"]).wish(), Ok(Wish::Off)));
        assert!(matches!(arguments(&["ina2xx", "powercap"]).wish(), Ok(Wish::Named(names)) if names.len() == 2));
        assert!(arguments(&["auto", "ina2xx"]).wish().is_err());
        let none = arguments(&["auto"]).meter(None).unwrap().unwrap_err();
        assert!(none.reason().unwrap().contains("no power sensor"), "{none:?}");
    }
}
