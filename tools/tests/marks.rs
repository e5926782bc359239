//! The counts that a policy gets from a search: they are exact unless marked as estimates, and marked only if they may be wrong.

use std::collections::BTreeMap;

use socbfs::{
    GpuOptions, GpuSetup, ParallelThresholds,
    bfs::{GpuKernel, LevelRecord, Placement},
    graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    memory::SharingMode,
    opencl::Limits,
    search::{Search, SearchOptions},
};
use socbfs_io::generate::Generator;
use socbfs_policy::{LevelDevice, Policy};
use socbfs_tools::{
    analysis::{Levels, count},
    record::ExactLevel,
};

use crate::searches::{devices, is_one_in_three, is_rusticl, is_slow};

/// The counts of a level: name, recorded value, whether it is marked as an estimate, and exact value.
fn counts(record: &LevelRecord, exact: &ExactLevel) -> [(&'static str, u64, bool, u64); 4] {
    let stats = &record.stats;
    [
        ("frontier vertices", stats.frontier_vertices, false, exact.vertices),
        ("frontier edges", stats.frontier_edges, stats.frontier_is_estimated, exact.arcs),
        ("unvisited vertices", stats.unvisited_vertices, false, exact.unvisited_vertices),
        ("unvisited edges", stats.unvisited_edges, stats.unvisited_is_estimated, exact.unvisited_arcs),
    ]
}

/// How often a count was marked, and how often it was then wrong, by count and by the level before (direction and device).
type Marked = BTreeMap<(&'static str, String), (u32, u32)>;

fn search(layout: &Layout, name: &str, options: &SearchOptions, roots: &[u32], marked: &mut Marked) {
    let mut search = Search::new(layout, options).unwrap();
    // From each root, and from all of them at once.
    for sources in roots.chunks(1).chain([roots]) {
        search.run(sources).unwrap();
        let exact = count(layout, &Levels::of_last(&search, sources));
        let mut before = "nothing".to_owned();
        for record in search.records() {
            let Some(exact) = exact.get(record.stats.level as usize) else { continue };
            for (what, value, is_estimate, truth) in counts(record, exact) {
                let level = record.stats.level;
                assert!(
                    is_estimate || value == truth,
                    "{name}, from {sources:?}, level {level} after {before}: {what} {value}, not {truth}"
                );
                if is_estimate {
                    let (all, wrong) = marked.entry((what, before.clone())).or_default();
                    (*all, *wrong) = (*all + 1, *wrong + u32::from(value != truth));
                }
            }
            let device = match record.plan.placement {
                Placement::Cpu => "CPU",
                Placement::Gpu(_) => "GPU",
                _ => "both",
            };
            before = format!("{:?} {device}", record.plan.direction);
        }
    }
}

fn layouts() -> Vec<(String, Layout)> {
    let graphs = [
        Generator::graph500(12),
        Generator::Uniform { vertices: 2048, edges: 16_384, seed: 3 },
        Generator::Grid { width: 60, height: 40, deletion: 0.05, seed: 1 },
    ];
    let orders = [Order::Original, Order::Degree, Order::Bfs];
    let of = |graph: &Generator, order| {
        let edges = graph.generate(&|_| ()).unwrap();
        (format!("{graph:?} {order:?}"), Layout::build(&edges, &BuildOptions { order, ..BuildOptions::default() }).unwrap())
    };
    graphs.iter().flat_map(|graph| orders.map(|order| of(graph, order))).collect()
}

#[test]
fn counts_are_exact_or_marked_as_estimates() {
    let mut marked = Marked::new();
    for (name, layout) in layouts() {
        for threads in [1, 2] {
            for policy in ["tc", "bc", "alpha-beta", "sampled", "auto"] {
                // Several threads share every level.
                let parallel = Some(ParallelThresholds { arcs: 1, hub_arcs: 1, row_arcs: 1, ..ParallelThresholds::default() });
                let planner = policy.parse::<Policy>().unwrap().into();
                let options = SearchOptions { planner, threads, parallel, ..SearchOptions::default() };
                search(&layout, &format!("{name}, {policy}, {threads} threads"), &options, &[1, 77, 300], &mut marked);
            }
        }
    }
    println!("{marked:#?}");
    // More than half of the marked counts are wrong, so they were indeed estimated.
    for (what, before) in [("frontier edges", "BottomUp CPU"), ("frontier edges", "TopDown CPU"), ("unvisited edges", "BottomUp CPU")] {
        let (all, wrong) = marked[&(what, before.to_owned())];
        assert!(2 * wrong > all && all > 0, "{what} after {before}: {wrong} of {all} marked are wrong");
    }
    assert!(marked.keys().all(|(_, before)| before != "nothing"), "the root is known");
}

/// If all vertices have the same degree, mean degrees are exact.
#[test]
fn exact_counts_are_not_marked_as_estimates() {
    let mut marked = Marked::new();
    let circle: Vec<[u32; 2]> = (0..5000).flat_map(|v| [[v, (v + 1) % 5000], [v, (v + 70) % 5000]]).collect();
    let list = EdgeList::new(5000, circle, Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions { order: Order::Degree, ..BuildOptions::default() }).unwrap();
    let options = SearchOptions { planner: "bc".parse::<Policy>().unwrap().into(), threads: 2, ..SearchOptions::default() };
    search(&layout, "a circle with chords", &options, &[0, 4000], &mut marked);
    assert!(marked.is_empty(), "{marked:?}");
}

/// A web's pages: one in 80 vertices of a level has more than half of its arcs.
#[test]
fn arcs_of_a_few_heavy_vertices_are_estimated() {
    const WIDE: u32 = 1 << 14;
    let wide = (1..=WIDE).flat_map(|v| [[0, v], [v, v % WIDE + 1]]);
    let heavy = (1..=WIDE).step_by(80).flat_map(|v| (0..300).map(move |i| [v, WIDE + 1 + (v * 7 + i * 53) % WIDE]));
    let list = EdgeList::new(2 * WIDE as usize + 1, wide.chain(heavy).collect(), Listing::Once).unwrap();
    for order in [Order::Original, Order::Degree, Order::Bfs] {
        let layout = Layout::build(&list, &BuildOptions { order, ..BuildOptions::default() }).unwrap();
        let options = SearchOptions { planner: "tc".parse::<Policy>().unwrap().into(), threads: 1, ..SearchOptions::default() };
        let mut search = Search::new(&layout, &options).unwrap();
        search.run(0).unwrap();
        let truth = count(&layout, &Levels::of_last(&search, &[0]))[1].arcs as f64;
        let [_, record, ..] = search.records() else { panic!("{order:?}: one level") };
        let off = record.stats.frontier_edges as f64 / truth - 1.0;
        assert!(record.stats.frontier_is_estimated && off.abs() < 0.15, "{order:?}: off by {off:.2} of {truth}");
    }
}

#[test]
fn counts_of_devices_are_exact_or_marked_as_estimates() {
    let devices = devices("counts_of_devices_are_exact_or_marked_as_estimates", Limits::default());
    let mut marked = Marked::new();
    for device in devices.all.iter().filter(|device| !is_slow(device)) {
        let setup = GpuSetup { device: device.clone(), way: SharingMode::AllocHostPtr, options: GpuOptions::default() };
        for (a, (name, layout)) in layouts().into_iter().enumerate() {
            for (b, (policy, runs)) in [
                ("tg", LevelDevice::Cpu),
                ("tgm", LevelDevice::Cpu),
                ("bg", LevelDevice::Cpu),
                ("alpha-beta", LevelDevice::Gpu(GpuKernel::Bg)),
                ("selective:50,20", LevelDevice::Cpu),
                ("concurrent:0,0,500", LevelDevice::Cpu),
                ("asynchronous", LevelDevice::Cpu),
            ]
            .into_iter()
            .enumerate()
            {
                // rusticl compiles for every search.
                if is_rusticl(device.info()) && !is_one_in_three(a, b) {
                    continue;
                }
                let policy: Policy = policy.parse().unwrap();
                let alone = matches!(policy, Policy::Fixed(_));
                let name = format!("{name}, {policy} on {}", device.info().name);
                let options =
                    SearchOptions { planner: policy.on(runs), threads: 2, devices: vec![setup.clone()], ..SearchOptions::default() };
                let mut of_policy = Marked::new();
                search(&layout, &name, &options, &[1, 77], &mut of_policy);
                assert!(!alone || of_policy.is_empty(), "{name}: a device counts exactly, but these are marked: {of_policy:?}");
                marked.append(&mut of_policy);
            }
        }
    }
    println!("{marked:#?}");
}
