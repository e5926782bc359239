//! The OpenCL implementations on which tests run. Each is chosen by name, since the order in which they are listed is arbitrary.
//! After `. tests/opencl_env` (which `tests/run` does) all installed ones are found.
#![allow(dead_code, reason = "not every test needs everything")]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use socbfs::opencl::{Device, DeviceError, DeviceInfo, DeviceKind, Kernel, Limits, OpenClError, choose, devices};

/// The name in messages, and a part of the name of its device or platform.
pub const IMPLEMENTATIONS: [(&str, &str); 3] = [("PoCL", "Portable Computing Language"), ("rusticl", "rusticl"), ("Oclgrind", "Oclgrind")];

const POCL: &str = IMPLEMENTATIONS[0].1;

/// Prints that `test` was not run, bypassing the output capture of the test harness.
pub fn skipped(test: &str, why: &str) {
    std::io::stderr().write_all(format!("SKIPPED {test}: {why}\n").as_bytes()).unwrap();
}

/// The device of an implementation (`None` if it is not installed).
pub fn device(wanted: &str) -> Option<DeviceInfo> {
    let devices = match devices() {
        Ok(devices) => devices,
        Err(OpenClError::NoLibrary | OpenClError::NoPlatform | OpenClError::NoDevice { .. }) => return None,
        Err(error) => panic!("{error}"),
    };
    choose(&devices, &wanted.parse().unwrap()).ok().map(|mut chosen| chosen.remove(0))
}

/// The device of the implementation that `test` is about. Prints SKIPPED if it is not installed, or if `SOCBFS_TEST_DEVICE` names another.
pub fn device_of(test: &str, wanted: &str) -> Option<DeviceInfo> {
    let Some(info) = device(wanted) else {
        skipped(test, &format!("{wanted} is not installed, or not found without tests/opencl_env"));
        return None;
    };
    let word = std::env::var("SOCBFS_TEST_DEVICE").unwrap_or_default().to_lowercase();
    if is_named(&info, &word) {
        return Some(info);
    }
    skipped(test, &format!("it is about {wanted}, and SOCBFS_TEST_DEVICE asks for {word}"));
    None
}

/// Whether the name of a device or its platform has a word in small letters.
pub fn is_named(info: &DeviceInfo, word: &str) -> bool {
    [&info.name, &info.platform].iter().any(|name| name.to_lowercase().contains(word))
}

/// Every installed implementation, and every GPU of another one. Prints SKIPPED for the implementations that are not installed.
pub fn installed(test: &str) -> Vec<(&'static str, DeviceInfo)> {
    let mut found = Vec::new();
    for (name, wanted) in IMPLEMENTATIONS {
        match device(wanted) {
            Some(info) => found.push((name, info)),
            None => skipped(test, &format!("{name} is not installed, or not found without tests/opencl_env")),
        }
    }
    let of_others = |info: &DeviceInfo| IMPLEMENTATIONS.iter().all(|(_, wanted)| !info.platform.contains(wanted));
    let gpus = devices().unwrap_or_default().into_iter().filter(|info| info.kind == DeviceKind::Gpu && of_others(info));
    found.extend(gpus.map(|info| (&*info.name.clone().leak(), info)));
    found
}

/// Whether the driver reports 0 bytes of local memory for every kernel (`CL_KERNEL_LOCAL_MEM_SIZE`), as PoCL 5.0 and 6.0 do.
pub fn hides_local_memory(info: &DeviceInfo) -> bool {
    info.platform == POCL && !info.driver.starts_with("3.")
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Lets only one test of a process use the devices at a time: Oclgrind mixes up the work-groups of contexts that run at the same time,
/// and PoCL 3.1 has been seen to crash. (Commands that a test starts are other processes, and need no turn.)
pub fn turn() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` on the device of every installed implementation, opened with `limits`.
pub fn on_each(test: &str, limits: Limits, body: impl Fn(&str, &Arc<Device>)) {
    for (name, info) in installed(test) {
        let _turn = turn();
        body(name, &Device::open(&info, limits).unwrap_or_else(|error| panic!("{name}: {error}")));
    }
}

/// Starts a kernel of a test.
pub fn run(kernel: &Kernel, groups: usize, local: usize) -> Result<(), DeviceError> {
    // SAFETY: the kernels of tests stay inside the buffers they are given, and tests wait for them before using the buffers.
    unsafe { kernel.run(groups, local) }
}

/// Environment variable that is set in a process started by [`inside`], to the name of the test.
const INSIDE: &str = "SOCBFS_TEST_INSIDE";

/// Environment variable with a command and its arguments under which [`inside`] runs the new process, such as "valgrind -q".
pub const UNDER: &str = "SOCBFS_TEST_UNDER";

/// Runs the test `test` of `module` (`module_path!()`) in a new process with `variables` set, since implementations read them when they
/// are loaded. Returns true in that process; in the first process, waits for it, fails if it fails, and returns false.
pub fn inside(module: &str, test: &str, variables: &[(&str, &str)]) -> bool {
    // The test harness omits the name of the crate.
    let test = &module.split_once("::").map_or_else(|| test.to_owned(), |(_, module)| format!("{module}::{test}"));
    if std::env::var(INSIDE).is_ok_and(|inside| inside == *test) {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let under = std::env::var(UNDER).unwrap_or_default();
    let mut words = under.split_whitespace();
    let mut command = words.next().map_or_else(
        || Command::new(&program),
        |first| {
            let mut command = Command::new(first);
            command.args(words).arg(&program);
            command
        },
    );
    let output = command
        .args([test.as_str(), "--exact", "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(INSIDE, test)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // "1 passed" is checked because a name that matches no test would succeed too.
    assert!(output.status.success() && out.contains("1 passed"), "{test} with {variables:?}: {}\n{out}\n{err}", output.status);
    print!("{out}");
    // What that process says here would be captured like the rest.
    for line in err.lines().filter(|line| line.starts_with("SKIPPED")) {
        std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    false
}

/// Builds an OpenCL library for `OPENCL_DYLIB_PATH`. It passes all calls on until `SOCBFS_TEST_LOSE_AFTER` commands are enqueued, and then
/// loses the device; `loses.c` describes its other settings. `None` if there is no C compiler or no OpenCL library.
pub fn losing_library(folder: &Path) -> Option<PathBuf> {
    library(folder, "loses")
}

/// Builds the library of `refuses.c` in the same way. It refuses programs whose work-groups are larger than `SOCBFS_TEST_LARGEST_GROUP`.
pub fn refusing_library(folder: &Path) -> Option<PathBuf> {
    library(folder, "refuses")
}

/// Runs `body` on PoCL by a driver that refuses what `variables` say, in two processes one after the other, which share a cache of their
/// own. Returns how often it had refused something at the end of each; `None` in these processes, or if the test can't run.
pub fn refusals(module: &str, test: &str, variables: &[(&str, &str)], body: impl FnOnce()) -> Option<[usize; 2]> {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = refusing_library(folder.path()) else {
        skipped(test, "no C compiler, or no libOpenCL.so.1 to link to");
        return None;
    };
    device_of(test, POCL)?;
    let [report, cache] = ["report", "cache"].map(|name| folder.path().join(name));
    let fixed = [
        ("OPENCL_DYLIB_PATH", library.to_str().unwrap()),
        ("SOCBFS_TEST_DEVICE", POCL),
        ("SOCBFS_CACHE_DIR", cache.to_str().unwrap()),
        ("SOCBFS_TEST_REPORT", report.to_str().unwrap()),
    ];
    let mut refused = [0; 2];
    for refused in &mut refused {
        if inside(module, test, &[&fixed, variables].concat()) {
            body();
            return None;
        }
        *refused = std::fs::read_to_string(&report).unwrap_or_default().lines().count();
    }
    Some(refused)
}

/// Builds the library of `misbehaves.c` in the same way. It does what `SOCBFS_TEST_MISBEHAVE` says.
pub fn misbehaving_library(folder: &Path) -> Option<PathBuf> {
    library(folder, "misbehaves")
}

/// Builds `NAME.c` of this folder, a layer over the system's OpenCL library. Fails if it can't be built for any other reason than the two.
fn library(folder: &Path, name: &str) -> Option<PathBuf> {
    let library = folder.join(format!("lib{name}.so"));
    // Crates of the workspace share these files.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = ["tests", "../tests"].map(|tests| here.join(tests).join(format!("implementations/{name}.c")));
    let source = sources.into_iter().find(|source| source.exists()).unwrap();
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .arg(&library)
        .arg(source)
        .args(["-Wl,--no-as-needed", "-l:libOpenCL.so.1", "-ldl"])
        .output();
    match built {
        Ok(output) if output.status.success() => Some(library),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            // The linker names the library that it does not find.
            assert!(said.contains("libOpenCL.so.1"), "{name}.c can't be built: {said}");
            None
        }
        Err(_) => None,
    }
}

/// The counts of `counts.c`, over all devices and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Launches of kernels.
    pub launches: u64,
    /// Fills of buffers and of shared virtual memory.
    pub fills: u64,
    /// Calls that wait: clFinish, clWaitForEvents, blocking reads, writes and maps.
    pub waits: u64,
    pub maps: u64,
    pub unmaps: u64,
    pub reads: u64,
    pub writes: u64,
    /// Bytes that a device with memory of its own sends to the host, in maps and reads.
    pub to_host: u64,
    /// Bytes that the host sends to such a device, in unmaps and writes.
    pub to_device: u64,
    pub flushes: u64,
    /// Programs built from source, and not taken from a cache.
    pub programs: u64,
}

impl Counts {
    /// The counts up to now. Must be called inside of [`counting`].
    pub fn now() -> Self {
        let bytes = std::fs::read(std::env::var_os(COUNTS).unwrap()).unwrap();
        let numbers: Vec<u64> = bytes.chunks_exact(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap())).collect();
        let [launches, fills, waits, maps, unmaps, reads, writes, to_host, to_device, flushes, programs] = numbers.try_into().unwrap();
        Self { launches, fills, waits, maps, unmaps, reads, writes, to_host, to_device, flushes, programs }
    }

    /// The counts from `before` until now.
    pub fn since(before: &Self) -> Self {
        let now = Self::now();
        Self {
            launches: now.launches - before.launches,
            fills: now.fills - before.fills,
            waits: now.waits - before.waits,
            maps: now.maps - before.maps,
            unmaps: now.unmaps - before.unmaps,
            reads: now.reads - before.reads,
            writes: now.writes - before.writes,
            to_host: now.to_host - before.to_host,
            to_device: now.to_device - before.to_device,
            flushes: now.flushes - before.flushes,
            programs: now.programs - before.programs,
        }
    }

    /// Bytes of all handovers, in both directions.
    pub fn moved(&self) -> u64 {
        self.to_host + self.to_device
    }
}

/// Environment variable with the file in which `counts.c` counts.
const COUNTS: &str = "SOCBFS_TEST_COUNTS";

/// Runs the `body` of `test` in a new process on PoCL, where [`Counts`] are counted. Prints SKIPPED if that is not possible.
pub fn counting(module: &str, test: &str, body: impl FnOnce(&DeviceInfo)) {
    counting_with(module, test, &[], body);
}

/// The same as [`counting`], with more environment variables.
pub fn counting_with(module: &str, test: &str, more: &[(&str, &str)], body: impl FnOnce(&DeviceInfo)) {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = library(folder.path(), "counts") else {
        return skipped(test, "no C compiler, or no libOpenCL.so.1 to link to");
    };
    let Some(info) = device_of(test, POCL) else { return };
    let file = folder.path().join("counts");
    // Calls of a process that tries the driver are not counted.
    let variables = [
        ("OPENCL_DYLIB_PATH", library.to_str().unwrap()),
        (COUNTS, file.to_str().unwrap()),
        ("SOCBFS_TEST_DEVICE", POCL),
        ("SOCBFS_DEVICE_TIMEOUT", "0"),
    ];
    if inside(module, test, &[&variables, more].concat()) {
        body(&info);
    }
}
