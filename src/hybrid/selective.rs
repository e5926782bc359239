//! Levels on one device at a time. CPU and device hand one state to each other (Remis 2016, section 3.1).

use std::time::Instant;

use super::HybridEngine;
use crate::{
    bfs::{GpuKernel, LevelPlan, LevelWork},
    gpu::check_total,
    opencl::DeviceError,
};

impl HybridEngine<'_> {
    pub(super) fn take_back_empty(&mut self) -> Result<(), DeviceError> {
        if let (true, Some(helper)) = (self.on_device, self.helpers.first()) {
            helper.gpu.release_empty(self.cpu.state())?;
        }
        self.on_device = false;
        Ok(())
    }

    /// Makes the CPU the owner of the state. Returns the nanoseconds that this took.
    pub(super) fn give_to_cpu(&mut self) -> Result<u64, DeviceError> {
        let (true, Some(helper)) = (self.on_device, self.helpers.first_mut()) else { return Ok(0) };
        let begin = Instant::now();
        helper.gpu.release(self.cpu.state())?;
        let nanoseconds = begin.elapsed().as_nanos() as u64;
        self.on_device = false;
        self.cpu.state_was_changed();
        Ok(nanoseconds)
    }

    /// Makes the first device the owner of the state. Returns the times of conversion and handover.
    fn give_to_gpu(&mut self) -> Result<LevelWork, DeviceError> {
        if self.on_device {
            return Ok(LevelWork::default());
        }
        let begin = Instant::now();
        self.cpu.bring_bitmap_up_to_date();
        let settled = Instant::now();
        if let Some(helper) = self.helpers.first_mut() {
            helper.gpu.acquire(self.cpu.state())?;
        }
        self.on_device = true;
        let (conversion_ns, handover_ns) = ((settled - begin).as_nanos() as u64, settled.elapsed().as_nanos() as u64);
        Ok(LevelWork { conversion_ns, handover_ns, ..LevelWork::default() })
    }

    /// Hands the state to the first device and back, if that is requested for every level. Without a device there is nothing to hand over.
    pub(super) fn hand_round(&mut self) -> Result<LevelWork, DeviceError> {
        if !self.handover_round_levels || self.helpers.is_empty() {
            return Ok(LevelWork::default());
        }
        let there = self.give_to_gpu()?;
        let back_ns = self.give_to_cpu()?;
        Ok(LevelWork { handover_ns: there.handover_ns + back_ns, ..there })
    }

    pub(super) fn run_gpu(&mut self, plan: LevelPlan, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        let moved = self.give_to_gpu()?;
        let Some(helper) = self.helpers.first_mut() else { return Err(DeviceError::NONE) };
        let single = self.cpu.single_levels;
        let state = self.cpu.state();
        let work = if single { helper.gpu.run_one(state, kernel) } else { helper.gpu.run(state, kernel) }?;
        let work = LevelWork { conversion_ns: moved.conversion_ns, handover_ns: moved.handover_ns, ..work };
        state.done(plan, &work);
        let visited = state.visited_count;
        // Without this check, a device that reports found vertices when none are left would keep the search running forever.
        check_total(visited, self.cpu.searched())?;
        Ok(work)
    }
}
