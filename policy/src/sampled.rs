//! `sampled`: direction by [`SampledCosts`], on the CPU or a device.

use socbfs::bfs::{Ahead, Direction, LevelPlan, LevelStats, Linear, SampledCosts, Surely};

use super::{
    Policy,
    history::History,
    rule::{Known, LevelDevice, Parameter, Range, Rule, Value},
};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "sampled",
    parameters: "WORD,VERTEX,PROBE",
    summary: "direction of the lower cost, estimated on a sample of unvisited vertices",
    from: "",
    default: |_| Ok(Policy::Sampled(SampledCosts::default())),
}];

/// When a search of `vertices` vertices is surely top-down, and when surely bottom-up.
fn surely_on_gpu(costs: &SampledCosts, vertices: u64, runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
    let (words, each) = ((costs.word * vertices as f64 / 64.0) as f32, (costs.vertex + costs.probe) as f32);
    let (vertex, probe) = (costs.vertex as f32, costs.probe as f32);
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
        surely_on_gpu(self, stats.vertices, runs)
    }

    fn is_bottom_up(&self, stats: &LevelStats, _memory: &History) -> bool {
        SampledCosts::is_bottom_up(self, stats)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::bfs::GpuKernel;

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
                let stats = LevelStats {
                    vertices: 64_000,
                    frontier_edges: edges,
                    unvisited_vertices,
                    unvisited_edges,
                    previous_direction: Some(Direction::BottomUp),
                    ..LevelStats::default()
                };
                let surely = surely_on_gpu(&costs, stats.vertices, LevelDevice::Gpu(GpuKernel::Bg));
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
}
