//! The sweep itself: which point when, until when.

use std::time::Duration;

use super::{
    axes::{Axes, Spot},
    plan::{self, Done},
};
use crate::record::{PointMeasured, PointRecord};
use socbfs_io::generate::hash::Numbers;

/// What a try of a point came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Tried {
    /// Searches at this point.
    Measured(Box<PointMeasured>),
    /// Something disturbed it, or the point can't be kept: why.
    ThrownAway(String),
}

/// A machine whose points can be measured: this one, or a simulated one.
pub trait Machine {
    /// Why a sweep can't go on.
    type Error;

    /// Searches at `spot`.
    ///
    /// # Errors
    /// If the sweep can't go on.
    fn measure(&mut self, axes: &Axes, spot: &Spot) -> Result<Tried, Self::Error>;

    /// Time since the sweep began.
    fn elapsed(&self) -> Duration;
}

/// Options of a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweepOptions {
    /// The sweep ends before this is over.
    pub budget: Duration,
    /// Seed of the order of the points.
    pub seed: u64,
}

/// Tries of a point that is thrown away again and again.
const TRIES: usize = 3;
/// Points between two measurements of the default.
const BETWEEN: u32 = 8;

/// How a sweep ended.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Ended {
    /// Nothing was left to try.
    pub exhausted: bool,
    /// Speed of the default at its last measurement over that at its first.
    pub drift: Option<f64>,
}

/// Measures points of `axes` until nothing is left to try or the budget is spent. `points` are those of an earlier run; `add` gets each new
/// one when it is done. The first point is the default.
///
/// # Errors
/// Of the machine, or of `add`.
pub fn sweep<M: Machine>(
    machine: &mut M,
    axes: &Axes,
    options: SweepOptions,
    points: &[PointRecord],
    mut add: impl FnMut(PointRecord) -> Result<(), M::Error>,
) -> Result<Ended, M::Error> {
    let mut done: Done = points.iter().filter_map(|record| Some((axes.spot(&record.point)?, plan::score(record)))).collect();
    let (mut ended, mut random) = (Ended::default(), Numbers::new(options.seed));
    let mut tries = 0_u32;
    let first = Axes::default_spot();
    let mut speed = points.first().and_then(|record| record.measured.as_ref()).map(|measured| measured.teps);
    // Points that were thrown away come again later.
    let mut again: Vec<(Spot, Vec<String>)> = Vec::new();
    let mut queue: Vec<(Spot, Vec<String>)> = if done.contains_key(&first) { Vec::new() } else { vec![(first.clone(), Vec::new())] };
    loop {
        if queue.is_empty() {
            // A point that is tried again counts as measured until then, so that its neighbours do not wait for it.
            let mut known = done.clone();
            known.extend(again.iter().map(|(spot, _)| (spot.clone(), None)));
            queue = plan::next(axes, &known).into_iter().map(|spot| (spot, Vec::new())).collect();
            shuffle(&mut queue, &mut random);
            if queue.is_empty() {
                queue.append(&mut again);
            }
        }
        let Some((spot, mut thrown_away)) = queue.pop() else {
            ended.exhausted = true;
            return Ok(ended);
        };
        if is_over(machine, tries, options.budget) {
            return Ok(ended);
        }
        tries += 1;
        match machine.measure(axes, &spot)? {
            Tried::Measured(measured) => {
                if spot == first {
                    speed = speed.or(Some(measured.teps));
                }
                let record = PointRecord { point: axes.point(&spot), measured: Some(*measured), thrown_away };
                done.insert(spot, plan::score(&record));
                add(record)?;
            }
            Tried::ThrownAway(why) => {
                thrown_away.push(why);
                if thrown_away.len() < TRIES {
                    again.push((spot, thrown_away));
                } else {
                    done.insert(spot.clone(), None);
                    add(PointRecord { point: axes.point(&spot), measured: None, thrown_away })?;
                }
            }
        }
        if let Some(speed) = speed.filter(|_| tries % BETWEEN == 0 && !is_over(machine, tries, options.budget)) {
            tries += 1;
            if let Tried::Measured(measured) = machine.measure(axes, &first)? {
                ended.drift = Some(measured.teps / speed);
            }
        }
    }
}

/// Whether another point might exceed the budget: it takes as long as the mean of those before.
fn is_over<M: Machine>(machine: &M, tries: u32, budget: Duration) -> bool {
    let spent = machine.elapsed();
    tries > 0 && spent + spent / tries > budget
}

/// Puts `all` into a random order (Fisher and Yates).
fn shuffle<T>(all: &mut [T], random: &mut Numbers) {
    for last in (1..all.len()).rev() {
        all.swap(last, random.below(last as u64 + 1) as usize);
    }
}
