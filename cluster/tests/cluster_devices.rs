//! Ranks that run their parts of levels on OpenCL devices, against a serial reference.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;

use socbfs::{
    GpuOptions, GpuSetup,
    bfs::{GpuKernel, Strategy},
    graph::{EdgeList, Listing, Order},
    memory::SharingMode,
    opencl::{Device, Limits},
};
use socbfs_cluster::{
    ClusterOptions, ClusterSearch, ClusterValidator, Part, Places, RankDevice, RankTree, Ranks, ThreadRanks, measured_bands,
};
use socbfs_io::generate::Generator;
use socbfs_policy::{Band, Bands, Policy};

use crate::{
    implementations::refusals,
    reference::Reference,
    searches::{all_combinations, devices, edges, is_rusticl, is_slow},
};

/// The device of a rank: its sharing mode, the options of its kernels, and the levels that it runs.
fn rank_device(device: &Arc<Device>, way: SharingMode, options: GpuOptions, places: Places) -> RankDevice {
    RankDevice { setup: GpuSetup { device: Arc::clone(device), way, options }, bottom_up: GpuKernel::Bgc, places, fall_back: false }
}

/// Policies with which the device runs every kernel, and changes between queue and bits in both directions.
fn policies() -> Vec<Policy> {
    let fixed = [Strategy::Tg, Strategy::Bg, Strategy::Bgc, Strategy::Tc].map(Policy::Fixed);
    // The second one changes direction back and forth.
    let changing = ["alpha-beta", "alpha-beta:1000,1"].map(|policy| policy.parse().unwrap());
    fixed.into_iter().chain(changing).collect()
}

/// The device runs every level, levels of some sizes, or bottom-up levels only.
fn places() -> Vec<Places> {
    let some = Bands { top_down: Band::gpu_from(10), bottom_up: Band { up_to: Some(200), ..Band::gpu_from(0) } };
    vec![Places::Every, Places::By(some), Places::By(Bands { top_down: Band::CPU, bottom_up: Band::gpu_from(0) })]
}

/// A graph with its name.
struct Graph {
    name: &'static str,
    vertices: usize,
    edges: Vec<[u32; 2]>,
    roots: Vec<u32>,
}

fn graph(name: &'static str, vertices: usize, edges: Vec<[u32; 2]>, roots: &[u32]) -> Graph {
    Graph { name, vertices, edges, roots: roots.to_vec() }
}

fn odd() -> Vec<Graph> {
    vec![
        graph("one vertex", 1, vec![[0, 0]], &[0]),
        graph("no edge", 5, Vec::new(), &[3]),
        graph("a pair", 3, vec![[2, 0]; 9], &[0, 1, 2]),
        graph("a star", 300, (1..300).map(|v| [0, v]).collect(), &[0, 7, 299]),
        graph("a path", 200, (1..200).map(|v| [v - 1, v]).collect(), &[0, 150, 199]),
        graph("two components", 9, vec![[0, 1], [1, 2], [2, 0], [0, 1], [4, 5], [5, 6], [6, 6], [6, 7]], &[0, 3, 4, 7, 8]),
        graph("a caterpillar", 40, (1..20).map(|v| [v - 1, v]).chain((0..20).map(|v| [v, 20 + v])).collect(), &[0, 10, 39]),
    ]
}

fn generated(slow: bool) -> Vec<Graph> {
    let kronecker = Generator::graph500(if slow { 8 } else { 11 }).generate(&|_| ()).unwrap();
    let mut pairs = Vec::new();
    kronecker.for_each(0..kronecker.len(), |u, v| pairs.push([u, v]));
    let roots = [pairs[0][0], pairs[77][1], 5];
    let n = if slow { 500 } else { 4000 };
    vec![
        graph("Kronecker", kronecker.vertices(), pairs, &roots),
        // Hubs with long lists, which are cut, and which all work-items of a work-group search together.
        graph("hubs", n, edges(n as u64, 3 * n, 5, 1), &[3, n as u32 - 1]),
    ]
}

/// Searches from each root and from sets of them over `size` ranks, of which those in `with` have the device, and compares levels, parents
/// and counts.
fn check(graph: &Graph, reference: &Reference, size: usize, order: Order, options: &ClusterOptions, with: fn(usize) -> bool, what: &str) {
    let list = EdgeList::new(graph.vertices, graph.edges.clone(), Listing::Unknown).unwrap();
    let what =
        format!("{what}, {}, {size} ranks, {order:?}, {:?}, {:?}", graph.name, options.policy, options.device.as_ref().map(|d| d.places));
    let mut sets: Vec<Vec<u32>> = graph.roots.iter().map(|&root| vec![root]).collect();
    sets.extend([[&graph.roots[..], &graph.roots[..1]].concat(), graph.roots[1..].to_vec()]);
    let of_ranks = ThreadRanks::run(size, |ranks| {
        let part = Part::build(&list, order, ranks).unwrap();
        let own = ClusterOptions { device: options.device.clone().filter(|_| with(ranks.rank())), ..options.clone() };
        let mut search = ClusterSearch::new(&part, ranks, &own).unwrap();
        assert!(search.device().is_none() || own.device.is_some());
        let validator = ClusterValidator::new(&part, ranks);
        let (mut all_levels, mut on_device) = (Vec::new(), 0);
        for sources in &sets {
            let outcome = search.run(sources).unwrap();
            let levels = search.records().iter().filter(|level| level.threads == 0).count();
            let is_connected = graph.edges.iter().any(|&[u, v]| u != v && (sources.contains(&u) || sources.contains(&v)));
            let runs_all = search.device().is_some() && own.device.as_ref().is_some_and(|device| device.places == Places::Every);
            assert!(levels > 0 || !is_connected || !runs_all, "{what}, {sources:?}: no level on the device of rank {}", ranks.rank());
            on_device += levels;
            // All vertices of a star but the middle are leaves: level 0 from them has nothing to run.
            if graph.name == "a star" && !sources.contains(&0) && !sources.is_empty() {
                assert_eq!((search.records()[0].threads, search.records()[0].found), (1, 1), "{what}, {sources:?}");
            }
            let tree = RankTree { sources: sources.clone(), parents: search.parents_by_row().to_vec() };
            let whole = validator.levels(&tree).unwrap();
            let found = validator.validate(&list, &[tree]).unwrap().remove(0);
            let found = found.unwrap_or_else(|fault| panic!("{what}, {sources:?}: {fault}"));
            assert_eq!((found.reached, found.levels, found.edges), (outcome.reached, outcome.levels, outcome.edges), "{what}, {sources:?}");
            all_levels.push(whole);
        }
        assert_eq!(search.fallen_back(), None, "{what}");
        (all_levels, on_device, search.device().is_some())
    });
    for (sources, levels) in sets.iter().zip(&of_ranks[0].0) {
        assert_eq!(*levels, reference.least(sources), "{what}, {sources:?}");
    }
    for (_, on_device, has_device) in &of_ranks {
        assert!(*has_device || *on_device == 0, "{what}: levels on no device");
    }
}

#[test]
fn ranks_search_on_their_devices() {
    const TEST: &str = "ranks_search_on_their_devices";
    for device in &devices(TEST, Limits::default()).all {
        let slow = is_slow(device);
        let graphs: Vec<_> = odd().into_iter().chain(generated(slow)).collect();
        let ways: Vec<_> = SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())).collect();
        let groups = [(None, 0), (Some(32), 3)];
        // Only one in `one_in` combinations is run: each builds kernels on every rank, and rusticl compiles them again each time. All of
        // the thousands would take hours. `one_in` is a prime, so every choice of one dimension meets every choice of another.
        let one_in = match (all_combinations(), slow || is_rusticl(device.info())) {
            (true, false) => 11,
            (true, true) | (false, false) => 67,
            (false, true) => 131,
        };
        let sizes: &[usize] = if slow { &[1, 2] } else { &[1, 2, 3, 4] };
        let policies = policies();
        for (a, graph) in graphs.iter().enumerate() {
            let reference = Reference::new(graph.vertices, &graph.edges, false, &graph.roots);
            for (b, &way) in ways.iter().enumerate() {
                for (c, &(group, parts)) in groups.iter().enumerate() {
                    for (d, &size) in sizes.iter().enumerate() {
                        for (e, policy) in policies.iter().enumerate() {
                            for (f, places) in places().into_iter().enumerate() {
                                if (a + 2 * b + 3 * c + 5 * d + 7 * e + 11 * f) % one_in != 0 {
                                    continue;
                                }
                                let gpu = GpuOptions { group, parts, cached_words: Some(3), ..GpuOptions::default() };
                                let options = ClusterOptions {
                                    policy: policy.clone(),
                                    threads: 1 + a % 2,
                                    device: Some(rank_device(device, way, gpu, places)),
                                    ..ClusterOptions::default()
                                };
                                let order = if (a + d) % 2 == 0 { Order::Degree } else { Order::Original };
                                // All ranks have a device, or all but the first, or every other one. Under Oclgrind, which exits
                                // if two threads launch, only the first has one.
                                let with: fn(usize) -> bool =
                                    [|_| true, |rank| rank > 0, |rank| rank % 2 == 0, |rank| rank == 0][if slow { 3 } else { (b + e) % 3 }];
                                check(graph, &reference, size, order, &options, with, &format!("{way} {group:?} {parts}"));
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The driver of a rank refuses to launch the work-groups that it says it can run.
#[test]
fn work_groups_of_a_rank_shrink_until_the_driver_can_launch_them() {
    const TEST: &str = "work_groups_of_a_rank_shrink_until_the_driver_can_launch_them";
    let refused = refusals(module_path!(), TEST, &[("SOCBFS_TEST_LARGEST_LAUNCH", "64")], || {
        let graph = graph("random", 300, edges(300, 900, 2, 0), &[1]);
        let reference = Reference::new(graph.vertices, &graph.edges, false, &graph.roots);
        let gpu = GpuOptions { group: Some(256), ..GpuOptions::default() };
        let device = rank_device(&devices(TEST, Limits::default()).all[0], SharingMode::AllocHostPtr, gpu, Places::Every);
        let options = ClusterOptions { device: Some(device), ..ClusterOptions::default() };
        check(&graph, &reference, 2, Order::Degree, &options, |rank| rank > 0, "small launches");
    });
    assert!(refused.is_none_or(|[first, second]| first > 0 && second == first), "{refused:?}");
}

/// A rank gets measured bounds for both directions, or none if it has no device or wants none; all ranks take part in the searches.
#[test]
fn bounds_are_measured_for_ranks_that_want_them() {
    const TEST: &str = "bounds_are_measured_for_ranks_that_want_them";
    for device in devices(TEST, Limits::default()).all.iter().filter(|device| !is_slow(device)) {
        let list = Generator::graph500(10).generate(&|_| ()).unwrap();
        let of_ranks = ThreadRanks::run(3, |ranks| {
            let part = Part::build(&list, Order::Auto, ranks).unwrap();
            let gpu = rank_device(device, SharingMode::AllocHostPtr, GpuOptions::default(), Places::Every);
            let options = ClusterOptions { device: Some(gpu).filter(|_| ranks.rank() != 1), ..ClusterOptions::default() };
            let unwanted = measured_bands(&part, ranks, &options, false).unwrap();
            assert_eq!(unwanted, None);
            measured_bands(&part, ranks, &options, ranks.rank() != 2).unwrap()
        });
        // The second rank has no device, and the third wants nothing measured.
        let [Some(bands), None, None] = &of_ranks[..] else { panic!("{of_ranks:?}") };
        assert!(bands.top_down.gpu_from.is_some() && bands.bottom_up.gpu_from.is_some(), "{bands:?}");
        assert!(bands.top_down.split_from == Some(socbfs_policy::NEVER), "{bands:?}");
    }
}
