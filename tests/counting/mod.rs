//! The allocator of tests that nothing is allocated: it counts every call, on any thread. Drivers are not Rust and are not counted.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Layout) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, block: Layout) {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, block) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, block: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.realloc(pointer, block, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts the calls that `body` makes.
pub fn calls(body: impl FnOnce()) -> u64 {
    let before = CALLS.load(SeqCst);
    body();
    CALLS.load(SeqCst) - before
}
