//! Figures: charts with their tables and sentences, made from JSON records alone.
//!
//! A [`Document`] holds all figures of one record. The terminal ([`text`]) and pages (`report::html`) show the same documents, so that
//! text, page and JSON agree.

mod analysis;
mod bench;
mod policies;
mod terminal;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{POLICIES_SCHEMA, POLICIES_SCHEMA_VERSION, possible::possible};
use crate::{
    analysis::{SCHEMA as ANALYSIS_SCHEMA, SCHEMA_VERSION as ANALYSIS_VERSION},
    bench::{BOARD_SCHEMA, BoardRecord, SCHEMA, SCHEMA_VERSION},
};
pub use bench::compared;
use socbfs::{
    bfs::Direction,
    words::{bytes, general, grouped, seconds},
};
pub use terminal::{COLOURS, PLAIN, text};

/// All figures of one record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// The file name or another name of the record.
    pub name: String,
    /// Heading: the kind of record.
    pub title: String,
    /// The command line that made the record.
    pub command: String,
    /// Machine, build, settings: name and value of each field.
    pub environment: Vec<(String, String)>,
    /// Warnings about the record.
    pub warnings: Vec<String>,
    /// A section for each graph or run.
    pub sections: Vec<Section>,
}

/// The facts and figures of one graph or run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Name of the graph or run.
    pub title: String,
    /// Numbers that describe it, each with a name.
    pub facts: Vec<(String, Cell)>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// A chart with its title, sentence and table.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// A word that names the figure in `--figure` and in links, and that is the same for the same figure of another record.
    pub id: &'static str,
    /// What the figure shows.
    pub title: String,
    /// Where the figure is defined, such as a paper.
    pub source: &'static str,
    /// What it shows about this graph.
    pub sentence: String,
    /// The chart (`None`: there is only the table).
    pub chart: Option<Chart>,
    /// The numbers.
    pub table: Table,
}

/// The numbers of a figure.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Column heads, with units.
    pub columns: Vec<String>,
    /// Rows, each with a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell without a value that has more characters than this is a sentence.
const LONG_WORD: usize = 20;

impl Figure {
    /// A figure without chart and numbers.
    fn new(id: &'static str, source: &'static str, title: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { id, title: title.into(), source, sentence: sentence.into(), chart: None, table: Table::default() }
    }

    /// The same figure with a logarithmic y axis.
    fn log_y(self) -> Self {
        Self { chart: self.chart.map(Chart::log_y), ..self }
    }

    fn chart(self, chart: Chart) -> Self {
        Self { chart: Some(chart), ..self }
    }

    fn table(self, table: Table) -> Self {
        Self { table, ..self }
    }
}

/// The head of a column, and its cell in the row of an item.
type Col<'a, T> = (&'a str, &'a dyn Fn(&T) -> Cell);

impl Table {
    /// A row for each item.
    fn of<T>(items: impl IntoIterator<Item = T>, columns: &[Col<'_, T>]) -> Self {
        Self {
            columns: columns.iter().map(|(head, _)| (*head).to_owned()).collect(),
            rows: items.into_iter().map(|item| columns.iter().map(|(_, cell)| cell(&item)).collect()).collect(),
        }
    }

    /// Adds a column.
    fn add(&mut self, head: impl Into<String>, cells: impl Iterator<Item = Cell>) {
        self.columns.push(head.into());
        for (row, cell) in cells.enumerate() {
            match self.rows.get_mut(row) {
                Some(row) => row.push(cell),
                None => self.rows.push(vec![cell]),
            }
        }
    }

    /// Whether the column holds sentences. Those are aligned to the left, numbers and words to the right.
    pub fn is_text(&self, column: usize) -> bool {
        let is_long = |cell: &Cell| cell.value.is_none() && cell.text.chars().count() > LONG_WORD;
        self.rows.iter().any(|row| row.get(column).is_some_and(is_long))
    }
}

/// A number as text and in full, or a word.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// The text to show.
    pub text: String,
    /// The number in full (`None`: the cell is a word, or the number is not known).
    pub value: Option<f64>,
}

impl Cell {
    /// A word.
    pub fn word(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None }
    }

    /// A whole number.
    pub fn count(count: u64) -> Self {
        Self { text: grouped(count), value: Some(count as f64) }
    }

    /// A number of bytes, in a unit that fits.
    pub fn bytes(count: u64) -> Self {
        Self { text: bytes(count), value: Some(count as f64) }
    }

    /// A whole number that is a name: without separators.
    pub fn name(number: impl Into<i64>) -> Self {
        let number = number.into();
        Self { text: number.to_string(), value: Some(number as f64) }
    }

    /// A number with four significant digits, or a whole number.
    pub fn number(value: f64) -> Self {
        Self { text: number(value), value: Some(value) }
    }

    /// A share, shown as per cent.
    pub fn share(share: f64) -> Self {
        Self { text: format!("{:.1} %", 100.0 * share), value: Some(share) }
    }

    /// A time in nanoseconds.
    pub fn ns(ns: f64) -> Self {
        Self { text: seconds(ns / 1e9), value: Some(ns) }
    }

    /// A time in seconds.
    pub fn seconds(value: f64) -> Self {
        Self { text: seconds(value), value: Some(value) }
    }

    /// `cell` of the value, or "n/a" if there is none.
    pub fn of<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(|| Self::word("n/a"), cell)
    }
}

/// Four significant digits, or from 1000 on all digits before the point, in groups as in counts.
fn number(value: f64) -> String {
    // 2^53: whole numbers above it have digits that were not measured.
    if (999.95..9.0e15).contains(&value) { grouped(value.round() as u64) } else { general(value, 4) }
}

/// A chart.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// A line for each series, over a numeric x axis.
    Lines(Plot),
    /// Bars side by side for each category; the x of a point is the index of its category.
    Bars(Plot),
    /// Cells coloured by how many times slower they are than the fastest of their row.
    Heat(Heat),
}

impl Chart {
    /// Lines over a linear x axis.
    pub fn lines(x: impl Into<String>, y: impl Into<String>, series: Vec<Series>) -> Self {
        Self::Lines(Plot { x: x.into(), y: y.into(), series, ..Plot::default() })
    }

    /// The same chart with a logarithmic y axis.
    #[must_use]
    pub fn log_y(mut self) -> Self {
        if let Self::Lines(plot) | Self::Bars(plot) = &mut self {
            plot.log_y = true;
        }
        self
    }

    /// A line of the share of `values` that are no greater than each.
    fn distribution(x: &str, y: &str, name: &str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let count = values.len() as f64;
        let points = values.into_iter().enumerate().map(|(at, value)| (value, 100.0 * (at + 1) as f64 / count));
        Self::lines(x, y, vec![Series::new(name, points)])
    }

    /// Bars over `categories`.
    pub fn bars(x: impl Into<String>, y: impl Into<String>, categories: impl IntoIterator<Item = String>, series: Vec<Series>) -> Self {
        Self::Bars(Plot { x: x.into(), y: y.into(), categories: categories.into_iter().collect(), series, ..Plot::default() })
    }
}

/// A chart of lines or bars.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plot {
    /// Label of the x axis, with the unit.
    pub x: String,
    /// Label of the y axis, with the unit.
    pub y: String,
    /// Whether the x axis is logarithmic. Points that are not above 0 are then left out.
    pub log_x: bool,
    /// Whether the y axis is logarithmic. Points that are not above 0 are then left out.
    pub log_y: bool,
    /// Names of the categories of a bar chart.
    pub categories: Vec<String>,
    /// The lines, or the bars of each colour.
    pub series: Vec<Series>,
    /// Values of x that are marked, each with its name.
    pub marks: Vec<(f64, String)>,
}

/// One line, or the bars of one colour.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// x and y of each point.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of the spread of each point (empty: not known).
    pub spread: Vec<(f64, f64)>,
}

impl Series {
    /// A series without spread.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), spread: Vec::new() }
    }

    /// One bar for each category in turn.
    pub fn bars(name: impl Into<String>, heights: impl IntoIterator<Item = f64>) -> Self {
        Self::new(name, heights.into_iter().enumerate().map(|(at, height)| (at as f64, height)))
    }

    /// As [`bars`](Self::bars), each with the ends of its spread.
    pub fn spread(name: impl Into<String>, bars: impl IntoIterator<Item = (f64, (f64, f64))>) -> Self {
        let bars = bars.into_iter().enumerate();
        let (points, spread) = bars.map(|(at, (height, ends))| ((at as f64, height), ends)).unzip();
        Self { name: name.into(), points, spread }
    }
}

/// A table as coloured cells.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Heat {
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// What the numbers in the cells are, with the unit.
    pub unit: String,
    /// Values by row and column.
    pub cells: Vec<Vec<Option<f64>>>,
    /// For each row, the column whose cell has a frame.
    pub framed: Vec<Option<usize>>,
    /// For each row, the column whose cell has a dot.
    pub dotted: Vec<Option<usize>>,
    /// What the frame and the dot mean.
    pub legend: [String; 2],
}

/// A reason why a record can't be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// The record has no schema, or an unknown one.
    #[error("{name} is not a record from which figures can be made: it has {found}")]
    Unknown {
        /// File name.
        name: String,
        /// What it has instead of a known schema.
        found: String,
    },
    /// A record of another version.
    #[error("{name} has schema {schema} version {version}; this build of socbfs understands version {known}")]
    Version {
        /// File name.
        name: String,
        /// Its schema.
        schema: String,
        /// Its version.
        version: u64,
        /// The version that is understood.
        known: u32,
    },
    /// A field is missing or wrong.
    #[error("{name} is not a whole record: {reason}")]
    Broken {
        /// File name.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// A run that can't have been measured.
    #[error("{name} is not the record of a run as it was measured: {reason}")]
    Impossible {
        /// File name.
        name: String,
        /// What is impossible.
        reason: String,
    },
}

/// Makes the document of `record`, with this `name`.
///
/// # Errors
/// [`FigureError`] if it is not a record, has another version, or is not whole.
pub fn document(name: &str, record: &Value) -> Result<Document, FigureError> {
    fn read<T: DeserializeOwned>(record: &Value) -> Result<T, String> {
        T::deserialize(record).map_err(|error| error.to_string())
    }
    let name = || name.to_owned();
    let broken = |reason: String| FigureError::Broken { name: name(), reason };
    let impossible = |reason: String| FigureError::Impossible { name: name(), reason };
    let schema = record.get("schema").and_then(Value::as_str);
    let known = match schema {
        Some(ANALYSIS_SCHEMA) => ANALYSIS_VERSION,
        Some(SCHEMA) => SCHEMA_VERSION,
        Some(BOARD_SCHEMA) => 1,
        Some(POLICIES_SCHEMA) => POLICIES_SCHEMA_VERSION,
        _ => {
            let found = schema.map_or_else(|| "no schema".to_owned(), |schema| format!("the schema {schema}"));
            return Err(FigureError::Unknown { name: name(), found });
        }
    };
    let version = record.get("schema_version").and_then(Value::as_u64).unwrap_or(0);
    if version != u64::from(known) {
        return Err(FigureError::Version { name: name(), schema: schema.unwrap_or_default().to_owned(), version, known });
    }
    let made = match schema {
        Some(ANALYSIS_SCHEMA) => read(record).and_then(|analysis| analysis::document(&analysis, record)).map_err(broken)?,
        Some(POLICIES_SCHEMA) => read(record).and_then(|report| policies::document(&report, record)).map_err(broken)?,
        Some(SCHEMA) => {
            let run = read(record).map_err(broken)?;
            possible(&run).map_err(impossible)?;
            bench::document(&run, record)
        }
        _ => {
            let board: BoardRecord = read(record).map_err(broken)?;
            board.runs.iter().try_for_each(possible).map_err(impossible)?;
            bench::board(&board, record)
        }
    };
    Ok(Document { name: name(), ..made })
}

/// A document with the command and the warnings of `record`, and what it says about machine and build below the keys `parts`.
fn begin(title: &str, record: &Value, parts: &[&str]) -> Document {
    let strings =
        |list: &Value| -> Vec<String> { list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect() };
    let mut environment = Vec::new();
    flatten("", &record["environment"], &mut environment);
    parts.iter().for_each(|part| flatten(part, &record[part], &mut environment));
    Document {
        title: title.to_owned(),
        command: strings(&record["environment"]["command"]).iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        environment,
        warnings: strings(&record["warnings"]),
        ..Document::default()
    }
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::TopDown => "top-down",
        Direction::BottomUp => "bottom-up",
    }
}

/// Quotes a word of a command line for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Adds every leaf of `value` to `out`, with its path. A list of plain values is one entry.
fn flatten(path: &str, value: &Value, out: &mut Vec<(String, String)>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let leaf = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        Value::Null => {}
        Value::Object(fields) => fields.iter().for_each(|(key, value)| flatten(&below(key), value, out)),
        Value::Array(values) if values.iter().any(|value| value.is_object() || value.is_array()) => {
            values.iter().enumerate().for_each(|(index, value)| flatten(&below(&index.to_string()), value, out));
        }
        Value::Array(values) if values.is_empty() => {}
        Value::Array(values) => out.push((path.to_owned(), values.iter().map(leaf).collect::<Vec<_>>().join(" "))),
        _ => out.push((path.to_owned(), leaf(value))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_groups_of_digits_and_no_exponent() {
        for (value, text) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (999.9, "999.9"),
            (999.96, "1,000"),
            (4694.3, "4,694"),
            (88_234.6, "88,235"),
            (1.2e-7, "1.2e-07"),
            (1e30, "1e+30"),
        ] {
            assert_eq!(Cell::number(value), Cell { text: text.to_owned(), value: Some(value) });
        }
    }
}
