//! Launches, waits, handovers and bytes of searches on a device, counted by a layer between program and driver. The load of the machine
//! does not change these numbers.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use socbfs::{
    GpuOptions, GpuSetup,
    bfs::{Direction, GpuKernel},
    graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    memory::{SharedSlice, SharingMode},
    opencl::{Buffer, Device, Limits},
    search::{Search, SearchOptions},
};
use socbfs_policy::{LevelDevice, Policy};

use crate::{
    implementations::{Counts, counting, counting_with, run},
    searches::{Variety, check, devices, edges, everything},
};

#[test]
fn opencl_calls_are_counted() {
    counting(module_path!(), "opencl_calls_are_counted", |info| {
        let device = Device::open(info, Limits::default()).unwrap();
        let counted = |what: &str, wanted: Counts, body: &mut dyn FnMut()| {
            let before = Counts::now();
            body();
            assert_eq!(Counts::since(&before), wanted, "{what}");
        };
        let none = Counts::default();
        let kernel = device.program("kernel void f(global uint *a) { a[0] = 1; }", "").unwrap().kernel("f").unwrap();
        let buffer = Buffer::<u32>::new(&device, 100, "a test").unwrap();
        kernel.set_buffer(0, &buffer).unwrap();
        counted("launch", Counts { launches: 1, ..none }, &mut || run(&kernel, 1, 1).unwrap());
        counted("finish", Counts { waits: 1, flushes: 1, ..none }, &mut || device.finish().unwrap());
        counted("fill", Counts { fills: 1, ..none }, &mut || buffer.fill(1).unwrap());
        let mut values = [0; 7];
        counted("read", Counts { reads: 1, waits: 1, flushes: 1, to_host: 28, ..none }, &mut || buffer.read(1..8, &mut values).unwrap());
        counted("write", Counts { writes: 1, waits: 1, flushes: 1, to_device: 28, ..none }, &mut || buffer.write(1..8, &values).unwrap());
        // Calls that fail, in OpenCL or before, are not counted.
        counted("nothing", none, &mut || assert!(buffer.read(0..101, &mut [0; 101]).is_err() && run(&kernel, 1, 1 << 20).is_err()));
        for way in [SharingMode::AllocHostPtr, SharingMode::SvmCoarse].into_iter().filter(|way| way.offered(info)) {
            let mut slice = SharedSlice::<u32>::on(&device, way, 1000, "a test").unwrap();
            let before = Counts::now();
            slice.to_device(0..1000).unwrap();
            slice.to_host(0..1000).unwrap();
            let counts = Counts::since(&before);
            assert_eq!((counts.maps, counts.unmaps), (1, 1), "{way}: {counts:?}");
            assert_eq!((counts.to_host, counts.to_device), (4000, 4000), "{way}: {counts:?}");
        }
    });
}

/// Prints every policy's counts per search as a table (`--nocapture`). Levels whose plans are known in advance share one wait, and the tree
/// takes another.
#[test]
fn opencl_calls_of_searches_are_counted() {
    const TEST: &str = "opencl_calls_of_searches_are_counted";
    counting(module_path!(), TEST, |_| {
        let devices = devices(TEST, Limits::default());
        let list = EdgeList::new(5000, edges(5000, 40_000, 5, 1), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let on_gpu = LevelDevice::Gpu(GpuKernel::Bg);
        // The last field is the most waits of a policy that uses the device alone. With a wait for each level they would be 5, 6, 6, 5
        // and 5.
        let policies: [(Policy, LevelDevice, Option<u64>); 7] = [
            ("tg".parse().unwrap(), LevelDevice::Cpu, Some(2)),
            ("tgm".parse().unwrap(), LevelDevice::Cpu, Some(2)),
            ("bg".parse().unwrap(), LevelDevice::Cpu, Some(2)),
            ("alpha-beta".parse().unwrap(), on_gpu, Some(5)),
            ("sampled".parse().unwrap(), on_gpu, Some(3)),
            ("selective:10,0".parse().unwrap(), LevelDevice::Cpu, None),
            ("concurrent:0,0,500".parse().unwrap(), LevelDevice::Cpu, None),
        ];
        println!("{:<14} levels launches fills waits  maps unmaps reads writes   to host to device", "per search");
        for (policy, runs, most_waits) in policies {
            let options = GpuOptions { run_arcs: Some(8 << 10), ..GpuOptions::default() };
            let setup = GpuSetup { device: devices.all[0].clone(), way: SharingMode::AllocHostPtr, options };
            let options = SearchOptions { planner: policy.clone().on(runs), threads: 2, devices: vec![setup], ..SearchOptions::default() };
            let mut search = Search::new(&layout, &options).unwrap();
            search.run(3).unwrap();
            let before = Counts::now();
            let outcome = search.run(3).unwrap();
            let Counts { launches, fills, waits, maps, unmaps, reads, writes, to_host, to_device, .. } = Counts::since(&before);
            let name: String = policy.to_string().chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            println!(
                "{name:<14} {:>6} {launches:>8} {fills:>5} {waits:>5} {maps:>5} {unmaps:>6} {reads:>5} {writes:>6} {to_host:>9} {to_device:>9}",
                outcome.levels
            );
            assert!(launches > 0 && waits > 0, "{policy}");
            assert!(most_waits.is_none_or(|most| waits <= most), "{policy}: {waits} waits, at most {most_waits:?}");
            // The tree (with shared levels, a part of it) comes to the host, and all mapped memory is unmapped.
            assert!(maps == unmaps && to_host >= if policy.runs_on_both() { 1 } else { 4 * 5000 }, "{policy}");
        }
    });
}

/// A level of more arcs than a launch goes through is as many launches as it takes.
#[test]
fn large_levels_are_several_launches() {
    const TEST: &str = "large_levels_are_several_launches";
    counting(module_path!(), TEST, |_| {
        let devices = devices(TEST, Limits::default());
        let list = EdgeList::new(5000, edges(5000, 40_000, 5, 1), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        for kernel in [GpuKernel::Tg, GpuKernel::Tgm, GpuKernel::Bg, GpuKernel::Bgc] {
            let launches = |launch_arcs: Option<u64>| {
                let options = GpuOptions { launch_arcs, run_arcs: Some(0), ..GpuOptions::default() };
                let setup = GpuSetup { device: devices.all[0].clone(), way: SharingMode::AllocHostPtr, options };
                let options =
                    SearchOptions { planner: Policy::Fixed(kernel.into()).into(), devices: vec![setup], ..SearchOptions::default() };
                let mut search = Search::new(&layout, &options).unwrap();
                search.set_single_levels(true);
                search.run(3).unwrap();
                let before = Counts::now();
                search.run(3).unwrap();
                let frontiers: Vec<u64> = search.records().iter().map(|record| record.stats.frontier_edges).collect();
                (Counts::since(&before).launches, frontiers)
            };
            let (plain, frontiers) = launches(None);
            let arcs = layout.csr().arcs() as u64;
            let (several, _) = launches(Some(1000));
            let more = if kernel.direction() == Direction::TopDown {
                // Each launch is followed by that for the pieces of long lists.
                2 * frontiers.iter().map(|edges| edges.div_ceil(1000).max(1) - 1).sum::<u64>()
            } else {
                // Each launch has the same number of words.
                frontiers.len() as u64 * (arcs.div_ceil(1000) - 1)
            };
            let at_least = if kernel.direction() == Direction::TopDown { more } else { more * 3 / 4 };
            assert!(more > 50 && (at_least..=more).contains(&(several - plain)), "{kernel:?}: {plain} and {several} launches, {more} more");
        }
    });
}

/// Neighbour lists are cut into as many buffers as the device's limit requires. A graph of another size finds its kernels already built.
#[test]
fn graphs_of_other_sizes_reuse_compiled_kernels() {
    const TEST: &str = "graphs_of_other_sizes_reuse_compiled_kernels";
    let cache = tempfile::tempdir().unwrap();
    let variables = [("SOCBFS_CACHE_DIR", cache.path().to_str().unwrap())];
    counting_with(module_path!(), TEST, &variables, |_| {
        let devices = devices(TEST, Limits { max_alloc_bytes: Some(200_000), ..Limits::default() });
        // The ranges are the numbers of parts: kernels are built for 1, for up to 4, and for up to 16.
        for (range, sizes) in [(1..=1, [10_000, 20_000]), (2..=4, [40_000, 90_000]), (5..=16, [150_000, 300_000])] {
            for (number, size) in sizes.into_iter().enumerate() {
                let list = EdgeList::new(6000, edges(6000, size, 9, 0), Listing::Once).unwrap();
                let layout = Layout::build(&list, &BuildOptions { order: Order::Degree, ..BuildOptions::default() }).unwrap();
                let setup = GpuSetup { device: devices.all[0].clone(), way: SharingMode::AllocHostPtr, options: GpuOptions::default() };
                let options =
                    SearchOptions { planner: "tg".parse::<Policy>().unwrap().into(), devices: vec![setup], ..SearchOptions::default() };
                let before = Counts::now();
                let search = Search::new(&layout, &options).unwrap();
                let (parts, programs) = (search.devices()[0].parts, Counts::since(&before).programs);
                assert!(range.contains(&parts), "{size} edges: {parts} parts");
                assert_eq!(programs, u64::from(number == 0), "{size} edges in {parts} parts");
            }
        }
    });
}

/// A handover carries the values of a range and no others. Here the others are overwritten, as a driver may do, and the searches must
/// still be right.
#[test]
fn values_outside_a_handover_are_not_read() {
    const TEST: &str = "values_outside_a_handover_are_not_read";
    counting_with(module_path!(), TEST, &[("SOCBFS_TEST_POISON", "1")], |info| {
        let devices = devices(TEST, Limits::default());
        let device = &devices.all[0];
        let mut slice = SharedSlice::<u32>::on(device, SharingMode::AllocHostPtr, 10, "a test").unwrap();
        slice.to_device(0..10).unwrap();
        slice.to_host(0..0).unwrap();
        assert_eq!(slice[..], [0xA5A5_A5A5; 10], "nothing is overwritten");
        drop(slice);
        let mapped = [SharingMode::AllocHostPtr, SharingMode::UseHostPtr, SharingMode::SvmCoarse];
        let variety = Variety {
            ways: mapped.into_iter().filter(|way| way.offered(info)).collect(),
            groups: vec![None],
            threads: vec![2],
            ..everything(device)
        };
        let path: Vec<_> = (1..70).map(|v| [v - 1, v]).collect();
        check(device, 70, &path, false, &[0, 35], &variety);
        check(device, 1500, &edges(1500, 6000, 3, 1), false, &[0, 700, 0], &variety);
    });
}
