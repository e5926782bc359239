//! Enterprise's direction rule as in the paper (Liu and Huang, Enterprise: breadth-first graph traversal on GPUs, SC 2015): a level is
//! bottom-up if its frontier holds more than 30 % (gamma) of all hub vertices (SURF 2022, section 2.2 and algorithm 6: decided again at
//! every level; a hub has more arcs than the mean).

use super::{
    Policy,
    rule::{History, Known, Parameter, Rule, Value},
};
use crate::bfs::LevelStats;

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "enterprise",
    parameters: "GAMMA",
    summary: "direction as in Enterprise's paper: bottom-up above 0.3 of all hubs",
    default: || Ok(Policy::Enterprise(Enterprise::default())),
}];

/// The paper's rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Enterprise {
    /// Bottom-up where the frontier holds more than this share of all hubs.
    pub gamma: f64,
}

impl Default for Enterprise {
    fn default() -> Self {
        Self { gamma: 0.3 }
    }
}

impl Rule for Enterprise {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Fraction(&mut self.gamma).named("gamma")]
    }

    fn wants_hubs(&self) -> bool {
        true
    }

    /// Top-down if the graph has no hubs or the frontier was not sampled.
    fn is_bottom_up(&self, stats: &LevelStats, _memory: &History) -> bool {
        stats.sampled_hubs.is_some_and(|hubs| f64::from(hubs) > self.gamma)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bottom_up_begins_above_gamma_of_the_hubs() {
        let at = |gamma, sampled_hubs| {
            let stats = LevelStats { level: 2, sampled_hubs, ..LevelStats::default() };
            Enterprise { gamma }.is_bottom_up(&stats, &History::default())
        };
        // 31 and 29 of 100 hubs; exactly half by a gamma of one half.
        assert!(at(0.3, Some(0.31)) && !at(0.3, Some(0.29)));
        assert!(!at(0.5, Some(0.5)));
        assert!(!at(0.3, None));
    }
}
