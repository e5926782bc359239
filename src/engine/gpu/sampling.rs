//! Estimates of what a level would cost, from a few vertices.

use super::{EXTRA, FOUND, GpuEngine};
use crate::{
    engine::state::{Frontier, SearchState},
    opencl::DeviceError,
};

/// Vertices looked at to estimate a bottom-up level, and neighbours of each, at most.
pub(super) const PLACES_SAMPLED: usize = 256;
pub(super) const PROBES: u32 = 64;
/// Vertices looked at to estimate how many hubs are in the frontier: a few hundred of them are hubs where every fifth vertex is one, so
/// that the share is off by a few hundredths.
pub(super) const HUB_PLACES: usize = 1024;

impl GpuEngine<'_> {
    /// See [`Engine::sample`](crate::bfs::Engine::sample).
    pub(crate) fn sample(&mut self, state: &SearchState) -> Result<Option<f32>, DeviceError> {
        let slot = self.next_slot();
        let kernel = &self.kernels.sample;
        kernel.set_buffer(0, &state.visited[state.current])?;
        kernel.set(6, slot)?;
        kernel.launch(self.groups_for(PLACES_SAMPLED), self.group)?;
        let counted = self.read_slot()?;
        Ok((counted[FOUND] > 0).then(|| counted[EXTRA] as f32 / counted[FOUND] as f32))
    }

    /// Vertices looked at for hubs, of all that there are.
    pub(super) fn hub_places(&self) -> usize {
        self.layout.csr().vertices().min(HUB_PLACES)
    }

    /// See [`Engine::sample_hubs`](crate::bfs::Engine::sample_hubs).
    pub(crate) fn sample_hubs(&mut self, state: &SearchState) -> Result<Option<f32>, DeviceError> {
        let len = state.frontier.len();
        if state.hubs == 0 || len == 0 {
            return Ok(None);
        }
        let slot = self.next_slot();
        // What the sample is taken of: the entries of the queue, or the hubs themselves.
        let all = match state.frontier {
            Frontier::Queue { len, .. } => {
                let (kernel, places) = (&self.kernels.hubs_in_queue, len.min(HUB_PLACES));
                kernel.set_buffer(0, &state.queue)?;
                kernel.set(1, len as u32)?;
                kernel.set(3, state.hub_arcs)?;
                kernel.set(4, places as u32)?;
                kernel.set(6, slot)?;
                kernel.launch(self.groups_for(places), self.group)?;
                len as f64
            }
            Frontier::Bitmap { .. } => {
                let (kernel, places) = (&self.kernels.hubs_in_bitmap, self.hub_places());
                kernel.set_buffer(0, &state.visited[state.current])?;
                kernel.set_buffer(1, &state.visited[1 - state.current])?;
                kernel.set(4, state.hub_arcs)?;
                kernel.set(7, slot)?;
                kernel.launch(self.groups_for(places), self.group)?;
                state.hubs as f64
            }
            Frontier::Mask { .. } => {
                let (kernel, places) = (&self.kernels.hubs_in_mask, self.hub_places());
                kernel.set_buffer(0, &self.masks[0])?;
                kernel.set(3, state.hub_arcs)?;
                kernel.set(6, slot)?;
                kernel.launch(self.groups_for(places), self.group)?;
                state.hubs as f64
            }
        };
        let counted = self.read_slot()?;
        let share = all * f64::from(counted[EXTRA]) / f64::from(counted[FOUND]) / state.hubs as f64;
        Ok((counted[FOUND] > 0).then_some(share.min(1.0) as f32))
    }
}
