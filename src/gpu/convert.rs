//! Conversions of the frontier: bitmap or mask to queue, queue or bitmap to mask.

use super::{
    GpuEngine,
    arguments::{Number, set},
};
use crate::{
    engine::{Frontier, SearchState},
    opencl::DeviceError,
};

impl GpuEngine<'_> {
    /// Makes the frontier a queue.
    pub(super) fn make_queue(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        self.seed(state)?;
        match state.frontier {
            Frontier::Queue { .. } => return Ok(()),
            Frontier::Bitmap { .. } => self.launch_to_queue(0)?,
            Frontier::Mask { .. } => self.launch_mask_to_queue()?,
        }
        state.frontier = Frontier::Queue { len: state.frontier.len() as usize };
        Ok(())
    }

    /// Launches the conversion of a bitmap to a queue.
    pub(super) fn launch_to_queue(&mut self, guard: u32) -> Result<(), DeviceError> {
        let slot = self.side.next_slot();
        let kernel = &self.side.kernels.bitmap_to_queue;
        set(kernel, &[("slot", Number(slot)), ("guard", Number(guard))])?;
        // The kernel does not loop, so there must be a work-item for every word.
        self.side.start(kernel, (self.words() as usize).div_ceil(self.side.group))
    }

    /// Launches the conversion of a mask to a queue, which clears the mask.
    pub(super) fn launch_mask_to_queue(&mut self) -> Result<(), DeviceError> {
        let slot = self.side.next_slot();
        let kernel = &self.side.kernels.mask_to_queue;
        set(kernel, &[("slot", Number(slot))])?;
        self.side.start(kernel, (self.layout.padded() / 4).div_ceil(self.side.group))
    }

    /// Makes the frontier a mask.
    pub(super) fn make_mask(&mut self, state: &mut SearchState) -> Result<(), DeviceError> {
        self.seed(state)?;
        if !matches!(state.frontier, Frontier::Mask { .. }) {
            self.launch_to_mask()?;
            state.frontier = Frontier::Mask { len: state.frontier.len() };
        }
        Ok(())
    }

    /// Launches the conversion of a queue or a bitmap to a mask.
    pub(super) fn launch_to_mask(&mut self) -> Result<(), DeviceError> {
        let slot = self.side.next_slot();
        let kernel = &self.side.kernels.to_mask;
        set(kernel, &[("slot", Number(slot))])?;
        self.side.start(kernel, self.side.groups_for(self.layout.padded() / 32))
    }

    /// Clears the masks, for example after a search that ended early.
    pub(crate) fn clear_masks(&self) -> Result<(), DeviceError> {
        self.masks[0].fill(0)?;
        self.masks[1].fill(0)
    }
}
