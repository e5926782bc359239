//! Charts as SVG. A colour is a variable of the style sheet, which has a value for the light theme and paper, and one for the dark theme.

use maud::{Markup, PreEscaped, html};

use crate::report::figures::{Chart, Figure, Heat, Plot, Series};
use socbfs::words::general;

const WIDTH: f64 = 760.0;
/// Height of a plot without its legend.
const HEIGHT: f64 = 400.0;
/// Pixels left of the axes, right of them, and below.
const LEFT: f64 = 72.0;
const RIGHT: f64 = 24.0;
const BELOW: f64 = 50.0;
/// Approximate width of a letter in pixels, since the font is not known.
const LETTER: f64 = 6.9;
/// Font size; numbers and names along the axes are smaller.
const FONT: f64 = 13.0;
const SMALL: f64 = 11.3;
/// Height of a line of the legend.
const LINE: f64 = 20.0;
/// Number of colours for series; further series use them again.
const SERIES: usize = 8;
/// Number of shades of a heat map, from a row's fastest cell to one 32 times slower.
const SHADES: u8 = 11;
/// Width of a heat map's column in pixels: room for a number of three digits with a dot. Height of a row.
const CELL: (f64, f64) = (68.0, 24.0);
/// Pixels above a heat map's first row: the unit, and the names of columns in two lines.
const HEAT_HEAD: f64 = 56.0;
/// Most rows of a heat map.
const MOST_ROWS: usize = 48;
/// Most points of a line that has markers.
const MOST_MARKERS: usize = 80;

const INK: &str = "var(--ink)";
const MUTED: &str = "var(--muted)";
const GRID: &str = "var(--grid)";
const PAPER: &str = "var(--paper)";

fn of_series(index: usize) -> String {
    format!("var(--s{})", index % SERIES)
}

/// Whether the series has the colour of an earlier one; its bars are then hollow.
fn is_hollow(index: usize) -> bool {
    index / SERIES % 2 == 1
}

/// A position or length as it is written.
fn px(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
}

fn rect(fill: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> Markup {
    html! { rect fill=(fill) x=(px(x)) y=(px(y)) width=(px(width)) height=(px(height)) {} }
}

/// A rectangle, with a smaller one in it if it is hollow.
fn box_of(index: usize, (x, y): (f64, f64), (width, height): (f64, f64)) -> Markup {
    html! {
        (rect(&of_series(index), (x, y), (width, height)))
        @if is_hollow(index) { (rect(PAPER, (x + width / 4.0, y + height.min(width) / 4.0), (width / 2.0, height - height.min(width) / 2.0))) }
    }
}

fn line(colour: &str, width: u32, points: &[(f64, f64)]) -> Markup {
    let points = points.iter().map(|(x, y)| format!("{},{}", px(*x), px(*y))).collect::<Vec<_>>().join(" ");
    html! { polyline fill="none" stroke=(colour) stroke-width=(width) points=(points) {} }
}

/// Where a text begins, has its middle, or ends.
const BEGINS: &str = "start";
const MIDDLE: &str = "middle";
const ENDS: &str = "end";

fn label(text: &str, (x, y): (f64, f64), colour: &str, anchor: &str, size: f64) -> Markup {
    html! { text x=(px(x)) y=(px(y)) dy=".35em" fill=(colour) text-anchor=(anchor) font-size=(size) { (text) } }
}

/// A label that is read from below.
fn upright(text: &str, (x, y): (f64, f64), colour: &str, anchor: &str, size: f64) -> Markup {
    let turn = format!("translate({} {}) rotate(-90)", px(x), px(y));
    html! { g transform=(turn) { (label(text, (0.0, 0.0), colour, anchor, size)) } }
}

/// Draws the chart of `figure` (`None`: it has no chart). With `style`, the picture stands alone: it contains that style and the title.
pub(super) fn svg(figure: &Figure, style: Option<&str>) -> Option<String> {
    let (width, height, drawn) = match figure.chart.as_ref()? {
        Chart::Lines(plot) => draw(plot, false),
        Chart::Bars(plot) => draw(plot, true),
        Chart::Heat(heat) => draw_heat(heat),
    };
    let heading = if style.is_some() { 28.0 } else { 0.0 };
    // A wide chart has a least width, so that it is scrolled before it becomes too small to read.
    let least = (width > WIDTH && style.is_none()).then(|| format!("min-width:{}px", (0.75 * width).floor()));
    let svg = html! {
        svg style=[least] viewBox={ "0 0 " (width) " " (height + heading) } xmlns="http://www.w3.org/2000/svg" role="img" font-family="sans-serif" {
            title { (figure.title) }
            desc { (figure.sentence) }
            @if let Some(style) = style {
                style { (PreEscaped(style)) }
                (rect(PAPER, (0.0, 0.0), (width, height + heading)))
                (label(&figure.title, (10.0, 18.0), INK, BEGINS, FONT + 1.5))
            }
            g transform=[style.map(|_| format!("translate(0 {heading})"))] { (drawn) }
        }
    };
    Some(svg.into_string())
}

/// The legend: the row, the index and the x of each series, and the number of rows.
fn legend(plot: &Plot) -> (Vec<(usize, usize, f64)>, usize) {
    let (mut row, mut x) = (0, LEFT);
    let mut entries = Vec::new();
    for (index, series) in plot.series.iter().enumerate() {
        let wide = 40.0 + series.name.chars().count() as f64 * LETTER;
        if x + wide > WIDTH && x > LEFT {
            (row, x) = (row + 1, LEFT);
        }
        entries.push((row, index, x));
        x += wide;
    }
    (entries, row + 1)
}

/// Height in pixels of the names of categories if they are turned upright; 0 if they fit side by side.
fn label_room(plot: &Plot) -> f64 {
    let longest = plot.categories.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64 * LETTER;
    let each = (WIDTH - LEFT - RIGHT) / plot.categories.len().max(1) as f64;
    if longest > each - 4.0 { longest.floor() } else { 0.0 }
}

/// An axis. Positions on a logarithmic axis, and its ends, are logarithms to base 10.
struct Scale {
    log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// An axis over `values`. With `from_zero`, a linear axis contains 0.
    fn over(values: impl Iterator<Item = f64>, log: bool, from_zero: bool) -> Self {
        let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite() && (!log || *value > 0.0)) {
            from = from.min(value);
            to = to.max(value);
        }
        if from > to {
            (from, to) = (if log { 1.0 } else { 0.0 }, 1.0);
        }
        if log {
            let (low, high) = (from.log10().floor(), to.log10().ceil());
            return Self { log, from: low, to: high.max(low + 1.0) };
        }
        if from_zero {
            (from, to) = (from.min(0.0), (to * 1.04).max(0.0));
        }
        if to <= from {
            to = from + 1.0;
        }
        Self { log, from, to }
    }

    fn place(&self, value: f64) -> Option<f64> {
        match self.log {
            true if value > 0.0 && value.is_finite() => Some(value.log10()),
            true => None,
            false => value.is_finite().then_some(value),
        }
    }

    /// Positions and labels of the grid lines, which divide the axis into at most `most` parts.
    fn ticks(&self, most: f64) -> Vec<(f64, String)> {
        let span = self.to - self.from;
        let step = if self.log {
            (span / most).ceil().max(1.0)
        } else {
            let least = span / most;
            let power = 10_f64.powf(least.log10().floor());
            [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|&step| step >= least).unwrap_or(least)
        };
        let (first, last) = ((self.from / step).ceil(), self.to + span * 1e-9);
        // The lines are counted: if the ends of the axis differ in their last digits only, adding 1 may give the same multiple of the step.
        let values = (0..=most.ceil() as u32).map(|line| (first + f64::from(line)) * step).take_while(|&value| value <= last);
        values.map(|value| (value, short(if self.log { 10_f64.powf(value) } else { value }))).collect()
    }
}

/// Formats 1,500,000 as "1.5 M" and 0.00015 as "1.5e-4": between an axis and its name there is room for six characters.
fn short(value: f64) -> String {
    if (f64::MIN_POSITIVE..1e-3).contains(&value.abs()) {
        // Rounds off the floating-point error of a multiple of the step.
        return format!("{value:.5e}").parse::<f64>().map_or_else(|_| String::new(), |rounded| format!("{rounded:e}"));
    }
    let (scale, unit) = match value.abs() {
        v if v >= 1e9 => (1e9, " G"),
        v if v >= 1e6 => (1e6, " M"),
        v if v >= 1e4 => (1e3, " k"),
        _ => (1.0, ""),
    };
    format!("{}{unit}", general((value / scale * 1e9).round() / 1e9, 6))
}

/// The axes of a plot, and where they are in the picture.
struct Axes {
    x: Scale,
    y: Scale,
    top: f64,
    bottom: f64,
}

impl Axes {
    /// The pixels of positions on the axes.
    fn pixels(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let along = |scale: &Scale, at: f64| (at - scale.from) / (scale.to - scale.from);
        (LEFT + along(&self.x, x) * (WIDTH - LEFT - RIGHT), self.bottom - along(&self.y, y) * (self.bottom - self.top))
    }

    /// The pixels of a point (`None`: it is not on the axes).
    fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some(self.pixels((self.x.place(x)?, self.y.place(y)?)))
    }
}

/// Width, height and content of a chart of lines or bars.
fn draw(plot: &Plot, bars: bool) -> (f64, f64, Markup) {
    let (entries, rows) = legend(plot);
    let turned = label_room(plot);
    let height = HEIGHT + LINE * rows as f64 + turned;
    let ends = |series: &Series| series.spread.iter().flat_map(|&(low, high)| [low, high]).collect::<Vec<_>>();
    let ys = plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.1).chain(ends(series)));
    let xs = plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).chain(plot.marks.iter().map(|mark| mark.0));
    let axes = Axes {
        x: if bars {
            Scale { log: false, from: -0.5, to: plot.categories.len().max(1) as f64 - 0.5 }
        } else {
            Scale::over(xs, plot.log_x, false)
        },
        y: Scale::over(ys, plot.log_y, true),
        top: LINE * rows as f64 + 14.0,
        bottom: height - BELOW - turned,
    };
    let drawn = html! {
        @for (row, index, x) in entries {
            @let y = 12.0 + LINE * row as f64;
            (box_of(index, (x, y - 5.0), (14.0, 10.0)))
            (label(&plot.series[index].name, (x + 20.0, y), INK, BEGINS, FONT))
        }
        (draw_axes(plot, &axes, bars, height))
        @for (index, series) in plot.series.iter().enumerate() {
            @if bars { (draw_bars(series, index, plot, &axes)) } @else { (draw_line(series, index, &axes)) }
        }
    };
    (WIDTH, height, drawn)
}

fn draw_bars(series: &Series, index: usize, plot: &Plot, axes: &Axes) -> Markup {
    let (width, floor) = (0.8 / plot.series.len().max(1) as f64, if plot.log_y { axes.y.from } else { 0.0 });
    let left = |at: f64| at - 0.4 + width * index as f64;
    html! {
        @for &(at, value) in &series.points {
            @if let Some(value) = axes.y.place(value) {
                @let (x, end) = axes.pixels((left(at), value));
                @let (right, base) = axes.pixels((left(at) + 0.94 * width, floor));
                (box_of(index, (x, end.min(base)), (right - x, (base - end).abs())))
            }
        }
        @for (&(at, _), &(low, high)) in series.points.iter().zip(&series.spread) {
            @if let (Some(low), Some(high)) = (axes.y.place(low), axes.y.place(high)) {
                (line(INK, 1, &[low, high].map(|end| axes.pixels((left(at) + 0.47 * width, end)))))
            }
        }
    }
}

fn draw_line(series: &Series, index: usize, axes: &Axes) -> Markup {
    let colour = of_series(index);
    let points: Vec<(f64, f64)> = series.points.iter().filter_map(|&point| axes.place(point)).collect();
    // Series also differ by the shape of their markers.
    let marker = |&(x, y): &(f64, f64)| match index % 3 {
        0 => html! { circle fill=(colour) cx=(px(x)) cy=(px(y)) r="4" {} },
        1 => html! { path fill=(colour) d={ "M" (px(x)) " " (px(y - 6.0)) "l5 9h-10z" } {} },
        _ => html! { path stroke=(colour) stroke-width="2" d={ "M" (px(x - 4.0)) " " (px(y - 4.0)) "l8 8m0-8l-8 8" } {} },
    };
    html! {
        (line(&colour, 2, &points))
        @if points.len() <= MOST_MARKERS { @for point in &points { (marker(point)) } }
    }
}

fn draw_axes(plot: &Plot, axes: &Axes, bars: bool, height: f64) -> Markup {
    let (x, y) = (&axes.x, &axes.y);
    // No grid lines between whole numbers, such as two levels or two numbers of ranks.
    let whole = !x.log && plot.series.iter().flat_map(|series| &series.points).all(|point| point.0.fract() == 0.0);
    let is_shown = |at: f64| !whole || (at - at.round()).abs() <= 1e-9;
    let ticks = || x.ticks(12.0).into_iter().filter(|(at, _)| !bars && is_shown(*at));
    let upward = |colour, at: f64| line(colour, 1, &[y.from, y.to].map(|end| axes.pixels((at, end))));
    let column = |at: f64| axes.pixels((at, y.from)).0;
    let said = |name: &str, log: bool| if log { format!("{name} (logarithmic)") } else { name.to_owned() };
    html! {
        @for (at, name) in y.ticks(7.0) {
            (line(GRID, 1, &[x.from, x.to].map(|end| axes.pixels((end, at)))))
            (label(&name, (LEFT - 6.0, axes.pixels((x.from, at)).1), MUTED, ENDS, SMALL))
        }
        @for (at, name) in plot.categories.iter().enumerate() {
            @if label_room(plot) > 0.0 { (upright(name, (column(at as f64), axes.bottom + 6.0), MUTED, ENDS, SMALL)) }
            @else { (label(name, (column(at as f64), axes.bottom + 14.0), MUTED, MIDDLE, SMALL)) }
        }
        @for (at, name) in ticks() {
            (upward(GRID, at))
            (label(&name, (column(at), axes.bottom + 14.0), MUTED, MIDDLE, SMALL))
        }
        // Marks may be close together, so each name has a line of its own.
        @for (place, (at, name)) in plot.marks.iter().filter_map(|(at, name)| Some((x.place(*at)?, name))).enumerate() {
            (upward(INK, at))
            (label(name, (column(at) - 4.0, axes.top + 8.0 + 13.0 * place as f64), INK, ENDS, SMALL - 0.8))
        }
        (line(MUTED, 1, &[x.from, x.to].map(|end| axes.pixels((end, y.from)))))
        (label(&said(&plot.x, plot.log_x), ((WIDTH + LEFT) / 2.0, height - 10.0), INK, MIDDLE, FONT))
        (upright(&said(&plot.y, plot.log_y), (12.0, (axes.top + axes.bottom) / 2.0), INK, MIDDLE, FONT))
    }
}

/// Width, height and content of a heat map.
fn draw_heat(heat: &Heat) -> (f64, f64, Markup) {
    let longest = heat.rows.iter().take(MOST_ROWS).map(|name| name.chars().count()).max().unwrap_or(0);
    // Room for the names of rows.
    let left = (longest as f64 * LETTER).min(300.0).floor() + 16.0;
    let columns = heat.columns.len().max(1) as f64;
    let (width, high) = (WIDTH.max(left + CELL.0 * columns + 12.0), CELL.1);
    let wide = ((width - 12.0 - left) / columns).floor();
    let middle = |column: usize| left + wide * (column as f64 + 0.5);
    // A name that is wider than its column is split into two lines.
    let is_wide = |name: &str| name.chars().count() as f64 * LETTER > wide - 4.0;
    let lines = |name: &'_ str| if is_wide(name) { name.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())) } else { None };
    let rows = heat.rows.len().min(MOST_ROWS);
    let cell = |row: usize, column: usize, value: f64| {
        let fastest = heat.cells[row].iter().flatten().copied().fold(f64::INFINITY, f64::min);
        // Two shades for each doubling: 0 for the fastest cell, the last from 32 times its time on.
        let shade = (2.0 * (value / fastest).log2()).round().clamp(0.0, f64::from(SHADES - 1)) as u8;
        let on_shade = if shade > SHADES / 2 { "var(--on-high)" } else { "var(--on-low)" };
        let is_at = |places: &[Option<usize>]| places.get(row) == Some(&Some(column));
        let ((x, y), (width, height)) =
            ((left + wide * column as f64 + 1.0, HEAT_HEAD + high * row as f64 + 1.0), (wide - 2.0, high - 2.0));
        let text = format!("{}{}", if is_at(&heat.dotted) { "\u{25cf} " } else { "" }, general(value, 3));
        html! {
            (rect(&format!("var(--h{shade})"), (x, y), (width, height)))
            (label(&text, (middle(column), y + height / 2.0), on_shade, MIDDLE, SMALL))
            @if is_at(&heat.framed) { rect fill="none" stroke=(INK) stroke-width="2.5" x=(x) y=(y) width=(width) height=(height) {} }
        }
    };
    let drawn = html! {
        (label(&format!("{}; frame: {}, dot: {}", heat.unit, heat.legend[0], heat.legend[1]), (10.0, 12.0), INK, BEGINS, FONT))
        @for (column, name) in heat.columns.iter().enumerate() {
            @let (above, below) = lines(name).unwrap_or_else(|| (String::new(), name.clone()));
            @if !above.is_empty() { (label(&above, (middle(column), HEAT_HEAD - 26.0), INK, MIDDLE, FONT)) }
            (label(&below, (middle(column), HEAT_HEAD - 10.0), INK, MIDDLE, FONT))
        }
        @for (row, (name, cells)) in heat.rows.iter().zip(&heat.cells).take(rows).enumerate() {
            (label(name, (left - 8.0, HEAT_HEAD + high * (row as f64 + 0.5)), MUTED, ENDS, SMALL))
            @for (column, value) in cells.iter().enumerate() { @if let Some(value) = value { (cell(row, column, *value)) } }
        }
        @if heat.rows.len() > rows {
            @let text = format!("... and {} more rows, in the table", heat.rows.len() - rows);
            (label(&text, (left, HEAT_HEAD + high * rows as f64 + 12.0), MUTED, BEGINS, FONT))
        }
    };
    (width, HEAT_HEAD + 30.0 + high * (rows + 1) as f64, drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_from_zero_are_inside_the_axis() {
        // The regret of a policy that was measured faster than the oracle is negative.
        for values in [[-5.0_f64, -0.5], [-5.0, 2.0], [0.5, 2.0]] {
            let scale = Scale::over(values.into_iter(), false, true);
            assert!(scale.from <= values[0].min(0.0) && scale.to >= values[1].max(0.0), "{values:?}: {} to {}", scale.from, scale.to);
        }
    }

    #[test]
    fn an_axis_whose_ends_nearly_agree_has_few_lines() {
        let ends = [[1.0, 1.0 + f64::EPSILON], [0.1 + 0.2, 0.3], [1e17, 1e17 + 16.0], [1.0, 3.0]];
        for values in ends {
            let ticks = Scale::over(values.into_iter(), false, false).ticks(12.0);
            assert!(ticks.len() <= 13, "{values:?}: {ticks:?}");
        }
        let whole: Vec<f64> = Scale { log: false, from: 0.0, to: 7.0 }.ticks(7.0).into_iter().map(|(at, _)| at).collect();
        assert_eq!(whole, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    }

    #[test]
    fn there_is_room_for_every_label_beside_the_axis() {
        let ends = (-10..11).flat_map(|power| (10..100).map(move |digits| f64::from(digits) * 10_f64.powi(power)));
        for (most, log) in ends.flat_map(|most| [(most, false), (most, true)]) {
            let ticks = Scale::over([most / 3e4, most].into_iter(), log, true).ticks(7.0);
            assert!(ticks.iter().all(|(_, name)| name.len() <= 6), "{most}: {ticks:?}");
        }
        assert_eq!([0.00015, 0.0001, 0.001, 0.0, -2e-5].map(short), ["1.5e-4", "1e-4", "0.001", "0", "-2e-5"]);
    }
}
