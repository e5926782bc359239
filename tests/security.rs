//! The built command among hostile files, limits and signals: it ends with 0, 1 or 2, says why, and leaves nothing behind.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    io::Write,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, geteuid},
};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_socbfs");

/// `program` without the settings of whoever runs the tests.
fn plain(program: &str) -> Command {
    let mut command = Command::new(program);
    for name in ["THREADS", "CPUS", "POLICY", "SIMD", "BOARD", "OBJECTIVE", "LOG"] {
        command.env_remove(format!("SOCBFS_{name}"));
    }
    command.env("SOCBFS_CALIBRATION", "off").env("SOCBFS_ENERGY", "off").env("SOCBFS_DEVICE", "cpu");
    command
}

/// The command with `arguments` under what the shell sets up before: `ulimit -v 100000`.
fn under(shell: &str, arguments: &[&str]) -> Command {
    let mut command = plain("sh");
    command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\""), BINARY]).args(arguments);
    command
}

fn socbfs(arguments: &[&str]) -> Command {
    let mut command = plain(BINARY);
    command.args(arguments);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Demands exit code 2 and every one of `words` in what it says. Gives what it says.
fn refused(mut command: Command, words: &[&str]) -> String {
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {}\n{said}", output.status);
    for word in words {
        assert!(said.contains(word), "{command:?}: no {word:?} in\n{said}");
    }
    said
}

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Under an emulator processes start slowly, and limits of memory are the emulator's.
fn emulated() -> bool {
    std::env::var_os("SOCBFS_TEST_EMULATED").is_some()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

/// Waits until `path` is there.
fn wait_for(path: &str) {
    let limit = Instant::now() + Duration::from_secs(60);
    while fs::metadata(path).is_err() {
        assert!(Instant::now() < limit, "{path} never came");
        sleep(Duration::from_millis(5));
    }
}

// --- Signals ---------------------------------------------------------------------------------------------------------

#[test]
fn a_signal_reaches_the_command_whose_energy_is_measured() {
    for (name, number) in [(Signal::SIGINT, 2), (Signal::SIGTERM, 15), (Signal::SIGHUP, 1)] {
        let folder = Folder::new();
        let ready = folder.path("ready");
        // One that ends in its own way.
        let script = format!("trap 'exit 7' INT TERM HUP; touch {ready}; while :; do sleep 0.02; done");
        let child = socbfs(&["energy", "--", "sh", "-c", &script]).process_group(0).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&ready);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("Energy of sh"), "{name}");
        // And one that the signal ends.
        fs::remove_file(&ready).unwrap();
        let script = format!("touch {ready}; exec sleep 100");
        let child = socbfs(&["energy", "--repeat", "3", "--", "sh", "-c", &script]).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&ready);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(128 + number), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("Energy of sh"), "{name}");
    }
}

#[test]
fn a_command_that_is_not_there_ends_as_in_a_shell() {
    let folder = Folder::new();
    let script = folder.file("script", "exit 0\n");
    for (command, code) in [("nosuch-command", 127), (&*script, 126)] {
        let output = socbfs(&["energy", "--", command]).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(text(&output.stderr).contains(&format!("error: can't run {command}")), "{}", text(&output.stderr));
    }
}

#[test]
fn a_hang_up_that_is_ignored_stays_ignored() {
    let folder = Folder::new();
    let (ready, graph) = (folder.path("ready"), folder.path("g.el"));
    for (ignored, code) in [(true, 130), (false, 130)] {
        let trap = if ignored { "trap '' HUP" } else { ":" };
        let mut child =
            under(&format!("{trap}; touch {ready}"), &["generate", "kronecker", "--scale", "23", "-o", &graph]).spawn().unwrap();
        wait_for(&ready);
        fs::remove_file(&ready).unwrap();
        sleep(Duration::from_millis(if emulated() { 4000 } else { 400 }));
        signal(&child, Signal::SIGHUP);
        let limit = Instant::now() + Duration::from_millis(300);
        while ignored && Instant::now() < limit {
            assert_eq!(child.try_wait().unwrap(), None, "SIGHUP ended it");
            sleep(Duration::from_millis(10));
        }
        if ignored {
            signal(&child, Signal::SIGTERM);
        }
        assert_eq!(child.wait().unwrap().code(), Some(code));
        assert_eq!(folder.names(), Vec::<String>::new());
    }
}

#[test]
fn a_signal_that_dumps_or_kills_leaves_no_temporary() {
    for kind in [Signal::SIGQUIT, Signal::SIGKILL] {
        let folder = Folder::new();
        let graph = folder.path("g.el");
        let mut child =
            under("ulimit -c 0", &["generate", "uniform", "--vertices", "1000", "--edges", "30000000", "-o", &graph]).spawn().unwrap();
        let descriptors = PathBuf::from(format!("/proc/{}/fd", child.id()));
        let is_writing = || {
            let entries = fs::read_dir(&descriptors).into_iter().flatten().flatten();
            entries.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|file| file.starts_with(folder.path("")))
        };
        let limit = Instant::now() + Duration::from_secs(60);
        let mut seen = 0;
        while seen < 3 && Instant::now() < limit && child.try_wait().unwrap().is_none() {
            seen = if is_writing() { seen + 1 } else { 0 };
            sleep(Duration::from_millis(1));
        }
        signal(&child, kind);
        child.wait().unwrap();
        // The file system of the folder may know no files without a name: then SIGKILL leaves one.
        if kind == Signal::SIGQUIT || !folder.names().iter().any(|name| name.ends_with(".tmp")) {
            assert_eq!(folder.names(), Vec::<String>::new(), "{kind}");
        } else {
            let _ = std::io::stderr().write_all(b"SKIPPED: this file system names every file\n");
        }
    }
}

// --- Output ----------------------------------------------------------------------------------------------------------

#[test]
fn a_file_that_may_not_grow_is_an_error_like_any_other() {
    let folder = Folder::new();
    let graph = folder.path("g.el");
    let command = under("ulimit -f 8", &["generate", "uniform", "--vertices", "1000", "--edges", "100000", "-o", &graph]);
    refused(command, &["error: ", "g.el", "too large"]);
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn an_output_that_is_an_input_or_another_output_is_refused_before_work_begins() {
    let folder = Folder::new();
    let graph = folder.file("g.el", "0 1\n1 2\n");
    std::os::unix::fs::symlink("g.el", folder.path("link.el")).unwrap();
    for output in [graph.clone(), folder.path("link.el"), folder.path("./g.el")] {
        refused(socbfs(&["convert", &graph, &output]), &["can't write", "read as well"]);
    }
    refused(socbfs(&["bench", &graph, "--roots", "1", "--json", &graph]), &["g.el", "written as well"]);
    refused(socbfs(&["policies", &graph, "--json", &graph]), &["g.el", "written as well"]);
    let one = folder.path("one.json");
    let training = ["train", "grid:8x8", "--records", &folder.path("r"), "--judge-only", "--surf", &one, "--mlp", &one];
    refused(socbfs(&training), &["one.json", "another output"]);
    assert_eq!(fs::read_to_string(&graph).unwrap(), "0 1\n1 2\n");
    assert_eq!(folder.names(), ["g.el", "link.el"]);
}

#[test]
fn what_is_no_file_or_too_large_is_no_configuration() {
    let folder = Folder::new();
    let large = folder.path("large");
    fs::File::create(&large).unwrap().set_len(17 << 20).unwrap();
    let graph = folder.file("g.el", "0 1\n1 2\n");
    for (path, word) in [("/dev/zero", "device"), (&*large, "more than"), (&*folder.path(""), "folder")] {
        refused(socbfs(&["board", "validate", path]), &[path, word]);
        refused(socbfs(&["run", &graph, "--root", "0", "--policy", &format!("surf:{path}")]), &[path, word]);
        refused(socbfs(&["run", &graph, "--root", "0", "--calibration", path]), &[path, word]);
    }
    for (path, word) in [("/dev/zero", "device"), (&*folder.path(""), "folder")] {
        refused(socbfs(&["compare", path, path]), &[path, word]);
        refused(socbfs(&["run", &graph, "--root", "0", "--policy", &format!("replay:{path}")]), &[path, word]);
        refused(socbfs(&["train", "--judge-only", "--records", path, "grid:8x8"]), &[path, word]);
    }
}

#[test]
fn a_result_in_the_place_of_a_mount_is_copied_there() {
    let folder = Folder::new();
    let (inside, outside) =
        (folder.file("inside.json", "old"), folder.file("outside.json", "much longer than what is written ".repeat(500)));
    let script = format!(
        "mount --bind {outside} {inside} && {BINARY} bench grid:4x4 --roots 2 --json {inside} && rm -f {inside}; cp {inside} {inside}.seen"
    );
    let output = plain("unshare").args(["--mount", "--map-root-user", "sh", "-c", &script]).output();
    let said = output.as_ref().map(|output| text(&output.stderr)).unwrap_or_default();
    if output.is_err() || said.contains("mount:") || said.contains("unshare") {
        let _ = std::io::stderr().write_all(format!("SKIPPED: nothing can be mounted here: {said}\n").as_bytes());
        return;
    }
    let record = fs::read_to_string(&outside).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&record).unwrap()["valid"] == true, "{record}\n{said}");
    assert_eq!(fs::read_to_string(&inside).unwrap(), "old");
}

/// Output of a process that must have ended, not been ended.
fn ended(output: &Output) -> bool {
    matches!(output.status.code(), Some(0..=2))
}

#[test]
fn measurements_beside_a_calibration_take_nothing_over() {
    let folder = Folder::new();
    let precious = folder.file("precious", "precious\n");
    let calibration = folder.path("c.toml");
    let quick = ["calibrate", "--quick", "--graphs", "2", "--budget", "0.1s", "--threads", "1", "-o", &calibration];
    std::os::unix::fs::symlink("precious", folder.path("c.toml.partial")).unwrap();
    refused(socbfs(&quick), &["c.toml.partial", "symbolic link"]);
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious\n");
    fs::remove_file(folder.path("c.toml.partial")).unwrap();
    folder.file("c.toml.partial", "notes of mine\n");
    refused(socbfs(&quick), &["c.toml.partial", "something else"]);
    assert_eq!(fs::read_to_string(folder.path("c.toml.partial")).unwrap(), "notes of mine\n");
    if geteuid().is_root() {
        std::os::unix::fs::chown(folder.path("c.toml.partial"), Some(65534), None).unwrap();
        refused(socbfs(&quick), &["c.toml.partial", "another user"]);
    }
    assert_eq!(folder.names(), ["c.toml.partial", "precious"]);
    let output = socbfs(&["info", &precious]).output().unwrap();
    assert!(ended(&output));
}
