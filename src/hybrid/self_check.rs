//! The check of all devices before the first search.

use super::{EngineError, GpuSetup, HybridEngine};
use crate::{
    bfs::{Direction, Engine, GpuKernel, LevelPlan, Placement},
    gpu::{GpuEngine, GpuEngineError},
    graph::Vertex,
    opencl::DeviceError,
};

/// Number of levels that the check compares.
const LEVELS_CHECKED: usize = 4;

impl HybridEngine<'_> {
    /// Runs the first levels of one search with every kernel, and compares the numbers of vertices found with those of the CPU. Drivers of
    /// boards have bugs, and wrong results must be noticed before a validation.
    pub(super) fn check_devices(&mut self, setups: &[GpuSetup]) -> Result<(), EngineError> {
        let csr = self.layout.csr();
        let Some(root) = (0..csr.vertices() as Vertex).max_by_key(|&v| csr.degree(v)) else { return Ok(()) };
        if setups.is_empty() || csr.degree(root) == 0 {
            return Ok(());
        }
        let wanted = self.first_levels(root);
        for (index, setup) in setups.iter().enumerate() {
            let info = setup.device.info();
            self.check_device(index, setup, root, &wanted).map_err(|source| EngineError::Gpu { device: info.name.clone(), source })?;
        }
        Ok(())
    }

    /// Checks one device, if necessary with smaller work-groups.
    fn check_device(&mut self, index: usize, setup: &GpuSetup, root: Vertex, wanted: &[u64; LEVELS_CHECKED]) -> Result<(), GpuEngineError> {
        let options = self.helpers[index].options;
        loop {
            let group = self.helpers[index].gpu.used().group;
            let wrong = self.wrong_kernel(index, root, wanted);
            if setup.passes(group, wrong)? {
                return Ok(());
            }
            let helper = &mut self.helpers[index];
            helper.gpu = GpuEngine::new(self.layout, &setup.device, self.cpu.excluded(), options)?;
            if self.uses.together {
                helper.gpu.remember_levels()?;
            }
            // A launch that failed has left arrays with the device.
            self.give_up();
            self.recover()?;
        }
    }

    /// Number of vertices that the CPU finds at each of the first levels.
    fn first_levels(&mut self, root: Vertex) -> [u64; LEVELS_CHECKED] {
        let mut found = [0; LEVELS_CHECKED];
        let single = std::mem::replace(&mut self.cpu.single_levels, true);
        let Ok(_) = self.cpu.begin(&[self.layout.to_original(root)]);
        for found in &mut found {
            let _ = self.cpu.stats();
            let Ok(work) = self.cpu.run(LevelPlan { direction: Direction::TopDown, placement: Placement::Cpu });
            *found = work.found;
            if *found == 0 {
                break;
            }
        }
        self.cpu.single_levels = single;
        found
    }

    /// The first kernel of a device that does not find `wanted` vertices at each level.
    fn wrong_kernel(&mut self, index: usize, root: Vertex, wanted: &[u64; LEVELS_CHECKED]) -> Result<Option<GpuKernel>, DeviceError> {
        let helper = &mut self.helpers[index];
        let state = match &mut helper.own {
            Some(own) => own,
            None => self.cpu.state(),
        };
        let mut wrong = None;
        helper.gpu.acquire_empty(state)?;
        for kernel in [GpuKernel::Tg, GpuKernel::Tgm, GpuKernel::Bg, GpuKernel::Bgc] {
            helper.gpu.begin(state, root, self.layout.to_original(root))?;
            for &found in wanted {
                state.frontier_edges = state.counted_edges.unwrap_or(0);
                let work = match helper.gpu.run_one(state, kernel) {
                    Err(DeviceError::WRONG) => {
                        wrong = wrong.or(Some(kernel));
                        break;
                    }
                    work => work?,
                };
                state.done(LevelPlan { direction: kernel.direction(), placement: Placement::Gpu(kernel) }, &work);
                if work.found != found {
                    wrong = wrong.or(Some(kernel));
                }
                if found == 0 || wrong.is_some() {
                    break;
                }
            }
            helper.gpu.clear_masks()?;
        }
        helper.gpu.release_empty(state)?;
        Ok(wrong)
    }
}
