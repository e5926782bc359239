//! Documents on the terminal, and as markdown.

use std::fmt::{self, Write};

use super::{Cell, Chart, Document, Figure, Plot, Series, Table, number};
use crate::report::cells::{COLUMNS, NONE, aligned_by, hanging, listed, wrapped, written};
use socbfs::words::general;

/// Length of the longest bar in characters, where names leave room for it.
const WIDTH: usize = 40;
/// The same beside the longest names.
const LEAST_WIDTH: usize = 10;
/// Room for the number after a bar.
const NUMBER: usize = 12;
/// Most bars of a series and rows of a table that are shown; the record has all points and rows.
const MOST_ROWS: usize = 40;
/// What every line of a table begins with.
const INDENT: &str = "  ";
/// Blanks between two columns of a table.
const GAP: usize = 2;
/// Least width of a column of sentences.
const LEAST_SENTENCE: usize = 14;
/// Colours of series on a terminal.
pub const COLOURS: [&str; 6] = ["\x1b[34m", "\x1b[33m", "\x1b[36m", "\x1b[35m", "\x1b[32m", "\x1b[31m"];
/// The escape sequence that ends a colour.
pub const PLAIN: &str = "\x1b[0m";

/// The document as sentences, bars and tables, with `colours` if that is set. Unless it is `wide`, tables fit 80 characters.
pub fn text(document: &Document, colours: bool, wide: bool) -> String {
    written(|out| write(out, document, colours, wide))
}

fn write(out: &mut String, document: &Document, colours: bool, wide: bool) -> fmt::Result {
    for section in &document.sections {
        writeln!(out, "{}\n", section.title)?;
        listed(out, &section.facts);
        if !section.facts.is_empty() {
            writeln!(out)?;
        }
        for figure in &section.figures {
            show(out, figure, colours, wide)?;
        }
    }
    for warning in &document.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

/// The document as markdown: everything but its charts.
pub fn markdown(document: &Document) -> String {
    written(|out| {
        for section in &document.sections {
            writeln!(out, "### {}\n", on_a_line(&section.title))?;
            if !section.facts.is_empty() {
                let fact = |(name, cell): &(String, Cell)| vec![Cell::word(name), cell.clone()];
                piped(out, &Table { columns: vec![String::new(); 2], rows: section.facts.iter().map(fact).collect() })?;
            }
            for figure in &section.figures {
                writeln!(out, "#### {}\n\n{}\n", on_a_line(&figure.title), on_a_line(&figure.sentence))?;
                piped(out, &figure.table)?;
            }
        }
        document.warnings.iter().try_for_each(|warning| writeln!(out, "- Warning: {}", on_a_line(warning)))
    })
}

/// Escapes what would break a table.
fn on_a_line(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r'], " ")
}

fn piped(out: &mut String, table: &Table) -> fmt::Result {
    if table.rows.is_empty() {
        return Ok(());
    }
    let is_left =
        |column: usize| table.is_text(column) || table.rows.iter().all(|row| row[column].value.is_none() && row[column].text != NONE);
    let bars = (0..table.columns.len()).map(|column| if is_left(column) { "---|" } else { "---:|" });
    let row = |texts: Vec<&str>| format!("| {} |", texts.into_iter().map(on_a_line).collect::<Vec<_>>().join(" | "));
    writeln!(out, "{}\n|{}", row(table.columns.iter().map(String::as_str).collect()), bars.collect::<String>())?;
    table.rows.iter().try_for_each(|cells| writeln!(out, "{}", row(cells.iter().map(|cell| cell.text.as_str()).collect())))?;
    writeln!(out)
}

fn show(out: &mut String, figure: &Figure, colours: bool, wide: bool) -> fmt::Result {
    let heading = format!("{} ({})", figure.title, figure.source);
    wrapped(&heading, COLUMNS).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    writeln!(out)?;
    wrapped(&figure.sentence, COLUMNS - 2).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
    writeln!(out)?;
    match &figure.chart {
        Some(Chart::Lines(plot) | Chart::Bars(plot)) => bars(out, plot, colours)?,
        Some(Chart::Heat(heat)) => writeln!(out, "  [ ] {}, * {}\n", heat.legend[0], heat.legend[1])?,
        None => {}
    }
    table(out, &figure.table, wide)
}

fn table(out: &mut String, table: &Table, wide: bool) -> fmt::Result {
    if table.rows.is_empty() {
        return Ok(());
    }
    let (each, last) = (each(table.rows.len()), table.rows.len() - 1);
    // The last row may be a sum.
    let rows = table.rows.iter().enumerate().filter(|(place, _)| place % each == 0 || *place == last).map(|(_, row)| row.clone());
    let shown = Table { columns: table.columns.clone(), rows: rows.collect() };
    let (shown, kept) = if wide { (shown, table.columns.len()) } else { narrowed(&shown) };
    aligned_by(out, INDENT, &shown, &|column| column == 0 || table.is_text(column))?;
    let mut notes = Vec::new();
    if each > 1 {
        notes.push(format!("(one row in {each} of {}; the record that --json writes has all)", table.rows.len()));
    }
    if kept < table.columns.len() {
        notes.push(format!("(--wide shows further columns: {})", table.columns[kept..].join(", ")));
    }
    let mut lines = notes.iter().flat_map(|note| wrapped(note, COLUMNS - INDENT.len()));
    lines.try_for_each(|line| writeln!(out, "{INDENT}{line}"))?;
    writeln!(out)
}

/// The table in no more than 80 characters, and how many of its columns it has. Heads and sentences are broken into lines. If that is not
/// enough, the last columns are left out.
fn narrowed(table: &Table) -> (Table, usize) {
    let length = |text: &str| text.chars().count();
    let room = COLUMNS - INDENT.len();
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let columns = || table.columns.iter().enumerate();
    let cells = |column: usize| table.rows.iter().map(|row| length(&row[column].text)).max().unwrap_or(0);
    let whole: Vec<usize> = columns().map(|(column, head)| cells(column).max(length(head))).collect();
    if total(&whole) <= room {
        return (table.clone(), whole.len());
    }
    let longest_word = |text: &str| text.split(' ').map(length).max().unwrap_or(0);
    let least = |(column, head): (usize, &String)| {
        let words = || table.rows.iter().map(|row| longest_word(&row[column].text)).max().unwrap_or(0);
        let cells = if table.is_text(column) { words().max(LEAST_SENTENCE.min(cells(column))) } else { cells(column) };
        cells.max(longest_word(head))
    };
    let mut widths: Vec<usize> = columns().map(least).collect();
    while widths.len() > 1 && total(&widths) > room {
        widths.pop();
    }
    let sentences: Vec<usize> = (0..widths.len()).filter(|&column| table.is_text(column)).collect();
    let spare = room.saturating_sub(total(&widths)) / sentences.len().max(1);
    sentences.iter().for_each(|&column| widths[column] = (widths[column] + spare).min(whole[column]));
    let broken = |texts: Vec<&str>, is_head: bool| -> Vec<Vec<Cell>> {
        let parts: Vec<Vec<&str>> = texts.iter().zip(&widths).map(|(text, &width)| wrapped(text, width)).collect();
        let lines = parts.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |parts: &Vec<&str>, line: usize| {
            // The last line of each head is above the first row.
            let line = if is_head { (line + parts.len()).checked_sub(lines) } else { Some(line) };
            Cell::word(line.and_then(|line| parts.get(line)).copied().unwrap_or_default())
        };
        (0..lines).map(|line| parts.iter().map(|parts| cell(parts, line)).collect()).collect()
    };
    let mut rows = broken(table.columns.iter().map(String::as_str).collect(), true);
    let columns = if rows.is_empty() { Vec::new() } else { rows.remove(0).into_iter().map(|cell| cell.text).collect() };
    rows.extend(table.rows.iter().flat_map(|row| broken(row.iter().map(|cell| cell.text.as_str()).collect(), false)));
    (Table { columns, rows }, widths.len())
}

/// How many of `count` points or rows one that is shown stands for.
fn each(count: usize) -> usize {
    count.div_ceil(MOST_ROWS).max(1)
}

/// The plot with one point for the mean of `each` of its places that follow one another, at the first of these.
fn binned(plot: &Plot, places: &[f64], each: usize) -> Plot {
    let bins: Vec<&[f64]> = places.chunks(each).collect();
    let series = plot.series.iter().map(|series| {
        let mean = |bin: &&[f64]| {
            let inside = |x: f64| bin[0] <= x && x <= bin[bin.len() - 1];
            let all: Vec<f64> = series.points.iter().filter(|&&(x, y)| inside(x) && y.is_finite()).map(|&(_, y)| y).collect();
            (!all.is_empty()).then(|| (bin[0], all.iter().sum::<f64>() / all.len() as f64))
        };
        Series { points: bins.iter().filter_map(mean).collect(), ..Series::new(series.name.clone(), []) }
    });
    Plot { series: series.collect(), ..plot.clone() }
}

/// Draws a bar for each point. The bars of all series at one x are drawn one below the other; a series may have none there.
fn bars(out: &mut String, plot: &Plot, colours: bool) -> fmt::Result {
    let mut places: Vec<f64> = plot.series.iter().flat_map(|series| &series.points).map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let each = each(places.len());
    let binned = (each > 1).then(|| binned(plot, &places, each));
    let plot = binned.as_ref().unwrap_or(plot);
    let values = || plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.1)).filter(|y| y.is_finite());
    let most = values().fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(());
    }
    let least = values().filter(|&y| y > 0.0).fold(most, f64::min);
    let said = format!("{} over {}{}", plot.y, plot.x, if plot.log_y { ", logarithmic" } else { "" });
    wrapped(&said, COLUMNS - INDENT.len()).iter().try_for_each(|line| writeln!(out, "{INDENT}{line}"))?;
    let names = plot.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
    let label = |x: f64| match plot.categories.is_empty() {
        true => general(x, 6),
        false => plot.categories.get(x as usize).cloned().unwrap_or_default(),
    };
    // A bar that stands for several places has the first and the last of them.
    let label = |bin: &[f64]| match bin {
        [first, .., last] => format!("{}-{}", label(*first), label(*last)),
        bin => bin.first().map_or_else(String::new, |&x| label(x)),
    };
    let bins: Vec<&[f64]> = places.chunks(each).collect();
    // A label that leaves no room for the bars stands above them.
    let room = COLUMNS.saturating_sub(names + NUMBER + 7 + LEAST_WIDTH).max(12);
    let wide = bins.iter().map(|bin| label(bin).chars().count()).filter(|&wide| wide <= room).fold(12, usize::max);
    let width = COLUMNS.saturating_sub(wide + names + NUMBER + 7).clamp(LEAST_WIDTH, WIDTH);
    let scaled = |y: f64| match (y > 0.0, plot.log_y && most > least) {
        (false, _) => 0,
        // The smallest value has a tenth of the width, so that it is visible.
        (true, true) => ((0.1 + 0.9 * (y / least).ln() / (most / least).ln()) * width as f64).round() as usize,
        (true, false) => (y / most * width as f64).round() as usize,
    };
    for bin in bins {
        let x = bin[0];
        // Only the first bar has a label, whichever series it is of.
        let mut at = label(bin);
        if at.chars().count() > wide {
            out.push_str(&hanging(INDENT, &at));
            at.clear();
        }
        for (index, series) in plot.series.iter().enumerate() {
            for &(_, y) in series.points.iter().filter(|point| point.0 == x) {
                let (begin, end) = if colours { (COLOURS[index % COLOURS.len()], PLAIN) } else { ("", "") };
                // A record from elsewhere may have values that are infinite in this unit.
                let bar = ["█", "▒", "░"][index % 3].repeat(scaled(y).min(width));
                writeln!(out, "  {at:>wide$}  {:<names$}  {begin}{bar}{end} {}", series.name, number(y))?;
                at.clear();
            }
        }
    }
    if each > 1 {
        writeln!(out, "  (each bar is the mean of {each}; the record that --json writes has all {})", places.len())?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_of_a_road_are_binned() {
        let points = (0..1266).map(|level| (f64::from(level), f64::from(level / 32)));
        let plot = Plot { x: "level".into(), y: "vertices".into(), series: vec![Series::new("frontier", points)], ..Plot::default() };
        let mut text = String::new();
        bars(&mut text, &plot, false).unwrap();
        let drawn: Vec<&str> = text.lines().filter(|line| line.contains("frontier")).collect();
        assert_eq!(drawn.len(), 40, "{text}");
        assert!(
            drawn[1].trim_start().starts_with("32-63 ") && drawn[1].ends_with(" 1") && drawn[39].trim_start().starts_with("1248-1265 ")
        );
        assert!(text.contains("each bar is the mean of 32; the record that --json writes has all 1266"), "{text}");
        let rows = (0..1266).map(|level| vec![Cell::name(level)]).collect();
        let mut text = String::new();
        table(&mut text, &Table { columns: vec!["level".into()], rows }, false).unwrap();
        let shown: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(shown.len() < 46 && shown[2] == "32" && shown.contains(&"1265"), "{text}");
    }

    #[test]
    fn wide_tables_have_broken_heads_and_sentences_and_fewer_columns() {
        let sentence = "a sentence that is far longer than the room which is left to it on a terminal";
        let table_of = |numbers: usize, sentence: &str| Table {
            columns: (0..numbers).map(|column| format!("head number{column}")).chain(["whether they compare".to_owned()]).collect(),
            rows: vec![(0..numbers).map(|number| Cell::number(number as f64)).chain([Cell::word(sentence)]).collect()],
        };
        let shown = |of: &Table, wide| {
            let mut text = String::new();
            table(&mut text, of, wide).unwrap();
            text
        };
        for (numbers, is_whole) in [(4, true), (9, false)] {
            let of = table_of(numbers, sentence);
            let text = shown(&of, false);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            assert_eq!(!text.contains("--wide shows further columns: "), is_whole, "{text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(sentence.split(' ').all(|word| words.contains(&word)), is_whole, "{text}");
            assert!(text.lines().nth(1).is_some_and(|line| line.contains("number0  number1")), "{text}");
            assert!(shown(&of, true).contains(sentence));
        }
        // A table that fits is as it was.
        assert!(shown(&table_of(2, "short"), false).starts_with("  head number0  head number1  whether they compare\n"));
    }

    #[test]
    fn bars_stand_at_their_own_category_if_a_series_lacks_points() {
        let drawn = |series: Vec<Series>| {
            let categories = ["tc", "bc", "tg"].map(str::to_owned).into();
            let plot = Plot { x: "policy".into(), y: "ms".into(), categories, series, ..Plot::default() };
            let mut text = String::new();
            bars(&mut text, &plot, false).unwrap();
            let words = |line: &str| line.split_whitespace().filter(|word| !word.contains(['█', '▒'])).collect::<Vec<_>>().join(" ");
            text.lines().skip(1).map(words).filter(|line| !line.is_empty()).collect::<Vec<_>>()
        };
        let all = Series::new("mean", [(0.0, 1.0), (1.0, 2.0), (2.0, 4.0)]);
        let some = Series::new("own", [(0.0, 1.5), (2.0, 3.0)]);
        assert_eq!(drawn(vec![all.clone(), some.clone()]), ["tc mean 1", "own 1.5", "bc mean 2", "tg mean 4", "own 3"]);
        assert_eq!(drawn(vec![some, all]), ["tc own 1.5", "mean 1", "bc mean 2", "tg own 3", "mean 4"]);
    }

    #[test]
    fn labels_that_leave_no_room_for_bars_stand_above_them() {
        let categories = ["tc", "enterprise-released:0.3 with a band of work for each device"].map(str::to_owned).into();
        let series =
            ["MTEPS (Graph500's rule)", "whole-graph edges / mean time"].map(|name| Series::new(name, [(0.0, 1.0), (1.0, 1234.5)]));
        let plot = Plot { x: "policy".into(), y: "MTEPS".into(), categories, series: series.to_vec(), ..Plot::default() };
        let mut text = String::new();
        bars(&mut text, &plot, false).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= COLUMNS), "{text}");
        assert!(text.contains("\n  enterprise-released:0.3 with a band of work for each device\n"), "{text}");
        assert!(text.lines().any(|line| line.trim_start().starts_with("tc  MTEPS")), "{text}");
    }

    #[test]
    fn an_infinite_value_has_a_bar_of_full_length() {
        for log_y in [false, true] {
            let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::INFINITY)];
            let plot = Plot { x: "x".into(), y: "y".into(), log_y, series: vec![Series::new("s", points)], ..Plot::default() };
            let mut text = String::new();
            bars(&mut text, &plot, false).unwrap();
            let lengths: Vec<usize> = text.lines().skip(1).map(|line| line.matches('█').count()).filter(|&length| length > 0).collect();
            assert_eq!(lengths[1..], [WIDTH, WIDTH], "{text}");
        }
    }

    #[test]
    fn bars_begin_in_one_column_beside_long_names() {
        let categories = ["tc", "enterprise-released"].map(str::to_owned).into();
        let series = vec![Series::new("MTEPS", [(0.0, 1.0), (1.0, 2.0)])];
        let plot = Plot { x: "policy".into(), y: "MTEPS".into(), categories, series, ..Plot::default() };
        let mut text = String::new();
        bars(&mut text, &plot, false).unwrap();
        let begins: Vec<usize> = text.lines().filter_map(|line| line.find('█')).collect();
        assert!(begins.len() == 2 && begins[0] == begins[1], "{text}");
    }
}
