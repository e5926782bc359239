//! Tries the drivers in a process of its own before this process calls them: a driver that crashes, aborts, exits or hangs ends that
//! process, and here it becomes an error.
//!
//! The process is this program again, or (if socbfs is a shared library) another one with the library preloaded; [`child`] runs before its
//! `main`. It lists the platforms and opens each device ([`listing`]), builds a program ([`build`]), or loads a driver's library
//! ([`try_driver`]). A process that is started anew inherits no lock and no thread, however many threads its host has.
//!
//! A success is remembered in the cache of programs ([`state`] says for which drivers and which surroundings), so that a later start asks
//! no other process. While this process itself calls a driver, the memory is put [aside](Cache::aside): if the driver ends this process
//! after all, the next start tries it again.

mod child;
mod state;

use std::{
    fs::File,
    io::Write,
    mem::MaybeUninit,
    os::unix::{
        fs::FileExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    ptr,
    sync::{Mutex, OnceLock},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    libc,
    sys::signal::{Signal, killpg},
    unistd::Pid,
};

use super::{
    cache::{Cache, Key},
    error::OpenClError,
    info::{DeviceInfo, PlatformInfo},
    locked::locked,
};
use crate::files::Temporary;

pub use child::end_with;

pub(super) use state::{libraries, mappings, surroundings, unchanged};

/// Environment variable with the seconds that a driver may take to list or to open its devices, and a device to end its work. A driver may
/// take ten times as long to build a program. 0: drivers are not tried, and waits have no limit.
const LIMIT: &str = "SOCBFS_DEVICE_TIMEOUT";
/// Seconds without that variable.
const LIMIT_SECONDS: u64 = 30;
/// Time without progress before a warning.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most of what a driver said that a message repeats.
const MOST_SAID: usize = 300;

/// The program in which a shared library of socbfs tries the drivers.
static PROGRAM: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Names the program that is started with this shared library preloaded to try the drivers (otherwise: `true`). It matters where the
/// library needs symbols of its host, as a Python module does. Without arguments and without input it must do nothing.
pub fn probe_with(program: PathBuf) {
    *locked(&PROGRAM) = Some(program);
}

/// The number of seconds in the environment.
pub(super) fn timeout_s() -> Option<u64> {
    static SECONDS: OnceLock<Option<u64>> = OnceLock::new();
    *SECONDS.get_or_init(|| {
        let text = std::env::var_os(LIMIT).filter(|text| !text.is_empty())?;
        let seconds = text.to_str().and_then(|text| text.parse().ok());
        if seconds.is_none() {
            log::warn!("{LIMIT}={} is not a number of seconds, and is ignored", text.to_string_lossy().escape_debug());
        }
        seconds
    })
}

/// The limit of time, or `None` if drivers are not to be tried.
fn limit() -> Option<Duration> {
    let seconds = timeout_s().unwrap_or(LIMIT_SECONDS);
    (seconds > 0 && !child::is_child()).then(|| Duration::from_secs(seconds))
}

/// The identity of a device that can't be opened, and why.
type Unsound = (String, String);

/// Where a success of listing and opening the devices is remembered, if anywhere.
fn memory() -> Option<(Cache, Key)> {
    Some((Cache::of_user()?, Key::of(&[&surroundings()])))
}

/// Lists or opens devices by `call`, when another process has done so.
pub(super) fn calling<T>(call: impl FnOnce() -> T) -> T {
    let memory = memory().filter(|_| limit().is_some());
    aside(memory.as_ref().map(|(cache, key)| (cache, key)), call)
}

/// Calls a driver by `call`, with what is remembered of it [aside](Cache::aside).
///
/// LLVM, which most drivers contain, replaces the program's handler of SIGABRT when it is loaded. Only the program's own handler can
/// explain a later abort, so it is restored.
pub(super) fn aside<T>(entry: Option<(&Cache, &Key)>, call: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action it only fills `before`.
    let is_known = unsafe { libc::sigaction(libc::SIGABRT, ptr::null(), before.as_mut_ptr()) } == 0;
    let answer = Cache::aside(entry, call);
    if is_known {
        // SAFETY: `before` is filled above; the action was in force before.
        unsafe { libc::sigaction(libc::SIGABRT, before.as_ptr(), ptr::null_mut()) };
    }
    answer
}

/// Lists the platforms by `list` when another process has done so, and marks the devices that could not be opened there.
///
/// # Errors
/// [`OpenClError::Driver`], and those of `list`.
pub(super) fn listing(list: impl FnOnce() -> Result<Vec<PlatformInfo>, OpenClError>) -> Result<Vec<PlatformInfo>, OpenClError> {
    // Drivers that have been called once stay loaded, and so does the answer.
    static TRIED: OnceLock<Result<Vec<Unsound>, OpenClError>> = OnceLock::new();
    let unsound = match limit() {
        Some(limit) => TRIED.get_or_init(|| tried(limit)).as_ref().map_err(Clone::clone)?,
        None => return list(),
    };
    let mut platforms = calling(list)?;
    for device in platforms.iter_mut().flat_map(|platform| &mut platform.devices) {
        if let Some((_, why)) = unsound.iter().find(|(unsound, _)| *unsound == device.identity) {
            device.unusable = Some(format!("its driver {why} when it was opened"));
        }
    }
    Ok(platforms)
}

/// Lists the platforms and opens the devices in other processes, unless a success is remembered. Returns the devices that can't be opened.
fn tried(limit: Duration) -> Result<Vec<Unsound>, OpenClError> {
    if memory().is_some_and(|(cache, key)| cache.load(&key).is_some()) {
        return Ok(Vec::new());
    }
    let mut unsound: Vec<Unsound> = Vec::new();
    loop {
        let skipped = unsound.iter().map(|(name, _)| name.as_str());
        let question = ["list"].into_iter().chain(skipped).collect::<Vec<_>>().join("\n");
        let Some(answer) = ask(question.as_bytes(), "listing and opening the OpenCL devices", limit) else { return Ok(unsound) };
        let Some(fault) = answer.fault else { return Ok(unsound) };
        let opening = answer.text.lines().last().and_then(|line| line.strip_prefix(child::OPENING));
        // One that was to be skipped would be opened for ever.
        let Some(device) = opening.filter(|device| unsound.iter().all(|(name, _)| name != device)) else {
            return Err(OpenClError::Driver { fault: format!("{fault} while the devices were listed") });
        };
        log::warn!("the OpenCL device {device} is not used: its driver {fault} when it was opened");
        unsound.push((device.to_owned(), fault));
    }
}

/// Builds `source` with `options` in another process, which stores the program in `cache`.
///
/// # Errors
/// [`OpenClError::Build`] says how the process ended, if the driver ended it; [`OpenClError::Driver`] if it gave no answer: another
/// program is not worth as long a wait. (A program that is refused is no error here: this process will see it too.)
pub(super) fn build(device: &DeviceInfo, cache: Option<&Cache>, source: &str, options: &str) -> Result<(), OpenClError> {
    let Some(limit) = limit() else { return Ok(()) };
    let folder = cache.map_or(Path::new(""), Cache::folder);
    let folder = folder.as_os_str().as_encoded_bytes();
    let question = [b"build", device.identity.as_bytes(), folder, options.as_bytes(), source.as_bytes()].join(&b'\n');
    let doing = format!("building kernels for {}", device.name.escape_debug());
    match ask(&question, &doing, 10 * limit) {
        Some(Answer { fault: Some(fault), is_late: true, .. }) => Err(OpenClError::Driver { fault: format!("{fault} while {doing}") }),
        Some(Answer { fault: Some(fault), .. }) => {
            let (device, options) = (device.name.clone(), options.to_owned());
            Err(OpenClError::Build { device, options, log: format!("its driver {fault} in a trial") })
        }
        _ => Ok(()),
    }
}

/// Loads the driver `library` (a path or a name) in another process, as a loader that has read it in an .icd file does. `None` if that is
/// not possible here.
///
/// # Errors
/// Why no loader can use it.
pub fn try_driver(library: &str) -> Option<Result<(), String>> {
    let answer = ask(&[b"load", library.as_bytes()].join(&b'\n'), "loading a driver", limit()?)?;
    Some(match (answer.fault, answer.text.lines().nth(1)) {
        (Some(fault), _) => Err(format!("it {fault}")),
        (None, Some(why)) if why != child::END => Err(why.to_owned()),
        _ => Ok(()),
    })
}

/// What another process answered.
struct Answer {
    /// The lines that it wrote.
    text: String,
    /// What the driver did, if the answer is incomplete.
    fault: Option<String>,
    /// Whether it was not awaited any longer.
    is_late: bool,
}

/// Asks another process. `None` if that is not possible here; the drivers then are called untried.
fn ask(question: &[u8], doing: &str, limit: Duration) -> Option<Answer> {
    match asked(question, doing, limit) {
        Ok(answer) if answer.text.starts_with(child::BEGUN) => return Some(answer),
        Ok(_) => log::debug!("OpenCL drivers are not tried before they are called: the process for it does not begin"),
        Err(error) => log::debug!("OpenCL drivers are not tried before they are called: {error}"),
    }
    None
}

fn asked(question: &[u8], doing: &str, limit: Duration) -> std::io::Result<Answer> {
    let (mut question_file, out, err) = (scratch()?, scratch()?, scratch()?);
    question_file.write_all(&[surroundings().as_bytes(), question].join(&b'\n'))?;
    std::io::Seek::rewind(&mut question_file)?;
    let program = locked(&PROGRAM).clone();
    let mut command = child::command(program.as_deref())?;
    command.stdin(question_file).stdout(out.try_clone()?).stderr(err.try_clone()?);
    // In a group of its own, so that programs that a driver starts are ended with it.
    let mut child = command.process_group(0).spawn()?;
    let ended = wait(&mut child, doing, limit, &out);
    let text = String::from_utf8_lossy(&content(&out)?).into_owned();
    let how = match ended {
        _ if text.lines().last() == Some(child::END) => return Ok(Answer { text, fault: None, is_late: false }),
        Ended::Late => format!("did not answer within {} s ({LIMIT} sets this limit)", limit.as_secs()),
        Ended::With(Some(status)) => match status.signal().map(Signal::try_from) {
            Some(Ok(signal)) => format!("ended its process by {signal}"),
            _ => format!("ended its process with exit code {}", status.code().unwrap_or(-1)),
        },
        // The host collects the exit codes of all its children.
        Ended::With(None) => "ended its process".to_owned(),
    };
    let said = String::from_utf8_lossy(&content(&err)?).into_owned();
    let said = match said.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => format!(", and said {:?},", line.chars().take(MOST_SAID).collect::<String>()),
        None => String::new(),
    };
    Ok(Answer { text, fault: Some(how + &said), is_late: matches!(ended, Ended::Late) })
}

/// A file without a name.
fn scratch() -> std::io::Result<File> {
    Temporary::create(&std::env::temp_dir(), ".socbfs-", 0o600).map(|(file, _)| file)
}

/// All of a file that another process writes to by the same open file: its position is left as it is.
fn content(file: &File) -> std::io::Result<Vec<u8>> {
    let mut bytes = vec![0; file.metadata()?.len().min(1 << 20) as usize];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

enum Ended {
    With(Option<ExitStatus>),
    Late,
}

/// Waits until `child` has ended, or has written nothing to `out` for as long as `limit`.
fn wait(child: &mut Child, doing: &str, limit: Duration, out: &File) -> Ended {
    let (mut pause, mut written, mut since, mut is_told) = (Duration::from_millis(1), 0, Instant::now(), false);
    loop {
        match child.try_wait() {
            Ok(None) => {}
            Ok(status) => return Ended::With(status),
            Err(_) => return Ended::With(None),
        }
        let now = out.metadata().map_or(0, |about| about.len());
        if now != written {
            (written, since) = (now, Instant::now());
        }
        if since.elapsed() >= limit {
            // A process that hangs in the kernel ends when the driver lets it; it is not waited for.
            let _ = child.id().try_into().map(|group| killpg(Pid::from_raw(group), Signal::SIGKILL));
            for _ in 0..100 {
                if !matches!(child.try_wait(), Ok(None)) {
                    break;
                }
                sleep(Duration::from_millis(1));
            }
            return Ended::Late;
        }
        if !is_told && since.elapsed() >= PATIENCE.min(limit) {
            is_told = true;
            log::warn!("{doing} has not finished after {} s; --device cpu searches without OpenCL", PATIENCE.as_secs());
        }
        sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(10));
    }
}
