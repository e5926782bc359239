//! The device's part of a level that it shares with the CPU: its input, and the transfer of its results.

use super::{GpuEngine, arguments as args};
use crate::{engine::SearchState, opencl::DeviceError};

impl GpuEngine<'_> {
    /// Changes words of the visited bitmap on the device: from entry `first` on, the queue holds `count` pairs of an index (of a 32-bit
    /// word) and a value.
    pub(crate) fn launch_apply_words(&mut self, state: &SearchState, first: usize, count: usize) -> Result<(), DeviceError> {
        let kernel = &self.kernels.apply_words;
        kernel.set_buffer(args::apply_words::changes, &state.queue)?;
        kernel.set(args::apply_words::first, first as u32)?;
        kernel.set(args::apply_words::count, count as u32)?;
        kernel.set_buffer(args::apply_words::visited, &state.visited[state.current])?;
        self.start(kernel, self.groups_for(count))?;
        self.completions.add(1);
        Ok(())
    }

    /// Copies the parents of the vertices that the last top-down level found into the queue, on the device: entry i of the queue is the
    /// parent of entry i of the next queue.
    pub(crate) fn launch_gather_parents(&mut self, state: &SearchState) -> Result<(), DeviceError> {
        let kernel = &self.kernels.gather_parents;
        kernel.set_buffer(args::gather_parents::found, &state.next)?;
        kernel.set_buffer(args::gather_parents::parent, &state.parent)?;
        kernel.set_buffer(args::gather_parents::gathered, &state.queue)?;
        kernel.set(args::gather_parents::slot, self.slot)?;
        self.start(kernel, self.groups)?;
        self.completions.add(1);
        Ok(())
    }
}
