//! Levels on the device.

use super::{EDGES, EXPANDED, EXTRA, FOUND, GpuEngine, LEVELS, TAIL};
use crate::{
    bfs::{GpuKernel, LevelWork},
    engine::state::{Frontier, SearchState},
    opencl::{DeviceError, Kernel},
};

/// Levels in one such launch, so that no driver's watchdog takes it for a hang.
pub(super) const RUN_LEVELS: u32 = 512;

impl GpuEngine<'_> {
    /// Runs exactly one level.
    pub(crate) fn run_one(&mut self, state: &mut SearchState, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        if kernel == GpuKernel::Tg { self.run_queue(state) } else { self.run(state, kernel) }
    }

    /// Runs one level, or with TG a run of levels too small to share.
    pub(crate) fn run(&mut self, state: &mut SearchState, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        match kernel {
            GpuKernel::Tg if state.frontier_edges < self.run_arcs => self.run_small(state),
            GpuKernel::Tg => self.run_queue(state),
            GpuKernel::Tgm => self.run_mask(state),
            GpuKernel::Bg | GpuKernel::Bgc => {
                let words = 0..(self.layout.padded() / 32) as u32;
                self.launch_bottom_up(state, kernel, words)?;
                let frontier = state.frontier.len();
                if let Frontier::Mask { .. } = state.frontier {
                    self.masks[0].fill(0)?;
                }
                let counted = self.read_slot()?;
                state.current = 1 - state.current;
                Ok(self.found(state, Frontier::Bitmap { len: u64::from(counted[FOUND]) }, frontier, counted[EDGES]))
            }
        }
    }

    /// Takes note of a level that found the new `frontier`, which `edges` leave.
    fn found(&self, state: &mut SearchState, frontier: Frontier, before: u64, edges: u32) -> LevelWork {
        state.frontier = frontier;
        state.bitmap_is_current = true;
        state.previous_frontier = before;
        state.next_edges = Some(u64::from(edges));
        LevelWork { levels: 1, found: frontier.len(), finished: frontier.len() == 0, ..LevelWork::default() }
    }

    /// Levels by one group, until the frontier is empty or large.
    fn run_small(&mut self, state: &mut SearchState) -> Result<LevelWork, DeviceError> {
        let len = self.make_queue(state)?;
        let slot = self.next_slot();
        let kernel = &self.kernels.tg_run;
        kernel.set_buffer(0, &state.queue)?;
        kernel.set(1, len as u32)?;
        kernel.set_buffer(4, &state.visited[state.current])?;
        kernel.set_buffer(5, &state.parent)?;
        kernel.set_buffer(6, &state.next)?;
        kernel.set(10, slot)?;
        kernel.launch(1, self.group)?;
        let counted = self.read_slot()?;
        if counted[LEVELS] % 2 == 1 {
            std::mem::swap(&mut state.queue, &mut state.next);
        }
        state.expanded_edges += u64::from(counted[EXPANDED]);
        let frontier = Frontier::Queue { len: counted[TAIL] as usize, claims: false };
        let work = self.found(state, frontier, u64::from(counted[EXTRA]), counted[EDGES]);
        Ok(LevelWork { levels: counted[LEVELS], found: u64::from(counted[FOUND]), ..work })
    }

    /// TG, one level.
    fn run_queue(&mut self, state: &mut SearchState) -> Result<LevelWork, DeviceError> {
        let len = self.make_queue(state)?;
        self.launch_top_down(state, len, state.exact_edges())?;
        let counted = self.read_slot()?;
        std::mem::swap(&mut state.queue, &mut state.next);
        let frontier = Frontier::Queue { len: counted[TAIL] as usize, claims: false };
        Ok(self.found(state, frontier, len as u64, counted[EDGES]))
    }

    /// Starts TG over the first `len` entries of the queue. `edges` leave them, if that is known and no estimate: then heavy vertices
    /// can be ruled out. What it finds is in the next queue.
    pub(crate) fn launch_top_down(&mut self, state: &SearchState, len: usize, edges: Option<u64>) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let kernel = &self.kernels.tg;
        kernel.set_buffer(0, &state.queue)?;
        kernel.set(1, len as u32)?;
        kernel.set_buffer(4, &state.visited[state.current])?;
        kernel.set_buffer(5, &state.parent)?;
        kernel.set_buffer(6, &state.next)?;
        kernel.set(9, slot)?;
        // An item of its own takes work as it comes.
        let groups = if self.group == 1 { self.groups.min(len.max(1)) } else { self.groups_for(len) };
        kernel.launch(groups, self.group)?;
        if let Some(heavy) = self.heavy_kernel(0, edges) {
            heavy.set_buffer(5, &state.next)?;
            self.launch_heavy(heavy, state, slot)?;
        }
        Ok(())
    }

    /// The kernel for the heavy vertices that TG (`which` is 0) or TGM (1) has put aside, unless `edges`, the exact number of arcs that
    /// leave the frontier, rules out that there are any.
    fn heavy_kernel(&self, which: usize, edges: Option<u64>) -> Option<&Kernel> {
        let (kernels, arcs) = (self.kernels.heavy.as_ref()?, self.heavy?);
        edges.is_none_or(|edges| edges >= arcs).then_some(&kernels[which])
    }

    /// Launches it; its output is set already.
    fn launch_heavy(&self, heavy: &Kernel, state: &SearchState, slot: u32) -> Result<(), DeviceError> {
        heavy.set_buffer(3, &state.visited[state.current])?;
        heavy.set_buffer(4, &state.parent)?;
        heavy.set(7, slot)?;
        heavy.launch(self.groups, self.group)
    }

    /// How many vertices TG found, and how many arcs leave them. Waits for it.
    pub(crate) fn top_down_result(&mut self) -> Result<(usize, u64), DeviceError> {
        let counted = self.read_slot()?;
        Ok((counted[TAIL] as usize, u64::from(counted[EDGES])))
    }

    /// Starts BG or BGC over a range of 32-bit words of the bitmap. What it finds is in `visited[1 - current]`.
    pub(crate) fn launch_bottom_up(
        &mut self,
        state: &SearchState,
        kernel: GpuKernel,
        words: std::ops::Range<u32>,
    ) -> Result<(), DeviceError> {
        let slot = self.next_slot();
        let kernel = if kernel == GpuKernel::Bgc { &self.kernels.bgc } else { &self.kernels.bg };
        kernel.set_buffer(0, &state.visited[state.current])?;
        kernel.set_buffer(1, &state.visited[1 - state.current])?;
        kernel.set_buffer(2, &state.parent)?;
        kernel.set(6, words.start)?;
        kernel.set(7, words.end)?;
        kernel.set(9, slot)?;
        let items = if self.group == 1 { words.len().div_ceil(256) } else { words.len() * 32 };
        kernel.launch(self.groups_for(items), self.group)
    }

    /// How many vertices BG found, and how many arcs leave them. Waits for it.
    pub(crate) fn bottom_up_result(&mut self) -> Result<(u64, u64), DeviceError> {
        let counted = self.read_slot()?;
        Ok((u64::from(counted[FOUND]), u64::from(counted[EDGES])))
    }

    fn run_mask(&mut self, state: &mut SearchState) -> Result<LevelWork, DeviceError> {
        self.make_mask(state)?;
        let before = state.frontier.len();
        let slot = self.next_slot();
        let kernel = &self.kernels.tgm;
        kernel.set_buffer(0, &self.masks[0])?;
        kernel.set_buffer(4, &state.visited[state.current])?;
        kernel.set_buffer(5, &state.parent)?;
        kernel.set_buffer(6, &self.masks[1])?;
        kernel.set(9, slot)?;
        let items = if self.group == 1 { self.layout.padded().div_ceil(1024) } else { self.layout.padded() };
        kernel.launch(self.groups_for(items), self.group)?;
        if let Some(heavy) = self.heavy_kernel(1, state.exact_edges()) {
            heavy.set_buffer(5, &self.masks[1])?;
            self.launch_heavy(heavy, state, slot)?;
        }
        let counted = self.read_slot()?;
        self.masks.swap(0, 1);
        Ok(self.found(state, Frontier::Mask { len: u64::from(counted[FOUND]) }, before, counted[EDGES]))
    }
}
