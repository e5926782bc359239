//! Figures: charts with their tables and sentences, made from JSON records alone.
//!
//! A [`Document`] holds all figures of one record. The terminal ([`text`]) and pages (`report::html`) show the same documents, so that
//! text, page and JSON agree.

mod analysis;
mod bench;
mod policies;
mod read;
mod terminal;

use serde_json::Value;

use super::numbers::{general, grouped, seconds};
pub use bench::compared;
pub use terminal::{COLOURS, PLAIN, text};

/// All figures of one record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// File name, or what the record is called.
    pub name: String,
    /// What it is.
    pub title: String,
    /// The command line that made the record.
    pub command: String,
    /// Machine, build, settings: name and value of each field.
    pub environment: Vec<(String, String)>,
    /// What to be careful about.
    pub warnings: Vec<String>,
    /// By graph or run.
    pub sections: Vec<Section>,
}

/// One graph or run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Its name.
    pub title: String,
    /// What it is, in numbers.
    pub facts: Vec<(String, Cell)>,
    /// Its figures.
    pub figures: Vec<Figure>,
}

/// A chart with its title, sentence, table and command.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// A word that names it in `--only`, in links, and beside figures of other records.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// Where its definition is from.
    pub source: &'static str,
    /// What it says of this graph.
    pub sentence: String,
    /// The picture (`None`: the table says it all).
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

/// The number of letters from which a cell without a value is a sentence.
const LONG_WORD: usize = 20;

impl Table {
    /// Whether the column holds sentences, which begin at its left; numbers end at its right.
    pub fn is_text(&self, column: usize) -> bool {
        let is_long = |cell: &Cell| cell.value.is_none() && cell.text.chars().count() > LONG_WORD;
        self.rows.iter().any(|row| row.get(column).is_some_and(is_long))
    }
}

/// A number as text, and as the record has it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// For people.
    pub text: String,
    /// In full (`None`: it is a word, or not known).
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

    /// A number with four digits.
    pub fn number(value: f64) -> Self {
        Self { text: general(value, 4), value: Some(value) }
    }

    /// A share as per cent.
    pub fn share(share: f64) -> Self {
        Self { text: format!("{:.1} %", 100.0 * share), value: Some(share) }
    }

    /// Nanoseconds.
    pub fn ns(ns: f64) -> Self {
        Self { text: seconds(ns / 1e9), value: Some(ns) }
    }

    /// Seconds.
    pub fn seconds(value: f64) -> Self {
        Self { text: seconds(value), value: Some(value) }
    }

    /// `cell` of what is there; "n/a" of what is not.
    pub fn of<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(|| Self::word("n/a"), cell)
    }
}

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub enum Chart {
    /// A line for each series over numbers.
    Lines(Plot),
    /// Bars side by side for each category; `x` of a point is the place of its category.
    Bars(Plot),
    /// Cells coloured by how many times slower they are than the fastest of their row.
    Heat(Heat),
}

impl Chart {
    /// Bars over `categories`.
    pub fn bars(x: impl Into<String>, y: impl Into<String>, categories: impl IntoIterator<Item = String>, series: Vec<Series>) -> Self {
        Self::Bars(Plot { x: x.into(), y: y.into(), categories: categories.into_iter().collect(), series, ..Plot::default() })
    }
}

/// Lines or bars.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plot {
    /// Below the axis, with the unit.
    pub x: String,
    /// Beside the axis, with the unit.
    pub y: String,
    /// Logarithmic axes.
    pub log_x: bool,
    /// See `log_x`. What is not above 0 is left out.
    pub log_y: bool,
    /// Names of the categories, of bars.
    pub categories: Vec<String>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Places on the x axis that are marked, each with its name.
    pub marks: Vec<(f64, String)>,
}

/// One line, or the bars of one colour.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper end of each point's spread (empty: none is known).
    pub spread: Vec<(f64, f64)>,
}

impl Series {
    /// A series without spread.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { name: name.into(), points: points.into_iter().collect(), spread: Vec::new() }
    }

    /// Bars of one category after the other, each with the ends of its spread.
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
    /// By row and column.
    pub cells: Vec<Vec<Option<f64>>>,
    /// By row: the column in a frame.
    pub framed: Vec<Option<usize>>,
    /// By row: the column with a dot.
    pub dotted: Vec<Option<usize>>,
    /// What frame and dot mean.
    pub legend: [String; 2],
}

/// A reason why a record can't be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FigureError {
    /// It has no schema, or an unknown one.
    #[error("{name} is not a record from which figures can be made: it has {found}")]
    Unknown {
        /// File name.
        name: String,
        /// What stands in its place.
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
}

/// Makes the document of a record of one schema.
type Make = fn(&Value) -> Result<Document, serde_json::Error>;

/// The document of `record`, under the title `name`.
///
/// # Errors
/// [`FigureError`] where it is not a record, of another version, or not whole.
pub fn document(name: &str, record: &Value) -> Result<Document, FigureError> {
    let Some(schema) = record.get("schema").and_then(Value::as_str) else {
        return Err(FigureError::Unknown { name: name.to_owned(), found: "no schema".to_owned() });
    };
    let (known, make): (u32, Make) = match schema {
        crate::analysis::SCHEMA => (crate::analysis::SCHEMA_VERSION, analysis::document),
        crate::bench::SCHEMA => (crate::bench::SCHEMA_VERSION, bench::document),
        crate::bench::BOARD_SCHEMA => (1, bench::board),
        super::POLICIES_SCHEMA => (super::POLICIES_SCHEMA_VERSION, policies::document),
        _ => return Err(FigureError::Unknown { name: name.to_owned(), found: format!("the schema {schema}") }),
    };
    let version = record.get("schema_version").and_then(Value::as_u64).unwrap_or(0);
    if version != u64::from(known) {
        return Err(FigureError::Version { name: name.to_owned(), schema: schema.to_owned(), version, known });
    }
    let mut document = make(record).map_err(|error| FigureError::Broken { name: name.to_owned(), reason: error.to_string() })?;
    name.clone_into(&mut document.name);
    Ok(document)
}
