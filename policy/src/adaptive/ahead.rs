//! The plans that `adaptive` is sure to make at the levels after a level on the GPU.
//!
//! If the bounds or the costs of its direction place a level on the GPU, and the level costs less there than a level of the other direction
//! would cost anywhere, the plan follows from counts alone. Costs are linear in these counts, except for the number of neighbours that an
//! unvisited vertex looks at: one at least, and its whole list at most.

use super::Adaptive;
use crate::NEVER;
use socbfs::bfs::{Ahead, Direction, LevelPlan, LevelStats, Linear, Placement, Strategy, Surely};

/// The opposite direction.
fn other(direction: Direction) -> Direction {
    match direction {
        Direction::TopDown => Direction::BottomUp,
        Direction::BottomUp => Direction::TopDown,
    }
}

/// A level's work, in the unit of its direction.
fn work(direction: Direction) -> Linear {
    match direction {
        Direction::TopDown => Linear { frontier_edges: 1.0, ..Linear::default() },
        Direction::BottomUp => Linear { unvisited_vertices: 1.0, ..Linear::default() },
    }
}

fn constant(value: f64) -> Linear {
    Linear { constant: value as f32, ..Linear::default() }
}

impl Adaptive {
    /// The plans on the GPU in either direction, each with the conditions under which it is sure. The GPU has the state.
    pub(crate) fn surely(&self, stats: &LevelStats) -> [Option<Surely>; Ahead::PLANS] {
        [Direction::TopDown, Direction::BottomUp].map(|direction| self.surely_in(direction, stats))
    }

    fn surely_in(&self, direction: Direction, stats: &LevelStats) -> Option<Surely> {
        // The costs of a level by a strategy, if each unvisited vertex looks at one neighbour, or at its whole list.
        let costs = |strategy| self.model.of(strategy).map(|cost| [false, true].map(|all| cost.linear(stats.vertices, all)));
        let (kernel, _) = self.gpu_ns(direction, stats, 1.0);
        let [least, most] = costs(kernel.into())?;
        let own = most + self.longest_turn(stats.vertices);
        let (band, against) = (self.bands.of(direction), self.bands.of(other(direction)));
        let on_gpu = match band.gpu_from {
            Some(from) => [Some(work(direction) - constant(from as f64 - 0.5)), None],
            None => {
                let [cpu_least, cpu_most] = costs(Strategy::on_cpu(direction))?;
                [Some(cpu_least - least), Some(cpu_most - most)]
            }
        };
        let inside = [
            Self::below(direction, band.split_from),
            Self::below(direction, band.up_to),
            Self::below(other(direction), against.split_from),
        ];
        // Bounds rule out split levels, or the least time of any split level does.
        let least_split = |of| self.model.least_split_ns(of, stats.vertices).filter(|_| self.bands.of(of).split_from.is_none());
        let splits = [direction, other(direction)].map(|of| Some(least_split(of)? - own));
        // The other direction on the CPU, with a free handover, and on the GPU; and the other kernel of the same direction.
        let is_other = |other: &Strategy| other.direction() != direction || (other.is_gpu() && *other != kernel.into());
        let others = Strategy::ALL.into_iter().filter(is_other).map(|strategy| Some(costs(strategy)?[0] - own));
        let plan = LevelPlan { direction, placement: Placement::Gpu(kernel) };
        Surely::when(plan, on_gpu.into_iter().chain(inside).chain(splits).chain(others).flatten())
    }

    /// Above 0 if the work is below this bound of a band (`None`: the band has no such bound).
    fn below(direction: Direction, bound: Option<u64>) -> Option<Linear> {
        bound.filter(|&bound| bound < NEVER).map(|bound| constant(bound as f64 - 0.5) - work(direction))
    }

    /// A bound of the longest conversion that may precede a level of a graph of `vertices` vertices. The frontier is that of the level,
    /// which may be far larger than the present one.
    fn longest_turn(&self, vertices: u64) -> Linear {
        let [one, other] = [self.model.to_bottom_up, self.model.to_top_down].map(|change| change.linear(vertices));
        Linear {
            constant: one.constant.max(other.constant),
            frontier_vertices: one.frontier_vertices.max(other.frontier_vertices),
            ..Linear::default()
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::{
        prelude::{Just, ProptestConfig, any, prop_assert, prop_assert_eq, prop_oneof, proptest},
        strategy::Strategy as Any,
    };

    use super::*;
    use crate::{
        Band, Bands, ChangeCost, CostModel, StrategyCost,
        history::History,
        rule::{LevelDevice, Rule},
    };
    use socbfs::bfs::{GpuKernel, SampledCosts};

    /// Amounts of all orders of magnitude.
    fn amount() -> impl Any<Value = u64> {
        (0_u32..24, 0.0..1.0).prop_map(|(bits, part)| ((1_u64 << bits) as f64 * part) as u64)
    }

    fn cost() -> impl Any<Value = StrategyCost> {
        (0.0..50_000.0, 0.0..10.0, 0.1..3.0, 0.0..5.0, 0.1..3.0, 0.01..1.0).prop_map(
            |(fixed_ns, frontier_vertex_ns, frontier_edge_ns, word_ns, unvisited_vertex_ns, probe_ns)| StrategyCost {
                fixed_ns,
                frontier_vertex_ns,
                frontier_edge_ns,
                word_ns,
                unvisited_vertex_ns,
                probe_ns,
                ..StrategyCost::default()
            },
        )
    }

    /// The top-down costs: terms of the other direction are 0.
    fn top_down(cost: StrategyCost) -> StrategyCost {
        StrategyCost { word_ns: 0.0, unvisited_vertex_ns: 0.0, probe_ns: 0.0, ..cost }
    }

    fn bottom_up(cost: StrategyCost) -> StrategyCost {
        StrategyCost { frontier_vertex_ns: 0.0, frontier_edge_ns: 0.0, ..cost }
    }

    fn band() -> impl Any<Value = Band> {
        let bound = || prop_oneof![Just(None), Just(Some(NEVER)), amount().prop_map(Some)];
        (prop_oneof![Just(Some(0)), bound()], bound(), bound()).prop_map(|(gpu_from, split_from, up_to)| Band {
            gpu_from,
            split_from,
            up_to,
            gpu_permille: None,
        })
    }

    pub(in crate::adaptive) fn adaptive() -> impl Any<Value = Adaptive> {
        let gpu = proptest::collection::vec(proptest::option::of(cost()), 4);
        (band(), band(), gpu, cost(), 0.0..100_000.0, 0.0..5.0, any::<[bool; 2]>()).prop_map(
            |(down, up, gpu, change, way_ns, word_ns, splits)| {
                let way = ChangeCost { fixed_ns: way_ns, word_ns, ..ChangeCost::default() };
                let model = CostModel {
                    tg: gpu[0].map(top_down),
                    tgm: gpu[1].map(top_down),
                    bg: gpu[2].map(bottom_up),
                    bgc: gpu[3].map(bottom_up),
                    to_bottom_up: ChangeCost {
                        fixed_ns: change.fixed_ns / 50.0,
                        frontier_vertex_ns: change.frontier_vertex_ns,
                        word_ns: 0.0,
                    },
                    to_top_down: ChangeCost { frontier_vertex_ns: change.unvisited_vertex_ns, ..ChangeCost::default() },
                    top_down_split: splits[0].then_some(way),
                    bottom_up_split: splits[1].then_some(way),
                    to_gpu: way,
                    to_cpu: way,
                    ..SampledCosts::default().into()
                };
                Adaptive::new(Bands { top_down: down, bottom_up: up }, model)
            },
        )
    }

    pub(in crate::adaptive) fn stats() -> impl Any<Value = LevelStats> {
        let sampled = proptest::option::of(1.0_f32..20.0);
        (amount(), amount(), 1.0..30.0, amount(), 0.0..30.0, 0_u32..3, sampled).prop_map(
            |(frontier_vertices, unvisited_vertices, degree, visited, left, before, sampled)| {
                let (frontier_vertices, edges) = (frontier_vertices + 1, |of: u64, degree: f64| (of as f64 * degree) as u64);
                LevelStats {
                    level: 5,
                    vertices: frontier_vertices + unvisited_vertices + visited,
                    arcs: edges(frontier_vertices + unvisited_vertices + visited, 30.0),
                    frontier_vertices,
                    frontier_edges: edges(frontier_vertices, degree),
                    unvisited_vertices,
                    unvisited_edges: edges(unvisited_vertices, left),
                    previous_frontier_vertices: 1 + visited / 7,
                    previous_direction: Some(if before == 0 { Direction::TopDown } else { Direction::BottomUp }),
                    previous_placement: Some(if before == 1 { Placement::Cpu } else { Placement::Gpu(GpuKernel::Bg) }),
                    sampled_probes: sampled.map(|probes| probes.min(left.max(1.0) as f32)),
                    ..LevelStats::default()
                }
            },
        )
    }

    fn value(form: &Linear, stats: &LevelStats) -> f64 {
        f64::from(form.constant)
            + f64::from(form.frontier_vertices) * stats.frontier_vertices as f64
            + f64::from(form.frontier_edges) * stats.frontier_edges as f64
            + f64::from(form.unvisited_vertices) * stats.unvisited_vertices as f64
            + f64::from(form.unvisited_edges) * stats.unvisited_edges as f64
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        /// Wherever the forms say that a plan is sure, the policy makes this plan. The forms are made at an earlier level.
        #[test]
        fn sure_plans_match_the_plans_of_the_policy(adaptive in adaptive(), stats in stats(), earlier in stats(), runs in 0..3) {
            let runs = [LevelDevice::Cpu, LevelDevice::Gpu(GpuKernel::Bg), LevelDevice::Gpu(GpuKernel::Bgc)][runs as usize];
            let stats = LevelStats { previous_placement: Some(Placement::Gpu(GpuKernel::Bg)), ..stats };
            let mut adaptive = adaptive;
            adaptive.ready(runs);
            let earlier = LevelStats { vertices: stats.vertices, arcs: stats.arcs, ..earlier };
            for surely in adaptive.surely(&earlier).into_iter().flatten() {
                if surely.above_zero.iter().all(|form| value(form, &stats) > 1e-3) {
                    let mut memory = History::default();
                    prop_assert!(!adaptive.wants_sample(&stats, runs, &memory));
                    prop_assert_eq!(adaptive.plan(&stats, runs, &mut memory), surely.plan);
                }
            }
        }
    }

    /// The forms are useful: on a GPU that is twice as fast, the clear levels of a search are sure (top-down, bottom-up, top-down).
    #[test]
    fn clear_levels_have_one_sure_plan() {
        let whole = Band::gpu_from(0);
        let ready = |bands| {
            let mut adaptive = Adaptive::of(bands);
            adaptive.ready(LevelDevice::Gpu(GpuKernel::Bg));
            adaptive
        };
        let adaptive = ready(Bands { top_down: whole, bottom_up: whole });
        let at = |frontier_edges, unvisited_vertices| LevelStats {
            vertices: 1 << 18,
            arcs: 8 << 20,
            frontier_vertices: frontier_edges / 10 + 1,
            frontier_edges,
            unvisited_vertices,
            unvisited_edges: 4 * unvisited_vertices,
            previous_placement: Some(Placement::Gpu(GpuKernel::Tg)),
            ..LevelStats::default()
        };
        let sure = |stats: LevelStats| {
            let plans = adaptive.surely(&stats).into_iter().flatten();
            let mut holding = plans.filter(|surely| surely.above_zero.iter().all(|form| value(form, &stats) > 0.0));
            (holding.next().map(|surely| surely.plan.direction), holding.next().is_some())
        };
        assert_eq!(sure(at(300, 1 << 18)), (Some(Direction::TopDown), false));
        assert_eq!(sure(at(6 << 20, 1 << 17)), (Some(Direction::BottomUp), false));
        assert_eq!(sure(at(100, 1000)), (Some(Direction::TopDown), false));
        // Nothing is sure if the band places the level on the CPU.
        let adaptive = ready(Bands { top_down: Band::gpu_from(1000), bottom_up: Band::CPU });
        let [top_down, _] = adaptive.surely(&at(300, 1 << 18));
        assert!(top_down.is_some_and(|surely| surely.above_zero.iter().any(|form| value(form, &at(300, 1 << 18)) <= 0.0)));
    }
}
