//! A policy at work: what it remembers between the levels of one search.

use super::{Policy, SampledCosts};
use crate::bfs::{Direction, LevelPlan, LevelStats, Placement, Planner};

/// A [`Policy`] with the state it carries from level to level.
#[derive(Debug, Clone)]
pub struct PolicyPlanner {
    policy: Policy,
    bottom_up: bool,
}

impl PolicyPlanner {
    /// A planner for `policy` ([`Policy::Auto`] is [`Policy::Sampled`]: the best of those that need no calibration).
    pub fn new(policy: Policy) -> Self {
        let policy = if policy == Policy::Auto { Policy::Sampled(SampledCosts::default()) } else { policy };
        Self { policy, bottom_up: false }
    }
}

impl Planner for PolicyPlanner {
    fn begin(&mut self) {
        self.bottom_up = false;
    }

    fn wants_sample(&self, stats: &LevelStats) -> bool {
        matches!(&self.policy, Policy::Sampled(costs) if costs.wants_sample(stats))
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        self.bottom_up = match self.policy {
            Policy::Tc => false,
            Policy::Bc => true,
            Policy::AlphaBeta { alpha, beta } => super::alpha_beta::bottom_up(alpha, beta, self.bottom_up, stats),
            Policy::Sampled(costs) => costs.is_bottom_up(stats),
            // Resolved when the planner was made.
            Policy::Auto => false,
        };
        LevelPlan { direction: if self.bottom_up { Direction::BottomUp } else { Direction::TopDown }, placement: Placement::Cpu }
    }
}
