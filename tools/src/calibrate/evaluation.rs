//! Compares policies with the per-level oracle: their decisions, and what these cost.

use crate::record::{Directions, Evaluation, GIVEN_UP, GivenUp, Judged, LevelTable, RootEvaluation, told_apart};
use std::time::{Duration, Instant};

use super::levels::{self, Turns};
use socbfs::{
    LevelRecord, Outcome, Run,
    bfs::{Direction, LevelPlan, Strategy},
    graph::Vertex,
    search::{Search, SearchError},
    stats::median,
};
use socbfs_policy::{LevelDevice, Policy, Replay};

/// A policy to be judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Contestant {
    /// Its name in reports.
    pub name: String,
    /// The policy.
    pub policy: Policy,
    /// Where its levels run, if it decides directions only.
    pub runs: LevelDevice,
}

impl Directions {
    /// Counts the directions of `plans` at the levels that are [timed](LevelTable::is_timed). The two times of a level are those of the
    /// fastest strategy of each direction on the device of the plan.
    pub fn of(table: &LevelTable, plans: &[LevelPlan]) -> Option<Self> {
        let mut all = Self::default();
        for (times, plan) in table.levels.iter().zip(plans).filter(|(times, _)| table.is_timed(times)) {
            let on_gpu = Strategy::of(*plan).is_some_and(Strategy::is_gpu);
            let there = || Strategy::ALL.into_iter().filter(|strategy| strategy.is_gpu() == on_gpu);
            // Where all strategies of the device were given up, which of its directions is the faster one is not known.
            if there().any(|strategy| times.is_given_up(strategy)) && there().all(|strategy| times.own_ns(strategy).is_none()) {
                continue;
            }
            let [top_down, bottom_up] = times.directions_ns(on_gpu)?;
            all.count(plan.direction, top_down, bottom_up);
        }
        Some(all)
    }

    /// Counts a level that was run in `direction`, with the nanoseconds that it takes top-down and bottom-up.
    pub fn count(&mut self, direction: Direction, top_down_ns: f64, bottom_up_ns: f64) {
        let faster = if bottom_up_ns < top_down_ns { Direction::BottomUp } else { Direction::TopDown };
        let stake = (bottom_up_ns - top_down_ns).abs();
        self.levels += 1;
        self.saveable_ns += stake;
        if direction == faster {
            self.right += 1;
            self.saved_ns += stake;
        }
    }

    /// The counts of both searches together.
    pub fn and(self, other: Self) -> Self {
        Self {
            levels: self.levels + other.levels,
            right: self.right + other.right,
            saveable_ns: self.saveable_ns + other.saveable_ns,
            saved_ns: self.saved_ns + other.saved_ns,
        }
    }

    /// Share of levels in the faster direction.
    pub fn accuracy(&self) -> f64 {
        if self.levels == 0 { 1.0 } else { self.right as f64 / self.levels as f64 }
    }

    /// Share of the saveable time that was saved (SURF's "reduced time").
    pub fn reduced_time(&self) -> f64 {
        if self.saveable_ns > 0.0 { self.saved_ns / self.saveable_ns } else { 1.0 }
    }
}

/// A search of a policy that takes longer than this, and than [`GIVEN_UP`] times the oracle's, is stopped.
const HOPELESS: Duration = Duration::from_secs(1);

/// No policy counts as slow by searches that take less than this: a disturbance may last as long, and its searches cost little anyway.
const DISTURBED: Duration = Duration::from_millis(20);

/// So many times as many turns have those that the first turns can't tell apart: the spread of their medians is half as wide.
const MORE: usize = 4;

/// Judges `contestants` by searches from `roots`. In each turn every policy searches once. `tell` is called between searches with the share
/// that is done, and what comes next. The search's policy is left changed.
///
/// If [`Turns::gives_up`], a policy that needs more than [`GIVEN_UP`] times as long as the oracle searches from the root only once. If that
/// search had to be stopped, the policy is given up: it has no results, and the second list has it.
///
/// # Errors
/// [`SearchError`] if the search was not set up for a policy or a strategy, or a device fails.
pub fn evaluate(
    search: &mut Search<'_>,
    roots: &[Vertex],
    strategies: &[Strategy],
    contestants: &[Contestant],
    how: &Turns,
    mut tell: impl FnMut(f64, String),
) -> Result<(Evaluation, Vec<GivenUp>), SearchError> {
    let mut all: Vec<RootEvaluation> = Vec::new();
    let mut given_up: Vec<Option<GivenUp>> = vec![None; contestants.len()];
    let mut spent = vec![Duration::ZERO; contestants.len() + 1];
    for (place, &root) in roots.iter().enumerate() {
        let count = roots.len();
        let share = |part: f64| (place as f64 + part) / count as f64;
        tell(share(0.0), format!("root {} of {count}, strategies by level", place + 1));
        let table = levels::measure(search, root, strategies, how)?;
        let edges = search.run(root)?.edges;
        let (plans, _) = table.oracle();
        let replay = Replay::new(&plans).running_ahead();
        let oracle = Contestant { name: "oracle".into(), policy: Policy::Replay(replay), runs: LevelDevice::Cpu };
        let everyone: Vec<&Contestant> = std::iter::once(&oracle).chain(contestants).collect();
        let mut samples = vec![Samples::default(); everyone.len()];
        let mut order: Vec<usize> = (0..everyone.len()).collect();
        let patience = how.contest.checked_div(count as u32).map_or(how.contest, |each| each.saturating_mul(place as u32 + 1));
        let turns = how.turns.max(1);
        for turn in 0..MORE * turns {
            let (open, most) = if turn < turns { (vec![true; everyone.len()], turns) } else { (unclear(&samples, turn), MORE * turns) };
            if !open.contains(&true) {
                break;
            }
            let part = share(0.3 + 0.7 * turn.min(turns) as f64 / turns as f64);
            tell(part, format!("root {} of {count}, turn {} of {most}", place + 1, turn + 1));
            for &at in &order {
                let is_over = !open[at] || turn > 0 && (samples[at].is_slow || spent[at] > patience || samples[at].elapsed.len() < turn);
                if is_over || (at > 0 && given_up[at - 1].is_some()) {
                    continue;
                }
                let contestant = everyone[at];
                search.set_planner(contestant.policy.clone().on(contestant.runs))?;
                let first = samples[0].total.first().copied().filter(|_| how.gives_up && at > 0);
                let slow_ns = first.filter(|_| turn == 0).map(|oracle| GIVEN_UP * oracle);
                let begin = Instant::now();
                if let Some(ns) = slow_ns {
                    search.set_deadline(Some(begin + HOPELESS.max(Duration::from_nanos(ns as u64))));
                }
                // This search is not counted. It replaces what the previous policy left in the caches.
                let before = search.run(Run { uncounted: true, ..root.into() });
                search.set_deadline(None);
                let before = match (before, first) {
                    (Err(SearchError::Stopped(_)), Some(oracle)) if slow_ns.is_some() => {
                        let elapsed_ns = begin.elapsed().as_nanos() as f64;
                        let over_oracle = elapsed_ns / oracle.max(1.0);
                        given_up[at - 1] = Some(GivenUp { policy: contestant.name.clone(), elapsed_ns, over_oracle });
                        continue;
                    }
                    (before, _) => before?,
                };
                let outcome = search.run(Run { uncounted: true, ..root.into() })?;
                spent[at] += begin.elapsed();
                samples[at].add(&before, &outcome, slow_ns, search.records());
            }
            // A driver's threads may still be busy with work of the previous policy, so the next turn runs in reverse order.
            order.reverse();
        }
        let against = samples[0].elapsed.clone();
        let turns = samples.iter().filter(|samples| !samples.is_slow && !samples.elapsed.is_empty()).map(|samples| samples.elapsed.len());
        let turns = turns.min().unwrap_or(1);
        let mut judged = samples.into_iter().map(|samples| samples.judge(&table, &plans, &against));
        let Some(oracle) = judged.next() else { continue };
        let policies = judged.collect();
        all.push(RootEvaluation { edges, table, oracle, policies, turns });
    }
    // A policy may have been given up only at a later root.
    for root in &mut all {
        let mut given_up = given_up.iter();
        root.policies.retain(|_| given_up.next().is_none_or(Option::is_none));
    }
    Ok((Evaluation { roots: all }, given_up.into_iter().flatten().collect()))
}

/// Which of these may differ by chance alone from the next in the order of their times, after so many turns. The first is the oracle, with
/// which all are compared.
fn unclear(samples: &[Samples], turns: usize) -> Vec<bool> {
    let mut order: Vec<usize> = (0..samples.len()).filter(|&at| samples[at].elapsed.len() == turns && !samples[at].is_slow).collect();
    order.sort_by(|&one, &other| median(&samples[one].elapsed).total_cmp(&median(&samples[other].elapsed)));
    let mut unclear = vec![false; samples.len()];
    for pair in order.windows(2) {
        let [one, other] = [pair[0], pair[1]].map(|at| &samples[at]);
        if one.plans != other.plans && !told_apart(one.elapsed.iter().zip(&other.elapsed)) {
            (unclear[0], unclear[pair[0]], unclear[pair[1]]) = (true, true, true);
        }
    }
    unclear
}

/// The results of one policy's turns.
#[derive(Debug, Clone, Default)]
struct Samples {
    elapsed: Vec<f64>,
    total: Vec<f64>,
    decision: Vec<f64>,
    plans: Vec<LevelPlan>,
    /// Whether the first search took more than [`GIVEN_UP`] times as long as the oracle's.
    is_slow: bool,
}

impl Samples {
    /// Adds a search and the one before it, which count as slow if both took more than `slow_ns`.
    fn add(&mut self, before: &Outcome, outcome: &Outcome, slow_ns: Option<f64>, records: &[LevelRecord]) {
        let least = before.elapsed.min(outcome.elapsed);
        self.is_slow |= least > DISTURBED && slow_ns.is_some_and(|ns| least.as_nanos() as f64 > ns);
        self.elapsed.push((outcome.elapsed - outcome.mapping).as_nanos() as f64);
        self.total.push(outcome.elapsed.as_nanos() as f64);
        self.decision.push(records.iter().map(|record| record.decision_ns).sum::<u64>() as f64);
        self.plans = Replay::of(records).plans().to_vec();
    }

    fn judge(self, table: &LevelTable, oracle: &[LevelPlan], against: &[f64]) -> Judged {
        let ratios: Vec<f64> = self.elapsed.iter().zip(against).map(|(own, oracle)| own / oracle.max(1.0)).collect();
        Judged {
            elapsed_ns: median(&self.elapsed),
            turns_ns: self.elapsed,
            total_ns: median(&self.total),
            over_oracle: median(&ratios),
            decision_ns: median(&self.decision),
            table_ns: table.cost_ns(&self.plans),
            directions: Directions::of(table, &self.plans),
            as_oracle: self.plans.iter().zip(oracle).filter(|(own, oracle)| own == oracle).count(),
            plans: self.plans,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::{
        graph::{BuildOptions, Layout},
        search::SearchOptions,
    };
    use socbfs_io::generate::Generator;

    #[test]
    fn policies_that_differ_by_chance_alone_take_more_turns() {
        let sampled =
            |plan: Strategy, elapsed: &[f64]| Samples { plans: vec![plan.plan()], elapsed: elapsed.to_vec(), ..Samples::default() };
        let [one, other] = [[5.0, 5.2, 5.1, 5.3, 5.0], [5.1, 5.1, 5.2, 5.0, 5.2]];
        let of = |third: Samples| {
            unclear(&[sampled(Strategy::Tg, &[1.0; 5]), sampled(Strategy::Tc, &one), third, sampled(Strategy::Bg, &[9.0; 5])], 5)
        };
        assert_eq!(of(sampled(Strategy::Bc, &other)), [true, true, true, false]);
        assert_eq!(of(Samples { is_slow: true, ..sampled(Strategy::Bc, &other) }), [false; 4]);
        // Nothing differs, it is slower each time, or its time is spent.
        assert_eq!(of(sampled(Strategy::Tc, &other)), [false; 4]);
        assert_eq!(of(sampled(Strategy::Bc, &[6.0; 5])), [false; 4]);
        assert_eq!(of(sampled(Strategy::Bc, &other[..4])), [false; 4]);
    }

    #[test]
    fn a_policy_that_a_graph_makes_hopeless_is_stopped_and_named() {
        // A search of a thousand levels, at each of which bottom-up looks at a million vertices.
        let edges = Generator::Grid { width: 1000, height: 1000, deletion: 0.0, seed: 1 }.generate(&|_| {}).unwrap();
        let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
        let contestant = |name: &str| Contestant { name: name.to_owned(), policy: name.parse().unwrap(), runs: LevelDevice::Cpu };
        let contestants = ["tc", "bc", "alpha-beta:15,18"].map(contestant);
        let how = Turns { turns: 1, gives_up: true, ..Turns::default() };
        let mut told = Vec::new();
        let (found, given_up) = evaluate(&mut search, &[0], &Strategy::CPU, &contestants, &how, |share, _| told.push(share)).unwrap();
        assert_eq!(given_up.iter().map(|given_up| given_up.policy.as_str()).collect::<Vec<_>>(), ["bc"]);
        assert!(given_up[0].elapsed_ns > 1e9 && given_up[0].over_oracle > GIVEN_UP, "{given_up:?}");
        assert_eq!(found.roots[0].policies.len(), 2);
        assert!(told.is_sorted() && told.len() > 1, "{told:?}");
    }
}
