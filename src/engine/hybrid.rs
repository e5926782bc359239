//! CPU and GPU together: every level runs where its plan says, and memory is handed over where the owner changes.
//!
//! - *Selective* (Remis 2016, section 3.1): one device at a time, over one state that they hand to each other.
//! - *Concurrent* (3.2): the CPU keeps the state; a device gets its part of the frontier (or of the unvisited vertices) and the
//!   visited bitmap in memory of its own, both work at the same time, and what the device found is merged.
//! - *Asynchronous* (3.3): the device gets half of the frontier and a copy of the state, both search to the end, and every
//!   vertex keeps the smaller of its two levels. Either side takes the other's half of the frontier for unvisited, so that a
//!   bottom-up level may find these vertices again, one level too deep; nothing that comes of it is less deep than the
//!   truth, and what the true half finds is, so the smaller level is the right one.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use super::{
    CpuEngine, CpuEngineError, GpuOptions, Simd, Team,
    cpu::queue_capacity,
    gpu::{GpuEngine, GpuEngineError, OnDevice},
    state::{Frontier, SearchState},
};
use crate::{
    bfs::{Direction, Engine, GpuKernel, LevelPlan, LevelStats, LevelWork, Placement},
    graph::{Layout, Vertex},
    memory::{OutOfMemory, Slab, Way},
    opencl::{Device, DeviceError},
    policy::SampledCosts,
};

impl HybridUse {
    /// Whether an engine set up for this can do what `other` asks.
    pub fn covers(self, other: Self) -> bool {
        (self.alone || !other.alone) && (self.together || !other.together)
    }
}

/// Levels of a search by which devices are checked.
const LEVELS_CHECKED: usize = 4;

/// What a search wants of its devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HybridUse {
    /// Levels run on the first device alone: the state lies in memory that it shares.
    pub alone: bool,
    /// Searches begin on the device and stay there.
    pub at_home_on_gpu: bool,
    /// Levels are split, or the searches part: devices have a state of their own.
    pub together: bool,
}

/// A device to search on.
#[derive(Debug, Clone)]
pub struct GpuSetup {
    /// The device.
    pub device: Arc<Device>,
    /// How memory is shared with it.
    pub way: Way,
    /// How its kernels are built.
    pub options: GpuOptions,
}

/// Why a hybrid engine can't be set up.
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
    /// Its share of what the devices do together, in thousandths.
    weight: u64,
}

/// The CPU engine with any number of OpenCL devices beside it.
#[derive(Debug)]
pub struct HybridEngine<'g> {
    layout: &'g Layout,
    cpu: CpuEngine<'g>,
    helpers: Vec<Helper<'g>>,
    uses: HybridUse,
    /// The device owns the state.
    on_device: bool,
    /// A thread that waits for devices while the caller searches.
    pair: Option<Team>,
    /// Levels by internal vertex of searches that part: the CPU's, and the device's.
    levels: [Slab<u32>; 2],
    /// Direction of levels after the searches have parted, where no policy is asked.
    costs: SampledCosts,
}

impl<'g> HybridEngine<'g> {
    /// A CPU engine and `setups` beside it.
    ///
    /// # Errors
    /// [`HybridError`] where memory, kernels or vector instructions are not to be had.
    pub fn new(layout: &'g Layout, team: Team, simd: Simd, setups: &[GpuSetup], uses: HybridUse) -> Result<Self, HybridError> {
        let of = |setup: &GpuSetup| setup.device.info().name.clone();
        let capacity = queue_capacity(layout, team.size());
        let pair = if uses.together { Some(Team::beside(&team).map_err(CpuEngineError::Threads)?) } else { None };
        let cpu = match setups.first() {
            Some(setup) if uses.alone => {
                let allocate = OnDevice { device: &setup.device, way: setup.way };
                let state = SearchState::new(layout, capacity, &allocate)
                    .map_err(|error| HybridError::Gpu { device: of(setup), source: error.into() })?;
                CpuEngine::with_state(layout, team, simd, state)?
            }
            _ => CpuEngine::new(layout, team, simd)?,
        };
        let units = |setup: &GpuSetup| u64::from(setup.device.info().compute_units.max(1));
        let all: u64 = setups.iter().map(units).sum();
        let mut helpers = Vec::new();
        for setup in setups {
            let failed = |source| HybridError::Gpu { device: of(setup), source };
            let mut gpu = GpuEngine::new(layout, &setup.device, cpu.closed(), setup.options).map_err(failed)?;
            let own = if uses.together {
                gpu.remember_levels().map_err(|error| failed(error.into()))?;
                let allocate = OnDevice { device: &setup.device, way: setup.way };
                let room = queue_capacity(layout, 1);
                Some(SearchState::new(layout, room, &allocate).map_err(|error| failed(error.into()))?)
            } else {
                None
            };
            helpers.push(Helper { gpu, own, weight: 1000 * units(setup) / all.max(1) });
        }
        let levels = if uses.together { layout.padded() } else { 0 };
        let mut engine = Self {
            layout,
            cpu,
            helpers,
            uses,
            on_device: false,
            pair,
            levels: [Slab::zeroed(levels, "levels")?, Slab::zeroed(levels, "levels")?],
            costs: SampledCosts::default(),
        };
        engine.check_devices(setups)?;
        Ok(engine)
    }

    /// Compares the first levels of one search, by every kernel, with what the CPU finds: drivers of boards have bugs, and a
    /// wrong answer must not wait for a validation to be found. Where the kernels of one kind of work-group are wrong, those of
    /// the other kind may be right.
    fn check_devices(&mut self, setups: &[GpuSetup]) -> Result<(), HybridError> {
        let csr = self.layout.csr();
        let Some(root) = (0..csr.vertices() as Vertex).max_by_key(|&v| csr.degree(v)) else { return Ok(()) };
        if setups.is_empty() || csr.degree(root) == 0 {
            return Ok(());
        }
        let wanted = self.first_levels(root);
        for (index, setup) in setups.iter().enumerate() {
            let failed = |source| HybridError::Gpu { device: setup.device.info().name.clone(), source };
            let wrong = self.wrong_kernel(index, root, &wanted).map_err(|error| failed(error.into()))?;
            let Some(kernel) = wrong else { continue };
            let helper = &mut self.helpers[index];
            let before = helper.gpu.group();
            let options = GpuOptions { group: Some(if before == 1 { 32 } else { 1 }), ..setup.options };
            log::warn!(
                "{}: kernel {kernel:?} with {before} items in a work-group finds wrong levels (a bug of driver {}); trying the other kind",
                setup.device.info().name,
                setup.device.info().driver,
            );
            helper.gpu = GpuEngine::new(self.layout, &setup.device, self.cpu.closed(), options).map_err(failed)?;
            if self.uses.together {
                helper.gpu.remember_levels().map_err(|error| failed(error.into()))?;
            }
            if let Some(kernel) = self.wrong_kernel(index, root, &wanted).map_err(|error| failed(error.into()))? {
                return Err(failed(GpuEngineError::Wrong { kernel, driver: setup.device.info().driver.clone() }));
            }
        }
        Ok(())
    }

    /// How many vertices the CPU finds at the first levels.
    fn first_levels(&mut self, root: Vertex) -> [u64; LEVELS_CHECKED] {
        let mut found = [0; LEVELS_CHECKED];
        let single = std::mem::replace(&mut self.cpu.single_levels, true);
        let Ok(_) = self.cpu.begin(root);
        for found in &mut found {
            let _ = self.cpu.stats();
            let Ok(work) = self.cpu.run(LevelPlan { direction: Direction::TopDown, placement: Placement::Cpu });
            // Exact where several threads may have found a vertex at once.
            *found = work.found - self.cpu.settle();
            if *found == 0 {
                break;
            }
        }
        self.cpu.single_levels = single;
        found
    }

    /// The first kernel of a device whose levels are not as wanted.
    fn wrong_kernel(&mut self, index: usize, root: Vertex, wanted: &[u64; LEVELS_CHECKED]) -> Result<Option<GpuKernel>, DeviceError> {
        let helper = &mut self.helpers[index];
        let state = match &mut helper.own {
            Some(own) => own,
            None => self.cpu.state(),
        };
        let mut wrong = None;
        helper.gpu.acquire_empty(state)?;
        for kernel in [GpuKernel::Tg, GpuKernel::Tgm, GpuKernel::Bg, GpuKernel::Bgc] {
            helper.gpu.begin(state, root)?;
            for &found in wanted {
                state.frontier_edges = state.counted_edges.unwrap_or(0);
                let work = helper.gpu.run_one(state, kernel)?;
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

    /// Whether searches begin on the device and stay there, from the next one on.
    pub fn set_home(&mut self, at_home_on_gpu: bool) {
        self.uses.at_home_on_gpu = at_home_on_gpu;
    }

    /// Whether every level is run and recorded by itself, from the next search on (else runs of levels too small to share go by
    /// in one go).
    pub fn set_single_levels(&mut self, single_levels: bool) {
        self.cpu.single_levels = single_levels;
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
        })
    }

    /// Parents by original vertex, after [`HybridEngine::finish`].
    pub fn parents(&self) -> &[Vertex] {
        self.cpu.parents()
    }

    /// Ends a search: parents come into the order of the original vertices, and to the host. Returns the nanoseconds spent
    /// handing over where the device did it.
    ///
    /// # Errors
    /// The device failed.
    pub fn finish(&mut self) -> Result<(), DeviceError> {
        match self.helpers.first_mut() {
            Some(helper) if self.on_device => helper.gpu.map_back(self.cpu.state()),
            _ => {
                self.cpu.map_back();
                Ok(())
            }
        }
    }

    /// Begins and ends the search from a root that the layout dropped because it has no edge: nobody is reached.
    ///
    /// # Errors
    /// The device failed.
    pub fn begin_dropped(&mut self) -> Result<(), DeviceError> {
        self.take_back_empty()?;
        self.cpu.begin_dropped();
        Ok(())
    }

    /// Enters a dropped root, an original number, as its own parent, after [`HybridEngine::finish`].
    pub fn adopt_dropped(&mut self, root: Vertex) {
        self.cpu.adopt_dropped(root);
    }

    fn take_back_empty(&mut self) -> Result<(), DeviceError> {
        if let (true, Some(helper)) = (self.on_device, self.helpers.first()) {
            helper.gpu.release_empty(self.cpu.state())?;
        }
        self.on_device = false;
        Ok(())
    }

    /// Makes the CPU the owner of the state; returns the nanoseconds that took.
    fn give_to_cpu(&mut self) -> Result<u64, DeviceError> {
        let (true, Some(helper)) = (self.on_device, self.helpers.first_mut()) else { return Ok(0) };
        let begin = Instant::now();
        helper.gpu.release(self.cpu.state())?;
        let nanoseconds = begin.elapsed().as_nanos() as u64;
        self.on_device = false;
        self.cpu.recount_hubs();
        Ok(nanoseconds)
    }

    /// Makes the first device the owner of the state.
    fn give_to_gpu(&mut self) -> Result<Moved, DeviceError> {
        if self.on_device {
            return Ok(Moved::default());
        }
        let begin = Instant::now();
        let repeats = self.cpu.settle();
        let settled = Instant::now();
        if let Some(helper) = self.helpers.first() {
            helper.gpu.acquire(self.cpu.state())?;
        }
        self.on_device = true;
        Ok(Moved { repeats, conversion_ns: (settled - begin).as_nanos() as u64, handover_ns: settled.elapsed().as_nanos() as u64 })
    }

    fn run_gpu(&mut self, plan: LevelPlan, kernel: GpuKernel) -> Result<LevelWork, DeviceError> {
        let moved = self.give_to_gpu()?;
        // The policy was told of repeats as if they were vertices.
        let Some(helper) = self.helpers.first_mut() else { return Err(DeviceError::NONE) };
        let single = self.cpu.single_levels;
        let state = self.cpu.state();
        let work = if single { helper.gpu.run_one(state, kernel) } else { helper.gpu.run(state, kernel) }?;
        let work = LevelWork { repeats_before: moved.repeats, conversion_ns: moved.conversion_ns, handover_ns: moved.handover_ns, ..work };
        state.done(plan, &work);
        Ok(work)
    }

    fn run_split(&mut self, plan: LevelPlan, gpu_permille: u16) -> Result<LevelWork, DeviceError> {
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
            let piece = if index + 1 == count { len - first } else { (len - cut) * helper.weight as usize / 1000 };
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
            let end = if index + 1 == count { words } else { first + (words - cut) * helper.weight as usize / 1000 };
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
            let end = if index + 1 == count { words } else { first + (words - cut) * helper.weight as usize / 1000 };
            if end > first {
                found += helper.gpu.bottom_up_result()?.0;
            }
            let done = Instant::now();
            own.visited[0].to_host(0..0)?;
            own.visited[1].to_host(first..end)?;
            own.parent.to_host(first * 64..end * 64)?;
            handover_ns += done.elapsed().as_nanos() as u64;
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

    /// Both search to the end, each on a state of its own.
    fn run_apart(&mut self, plan: LevelPlan, gpu_permille: u16) -> Result<LevelWork, DeviceError> {
        let mut handover_ns = self.give_to_cpu()?;
        let begin = Instant::now();
        let (len, repeats_before) = self.cpu.settle_as_queue();
        let (cut, edges, edges_left) = self.cpu.cut_queue(len, gpu_permille);
        let (Some(helper), Some(pair)) = (self.helpers.first_mut(), self.pair.as_ref()) else { return Err(DeviceError::NONE) };
        let Some(own) = helper.own.as_mut() else { return Err(DeviceError::NONE) };
        let padded = self.layout.padded();
        let visited_before = self.cpu.state().visited_count;
        let since = self.cpu.state().level;
        // Two states: either has its half of the frontier, and takes the other half for unvisited.
        {
            let cpu = &self.cpu;
            cpu.copy(&cpu.state_ref().parent[..padded], &mut own.parent);
        }
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
        own.visited_count = visited_before - cut as u64;
        own.frontier = Frontier::Queue { len: len - cut, claims: false };
        own.counted_edges = Some(edges_left);
        state.frontier = Frontier::Queue { len: cut, claims: false };
        state.bitmap_is_current = false;
        state.visited_count = visited_before - (len - cut) as u64;
        state.counted_edges = Some(edges);
        self.cpu.recount_hubs();
        let [mine, theirs] = &mut self.levels;
        mine.fill(0);
        let parted = Instant::now();
        helper.gpu.acquire(own)?;
        handover_ns += parted.elapsed().as_nanos() as u64;

        let searched = self.cpu.searched();
        let (layout, costs) = (self.layout, self.costs);
        // Whoever comes first takes what it needs out.
        let far = Mutex::new(Some((&mut helper.gpu, own)));
        let near = Mutex::new((&mut self.cpu, &mut mine[..]));
        let outcome = Mutex::new((Ok(()), 0, 0, 0));
        let search_far = || {
            // Held to the end: whoever comes second sleeps until then.
            let mut far = locked(&far);
            let Some((gpu, own)) = far.take() else { return };
            let begin = Instant::now();
            let result = search_on_device(gpu, own, layout, searched, costs);
            let mut outcome = locked(&outcome);
            outcome.0 = result;
            outcome.2 = begin.elapsed().as_nanos() as u64;
        };
        pair.run(&|index| {
            if index == 0 {
                let begin = Instant::now();
                let mut near = locked(&near);
                let (cpu, levels) = &mut *near;
                let threads = search_on_cpu(cpu, levels, costs);
                drop(near);
                let elapsed = begin.elapsed().as_nanos() as u64;
                {
                    let mut outcome = locked(&outcome);
                    (outcome.1, outcome.3) = (elapsed, threads);
                }
                // Where the other thread has not come by now, this one does its part.
                search_far();
            } else {
                search_far();
            }
        });
        let (result, cpu_ns, gpu_ns, threads) = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        result?;

        let ended = Instant::now();
        let Some(own) = helper.own.as_mut() else { return Err(DeviceError::NONE) };
        helper.gpu.release(own)?;
        helper.gpu.read_levels(theirs)?;
        handover_ns += ended.elapsed().as_nanos() as u64;
        let merged = self.cpu.merge_apart(&own.parent, mine, theirs);
        log::debug!("asynchronous: both found {} of {} vertices", merged.repeated, merged.reached);
        let state = self.cpu.state();
        state.visited_count = visited_before;
        state.frontier = Frontier::Queue { len: 0, claims: false };
        state.level = since;
        let work = LevelWork {
            levels: merged.deepest.max(since) - since + 1,
            found: merged.reached - visited_before,
            finished: true,
            repeats_before,
            conversion_ns: (parted - begin).as_nanos() as u64,
            handover_ns,
            cpu_ns,
            gpu_ns,
            threads,
        };
        state.done(plan, &work);
        Ok(work)
    }
}

fn locked<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a device was given.
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
}

#[derive(Debug, Default)]
struct Moved {
    repeats: u64,
    conversion_ns: u64,
    handover_ns: u64,
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

/// Searches from the state's frontier to the end on the CPU. Returns how many threads took part.
fn search_on_cpu(cpu: &mut CpuEngine<'_>, levels: &mut [u32], costs: SampledCosts) -> u32 {
    let single = std::mem::replace(&mut cpu.single_levels, true);
    let mut threads = 1;
    cpu.stamp(levels, cpu.state_ref().level);
    loop {
        if cpu.state_ref().frontier.len() == 0 {
            break;
        }
        let mut stats = cpu.stats();
        let Ok(work) = {
            if costs.wants_sample(&stats) {
                let Ok(sampled) = cpu.sample();
                stats.sampled_probes = sampled;
            }
            let direction = if costs.is_bottom_up(&stats) { Direction::BottomUp } else { Direction::TopDown };
            cpu.run(LevelPlan { direction, placement: Placement::Cpu })
        };
        threads = threads.max(work.threads);
        cpu.stamp(levels, cpu.state_ref().level);
        if work.finished {
            break;
        }
    }
    cpu.single_levels = single;
    threads
}

/// The same on a device.
fn search_on_device(
    gpu: &mut GpuEngine<'_>,
    own: &mut SearchState,
    layout: &Layout,
    searched: u64,
    costs: SampledCosts,
) -> Result<(), DeviceError> {
    gpu.clear_levels()?;
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
        gpu.stamp(own, own.level)?;
    }
    Ok(())
}

impl Engine for HybridEngine<'_> {
    type Error = DeviceError;

    fn begin(&mut self, root: Vertex) -> Result<u64, DeviceError> {
        let begin = Instant::now();
        if self.uses.at_home_on_gpu {
            if let Some(helper) = self.helpers.first_mut() {
                let state = self.cpu.state();
                helper.gpu.acquire_empty(state)?;
                self.on_device = true;
                let handover_ns = begin.elapsed().as_nanos() as u64;
                helper.gpu.begin(state, root)?;
                return Ok(handover_ns);
            }
        }
        self.take_back_empty()?;
        let handover_ns = if self.helpers.is_empty() { 0 } else { begin.elapsed().as_nanos() as u64 };
        let Ok(_) = self.cpu.begin(root);
        Ok(handover_ns)
    }

    fn stats(&mut self) -> LevelStats {
        if !self.on_device {
            return self.cpu.stats();
        }
        let searched = self.cpu.searched();
        let state = self.cpu.state();
        let edges = state.counted_edges.unwrap_or(0);
        state.stats(edges, searched, self.layout)
    }

    fn sample(&mut self) -> Result<Option<f32>, DeviceError> {
        match self.helpers.first_mut() {
            Some(helper) if self.on_device => helper.gpu.sample(self.cpu.state()),
            _ => {
                let Ok(sampled) = self.cpu.sample();
                Ok(sampled)
            }
        }
    }

    fn sample_hubs(&mut self) -> Result<Option<f32>, DeviceError> {
        match self.helpers.first_mut() {
            Some(helper) if self.on_device => helper.gpu.sample_hubs(self.cpu.state()),
            _ => {
                let Ok(sampled) = self.cpu.sample_hubs();
                Ok(sampled)
            }
        }
    }

    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, DeviceError> {
        match plan.placement {
            Placement::Gpu(kernel) if !self.helpers.is_empty() => self.run_gpu(plan, kernel),
            Placement::Split { gpu_permille } if self.uses.together && !self.helpers.is_empty() => self.run_split(plan, gpu_permille),
            Placement::Apart { gpu_permille } if self.uses.together && !self.helpers.is_empty() => self.run_apart(plan, gpu_permille),
            // Without a device everything runs on the CPU; the plan in the record says so.
            _ => {
                let handover_ns = self.give_to_cpu()?;
                let plan = LevelPlan { placement: Placement::Cpu, ..plan };
                let Ok(work) = self.cpu.run(plan);
                Ok(LevelWork { handover_ns, ..work })
            }
        }
    }
}
