//! The levels of vertices found by an asynchronous search, recorded on the device.

use super::{
    GpuEngine,
    arguments::{Memory, Number, set},
};
use crate::{
    engine::{Frontier, SearchState},
    opencl::{Buffer, DeviceError, OpenClError},
};

impl GpuEngine<'_> {
    /// Allocates the levels of an asynchronous search.
    pub(crate) fn remember_levels(&mut self) -> Result<(), OpenClError> {
        let levels = Buffer::new(&self.side.device, self.layout.padded(), "levels")?;
        let set = self.side.set(&[("level_of", Memory(&levels))]);
        set.map_err(|error| OpenClError::Call { device: self.side.device.info().name.clone(), error })?;
        self.level_of = Some(levels);
        Ok(())
    }

    /// Records that every vertex of the frontier is at `level`.
    pub(crate) fn stamp(&mut self, state: &SearchState, level: u32) -> Result<(), DeviceError> {
        match state.frontier {
            Frontier::Queue { len: 0, .. } | Frontier::Mask { .. } => return Ok(()),
            Frontier::Queue { len, .. } => {
                let kernel = &self.side.kernels.stamp_queue;
                set(kernel, &[("queue", Memory(&state.queue)), ("len", Number(len as u32)), ("level", Number(level))])?;
                self.side.start(kernel, self.side.groups_for(len))?;
            }
            Frontier::Bitmap { .. } => {
                let kernel = &self.side.kernels.stamp_bitmap;
                set(
                    kernel,
                    &[
                        ("now", Memory(&state.visited[state.current])),
                        ("before", Memory(&state.visited[1 - state.current])),
                        ("level", Number(level)),
                    ],
                )?;
                self.side.start(kernel, self.side.groups_for(self.layout.padded() / 32))?;
            }
        }
        self.side.completions.add(1);
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
            self.side.read_slots()?;
        }
        Ok(())
    }
}
