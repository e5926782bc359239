//! What a rule remembers of a search.

use socbfs::bfs::LevelStats;

/// What a rule remembers of a search.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// The level before was bottom-up.
    pub(super) was_bottom_up: bool,
    /// Some level before was bottom-up.
    pub(super) been_bottom_up: bool,
    /// The growth of the frontier.
    pub(super) frontiers: Frontiers,
    /// The predicted cost of the search so far, by a model.
    pub(super) spent: Spent,
    /// What was learned from split levels, top-down and bottom-up (`None`: none was split yet).
    pub(super) shares: [Option<Learned>; 2],
    /// The GPU's share of the level before by the costs, in thousandths, if that level was split and its costs are known.
    pub(super) expected: Option<u16>,
    /// The GPU's share that was planned for the level before, in thousandths, if that level was split. The share that the devices then had
    /// differs, since neither lists nor words are cut.
    pub(super) planned: Option<u16>,
    /// Nanoseconds that levels would have saved on the other device since the state last changed its owner.
    pub(super) missed_ns: f64,
}

/// What a network remembers of the earlier frontiers of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frontiers {
    level: u32,
    previous: u64,
    growth_before: i64,
}

impl Frontiers {
    /// Records `stats`. It is called once at every decision.
    #[inline]
    pub fn note(&mut self, stats: &LevelStats) {
        let follows = stats.level > 0 && stats.level == self.level + 1;
        let growth_before = if follows { stats.previous_frontier_vertices as i64 - self.previous as i64 } else { 0 };
        *self = Self { level: stats.level, previous: stats.previous_frontier_vertices, growth_before };
    }

    /// The growth of the frontier before the one recorded last, in vertices. 0 after levels that ran in one step without a decision at
    /// each: such frontiers are tiny.
    #[inline]
    pub fn growth_before(&self) -> i64 {
        self.growth_before
    }
}

/// The predicted cost of the levels of a search so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) seconds: f64,
    pub(super) joules: f64,
}

/// What a search has learned from its split levels of one direction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Learned {
    /// The GPU's share of the next split level, in thousandths.
    pub(super) gpu_permille: u16,
    /// The ratio of the GPU's part to the CPU's, divided by the same ratio as predicted by the costs (`None`: the costs are not known).
    pub(super) off: Option<f64>,
}
