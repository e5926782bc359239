//! The levels of vertices found by an asynchronous search, recorded on the device.

use super::{GpuEngine, arguments as args};
use crate::{
    engine::{Frontier, SearchState},
    opencl::{Buffer, DeviceError, Kernel, OpenClError},
};

impl GpuEngine<'_> {
    /// Allocates the levels of an asynchronous search.
    pub(crate) fn remember_levels(&mut self) -> Result<(), OpenClError> {
        let levels = Buffer::new(&self.device, self.layout.padded(), "levels")?;
        let set = |kernel: &Kernel, index| kernel.set_buffer(index, &levels);
        set(&self.kernels.stamp_queue, args::stamp_queue::level_of)
            .and_then(|()| set(&self.kernels.stamp_bitmap, args::stamp_bitmap::level_of))
            .map_err(|error| OpenClError::Call { device: self.device.info().name.clone(), error })?;
        self.level_of = Some(levels);
        Ok(())
    }

    /// Records that every vertex of the frontier is at `level`.
    pub(crate) fn stamp(&mut self, state: &SearchState, level: u32) -> Result<(), DeviceError> {
        match state.frontier {
            Frontier::Queue { len: 0, .. } | Frontier::Mask { .. } => return Ok(()),
            Frontier::Queue { len, .. } => {
                let kernel = &self.kernels.stamp_queue;
                kernel.set_buffer(args::stamp_queue::queue, &state.queue)?;
                kernel.set(args::stamp_queue::len, len as u32)?;
                kernel.set(args::stamp_queue::level, level)?;
                self.start(kernel, self.groups_for(len))?;
            }
            Frontier::Bitmap { .. } => {
                let kernel = &self.kernels.stamp_bitmap;
                kernel.set_buffer(args::stamp_bitmap::now, &state.visited[state.current])?;
                kernel.set_buffer(args::stamp_bitmap::before, &state.visited[1 - state.current])?;
                kernel.set(args::stamp_bitmap::level, level)?;
                self.start(kernel, self.groups_for(self.layout.padded() / 32))?;
            }
        }
        self.completions.add(1);
        Ok(())
    }

    /// Sets all levels to 0.
    pub(crate) fn clear_levels(&self) -> Result<(), DeviceError> {
        match &self.level_of {
            Some(buffer) => buffer.fill(0),
            None => Ok(()),
        }
    }

    /// Reads the recorded levels into `levels`, by internal vertex (0: found before CPU and device searched separately, or not at all).
    pub(crate) fn read_levels(&mut self, levels: &mut [u32]) -> Result<(), DeviceError> {
        if let Some(buffer) = &self.level_of {
            buffer.read(0..buffer.len(), levels)?;
            // The last levels were recorded after the last slots had been read.
            self.read_slots()?;
        }
        Ok(())
    }
}
