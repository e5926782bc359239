//! The result of discovery: a sensor with its channels, or why it can't be used.

use crate::{
    channel::{Channel, Sensor},
    problem::Unusable,
};

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
}
