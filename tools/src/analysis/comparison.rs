//! Policies compared with the strategies of every level (Zhang 2018, tables 5 and 6; SURF 2022, tables 3 and 4).

use crate::record::{Directions, Judged, PolicyComparison, Remapped, RootEvaluation};
use socbfs::Layout;

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

    /// Directions of the result that `judged` selects for each root, summed (`None`: only one direction was measured on its device).
    pub fn directions(&self, judged: impl Fn(&RootEvaluation) -> &Judged) -> Option<Directions> {
        let all: Option<Vec<Directions>> = self.evaluation.roots.iter().map(|root| judged(root).directions).collect();
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
