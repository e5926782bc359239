//! CPU and GPU together: every level runs where its plan says, and memory is handed over where the owner changes.
//!
//! - *Selective* (Remis 2016, section 3.1): one device at a time runs a level. CPU and device hand one state to each other.
//! - *Concurrent* (3.2): the CPU keeps the state. Each device gets its part of the frontier (or of the unvisited vertices) and the visited
//!   bitmap in its own memory. CPU and devices work at the same time. Then the vertices that the devices found are merged into the state.
//! - *Asynchronous* (3.3): the device gets a part of the frontier and a copy of the state. CPU and device both search to the end, and every
//!   vertex keeps the smaller of its two levels. Each side treats the other side's part of the frontier as unvisited, so a bottom-up level
//!   may find these vertices again, at a level that is too deep. No level derived from such a vertex is too small, and the other side finds
//!   the right level. So the smaller level is right.

mod asynchronous;
mod concurrent;
mod selective;
mod self_check;

use std::{
    sync::{Arc, Mutex},
    time::Instant,
};

use crate::{
    bfs::{Ahead, Engine, LevelPlan, LevelStats, LevelWork, Placement, SampledCosts, Uses},
    cpu::{CpuEngine, CpuEngineError, ParallelThresholds, Simd},
    engine::{OnHost, SearchState},
    gpu::{DeviceUse, GpuEngine, GpuEngineError, GpuOptions, GpuSetup, OnDevice, check_parents},
    graph::{Layout, NONE, Place, Vertex},
    memory::{OutOfMemory, ShareError, Slab},
    opencl::{Device, DeviceError, is_forked, locked},
    threads::Team,
    words::naming,
};

/// A reason why a hybrid engine can't be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine of the CPU can't be set up.
    #[error(transparent)]
    Cpu(#[from] CpuEngineError),
    /// The engine of a device can't be set up.
    #[error("{}", naming(device, source))]
    Gpu {
        /// The device.
        device: String,
        /// Why.
        #[source]
        source: GpuEngineError,
    },
}

impl EngineError {
    /// Whether the cause is a lack of memory of the host.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::Cpu(error) => matches!(error, CpuEngineError::OutOfMemory(_)),
            Self::Gpu { source, .. } => {
                matches!(source, GpuEngineError::OutOfMemory(_) | GpuEngineError::Share(ShareError::OutOfMemory(_)))
            }
        }
    }
}

impl From<OutOfMemory> for EngineError {
    fn from(error: OutOfMemory) -> Self {
        Self::Cpu(error.into())
    }
}

#[derive(Debug)]
struct Helper<'g> {
    gpu: GpuEngine<'g>,
    /// The options of the engine.
    options: GpuOptions,
    /// The device's own state, if the device works at the same time as the CPU.
    own: Option<SearchState>,
    /// The visited bitmap that the device has in that state, if it is known. Then only words that differ are transferred.
    seen: Slab<u64>,
    seen_is_known: bool,
    /// Share of the device in the work of all devices, in thousandths.
    weight: u64,
}

/// The CPU engine together with any number of OpenCL devices.
#[derive(Debug)]
pub struct HybridEngine<'g> {
    layout: &'g Layout,
    cpu: CpuEngine<'g>,
    helpers: Vec<Helper<'g>>,
    /// The devices of the helpers. Another thread may wait for these, but kernels belong to one thread.
    devices: Vec<Arc<Device>>,
    uses: Uses,
    /// A source of the last search that takes part in it; its parent is itself.
    source: Vertex,
    /// Whether the host has the last word on the parents: it knows which sources the layout leaves out.
    ends_on_host: bool,
    /// Whether the first device owns the state.
    on_device: bool,
    /// Whether devices run levels before they are planned.
    looks_ahead: bool,
    /// Whether a call failed during a search. Owners and contents are restored before the next search begins.
    failed: bool,
    /// Whether the last search ended before its last level. Its parents are right. Everything else is restored as after a failure.
    ended_early: bool,
    /// Whether levels run one by one, each on one device or on both. Then no plan lets CPU and device search to the end.
    level_by_level: bool,
    /// A thread that waits for devices while the caller searches.
    pair: Option<Team>,
    /// Levels by internal vertex in an asynchronous search: the CPU's, and the device's.
    levels: [Slab<u32>; 2],
    /// See [`Search::set_split_in_turn`](crate::search::Search::set_split_in_turn).
    pub(crate) split_in_turn: bool,
    /// See [`Search::set_handover_round_levels`](crate::search::Search::set_handover_round_levels).
    pub(crate) handover_round_levels: bool,
    /// Costs that decide directions in an asynchronous search, which asks no planner: the CPU's, and the device's.
    costs: [SampledCosts; 2],
}

impl<'g> HybridEngine<'g> {
    /// An engine of the CPU and the devices of `setups`.
    ///
    /// # Errors
    /// [`EngineError`] if memory, kernels or vector instructions are not available.
    pub fn new(
        layout: &'g Layout,
        team: Team,
        parallel: ParallelThresholds,
        simd: Simd,
        setups: &[GpuSetup],
        uses: Uses,
    ) -> Result<Self, EngineError> {
        // Only levels that are split run on several devices. The state that a device shares with the CPU is on the first.
        let setups = if uses.together { setups } else { &setups[..setups.len().min(1)] };
        let of = |setup: &GpuSetup| setup.device.info().name.clone();
        let pair = if uses.together { Some(Team::beside(&team).map_err(CpuEngineError::Threads)?) } else { None };
        let state = match setups.first() {
            Some(setup) if uses.alone => SearchState::new(layout, &OnDevice { device: &setup.device, way: setup.way }, true)
                .map_err(|error| EngineError::Gpu { device: of(setup), source: error.into() })?,
            _ => SearchState::new(layout, &OnHost, true)?,
        };
        let mut cpu = CpuEngine::new(layout, team, parallel, simd, state)?;
        cpu.counts_alone = setups.is_empty();
        let units = |setup: &GpuSetup| u64::from(setup.device.compute_units());
        let all: u64 = setups.iter().map(units).sum();
        let mut helpers = Vec::new();
        for setup in setups {
            let made = setup.build(|options| set_up(layout, setup, options, cpu.excluded(), uses));
            let ((gpu, own), options) = made.map_err(|source| EngineError::Gpu { device: of(setup), source })?;
            let words = if own.is_some() { layout.padded() / 64 + 1 } else { 0 };
            let seen = Slab::zeroed(words, "bitmaps")?;
            helpers.push(Helper { gpu, options, own, seen, seen_is_known: false, weight: 1000 * units(setup) / all.max(1) });
        }
        let levels = if uses.together { layout.padded() } else { 0 };
        let mut engine = Self {
            layout,
            cpu,
            helpers,
            devices: setups.iter().map(|setup| Arc::clone(&setup.device)).collect(),
            uses,
            source: NONE,
            ends_on_host: false,
            on_device: false,
            looks_ahead: true,
            failed: false,
            ended_early: false,
            level_by_level: false,
            pair,
            levels: [Slab::zeroed(levels, "levels")?, Slab::zeroed(levels, "levels")?],
            split_in_turn: false,
            handover_round_levels: false,
            costs: [SampledCosts::default(), setups.first().and_then(|setup| setup.options.costs).unwrap_or_default()],
        };
        engine.check_devices(setups)?;
        Ok(engine)
    }

    /// Sets whether searches begin on the device, from the next one on.
    pub fn set_home(&mut self, at_home_on_gpu: bool) {
        self.uses.at_home_on_gpu = at_home_on_gpu;
    }

    /// Sets whether a device runs levels before they are planned if their plan is sure, from the next search on. If it does not, the record
    /// of each level has its own time.
    pub fn set_looks_ahead(&mut self, looks_ahead: bool) {
        self.looks_ahead = looks_ahead;
    }

    /// Sets whether every level is run and recorded by itself, from the next search on. If not, consecutive levels too small to share run
    /// together.
    pub fn set_single_levels(&mut self, single_levels: bool) {
        self.cpu.single_levels = single_levels;
    }

    /// Calls `search` with every level run by itself, and none beyond the planned one, so that the search may end after any level.
    pub(crate) fn level_by_level<T>(&mut self, search: impl FnOnce(&mut Self) -> T) -> T {
        let single = std::mem::replace(&mut self.cpu.single_levels, true);
        let outer = std::mem::replace(&mut self.level_by_level, true);
        let result = search(self);
        self.level_by_level = outer;
        self.cpu.single_levels = single;
        result
    }

    /// Whether vertex `v` (an internal number) has been reached. If a device owns the state, the host takes it back.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn has_reached(&mut self, v: Vertex) -> Result<bool, DeviceError> {
        self.sound(|engine| {
            engine.give_to_cpu()?;
            Ok(engine.cpu.state_ref().parent[v as usize] != NONE)
        })
    }

    /// Ends a search between two levels, as [`HybridEngine::finish`] does after the last: the parents are those of the vertices reached so
    /// far.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn finish_early(&mut self) -> Result<(), DeviceError> {
        self.sound(|engine| engine.give_to_cpu().map(drop))?;
        self.ended_early = !self.helpers.is_empty();
        self.finish_at(false)
    }

    /// What the engine was set up for.
    pub fn uses(&self) -> Uses {
        self.uses
    }

    /// The threads of the CPU.
    pub fn team(&self) -> &Team {
        self.cpu.team()
    }

    /// Vector instructions in use.
    pub fn simd(&self) -> Simd {
        self.cpu.simd()
    }

    /// The devices, with the settings in use.
    pub fn devices(&self) -> impl Iterator<Item = DeviceUse> + '_ {
        self.helpers.iter().map(|helper| helper.gpu.used())
    }

    /// For each device, whether a call has failed since the last successful wait for everything launched.
    pub fn failed_devices(&self) -> impl Iterator<Item = bool> + '_ {
        self.devices.iter().map(|device| device.has_failed())
    }

    /// Parents by original vertex, after [`HybridEngine::finish`]; empty after a search that failed.
    pub fn parents(&self) -> &[Vertex] {
        if self.failed { &[] } else { self.cpu.parents() }
    }

    /// Number of vertices that have a parent (or a level) in `parents`, and the sum of their `degrees`. Both slices have an entry per
    /// original vertex.
    pub(crate) fn count_reached(&self, parents: &[Vertex], degrees: &[u32]) -> (u64, u64) {
        self.cpu.count_reached(parents, degrees)
    }

    /// Sets whether the CPU records levels from the next search on, for [`HybridEngine::finish_into`]. (If devices take part, levels can
    /// only be derived from the parents.)
    pub(crate) fn note_distances(&mut self, are_wanted: bool) {
        self.cpu.note_distances(are_wanted && self.helpers.is_empty());
    }

    /// Ends a search of the CPU alone, early or not, and writes parents and levels to the caller's arrays, one entry per original vertex.
    /// Returns `false` if a device takes part or levels were not recorded: [`HybridEngine::finish`] must then end the search. Unless `all`
    /// was searched, the frontier is the deepest level of the tree.
    pub(crate) fn finish_into(&mut self, parents: Option<&mut [Vertex]>, levels: Option<&mut [u32]>, all: bool) -> bool {
        if !self.helpers.is_empty() || levels.is_some_and(|levels| !self.cpu.noted_distances_into(levels, all)) {
            return false;
        }
        if let Some(parents) = parents {
            self.cpu.parents_into(parents, all);
        }
        true
    }

    /// Writes the level of every original vertex, after [`HybridEngine::finish`]. Returns `false` if the parents are not a tree.
    pub(crate) fn levels_into(&self, levels: &mut [u32]) -> bool {
        !self.failed && self.cpu.levels_into(levels)
    }

    /// Writes the source of every original vertex, to which its parents lead (see [`CpuEngine::label`]).
    pub(crate) fn label(&mut self, parents: Option<&[Vertex]>, labels: &mut [Vertex], deepest: u32, outside: bool) {
        self.cpu.label(parents, labels, deepest, self.helpers.is_empty(), outside);
    }

    /// Ends a search: puts the parents into the order of the original vertices, and on the host.
    ///
    /// # Errors
    /// The device failed.
    pub fn finish(&mut self) -> Result<(), DeviceError> {
        self.finish_at(true)
    }

    /// Ends a search. Unless `all` was searched, the host has the state, and the frontier is the deepest level of the tree.
    fn finish_at(&mut self, all: bool) -> Result<(), DeviceError> {
        self.sound(|engine| {
            if engine.ends_on_host {
                engine.give_to_cpu()?;
            }
            match engine.helpers.first_mut() {
                Some(helper) if engine.on_device => helper.gpu.map_back(engine.cpu.state())?,
                _ => engine.cpu.map_back(all),
            }
            if engine.helpers.is_empty() {
                return Ok(());
            }
            // The caller may use parents as indices.
            let vertices = engine.layout.vertices();
            let is_wrong = !engine.cpu.parents_hold(|parents| check_parents(parents, vertices).is_ok());
            // If the driver gave up the kernel that writes the parents, they are those of an earlier search.
            let is_stale = engine.on_device && engine.cpu.parents().get(engine.source as usize) != Some(&engine.source);
            if is_wrong || is_stale { Err(DeviceError::WRONG) } else { Ok(()) }
        })
    }

    /// The time in nanoseconds that kernels have run since the last call, by the clocks of the devices that keep times.
    fn device_ns(&mut self) -> Result<u64, DeviceError> {
        let mut sum = self.helpers.iter_mut().map(|helper| helper.gpu.take_counted_ns()).sum();
        for device in self.devices.iter().filter(|device| device.is_timed()) {
            // An event has times only after its kernel has ended.
            device.finish()?;
            device.times(|time| sum += time.end_ns.saturating_sub(time.start_ns))?;
        }
        Ok(sum)
    }

    /// Runs a level where its plan says.
    fn run_placed(&mut self, plan: LevelPlan) -> Result<LevelWork, DeviceError> {
        let work = match plan.placement {
            Placement::Gpu(kernel) if !self.helpers.is_empty() => self.run_gpu(plan, kernel),
            Placement::Split { gpu_permille, .. } if self.uses.together && !self.helpers.is_empty() => self.run_split(plan, gpu_permille),
            Placement::Apart { gpu_permille } if self.uses.together && !self.helpers.is_empty() && !self.level_by_level => {
                self.run_apart(plan, gpu_permille)
            }
            // Without a device everything runs on the CPU. So does an asynchronous plan if levels are run one by one.
            _ => {
                let handover_ns = self.give_to_cpu()?;
                let round = self.hand_round()?;
                let plan = LevelPlan { placement: Placement::Cpu, ..plan };
                let Ok(work) = self.cpu.run(plan);
                return Ok(LevelWork {
                    handover_ns: handover_ns + round.handover_ns,
                    conversion_ns: work.conversion_ns + round.conversion_ns,
                    ..work
                });
            }
        };
        // The CPU has run at most a part of this level, so its record of the deepest vertices is out of date.
        self.cpu.forget_deepest();
        work
    }

    /// Runs `step`, unless an earlier step of the search has failed.
    fn sound<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        if self.failed {
            return Err(DeviceError::FAILED_BEFORE);
        }
        let result = step(self);
        self.failed = result.is_err();
        result
    }

    /// Gives up the current search between two levels. What it leaves with devices (masks, a state that one of them owns) is cleaned up
    /// when the next search begins.
    pub(crate) fn give_up(&mut self) {
        self.failed = !self.helpers.is_empty();
    }

    /// Restores everything after a search that failed or was given up: the host owns all states, and they are empty.
    ///
    /// # Errors
    /// A device is still lost, or the process was forked after it was opened.
    fn recover(&mut self) -> Result<(), DeviceError> {
        if !self.devices.is_empty() && is_forked() {
            return Err(DeviceError::FORKED);
        }
        // Kernels launched after the last level of the previous search, or by one that failed, do not belong to the next search.
        for helper in &mut self.helpers {
            helper.gpu.take_counted_ns();
            helper.gpu.device().forget_times();
        }
        if !self.failed && !self.ended_early {
            return Ok(());
        }
        for helper in &mut self.helpers {
            helper.gpu.recover()?;
            helper.seen_is_known = false;
            if let Some(own) = &mut helper.own {
                own.reclaim()?;
            }
        }
        self.cpu.state().reclaim()?;
        (self.on_device, self.failed, self.ended_early) = (false, false, false);
        Ok(())
    }

    /// Begins and ends a search from sources that the layout leaves out. Such a search reaches none of the searched vertices.
    ///
    /// # Errors
    /// The device failed.
    pub fn begin_dropped(&mut self) -> Result<(), DeviceError> {
        self.recover()?;
        self.sound(|engine| {
            engine.take_back_empty()?;
            engine.cpu.begin_dropped();
            Ok(())
        })
    }

    /// Sets the parent of a vertex that the layout leaves out, after [`HybridEngine::finish`]. Both are original numbers.
    pub fn enter_parent(&mut self, vertex: Vertex, parent: Vertex) {
        self.cpu.enter_parent(vertex, parent);
    }

    /// After a search: whether a leaf that was left out is deeper than all vertices searched. `None` if devices took part, since they do
    /// not record it.
    pub(crate) fn leaf_is_deepest(&self) -> Option<bool> {
        self.cpu.leaf_is_deepest()
    }

    /// As [`leaf_is_deepest`](Self::leaf_is_deepest), derived from the parents in original numbers after a search of `levels` levels
    /// (including that of leaves as sources).
    pub(crate) fn leaf_is_below(&self, levels: u32) -> bool {
        self.cpu.leaf_is_below(levels)
    }
}

impl Engine for HybridEngine<'_> {
    type Error = DeviceError;

    fn begin(&mut self, sources: &[Vertex]) -> Result<u64, DeviceError> {
        // Without a device nothing is handed over, so the clock is not read: reading it takes as long as a level of a tiny graph.
        let begin = (!self.helpers.is_empty()).then(Instant::now);
        let since_begin = || begin.map_or(0, |begin| begin.elapsed().as_nanos() as u64);
        self.recover()?;
        let places = || sources.iter().map(|&source| (source, self.layout.place(source)));
        let begins = places().find(|(_, place)| matches!(place, Place::Searched(_) | Place::LeafOf(_)));
        self.source = begins.map_or(NONE, |(source, _)| source);
        self.ends_on_host = sources.len() > 1 && places().any(|(_, place)| !matches!(place, Place::Searched(_)));
        self.sound(|engine| {
            // The host enters several sources, and hands them over with the state.
            if let ([source], true, Some((_, Place::Searched(root) | Place::LeafOf(root)))) = (sources, engine.uses.at_home_on_gpu, begins)
            {
                engine.cpu.note_leaf_sources(sources);
                if let Some(helper) = engine.helpers.first_mut() {
                    let state = engine.cpu.state();
                    helper.gpu.acquire_empty(state)?;
                    engine.on_device = true;
                    let handover_ns = since_begin();
                    helper.gpu.begin(state, root, *source)?;
                    return Ok(handover_ns);
                }
            }
            engine.take_back_empty()?;
            let handover_ns = since_begin();
            let Ok(_) = engine.cpu.begin(sources);
            Ok(handover_ns)
        })
    }

    fn stats(&mut self) -> LevelStats {
        if !self.on_device && !self.failed {
            return self.cpu.stats();
        }
        // The device owns the arrays, so only counts are used.
        let searched = self.cpu.searched();
        let state = self.cpu.state();
        let edges = state.counted_edges.unwrap_or(0);
        state.stats(edges, searched, self.layout)
    }

    fn sample(&mut self) -> Result<Option<f32>, DeviceError> {
        self.sound(|engine| match engine.helpers.first_mut() {
            Some(helper) if engine.on_device => helper.gpu.sample(engine.cpu.state()),
            _ => engine.cpu.sample().map_err(|never| match never {}),
        })
    }

    fn sample_hubs(&mut self) -> Result<Option<f32>, DeviceError> {
        self.sound(|engine| match engine.helpers.first_mut() {
            Some(helper) if engine.on_device => helper.gpu.sample_hubs(engine.cpu.state()),
            _ => engine.cpu.sample_hubs().map_err(|never| match never {}),
        })
    }

    fn look_ahead(&mut self, ahead: &Ahead) {
        // Levels that run together have only one time, but a device that keeps times must give the time of each level.
        let one_by_one = !self.looks_ahead || self.level_by_level || self.devices.iter().any(|device| device.is_timed());
        let plans = if one_by_one { [None; Ahead::PLANS] } else { ahead.plans };
        if let Some(helper) = self.helpers.first_mut() {
            helper.gpu.look_ahead(&Ahead { plans, ..*ahead });
        }
    }

    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, DeviceError> {
        self.sound(|engine| {
            let work = if engine.cpu.hosts_will_join() {
                let mut work = engine.level_by_level(|engine| engine.run_placed(plan))?;
                work.handover_ns += engine.give_to_cpu()?;
                engine.cpu.join_hosts(&mut work);
                work
            } else {
                engine.run_placed(plan)?
            };
            Ok(LevelWork { device_ns: engine.device_ns()?, ..work })
        })
    }
}

/// Sets up the engine of a device and, if the device works at the same time as the CPU, its own state.
fn set_up<'g>(
    layout: &'g Layout,
    setup: &GpuSetup,
    options: GpuOptions,
    excluded: &[u64],
    uses: Uses,
) -> Result<(GpuEngine<'g>, Option<SearchState>), GpuEngineError> {
    let mut gpu = GpuEngine::new(layout, &setup.device, excluded, options)?;
    if !uses.together {
        return Ok((gpu, None));
    }
    gpu.remember_levels()?;
    let allocate = OnDevice { device: &setup.device, way: setup.way };
    Ok((gpu, Some(SearchState::new(layout, &allocate, false)?)))
}

/// A result, and the nanoseconds that it took.
type Timed<T> = (T, u64);

/// Runs `near` on the caller and `far` on the other thread of `pair`, or on the caller if that thread has not begun by the end of `near`.
/// Returns both results.
fn at_once<N: Send, F: Send>(
    pair: &Team,
    near: impl FnOnce() -> N + Send,
    far: impl FnOnce() -> F + Send,
) -> Result<(Timed<N>, Timed<F>), DeviceError> {
    /// Calls the function that `slot` has, and puts the result there. A second thread sleeps until that is done.
    fn once<R>(slot: &Mutex<(Option<impl FnOnce() -> R>, Option<Timed<R>>)>) {
        let mut slot = locked(slot);
        if let Some(work) = slot.0.take() {
            let begin = Instant::now();
            slot.1 = Some((work(), begin.elapsed().as_nanos() as u64));
        }
    }
    let (near, far) = (Mutex::new((Some(near), None)), Mutex::new((Some(far), None)));
    pair.run(&|index| {
        if index == 0 {
            once(&near);
        }
        once(&far);
    });
    let (near, far) = (locked(&near).1.take(), locked(&far).1.take());
    near.zip(far).ok_or(DeviceError::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        opencl::{NO_DEVICE, OpenClError},
        words::with_causes,
    };

    #[test]
    fn an_error_of_the_set_up_names_its_device_once() {
        let (device, error) = ("Mali-G52".to_owned(), DeviceError { call: "clCreateKernel", code: NO_DEVICE });
        let sources: [GpuEngineError; 3] = [
            error.into(),
            OpenClError::Call { device: device.clone(), error }.into(),
            OpenClError::OutOfMemory { what: "a test", bytes: 1, device: device.clone(), why: "full".into() }.into(),
        ];
        for source in sources {
            let text = with_causes("", &EngineError::Gpu { device: device.clone(), source });
            assert_eq!(text.matches(&device).count(), 1, "{text}");
        }
    }
}
