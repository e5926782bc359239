//! An allocator that counts every call, on any thread, for tests that nothing is allocated. It does not count calls of drivers, which are
//! not written in Rust.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls are passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Layout) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: the caller keeps the contract, and the call is passed on unchanged.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, block: Layout) {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: the caller keeps the contract, and the call is passed on unchanged.
        unsafe { System.dealloc(pointer, block) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, block: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: the caller keeps the contract, and the call is passed on unchanged.
        unsafe { System.realloc(pointer, block, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Number of allocator calls during `body`, on all threads.
pub fn calls(body: impl FnOnce()) -> u64 {
    let before = CALLS.load(SeqCst);
    body();
    CALLS.load(SeqCst) - before
}
