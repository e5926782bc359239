//! A policy at work: what it remembers between the levels of one search.

use std::ops::Range;

use super::{
    Policy, SampledCosts, Splitting, alpha_beta, concurrent, cost_model::Spent, daga, enterprise, mlp::Frontiers, remis, selective, xbfs,
};
use crate::{
    bfs::{Direction, GpuKernel, LevelPlan, LevelStats, Placement, Planner},
    graph::Vertex,
};

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

    /// The same levels on the GPU, by BG where nothing else is said.
    fn on_gpu(self) -> Self {
        if self == Self::Cpu { Self::Gpu(GpuKernel::Bg) } else { self }
    }
}

/// What rules remember of the search at hand.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Memory {
    /// The level before was bottom-up.
    pub(super) was_bottom_up: bool,
    /// Some level before was.
    pub(super) been_bottom_up: bool,
}

/// A [`Policy`] with the state it carries from level to level.
#[derive(Debug, Clone)]
pub struct PolicyPlanner {
    policy: Policy,
    runs: Runs,
    memory: Memory,
    /// What networks remember.
    frontiers: Frontiers,
    /// What the search has cost so far, by a model.
    spent: Spent,
    /// The GPU's share of the next split level, top-down and bottom-up.
    shares: [u16; 2],
    /// Of a replay: the plans of the search at hand.
    replayed: Range<usize>,
}

impl PolicyPlanner {
    /// A planner for `policy` ([`Policy::Auto`] is [`Policy::Sampled`]: the best of those that need no calibration). Levels of
    /// policies that decide directions only run where `runs` says; of [`Policy::Selective`] it says by which kernels.
    pub fn new(policy: Policy, runs: Runs) -> Self {
        let policy = if policy == Policy::Auto { Policy::Sampled(SampledCosts::default()) } else { policy };
        let share = if let Policy::Concurrent(Splitting { gpu_permille, .. }) = policy { gpu_permille } else { 500 };
        let replayed = if let Policy::Replay(replay) = &policy { 0..replay.plans().len() } else { 0..0 };
        let (memory, frontiers, spent) = (Memory::default(), Frontiers::default(), Spent::default());
        Self { policy, runs, memory, frontiers, spent, shares: [share; 2], replayed }
    }

    /// Says that the next search begins at `root` (an original number), which a replay by roots has to know. False where it knows no
    /// such search.
    pub fn set_root(&mut self, root: Vertex) -> bool {
        let Policy::Replay(replay) = &self.policy else { return true };
        let of_root = replay.of_root(root);
        self.replayed = of_root.clone().unwrap_or_default();
        of_root.is_some()
    }

    /// The costs by which the direction is decided, where they are.
    fn costs(&self) -> Option<SampledCosts> {
        match self.policy {
            Policy::Sampled(costs) => Some(costs),
            Policy::Selective(_) | Policy::Concurrent(_) | Policy::Asynchronous(_) => Some(SampledCosts::default()),
            _ => None,
        }
    }

    fn is_bottom_up(&self, stats: &LevelStats) -> bool {
        match self.policy {
            Policy::Tc => false,
            Policy::Bc => true,
            Policy::Gpu(kernel) => kernel.direction() == Direction::BottomUp,
            Policy::AlphaBeta { alpha, beta } | Policy::Daga { alpha, beta } | Policy::Yasui { alpha, beta } => {
                alpha_beta::bottom_up(alpha, beta, self.memory.was_bottom_up, stats)
            }
            Policy::Gunrock(rule) => rule.is_bottom_up(self.memory, stats),
            Policy::Enterprise { gamma } => enterprise::bottom_up(gamma, stats),
            Policy::EnterpriseReleased { edge_share } => enterprise::released_bottom_up(edge_share, self.memory, stats),
            Policy::Xbfs { ratio } => xbfs::bottom_up(ratio, stats),
            Policy::RemisSelective { vertices } | Policy::RemisConcurrent { vertices, .. } => {
                remis::bottom_up(vertices, self.memory, stats)
            }
            Policy::Auto | Policy::Sampled(_) | Policy::Selective(_) | Policy::Concurrent(_) | Policy::Asynchronous(_) => {
                self.costs().is_some_and(|costs| costs.is_bottom_up(stats))
            }
            Policy::Mlp(ref mlp) => mlp.is_bottom_up(stats, self.frontiers.growth_before()),
            // (Plans whole strategies, see `plan`.)
            Policy::CostModel(_) => false,
            Policy::Replay(ref replay) => replay.plan(&self.replayed, stats).direction == Direction::BottomUp,
        }
    }

    fn placement(&mut self, direction: Direction, stats: &LevelStats) -> Placement {
        match self.policy {
            Policy::Tc | Policy::Bc | Policy::Yasui { .. } | Policy::CostModel(_) => Placement::Cpu,
            Policy::Gpu(kernel) => Placement::Gpu(kernel),
            Policy::Daga { .. } => daga::strategy(direction).placement(),
            Policy::Selective(thresholds) => {
                let on_gpu = matches!(stats.previous_placement, Some(Placement::Gpu(_)));
                let work = selective::work(stats, direction);
                match thresholds {
                    Some(thresholds) if thresholds.of(direction).is_gpu(work, on_gpu) => self.runs.on_gpu().placement(direction),
                    _ => Placement::Cpu,
                }
            }
            Policy::RemisSelective { vertices } if remis::is_large(vertices, stats) => self.runs.on_gpu().placement(direction),
            Policy::Concurrent(splitting) => {
                let share = &mut self.shares[usize::from(direction == Direction::BottomUp)];
                *share = concurrent::adapted(*share, direction, stats);
                if splitting.is_split(stats, direction) { Placement::Split { gpu_permille: *share } } else { Placement::Cpu }
            }
            Policy::RemisConcurrent { vertices, gpu_permille } if remis::is_large(vertices, stats) => Placement::Split { gpu_permille },
            Policy::RemisSelective { .. } | Policy::RemisConcurrent { .. } => Placement::Cpu,
            Policy::Asynchronous(parting) if parting.is_now(stats) => Placement::Apart { gpu_permille: parting.gpu_permille },
            Policy::Asynchronous(_) => Placement::Cpu,
            Policy::Auto
            | Policy::AlphaBeta { .. }
            | Policy::Sampled(_)
            | Policy::Gunrock(_)
            | Policy::Enterprise { .. }
            | Policy::EnterpriseReleased { .. }
            | Policy::Xbfs { .. }
            | Policy::Mlp(_) => self.runs.placement(direction),
            Policy::Replay(ref replay) => replay.plan(&self.replayed, stats).placement,
        }
    }
}

impl Planner for PolicyPlanner {
    /// Shares outlive a search: the next one begins with what this one learned.
    fn begin(&mut self) {
        self.memory = Memory::default();
        self.frontiers = Frontiers::default();
        self.spent = Spent::default();
    }

    fn wants_sample(&self, stats: &LevelStats) -> bool {
        match &self.policy {
            Policy::Replay(replay) => replay.observes(),
            Policy::Mlp(mlp) => mlp.wants_sample(stats),
            Policy::CostModel(model) => model.wants_sample(self.runs, stats, self.spent),
            _ => self.costs().is_some_and(|costs| costs.wants_sample(stats)),
        }
    }

    fn wants_hubs(&self, _stats: &LevelStats) -> bool {
        match &self.policy {
            Policy::Replay(replay) => replay.observes(),
            policy => matches!(policy, Policy::Enterprise { .. }),
        }
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        self.frontiers.note(stats);
        if let Policy::CostModel(model) = &self.policy {
            return model.plan(self.runs, stats, &mut self.spent).plan();
        }
        let bottom_up = self.is_bottom_up(stats);
        let direction = if bottom_up { Direction::BottomUp } else { Direction::TopDown };
        let placement = self.placement(direction, stats);
        self.memory = Memory { was_bottom_up: bottom_up, been_bottom_up: self.memory.been_bottom_up || bottom_up };
        LevelPlan { direction, placement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfs::Strategy;

    /// The strategies of a search of 1000 vertices and 10,000 arcs whose levels are (vertices of the frontier, their arcs, visited vertices,
    /// arcs expanded before, share of hubs in the frontier), by the name of a policy. `*` is a level that both run.
    fn plans(policy: &str, runs: Runs, levels: &[(u64, u64, u64, u64, f32)]) -> String {
        let mut planner = PolicyPlanner::new(policy.parse().unwrap(), runs);
        planner.begin();
        let mut before = (0, None);
        let mut names = Vec::new();
        for (level, &(frontier, edges, visited, expanded, hubs)) in (0..).zip(levels) {
            let mut stats = LevelStats {
                level,
                vertices: 1000,
                arcs: 10_000,
                frontier_vertices: frontier,
                frontier_edges: edges,
                unvisited_vertices: 1000 - visited,
                unvisited_edges: 10_000 - expanded - edges,
                previous_frontier_vertices: before.0,
                previous_direction: before.1,
                ..LevelStats::default()
            };
            if planner.wants_hubs(&stats) {
                stats.sampled_hubs = Some(hubs);
            }
            let plan = planner.plan(&stats);
            names.push(Strategy::of(plan).map_or("*", Strategy::name));
            before = (frontier, Some(plan.direction));
        }
        names.join(" ")
    }

    /// A search of a social network: a root of 20 arcs, three levels that grow, two that shrink.
    const SOCIAL: [(u64, u64, u64, u64, f32); 6] = [
        (1, 20, 1, 0, 0.0),
        (20, 700, 21, 20, 0.2),
        (300, 6000, 321, 720, 0.6),
        (500, 3000, 821, 6720, 0.2),
        (30, 100, 851, 9720, 0.0),
        (2, 2, 853, 9820, 0.0),
    ];

    #[test]
    fn alpha_and_beta() {
        // Unexplored arcs: 9980, 9280, 3280, 280, 180, 178; by 14: 712, 662, 234. Level 1 has 700 of them: bottom-up.
        // 1000 / 24 = 41: level 4 has shrunk to 30. There 100 > 180 / 14 would be bottom-up again, but that is the rule of a
        // top-down level before; at level 5 it is 2 > 178 / 14 = 12, which is not so.
        assert_eq!(plans("alpha-beta:14,24", Runs::Cpu, &SOCIAL), "tc bc bc bc tc tc");
        assert_eq!(plans("yasui", Runs::Cpu, &SOCIAL), "tc bc bc bc tc tc");
        assert_eq!(plans("yasui:14,24", Runs::Gpu(GpuKernel::Bgc), &SOCIAL), "tc bc bc bc tc tc");
        assert_eq!(plans("daga", Runs::Gpu(GpuKernel::Bgc), &SOCIAL), "tc bg bg bg tc tc");
        // 9280 / 13 = 713: level 1 is top-down still.
        assert_eq!(plans("daga:13,24", Runs::Gpu(GpuKernel::Bg), &SOCIAL), "tc tc bg bg tc tc");
    }

    #[test]
    fn gunrock() {
        // Level 1: a push of 20 * 10 = 200 against 0.001 pulls of 979 * 1000 / 21 = 46,619: bottom-up.
        // Level 2: 3000 > 0.2 * 679 * 1000 / 321 = 423. Level 3: 5000 > 0.2 * 179 * 1000 / 821 = 44. Level 4: 300 > 0.2 * 149 * 1000 / 851
        // = 35. Level 5: 20 < 0.2 * 147 * 1000 / 853 = 34: back.
        assert_eq!(plans("gunrock", Runs::Cpu, &SOCIAL), "tc bc bc bc bc tc");
        assert_eq!(plans("gunrock", Runs::Gpu(GpuKernel::Bgc), &SOCIAL), "tg bgc bgc bgc bgc tg");
        // By 1 the push of level 1 is too cheap (200 < 46,619) and level 2 pulls (3000 > 2115); by 100 level 3 turns back (5000 < 21,803),
        // and stays so, though level 4 has 300 > 175.
        assert_eq!(plans("gunrock:1,100", Runs::Cpu, &SOCIAL), "tc tc bc tc tc tc");
    }

    #[test]
    fn enterprise() {
        // More than 30 % of the hubs at level 2 only.
        assert_eq!(plans("enterprise", Runs::Cpu, &SOCIAL), "tc tc bc tc tc tc");
        assert_eq!(plans("enterprise:0.1", Runs::Gpu(GpuKernel::Bg), &SOCIAL), "tg bg bg bg tg tg");
        // 3000 of 10,000 arcs: level 2 has 6000, and there is no way back. By 0.07 level 1 has 700 of 700.
        assert_eq!(plans("enterprise-released", Runs::Cpu, &SOCIAL), "tc tc bc bc bc bc");
        assert_eq!(plans("enterprise-released:0.07", Runs::Cpu, &SOCIAL), "tc bc bc bc bc bc");
    }

    #[test]
    fn xbfs() {
        // A tenth is 1000 arcs.
        assert_eq!(plans("xbfs", Runs::Cpu, &SOCIAL), "tc tc bc bc tc tc");
        assert_eq!(plans("xbfs:0.7", Runs::Cpu, &SOCIAL), "tc tc tc tc tc tc");
    }

    #[test]
    fn remis() {
        // Frontiers of 300 and 500 are large; the last two levels are the CPU's, bottom-up.
        assert_eq!(plans("remis-selective:300", Runs::Gpu(GpuKernel::Bg), &SOCIAL), "tc tc bg bg bc bc");
        assert_eq!(plans("remis-selective:301", Runs::Gpu(GpuKernel::Bgc), &SOCIAL), "tc tc tc bgc bc bc");
        assert_eq!(plans("remis-selective:501", Runs::Gpu(GpuKernel::Bgc), &SOCIAL), "tc tc tc tc tc tc");
        assert_eq!(plans("remis-concurrent:300,400", Runs::Cpu, &SOCIAL), "tc tc * * bc bc");
        let mut planner = PolicyPlanner::new("remis-concurrent:1,400".parse().unwrap(), Runs::Cpu);
        let split = Placement::Split { gpu_permille: 400 };
        for cpu_ns in [1, 1_000_000] {
            // However long either took: the share is fixed.
            let stats = LevelStats {
                frontier_vertices: 5,
                previous_placement: Some(split),
                previous_direction: Some(Direction::BottomUp),
                previous_cpu_ns: cpu_ns,
                previous_gpu_ns: 1000,
                ..LevelStats::default()
            };
            assert_eq!(planner.plan(&stats).placement, split);
        }
    }

    #[test]
    fn a_search_forgets_the_one_before() {
        let mut planner = PolicyPlanner::new("enterprise-released".parse().unwrap(), Runs::Cpu);
        let at = |level, frontier_edges| LevelStats { level, arcs: 1000, frontier_edges, ..LevelStats::default() };
        assert_eq!(planner.plan(&at(3, 500)), Strategy::Bc.plan());
        assert_eq!(planner.plan(&at(4, 1)), Strategy::Bc.plan());
        planner.begin();
        assert_eq!(planner.plan(&at(1, 1)), Strategy::Tc.plan());
    }
}
