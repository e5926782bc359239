//! The measurements of `tests/gpu` on an OpenCL device, in one program that needs neither compiler nor network: properties of the device;
//! every kernel, sharing mode, work-group size and policy compared with a serial search; each kernel level by level, and the device's own
//! times against the clock; the handover; Rodinia's search on the same device; energy; and Kronecker graphs on the CPU, the device and
//! both. All results go into one folder, as JSON and as Markdown.
//!
//! Exit code 0: everything was done and is right, 1: something is wrong or was left out, 2: there is no such device, or the program can't
//! begin.
#![allow(clippy::expect_used, reason = "a measurement that can't be set up may stop")]

use std::{
    collections::BTreeMap,
    env,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use socbfs::{
    GpuOptions, GpuSetup,
    bfs::GpuKernel,
    files::AtomicFile,
    graph::{BuildOptions, EdgeList, Layout, Listing, Order, Vertex},
    memory::SharingMode,
    opencl::{self, Device, DeviceKind, LaunchTime, Limits},
    search::{Search, SearchOptions},
};
use socbfs_boards::measure;
use socbfs_io::{generate::Generator, validate::SerialBfs};
use socbfs_policy::{LevelDevice, Policy};
use socbfs_tools::bench::{RootSource, roots};

const HELP: &str = "\
usage: gpu --out FOLDER [--device NAME] [--any-device] [--quick] [--socbfs PROGRAM] [--rodinia PROGRAM] [--scales FIRST..=LAST]
           [--seconds N]

  --out FOLDER        where the results go (made if need be)
  --device NAME       the device, as `socbfs devices` names it (default: the GPU with most compute units)
  --any-device        any OpenCL device will do, such as PoCL's: smaller graphs
  --quick             a little of everything, to see that it works
  --socbfs PROGRAM    the program `socbfs` (default: the one on the path)
  --rodinia PROGRAM   Rodinia's OpenCL bfs, which is given the path of a graph
  --scales A..=B      scales of the Kronecker graphs (default: 18..=24; any device: 12..=14; quick: 8..=9)
  --seconds N         what does not fit into so many seconds is left out and named (default: 510)";

struct Arguments {
    out: PathBuf,
    device: Option<String>,
    any_device: bool,
    socbfs: PathBuf,
    rodinia: Option<PathBuf>,
    scales: std::ops::RangeInclusive<u32>,
    seconds: u64,
    quick: bool,
}

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let (mut out, mut device, mut any_device, mut rodinia, mut scales, mut seconds) = (None, None, false, None, None, 510);
        let mut quick = false;
        let mut socbfs = PathBuf::from("socbfs");
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match &*word {
                "--out" => out = Some(PathBuf::from(value()?)),
                "--device" => device = Some(value()?),
                "--any-device" => any_device = true,
                "--quick" => quick = true,
                "--socbfs" => socbfs = PathBuf::from(value()?),
                "--rodinia" => rodinia = Some(PathBuf::from(value()?)),
                "--scales" => {
                    let text = value()?;
                    let range = text.split_once("..=").and_then(|(a, b)| Some(a.parse::<u32>().ok()?..=b.parse::<u32>().ok()?));
                    scales = Some(range.filter(|range| !range.is_empty()).ok_or(format!("--scales {text:?} is not FIRST..=LAST"))?);
                }
                "--seconds" => seconds = value()?.parse().map_err(|_| "--seconds is a number".to_owned())?,
                // Cargo adds this argument.
                "--bench" => {}
                _ => return Err(format!("unknown argument {word:?}\n{HELP}")),
            }
        }
        let Some(out) = out else { return Ok(None) };
        let scales = scales.unwrap_or(if quick {
            8..=9
        } else if any_device {
            12..=14
        } else {
            18..=24
        });
        Ok(Some(Self { out, device, any_device, socbfs, rodinia, scales, seconds, quick }))
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::parse(env::args().skip(1)) {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            // `cargo bench` runs all benchmarks, and this one needs a device for itself.
            println!("gpu: left out, tests/gpu runs it");
            return ExitCode::SUCCESS;
        }
        Err(problem) => {
            eprintln!("gpu: {problem}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(problems) if problems.is_empty() => {
            println!("all right: {}", arguments.out.join("README.md").display());
            ExitCode::SUCCESS
        }
        Ok(problems) => {
            for problem in &problems {
                eprintln!("gpu: {problem}");
            }
            println!("{} problems: {}", problems.len(), arguments.out.join("README.md").display());
            ExitCode::from(1)
        }
        Err(problem) => {
            eprintln!("gpu: {problem}");
            ExitCode::from(2)
        }
    }
}

type Step<'a> = fn(&mut Run<'a>) -> Result<(), String>;

/// Number of searches from one root; results are the medians of their times.
const REPEATS: usize = 9;

/// Median times of repeated searches, in microseconds.
struct Timed {
    search: f64,
    levels: Vec<f64>,
    /// Sum of all launches of a search by the device's own clock; 0 if the device records no times.
    busy: f64,
}

/// The state of the measurement: its settings, results and problems.
struct Run<'a> {
    arguments: &'a Arguments,
    device: Arc<Device>,
    /// The arguments that name the device to `socbfs`.
    choice: String,
    way: SharingMode,
    begin: Instant,
    json: BTreeMap<&'static str, Value>,
    markdown: String,
    problems: Vec<String>,
    /// The step that is running.
    at_work: Option<&'static str>,
}

fn run(arguments: &Arguments) -> Result<Vec<String>, String> {
    let begin = Instant::now();
    let found = opencl::devices().map_err(|error| error.to_string())?;
    let names: Vec<&str> = found.iter().map(|info| info.name.as_str()).collect();
    let exact = opencl::exact_choices(&names);
    let wanted = arguments.device.as_deref().unwrap_or("gpu");
    let mut chosen = match opencl::choose(&found, &wanted.parse().expect("any text is a choice")) {
        Err(_) if arguments.any_device && arguments.device.is_none() => {
            found.iter().filter(|info| info.unusable.is_none()).max_by_key(|info| info.compute_units).cloned().into_iter().collect()
        }
        chosen => chosen.map_err(|error| error.to_string())?,
    };
    let info = (!chosen.is_empty()).then(|| chosen.remove(0)).ok_or("no OpenCL device is chosen or can be used")?;
    if info.kind != DeviceKind::Gpu && !arguments.any_device {
        return Err(format!("{} is no GPU ({}); --any-device measures it all the same", info.name, info.kind));
    }
    let same = |other: &&opencl::DeviceInfo| (&other.name, &other.platform) == (&info.name, &info.platform);
    let choice = found.iter().position(|other| same(&other)).map_or(info.name.clone(), |index| exact[index].clone());
    fs::create_dir_all(&arguments.out).map_err(|error| format!("{}: {error}", arguments.out.display()))?;
    let device = Device::open(&info, Limits::default()).map_err(|error| error.to_string())?;
    let way = measure::measure_quickly(&device).best(1 << 20);
    let mut run =
        Run { arguments, device, choice, way, begin, json: BTreeMap::new(), markdown: String::new(), problems: Vec::new(), at_work: None };
    let _ =
        writeln!(run.markdown, "# {} ({})\n\nDriver {}, {}; memory shared by {way}.", info.name, info.platform, info.driver, info.version);
    run.json.insert("device", serde_json::to_value(&info).expect("an info is JSON"));
    let steps: [(&str, Duration, Step<'_>); 7] = [
        ("devices", Duration::from_secs(20), Run::devices),
        ("correctness", Duration::from_secs(30), Run::correctness),
        ("kernels per level", Duration::from_secs(15), Run::levels),
        ("handover", Duration::from_secs(20), Run::handover),
        ("Rodinia", Duration::from_secs(10), Run::rodinia),
        ("energy", Duration::from_secs(45), Run::energy),
        // This step is the last one, since it uses all the time that is left.
        ("Kronecker graphs", Duration::from_secs(10), Run::kronecker),
    ];
    for (name, least, step) in steps {
        let start = run.begin.elapsed();
        if run.left() < least {
            run.problem(format!("{name}: left out, no time is left"));
            continue;
        }
        // Until the step ends, the written results name it as unfinished.
        run.at_work = Some(name);
        run.write()?;
        if let Err(problem) = step(&mut run) {
            run.problem(format!("{name}: {problem}"));
        }
        println!("{name}: {:.1} s", (run.begin.elapsed() - start).as_secs_f64());
    }
    run.at_work = None;
    run.write()?;
    Ok(run.problems)
}

impl Run<'_> {
    fn left(&self) -> Duration {
        Duration::from_secs(self.arguments.seconds).saturating_sub(self.begin.elapsed())
    }

    fn problem(&mut self, problem: String) {
        println!("PROBLEM: {problem}");
        self.problems.push(problem);
    }

    /// Writes the results so far, since a driver may end the process at any time.
    fn write(&self) -> Result<(), String> {
        let mut text = self.markdown.clone();
        let seconds = self.begin.elapsed().as_secs_f64();
        let mut problems = self.problems.clone();
        problems.extend(self.at_work.map(|step| format!("{step}: did not come to an end, nor what follows it (see log.txt)")));
        let _ = writeln!(text, "\n## Problems\n");
        if problems.is_empty() {
            text += "None.\n";
        }
        for problem in &problems {
            let _ = writeln!(text, "- {}", problem.replace('\n', " "));
        }
        let _ = writeln!(text, "\nAll in {seconds:.0} s.");
        let all = json!({ "seconds": seconds, "complete": self.at_work.is_none(), "problems": problems, "results": self.json });
        let json = serde_json::to_string_pretty(&all).expect("values are JSON");
        for (name, content) in [("README.md", text), ("gpu.json", json)] {
            let path = self.arguments.out.join(name);
            let written = AtomicFile::create(&path).and_then(|mut file| file.write_all(content.as_bytes()).and_then(|()| file.commit()));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
        Ok(())
    }

    fn setup(&self, options: GpuOptions, way: SharingMode) -> GpuSetup {
        GpuSetup { device: Arc::clone(&self.device), way, options }
    }

    /// Picks the value for a GPU, for any device (`--any-device`), or for a quick run.
    fn pick<T>(&self, gpu: T, any: T, quick: T) -> T {
        match self.arguments {
            Arguments { quick: true, .. } => quick,
            Arguments { any_device: true, .. } => any,
            _ => gpu,
        }
    }

    /// Runs `socbfs` with `arguments` and returns its standard output.
    fn socbfs(&self, arguments: &[&str]) -> Result<String, String> {
        output(Command::new(&self.arguments.socbfs).args(arguments), self.left())
    }

    fn devices(&mut self) -> Result<(), String> {
        let text = self.socbfs(&["devices", "--quick"])?;
        let _ = writeln!(self.markdown, "\n## Devices\n\n```text\n{}\n```", text.trim_end());
        Ok(())
    }

    /// Compares every kernel and policy with a serial search, on graphs of all shapes, for several work-group sizes, sharing modes and
    /// numbers of parts.
    fn correctness(&mut self) -> Result<(), String> {
        let deadline = self.begin.elapsed() + self.left() / 3;
        let (mut right, mut wrong, mut late) = (0_u64, Vec::new(), false);
        let most = self.device.max_work_group();
        // The list is short on PoCL, which compiles every kernel again for every size.
        let groups: &[usize] = self.pick(&[256, 128, 64, 32], &[64, 32], &[64, 32]);
        let groups: Vec<usize> = groups.iter().copied().filter(|&group| group <= most).collect();
        let ways: Vec<SharingMode> = SharingMode::ALL.into_iter().filter(|way| way.offered(self.device.info())).collect();
        // Each dimension varies while the others keep their first value: a full cross product would take too long.
        let mut settings = Vec::new();
        settings.extend(groups.iter().map(|&group| (group, self.way, 0)));
        settings.extend(ways.iter().filter(|&&way| way != self.way).map(|&way| (groups[0], way, 0)));
        settings.extend([(groups[0], self.way, 3), (groups[groups.len() - 1], self.way, 5)]);
        let policies: Vec<&str> =
            "tg tgm bg bgc sampled alpha-beta:1000,1 daga:1000,1 selective:30,0 remis-concurrent:5,300 concurrent:0,0,500 asynchronous:20,500 adaptive"
                .split(' ')
                .collect();
        // A quick run takes one graph with many arcs, and the smallest graphs.
        let graphs: Vec<_> = graphs()
            .into_iter()
            .enumerate()
            .filter(|(i, _)| self.pick(true, true, [0, 5, 6].contains(i)))
            .map(|(_, graph)| graph)
            .collect();
        let mut table: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        'all: for (name, edges, directed) in &graphs {
            let serial = SerialBfs::new(edges, *directed).map_err(|error| error.to_string())?;
            let layout = Layout::build(edges, &BuildOptions { directed: *directed, order: Order::Auto, ..BuildOptions::default() })
                .map_err(|error| error.to_string())?;
            let from = roots(layout.vertices(), |v| layout.input_degree(v), 3, RootSource::GRAPH500);
            let wanted: Vec<Vec<u32>> = from.iter().map(|&root| serial.search(root).map_or(Vec::new(), |tree| tree.level)).collect();
            for &(group, way, parts) in &settings {
                if self.begin.elapsed() > deadline {
                    late = true;
                    break 'all;
                }
                let what = format!("groups of {group}, {way}, {}", if parts > 1 { format!("{parts} parts") } else { "1 part".to_owned() });
                let options = GpuOptions { group: Some(group), parts, run_arcs: Some(30), ..GpuOptions::default() };
                let options =
                    SearchOptions { threads: 2, devices: vec![self.setup(options, way)], every_planner: true, ..SearchOptions::default() };
                let count = table.entry(what.clone()).or_default();
                let mut search = match Search::new(&layout, &options) {
                    Ok(search) => search,
                    Err(error) => {
                        count.1 += 1;
                        wrong.push(format!("{what} on {name}: {error}"));
                        continue;
                    }
                };
                for &policy in &policies {
                    if self.begin.elapsed() > deadline {
                        late = true;
                        break 'all;
                    }
                    let parsed: Policy = policy.parse().map_err(|error| format!("{policy}: {error}"))?;
                    let runs = where_directions_run(policy, GpuKernel::Bgc);
                    let fault = match search.set_planner(parsed.on(runs)) {
                        Ok(()) => from.iter().zip(&wanted).find_map(|(&root, wanted)| compare(&mut search, edges, *directed, root, wanted)),
                        Err(error) => Some(error.to_string()),
                    };
                    match fault {
                        None => (right, count.0) = (right + 1, count.0 + 1),
                        Some(fault) => {
                            count.1 += 1;
                            wrong.push(format!("{policy}, {what}, on {name}: {fault}"));
                        }
                    }
                }
            }
        }
        let _ = writeln!(
            self.markdown,
            "\n## Correctness\n\n{} policies on {} graphs from 3 roots each, every level and every parent compared with a serial search.\n\n\
             | setting | right | wrong |\n|---|---:|---:|",
            policies.len(),
            graphs.len()
        );
        for (what, (right, wrong)) in &table {
            let _ = writeln!(self.markdown, "| {what} | {right} | {wrong} |");
        }
        self.json.insert("correctness", json!({ "right": right, "wrong": wrong, "complete": !late }));
        if late {
            self.problem(format!("correctness: only {right} combinations were compared, more take too long on this device"));
        }
        for fault in wrong {
            self.problem(fault);
        }
        Ok(())
    }

    /// Times [`REPEATS`] searches from `root`, after one for warm-up.
    fn timed(&self, layout: &Layout, options: &SearchOptions, root: Vertex, single_levels: bool) -> Result<Timed, String> {
        let mut search = Search::new(layout, options).map_err(whole)?;
        search.set_single_levels(single_levels);
        search.run(root).map_err(whole)?;
        let (mut levels, mut walls, mut busies) = (Vec::<Vec<f64>>::new(), Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            let outcome = search.run(root).map_err(whole)?;
            // The records do not include launches after the last level.
            let mut busy: u64 = search.records().iter().map(|record| record.device_ns).sum();
            for setup in &options.devices {
                let add = |time: LaunchTime| busy += time.end_ns.saturating_sub(time.start_ns);
                setup.device.times(add).map_err(|error| error.to_string())?;
            }
            walls.push(outcome.elapsed.as_secs_f64() * 1e6);
            busies.push(busy as f64 / 1e3);
            levels.resize(levels.len().max(search.records().len()), Vec::new());
            for (level, record) in levels.iter_mut().zip(search.records()) {
                level.push(record.elapsed_ns as f64 / 1e3);
            }
        }
        Ok(Timed { search: median(walls), levels: levels.into_iter().map(median).collect(), busy: median(busies) })
    }

    /// Measures each kernel level by level on one Kronecker graph, and compares the device's own times with the clock.
    fn levels(&mut self) -> Result<(), String> {
        // Recording times slows each launch a little with some drivers, and keeps the engine from launching levels ahead.
        let device = Device::open_timed(self.device.info(), Limits::default()).map_err(|error| error.to_string())?;
        let scale = self.pick(20, 14, 8);
        let edges = Generator::graph500(scale).generate(&|_| ()).map_err(|error| error.to_string())?;
        let layout = Layout::build(&edges, &BuildOptions::default()).map_err(|error| error.to_string())?;
        let root = roots(layout.vertices(), |v| layout.input_degree(v), 1, RootSource::GRAPH500)[0];
        let mut columns: Vec<(&str, Timed)> = Vec::new();
        for (name, on_device) in [("tc", false), ("bc", false), ("tg", true), ("tgm", true), ("bg", true), ("bgc", true)] {
            let policy = name.parse::<Policy>().map_err(|error| format!("{name}: {error}"))?;
            let setup = || GpuSetup { device: Arc::clone(&device), ..self.setup(GpuOptions::default(), self.way) };
            let devices = if on_device { vec![setup()] } else { Vec::new() };
            let options = SearchOptions { planner: policy.into(), devices, ..SearchOptions::default() };
            columns.push((name, self.timed(&layout, &options, root, true)?));
        }
        let _ = write!(
            self.markdown,
            "\n## Kernels per level\n\nKronecker {scale} from {root}, medians of {REPEATS} searches, in us.\n\n| level |"
        );
        for column in &columns {
            let _ = write!(self.markdown, " {} |", column.0);
        }
        let _ = writeln!(self.markdown, "\n|---|{}", "---:|".repeat(columns.len()));
        for level in 0..columns.iter().map(|(_, timed)| timed.levels.len()).max().unwrap_or(0) {
            let _ = write!(self.markdown, "| {level} |");
            for column in &columns {
                let us = column.1.levels.get(level).map_or(String::new(), |us| format!("{us:.1}"));
                let _ = write!(self.markdown, " {us} |");
            }
            self.markdown += "\n";
        }
        self.markdown += "\n## The device's own times against the clock\n\n\
             | kernel | search, us | device busy, us | share |\n|---|---:|---:|---:|\n";
        for (name, Timed { search: wall, busy, .. }) in columns.iter().filter(|(_, timed)| timed.busy > 0.0) {
            let _ = writeln!(self.markdown, "| {name} | {wall:.1} | {busy:.1} | {:.0} % |", busy / wall * 100.0);
            if *busy > wall * 1.05 {
                self.problem(format!("{name}: the device claims to have been busy for {busy:.0} us in a search of {wall:.0} us"));
            }
        }
        let all = columns.iter().map(
            |(name, Timed { search, levels, busy })| json!({ "kernel": name, "level_us": levels, "search_us": search, "device_us": busy }),
        );
        let all: Vec<Value> = all.collect();
        self.json.insert("levels", json!({ "scale": scale, "root": root, "kernels": all }));
        self.launches_ahead(&layout, root)
    }

    /// Measures searches on the device by the number of steps that are launched together. The more there are, the less is waited for, and
    /// the more launches find nothing to do.
    fn launches_ahead(&mut self, layout: &Layout, root: Vertex) -> Result<(), String> {
        self.markdown +=
            "\n## Steps launched together\n\nThe same search by the policy `sampled`, in us.\n\n| steps | search |\n|---:|---:|\n";
        let mut all = Vec::new();
        for steps in [1, 2, 4, 8, 16] {
            let devices = vec![self.setup(GpuOptions { steps: Some(steps), ..GpuOptions::default() }, self.way)];
            let policy = "sampled".parse::<Policy>().expect("a policy");
            let options = SearchOptions { planner: policy.on(LevelDevice::Gpu(GpuKernel::Bgc)), devices, ..SearchOptions::default() };
            let search = self.timed(layout, &options, root, false)?.search;
            let _ = writeln!(self.markdown, "| {steps} | {search:.1} |");
            all.push(json!({ "steps": steps, "search_us": search }));
        }
        self.json.insert("steps", Value::Array(all));
        Ok(())
    }

    /// Runs `socbfs bench` on Kronecker graphs: on the CPU, on the device, and with the policy `adaptive` on both.
    fn kronecker(&mut self) -> Result<(), String> {
        self.markdown += "\n## Kronecker graphs\n\nHarmonic mean in millions of edges per second over 16 roots, original numbers; and without bringing \
             the parents back into original numbers on the host.\n\n| scale | CPU | device | both | device, parents left there | device over CPU |\n\
             |---:|---:|---:|---:|---:|---:|\n";
        let mut all = Vec::new();
        let mut last = Duration::ZERO;
        for scale in self.arguments.scales.clone() {
            // The next scale takes a little more than twice the time.
            if self.left() < last * 5 / 2 + Duration::from_secs(5) {
                self.problem(format!("Kronecker graphs: scale {scale} and above left out, no time is left"));
                break;
            }
            let start = Instant::now();
            let (device, name) = (self.choice.clone(), scale.to_string());
            let mut speeds = Vec::new();
            for (kind, policy) in [("cpu", "auto"), ("gpu", "sampled"), ("both", "adaptive")] {
                let device = if kind == "cpu" { "cpu" } else { &device };
                let arguments = [
                    "bench",
                    "--kronecker",
                    &name,
                    "--roots",
                    "16",
                    "--policy",
                    policy,
                    "--device",
                    device,
                    "--energy",
                    "off",
                    "-q",
                    "--json",
                    "-",
                ];
                let record =
                    self.socbfs(&arguments).and_then(|text| serde_json::from_str::<Value>(&text).map_err(|error| error.to_string()));
                match record {
                    Ok(record) => {
                        speeds.push((teps(&record, false), teps(&record, true)));
                        all.push(json!({ "scale": scale, "on": kind, "record": record }));
                    }
                    Err(problem) => {
                        speeds.push((None, None));
                        self.problem(format!("Kronecker {scale} on {kind}: {problem}"));
                    }
                }
            }
            let shown = |speed: Option<f64>| speed.map_or("n/a".to_owned(), |teps| format!("{:.0}", teps / 1e6));
            let over = speeds[1].0.zip(speeds[0].0).map_or("n/a".to_owned(), |(gpu, cpu)| format!("{:.2}", gpu / cpu));
            let [cpu, gpu, both, left] = [speeds[0].0, speeds[1].0, speeds[2].0, speeds[1].1].map(shown);
            let _ = writeln!(self.markdown, "| {scale} | {cpu} | {gpu} | {both} | {left} | {over} |");
            last = start.elapsed();
            self.write()?;
        }
        self.json.insert("kronecker", Value::Array(all));
        Ok(())
    }

    fn handover(&mut self) -> Result<(), String> {
        let table = if self.arguments.quick { measure::measure_quickly(&self.device) } else { measure::measure(&self.device) };
        self.markdown += "\n## Handover\n\nThere and back, median, in us.\n\n| way | bytes | to the device | back | first |\n|---|---:|---:|---:|---:|\n";
        let json = serde_json::to_value(&table).map_err(|error| error.to_string())?;
        let us = |value: &Value| value.as_u64().map_or("n/a".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e3));
        for way in json["ways"].as_array().into_iter().flatten() {
            for size in way["sizes"].as_array().into_iter().flatten() {
                let _ = writeln!(
                    self.markdown,
                    "| {} | {} | {} | {} | {} |",
                    way["way"].as_str().unwrap_or("?"),
                    size["bytes"],
                    us(&size["to_device_ns"]),
                    us(&size["to_host_ns"]),
                    us(&size["first_to_device_ns"]),
                );
            }
        }
        self.json.insert("handover", json);
        Ok(())
    }

    /// Compares Rodinia's OpenCL program with every kernel of socbfs on a graph of Rodinia's generator.
    fn rodinia(&mut self) -> Result<(), String> {
        // The goals of this comparison are for a million vertices.
        let vertices = if self.arguments.rodinia.is_some() { 1_000_000 } else { self.pick(1_000_000, 100_000, 1000) };
        let edges = Generator::Rodinia { vertices, seed: 1 }.generate(&|_| ()).map_err(|error| error.to_string())?;
        let layout = Layout::build(&edges, &BuildOptions::default()).map_err(|error| error.to_string())?;
        let mut times = Vec::new();
        for policy in ["tg", "tgm", "bg", "bgc", "sampled"] {
            let parsed: Policy = policy.parse().map_err(|error| format!("{policy}: {error}"))?;
            let runs = where_directions_run(policy, GpuKernel::Bg);
            let devices = vec![self.setup(GpuOptions::default(), self.way)];
            let options = SearchOptions { planner: parsed.on(runs), devices, ..SearchOptions::default() };
            times.push((format!("socbfs {policy}"), self.timed(&layout, &options, 0, false)?.search / 1e3));
        }
        let theirs = match self.arguments.rodinia.clone() {
            Some(program) => match self.their_time(&program, &edges) {
                Ok(time) => Some(time),
                Err(problem) => {
                    self.problem(format!("Rodinia's program: {problem}"));
                    None
                }
            },
            None => None,
        };
        let _ = writeln!(
            self.markdown,
            "\n## Rodinia's graph of {vertices} vertices\n\n{}\n\n| program | ms | over |\n|---|---:|---:|",
            match theirs {
                Some((_, what)) => what,
                None => "Rodinia's own program was not given (--rodinia).",
            }
        );
        let over = |ms: f64| theirs.map_or("n/a".to_owned(), |(theirs, _)| format!("{:.2}", theirs / ms));
        if let Some((ms, _)) = theirs {
            let _ = writeln!(self.markdown, "| Rodinia, OpenCL | {ms:.3} | 1 |");
        }
        for (name, ms) in &times {
            let _ = writeln!(self.markdown, "| {name} | {ms:.3} | {} |", over(*ms));
        }
        let ours: Vec<Value> = times.iter().map(|(name, ms)| json!({ "program": name, "ms": ms })).collect();
        self.json.insert("rodinia", json!({ "vertices": vertices, "rodinia_ms": theirs.map(|theirs| theirs.0), "socbfs": ours }));
        Ok(())
    }

    /// The time of Rodinia's program in milliseconds, and a description of what it includes.
    fn their_time(&self, program: &Path, edges: &EdgeList) -> Result<(f64, &'static str), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let path = folder.path().join("graph.txt");
        write_rodinia(&path, edges).map_err(|error| format!("{}: {error}", path.display()))?;
        self.their_times(program, &path)
    }

    fn their_times(&self, program: &Path, graph: &Path) -> Result<(f64, &'static str), String> {
        // A path begins with two slashes, since Rodinia's program takes any word whose second letter is d, g or p as an option, even
        // "/data" and its own name.
        let whole_path = |path: &Path| match fs::canonicalize(path) {
            Ok(path) => Ok(format!("/{}", path.display())),
            Err(error) => Err(format!("{}: {error}", path.display())),
        };
        let (command, graph) = (whole_path(program)?, whole_path(graph)?);
        let (platform, device) = self.place().ok_or("the device is not in the list of platforms any more")?;
        let folder = program.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut times = Vec::new();
        let mut whose = "";
        for _ in 0..5 {
            let begin = Instant::now();
            let place = [platform.to_string(), device.to_string()];
            // Rodinia's program reads its kernels from the working directory.
            let text = output(Command::new(&command).args([&*graph, "-p", &*place[0], "-d", &*place[1]]).current_dir(folder), self.left())?;
            let elapsed = begin.elapsed().as_secs_f64() * 1e3;
            let time;
            (time, whose) = their_word(&text, elapsed)?;
            times.push(time);
        }
        Ok((median(times), whose))
    }

    /// The index of the device's platform, and of the device in that platform, as Rodinia's program counts them.
    fn place(&self) -> Option<(usize, usize)> {
        let info = self.device.info();
        let platforms = opencl::platforms().ok()?;
        platforms.iter().enumerate().find_map(|(number, platform)| {
            let device = platform.devices.iter().position(|other| (&other.name, &other.platform) == (&info.name, &info.platform))?;
            Some((number, device))
        })
    }

    /// Measures the energy of searches of one graph on the CPU and on the device, with the sensors of this machine.
    fn energy(&mut self) -> Result<(), String> {
        let scale = self.pick("20", "12", "8");
        let device = self.choice.clone();
        let mut all = Vec::new();
        self.markdown += "\n## Energy\n\n| on | MTEPS | MTEPS/W | what |\n|---|---:|---:|---|\n";
        for (kind, device, sensors) in [("CPU", "cpu", "auto"), ("device", &device, "auto"), ("device", &device, "nvml")] {
            // Without a board profile, nothing says what a GPU's own sensor is a part of, so it is named.
            let is_measured = all.last().is_none_or(|last: &Value| !last["energy"]["measured"].is_null());
            if sensors == "nvml" && (is_measured || !self.device.info().platform.contains("NVIDIA")) {
                continue;
            }
            let policy = if kind == "CPU" { "auto" } else { "sampled" };
            let arguments = [
                "bench",
                "--kronecker",
                scale,
                "--roots",
                "16",
                "--policy",
                policy,
                "--device",
                device,
                "--energy",
                sensors,
                "--energy-seconds",
                self.pick("2", "2", "1"),
                // A window lasts 200 refreshes of the sensor, 20 s with NVML.
                "--energy-repeats",
                "1",
                "-q",
                "--json",
                "-",
            ];
            let record: Value = serde_json::from_str(&self.socbfs(&arguments)?).map_err(|error| error.to_string())?;
            let energy = &record["energy"];
            let per_watt = energy["measured"]["summary"]["mteps_per_watt"]["median"].as_f64();
            let what = energy["unavailable"].as_str().or(energy["measured"]["scope"].as_str()).unwrap_or("");
            let speed = teps(&record, false).map_or("n/a".to_owned(), |teps| format!("{:.0}", teps / 1e6));
            let per_watt = per_watt.map_or("n/a".to_owned(), |value| format!("{value:.1}"));
            let _ = writeln!(self.markdown, "| {kind} | {speed} | {per_watt} | {what} |");
            all.push(json!({ "on": kind, "scale": scale, "energy": energy }));
        }
        self.json.insert("energy", Value::Array(all));
        Ok(())
    }
}

/// Graphs of shapes on which kernels tend to fail: hubs, long lists, long paths, a grid, directed arcs, loops and repeats.
fn graphs() -> Vec<(&'static str, EdgeList, bool)> {
    let generated = |generator: Generator| generator.generate(&|_| ()).expect("parameters in range");
    let list = |n: usize, edges: Vec<[Vertex; 2]>| EdgeList::new(n, edges, Listing::Once).expect("few vertices");
    let star = (1..40_000).map(|v| [0, v]).collect();
    let path = (1..200).map(|v| [v - 1, v]).collect();
    let odd = vec![[0, 1], [0, 1], [1, 0], [2, 2], [3, 4]];
    vec![
        ("kronecker:12", generated(Generator::graph500(12)), false),
        ("kronecker:12, directed", generated(Generator::graph500(12)), true),
        ("rodinia:5000, directed", generated(Generator::Rodinia { vertices: 5000, seed: 1 }), true),
        ("grid:40x40", generated(Generator::Grid { width: 40, height: 40, deletion: 0.05, seed: 1 }), false),
        ("a star of 40,000", list(40_000, star), false),
        ("a path of 200", list(200, path), false),
        ("loops and repeats", list(5, odd), false),
    ]
}

/// The time in milliseconds that Rodinia's program printed (`elapsed` if it printed none), and a description of that time. The program
/// always exits with 0, so its output must say that the result is right.
fn their_word(text: &str, elapsed: f64) -> Result<(f64, &'static str), String> {
    if !text.contains("passed") {
        let last: Vec<&str> = text.lines().rev().take(2).collect();
        return Err(format!("it does not say that its result is right: {}", last.join(" / ")));
    }
    let number = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    if let Some(milliseconds) = number("Exec:") {
        return Ok((milliseconds, "Rodinia's program built with -DTIMING: its kernels alone, without what it copies at every level."));
    }
    if let Some(seconds) = number("kernel time(s):") {
        return Ok((seconds * 1e3, "Rodinia's program built with -DPROFILING: all of its search, without the copies before and after."));
    }
    Ok((
        elapsed,
        "Rodinia's program, built with neither -DTIMING nor -DPROFILING, tells no time: the whole run is given, reading the graph included.",
    ))
}

/// The place of the levels of a policy that decides directions only: the GPU, with `kernel` for bottom-up levels.
fn where_directions_run(policy: &str, kernel: GpuKernel) -> LevelDevice {
    if policy.starts_with("sampled") || policy.starts_with("alpha-beta") { LevelDevice::Gpu(kernel) } else { LevelDevice::Cpu }
}

/// Searches from `root` and returns what is wrong with the tree.
fn compare(search: &mut Search<'_>, edges: &EdgeList, directed: bool, root: Vertex, wanted: &[u32]) -> Option<String> {
    if let Err(error) = search.run(root) {
        return Some(whole(error));
    }
    let result = search.result(root);
    if let Some(v) = (0..wanted.len()).find(|&v| result.level[v] != wanted[v]) {
        return Some(format!("from {root}, vertex {v} is at level {}, not {}", result.level[v], wanted[v]));
    }
    socbfs_io::validate::validate(edges, directed, root, &result.parent).err().map(|error| format!("from {root}: {error}"))
}

/// Harmonic mean of the TEPS of a record, with or without the time of mapping to original numbers.
fn teps(record: &Value, without_mapping: bool) -> Option<f64> {
    if record["valid"] != true {
        return None;
    }
    let mut inverse = Vec::new();
    for root in record["roots"].as_array()? {
        let mapping = if without_mapping { root["mapping_seconds"].as_f64()? } else { 0.0 };
        inverse.push((root["seconds"].as_f64()? - mapping) / root["edges"].as_f64()?);
    }
    Some(inverse.len() as f64 / inverse.iter().sum::<f64>())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// An error with all its causes.
fn whole(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    text
}

/// Runs a program for at most `most`, and returns its standard output if it succeeds.
fn output(command: &mut Command, most: Duration) -> Result<String, String> {
    let mut child = Command::new("timeout");
    // Both stay in this process group, so that they end with it.
    child.args(["--foreground", "--kill-after", "5"]).arg(most.as_secs().max(1).to_string());
    child.arg(command.get_program()).args(command.get_args()).envs(opencl::given_drivers());
    if let Some(folder) = command.get_current_dir() {
        child.current_dir(folder);
    }
    let output = child.output().map_err(|error| format!("timeout {}: {error}", Path::new(command.get_program()).display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    if let Some(124 | 137) = output.status.code() {
        return Err(format!("{} was stopped after {} s", Path::new(command.get_program()).display(), most.as_secs().max(1)));
    }
    let last: Vec<_> = String::from_utf8_lossy(&output.stderr).lines().rev().take(4).map(str::to_owned).collect();
    let last: Vec<_> = last.into_iter().rev().collect();
    Err(format!("{} ended with {}: {}", Path::new(command.get_program()).display(), output.status, last.join(" / ")))
}

/// Writes an undirected graph in the format of Rodinia's program: the first arc and the degree of every vertex, the source, the arcs.
fn write_rodinia(path: &Path, edges: &EdgeList) -> std::io::Result<()> {
    let mut lists = vec![Vec::new(); edges.vertices()];
    // Both ends get an arc, as in the files of Rodinia's generator.
    edges.for_each(0..edges.len(), |u, v| {
        lists[u as usize].push(v);
        lists[v as usize].push(u);
    });
    let mut text = format!("{}\n", lists.len());
    let mut start = 0;
    for list in &lists {
        let _ = writeln!(text, "{start} {}", list.len());
        start += list.len();
    }
    let _ = write!(text, "\n0\n\n{start}\n");
    for target in lists.iter().flatten() {
        let _ = writeln!(text, "{target} 1");
    }
    fs::write(path, text)
}
