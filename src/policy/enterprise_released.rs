//! Enterprise's direction rule in the released code (iHeartGraph/Enterprise), which does not use hubs. A search turns bottom-up at the
//! first level after level 0 at which at least 30 % of all arcs leave the frontier, and stays bottom-up to its end.

use super::{
    Policy,
    rule::{History, Known, Parameter, Rule, Value},
};
use crate::bfs::LevelStats;

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "enterprise-released",
    parameters: "SHARE",
    summary: "direction as in Enterprise's code: bottom-up from 0.3 of all arcs to the end",
    default: || Ok(Policy::EnterpriseReleased(EnterpriseReleased::default())),
}];

/// The released code's rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnterpriseReleased {
    /// The search turns bottom-up at the first frontier that at least this share of all arcs leaves.
    pub edge_share: f64,
}

impl Default for EnterpriseReleased {
    fn default() -> Self {
        Self { edge_share: 0.3 }
    }
}

impl Rule for EnterpriseReleased {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Fraction(&mut self.edge_share).named("edge_share")]
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &History) -> bool {
        memory.was_bottom_up || (stats.level > 0 && stats.frontier_edges as f64 / stats.arcs as f64 >= self.edge_share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_turns_bottom_up_once_at_its_share_of_the_arcs() {
        let at = |was_bottom_up, level, frontier_edges| {
            let stats = LevelStats { level, arcs: 1000, frontier_edges, ..LevelStats::default() };
            EnterpriseReleased::default().is_bottom_up(&stats, &History { was_bottom_up, ..History::default() })
        };
        // 30 % of 1000.
        assert!(!at(false, 1, 299) && at(false, 1, 300));
        assert!(!at(false, 0, 900), "never at the root");
        assert!(at(true, 5, 1), "and stays");
    }
}
