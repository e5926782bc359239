//! Which point is measured next, and which are best.
//!
//! First every choice of CPUs with all its clocks at a middle step. Then, for each goal and each choice whose best point is near the best
//! of all, the neighbours of that point: along each clock the ends, and then half way to the nearest step that was measured, on the side
//! where a parabola through the three has its highest point. Where that would gain less than [`WORTH`], the clock is done.

use std::collections::BTreeMap;

use super::axes::{Axes, Spot};
use crate::record::{BestPoint, OperatingPoint, PointRecord};
use socbfs_boards::board::Goal;

/// How good a point is: higher is better, for each of [`Goal::ALL`]. Without a power only the speed is known.
pub type Score = [Option<f64>; 3];

/// A choice is refined if its best score is at least this share of the best of all.
const PROMISING: f64 = 0.9;
/// A gain that is worth another point.
const WORTH: f64 = 0.005;

/// The score of a point (`None`: it was thrown away).
pub fn score(record: &PointRecord) -> Option<Score> {
    let measured = record.measured.as_ref()?;
    let energy = measured.energy.as_ref();
    Some([
        Some(measured.teps),
        energy.map(|energy| energy.mteps_per_watt.mean),
        energy.map(|energy| 1.0 / energy.energy_delay_joule_seconds.mean),
    ])
}

/// Points that were tried, with their scores.
pub type Done = BTreeMap<Spot, Option<Score>>;

/// The points to measure next; empty where nothing is left to try.
pub fn next(axes: &Axes, done: &Done) -> Vec<Spot> {
    let middle = (0..axes.choices.len()).map(|choice| at(axes, choice, |steps| (steps - 1) / 2)).filter(|spot| !done.contains_key(spot));
    let middle: Vec<Spot> = middle.collect();
    if !middle.is_empty() {
        return middle;
    }
    let mut found: Vec<Spot> = Vec::new();
    for goal in Goal::ALL {
        let mut best: BTreeMap<usize, (&Spot, f64)> = BTreeMap::new();
        for (spot, score) in done {
            // A point whose clocks are as they were found has no neighbours.
            let Some(score) = score.and_then(|score| score[goal as usize]).filter(|_| !spot.steps.is_empty()) else { continue };
            let known = best.entry(spot.choice).or_insert((spot, score));
            if score > known.1 {
                *known = (spot, score);
            }
        }
        let most = best.values().map(|(_, score)| *score).fold(0.0, f64::max);
        for (&choice, &(spot, score)) in best.iter().filter(|(_, best)| best.1 >= PROMISING * most) {
            // Speed grows with every clock, so all are raised at once; where the chip then slows down, one after the other is lowered.
            let highest = at(axes, choice, |steps| steps - 1);
            if goal == Goal::Fastest && !done.contains_key(&highest) {
                found.push(highest);
            } else {
                found.extend(neighbours(axes, done, goal, (spot, score)));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The spot of a choice at which each clock has the step that `step` gives for its number of steps.
fn at(axes: &Axes, choice: usize, step: fn(usize) -> usize) -> Spot {
    Spot { choice, steps: axes.choices[choice].domains.iter().map(|&domain| step(axes.steps(domain))).collect() }
}

/// The points next to the best one of a choice, along each clock with all others as they are.
fn neighbours(axes: &Axes, done: &Done, goal: Goal, (spot, score): (&Spot, f64)) -> Vec<Spot> {
    let domains = &axes.choices[spot.choice].domains;
    let mut found = Vec::new();
    for (place, &domain) in domains.iter().enumerate() {
        let at = |step: usize| {
            let mut steps = spot.steps.clone();
            steps[place] = step;
            Spot { choice: spot.choice, steps }
        };
        let (own, last) = (spot.steps[place], axes.steps(domain) - 1);
        let below = (0..own).rev().find(|&step| done.contains_key(&at(step)));
        let above = (own + 1..=last).find(|&step| done.contains_key(&at(step)));
        let known = |step: Option<usize>| Some((step?, done.get(&at(step?)).copied()??[goal as usize]?));
        let wanted = match (known(below), known(above)) {
            _ if goal == Goal::Fastest => [None, above.map_or(Some(last), |above| half(own, above))],
            (Some(below), Some(above)) => {
                let khz = |step: usize| axes.domains[domain].steps_khz[step] as f64;
                match vertex([below.0, own, above.0].map(khz), [below.1, score, above.1]) {
                    // Half way to the nearest step on the side of the vertex.
                    Some((_, gain)) if gain < WORTH * score => [None, None],
                    Some((vertex, _)) if vertex < khz(own) => [half(own, below.0), None],
                    _ => [None, half(own, above.0)],
                }
            }
            // A side that was not tried, or at which the point was thrown away.
            _ => [
                below.map_or((own > 0).then_some(0), |below| half(own, below)),
                above.map_or((own < last).then_some(last), |above| half(own, above)),
            ],
        };
        found.extend(wanted.into_iter().flatten().map(at).filter(|spot| !done.contains_key(spot)));
    }
    found
}

/// The step half way between two (`None`: there is none).
fn half(own: usize, other: usize) -> Option<usize> {
    let step = usize::midpoint(own, other);
    let step = if step == own { other.max(own) - usize::from(other > own) } else { step };
    (step != own && step != other).then_some(step)
}

/// Where the parabola through three points is highest, and how much higher than in the middle one (`None`: it has no highest point).
fn vertex(x: [f64; 3], y: [f64; 3]) -> Option<(f64, f64)> {
    let (below, above) = ((y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1]));
    let bend = (above - below) / (x[2] - x[0]);
    if bend >= 0.0 {
        return None;
    }
    // The slope in the middle, and from there to where it is 0.
    let slope = below + bend * (x[1] - x[0]);
    let way = -slope / (2.0 * bend);
    Some((x[1] + way, -bend * way * way))
}

/// The places of the points that no other point beats in both speed and power, the most efficient first. Without a power, the fastest.
pub fn frontier(points: &[PointRecord]) -> Vec<usize> {
    let of = |record: &PointRecord| {
        let measured = record.measured.as_ref()?;
        Some((measured.teps, measured.energy.as_ref().map_or(0.0, |energy| energy.watts.mean)))
    };
    let all: Vec<(usize, f64, f64)> =
        points.iter().enumerate().filter_map(|(place, record)| of(record).map(|(teps, watts)| (place, teps, watts))).collect();
    let beats = |a: &(usize, f64, f64), b: &(usize, f64, f64)| a.1 >= b.1 && a.2 <= b.2 && (a.1 > b.1 || a.2 < b.2 || a.0 < b.0);
    let mut found: Vec<(usize, f64, f64)> = all.iter().filter(|point| !all.iter().any(|other| beats(other, point))).copied().collect();
    let efficiency = |&(_, teps, watts): &(usize, f64, f64)| teps / watts.max(f64::MIN_POSITIVE);
    found.sort_by(|a, b| efficiency(b).total_cmp(&efficiency(a)));
    found.into_iter().map(|(place, ..)| place).collect()
}

/// The best point of each goal, and how many times better than the point `default` it is.
pub fn best(points: &[PointRecord], default: &OperatingPoint) -> Vec<BestPoint> {
    let default = points.iter().position(|record| record.point == *default);
    let of = |place: usize, goal: usize| points.get(place).and_then(score).and_then(|score| score[goal]);
    let best = |(goal, name): (usize, Goal)| {
        let scored = (0..points.len()).filter_map(|place| of(place, goal).map(|score| (place, score)));
        let (place, score) = scored.max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(BestPoint { goal: name, place, over_default: default.and_then(|default| of(default, goal)).map(|default| score / default) })
    };
    Goal::ALL.into_iter().enumerate().filter_map(best).collect()
}
