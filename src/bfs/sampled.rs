//! Direction by comparing two costs, one of them from a sample.
//!
//! Beamer's rule compares edges with edges, as if an unvisited vertex looked at its whole list. How many neighbours it really looks at
//! depends on the graph and the level, and a sample of at most 64 vertices shows it. Costs are in units of one top-down edge.

use super::{Direction, LevelPlan, LevelStats, Planner, Strategy};

/// The cost of a bottom-up level, in units of one top-down edge.
///
/// The defaults took the least time of five multiples, or little more, on ten real and six synthetic graphs on a Zen 3 with AVX2
/// (docs/measurements/2026-11-30-costs). For a device, `runtime` multiplies them by a measured factor, which comes from a board profile, a
/// calibration, or this graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledCosts {
    /// Each word of 64 vertices.
    pub word: f64,
    /// Each unvisited vertex: its share of the columns of first neighbours.
    pub vertex: f64,
    /// Each neighbour an unvisited vertex looks at.
    pub probe: f64,
}

impl Default for SampledCosts {
    fn default() -> Self {
        Self { word: 1.0, vertex: 0.5, probe: 0.7 }
    }
}

/// The cost of a sample, in top-down arcs: no sample is taken if less is at stake.
const SAMPLE: f64 = 1024.0;

impl SampledCosts {
    /// The costs for a device whose bottom-up levels, relative to top-down ones, cost `permille` thousandths of these.
    #[must_use]
    pub fn times(self, permille: u32) -> Self {
        // Rounded to the meaningful digits, since records show the values.
        let times = |cost: f64| (cost * f64::from(permille) * 10.0).round().max(1.0) / 1e4;
        Self { word: times(self.word), vertex: times(self.vertex), probe: times(self.probe) }
    }

    /// The cost of a bottom-up level in which every unvisited vertex looks at `probes` neighbours on average.
    #[must_use]
    pub fn bottom_up(&self, stats: &LevelStats, probes: f64) -> f64 {
        let words = stats.vertices as f64 / 64.0;
        self.word * words + (self.vertex + self.probe * probes) * stats.unvisited_vertices as f64
    }

    /// The highest cost of a bottom-up level: every unvisited vertex looks at its whole list.
    fn worst(&self, stats: &LevelStats) -> f64 {
        self.bottom_up(stats, stats.unvisited_edges as f64 / stats.unvisited_vertices.max(1) as f64)
    }

    /// Whether the decision is open: top-down costs more than the best bottom-up level, in which every unvisited vertex finds its parent at
    /// once, and less than the worst, by more than a sample each.
    pub fn wants_sample(&self, stats: &LevelStats) -> bool {
        let top_down = stats.frontier_edges as f64;
        top_down > self.bottom_up(stats, 1.0) + SAMPLE && top_down < self.worst(stats) - SAMPLE
    }

    /// Decides the direction. Without a sample, either the decision is clear, or the sample met no unvisited vertex: then little is left,
    /// and the direction stays.
    pub fn is_bottom_up(&self, stats: &LevelStats) -> bool {
        let top_down = stats.frontier_edges as f64;
        match stats.sampled_probes {
            Some(probes) => self.bottom_up(stats, f64::from(probes)) < top_down,
            None if self.wants_sample(stats) => stats.previous_direction == Some(Direction::BottomUp),
            // Above the worst case bottom-up is surely cheaper, below the best case top-down. Between the two, little is at stake here.
            None => top_down > (self.worst(stats) - SAMPLE).max(self.bottom_up(stats, 1.0)),
        }
    }
}

/// Every level on the CPU. The crate `socbfs-policy` has the same rule for a device.
impl Planner for SampledCosts {
    fn name(&self) -> String {
        "sampled".to_owned()
    }

    fn wants_sample(&self, stats: &LevelStats) -> bool {
        SampledCosts::wants_sample(self, stats)
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        if self.is_bottom_up(stats) { Strategy::Bc.plan() } else { Strategy::Tc.plan() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 64,000 vertices are 1000 words, which cost 500 edges. 10,000 unvisited vertices cost 2500, and 3500 per neighbour they look at.
    fn stats(frontier_edges: u64, sampled_probes: Option<f32>, previous_direction: Option<Direction>) -> LevelStats {
        LevelStats {
            level: 2,
            vertices: 64_000,
            arcs: 1_000_000,
            frontier_vertices: 5000,
            frontier_edges,
            unvisited_vertices: 10_000,
            unvisited_edges: 200_000,
            previous_frontier_vertices: 20,
            previous_direction,
            sampled_probes,
            ..LevelStats::default()
        }
    }

    #[test]
    fn a_sample_is_wanted_where_it_may_pay() {
        let costs = SampledCosts::default();
        // The best case costs 13,000, the worst (20 neighbours each) 146,000; a sample 1024.
        assert!(!costs.wants_sample(&stats(14_024, None, None)));
        assert!(costs.wants_sample(&stats(14_025, None, None)));
        assert!(costs.wants_sample(&stats(144_975, None, None)));
        assert!(!costs.wants_sample(&stats(144_976, None, None)));
        // Without a sample: top-down up to the best case, bottom-up from the worst case on.
        assert!(!costs.is_bottom_up(&stats(14_024, None, Some(Direction::BottomUp))));
        assert!(costs.is_bottom_up(&stats(144_977, None, Some(Direction::TopDown))));
    }

    #[test]
    fn a_sample_decides_the_direction() {
        let costs = SampledCosts::default();
        // Two neighbours each: 1000 + 5000 + 14,000.
        assert!(!costs.is_bottom_up(&stats(20_000, Some(2.0), None)));
        assert!(costs.is_bottom_up(&stats(20_001, Some(2.0), None)));
        assert!(!costs.is_bottom_up(&stats(20_001, Some(3.0), None)));
    }

    #[test]
    fn without_a_sample_unclear_levels_keep_the_direction() {
        let costs = SampledCosts::default();
        assert!(costs.is_bottom_up(&stats(50_000, None, Some(Direction::BottomUp))));
        assert!(!costs.is_bottom_up(&stats(50_000, None, Some(Direction::TopDown))));
        assert!(!costs.is_bottom_up(&stats(1000, None, Some(Direction::BottomUp))));
    }
}
