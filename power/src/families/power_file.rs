//! A file that shows power as a number.

use std::{path::Path, time::Duration};

use crate::{
    channel::{Pace, Reading, Sensor, Sink, monotonic},
    problem::Unusable,
    tree::Held,
    units::Watts,
};

/// One file, kept open and read from its beginning at every sample.
#[derive(Debug)]
pub(super) struct PowerFile {
    number: Held,
    /// Watts per unit in the file.
    unit: f64,
    interval: Duration,
}

impl PowerFile {
    /// Opens `path`, which holds multiples of `unit` watts and is to be read every `interval`, and reads it once.
    pub(super) fn open(path: &Path, unit: f64, interval: Duration) -> Result<Box<dyn Sensor>, Unusable> {
        let number = Held::open(path)?;
        match number.number() {
            Ok(_) => Ok(Box::new(Self { number, unit, interval })),
            Err(reason) => Err(Unusable::Dead { place: path.display().to_string(), reason }),
        }
    }
}

impl Sensor for PowerFile {
    fn pace(&self) -> Pace {
        Pace::Every(self.interval)
    }

    fn sample(&mut self, sink: &mut dyn Sink) {
        let reading = self.number.number().map_or_else(Reading::Unavailable, |number| Reading::Power(Watts(number * self.unit)));
        sink.put(0, monotonic(), reading);
    }
}
