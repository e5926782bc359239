//! The level loop: get the state of the search from the engine, plan the next level, run it.

use std::{convert::Infallible, time::Instant};

use super::{Ahead, AnyPlanner, LevelPlan, LevelRecord, LevelStats};
use crate::graph::Vertex;

/// Runs levels. An engine owns the search state: parents, frontier and visited vertices.
pub trait Engine {
    /// The errors of a search ([`Infallible`] on the CPU; a device can be lost).
    type Error;

    /// Resets the state and makes `sources` (original numbers, repeats allowed) the frontier of level 0. Returns the nanoseconds spent
    /// handing memory over.
    ///
    /// # Errors
    /// The device failed.
    fn begin(&mut self, sources: &[Vertex]) -> Result<u64, Self::Error>;

    /// The state of the search before the next level. `sampled_probes` and `sampled_hubs` are `None`.
    fn stats(&mut self) -> LevelStats;

    /// Samples a few unvisited vertices. Returns the mean number of neighbours that each would look at until it finds one in the frontier
    /// or has none left, or `None` where the sample met no unvisited vertex.
    ///
    /// # Errors
    /// The device failed.
    fn sample(&mut self) -> Result<Option<f32>, Self::Error> {
        Ok(None)
    }

    /// Samples a few vertices of the frontier. Returns the share of all hubs (vertices with more arcs than the mean) that the frontier
    /// holds, or `None` where the engine does not know it.
    ///
    /// # Errors
    /// The device failed.
    fn sample_hubs(&mut self) -> Result<Option<f32>, Self::Error> {
        Ok(None)
    }

    /// Receives the sure decisions of the planner for the levels after the next one. The engine may run such levels before they are
    /// planned.
    fn look_ahead(&mut self, _ahead: &Ahead) {}

    /// Runs one level as planned, or several levels in one step if they are too small to share among threads and the engine may do so.
    ///
    /// # Errors
    /// The device failed.
    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, Self::Error>;
}

/// The result of one call of [`Engine::run`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelWork {
    /// Levels that were run.
    pub levels: u32,
    /// Vertices found.
    pub found: u64,
    /// The frontier is empty now.
    pub finished: bool,
    /// Time spent converting the frontier, in nanoseconds.
    pub conversion_ns: u64,
    /// Time spent handing memory over between CPU and GPU, in nanoseconds.
    pub handover_ns: u64,
    /// Time of the CPU's part of a split level, in nanoseconds, else 0.
    pub cpu_ns: u64,
    /// Time of the GPU's part of a split level, in nanoseconds, else 0.
    pub gpu_ns: u64,
    /// See [`LevelRecord::copy_ns`].
    pub copy_ns: u64,
    /// See [`LevelRecord::wait_ns`].
    pub wait_ns: u64,
    /// See [`LevelRecord::merge_ns`].
    pub merge_ns: u64,
    /// See [`LevelRecord::device_ns`].
    pub device_ns: u64,
    /// CPU threads that took part.
    pub threads: u32,
    /// The level ran together with the one before, whose time includes it.
    pub with_previous: bool,
}

/// The devices that the levels of a planner need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Uses {
    /// Levels run on the first device alone: the state lies in memory that it shares.
    pub alone: bool,
    /// Searches begin on it. (From [`Planner::uses`]: all levels run on it.)
    pub at_home_on_gpu: bool,
    /// Levels are split between the CPU and devices, or both search independently from some level on: each device has its own state.
    pub together: bool,
}

impl Uses {
    /// The CPU alone.
    pub const CPU: Self = Self { alone: false, at_home_on_gpu: false, together: false };
    /// Searches on the device alone.
    pub const GPU: Self = Self { alone: true, at_home_on_gpu: true, together: false };
    /// One device at a time.
    pub const EITHER: Self = Self { alone: true, at_home_on_gpu: false, together: false };
    /// Both devices at the same time.
    pub const TOGETHER: Self = Self { alone: false, at_home_on_gpu: false, together: true };

    /// Whether an engine set up for this can do what `other` asks.
    pub(crate) fn covers(self, other: Self) -> bool {
        (self.alone || !other.alone) && (self.together || !other.together)
    }
}

/// Plans levels, with a memory of the current search. Policies (crate `socbfs-policy`) become planners; a type of a program is one if it
/// implements [`plan`](Planner::plan), and [`Search::with_planner`](crate::search::Search::with_planner) searches with it.
///
/// A planner must not allocate, and its plans must follow from what it is given: no clock, no device, nothing of an earlier search. Then a
/// search can be replayed from its record.
pub trait Planner {
    /// Its name, for messages and records: that of its type, without the path.
    fn name(&self) -> String {
        let whole = std::any::type_name::<Self>();
        let path = whole.split('<').next().unwrap_or(whole);
        path.rsplit("::").next().unwrap_or(path).to_owned()
    }

    /// Clears what the planner remembers of the last search.
    fn begin(&mut self) {}

    /// Tells the root of the next search (an original number) before it begins. False: there is no plan for it.
    fn set_root(&mut self, _root: Vertex) -> bool {
        true
    }

    /// The devices that its plans name. A search is set up for them once, and levels planned elsewhere run on the CPU.
    fn uses(&self) -> Uses {
        Uses::CPU
    }

    /// Whether searches of a graph of this size ([`LevelStats::vertices`], [`LevelStats::arcs`], [`LevelStats::hub_share`]) begin on the
    /// GPU, which saves a handover to it. Asked if [`Uses::alone`] and not [`Uses::at_home_on_gpu`].
    fn begins_on_gpu(&self, _vertices: u64, _arcs: u64, _hub_share: f32) -> bool {
        false
    }

    /// The same rule for a search that has lost its devices (`None`: it needs one, and the default planner takes its place).
    fn on_cpu(&self) -> Option<AnyPlanner> {
        None
    }

    /// Whether [`LevelStats::sampled_probes`] could change the plan of this level. A sample costs a few microseconds.
    fn wants_sample(&self, _stats: &LevelStats) -> bool {
        false
    }

    /// Whether [`LevelStats::sampled_hubs`] could change the plan of this level.
    fn wants_hubs(&self, _stats: &LevelStats) -> bool {
        false
    }

    /// The sure decisions for the levels after the one just planned, which has these `stats` and this `_plan`.
    fn ahead(&self, stats: &LevelStats, _plan: LevelPlan) -> Ahead {
        Ahead { vertices: stats.vertices, arcs: stats.arcs, ..Ahead::default() }
    }

    /// Plans the next level.
    fn plan(&mut self, stats: &LevelStats) -> LevelPlan;
}

/// Level records with a fixed capacity, so that a search never allocates. Levels beyond the capacity are added to the last record.
#[derive(Debug)]
pub struct Records {
    records: Vec<LevelRecord>,
    capacity: usize,
}

impl Records {
    /// Allocates room for `capacity` records (at least one).
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { records: Vec::with_capacity(capacity), capacity }
    }

    /// The records of the last search.
    pub fn get(&self) -> &[LevelRecord] {
        &self.records
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.records.clear();
    }

    fn push(&mut self, record: LevelRecord) {
        if self.records.len() < self.capacity {
            self.records.push(record);
        } else if let Some(last) = self.records.last_mut() {
            last.levels += record.levels;
            last.found += record.found;
            last.elapsed_ns += record.elapsed_ns;
            last.conversion_ns += record.conversion_ns;
            last.decision_ns += record.decision_ns;
            last.handover_ns += record.handover_ns;
            last.cpu_ns += record.cpu_ns;
            last.gpu_ns += record.gpu_ns;
            last.copy_ns += record.copy_ns;
            last.wait_ns += record.wait_ns;
            last.merge_ns += record.merge_ns;
            last.device_ns += record.device_ns;
        }
    }
}

/// Searches from `sources` (original numbers) until the frontier is empty. Returns the number of levels of the tree, or of the forest.
///
/// # Errors
/// The engine's, where a device failed; the engine's state is then invalid until the next search begins.
pub fn level_loop<E: Engine + ?Sized>(
    engine: &mut E,
    planner: &mut impl Planner,
    sources: &[Vertex],
    records: &mut Records,
) -> Result<u32, E::Error> {
    level_loop_until(engine, planner, sources, records, |_, _, _| Ok(None::<Infallible>)).map(|(levels, _)| levels)
}

/// As [`level_loop`], but can end early. Before every level, `stop` is called with the engine, the number of levels that were run, and the
/// time. If it returns a value, the search ends there and returns that value with the number of levels.
///
/// # Errors
/// The engine's, where a device failed; the engine's state is then invalid until the next search begins.
pub fn level_loop_until<E: Engine + ?Sized, S>(
    engine: &mut E,
    planner: &mut impl Planner,
    sources: &[Vertex],
    records: &mut Records,
    mut stop: impl FnMut(&mut E, u32, Instant) -> Result<Option<S>, E::Error>,
) -> Result<(u32, Option<S>), E::Error> {
    records.clear();
    planner.begin();
    let mut begin = Instant::now();
    let mut handover_ns = engine.begin(sources)?;
    let mut asked = Instant::now();
    let mut levels = 0;
    loop {
        if let Some(reason) = stop(engine, levels, asked)? {
            return Ok((levels, Some(reason)));
        }
        let mut stats = engine.stats();
        if planner.wants_sample(&stats) {
            stats.sampled_probes = engine.sample()?;
        }
        if planner.wants_hubs(&stats) {
            stats.sampled_hubs = engine.sample_hubs()?;
        }
        let plan = planner.plan(&stats);
        engine.look_ahead(&planner.ahead(&stats, plan));
        let decided = Instant::now();
        let work = engine.run(plan)?;
        let end = Instant::now();
        let nanoseconds = |from: Instant, to: Instant| to.duration_since(from).as_nanos() as u64;
        records.push(LevelRecord {
            stats,
            plan,
            levels: work.levels,
            found: work.found,
            elapsed_ns: nanoseconds(begin, end),
            conversion_ns: work.conversion_ns,
            decision_ns: nanoseconds(asked, decided),
            handover_ns: handover_ns + work.handover_ns,
            cpu_ns: work.cpu_ns,
            gpu_ns: work.gpu_ns,
            copy_ns: work.copy_ns,
            wait_ns: work.wait_ns,
            merge_ns: work.merge_ns,
            device_ns: work.device_ns,
            threads: work.threads,
            with_previous: work.with_previous,
        });
        levels += work.levels;
        if work.finished {
            return Ok((levels, None));
        }
        (begin, asked) = (end, end);
        handover_ns = 0;
    }
}
