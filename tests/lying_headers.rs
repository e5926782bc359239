//! No reader allocates more than the size of the file justifies, even if the header of the file announces more.
#![allow(clippy::expect_used, clippy::unwrap_used)] // a test may stop

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use socbfs::input::{Format, ReadOptions, read};

/// Size of the largest block requested since the last reset.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

struct Watching;

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, and the call is passed on unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, and the call is passed on unchanged.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, and the call is passed on unchanged.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, and the call is passed on unchanged.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

#[test]
fn allocations_follow_the_file_not_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let many = 4_000_000_000_u64; // vertices: 32 bits can name them
    let sg = [&[0][..], &many.to_le_bytes(), &many.to_le_bytes(), &[0; 100]].concat();
    let files: Vec<(&str, Option<Format>, Vec<u8>)> = vec![
        ("g.mtx", None, format!("%%MatrixMarket matrix coordinate pattern general\n{many} {many} {many}\n1 2\n").into_bytes()),
        ("g.gr", None, format!("p sp {many} {many}\na 1 2 3\n").into_bytes()),
        ("t.gr", None, format!("p tw {many} {many}\n1 2\n").into_bytes()),
        ("g.graph", None, format!("{many} {many}\n1 2\n").into_bytes()),
        ("w.graph", None, format!("{many} {many} 011 {many}\n1 2\n").into_bytes()),
        ("g.adj", None, format!("AdjacencyGraph\n{many}\n{many}\n0\n1\n").into_bytes()),
        ("h.adj", None, format!("AdjacencyGraph\n1\n{many}\n0\n0\n").into_bytes()),
        ("r.txt", Some(Format::Rodinia), format!("{many}\n0 1\n1 {many}\n").into_bytes()),
        ("s.txt", Some(Format::Rodinia), format!("1\n0 {many}\n0\n{many}\n0 1\n").into_bytes()),
        ("g.sg", None, sg),
    ];
    // The pool and the logger allocate when they are first used.
    rayon::broadcast(|_| ());
    for (name, format, bytes) in files {
        let gzip = {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut encoder, &bytes).unwrap();
            encoder.finish().unwrap()
        };
        for (name, bytes) in [(name.to_owned(), bytes), (format!("{name}.gz"), gzip)] {
            let path = folder.path().join(&name);
            fs::write(&path, bytes).unwrap();
            LARGEST.store(0, Ordering::Relaxed);
            let error = read(&path, &ReadOptions { format, progress: None, ..ReadOptions::default() }).unwrap_err();
            let largest = LARGEST.load(Ordering::Relaxed);
            // Streams have buffers of 8 MiB; a mapped file of a few bytes needs hardly any memory.
            let most = if name.ends_with(".gz") { 16 << 20 } else { 1 << 20 };
            assert!(largest < most, "{name}: {largest} bytes at once before: {error}");
        }
    }
}
