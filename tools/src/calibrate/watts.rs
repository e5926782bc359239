//! Power of each strategy, from windows in which only that strategy runs.

use std::time::{Duration, Instant};

use socbfs::power::{Meter, Watts};

use socbfs::{
    bfs::Strategy,
    graph::Vertex,
    policy::{LevelDevice, Policy, Replay},
    search::{Search, SearchError},
};

/// The length of a measurement window, of a strategy or of the idle machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerWindows {
    /// Least length in seconds.
    pub seconds: f64,
    /// Fewest refreshes of the slowest counted sensor.
    pub refreshes: u64,
}

impl PowerWindows {
    /// Whether a window is long enough. It ends in any case after ten times its length (counted as at least 1 s): a lost sensor has no more
    /// refreshes.
    fn is_over(&self, passed: Duration, refreshes: u64) -> bool {
        let seconds = passed.as_secs_f64();
        seconds >= self.seconds && (refreshes >= self.refreshes || seconds >= 10.0 * self.seconds.max(1.0))
    }
}

/// The measured powers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StrategyPowers {
    /// Power of the idle machine (`None`: its window was not complete, or the power not above 0).
    pub idle: Option<Watts>,
    /// Power of the machine while only this strategy runs (`None` as for `idle`).
    pub strategies: Vec<(Strategy, Option<Watts>)>,
    /// Why a power is absent.
    pub problem: Option<String>,
}

/// Drops powers of 0 W or less, which can't weigh a cost. The rail of an idle cluster may read 0 W, and a rail with the wrong sign reads
/// less.
fn above_zero(watts: Option<Watts>) -> Option<Watts> {
    watts.filter(|watts| watts.0 > 0.0)
}

/// An error text if the power is not above 0. `when` says when it was read.
pub(crate) fn impossible(when: &str, watts: Option<Watts>) -> Option<String> {
    let watts = watts.filter(|watts| watts.0 <= 0.0)?;
    Some(format!("the counted sensors read {} W {when}, and a power must be above 0: see `socbfs sensors`", watts.0))
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
    let mut powers = StrategyPowers::default();
    let idle = {
        let (window, begin) = (meter.begin(), Instant::now());
        while !windows.is_over(begin.elapsed(), meter.refreshes(&window)) {
            std::thread::sleep(Duration::from_secs_f64(windows.seconds / 20.0));
        }
        meter.end(window)
    };
    finished();
    powers.idle = above_zero(idle.watts);
    powers.problem = idle.problem.or_else(|| impossible("for the idle machine", idle.watts));
    if roots.is_empty() {
        powers.problem = Some("there is nothing to search".to_owned());
        return Ok(powers);
    }
    for &strategy in strategies {
        search.set_policy(Policy::Replay(Replay::new(&[strategy.plan()])), LevelDevice::Cpu)?;
        // Warm-up, so that no page is touched and no kernel is finished by its driver for the first time inside the window.
        for &root in roots {
            search.run_uncounted(root)?;
        }
        let (window, begin) = (meter.begin(), Instant::now());
        let mut looked = Duration::ZERO;
        'window: loop {
            for &root in roots {
                search.run_uncounted(root)?;
                // The clock is read after every search. The sensors are read only after the least time, and at most every 20 ms.
                let passed = begin.elapsed();
                if passed.as_secs_f64() >= windows.seconds && passed >= looked {
                    looked = passed + Duration::from_millis(20);
                    if windows.is_over(passed, meter.refreshes(&window)) {
                        break 'window;
                    }
                }
            }
        }
        let energy = meter.end(window);
        finished();
        powers.strategies.push((strategy, above_zero(energy.watts)));
        powers.problem = powers.problem.or(energy.problem).or_else(|| impossible(&format!("for {}", strategy.name()), energy.watts));
    }
    Ok(powers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_not_above_zero_are_problems() {
        let measured = [Some(Watts(2.5)), Some(Watts(0.0)), Some(Watts(-3.0)), None];
        assert_eq!(measured.map(above_zero), [Some(Watts(2.5)), None, None, None]);
        assert_eq!(measured.map(|watts| impossible("for bg", watts).is_some()), [false, true, true, false]);
        assert!(impossible("for bg", Some(Watts(-3.0))).unwrap().contains("-3 W for bg"));
    }
}
