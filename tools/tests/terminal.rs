//! What a user sees on a terminal: sessions of 80 x 24 and of 60 x 20 characters.

use std::{
    fs::File,
    io::Read as _,
    os::fd::{FromRawFd as _, OwnedFd},
    process::{Command, Stdio},
};

use nix::libc;

use crate::{
    built::{Folder, socbfs},
    command::board_with_rails,
};

/// What a command writes to a terminal of this size, and its exit code.
fn session(arguments: &[&str], [columns, rows]: [u16; 2]) -> (Option<i32>, String) {
    let (mut master, mut slave) = (0, 0);
    let mut size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the pointers are to variables of this function, or null, which the call allows.
    let opened = unsafe { libc::openpty(&raw mut master, &raw mut slave, std::ptr::null_mut(), std::ptr::null_mut(), &raw mut size) };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    for end in [master, slave] {
        // SAFETY: it sets a flag of a file that is open. Commands of other tests must not hold the terminal open.
        unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: the call has opened both, and nothing else owns them.
    let (mut master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
    let mut command: Command = socbfs(arguments);
    command.env("TERM", "xterm").env_remove("NO_COLOR").env_remove("COLUMNS");
    command.stdin(Stdio::null()).stdout(slave.try_clone().unwrap()).stderr(slave);
    let mut child = command.spawn().unwrap();
    // The command has its own copies of the terminal; without ours, the read below ends with the child.
    drop(command);
    let (mut written, mut buffer) = (Vec::new(), [0; 4096]);
    // Linux reports the end of a terminal as an error.
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        written.extend_from_slice(&buffer[..count]);
    }
    (child.wait().unwrap().code(), String::from_utf8(written).unwrap())
}

/// The pieces that `written` puts into one line each, without colours: a progress bar writes to one line again and again.
fn pieces(written: &str) -> Vec<String> {
    let mut plain = String::new();
    let mut characters = written.chars();
    while let Some(c) = characters.next() {
        if c != '\x1b' {
            plain.push(c);
        } else if characters.next() == Some('[') {
            // Moving and clearing begin a piece, and a colour does not.
            if characters.find(char::is_ascii_alphabetic) != Some('m') {
                plain.push('\r');
            }
        }
    }
    plain.split(['\n', '\r']).map(str::to_owned).filter(|piece| !piece.is_empty()).collect()
}

/// The text lines of a session that ended well. No line is wider than 80 characters, except commands and addresses of pages.
fn lines(arguments: &[&str]) -> Vec<String> {
    let (code, written) = session(arguments, [80, 24]);
    assert_eq!(code, Some(0), "{arguments:?}: {written}");
    let lines = pieces(&written);
    for line in lines.iter().filter(|line| !line.contains("sudo ") && !line.starts_with("    \"https://")) {
        assert!(line.chars().count() <= 80, "{} characters in {arguments:?}: {line}", line.chars().count());
    }
    lines
}

#[test]
fn a_benchmark_ends_with_the_report_for_people() {
    let folder = Folder::new();
    let nothing = folder.path("");
    let lines = lines(&["bench", "kronecker:10", "--roots", "4", "--device", "cpu", "--sysfs-root", &nothing]);
    let place = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start} in {lines:#?}"));
    let shown = lines.len() - 24;
    for start in ["  Validation ", "  Harmonic mean ", "  Median time "] {
        assert!(place(start) >= shown, "{start} has scrolled away: {lines:#?}");
    }
    assert!(place("bfs  harmonic_mean_TEPS:") < place("  Machine "), "{lines:#?}");
    assert_eq!(lines.iter().filter(|line| line.starts_with("energy  ")).count(), 1, "{lines:#?}");
}

#[test]
fn tables_fit_80_columns_and_have_all_columns_on_request() {
    let trace = ["run", "kronecker:12", "--root", "1", "--device", "cpu", "--trace"];
    let narrow = lines(&trace);
    assert!(narrow.iter().any(|line| line.contains("frontier") && !line.contains("probes")), "{narrow:#?}");
    let (_, wide) = session(&[&trace[..], &["--wide"]].concat(), [80, 24]);
    assert!(pieces(&wide).iter().any(|line| line.contains("frontier") && line.contains("probes")), "{wide}");
    let compared = ["policies", "kronecker:8", "grid:20x20", "--roots", "2", "--turns", "1", "--device", "cpu"];
    let narrow = lines(&compared);
    let is_cut = |line: &String| line.contains("(--wide shows further columns: ");
    assert!(narrow.iter().any(|line| line.contains("regret")) && narrow.iter().any(is_cut), "{narrow:#?}");
    let (_, wide) = session(&[&compared[..], &["--wide"]].concat(), [80, 24]);
    assert!(wide.contains("least regret") && !wide.contains("--wide shows"), "{wide}");
    let rule = "rule:frontier_edges > unvisited_edges / 14 and level > 1 or been_bottom_up and frontier_vertices > vertices / 24";
    let ruled = lines(&["policies", "kronecker:8", "--only", "tc", "--only", rule, "--roots", "2", "--turns", "1", "--device", "cpu"]);
    let begins = |start: &str| ruled.iter().filter(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(start)).count();
    let rows = ruled.iter().filter(|line| line.starts_with("  rule 1  ")).count();
    assert_eq!([rows, begins("rule 1 rule:frontier_edges"), begins("rule:")], [2, 1, 0], "{ruled:#?}");
    let analyzed = ["analyze", "kronecker:9", "--device", "cpu", "--roots", "2", "--turns", "2"];
    let narrow = lines(&analyzed);
    assert!(narrow.iter().any(is_cut), "{narrow:#?}");
    let (_, wide) = session(&[&analyzed[..], &["--wide"]].concat(), [80, 24]);
    assert!(!wide.contains("--wide shows") && pieces(&wide).iter().any(|line| line.chars().count() > 80), "{wide}");
    let folder = Folder::new();
    let nothing = folder.path("");
    let sensors = lines(&["sensors", "--sysfs-root", &nothing]);
    assert!(sensors[0].starts_with("Looked in /sys for RAPL"), "{sensors:#?}");
    let doctor = lines(&["doctor", "--sysfs-root", &nothing]);
    assert_eq!(doctor.iter().filter(|line| line.starts_with("unknown ")).count(), 1, "{doctor:#?}");
    // Rails with long labels, and profiles with long values and comments.
    let wide = board_with_rails(&folder);
    folder.file("sys/class/hwmon/hwmon0/label", "VDD_OF_A_BIG_CLUSTER_AND_ITS_CACHES_AND_MORE\n");
    let rail = "schema = 1\n[board]\nname = 'b'\n[power]\nscope = 'soc-rails'\n[[power.rails]]\nfamily = 'ina2xx'\nid = '*-0040'\n";
    let board = folder.file("b.toml", format!("{rail}domain = 'gpu'\ncounted = true\n"));
    let sensors = lines(&["sensors", "--sysfs-root", &wide, "--board", &board]);
    assert!(sensors.iter().any(|line| line.contains("VDD_OF_A_BIG_CLUSTER")), "{sensors:#?}");
    assert!(sensors.iter().any(|line| line.starts_with("sensor ") && line.ends_with(" covers") && !line.contains("label")), "{sensors:#?}");
    for board in socbfs_boards::board::shipped() {
        let shown = lines(&["board", "show", board, "--device", "cpu", "--policy", rule]);
        assert!(shown.iter().any(|line| line.starts_with("    [names the board in records; ")), "{shown:#?}");
    }
    lines(&["board", "list", "--sysfs-root", &wide]);
    let detected = lines(&["board", "detect", "--sysfs-root", &wide]);
    assert!(detected[1].starts_with("because       no profile fits: "), "{detected:#?}");
    lines(&["compare", "--a=--threads 1", "--b=--threads 1", "kronecker:6", "--rounds", "2", "--roots", "1"]);
    lines(&["devices", "--quick"]);
    let tall = format!("type octile\nheight 5000\nwidth 1\nmap\n{}", ".\n".repeat(5000));
    let map = folder.file("tall.map", tall);
    let grid = lines(&["grid", &map, "--sources", "0,0", "--target", "4999,0"]);
    assert!(grid.len() <= 10 && grid.iter().any(|line| line.contains("4,999 steps from (4999, 0)")), "{grid:#?}");
    let road = lines(&["analyze", "grid:100x100", "--only", "profile", "--roots", "1", "--device", "cpu"]);
    assert!(road.iter().any(|line| line.contains("each bar is the mean of ")), "{road:#?}");
}

#[test]
fn progress_keeps_to_one_line_of_the_terminal() {
    // With optimisation a smaller graph is done before its bar is due.
    let second = if cfg!(debug_assertions) { "kronecker:13" } else { "kronecker:17" };
    let compared = ["policies", "kronecker:8", second, "--only", "tc,bc,auto", "--roots", "8", "--turns", "20", "--device", "cpu"];
    for columns in [80, 60] {
        let (code, written) = session(&compared, [columns, if columns == 80 { 24 } else { 20 }]);
        assert_eq!(code, Some(0), "{written}");
        let all = pieces(&written);
        let bars: Vec<&String> = all.iter().filter(|piece| piece.contains(" left: ")).collect();
        assert!(bars.iter().any(|bar| bar.contains("graph 2 of 2: root ")), "{columns}: {all:#?}");
        assert!(bars.iter().all(|bar| bar.chars().count() <= usize::from(columns)), "{columns}: {bars:#?}");
        // The table of the first graph stands before the work on the second.
        let table = all.iter().position(|piece| piece.starts_with("kronecker scale=8 ")).unwrap();
        let second = all.iter().position(|piece| piece.contains("graph 2 of 2")).unwrap();
        assert!(table < second, "{all:#?}");
    }
    // What a part of the work has found stands above the bar, in lines of its own.
    let folder = Folder::new();
    let file = folder.path("c.toml");
    let flags = ["--quick", "--graphs", "4", "--budget", "4s", "--threads", "1", "--device", "cpu", "--energy", "off", "-o", &file];
    let (code, written) = session(&[&["calibrate"][..], &flags].concat(), [60, 20]);
    assert_eq!(code, Some(0), "{written}");
    let all = pieces(&written);
    let found: Vec<&String> = all.iter().filter(|piece| piece.contains(" levels in ")).collect();
    assert!(found.len() == 4 && found.iter().all(|piece| !piece.contains(" left: ")), "{all:#?}");
    // Where there is no terminal, a graph has a line, and --quiet silences it.
    let told = socbfs(&["policies", "kronecker:6", "grid:9x9", "--only", "tc", "--roots", "1", "--turns", "1", "--device", "cpu"]);
    let said = |mut command: Command| String::from_utf8(command.output().unwrap().stderr).unwrap();
    let text = said(told);
    assert!(text.contains("graph 1 of 2: kronecker scale=6 ") && text.contains("graph 2 of 2: grid width=9 "), "{text}");
    let quiet = ["policies", "-q", "kronecker:6", "grid:9x9", "--only", "tc", "--roots", "1", "--turns", "1", "--device", "cpu"];
    assert_eq!(said(socbfs(&quiet)), "");
}

#[test]
fn errors_are_no_wider_than_the_terminal() {
    let wrong = ["run", "kronecker:8", "--root", "1", "--policy", "none-of-these"];
    let (code, written) = session(&wrong, [60, 20]);
    let lines = pieces(&written);
    assert!(code == Some(2) && lines.len() > 2 && lines.iter().all(|line| line.chars().count() <= 60), "{lines:#?}");
    let output = socbfs(&wrong).output().unwrap();
    let whole = String::from_utf8(output.stderr).unwrap();
    assert!(whole.lines().count() < lines.len() && whole.split_whitespace().eq(written.split_whitespace()), "{whole}");
}

#[test]
fn help_is_no_wider_than_the_terminal() {
    // A part of the commands has commands of its own.
    let mut commands = vec![String::new()];
    for level in 0..2 {
        for command in commands.clone().iter().filter(|command| command.split_whitespace().count() == level) {
            let words: Vec<&str> = command.split_whitespace().collect();
            let help = String::from_utf8(socbfs(&[&words[..], &["--help"]].concat()).output().unwrap().stdout).unwrap();
            let names = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
            let names =
                names.filter(|line| line.starts_with("  ") && !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
            commands.extend(names.filter(|name| *name != "help").map(|name| format!("{command} {name}")));
        }
    }
    assert!(commands.len() > 28, "{commands:?}");
    let widest = |help: &str| help.lines().map(|line| line.chars().count()).max().unwrap();
    for command in commands.iter().flat_map(|command| [format!("{command} -h"), format!("{command} --help")]) {
        let words: Vec<&str> = command.split_whitespace().collect();
        lines(&words);
        // No terminal, and a number of columns that is none.
        for columns in ["", "0", "1", "-5", "wide", "65536", "99999999999999999999"] {
            let output = socbfs(&words).env("COLUMNS", columns).output().unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            assert!((50..=80).contains(&widest(&help)), "COLUMNS={columns} {command}: {}\n{help}", widest(&help));
        }
    }
    let narrow = socbfs(&["doctor", "--help"]).env("COLUMNS", "60").output().unwrap();
    assert!(widest(std::str::from_utf8(&narrow.stdout).unwrap()) <= 60);
}
