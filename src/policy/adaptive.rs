//! Adaptive: at each level the CPU, the GPU, or both, by bands of the level's work (after Remis 2016, sections 3.1 and 3.2).
//!
//! The thesis compares the size of the frontier with one threshold. Here each direction has a band of its own, in the unit in which its work
//! is counted: arcs that leave the frontier top-down, unvisited vertices bottom-up. Below `gpu_from` the CPU runs a level; from there on the
//! GPU; from `split_from` on both, with a share that adapts until both end together; from `up_to` on the CPU again. Each bound is optional:
//! what a board, a calibration or a measurement does not say is never reached.
//!
//! A band says where two placements are even. Changing hands costs on top, and how much depends on the sizes of this graph's arrays. So a
//! search changes device only where the level at hand, together with what earlier levels missed on the other device since the last change,
//! (and, on the way to the GPU, with what the next level should gain if the frontier goes on growing as it did) gains more than the way
//! costs. Where a search of few levels is faster on the GPU from its beginning, it begins there.
//!
//! The direction is that of the cheaper of the two candidates, a top-down and a bottom-up level each at its placement, by the model: the
//! measured costs of this machine, or where a device was not measured, those that follow from the band.

use serde::{Deserialize, Serialize};

use super::{
    CostModel, Policy, SampledCosts,
    cost_model::Bounds,
    rule::{Known, Memory, Parameter, Rule, Runs, Uses, Value},
};
use crate::{
    bfs::{Direction, GpuKernel, LevelPlan, LevelStats, Placement, Strategy},
    board::{Band, NEVER},
};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "adaptive",
    parameters: "NAME=VALUE,...",
    summary: "CPU, GPU or both at each level, by bands of work: top_down_gpu_from, _split_from, _up_to, _gpu_permille, bottom_up_...",
    default: || Ok(Policy::Adaptive(Box::default())),
}];

/// The GPU's share of the first split level where nobody says it, in thousandths.
const EVEN_SHARE: u16 = 500;

/// Shares stay inside this range, so that neither side is ever left without a measurement.
const LEAST: u16 = 10;
const MOST: u16 = 990;

/// What a band says of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Zone {
    Cpu,
    Gpu,
    Both,
}

impl Band {
    /// Always the CPU.
    pub const CPU: Self = Self { gpu_from: Some(NEVER), split_from: Some(NEVER), up_to: Some(NEVER), gpu_permille: None };

    /// The GPU from this much work on, and nothing else.
    pub const fn gpu_from(work: u64) -> Self {
        Self { gpu_from: Some(work), ..Self::CPU }
    }

    /// Both from this much work on, the GPU at first with this share in thousandths, and nothing else.
    pub const fn split_from(work: u64, gpu_permille: u16) -> Self {
        Self { split_from: Some(work), gpu_permille: Some(gpu_permille), ..Self::CPU }
    }

    /// What is said here, and elsewhere in `other`.
    pub fn or(self, other: Self) -> Self {
        Self {
            gpu_from: self.gpu_from.or(other.gpu_from),
            split_from: self.split_from.or(other.split_from),
            up_to: self.up_to.or(other.up_to),
            gpu_permille: self.gpu_permille.or(other.gpu_permille),
        }
    }

    /// Whether it is said from where on the GPU and both run levels.
    pub fn is_complete(&self) -> bool {
        self.gpu_from.is_some() && self.split_from.is_some()
    }

    pub(super) fn zone(&self, work: u64) -> Zone {
        let reached = |from: Option<u64>| from.is_some_and(|from| from < NEVER && work >= from);
        match (reached(self.up_to), reached(self.split_from), reached(self.gpu_from)) {
            (true, ..) | (false, false, false) => Zone::Cpu,
            (false, true, _) => Zone::Both,
            (false, false, true) => Zone::Gpu,
        }
    }

    /// Work between a level and the nearer bound of its zone.
    fn distance(&self, work: u64) -> u64 {
        [self.gpu_from, self.split_from, self.up_to].into_iter().flatten().map(|bound| bound.abs_diff(work)).min().unwrap_or(NEVER)
    }

    fn names(direction: Direction) -> [&'static str; 4] {
        match direction {
            Direction::TopDown => ["top_down_gpu_from", "top_down_split_from", "top_down_up_to", "top_down_gpu_permille"],
            Direction::BottomUp => ["bottom_up_gpu_from", "bottom_up_split_from", "bottom_up_up_to", "bottom_up_gpu_permille"],
        }
    }

    /// The four values, as parameters of a policy.
    pub(super) fn parameters(&mut self, direction: Direction) -> [Parameter<'_>; 4] {
        let [gpu_from, split_from, up_to, share] = Self::names(direction);
        [
            Value::Amount(&mut self.gpu_from).named(gpu_from),
            Value::Amount(&mut self.split_from).named(split_from),
            Value::Amount(&mut self.up_to).named(up_to),
            Value::Share(&mut self.gpu_permille).named(share),
        ]
    }
}

/// The bands of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bands {
    /// By arcs that leave the frontier.
    pub top_down: Band,
    /// By vertices not yet visited.
    pub bottom_up: Band,
}

impl Bands {
    /// Always the CPU.
    pub const CPU: Self = Self { top_down: Band::CPU, bottom_up: Band::CPU };

    /// That of `direction`.
    pub fn of(&self, direction: Direction) -> &Band {
        match direction {
            Direction::TopDown => &self.top_down,
            Direction::BottomUp => &self.bottom_up,
        }
    }

    /// What is said here, and elsewhere in `other`.
    pub fn or(self, other: Self) -> Self {
        Self { top_down: self.top_down.or(other.top_down), bottom_up: self.bottom_up.or(other.bottom_up) }
    }

    /// Whether both are.
    pub fn is_complete(&self) -> bool {
        self.top_down.is_complete() && self.bottom_up.is_complete()
    }

    fn any(&self, bound: impl Fn(&Band) -> Option<u64>) -> bool {
        [self.top_down, self.bottom_up].iter().any(|band| bound(band).is_none_or(|bound| bound < NEVER))
    }
}

/// A level's work in the unit of its direction: arcs that leave the frontier, or vertices not yet visited.
pub(super) fn work(stats: &LevelStats, direction: Direction) -> u64 {
    match direction {
        Direction::TopDown => stats.frontier_edges,
        Direction::BottomUp => stats.unvisited_vertices,
    }
}

/// The bands, and what levels and changes cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Adaptive {
    /// Where levels run.
    pub bands: Bands,
    /// What they cost. `to_gpu` and `to_cpu` are the hand-over at the sizes of this graph: 0 changes hands exactly at the bands.
    pub model: CostModel,
}

impl Default for Adaptive {
    /// Nothing is said of the bands, and of costs what `sampled` knows.
    fn default() -> Self {
        Self { bands: Bands::default(), model: SampledCosts::default().into() }
    }
}

/// A level of one direction at its placement.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    placement: Placement,
    /// With the changes before it.
    ns: f64,
    /// [`Memory::missed_ns`] after it.
    missed_ns: f64,
}

impl Adaptive {
    /// These bands, with changes of hands that cost nothing.
    pub fn of(bands: Bands) -> Self {
        Self { bands, ..Self::default() }
    }

    /// What it asks of devices.
    pub(super) fn uses(&self) -> Uses {
        Uses { alone: self.bands.any(|band| band.gpu_from), at_home_on_gpu: false, together: self.bands.any(|band| band.split_from) }
    }

    /// The level on the CPU.
    fn cpu_ns(&self, direction: Direction, stats: &LevelStats, probes: f64) -> f64 {
        let strategy = if direction == Direction::TopDown { Strategy::Tc } else { Strategy::Bc };
        self.model.of(strategy).map_or(0.0, |cost| cost.level_ns(stats, probes))
    }

    /// The cheapest kernel of the direction that was measured, and the level by it.
    fn measured_gpu_ns(&self, direction: Direction, stats: &LevelStats, probes: f64) -> Option<(GpuKernel, f64)> {
        let kernels = GpuKernel::ALL.into_iter().filter(|kernel| kernel.direction() == direction);
        let costs = kernels.filter_map(|kernel| Some((kernel, self.model.of(kernel.into())?.level_ns(stats, probes))));
        costs.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The level on the GPU; where that was not measured, as the band has it: as long as on the CPU at the bound, and half as long for
    /// each unit of work beyond it.
    fn gpu_ns(&self, direction: Direction, stats: &LevelStats, probes: f64, runs: Runs) -> (GpuKernel, f64) {
        if let Some(measured) = self.measured_gpu_ns(direction, stats, probes) {
            return measured;
        }
        let kernel = match runs.on_gpu().placement(direction) {
            Placement::Gpu(kernel) => kernel,
            _ => GpuKernel::Bg,
        };
        let cpu_ns = self.cpu_ns(direction, stats, probes);
        (kernel, beyond(cpu_ns, work(stats, direction), self.bands.of(direction).gpu_from))
    }

    /// The level split, where the GPU has this share. Not measured it is as long as on one device at the bound, and half as long for each
    /// unit of work beyond it.
    fn split_ns(&self, direction: Direction, stats: &LevelStats, probes: f64, runs: Runs, gpu_permille: u16) -> f64 {
        if let Some(ns) = self.model.split_ns(direction, stats, probes, gpu_permille) {
            return ns;
        }
        let band = self.bands.of(direction);
        let alone = match (Band { split_from: None, ..*band }).zone(work(stats, direction)) {
            Zone::Gpu => self.gpu_ns(direction, stats, probes, runs).1,
            Zone::Cpu | Zone::Both => self.cpu_ns(direction, stats, probes),
        };
        beyond(alone, work(stats, direction), band.split_from)
    }

    /// A level of this direction where the band has it, unless changing hands is too dear.
    fn candidate(&self, direction: Direction, stats: &LevelStats, probes: f64, runs: Runs, memory: &Memory) -> Candidate {
        let band = self.bands.of(direction);
        let work = work(stats, direction);
        let zone = band.zone(work);
        let on_gpu = match stats.previous_placement {
            None => self.begins_on_gpu(stats.vertices, stats.arcs),
            Some(placement) => matches!(placement, Placement::Gpu(_)),
        };
        let turn_ns = self.model.turn_ns(direction, stats);
        let on_cpu = || (Placement::Cpu, self.cpu_ns(direction, stats, probes));
        let alone_on_gpu = || {
            let (kernel, ns) = self.gpu_ns(direction, stats, probes, runs);
            (Placement::Gpu(kernel), ns)
        };
        let (placement, ns) = match zone {
            Zone::Cpu => on_cpu(),
            Zone::Gpu => alone_on_gpu(),
            Zone::Both => {
                let given = memory.shares[direction as usize].or(band.gpu_permille);
                let gpu_permille = given.unwrap_or_else(|| self.model.best_share(direction, stats, probes).unwrap_or(EVEN_SHARE));
                (Placement::Split { gpu_permille }, self.split_ns(direction, stats, probes, runs, gpu_permille))
            }
        };
        // Nobody is asked to go where nobody ever goes.
        if !on_gpu && zone != Zone::Gpu && !self.bands.any(|band| band.gpu_from.or(Some(NEVER))) {
            return Candidate { placement, ns: ns + turn_ns, missed_ns: 0.0 };
        }
        let moves = (zone == Zone::Gpu) != on_gpu;
        let (other, other_ns) = if on_gpu == moves { alone_on_gpu() } else { on_cpu() };
        if !moves {
            let missed_ns = (memory.missed_ns - (other_ns - ns).max(0.0)).max(0.0);
            return Candidate { placement, ns: ns + turn_ns, missed_ns };
        }
        // Where the costs contradict the band, which may come from a better place, the band counts.
        let bound = Some(work.saturating_sub(band.distance(work)));
        let gain_ns = if other_ns > ns { other_ns - ns } else { other_ns - beyond(other_ns, work, bound) };
        let way_ns = if on_gpu { self.model.to_cpu.ns(stats) } else { self.model.to_gpu.ns(stats) };
        let next_ns = if on_gpu { 0.0 } else { self.next_gain_ns(stats, probes) };
        if gain_ns + next_ns + memory.missed_ns >= way_ns {
            Candidate { placement, ns: ns + turn_ns + (way_ns - memory.missed_ns - next_ns).max(0.0), missed_ns: 0.0 }
        } else {
            Candidate { placement: other, ns: other_ns + turn_ns, missed_ns: memory.missed_ns + gain_ns }
        }
    }

    /// What the GPU would gain at the next level, if the frontier goes on growing (or shrinking) as it did; 0 where the GPU was not measured.
    fn next_gain_ns(&self, stats: &LevelStats, probes: f64) -> f64 {
        let growth = stats.frontier_vertices as f64 / stats.previous_frontier_vertices.max(1) as f64;
        let scaled = |value: u64, most: u64| ((value as f64 * growth) as u64).min(most);
        let next = LevelStats {
            frontier_vertices: scaled(stats.frontier_vertices, stats.unvisited_vertices),
            frontier_edges: scaled(stats.frontier_edges, stats.unvisited_edges),
            unvisited_vertices: stats.unvisited_vertices - scaled(stats.frontier_vertices, stats.unvisited_vertices),
            unvisited_edges: stats.unvisited_edges - scaled(stats.frontier_edges, stats.unvisited_edges),
            ..*stats
        };
        let least = |ns: &dyn Fn(Direction) -> Option<f64>| match (ns(Direction::TopDown), ns(Direction::BottomUp)) {
            (Some(top_down), Some(bottom_up)) => Some(top_down.min(bottom_up)),
            _ => None,
        };
        let cpu_ns = least(&|direction| Some(self.cpu_ns(direction, &next, probes)));
        let gpu_ns = least(&|direction| Some(self.measured_gpu_ns(direction, &next, probes)?.1));
        cpu_ns.zip(gpu_ns).map_or(0.0, |(cpu, gpu)| (cpu - gpu).max(0.0))
    }

    /// Whether searches of a graph of this size begin on the GPU, which saves the way there: where a search of a few large levels and some
    /// small ones takes less time on the GPU from the beginning than with the small levels on the CPU. Graphs of low degree have long
    /// searches of small levels, and begin on the CPU; so does everything where the GPU was not measured in both directions.
    pub(super) fn begins_on_gpu(&self, vertices: u64, arcs: u64) -> bool {
        /// Mean degree from which searches have few levels.
        const FEW_LEVELS_FROM_DEGREE: u64 = 5;
        /// Small levels of a search, at either end.
        const SMALL: f64 = 4.0;
        let never = |band: &Band| band.gpu_from.is_none_or(|from| from >= NEVER);
        if arcs < FEW_LEVELS_FROM_DEGREE * vertices || (never(&self.bands.top_down) && never(&self.bands.bottom_up)) {
            return false;
        }
        let level = |frontier: u64, unvisited: u64| LevelStats {
            vertices,
            arcs,
            frontier_vertices: frontier,
            frontier_edges: frontier * (arcs / vertices.max(1)),
            unvisited_vertices: unvisited,
            unvisited_edges: unvisited * (arcs / vertices.max(1)),
            ..LevelStats::default()
        };
        let small = level(1, vertices);
        let (first, second, third) =
            (level(vertices / 20, vertices), level(vertices / 3, vertices / 10 * 9), level(vertices / 3, vertices / 5));
        let cpu = |direction, stats: &LevelStats| Some(self.cpu_ns(direction, stats, 2.0));
        let gpu = |direction, stats: &LevelStats| Some(self.measured_gpu_ns(direction, stats, 2.0)?.1);
        let large = |ns: &dyn Fn(Direction, &LevelStats) -> Option<f64>| {
            Some(ns(Direction::TopDown, &first)? + ns(Direction::BottomUp, &second)? + ns(Direction::BottomUp, &third)?)
        };
        let (Some(on_cpu), Some(on_gpu)) = (large(&cpu), large(&gpu)) else { return false };
        let (Some(small_cpu), Some(small_gpu)) = (cpu(Direction::TopDown, &small), gpu(Direction::TopDown, &small)) else { return false };
        SMALL * small_gpu + on_gpu < SMALL * small_cpu + on_cpu.min(self.model.to_gpu.ns(&small) + on_gpu)
    }

    fn candidate_in(&self, direction: Direction, stats: &LevelStats, probes: f64, runs: Runs, memory: &Memory) -> f64 {
        self.candidate(direction, stats, probes, runs, memory).ns
    }

    fn cheaper(&self, stats: &LevelStats, probes: f64, runs: Runs, memory: &Memory) -> Direction {
        let ns = |direction| self.candidate_in(direction, stats, probes, runs, memory);
        if ns(Direction::BottomUp) < ns(Direction::TopDown) { Direction::BottomUp } else { Direction::TopDown }
    }

    /// What is known without a sample.
    fn bounds(&self, stats: &LevelStats, runs: Runs, memory: &Memory) -> Bounds {
        Bounds::of(
            stats,
            |probes| self.cheaper(stats, probes, runs, memory),
            |direction, probes| self.candidate_in(direction, stats, probes, runs, memory),
        )
    }

    /// Whether a sample would change the plan.
    pub(super) fn wants_sample(&self, stats: &LevelStats, runs: Runs, memory: &Memory) -> bool {
        self.bounds(stats, runs, memory).wants_sample()
    }

    /// Decides.
    pub(super) fn plan(&self, stats: &LevelStats, runs: Runs, memory: &mut Memory) -> LevelPlan {
        self.adapt(stats, memory);
        let probes = stats.sampled_probes.map_or_else(|| self.bounds(stats, runs, memory).without_sample(), f64::from);
        let direction = self.cheaper(stats, probes, runs, memory);
        let candidate = self.candidate(direction, stats, probes, runs, memory);
        memory.missed_ns = candidate.missed_ns;
        LevelPlan { direction, placement: candidate.placement }
    }

    /// Learns the share from the level before: the next one is that with which both would have ended together, half way there, since no
    /// two levels are alike.
    fn adapt(&self, stats: &LevelStats, memory: &mut Memory) {
        let (Some(Placement::Split { gpu_permille }), Some(direction)) = (stats.previous_placement, stats.previous_direction) else {
            return;
        };
        if stats.previous_cpu_ns == 0 || stats.previous_gpu_ns == 0 {
            return;
        }
        let gpu_speed = f64::from(gpu_permille) / stats.previous_gpu_ns as f64;
        let cpu_speed = f64::from(1000 - gpu_permille.min(1000)) / stats.previous_cpu_ns as f64;
        let even = 1000.0 * gpu_speed / (gpu_speed + cpu_speed).max(f64::MIN_POSITIVE);
        memory.shares[direction as usize] = Some((((even + f64::from(gpu_permille)) / 2.0) as u16).clamp(LEAST, MOST));
    }
}

/// A level that takes `ns` on one device, on another that is even with it at `bound` and takes half as long for each unit of work beyond.
fn beyond(ns: f64, work: u64, bound: Option<u64>) -> f64 {
    let bound = bound.unwrap_or(NEVER);
    if work == 0 { ns } else { ns - 0.5 * ns * (work as f64 - bound as f64) / work as f64 }
}

impl Rule for Adaptive {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let Bands { top_down, bottom_up } = &mut self.bands;
        top_down.parameters(Direction::TopDown).into_iter().chain(bottom_up.parameters(Direction::BottomUp)).collect()
    }

    fn uses(&self, _runs: Runs) -> Uses {
        Adaptive::uses(self)
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn wants_sample(&self, stats: &LevelStats, runs: Runs, memory: &Memory) -> bool {
        Adaptive::wants_sample(self, stats, runs, memory)
    }

    fn plan(&self, stats: &LevelStats, runs: Runs, memory: &mut Memory) -> LevelPlan {
        Adaptive::plan(self, stats, runs, memory)
    }
}
