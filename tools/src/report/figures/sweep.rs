//! Figures of `socbfs sweep`.

use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Section, Series, Table, begin, text as shown};
use crate::record::{BestPoint, OTHER_CPUS, PointMeasured, PointRecord, SweepRecord};
use socbfs::words::{counted, general, mteps, seconds};
use socbfs_boards::board::Goal;
use socbfs_power::{Joules, Watts};

const SOURCE: &str = "socbfs sweep";

/// The sweep as text: the frontier (with `all` every point), what is best, what was left out.
pub fn sweep(record: &SweepRecord, all: bool) -> String {
    // Without its chart a figure that has no table says nothing.
    let section = section(record).brief(|figure| (all || figure.id != "points") && !figure.table.rows.is_empty());
    shown(&Document { warnings: warnings(record), sections: vec![section], ..Document::default() }, false, true)
}

/// What a reader should know, with the first reason why a point has no energy.
fn warnings(record: &SweepRecord) -> Vec<String> {
    let problem = record.points.iter().find_map(|point| Some((&point.point.name, point.measured.as_ref()?.problem.as_ref()?)));
    let beside: Vec<f64> = record.points.iter().filter_map(other_cpus).collect();
    let most = beside.iter().copied().reduce(f64::max).map(|most| {
        let points = counted(beside.len() as u64, "point was", "points were");
        format!("{points} measured beside other programs, which used up to {most:.2} CPUs: --strict measures only while there are none")
    });
    let no_watts = problem.map(|(name, why)| format!("no watts of {name}: {why}"));
    record.warnings.iter().cloned().chain(no_watts).chain(most).collect()
}

/// CPUs that other programs used at this point, if it is worth telling.
fn other_cpus(record: &PointRecord) -> Option<f64> {
    record.measured.as_ref()?.other_cpus.filter(|&cpus| cpus > OTHER_CPUS)
}

/// A point in a line.
pub fn point_line(record: &PointRecord) -> String {
    let Some(measured) = &record.measured else {
        return format!("{}: {}", record.point.name, record.thrown_away.last().map_or("not measured", String::as_str));
    };
    let energy = match (&measured.energy, &measured.problem) {
        (Some(energy), _) => format!(", {}, {} MTEPS/W", Watts(energy.watts.mean), general(energy.mteps_per_watt.mean, 4)),
        (None, problem) => problem.as_ref().map_or_else(String::new, |why| format!(", no watts: {why}")),
    };
    format!("{}: {}{energy}", record.point.name, mteps(measured.teps))
}

/// The document of a sweep.
pub(super) fn document(sweep: &SweepRecord, record: &Value) -> Document {
    let document = begin("The efficiency frontier of a board", record, &[]);
    Document { warnings: warnings(sweep), sections: vec![section(sweep)], ..document }
}

fn section(record: &SweepRecord) -> Section {
    let graph = record.graph.as_ref().map_or_else(|| "a graph".to_owned(), |graph| graph.source.clone());
    let measured = record.points.iter().filter(|point| point.measured.is_some()).count() as u64;
    let thrown_away: usize = record.points.iter().map(|point| point.thrown_away.len()).sum();
    let power = record.scope.as_deref().map_or_else(|| "n/a".to_owned(), |scope| format!("{scope}: {}", record.sensors.join(" + ")));
    let mut facts = vec![
        ("points", Cell::word(format!("{measured} measured of {} in the grid", counted(record.grid, "point", "points")))),
        ("power", Cell::word(power)),
    ];
    facts.extend(record.idle_watts.map(|idle| ("idle", Cell::word(idle.to_string()))));
    facts.extend((thrown_away > 0).then(|| ("thrown away", Cell::word(counted(thrown_away as u64, "try", "tries")))));
    facts.extend(record.drift.map(|drift| ("drift of the default", Cell::word(format!("{:+.1} %", 100.0 * (drift - 1.0))))));
    facts.extend(record.left_out.iter().map(|reason| ("left out", Cell::word(reason))));
    let mut figures = vec![frontier(record), best(record)];
    figures.extend(clocks(record));
    figures.push(Figure::new("points", SOURCE, "All points", "In the order of measurement.").table(table(&record.points)));
    Section {
        title: format!("Searches of {graph} from {}", counted(record.roots as u64, "root", "roots")),
        facts: facts.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect(),
        figures,
    }
}

fn watts(record: &PointRecord) -> Option<f64> {
    Some(record.measured.as_ref()?.energy.as_ref()?.watts.mean)
}

fn table<'r>(points: impl IntoIterator<Item = &'r PointRecord> + Clone) -> Table {
    fn of(record: &PointRecord, value: fn(&PointMeasured) -> Option<f64>, cell: fn(f64) -> Cell) -> Cell {
        Cell::of(record.measured.as_ref().and_then(value), cell)
    }
    let millijoules = |joules: f64| Cell::number(1e3 * joules);
    let beside: Vec<Option<f64>> = points.clone().into_iter().map(other_cpus).collect();
    let mut table = Table::of(
        points,
        &[
            ("point", &|record| Cell::word(&record.point.name)),
            ("MTEPS", &|record| of(record, |measured| Some(measured.teps / 1e6), Cell::number)),
            ("W", &|record| Cell::of(watts(record), Cell::number)),
            ("MTEPS/W", &|record| of(record, |measured| Some(measured.energy.as_ref()?.mteps_per_watt.mean), Cell::number)),
            ("mJ/search", &|record| of(record, |measured| Some(measured.energy.as_ref()?.joules_per_search.mean), millijoules)),
            ("uJs", &|record| of(record, |measured| Some(1e6 * measured.energy.as_ref()?.energy_delay_joule_seconds.mean), Cell::number)),
            ("spread", &|record| of(record, |measured| Some(measured.spread), Cell::share)),
        ],
    );
    if beside.iter().any(Option::is_some) {
        table.add(
            "other CPUs",
            beside.into_iter().map(|cpus| Cell::of(cpus, |cpus| Cell { text: format!("{cpus:.2}"), value: Some(cpus) })),
        );
    }
    table
}

fn frontier(record: &SweepRecord) -> Figure {
    let points: Vec<&PointRecord> = record.frontier.iter().filter_map(|&place| record.points.get(place)).collect();
    let sentence = match points.iter().any(|point| watts(point).is_some()) {
        true => format!("No other point is faster for the same power: {}.", counted(points.len() as u64, "point", "points")),
        false => "Without watts, the fastest point.".to_owned(),
    };
    let place = |point: &&PointRecord| Some((point.measured.as_ref()?.teps / 1e6, watts(point)?));
    let mut on: Vec<(f64, f64)> = points.iter().filter_map(place).collect();
    on.sort_by(|a, b| a.0.total_cmp(&b.0));
    let others = record.points.iter().enumerate().filter(|(at, _)| !record.frontier.contains(at)).map(|(_, point)| point);
    // A series each, so that no line joins them.
    let mut series = vec![Series::new("frontier", on)];
    series.extend(others.filter_map(|point| Some(Series::new(&point.point.name, [place(&point)?]))).take(LABELLED));
    let figure = Figure::new("frontier", SOURCE, "Speed against power", sentence).table(table(points));
    if series[0].points.is_empty() { figure } else { figure.chart(Chart::lines("MTEPS", "W", series)) }
}

/// Most points beside the frontier that the chart shows: each has a name in the legend.
const LABELLED: usize = 24;

/// MTEPS/W (without watts MTEPS) over the clock, a line for each choice of CPUs with one clock.
fn clocks(record: &SweepRecord) -> Option<Figure> {
    let mut lines: Vec<Series> = Vec::new();
    for point in &record.points {
        let (Some(measured), Some((_, khz)), 1) = (&point.measured, point.point.clocks_khz.first_key_value(), point.point.clocks_khz.len())
        else {
            continue;
        };
        let value = measured.energy.as_ref().map_or(measured.teps / 1e6, |energy| energy.mteps_per_watt.mean);
        let name = point.point.name.split(" at ").next().unwrap_or_default();
        let at = (*khz as f64 / 1e3, value);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(at),
            None => lines.push(Series::new(name, [at])),
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let has_watts = record.points.iter().any(|point| watts(point).is_some());
    let unit = if has_watts { "MTEPS/W" } else { "MTEPS" };
    (!lines.is_empty()).then(|| {
        let title = format!("{unit} over the clock");
        Figure::new("clocks", SOURCE, title, "A line for each choice of CPUs.").chart(Chart::lines("MHz", unit, lines))
    })
}

/// What is best, with the flags that reproduce it.
fn best(record: &SweepRecord) -> Figure {
    let rows: Vec<(&BestPoint, &PointRecord)> =
        record.best.iter().filter_map(|best| Some((best, record.points.get(best.place)?))).collect();
    let over = |best: &BestPoint, point: &PointRecord| match best.over_default {
        _ if point.point == record.default => "the default itself".to_owned(),
        Some(times) => format!("{times:.2}x"),
        None => "n/a: the default was thrown away".to_owned(),
    };
    let table = Table::of(
        rows,
        &[
            ("best", &|(best, _)| {
                Cell::word(match best.goal {
                    Goal::Fastest => "fastest",
                    Goal::Efficient => "most efficient",
                    Goal::Product => "least energy x delay",
                })
            }),
            ("point", &|(_, point)| Cell::word(&point.point.name)),
            ("over the default", &|(best, point)| Cell::word(over(best, point))),
            ("flags of bench and run", &|(_, point)| Cell::word(flags(point))),
        ],
    );
    Figure::new("best", SOURCE, "What is best", race(record).unwrap_or_else(|| "By how much, and how to get it.".to_owned())).table(table)
}

fn flags(record: &PointRecord) -> String {
    let point = &record.point;
    let policy = point.policy.as_ref().map_or_else(String::new, |policy| format!(" --policy {policy}"));
    format!("--cpus {} --device {}{policy}", point.cpus, point.device)
}

/// Whether it takes less energy to search fast and then to idle, or to search slowly, in the time of the more efficient point.
fn race(record: &SweepRecord) -> Option<String> {
    let of = |goal: Goal| {
        let best = record.best.iter().find(|best| best.goal == goal)?;
        let measured = record.points.get(best.place)?.measured.as_ref()?;
        Some((measured.search_seconds, measured.energy.as_ref()?.joules_per_search.mean))
    };
    let ((fast, raced), (slow, paced), idle) = (of(Goal::Fastest)?, of(Goal::Efficient)?, record.idle_watts?.0);
    if slow <= fast {
        return Some("The fastest point is the most efficient: searching fast and then idling is best.".to_owned());
    }
    let raced = raced + idle * (slow - fast);
    let winner = if raced < paced { "fast and then idle" } else { "slow" };
    Some(format!(
        "In {}, a search at the fastest point and idling for the rest takes {}, at the most efficient one {}: {winner} is better.",
        seconds(slow),
        Joules(raced),
        Joules(paced)
    ))
}
