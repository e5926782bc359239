//! A search over several ranks does not call the allocator, on any rank, with or without a device (design rule 1).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

#[path = "../../tests/counting/mod.rs"]
mod counting;
#[path = "../../tests/implementations/mod.rs"]
mod implementations;
#[path = "../../tests/reference/mod.rs"]
mod reference;
#[path = "../../tests/searches/mod.rs"]
mod searches;

use std::sync::Arc;

use counting::calls;
use implementations::on_each;
use searches::is_slow;
use socbfs::{
    bfs::{GpuKernel, Placement},
    gpu::GpuOptions,
    gpu::GpuSetup,
    graph::{EdgeList, Listing, Order},
    memory::SharingMode,
    opencl::{Device, Limits},
    policy::{Band, Bands},
};
use socbfs_cluster::{ClusterOptions, ClusterSearch, Exchange, Part, Places, RankDevice, Ranks, ThreadRanks};

fn graph(kind: &str) -> EdgeList {
    let mut x = 5u64;
    let mut next = |bound: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % bound
    };
    let n = 20_000u64;
    let edges = match kind {
        "uniform" => (0..120_000).map(|_| [next(n) as u32, next(n) as u32]).collect(),
        "skewed" => (0..120_000)
            .map(|_| {
                let bound = 1 + next(n);
                let bound = 1 + next(bound);
                [next(bound) as u32, next(n) as u32]
            })
            .collect(),
        // A path, where the threads synchronise at each level; the last root has no edge.
        _ => (1..4000).map(|v| [v - 1, v]).collect(),
    };
    EdgeList::new(n as usize, edges, Listing::Once).unwrap()
}

/// Searches over ranks that are threads, so that one counter covers them all. Returns the number of combinations.
fn over_ranks(list: &EdgeList, kind: &str, order: Order) -> usize {
    let mut combinations = 0;
    for size in [1, 2, 3] {
        for (exchange, threads, sorted) in [(Exchange::Found, 1, true), (Exchange::Found, 2, false), (Exchange::Pairs, 1, true)] {
            ThreadRanks::run(size, |ranks| {
                let part = Part::build(list, order, ranks).unwrap();
                let options = ClusterOptions { exchange, threads, sorted, ..ClusterOptions::default() };
                let mut search = ClusterSearch::new(&part, ranks, &options).unwrap();
                for root in [0, 17, 19_999] {
                    // No rank begins before every rank has read the count, and none continues before every rank has read it again.
                    ranks.barrier();
                    let mut good = false;
                    let calls = calls(|| {
                        ranks.barrier();
                        good = search.run_uncounted(root).is_ok();
                        ranks.barrier();
                    });
                    ranks.barrier();
                    assert!(good);
                    assert_eq!(calls, 0, "{kind} {order:?} {size} ranks {exchange:?} {threads} threads root {root}");
                }
            });
            combinations += 1;
        }
    }
    combinations
}

/// Searches over ranks that are threads, so that one counter covers them all; the first rank has no device.
fn on_devices(name: &str, device: &Arc<Device>) {
    let n = if is_slow(device) { 300 } else { 3000u32 };
    let list = EdgeList::new(n as usize, searches::edges(u64::from(n), n as usize * 3, 8, 1), Listing::Once).unwrap();
    let ways: Vec<_> = SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())).collect();
    for (index, &way) in ways.iter().enumerate().filter(|&(index, _)| index == 0 || !is_slow(device)) {
        let options = GpuOptions { group: Some([1, 32][index % 2]), ..GpuOptions::default() };
        // Two ranks, of which one has a device, since Oclgrind exits if two threads launch.
        ThreadRanks::run(2, |ranks| {
            let part = Part::build(&list, Order::Degree, ranks).unwrap();
            // Levels of both directions run on the device, small top-down levels on the CPU.
            let places = Places::By(Bands { top_down: Band::gpu_from(30), bottom_up: Band::gpu_from(0) });
            let setup = GpuSetup { device: Arc::clone(device), way, options };
            let own = RankDevice { setup, bottom_up: GpuKernel::Bgc, places, fall_back: false };
            let options = ClusterOptions { device: Some(own).filter(|_| ranks.rank() > 0), ..ClusterOptions::default() };
            let mut search = ClusterSearch::new(&part, ranks, &options).unwrap();
            let mut on_device = 0;
            for root in [0, 17, n - 1] {
                // No rank begins before every rank has read the count, and none continues before every rank has read it again.
                ranks.barrier();
                let mut good = false;
                let calls = calls(|| {
                    ranks.barrier();
                    good = search.run_uncounted(root).is_ok();
                    ranks.barrier();
                });
                ranks.barrier();
                assert_eq!((good, calls), (true, 0), "{name}, {way}, rank {}, root {root}", ranks.rank());
                on_device += search.records().iter().filter(|level| matches!(level.plan.placement, Placement::Gpu(_))).count();
            }
            assert_eq!(on_device > 0, ranks.rank() > 0, "{name}, {way}, rank {}: {on_device} levels on the device", ranks.rank());
        });
    }
    println!("{name}: searches over ranks allocate nothing");
}

// There is no test harness, since its allocations would be counted.
fn main() {
    // Handles `--skip` like the test harness, since `tests/run` runs this program like the others.
    if std::env::args().skip_while(|argument| argument != "--skip").any(|argument| argument == "opencl_no_alloc") {
        return println!("0 passed, 0 failed, 1 filtered out");
    }
    let mut combinations = 0;
    for kind in ["uniform", "skewed", "path"] {
        let list = graph(kind);
        for order in [Order::Original, Order::Degree] {
            combinations += over_ranks(&list, kind, order);
        }
    }
    assert!(combinations >= 50);
    on_each("opencl_no_alloc", Limits::default(), |name, device| {
        // The device records times, which is more work: events are kept and queried.
        on_devices(name, &Device::open_timed(device.info(), Limits::default()).unwrap());
    });
    println!("a_search_over_ranks_allocates_nothing: {combinations} combinations\n1 passed, 0 failed");
}
