//! Notes which process has called the drivers. A fork copies none of their threads, so a call may wait for ever in the child. The child
//! neither calls them nor releases what its parent has made.

use std::{
    process,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

/// The process that has called the drivers (0: none has).
static CALLER: AtomicU32 = AtomicU32::new(0);

/// Notes that this process calls the drivers.
pub(super) fn note_call() {
    CALLER.store(process::id(), Relaxed);
}

/// Whether this process was forked from one that had called the drivers.
pub fn is_forked() -> bool {
    // Relaxed is enough: the number is copied with all memory, and orders no other access.
    let caller = CALLER.load(Relaxed);
    caller != 0 && caller != process::id()
}
