//! Direction by comparing two costs, one of them from a sample.
//!
//! Beamer's rule compares edges with edges, as if an unvisited vertex looked at its whole list. How many neighbours it really looks at
//! depends on the graph and the level, and a sample of a few dozen vertices shows it. Costs are in units of one top-down edge.

use super::{
    Policy,
    rule::{History, Known, LevelDevice, Parameter, Range, Rule, Value},
};
use crate::bfs::{Ahead, Direction, LevelPlan, LevelStats, Linear, Surely};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "sampled",
    parameters: "WORD,VERTEX,PROBE",
    summary: "direction of the lower cost, estimated on a sample of unvisited vertices",
    from: "",
    default: |_| Ok(Policy::Sampled(SampledCosts::default())),
}];

/// The cost of a bottom-up level, in units of one top-down edge.
///
/// The defaults were fitted by hand on a Xeon with AVX-512, to Kronecker and uniform random graphs of scale 20. For a device, `runtime`
/// multiplies them by a measured factor, which comes from a board profile, a calibration, or this graph.
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
        Self { word: 0.5, vertex: 0.25, probe: 0.35 }
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
    pub(super) fn bottom_up(&self, stats: &LevelStats, probes: f64) -> f64 {
        let words = stats.vertices as f64 / 64.0;
        self.word * words + (self.vertex + self.probe * probes) * stats.unvisited_vertices as f64
    }

    /// The highest cost of a bottom-up level: every unvisited vertex looks at its whole list.
    fn worst(&self, stats: &LevelStats) -> f64 {
        self.bottom_up(stats, stats.unvisited_edges as f64 / stats.unvisited_vertices.max(1) as f64)
    }

    /// Whether the decision is open: top-down costs more than the best bottom-up level, in which every unvisited vertex finds its parent at
    /// once, and less than the worst, by more than a sample each.
    pub(crate) fn wants_sample(&self, stats: &LevelStats) -> bool {
        let top_down = stats.frontier_edges as f64;
        top_down > self.bottom_up(stats, 1.0) + SAMPLE && top_down < self.worst(stats) - SAMPLE
    }

    /// When a search of `vertices` vertices is surely top-down, and when surely bottom-up.
    fn surely_on_gpu(&self, vertices: u64, runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        let (words, each) = ((self.word * vertices as f64 / 64.0) as f32, (self.vertex + self.probe) as f32);
        let (vertex, probe) = (self.vertex as f32, self.probe as f32);
        // Top-down if it costs less than the best bottom-up level; bottom-up if top-down costs more than both the best and the worst.
        let below_best = Linear { constant: words, frontier_edges: -1.0, unvisited_vertices: each, ..Linear::default() };
        let above_best = Linear { constant: -words, frontier_edges: 1.0, unvisited_vertices: -each, ..Linear::default() };
        let above_worst = Linear { unvisited_vertices: -vertex, unvisited_edges: -probe, ..above_best };
        let on_gpu = |direction, above_zero: &[Linear]| {
            let placement = runs.placement(direction);
            Surely::when(LevelPlan { direction, placement }, above_zero.iter().copied())
        };
        [on_gpu(Direction::TopDown, &[below_best]), on_gpu(Direction::BottomUp, &[above_best, above_worst])]
    }

    /// Decides the direction. Without a sample, either the decision is clear, or the sample met no unvisited vertex: then little is left,
    /// and the direction stays.
    pub(crate) fn is_bottom_up(&self, stats: &LevelStats) -> bool {
        let top_down = stats.frontier_edges as f64;
        match stats.sampled_probes {
            Some(probes) => self.bottom_up(stats, f64::from(probes)) < top_down,
            None if self.wants_sample(stats) => stats.previous_direction == Some(Direction::BottomUp),
            // Above the worst case bottom-up is surely cheaper, below the best case top-down. Between the two, little is at stake here.
            None => top_down > (self.worst(stats) - SAMPLE).max(self.bottom_up(stats, 1.0)),
        }
    }
}

impl Rule for SampledCosts {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![
            Value::Number(Range::Positive, &mut self.word).named("word"),
            Value::Number(Range::Positive, &mut self.vertex).named("vertex"),
            Value::Number(Range::Positive, &mut self.probe).named("probe"),
        ]
    }

    fn shows_defaults(&self) -> bool {
        false
    }

    fn wants_sample(&self, stats: &LevelStats, _runs: LevelDevice, _memory: &History) -> bool {
        SampledCosts::wants_sample(self, stats)
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn surely(&self, stats: &LevelStats, _plan: LevelPlan, runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        self.surely_on_gpu(stats.vertices, runs)
    }

    fn is_bottom_up(&self, stats: &LevelStats, _memory: &History) -> bool {
        SampledCosts::is_bottom_up(self, stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfs::GpuKernel;

    /// A form's value, as a device computes it.
    fn value(form: &Linear, stats: &LevelStats) -> f32 {
        form.constant
            + form.frontier_vertices * stats.frontier_vertices as f32
            + form.frontier_edges * stats.frontier_edges as f32
            + form.unvisited_vertices * stats.unvisited_vertices as f32
            + form.unvisited_edges * stats.unvisited_edges as f32
    }

    #[test]
    fn sure_plans_are_made_without_a_sample() {
        let costs = SampledCosts::default();
        let mut sure = [0; 2];
        for edges in (0..200_000).step_by(37) {
            for (unvisited_vertices, unvisited_edges) in [(0, 0), (1, 50_000), (10, 10), (9000, 3000), (10_000, 200_000), (63_000, 900_000)]
            {
                let stats = LevelStats { unvisited_vertices, unvisited_edges, ..stats(edges, None, Some(Direction::BottomUp)) };
                let surely = costs.surely_on_gpu(stats.vertices, LevelDevice::Gpu(GpuKernel::Bg));
                for (which, surely) in surely.iter().flatten().enumerate() {
                    if surely.above_zero.iter().all(|form| value(form, &stats) > 0.0) {
                        sure[which] += 1;
                        assert!(!costs.wants_sample(&stats), "{stats:?}");
                        assert_eq!(costs.is_bottom_up(&stats), surely.plan.direction == Direction::BottomUp, "{stats:?}");
                    }
                }
            }
        }
        assert!(sure[0] > 1000 && sure[1] > 1000, "{sure:?}");
    }

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
        // The best case costs 6500, the worst (20 neighbours each) 73,000; a sample 1024.
        assert!(!costs.wants_sample(&stats(7524, None, None)));
        assert!(costs.wants_sample(&stats(7525, None, None)));
        assert!(costs.wants_sample(&stats(71_975, None, None)));
        assert!(!costs.wants_sample(&stats(71_976, None, None)));
        // Without a sample: top-down up to the best case, bottom-up from the worst case on.
        assert!(!costs.is_bottom_up(&stats(7524, None, Some(Direction::BottomUp))));
        assert!(costs.is_bottom_up(&stats(71_977, None, Some(Direction::TopDown))));
    }

    #[test]
    fn a_sample_decides_the_direction() {
        let costs = SampledCosts::default();
        // Two neighbours each: 500 + 2500 + 7000.
        assert!(!costs.is_bottom_up(&stats(10_000, Some(2.0), None)));
        assert!(costs.is_bottom_up(&stats(10_001, Some(2.0), None)));
        assert!(!costs.is_bottom_up(&stats(10_001, Some(3.0), None)));
    }

    #[test]
    fn without_a_sample_unclear_levels_keep_the_direction() {
        let costs = SampledCosts::default();
        assert!(costs.is_bottom_up(&stats(50_000, None, Some(Direction::BottomUp))));
        assert!(!costs.is_bottom_up(&stats(50_000, None, Some(Direction::TopDown))));
        assert!(!costs.is_bottom_up(&stats(1000, None, Some(Direction::BottomUp))));
    }
}
