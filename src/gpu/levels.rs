//! Levels on the device: one at a time, or several as steps that are launched one after another, with one wait for all of them.
//!
//! Each step reads the state of the search from the counter slot of the step before, and checks whether it applies: the frontier is not
//! empty, it has the form that the step needs, and the planner would surely choose this step ([`Ahead`]). A step that does not apply costs
//! a launch and changes nothing.

use std::time::Instant;

use super::{
    GpuEngine, RUN_LEVELS,
    arguments::{Memory, Number, set},
    arrivals::{demand, expanded, visited},
    slots::{BEFORE, EDGES, FLIP_BITMAP, FLIP_QUEUE, GUARDS, IS_BITMAP, IS_MASK, IS_QUEUE, LEVELS, SLOTS, STATE, TAIL, guards},
};
use crate::{
    bfs::{Ahead, Direction, GpuKernel, LevelWork, Placement},
    engine::{Frontier, SearchState},
    opencl::DeviceError,
};

/// Steps launched together, at most.
pub(super) const MOST_STEPS: usize = 16;

/// The guard of a level that has been planned: it always holds.
const PLANNED: u32 = 0;

/// A step that is not the first of its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// A run of small levels by one work-group.
    Run,
    /// A TG level by all work-groups.
    TopDown,
    /// A TGM level.
    Mask,
    BottomUp,
    /// The conversion of a bitmap to a queue.
    ToQueue,
}

use Next::{BottomUp, Mask, Run, ToQueue, TopDown};

/// Steps after a run of small levels: levels too large for a run, then the small levels at the end. If the planner changes direction,
/// bottom-up levels are in the middle of a search.
const AFTER_RUN: &[Next] = &[TopDown, TopDown, BottomUp, BottomUp, BottomUp, ToQueue, TopDown, Run, TopDown, TopDown, Run];
/// Steps after a TG level by all work-groups.
const AFTER_TOP_DOWN: &[Next] = &[TopDown, BottomUp, BottomUp, BottomUp, ToQueue, TopDown, Run, TopDown, TopDown, Run];
/// Steps where levels stay small for long, as on roads. Now and then a level may be too large for a run.
const LONG_RUNS: &[Next] = &[Run, Run, Run, TopDown, Run, Run, Run, Run, Run, Run];
const AFTER_BOTTOM_UP: &[Next] = &[BottomUp, BottomUp, BottomUp, ToQueue, TopDown, Run, BottomUp, BottomUp, BottomUp, BottomUp];
const AFTER_MASK: &[Next] = &[Mask; 10];

/// Levels that a step has run, but that the search has not received yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    kernel: GpuKernel,
    levels: u32,
    found: u64,
    /// Frontier after the step, in its present form.
    frontier: Frontier,
    /// Arcs that leave this frontier.
    edges: u64,
    /// Arcs of the frontiers that were both found and expanded within the step.
    between: u64,
    /// Size of the frontier before this one.
    before: u64,
}

/// Levels that have been run ahead, and the index of the entry that the search gets next.
#[derive(Debug, Default)]
pub(super) struct RunAhead {
    done: [Option<Done>; MOST_STEPS],
    next: usize,
}

impl RunAhead {
    fn next(&mut self) -> Option<Done> {
        let done = self.done.get(self.next).copied().flatten();
        self.next += usize::from(done.is_some());
        done
    }

    /// Whether no level was run that has not been planned.
    pub(super) fn is_over(&self) -> bool {
        self.done.get(self.next).copied().flatten().is_none()
    }

    /// Discards all entries.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// A launched chain: slot and kernel of each step (`None`: a conversion), and the number of bottom-up levels among them.
struct Chain {
    steps: [(u32, Option<GpuKernel>); 2 * MOST_STEPS],
    len: usize,
    bottom_up: usize,
}

impl Chain {
    fn add(&mut self, slot: u32, kernel: Option<GpuKernel>) {
        self.steps[self.len] = (slot, kernel);
        self.len += 1;
    }
}

impl GpuEngine<'_> {
    /// Sets the decisions that the planner is sure of. [`run`](Self::run) launches later levels as far as these decisions reach.
    pub(crate) fn look_ahead(&mut self, ahead: &Ahead) {
        self.ahead = *ahead;
    }

    /// Runs exactly one level.
    pub(crate) fn run_one(&mut self, state: &mut SearchState, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        self.chain(state, kernel, false)?;
        self.tell(state, kernel)
    }

    /// Runs one level, or with TG a run of levels too small to share. Also launches the levels that are sure to follow, which the next
    /// calls return.
    pub(crate) fn run(&mut self, state: &mut SearchState, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        if let Some(done) = self.run_ahead.next() {
            return self.take(state, kernel, done, true);
        }
        self.chain(state, kernel, true)?;
        self.tell(state, kernel)
    }

    /// Gives the search the first step of a chain.
    fn tell(&mut self, state: &mut SearchState, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        // A level that was planned always applies, unless the device has a wrong state of the search.
        let done = self.run_ahead.next().ok_or(DeviceError::WRONG)?;
        self.take(state, kernel, done, false)
    }

    fn take(&self, state: &mut SearchState, kernel: GpuKernel, done: Done, ahead: bool) -> Result<LevelWork, DeviceError> {
        // The guards hold only where the planner makes the same decision. If it decides otherwise, its counts differ from those of the
        // device.
        demand(done.kernel == kernel)?;
        state.frontier = done.frontier;
        state.bitmap_is_current = true;
        state.previous_frontier = done.before;
        state.next_edges = Some(done.edges);
        state.expanded_edges += done.between;
        Ok(LevelWork {
            levels: done.levels,
            found: done.found,
            finished: done.frontier.len() == 0,
            with_previous: ahead,
            ..LevelWork::default()
        })
    }

    /// Launches a level and, if `more`, the levels after it that are sure. Waits for all of them.
    fn chain(&mut self, state: &mut SearchState, kernel: GpuKernel, more: bool) -> Result<(), DeviceError> {
        let clock = Instant::now();
        self.expect_levels();
        self.run_ahead.clear();
        self.sampled = None;
        self.seed(state)?;
        let begin = self.side.slot;
        let mut chain = Chain { steps: [(0, None); 2 * MOST_STEPS], len: 0, bottom_up: 0 };
        let small = state.frontier_edges < self.run_arcs && state.frontier.len() < self.run_arcs;
        let pattern = match kernel {
            GpuKernel::Tg => {
                self.make_queue(state)?;
                if more && small {
                    self.launch_run(PLANNED)?;
                    chain.add(self.side.slot, Some(kernel));
                    if self.long_runs { LONG_RUNS } else { AFTER_RUN }
                } else {
                    self.side.launch_top_down(kernel, PLANNED, 0, state.frontier_edges)?;
                    chain.add(self.side.slot, Some(kernel));
                    AFTER_TOP_DOWN
                }
            }
            GpuKernel::Tgm => {
                self.make_mask(state)?;
                self.side.launch_top_down(kernel, PLANNED, 0, state.frontier_edges)?;
                chain.add(self.side.slot, Some(kernel));
                AFTER_MASK
            }
            GpuKernel::Bg | GpuKernel::Bgc => {
                let was_mask = matches!(state.frontier, Frontier::Mask { .. });
                self.launch_words(state, state.current, kernel, 0..self.words(), PLANNED)?;
                chain.add(self.side.slot, Some(kernel));
                chain.bottom_up = 1;
                if was_mask {
                    self.clear_masks()?;
                }
                AFTER_BOTTOM_UP
            }
        };
        if more {
            self.launch_more(state, kernel, pattern, &mut chain)?;
        }
        if self.ahead.samples {
            self.launch_sample()?;
        }
        if self.ahead.hubs && state.hubs > 0 {
            self.launch_hubs(state)?;
        }
        self.read_chain(state, begin, &chain)?;
        let arcs = expanded(&self.side.read_slot(self.side.slot)).saturating_sub(expanded(&self.side.read_slot(begin)));
        self.side.device.ran(arcs, clock.elapsed().as_nanos() as u64);
        Ok(())
    }

    /// Lets the next wait take as long as levels may take: top-down, each arc is met at most once in a search.
    fn expect_levels(&self) {
        self.side.device.expect(self.layout.csr().arcs() as u64);
    }

    /// Launches the steps after the first, as far as the planner is sure of them.
    fn launch_more(&mut self, state: &SearchState, kernel: GpuKernel, pattern: &[Next], chain: &mut Chain) -> Result<(), DeviceError> {
        self.tell_guards()?;
        let plans = self.ahead.plans;
        let planned = |direction| {
            (1..).zip(plans).find_map(|(guard, surely)| match surely?.plan {
                plan if plan.direction != direction => None,
                plan => {
                    if let Placement::Gpu(kernel) = plan.placement {
                        Some((guard, kernel))
                    } else {
                        None
                    }
                }
            })
        };
        let (top_down, bottom_up) = (planned(Direction::TopDown), planned(Direction::BottomUp));
        // Frontiers of later levels are unknown.
        let arcs = self.layout.csr().arcs() as u64;
        let mut can_be_bitmap = kernel.direction() == Direction::BottomUp;
        let mut leaves_bottom_up = false;
        for next in pattern {
            if chain.len >= self.steps {
                break;
            }
            match (next, top_down, bottom_up) {
                (Run, Some((guard, GpuKernel::Tg)), _) => {
                    self.launch_run(guard)?;
                    chain.add(self.side.slot, Some(GpuKernel::Tg));
                }
                (TopDown, Some((guard, GpuKernel::Tg)), _) => {
                    // Smaller levels are left to the next run.
                    let least = self.run_arcs.min(u64::from(u32::MAX)) as u32;
                    self.side.launch_top_down(GpuKernel::Tg, guard, least, arcs)?;
                    chain.add(self.side.slot, Some(GpuKernel::Tg));
                }
                (Mask, Some((guard, GpuKernel::Tgm)), _) => {
                    self.side.launch_top_down(GpuKernel::Tgm, guard, 0, arcs)?;
                    chain.add(self.side.slot, Some(GpuKernel::Tgm));
                }
                (BottomUp, _, Some((guard, kernel))) if kernel.direction() == Direction::BottomUp && !leaves_bottom_up => {
                    // These steps get the two bitmaps as arguments in alternation, so none may be skipped while a later one runs. That
                    // holds: if one does not apply, the next one does not apply either.
                    let current = (state.current + chain.bottom_up) % 2;
                    self.launch_words(state, current, kernel, 0..self.words(), guard)?;
                    chain.add(self.side.slot, Some(kernel));
                    chain.bottom_up += 1;
                    can_be_bitmap = true;
                }
                (ToQueue, Some((guard, GpuKernel::Tg)), _) if can_be_bitmap => {
                    self.launch_to_queue(guard)?;
                    chain.add(self.side.slot, None);
                    leaves_bottom_up = true;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the guards to the device, unless it has them already.
    fn tell_guards(&mut self) -> Result<(), DeviceError> {
        if self.guarded != Some(self.ahead) {
            self.guarded = None;
            self.side.guard_words.copy_from_slice(&guards(&self.ahead));
            self.side.in_flight = true;
            // SAFETY: every chain ends with a wait, before the next one writes to `guard_words`. After a failure, `recover` waits. `drop`
            // waits too, or keeps the memory.
            unsafe { self.side.guards.write_later(0..GUARDS, &self.side.guard_words) }?;
            self.guarded = Some(self.ahead);
        }
        Ok(())
    }

    /// Waits for a chain, and records what its steps did.
    fn read_chain(&mut self, state: &mut SearchState, begin: u32, chain: &Chain) -> Result<(), DeviceError> {
        self.side.read_slots()?;
        let last = self.side.read_slot(self.side.slot);
        let old = self.device_state;
        let now = last.get(STATE);
        let mut before = self.side.read_slot(begin);
        let mut done = 0;
        for &(slot, kernel) in &chain.steps[..chain.len] {
            let after = self.side.read_slot(slot);
            self.check_step(&before, &after)?;
            if let (Some(kernel), levels @ 1..) = (kernel, after.get(LEVELS)) {
                self.run_ahead.done[done] = Some(Done {
                    kernel,
                    levels,
                    found: visited(&after) - visited(&before),
                    frontier: form(after.get(STATE), after.get(TAIL)),
                    edges: u64::from(after.get(EDGES)),
                    between: expanded(&after).saturating_sub(expanded(&before) + u64::from(before.get(EDGES))),
                    before: u64::from(after.get(BEFORE)),
                });
                done += 1;
            }
            before = after;
        }
        if chain.len > 1 {
            self.steps = if done <= 1 { (chain.len / 2).max(2) } else { self.most_steps };
        }
        // A step after the last level may have converted its frontier.
        if let Some(Some(done)) = done.checked_sub(1).map(|last| &mut self.run_ahead.done[last]) {
            done.frontier = form(now, last.get(TAIL));
        }
        self.long_runs = self.roads || matches!(self.run_ahead.done.iter().flatten().last(), Some(done) if done.levels == RUN_LEVELS);
        if (old ^ now) & FLIP_QUEUE != 0 {
            std::mem::swap(&mut state.queue, &mut state.next);
        }
        if (old ^ now) & FLIP_BITMAP != 0 {
            state.current = 1 - state.current;
        }
        self.device_state = now;
        self.sampled = Some(last);
        Ok(())
    }

    /// Number of 32-bit words of a bitmap.
    pub(super) fn words(&self) -> u32 {
        (self.layout.padded() / 32) as u32
    }

    /// Gives the device the state of the search, unless the device itself produced that state.
    pub(crate) fn seed(&mut self, state: &SearchState) -> Result<(), DeviceError> {
        if self.seeded {
            return Ok(());
        }
        let len = state.frontier.len();
        self.bind_state(state, 1 - state.current)?;
        let form = match state.frontier {
            Frontier::Queue { .. } => IS_QUEUE,
            Frontier::Bitmap { .. } => IS_BITMAP,
            Frontier::Mask { .. } => IS_MASK,
        };
        self.write_seed(state, form, len, state.frontier_edges)?;
        self.seeded = true;
        Ok(())
    }

    fn write_seed(&mut self, state: &SearchState, form: u32, len: u64, edges: u64) -> Result<(), DeviceError> {
        self.device_state = form;
        self.side.seed(form, len, edges, state.visited_count.saturating_sub(len), state.expanded_edges)
    }

    /// Launches a run of levels by one work-group, which ends when the frontier is empty or large.
    fn launch_run(&mut self, guard: u32) -> Result<(), DeviceError> {
        let slot = self.side.next_slot();
        let kernel = &self.side.kernels.tg_run;
        set(kernel, &[("slot", Number(slot)), ("guard", Number(guard))])?;
        self.side.start(kernel, 1)
    }

    /// Starts TG or TGM over the first `len` entries of the queue, which about `edges` arcs leave. The vertices found are in the next
    /// queue.
    pub(crate) fn launch_top_down(
        &mut self,
        state: &mut SearchState,
        kernel: GpuKernel,
        len: usize,
        edges: u64,
    ) -> Result<(), DeviceError> {
        self.forget();
        self.expect_levels();
        self.has_part = len > 0;
        self.bind_state(state, state.current)?;
        self.write_seed(state, IS_QUEUE, len as u64, edges)?;
        if kernel != GpuKernel::Tgm {
            return self.side.launch_top_down(kernel, PLANNED, 0, edges);
        }
        self.launch_to_mask()?;
        self.side.launch_top_down(kernel, PLANNED, 0, edges)?;
        self.launch_mask_to_queue()?;
        // TGM swaps no queues, so the conversion has written to the queue that the level began with.
        std::mem::swap(&mut state.queue, &mut state.next);
        Ok(())
    }

    /// Number of vertices that `kernel`, the last one started, has found. To be called after [`call_slots`](Self::call_slots) and a wait
    /// for the device.
    pub(crate) fn found(&mut self, kernel: GpuKernel) -> Result<u64, DeviceError> {
        self.side.in_flight = false;
        self.side.completions.check(&self.side.arrived)?;
        let last = self.side.read_slot(self.side.slot);
        // The step after TGM has converted the mask to a queue.
        let level = if kernel == GpuKernel::Tgm { self.side.read_slot((self.side.slot + SLOTS - 1) % SLOTS) } else { last };
        self.check_counts(&level)?;
        demand(level.get(TAIL) == last.get(TAIL))?;
        // A kernel that the driver gave up has not counted its level.
        demand(level.get(LEVELS) > 0 || !self.has_part)?;
        Ok(if level.get(LEVELS) == 0 { 0 } else { u64::from(last.get(TAIL)) })
    }

    /// Starts BG or BGC over a range of 32-bit words of the bitmap. The result is in `visited[1 - current]`.
    pub(crate) fn launch_bottom_up(
        &mut self,
        state: &SearchState,
        kernel: GpuKernel,
        words: std::ops::Range<u32>,
    ) -> Result<(), DeviceError> {
        self.forget();
        self.expect_levels();
        self.has_part = true;
        // A frontier of one vertex, so that the level applies.
        self.write_seed(state, IS_QUEUE, 1, 0)?;
        self.launch_words(state, state.current, kernel, words, PLANNED)
    }

    fn launch_words(
        &mut self,
        state: &SearchState,
        current: usize,
        kernel: GpuKernel,
        words: std::ops::Range<u32>,
        guard: u32,
    ) -> Result<(), DeviceError> {
        let [now, next] = [&state.visited[current], &state.visited[1 - current]];
        let arrays = [("visited", Memory(now)), ("own", Memory(now)), ("next", Memory(next)), ("parent", Memory(&state.parent))];
        set(self.side.bottom_up(kernel), &arrays)?;
        let arcs = self.layout.csr().arcs() as u64 * words.len() as u64 / u64::from(self.words()).max(1);
        self.side.launch_bottom_up(kernel, guard, words, arcs)
    }
}

/// A frontier of `len` vertices, in the form that the bits of `state` name.
fn form(state: u32, len: u32) -> Frontier {
    if state & IS_BITMAP != 0 {
        Frontier::Bitmap { len: u64::from(len) }
    } else if state & IS_MASK != 0 {
        Frontier::Mask { len: u64::from(len) }
    } else {
        Frontier::Queue { len: len as usize }
    }
}
