//! A planner of the program's own, as a policy: it goes wherever a policy goes.

use std::sync::Arc;

use super::{
    PolicyError,
    rule::{Known, LevelDevice, Rule, Uses},
};
use crate::bfs::{GpuKernel, LevelPlan, LevelStats, Placement, Planner};

/// The name for messages and records. The policy is made in code, so it has no text or TOML and is in no list.
const KNOWN: Known =
    Known { kind: "planner", parameters: "", summary: "", from: "", default: |kind| Err(PolicyError::Unknown(kind.to_owned())) };

/// A planner that can be copied: each search has its own.
trait Copied: Planner + Send + Sync {
    fn copied(&self) -> Box<dyn Copied>;
    /// Itself. (Rust 1.85 does not turn a reference to this trait into one to a trait above it.)
    fn planner(&self) -> &dyn Planner;
}

impl<P: Planner + Clone + Send + Sync + 'static> Copied for P {
    fn copied(&self) -> Box<dyn Copied> {
        Box::new(self.clone())
    }

    fn planner(&self) -> &dyn Planner {
        self
    }
}

/// A [`Planner`] of the program's own ([`Policy::planner`](super::Policy::planner)). Two are equal if one was copied from the other.
pub struct OwnPlanner {
    /// The last part of the name of its type.
    name: Arc<str>,
    planner: Box<dyn Copied>,
}

impl OwnPlanner {
    pub(super) fn new<P: Planner + Clone + Send + Sync + 'static>(planner: P) -> Self {
        let whole = std::any::type_name::<P>();
        let path = whole.split('<').next().unwrap_or(whole);
        Self { name: path.rsplit("::").next().unwrap_or(path).into(), planner: Box::new(planner) }
    }

    /// The name of its type, for records and tables.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn planner(&self) -> &dyn Planner {
        self.planner.planner()
    }

    pub(super) fn begin(&mut self) {
        self.planner.begin();
    }

    /// Plans a level. What an engine can't run is replaced: a kernel of the other direction by the first of this one, and a placement that
    /// the planner did not ask for ([`Planner::uses`]) by the CPU.
    pub(super) fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        let LevelPlan { direction, placement } = self.planner.plan(stats);
        let uses = self.planner.uses();
        let fitting = |kernel: GpuKernel| if kernel.direction() == direction { kernel } else { GpuKernel::of(direction)[0] };
        let placement = match placement {
            Placement::Gpu(kernel) if uses.alone => Placement::Gpu(fitting(kernel)),
            Placement::Split { gpu_permille, kernel } if uses.together => {
                Placement::Split { gpu_permille: gpu_permille.clamp(1, 999), kernel: fitting(kernel) }
            }
            Placement::Apart { gpu_permille } if uses.together => Placement::Apart { gpu_permille: gpu_permille.clamp(1, 999) },
            _ => Placement::Cpu,
        };
        LevelPlan { direction, placement }
    }
}

impl Clone for OwnPlanner {
    fn clone(&self) -> Self {
        Self { name: Arc::clone(&self.name), planner: self.planner.copied() }
    }
}

impl PartialEq for OwnPlanner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.name, &other.name)
    }
}

impl std::fmt::Debug for OwnPlanner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("OwnPlanner").field(&self.name).finish()
    }
}

impl Rule for OwnPlanner {
    fn known(&self) -> &'static Known {
        &KNOWN
    }

    fn uses(&self, _runs: LevelDevice) -> Uses {
        self.planner.uses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bfs::Direction,
        policy::{Policy, PolicyPlanner},
    };

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
            let policy = Policy::planner(Same::<3>(LevelPlan { direction, placement }, uses));
            let plan = PolicyPlanner::new(policy, LevelDevice::Cpu).plan(&LevelStats::default());
            assert_eq!(plan.direction, direction);
            plan.placement
        };
        let (bg, split) = (Placement::Gpu(GpuKernel::Bg), |gpu_permille, kernel| Placement::Split { gpu_permille, kernel });
        assert_eq!(planned(Direction::BottomUp, bg, Uses::EITHER), bg);
        assert_eq!(planned(Direction::TopDown, bg, Uses::EITHER), Placement::Gpu(GpuKernel::Tg));
        assert_eq!(planned(Direction::BottomUp, bg, Uses::CPU), Placement::Cpu);
        assert_eq!(planned(Direction::BottomUp, bg, Uses::TOGETHER), Placement::Cpu);
        assert_eq!(planned(Direction::TopDown, split(5000, GpuKernel::Bg), Uses::TOGETHER), split(999, GpuKernel::Tg));
        assert_eq!(planned(Direction::TopDown, split(0, GpuKernel::Tgm), Uses::TOGETHER), split(1, GpuKernel::Tgm));
        assert_eq!(planned(Direction::TopDown, split(500, GpuKernel::Tg), Uses::EITHER), Placement::Cpu);
    }

    #[test]
    fn a_planner_is_a_policy() {
        let policy = Policy::planner(Same::<3>(LevelPlan::default(), Uses::TOGETHER));
        assert_eq!((policy.kind(), policy.to_string()), ("planner", "planner:Same".to_owned()));
        assert!(policy.needs_device() && policy.runs_on_both() && !policy.decides_directions());
        assert_eq!(policy.clone(), policy);
        assert_ne!(policy, Policy::planner(Same::<3>(LevelPlan::default(), Uses::TOGETHER)));
        assert!(matches!("planner:Same".parse::<Policy>(), Err(PolicyError::Unknown(_))));
    }
}
