//! Which of two runs is faster, by how much, and how certain that is: from searches in turn, or from two records.

use super::comparison::TWO_SIDED_95;
use socbfs::{stats::median, words::general};
use socbfs_io::generate::hash::Numbers;

/// Logarithms of A's time over B's: for each graph, for each root, one of every round. (Of two records: one.)
pub type Logs = Vec<Vec<Vec<f64>>>;

/// B's speed over A's, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// The speed of B over that of A.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The median over the roots, which a disturbed search does not move; its mean over the rounds.
    Medians,
    /// The mean over roots and rounds.
    Means,
}

/// Number of samples of a bootstrap.
const SAMPLES: usize = 400;

/// 97.5 % of Student's distribution with 1, 2, ... degrees of freedom lie below these.
const STUDENT: [f64; 15] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131];
/// The same for more degrees of freedom, by a bound that is a little too wide.
const STUDENT_BEYOND: f64 = 2.12;

impl Effect {
    /// The effect over all graphs, which have the same weight. `None` without roots, and from a single search, which shows no spread.
    ///
    /// The interval is a bootstrap's. Rounds are drawn again with replacement, each as a whole, since the machine drifts from round to
    /// round; and so are roots, since B may be faster from some of them only. The larger of the two errors counts: both have the noise of
    /// a single search. A few rounds vary less among themselves than many would, so the error is widened by their number and by Student's
    /// distribution.
    pub fn new(logs: &Logs, of: Of) -> Option<Self> {
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut random = Numbers::new(0x5eed);
        for graph in logs {
            let rounds = graph.iter().map(Vec::len).min().filter(|&rounds| rounds > 0)?;
            let all = |count: usize| (0..count).collect::<Vec<_>>();
            let mut half = |units: usize, centre: &dyn Fn(&[usize]) -> f64| {
                let student = STUDENT.get(units.checked_sub(2)?).copied().unwrap_or(STUDENT_BEYOND);
                let mut samples: Vec<f64> = (0..SAMPLES).map(|_| centre(&draw(&mut random, units))).collect();
                samples.sort_by(f64::total_cmp);
                // Half of the width of 95 % of the samples: a few samples are full of disturbances, which would decide a standard
                // deviation.
                let half = (samples[SAMPLES - 1 - SAMPLES / 40] - samples[SAMPLES / 40]) / 2.0;
                Some(student / TWO_SIDED_95 * half * (units as f64 / (units - 1) as f64).sqrt())
            };
            let over_rounds = half(rounds, &|drawn| centre(graph, &all(graph.len()), drawn, of));
            let over_roots = half(graph.len(), &|drawn| centre(graph, drawn, &all(rounds), of));
            squares += over_rounds.unwrap_or(0.0).max(over_roots.or(over_rounds)?).powi(2);
            sum += centre(graph, &all(graph.len()), &all(rounds), of);
        }
        let count = logs.len() as f64;
        let (log, half) = (sum / count, squares.sqrt() / count);
        (!logs.is_empty()).then(|| Self { ratio: log.exp(), low: (log - half).exp(), high: (log + half).exp() })
    }

    /// Whether B is slower by more than `percent`, with certainty: at the end of the interval that is in its favour.
    pub fn is_slower_by(&self, percent: f64) -> bool {
        100.0 * (1.0 / self.high - 1.0) > percent
    }
}

/// One sentence: which run is faster by the medians, and by how much. It must not be the slower one by the means, which long searches move.
pub fn verdict(medians: Option<Effect>, means: Option<Effect>) -> String {
    let Some(Effect { ratio, low, high }) = medians else {
        return "No difference is certain: one search shows no spread.".to_owned();
    };
    let percent = |ratio: f64| match 100.0 * (ratio - 1.0) {
        percent if percent < 10.0 => general(percent, 2),
        percent => format!("{percent:.0}"),
    };
    let (word, ratio, least, most, contradicts) = if low > 1.0 {
        ("faster", ratio, low, high, means.is_some_and(|means| means.ratio < 1.0))
    } else if high < 1.0 {
        ("slower", 1.0 / ratio, 1.0 / high, 1.0 / low, means.is_some_and(|means| means.ratio > 1.0))
    } else {
        let (low, high) = (general(low, 4), general(high, 4));
        return format!("No difference that this noise lets see: B's speed over A's is between {low} and {high} (95 %).");
    };
    if contradicts {
        let means = means.map_or_else(String::new, |means| general(means.ratio, 4));
        return format!(
            "No difference is certain: by the median B is {} % {word}, by the mean its speed over A's is {means}.",
            percent(ratio)
        );
    }
    format!("B is {} % {word}, 95 % between {} and {} %.", percent(ratio), percent(least), percent(most))
}

fn centre(graph: &[Vec<f64>], roots: &[usize], rounds: &[usize], of: Of) -> f64 {
    let of_round = |round: usize| {
        let logs: Vec<f64> = roots.iter().map(|&root| graph[root][round]).collect();
        if of == Of::Medians { median(&logs) } else { logs.iter().sum::<f64>() / logs.len() as f64 }
    };
    rounds.iter().map(|&round| of_round(round)).sum::<f64>() / rounds.len().max(1) as f64
}

/// `count` numbers below `count`, with replacement.
fn draw(random: &mut Numbers, count: usize) -> Vec<usize> {
    (0..count).map(|_| (random.bits() % count.max(1) as u64) as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of searches from `roots` roots in `rounds` rounds, whose logarithms have: a drift of 1 % from one run to the next, 2 % of
    /// noise, and a disturbance of 50 % and more of one search in twenty. B is faster by `by`.
    fn simulated(random: &mut Numbers, [roots, rounds]: [usize; 2], by: f64) -> Logs {
        let mut uniform = || (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        // The sum of 12 uniform numbers is nearly normal.
        let mut run = |by: f64| {
            let drift = 0.01 * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0);
            let mut search = || {
                let noise = 0.02 * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0);
                let disturbance = if uniform() < 0.05 { -0.5 * uniform().max(1e-9).ln() } else { 0.0 };
                drift + noise + disturbance - by
            };
            (0..roots).map(|_| search()).collect::<Vec<f64>>()
        };
        let runs: Vec<[Vec<f64>; 2]> = (0..rounds).map(|_| [run(0.0), run(by)]).collect();
        vec![(0..roots).map(|root| runs.iter().map(|[a, b]| a[root] - b[root]).collect()).collect()]
    }

    /// The share of simulated comparisons in which B is called faster, and slower.
    fn shares(size: [usize; 2], by: f64) -> [f64; 2] {
        const TRIALS: usize = 200;
        let mut random = Numbers::new(7);
        let mut called = [0; 2];
        for _ in 0..TRIALS {
            let logs = simulated(&mut random, size, by);
            let said = verdict(Effect::new(&logs, Of::Medians), None);
            called[0] += usize::from(said.contains("faster"));
            called[1] += usize::from(said.contains("slower"));
        }
        called.map(|count| count as f64 / TRIALS as f64)
    }

    #[test]
    fn verdicts_on_simulated_runs() {
        // Where A is B, at most one verdict in twenty says otherwise.
        for size in [[16, 3], [16, 5], [8, 10]] {
            let [faster, slower] = shares(size, 0.0);
            println!("{} roots, {} rounds, no difference: {faster} {slower}", size[0], size[1]);
            assert!(faster + slower <= 0.05, "{size:?}: {faster} {slower}");
        }
        // A difference of 3 % is seen in five rounds of 16 roots by four comparisons in five, and one of 2 % in ten rounds.
        for (size, by, power) in [([16, 5], 0.03, 0.75), ([16, 10], 0.02, 0.8), ([16, 5], -0.03, 0.75)] {
            let [faster, slower] = shares(size, by);
            println!("{} roots, {} rounds, {by}: {faster} {slower}", size[0], size[1]);
            let (right, wrong) = if by > 0.0 { (faster, slower) } else { (slower, faster) };
            assert!(right >= power && wrong <= 0.01, "{size:?} {by}: {faster} {slower}");
        }
    }
}
