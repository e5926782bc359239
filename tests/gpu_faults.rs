//! Devices that are lost at every point of a search, and drivers that return wrong numbers or refuse calls.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{
    collections::BTreeSet,
    error::Error,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use nix::{
    libc,
    sys::{
        signal::{Signal, kill},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, fork},
};
use socbfs::{
    GpuOptions, GpuSetup, ParallelThresholds,
    bfs::{Direction, GpuKernel, Placement},
    graph::{BuildOptions, EdgeList, Layout, Listing, NONE, Order},
    memory::{Owner, SharedSlice, SharingMode},
    opencl::{Device, FORKED, Limits, OpenClError, leaked_bytes},
    search::{Run, Search, SearchError, SearchOptions},
};
use socbfs_policy::{LevelDevice, Policy};

use crate::{
    implementations::{self, inside, losing_library, refusing_library, skipped},
    losing::{POCL, points, with_a_device_that_continues_after_its_loss, with_a_device_that_never_answers, with_a_device_to_lose},
    reference::Reference,
    searches::{all_combinations, devices, edges, is_one_in_three},
};

/// Runs `body` with a PoCL device and the path of a file. Once a file with the number N is written, the driver refuses call N (from 0) of
/// those that make an object or set an argument, and removes the file.
fn with_a_driver_that_refuses(test: &str, body: impl Fn(&Arc<Device>, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = refusing_library(folder.path()) else {
        return skipped(test, "no C compiler, or no libOpenCL.so.1 to link to");
    };
    if implementations::device_of(test, POCL).is_none() {
        return;
    }
    let [file, cache] = ["refuse", "cache"].map(|name| folder.path().join(name));
    let variables = [
        // What is remembered of this driver is not of other tests.
        ("SOCBFS_CACHE_DIR", cache.to_str().unwrap()),
        ("OPENCL_DYLIB_PATH", library.to_str().unwrap()),
        ("SOCBFS_TEST_DEVICE", POCL),
        ("SOCBFS_TEST_REFUSE_FILE", file.to_str().unwrap()),
    ];
    if inside(module_path!(), test, &variables) {
        let file = std::env::var("SOCBFS_TEST_REFUSE_FILE").unwrap();
        let devices = devices(test, Limits::default());
        body(&devices.all[0], &file);
    }
}

/// Policies that cover every way in which a device takes part in a search.
fn policies() -> Vec<(Policy, LevelDevice)> {
    let bgc = LevelDevice::Gpu(GpuKernel::Bgc);
    vec![
        ("tg".parse().unwrap(), LevelDevice::Cpu),
        ("tgm".parse().unwrap(), LevelDevice::Cpu),
        ("bg".parse().unwrap(), LevelDevice::Cpu),
        ("alpha-beta".parse().unwrap(), bgc),
        ("sampled".parse().unwrap(), bgc),
        ("selective:10,0".parse().unwrap(), LevelDevice::Cpu),
        ("concurrent:0,0,500".parse().unwrap(), LevelDevice::Cpu),
        ("adaptive:5,60,never,300,0,500,never,700".parse().unwrap(), LevelDevice::Cpu),
        ("asynchronous:20,500".parse().unwrap(), LevelDevice::Cpu),
    ]
}

fn options(device: &Arc<Device>, way: SharingMode, policy: Policy, runs: LevelDevice, fall_back: bool) -> SearchOptions {
    let options = GpuOptions { run_arcs: Some(8), launch_arcs: Some(4000), ..GpuOptions::default() };
    let devices = vec![GpuSetup { device: Arc::clone(device), way, options }];
    SearchOptions { planner: policy.on(runs), threads: 2, devices, fall_back, ..SearchOptions::default() }
}

/// Every policy with a third of the offered sharing modes, so that each mode is tried with several policies.
fn policies_and_ways(device: &Device) -> Vec<(Policy, LevelDevice, Vec<SharingMode>)> {
    let ways: Vec<_> = SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())).collect();
    let of = |number| ways.iter().enumerate().filter(move |&(way, _)| is_one_in_three(number, way)).map(|(_, &way)| way).collect();
    policies().into_iter().enumerate().map(|(number, (policy, runs))| (policy, runs, of(number))).collect()
}

#[test]
fn a_search_continues_without_a_lost_device() {
    const TEST: &str = "a_search_continues_without_a_lost_device";
    with_a_device_to_lose(module_path!(), TEST, |device, file| {
        let edges = edges(1200, 5000, 5, 1);
        let layout = Layout::build(&EdgeList::new(1200, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3, 700]);
        for (policy, runs, ways) in policies_and_ways(device) {
            for way in ways {
                let options = options(device, way, policy.clone(), runs, true);
                let mut lost = 0;
                for after in points() {
                    let mut search = Search::new(&layout, &options).unwrap();
                    reference.compare_with(&layout, &options, &mut search);
                    assert_eq!(search.fallen_back(), None);
                    fs::write(file, after.to_string()).unwrap();
                    // The results are right, whether the device is lost in the first search, the second, or none.
                    reference.compare_with(&layout, &options, &mut search);
                    let reason = search.fallen_back().map(str::to_owned);
                    // Later searches are right too, and do not use the device.
                    reference.compare_with(&layout, &options, &mut search);
                    assert!(search.devices().iter().any(|lost| lost.name == device.info().name), "what it began with");
                    if let Some(reason) = &reason {
                        let error = search.set_planner("tg".parse::<Policy>().unwrap().on(runs)).unwrap_err().to_string();
                        assert!(error.contains(reason) && !error.contains("--device"), "{error}");
                    }
                    drop(search);
                    fs::remove_file(file).unwrap();
                    let Some(reason) = reason else { break };
                    for words in [&device.info().name, "CL_OUT_OF_RESOURCES", "gave the device up"] {
                        assert!(reason.contains(words), "{policy} {way} after {after}: no {words} in {reason}");
                    }
                    lost += 1;
                }
                // Each search has several commands: reset, levels, handovers, transfer of the tree.
                assert!(lost >= 6, "{policy} {way}: lost at {lost} points only");
            }
        }
    });
}

/// The settings of a search also apply to the engine that takes over.
#[test]
fn a_search_that_loses_its_device_keeps_its_settings() {
    with_a_device_to_lose(module_path!(), "a_search_that_loses_its_device_keeps_its_settings", |device, file| {
        // The graph has levels that threads share, and a path of small levels.
        let mut list = edges(1200, 5000, 5, 1);
        list.extend((1200..1400).map(|v| [v - 1, v]));
        let layout = Layout::build(&EdgeList::new(1400, list, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let parallel = Some(ParallelThresholds { arcs: 1, ..ParallelThresholds::default() });
        let options = options(device, SharingMode::AllocHostPtr, "tg".parse().unwrap(), LevelDevice::Cpu, true);
        let options = SearchOptions { parallel, ..options };
        let mut search = Search::new(&layout, &options).unwrap();
        search.set_single_levels(true);
        fs::write(file, "9").unwrap();
        let elapsed = search.run(3).unwrap().elapsed.as_nanos() as u64;
        fs::remove_file(file).unwrap();
        assert!(search.fallen_back().is_some());
        assert!(search.records().len() > 190 && search.records().iter().all(|record| record.levels == 1), "each level by itself");
        // The time of the search includes the attempt on the device, before the levels on the CPU.
        let levels: u64 = search.records().iter().map(|record| record.elapsed_ns).sum();
        assert!(levels < elapsed, "{levels} >= {elapsed}");
    });
}

/// A policy that decides only directions needs no device, so it remains the policy of a search that has lost its own.
#[test]
fn a_search_that_loses_its_device_keeps_a_policy_of_directions() {
    with_a_device_to_lose(module_path!(), "a_search_that_loses_its_device_keeps_a_policy_of_directions", |device, file| {
        let list = EdgeList::new(1200, edges(1200, 5000, 5, 1), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let levels_before_the_turn = |policy: &str, runs: LevelDevice| {
            let mut search =
                Search::new(&layout, &options(device, SharingMode::AllocHostPtr, policy.parse().unwrap(), runs, true)).unwrap();
            fs::write(file, "9").unwrap();
            search.run(3).unwrap();
            fs::remove_file(file).unwrap();
            assert!(search.fallen_back().is_some(), "{policy}");
            search.run(3).unwrap();
            let levels = search.records();
            levels.iter().position(|record| record.plan.direction == Direction::BottomUp).unwrap_or(levels.len())
        };
        // With such an alpha, no frontier is large enough to turn as long as edges are left.
        let late = levels_before_the_turn("alpha-beta:0.000001,18", LevelDevice::Gpu(GpuKernel::Bg));
        assert!(late > levels_before_the_turn("alpha-beta:15,18", LevelDevice::Gpu(GpuKernel::Bg)), "{late}");
        // This one searches on a device alone, so the default policy replaces it.
        assert!(late > levels_before_the_turn("tg", LevelDevice::Cpu), "{late}");
    });
}

/// The device times of a failed search are not counted in the next one.
#[test]
fn kernel_times_of_a_failed_search_are_not_counted_in_the_next() {
    with_a_device_to_lose(module_path!(), "kernel_times_of_a_failed_search_are_not_counted_in_the_next", |device, file| {
        let list = EdgeList::new(1200, edges(1200, 5000, 5, 1), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let timed = Device::open_timed(device.info(), Limits::default()).unwrap();
        let policy = "adaptive:top_down_gpu_from=100,bottom_up_gpu_from=0".parse().unwrap();
        let mut search = Search::new(&layout, &options(&timed, SharingMode::AllocHostPtr, policy, LevelDevice::Cpu, false)).unwrap();
        let mut lost = 0;
        for after in points() {
            fs::write(file, after.to_string()).unwrap();
            let outcome = search.run(3);
            fs::remove_file(file).unwrap();
            if outcome.is_ok() {
                break;
            }
            lost += 1;
            search.run(3).unwrap();
            for record in search.records().iter().filter(|record| record.plan.placement == Placement::Cpu) {
                assert_eq!(record.device_ns, 0, "lost after {after}: {record:?}");
            }
        }
        assert!(lost >= 3, "{lost}");
    });
}

/// Loses the device at every command of a search, and searches again with the same [`Search`]: while the device is lost, and after it is
/// back.
#[test]
fn searches_after_a_failed_search_are_right() {
    const TEST: &str = "searches_after_a_failed_search_are_right";
    with_a_device_that_continues_after_its_loss(module_path!(), TEST, Some(5), |device, file| {
        let edges = edges(1200, 5000, 5, 1);
        let layout = Layout::build(&EdgeList::new(1200, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3]);
        for (policy, runs, ways) in policies_and_ways(device) {
            for way in ways {
                let options = options(device, way, policy.clone(), runs, false);
                let mut search = Search::new(&layout, &options).unwrap();
                let mut after = 0;
                loop {
                    fs::write(file, after.to_string()).unwrap();
                    let outcome = search.run(3);
                    if outcome.is_ok() {
                        fs::remove_file(file).unwrap();
                        break;
                    }
                    // No tree is returned, and the device's memory is not touched.
                    assert!(search.parents().is_empty() && search.result(3).parent.is_empty(), "{policy} {way} after {after}");
                    let error = search.run(3).unwrap_err();
                    assert!(matches!(error, SearchError::Device { .. }), "{error}");
                    assert!(error.to_string().contains(&device.info().name), "{error}");
                    let source = error.source().unwrap().to_string();
                    assert!(source.contains("CL_OUT_OF_RESOURCES") && source.contains("gave the device up"), "{source}");
                    assert_eq!(search.fallen_back(), None);
                    fs::remove_file(file).unwrap();
                    reference.compare_with(&layout, &options, &mut search);
                    after += 1;
                }
                reference.compare_with(&layout, &options, &mut search);
                assert!(after >= 6, "{policy} {way}: lost at {after} points only");
            }
        }
    });
}

/// Nothing that a device was given ends any more, and its driver returns from no call that waits, as drivers of real GPUs do after a kernel
/// has hung. The search ends nevertheless, nothing that the device may still touch is freed, and so does the process, although the driver
/// waits for its device at the end of it too.
#[test]
fn a_search_ends_without_a_device_that_never_answers() {
    const TEST: &str = "a_search_ends_without_a_device_that_never_answers";
    // The kernels that wait begin, on memory that must still be there, after the search that lost the device is dropped.
    with_a_device_that_never_answers(module_path!(), TEST, 1500, |device, file| {
        let edges = edges(1200, 5000, 5, 1);
        let layout = Layout::build(&EdgeList::new(1200, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3, 700]);
        let report = std::env::var("SOCBFS_TEST_LOSE_REPORT").unwrap();
        let mut lost = 0;
        for (number, (policy, runs, ways)) in policies_and_ways(device).into_iter().enumerate() {
            for (turn, way) in ways.into_iter().enumerate() {
                let fall_back = (number + turn) % 3 != 0;
                let (what, before) = (format!("{policy} {way}, falls back: {fall_back}"), leaked_bytes());
                // What is lost stays lost.
                let device = Device::open(device.info(), Limits { timeout_s: Some(1), ..Limits::default() }).unwrap();
                let options = options(&device, way, policy.clone(), runs, fall_back);
                let mut search = Search::new(&layout, &options).unwrap();
                reference.compare_with(&layout, &options, &mut search);
                fs::write(file, format!("{}", 4 + 5 * turn)).unwrap();
                let begin = Instant::now();
                let outcome = search.run(3);
                let (elapsed, said) = (
                    begin.elapsed(),
                    match (&outcome, search.fallen_back()) {
                        (Ok(_), Some(reason)) => reason.to_owned(),
                        (Err(error), None) => format!("{error}: {}", error.source().unwrap()),
                        _ => panic!("{what}: {outcome:?}"),
                    },
                );
                assert_eq!(outcome.is_ok(), fall_back, "{what}: {said}");
                for words in [&device.info().name, "a wait of ", "DEVICE_TIMEOUT", "SOCBFS_DEVICE_TIMEOUT", "--device cpu"] {
                    assert!(said.contains(words), "{what}: no {words} in {said}");
                }
                assert!(elapsed >= Duration::from_secs(1) && elapsed < Duration::from_secs(10), "{what}: {elapsed:?}");
                if fall_back {
                    reference.compare_with(&layout, &options, &mut search);
                } else {
                    // Later calls fail at once.
                    let begin = Instant::now();
                    assert!(search.run(3).is_err() && device.finish().is_err() && begin.elapsed() < Duration::from_millis(900), "{what}");
                }
                drop(search);
                drop(options);
                drop(device);
                assert!(leaked_bytes() > before, "{what}: nothing was kept");
                std::thread::sleep(Duration::from_millis(1000));
                fs::remove_file(file).unwrap();
                let text = fs::read_to_string(&report).unwrap_or_default();
                lost += 1;
                assert_eq!(text, "hangs\n".repeat(lost), "{what}");
            }
        }
        assert!(lost >= policies().len(), "{lost}");
    });
}

/// A search that ends early leaves work for the next one. If the device is lost in that work, the tree of the search before is gone too.
#[test]
fn a_device_lost_after_an_early_end_leaves_no_tree() {
    with_a_device_to_lose(module_path!(), "a_device_lost_after_an_early_end_leaves_no_tree", |device, file| {
        let list = EdgeList::new(1200, edges(1200, 5000, 5, 1), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let options = options(device, SharingMode::AllocHostPtr, "tg".parse().unwrap(), LevelDevice::Cpu, false);
        let mut search = Search::new(&layout, &options).unwrap();
        search.run(Run { depth: Some(1), ..3.into() }).unwrap();
        assert_eq!(search.parents()[3], 3);
        fs::write(file, "0").unwrap();
        assert!(matches!(search.run(3), Err(SearchError::Device { .. })));
        assert!(search.parents().is_empty() && search.result(3).parent.is_empty());
        fs::remove_file(file).unwrap();
        search.run(3).unwrap();
        assert_eq!(search.parents()[3], 3);
    });
}

/// The exit code of `child`; `None` if it does not end by itself within a minute.
fn exit_code(child: Pid) -> Option<i32> {
    let begin = Instant::now();
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG)).unwrap() {
            WaitStatus::Exited(_, code) => return Some(code),
            WaitStatus::StillAlive if begin.elapsed() > Duration::from_secs(60) => {
                kill(child, Signal::SIGKILL).unwrap();
                waitpid(child, None).unwrap();
                return None;
            }
            WaitStatus::StillAlive => std::thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

/// A fork copies no thread of a driver, so a call of the driver in the child may wait for ever.
#[test]
fn a_forked_process_calls_no_driver() {
    const TEST: &str = "a_forked_process_calls_no_driver";
    if implementations::device_of(TEST, POCL).is_none() || !inside(module_path!(), TEST, &[("SOCBFS_TEST_DEVICE", POCL)]) {
        return;
    }
    let devices = devices(TEST, Limits::default());
    let device = &devices.all[0];
    let list = EdgeList::new(1200, edges(1200, 5000, 5, 1), Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    for way in SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())) {
        let new = |fall_back| Search::new(&layout, &options(device, way, "tg".parse().unwrap(), LevelDevice::Cpu, fall_back)).unwrap();
        let (mut named, mut optional) = (new(false), new(true));
        let reached = optional.run(3).unwrap().reached;
        assert_eq!(named.run(3).unwrap().reached, reached);
        // SAFETY: the child searches, frees memory, and ends without the parent's handlers.
        match unsafe { fork() }.unwrap() {
            ForkResult::Child => {
                let refused = matches!(named.run(3), Err(SearchError::Device { source, .. }) if source.code == FORKED);
                let continued = optional.run(3).is_ok_and(|outcome| outcome.reached == reached) && optional.fallen_back().is_some();
                let unlisted = matches!(socbfs::devices(), Err(OpenClError::Forked));
                drop((named, optional));
                // SAFETY: it ends the process.
                unsafe { libc::_exit(if refused && continued && unlisted { 7 } else { 1 }) }
            }
            ForkResult::Parent { child } => assert_eq!(exit_code(child), Some(7), "{way}"),
        }
        // The parent still has its device.
        assert_eq!(named.run(3).unwrap().reached, reached);
        assert_eq!(optional.run(3).unwrap().reached, reached);
        assert_eq!(optional.fallen_back(), None);
    }
}

#[test]
fn a_device_lost_during_setup_is_an_error() {
    const TEST: &str = "a_device_lost_during_setup_is_an_error";
    with_a_device_to_lose(module_path!(), TEST, |device, file| {
        let list = EdgeList::new(1200, edges(1200, 5000, 5, 1), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let mut lost = 0;
        for after in points() {
            fs::write(file, after.to_string()).unwrap();
            let outcome =
                Search::new(&layout, &options(device, SharingMode::AllocHostPtr, "concurrent".parse().unwrap(), LevelDevice::Cpu, true));
            fs::remove_file(file).unwrap();
            // One command that succeeds resets the count.
            device.finish().unwrap();
            let Err(error) = outcome else { break };
            let text = format!("{error}: {:?}", error.source().map(ToString::to_string));
            assert!(text.contains(&device.info().name) && text.contains("CL_OUT_OF_RESOURCES"), "{text}");
            lost += 1;
        }
        assert!(lost >= 12, "lost at {lost} points only");
    });
}

/// Milliseconds after its loss at which a device runs its pending kernels.
const GOES_ON: u64 = 15;

/// Loses the device in the middle of searches, drops everything that they used while kernels are still pending, and uses the memory again.
/// The kernels then run on the memory they were given: had it been freed or unmapped, they would overwrite other data or fault. This is
/// done at `points` of every policy and sharing mode.
fn check_memory_of_a_lost_device(test: &str, points: std::ops::Range<u32>) {
    with_a_device_that_continues_after_its_loss(module_path!(), test, Some(GOES_ON), |device, file| {
        let edges = edges(1200, 5000, 5, 1);
        let layout = || Layout::build(&EdgeList::new(1200, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3]);
        let report = std::env::var("SOCBFS_TEST_LOSE_REPORT").unwrap();
        let (mut lost, mut tried) = (0, 0);
        for (policy, runs, ways) in policies_and_ways(device) {
            for way in ways {
                tried += 1;
                for after in points.clone() {
                    // A new device each time, so that nothing else keeps its context and queue.
                    let device = Device::open(device.info(), Limits::default()).unwrap();
                    let ours = layout();
                    let mut search = Search::new(&ours, &options(&device, way, policy.clone(), runs, false)).unwrap();
                    fs::write(file, after.to_string()).unwrap();
                    let before = leaked_bytes();
                    let failed = search.run(3).is_err();
                    drop(search);
                    drop(device);
                    drop(ours);
                    // Allocates freed memory again, and writes to it.
                    let again = layout();
                    let alone = SearchOptions { threads: 1, ..SearchOptions::default() };
                    for _ in 0..3 {
                        reference.compare(&again, &alone);
                    }
                    if failed {
                        std::thread::sleep(Duration::from_millis(2 * GOES_ON));
                    }
                    reference.compare(&again, &alone);
                    fs::remove_file(file).unwrap();
                    let said = fs::read_to_string(&report).unwrap_or_default();
                    assert!(said.is_empty(), "{policy} {way} after {after}:\n{said}");
                    assert!(!failed || leaked_bytes() > before, "{policy} {way} after {after}: nothing was kept");
                    lost += usize::from(failed);
                }
            }
        }
        assert!(lost >= tried && tried >= policies().len(), "lost only {lost} times in {tried} combinations of policies and sharing modes");
    });
}

#[test]
fn memory_that_a_lost_device_may_still_use_is_kept() {
    // Under Valgrind (tests/valgrind) a point takes seconds, so only the first point with pending kernels is run.
    let points = if std::env::var_os(implementations::UNDER).is_some() { 3..4 } else { 0..6 };
    check_memory_of_a_lost_device("memory_that_a_lost_device_may_still_use_is_kept", points);
}

#[test]
#[ignore = "takes minutes"]
fn memory_that_a_lost_device_may_still_use_is_kept_under_load() {
    const TEST: &str = "memory_that_a_lost_device_may_still_use_is_kept_under_load";
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let busy = || {
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
        };
        let load: Vec<_> = (0..std::thread::available_parallelism().map_or(2, usize::from)).map(|_| scope.spawn(busy)).collect();
        // More points than in the test above.
        let outcome = std::panic::catch_unwind(|| check_memory_of_a_lost_device(TEST, 0..9));
        stop.store(true, Relaxed);
        drop(load);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

/// The memory of a transfer that failed is hidden from the host: the transfer may still be under way.
#[test]
fn memory_of_a_failed_transfer_is_hidden_from_the_host() {
    with_a_device_to_lose(module_path!(), "memory_of_a_failed_transfer_is_hidden_from_the_host", |device, file| {
        // Fine-grained shared memory needs no transfer.
        let is_transferred = |way: &SharingMode| way.offered(device.info()) && *way != SharingMode::SvmFine;
        for way in SharingMode::ALL.into_iter().filter(is_transferred) {
            for reads in [false, true] {
                let mut slice = SharedSlice::<u32>::on(device, way, 100, "a test").unwrap();
                fs::write(file, "0").unwrap();
                let outcome = if reads { slice.read_both(0..100) } else { slice.to_device(0..100) };
                assert!(outcome.is_err() && slice.is_empty() && slice.owner() == Owner::Device, "{way}");
                assert!(slice.to_host(0..100).is_err() && slice.is_empty(), "{way}: before the device is back");
                fs::remove_file(file).unwrap();
            }
        }
    });
}

/// A driver with a bug overwrites one piece of the data that a search transfers to the host, each piece in turn. The search ends with an
/// error that names the driver, or the piece did not matter. It never touches host memory outside of its own, and later searches are right.
#[test]
fn corrupt_data_from_a_device_is_an_error_or_harmless() {
    const TEST: &str = "corrupt_data_from_a_device_is_an_error_or_harmless";
    with_a_device_to_lose(module_path!(), TEST, |device, _| {
        let edges = edges(1200, 5000, 5, 1);
        let layout = Layout::build(&EdgeList::new(1200, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3]);
        let file = std::env::var("SOCBFS_TEST_LIE_FILE").unwrap();
        for (policy, runs) in policies() {
            let mut found = 0;
            for way in [SharingMode::AllocHostPtr, SharingMode::Copy] {
                let options = options(device, way, policy.clone(), runs, false);
                let mut search = Search::new(&layout, &options).unwrap();
                let right = search.run(3).map(|outcome| (outcome.reached, outcome.levels)).unwrap();
                for (piece, value) in (1..24).flat_map(|piece| [0, 7, 0xffff_fff0u32].map(|value| (piece, value))) {
                    fs::write(&file, format!("{piece} {value}")).unwrap();
                    let outcome = search.run(3);
                    fs::remove_file(&file).unwrap();
                    match outcome {
                        Ok(outcome) => {
                            assert!(search.parents().iter().all(|&parent| parent < 1200 || parent == NONE));
                            // A possible number is not recognised as wrong, so results may be wrong.
                            if (outcome.reached, outcome.levels) != right {
                                search = Search::new(&layout, &options).unwrap();
                            }
                        }
                        Err(error) => {
                            let text = format!("{error}: {}", error.source().unwrap());
                            for words in [&device.info().name, &device.info().driver, "WRONG_NUMBERS", "bug of its driver"] {
                                assert!(text.contains(words), "{policy} {way} piece {piece}: no {words} in {text}");
                            }
                            found += 1;
                        }
                    }
                    reference.compare_with(&layout, &options, &mut search);
                }
            }
            assert!(found >= 4, "{policy}: {found} lies were found");
        }
    });
}

/// All kernels.
const KERNELS: [&str; 19] = [
    "reset",
    "seed",
    "tg",
    "tg_pieces",
    "tg_run",
    "tgm",
    "tgm_pieces",
    "bg",
    "bgc",
    "bitmap_to_queue",
    "mask_to_queue",
    "to_mask",
    "sample",
    "sample_hubs",
    "map_back",
    "apply_words",
    "gather_parents",
    "stamp_queue",
    "stamp_bitmap",
];

/// A driver ends a kernel that runs too long, and reports no error: each kernel in turn, in a search that follows another one. The search
/// fails, or the kernel was not needed, and the next search is right.
#[test]
fn a_kernel_that_did_not_run_is_an_error_or_harmless() {
    const TEST: &str = "a_kernel_that_did_not_run_is_an_error_or_harmless";
    with_a_device_to_lose(module_path!(), TEST, |device, _| {
        // A vertex with many neighbours, so that work-groups cut its list.
        let edges: Vec<_> = edges(1200, 5000, 5, 1).into_iter().chain((1..200).map(|i| [3, 6 * i])).collect();
        let list = EdgeList::new(1200, edges.clone(), Listing::Once).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3, 700]);
        let file = std::env::var("SOCBFS_TEST_DROP_FILE").unwrap();
        let mut needed = BTreeSet::new();
        for order in [Order::Degree, Order::Original] {
            let layout = Layout::build(&list, &BuildOptions { order, ..BuildOptions::default() }).unwrap();
            for (policy, runs) in policies() {
                let mut found = Vec::new();
                for kernel in KERNELS {
                    let options = options(device, SharingMode::AllocHostPtr, policy.clone(), runs, false);
                    let mut search = Search::new(&layout, &options).unwrap();
                    search.run(3).unwrap();
                    fs::write(&file, kernel).unwrap();
                    let outcome = search.run(700);
                    fs::remove_file(&file).unwrap();
                    match outcome {
                        Ok(_) => assert_eq!(search.result(700).level, reference.levels(700), "{policy} {order:?} without {kernel}"),
                        Err(_) => found.push(kernel),
                    }
                    reference.compare_with(&layout, &options, &mut search);
                }
                assert!(found.len() >= 2, "{policy} {order:?} needs {found:?}");
                // Parents in the original order are not put into another one.
                let is_mapped = found.contains(&"map_back");
                assert!(!is_mapped || order == Order::Degree, "{policy} {order:?} needs {found:?}");
                assert!(is_mapped || order == Order::Original || !["tg", "tgm", "bg"].contains(&policy.kind()), "{policy} needs {found:?}");
                needed.extend(found);
            }
        }
        // A search does without samples, and none of these policies leaves a mask. The others are needed by one policy at least.
        let needless: Vec<_> = KERNELS.into_iter().filter(|kernel| !needed.contains(kernel)).collect();
        assert!(needless.iter().all(|kernel| ["sample", "sample_hubs", "mask_to_queue"].contains(kernel)), "no policy needs {needless:?}");
    });
}

/// A driver accepts every launch and runs none. No policy and no sharing mode takes its device.
#[test]
fn a_device_that_computes_nothing_is_refused() {
    with_a_device_to_lose(module_path!(), "a_device_that_computes_nothing_is_refused", |device, _| {
        let list = EdgeList::new(1200, edges(1200, 5000, 5, 1), Listing::Once).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let file = std::env::var("SOCBFS_TEST_DROP_FILE").unwrap();
        fs::write(&file, "*").unwrap();
        for way in SharingMode::ALL.into_iter().filter(|way| way.offered(device.info())) {
            for (policy, runs) in policies() {
                let error = Search::new(&layout, &options(device, way, policy.clone(), runs, true)).map(drop).unwrap_err().to_string();
                assert!(error.contains(&device.info().name) && error.contains("finds wrong levels"), "{policy} {way}: {error}");
            }
        }
        fs::remove_file(&file).unwrap();
    });
}

/// One of two devices is lost: the error names it and not the other, and the same [`Search`] is right after the device is back.
#[test]
fn an_error_names_which_of_two_devices_is_lost() {
    const TEST: &str = "an_error_names_which_of_two_devices_is_lost";
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = losing_library(folder.path()) else {
        return skipped(TEST, "no C compiler, or no libOpenCL.so.1 to link to");
    };
    let Some(info) = implementations::device_of(TEST, POCL) else { return };
    let file = folder.path().join("after");
    // PoCL 3 calls the two "basic-..." and "pthread-...", later versions "cpu-minimal-..." and "cpu-...".
    let basic = if info.name.starts_with("pthread") { "basic" } else { "minimal" };
    for lost in [basic, &*info.name] {
        let variables = [
            ("OPENCL_DYLIB_PATH", library.to_str().unwrap()),
            ("POCL_DEVICES", "basic pthread"),
            ("SOCBFS_TEST_DEVICE", POCL),
            ("SOCBFS_TEST_LOSE_DEVICE", lost),
            ("SOCBFS_TEST_LOSE_FILE", file.to_str().unwrap()),
        ];
        if !inside(module_path!(), TEST, &variables) {
            continue;
        }
        let (lost, file) = (std::env::var("SOCBFS_TEST_LOSE_DEVICE").unwrap(), std::env::var("SOCBFS_TEST_LOSE_FILE").unwrap());
        let devices = devices(TEST, Limits::default());
        assert_eq!(devices.all.len(), 2, "{:?}", devices.all);
        let edges = edges(1200, 5000, 5, 1);
        let layout = Layout::build(&EdgeList::new(1200, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3]);
        let other = &devices.all.iter().find(|device| !device.info().name.contains(&lost)).unwrap().info().name;
        for fall_back in [false, true] {
            let setup = |device: &Arc<Device>| GpuSetup {
                device: Arc::clone(device),
                way: SharingMode::AllocHostPtr,
                options: GpuOptions::default(),
            };
            let options = SearchOptions {
                planner: "concurrent:0,0,600".parse::<Policy>().unwrap().into(),
                threads: 2,
                devices: devices.all.iter().map(setup).collect(),
                fall_back,
                ..SearchOptions::default()
            };
            let mut search = Search::new(&layout, &options).unwrap();
            let mut after = 0;
            loop {
                fs::write(&file, after.to_string()).unwrap();
                let outcome = search.run(3);
                fs::remove_file(&file).unwrap();
                let said = match &outcome {
                    Ok(_) => search.fallen_back().unwrap_or_default().to_owned(),
                    Err(error) => error.to_string(),
                };
                if said.is_empty() {
                    break;
                }
                assert_eq!(outcome.is_ok(), fall_back, "after {after}");
                assert!(said.contains(&lost) && !said.contains(other.as_str()), "after {after}: {said}");
                reference.compare_with(&layout, &options, &mut search);
                if fall_back {
                    search = Search::new(&layout, &options).unwrap();
                }
                after += 1;
            }
            assert!(after >= 6, "lost at {after} points only");
            reference.compare_with(&layout, &options, &mut search);
        }
        return;
    }
}

/// A device with memory of its own gets a copy of the graph only if there is room for the rest of the search too. Here one buffer after
/// another is refused.
#[test]
fn a_graph_that_leaves_no_room_on_a_device_stays_on_the_host() {
    with_a_driver_that_refuses("a_graph_that_leaves_no_room_on_a_device_stays_on_the_host", |device, file| {
        let mut info = device.info().clone();
        info.unified_memory = false;
        let device = Device::open(&info, Limits::default()).unwrap();
        let edges = edges(1200, 5000, 5, 1);
        let layout = Layout::build(&EdgeList::new(1200, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3]);
        // The host's state is in plain memory, so all buffers are the graph's or those of the device's part.
        let options = options(&device, SharingMode::AllocHostPtr, "concurrent:0,0,500".parse().unwrap(), LevelDevice::Cpu, false);
        assert!(!Search::new(&layout, &options).unwrap().devices()[0].zero_copy, "it is copied if there is room");
        let mut stays = 0;
        // The numbers left out are those of arguments.
        for number in (0..90).chain(150..230) {
            fs::write(file, number.to_string()).unwrap();
            let outcome = Search::new(&layout, &options);
            let was_refused = !fs::exists(file).unwrap();
            let _ = fs::remove_file(file);
            match outcome {
                Ok(mut search) => {
                    assert!(was_refused, "call {number}");
                    stays += usize::from(search.devices()[0].zero_copy);
                    reference.compare_with(&layout, &options, &mut search);
                }
                Err(error) => assert!(!error.to_string().contains("has no memory"), "call {number}: {error}"),
            }
        }
        assert!(stays > 12, "{stays}");
    });
}

/// A driver refuses one call that makes an object or sets an argument: each such call of the set-up and of a search in turn.
#[test]
fn every_refused_opencl_call_is_reported_as_an_error() {
    with_a_driver_that_refuses("every_refused_opencl_call_is_reported_as_an_error", |device, file| {
        let edges = edges(1200, 5000, 5, 1);
        let layout = Layout::build(&EdgeList::new(1200, edges.clone(), Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let reference = Reference::new(1200, &edges, false, &[3]);
        // There are several parts, so that calls for later parts are refused too.
        let parts = GpuOptions { parts: 3, run_arcs: Some(8), ..GpuOptions::default() };
        let setup = |way| vec![GpuSetup { device: Arc::clone(device), way, options: parts }];
        let ways = [SharingMode::AllocHostPtr, SharingMode::SvmCoarse].into_iter().filter(|way| way.offered(device.info()));
        for (a, way) in ways.enumerate() {
            let mut refused = 0;
            // Alternates between the sharing modes.
            for (_, (policy, runs)) in policies().into_iter().enumerate().filter(|(b, _)| (a + b) % 2 == 0 || all_combinations()) {
                let options = SearchOptions { planner: policy.on(runs), threads: 2, devices: setup(way), ..SearchOptions::default() };
                let mut search = None;
                for number in 0.. {
                    let used = device.used_bytes();
                    fs::write(file, number.to_string()).unwrap();
                    let outcome = Search::new(&layout, &options);
                    let was_refused = !fs::exists(file).unwrap();
                    match outcome {
                        Err(error) => {
                            let text = format!("{error}: {:?}", error.source().map(ToString::to_string));
                            assert!(was_refused && text.contains(&device.info().name), "{text}");
                            assert_eq!(device.used_bytes(), used, "call {number}: what was made before it is given back");
                            refused += 1;
                        }
                        // Some refusals are overcome with smaller work-groups.
                        Ok(mut made) => {
                            let _ = fs::remove_file(file);
                            reference.compare_with(&layout, &options, &mut made);
                            if !was_refused {
                                search = Some(made);
                                break;
                            }
                        }
                    }
                    // The middle consists of hundreds of similar arguments.
                    if number > 20 && refused > 60 {
                        break;
                    }
                }
                let mut search = search.unwrap_or_else(|| Search::new(&layout, &options).unwrap());
                for number in 0.. {
                    fs::write(file, number.to_string()).unwrap();
                    let outcome = search.run(3);
                    let was_refused = !fs::exists(file).unwrap();
                    let _ = fs::remove_file(file);
                    assert_eq!(outcome.is_err(), was_refused, "{} {way}, call {number}: {outcome:?}", options.planner);
                    reference.compare_with(&layout, &options, &mut search);
                    if !was_refused {
                        assert!(number >= 3, "only {number} calls in a search");
                        break;
                    }
                }
            }
            assert!(refused > 60, "{refused} calls were refused");
        }
    });
}
