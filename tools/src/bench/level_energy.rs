//! Energy of each level of a search, measured: the search is repeated while the changes of an energy counter are watched.
//!
//! Between two of its changes a counter gains the energy of whatever ran in that time: some levels of some searches, whole or in part, and
//! what lies between two searches. Each pair of changes gives one equation, and the powers of the levels are the least squares of all of
//! them. A counter shows the energy up to its last change, so the differences of reads at the borders of levels would not do: a level that
//! is shorter than the time between two changes would get the mean power of that time. A pause of random length after each search keeps
//! the changes independent of the levels. No read is part of a search: a thread of the meter makes them all.

use std::{
    mem::discriminant,
    time::{Duration, Instant},
};

use socbfs::{LevelRecord, Run, Search, Vertex, stats::median};
use socbfs_io::generate::hash::Numbers;
use socbfs_power::{Change, Joules, Meter, TooSlow, monotonic};

use super::MeasureError;

/// Levels are known well enough if the half-width of the 95 % interval is this share of their energy.
const KNOWN: f64 = 0.05;
/// Parts of the measurement, each left out once, whose results give the standard error (the jackknife).
const PARTS: usize = 16;
/// Student's t for a 95 % interval with one less degree of freedom than there are parts.
const STUDENT: f64 = 2.13;
/// Changes of the slowest counter in a batch. A part has a batch in each round.
const BATCH: u32 = 64;
/// Most columns of the equations: their number grows with the square.
const MOST: usize = 256;
/// A change counts if the two reads around it are at most this share of the refresh interval apart.
const CERTAIN: u64 = 4;
/// Times of a level that are kept for their median.
const TIMES: usize = 4096;
/// Marks time in which no known level ran.
const UNKNOWN: usize = usize::MAX;

/// The energy of the levels of one search.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelEnergies {
    /// What the counted sensors cover together.
    pub scope: String,
    /// The counted sensors.
    pub sensors: Vec<String>,
    /// Searches that were measured.
    pub searches: u64,
    /// Seconds that they took, with what lies between them.
    pub seconds: f64,
    /// Levels whose energy is known to 5 %, and all of them.
    pub known: [usize; 2],
    /// For each record of the search (`None`: the level ran together with the one before, whose energy includes it, or it took no time that
    /// could be measured, or so little that the estimate of its energy is not above 0).
    pub levels: Vec<Option<LevelEnergy>>,
}

/// The energy of a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelEnergy {
    /// Median time while the energy was measured.
    pub seconds: f64,
    /// Energy in this time, that of the idle machine included.
    pub joules: Joules,
    /// Half-width of the 95 % interval: that of the standard error, and how far a level may be mistaken for its neighbours.
    pub within: Joules,
}

impl LevelEnergy {
    /// Whether the energy is known to 5 %.
    pub fn is_known(&self) -> bool {
        self.within.0 <= KNOWN * self.joules.0
    }
}

/// Why energy by level could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LevelEnergyError {
    /// A search could not run.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// The sensors are too slow.
    #[error(transparent)]
    TooSlow(#[from] TooSlow),
    /// The search has too many levels.
    #[error("the search has {levels} levels, and energy by level is measured for at most {}", MOST - 2)]
    TooMany {
        /// Its levels.
        levels: usize,
    },
    /// There is no level.
    #[error("the search has no level")]
    NoLevel,
    /// Searches went another way than the first one.
    #[error("{0} of {1} repeated searches had other levels, or other directions or devices for them, than the one that is shown")]
    Different(u64, u64),
    /// The changes of the counters were not seen.
    #[error("the changes of {0} were not seen in time: something else keeps the CPUs busy")]
    NotSeen(String),
}

/// Measures the energy of the levels of `search` from `sources`, of which it has just made one run, until all levels are known to 5 % or
/// `longest` is over. `passed` is called now and then, with the time.
///
/// # Errors
/// [`LevelEnergyError`].
pub fn measure_level_energies(
    search: &mut Search<'_>,
    sources: &[Vertex],
    meter: &Meter,
    longest: Duration,
    passed: &mut dyn FnMut(Duration),
) -> Result<LevelEnergies, LevelEnergyError> {
    let mut watch = meter.watch()?;
    let shown = search.records().to_vec();
    let columns = columns(&shown);
    let levels = columns.last().ok_or(LevelEnergyError::NoLevel)? + 1;
    if levels + 2 > MOST {
        return Err(LevelEnergyError::TooMany { levels });
    }
    let rails: Vec<(usize, String, u64)> = meter
        .picks()
        .enumerate()
        .filter(|(_, pick)| pick.counted)
        .map(|(rail, pick)| (rail, pick.channel.name(), pick.channel.refresh.as_nanos() as u64))
        .collect();
    let slowest = meter.slowest();
    let mut fits: Vec<Fit> = rails.iter().map(|_| Fit::new(levels + 2)).collect();
    let (mut spans, mut changes) = (Vec::with_capacity(1 << 16), Vec::with_capacity(1 << 16));
    let (mut searches, mut different, mut random) = (0, 0, Numbers::new(sources.first().map_or(0, |&root| root.into())));
    let mut times: Vec<Vec<f64>> = vec![Vec::with_capacity(TIMES); levels];
    let begin = Instant::now();
    let mut batch = 0;
    let estimates = loop {
        spans.clear();
        let until = Instant::now() + slowest * BATCH;
        while Instant::now() < until || spans.is_empty() {
            let called = monotonic();
            // Counting what several sources reach is a part of the end of a search.
            let outcome = search.run(Run { uncounted: sources.len() == 1, ..sources.into() });
            let outcome = outcome.map_err(MeasureError::from)?;
            let returned = monotonic();
            let found = called + (outcome.elapsed.saturating_sub(outcome.mapping)).as_nanos() as u64;
            searches += 1;
            if !is_alike(search.records(), &shown) {
                different += 1;
                spans.push(Span { begin: called, end: returned, column: UNKNOWN });
            } else {
                let mut at = found.saturating_sub(search.records().iter().map(|record| record.elapsed_ns).sum());
                let first = spans.len();
                for (record, &column) in search.records().iter().zip(&columns) {
                    match spans.last_mut().filter(|last: &&mut Span| last.column == column && last.end == at) {
                        Some(last) => last.end += record.elapsed_ns,
                        None => spans.push(Span { begin: at, end: at + record.elapsed_ns, column }),
                    }
                    at += record.elapsed_ns;
                }
                for span in &spans[first..] {
                    let times = &mut times[span.column];
                    if times.len() < TIMES {
                        times.push((span.end - span.begin) as f64 / 1e9);
                    }
                }
                spans.push(Span { begin: at, end: returned, column: levels });
            }
            let pause = Duration::from_nanos(random.bits() % (slowest.as_nanos() as u64).max(1));
            let paused = Instant::now();
            while paused.elapsed() < pause {
                std::hint::spin_loop();
            }
        }
        changes.clear();
        watch.take(&mut changes);
        for ((rail, _, refresh), fit) in rails.iter().zip(&mut fits) {
            fit.add(batch % PARTS, &spans, changes.iter().filter(|change| change.rail == *rail), *refresh, levels);
        }
        batch += 1;
        passed(begin.elapsed());
        if batch % PARTS != 0 && begin.elapsed() < longest {
            continue;
        }
        let runs = searches - different;
        if runs > 0 && batch >= PARTS {
            let seconds: Vec<f64> = times.iter().map(|times| median(times)).collect();
            let estimates = estimates(&fits, &seconds);
            if begin.elapsed() >= longest || estimates.iter().all(|level| level.is_some_and(|level| level.is_known())) {
                break estimates;
            }
        } else if begin.elapsed() >= longest {
            break vec![None; levels];
        }
    };
    if different * 2 > searches {
        return Err(LevelEnergyError::Different(different, searches));
    }
    if let Some(((_, name, _), _)) = rails.iter().zip(&fits).find(|(_, fit)| fit.equations == 0) {
        return Err(LevelEnergyError::NotSeen(name.clone()));
    }
    let known = estimates.iter().flatten().filter(|level| level.is_known()).count();
    let is_first = |place: usize| place == 0 || columns[place] != columns[place - 1];
    Ok(LevelEnergies {
        scope: meter.scope().to_owned(),
        sensors: meter.sensors(),
        searches,
        seconds: begin.elapsed().as_secs_f64(),
        known: [known, levels],
        levels: columns.iter().enumerate().map(|(place, &column)| estimates[column].filter(|_| is_first(place))).collect(),
    })
}

/// The column of each record: levels that ran together share one.
fn columns(records: &[LevelRecord]) -> Vec<usize> {
    let mut next = 0;
    let column = |(place, record): (usize, &LevelRecord)| {
        next += usize::from(place > 0 && !record.with_previous);
        next
    };
    records.iter().enumerate().map(column).collect()
}

/// Whether a search did the same in the same levels.
fn is_alike(found: &[LevelRecord], shown: &[LevelRecord]) -> bool {
    let what = |record: &LevelRecord| {
        (record.stats.level, record.levels, record.with_previous, record.plan.direction, discriminant(&record.plan.placement))
    };
    found.iter().map(what).eq(shown.iter().map(what))
}

/// A time in which one thing ran. Spans follow one another; what lies between two of them is a pause.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    begin: u64,
    end: u64,
    column: usize,
}

/// The normal equations of a counter, for each part of the measurement. The columns are the seconds of each level, of the end of a search,
/// and of a pause; what is sought is the power in each.
#[derive(Debug)]
struct Fit {
    columns: usize,
    /// Products of the columns (lower triangle), then those with the energy, of each part.
    parts: Vec<Vec<f64>>,
    equations: u64,
    /// Nanoseconds between the two reads around the changes that count, summed.
    gap: u64,
}

impl Fit {
    fn new(columns: usize) -> Self {
        Self { columns, parts: vec![vec![0.0; columns * (columns + 1)]; PARTS], equations: 0, gap: 0 }
    }

    /// Adds the equations of the changes that lie in `spans`. `levels` is the column of the end of a search.
    fn add<'c>(&mut self, part: usize, spans: &[Span], changes: impl Iterator<Item = &'c Change>, refresh: u64, levels: usize) {
        let (Some(first), Some(last)) = (spans.first(), spans.last()) else { return };
        let mut before: Option<(u64, f64)> = None;
        let mut place = 0;
        let mut row = vec![0.0; self.columns];
        for change in changes {
            let Some(joules) = change.joules else {
                before = None;
                continue;
            };
            let gap = change.before - change.after;
            let at = change.after + gap / 2;
            if gap > refresh / CERTAIN || at < first.begin || at > last.end {
                continue;
            }
            if let Some((from, since)) = before {
                while spans[place].end <= from {
                    place += 1;
                }
                if ran(&spans[place..], [from, at], &mut row, levels) {
                    self.equation(part, &row, joules - since);
                    self.gap += gap;
                }
            }
            before = Some((at, joules));
        }
    }

    fn equation(&mut self, part: usize, row: &[f64], joules: f64) {
        let part = &mut self.parts[part];
        for (i, x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
            for (product, y) in part[i * self.columns..].iter_mut().zip(&row[..=i]) {
                *product += x * y;
            }
            part[self.columns * self.columns + i] += x * joules;
        }
        self.equations += 1;
    }

    /// The powers by all parts but one (`None`: by all).
    fn solve(&self, without: Option<usize>) -> Option<Vec<f64>> {
        let mut sum = vec![0.0; self.columns * (self.columns + 1)];
        for (_, part) in self.parts.iter().enumerate().filter(|(place, _)| Some(*place) != without) {
            sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        let (products, energies) = sum.split_at_mut(self.columns * self.columns);
        cholesky(products, energies).then(|| energies.to_vec())
    }
}

/// The seconds of each column between two times. False if they are not known.
fn ran(spans: &[Span], [from, to]: [u64; 2], row: &mut [f64], levels: usize) -> bool {
    row.fill(0.0);
    let mut paused = to - from;
    for span in spans.iter().take_while(|span| span.begin < to) {
        let both = span.end.min(to).saturating_sub(span.begin.max(from));
        if both == 0 {
            continue;
        }
        if span.column == UNKNOWN {
            return false;
        }
        row[span.column] += both as f64 / 1e9;
        paused -= both;
    }
    row[levels + 1] = paused as f64 / 1e9;
    true
}

/// Solves `products` x = `right` into `right`; `products` is symmetric, its lower triangle is given. False if there is no single solution.
fn cholesky(products: &mut [f64], right: &mut [f64]) -> bool {
    let n = right.len();
    for i in 0..n {
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| products[i * n + k] * products[j * n + k]).sum();
            let left = products[i * n + j] - known;
            if i != j {
                products[i * n + j] = left / products[j * n + j];
            } else if left > 1e-9 * products[i * n + i] {
                products[i * n + i] = left.sqrt();
            } else {
                return false;
            }
        }
        let known: f64 = (0..i).map(|k| products[i * n + k] * right[k]).sum();
        right[i] = (right[i] - known) / products[i * n + i];
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|k| products[k * n + i] * right[k]).sum();
        right[i] = (right[i] - known) / products[i * n + i];
    }
    true
}

/// The energy of each level in its `seconds`: the sum of that of all counters.
fn estimates(fits: &[Fit], seconds: &[f64]) -> Vec<Option<LevelEnergy>> {
    let levels = seconds.len();
    let all = |without: Option<usize>| {
        let mut sum = vec![0.0; levels];
        for fit in fits {
            sum.iter_mut().zip(fit.solve(without)?).for_each(|(sum, watts)| *sum += watts);
        }
        Some(sum)
    };
    let left_out: Option<Vec<Vec<f64>>> = (0..PARTS).map(|part| all(Some(part))).collect();
    let (Some(watts), Some(left_out)) = (all(None), left_out) else { return vec![None; levels] };
    // The time of a change is known to half of the time between the two reads around it. On average over changes that fall on the border of
    // two levels, this gives energy of one to the other: an eighth of that time, at the difference of their powers. Changes within a level
    // are not affected, so their share is that of the time in the level, at most.
    let gap = fits.iter().map(|fit| fit.gap as f64 / 1e9 / fit.equations.max(1) as f64).fold(0.0, f64::max);
    let estimate = |level: usize| {
        let mean = left_out.iter().map(|part| part[level]).sum::<f64>() / PARTS as f64;
        let squares: f64 = left_out.iter().map(|part| (part[level] - mean).powi(2)).sum();
        let error = (squares * (PARTS - 1) as f64 / PARTS as f64).sqrt();
        let beside = [level.checked_sub(1), Some(level + 1).filter(|&next| next < levels)].into_iter().flatten();
        let mistaken: f64 =
            beside.map(|other| (watts[level] - watts[other]).abs()).sum::<f64>() * gap / 8.0 * (gap / seconds[level]).min(1.0);
        let energy = LevelEnergy {
            seconds: seconds[level],
            joules: Joules(watts[level] * seconds[level]),
            within: Joules(STUDENT * error * seconds[level] + mistaken),
        };
        (energy.joules.0.is_finite() && energy.within.0.is_finite() && energy.joules.0 > 0.0).then_some(energy)
    };
    (0..levels).map(estimate).collect()
}

#[cfg(test)]
mod tests {
    use socbfs::{
        graph::{BuildOptions, EdgeList, Listing},
        search::SearchOptions,
    };
    use socbfs_io::generate::Generator;
    use socbfs_power::{Channel, Component, Domain, Family, Pace, Reading, Scope, Selection, Sensor, Signal, Sink, Source};

    use super::*;

    /// A simulated chip: the microseconds and watts of each level, and the watts of the end of a search and of a pause.
    struct Chip {
        levels: Vec<(f64, f64)>,
        ending: (f64, f64),
        pause_watts: f64,
        refresh_ns: u64,
        /// Nanoseconds between two reads of the counter.
        read_ns: u64,
        /// Share by which times vary from search to search.
        noise: f64,
    }

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    impl Chip {
        /// The spans of a batch that begins at `now`, with the energy at each of their borders, and the changes of the counter.
        fn batch(&self, now: &mut u64, joules: &mut f64, random: &mut Random) -> (Vec<Span>, Vec<Change>) {
            let (mut spans, mut curve) = (Vec::new(), vec![(*now, *joules)]);
            let begin = *now;
            let mut run = |micros: f64, watts: f64, column: Option<usize>| {
                let ns = (micros * 1e3) as u64;
                spans.extend(column.map(|column| Span { begin: *now, end: *now + ns, column }));
                *now += ns;
                *joules += ns as f64 / 1e9 * watts;
                curve.push((*now, *joules));
            };
            let until = begin + 64 * self.refresh_ns;
            let mut spent = 0;
            while begin + spent < until {
                let mut of = |(micros, watts): (f64, f64), column: usize, random: &mut Random| {
                    let micros = micros * (1.0 + self.noise * (random.next() - 0.5));
                    run(micros, watts, Some(column));
                    spent += (micros * 1e3) as u64;
                };
                for (column, &level) in self.levels.iter().enumerate() {
                    of(level, column, random);
                }
                of(self.ending, self.levels.len(), random);
                let pause = random.next() * self.refresh_ns as f64;
                run(pause / 1e3, self.pause_watts, None);
                spent += pause as u64;
            }
            let at = |time: u64| {
                let place = curve.partition_point(|&(at, _)| at < time).clamp(1, curve.len() - 1);
                let [(a, before), (b, after)] = [curve[place - 1], curve[place]];
                before + (after - before) * (time - a) as f64 / (b - a).max(1) as f64
            };
            // The hardware's interval varies a little.
            let mut changes = Vec::new();
            let mut tick = begin.next_multiple_of(self.refresh_ns);
            while tick < *now {
                let read = tick.next_multiple_of(self.read_ns);
                changes.push(Change { rail: 0, after: read - self.read_ns, before: read, joules: Some(at(tick)) });
                tick += (self.refresh_ns as f64 * (0.97 + 0.06 * random.next())) as u64;
            }
            (spans, changes)
        }

        fn measure(&self, rounds: usize, seed: u64) -> Vec<Option<LevelEnergy>> {
            let (mut now, mut joules, mut random) = (1_000_000_000, 0.0, Random(seed * 2_654_435_761 + 1));
            let mut fit = Fit::new(self.levels.len() + 2);
            for batch in 0..rounds * PARTS {
                let (spans, changes) = self.batch(&mut now, &mut joules, &mut random);
                fit.add(batch % PARTS, &spans, changes.iter(), self.refresh_ns, self.levels.len());
            }
            let seconds: Vec<f64> = self.levels.iter().map(|(micros, _)| micros / 1e6).collect();
            estimates(&[fit], &seconds)
        }
    }

    /// A search of 1.4 ms: top-down levels take 12 W, bottom-up ones 27 W.
    fn chip() -> Chip {
        Chip {
            levels: vec![(150.0, 12.0), (420.0, 27.0), (180.0, 12.0), (400.0, 27.0), (130.0, 12.0)],
            ending: (120.0, 18.0),
            pause_watts: 8.0,
            refresh_ns: 1_000_000,
            read_ns: 60_000,
            noise: 0.1,
        }
    }

    #[test]
    fn the_energy_of_levels_shorter_than_the_interval_of_the_counter_is_found() {
        let chip = chip();
        let (mut outside, mut all, mut mean) = (0, 0, vec![0.0; 5]);
        for seed in 1..=20 {
            for ((place, &(micros, watts)), level) in chip.levels.iter().enumerate().zip(chip.measure(24, seed)) {
                let (truth, level) = (micros / 1e6 * watts, level.unwrap());
                let off = (level.joules.0 - truth).abs();
                assert!((level.is_known() || micros < 200.0) && off < 0.05 * truth, "seed {seed}: {truth} J, {level:?}");
                outside += usize::from(off > level.within.0);
                all += 1;
                mean[place] += (level.joules.0 / truth - 1.0) / 20.0;
            }
        }
        println!("{outside} of {all} outside of their interval, off by {mean:?} on average");
        assert!(outside * 10 <= all && mean.iter().all(|off| off.abs() < 0.025), "{outside} of {all}, {mean:?}");
    }

    #[test]
    fn what_is_too_short_is_not_called_known() {
        // Beside a level of 27 W, one of 3 us and 12 W can't be told from its neighbour where the counter is read every 60 us.
        let mut chip = chip();
        chip.levels[2].0 = 3.0;
        let levels = chip.measure(4, 1);
        assert!(levels[1].unwrap().is_known() && !levels[2].unwrap().is_known(), "{levels:?}");
        // An energy below 0 is none.
        chip.levels[2] = (180.0, -12.0);
        assert!(chip.measure(4, 1)[2].is_none());
        // After a round the intervals are wide.
        let early = self::chip().measure(1, 1);
        let late = self::chip().measure(16, 1);
        assert!(early[0].unwrap().within.0 > 1.5 * late[0].unwrap().within.0, "{early:?} {late:?}");
    }

    #[test]
    fn changes_that_were_lost_or_seen_late_give_no_equation() {
        let mut fit = Fit::new(3);
        let spans = [Span { begin: 0, end: 4000, column: 0 }, Span { begin: 4000, end: 4500, column: UNKNOWN }];
        let change = |after, before, joules| Change { rail: 0, after, before, joules };
        let good = [change(900, 1000, Some(1.0)), change(1900, 2000, Some(2.0))];
        fit.add(0, &spans, good.iter(), 1000, 1);
        assert_eq!(fit.equations, 1);
        for bad in [
            [change(900, 1000, Some(1.0)), change(1500, 2000, Some(2.0))],
            [change(900, 1000, Some(1.0)), change(1900, 2000, None)],
            [change(900, 1000, Some(1.0)), change(4100, 4200, Some(2.0))],
            [change(900, 1000, Some(1.0)), change(4900, 5000, Some(2.0))],
        ] {
            fit.add(0, &spans, bad.iter(), 1000, 1);
            assert_eq!(fit.equations, 1, "{bad:?}");
        }
    }

    /// A counter of 20 W that changes every millisecond, or a power.
    #[derive(Debug)]
    struct Steady(Signal);

    impl Sensor for Steady {
        fn pace(&self) -> Pace {
            Pace::Every(Duration::from_millis(100))
        }

        fn sample(&mut self, sink: &mut dyn Sink) {
            let at = monotonic();
            sink.put(
                0,
                at,
                if self.0 == Signal::Power { Reading::Power(socbfs_power::Watts(20.0)) } else { Reading::Counter(at / 1_000_000 * 20_000) },
            );
        }
    }

    fn meter(signal: Signal, refresh: Duration) -> Meter {
        let channel = Channel {
            family: Family::Powercap,
            id: "intel-rapl:0".into(),
            label: None,
            domain: Domain::Package,
            scope: Scope::CpuPackage,
            part: Component::package(0),
            signal,
            refresh,
            place: String::new(),
        };
        let source = Source::new(vec![channel], Ok(Box::new(Steady(signal))));
        Meter::start(Selection::automatic(vec![source], None).unwrap()).unwrap()
    }

    const COUNTER: Signal = Signal::Counter { joules_per_count: 1e-6, range: u64::MAX };

    #[test]
    fn levels_of_real_searches_have_the_power_of_a_simulated_counter() {
        let edges = Generator::Kronecker { scale: 13, edge_factor: 16, seed1: 2, seed2: 3 }.generate(&|_| {}).unwrap();
        let layout = socbfs::graph::Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
        let root = (0..).find(|&root| layout.input_degree(root) > 8).unwrap();
        let meter = meter(COUNTER, Duration::from_millis(1));
        for sources in [&[root][..], &[root, 5, 9, 5]] {
            search.run(sources).unwrap();
            let measured = measure_level_energies(&mut search, sources, &meter, Duration::from_secs(8), &mut |_| ()).unwrap();
            println!("{measured:?}");
            // What takes 20 W all the time takes no less in any level that is known.
            assert!(measured.searches > 10 && measured.known[0] >= 1 && measured.levels.len() == search.records().len(), "{measured:?}");
            for level in measured.levels.iter().flatten() {
                let off = (level.joules.0 - 20.0 * level.seconds).abs();
                assert!(off <= 2.0 * level.within.0 + 0.01 * level.joules.0.abs(), "{level:?}");
            }
        }
    }

    #[test]
    fn slow_sensors_are_refused_with_the_reason() {
        let edges = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        let layout = socbfs::graph::Layout::build(&edges, &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
        search.run(0).unwrap();
        for (signal, ms, words) in [(Signal::Power, 10, "a new one every 10 ms"), (COUNTER, 51, "changes every 51 ms")] {
            let meter = meter(signal, Duration::from_millis(ms));
            let error = measure_level_energies(&mut search, &[0], &meter, Duration::ZERO, &mut |_| ()).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("at least every 2 ms") && error.lines().count() == 1, "{error}");
        }
    }
}
