//! Compares policies with the per-level oracle: their decisions, and what these cost.

use crate::record::{Directions, Evaluation, Judged, LevelTable, RootEvaluation};
use std::time::Instant;

use super::levels::{self, Turns};
use socbfs::{
    bfs::{Direction, LevelPlan, Strategy},
    graph::Vertex,
    policy::{LevelDevice, Policy, Replay},
    search::{Search, SearchError},
    stats::median,
};

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
    /// Counts the directions of `plans`. Level 0 does not count, since every plan has the same direction there. The two times of a level
    /// are those of the fastest strategy of each direction on the device of the plan.
    pub fn of(table: &LevelTable, plans: &[LevelPlan]) -> Option<Self> {
        let mut all = Self::default();
        for (times, plan) in table.levels.iter().zip(plans).skip(1) {
            let on_gpu = Strategy::of(*plan).is_some_and(Strategy::is_gpu);
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

/// Judges `contestants` by searches from `roots`. In each turn every policy searches once. `done` is called after each root with the number
/// of roots done. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] if the search was not set up for a policy or a strategy, or a device fails.
pub fn evaluate(
    search: &mut Search<'_>,
    roots: &[Vertex],
    strategies: &[Strategy],
    contestants: &[Contestant],
    how: &Turns,
    mut done: impl FnMut(usize),
) -> Result<Evaluation, SearchError> {
    let mut all = Vec::new();
    for &root in roots {
        let table = levels::measure(search, root, strategies, how)?;
        let edges = search.run(root)?.edges;
        let (plans, _) = table.oracle();
        let replay = Replay::new(&plans).running_ahead();
        let oracle = Contestant { name: "oracle".into(), policy: Policy::Replay(replay), runs: LevelDevice::Cpu };
        let everyone: Vec<&Contestant> = std::iter::once(&oracle).chain(contestants).collect();
        let mut samples = vec![Samples::default(); everyone.len()];
        let mut order: Vec<usize> = (0..everyone.len()).collect();
        let (begin, mut turns) = (Instant::now(), 0);
        while turns < how.turns.max(1) && (turns == 0 || begin.elapsed() < how.contest) {
            turns += 1;
            for &at in &order {
                let (contestant, samples) = (everyone[at], &mut samples[at]);
                search.set_policy(contestant.policy.clone(), contestant.runs)?;
                // This search is not counted. It replaces what the previous policy left in the caches.
                search.run_uncounted(root)?;
                let outcome = search.run_uncounted(root)?;
                samples.elapsed.push((outcome.elapsed - outcome.mapping).as_nanos() as f64);
                samples.total.push(outcome.elapsed.as_nanos() as f64);
                samples.decision.push(search.records().iter().map(|record| record.decision_ns).sum::<u64>() as f64);
                samples.plans = Replay::of(search.records()).plans().to_vec();
            }
            // A driver's threads may still be busy with work of the previous policy, so the next turn runs in reverse order.
            order.reverse();
        }
        let against = samples[0].elapsed.clone();
        let mut judged = samples.into_iter().map(|samples| samples.judge(&table, &plans, &against));
        let Some(oracle) = judged.next() else { continue };
        let policies = judged.collect();
        all.push(RootEvaluation { edges, table, oracle, policies, turns });
        done(all.len());
    }
    Ok(Evaluation { roots: all })
}

/// The results of one policy's turns.
#[derive(Debug, Clone, Default)]
struct Samples {
    elapsed: Vec<f64>,
    total: Vec<f64>,
    decision: Vec<f64>,
    plans: Vec<LevelPlan>,
}

impl Samples {
    fn judge(self, table: &LevelTable, oracle: &[LevelPlan], against: &[f64]) -> Judged {
        let ratios: Vec<f64> = self.elapsed.iter().zip(against).map(|(own, oracle)| own / oracle.max(1.0)).collect();
        Judged {
            elapsed_ns: median(&self.elapsed),
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
