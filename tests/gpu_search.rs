//! Every kernel and every way of working together, on every OpenCL device there is, against a serial reference.
//!
//! `SOCBFS_TEST_DEVICE` restricts the devices to those with that word in the name of device or platform (`tests/run` goes
//! through the implementations one by one).
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod reference;

use std::sync::Arc;

use proptest::prelude::*;
use reference::Reference;
use socbfs::{
    bfs::GpuKernel,
    engine::{GpuOptions, GpuSetup},
    graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    memory::Way,
    opencl::{self, Device, Limits},
    policy::{NEVER, Parting, Policy, Runs, SampledCosts, Splitting, Threshold, Thresholds},
    search::{Search, SearchError, SearchOptions},
};

/// The devices to test on; says so where there is none.
fn devices(test: &str) -> Vec<Arc<Device>> {
    let word = std::env::var("SOCBFS_TEST_DEVICE").unwrap_or_default().to_lowercase();
    let found = match opencl::devices() {
        Ok(found) => found,
        Err(error) => {
            assert!(word.is_empty(), "no OpenCL although {word} was asked for: {error}");
            println!("SKIPPED {test}: {error}");
            return Vec::new();
        }
    };
    let named = |name: &str| name.to_lowercase().contains(&word);
    let devices: Vec<_> = found
        .iter()
        .filter(|info| info.unusable.is_none() && (named(&info.name) || named(&info.platform)))
        .map(|info| Device::open(info, Limits::default()).unwrap())
        .collect();
    assert!(word.is_empty() || !devices.is_empty(), "no OpenCL device is called {word}: {found:?}");
    if devices.is_empty() {
        println!("SKIPPED {test}: no usable OpenCL device");
    }
    devices
}

/// Oclgrind interprets kernels, thousands of times slower than a device runs them.
fn is_slow(device: &Device) -> bool {
    device.info().platform.to_lowercase().contains("oclgrind")
}

/// Levels change device and direction often: by turns of work that small graphs have.
fn back_and_forth() -> Vec<Policy> {
    let selective = |top_down, bottom_up| Policy::Selective(Some(Thresholds { top_down, bottom_up }));
    vec![
        selective(Threshold::at(0), Threshold::NEVER),
        selective(Threshold::NEVER, Threshold::at(0)),
        selective(Threshold::at(40), Threshold { go: 60, stay: 20 }),
        selective(Threshold { go: 10, stay: NEVER }, Threshold::at(0)),
    ]
}

fn together() -> Vec<Policy> {
    let split = |top_down_from_edges, bottom_up_from_vertices, gpu_permille| {
        Policy::Concurrent(Splitting { top_down_from_edges, bottom_up_from_vertices, gpu_permille })
    };
    vec![
        split(0, 0, 500),
        split(0, NEVER, 900),
        split(30, 0, 100),
        Policy::Asynchronous(Parting { from_edges: 1, gpu_permille: 500 }),
        Policy::Asynchronous(Parting { from_edges: 20, gpu_permille: 200 }),
        Policy::Asynchronous(Parting { from_edges: 100, gpu_permille: 990 }),
    ]
}

fn alone() -> Vec<(Policy, Runs)> {
    let mut all: Vec<_> =
        [GpuKernel::Tg, GpuKernel::Tgm, GpuKernel::Bg, GpuKernel::Bgc].into_iter().map(|kernel| (Policy::Gpu(kernel), Runs::Cpu)).collect();
    for kernel in [GpuKernel::Bg, GpuKernel::Bgc] {
        all.push((Policy::AlphaBeta { alpha: 15.0, beta: 18.0 }, Runs::Gpu(kernel)));
        all.push((Policy::Sampled(SampledCosts::default()), Runs::Gpu(kernel)));
    }
    all.push((Policy::AlphaBeta { alpha: 1000.0, beta: 1.0 }, Runs::Gpu(GpuKernel::Bg)));
    all
}

/// What is tried on each graph.
struct Variety {
    groups: Vec<Option<usize>>,
    parts: Vec<usize>,
    ways: Vec<Way>,
    orders: Vec<Order>,
    threads: Vec<usize>,
    /// Arcs up to which one group runs a level; 0 has all of them run by many.
    run_arcs: Vec<Option<u32>>,
}

fn check(device: &Arc<Device>, n: usize, edges: &[[u32; 2]], directed: bool, roots: &[u32], variety: &Variety) {
    let reference = Reference::new(n, edges, directed, roots);
    let list = EdgeList::new(n, edges.to_vec(), Listing::Unknown).unwrap();
    for &order in &variety.orders {
        let layout = Layout::build(&list, &BuildOptions { directed, order }).unwrap();
        for &group in &variety.groups {
            for &parts in &variety.parts {
                for &way in variety.ways.iter().filter(|way| way.offered(device.info())) {
                    for &run_arcs in &variety.run_arcs {
                        for &threads in &variety.threads {
                            let options = GpuOptions { group, parts, run_arcs, cached_words: None };
                            let devices = vec![GpuSetup { device: Arc::clone(device), way, options }];
                            let options = SearchOptions { threads, devices, every_policy: true, ..SearchOptions::default() };
                            compare_policies(&reference, &layout, options);
                        }
                    }
                }
            }
        }
    }
}

/// One search after another, each by another policy, over one engine.
fn compare_policies(reference: &Reference, layout: &Layout, mut options: SearchOptions) {
    let mut search = Search::new(layout, &options).unwrap();
    let others = back_and_forth().into_iter().chain(together()).chain([Policy::Auto]);
    for (policy, runs) in alone().into_iter().chain(others.map(|policy| (policy, Runs::Cpu))) {
        search.set_policy(policy.clone(), runs).unwrap();
        (options.policy, options.runs) = (policy, runs);
        reference.compare_with(layout, &options, &mut search);
    }
}

/// Pseudo-random edges: `kind` 0 is uniform, 1 skewed to low numbers.
fn edges(n: u64, count: usize, seed: u64, kind: u8) -> Vec<[u32; 2]> {
    let mut x = seed;
    let mut next = |bound: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % bound
    };
    (0..count)
        .map(|_| {
            let bound = if kind == 1 { 1 + next(n) } else { n };
            let bound = if kind == 1 { 1 + next(bound) } else { bound };
            [next(bound) as u32, next(n) as u32]
        })
        .collect()
}

fn everything(device: &Device) -> Variety {
    let slow = is_slow(device);
    Variety {
        groups: if slow { vec![Some(32)] } else { vec![Some(1), Some(32), Some(256)] },
        parts: vec![0],
        ways: if slow { vec![Way::AllocHostPtr] } else { vec![Way::AllocHostPtr, Way::UseHostPtr, Way::Copy] },
        orders: vec![Order::Original, Order::Degree],
        threads: if slow { vec![2] } else { vec![1, 2] },
        run_arcs: if slow { vec![Some(8)] } else { vec![Some(0), Some(8), None] },
    }
}

#[test]
fn odd_graphs() {
    for device in devices("odd_graphs") {
        let variety = Variety { ways: vec![Way::AllocHostPtr], threads: vec![2], ..everything(&device) };
        let check = |n, edges: &[[u32; 2]], directed, roots: &[u32]| check(&device, n, edges, directed, roots, &variety);
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
fn larger_graphs_with_every_group_and_way() {
    for device in devices("larger_graphs_with_every_group_and_way") {
        let variety = everything(&device);
        // Beyond 1024 vertices the hubs are counted apart, and more than one group has work.
        let (n, m) = if is_slow(&device) { (1100, 4000) } else { (3000, 24_000) };
        for (kind, directed) in [(0, false), (1, false), (1, true)] {
            check(&device, n, &edges(n as u64, m, 3 + u64::from(kind), kind), directed, &[0, 5, n as u32 - 1], &variety);
        }
    }
}

#[test]
fn neighbours_in_parts() {
    for device in devices("neighbours_in_parts") {
        let groups = if is_slow(&device) { vec![Some(32)] } else { vec![Some(1), Some(64)] };
        let variety = Variety { groups, parts: vec![1, 2, 7, 16], ways: vec![Way::UseHostPtr], threads: vec![2], ..everything(&device) };
        for kind in [0, 1] {
            check(&device, 1200, &edges(1200, 3000, 11, kind), false, &[1, 600], &variety);
        }
    }
}

#[test]
fn a_heavy_vertex_is_shared_by_all_groups() {
    for device in devices("a_heavy_vertex_is_shared_by_all_groups") {
        // More arcs at one vertex than a group expands by itself, twice, and some that both have.
        let n = 3200u32;
        let hubs: Vec<_> = (2..n).flat_map(|v| [(v % 3 != 0).then_some([0, v]), (v % 3 != 1).then_some([1, v])]).flatten().collect();
        let variety = Variety { groups: vec![Some(32)], ways: vec![Way::AllocHostPtr], threads: vec![1], ..everything(&device) };
        check(&device, n as usize, &hubs, false, &[0, 5, 6, 7], &variety);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn random_graphs(n in 1usize..400, density in 0usize..6, seed: u64, kind in 0u8..2, directed: bool) {
        for device in devices("random_graphs").into_iter().filter(|device| !is_slow(device)) {
            let variety = Variety {
                groups: vec![Some(1), Some(32)],
                parts: vec![0],
                ways: vec![Way::AllocHostPtr],
                orders: vec![Order::Auto],
                threads: vec![2],
                run_arcs: vec![Some(0), None],
            };
            let roots = [0, (n / 2) as u32, n as u32 - 1];
            check(&device, n, &edges(n as u64, n * density, seed, kind), directed, &roots, &variety);
        }
    }
}

#[test]
fn two_devices_beside_the_cpu() {
    let devices = devices("two_devices_beside_the_cpu");
    let Some(first) = devices.first() else { return };
    let second = devices.get(1).unwrap_or(first);
    let setups: Vec<_> = [(first, Some(1)), (second, Some(32))]
        .map(|(device, group)| GpuSetup {
            device: Arc::clone(device),
            way: Way::AllocHostPtr,
            options: GpuOptions { group, ..GpuOptions::default() },
        })
        .into();
    let edges = edges(2000, 9000, 5, 1);
    let list = EdgeList::new(2000, edges.clone(), Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    let reference = Reference::new(2000, &edges, false, &[0, 3, 1999]);
    for policy in together() {
        reference.compare(&layout, &SearchOptions { policy, threads: 2, devices: setups.clone(), ..SearchOptions::default() });
    }
    compare_policies(&reference, &layout, SearchOptions { threads: 2, devices: setups, every_policy: true, ..SearchOptions::default() });
}

#[test]
fn a_policy_for_a_device_needs_one() {
    let list = EdgeList::new(2, vec![[0, 1]], Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    for policy in ["tg", "selective", "concurrent", "asynchronous"] {
        let options = SearchOptions { policy: policy.parse().unwrap(), ..SearchOptions::default() };
        let error = Search::new(&layout, &options).unwrap_err();
        assert!(matches!(&error, SearchError::NoDevice { policy: named } if named == policy), "{error}");
    }
}
