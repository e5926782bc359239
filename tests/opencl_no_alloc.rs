//! What a search calls of the OpenCL room, and hand-overs of memory, never call the Rust allocator (design rule 1).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

mod implementations;

use std::{
    alloc::{GlobalAlloc, Layout as Block, System},
    sync::atomic::{AtomicU64, Ordering::SeqCst},
};

use implementations::on_each;
use socbfs::{
    memory::{SharedSlice, Way},
    opencl::{Buffer, Limits},
};

/// Counts every call, on any thread. Drivers are not Rust and are not counted.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, block: Block) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, block: Block) {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, block) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, block: Block, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        // SAFETY: passed on.
        unsafe { System.realloc(pointer, block, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SOURCE: &str = "
kernel void add(global uint *values, uint count, local uint *room) {
    room[get_local_id(0)] = 1;
    for (uint i = get_global_id(0); i < count; i += get_global_size(0)) values[i] += room[get_local_id(0)];
}
";

/// Counts the calls that `body` makes.
fn calls(body: impl FnOnce()) -> u64 {
    let before = CALLS.load(SeqCst);
    body();
    CALLS.load(SeqCst) - before
}

// Without the test harness, whose own allocations would be counted.
fn main() {
    on_each("opencl_no_alloc", Limits::default(), |name, device| {
        let kernel = device.program(SOURCE, "-cl-std=CL1.2").unwrap().kernel("add").unwrap();
        let buffer = Buffer::from_host(device, &[1u32; 1000], "a test").unwrap();
        let shared = [7u32; 1024];
        let over = Buffer::over_host(device, &shared, "a test").unwrap();
        let round = |slice: Option<&mut SharedSlice<u32>>| {
            kernel.set(1, 1000u32).unwrap();
            kernel.set_local(2, 8 * 4).unwrap();
            match slice {
                Some(slice) => {
                    kernel.set_buffer(0, slice).unwrap();
                    slice.fill(3);
                    slice.to_device(0..1000).unwrap();
                    kernel.launch(2, 8).unwrap();
                    slice.read_both(0..1000).unwrap();
                    slice.to_host(0..1000).unwrap();
                    slice.read_both(0..1000).unwrap();
                    slice.to_device(0..1000).unwrap();
                    slice.fill_on_device(9).unwrap();
                    slice.to_host(0..1000).unwrap();
                    assert_eq!(slice[999], 9);
                    // And what fails: the host owns it.
                    assert!(kernel.launch(2, 8).is_err());
                }
                None => {
                    let mut back = [0u32; 1000];
                    kernel.set_buffer(0, &over).unwrap();
                    kernel.set_buffer(0, &buffer).unwrap();
                    buffer.write(0..1000, &[1; 1000]).unwrap();
                    kernel.launch(2, 8).unwrap();
                    device.flush().unwrap();
                    device.finish().unwrap();
                    buffer.read(0..1000, &mut back).unwrap();
                    assert_eq!(back[999], 2);
                    buffer.fill(5).unwrap();
                    assert!(buffer.read(0..2000, &mut back).is_err() && kernel.set(7, 1u32).is_err() && kernel.launch(1, 1 << 20).is_err());
                }
            }
        };
        // The very first round counts too.
        for turn in 0..3 {
            assert_eq!(calls(|| round(None)), 0, "{name}, turn {turn}");
        }
        for way in Way::ALL.into_iter().filter(|way| way.offered(device.info())) {
            let mut slice = SharedSlice::<u32>::on(device, way, 1000, "a test").unwrap();
            // The kernel holds the last slice, which is gone, and would free it when it is given another.
            kernel.set_buffer(0, &slice).unwrap();
            for turn in 0..3 {
                assert_eq!(calls(|| round(Some(&mut slice))), 0, "{name}, {way}, turn {turn}");
            }
        }
        println!("{name}: launches, transfers and hand-overs allocate nothing");
    });
    // The counter itself works.
    assert!(calls(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(100)))) >= 2);
    println!("1 passed, 0 failed");
}
