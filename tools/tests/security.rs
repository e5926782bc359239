//! The built command with hostile files, limits and signals: it exits with 0, 1 or 2, reports why, and leaves nothing behind.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    io::{Read, Write},
    os::{
        fd::FromRawFd,
        unix::{fs::PermissionsExt, process::CommandExt},
    },
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, geteuid},
};

use crate::{
    built::{self, BINARY, Folder, emulated, plain, text, wait_until_handled},
    implementations,
};

/// A command that runs `socbfs` with `arguments` after the shell commands `shell`, such as `ulimit -v 100000`.
fn under(shell: &str, arguments: &[&str]) -> Command {
    let mut command = plain("sh");
    command.env("SOCBFS_DEVICE", "cpu").args(["-c", &format!("{shell}; exec \"$0\" \"$@\""), BINARY]).args(arguments);
    command
}

fn socbfs(arguments: &[&str]) -> Command {
    let mut command = built::socbfs(arguments);
    command.env("SOCBFS_DEVICE", "cpu");
    command
}

/// Runs `command`, which must exit with code 2 and name all `words` in its errors. Returns the errors.
fn refused(mut command: Command, words: &[&str]) -> String {
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{command:?}: {}\n{said}", output.status);
    for word in words {
        assert!(said.contains(word), "{command:?}: no {word:?} in\n{said}");
    }
    said
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

/// Waits until `path` exists.
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
        // A command that handles the signal.
        let script = format!("trap 'exit 7' INT TERM HUP; touch {ready}; while :; do sleep 0.02; done");
        let child = socbfs(&["energy", "--", "sh", "-c", &script]).process_group(0).stderr(Stdio::piped()).spawn().unwrap();
        wait_for(&ready);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("Energy of sh"), "{name}");
        // A command that the signal ends.
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
fn energy_exits_like_a_shell_if_the_command_can_not_be_run() {
    if emulated() {
        // `posix_spawn` succeeds there, and a child exits with 127.
        let text = b"SKIPPED energy_exits_like_a_shell_if_the_command_can_not_be_run: the emulator hides that a program can't be started\n";
        let _ = std::io::stderr().write_all(text);
        return;
    }
    let folder = Folder::new();
    let script = folder.file("script", "exit 0\n");
    for (command, code) in [("nosuch-command", 127), (&*script, 126)] {
        let output = socbfs(&["energy", "--", command]).output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        assert!(text(&output.stderr).contains(&format!("error: can't run {command}")), "{}", text(&output.stderr));
    }
}

#[test]
fn an_ignored_hangup_signal_stays_ignored() {
    let folder = Folder::new();
    let (ready, graph) = (folder.path("ready"), folder.path("g.el"));
    for (ignored, code) in [(true, 130), (false, 130)] {
        let trap = if ignored { "trap '' HUP" } else { ":" };
        let mut child =
            under(&format!("{trap}; touch {ready}"), &["generate", "kronecker", "--scale", "23", "-o", &graph]).spawn().unwrap();
        wait_for(&ready);
        fs::remove_file(&ready).unwrap();
        wait_until_handled(&child, if ignored { Signal::SIGTERM } else { Signal::SIGHUP });
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
fn sigquit_and_sigkill_leave_no_temporary_file() {
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
        // If the file system does not support files without a name, SIGKILL leaves one.
        if kind == Signal::SIGQUIT || !folder.names().iter().any(|name| name.ends_with(".tmp")) {
            assert_eq!(folder.names(), Vec::<String>::new(), "{kind}");
        } else {
            let _ = std::io::stderr().write_all(b"SKIPPED: this file system names every file\n");
        }
    }
}

// --- Input -----------------------------------------------------------------------------------------------------------

#[test]
fn broken_symbolic_links_are_reported() {
    let folder = Folder::new();
    let link = folder.path("link.el");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    refused(socbfs(&["info", &link]), &["link.el", "symbolic link to nowhere"]);
    refused(socbfs(&["convert", "grid:8x8", &link]), &["link.el", "symbolic link to nowhere"]);
    refused(socbfs(&["bench", "kronecker:31", "--json", &link]), &["link.el", "symbolic link to nowhere"]);
    refused(socbfs(&["calibrate", "--quick", "-o", &link]), &["link.el", "symbolic link"]);
    assert_eq!(folder.names(), ["link.el"]);
}

#[test]
fn invalid_log_levels_are_refused() {
    for level in ["nonsense", "foo=bar", ",,,", "socbfs="] {
        let mut command = socbfs(&["board", "list"]);
        command.env("SOCBFS_LOG", level);
        refused(command, &["SOCBFS_LOG=", "debug"]);
    }
    for (level, is_told) in [("", false), ("off", false), ("INFO", true), ("debug", true)] {
        let output = socbfs(&["run", "grid:8x8", "--root", "0"]).env("SOCBFS_LOG", level).output().unwrap();
        assert!(output.status.success(), "{level}: {}", text(&output.stderr));
        assert_eq!(text(&output.stderr).contains("info: "), is_told, "{level}: {}", text(&output.stderr));
    }
}

#[test]
fn a_silent_meter_does_not_block_the_program() {
    let folder = Folder::new();
    let pipe = folder.path("watts");
    nix::unistd::mkfifo(&*pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let begin = Instant::now();
    let sensor = format!("external:{pipe}");
    // First no process has the pipe open for writing; then one has, but writes nothing.
    for is_open in [false, true] {
        let _writer = is_open.then(|| fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap());
        refused(socbfs(&["bench", "grid:8x8", "--roots", "1", "--energy", &sensor]), &["external:", "no valid reading"]);
    }
    assert!(begin.elapsed() < Duration::from_secs(120));
}

#[test]
fn ctrl_c_removes_the_line_of_progress() {
    let mut ends = (0, 0);
    // SAFETY: the call writes both descriptors; the other pointers may be null.
    let made =
        unsafe { nix::libc::openpty(&raw mut ends.0, &raw mut ends.1, std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut()) };
    assert_eq!(made, 0, "no terminal to be had");
    // SAFETY: both descriptors are open, and nothing else owns them.
    let (mut screen, terminal) = unsafe { (fs::File::from_raw_fd(ends.0), fs::File::from_raw_fd(ends.1)) };
    let folder = Folder::new();
    let arguments = ["generate", "uniform", "--vertices", "1000", "--edges", "60000000", "-o", &folder.path("g.el")];
    let mut child = socbfs(&arguments).env("TERM", "xterm").stderr(terminal).spawn().unwrap();
    let (mut shown, mut part) = (Vec::new(), [0; 4096]);
    while !text(&shown).contains('%') {
        let count = screen.read(&mut part).unwrap_or(0);
        assert!(count > 0, "no progress was shown: {}", text(&shown));
        shown.extend_from_slice(&part[..count]);
    }
    signal(&child, Signal::SIGINT);
    // The terminal closes when the process ends.
    while let Ok(count @ 1..) = screen.read(&mut part) {
        shown.extend_from_slice(&part[..count]);
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(shown.ends_with(b"\r\x1b[2K"), "{:?}", text(&shown[shown.len().saturating_sub(200)..]));
}

// --- Output ----------------------------------------------------------------------------------------------------------

#[test]
fn a_file_size_limit_is_reported_as_an_error() {
    let folder = Folder::new();
    let graph = folder.path("g.el");
    let command = under("ulimit -f 8", &["generate", "uniform", "--vertices", "1000", "--edges", "100000", "-o", &graph]);
    refused(command, &["error: ", "g.el", "too large", "`ulimit -f` shows it"]);
    let record = folder.path("r.json");
    let command = under("ulimit -f 8", &["bench", "kronecker:10", "--roots", "20", "--json", &record]);
    refused(command, &["error: can't write ", "r.json", "too large", "help: the limit of the shell"]);
    assert_eq!(folder.names(), Vec::<String>::new());
}

#[test]
fn an_output_that_is_also_an_input_or_another_output_is_refused() {
    let folder = Folder::new();
    let graph = folder.file("g.el", "0 1\n1 2\n");
    std::os::unix::fs::symlink("g.el", folder.path("link.el")).unwrap();
    for output in [graph.clone(), folder.path("link.el"), folder.path("./g.el")] {
        refused(socbfs(&["convert", &graph, &output]), &["can't write", "an input as well", "help: give the output a name of its own"]);
    }
    let both = |arguments: &[&str], name: &str| {
        let cure = "help: give the output a name of its own";
        refused(socbfs(arguments), &[&format!("error: can't write {name}: it is an input as well"), cure]);
    };
    both(&["bench", &graph, "--roots", "1", "--json", &graph], &graph);
    both(&["policies", &graph, "--json", &graph], &graph);
    let one = folder.path("one.json");
    let training = ["train", "grid:8x8", "--records", &folder.path("r"), "--surf", &one, "--mlp", &one];
    refused(socbfs(&training), &["one.json", "another output"]);
    assert_eq!(fs::read_to_string(&graph).unwrap(), "0 1\n1 2\n");
    assert_eq!(folder.names(), ["g.el", "link.el"]);
    // Every other file that a command reads. A profile, weights and a record to replay are read before outputs are opened.
    let file = folder.path("input");
    let record = socbfs(&["bench", "grid:8x8", "--roots", "1", "--json", "-"]).output().unwrap().stdout;
    let weights = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../policy/src/weights/mlp.toml")).unwrap();
    for (command, content) in [
        ("compare FILE FILE --html FILE", &b""[..]),
        ("report FILE --html FILE", b""),
        ("bench grid:8x8 --roots 1 --board FILE --json FILE", PROFILE.as_bytes()),
        ("bench grid:8x8 --roots 1 --board FILE --html FILE", PROFILE.as_bytes()),
        ("bench grid:8x8 --roots 1 --policy mlp:FILE --json FILE", &weights),
        ("bench grid:8x8 --roots 1 --policy replay:FILE --json FILE", &record),
        ("bench grid:8x8 --roots 1 --calibration FILE --json FILE", b""),
        ("bench grid:8x8 --roots 1 --energy external:FILE --json FILE", b""),
        ("policies /nowhere/g.el --energy external:FILE --json FILE", b""),
        ("analyze /nowhere/g.el --energy external:FILE --html FILE", b""),
        ("energy --board FILE --json FILE -- true", PROFILE.as_bytes()),
        ("train --judge-only --records FILE --json FILE", b""),
    ] {
        fs::write(&file, content).unwrap();
        let words: Vec<String> = command.split(' ').map(|word| word.replace("FILE", &file)).collect();
        both(&words.iter().map(String::as_str).collect::<Vec<_>>(), &file);
        assert!(fs::read(&file).unwrap() == content, "{command}");
    }
}

#[test]
fn configurations_that_are_too_large_or_not_files_are_refused() {
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
        refused(socbfs(&["train", "--judge-only", "--records", path]), &[path, word]);
    }
}

/// Whether the process exited with 0, 1 or 2, and was not killed.
fn ended(output: &Output) -> bool {
    matches!(output.status.code(), Some(0..=2))
}

#[test]
fn calibrate_does_not_overwrite_foreign_partial_files() {
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
    if geteuid().is_root() && std::os::unix::fs::chown(folder.path("c.toml.partial"), Some(65534), None).is_ok() {
        refused(socbfs(&quick), &["c.toml.partial", "another user"]);
    } else {
        // (That user may not exist in a user namespace.)
        let _ = std::io::stderr().write_all(b"SKIPPED: no file can be given to another user here\n");
    }
    assert_eq!(folder.names(), ["c.toml.partial", "precious"]);
    let output = socbfs(&["info", &precious]).output().unwrap();
    assert!(ended(&output));
}

#[test]
fn a_failed_output_does_not_lose_the_other_outputs() {
    let folder = Folder::new();
    let record = folder.path("r.json");
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let output = socbfs(&["bench", "grid:8x8", "--roots", "2", "--json", &record]).stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("error: can't write to standard output"), "{}", text(&output.stderr));
    let parsed: serde_json::Value = serde_json::from_str(&fs::read_to_string(&record).unwrap()).unwrap();
    assert_eq!(parsed["valid"], true);
    for arguments in [
        &["policies", "grid:8x8", "--roots", "1", "--turns", "1", "--only", "tc", "--json", "/dev/full"][..],
        &["bench", "grid:8x8", "--roots", "2", "--json", "/dev/full"],
        &["run", "grid:8x8", "--root", "0", "--levels", "/dev/full"],
    ] {
        let output = socbfs(arguments).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        // The name of a device may not imply a format, which is reported before any work.
        assert!(
            said.contains("error: can't write /dev/full") && !output.stdout.is_empty() || said.contains("name"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn unwritable_outputs_are_refused_before_the_work() {
    let folder = Folder::new();
    let theirs = folder.path("shared");
    fs::create_dir(&theirs).unwrap();
    for output in ["/proc/r.json", "/nowhere/r.json", "/dev/null/r.json"] {
        // The work would take hours.
        refused(socbfs(&["bench", "kronecker:31", "--json", output]), &["can't write", output]);
    }
    if !geteuid().is_root() {
        let _ = std::io::stderr().write_all(b"SKIPPED: only root can be two users\n");
        return;
    }
    for mode in [0o755, 0o1777] {
        let record = folder.path("shared/r.json");
        fs::set_permissions(&theirs, fs::Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(folder.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(&record, "root's").unwrap();
        fs::set_permissions(&record, fs::Permissions::from_mode(0o666)).unwrap();
        // The same command as another user.
        let mut command = socbfs(&["bench", "kronecker:31", "--json", &record]);
        command.uid(65534).gid(65534);
        if command.output().is_ok_and(|output| output.status.code() == Some(2)) {
            refused(command, &["can't write", "r.json"]);
        } else {
            let _ = std::io::stderr().write_all(b"SKIPPED: another user can't run the program where it is built\n");
        }
        assert_eq!(fs::read_to_string(&record).unwrap(), "root's");
    }
}

// --- Memory, threads and files -----------------------------------------------------------------------------------------

/// Whether limits act on the emulator instead of the program in it. Prints SKIPPED if so.
fn limits_act_on_an_emulator(test: &str) -> bool {
    if emulated() {
        let _ = std::io::stderr().write_all(format!("SKIPPED {test}: limits act on the emulator\n").as_bytes());
    }
    emulated()
}

/// Writes a file with lines of 4 bytes, compressed to a thousandth, in gzip members that decompressors read one after another.
fn bomb(folder: &Folder, members: usize) -> String {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&b"1 2\n".repeat(4 << 20)).unwrap();
    folder.file("bomb.el.gz", encoder.finish().unwrap().repeat(members))
}

#[test]
fn graphs_too_large_for_memory_are_refused_with_their_size() {
    if limits_act_on_an_emulator("graphs_too_large_for_memory_are_refused_with_their_size") {
        return;
    }
    let folder = Folder::new();
    let (el, gz) = (folder.path("g.el"), bomb(&folder, 40));
    // The graph has 134,217,728 edges of 8 bytes.
    refused(under("ulimit -v 1000000", &["bench", "--kronecker", "23"]), &["1.0 GiB", "available"]);
    refused(socbfs(&["bench", "kronecker:31,edgefactor=1024"]), &["TiB", "available"]);
    refused(under("ulimit -v 800000", &["generate", "uniform", "--vertices", "10", "--edges", "200000000", "-o", &el]), &["1.5 GiB"]);
    let said = refused(under("ulimit -v 500000", &["info", &gz]), &["bomb.el.gz", " MiB of the graph"]);
    assert!(!said.contains("panick") && !said.contains("allocation"), "{said}");
    // A header that announces four billion vertices, and the offsets of 256 million.
    let offsets = folder.path("bomb.adj.gz");
    let mut encoder = flate2::write::GzEncoder::new(fs::File::create(&offsets).unwrap(), flate2::Compression::best());
    encoder.write_all(b"AdjacencyGraph\n4294967168\n0\n").unwrap();
    (0..64).for_each(|_| encoder.write_all(&b"0\n".repeat(4 << 20)).unwrap());
    encoder.finish().unwrap();
    refused(under("ulimit -v 500000", &["info", &offsets]), &["bomb.adj.gz", " MiB of the graph"]);
    fs::remove_file(&offsets).unwrap();
    let long = folder.path("long.el.gz");
    let mut encoder = flate2::write::GzEncoder::new(fs::File::create(&long).unwrap(), flate2::Compression::fast());
    (0..4).for_each(|_| encoder.write_all(&b"1".repeat(8 << 20)).unwrap());
    encoder.finish().unwrap();
    refused(socbfs(&["info", &long]), &["long.el.gz", "longer than 1048576 bytes"]);
    fs::remove_file(&long).unwrap();
    // A window of 128 MiB, and 1,100 blocks that repeat a byte 131,072 times.
    let mut packed = vec![0x28_u8, 0xb5, 0x2f, 0xfd, 0x00, 0x88];
    (0..1100_u32).for_each(|block| {
        let header = 131_072 << 3 | 1 << 1 | u32::from(block == 1099);
        packed.extend([&header.to_le_bytes()[..3], b"\n"].concat());
    });
    let window = folder.file("window.el.zst", packed);
    refused(
        under("ulimit -v 180000", &["info", &window]),
        &["window.el.zst", "its decompressor needs more memory than the limit", "`zstd -d"],
    );
    fs::remove_file(&window).unwrap();
    assert_eq!(folder.names(), ["bomb.el.gz"]);
}

/// Eight commands with outputs in `folder`.
fn eight(folder: &Folder) -> Vec<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let path = |name: &str| folder.path(name);
    vec![
        words(&format!("info {}", path("in.el"))),
        words(&format!("convert {} {}", path("in.el"), path("out.sg"))),
        words(&format!("generate kronecker --scale 14 -o {}", path("out.mtx"))),
        words(&format!("run {} --root 1 --parents {}", path("in.el.gz"), path("out.npy"))),
        words(&format!("bench kronecker:12 --roots 2 --threads 2 --json {}", path("out.json"))),
        words(&format!("policies grid:40x40 --roots 1 --turns 1 --only tc,bc --json {}", path("out2.json"))),
        words(&format!("compare {} {}", path("a.json"), path("a.json"))),
        words("board show"),
    ]
}

/// Runs each command under each of the shell's `limits`. It must exit with 0, 1 or 2, and leave its whole output or none, or what is
/// finished of it in a file that it names.
fn swept(limits: &[String]) {
    let folder = Folder::new();
    let text: String = (0..200_000_u32).map(|i| format!("{} {}\n", i % 5000, i * 7 % 9001)).collect();
    folder.file("in.el", &text);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    folder.file("in.el.gz", encoder.finish().unwrap());
    assert!(socbfs(&["bench", "grid:8x8", "--roots", "2", "--json", &folder.path("a.json")]).output().unwrap().status.success());
    let before = folder.names();
    let mut refusals = 0;
    for limit in limits {
        for arguments in eight(&folder) {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let output = under(limit, &arguments).output().unwrap();
            let said = self::text(&output.stderr);
            assert!(ended(&output), "{limit}: {arguments:?}: {}\n{said}", output.status);
            if output.status.code() == Some(2) {
                refusals += 1;
                assert!(said.contains("error: "), "{limit}: {arguments:?}\n{said}");
                assert!(!said.contains("a bug in socbfs"), "{limit}: {arguments:?}\n{said}");
                if said.contains("memory") && limit.contains("-v") {
                    // glibc ends the program without a size if it has no memory for the destructors of a thread.
                    let known = ["bytes", " B", "KiB", "MiB", "thread", "Fatal glibc error"].iter().any(|words| said.contains(words));
                    assert!(known, "{limit}: {arguments:?}\n{said}");
                }
            }
            for name in folder.names() {
                assert!(before.contains(&name) || name.starts_with("out"), "{limit}: {arguments:?} left {name}");
                if name.starts_with("out") {
                    let is_kept = name.ends_with(".partial") && said.contains(&format!("is kept in {}", folder.path(&name)));
                    assert!(is_kept || output.status.code() == Some(0), "{limit}: {arguments:?} left {name}\n{said}");
                    fs::remove_file(folder.path(&name)).unwrap();
                }
            }
        }
    }
    assert!(refusals > 0, "no limit was felt: {limits:?}");
}

#[test]
fn memory_limits_do_not_crash_the_program() {
    if !limits_act_on_an_emulator("memory_limits_do_not_crash_the_program") {
        // Below about 30 MB even the dynamic linker fails to map a test program, and a little above glibc ends a program that has no memory
        // for the destructors of a thread. A program that is optimised is smaller, and needs less.
        let least = if cfg!(debug_assertions) { 48_000 } else { 24_000 };
        swept(&[least, 120_000].map(|kilobytes| format!("ulimit -v {kilobytes}")));
    }
}

#[test]
#[ignore = "takes minutes"]
fn memory_limits_of_any_size_do_not_crash_the_program() {
    let sizes: Vec<String> =
        (32..=160).step_by(4).chain((180..=600).step_by(20)).map(|mega| format!("ulimit -v {}", mega * 1000)).collect();
    swept(&sizes);
    let sizes: Vec<String> = (1..=60).step_by(3).map(|mega| format!("ulimit -d {}", mega * 1000)).collect();
    swept(&sizes);
}

#[test]
fn file_limits_do_not_crash_the_program() {
    if limits_act_on_an_emulator("file_limits_do_not_crash_the_program") {
        return;
    }
    swept(&[6].map(|files| format!("ulimit -n {files}")));
    swept(&["ulimit -f 1".to_owned()]);
}

#[test]
#[ignore = "takes minutes"]
fn file_limits_of_any_number_do_not_crash_the_program() {
    if limits_act_on_an_emulator("file_limits_of_any_number_do_not_crash_the_program") {
        return;
    }
    swept(&(4..=20).map(|files| format!("ulimit -n {files}")).collect::<Vec<_>>());
    swept(&[0, 1, 2, 8, 64, 500].map(|blocks| format!("ulimit -f {blocks}")));
}

#[test]
fn process_limits_do_not_crash_the_program() {
    if limits_act_on_an_emulator("process_limits_do_not_crash_the_program") {
        return;
    }
    let Some(group) = control_group("pids", "pids.max", 100) else {
        let _ = std::io::stderr().write_all(b"SKIPPED process_limits_do_not_crash_the_program: no control group can be made here\n");
        return;
    };
    let limits = |counts: &[u32]| {
        let enter = |count| format!("echo {count} >{0}/pids.max; echo $$ >{0}/cgroup.procs", group.display());
        counts.iter().map(enter).collect::<Vec<_>>()
    };
    swept(&limits(&[1, 2, 4]));
    fs::remove_dir(&group).unwrap();
}

/// Makes a control group with a limit (`None` if that is not possible).
fn control_group(controller: &str, file: &str, limit: u64) -> Option<PathBuf> {
    // Tests of one process run at the same time, and in version 2 all groups are in one folder.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let root = PathBuf::from("/sys/fs/cgroup");
    let name = format!("socbfs-test-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let folder = if root.join("cgroup.controllers").exists() { root.join(name) } else { root.join(controller).join(name) };
    fs::create_dir(&folder).ok()?;
    if fs::write(folder.join(file), limit.to_string()).is_err() {
        let _ = fs::remove_dir(&folder);
        return None;
    }
    Some(folder)
}

/// Name of the file that limits the memory of a control group.
fn memory_limit() -> &'static str {
    if PathBuf::from("/sys/fs/cgroup/cgroup.controllers").exists() { "memory.max" } else { "memory.limit_in_bytes" }
}

#[test]
#[ignore = "takes minutes"]
fn memory_control_groups_of_any_size_do_not_crash_the_program() {
    let Some(group) = control_group("memory", memory_limit(), 200 << 20) else {
        let _ = std::io::stderr()
            .write_all(b"SKIPPED memory_control_groups_of_any_size_do_not_crash_the_program: no control group can be made here\n");
        return;
    };
    // With less than 16 MB the system kills the shell that enters the group, or the program before it starts.
    let enter = |mega: u64| format!("echo {} >{1}/{2}; echo $$ >{1}/cgroup.procs", mega << 20, group.display(), memory_limit());
    swept(&(16..=64).step_by(4).chain([80, 100, 150, 300]).map(enter).collect::<Vec<_>>());
    fs::remove_dir(&group).unwrap();
}

#[test]
fn a_control_group_limits_the_available_memory() {
    let Some(group) = control_group("memory", memory_limit(), 200 << 20) else {
        let _ = std::io::stderr().write_all(b"SKIPPED a_control_group_limits_the_available_memory: no control group can be made here\n");
        return;
    };
    let folder = Folder::new();
    let gz = bomb(&folder, 40);
    let enter = format!("echo $$ >{}", group.join("cgroup.procs").display());
    refused(under(&enter, &["bench", "--kronecker", "22"]), &["512.0 MiB", "available"]);
    refused(under(&enter, &["info", &gz]), &[" MiB of the graph"]);
    fs::remove_dir(&group).unwrap();
}

// --- What is shown -----------------------------------------------------------------------------------------------------

#[test]
fn control_characters_of_foreign_text_do_not_reach_a_terminal() {
    const TITLE: &str = "\x1b]0;hidden\x07\r\u{9b}2J\u{202e}";
    let folder = Folder::new();
    let name = format!("{TITLE}.el");
    let graph = folder.file(&name, "0 1\n1 2\n");
    let banner = folder.file("banner.mtx", format!("%%MatrixMarket matrix {TITLE} pattern {TITLE}\n1 1 1\n1 1\n"));
    let record = folder.path("r.json");
    assert!(socbfs(&["bench", &graph, "--roots", "1", "--json", &record]).output().unwrap().status.success());
    let text_of_record = fs::read_to_string(&record).unwrap();
    let mut parsed: serde_json::Value = serde_json::from_str(&text_of_record).unwrap();
    parsed["search"]["board"] = TITLE.into();
    parsed["environment"]["cpu"]["model"] = TITLE.into();
    let strange = folder.file("s.json", parsed.to_string());
    let board = folder.file("b.toml", format!("schema = 1\n[board]\nname = \"\\u001b]0;x\\u0007\"\n\"{}\" = 1\n", "\\u001b[2J"));
    for arguments in [
        &["-v", "info", &graph][..],
        &["-v", "bench", &graph, "--roots", "1"],
        &["info", &folder.path(&format!("missing{TITLE}"))],
        &["info", &banner],
        &["compare", &record, &strange],
        &["compare", &record, &strange, "--html", "-"],
        &["report", &strange, "--html", "-"],
        &["board", "validate", &board],
        &["bench", "--policy", TITLE],
        &["bench", "--threads", TITLE],
        &[TITLE],
        &["convert", &graph, &folder.path(&format!("out{TITLE}.el"))],
    ] {
        let output = socbfs(arguments).env("SOCBFS_LOG", "debug").output().unwrap();
        for stream in [&output.stdout, &output.stderr] {
            let shown = text(stream);
            let raw = shown.chars().find(|c| c.is_control() && *c != '\n' && *c != '\t' || *c == '\u{202e}');
            assert_eq!(raw, None, "{arguments:?}: {shown:?}");
        }
        assert!(!(output.stdout.is_empty() && output.stderr.is_empty()), "{arguments:?}");
    }
    let long = format!("{}.el", "x".repeat(200)).repeat(50);
    let said = refused(socbfs(&["bench", "--policy", &long]), &["error: "]);
    assert!(said.len() < 6000, "{} bytes of error", said.len());
}

#[test]
fn json_on_a_terminal_is_safe_and_stays_json() {
    let folder = Folder::new();
    let (tree, model) = (folder.path("proc/device-tree"), "A\x1b[2J\x7fboard\u{9b}\u{202e}");
    fs::create_dir_all(&tree).unwrap();
    fs::write(format!("{tree}/model"), format!("{model}\0")).unwrap();
    let output = socbfs(&["board", "detect", "--json", "--sysfs-root", &folder.path("")]).output().unwrap();
    let shown = text(&output.stdout);
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{shown:?}");
    let detected: serde_json::Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
    assert_eq!(detected["evidence"]["model"], model);
    // Also a record that takes the place of the text.
    let graph = folder.file("g\x7f\u{9b}\u{202e}.el", "0 1\n1 2\n");
    let output = socbfs(&["bench", &graph, "--roots", "1", "--energy", "off", "--json", "-"]).output().unwrap();
    let shown = text(&output.stdout);
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{shown:?}");
    let record: serde_json::Value = serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
    assert_eq!(record["graph"]["source"], graph);
}

// --- What every output does ----------------------------------------------------------------------------------------------

/// A valid profile.
const PROFILE: &str = "schema = 1\n[board]\nname = 'mine'\n";
/// What `calibrate` takes for an older calibration, which it may replace.
const CALIBRATED: &str = "schema = 0\nmade = {}\nidentity = {}\n";

/// Every command that writes a file of results, with the file's name. Files that commands read are made in `inputs`.
fn outputs(folder: &str, inputs: &Folder) -> Vec<(Vec<String>, String)> {
    let words = |command: &str, output: &str| -> Vec<String> {
        let word = |word: &str| match word {
            "OUT" => output.to_owned(),
            "ANALYSIS" | "MEASURED" | "CALIBRATION" => inputs.path(word),
            _ => word.to_owned(),
        };
        command.split(' ').map(word).collect()
    };
    let mut all = vec![
        ("generate uniform --vertices 300 --edges 9000 -o OUT", "g.el"),
        ("generate uniform --vertices 300 --edges 9000 -o OUT", "g.sg"),
        ("convert uniform:9,edgefactor=16 OUT", "g.mtx"),
        ("run grid:80x80 --root 0 --parents OUT", "p.npy"),
        ("run grid:80x80 --root 0 --levels OUT", "l.csv"),
        ("run grid:80x80 --root 0 --parents OUT", "p.txt"),
        ("bench grid:8x8 --roots 2 --json OUT", "r.json"),
        ("policies grid:8x8 --roots 1 --turns 1 --only tc --json OUT", "p.json"),
        ("energy --json OUT -- true", "e.json"),
        ("board init OUT --force", "b.toml"),
        ("board manifest OUT --force", "m.toml"),
        ("calibrate --quick --graphs 2 --budget 0.1s --threads 1 -o OUT", "c.toml"),
        ("calibrate --quick --graphs 2 --budget 0.1s --threads 1 -o CALIBRATION --json OUT", "c.json"),
        ("train grid:8x8 --generated 0 --roots 1 --turns 1 --collect-only --records OUT", "t.jsonl"),
        ("train --judge-only --records MEASURED --json OUT", "t.json"),
        ("analyze grid:8x8 --roots 1 --only profile --json OUT", "a.json"),
        ("analyze grid:8x8 --roots 1 --only profile --html OUT", "a.html"),
        ("report ANALYSIS --html OUT", "b.html"),
        ("report ANALYSIS --figure profile --svg OUT", "b.svg"),
    ];
    // The inputs of the last commands are made by others.
    for (maker, input) in [(13, "MEASURED"), (15, "ANALYSIS")] {
        let path = inputs.path(input);
        let made = socbfs(&words(all[maker].0, &path).iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    }
    fs::set_permissions(inputs.0.path(), fs::Permissions::from_mode(0o777)).unwrap();
    if implementations::device("Portable Computing Language").is_some() {
        all.push(("board tune generic OUT --force --graph kronecker:6 --device portable", "tune.toml"));
    } else {
        implementations::skipped("outputs", "board tune: PoCL is not installed, or not found without tests/opencl_env");
    }
    all.into_iter().map(|(command, name)| (words(command, &format!("{folder}/{name}")), name.to_owned())).collect()
}

/// Content of the output of this name before the command runs.
fn before(name: &str) -> &'static str {
    match name {
        "c.toml" => CALIBRATED,
        _ => "root's",
    }
}

#[test]
fn every_output_reports_a_full_or_read_only_disk() {
    const TEST: &str = "every_output_reports_a_full_or_read_only_disk";
    let folder = Folder::new();
    let disk = folder.path("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = |then: &str| {
        let script = format!("mount -t tmpfs -o size=64k socbfs-test {disk} || exit 99; {then}");
        let mut command = plain("unshare");
        command.env("SOCBFS_DEVICE", "cpu").args(["--mount", "--map-root-user", "sh", "-c", &script, BINARY]);
        command
    };
    if !mounted("true").status().is_ok_and(|status| status.success()) {
        let _ = std::io::stderr().write_all(format!("SKIPPED {TEST}: nothing can be mounted here\n").as_bytes());
        return;
    }
    // The files on the disk are listed while it is mounted.
    let inputs = Folder::new();
    let run = |before: &str| format!("{before}; \"$0\" \"$@\"; code=$?; ls -A {disk} >&2; exit $code");
    let full = run(&format!("head -c 65536 /dev/zero >{disk}/ballast"));
    let read_only = run(&format!("mount -o remount,ro {disk}"));
    for (arguments, name) in outputs(&disk, &inputs) {
        for (how, script) in [("full", &full), ("read-only", &read_only)] {
            let output = mounted(script).args(&arguments).output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{how} {arguments:?}: {said}");
            let told = if how == "full" { "space" } else { "ead-only" };
            assert!(said.contains("error: ") && said.contains(&name) && said.contains(told), "{how} {arguments:?}: {said}");
            assert!(how != "full" || said.contains("free some space"), "{arguments:?}: {said}");
            assert!(!said.contains("mistake"), "{how} {arguments:?}: {said}");
            let left: Vec<&str> = said.lines().filter(|&line| line.ends_with(".tmp") || line == name).collect();
            // A file of measurements that grows from run to run exists from the beginning.
            let may_stay = how == "full" && name == "t.jsonl" && left == [&*name];
            assert!(left.is_empty() || may_stay, "{how} {arguments:?} left {left:?}");
        }
    }
}

#[test]
fn every_output_keeps_files_of_another_user() {
    const TEST: &str = "every_output_keeps_files_of_another_user";
    let folder = Folder::new();
    let shared = folder.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(folder.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let theirs = |arguments: &[String]| {
        let mut command = plain(BINARY);
        command.env("SOCBFS_DEVICE", "cpu").env("HOME", &shared).args(arguments).uid(65534).gid(65534);
        command
    };
    if !geteuid().is_root() || !theirs(&["--version".to_owned()]).output().is_ok_and(|output| output.status.success()) {
        let _ = std::io::stderr().write_all(format!("SKIPPED {TEST}: no second user can run the program here\n").as_bytes());
        return;
    }
    let inputs = Folder::new();
    for (arguments, name) in outputs(&shared, &inputs) {
        let path = folder.path(&format!("shared/{name}"));
        fs::write(&path, before(&name)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let said = refused(theirs(&arguments), &["error: ", &name]);
        assert_eq!(fs::read_to_string(&path).unwrap(), before(&name), "{arguments:?}: {said}");
        fs::remove_file(&path).unwrap();
        assert_eq!(fs::read_dir(&shared).unwrap().count(), 0, "{arguments:?}: {said}");
    }
}

#[test]
fn every_output_writes_to_a_file_mounted_in_its_place() {
    const TEST: &str = "every_output_writes_to_a_file_mounted_in_its_place";
    let folder = Folder::new();
    fs::create_dir(folder.path("in")).unwrap();
    let inputs = Folder::new();
    for (arguments, name) in outputs(&folder.path("in"), &inputs) {
        let old = format!("{}{}", before(&name), "# much longer than what is written\n".repeat(20_000));
        let (inside, outside) = (folder.file(&format!("in/{name}"), before(&name)), folder.file("outside", &old));
        let script = format!("mount --bind {outside} {inside} || exit 99; exec \"$0\" \"$@\"");
        let mut command = plain("unshare");
        command.env("SOCBFS_DEVICE", "cpu").args(["--mount", "--map-root-user", "sh", "-c", &script, BINARY]).args(&arguments);
        let output = command.output();
        if !output.as_ref().is_ok_and(|output| matches!(output.status.code(), Some(0..=2))) {
            let _ = std::io::stderr().write_all(format!("SKIPPED {TEST}: nothing can be mounted here\n").as_bytes());
            return;
        }
        let output = output.unwrap();
        let (said, written) = (text(&output.stderr), fs::read(&outside).unwrap());
        match output.status.code() {
            Some(0) => assert!(!written.is_empty() && written != old.as_bytes(), "{arguments:?}: {said}"),
            _ => assert!(said.contains("error: ") && said.contains(&name) && written == old.as_bytes(), "{arguments:?}: {said}"),
        }
        assert_eq!(output.status.code(), Some(if name == "t.jsonl" { 2 } else { 0 }), "{arguments:?}: {said}");
        assert_eq!(fs::read_to_string(&inside).unwrap(), before(&name), "{arguments:?}: {said}");
        fs::remove_file(&inside).unwrap();
        assert_eq!(fs::read_dir(folder.path("in")).unwrap().count(), 0, "{arguments:?}: {said}");
    }
}
