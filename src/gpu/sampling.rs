//! Estimates of the cost of a level, from a few vertices. Samples are taken after the last of the steps that are launched together, and
//! arrive with its counters.

use super::{
    GpuEngine,
    arguments::{Number, set},
    slots::{ASKED, HUBS, PROBES, SAMPLED, Slot},
};
use crate::{
    engine::{Frontier, SearchState},
    opencl::DeviceError,
};

/// Defaults of a sample that estimates a bottom-up level: vertices tried, and neighbours tested of each, at most.
pub(super) const PLACES: usize = 256;
pub(super) const MOST_PROBES: u32 = 64;
/// Vertices sampled to estimate how many hubs are in the frontier: if every fifth vertex is a hub, a few hundred of the sample are, so that
/// the error of the share is a few hundredths.
pub(super) const HUB_PLACES: usize = 1024;

impl GpuEngine<'_> {
    /// See [`Engine::sample`](crate::bfs::Engine::sample).
    pub(crate) fn sample(&mut self, state: &SearchState) -> Result<Option<f32>, DeviceError> {
        let slot = match self.sampled {
            Some(slot) if self.ahead.samples => slot,
            _ => {
                self.seed(state)?;
                self.launch_sample()?;
                self.read_samples()?
            }
        };
        Ok((slot.get(SAMPLED) > 0).then(|| slot.get(PROBES) as f32 / slot.get(SAMPLED) as f32))
    }

    pub(super) fn launch_sample(&self) -> Result<(), DeviceError> {
        let kernel = &self.side.kernels.sample;
        set(kernel, &[("slot", Number(self.side.slot))])?;
        self.side.start(kernel, self.side.groups_for(self.places))
    }

    /// See [`Engine::sample_hubs`](crate::bfs::Engine::sample_hubs).
    pub(crate) fn sample_hubs(&mut self, state: &SearchState) -> Result<Option<f32>, DeviceError> {
        if state.hubs == 0 || state.frontier.len() == 0 {
            return Ok(None);
        }
        let slot = match self.sampled {
            Some(slot) if self.ahead.hubs => slot,
            _ => {
                self.seed(state)?;
                self.launch_hubs(state)?;
                self.read_samples()?
            }
        };
        // The number of vertices that the sample stands for: the entries of the queue, or all hubs.
        let all = if let Frontier::Queue { len, .. } = state.frontier { len as f64 } else { state.hubs as f64 };
        let share = all * f64::from(slot.get(HUBS)) / f64::from(slot.get(ASKED)) / state.hubs as f64;
        Ok((slot.get(ASKED) > 0).then_some(share.min(1.0) as f32))
    }

    pub(super) fn launch_hubs(&self, state: &SearchState) -> Result<(), DeviceError> {
        let kernel = &self.side.kernels.sample_hubs;
        set(kernel, &[("mean", Number(state.hub_arcs)), ("slot", Number(self.side.slot))])?;
        self.side.start(kernel, self.side.groups_for(HUB_PLACES))
    }

    /// Waits for samples that were launched without a level, and reads them.
    fn read_samples(&mut self) -> Result<Slot, DeviceError> {
        self.side.read_slots()?;
        Ok(self.side.read_slot(self.side.slot))
    }
}
