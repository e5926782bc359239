//! Runs all kernels under Oclgrind, which must find no access outside a buffer and no race.
//!
//! Oclgrind's exit code stays 0, so its log is read. Only one kind of race is allowed: between reads and writes of the visited bitmap in
//! `visit`, which deliberately has a plain read before its atomic access.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use socbfs::{graph::Order, memory::SharingMode, opencl::Limits};

use crate::{
    implementations::{self, inside, skipped},
    searches::{Variety, check, devices, edges, two_hubs},
};

const TEST: &str = "kernels_are_free_of_races_and_of_bad_accesses";

/// The lines of `visit` in the source that Oclgrind sees. They are those of its file, since this file is compiled first.
fn lines_of_visit() -> std::ops::RangeInclusive<u32> {
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/common.cl")).unwrap();
    let begin = source.lines().position(|line| line.starts_with("static bool visit(")).unwrap();
    let len = source.lines().skip(begin).position(|line| line == "}").unwrap();
    begin as u32 + 1..=(begin + len) as u32 + 1
}

/// Parses a log: the messages that are not allowed, each with its count, and the number of allowed ones.
fn read(log: &str) -> (BTreeMap<String, usize>, usize) {
    let visit = lines_of_visit();
    let (mut bad, mut allowed) = (BTreeMap::new(), 0);
    // A message is a line without indentation, followed by indented lines.
    let mut messages: Vec<Vec<&str>> = Vec::new();
    for line in log.lines().filter(|line| !line.trim().is_empty()) {
        match messages.last_mut() {
            Some(message) if line.starts_with([' ', '\t']) => message.push(line.trim()),
            _ => messages.push(vec![line.trim()]),
        }
    }
    for message in messages {
        let places: Vec<u32> =
            message.iter().filter_map(|line| line.strip_prefix("At line ")?.split([' ', ':']).next()?.parse().ok()).collect();
        let is_read_write = message[0].starts_with("Read-write data race at global memory");
        if is_read_write && places.len() == 2 && places.iter().all(|place| visit.contains(place)) {
            allowed += 1;
            continue;
        }
        // Addresses and threads are left out, since they differ each time.
        let kind = message[0].split(" at ").next().unwrap_or_default();
        let kernel = message.iter().find(|line| line.starts_with("Kernel:")).unwrap_or(&"");
        *bad.entry(format!("{kind}, {kernel}, lines {places:?}; the first: {}", shown(&message, places.is_empty()))).or_insert(0) += 1;
    }
    (bad, allowed)
}

/// The text of a message: with `whole` all of it, else without addresses and threads.
fn shown(message: &[&str], whole: bool) -> String {
    let parts = message.iter().filter(|line| whole || !line.contains("0x") && !line.starts_with("Group"));
    parts.copied().filter(|line| whole || !line.contains("Global(")).collect::<Vec<_>>().join(" | ")
}

#[test]
fn kernels_are_free_of_races_and_of_bad_accesses() {
    if implementations::device("Oclgrind").is_none() {
        return skipped(TEST, "Oclgrind is not installed, or not found without tests/opencl_env");
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let variables = [
        ("OCLGRIND_DATA_RACES", "1"),
        ("OCLGRIND_CHECK_API", "1"),
        ("OCLGRIND_MAX_ERRORS", "100000000"),
        ("OCLGRIND_LOG", log.to_str().unwrap()),
        // A process that tries the driver would write to the same log.
        ("SOCBFS_DEVICE_TIMEOUT", "0"),
        ("SOCBFS_TEST_DEVICE", "Oclgrind"),
        // Without a cache the kernels are compiled here, with line numbers of the source.
        ("SOCBFS_CACHE_DIR", ""),
    ];
    if inside(module_path!(), TEST, &variables) {
        return search();
    }
    let text = fs::read_to_string(&log).unwrap();
    let (bad, allowed) = read(&text);
    if let Some(keep) = std::env::var_os("SOCBFS_TEST_KEEP_LOG") {
        fs::write(keep, &text).unwrap();
    }
    assert!(
        bad.is_empty(),
        "Oclgrind has found:\n{}",
        bad.iter().map(|(what, times)| format!("{times} times {what}\n")).collect::<String>()
    );
    // A log without the known race would mean that no searches ran.
    assert!(allowed > 0, "top-down kernels show their known race");
}

/// Runs every kernel over enough vertices for several groups and for hubs.
fn search() {
    for device in &devices(TEST, Limits::default()).all {
        let variety = Variety {
            groups: vec![Some(32)],
            parts: vec![0],
            ways: vec![SharingMode::AllocHostPtr],
            orders: vec![Order::Degree],
            threads: vec![2],
            run_arcs: vec![Some(20)],
            cached_words: Some(5),
            launch_arcs: None,
        };
        check(device, 1100, &edges(1100, 2500, 3, 1), true, &[0], &Variety { orders: vec![Order::Original], ..variety.clone() });
        check(device, 1100, &edges(1100, 2500, 4, 1), false, &[5], &variety);
        // Covers vertices that all groups expand together, several levels in one launch, and neighbours in parts.
        check(device, 1700, &two_hubs(1700), false, &[7], &Variety { launch_arcs: Some(3000), ..variety.clone() });
        let path: Vec<_> = (1..200).map(|v| [v - 1, v]).collect();
        check(device, 200, &path, false, &[60], &Variety { parts: vec![3], ..variety });
    }
}

/// `tests/mutants` and `tests/loom/run` find the lines for their bugs by their text.
#[test]
fn every_mutant_can_be_planted() {
    for script in ["tests/mutants", "tests/loom/run"] {
        let output = Command::new("bash").args([script, "--check"]).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn logs_of_oclgrind_are_parsed() {
    let line = *lines_of_visit().end() - 1;
    let race = |kind: &str, memory: &str, first: u32, second: u32| {
        format!(
            "\n{kind} data race at {memory} memory address 0x1000\n\tKernel: tg\n\n\tFirst entity:  Global(1,0,0) Local(1,0,0) Group(0,0,0)\n\t  \
             %1 = load\n\tAt line {first} (column 3) of input.cl:\n\t  a\n\n\tSecond entity: Global(2,0,0) Local(2,0,0) Group(0,0,0)\n\t  \
             call\n\tAt line {second} (column 3) of input.cl:\n\t  b\n"
        )
    };
    assert_eq!(read(""), (BTreeMap::new(), 0));
    assert_eq!(read(&race("Read-write", "global", line, line)), (BTreeMap::new(), 1));
    for bad in [
        race("Read-write", "global", line, 5000),
        race("Read-write", "local", line, line),
        race("Write-write", "global", line, line),
        "\nInvalid read of size 4 at global memory address 0x5\n\tKernel: bg\n".to_owned(),
        "Oclgrind - OpenCL runtime error detected\n\tFunction: clFinish\n".to_owned(),
    ] {
        let (found, allowed) = read(&(race("Read-write", "global", line, line) + &bad));
        assert_eq!((found.len(), allowed), (1, 1), "{bad}: {found:?}");
    }
}
