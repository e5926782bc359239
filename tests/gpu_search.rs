//! Every kernel and every way of working together, on every available OpenCL device, against a serial reference.
//!
//! `SOCBFS_TEST_DEVICE` restricts the devices to those with that word in the name of the device or platform.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{sync::Arc, time::Instant};

use proptest::prelude::*;
use socbfs::{
    GpuOptions, GpuSetup, GraphMemory,
    bfs::{Direction, GpuKernel, Placement, Planner as _, Strategy},
    graph::{BuildOptions, EdgeList, Layout, Listing, NONE, Order},
    memory::SharingMode,
    opencl::{Device, Limits},
    search::{End, Run, Search, SearchError, SearchOptions},
};
use socbfs_policy::{LevelDevice, Policy, PolicyPlanner, Replay};

use crate::{
    reference::Reference,
    searches::{Variety, all_combinations, check, compare_policies, devices, edges, everything, is_rusticl, is_slow, together, two_hubs},
};

#[test]
fn odd_graphs() {
    for device in &devices("odd_graphs", Limits::default()).all {
        let all = everything(device);
        let variety = Variety { groups: vec![Some(32)], ways: vec![SharingMode::AllocHostPtr], threads: vec![2], ..all };
        let check = |n, edges: &[[u32; 2]], directed, roots: &[u32]| check(device, n, edges, directed, roots, &variety);
        check(1, &[], false, &[0]);
        check(1, &[[0, 0]], false, &[0]);
        check(3, &[], false, &[0, 2]);
        check(2, &[[0, 1]], false, &[0, 1]);
        check(5, &[[0, 1], [0, 1], [1, 0], [2, 2], [3, 4]], false, &[0, 2, 4]);
        check(5, &[[0, 1], [1, 2], [3, 2], [4, 0]], true, &[0, 2, 3]);
        let star: Vec<_> = (1..300).map(|v| [0, v]).collect();
        check(300, &star, false, &[0, 7]);
        let path: Vec<_> = (1..70).map(|v| [v - 1, v]).collect();
        check(70, &path, false, &[0, 35]);
        let grid: Vec<_> =
            (0..144u32).flat_map(|v| [(v % 12 < 11).then_some([v, v + 1]), (v < 132).then_some([v, v + 12])]).flatten().collect();
        check(144, &grid, false, &[0, 77]);
    }
}

#[test]
fn larger_graphs_are_searched_with_every_group_and_sharing_mode() {
    for device in &devices("larger_graphs_are_searched_with_every_group_and_sharing_mode", Limits::default()).all {
        let all = everything(device);
        // With more than 1024 vertices, hubs are counted separately, and more than one group has work.
        let (n, m) = if is_slow(device) { (1100, 2500) } else { (2500, 15_000) };
        for (kind, directed) in [(0, false), (1, false), (1, true)] {
            let edges = edges(n as u64, m, 3 + u64::from(kind), kind);
            let check = |variety: &Variety| check(device, n, &edges, directed, &[0, 5, n as u32 - 1], variety);
            if all.ways.len() == 1 {
                check(&all);
                continue;
            }
            // Sharing modes and the number of levels in a launch do not depend on the order of the vertices.
            check(&Variety { orders: vec![Order::Original], run_arcs: all.run_arcs[..1].to_vec(), ..all.clone() });
            check(&Variety { orders: vec![Order::Degree], ways: all.ways[..1].to_vec(), ..all.clone() });
        }
    }
}

/// A rule that says the same as a policy runs the same levels in the same places, on the CPU, on a device, and on both.
#[test]
fn rules_equal_the_policies_that_they_spell_out() {
    let beamer = "not was_bottom_up and frontier_edges > unvisited_edges / 15 or was_bottom_up and \
                  not (frontier_vertices < previous_frontier_vertices and frontier_vertices < vertices / 18)";
    let large = "been_bottom_up or frontier_vertices >= 40";
    let pairs = [
        ("alpha-beta".to_owned(), beamer.to_owned()),
        ("xbfs".to_owned(), "frontier_edges / arcs >= 0.1".to_owned()),
        ("enterprise".to_owned(), "sampled_hubs > 0.3".to_owned()),
        ("daga:15,18".to_owned(), format!("{beamer} then gpu")),
        ("remis-selective:40".to_owned(), format!("{large} then gpu if frontier_vertices >= 40 else gpu if frontier_vertices >= 40")),
        ("remis-concurrent:40,300".to_owned(), format!("{large} then split 0.3 if frontier_vertices >= 40")),
    ];
    // With bounds at 0, `selective` compares the costs of `sampled`, on the device alone. It leaves out samples that hardly pay.
    let selective = "rule:1 * (vertices / 64) + (0.5 + 0.7 * sampled_probes) * unvisited_vertices < frontier_edges then gpu else gpu";
    let mut sampled = 0;
    let levels = |search: &mut Search<'_>, policy: &str, runs, root| {
        search.set_planner(policy.parse::<Policy>().unwrap().on(runs)).unwrap();
        search.run(root).unwrap();
        search.records().iter().map(|level| (level.plan, level.found, level.stats.frontier_vertices)).collect::<Vec<_>>()
    };
    let held = devices("rules_equal_the_policies_that_they_spell_out", Limits::default());
    // The CPU alone, then each device.
    for device in std::iter::once(None).chain(held.all.iter().map(Some)) {
        let graphs = if device.is_some_and(|device| is_slow(device) || is_rusticl(device.info())) { 2 } else { 16 };
        let mut bottom_up = 0;
        for graph in 0..graphs {
            let n = 60 + 90 * graph;
            let edges = edges(n, 5 * n as usize, graph + 3, (graph % 2) as u8);
            let layout = Layout::build(&EdgeList::new(n as usize, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
            let set_up =
                |device: &Arc<Device>| GpuSetup { device: Arc::clone(device), way: SharingMode::Copy, options: GpuOptions::default() };
            let options = SearchOptions {
                threads: 1,
                devices: device.map(set_up).into_iter().collect(),
                every_planner: device.is_some(),
                ..SearchOptions::default()
            };
            let mut search = Search::new(&layout, &options).unwrap();
            search.set_single_levels(true);
            search.set_looks_ahead(false);
            for (policy, rule) in &pairs {
                if device.is_none() && policy.parse::<Policy>().unwrap().needs_device() {
                    continue;
                }
                let runs = if device.is_some() { LevelDevice::Gpu(GpuKernel::Bg) } else { LevelDevice::Cpu };
                for root in [0, n as u32 / 2] {
                    let wanted = levels(&mut search, policy, runs, root);
                    bottom_up += wanted.iter().filter(|level| level.0.direction == Direction::BottomUp).count();
                    assert_eq!(levels(&mut search, &format!("rule:{rule}"), runs, root), wanted, "{policy} {rule} from {root} of {n}");
                }
            }
            if device.is_some() {
                levels(&mut search, selective, LevelDevice::Cpu, 0);
                let mut planner = PolicyPlanner::new("selective:0,0".parse().unwrap(), LevelDevice::Cpu);
                planner.begin();
                for record in search.records().iter().filter(|record| record.stats.sampled_probes.is_some()) {
                    assert_eq!(planner.plan(&record.stats), record.plan, "{record:?}");
                    sampled += 1;
                }
            }
        }
        assert!(bottom_up > 0);
    }
    assert!(held.all.is_empty() || sampled > 0);
}

#[test]
fn neighbour_lists_can_be_split_into_parts() {
    for device in &devices("neighbour_lists_can_be_split_into_parts", Limits::default()).all {
        // Programs are built for up to four parts and for up to sixteen.
        let variety = Variety {
            groups: vec![Some(32)],
            parts: vec![2, 7],
            ways: vec![SharingMode::UseHostPtr],
            orders: vec![Order::Degree],
            threads: vec![2],
            run_arcs: vec![Some(8)],
            ..everything(device)
        };
        check(device, 1200, &edges(1200, 3000, 11, 1), false, &[1, 600], &variety);
        // All sixteen parts.
        let variety = Variety { parts: vec![16], orders: vec![Order::Original], ..variety };
        check(device, 1200, &edges(1200, 3000, 11, 0), false, &[1, 600], &variety);
    }
}

/// A level that would take a device too long for one launch is several, each with a share of the work, in every direction.
#[test]
fn levels_can_be_several_launches() {
    for device in &devices("levels_can_be_several_launches", Limits::default()).all {
        let variety = Variety {
            groups: vec![Some(32)],
            ways: vec![SharingMode::AllocHostPtr],
            threads: vec![2],
            run_arcs: vec![Some(8)],
            orders: vec![Order::Degree],
            launch_arcs: Some(700),
            ..everything(device)
        };
        check(device, 1200, &edges(1200, 3000, 11, 1), false, &[1, 600], &variety);
        // Lists that are cut, and more launches than pieces of work.
        check(device, 1100, &two_hubs(1100), false, &[0, 7], &Variety { launch_arcs: Some(20), ..variety });
    }
}

/// One work-group runs small levels one after another, but not more arcs in one launch than 64 times those of the largest such level.
#[test]
fn a_run_of_small_levels_ends_in_time() {
    for device in &devices("a_run_of_small_levels_ends_in_time", Limits::default()).all {
        let (width, length) = (8, 400);
        let at = |x: u32, y: u32| y * width + x;
        let across = (0..length).flat_map(|y| (1..width).map(move |x| [at(x - 1, y), at(x, y)]));
        let along = (1..length).flat_map(|y| (0..width).map(move |x| [at(x, y - 1), at(x, y)]));
        let list = EdgeList::new((width * length) as usize, across.chain(along).collect(), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let options = GpuOptions { run_arcs: Some(64), ..GpuOptions::default() };
        let setup = GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options };
        let options = SearchOptions { planner: "tg".parse::<Policy>().unwrap().into(), devices: vec![setup], ..SearchOptions::default() };
        let mut search = Search::new(&layout, &options).unwrap();
        assert_eq!(search.run(0).unwrap().levels, width + length - 1);
        // A frontier has up to 8 vertices, and 32 arcs.
        let most = search.records().iter().map(|record| record.levels).max().unwrap();
        assert!((128..200).contains(&most), "{most} levels in one launch on {}", device.info().name);
    }
}

#[test]
fn a_heavy_vertex_is_shared_by_all_groups() {
    for device in &devices("a_heavy_vertex_is_shared_by_all_groups", Limits::default()).all {
        let n = if is_slow(device) { 1100 } else { 3200 };
        let variety = Variety { groups: vec![Some(32)], ways: vec![SharingMode::AllocHostPtr], threads: vec![1], ..everything(device) };
        check(device, n as usize, &two_hubs(n), false, &[0, 5, 6, 7], &variety);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs(n in 1usize..400, density in 0usize..6, seed: u64, kind in 0u8..3, directed: bool) {
        for device in devices("random_graphs", Limits::default()).all.iter() {
            let variety = Variety {
                groups: vec![Some(32)],
                ways: vec![SharingMode::AllocHostPtr],
                orders: vec![Order::Auto],
                threads: vec![2],
                run_arcs: match is_slow(device) {
                    true => vec![Some(8)],
                    // For rusticl, which compiles for every search, one choice per case.
                    false if is_rusticl(device.info()) && !all_combinations() => vec![[Some(0), None][n % 2]],
                    false => vec![Some(0), None],
                },
                ..everything(device)
            };
            let roots = [0, (n / 2) as u32, n as u32 - 1];
            // Few edges for a slow device.
            let density = if is_slow(device) { density.min(2) } else { density };
            check(device, n, &edges(n as u64, n * density, seed, kind), directed, &roots, &variety);
        }
    }
}

/// At every bottom-up level the long list of a hub in another component is searched, and never yields a parent.
#[test]
fn an_unreachable_hub_yields_no_parent() {
    for device in &devices("an_unreachable_hub_yields_no_parent", Limits::default()).all {
        let leaves = if is_slow(device) { 300 } else { 5000 };
        let mut edges: Vec<_> = (1..12).map(|v| [v - 1, v]).collect();
        edges.extend((13..13 + leaves).map(|v| [12, v]));
        let variety = Variety {
            orders: vec![Order::Degree],
            ways: vec![SharingMode::AllocHostPtr],
            threads: vec![2],
            run_arcs: vec![Some(0)],
            ..everything(device)
        };
        check(device, 13 + leaves as usize, &edges, false, &[0, 12], &variety);
    }
}

/// A device with memory of its own gets a copy of the graph.
#[test]
fn a_graph_can_be_copied_to_the_memory_of_a_device() {
    for device in &devices("a_graph_can_be_copied_to_the_memory_of_a_device", Limits::default()).all {
        let edges = edges(900, 3000, 8, 1);
        let list = EdgeList::new(900, edges.clone(), Listing::Unknown).unwrap();
        let layout = Layout::build(&list, &BuildOptions { directed: true, order: Order::Degree, ..BuildOptions::default() }).unwrap();
        let on = |graph, parts| {
            let options = GpuOptions { group: group(device), graph: Some(graph), parts, ..GpuOptions::default() };
            let devices = vec![GpuSetup { device: Arc::clone(device), way: SharingMode::Copy, options }];
            SearchOptions { threads: 2, devices, every_planner: true, ..SearchOptions::default() }
        };
        for (graph, in_place) in [(GraphMemory::Device, false), (GraphMemory::InPlace, true)] {
            assert_eq!(Search::new(&layout, &on(graph, 0)).unwrap().devices()[0].zero_copy, in_place);
        }
        compare_policies(&Reference::new(900, &edges, true, &[0, 450]), &layout, on(GraphMemory::Device, 3));
    }
}

#[test]
fn two_devices_search_beside_the_cpu() {
    let devices = devices("two_devices_search_beside_the_cpu", Limits::default());
    let Some(first) = devices.all.first() else { return };
    // A single device is used twice, with work-groups of two sizes.
    let second = devices.all.get(1).unwrap_or(first);
    let is_fast = [first, second].iter().all(|device| !is_slow(device));
    let (n, m) = if is_fast || all_combinations() { (2000, 9000) } else { (1100, 3000) };
    let setups: Vec<_> = [(first, Some(64)), (second, Some(32))]
        .map(|(device, group)| GpuSetup {
            device: Arc::clone(device),
            way: SharingMode::AllocHostPtr,
            options: GpuOptions { group, ..GpuOptions::default() },
        })
        .into();
    let edges = edges(n as u64, m, 5, 1);
    let list = EdgeList::new(n, edges.clone(), Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    let reference = Reference::new(n, &edges, false, &[0, 3, n as u32 - 1]);
    // Each search is set up for one policy alone.
    for policy in together().into_iter().step_by(if is_fast || all_combinations() { 1 } else { 3 }) {
        reference
            .compare(&layout, &SearchOptions { planner: policy.into(), threads: 2, devices: setups.clone(), ..SearchOptions::default() });
    }
    compare_policies(&reference, &layout, SearchOptions { threads: 2, devices: setups, every_planner: true, ..SearchOptions::default() });
}

/// A policy that splits no level searches on the first of two devices, which share no memory with each other.
#[test]
fn the_first_of_two_devices_searches_alone_if_no_level_is_split() {
    let devices = devices("the_first_of_two_devices_searches_alone_if_no_level_is_split", Limits::default());
    let Some(first) = devices.all.first() else { return };
    let second = Device::open(devices.all.last().unwrap_or(first).info(), Limits::default()).unwrap();
    let edges = edges(1100, 3000, 5, 1);
    let layout = Layout::build(&EdgeList::new(1100, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    let reference = Reference::new(1100, &edges, false, &[3]);
    for policy in ["tg", "sampled", "selective:100,0"] {
        let setup = |device: &Arc<Device>| GpuSetup {
            device: Arc::clone(device),
            way: SharingMode::AllocHostPtr,
            options: GpuOptions { group: group(device), ..GpuOptions::default() },
        };
        let options = SearchOptions {
            planner: policy.parse::<Policy>().unwrap().on(LevelDevice::Gpu(GpuKernel::Bg)),
            threads: 2,
            devices: vec![setup(first), setup(&second)],
            ..SearchOptions::default()
        };
        let mut search = Search::new(&layout, &options).unwrap();
        reference.compare_with(&layout, &options, &mut search);
        let used: Vec<_> = search.devices().iter().map(|used| &used.name).collect();
        assert_eq!(used, [&first.info().name], "{policy}");
        assert!(search.records().iter().any(|record| matches!(record.plan.placement, Placement::Gpu(_))), "{policy}");
    }
}

/// The default work-group size; for a slow device, the smallest.
fn group(device: &Device) -> Option<usize> {
    (is_slow(device) && !all_combinations()).then_some(32)
}

/// A search that is stopped between two levels leaves masks, a frontier and the whole state on the device; the next search must still be
/// right.
#[test]
fn a_device_search_can_be_stopped_and_the_next_one_is_right() {
    for device in &devices("a_device_search_can_be_stopped_and_the_next_one_is_right", Limits::default()).all {
        // Each level of a path is a launch.
        let n: u32 = match is_slow(device) {
            true => 60,
            false if is_rusticl(device.info()) => 300,
            false => 1000,
        };
        let fewest = if all_combinations() { 5 } else { 3 };
        let path: Vec<_> = (1..n).map(|v| [v - 1, v]).collect();
        let list = EdgeList::new(n as usize, path.clone(), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        // The next search begins at the other end, so it has to pass the vertices that the stopped search visited.
        let reference = Reference::new(n as usize, &path, false, &[n - 1]);
        let options = GpuOptions { group: group(device), ..GpuOptions::default() };
        let setup = GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options };
        for policy in ["tgm", "tg", "bg", "sampled", "concurrent", "selective"] {
            let policy: Policy = policy.parse().unwrap();
            let options = SearchOptions { planner: policy.into(), threads: 2, devices: vec![setup.clone()], ..SearchOptions::default() };
            let mut search = Search::new(&layout, &options).unwrap();
            let whole = search.run(0).unwrap();
            let (mut stops, mut delay) = (0, whole.elapsed / 2);
            // On a busy machine a search may take much less or more time than the one before. So the delay adapts, until a search has been
            // stopped in its midst.
            for attempt in 1..=50 {
                search.set_deadline(Some(Instant::now() + delay));
                match search.run(0) {
                    Err(SearchError::Stopped(0)) if search.records().is_empty() => delay = delay * 3 / 2,
                    Err(SearchError::Stopped(0)) => (stops, delay) = (stops + 1, delay * 2 / 3),
                    other => {
                        assert_eq!(other.unwrap().reached, whole.reached);
                        delay = delay * 2 / 3;
                    }
                }
                search.set_deadline(None);
                reference.compare_with(&layout, &options, &mut search);
                if attempt >= fewest && (stops > 0 || options.planner.to_string() != "tgm") {
                    break;
                }
            }
            assert!(stops > 0 || options.planner.to_string() != "tgm", "no search was stopped in its midst");
        }
    }
}

#[test]
fn a_device_search_can_end_early_and_the_next_one_is_right() {
    for device in &devices("a_device_search_can_end_early_and_the_next_one_is_right", Limits::default()).all {
        let n: u32 = if is_slow(device) { 120 } else { 1500 };
        let arcs = edges(n.into(), 3 * n as usize, 5, 0);
        let layout = Layout::build(&EdgeList::new(n as usize, arcs.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(n as usize, &arcs, false, &[0]);
        let level = reference.levels(0);
        let far = (0..n).filter(|&v| level[v as usize] != NONE).max_by_key(|&v| level[v as usize]).unwrap();
        let near = (0..n).find(|&v| level[v as usize] == 2).unwrap();
        let options = GpuOptions { group: group(device), ..GpuOptions::default() };
        let setup = GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options };
        for policy in ["tgm", "tg", "bg", "selective", "concurrent", "asynchronous"] {
            let policy: Policy = policy.parse().unwrap();
            let options = SearchOptions { planner: policy.into(), threads: 2, devices: vec![setup.clone()], ..SearchOptions::default() };
            let mut search = Search::new(&layout, &options).unwrap();
            for (depth, target, cut) in
                [(Some(1), None, 1), (None, Some(near), 2), (Some(3), Some(far), 3), (None, Some(far), level[far as usize])]
            {
                let partial = search.run(Run { depth, target, ..0.into() }).unwrap();
                let wanted: Vec<u32> = level.iter().map(|&level| if level <= cut { level } else { NONE }).collect();
                assert_eq!(search.result(0).level, wanted, "{} up to {depth:?}, {target:?}", options.planner);
                assert_eq!(partial.end, if depth.is_some() { End::Depth } else { End::Target });
                reference.compare_with(&layout, &options, &mut search);
            }
        }
    }
}

#[test]
fn policies_for_devices_are_refused_without_a_device() {
    let list = EdgeList::new(2, vec![[0, 1]], Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    for policy in ["tg", "selective", "concurrent", "asynchronous", "daga:14,24", "remis-selective:9", "remis-concurrent:9,500"] {
        let options = SearchOptions { planner: policy.parse::<Policy>().unwrap().into(), ..SearchOptions::default() };
        let error = Search::new(&layout, &options).unwrap_err();
        assert!(matches!(&error, SearchError::NoDevice { policy: named } if named == policy), "{error}");
    }
}

/// The CPU finds 200 vertices, one of which has more neighbours than a work-group expands by itself. The CPU's sample of their degrees
/// misses that vertex, but the device must still expand it.
#[test]
fn a_heavy_vertex_that_the_estimate_misses_is_expanded() {
    // Lists begin with the vertex with most arcs. So the heavy vertex is the first that vertex 2 finds, after the 131 of vertex 1. The
    // sample takes every fourth of the 200, from the third on.
    let (first, leaves, n) = (3, 300, 3000);
    let mut edges = vec![[0, 1], [0, 2]];
    edges.extend((0..200).map(|i| [if i < 131 { 1 } else { 2 }, first + i]));
    edges.extend((0..200).map(|i| [first + i, leaves + i]));
    edges.extend((leaves + 200..n).map(|leaf| [first + 150, leaf]));
    let list = EdgeList::new(n as usize, edges, Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions { directed: true, order: Order::Original, ..BuildOptions::default() }).unwrap();
    for device in &devices("a_heavy_vertex_that_the_estimate_misses_is_expanded", Limits::default()).all {
        for strategy in [Strategy::Tg, Strategy::Tgm] {
            let policy = Policy::Replay(Replay::new(&[Strategy::Tc.plan(), Strategy::Tc.plan(), strategy.plan()]));
            let options = GpuOptions { group: Some(32), run_arcs: Some(0), ..GpuOptions::default() };
            let setup = GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options };
            let mut search = Search::new(
                &layout,
                &SearchOptions { planner: policy.into(), threads: 1, devices: vec![setup], ..SearchOptions::default() },
            )
            .unwrap();
            // Otherwise the CPU would run these few levels together.
            search.set_single_levels(true);
            search.run(0).unwrap();
            let placements: Vec<Placement> = search.records().iter().map(|record| record.plan.placement).collect();
            assert_eq!(placements[..3], [Placement::Cpu, Placement::Cpu, strategy.plan().placement]);
            assert!(search.records()[2].stats.frontier_edges < 1024, "{:?}", search.records()[2].stats);
            let levels = search.result(0).level;
            let lost = (leaves..n).filter(|&leaf| levels[leaf as usize] != 3).count();
            assert_eq!(lost, 0, "{strategy:?} on {} lost so many leaves", device.info().name);
        }
    }
}

/// Searches from `roots` with one kernel. Returns for every level: the estimated and the true share of all hubs that are in the frontier,
/// the number of hubs, and the size of the frontier.
fn hub_shares(device: &Arc<Device>, layout: &Layout, strategy: Strategy, roots: &[u32]) -> Vec<(f64, f64, usize, usize)> {
    let csr = layout.csr();
    let all = 0..csr.vertices() as u32;
    let with_arcs = all.clone().filter(|&v| csr.degree(v) > 0).count();
    let is_hub = |v: u32| f64::from(csr.degree(v)) > csr.arcs() as f64 / with_arcs as f64;
    let hubs = all.filter(|&v| is_hub(v)).count();
    let policy = Policy::Replay(Replay::new(&[strategy.plan()]).observing());
    let setup = GpuSetup {
        device: Arc::clone(device),
        way: SharingMode::AllocHostPtr,
        options: GpuOptions { group: Some(32), ..GpuOptions::default() },
    };
    let mut search =
        Search::new(layout, &SearchOptions { planner: policy.into(), threads: 1, devices: vec![setup], ..SearchOptions::default() })
            .unwrap();
    search.set_single_levels(true);
    let mut shares = Vec::new();
    for &root in roots {
        search.run(root).unwrap();
        let levels = search.result(root).level;
        for record in search.records() {
            let level = record.stats.level;
            let frontier: Vec<u32> = (0..levels.len() as u32).filter(|&v| levels[v as usize] == level).collect();
            let within = frontier.iter().filter(|&&v| is_hub(layout.to_internal(v))).count();
            let estimate = record.stats.sampled_hubs.unwrap_or_else(|| panic!("{strategy:?}: nothing sampled at level {level}"));
            shares.push((f64::from(estimate), within as f64 / hubs as f64, hubs, frontier.len()));
        }
    }
    shares
}

#[test]
fn hubs_in_the_frontier_are_counted_on_the_device() {
    for device in &devices("hubs_in_the_frontier_are_counted_on_the_device", Limits::default()).all {
        for (n, m) in if is_slow(device) { vec![(900, 2000)] } else { vec![(900, 4000), (30_000, 150_000)] } {
            let list = EdgeList::new(n, edges(n as u64, m, 21, 1), Listing::Once).unwrap();
            for order in [Order::Original, Order::Degree] {
                let layout = Layout::build(&list, &BuildOptions { order, keep_leaves: true, ..BuildOptions::default() }).unwrap();
                // The frontier is in a queue, in a mask, or in a bitmap.
                for strategy in [Strategy::Tg, Strategy::Tgm, Strategy::Bg, Strategy::Bgc] {
                    let shares = hub_shares(device, &layout, strategy, &[0, 7]);
                    assert!(shares.iter().any(|&(_, share, ..)| share > 0.25), "{shares:?}");
                    for (estimate, share, hubs, len) in shares {
                        // Up to 1024 vertices, the sample takes all.
                        let (asked, of) = if strategy == Strategy::Tg { (1024, len) } else { (1024 * hubs / n, hubs) };
                        let bound = if of <= asked || n <= 1024 {
                            1e-6
                        } else {
                            // Four standard deviations of the share, which for a queue is sampled over its entries.
                            let of_all = if strategy == Strategy::Tg { share * hubs as f64 / len as f64 } else { share };
                            let deviation = (of_all * (1.0 - of_all) / asked as f64).sqrt();
                            4.0 * deviation * if strategy == Strategy::Tg { len as f64 / hubs as f64 } else { 1.0 } + 1e-6
                        };
                        let what = format!("{strategy:?} {order:?} {n}: {estimate} for {share} of {hubs} hubs, frontier {len}");
                        assert!((estimate - share).abs() <= bound, "{what}, at most {bound} off");
                    }
                }
            }
        }
    }
}
