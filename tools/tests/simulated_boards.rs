//! Tests `adaptive` on simulated boards: levels of real searches, with computed times for every strategy.
//!
//! Every level of a search is the same set of vertices on every device, so the board is not needed to find what a policy would do on it.
//! The statistics of the levels are those of searches on this machine, and formulas for each board give the cost of a level by every plan.
//! Unlike the policy's model, the formulas are not linear, and each time is off by up to 4 %. The model is fitted by the code
//! of a calibration, to other graphs than those that are searched.

use std::{env, path::PathBuf};

use socbfs::{
    bfs::{Direction, GpuKernel, LevelPlan, LevelStats, Placement, Planner, Strategy},
    graph::{BuildOptions, EdgeList, Layout},
    search::{Search, SearchOptions},
};
use socbfs_io::{ReadOptions, generate::Generator, read};
use socbfs_policy::{Adaptive, Bands, CostModel, LevelDevice, Policy, PolicyPlanner, together_ns};
use socbfs_tools::{
    calibrate::{Turns, fit, measure_levels, training_graph},
    record::{LevelTable, LevelTimes, SHARES, SplitParts},
};

/// A board: nanoseconds of a level by any plan, and of a handover.
#[derive(Clone, Copy)]
struct Board {
    name: &'static str,
    /// A level on the GPU alone.
    gpu: Gpu,
    /// By how much the CPU's and the GPU's part of a split level take longer while both work: they use the same memory.
    corun: [f64; 2],
    /// Time of a split level in addition to its parts.
    beside: fn(&LevelStats) -> f64,
    /// Time of a handover to the GPU, and also of one to the CPU.
    handover: fn(&LevelStats) -> f64,
}

fn probes(stats: &LevelStats) -> f64 {
    f64::from(stats.sampled_probes.unwrap_or(1.0))
}

/// Nanoseconds of a level on the CPU, which is the same for all boards. An arc takes longer if the graph does not fit into the caches.
fn cpu(stats: &LevelStats, direction: Direction) -> f64 {
    let cache = 1.0 + 0.4 * ((stats.vertices as f64 / 65_536.0).log2() / 4.0).clamp(0.0, 1.0);
    let (vertices, edges) = (stats.frontier_vertices as f64, stats.frontier_edges as f64);
    match direction {
        Direction::TopDown => 400.0 + 6.0 * vertices + 1.6 * cache * edges,
        Direction::BottomUp => {
            900.0 + 4.0 * stats.vertices as f64 / 64.0 + cache * (1.8 + 0.45 * probes(stats)) * stats.unvisited_vertices as f64
        }
    }
}

/// Terms of the nanoseconds of a level, for each kernel: fixed; per frontier vertex (TG) or per word of the masks; per arc of the frontier
/// (top-down) or per unvisited vertex; per square root of the arcs (top-down) or per probe of an unvisited vertex.
type Gpu = [[f64; 4]; 4];

fn by_gpu([tg, tgm, bg, bgc]: Gpu, stats: &LevelStats, kernel: GpuKernel) -> f64 {
    let (vertices, edges, words) = (stats.frontier_vertices as f64, stats.frontier_edges as f64, stats.vertices as f64 / 64.0);
    let bottom_up =
        |[fixed, word, vertex, probe]: [f64; 4]| fixed + word * words + (vertex + probe * probes(stats)) * stats.unvisited_vertices as f64;
    match kernel {
        GpuKernel::Tg => tg[0] + tg[1] * vertices + tg[2] * edges + tg[3] * edges.sqrt(),
        GpuKernel::Tgm => tgm[0] + tgm[1] * words + tgm[2] * edges + tgm[3] * edges.sqrt(),
        GpuKernel::Bg => bottom_up(bg),
        GpuKernel::Bgc => bottom_up(bgc),
    }
}

/// A discrete card: launches take 25 us, and large levels a tenth of the CPU's time. Small levels do not fill it.
const FAST_GPU: Gpu = [[25_000.0, 0.6, 0.2, 25.6], [30_000.0, 1.5, 0.18, 0.0], [22_000.0, 0.5, 0.3, 0.11], [28_000.0, 0.5, 0.24, 0.09]];
/// A small GPU on the chip: launches take 8 us, and large levels one and a half times as long as on the CPU.
const SLOW_GPU: Gpu = [[8000.0, 9.0, 2.6, 0.0], [9000.0, 20.0, 2.5, 0.0], [8000.0, 6.0, 2.8, 0.8], [9000.0, 6.0, 2.7, 0.7]];
/// A useful GPU on the chip: launches take 9 us, and large levels half as long as on the CPU.
const INTEGRATED_GPU: Gpu = [[9000.0, 1.6, 0.55, 35.2], [10_000.0, 3.0, 0.5, 0.0], [9000.0, 1.5, 0.8, 0.25], [10_000.0, 1.5, 0.7, 0.21]];

const BOARDS: [Board; 3] = [
    // Parents, bitmaps and queue are copied over PCI Express at 4 bytes per nanosecond.
    Board {
        name: "fast GPU, dear handover",
        gpu: FAST_GPU,
        corun: [1.1, 1.1],
        beside: |stats| 120_000.0 + 20.0 * stats.vertices as f64 / 64.0 + 2.0 * stats.frontier_vertices as f64,
        handover: |stats| 150_000.0 + 1.1 * stats.vertices as f64,
    },
    Board {
        name: "slow GPU, free handover",
        gpu: SLOW_GPU,
        corun: [1.1, 1.1],
        beside: |stats| 6000.0 + 0.5 * stats.vertices as f64 / 64.0 + 0.5 * stats.frontier_vertices as f64,
        handover: |_| 0.0,
    },
    Board {
        name: "integrated GPU, cheap handover",
        gpu: INTEGRATED_GPU,
        corun: [1.1, 1.1],
        beside: |stats| 9000.0 + stats.vertices as f64 / 64.0 + stats.frontier_vertices as f64,
        handover: |stats| 8000.0 + 0.02 * stats.vertices as f64,
    },
];

/// A factor of 0.96 to 1.04, which is always the same for the same graph, level and plan.
fn noise(stats: &LevelStats, plan: LevelPlan) -> f64 {
    let plan = match plan.placement {
        Placement::Split { gpu_permille, kernel } => u64::from(gpu_permille) + kernel as u64,
        _ => Strategy::of(plan).map_or(0, |strategy| 1 + strategy as u64),
    };
    let mixed = [stats.vertices, stats.frontier_edges, u64::from(stats.level), plan].into_iter().fold(7u64, |mixed, value| {
        let mixed = (mixed ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 29)
    });
    1.0 + 0.08 * ((mixed >> 11) as f64 / (1u64 << 53) as f64 - 0.5)
}

impl Board {
    /// Times of the CPU's and the GPU's part of a split level.
    fn parts(&self, stats: &LevelStats, kernel: GpuKernel, gpu_permille: u16) -> SplitParts {
        let share = f64::from(gpu_permille) / 1000.0;
        let alone_ns = [cpu(stats, kernel.direction()) * (1.0 - share), by_gpu(self.gpu, stats, kernel) * share];
        let slowed = [alone_ns[0] * self.corun[0], alone_ns[1] * self.corun[1]];
        let last = together_ns(alone_ns, self.corun);
        SplitParts { alone_ns, both_ns: if slowed[0] <= slowed[1] { [slowed[0], last] } else { [last, slowed[1]] } }
    }

    /// The cost of the searches of `tables` if `policy` plans them.
    fn planned_ns(&self, tables: &[LevelTable], policy: &Policy) -> f64 {
        let mut planner = PolicyPlanner::new(policy.clone(), LevelDevice::Gpu(GpuKernel::Bg));
        let mut search = |table: &LevelTable| {
            planner.begin();
            let (mut previous, mut parts) = (None::<LevelPlan>, [0.0; 2]);
            let plan = |level: &LevelTimes| {
                // The planner gets the same statistics as in a search.
                let mut stats = LevelStats {
                    previous_direction: previous.map(|plan| plan.direction),
                    previous_placement: previous.map(|plan| plan.placement),
                    previous_cpu_ns: parts[0] as u64,
                    previous_gpu_ns: parts[1] as u64,
                    sampled_probes: None,
                    ..level.stats
                };
                if planner.wants_sample(&stats) {
                    stats.sampled_probes = level.stats.sampled_probes;
                }
                let plan = planner.plan(&stats);
                parts = match plan.placement {
                    Placement::Split { gpu_permille, kernel } => self.parts(&level.stats, kernel, gpu_permille).both_ns,
                    _ => [0.0; 2],
                };
                previous = Some(plan);
                plan
            };
            let plans: Vec<LevelPlan> = table.levels.iter().map(plan).collect();
            table.cost_ns(&plans).unwrap()
        };
        tables.iter().map(&mut search).sum()
    }

    fn level_ns(&self, stats: &LevelStats, plan: LevelPlan) -> f64 {
        let ns = match plan.placement {
            Placement::Cpu => cpu(stats, plan.direction),
            Placement::Gpu(kernel) => by_gpu(self.gpu, stats, kernel),
            Placement::Split { gpu_permille, kernel } => {
                let [cpu_ns, gpu_ns] = self.parts(stats, kernel, gpu_permille).both_ns;
                (self.beside)(stats) + cpu_ns.max(gpu_ns)
            }
            _ => f64::INFINITY,
        };
        ns * noise(stats, plan)
    }

    fn table(&self, measured: &LevelTable) -> LevelTable {
        let level = |level: &LevelTimes| {
            let stats = level.stats;
            let change = |from: Strategy, to: Strategy| {
                let moved = if from.is_gpu() == to.is_gpu() { 0.0 } else { (self.handover)(&stats) };
                moved + if from.direction() == to.direction() { 0.0 } else { 300.0 + stats.vertices as f64 / 64.0 }
            };
            let own = Strategy::ALL.map(|strategy| self.level_ns(&stats, strategy.plan()));
            let after = Strategy::ALL.map(|from| Strategy::ALL.map(|to| own[to as usize] + change(from, to)));
            let shared = GpuKernel::ALL.map(|kernel| SHARES.map(|share| self.level_ns(&stats, LevelPlan::split(kernel, share))));
            let times = serde_json::json!({ "stats": stats, "found": level.found, "own": own, "after": after, "shared": shared });
            serde_json::from_value(times).unwrap()
        };
        let mut levels: Vec<LevelTimes> = measured.levels.iter().map(level).collect();
        for kernel in GpuKernel::ALL {
            let all_ns = |share: &u16| levels.iter().filter_map(|level| level.split_ns(kernel, *share)).sum::<f64>();
            let fastest = SHARES.into_iter().min_by(|a, b| all_ns(a).total_cmp(&all_ns(b))).unwrap();
            for level in &mut levels {
                // Each side is measured with noise, alone and together.
                let parts = self.parts(&level.stats, kernel, fastest);
                let [alone, both] = [0, 1].map(|more| noise(&level.stats, LevelPlan::split(kernel, fastest + more)));
                level.parts[kernel as usize] =
                    Some(SplitParts { alone_ns: parts.alone_ns.map(|ns| ns * alone), both_ns: parts.both_ns.map(|ns| ns * both) });
            }
        }
        LevelTable { root: measured.root, strategies: Strategy::ALL.to_vec(), levels }
    }
}

/// Bounds of the regret: of the mean over the graphs, and of the worst graph.
const MOST_MEAN: f64 = 0.03;
const MOST: f64 = 0.13;
/// Bound of the time in excess of that of the better device alone, with its best plan of each level.
const MOST_OVER_ALONE: f64 = 0.06;

/// Seeds of the sets of graphs to which the model is fitted.
const TRAINING: [u64; 2] = [11, 12];

/// The levels of searches from some roots.
fn searches(edges: &EdgeList, roots: usize) -> Vec<LevelTable> {
    let layout = Layout::build(edges, &BuildOptions::default()).unwrap();
    // With one thread the counts are the same at every run of the test.
    let mut search = Search::new(&layout, &SearchOptions { every_planner: true, threads: 1, ..SearchOptions::default() }).unwrap();
    let once = Turns { turns: 1, ..Turns::default() };
    let n = layout.vertices() as u32;
    let candidates = (0..n).map(|i| (u64::from(i) * 2_654_435_761 % u64::from(n)) as u32);
    let mut tables = Vec::new();
    for root in candidates.filter(|&root| layout.input_degree(root) > 0) {
        if tables.len() == roots {
            break;
        }
        if search.run(root).unwrap().reached * 2 > u64::from(n) || tables.is_empty() {
            tables.push(measure_levels(&mut search, root, &[Strategy::Tc], &once).unwrap());
        }
    }
    tables
}

/// A graph that was not used for fitting.
struct Graph {
    name: String,
    is_real: bool,
    levels: Vec<LevelTable>,
}

fn graph(name: String, is_real: bool, edges: &EdgeList) -> Graph {
    Graph { name, is_real, levels: searches(edges, 2) }
}

/// Some generated graphs.
fn made() -> Vec<Graph> {
    let kronecker = |scale| Generator::Kronecker { scale, edge_factor: 16, seed1: 2, seed2: 3 };
    let made = [
        kronecker(12),
        kronecker(16),
        Generator::Uniform { vertices: 50_000, edges: 400_000, seed: 4 },
        Generator::Grid { width: 300, height: 90, deletion: 0.1, seed: 5 },
    ];
    made.iter().map(|made| graph(made.to_string(), false, &made.generate(&|_| {}).unwrap())).collect()
}

/// The generated graphs, and with `SOCBFS_TEST_ALL` the real graphs if their folder exists.
fn graphs() -> Vec<Graph> {
    let mut all = made();
    if env::var_os("SOCBFS_TEST_ALL").is_none() {
        return all;
    }
    let folder = env::var_os("SOCBFS_DATA").map_or_else(|| PathBuf::from(crate::REPOSITORY).join("../shared/data"), PathBuf::from);
    let mut files: Vec<PathBuf> =
        folder.read_dir().map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())).collect()).unwrap_or_default();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "xz" || extension == "gz"));
    files.sort();
    if files.is_empty() {
        crate::implementations::skipped("the real graphs", &format!("no data folder at {} (set SOCBFS_DATA)", folder.display()));
    }
    for file in files {
        let edges = read(&file, &ReadOptions::default()).unwrap();
        all.push(graph(file.file_name().unwrap().to_string_lossy().into_owned(), true, &edges));
    }
    all
}

/// The results of one board and one training set.
#[derive(Default)]
struct Summary {
    mean: f64,
    worst: f64,
    /// Worst time in excess of that of the better device alone: of the generated graphs, and of the real ones.
    over: [f64; 2],
}

impl Board {
    /// Judges the policy on `graphs`. The policy is fitted to `training` as a calibration does it.
    fn summary(&self, training: &[LevelTable], graphs: &[Graph]) -> Summary {
        let training: Vec<LevelTable> = training.iter().map(|measured| self.table(measured)).collect();
        let model = fit(&training).unwrap();
        println!("{}: split levels top-down {}, bottom-up {}", self.name, model.top_down_split.is_some(), model.bottom_up_split.is_some());
        let adaptive = Policy::Adaptive(Box::new(Adaptive::new(Bands::default(), model)));
        let mut summary = Summary { over: [f64::NEG_INFINITY; 2], ..Summary::default() };
        for graph in graphs {
            let tables: Vec<LevelTable> = graph.levels.iter().map(|measured| self.table(measured)).collect();
            // Time of one device alone with its best plan of every level.
            let alone = |of: &dyn Fn(Strategy) -> bool| {
                let plans: Vec<LevelPlan> = Strategy::ALL.into_iter().filter(|&strategy| of(strategy)).map(Strategy::plan).collect();
                tables.iter().map(|table| table.cheapest(&plans).1).sum::<f64>()
            };
            let oracle: f64 = tables.iter().map(|table| table.oracle().1).sum();
            let regret = self.planned_ns(&tables, &adaptive) / oracle - 1.0;
            let better = alone(&|strategy| !strategy.is_gpu()).min(alone(&Strategy::is_gpu));
            let over = oracle * (1.0 + regret) / better - 1.0;
            println!("  {:<28} regret {:5.1} %, against the better device alone {:6.1} %", graph.name, 100.0 * regret, 100.0 * over);
            summary.mean += regret / graphs.len() as f64;
            summary.worst = summary.worst.max(regret);
            let most = &mut summary.over[usize::from(graph.is_real)];
            *most = most.max(over);
        }
        summary
    }
}

/// The levels of searches of the training set of this seed.
fn training(seed: u64, most_scale: u32) -> Vec<LevelTable> {
    (0..16).flat_map(|place| searches(&training_graph(place, seed, most_scale).generate(&|_| {}).unwrap(), 2)).collect()
}

#[test]
fn adaptive_comes_close_to_the_oracle_on_every_board() {
    let graphs = graphs();
    // By default one training set of smaller graphs is used, which takes half the time.
    let (seeds, most_scale) = if env::var_os("SOCBFS_TEST_ALL").is_some() { (&TRAINING[..], 15) } else { (&TRAINING[..1], 14) };
    let training: Vec<Vec<LevelTable>> = seeds.iter().map(|&seed| training(seed, most_scale)).collect();
    let (mut bad, mut rows) = (Vec::new(), Vec::new());
    for board in &BOARDS {
        let both: Vec<Summary> = training.iter().map(|training| board.summary(training, &graphs)).collect();
        for (seed, Summary { mean, worst, over: [made, real] }) in seeds.iter().zip(&both) {
            if *mean > MOST_MEAN || *worst > MOST || made.max(*real) > MOST_OVER_ALONE {
                bad.push(format!(
                    "{}, set {seed}: mean {mean:.3}, worst {worst:.3}, over the better device alone {made:.3}, {real:.3}",
                    board.name
                ));
            }
        }
        // Without real graphs there is no worst real graph.
        let cell = |value: f64| if value.is_finite() { format!("{:.1} %", 100.0 * value) } else { "n/a".to_owned() };
        let cells = |of: fn(&Summary) -> f64| both.iter().map(|summary| cell(of(summary))).collect::<Vec<_>>().join(", ");
        let columns: [fn(&Summary) -> f64; 4] = [|all| all.mean, |all| all.worst, |all| all.over[1], |all| all.over[0]];
        rows.push(format!("| {} | {} |", board.name, columns.map(cells).join(" | ")));
    }
    // The table in docs/policies.md.
    println!(
        "\n| board | mean regret | worst | beyond the better device alone, worst real graph | worst of the others |\n|---|---:|---:|---:|---:|"
    );
    println!("{}", rows.join("\n"));
    assert!(bad.is_empty(), "{bad:#?}");
}

/// How well a model decides about split levels and predicts them, as shares of the time.
#[derive(Debug, Default)]
struct Worth {
    /// Regret of the plans of `cost-model`, which learns nothing while it searches.
    regret: f64,
    /// |predicted - measured| of split levels.
    off: f64,
}

impl Board {
    fn worth(&self, model: &CostModel, tables: &[LevelTable]) -> Worth {
        let oracle: f64 = tables.iter().map(|table| table.oracle().1).sum();
        let (mut off, mut all) = (0.0, 0.0);
        for level in tables.iter().flat_map(|table| &table.levels) {
            for (kernel, share) in GpuKernel::ALL.into_iter().flat_map(|kernel| SHARES.map(|share| (kernel, share))) {
                let predicted = model.plan_ns(LevelPlan::split(kernel, share), &level.stats, probes(&level.stats)).unwrap();
                let measured = level.split_ns(kernel, share).unwrap();
                (off, all) = (off + (predicted - measured).abs(), all + measured);
            }
        }
        let policy = Policy::CostModel(Box::new(*model));
        Worth { regret: self.planned_ns(tables, &policy) / oracle - 1.0, off: off / all }
    }
}

#[test]
fn co_run_ratios_split_levels_better_than_the_times_of_each_side_alone() {
    let (training, graphs) = (training(TRAINING[0], 14), made());
    let mut sums = [Worth::default(), Worth::default()];
    for corun in [[1.2, 2.0], [2.0, 1.2], [1.5, 1.5]] {
        let board = Board { corun, ..BOARDS[2] };
        let training: Vec<LevelTable> = training.iter().map(|measured| board.table(measured)).collect();
        let tables: Vec<LevelTable> = graphs.iter().flat_map(|graph| &graph.levels).map(|measured| board.table(measured)).collect();
        let model = fit(&training).unwrap();
        let mut alone = model;
        for strategy in Strategy::ALL {
            let cost = alone.of_mut(strategy).as_mut().unwrap();
            let found = cost.corun.take().unwrap() / corun[usize::from(strategy.is_gpu())];
            assert!((0.9..1.1).contains(&found), "{corun:?}: {} of {}", found, strategy.name());
        }
        for ((name, model), sum) in [("co-run ratios", model), ("each side alone", alone)].into_iter().zip(&mut sums) {
            let Worth { regret, off } = board.worth(&model, &tables);
            println!("{corun:?} by {name}: regret {:.1} %, split levels off by {:.1} %", 100.0 * regret, 100.0 * off);
            *sum = Worth { regret: sum.regret + regret / 3.0, off: sum.off + off / 3.0 };
        }
    }
    let [co_run, alone] = sums;
    assert!(co_run.regret < 0.8 * alone.regret && co_run.off < alone.off, "{co_run:?} {alone:?}");
}
