//! Searches with every kernel and every way of working together, compared with the serial reference.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]
#![allow(dead_code, reason = "not every test needs everything")]

use std::{
    cell::Cell,
    process::Command,
    sync::{Arc, LazyLock, MutexGuard},
};

use socbfs::{
    GpuOptions, GpuSetup, SampledCosts,
    bfs::{GpuKernel, LevelPlan, LevelStats, Placement, Planner, Uses},
    graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    memory::SharingMode,
    opencl::{self, Device, DeviceInfo, Limits},
    search::{Search, SearchOptions},
};
use socbfs_policy::{Adaptive, Band, Bands, ChangeCost, CostModel, Known, LevelDevice, NEVER, Policy, Replay, StrategyCost};

use crate::{
    implementations::{is_named, skipped, turn},
    reference::Reference,
};

/// The devices, which only one test uses at a time.
pub struct Devices {
    pub all: Vec<Arc<Device>>,
    _turn: MutexGuard<'static, ()>,
}

/// The devices to test on: those with the word `SOCBFS_TEST_DEVICE` in the name of the device or platform, or all usable devices if it is
/// not set. Fails if a requested device does not exist, and prints SKIPPED if there is no device at all.
pub fn devices(test: &str, limits: Limits) -> Devices {
    let _turn = turn();
    let word = std::env::var("SOCBFS_TEST_DEVICE").unwrap_or_default().to_lowercase();
    let found = match opencl::devices() {
        Ok(found) => found,
        Err(error) => {
            assert!(word.is_empty(), "no OpenCL although {word} was asked for: {error}");
            skipped(test, &error.to_string());
            Vec::new()
        }
    };
    let mut usable: Vec<_> = found.iter().filter(|info| info.unusable.is_none() && is_named(info, &word)).collect();
    // Oclgrind interprets, and rusticl compiles for every search: a test takes one of them, and at the next commit the other.
    if usable.len() > 2 && !all_combinations() {
        let other = ["oclgrind", "rusticl"][(turn_of_commit() + test.len()) % 2];
        usable.retain(|info| !is_named(info, other));
    }
    let all: Vec<_> = usable.into_iter().map(|info| Device::open(info, limits).unwrap()).collect();
    assert!(word.is_empty() || !all.is_empty(), "no OpenCL device is called {word}: {found:?}");
    if all.is_empty() && !found.is_empty() {
        skipped(test, "no usable OpenCL device");
    }
    if emulated() && !all.is_empty() {
        skipped(test, "in part: smaller graphs and fewer combinations, for this processor is emulated");
    }
    Devices { all, _turn }
}

/// Whether the processor is emulated (`tests/arm/run`), which makes tests 10 to 50 times slower.
pub fn emulated() -> bool {
    std::env::var_os("SOCBFS_TEST_EMULATED").is_some()
}

/// Whether a device is slow. Oclgrind interprets kernels, thousands of times slower than a device; under an emulator all devices are slow.
pub fn is_slow(device: &Device) -> bool {
    emulated() || device.info().platform.to_lowercase().contains("oclgrind")
}

/// Whether a device is rusticl's, which compiles at the first launch of every kind, and is fast only afterwards.
pub fn is_rusticl(info: &DeviceInfo) -> bool {
    info.platform.to_lowercase().contains("rusticl")
}

/// Policies that change device and direction often, at amounts of work that occur in small graphs.
pub fn back_and_forth() -> Vec<Policy> {
    let adaptive = |top_down, bottom_up| Adaptive::of(Bands { top_down, bottom_up });
    let selective = |top_down, bottom_up| Policy::Adaptive(Box::new(adaptive(top_down, bottom_up).selective()));
    // With this cost, a level returns from the device only if that pays.
    let mut slow = adaptive(Band::gpu_from(40), Band::gpu_from(60));
    slow.model.to_cpu.fixed_ns = 20.0;
    vec![
        selective(Band::gpu_from(0), Band::CPU),
        selective(Band::CPU, Band::gpu_from(0)),
        selective(Band::gpu_from(10), Band::gpu_from(0)),
        Policy::Adaptive(Box::new(slow.selective())),
        "daga".parse().unwrap(),
        "daga:1000,1".parse().unwrap(),
        "remis-selective:10".parse().unwrap(),
        Policy::CostModel(Box::new(model())),
    ]
}

/// A cost model that places small levels on the CPU and larger ones on the device, in both directions.
fn model() -> CostModel {
    let top_down = |fixed_ns, frontier_edge_ns| Some(StrategyCost { fixed_ns, frontier_edge_ns, ..StrategyCost::default() });
    let bottom_up = |fixed_ns, probe_ns| Some(StrategyCost { fixed_ns, probe_ns, ..StrategyCost::default() });
    CostModel {
        tc: top_down(0.0, 9.0),
        tg: top_down(80.0, 3.0),
        bc: bottom_up(20.0, 4.0),
        bg: bottom_up(90.0, 1.0),
        ..CostModel::default()
    }
}

/// Policies that use CPU and devices at the same time.
pub fn together() -> Vec<Policy> {
    let split = |top_down_from_edges, bottom_up_from_vertices, gpu_permille| {
        let (top_down, bottom_up) =
            (Band::split_from(top_down_from_edges, gpu_permille), Band::split_from(bottom_up_from_vertices, gpu_permille));
        Policy::Adaptive(Box::new(Adaptive::of(Bands { top_down, bottom_up }).concurrent()))
    };
    let plans = |kernels: &[GpuKernel]| {
        Policy::Replay(Replay::new(&kernels.iter().map(|&kernel| LevelPlan::split(kernel, 400)).collect::<Vec<_>>()))
    };
    use GpuKernel::{Bg, Bgc, Tg, Tgm};
    vec![
        plans(&[Tgm]),
        plans(&[Tg, Tgm, Bgc, Tgm, Tg, Bgc, Bg, Tgm, Bgc]),
        split(0, 0, 500),
        split(0, NEVER, 900),
        split(30, 0, 100),
        "remis-concurrent:5,300".parse().unwrap(),
        "asynchronous:1,500".parse().unwrap(),
        "asynchronous:20,200".parse().unwrap(),
        "asynchronous:100,990".parse().unwrap(),
    ]
}

/// Policies that use the device alone: every kernel, and changes of direction on the device.
pub fn alone() -> Vec<(Policy, LevelDevice)> {
    let mut all: Vec<_> = [GpuKernel::Tg, GpuKernel::Tgm, GpuKernel::Bg, GpuKernel::Bgc]
        .into_iter()
        .map(|kernel| (Policy::Fixed(kernel.into()), LevelDevice::Cpu))
        .collect();
    for kernel in [GpuKernel::Bg, GpuKernel::Bgc] {
        all.push(("alpha-beta".parse().unwrap(), LevelDevice::Gpu(kernel)));
        all.push((Policy::Sampled(SampledCosts::default()), LevelDevice::Gpu(kernel)));
    }
    all.push(("alpha-beta:1000,1".parse().unwrap(), LevelDevice::Gpu(GpuKernel::Bg)));
    all
}

/// Policies that use the CPU, the device, and both in one search, in both directions.
pub fn adaptive() -> Vec<Policy> {
    let band = |gpu_from, split_from, up_to, gpu_permille| Band {
        gpu_from: Some(gpu_from),
        split_from: Some(split_from),
        up_to: Some(up_to),
        gpu_permille: Some(gpu_permille),
    };
    let bands = |top_down, bottom_up| Adaptive::of(Bands { top_down, bottom_up });
    let mut measured = bands(band(5, 60, 400, 300), band(20, 90, NEVER, 700));
    measured.model = model();
    // The model has costs of both kernels of a direction, and each is the cheaper one for some levels.
    let beside = Some(ChangeCost { fixed_ns: 5.0, ..ChangeCost::default() });
    let other = |cost: Option<StrategyCost>, edge_ns, probe_ns| {
        let other = |cost| StrategyCost { fixed_ns: 300.0, frontier_edge_ns: edge_ns, probe_ns, ..cost };
        cost.map(other)
    };
    let splits = CostModel {
        tgm: other(measured.model.tg, 1.0, 0.0),
        bgc: other(measured.model.bg, 0.0, 0.3),
        top_down_split: beside,
        bottom_up_split: beside,
        ..measured.model
    };
    [bands(band(5, 60, 400, 300), band(20, 90, NEVER, 700)), bands(band(0, 30, NEVER, 500), band(0, 200, 500, 100)), measured]
        .into_iter()
        .map(|adaptive| Policy::Adaptive(Box::new(adaptive)))
        .chain([Policy::CostModel(Box::new(splits))])
        .collect()
}

/// A planner outside the library: one level on the CPU, one on the device, one split, and so on, in either direction.
#[derive(Clone, Default)]
pub struct Places {
    levels: u32,
}

impl Planner for Places {
    fn begin(&mut self) {
        self.levels = 0;
    }

    fn uses(&self) -> Uses {
        Uses { alone: true, ..Uses::TOGETHER }
    }

    fn wants_sample(&self, stats: &LevelStats) -> bool {
        stats.level % 3 == 1
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        // Levels are planned one after the other, each with the sample that was asked for.
        assert!(stats.level >= self.levels && (stats.level % 3 == 1 || stats.sampled_probes.is_none()));
        self.levels = stats.level + 1;
        let kernel = if stats.frontier_edges > stats.unvisited_vertices { GpuKernel::Bg } else { GpuKernel::Tg };
        match stats.level % 3 {
            0 => LevelPlan { direction: kernel.direction(), placement: Placement::Cpu },
            1 => LevelPlan { direction: kernel.direction(), placement: Placement::Gpu(kernel) },
            _ => LevelPlan::split(kernel, 300),
        }
    }
}

/// All policies above, with the default policy between them, and all other named policies.
pub fn policies() -> Vec<(Policy, LevelDevice)> {
    let others = back_and_forth().into_iter().chain(together()).chain([Policy::default()]);
    let others = others.map(|policy| (policy, LevelDevice::Cpu));
    // Policies for both devices that name no kernel use the one given here.
    let adaptive = adaptive().into_iter().map(|policy| (policy, LevelDevice::Gpu(GpuKernel::Bgc)));
    let mut all: Vec<_> = alone().into_iter().chain(others).chain(adaptive).collect();
    // The first runs levels in all places.
    let rules = [
        "rule:unvisited_edges < 3 * frontier_edges then split 0.4 if level < 2, gpu else split 0.3 if level == 1, gpu if level > 1",
        "rule:sampled_hubs > 0.2 or sampled_probes < 3",
    ];
    all.push((Policy::planner(Places::default()), LevelDevice::Cpu));
    all.extend(rules.map(|rule| (rule.parse().unwrap(), LevelDevice::Gpu(GpuKernel::Bg))));
    for policy in socbfs_policy::known().filter_map(Known::policy) {
        // The strategies of the CPU have tests of their own.
        if !["tc", "bc"].contains(&policy.kind()) && all.iter().all(|(known, _)| policy.kind() != known.kind()) {
            all.push((policy, LevelDevice::Gpu(GpuKernel::Bgc)));
        }
    }
    all
}

/// The choices that are tried on each graph.
#[derive(Clone)]
pub struct Variety {
    /// Work-group sizes (`None`: the engine's default).
    pub groups: Vec<Option<usize>>,
    pub parts: Vec<usize>,
    pub ways: Vec<SharingMode>,
    pub orders: Vec<Order>,
    pub threads: Vec<usize>,
    /// Arcs up to which one group runs a level; with 0 many groups run every level.
    pub run_arcs: Vec<Option<u32>>,
    /// Words of the bitmap in local memory. They are fewer than a graph has, so that bits are read from both memories.
    pub cached_words: Option<usize>,
    /// Arcs of one launch; larger levels are several launches.
    pub launch_arcs: Option<u64>,
}

/// Whether a device has the work-group size that it should have.
fn group_is_as_wanted(device: &Device, wanted: Option<usize>, got: usize) -> bool {
    let most = device.max_work_group();
    // A kernel may allow smaller groups than its device.
    got > 0 && got % 32 == 0 && got <= wanted.unwrap_or(most).min(most)
}

/// Whether every combination is tried (`tests/run --all` sets `SOCBFS_TEST_ALL`).
pub fn all_combinations() -> bool {
    std::env::var_os("SOCBFS_TEST_ALL").is_some()
}

/// A number that is another one at the next commit, by which what is tried moves on: the number of commits, or `SOCBFS_TEST_TURN`.
pub fn turn_of_commit() -> usize {
    static TURN: LazyLock<usize> = LazyLock::new(|| {
        let count = || Command::new("git").args(["rev-list", "--count", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok();
        let given = std::env::var("SOCBFS_TEST_TURN").ok().or_else(|| String::from_utf8(count()?.stdout).ok());
        // A package without its history has no such number.
        let turn = given.and_then(|turn| turn.trim().parse().ok()).unwrap_or(0);
        eprintln!("combinations of turn {turn} (SOCBFS_TEST_TURN)");
        turn
    });
    *TURN
}

/// Whether the combination with these indices is tried, out of dimensions with `lengths` choices. The divisor is the second largest
/// length, so each choice of each dimension is tried: along another dimension of at least that length, the sum of the indices takes every
/// remainder.
pub fn is_tried(indices: &[usize], lengths: &[usize]) -> bool {
    let mut lengths = lengths.to_vec();
    lengths.sort_unstable();
    let second = lengths.iter().rev().nth(1).copied().unwrap_or(1).max(1);
    all_combinations() || (indices.iter().sum::<usize>() + turn_of_commit()) % second == 0
}

/// The same as [`is_tried`] with as few combinations as possible: the divisor is the largest one for which, with any choice fixed, the sum
/// of the other indices takes every remainder.
pub fn is_one_of_few(indices: &[usize], lengths: &[usize]) -> bool {
    let sums = |lengths: &mut dyn Iterator<Item = usize>| lengths.map(|length| length.saturating_sub(1)).sum::<usize>();
    let others = sums(&mut lengths.iter().copied()) - lengths.iter().max().map_or(0, |most| most.saturating_sub(1));
    all_combinations() || (indices.iter().sum::<usize>() + turn_of_commit()) % (others + 1) == 0
}

/// Whether a combination of two choices is tried: one in three. Each choice is tried if the other dimension has at least three.
pub fn is_one_in_three(first: usize, second: usize) -> bool {
    all_combinations() || (first + second + turn_of_commit()) % 3 == 0
}

/// Searches `edges` from `roots` with the choices of `variety`: some of the combinations (fewer with rusticl, which compiles for every
/// search), or all of them with `SOCBFS_TEST_ALL`.
pub fn check(device: &Arc<Device>, n: usize, edges: &[[u32; 2]], directed: bool, roots: &[u32], variety: &Variety) {
    let reference = Reference::new(n, edges, directed, roots);
    let list = EdgeList::new(n, edges.to_vec(), Listing::Unknown).unwrap();
    let ways: Vec<_> = variety.ways.iter().filter(|way| way.offered(device.info())).collect();
    let lengths =
        [variety.orders.len(), variety.groups.len(), variety.parts.len(), ways.len(), variety.run_arcs.len(), variety.threads.len()];
    for (a, &order) in variety.orders.iter().enumerate() {
        // The CPU's levels read blocks in every other order.
        let blocks = Some((a + turn_of_commit()) % 2 == 1);
        let layout = Layout::build(&list, &BuildOptions { directed, order, blocks, ..BuildOptions::default() }).unwrap();
        for (b, &group) in variety.groups.iter().enumerate() {
            for (c, &parts) in variety.parts.iter().enumerate() {
                for (d, &&way) in ways.iter().enumerate() {
                    for (e, &run_arcs) in variety.run_arcs.iter().enumerate() {
                        for (f, &threads) in variety.threads.iter().enumerate() {
                            let is_tried = if is_rusticl(device.info()) { is_one_of_few } else { is_tried };
                            if !is_tried(&[a, b, c, d, e, f], &lengths) {
                                continue;
                            }
                            let Variety { cached_words, launch_arcs, .. } = *variety;
                            let own = GpuOptions { cached_words, launch_arcs, ..GpuOptions::default() };
                            let options = GpuOptions { group, parts, run_arcs, ..own };
                            let devices = vec![GpuSetup { device: Arc::clone(device), way, options }];
                            let options = SearchOptions { threads, devices, every_planner: true, ..SearchOptions::default() };
                            compare_policies(&reference, &layout, options);
                        }
                    }
                }
            }
        }
    }
}

/// Whether other policies cover the same paths of an engine. Such policies are left out on slow devices.
fn is_covered_by_others(policy: &Policy) -> bool {
    matches!(
        policy.kind(),
        "gunrock" | "enterprise-released" | "xbfs" | "surf" | "mlp" | "yasui" | "daga" | "remis-selective" | "remis-concurrent"
    )
}

/// Whether only a part is tried by default: wherever a device takes part.
fn takes_long(devices: &[GpuSetup]) -> bool {
    !all_combinations() && !devices.is_empty()
}

thread_local! {
    /// Number of calls of [`policies_in_turn`] for devices that take long.
    static TURN: Cell<usize> = const { Cell::new(0) };
}

/// The policies to try on these devices next. If searches take long, these are the policies of the device alone, with every kernel, and a
/// third of the others, which run the same kernels in other orders; each call of a test takes another third.
pub fn policies_in_turn(devices: &[GpuSetup]) -> Vec<(Policy, LevelDevice)> {
    let slow = devices.iter().any(|setup| is_slow(&setup.device));
    let all = policies().into_iter().filter(|(policy, _)| !slow || !is_covered_by_others(policy));
    if !takes_long(devices) {
        return all.collect();
    }
    let (alone, turn) = (alone().len(), turn_of_commit() + TURN.replace(TURN.get() + 1));
    all.enumerate().filter(|(number, _)| *number < alone || number % 3 == turn % 3).map(|(_, policy)| policy).collect()
}

/// Searches over one engine with one policy after another ([`policies_in_turn`]). If searches take long, each policy searches from one
/// root only; with `SOCBFS_TEST_ALL` from all of them.
pub fn compare_policies(reference: &Reference, layout: &Layout, mut options: SearchOptions) {
    let mut search = Search::new(layout, &options).unwrap();
    // The device can't be checked on a graph without edges.
    if layout.csr().arcs() > 0 {
        for (setup, got) in options.devices.iter().zip(search.devices()) {
            let (wanted, name) = (setup.options, &setup.device.info().name);
            assert!(group_is_as_wanted(&setup.device, wanted.group, got.group), "{name}: groups of {} for {:?}", got.group, wanted.group);
            assert!(got.parts >= wanted.parts, "{name}: {} parts for {}", got.parts, wanted.parts);
        }
    }
    let in_turn = takes_long(&options.devices);
    for (number, (policy, runs)) in policies_in_turn(&options.devices).into_iter().enumerate() {
        search.set_planner(policy.clone().on(runs)).unwrap();
        options.planner = policy.on(runs);
        if in_turn {
            reference.compare_in_turn(number + turn_of_commit(), layout, &options, &mut search);
        } else {
            reference.compare_with(layout, &options, &mut search);
        }
    }
}

/// Pseudo-random edges: `kind` 0 is uniform, 1 skewed to low numbers; 2 is pieces (see [`pieces`]), however many edges they have.
pub fn edges(n: u64, count: usize, seed: u64, kind: u8) -> Vec<[u32; 2]> {
    let mut x = seed;
    let mut next = |bound: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % bound
    };
    if kind == 2 {
        return pieces(n as u32, next);
    }
    (0..count)
        .map(|_| {
            let bound = if kind == 1 { 1 + next(n) } else { n };
            let bound = if kind == 1 { 1 + next(bound) } else { bound };
            [next(bound) as u32, next(n) as u32]
        })
        .collect()
}

/// Rings, stars, paths, pairs, cliques and lone vertices of up to 14 vertices with mixed numbers, some of them joined to the one before by
/// an edge: what searches treat apart (leaves, pairs, vertices without an arc) beside components that are soon found whole.
fn pieces(n: u32, mut next: impl FnMut(u64) -> u64) -> Vec<[u32; 2]> {
    let mut numbers: Vec<u32> = (0..n).collect();
    for last in (1..n as usize).rev() {
        numbers.swap(last, next(last as u64 + 1) as usize);
    }
    let (mut edges, mut rest, mut before) = (Vec::new(), &numbers[..], None);
    while !rest.is_empty() {
        let (piece, others) = rest.split_at(rest.len().min(1 + next(14) as usize));
        let (center, shape) = (piece[0], next(5));
        match shape {
            0 => edges.extend(piece[1..].iter().map(|&v| [center, v])),
            1 => edges.extend(piece.windows(2).map(|pair| [pair[0], pair[1]]).chain([[piece[piece.len() - 1], center]])),
            2 => edges.extend(piece.windows(2).map(|pair| [pair[1], pair[0]])),
            3 => edges.extend(piece.chunks_exact(2).map(|pair| [pair[0], pair[1]])),
            _ => edges.extend(piece.iter().flat_map(|&u| piece.iter().map(move |&v| [u, v]))),
        }
        edges.extend(before.filter(|_| next(3) > 0).map(|before| [before, piece[next(piece.len() as u64) as usize]]));
        (before, rest) = (Some(center), others);
    }
    edges
}

/// Vertices of the graphs of [`large`].
pub const LARGE: u32 = 20_000;

/// Graphs, with their names, large enough for levels that several threads share. The last vertex of the path has no edge.
pub fn large() -> [(&'static str, Vec<[u32; 2]>); 3] {
    let random = |kind| edges(u64::from(LARGE), 120_000, 5, kind);
    // On a path the threads synchronise at each level.
    [("uniform", random(0)), ("skewed", random(1)), ("path", (1..4000).map(|v| [v - 1, v]).collect())]
}

/// Edges of two vertices with more arcs than a group of 32 expands by itself, and with many common neighbours.
pub fn two_hubs(n: u32) -> Vec<[u32; 2]> {
    (2..n).flat_map(|v| [(v % 3 != 0).then_some([0, v]), (v % 3 != 1).then_some([1, v])]).flatten().collect()
}

/// The choices that are tried on a device by default.
pub fn everything(device: &Device) -> Variety {
    let (slow, rusticl) = (is_slow(device), is_rusticl(device.info()));
    Variety {
        groups: if slow { vec![Some(32)] } else { vec![Some(32), Some(256)] },
        parts: vec![0],
        ways: if slow || rusticl {
            vec![SharingMode::AllocHostPtr]
        } else {
            vec![SharingMode::AllocHostPtr, SharingMode::UseHostPtr, SharingMode::Copy]
        },
        // The last two differ for kernels in their columns alone; `sources` searches devices by `bfs`.
        orders: if all_combinations() { vec![Order::Original, Order::Degree, Order::Bfs] } else { vec![Order::Original, Order::Degree] },
        threads: if slow { vec![2] } else { vec![1, 2] },
        run_arcs: if slow { vec![Some(8)] } else { vec![Some(0), Some(8), None] },
        cached_words: Some(5),
        launch_arcs: None,
    }
}

#[test]
fn every_choice_is_tried() {
    let lengths = [[2, 3, 1, 3, 3, 2], [1, 1, 1, 1, 1, 2], [1, 1, 1, 1, 1, 1], [2, 1, 1, 1, 3, 1], [2, 1, 1, 1, 3, 2]];
    for (lengths, is_tried) in lengths.into_iter().flat_map(|lengths| [(lengths, is_tried as fn(&_, &_) -> _), (lengths, is_one_of_few)]) {
        let mut tried = vec![Vec::new(); lengths.len()];
        let all: usize = lengths.iter().product();
        for number in 0..all {
            let (mut rest, mut indices) = (number, Vec::new());
            for length in lengths {
                indices.push(rest % length);
                rest /= length;
            }
            if is_tried(&indices, &lengths) {
                indices.iter().enumerate().for_each(|(dimension, &index)| tried[dimension].push(index));
            }
        }
        for (dimension, length) in lengths.into_iter().enumerate() {
            assert!((0..length).all(|index| tried[dimension].contains(&index)), "{lengths:?}: {tried:?}");
        }
    }
}
