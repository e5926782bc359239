//! The moments at which energy counters change: a counter is exact at a change, and stands still until the next one.

use std::time::Duration;

use crate::{Pick, Signal};

/// Longest interval between two changes of a counter that is fast enough to be watched.
const FAST: Duration = Duration::from_millis(2);

/// Changes that are kept until they are taken.
const CAPACITY: usize = 1 << 16;

/// A change of a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The place of the counter in [`Meter::picks`](crate::Meter::picks).
    pub rail: usize,
    /// The read before the change, in nanoseconds of CLOCK_MONOTONIC.
    pub after: u64,
    /// The read that saw it.
    pub before: u64,
    /// Joules up to the change, from an arbitrary zero (`None`: the counter was reset, or changes were lost, so what it gained is unknown).
    pub joules: Option<f64>,
}

/// Why a counter can't be watched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sensor} {what}: a counter of energy that changes at least every {} ms is needed", FAST.as_millis())]
pub struct TooSlow {
    /// The sensor.
    pub sensor: String,
    /// What it does instead.
    pub what: String,
}

impl TooSlow {
    /// Why `pick` can't be watched, if it can't.
    pub(crate) fn of(pick: &Pick) -> Option<Self> {
        let (channel, every) = (&pick.channel, pick.channel.refresh.as_millis());
        let what = match channel.signal {
            Signal::Power => format!("reads a power, a new one every {every} ms"),
            Signal::Counter { .. } if channel.refresh > FAST => format!("changes every {every} ms"),
            Signal::Counter { .. } => return None,
        };
        Some(Self { sensor: channel.name(), what })
    }
}

/// A counter of a lane that is watched.
#[derive(Debug, Clone, Copy)]
struct Watched {
    rail: usize,
    refresh: u64,
    /// When it was read last, and when it was seen to change.
    read: u64,
    changed: u64,
    is_broken: bool,
}

/// The counters of a lane that are watched, by the places of their curves.
#[derive(Debug)]
pub(crate) struct Watcher {
    watched: Vec<Option<Watched>>,
    pub(crate) changes: Vec<Change>,
}

impl Watcher {
    /// Watches the curves that have a rail and a refresh interval.
    pub(crate) fn new(curves: impl Iterator<Item = Option<(usize, Duration)>>) -> Self {
        let watched = |(rail, refresh): (usize, Duration)| Watched {
            rail,
            refresh: u64::try_from(refresh.as_nanos()).unwrap_or(u64::MAX),
            read: 0,
            changed: 0,
            is_broken: true,
        };
        Self { watched: curves.map(|curve| curve.map(watched)).collect(), changes: Vec::with_capacity(CAPACITY) }
    }

    /// Notes a read at `at`, after which the curve's energy is `joules`: whether it changed, and whether the energy in between was lost.
    /// Allocates nothing.
    pub(crate) fn look(&mut self, curve: usize, at: u64, joules: f64, has_changed: bool, is_lost: bool) {
        let Some(watched) = &mut self.watched[curve] else { return };
        watched.is_broken |= is_lost;
        if has_changed {
            let joules = (!watched.is_broken).then_some(joules);
            if self.changes.len() < self.changes.capacity() {
                self.changes.push(Change { rail: watched.rail, after: watched.read, before: at, joules });
                watched.is_broken = false;
            } else {
                watched.is_broken = true;
            }
            watched.changed = at;
        }
        watched.read = at;
    }

    /// When a sensor with these curves is to be read next (`None`: none of them is watched). A counter does not change soon after a change.
    pub(crate) fn next(&self, curves: &[Option<usize>], now: u64) -> Option<u64> {
        let watched = curves.iter().flatten().filter_map(|&curve| self.watched[curve]);
        watched.map(|watched| (watched.changed + watched.refresh / 4 * 3).max(now + watched.refresh / 16)).min()
    }
}
