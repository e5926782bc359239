//! `socbfs sensors`: what measures power here.

use std::{
    fmt::Write as _,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};
use serde::Serialize;
use socbfs_power::{
    Channel, Energy, Meter, Profile, SelectError, Selection, SignalKind, Skipped, Source, SystemFiles, discover, open_named,
};

use crate::{
    doctor::SensorProbe,
    report::{Cell, Table, folded_by, written},
    shell::{Failure, GLANCE, RootArgs, print, print_json, profile_at, results, seconds_in, shown},
};
use socbfs_boards::runtime;
use socbfs_machine::is_live;

const EXAMPLES: &str = "\
Examples:
  socbfs sensors
  socbfs sensors smartpower3:/dev/ttyUSB0      also a meter at this port
  socbfs sensors watch --interval 0.5
  socbfs sensors --json | jq '.sensors[].watts'

`bench` and `energy` measure with the sensors that the last line names, or with
those of --energy.";

/// Show the power sensors of this machine, or why they can't be used
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(super) struct SensorsArgs {
    #[command(subcommand)]
    command: Option<SensorsCommand>,

    #[command(flatten)]
    found: FoundArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SensorsCommand {
    /// Print the power of every sensor at intervals
    Watch {
        #[command(flatten)]
        found: FoundArgs,

        /// Seconds between two lines
        #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = parse_interval)]
        interval: f64,

        /// End after this many lines
        #[arg(long, value_name = "N")]
        count: Option<u64>,
    },
}

/// Which sensors to show.
#[derive(Debug, Args)]
struct FoundArgs {
    /// Meters to show beside the sensors that were found
    #[arg(value_name = "METER")]
    meters: Vec<String>,

    /// Board profile that says what each rail feeds [default: the one detected]
    #[arg(long, value_name = "NAME|FILE", env = "SOCBFS_BOARD", hide_env_values = true)]
    board: Option<PathBuf>,

    #[command(flatten)]
    root: RootArgs,
}

fn parse_interval(text: &str) -> Result<f64, String> {
    seconds_in(text, 0.05, 3600.0)
}

/// What `sensors --json` writes.
#[derive(Debug, Serialize)]
struct Sensors {
    schema: &'static str,
    schema_version: u32,
    /// Usable sensors.
    sensors: Vec<Usable>,
    /// Sensors that can't be used, each with reason and cure.
    unusable: Vec<Skipped>,
    /// What `--energy auto` adds up.
    auto: SensorProbe,
}

/// A usable sensor. Its watts are the mean over about a second ([`GLANCE`]).
#[derive(Debug, Serialize)]
struct Usable {
    sensor: String,
    label: Option<String>,
    domain: String,
    scope: String,
    part: String,
    signal: SignalKind,
    refresh_ms: f64,
    watts: Option<f64>,
    problem: Option<String>,
    place: String,
}

impl FoundArgs {
    /// Starts a meter with the sensors that are found and those that are named. A named one that can't be used is an error.
    fn meter(&self, profile: Option<&Profile>) -> Result<Meter, Failure> {
        let mut sources = discover(&SystemFiles::new(&*self.root.sysfs_root));
        let mut named = Vec::new();
        for name in &self.meters {
            let meter = open_named(name).ok_or_else(|| {
                Failure::new(format!("{name:?} is not a meter"))
                    .cure("meters: smartpower2:/dev/ttyUSB0, smartpower3:udp:6000, wt310:/dev/usbtmc0, external:FILE; sensors of the system are found without naming them")
            })?;
            named.push((name, meter.channels.iter().map(Channel::name).collect::<Vec<_>>()));
            sources.push(meter);
        }
        let meter = started(sources, profile)?;
        for (name, channels) in named {
            // A meter of which a part works is shown.
            if !meter.picks().any(|pick| channels.contains(&pick.channel.name())) {
                // The name of a sensor that was left out may end with its label.
                let is_own = |skipped: &&Skipped| channels.iter().any(|channel| skipped.sensor.starts_with(channel.as_str()));
                let skipped = meter.skipped().iter().find(is_own);
                let cure = skipped.and_then(|skipped| skipped.cure.as_deref());
                return Err(Failure::new(format!("can't use {name}: {}", skipped.map_or("it has no channel", |skipped| &skipped.reason)))
                    .cure(cure.unwrap_or("check the spelling, and that the meter is connected and sends readings")));
            }
        }
        Ok(meter)
    }

    fn profile(&self) -> Result<Option<Profile>, Failure> {
        let root = &self.root.sysfs_root;
        self.board.as_deref().map_or_else(|| Ok(runtime::Profile::detected_below(root)?.power()), |board| profile_at(Some(board)))
    }
}

pub(super) fn run(arguments: &SensorsArgs) -> Result<(), Failure> {
    match &arguments.command {
        None => show(&arguments.found, arguments.json),
        Some(SensorsCommand::Watch { found, interval, count }) => watch(found, Duration::from_secs_f64(*interval), *count),
    }
}

/// Starts a meter that reads every sensor and adds up none.
pub(super) fn started(sources: Vec<Source>, profile: Option<&Profile>) -> Result<Meter, Failure> {
    // No sensor is indispensable, since nothing is added up: this fails only if no thread can be started.
    Meter::start(Selection::everything(sources, profile)).map_err(|error| Failure::because("can't read the sensors", &error))
}

fn show(found: &FoundArgs, json: bool) -> Result<(), Failure> {
    let profile = found.profile()?;
    let meter = found.meter(profile.as_ref())?;
    let energy = meter.idle(if meter.picks().next().is_some() { GLANCE } else { Duration::ZERO });
    let usable = meter.picks().zip(&energy.rails).map(|(pick, rail)| Usable {
        sensor: rail.sensor.clone(),
        label: rail.label.clone(),
        domain: pick.domain.to_string(),
        scope: pick.channel.scope.to_string(),
        part: pick.channel.part.to_string(),
        signal: rail.signal,
        refresh_ms: rail.refresh_ms,
        watts: rail.watts.map(|watts| watts.0),
        problem: rail.problem.clone(),
        place: pick.channel.place.clone(),
    });
    let sensors = Sensors {
        schema: "socbfs-sensors",
        schema_version: 1,
        sensors: usable.collect(),
        unusable: meter.skipped().to_vec(),
        auto: automatic(&found.root.sysfs_root, profile.as_ref()),
    };
    if json {
        return print_json(&sensors);
    }
    let mut text = written(|out| write_table(out, &sensors));
    if !is_live(&found.root.sysfs_root) {
        text.push_str("\nThese are another machine's files, in which a counter stands still.\n");
    }
    print(&text)
}

/// What `--energy auto` would measure below `root`; the same code chooses the sensors.
pub(super) fn automatic(root: &Path, profile: Option<&Profile>) -> SensorProbe {
    // `discover` finds no meters: they must be named.
    match Selection::automatic(discover(&SystemFiles::new(root)), profile).and_then(Meter::start) {
        Ok(meter) => SensorProbe { scope: Some(meter.scope().to_owned()), sensors: meter.sensors(), ..SensorProbe::default() },
        Err(error) => SensorProbe {
            reason: Some(error.to_string()),
            cure: error.cure(),
            unnamed: matches!(error, SelectError::Unnamed { .. }),
            ..SensorProbe::default()
        },
    }
}

/// What is told where nothing was found.
const LOOKED_FOR: &str = "\
Looked in /sys for RAPL (powercap and perf), power chips under hwmon and IIO
(INA2xx, amdgpu, ODPM and others), and batteries, and for the PMIC of a
Raspberry Pi: none is here.
  A virtual machine does not see the sensors of its host. On a board, load the
  driver of its chip (modprobe ina2xx; modprobe intel_rapl_msr) and look again.
  A meter on the supply is named: socbfs sensors smartpower3:/dev/ttyUSB0
";

fn write_table(out: &mut String, all: &Sensors) -> std::fmt::Result {
    if !all.sensors.is_empty() {
        let row = |sensor: &Usable| {
            let (label, watts) = (sensor.label.as_deref().unwrap_or(""), sensor.watts.map(|watts| socbfs_power::Watts(watts).to_string()));
            let [watts, refresh] = [watts.unwrap_or_else(|| "n/a".to_owned()), format!("{} ms", sensor.refresh_ms)];
            [&*sensor.sensor, label, &*sensor.domain, &*watts, &*refresh, &*sensor.scope].map(Cell::word).to_vec()
        };
        let columns = ["sensor", "label", "feeds", "now", "new every", "covers"].map(str::to_owned).to_vec();
        let table = Table { columns, rows: all.sensors.iter().map(row).collect() };
        folded_by(out, "", &table, &|column| !matches!(column, 3 | 4))?;
        for (sensor, problem) in all.sensors.iter().filter_map(|sensor| Some((sensor, sensor.problem.as_ref()?))) {
            writeln!(out, "{}: {problem}", sensor.sensor)?;
        }
        writeln!(out)?;
    }
    for skipped in &all.unusable {
        writeln!(out, "not usable: {skipped}")?;
        if let Some(cure) = &skipped.cure {
            writeln!(out, "  help: {cure}")?;
        }
    }
    if !all.unusable.is_empty() {
        writeln!(out)?;
    }
    if all.sensors.is_empty() && all.unusable.is_empty() {
        writeln!(out, "{LOOKED_FOR}")?;
    }
    match (&all.auto.scope, &all.auto.reason) {
        (Some(scope), _) => writeln!(out, "--energy auto measures {scope}: {}", all.auto.sensors.join(" + ")),
        (None, reason) => {
            writeln!(out, "--energy auto measures nothing: {}", reason.as_deref().unwrap_or("no sensor"))?;
            all.auto.cure.as_ref().map_or(Ok(()), |cure| writeln!(out, "  help: {cure}"))
        }
    }
}

/// A line of `watch`: the cells under the names in `head`, with two blanks or more between columns.
fn row(cells: &[String], head: &[String]) -> String {
    cells.iter().zip(head).map(|(cell, name)| format!("{cell:>width$}", width = (name.chars().count() + 2).max(16))).collect()
}

fn watch(found: &FoundArgs, interval: Duration, count: Option<u64>) -> Result<(), Failure> {
    let profile = found.profile()?;
    let meter = found.meter(profile.as_ref())?;
    if meter.picks().next().is_none() {
        let reason = meter.skipped().first().map_or_else(|| "no power sensor was found on this machine".to_owned(), ToString::to_string);
        return Err(Failure::new(reason).cure("`socbfs sensors` shows the sensors, and why they can't be used"));
    }
    // A label is a text from elsewhere.
    let names = meter.picks().map(|pick| format!("{} W", shown::text(pick.channel.label.as_deref().unwrap_or(&pick.channel.id))));
    let head: Vec<String> = std::iter::once("seconds".to_owned()).chain(names).collect();
    let mut out = BufWriter::new(results());
    let mut line =
        |cells: &[String]| writeln!(out, "{}", row(cells, &head)).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error));
    line(&head)?;
    let (begin, mut done) = (std::time::Instant::now(), 0);
    while count.is_none_or(|count| done < count) {
        let energy: Energy = meter.idle(interval);
        let watts = energy.rails.iter().map(|rail| rail.watts.map_or_else(|| "n/a".to_owned(), |watts| format!("{:.3}", watts.0)));
        let cells: Vec<String> = std::iter::once(format!("{:.2}", begin.elapsed().as_secs_f64())).chain(watts).collect();
        line(&cells)?;
        done += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_without_sensors_gives_the_reason() {
        let auto = SensorProbe { reason: Some("no power sensor was found on this machine".into()), ..SensorProbe::default() };
        let none = Sensors { schema: "socbfs-sensors", schema_version: 1, sensors: Vec::new(), unusable: Vec::new(), auto };
        let reason = "--energy auto measures nothing: no power sensor was found on this machine\n";
        assert_eq!(written(|out| write_table(out, &none)), format!("{LOOKED_FOR}\n{reason}"));
    }

    #[test]
    fn intervals_are_checked() {
        assert!(parse_interval("0.5").is_ok());
        for bad in ["0", "-1", "x", "nan", "1e9"] {
            assert!(parse_interval(bad).is_err(), "{bad}");
        }
    }
}
