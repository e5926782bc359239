//! Energy over time of one channel, built from its readings and evaluated at marked moments.

use std::time::Duration;

use crate::{Advance, Counter, Lost, Reading, Signal, Watts};

/// Highest power of a rail that is taken as true. A reading above it is a fault of the sensor, and a counter that gained more has been
/// reset (a reset looks like a wrap that adds almost the whole range).
const MOST_WATTS: f64 = 20_000.0;

/// A counter that this power would have wrapped between two reads may have wrapped more than once.
const WRAP_WATTS: f64 = 2_000.0;

/// A gap of up to this many refreshes between two readings of a power is covered; a longer one is a hole.
const BRIDGED_REFRESHES: u32 = 8;

/// A gap up to this length is never a hole: a busy scheduler can delay a thread that long.
const SHORTEST_HOLE: Duration = Duration::from_millis(250);

/// Sums from the first reading up to some moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Totals {
    /// Energy.
    pub(crate) joules: f64,
    /// Nanoseconds that readings cover, without holes.
    pub(crate) covered: u64,
    /// Valid readings.
    pub(crate) samples: u64,
    /// Number of times the counter wrapped.
    pub(crate) wraps: u64,
    /// Reads that gave no value.
    pub(crate) missed: u64,
    /// Readings that can't be true: earlier than the one before, above the highest power, or after a reset.
    pub(crate) rejected: u64,
}

/// A reading and the sums up to it.
#[derive(Debug, Clone, Copy)]
struct Point {
    at: u64,
    watts: f64,
    totals: Totals,
}

/// A marked time, and its totals as soon as they are known.
#[derive(Debug, Clone, Copy)]
struct Mark {
    id: u64,
    at: u64,
    totals: Option<Totals>,
}

/// Energy over time. A power is integrated by the trapezoidal rule; a counter is taken as linear between two reads.
#[derive(Debug)]
pub(crate) struct Curve {
    counter: Option<(Counter, f64)>,
    factor: f64,
    longest: u64,
    last: Option<Point>,
    /// The point before `last`, and whether the piece of the curve between the two is a hole.
    before: Option<(Point, bool)>,
    marks: Vec<Mark>,
    lost: Option<Lost>,
    counting: Totals,
}

impl Curve {
    /// The curve of a channel that reads `signal` and has a new value every `refresh`; every reading is multiplied by `factor`.
    pub(crate) fn new(signal: Signal, refresh: Duration, factor: f64) -> Self {
        let nanoseconds = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let (counter, longest) = match signal {
            Signal::Power => (None, nanoseconds((refresh * BRIDGED_REFRESHES).max(SHORTEST_HOLE))),
            Signal::Counter { joules_per_count, range } => {
                let seconds = range as f64 * joules_per_count / WRAP_WATTS;
                // For a counter that never wraps the time exceeds u64 nanoseconds; the cast saturates.
                (Some((Counter::new(range), joules_per_count)), (seconds * 1e9) as u64)
            }
        };
        Self { counter, factor, longest, last: None, before: None, marks: Vec::with_capacity(16), lost: None, counting: Totals::default() }
    }

    /// Adds a reading that was true at `at`. Allocates nothing.
    pub(crate) fn push(&mut self, at: u64, reading: Reading) {
        if self.last.is_some_and(|last| at <= last.at) {
            // A second reading of the same moment adds nothing. An earlier moment means that the clock was set back.
            self.counting.rejected += u64::from(self.last.is_some_and(|last| at < last.at));
            return;
        }
        let point = match reading {
            Reading::Unavailable(lost) => {
                self.counting.missed += 1;
                self.lost = Some(lost);
                return;
            }
            Reading::Power(Watts(watts)) => self.power(at, watts * self.factor),
            Reading::Counter(value) => self.count(at, value),
        };
        let Some((point, hole)) = point else {
            self.counting.rejected += 1;
            return;
        };
        self.lost = None;
        self.before = self.last.map(|last| (last, hole));
        self.last = Some(point);
        self.counting = point.totals;
        for index in 0..self.marks.len() {
            let mark = self.marks[index];
            if mark.totals.is_none() && mark.at <= point.at {
                self.marks[index].totals = self.at(mark.at);
            }
        }
    }

    fn power(&self, at: u64, watts: f64) -> Option<(Point, bool)> {
        if self.counter.is_some() || !watts.is_finite() || watts.abs() > MOST_WATTS {
            return None;
        }
        let mut totals = Totals { samples: self.counting.samples + 1, ..self.counting };
        let mut hole = false;
        if let Some(last) = self.last {
            let span = at - last.at;
            hole = span > self.longest;
            totals.joules += area(span, last.watts, watts);
            totals.covered += if hole { 0 } else { span };
        }
        Some((Point { at, watts, totals }, hole))
    }

    fn count(&mut self, at: u64, value: u64) -> Option<(Point, bool)> {
        let (counter, unit) = self.counter.as_mut()?;
        let advance = counter.advance(value);
        let mut totals = Totals { samples: self.counting.samples + 1, ..self.counting };
        let (mut watts, mut hole) = (0.0, false);
        if let (Some(last), Advance::Forward(gain) | Advance::Wrapped(gain)) = (self.last, advance) {
            let span = at - last.at;
            let joules = gain as f64 * *unit * self.factor;
            watts = joules / (span as f64 / 1e9);
            // Between two quick reads the register may gain a whole refresh at once: the energy of up to about 10 ms.
            let reset = joules.abs() > MOST_WATTS * (span as f64 / 1e9 + 0.01);
            hole = reset || span > self.longest;
            if reset {
                totals.rejected += 1;
                watts = 0.0;
            } else {
                totals.joules += joules;
                totals.wraps += u64::from(matches!(advance, Advance::Wrapped(_)));
            }
            totals.covered += if hole { 0 } else { span };
        }
        Some((Point { at, watts, totals }, hole))
    }

    /// The totals at the time `at`, those of the last point if `at` is later (`None` before the first reading has come).
    fn at(&self, at: u64) -> Option<Totals> {
        let last = self.last?;
        if at >= last.at {
            return Some(last.totals);
        }
        let Some((before, hole)) = self.before.filter(|(before, _)| before.at <= at) else {
            // `at` lies before the first reading, where nothing is covered, or before the piece of the curve that is still known. In the
            // second case, the totals at the beginning of that piece are taken.
            return Some(self.before.map_or_else(Totals::default, |(before, _)| before.totals));
        };
        let (span, whole) = (at - before.at, last.at - before.at);
        let share = span as f64 / whole as f64;
        let joules = if self.counter.is_some() {
            share * (last.totals.joules - before.totals.joules)
        } else {
            area(span, before.watts, before.watts + share * (last.watts - before.watts))
        };
        let covered = if hole { 0 } else { span };
        Some(Totals { joules: before.totals.joules + joules, covered: before.totals.covered + covered, ..before.totals })
    }

    /// Marks the time `at` as `id`: its totals are kept as soon as they are known.
    pub(crate) fn mark(&mut self, id: u64, at: u64) {
        let known = self.last.is_some_and(|last| last.at >= at);
        let totals = if known { self.at(at) } else { None };
        self.marks.push(Mark { id, at, totals });
    }

    /// The totals at the mark `id`, if a reading at or after it has come.
    pub(crate) fn marked(&self, id: u64) -> Option<Totals> {
        self.marks.iter().find(|mark| mark.id == id)?.totals
    }

    /// Forgets the mark `id`.
    pub(crate) fn unmark(&mut self, id: u64) {
        self.marks.retain(|mark| mark.id != id);
    }

    /// The totals up to the last reading.
    pub(crate) fn totals(&self) -> Totals {
        self.counting
    }

    /// Why the latest failed read after the last valid reading gave no value.
    pub(crate) fn lost(&self) -> Option<Lost> {
        self.lost
    }
}

/// The energy of a power that goes from one value to another in `span` nanoseconds.
fn area(span: u64, from: f64, to: f64) -> f64 {
    span as f64 / 1e9 * (from + to) / 2.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn power() -> Curve {
        Curve::new(Signal::Power, Duration::from_millis(35), 1.0)
    }

    fn counter(range: u64) -> Curve {
        Curve::new(Signal::Counter { joules_per_count: 1e-6, range }, Duration::from_millis(1), 1.0)
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs().max(1.0), "{a} is not {b}");
    }

    fn window(curve: &Curve, begin: u64, end: u64) -> (f64, u64) {
        let (begin, end) = (curve.marked(begin).unwrap(), curve.marked(end).unwrap());
        (end.joules - begin.joules, end.covered - begin.covered)
    }

    #[test]
    fn a_power_is_integrated_by_trapezoid_and_clipped_to_the_window() {
        let mut curve = power();
        for (at, watts) in [(0, 10.0), (100, 20.0)] {
            curve.push(at * MS, Reading::Power(Watts(watts)));
        }
        curve.mark(1, 150 * MS);
        curve.mark(2, 250 * MS);
        assert_eq!(curve.marked(1), None);
        for (at, watts) in [(200, 40.0), (300, 40.0)] {
            curve.push(at * MS, Reading::Power(Watts(watts)));
        }
        // From 30 W at 150 ms to 40 W at 200 ms, then 40 W for 50 ms.
        let (joules, covered) = window(&curve, 1, 2);
        near(joules, 0.05 * 35.0 + 0.05 * 40.0);
        assert_eq!(covered, 100 * MS);
        assert_eq!(curve.marked(2).unwrap().samples - curve.marked(1).unwrap().samples, 1);
        curve.unmark(1);
        assert_eq!(curve.marked(1), None);
    }

    #[test]
    fn sign_and_scale_are_factors() {
        let mut curve = Curve::new(Signal::Power, Duration::from_millis(35), -2.0);
        curve.push(0, Reading::Power(Watts(-5.0)));
        curve.push(100 * MS, Reading::Power(Watts(-5.0)));
        near(curve.totals().joules, 1.0);
    }

    #[test]
    fn the_time_before_the_first_reading_is_not_covered() {
        let mut curve = power();
        curve.mark(1, 100 * MS);
        curve.push(200 * MS, Reading::Power(Watts(10.0)));
        curve.push(300 * MS, Reading::Power(Watts(10.0)));
        curve.mark(2, 300 * MS);
        assert_eq!(window(&curve, 1, 2), (1.0, 100 * MS));
    }

    #[test]
    fn a_hole_is_not_covered() {
        let mut curve = power();
        curve.push(0, Reading::Power(Watts(10.0)));
        curve.mark(1, 0);
        curve.push(10_000 * MS, Reading::Power(Watts(10.0)));
        curve.push(10_100 * MS, Reading::Power(Watts(10.0)));
        curve.mark(2, 10_100 * MS);
        assert_eq!(window(&curve, 1, 2).1, 100 * MS);
    }

    #[test]
    fn a_reset_counter_is_a_hole_and_adds_no_energy() {
        let mut curve = counter(262_143_328_850);
        curve.push(0, Reading::Counter(100_000_000_000));
        curve.mark(1, 0);
        curve.push(500 * MS, Reading::Counter(100_005_000_000));
        curve.push(1000 * MS, Reading::Counter(2_000));
        curve.push(1500 * MS, Reading::Counter(5_002_000));
        curve.mark(2, 1500 * MS);
        let (joules, covered) = window(&curve, 1, 2);
        near(joules, 10.0);
        assert_eq!(covered, 1000 * MS);
        assert_eq!((curve.totals().wraps, curve.totals().rejected), (0, 1));
    }

    #[test]
    fn a_counter_that_may_have_wrapped_unseen_is_a_hole() {
        // 65.5 kJ last 33 s at 2 kW.
        let mut curve = counter(65_532_610_987);
        curve.push(0, Reading::Counter(0));
        curve.push(40_000 * MS, Reading::Counter(400_000_000));
        assert_eq!(curve.totals().covered, 0);
        curve.push(60_000 * MS, Reading::Counter(600_000_000));
        assert_eq!(curve.totals().covered, 20_000 * MS);
    }

    #[test]
    fn impossible_powers_are_rejected() {
        let mut curve = power();
        curve.push(0, Reading::Power(Watts(5.0)));
        for bad in [f64::NAN, f64::INFINITY, 260_000.0, -260_000.0] {
            curve.push(10 * MS, Reading::Power(Watts(bad)));
        }
        curve.push(11 * MS, Reading::Counter(7));
        curve.push(20 * MS, Reading::Power(Watts(5.0)));
        near(curve.totals().joules, 0.1);
        assert_eq!((curve.totals().rejected, curve.totals().samples), (5, 2));
    }

    #[test]
    fn missed_reads_are_counted_and_their_reason_is_kept() {
        let mut curve = power();
        curve.push(0, Reading::Power(Watts(5.0)));
        curve.push(10 * MS, Reading::Unavailable(Lost::Gone));
        assert_eq!((curve.lost(), curve.totals().missed), (Some(Lost::Gone), 1));
        curve.push(20 * MS, Reading::Power(Watts(5.0)));
        assert_eq!((curve.lost(), curve.totals().missed), (None, 1));
    }

    proptest! {
        /// A power that is linear in time gives its exact integral, for any times of the readings and any bounds of the window.
        #[test]
        fn linear_powers_are_exact(
            steps in prop::collection::vec(1_u64..200 * MS, 3..40),
            (base, slope) in (1.0..50.0_f64, -0.5..0.5_f64),
            (from, to) in (0.0..1.0_f64, 0.0..1.0_f64),
        ) {
            let whole: u64 = steps.iter().sum();
            let (from, to) = ((from.min(to) * whole as f64) as u64, (from.max(to) * whole as f64) as u64);
            let watts = |at: u64| base + slope * at as f64 / 1e9;
            let mut curve = power();
            curve.push(0, Reading::Power(Watts(watts(0))));
            let (mut at, mut marked) = (0, [false; 2]);
            for step in steps {
                // A mark is set at its time: after the earlier readings, before the later ones.
                for (index, moment) in [from, to].into_iter().enumerate() {
                    if !marked[index] && moment < at + step {
                        curve.mark(index as u64, moment);
                        marked[index] = true;
                    }
                }
                at += step;
                curve.push(at, Reading::Power(Watts(watts(at))));
            }
            for (index, moment) in [from, to].into_iter().enumerate() {
                if !marked[index] {
                    curve.mark(index as u64, moment);
                }
            }
            let (joules, covered) = window(&curve, 0, 1);
            let exact = (to - from) as f64 / 1e9 * (watts(from) + watts(to)) / 2.0;
            prop_assert!((joules - exact).abs() < 1e-6, "{joules} {exact}");
            prop_assert_eq!(covered, to - from);
        }

        /// The joules are those of the power, for any start and range of the counter, any times of the reads, and any missing reads.
        #[test]
        fn counters_are_exact_across_wraps(
            range in 1_000_000_u64..300_000_000_000,
            start: u64,
            steps in prop::collection::vec((1_u64..400, prop::bool::weighted(0.2)), 2..60),
            watts in 1_u64..400,
        ) {
            let start = start % range;
            let mut curve = counter(range);
            curve.push(0, Reading::Counter(start));
            curve.mark(0, 0);
            let (mut at, mut spent, mut since) = (0, 0_u64, 0);
            for (step, missing) in steps {
                at += step * MS;
                since += step;
                // Microjoules: watts x milliseconds x 1000.
                spent += watts * step * 1000;
                // A read may be missing only if the counter gains less than its range before the next one.
                if missing && (since + 400) * watts * 1000 < range {
                    curve.push(at, Reading::Unavailable(Lost::System(5)));
                    continue;
                }
                prop_assume!(since * watts * 1000 < range && since as f64 * 1e-3 < range as f64 * 1e-6 / WRAP_WATTS);
                since = 0;
                curve.push(at, Reading::Counter((start as u128 + spent as u128).rem_euclid(u128::from(range)) as u64));
            }
            prop_assume!(since == 0);
            curve.mark(1, at);
            let (joules, covered) = window(&curve, 0, 1);
            prop_assert!((joules - spent as f64 * 1e-6).abs() < 1e-6 * spent as f64 * 1e-6 + 1e-9, "{joules} {spent}");
            prop_assert_eq!(covered, at);
        }

        /// With clocks that step in either direction and with missing or impossible readings, the energy is never negative and never
        /// above that of the highest power for the whole time, and the covered time never exceeds the time that has passed.
        #[test]
        fn clock_steps_never_invent_energy(
            readings in prop::collection::vec((-2_000_i64..2_000, 0.0..100.0_f64, 0_u8..8), 2..100),
        ) {
            let mut curve = power();
            let (mut at, mut first, mut highest) = (1_000_000 * MS as i64, None, 0);
            for (step, watts, kind) in readings {
                at += step * MS as i64;
                let moment = at.max(1) as u64;
                let reading = match kind {
                    0 => Reading::Unavailable(Lost::Malformed),
                    1 => Reading::Power(Watts(-1e9)),
                    _ => Reading::Power(Watts(watts)),
                };
                curve.push(moment, reading);
                if kind > 1 {
                    first.get_or_insert(moment);
                    highest = highest.max(moment);
                }
            }
            let passed = highest.saturating_sub(first.unwrap_or(highest));
            let totals = curve.totals();
            prop_assert!(totals.joules >= 0.0 && totals.joules <= 100.0 * passed as f64 / 1e9 + 1e-6);
            prop_assert!(totals.covered <= passed);
        }
    }
}
