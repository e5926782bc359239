//! Random bytes, and valid files with random changes, for readers of every file with settings or records: the file is read, or refused with
//! a reason, without a panic. (Readers of graphs are tested in src/input/tests.rs, sensors in power/src/families/fuzz.rs.)
//!
//! `PROPTEST_CASES` is the number of cases of each test. If it is not set, it is 100,000 with `SOCBFS_TEST_ALL`, else 300.

use std::{fs, path::Path};

use proptest::{collection::vec, prelude::*, sample::Index, test_runner::TestRunner};
use socbfs::bfs::{LevelStats, Planner};
use socbfs_boards::{
    board::{self, Board, CpuList},
    measure::Calibration,
};
use socbfs_policy::{LevelDevice, Mlp, Objective, Policy, PolicyPlanner, mlp::NetworkKind};
use socbfs_tools::{
    bench::read_plans,
    calibrate::{MeasuredGraph, Partial, PartialHeader},
    record::Environment,
    record::{PoliciesReport, PolicyGraph},
    report::{self, Comparison, Run, read_array},
    train::RecordsFile,
};

use crate::built::{Folder, socbfs};

/// Texts that replace a word of a file.
const PIECES: [&str; 24] = [
    "",
    "0",
    "-1",
    "1",
    "1e999",
    "-1e-999",
    "nan",
    "inf",
    "18446744073709551616",
    "9223372036854775807",
    "4294967295",
    "0x10",
    "true",
    "null",
    "[]",
    "{}",
    "\"\"",
    "\"\\u0000\"",
    "\n",
    "\r",
    "\u{202e}",
    "=",
    "[[",
    "\u{0}",
];

/// A change of a valid text.
#[derive(Debug, Clone)]
enum Change {
    /// Replaces a byte.
    Byte(Index, u8),
    /// Replaces a word or number.
    Word(Index, usize),
    /// Removes or repeats a line.
    Line(Index, bool),
    /// Cuts the rest off.
    Cut(Index),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        (any::<Index>(), 0..PIECES.len()).prop_map(|(at, piece)| Change::Word(at, piece)),
        (any::<Index>(), 0..PIECES.len()).prop_map(|(at, piece)| Change::Word(at, piece)),
        (any::<Index>(), any::<bool>()).prop_map(|(at, twice)| Change::Line(at, twice)),
        any::<Index>().prop_map(Change::Cut),
    ]
}

fn changed(mut text: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for change in changes {
        if text.is_empty() {
            break;
        }
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+');
        match change {
            Change::Byte(at, byte) => {
                let at = at.index(text.len());
                text[at] = *byte;
            }
            Change::Word(at, piece) => {
                let at = at.index(text.len());
                let start = text[..at].iter().rposition(|byte| !is_word(byte)).map_or(0, |before| before + 1);
                let end = text[at..].iter().position(|byte| !is_word(byte)).map_or(text.len(), |length| at + length);
                text.splice(start.min(end)..end, PIECES[*piece].bytes());
            }
            Change::Line(at, twice) => {
                let at = at.index(text.len());
                let start = text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |before| before + 1);
                let end = text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |length| at + length + 1);
                let line = text[start..end].to_vec();
                text.splice(start..end, if *twice { [&line[..], &line].concat() } else { Vec::new() });
            }
            Change::Cut(at) => text.truncate(at.index(text.len() + 1)),
        }
    }
    text
}

/// Number of cases of each test.
fn cases() -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    asked.unwrap_or(if std::env::var_os("SOCBFS_TEST_ALL").is_some() { 100_000 } else { 300 })
}

/// Calls `read` with changed `seeds` and with random bytes. `read` returns whether it accepted the text. The test fails if all texts are
/// accepted, or none of a thousand: then the cases would test little.
fn fuzz(seeds: &[impl AsRef<[u8]>], read: impl Fn(&[u8]) -> bool) {
    for seed in seeds {
        assert!(read(seed.as_ref()), "a seed is refused: {}", String::from_utf8_lossy(seed.as_ref()));
    }
    let some = vec(any::<u8>(), 0..200);
    let strategy = (any::<Index>(), vec(change(), 1..5), prop_oneof![9 => Just(None), 1 => some.prop_map(Some)]);
    let config = ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() };
    let (accepted, refused) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let tried = TestRunner::new(config).run(&strategy, |(seed, changes, nonsense)| {
        let text = nonsense.unwrap_or_else(|| changed(seeds[seed.index(seeds.len())].as_ref().to_vec(), &changes));
        let count = if read(&text) { &accepted } else { &refused };
        count.set(count.get() + 1);
        Ok(())
    });
    tried.unwrap_or_else(|error| panic!("{error}"));
    assert!(refused.get() > 0 && (accepted.get() > 0 || cases() < 1000), "{} accepted, {} refused", accepted.get(), refused.get());
}

/// The same as [`fuzz`] for a reader of text; `then` uses an accepted value.
fn fuzz_text<T, E: std::fmt::Display>(seeds: &[impl AsRef<[u8]>], read: impl Fn(&str) -> Result<T, E>, then: impl Fn(T)) {
    fuzz(seeds, |bytes| match read(&String::from_utf8_lossy(bytes)) {
        Ok(value) => {
            then(value);
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
    });
}

/// Runs `socbfs` with `arguments` and the path of a file, and returns the content of that file.
fn made(folder: &Folder, name: &str, arguments: &[&str]) -> String {
    let path = folder.path(name);
    let output = socbfs(&[arguments, &[&path]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read_to_string(path).unwrap()
}

#[test]
fn boards() {
    let seeds: Vec<&str> = board::shipped().map(|name| board::shipped_text(name).unwrap()).collect();
    fuzz_text(&seeds, |text| Board::<Policy>::parse(text, "board.toml"), |_| ());
    fuzz_text(&seeds, |text| Board::<Policy>::entries(text, "board.toml"), |_| ());
}

#[test]
fn calibrations() {
    let folder = Folder::new();
    let quick = ["calibrate", "--quick", "--graphs", "2", "--budget", "0.1s", "--threads", "1", "--device", "cpu", "-o"];
    let seed = made(&folder, "c.toml", &quick);
    fuzz_text(&[seed], |text| Calibration::parse(text, "c.toml"), |calibration| drop(calibration.to_toml()));
}

#[test]
fn weights() {
    let seeds = [NetworkKind::Surf, NetworkKind::Mlp].map(|form| Mlp::shipped(form).unwrap().weights().to_toml());
    let stats =
        LevelStats { frontier_vertices: 10, frontier_edges: 100, unvisited_vertices: 1000, unvisited_edges: 5000, ..LevelStats::default() };
    fuzz_text(&seeds, Mlp::parse, |mlp| assert!(!mlp.logit(&stats, 3).is_nan()));
}

#[test]
fn records_of_runs() {
    let folder = Folder::new();
    let bench = ["bench", "kronecker:8", "--roots", "2", "--threads", "1", "--device", "cpu", "--json"];
    let seed = made(&folder, "r.json", &bench);
    let right = Run::parse(&seed, "r.json").unwrap();
    let compared = |run: Run| {
        if let Ok(comparison) = Comparison::new(("a", &right), ("b", &run), true) {
            comparison.table(["a", "b"]);
        }
    };
    fuzz_text(&[&seed], |text| Run::parse(text, "r.json"), compared);
    fuzz_text(&[&seed], |text| read_plans(text, "r.json"), |_| ());
}

#[test]
fn records_of_training() {
    let folder = Folder::new();
    let train = [
        "train",
        "grid:16x16",
        "kronecker:6",
        "--roots",
        "2",
        "--threads",
        "1",
        "--device",
        "cpu",
        "--generated",
        "0",
        "--collect-only",
        "--records",
    ];
    // Without the checksums, which would refuse every change before the reader sees it.
    let seed = made(&folder, "t.jsonl", &train);
    let seed: String = seed.lines().map(|line| line.rsplit_once(",\"xxh3\":").unwrap().0.to_owned() + "}\n").collect();
    let path = folder.path("changed");
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        RecordsFile::read(Path::new(&path))
    };
    fuzz_text(&[seed], read, |records| {
        for search in records.searches() {
            for level in 0..search.levels.len() {
                search.stats(level, None);
            }
        }
    });
}

#[test]
fn kept_graphs_of_policies() {
    let record = made(&Folder::new(), "p.json", &["policies", "kronecker:5", "--roots", "2", "--turns", "1", "--device", "cpu", "--json"]);
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let environment = Environment::read(Path::new("/nowhere"));
    fuzz(&[record["graphs"][0].to_string()], |bytes| {
        let Ok(graph) = serde_json::from_slice::<PolicyGraph>(bytes) else { return false };
        let (schema, schema_version, fits) = (report::POLICIES_SCHEMA, report::POLICIES_SCHEMA_VERSION, graph.fits());
        let report = PoliciesReport {
            schema: schema.into(),
            schema_version,
            environment: environment.clone(),
            default_policy: "auto".into(),
            graphs: vec![graph],
            warnings: Vec::new(),
        };
        fits && !report::figures::text(&report::policies_of_last(&report), false, true).is_empty()
    });
}

#[test]
fn measurements_of_a_calibration() {
    let folder = Folder::new();
    let identity = Calibration::parse(
        &made(&folder, "c.toml", &["calibrate", "--quick", "--graphs", "2", "--budget", "0.1s", "--threads", "1", "--device", "cpu", "-o"]),
        "c.toml",
    );
    let header = PartialHeader::new("build".to_owned(), identity.unwrap().identity, 1, true);
    let path = folder.path("p.partial");
    let open = || Partial::open::<_, MeasuredGraph>(Path::new(&path), &header);
    drop(open().unwrap());
    let seed = fs::read(&path).unwrap();
    fuzz(&[seed], |bytes| {
        fs::write(&path, bytes).unwrap();
        open().is_ok_and(|(_, _, begun)| begun.is_none())
    });
}

#[test]
fn trees() {
    let folder = Folder::new();
    for name in ["p.npy", "p.csv", "p.txt"] {
        let seed_path = folder.path(name);
        let run = ["run", "grid:5x5", "--root", "0", "--threads", "1", "--device", "cpu", "--parents", &seed_path];
        assert!(socbfs(&run).output().unwrap().status.success());
        let (seed, path) = (fs::read(&seed_path).unwrap(), folder.path(&format!("changed-{name}")));
        fuzz(&[seed], |bytes| {
            fs::write(&path, bytes).unwrap();
            read_array(Path::new(&path), 25).is_ok()
        });
    }
}

#[test]
fn settings() {
    let policies = [
        "auto",
        "tc",
        "alpha-beta:14,24",
        "adaptive",
        "cost-model",
        "surf",
        "mlp",
        "gunrock",
        "enterprise",
        "selective",
        "concurrent",
        "xbfs",
    ];
    let stats =
        LevelStats { frontier_vertices: 1, frontier_edges: 4, unvisited_vertices: 1000, unvisited_edges: 5000, ..LevelStats::default() };
    fuzz_text(&policies, str::parse::<Policy>, |policy| {
        assert_eq!(policy.to_string().parse::<Policy>().ok().as_ref(), Some(&policy), "{policy}");
        let mut planner = PolicyPlanner::new(policy, LevelDevice::Cpu);
        planner.plan(&stats);
    });
    fuzz_text(&["0-3,7", "1"], str::parse::<CpuList>, |_| ());
    fuzz_text(&["time", "energy"], str::parse::<Objective>, |_| ());
}
