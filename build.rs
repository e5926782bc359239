//! What the compiler can do, and which sources these are: both go into every record.

use std::process::Command;

fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    println!("cargo::rustc-check-cfg=cfg(socbfs_avx512)");
    let rustc = output(Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("--version")).unwrap_or_else(|| "unknown".into());
    // `std::arch` has AVX-512 since Rust 1.89; older compilers build without it.
    let minor = rustc.split_whitespace().nth(1).and_then(|version| version.split('.').nth(1)).and_then(|minor| minor.parse::<u32>().ok());
    if minor.is_some_and(|minor| minor >= 89) {
        println!("cargo::rustc-cfg=socbfs_avx512");
    }
}
