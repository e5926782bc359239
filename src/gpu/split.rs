//! The device's part of a level that it shares with the CPU: its input, and the transfer of its results.

use super::{
    GpuEngine,
    arguments::{Memory, Number, set},
};
use crate::{engine::SearchState, opencl::DeviceError};

impl GpuEngine<'_> {
    /// Changes words of the visited bitmap on the device: from entry `first` on, the queue holds `count` pairs of an index (of a 32-bit
    /// word) and a value.
    pub(crate) fn launch_apply_words(&mut self, state: &SearchState, first: usize, count: usize) -> Result<(), DeviceError> {
        let kernel = &self.side.kernels.apply_words;
        set(
            kernel,
            &[
                ("changes", Memory(&state.queue)),
                ("first", Number(first as u32)),
                ("count", Number(count as u32)),
                ("visited", Memory(&state.visited[state.current])),
            ],
        )?;
        self.side.start(kernel, self.side.groups_for(count))?;
        self.side.completions.add(1);
        Ok(())
    }

    /// Copies the parents of the vertices that the last top-down level found into the queue, on the device: entry i of the queue is the
    /// parent of entry i of the next queue.
    pub(crate) fn launch_gather_parents(&mut self, state: &SearchState) -> Result<(), DeviceError> {
        let kernel = &self.side.kernels.gather_parents;
        set(
            kernel,
            &[
                ("found", Memory(&state.next)),
                ("parent", Memory(&state.parent)),
                ("gathered", Memory(&state.queue)),
                ("slot", Number(self.side.slot)),
            ],
        )?;
        self.side.start(kernel, self.side.groups)?;
        self.side.completions.add(1);
        Ok(())
    }
}
