//! Policies compared with the strategies of every level (Zhang 2018, tables 5 and 6; SURF 2022, tables 3 and 4).

use crate::record::{Dropped, DroppedInput, PolicyComparison, Remapped};

use crate::{
    record::{Directions, Judged, RootEvaluation},
    record::{LevelTable, LevelTimes},
};
use socbfs::{
    bfs::Direction,
    graph::Layout,
    policy::{
        Mlp,
        mlp::{NetworkKind, SURF_INPUTS, surf_inputs},
    },
};

impl PolicyComparison {
    /// Index of `policy` among the policies: by its whole name, else by its name without parameters.
    pub fn place(&self, policy: &str) -> Option<usize> {
        let whole = self.policies.iter().position(|name| name == policy);
        whole.or_else(|| self.policies.iter().position(|name| name.split(':').next() == Some(policy)))
    }

    /// The mean of `of` over the roots, in its unit.
    pub fn mean_ns(&self, policy: &str, of: fn(&Judged) -> f64) -> Option<f64> {
        self.mean_of(self.place(policy)?, of)
    }

    /// As [`mean_ns`](Self::mean_ns), for the policy at index `place`.
    pub fn mean_of(&self, place: usize, of: fn(&Judged) -> f64) -> Option<f64> {
        let roots = &self.evaluation.roots;
        (!roots.is_empty()).then(|| roots.iter().map(|root| of(&root.policies[place])).sum::<f64>() / roots.len() as f64)
    }

    /// MTEPS per watt: measured, else computed from the powers of the strategies (`None`: neither is known).
    pub fn mteps_per_watt(&self, policy: &str) -> Option<f64> {
        let place = self.place(policy)?;
        if let Some(energy) = &self.energy {
            let of = energy.policies.iter().find(|of| of.policy == self.policies[place])?;
            return Some(of.summary.as_ref()?.mteps_per_watt.mean);
        }
        Some(self.mteps(policy)? / self.watts_of(|root| &root.policies[place])?)
    }

    /// Mean power while the plans of `judged` run, computed from the powers of the strategies (`None`: not known).
    pub fn watts_of(&self, judged: impl Fn(&RootEvaluation) -> &Judged) -> Option<f64> {
        let (watts, roots) = (self.watts?, &self.evaluation.roots);
        let joules: f64 = roots.iter().map(|root| root.table.joules(&judged(root).plans, &watts)).sum::<Option<f64>>()?;
        // The time of the levels alone, as for the energy: the powers do not cover deciding and mapping back.
        let seconds: f64 = roots.iter().map(|root| Some(judged(root).table_ns? / 1e9)).sum::<Option<f64>>()?;
        Some(joules / seconds).filter(|watts| *watts > 0.0)
    }

    /// MTEPS of `policy` by Graph500's rule: harmonic mean over the roots.
    pub fn mteps(&self, policy: &str) -> Option<f64> {
        let place = self.place(policy)?;
        self.mteps_of(|root| &root.policies[place])
    }

    /// MTEPS of the result that `judged` selects for each root: harmonic mean over the roots.
    pub fn mteps_of(&self, judged: impl Fn(&RootEvaluation) -> &Judged) -> Option<f64> {
        let roots = &self.evaluation.roots;
        let ns_per_edge: f64 = roots.iter().map(|root| judged(root).total_ns / root.edges as f64).sum();
        Some(1e3 * roots.len() as f64 / ns_per_edge).filter(|mteps| mteps.is_finite() && *mteps > 0.0)
    }

    /// Directions of the policy at index `place`, summed over the roots (`None`: only one direction was measured on its device).
    pub fn directions(&self, place: usize) -> Option<Directions> {
        let all: Option<Vec<Directions>> = self.evaluation.roots.iter().map(|root| root.policies[place].directions).collect();
        all.map(|all| all.into_iter().fold(Directions::default(), Directions::and))
    }
}

/// Vertices that the construction of `layout` dropped, and the time that renumbering took.
pub fn remapped(layout: &Layout) -> Remapped {
    let stats = layout.stats();
    let after = stats.vertices - stats.isolated;
    let steps = layout.steps().iter().filter(|step| matches!(&*step.step, "order vertices" | "renumber vertices"));
    let seconds: f64 = steps.map(|step| step.seconds).sum();
    Remapped {
        before: stats.vertices,
        after,
        saved: stats.isolated as f64 / stats.vertices.max(1) as f64,
        renumbered: layout.is_mapped(),
        seconds,
        share: seconds / layout.construction_time().as_secs_f64().max(1e-9),
    }
}

/// Names of SURF's inputs, in its order.
const INPUTS: [&str; SURF_INPUTS] = ["m_d", "p_h", "s_f", "c_f", "r_f", "r_u"];

/// Measures what each input is worth to SURF's network on the levels of `graphs` (the name and the tables of each), in two ways: with the
/// shipped network, whose input is held at its mean over all of these levels, and with networks trained again without the input. A network
/// that was trained again judges only graphs on which it was not trained. `progress` is called with the number of trainings done and their
/// total.
pub fn dropped_inputs(graphs: &[(&str, &[LevelTable])], progress: &dyn Fn(usize, usize)) -> Dropped {
    let Ok(whole) = Mlp::shipped(NetworkKind::Surf) else { return Dropped::default() };
    let levels = || graphs.iter().flat_map(|(_, tables)| tables.iter()).flat_map(decided);
    let count = levels().count().max(1) as f64;
    let mean = |input: usize| levels().map(|(times, growth)| f64::from(surf_inputs(&times.stats, growth)[input])).sum::<f64>() / count;
    let accuracy = |network: &Mlp| graphs.iter().map(|(_, tables)| accuracy(network, tables)).collect();
    let held = |(input, name): (usize, &&str)| {
        let mut weights = whole.weights();
        for unit in &mut weights.hidden {
            unit.bias += std::mem::take(&mut unit.weights[input]) * mean(input) as f32;
        }
        let network = Mlp::new(&weights).ok()?;
        Some(DroppedInput { input: (*name).to_owned(), accuracy: accuracy(&network), retrained: Vec::new() })
    };
    let first = DroppedInput { input: "none".to_owned(), accuracy: accuracy(&whole), retrained: Vec::new() };
    let mut inputs: Vec<DroppedInput> = std::iter::once(first).chain(INPUTS.iter().enumerate().filter_map(held)).collect();
    let places = std::iter::once(None).chain((0..SURF_INPUTS).map(Some));
    let mut not_retrained = None;
    for (done, (input, without)) in inputs.iter_mut().zip(places).enumerate() {
        progress(done, 1 + SURF_INPUTS);
        match retrained(graphs, without) {
            Ok(accuracies) => input.retrained = accuracies,
            Err(reason) => {
                not_retrained = Some(reason);
                break;
            }
        }
    }
    Dropped { inputs, not_retrained }
}

/// The accuracy on each graph of networks trained without one input (`None`: with all). The graphs are divided into parts; each part is
/// judged by a network trained on the others. `Err` holds the reason why networks could not be trained.
#[cfg(feature = "train")]
fn retrained(graphs: &[(&str, &[LevelTable])], without: Option<usize>) -> Result<Vec<Option<f64>>, String> {
    use crate::train::{FitOptions, LEAST_GRAPHS, SearchSample, fit, fit_without};

    let samples: Vec<Vec<SearchSample>> = graphs
        .iter()
        .map(|(name, tables)| {
            tables.iter().filter_map(|table| SearchSample::new(name, table, |times| times.directions_ns(false))).collect()
        })
        .collect();
    let usable = samples.iter().filter(|searches| !searches.is_empty()).count();
    if usable <= LEAST_GRAPHS {
        return Err(format!("training without an input takes at least {} graphs, but only {usable} are usable here", LEAST_GRAPHS + 1));
    }
    let options = FitOptions { steps: STEPS, ..FitOptions::default() };
    let parts = parts(usable);
    // Graphs without usable samples belong to no part; the network that judges the first part judges them as well.
    let mut usable_before = 0;
    let mut part_of = Vec::with_capacity(samples.len());
    for searches in &samples {
        part_of.push(if searches.is_empty() { 0 } else { usable_before % parts });
        usable_before += usize::from(!searches.is_empty());
    }
    let mut all = vec![None; graphs.len()];
    for part in 0..parts {
        let learn: Vec<&SearchSample> =
            samples.iter().zip(&part_of).filter(|(_, of)| **of != part).flat_map(|(searches, _)| searches).collect();
        let network = match without {
            Some(input) => fit_without(input, &learn, &options, &|_| ()),
            None => fit(NetworkKind::Surf, &learn, &options, &|_| ()),
        };
        let network = network.map_err(|error| error.to_string())?;
        for ((accuracy_of, (_, tables)), _) in all.iter_mut().zip(graphs).zip(&part_of).filter(|(_, of)| **of == part) {
            *accuracy_of = accuracy(&network, tables);
        }
    }
    Ok(all)
}

/// Number of parts for `usable` graphs (more than `LEAST_GRAPHS`): without any one part, at least `LEAST_GRAPHS` graphs remain.
#[cfg(feature = "train")]
fn parts(usable: usize) -> usize {
    PARTS.max(usable.div_ceil(usable - crate::train::LEAST_GRAPHS)).min(usable)
}

#[cfg(not(feature = "train"))]
fn retrained(_: &[(&str, &[LevelTable])], _: Option<usize>) -> Result<Vec<Option<f64>>, String> {
    Err("this build has no training (feature train)".to_owned())
}

/// Steps of each training, few because there are dozens of trainings and each has few levels to learn from.
#[cfg(feature = "train")]
const STEPS: usize = 500;
/// Number of parts where there are enough graphs. A network trained on the other parts judges each part.
#[cfg(feature = "train")]
const PARTS: usize = 8;

/// Share of levels for which `network` chooses the direction that is faster on the CPU (`None`: a level has one direction only, or there
/// are no levels).
fn accuracy(network: &Mlp, tables: &[LevelTable]) -> Option<f64> {
    let mut judged = Directions::default();
    for (times, growth) in tables.iter().flat_map(decided) {
        let [top_down, bottom_up] = times.directions_ns(false)?;
        let bottom_up_chosen = network.is_bottom_up(&times.stats, growth);
        judged.count(if bottom_up_chosen { Direction::BottomUp } else { Direction::TopDown }, top_down, bottom_up);
    }
    (judged.levels > 0).then(|| judged.accuracy())
}

/// The levels of one search without the first, whose direction is given; each with the growth of the frontier at the level before it.
fn decided(table: &LevelTable) -> impl Iterator<Item = (&LevelTimes, i64)> {
    let growth = |times: &LevelTimes| times.stats.frontier_vertices as i64 - times.stats.previous_frontier_vertices as i64;
    table.levels.windows(2).map(move |pair| (&pair[1], growth(&pair[0])))
}

#[cfg(all(test, feature = "train"))]
mod tests {
    use super::parts;
    use crate::train::LEAST_GRAPHS;

    #[test]
    fn every_partition_leaves_enough_training_graphs() {
        for usable in LEAST_GRAPHS + 1..100 {
            let parts = parts(usable);
            assert!(parts <= usable && usable - usable.div_ceil(parts) >= LEAST_GRAPHS, "{usable} graphs in {parts} parts");
        }
        assert_eq!(parts(6), 6);
        assert_eq!(parts(80), 8);
    }
}
