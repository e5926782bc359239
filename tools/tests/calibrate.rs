//! Tests of `socbfs calibrate`, run as a user runs it: the file that it writes, the searches that find it, and interruption.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use socbfs::{
    GpuOptions, GpuSetup,
    bfs::{Direction, GpuKernel, LevelPlan, LevelStats, Planner, Strategy},
    graph::{BuildOptions, Layout},
    memory::SharingMode,
    opencl::{Device, Limits},
    search::{Search, SearchOptions},
};
use socbfs_io::generate::Generator;
use socbfs_policy::{LevelDevice, Policy, PolicyPlanner};
use socbfs_tools::calibrate::{Contestant, Turns, evaluate, fit, fit_zhang, measure_levels, numbers};

use crate::{
    built::{User, text},
    implementations::{device, skipped},
};

impl User {
    fn run(&self, arguments: &[&str]) -> Output {
        self.socbfs(arguments).output().unwrap()
    }

    /// Runs `socbfs`, which must succeed, and returns its output and errors.
    fn good(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}\n{err}");
        (out, err)
    }

    /// Runs `socbfs`, which must exit with code 2 and print an error with all `words`.
    fn refused(&self, arguments: &[&str], words: &[&str]) {
        let output = self.run(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{words:?} in {error}");
    }

    /// The calibration files in the folder where searches look for them.
    fn calibrations(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path(".config/socbfs/calibration")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// The content of the calibration `file`.
    fn table(&self, file: &Path) -> toml::Table {
        toml::from_str(&fs::read_to_string(file).unwrap()).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(arguments).0).unwrap()
    }
}

/// Settings of a calibration that takes seconds. Only searches with the same settings find it.
const SETTINGS: [&str; 6] = ["--device", "cpu", "--threads", "1", "--simd", "scalar"];

fn with_settings<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &SETTINGS].concat()
}

#[test]
fn later_searches_find_and_use_the_calibration() {
    let user = User::new();
    let bench = with_settings(&["bench", "--kronecker", "8", "--roots", "2", "--json", "-"]);
    assert_eq!(user.json(&bench)["search"]["calibration"], Value::Null);

    let (table, _) = user.good(&with_settings(&["calibrate", "--quick", "--budget", "2s", "--seed", "3"]));
    let [file] = &user.calibrations()[..] else { panic!("{:?}", user.calibrations()) };
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with("-1t-scalar.toml"), "{name}");
    for words in ["tc", "bc", "MTEPS", "graphs held out of the fit", "sampled", "auto decides by", "written to", "n/a"] {
        assert!(table.contains(words), "{words} in {table}");
    }

    let found = &user.json(&bench)["search"]["calibration"];
    assert_eq!(found["file"], file.to_str().unwrap());
    assert!(found["date"].as_str().unwrap().ends_with('Z') && !found["commit"].as_str().unwrap().is_empty(), "{found}");
    // A row of more than 80 characters continues behind as many blanks as the name of a setting has.
    let shown = user.good(&with_settings(&["board", "show"])).0.replace(&format!("\n{:18}", ""), " ");
    let line = |word: &str| shown.lines().find(|line| line.starts_with(word)).unwrap_or_else(|| panic!("{word} in {shown}")).to_owned();
    let content = user.table(file);
    let decides = content["auto"]["policy"].as_str().unwrap();
    assert!(line("policy").contains(decides) && line("policy").ends_with("calibration"), "{shown}");
    assert!(table.contains(&format!("auto decides by {decides}\n")) && found["auto"] == *decides, "{decides} in {table}");
    assert!(line("calibration ").contains(name) && line("calibration ").ends_with("calibration"), "{shown}");
    assert!(line("model.tc.").contains("calibration:"), "{shown}");

    // Other settings have a calibration of their own, and this one causes no warning.
    let mut other = bench.clone();
    other[10] = "2";
    let output = user.run(&other);
    assert!(!text(&output.stderr).contains("warning: calibration"), "{}", text(&output.stderr));
    let record: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!((&record["search"]["threads"], &record["search"]["calibration"]), (&Value::from(2), &Value::Null));
    assert_eq!(user.json(&[&bench[..], &["--calibration", "off"]].concat())["search"]["calibration"], Value::Null);

    // A calibration that is named but does not fit causes one warning, which says what differs.
    let mut other = [&bench[..], &["--calibration", file.to_str().unwrap()]].concat();
    other[10] = "2";
    let output = user.run(&other);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert_eq!(error.matches("warning: calibration").count(), 1, "{error}");
    assert!(error.contains("number of threads is 1, here it is 2") && error.contains("socbfs calibrate"), "{error}");

    // The objective needs powers, and there was no sensor.
    user.refused(&[&bench[..], &["--objective", "energy"]].concat(), &["tc, bc", name, "power.watts", "help:"]);

    // A damaged calibration is refused, with the line of the error.
    let content = fs::read_to_string(file).unwrap();
    let line = 1 + content.lines().position(|line| line.starts_with("mean_mega_edges_per_s")).unwrap();
    let mut lines: Vec<&str> = content.lines().collect();
    lines[line - 1] = "mean_mega_edges_per_s = nan";
    fs::write(file, lines.join("\n")).unwrap();
    user.refused(&bench, &[&format!("{name}:{line}: strategies[0].mean_mega_edges_per_s"), "NaN", "help:", "--calibration off"]);
}

/// A table `mlp` for a calibration, with a network that always chooses bottom-up.
fn bottom_up_network() -> toml::Table {
    let mut network: toml::Table = toml::from_str(include_str!("../../policy/src/weights/mlp.toml")).unwrap();
    for unit in network["hidden"].as_array_mut().unwrap() {
        unit.as_table_mut().unwrap().insert("output".into(), 0.0.into());
    }
    network.insert("bias".into(), 1.0.into());
    let mut table = toml::toml! {
        version = "0.1.0"
        commit = "abc"
        date = "2026-11-21T12:00:00Z"
        command = ["socbfs", "train"]
        on_device = false
        graphs = 8
        held_out = 2
        accuracy = 0.5
        reduced_time = 0.25
    };
    table.insert("network".into(), network.into());
    table
}

#[test]
fn auto_uses_the_winner_of_the_contest_and_mlp_the_trained_weights() {
    let user = User::new();
    user.good(&with_settings(&["calibrate", "--quick", "--budget", "2s"]));
    let [file] = &user.calibrations()[..] else { panic!("{:?}", user.calibrations()) };
    let measured = user.table(file);
    let contest = measured["auto"].as_table().unwrap();
    let candidates = contest["candidates"].as_array().unwrap();
    let regret = |name: &str| candidates.iter().find(|one| one["policy"].as_str() == Some(name)).unwrap()["regret"].as_float().unwrap();
    let least = ["cost-model", "cost-model:zhang", "sampled"].map(regret).into_iter().fold(f64::INFINITY, f64::min);
    assert!(candidates.len() == 3 && regret(contest["policy"].as_str().unwrap()) <= least, "{contest:?}");

    let policy = |flags: &[&str]| {
        let shown = user.good(&[&with_settings(&["board", "show"])[..], flags].concat()).0;
        let line = shown.lines().find(|line| line.starts_with("policy")).unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let directions = |flags: &[&str]| {
        let bench = with_settings(&["bench", "--kronecker", "10", "--roots", "1", "--json", "-"]);
        let record = user.json(&[&bench[..], flags].concat());
        let levels = record["roots"][0]["level_records"].as_array().unwrap().clone();
        levels.iter().skip(1).map(|level| level["plan"]["direction"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let bottom_up = |directions: &[String]| !directions.is_empty() && directions.iter().all(|direction| direction == "bottom-up");
    assert!(!bottom_up(&directions(&["--policy", "mlp"])));
    // The policy `mlp` uses the weights in the calibration; `auto` uses them if they have won the contest.
    let mut calibration = measured.clone();
    calibration.insert("mlp".into(), bottom_up_network().into());
    for decides in ["cost-model", "cost-model:zhang", "sampled", "mlp"] {
        let contest = calibration["auto"].as_table_mut().unwrap();
        contest.insert("policy".into(), decides.into());
        if decides == "mlp" {
            let candidate = toml::toml! { policy = "mlp"
            regret = 0.0
            worst_regret = 0.0 };
            contest["candidates"].as_array_mut().unwrap().push(candidate.into());
        }
        fs::write(file, toml::to_string(&calibration).unwrap()).unwrap();
        assert_eq!(policy(&[]), decides);
        assert_eq!(bottom_up(&directions(&[])), decides == "mlp", "{decides}");
        assert!(bottom_up(&directions(&["--policy", "mlp"])), "{decides}");
        assert!(!bottom_up(&directions(&["--policy", "mlp", "--calibration", "off"])), "{decides}");
    }
    // A new calibration keeps the weights, and they take part in its contest.
    user.good(&with_settings(&["calibrate", "--quick", "--budget", "2s"]));
    let again = user.table(file);
    assert_eq!(again["mlp"], calibration["mlp"]);
    assert_eq!(again["auto"]["candidates"].as_array().unwrap().len(), 4);
    // Invalid weights are refused, with the file name.
    let good = fs::read_to_string(file).unwrap();
    fs::write(file, good.replacen("output = 0.0", "output = nan", 1)).unwrap();
    let name = file.file_name().unwrap().to_str().unwrap();
    user.refused(
        &with_settings(&["bench", "--kronecker", "8"]),
        &[&format!("{name}:"), "mlp.network.hidden[0]", "finite", "--calibration off"],
    );
}

#[cfg(feature = "train")]
#[test]
fn training_writes_weights_to_the_calibration() {
    let user = User::new();
    let records = user.path("records.jsonl");
    let train = with_settings(&["train", "--generated", "10", "--largest-scale", "10", "--roots", "1", "--turns", "1", "--steps", "20"]);
    let train = [&train[..], &["--records", &records]].concat();
    user.refused(&train, &["no calibration for this machine", "socbfs calibrate", "--mlp FILE"]);
    assert!(!Path::new(&records).exists(), "told before anything was measured");
    user.good(&with_settings(&["calibrate", "--quick", "--budget", "2s"]));
    let [file] = &user.calibrations()[..] else { panic!("{:?}", user.calibrations()) };
    let before = user.table(file);
    let (_, error) = user.good(&train);
    assert!(error.contains(&format!("weights of surf and mlp are in {}", file.display())), "{error}");
    let mut after = user.table(file);
    for form in ["surf", "mlp"] {
        let trained = after.remove(form).unwrap();
        assert!(trained["network"]["policy"].as_str() == Some(form) && trained["graphs"].as_integer() == Some(8), "{trained}");
    }
    assert_eq!(after, before, "all else stays");
    // With output files, or with --calibration off, training does not change the calibration.
    let content = fs::read(file).unwrap();
    user.good(&[&train[..], &["--mlp", &user.path("mlp.toml"), "--seed", "1"]].concat());
    user.good(&[&train[..], &["--calibration", "off"]].concat());
    let file = file.to_str().unwrap();
    user.refused(&[&train[..], &["--calibration", file, "--mlp", file]].concat(), &["can't write", "it is an input as well"]);
    user.refused(&[&train[..], &["--calibration", file, "--json", file]].concat(), &["another output goes to the same file"]);
    assert!(fs::read(file).unwrap() == content && Path::new(&user.path("mlp.toml")).exists());
}

#[test]
fn an_interrupted_calibration_keeps_its_measurements() {
    let user = User::new();
    let (file, whole) = (user.path("c.toml"), user.path("whole.toml"));
    let arguments = |file| with_settings(&["calibrate", "--quick", "--budget", "120s", "--graphs", "4", "-o", file]);
    let mut child = user.socbfs(&arguments(&file)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let partial = format!("{file}.partial");
    let limit = Instant::now() + Duration::from_secs(300);
    let lines = || fs::read_to_string(&partial).map_or(0, |text| text.matches('\n').count());
    while lines() < 3 && child.try_wait().unwrap().is_none() && Instant::now() < limit {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(Pid::from_raw(child.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let kept = lines() - 1;
    assert!(kept >= 2 && !Path::new(&file).exists());
    let (_, error) = user.good(&arguments(&file));
    assert!(error.contains(&format!("continuing after {kept} graphs")), "{error}");
    // The others are told as they end.
    assert_eq!(error.lines().filter(|line| line.contains(" levels in ")).count(), 4 - kept, "{error}");
    assert!(!Path::new(&partial).exists());
    let (_, error) = user.good(&arguments(&whole));
    assert!(!error.contains("continuing after"), "{error}");
    // Times differ, and so does everything fitted to them, but the searched graphs are the same.
    let graphs = |file: &str| toml::from_str::<toml::Table>(&fs::read_to_string(file).unwrap()).unwrap()["graphs"].clone();
    assert_eq!(graphs(&file), graphs(&whole));
    assert_eq!(graphs(&file).as_array().unwrap().len(), 4);
    let names = user.0.names();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn invalid_arguments_of_calibrate_are_refused() {
    let user = User::new();
    user.refused(&["calibrate", "--policy", "tc"], &["--policy", "help:"]);
    user.refused(&["calibrate", "--objective", "energy"], &["--objective"]);
    user.refused(&["calibrate", "-o", "-"], &["standard output", "--json -"]);
    user.refused(&["calibrate", "-o", &user.path("missing/c.toml")], &["missing/c.toml", "help:"]);
    // Only a calibration, of any version, is replaced.
    for (name, content) in [("b.toml", "schema = 1\n[board]\nname = 'b'\n"), ("notes.txt", "not TOML"), ("photo", "\0")] {
        let file = user.0.file(name, content);
        user.refused(
            &["calibrate", "-o", &file],
            &[&format!("can't write {file}: it exists, and is not a calibration"), "help: name another"],
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
    user.refused(&["calibrate", "--budget", "never"], &["--budget"]);
    user.refused(&["run", "kronecker:4", "--root", "0", "--calibration", &user.path("none.toml")], &["none.toml", "socbfs calibrate"]);
}

#[test]
fn an_objective_needs_the_power_of_every_strategy() {
    let user = User::new();
    let bench = ["bench", "--kronecker", "8", "--roots", "2", "--json", "-", "--device", "cpu", "--objective", "edp"];
    user.refused(&bench, &["--objective edp needs the power", "no calibration", "tc, bc", "socbfs sensors", "power.watts"]);
    user.refused(&[&bench[..], &["--policy", "bc"]].concat(), &["cost model", "bc"]);
    user.refused(&["bench", "--objective", "speed"], &["speed"]);
    let board = user.path("b.toml");
    fs::write(&board, "schema = 1\n[board]\nname = 'b'\n[power.watts]\ntc = 3.0\nbc = 4.0\n").unwrap();
    let record = user.json(&[&bench[..], &["--board", &board]].concat());
    assert_eq!((&record["search"]["objective"], &record["valid"]), (&Value::from("edp"), &Value::from(true)));
}

/// The directions of all levels but the first, on a board where top-down takes `tc` watts and bottom-up `bc`.
fn directions(user: &User, objective: &str, tc: f64, bc: f64) -> Vec<Value> {
    let board = user.path("watts.toml");
    fs::write(&board, format!("schema = 1\n[board]\nname = 'b'\n[power.watts]\ntc = {tc:?}\nbc = {bc:?}\n")).unwrap();
    let bench =
        ["bench", "--kronecker", "14", "--roots", "1", "--json", "-", "--device", "cpu", "--objective", objective, "--board", &board];
    let record = user.json(&bench);
    let levels = record["roots"][0]["level_records"].as_array().unwrap().clone();
    levels.iter().skip(1).map(|level| level["plan"]["direction"].clone()).collect()
}

#[test]
fn watts_change_the_plan_if_the_objective_includes_energy() {
    let user = User::new();
    let (top_down, bottom_up) = (Value::from("top-down"), Value::from("bottom-up"));
    for objective in ["energy", "edp"] {
        let dear_bottom_up = directions(&user, objective, 0.001, 1e6);
        assert!(!dear_bottom_up.is_empty() && dear_bottom_up.iter().all(|direction| *direction == top_down), "{dear_bottom_up:?}");
    }
    let dear_top_down = directions(&user, "energy", 1e6, 0.001);
    assert!(!dear_top_down.is_empty() && dear_top_down.iter().all(|direction| *direction == bottom_up), "{dear_top_down:?}");
    let by_time = directions(&user, "time", 0.001, 1e6);
    assert!(by_time.contains(&bottom_up) && by_time.len() > 2, "{by_time:?}");
    assert_eq!(by_time, directions(&user, "energy", 2.0, 2.0), "the same power everywhere is no reason to decide otherwise");
}

#[test]
fn calibrate_measures_power_if_there_is_a_sensor() {
    let user = User::new();
    // An INA231 rail as on an Odroid-XU3, which always reads 3 W.
    let chip = PathBuf::from(user.path("board/sys/class/hwmon/hwmon0"));
    fs::create_dir_all(&chip).unwrap();
    for (name, text) in [("name", "ina231"), ("power1_input", "3000000"), ("update_interval", "2"), ("label", "VDD_ARM")] {
        fs::write(chip.join(name), text).unwrap();
    }
    std::os::unix::fs::symlink("../../../0-0040", chip.join("device")).unwrap();
    let sensor = ["--sysfs-root", &user.path("board"), "--energy", "ina2xx:0-0040"];
    let calibrate = with_settings(&["calibrate", "--quick", "--budget", "2s", "--json", "-"]);
    let report = crate::undisturbed(
        || user.json(&[&calibrate[..], &sensor].concat()),
        |report| report["calibration"]["strategies"].as_array().unwrap().iter().all(|numbers| numbers["watts"].is_number()),
    );
    let calibration = &report["calibration"];
    assert_eq!(calibration["power"]["sensors"], serde_json::json!(["ina2xx:0-0040"]));
    let three = |watts: &Value| (watts.as_f64().unwrap() - 3.0).abs() < 1e-6;
    assert!(three(&calibration["power"]["idle_watts"]), "{}", calibration["power"]);
    for strategy in ["tc", "bc"] {
        assert!(three(&calibration["model"][strategy]["watts"]) && three(&calibration["model_zhang"][strategy]["watts"]), "{strategy}");
    }
    assert!(calibration["strategies"].as_array().unwrap().iter().all(|numbers| three(&numbers["watts"])));
    let bench = with_settings(&["bench", "--kronecker", "8", "--roots", "2", "--objective", "energy", "--json", "-"]);
    let search = &user.json(&bench)["search"];
    assert_eq!((&search["objective"], &search["calibration"]["file"]), (&Value::from("energy"), &report["file"]));
}

/// With PoCL the device shares the cores with the host, so the ratios are those of real contention.
#[test]
fn parts_of_split_levels_are_measured_alone_and_while_both_devices_work() {
    const TEST: &str = "parts_of_split_levels_are_measured_alone_and_while_both_devices_work";
    let Some(info) = device("Portable Computing Language") else {
        return skipped(TEST, "PoCL is not installed, or not found without tests/opencl_env");
    };
    let device = Device::open(&info, Limits::default()).unwrap();
    let setup = GpuSetup { device, way: SharingMode::AllocHostPtr, options: GpuOptions::default() };
    let edges = Generator::Uniform { vertices: 1 << 16, edges: 1 << 20, seed: 3 }.generate(&|_| {}).unwrap();
    let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
    let options = SearchOptions { every_planner: true, threads: 1, devices: vec![setup], ..SearchOptions::default() };
    let mut search = Search::new(&layout, &options).unwrap();
    let strategies = [Strategy::Tc, Strategy::Tg, Strategy::Bc, Strategy::Bg];
    let how = Turns { turns: 2, splits: true, ..Turns::default() };
    // Other work on this machine may hide how far the devices slow each other down: three tries.
    let mut missing = Vec::new();
    for _ in 0..3 {
        let tables = [measure_levels(&mut search, 1, &strategies, &how).unwrap()];
        for level in &tables[0].levels {
            for kernel in GpuKernel::ALL {
                assert_eq!(level.parts[kernel as usize].is_some(), strategies.contains(&kernel.into()), "{kernel:?}");
            }
            // The host waits for the device, and runs a part whatever its size.
            let parts = level.parts.iter().flatten().flat_map(|parts| [parts.alone_ns, parts.both_ns]);
            assert!(parts.flatten().all(|ns| ns > 0.0), "{level:?}");
        }
        // The level with most arcs is long enough.
        let model = fit(&tables).unwrap();
        missing.clear();
        for numbers in numbers(&tables, &strategies, &model, &fit_zhang(&tables).unwrap()) {
            let name = numbers.strategy.name();
            let corun = model.of(numbers.strategy).unwrap().corun;
            println!("{name}: {:?}", numbers.corun);
            assert_eq!(corun, numbers.corun.map(|found| found.median.max(socbfs_policy::LEAST_RATIO)), "{name}");
            if numbers.strategy.direction() == Direction::TopDown && corun.is_none() {
                missing.push(name);
            }
        }
        if missing.is_empty() {
            break;
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// A planner outside the library, which plans as `alpha-beta` does.
#[derive(Clone)]
struct Beamer(PolicyPlanner);

impl Planner for Beamer {
    fn begin(&mut self) {
        self.0.begin();
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        self.0.plan(stats)
    }
}

/// The oracle judges the planner of a program, and a rule, as it judges a policy that says the same.
#[test]
fn planners_of_programs_are_compared_with_the_oracle() {
    let edges = Generator::graph500(12).generate(&|_| ()).unwrap();
    let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
    let mut search = Search::new(&layout, &SearchOptions { every_planner: true, threads: 1, ..SearchOptions::default() }).unwrap();
    let rule = "rule:not was_bottom_up and frontier_edges > unvisited_edges / 15 or was_bottom_up and not \
                (frontier_vertices < previous_frontier_vertices and frontier_vertices < vertices / 18)";
    let beamer: Policy = "alpha-beta".parse().unwrap();
    let planner = Policy::planner(Beamer(PolicyPlanner::new(beamer.clone(), LevelDevice::Cpu)));
    let contestants =
        [beamer, planner, rule.parse().unwrap()].map(|policy| Contestant { name: policy.to_string(), policy, runs: LevelDevice::Cpu });
    assert_eq!(contestants[1].name, "planner:Beamer");
    let how = Turns { turns: 2, ..Turns::default() };
    let (evaluation, _) = evaluate(&mut search, &[5, 17], &Strategy::CPU, &contestants, &how, |_, _| ()).unwrap();
    let mut bottom_up = 0;
    for root in &evaluation.roots {
        let [beamer, planner, rule] = &root.policies[..] else { panic!("{:?}", root.policies) };
        for own in [planner, rule] {
            assert_eq!((&own.plans, own.table_ns, own.as_oracle), (&beamer.plans, beamer.table_ns, beamer.as_oracle));
            assert!(own.table_ns >= root.oracle.table_ns && own.plans.len() == root.oracle.plans.len());
        }
        bottom_up += beamer.plans.iter().filter(|plan| plan.direction == Direction::BottomUp).count();
    }
    assert!(bottom_up > 0);
}
