//! Clocks that can be fixed: cpufreq's, by cluster, and those of devices in devfreq.
//!
//! The limits are put back by a child process that waits for the end of this one, however it ends: after SIGKILL too. It also holds the
//! lock, so no other sweep begins before they are back.

use std::{
    collections::BTreeMap,
    ffi::CString,
    fs::{self, File},
    io::{self, Write as _},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg, OFlag},
    libc,
    sys::wait::{WaitPidFlag, WaitStatus, waitpid},
    unistd::{ForkResult, Pid, fork, pipe2},
};
use socbfs::{
    board::Cluster,
    machine::{line, list, list_numbered, name, number},
};

/// Steps of a clock whose driver does not list its frequencies.
const STEPS: u64 = 8;
/// Tries to put a limit back.
const ATTEMPTS: usize = 4;
/// How far a clock may be from what was asked for: drivers round to a multiple of their own.
const NEAR: f64 = 0.03;

/// Clocks that are set together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// The name of the cluster, or of the device.
    pub name: String,
    /// The CPUs whose clock it is; none for a device.
    pub cpus: Vec<usize>,
    /// The frequencies in kHz, ascending.
    pub steps_khz: Vec<u64>,
    folders: Vec<PathBuf>,
}

/// Names of the files of a folder that limit the clock, lowest and highest, and the unit of their numbers in kHz^-1.
fn limits(folder: &Path) -> ([PathBuf; 2], u64) {
    let (names, per_khz) = if folder.join("scaling_max_freq").exists() {
        (["scaling_min_freq", "scaling_max_freq"], 1)
    } else {
        (["min_freq", "max_freq"], 1000)
    };
    (names.map(|name| folder.join(name)), per_khz)
}

fn frequencies(path: &Path) -> Vec<u64> {
    line(path).iter().flat_map(|text| text.split_whitespace()).filter_map(|word| word.parse().ok()).collect()
}

/// The clocks of `clusters` and of devices below `root`.
pub fn domains(root: &Path, clusters: &[Cluster]) -> Vec<Domain> {
    let mut found: Vec<Domain> = Vec::new();
    for folder in list_numbered(&root.join("sys/devices/system/cpu/cpufreq"), "policy") {
        let value = |name: &str| number::<u64>(&folder.join(name));
        let cpus: Vec<usize> = frequencies(&folder.join("related_cpus")).iter().filter_map(|&cpu| usize::try_from(cpu).ok()).collect();
        let of = |cluster: &&Cluster| cluster.cpus.as_ref().is_some_and(|all| cpus.iter().all(|cpu| all.numbers().contains(cpu)));
        let (Some(cluster), Some(low), Some(high)) = (clusters.iter().find(of), value("cpuinfo_min_freq"), value("cpuinfo_max_freq"))
        else {
            continue;
        };
        let mut steps = frequencies(&folder.join("scaling_available_frequencies"));
        if steps.is_empty() {
            steps = (0..STEPS).map(|step| low + (high - low.min(high)) * step / (STEPS - 1)).collect();
        }
        add(&mut found, &cluster.name, cpus, steps, folder);
    }
    let is_wanted = |name: &str| is_memory(name) || ["gpu", "mali", "kgsl", "g3d"].iter().any(|part| name.contains(part));
    for folder in list(&root.join("sys/class/devfreq"), is_wanted) {
        let steps = frequencies(&folder.join("available_frequencies")).iter().map(|hz| hz / 1000).collect();
        add(&mut found, &name(&folder), Vec::new(), steps, folder);
    }
    found.retain(|domain| domain.steps_khz.len() > 1);
    found
}

/// Whether a device of this name is the memory.
pub(super) fn is_memory(name: &str) -> bool {
    ["dmc", "ddr", "emc", "memory"].iter().any(|part| name.contains(part))
}

/// Adds a folder to the domain of its name. Cores of one cluster may have folders of their own; their clocks are set together.
fn add(found: &mut Vec<Domain>, name: &str, cpus: Vec<usize>, mut steps: Vec<u64>, folder: PathBuf) {
    steps.sort_unstable();
    steps.dedup();
    match found.iter_mut().find(|domain| domain.name == name) {
        Some(domain) => {
            domain.steps_khz.retain(|step| steps.contains(step));
            domain.cpus.extend(cpus);
            domain.folders.push(folder);
        }
        None => found.push(Domain { name: name.to_owned(), cpus, steps_khz: steps, folders: vec![folder] }),
    }
}

/// Why clocks can't be fixed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClockError {
    /// Another sweep runs, or one was killed and its clocks are not back yet.
    #[error("another sweep of this machine is running")]
    Busy,
    /// The process that puts clocks back can't be started.
    #[error("can't start the process that puts the clocks back")]
    Keeper(#[source] io::Error),
    /// A limit can't be set.
    #[error("the clock of {domain} can't be set to {khz} kHz ({}: it is {found} kHz)", .path.display())]
    Refused {
        /// The domain.
        domain: String,
        /// The frequency asked for.
        khz: u64,
        /// The file.
        path: PathBuf,
        /// What the file says.
        found: u64,
    },
    /// A limit was not put back.
    #[error("{} was not put back to {text}", .path.display())]
    NotBack {
        /// The file.
        path: PathBuf,
        /// What it was before.
        text: String,
    },
}

/// The right to sweep this machine. As long as it exists, or the process that puts clocks back, no other sweep begins.
#[derive(Debug)]
pub struct Turn(#[expect(dead_code, reason = "held, not read")] Option<Flock<File>>);

impl Turn {
    /// Takes the turn on the machine below `root`.
    ///
    /// # Errors
    /// [`ClockError::Busy`].
    pub fn take(root: &Path) -> Result<Self, ClockError> {
        // A folder that everyone can open. Where there is none, there are no clocks either.
        let Ok(folder) = File::open(root.join("sys/devices/system/cpu")) else { return Ok(Self(None)) };
        match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Self(Some(lock))),
            Err((_, Errno::EWOULDBLOCK)) => Err(ClockError::Busy),
            Err(_) => Ok(Self(None)), // a file system without locks
        }
    }
}

/// Clocks that are fixed until this is dropped, or the process ends.
#[derive(Debug)]
pub struct Clocks {
    domains: Vec<Domain>,
    /// What the files of all limits said before.
    saved: Vec<(PathBuf, String)>,
    /// The end of the pipe at whose close the child puts the clocks back.
    pipe: Option<OwnedFd>,
    child: Pid,
}

impl Clocks {
    /// Whether this process may set every limit of `domain`.
    pub fn may_set(domain: &Domain) -> bool {
        domain.folders.iter().flat_map(|folder| limits(folder).0).all(|path| fs::OpenOptions::new().write(true).open(path).is_ok())
    }

    /// Notes the limits of `domains`, and starts the process that puts them back. To be called with a [`Turn`], before other threads start.
    ///
    /// # Errors
    /// [`ClockError::Keeper`].
    pub fn keep(domains: Vec<Domain>) -> Result<Self, ClockError> {
        let keeper = |error: Errno| ClockError::Keeper(error.into());
        let files = domains.iter().flat_map(|domain| &domain.folders).flat_map(|folder| limits(folder).0);
        let saved: Vec<(PathBuf, String)> = files.filter_map(|path| Some((path.clone(), line(&path)?))).collect();
        // Everything that the child needs is made before the fork: after it, only calls that are safe in a signal handler are allowed.
        let orders: Vec<(CString, &[u8])> =
            saved.iter().filter_map(|(path, text)| Some((CString::new(path.as_os_str().as_bytes()).ok()?, text.as_bytes()))).collect();
        let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(keeper)?;
        // SAFETY: the child calls only functions that are safe in a signal handler, and ends by `_exit`.
        match unsafe { fork() }.map_err(keeper)? {
            ForkResult::Child => wait_and_put_back(&read, &write, &orders),
            ForkResult::Parent { child } => {
                drop(orders);
                Ok(Self { domains, saved, pipe: Some(write), child })
            }
        }
    }

    /// Fixes the clocks of the domains in `khz`, and lets all others run as they were found.
    ///
    /// # Errors
    /// [`ClockError::Refused`] with the first limit that the kernel did not take.
    pub fn set(&self, khz: &BTreeMap<String, u64>) -> Result<(), ClockError> {
        for domain in &self.domains {
            for folder in &domain.folders {
                let ([low, high], per_khz) = limits(folder);
                let Some(&khz) = khz.get(&domain.name) else {
                    let before = |path: &Path| self.saved.iter().find(|(saved, _)| saved == path).map(|(_, text)| text.clone());
                    if let (Some(least), Some(most)) = (before(&low), before(&high)) {
                        between([&low, &high], [&least, &most]);
                    }
                    continue;
                };
                let text = (khz * per_khz).to_string();
                between([&low, &high], [&text, &text]);
                for path in [low, high] {
                    let found = number::<u64>(&path).unwrap_or(0) / per_khz;
                    if !is_near(found, khz) {
                        return Err(ClockError::Refused { domain: domain.name.clone(), khz, path, found });
                    }
                }
            }
        }
        Ok(())
    }

    /// The first clock that is not where [`set`](Self::set) has put it, in words.
    pub fn moved(&self, khz: &BTreeMap<String, u64>) -> Option<String> {
        for domain in &self.domains {
            let Some(&khz) = khz.get(&domain.name) else { continue };
            for folder in &domain.folders {
                let (_, per_khz) = limits(folder);
                let now = ["scaling_cur_freq", "cur_freq"].iter().find_map(|name| number::<u64>(&folder.join(name)));
                if let Some(now) = now.map(|now| now / per_khz).filter(|&now| !is_near(now, khz)) {
                    return Some(format!("the clock of {} was {} instead of {} MHz", domain.name, now / 1000, khz / 1000));
                }
            }
        }
        None
    }

    /// Puts all clocks back.
    ///
    /// # Errors
    /// [`ClockError::NotBack`].
    pub fn put_back(mut self) -> Result<(), ClockError> {
        self.end();
        let is_back = |(path, text): &&(PathBuf, String)| line(path).as_deref() == Some(text);
        match self.saved.iter().find(|saved| !is_back(saved)) {
            None => Ok(()),
            Some((path, text)) => Err(ClockError::NotBack { path: path.clone(), text: text.clone() }),
        }
    }

    fn end(&mut self) {
        if self.pipe.take().is_none() {
            return;
        }
        let begin = Instant::now();
        while matches!(waitpid(self.child, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive)) {
            if begin.elapsed() > Duration::from_secs(5) {
                return; // it hangs in a driver, and goes on when the driver does
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // If something killed the child, the limits are put back here.
        for (path, text) in self.saved.iter().chain(&self.saved) {
            if line(path).as_deref() != Some(text) {
                let _ = put(path, text); // `put_back` looks at all files
            }
        }
    }
}

impl Drop for Clocks {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_near(found: u64, wanted: u64) -> bool {
    found.abs_diff(wanted) as f64 <= NEAR * wanted as f64
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).truncate(true).open(path)?.write_all(text.as_bytes())
}

/// Sets both limits. A kernel may refuse a lowest clock above the highest, so the highest is set before and after; the caller looks at
/// what the files then say.
fn between([low, high]: [&Path; 2], [least, most]: [&str; 2]) {
    for (path, text) in [(high, most), (low, least), (high, most)] {
        let _ = put(path, text);
    }
}

/// The child: waits until the last copy of `write` is closed, which the parent's end does, and writes every text to its file.
fn wait_and_put_back(read: &OwnedFd, write: &OwnedFd, orders: &[(CString, &[u8])]) -> ! {
    // SAFETY: all these calls are safe in a signal handler; pointers are of live values, and descriptors are the child's own copies.
    unsafe {
        // Signals of the terminal and of the parent's group do not reach a session of its own, and none but SIGKILL ends it.
        libc::setsid();
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::close(write.as_raw_fd());
        // Whoever waits for the end of the parent's output does not wait for the child.
        for standard in 0..3 {
            libc::close(standard);
        }
        let mut byte = 0_u8;
        while libc::read(read.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 && Errno::last_raw() == libc::EINTR {}
        // Twice, since a kernel may refuse a limit beyond the other one, which is put back after it.
        for (path, text) in orders.iter().chain(orders) {
            // A write that fails once need not fail again.
            for _ in 0..ATTEMPTS {
                let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_TRUNC | libc::O_CLOEXEC);
                if file < 0 {
                    continue;
                }
                let written = libc::write(file, text.as_ptr().cast(), text.len());
                libc::close(file);
                if usize::try_from(written) == Ok(text.len()) {
                    break;
                }
            }
        }
        libc::_exit(0)
    }
}
