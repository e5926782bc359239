//! Memory that a search lives in: [`Slab`] of the host alone, [`SharedSlice`] that host and device take turns with.

mod shared_slice;
mod slab;

use std::sync::atomic::AtomicU32;

pub use shared_slice::{Owner, ShareError, SharedSlice, UnknownWay, Way};
pub use slab::Slab;

pub(crate) use crate::opencl::Plain;

/// What helps where memory is short. A 32-bit program runs out of addresses before most boards run out of memory.
pub(crate) const CURE: &str = if cfg!(target_pointer_width = "32") {
    "use a smaller graph, or, as this is a 32-bit program, which can't address more than 4 GiB at a time, a 64-bit build on a 64-bit system"
} else {
    "use a smaller graph or a machine with more memory"
};

/// The system refused memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {what}: {bytes} bytes ({reason}); {CURE}")]
pub struct OutOfMemory {
    /// What the memory was for.
    pub what: &'static str,
    /// How much was asked for.
    pub bytes: u64,
    /// What the system said.
    pub reason: String,
}

/// A pointer that worker threads share. Whoever dereferences it says why the accesses are disjoint or atomic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared<T>(*mut T);

// SAFETY: the pointer itself is a number; every dereference carries its own argument.
unsafe impl<T: Plain> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Shared<T> {}

impl<T: Plain> Shared<T> {
    /// Shares `slice` for as long as the caller keeps it borrowed.
    pub(crate) fn new(slice: &mut [T]) -> Self {
        Self(slice.as_mut_ptr())
    }

    /// Shares what `start` points to.
    fn over(start: *mut T) -> Self {
        Self(start)
    }

    /// The pointer.
    pub(crate) fn get(self) -> *mut T {
        self.0
    }
}

/// The same memory as atomics, for passes in which several threads write to the same places.
pub(crate) fn as_atomics(values: &mut [u32]) -> &[AtomicU32] {
    // SAFETY: an AtomicU32 has the layout of a u32, and the exclusive borrow ends all plain access for its length.
    unsafe { &*(std::ptr::from_mut(values) as *const [AtomicU32]) }
}

/// Resident memory of this process at its highest point, in bytes (`None` where the system does not say).
pub fn peak_resident_bytes() -> Option<u64> {
    of_this_process("VmHWM:")
}

/// A line of the kernel's account of this process, in bytes.
fn of_this_process(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// Memory the system could give this process without swapping, in bytes (`None` where it does not say): of a 32-bit process, no more
/// than it has addresses left.
pub fn available_bytes() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)?;
    Some(if cfg!(target_pointer_width = "32") { free.min(addresses_left()) } else { free })
}

/// Of 32-bit addresses: those of processes, which most 32-bit kernels give 3 GiB, less those in use.
fn addresses_left() -> u64 {
    const OF_A_PROCESS: u64 = 3 << 30;
    // Not the size that /proc/self/status gives: under an emulator that is the emulator's.
    let used = std::fs::read_to_string("/proc/self/maps").map_or(0, |maps| mapped_bytes(&maps));
    OF_A_PROCESS.saturating_sub(used)
}

/// The sum of the mappings that /proc/self/maps lists, one `begin-end ...` in a line.
fn mapped_bytes(maps: &str) -> u64 {
    let size = |line: &str| {
        let (begin, end) = line.split(' ').next()?.split_once('-')?;
        u64::from_str_radix(end, 16).ok()?.checked_sub(u64::from_str_radix(begin, 16).ok()?)
    };
    maps.lines().filter_map(size).sum()
}

/// Refuses a plan that needs more memory than there is, before the system has to kill somebody for it.
///
/// # Errors
/// [`OutOfMemory`] naming `what`.
pub fn check_available(bytes: u64, what: &'static str) -> Result<(), OutOfMemory> {
    match available_bytes() {
        Some(available) if bytes > available => Err(OutOfMemory { what, bytes, reason: format!("only {available} bytes are available") }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_add_up() {
        let maps = "00010000-00012000 r-xp 00000000 fd:00 42    /bin/socbfs\nbead0000-bedad000 rw-p 00000000 00:00 0 [stack]\n\nodd\n";
        assert_eq!(mapped_bytes(maps), 0x2000 + 0x2dd000);
        // A test has little in use: of 32-bit addresses there must be left.
        assert!(available_bytes().is_some_and(|bytes| bytes > 16 << 20));
        assert!(addresses_left() > 1 << 30 || cfg!(target_pointer_width = "64"));
    }

    #[test]
    fn the_peak_is_read() {
        assert!(peak_resident_bytes().is_some_and(|bytes| bytes > 100_000));
    }
}
