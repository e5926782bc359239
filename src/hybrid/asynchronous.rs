//! Asynchronous searches: CPU and device search separately, and their results are merged at the end (Remis 2016, section 3.3).

use std::time::Instant;

use super::{HybridEngine, at_once};
use crate::{
    bfs::{Ahead, Direction, Engine, GpuKernel, LevelPlan, LevelWork, Placement, SampledCosts},
    cpu::CpuEngine,
    engine::{Frontier, SearchState},
    gpu::{GpuEngine, check_total},
    graph::Layout,
    opencl::DeviceError,
};

impl HybridEngine<'_> {
    /// Lets CPU and device search to the end, each on its own state.
    pub(super) fn run_apart(&mut self, plan: LevelPlan, gpu_permille: u16) -> Result<LevelWork, DeviceError> {
        let mut handover_ns = self.give_to_cpu()?;
        let begin = Instant::now();
        let len = self.cpu.frontier_to_queue();
        let (cut, edges, edges_left) = self.cpu.cut_queue(len, gpu_permille);
        let converted = Instant::now();
        let (Some(helper), Some(pair)) = (self.helpers.first_mut(), self.pair.as_ref()) else { return Err(DeviceError::NONE) };
        let Some(own) = helper.own.as_mut() else { return Err(DeviceError::NONE) };
        let padded = self.layout.padded();
        let visited_before = self.cpu.state().visited_count;
        let since = self.cpu.state().level;
        helper.gpu.release_empty(own)?;
        helper.seen_is_known = false;
        // Makes two states. Each has its part of the frontier, and treats the other part as unvisited.
        self.cpu.copy(&self.cpu.state_ref().parent[..padded], &mut own.parent);
        let state = self.cpu.state();
        own.current = 0;
        own.visited[0].copy_from_slice(&state.visited[state.current]);
        own.queue[..len - cut].copy_from_slice(&state.queue[cut..len]);
        for &v in &state.queue[..cut] {
            own.parent[v as usize] = crate::graph::NONE;
            own.visited[0][v as usize / 64] &= !(1 << (v % 64));
        }
        for &v in &state.queue[cut..len] {
            state.parent[v as usize] = crate::graph::NONE;
        }
        own.restart();
        own.bitmap_is_current = true;
        own.level = since;
        own.expanded_edges = state.expanded_edges;
        // A frontier of one vertex without an arc is not counted among those visited.
        own.visited_count = visited_before.saturating_sub(cut as u64);
        own.frontier = Frontier::Queue { len: len - cut };
        own.counted_edges = Some(edges_left);
        state.frontier = Frontier::Queue { len: cut };
        state.bitmap_is_current = false;
        state.visited_count = visited_before.saturating_sub((len - cut) as u64);
        (state.counted_edges, state.counted_are_estimated) = (Some(edges), false);
        self.cpu.state_was_changed();
        let [mine, theirs] = &mut self.levels;
        mine.fill(0);
        let parted = Instant::now();
        helper.gpu.acquire(own)?;
        handover_ns += parted.elapsed().as_nanos() as u64;

        let together = Instant::now();
        let searched = self.cpu.searched();
        let (layout, [costs, far_costs]) = (self.layout, self.costs);
        let ((threads, cpu_ns), (outcome, gpu_ns)) = at_once(
            pair,
            || search_on_cpu(&mut self.cpu, mine, costs),
            || search_on_device(&mut helper.gpu, own, layout, searched, far_costs),
        )?;
        outcome?;

        let ended = Instant::now();
        helper.gpu.release(own)?;
        helper.gpu.read_levels(theirs)?;
        helper.gpu.check_levels(theirs)?;
        handover_ns += ended.elapsed().as_nanos() as u64;
        let gathered = Instant::now();
        let merged = self.cpu.merge_apart(&own.parent, mine, theirs);
        log::debug!("asynchronous: CPU and device both found {} of {} vertices", merged.repeated, merged.reached);
        let state = self.cpu.state();
        state.visited_count = visited_before;
        state.frontier = Frontier::Queue { len: 0 };
        state.level = since;
        let work = LevelWork {
            levels: merged.deepest.max(since) - since + 1,
            found: merged.reached.saturating_sub(visited_before),
            finished: true,
            conversion_ns: (converted - begin).as_nanos() as u64,
            handover_ns,
            cpu_ns,
            gpu_ns,
            copy_ns: (parted - converted).as_nanos() as u64,
            wait_ns: ((ended - together).as_nanos() as u64).saturating_sub(cpu_ns),
            merge_ns: gathered.elapsed().as_nanos() as u64,
            threads,
            ..LevelWork::default()
        };
        state.done(plan, &work);
        Ok(work)
    }
}

/// Searches from the state's frontier to the end on the CPU. Returns the number of threads that took part.
fn search_on_cpu(cpu: &mut CpuEngine<'_>, levels: &mut [u32], costs: SampledCosts) -> u32 {
    let single = std::mem::replace(&mut cpu.single_levels, true);
    let mut threads = 1;
    cpu.stamp(levels, cpu.state_ref().level);
    while cpu.state_ref().frontier.len() > 0 {
        let mut stats = cpu.stats();
        if costs.wants_sample(&stats) {
            let Ok(sampled) = cpu.sample();
            stats.sampled_probes = sampled;
        }
        let direction = if costs.is_bottom_up(&stats) { Direction::BottomUp } else { Direction::TopDown };
        let Ok(work) = cpu.run(LevelPlan { direction, placement: Placement::Cpu });
        threads = threads.max(work.threads);
        cpu.stamp(levels, cpu.state_ref().level);
        if work.finished {
            break;
        }
    }
    cpu.single_levels = single;
    threads
}

/// Searches from the state's frontier to the end on a device.
fn search_on_device(
    gpu: &mut GpuEngine<'_>,
    own: &mut SearchState,
    layout: &Layout,
    searched: u64,
    costs: SampledCosts,
) -> Result<(), DeviceError> {
    gpu.clear_levels()?;
    gpu.look_ahead(&Ahead { samples: true, ..Ahead::default() });
    gpu.stamp(own, own.level)?;
    while own.frontier.len() > 0 {
        let edges = own.counted_edges.unwrap_or(0);
        let mut stats = own.stats(edges, searched, layout);
        if costs.wants_sample(&stats) {
            stats.sampled_probes = gpu.sample(own)?;
        }
        let (direction, kernel) =
            if costs.is_bottom_up(&stats) { (Direction::BottomUp, GpuKernel::Bg) } else { (Direction::TopDown, GpuKernel::Tg) };
        let work = gpu.run_one(own, kernel)?;
        own.done(LevelPlan { direction, placement: Placement::Gpu(kernel) }, &work);
        check_total(own.visited_count, searched)?;
        // All these levels have one record. A device may not keep all of their launches, so their times are added up here.
        gpu.count_times()?;
        gpu.stamp(own, own.level)?;
    }
    Ok(())
}
