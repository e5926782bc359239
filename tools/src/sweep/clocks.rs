//! Clocks that can be fixed: cpufreq's, by cluster, and those of devices in devfreq.
//!
//! The limits are put back by a child process that waits for the end of this one, however it ends: after SIGKILL too. It also holds the
//! lock, so no other sweep begins before they are back.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd, AsRawFd, OwnedFd, RawFd},
        unix::fs::OpenOptionsExt,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    fcntl::{Flock, FlockArg, OFlag},
    libc,
    sys::wait::{WaitPidFlag, WaitStatus, waitpid},
    unistd::{AccessFlags, ForkResult, Pid, Whence, access, fork, ftruncate, lseek, pipe2, write},
};
use socbfs_boards::board::Cluster;
use socbfs_machine::{is_gpu, is_live, line, list, list_numbered, name, number};

/// Steps of a clock whose driver does not list its frequencies.
const STEPS: u64 = 8;
/// The most frequencies that are read of a file.
const MOST_LISTED: usize = 1024;
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
    /// The frequencies in kHz, ascending, rounded down.
    pub steps_khz: Vec<u64>,
    clocks: Vec<Clock>,
}

/// A clock with limits of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Clock {
    /// The files that limit it, lowest and highest.
    limits: [PathBuf; 2],
    /// The file that says what it is.
    now: PathBuf,
    /// The unit of these files in kHz^-1.
    per_khz: u64,
    /// The frequencies that the driver lists, in the unit of its files. None: any in the range.
    listed: Vec<u64>,
    range: (u64, u64),
}

impl Clock {
    /// The frequency for `khz`, in the unit of the files. What a driver lists need not be whole kHz, and it takes nothing else.
    fn nearest(&self, khz: u64) -> u64 {
        let wanted = khz.saturating_mul(self.per_khz);
        let listed = self.listed.iter().copied().min_by_key(|one| one.abs_diff(wanted));
        listed.unwrap_or_else(|| wanted.max(self.range.0).min(self.range.1))
    }
}

/// The frequencies in kHz that each of `clocks` has. Cores of one cluster may differ in the highest.
fn common(clocks: &[Clock]) -> Vec<u64> {
    let listed = clocks.iter().find(|clock| !clock.listed.is_empty());
    let mut steps: Vec<u64> = listed.map_or_else(
        || {
            let (low, high) = clocks.iter().fold((0, u64::MAX), |all, clock| (clock.range.0.max(all.0), clock.range.1.min(all.1)));
            (0..STEPS).map(|step| low + (high - low.min(high)) * step / (STEPS - 1)).collect()
        },
        |clock| clock.listed.iter().map(|one| one / clock.per_khz).collect(),
    );
    steps.retain(|&khz| khz > 0 && khz <= u64::from(u32::MAX) && clocks.iter().all(|clock| clock.nearest(khz) / clock.per_khz == khz));
    steps.sort_unstable();
    steps.dedup();
    steps
}

/// The frequencies in a file, which has at most one page in a real machine.
fn frequencies(path: &Path) -> Vec<u64> {
    line(path).iter().flat_map(|text| text.split_whitespace()).take(MOST_LISTED).filter_map(|word| word.parse().ok()).collect()
}

/// The clocks of `clusters` and of devices below `root`.
pub fn domains(root: &Path, clusters: &[Cluster]) -> Vec<Domain> {
    let mut found: Vec<Domain> = Vec::new();
    for folder in list_numbered(&root.join("sys/devices/system/cpu/cpufreq"), "policy") {
        let file = |name: &str| folder.join(name);
        let cpus: Vec<usize> = frequencies(&file("related_cpus")).iter().filter_map(|&cpu| usize::try_from(cpu).ok()).collect();
        let of = |cluster: &&Cluster| cluster.cpus.as_ref().is_some_and(|all| cpus.iter().all(|cpu| all.numbers().contains(cpu)));
        let range = ["cpuinfo_min_freq", "cpuinfo_max_freq"].map(|name| number::<u32>(&file(name)).map(u64::from));
        let (Some(cluster), [Some(low), Some(high)]) = (clusters.iter().find(of), range) else { continue };
        let mut listed = frequencies(&file("scaling_available_frequencies"));
        // Those that the chip keeps for a while only, unless they are switched off.
        if number(file("boost")).or_else(|| number(file("../boost"))) != Some(0) {
            listed.extend(frequencies(&file("scaling_boost_frequencies")));
        }
        let limits = ["scaling_min_freq", "scaling_max_freq"].map(file);
        add(&mut found, &cluster.name, cpus, Clock { limits, now: file("scaling_cur_freq"), per_khz: 1, listed, range: (low, high) });
    }
    for folder in list(&root.join("sys/class/devfreq"), |name| is_memory(name) || is_gpu(name)) {
        let listed = frequencies(&folder.join("available_frequencies"));
        let limits = ["min_freq", "max_freq"].map(|name| folder.join(name));
        add(&mut found, &name(&folder), Vec::new(), Clock { limits, now: folder.join("cur_freq"), per_khz: 1000, listed, range: (0, 0) });
    }
    for domain in &mut found {
        domain.steps_khz = common(&domain.clocks);
    }
    found.retain(|domain| domain.steps_khz.len() > 1);
    found
}

/// Whether a device of this name is the memory.
pub(super) fn is_memory(name: &str) -> bool {
    ["dmc", "ddr", "emc", "memory"].iter().any(|part| name.contains(part))
}

/// Adds a clock to the domain of its name. Cores of one cluster may have clocks of their own, which are set together.
fn add(found: &mut Vec<Domain>, name: &str, cpus: Vec<usize>, clock: Clock) {
    match found.iter_mut().find(|domain| domain.name == name) {
        Some(domain) => {
            domain.cpus.extend(cpus);
            domain.clocks.push(clock);
        }
        None => found.push(Domain { name: name.to_owned(), cpus, steps_khz: Vec::new(), clocks: vec![clock] }),
    }
}

/// Why clocks can't be fixed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClockError {
    /// Another sweep runs, or one was killed and its clocks are not back yet.
    #[error("another sweep of this machine is running")]
    Busy,
    /// The clocks are those of the machine below `--sysfs-root`.
    #[error("the clocks below --sysfs-root are another machine's, which are only read")]
    OtherMachine,
    /// The file of a limit can't be opened.
    #[error("can't open {}, which limits a clock", .path.display())]
    Closed {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
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

/// The right to set the clocks of this machine. As long as it exists, or the process that puts clocks back, no other sweep begins.
#[derive(Debug)]
pub struct Turn {
    /// The folder with the files of clocks. No other file is written.
    sys: Option<PathBuf>,
    _lock: Option<Flock<File>>,
}

impl Turn {
    /// Takes the turn on the machine below `root`. Clocks of another machine than this one can't be set.
    ///
    /// # Errors
    /// [`ClockError::Busy`].
    pub fn take(root: &Path) -> Result<Self, ClockError> {
        if is_live(root) { Self::of(Path::new("/sys")) } else { Ok(Self { sys: None, _lock: None }) }
    }

    /// As [`take`](Self::take), of a simulated machine: the limits below `root` are plain files, which are then written. For tests; no
    /// command takes it.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn simulated(root: &Path) -> Result<Self, ClockError> {
        Self::of(&root.join("sys"))
    }

    fn of(sys: &Path) -> Result<Self, ClockError> {
        let of = |lock| Ok(Self { sys: fs::canonicalize(sys).ok(), _lock: lock });
        // A folder that everyone can open. Where there is none, there are no clocks either.
        let Ok(folder) = File::open(sys.join("devices/system/cpu")) else { return of(None) };
        match Flock::lock(folder, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => of(Some(lock)),
            Err((_, Errno::EWOULDBLOCK)) => Err(ClockError::Busy),
            Err(_) => of(None), // a file system without locks
        }
    }
}

/// A file that limits a clock.
#[derive(Debug)]
struct Limit {
    path: PathBuf,
    file: File,
    /// What it said before.
    before: String,
}

impl Limit {
    /// Opens a file for writing, and leaves it as it is. Links may lead to its folder, but not out of `sys`, and it is none itself.
    fn open(path: &Path, sys: &Path) -> Result<Self, ClockError> {
        let open = || {
            let folder = fs::canonicalize(path.parent().unwrap_or(path))?;
            if !folder.starts_with(sys) || !fs::symlink_metadata(path)?.is_file() {
                return Err(io::Error::other(format!("it is not a file in {}", sys.display())));
            }
            let before = line(path).ok_or_else(|| io::Error::other("it can't be read"))?;
            let file = OpenOptions::new().write(true).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits()).open(path)?;
            Ok(Self { path: path.to_owned(), file, before })
        };
        open().map_err(|source| ClockError::Closed { path: path.to_owned(), source })
    }

    /// Writes the limit, and returns whether the kernel took it. Safe in a signal handler.
    fn put(&self, text: &str) -> bool {
        let is_put = lseek(&self.file, 0, Whence::SeekSet).is_ok() && write(&self.file, text.as_bytes()) == Ok(text.len());
        // The kernel takes a number as a whole; a simulated machine would keep the last digits of a longer one.
        let _ = is_put && ftruncate(&self.file, text.len() as libc::off_t).is_ok();
        is_put
    }

    fn is_back(&self) -> bool {
        line(&self.path).as_ref() == Some(&self.before)
    }
}

/// Clocks that are fixed until this is dropped, or the process ends.
#[derive(Debug)]
pub struct Clocks {
    /// Each clock with the name of its domain and its limits, lowest and highest.
    held: Vec<(String, Clock, [Limit; 2])>,
    /// The end of the pipe at whose close the child puts the clocks back.
    pipe: Option<OwnedFd>,
    child: Pid,
    _turn: Turn,
}

impl Clocks {
    /// Whether this process may set every limit of `domain`.
    pub fn may_set(domain: &Domain) -> bool {
        domain.clocks.iter().flat_map(|clock| &clock.limits).all(|path| access(path, AccessFlags::W_OK).is_ok())
    }

    /// Opens the limits of `domains`, and starts the process that puts them back, which does not keep `output` open. To be called before
    /// other threads start.
    ///
    /// # Errors
    /// [`ClockError::OtherMachine`], [`ClockError::Closed`] and [`ClockError::Keeper`].
    pub fn keep(turn: Turn, domains: &[Domain], output: impl AsFd) -> Result<Self, ClockError> {
        let sys = turn.sys.as_ref().ok_or(ClockError::OtherMachine)?;
        let open = |domain: &Domain, clock: &Clock| {
            let [low, high] = &clock.limits;
            Ok((domain.name.clone(), clock.clone(), [Limit::open(low, sys)?, Limit::open(high, sys)?]))
        };
        let clocks = domains.iter().flat_map(|domain| domain.clocks.iter().map(move |clock| (domain, clock)));
        let held = clocks.map(|(domain, clock)| open(domain, clock)).collect::<Result<Vec<_>, ClockError>>()?;
        let keeper = |error: Errno| ClockError::Keeper(error.into());
        let (read, write) = pipe2(OFlag::O_CLOEXEC).map_err(keeper)?;
        // Everything that the child needs is made before the fork: after it, only calls that are safe in a signal handler are allowed.
        let clocks = |child| Self { held, pipe: Some(write), child, _turn: turn };
        // SAFETY: the child calls only functions that are safe in a signal handler, and ends by `_exit`.
        match unsafe { fork() }.map_err(keeper)? {
            ForkResult::Child => clocks(Pid::this()).wait_and_put_back(&read, output.as_fd().as_raw_fd()),
            ForkResult::Parent { child } => Ok(clocks(child)),
        }
    }

    fn limits(&self) -> impl Iterator<Item = &Limit> {
        self.held.iter().flat_map(|(_, _, limits)| limits)
    }

    /// Fixes the clocks of the domains in `khz`, and lets all others run as they were found.
    ///
    /// # Errors
    /// [`ClockError::Refused`] with the first limit that the kernel did not take.
    pub fn set(&self, khz: &BTreeMap<String, u64>) -> Result<(), ClockError> {
        for (domain, clock, limits @ [low, high]) in &self.held {
            let Some(&khz) = khz.get(domain) else {
                between(limits, [&low.before, &high.before]);
                continue;
            };
            let text = clock.nearest(khz).to_string();
            between(limits, [&text, &text]);
            for Limit { path, .. } in limits {
                let found = number::<u64>(path).unwrap_or(0) / clock.per_khz;
                if !is_near(found, khz) {
                    return Err(ClockError::Refused { domain: domain.clone(), khz, path: path.clone(), found });
                }
            }
        }
        Ok(())
    }

    /// The first clock that is not where [`set`](Self::set) has put it, in words.
    pub fn moved(&self, khz: &BTreeMap<String, u64>) -> Option<String> {
        self.held.iter().find_map(|(domain, clock, _)| {
            let khz = *khz.get(domain)?;
            let now = number::<u64>(&clock.now)? / clock.per_khz;
            let is_moved = !is_near(now, khz);
            is_moved.then(|| format!("the clock of {domain} was {} instead of {} MHz", now / 1000, khz / 1000))
        })
    }

    /// Puts all clocks back.
    ///
    /// # Errors
    /// [`ClockError::NotBack`].
    pub fn put_back(mut self) -> Result<(), ClockError> {
        self.end();
        let other = self.limits().find(|limit| !limit.is_back());
        other.map_or(Ok(()), |limit| Err(ClockError::NotBack { path: limit.path.clone(), text: limit.before.clone() }))
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
        // If something killed the child, the limits are put back here; `put_back` looks at all of them.
        for limit in self.limits().chain(self.limits()).filter(|limit| !limit.is_back()) {
            limit.put(&limit.before);
        }
    }

    /// The child: waits until the last copy of the pipe's end is closed, which the parent's end does, and puts every limit back.
    fn wait_and_put_back(self, read: &OwnedFd, output: RawFd) -> ! {
        // SAFETY: all these calls are safe in a signal handler; pointers are of live values, and descriptors are the child's own copies.
        unsafe {
            // Signals of the terminal and of the parent's group do not reach a session of its own, and none but SIGKILL ends it.
            libc::setsid();
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
            if let Some(own) = &self.pipe {
                libc::close(own.as_raw_fd());
            }
            // Whoever waits for the end of the parent's output does not wait for the child.
            for descriptor in [0, 1, 2, output] {
                libc::close(descriptor);
            }
            let mut byte = 0_u8;
            while libc::read(read.as_raw_fd(), (&raw mut byte).cast(), 1) < 0 && Errno::last_raw() == libc::EINTR {}
        }
        // Twice, since a kernel may refuse a limit beyond the other one, which is put back after it.
        for limit in self.limits().chain(self.limits()) {
            // A write that fails once need not fail again.
            let _ = (0..ATTEMPTS).any(|_| limit.put(&limit.before));
        }
        // SAFETY: safe in a signal handler, and nothing is dropped.
        unsafe { libc::_exit(0) }
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

/// Sets both limits. A kernel may refuse a lowest clock above the highest, so the highest is set before and after; the caller looks at
/// what the files then say.
fn between([low, high]: &[Limit; 2], [least, most]: [&str; 2]) {
    for (limit, text) in [(high, most), (low, least), (high, most)] {
        limit.put(text);
    }
}
