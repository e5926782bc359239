//! Charts as SVG, by plotters.
//!
//! plotters writes colours as attributes, which style sheets override. So each colour in a chart stands for a role (ink, grid, the third
//! series), and the style sheet gives each role its colour for the light theme, the dark theme and paper.

use std::fmt::Write as _;

use plotters::{
    coord::{Shift, types::RangedCoordf64},
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use crate::report::figures::{Chart, Figure, Heat, Plot};
use socbfs::words::general;

const WIDTH: i32 = 760;
const HEIGHT: i32 = 400;
/// Approximate width of a letter in pixels, since the font is not known.
const LETTER: f64 = 6.9;
/// Font size for plotters, which writes it a quarter smaller.
const FONT: i32 = 16;
/// Number of colours for series; further series use them again.
const SERIES: usize = 8;
/// Number of shades of a heat map, from a row's fastest cell to one 32 times slower.
const SHADES: u8 = 11;
/// Width of a heat map's column in pixels: room for a number of three digits with a dot.
const CELL: i32 = 68;
/// Pixels above a heat map's first row: the unit, and the names of columns in two lines.
const HEAT_HEAD: i32 = 56;
/// Most rows of a heat map.
const MOST_ROWS: usize = 48;
/// Most points of a line that has markers.
const MOST_MARKERS: usize = 80;

const INK: RGBColor = RGBColor(1, 1, 1);
const MUTED: RGBColor = RGBColor(2, 2, 2);
const GRID: RGBColor = RGBColor(3, 3, 3);
const PAPER: RGBColor = RGBColor(4, 4, 4);

fn of_series(index: usize) -> RGBColor {
    RGBColor(5, 5, (index % SERIES) as u8)
}

/// Whether the series has the colour of an earlier one; its bars are then hollow.
fn is_hollow(index: usize) -> bool {
    index / SERIES % 2 == 1
}

fn of_shade(shade: u8) -> RGBColor {
    RGBColor(6, 6, shade)
}

/// Colour of text on a shade.
fn on_shade(shade: u8) -> RGBColor {
    RGBColor(7, 7, u8::from(shade > SHADES / 2))
}

/// The CSS rules that replace the colours of charts by variables of the style sheet.
pub(super) fn rules() -> String {
    let mut colours: Vec<(RGBColor, String)> =
        vec![(INK, "ink".into()), (MUTED, "muted".into()), (GRID, "grid".into()), (PAPER, "paper".into())];
    colours.extend((0..SERIES).map(|index| (of_series(index), format!("s{index}"))));
    colours.extend((0..SHADES).map(|shade| (of_shade(shade), format!("h{shade}"))));
    colours.extend([(on_shade(0), "on-low".into()), (on_shade(SHADES), "on-high".into())]);
    colours.iter().fold(String::new(), |mut css, (RGBColor(r, g, b), name)| {
        for property in ["fill", "stroke"] {
            // Writing to a String can't fail.
            let _ = write!(css, "svg [{property}=\"#{r:02X}{g:02X}{b:02X}\"]{{{property}:var(--{name})}}");
        }
        css
    })
}

type Failed = DrawingAreaErrorKind<std::io::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws the chart of `figure` (`None`: it has no chart). With `style`, the picture stands alone: it contains that style and the title.
pub(super) fn svg(figure: &Figure, style: Option<&str>) -> Option<String> {
    let chart = figure.chart.as_ref()?;
    let heading = if style.is_some() { 28 } else { 0 };
    let height = heading
        + match chart {
            Chart::Lines(plot) | Chart::Bars(plot) => HEIGHT + legend_rows(plot) * 20 + label_room(plot),
            Chart::Heat(heat) => HEAT_HEAD + 30 + 24 * (heat.rows.len().min(MOST_ROWS) as i32 + 1),
        };
    let width = if let Chart::Heat(heat) = chart { WIDTH.max(heat_left(heat) + CELL * heat.columns.len() as i32 + 12) } else { WIDTH };
    let mut drawn = String::new();
    {
        let root = SVGBackend::with_string(&mut drawn, (width as u32, height as u32)).into_drawing_area();
        let below = if style.is_some() {
            // Drawing into a String can't fail.
            let _ = root.draw(&Rectangle::new([(0, 0), (width, height)], PAPER.filled()));
            let _ = root.draw(&label(figure.title.clone(), 10, 18, INK, HPos::Left, FONT + 2));
            root.split_vertically(heading).1
        } else {
            root.clone()
        };
        let _ = match chart {
            Chart::Lines(plot) => draw(&below, plot, false),
            Chart::Bars(plot) => draw(&below, plot, true),
            Chart::Heat(heat) => draw_heat(&below, heat),
        };
        let _ = root.present();
    }
    // The opening tag is replaced: the page sets the size, and screen readers read the title and the description.
    let begin = drawn.find("<svg")?;
    let head = drawn[begin..].find('>')? + begin;
    let said = maud::html! { title { (figure.title) } desc { (figure.sentence) } }.into_string();
    let style = style.map_or_else(String::new, |style| format!("<style>{style}</style>"));
    // A wide chart has a least width, so that it is scrolled before it becomes too small to read.
    let least = if width > WIDTH && style.is_empty() { format!(" style=\"min-width:{}px\"", width * 3 / 4) } else { String::new() };
    let open = format!("<svg{least} viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">");
    Some(format!("{open}{said}{style}{}", drawn[head + 1..].trim()))
}

fn label(text: String, x: i32, y: i32, colour: RGBColor, anchor: HPos, size: i32) -> Text<'static, (i32, i32), String> {
    let style = ("sans-serif", size).into_font().color(&colour).pos(Pos::new(anchor, VPos::Center));
    Text::new(text, (x, y), style)
}

/// Rows of the legend: the name, index and x of each series.
fn legend(plot: &Plot) -> Vec<Vec<(&str, usize, i32)>> {
    let mut rows: Vec<Vec<(&str, usize, i32)>> = vec![Vec::new()];
    let mut x = 64;
    for (index, series) in plot.series.iter().enumerate() {
        let wide = 40 + (series.name.chars().count() as f64 * LETTER) as i32;
        if x + wide > WIDTH && x > 64 {
            rows.push(Vec::new());
            x = 64;
        }
        if let Some(row) = rows.last_mut() {
            row.push((&series.name, index, x));
        }
        x += wide;
    }
    rows
}

fn legend_rows(plot: &Plot) -> i32 {
    legend(plot).len() as i32
}

/// Height in pixels of the names of categories if they are turned upright; 0 if they fit side by side.
fn label_room(plot: &Plot) -> i32 {
    let longest = plot.categories.iter().map(|name| name.chars().count()).max().unwrap_or(0) as f64 * LETTER;
    let each = f64::from(WIDTH - 90) / plot.categories.len().max(1) as f64;
    if longest > each - 4.0 { longest as i32 } else { 0 }
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
            let (low, high) = (from.log10(), to.log10());
            let (low, high) = (low.floor(), high.ceil());
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

/// Formats 1,500,000 as "1.5 M".
fn short(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        v if v >= 1e9 => (1e9, " G"),
        v if v >= 1e6 => (1e6, " M"),
        v if v >= 1e4 => (1e3, " k"),
        _ => (1.0, ""),
    };
    // Rounds off the floating-point error of a multiple of the step.
    format!("{}{unit}", general((value / scale * 1e9).round() / 1e9, 6))
}

type Coordinates<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw(area: &Area<'_>, plot: &Plot, bars: bool) -> Result<(), Failed> {
    let rows = legend(plot);
    for (row, entries) in rows.iter().enumerate() {
        let y = 12 + 20 * row as i32;
        for &(name, index, x) in entries {
            area.draw(&Rectangle::new([(x, y - 5), (x + 14, y + 5)], of_series(index).filled()))?;
            if is_hollow(index) {
                area.draw(&Rectangle::new([(x + 3, y - 2), (x + 11, y + 2)], PAPER.filled()))?;
            }
            area.draw(&label(name.to_owned(), x + 20, y, INK, HPos::Left, FONT))?;
        }
    }
    let ends = |series: &crate::report::figures::Series| series.spread.iter().flat_map(|&(low, high)| [low, high]).collect::<Vec<_>>();
    let ys = plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.1).chain(ends(series)));
    let y = Scale::over(ys, plot.log_y, true);
    let x = if bars {
        Scale { log: false, from: -0.5, to: plot.categories.len().max(1) as f64 - 0.5 }
    } else {
        let xs = plot.series.iter().flat_map(|series| series.points.iter().map(|point| point.0)).chain(plot.marks.iter().map(|m| m.0));
        Scale::over(xs, plot.log_x, false)
    };
    let turned = label_room(plot);
    let mut chart = ChartBuilder::on(area)
        .margin_top(20 * rows.len() as i32 + 14)
        .margin_right(24)
        .margin_left(64)
        .margin_bottom(50 + turned)
        .build_cartesian_2d(x.from..x.to, y.from..y.to)?;
    axes(area, &mut chart, plot, (&x, &y), bars)?;
    let groups = plot.series.len().max(1) as f64;
    for (index, series) in plot.series.iter().enumerate() {
        let colour = of_series(index);
        let placed = |&(at, value): &(f64, f64)| Some((x.place(at)?, y.place(value)?));
        if bars {
            let (width, floor) = (0.8 / groups, if plot.log_y { y.from } else { 0.0 });
            let left = |at: f64| at - 0.4 + width * index as f64;
            let bar = |(at, value): (f64, f64)| Rectangle::new([(left(at), floor), (left(at) + 0.94 * width, value)], colour.filled());
            chart.draw_series(series.points.iter().filter_map(placed).map(bar))?;
            if is_hollow(index) {
                let inside = |(at, value): (f64, f64)| {
                    let (from, to) = (left(at) + 0.25 * width, left(at) + 0.69 * width);
                    Rectangle::new([(from, floor), (to, value)], PAPER.filled())
                };
                chart.draw_series(series.points.iter().filter_map(placed).map(inside))?;
            }
            let whisker = |(&(at, _), &(low, high)): (&(f64, f64), &(f64, f64))| {
                let middle = left(at) + 0.47 * width;
                Some(PathElement::new(vec![(middle, y.place(low)?), (middle, y.place(high)?)], INK.stroke_width(1)))
            };
            chart.draw_series(series.points.iter().zip(&series.spread).filter_map(whisker))?;
            continue;
        }
        let points: Vec<(f64, f64)> = series.points.iter().filter_map(placed).collect();
        chart.draw_series([PathElement::new(points.clone(), colour.stroke_width(2))])?;
        if points.len() > MOST_MARKERS {
            continue;
        }
        // Series also differ by the shape of their markers.
        match index % 3 {
            0 => chart.draw_series(points.iter().map(|&at| Circle::new(at, 4, colour.filled())))?,
            1 => chart.draw_series(points.iter().map(|&at| TriangleMarker::new(at, 6, colour.filled())))?,
            _ => chart.draw_series(points.iter().map(|&at| Cross::new(at, 4, colour.stroke_width(2))))?,
        };
    }
    Ok(())
}

fn axes(area: &Area<'_>, chart: &mut Coordinates<'_, '_>, plot: &Plot, (x, y): (&Scale, &Scale), bars: bool) -> Result<(), Failed> {
    let line = |from, to, colour: RGBColor| PathElement::new(vec![from, to], colour.stroke_width(1));
    let origin = chart.as_coord_spec().get_x_axis_pixel_range().start - area.get_pixel_range().0.start;
    let pixel = |chart: &Coordinates<'_, '_>, at: (f64, f64)| {
        let (x, y) = chart.backend_coord(&at);
        let (left, top) = (area.get_pixel_range().0.start, area.get_pixel_range().1.start);
        (x - left, y - top)
    };
    for (at, name) in y.ticks(7.0) {
        chart.draw_series([line((x.from, at), (x.to, at), GRID)])?;
        let (_, row) = pixel(chart, (x.from, at));
        area.draw(&label(name, origin - 6, row, MUTED, HPos::Right, FONT - 2))?;
    }
    let floor = pixel(chart, (x.from, y.from)).1;
    if bars {
        let turned = label_room(plot) > 0;
        for (place, name) in plot.categories.iter().enumerate() {
            let (column, _) = pixel(chart, (place as f64, y.from));
            if turned {
                let style = ("sans-serif", FONT - 2)
                    .into_font()
                    .transform(FontTransform::Rotate270)
                    .color(&MUTED)
                    .pos(Pos::new(HPos::Right, VPos::Center));
                area.draw(&Text::new(name.clone(), (column, floor + 6), style))?;
            } else {
                area.draw(&label(name.clone(), column, floor + 14, MUTED, HPos::Center, FONT - 2))?;
            }
        }
    } else {
        // No grid lines between whole numbers, such as two levels or two numbers of ranks.
        let whole = !x.log && plot.series.iter().flat_map(|series| &series.points).all(|point| point.0.fract() == 0.0);
        for (at, name) in x.ticks(12.0) {
            if whole && (at - at.round()).abs() > 1e-9 {
                continue;
            }
            chart.draw_series([line((at, y.from), (at, y.to), GRID)])?;
            let (column, _) = pixel(chart, (at, y.from));
            area.draw(&label(name, column, floor + 14, MUTED, HPos::Center, FONT - 2))?;
        }
        for (at, name) in &plot.marks {
            let Some(at) = x.place(*at) else { continue };
            chart.draw_series([line((at, y.from), (at, y.to), INK)])?;
            let (column, top) = pixel(chart, (at, y.to));
            area.draw(&label(name.clone(), column - 4, top + 8, INK, HPos::Right, FONT - 3))?;
        }
    }
    chart.draw_series([line((x.from, y.from), (x.to, y.from), MUTED)])?;
    let (width, height) = area.dim_in_pixel();
    let said = |name: &str, log: bool| if log { format!("{name} (logarithmic)") } else { name.to_owned() };
    area.draw(&label(said(&plot.x, plot.log_x), (width as i32 + origin) / 2, height as i32 - 10, INK, HPos::Center, FONT))?;
    let style = ("sans-serif", FONT).into_font().transform(FontTransform::Rotate270).color(&INK).pos(Pos::new(HPos::Center, VPos::Center));
    let middle = (floor + pixel(chart, (x.from, y.to)).1) / 2;
    area.draw(&Text::new(said(&plot.y, plot.log_y), (12, middle), style))
}

/// Pixels that the names of a heat map's rows take.
fn heat_left(heat: &Heat) -> i32 {
    let longest = heat.rows.iter().take(MOST_ROWS).map(|name| name.chars().count()).max().unwrap_or(0);
    (longest as f64 * LETTER).min(300.0) as i32 + 16
}

fn draw_heat(area: &Area<'_>, heat: &Heat) -> Result<(), Failed> {
    let left = heat_left(heat);
    let (right, top, high) = (area.dim_in_pixel().0 as i32 - 12, HEAT_HEAD, 24);
    let wide = (right - left) / heat.columns.len().max(1) as i32;
    area.draw(&label(format!("{}; frame: {}, dot: {}", heat.unit, heat.legend[0], heat.legend[1]), 10, 12, INK, HPos::Left, FONT))?;
    for (column, name) in heat.columns.iter().enumerate() {
        let middle = left + wide * column as i32 + wide / 2;
        // A name that is wider than its column is split into two lines.
        let is_wide = name.chars().count() as f64 * LETTER > f64::from(wide - 4);
        let (above, below) = if is_wide { name.split_once(' ').unwrap_or(("", name)) } else { ("", name.as_str()) };
        if !above.is_empty() {
            area.draw(&label(above.to_owned(), middle, top - 26, INK, HPos::Center, FONT))?;
        }
        area.draw(&label(below.to_owned(), middle, top - 10, INK, HPos::Center, FONT))?;
    }
    for (row, (name, cells)) in heat.rows.iter().zip(&heat.cells).take(MOST_ROWS).enumerate() {
        let y = top + high * row as i32;
        area.draw(&label(name.clone(), left - 8, y + high / 2, MUTED, HPos::Right, FONT - 2))?;
        let fastest = cells.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        for (column, cell) in cells.iter().enumerate() {
            let x = left + wide * column as i32;
            let Some(value) = cell else { continue };
            // Two shades for each doubling: 0 for the fastest cell, the last from 32 times its time on.
            let shade = ((2.0 * (value / fastest).log2()).round().clamp(0.0, f64::from(SHADES - 1))) as u8;
            area.draw(&Rectangle::new([(x + 1, y + 1), (x + wide - 1, y + high - 1)], of_shade(shade).filled()))?;
            let (dot, framed) = (heat.dotted.get(row) == Some(&Some(column)), heat.framed.get(row) == Some(&Some(column)));
            let text = format!("{}{}", if dot { "● " } else { "" }, general(*value, 3));
            area.draw(&label(text, x + wide / 2, y + high / 2, on_shade(shade), HPos::Center, FONT - 2))?;
            if framed {
                area.draw(&Rectangle::new([(x + 1, y + 1), (x + wide - 1, y + high - 1)], INK.stroke_width(2)))?;
                area.draw(&Rectangle::new([(x + 2, y + 2), (x + wide - 2, y + high - 2)], INK.stroke_width(1)))?;
            }
        }
    }
    if heat.rows.len() > MOST_ROWS {
        let text = format!("... and {} more rows, in the table", heat.rows.len() - MOST_ROWS);
        area.draw(&label(text, left, top + high * MOST_ROWS as i32 + 12, MUTED, HPos::Left, FONT))?;
    }
    Ok(())
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
}
