//! The level loop: ask the engine where the search stands, the planner what to do, the engine to do it.

use std::time::Instant;

use super::{LevelPlan, LevelRecord, LevelStats};
use crate::graph::Vertex;

/// Runs levels. It owns the search state: parents, frontier, what was visited.
pub trait Engine {
    /// Forgets the last search and makes `root` (an internal number) the frontier of level 0.
    fn begin(&mut self, root: Vertex);

    /// Where the search stands before the next level. `sampled_probes` is left `None`.
    fn stats(&mut self) -> LevelStats;

    /// Looks at a few unvisited vertices: how many neighbours each would look at, on average, until it finds one in
    /// the frontier or has none left. `None` where no unvisited vertex was met.
    fn sample(&mut self) -> Option<f32>;

    /// Runs one level (or, where the engine may, a run of levels too small to share) as planned.
    fn run(&mut self, plan: LevelPlan) -> LevelWork;
}

/// What an engine did.
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
    /// Threads that took part.
    pub threads: u32,
}

/// Plans levels: a policy with what it remembers of the search at hand.
pub trait Planner {
    /// Forgets the last search.
    fn begin(&mut self);

    /// Whether [`LevelStats::sampled_probes`] would change the plan: sampling costs a few microseconds.
    fn wants_sample(&self, stats: &LevelStats) -> bool;

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
        }
    }
}

/// Searches from `root` (an internal number) to the end. Returns the number of levels of the tree.
pub fn level_loop(engine: &mut impl Engine, planner: &mut impl Planner, root: Vertex, records: &mut Records) -> u32 {
    records.clear();
    planner.begin();
    let mut begin = Instant::now();
    engine.begin(root);
    let mut levels = 0;
    loop {
        let mut stats = engine.stats();
        if planner.wants_sample(&stats) {
            stats.sampled_probes = engine.sample();
        }
        let plan = planner.plan(&stats);
        let decided = Instant::now();
        let work = engine.run(plan);
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
            decision_ns: nanoseconds(begin, decided),
            threads: work.threads,
        });
        levels += work.levels;
        if work.finished {
            return levels;
        }
        begin = end;
    }
}
