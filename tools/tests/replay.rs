//! Tests of `--policy replay:FILE`: replay of the plans of a recorded run, on the CPU and with a device, and records that are refused.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{collections::BTreeMap, fs, process::Output};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    built,
    implementations::{device, skipped},
};

const POCL: &str = "Portable Computing Language";

fn socbfs(arguments: &[&str]) -> Output {
    built::socbfs(arguments).output().unwrap()
}

/// Runs a benchmark of a Kronecker graph, and returns the path of its record in `folder` and the record.
fn bench(folder: &TempDir, name: &str, policy: &str, more: &[&str]) -> (String, Value) {
    let path = folder.path().join(name).to_str().unwrap().to_owned();
    let arguments = ["bench", "--kronecker", "10", "--roots", "5", "--threads", "2", "--policy", policy, "--json", &path];
    let output = socbfs(&[&arguments[..], more].concat());
    assert_eq!(output.status.code(), Some(0), "{policy}: {}", String::from_utf8_lossy(&output.stderr));
    let record = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    (path, record)
}

/// The plan of every level of every root.
fn plans(record: &Value) -> BTreeMap<u64, Vec<Value>> {
    let levels = |root: &Value| {
        let records = root["level_records"].as_array().unwrap().iter();
        records.flat_map(|level| std::iter::repeat_n(level["plan"].clone(), level["levels"].as_u64().unwrap() as usize)).collect()
    };
    record["roots"].as_array().unwrap().iter().map(|root| (root["root"].as_u64().unwrap(), levels(root))).collect()
}

/// Records a run with `policy`, replays it, and checks that the plans are the same.
fn round_trip(folder: &TempDir, policy: &str, more: &[&str]) -> Value {
    let (path, record) = bench(folder, "first.json", policy, more);
    let (_, again) = bench(folder, "again.json", &format!("replay:{path}"), more);
    assert_eq!(plans(&record), plans(&again), "{policy}");
    assert_eq!(again["search"]["policy"], format!("replay:{path}"));
    record
}

fn refused(arguments: &[&str], words: &[&str]) {
    let output = socbfs(arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}: {text}");
    for word in words {
        assert!(text.contains(word), "{word:?} in {text}");
    }
}

#[test]
fn plans_are_replayed_root_by_root() {
    let folder = tempfile::tempdir().unwrap();
    for policy in ["auto", "alpha-beta:14,24", "gunrock", "enterprise", "enterprise-released", "xbfs", "yasui"] {
        let record = round_trip(&folder, policy, &[]);
        let text = record["roots"].to_string();
        assert!(text.contains("top-down") && text.contains("bottom-up"), "{policy} plans both: {text}");
    }
}

#[test]
fn a_replay_follows_the_plans_of_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let (path, mut record) = bench(&folder, "r.json", "tc", &[]);
    // Changes one level of one root to bottom-up.
    let root = &mut record["roots"][3];
    root["level_records"][2]["plan"]["direction"] = json!("bottom-up");
    let edited = root["root"].as_u64().unwrap();
    fs::write(&path, record.to_string()).unwrap();
    let (_, again) = bench(&folder, "again.json", &format!("replay:{path}"), &[]);
    for (root, levels) in plans(&again) {
        for (level, plan) in levels.iter().enumerate() {
            let wanted = if (root, level) == (edited, 2) { "bottom-up" } else { "top-down" };
            assert_eq!(plan["direction"], wanted, "root {root} level {level}");
        }
    }
    // A single search from that root follows the edited record too.
    let (root, policy) = (edited.to_string(), format!("replay:{path}"));
    let output = socbfs(&["run", "kronecker:10", "--root", &root, "--trace", "--policy", &policy]);
    let text = String::from_utf8_lossy(&output.stdout);
    let directions: Vec<_> = text.lines().filter_map(|line| line.split_whitespace().nth(1)).filter(|word| word.contains('-')).collect();
    assert_eq!(directions[..4], ["top-down", "top-down", "bottom-up", "top-down"], "{text}");
}

#[test]
fn plans_of_two_devices_are_replayed() {
    const TEST: &str = "plans_of_two_devices_are_replayed";
    if device(POCL).is_none() {
        return skipped(TEST, "PoCL is not installed");
    }
    let folder = tempfile::tempdir().unwrap();
    // On this board handovers are free. If they cost much, selective and adaptive rightly stay on the CPU for so small a graph.
    let board = folder.path().join("free.toml");
    fs::write(&board, "schema = 1\n[board]\nname = 'free'\n[adaptive.handover]\nfixed_us = 0.0\nmega_vertex_us = 0.0\n").unwrap();
    let more = ["--device", POCL, "--board", board.to_str().unwrap()];
    for (policy, places) in [
        ("selective:100,200", &["\"gpu\"", "\"cpu\""][..]),
        ("adaptive:50,400,never,300,100,300,700,600", &["\"gpu\"", "\"split\"", "\"cpu\""]),
        ("daga", &["\"gpu\"", "\"cpu\""]),
        ("remis-selective:50", &["\"gpu\""]),
        ("remis-concurrent:50,700", &["\"split\""]),
        ("asynchronous:50,400", &["\"apart\""]),
        ("alpha-beta", &["\"gpu\""]),
        ("enterprise", &["\"gpu\""]),
    ] {
        let text = round_trip(&folder, policy, &more)["roots"].to_string();
        for place in places {
            assert!(text.contains(place), "{policy} has no level at {place}: {text}");
        }
    }
    // Shares that were adapted to the times of CPU and GPU come from the record, not from the clock.
    let record = round_trip(&folder, "concurrent:0,0,300", &["--device", POCL]);
    let shares: Vec<_> = plans(&record).into_values().flatten().map(|plan| plan["placement"]["split"]["gpu_permille"].clone()).collect();
    assert!(shares.iter().any(|share| share.is_u64() && *share != 300), "{shares:?}");
}

#[test]
fn impossible_replays_are_refused_with_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let (path, record) = bench(&folder, "r.json", "tc", &[]);
    let policy = format!("replay:{path}");
    let known: Vec<u64> = record["roots"].as_array().unwrap().iter().map(|root| root["root"].as_u64().unwrap()).collect();
    let unknown = (0..1024).find(|root| !known.contains(root)).unwrap().to_string();
    let root = known[0].to_string();
    refused(
        &["run", "kronecker:10", "--root", &unknown, "--policy", &policy],
        &["r.json", "no search from root", &unknown, &root, "help: ", "--roots"],
    );
    refused(&["bench", "--kronecker", "10", "--roots", "9", "--policy", &policy], &["r.json", "no search from root", "--seed"]);
    refused(&["run", "kronecker:9", "--root", &root, "--policy", &policy], &["r.json", "1024 vertices", "has 512", "help: "]);
    refused(&["run", "kronecker:10", "--root", &root, "--policy", &policy, "--directed"], &["r.json", "help: "]);

    fs::write(&path, record.to_string().replace("\"placement\":\"cpu\"", "\"placement\":{\"gpu\":\"tg\"}")).unwrap();
    refused(
        &["run", "kronecker:10", "--root", &root, "--policy", &policy, "--device", "cpu"],
        &["replay", "OpenCL device", "socbfs devices", "--device"],
    );

    fs::write(&path, "{\n\"schema\": \"socbfs-bench\", \"schema_version\": 1,\n\"graph\": 1}").unwrap();
    refused(&["run", "kronecker:10", "--root", "0", "--policy", &policy], &["r.json", "line 3", "help: ", "--json"]);
    fs::write(&path, "{\"schema\": \"socbfs-bench\", \"schema_version\": 77}").unwrap();
    refused(&["run", "kronecker:10", "--root", "0", "--policy", &policy], &["r.json", "version 77", "help: "]);
    refused(&["run", "kronecker:10", "--root", "0", "--policy", "replay:/nowhere/r.json"], &["can't read /nowhere/r.json", "help: "]);
    refused(&["run", "kronecker:10", "--root", "0", "--policy", "replay:"], &["replay takes a record"]);
    refused(&["run", "kronecker:10", "--root", "0", "--policy", "fast"], &["unknown policy", "gunrock", "replay:FILE"]);
}
