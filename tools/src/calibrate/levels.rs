//! The measured cost of every strategy at every level of a search.
//!
//! The levels of a search from one root are the same sets of vertices, whichever strategy finds them, so strategies can be compared level
//! by level. Searches follow fixed plans (see [`Replay`]): first all levels by the same strategy, then two strategies in alternation, so
//! that every strategy runs after every other one at every level. The cheapest path through the table is the per-level oracle with which
//! policies are compared.

use crate::record::{GIVEN_UP, LevelTable, LevelTimes, SHARES, STRATEGIES, SplitParts};
use std::time::{Duration, Instant};

use socbfs::{
    Run,
    bfs::{Direction, GpuKernel, LevelPlan, LevelRecord, LevelStats, Placement, Strategy},
    graph::Vertex,
    search::{Search, SearchError},
    stats::Summary,
};
use socbfs_boards::board::StrategyWatts;
use socbfs_policy::{LevelDevice, Policy, Replay};

/// A strategy is measured after others only if it comes within this factor of the fastest one at some level that matters. No good policy
/// changes to any other strategy.
const CONTENDS: f64 = 2.0;

/// A strategy is given up only if that saves this much in each search. Levels that cost less are measured, so that short searches have
/// whole tables.
const WORTH: Duration = Duration::from_millis(20);

/// Levels of the first search that tries a strategy. Searches of fewer levels try it at all of them at once.
const FIRST_TRIED: usize = 16;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// Number of searches by each sequence of plans; the first quartile of their times counts.
    pub turns: usize,
    /// After this time, a sequence of plans that was measured once is not measured again.
    pub patience: Duration,
    /// After this time on a graph, spread evenly over its roots, a policy begins no further search.
    pub contest: Duration,
    /// Whether strategies and policies are given up where they are slower than the best by [`GIVEN_UP`]. Models are fitted to whole tables.
    pub gives_up: bool,
    /// Whether levels that both devices run are measured as well, with the shares [`SHARES`].
    pub splits: bool,
}

impl Default for Turns {
    fn default() -> Self {
        Self { turns: 5, patience: Duration::from_secs(20), contest: Duration::MAX, gives_up: false, splits: false }
    }
}

/// The strategy of one device that leaves the state as `plan` does. A split level leaves it with the CPU.
fn host(plan: LevelPlan) -> Strategy {
    Strategy::of(plan).unwrap_or(Strategy::on_cpu(plan.direction))
}

impl LevelTimes {
    /// A level that was not measured yet.
    fn of(stats: LevelStats, found: u64) -> Self {
        Self {
            stats,
            found,
            own: [None; STRATEGIES],
            mean: [None; STRATEGIES],
            after: [[None; STRATEGIES]; STRATEGIES],
            shared: [[None; SHARES.len()]; GpuKernel::ALL.len()],
            parts: [None; GpuKernel::ALL.len()],
            given_up: Vec::new(),
        }
    }

    /// The time of the level if it is split: the GPU runs this share of it, in thousandths, by `kernel`. Changes are not included, as in
    /// [`own_ns`](Self::own_ns). The time is interpolated between the measured shares; beyond them, the nearest share counts.
    pub fn split_ns(&self, kernel: GpuKernel, gpu_permille: u16) -> Option<f64> {
        let times = &self.shared[kernel as usize];
        let at = SHARES.iter().position(|&share| share >= gpu_permille).unwrap_or(SHARES.len() - 1).max(1);
        let (low, high) = (f64::from(SHARES[at - 1]), f64::from(SHARES[at]));
        let part = ((f64::from(gpu_permille) - low) / (high - low)).clamp(0.0, 1.0);
        Some(times[at - 1]? * (1.0 - part) + times[at]? * part)
    }

    /// The time of the level by `plan` after one by `previous`, with conversions and handover (`None`: not measured).
    pub fn plan_ns(&self, previous: Option<LevelPlan>, plan: LevelPlan) -> Option<f64> {
        match (Strategy::of(plan), plan.placement) {
            (Some(strategy), _) => self.step_ns(previous.map(host), strategy),
            (None, Placement::Split { gpu_permille, kernel }) => {
                let change = previous.and_then(|previous| self.change_ns(host(previous), host(plan))).unwrap_or(0.0);
                Some(self.split_ns(kernel, gpu_permille)? + change.max(0.0))
            }
            _ => None,
        }
    }

    /// The time of the level by `strategy` after another level of that strategy, without conversions, handover and decision. At level 0 it
    /// includes the reset of the search's state. `None`: not measured.
    pub fn own_ns(&self, strategy: Strategy) -> Option<f64> {
        self.own[strategy as usize]
    }

    /// The mean of the turns, of which [`own_ns`](Self::own_ns) is the first quartile.
    pub fn mean_ns(&self, strategy: Strategy) -> Option<f64> {
        self.mean[strategy as usize]
    }

    /// Whether `strategy` was given up at this level.
    pub fn is_given_up(&self, strategy: Strategy) -> bool {
        self.given_up.contains(&strategy)
    }

    /// The fastest measured strategy, with its [`own_ns`](Self::own_ns).
    pub fn best(&self) -> Option<(Strategy, f64)> {
        let times = Strategy::ALL.into_iter().filter_map(|strategy| Some((strategy, self.own_ns(strategy)?)));
        times.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The times of one device's fastest strategies top-down and bottom-up (`None`: one direction was not measured there). A direction that
    /// was given up counts with the least time that it takes, [`GIVEN_UP`] times that of the best strategy.
    pub fn directions_ns(&self, on_gpu: bool) -> Option<[f64; 2]> {
        let least = |strategy| self.own_ns(strategy).or_else(|| Some(GIVEN_UP * self.best().filter(|_| self.is_given_up(strategy))?.1));
        let best = |direction: Direction| {
            let there = Strategy::ALL.into_iter().filter(|strategy| strategy.is_gpu() == on_gpu && strategy.direction() == direction);
            there.filter_map(least).min_by(f64::total_cmp)
        };
        Some([best(Direction::TopDown)?, best(Direction::BottomUp)?])
    }

    /// The time of the level by `strategy` after one by `previous`, with conversions and handover; [`own_ns`](Self::own_ns) if not
    /// measured.
    pub fn step_ns(&self, previous: Option<Strategy>, strategy: Strategy) -> Option<f64> {
        let measured = previous.and_then(|previous| self.after[previous as usize][strategy as usize]);
        measured.or(self.own[strategy as usize])
    }

    /// The cost of the change: [`step_ns`](Self::step_ns) minus [`own_ns`](Self::own_ns).
    pub fn change_ns(&self, previous: Strategy, strategy: Strategy) -> Option<f64> {
        Some(self.after[previous as usize][strategy as usize]? - self.own[strategy as usize]?)
    }
}

impl LevelTable {
    /// Whether the time of this level is that of its work. Level 0 includes the reset of the state, and a search without a device ends
    /// before a level that has no vertex left to find.
    pub fn is_timed(&self, level: &LevelTimes) -> bool {
        level.stats.level > 0 && (level.stats.unvisited_vertices > 0 || self.strategies.iter().any(|strategy| strategy.is_gpu()))
    }

    /// The measured plans: the strategies, and split levels.
    pub fn plans(&self) -> Vec<LevelPlan> {
        let measured = |kernel: &GpuKernel| self.levels.iter().any(|level| level.split_ns(*kernel, SHARES[0]).is_some());
        let splits = GpuKernel::ALL.into_iter().filter(measured).flat_map(|kernel| SHARES.map(|share| LevelPlan::split(kernel, share)));
        self.strategies.iter().map(|strategy| strategy.plan()).chain(splits).collect()
    }

    /// The oracle: the cheapest sequence of plans, one for each level, and its cost in nanoseconds.
    pub fn oracle(&self) -> (Vec<LevelPlan>, f64) {
        self.cheapest(&self.plans())
    }

    /// As [`oracle`](Self::oracle), with a choice among these plans only.
    pub fn cheapest(&self, plans: &[LevelPlan]) -> (Vec<LevelPlan>, f64) {
        // By level and plan: the cost of the cheapest way there, and the index of the plan before.
        let mut ways: Vec<Vec<(f64, usize)>> = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            let way = |&plan: &LevelPlan| {
                let step = |previous| level.plan_ns(previous, plan).unwrap_or(f64::INFINITY);
                let Some(before) = ways.last() else { return (step(None), 0) };
                let ways = before.iter().enumerate().map(|(place, (way, _))| (way + step(Some(plans[place])), place));
                ways.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0))
            };
            ways.push(plans.iter().map(way).collect());
        }
        let end = ways.last().and_then(|last| last.iter().enumerate().min_by(|a, b| a.1.0.total_cmp(&b.1.0)));
        let Some((mut at, &(total, _))) = end else { return (Vec::new(), 0.0) };
        let mut chosen = vec![plans[at]; ways.len()];
        for (level, row) in ways.iter().enumerate().skip(1).rev() {
            at = row[at].1;
            chosen[level - 1] = plans[at];
        }
        (chosen, total)
    }

    /// The plan and the cost in nanoseconds of each level if the levels run by `plans` (`None` if a plan was not measured). Levels beyond
    /// the end of `plans` use the last plan.
    fn steps<'a>(&'a self, plans: &'a [LevelPlan]) -> impl Iterator<Item = Option<(LevelPlan, f64)>> + 'a {
        let at = |level: usize| plans.get(level).or(plans.last()).copied();
        self.levels.iter().enumerate().map(move |(level, times)| {
            let previous = level.checked_sub(1).and_then(at);
            Some((at(level)?, times.plan_ns(previous, at(level)?)?))
        })
    }

    /// The cost in nanoseconds of a search whose levels run by `plans` (`None` if a plan was not measured at some level).
    pub fn cost_ns(&self, plans: &[LevelPlan]) -> Option<f64> {
        self.steps(plans).map(|step| step.map(|(_, ns)| ns)).sum()
    }

    /// Joules of a search whose levels run by `plans`; `watts` holds the power while a strategy runs. `None` if a power or a time is not
    /// known. The power while both devices run is never known.
    pub fn joules(&self, plans: &[LevelPlan], watts: &StrategyWatts) -> Option<f64> {
        self.steps(plans).map(|step| step.and_then(|(plan, ns)| Some(ns * 1e-9 * watts.of(Strategy::of(plan)?)?))).sum()
    }
}

/// Measures every level of the search from `root` by each of `strategies`. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] if the search was not set up for the strategies, the root is not a vertex of the graph, or a device fails.
pub fn measure(search: &mut Search<'_>, root: Vertex, strategies: &[Strategy], how: &Turns) -> Result<LevelTable, SearchError> {
    search.set_single_levels(true);
    let table = measured(search, root, strategies, how);
    search.set_split_in_turn(false);
    search.set_single_levels(false);
    table
}

fn measured(search: &mut Search<'_>, root: Vertex, strategies: &[Strategy], how: &Turns) -> Result<LevelTable, SearchError> {
    let begin = Instant::now();
    let tc = Replay::new(&[Strategy::Tc.plan()]);
    let mut levels: Vec<LevelTimes> =
        run(search, root, tc.observing())?.iter().map(|record| LevelTimes::of(record.stats, record.found)).collect();
    let fastest = if how.gives_up { trial(search, root, strategies, &mut levels)? } else { Vec::new() };
    // The plans that run `plan` at each level where none of `strategies` is given up, and the fastest strategy at the others.
    let instead = |levels: &[LevelTimes], strategies: &[Strategy], plan: &dyn Fn(usize) -> LevelPlan| -> Vec<LevelPlan> {
        let given_up = |level: usize| strategies.iter().any(|&strategy| levels[level].is_given_up(strategy));
        (0..levels.len()).map(|level| if given_up(level) { fastest[level].plan() } else { plan(level) }).collect()
    };
    let has_time = |turn: usize| turn == 0 || begin.elapsed() <= how.patience;
    // Each strategy by itself: own times.
    let mut runs: Vec<Vec<Vec<LevelRecord>>> = vec![Vec::new(); strategies.len()];
    for turn in 0..how.turns.max(1) {
        for (&strategy, runs) in strategies.iter().zip(&mut runs).take_while(|_| has_time(turn)) {
            if levels.iter().any(|level| !level.is_given_up(strategy)) {
                runs.push(run(search, root, Replay::new(&instead(&levels, &[strategy], &|_| strategy.plan())))?);
            }
        }
    }
    for (&strategy, runs) in strategies.iter().zip(&runs) {
        let mut follows = true;
        for (level, times) in levels.iter_mut().enumerate() {
            let runs_here = !times.is_given_up(strategy);
            if runs_here {
                times.own[strategy as usize] = typical(runs, level, own);
                times.mean[strategy as usize] = summary(runs, level, own).map(|summary| summary.mean);
            }
            if runs_here && follows {
                times.after[strategy as usize][strategy as usize] = typical(runs, level, with_changes);
            }
            follows = runs_here;
        }
    }
    // Two strategies in alternation, begun once with each.
    let contenders: Vec<Strategy> = strategies.iter().copied().filter(|&strategy| contends(&levels, strategy)).collect();
    for (index, &a) in contenders.iter().enumerate() {
        for &b in &contenders[index + 1..] {
            // Where the one ran and the other does.
            let changes = |level: usize| [level - 1, level].iter().all(|&level| ![a, b].iter().any(|&s| levels[level].is_given_up(s)));
            let changes: Vec<usize> = (1..levels.len()).filter(|&level| changes(level)).collect();
            if changes.is_empty() {
                continue;
            }
            let mut runs = [Vec::new(), Vec::new()];
            for turn in 0..how.turns.max(1) {
                for (phase, runs) in runs.iter_mut().enumerate().take_while(|_| has_time(turn)) {
                    let plans = instead(&levels, &[a, b], &|level| if level % 2 == phase { a.plan() } else { b.plan() });
                    runs.push(run(search, root, Replay::new(&plans))?);
                }
            }
            for level in changes {
                for (phase, runs) in runs.iter().enumerate() {
                    let (previous, strategy) = if level % 2 == phase { (b, a) } else { (a, b) };
                    levels[level].after[previous as usize][strategy as usize] = typical(runs, level, with_changes);
                }
            }
        }
    }
    if how.splits {
        for kernel in GpuKernel::ALL.into_iter().filter(|&kernel| strategies.contains(&kernel.into())) {
            let on_gpu = Strategy::from(kernel);
            // A level is not split if each of its two parts would run by a strategy that was given up.
            let pair = [on_gpu, Strategy::on_cpu(on_gpu.direction())];
            let is_split = |level: &LevelTimes| !pair.iter().all(|&strategy| level.is_given_up(strategy));
            if !levels.iter().any(is_split) {
                continue;
            }
            let plans = |levels: &[LevelTimes], gpu_permille: u16| -> Vec<LevelPlan> {
                let split = LevelPlan::split(kernel, gpu_permille);
                levels.iter().enumerate().map(|(at, level)| if is_split(level) { split } else { fastest[at].plan() }).collect()
            };
            let mut split = |levels: &[LevelTimes], gpu_permille: u16, in_turn: bool| {
                let mut runs = Vec::new();
                search.set_split_in_turn(in_turn);
                for _ in (0..how.turns.max(1)).take_while(|&turn| has_time(turn)) {
                    runs.push(run(search, root, Replay::new(&plans(levels, gpu_permille)))?);
                }
                Ok::<_, SearchError>(runs)
            };
            let mut best = (SHARES[0], Vec::new(), f64::INFINITY);
            for (place, gpu_permille) in SHARES.into_iter().enumerate() {
                let runs = split(&levels, gpu_permille, false)?;
                let mut all_ns = 0.0;
                for (level, times) in levels.iter_mut().enumerate().filter(|(_, times)| is_split(times)) {
                    // The handovers of a split level are part of splitting.
                    let ns = typical(&runs, level, with_changes);
                    times.shared[kernel as usize][place] = ns;
                    all_ns += ns.unwrap_or(0.0);
                }
                if all_ns < best.2 {
                    best = (gpu_permille, runs, all_ns);
                }
            }
            // With the fastest share both devices work for most of the time.
            let (gpu_permille, both, _) = best;
            let alone = split(&levels, gpu_permille, true)?;
            for (level, times) in levels.iter_mut().enumerate().filter(|(_, times)| is_split(times)) {
                let parts = |runs| Some([typical(runs, level, |record| record.cpu_ns)?, typical(runs, level, |record| record.gpu_ns)?]);
                times.parts[kernel as usize] = parts(&alone).zip(parts(&both)).map(|(alone_ns, both_ns)| SplitParts { alone_ns, both_ns });
            }
        }
    }
    Ok(LevelTable { root, strategies: strategies.to_vec(), levels })
}

/// Finds out where each strategy is hopeless, and enters that in `levels`. Returns the fastest strategy of every level.
///
/// A strategy is tried by two searches at levels where it is likely to be at its best: top-down where the frontier has the most arcs, since
/// it looks at these and has a fixed cost beside them; bottom-up where the frontier has the largest share of the arcs that are left. Each
/// further trial takes twice as many of the levels that follow. The strategy is given up at every level where it was too slow, and once
/// that was so at all levels of a trial, at all that follow, untried: unless these levels together would take less than [`WORTH`].
fn trial(search: &mut Search<'_>, root: Vertex, strategies: &[Strategy], levels: &mut [LevelTimes]) -> Result<Vec<Strategy>, SearchError> {
    let mut tried: Vec<Vec<(Strategy, f64)>> = vec![Vec::new(); levels.len()];
    let mut times = |plans: &[LevelPlan]| {
        search.set_planner(Policy::Replay(Replay::new(plans)).on(LevelDevice::Cpu))?;
        let mut least = vec![f64::INFINITY; plans.len()];
        // The shorter of two times, since a disturbance may hit any of them.
        for _ in 0..2 {
            search.run(Run { uncounted: true, ..root.into() })?;
            least.iter_mut().zip(search.records()).for_each(|(least, record)| *least = least.min(own(record) as f64));
        }
        Ok::<_, SearchError>(least)
    };
    for (ns, tried) in times(&vec![Strategy::Tc.plan(); levels.len()])?.into_iter().zip(&mut tried) {
        tried.push((Strategy::Tc, ns));
    }
    let mut untried: Vec<(Strategy, Vec<usize>, f64)> = Vec::new();
    let best = |tried: &[(Strategy, f64)]| tried.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((Strategy::Tc, 0.0));
    for &strategy in strategies.iter().filter(|&&strategy| strategy != Strategy::Tc) {
        let promise = |level: usize| {
            let stats = &levels[level].stats;
            let share = stats.frontier_edges as f64 / stats.unvisited_edges.max(1) as f64;
            if strategy.direction() == Direction::TopDown { stats.frontier_edges as f64 } else { share }
        };
        let mut order: Vec<usize> = (0..levels.len()).collect();
        order.sort_by(|&a, &b| promise(b).total_cmp(&promise(a)));
        let (mut rest, mut count) = (&order[..], FIRST_TRIED);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(count.min(rest.len()));
            let mut plans = vec![Strategy::Tc.plan(); levels.len()];
            now.iter().for_each(|&level| plans[level] = strategy.plan());
            let times = times(&plans)?;
            let mut is_hopeless = true;
            for &level in now {
                is_hopeless &= times[level] > GIVEN_UP * best(&tried[level]).1;
                tried[level].push((strategy, times[level]));
            }
            let each = now.iter().map(|&level| times[level]).sum::<f64>() / now.len() as f64;
            let later_ns = each * later.len() as f64;
            // Levels that seem cheap are tried: the last levels of a road, with few vertices left, are much cheaper than those before.
            if is_hopeless && later_ns > WORTH.as_nanos() as f64 {
                untried.push((strategy, later.to_vec(), later_ns));
                break;
            }
            (rest, count) = (later, 2 * count);
        }
    }
    for &strategy in strategies {
        let (later, later_ns) = untried.iter().find(|(of, ..)| *of == strategy).map_or((&[][..], 0.0), |(_, later, ns)| (later, *ns));
        let slow = tried.iter().enumerate().filter_map(|(level, tried)| {
            let ns = tried.iter().find(|(of, _)| *of == strategy)?.1;
            (ns > GIVEN_UP * best(tried).1).then_some((level, ns))
        });
        let slow: Vec<(usize, f64)> = slow.collect();
        if later_ns + slow.iter().map(|(_, ns)| ns).sum::<f64>() > WORTH.as_nanos() as f64 {
            slow.iter().map(|(level, _)| level).chain(later).for_each(|&level| levels[level].given_up.push(strategy));
        }
    }
    Ok(tried.iter().map(|tried| best(tried).0).collect())
}

/// Searches twice and returns the records of the second search. The first one replaces the data of other plans in the caches.
fn run(search: &mut Search<'_>, root: Vertex, replay: Replay) -> Result<Vec<LevelRecord>, SearchError> {
    search.set_planner(Policy::Replay(replay).on(LevelDevice::Cpu))?;
    search.run(Run { uncounted: true, ..root.into() })?;
    search.run(Run { uncounted: true, ..root.into() })?;
    Ok(search.records().to_vec())
}

fn own(record: &LevelRecord) -> u64 {
    with_changes(record).saturating_sub(record.conversion_ns + record.handover_ns)
}

fn with_changes(record: &LevelRecord) -> u64 {
    record.elapsed_ns.saturating_sub(record.decision_ns)
}

/// The first quartile: a disturbance (such as a thread that loses its core for a time slice) only ever makes a level of some microseconds
/// longer, and by much more than the level takes.
fn typical(runs: &[Vec<LevelRecord>], level: usize, time: fn(&LevelRecord) -> u64) -> Option<f64> {
    summary(runs, level, time).map(|summary| summary.first_quartile)
}

fn summary(runs: &[Vec<LevelRecord>], level: usize, time: fn(&LevelRecord) -> u64) -> Option<Summary> {
    let times: Vec<f64> = runs.iter().filter_map(|records| records.get(level)).map(|record| time(record) as f64).collect();
    Summary::of(&times)
}

/// Whether `strategy` comes close to the fastest one at any level that takes more than a thousandth of the search.
fn contends(levels: &[LevelTimes], strategy: Strategy) -> bool {
    let fastest = |times: &LevelTimes| times.best().map_or(f64::INFINITY, |(_, ns)| ns);
    let all: f64 = levels.iter().map(fastest).sum();
    levels.iter().any(|times| {
        let matters = fastest(times) > all / 1000.0;
        matters && times.own_ns(strategy).is_some_and(|own| own < CONTENDS * fastest(times))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl LevelTimes {
        /// A level with simulated times: `own` returns the time of a plan without changes, `change` the extra time of a change of strategy.
        pub(crate) fn simulated(
            stats: LevelStats,
            found: u64,
            own: impl Fn(LevelPlan) -> Option<f64>,
            change: impl Fn(Strategy, Strategy) -> f64,
        ) -> Self {
            let mut times = Self::of(stats, found);
            for strategy in Strategy::ALL {
                times.own[strategy as usize] = own(strategy.plan());
                for previous in Strategy::ALL {
                    times.after[previous as usize][strategy as usize] = own(strategy.plan()).map(|ns| ns + change(previous, strategy));
                }
            }
            for kernel in GpuKernel::ALL {
                times.shared[kernel as usize] = SHARES.map(|gpu_permille| own(LevelPlan::split(kernel, gpu_permille)));
            }
            times
        }
    }

    /// A table of two strategies with these own times, in which each change costs `change`.
    fn table(own: &[[f64; 2]], change: f64) -> LevelTable {
        let levels = own
            .iter()
            .map(|&[tc, bc]| {
                let own = |plan| match Strategy::of(plan) {
                    Some(Strategy::Tc) => Some(tc),
                    Some(Strategy::Bc) => Some(bc),
                    _ => None,
                };
                LevelTimes::simulated(LevelStats::default(), 1, own, |a, b| if a == b { 0.0 } else { change })
            })
            .collect();
        LevelTable { root: 0, strategies: Strategy::CPU.to_vec(), levels }
    }

    #[test]
    fn the_oracle_changes_its_strategy_where_that_pays() {
        let [tc, bc, bg] = [Strategy::Tc, Strategy::Bc, Strategy::Bg].map(Strategy::plan);
        let times = [[1.0, 9.0], [50.0, 10.0], [12.0, 10.0], [2.0, 8.0]];
        assert_eq!(table(&times, 0.0).oracle(), (vec![tc, bc, bc, tc], 23.0));
        // Two changes at 3 or 5 each pay. At 7 the one back does not, as it saves 6; at 40 neither does.
        assert_eq!(table(&times, 3.0).oracle(), (vec![tc, bc, bc, tc], 29.0));
        assert_eq!(table(&times, 5.0).oracle(), (vec![tc, bc, bc, tc], 33.0));
        assert_eq!(table(&times, 7.0).oracle(), (vec![tc, bc, bc, bc], 36.0));
        assert_eq!(table(&times, 40.0).oracle(), (vec![bc, bc, bc, bc], 37.0));
        assert_eq!(table(&times, 7.0).cheapest(&[tc]), (vec![tc; 4], 65.0));
        assert_eq!(table(&times, 7.0).cost_ns(&[tc, bc]), Some(36.0));
        assert_eq!(table(&times, 7.0).cost_ns(&[bg]), None);
        assert_eq!(table(&[], 1.0).oracle(), (vec![], 0.0));
        // 2 W for TC, 5 W for BC: 1 ns and 17 + 10 + 8 ns.
        let watts = StrategyWatts { tc: Some(2.0), bc: Some(5.0), ..StrategyWatts::default() };
        let joules = table(&times, 7.0).joules(&[tc, bc, bc, bc], &watts).unwrap();
        assert!((joules - (2.0 + 5.0 * (17.0 + 10.0 + 8.0)) * 1e-9).abs() < 1e-18);
        assert_eq!(table(&times, 7.0).joules(&[tc], &StrategyWatts::default()), None);
    }

    #[test]
    fn the_oracle_splits_levels() {
        // Times on the CPU alone, on the GPU alone, and split with shares of 25, 50 and 75 %; a change of device costs 5.
        let times = [[1.0, 9.0, 4.0, 5.0, 6.0], [50.0, 40.0, 39.0, 24.0, 30.0], [60.0, 21.0, 50.0, 40.0, 30.0], [2.0, 8.0, 9.0, 9.0, 9.0]];
        let level = |[tc, tg, quarter, half, most]: [f64; 5]| {
            let own = move |plan: LevelPlan| match plan.placement {
                Placement::Cpu => (plan.direction == Direction::TopDown).then_some(tc),
                Placement::Gpu(GpuKernel::Tg) => Some(tg),
                Placement::Split { gpu_permille, kernel: GpuKernel::Tg } => Some(match gpu_permille {
                    250 => quarter,
                    500 => half,
                    _ => most,
                }),
                _ => None,
            };
            LevelTimes::simulated(LevelStats::default(), 1, own, |a, b| if a.is_gpu() == b.is_gpu() { 0.0 } else { 5.0 })
        };
        let table = LevelTable { root: 0, strategies: vec![Strategy::Tc, Strategy::Tg], levels: times.map(level).to_vec() };
        let (tc, tg) = (Strategy::Tc.plan(), Strategy::Tg.plan());
        assert_eq!(table.plans().len(), 5);
        // The third level takes 21 and two changes on the GPU alone, and 30 split.
        let (oracle, ns) = table.oracle();
        assert!((ns - (1.0 + 24.0 + 30.0 + 2.0)).abs() < 1e-9, "{oracle:?} {ns}");
        assert_eq!(oracle, [tc, LevelPlan::split(GpuKernel::Tg, 500), LevelPlan::split(GpuKernel::Tg, 750), tc]);
        assert_eq!(table.cost_ns(&oracle), Some(ns));
        assert_eq!(table.cheapest(&[tc, tg]).1, 1.0 + 5.0 + 40.0 + 21.0 + 5.0 + 2.0);
        // From the GPU to a split level the state changes its owner. A share between two measured ones is interpolated; beyond them the
        // nearest counts.
        assert_eq!(table.levels[1].plan_ns(Some(tg), LevelPlan::split(GpuKernel::Tg, 375)), Some(31.5 + 5.0));
        assert_eq!(table.levels[1].plan_ns(Some(tc), LevelPlan::split(GpuKernel::Tg, 990)), Some(30.0));
        assert_eq!(table.levels[1].plan_ns(Some(tc), LevelPlan::split(GpuKernel::Bg, 500)), None);
    }

    #[test]
    fn a_strategy_is_given_up_where_it_is_hopeless() {
        use socbfs::{graph::BuildOptions, graph::Layout, search::SearchOptions};
        use socbfs_io::generate::Generator;
        // Bottom-up looks at all vertices at each of hundreds of levels, on which the frontier has some hundred of them.
        let edges = Generator::Grid { width: 600, height: 600, deletion: 0.05, seed: 1 }.generate(&|_| {}).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
        let how = Turns { turns: 2, gives_up: true, ..Turns::default() };
        let table = measure(&mut search, 7, &Strategy::CPU, &how).unwrap();
        let given_up = table.levels.iter().filter(|level| level.is_given_up(Strategy::Bc)).count();
        assert!(table.levels.len() > 600 && 2 * given_up > table.levels.len(), "{given_up} of {}", table.levels.len());
        let (plans, cost) = table.oracle();
        assert_eq!(table.cost_ns(&plans), Some(cost));
        for (level, plan) in table.levels.iter().zip(&plans) {
            let strategy = Strategy::of(*plan).unwrap();
            assert!(!level.is_given_up(strategy) && level.own_ns(strategy).is_some());
            assert!(Strategy::CPU.iter().all(|&strategy| level.own_ns(strategy).is_none() == level.is_given_up(strategy)));
            let [top_down, bottom_up] = level.directions_ns(false).unwrap();
            assert!(!level.is_given_up(Strategy::Bc) || bottom_up == GIVEN_UP * top_down);
        }
    }

    #[test]
    fn every_level_is_measured_by_every_strategy_after_every_other() {
        use socbfs::{
            graph::{BuildOptions, Layout},
            search::SearchOptions,
        };
        use socbfs_io::generate::Generator;
        let edges = Generator::Kronecker { scale: 10, edge_factor: 16, seed1: 2, seed2: 3 }.generate(&|_| {}).unwrap();
        let layout = Layout::build(&edges, &BuildOptions { keep_leaves: true, ..BuildOptions::default() }).unwrap();
        let root = (0..1024).find(|&v| layout.input_degree(v) > 0).unwrap();
        let mut search = Search::new(&layout, &SearchOptions { threads: 2, ..SearchOptions::default() }).unwrap();
        let levels = search.run(root).unwrap().levels as usize;
        let table = measure(&mut search, root, &Strategy::CPU, &Turns { turns: 2, ..Turns::default() }).unwrap();
        assert_eq!(table.levels.len(), levels);
        assert_eq!(table.levels.iter().map(|level| level.found).sum::<u64>() + 1, search.run(root).unwrap().reached);
        for (index, level) in table.levels.iter().enumerate() {
            assert_eq!(level.stats.level as usize, index);
            assert!(level.own_ns(Strategy::Tc) > Some(0.0) && level.own_ns(Strategy::Bc) > Some(0.0));
            assert_eq!(level.own_ns(Strategy::Tg), None);
        }
        let (plans, cost) = table.oracle();
        assert_eq!(table.cost_ns(&plans), Some(cost));
        assert!(cost <= table.cost_ns(&[Strategy::Tc.plan()]).unwrap() && cost <= table.cost_ns(&[Strategy::Bc.plan()]).unwrap());
    }
}
