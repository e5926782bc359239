//! Tests of `socbfs bench --report board` and `socbfs doctor`, run as a user runs them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::built::socbfs;

fn run(arguments: &[&str]) -> Output {
    socbfs(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A board report of small scales on the CPU.
fn report(more: &[&str]) -> Output {
    run(&[&["bench", "--report", "board", "--device", "cpu", "--roots", "3"], more].concat())
}

/// The cells of the rows of the last table.
fn table(markdown: &str) -> Vec<Vec<&str>> {
    let rows = markdown.lines().skip_while(|line| !line.starts_with("| scale |")).skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn a_board_report_is_markdown_with_a_row_for_each_scale() {
    let output = report(&["--scales", "8..=9,7"]);
    let (markdown, progress) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{progress}");
    for fact in ["Board", "SoC", "CPU", "Memory", "Kernel", "OpenCL", "Governor", "Idle power", "Search", "socbfs", "Command"] {
        assert!(markdown.contains(&format!("\n| {fact} | ")), "{fact} in\n{markdown}");
    }
    let rows = table(markdown);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["7", "8", "9"]);
    for row in &rows {
        let speed: f64 = row[1].split(' ').next().unwrap().replace(',', "").parse().unwrap();
        assert!(speed > 0.0 && row[2..] == ["n/a", "n/a"], "{row:?}");
    }
    assert!(
        markdown.contains("All 9 trees passed the five checks") && markdown.contains("No watts: switched off with --energy off."),
        "{markdown}"
    );
    // Progress goes to standard error.
    assert!(progress.contains("scale 8: ") && !markdown.contains("scale 8: "), "{progress}");
    assert_eq!(text(&report(&["--scales", "7", "-q"]).stderr), "");
}

#[test]
fn the_json_of_a_board_has_the_record_of_every_scale() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("board.json");
    let output = report(&["--scales", "7..=8", "--json", path.to_str().unwrap()]);
    assert!(!table(text(&output.stdout)).is_empty());
    let record: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!((&record["schema"], &record["valid"], &record["complete"]), (&"socbfs-board".into(), &true.into(), &true.into()));
    let runs = record["runs"].as_array().unwrap();
    assert_eq!(runs.iter().map(|run| run["graph"]["scale"].as_u64().unwrap()).collect::<Vec<_>>(), [7, 8]);
    assert!(runs.iter().all(|run| run["roots"].as_array().unwrap().len() == 3 && run["schema"] == "socbfs-bench"));
    // With `--json -` the record replaces the report.
    let piped = report(&["--scales", "7", "--json", "-"]);
    assert_eq!(serde_json::from_slice::<Value>(&piped.stdout).unwrap()["schema"], "socbfs-board");
}

#[test]
fn the_table_of_boards_is_made_of_the_records_beside_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../boards/results");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut records: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|extension| extension == "json")).collect();
    records.sort();
    assert!(!records.is_empty());
    for file in &records {
        let record: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(
            (&record["schema"], &record["valid"], &record["complete"]),
            (&"socbfs-board".into(), &true.into(), &true.into()),
            "{file:?}"
        );
        let roots = |run: &Value| run["roots"].as_array().unwrap().iter().all(|root| root["validation"]["passed"] == true);
        assert!(record["runs"].as_array().unwrap().iter().all(roots), "{file:?}");
        assert!(!record["environment"]["build"]["commit"].as_str().unwrap().ends_with('+'), "{file:?} is of a changed checkout");
    }
    let table = |records: &[&str]| {
        let output = run(&[&["report", "--figure", "boards", "--markdown"], records].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let lines = text(&output.stdout).lines().filter(|line| line.starts_with('|'));
        lines.collect::<Vec<_>>().join("\n")
    };
    let names: Vec<&str> = records.iter().map(|file| file.to_str().unwrap()).collect();
    let made = table(&names);
    let page = fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(page.contains(&format!("\n{made}\n\n")), "boards/results/README.md is to have:\n{made}");

    // A row for each board, with the speed of its fastest scale.
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("small.json");
    assert!(report(&["--scales", "7..=8", "--json", path.to_str().unwrap()]).status.success());
    let rows = table(&[names[0], path.to_str().unwrap()]);
    let rows: Vec<Vec<&str>> = rows.lines().map(|line| line.split(" | ").collect()).collect();
    assert_eq!((rows.len(), rows[0].len()), (4, 10), "{rows:?}");
    let record: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let teps = |run: &Value| run["summary"]["teps"]["harmonic_mean"].as_f64().unwrap() / 1e6;
    let most = record["runs"].as_array().unwrap().iter().map(teps).fold(0.0, f64::max);
    let shown: f64 = rows[3][4].split(' ').next().unwrap().replace(',', "").parse().unwrap();
    assert!((shown / most - 1.0).abs() < 0.002, "{shown} for {most}");
    assert_eq!((rows[3][5], rows[3][6], rows[3][7]), ("n/a", "n/a", "3"));
    // Among other records, the table comes first.
    let both = run(&["report", names[0], path.to_str().unwrap()]);
    assert!(text(&both.stdout).starts_with("Boards side by side"), "{}", text(&both.stdout));
}

#[test]
fn scales_too_large_for_memory_are_omitted_and_reported() {
    let output = report(&["--scales", "7,31"]);
    assert_eq!(output.status.code(), Some(0));
    let markdown = text(&output.stdout);
    assert_eq!(table(markdown).len(), 1);
    assert!(markdown.contains("- Warning: scale 31 is left out: it takes about 1.3 TiB, more than 75 % of the "), "{markdown}");
    let none = report(&["--scales", "31"]);
    assert_eq!((none.status.code(), text(&none.stdout)), (Some(2), ""));
    assert!(text(&none.stderr).contains("no scale fits the memory"), "{}", text(&none.stderr));
}

#[test]
fn graphs_and_scales_that_do_not_fit_the_report_are_refused() {
    for (arguments, words) in [
        (&["bench", "--report", "board", "kronecker:8"][..], "takes no graph"),
        (&["bench", "--report", "board", "--kronecker", "8"], "takes no graph"),
        (&["bench", "--scales", "8"], "--scales is for --report board"),
        (&["bench", "--report", "board", "--scales", "9..=8"], "contains no scale"),
        (&["bench", "--report", "board", "--scales", "7", "--json", "/nonexistent/x.json"], "can't write"),
    ] {
        let output = run(arguments);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), ""), "{arguments:?}");
        assert!(text(&output.stderr).contains(words), "{words:?} in {}", text(&output.stderr));
    }
}

#[test]
fn a_board_report_shows_watts_and_their_sum() {
    let folder = tempfile::tempdir().unwrap();
    for (chip, device, power) in [("hwmon0", "0-0040", "3000000"), ("hwmon1", "0-0045", "1000000")] {
        let path = folder.path().join("sys/class/hwmon").join(chip);
        fs::create_dir_all(&path).unwrap();
        for (name, value) in [("name", "ina231"), ("power1_input", power), ("update_interval", "2")] {
            fs::write(path.join(name), value).unwrap();
        }
        std::os::unix::fs::symlink(format!("../../../{device}"), path.join("device")).unwrap();
    }
    let root = folder.path().to_str().unwrap();
    let energy = ["--sysfs-root", root, "--energy", "ina2xx:0-0040,ina2xx:0-0045", "--energy-seconds", "0.3", "--energy-repeats", "2"];
    let output = crate::undisturbed(
        || report(&[&["--scales", "7..=8"], &energy[..]].concat()),
        |output| table(text(&output.stdout)).iter().all(|row| row[2].starts_with("4 at ")),
    );
    let markdown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(markdown.contains("| Idle power | 4.000 W (soc-rails: ina2xx:0-0040 + ina2xx:0-0045) |"), "{markdown}");
    for row in table(markdown) {
        // The speed beside the watts is that of their windows, so the three agree.
        let mteps = row[2].strip_prefix("4 at ").unwrap().strip_suffix(" MTEPS").unwrap().replace(',', "");
        let [mteps, per_watt] = [&*mteps, row[3]].map(|number| number.parse::<f64>().unwrap());
        assert!(per_watt > 0.0 && (mteps / 4.0 / per_watt - 1.0).abs() < 0.02, "{row:?}");
    }
}

#[test]
fn an_interrupted_board_report_keeps_its_finished_scales() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("board.json");
    // Scale 20 takes minutes.
    let arguments = ["bench", "--report", "board", "--device", "cpu", "--roots", "64", "--threads", "1", "--scales", "8,20..=21", "--json"];
    let mut child = socbfs(&arguments).arg(&path).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut progress = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("scale 8: ") {
        line.clear();
        assert!(progress.read_line(&mut line).unwrap() > 0, "it ended before scale 8 did");
    }
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let mut markdown = String::new();
    child.stdout.take().unwrap().read_to_string(&mut markdown).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // The progress line is printed and its record kept under one lock, which the report takes too, so the report includes scale 8.
    let rows = table(&markdown);
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["8"], "{markdown}");
    assert!(
        markdown.contains(
            "- Warning: scale 20 is left out: the run was interrupted\n- Warning: scale 21 is left out: the run was interrupted\n"
        ),
        "{markdown}"
    );
    let record: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!((&record["complete"], record["runs"].as_array().unwrap().len()), (&false.into(), 1));
    // The record, and the file from which the same command continues.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary was left");
    assert!(folder.path().join("board.json.partial").exists());
}

fn findings(json: &[u8]) -> Value {
    let diagnosis: Value = serde_json::from_slice(json).unwrap();
    assert_eq!(diagnosis["schema"], "socbfs-doctor");
    diagnosis
}

fn of<'d>(diagnosis: &'d Value, check: &str) -> &'d Value {
    diagnosis["findings"].as_array().unwrap().iter().find(|finding| finding["check"] == check).unwrap_or_else(|| panic!("no {check}"))
}

#[test]
fn the_doctor_finds_this_machine_fit_to_search() {
    let output = run(&["doctor", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let diagnosis = findings(&output.stdout);
    assert_eq!((&diagnosis["works"], &of(&diagnosis, "search")["verdict"]), (&true.into(), &"ok".into()));
    for finding in diagnosis["findings"].as_array().unwrap() {
        let verdict = finding["verdict"].as_str().unwrap();
        assert!(["ok", "unknown", "warning"].contains(&verdict), "{finding}");
        assert_eq!(finding["cure"].is_string(), verdict == "warning", "{finding}");
    }
}

#[test]
fn the_doctor_reports_problems_of_a_hot_board_with_their_cures() {
    let folder = crate::fixtures::machine("doctor/hot-board");
    let root = folder.path();
    let output = run(&["doctor", "--sysfs-root", root.to_str().unwrap(), "--json"]);
    // The board is slow and uneven, but it can search.
    assert_eq!(output.status.code(), Some(0));
    let diagnosis = findings(&output.stdout);
    assert!(of(&diagnosis, "board")["reason"].as_str().unwrap().contains("odroid-xu4"));
    for (check, reason, cure) in [
        ("opencl-library", "a GPU at /dev/mali0", "ocl-icd-libopencl1"),
        ("opencl-driver", "/usr/lib/arm-linux-gnueabihf/mali-egl/libOpenCL.so", "find / -name"),
        ("cpus", "switched off: 6 7; 6 are online", "for c in 6 7; do"),
        ("governor", "ondemand", "echo performance | sudo tee"),
        ("clock-limit", "policy4 at 1800 of 2000 MHz", "echo 2000000 | sudo tee /sys/devices/system/cpu/cpufreq/policy4/scaling_max_freq"),
        ("gpu-governor", "simple_ondemand (11800000.gpu)", "/sys/class/devfreq/11800000.gpu/governor"),
        ("temperature", "cpu0-thermal has 82 °C, and the chip slows down at 85 °C", "cool it"),
        ("throttling", "slows down thermal-cpufreq-1 now (step 4 of 18)", "cool it"),
        ("memory", "313.5 MiB of 1.9 GiB", "top -b"),
        ("swap", "305.9 MiB of 512.0 MiB", "sudo swapoff -a && sudo swapon -a"),
        ("huge-pages", "never", "echo madvise | sudo tee"),
    ] {
        let finding = of(&diagnosis, check);
        assert_eq!(finding["verdict"], "warning", "{finding}");
        for (field, words) in [("reason", reason), ("cure", cure)] {
            assert!(finding[field].as_str().unwrap().contains(words), "{words:?} in {finding}");
        }
    }
    // Checks that need the running machine are "unknown" for a copy of its files.
    assert!(["search", "opencl-device", "power-sensors"].iter().all(|check| of(&diagnosis, check)["verdict"] == "unknown"));
    let quiet = run(&["doctor", "--quiet", "--sysfs-root", root.to_str().unwrap()]);
    let said = text(&quiet.stdout);
    assert!(said.starts_with("warning ") && said.lines().all(|line| line.starts_with("warning ") || line.starts_with("    ")), "{said}");
}

#[test]
fn the_load_of_another_machine_is_judged_by_its_own_cpus() {
    let folder = tempfile::tempdir().unwrap();
    let cpus = "sys/devices/system/cpu";
    fs::create_dir_all(folder.path().join(cpus)).unwrap();
    fs::create_dir_all(folder.path().join("proc")).unwrap();
    for name in ["present", "online"] {
        fs::write(folder.path().join(cpus).join(name), "0-511\n").unwrap();
    }
    fs::write(folder.path().join("proc/loadavg"), "200.00 20.00 2.00 1/100 7\n").unwrap();
    let diagnosis = findings(&run(&["doctor", "--sysfs-root", folder.path().to_str().unwrap(), "--json"]).stdout);
    assert_eq!(of(&diagnosis, "load")["verdict"], "ok", "{diagnosis}");
    assert_eq!(of(&diagnosis, "cpus")["reason"], "512 online, none switched off");
}

/// Compiles a driver with this `code`, for `OPENCL_DYLIB_PATH`. Prints SKIPPED if there is no C compiler.
pub(crate) fn driver(folder: &Path, code: &str) -> Option<PathBuf> {
    let (source, library) = (folder.join("driver.c"), folder.join("libdriver.so"));
    fs::write(&source, code).unwrap();
    match Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status() {
        Ok(status) => {
            assert!(status.success(), "the driver does not compile: {status}");
            Some(library)
        }
        Err(error) => {
            crate::implementations::skipped("a test with a driver", &format!("no C compiler: {error}"));
            None
        }
    }
}

#[test]
fn the_doctor_survives_a_crashing_driver_and_reports_it() {
    let folder = tempfile::tempdir().unwrap();
    let code = "__attribute__((constructor)) static void crash(void) { *(volatile int *)0 = 1; }\n";
    let Some(library) = driver(folder.path(), code) else { return };
    let output = socbfs(&["doctor", "--json"]).env("OPENCL_DYLIB_PATH", &library).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let diagnosis = findings(&output.stdout);
    let finding = of(&diagnosis, "opencl-device");
    assert_eq!((&diagnosis["works"], &finding["verdict"]), (&false.into(), &"problem".into()));
    assert!(
        finding["reason"].as_str().unwrap().contains("an OpenCL driver ended its process by SIGSEGV") && finding["cure"].is_string(),
        "{finding}"
    );
    // The CPU needs no driver.
    assert_eq!(of(&diagnosis, "search")["verdict"], "ok");
    // The exit code is the same if nothing reads the findings.
    let (reader, writer) = nix::unistd::pipe().unwrap();
    drop(reader);
    let unread = socbfs(&["doctor"]).env("OPENCL_DYLIB_PATH", &library).stdout(writer).output().unwrap();
    assert_eq!(unread.status.code(), Some(2), "{}", text(&unread.stderr));
}

#[test]
fn the_doctor_names_libraries_that_can_not_be_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let vendors = folder.path().join("vendors");
    fs::create_dir(&vendors).unwrap();
    let library = |name: &str, code: &str| {
        let library = folder.path().join(name);
        fs::rename(driver(folder.path(), code)?, &library).unwrap();
        Some(library)
    };
    let Some(lone) = library("lone.so", "int clGetPlatformIDs(void) { return -1001; }\n") else { return };
    let lacks =
        library("lacks.so", "int none(void); void *clGetExtensionFunctionAddress(void) { return 0; } int (*f)(void) = none;\n").unwrap();
    let crashes = library("crashes.so", "__attribute__((constructor)) static void f(void) { *(volatile int *)0 = 1; }\n").unwrap();
    let good = library("good.so", "void *clGetExtensionFunctionAddress(void) { return 0; }\n").unwrap();
    let no_library = folder.path().join("text.so");
    fs::write(&no_library, "text").unwrap();
    let found = |check: &str, variable: &str, value: &str| {
        let mut command = socbfs(&["doctor", "--json"]);
        command.env("OCL_ICD_VENDORS", &vendors).env("SOCBFS_CACHE_DIR", "").env_remove("OPENCL_DYLIB_PATH").env(variable, value);
        of(&findings(&command.output().unwrap().stdout), check).clone()
    };
    let cases = [(&lone, "clGetExtensionFunctionAddress"), (&lacks, "undefined symbol"), (&crashes, "SIGSEGV"), (&no_library, "text.so: ")];
    for (library, why) in cases {
        fs::write(vendors.join("a.icd"), library.to_str().unwrap()).unwrap();
        let finding = found("opencl-driver", "OPENCL_DYLIB_PATH", "");
        let reason = finding["reason"].as_str().unwrap();
        assert!(finding["verdict"] == "warning" && reason.contains(library.to_str().unwrap()) && reason.contains(why), "{finding}");
    }
    fs::write(vendors.join("a.icd"), good.to_str().unwrap()).unwrap();
    assert_eq!(found("opencl-driver", "OPENCL_DYLIB_PATH", "")["verdict"], "ok");
    assert!(!found("opencl-driver", "OCL_ICD_VENDORS", "")["reason"].as_str().unwrap().contains("OCL_ICD_VENDORS"), "empty is not set");
    // A library that was named and can't be opened. Nothing else is taken for it.
    for (named, why) in [(&*folder.path().join("none.so"), "No such file"), (&lacks, "undefined symbol"), (&good, "clGetPlatformIDs")] {
        let finding = found("opencl-library", "OPENCL_DYLIB_PATH", named.to_str().unwrap());
        let reason = finding["reason"].as_str().unwrap();
        assert!(finding["verdict"] == "warning" && reason.contains(named.to_str().unwrap()) && reason.contains(why), "{finding}");
        let mut command = socbfs(&["run", "grid:8x8", "--root", "0", "--device", "gpu"]);
        let output = command.env("OPENCL_DYLIB_PATH", named).output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why) && said.contains("OPENCL_DYLIB_PATH"), "{said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_ended_doctor_leaves_no_process_in_a_hanging_driver() {
    use std::{
        thread::sleep,
        time::{Duration, Instant},
    };

    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let folder = tempfile::tempdir().unwrap();
    // A process that opens this driver writes its process id to a file and hangs.
    let code = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #include <unistd.h>
        __attribute__((constructor)) static void hang(void) {
            const char *name = getenv("SOCBFS_TEST_HANGING");
            char half[4096];
            snprintf(half, sizeof half, "%s.half", name);
            FILE *file = fopen(half, "w");
            fprintf(file, "%d", (int)getpid());
            fclose(file);
            rename(half, name);
            for (;;) pause();
        }
    "#;
    let Some(library) = driver(folder.path(), code) else { return };
    // A process that has ended and that no parent has waited for is a zombie.
    let lives = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    let limit = Duration::from_secs(120);
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let note = folder.path().join(signal.as_str());
        let mut command = socbfs(&["doctor", "--json"]);
        command.env("OPENCL_DYLIB_PATH", &library).env("SOCBFS_TEST_HANGING", &note).stdout(Stdio::null()).stderr(Stdio::null());
        let mut doctor = command.spawn().unwrap();
        let begin = Instant::now();
        while !note.exists() {
            assert!(begin.elapsed() < limit && doctor.try_wait().unwrap().is_none(), "no process opened the driver");
            sleep(Duration::from_millis(10));
        }
        let hanging = fs::read_to_string(&note).unwrap();
        assert!(lives(&hanging) && hanging != doctor.id().to_string(), "{hanging} hangs");
        kill(Pid::from_raw(doctor.id().try_into().unwrap()), signal).unwrap();
        let code = doctor.wait().unwrap().code();
        assert_eq!(code, (signal == Signal::SIGTERM).then_some(130));
        let begin = Instant::now();
        while lives(&hanging) {
            if begin.elapsed() > Duration::from_secs(60) {
                kill(Pid::from_raw(hanging.parse().unwrap()), Signal::SIGKILL).unwrap();
                panic!("after {signal} the doctor's child lives on");
            }
            sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn manual_pages_and_completions_contain_every_subcommand() {
    let folder = tempfile::tempdir().unwrap();
    let man = folder.path().join("man");
    assert_eq!(run(&["man", man.to_str().unwrap()]).status.code(), Some(0));
    let page = fs::read_to_string(man.join("socbfs.1")).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        for name in ["bench", "run", "doctor", "devices", "board", "sensors", "energy", "validate"] {
            assert!(text(&output.stdout).contains(name), "{name} in the completions of {shell}");
            assert!(page.contains(&format!("socbfs\\-{name}(1)")), "{name} in the manual page");
            assert!(man.join(format!("socbfs-{name}.1")).exists(), "{name} has a page");
        }
    }
    assert!(man.join("socbfs-board-detect.1").exists() && !man.join("socbfs-man.1").exists());
}
