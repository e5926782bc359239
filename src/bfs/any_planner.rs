//! A planner of any type, as options and searches hold it.

use std::sync::Arc;

use super::{Ahead, GpuKernel, LevelPlan, LevelStats, Placement, Planner, SampledCosts, Uses};
use crate::graph::Vertex;

/// A planner that can be copied: each search has its own.
trait Copied: Planner + Send + Sync {
    fn copied(&self) -> Box<dyn Copied>;
}

impl<P: Planner + Clone + Send + Sync + 'static> Copied for P {
    fn copied(&self) -> Box<dyn Copied> {
        Box::new(self.clone())
    }
}

/// A [`Planner`] of any type; the default is [`SampledCosts`] with its default costs. Two are equal if one was copied from the other.
pub struct AnyPlanner {
    name: Arc<str>,
    uses: Uses,
    planner: Box<dyn Copied>,
}

impl AnyPlanner {
    /// Takes in `planner`. What an engine can't run is replaced in its plans: a kernel of the other direction by the first of this one, a
    /// placement that the planner did not ask for ([`Planner::uses`]) by the CPU, and a share above the whole by the whole.
    pub fn new(planner: impl Planner + Clone + Send + Sync + 'static) -> Self {
        Self { name: planner.name().into(), uses: planner.uses(), planner: Box::new(planner) }
    }
}

impl Default for AnyPlanner {
    fn default() -> Self {
        Self::new(SampledCosts::default())
    }
}

impl Planner for AnyPlanner {
    fn name(&self) -> String {
        self.name.to_string()
    }

    fn begin(&mut self) {
        self.planner.begin();
    }

    fn set_root(&mut self, root: Vertex) -> bool {
        self.planner.set_root(root)
    }

    fn uses(&self) -> Uses {
        self.uses
    }

    fn begins_on_gpu(&self, vertices: u64, arcs: u64, hub_share: f32) -> bool {
        self.planner.begins_on_gpu(vertices, arcs, hub_share)
    }

    fn on_cpu(&self) -> Option<AnyPlanner> {
        if self.uses == Uses::CPU { Some(self.clone()) } else { self.planner.on_cpu() }
    }

    fn wants_sample(&self, stats: &LevelStats) -> bool {
        self.planner.wants_sample(stats)
    }

    fn wants_hubs(&self, stats: &LevelStats) -> bool {
        self.planner.wants_hubs(stats)
    }

    fn ahead(&self, stats: &LevelStats, plan: LevelPlan) -> Ahead {
        self.planner.ahead(stats, plan)
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        let LevelPlan { direction, placement } = self.planner.plan(stats);
        let fitting = |kernel: GpuKernel| if kernel.direction() == direction { kernel } else { GpuKernel::of(direction)[0] };
        let placement = match placement {
            Placement::Gpu(kernel) if self.uses.alone => Placement::Gpu(fitting(kernel)),
            Placement::Split { gpu_permille, kernel } if self.uses.together => {
                Placement::Split { gpu_permille: gpu_permille.min(1000), kernel: fitting(kernel) }
            }
            Placement::Apart { gpu_permille } if self.uses.together => Placement::Apart { gpu_permille: gpu_permille.clamp(1, 999) },
            _ => Placement::Cpu,
        };
        LevelPlan { direction, placement }
    }
}

impl Clone for AnyPlanner {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), uses: self.uses, planner: self.planner.copied() }
    }
}

impl PartialEq for AnyPlanner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.name, &other.name)
    }
}

/// Its name.
impl std::fmt::Display for AnyPlanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl std::fmt::Debug for AnyPlanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AnyPlanner").field(&self.name).field(&self.uses).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfs::Direction;

    /// Plans the same for every level.
    #[derive(Clone)]
    struct Same<const LEVELS: u32>(LevelPlan, Uses);

    impl<const LEVELS: u32> Planner for Same<LEVELS> {
        fn uses(&self) -> Uses {
            self.1
        }

        fn plan(&mut self, _: &LevelStats) -> LevelPlan {
            self.0
        }
    }

    #[test]
    fn a_plan_that_no_engine_can_run_is_replaced() {
        let planned = |direction, placement, uses| {
            let plan = AnyPlanner::new(Same::<3>(LevelPlan { direction, placement }, uses)).plan(&LevelStats::default());
            assert_eq!(plan.direction, direction);
            plan.placement
        };
        let (bg, split) = (Placement::Gpu(GpuKernel::Bg), |gpu_permille, kernel| Placement::Split { gpu_permille, kernel });
        assert_eq!(planned(Direction::BottomUp, bg, Uses::EITHER), bg);
        assert_eq!(planned(Direction::TopDown, bg, Uses::EITHER), Placement::Gpu(GpuKernel::Tg));
        assert_eq!(planned(Direction::BottomUp, bg, Uses::CPU), Placement::Cpu);
        assert_eq!(planned(Direction::BottomUp, bg, Uses::TOGETHER), Placement::Cpu);
        assert_eq!(planned(Direction::TopDown, split(5000, GpuKernel::Bg), Uses::TOGETHER), split(1000, GpuKernel::Tg));
        assert_eq!(planned(Direction::TopDown, split(0, GpuKernel::Tgm), Uses::TOGETHER), split(0, GpuKernel::Tgm));
        assert_eq!(planned(Direction::TopDown, split(500, GpuKernel::Tg), Uses::EITHER), Placement::Cpu);
    }

    #[test]
    fn a_planner_has_the_name_of_its_type() {
        let planner = AnyPlanner::new(Same::<3>(LevelPlan::default(), Uses::TOGETHER));
        assert_eq!(planner.name(), "Same");
        assert_eq!(planner.clone(), planner);
        assert_ne!(planner, AnyPlanner::new(Same::<3>(LevelPlan::default(), Uses::TOGETHER)));
    }
}
