//! The built `socbfs`, run without the settings of the user who runs the tests.

use std::{
    fs,
    process::{Child, Command},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::sys::signal::{SigHandler, Signal, signal};
use tempfile::TempDir;

/// Path of the built `socbfs`.
pub const BINARY: &str = env!("CARGO_BIN_EXE_socbfs");

/// A command that runs `program` with no setting of socbfs except those that tests share, without calibration, and without energy (with a
/// sensor every benchmark would take half a minute longer).
pub fn plain(program: &str) -> Command {
    hear_signals();
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| name.starts_with("SOCBFS_") && !name.starts_with("SOCBFS_TEST_"));
        if is_ours && name != "SOCBFS_CACHE_DIR" {
            command.env_remove(name);
        }
    }
    command.env("SOCBFS_CALIBRATION", "off").env("SOCBFS_ENERGY", "off");
    command
}

/// A command that runs `socbfs` with `arguments`.
pub fn socbfs(arguments: &[&str]) -> Command {
    let mut command = plain(BINARY);
    command.args(arguments);
    command
}

/// Lets programs that are started from now on receive signals. In the background of a shell the tests ignore signals, and programs that
/// they start would inherit this.
fn hear_signals() {
    for kind in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP] {
        // SAFETY: the default action runs no code of this process.
        unsafe { signal(kind, SigHandler::SigDfl) }.unwrap();
    }
}

/// Waits until `child` handles signals of this `kind`. Before that they would end it, and on a busy machine it may take long to begin.
/// (An emulator handles signals itself, so nothing can be seen there.)
pub fn wait_until_handled(child: &Child, kind: Signal) {
    let limit = Instant::now() + Duration::from_secs(60);
    let handles = || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let handled = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
        u64::from_str_radix(handled.trim(), 16).is_ok_and(|handled| handled >> (kind as i32 - 1) & 1 == 1)
    };
    while !emulated() && !handles() {
        assert!(Instant::now() < limit, "{kind} is not handled");
        sleep(Duration::from_millis(5));
    }
}

/// Output of a program as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether the tests run under an emulator (`tests/arm/run` sets the variable). It is slower, does not emulate every system call exactly,
/// and has memory limits of its own.
pub fn emulated() -> bool {
    std::env::var_os("SOCBFS_TEST_EMULATED").is_some()
}

/// A temporary folder of a test.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new() -> Self {
        // Without links in its path: tests look for it in /proc, which shows no links.
        Self(tempfile::tempdir_in(std::env::temp_dir().canonicalize().unwrap()).unwrap())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A user without any settings, whose home is a folder of a test.
pub struct User(pub Folder);

impl User {
    pub fn new() -> Self {
        Self(Folder::new())
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path(name)
    }

    pub fn socbfs(&self, arguments: &[&str]) -> Command {
        let mut command = socbfs(arguments);
        command.env_remove("SOCBFS_CALIBRATION").env_remove("XDG_CONFIG_HOME").env("HOME", self.0.0.path());
        command
    }
}
