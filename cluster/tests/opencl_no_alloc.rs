//! A search over several ranks does not call the Rust allocator, on any rank, if one has a device (design rule 1).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod counted;
#[path = "../../tests/implementations/mod.rs"]
mod implementations;
#[path = "../../tests/reference/mod.rs"]
mod reference;
#[path = "../../tests/searches/mod.rs"]
mod searches;

use std::sync::Arc;

use implementations::on_each;
use searches::is_slow;
use socbfs::{
    GpuOptions, GpuSetup,
    bfs::{GpuKernel, Placement},
    graph::{EdgeList, Listing, Order},
    memory::SharingMode,
    opencl::{Device, Limits},
};
use socbfs_cluster::{ClusterOptions, ClusterSearch, Part, Places, RankDevice, Ranks, ThreadRanks};
use socbfs_policy::{Band, Bands};

/// Searches over two ranks, of which the first has no device.
fn over_ranks(name: &str, device: &Arc<Device>) {
    let n = if is_slow(device) { 300 } else { 3000u32 };
    let list = EdgeList::new(n as usize, searches::edges(u64::from(n), n as usize * 3, 8, 1), Listing::Once).unwrap();
    let ways: Vec<_> = SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())).collect();
    for (index, &way) in ways.iter().enumerate().filter(|&(index, _)| index == 0 || !is_slow(device)) {
        let options = GpuOptions { group: Some([64, 32][index % 2]), ..GpuOptions::default() };
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
            for sources in [&[0][..], &[17], &[n - 1], &[5, 17, 5, n - 2]] {
                counted::allocates_nothing(&mut search, ranks, sources, &format!("{name}, {way}"));
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
    on_each("opencl_no_alloc", Limits::default(), |name, device| {
        // The device records times, which is more work: events are kept and queried.
        over_ranks(name, &Device::open_timed(device.info(), Limits::default()).unwrap());
    });
    println!("1 passed, 0 failed");
}
