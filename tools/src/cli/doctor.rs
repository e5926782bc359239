//! `socbfs doctor`: what is wrong on this machine, and what cures it.

use std::{
    fmt::Write as _,
    io::Read,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use clap::Args;
use socbfs_power::{SystemFiles, discover};

use super::sensors::{automatic, started};
use crate::{
    doctor::{DeviceProbe, Diagnosis, OpenClProbe, Probe, SensorProbe, Subject, Verdict, busiest, examine, online_cpus, open_device},
    report::{
        COLUMNS,
        figures::{COLOURS, PLAIN},
        wrapped,
    },
    shell::{Bar, Failure, RootArgs, config, print_coloured, print_json, profile_at, worse_of},
};
use socbfs::{
    DeviceInfo, DeviceKind, OpenClError,
    opencl::{PlatformInfo, end_with, exact_choices, named_library, opened_library, platforms, try_driver},
    words::counted,
};
use socbfs_boards::{
    board,
    runtime::{self, RuntimeError},
};

const EXAMPLES: &str = "\
Examples:
  socbfs doctor
  socbfs doctor --quiet                     problems only
  socbfs doctor --json | jq -r '.findings[] | select(.cure) | .cure'

Exit codes: 0 searches work (there may be warnings), 2 something prevents them.
With --sysfs-root no search is tried. A check that is impossible here, as in a container, is \"unknown\", which is not a
fault.";

/// Report what is wrong on this machine, with the command that cures it
///
/// Tries a search on the CPU and on every OpenCL device, each in a process of its own, and examines device files, drivers, power sensors,
/// clocks, temperatures, memory and load. Changes nothing.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    root: RootArgs,

    /// Board profile that says what each power rail feeds [default: the one detected]
    #[arg(long, value_name = "NAME|FILE", env = "SOCBFS_BOARD", hide_env_values = true)]
    board: Option<PathBuf>,
}

/// Time limit of a search: a driver that compiles kernels for the first time may take long on a small board.
const PATIENCE: Duration = Duration::from_secs(180);

/// Time over which the load of other programs is measured.
const WATCH: Duration = Duration::from_millis(500);

/// A connected graph, so that a search from vertex 0 reaches every vertex.
const GRAPH: &str = "grid:32x32,deletion=0";

pub(super) fn run(arguments: &DoctorArgs, quiet: bool) -> Result<(), Failure> {
    let root = &*arguments.root.sysfs_root;
    let board = board::detect(root).map_err(RuntimeError::Profile)?;
    // Also refuses a profile that can't be read, before anything is tried.
    let named = arguments.board.as_deref().map(|name| config::profile(Some(name))).transpose()?;
    let profile = named.clone().map_or_else(|| runtime::Profile::detected_below(root), Ok)?;
    let live = root == Path::new("/");
    // Another machine's load is judged by its own CPUs.
    let here = || std::thread::available_parallelism().map_or(1, usize::from);
    let usable_cpus = Some(root).filter(|_| !live).and_then(online_cpus).unwrap_or_else(here);
    let probe = if live { probe(root, arguments.board.as_deref(), named.as_ref())? } else { Probe::default() };
    let subject = Subject {
        root,
        is_root: nix::unistd::geteuid().is_root(),
        open: if live { open_device } else { |_| Err(std::io::Error::other("no device of another machine is opened")) },
        usable_cpus,
        board: &board,
        profile: named.as_ref().map(|profile| &*profile.place),
        gpus: profile.board.opencl.gpus().map(|device| device.name.to_string()).collect(),
        load: if live { try_driver } else { |_| None },
        opencl_library: named_library().filter(|_| live).map(Into::into),
        icd_vendors: std::env::var_os("OCL_ICD_VENDORS").filter(|set| live && !set.is_empty()),
        probe,
    };
    tell(&examine(&subject), arguments.json, quiet)
}

/// Prints the findings; exit code 2 if one of them prevents a search.
fn tell(diagnosis: &Diagnosis, json: bool, quiet: bool) -> Result<(), Failure> {
    let printed = if json { print_json(diagnosis) } else { print_coloured(|colours| text(diagnosis, quiet, colours)) };
    worse_of(printed, if diagnosis.works == Some(false) { Err(Failure::Command(2)) } else { Ok(()) })
}

/// Runs the checks that are possible only on the running machine.
fn probe(root: &Path, board: Option<&Path>, named: Option<&runtime::Profile>) -> Result<Probe, Failure> {
    let progress = Bar::start("Looking at other programs", 0);
    // Measured first, while no other check runs.
    let busy = root.join("proc/self/stat").exists().then(|| busiest(root, WATCH));
    drop(progress);
    let profile = named.map_or_else(|| profile_at(None), |named| Ok(named.power()))?;
    let auto = automatic(root, profile.as_ref());
    // The sensors are read, since only that shows whether a counter moves.
    let meter = started(discover(&SystemFiles::new(root)), profile.as_ref())?;
    let usable = meter.picks().map(|pick| pick.channel.name()).collect();
    let unusable = meter.skipped().to_vec();
    let sensors = SensorProbe { usable, unusable, ..auto };
    drop(meter);
    // The policy of the board may need a device.
    let search = search(&["--device", "cpu", "--policy", "auto"], board).map_or(Ok(()), Err);
    let opencl = opencl(board);
    Ok(Probe { search: Some(search), opencl: Some(opencl), library: opened_library(), sensors: Some(sensors), busy })
}

/// Lists the devices, and tries those that can be used.
fn opencl(board: Option<&Path>) -> OpenClProbe {
    let platforms = match platforms() {
        Ok(platforms) => platforms,
        Err(OpenClError::NoLibrary) => return OpenClProbe::NoLibrary,
        Err(none @ (OpenClError::NamedLibrary { .. } | OpenClError::NoPlatform)) => return OpenClProbe::Nothing(none.to_string()),
        Err(error) => return OpenClProbe::Crashed(error.to_string()),
    };
    let problem = |platform: &PlatformInfo| Some(format!("{}: {}", platform.name, platform.problem.as_ref()?));
    let problems: Vec<String> = platforms.iter().filter_map(problem).collect();
    let devices = platforms.into_iter().flat_map(|platform| platform.devices);
    let device = |device: DeviceInfo| DeviceProbe {
        name: device.name,
        platform: device.platform,
        gpu: device.kind == DeviceKind::Gpu,
        problem: device.unusable,
    };
    let devices: Vec<DeviceProbe> = devices.map(device).collect();
    if devices.is_empty() {
        return OpenClProbe::Nothing(format!("the drivers show no device ({})", problems.join("; ")));
    }
    OpenClProbe::Devices(tried_all(devices, |device| search(&["--policy", "tg", "--device", device], board)))
}

/// Tries every usable device with `search`, which receives the name of the device in the form of `--device`.
fn tried_all(mut devices: Vec<DeviceProbe>, search: impl Fn(&str) -> Option<String>) -> Vec<DeviceProbe> {
    let choices = exact_choices(&devices.iter().map(|device| &*device.name).collect::<Vec<_>>());
    for (device, name) in devices.iter_mut().zip(choices) {
        device.problem = device.problem.take().or_else(|| search(&name));
        device.name = name;
    }
    devices
}

/// Searches in another process with these flags, and with the board that was named: a driver may crash it. Returns how it failed, if it
/// did.
fn search(flags: &[&str], board: Option<&Path>) -> Option<String> {
    let arguments = [&["run", GRAPH, "--root", "0"], flags].concat();
    let progress = Bar::start(&format!("Trying socbfs {}", arguments.join(" ")), 0);
    // Without /proc the path of this program is unknown. In that case, the name with which it was started finds the same file.
    let called = || std::env::args_os().next().map_or_else(|| "socbfs".into(), PathBuf::from);
    let program = std::env::current_exe().unwrap_or_else(|_| called());
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // The user's settings for searches must not affect the check.
    for name in ["THREADS", "CPUS", "POLICY", "SIMD", "DEVICE", "MEMORY_WAY", "WORK_GROUP", "PARTS", "OBJECTIVE", "LOG"] {
        command.env_remove(format!("SOCBFS_{name}"));
    }
    command.env("SOCBFS_CALIBRATION", "off");
    if let Some(board) = board {
        command.env("SOCBFS_BOARD", board);
    }
    let parent = std::process::id();
    // SAFETY: between fork and exec it only makes two system calls.
    unsafe { command.pre_exec(move || end_with(parent)) };
    let ended = watched(command);
    drop(progress);
    ended.unwrap_or_else(Some)
}

/// Runs `command` for [`PATIENCE`] at most. Returns how it failed, if it did; the error says why that is not known.
fn watched(mut command: Command) -> Result<Option<String>, String> {
    let mut child = command.spawn().map_err(|error| format!("it can't be started ({error})"))?;
    let stderr = child.stderr.take();
    let read = move || {
        let mut bytes = Vec::new();
        // After a read error, the output up to it is kept. No check prints more than 16 MiB.
        let _ = stderr.map(|stderr| stderr.take(16 << 20).read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    };
    // `kill` fails if the child has ended just now.
    let end = |child: &mut Child| _ = child.kill().and_then(|()| child.wait());
    let reader = std::thread::Builder::new().spawn(read).map_err(|error| {
        end(&mut child);
        format!("no thread can be started to listen to it ({error})")
    })?;
    let begin = Instant::now();
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) if status.success() => return Ok(None),
            Some(status) => return Ok(Some(ending(status, &reader.join().unwrap_or_default()))),
            // Child processes of a driver may hold the pipe open, so the reader is not joined after a kill.
            None if begin.elapsed() > PATIENCE => {
                end(&mut child);
                return Err(format!("no answer in {} s", PATIENCE.as_secs()));
            }
            None => sleep(Duration::from_millis(5)),
        }
    }
}

/// Describes how a process ended, by its own error message if it printed one.
fn ending(status: ExitStatus, said: &str) -> String {
    if let Some(signal) = status.signal() {
        return format!("killed by signal {signal}");
    }
    let error = said.lines().find_map(|line| line.strip_prefix("error: ")).or_else(|| said.lines().last());
    error.map_or_else(|| format!("exit code {}", status.code().unwrap_or(-1)), str::to_owned)
}

const GREEN: &str = COLOURS[4];
const YELLOW: &str = COLOURS[1];
const RED: &str = COLOURS[5];

/// Adds what a check found, in lines of 80 characters.
fn entry(text: &mut String, verdict: Verdict, check: &str, reason: &str, colours: bool) {
    let (begin, end) = match verdict {
        _ if !colours => ("", ""),
        Verdict::Ok => (GREEN, PLAIN),
        Verdict::Unknown => ("", ""),
        Verdict::Warning => (YELLOW, PLAIN),
        Verdict::Problem => (RED, PLAIN),
    };
    for (place, part) in wrapped(reason, COLUMNS - 25).into_iter().enumerate() {
        let (verdict, check) = if place == 0 { (format!("{verdict:?}").to_lowercase(), check) } else { (String::new(), "") };
        // Writing to a String can't fail.
        let _ = writeln!(text, "{begin}{verdict:<9}{end}{check:<16}{part}");
    }
}

/// Formats the findings as text; with `quiet`, only warnings and problems.
fn text(diagnosis: &Diagnosis, quiet: bool, colours: bool) -> String {
    let mut text = String::new();
    let count = |verdict: Verdict| diagnosis.findings.iter().filter(|finding| finding.verdict == verdict).count();
    // A virtual machine shows little: what can't be known there is one entry.
    let unknown: Vec<&str> =
        diagnosis.findings.iter().filter(|finding| finding.verdict == Verdict::Unknown).map(|finding| finding.check).collect();
    let sums_up = unknown.len() > 2;
    for finding in diagnosis.findings.iter().filter(|finding| !quiet || finding.verdict >= Verdict::Warning) {
        if !(sums_up && finding.verdict == Verdict::Unknown) {
            entry(&mut text, finding.verdict, finding.check, &finding.reason, colours);
        }
        // A command is not broken: it is to be copied.
        if let Some(cure) = &finding.cure {
            let _ = writeln!(text, "{:<25}{cure}", "");
        }
    }
    if sums_up && !quiet {
        let checks = format!("{} checks", unknown.len());
        entry(&mut text, Verdict::Unknown, &checks, &format!("impossible here (--json says why): {}", unknown.join(", ")), colours);
    }
    let (warnings, problems) = (count(Verdict::Warning), count(Verdict::Problem));
    let warned = if warnings > 0 { format!(", {}", counted(warnings as u64, "warning", "warnings")) } else { String::new() };
    if !quiet {
        let _ = match problems {
            0 if diagnosis.works.is_none() => writeln!(text, "\nThese are another machine's files: no search was tried{warned}."),
            0 => writeln!(text, "\nSearching works{warned}."),
            many => writeln!(text, "\nSearching does not work: {}{warned}.", counted(many as u64, "problem", "problems")),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn failed_processes_are_described_by_error_exit_code_or_signal() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(ending(exit(2), "warning: x\nerror: no device\n  help: y\n"), "no device");
        assert_eq!(ending(exit(1), "abort\nlast words\n"), "last words");
        assert_eq!(ending(exit(3), ""), "exit code 3");
        assert_eq!(ending(ExitStatus::from_raw(11), "error: x\n"), "killed by signal 11");
    }

    #[test]
    fn each_of_two_devices_of_one_name_is_tried() {
        // "Mali-T628" twice, as on an Odroid-XU4. The third one can't be used, and is not tried.
        let device = |name: &str, platform: &str, problem: Option<&str>| DeviceProbe {
            name: name.into(),
            platform: platform.into(),
            gpu: true,
            problem: problem.map(str::to_owned),
        };
        let listed = vec![
            device("Mali-T628 MP6", "Other", None),
            device("Mali-T628", "ARM Platform", None),
            device("Mali-T628", "ARM Platform", None),
            device("Mali-T628", "ARM Platform", Some("no compiler")),
        ];
        let tried = RefCell::new(Vec::new());
        let devices = tried_all(listed, |device| {
            tried.borrow_mut().push(device.to_owned());
            (device == "Mali-T628#2").then(|| "it hangs".to_owned())
        });
        assert_eq!(tried.into_inner(), ["Mali-T628 MP6", "Mali-T628#1", "Mali-T628#2"]);
        let problems: Vec<(&str, Option<&str>)> = devices.iter().map(|device| (&*device.name, device.problem.as_deref())).collect();
        assert_eq!(
            problems,
            [("Mali-T628 MP6", None), ("Mali-T628#1", None), ("Mali-T628#2", Some("it hangs")), ("Mali-T628#3", Some("no compiler"))]
        );
    }
}
