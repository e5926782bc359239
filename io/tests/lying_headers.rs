//! No reader allocates more than the size of the file justifies, even if the header of the file announces more.
#![allow(clippy::expect_used, clippy::unwrap_used)] // a test may stop

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use socbfs::memory::peak_resident_bytes;
use socbfs_io::{Format, ReadOptions, read};

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

/// One test, since it measures the whole process.
#[test]
fn memory_follows_the_file() {
    allocations_follow_the_file_not_its_header();
    small_zstd_files_take_little_memory();
}

/// A zstd file with a block of `sequences` matches of 131,074 bytes each. A block may become at most 128 KiB (RFC 8878, 3.1.1.2.4).
fn zstd_bomb(sequences: u16) -> Vec<u8> {
    let block = |kind: usize, last: usize, content: &[u8]| [&(content.len() << 3 | kind << 1 | last).to_le_bytes()[..3], content].concat();
    // A window of 128 KiB; no literals; every code of a sequence is one symbol, and 52 has 16 more bits, all set.
    let codes = [&[0, 0xff][..], &(sequences - 0x7f00).to_le_bytes(), &[0x54, 0, 0, 52], &vec![0xff; 2 * usize::from(sequences)], &[1]];
    [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x38][..], &block(0, 0, &b"0 1\n".repeat(16)), &block(2, 1, &codes.concat())].concat()
}

fn small_zstd_files_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb.el.zst");
    fs::write(&path, zstd_bomb(0x7f00)).unwrap(); // 65 KB, which would become 4.3 GB
    let before = peak_resident_bytes().unwrap();
    let error = read(&path, &ReadOptions::default()).unwrap_err().to_string();
    let taken = peak_resident_bytes().unwrap() - before;
    assert!(error.contains("the zstd data are damaged") && taken < 64 << 20, "{taken} bytes taken: {error}");
}

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
            // Blocks have 8 MiB.
            assert!(largest < 16 << 20, "{name}: {largest} bytes at once before: {error}");
        }
    }
}
