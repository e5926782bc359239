//! The level loop: ask the engine where the search stands, the planner what to do, the engine to do it.

use std::{convert::Infallible, time::Instant};

use super::{Ahead, LevelPlan, LevelRecord, LevelStats};
use crate::graph::Vertex;

/// Runs levels. It owns the search state: parents, frontier, what was visited.
pub trait Engine {
    /// The errors of a search ([`Infallible`](std::convert::Infallible) on the CPU; a device can be lost).
    type Error;

    /// Forgets the last search and makes `root` (an internal number) the frontier of level 0. Returns the nanoseconds spent
    /// handing memory over.
    ///
    /// # Errors
    /// The device failed.
    fn begin(&mut self, root: Vertex) -> Result<u64, Self::Error>;

    /// The state of the search before the next level. `sampled_probes` and `sampled_hubs` are `None`.
    fn stats(&mut self) -> LevelStats;

    /// Looks at a few unvisited vertices: how many neighbours each would look at, on average, until it finds one in
    /// the frontier or has none left. `None` where no unvisited vertex was met.
    ///
    /// # Errors
    /// The device failed.
    fn sample(&mut self) -> Result<Option<f32>, Self::Error>;

    /// Looks at a few vertices of the frontier: which share of all hubs it holds (those with more arcs than the mean). `None`
    /// where the engine does not know.
    ///
    /// # Errors
    /// The device failed.
    fn sample_hubs(&mut self) -> Result<Option<f32>, Self::Error>;

    /// Says what the planner would surely decide after the next level, which the engine may then run before it is asked to.
    fn look_ahead(&mut self, _ahead: &Ahead) {}

    /// Runs one level (or, where the engine may, a run of levels too small to share) as planned.
    ///
    /// # Errors
    /// The device failed.
    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, Self::Error>;
}

/// The result of an engine's level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LevelWork {
    /// Levels that were run.
    pub levels: u32,
    /// Vertices found.
    pub found: u64,
    /// The frontier is empty now.
    pub finished: bool,
    /// Vertices counted twice at the level before, found out only now: two threads had claimed them at once.
    pub repeats_before: u64,
    /// Time spent converting the frontier, in nanoseconds.
    pub conversion_ns: u64,
    /// Time spent handing memory over between CPU and GPU, in nanoseconds.
    pub handover_ns: u64,
    /// Where the level was split: the time of the CPU's part, in nanoseconds, else 0.
    pub cpu_ns: u64,
    /// The same of the GPU's part.
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
    /// It ran together with the level before, whose time includes it.
    pub with_previous: bool,
}

/// Plans levels: a policy with what it remembers of the current search.
pub trait Planner {
    /// Forgets the last search.
    fn begin(&mut self);

    /// Whether [`LevelStats::sampled_probes`] would change the plan: sampling costs a few microseconds.
    fn wants_sample(&self, stats: &LevelStats) -> bool;

    /// Whether [`LevelStats::sampled_hubs`] would change the plan.
    fn wants_hubs(&self, _stats: &LevelStats) -> bool {
        false
    }

    /// Its sure decisions after the level that it has just planned, which has these `stats` and this `plan`.
    fn ahead(&self, stats: &LevelStats, _plan: LevelPlan) -> Ahead {
        Ahead { vertices: stats.vertices, arcs: stats.arcs, ..Ahead::default() }
    }

    /// Decides.
    fn plan(&mut self, stats: &LevelStats) -> LevelPlan;
}

/// Level records with a fixed capacity, so that a search never allocates. Past it, the last record takes up the rest.
#[derive(Debug)]
pub struct Records {
    records: Vec<LevelRecord>,
    capacity: usize,
}

impl Records {
    /// Room for `capacity` records (at least one).
    pub fn with_capacity(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { records: Vec::with_capacity(capacity), capacity }
    }

    /// The records of the last search.
    pub fn get(&self) -> &[LevelRecord] {
        &self.records
    }

    /// Forgets them.
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

/// Searches from `root` (an internal number) to the end. Returns the number of levels of the tree.
///
/// # Errors
/// The engine's, where a device failed; the engine's state is then invalid until the next search begins.
pub fn level_loop<E: Engine>(engine: &mut E, planner: &mut impl Planner, root: Vertex, records: &mut Records) -> Result<u32, E::Error> {
    level_loop_until(engine, planner, root, records, |_, _, _| Ok(None::<Infallible>)).map(|(levels, _)| levels)
}

/// As [`level_loop`], with an early end: `stop` is called before every level, with the engine, the number of levels that were run, and the
/// time, and what it gives ends the search there and is returned beside that number.
///
/// # Errors
/// The engine's, where a device failed; the engine's state is then invalid until the next search begins.
pub fn level_loop_until<E: Engine, S>(
    engine: &mut E,
    planner: &mut impl Planner,
    root: Vertex,
    records: &mut Records,
    mut stop: impl FnMut(&mut E, u32, Instant) -> Result<Option<S>, E::Error>,
) -> Result<(u32, Option<S>), E::Error> {
    records.clear();
    planner.begin();
    let mut begin = Instant::now();
    let mut handover_ns = engine.begin(root)?;
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
        if let Some(last) = records.records.last_mut() {
            last.found -= work.repeats_before;
        }
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
