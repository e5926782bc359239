//! Records which source and which compiler the program was made from.
//!
//! Works without git and from an unpacked archive: what can't be found out is "unknown".

use std::{env, path::Path, process::Command};

/// What the program is made of.
const SOURCES: [&str; 13] = [
    "Cargo.lock",
    "Cargo.toml",
    "algo",
    "boards",
    "build.rs",
    "cluster/src",
    "io",
    "machine",
    "kernels",
    "policy",
    "power",
    "src",
    "tools/src",
];

fn main() {
    // The crate is a folder of the checkout.
    let source = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| ".".into())).join("..");
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = output(Command::new(compiler).arg("--version"));
    set("SOCBFS_COMPILER", version);
    set("SOCBFS_COMMIT", commit(&source));
    set("SOCBFS_TARGET", env::var("TARGET").ok());
    set("SOCBFS_TARGET_FEATURES", env::var("CARGO_CFG_TARGET_FEATURE").ok());
    set("SOCBFS_OPT_LEVEL", env::var("OPT_LEVEL").ok());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
}

fn set(name: &str, value: Option<String>) {
    println!("cargo::rustc-env={name}={}", value.as_deref().unwrap_or("unknown"));
}

/// The commit of the checkout, with "+" where tracked files of the program differ from it. Only a checkout of this very directory
/// counts: an unpacked archive inside another project's checkout must not borrow that project's commit.
fn commit(source: &Path) -> Option<String> {
    let git = |arguments: &[&str]| output(Command::new("git").arg("-C").arg(source).args(arguments));
    let top = git(&["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != source.canonicalize().ok()? {
        return None;
    }
    // The reflog of HEAD changes with every commit and checkout, HEAD itself only where branches change.
    for name in ["HEAD", "logs/HEAD"] {
        // Git before 2.31 can only give a path from the folder in which it runs.
        if let Some(file) = git(&["rev-parse", "--git-path", name]).map(|file| source.join(file)).filter(|file| file.exists()) {
            println!("cargo::rerun-if-changed={}", file.display());
        }
    }
    // A path that does not exist would make Cargo run this script at every build.
    for path in SOURCES.iter().filter(|path| source.join(path).exists()) {
        println!("cargo::rerun-if-changed={}", source.join(path).display());
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let status = [&["status", "--porcelain", "--untracked-files=no", "--"][..], &SOURCES].concat();
    let changed = git(&status).is_some();
    Some(if changed { format!("{commit}+") } else { commit })
}

/// The first line a command prints; `None` where it fails or prints nothing.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}
