//! How the state comes to the device and back, and how a search begins and ends there.

use super::GpuEngine;
use crate::{
    engine::state::{Frontier, SearchState},
    graph::Vertex,
    opencl::DeviceError,
};

impl GpuEngine<'_> {
    /// Hands the whole state to the device.
    pub(crate) fn acquire(&self, state: &mut SearchState) -> Result<(), DeviceError> {
        let queued = if let Frontier::Queue { len, .. } = state.frontier { len } else { 0 };
        let (numbers, words) = (state.parent.device_len(), state.visited[0].device_len());
        state.parent.to_device(0..numbers)?;
        for bitmap in &mut state.visited {
            bitmap.to_device(0..words)?;
        }
        state.queue.to_device(0..queued)?;
        state.next.to_device(0..0)
    }

    /// Hands the state to the device without its contents but for what a search never changes.
    pub(crate) fn acquire_empty(&self, state: &mut SearchState) -> Result<(), DeviceError> {
        let (numbers, words) = (state.parent.device_len(), state.visited[0].device_len());
        state.parent.to_device(self.layout.padded()..numbers)?;
        for bitmap in &mut state.visited {
            bitmap.to_device(words - 1..words)?;
        }
        state.queue.to_device(0..0)?;
        state.next.to_device(0..0)
    }

    /// Hands the whole state back to the host, which knows no masks.
    pub(crate) fn release(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        if let Frontier::Mask { .. } = state.frontier {
            self.make_queue(state)?;
        }
        let queued = if let Frontier::Queue { len, .. } = state.frontier { len } else { 0 };
        let (numbers, words) = (state.parent.device_len(), state.visited[0].device_len());
        state.parent.to_host(0..numbers)?;
        for bitmap in &mut state.visited {
            bitmap.to_host(0..words)?;
        }
        state.queue.to_host(0..queued)?;
        state.next.to_host(0..0)?;
        state.set_dummies();
        self.check_queue(&state.queue[..queued])?;
        self.check_bitmaps(state)
    }

    /// Hands the state back without its contents: a search is over, or begins anew.
    pub(crate) fn release_empty(&self, state: &mut SearchState) -> Result<(), DeviceError> {
        state.parent.to_host(0..0)?;
        for bitmap in &mut state.visited {
            bitmap.to_host(0..0)?;
        }
        state.queue.to_host(0..0)?;
        state.next.to_host(0..0)
    }

    /// Begins anew after a call failed: waits for what still runs, and clears what a search that was left in the middle has left.
    pub(crate) fn recover(&mut self) -> Result<(), DeviceError> {
        self.device.finish()?;
        self.slot = 0;
        self.counters.fill(0)?;
        self.clear_masks()?;
        self.device.finish()
    }

    /// Makes `root` the frontier of level 0.
    pub(crate) fn begin(&mut self, state: &mut SearchState, root: Vertex) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        state.restart();
        state.bitmap_is_current = true;
        state.counted_edges = Some(u64::from(self.layout.csr().degree(root)));
        let kernel = &self.kernels.reset;
        kernel.set_buffer(0, &state.parent)?;
        kernel.set_buffer(1, &state.visited[state.current])?;
        kernel.set_buffer(3, &state.queue)?;
        kernel.set(5, slot)?;
        kernel.set(7, root)?;
        kernel.set(8, self.layout.to_original(root))?;
        kernel.launch(self.groups_for(self.layout.padded()), self.group)
    }

    /// Brings the parents into the order of the original vertices, where that differs, and hands them to the host.
    pub(crate) fn map_back(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        let Some(place) = &self.graph.place else {
            let numbers = state.parent.device_len();
            return state.parent.to_host(0..numbers);
        };
        let vertices = place.len();
        state.mapped.to_device(0..0)?;
        let kernel = &self.kernels.map_back;
        kernel.set_buffer(1, &state.parent)?;
        kernel.set_buffer(2, &state.mapped)?;
        kernel.launch(self.groups_for(vertices), self.group)?;
        state.mapped.to_host(0..vertices)
    }
}
