//! The flags of sensors and of energy.

use std::{path::Path, time::Duration};

use clap::{ArgMatches, Args, parser::ValueSource};
use socbfs_power::{Meter, Profile, Scope, SelectError, Selection, Skipped, Source, SystemFiles, discover};

use super::{Bar, Failure, Root, config, protect, root};
#[cfg(feature = "mpi")]
use crate::bench::measure_cluster_energy;
use crate::{
    bench::{EnergyError, EnergyOptions, measure_energy, power_saving},
    calibrate::PowerWindows,
    record::{EnergyRecord, Green, RootRecord},
};
use socbfs::{Layout, Search, SearchOptions, words::general};
use socbfs_boards::runtime;

/// Where to look for sensors, and which of them to use.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Energy")]
pub(crate) struct SensorArgs {
    /// auto (the sensors that the last line of `socbfs sensors` names), off, or a comma-separated list of sensors to add up: FAMILY,
    /// FAMILY:ID, FAMILY:LABEL, or a meter: smartpower2:/dev/ttyUSB0, smartpower3:udp:6000, wt310:/dev/usbtmc0, external:FILE (lines of
    /// seconds and watts)
    #[arg(long, value_name = "SENSOR", env = "SOCBFS_ENERGY", hide_env_values = true, value_delimiter = ',', default_value = "auto")]
    energy: Vec<String>,

    /// Look for sensors below this folder, or in this manifest, instead of below /
    #[arg(long, value_name = "DIR|FILE", default_value = "/", hide = true, value_parser = root())]
    sysfs_root: Root,
}

/// Windows of searches, in which energy is measured.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Energy")]
pub(crate) struct WindowArgs {
    #[command(flatten)]
    sensors: SensorArgs,

    /// Minimum length of a window of searches, in seconds: a window also lasts 200 refreshes of the slowest sensor
    #[arg(long, value_name = "S", default_value_t = EnergyOptions::default().window.seconds, value_parser = parse_seconds)]
    energy_seconds: f64,

    /// Number of windows, over which the spread of the result is taken
    #[arg(long, value_name = "N", default_value_t = EnergyOptions::default().repeats, value_parser = parse_count)]
    energy_repeats: usize,
}

/// The energy flags of `bench`.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Energy")]
pub(crate) struct EnergyArgs {
    #[command(flatten)]
    windows: WindowArgs,

    /// Measure as the rules of Green Graph500 ask: windows of 100 s and more, the power of the whole system (else the run is refused), and
    /// the state of clocks and power saving in the record
    #[arg(long)]
    green: bool,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    seconds_in(text, 0.1, 86_400.0)
}

pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=1000) => Ok(count),
        _ => Err("not a number from 1 to 1000".to_owned()),
    }
}

pub(crate) fn seconds_in(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = text.parse().ok().filter(|value| (least..=most).contains(value));
    number.ok_or_else(|| format!("not a number of seconds from {least} to {most}"))
}

/// What measures power, or what was measured by it; `Err`: the record that says why there is none.
pub(crate) type Measured<T> = Result<T, Box<EnergyRecord>>;

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

    /// Whether a flag or the environment asks for energy. Commands that need minutes for the measurement make it only on request.
    pub(crate) fn is_asked(&self, matches: &ArgMatches) -> bool {
        match matches.value_source("energy") {
            Some(ValueSource::CommandLine) => true,
            Some(ValueSource::EnvVariable) => !matches!(self.wish(), Ok(Wish::Off)),
            _ => false,
        }
    }

    /// The folder with the files of the machine.
    pub(crate) fn root(&self) -> &Path {
        &self.sysfs_root
    }

    pub(crate) fn sources(&self) -> Vec<Source> {
        discover(&SystemFiles::new(&*self.sysfs_root))
    }

    /// Starts the meter.
    ///
    /// # Errors
    /// For a wrong `--energy`, and for sensors that are named in it and can't be used.
    pub(crate) fn meter(&self, profile: Option<&Profile>) -> Result<Measured<Meter>, Failure> {
        let refused = |error: SelectError, skipped: Vec<Skipped>| EnergyRecord {
            skipped,
            ..EnergyRecord::unavailable(error.to_string(), error.cure())
        };
        match self.wish()? {
            Wish::Off => Ok(Err(EnergyRecord::unavailable("switched off with --energy off", None).into())),
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
                Ok(started.map_err(|error| refused(error, skipped).into()))
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
    let cure = error.cure().unwrap_or_else(|| "`socbfs sensors` shows the sensors, and why they can't be used".to_owned());
    Failure::because("can't measure energy", error).cure(cure)
}

/// The power sensors in the profile at `path`, or in that of the detected board.
pub(crate) fn profile_at(path: Option<&Path>) -> Result<Option<Profile>, Failure> {
    Ok(config::profile(path)?.power())
}

impl WindowArgs {
    /// As [`SensorArgs::is_asked`].
    pub(crate) fn is_asked(&self, matches: &ArgMatches) -> bool {
        self.sensors.is_asked(matches)
    }

    /// Starts the meter after the searches, which are kept if it fails. Also returns the windows to measure, of `least` seconds at least.
    fn windows(&self, board: &runtime::Profile, least: f64) -> (Measured<Meter>, EnergyOptions) {
        let mut options = EnergyOptions { repeats: self.energy_repeats, ..EnergyOptions::default() };
        options.window.seconds = self.energy_seconds.max(least);
        match self.sensors.meter(board.power().as_ref()) {
            Ok(meter) => {
                let PowerWindows { seconds, refreshes } = options.window;
                if let Some(least) = meter.as_ref().ok().map(|meter| options.window.least_seconds(meter)).filter(|&least| least > seconds) {
                    log::warn!(
                        "each of the {} windows takes {} s instead of {seconds} s, which is {refreshes} refreshes of the slowest sensor, and \
                         idling before them a third of that (--energy off leaves them out)",
                        options.repeats,
                        general(least, 3)
                    );
                }
                (meter, options)
            }
            Err(failure) => (Err(unmeasured(&failure, true).into()), options),
        }
    }

    /// Calls `measure` with the meter, with the windows, of `least` seconds at least, and with what is called after each of `count` windows
    /// in each repeat.
    pub(crate) fn measure<T>(
        &self,
        board: &runtime::Profile,
        least: f64,
        count: usize,
        measure: impl FnOnce(&Meter, &EnergyOptions, &mut dyn FnMut(usize)) -> T,
    ) -> Measured<T> {
        let (meter, options) = self.windows(board, least);
        let meter = meter?;
        let progress = Bar::still("Measuring energy", (options.repeats * count) as u64 + 1);
        Ok(measure(&meter, &options, &mut |done| progress.between(done)))
    }
}

impl EnergyArgs {
    /// As [`SensorArgs::is_asked`].
    pub(crate) fn is_asked(&self, matches: &ArgMatches) -> bool {
        self.windows.is_asked(matches)
    }

    /// Checks before the work begins that the sensors named in `--energy` can be used.
    pub(crate) fn check(&self, board: &runtime::Profile) -> Result<(), Failure> {
        let named = matches!(self.windows.sensors.wish()?, Wish::Named(_));
        if !named && !self.green {
            return Ok(());
        }
        match self.windows.sensors.meter(board.power().as_ref())? {
            Ok(meter) if self.green => whole_system(&meter),
            Err(none) if self.green => Err(green_refused(none.why())),
            Ok(_) => Ok(()),
            Err(_) => Err(Failure::new("no sensor")),
        }
    }

    /// The least length of a window in seconds.
    fn least(&self) -> f64 {
        if self.green { GREEN_SECONDS } else { 0.0 }
    }

    /// Measures the energy of searches over ranks from the roots of `records`, by the sensors of every rank's board.
    #[cfg(feature = "mpi")]
    pub(crate) fn measure_cluster<R: socbfs_cluster::Ranks>(
        &self,
        board: &runtime::Profile,
        search: &mut socbfs_cluster::ClusterSearch<'_, R>,
        ranks: &R,
        records: &[RootRecord],
    ) -> Result<EnergyRecord, Failure> {
        let (meter, options) = self.windows.windows(board, self.least());
        let host = socbfs_cluster::Host::read(&self.windows.sensors.sysfs_root);
        let progress = (ranks.rank() == 0).then(|| Bar::still("Measuring energy", options.repeats as u64 + 1));
        let mut finished = |done| {
            if let Some(progress) = &progress {
                progress.between(done);
            }
        };
        let measured =
            measure_cluster_energy(search, ranks, records, host, meter.as_ref().map_err(|none| &**none), &options, &mut finished);
        drop(progress);
        Ok(kept(Ok(measured), ranks.rank() == 0)?.unwrap_or_else(|none| *none))
    }

    /// As [`WindowArgs::measure`], with windows as long as `--green` asks, after validated searches.
    pub(crate) fn measure_valid<T>(
        &self,
        board: &runtime::Profile,
        count: usize,
        measure: impl FnOnce(&Meter, &EnergyOptions, &mut dyn FnMut(usize)) -> Result<T, EnergyError>,
    ) -> Result<Measured<T>, Failure> {
        kept(self.windows.measure(board, self.least(), count, measure), true)
    }

    /// Measures the energy of searches from the roots of `records`.
    pub(crate) fn measure(
        &self,
        board: &runtime::Profile,
        layout: &Layout,
        search: Search<'_>,
        search_options: &SearchOptions,
        records: &[RootRecord],
    ) -> Result<EnergyRecord, Failure> {
        let measured = self.measure_valid(board, 1, |meter, options, finished| {
            let measured = measure_energy(layout, search, search_options, records, meter, options, finished)?;
            let green = self.green.then(|| Green { power_saving: power_saving(self.windows.sensors.root()) });
            Ok(EnergyRecord { green, ..measured })
        });
        Ok(measured?.unwrap_or_else(|none| *none))
    }
}

/// Least length of a window by the rules of Green Graph500.
const GREEN_SECONDS: f64 = 100.0;

/// Refuses sensors that do not measure the whole system.
fn whole_system(meter: &Meter) -> Result<(), Failure> {
    if [Scope::Wall, Scope::BoardInput].iter().any(|whole| whole.name() == meter.scope()) {
        return Ok(());
    }
    let sensors: Vec<String> = meter.picks().filter(|pick| pick.counted).map(|pick| pick.channel.described()).collect();
    Err(green_refused(&format!("the sensors measure {}: {}", meter.scope(), sensors.join(" + "))))
}

fn green_refused(why: &str) -> Failure {
    Failure::new(format!("Green Graph500 asks for the power of the whole system: {why}"))
        .cure("name a sensor at its input with --energy (`socbfs sensors`), with a board profile that gives the scope; or omit --green")
}

/// Keeps the record of validated searches whose energy could not be measured, and warns of it if this process `tells`.
///
/// # Errors
/// A search that differs from the validated one, and an error that other ranks do not know of, since they would wait for this rank.
pub(crate) fn kept<T>(measured: Measured<Result<T, EnergyError>>, tells: bool) -> Result<Measured<T>, Failure> {
    Ok(match measured {
        Err(none) => Err(none),
        Ok(Ok(energy)) => Ok(energy),
        Ok(Err(error @ EnergyError::Different { .. })) => return Err(error.into()),
        Ok(Err(EnergyError::Cluster(error))) if !error.is_of_all() => return Err(error.into()),
        Ok(Err(error)) => Err(unmeasured(&error.into(), tells).into()),
    })
}

/// The record of a run whose energy could not be measured. This process warns of it if it `tells`.
pub(crate) fn unmeasured(failure: &Failure, tells: bool) -> EnergyRecord {
    if tells {
        log::warn!("no energy was measured: {failure}");
    }
    let cure = if let Failure::Error { cure, .. } = failure { cure.clone() } else { None };
    EnergyRecord::unavailable(failure.to_string(), cure)
}

/// Time over which `socbfs sensors` measures the values that it shows.
pub(crate) const GLANCE: Duration = Duration::from_millis(1000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::MeasureError;
    use socbfs::search::SearchError;
    use socbfs_cluster::ClusterError;

    #[test]
    fn validated_searches_are_kept_unless_a_search_is_wrong_or_other_ranks_wait() {
        let kept = |error: EnergyError| kept::<()>(Ok(Err(error)), true).map(Result::unwrap_err);
        let unavailable = kept(MeasureError::from(SearchError::Threads("no thread".into())).into()).unwrap();
        assert_eq!(unavailable.reason(), Some("no thread"));
        assert!(kept(ClusterError::Device { rank: 1, reason: "GPU".into() }.into()).is_ok());
        // Only this rank knows of it.
        assert_eq!(kept(ClusterError::Message { rank: 1 }.into()).unwrap_err().code(), 2);
        assert_eq!(kept(EnergyError::Different { root: 0, found: 2, validated: 3 }).unwrap_err().code(), 2);
    }

    #[test]
    fn green_runs_need_the_power_of_the_whole_system_and_long_windows() {
        let machine = |sensor: &str, profile: &str| {
            let root = tempfile::tempdir().unwrap();
            let chip = root.path().join("sys/class/hwmon/hwmon0");
            std::fs::create_dir_all(&chip).unwrap();
            std::fs::write(chip.join("name"), "ina219").unwrap();
            std::fs::write(chip.join("power1_input"), "5000000").unwrap();
            let sensors = SensorArgs { energy: vec![sensor.to_owned()], sysfs_root: root.path().to_owned().into() };
            let windows = WindowArgs { sensors, energy_seconds: 1.0, energy_repeats: 1 };
            let arguments = EnergyArgs { windows, green: true };
            let text = format!("schema = 1\n[board]\nname = 'b'\n{profile}");
            let board = socbfs_boards::board::Board::parse(&text, "b.toml").unwrap();
            let origin = runtime::Origin::Board;
            let board = runtime::Profile { board, text: text.into(), place: "b.toml".into(), origin, reason: "asked for".into() };
            (arguments.check(&board), arguments.windows.windows(&board, arguments.least()).1.window.seconds)
        };
        let rail = |scope: &str| {
            format!("[power]\nscope = '{scope}'\n[[power.rails]]\nfamily = 'ina2xx'\nid = 'hwmon*'\ndomain = 'board'\ncounted = true\n")
        };
        let (checked, seconds) = machine("auto", &rail("board-input"));
        assert!(checked.is_ok() && seconds >= 100.0, "{checked:?}");
        let refused = |sensor: &str, profile: &str| machine(sensor, profile).0.unwrap_err().to_string();
        assert!(refused("auto", &rail("soc-rails")).contains("the sensors measure soc-rails"));
        assert!(refused("off", "").contains("switched off"));
        assert!(refused("ina2xx", "").ends_with("whole system: the sensors measure soc-rails: ina2xx:hwmon0"));
    }

    #[test]
    fn energy_arguments_mean_auto_off_or_named_sensors() {
        let arguments = |names: &[&str]| SensorArgs {
            energy: names.iter().map(|&n| n.to_owned()).collect(),
            sysfs_root: std::path::PathBuf::from("/nowhere").into(),
        };
        assert!(matches!(arguments(&["auto"]).wish(), Ok(Wish::Auto)));
        assert!(matches!(arguments(&["off"]).wish(), Ok(Wish::Off)));
        assert!(matches!(arguments(&["ina2xx", "powercap"]).wish(), Ok(Wish::Named(names)) if names.len() == 2));
        assert!(arguments(&["auto", "ina2xx"]).wish().is_err());
        let none = arguments(&["auto"]).meter(None).unwrap().unwrap_err();
        assert!(none.reason().unwrap().contains("no power sensor"), "{none:?}");
    }
}
