//! Tests of the built command, run as a user runs it: results, errors, exit codes, files left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::built::{Folder, emulated, socbfs, wait_until_handled};

/// A path 0 - 1 - 2 - 3 with a branch 1 - 4, a self-loop at 4, and a separate edge 5 - 6.
const GRAPH: &str = "# a small graph\n0 1\n1 2\n2 3\n1 4\n4 4\n5 6\n";

fn run(arguments: &[&str]) -> Output {
    socbfs(arguments).output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// Runs `socbfs`, which must succeed.
fn good(arguments: &[&str]) -> Output {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{}", stderr(&output));
    output
}

/// Runs `socbfs`, which must exit with code 2, print nothing to standard output, and name all `words` in the error.
fn refused(arguments: &[&str], words: &[&str]) {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{}", stderr(&output));
    assert_eq!(stdout(&output), "", "{arguments:?}");
    let text = stderr(&output);
    assert!(text.starts_with("error: "), "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} in {text}");
    }
}

/// Without the feature mpi, every process of mpirun does the same work and writes the same files.
#[cfg(not(feature = "mpi"))]
#[test]
fn a_program_without_mpi_warns_under_mpirun() {
    for (size, warns) in [("2", true), ("1", false)] {
        let output = socbfs(&["run", "kronecker:6", "--root", "0"]).env("OMPI_COMM_WORLD_SIZE", size).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stderr(&output).contains("warning: mpirun started several processes"), warns, "{}", stderr(&output));
    }
}

#[test]
fn bench_prints_the_keys_of_graph500_and_nothing_else() {
    let output = good(&["bench", "--kronecker", "8", "--roots", "5", "--threads", "2"]);
    let (energy, lines): (Vec<&str>, Vec<&str>) = stdout(&output).lines().partition(|line| line.starts_with("energy  "));
    assert!(energy.len() == 1 && energy[0].starts_with("energy  reason:"), "{energy:?}");
    let keys: Vec<&str> = lines.iter().map(|line| line.split_once(':').unwrap().0).collect();
    let statistics = ["min", "firstquartile", "median", "thirdquartile", "max", "mean", "stddev"];
    let mut expected: Vec<String> =
        ["SCALE", "edgefactor", "NBFS", "graph_generation", "num_mpi_processes", "construction_time"].map(str::to_owned).to_vec();
    expected.extend(statistics.iter().map(|name| format!("bfs  {name}_time")));
    expected.extend(statistics.iter().map(|name| format!("{name}_nedge")));
    expected.extend(statistics[..5].iter().map(|name| format!("bfs  {name}_TEPS")));
    expected.extend(["bfs  harmonic_mean_TEPS".to_owned(), "bfs  harmonic_stddev_TEPS".to_owned()]);
    expected.extend(statistics.iter().map(|name| format!("bfs  {name}_validate")));
    assert_eq!(keys, expected);
    for line in &lines {
        let value = &line[32..];
        assert!(line.is_char_boundary(32) && !value.starts_with(' '), "{line}");
        value.parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        let before = if line.contains("harmonic_mean") { "!  " } else { " " };
        assert!(line[..32].ends_with(before), "{line}");
    }
    assert_eq!(lines[0], "SCALE:                          8");
    assert_eq!(lines[2], "NBFS:                           5");
    let table = stderr(&output);
    for part in ["Harmonic mean", "Median time", "5 roots, all five checks passed", "policy auto", "2 threads", "Whole-graph edges"] {
        assert!(table.contains(part), "{part} in\n{table}");
    }
}

#[test]
fn bench_prints_the_keys_of_graph500_for_a_file() {
    let folder = Folder::new();
    let graph = folder.file("graph.el", GRAPH);
    let output = good(&["bench", &graph, "--roots", "64", "--order", "original"]);
    // 7 vertices fit in 2^3; 5 edges without the self-loop; every vertex has an edge.
    let text = stdout(&output);
    assert!(
        text.starts_with("SCALE:                          3\nedgefactor:                     1\nNBFS:                           7\n"),
        "{text}"
    );
    assert!(stderr(&output).contains("7 roots instead of 64"), "{}", stderr(&output));
}

#[test]
fn quiet_prints_the_result_only() {
    let output = good(&["bench", "--kronecker", "6", "--roots", "2", "-q"]);
    assert!(stdout(&output).starts_with("SCALE:"));
    assert_eq!(stderr(&output), "");
}

#[test]
fn json_has_schema_environment_and_every_root() {
    let folder = Folder::new();
    let path = folder.path("r.json");
    good(&["bench", "--kronecker", "8", "--roots", "3", "--threads", "1", "--policy", "alpha-beta:14,24", "--json", &path]);
    let record: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(record["schema"], "socbfs-bench");
    assert_eq!(record["schema_version"], 1);
    assert_eq!(record["valid"], true);
    assert_eq!(record["search"]["policy"], "alpha-beta:14,24");
    assert_eq!(record["search"]["threads"], 1);
    assert_eq!(record["graph"]["vertices"], 256);
    assert_eq!(record["graph"]["listed"], 4096);
    for field in ["commit", "compiler", "target", "version", "opt_level"] {
        assert!(record["environment"]["build"][field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
    }
    let command = record["environment"]["command"].as_array().unwrap();
    assert!(command.contains(&Value::from("--roots")), "{command:?}");
    let roots = record["roots"].as_array().unwrap();
    assert_eq!(roots.len(), 3);
    for root in roots {
        assert!(root["seconds"].as_f64().unwrap() > 0.0);
        assert!(root["mapping_seconds"].as_f64().unwrap() >= 0.0);
        assert_eq!(root["validation"]["passed"], true);
        assert!(root["reached"].as_u64().unwrap() > 1 && root["edges"].as_u64().unwrap() > 0);
        let levels: u64 = root["level_records"].as_array().unwrap().iter().map(|level| level["levels"].as_u64().unwrap()).sum();
        // A level that has only leaves is not searched, at the root or at the end.
        assert!((levels..=levels + 2).contains(&root["levels"].as_u64().unwrap()));
    }
    let teps = record["summary"]["teps"]["harmonic_mean"].as_f64().unwrap();
    let per_edge: f64 = roots.iter().map(|root| root["seconds"].as_f64().unwrap() / root["edges"].as_f64().unwrap()).sum();
    assert!((teps * per_edge / 3.0 - 1.0).abs() < 1e-9);
}

/// Makes a machine in `folder`, with INA231 rails as on an Odroid-XU3, which read 3 W and 1 W.
pub(crate) fn board_with_rails(folder: &Folder) -> String {
    for (chip, device, label, power) in [("hwmon0", "0-0040", "VDD_ARM", "3000000"), ("hwmon1", "0-0045", "VDD_KFC", "1000000")] {
        let path = Path::new(&folder.path("sys/class/hwmon")).join(chip);
        fs::create_dir_all(&path).unwrap();
        for (name, text) in [("name", "ina231"), ("power1_input", power), ("update_interval", "2"), ("label", label)] {
            fs::write(path.join(name), text).unwrap();
        }
        let link = path.join("device");
        if !link.is_symlink() {
            std::os::unix::fs::symlink(format!("../../../{device}"), link).unwrap();
        }
    }
    folder.path("")
}

/// Settings for a quick measurement of that machine.
const QUICK: [&str; 4] = ["--energy-seconds", "0.5", "--energy-repeats", "2"];

/// The text without its breaks of lines and its columns.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn energy_is_measured_with_the_named_sensors() {
    let folder = Folder::new();
    let (root, json) = (board_with_rails(&folder), folder.path("r.json"));
    let sensors = ["--sysfs-root", &root, "--energy", "ina2xx:0-0040,ina2xx:VDD_KFC"];
    let (output, record) = crate::undisturbed(
        || {
            let output = good(&[&["bench", "--kronecker", "8", "--roots", "4", "--json", &json], &sensors[..], &QUICK[..]].concat());
            (output, serde_json::from_str::<Value>(&fs::read_to_string(&json).unwrap()).unwrap())
        },
        |(_, record)| {
            let energy = &record["energy"]["measured"];
            let rails = || energy["windows"].as_array().unwrap().iter().flat_map(|window| window["energy"]["rails"].as_array().unwrap());
            let is_steady = rails().all(|rail| rail["rate_hertz"].as_f64().is_some_and(|rate| rate > 50.0));
            energy["summary"].is_object() && !energy["model"]["roots"].as_array().unwrap().is_empty() && is_steady
        },
    );
    let energy = &record["energy"]["measured"];
    assert_eq!((&energy["scope"], &record["energy"]["unavailable"]), (&Value::from("soc-rails"), &Value::Null));
    assert_eq!(energy["sensors"], serde_json::json!(["ina2xx:0-0040", "ina2xx:0-0045"]));
    let windows = energy["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 2);
    for window in windows {
        let (seconds, joules) = (window["energy"]["seconds"].as_f64().unwrap(), window["energy"]["joules"].as_f64().unwrap());
        assert!(seconds >= 0.5 && window["refreshes"].as_u64().unwrap() >= 200, "{window}");
        assert!((joules / seconds - 4.0).abs() < 1e-6, "{joules} J in {seconds} s");
        assert!(window["search_seconds"].as_f64().unwrap() <= seconds);
        for rail in window["energy"]["rails"].as_array().unwrap() {
            assert!(rail["samples"].as_u64().unwrap() >= 200 && rail["rate_hertz"].as_f64().unwrap() > 50.0, "{rail}");
        }
    }
    assert!((energy["summary"]["watts"]["mean"].as_f64().unwrap() - 4.0).abs() < 1e-6);
    assert_eq!(energy["summary"]["mteps_per_watt"]["count"], 2);
    assert_eq!(energy["model"]["roots"].as_array().unwrap().len(), 4);
    for line in
        ["energy  scope:                  soc-rails\n", "energy  mean_power:             4\n", "energy  NWINDOWS:               2\n"]
    {
        assert!(stdout(&output).contains(line), "{line} in {}", stdout(&output));
    }
    let said = words(stderr(&output));
    assert!(said.contains("MTEPS/W") && said.contains(" cpu-big 3.000 W "), "{said}");
}

#[test]
fn bench_without_a_sensor_reports_no_energy_and_changes_nothing_else() {
    let folder = Folder::new();
    let json = folder.path("r.json");
    let bench = ["bench", "--kronecker", "8", "--roots", "2", "--json", &json];
    fs::create_dir(folder.path("none")).unwrap();
    let none = good(&[&bench[..], &["--energy", "auto", "--sysfs-root", &folder.path("none")]].concat());
    assert!(words(stderr(&none)).contains(" Energy n/a: no power sensor was found on this machine"), "{}", stderr(&none));
    let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(record["energy"]["unavailable"], "no power sensor was found on this machine");
    assert_eq!(record["energy"]["measured"], Value::Null);
    assert!(record["summary"]["teps"]["harmonic_mean"].as_f64().unwrap() > 0.0);
    let energy = |output: &Output| stdout(output).lines().filter(|line| line.starts_with("energy")).map(str::to_owned).collect::<Vec<_>>();
    let lines = energy(&none);
    assert_eq!(lines.last().unwrap(), "energy  reason:                 no power sensor was found on this machine");
    assert_eq!(lines.len(), energy(&good(&[&bench[..], &["--energy", "off"]].concat())).len());
    // Sensors are found but nothing says which of them add up, which is reported.
    let rails = good(&[&bench[..], &["--energy", "auto", "--sysfs-root", &board_with_rails(&folder)]].concat());
    let said = words(stderr(&rails));
    assert!(said.contains("ina2xx:0-0045 found, but no board profile says which of them to add up"), "{said}");
    // The profile counts more than is found, which is reported too.
    let board = format!("{}/boards/profiles/odroid-xu3.toml", crate::REPOSITORY);
    let short = good(&["energy", "--board", &board, "--energy", "auto", "--sysfs-root", &board_with_rails(&folder), "--", "true"]);
    assert!(
        stderr(&short).contains("warning: the energy is without that of memory, gpu: the board profile counts it"),
        "{}",
        stderr(&short)
    );
}

#[test]
fn a_sensor_that_disappears_during_the_searches_does_not_cost_the_run() {
    let folder = Folder::new();
    let [root, json, pipe] = ["", "r.json", "g.el"].map(|name| folder.path(name));
    nix::unistd::mkfifo(&*pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for command in [&["bench"][..], &["policies", "--only", "tc", "--turns", "1"]] {
        board_with_rails(&folder);
        let flags = ["--energy", "ina2xx:0-0040", "--sysfs-root", &root, "--roots", "2", "--device", "cpu", "--json", &json];
        let child = socbfs(&[command, &[&pipe], &flags].concat()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The command opens the graph after it has checked the sensor.
        let mut graph = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
        fs::remove_dir_all(folder.path("sys")).unwrap();
        graph.write_all(GRAPH.as_bytes()).unwrap();
        drop(graph);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("warning: no energy was measured: "), "{}", stderr(&output));
        let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        let reason = if command[0] == "bench" { &record["energy"]["unavailable"] } else { &record["graphs"][0]["no_energy"] };
        assert!(reason.as_str().is_some_and(|reason| reason.contains("ina2xx:0-0040")), "{reason}");
        if command[0] == "bench" {
            assert!(record["summary"]["teps"]["harmonic_mean"].as_f64().unwrap() > 0.0);
        }
    }
}

#[test]
fn graphs_before_an_error_are_published() {
    let folder = Folder::new();
    let (good, bad, json) = (folder.file("good.el", GRAPH), folder.file("bad.el", "0 1\nx y\n"), folder.path("r.json"));
    for command in [&["policies", "--only", "tc", "--turns", "1"][..], &["analyze", "--only", "redundant"]] {
        let arguments = |graphs: &[&str]| socbfs(&[command, graphs, &["--roots", "1", "--device", "cpu", "--json", &json]].concat());
        let output = arguments(&[&good, &bad]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("bad.el:2") && stdout(&output).contains("good.el"), "{command:?}: {}", stdout(&output));
        let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(record["graphs"].as_array().unwrap().len(), 1, "{command:?}");
        // Others may be about the machine.
        let missing = |warning: &Value| {
            let warning = warning.as_str().unwrap();
            warning.starts_with("graphs are missing, since an error ended the ") && warning.contains("bad.el")
        };
        assert!(record["warnings"].as_array().unwrap().iter().any(missing), "{}", record["warnings"]);
        // Without any result there is nothing to publish.
        fs::remove_file(&json).unwrap();
        let output = arguments(&[&bad, &good]).output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{command:?}: {}", stderr(&output));
        assert!(!Path::new(&json).exists(), "{command:?}");
    }
}

#[test]
fn unusable_sensors_are_refused_before_the_graph_is_read() {
    let folder = Folder::new();
    let root = board_with_rails(&folder);
    let bench = |energy: &str, words: &[&str]| {
        refused(&["bench", "/nowhere/graph.el", "--sysfs-root", &root, "--energy", energy], words);
    };
    bench("ina2xx:0-0099", &["there is no sensor \"ina2xx:0-0099\"", "help: found: ina2xx:0-0040, ina2xx:0-0045"]);
    bench("rapl", &["there is no sensor \"rapl\""]);
    bench("external:/nowhere/watts.csv", &["/nowhere/watts.csv", "No such file"]);
    bench("auto,ina2xx", &["--energy is auto, off, or a list"]);
}

#[test]
fn a_profile_defines_which_rails_are_summed() {
    let folder = Folder::new();
    let root = board_with_rails(&folder);
    let rail = |id: &str, domain: &str| format!("[[power.rails]]\nfamily = 'ina2xx'\nid = '{id}'\ndomain = '{domain}'\ncounted = true\n");
    let text =
        format!("schema = 1\n[board]\nname = 'b'\n[power]\nscope = 'soc-rails'\n{}{}", rail("*-0040", "gpu"), rail("0-0045", "memory"));
    let board = folder.file("b.toml", &text);
    let output = good(&["sensors", "--sysfs-root", &root, "--board", &board]);
    let text = stdout(&output);
    assert!(text.contains("--energy auto measures soc-rails: ina2xx:0-0040 + ina2xx:0-0045"), "{text}");
    assert!(text.contains("VDD_ARM") && text.contains("gpu") && text.contains("3.000 W"), "{text}");
    let bench = ["bench", "--kronecker", "8", "--roots", "2", "--energy", "auto", "--sysfs-root", &root, "--board", &board];
    let power = "energy  mean_power:             4\n";
    let output = crate::undisturbed(|| good(&[&bench[..], &QUICK[..]].concat()), |output| stdout(output).contains(power));
    assert!(stdout(&output).contains(power), "{}", stdout(&output));
}

#[test]
fn sensors_are_shown_as_json_as_a_table_and_repeatedly() {
    let folder = Folder::new();
    let root = board_with_rails(&folder);
    fs::write(folder.path("sys/class/hwmon/hwmon1/power1_input"), "").unwrap();
    let json = || serde_json::from_str::<Value>(stdout(&good(&["sensors", "--json", "--sysfs-root", &root]))).unwrap();
    let found = crate::undisturbed(json, |found| found["sensors"][0]["watts"].is_number());
    assert_eq!(found["schema"], "socbfs-sensors");
    assert_eq!(found["sensors"][0]["sensor"], "ina2xx:0-0040");
    assert!((found["sensors"][0]["watts"].as_f64().unwrap() - 3.0).abs() < 1e-6, "{found}");
    assert!(found["unusable"][0]["reason"].as_str().unwrap().contains("dead channel"), "{found}");
    assert_eq!(found["auto"]["scope"], Value::Null);
    let watch = || good(&["sensors", "watch", "--interval", "0.1", "--count", "3", "--sysfs-root", &root]);
    let output = crate::undisturbed(watch, |output| !stdout(output).contains("n/a"));
    let lines: Vec<Vec<&str>> = stdout(&output).lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0], ["seconds", "VDD_ARM", "W"]);
    assert!(lines[1..].iter().all(|line| line[1] == "3.000"), "{lines:?}");
    // A label can't move the cursor, and its column is as wide as it.
    fs::write(folder.path("sys/class/hwmon/hwmon0/label"), "VDD_OF_\x1b[2J_A_BIG_CLUSTER\n").unwrap();
    let output = good(&["sensors", "watch", "--interval", "0.1", "--count", "1", "--sysfs-root", &root]);
    let head = stdout(&output).lines().next().unwrap();
    assert!(head.ends_with("  VDD_OF_\\u{1b}[2J_A_BIG_CLUSTER W"), "{head:?}");
    let none = folder.path("none");
    fs::create_dir(&none).unwrap();
    assert!(stdout(&good(&["sensors", "--sysfs-root", &none])).contains("measures nothing: no power sensor was found"));
    refused(&["sensors", "watch", "--sysfs-root", &none], &["no power sensor"]);
    let words = format!("external:{}", folder.file("words.csv", "no watts\n"));
    for (meter, problem) in
        [("external:/nowhere/watts.csv", "No such file"), ("smartpower2:/nowhere/tty", "No such file"), (&*words, "no valid reading")]
    {
        for command in [&["sensors"][..], &["sensors", "--json"], &["sensors", "watch", "--count", "1"]] {
            refused(&[command, &[meter]].concat(), &[&format!("can't use {meter}: "), problem, "help: check the spelling"]);
        }
    }
    refused(&["sensors", "toaster:1"], &["\"toaster:1\" is not a meter", "smartpower3:udp:6000"]);
}

#[test]
fn the_energy_of_a_command_is_reported_beside_its_own_output() {
    let folder = Folder::new();
    let (root, json) = (board_with_rails(&folder), folder.path("e.json"));
    let energy =
        |sensor: &str, rest: &[&str]| run(&[&["energy", "--sysfs-root", &root, "--energy", sensor, "--json", &json], rest].concat());
    let (output, record) = crate::undisturbed(
        || {
            let output = energy("ina2xx", &["--repeat", "2", "--", "sh", "-c", "echo hello; sleep 0.4"]);
            (output, serde_json::from_str::<Value>(&fs::read_to_string(&json).unwrap()).unwrap())
        },
        |(_, record)| record["runs"].as_array().unwrap().iter().all(|run| run["watts"].is_number()),
    );
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), "hello\nhello\n"));
    assert!(stderr(&output).contains("sum of the counted: soc-rails") && stderr(&output).contains("over 2 runs"), "{}", stderr(&output));
    for run in record["runs"].as_array().unwrap() {
        // On a machine too busy to sample in time, the readings cover less of the window, and the power may be lower by that share.
        let coverage = run["rails"].as_array().unwrap().iter().map(|rail| rail["coverage"].as_f64().unwrap()).fold(1.0, f64::min);
        let watts = run["watts"].as_f64().unwrap();
        assert!(coverage > 0.9 && (4.0 * coverage - 1e-6..4.0 + 1e-6).contains(&watts), "{run}");
        assert!(run["seconds"].as_f64().unwrap() >= 0.4, "{run}");
    }
    // The command runs and its exit code is passed on even if nothing can be measured.
    let output = energy("off", &["--", "sh", "-c", "echo out; exit 7"]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(7), "out\n"));
    assert!(stderr(&output).contains("n/a: switched off"), "{}", stderr(&output));
    assert_eq!(energy("off", &["--", "sh", "-c", "kill -9 $$"]).status.code(), Some(137));
    if emulated() {
        // The emulator does not report a failed exec to the process that called posix_spawn.
        std::io::stderr().write_all(b"SKIPPED the_energy_of_a_command: a command that is not there, under emulation\n").unwrap();
        return;
    }
    let output = energy("off", &["--", "/nowhere/command"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(stderr(&output).contains("can't run /nowhere/command"), "{}", stderr(&output));
    // The first run removes the command. What it took is reported all the same. (Another process writes the file: a program can't be run
    // while a fork of a test holds it open for writing.)
    let once = folder.path("once");
    let write = format!("printf '#!/bin/sh\\nrm \"$0\"\\n' > '{once}' && chmod 755 '{once}'");
    assert!(std::process::Command::new("sh").args(["-c", &write]).status().unwrap().success());
    let output = energy("off", &["--repeat", "3", "--", &once]);
    assert_eq!(output.status.code(), Some(127), "{}", stderr(&output));
    let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(record["exit_codes"], serde_json::json!([0]));
}

#[test]
fn a_power_that_can_not_be_true_is_no_result_of_any_command() {
    let folder = Folder::new();
    let (root, json) = (board_with_rails(&folder), folder.path("e.json"));
    let sensors = ["--energy", "ina2xx", "--sysfs-root", &root];
    let graph = ["kronecker:6", "--roots", "2", "--device", "cpu"];
    let (policies, sweep) = (["--only", "tc", "--turns", "1"], ["--axes", "threads", "--budget", "2s"]);
    for (powers, why) in [
        (["0", "0"], "the sum of the counted sensors reads 0.000 W, and a power must be above 0"),
        // The wrong way round.
        (["3000000", "-1000000"], "ina2xx:0-0045: reads -1.000 W, and a power must be above 0"),
    ] {
        for (chip, micro_watts) in powers.iter().enumerate() {
            fs::write(folder.path(&format!("sys/class/hwmon/hwmon{chip}/power1_input")), micro_watts).unwrap();
        }
        for (command, rest) in [
            (&["energy"][..], &["--json", &json, "--", "sleep", "0.3"][..]),
            (&["bench"], &[&graph[..], &QUICK, &["--json", &json]].concat()),
            (&["policies"], &[&graph[..], &policies, &QUICK, &["--json", &json]].concat()),
            (&["sweep"], &[&graph[..], &sweep, &["--json", &json]].concat()),
        ] {
            let said = || {
                let output = good(&[command, &sensors, rest].concat());
                let said = format!("{} {}", stdout(&output), stderr(&output));
                said.split_whitespace().collect::<Vec<_>>().join(" ")
            };
            let said = crate::undisturbed(said, |said| said.contains(why));
            assert!(said.contains(why), "{command:?}: {said}");
            let text = fs::read_to_string(&json).unwrap();
            assert!(text.contains(why) && !text.contains("mteps_per_watt"), "{command:?}: {text}");
            let record: Value = serde_json::from_str(&text).unwrap();
            let none = [&record["runs"][0]["joules"], &record["energy"]["measured"]["summary"], &record["idle_watts"]];
            assert_eq!(none, [&Value::Null; 3], "{command:?}");
            fs::remove_file(&json).unwrap();
        }
    }
}

#[test]
fn a_command_that_is_too_short_for_the_sensor_gets_a_warning() {
    let folder = Folder::new();
    let root = board_with_rails(&folder);
    let told = |milliseconds: &str, command: &[&str]| {
        fs::write(folder.path("sys/class/hwmon/hwmon0/update_interval"), milliseconds).unwrap();
        let energy = ["energy", "--sysfs-root", &root, "--energy", "ina2xx:0-0040", "--"];
        let measured = || stderr(&run(&[&energy, command].concat())).to_owned();
        crate::undisturbed(measured, |told| told.contains("sum of the counted"))
    };
    let short = told("500", &["true"]);
    assert!(short.contains("warning: ina2xx:0-0040 has a new value every 500.0 ms: measure a command that takes longer"), "{short}");
    let long = told("2", &["sleep", "0.3"]);
    assert!(long.contains("sum of the counted") && !long.contains("warning: ina2xx"), "{long}");
}

#[test]
fn run_shows_the_mapping_only_if_vertices_are_renumbered() {
    for (order, is_mapped) in [("degree", true), ("original", false)] {
        let output = good(&["run", "kronecker:6", "--root", "1", "--order", order, "--device", "cpu"]);
        assert_eq!(stdout(&output).contains("\nmapping: "), is_mapped, "{order}: {}", stdout(&output));
    }
}

#[test]
fn json_can_replace_the_report_on_standard_output() {
    let output = good(&["bench", "--kronecker", "6", "--roots", "1", "--json", "-"]);
    let record: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(record["roots"].as_array().unwrap().len(), 1);
}

/// The record of `run` is that of a benchmark with one root, which other commands read.
#[test]
fn one_search_has_a_record() {
    let folder = Folder::new();
    let json = folder.path("r.json");
    let search = ["run", "kronecker:8", "--root", "5", "--device", "cpu", "--json"];
    let text = stdout(&good(&[&search[..], &[&json]].concat())).to_owned();
    let piped: Value = serde_json::from_str(stdout(&good(&[&search[..], &["-"]].concat()))).unwrap();
    let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    for record in [&record, &piped] {
        assert_eq!((&record["schema"], &record["valid"], &record["complete"]), (&"socbfs-bench".into(), &true.into(), &true.into()));
        let roots = record["roots"].as_array().unwrap();
        assert_eq!((roots.len(), &roots[0]["root"], &roots[0]["validation"]["passed"]), (1, &5.into(), &true.into()));
        assert!(text.contains(&format!("reached:    {} of 256 vertices", roots[0]["reached"])), "{text}");
        let found: u64 = roots[0]["level_records"].as_array().unwrap().iter().map(|level| level["found"].as_u64().unwrap()).sum();
        assert!(found > 0 && found < roots[0]["reached"].as_u64().unwrap(), "{found}");
        assert_eq!((&record["energy"]["measured"], &record["graph"]["generated"]), (&Value::Null, &true.into()));
    }
    assert!(stdout(&good(&["report", &json])).contains("1 root, all five checks passed"));
    good(&["compare", &json, &json]);
    refused(&[&search[..], &["/nonexistent/r.json"]].concat(), &["can't write"]);
}

#[test]
fn standard_output_takes_one_result() {
    let (folder, small) = (Folder::new(), ["grid:8x8", "--roots", "1", "--device", "cpu"]);
    let record = folder.path("r.json");
    good(&[&["bench", "--json", &record], &small[..]].concat());
    for command in [
        &["bench"][..],
        &["bench", "--report", "board", "--scales", "6", "--roots", "1", "--device", "cpu"],
        &["analyze", "--only", "profile"],
        &["policies", "--only", "tc", "--turns", "1"],
        &["compare", &record, &record],
    ] {
        let graph: &[&str] = if command.contains(&"board") || command[0] == "compare" { &[] } else { &small };
        // Only a page, without the text.
        let output = good(&[command, graph, &["--html", "-"]].concat());
        let page = stdout(&output).trim_end();
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"), "{command:?}: {page}");
        if command[0] != "compare" {
            let both = [command, graph, &["--html", "-", "--json", "-"]].concat();
            refused(&both, &["can't write -: another output goes to standard output", "help: name a file for one of them"]);
        }
    }
    refused(&["report", &record, "--html", "-", "--figure", "times", "--svg", "-"], &["another output goes to standard output"]);
}

#[test]
fn the_same_seed_gives_the_same_roots() {
    let roots = |seed: &str| {
        let output = good(&["bench", "--kronecker", "8", "--roots", "4", "--seed", seed, "--json", "-"]);
        let record: Value = serde_json::from_str(stdout(&output)).unwrap();
        let all = record["roots"].as_array().unwrap();
        all.iter().map(|root| (root["root"].as_u64().unwrap(), root["reached"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(roots("2"), roots("2"));
    assert_ne!(roots("2"), roots("77"));
}

#[test]
fn a_graph_without_edges_is_refused() {
    let folder = Folder::new();
    refused(&["bench", &folder.file("loops.el", "0 0\n1 1\n")], &["loops.el", "nothing to search"]);
}

#[test]
fn written_trees_are_valid_in_every_format() {
    let folder = Folder::new();
    let graph = folder.file("graph.el", GRAPH);
    for order in ["original", "degree"] {
        for extension in ["npy", "csv", "txt"] {
            let (parents, levels) = (folder.path(&format!("p.{extension}")), folder.path(&format!("l.{extension}")));
            let arguments = ["run", &graph, "--root", "3", "--order", order, "--parents", &parents, "--levels", &levels];
            let output = good(&arguments);
            assert!(stdout(&output).contains("reached:    5 of 7 vertices\nlevels:     4\nedges:      4\n"), "{}", stdout(&output));
            let output = good(&["validate", &graph, &parents, "--root", "3"]);
            assert_eq!(stdout(&output), "valid: 5 vertices on 4 levels\n");
        }
        assert_eq!(fs::read_to_string(folder.path("p.txt")).unwrap(), "1\n2\n3\n3\n1\n-1\n-1\n");
        assert_eq!(fs::read_to_string(folder.path("l.csv")).unwrap(), "vertex,level\n0,3\n1,2\n2,1\n3,0\n4,3\n5,-1\n6,-1\n");
    }
}

#[test]
fn a_forest_from_several_sources_is_written_and_valid() {
    let folder = Folder::new();
    let (graph, list) = (folder.file("g.txt", GRAPH), folder.file("sources.txt", "3\n\n 5\n3\n"));
    let [parents, levels, nearest] = ["p.csv", "l.csv", "n.csv"].map(|name| folder.path(name));
    for (order, sources) in [("original", "3,5,3"), ("degree", &list)] {
        let files = ["--parents", &parents, "--levels", &levels, "--nearest", &nearest];
        let output = good(&[&["run", &graph, "--sources", sources, "--order", order, "--trace"][..], &files].concat());
        assert!(stdout(&output).contains("sources:    3\nreached:    7 of 7 vertices\nlevels:     4\n"), "{}", stdout(&output));
        assert_eq!(fs::read_to_string(&levels).unwrap(), "vertex,level\n0,3\n1,2\n2,1\n3,0\n4,3\n5,0\n6,1\n");
        assert_eq!(fs::read_to_string(&nearest).unwrap(), "vertex,source\n0,3\n1,3\n2,3\n3,3\n4,3\n5,5\n6,5\n");
        assert_eq!(stdout(&good(&["validate", &graph, &parents, "--sources", sources])), "valid: 7 vertices on 4 levels\n");
        let output = run(&["validate", &graph, &parents, "--root", "3"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(stdout(&output).starts_with("INVALID: check 1"), "{}", stdout(&output));
    }
    // An empty variable or file is a fault.
    for none in ["", ",,", &folder.file("none.txt", ""), &folder.file("blank.txt", " \n\n")] {
        refused(&["run", &graph, "--sources", none], &["a search needs at least one source", "give vertices"]);
        refused(&["validate", &graph, &parents, "--sources", none], &["a search needs at least one source", "give vertices"]);
    }
    refused(&["run", &graph, "--sources", "3,7"], &["root 7 is not a vertex"]);
    refused(&["run", &graph, "--sources", &folder.file("bad.txt", "3\nx\n")], &["bad.txt:2", "\"x\" is not the number of a vertex"]);
    refused(&["run", &graph, "--sources", "3,99999999999"], &["99999999999"]);
    refused(&["run", &graph, "--sources", "absent.txt"], &["absent.txt"]);
    let output = good(&["run", &graph, "--sources", "3,5", "--trace", "--exact", "--keep-leaves"]);
    let exact = stdout(&output);
    // The vertices of each level, and their edges.
    let rows = exact.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter(|row| row.len() > 6 && row[0].parse::<u32>().is_ok()).map(|row| [row[0], row[3], row[4]]).collect();
    assert_eq!(rows, [["0", "2", "2"], ["1", "2", "3"], ["2", "1", "3"], ["3", "2", "2"]], "{exact}");
    refused(&["run", &graph, "--sources", "3", "--root", "3"], &["--root"]);
    refused(&["run", &graph], &["--root"]);
}

#[test]
fn directed_searches_follow_arcs_in_one_direction_only() {
    let folder = Folder::new();
    let (graph, parents) = (folder.file("graph.el", GRAPH), folder.path("p.txt"));
    let output = good(&["run", &graph, "--root", "1", "--directed", "--parents", &parents]);
    assert!(stdout(&output).contains("reached:    4 of 7"), "{}", stdout(&output));
    good(&["validate", &graph, &parents, "--root", "1", "--directed"]);
    let output = run(&["validate", &graph, &parents, "--root", "1"]);
    assert_eq!(output.status.code(), Some(1), "0 is reached where edges go both ways");
}

/// A symmetric file has arcs in both directions, even when read as directed, and a converted file has the arcs of its source.
#[test]
fn directed_graphs_keep_their_arcs_in_every_format() {
    let folder = Folder::new();
    let symmetric = folder.file("symmetric.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n");
    let tree_width = folder.file("graph.gr", "p tw 3 2\n2 1\n3 2\n");
    let parents = folder.path("p.txt");
    let counts = |graph: &str| {
        let record: Value = serde_json::from_str(stdout(&good(&["bench", graph, "--directed", "--roots", "8", "--json", "-"]))).unwrap();
        ["directed", "vertices", "edges", "unique_edges"].map(|field| record["graph"][field].clone())
    };
    let expected = [Value::from(true), 3.into(), 4.into(), 4.into()];
    for graph in [&symmetric, &tree_width] {
        let mut files = vec![graph.clone()];
        for (option, name) in [("--directed", "arcs"), ("--quiet", "edges")] {
            for format in ["mtx", "el", "sg"] {
                let file = folder.path(&format!("{name}.{format}"));
                let output = good(&["convert", graph, &file, option]);
                let said = if option == "--directed" { format!("{file}: 3 vertices, 4 arcs, {format}\n") } else { String::new() };
                assert!(stderr(&output).ends_with(&said) && stdout(&output).is_empty(), "{}", stderr(&output));
                files.push(file);
            }
        }
        for file in files {
            assert!(
                stdout(&good(&["run", &file, "--root", "0", "--directed", "--parents", &parents])).contains("reached:    3 of 3"),
                "{file}"
            );
            good(&["validate", &symmetric, &parents, "--root", "0", "--directed"]);
            good(&["validate", &file, &parents, "--root", "0", "--directed"]);
            assert_eq!(counts(&file), expected, "{file}");
        }
    }
    // A generated graph has one arc per edge, and so has the file written from it.
    let generated = counts("kronecker:6");
    for name in ["k.mtx", "k.el", "k.sg"] {
        let file = folder.path(name);
        good(&["convert", "kronecker:6", &file, "--directed"]);
        assert_eq!(counts(&file), generated, "{name}");
    }
}

#[test]
fn trace_shows_every_level() {
    let folder = Folder::new();
    let output = good(&["run", &folder.file("graph.el", GRAPH), "--root", "0", "--trace", "--policy", "tc"]);
    let text = stdout(&output);
    assert!(text.contains("level  direction") && text.contains("top-down") && !text.contains("bottom-up"), "{text}");
}

#[test]
fn wrong_parents_give_exit_code_1_and_name_the_vertices() {
    let folder = Folder::new();
    let graph = folder.file("graph.el", GRAPH);
    // The right parents are 0 0 1 2 1 -1 -1; no edge joins 3 and 4.
    for (parents, words) in [
        ("0\n0\n1\n4\n1\n-1\n-1\n", ["3", "4"]),
        ("0\n0\n1\n2\n-1\n-1\n-1\n", ["1", "4"]),
        ("0\n2\n1\n2\n1\n-1\n-1\n", ["1", "2"]),
        ("1\n0\n1\n2\n1\n-1\n-1\n", ["0", "0"]),
    ] {
        let output = run(&["validate", &graph, &folder.file("p.txt", parents), "--root", "0"]);
        assert_eq!(output.status.code(), Some(1), "{parents}");
        let text = stdout(&output);
        assert!(text.starts_with("INVALID: ") && words.iter().all(|word| text.contains(word)), "{parents}: {text}");
    }
}

/// A file that holds no tree, or less than it had, is an error, not a wrong tree.
#[test]
fn files_that_are_no_parents_give_exit_code_2() {
    let folder = Folder::new();
    let graph = folder.file("graph.el", GRAPH);
    let whole = "vertex,parent\n0,0\n1,0\n2,1\n3,2\n4,1\n5,-1\n6,-1\n";
    good(&["validate", &graph, &folder.file("whole.csv", whole), "--root", "0"]);
    for (name, text, words) in [
        ("cut.csv", "vertex,parent\n0,0\n1,0\n2,", ["cut.csv:4: ", "cut off?"]),
        ("empty.csv", "", ["empty.csv: ", "the file is empty"]),
        ("header.csv", "foo,bar\n0,0\n", ["header.csv:1: ", "vertex,parent"]),
        ("levels.csv", "vertex,level\n0,0\n1,1\n", ["levels.csv:1: ", "these are levels"]),
        ("negative.txt", "0\n0\n1\n2\n1\n-7\n-1\n", ["negative.txt:6: ", "-7 is neither"]),
    ] {
        refused(&["validate", &graph, &folder.file(name, text), "--root", "0"], &words);
    }
    refused(&["validate", &graph, &folder.path("none.npy"), "--root", "0"], &["none.npy: can't open it: ", "check the spelling"]);
    let output = run(&["validate", &graph, &folder.file("p.txt", "-1\n0\n1\n2\n1\n-1\n-1\n"), "--root", "0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).ends_with("the root 0 must be its own parent, but it has none\n"), "{}", stdout(&output));
}

#[test]
fn usage_and_input_errors_give_exit_code_2_and_name_the_cause() {
    let folder = Folder::new();
    let graph = folder.file("graph.el", GRAPH);
    let bad = folder.file("bad.el", "0 1\n1 x\n");
    let parents = folder.file("short.txt", "0\n");
    refused(&["bench", "--bogus"], &["--bogus"]);
    refused(&["frobnicate"], &["frobnicate"]);
    refused(&["bench", &folder.path("missing.el")], &["missing.el"]);
    refused(&["info", "kronecker"], &["kronecker: can't open it: ", "kronecker:SCALE"]);
    refused(&["bench", &bad], &["bad.el:2"]);
    refused(&["run", &graph, "--root", "7"], &["root 7", "7 vertices"]);
    refused(&["run", &graph, "--root", "-1"], &["-1"]);
    refused(&["run", &graph, "--root", "0", "--parents", &folder.path("p.dat")], &["p.dat", ".npy"]);
    refused(&["run", &graph, "--root", "0", "--policy", "alpha-beta:0,1"], &["alpha", "above 0"]);
    refused(&["run", &graph, "--root", "0", "--policy", "rule:level > 1 and level"], &["column 15: a condition is needed"]);
    refused(&["run", &graph, "--root", "0", "--cpus", "3-1"], &["3-1"]);
    refused(&["run", &graph, "--root", "0", "--cpus", "8000"], &["8000", "help:"]);
    refused(&["run", &graph, "--root", "0", "--threads", "99999"], &["99999", "help:"]);
    refused(&["validate", &graph, &parents, "--root", "0"], &["short.txt", "7 vertices"]);
    refused(&["validate", &graph, &parents, "--root", "9"], &["root 9"]);
    refused(&["bench", "kronecker:99"], &["99"]);
    refused(&["bench", "grid:5"], &["WIDTHxHEIGHT", "help: for example: grid:"]);
    refused(&["bench", &graph, "--roots", "0"], &["at least one root"]);
    refused(&["bench", &graph, "--format", "xml"], &["xml"]);
    refused(&["convert", &graph, &folder.path("out.xyz")], &["out.xyz", "--to"]);
    let words = folder.file("words.dat", "a b c\n");
    for arguments in [&[words.as_str()][..], &["kronecker:6", "--from", "el"], &[&words, "--from", "el"]] {
        let output = run(&[&["convert"], arguments, &[&folder.path("out.el")]].concat());
        assert!(stderr(&output).contains("--from") && !stderr(&output).contains("--format"), "{}", stderr(&output));
    }
    refused(&["compare", &graph, &graph], &["graph.el", "help:"]);
}

#[test]
fn help_and_completions_name_the_formats() {
    let help = |command: &[&str]| stdout(&good(&[command, &["--help"]].concat())).to_owned();
    for command in ["bench", "run", "validate", "info", "convert"] {
        let text = help(&[command]);
        assert!(text.contains("graph500-packed") && text.contains("METIS and DIMACS-10"), "{text}");
    }
    let text = help(&["generate", "uniform"]);
    assert!(text.contains("MatrixMarket coordinate") && !text.contains("graph500-packed"), "only what is written: {text}");
    assert!(stdout(&good(&["completions", "bash"])).contains("graph500-int64"));
    // Other names of a format are accepted too.
    let folder = Folder::new();
    let graph = folder.file("graph.dat", GRAPH);
    good(&["info", &graph, "--format", "SNAP"]);
}

#[test]
fn help_and_completions_name_the_policies() {
    let help = stdout(&good(&["bench", "--help"])).to_owned();
    let completions = stdout(&good(&["completions", "bash"])).to_owned();
    for known in socbfs_policy::known() {
        assert!(help.contains(&format!("- {}:", known.kind)) && help.contains(known.parameters), "{known:?} in {help}");
        assert!(completions.split([' ', '"', '\n']).any(|word| word == known.kind), "{known:?}");
    }
    assert!(help.contains("replay:FILE"), "{help}");
}

#[test]
fn policies_are_compared_on_every_graph() {
    let folder = Folder::new();
    let json = folder.path("p.json");
    let rule = "rule:frontier_edges > unvisited_edges / 14 and level > 0";
    let flags =
        ["--only", "auto,tc,alpha-beta", "--only", "alpha-beta:2,3", "--only", rule, "--roots", "2", "--turns", "2", "--device", "cpu"];
    let arguments = [&["policies", "kronecker:8", "grid:9x9"], &flags[..], &["--markdown", "--json", &json]].concat();
    let text = stdout(&good(&arguments)).to_owned();
    for policy in ["oracle", "auto", "tc", "alpha-beta:15,18", "alpha-beta:2,3", "rule 1"] {
        let rows = text.lines().filter(|line| line.strip_prefix("| ").is_some_and(|row| row.replace(" (default)", "").starts_with(policy)));
        let rows = rows.filter(|row| !row.contains(rule));
        assert_eq!(rows.count(), 3, "once for each graph and once for both: {text}");
    }
    assert_eq!(text.matches("| auto (default) |").count(), 2, "{text}");
    assert_eq!(text.matches(&format!("| rule 1 | {rule} |\n")).count(), 1, "{text}");
    let report: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    for graph in report["graphs"].as_array().unwrap() {
        let roots = graph["evaluation"]["roots"].as_array().unwrap();
        assert_eq!(roots.len(), 2);
        for root in roots {
            let levels = root["table"]["levels"].as_array().unwrap().len();
            let policies = root["policies"].as_array().unwrap();
            assert_eq!(policies.len(), graph["policies"].as_array().unwrap().len());
            // TC plans every level top-down, and the oracle's plan is the cheapest in the table.
            assert!(policies[1]["plans"].as_array().unwrap().iter().all(|plan| plan["direction"] == "top-down"));
            let cost = |judged: &Value| judged["table_ns"].as_f64();
            for policy in policies {
                assert_eq!(policy["plans"].as_array().unwrap().len(), levels);
                // A policy may choose a strategy at a level where it was given up, and has no cost in the table then.
                assert!(cost(policy).is_none_or(|ns| ns >= cost(&root["oracle"]).unwrap()));
                assert!(policy["as_oracle"].as_u64().unwrap() <= levels as u64);
            }
        }
    }
    // A network with weights from a file is compared too; a replay has no other roots than those of its record.
    let weights = folder.file("w.toml", include_str!("../../policy/src/weights/mlp.toml"));
    let only = format!("tc,mlp:{weights}");
    let text = good(&["policies", "kronecker:7", "--only", &only, "--roots", "1", "--turns", "1", "--device", "cpu", "--markdown"]);
    assert!(stdout(&text).contains(&format!("| mlp:{weights} |")), "{}", stdout(&text));
    refused(&["policies", "kronecker:8", "--only", "replay:r.json"], &["replay:r.json can't be compared", "--policy replay:FILE"]);
    refused(&["policies", "kronecker:8", "--only", "auto,fast"], &["unknown policy", "fast"]);
    let wrong = ["column 15: unknown name \"fronter_edges\"", "^\n", "names: level,"];
    refused(&["policies", "kronecker:8", "--only", "rule:level > 1 and fronter_edges > 5"], &wrong);
    refused(&["policies"], &["GRAPH"]);
    for command in [&["policies"][..], &["analyze"], &["train"], &["calibrate"], &["board", "tune"]] {
        let help = good(&[command, &["--help"]].concat());
        let offers = |word: &str| stdout(&help).lines().any(|line| line.trim_start().starts_with(word));
        assert!(!offers("--policy <") && offers("--device <"), "{command:?}");
    }
    for command in ["policies", "analyze"] {
        refused(&[command, "kronecker:8", "--policy", "tc"], &["--policy has no effect here", "--only"]);
    }
}

#[test]
fn outputs_that_a_part_of_train_does_not_make_are_refused() {
    let folder = Folder::new();
    let records = folder.path("r.jsonl");
    for (part, output) in [
        ("--collect-only", "--surf"),
        ("--collect-only", "--mlp"),
        ("--collect-only", "--json"),
        ("--judge-only", "--surf"),
        ("--judge-only", "--mlp"),
    ] {
        let train = ["train", "grid:8x8", "--generated", "0", "--records", &records, part, output, &folder.path("out")];
        refused(&train, &[part, output, "cannot be used with"]);
    }
    for (part, flags) in [
        ("--judge-only", ["--turns", "3"]),
        ("--judge-only", ["--steps", "9"]),
        ("--judge-only", ["--order", "original"]),
        ("--collect-only", ["--steps", "9"]),
    ] {
        refused(&["train", "grid:8x8", "--records", &records, part, flags[0], flags[1]], &[part, flags[0], "cannot be used with"]);
    }
    refused(&["train", "grid:8x8", "--records", &records, "--judge-only"], &["'[GRAPH]...' cannot be used with '--judge-only'"]);
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[cfg(feature = "train")]
#[test]
fn too_few_graphs_to_learn_from_are_refused_before_measuring() {
    let folder = Folder::new();
    let records = folder.path("r.jsonl");
    let train = ["train", "--calibration", "off", "--largest-scale", "10", "--device", "cpu", "--records", &records];
    for graphs in [&["--generated", "5"][..], &["grid:8x8", "--generated", "4", "--held-out", "grid:8x8"]] {
        let words = ["too few graphs to learn from", ": 4,", "at least 5", "raise --generated", "without --held-out"];
        refused(&[&train[..], graphs].concat(), &words);
    }
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[cfg(not(feature = "train"))]
#[test]
fn training_is_refused_before_measuring_if_the_program_has_none() {
    let folder = Folder::new();
    let records = folder.path("r.jsonl");
    let train = ["train", "grid:8x8", "--generated", "0", "--roots", "1", "--turns", "1", "--device", "cpu", "--records", &records];
    refused(&train, &["built without training", "--features train", "--collect-only"]);
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn records_of_training_are_not_continued_in_another_structure() {
    let folder = Folder::new();
    let records = folder.path("r.jsonl");
    let collect = ["train", "grid:8x8", "--generated", "0", "--roots", "1", "--turns", "1", "--threads", "1", "--device", "cpu"];
    let collect = [&collect[..], &["--collect-only", "--records", &records]].concat();
    good(&collect);
    let before = fs::read_to_string(&records).unwrap();
    for flags in [&["--directed"][..], &["--order", "original"], &["--keep-leaves"]] {
        refused(&[&collect, flags].concat(), &["r.jsonl was measured", "with other settings", "--records"]);
    }
    assert_eq!(fs::read_to_string(&records).unwrap(), before);
    good(&collect);
}

#[test]
fn train_measures_whatever_the_environment_says_of_searches() {
    let folder = Folder::new();
    let (records, plans) = (folder.path("r.jsonl"), folder.path("plans.json"));
    good(&["bench", "--kronecker", "6", "--roots", "1", "--threads", "1", "--json", &plans]);
    let collect = ["train", "grid:8x8", "--generated", "0", "--roots", "1", "--turns", "1", "--threads", "1", "--device", "cpu"];
    let collect = [&collect[..], &["--collect-only", "--records", &records]].concat();
    for (variable, value) in [("SOCBFS_POLICY", format!("replay:{plans}")), ("SOCBFS_OBJECTIVE", "energy".to_owned())] {
        let output = socbfs(&collect).env(variable, &value).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{variable}: {}", stderr(&output));
    }
    refused(&[&collect[..], &["--objective", "energy"]].concat(), &["--objective has no effect here", "omit --objective"]);
}

#[test]
fn train_measures_the_cpu_unless_it_is_told_to_measure_the_device() {
    let folder = Folder::new();
    let records = folder.path("r.jsonl");
    let collect = ["train", "grid:8x8", "--generated", "0", "--roots", "1", "--turns", "1", "--threads", "1", "--collect-only"];
    let collect = [&collect[..], &["--records", &records]].concat();
    refused(&[&collect[..], &["--device", "gpu"]].concat(), &["--device names a device", "add --gpu", "omit --device"]);
    assert_eq!(folder.names(), Vec::<String>::new());
    // The environment names the device of searches.
    let output = socbfs(&collect).env("SOCBFS_DEVICE", "no such").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(fs::read_to_string(&records).unwrap().contains("\"device\":null"));
}

#[test]
fn errors_name_the_environment_variable_of_an_invalid_value() {
    let told = |flags: &[&str]| {
        let output = socbfs(&[&["run", "grid:2x2", "--root", "0"][..], flags].concat()).env("SOCBFS_THREADS", "x").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        stderr(&output).to_owned()
    };
    assert!(told(&[]).contains("help: --threads is set by the environment variable SOCBFS_THREADS"), "{}", told(&[]));
    for flags in [&["--threads", "y"][..], &["--threads=y"]] {
        assert!(!told(flags).contains("SOCBFS_THREADS"), "{}", told(flags));
    }
}

#[test]
fn errors_name_the_environment_variable_that_sets_a_flag() {
    let told = |flags: &[&str], variable: (&str, &str)| {
        let output = socbfs(&[&["run", "grid:2x2", "--root", "0"][..], flags].concat()).env(variable.0, variable.1).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output).to_owned()
    };
    for (flag, variable, value) in [
        ("--cpus", "SOCBFS_CPUS", "8191"),
        ("--board", "SOCBFS_BOARD", "/nowhere/b.toml"),
        ("--calibration", "SOCBFS_CALIBRATION", "/nowhere/c.toml"),
    ] {
        let help = format!("  help: {flag} is set by the environment variable {variable}\n");
        assert!(told(&[], (variable, value)).contains(&help), "{}", told(&[], (variable, value)));
        // A flag overrides the variable, and an empty one sets nothing.
        assert!(!told(&[flag, value], (variable, "0")).contains(variable));
        assert!(!told(&["--parents", "/nowhere/tree.npy"], (variable, "")).contains(variable));
    }
}

#[test]
fn a_missing_device_is_reported_before_the_graph_is_read() {
    for command in [&["bench"][..], &["run", "--root", "0"]] {
        for (flags, words) in [
            (["--device", "cpu", "--policy", "tg"], "policy tg needs an OpenCL device"),
            (["--device", "no such", "--policy", "tc"], "the device can't be used"),
        ] {
            let output = socbfs(&[command, &["absent.sg"], &flags].concat()).output().unwrap();
            assert_eq!(output.status.code(), Some(2));
            assert!(stderr(&output).contains(words) || stderr(&output).contains("no OpenCL"), "{}", stderr(&output));
        }
    }
}

#[test]
fn invalid_work_group_sizes_are_refused() {
    for items in ["0", "1", "48", "-1", "x"] {
        let output = socbfs(&["board", "show", &format!("--work-group={items}")]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{items}");
        assert!(stderr(&output).contains("--work-group") && stderr(&output).contains("multiple of 32"), "{}", stderr(&output));
        let output = socbfs(&["board", "show"]).env("SOCBFS_WORK_GROUP", items).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{items}");
    }
}

#[test]
fn flags_of_devices_are_refused_without_a_device() {
    for flags in [&["--work-group", "64"][..], &["--memory-way", "copy"], &["--parts", "2"], &["--device-times"]] {
        let of = |more: &[&'static str]| [&["run", "grid:2x2", "--root", "0"][..], flags, more].concat();
        refused(&of(&["--device", "cpu"]), &["--device cpu", &format!("{} has no effect here", flags[0]), "help: "]);
        // Without a named device they hold for the device that may be found.
        good(&of(&[]));
    }
}

#[test]
fn settings_come_from_flag_then_environment_then_board() {
    let folder = Folder::new();
    let board = folder.file("b.toml", "schema = 1\n[board]\nname = 'b'\n[cpu]\nthreads = 2\n[policy]\nkind = 'bc'\n");
    let show = |flags: &[&str], environment: &[(&str, &str)]| {
        let output = socbfs(&["board", "show", "--board", &board]).args(flags).envs(environment.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output).to_owned();
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let with_board = show(&[], &[]);
    assert!(with_board.contains(&"threads 2 board file".to_owned()), "{with_board:?}");
    assert!(with_board.contains(&"policy bc board file".to_owned()), "{with_board:?}");
    let with_environment = show(&[], &[("SOCBFS_THREADS", "3")]);
    assert!(with_environment.contains(&"threads 3 environment".to_owned()), "{with_environment:?}");
    let with_flag = show(&["--threads", "1"], &[("SOCBFS_THREADS", "3")]);
    assert!(with_flag.contains(&"threads 1 flag".to_owned()), "{with_flag:?}");
}

/// Every setting with a flag and an environment variable: with neither, with the variable, and with both. (src/runtime/choice.rs tests the
/// bands, thresholds, power and sharing modes of boards and calibrations.)
#[test]
fn every_setting_comes_from_its_flag_or_else_its_environment_variable() {
    let folder = Folder::new();
    // Objectives other than time need these powers.
    let watts = "[power.watts]\ntc = 1.0\nbc = 2.0\ntg = 1.0\ntgm = 1.0\nbg = 1.0\nbgc = 1.0\n";
    let board = folder.file("b.toml", format!("schema = 1\n[board]\nname = 'b'\n{watts}"));
    let calibration = folder.path("none.toml");
    for (name, variable, first, second) in [
        ("threads", "SOCBFS_THREADS", "3", "2"),
        ("cpus", "SOCBFS_CPUS", "0", "0-1"),
        ("policy", "SOCBFS_POLICY", "tc", "bc"),
        ("simd", "SOCBFS_SIMD", "scalar", "neon"),
        ("device", "SOCBFS_DEVICE", "cpu", "auto"),
        ("memory-way", "SOCBFS_MEMORY_WAY", "copy", "svm-fine"),
        ("work-group", "SOCBFS_WORK_GROUP", "32", "64"),
        ("parts", "SOCBFS_PARTS", "2", "3"),
        ("calibration", "SOCBFS_CALIBRATION", "off", "auto"),
        ("objective", "SOCBFS_OBJECTIVE", "energy", "edp"),
    ] {
        let show = |flags: &[&str], environment: &[(&str, &str)]| {
            let mut command = socbfs(&["board", "show", "--board", &board, "--json"]);
            command.env_remove("SOCBFS_CALIBRATION").env("XDG_CONFIG_HOME", &calibration);
            // The search for devices takes long, and is not needed here.
            if name != "device" {
                command.env("SOCBFS_DEVICE", "cpu");
            }
            let output = command.args(flags).envs(environment.iter().copied()).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
            let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
            let setting = shown["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == name).unwrap().clone();
            [setting["value"].as_str().unwrap().to_owned(), setting["origin"].as_str().unwrap().to_owned()]
        };
        // (`auto` finds no calibration.)
        let shown = |value: &str| if name == "calibration" && value == "auto" { "none".to_owned() } else { value.to_owned() };
        let flag = format!("--{name}");
        assert_eq!(show(&[], &[])[1], "built-in", "{name}");
        assert_eq!(show(&[], &[(variable, "")])[1], "built-in", "{name}");
        assert_eq!(show(&[], &[(variable, first)]), [shown(first), "environment".to_owned()], "{name}");
        assert_eq!(show(&[&flag, second], &[(variable, first)]), [shown(second), "flag".to_owned()], "{name}");
        // The origin is the flag even if its value is the same as that of the variable.
        assert_eq!(show(&[&flag, first], &[(variable, first)]), [shown(first), "flag".to_owned()], "{name}");
    }
}

#[test]
fn errors_in_boards_name_file_line_and_key() {
    let folder = Folder::new();
    let bad = folder.file("bad.toml", "schema = 1\n[board]\nname = 'b'\ncolour = 'red'\n");
    refused(&["board", "validate", &bad], &["bad.toml:4", "colour", "help:"]);
    refused(&["bench", "--kronecker", "4", "--board", &bad], &["bad.toml:4", "colour"]);
    let text = folder.file("text.toml", "schema = 1\n[board]\nname = 'b'\n[cpu]\nthreads = 'two'\n");
    refused(&["board", "validate", &text], &["text.toml:5: cpu.threads: invalid type", "two"]);
    refused(&["board", "validate", &folder.path("none.toml")], &["none.toml"]);
    let newer = folder.file("newer.toml", "# of the future\nschema = 7\n");
    refused(&["board", "show", &newer], &["newer.toml:2: the profile has schema 7", "reads schema 1", "help:"]);
    let value = folder.file("value.toml", "schema = 1\n[board]\nname = 'b'\n[adaptive.top_down]\ngpu_permille = 1000\n");
    refused(&["board", "validate", &value], &["value.toml:5: adaptive.top_down.gpu_permille", "1 to 999"]);
    let policy = folder.file("policy.toml", "schema = 1\n[board]\nname = 'b'\n[policy]\nkind = 'alpha-beta'\ngamma = 3\n");
    refused(&["board", "validate", &policy], &["policy.toml:6", "alpha-beta does not take gamma", "it takes alpha, beta"]);
    let policy = folder.file("key.toml", "schema = 1\n[board]\nname = 'b'\n[policy]\nkind = 'alpha-beta'\ndelta = 3\n");
    refused(&["board", "validate", &policy], &["key.toml:6", "delta"]);
    let policy = folder.file("range.toml", "schema = 1\n[board]\nname = 'b'\n[policy]\nkind = 'concurrent'\n\ngpu_permille = 1000\n");
    refused(&["board", "validate", &policy], &["range.toml:7", "1 to 999"]);
    let former = folder.file("former.toml", "schema = 1\n[board]\nname = 'b'\n[concurrent]\ntop_down_gpu_share = 0.5\n");
    refused(&["bench", "--kronecker", "4", "--board", &former], &["former.toml:5", "gpu_permille in [adaptive.top_down]"]);
    refused(&["run", "kronecker:4", "--root", "0", "--board", "odroid-xu5"], &["odroid-xu5", "odroid-xu4"]);
    let template = folder.file("new.toml", stdout(&good(&["board", "profile"])));
    assert!(stdout(&good(&["board", "validate", &template])).contains("valid profile"));
    // If several files are given, all bad ones are named, and all good ones too.
    let output = run(&["board", "validate", &bad, &template, &value]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).contains("new.toml: a valid profile"), "{}", stdout(&output));
    assert!(stderr(&output).contains("bad.toml:4") && stderr(&output).contains("value.toml:5"), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("  help: ").count(), 2, "{}", stderr(&output));
}

#[test]
fn boards_are_detected_listed_and_shown() {
    let json = |arguments: &[&str]| serde_json::from_slice::<Value>(&good(arguments).stdout).unwrap();
    let (xu3, i7) = (crate::fixtures::machine("board/odroid-xu3"), crate::fixtures::machine("board/i7-4790"));
    let [xu3, i7] = [&xu3, &i7].map(|folder| folder.path().to_str().unwrap().to_owned());
    let found = stdout(&good(&["board", "detect", "--sysfs-root", &xu3])).to_owned();
    assert!(found.starts_with("board         odroid-xu3\nbecause       the device tree says hardkernel,odroid-xu3\n"), "{found}");
    let found = json(&["board", "detect", "--sysfs-root", &i7, "--json"]);
    assert_eq!(found["name"], "intel-i7-4790");
    assert_eq!(found["evidence"]["dmi_vendor"], "Dell Inc.");

    let rows = json(&["board", "list", "--sysfs-root", &xu3, "--json"]);
    let detected: Vec<_> =
        rows.as_array().unwrap().iter().filter(|row| row["detected"] == true).map(|row| row["name"].as_str().unwrap()).collect();
    let boards = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../boards/profiles")).unwrap();
    let boards = boards.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "toml")).count();
    assert_eq!((rows.as_array().unwrap().len(), detected), (boards, vec!["odroid-xu3"]));
    let text = stdout(&good(&["board", "list", "--sysfs-root", &xu3])).to_owned();
    assert!(text.lines().any(|line| line.starts_with("odroid-xu3 ") && line.ends_with("detected")), "{text}");

    let text = stdout(&good(&["board", "show", "odroid-xu4"])).to_owned();
    let words: Vec<String> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(words.iter().any(|line| line == "board odroid-xu4 asked for"), "{text}");
    // Its estimates lack the bounds of split levels.
    let superseded = "measures all of them first and uses no estimate";
    let given = stdout(&good(&["board", "show", "odroid-xu4", "--policy", "selective"])).to_owned();
    assert!(text.contains(superseded) && !given.contains(superseded), "{text}\n{given}");
    assert!(words.windows(2).any(|lines| lines[0].starts_with("adaptive.top_down.gpu_from 90_000 odroid-xu4:")
        && lines[0].ends_with(" estimate")
        && lines[1].starts_with("[where top-down levels run] # Remis")));
    assert!(words.iter().any(|line| line.starts_with("cpu.clusters[1].max_mhz 2000 odroid-xu4:") && !line.contains("estimate")));
    let shown = json(&["board", "show", "odroid-xu4", "--json", "--threads", "2"]);
    assert_eq!(shown["settings"][0], serde_json::json!({ "name": "threads", "value": "2", "origin": "flag" }));
    let values = shown["values"].as_array().unwrap();
    let share = values.iter().find(|value| value["key"] == "adaptive.top_down.gpu_permille").unwrap();
    assert_eq!((share["estimate"].as_bool(), share["value"].as_str()), (Some(true), Some("500")));
    assert!(share["source"].as_str().unwrap().contains("until it is measured"));
    let bands = shown["bands"].as_array().unwrap();
    assert!(bands.contains(&serde_json::json!({ "key": "top_down.gpu_from", "value": 90_000, "origin": "board's estimate" })), "{bands:?}");
}

#[test]
fn the_folder_of_a_machine_must_exist() {
    let folder = Folder::new();
    let (gone, file) = (folder.path("gone"), folder.file("file", ""));
    for command in [
        &["doctor"][..],
        &["board", "detect"],
        &["board", "list"],
        &["board", "init"],
        &["board", "manifest"],
        &["sensors"],
        &["sensors", "watch"],
        &["bench", "grid:8x8"],
    ] {
        refused(&[command, &["--sysfs-root", &gone]].concat(), &[&gone, "--sysfs-root", "No such file", "name a folder"]);
        refused(&[command, &["--sysfs-root", &file]].concat(), &[&file, "--sysfs-root", "it lists no file", "board manifest"]);
    }
}

#[test]
fn a_manifest_shows_the_machine_that_it_is_of() {
    let folder = Folder::new();
    let machine = crate::fixtures::machine("board/odroid-xu3");
    let sensor = machine.path().join("sys/class/hwmon/hwmon0");
    fs::create_dir_all(&sensor).unwrap();
    for (file, text) in [("name", "ina231\n"), ("power1_input", "18000000\n")] {
        fs::write(sensor.join(file), text).unwrap();
    }
    std::os::unix::fs::symlink("../../../0-0040", sensor.join("device")).unwrap();
    let (root, manifest, temporary) = (machine.path().to_str().unwrap(), folder.path("xu3.files"), folder.path("tmp"));
    fs::create_dir(&temporary).unwrap();
    good(&["board", "manifest", &manifest, "--sysfs-root", root]);
    let asked = |arguments: &[&str], root: &str| {
        let output = socbfs(&[arguments, &["--sysfs-root", root]].concat()).env("TMPDIR", &temporary).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for arguments in [&["sensors"][..], &["board", "detect"], &["board", "list"], &["board", "init"], &["board", "manifest"], &["doctor"]] {
        assert_eq!(asked(arguments, &manifest), asked(arguments, root), "{arguments:?}");
    }
    // The profile is that of the machine, so the rail is its.
    let sensors = asked(&["sensors"], &manifest);
    assert!(sensors.contains("ina2xx:0-0040") && sensors.contains("cpu-big") && sensors.contains("another machine's files"), "{sensors}");
    assert!(sensors.contains("--energy auto measures soc-rails: ina2xx:0-0040"), "{sensors}");
    let doctor = asked(&["doctor"], &manifest);
    assert!(doctor.contains("profile odroid-xu3") && doctor.contains("no search was tried"), "{doctor}");
    assert_eq!(serde_json::from_str::<Value>(&asked(&["doctor", "--json"], &manifest)).unwrap()["works"], Value::Null);
    let bench = asked(&["bench", "--kronecker", "6", "--roots", "2", "--energy", "ina2xx:0-0040", "--energy-seconds", "0.2"], &manifest);
    assert!(bench.contains("ina2xx:0-0040"), "{bench}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "the files of a manifest were left");
    let broken = folder.file("broken", "'proc/cpuinfo' = 'x'\n'../../etc/x' = 'y'\n");
    refused(&["sensors", "--sysfs-root", &broken], &[&format!("{broken}:2: "), "is not the path of a file"]);
}

#[test]
fn every_value_of_every_profile_has_a_purpose() {
    let list = serde_json::from_slice::<Value>(&good(&["board", "list", "--json"]).stdout).unwrap();
    for row in list.as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let shown = serde_json::from_slice::<Value>(&good(&["board", "show", name, "--json"]).stdout).unwrap();
        for value in shown["values"].as_array().unwrap() {
            assert!(value["purpose"].as_str().is_some_and(|purpose| !purpose.is_empty()), "{name}: {value}");
        }
    }
}

#[test]
fn board_init_writes_a_valid_profile_of_the_machine() {
    let folder = Folder::new();
    for name in ["odroid-xu3", "raspberry-pi-4", "core-ultra"] {
        let path = folder.path(&format!("{name}.toml"));
        let folder = crate::fixtures::machine(&format!("board/{name}"));
        let root = folder.path().to_str().unwrap();
        assert_eq!(stdout(&good(&["board", "init", &path, "--sysfs-root", root])), "");
        assert!(stdout(&good(&["board", "validate", &path])).contains("valid profile"));
        assert_eq!(stdout(&good(&["board", "init", "--sysfs-root", root])), fs::read_to_string(&path).unwrap());
        good(&["board", "show", &path]);
    }
    // The same on the machine that runs the test.
    let here = folder.path("here.toml");
    good(&["board", "init", &here]);
    good(&["bench", "--kronecker", "6", "--roots", "2", "--board", &here]);
    assert_eq!(folder.names(), ["core-ultra.toml", "here.toml", "odroid-xu3.toml", "raspberry-pi-4.toml"]);
    refused(&["board", "init", &folder.path("no/such/folder.toml")], &["folder.toml", "help:"]);
    // A profile that the user may have edited is replaced only on request.
    for command in ["init", "manifest"] {
        let mine = folder.file("mine.toml", "precious");
        let error = format!("can't write {mine}: it exists already");
        refused(&["board", command, &mine], &[&error, "help: name another file, or replace this one with --force"]);
        assert_eq!(fs::read_to_string(&mine).unwrap(), "precious");
        let output = good(&["board", command, &mine, "--force"]);
        assert!(stderr(&output).contains(&format!(" written to {mine}\n")) && output.stdout.is_empty(), "{}", stderr(&output));
        assert_ne!(fs::read_to_string(&mine).unwrap(), "precious");
        assert_eq!(stderr(&good(&["board", command, &mine, "--force", "--quiet"])), "");
    }
    let error = format!("can't write {here}");
    refused(&["board", "tune", "generic", &here], &[&error, "it exists already", "with --force"]);
    refused(&["board", "tune", &here, &here, "--force"], &[&error, "give the output a name of its own"]);
    refused(&["sweep", "grid:8x8", "-o", &here], &[&error, "it exists already", "name another file"]);
}

#[test]
fn compare_runs_two_settings_in_turn() {
    let sides =
        ["compare", "grid:60x60", "--a", "--policy tc --threads 1", "--b", "--policy bc --threads 1", "--roots", "3", "--rounds", "3"];
    let output = socbfs(&[&sides[..], &["--fail-if-slower", "100"]].concat()).output().unwrap();
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(3), "{text}{}", stderr(&output));
    assert!(text.starts_with("grid:60x60, 3 roots, 3 rounds in turn\n"), "{text}");
    // Bottom-up looks at all vertices at each of a hundred levels.
    assert!(text.contains("B is ") && text.contains(" % slower, 95 % between "), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    good(&[&sides[..], &["--fail-if-slower", "1000000"]].concat());
    let this = env!("CARGO_BIN_EXE_socbfs");
    let both = good(&["compare", "kronecker:6", "grid:9x9", "--a-binary", this, "--b", "--order degree", "--roots", "2", "--rounds", "2"]);
    assert!(stdout(&both).contains("\nOver 2 graphs: "), "{}", stdout(&both));
    refused(&["compare", "kronecker:6", "--a", "--policy nothing"], &["A: `", "ended with"]);
    refused(&["compare", "kronecker:6", "--a-binary", "/nowhere/socbfs"], &["can't run /nowhere/socbfs"]);
    refused(&["compare", "kronecker:6", "--a", "--seed 3"], &["B searched from other roots"]);
    refused(&["compare", "kronecker:6"], &["two records are compared, and not 1"]);
}

#[test]
fn compare_gives_the_ratio_and_warns_of_differences() {
    let folder = Folder::new();
    let [a, b, other] = ["a.json", "b.json", "other.json"].map(|name| folder.path(name));
    good(&["bench", "--kronecker", "8", "--roots", "3", "--threads", "1", "--policy", "tc", "--json", &a]);
    good(&["bench", "--kronecker", "8", "--roots", "3", "--threads", "1", "--policy", "bc", "--json", &b]);
    good(&["bench", "--kronecker", "7", "--roots", "3", "--threads", "1", "--json", &other]);
    let output = good(&["compare", &a, &b]);
    assert!(stdout(&output).contains("harmonic mean") && stdout(&output).contains("3 roots"), "{}", stdout(&output));
    assert!(words(stdout(&output)).contains("not taken in turn"), "{}", stdout(&output));
    assert!(stderr(&output).contains("warning: search.policy differs: tc | bc"), "{}", stderr(&output));
    assert_eq!(stderr(&good(&["compare", "--quiet", &a, &b])), "");
    refused(&["compare", &a, &other], &["different graphs", "--force"]);
    let output = good(&["compare", &a, &other, "--force"]);
    assert!(stderr(&output).contains("graph.vertices differs: 256 | 128"), "{}", stderr(&output));
}

#[test]
fn generated_and_converted_files_hold_the_same_graph() {
    let folder = Folder::new();
    let (text, matrix) = (folder.path("g.el"), folder.path("g.mtx"));
    good(&["generate", "kronecker:8", "-o", &text]);
    refused(&["generate", "kronecker:8", &text, "-o", &matrix], &["cannot be used with"]);
    good(&["convert", &text, &matrix]);
    let edges = |graph: &str| {
        let record: Value = serde_json::from_str(stdout(&good(&["bench", graph, "--roots", "1", "--json", "-"]))).unwrap();
        ["vertices", "edges", "unique_edges", "self_loops"].map(|field| record["graph"][field].as_u64().unwrap())
    };
    assert_eq!(edges(&text), edges("kronecker:8"));
    assert_eq!(edges(&matrix), edges("kronecker:8"));
    assert_eq!(folder.names(), ["g.el", "g.mtx"]);
}

#[test]
fn a_graph_can_be_written_to_a_named_pipe() {
    let folder = Folder::new();
    let (plain, pipe) = (folder.path("g.el"), folder.path("pipe.el"));
    nix::unistd::mkfifo(&*pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let uniform = ["generate", "uniform", "--vertices", "50", "--edges", "99", "-o"];
    for command in [&uniform[..], &["convert", "kronecker:8"]] {
        good(&[command, &[&plain]].concat());
        let mut child = socbfs(&[command, &[&pipe]].concat()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let source = pipe.clone();
        // The thread ends at the first end of the pipe.
        std::thread::spawn(move || sender.send(fs::read_to_string(source).unwrap()));
        let text = receiver.recv_timeout(Duration::from_secs(60));
        let limit = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(10));
        }
        // A child that waits for another reader is ended.
        let _ = child.kill();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command:?}: {text:?} {}", stderr(&output));
        assert!(text.unwrap() == fs::read_to_string(&plain).unwrap(), "{command:?}");
    }
}

#[test]
fn info_describes_a_graph() {
    let folder = Folder::new();
    let graph = folder.file("graph.el", GRAPH);
    let text = good(&["info", &graph]);
    for line in ["vertices        7", "edges listed    6", "self-loops      1", "components      2, the largest has 5 vertices"] {
        assert!(stdout(&text).contains(line), "{line} in {}", stdout(&text));
    }
    let info: Value = serde_json::from_str(stdout(&good(&["info", &graph, "--json"]))).unwrap();
    assert_eq!(info["vertices"], 7);
}

#[test]
fn help_version_and_completions_go_to_standard_output() {
    for arguments in [&["--help"][..], &["bench", "--help"], &["generate", "grid", "--help"], &["--version"], &["completions", "bash"]] {
        let output = good(arguments);
        assert!(stdout(&output).contains("socbfs") && stderr(&output).is_empty(), "{arguments:?}");
    }
    assert!(stdout(&good(&["bench", "--help"])).contains("Examples:"));
}

#[test]
fn without_a_subcommand_the_whole_help_is_shown() {
    let output = run(&[]);
    assert_eq!(output.status.code(), Some(2));
    let help = good(&["-h"]);
    assert_eq!(stderr(&output), stdout(&help));
    assert_eq!(stdout(&output), "");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    // Completions are longer than a pipe's buffer, so the writer is still writing when the reader leaves.
    let mut child = socbfs(&["completions", "bash"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(said, "");
    assert!(!line.is_empty());
    // The reader has gone before anything is written.
    for arguments in [&["--help"][..], &["--version"], &["bench", "--help"]] {
        let output = unread(arguments);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""), "{arguments:?}");
    }
}

/// Runs `socbfs` with a standard output whose reader has gone.
fn unread(arguments: &[&str]) -> Output {
    let (reader, writer) = nix::unistd::pipe().unwrap();
    drop(reader);
    socbfs(arguments).stdout(writer).output().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_pipe_hides_no_failure() {
    let folder = Folder::new();
    let (graph, tree) = (folder.file("graph.el", GRAPH), folder.file("p.txt", "0\n0\n1\n4\n1\n-1\n-1\n"));
    let (bad, record, page) = (folder.file("bad.toml", "board = 1\n"), folder.path("r.json"), folder.path("r.html"));
    good(&["bench", &graph, "--roots", "1", "--json", &record]);
    let of_times = ["report", &record, "--figure", "times", "--svg", "-", "--html"];
    // A command that fails gives its own exit code, although the record can't be written either.
    let ends = ["energy", "--energy", "off", "--json", "-", "--", "sh", "-c"];
    for (arguments, code, words) in [
        (&["validate", &graph, &tree, "--root", "0"][..], 1, ""),
        (&["board", "validate", &bad][..], 2, "bad.toml"),
        (&[&ends[..], &["exit 3"]].concat()[..], 3, ""),
        (&[&ends[..], &["exit 0"]].concat()[..], 0, ""),
        (&[&of_times[..], &["/dev/full"]].concat()[..], 2, "can't write /dev/full"),
        (&[&of_times[..], &[&page]].concat()[..], 0, ""),
    ] {
        let output = unread(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
    assert!(fs::read_to_string(&page).unwrap().contains("data-figure=\"times\""), "the page is written although the picture is not");
    let full = ["energy", "--energy", "off", "--json", "/dev/full", "--", "sh", "-c", "exit 1"];
    let output = run(&full);
    assert!(output.status.code() == Some(1) && stderr(&output).contains("can't write /dev/full"), "{}", stderr(&output));
}

#[test]
fn a_missing_input_leaves_no_output() {
    let folder = Folder::new();
    let (gone, out) = (folder.file("gone.el", GRAPH), folder.path("out.mtx"));
    fs::remove_file(&gone).unwrap();
    refused(&["convert", &gone, &out], &["gone.el"]);
    refused(&["run", &gone, "--root", "0", "--parents", &folder.path("p.npy")], &["gone.el"]);
    refused(&["bench", &gone, "--json", &folder.path("r.json")], &["gone.el"]);
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn an_invalid_input_keeps_the_old_output() {
    let folder = Folder::new();
    let (bad, out) = (folder.file("bad.el", "0 1\nx y\n"), folder.file("out.mtx", "precious"));
    refused(&["convert", &bad, &out], &["bad.el:2"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "precious");
    assert_eq!(folder.names(), ["bad.el", "out.mtx"]);
}

/// Root may write into any directory, so the folder that can't be written to is "below" a regular file.
#[test]
fn unwritable_outputs_are_refused_before_the_work() {
    let folder = Folder::new();
    let graph = folder.file("graph.el", GRAPH);
    for name in ["graph.el/r.json", "missing/r.json"] {
        let path = folder.path(name);
        // The graph would take minutes, so the error must come first.
        refused(&["bench", "--kronecker", "23", "--json", &path], &[name, "help:"]);
        let target = path.replace("json", "sg");
        refused(&["generate", "kronecker", "--scale", "23", "-o", &target], &["r.sg"]);
        refused(&["run", "kronecker:23", "--root", "0", "--parents", &path.replace("json", "npy")], &["r.npy"]);
    }
    refused(&["convert", &graph, folder.0.path().to_str().unwrap(), "--to", "el"], &["directory"]);
    assert_eq!(folder.names(), ["graph.el"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    if !Path::new("/dev/full").exists() {
        return crate::implementations::skipped("a_full_disk_is_reported", "there is no /dev/full");
    }
    refused(&["convert", "kronecker:8", "/dev/full", "--to", "el"], &["/dev/full"]);
    let output = run(&["bench", "--kronecker", "6", "--roots", "1", "--json", "/dev/full"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("error: can't write /dev/full"), "{}", stderr(&output));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for arguments in [&["--version"][..], &["--help"], &["bench", "--help"], &["board", "profile"]] {
        let output = socbfs(arguments).stdout(full.try_clone().unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        for words in ["error: can't write to standard output: No space left", "free some space"] {
            assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
        }
    }
    // Every output names the same cure.
    for flag in ["--json", "--html"] {
        let error = ["can't write /dev/full: No space", "help: free some space"];
        let output = run(&["bench", "grid:8x8", "--roots", "1", flag, "/dev/full"]);
        assert_eq!(output.status.code(), Some(2), "{flag}: {}", stderr(&output));
        assert!(error.iter().all(|words| stderr(&output).contains(words)), "{flag}: {}", stderr(&output));
    }
}

#[test]
fn every_reader_of_records_refuses_a_key_that_stands_twice() {
    let folder = Folder::new();
    let path = folder.path("r.json");
    good(&["bench", "kronecker:6", "--roots", "2", "--device", "cpu", "--json", &path]);
    let text = fs::read_to_string(&path).unwrap();
    // In a part that only some readers look at, and in one that all of them do.
    for (key, twice) in
        [("threads", text.replacen("\"threads\":", "\"threads\":64,\"threads\":", 1)), ("roots", format!("{{\"roots\":[],{}", &text[1..]))]
    {
        let edited = folder.file("twice.json", &twice);
        let words = [&*edited, &format!("the key \"{key}\" stands twice")];
        refused(&["report", &edited], &words);
        refused(&["compare", &path, &edited], &words);
        refused(&["compare", &edited, &path], &words);
        refused(&["run", "kronecker:6", "--root", "1", "--policy", &format!("replay:{edited}")], &words);
    }
    good(&["report", &path]);
}

#[cfg(unix)]
mod interrupted {
    use std::{process::Child, thread::sleep};

    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };

    use super::*;

    fn start(arguments: &[&str]) -> Child {
        socbfs(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn signal(child: &Child, signal: Signal) {
        kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
    }

    #[test]
    fn while_generating() {
        for kind in [Signal::SIGINT, Signal::SIGTERM] {
            let folder = Folder::new();
            // The largest scale for which a 32-bit program has the memory.
            let mut child = start(&["generate", "kronecker", "--scale", "23", "-o", &folder.path("g.el")]);
            wait_until_handled(&child, kind);
            sleep(Duration::from_millis(if emulated() { 4000 } else { 300 }));
            signal(&child, kind);
            assert_eq!(child.wait().unwrap().code(), Some(130), "{kind}");
            assert_eq!(folder.names(), Vec::<String>::new(), "{kind}");
        }
    }

    #[test]
    fn while_writing() {
        // A fast machine may be done before the signal comes; the next attempt then has four times the edges.
        for edges in ["1000000", "4000000", "16000000", "64000000"] {
            let folder = Folder::new();
            let mut child = start(&["generate", "uniform", "--vertices", "100000", "--edges", edges, "-o", &folder.path("g.el")]);
            let limit = Instant::now() + Duration::from_secs(300);
            // The check at the start also opens a temporary file, but closes it at once. The temporary file may have no name in the
            // folder.
            let descriptors = format!("/proc/{}/fd", child.id());
            let is_writing = || {
                let open = fs::read_dir(&descriptors).map_or(0, |entries| {
                    entries
                        .flatten()
                        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|file| file.starts_with(folder.path(""))))
                        .count()
                });
                open > 0
            };
            let mut seen = 0;
            while seen < 3 && child.try_wait().unwrap().is_none() && Instant::now() < limit {
                seen = if is_writing() { seen + 1 } else { 0 };
                sleep(Duration::from_millis(1));
            }
            if child.try_wait().unwrap().is_none() {
                signal(&child, Signal::SIGINT);
            }
            match child.wait().unwrap().code() {
                Some(130) => return assert_eq!(folder.names(), Vec::<String>::new()),
                Some(0) => assert_eq!(folder.names(), ["g.el"]),
                other => panic!("exit code {other:?}"),
            }
        }
        panic!("no signal came while the file was written");
    }

    #[test]
    fn between_graphs() {
        let folder = Folder::new();
        let (graph, pipe, json) = (folder.file("first.el", GRAPH), folder.path("second.el"), folder.path("r.json"));
        nix::unistd::mkfifo(&*pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for command in [&["policies", "--only", "tc", "--turns", "1"][..], &["analyze", "--only", "redundant"]] {
            let flags = ["--roots", "1", "--device", "cpu", "--json", &json];
            let mut child = start(&[command, &[&graph, &pipe], &flags].concat());
            // The command opens the second graph when it has finished the first one.
            let second = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
            signal(&child, Signal::SIGINT);
            assert_eq!(child.wait().unwrap().code(), Some(130), "{command:?}");
            drop(second);
            let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
            assert_eq!(record["graphs"].as_array().unwrap().len(), 1, "{command:?}");
            let last = record["warnings"].as_array().unwrap().last().unwrap();
            assert!(last.as_str().unwrap().ends_with("was interrupted"), "{}", record["warnings"]);
            assert_eq!(folder.names(), ["first.el", "r.json", "r.json.partial", "second.el"]);
            for file in [&json, &format!("{json}.partial")] {
                fs::remove_file(file).unwrap();
            }
        }
    }

    /// Starts a command over both graphs, of which the second is a pipe, and kills it when it has finished the first one.
    fn killed_between(command: &[&str], pipe: &str) {
        let mut child = start(command);
        let second = fs::OpenOptions::new().write(true).open(pipe).unwrap();
        signal(&child, Signal::SIGKILL);
        assert_eq!(child.wait().unwrap().code(), None, "{command:?}");
        drop(second);
    }

    /// The warnings of the record about its graphs. There may be others, about the machine.
    fn of_graphs(record: &Value) -> Vec<String> {
        let all = record["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        all.filter(|said| said.contains(".el: ")).map(str::to_owned).collect()
    }

    #[test]
    fn a_killed_command_continues_after_the_graphs_that_it_finished() {
        let folder = Folder::new();
        let (graph, pipe, json) = (folder.file("first.el", GRAPH), folder.path("second.el"), folder.path("r.json"));
        let partial = format!("{json}.partial");
        nix::unistd::mkfifo(&*pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let lines =
            || -> Vec<Value> { fs::read_to_string(&partial).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
        // Runs the command to its end.
        let ended = |command: &[&str]| {
            let child = socbfs(command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            fs::OpenOptions::new().write(true).open(&pipe).unwrap().write_all(GRAPH.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{command:?}: {}", stderr(&output));
            let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
            assert_eq!(record["graphs"].as_array().unwrap().len(), 2, "{command:?}");
            fs::remove_file(&json).unwrap();
            assert_eq!(folder.names(), ["first.el", "second.el"], "{command:?}");
            (record, stderr(&output).to_owned())
        };
        for (command, evaluation) in [
            (&["policies", "--only", "tc", "--turns", "1"][..], "/evaluation"),
            (&["analyze", "--only", "performance", "--turns", "1"], "/policies/evaluation"),
        ] {
            let times = |graph: &Value| graph.pointer(evaluation).unwrap()["roots"][0]["policies"].clone();
            let command = [command, &[&graph, &pipe], &["--roots", "1", "--device", "cpu", "--json", &json]].concat();
            killed_between(&command, &pipe);
            assert_eq!(folder.names(), ["first.el", "r.json.partial", "second.el"], "{command:?}");
            // Times differ from one measurement to the next.
            let kept = lines()[1].clone();
            let kept = times(kept.get("graph").unwrap_or(&kept));
            let (record, said) = ended(&command);
            assert!(said.contains("continuing after 1 graph measured before"), "{command:?}: {said}");
            assert_eq!(times(&record["graphs"][0]), kept, "{command:?}");
            assert_ne!(times(&record["graphs"][1]), kept, "{command:?}");
            let warnings = of_graphs(&record);
            assert_eq!(warnings.len(), 1, "{command:?}: {warnings:?}");
            assert!(warnings[0].starts_with(&format!("{graph}: measured by an earlier run")), "{warnings:?}");

            // Nothing is kept for a command with another option, nor for another graph of the same name.
            for other in [&[][..], &["--threads", "1"]] {
                killed_between(&command, &pipe);
                if other.is_empty() {
                    fs::write(&graph, format!("{GRAPH}6 7\n")).unwrap();
                }
                let (record, said) = ended(&[&command[..], other].concat());
                assert!(said.contains("starting again: ") && said.contains("r.json.partial holds measurements, but"), "{said}");
                assert!(of_graphs(&record).is_empty(), "{command:?} {other:?}: {}", record["warnings"]);
                fs::write(&graph, GRAPH).unwrap();
            }
            // An incomplete last line is measured again.
            killed_between(&command, &pipe);
            let whole = fs::read_to_string(&partial).unwrap();
            fs::write(&partial, &whole[..whole.len() - 2]).unwrap();
            let (record, said) = ended(&command);
            assert!(!said.contains("continuing") && of_graphs(&record).is_empty(), "{command:?}: {said}");
        }
        // A file of something else is left as it is.
        fs::write(&partial, "mine\n").unwrap();
        refused(&["analyze", &graph, "--json", &json], &["r.json.partial", "something else; remove it"]);
        assert_eq!(fs::read_to_string(&partial).unwrap(), "mine\n");
    }

    #[test]
    fn a_killed_board_report_continues_after_the_scales_that_it_finished() {
        let folder = Folder::new();
        let (json, partial) = (folder.path("b.json"), folder.path("b.json.partial"));
        // The second scale takes long enough to be killed in.
        let command =
            ["bench", "--report", "board", "--device", "cpu", "--roots", "64", "--threads", "1", "--scales", "8,16", "--json", &json];
        let mut child = start(&command);
        let limit = Instant::now() + Duration::from_secs(300);
        let lines = || fs::read_to_string(&partial).map_or(0, |text| text.matches('\n').count());
        while lines() < 2 && child.try_wait().unwrap().is_none() && Instant::now() < limit {
            sleep(Duration::from_millis(2));
        }
        signal(&child, Signal::SIGKILL);
        assert_eq!(child.wait().unwrap().code(), None);
        assert_eq!(folder.names(), ["b.json.partial"]);
        let text = fs::read_to_string(&partial).unwrap();
        let mut kept: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert!(kept.as_object_mut().unwrap().remove("xxh3").is_some(), "{kept}");
        let output = good(&command);
        assert!(stderr(&output).contains("continuing after 1 scale measured before"), "{}", stderr(&output));
        assert!(stdout(&output).contains("\n| 8 | ") && stdout(&output).contains("\n| 16 | "), "{}", stdout(&output));
        let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!((&record["complete"], &record["runs"][0]), (&true.into(), &kept));
        assert_eq!(record["runs"][1]["graph"]["scale"], 16);
        assert_eq!(folder.names(), ["b.json"]);
    }

    #[test]
    fn while_trees_are_validated() {
        // All roots are searched first. Where that takes longer than the signal waits, the next attempt waits longer.
        for wait in (0..8).map(|power| Duration::from_millis(500 << power)) {
            let folder = Folder::new();
            let (json, html) = (folder.path("r.json"), folder.path("r.html"));
            let search = ["bench", "kronecker:12", "--roots", "2000", "--threads", "1", "--device", "cpu", "--energy", "off"];
            let child =
                socbfs(&[&search[..], &["--json", &json, "--html", &html]].concat()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
            let child = child.unwrap();
            sleep(wait);
            signal(&child, Signal::SIGINT);
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(130), "all roots were validated within {wait:?}: {}", stderr(&output));
            let Ok(text) = fs::read_to_string(&json) else { continue };
            let record: Value = serde_json::from_str(&text).unwrap();
            let roots = record["roots"].as_array().unwrap();
            assert!((1..2000).contains(&roots.len()), "{}", roots.len());
            assert!(roots.iter().all(|root| root["validation"]["passed"] == true && root["seconds"].as_f64().unwrap() > 0.0));
            assert_eq!((&record["complete"], &record["valid"], &record["roots_asked"]), (&false.into(), &true.into(), &2000.into()));
            assert_eq!(record["summary"]["roots"], roots.len());
            let warning = format!("{} roots instead of 2000: the run did not end", roots.len());
            assert!(
                record["warnings"].as_array().unwrap().iter().any(|said| said.as_str().unwrap().starts_with(&warning)),
                "{}",
                record["warnings"]
            );
            assert_eq!(record["energy"]["unavailable"], "the run was interrupted");
            // The report and the page have them too.
            assert!(
                stdout(&output).contains(&format!("NBFS:  {}", roots.len())) || stdout(&output).contains("harmonic_mean_TEPS"),
                "{}",
                stdout(&output)
            );
            assert!(stderr(&output).contains(&warning), "{}", stderr(&output));
            assert!(fs::read_to_string(&html).unwrap().contains(&warning));
            return;
        }
        panic!("the searches took too long");
    }

    #[test]
    fn while_energy_is_measured() {
        let folder = Folder::new();
        let (root, json) = (board_with_rails(&folder), folder.path("r.json"));
        // The sensor has two values in a second, so that 200 take longer than a window is asked to be.
        fs::write(Path::new(&root).join("sys/class/hwmon/hwmon0/update_interval"), "500").unwrap();
        let energy = ["--energy", "ina2xx:0-0040", "--sysfs-root", &root, "--energy-seconds", "2"];
        let command = [&["bench", "grid:8x8", "--roots", "1", "--device", "cpu", "--json", &json], &energy[..]].concat();
        let mut child = socbfs(&command).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let windows = "warning: each of the 3 windows takes 100 s instead of 2 s, which is 200 refreshes of the slowest sensor";
        assert!(said.any(|line| line.starts_with(windows)));
        sleep(Duration::from_millis(300));
        signal(&child, Signal::SIGINT);
        said.for_each(drop);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert!(record["summary"]["teps"]["harmonic_mean"].as_f64().unwrap() > 0.0);
        assert_eq!(
            (&record["complete"], &record["energy"]["unavailable"]),
            (&true.into(), &"the run was interrupted before it was measured".into())
        );
    }
}

/// A machine with a RAPL package that takes 20 W until `stop`; its counter changes about every millisecond.
fn powered(root: &Path, stop: &std::sync::atomic::AtomicBool) {
    use std::os::unix::fs::FileExt as _;
    let counter = fs::OpenOptions::new().write(true).open(root.join("sys/class/powercap/intel-rapl:0/energy_uj")).unwrap();
    let begin = Instant::now();
    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
        // In one call and always as long, so that no reader sees half a number.
        let text = format!("{:015}", begin.elapsed().as_millis() * 20_000);
        counter.write_all_at(text.as_bytes(), 0).unwrap();

        std::thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn run_shows_the_energy_of_each_level_or_which_sensor_is_too_slow() {
    let folder = Folder::new();
    let root = Path::new(&folder.path("machine")).to_owned();
    let zone = root.join("sys/class/powercap/intel-rapl:0");
    fs::create_dir_all(&zone).unwrap();
    for (name, text) in [("name", "package-0"), ("energy_uj", "000000000000000"), ("max_energy_range_uj", "262143328850")] {
        fs::write(zone.join(name), text).unwrap();
    }
    let sysfs = root.to_str().unwrap().to_owned();
    // Three long levels: the short ones of other graphs take long to be known. The triangle lets the last one look for more.
    let rays: String = (1..40_000).map(|ray| format!("0 {ray}\n{ray} {}\n", ray + 40_000)).collect();
    let star = folder.file("star.el", &(rays + "90000 90001\n90001 90002\n90000 90002\n"));
    let search = ["run", &star, "--keep-leaves", "--root", "0", "--trace", "--threads", "1", "--device", "cpu", "--policy", "tc"];
    let stop = std::sync::atomic::AtomicBool::new(false);
    let text = std::thread::scope(|scope| {
        scope.spawn(|| powered(&root, &stop));
        let ran = std::panic::catch_unwind(|| good(&[&search[..], &["--sysfs-root", &sysfs, "--energy", "powercap"]].concat()));
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        stdout(&ran.unwrap()).to_owned()
    });
    println!("{text}");
    assert!(text.contains("energy: cpu-package, powercap:intel-rapl:0, idle power included; least squares over"), "{text}");
    let head = text.lines().find(|line| line.contains("direction")).unwrap();
    assert!(head.contains("time") && head.split_whitespace().skip_while(|word| *word != "time").nth(1) == Some("energy"), "{text}");
    assert!(text.lines().filter(|line| line.contains(" +/- ") && line.contains("top-down")).count() == 3, "{text}");

    let slow = good(&[&search[..], &["--sysfs-root", &board_with_rails(&folder), "--energy", "ina2xx:0-0040"]].concat());
    let lines: Vec<&str> = stdout(&slow).lines().filter(|line| line.contains("energy")).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("energy: not measured: ina2xx:0-0040 reads a power, a new one every "), "{lines:?}");
    refused(&["run", "kronecker:8", "--root", "1", "--energy", "powercap"], &["--energy has no effect here", "--trace"]);
}
