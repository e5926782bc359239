//! All integration tests as modules of one program, since each further test program takes seconds to link and contains the library again.
//!
//! Add a new file of tests as a module here. Tests with a counting allocator are programs of their own (see Cargo.toml).
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{fs, path::Path};

mod budgets;
mod implementations;
mod losing;
mod reference;
mod searches;

mod components;
mod data;
mod examples;
mod gpu_account;
mod gpu_counts;
mod gpu_faults;
mod gpu_races;
mod gpu_search;
mod gpu_small_devices;
mod info;
mod many;
mod opencl;
mod rooms;
mod search;
mod sources;

/// Cargo would ignore a file that is neither a module nor a target, and its tests would never run.
#[test]
fn every_file_of_tests_is_run() {
    let mut modules_found = 0;
    for package in ["", "cluster", "tools"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(package);
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        let (modules, manifest) = (read("tests/suite.rs"), read("Cargo.toml"));
        for entry in fs::read_dir(root.join("tests")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_module = modules.lines().any(|line| line == format!("mod {name};"));
            modules_found += usize::from(is_module);
            let is_target = manifest.contains(&format!("path = \"tests/{name}.rs\""));
            assert!(is_module != is_target, "{} is to be either a module of suite.rs or a [[test]] of Cargo.toml", path.display());
        }
    }
    assert!(modules_found > 30, "{modules_found} modules");
}

/// A stranger finds every suite in the index.
#[test]
fn the_index_names_every_file_of_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(name == "README" || index.contains(&format!("`{name}")), "tests/README.md does not name {}", path.display());
    }
}

/// The test harness captures what a print macro writes in a test that passes. The tests in virtual machines run without it.
#[test]
fn tests_say_skipped_where_it_is_seen() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in ["src", "algo", "boards", "io", "machine", "policy", "power", "cluster", "tools", "capi", "tests"] {
        rooms::files(&root.join(folder), &mut all);
    }
    let is_captured = |line: &str| line.contains("println!(") && line.contains(concat!("SKIP", "PED"));
    let mut captured = Vec::new();
    for file in all.iter().filter(|file| !file.ends_with("tests/vm_energy.rs")) {
        let text = fs::read_to_string(file).unwrap();
        captured.extend(text.lines().filter(|line| is_captured(line)).map(|line| format!("{}: {}", file.display(), line.trim())));
    }
    assert!(captured.is_empty(), "\n{}", captured.join("\n"));
}
