//! Power of each strategy, from windows in which only that strategy runs.

use std::time::{Duration, Instant};

use socbfs_power::{Energy, Meter, Watts};

use crate::record::EnergyWindow;
use socbfs::{
    Run,
    bfs::Strategy,
    graph::Vertex,
    search::{Search, SearchError},
};
use socbfs_policy::{LevelDevice, Policy, Replay};

/// The length of a measurement window, of searches or of the idle machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerWindows {
    /// Least length in seconds.
    pub seconds: f64,
    /// Fewest refreshes of the slowest counted sensor.
    pub refreshes: u64,
}

impl PowerWindows {
    /// A third of the length, for the idle machine or one calibrated strategy.
    pub(crate) fn third(self) -> Self {
        Self { seconds: self.seconds / 3.0, refreshes: self.refreshes.div_ceil(3) }
    }

    /// The seconds that a window of `meter` takes at least.
    pub(crate) fn least_seconds(self, meter: &Meter) -> f64 {
        self.seconds.max(self.refreshes as f64 * meter.slowest().as_secs_f64())
    }

    /// Measures the idle machine.
    pub(crate) fn idle(self, meter: &Meter) -> Energy {
        let (window, begin) = (meter.begin(), Instant::now());
        let mut end = WindowEnd::default();
        while !end.is_reached(begin.elapsed(), meter.refreshes(&window), self) {
            std::thread::sleep(Duration::from_secs_f64(self.seconds / 20.0));
        }
        meter.end(window)
    }

    /// Measures one window: calls `search`, which returns the seconds and the edges of a search, until the window is long enough and `all`
    /// returns true for that: other ranks may have to agree. Without a meter, the least time is enough.
    pub(crate) fn searching<E>(
        self,
        meter: Option<&Meter>,
        all: impl Fn(bool) -> bool,
        mut search: impl FnMut() -> Result<(f64, u64), E>,
    ) -> Result<EnergyWindow, E> {
        let window = meter.map(|meter| (meter, meter.begin()));
        let (begin, mut end) = (Instant::now(), WindowEnd::default());
        let (mut looked, mut is_enough) = (0.0, false);
        let (mut searches, mut search_seconds, mut seconds_per_edge) = (0, 0.0, 0.0);
        loop {
            let (seconds, edges) = search()?;
            searches += 1;
            search_seconds += seconds;
            seconds_per_edge += seconds / edges as f64;
            // The clock is read after every search. The sensors are read only after the least time, and at most every 20 ms.
            let passed = begin.elapsed();
            if let Some((meter, window)) = window.as_ref().filter(|_| passed.as_secs_f64() >= f64::max(self.seconds, looked)) {
                looked = passed.as_secs_f64() + 0.02;
                is_enough |= end.is_reached(passed, meter.refreshes(window), self);
            }
            is_enough |= window.is_none() && passed.as_secs_f64() >= self.seconds;
            if all(is_enough) {
                break;
            }
        }
        let measured = window.map(|(meter, window)| (meter.refreshes(&window), meter.end(window)));
        let (refreshes, energy) = measured.unwrap_or((u64::MAX, Energy::default()));
        let teps = searches as f64 / seconds_per_edge;
        Ok(EnergyWindow { energy, searches, search_seconds, teps, refreshes, strategies: Vec::new() })
    }
}

/// Measures the idle machine for `idle`, then `count` windows by `window`, which gets the place of each. `finished` is called with the
/// number of windows done, the idle one included.
pub(crate) fn in_windows<E>(
    meter: Option<&Meter>,
    idle: PowerWindows,
    count: usize,
    finished: &mut dyn FnMut(usize),
    mut window: impl FnMut(usize) -> Result<EnergyWindow, E>,
) -> Result<(Energy, Vec<EnergyWindow>), E> {
    let idle = meter.map_or_else(Energy::default, |meter| idle.idle(meter));
    finished(1);
    let windows = (0..count).map(|place| {
        let window = window(place)?;
        finished(2 + place);
        Ok(window)
    });
    Ok((idle, windows.collect::<Result<_, E>>()?))
}

/// Decides when a window may end.
#[derive(Debug, Default)]
struct WindowEnd {
    refreshes: u64,
    /// Seconds after the begin of the window at which the number of refreshes was first seen.
    since: f64,
}

impl WindowEnd {
    /// Whether the window may end, after this time and number of refreshes. It does not wait forever for a sensor that refreshes slowly, or
    /// not at all, or no longer.
    fn is_reached(&mut self, passed: Duration, refreshes: u64, windows: PowerWindows) -> bool {
        let seconds = passed.as_secs_f64();
        if refreshes > self.refreshes {
            (self.refreshes, self.since) = (refreshes, seconds);
        }
        // At its mean rate so far, a sensor that still works would have refreshed several times.
        let interval = if refreshes == 0 { 0.0 } else { self.since / refreshes as f64 };
        let least = windows.seconds.max(1.0);
        let has_gone = seconds - self.since >= 3.0 * least.max(interval);
        seconds >= windows.seconds && (refreshes >= windows.refreshes || has_gone || seconds >= 100.0 * least)
    }
}

/// The measured powers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StrategyPowers {
    /// Power of the idle machine (`None`: its window was not complete).
    pub idle: Option<Watts>,
    /// Power of the machine while only this strategy runs (`None` as for `idle`).
    pub strategies: Vec<(Strategy, Option<Watts>)>,
    /// Why a power is absent.
    pub problem: Option<String>,
}

/// Measures the power of the idle machine. Then measures it for each of `strategies`, while searches from `roots` run all their levels by
/// this strategy. `finished` is called after each window. The search's policy is left changed.
///
/// # Errors
/// [`SearchError`] if the search was not set up for a strategy, or a device fails.
pub fn measure_power(
    search: &mut Search<'_>,
    roots: &[Vertex],
    strategies: &[Strategy],
    meter: &Meter,
    windows: &PowerWindows,
    mut finished: impl FnMut(),
) -> Result<StrategyPowers, SearchError> {
    let count = if roots.is_empty() { 0 } else { strategies.len() };
    let uncounted = |root: Vertex| Run { uncounted: true, ..root.into() };
    let (idle, measured) = in_windows(Some(meter), *windows, count, &mut |_| finished(), |place| {
        search.set_planner(Policy::Replay(Replay::new(&[strategies[place].plan()])).on(LevelDevice::Cpu))?;
        // Warm-up, so that no page is touched and no kernel is finished by its driver for the first time inside the window.
        for &root in roots {
            search.run(uncounted(root))?;
        }
        let mut turn = roots.iter().cycle();
        let mut next = || turn.next().map_or(Ok(0), |&root| search.run(uncounted(root)).map(|outcome| outcome.edges));
        windows.searching(Some(meter), |enough| enough, || Ok::<_, SearchError>((0.0, next()?)))
    })?;
    let mut powers = StrategyPowers { idle: idle.watts, ..StrategyPowers::default() };
    powers.problem = idle.problem.map(|problem| format!("for the idle machine: {problem}"));
    if roots.is_empty() {
        powers.problem = Some("there is nothing to search".to_owned());
    }
    for (&strategy, EnergyWindow { energy, .. }) in strategies.iter().zip(measured) {
        powers.strategies.push((strategy, energy.watts));
        powers.problem = powers.problem.or(energy.problem.map(|problem| format!("for {}: {problem}", strategy.name())));
    }
    Ok(powers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_at_both_minimums_or_if_the_sensor_is_too_slow() {
        let windows = PowerWindows { seconds: 10.0, refreshes: 200 };
        for (seconds, refreshes, enough) in
            [(9.9, 500, false), (10.0, 199, false), (10.0, 200, true), (25.0, 120, false), (30.0, 0, true), (1000.0, 120, true)]
        {
            let is_reached = WindowEnd::default().is_reached(Duration::from_secs_f64(seconds), refreshes, windows);
            assert_eq!(is_reached, enough, "{seconds} {refreshes}");
        }
        // The first sensor vanishes after ten refreshes in 12 s, the second one refreshes every 35 s.
        for (refreshes, last) in [([(4.0, 3), (12.0, 10), (41.0, 10)], (42.0, 10)), ([(35.0, 1), (70.0, 2), (104.0, 2)], (1000.0, 28))] {
            let mut end = WindowEnd::default();
            let mut at = |(seconds, refreshes)| end.is_reached(Duration::from_secs_f64(seconds), refreshes, windows);
            assert_eq!(refreshes.map(&mut at), [false; 3]);
            assert!(at(last), "{last:?}");
        }
    }
}
