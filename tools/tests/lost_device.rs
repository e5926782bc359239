//! Commands whose device is lost or stops answering: they report it, and leave no partial output.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use socbfs::memory::SharingMode;

use crate::{
    built::{self, text},
    implementations::{device, losing_library, skipped},
};

const POCL: &str = "Portable Computing Language";

/// A user on a machine whose PoCL device can be lost.
struct User {
    user: built::User,
    library: PathBuf,
}

impl User {
    fn new(test: &str) -> Option<Self> {
        let user = built::User::new();
        let Some(library) = losing_library(user.0.0.path()) else {
            skipped(test, "no C compiler, or no libOpenCL.so.1 to link to");
            return None;
        };
        if device(POCL).is_none() {
            skipped(test, "PoCL is not installed, or not found without tests/opencl_env");
            return None;
        }
        Some(Self { user, library })
    }

    fn path(&self, name: &str) -> String {
        self.user.path(name)
    }

    fn socbfs(&self, arguments: &[&str]) -> Command {
        let mut command = self.user.socbfs(arguments);
        command.env("OPENCL_DYLIB_PATH", &self.library).stdin(Stdio::null());
        command
    }

    /// Runs `socbfs` with a device that is lost after `after` OpenCL commands.
    fn lost_after(&self, after: u32, arguments: &[&str]) -> Output {
        self.socbfs(arguments).env("SOCBFS_TEST_LOSE_AFTER", after.to_string()).output().unwrap()
    }
}

/// Numbers of commands before the loss: at the beginning, in the measurement of handovers, while kernels are checked, in searches.
fn points() -> &'static [u32] {
    if std::env::var_os("SOCBFS_TEST_ALL").is_some() { &[0, 1, 7, 60, 150, 300, 500, 800, 1200, 2000, 4000, 8000] } else { &[0, 60, 1200] }
}

/// Whether `error` has the name of a device of any implementation used in tests.
fn names_a_device(error: &str) -> bool {
    ["pthread", "cpu-", "llvmpipe", "Oclgrind"].iter().any(|name| error.contains(name))
}

#[test]
fn every_command_reports_a_lost_device() {
    const TEST: &str = "every_command_reports_a_lost_device";
    let Some(user) = User::new(TEST) else { return };
    let board = user.path("board.toml");
    fs::write(&board, "schema = 1\n[board]\nname = 'mine'\n").unwrap();
    let (record, calibration, tuned) = (user.path("record.json"), user.path("calibration.toml"), user.path("tuned.toml"));
    let commands: [(&str, &[&str]); 5] = [
        ("run", &["run", "grid:30x30", "--root", "0", "--policy", "tg", "--device", POCL]),
        ("bench", &["bench", "kronecker:8", "--roots", "2", "--policy", "concurrent:0,0,500", "--device", POCL, "--json", &record]),
        ("policies", &["policies", "kronecker:7", "--roots", "1", "--turns", "1", "--only", "tg,adaptive", "--device", POCL]),
        ("calibrate", &["calibrate", "--quick", "--graphs", "3", "--budget", "3s", "--device", POCL, "--threads", "1", "-o", &calibration]),
        ("board tune", &["board", "tune", &board, &tuned, "--graph", "kronecker:8"]),
    ];
    for (name, arguments) in commands {
        let mut lost = 0;
        for &after in points() {
            // `board tune` takes a GPU only.
            let mut command = user.socbfs(arguments);
            let output = command.env("SOCBFS_TEST_AS_GPU", "1").env("SOCBFS_TEST_LOSE_AFTER", after.to_string()).output().unwrap();
            let error = text(&output.stderr);
            match output.status.code() {
                Some(0) => assert!(!error.contains("CL_OUT_OF_RESOURCES"), "{name} after {after}: {error}"),
                code => {
                    assert_eq!(code, Some(2), "{name} after {after}: {} {error}", output.status);
                    assert!(error.contains("CL_OUT_OF_RESOURCES") && !error.contains("bug in socbfs"), "{name} after {after}: {error}");
                    assert!(names_a_device(&error), "{name} after {after}: the device is not named: {error}");
                    assert!(![&record, &calibration, &tuned].iter().any(|file| Path::new(file).exists()), "{name} after {after}");
                    lost += 1;
                }
            }
            for file in [&record, &calibration, &tuned, &format!("{calibration}.partial")] {
                let _ = fs::remove_file(file);
            }
        }
        assert!(lost >= 2, "{name}: lost {lost} times");
    }
    let left = user.user.0.names();
    assert!(left.iter().all(|name| ["libloses.so", "board.toml", ".cache"].contains(&&**name)), "{left:?}");
}

#[test]
fn the_doctor_reports_a_lost_device() {
    let Some(user) = User::new("the_doctor_reports_a_lost_device") else { return };
    for after in [0, 300] {
        let output = user.lost_after(after, &["doctor"]);
        let said = text(&output.stdout);
        assert!(matches!(output.status.code(), Some(0 | 2)), "{said}");
        assert!(said.contains("a search on ") && said.contains("CL_OUT_OF_RESOURCES"), "after {after}: {said}");
    }
}

/// A size of work-group with which the device does not end in time loses, also if it is the usual one; the others are compared.
#[test]
fn a_slow_size_of_work_group_loses() {
    let Some(user) = User::new("a_slow_size_of_work_group_loses") else { return };
    let board = user.path("board.toml");
    for (size, said) in [("64", "work-groups of 64 are left out"), ("32", "work-groups of the usual size are left out")] {
        fs::write(&board, "schema = 1\n[board]\nname = 'mine'\n[[opencl.devices]]\nname = '*e*'\nvia = 'pocl'\ntimeout_s = 6\n").unwrap();
        let mut command = user.socbfs(&["board", "tune", &board, "--graph", "kronecker:8", "--device", POCL]);
        let output = command.env("SOCBFS_TEST_HANG", "1").env("SOCBFS_TEST_HANG_GROUP", size).output().unwrap();
        let error = text(&output.stderr);
        assert!(output.status.code() == Some(0) && error.contains(said) && error.contains("DEVICE_TIMEOUT"), "{size}: {error}");
        let tuned: toml::Table = text(&output.stdout).parse().unwrap();
        let chosen = tuned["opencl"]["devices"][0]["work_group"].as_integer().unwrap();
        assert_ne!(chosen.to_string(), size);
    }
}

/// With `--device auto` a GPU is optional: if it is lost while thresholds are measured, `run` continues on the CPU or names the GPU.
#[test]
fn a_gpu_lost_while_thresholds_are_measured_is_named() {
    let Some(user) = User::new("a_gpu_lost_while_thresholds_are_measured_is_named") else { return };
    let (mut refused, mut fell_back) = (0, 0);
    for &after in points() {
        let arguments = ["run", "kronecker:9", "--root", "1", "--policy", "adaptive", "--device", "auto"];
        let output =
            user.socbfs(&arguments).env("SOCBFS_TEST_AS_GPU", "1").env("SOCBFS_TEST_LOSE_AFTER", after.to_string()).output().unwrap();
        let error = text(&output.stderr);
        assert!(!error.contains("needs an OpenCL device"), "after {after}: {error}");
        match output.status.code() {
            Some(0) => fell_back += u32::from(error.contains("continuing on the CPU alone")),
            code => {
                assert_eq!(code, Some(2), "after {after}: {} {error}", output.status);
                assert!(error.contains("CL_OUT_OF_RESOURCES") && names_a_device(&error), "after {after}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused + fell_back >= 2, "{refused} {fell_back}");
}

/// A device that accepts every launch and runs none is an error where it was named. Where it was only found, the CPU searches.
#[test]
fn a_device_that_computes_nothing_is_not_used() {
    let Some(user) = User::new("a_device_that_computes_nothing_is_not_used") else { return };
    let idle = user.path("idle");
    fs::write(&idle, "*").unwrap();
    let bench = |arguments: &[&str]| {
        let mut command = user.socbfs(&[&["bench", "kronecker:10", "--roots", "2"], arguments].concat());
        let output = command.env("SOCBFS_TEST_AS_GPU", "1").env("SOCBFS_TEST_DROP_FILE", &idle).output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    for way in SharingMode::ALL {
        let way = way.to_string();
        let (code, error) = bench(&["--device", POCL, "--policy", "tg", "--memory-way", &way]);
        let is_refused = names_a_device(&error) && error.contains("finds wrong levels");
        assert!(code == Some(2) && (is_refused || error.contains("does not offer")), "{way}: {code:?} {error}");
    }
    let (code, error) = bench(&[]);
    assert!(code == Some(0) && names_a_device(&error) && error.contains("continuing on the CPU alone"), "{code:?} {error}");
}

/// A tree that fails validation has a record, which says so.
#[test]
fn a_tree_that_a_driver_damages_is_recorded() {
    let Some(user) = User::new("a_tree_that_a_driver_damages_is_recorded") else { return };
    let (lie, record) = (user.path("lie"), user.path("record.json"));
    let run = ["run", "kronecker:8", "--root", "1", "--device", POCL, "--policy", "tg", "--memory-way", "copy", "--json", &record];
    // The parents are the only data of this size; how much arrives before them depends on what is measured.
    fs::write(&lie, format!("1 1 {}", 256 * size_of::<u32>())).unwrap();
    let output = user.socbfs(&run).env("SOCBFS_TEST_LIE_FILE", &lie).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    let violation = record["roots"][0]["validation"]["violation"].as_str().unwrap();
    assert!(record["valid"] == false && record["summary"].is_null() && output.stdout.is_empty(), "{record:#}");
    assert!(text(&output.stderr).contains(&format!("the tree from root 1 failed validation: {violation}")), "{violation}");
}

/// Sends SIGINT and returns the exit code (`None` if the process does not end).
fn interrupted(mut child: Child) -> Option<i32> {
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let limit = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = child.try_wait().unwrap();
    if ended.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ended.and_then(|status| status.code())
}

/// Ctrl-C ends a command whose device hangs, and no partial output is left.
#[test]
fn ctrl_c_ends_a_command_whose_device_hangs() {
    let Some(user) = User::new("ctrl_c_ends_a_command_whose_device_hangs") else { return };
    let record = user.path("record.json");
    let bench = ["bench", "kronecker:8", "--roots", "8", "--device", POCL, "--json", &record];
    for (policy, after) in [("tg", 60), ("concurrent:0,0,500", 400), ("asynchronous:20,500", 400), ("tg", 0)] {
        let report = user.path(&format!("report-{after}"));
        let _ = fs::remove_file(&report);
        let mut child = user
            .socbfs(&[&bench[..], &["--policy", policy]].concat())
            .env("SOCBFS_TEST_LOSE_AFTER", after.to_string())
            .env("SOCBFS_TEST_HANG", "1")
            .env("SOCBFS_TEST_LOSE_REPORT", &report)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let limit = Instant::now() + Duration::from_secs(120);
        while !Path::new(&report).exists() && child.try_wait().unwrap().is_none() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.try_wait().unwrap().is_none(), "{policy} after {after}: it should hang");
        // The command continues to hang.
        std::thread::sleep(Duration::from_millis(200));
        assert!(child.try_wait().unwrap().is_none(), "{policy} after {after}");
        assert_eq!(interrupted(child), Some(130), "{policy} after {after}");
        assert!(!Path::new(&record).exists(), "{policy} after {after}");
    }
    let left = user.user.0.names();
    assert!(left.iter().all(|name| !name.contains("record")), "{left:?}");
}
