//! Objects that are never released, because a device may still touch them.
//!
//! A failed device may continue with what was enqueued before: a driver reports a loss while its kernels still run. Memory that was given
//! to these kernels must outlive them, but it is unknown when they end. So it is kept until the process ends: handles are not released,
//! shared virtual memory is not freed, and memory of the host that a device may use is not unmapped.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use super::{forked::is_forked, locked::locked};

/// Bytes kept so far.
static BYTES: AtomicU64 = AtomicU64::new(0);
/// Whether `RANGES` has entries. Every free tests this, so the test must be cheap.
static ANY: AtomicBool = AtomicBool::new(false);
/// Begin and end addresses of host memory that some device may still access.
static RANGES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Bytes of memory that this process keeps until it ends, because a device that failed may still use them (0 as long as none has failed).
pub fn leaked_bytes() -> u64 {
    BYTES.load(Relaxed)
}

/// Counts and logs `bytes` of an object that is not released.
pub(super) fn count(bytes: u64, device: &str) {
    // The device did not fail in the child of a fork, which leaves the objects to its parent.
    if is_forked() {
        return;
    }
    let before = BYTES.fetch_add(bytes, Relaxed);
    if before == 0 {
        log::warn!("{device} failed and may still use its memory, which is kept until the process ends");
    }
    log::debug!("{bytes} bytes more that {device} may still use are kept, {} in all", before + bytes);
}

/// Keeps the host's memory at `start` mapped: a device may still read or write it.
pub(super) fn leak_range(start: usize, bytes: usize) {
    let range = (start, start.saturating_add(bytes));
    let mut ranges = locked(&RANGES);
    if bytes > 0 && !ranges.contains(&range) {
        ranges.push(range);
        ANY.store(true, Relaxed);
    }
}

/// Whether a device may still access some of the host's memory at `start`, so that it must not be unmapped.
pub fn is_leaked(start: usize, bytes: usize) -> bool {
    // Relaxed is enough: code that frees memory has the last reference to it, and got that after the range was entered.
    ANY.load(Relaxed) && locked(&RANGES).iter().any(|&(begin, end)| begin < start.saturating_add(bytes) && start < end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_count_as_kept() {
        // Addresses that no mapping of a test has.
        leak_range(64, 16);
        for (start, bytes, kept) in [(0, 64, false), (0, 65, true), (70, 1, true), (79, 100, true), (80, 100, false), (70, 0, true)] {
            assert_eq!(is_leaked(start, bytes), kept, "{bytes} from {start}");
        }
    }
}
