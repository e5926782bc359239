//! Statistics over the roots of a run.

use crate::record::{RootRecord, Summary};
use socbfs::stats::{self, RateSummary};

impl Summary {
    /// The statistics of `roots` over a graph of `graph_edges` edges. `None` where there is no root, a root failed validation, or a search
    /// traversed no edge (its speed would have no meaning).
    pub fn new(roots: &[RootRecord], graph_edges: u64) -> Option<Self> {
        let mut seconds = Vec::with_capacity(roots.len());
        let mut mapping = Vec::with_capacity(roots.len());
        for root in roots {
            if !root.validation.passed || root.edges == 0 {
                return None;
            }
            // A clock that did not advance would make a speed infinite; a nanosecond is below every clock's resolution.
            seconds.push(root.seconds?.max(1e-9));
            mapping.push(root.mapping_seconds?);
        }
        let edges: Vec<f64> = roots.iter().map(|root| root.edges as f64).collect();
        let without_mapping: Vec<f64> = seconds.iter().zip(&mapping).map(|(all, mapping)| (all - mapping).max(1e-9)).collect();
        let validation: Vec<f64> = roots.iter().map(|root| root.validation.seconds).collect();
        let teps = |seconds: &[f64]| RateSummary::of(seconds.iter().copied().zip(edges.iter().copied()));
        let times = stats::Summary::of(&seconds)?;
        Some(Self {
            roots: roots.len(),
            seconds: times,
            edges: stats::Summary::of(&edges)?,
            teps: teps(&seconds)?,
            teps_without_mapping: teps(&without_mapping)?,
            mapping_share: mapping.iter().sum::<f64>() / seconds.iter().sum::<f64>(),
            whole_graph_edges_per_second: graph_edges as f64 / times.mean,
            validation_seconds: stats::Summary::of(&validation)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ValidationRecord;

    fn root(edges: u64, seconds: Option<f64>) -> RootRecord {
        RootRecord {
            root: 0,
            sources: 1,
            reached: 2,
            levels: 2,
            edges,
            seconds,
            mapping_seconds: seconds.map(|s| s / 4.0),
            validation: ValidationRecord { passed: seconds.is_some(), violation: None, seconds: 0.5 },
            level_records: Vec::new(),
        }
    }

    #[test]
    fn speeds_are_the_inverse_of_seconds_per_edge() {
        // 10, 20 and 40 edges per second have the harmonic mean 3 / (1/10 + 1/20 + 1/40).
        let s = Summary::new(&[root(10, Some(1.0)), root(10, Some(0.5)), root(20, Some(0.5))], 100).unwrap();
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
        near(s.teps.min, 10.0);
        near(s.teps.median, 20.0);
        near(s.teps.max, 40.0);
        near(s.teps.harmonic_mean, 3.0 / 0.175);
        // Seconds per edge .1, .05, .025: mean .058333, sample sd .0381881.
        near(s.teps.harmonic_stddev.unwrap(), 0.038_188_130_791_298_67 / (0.175_f64 / 3.0).powi(2) / 2_f64.sqrt());
        near(s.mapping_share, 0.25);
        near(s.teps_without_mapping.harmonic_mean, 4.0 / 3.0 * s.teps.harmonic_mean);
        near(s.whole_graph_edges_per_second, 100.0 / (2.0 / 3.0));
        near(s.validation_seconds.median, 0.5);
        near(s.edges.mean, 40.0 / 3.0);
    }

    #[test]
    fn one_root_has_no_standard_deviation() {
        let s = Summary::new(&[root(10, Some(1.0))], 10).unwrap();
        assert_eq!(s.teps.harmonic_stddev, None);
        assert_eq!(s.seconds.stddev, None);
    }

    #[test]
    fn no_summary_is_given_without_validated_roots_and_edges() {
        assert_eq!(Summary::new(&[], 10), None);
        assert_eq!(Summary::new(&[root(10, Some(1.0)), root(10, None)], 10), None);
        assert_eq!(Summary::new(&[root(0, Some(1.0))], 10), None);
    }
}
