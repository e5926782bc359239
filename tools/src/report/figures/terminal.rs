//! Figures on the terminal.

use std::fmt::{self, Write};

use super::{Chart, Document, Figure, Heat, Plot, Table, number};
use crate::report::cells::{aligned_by, written};
use socbfs::words::general;

/// Length of the longest bar in characters.
const WIDTH: usize = 40;
/// Most points of a chart and rows of a table that are shown; the record has all of them.
const MOST_ROWS: usize = 40;
/// Colours of series on a terminal.
pub const COLOURS: [&str; 6] = ["\x1b[34m", "\x1b[33m", "\x1b[36m", "\x1b[35m", "\x1b[32m", "\x1b[31m"];
/// The escape sequence that ends a colour.
pub const PLAIN: &str = "\x1b[0m";

/// The document as sentences, bars and tables, with `colours` if that is set.
pub fn text(document: &Document, colours: bool) -> String {
    written(|out| write(out, document, colours))
}

fn write(out: &mut String, document: &Document, colours: bool) -> fmt::Result {
    for section in &document.sections {
        writeln!(out, "{}\n", section.title)?;
        let width = section.facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, cell) in &section.facts {
            writeln!(out, "  {name:<width$}  {}", cell.text)?;
        }
        if !section.facts.is_empty() {
            writeln!(out)?;
        }
        for figure in &section.figures {
            show(out, figure, colours)?;
        }
    }
    for warning in &document.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

fn show(out: &mut String, figure: &Figure, colours: bool) -> fmt::Result {
    writeln!(out, "{} ({})\n\n  {}\n", figure.title, figure.source, figure.sentence)?;
    match &figure.chart {
        Some(Chart::Lines(plot) | Chart::Bars(plot)) => bars(out, plot, colours)?,
        Some(Chart::Heat(heat)) => legend(out, heat)?,
        None => {}
    }
    table(out, &figure.table)
}

fn table(out: &mut String, table: &Table) -> fmt::Result {
    if table.rows.is_empty() {
        return Ok(());
    }
    let shown = Table { columns: table.columns.clone(), rows: table.rows.iter().take(MOST_ROWS).cloned().collect() };
    aligned_by(out, "  ", &shown, &|column| column == 0 || table.is_text(column))?;
    more(out, table.rows.len())?;
    writeln!(out)
}

fn more(out: &mut String, rows: usize) -> fmt::Result {
    match rows.checked_sub(MOST_ROWS) {
        Some(left @ 1..) => writeln!(out, "  ... and {left} more, in the record that --json writes"),
        _ => Ok(()),
    }
}

fn legend(out: &mut String, heat: &Heat) -> fmt::Result {
    writeln!(out, "  [ ] {}, * {}\n", heat.legend[0], heat.legend[1])
}

/// Draws a bar for each point. The bars of all series at one x are drawn one below the other; a series may have none there.
fn bars(out: &mut String, plot: &Plot, colours: bool) -> fmt::Result {
    let values = || plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.1)).filter(|y| y.is_finite());
    let most = values().fold(0.0, f64::max);
    if most <= 0.0 {
        return Ok(());
    }
    let least = values().filter(|&y| y > 0.0).fold(most, f64::min);
    let scaled = |y: f64| match (y > 0.0, plot.log_y && most > least) {
        (false, _) => 0,
        // The smallest value has a tenth of the width, so that it is visible.
        (true, true) => ((0.1 + 0.9 * (y / least).ln() / (most / least).ln()) * WIDTH as f64).round() as usize,
        (true, false) => (y / most * WIDTH as f64).round() as usize,
    };
    writeln!(out, "  {} over {}{}", plot.y, plot.x, if plot.log_y { ", logarithmic" } else { "" })?;
    let names = plot.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
    let mut places: Vec<f64> = plot.series.iter().flat_map(|series| &series.points).map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let label = |x: f64| match plot.categories.is_empty() {
        true => general(x, 6),
        false => plot.categories.get(x as usize).cloned().unwrap_or_default(),
    };
    let wide = places.iter().take(MOST_ROWS).map(|&x| label(x).chars().count()).fold(12, usize::max);
    for &x in places.iter().take(MOST_ROWS) {
        // Only the first bar has a label, whichever series it is of.
        let mut at = label(x);
        for (index, series) in plot.series.iter().enumerate() {
            for &(_, y) in series.points.iter().filter(|point| point.0 == x) {
                let (begin, end) = if colours { (COLOURS[index % COLOURS.len()], PLAIN) } else { ("", "") };
                // A record from elsewhere may have values that are infinite in this unit.
                let bar = ["█", "▒", "░"][index % 3].repeat(scaled(y).min(WIDTH));
                writeln!(out, "  {at:>wide$}  {:<names$}  {begin}{bar}{end} {}", series.name, number(y))?;
                at.clear();
            }
        }
    }
    more(out, places.len())?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::{super::Series, *};

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
