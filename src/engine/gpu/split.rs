//! The device's part of a level that it shares with the CPU: its input, and the transfer of its results.

use super::{GpuEngine, arguments as args};
use crate::{engine::state::SearchState, opencl::DeviceError};

impl GpuEngine<'_> {
    /// Has the device change words of the visited bitmap: from entry `first` of the queue on `count` pairs of place (of a 32-bit word)
    /// and value.
    pub(crate) fn launch_apply_words(&self, state: &SearchState, first: usize, count: usize) -> Result<(), DeviceError> {
        let kernel = &self.kernels.apply_words;
        kernel.set_buffer(args::apply_words::changes, &state.queue)?;
        kernel.set(args::apply_words::first, first as u32)?;
        kernel.set(args::apply_words::count, count as u32)?;
        kernel.set_buffer(args::apply_words::visited, &state.visited[state.current])?;
        self.start(kernel, self.groups_for(count))
    }

    /// Has the device put the parents of what the last top-down level found into the queue, side by side with the vertices in the
    /// next one.
    pub(crate) fn launch_gather_parents(&self, state: &SearchState) -> Result<(), DeviceError> {
        let kernel = &self.kernels.gather_parents;
        kernel.set_buffer(args::gather_parents::found, &state.next)?;
        kernel.set_buffer(args::gather_parents::parent, &state.parent)?;
        kernel.set_buffer(args::gather_parents::gathered, &state.queue)?;
        kernel.set(args::gather_parents::slot, self.slot)?;
        self.start(kernel, self.groups)
    }
}
