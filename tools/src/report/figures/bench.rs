//! Figures of `socbfs bench`, of a board over several scales, and of two runs compared.

use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Section, Series, Table, begin};
use crate::{
    record::{EnergySummary, EnergyWindow, Record, RootRecord},
    report::{
        table::facts,
        trace::{level_table, levels_of},
    },
};
use socbfs::{
    LevelRecord, stats,
    words::{counted, general, seconds},
};

/// The energy of the searches over all windows, or why there is none.
pub(in crate::report) fn efficiency(run: &Record) -> Result<&EnergySummary, &str> {
    run.energy.summary().ok_or_else(|| run.energy.why())
}

/// The document of a run of `socbfs bench`.
pub(super) fn document(run: &Record, record: &Value) -> Document {
    let mut document = begin("A benchmark of breadth-first search", record, &["search"]);
    // Tables of handover costs are left out here: `socbfs devices` shows them.
    document.environment.retain(|(name, _)| !name.contains(".handover.") && !name.contains(".thresholds."));
    document.warnings.extend((!run.valid).then(|| "a tree failed validation: there is no speed".to_owned()));
    document.sections = vec![of_run(run)];
    document
}

/// The section of a run.
pub(in crate::report) fn of_run(run: &Record) -> Section {
    let mut section = Section { title: run.graph.source.clone(), facts: facts(run), ..Section::default() };
    let (Some(summary), true) = (&run.summary, run.valid) else { return section };
    section.figures.push(times(run, &summary.seconds));
    section.figures.extend(run.roots.first().and_then(timeline));
    section.figures.extend((summary.mapping_share > 0.0).then(|| mapping(run)));
    section.figures.push(energy(run));
    section
}

fn times(run: &Record, times: &stats::Summary) -> Figure {
    let [first, third, min, max] = [times.first_quartile, times.third_quartile, times.min, times.max].map(seconds);
    let sentence = format!("Half of the searches take {first} to {third}, all {min} to {max}.");
    let all = run.roots.iter().filter_map(|root| Some(1e3 * root.seconds?)).collect();
    let speed = |root: &&RootRecord| root.seconds.map(|seconds| root.edges as f64 / seconds / 1e6);
    Figure::new("times", "socbfs bench", "Distribution of times over the roots", sentence)
        .chart(Chart::distribution("time of a search, ms", "% of roots that take no longer", "searches", all))
        .table(Table::of(
            &run.roots,
            &[
                ("root", &|root| Cell::name(root.root)),
                ("levels", &|root| Cell::count(u64::from(root.levels))),
                ("edges", &|root| Cell::count(root.edges)),
                ("time", &|root| Cell::of(root.seconds, Cell::seconds)),
                ("MTEPS", &|root| Cell::of(speed(root), Cell::number)),
                ("mapping", &|root| Cell::of(root.mapping_seconds, Cell::seconds)),
            ],
        ))
}

/// The time of each level of a search.
fn timeline(root: &RootRecord) -> Option<Figure> {
    let records = &root.level_records;
    let longest = records.iter().max_by_key(|record| record.elapsed_ns)?;
    let all: u64 = records.iter().map(|record| record.elapsed_ns).sum();
    // Levels that ran together share a record.
    let levels: u64 = records.iter().map(|record| u64::from(record.levels.max(1))).sum();
    let rest = |record: &LevelRecord| record.elapsed_ns.saturating_sub(record.handover_ns + record.decision_ns + record.conversion_ns);
    let bars = |name: &str, of: fn(&LevelRecord) -> u64| Series::bars(name, records.iter().map(|record| of(record) as f64 / 1e3));
    let sentence = format!(
        "{} longest: {}, {:.1} % of all {}.",
        if longest.levels > 1 { format!("Levels {} take", levels_of(longest)) } else { format!("Level {} takes", levels_of(longest)) },
        seconds(longest.elapsed_ns as f64 / 1e9),
        100.0 * longest.elapsed_ns as f64 / all.max(1) as f64,
        counted(levels, "level", "levels")
    );
    let series = vec![
        bars("search", rest),
        bars("handover", |record| record.handover_ns),
        bars("conversion", |record| record.conversion_ns),
        bars("deciding", |record| record.decision_ns),
    ];
    let title = format!("Where the time of a search goes (root {})", root.root);
    let mut table = level_table(records, &[]);
    table.keep(&["level", "direction", "on", "found", "time", "handover", "conversion", "deciding"]);
    Some(
        Figure::new("timeline", "socbfs bench", title, sentence)
            .chart(Chart::bars("level (the root is 0)", "us", records.iter().map(levels_of), series))
            .table(table),
    )
}

fn mapping(run: &Record) -> Figure {
    let share = |root: &RootRecord| Some((root.root, 100.0 * root.mapping_seconds? / root.seconds?));
    let shares: Vec<(u32, f64)> = run.roots.iter().filter_map(share).collect();
    let of = stats::Summary::of(&shares.iter().map(|(_, share)| *share).collect::<Vec<_>>());
    let sentence = of.map_or_else(String::new, |of| format!("Mapping takes {:.1} % of a search in the median over the roots.", of.median));
    let line = Series::new("mapping", shares.iter().enumerate().map(|(at, (_, share))| ((at + 1) as f64, *share)));
    Figure::new("mapping", "socbfs bench", "Mapping parents back to the input's numbers", sentence)
        .chart(Chart::lines("search, in the order of the run", "% of the time", vec![line]))
        .table(Table::of(&shares, &[("root", &|(root, _)| Cell::name(*root)), ("share of mapping, %", &|(_, share)| Cell::number(*share))]))
}

fn energy(run: &Record) -> Figure {
    let figure = |sentence: String| Figure::new("energy", "Green Graph500", "Power while idle and while searching", sentence);
    let Some(measured) = &run.energy.measured else {
        return figure(format!("Energy is n/a: {}.", run.energy.unavailable.as_deref().unwrap_or("it was not measured")));
    };
    let sentence = efficiency(run).map_or_else(
        |why| format!("MTEPS/W is n/a: {why}."),
        |found| {
            let found = &found.mteps_per_watt;
            let spread = found.stddev.map_or_else(String::new, |spread| format!(" +/- {}", general(spread, 3)));
            format!("{}{spread} MTEPS/W over {}.", general(found.mean, 4), counted(found.count as u64, "window", "windows"))
        },
    );
    let start = measured.idle.begin_monotonic_seconds;
    let windows: Vec<(&socbfs_power::Energy, Option<&EnergyWindow>)> =
        std::iter::once((&measured.idle, None)).chain(measured.windows.iter().map(|window| (&window.energy, Some(window)))).collect();
    let line = |name: &str, windows: &[(&socbfs_power::Energy, Option<&EnergyWindow>)]| {
        let ends = |(window, _): &(&socbfs_power::Energy, _)| {
            let (begin, watts) = (window.begin_monotonic_seconds - start, window.watts?.0);
            Some([(begin, watts), (begin + window.seconds, watts)])
        };
        Series::new(name, windows.iter().filter_map(ends).flatten())
    };
    figure(sentence)
        .chart(Chart::lines("seconds", "W, mean of a window", vec![line("idle", &windows[..1]), line("searching", &windows[1..])]))
        .table(Table::of(
            windows.iter().enumerate(),
            &[
                ("window", &|(at, _)| if *at == 0 { Cell::word("idle") } else { Cell::count(*at as u64) }),
                ("begins", &|(_, (window, _))| Cell::seconds(window.begin_monotonic_seconds - start)),
                ("length", &|(_, (window, _))| Cell::seconds(window.seconds)),
                ("W", &|(_, (window, _))| Cell::of(window.watts, |watts| Cell::number(watts.0))),
                ("J", &|(_, (window, _))| Cell::of(window.joules, |joules| Cell::number(joules.0))),
                ("searches", &|(_, (_, searched))| Cell::of(searched.map(|searched| searched.searches), Cell::count)),
                ("J per search", &|(_, (window, searched))| {
                    Cell::of(window.joules.zip(*searched), |(joules, searched)| Cell::number(joules.0 / searched.searches as f64))
                }),
                ("MTEPS/W", &|(_, (window, searched))| {
                    let watts = window.watts.filter(|watts| watts.0 > 0.0);
                    Cell::of(watts.zip(*searched), |(watts, searched)| Cell::number(searched.teps / 1e6 / watts.0))
                }),
            ],
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::EnergySummary,
        report::tests::{level, measured_energy, record},
    };

    /// The page's MTEPS/W: the fact, and the sentence of the figure.
    fn efficiency(run: &Record) -> [String; 2] {
        let mut document = document(run, &Value::Null);
        let section = document.sections.remove(0);
        let (_, fact) = section.facts.into_iter().find(|(name, _)| name == "MTEPS/W").unwrap();
        let figure = section.figures.into_iter().find(|figure| figure.id == "energy").unwrap();
        [fact.text, figure.sentence]
    }

    #[test]
    fn levels_that_ran_together_are_counted_one_by_one() {
        let mut run = record(&[0.001]);
        run.roots[0].level_records = vec![level(0), level(1)];
        let sentence = |run: &Record| {
            let document = document(run, &Value::Null);
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
        assert_eq!(efficiency(&run), ["208.3 +/- 58.93 (all power, idle included)", "208.3 +/- 58.9 MTEPS/W over 2 windows."]);
        let measured = run.energy.measured.as_mut().unwrap();
        measured.windows[1].energy.watts = None;
        measured.summary = EnergySummary::new(&measured.idle, &measured.windows).ok();
        measured.problem = Some("incomplete in a window: the sensor fell silent".to_owned());
        let why = "n/a: incomplete in a window: the sensor fell silent";
        assert_eq!(efficiency(&run), [why.to_owned(), format!("MTEPS/W is {why}.")]);
    }
}
