//! Conversions of the frontier: queue to bitmap, bitmap to queue.

use super::{GpuEngine, arguments as args};
use crate::{
    engine::state::{Frontier, SearchState},
    opencl::DeviceError,
};

impl GpuEngine<'_> {
    /// The frontier as a queue.
    pub(super) fn make_queue(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        self.seed(state)?;
        match state.frontier {
            Frontier::Queue { .. } => return Ok(()),
            Frontier::Bitmap { .. } => self.launch_to_queue(0)?,
            Frontier::Mask { .. } => self.launch_mask_to_queue()?,
        }
        state.frontier = Frontier::Queue { len: state.frontier.len() as usize, claims: false };
        Ok(())
    }

    /// A bitmap becomes a queue.
    pub(super) fn launch_to_queue(&mut self, guard: u32) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let kernel = &self.kernels.bitmap_to_queue;
        kernel.set(args::bitmap_to_queue::slot, slot)?;
        kernel.set(args::bitmap_to_queue::guard, guard)?;
        // Compaction needs every word to have its item: these groups do not loop.
        self.start(kernel, (self.words() as usize).div_ceil(self.words_per_item() * self.group))
    }

    /// A mask becomes a queue, and is cleared.
    pub(super) fn launch_mask_to_queue(&mut self) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let kernel = &self.kernels.mask_to_queue;
        kernel.set(args::mask_to_queue::slot, slot)?;
        self.start(kernel, (self.layout.padded() / 4).div_ceil(self.words_per_item() * self.group))
    }

    /// Words that an item of a conversion works through, as in `kernels/convert.cl`.
    fn words_per_item(&self) -> usize {
        if self.group == 1 { 64 } else { 1 }
    }

    /// The frontier as a mask.
    pub(super) fn make_mask(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        self.seed(state)?;
        if !matches!(state.frontier, Frontier::Mask { .. }) {
            self.launch_to_mask()?;
            state.frontier = Frontier::Mask { len: state.frontier.len() };
        }
        Ok(())
    }

    /// A queue or a bitmap becomes a mask.
    pub(super) fn launch_to_mask(&mut self) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let kernel = &self.kernels.to_mask;
        kernel.set(args::to_mask::slot, slot)?;
        self.start(kernel, self.groups_for(self.layout.padded() / 32))
    }

    /// Clears the masks, which a search that was left in the middle may have left set.
    pub(crate) fn clear_masks(&self) -> Result<(), DeviceError> {
        self.masks[0].fill(0)?;
        self.masks[1].fill(0)
    }
}
