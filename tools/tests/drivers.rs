//! Drivers that crash, hang or answer wrongly: they end no command. `tests/capi` and `tests/python` do the same to programs that embed the
//! library.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    board_tools::driver as driver_of,
    built::{self, Folder, emulated, text},
    implementations::{device, misbehaving_library, skipped},
};

/// A name by which PoCL's device is known, however wrong its own is.
const FIRST: &str = "#1";

/// A driver of PoCL that misbehaves.
struct Driver {
    folder: Folder,
    library: PathBuf,
}

impl Driver {
    fn new(test: &str) -> Option<Self> {
        let folder = Folder::new();
        let Some(library) = misbehaving_library(folder.0.path()) else {
            skipped(test, "no C compiler, or no libOpenCL.so.1 to link to");
            return None;
        };
        let places = [std::env::var_os("OCL_ICD_VENDORS").map(PathBuf::from), Some("/etc/OpenCL/vendors".into())];
        let icd = places.into_iter().flatten().map(|place| place.join("pocl.icd")).find(|icd| icd.exists());
        let (Some(icd), true) = (icd, device("Portable Computing Language").is_some()) else {
            skipped(test, "PoCL is not installed, or not found without tests/opencl_env");
            return None;
        };
        fs::create_dir(folder.path("vendors")).unwrap();
        fs::copy(icd, folder.path("vendors/pocl.icd")).unwrap();
        Some(Self { folder, library })
    }

    fn socbfs(&self, how: &str, arguments: &[&str]) -> Command {
        let mut command = built::socbfs(arguments);
        command
            .env("OPENCL_DYLIB_PATH", &self.library)
            .env("OCL_ICD_VENDORS", self.folder.path("vendors"))
            .env("SOCBFS_TEST_MISBEHAVE", how)
            // The same library misbehaves in many ways here, so nothing is remembered of it.
            .env("SOCBFS_CACHE_DIR", "")
            .stdin(Stdio::null());
        if how.ends_with("hangs") {
            command.env("SOCBFS_DEVICE_TIMEOUT", if emulated() { "60" } else { "5" });
        }
        command
    }

    /// The exit code, and what the command printed to standard error. It fails for any end that is not a command's own.
    fn ends(&self, how: &str, arguments: &[&str]) -> (i32, String) {
        let output = self.socbfs(how, arguments).output().unwrap();
        let said = text(&output.stderr);
        let code = output.status.code().unwrap_or_else(|| panic!("{how} {arguments:?}: {} {said}", output.status));
        assert!([0, 2].contains(&code) && !said.contains("bug in socbfs"), "{how} {arguments:?}: {code} {said}");
        (code, said)
    }
}

const DEVICES: &[&str] = &["devices", "--quick"];
const NAMED: &[&str] = &["run", "grid:8x8", "--root", "0", "--policy", "tg", "--device", FIRST];
const FOUND: &[&str] = &["run", "grid:8x8", "--root", "0"];

/// Whether every way to misbehave is tried.
fn all() -> bool {
    std::env::var_os("SOCBFS_TEST_ALL").is_some()
}

#[test]
fn drivers_that_end_the_process_are_reported() {
    let Some(driver) = Driver::new("drivers_that_end_the_process_are_reported") else { return };
    let quick = [
        "loaded-exits",
        "listed-aborts",
        "listed-hangs",
        "described-crashes",
        "opened-exits",
        "opened-hangs",
        "reserved-hangs",
        "flushed-hangs",
        "built-aborts",
    ];
    let hows = [("aborts", "SIGABRT"), ("exits", "exit code 7"), ("crashes", "SIGSEGV"), ("hangs", "did not answer within")];
    for when in ["loaded", "listed", "described", "opened", "reserved", "flushed", "built", "kernel"] {
        for (how, word) in hows {
            let case = &*format!("{when}-{how}");
            if !all() && !quick.contains(&case) {
                continue;
            }
            let (devices, named, found) = thread::scope(|scope| {
                let [devices, named, found] = [DEVICES, NAMED, FOUND].map(|command| scope.spawn(|| driver.ends(case, command)));
                (devices.join().unwrap(), named.join().unwrap(), found.join().unwrap())
            });
            // A device that was named is an error. Where it was only found, the CPU searches.
            assert_eq!((named.0, found.0), (2, 0), "{case}: {named:?} {found:?}");
            for said in [&named.1, &found.1] {
                assert!(said.contains(word) && (how != "aborts" || said.contains("the driver has a bug")), "{case}: {said}");
            }
            match when {
                "loaded" | "listed" | "described" => {
                    assert_eq!(devices.0, 2, "{case}: {devices:?}");
                    assert!(devices.1.contains(word) && named.1.contains("--device cpu"), "{case}: {devices:?} {named:?}");
                    assert!(found.1.contains("while the devices were listed; "), "{case}: {found:?}");
                }
                "opened" | "reserved" | "flushed" => {
                    assert_eq!(devices.0, 0, "{case}: {devices:?}");
                    assert!(devices.1.contains(word) && named.1.contains("when it was opened"), "{case}: {devices:?} {named:?}");
                }
                _ => {
                    assert_eq!(devices.0, 0, "{case}: {devices:?}");
                    let what = if how == "hangs" { "while building kernels" } else { "can't build the kernels" };
                    assert!(named.1.contains(what) && found.1.contains("CPU alone"), "{case}: {named:?} {found:?}");
                }
            }
        }
    }
}

/// A driver that returns from no call that waits for its device, and waits for it at the end of the process too, as drivers of GPUs do
/// after a kernel has hung. Every command ends after the limit, which is 10 seconds, and what drivers get at the end.
#[test]
fn a_driver_that_never_completes_ends_no_command() {
    const LIMIT: Duration = Duration::from_secs(30);
    const CASE: &str = "waited-hangs";
    let Some(driver) = Driver::new("a_driver_that_never_completes_ends_no_command") else { return };
    let (record, calibration) = (driver.folder.path("record.json"), driver.folder.path("calibration.toml"));
    let (record, calibration) = (record.as_str(), calibration.as_str());
    let commands: [(&[&str], i32); 6] = [
        (NAMED, 2),
        (FOUND, 0),
        (&["bench", "kronecker:8", "--roots", "2", "--policy", "concurrent:0,0,500", "--device", FIRST, "--json", record], 2),
        (&["calibrate", "--quick", "--graphs", "3", "--budget", "3s", "--device", FIRST, "--threads", "1", "-o", calibration], 2),
        (DEVICES, 0),
        (&["doctor"], 0),
    ];
    thread::scope(|scope| {
        for (arguments, wanted) in commands {
            let driver = &driver;
            scope.spawn(move || {
                let begin = Instant::now();
                let output = driver.socbfs(CASE, arguments).env_remove("SOCBFS_DEVICE_TIMEOUT").output().unwrap();
                let (elapsed, said) = (begin.elapsed(), text(&output.stderr) + &text(&output.stdout));
                // The doctor's lines fit a terminal.
                let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
                // The doctor tries the device in more than one process.
                let limit = if arguments == ["doctor"] { 2 * LIMIT } else { LIMIT };
                assert!(elapsed < limit || emulated(), "{arguments:?}: {elapsed:?} {said}");
                assert_eq!(output.status.code(), Some(wanted), "{arguments:?}: {said}");
                assert!(said.contains("a wait of 10 s: DEVICE_TIMEOUT") && said.contains("SOCBFS_DEVICE_TIMEOUT"), "{arguments:?}: {said}");
                assert!(said.contains("pthread") || said.contains("cpu-"), "{arguments:?}: the device is not named: {said}");
            });
        }
    });
    assert!(!Path::new(record).exists() && !Path::new(calibration).exists());
}

#[test]
fn drivers_that_answer_wrongly_are_survived() {
    let Some(driver) = Driver::new("drivers_that_answer_wrongly_are_survived") else { return };
    let mut cases =
        vec!["many-platforms", "null-platform", "many-devices", "no-strings", "huge-strings", "fewer-later", "null-context", "null-kernel"];
    if all() {
        cases.extend(["no-platforms", "no-devices", "null-device", "empty-strings", "endless-strings", "zero-limits"]);
        cases.extend(["short-answers", "huge-answers", "null-queue", "null-program", "no-log"]);
    }
    for case in cases {
        thread::scope(|scope| {
            for command in [DEVICES, NAMED, FOUND] {
                scope.spawn(|| driver.ends(case, command));
            }
        });
    }
}

#[test]
fn an_adreno_without_a_name_is_found_by_its_vendor() {
    let Some(driver) = Driver::new("an_adreno_without_a_name_is_found_by_its_vendor") else { return };
    let (code, said) = driver.ends("qualcomm", &["run", "grid:8x8", "--root", "0", "--policy", "tg", "--device", "adreno"]);
    assert_eq!(code, 0, "{said}");
}

/// One compute unit of a GPU, and memory in place that is copied without a word.
#[test]
fn what_a_driver_says_is_not_believed_where_it_can_be_measured() {
    let Some(driver) = Driver::new("what_a_driver_says_is_not_believed_where_it_can_be_measured") else { return };
    let (board, record) = (driver.folder.path("board.toml"), driver.folder.path("record.json"));
    let device = |name: &str| format!("[[opencl.devices]]\nname = '{name}'\ncompute_units = 3\n");
    fs::write(&board, format!("schema = 1\n[board]\nname = 'b'\n{}{}", device("pthread*"), device("cpu*"))).unwrap();
    let used = |how: &str, board: &str| {
        let bench = ["bench", "kronecker:8", "--roots", "2", "--policy", "tg", "--device", FIRST, "--work-group", "32"];
        let (code, said) = driver.ends(how, &[&bench[..], &["--board", board, "--json", &record]].concat());
        assert_eq!(code, 0, "{how}: {said}");
        let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
        let device = &record["search"]["devices"][0];
        (device["groups"].as_u64().unwrap(), device["zero_copy"].as_bool().unwrap())
    };
    // A busy machine may hide a copy from the measurement of one run, or look like one.
    let within_three = |how: &str, board: &str, wanted: (u64, bool)| {
        let found: Vec<_> = (0..3).map(|_| used(how, board)).take_while(|&found| found != wanted).collect();
        assert!(found.len() < 3, "{how}: {found:?}, not {wanted:?}");
    };
    within_three("one-unit", "generic", (64, true));
    within_three("one-unit", &board, (24, true));
    within_three("copying", &board, (24, false));
}

#[test]
fn a_success_is_remembered_until_the_driver_ends_the_process() {
    let Some(driver) = Driver::new("a_success_is_remembered_until_the_driver_ends_the_process") else { return };
    let (cache, loads) = (driver.folder.path("cache"), driver.folder.path("loads"));
    let run = |how: &str| -> (Output, usize) {
        let _ = fs::remove_file(&loads);
        let output = driver.socbfs(how, NAMED).env("SOCBFS_CACHE_DIR", &cache).env("SOCBFS_TEST_LOADS", &loads).output().unwrap();
        (output, fs::read_to_string(&loads).unwrap().lines().count())
    };
    // The devices and the program are tried in a process each.
    let (first, loads) = run("");
    assert_eq!((first.status.code(), loads), (Some(0), 3), "{}", text(&first.stderr));
    let (second, loads) = run("");
    assert_eq!((second.status.code(), loads), (Some(0), 1), "{}", text(&second.stderr));
    // Nobody can know that this driver changed its mind. The next start does.
    let (surprised, loads) = run("listed-aborts");
    assert_eq!((surprised.status.code(), loads), (None, 1));
    let (warned, loads) = run("listed-aborts");
    assert_eq!((warned.status.code(), loads), (Some(2), 1), "{}", text(&warned.stderr));
    // Programs alike.
    assert_eq!(run("").0.status.code(), Some(0));
    assert_eq!(run("built-exits").0.status.code(), Some(7));
    let (warned, _) = run("built-exits");
    assert!(warned.status.code() == Some(2) && text(&warned.stderr).contains("can't build the kernels"), "{}", text(&warned.stderr));
}

/// An update of a driver may keep its version.
#[test]
fn what_is_remembered_of_a_driver_ends_with_its_files_variables_and_limits() {
    let Some(mut driver) = Driver::new("what_is_remembered_of_a_driver_ends_with_its_files_variables_and_limits") else { return };
    let (cache, loads) = (driver.folder.path("cache"), driver.folder.path("loads"));
    let command = |driver: &Driver, how: &str| {
        let mut command = driver.socbfs(how, NAMED);
        command.env("SOCBFS_CACHE_DIR", &cache).env("SOCBFS_TEST_LOADS", &loads);
        command
    };
    // The exit code, and how often the driver was loaded: once, and once for each trial.
    let ends = |command: &mut Command| {
        let _ = fs::remove_file(&loads);
        let output = command.output().unwrap();
        (output.status.code(), fs::read_to_string(&loads).unwrap().lines().count())
    };
    let update = |driver: &Driver| {
        let old = fs::read(&driver.library).unwrap();
        fs::remove_file(&driver.library).unwrap();
        fs::write(&driver.library, old).unwrap();
    };
    assert_eq!(ends(&mut command(&driver, "")), (Some(0), 3));
    assert_eq!(ends(&mut command(&driver, "")), (Some(0), 1));
    // Each change of the surroundings is another memory.
    let limited = |how| {
        let mut limited = Command::new("sh");
        let given = command(&driver, how);
        limited.args(["-c", "ulimit -n 500 && exec \"$0\" \"$@\""]).arg(given.get_program()).args(given.get_args());
        for (name, value) in given.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        limited
    };
    let set = |how| {
        let mut set = command(&driver, how);
        set.env("POCL_TEST", "1");
        set
    };
    // A crash is the trial's: the program itself would end by a signal.
    assert_eq!(ends(&mut set("built-crashes")).0, Some(2));
    assert_eq!(ends(&mut limited("built-crashes")).0, Some(2));
    assert_eq!(ends(&mut set("")), (Some(0), 2));
    assert_eq!(ends(&mut command(&driver, "")), (Some(0), 1));
    update(&driver);
    assert_eq!(ends(&mut command(&driver, "built-aborts")).0, Some(2));
    assert_eq!(ends(&mut command(&driver, "")).0, Some(0));
    update(&driver);
    assert_eq!(ends(&mut command(&driver, "")), (Some(0), 3));
    assert_eq!(ends(&mut command(&driver, "")), (Some(0), 1));
    // A link to the driver leads to another file, and an .icd file does not tell.
    let (one, other, link) = (driver.folder.path("one.so"), driver.folder.path("other.so"), driver.folder.path("driver.so"));
    let named = fs::read_to_string(driver.folder.path("vendors/pocl.icd")).unwrap();
    fs::write(driver.folder.path("vendors/pocl.icd"), &link).unwrap();
    for (place, aborts) in [(&one, ""), (&other, "abort();")] {
        let code = format!(
            "#include <dlfcn.h>\n#include <stdlib.h>\nvoid *clGetExtensionFunctionAddress(const char *name) {{ {aborts} \
            void *driver = dlopen(\"{}\", RTLD_NOW); return ((void *(*)(const char *))dlsym(driver, __func__))(name); }}",
            named.trim()
        );
        let library = driver_of(Path::new(&driver.folder.path("")), &code).unwrap();
        fs::rename(library, place).unwrap();
    }
    symlink(&one, &link).unwrap();
    driver.library = "libOpenCL.so.1".into();
    let code = |driver: &Driver| command(driver, "").output().unwrap().status.code();
    assert_eq!(code(&driver), Some(0));
    fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    assert_eq!(code(&driver), Some(2));
}

/// Standard output holds the result, whatever a driver prints there, and the command ends without the driver.
#[test]
fn drivers_neither_spoil_a_result_nor_keep_a_command_from_ending() {
    let Some(driver) = Driver::new("drivers_neither_spoil_a_result_nor_keep_a_command_from_ending") else { return };
    let commands: [&[&str]; 5] = [
        &["bench", "kronecker:6", "--roots", "1", "--energy", "off", "--device", FIRST, "--json", "-"],
        &["bench", "kronecker:6", "--roots", "1", "--energy", "off", "--device", FIRST, "--json", "/dev/stdout"],
        &["devices", "--quick", "--json"],
        NAMED,
        &["doctor"],
    ];
    thread::scope(|scope| {
        for (number, arguments) in commands.iter().enumerate() {
            for how in ["loaded-prints", "described-prints", "built-prints", "unloaded-prints", "unloaded-hangs"] {
                if !all() && how != ["described-prints", "unloaded-hangs"][number % 2] {
                    continue;
                }
                let driver = &driver;
                scope.spawn(move || {
                    let begin = Instant::now();
                    // A benchmark compiles more kernels than one search does.
                    let output = driver.socbfs(how, arguments).env("SOCBFS_DEVICE_TIMEOUT", "100").output().unwrap();
                    let (printed, said) = (text(&output.stdout), text(&output.stderr));
                    assert!(output.status.success() && !printed.contains("the driver was here"), "{how} {arguments:?}: {printed} {said}");
                    assert!(begin.elapsed() < Duration::from_secs(240) || emulated(), "{how} {arguments:?}");
                    if arguments.contains(&"--json") {
                        serde_json::from_str::<serde_json::Value>(&printed).unwrap_or_else(|error| panic!("{how} {arguments:?}: {error}"));
                    }
                });
            }
        }
    });
}

#[test]
fn ctrl_c_ends_a_command_whose_driver_hangs_and_leaves_no_process() {
    let Some(driver) = Driver::new("ctrl_c_ends_a_command_whose_driver_hangs_and_leaves_no_process") else { return };
    let loads = driver.folder.path("loads");
    let mut child =
        driver.socbfs("listed-hangs", FOUND).env("SOCBFS_TEST_LOADS", &loads).env_remove("SOCBFS_DEVICE_TIMEOUT").spawn().unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    let wait = |done: &dyn Fn() -> bool| {
        while !done() {
            assert!(Instant::now() < limit, "too late");
            thread::sleep(Duration::from_millis(20));
        }
    };
    let tried = || fs::read_to_string(&loads).ok().and_then(|pids| pids.lines().next()?.parse::<i32>().ok());
    wait(&|| tried().is_some());
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let pid = tried().unwrap();
    wait(&|| !Path::new(&format!("/proc/{pid}")).exists() || kill(Pid::from_raw(pid), None).is_err());
}
