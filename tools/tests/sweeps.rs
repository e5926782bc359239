//! Sweeps of simulated boards: whether the best operating points are found, in how many points, and whether clocks are always put back.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use proptest::prelude::*;
use socbfs::stats::Summary;
use socbfs_boards::board::{Cluster, Goal};
use socbfs_power::Watts;
use socbfs_tools::{
    board::operating_points,
    record::{EnergySummary, Environment, PointMeasured, PointRecord, SweepRecord},
    report::sweep as sweep_report,
    sweep::{
        Axes, Clocks, Domain, Machine, SWEEP_SCHEMA, SWEEP_SCHEMA_VERSION, Spot, SweepOptions, Tried, Turn, best, domains, frontier, sweep,
    },
};

/// A cluster of a simulated chip: its cores run a share of a search that scales with the clock, and the memory limits all together.
struct Cores {
    name: &'static str,
    cpus: &'static str,
    steps_mhz: &'static [u64],
    /// Traversed edges per second and MHz of one core, as long as the memory keeps up.
    teps_per_mhz: f64,
    /// Watts of a core at its highest clock and voltage.
    watts: f64,
    /// Share of the highest voltage at the lowest clock.
    lowest_volt: f64,
}

struct Board {
    name: &'static str,
    clusters: &'static [Cores],
    /// Frequencies and watts of the GPU at its highest; it multiplies the speed by up to this factor.
    gpu: Option<(&'static [u64], f64, f64)>,
    /// Traversed edges per second at which the memory is the limit.
    memory_teps: f64,
    static_watts: f64,
    /// Watts above which the chip slows itself down.
    most_watts: f64,
}

const BOARDS: [Board; 4] = [
    Board {
        name: "odroid-xu4",
        clusters: &[
            Cores {
                name: "little",
                cpus: "0-3",
                steps_mhz: &[200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400],
                teps_per_mhz: 14e3,
                watts: 0.35,
                lowest_volt: 0.72,
            },
            Cores {
                name: "big",
                cpus: "4-7",
                steps_mhz: &[200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000],
                teps_per_mhz: 30e3,
                watts: 1.9,
                lowest_volt: 0.68,
            },
        ],
        gpu: None,
        memory_teps: 190e6,
        static_watts: 2.1,
        most_watts: 9.0,
    },
    Board {
        name: "raspberry-pi-5",
        clusters: &[Cores {
            name: "all",
            cpus: "0-3",
            steps_mhz: &[1500, 1600, 1700, 1800, 1900, 2000, 2100, 2200, 2300, 2400],
            teps_per_mhz: 60e3,
            watts: 1.3,
            lowest_volt: 0.82,
        }],
        gpu: None,
        memory_teps: 480e6,
        static_watts: 2.7,
        most_watts: 20.0,
    },
    Board {
        name: "rk3588",
        clusters: &[
            Cores {
                name: "little",
                cpus: "0-3",
                steps_mhz: &[408, 600, 816, 1008, 1200, 1416, 1608, 1800],
                teps_per_mhz: 20e3,
                watts: 0.4,
                lowest_volt: 0.75,
            },
            Cores {
                name: "big",
                cpus: "4-7",
                steps_mhz: &[408, 600, 816, 1008, 1200, 1416, 1608, 1800, 2016, 2208, 2256, 2304],
                teps_per_mhz: 62e3,
                watts: 1.7,
                lowest_volt: 0.7,
            },
        ],
        gpu: None,
        memory_teps: 700e6,
        static_watts: 1.9,
        most_watts: 12.0,
    },
    Board {
        name: "jetson-orin",
        clusters: &[Cores {
            name: "all",
            cpus: "0-5",
            steps_mhz: &[115, 192, 268, 345, 422, 499, 576, 652, 729, 806, 883, 960, 1036, 1113, 1190, 1267, 1344, 1420, 1497, 1510],
            teps_per_mhz: 55e3,
            watts: 1.1,
            lowest_volt: 0.66,
        }],
        gpu: Some((&[306, 408, 510, 612, 624], 4.0, 1.9)),
        memory_teps: 1200e6,
        static_watts: 3.4,
        most_watts: 15.0,
    },
];

impl Board {
    fn axes(&self) -> Axes {
        let clusters: Vec<Cluster> = self.clusters.iter().map(|cores| cluster(cores.name, cores.cpus)).collect();
        let root = tempfile::tempdir().unwrap();
        for (place, cores) in self.clusters.iter().enumerate() {
            let cpus: Vec<usize> = clusters[place].cpus.as_ref().unwrap().numbers().to_vec();
            cpufreq(root.path(), cpus[0], &cpus, cores.steps_mhz);
        }
        if let Some((steps, ..)) = self.gpu {
            devfreq(root.path(), "17000000.gpu", steps);
        }
        let domains = domains(root.path(), &clusters);
        let devices: &[_] = if self.gpu.is_some() { &[("auto", false), ("gpu", true), ("cpu", false)] } else { &[("cpu", false)] };
        Axes::new(&clusters, &(0..8).collect::<Vec<_>>(), domains, devices, &[], true)
    }

    /// Speed of all cores at their highest clocks.
    fn cpu_teps(&self) -> f64 {
        let of = |cores: &Cores| {
            let count = cluster(cores.name, cores.cpus).cpus.unwrap().numbers().len();
            (count as u64 * cores.steps_mhz[cores.steps_mhz.len() - 1]) as f64 * cores.teps_per_mhz
        };
        self.clusters.iter().map(of).sum()
    }

    /// Speed and power at a spot; clocks as they were found are the highest. `None`: the chip slows itself down.
    fn run(&self, axes: &Axes, spot: &Spot) -> Option<(f64, f64)> {
        let point = axes.point(spot);
        let (mut teps, mut watts) = (0.0, self.static_watts);
        for cores in self.clusters {
            let all: Vec<usize> = cluster(cores.name, cores.cpus).cpus.unwrap().numbers().to_vec();
            let used = all.iter().filter(|cpu| point.cpus.numbers().contains(cpu)).count() as f64;
            let (low, high) = (cores.steps_mhz[0] as f64, *cores.steps_mhz.last().unwrap() as f64);
            let mhz = point.clocks_khz.get(cores.name).map_or(high, |khz| *khz as f64 / 1e3);
            let volt = cores.lowest_volt + (1.0 - cores.lowest_volt) * ((mhz - low) / (high - low)).powi(2);
            teps += used * mhz * cores.teps_per_mhz;
            watts += used * cores.watts * volt * volt * mhz / high;
        }
        if let Some((steps, most, factor)) = self.gpu.filter(|_| point.device != "cpu") {
            let high = *steps.last().unwrap() as f64;
            let share = point.clocks_khz.get("17000000.gpu").map_or(1.0, |khz| *khz as f64 / 1e3 / high);
            // Alone it is as fast as its part of a search with both.
            teps = if point.device == "gpu" { (factor - 1.0) * share * self.cpu_teps() } else { teps * (1.0 + (factor - 1.0) * share) };
            watts += most * share * (0.55 + 0.45 * share * share);
        }
        // Half of a search waits for the memory where it is the limit.
        let teps = 1.0 / (1.0 / teps + 1.0 / self.memory_teps);
        (watts <= self.most_watts).then_some((teps, watts))
    }
}

fn cluster(name: &str, cpus: &str) -> Cluster {
    Cluster { name: name.into(), cores: 4, core_type: None, max_mhz: None, cpus: Some(cpus.parse().unwrap()), capacity: None }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn cpufreq(root: &Path, policy: usize, cpus: &[usize], steps_mhz: &[u64]) -> PathBuf {
    let folder = root.join(format!("sys/devices/system/cpu/cpufreq/policy{policy}"));
    let khz: Vec<String> = steps_mhz.iter().map(|mhz| (mhz * 1000).to_string()).collect();
    let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
    for (name, text) in [
        ("related_cpus", cpus.join(" ")),
        ("scaling_available_frequencies", khz.join(" ")),
        ("cpuinfo_min_freq", khz[0].clone()),
        ("cpuinfo_max_freq", khz[khz.len() - 1].clone()),
        ("scaling_min_freq", khz[0].clone()),
        ("scaling_max_freq", khz[khz.len() - 1].clone()),
    ] {
        write(&folder.join(name), &text);
    }
    folder
}

fn devfreq(root: &Path, name: &str, steps_mhz: &[u64]) {
    let folder = root.join("sys/class/devfreq").join(name);
    let hz: Vec<String> = steps_mhz.iter().map(|mhz| (mhz * 1_000_000).to_string()).collect();
    write(&folder.join("available_frequencies"), &hz.join(" "));
    write(&folder.join("min_freq"), &hz[0]);
    write(&folder.join("max_freq"), &hz[hz.len() - 1]);
}

fn measured(teps: f64, watts: f64) -> PointMeasured {
    let edges = 1e7;
    let of = |value: f64| Summary::of(&[value]).unwrap();
    let seconds = edges / teps;
    PointMeasured {
        teps,
        search_seconds: seconds,
        searches: 100,
        spread: 0.01,
        energy: Some(EnergySummary {
            mteps_per_watt: of(teps / 1e6 / watts),
            mteps_per_watt_net_of_idle: None,
            watts: of(watts),
            joules_per_search: of(watts * seconds),
            joules_per_search_net_of_idle: None,
            energy_delay_joule_seconds: of(watts * seconds * seconds),
            idle_watts: Watts(1.0),
            domains: Vec::new(),
            samples: 100,
            wraps: 0,
        }),
        problem: None,
        celsius: [None; 2],
        waited_seconds: 0.0,
        other_cpus: None,
    }
}

/// A simulated board: each point takes ten seconds, and is read with an error of up to half a per cent.
struct Simulated<'b> {
    board: &'b Board,
    tries: u32,
}

impl Machine for Simulated<'_> {
    type Error = Infallible;

    fn measure(&mut self, axes: &Axes, spot: &Spot) -> Result<Tried, Infallible> {
        self.tries += 1;
        let noise = |salt: u32| 1.0 + 0.005 * ((f64::from(self.tries * 7919 + salt) * 12.9898).sin());
        Ok(match self.board.run(axes, spot) {
            Some((teps, watts)) => Tried::Measured(Box::new(measured(teps * noise(1), watts * noise(2)))),
            None => Tried::ThrownAway("the kernel slowed down thermal-cpufreq-0 (step 2)".into()),
        })
    }

    fn elapsed(&self) -> Duration {
        Duration::from_secs(10) * self.tries
    }
}

/// Every spot of the grid.
fn grid(axes: &Axes) -> Vec<Spot> {
    let mut all = Vec::new();
    for (choice, of) in axes.choices.iter().enumerate() {
        let mut combined: Vec<Vec<usize>> = vec![Vec::new()];
        for &domain in &of.domains {
            combined = combined.iter().flat_map(|steps| (0..axes.steps(domain)).map(move |step| [&steps[..], &[step]].concat())).collect();
        }
        all.extend(combined.into_iter().map(|steps| Spot { choice, steps }));
    }
    all
}

fn swept(board: &Board, budget: Duration, seed: u64) -> (Axes, Vec<PointRecord>, u32, bool) {
    let (axes, mut machine, mut points) = (board.axes(), Simulated { board, tries: 0 }, Vec::new());
    let Ok(ended) = sweep(&mut machine, &axes, SweepOptions { budget, seed }, &[], |point| {
        points.push(point);
        Ok(())
    });
    (axes, points, machine.tries, ended.exhausted)
}

const LONG: Duration = Duration::from_secs(1 << 30);

#[test]
fn the_best_points_of_simulated_boards_are_found_in_a_third_of_the_grid() {
    for board in &BOARDS {
        for seed in 1..=5 {
            let (axes, points, tries, exhausted) = swept(board, LONG, seed);
            let all: Vec<(f64, f64)> = grid(&axes).iter().filter_map(|spot| board.run(&axes, spot)).collect();
            assert_eq!(grid(&axes).len() as u64, axes.grid());
            // The default is measured again and again beside them.
            let third = axes.grid() / 3;
            assert!(exhausted && points.len() as u64 <= third && u64::from(tries) <= third + 2, "{}: {tries} of {third}", board.name);
            let scores: [fn(f64, f64) -> f64; 3] = [|teps, _| teps, |teps, watts| teps / watts, |teps, watts| teps * teps / watts];
            let found = best(&points, &axes.point(&Axes::default_spot()));
            for (goal, score) in Goal::ALL.into_iter().zip(scores) {
                let optimum = all.iter().map(|&(teps, watts)| score(teps, watts)).fold(0.0, f64::max);
                let at = found.iter().find(|best| best.goal == goal).unwrap().place;
                let (teps, watts) = board.run(&axes, &axes.spot(&points[at].point).unwrap()).unwrap();
                let share = score(teps, watts) / optimum;
                println!(
                    "{} seed {seed}: {} {} is {:.1} % of the optimum, {tries} of {}",
                    board.name,
                    goal.name(),
                    points[at].point.name,
                    100.0 * share,
                    axes.grid()
                );
                assert!(share >= 0.98, "{} {}: {share} at {}", board.name, goal.name(), points[at].point.name);
            }
            // A point at which the chip slows down is never on the frontier.
            assert!(frontier(&points).iter().all(|&place| board.run(&axes, &axes.spot(&points[place].point).unwrap()).is_some()));
        }
    }
}

/// The record of a sweep of the simulated Raspberry Pi 5.
pub(crate) fn example() -> SweepRecord {
    let board = &BOARDS[1];
    let (axes, points, ..) = swept(board, LONG, 1);
    let default = axes.point(&Axes::default_spot());
    SweepRecord {
        schema: SWEEP_SCHEMA.into(),
        schema_version: SWEEP_SCHEMA_VERSION,
        environment: Environment { time: "2026-11-26T12:00:00Z".into(), ..Environment::read(Path::new("/nowhere")) },
        graph: None,
        roots: 16,
        scope: Some("board-input".into()),
        sensors: vec!["a simulated meter".into()],
        idle_watts: Some(Watts(board.static_watts)),
        grid: axes.grid(),
        left_out: vec!["device: no GPU (`socbfs devices` says why)".into()],
        frontier: frontier(&points),
        best: best(&points, &default),
        points,
        default,
        drift: Some(1.0),
        complete: true,
        warnings: Vec::new(),
    }
}

#[test]
fn the_example_of_the_page_is_what_a_sweep_of_the_simulated_board_prints() {
    let record = example();
    let board = operating_points("schema = 1\n[board]\nname = 'simulated'\n", "board.toml", &record, &record.best).unwrap();
    let board = &board[board.find("[[operating_points]]").unwrap()..];
    let page = fs::read_to_string(Path::new(crate::REPOSITORY).join("docs/sweep.md")).unwrap();
    for text in [&*sweep_report(&record, false), board] {
        let lines: Vec<String> =
            text.trim_end().lines().map(|line| if line.is_empty() { String::new() } else { format!("    {line}") }).collect();
        let block = lines.join("\n");
        assert!(page.contains(&block), "docs/sweep.md does not have:\n{block}");
    }
}

#[test]
fn a_sweep_keeps_its_budget() {
    for (board, tries) in BOARDS.iter().flat_map(|board| [8, 20, 40].map(|tries| (board, tries))) {
        let (_, points, tried, exhausted) = swept(board, Duration::from_secs(10 * u64::from(tries)), 3);
        assert!(tried <= tries && (exhausted || tried + 1 >= tries), "{}: {tried} of {tries}", board.name);
        assert!(!points.is_empty() && (tries > 8 || !exhausted), "{}", board.name);
    }
}

#[test]
fn an_interrupted_sweep_goes_on_without_measuring_again() {
    let board = &BOARDS[2];
    let (axes, whole, ..) = swept(board, LONG, 1);
    let mut points = whole[..9].to_vec();
    let known = points.clone();
    let Ok(ended) = sweep(&mut Simulated { board, tries: 0 }, &axes, SweepOptions { budget: LONG, seed: 1 }, &known, |point| {
        points.push(point);
        Ok(())
    });
    assert!(ended.exhausted);
    let mut names: Vec<&str> = points.iter().map(|point| &*point.point.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
}

proptest! {
    #[test]
    fn nothing_on_the_frontier_is_beaten_and_nothing_else_belongs_to_it(all in prop::collection::vec((1_u32..40, 1_u32..40), 1..40)) {
        let axes = BOARDS[1].axes();
        let point = axes.point(&Axes::default_spot());
        let record = |&(teps, watts): &(u32, u32)| PointRecord {
            point: point.clone(), measured: Some(measured(f64::from(teps), f64::from(watts))), thrown_away: Vec::new(),
        };
        let points: Vec<PointRecord> = all.iter().map(record).collect();
        let on = frontier(&points);
        let beats = |a: usize, b: usize| all[a].0 >= all[b].0 && all[a].1 <= all[b].1 && all[a] != all[b];
        for place in 0..all.len() {
            let beaten = (0..all.len()).any(|other| beats(other, place));
            let twin = on.iter().any(|&other| all[other] == all[place]);
            prop_assert_eq!(!beaten, twin, "{}: {:?}", place, all);
        }
        prop_assert!(on.windows(2).all(|pair| all[pair[0]] != all[pair[1]]));
    }
}

/// A machine with two clusters and a GPU, and the text of every limit.
fn machine() -> (tempfile::TempDir, Vec<Domain>) {
    let root = tempfile::tempdir().unwrap();
    cpufreq(root.path(), 0, &[0, 1], &[400, 800, 1200]);
    cpufreq(root.path(), 2, &[2, 3], &[600, 1800]);
    devfreq(root.path(), "ff9a0000.gpu", &[200, 400, 800]);
    let domains = domains(root.path(), &[cluster("little", "0-1"), cluster("big", "2-3")]);
    (root, domains)
}

fn limit_files() -> impl Iterator<Item = String> {
    ["sys/devices/system/cpu/cpufreq/policy0/scaling", "sys/devices/system/cpu/cpufreq/policy2/scaling"]
        .iter()
        .flat_map(|folder| ["_min_freq", "_max_freq"].map(|name| format!("{folder}{name}")))
        .chain(["min_freq", "max_freq"].map(|name| format!("sys/class/devfreq/ff9a0000.gpu/{name}")))
}

fn limits(root: &Path) -> Vec<String> {
    limit_files().map(|path| fs::read_to_string(root.join(path)).unwrap().trim().to_owned()).collect()
}

#[test]
fn clocks_are_found_set_and_put_back() {
    let (root, domains) = machine();
    let steps: Vec<(&str, usize)> = domains.iter().map(|domain| (&*domain.name, domain.steps_khz.len())).collect();
    assert_eq!(steps, [("little", 3), ("big", 2), ("ff9a0000.gpu", 3)]);
    let before = limits(root.path());
    let clocks = Clocks::keep(Turn::simulated(root.path()).unwrap(), &domains, std::io::stdout()).unwrap();
    clocks.set(&BTreeMap::from([("little".into(), 800_000), ("ff9a0000.gpu".into(), 400_000)])).unwrap();
    assert_eq!(limits(root.path()), ["800000", "800000", "600000", "1800000", "400000000", "400000000"]);
    clocks.set(&BTreeMap::from([("big".into(), 600_000)])).unwrap();
    assert_eq!(limits(root.path()), ["400000", "1200000", "600000", "600000", "200000000", "800000000"]);
    assert_eq!(clocks.moved(&BTreeMap::from([("big".into(), 600_000)])), None);
    write(&root.path().join("sys/devices/system/cpu/cpufreq/policy2/scaling_cur_freq"), "1800000");
    assert!(clocks.moved(&BTreeMap::from([("big".into(), 600_000)])).unwrap().contains("big was 1800 instead of 600 MHz"));
    clocks.put_back().unwrap();
    assert_eq!(limits(root.path()), before);
}

#[test]
fn a_clock_gets_a_frequency_that_its_driver_lists() {
    let root = tempfile::tempdir().unwrap();
    for name in ["ffe40000.gpu", "17000000.ga10b", "gpu-nvd-0"] {
        devfreq(root.path(), name, &[100, 800]);
    }
    // Amlogic's are no whole kHz.
    let folder = root.path().join("sys/class/devfreq/ffe40000.gpu");
    // What no clock has, and far more than one page, is left out.
    let listed = "799999987 124999998 399999994 0 18446744073709551615".to_owned() + &" 500".repeat(200_000);
    write(&folder.join("available_frequencies"), &listed);
    // Cores of a cluster whose highest clocks differ, without a list; and with a boost that is on, or off.
    for (cpu, mhz) in [(0, 4400), (1, 4700)] {
        fs::remove_file(cpufreq(root.path(), cpu, &[cpu], &[400, mhz]).join("scaling_available_frequencies")).unwrap();
    }
    for (cpu, on) in [(2, "1"), (3, "0")] {
        let policy = cpufreq(root.path(), cpu, &[cpu], &[600, 1800]);
        write(&policy.join("scaling_boost_frequencies"), "2000000");
        write(&policy.join("boost"), on);
    }
    let domains = domains(root.path(), &[cluster("wide", "0-1"), cluster("boosted", "2"), cluster("plain", "3")]);
    let steps = |name: &str| domains.iter().find(|domain| domain.name == name).map(|domain| domain.steps_khz.clone());
    assert_eq!(steps("ffe40000.gpu").unwrap(), [124_999, 399_999, 799_999]);
    assert_eq!((steps("17000000.ga10b").unwrap().len(), steps("gpu-nvd-0")), (2, None), "a codec is no GPU");
    let wide = steps("wide").unwrap();
    assert_eq!((wide.len(), wide[0], wide[7]), (8, 400_000, 4_400_000));
    assert_eq!((steps("boosted").unwrap(), steps("plain").unwrap()), (vec![600_000, 1_800_000, 2_000_000], vec![600_000, 1_800_000]));
    let clocks = Clocks::keep(Turn::simulated(root.path()).unwrap(), &domains, std::io::stdout()).unwrap();
    clocks.set(&BTreeMap::from([("ffe40000.gpu".into(), 399_999), ("wide".into(), wide[1])])).unwrap();
    assert_eq!(fs::read_to_string(folder.join("min_freq")).unwrap(), "399999994");
    assert!(clocks.set(&BTreeMap::from([("ffe40000.gpu".into(), 500_000)])).is_err(), "near no frequency");
    assert!(clocks.set(&BTreeMap::from([("wide".into(), u64::MAX)])).is_err());
}

#[test]
fn only_files_of_this_machine_limit_a_clock() {
    let (root, domains) = machine();
    let elsewhere = tempfile::tempdir().unwrap();
    let refused = |turn: Result<Turn, _>, wanted: &str| {
        let error = Clocks::keep(turn.unwrap(), &domains, std::io::stdout()).unwrap_err();
        let said = format!("{error} {:?}", std::error::Error::source(&error));
        assert!(said.contains(wanted), "{said}");
    };
    refused(Turn::take(root.path()), "another machine's");
    let policy = root.path().join("sys/devices/system/cpu/cpufreq/policy0");
    let (limit, victim) = (policy.join("scaling_max_freq"), elsewhere.path().join("scaling_max_freq"));
    fs::rename(&limit, &victim).unwrap();
    std::os::unix::fs::symlink(&victim, &limit).unwrap();
    refused(Turn::simulated(root.path()), "policy0/scaling_max_freq, which limits a clock");
    fs::remove_file(&limit).unwrap();
    nix::unistd::mkfifo(&limit, nix::sys::stat::Mode::S_IRWXU).unwrap();
    refused(Turn::simulated(root.path()), "it is not a file in");
    // A folder that leads out of it.
    for name in ["scaling_min_freq", "scaling_max_freq"] {
        write(&elsewhere.path().join(name), "1200000\nprecious\n");
    }
    fs::rename(&policy, elsewhere.path().join("policy0")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &policy).unwrap();
    refused(Turn::simulated(root.path()), "it is not a file in");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "1200000\nprecious\n");
}

/// The exit code of the command, what it prints, and what it says on standard error. It ends by itself.
fn ended(arguments: &[&str], folder: &Path) -> (Option<i32>, String, String) {
    let output = Command::new("timeout").args(["120", env!("CARGO_BIN_EXE_socbfs")]).args(arguments).current_dir(folder).output().unwrap();
    let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), out, error)
}

#[test]
fn a_busy_machine_is_measured_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let sweep = ["sweep", "kronecker:8", "--axes", "threads", "--roots", "2", "--device", "cpu", "--energy", "off", "--budget", "6s"];
    let shown = ended(&[&sweep[..], &["--all", "--json", "a.json"]].concat(), folder.path());
    let strict = ended(&[&sweep[..], &["--strict"]].concat(), folder.path());
    busy.kill().unwrap();
    busy.wait().unwrap();
    let (code, out, error) = shown;
    assert!(code == Some(0) && out.contains("other CPUs") && out.contains("measured beside other programs"), "{code:?} {out}\n{error}");
    // It says at once what it does.
    assert!(error.lines().next().is_some_and(|line| line.contains(" in all; in ")), "{error}");
    let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(folder.path().join("a.json")).unwrap()).unwrap();
    assert!(record["points"][0]["measured"]["other_cpus"].as_f64().unwrap() > 0.02, "{record}");
    let (code, out, error) = strict;
    assert!(code == Some(2) && error.contains("every point was thrown away: other programs used"), "{code:?} {out}\n{error}");
}

#[test]
fn the_command_only_reads_the_clocks_of_another_machine() {
    let (folder, cpus) = (tempfile::tempdir().unwrap(), usable());
    let (root, victim) = (folder.path().join("machine"), folder.path().join("victim"));
    let policy = cpufreq(&root, 0, &cpus, &[500, 1000, 1500]);
    write(&root.join("sys/devices/system/cpu/online"), &cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(","));
    let point = format!("[[operating_points]]\ngoal = 'fastest'\ncpus = '{}'\ndevice = 'cpu'\nclocks_khz = {{ all = 500000 }}\n", cpus[0]);
    write(&folder.path().join("b.toml"), &format!("schema = 1\n[board]\nname = 'mine'\n{point}"));
    let machine = ["--sysfs-root", root.to_str().unwrap(), "--energy", "off"];
    let limit = policy.join("scaling_max_freq");
    for kind in ["file", "link", "pipe"] {
        fs::remove_file(&limit).unwrap();
        write(&victim, "1500000\nprecious\n");
        match kind {
            "file" => fs::copy(&victim, &limit).map(drop).unwrap(),
            "link" => std::os::unix::fs::symlink(&victim, &limit).unwrap(),
            _ => nix::unistd::mkfifo(&limit, nix::sys::stat::Mode::S_IRWXU).unwrap(),
        }
        let sweep = ["sweep", "kronecker:8", "--axes", "clocks", "--budget", "5s"];
        let (code, out, error) = ended(&[&sweep[..], &machine, &["--dry-run"]].concat(), folder.path());
        assert!(code == Some(0) && out.contains("500 to 1500 MHz in 3 steps"), "{kind}: {out}\n{error}");
        let bench = ["bench", "kronecker:8", "--roots", "1", "--board", "b.toml", "--at", "fastest", "--set-clocks"];
        for command in [&sweep[..], &bench] {
            let (code, out, error) = ended(&[command, &machine].concat(), folder.path());
            assert!(code == Some(2) && error.contains("another machine's"), "{kind}: {command:?}: {code:?} {out}\n{error}");
        }
        for path in [&victim, &limit].into_iter().take(if kind == "pipe" { 1 } else { 2 }) {
            assert_eq!(fs::read_to_string(path).unwrap(), "1500000\nprecious\n", "{kind}");
        }
    }
}

/// What [`clocks_are_put_back_after_a_kill`] starts and kills.
#[test]
#[ignore = "a part of another test: changes clocks until it is killed"]
fn changes_clocks_for_ever() {
    let Some(root) = std::env::var_os("SOCBFS_TEST_SWEPT") else { return };
    let root = PathBuf::from(root);
    let domains = domains(&root, &[cluster("little", "0-1"), cluster("big", "2-3")]);
    let clocks = Clocks::keep(Turn::simulated(&root).unwrap(), &domains, std::io::stdout()).unwrap();
    fs::write(root.join("begun.new"), std::process::id().to_string()).unwrap();
    fs::rename(root.join("begun.new"), root.join("begun")).unwrap();
    for step in 0_usize.. {
        let khz = [400_000, 800_000, 1_200_000][step % 3];
        // A kill may come between any two calls.
        let _ = clocks.set(&BTreeMap::from([("little".into(), khz), ("big".into(), [600_000, 1_800_000][step % 2])]));
    }
}

/// Starts [`changes_clocks_for_ever`] by `command`, which runs this program of tests.
fn start(mut command: Command, root: &Path) -> Child {
    command.args(["sweeps::changes_clocks_for_ever", "--exact", "--ignored", "--nocapture"]).env("SOCBFS_TEST_SWEPT", root);
    command.stdout(std::process::Stdio::null()).spawn().unwrap()
}

/// Waits until [`changes_clocks_for_ever`] has begun. Returns the number of its process.
fn begun(root: &Path) -> String {
    let begin = Instant::now();
    loop {
        if let Ok(process) = fs::read_to_string(root.join("begun")) {
            return process;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "it never began");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn clocks_are_put_back_after_a_kill() {
    let kills = if std::env::var_os("SOCBFS_TEST_ALL").is_some() { 100 } else { 12 };
    for kill in 0..kills {
        let (root, _) = machine();
        let before = limits(root.path());
        let mut child = start(Command::new(std::env::current_exe().unwrap()), root.path());
        begun(root.path());
        std::thread::sleep(Duration::from_micros(997 * kill % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let turn = turn_given_back(root.path());
        assert_eq!(limits(root.path()), before, "kill {kill}");
        drop(turn);
    }
}

/// Whoever gets the turn after a sweep was killed finds the clocks as they were.
fn turn_given_back(root: &Path) -> Turn {
    let begin = Instant::now();
    loop {
        match Turn::simulated(root) {
            Ok(turn) => return turn,
            Err(_) => assert!(begin.elapsed() < Duration::from_secs(60), "the turn is never given back"),
        }
    }
}

#[test]
fn clocks_are_put_back_although_writes_fail() {
    let trace = |arguments: &[&str]| Command::new("strace").args(arguments).stderr(std::process::Stdio::null()).status();
    if !trace(&["-o", "/dev/null", "true"]).is_ok_and(|status| status.success()) {
        crate::implementations::skipped(
            "failing writes of clocks",
            "strace is not installed, or may not trace (on Debian: apt-get install strace)",
        );
        return;
    }
    // The process that changes the clocks and the one that puts them back each count their own writes. There are six limits, put back
    // twice.
    for when in (1..=13).map(|when| when.to_string()).chain(["1+2".to_owned(), "2+3".to_owned()]) {
        let (root, _) = machine();
        let before = limits(root.path());
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o"]).arg(root.path().join("trace")).args(["-e", "trace=write", "-e"]);
        strace.arg(format!("inject=write:error=EIO:when={when}"));
        for path in limit_files() {
            strace.arg("-P").arg(root.path().join(path));
        }
        strace.arg(std::env::current_exe().unwrap());
        let mut child = start(strace, root.path());
        let process = begun(root.path());
        let begin = Instant::now();
        // A write of the program has failed.
        let traced = || fs::read_to_string(root.path().join("trace")).unwrap_or_default();
        while !traced().contains("(INJECTED)") {
            assert!(begin.elapsed() < Duration::from_secs(60), "nothing failed: {}", traced());
            std::thread::sleep(Duration::from_millis(1));
        }
        let process = nix::unistd::Pid::from_raw(process.parse().unwrap());
        nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGKILL).unwrap();
        child.wait().unwrap();
        let turn = turn_given_back(root.path());
        assert_eq!(limits(root.path()), before, "{when}: {}", traced());
        drop(turn);
    }
}

#[test]
fn two_sweeps_at_a_time_are_refused() {
    let (root, _) = machine();
    let turn = Turn::simulated(root.path()).unwrap();
    assert!(Turn::simulated(root.path()).unwrap_err().to_string().contains("another sweep"));
    drop(turn);
    Turn::simulated(root.path()).unwrap();
}

/// The CPUs that this process may run on, as a list.
fn usable() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().parse::<socbfs_boards::board::CpuList>().unwrap().numbers().to_vec()
}

/// A machine of one cluster, whose power follows the clock until `stop`: an INA219 at the board's input.
fn powered(root: &Path, policy: &Path, stop: &AtomicBool) {
    let chip = root.join("sys/class/hwmon/hwmon0");
    while !stop.load(Ordering::Relaxed) {
        let khz: f64 = fs::read_to_string(policy.join("scaling_max_freq")).unwrap_or_default().trim().parse().unwrap_or(1_500_000.0);
        let watts = 1e6 + 4e6 * (khz / 1.5e6).powi(3);
        // In place and always as long, so that no reader sees half a number.
        fs::OpenOptions::new().write(true).open(chip.join("power1_input")).unwrap().write_all(format!("{watts:07.0}").as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_command_sweeps_a_simulated_machine_and_leaves_it_as_it_was() {
    let (folder, cpus) = (tempfile::tempdir().unwrap(), usable());
    let root = folder.path().join("machine");
    // All of as many digits, since the power is read while a limit is written.
    let policy = cpufreq(&root, 0, &cpus, &[1000, 1250, 1500]);
    let list = cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    write(&root.join("sys/devices/system/cpu/online"), &list);
    write(&root.join("sys/class/hwmon/hwmon0/name"), "ina219");
    write(&root.join("sys/class/hwmon/hwmon0/power1_input"), "5000000");
    let file = |name: &str| folder.path().join(name);
    let stop = AtomicBool::new(false);
    // The command sets clocks of its own machine only, so it gets the simulated files as its /sys. Without /proc/stat no other program
    // disturbs it.
    write(&root.join("stat"), "");
    let on_machine = || {
        let mount = "mount --bind \"$0/sys\" /sys && mount --bind \"$0/stat\" /proc/stat && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--map-root-user", "sh", "-c", mount]).arg(&root).current_dir(folder.path());
        command
    };
    if !on_machine().arg("true").status().is_ok_and(|status| status.success()) {
        crate::implementations::skipped("a sweep with clocks", "nothing can be mounted here");
        return;
    }
    let socbfs = |arguments: &[&str]| {
        let output = on_machine().arg(env!("CARGO_BIN_EXE_socbfs")).args(arguments).output().unwrap();
        let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success(), "{arguments:?}: {out}\n{error}");
        (out, error)
    };
    let machine = ["--energy", "ina2xx", "--axes", "clocks", "--roots", "2"];
    let (out, error) = std::thread::scope(|scope| {
        scope.spawn(|| powered(&root, &policy, &stop));
        let sweep = ["sweep", "kronecker:8", "--budget", "20s", "--all", "--json", "s.json", "--html", "s.html", "-o", "b.toml"];
        let ran = std::panic::catch_unwind(|| socbfs(&[&sweep[..], &machine].concat()));
        stop.store(true, Ordering::Relaxed);
        ran.unwrap()
    });
    for part in ["Speed against power", "most efficient", "at 1000 MHz", "at 1500 MHz", "All points", "soc-rails"] {
        assert!(out.contains(part), "{part:?} in\n{out}\n{error}");
    }
    let limits = ["scaling_min_freq", "scaling_max_freq"].map(|name| fs::read_to_string(policy.join(name)).unwrap());
    assert_eq!(limits, ["1000000", "1500000"]);
    let record: serde_json::Value = serde_json::from_str(&fs::read_to_string(file("s.json")).unwrap()).unwrap();
    assert_eq!((&record["schema"], &record["complete"], &record["grid"]), (&"socbfs-sweep".into(), &true.into(), &3.into()));
    let points = record["points"].as_array().unwrap();
    // The power of a point is that of its clock.
    for point in points {
        let Some(khz) = point["point"]["clocks_khz"].as_object().unwrap().values().next().and_then(serde_json::Value::as_f64) else {
            continue;
        };
        let watts = point["measured"]["energy"]["watts"]["mean"].as_f64().unwrap();
        let truth = 1.0 + 4.0 * (khz / 1.5e6).powi(3);
        assert!((watts / truth - 1.0).abs() < 0.05, "{watts} W at {khz} kHz, not {truth}");
    }
    assert!(points.len() >= 3 && !record["frontier"].as_array().unwrap().is_empty(), "{points:?}");
    assert!(fs::read_to_string(file("s.html")).unwrap().contains("The efficiency frontier of a board"));
    assert!(socbfs(&["report", "s.json"]).0.contains("What is best"));
    assert!(!file("s.json.partial").exists());
    // The point is used by its name.
    let (_, error) = socbfs(&["bench", "kronecker:8", "--roots", "2", "--energy", "off", "--board", "b.toml", "--at", "efficient"]);
    assert!(error.contains("clocks are not set") && error.contains(&format!("bound to CPU {}", cpus[0])), "{error}");
    // Its clocks are set while the command runs, and put back.
    let limits = || ["scaling_min_freq", "scaling_max_freq"].map(|name| fs::read_to_string(policy.join(name)).unwrap());
    let khz = {
        let text = fs::read_to_string(file("b.toml")).unwrap();
        let goal = text.split("goal = ").find(|point| point.starts_with("\"efficient\"")).unwrap().to_owned();
        let clocks = goal.split_once("clocks_khz]\n").unwrap().1.split('#').next().unwrap().to_owned();
        clocks.split('=').nth(1).unwrap().trim().to_owned()
    };
    let mut bench = on_machine()
        .arg(env!("CARGO_BIN_EXE_socbfs"))
        .args(["bench", "kronecker:8", "--roots", "2", "--energy", "ina2xx", "--energy-seconds", "60"])
        .args(["--board", "b.toml", "--at", "efficient", "--set-clocks"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    while limits() != [khz.clone(), khz.clone()] {
        assert!(begin.elapsed() < Duration::from_secs(60) && bench.try_wait().unwrap().is_none(), "{:?}, not {khz}", limits());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(Turn::simulated(&root).is_err());
    bench.kill().unwrap();
    bench.wait().unwrap();
    while Turn::simulated(&root).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the turn is never given back");
    }
    assert_eq!(limits(), ["1000000", "1500000"]);
    let at = ["bench", "kronecker:8", "--roots", "2", "--energy", "off", "--board", "b.toml", "--at", "efficient", "--set-clocks"];
    let (_, error) = socbfs(&at);
    assert!(!error.contains("clocks are not set"), "{error}");
    assert_eq!(limits(), ["1000000", "1500000"]);
    let unknown = Command::new(env!("CARGO_BIN_EXE_socbfs"))
        .args(["run", "kronecker:8", "--root", "0", "--board", "generic", "--at", "fastest"])
        .output()
        .unwrap();
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(unknown.status.code() == Some(2) && error.contains("no operating point") && error.contains("socbfs sweep -o FILE"), "{error}");
}

/// The CPU time of a thread in seconds.
fn cpu_seconds(task: &Path) -> Option<f64> {
    Some(fs::read_to_string(task.join("schedstat")).ok()?.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

fn allowed(task: &Path) -> Option<Vec<usize>> {
    let status = fs::read_to_string(task.join("status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().parse::<socbfs_boards::board::CpuList>().ok()?.numbers().to_vec())
}

#[test]
fn sensors_are_read_on_cpus_that_do_not_search_and_take_little_of_them() {
    let cpus = usable();
    if cpus.len() < 2 {
        crate::implementations::skipped("housekeeping of sweeps", "one CPU");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("machine");
    write(&root.join("sys/class/hwmon/hwmon0/name"), "ina219");
    write(&root.join("sys/class/hwmon/hwmon0/power1_input"), "5000000");
    let mut child = Command::new(env!("CARGO_BIN_EXE_socbfs"))
        .args(["sweep", "kronecker:10", "--budget", "160s", "--axes", "threads", "--roots", "2", "--device", "cpu", "--energy", "ina2xx"])
        .args(["--sysfs-root", root.to_str().unwrap()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let tasks = PathBuf::from(format!("/proc/{}/task", child.id()));
    let main = tasks.join(child.id().to_string());
    // While points are measured: the first look and the last one.
    let (mut apart, mut looks) = (0, Vec::new());
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(begin.elapsed() < Duration::from_secs(100), "it does not end");
        let readers = || {
            let all = fs::read_dir(&tasks).into_iter().flatten().flatten().map(|task| task.path());
            all.filter(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.starts_with("power-")))
        };
        for reader in readers() {
            // Only while the same point runs before and after the look: its calling thread is bound to one CPU.
            let searches = allowed(&main);
            let (reads, still) = (allowed(&reader), allowed(&main));
            if let (Some(searches), Some(reads), true) = (&searches, &reads, searches == still) {
                if searches.len() == 1 && reads.len() < cpus.len() {
                    assert!(!reads.contains(&searches[0]), "{reads:?} reads, {searches:?} searches");
                    apart += 1;
                    looks.extend(cpu_seconds(&reader).map(|seconds| (Instant::now(), seconds)));
                }
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let (first, last) = (looks[0], looks[looks.len() - 1]);
    let share = (last.1 - first.1) / last.0.duration_since(first.0).as_secs_f64();
    println!("{apart} looks at a point that leaves CPUs free; reading takes {:.2} % of a CPU", 100.0 * share);
    // Code that is not optimised takes several times as long.
    let most = if cfg!(debug_assertions) { 0.02 } else { 0.01 };
    assert!(status.success() && apart > 5 && share > 0.0 && share < most, "{status}: {apart} looks, {share}");
}
