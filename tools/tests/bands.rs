//! The bands of a board decide where levels run, in the same way in every command; `board tune` measures them.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{collections::BTreeSet, fs};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    built::socbfs,
    implementations::{device, skipped},
};

const PLATFORM: &str = "Portable Computing Language";
const GRAPH: &str = "kronecker:12";

/// A user without any settings, on a machine with PoCL.
struct User(TempDir);

impl User {
    /// Returns `None` and prints SKIPPED if PoCL is not installed.
    fn with_device(test: &str) -> Option<Self> {
        if device(PLATFORM).is_none() {
            skipped(test, "PoCL is not installed, or not found without tests/opencl_env");
            return None;
        }
        Some(Self(tempfile::tempdir().unwrap()))
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = socbfs(arguments);
        command.env_remove("SOCBFS_CALIBRATION").env_remove("XDG_CONFIG_HOME").env("HOME", self.0.path());
        let output = command.args(["--device", PLATFORM, "--threads", "2"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The path of what `board tune` makes of the profile `board`.
    fn tuned(&self, board: &str, arguments: &[&str]) -> String {
        let path = self.0.path().join("tuned.toml").to_str().unwrap().to_owned();
        assert_eq!(self.run(&[&["board", "tune", board, &path], arguments].concat()), "");
        path
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.run(arguments)).unwrap()
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The rows of `run --trace` with these bands.
    fn trace(&self, bands: &Bands, root: &str) -> Vec<Row> {
        let board = self.file("traced.toml", &bands.board());
        let text =
            self.run(&["run", GRAPH, "--root", root, "--policy", "adaptive", "--board", &board, "--trace", "--wide", "--keep-leaves"]);
        assert!(text.contains("adaptive.top_down.gpu_from") && text.contains("board file"), "{text}");
        let rows = text.lines().skip_while(|line| !line.trim_start().starts_with("level ")).skip(1);
        let cells = rows.map(|row| row.split_whitespace().collect::<Vec<_>>()).take_while(|cells| cells.len() > 10);
        let number = |cell: &str| cell.trim_start_matches('~').replace(',', "").parse().ok();
        cells
            .map(|cells| {
                let place = match cells[2] {
                    "cpu" => "cpu",
                    "cpu+gpu" => "both",
                    _ => "gpu",
                };
                // The cells between the counts hold a share and a kernel.
                let counts: Vec<u64> = cells[3..].iter().filter_map(|cell| number(cell)).collect();
                let work = counts[if cells[1] == "top-down" { 1 } else { 2 }];
                Row { direction: cells[1].to_owned(), place, work }
            })
            .collect()
    }

    /// The record of searches with these bands.
    fn bench(&self, bands: &Bands) -> Value {
        let board = self.file("bands.toml", &bands.board());
        self.json(&["bench", GRAPH, "--roots", "3", "--policy", "adaptive", "--board", &board, "--json", "-", "--keep-leaves"])
    }
}

/// A level in the output of `run --trace`.
#[derive(Debug, Clone, PartialEq)]
struct Row {
    direction: String,
    place: &'static str,
    /// Arcs of the frontier if top-down, unvisited vertices if bottom-up.
    work: u64,
}

/// The thresholds `gpu_from`, `split_from`, `up_to` of top-down, then those of bottom-up.
#[derive(Clone, Copy)]
struct Bands([u64; 6]);

/// With these bands, one search of the graph has all three placements, and levels on both sides of each threshold.
const TRACED: Bands = Bands([20, 30, 50_000, 10, 1_000, 1_000_000]);

/// With these bands, a few searches of the graph have all three placements.
const THREE: Bands = Bands([40, 2_000, 50_000, 20, 1_500, 1_000_000]);

impl Bands {
    /// A board with these bands. Its handover costs nothing, so that the bands hold exactly.
    fn board(self) -> String {
        let [a, b, c, d, e, f] = self.0;
        format!(
            "schema = 1\n[board]\nname = 'three'\n[adaptive.top_down]\ngpu_from = {a}\nsplit_from = {b}\nup_to = {c}\n\
             [adaptive.bottom_up]\ngpu_from = {d}\nsplit_from = {e}\nup_to = {f}\n\
             [adaptive.handover]\nfixed_us = 0.0\nmega_vertex_us = 0.0\n"
        )
    }

    /// The placement of a level, as boards/README.md defines it.
    fn place(self, direction: &str, stats: &Value) -> &'static str {
        let work = if direction == "top-down" { &stats["frontier_edges"] } else { &stats["unvisited_vertices"] };
        self.place_of(direction, work.as_u64().unwrap())
    }

    /// The placement of a level with this much work.
    fn place_of(self, direction: &str, work: u64) -> &'static str {
        let bands = if direction == "top-down" { &self.0[..3] } else { &self.0[3..] };
        match bands {
            [_, _, up_to] if work >= *up_to => "cpu",
            [_, split_from, _] if work >= *split_from => "both",
            [gpu_from, ..] if work >= *gpu_from => "gpu",
            _ => "cpu",
        }
    }
}

/// The placement in a plan.
fn placed(plan: &Value) -> &'static str {
    match &plan["placement"] {
        Value::String(word) if word == "cpu" => "cpu",
        Value::Object(map) if map.contains_key("gpu") => "gpu",
        Value::Object(map) if map.contains_key("split") => "both",
        other => panic!("{other}"),
    }
}

fn levels(record: &Value) -> Vec<&Value> {
    record["roots"].as_array().unwrap().iter().flat_map(|root| root["level_records"].as_array().unwrap()).collect()
}

/// Checks that every level of `record` ran where `bands` say, and returns the placements.
fn hold(bands: &Bands, record: &Value) -> BTreeSet<&'static str> {
    let mut seen = BTreeSet::new();
    for level in levels(record) {
        let direction = level["plan"]["direction"].as_str().unwrap();
        assert_eq!(placed(&level["plan"]), bands.place(direction, &level["stats"]), "{:?}: {level}", bands.0);
        seen.insert(placed(&level["plan"]));
    }
    seen
}

/// In one search, `run --trace` shows all three placements, and the placement in a row changes with its own threshold and no other.
#[test]
fn each_threshold_changes_only_its_own_placements_in_a_trace() {
    let Some(user) = User::with_device("each_threshold_changes_only_its_own_placements_in_a_trace") else { return };
    let root = user.bench(&TRACED)["roots"][0]["root"].to_string();
    let before = user.trace(&TRACED, &root);
    let places: BTreeSet<&str> = before.iter().map(|row| row.place).collect();
    assert_eq!(places, BTreeSet::from(["cpu", "gpu", "both"]), "{before:?}");
    for threshold in 0..6 {
        let mut flipped = 0;
        // For each level of the first trace, the threshold moves to the other side of its work.
        let direction = if threshold < 3 { "top-down" } else { "bottom-up" };
        for work in before.iter().filter(|row| row.direction == direction).map(|row| row.work) {
            let mut other = TRACED;
            let value = if work < TRACED.0[threshold] { work } else { work + 1 };
            other.0[threshold] = value;
            // The bounds in a profile must ascend.
            if !other.0[threshold / 3 * 3..][..3].is_sorted_by(|a, b| a < b) {
                continue;
            }
            let after = user.trace(&other, &root);
            for (row, was) in after.iter().zip(&before) {
                assert_eq!(row.place, other.place_of(&row.direction, row.work), "threshold {threshold} {value}: {after:?}");
                // With another share the number of repeats, and so the work, may differ a little: it is still the same level.
                let is_same = row.direction == was.direction && row.work.abs_diff(was.work) <= was.work / 100;
                if is_same && row.place != was.place {
                    assert_eq!(row.direction, direction, "threshold {threshold} {value}: {row:?} {was:?}");
                    flipped += 1;
                }
            }
        }
        println!("threshold {threshold}: {flipped} cells flipped");
        assert!(flipped > 0, "threshold {threshold} flips no cell of {before:?}");
    }
}

#[test]
fn each_threshold_changes_only_its_own_placements_in_a_record() {
    let Some(user) = User::with_device("each_threshold_changes_only_its_own_placements_in_a_record") else { return };
    let record = user.bench(&THREE);
    assert_eq!(hold(&THREE, &record), BTreeSet::from(["cpu", "gpu", "both"]), "{:?}", record["roots"][0]["level_records"]);
    assert!(record["search"]["thresholds"].is_null(), "nothing is measured where the board says it");
    let bands = record["search"]["chosen"]["bands"].as_array().unwrap();
    assert_eq!(bands.len(), 6, "{bands:?}");
    assert!(bands.iter().all(|band| band["origin"] == "board file"), "{bands:?}");

    // The test above checks the same with `run --trace`; `tests/run` prints that it leaves this part out.
    if std::env::var_os("SOCBFS_TEST_ALL").is_none() {
        return;
    }
    for place in 0..6 {
        // One threshold that all work reaches, and one that none does.
        let mut flips = 0;
        for value in [0, 3_000_000] {
            let mut other = THREE;
            other.0[place] = value;
            if place % 3 == 2 && value == 0 {
                // A profile must leave work between `gpu_from` and `up_to`.
                other.0[place] = THREE.0[place - 2] + 1;
            }
            let record = user.bench(&other);
            hold(&other, &record);
            let changed = |level: &&&Value| {
                let direction = level["plan"]["direction"].as_str().unwrap();
                placed(&level["plan"]) != THREE.place(direction, &level["stats"])
            };
            for level in levels(&record).iter().filter(changed) {
                assert_eq!(level["plan"]["direction"], if place < 3 { "top-down" } else { "bottom-up" }, "place {place}: {level}");
                flips += 1;
            }
        }
        assert!(flips > 0, "threshold {place} moves nothing");
    }
}

#[test]
fn every_command_makes_the_same_plans() {
    let Some(user) = User::with_device("every_command_makes_the_same_plans") else { return };
    let board = user.file("three.toml", &THREE.board());
    let record = user.bench(&THREE);
    for root in record["roots"].as_array().unwrap() {
        let text = user.run(&[
            "run",
            GRAPH,
            "--root",
            &root["root"].to_string(),
            "--policy",
            "adaptive",
            "--board",
            &board,
            "--trace",
            "--wide",
            "--keep-leaves",
        ]);
        let rows: Vec<&str> = text.lines().skip_while(|line| !line.trim_start().starts_with("level ")).skip(1).collect();
        let records = root["level_records"].as_array().unwrap();
        for (row, level) in rows.iter().zip(records) {
            let cells: Vec<&str> = row.split_whitespace().collect();
            let place = match cells[2] {
                "cpu" => "cpu",
                "cpu+gpu" => "both",
                _ => "gpu",
            };
            assert_eq!((cells[1], place), (level["plan"]["direction"].as_str().unwrap(), placed(&level["plan"])), "{text}\n{level}");
        }
        assert!(text.contains("adaptive.top_down.gpu_from") && text.contains("board file"), "{text}");
    }
    let policies = ["adaptive", "selective"]
        .map(|policy| user.json(&["policies", GRAPH, "--only", policy, "--roots", "2", "--turns", "1", "--board", &board, "--json", "-"]));
    for (policies, never_split) in policies.iter().zip([false, true]) {
        let mut seen = BTreeSet::new();
        for root in policies["graphs"][0]["evaluation"]["roots"].as_array().unwrap() {
            let plans = root["policies"][0]["plans"].as_array().unwrap();
            for (plan, level) in plans.iter().zip(root["table"]["levels"].as_array().unwrap()) {
                let mut bands = THREE;
                if never_split {
                    (bands.0[1], bands.0[4]) = (u64::MAX, u64::MAX);
                }
                assert_eq!(placed(plan), bands.place(plan["direction"].as_str().unwrap(), &level["stats"]), "{plan} {level}");
                seen.insert(placed(plan));
            }
        }
        assert!(seen.contains("gpu"), "{seen:?}");
        assert_eq!(seen.contains("both"), !never_split, "{seen:?}");
    }
}

#[test]
fn device_settings_of_a_board_are_shown_with_their_origin() {
    let Some(user) = User::with_device("device_settings_of_a_board_are_shown_with_their_origin") else { return };
    let board = user.file(
        "b.toml",
        "schema = 1\n[board]\nname = 'b'\n[[opencl.devices]]\nname = '*e*'\nvia = 'pocl'\nwork_group = 64\nmemory_way = 'use-host-ptr'\n",
    );
    let shown = |flags: &[&str]| user.run(&[&["board", "show", "--board", &board][..], flags].concat());
    let lines = |shown: &str| {
        let rows = shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        rows.filter(|row| row.starts_with("work-group ") || row.starts_with("memory-way ")).collect::<Vec<_>>()
    };
    assert_eq!(lines(&shown(&[])), ["memory-way use-host-ptr board file", "work-group 64 board file"]);
    let flags = ["--work-group", "32", "--memory-way", "copy"];
    assert_eq!(lines(&shown(&flags)), ["memory-way copy flag", "work-group 32 flag"]);
}

#[test]
fn the_log_has_the_settings_of_the_device_with_their_origin() {
    let Some(user) = User::with_device("the_log_has_the_settings_of_the_device_with_their_origin") else { return };
    let board = user.file(
        "b.toml",
        "schema = 1\n[board]\nname = 'b'\n[[opencl.devices]]\nname = '*e*'\nvia = 'pocl'\nwork_group = 64\nmemory_way = 'use-host-ptr'\n",
    );
    let logged = |flags: &[&str]| {
        let run = [&["-v", "run", "grid:8x8", "--root", "0", "--policy", "tg", "--device", PLATFORM][..], flags].concat();
        let output = socbfs(&run).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{error}");
        let lines = error.lines().filter(|line| line.contains("memory-way = ") || line.contains("work-group = "));
        let lines: Vec<String> = lines.map(str::to_owned).collect();
        assert_eq!(lines.len(), 2, "{error}");
        lines
    };
    for (flags, way, group) in [
        (&["--board", &board][..], "memory-way = \"use-host-ptr\" (board file)", "work-group = \"64\" (board file)"),
        (&["--memory-way", "copy", "--work-group", "32"], "memory-way = \"copy\" (flag)", "work-group = \"32\" (flag)"),
        (&[], "\" (measured)", "work-group = \"by the device\" (built-in)"),
    ] {
        let lines = logged(flags);
        assert!(lines[0].ends_with(way) && lines[1].ends_with(group) && !lines[0].contains("\"measured\""), "{lines:?}");
    }
}

#[test]
fn a_named_device_that_the_policy_does_not_use_is_reported() {
    if User::with_device("a_named_device_that_the_policy_does_not_use_is_reported").is_none() {
        return;
    }
    // Without a calibration, the cost model has costs of the CPU only.
    for (policy, is_used) in [("tc", false), ("cost-model", false), ("tg", true)] {
        let output = socbfs(&["run", "grid:8x8", "--root", "0", "--policy", policy, "--device", PLATFORM]).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{error}");
        let said = format!("is not used: policy {policy} runs every level on the CPU");
        assert_eq!(error.contains(&said), !is_used, "{error}");
    }
}

#[test]
fn tuned_values_are_written_once_and_not_measured_again() {
    let Some(user) = User::with_device("tuned_values_are_written_once_and_not_measured_again") else { return };
    let before = "# Mine.\nschema = 1\nestimates = ['adaptive', 'cpu.threads']\n\n[board]\nname = 'mine' # I say\n\n[cpu]\nthreads = 2\n\n\
                  # Not measured.\n[adaptive.top_down]\ngpu_from = 90_000\nup_to = 95_000\n";
    let board = user.file("mine.toml", before);
    let board = &user.tuned(&board, &["--graph", "kronecker:11"]);
    let after = fs::read_to_string(board).unwrap();
    assert!(after.starts_with("schema = 1\n") && after.contains("name = \"mine\" # I say"), "{after}");
    assert!(
        after.contains("measured 20") && after.contains("by socbfs board tune on kronecker") && after.contains("with driver"),
        "{after}"
    );
    assert!(!after.contains("Not measured") && !after.contains("90_000") && !after.contains("up_to"), "{after}");
    // 2^32, which stands for "never", is not for people.
    assert!(!after.contains("4294967296") && after.contains("split_from = "), "{after}");
    let estimates = after.lines().find(|line| line.starts_with("estimates")).unwrap();
    assert!(estimates.contains("cpu.threads") && !estimates.contains("adaptive"), "{estimates}");
    let table: toml::Table = after.parse().unwrap();
    let work_group = table["opencl"]["devices"][0]["work_group"].as_integer().unwrap();
    let on_device = user.json(&["bench", "kronecker:9", "--roots", "1", "--policy", "tg", "--board", board, "--json", "-"]);
    assert_eq!(on_device["search"]["devices"][0]["group"], work_group, "{on_device}");
    let records =
        [(); 2].map(|()| user.json(&["bench", "kronecker:9", "--roots", "2", "--policy", "adaptive", "--board", board, "--json", "-"]));
    for record in &records {
        let search = &record["search"];
        assert!(search["thresholds"].is_null(), "{search}");
        // (The list is empty if the bands never leave the CPU.)
        let devices = search["devices"].as_array().unwrap();
        assert!(
            devices.iter().all(|device| device["handover"]["ways"] == serde_json::json!([])),
            "handovers were measured again: {devices:?}"
        );
        let bands = search["chosen"]["bands"].as_array().unwrap();
        assert!(!bands.is_empty() && bands.iter().all(|band| band["origin"] == "board file"), "{bands:?}");
    }
    assert_eq!(records[0]["search"]["chosen"], records[1]["search"]["chosen"]);
    let plans = |record: &Value| levels(record).iter().map(|level| placed(&level["plan"])).collect::<Vec<_>>();
    assert_eq!(plans(&records[0]), plans(&records[1]));
}

#[test]
fn what_is_given_to_tune_is_written_and_not_called_measured() {
    let Some(user) = User::with_device("what_is_given_to_tune_is_written_and_not_called_measured") else { return };
    let board = user.file("given.toml", "schema = 1\n[board]\nname = 'given'\n");
    let board = user.tuned(&board, &["--graph", "kronecker:8", "--memory-way", "copy", "--work-group", "32"]);
    let after = fs::read_to_string(&board).unwrap();
    assert!(after.contains("memory_way = \"copy\" # given to socbfs board tune 20") && after.contains("# measured 20"), "{after}");
    assert!(after.contains("work_group = 32 # given to socbfs board tune 20"), "{after}");
    // The bands are those of the new setting, so it replaces that of the profile.
    let after = user.run(&["board", "tune", &board, "--graph", "kronecker:8", "--work-group", "64"]);
    assert!(after.contains("memory_way = \"copy\" # given") && after.contains("work_group = 64 # given"), "{after}");
}

#[test]
fn quirks_exclude_sharing_modes() {
    let Some(user) = User::with_device("quirks_exclude_sharing_modes") else { return };
    let board =
        |quirks: &str| format!("schema = 1\n[board]\nname = 'q'\n[[opencl.devices]]\nname = '*e*'\nvia = 'pocl'\nquirks = [{quirks}]\n");
    let without = user.file("without.toml", &board(""));
    let with = user.file("with.toml", &board("'map-copies', 'local-is-global'"));
    let ways = |board: &str| {
        let record = user.json(&["bench", "kronecker:8", "--roots", "1", "--policy", "tg", "--board", board, "--json", "-"]);
        let ways = record["search"]["devices"][0]["handover"]["ways"].as_array().unwrap().clone();
        ways.iter().map(|way| way["way"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    let (all, left) = (ways(&without), ways(&with));
    assert!(all.contains("alloc-host-ptr") && all.contains("use-host-ptr"), "{all:?}");
    assert_eq!(left, all.into_iter().filter(|way| !way.ends_with("host-ptr")).collect());
}

#[test]
fn a_board_without_local_memory_excludes_bgc_from_a_model_of_its_own_speeds() {
    let Some(user) = User::with_device("a_board_without_local_memory_excludes_bgc_from_a_model_of_its_own_speeds") else { return };
    let speeds = "tc_mega_edges_per_s = 0.001\nbc_mega_edges_per_s = 0.001\ntg_mega_edges_per_s = 1.0\nbg_mega_edges_per_s = 1.0\n\
                  bgc_mega_edges_per_s = 1000.0\n";
    let runs_bgc = |key: &str| {
        let text = format!("schema = 1\n[board]\nname = 'b'\n[[opencl.devices]]\nname = '*e*'\nvia = 'pocl'\n{key}\n[speeds]\n{speeds}");
        let board = user.file("b.toml", &text);
        let record =
            user.json(&["bench", "kronecker:10", "--roots", "1", "--policy", "cost-model:zhang", "--board", &board, "--json", "-"]);
        levels(&record).iter().any(|level| level["plan"]["placement"] == serde_json::json!({ "gpu": "bgc" }))
    };
    assert!(runs_bgc("bgc = true"));
    assert!(!runs_bgc("bgc = false"));
    assert!(!runs_bgc("quirks = ['local-is-global']"));
}

/// The cost of a bottom-up level on the device is measured unless the board file gives it.
#[test]
fn directions_on_a_device_depend_on_its_own_costs() {
    let Some(user) = User::with_device("directions_on_a_device_depend_on_its_own_costs") else { return };
    let board = |line: &str| format!("schema = 1\n[board]\nname = 'd'\n[[opencl.devices]]\nname = '*e*'\nvia = 'pocl'\n{line}");
    let (plain, doubled) = (user.file("plain.toml", &board("")), user.file("doubled.toml", &board("bottom_up_permille = 2000\n")));
    let chosen = |graph: &str, policy: &str, board: &str| {
        let record = user.json(&["bench", graph, "--roots", "1", "--policy", policy, "--board", board, "--json", "-"]);
        let chosen = &record["search"]["chosen"];
        (chosen["policy"].as_str().unwrap().to_owned(), chosen["reason"].as_str().unwrap().to_owned())
    };
    let (policy, reason) = chosen("kronecker:14", "auto", &plain);
    let costs: Vec<f64> = policy.strip_prefix("sampled:").unwrap().split(',').map(|cost| cost.parse().unwrap()).collect();
    assert!(reason.contains("(measured)"), "{policy}: {reason}");
    // One measured factor scales all three costs.
    let factors: Vec<f64> = costs.iter().zip([1.0, 0.5, 0.7]).map(|(cost, usual)| cost / usual).collect();
    assert!(factors[0] > 0.0 && factors.iter().all(|factor| (factor / factors[0] - 1.0).abs() < 0.01), "{policy}");
    let (policy, reason) = chosen("kronecker:14", "sampled", &doubled);
    assert_eq!(policy, "sampled:2,1,1.4", "{reason}");
    assert!(reason.contains("(board file)"), "{reason}");
    let shown = user.json(&["board", "show", "--board", &doubled, "--policy", "sampled", "--json"]);
    assert_eq!(shown["policy"]["policy"], "sampled:2,1,1.4", "{shown}");
    // Costs given by the user are kept, and nothing is measured for a small graph.
    assert_eq!(chosen("kronecker:14", "sampled:1,1,2", &doubled).0, "sampled:1,1,2");
    assert_eq!(chosen("kronecker:9", "sampled", &plain).0, "sampled");
}
