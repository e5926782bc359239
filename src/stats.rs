//! Order statistics and means of samples, by the formulas of Graph500's output.

use serde::{Deserialize, Serialize};

/// Statistics of one set of samples, in the samples' unit.
///
/// ```
/// use socbfs::stats::Summary;
///
/// let times = Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
/// assert_eq!((times.min, times.median, times.max, times.mean), (1.0, 2.5, 4.0, 2.5));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of samples.
    pub count: usize,
    /// Smallest sample.
    pub min: f64,
    /// First quartile: the mean of x\[(n-1)/4\] and x\[n/4\] of the sorted samples x, with integer divisions.
    pub first_quartile: f64,
    /// Median.
    pub median: f64,
    /// Third quartile: computed as the first quartile, but counted from the other end.
    pub third_quartile: f64,
    /// Largest sample.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1 in the denominator, 0 if it is within the rounding of the samples; `None` for a single sample.
    pub stddev: Option<f64>,
}

impl Summary {
    /// Summarises `samples`, in any order. `None` if there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let count = samples.len();
        let last = count.checked_sub(1)?;
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mean = samples.iter().sum::<f64>() / count as f64;
        let squares: f64 = samples.iter().map(|sample| (sample - mean) * (sample - mean)).sum();
        // A constant that was computed again for every sample differs in its last bits. Such rounding does not count as spread.
        let rounding = f64::EPSILON * count as f64 * sorted[0].abs().max(sorted[last].abs());
        let middle_of = |i: usize, j: usize| (sorted[i] + sorted[j]) * 0.5;
        Some(Self {
            count,
            min: sorted[0],
            first_quartile: middle_of(last / 4, count / 4),
            median: middle_of(last / 2, count / 2),
            third_quartile: middle_of(last - last / 4, last - count / 4),
            max: sorted[last],
            mean,
            stddev: (last > 0).then(|| (squares / last as f64).sqrt()).map(|spread| if spread <= rounding { 0.0 } else { spread }),
        })
    }
}

/// The median of `samples`, in any order (the mean of the two middle samples if their number is even; 0 if there are none).
pub fn median(samples: &[f64]) -> f64 {
    Summary::of(samples).map_or(0.0, |summary| summary.median)
}

/// Statistics of a rate (such as TEPS) over several runs. The amounts of work differ between runs, so the statistics are computed on the
/// inverse, the time per unit of work, and inverted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateSummary {
    /// Number of runs.
    pub count: usize,
    /// Lowest rate.
    pub min: f64,
    /// First quartile: the inverse of the third quartile of the times.
    pub first_quartile: f64,
    /// Median.
    pub median: f64,
    /// Third quartile: the inverse of the first quartile of the times.
    pub third_quartile: f64,
    /// Highest rate.
    pub max: f64,
    /// Harmonic mean.
    pub harmonic_mean: f64,
    /// Standard error of the harmonic mean, sd / (mean^2 sqrt(n - 1)) of the times (Norris, "The standard errors of the geometric
    /// and harmonic means and their application to index numbers", 1940), which Graph500 prints as its standard deviation.
    /// `None` for a single run.
    pub harmonic_stddev: Option<f64>,
}

impl RateSummary {
    /// Summarises runs given as (seconds, amount of work). `None` if there is no run, or if a run has no work or took no time and therefore
    /// has no rate.
    pub fn of(runs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let times: Vec<f64> = runs.into_iter().map(|(seconds, amount)| seconds / amount).collect();
        if !times.iter().all(|time| time.is_finite() && *time > 0.0) {
            return None;
        }
        let times = Summary::of(&times)?;
        Some(Self {
            count: times.count,
            min: 1.0 / times.max,
            first_quartile: 1.0 / times.third_quartile,
            median: 1.0 / times.median,
            third_quartile: 1.0 / times.first_quartile,
            max: 1.0 / times.min,
            harmonic_mean: 1.0 / times.mean,
            harmonic_stddev: times.stddev.map(|stddev| stddev / (times.mean * times.mean * ((times.count - 1) as f64).sqrt())),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, expected: f64) {
        assert!((got - expected).abs() <= 1e-12 * expected.abs(), "{got} is not {expected}");
    }

    #[test]
    fn no_samples_give_no_summary() {
        assert_eq!(Summary::of(&[]), None);
        assert_eq!(RateSummary::of([]), None);
    }

    #[test]
    fn rounding_errors_are_not_reported_as_spread() {
        let power = |seconds: f64| 4.1 * seconds / seconds;
        let of_constant = Summary::of(&[power(0.1), power(0.3), power(0.7), 4.1, 4.100000000000001]).unwrap();
        assert_eq!(of_constant.stddev, Some(0.0));
        let small = Summary::of(&[4.1, 4.1 + 1e-9]).unwrap();
        assert!(small.stddev.unwrap() > 5e-10, "{small:?}");
    }

    #[test]
    fn one_sample_has_no_deviation() {
        let one = Summary::of(&[3.0]).unwrap();
        let same = [one.min, one.first_quartile, one.median, one.third_quartile, one.max, one.mean];
        assert_eq!((one.count, same, one.stddev), (1, [3.0; 6], None));
        let rate = RateSummary::of([(2.0, 8.0)]).unwrap();
        assert_eq!((rate.min, rate.median, rate.harmonic_mean, rate.harmonic_stddev), (4.0, 4.0, 4.0, None));
    }

    #[test]
    fn four_samples_are_summarised() {
        // Sorted 1 2 4 9: quartiles (x0 + x1) / 2 and (x3 + x2) / 2; mean 4; squares 9 + 4 + 0 + 25 = 38.
        let four = Summary::of(&[9.0, 1.0, 4.0, 2.0]).unwrap();
        assert_eq!((four.min, four.first_quartile, four.median, four.third_quartile, four.max), (1.0, 1.5, 3.0, 6.5, 9.0));
        assert_eq!(four.mean, 4.0);
        close(four.stddev.unwrap(), (38.0_f64 / 3.0).sqrt());
    }

    #[test]
    fn five_samples_are_summarised() {
        // n = 5: (x1 + x1) / 2, x2, x3.
        let five = Summary::of(&[50.0, 10.0, 40.0, 20.0, 30.0]).unwrap();
        assert_eq!((five.first_quartile, five.median, five.third_quartile, five.mean), (20.0, 30.0, 40.0, 30.0));
        close(five.stddev.unwrap(), 250.0_f64.sqrt());
    }

    #[test]
    fn sixty_four_samples_are_summarised() {
        // n = 64: (x15 + x16) / 2, (x31 + x32) / 2, (x48 + x47) / 2.
        let samples: Vec<f64> = (0..64).rev().map(f64::from).collect();
        let all = Summary::of(&samples).unwrap();
        assert_eq!((all.first_quartile, all.median, all.third_quartile, all.mean), (15.5, 31.5, 47.5, 31.5));
    }

    #[test]
    fn rates_are_inverted_times() {
        // Times per edge 1/2, 1/4, 1/4: mean 1/3, sd sqrt((1/36 + 2/144) / 2) = sqrt(1/48).
        let rate = RateSummary::of([(1.0, 2.0), (2.0, 8.0), (4.0, 16.0)]).unwrap();
        assert_eq!((rate.count, rate.min, rate.median, rate.max), (3, 2.0, 4.0, 4.0));
        // Quartiles of the times 1/4 1/4 1/2: (x0 + x0) / 2 and (x2 + x2) / 2.
        assert_eq!((rate.first_quartile, rate.third_quartile), (2.0, 4.0));
        close(rate.harmonic_mean, 3.0);
        close(rate.harmonic_stddev.unwrap(), (1.0_f64 / 48.0).sqrt() * 9.0 / 2.0_f64.sqrt());
    }

    #[test]
    fn samples_without_work_or_time_give_no_rates() {
        assert_eq!(RateSummary::of([(1.0, 2.0), (1.0, 0.0)]), None);
        assert_eq!(RateSummary::of([(0.0, 2.0)]), None);
        assert_eq!(RateSummary::of([(0.0, 0.0)]), None);
    }
}
