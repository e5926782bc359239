//! What every strategy costs at every level of a search, measured.
//!
//! The levels of a search from one root are the same sets of vertices whatever finds them, so that strategies can be compared
//! level by level: a search is run with plans laid down beforehand (see [`Replay`]), first all levels by the same strategy,
//! then by two strategies in turn, so that every strategy is seen after every other one at every level. The fastest way
//! through the table is the per-level oracle against which policies are judged.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::watts_of;
use crate::{
    bfs::{LevelPlan, LevelRecord, LevelStats, Strategy},
    board::StrategyWatts,
    graph::Vertex,
    policy::{Policy, Replay, Runs},
    search::{Search, SearchError},
    stats::Summary,
};

const STRATEGIES: usize = Strategy::ALL.len();

/// A strategy that nowhere comes closer to the fastest than this is not measured after others: no policy worth its name
/// changes to it.
const CONTENDS: f64 = 2.0;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// Searches of each sequence of plans; the first quartile counts.
    pub turns: usize,
    /// After this long, what has been measured at least once is left at that.
    pub patience: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self { turns: 5, patience: Duration::from_secs(20) }
    }
}

/// Level by level, what a search from one root costs by each strategy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelTable {
    /// The root, as an original number.
    pub root: Vertex,
    /// What was measured.
    pub strategies: Vec<Strategy>,
    /// The levels; the last one finds nothing.
    pub levels: Vec<LevelTimes>,
}

/// One level. Times are in nanoseconds, by [`Strategy`] in the order of [`Strategy::ALL`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelTimes {
    /// What a policy may know, all samples included. What depends on how the search came here is that of a search top-down.
    pub stats: LevelStats,
    /// Vertices found.
    pub found: u64,
    own: [Option<f64>; STRATEGIES],
    after: [[Option<f64>; STRATEGIES]; STRATEGIES],
}

impl LevelTimes {
    /// The level by `strategy` after another of its kind, without conversions, hand-over and deciding (at level 0 with the reset
    /// of the search's state). `None`: not measured.
    pub fn own_ns(&self, strategy: Strategy) -> Option<f64> {
        self.own[strategy as usize]
    }

    /// The level by `strategy` after one by `previous`, conversions and hand-over included.
    pub fn step_ns(&self, previous: Option<Strategy>, strategy: Strategy) -> Option<f64> {
        let measured = previous.and_then(|previous| self.after[previous as usize][strategy as usize]);
        measured.or(self.own[strategy as usize])
    }

    /// What [`step_ns`](Self::step_ns) has beyond [`own_ns`](Self::own_ns).
    pub fn change_ns(&self, previous: Strategy, strategy: Strategy) -> Option<f64> {
        Some(self.after[previous as usize][strategy as usize]? - self.own[strategy as usize]?)
    }
}

impl LevelTable {
    /// The cheapest sequence of strategies, one for each level, and what it costs in nanoseconds: the oracle.
    pub fn oracle(&self) -> (Vec<Strategy>, f64) {
        self.cheapest(&self.strategies)
    }

    /// The same of a choice of the strategies measured.
    pub fn cheapest(&self, strategies: &[Strategy]) -> (Vec<Strategy>, f64) {
        // By level and strategy: the cheapest way there, and the strategy before.
        let mut ways: Vec<[(f64, Option<Strategy>); STRATEGIES]> = Vec::with_capacity(self.levels.len());
        for level in &self.levels {
            let mut row = [(f64::INFINITY, None); STRATEGIES];
            for &strategy in strategies {
                let best = match ways.last() {
                    None => (level.step_ns(None, strategy).unwrap_or(f64::INFINITY), None),
                    Some(before) => strategies
                        .iter()
                        .map(|&previous| {
                            let step = level.step_ns(Some(previous), strategy).unwrap_or(f64::INFINITY);
                            (before[previous as usize].0 + step, Some(previous))
                        })
                        .min_by(|a, b| a.0.total_cmp(&b.0))
                        .unwrap_or((f64::INFINITY, None)),
                };
                row[strategy as usize] = best;
            }
            ways.push(row);
        }
        let Some(last) = ways.last() else { return (Vec::new(), 0.0) };
        let end = strategies.iter().copied().min_by(|&a, &b| last[a as usize].0.total_cmp(&last[b as usize].0));
        let Some(mut at) = end else { return (Vec::new(), 0.0) };
        let total = last[at as usize].0;
        let mut plan = vec![at; ways.len()];
        for (level, row) in ways.iter().enumerate().skip(1).rev() {
            at = row[at as usize].1.unwrap_or(at);
            plan[level - 1] = at;
        }
        (plan, total)
    }

    /// What a search costs that runs its levels as given (`None` where a strategy was not measured at some level), in
    /// nanoseconds. Levels beyond the end of `strategies` are run by the last of them.
    pub fn cost_ns(&self, strategies: &[Strategy]) -> Option<f64> {
        let mut previous = None;
        let mut total = 0.0;
        for (level, times) in self.levels.iter().enumerate() {
            let strategy = *strategies.get(level).or(strategies.last())?;
            total += times.step_ns(previous, strategy)?;
            previous = Some(strategy);
        }
        Some(total)
    }
}

impl LevelTable {
    /// Joules that a search takes which runs its levels as given, where `watts` are drawn while a strategy runs (`None`: a power
    /// or a time is not known).
    pub fn joules(&self, strategies: &[Strategy], watts: &StrategyWatts) -> Option<f64> {
        let mut previous = None;
        let mut total = 0.0;
        for (level, times) in self.levels.iter().enumerate() {
            let strategy = *strategies.get(level).or(strategies.last())?;
            total += times.step_ns(previous, strategy)? * 1e-9 * watts_of(watts, strategy)?;
            previous = Some(strategy);
        }
        Some(total)
    }
}

/// Measures every level of the search from `root` by each of `strategies`. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] where the search was not set up for the strategies, the root is none of its vertices, or a device fails.
pub fn measure(search: &mut Search<'_>, root: Vertex, strategies: &[Strategy], how: &Turns) -> Result<LevelTable, SearchError> {
    search.set_single_levels(true);
    let table = measured(search, root, strategies, how);
    search.set_single_levels(false);
    table
}

fn measured(search: &mut Search<'_>, root: Vertex, strategies: &[Strategy], how: &Turns) -> Result<LevelTable, SearchError> {
    let begin = Instant::now();
    let tc = Replay::new(&[Strategy::Tc.plan()]);
    let mut levels: Vec<LevelTimes> = run(search, root, tc.observing())?
        .iter()
        .map(|record| LevelTimes {
            stats: record.stats,
            found: record.found,
            own: [None; STRATEGIES],
            after: [[None; STRATEGIES]; STRATEGIES],
        })
        .collect();
    // Each strategy by itself: own times.
    let mut runs: Vec<Vec<Vec<LevelRecord>>> = vec![Vec::new(); strategies.len()];
    for turn in 0..how.turns.max(1) {
        for (&strategy, runs) in strategies.iter().zip(&mut runs) {
            if turn > 0 && begin.elapsed() > how.patience {
                break;
            }
            runs.push(run(search, root, Replay::new(&[strategy.plan()]))?);
        }
    }
    for (&strategy, runs) in strategies.iter().zip(&runs) {
        for (level, times) in levels.iter_mut().enumerate() {
            times.own[strategy as usize] = typical(runs, level, own);
            times.after[strategy as usize][strategy as usize] = typical(runs, level, with_changes);
        }
    }
    // Two in turn, each of them first once.
    let contenders: Vec<Strategy> = strategies.iter().copied().filter(|&strategy| contends(&levels, strategy)).collect();
    for (index, &a) in contenders.iter().enumerate() {
        for &b in &contenders[index + 1..] {
            let mut runs = [Vec::new(), Vec::new()];
            for turn in 0..how.turns.max(1) {
                for (phase, runs) in runs.iter_mut().enumerate() {
                    if turn > 0 && begin.elapsed() > how.patience {
                        break;
                    }
                    let plans: Vec<LevelPlan> =
                        (0..levels.len()).map(|level| if level % 2 == phase { a.plan() } else { b.plan() }).collect();
                    runs.push(run(search, root, Replay::new(&plans))?);
                }
            }
            for (level, times) in levels.iter_mut().enumerate().skip(1) {
                for (phase, runs) in runs.iter().enumerate() {
                    let (previous, strategy) = if level % 2 == phase { (b, a) } else { (a, b) };
                    times.after[previous as usize][strategy as usize] = typical(runs, level, with_changes);
                }
            }
        }
    }
    Ok(LevelTable { root, strategies: strategies.to_vec(), levels })
}

/// What a search takes, after one that is not counted: that forgets what other plans have left in the caches.
fn run(search: &mut Search<'_>, root: Vertex, replay: Replay) -> Result<Vec<LevelRecord>, SearchError> {
    search.set_policy(Policy::Replay(replay), Runs::Cpu)?;
    search.run_uncounted(root)?;
    search.run_uncounted(root)?;
    Ok(search.records().to_vec())
}

fn own(record: &LevelRecord) -> u64 {
    with_changes(record).saturating_sub(record.conversion_ns + record.handover_ns)
}

fn with_changes(record: &LevelRecord) -> u64 {
    record.elapsed_ns.saturating_sub(record.decision_ns)
}

/// The first quartile: what disturbs a level of some microseconds (a thread that loses its core for a time slice) only ever
/// makes it longer, and by much more than it takes.
fn typical(runs: &[Vec<LevelRecord>], level: usize, time: fn(&LevelRecord) -> u64) -> Option<f64> {
    let times: Vec<f64> = runs.iter().filter_map(|records| records.get(level)).map(|record| time(record) as f64).collect();
    Summary::of(&times).map(|summary| summary.first_quartile)
}

/// Whether `strategy` comes close to the fastest at any level that matters.
fn contends(levels: &[LevelTimes], strategy: Strategy) -> bool {
    let fastest = |times: &LevelTimes| times.own.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let all: f64 = levels.iter().map(fastest).sum();
    levels.iter().any(|times| {
        let matters = fastest(times) > all / 1000.0;
        matters && times.own_ns(strategy).is_some_and(|own| own < CONTENDS * fastest(times))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of two strategies: own times, and what changing costs.
    fn table(own: &[[f64; 2]], change: f64) -> LevelTable {
        let levels = own
            .iter()
            .map(|&[tc, bc]| {
                let mut times =
                    LevelTimes { stats: LevelStats::default(), found: 1, own: [None; STRATEGIES], after: [[None; STRATEGIES]; STRATEGIES] };
                for (strategy, time) in [(Strategy::Tc, tc), (Strategy::Bc, bc)] {
                    times.own[strategy as usize] = Some(time);
                    for previous in Strategy::CPU {
                        let change = if previous == strategy { 0.0 } else { change };
                        times.after[previous as usize][strategy as usize] = Some(time + change);
                    }
                }
                times
            })
            .collect();
        LevelTable { root: 0, strategies: Strategy::CPU.to_vec(), levels }
    }

    #[test]
    fn the_oracle_changes_where_it_pays() {
        use Strategy::{Bc, Tc};
        let times = [[1.0, 9.0], [50.0, 10.0], [12.0, 10.0], [2.0, 8.0]];
        assert_eq!(table(&times, 0.0).oracle(), (vec![Tc, Bc, Bc, Tc], 23.0));
        // 3 there, and 3 back are too dear only where less is saved.
        assert_eq!(table(&times, 3.0).oracle(), (vec![Tc, Bc, Bc, Tc], 29.0));
        assert_eq!(table(&times, 5.0).oracle(), (vec![Tc, Bc, Bc, Tc], 33.0));
        assert_eq!(table(&times, 7.0).oracle(), (vec![Tc, Bc, Bc, Bc], 36.0));
        assert_eq!(table(&times, 40.0).oracle(), (vec![Bc, Bc, Bc, Bc], 37.0));
        assert_eq!(table(&times, 7.0).cheapest(&[Tc]), (vec![Tc; 4], 65.0));
        assert_eq!(table(&times, 7.0).cost_ns(&[Tc, Bc]), Some(36.0));
        assert_eq!(table(&times, 7.0).cost_ns(&[Strategy::Bg]), None);
        assert_eq!(table(&[], 1.0).oracle(), (vec![], 0.0));
        // 2 W for TC, 5 W for BC: 1 ns and 17 + 10 + 8 ns.
        let watts = StrategyWatts { tc: Some(2.0), bc: Some(5.0), ..StrategyWatts::default() };
        let joules = table(&times, 7.0).joules(&[Tc, Bc, Bc, Bc], &watts).unwrap();
        assert!((joules - (2.0 + 5.0 * (17.0 + 10.0 + 8.0)) * 1e-9).abs() < 1e-18);
        assert_eq!(table(&times, 7.0).joules(&[Tc], &StrategyWatts::default()), None);
    }

    #[test]
    fn every_level_is_measured_by_every_strategy_after_every_other() {
        use crate::{
            graph::{BuildOptions, Layout},
            input::generate::Generator,
            search::SearchOptions,
        };
        let edges = Generator::Kronecker { scale: 10, edge_factor: 16, seed1: 2, seed2: 3 }.generate(&|_| {}).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
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
        assert!(cost <= table.cost_ns(&[Strategy::Tc]).unwrap() && cost <= table.cost_ns(&[Strategy::Bc]).unwrap());
    }
}
