//! Levels of vertices found in a search that parted.

use super::GpuEngine;
use crate::{
    engine::state::{Frontier, SearchState},
    opencl::{Buffer, DeviceError, Kernel, OpenClError},
};

impl GpuEngine<'_> {
    /// Makes room for the levels of an asynchronous search.
    pub(crate) fn remember_levels(&mut self) -> Result<(), OpenClError> {
        let levels = Buffer::new(&self.device, self.layout.padded(), "levels")?;
        let set = |kernel: &Kernel, index| kernel.set_buffer(index, &levels);
        set(&self.kernels.stamp_queue, 1)
            .and_then(|()| set(&self.kernels.stamp_bitmap, 2))
            .map_err(|error| OpenClError::Call { device: self.device.info().name.clone(), error })?;
        self.level_of = Some(levels);
        Ok(())
    }

    /// Has every vertex of the frontier remember that it is at `level`.
    pub(crate) fn stamp(&self, state: &SearchState, level: u32) -> Result<(), DeviceError> {
        match state.frontier {
            Frontier::Queue { len: 0, .. } | Frontier::Mask { .. } => Ok(()),
            Frontier::Queue { len, .. } => {
                let kernel = &self.kernels.stamp_queue;
                kernel.set_buffer(0, &state.queue)?;
                kernel.set(2, len as u32)?;
                kernel.set(3, level)?;
                kernel.launch(self.groups_for(len), self.group)
            }
            Frontier::Bitmap { .. } => {
                let kernel = &self.kernels.stamp_bitmap;
                kernel.set_buffer(0, &state.visited[state.current])?;
                kernel.set_buffer(1, &state.visited[1 - state.current])?;
                kernel.set(4, level)?;
                kernel.launch(self.groups_for(self.layout.padded() / 32), self.group)
            }
        }
    }

    /// Forgets all levels: 0 for everybody.
    pub(crate) fn clear_levels(&self) -> Result<(), DeviceError> {
        match &self.level_of {
            Some(buffer) => buffer.fill(0),
            None => Ok(()),
        }
    }

    /// The levels stamped, by internal vertex (0: found before the searches parted, or not at all), into `levels`.
    pub(crate) fn read_levels(&self, levels: &mut [u32]) -> Result<(), DeviceError> {
        match &self.level_of {
            Some(buffer) => buffer.read(0..buffer.len(), levels),
            None => Ok(()),
        }
    }
}
