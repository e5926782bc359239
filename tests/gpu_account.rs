//! The recorded times of a level: those of a level shared by CPU and GPU add up to its time, and device times belong to the right level.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;

use socbfs::{
    GpuOptions, GpuSetup,
    bfs::{GpuKernel, LevelPlan, LevelRecord, Placement, Strategy},
    graph::{BuildOptions, EdgeList, Layout, Listing, NONE, Order},
    memory::SharingMode,
    opencl::{Device, Limits},
    search::{Output, Run, Search, SearchOptions},
};
use socbfs_policy::{LevelDevice, Policy, Replay};

use crate::searches::{devices, edges, is_rusticl, is_slow};

/// Sum of the recorded parts of a shared level. The GPU's part is not added, since it runs during `cpu_ns` and `wait_ns`.
fn account(record: &LevelRecord) -> u64 {
    let LevelRecord { conversion_ns, decision_ns, handover_ns, cpu_ns, copy_ns, wait_ns, merge_ns, .. } = *record;
    conversion_ns + decision_ns + handover_ns + cpu_ns + copy_ns + wait_ns + merge_ns
}

#[test]
fn recorded_times_add_up_to_the_time_of_a_shared_level() {
    let n = 20_000;
    let edges = edges(n, 200_000, 5, 1);
    let layout = Layout::build(&EdgeList::new(n as usize, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    for device in
        devices("recorded_times_add_up_to_the_time_of_a_shared_level", Limits::default()).all.iter().filter(|device| !is_slow(device))
    {
        for way in [SharingMode::AllocHostPtr, SharingMode::Copy] {
            for policy in ["concurrent:0,0,500", "asynchronous:20,500"] {
                let devices = vec![GpuSetup { device: Arc::clone(device), way, options: GpuOptions::default() }];
                let options =
                    SearchOptions { planner: policy.parse::<Policy>().unwrap().into(), threads: 2, devices, ..SearchOptions::default() };
                let mut search = Search::new(&layout, &options).unwrap();
                // The system may run something else between two recorded times, but not at the same place in every search.
                let mut missed = Vec::new();
                let all_found = (0..9).any(|_| {
                    search.run(3).unwrap();
                    let shared = |record: &&LevelRecord| matches!(record.plan.placement, Placement::Split { .. } | Placement::Apart { .. });
                    // The first level also includes the time of beginning the search.
                    let records: Vec<_> = search.records().iter().filter(|record| record.stats.level > 0).filter(shared).collect();
                    assert!(!records.is_empty() && records.iter().all(|record| record.cpu_ns > 0 && record.wait_ns > 0));
                    assert!(records.iter().all(|record| account(record) <= record.elapsed_ns), "{records:?}");
                    missed =
                        records.iter().filter(|record| account(record) * 100 < record.elapsed_ns * 98).map(|&&record| record).collect();
                    missed.is_empty()
                });
                assert!(all_found, "{policy} {way} on {}: {missed:?}", device.info().name);
            }
        }
    }
}

/// Records have the device's own time of a level only if the device was opened for that.
#[test]
fn only_timed_devices_record_the_times_of_their_kernels() {
    let edges = edges(5000, 40_000, 5, 1);
    let layout = Layout::build(&EdgeList::new(5000, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    for device in
        devices("only_timed_devices_record_the_times_of_their_kernels", Limits::default()).all.iter().filter(|device| !is_slow(device))
    {
        let timed = Device::open_timed(device.info(), Limits::default()).unwrap();
        for policy in ["tg", "bg", "concurrent:0,0,500", "asynchronous:20,500"] {
            for (device, is_timed) in [(&timed, true), (device, false)] {
                let devices = vec![GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options: GpuOptions::default() }];
                let options =
                    SearchOptions { planner: policy.parse::<Policy>().unwrap().into(), threads: 2, devices, ..SearchOptions::default() };
                let mut search = Search::new(&layout, &options).unwrap();
                // Together these searches make more launches than a device keeps times for, so the times must be fetched in between.
                for _ in 0..if is_rusticl(device.info()) { 3 } else { 250 } {
                    search.run(3).unwrap();
                }
                let records = search.records();
                let on_device = |record: &&LevelRecord| record.plan.placement != Placement::Cpu;
                assert!(records.iter().filter(on_device).count() > 0);
                for record in records.iter().filter(on_device) {
                    assert_eq!(record.device_ns > 0, is_timed, "{policy} on {}: {record:?}", device.info().name);
                    // Kernels of one queue run one after another. (Those that begin a search are enqueued before its first level.)
                    assert!(record.device_ns <= record.elapsed_ns, "{policy} on {}: {record:?}", device.info().name);
                }
                assert!(records.iter().filter(|record| record.plan.placement == Placement::Cpu).all(|record| record.device_ns == 0));
            }
        }
    }
}

/// The kernel that maps the tree to original numbers ends a search, and is not counted in a level of the next search.
#[test]
fn levels_on_the_cpu_have_no_device_time() {
    // The root has one neighbour, so the first level, and no other, is small.
    let mut list = edges(5000, 40_000, 5, 1);
    list.push([5000, 3]);
    let list = EdgeList::new(5001, list, Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions { order: Order::Degree, keep_leaves: true, ..BuildOptions::default() }).unwrap();
    for device in devices("levels_on_the_cpu_have_no_device_time", Limits::default()).all.iter().filter(|device| !is_slow(device)) {
        let timed = Device::open_timed(device.info(), Limits::default()).unwrap();
        let devices = vec![GpuSetup { device: timed, way: SharingMode::AllocHostPtr, options: GpuOptions::default() }];
        let policy = "adaptive:top_down_gpu_from=2,bottom_up_gpu_from=0".parse::<Policy>().unwrap();
        let mut search =
            Search::new(&layout, &SearchOptions { planner: policy.into(), threads: 1, devices, ..SearchOptions::default() }).unwrap();
        for _ in 0..3 {
            search.run(5000).unwrap();
            let (on_cpu, on_device): (Vec<&LevelRecord>, Vec<&LevelRecord>) =
                search.records().iter().partition(|record| record.plan.placement == Placement::Cpu);
            assert!(!on_cpu.is_empty() && !on_device.is_empty());
            for record in on_cpu {
                assert_eq!(record.device_ns, 0, "on {}: {record:?}", device.info().name);
            }
        }
    }
}

/// A device keeps the times of 1024 launches until they are fetched. A long asynchronous search launches more.
#[test]
fn long_asynchronous_searches_count_the_times_of_all_kernels() {
    // A long path, and a short one.
    let (n, long) = (3300, 3000);
    let paths = (1..n).filter(|&v| v != long).map(|v| [v - 1, v]).collect();
    let layout = Layout::build(&EdgeList::new(n as usize, paths, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    let test = "long_asynchronous_searches_count_the_times_of_all_kernels";
    for device in devices(test, Limits::default()).all.iter().filter(|device| !is_slow(device) && !is_rusticl(device.info())) {
        let timed = Device::open_timed(device.info(), Limits::default()).unwrap();
        let devices = vec![GpuSetup { device: timed, way: SharingMode::AllocHostPtr, options: GpuOptions::default() }];
        let policy = "asynchronous:1,999".parse::<Policy>().unwrap();
        let mut search =
            Search::new(&layout, &SearchOptions { planner: policy.into(), threads: 2, devices, ..SearchOptions::default() }).unwrap();
        let mut told = |root| {
            let levels = search.run(root).unwrap().levels;
            (levels, search.records().iter().map(|record| record.device_ns).sum::<u64>())
        };
        // The least of several times, since other programs may run at the same time.
        let (of_short, short) = (0..5).map(|_| told(3150)).min_by_key(|(_, ns)| *ns).unwrap();
        let (of_long, long) = told(long / 2);
        assert!(of_long > 1024 && of_long > 9 * of_short, "levels: {of_long} and {of_short}");
        assert!(long > 7 * short, "{long} ns of {of_long} levels, {short} ns of {of_short}");
    }
}

/// A tree whose last level has only leaves, which the layout leaves out, has that level also in the outcome of `run_into`.
#[test]
fn a_last_level_of_leaves_is_counted_with_a_device() {
    // The path 0 - 1 - 2 - 3, and a star, so that degrees decide the order.
    let mut edges = vec![[0, 1], [1, 2], [2, 3]];
    edges.extend((5..40).map(|leaf| [4, leaf]));
    let list = EdgeList::new(40, edges, Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions { order: Order::Degree, ..BuildOptions::default() }).unwrap();
    assert!(layout.stats().leaves > 30);
    for device in devices("a_last_level_of_leaves_is_counted_with_a_device", Limits::default()).all.iter().filter(|device| !is_slow(device))
    {
        for policy in ["tg", "bg", "concurrent:0,0,500"] {
            let devices = vec![GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options: GpuOptions::default() }];
            let options =
                SearchOptions { planner: policy.parse::<Policy>().unwrap().into(), threads: 1, devices, ..SearchOptions::default() };
            let mut search = Search::new(&layout, &options).unwrap();
            for (root, levels) in [(1, 3), (0, 4), (4, 2), (5, 3)] {
                assert_eq!(search.run(root).unwrap().levels, levels, "{policy}, root {root}");
                let (mut parents, mut found) = (vec![0; 40], vec![0; 40]);
                let both = Output { parents: Some(&mut parents), levels: Some(&mut found), ..Output::default() };
                assert_eq!(search.run(Run { output: Some(both), ..root.into() }).unwrap().levels, levels, "{policy}, root {root}");
                assert_eq!(found.iter().filter(|&&level| level != NONE).max(), Some(&(levels - 1)), "{policy}, root {root}");
            }
        }
    }
}

/// The time of a device's part begins with its first kernel, since the device may be done before the host waits for it.
#[test]
fn the_device_part_of_a_level_has_the_time_of_its_kernels() {
    let n = 20_000;
    let edges = edges(n, 400_000, 5, 1);
    let layout = Layout::build(&EdgeList::new(n as usize, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    for device in
        devices("the_device_part_of_a_level_has_the_time_of_its_kernels", Limits::default()).all.iter().filter(|device| !is_slow(device))
    {
        let timed = Device::open_timed(device.info(), Limits::default()).unwrap();
        let devices = vec![GpuSetup { device: timed, way: SharingMode::AllocHostPtr, options: GpuOptions::default() }];
        let mut search = Search::new(
            &layout,
            &SearchOptions { planner: "concurrent".parse::<Policy>().unwrap().into(), threads: 2, devices, ..SearchOptions::default() },
        )
        .unwrap();
        search.set_single_levels(true);
        for kernel in GpuKernel::ALL {
            for (permille, in_turn) in [(200, true), (500, true), (800, true), (500, false)] {
                let plans = [Strategy::Tc.plan(), Strategy::Tc.plan(), LevelPlan::split(kernel, permille), Strategy::Bc.plan()];
                search.set_planner(Policy::Replay(Replay::new(&plans)).on(LevelDevice::Cpu)).unwrap();
                search.set_split_in_turn(in_turn);
                for _ in 0..9 {
                    search.run(Run { uncounted: true, ..3.into() }).unwrap();
                    let record = search.records().iter().find(|record| record.stats.level == 2).unwrap();
                    assert!(
                        record.device_ns > 0 && record.device_ns <= record.gpu_ns,
                        "{kernel:?} {permille} on {}: {record:?}",
                        device.info().name
                    );
                }
            }
        }
    }
}
