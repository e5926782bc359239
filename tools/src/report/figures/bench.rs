//! Figures of `socbfs bench`, of a board over several scales, and of two runs compared.

use serde::Deserialize;
use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Plot, Section, Series, Table, number, read};
use crate::report::{
    board::by_scale,
    comparison::{TWO_SIDED_95, interval, verdict},
};
use socbfs::{
    bfs::{Direction, LevelRecord, Placement},
    stats::Summary,
    words::{counted, general, seconds},
};

/// A fact of runs whose layout renumbers vertices.
const MAPPING_SHARE: &str = "mapping's share of time";

#[derive(Deserialize)]
struct Run {
    graph: Graph,
    layout: Layout,
    search: Search,
    valid: bool,
    roots: Vec<Root>,
    summary: Option<Figures>,
    energy: Energy,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Graph {
    source: String,
    scale: u32,
    edges: u64,
}

#[derive(Deserialize)]
struct Layout {
    construction_seconds: f64,
}

#[derive(Deserialize)]
struct Search {
    policy: String,
    threads: usize,
}

#[derive(Deserialize)]
struct Root {
    root: u32,
    levels: u32,
    edges: u64,
    seconds: Option<f64>,
    mapping_seconds: Option<f64>,
    level_records: Vec<LevelRecord>,
}

#[derive(Deserialize)]
struct Figures {
    teps: Rate,
    mapping_share: f64,
}

#[derive(Deserialize)]
struct Rate {
    harmonic_mean: f64,
    harmonic_stddev: Option<f64>,
}

#[derive(Deserialize)]
struct Energy {
    unavailable: Option<String>,
    measured: Option<Measured>,
}

#[derive(Deserialize)]
struct Measured {
    idle: Window,
    windows: Vec<SearchWindow>,
    /// `None`: not every window is complete.
    summary: Option<Efficiency>,
    problem: Option<String>,
}

#[derive(Deserialize)]
struct Efficiency {
    mteps_per_watt: OverWindows,
}

#[derive(Deserialize, Clone, Copy)]
struct OverWindows {
    count: u64,
    mean: f64,
    stddev: Option<f64>,
}

#[derive(Deserialize)]
struct SearchWindow {
    energy: Window,
    searches: u64,
    teps: f64,
}

#[derive(Deserialize)]
struct Window {
    begin_monotonic_seconds: f64,
    seconds: f64,
    joules: Option<f64>,
    watts: Option<f64>,
}

impl Run {
    /// MTEPS/W as the text and the record give it: over all windows, or why there is none.
    fn efficiency(&self) -> Result<OverWindows, String> {
        let Some(measured) = &self.energy.measured else {
            return Err(self.energy.unavailable.clone().unwrap_or_else(|| "no energy was measured".to_owned()));
        };
        let found = measured.summary.as_ref().map(|summary| summary.mteps_per_watt);
        found.ok_or_else(|| measured.problem.clone().unwrap_or_else(|| "a window is incomplete".to_owned()))
    }

    fn seconds(&self) -> Vec<f64> {
        self.roots.iter().filter_map(|root| root.seconds).collect()
    }
}

/// The document of a run of `socbfs bench`.
pub(super) fn document(record: &Value) -> Result<Document, serde_json::Error> {
    let run = Run::deserialize(record)?;
    let mut document = read::begin("A benchmark of breadth-first search", record);
    read::flatten("search", record.get("search").unwrap_or(&Value::Null), &mut document.environment);
    // Tables of handover costs are left out here: `socbfs devices` shows them.
    document.environment.retain(|(name, _)| !name.contains(".handover.") && !name.contains(".thresholds."));
    document.warnings.extend((!run.valid).then(|| "a tree failed validation: there is no speed".to_owned()));
    document.sections = vec![section(&run)];
    Ok(document)
}

fn section(run: &Run) -> Section {
    let mut section = Section { title: run.graph.source.clone(), ..Section::default() };
    let (Some(summary), true) = (&run.summary, run.valid) else { return section };
    let teps = &summary.teps;
    let interval = teps.harmonic_stddev.map(|error| TWO_SIDED_95 * error / 1e6);
    let times = Summary::of(&run.seconds());
    let time = |of: fn(&Summary) -> f64| Cell::of(times.as_ref().map(of), Cell::seconds);
    // 0 means that the layout does not renumber vertices.
    let mapped = summary.mapping_share > 0.0;
    section.facts = [
        ("harmonic mean, MTEPS", Cell::number(teps.harmonic_mean / 1e6)),
        ("95 % interval, +/- MTEPS", Cell::of(interval, Cell::number)),
        ("median time", time(|times| times.median)),
        ("first quartile", time(|times| times.first_quartile)),
        ("third quartile", time(|times| times.third_quartile)),
        (MAPPING_SHARE, Cell::share(summary.mapping_share)),
        ("MTEPS/W", run.efficiency().map_or_else(|why| Cell::word(format!("n/a: {why}")), |found| Cell::number(found.mean))),
        ("edges of the graph", Cell::count(run.graph.edges)),
        ("construction", Cell::seconds(run.layout.construction_seconds)),
        ("policy", Cell::word(&run.search.policy)),
        ("threads", Cell::count(run.search.threads as u64)),
    ]
    .into_iter()
    .filter(|&(name, _)| mapped || name != MAPPING_SHARE)
    .map(|(name, cell)| (name.to_owned(), cell))
    .collect();
    section.figures.push(times_of(run));
    section.figures.extend(run.roots.first().and_then(timeline));
    if mapped {
        section.figures.push(mapping(run));
    }
    section.figures.push(energy(run));
    section
}

fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The number of a vertex: a name, so without separators.
fn vertex(number: u32) -> Cell {
    Cell { text: number.to_string(), value: Some(f64::from(number)) }
}

fn times_of(run: &Run) -> Figure {
    let mut times = run.seconds();
    times.sort_by(f64::total_cmp);
    let count = times.len().max(1) as f64;
    let spread = Summary::of(&times).map_or_else(String::new, |times| {
        format!(
            "Half of the searches take {} to {}, all {} to {}.",
            seconds(times.first_quartile),
            seconds(times.third_quartile),
            seconds(times.min),
            seconds(times.max)
        )
    });
    Figure {
        id: "times",
        title: "Distribution of times over the roots".into(),
        source: "socbfs bench",
        sentence: spread,
        chart: Some(Chart::Lines(Plot {
            x: "time of a search, ms".into(),
            y: "% of roots that take no longer".into(),
            series: vec![Series::new("searches", times.iter().enumerate().map(|(at, time)| (1e3 * time, 100.0 * (at + 1) as f64 / count)))],
            ..Plot::default()
        })),
        table: Table {
            columns: columns(&["root", "levels", "edges", "time", "MTEPS", "mapping"]),
            rows: run
                .roots
                .iter()
                .map(|root| {
                    vec![
                        vertex(root.root),
                        Cell::count(u64::from(root.levels)),
                        Cell::count(root.edges),
                        Cell::of(root.seconds, Cell::seconds),
                        Cell::of(root.seconds.filter(|&seconds| seconds > 0.0), |seconds| Cell::number(root.edges as f64 / seconds / 1e6)),
                        Cell::of(root.mapping_seconds, Cell::seconds),
                    ]
                })
                .collect(),
        },
    }
}

fn place(placement: Placement) -> String {
    match placement {
        Placement::Cpu => "cpu".to_owned(),
        Placement::Gpu(kernel) => kernel.name().to_owned(),
        Placement::Split { gpu_permille, .. } | Placement::Apart { gpu_permille } => {
            format!("both, gpu {} %", f64::from(gpu_permille) / 10.0)
        }
    }
}

/// The time of each level of a search.
fn timeline(root: &Root) -> Option<Figure> {
    let records = &root.level_records;
    let longest = records.iter().max_by_key(|record| record.elapsed_ns)?;
    let all: u64 = records.iter().map(|record| record.elapsed_ns).sum();
    // Levels that ran together share a record.
    let levels: u64 = records.iter().map(|record| u64::from(record.levels.max(1))).sum();
    let rest = |record: &LevelRecord| record.elapsed_ns.saturating_sub(record.handover_ns + record.decision_ns + record.conversion_ns);
    let name = |record: &LevelRecord| match record.levels {
        0 | 1 => record.stats.level.to_string(),
        levels => format!("{}-{}", record.stats.level, record.stats.level + levels - 1),
    };
    let line = |name: &str, of: &dyn Fn(&LevelRecord) -> u64| {
        Series::new(name, records.iter().enumerate().map(|(at, record)| (at as f64, of(record) as f64 / 1e3)))
    };
    Some(Figure {
        id: "timeline",
        title: format!("Where the time of a search goes (root {})", root.root),
        source: "socbfs bench",
        sentence: format!(
            "{} {} {} longest: {}, {:.1} % of all {}.",
            if longest.levels > 1 { "Levels" } else { "Level" },
            name(longest),
            if longest.levels > 1 { "take" } else { "takes" },
            seconds(longest.elapsed_ns as f64 / 1e9),
            100.0 * longest.elapsed_ns as f64 / all.max(1) as f64,
            counted(levels, "level", "levels")
        ),
        chart: Some(Chart::bars(
            "level (the root is 0)",
            "us",
            records.iter().map(name),
            vec![
                line("search", &rest),
                line("handover", &|record| record.handover_ns),
                line("conversion", &|record| record.conversion_ns),
                line("deciding", &|record| record.decision_ns),
            ],
        )),
        table: Table {
            columns: columns(&["level", "direction", "on", "found", "time", "handover", "conversion", "deciding"]),
            rows: records
                .iter()
                .map(|record| {
                    let direction = match record.plan.direction {
                        Direction::TopDown => "top-down",
                        Direction::BottomUp => "bottom-up",
                    };
                    let mut row = vec![Cell::word(name(record)), Cell::word(direction), Cell::word(place(record.plan.placement))];
                    row.push(Cell::count(record.found));
                    let times = [record.elapsed_ns, record.handover_ns, record.conversion_ns, record.decision_ns];
                    row.extend(times.map(|ns| Cell::ns(ns as f64)));
                    row
                })
                .collect(),
        },
    })
}

fn mapping(run: &Run) -> Figure {
    let share = |root: &Root| Some((root.root, 100.0 * root.mapping_seconds? / root.seconds.filter(|&seconds| seconds > 0.0)?));
    let shares: Vec<(u32, f64)> = run.roots.iter().filter_map(share).collect();
    let of = Summary::of(&shares.iter().map(|(_, share)| *share).collect::<Vec<_>>());
    Figure {
        id: "mapping",
        title: "Mapping parents back to the input's numbers".into(),
        source: "socbfs bench",
        sentence: of.map_or_else(String::new, |of| format!("Mapping takes {:.1} % of a search in the median over the roots.", of.median)),
        chart: Some(Chart::Lines(Plot {
            x: "search, in the order of the run".into(),
            y: "% of the time".into(),
            series: vec![Series::new("mapping", shares.iter().enumerate().map(|(at, (_, share))| ((at + 1) as f64, *share)))],
            ..Plot::default()
        })),
        table: Table {
            columns: columns(&["root", "share of mapping, %"]),
            rows: shares.iter().map(|&(root, share)| vec![vertex(root), Cell::number(share)]).collect(),
        },
    }
}

fn energy(run: &Run) -> Figure {
    let mut figure = Figure {
        id: "energy",
        title: "Power while idle and while searching".into(),
        source: "Green Graph500",
        sentence: String::new(),
        chart: None,
        table: Table::default(),
    };
    let Some(measured) = &run.energy.measured else {
        figure.sentence = format!("Energy is n/a: {}.", run.energy.unavailable.as_deref().unwrap_or("it was not measured"));
        return figure;
    };
    let start = measured.idle.begin_monotonic_seconds;
    let all = || std::iter::once((&measured.idle, None)).chain(measured.windows.iter().map(|window| (&window.energy, Some(window))));
    let over_time = |windows: &mut dyn Iterator<Item = &Window>| {
        let ends = |window: &Window| {
            let (begin, watts) = (window.begin_monotonic_seconds - start, window.watts?);
            Some([(begin, watts), (begin + window.seconds, watts)])
        };
        windows.filter_map(ends).flatten().collect::<Vec<_>>()
    };
    figure.sentence = run.efficiency().map_or_else(
        |why| format!("MTEPS/W is n/a: {why}."),
        |found| {
            let spread = found.stddev.map_or_else(String::new, |spread| format!(" +/- {}", general(spread, 3)));
            format!("{}{spread} MTEPS/W over {}.", general(found.mean, 4), counted(found.count, "window", "windows"))
        },
    );
    figure.chart = Some(Chart::Lines(Plot {
        x: "seconds".into(),
        y: "W, mean of a window".into(),
        series: vec![
            Series::new("idle", over_time(&mut std::iter::once(&measured.idle))),
            Series::new("searching", over_time(&mut measured.windows.iter().map(|window| &window.energy))),
        ],
        ..Plot::default()
    }));
    figure.table = Table {
        columns: columns(&["window", "begins", "length", "W", "J", "searches", "J per search", "MTEPS/W"]),
        rows: all()
            .enumerate()
            .map(|(at, (window, searched))| {
                let per_search = searched.and_then(|searched| Some(window.joules? / searched.searches as f64));
                let efficiency = searched.and_then(|searched| Some(searched.teps / 1e6 / window.watts.filter(|&watts| watts > 0.0)?));
                vec![
                    if at == 0 { Cell::word("idle") } else { Cell::count(at as u64) },
                    Cell::seconds(window.begin_monotonic_seconds - start),
                    Cell::seconds(window.seconds),
                    Cell::of(window.watts, Cell::number),
                    Cell::of(window.joules, Cell::number),
                    Cell::of(searched.map(|searched| searched.searches), Cell::count),
                    Cell::of(per_search, Cell::number),
                    Cell::of(efficiency, Cell::number),
                ]
            })
            .collect(),
    };
    figure
}

/// A scale that a board's record does not have.
#[derive(Deserialize)]
struct LeftOut {
    scale: u32,
    reason: String,
}

/// The document of a board over several scales.
pub(super) fn board(record: &Value) -> Result<Document, serde_json::Error> {
    let runs: Vec<Run> = record.get("runs").map(Deserialize::deserialize).transpose()?.unwrap_or_default();
    let mut document = read::begin("A board over several scales", record);
    for part in ["board", "opencl"] {
        read::flatten(part, record.get(part).unwrap_or(&Value::Null), &mut document.environment);
    }
    document.warnings.extend(runs.iter().filter(|run| !run.valid).map(|run| format!("{}: a tree failed validation", run.graph.source)));
    let warnings = by_scale(runs.iter().map(|run| (run.graph.scale, &run.warnings[..])));
    document.warnings.extend(warnings.into_iter().map(|(scales, warning)| match scales {
        Some(scales) => format!("{scales}: {warning}"),
        None => warning.to_owned(),
    }));
    let left_out: Vec<LeftOut> = record.get("left_out").map(Deserialize::deserialize).transpose()?.unwrap_or_default();
    document.warnings.extend(left_out.iter().map(|scale| format!("scale {} is left out: {}", scale.scale, scale.reason)));
    document.sections = vec![Section { title: "All scales".into(), figures: vec![scales(&runs)], ..Section::default() }];
    document.sections.extend(runs.iter().map(section));
    Ok(document)
}

fn scales(runs: &[Run]) -> Figure {
    let speed = |run: &Run| run.summary.as_ref().filter(|_| run.valid).map(|summary| summary.teps.harmonic_mean / 1e6);
    let point =
        |of: &dyn Fn(&Run) -> Option<f64>| runs.iter().filter_map(|run| Some((f64::from(run.graph.scale), of(run)?))).collect::<Vec<_>>();
    let efficiency = |run: &Run| run.efficiency().ok().map(|found| found.mean);
    let best = runs.iter().filter_map(|run| Some((run, speed(run)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let mut series = vec![Series::new("MTEPS", point(&speed))];
    let per_watt = point(&efficiency);
    if !per_watt.is_empty() {
        series.push(Series::new("MTEPS/W", per_watt));
    }
    Figure {
        id: "scales",
        title: "Speed and efficiency by scale".into(),
        source: "Graph500, Green Graph500",
        sentence: best.map_or_else(
            || "No scale has a speed.".to_owned(),
            |(run, mteps)| format!("The board is fastest at scale {}, with {} MTEPS.", run.graph.scale, number(mteps)),
        ),
        chart: Some(Chart::Lines(Plot {
            x: "scale (log2 of the vertices)".into(),
            y: "million edges/s, per watt".into(),
            log_y: true,
            series,
            ..Plot::default()
        })),
        table: Table {
            columns: columns(&["scale", "MTEPS", "MTEPS/W"]),
            rows: runs
                .iter()
                .map(|run| {
                    vec![
                        Cell::count(u64::from(run.graph.scale)),
                        Cell::of(speed(run), Cell::number),
                        run.efficiency().map_or_else(|why| Cell::word(format!("n/a: {why}")), |found| Cell::number(found.mean)),
                    ]
                })
                .collect(),
        },
    }
}

/// The ratio of two runs, B over A: of the harmonic means, with its 95 % interval, and root by root.
///
/// # Errors
/// If one of them is not a whole record of a run.
pub fn compared(a: &Value, b: &Value) -> Result<Section, serde_json::Error> {
    let [a, b] = [Run::deserialize(a)?, Run::deserialize(b)?];
    let rate = |run: &Run| run.summary.as_ref().map(|summary| (summary.teps.harmonic_mean, summary.teps.harmonic_stddev));
    let time_in_a = |root: u32| a.roots.iter().find(|other| other.root == root)?.seconds;
    let ratios: Vec<(u32, f64, f64)> = b
        .roots
        .iter()
        .filter_map(|root| Some((root.root, time_in_a(root.root)?, root.seconds.filter(|&seconds| seconds > 0.0)?)))
        .collect();
    let values: Vec<f64> = ratios.iter().map(|(_, a, b)| a / b).collect();
    let roots = Summary::of(&values);
    let sentence = match (rate(&a), rate(&b)) {
        (Some(a), Some(b)) => {
            let half = interval([a, b]).map_or_else(String::new, |half| format!(" (95 % interval +/- {})", general(half, 3)));
            format!(
                "{} B has {} times the harmonic mean of A{half}. Root by root the median is {}.",
                verdict([a, b], roots.as_ref()),
                general(b.0 / a.0, 4),
                roots.map_or_else(|| "n/a".to_owned(), |of| general(of.median, 4))
            )
        }
        _ => "One of the runs has no speed.".to_owned(),
    };
    let mut sorted = values.clone();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len().max(1) as f64;
    let figure = Figure {
        id: "ratio",
        title: "B over A, root by root".into(),
        source: "socbfs compare",
        sentence,
        chart: Some(Chart::Lines(Plot {
            x: "time of A over time of B (above 1: B is faster)".into(),
            y: "% of roots with at most this ratio".into(),
            series: vec![Series::new("roots", sorted.iter().enumerate().map(|(at, ratio)| (*ratio, 100.0 * (at + 1) as f64 / count)))],
            ..Plot::default()
        })),
        table: Table {
            columns: columns(&["root", "A", "B", "B over A"]),
            rows: ratios.iter().map(|&(root, a, b)| vec![vertex(root), Cell::seconds(a), Cell::seconds(b), Cell::number(a / b)]).collect(),
        },
    };
    Ok(Section { title: "B over A".into(), figures: vec![figure], ..Section::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bench::EnergySummary,
        report::tests::{level, measured_energy, record},
    };

    /// The page's MTEPS/W: the fact, and the sentence of the figure.
    fn efficiency(run: &crate::bench::Record) -> [String; 2] {
        let mut document = document(&serde_json::to_value(run).unwrap()).unwrap();
        let section = document.sections.remove(0);
        let (_, fact) = section.facts.into_iter().find(|(name, _)| name == "MTEPS/W").unwrap();
        let figure = section.figures.into_iter().find(|figure| figure.id == "energy").unwrap();
        [fact.text, figure.sentence]
    }

    #[test]
    fn levels_that_ran_together_are_counted_one_by_one() {
        let mut run = record(&[0.001]);
        run.roots[0].level_records = vec![level(0), level(1)];
        let sentence = |run: &crate::bench::Record| {
            let document = document(&serde_json::to_value(run).unwrap()).unwrap();
            document.sections[0].figures.iter().find(|figure| figure.id == "timeline").unwrap().sentence.clone()
        };
        run.roots[0].level_records[0].elapsed_ns = 500_000;
        // The second record has levels 1 to 10.
        assert_eq!(sentence(&run), "Levels 1-10 take longest: 1.500 ms, 75.0 % of all 11 levels.");
        run.roots[0].level_records[0].elapsed_ns = 4_500_000;
        assert_eq!(sentence(&run), "Level 0 takes longest: 4.500 ms, 75.0 % of all 11 levels.");
    }

    #[test]
    fn efficiency_is_that_of_the_record_and_needs_every_window() {
        let mut run = record(&[0.001]);
        run.energy = measured_energy();
        assert_eq!(efficiency(&run), ["208.3", "208.3 +/- 58.9 MTEPS/W over 2 windows."]);
        let measured = run.energy.measured.as_mut().unwrap();
        measured.windows[1].energy.watts = None;
        measured.summary = EnergySummary::new(&measured.idle, &measured.windows);
        measured.problem = Some("incomplete in a window: the sensor fell silent".to_owned());
        let why = "n/a: incomplete in a window: the sensor fell silent";
        assert_eq!(efficiency(&run), [why.to_owned(), format!("MTEPS/W is {why}.")]);
        let scales = scales(&[Run::deserialize(serde_json::to_value(&run).unwrap()).unwrap()]);
        assert_eq!(scales.table.rows[0][2].text, why);
    }

    #[test]
    fn the_page_of_a_board_names_the_scales_that_are_left_out() {
        let warnings = |record: Value| board(&record).unwrap().warnings;
        let left_out = serde_json::json!([{ "scale": 22, "reason": "interrupted" }]);
        assert_eq!(warnings(serde_json::json!({ "runs": [], "left_out": left_out })), ["scale 22 is left out: interrupted"]);
        assert!(warnings(serde_json::json!({ "runs": [] })).is_empty());
    }
}
