//! Tests of the bundle of `tests/gpu` for machines without cargo: exit codes, files left behind, and messages if something is missing.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

use crate::{
    built::{Folder, plain, text},
    implementations,
};

const POCL: &str = "Portable Computing Language";

/// A command that runs the bundle in `folder`, in the subfolder `empty`, without cargo on the path. Temporary files go to `tmp`.
fn measure(folder: &Folder, arguments: &[&str]) -> Command {
    for name in ["empty", "tmp"] {
        fs::create_dir_all(folder.path(name)).unwrap();
    }
    let mut command = plain(&folder.path("bundle/gpu"));
    command
        .args(arguments)
        .current_dir(folder.path("empty"))
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .env("TMPDIR", folder.path("tmp"));
    command
}

fn names(folder: &str) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn results(folder: &Folder, name: &str) -> (String, Value) {
    let folder = folder.path(&format!("empty/{name}"));
    assert_eq!(names(&folder), ["README.md", "gpu.json", "log.txt"]);
    let read = |name| fs::read_to_string(format!("{folder}/{name}")).unwrap();
    (read("README.md"), serde_json::from_str(&read("gpu.json")).unwrap())
}

/// Command lines of the running processes that name the folder `empty`.
fn running(folder: &Folder) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read(entry.ok()?.path().join("cmdline")).ok());
    processes.map(|words| text(&words).replace('\0', " ")).filter(|words| words.contains(&folder.path("empty"))).collect()
}

#[test]
#[ignore = "builds the programs as they are shipped"]
fn a_bundle_measures_on_a_machine_without_cargo() {
    const TEST: &str = "a_bundle_measures_on_a_machine_without_cargo";
    if implementations::device_of(TEST, POCL).is_none() {
        return;
    }
    let folder = Folder::new();
    let script = Path::new(crate::REPOSITORY).join("tests/gpu");
    // A relative path refers to the current directory of the caller.
    let bundled = Command::new(script).args(["--bundle", "bundle"]).current_dir(folder.path("")).output().unwrap();
    assert!(bundled.status.success() && text(&bundled.stderr).contains("with glibc 2."), "{}", text(&bundled.stderr));

    // A quick run has all parts.
    let on_pocl = ["--quick", "--any-device", "--device", POCL];
    // Beside other tests, and with kernels that PoCL has not compiled before, no part is to be cut short.
    let output = measure(&folder, &[&on_pocl[..], &["--seconds", "3000"]].concat()).output().unwrap();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let (page, all) = results(&folder, "gpu-results");
    assert_eq!((&all["complete"], &all["problems"]), (&Value::Bool(true), &Value::Array(Vec::new())), "{page}");
    let sections = [
        "Devices",
        "Correctness",
        "Kernels per level",
        "The device's own times against the clock",
        "Steps launched together",
        "Handover",
        "Rodinia's graph of 1000 vertices",
        "Energy",
        "Kronecker graphs",
        "Problems",
    ];
    let found: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert_eq!(found, sections);
    assert!(page.contains("## Problems\n\nNone.\n") && !page.contains("NaN"), "{page}");
    assert!(all["results"]["correctness"]["right"].as_u64().unwrap() > 200, "{all:#}");
    for kernel in all["results"]["levels"]["kernels"].as_array().unwrap() {
        let times = ["search_us", "device_us"].map(|name| kernel[name].as_f64().unwrap());
        let on_device = !["tc", "bc"].contains(&kernel["kernel"].as_str().unwrap());
        assert!(times[1] <= times[0] * 1.05 && (times[1] > times[0] * 0.02) == on_device, "{kernel}");
    }
    assert_eq!(all["results"]["kronecker"].as_array().unwrap().len(), 6);

    // The steps that do not fit into the time are reported.
    let output = measure(&folder, &[&on_pocl[..], &["--seconds", "12", "--out", "late"]].concat()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let (page, all) = results(&folder, "late");
    assert!(page.contains("- energy: left out, no time is left\n"), "{page}");
    assert!(all["problems"].as_array().unwrap().contains(&"energy: left out, no time is left".into()), "{all:#}");

    // A signal ends it: from a terminal, which sends it to the whole process group, or from a program, which sends it to its child.
    for (signal, group, code) in [(Signal::SIGINT, true, 130), (Signal::SIGTERM, false, 143)] {
        let mut child = measure(&folder, &[&on_pocl[..], &["--out", "ended"]].concat())
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().starts_with("devices: "));
        assert!(running(&folder).iter().any(|words| words.contains("gpu-measure")));
        let id: i32 = child.id().try_into().unwrap();
        kill(Pid::from_raw(if group { -id } else { id }), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("ended from outside; what was done until then is in"), "{}", text(&output.stderr));
        assert_eq!(running(&folder), [""; 0]);
        let (page, all) = results(&folder, "ended");
        assert!(page.contains("- correctness: did not come to an end, nor what follows it"), "{page}");
        assert_eq!(all["complete"], false);
    }

    // Anything missing or wrong is reported before measuring.
    let nothing = folder.path("nothing");
    fs::create_dir(&nothing).unwrap();
    let without_a_driver = [("OCL_ICD_VENDORS", &*nothing)];
    let only_pocl = [("POCL_DEVICES", "basic")];
    for (arguments, variables, wanted) in [
        (&["--quick"][..], &without_a_driver[..], "missing: an OpenCL driver"),
        (&["--quick", "--device", POCL], &only_pocl, "is no GPU (CPU); --any-device measures it all the same"),
        (&["--quick", "--device", "none such", "--any-device"], &only_pocl, "none such"),
        (&["--quick", "--device", "cpu"], &only_pocl, "no OpenCL device is chosen or can be used"),
        (&["--quick", "--scales", "9..=8"], &only_pocl, "--scales \"9..=8\" is not FIRST..=LAST"),
        (&["--seconds", "many"], &[], "--seconds many is not a number of seconds"),
        (&["--rodinia", "/nowhere/bfs"], &[], "--rodinia /nowhere/bfs: no program is there"),
        (&["--out"], &[], "--out needs a value"),
        (&["--what"], &[], "unknown argument --what"),
        (&["--out", "/dev/null/folder"], &[], "/dev/null"),
    ] {
        let output = measure(&folder, arguments)
            .args(["--out", "refused"].iter().filter(|_| arguments[0] == "--quick"))
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(wanted), "{arguments:?} with {variables:?}: {}\n{said}", output.status);
    }

    // No files are left anywhere else.
    assert_eq!(names(&folder.path("tmp")), [""; 0]);
    let left = names(&folder.path("empty"));
    assert!(left.iter().all(|name| ["ended", "gpu-results", "late", "refused"].contains(&name.as_str())), "{left:?}");
}
