//! Finds out what the compiler can do.

use std::{env, process::Command};

fn main() {
    println!("cargo::rustc-check-cfg=cfg(socbfs_avx512)");
    println!("cargo::rerun-if-changed=build.rs");
    // `std::arch` has AVX-512 since Rust 1.89; older compilers build without it.
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(compiler).arg("--version").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
    if version.as_deref().and_then(minor).is_some_and(|minor| minor >= 89) {
        println!("cargo::rustc-cfg=socbfs_avx512");
    }
}

/// 89 of "rustc 1.89.0 (...)".
fn minor(version: &str) -> Option<u32> {
    version.split_whitespace().nth(1)?.split('.').nth(1)?.parse().ok()
}
