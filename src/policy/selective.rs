//! Selective: one device per level, by thresholds (Remis 2016, section 3.1).
//!
//! The thesis compares the size of the frontier with one threshold. Here there is one per direction, in the unit in which
//! the direction's work is counted, and the cost of handing memory over is part of it: a search goes to the GPU only where
//! the way there and back is paid for, and comes back only where the GPU loses more than the way costs.

use serde::{Deserialize, Serialize};

use crate::bfs::{Direction, LevelStats};

/// The threshold that is never reached: that direction stays on the CPU.
pub const NEVER: u64 = u64::MAX;

/// From how much work on a level runs on the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// Where the CPU has the state: go to the GPU from this on.
    pub go: u64,
    /// Where the GPU has the state: stay there from this on.
    pub stay: u64,
}

impl Threshold {
    /// One number for both.
    pub const fn at(work: u64) -> Self {
        Self { go: work, stay: work }
    }

    /// Never.
    pub const NEVER: Self = Self::at(NEVER);

    /// From two straight lines: the time of a level on either device as a function of its work, with the time of one
    /// hand-over between them.
    pub fn between(cpu: Line, gpu: Line, handover_ns: f64) -> Self {
        // Where the GPU's line, raised by `extra`, falls below the CPU's.
        let crossing = |extra: f64| {
            let (gain, cost) = (cpu.ns_per_unit - gpu.ns_per_unit, gpu.fixed_ns + extra - cpu.fixed_ns);
            if cost <= 0.0 && gain >= 0.0 {
                0
            } else if gain <= 0.0 {
                NEVER
            } else {
                (cost / gain).min(u64::MAX as f64) as u64
            }
        };
        Self { go: crossing(2.0 * handover_ns), stay: crossing(-handover_ns) }
    }

    /// Whether a level of `work` runs on the GPU.
    pub fn is_gpu(self, work: u64, on_gpu: bool) -> bool {
        let from = if on_gpu { self.stay } else { self.go };
        from != NEVER && work >= from
    }
}

/// How long a level takes: a fixed time and a time for every unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Nanoseconds of a level without work.
    pub fixed_ns: f64,
    /// Nanoseconds per unit: an arc of the frontier (top-down), an unvisited vertex (bottom-up).
    pub ns_per_unit: f64,
}

/// A level's work in the unit of its direction: arcs that leave the frontier, or vertices not yet visited.
pub(super) fn work(stats: &LevelStats, direction: Direction) -> u64 {
    match direction {
        Direction::TopDown => stats.frontier_edges,
        Direction::BottomUp => stats.unvisited_vertices,
    }
}

/// Thresholds of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// In arcs that leave the frontier.
    pub top_down: Threshold,
    /// In vertices not yet visited.
    pub bottom_up: Threshold,
}

impl Thresholds {
    /// That of `direction`.
    pub fn of(&self, direction: Direction) -> Threshold {
        match direction {
            Direction::TopDown => self.top_down,
            Direction::BottomUp => self.bottom_up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cross_where_the_way_is_paid_for() {
        let (cpu, gpu) = (Line { fixed_ns: 1000.0, ns_per_unit: 2.0 }, Line { fixed_ns: 21_000.0, ns_per_unit: 1.0 });
        assert_eq!(Threshold::between(cpu, gpu, 0.0), Threshold::at(20_000));
        // There and back for going, one way saved for staying.
        assert_eq!(Threshold::between(cpu, gpu, 5000.0), Threshold { go: 30_000, stay: 15_000 });
        // A GPU that is slower at everything.
        assert_eq!(Threshold::between(gpu, Line { fixed_ns: 30_000.0, ns_per_unit: 1.5 }, 10.0), Threshold::NEVER);
        // One that is faster at everything.
        assert_eq!(Threshold::between(gpu, Line { fixed_ns: 0.0, ns_per_unit: 0.5 }, 0.0), Threshold::at(0));
    }

    #[test]
    fn the_owner_of_the_state_matters() {
        let threshold = Threshold { go: 100, stay: 50 };
        assert!(!threshold.is_gpu(99, false) && threshold.is_gpu(100, false));
        assert!(!threshold.is_gpu(49, true) && threshold.is_gpu(50, true));
        assert!(!Threshold::NEVER.is_gpu(u64::MAX, true));
    }
}
