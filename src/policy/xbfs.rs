//! XBFS's direction rule (Gaihre, Wu, Yao and Liu, XBFS, HPDC 2019; the released code, hpda-lab/XBFS, is run with 0.1).
//!
//! A level is bottom-up if at least a tenth of all arcs leave its frontier (level 0 too), else top-down.

use super::{
    Policy,
    rule::{History, Known, LevelDevice, Parameter, Rule, Value},
};
use crate::bfs::{Ahead, Direction, LevelPlan, LevelStats, Linear, Surely};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "xbfs",
    parameters: "RATIO",
    summary: "direction as in XBFS: bottom-up from 0.1 of all arcs",
    default: || Ok(Policy::Xbfs(Xbfs::default())),
}];

/// XBFS's rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Xbfs {
    /// Bottom-up where at least this share of all arcs leaves the frontier.
    pub ratio: f64,
}

impl Default for Xbfs {
    fn default() -> Self {
        Self { ratio: 0.1 }
    }
}

impl Rule for Xbfs {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Fraction(&mut self.ratio).named("ratio")]
    }

    fn surely(&self, stats: &LevelStats, _plan: LevelPlan, runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        let arcs = (self.ratio * stats.arcs as f64) as f32;
        let below = Linear { constant: arcs, frontier_edges: -1.0, ..Linear::default() };
        let above = Linear { constant: -arcs, frontier_edges: 1.0, ..Linear::default() };
        [(Direction::TopDown, below), (Direction::BottomUp, above)].map(|(direction, form)| {
            let plan = LevelPlan { direction, placement: runs.placement(direction) };
            Surely::when(plan, [form])
        })
    }

    fn is_bottom_up(&self, stats: &LevelStats, _memory: &History) -> bool {
        stats.frontier_edges as f64 / stats.arcs as f64 >= self.ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_arcs_decides_at_every_level() {
        let at = |level, frontier_edges| {
            let stats = LevelStats { level, arcs: 5000, frontier_edges, ..LevelStats::default() };
            Xbfs::default().is_bottom_up(&stats, &History::default())
        };
        // 5000 / 10 = 500.
        assert!(!at(3, 499) && at(3, 500) && at(4, 5000) && !at(5, 10));
        assert!(at(0, 500), "a root with a tenth of the arcs");
    }
}
