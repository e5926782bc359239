//! A counting allocator checks that sampling allocates nothing, with real files and the real threads of a meter.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use socbfs_power::{Meter, Selection, SystemFiles, discover};

/// Passes calls on to the system's allocator, and counts allocations.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the promises of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The only test of this file, so that no other test runs at the same time.
#[test]
fn a_sample_allocates_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (chip, files) in [
        ("hwmon0", &[("name", "ina219"), ("power1_input", "18000000")][..]),
        ("hwmon1", &[("name", "ina3221"), ("in1_input", "5000"), ("curr1_input", "800"), ("in2_input", "900"), ("curr2_input", "1")]),
        ("hwmon2", &[("name", "ina231"), ("power1_input", "2000000"), ("update_interval", "2")]),
    ] {
        for (name, text) in files {
            write(&format!("sys/class/hwmon/{chip}/{name}"), text);
        }
    }
    let sources = discover(&SystemFiles::new(folder.path()));
    let meter = Meter::start(Selection::named(sources, &["ina2xx".to_owned(), "ina3221".to_owned()], None).unwrap()).unwrap();
    let window = meter.begin();
    let before = CALLS.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_millis(500));
    let calls = CALLS.load(Ordering::Relaxed) - before;
    let energy = meter.end(window);
    let samples: u64 = energy.rails.iter().map(|rail| rail.samples).sum();
    assert!(samples > 100, "{energy:?}");
    assert!((energy.watts.unwrap().0 - (18.0 + 4.0 + 0.0009 + 2.0)).abs() < 1e-6, "{energy:?}");
    assert_eq!(calls, 0, "allocations in {samples} samples");
}
