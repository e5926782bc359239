//! The result of discovery: a sensor with its channels, or why it can't be used.

use std::fmt;

use crate::{Channel, Lost, Pace, Reading, Sensor, Sink, Unusable, monotonic};

/// A sensor that was found, usable or not.
#[derive(Debug)]
pub struct Source {
    /// Its channels. The position is the channel number of [`Sink::put`](crate::Sink::put).
    pub channels: Vec<Channel>,
    /// The sensor with its files open, or why it can't be used.
    pub sensor: Result<Box<dyn Sensor>, Unusable>,
}

impl Source {
    /// A source of `channels`.
    pub fn new(channels: Vec<Channel>, sensor: Result<Box<dyn Sensor>, Unusable>) -> Self {
        Self { channels, sensor }
    }

    /// A source of one channel, whose value is what the function in `read` returns.
    pub(crate) fn single<F>(channel: Channel, pace: Pace, read: Result<F, Unusable>) -> Self
    where
        F: FnMut() -> Result<Reading, Lost> + Send + 'static,
    {
        Self::new(vec![channel], read.map(|read| Box::new(Single { pace, read }) as Box<dyn Sensor>))
    }
}

/// A sensor of one channel.
struct Single<F> {
    pace: Pace,
    read: F,
}

impl<F> fmt::Debug for Single<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Single").field("pace", &self.pace).finish_non_exhaustive()
    }
}

impl<F: FnMut() -> Result<Reading, Lost> + Send> Sensor for Single<F> {
    fn pace(&self) -> Pace {
        self.pace
    }

    fn sample(&mut self, sink: &mut dyn Sink) {
        let reading = (self.read)().unwrap_or_else(Reading::Unavailable);
        sink.put(0, monotonic(), reading);
    }
}
