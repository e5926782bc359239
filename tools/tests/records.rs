//! Compares docs/records.md with the records that the program writes: every field of a record is described, and every field that is
//! described exists.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::{
    built::{Folder, socbfs, text},
    command::board_with_rails,
    implementations,
};

/// Fields that only searches on a device, over ranks, or by the rules of Green Graph500 write.
const ABSENT: [&str; 4] = ["cluster.*", "device_ns", "energy.green.power_saving[]", "with_previous"];

/// The paths of all values in `value`: `a.b`, and `a[]` for the elements of a list.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                paths(value, &below, found);
            }
        }
        Value::Array(elements) if !elements.is_empty() => elements.iter().for_each(|element| paths(element, &format!("{path}[]"), found)),
        Value::Array(_) => _ = found.insert(format!("{path}[]")),
        _ => _ = found.insert(path.to_owned()),
    }
}

/// Whether the documented field `row` is `path`, or stands for it. A list may be empty and a value null, with nothing below it.
fn stands_for(row: &str, path: &str) -> bool {
    let below = row.strip_suffix('*').is_some_and(|start| path.starts_with(start));
    let whole = row.trim_end_matches(".*").trim_end_matches("[]");
    path == row || below || path.trim_end_matches("[]") == whole
}

/// The fields in the first column of the table below a heading of the page.
fn documented(page: &str, heading: &str) -> Vec<String> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading)).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let names = rows.flat_map(|row| row.split('|').nth(1).unwrap().split(',').map(|name| name.trim().trim_matches('`').to_owned()));
    names.collect()
}

/// Compares the table below `heading` with the fields of `records` below `prefix`.
fn compare(page: &str, heading: &str, records: &[Value], prefix: &str) {
    let rows = documented(page, heading);
    assert!(rows.len() > 10, "{heading}: {rows:?}");
    let mut found = BTreeSet::new();
    records.iter().for_each(|record| paths(record, "", &mut found));
    let found: BTreeSet<&str> = found.iter().filter_map(|path| path.strip_prefix(prefix)).collect();
    let missing: Vec<_> = found.iter().filter(|path| !rows.iter().any(|row| stands_for(row, path))).collect();
    assert!(missing.is_empty(), "{heading}: docs/records.md does not describe {missing:?}");
    let made_up: Vec<_> = rows.iter().filter(|row| !ABSENT.contains(&&***row) && !found.iter().any(|path| stands_for(row, path))).collect();
    assert!(made_up.is_empty(), "{heading}: no record has {made_up:?}");
}

#[test]
fn the_page_of_records_describes_every_field() {
    const TEST: &str = "the_page_of_records_describes_every_field";
    let folder = Folder::new();
    let (root, json) = (board_with_rails(&folder), folder.path("r.json"));
    let record = |more: &[&str]| -> Value {
        let bench = ["bench", "--kronecker", "8", "--roots", "2", "--json", &json];
        let output = socbfs(&[&bench, more].concat()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap()
    };
    let energy = ["--energy", "ina2xx", "--sysfs-root", &root, "--energy-seconds", "0.1", "--energy-repeats", "1"];
    let mut records = vec![record(&[&["--device", "cpu"], &energy[..]].concat())];
    if implementations::device_of(TEST, "Portable Computing Language").is_some() {
        let device = ["--device", "Portable Computing Language", "--policy", "bg", "--device-times"];
        records.push(record(&device));
        assert!(records[1]["search"]["devices"][0]["name"].is_string(), "{:#}", records[1]["search"]);
    }
    let page = fs::read_to_string(Path::new(crate::REPOSITORY).join("docs/records.md")).unwrap();
    compare(&page, "The fields of `bench`", &records, "");
    compare(&page, "A level", &records, "roots[].level_records[].");
    compare(&page, "Measured energy", &records, "energy.measured.");
}

#[test]
fn every_kind_of_record_is_in_the_page() {
    let page = fs::read_to_string(Path::new(crate::REPOSITORY).join("docs/records.md")).unwrap();
    let folder = Folder::new();
    let json = folder.path("r.json");
    let graph = ["kronecker:6", "--roots", "1", "--device", "cpu", "--json", &json];
    let map = folder.file("a.map", "type octile\nheight 1\nwidth 2\nmap\n..\n");
    let commands: [&[&str]; 7] = [
        &["bench"],
        &["policies", "--only", "tc", "--turns", "1"],
        &["analyze", "--only", "redundant"],
        &["energy", "--json", &json, "--", "true"],
        &["grid", &map, "--sources", "0,0", "--json", &json],
        &["sensors", "--json"],
        &["doctor", "--json"],
    ];
    for (index, command) in commands.iter().enumerate() {
        let arguments = if index < 3 { [command, &graph[..]].concat() } else { command.to_vec() };
        let output = socbfs(&arguments).output().unwrap();
        let written = if index < 5 { fs::read_to_string(&json).unwrap() } else { text(&output.stdout) };
        let record: Value = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{command:?}: {error}\n{}", text(&output.stderr)));
        let schema = record["schema"].as_str().unwrap();
        assert!(record["schema_version"].is_u64(), "{command:?}");
        let is_named = page.lines().any(|line| line.starts_with(&format!("| `{}", command[0])) && line.contains(&format!("`{schema}`")));
        assert!(is_named, "docs/records.md does not say that `{}` writes {schema}", command[0]);
    }
}

/// A value without its numbers, and with the first element of each list.
fn form(value: &Value) -> Value {
    match value {
        Value::Number(_) => Value::from("number"),
        Value::Array(elements) => elements.iter().take(1).map(form).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), form(value))).collect(),
        other => other.clone(),
    }
}

/// The records of runs by the rules of Green Graph500 have the form of those that are kept, for each scope that qualifies. (With
/// `SOCBFS_UPDATE=1` the kept ones are written anew.)
#[test]
#[ignore = "windows of 100 s and more; tests/run --all runs it"]
fn records_of_green_runs_are_as_kept() {
    let run = |scope: &'static str| {
        let folder = Folder::new();
        let (root, board, json) = (board_with_rails(&folder), folder.path("board.toml"), folder.path("r.json"));
        let rail = "[[power.rails]]\nfamily = 'ina2xx'\nid = '0-004*'\ndomain = 'board'\ncounted = true\n";
        fs::write(&board, format!("schema = 1\n[board]\nname = 'a-board'\n[power]\nscope = '{scope}'\n{rail}")).unwrap();
        let bench = ["bench", "--kronecker", "8", "--roots", "2", "--device", "cpu", "--board", &board, "--json", &json];
        let green = ["--green", "--energy", "auto", "--energy-repeats", "1", "--sysfs-root", &root];
        let output = socbfs(&[&bench[..], &green].concat()).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let record: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        let windows = record["energy"]["measured"]["windows"].as_array().unwrap();
        assert!(windows.iter().all(|window| window["energy"]["seconds"].as_f64().unwrap() >= 100.0), "{windows:?}");
        (scope, serde_json::to_string_pretty(&form(&record["energy"])).unwrap() + "\n")
    };
    let runs = ["board-input", "wall"].map(|scope| std::thread::spawn(move || run(scope)));
    for (scope, record) in runs.map(|run| run.join().unwrap()) {
        let kept = Path::new(crate::REPOSITORY).join(format!("tests/fixtures/green/{scope}.json"));
        if std::env::var_os("SOCBFS_UPDATE").is_some_and(|update| update == "1") {
            fs::create_dir_all(kept.parent().unwrap()).unwrap();
            fs::write(&kept, &record).unwrap();
        }
        assert_eq!(record, fs::read_to_string(&kept).unwrap(), "{}", kept.display());
    }
}
