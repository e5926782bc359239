//! The handover of the state to the device and back, and the beginning and end of a search on the device.

use std::ops::Range;

use super::{
    GpuEngine,
    arguments::{Memory, Number, set},
    arrivals::{Completions, demand},
    slots::IS_QUEUE,
};
use crate::{
    engine::{Frontier, SearchState},
    graph::Vertex,
    opencl::DeviceError,
};

impl GpuEngine<'_> {
    /// Hands the whole state to the device.
    pub(crate) fn acquire(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        self.forget();
        let queued = if let Frontier::Queue { len, .. } = state.frontier { len } else { 0 };
        let (numbers, words) = (self.layout.first_leaf(), state.visited[0].device_len());
        state.parent.to_device(0..numbers)?;
        for bitmap in &mut state.visited {
            bitmap.to_device(0..words)?;
        }
        state.queue.to_device(0..queued)?;
        state.next.to_device(0..0)
    }

    /// Hands the state to the device without its contents, except for the entries that no search changes.
    pub(crate) fn acquire_empty(&self, state: &mut SearchState) -> Result<(), DeviceError> {
        let words = state.visited[0].device_len();
        state.parent.to_device(self.layout.padded()..self.layout.first_leaf())?;
        for bitmap in &mut state.visited {
            bitmap.to_device(words - 1..words)?;
        }
        state.queue.to_device(0..0)?;
        state.next.to_device(0..0)
    }

    /// Hands the whole state back to the host. A mask becomes a queue first, since the host has no masks.
    pub(crate) fn release(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        // The arrays would belong to a later level than the host's view of them.
        demand(self.run_ahead.is_over())?;
        if let Frontier::Mask { .. } = state.frontier {
            self.make_queue(state)?;
        }
        let queued = if let Frontier::Queue { len, .. } = state.frontier { len } else { 0 };
        let (numbers, words) = (self.layout.first_leaf(), state.visited[0].device_len());
        self.fetch(state, 0..numbers, 0..words, 0..queued)?;
        self.check_queue(&state.queue[..queued])?;
        self.check_bitmaps(state)
    }

    /// Hands the state back without its contents, when a search is over or begins again.
    pub(crate) fn release_empty(&self, state: &mut SearchState) -> Result<(), DeviceError> {
        self.fetch(state, 0..0, 0..0, 0..0)
    }

    /// Hands all arrays to the host, after one wait. Transfers the given ranges of parents, words of the bitmaps, and entries of the queue.
    fn fetch(&self, state: &mut SearchState, parents: Range<usize>, words: Range<usize>, queued: Range<usize>) -> Result<(), DeviceError> {
        state.parent.call_to_host(parents)?;
        for bitmap in &mut state.visited {
            bitmap.call_to_host(words.clone())?;
        }
        state.queue.call_to_host(queued)?;
        state.next.call_to_host(0..0)?;
        // The result of an earlier search may be mapped for reading.
        state.mapped.call_to_host(0..0)?;
        self.side.device.finish()?;
        for numbers in [&mut state.parent, &mut state.queue, &mut state.next, &mut state.mapped] {
            numbers.arrive();
        }
        for bitmap in &mut state.visited {
            bitmap.arrive();
        }
        state.set_dummies();
        Ok(())
    }

    /// Prepares another search after a call failed: waits for what still runs, and clears what an interrupted search has left.
    pub(crate) fn recover(&mut self) -> Result<(), DeviceError> {
        self.side.device.finish()?;
        self.side.slot = 0;
        self.side.counters.fill(0)?;
        self.side.completions = Completions::default();
        // The last write of the conditions may be what failed.
        self.guarded = None;
        self.side.undivide()?;
        self.clear_masks()?;
        self.side.device.finish()
    }

    /// Gives the kernels the arrays of `state`, for a device state in which nothing is swapped. `other` is the index of the visited bitmap
    /// that is not current, or of the current one if the device was given no other.
    pub(super) fn bind_state(&self, state: &SearchState, other: usize) -> Result<(), DeviceError> {
        self.side.set(&[
            ("visited_a", Memory(&state.visited[state.current])),
            ("visited_b", Memory(&state.visited[other])),
            ("queue_a", Memory(&state.queue)),
            ("queue_b", Memory(&state.next)),
            ("parent", Memory(&state.parent)),
        ])
    }

    /// Makes `root` the frontier of level 0, with this parent.
    pub(crate) fn begin(&mut self, state: &mut SearchState, root: Vertex, parent: Vertex) -> Result<(), DeviceError> {
        self.forget();
        state.restart();
        state.bitmap_is_current = true;
        let degree = self.layout.csr().degree(root);
        state.counted_edges = Some(u64::from(degree));
        self.device_state = IS_QUEUE;
        self.bind_state(state, 1 - state.current)?;
        let slot = self.side.next_slot();
        let kernel = &self.side.kernels.reset;
        set(
            kernel,
            &[
                ("visited", Memory(&state.visited[state.current])),
                ("queue", Memory(&state.queue)),
                ("slot", Number(slot)),
                ("root", Number(root)),
                ("root_original", Number(parent)),
                ("degree", Number(degree)),
            ],
        )?;
        self.side.start(kernel, self.side.groups_for(self.layout.padded()))?;
        self.seeded = true;
        Ok(())
    }

    /// Marks the state of the search on the device as out of date: the device must be given the state before the next step.
    pub(super) fn forget(&mut self) {
        self.seeded = false;
        self.steps = self.most_steps;
        self.sampled = None;
        self.run_ahead.clear();
    }

    /// Puts the parents into the order of the original vertices, where that differs, and lets the host read them.
    pub(crate) fn map_back(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        let Some(places) = &self.side.graph.places else {
            let numbers = state.parent.device_len();
            return state.parent.read_both(0..numbers);
        };
        let vertices = places.of.len();
        state.mapped.to_device(0..0)?;
        let kernel = &self.side.kernels.map_back;
        set(kernel, &[("mapped", Memory(&state.mapped)), ("leaf_root", Number(state.leaf_root))])?;
        self.side.start(kernel, self.side.groups_for(vertices))?;
        state.mapped.read_both(0..vertices)
    }
}
