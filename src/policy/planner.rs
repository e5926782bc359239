//! A policy at work: what it remembers between the levels of one search.

use super::{Policy, SampledCosts, Splitting, concurrent, mlp::Memory, selective};
use crate::bfs::{Direction, GpuKernel, LevelPlan, LevelStats, Placement, Planner};

/// Where the levels of a policy run that decides directions only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Runs {
    /// On the CPU.
    #[default]
    Cpu,
    /// On the GPU, by TG and the bottom-up kernel given.
    Gpu(GpuKernel),
}

impl Runs {
    fn placement(self, direction: Direction) -> Placement {
        match (self, direction) {
            (Self::Cpu, _) => Placement::Cpu,
            (Self::Gpu(_), Direction::TopDown) => Placement::Gpu(GpuKernel::Tg),
            (Self::Gpu(bottom_up), Direction::BottomUp) => Placement::Gpu(bottom_up),
        }
    }
}

/// A [`Policy`] with the state it carries from level to level.
#[derive(Debug, Clone)]
pub struct PolicyPlanner {
    policy: Policy,
    runs: Runs,
    bottom_up: bool,
    /// What a network remembers.
    memory: Memory,
    /// The GPU's share of the next split level, top-down and bottom-up.
    shares: [u16; 2],
}

impl PolicyPlanner {
    /// A planner for `policy` ([`Policy::Auto`] is [`Policy::Sampled`]: the best of those that need no calibration). Levels of
    /// policies that decide directions only run where `runs` says; of [`Policy::Selective`] it says by which kernels.
    pub fn new(policy: Policy, runs: Runs) -> Self {
        let policy = if policy == Policy::Auto { Policy::Sampled(SampledCosts::default()) } else { policy };
        let share = if let Policy::Concurrent(Splitting { gpu_permille, .. }) = policy { gpu_permille } else { 500 };
        Self { policy, runs, bottom_up: false, memory: Memory::default(), shares: [share; 2] }
    }

    /// The costs by which the direction is decided, where they are.
    fn costs(&self) -> Option<SampledCosts> {
        match self.policy {
            Policy::Sampled(costs) => Some(costs),
            Policy::Selective(_) | Policy::Concurrent(_) | Policy::Asynchronous(_) => Some(SampledCosts::default()),
            _ => None,
        }
    }

    fn placement(&mut self, direction: Direction, stats: &LevelStats) -> Placement {
        match self.policy {
            Policy::Gpu(kernel) => Placement::Gpu(kernel),
            Policy::Selective(thresholds) => {
                let on_gpu = matches!(stats.previous_placement, Some(Placement::Gpu(_)));
                let work = selective::work(stats, direction);
                let bottom_up = if let Runs::Gpu(kernel) = self.runs { kernel } else { GpuKernel::Bg };
                match thresholds {
                    Some(thresholds) if thresholds.of(direction).is_gpu(work, on_gpu) => Runs::Gpu(bottom_up).placement(direction),
                    _ => Placement::Cpu,
                }
            }
            Policy::Concurrent(splitting) => {
                let share = &mut self.shares[usize::from(direction == Direction::BottomUp)];
                *share = concurrent::adapted(*share, direction, stats);
                if splitting.is_split(stats, direction) { Placement::Split { gpu_permille: *share } } else { Placement::Cpu }
            }
            Policy::Asynchronous(parting) if parting.is_now(stats) => Placement::Apart { gpu_permille: parting.gpu_permille },
            Policy::Asynchronous(_) | Policy::Tc | Policy::Bc => Placement::Cpu,
            Policy::AlphaBeta { .. } | Policy::Sampled(_) | Policy::Mlp(_) | Policy::Auto | Policy::Replay(_) => self.runs.placement(direction),
        }
    }
}

impl Planner for PolicyPlanner {
    /// Shares outlive a search: the next one begins with what this one learned.
    fn begin(&mut self) {
        self.bottom_up = false;
        self.memory = Memory::default();
    }

    fn wants_sample(&self, stats: &LevelStats) -> bool {
        match &self.policy {
            Policy::Replay(replay) => replay.observes(),
            Policy::Mlp(mlp) => mlp.wants_sample(stats),
            _ => self.costs().is_some_and(|costs| costs.wants_sample(stats)),
        }
    }

    fn wants_hubs(&self, _stats: &LevelStats) -> bool {
        matches!(&self.policy, Policy::Replay(replay) if replay.observes())
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        if let Policy::Replay(replay) = &self.policy {
            return replay.plan(stats);
        }
        self.bottom_up = match &self.policy {
            Policy::Bc => true,
            Policy::Gpu(kernel) => kernel.direction() == Direction::BottomUp,
            Policy::AlphaBeta { alpha, beta } => super::alpha_beta::bottom_up(*alpha, *beta, self.bottom_up, stats),
            Policy::Mlp(mlp) => mlp.is_bottom_up(stats, self.memory.growth_before(stats)),
            _ => self.costs().is_some_and(|costs| costs.is_bottom_up(stats)),
        };
        let direction = if self.bottom_up { Direction::BottomUp } else { Direction::TopDown };
        LevelPlan { direction, placement: self.placement(direction, stats) }
    }
}
