//! The frontier from one form into another.

use super::GpuEngine;
use crate::{
    engine::state::{Frontier, SearchState},
    opencl::DeviceError,
};

impl GpuEngine<'_> {
    /// The frontier as a queue; returns its length.
    pub(super) fn make_queue(&mut self, state: &mut SearchState) -> Result<usize, DeviceError> {
        let len = state.frontier.len() as usize;
        let per_item = if self.group == 1 { 64 } else { 1 };
        match state.frontier {
            Frontier::Queue { .. } => return Ok(len),
            Frontier::Bitmap { .. } => {
                let slot = self.next_slot();
                let kernel = &self.kernels.bitmap_to_queue;
                kernel.set_buffer(0, &state.visited[state.current])?;
                kernel.set_buffer(1, &state.visited[1 - state.current])?;
                kernel.set_buffer(3, &state.queue)?;
                kernel.set(5, slot)?;
                // Compaction needs every word to have its item: these groups do not loop.
                kernel.launch((self.layout.padded() / 32).div_ceil(per_item * self.group), self.group)?;
            }
            Frontier::Mask { .. } => {
                let slot = self.next_slot();
                let kernel = &self.kernels.mask_to_queue;
                kernel.set_buffer(0, &self.masks[0])?;
                kernel.set_buffer(2, &state.queue)?;
                kernel.set(4, slot)?;
                kernel.launch((self.layout.padded() / 4).div_ceil(per_item * self.group), self.group)?;
            }
        }
        state.frontier = Frontier::Queue { len, claims: false };
        Ok(len)
    }

    /// The frontier as a mask.
    pub(super) fn make_mask(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        let len = state.frontier.len();
        match state.frontier {
            Frontier::Mask { .. } => return Ok(()),
            Frontier::Queue { len, .. } => {
                let slot = self.next_slot();
                let kernel = &self.kernels.queue_to_mask;
                kernel.set_buffer(0, &state.queue)?;
                kernel.set(1, len as u32)?;
                kernel.set_buffer(2, &self.masks[0])?;
                kernel.set(4, slot)?;
                kernel.launch(self.groups_for(len), self.group)?;
            }
            Frontier::Bitmap { .. } => {
                let slot = self.next_slot();
                let kernel = &self.kernels.bitmap_to_mask;
                kernel.set_buffer(0, &state.visited[state.current])?;
                kernel.set_buffer(1, &state.visited[1 - state.current])?;
                kernel.set_buffer(3, &self.masks[0])?;
                kernel.set(5, slot)?;
                kernel.launch(self.groups_for(self.layout.padded() / 32), self.group)?;
            }
        }
        state.frontier = Frontier::Mask { len };
        Ok(())
    }

    /// Clears the masks, which a search that was left in the middle may have left set.
    pub(crate) fn clear_masks(&self) -> Result<(), DeviceError> {
        self.masks[0].fill(0)?;
        self.masks[1].fill(0)
    }
}
