//! Figures: charts with their tables and sentences, made from JSON records alone.
//!
//! A [`Document`] holds all figures of one record. The terminal ([`text`]) and pages (`report::html`) show the same documents, so that
//! text, page and JSON agree.

mod analysis;
mod bench;
mod policies;
mod sweep;
mod terminal;

use serde::de::DeserializeOwned;
use serde_json::Value;

pub use super::cells::{Cell, Table};
use super::{POLICIES_SCHEMA, POLICIES_SCHEMA_VERSION, cells::number, possible::possible};
use crate::{
    analysis::{SCHEMA as ANALYSIS_SCHEMA, SCHEMA_VERSION as ANALYSIS_VERSION},
    bench::{BOARD_SCHEMA, SCHEMA, SCHEMA_VERSION},
    record::BoardRecord,
    sweep::{SWEEP_SCHEMA, SWEEP_SCHEMA_VERSION},
};
pub(super) use bench::{efficiency, of_run};
pub use policies::{policies_end, policies_of_last};
pub use sweep::{point_line, sweep};
pub use terminal::{COLOURS, PLAIN, markdown, text};

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

impl Section {
    /// The section for a terminal that has no room for charts: with these figures alone, of which the table is left.
    pub(super) fn brief(mut self, is_shown: impl Fn(&Figure) -> bool) -> Self {
        self.figures.retain(is_shown);
        self.figures.iter_mut().for_each(|figure| figure.chart = None);
        self
    }
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

impl Figure {
    /// A figure without chart and numbers.
    pub(super) fn new(id: &'static str, source: &'static str, title: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { id, title: title.into(), source, sentence: sentence.into(), chart: None, table: Table::default() }
    }

    /// The same figure with a logarithmic y axis.
    fn log_y(self) -> Self {
        Self { chart: self.chart.map(Chart::log_y), ..self }
    }

    pub(super) fn chart(self, chart: Chart) -> Self {
        Self { chart: Some(chart), ..self }
    }

    pub(super) fn table(self, table: Table) -> Self {
        Self { table, ..self }
    }
}

/// A distribution has a long tail if its largest value is beyond its median by this factor, or the median beyond the smallest.
const LONG_TAIL: f64 = 5.0;

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

    /// A line of the share of `values` that are no greater than each. Where the tail is long, the x axis is logarithmic.
    pub(super) fn distribution(x: &str, y: &str, name: &str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let ends = [values.first(), values.get(values.len() / 2), values.last()].map(|value| value.copied().unwrap_or(1.0));
        let has_tail = ends[0] > 0.0 && (ends[2] > LONG_TAIL * ends[1] || ends[1] > LONG_TAIL * ends[0]);
        let count = values.len() as f64;
        let points = values.into_iter().enumerate().map(|(at, value)| (value, 100.0 * (at + 1) as f64 / count));
        let series = vec![Series::new(name, points)];
        Self::Lines(Plot { x: x.to_owned(), y: y.to_owned(), log_x: has_tail, series, ..Plot::default() })
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

/// Why a record can't be shown: it is none, has another version, is not whole, or can't have been measured.
#[derive(Debug, thiserror::Error)]
#[error("{name} {reason}")]
pub struct FigureError {
    name: String,
    reason: String,
}

/// Makes the document of `record`, with this `name`.
///
/// # Errors
/// [`FigureError`].
pub fn document(name: &str, record: &Value) -> Result<Document, FigureError> {
    let made = made(record).map_err(|reason| FigureError { name: name.to_owned(), reason })?;
    Ok(Document { name: name.to_owned(), ..made })
}

/// The document that compares the boards among `records`; nothing if there is none. ([`document`] says what is wrong with a record.)
pub fn boards(records: &[Value]) -> Option<Document> {
    let boards: Vec<BoardRecord> =
        records.iter().filter(|record| record["schema"] == BOARD_SCHEMA).filter_map(|record| read(record).ok()).collect();
    (!boards.is_empty()).then(|| super::board::side_by_side(&boards))
}

fn read<T: DeserializeOwned>(record: &Value) -> Result<T, String> {
    // From text: see `calibrate::read_line`. This text is not the reader's file, so its lines mean nothing.
    let read = serde_json::from_str(&record.to_string());
    read.map_err(|error: serde_json::Error| broken(error.to_string().split(" at line ").next().unwrap_or_default()))
}

/// Makes a document without a name. The error is what the record is or has.
fn made(record: &Value) -> Result<Document, String> {
    let broken = |reason: String| broken(&reason);
    let impossible = |reason: String| format!("is not the record of a run as it was measured: {reason}");
    let schema = record.get("schema").and_then(Value::as_str);
    let known = match schema {
        Some(ANALYSIS_SCHEMA) => ANALYSIS_VERSION,
        Some(SCHEMA) => SCHEMA_VERSION,
        Some(BOARD_SCHEMA) => 1,
        Some(POLICIES_SCHEMA) => POLICIES_SCHEMA_VERSION,
        Some(SWEEP_SCHEMA) => SWEEP_SCHEMA_VERSION,
        _ => {
            let found = schema.map_or_else(|| "no schema".to_owned(), |schema| format!("the schema {schema}"));
            return Err(format!("is not a record from which figures can be made: it has {found}"));
        }
    };
    let version = record.get("schema_version").and_then(Value::as_u64).unwrap_or(0);
    if version != u64::from(known) {
        let schema = schema.unwrap_or_default();
        return Err(format!("has schema {schema} version {version}; this build of socbfs understands version {known}"));
    }
    match schema {
        Some(ANALYSIS_SCHEMA) => analysis::document(&read(record)?, record).map_err(broken),
        Some(POLICIES_SCHEMA) => policies::document(&read(record)?, record).map_err(broken),
        Some(SWEEP_SCHEMA) => Ok(sweep::document(&read(record)?, record)),
        Some(SCHEMA) => {
            let run = read(record)?;
            possible(&run).map_err(impossible)?;
            Ok(bench::document(&run, record))
        }
        _ => {
            let board: BoardRecord = read(record)?;
            board.runs.iter().try_for_each(possible).map_err(impossible)?;
            Ok(super::board::document(&board, record))
        }
    }
}

fn broken(reason: &str) -> String {
    format!("is not a whole record: {reason}")
}

/// A document with the command and the warnings of `record`, and what it says about machine and build below the keys `parts`.
pub(super) fn begin(title: &str, record: &Value, parts: &[&str]) -> Document {
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

/// Quotes a word of a command line for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Adds every leaf of `value` to `out`, with its path. A list of plain values is one entry.
pub(super) fn flatten(path: &str, value: &Value, out: &mut Vec<(String, String)>) {
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
