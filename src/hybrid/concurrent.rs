//! Levels that CPU and devices run at the same time (Remis 2016, section 3.2).

use std::time::Instant;

use super::{Helper, HybridEngine, at_once};
use crate::{
    bfs::{Direction, GpuKernel, LevelPlan, LevelWork, Placement},
    cpu::{CpuEngine, thousandths},
    gpu::check_found,
    opencl::DeviceError,
};

impl HybridEngine<'_> {
    pub(super) fn run_split(&mut self, plan: LevelPlan, gpu_permille: u16) -> Result<LevelWork, DeviceError> {
        let handover_ns = self.give_to_cpu()?;
        let kernel = plan.kernel().ok_or(DeviceError::NONE)?;
        let (work, gpu_permille) = match plan.direction {
            Direction::TopDown => self.split_top_down(gpu_permille, kernel)?,
            Direction::BottomUp => self.split_bottom_up(gpu_permille, kernel)?,
        };
        let work = LevelWork { handover_ns: work.handover_ns + handover_ns, ..work };
        // The planner learns from the share that the devices had: lists and words are not cut.
        self.cpu.state().done(LevelPlan { placement: Placement::Split { gpu_permille, kernel }, ..plan }, &work);
        Ok(work)
    }

    /// Runs a top-down level. It cuts the frontier queue: each device gets a piece from the end of the queue, and returns the vertices that
    /// it finds, with their parents.
    fn split_top_down(&mut self, gpu_permille: u16, kernel: GpuKernel) -> Result<(LevelWork, u16), DeviceError> {
        let mut clock = Clock::new();
        let len = self.cpu.frontier_to_queue();
        let (cut, edges, edges_left) = self.cpu.cut_queue(len, gpu_permille);
        clock.spent.conversion_ns += clock.lap();
        let mut first = cut;
        let count = self.helpers.len();
        let mut launched = Instant::now();
        for (index, helper) in self.helpers.iter_mut().enumerate() {
            let Some(own) = &mut helper.own else { continue };
            let piece = if index + 1 == count { len - first } else { part(len - cut, helper.weight) };
            let state = self.cpu.state_ref();
            own.queue[..piece].copy_from_slice(&state.queue[first..first + piece]);
            clock.spent.copy_ns += clock.lap();
            let changes = helper.bring_bitmap(piece, &state.visited[state.current], &mut clock)?;
            let Some(own) = &mut helper.own else { continue };
            own.queue.to_device(0..piece + 2 * changes)?;
            own.parent.to_device(0..0)?;
            own.next.to_device(0..0)?;
            clock.spent.handover_ns += clock.lap();
            launched = clock.last;
            if changes > 0 {
                helper.gpu.launch_apply_words(own, piece, changes)?;
            }
            // With several devices, the number of arcs that leave one piece is an estimate.
            helper.gpu.launch_top_down(own, kernel, piece, edges_left / count as u64)?;
            helper.gpu.launch_gather_parents(own)?;
            helper.gpu.call_slots()?;
            helper.gpu.device().flush()?;
            clock.spent.wait_ns += clock.lap();
            first += piece;
        }
        let work = self.together(launched, &mut clock, |cpu| cpu.top_down_part(cut, edges))?;
        let mut found = work.found;
        for helper in &mut self.helpers {
            let Some(own) = &mut helper.own else { continue };
            let theirs = helper.gpu.found(kernel)? as usize;
            clock.spent.wait_ns += clock.lap();
            own.next.call_to_host(0..theirs)?;
            own.queue.call_to_host(0..theirs)?;
            helper.gpu.device().finish()?;
            own.next.arrive();
            own.queue.arrive();
            clock.spent.handover_ns += clock.lap();
            helper.gpu.check_queue(&own.next[..theirs])?;
            found += self.cpu.merge_queue(&own.next[..theirs], &own.queue[..theirs]);
            for &v in &own.next[..theirs] {
                helper.seen[v as usize / 64] |= 1 << (v % 64);
            }
            clock.spent.merge_ns += clock.lap();
        }
        self.cpu.state().previous_frontier = len as u64;
        Ok((LevelWork { threads: work.threads, ..clock.level(found) }, thousandths(edges_left, edges)))
    }

    /// Runs a bottom-up level. It cuts the words of the bitmap: each device gets a range at the end of the bitmap.
    fn split_bottom_up(&mut self, gpu_permille: u16, kernel: GpuKernel) -> Result<(LevelWork, u16), DeviceError> {
        let mut clock = Clock::new();
        self.cpu.bring_bitmap_up_to_date();
        let ((cut, gpu_permille), words) = (self.cpu.cut_words(gpu_permille), self.layout.padded() / 64);
        clock.spent.conversion_ns += clock.lap();
        let mut first = cut;
        let count = self.helpers.len();
        let mut launched = Instant::now();
        for (index, helper) in self.helpers.iter_mut().enumerate() {
            let end = if index + 1 == count { words } else { first + part(words - cut, helper.weight) };
            if end > first {
                let state = self.cpu.state_ref();
                let changes = helper.bring_bitmap(0, &state.visited[state.current], &mut clock)?;
                let Some(own) = &mut helper.own else { continue };
                if changes > 0 {
                    own.queue.to_device(0..2 * changes)?;
                }
                own.visited[1].to_device(0..0)?;
                own.parent.to_device(0..0)?;
                clock.spent.handover_ns += clock.lap();
                launched = clock.last;
                if changes > 0 {
                    helper.gpu.launch_apply_words(own, 0, changes)?;
                }
                helper.gpu.launch_bottom_up(own, kernel, 2 * first as u32..2 * end as u32)?;
                // The ranges to transfer back are known in advance, so one wait is enough.
                helper.gpu.call_slots()?;
                own.visited[1].call_range(first..end)?;
                own.parent.call_range(first * 64..end * 64)?;
                own.queue.call_to_host(0..0)?;
                helper.gpu.device().flush()?;
                clock.spent.wait_ns += clock.lap();
            }
            first = end;
        }
        let (mine, threads) = self.together(launched, &mut clock, |cpu| cpu.bottom_up_part(0..cut))?;
        let mut found = mine;
        let mut first = cut;
        for (index, helper) in self.helpers.iter_mut().enumerate() {
            let Some(own) = &mut helper.own else { continue };
            let end = if index + 1 == count { words } else { first + part(words - cut, helper.weight) };
            if end > first {
                let theirs = helper.gpu.found(kernel)?;
                clock.spent.wait_ns += clock.lap();
                own.queue.arrive();
                let (now, parents) = (own.visited[1].range(), own.parent.range());
                clock.spent.handover_ns += clock.lap();
                found += theirs;
                let before = &self.cpu.state_ref().visited[self.cpu.state_ref().current];
                check_found(theirs, helper.gpu.new_in(first..end, now, before)?)?;
                self.cpu.merge_words(first..end, now, parents);
                clock.spent.merge_ns += clock.lap();
            }
            first = end;
        }
        self.cpu.end_bottom_up(found);
        Ok((LevelWork { threads, ..clock.level(found) }, gpu_permille))
    }

    /// Runs `work` on the CPU while another thread waits for the devices. If they take turns, the CPU begins when the devices are done. The
    /// time of the devices counts from `launched`, when the last of them got its first kernel: some devices work while the host still
    /// enqueues, and are done before the host begins to wait.
    fn together<R: Send>(
        &mut self,
        launched: Instant,
        clock: &mut Clock,
        work: impl FnOnce(&mut CpuEngine<'_>) -> R + Send,
    ) -> Result<R, DeviceError> {
        let pair = self.pair.as_ref().ok_or(DeviceError::NONE)?;
        let wait = || (self.devices.iter().try_for_each(|device| device.finish()), launched.elapsed().as_nanos().max(1) as u64);
        let waited = self.split_in_turn.then(wait);
        let ((result, cpu_ns), ((finished, gpu_ns), _)) = at_once(pair, || work(&mut self.cpu), || waited.unwrap_or_else(wait))?;
        finished?;
        (clock.spent.cpu_ns, clock.spent.gpu_ns) = (cpu_ns, gpu_ns);
        clock.spent.wait_ns += clock.lap().saturating_sub(cpu_ns);
        Ok(result)
    }
}

impl Helper<'_> {
    /// Brings the device's visited bitmap up to date with `now`. Words that changed are written to the device's queue after its first
    /// `taken` entries, as pairs of index and value; returns the number of pairs. If they do not fit there, the whole bitmap is
    /// transferred.
    fn bring_bitmap(&mut self, taken: usize, now: &[u64], clock: &mut Clock) -> Result<usize, DeviceError> {
        let Some(own) = &mut self.own else { return Ok(0) };
        own.current = 0;
        // Moving the whole bitmap is faster than moving a quarter of it word by word.
        let room = own.queue.len().saturating_sub(taken).min(now.len()) / 2;
        let mut changes = self.seen_is_known.then_some(0);
        for (word, (&now, seen)) in now.iter().zip(&mut self.seen[..]).enumerate() {
            for half in 0..2 {
                if ((now ^ *seen) >> (32 * half)) as u32 != 0 {
                    changes = changes.filter(|&at| at < room);
                    let Some(at) = &mut changes else { break };
                    own.queue[taken + 2 * *at] = 2 * word as u32 + half;
                    own.queue[taken + 2 * *at + 1] = (now >> (32 * half)) as u32;
                    *at += 1;
                }
            }
            if changes.is_none() {
                break;
            }
            *seen = now;
        }
        clock.spent.copy_ns += clock.lap();
        if let Some(changes) = changes {
            return Ok(changes);
        }
        self.seen_is_known = false;
        own.visited[0].to_host(0..0)?;
        clock.spent.handover_ns += clock.lap();
        own.visited[0].copy_from_slice(now);
        self.seen.copy_from_slice(now);
        clock.spent.copy_ns += clock.lap();
        let all = own.visited[0].device_len();
        own.visited[0].to_device(0..all)?;
        clock.spent.handover_ns += clock.lap();
        self.seen_is_known = true;
        Ok(0)
    }
}

/// Adds up how long the steps of a level take.
struct Clock {
    last: Instant,
    /// Nanoseconds by kind of step.
    spent: LevelWork,
}

impl Clock {
    fn new() -> Self {
        Self { last: Instant::now(), spent: LevelWork::default() }
    }

    /// Nanoseconds since the last lap.
    fn lap(&mut self) -> u64 {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.last, now);
        (now - before).as_nanos() as u64
    }

    /// The record of a level that both sides have run.
    fn level(self, found: u64) -> LevelWork {
        LevelWork { levels: 1, found, finished: found == 0, ..self.spent }
    }
}

/// The part of `all` that a device with a share of `weight` thousandths gets.
fn part(all: usize, weight: u64) -> usize {
    // In 64 bits, since the product does not fit into 32 bits for a large graph.
    (all as u64 * weight.min(1000) / 1000) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A `usize` of 32 bits can't hold 1000 times 4.3 million vertices (tests/arm/run).
    #[test]
    fn parts_of_large_graphs_do_not_overflow_32_bits() {
        assert_eq!(part(4_300_000, 999), 4_295_700);
        assert_eq!(part(u32::MAX as usize, 1000), u32::MAX as usize);
        assert_eq!(part(u32::MAX as usize, u64::MAX), u32::MAX as usize);
        assert_eq!((part(1000, 0), part(0, 500), part(7, 500)), (0, 0, 3));
        // The parts of two devices are together never more than the whole. (The last device also gets the rest.)
        for all in [0, 1, 999, 4_294_968, 16 << 20] {
            for weight in [1, 333, 500, 999] {
                assert!(part(all, weight) + part(all, 1000 - weight) <= all);
            }
        }
    }
}
