//! How a level's work is shared out to the threads of the team.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::{engine::Team, graph::Vertex, memory::Slab};

/// One buffer per thread.
pub(crate) struct SharedBuffers<'a>(pub(crate) &'a [Slab<Vertex>]);

impl SharedBuffers<'_> {
    /// # Safety
    /// Only thread `thread` asks for buffer `thread`, and not while it holds it already.
    #[allow(clippy::mut_from_ref, reason = "each buffer has one user (see Safety)")]
    pub(crate) unsafe fn of(&self, thread: usize) -> &mut [Vertex] {
        let slab = &self.0[thread];
        // SAFETY: the memory is the slab's own, and its one user is the caller.
        unsafe { std::slice::from_raw_parts_mut(slab.shared().get(), slab.len()) }
    }
}

/// Hands `0..len` out to the team in ranges of `grain`, or to the caller alone.
pub(crate) fn share(team: &Team, len: usize, grain: usize, alone: bool, work: &(dyn Fn(usize, Range<usize>) + Sync)) {
    let next = AtomicUsize::new(0);
    let run = |thread: usize| loop {
        let begin = next.fetch_add(grain, Relaxed);
        if begin >= len {
            break;
        }
        work(thread, begin..len.min(begin + grain));
    };
    if alone { run(0) } else { team.run(&run) }
}
