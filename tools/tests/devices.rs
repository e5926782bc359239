//! Tests of `socbfs devices`, run as a user runs it: with every OpenCL implementation, without any, and with a device that is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{
    built,
    implementations::{device, installed, losing_library, skipped},
};

fn socbfs(arguments: &[&str]) -> Command {
    let mut command = built::socbfs(&["devices"]);
    command.args(arguments);
    command
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// Runs `command`, which must succeed.
fn good(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&good(command).stdout).unwrap()
}

/// Where no `libOpenCL.so.1` can be opened, `libOpenCL.so` is, and both commands say which one they opened.
#[test]
fn a_library_without_a_version_in_its_name_is_opened() {
    const TEST: &str = "a_library_without_a_version_in_its_name_is_opened";
    let folder = tempfile::tempdir().unwrap();
    let usual = json(&mut socbfs(&["--quick", "--json"]));
    let Some(library) = usual["library"].as_str() else { return skipped(TEST, "no OpenCL library") };
    assert!(library.contains("/libOpenCL.so.1") && installed(TEST).len() <= usual["platforms"].as_array().unwrap().len(), "{usual}");
    let (broken, other) = (folder.path().join("libOpenCL.so.1"), folder.path().join("libOpenCL.so"));
    fs::write(broken, "not a library").unwrap();
    fs::copy(library, &other).unwrap();
    let other = other.to_str().unwrap();
    let found = json(socbfs(&["--quick", "--json"]).env("LD_LIBRARY_PATH", folder.path()));
    assert_eq!(found["library"], other, "{found}");
    let text = good(socbfs(&["--quick"]).env("LD_LIBRARY_PATH", folder.path()));
    assert!(stdout(&text).contains(other), "{}", stdout(&text));
    let doctor = built::socbfs(&["doctor", "--json"]).env("LD_LIBRARY_PATH", folder.path()).output().unwrap();
    let doctor: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    assert!(doctor["findings"].as_array().unwrap().iter().any(|finding| finding["reason"] == other), "{doctor}");
}

#[test]
fn every_device_is_shown_with_its_handovers() {
    let installed = installed("every_device_is_shown_with_its_handovers");
    let all = json(&mut socbfs(&["--quick", "--json"]));
    if installed.is_empty() {
        assert!(all["problem"].as_str().is_some_and(|problem| problem.contains("install")), "{all}");
        return;
    }
    let text = good(&mut socbfs(&["--quick"]));
    let devices: Vec<&Value> =
        all["platforms"].as_array().unwrap().iter().flat_map(|platform| platform["devices"].as_array().unwrap()).collect();
    for (name, info) in installed {
        let shown = devices.iter().find(|device| device["name"] == info.name.as_str()).unwrap_or_else(|| panic!("{name} in {all}"));
        assert_eq!(shown["compute_units"], info.compute_units);
        let most = [shown["max_alloc_bytes"].as_u64().unwrap(), info.max_alloc_bytes];
        // PoCL's was seen to be twice as large in one of two processes beside others that took memory.
        let times = if name == "PoCL" { 2 } else { 1 };
        assert!(most[0].max(most[1]) <= times * most[0].min(most[1]), "{name}: {most:?}");
        assert_eq!(shown["unusable"], Value::Null);
        assert!(shown["handover"]["ways"].as_array().unwrap().len() >= 3, "{shown}");
        assert_eq!(shown["chosen"].as_array().unwrap().len(), 2, "{shown}");
        for words in [&info.name, &info.platform, &info.driver, "alloc-host-ptr", "use-host-ptr", "copy", "handover in us"] {
            assert!(stdout(&text).contains(words), "{words:?} in {}", stdout(&text));
        }
    }
}

#[test]
fn a_missing_opencl_driver_is_not_an_error() {
    // The OpenCL library exists, but finds no driver in this folder.
    let folder = tempfile::tempdir().unwrap();
    let output = good(socbfs(&[]).env("OCL_ICD_VENDORS", folder.path()).env("OPENCL_VENDOR_PATH", folder.path()));
    assert!(stdout(&output).starts_with("No OpenCL: "), "{}", stdout(&output));
    assert!(output.stderr.is_empty());
    let all = json(socbfs(&["--json"]).env("OCL_ICD_VENDORS", folder.path()).env("OPENCL_VENDOR_PATH", folder.path()));
    assert_eq!(all["platforms"].as_array().map(Vec::len), Some(0));
    assert!(all["problem"].as_str().is_some_and(|problem| problem.contains("install")), "{all}");
}

#[test]
fn a_missing_opencl_library_is_not_an_error() {
    // This file is found before the system's library, and can't be opened.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("libOpenCL.so.1"), "no library").unwrap();
    let output = good(socbfs(&[]).env("LD_LIBRARY_PATH", folder.path()).env_remove("OPENCL_DYLIB_PATH"));
    for words in ["No OpenCL: ", "libOpenCL.so.1", "OPENCL_DYLIB_PATH", "on the CPU"] {
        assert!(stdout(&output).contains(words), "{words:?} in {}", stdout(&output));
    }
    assert!(output.stderr.is_empty());
}

#[test]
fn two_devices_of_one_platform_have_different_names() {
    const TEST: &str = "two_devices_of_one_platform_have_different_names";
    if device("Portable Computing Language").is_none() {
        return skipped(TEST, "PoCL is not installed, and it alone shows two devices");
    }
    // A Mali-T628, too, appears as two devices, with 4 and with 2 cores.
    let all = json(socbfs(&["--quick", "--json"]).env("POCL_DEVICES", "basic pthread"));
    let pocl = all["platforms"].as_array().unwrap().iter().find(|platform| platform["name"] == "Portable Computing Language").unwrap();
    let names: Vec<&str> = pocl["devices"].as_array().unwrap().iter().map(|device| device["name"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
}

#[test]
fn a_small_device_is_measured_up_to_its_limits() {
    const TEST: &str = "a_small_device_is_measured_up_to_its_limits";
    if device("Portable Computing Language").is_none() {
        return skipped(TEST, "PoCL is not installed, and it alone can be made small");
    }
    // The limit is 1 GiB in all and 256 MiB for one buffer.
    let all = json(socbfs(&["--quick", "--json"]).env("POCL_MEMORY_LIMIT", "1"));
    let pocl = all["platforms"].as_array().unwrap().iter().find(|platform| platform["name"] == "Portable Computing Language").unwrap();
    assert_eq!(pocl["devices"][0]["max_alloc_bytes"], 256 << 20);
    assert!(pocl["devices"][0]["handover"]["ways"].as_array().unwrap().iter().all(|way| way["sizes"].as_array().unwrap().len() == 2));
}

#[test]
fn a_lost_device_is_reported_and_the_others_are_still_shown() {
    const TEST: &str = "a_lost_device_is_reported_and_the_others_are_still_shown";
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = losing_library(folder.path()) else {
        return skipped(TEST, "no C compiler, or no libOpenCL.so.1 to link to");
    };
    if installed(TEST).is_empty() {
        return skipped(TEST, "no OpenCL device to lose");
    }
    // The device is lost at once, or at some point of the first measurements.
    for after in [0, 1, 2, 3, 5, 7, 20, 50] {
        let all = json(socbfs(&["--quick", "--json"]).env("OPENCL_DYLIB_PATH", &library).env("SOCBFS_TEST_LOSE_AFTER", after.to_string()));
        let text = all.to_string();
        assert!(text.contains("CL_OUT_OF_RESOURCES"), "lost after {after}: {text}");
        let devices = all["platforms"].as_array().unwrap().iter().flat_map(|platform| platform["devices"].as_array().unwrap());
        let ways = devices.map(|device| device["handover"]["ways"].as_array().map_or(0, Vec::len)).max().unwrap_or(0);
        assert!(ways >= 3, "lost after {after}: {text}");
    }
    // The library alone, without a loss, changes nothing.
    let all = json(socbfs(&["--quick", "--json"]).env("OPENCL_DYLIB_PATH", &library));
    assert!(!all.to_string().contains("CL_OUT_OF_RESOURCES"), "{all}");
}
