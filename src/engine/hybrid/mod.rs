//! CPU and GPU together: every level runs where its plan says, and memory is handed over where the owner changes.
//!
//! - *Selective* (Remis 2016, section 3.1): one device at a time, over one state that they hand to each other.
//! - *Concurrent* (3.2): the CPU keeps the state; a device gets its part of the frontier (or of the unvisited vertices) and the
//!   visited bitmap in memory of its own, both work at the same time, and what the device found is merged.
//! - *Asynchronous* (3.3): the device gets half of the frontier and a copy of the state, both search to the end, and every
//!   vertex keeps the smaller of its two levels. Either side treats the other's half of the frontier as unvisited, so a
//!   bottom-up level may find these vertices again, one level too deep. No level that follows from it is too small, and the
//!   other side finds the right one, so the smaller level is right.

mod asynchronous;
mod concurrent;
mod selective;
mod self_check;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use super::{
    CpuEngine, CpuEngineError, GpuOptions, ParallelThresholds, Simd, Span, Team,
    gpu::{GpuEngine, GpuEngineError, OnDevice, check_parents},
    state::{OnHost, SearchState},
};
use crate::{
    bfs::{Ahead, Engine, LevelPlan, LevelStats, LevelWork, Placement},
    graph::{Layout, NONE, Vertex},
    memory::{OutOfMemory, SharingMode, Slab},
    opencl::{Device, DeviceError, Launch},
    policy::SampledCosts,
};

/// The name of a device, and its launches.
pub type DeviceLaunches = (String, Vec<Launch>);

/// The requirements of a search on its devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HybridUse {
    /// Levels run on the first device alone: the state lies in memory that it shares.
    pub alone: bool,
    /// Searches begin on the device and stay there.
    pub at_home_on_gpu: bool,
    /// Levels are split, or the searches part: devices have a state of their own.
    pub together: bool,
}

impl HybridUse {
    /// Whether an engine set up for this can do what `other` asks.
    pub fn covers(self, other: Self) -> bool {
        (self.alone || !other.alone) && (self.together || !other.together)
    }
}

/// A device to search on.
#[derive(Debug, Clone)]
pub struct GpuSetup {
    /// The device.
    pub device: Arc<Device>,
    /// How memory is shared with it.
    pub way: SharingMode,
    /// How its kernels are built.
    pub options: GpuOptions,
}

/// A reason why a hybrid engine can't be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HybridError {
    /// The CPU's side.
    #[error(transparent)]
    Cpu(#[from] CpuEngineError),
    /// A GPU's side.
    #[error("{device}: {source}")]
    Gpu {
        /// The device.
        device: String,
        /// Why.
        #[source]
        source: GpuEngineError,
    },
}

impl From<OutOfMemory> for HybridError {
    fn from(error: OutOfMemory) -> Self {
        Self::Cpu(error.into())
    }
}

#[derive(Debug)]
struct Helper<'g> {
    gpu: GpuEngine<'g>,
    /// The device's own state, where it works beside the CPU.
    own: Option<SearchState>,
    /// What the visited bitmap of that state holds, where that is known: what changes is carried to it, and no more.
    seen: Slab<u64>,
    seen_is_known: bool,
    /// Its share of what the devices do together, in thousandths.
    weight: u64,
}

/// The CPU engine with any number of OpenCL devices beside it.
#[derive(Debug)]
pub struct HybridEngine<'g> {
    layout: &'g Layout,
    cpu: CpuEngine<'g>,
    helpers: Vec<Helper<'g>>,
    /// Their devices: what another thread may wait for, unlike kernels, which are for one thread.
    devices: Vec<Arc<Device>>,
    uses: HybridUse,
    /// The device owns the state.
    on_device: bool,
    /// Devices run levels before they are planned.
    looks_ahead: bool,
    /// A call failed in the middle of a search: owners and contents are put right before the next one begins.
    failed: bool,
    /// The last search ended before its last level: as above, but for the parents, which are right.
    ended_early: bool,
    /// Levels are run one by one, each on one device or on both: no level continues to the end of the search.
    level_by_level: bool,
    /// A thread that waits for devices while the caller searches.
    pair: Option<Team>,
    /// Levels by internal vertex of searches that part: the CPU's, and the device's.
    levels: [Slab<u32>; 2],
    /// See [`Search::set_split_in_turn`](crate::search::Search::set_split_in_turn).
    pub(crate) split_in_turn: bool,
    /// See [`Search::set_handover_round_levels`](crate::search::Search::set_handover_round_levels).
    pub(crate) handover_round_levels: bool,
    /// Direction of levels after the searches have parted, where no policy is asked: the CPU's, and the device's.
    costs: [SampledCosts; 2],
}

impl<'g> HybridEngine<'g> {
    /// A CPU engine and `setups` beside it.
    ///
    /// # Errors
    /// [`HybridError`] where memory, kernels or vector instructions are not available.
    pub fn new(
        layout: &'g Layout,
        team: Team,
        parallel: ParallelThresholds,
        simd: Simd,
        setups: &[GpuSetup],
        uses: HybridUse,
    ) -> Result<Self, HybridError> {
        let of = |setup: &GpuSetup| setup.device.info().name.clone();
        let pair = if uses.together { Some(Team::beside(&team).map_err(CpuEngineError::Threads)?) } else { None };
        let mut cpu = match setups.first() {
            Some(setup) if uses.alone => {
                let allocate = OnDevice { device: &setup.device, way: setup.way };
                let state = SearchState::new(layout, &allocate, true)
                    .map_err(|error| HybridError::Gpu { device: of(setup), source: error.into() })?;
                CpuEngine::with_state(layout, team, parallel, simd, state)?
            }
            _ => CpuEngine::with_state(layout, team, parallel, simd, SearchState::new(layout, &OnHost, true)?)?,
        };
        cpu.counts_alone = setups.is_empty();
        let units = |setup: &GpuSetup| u64::from(setup.device.info().compute_units.max(1));
        let all: u64 = setups.iter().map(units).sum();
        let mut helpers = Vec::new();
        for setup in setups {
            let failed = |source| HybridError::Gpu { device: of(setup), source };
            let mut gpu = GpuEngine::new(layout, &setup.device, cpu.excluded(), setup.options).map_err(failed)?;
            let own = if uses.together {
                gpu.remember_levels().map_err(|error| failed(error.into()))?;
                let allocate = OnDevice { device: &setup.device, way: setup.way };
                Some(SearchState::new(layout, &allocate, false).map_err(|error| failed(error.into()))?)
            } else {
                None
            };
            let words = if own.is_some() { layout.padded() / 64 + 1 } else { 0 };
            let seen = Slab::zeroed(words, "bitmaps")?;
            helpers.push(Helper { gpu, own, seen, seen_is_known: false, weight: 1000 * units(setup) / all.max(1) });
        }
        let levels = if uses.together { layout.padded() } else { 0 };
        let mut engine = Self {
            layout,
            cpu,
            helpers,
            devices: setups.iter().map(|setup| Arc::clone(&setup.device)).collect(),
            uses,
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

    /// Whether searches begin on the device and stay there, from the next one on.
    pub fn set_home(&mut self, at_home_on_gpu: bool) {
        self.uses.at_home_on_gpu = at_home_on_gpu;
    }

    /// Whether a device runs levels before they are planned where the plan is sure, from the next search on (else the record of each has
    /// its own time).
    pub fn set_looks_ahead(&mut self, looks_ahead: bool) {
        self.looks_ahead = looks_ahead;
    }

    /// Whether devices that have room for it claim vertices by bins instead of by atomics, from the next search on.
    pub fn set_bins(&mut self, bins: bool) {
        for helper in &mut self.helpers {
            helper.gpu.set_bins(bins);
        }
    }

    /// Whether a device has room for claims by bins.
    pub fn offers_bins(&self) -> bool {
        self.helpers.iter().any(|helper| helper.gpu.offers_bins())
    }

    /// Whether every level is run and recorded by itself, from the next search on (else runs of levels too small to share go by
    /// in one go).
    pub fn set_single_levels(&mut self, single_levels: bool) {
        self.cpu.single_levels = single_levels;
    }

    /// Does `search` with every level run by itself and none beyond the one that is planned: it may end after any of them.
    pub(crate) fn level_by_level<T>(&mut self, search: impl FnOnce(&mut Self) -> T) -> T {
        let single = std::mem::replace(&mut self.cpu.single_levels, true);
        self.level_by_level = true;
        let result = search(self);
        self.level_by_level = false;
        self.cpu.single_levels = single;
        result
    }

    /// Whether vertex `v` (an internal number) has been reached. The host takes the state back where a device owns it.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn has_reached(&mut self, v: Vertex) -> Result<bool, DeviceError> {
        self.sound(|engine| {
            engine.give_to_cpu()?;
            Ok(engine.cpu.state_ref().parent[v as usize] != NONE)
        })
    }

    /// Ends a search between two levels, as [`HybridEngine::finish`] does after the last: the parents are those of what was reached.
    ///
    /// # Errors
    /// The device failed.
    pub(crate) fn finish_early(&mut self) -> Result<(), DeviceError> {
        self.sound(|engine| engine.give_to_cpu().map(drop))?;
        self.ended_early = !self.helpers.is_empty();
        self.finish_at(false)
    }

    /// What the engine was set up for.
    pub fn uses(&self) -> HybridUse {
        self.uses
    }

    /// Threads of the CPU.
    pub fn threads(&self) -> usize {
        self.cpu.threads()
    }

    /// Vector instructions in use.
    pub fn simd(&self) -> Simd {
        self.cpu.simd()
    }

    /// What each device was given: name, items in a work-group, parts of the adjacency, and whether it reads the host's own
    /// arrays.
    pub fn devices(&self) -> impl Iterator<Item = DeviceUse> + '_ {
        self.helpers.iter().map(|helper| DeviceUse {
            name: helper.gpu.device().info().name.clone(),
            platform: helper.gpu.device().info().platform.clone(),
            driver: helper.gpu.device().info().driver.clone(),
            group: helper.gpu.group(),
            parts: helper.gpu.parts(),
            zero_copy: helper.gpu.is_zero_copy(),
            bins: helper.gpu.has_bins(),
        })
    }

    /// Of each device whether a call of it has failed, and nothing is known of what it did since.
    pub fn failed_devices(&self) -> impl Iterator<Item = bool> + '_ {
        self.devices.iter().map(|device| device.has_failed())
    }

    /// Parents by original vertex, after [`HybridEngine::finish`]; empty after a search that failed.
    pub fn parents(&self) -> &[Vertex] {
        if self.failed { &[] } else { self.cpu.parents() }
    }

    /// How many vertices have a parent (or a level) among `parents`, and the sum of their `degrees`, one for each original vertex of both.
    pub(crate) fn count_reached(&self, parents: &[Vertex], degrees: &[u32]) -> (u64, u64) {
        self.cpu.count_reached(parents, degrees)
    }

    /// Whether the CPU notes levels from the next search on, for [`HybridEngine::finish_into`]. (Where devices take part they can be read
    /// off the parents only.)
    pub(crate) fn note_distances(&mut self, are_wanted: bool) {
        self.cpu.note_distances(are_wanted && self.helpers.is_empty());
    }

    /// Ends a search of the CPU alone, early or not, with parents and levels in the caller's arrays, one entry for each original vertex.
    /// `false` where it can't, since a device takes part or levels were not noted: [`HybridEngine::finish`] ends the search then.
    /// Where not `all` was searched, the frontier is as deep as the search was meant to go.
    pub(crate) fn finish_into(&mut self, parents: Option<&mut [Vertex]>, levels: Option<&mut [u32]>, all: bool) -> bool {
        if !self.helpers.is_empty() || levels.is_some_and(|levels| !self.cpu.noted_distances_into(levels, all)) {
            return false;
        }
        if let Some(parents) = parents {
            self.cpu.parents_into(parents, all);
        }
        true
    }

    /// After [`HybridEngine::finish`]: the level of every original vertex. `false` where the parents are not a tree.
    pub(crate) fn levels_into(&self, levels: &mut [u32]) -> bool {
        !self.failed && self.cpu.levels_into(levels)
    }

    /// Ends a search: parents come into the order of the original vertices, and to the host. Returns the nanoseconds spent
    /// handing over where the device did it.
    ///
    /// # Errors
    /// The device failed.
    pub fn finish(&mut self) -> Result<(), DeviceError> {
        self.finish_at(true)
    }

    /// Where not `all` was searched, the host has the state, and the frontier is as deep as the search was meant to go.
    fn finish_at(&mut self, all: bool) -> Result<(), DeviceError> {
        self.sound(|engine| {
            match engine.helpers.first_mut() {
                Some(helper) if engine.on_device => helper.gpu.map_back(engine.cpu.state())?,
                _ => engine.cpu.map_back_to(all),
            }
            // A reader may follow them.
            if engine.helpers.is_empty() { Ok(()) } else { check_parents(engine.cpu.parents(), engine.layout.vertices()) }
        })
    }

    /// Has threads note when they work, and devices that keep times what they ran, up to `most` times each; 0 ends it.
    pub fn trace(&mut self, most: usize) {
        self.cpu.team().trace(most);
        self.devices.iter().for_each(|device| device.keep_launches(most));
    }

    /// What threads have noted and devices have run since this was last asked, each by its name.
    ///
    /// # Errors
    /// A device failed.
    pub fn traced(&mut self) -> Result<(Vec<Vec<Span>>, Vec<DeviceLaunches>), DeviceError> {
        // What the last levels have launched was not asked for yet.
        self.device_ns()?;
        let launches = self.devices.iter().map(|device| (device.info().name.clone(), device.kept_launches())).collect();
        Ok((self.cpu.team().spans(), launches))
    }

    /// Nanoseconds for which kernels ran since the last call, by the clocks of those devices that keep times.
    fn device_ns(&mut self) -> Result<u64, DeviceError> {
        let mut sum = self.helpers.iter_mut().map(|helper| helper.gpu.take_counted_ns()).sum();
        for device in self.devices.iter().filter(|device| device.is_timed()) {
            // A kernel has its times when it has ended.
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
            // Without a device everything runs on the CPU, and so does one level of searches that part.
            _ => {
                let handover_ns = self.give_to_cpu()?;
                let round = self.hand_round()?;
                let plan = LevelPlan { placement: Placement::Cpu, ..plan };
                let Ok(work) = self.cpu.run(plan);
                return Ok(LevelWork {
                    handover_ns: handover_ns + round.handover_ns,
                    conversion_ns: work.conversion_ns + round.conversion_ns,
                    repeats_before: work.repeats_before + round.repeats,
                    ..work
                });
            }
        };
        // The CPU has seen a part of it at most.
        self.cpu.forget_deepest();
        work
    }

    /// Does `step` of a search of which none has failed so far.
    fn sound<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, DeviceError>) -> Result<T, DeviceError> {
        if self.failed {
            return Err(DeviceError::FAILED_BEFORE);
        }
        let result = step(self);
        self.failed = result.is_err();
        result
    }

    /// Gives the current search up between two levels: what it leaves with devices (masks, a state that one of them owns) is put right when
    /// the next one begins.
    pub(crate) fn give_up(&mut self) {
        self.failed = !self.helpers.is_empty();
    }

    /// Puts everything right after a search that failed or was given up: the host owns all states, and nothing is left in them.
    ///
    /// # Errors
    /// A device is still lost.
    fn recover(&mut self) -> Result<(), DeviceError> {
        // The kernels behind the last level of the search before, or of one that failed, are none of this one.
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

    /// Begins and ends the search from a root that is not searched: no vertex that is will be reached.
    ///
    /// # Errors
    /// The device failed.
    pub fn begin_dropped(&mut self) -> Result<(), DeviceError> {
        self.recover()?;
        self.sound(|engine| {
            engine.take_back_empty()?;
            engine.cpu.set_leaf_root(NONE);
            engine.cpu.begin_dropped();
            Ok(())
        })
    }

    /// Gives a vertex that is not searched its parent, after [`HybridEngine::finish`] of a search from such a vertex; both are original
    /// numbers.
    pub fn enter_parent(&mut self, vertex: Vertex, parent: Vertex) {
        self.cpu.enter_parent(vertex, parent);
    }

    /// The next search begins from this leaf, an original number, where the layout leaves it out ([`NONE`]: from none): its root is the
    /// vertex on which it hangs.
    pub fn set_leaf_root(&mut self, leaf: Vertex) {
        self.cpu.set_leaf_root(leaf);
    }

    /// After a search: whether a leaf that was left out is deeper than all that was searched. `None` where devices took part, which do not
    /// note it.
    pub(crate) fn leaf_is_deepest(&self) -> Option<bool> {
        self.cpu.leaf_is_deepest()
    }

    /// The same, from the parents in original numbers, of a search on `levels` levels (where the root is such a leaf itself, with it).
    pub(crate) fn leaf_is_below(&self, levels: u32) -> bool {
        self.cpu.leaf_is_below(levels)
    }
}

/// A device of a search, with its settings.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DeviceUse {
    /// Name of the device.
    pub name: String,
    /// Name of its platform.
    pub platform: String,
    /// Version of its driver.
    pub driver: String,
    /// Items in a work-group.
    pub group: usize,
    /// Buffers over which the neighbours are spread.
    pub parts: usize,
    /// Whether it reads the host's own arrays of neighbours.
    pub zero_copy: bool,
    /// Whether TG claims vertices by bins instead of by atomics.
    #[serde(default)]
    pub bins: bool,
}

impl Engine for HybridEngine<'_> {
    type Error = DeviceError;

    fn begin(&mut self, root: Vertex) -> Result<u64, DeviceError> {
        // Nothing is handed over without a device, and reading the clock takes as long as a level of a tiny graph.
        let begin = (!self.helpers.is_empty()).then(Instant::now);
        let since_begin = || begin.map_or(0, |begin| begin.elapsed().as_nanos() as u64);
        self.recover()?;
        self.sound(|engine| {
            if engine.uses.at_home_on_gpu {
                if let Some(helper) = engine.helpers.first_mut() {
                    let state = engine.cpu.state();
                    helper.gpu.acquire_empty(state)?;
                    engine.on_device = true;
                    let handover_ns = since_begin();
                    helper.gpu.begin(state, root)?;
                    return Ok(handover_ns);
                }
            }
            engine.take_back_empty()?;
            let handover_ns = since_begin();
            let Ok(_) = engine.cpu.begin(root);
            Ok(handover_ns)
        })
    }

    fn stats(&mut self) -> LevelStats {
        if !self.on_device && !self.failed {
            return self.cpu.stats();
        }
        // What is in the arrays is the device's to know.
        let searched = self.cpu.searched();
        let state = self.cpu.state();
        let edges = state.counted_edges.unwrap_or(0);
        state.stats(edges, searched, self.layout)
    }

    fn sample(&mut self) -> Result<Option<f32>, DeviceError> {
        self.sound(|engine| match engine.helpers.first_mut() {
            Some(helper) if engine.on_device => helper.gpu.sample(engine.cpu.state()),
            _ => {
                let Ok(sampled) = engine.cpu.sample();
                Ok(sampled)
            }
        })
    }

    fn sample_hubs(&mut self) -> Result<Option<f32>, DeviceError> {
        self.sound(|engine| match engine.helpers.first_mut() {
            Some(helper) if engine.on_device => helper.gpu.sample_hubs(engine.cpu.state()),
            _ => {
                let Ok(sampled) = engine.cpu.sample_hubs();
                Ok(sampled)
            }
        })
    }

    fn look_ahead(&mut self, ahead: &Ahead) {
        // Levels that run together have one time, and a device that keeps times is asked for that of each.
        let one_by_one = !self.looks_ahead || self.level_by_level || self.devices.iter().any(|device| device.is_timed());
        let plans = if one_by_one { [None; Ahead::PLANS] } else { ahead.plans };
        if let Some(helper) = self.helpers.first_mut() {
            helper.gpu.look_ahead(&Ahead { plans, ..*ahead });
        }
    }

    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, DeviceError> {
        self.sound(|engine| {
            let work = engine.run_placed(plan)?;
            Ok(LevelWork { device_ns: engine.device_ns()?, ..work })
        })
    }
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
