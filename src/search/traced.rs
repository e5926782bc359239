//! A search with a timeline of its threads and devices.

use std::time::Instant;

use super::{Outcome, Search, SearchError};
use crate::{bfs::LevelRecord, engine::Span, graph::Vertex, opencl::Launch};

/// A search with the times at which its threads and devices worked, in nanoseconds since the search began. The durations of its outcome
/// begin at the same moment.
#[derive(Debug, Clone)]
pub struct Traced {
    /// Its outcome, as [`Search::run_uncounted`] returns it.
    pub outcome: Outcome,
    /// When its first level began. Each level begins where the one before it ends.
    pub levels_begin_ns: u64,
    /// Its levels.
    pub records: Vec<LevelRecord>,
    /// When each thread worked, the calling thread first. (It records nothing for levels that are too small for several threads.)
    pub threads: Vec<Vec<Stretch>>,
    /// What each device ran.
    pub devices: Vec<TracedDevice>,
}

/// The begin and end of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Begin.
    pub begin_ns: u64,
    /// End.
    pub end_ns: u64,
}

/// The work of a device, by the times of its events.
#[derive(Debug, Clone)]
pub struct TracedDevice {
    /// Name of the device.
    pub name: String,
    /// Its kernels by name, in the order of their launches (empty if the device keeps no times: see
    /// [`Device::open_timed`](crate::opencl::Device::open_timed)).
    pub kernels: Vec<(String, Stretch)>,
}

impl Search<'_> {
    /// Makes threads and devices record up to `most` stretches each, for [`run_traced`](Self::run_traced). 0 ends the recording. The memory
    /// is allocated here: searches allocate nothing for it.
    pub fn set_traced(&mut self, most: usize) {
        self.traced = most;
        self.engine.trace(most);
    }

    /// As [`Search::run_uncounted`], with the times that threads and devices recorded.
    ///
    /// A device's times are shifted to the host's clock by the largest amount for which no kernel ends after the host has seen its end.
    ///
    /// # Errors
    /// As [`Search::run_uncounted`].
    pub fn run_traced(&mut self, root: Vertex) -> Result<Traced, SearchError> {
        // What was recorded before this search is discarded. A device that was lost since then is given up as in a search.
        if let Err(error) = self.engine.forget_traced() {
            self.fall_back(error)?;
        }
        let outcome = self.run_uncounted(root)?;
        let (threads, devices) = self.engine.traced().map_err(|error| self.failed(error))?;
        let begun = self.begun;
        let since = |at: Instant| at.saturating_duration_since(begun).as_nanos() as u64;
        let stretch = |span: Span| Stretch { begin_ns: since(span.begin), end_ns: since(span.end) };
        let device = |(name, launches): (String, Vec<Launch>)| TracedDevice { name, kernels: by_the_host(&launches, since) };
        Ok(Traced {
            outcome,
            levels_begin_ns: self.records.begun().map_or(0, since),
            records: self.records().to_vec(),
            threads: threads.into_iter().map(|spans| spans.into_iter().map(stretch).collect()).collect(),
            devices: devices.into_iter().map(device).collect(),
        })
    }
}

/// The times of `launches` by the host's clock.
fn by_the_host(launches: &[Launch], since: impl Fn(Instant) -> u64) -> Vec<(String, Stretch)> {
    let ahead = launches.iter().map(|launch| i128::from(since(launch.asked)) - i128::from(launch.time.end_ns)).min().unwrap_or(0);
    let host = |ns: u64| u64::try_from(i128::from(ns) + ahead).unwrap_or(0);
    let stretch = |launch: &Launch| Stretch { begin_ns: host(launch.time.start_ns), end_ns: host(launch.time.end_ns) };
    launches.iter().map(|launch| (launch.kernel.to_string(), stretch(launch))).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::opencl::LaunchTime;

    #[test]
    fn no_kernel_ends_after_the_host_has_seen_its_end() {
        let begin = Instant::now();
        let launch = |start_ns, end_ns, asked| Launch {
            kernel: "k".into(),
            time: LaunchTime { start_ns, end_ns },
            asked: begin + Duration::from_nanos(asked),
        };
        // The device's clock is 10,000 ahead. The host sees the end of the second kernel at once, and that of the first 40 late.
        let launches = [launch(10_100, 10_200, 240), launch(10_300, 10_450, 450)];
        let since = |at: Instant| at.duration_since(begin).as_nanos() as u64;
        let found: Vec<_> = by_the_host(&launches, since).into_iter().map(|(_, stretch)| (stretch.begin_ns, stretch.end_ns)).collect();
        assert_eq!(found, [(100, 200), (300, 450)]);
        assert!(by_the_host(&[], since).is_empty());
    }
}
