//! What a level that CPU and device share takes to the device, and brings back.

use super::GpuEngine;
use crate::{engine::state::SearchState, opencl::DeviceError};

impl GpuEngine<'_> {
    /// Has the device change words of the visited bitmap: from entry `first` of the queue on `count` pairs of place (of a 32-bit word)
    /// and value.
    pub(crate) fn launch_apply_words(&self, state: &SearchState, first: usize, count: usize) -> Result<(), DeviceError> {
        let kernel = &self.kernels.apply_words;
        kernel.set_buffer(0, &state.queue)?;
        kernel.set(1, first as u32)?;
        kernel.set(2, count as u32)?;
        kernel.set_buffer(3, &state.visited[state.current])?;
        kernel.launch(self.groups_for(count), self.group)
    }

    /// Has the device put the parents of what the last top-down level found into the queue, side by side with the vertices in the
    /// next one.
    pub(crate) fn launch_gather_parents(&self, state: &SearchState) -> Result<(), DeviceError> {
        let kernel = &self.kernels.gather_parents;
        kernel.set_buffer(0, &state.next)?;
        kernel.set_buffer(1, &state.parent)?;
        kernel.set_buffer(2, &state.queue)?;
        kernel.set(4, self.slot)?;
        kernel.launch(self.groups, self.group)
    }
}
