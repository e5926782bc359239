//! Board profiles: what is known about a machine, as TOML files that are compiled in or loaded from a path.
//!
//! A profile sets defaults (docs/settings.md says what comes before them). This module does not depend on the policies: the type of
//! `[policy]` is a parameter.

mod check;
mod cpus;
mod detect;
mod document;
mod error;
mod keys;
mod schema;
mod versioned;

use std::path::Path;

use serde::de::DeserializeOwned;

use socbfs::words;

pub use check::{Violation, is_work_group};
pub(crate) use check::{check_work_group, not_negative, positive, refuse};
pub(crate) use cpus::ranges;
pub use cpus::{CpuList, CpuListError};
pub use detect::{Candidate, Detection, Evidence, detect};
pub use document::{Document, Entry, covers};
pub use error::DocumentError;
pub use keys::{KEYS, Key, key};
pub use schema::{
    Adaptive, Board, Cluster, Cpu, Detect, Goal, Handover, Identity, OpenCl, OpenClDevice, OperatingPoint, Power, Quirk, Speeds,
    StrategyWatts, UnknownGoal, Via,
};
pub use versioned::{Kind, entries};

/// The version of the profile format that this build reads.
pub const SCHEMA: u32 = 1;

/// The kind of TOML file that a profile is.
const PROFILE: Kind = Kind { name: "board profile", short: "profile", schema: SCHEMA, former: FORMER };

/// Former keys and tables of profiles, and what to write instead.
const FORMER: &[(&str, &str)] = &[
    ("selective.top_down_gpu_from_edges", "write it as gpu_from in [adaptive.top_down]"),
    ("selective.top_down_gpu_up_to_edges", "write it as up_to in [adaptive.top_down]"),
    ("selective.bottom_up_gpu_from_vertices", "write it as gpu_from in [adaptive.bottom_up]"),
    ("selective.bottom_up_gpu_up_to_vertices", "write it as up_to in [adaptive.bottom_up]"),
    ("selective", "write gpu_from and up_to in [adaptive.top_down] and [adaptive.bottom_up]"),
    ("concurrent.top_down_split_from_edges", "write it as split_from in [adaptive.top_down]"),
    ("concurrent.bottom_up_split_from_vertices", "write it as split_from in [adaptive.bottom_up]"),
    ("concurrent.top_down_gpu_share", "write it as gpu_permille in [adaptive.top_down], in thousandths"),
    ("concurrent.bottom_up_gpu_share", "write it as gpu_permille in [adaptive.bottom_up], in thousandths"),
    ("concurrent", "write split_from and gpu_permille in [adaptive.top_down] and [adaptive.bottom_up]"),
    ("speeds.handover_us", "write it as fixed_us in [adaptive.handover]"),
    ("power.watts.idle", "remove it; nothing reads the power of the idle machine"),
    ("cpu.parallel_arcs", BY_THE_CACHE),
    ("cpu.parallel_hub_arcs", BY_THE_CACHE),
    ("cpu.parallel_row_arcs", BY_THE_CACHE),
    ("cpu.piece", BY_THE_CACHE),
];

const BY_THE_CACHE: &str = "remove it; how threads share a level follows from the size of the cache";

/// Most vertices of a batch: 64 MiB of numbers.
pub const MOST_BATCH: usize = 1 << 24;

/// Name of the profile for an unknown machine.
pub const GENERIC: &str = "generic";

/// A list of these profiles: name and text.
macro_rules! profiles {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../profiles/", $name, ".toml")))),+]
    };
}

/// The compiled-in profiles in the order of their names, the generic one last.
const SHIPPED: &[(&str, &str)] = profiles!(
    "amd-a10-7850k",
    "amd-ryzen-2400g",
    "framework-desktop",
    "intel-core-ultra",
    "intel-i7-4790",
    "jetson-orin",
    "odroid-n2",
    "odroid-xu3",
    "odroid-xu4",
    "raspberry-pi-5",
    "rk3588",
    "snapdragon-845",
    "snapdragon-db410c",
    "snapdragon-rb5",
    "steam-deck",
    "generic",
);

/// The names of the compiled-in profiles.
pub fn shipped() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// The text of a compiled-in profile.
pub fn shipped_text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

impl<P> Board<P> {
    /// The profile of an unknown machine, which sets nothing.
    pub fn generic() -> Self {
        Self {
            schema: SCHEMA,
            estimates: Vec::new(),
            board: Identity { name: GENERIC.to_owned(), ..Identity::default() },
            detect: Detect::default(),
            cpu: Cpu::default(),
            opencl: OpenCl::default(),
            policy: None,
            adaptive: Adaptive::default(),
            speeds: Speeds::default(),
            power: Power::default(),
            operating_points: Vec::new(),
        }
    }

    /// Reads and checks the profile at `path`.
    ///
    /// # Errors
    /// [`DocumentError`] with the file, the line, the key and what would be correct.
    pub fn load(path: &Path) -> Result<Self, DocumentError>
    where
        P: DeserializeOwned,
    {
        Self::parse(&read(path)?, &path.display().to_string())
    }

    /// Reads and checks a profile from its text. `file` names it in errors.
    ///
    /// # Errors
    /// As [`Board::load`].
    pub fn parse(text: &str, file: &str) -> Result<Self, DocumentError>
    where
        P: DeserializeOwned,
    {
        PROFILE.parse(text, file, |board: &Self, document| board.validate().and_then(|()| check_estimates(&board.estimates, document)))
    }

    /// Whether the value of the key at `path` is an estimate: not measured on this board.
    pub fn is_estimate(&self, path: &str) -> bool {
        self.estimates.iter().any(|name| covers(name, path))
    }

    /// Every key of the profile in `text` that has a value, in the order of the file, except `schema` and `estimates`, with its line and
    /// the source of its value. `file` names the profile in errors.
    ///
    /// # Errors
    /// As [`Board::load`].
    pub fn entries(text: &str, file: &str) -> Result<Vec<Entry>, DocumentError>
    where
        P: DeserializeOwned,
    {
        let board = Self::parse(text, file)?;
        entries(text, file, &board.estimates)
    }
}

/// The text of the profile at `path`.
///
/// # Errors
/// [`DocumentError::Read`].
pub fn read(path: &Path) -> Result<String, DocumentError> {
    PROFILE.read(path)
}

fn check_estimates(estimates: &[String], document: &Document<'_>) -> Result<(), Violation> {
    let refuse = |reason| Err(Violation { key: "estimates".to_owned(), reason });
    for (place, name) in estimates.iter().enumerate() {
        if estimates[..place].contains(name) {
            return refuse(format!("names {name} twice"));
        }
        if !document.has(name) {
            let nearest = words::nearest(name, document.paths());
            let hint = nearest.map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"));
            return refuse(format!("names {name}, which this profile does not set{hint}"));
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;
    use serde::{Deserialize, Serialize};
    use socbfs_policy::NEVER;

    /// Replaces a policy in tests: a table with one key.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Kind {
        kind: String,
    }

    type Board = super::Board<Kind>;

    /// A profile that sets every key.
    pub(crate) const FULL: &str = "\
schema = 1
estimates = ['adaptive.top_down', 'speeds.launch_us']
[board]
name = 'odroid-xu3'
vendor = 'Hardkernel'
soc = 'Exynos 5422'
memory_bytes = 2_147_483_648
memory_bandwidth_mega_bytes_per_s = 14_928
url = 'x'
notes = 'y'
[detect]
device_tree = ['hardkernel,odroid-xu3']
device_tree_model = ['Hardkernel *']
dmi_vendor = ['a*']
dmi_product = ['b']
dmi_board = ['c']
cpu_model = ['*d*']
[cpu]
threads = 4
cpus = '4-7'
batch = 2048
[[cpu.clusters]]
name = 'little'
cores = 4
core_type = 'Cortex-A7'
max_mhz = 1400
cpus = '0-3'
capacity = 539
[[cpu.clusters]]
name = 'big'
cores = 4
cpus = '4-7'
[[opencl.devices]]
name = 'Mali-T628'
via = 'rusticl'
compute_units = 4
max_alloc_bytes = 1
max_work_group = 256
work_group = 64
bottom_up_permille = 700
local_bytes = 32_768
global_bytes = 2
timeout_s = 30
memory_way = 'alloc-host-ptr'
bgc = false
quirks = ['max-alloc-unchecked', 'local-is-global']
[policy]
kind = 'bc'
[adaptive.top_down]
gpu_from = 1
split_from = 2
up_to = 3
gpu_permille = 400
[adaptive.bottom_up]
gpu_from = 4
split_from = 5
up_to = 6
gpu_permille = 600
[adaptive.handover]
fixed_us = 8.0
mega_vertex_us = 9.0
[speeds]
tc_mega_edges_per_s = 1.0
tg_mega_edges_per_s = 2
tgm_mega_edges_per_s = 3.0
bc_mega_edges_per_s = 4.0
bg_mega_edges_per_s = 5.0
bgc_mega_edges_per_s = 6.0
launch_us = 7.0
[[operating_points]]
goal = 'efficient'
cpus = '1-2'
device = 'cpu'
mteps = 10.0
watts = 2.5
[operating_points.clocks_khz]
big = 1_800_000
[power]
scope = 'soc-rails'
[power.watts]
tc = 1.0
tg = 2.0
tgm = 3.0
bc = 4.0
bg = 5.0
bgc = 6.0
[[power.rails]]
family = 'ina2xx'
id = '*-0040'
label = 'VDD_ARM'
domain = 'cpu-big'
counted = true
sign = -1
scale = 0.5
";

    #[test]
    fn every_shipped_profile_is_valid_and_named_like_its_file() {
        assert!(shipped().count() > 0);
        for (name, text) in SHIPPED {
            let board = Board::parse(text, name).unwrap();
            assert_eq!(board.board.name, *name);
        }
        let generic = Board::parse(shipped_text(GENERIC).unwrap(), GENERIC).unwrap();
        let sets_nothing = Board { board: Identity { name: GENERIC.to_owned(), ..Identity::default() }, ..generic };
        assert_eq!(sets_nothing, Board::generic());
    }

    #[test]
    fn every_shipped_profile_but_the_generic_one_describes_a_gpu() {
        for (name, text) in SHIPPED {
            let opencl = Board::parse(text, name).unwrap().opencl;
            let gpus: Vec<&str> = opencl.gpus().map(|device| device.name.as_str()).collect();
            assert_eq!(gpus.is_empty(), *name == GENERIC, "{name}");
            assert!(!gpus.iter().any(|gpu| gpu.starts_with("pthread") || gpu.starts_with("cpu")), "{name}: {gpus:?}");
        }
    }

    #[test]
    fn every_shipped_value_has_a_source() {
        for (name, text) in SHIPPED {
            for entry in super::Board::<toml::Table>::entries(text, name).unwrap() {
                assert!(entry.key == "board.name" || entry.source.is_some(), "{name}:{}: {}", entry.line, entry.key);
            }
        }
    }

    #[test]
    fn unmeasured_thresholds_shares_and_speeds_are_marked_as_estimates() {
        // Values that a paper prints for the board. Every other value must be marked as an estimate.
        let printed = [("amd-a10-7850k", "adaptive.top_down.gpu_from")];
        for (name, text) in SHIPPED {
            for entry in super::Board::<toml::Table>::entries(text, name).unwrap() {
                let decides = ["adaptive.", "speeds."].iter().any(|table| entry.key.starts_with(table));
                assert!(!decides || entry.estimate || printed.contains(&(*name, entry.key.as_str())), "{name}: {}", entry.key);
            }
        }
    }

    #[test]
    fn every_file_in_boards_is_compiled_in() {
        let mut files = 0;
        for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                let name = path.file_stem().unwrap().to_str().unwrap();
                assert_eq!(shipped_text(name).unwrap(), fs::read_to_string(&path).unwrap());
                files += 1;
            }
        }
        assert_eq!(files, SHIPPED.len());
    }

    #[test]
    fn a_full_profile_is_read_and_written() {
        let board = Board::parse(FULL, "x.toml").unwrap();
        assert_eq!(board.cpu.threads, Some(4));
        assert_eq!(board.cpu.cpus.as_ref().unwrap().numbers(), [4, 5, 6, 7]);
        assert_eq!(board.policy, Some(Kind { kind: "bc".into() }));
        assert_eq!(board.opencl.devices[0].quirks, [Quirk::MaxAllocUnchecked, Quirk::LocalIsGlobal]);
        assert_eq!((board.power.rails[0].sign, board.power.rails[0].scale), (-1, 0.5));
        let again = Board::parse(&toml::to_string(&board).unwrap(), "again").unwrap();
        assert_eq!(again, board);
    }

    #[test]
    fn the_documentation_names_every_key_and_sensor() {
        let documentation = include_str!("../../README.md");
        let sensors = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/energy.md")).unwrap();
        for family in socbfs_power::Family::ALL {
            let is_named = |page: &str| page.contains(&format!("`{family}"));
            assert!(is_named(documentation) && is_named(&sensors), "{family}");
        }
        for entry in Board::entries(FULL, "x.toml").unwrap() {
            let key = entry.key.rsplit('.').next().unwrap();
            assert!(documentation.contains(&format!("`{key}`")), "{}", entry.key);
        }
    }

    #[test]
    fn every_key_is_listed_with_its_use() {
        let entries = Board::entries(FULL, "x.toml").unwrap();
        for entry in &entries {
            assert!(key(&entry.key).is_some(), "{}", entry.key);
        }
        for known in KEYS {
            assert!(entries.iter().any(|entry| key(&entry.key) == Some(known)), "{}", known.path);
        }
    }

    #[test]
    fn a_bound_may_be_never() {
        let good = "schema = 1\n[board]\nname = 'a'\n[adaptive.top_down]\ngpu_from = ";
        let board = Board::parse(&format!("{good}'never'\nup_to = 7_000_000_000"), "x.toml").unwrap();
        assert_eq!((board.adaptive.top_down.gpu_from, board.adaptive.top_down.split_from), (Some(NEVER), None));
        assert_eq!(board.adaptive.top_down.up_to, Some(7_000_000_000));
        for wrong in ["'always'", "-1", "1.5"] {
            let error = Board::parse(&format!("{good}{wrong}"), "x.toml").unwrap_err().to_string();
            assert!(error.starts_with("x.toml:5: ") && error.contains("a whole number or \"never\""), "{error}");
        }
    }

    #[test]
    fn estimates_mark_all_keys_they_cover() {
        let entries = Board::entries(FULL, "x.toml").unwrap();
        let marked: Vec<_> = entries.iter().filter(|entry| entry.estimate).map(|entry| entry.key.as_str()).collect();
        assert_eq!(marked.len(), 5, "{marked:?}");
        assert!(marked.contains(&"adaptive.top_down.up_to") && marked.contains(&"speeds.launch_us"));
    }

    #[test]
    fn errors_name_file_line_and_cure() {
        let good = "schema = 1\n[board]\nname = 'a'\n";
        for (text, line, words) in [
            (format!("{good}colour = 'red'"), 4, &["colour", "known here"][..]),
            (format!("{good}[cpu]\nthread = 4"), 5, &["thread", "did you mean `threads`?"]),
            (format!("{good}[[opencl.devices]]\nname = 'x'\nmax_alloc_byte = 4"), 6, &["did you mean `max_alloc_bytes`?"]),
            (format!("{good}[[opencl.devices]]\nname = '*'"), 5, &["matches everything"]),
            (format!("{good}[[opencl.devices]]\nname = 'x'\nmemory_way = 'svm-corse'"), 6, &["did you mean `svm-coarse`?"]),
            (format!("{good}[[opencl.devices]]\nname = 'x'\nquirks = ['local-is-globl']"), 6, &["did you mean `local-is-global`?"]),
            (format!("{good}[cpu]\ncpus = '3-1'"), 5, &["ends before it starts"]),
            (format!("{good}[policy]\nkind = 'bc'\nalpha = 2"), 6, &["alpha"]),
            (format!("{good}[adaptve.top_down]\ngpu_from = 5"), 4, &["did you mean `adaptive`?"]),
            (format!("{good}memory_bytes = -1"), 4, &["-1"]),
            ("schema = 1\n[board]\nname = 3".to_owned(), 3, &["string"]),
            ("schema = 1\n\n[board]\nsoc = 'x'".to_owned(), 3, &["name"]),
            ("schema = 1\nname".to_owned(), 2, &["="]),
            ("schema = 1\n[board]\nname = 'a'\nname = 'b'".to_owned(), 4, &["duplicate"]),
        ] {
            match Board::parse(&text, "my.toml").unwrap_err() {
                DocumentError::Parse { file, line: found, message } => {
                    assert_eq!((file.as_str(), found), ("my.toml", line), "{text}: {message}");
                    assert!(words.iter().all(|word| message.contains(word)), "{text}: {message}");
                }
                other => panic!("{text}: {other}"),
            }
        }
    }

    #[test]
    fn keys_of_former_versions_are_refused_with_their_replacement() {
        let good = "schema = 1\nestimates = ['selective']\n[board]\nname = 'a'\n";
        for (key, instead) in FORMER {
            let (table, key) = key.rsplit_once('.').unwrap_or((key, ""));
            let text = match key {
                "" => format!("{good}[{table}]\n"),
                key => format!("{good}[{table}]\n# ours\n{key} = 1\n"),
            };
            let error = Board::parse(&text, "my.toml").unwrap_err().to_string();
            let wanted = if key.is_empty() { format!("my.toml:5: {table}: ") } else { format!("my.toml:7: {table}.{key}: ") };
            assert!(error.starts_with(&wanted) && error.ends_with(instead), "{error}");
        }
    }

    #[test]
    fn damaged_profiles_are_refused_or_read_but_never_panic() {
        let text = format!("{FULL}# é\n[board.\"ü.[\"]\n`x` = 'ß'");
        for (place, c) in text.char_indices() {
            for damaged in [text[..place].to_owned(), format!("{}{}", &text[..place], &text[place + c.len_utf8()..])] {
                if let Err(error) = Board::entries(&damaged, "damaged.toml") {
                    assert!(error.to_string().starts_with("damaged.toml:"), "{error}");
                }
            }
        }
    }

    #[test]
    fn other_versions_are_refused_before_their_keys_are_read() {
        for (text, line, word) in [
            ("# new\nschema = 2\ncolour = 'red'", 2, "schema 2"),
            ("schema = 0", 1, "schema 0"),
            ("schema = -1", 1, "schema -1"),
            ("[board]\nname = 'a'", 1, "no schema"),
        ] {
            let error = Board::parse(text, "my.toml").unwrap_err();
            assert!(matches!(&error, DocumentError::Version { line: found, .. } if *found == line), "{error}");
            assert!(error.to_string().contains(word) && error.to_string().starts_with(&format!("my.toml:{line}: ")), "{error}");
        }
        assert!(matches!(Board::parse("schema = 'one'", "f").unwrap_err(), DocumentError::Parse { line: 1, .. }));
    }

    #[test]
    fn estimates_must_name_keys_that_the_profile_sets() {
        let text = |names: &str| format!("schema = 1\nestimates = [{names}]\n[board]\nname = 'a'\n[cpu]\nthreads = 4");
        for (names, word) in [("'cpu.thread'", "did you mean cpu.threads?"), ("'cpu', 'cpu'", "twice"), ("'speeds'", "does not set")] {
            let error = Board::parse(&text(names), "my.toml").unwrap_err();
            assert!(matches!(&error, DocumentError::Check { line: 2, .. }), "{error}");
            assert!(error.to_string().contains(word), "{error}");
        }
        Board::parse(&text("'cpu', 'cpu.threads', 'board.name'"), "my.toml").unwrap();
    }
}
