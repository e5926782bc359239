//! A policy in use, with what it remembers between the levels of one search.

use super::{Policy, history::History, rule::LevelDevice};
use socbfs::{
    bfs::{Ahead, AnyPlanner, Direction, LevelPlan, LevelStats, Placement, Planner, Uses},
    graph::Vertex,
};

/// A [`Policy`] with its state from level to level.
#[derive(Debug, Clone)]
pub struct PolicyPlanner {
    /// As it was given, with absent values.
    asked: Policy,
    /// The same with built-in values.
    policy: Policy,
    runs: LevelDevice,
    memory: History,
}

impl PolicyPlanner {
    /// A planner for `policy`. If the policy decides only directions, its levels run where `runs` says. If it places levels on the GPU,
    /// `runs` gives the bottom-up kernel, unless the policy has costs to choose by.
    pub fn new(asked: Policy, runs: LevelDevice) -> Self {
        let mut policy = asked.clone();
        policy.rule_mut().ready(runs);
        Self { asked, policy, runs, memory: History::default() }
    }
}

/// On the CPU, if it decides only directions.
impl From<Policy> for AnyPlanner {
    fn from(policy: Policy) -> Self {
        policy.on(LevelDevice::Cpu)
    }
}

impl Planner for PolicyPlanner {
    fn name(&self) -> String {
        self.asked.to_string()
    }

    /// A replay has searches from some roots only.
    fn set_root(&mut self, root: Vertex) -> bool {
        match &mut self.policy {
            Policy::Replay(replay) => replay.set_root(root),
            Policy::Planner(own) => own.set_root(root),
            _ => true,
        }
    }

    fn begins_on_gpu(&self, vertices: u64, arcs: u64, hub_share: f32) -> bool {
        match &self.asked {
            Policy::Planner(own) => own.begins_on_gpu(vertices, arcs, hub_share),
            Policy::Adaptive(adaptive) => adaptive.begins_on_gpu(vertices, arcs, hub_share),
            _ => false,
        }
    }

    fn on_cpu(&self) -> Option<AnyPlanner> {
        match &self.asked {
            Policy::Planner(own) => own.on_cpu(),
            policy => (!policy.needs_device()).then(|| policy.clone().on(LevelDevice::Cpu)),
        }
    }

    fn begin(&mut self) {
        self.memory = History::default();
        if let Policy::Planner(own) = &mut self.policy {
            own.begin();
        }
    }

    fn uses(&self) -> Uses {
        self.asked.uses(self.runs)
    }

    fn wants_sample(&self, stats: &LevelStats) -> bool {
        if let Policy::Planner(own) = &self.policy {
            return own.wants_sample(stats);
        }
        self.policy.rule().wants_sample(stats, self.runs, &self.memory)
    }

    fn wants_hubs(&self, stats: &LevelStats) -> bool {
        if let Policy::Planner(own) = &self.policy {
            return own.wants_hubs(stats);
        }
        self.policy.rule().wants_hubs()
    }

    /// Later plans are sure only after a level on a device.
    fn ahead(&self, stats: &LevelStats, plan: LevelPlan) -> Ahead {
        if let Policy::Planner(own) = &self.policy {
            return own.ahead(stats, plan);
        }
        let rule = self.policy.rule();
        let (samples, hubs) = (rule.may_sample(), rule.wants_hubs());
        let on_gpu = matches!(plan.placement, Placement::Gpu(_));
        let plans = if on_gpu { rule.surely(stats, plan, self.runs) } else { [None; Ahead::PLANS] };
        Ahead { vertices: stats.vertices, arcs: stats.arcs, plans, samples, hubs }
    }

    fn plan(&mut self, stats: &LevelStats) -> LevelPlan {
        self.memory.frontiers.note(stats);
        let plan = match &mut self.policy {
            Policy::Planner(own) => own.plan(stats),
            policy => policy.rule().plan(stats, self.runs, &mut self.memory),
        };
        self.memory.was_bottom_up = plan.direction == Direction::BottomUp;
        self.memory.been_bottom_up |= self.memory.was_bottom_up;
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::bfs::{GpuKernel, Strategy};

    /// The strategies that the policy of this name plans for a search of 1000 vertices and 10,000 arcs. Levels are (vertices of the
    /// frontier, their arcs, visited vertices, arcs expanded before, share of hubs in the frontier). `*` is a level that both devices run.
    fn plans(policy: &str, runs: LevelDevice, levels: &[(u64, u64, u64, u64, f32)]) -> String {
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
    fn alpha_beta_plans_the_expected_strategies() {
        // Unexplored arcs: 9980, 9280, 3280, 280, 180, 178; divided by 14: 712, 662, 234. Level 1 has 700 of them: bottom-up. 1000 / 24 =
        // 41: level 4 has shrunk to 30. There 100 > 180 / 14 would turn bottom-up again, but that rule applies only after a top-down level;
        // at level 5, 2 > 178 / 14 = 12 is false.
        assert_eq!(plans("alpha-beta:14,24", LevelDevice::Cpu, &SOCIAL), "tc bc bc bc tc tc");
        assert_eq!(plans("yasui", LevelDevice::Cpu, &SOCIAL), "tc bc bc bc tc tc");
        assert_eq!(plans("yasui:14,24", LevelDevice::Gpu(GpuKernel::Bgc), &SOCIAL), "tc bc bc bc tc tc");
        assert_eq!(plans("daga", LevelDevice::Gpu(GpuKernel::Bgc), &SOCIAL), "tc bg bg bg tc tc");
        // 9280 / 13 = 713: level 1 is still top-down.
        assert_eq!(plans("daga:13,24", LevelDevice::Gpu(GpuKernel::Bg), &SOCIAL), "tc tc bg bg tc tc");
    }

    #[test]
    fn gunrock_plans_the_expected_strategies() {
        // Level 1: a push of 20 * 10 = 200 against 0.001 pulls of 979 * 1000 / 21 = 46,619: bottom-up.
        // Level 2: 3000 > 0.2 * 679 * 1000 / 321 = 423. Level 3: 5000 > 0.2 * 179 * 1000 / 821 = 44. Level 4: 300 > 0.2 * 149 * 1000 / 851
        // = 35. Level 5: 20 < 0.2 * 147 * 1000 / 853 = 34: back.
        assert_eq!(plans("gunrock", LevelDevice::Cpu, &SOCIAL), "tc bc bc bc bc tc");
        assert_eq!(plans("gunrock", LevelDevice::Gpu(GpuKernel::Bgc), &SOCIAL), "tg bgc bgc bgc bgc tg");
        // With `do_a` 1 the push of level 1 is too cheap (200 < 46,619), and level 2 pulls (3000 > 2115). With `do_b` 100 level 3 turns
        // back (5000 < 21,803), and the search stays top-down, though level 4 has 300 > 175.
        assert_eq!(plans("gunrock:1,100", LevelDevice::Cpu, &SOCIAL), "tc tc bc tc tc tc");
    }

    #[test]
    fn enterprise_plans_the_expected_strategies() {
        // More than 30 % of the hubs at level 2 only.
        assert_eq!(plans("enterprise", LevelDevice::Cpu, &SOCIAL), "tc tc bc tc tc tc");
        assert_eq!(plans("enterprise:0.1", LevelDevice::Gpu(GpuKernel::Bg), &SOCIAL), "tg bg bg bg tg tg");
        // 3000 of 10,000 arcs: level 2 has 6000, and the search never turns back. With 0.07 the bound is 700, which level 1 has.
        assert_eq!(plans("enterprise-released", LevelDevice::Cpu, &SOCIAL), "tc tc bc bc bc bc");
        assert_eq!(plans("enterprise-released:0.07", LevelDevice::Cpu, &SOCIAL), "tc bc bc bc bc bc");
    }

    #[test]
    fn xbfs_plans_the_expected_strategies() {
        // A tenth is 1000 arcs.
        assert_eq!(plans("xbfs", LevelDevice::Cpu, &SOCIAL), "tc tc bc bc tc tc");
        assert_eq!(plans("xbfs:0.7", LevelDevice::Cpu, &SOCIAL), "tc tc tc tc tc tc");
    }

    #[test]
    fn remis_plans_the_expected_strategies() {
        // Frontiers of 300 and 500 are large; the CPU runs the last two levels, bottom-up.
        assert_eq!(plans("remis-selective:300", LevelDevice::Gpu(GpuKernel::Bg), &SOCIAL), "tc tc bg bg bc bc");
        assert_eq!(plans("remis-selective:301", LevelDevice::Gpu(GpuKernel::Bgc), &SOCIAL), "tc tc tc bgc bc bc");
        assert_eq!(plans("remis-selective:501", LevelDevice::Gpu(GpuKernel::Bgc), &SOCIAL), "tc tc tc tc tc tc");
        assert_eq!(plans("remis-concurrent:300,400", LevelDevice::Cpu, &SOCIAL), "tc tc * * bc bc");
        let mut planner = PolicyPlanner::new("remis-concurrent:1,400".parse().unwrap(), LevelDevice::Cpu);
        let split = LevelPlan::split(GpuKernel::Bg, 400).placement;
        for cpu_ns in [1, 1_000_000] {
            // The share is fixed, however long either device took.
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
    fn a_search_forgets_the_previous_one() {
        let mut planner = PolicyPlanner::new("enterprise-released".parse().unwrap(), LevelDevice::Cpu);
        let at = |level, frontier_edges| LevelStats { level, arcs: 1000, frontier_edges, ..LevelStats::default() };
        assert_eq!(planner.plan(&at(3, 500)), Strategy::Bc.plan());
        assert_eq!(planner.plan(&at(4, 1)), Strategy::Bc.plan());
        planner.begin();
        assert_eq!(planner.plan(&at(1, 1)), Strategy::Tc.plan());
    }
}
