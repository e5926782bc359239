//! The process in which drivers are tried.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    ptr,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use nix::{
    libc,
    sys::{
        prctl,
        resource::{Resource, setrlimit},
        signal::Signal,
    },
    unistd,
};

use super::{memory, state};
use crate::opencl::{
    buffer::Buffer,
    cache::Cache,
    device::{Device, Limits},
    info, library,
    program::Program,
};

/// Environment variable that makes a process answer a question and end, before its `main`: the process id of the one that asks.
const ASKED_BY: &str = "SOCBFS_PROBE_OF";
/// The variable of the dynamic linker with libraries to load before all others.
const PRELOAD: &str = "LD_PRELOAD";

/// The first line of an answer.
pub(super) const BEGUN: &str = "begun\n";
/// The beginning of a line before a device is opened.
pub(super) const OPENING: &str = "opening ";
/// The last line.
pub(super) const END: &str = "end";

/// Whether this process tries drivers for another one.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process tries drivers for another one.
pub fn is_child() -> bool {
    // Relaxed: it is set before there is a second thread.
    IS_CHILD.load(Relaxed)
}

/// Makes this process end with the thread of the process `parent` that started it: if a driver hangs here, it would hold the device for
/// ever, unnoticed. Neither allocates nor locks.
///
/// # Errors
/// If the parent has ended already.
pub fn end_with(parent: u32) -> io::Result<()> {
    // A process that waits in the kernel may not react to other signals.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if unistd::getppid().as_raw() as u32 == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Called by the dynamic linker before `main`, in every program that contains this library.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    library::offer();
    let Some(parent) = env::var_os(ASKED_BY) else { return };
    // SAFETY: only reads. A process with more rights than its caller obeys no variable.
    if unsafe { libc::getauxval(libc::AT_SECURE) } == 0 {
        let code = i32::from(answer(&parent).is_err());
        // SAFETY: ends the process, without what drivers do at its end.
        unsafe { libc::_exit(code) };
    }
}

/// The command that starts such a process. If this library is not in the executable, `program` (or else `true`) is started with it
/// preloaded.
pub(super) fn command(program: Option<&Path>) -> io::Result<Command> {
    // SAFETY: only reads. Such a process would not preload.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return Err(io::Error::other("this program has more rights than its user"));
    }
    let library = own_file()?;
    let mut command = if fs::read_link("/proc/self/exe").is_ok_and(|executable| executable == library) {
        Command::new("/proc/self/exe")
    } else {
        let mut command = Command::new(program.unwrap_or(Path::new("true")));
        // The list is separated by blanks and colons.
        let path = library.as_os_str().as_bytes();
        if !library.exists() || path.iter().any(|byte| matches!(byte, b' ' | b':')) {
            return Err(io::Error::other(format!("{} can't be preloaded", library.display())));
        }
        let others = env::var_os(PRELOAD).unwrap_or_default();
        command.env(PRELOAD, OsStr::from_bytes(&[path, b" ", others.as_bytes()].concat()));
        command
    };
    command.arg0("socbfs-probe").env(ASKED_BY, std::process::id().to_string()).envs(library::given_drivers());
    Ok(command)
}

/// The file that this library is in.
fn own_file() -> io::Result<PathBuf> {
    // The volatile access keeps the entry in every program that can ask.
    // SAFETY: it is a valid static.
    let address = unsafe { ptr::read_volatile(&raw const BEFORE_MAIN) } as usize;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let file = state::mappings(&maps).find(|(range, _)| range.contains(&address));
    file.map(|(_, path)| path.to_owned()).ok_or_else(|| io::Error::other("this library is in no file"))
}

fn answer(parent: &OsStr) -> io::Result<()> {
    IS_CHILD.store(true, Relaxed);
    // Programs that a driver starts are no such processes. What others preload stays.
    let (preloaded, library) = (env::var_os(PRELOAD).unwrap_or_default(), own_file()?);
    let others = preloaded.as_bytes().strip_prefix(library.as_os_str().as_bytes()).and_then(|rest| rest.strip_prefix(b" "));
    // SAFETY: there is no other thread yet.
    unsafe {
        env::remove_var(ASKED_BY);
        match others {
            Some([]) => env::remove_var(PRELOAD),
            Some(others) => env::set_var(PRELOAD, OsStr::from_bytes(others)),
            None => {}
        }
    }
    end_with(parent.to_str().and_then(|parent| parent.parse().ok()).unwrap_or_default())?;
    // No crash of a trial is worth a core dump.
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    // What a driver prints to standard output goes to standard error.
    let mut out = File::from(unistd::dup(io::stdout())?);
    unistd::dup2_stdout(io::stderr())?;
    out.write_all(BEGUN.as_bytes())?;
    let mut question = Vec::new();
    io::stdin().lock().read_to_end(&mut question)?;
    let mut lines = question.splitn(3, |&byte| byte == b'\n');
    let _ = state::ASKING.set(String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned());
    let (what, rest) = (lines.next(), lines.next().unwrap_or_default());
    let text = String::from_utf8_lossy(rest);
    match what {
        Some(b"build") => build(rest),
        // A message of the dynamic linker is one line.
        Some(b"load") => library::load(&text, library::DRIVER).or_else(|why| out.write_all((why + "\n").as_bytes()))?,
        _ => list(&text, &mut out)?,
    }
    out.write_all(END.as_bytes())
}

/// Lists the platforms, and opens each device that can be used and is not in `skipped`. Stores that this went well, if none is.
fn list(skipped: &str, out: &mut File) -> io::Result<()> {
    // Without OpenCL the other process finds the same.
    let platforms = info::platforms().unwrap_or_default();
    for device in platforms.iter().flat_map(|platform| &platform.devices) {
        if device.unusable.is_none() && skipped.lines().all(|skipped| skipped != device.identity) {
            out.write_all(format!("{OPENING}{}\n", device.identity).as_bytes())?;
            // What fails without a crash does so in the other process too.
            if let Ok(device) = Device::open(device, Limits::default()) {
                drop((Buffer::<u32>::new(&device, 1, "a trial"), device.flush()));
            }
            out.write_all(b"opened\n")?;
        }
    }
    // A device that could not be opened is tried again at the next start.
    if let Some((cache, key)) = memory().filter(|_| skipped.is_empty()) {
        cache.store(&key, b"");
    }
    Ok(())
}

/// Builds a program and its kernels, and stores it. Then it is loaded, as the other process will.
fn build(question: &[u8]) {
    let parts: Vec<&[u8]> = question.splitn(4, |&byte| byte == b'\n').collect();
    let [identity, folder, options, source] = parts[..] else { return };
    let (options, source) = (String::from_utf8_lossy(options), String::from_utf8_lossy(source));
    let platforms = info::platforms().unwrap_or_default();
    let mut devices = platforms.iter().flat_map(|platform| &platform.devices);
    let Some(device) = devices.find(|device| device.identity.as_bytes() == identity) else { return };
    let keeps_kernels = device.known_driver().keeps_kernels;
    // What the driver refuses here, it refuses in the other process too.
    let Ok(device) = Device::open(device, Limits::default()) else { return };
    for _ in 0..if folder.is_empty() || keeps_kernels { 1 } else { 2 } {
        let cache = if folder.is_empty() { None } else { Cache::in_folder(Path::new(OsStr::from_bytes(folder))) };
        let Ok(program) = Program::new(&device, cache, keeps_kernels, &source, &options) else { return };
        for kernel in program.kernel_names() {
            drop(program.kernel(&kernel));
        }
    }
}
