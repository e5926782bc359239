//! Devices smaller than the available ones: by limits of the OpenCL room, or simulated by the OpenCL implementations.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::sync::Arc;

use socbfs::{
    GpuOptions, GpuSetup,
    bfs::Placement,
    graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    memory::SharingMode,
    opencl::{Buffer, Device, Limits},
    search::{Search, SearchOptions},
};
use socbfs_io::generate::Generator;
use socbfs_policy::{LevelDevice, Policy};

use crate::{
    implementations::{self, inside, refusals, refusing_library, skipped},
    reference::Reference,
    searches::{self, Variety, check, compare_policies, devices, edges, everything, is_slow},
};

const POCL: &str = "Portable Computing Language";

/// Limits that are just enough for kernels of every kind.
fn small() -> Limits {
    Limits {
        max_alloc_bytes: Some(20_000),
        max_work_group: Some(64),
        local_bytes: Some(16 << 10),
        global_bytes: Some(2 << 20),
        ..Limits::default()
    }
}

fn layout(n: usize, edges: &[[u32; 2]]) -> Layout {
    Layout::build(&EdgeList::new(n, edges.to_vec(), Listing::Unknown).unwrap(), &BuildOptions::default()).unwrap()
}

fn on(device: &Arc<Device>, options: GpuOptions) -> SearchOptions {
    let devices = vec![GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options }];
    SearchOptions { threads: 2, devices, every_planner: true, ..SearchOptions::default() }
}

/// A complete graph: few vertices, many arcs.
fn complete(n: u32) -> Vec<[u32; 2]> {
    (0..n).flat_map(|u| (0..u).map(move |v| [u, v])).collect()
}

#[test]
fn small_work_groups_local_memory_and_buffers_suffice() {
    for device in &devices("small_work_groups_local_memory_and_buffers_suffice", small()).all {
        // 7000 arcs of 4 bytes, in buffers of 20,000 bytes.
        let edges = edges(1100, 3500, 9, 0);
        let variety = Variety {
            groups: vec![Some(256)],
            ways: vec![SharingMode::UseHostPtr],
            orders: vec![Order::Original],
            threads: vec![1],
            run_arcs: vec![Some(8)],
            ..everything(device)
        };
        check(device, 1100, &edges, false, &[0, 1099], &variety);
        let layout = layout(1100, &edges);
        let search = Search::new(&layout, &on(device, GpuOptions { group: Some(256), ..GpuOptions::default() })).unwrap();
        let got = &search.devices()[0];
        assert_eq!((got.parts, got.group <= 64 && got.group >= 32), (2, true), "{got:?}");
    }
}

/// The frontier takes no more memory on a device with many CPU threads than with one, so the same limit on buffers suffices for both.
#[test]
fn sizes_of_buffers_do_not_depend_on_the_number_of_threads() {
    const N: usize = 1 << 14;
    // A queue with room for what each of 8 threads may find would need twice this limit.
    let limits = Limits { max_alloc_bytes: Some(250_000), ..Limits::default() };
    let devices = devices("sizes_of_buffers_do_not_depend_on_the_number_of_threads", limits);
    let list = Generator::graph500(14).generate(&|_| ()).unwrap();
    let mut edges = Vec::new();
    list.for_each(0..list.len(), |u, v| edges.push([u, v]));
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    let root = (0..N as u32).max_by_key(|&v| layout.input_degree(v)).unwrap();
    let reference = Reference::new(N, &edges, false, &[root]);
    for device in devices.all.iter().filter(|device| !is_slow(device)) {
        for threads in [1, 8] {
            let options = SearchOptions { threads, ..on(device, GpuOptions::default()) };
            let mut search = Search::new(&layout, &options).unwrap();
            assert!(search.devices()[0].parts > 1, "{:?}", search.devices());
            for policy in ["tg", "concurrent:0,0,500", "selective:10,0", "asynchronous:20,500"] {
                search.set_planner(policy.parse::<Policy>().unwrap().on(LevelDevice::Cpu)).unwrap();
                reference.compare_with(&layout, &options, &mut search);
            }
        }
    }
}

#[test]
fn work_groups_shrink_until_the_driver_can_build_them() {
    const TEST: &str = "work_groups_shrink_until_the_driver_can_build_them";
    const LARGEST: &str = "SOCBFS_TEST_LARGEST_GROUP";
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = refusing_library(folder.path()) else {
        return skipped(TEST, "no C compiler, or no libOpenCL.so.1 to link to");
    };
    if implementations::device_of(TEST, POCL).is_none() {
        return;
    }
    // The cache is switched off, since it may hold programs that were built before.
    let fixed = [("OPENCL_DYLIB_PATH", library.to_str().unwrap()), ("SOCBFS_TEST_DEVICE", POCL), ("SOCBFS_CACHE_DIR", "")];
    for largest in ["128", "32", "16"] {
        if !inside(module_path!(), TEST, &[&fixed[..], &[(LARGEST, largest)]].concat()) {
            continue;
        }
        let largest: usize = std::env::var(LARGEST).unwrap().parse().unwrap();
        let edges = edges(300, 900, 2, 0);
        let (layout, reference) = (layout(300, &edges), Reference::new(300, &edges, false, &[1]));
        let device = &devices(TEST, Limits::default()).all[0];
        let options = on(device, GpuOptions { group: Some(256), ..GpuOptions::default() });
        match Search::new(&layout, &options) {
            Ok(search) => assert_eq!(search.devices()[0].group, largest),
            // A program that is refused even for the smallest groups ends in an error.
            Err(error) => return assert!(largest < 32 && error.to_string().contains("-DGROUP=32 "), "{largest}: {error}"),
        }
        assert!(largest >= 32);
        return reference.compare(&layout, &SearchOptions { planner: "tg".parse::<Policy>().unwrap().into(), ..options });
    }
}

/// A compiler fails or crashes if a program has many kernels, as some of Adreno GPUs do. Each file then becomes a program of its own, and
/// the next start does so at once, as does the first if the board says so.
#[test]
fn a_compiler_that_fails_at_many_kernels_gets_a_program_per_file() {
    const TEST: &str = "a_compiler_that_fails_at_many_kernels_gets_a_program_per_file";
    const QUIRK: &str = "SOCBFS_TEST_QUIRK";
    for (how, quirk) in [("fails", "no"), ("crashes", "no"), ("crashes", "yes")] {
        let refused = refusals(module_path!(), TEST, &[("SOCBFS_TEST_MANY_KERNELS", how), (QUIRK, quirk)], || {
            let edges = edges(300, 900, 2, 0);
            let (layout, reference) = (layout(300, &edges), Reference::new(300, &edges, false, &[1]));
            let limits = Limits { program_per_file: std::env::var(QUIRK).unwrap() == "yes", ..Limits::default() };
            compare_policies(&reference, &layout, on(&devices(TEST, limits).all[0], GpuOptions::default()));
        });
        let Some([first, second]) = refused else { return };
        let once = usize::from(quirk == "no");
        assert!((once..=2 * once).contains(&first) && second == first, "{how} {quirk}: {first}, then {second}");
    }
}

/// A driver refuses the launch of a work-group that it says it can run, as one of a Mali-T860 does. The next start knows what it can run.
#[test]
fn work_groups_shrink_until_the_driver_can_launch_them() {
    const TEST: &str = "work_groups_shrink_until_the_driver_can_launch_them";
    const LARGEST: &str = "SOCBFS_TEST_LARGEST_LAUNCH";
    for largest in ["128", "32", "16"] {
        let refused = refusals(module_path!(), TEST, &[(LARGEST, largest)], || {
            let largest: usize = std::env::var(LARGEST).unwrap().parse().unwrap();
            let edges = edges(300, 900, 2, 0);
            let (layout, reference) = (layout(300, &edges), Reference::new(300, &edges, false, &[1]));
            let device = &devices(TEST, Limits::default()).all[0];
            let options = |group| on(device, GpuOptions { group: Some(group), ..GpuOptions::default() });
            match Search::new(&layout, &options(256)) {
                Ok(search) => assert_eq!(search.devices()[0].group, largest),
                Err(error) => return assert!(largest < 32 && error.to_string().contains("--device cpu"), "{largest}: {error}"),
            }
            compare_policies(&reference, &layout, options(largest));
        });
        let Some([first, second]) = refused else { return };
        // A size is remembered once it has run.
        let again = if largest == "16" { first } else { 0 };
        assert!(first > 0 && second == first + again, "{largest}: {first}, then {second}");
    }
}

#[test]
fn kernels_shrink_until_local_memory_suffices() {
    let edges = edges(300, 900, 2, 0);
    let (layout, reference) = (layout(300, &edges), Reference::new(300, &edges, false, &[1]));
    // The first limit is less than kernels of groups of 256 declare, the second less than those of any group.
    for local_bytes in [2 << 10, 256] {
        let limits = Limits { local_bytes: Some(local_bytes), ..Limits::default() };
        for device in &devices("kernels_shrink_until_local_memory_suffices", limits).all {
            match Search::new(&layout, &on(device, GpuOptions { group: Some(256), ..GpuOptions::default() })) {
                Ok(search) => {
                    let got = search.devices()[0].group;
                    assert!(local_bytes > 256 && (32..=64).contains(&got), "groups of {got} with {local_bytes} bytes");
                    compare_policies(&reference, &layout, on(device, GpuOptions { group: Some(got), ..GpuOptions::default() }));
                }
                Err(error) => assert!(local_bytes == 256 && error.to_string().contains("--device cpu"), "{local_bytes}: {error}"),
            }
        }
    }
}

#[test]
fn device_memory_does_not_grow_with_the_number_of_cpu_threads() {
    const TEST: &str = "device_memory_does_not_grow_with_the_number_of_cpu_threads";
    let n = 10_000;
    let edges = edges(n, 20 * n as usize, 3, 0);
    let layout = layout(n as usize, &edges);
    let reference = Reference::new(n as usize, &edges, false, &[5]);
    // The limit has room for an entry per vertex, bitmaps and neighbours in parts, but not for an entry per vertex and thread.
    let limits = Limits { max_alloc_bytes: Some(200_000), ..Limits::default() };
    let devices = devices(TEST, limits);
    for device in devices.all.iter().filter(|device| !is_slow(device)) {
        let mut used = Vec::new();
        for threads in [1, 8] {
            let options = SearchOptions { threads, ..on(device, GpuOptions::default()) };
            let mut search = Search::new(&layout, &options).unwrap();
            used.push(device.used_bytes());
            for policy in ["concurrent", "tg", "selective:1000,1000"] {
                search.set_planner(policy.parse::<Policy>().unwrap().on(LevelDevice::Cpu)).unwrap();
                reference.compare_with(&layout, &options, &mut search);
            }
        }
        assert_eq!(used[0], used[1], "bytes on {}", device.info().name);
    }
}

#[test]
fn graphs_too_large_for_a_device_are_refused_with_their_size() {
    let refused = |device: &Arc<Device>, layout: &Layout| {
        Search::new(layout, &on(device, GpuOptions::default())).map(|_| ()).unwrap_err().to_string()
    };
    // The arcs take 358,800 bytes, and 16 buffers of 20,000 bytes hold 320,000.
    for device in &devices("graphs_too_large_for_a_device_are_refused_with_their_size", small()).all {
        let error = refused(device, &layout(300, &complete(300)));
        for words in [&device.info().name, "even in 16 parts", "358800 bytes", "320000"] {
            assert!(error.contains(words), "no {words} in {error}");
        }
        // An array of one entry per vertex can't be split.
        let error = refused(device, &layout(6000, &edges(6000, 7000, 1, 0)));
        for words in [&device.info().name, "buffer of", "at most 20000"] {
            assert!(error.contains(words), "no {words} in {error}");
        }
    }
    let limits = Limits { global_bytes: Some(100_000), ..Limits::default() };
    for device in &devices("graphs_too_large_for_a_device_are_refused_with_their_size", limits).all {
        let error = refused(device, &layout(6000, &edges(6000, 7000, 1, 0)));
        for words in [&device.info().name, "has no memory for", "of the 100000 bytes", "smaller graph"] {
            assert!(error.contains(words), "no {words} in {error}");
        }
        assert_eq!(device.used_bytes(), 0, "what was made before is given back");
    }
}

#[test]
fn pocl_searches_with_buffers_of_256_mib() {
    const TEST: &str = "pocl_searches_with_buffers_of_256_mib";
    if implementations::device_of(TEST, POCL).is_some()
        && inside(module_path!(), TEST, &[("POCL_MEMORY_LIMIT", "1"), ("SOCBFS_TEST_DEVICE", POCL)])
    {
        let devices = devices(TEST, Limits::default());
        let device = &devices.all[0];
        assert_eq!(device.max_alloc_bytes(), 256 << 20);
        let error = Buffer::<u8>::new(device, (256 << 20) + 1, "a test").unwrap_err().to_string();
        assert!(error.contains("268435457 bytes") && error.contains("at most 268435456"), "{error}");
        let edges = edges(2000, 9000, 5, 1);
        let variety = Variety { groups: vec![Some(32)], orders: vec![Order::Degree], ..everything(device) };
        check(device, 2000, &edges, false, &[0, 5], &variety);
    }
}

#[test]
#[ignore = "builds a graph of 72 million arcs"]
fn pocl_splits_a_graph_larger_than_its_buffers() {
    const TEST: &str = "pocl_splits_a_graph_larger_than_its_buffers";
    if implementations::device_of(TEST, POCL).is_some()
        && inside(module_path!(), TEST, &[("POCL_MEMORY_LIMIT", "1"), ("SOCBFS_TEST_DEVICE", POCL)])
    {
        let devices = devices(TEST, Limits::default());
        let device = &devices.all[0];
        let n = 1 << 18;
        let edges = edges(n, 36 << 20, 5, 0);
        let layout = layout(n as usize, &edges);
        assert!(layout.csr().arcs() > 64 << 20);
        let mut search = Search::new(&layout, &on(device, GpuOptions::default())).unwrap();
        assert_eq!(search.devices()[0].parts, 2);
        let reference = Reference::new(n as usize, &edges, false, &[7]);
        for (policy, runs) in searches::policies() {
            search.set_planner(policy.on(runs)).unwrap();
            reference.compare_with(&layout, &SearchOptions::default(), &mut search);
        }
    }
}

#[test]
fn pocl_searches_as_two_devices() {
    const TEST: &str = "pocl_searches_as_two_devices";
    // A Mali-T628, too, appears as two devices, with 4 and with 2 cores.
    if implementations::device_of(TEST, POCL).is_some()
        && inside(module_path!(), TEST, &[("POCL_DEVICES", "basic pthread"), ("SOCBFS_TEST_DEVICE", POCL)])
    {
        let devices = devices(TEST, Limits::default());
        let names: Vec<_> = devices.all.iter().map(|device| device.info().name.as_str()).collect();
        assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
        let edges = edges(2000, 9000, 5, 1);
        let layout = layout(2000, &edges);
        let reference = Reference::new(2000, &edges, false, &[0, 5, 1999]);
        for groups in [[32, 32], [64, 32]] {
            let setups: Vec<_> = devices.all.iter().zip(groups).collect();
            let devices: Vec<_> = setups
                .into_iter()
                .map(|(device, group)| GpuSetup {
                    device: Arc::clone(device),
                    way: SharingMode::AllocHostPtr,
                    options: GpuOptions { group: Some(group), ..GpuOptions::default() },
                })
                .collect();
            let options = SearchOptions { threads: 2, devices, every_planner: true, ..SearchOptions::default() };
            compare_policies(&reference, &layout, options.clone());
            let policy = "concurrent:0,0,600".parse::<Policy>().unwrap();
            let mut search = Search::new(&layout, &SearchOptions { planner: policy.into(), ..options }).unwrap();
            assert_eq!(search.devices().len(), 2);
            search.run(0).unwrap();
            let records = search.records();
            assert!(
                records.iter().any(|record| matches!(record.plan.placement, Placement::Split { .. }) && record.gpu_ns > 0),
                "{records:?}"
            );
        }
    }
}

#[test]
fn oclgrind_searches_with_small_limits() {
    const TEST: &str = "oclgrind_searches_with_small_limits";
    if implementations::device_of(TEST, "Oclgrind").is_none() {
        return;
    }
    let variables = [
        ("OCLGRIND_LOCAL_MEM_SIZE", "4096"),
        ("OCLGRIND_MAX_WGSIZE", "64"),
        ("OCLGRIND_GLOBAL_MEM_SIZE", "1048576"),
        ("SOCBFS_TEST_DEVICE", "Oclgrind"),
    ];
    if inside(module_path!(), TEST, &variables) {
        let devices = devices(TEST, Limits::default());
        let device = &devices.all[0];
        assert!(is_slow(device));
        assert_eq!((device.max_work_group(), device.local_bytes(), device.info().global_bytes), (64, 4096, 1 << 20));
        let edges = edges(1100, 2500, 5, 1);
        let variety = Variety { groups: vec![None, Some(256)], parts: vec![0, 3], orders: vec![Order::Degree], ..everything(device) };
        check(device, 1100, &edges, false, &[0], &variety);
        let layout = layout(1100, &edges);
        let search = Search::new(&layout, &on(device, GpuOptions { group: Some(256), ..GpuOptions::default() })).unwrap();
        assert_eq!(search.devices()[0].group, 64);
    }
}
