//! The adaptive cost model: it chooses the strategy with the least predicted time for each level (Zhang et al. 2018, section 3.2).
//!
//! The paper estimates a top-down level as t = e_frontier / speed (eq. 2) and a bottom-up level as t = alpha * e_left / speed (eq. 4), with
//! one average speed for each strategy, and chooses the strategy with the least time. [`ModelTerms::Zhang`] does the same.
//! [`ModelTerms::Full`] counts what a level really does: vertices and arcs of the frontier, words of the bitmap, unvisited vertices and the
//! neighbours they look at (sampled where that could change the decision), each with its own time for each strategy, and the cost of a
//! change of direction or device. It can also minimise the energy of a search or its energy-delay product, which the paper does not.

use serde::{Deserialize, Serialize};

use super::{
    Policy, PolicyError,
    history::{History, Spent},
    rule::{Known, LevelDevice, Parameter, Rule, Special, Value},
};
use socbfs::bfs::{Direction, GpuKernel, LevelPlan, LevelStats, Linear, Placement, SampledCosts, Strategy, Uses};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "cost-model",
    parameters: "FORM",
    summary: "the strategy with the least predicted time, by measured costs; zhang: by the paper's mean speeds alone",
    from: "after Zhang 2018",
    default: |_| Ok(Policy::CostModel(Box::new(CostModel::shipped(ModelTerms::Full)))),
}];

/// The terms of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelTerms {
    /// All terms that were found to matter.
    #[default]
    Full,
    /// The terms of the paper.
    Zhang,
}

/// The quantity that a model minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Seconds.
    #[default]
    Time,
    /// Joules.
    Energy,
    /// Joules times seconds of the whole search.
    Edp,
}

impl std::fmt::Display for Objective {
    /// The name, as on the command line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.serialize(f)
    }
}

impl std::str::FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::Time, Self::Energy, Self::Edp];
        known.into_iter().find(|known| known.to_string() == text).ok_or_else(|| format!("{text:?} is none of time, energy, edp"))
    }
}

/// Nanoseconds of a level by one strategy, for each piece of its work. Work that a strategy does not do costs 0.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StrategyCost {
    /// For each level, whatever its size.
    #[serde(skip_serializing_if = "is_zero")]
    pub fixed_ns: f64,
    /// For each vertex of the frontier.
    #[serde(skip_serializing_if = "is_zero")]
    pub frontier_vertex_ns: f64,
    /// For each arc that leaves the frontier.
    #[serde(skip_serializing_if = "is_zero")]
    pub frontier_edge_ns: f64,
    /// For each 64 vertices of the graph.
    #[serde(skip_serializing_if = "is_zero")]
    pub word_ns: f64,
    /// For each unvisited vertex.
    #[serde(skip_serializing_if = "is_zero")]
    pub unvisited_vertex_ns: f64,
    /// For each neighbour that an unvisited vertex looks at.
    #[serde(skip_serializing_if = "is_zero")]
    pub probe_ns: f64,
    /// For each arc of an unvisited vertex (in the paper's form: alpha over the speed).
    #[serde(skip_serializing_if = "is_zero")]
    pub unvisited_edge_ns: f64,
    /// Power while levels run by this strategy, with idle power (`None`: not known).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watts: Option<f64>,
    /// Time of a part of a split level while the other device works, over its time while that device is idle (`None`: not measured, and
    /// counted as 1). Above 1 where the devices share memory or cores, below 1 where a busy CPU raises the clock of the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corun: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// The least co-run ratio of a device: below it, something else was measured. (Phones had 0.64: BetterTogether, IISWC 2025.)
pub const LEAST_RATIO: f64 = 0.1;

impl StrategyCost {
    /// The cost in the form of Zhang 2018, of this many nanoseconds for an arc: of the frontier top-down (equation 2), of unvisited
    /// vertices bottom-up (equation 4).
    pub fn zhang(strategy: Strategy, arc_ns: f64) -> Self {
        match strategy.direction() {
            Direction::TopDown => Self { frontier_edge_ns: arc_ns, ..Self::default() },
            Direction::BottomUp => Self { unvisited_edge_ns: arc_ns, ..Self::default() },
        }
    }

    /// Names of the terms, as in TOML, and their values.
    pub fn terms_mut(&mut self) -> [(&'static str, &mut f64); 7] {
        [
            ("fixed_ns", &mut self.fixed_ns),
            ("frontier_vertex_ns", &mut self.frontier_vertex_ns),
            ("frontier_edge_ns", &mut self.frontier_edge_ns),
            ("word_ns", &mut self.word_ns),
            ("unvisited_vertex_ns", &mut self.unvisited_vertex_ns),
            ("probe_ns", &mut self.probe_ns),
            ("unvisited_edge_ns", &mut self.unvisited_edge_ns),
        ]
    }

    /// Nanoseconds of a level in which every unvisited vertex looks at `probes` neighbours on average.
    pub fn level_ns(&self, stats: &LevelStats, probes: f64) -> f64 {
        self.fixed_ns
            + self.frontier_vertex_ns * stats.frontier_vertices as f64
            + self.frontier_edge_ns * stats.frontier_edges as f64
            + self.word_ns * (stats.vertices as f64 / 64.0)
            + (self.unvisited_vertex_ns + self.probe_ns * probes) * stats.unvisited_vertices as f64
            + self.unvisited_edge_ns * stats.unvisited_edges as f64
    }

    /// A bound of [`level_ns`](Self::level_ns) for the levels of a graph with `vertices` vertices. The lower bound counts one neighbour for
    /// each unvisited vertex, the upper bound (`all`) its whole list. (The number of unvisited arcs may be an estimate, even below one for
    /// each vertex, so the upper bound counts that one as well.)
    pub(super) fn linear(&self, vertices: u64, all: bool) -> Linear {
        let all_ns = if all { self.probe_ns } else { 0.0 };
        Linear {
            constant: (self.fixed_ns + self.word_ns * (vertices as f64 / 64.0)) as f32,
            frontier_vertices: self.frontier_vertex_ns as f32,
            frontier_edges: self.frontier_edge_ns as f32,
            unvisited_vertices: (self.unvisited_vertex_ns + self.probe_ns) as f32,
            unvisited_edges: (self.unvisited_edge_ns + all_ns) as f32,
        }
    }

    /// The cost with every term multiplied by `factor`, and with the same power.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Self {
        for (_, term) in self.terms_mut() {
            *term *= factor;
        }
        self
    }

    /// [`corun`](Self::corun), 1 if it was not measured.
    pub fn ratio(&self) -> f64 {
        self.corun.unwrap_or(1.0)
    }

    /// Nanoseconds of a share of a level while the other device is idle. A device pays the fixed cost of the level whatever its share.
    fn part_ns(&self, stats: &LevelStats, probes: f64, share: f64) -> f64 {
        self.fixed_ns + share * (self.level_ns(stats, probes) - self.fixed_ns)
    }
}

/// The time until both parts of a split level are done, if they begin together: `alone` holds the time of each while the other device is
/// idle, and `corun` the ratio by which it takes longer while the other one works ([`StrategyCost::corun`]). The part that ends last is
/// slowed down only until the other one ends.
pub fn together_ns(alone: [f64; 2], corun: [f64; 2]) -> f64 {
    let [one, other] = [alone[0] * corun[0], alone[1] * corun[1]];
    let rest = if one <= other { alone[1] - one / corun[1] } else { alone[0] - other / corun[0] };
    one.min(other) + rest
}

/// The expected number of neighbours that an unvisited vertex with `list` neighbours looks at, if arcs are random and `frontier_edges` of
/// all `arcs` lead to the frontier.
pub fn expected_probes(arcs: u64, frontier_edges: u64, list: f64) -> f64 {
    (arcs as f64 / frontier_edges.max(1) as f64).min(list).max(1.0)
}

/// Nanoseconds of a change.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChangeCost {
    /// For each change, whatever the size.
    pub fixed_ns: f64,
    /// For each 64 vertices of the graph.
    pub word_ns: f64,
    /// For each vertex of the frontier.
    pub frontier_vertex_ns: f64,
}

impl ChangeCost {
    /// Nanoseconds of a change before the current level.
    pub fn ns(&self, stats: &LevelStats) -> f64 {
        self.fixed_ns + self.word_ns * (stats.vertices as f64 / 64.0) + self.frontier_vertex_ns * stats.frontier_vertices as f64
    }

    /// The same in a graph of `vertices` vertices, for any frontier.
    pub(super) fn linear(&self, vertices: u64) -> Linear {
        Linear {
            constant: (self.fixed_ns + self.word_ns * (vertices as f64 / 64.0)) as f32,
            frontier_vertices: self.frontier_vertex_ns as f32,
            ..Linear::default()
        }
    }

    fn terms(&self) -> [(&'static str, f64); 3] {
        [("fixed_ns", self.fixed_ns), ("word_ns", self.word_ns), ("frontier_vertex_ns", self.frontier_vertex_ns)]
    }
}

/// The costs of all strategies that were measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CostModel {
    /// Its form, which determines its terms.
    pub form: ModelTerms,
    /// The quantity that it minimises.
    pub objective: Objective,
    /// Top-down on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tc: Option<StrategyCost>,
    /// Top-down on the GPU over a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tg: Option<StrategyCost>,
    /// Top-down on the GPU over a mask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgm: Option<StrategyCost>,
    /// Bottom-up on the CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bc: Option<StrategyCost>,
    /// Bottom-up on the GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bg: Option<StrategyCost>,
    /// Bottom-up on the GPU with hubs in local memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bgc: Option<StrategyCost>,
    /// From a top-down to a bottom-up level: the bitmap is made.
    pub to_bottom_up: ChangeCost,
    /// From a bottom-up to a top-down level: the queue is made.
    pub to_top_down: ChangeCost,
    /// From the CPU to the GPU: handover.
    pub to_gpu: ChangeCost,
    /// From the GPU to the CPU.
    pub to_cpu: ChangeCost,
    /// The time of a split top-down level beyond the longer of its two parts: copies, merging (`None`: not measured).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_down_split: Option<ChangeCost>,
    /// The same time of a split bottom-up level.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bottom_up_split: Option<ChangeCost>,
}

/// Why a model is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CostModelError {
    /// A cost, a power or a ratio that is not a finite number of at least `least`.
    #[error("{key} is {value}; it must be a finite number, {least} or more")]
    OutOfRange {
        /// Path of the key.
        key: String,
        /// Its value.
        value: f64,
        /// The least value: 0, or [`LEAST_RATIO`] for `corun`.
        least: f64,
    },
    /// A direction that no strategy of the CPU covers.
    #[error("the model has no strategy that searches {0}")]
    NoStrategy(&'static str),
    /// An objective that needs a power which is not known.
    #[error("objective {objective} needs the power of {strategy}: {strategy}.watts is missing")]
    NoWatts {
        /// The objective.
        objective: Objective,
        /// The strategy.
        strategy: &'static str,
    },
}

/// Shares of the GPU among which the model chooses for split levels, in thousandths.
const SHARES: [u16; 3] = [250, 500, 750];

/// The cost of a sample, in nanoseconds: no sample is taken if a wrong decision costs less.
const SAMPLE_NS: f64 = 1500.0;

impl CostModel {
    /// The costs of the CPU's strategies as measured on two cores of a Xeon with AVX-512 (`socbfs calibrate`). Machines that have not been
    /// calibrated start with them, since decisions depend on ratios only.
    pub fn shipped(form: ModelTerms) -> Self {
        let (tc, bc, to_bottom_up, to_top_down) = match form {
            ModelTerms::Full => (
                StrategyCost { fixed_ns: 170.0, frontier_vertex_ns: 6.7, frontier_edge_ns: 1.5, ..StrategyCost::default() },
                StrategyCost { word_ns: 4.0, unvisited_vertex_ns: 2.2, probe_ns: 0.44, ..StrategyCost::default() },
                ChangeCost { fixed_ns: 380.0, ..ChangeCost::default() },
                ChangeCost { fixed_ns: 83.0, ..ChangeCost::default() },
            ),
            ModelTerms::Zhang => {
                let free = ChangeCost::default();
                (StrategyCost::zhang(Strategy::Tc, 4.0), StrategyCost::zhang(Strategy::Bc, 0.5), free, free)
            }
        };
        Self { form, tc: Some(tc), bc: Some(bc), to_bottom_up, to_top_down, ..Self::default() }
    }

    /// The costs of `strategy` (`None`: not measured).
    pub fn of(&self, strategy: Strategy) -> Option<&StrategyCost> {
        [&self.tc, &self.tg, &self.tgm, &self.bc, &self.bg, &self.bgc][strategy as usize].as_ref()
    }

    /// As [`of`](Self::of), to be set.
    pub fn of_mut(&mut self, strategy: Strategy) -> &mut Option<StrategyCost> {
        match strategy {
            Strategy::Tc => &mut self.tc,
            Strategy::Tg => &mut self.tg,
            Strategy::Tgm => &mut self.tgm,
            Strategy::Bc => &mut self.bc,
            Strategy::Bg => &mut self.bg,
            Strategy::Bgc => &mut self.bgc,
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`CostModelError`].
    pub fn validate(&self) -> Result<(), CostModelError> {
        let check = |key: &dyn Fn() -> String, value: f64, least: f64| {
            if value.is_finite() && value >= least { Ok(()) } else { Err(CostModelError::OutOfRange { key: key(), value, least }) }
        };
        for strategy in Strategy::ALL {
            let Some(mut cost) = self.of(strategy).copied() else { continue };
            let watts = cost.watts.map(|watts| ("watts", watts, 0.0));
            let corun = cost.corun.map(|corun| ("corun", corun, LEAST_RATIO));
            for (name, value, least) in cost.terms_mut().map(|(name, term)| (name, *term, 0.0)).into_iter().chain(watts).chain(corun) {
                check(&|| format!("{}.{name}", strategy.name()), value, least)?;
            }
            if self.objective != Objective::Time && cost.watts.is_none() {
                return Err(CostModelError::NoWatts { objective: self.objective, strategy: strategy.name() });
            }
        }
        let changes =
            [("to_bottom_up", self.to_bottom_up), ("to_top_down", self.to_top_down), ("to_gpu", self.to_gpu), ("to_cpu", self.to_cpu)];
        let splits = [("top_down_split", self.top_down_split), ("bottom_up_split", self.bottom_up_split)];
        let splits = splits.into_iter().filter_map(|(split, cost)| Some((split, cost?)));
        for (change, cost) in changes.into_iter().chain(splits) {
            for (name, value) in cost.terms() {
                check(&|| format!("{change}.{name}"), value, 0.0)?;
            }
        }
        // The CPU is always there, so it needs both directions.
        match (self.tc, self.bc) {
            (None, _) => Err(CostModelError::NoStrategy("top-down on the CPU (tc)")),
            (_, None) => Err(CostModelError::NoStrategy("bottom-up on the CPU (bc)")),
            _ => Ok(()),
        }
    }

    /// Whether it has costs for strategies of the GPU.
    pub fn has_gpu(&self) -> bool {
        Strategy::ALL.into_iter().any(|strategy| strategy.is_gpu() && self.of(strategy).is_some())
    }

    /// Whether it has the costs of levels of this direction on the GPU, and of split ones.
    pub(super) fn knows(&self, direction: Direction) -> [bool; 2] {
        let gpu = self.on_gpu(direction).next().is_some();
        [gpu, gpu && self.beside(direction).is_some()]
    }

    /// The costs of the GPU's kernels of this direction that were measured.
    fn on_gpu(&self, direction: Direction) -> impl Iterator<Item = (GpuKernel, &StrategyCost)> {
        GpuKernel::of(direction).into_iter().filter_map(|kernel| Some((kernel, self.of(kernel.into())?)))
    }

    /// The measured kernel of this direction that takes the fewest of the nanoseconds that `ns` returns (`None`: there is none).
    pub(super) fn cheapest(&self, direction: Direction, ns: impl Fn(&StrategyCost) -> f64) -> Option<(GpuKernel, f64)> {
        self.on_gpu(direction).map(|(kernel, cost)| (kernel, ns(cost))).min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The time that every level of this direction takes in which the GPU has a part, in nanoseconds.
    pub(super) fn least_gpu_ns(&self, direction: Direction) -> f64 {
        self.cheapest(direction, |cost| cost.fixed_ns).map_or(f64::INFINITY, |(_, ns)| ns)
    }

    /// A time that no split level of this direction falls below, in a graph of `vertices` vertices (`None`: not known).
    pub(super) fn least_split_ns(&self, direction: Direction, vertices: u64) -> Option<Linear> {
        let least = Linear { constant: self.least_gpu_ns(direction) as f32, ..Linear::default() };
        self.knows(direction)[1].then_some(self.beside(direction)?.linear(vertices) + least)
    }

    /// Nanoseconds of the current level by `strategy`, with the changes before it (`None`: not measured).
    pub fn level_ns(&self, strategy: Strategy, stats: &LevelStats, probes: f64) -> Option<f64> {
        Some(self.of(strategy)?.level_ns(stats, probes) + self.change_ns(strategy, stats))
    }

    /// Nanoseconds of the changes before the level: conversion, handover. A level that moves to the GPU also pays for the handover back.
    fn change_ns(&self, strategy: Strategy, stats: &LevelStats) -> f64 {
        let was_gpu = matches!(stats.previous_placement, Some(Placement::Gpu(_)));
        let moved = match (was_gpu, strategy.is_gpu()) {
            (false, true) => self.to_gpu.ns(stats) + self.to_cpu.ns(stats),
            (true, false) => self.to_cpu.ns(stats),
            _ => 0.0,
        };
        moved + self.turn_ns(strategy.direction(), stats)
    }

    /// Nanoseconds of the conversion before a level of this direction.
    pub(super) fn turn_ns(&self, direction: Direction, stats: &LevelStats) -> f64 {
        match (stats.previous_direction, direction) {
            (Some(Direction::TopDown), Direction::BottomUp) => self.to_bottom_up.ns(stats),
            (Some(Direction::BottomUp), Direction::TopDown) => self.to_top_down.ns(stats),
            _ => 0.0,
        }
    }

    /// The costs of the CPU's strategy of this direction.
    fn on_cpu(&self, direction: Direction) -> Option<StrategyCost> {
        self.of(Strategy::on_cpu(direction)).copied()
    }

    /// The GPU's share, in thousandths, with which both devices end a level of this direction together, with the fastest kernel (`None`:
    /// not measured).
    pub(super) fn even_share(&self, direction: Direction, stats: &LevelStats, probes: f64) -> Option<u16> {
        let cpu = self.on_cpu(direction)?;
        // Both devices work until the end.
        let times = |cost: &StrategyCost| [cost.level_ns(stats, probes), cost.fixed_ns].map(|ns| ns * cost.ratio());
        let share = |gpu: &StrategyCost| {
            let ([cpu, cpu_fixed], [gpu, gpu_fixed]) = (times(&cpu), times(gpu));
            (cpu - gpu_fixed) / (cpu - cpu_fixed + gpu - gpu_fixed)
        };
        let best = self.on_gpu(direction).map(|(_, gpu)| share(gpu)).max_by(f64::total_cmp).filter(|share| share.is_finite())?;
        Some((1000.0 * best).clamp(1.0, 999.0) as u16)
    }

    /// Nanoseconds of a split level of which the GPU runs this share, in thousandths, by `kernel` (`None`: not measured).
    fn split_by_ns(&self, kernel: GpuKernel, stats: &LevelStats, probes: f64, gpu_permille: u16) -> Option<f64> {
        let share = f64::from(gpu_permille) / 1000.0;
        let (cpu, gpu) = (self.on_cpu(kernel.direction())?, self.of(kernel.into())?);
        let alone = [cpu.part_ns(stats, probes, 1.0 - share), gpu.part_ns(stats, probes, share)];
        Some(self.beside(kernel.direction())?.ns(stats) + together_ns(alone, [cpu.ratio(), gpu.ratio()]))
    }

    /// The fastest kernel for the GPU's share of a level of this direction, in thousandths, and the nanoseconds of the level split with it
    /// (`None`: not measured).
    pub(super) fn split_ns(&self, direction: Direction, stats: &LevelStats, probes: f64, gpu_permille: u16) -> Option<(GpuKernel, f64)> {
        let share = f64::from(gpu_permille) / 1000.0;
        let (kernel, _) = self.cheapest(direction, |cost| cost.ratio() * cost.part_ns(stats, probes, share))?;
        Some((kernel, self.split_by_ns(kernel, stats, probes, gpu_permille)?))
    }

    /// The time of a split level of this direction beyond its longer part (`None`: not measured).
    fn beside(&self, direction: Direction) -> Option<ChangeCost> {
        if direction == Direction::TopDown { self.top_down_split } else { self.bottom_up_split }
    }

    pub(super) fn beside_mut(&mut self, direction: Direction) -> &mut Option<ChangeCost> {
        if direction == Direction::TopDown { &mut self.top_down_split } else { &mut self.bottom_up_split }
    }

    fn splits(&self, direction: Direction) -> bool {
        self.objective == Objective::Time && self.beside(direction).is_some()
    }

    /// Nanoseconds of the current level by `plan`, with the changes before it (`None`: not measured).
    pub fn plan_ns(&self, plan: LevelPlan, stats: &LevelStats, probes: f64) -> Option<f64> {
        match (Strategy::of(plan), plan.placement) {
            (Some(strategy), _) => self.level_ns(strategy, stats, probes),
            (None, Placement::Split { gpu_permille, kernel }) => {
                let host = self.change_ns(Strategy::on_cpu(plan.direction), stats);
                Some(self.split_by_ns(kernel, stats, probes, gpu_permille)? + host)
            }
            _ => None,
        }
    }

    fn watts(&self, plan: LevelPlan) -> f64 {
        Strategy::of(plan).and_then(|strategy| self.of(strategy)).and_then(|cost| cost.watts).unwrap_or(0.0)
    }

    /// The best plan if every unvisited vertex looks at `probes` neighbours, and its cost in nanoseconds. It chooses among the strategies,
    /// and among split levels if time is minimised (the power of both devices together is not known).
    fn best(&self, runs: LevelDevice, stats: &LevelStats, probes: f64, spent: Spent) -> (LevelPlan, f64) {
        let price = |&(plan, ns): &(LevelPlan, f64)| {
            let seconds = ns / 1e9;
            let joules = || seconds * self.watts(plan);
            match self.objective {
                Objective::Time => seconds,
                Objective::Energy => joules(),
                // The product for the search up to and with this level: later levels are the same for all plans.
                Objective::Edp => (spent.joules + joules()) * (spent.seconds + seconds),
            }
        };
        let has_gpu = runs != LevelDevice::Cpu;
        let strategies = if has_gpu { &Strategy::ALL[..] } else { &Strategy::CPU };
        let kernels = GpuKernel::ALL.into_iter().filter(|kernel| has_gpu && self.splits(kernel.direction()));
        let splits = kernels.flat_map(|kernel| SHARES.map(|gpu_permille| LevelPlan::split(kernel, gpu_permille)));
        let plans = strategies.iter().map(|&strategy| strategy.plan()).chain(splits);
        let timed = plans.filter_map(|plan| Some((plan, self.plan_ns(plan, stats, probes)?)));
        timed.min_by(|a, b| price(a).total_cmp(&price(b))).unwrap_or((Strategy::Tc.plan(), f64::INFINITY))
    }

    /// How much the plan depends on the number of probes.
    fn bounds(&self, runs: LevelDevice, stats: &LevelStats, spent: Spent) -> Bounds {
        let ns = |plan, probes| self.plan_ns(plan, stats, probes).unwrap_or(0.0);
        Bounds::of(stats, |probes| self.best(runs, stats, probes, spent).0, ns)
    }

    /// Whether the number of probes decides: the best and the worst case lead to different plans, and either mistake costs more than a
    /// sample.
    pub(super) fn wants_sample(&self, runs: LevelDevice, stats: &LevelStats, spent: Spent) -> bool {
        self.form != ModelTerms::Zhang && self.bounds(runs, stats, spent).wants_sample()
    }

    /// Plans a level, and adds its predicted cost to `spent`.
    pub(super) fn plan(&self, runs: LevelDevice, stats: &LevelStats, spent: &mut Spent) -> LevelPlan {
        let probes = stats.sampled_probes.map_or_else(|| self.bounds(runs, stats, *spent).without_sample(), f64::from);
        let (plan, ns) = self.best(runs, stats, probes, *spent);
        spent.seconds += ns / 1e9;
        spent.joules += ns / 1e9 * self.watts(plan);
        plan
    }
}

impl Rule for CostModel {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Special(self).named("form")]
    }

    fn validate(&self) -> Result<(), PolicyError> {
        CostModel::validate(self).map_err(PolicyError::CostModel)
    }

    fn uses(&self, runs: LevelDevice) -> Uses {
        if !self.has_gpu() || runs == LevelDevice::Cpu {
            return Uses::CPU;
        }
        Uses { together: self.splits(Direction::TopDown) || self.splits(Direction::BottomUp), ..Uses::EITHER }
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn wants_sample(&self, stats: &LevelStats, runs: LevelDevice, memory: &History) -> bool {
        CostModel::wants_sample(self, runs, stats, memory.spent)
    }

    fn plan(&self, stats: &LevelStats, runs: LevelDevice, memory: &mut History) -> LevelPlan {
        CostModel::plan(self, runs, stats, &mut memory.spent)
    }
}

/// The form as a parameter: it selects the model that is shipped in that form.
impl Special for CostModel {
    fn text(&self) -> Option<String> {
        (self.form == ModelTerms::Zhang).then(|| "zhang".to_owned())
    }

    fn set_text(&mut self, text: &str) -> Option<()> {
        self.set_toml(&text.into()).ok()
    }

    fn toml(&self) -> Option<toml::Value> {
        toml::Value::try_from(self.form).ok()
    }

    fn set_toml(&mut self, value: &toml::Value) -> Result<(), PolicyError> {
        let bad =
            || PolicyError::BadParameters { kind: KNOWN[0].kind, wanted: "form = \"full\" or \"zhang\"".into(), given: value.to_string() };
        *self = Self::shipped(value.clone().try_into().map_err(|_| bad())?);
        Ok(())
    }
}

impl From<SampledCosts> for CostModel {
    /// The CPU's costs of `sampled`, with the time of a top-down arc from [`CostModel::shipped`].
    fn from(costs: SampledCosts) -> Self {
        const ARC_NS: f64 = 1.5;
        let tc = StrategyCost { frontier_edge_ns: ARC_NS, ..StrategyCost::default() };
        let bc = StrategyCost {
            word_ns: ARC_NS * costs.word,
            unvisited_vertex_ns: ARC_NS * costs.vertex,
            probe_ns: ARC_NS * costs.probe,
            ..StrategyCost::default()
        };
        Self { tc: Some(tc), bc: Some(bc), ..Self::default() }
    }
}

/// How much a choice depends on the number of neighbours that an unvisited vertex looks at: in the best case one, in the worst its whole
/// list.
pub(super) struct Bounds {
    /// Neighbours in the worst case.
    most: f64,
    /// Whether the two cases lead to different choices.
    is_open: bool,
    /// Extra cost of the worst case's choice in the best case, in nanoseconds.
    many_for_few_ns: f64,
    /// Extra cost of the best case's choice in the worst case, in nanoseconds.
    few_for_many_ns: f64,
}

impl Bounds {
    /// `best` returns the choice for a number of neighbours, and `ns` the cost of a choice with that number.
    pub(super) fn of<C: PartialEq + Copy>(stats: &LevelStats, best: impl Fn(f64) -> C, ns: impl Fn(C, f64) -> f64) -> Self {
        let most = (stats.unvisited_edges as f64 / stats.unvisited_vertices.max(1) as f64).max(1.0);
        let (few, many) = (best(1.0), best(most));
        if few == many {
            return Self { most, is_open: false, many_for_few_ns: 0.0, few_for_many_ns: 0.0 };
        }
        let beyond = |right, wrong, probes| ns(wrong, probes) - ns(right, probes);
        Self { most, is_open: true, many_for_few_ns: beyond(few, many, 1.0), few_for_many_ns: beyond(many, few, most) }
    }

    /// Whether the number of neighbours decides, and either mistake costs more than a sample.
    pub(super) fn wants_sample(&self) -> bool {
        self.is_open && self.many_for_few_ns > SAMPLE_NS && self.few_for_many_ns > SAMPLE_NS
    }

    /// The number of neighbours to assume without a sample: that of the case whose choice is the smaller mistake.
    pub(super) fn without_sample(&self) -> f64 {
        if self.many_for_few_ns <= self.few_for_many_ns { self.most } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::bfs::GpuKernel;

    /// 6400 vertices are 100 words.
    fn stats(frontier_edges: u64, unvisited: u64) -> LevelStats {
        LevelStats {
            level: 2,
            vertices: 6400,
            arcs: 100_000,
            frontier_vertices: 100,
            frontier_edges,
            unvisited_vertices: unvisited,
            unvisited_edges: 10 * unvisited,
            previous_direction: Some(Direction::TopDown),
            previous_placement: Some(Placement::Cpu),
            ..LevelStats::default()
        }
    }

    fn model() -> CostModel {
        let top_down = StrategyCost { fixed_ns: 100.0, frontier_vertex_ns: 5.0, frontier_edge_ns: 2.0, ..StrategyCost::default() };
        let bottom_up = StrategyCost { fixed_ns: 200.0, word_ns: 3.0, unvisited_vertex_ns: 1.0, probe_ns: 0.5, ..StrategyCost::default() };
        CostModel { tc: Some(top_down), bc: Some(bottom_up), ..CostModel::default() }
    }

    #[test]
    fn the_cheaper_strategy_is_taken() {
        let model = model();
        // TC: 100 + 500 + 2 * 1000 = 2600. BC: 200 + 300 + 1000 * (1 + 0.5 p): 2000 with one probe, 6500 with ten.
        assert_eq!(model.level_ns(Strategy::Tc, &stats(1000, 1000), 1.0), Some(2600.0));
        assert_eq!(model.level_ns(Strategy::Bc, &stats(1000, 1000), 10.0), Some(6500.0));
        assert_eq!(model.level_ns(Strategy::Bg, &stats(1000, 1000), 10.0), None);
        let spent = Spent::default();
        // At stake are 600 ns with one probe and 3900 with ten: a sample is not worth it, and the smaller mistake is TC.
        assert!(!model.wants_sample(LevelDevice::Cpu, &stats(1000, 1000), spent));
        assert_eq!(model.plan(LevelDevice::Cpu, &stats(1000, 1000), &mut Spent::default()), Strategy::Tc.plan());
        // TC 20,600, BC 15,500 to 60,500.
        assert!(model.wants_sample(LevelDevice::Cpu, &stats(10_000, 10_000), spent));
        let plan =
            |probes| model.plan(LevelDevice::Cpu, &LevelStats { sampled_probes: Some(probes), ..stats(1000, 1000) }, &mut Spent::default());
        // TC and BC are even at p = 2.2.
        assert_eq!(plan(2.1), Strategy::Bc.plan());
        assert_eq!(plan(2.3), Strategy::Tc.plan());
        // TC for 100 arcs costs 800, less than BC's best; for 4000 arcs 8600, more than its worst.
        assert!(!model.wants_sample(LevelDevice::Cpu, &stats(100, 1000), spent));
        assert!(!model.wants_sample(LevelDevice::Cpu, &stats(4000, 1000), spent));
        assert_eq!(model.plan(LevelDevice::Cpu, &stats(4000, 1000), &mut Spent::default()), Strategy::Bc.plan());
    }

    #[test]
    fn plans_include_the_cost_of_changes() {
        let change = |fixed_ns| ChangeCost { fixed_ns, ..ChangeCost::default() };
        let model = CostModel { to_bottom_up: ChangeCost { word_ns: 7.0, ..change(0.0) }, to_top_down: change(900.0), ..model() };
        // BC now costs 2000 + 700 against TC's 2600; and TC 3500 against BC's 2000 where the level before was bottom-up.
        let mut spent = Spent::default();
        let stats = |edges, unvisited| LevelStats { sampled_probes: Some(1.0), ..stats(edges, unvisited) };
        assert_eq!(model.plan(LevelDevice::Cpu, &stats(1000, 1000), &mut spent), Strategy::Tc.plan());
        let before = LevelStats { previous_direction: Some(Direction::BottomUp), ..stats(1000, 1000) };
        assert_eq!(model.plan(LevelDevice::Cpu, &before, &mut spent), Strategy::Bc.plan());
        assert!((spent.seconds - 4600e-9).abs() < 1e-15);
        // A GPU that takes 1000 ns for the level and 600 ns for each handover.
        let gpu = StrategyCost { fixed_ns: 1000.0, ..StrategyCost::default() };
        let model = CostModel { tg: Some(gpu), to_gpu: change(600.0), to_cpu: change(600.0), ..model };
        let on_gpu = LevelDevice::Gpu(GpuKernel::Bg);
        assert_eq!(model.level_ns(Strategy::Tg, &stats(1000, 1000), 1.0), Some(2200.0));
        assert_eq!(model.plan(on_gpu, &stats(1000, 1000), &mut spent), Strategy::Tg.plan());
        assert_eq!(model.plan(LevelDevice::Cpu, &stats(1000, 1000), &mut spent), Strategy::Tc.plan());
        // 700 arcs: TC 2000 < 2200. From the GPU TC costs 2600 and TG 1000.
        assert_eq!(model.plan(on_gpu, &stats(700, 1000), &mut spent), Strategy::Tc.plan());
        let there = LevelStats { previous_placement: Some(Placement::Gpu(GpuKernel::Tg)), ..stats(700, 1000) };
        assert_eq!(model.plan(on_gpu, &there, &mut spent), Strategy::Tg.plan());
    }

    #[test]
    fn both_devices_run_a_level_if_that_is_fastest() {
        let (beside, gpu) = (ChangeCost { fixed_ns: 100.0, ..ChangeCost::default() }, model().tc);
        let model = CostModel { tg: gpu, top_down_split: Some(beside), ..model() };
        let plan = |edges, runs| model.plan(runs, &LevelStats { sampled_probes: Some(9.0), ..stats(edges, 6000) }, &mut Spent::default());
        let half = LevelPlan::split(GpuKernel::Tg, 500);
        // Either device takes 100 + 500 + 2000 ns alone, and both 100 + 100 + 1250. A small level takes 100 + 50 + 20 alone, and 200 + 35
        // split.
        assert_eq!(plan(1000, LevelDevice::Gpu(GpuKernel::Bg)), half);
        assert_eq!(plan(1000, LevelDevice::Cpu), Strategy::Tc.plan());
        let small = LevelStats { frontier_vertices: 10, ..stats(10, 6000) };
        assert_eq!(model.plan(LevelDevice::Gpu(GpuKernel::Bg), &small, &mut Spent::default()), Strategy::Tc.plan());
        // A GPU that takes a quarter of the CPU's time for the same work gets three quarters.
        let fast = CostModel { tg: gpu.map(|cost| StrategyCost { frontier_edge_ns: 0.5, frontier_vertex_ns: 1.0, ..cost }), ..model };
        let far = ChangeCost { fixed_ns: 1e6, ..ChangeCost::default() };
        let fast = CostModel { to_gpu: far, ..fast };
        let most = LevelPlan::split(GpuKernel::Tg, 750);
        assert_eq!(fast.plan(LevelDevice::Gpu(GpuKernel::Bg), &stats(4000, 6000), &mut Spent::default()), most);
        // TGM has a higher fixed cost, and a tenth of the cost of an arc: 4000 arcs split by halves take 4450 with TG and 5750 with TGM.
        let masks =
            CostModel { tgm: gpu.map(|cost| StrategyCost { fixed_ns: 5000.0, frontier_edge_ns: 0.2, ..cost }), to_gpu: far, ..model };
        let by_masks = |edges| masks.plan(LevelDevice::Gpu(GpuKernel::Bg), &stats(edges, 60_000), &mut Spent::default());
        assert_eq!((by_masks(4000), by_masks(40_000)), (half, LevelPlan::split(GpuKernel::Tgm, 750)));
        assert!(
            fast.uses(LevelDevice::Gpu(GpuKernel::Bg)).together
                && !CostModel { objective: Objective::Energy, ..fast }.uses(LevelDevice::Gpu(GpuKernel::Bg)).together
        );
    }

    #[test]
    fn co_run_ratios_move_the_share_and_the_time_of_a_split_level() {
        // The part that ends first takes its ratio longer, and the other one only while the first one works: of 100 and 40 ns alone, at
        // ratios of 1.5 and 2, the second ends after 80, in which the first has done 80 / 1.5.
        assert_eq!(together_ns([100.0, 40.0], [1.0, 1.0]), 100.0);
        assert!((together_ns([100.0, 40.0], [1.5, 2.0]) - (100.0 + 80.0 * (1.0 - 1.0 / 1.5))).abs() < 1e-9);
        assert_eq!(together_ns([40.0, 0.0], [1.5, 2.0]), 40.0);
        let beside = ChangeCost { fixed_ns: 100.0, ..ChangeCost::default() };
        let arcs = StrategyCost { frontier_edge_ns: 1.0, ..StrategyCost::default() };
        let with = |cpu, gpu| CostModel {
            tc: Some(StrategyCost { corun: cpu, ..arcs }),
            tg: Some(StrategyCost { corun: gpu, ..arcs }),
            top_down_split: Some(beside),
            ..model()
        };
        let level = stats(8000, 60_000);
        let share = |model: CostModel| model.even_share(Direction::TopDown, &level, 1.0);
        let ns = |model: CostModel, share| model.plan_ns(LevelPlan::split(GpuKernel::Tg, share), &level, 1.0).unwrap();
        // Both devices take 8000 ns for the level. A GPU that takes thrice as long while the CPU works gets a quarter of it.
        assert_eq!((share(with(None, None)), share(with(Some(1.0), Some(3.0)))), (Some(500), Some(250)));
        assert_eq!((ns(with(None, None), 500), ns(with(Some(1.0), Some(3.0)), 250)), (4100.0, 6100.0));
        // At half, the CPU ends after 4000 ns, and the GPU has done a third of its part.
        assert!((ns(with(Some(1.0), Some(3.0)), 500) - (100.0 + 4000.0 + 4000.0 * (2.0 / 3.0))).abs() < 1e-9);
        // Where both slow each other down to half, a split gains nothing.
        let plan = |model: CostModel| model.plan(LevelDevice::Gpu(GpuKernel::Bg), &level, &mut Spent::default());
        assert_eq!((plan(with(None, None)), plan(with(Some(2.0), Some(2.0)))), (LevelPlan::split(GpuKernel::Tg, 500), Strategy::Tc.plan()));
    }

    #[test]
    fn the_form_of_the_paper_compares_frontier_and_unvisited_arcs() {
        // 500 million arcs a second top-down, 2000 million bottom-up with alpha 0.1: t = 2 e_frontier, t = 0.05 e_left.
        let cost =
            |frontier_edge_ns, unvisited_edge_ns| Some(StrategyCost { frontier_edge_ns, unvisited_edge_ns, ..StrategyCost::default() });
        let model = CostModel { form: ModelTerms::Zhang, tc: cost(2.0, 0.0), bc: cost(0.0, 0.05), ..CostModel::default() };
        // e_left = 10,000: 500 ns, the time of 250 arcs of the frontier.
        let mut spent = Spent::default();
        assert_eq!(model.plan(LevelDevice::Cpu, &stats(249, 1000), &mut spent), Strategy::Tc.plan());
        assert_eq!(model.plan(LevelDevice::Cpu, &stats(251, 1000), &mut spent), Strategy::Bc.plan());
        assert!(!model.wants_sample(LevelDevice::Cpu, &stats(1000, 1000), spent));
    }

    #[test]
    fn joules_and_seconds_lead_to_different_plans() {
        let mut model = model();
        model.tc = model.tc.map(|cost| StrategyCost { watts: Some(2.0), ..cost });
        model.bc = model.bc.map(|cost| StrategyCost { watts: Some(3.0), ..cost });
        // TC 2600 ns and 5200 nJ, BC 2000 ns and 6000 nJ.
        let level = LevelStats { sampled_probes: Some(1.0), ..stats(1000, 1000) };
        let plan = |objective, mut spent| CostModel { objective, ..model }.plan(LevelDevice::Cpu, &level, &mut spent);
        assert_eq!(plan(Objective::Time, Spent::default()), Strategy::Bc.plan());
        assert_eq!(plan(Objective::Energy, Spent::default()), Strategy::Tc.plan());
        // 13.52 against 12 at first; after 0.1 us and 20 uJ 25.2 * 2.7 = 68 against 26 * 2.1 = 55; after 20 us and 0.1 uJ 5.3 * 22.6 = 120
        // against 6.1 * 22 = 134.
        assert_eq!(plan(Objective::Edp, Spent::default()), Strategy::Bc.plan());
        assert_eq!(plan(Objective::Edp, Spent { seconds: 0.1e-6, joules: 20e-6 }), Strategy::Bc.plan());
        assert_eq!(plan(Objective::Edp, Spent { seconds: 20e-6, joules: 0.1e-6 }), Strategy::Tc.plan());
    }

    #[test]
    fn invalid_models_are_refused_with_their_reason() {
        assert_eq!(model().validate(), Ok(()));
        let with = |cost: StrategyCost| CostModel { tc: Some(cost), ..model() };
        let wrong = |model: CostModel| model.validate().unwrap_err().to_string();
        assert_eq!(
            wrong(with(StrategyCost { frontier_edge_ns: f64::NAN, ..StrategyCost::default() })),
            "tc.frontier_edge_ns is NaN; it must be a finite number, 0 or more"
        );
        assert_eq!(
            wrong(CostModel { to_gpu: ChangeCost { word_ns: -1.0, ..ChangeCost::default() }, ..model() }),
            "to_gpu.word_ns is -1; it must be a finite number, 0 or more"
        );
        assert_eq!(
            wrong(with(StrategyCost { corun: Some(0.05), ..StrategyCost::default() })),
            "tc.corun is 0.05; it must be a finite number, 0.1 or more"
        );
        assert_eq!(wrong(CostModel { bc: None, ..model() }), "the model has no strategy that searches bottom-up on the CPU (bc)");
        assert_eq!(
            wrong(CostModel { objective: Objective::Energy, ..model() }),
            "objective energy needs the power of tc: tc.watts is missing"
        );
    }
}
