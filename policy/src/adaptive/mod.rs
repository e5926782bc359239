//! Adaptive: at each level the CPU, the GPU, or both, whichever costs least (after Remis 2016, sections 3.1 and 3.2).
//!
//! The model has the costs of this machine: of levels by each strategy, of split levels beyond their longer part, of changes. A bound,
//! which a board file or a measurement gives, takes the place of a comparison of costs. Each direction has its own band of bounds, in the
//! unit in which its work is counted: arcs that leave the frontier top-down, unvisited vertices bottom-up. From `gpu_from` on the GPU runs
//! a level, from `split_from` on both, with a share that adapts until both end together, and from `up_to` on the CPU again. (The thesis
//! compares the size of the frontier with one threshold.) Where neither a bound nor a cost is known, the CPU runs the level.
//!
//! A handover costs extra, and how much depends on the sizes of this graph's arrays. So a search changes device only if the gain is larger
//! than that cost. The gain is that of the current level, plus the larger of two: the expected gain of the levels to come (the rest of the
//! search is estimated from the growth of the frontier so far), and the gain that the levels since the last change missed. If the levels to
//! come are expected to lose there, as where the search soon returns, the loss counts as well. Until the frontier shrinks, no expected gain
//! counts for the way back, because there are few small levels at the beginning. If a whole search should be faster on the GPU from its
//! beginning, it begins there.
//!
//! The direction is that of the cheaper of two candidates: a top-down and a bottom-up level, each at its placement. If the device was not
//! measured, its costs follow from the bounds.
//!
//! Two other names choose among fewer placements: `selective` splits no level (section 3.1), `concurrent` runs none on the GPU alone (3.2,
//! where the share is fixed).

mod ahead;

use serde::{Deserialize, Serialize};

use super::{
    Band, ChangeCost, CostModel, NEVER, Policy, PolicyError, StrategyCost,
    cost_model::{Bounds, expected_probes},
    history::{History, Learned},
    rule::{Known, LevelDevice, Parameter, Rule, Value},
};
use socbfs::bfs::{Ahead, Direction, GpuKernel, LevelPlan, LevelStats, Placement, SampledCosts, Strategy, Surely, Uses};

/// In the order of [`Among`].
pub(super) const KNOWN: &[Known] = &[
    known(
        "adaptive",
        "NAME=VALUE,...",
        "CPU, GPU or both at each level, by bands of work: top_down_gpu_from, _split_from, _up_to, _gpu_permille, bottom_up_...",
    ),
    known("selective", "EDGES,VERTICES", "the better device of each level, by measured thresholds"),
    known("concurrent", "EDGES,VERTICES,PERMILLE", "large levels are split between CPU and GPU; the ratio adapts"),
];

const fn known(kind: &'static str, parameters: &'static str, summary: &'static str) -> Known {
    Known { kind, parameters, summary, from: "after Remis 2016", default }
}

fn default(kind: &str) -> Result<Policy, PolicyError> {
    let all = [Adaptive::default(), Adaptive::default().selective(), Adaptive::default().concurrent()];
    let named = all.into_iter().find(|adaptive| adaptive.known().kind == kind);
    named.map(|adaptive| Policy::Adaptive(Box::new(adaptive))).ok_or_else(|| PolicyError::Unknown(kind.to_owned()))
}

/// The placements among which the policy chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Among {
    #[default]
    All,
    /// No split levels.
    OneDevice,
    /// No levels on the GPU alone.
    CpuAndBoth,
}

/// The work from which `concurrent` splits levels if neither a bound nor a cost is known: such levels take a fraction of a millisecond or
/// more.
const SPLIT_FROM: u64 = 256 << 10;

/// The GPU's share of the first split level if none is given, in thousandths.
const EVEN_SHARE: u16 = 500;

/// Bounds of the GPU's share, so that neither side is ever left without a measurement.
const LEAST: u16 = 10;
const MOST: u16 = 990;

/// The placement of a level according to its band.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Cpu,
    Gpu,
    Both,
}

impl Side {
    /// The device that holds the state at such a level: the CPU if the level is split.
    fn holder(self) -> usize {
        if self == Self::Gpu { GPU } else { CPU }
    }
}

impl Band {
    /// The CPU runs every level.
    pub const CPU: Self = Self { gpu_from: Some(NEVER), split_from: Some(NEVER), up_to: Some(NEVER), gpu_permille: None };

    /// The GPU runs levels from this much work on, and the CPU all others.
    pub const fn gpu_from(work: u64) -> Self {
        Self { gpu_from: Some(work), ..Self::CPU }
    }

    /// Both run levels from this much work on, the GPU at first with this share in thousandths, and the CPU all others.
    pub const fn split_from(work: u64, gpu_permille: u16) -> Self {
        Self { split_from: Some(work), gpu_permille: Some(gpu_permille), ..Self::CPU }
    }

    /// The values given here, and those of `other` in place of absent ones.
    pub fn or(self, other: Self) -> Self {
        Self {
            gpu_from: self.gpu_from.or(other.gpu_from),
            split_from: self.split_from.or(other.split_from),
            up_to: self.up_to.or(other.up_to),
            gpu_permille: self.gpu_permille.or(other.gpu_permille),
        }
    }

    /// The side that the given bounds name.
    fn side(&self, work: u64) -> Side {
        let reached = |from: Option<u64>| from.is_some_and(|from| from < NEVER && work >= from);
        match (reached(self.up_to), reached(self.split_from), reached(self.gpu_from)) {
            (true, ..) | (false, false, false) => Side::Cpu,
            (false, true, _) => Side::Both,
            (false, false, true) => Side::Gpu,
        }
    }

    /// Work between a level and the nearest bound of the band.
    fn distance(&self, work: u64) -> u64 {
        [self.gpu_from, self.split_from, self.up_to].into_iter().flatten().map(|bound| bound.abs_diff(work)).min().unwrap_or(0)
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
    /// The band of top-down levels, by arcs that leave the frontier.
    pub top_down: Band,
    /// The band of bottom-up levels, by vertices not yet visited.
    pub bottom_up: Band,
}

impl Bands {
    /// The CPU runs every level.
    pub const CPU: Self = Self { top_down: Band::CPU, bottom_up: Band::CPU };

    /// The bands that `of` returns.
    pub fn by(of: impl Fn(Direction) -> Band) -> Self {
        Self { top_down: of(Direction::TopDown), bottom_up: of(Direction::BottomUp) }
    }

    /// The band of `direction`.
    pub fn of(&self, direction: Direction) -> &Band {
        match direction {
            Direction::TopDown => &self.top_down,
            Direction::BottomUp => &self.bottom_up,
        }
    }

    fn of_mut(&mut self, direction: Direction) -> &mut Band {
        match direction {
            Direction::TopDown => &mut self.top_down,
            Direction::BottomUp => &mut self.bottom_up,
        }
    }

    /// The values given here, and those of `other` in place of absent ones.
    pub fn or(self, other: Self) -> Self {
        Self::by(|direction| self.of(direction).or(*other.of(direction)))
    }
}

/// A level's work in the unit of its direction: arcs that leave the frontier, or vertices not yet visited.
pub fn work_of(stats: &LevelStats, direction: Direction) -> u64 {
    match direction {
        Direction::TopDown => stats.frontier_edges,
        Direction::BottomUp => stats.unvisited_vertices,
    }
}

/// The bounds and the costs by which levels are placed.
#[derive(Debug, Clone, PartialEq)]
pub struct Adaptive {
    /// Bounds that take the place of costs.
    pub bands: Bands,
    /// The costs of levels. `to_gpu` and `to_cpu` are handovers at the sizes of this graph: with 0 a search changes device exactly at the
    /// bounds.
    pub model: CostModel,
    among: Among,
    /// Costs of the GPU are not measured: they follow from the bounds.
    is_implied: bool,
}

impl Default for Adaptive {
    /// No bounds, and the costs of `sampled`.
    fn default() -> Self {
        Self::of(Bands::default())
    }
}

/// A level of one direction at its placement.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    side: Side,
    placement: Placement,
    /// Its time in nanoseconds, with the changes before it, and with the rest of the search from the device that then holds the state.
    ns: f64,
    /// The time that it would gain at the placement of its band, if it is placed elsewhere; else 0.
    gain_ns: f64,
}

/// The current level.
#[derive(Clone, Copy)]
struct Level<'a> {
    stats: &'a LevelStats,
    memory: &'a History,
    /// The device that holds the state before the level.
    holder: usize,
    /// Whether the CPU runs the level whatever its direction.
    stays: bool,
    rest: Rest,
}

/// The device that holds the state, as an index into [`Rest`].
const CPU: usize = 0;
const GPU: usize = 1;

/// The expected cost of the later levels in nanoseconds, if the CPU or the GPU holds the state then.
type Rest = [f64; 2];

/// Largest number of later levels that are estimated.
const AHEAD: usize = 24;

/// The first level from which the growth of the frontier predicts its further growth; before, the degrees do.
const TELLING: u32 = 3;

impl Adaptive {
    /// The policy with these bounds, the CPU's costs of `sampled`, and handovers that cost nothing.
    pub fn of(bands: Bands) -> Self {
        Self::new(bands, SampledCosts::default().into())
    }

    /// The policy with these bounds and these costs.
    pub fn new(bands: Bands, model: CostModel) -> Self {
        Self { bands, model, among: Among::All, is_implied: false }
    }

    /// The policy `selective`: without split levels.
    #[must_use]
    pub fn selective(mut self) -> Self {
        self.bands = Bands::by(|direction| Band { split_from: Some(NEVER), gpu_permille: None, ..*self.bands.of(direction) });
        Self { among: Among::OneDevice, ..self }
    }

    /// The policy `concurrent`: without levels on the GPU alone.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.bands = Bands::by(|direction| Band { gpu_from: Some(NEVER), ..*self.bands.of(direction) });
        Self { among: Among::CpuAndBoth, ..self }
    }

    /// Whether bounds or costs place every level. (`concurrent` has defaults for bounds.)
    pub fn is_complete(&self) -> bool {
        let is_bounded = |band: &Band| band.gpu_from.is_some() && band.split_from.is_some();
        let Bands { top_down, bottom_up } = &self.bands;
        self.model.has_gpu() || self.among == Among::CpuAndBoth || (is_bounded(top_down) && is_bounded(bottom_up))
    }

    /// Fills in the values given here, and those of `other` in place of absent ones.
    pub fn fill(&mut self, other: Bands) {
        if self.among == Among::CpuAndBoth {
            // Its one share is that of both directions.
            self.bands.bottom_up.gpu_permille = self.bands.bottom_up.gpu_permille.or(self.bands.top_down.gpu_permille);
        }
        self.bands = self.bands.or(other);
    }

    /// Nanoseconds of the level on the CPU.
    fn cpu_ns(&self, direction: Direction, stats: &LevelStats, probes: f64) -> f64 {
        self.model.of(Strategy::on_cpu(direction)).map_or(0.0, |cost| cost.level_ns(stats, probes))
    }

    /// The cheapest kernel of this direction, and the nanoseconds of the level by it.
    fn gpu_ns(&self, direction: Direction, stats: &LevelStats, probes: f64) -> (GpuKernel, f64) {
        let cheapest = self.model.cheapest(direction, |cost| cost.level_ns(stats, probes));
        cheapest.unwrap_or((GpuKernel::of(direction)[0], f64::INFINITY))
    }

    /// A level of this direction on one side: its placement there, and its nanoseconds without the changes before it.
    fn own(&self, side: Side, direction: Direction, level: &Level<'_>, probes: f64) -> (Placement, f64) {
        match side {
            Side::Cpu => (Placement::Cpu, self.cpu_ns(direction, level.stats, probes)),
            Side::Gpu => {
                let (kernel, ns) = self.gpu_ns(direction, level.stats, probes);
                (Placement::Gpu(kernel), ns)
            }
            Side::Both => {
                let gpu_permille = self.share(direction, level.stats, probes, level.memory);
                let split = self.model.split_ns(direction, level.stats, probes, gpu_permille);
                let (kernel, ns) = split.unwrap_or((GpuKernel::of(direction)[0], f64::INFINITY));
                (Placement::Split { gpu_permille, kernel }, ns)
            }
        }
    }

    /// Gives a device or split levels that were not measured the costs that follow from the bounds. At a bound, two placements take equally
    /// long; for each unit of work beyond it, the second one takes half as long. `runs` names the kernels.
    fn imply_costs(&mut self, runs: LevelDevice) {
        for direction in [Direction::TopDown, Direction::BottomUp] {
            let [knows_gpu, knows_both] = self.model.knows(direction);
            let Some(&cpu) = self.model.of(Strategy::on_cpu(direction)) else { continue };
            let Band { gpu_from, split_from, .. } = self.bands.of_mut(direction);
            let half = |cost: StrategyCost, from: u64| {
                let unit = cost.frontier_edge_ns + cost.unvisited_vertex_ns + cost.probe_ns;
                StrategyCost { fixed_ns: 0.5 * (cost.fixed_ns + unit * from as f64), ..cost.times(0.5) }
            };
            if !knows_gpu {
                let from = *gpu_from.get_or_insert(NEVER);
                *self.model.of_mut(runs.kernel(direction).into()) = Some(if from < NEVER { half(cpu, from) } else { cpu });
                self.is_implied = true;
            }
            if !knows_both {
                let from = *split_from.get_or_insert(NEVER);
                let fixed_ns = half(cpu, from).fixed_ns;
                *self.model.beside_mut(direction) = (from < NEVER).then_some(ChangeCost { fixed_ns, ..ChangeCost::default() });
            }
        }
    }

    /// The side that the bounds give to a level, and whether the GPU and both are open: no bound decides about them, and their costs are
    /// known.
    fn bounded(&self, direction: Direction, stats: &LevelStats) -> (Side, [bool; 2]) {
        let (band, work) = (self.bands.of(direction), work_of(stats, direction));
        let side = band.side(work);
        let is_over = side == Side::Both || band.up_to.is_some_and(|up_to| work >= up_to);
        let is_open = |bound: Option<u64>, place: usize| bound.is_none() && !is_over && self.model.knows(direction)[place];
        (side, [is_open(band.gpu_from, 0), is_open(band.split_from, 1)])
    }

    /// The side of a level: that of its band, or the cheapest one of those that are open.
    fn zone(&self, direction: Direction, level: &Level<'_>, probes: f64) -> Side {
        let (side, open) = self.bounded(direction, level.stats);
        if open == [false; 2] {
            return side;
        }
        let timed = |side| (side, self.own(side, direction, level, probes).1);
        let others = [Side::Gpu, Side::Both].into_iter().zip(open).filter(|(_, is_open)| *is_open);
        others.map(|(other, _)| timed(other)).fold(timed(side), |best, other| if other.1 < best.1 { other } else { best }).0
    }

    /// The device that holds the state before this level.
    fn holder(&self, stats: &LevelStats) -> usize {
        let is_gpu = match stats.previous_placement {
            None => self.begins_on_gpu(stats.vertices, stats.arcs, stats.hub_share),
            Some(placement) => matches!(placement, Placement::Gpu(_)),
        };
        usize::from(is_gpu)
    }

    /// The placement of a level of this direction on one side, and its nanoseconds with the changes before it and the rest of the search.
    fn on(&self, side: Side, direction: Direction, level: &Level<'_>, probes: f64) -> (Placement, f64) {
        let Level { stats, holder, rest, .. } = *level;
        let (placement, ns) = self.own(side, direction, level, probes);
        let way_ns = if side.holder() == holder { 0.0 } else { self.way_ns(side, stats) };
        (placement, ns + self.model.turn_ns(direction, stats) + way_ns + rest[side.holder()])
    }

    /// A level of this direction where the band places it, unless that needs a change of device that does not pay.
    fn candidate(&self, direction: Direction, level: &Level<'_>, probes: f64) -> Candidate {
        let Level { stats, memory, holder, stays, rest } = *level;
        let zone = if stays { Side::Cpu } else { self.zone(direction, level, probes) };
        let (placement, ns) = self.on(zone, direction, level, probes);
        if zone.holder() == holder {
            return Candidate { side: zone, placement, ns, gain_ns: 0.0 };
        }
        let here = if holder == GPU { Side::Gpu } else { Side::Cpu };
        let (other, other_ns) = self.on(here, direction, level, probes);
        let way_ns = self.way_ns(zone, stats);
        let expected_ns = rest[holder] - rest[zone.holder()];
        // If the costs contradict the band, the band counts, since its bounds may be more reliable.
        let (gain_ns, loss_ns) = match other_ns - ns + way_ns - expected_ns {
            gain_ns if gain_ns > 0.0 => (gain_ns, expected_ns.min(0.0)),
            _ => {
                let work = work_of(stats, direction);
                let distance = self.bands.of(direction).distance(work).min(work);
                (0.5 * (other_ns - rest[holder]) * distance as f64 / work.max(1) as f64, 0.0)
            }
        };
        // The rest of the search is a guess. Its gain counts for the way to the GPU, and for the way back only if the frontier shrinks.
        let counts = zone == Side::Gpu || stats.frontier_vertices < stats.previous_frontier_vertices;
        let later_ns = if counts { expected_ns.max(memory.missed_ns) } else { memory.missed_ns };
        if gain_ns + later_ns + loss_ns >= way_ns {
            Candidate { side: zone, placement, ns: ns.min(other_ns), gain_ns: 0.0 }
        } else {
            Candidate { side: here, placement: other, ns: other_ns, gain_ns }
        }
    }

    /// Nanoseconds of the handover of the state to this side.
    fn way_ns(&self, to: Side, stats: &LevelStats) -> f64 {
        if to == Side::Gpu { self.model.to_gpu.ns(stats) } else { self.model.to_cpu.ns(stats) }
    }

    /// The expected cost of the rest of the search, or 0 where it can't matter: if handovers are free, or bounds keep the level on its
    /// device in both directions.
    fn rest(&self, stats: &LevelStats) -> Rest {
        let holder = self.holder(stats);
        let calls = |direction| {
            let (side, open) = self.bounded(direction, stats);
            open != [false; 2] || (side == Side::Gpu) != (holder == GPU)
        };
        let is_free = self.way_ns(Side::Cpu, stats) + self.way_ns(Side::Gpu, stats) == 0.0;
        if is_free || !(calls(Direction::TopDown) || calls(Direction::BottomUp)) { [0.0; 2] } else { self.rest_ns(stats) }
    }

    /// The expected cost of the levels after this one, with the cheapest plans. The frontier is assumed to grow as it did before, a little
    /// less at each level (as in a mesh), and by no more than the vertices left.
    fn rest_ns(&self, stats: &LevelStats) -> Rest {
        let mut levels = [[0.0; 4]; AHEAD];
        let mut count = 0;
        let mut next = *stats;
        let degree = |edges: u64, vertices: u64| edges as f64 / vertices.max(1) as f64;
        let grown = |previous: u64| stats.frontier_vertices as f64 / previous.max(1) as f64;
        let mut growth = if stats.level < TELLING { f64::INFINITY } else { grown(stats.previous_frontier_vertices) };
        // The factor by which the mean degree of neighbours exceeds the mean degree of all vertices, as if degrees were log-normally
        // distributed.
        let spread = 5.0 * (0.5 - f64::from(stats.hub_share)).max(0.0);
        let bias = (spread * spread).exp() + stats.vertices as f64 / stats.arcs.max(1) as f64;
        while count < AHEAD {
            let level = f64::from(next.level.max(1));
            if growth > 1.0 && growth.is_finite() {
                growth = 1.0 + (growth - 1.0) * level / (level + 1.0);
            }
            let left = next.unvisited_vertices as f64;
            let reach = next.frontier_vertices as f64 * growth.min(degree(next.frontier_edges, next.frontier_vertices));
            let mean = degree(next.unvisited_edges, next.unvisited_vertices);
            let hit = |bias: f64| if left > 0.0 { 1.0 - (-bias * reach / left).exp() } else { 0.0 };
            let is_early = next.unvisited_vertices * 10 > next.vertices * 9;
            let found = (left * hit(1.0)) as u64;
            let edges = (next.unvisited_edges as f64 * hit(if is_early { bias } else { 1.0 })) as u64;
            next = LevelStats {
                level: next.level + 1,
                previous_frontier_vertices: next.frontier_vertices,
                frontier_vertices: found,
                frontier_edges: edges,
                unvisited_vertices: next.unvisited_vertices.saturating_sub(found),
                unvisited_edges: next.unvisited_edges.saturating_sub(edges),
                ..next
            };
            if found == 0 {
                break;
            }
            let probes = expected_probes(next.arcs, edges, mean);
            let least = |ns: &dyn Fn(Direction) -> f64| ns(Direction::TopDown).min(ns(Direction::BottomUp));
            let cpu_ns = least(&|direction| self.cpu_ns(direction, &next, probes));
            let gpu_ns = least(&|direction| self.gpu_ns(direction, &next, probes).1);
            levels[count] = [cpu_ns, gpu_ns, self.way_ns(Side::Cpu, &next), self.way_ns(Side::Gpu, &next)];
            count += 1;
        }
        levels[..count].iter().rev().fold([0.0; 2], |rest, &[cpu_ns, gpu_ns, to_cpu_ns, to_gpu_ns]| {
            let (on_cpu, on_gpu) = (cpu_ns + rest[CPU], gpu_ns + rest[GPU]);
            [on_cpu.min(to_gpu_ns + on_gpu), on_gpu.min(to_cpu_ns + on_cpu)]
        })
    }

    /// Whether searches of a graph of this size begin on the GPU, which saves the handover to it. They do if a search of few levels is
    /// expected to take less time from there. Graphs of low degree have long searches of small levels, which begin on the CPU. All searches
    /// begin on the CPU if the GPU was not measured in both directions.
    pub(super) fn begins_on_gpu(&self, vertices: u64, arcs: u64, hub_share: f32) -> bool {
        /// Mean degree from which searches have few levels.
        const FEW_LEVELS_FROM_DEGREE: u64 = 5;
        let never = |band: &Band| band.gpu_from.is_some_and(|from| from >= NEVER);
        if arcs < FEW_LEVELS_FROM_DEGREE * vertices || (never(&self.bands.top_down) && never(&self.bands.bottom_up)) {
            return false;
        }
        let degree = arcs / vertices.max(1);
        let root = LevelStats {
            vertices,
            arcs,
            frontier_vertices: 1,
            frontier_edges: degree,
            unvisited_vertices: vertices.saturating_sub(1),
            unvisited_edges: arcs.saturating_sub(degree),
            hub_share,
            ..LevelStats::default()
        };
        let is_measured = |direction| !self.is_implied && self.model.knows(direction)[0];
        if !(is_measured(Direction::TopDown) && is_measured(Direction::BottomUp)) {
            return false;
        }
        let (_, gpu_ns) = self.gpu_ns(Direction::TopDown, &root, 1.0);
        let rest = self.rest_ns(&root);
        gpu_ns + rest[GPU] < self.cpu_ns(Direction::TopDown, &root, 1.0) + rest[CPU]
    }

    /// The current level, with what does not depend on samples.
    fn level<'a>(&self, stats: &'a LevelStats, memory: &'a History) -> Level<'a> {
        let holder = self.holder(stats);
        let stays = holder == CPU && self.is_on_cpu(stats);
        Level { stats, memory, holder, stays, rest: if stays { [0.0; 2] } else { self.rest(stats) } }
    }

    fn cheaper(&self, level: &Level<'_>, probes: f64) -> (Direction, Candidate) {
        let [top_down, bottom_up] = [Direction::TopDown, Direction::BottomUp].map(|direction| self.candidate(direction, level, probes));
        if bottom_up.ns < top_down.ns { (Direction::BottomUp, bottom_up) } else { (Direction::TopDown, top_down) }
    }

    /// How much the plan depends on a sample.
    fn bounds(&self, level: &Level<'_>) -> Bounds {
        let best = |probes| {
            let (direction, candidate) = self.cheaper(level, probes);
            (direction, candidate.side)
        };
        Bounds::of(level.stats, best, |(direction, side), probes| self.on(side, direction, level, probes).1)
    }

    /// Whether the CPU, if it has the state, runs the level whatever its direction: by its bounds, or since it ends before a device would
    /// have begun. The rest of the search then costs the same for every plan. Most levels of most searches are like that, and some take
    /// less time than the comparison of all placements.
    fn is_on_cpu(&self, stats: &LevelStats) -> bool {
        let list = stats.unvisited_edges as f64 / stats.unvisited_vertices.max(1) as f64;
        let stays = |direction| {
            let (side, open) = self.bounded(direction, stats);
            side == Side::Cpu && (open == [false; 2] || self.cpu_ns(direction, stats, list.max(1.0)) <= self.model.least_gpu_ns(direction))
        };
        stays(Direction::TopDown) && stays(Direction::BottomUp)
    }

    /// The GPU's share of a split level, in thousandths: as learned in this search, else as given by the band, else by the costs.
    fn share(&self, direction: Direction, stats: &LevelStats, probes: f64, memory: &History) -> u16 {
        let by_costs = self.model.even_share(direction, stats, probes);
        match (memory.shares[direction as usize], self.bands.of(direction).gpu_permille, by_costs) {
            // The share by the costs, corrected by how far off they were at the levels before.
            (Some(Learned { off: Some(off), .. }), _, Some(share)) => {
                let odds = odds(share) * off;
                ((1000.0 * odds / (1.0 + odds)) as u16).clamp(LEAST, MOST)
            }
            (Some(learned), ..) => learned.gpu_permille,
            (None, Some(given), _) => given,
            (None, None, Some(share)) => share,
            (None, None, None) => EVEN_SHARE,
        }
    }

    /// Learns the share from the level before. The new share is half way between the old one and the share with which both devices would
    /// have ended together, since no two levels are alike.
    fn adapt(&self, stats: &LevelStats, memory: &mut History) {
        let (Some(Placement::Split { gpu_permille, .. }), Some(direction)) = (stats.previous_placement, stats.previous_direction) else {
            return;
        };
        // A device without work shows nothing of its speed.
        if stats.previous_cpu_ns == 0 || stats.previous_gpu_ns == 0 || gpu_permille == 0 || gpu_permille >= 1000 {
            return;
        }
        let gpu_speed = f64::from(gpu_permille) / stats.previous_gpu_ns as f64;
        let cpu_speed = f64::from(1000 - gpu_permille.min(1000)) / stats.previous_cpu_ns as f64;
        let even = 1000.0 * gpu_speed / (gpu_speed + cpu_speed).max(f64::MIN_POSITIVE);
        let before = memory.shares[direction as usize].and_then(|learned| learned.off).unwrap_or(1.0);
        let off = memory.expected.map(|expected| (before * odds(even.clamp(LEAST.into(), MOST.into()) as u16) / odds(expected)).sqrt());
        let planned = f64::from(memory.planned.unwrap_or(gpu_permille));
        let gpu_permille = (((even + planned) / 2.0) as u16).clamp(LEAST, MOST);
        memory.shares[direction as usize] = Some(Learned { gpu_permille, off });
    }
}

/// The ratio of the GPU's part to the CPU's.
fn odds(gpu_permille: u16) -> f64 {
    f64::from(gpu_permille) / f64::from(1000 - gpu_permille.min(999))
}

impl Rule for Adaptive {
    fn known(&self) -> &'static Known {
        &KNOWN[self.among as usize]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let Bands { top_down, bottom_up } = &mut self.bands;
        match self.among {
            Among::All => top_down.parameters(Direction::TopDown).into_iter().chain(bottom_up.parameters(Direction::BottomUp)).collect(),
            Among::OneDevice => vec![
                Value::Amount(&mut top_down.gpu_from).named("top_down_gpu_from"),
                Value::Amount(&mut bottom_up.gpu_from).named("bottom_up_gpu_from"),
            ],
            Among::CpuAndBoth => vec![
                Value::Amount(&mut top_down.split_from).named("top_down_split_from"),
                Value::Amount(&mut bottom_up.split_from).named("bottom_up_split_from"),
                Value::Share(&mut top_down.gpu_permille).named("gpu_permille"),
            ],
        }
    }

    fn ready(&mut self, runs: LevelDevice) {
        self.fill(Bands::default());
        for direction in [Direction::TopDown, Direction::BottomUp] {
            let [_, knows_both] = self.model.knows(direction);
            let split_from = &mut self.bands.of_mut(direction).split_from;
            if self.among == Among::CpuAndBoth && !knows_both {
                split_from.get_or_insert(SPLIT_FROM);
            }
        }
        self.imply_costs(runs);
    }

    /// A bound that is not given yet may still come from a board or a measurement, unless the costs of a device are known.
    fn uses(&self, _runs: LevelDevice) -> Uses {
        let is_open = !self.model.has_gpu() || self.among == Among::CpuAndBoth;
        let may = |bound: fn(&Band) -> Option<u64>, place: usize| {
            [Direction::TopDown, Direction::BottomUp].into_iter().any(|direction| {
                bound(self.bands.of(direction)).map_or(is_open || self.model.knows(direction)[place], |bound| bound < NEVER)
            })
        };
        Uses { alone: may(|band| band.gpu_from, 0), at_home_on_gpu: false, together: may(|band| band.split_from, 1) }
    }

    fn may_sample(&self) -> bool {
        true
    }

    fn wants_sample(&self, stats: &LevelStats, _runs: LevelDevice, memory: &History) -> bool {
        self.bounds(&self.level(stats, memory)).wants_sample()
    }

    fn surely(&self, stats: &LevelStats, _plan: LevelPlan, _runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        Adaptive::surely(self, stats)
    }

    fn plan(&self, stats: &LevelStats, _runs: LevelDevice, memory: &mut History) -> LevelPlan {
        self.adapt(stats, memory);
        let level = self.level(stats, memory);
        let probes = stats.sampled_probes.map_or_else(|| self.bounds(&level).without_sample(), f64::from);
        let (direction, candidate) = self.cheaper(&level, probes);
        let moved = stats.previous_placement.is_some() && candidate.side.holder() != level.holder;
        memory.missed_ns = if moved { 0.0 } else { memory.missed_ns + candidate.gain_ns };
        memory.expected = match candidate.side {
            Side::Both => self.model.even_share(direction, stats, probes),
            Side::Cpu | Side::Gpu => None,
        };
        memory.planned = match candidate.placement {
            Placement::Split { gpu_permille, .. } => Some(gpu_permille),
            _ => None,
        };
        LevelPlan { direction, placement: candidate.placement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PolicyPlanner;
    use socbfs::bfs::Planner as _;

    const BAND: Band = Band { gpu_from: Some(1000), split_from: Some(5000), up_to: Some(90_000), gpu_permille: Some(300) };
    const RUNS: LevelDevice = LevelDevice::Gpu(GpuKernel::Bgc);

    /// A level with this work that is clearly cheaper in `direction`. After it nothing is left to be found.
    fn level(direction: Direction, work: u64, previous: Option<Placement>) -> LevelStats {
        let stats = LevelStats {
            level: 5,
            frontier_vertices: 10,
            previous_frontier_vertices: 10,
            previous_direction: Some(direction),
            previous_placement: previous,
            ..LevelStats::default()
        };
        match direction {
            // A bitmap of a million words.
            Direction::TopDown => LevelStats { vertices: 64 << 20, arcs: 64 << 20, frontier_edges: work, ..stats },
            Direction::BottomUp => LevelStats {
                vertices: 64,
                arcs: 1 << 40,
                frontier_edges: 1 << 40,
                unvisited_vertices: work,
                unvisited_edges: work,
                ..stats
            },
        }
    }

    fn bands(direction: Direction, band: Band) -> Bands {
        match direction {
            Direction::TopDown => Bands { top_down: band, ..Bands::CPU },
            Direction::BottomUp => Bands { bottom_up: band, ..Bands::CPU },
        }
    }

    fn ready(mut adaptive: Adaptive) -> Adaptive {
        adaptive.ready(RUNS);
        adaptive
    }

    fn fixed(fixed_ns: f64) -> ChangeCost {
        ChangeCost { fixed_ns, ..ChangeCost::default() }
    }

    #[test]
    fn each_bound_is_the_smallest_work_of_its_zone() {
        for (direction, kernel) in [(Direction::TopDown, GpuKernel::Tg), (Direction::BottomUp, GpuKernel::Bgc)] {
            let (gpu, both) = (Placement::Gpu(kernel), Placement::Split { gpu_permille: 300, kernel });
            let placement = |band: Band, work: u64| {
                let plan = ready(Adaptive::of(bands(direction, band))).plan(
                    &level(direction, work, Some(Placement::Cpu)),
                    RUNS,
                    &mut History::default(),
                );
                assert_eq!(plan.direction, direction, "{work}");
                plan.placement
            };
            for (work, wanted) in [
                (1, Placement::Cpu),
                (999, Placement::Cpu),
                (1000, gpu),
                (4999, gpu),
                (5000, both),
                (89_999, both),
                (90_000, Placement::Cpu),
            ] {
                assert_eq!(placement(BAND, work), wanted, "{direction:?} {work}");
            }
            // A bound that is absent or `NEVER` is never reached.
            for never in [None, Some(NEVER)] {
                assert_eq!(placement(Band { gpu_from: never, ..BAND }, 4999), Placement::Cpu);
                assert_eq!(placement(Band { split_from: never, ..BAND }, 5000), gpu);
                assert_eq!(placement(Band { up_to: never, ..BAND }, 90_000), both);
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4000))]

        /// On the CPU, the short way to a decision leads to the same decision as the long one.
        #[test]
        fn the_short_way_on_the_cpu_decides_like_the_long_one(adaptive in ahead::tests::adaptive(), stats in ahead::tests::stats()) {
            let adaptive = ready(adaptive);
            let mut memory = History::default();
            let level = Level { stays: false, rest: adaptive.rest(&stats), ..adaptive.level(&stats, &memory) };
            let bounds = adaptive.bounds(&level);
            let probes = stats.sampled_probes.map_or_else(|| bounds.without_sample(), f64::from);
            let (direction, candidate) = adaptive.cheaper(&level, probes);
            let wants = bounds.wants_sample();
            proptest::prop_assert_eq!(adaptive.wants_sample(&stats, RUNS, &memory), wants);
            let plan = LevelPlan { direction, placement: candidate.placement };
            proptest::prop_assert_eq!(adaptive.plan(&stats, RUNS, &mut memory), plan);
        }
    }

    /// The placements of `levels` levels of the same work, one after another.
    fn places(adaptive: &Adaptive, work: u64, begin: Placement, levels: usize) -> String {
        let (mut memory, mut previous) = (History::default(), begin);
        let mut place = || {
            previous = adaptive.plan(&level(Direction::TopDown, work, Some(previous)), RUNS, &mut memory).placement;
            match previous {
                Placement::Cpu => 'c',
                Placement::Gpu(_) => 'g',
                _ => '*',
            }
        };
        (0..levels).map(|_| place()).collect()
    }

    #[test]
    fn the_device_changes_once_missed_gains_reach_the_cost_of_changing() {
        let mut adaptive = ready(Adaptive::of(bands(Direction::TopDown, Band::gpu_from(1000))));
        (adaptive.model.to_gpu, adaptive.model.to_cpu) = (fixed(400.0), fixed(300.0));
        let gpu = Placement::Gpu(GpuKernel::Tg);
        // 1200 arcs take the CPU 1800 ns, and the GPU half of that for each arc beyond 1000: a gain of 150 ns. Two levels miss 300 ns, and
        // the third one exceeds the 400 ns.
        assert_eq!(places(&adaptive, 1200, Placement::Cpu, 5), "ccggg");
        // On the way back 900 arcs gain 75 ns on the CPU, and the fourth level reaches 300 ns.
        assert_eq!(places(&adaptive, 900, gpu, 6), "gggccc");
        // One level that gains enough at once: 4000 arcs take 6000 ns on the CPU and 3750 ns on the GPU.
        assert_eq!(places(&adaptive, 4000, Placement::Cpu, 1), "g");
        (adaptive.model.to_gpu, adaptive.model.to_cpu) = (fixed(0.0), fixed(0.0));
        assert_eq!(places(&adaptive, 1000, Placement::Cpu, 2) + &places(&adaptive, 999, gpu, 2), "ggcc");
    }

    #[test]
    fn expected_later_work_counts_towards_a_change_to_the_gpu() {
        let mut adaptive = ready(Adaptive::of(bands(Direction::TopDown, Band::gpu_from(1000))));
        (adaptive.model.to_gpu, adaptive.model.to_cpu) = (fixed(100_000.0), fixed(100_000.0));
        let begun = LevelStats {
            level: 2,
            vertices: 1 << 20,
            arcs: 16 << 20,
            frontier_vertices: 300,
            frontier_edges: 5000,
            unvisited_vertices: (1 << 20) - 320,
            unvisited_edges: (16 << 20) - 5200,
            previous_frontier_vertices: 20,
            // Degrees are similar.
            hub_share: 0.5,
            previous_direction: Some(Direction::TopDown),
            previous_placement: Some(Placement::Cpu),
            ..LevelStats::default()
        };
        let place = |stats: &LevelStats| adaptive.plan(stats, RUNS, &mut History::default()).placement;
        assert_eq!(place(&begun), Placement::Gpu(GpuKernel::Tg));
        // The same level where nothing is left to be found.
        let ended = LevelStats { unvisited_vertices: 0, unvisited_edges: 0, vertices: 64 << 20, ..begun };
        assert_eq!(place(&ended), Placement::Cpu);
    }

    #[test]
    fn a_level_that_the_rest_of_the_search_brings_back_gains_both_handovers() {
        let top_down = |fixed_ns, frontier_edge_ns| Some(StrategyCost { fixed_ns, frontier_edge_ns, ..StrategyCost::default() });
        let bottom_up = |fixed_ns| Some(StrategyCost { fixed_ns, unvisited_vertex_ns: 1.0, ..StrategyCost::default() });
        let model = CostModel {
            tc: top_down(0.0, 1.5),
            tg: top_down(3000.0, 0.5),
            bc: bottom_up(0.0),
            bg: bottom_up(90_000.0),
            to_gpu: fixed(8000.0),
            to_cpu: fixed(8000.0),
            ..CostModel::default()
        };
        let adaptive = Adaptive::new(Bands::default(), model);
        // Nearly all vertices are found by this level, so the few of the next one are searched for on the CPU.
        let place = |frontier_edges| {
            let stats = LevelStats {
                level: 1,
                vertices: 40_000,
                arcs: 40_000_000,
                frontier_vertices: 100,
                frontier_edges,
                unvisited_vertices: 39_000,
                unvisited_edges: 39_000_000,
                previous_frontier_vertices: 1,
                previous_direction: Some(Direction::TopDown),
                previous_placement: Some(Placement::Cpu),
                ..LevelStats::default()
            };
            adaptive.plan(&stats, RUNS, &mut History::default()).placement
        };
        // The device gains a nanosecond for each arc beyond 3000.
        assert_eq!((place(15_000), place(25_000)), (Placement::Cpu, Placement::Gpu(GpuKernel::Tg)));
    }

    #[test]
    fn costs_decide_where_no_bound_does() {
        let top_down = |fixed_ns, frontier_edge_ns| Some(StrategyCost { fixed_ns, frontier_edge_ns, ..StrategyCost::default() });
        let model = CostModel { tc: top_down(0.0, 1.5), tg: top_down(3000.0, 0.5), ..SampledCosts::default().into() };
        let calibrated = Adaptive::new(Bands::default(), model);
        // Both devices are even at 3000 arcs.
        assert_eq!(places(&calibrated, 2900, Placement::Cpu, 1) + &places(&calibrated, 3100, Placement::Cpu, 1), "cg");
        for (band, wanted) in [(Band::gpu_from(1000), "cg"), (Band::split_from(1000, 500), "c*")] {
            let bounded = ready(Adaptive::new(bands(Direction::TopDown, band), calibrated.model));
            assert_eq!(places(&bounded, 999, Placement::Cpu, 1) + &places(&bounded, 1000, Placement::Cpu, 1), wanted);
        }
    }

    #[test]
    fn the_kernel_of_a_split_level_is_the_cheaper_one() {
        let top_down = |fixed_ns, frontier_edge_ns| Some(StrategyCost { fixed_ns, frontier_edge_ns, ..StrategyCost::default() });
        let model = CostModel {
            tg: top_down(10.0, 1.0),
            tgm: top_down(2000.0, 0.5),
            top_down_split: Some(fixed(10.0)),
            ..SampledCosts::default().into()
        };
        let adaptive = Adaptive { model, ..Adaptive::of(bands(Direction::TopDown, Band::split_from(0, 500))) };
        let kernel = |work| adaptive.plan(&level(Direction::TopDown, work, Some(Placement::Cpu)), RUNS, &mut History::default()).kernel();
        assert_eq!((kernel(3000), kernel(30_000)), (Some(GpuKernel::Tg), Some(GpuKernel::Tgm)));
    }

    /// Lists and words are not cut, so a share that runs may be far from the one that was planned.
    #[test]
    fn a_share_is_learned_from_what_the_devices_had() {
        let split = Band::split_from(0, 500);
        let adaptive = ready(Adaptive::of(Bands { top_down: split, bottom_up: split }));
        let learned = |had: u16| {
            let mut memory = History::default();
            let plan = adaptive.plan(&level(Direction::TopDown, 7000, Some(Placement::Cpu)), RUNS, &mut memory);
            let Placement::Split { gpu_permille: planned, kernel } = plan.placement else { panic!("{plan:?}") };
            let ran = Placement::Split { gpu_permille: had, kernel };
            let stats = LevelStats {
                previous_direction: Some(Direction::TopDown),
                previous_cpu_ns: 90_000,
                previous_gpu_ns: 10_000,
                ..level(Direction::TopDown, 7000, Some(ran))
            };
            adaptive.adapt(&stats, &mut memory);
            (planned, memory.shares[Direction::TopDown as usize].map(|learned| learned.gpu_permille))
        };
        // A tenth of the work took a tenth of the time: both devices are as fast.
        assert_eq!(learned(100), (500, Some(500)));
        assert_eq!(learned(500), (500, Some(700)));
        // A device without work, such as one that was to get a part of a single list, shows nothing.
        assert_eq!((learned(0).1, learned(1000).1), (None, None));
    }

    /// The shares that one search has learned do not affect the next: Graph500 forbids that.
    #[test]
    fn shares_start_anew_in_each_search() {
        let split = Band::split_from(0, 300);
        for policy in
            [Policy::Adaptive(Box::new(Adaptive::of(Bands { top_down: split, bottom_up: split }))), "concurrent:0,0,300".parse().unwrap()]
        {
            let shares = |planner: &mut PolicyPlanner| -> Vec<Placement> {
                let mut previous = Placement::Cpu;
                planner.begin();
                let levels = [Direction::TopDown, Direction::TopDown, Direction::BottomUp, Direction::BottomUp, Direction::TopDown];
                let mut plan = |direction| {
                    // The GPU takes a third of the CPU's time.
                    let (previous_cpu_ns, previous_gpu_ns) = if previous == Placement::Cpu { (0, 0) } else { (30_000, 10_000) };
                    previous =
                        planner.plan(&LevelStats { previous_cpu_ns, previous_gpu_ns, ..level(direction, 7000, Some(previous)) }).placement;
                    previous
                };
                levels.map(&mut plan).to_vec()
            };
            let fresh = || PolicyPlanner::new(policy.clone(), RUNS);
            let wanted = shares(&mut fresh());
            assert_eq!(wanted[0], LevelPlan::split(GpuKernel::Tg, 300).placement);
            assert!(wanted[1] != wanted[0] && wanted[4] != wanted[0], "it learns: {wanted:?}");
            let mut one = fresh();
            for search in 0..3 {
                assert_eq!(shares(&mut one), wanted, "{policy}, search {search}");
            }
        }
    }
}
