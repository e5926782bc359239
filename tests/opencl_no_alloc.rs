//! The functions of the OpenCL room that a search calls, handovers of memory, and whole searches on a device never call the Rust
//! allocator (design rule 1).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod counting;
mod implementations;
mod reference;
mod searches;

use std::sync::Arc;

use counting::calls;
use implementations::{on_each, run, skipped};
use searches::{is_one_of_few, is_rusticl, is_slow, is_tried, policies_in_turn};
use socbfs::{
    GpuOptions, GpuSetup,
    graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    memory::{SharedSlice, SharingMode},
    opencl::{Buffer, Device, Limits},
    search::{Search, SearchOptions},
};

const SOURCE: &str = "
kernel void add(global uint *values, uint count, local uint *room) {
    room[get_local_id(0)] = 1;
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) values[i] += room[get_local_id(0)];
}
";

/// Searches from each root, which must not allocate.
fn allocates_nothing(search: &mut Search<'_>, roots: &[u32], what: &dyn std::fmt::Display) {
    for &root in roots {
        let mut good = false;
        let calls = calls(|| good = search.run(root).is_ok());
        assert_eq!((good, calls), (true, 0), "{what} root {root}");
    }
}

/// Searches with every policy, every sharing mode, neighbours in one part and in three, one device and two.
fn search(name: &str, device: &Arc<Device>) {
    let mut combinations = 0;
    // On a slow device fewer combinations run, which still have every launch and handover.
    let few = is_slow(device);
    if searches::emulated() {
        skipped(
            "opencl_no_alloc",
            &format!("searches on {name} by other ways than alloc-host-ptr and with three parts: this processor is emulated"),
        );
    }
    // The last root has no edge.
    let n = if few { 300 } else { 3000u32 };
    let mut skewed = searches::edges(u64::from(n) - 1, n as usize * 3, 8, 1);
    skewed.retain(|edge| !edge.contains(&7));
    let path: Vec<_> = (1..120).map(|v| [v - 1, v]).collect();
    let graphs =
        [("skewed", &skewed, false, Order::Degree), ("skewed", &skewed, true, Order::Original), ("path", &path, false, Order::Original)];
    let setups = [(64, 0, false, 1), (32, 0, true, 2), (32, 3, false, 2)];
    let ways: Vec<_> = SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())).collect();
    let lengths = [graphs.len(), ways.len(), setups.len()];
    let is_tried = if is_rusticl(device.info()) { is_one_of_few } else { is_tried };
    let roots: &[u32] = if searches::all_combinations() { &[0, 17, 7, 100, n - 1] } else { &[17, n - 1] };
    for (a, (kind, edges, directed, order)) in graphs.into_iter().enumerate() {
        let list = EdgeList::new(n as usize, edges.clone(), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions { directed, order, ..BuildOptions::default() }).unwrap();
        for (b, &way) in ways.iter().enumerate() {
            for (c, (group, parts, twice, threads)) in setups.into_iter().enumerate() {
                if !is_tried(&[a, b, c], &lengths) || few && (parts > 1 || way != SharingMode::AllocHostPtr) {
                    continue;
                }
                let options = GpuOptions { group: Some(group), parts, run_arcs: Some(30), cached_words: Some(5), ..GpuOptions::default() };
                let setup = GpuSetup { device: Arc::clone(device), way, options };
                let devices = if twice { vec![setup.clone(), setup] } else { vec![setup] };
                let every = SearchOptions { threads, devices, every_planner: true, ..SearchOptions::default() };
                let mut search = Search::new(&layout, &every).unwrap();
                for (policy, runs) in policies_in_turn(&every.devices) {
                    search.set_planner(policy.clone().on(runs)).unwrap();
                    let what = format!("{kind} directed {directed} {policy} {runs:?} {way} groups of {group}, {parts} parts");
                    allocates_nothing(&mut search, roots, &what);
                    combinations += 1;
                }
                if parts > 0 && kind != "path" {
                    // The first search with the kernels of one policy alone must not allocate either. Each compiles on rusticl.
                    let step = if is_rusticl(device.info()) && !searches::all_combinations() { 4 } else { 1 };
                    for (policy, runs) in policies_in_turn(&every.devices).into_iter().step_by(step) {
                        let what = format!("{kind} directed {directed} {policy} {runs:?} {way}, first search");
                        let options = SearchOptions { planner: policy.on(runs), every_planner: false, ..every.clone() };
                        allocates_nothing(&mut Search::new(&layout, &options).unwrap(), &[17], &what);
                    }
                }
            }
        }
    }
    assert!(combinations >= 2 * searches::alone().len());
    println!("{name}: searches by {combinations} combinations of graph, way, group, parts and policy allocate nothing");
}

// There is no test harness, since its allocations would be counted.
fn main() {
    // Handles `--skip` like the test harness, since `tests/run` runs this program like the others.
    if std::env::args().skip_while(|argument| argument != "--skip").any(|argument| argument == "opencl_no_alloc") {
        return println!("0 passed, 0 failed, 1 filtered out");
    }
    on_each("opencl_no_alloc", Limits::default(), |name, device| {
        // The device records times, which is more work: events are kept and queried.
        let device = &Device::open_timed(device.info(), Limits::default()).unwrap();
        let kernel = device.program(SOURCE, "-cl-std=CL1.2").unwrap().kernel("add").unwrap();
        let buffer = Buffer::from_host(device, &[1u32; 1000], "a test").unwrap();
        let shared = [7u32; 1024];
        // SAFETY: the buffer is dropped before the values.
        let over = unsafe { Buffer::over_host(device, &shared, "a test") }.unwrap();
        let round = |slice: Option<&mut SharedSlice<u32>>| {
            kernel.set(1, 1000u32).unwrap();
            kernel.set_local(2, 8 * 4).unwrap();
            match slice {
                Some(slice) => {
                    kernel.set_buffer(0, slice).unwrap();
                    slice.fill(3);
                    slice.to_device(0..1000).unwrap();
                    run(&kernel, 2, 8).unwrap();
                    slice.read_both(0..1000).unwrap();
                    slice.to_host(0..1000).unwrap();
                    slice.read_both(0..1000).unwrap();
                    slice.to_device(0..1000).unwrap();
                    slice.fill_on_device(9).unwrap();
                    slice.to_host(0..1000).unwrap();
                    assert_eq!(slice[999], 9);
                    // A launch that fails, since the host owns the slice, must not allocate either.
                    assert!(run(&kernel, 2, 8).is_err());
                }
                None => {
                    let mut back = [0u32; 1000];
                    kernel.set_buffer(0, &over).unwrap();
                    kernel.set_buffer(0, &buffer).unwrap();
                    buffer.write(0..1000, &[1; 1000]).unwrap();
                    run(&kernel, 2, 8).unwrap();
                    device.flush().unwrap();
                    device.finish().unwrap();
                    let mut launches = 0;
                    device.times(|_| launches += 1).unwrap();
                    assert!(launches > 0);
                    buffer.read(0..1000, &mut back).unwrap();
                    assert_eq!(back[999], 2);
                    buffer.fill(5).unwrap();
                    assert!(buffer.read(0..2000, &mut back).is_err() && kernel.set(7, 1u32).is_err() && run(&kernel, 1, 1 << 20).is_err());
                }
            }
        };
        // The first round must not allocate either.
        for turn in 0..3 {
            assert_eq!(calls(|| round(None)), 0, "{name}, turn {turn}");
        }
        for way in SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())) {
            let mut slice = SharedSlice::<u32>::on(device, way, 1000, "a test").unwrap();
            // The kernel still holds the dropped slice of the last mode, and would free it when its argument is replaced.
            kernel.set_buffer(0, &slice).unwrap();
            for turn in 0..3 {
                assert_eq!(calls(|| round(Some(&mut slice))), 0, "{name}, {way}, turn {turn}");
            }
        }
        println!("{name}: launches, transfers and handovers allocate nothing");
        search(name, device);
    });
    // Check that the counter works.
    assert!(calls(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(100)))) >= 2);
    println!("1 passed, 0 failed");
}
