//! Levels that CPU and devices run at the same time (Remis 2016, section 3.2).

use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use super::{Helper, HybridEngine, locked};
use crate::{
    bfs::{Direction, GpuKernel, LevelPlan, LevelWork},
    engine::{CpuEngine, Team, gpu::check_total},
    opencl::{Device, DeviceError},
};

impl HybridEngine<'_> {
    pub(super) fn run_split(&mut self, plan: LevelPlan, gpu_permille: u16) -> Result<LevelWork, DeviceError> {
        let handover_ns = self.give_to_cpu()?;
        let work = match plan.direction {
            Direction::TopDown => self.split_top_down(gpu_permille)?,
            Direction::BottomUp => self.split_bottom_up(gpu_permille)?,
        };
        let work = LevelWork { handover_ns: work.handover_ns + handover_ns, ..work };
        self.cpu.state().done(plan, &work);
        Ok(work)
    }

    /// The frontier queue is cut; each device gets a piece of its end.
    fn split_top_down(&mut self, gpu_permille: u16) -> Result<LevelWork, DeviceError> {
        let begin = Instant::now();
        let (len, repeats_before) = self.cpu.settle_as_queue();
        let (cut, edges, edges_left) = self.cpu.cut_queue(len, gpu_permille);
        let converted = Instant::now();
        let mut handover_ns = 0;
        let mut first = cut;
        let count = self.helpers.len();
        for (index, helper) in self.helpers.iter_mut().enumerate() {
            let Some(own) = &mut helper.own else { continue };
            let piece = if index + 1 == count { len - first } else { part(len - cut, helper.weight) };
            let state = self.cpu.state();
            own.queue[..piece].copy_from_slice(&state.queue[first..first + piece]);
            own.current = 0;
            own.visited[0].copy_from_slice(&state.visited[state.current]);
            let ready = Instant::now();
            let words = own.visited[0].device_len();
            own.queue.to_device(0..piece)?;
            own.visited[0].to_device(0..words)?;
            own.parent.to_device(0..0)?;
            own.next.to_device(0..0)?;
            handover_ns += ready.elapsed().as_nanos() as u64;
            // Which of them leave the pieces of several devices nobody has counted.
            helper.gpu.launch_top_down(own, piece, (count == 1).then_some(edges_left))?;
            helper.gpu.device().flush()?;
            first += piece;
        }
        let (work, times) = together(self.pair.as_ref(), &mut self.cpu, &self.helpers, |cpu| cpu.top_down_part(cut, edges))?;
        let mut found = work.found;
        for helper in &mut self.helpers {
            let Some(own) = &mut helper.own else { continue };
            let (theirs, _) = helper.gpu.top_down_result()?;
            let done = Instant::now();
            let numbers = own.parent.device_len();
            own.next.to_host(0..theirs)?;
            own.parent.to_host(0..numbers)?;
            own.queue.to_host(0..0)?;
            own.visited[0].to_host(0..0)?;
            handover_ns += done.elapsed().as_nanos() as u64;
            helper.gpu.check_queue(&own.next[..theirs])?;
            found += self.cpu.merge_queue(&own.next[..theirs], &own.parent);
        }
        self.cpu.state().previous_frontier = len as u64;
        Ok(LevelWork {
            levels: 1,
            found,
            finished: found == 0,
            repeats_before,
            conversion_ns: (converted - begin).as_nanos() as u64,
            handover_ns,
            cpu_ns: times.cpu_ns,
            gpu_ns: times.gpu_ns,
            threads: work.threads,
        })
    }

    /// The words of the bitmap are cut; each device gets a range of the end.
    fn split_bottom_up(&mut self, gpu_permille: u16) -> Result<LevelWork, DeviceError> {
        let begin = Instant::now();
        let repeats_before = self.cpu.settle();
        let (cut, words) = (self.cpu.cut_words(gpu_permille), self.layout.padded() / 64);
        let converted = Instant::now();
        let mut handover_ns = 0;
        let mut first = cut;
        let count = self.helpers.len();
        for (index, helper) in self.helpers.iter_mut().enumerate() {
            let Some(own) = &mut helper.own else { continue };
            let end = if index + 1 == count { words } else { first + part(words - cut, helper.weight) };
            let state = self.cpu.state();
            own.current = 0;
            own.visited[0].copy_from_slice(&state.visited[state.current]);
            let ready = Instant::now();
            let all = own.visited[0].device_len();
            own.visited[0].to_device(0..all)?;
            own.visited[1].to_device(0..0)?;
            own.parent.to_device(0..0)?;
            handover_ns += ready.elapsed().as_nanos() as u64;
            if end > first {
                helper.gpu.launch_bottom_up(own, GpuKernel::Bg, 2 * first as u32..2 * end as u32)?;
                helper.gpu.device().flush()?;
            }
            first = end;
        }
        let ((mine, threads), times) = together(self.pair.as_ref(), &mut self.cpu, &self.helpers, |cpu| cpu.bottom_up_part(0..cut))?;
        let mut found = mine;
        let mut first = cut;
        for (index, helper) in self.helpers.iter_mut().enumerate() {
            let Some(own) = &mut helper.own else { continue };
            let end = if index + 1 == count { words } else { first + part(words - cut, helper.weight) };
            let theirs = if end > first { helper.gpu.bottom_up_result()?.0 } else { 0 };
            let done = Instant::now();
            own.visited[0].to_host(0..0)?;
            own.visited[1].to_host(first..end)?;
            own.parent.to_host(first * 64..end * 64)?;
            handover_ns += done.elapsed().as_nanos() as u64;
            found += theirs;
            let before = &self.cpu.state_ref().visited[self.cpu.state_ref().current];
            check_total(helper.gpu.new_in(first..end, &own.visited[1], before)?.abs_diff(theirs), 0)?;
            self.cpu.merge_words(first..end, &own.visited[1], &own.parent);
            first = end;
        }
        self.cpu.end_bottom_up(found);
        Ok(LevelWork {
            levels: 1,
            found,
            finished: found == 0,
            repeats_before,
            conversion_ns: (converted - begin).as_nanos() as u64,
            handover_ns,
            cpu_ns: times.cpu_ns,
            gpu_ns: times.gpu_ns,
            threads,
        })
    }
}

/// The part of `all` that a device of so many thousandths gets.
fn part(all: usize, weight: u64) -> usize {
    // In 64 bits: thousandths of a large graph are more than 32 hold.
    (all as u64 * weight.min(1000) / 1000) as usize
}

/// How long both sides of a split level took.
#[derive(Debug, Default, Clone, Copy)]
struct Times {
    cpu_ns: u64,
    gpu_ns: u64,
}

/// Runs `work` on the CPU while another thread waits for the devices, which have been started.
fn together<'g, R: Default + Send>(
    pair: Option<&Team>,
    cpu: &mut CpuEngine<'g>,
    helpers: &[Helper<'g>],
    work: impl Fn(&mut CpuEngine<'g>) -> R + Sync,
) -> Result<(R, Times), DeviceError> {
    let Some(pair) = pair else { return Err(DeviceError::NONE) };
    let begin = Instant::now();
    let near = Mutex::new((cpu, R::default(), 0));
    let far = Mutex::new((Ok(()), 0));
    // Not the helpers themselves, whose kernels are for one thread: only their devices.
    let mut devices: [Option<&Device>; 8] = [None; 8];
    for (slot, helper) in devices.iter_mut().zip(helpers) {
        *slot = Some(helper.gpu.device());
    }
    let wait = || {
        let mut far = locked(&far);
        if far.1 == 0 {
            far.0 = devices.iter().flatten().try_for_each(|device| device.finish());
            far.1 = begin.elapsed().as_nanos().max(1) as u64;
        }
    };
    pair.run(&|index| {
        if index == 0 {
            let mut near = locked(&near);
            let (cpu, result, elapsed) = &mut *near;
            *result = work(cpu);
            *elapsed = begin.elapsed().as_nanos() as u64;
            drop(near);
        }
        wait();
    });
    let (result, gpu_ns) = far.into_inner().unwrap_or_else(PoisonError::into_inner);
    result?;
    let (_, result, cpu_ns) = near.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((result, Times { cpu_ns, gpu_ns }))
}
