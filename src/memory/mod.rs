//! The memory of a search: [`Slab`] for the host alone, and [`SharedSlice`], which host and device use in turn.

mod available;
mod prefetch;
mod shared_slice;
mod slab;

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

pub use available::available_of;
pub use available::{available_bytes, available_bytes_below};
pub use prefetch::prefetch;
pub use shared_slice::{Owner, ShareError, SharedSlice, SharingMode, UnknownWay};
pub use slab::Slab;

pub use crate::opencl::Pod;
use crate::words;

/// Advice for when memory is short. A 32-bit program runs out of addresses before most boards run out of memory.
pub const CURE: &str = if cfg!(target_pointer_width = "32") {
    "use a smaller graph, or a 64-bit build on a 64-bit system (this 32-bit program can't address more than 3 GiB)"
} else {
    "use a smaller graph or a machine with more memory"
};

/// The system refused memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {what}: {} ({reason}); {CURE}", words::bytes(*.bytes))]
pub struct OutOfMemory {
    /// What the memory was for.
    pub what: &'static str,
    /// Bytes requested.
    pub bytes: u64,
    /// The reason that the system gave.
    pub reason: String,
}

/// A pointer that worker threads share. Code that dereferences it must say why the accesses are disjoint or atomic.
#[derive(Debug, Clone, Copy)]
pub struct Shared<T>(*mut T);

// SAFETY: the pointer itself is a number; every dereference carries its own argument.
unsafe impl<T: Pod> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Pod> Sync for Shared<T> {}

impl<T: Pod> Shared<T> {
    /// Shares `slice` for as long as the caller keeps it borrowed.
    pub fn new(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr())
    }

    /// Shares what `start` points to.
    fn over(start: *mut T) -> Self {
        Self(start)
    }

    /// The pointer.
    pub fn get(self) -> *mut T {
        self.0
    }
}

/// Views `values` as atomics, for passes in which several threads write to the same entries.
pub fn as_atomics(values: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: an AtomicU32 has the layout of a u32, and the exclusive borrow ends all plain access for its length.
    unsafe { &*(std::ptr::from_mut(values) as *const [AtomicU32]) }
}

/// As [`as_atomics`], for bytes.
pub fn as_byte_atomics(values: &mut [u8]) -> &[AtomicU8] {
    // SAFETY: an AtomicU8 has the layout of a u8, and the exclusive borrow ends all plain access for its length.
    unsafe { &*(std::ptr::from_mut(values) as *const [AtomicU8]) }
}

/// As [`as_atomics`], for 16-bit words.
pub fn as_short_atomics(values: &mut [u16]) -> &[AtomicU16] {
    // SAFETY: an AtomicU16 has the layout of a u16, and the exclusive borrow ends all plain access for its length.
    unsafe { &*(std::ptr::from_mut(values) as *const [AtomicU16]) }
}

/// As [`as_atomics`], for 64-bit words.
pub fn as_wide_atomics(words: &mut [u64]) -> &[AtomicU64] {
    // The exclusive borrow ends all plain access for its length. (Words of armv7 are aligned to 8 bytes too.)
    const { assert!(align_of::<AtomicU64>() == align_of::<u64>()) };
    // SAFETY: an AtomicU64 has the layout of a u64, as is asserted, and nothing else is read or written through the words meanwhile.
    unsafe { &*(std::ptr::from_mut(words) as *const [AtomicU64]) }
}

/// Resident memory of this process at its highest point, in bytes (`None` if the system does not report it).
pub fn peak_resident_bytes() -> Option<u64> {
    socbfs_machine::status().bytes("VmHWM")
}

/// Refuses a plan that needs more memory than is available, before the system has to kill a process for it.
///
/// # Errors
/// [`OutOfMemory`] naming `what`.
pub fn check_available(bytes: u64, what: &'static str) -> Result<(), OutOfMemory> {
    // Small allocations that are not counted, and page tables.
    let beside = bytes.min(16 << 20) + bytes / 256;
    match available_bytes() {
        Some(available) if bytes.saturating_add(beside) > available => {
            Err(OutOfMemory { what, bytes, reason: format!("only {} are available", words::bytes(available)) })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_resident_memory_is_read() {
        assert!(peak_resident_bytes().is_some_and(|bytes| bytes > 100_000));
    }
}
