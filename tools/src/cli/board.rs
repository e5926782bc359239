//! `socbfs board`: profiles of boards.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, Args, Subcommand};
use serde_json::json;

use crate::{
    board::{init as first_profile, manifest, tune},
    record::{CalibrationRecord, ChosenPolicy},
    report,
    shell::{
        Failure, LayoutArgs, Output, RootArgs, SearchArgs, Source, print, print_json, progress, say, source, without_effect, worse_of,
    },
};
use socbfs::{DeviceInfo, Simd};
use socbfs_boards::{
    board::{self, Board, Detection, Entry},
    measure::Calibration,
    runtime::{Bound, CalibrationChoice, Choice, Costs, FoundCalibration, Origin, Runtime, RuntimeError, Setting},
};
use socbfs_policy::{Adaptive, Objective, Policy};

const EXAMPLES: &str = "\
Examples:
  socbfs board detect                     which board this is, and why
  socbfs board show odroid-xu4            every value, its origin, estimates
  socbfs board init my-board.toml         a profile for this machine
  socbfs board manifest my-board.files    what Linux shows of it, in one file
  socbfs board detect --sysfs-root my-board.files       look at it elsewhere
  socbfs board tune my-board.toml tuned.toml    measure its bands on this machine
  socbfs board validate my-board.toml
  socbfs bench --board tuned.toml";

/// List, detect, show, write (init), tune or check (validate) board profiles
///
/// A profile describes a board: CPU clusters, OpenCL devices with limits and quirks, thresholds, power rails. Without --board every command
/// uses the profile that fits the machine.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BoardArgs {
    #[command(subcommand)]
    command: BoardCommand,
}

#[derive(Debug, Subcommand)]
enum BoardCommand {
    /// List the profiles compiled in
    List {
        #[command(flatten)]
        root: RootArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the settings in force and every value of the profile, each with its origin
    Show(Box<ShowArgs>),
    /// Say which board this is, and why
    Detect {
        #[command(flatten)]
        root: RootArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a profile for this machine, filled in from what Linux reports of it
    Init {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        root: RootArgs,
    },
    /// Write what Linux shows of this machine to a file, so that others can look at it with --sysfs-root
    ///
    /// The file is TOML. It holds the contents of the files of /proc and /sys that `board`, `sensors` and `doctor` read, but no serial
    /// number and no address. These commands, and the sensors of `bench`, take it as --sysfs-root.
    Manifest {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        root: RootArgs,
    },
    /// Measure the work from which the GPU, or both devices, are faster, for a profile
    ///
    /// This takes seconds once the driver has compiled the kernels, so an interruption keeps nothing.
    Tune(Box<TuneArgs>),
    /// Check profiles
    Validate {
        /// Profiles
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
    /// Print a profile that is compiled in, exactly as in its file
    Profile {
        /// Name of the profile
        #[arg(default_value = board::GENERIC)]
        name: String,
    },
}

/// The file that `init`, `manifest` or `tune` writes.
#[derive(Debug, Args)]
struct Target {
    /// Where to write it ("-": standard output)
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,
}

impl Target {
    /// Opens the output. Users edit these files, so an existing one is replaced only on request.
    fn open(&self) -> Result<Output, Failure> {
        let file = &self.file;
        if self.force { Output::open(file) } else { Output::open_new(file, "name another file, or replace this one with --force") }
    }

    /// Writes `text` and says where it is. `what` names it.
    fn write(&self, output: Output, text: &str, what: &str, quiet: bool) -> Result<(), Failure> {
        let is_file = matches!(output, Output::File(..));
        output.finish(|out| out.write_all(text.as_bytes()))?;
        if is_file && !quiet {
            say(&format!("{what} written to {}", self.file.display()));
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// Profile to show, instead of that of --board [default: the one detected]
    #[arg(value_name = "NAME|FILE")]
    profile: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    search: SearchArgs,
}

/// Measure the bands of a profile
///
/// Searches a graph on the CPU, on the device and on both. Writes the profile with the amounts of work from which the device, or both, are
/// faster, the share of the GPU in split levels, and the cost of a handover. If the profile has no sharing mode or size of work-groups, it
/// writes the fastest too; a sharing mode of --memory-way it writes as given. A comment beside each measured value names the date, the
/// driver and the graph; every other value keeps the comment that says where it is from. The values are removed from `estimates`. A search
/// with the new profile then measures nothing before it starts.
#[derive(Debug, Args)]
#[command(mut_arg("policy", |flag| flag.hide(true)))]
struct TuneArgs {
    /// Profile to measure the bands of (`socbfs board init` writes one)
    #[arg(value_name = "NAME|PROFILE")]
    profile: PathBuf,

    #[command(flatten)]
    target: Target,

    /// Graph to measure on: a file or a generator
    #[arg(long, value_name = "GRAPH", default_value = "kronecker:18")]
    graph: PathBuf,

    #[command(flatten)]
    layout: LayoutArgs,

    #[command(flatten)]
    search: SearchArgs,
}

pub(super) fn run(arguments: &BoardArgs, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
    let matches = matches.subcommand().map_or(matches, |(_, matches)| matches);
    match &arguments.command {
        BoardCommand::List { root, json } => list(&root.sysfs_root, *json),
        BoardCommand::Show(show) => show.run(matches),
        BoardCommand::Detect { root, json } => {
            let detection = detect(&root.sysfs_root)?;
            if *json { print_json(&detection) } else { print(&detected(&detection)) }
        }
        BoardCommand::Init { target, root } => init(target, &root.sysfs_root, quiet),
        BoardCommand::Manifest { target, root } => {
            let output = target.open()?;
            let text = manifest(&root.sysfs_root).map_err(|error| Failure::because("what Linux shows can't be written as TOML", &error))?;
            target.write(output, &text, "manifest", quiet)
        }
        BoardCommand::Tune(tune) => tune.run(matches, quiet),
        BoardCommand::Validate { files } => validate(files),
        BoardCommand::Profile { name } => match board::shipped_text(name) {
            Some(text) => print(text),
            None => Err(Failure::new(format!("there is no profile {name:?}"))
                .cure(format!("compiled in: {}", board::shipped().collect::<Vec<_>>().join(", ")))),
        },
    }
}

fn detect(root: &Path) -> Result<Detection, Failure> {
    board::detect(root).map_err(|error| RuntimeError::Profile(error).into())
}

fn list(root: &Path, json: bool) -> Result<(), Failure> {
    let detection = detect(root)?;
    let mut rows = Vec::new();
    for name in board::shipped() {
        let board = Board::<Policy>::parse(board::shipped_text(name).unwrap_or_default(), name).map_err(RuntimeError::Profile)?;
        rows.push((name, board.board.vendor.unwrap_or_default(), board.board.soc.unwrap_or_default(), name == detection.name));
    }
    if json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, vendor, soc, detected)| json!({ "name": name, "vendor": vendor, "soc": soc, "detected": detected }))
            .collect();
        return print_json(&rows);
    }
    let mark = |detected: bool| if detected { "detected" } else { "" };
    let line = |(name, _, soc, detected)| format!("{}\n", format!("{name:<20}{soc:<38}{}", mark(detected)).trim_end());
    print(&rows.into_iter().map(line).collect::<String>())
}

fn detected(detection: &Detection) -> String {
    let evidence = &detection.evidence;
    let list = (!evidence.device_tree.is_empty()).then(|| evidence.device_tree.join(" "));
    let mut rows = vec![("board", detection.name.to_owned()), ("because", detection.reason.clone())];
    rows.extend(detection.others.iter().map(|other| ("fits as well", format!("{}: {}", other.name, other.reason))));
    for (name, value) in [
        ("device tree", list.as_ref()),
        ("model", evidence.model.as_ref()),
        ("DMI vendor", evidence.dmi_vendor.as_ref()),
        ("DMI product", evidence.dmi_product.as_ref()),
        ("DMI board", evidence.dmi_board.as_ref()),
        ("processor", evidence.cpu_model.as_ref()),
    ] {
        rows.push((name, value.map_or("-", String::as_str).to_owned()));
    }
    rows.iter().map(|(name, value)| report::hanging(&format!("{name:<14}"), value)).collect()
}

fn init(target: &Target, root: &Path, quiet: bool) -> Result<(), Failure> {
    let detection = detect(root)?;
    let output = target.open()?;
    let text = first_profile(root, &detection).map_err(RuntimeError::Profile)?;
    Board::<Policy>::parse(&text, &target.file.display().to_string()).map_err(RuntimeError::Profile)?;
    target.write(output, &text, "profile", quiet)
}

/// Checks all `files`, so that the user sees every fault at once.
fn validate(files: &[PathBuf]) -> Result<(), Failure> {
    let (mut good, mut bad) = (String::new(), Vec::new());
    for file in files {
        match Board::<Policy>::load(file) {
            Ok(board) => {
                // Writing to a String can't fail.
                let _ = writeln!(good, "{}: a valid profile, named {}", file.display(), board.board.name);
            }
            Err(error) => bad.push(Failure::from(RuntimeError::Profile(error))),
        }
    }
    let printed = print(&good);
    let Some(last) = bad.pop() else { return printed };
    bad.iter().for_each(crate::shell::tell);
    worse_of(printed, Err(last))
}

impl TuneArgs {
    fn run(&self, matches: &ArgMatches, quiet: bool) -> Result<(), Failure> {
        without_effect(matches, &["policy", "calibration", "objective", "board"], "tune measures the bands of PROFILE", "omit --FLAG")?;
        let mut config = self.search.resolve_on(&self.profile, matches)?;
        // These override the environment: tune measures bands, and ignores the policy that is set there.
        config.set_policy(Setting::flag(Policy::Adaptive(Box::default())));
        config.calibration = Setting::flag(CalibrationChoice::Off);
        config.objective = Setting::flag(Objective::Time);
        config.apply()?;
        // Opened before anything is measured, so that a file that can't be written fails early.
        let output = self.target.open()?;
        config.check_device()?;
        let source = Source::parse(&self.graph, None)?;
        let (edges, _) = source.load()?;
        let layout = source::build(&source.name(), &edges, &self.layout.options())?;
        drop(edges);
        let text = tune(&config, &layout, &source.name(), &progress::steps())?;
        self.target.write(output, &text, "profile", quiet)
    }
}

impl ShowArgs {
    fn run(&self, matches: &ArgMatches) -> Result<(), Failure> {
        let config = match &self.profile {
            Some(profile) => self.search.resolve_on(profile, matches)?,
            None => self.search.resolve(matches)?,
        };
        let profile = &config.profile;
        let entries = Board::<Policy>::entries(&profile.text, &profile.place).map_err(RuntimeError::Profile)?;
        let found = config.calibration_in_force()?;
        let calibrated = match &found {
            Some(found) => Calibration::entries(&found.file).map_err(RuntimeError::Calibration)?,
            None => Vec::new(),
        };
        let devices = config.chosen().unwrap_or_default();
        let first = devices.first();
        let costs = Costs {
            bottom_up: first.and_then(|info| config.bottom_up(info, found.as_ref())),
            local_memory: first.and_then(|info| config.local_memory(&info.name, &info.platform)),
            ..Costs::default()
        };
        let choice = config.choose(found.as_ref(), !devices.is_empty(), costs)?;
        let bands = config.bands(found.as_ref());
        if !self.json {
            let mut text = settings_text(&config, devices.first(), found.as_ref(), &choice);
            text.push_str(&report::bands(&bands));
            if are_superseded(&bands, &config.policy.value) {
                text.push_str("(A bound is missing: a search in one process\nmeasures all of them first and uses no estimate.)\n");
            }
            text.push('\n');
            text.push_str(&entries_text(&entries, &profile.place));
            if let Some(found) = &found {
                let made = &found.calibration.made;
                // Writing to a String can't fail.
                let _ = writeln!(text, "\ncalibration of {}, by socbfs {} ({})", made.date, made.version, made.commit);
                text.push_str(&entries_text(&calibrated, "calibration"));
            }
            return print(&text);
        }
        let settings: Vec<_> = settings(&config, devices.first(), found.as_ref(), &choice)
            .iter()
            .map(|(name, value, origin)| json!({ "name": name, "value": value, "origin": origin }))
            .collect();
        let values: Vec<_> = entries
            .iter()
            .map(|entry| {
                let key = board::key(&entry.key);
                let (purpose, informs) = (key.map(|key| key.purpose), key.map(|key| key.informs));
                json!({
                    "key": entry.key, "value": entry.value, "line": entry.line, "estimate": entry.estimate, "source": entry.source,
                    "purpose": purpose, "informs": informs,
                })
            })
            .collect();
        print_json(&json!({
            "board": profile.name(),
            "place": profile.place,
            "origin": profile.origin.to_string(),
            "reason": profile.reason,
            "settings": settings,
            "policy": ChosenPolicy::from(&choice),
            "bands": bands,
            "values": values,
            "calibration": found.as_ref().map(|found| json!({ "record": CalibrationRecord::from(found), "values": calibrated })),
        }))
    }
}

/// Whether some `bands` are estimates that a search does not use, since they leave a bound open.
fn are_superseded(bands: &[Bound], policy: &Policy) -> bool {
    let is_given = |key: &str| bands.iter().any(|band| band.key == key);
    let all = ["top_down.gpu_from", "top_down.split_from", "bottom_up.gpu_from", "bottom_up.split_from"];
    // Costs of a calibration, or the defaults of `concurrent`, take the place of missing bounds.
    let is_complete = all.into_iter().all(is_given) || policy.adaptive().is_some_and(Adaptive::is_complete);
    !is_complete && bands.iter().any(|band| band.origin == Origin::Estimate)
}

/// Name, value and origin of the settings of a search.
fn settings(
    config: &Runtime,
    device: Option<&DeviceInfo>,
    found: Option<&FoundCalibration>,
    choice: &Choice,
) -> Vec<(&'static str, String, String)> {
    fn row<T>(name: &'static str, setting: &Setting<T>, value: String) -> (&'static str, String, String) {
        (name, value, setting.origin.to_string())
    }
    let team = config.team();
    let threads = match team.value {
        0 => "one for every CPU".to_owned(),
        threads => threads.to_string(),
    };
    let cpus = if config.cpus.value.numbers().is_empty() { "not bound".to_owned() } else { config.cpus.value.to_string() };
    let (policy, policy_origin) = (choice.policy.to_string(), choice.origin);
    let (calibration, calibration_origin) = config.calibration_shown(found);
    vec![
        row("threads", &team, threads),
        row("cpus", &config.cpus, cpus),
        row("batch", &config.batch, config.batch.value.map_or_else(|| "4096".to_owned(), |batch| batch.to_string())),
        ("policy", policy, policy_origin.to_string()),
        row("simd", &config.simd, config.simd.value.unwrap_or_else(Simd::detect).to_string()),
    ]
    .into_iter()
    .chain(config.device_settings(device, found).map(|(name, origin, value)| (name, value, origin.to_string())))
    .chain([("calibration", calibration, calibration_origin.to_string())])
    .collect()
}

fn settings_text(config: &Runtime, device: Option<&DeviceInfo>, found: Option<&FoundCalibration>, choice: &Choice) -> String {
    let board = ("board", config.profile.name().to_owned(), config.profile.reason.clone());
    let rows = settings(config, device, found, choice);
    let row = |(name, value, origin)| report::hanging(&format!("{name:<17} "), &format!("{value:<23} {origin}"));
    std::iter::once(board).chain(rows).map(row).collect()
}

/// Every value: key, value, file and line, and whether it is an estimate; below them its use and its source.
fn entries_text(entries: &[Entry], place: &str) -> String {
    let keys = entries.iter().map(|entry| entry.key.chars().count()).max().unwrap_or(0).min(41);
    let lines = |entry: &Entry| {
        let mark = if entry.estimate { "  estimate" } else { "" };
        let (key, value) = (&entry.key, format!("{:<12}  {place}:{}{mark}", entry.value, entry.line));
        let value = match format!("{key:<keys$}  {value}\n") {
            line if line.chars().count() <= report::COLUMNS + 1 => line,
            // Below the key, where a URL has room.
            _ => format!("{key}\n") + &report::hanging("    ", &value),
        };
        let source = entry.source.as_deref().map_or_else(String::new, |source| format!(" # {source}"));
        let purpose = board::key(&entry.key).map_or_else(String::new, |key| format!("[{}]", key.purpose));
        match format!("{purpose}{source}").trim_start() {
            "" => value,
            said => value + &report::hanging("    ", said),
        }
    };
    entries.iter().map(lines).collect()
}
