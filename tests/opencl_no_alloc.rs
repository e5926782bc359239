//! What a search calls of the OpenCL room, hand-overs of memory, and whole searches on a device never call the Rust allocator
//! (design rule 1).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod implementations;

use std::{
    alloc::{GlobalAlloc, Layout as Block, System},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use implementations::on_each;
use socbfs::{
    bfs::GpuKernel,
    engine::{GpuOptions, GpuSetup},
    graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    memory::{SharedSlice, Way},
    opencl::{Buffer, Device, Limits},
    policy::{NEVER, Parting, Policy, Runs, SampledCosts, Splitting, Threshold, Thresholds},
    search::{Search, SearchOptions},
};

/// Counts every call, on any thread. Drivers are not Rust and are not counted.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, block: Block) {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, block) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, block: Block, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.realloc(pointer, block, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SOURCE: &str = "
kernel void add(global uint *values, uint count, local uint *room) {
    room[get_local_id(0)] = 1;
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) values[i] += room[get_local_id(0)];
}
";

/// Counts the calls that `body` makes.
fn calls(body: impl FnOnce()) -> u64 {
    let before = CALLS.load(SeqCst);
    body();
    CALLS.load(SeqCst) - before
}

/// Every policy that has levels on a device, and where those run that decide directions only.
fn policies() -> Vec<(Policy, Runs)> {
    let split = |top_down_from_edges, bottom_up_from_vertices| {
        Policy::Concurrent(Splitting { top_down_from_edges, bottom_up_from_vertices, gpu_permille: 500 })
    };
    let selective = |top_down, bottom_up| Policy::Selective(Some(Thresholds { top_down, bottom_up }));
    let mut all: Vec<_> = GpuKernel::ALL.into_iter().map(|kernel| (Policy::Gpu(kernel), Runs::Cpu)).collect();
    for kernel in [GpuKernel::Bg, GpuKernel::Bgc] {
        all.push((Policy::Sampled(SampledCosts::default()), Runs::Gpu(kernel)));
        all.push((Policy::AlphaBeta { alpha: 15.0, beta: 18.0 }, Runs::Gpu(kernel)));
    }
    for policy in [
        selective(Threshold::at(0), Threshold::NEVER),
        selective(Threshold::at(1000), Threshold::at(0)),
        split(0, 0),
        split(1000, NEVER),
        Policy::Asynchronous(Parting { from_edges: 10, gpu_permille: 500 }),
        Policy::Auto,
    ] {
        all.push((policy, Runs::Cpu));
    }
    all
}

/// Searches by every policy, in every way of sharing memory; the very first search by each counts, and so do later ones.
fn searches(name: &str, device: &Arc<Device>) {
    let n = 3000u64;
    let mut x = 5u64;
    let mut next = |bound: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % bound
    };
    let edges: Vec<[u32; 2]> = (0..18_000)
        .map(|_| {
            let bound = 1 + next(n);
            [next(bound) as u32, next(n) as u32]
        })
        .collect();
    let list = EdgeList::new(n as usize, edges, Listing::Once).unwrap();
    // An interpreter takes its time.
    let slow = name == "Oclgrind";
    let mut combinations = 0;
    for order in [Order::Degree, Order::Original] {
        let layout = Layout::build(&list, &BuildOptions { directed: false, order }).unwrap();
        let ways = Way::ALL.into_iter().filter(|way| way.offered(device.info()));
        for (turn, way) in ways.enumerate() {
            if slow && (turn > 0 || order == Order::Original) {
                continue;
            }
            // Both kinds of kernels, and small levels by one group or by many.
            let options = GpuOptions { group: Some(if turn % 2 == 0 { 32 } else { 1 }), run_arcs: Some(64), ..GpuOptions::default() };
            let devices = vec![GpuSetup { device: Arc::clone(device), way, options }];
            for threads in [1, 2] {
                let options = SearchOptions { threads, devices: devices.clone(), every_policy: true, ..SearchOptions::default() };
                let mut search = Search::new(&layout, &options).unwrap();
                for (policy, runs) in policies() {
                    search.set_policy(policy.clone(), runs).unwrap();
                    for root in [0, 17, 2999] {
                        let mut outcome = None;
                        let calls = calls(|| outcome = Some(search.run(root).is_ok()));
                        assert_eq!(
                            (outcome, calls),
                            (Some(true), 0),
                            "{name}: {order:?} {way} {threads} threads {policy} {runs:?} root {root}"
                        );
                    }
                    combinations += 1;
                }
            }
        }
    }
    assert!(combinations >= 20);
    println!("{name}: searches by {combinations} combinations of order, way, threads and policy allocate nothing");
}

// Without the test harness, whose own allocations would be counted.
fn main() {
    on_each("opencl_no_alloc", Limits::default(), |name, device| {
        let kernel = device.program(SOURCE, "-cl-std=CL1.2").unwrap().kernel("add").unwrap();
        let buffer = Buffer::from_host(device, &[1u32; 1000], "a test").unwrap();
        let shared = [7u32; 1024];
        let over = Buffer::over_host(device, &shared, "a test").unwrap();
        let round = |slice: Option<&mut SharedSlice<u32>>| {
            kernel.set(1, 1000u32).unwrap();
            kernel.set_local(2, 8 * 4).unwrap();
            match slice {
                Some(slice) => {
                    kernel.set_buffer(0, slice).unwrap();
                    slice.fill(3);
                    slice.to_device(0..1000).unwrap();
                    kernel.launch(2, 8).unwrap();
                    slice.read_both(0..1000).unwrap();
                    slice.to_host(0..1000).unwrap();
                    slice.read_both(0..1000).unwrap();
                    slice.to_device(0..1000).unwrap();
                    slice.fill_on_device(9).unwrap();
                    slice.to_host(0..1000).unwrap();
                    assert_eq!(slice[999], 9);
                    // And what fails: the host owns it.
                    assert!(kernel.launch(2, 8).is_err());
                }
                None => {
                    let mut back = [0u32; 1000];
                    kernel.set_buffer(0, &over).unwrap();
                    kernel.set_buffer(0, &buffer).unwrap();
                    buffer.write(0..1000, &[1; 1000]).unwrap();
                    kernel.launch(2, 8).unwrap();
                    device.flush().unwrap();
                    device.finish().unwrap();
                    buffer.read(0..1000, &mut back).unwrap();
                    assert_eq!(back[999], 2);
                    buffer.fill(5).unwrap();
                    assert!(buffer.read(0..2000, &mut back).is_err() && kernel.set(7, 1u32).is_err() && kernel.launch(1, 1 << 20).is_err());
                }
            }
        };
        // The very first round counts too.
        for turn in 0..3 {
            assert_eq!(calls(|| round(None)), 0, "{name}, turn {turn}");
        }
        for way in Way::ALL.into_iter().filter(|way| way.offered(device.info())) {
            let mut slice = SharedSlice::<u32>::on(device, way, 1000, "a test").unwrap();
            // The kernel holds the last slice, which is gone, and would free it when it is given another.
            kernel.set_buffer(0, &slice).unwrap();
            for turn in 0..3 {
                assert_eq!(calls(|| round(Some(&mut slice))), 0, "{name}, {way}, turn {turn}");
            }
        }
        println!("{name}: launches, transfers and hand-overs allocate nothing");
        searches(name, device);
    });
    // The counter itself works.
    assert!(calls(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(100)))) >= 2);
    println!("1 passed, 0 failed");
}
