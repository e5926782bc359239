//! Tables of cells, and how they are written as text.

use std::fmt::{self, Write};

use socbfs::{
    stats::Summary,
    words::{bytes, general, grouped, seconds},
};

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

/// The head of a column, and its cell in the row of an item.
pub(super) type Col<'a, T> = (&'a str, &'a dyn Fn(&T) -> Cell);

impl Table {
    /// A row for each item.
    pub(super) fn of<T>(items: impl IntoIterator<Item = T>, columns: &[Col<'_, T>]) -> Self {
        Self {
            columns: columns.iter().map(|(head, _)| (*head).to_owned()).collect(),
            rows: items.into_iter().map(|item| columns.iter().map(|(_, cell)| cell(&item)).collect()).collect(),
        }
    }

    /// Adds a column.
    pub(super) fn add(&mut self, head: impl Into<String>, cells: impl Iterator<Item = Cell>) {
        self.columns.push(head.into());
        for (row, cell) in cells.enumerate() {
            match self.rows.get_mut(row) {
                Some(row) => row.push(cell),
                None => self.rows.push(vec![cell]),
            }
        }
    }

    /// Leaves out the columns that have none of these heads.
    pub(super) fn keep(&mut self, heads: &[&str]) {
        let is_kept: Vec<bool> = self.columns.iter().map(|head| heads.contains(&head.as_str())).collect();
        self.columns.retain(|head| heads.contains(&head.as_str()));
        for row in &mut self.rows {
            let mut cells = is_kept.iter();
            row.retain(|_| cells.next().is_none_or(|&kept| kept));
        }
    }

    /// Whether the column holds sentences. Those are aligned to the left, numbers and words to the right.
    pub fn is_text(&self, column: usize) -> bool {
        self.rows.iter().any(|row| row.get(column).is_some_and(Cell::is_sentence))
    }
}

/// The text of a value that is not known.
pub(super) const NONE: &str = "n/a";

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

    /// Whether the cell holds a sentence, and neither a number nor a word.
    pub fn is_sentence(&self) -> bool {
        self.value.is_none() && self.text.chars().count() > LONG_WORD
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

    /// An energy in joules.
    pub(super) fn joules(value: f64) -> Self {
        Self { text: joules(value), value: Some(value) }
    }

    /// A mean with its standard deviation, each by `text`.
    pub(super) fn spread(of: &Summary, text: impl Fn(f64) -> String) -> Self {
        let spread = of.stddev.map_or_else(String::new, |spread| format!(" +/- {}", text(spread)));
        Self { text: text(of.mean) + &spread, value: Some(of.mean) }
    }

    /// `cell` of the value, or "n/a" if there is none.
    pub fn of<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or_else(|| Self::word(NONE), cell)
    }
}

/// Four significant digits, or from 1000 on all digits before the point, in groups as in counts.
pub(super) fn number(value: f64) -> String {
    // 2^53: whole numbers above it have digits that were not measured.
    if (999.95..9.0e15).contains(&value) { grouped(value.round() as u64) } else { general(value, 4) }
}

/// Formats joules as J, mJ or uJ.
pub(super) fn joules(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        v if v >= 1.0 || v == 0.0 => (1.0, "J"),
        v if v >= 1e-3 => (1e3, "mJ"),
        _ => (1e6, "uJ"),
    };
    format!("{} {unit}", general(value * scale, 4))
}

/// The text that `write` writes.
pub(crate) fn written(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = write(&mut text);
    text
}

/// Width of the text for people.
pub const COLUMNS: usize = 80;

/// What is said of something, each with its name.
pub(super) type Facts = Vec<(String, Cell)>;

/// A fact in words.
pub(super) fn fact(name: &str, text: impl Into<String>) -> (String, Cell) {
    (name.to_owned(), Cell::word(text))
}

/// Writes facts below each other. A text that begins with a blank, such as a command, is not broken into lines.
pub(super) fn listed(out: &mut String, facts: &[(String, Cell)]) {
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, Cell { text, .. }) in facts {
        let name = format!("  {name:<width$}  ");
        out.push_str(&text.strip_prefix(' ').map_or_else(|| hanging(&name, text), |command| format!("{name}{command}\n")));
    }
}

/// `name` and `text`, in as many lines as 80 characters need. Those after the first have blanks instead of the name.
pub fn hanging(name: &str, text: &str) -> String {
    let width = name.chars().count();
    let line = |(place, line): (usize, &str)| format!("{}\n", format!("{:<width$}{line}", if place == 0 { name } else { "" }).trim_end());
    wrapped(text, COLUMNS.saturating_sub(width)).into_iter().enumerate().map(line).collect()
}

/// The lines of `text`, broken at blanks, of no more than `width` characters unless a word is longer.
pub fn wrapped(text: &str, width: usize) -> Vec<&str> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while rest.chars().count() > width {
        let end = rest.char_indices().nth(width + 1).map_or(rest.len(), |(end, _)| end);
        let Some(at) = rest[..end].rfind(' ').filter(|&at| at > 0).or_else(|| rest.find(' ').filter(|&at| at > 0)) else { break };
        lines.push(rest[..at].trim_end());
        rest = rest[at..].trim_start();
    }
    lines.push(rest);
    lines
}

/// Writes a table with aligned columns, the first one to the left and the others to the right.
pub(crate) fn aligned(out: &mut String, table: &Table) -> fmt::Result {
    aligned_by(out, "  ", table, &|column| column == 0)
}

/// As [`aligned_by`], but columns that do not fit 80 characters follow below, behind the first column again.
pub(crate) fn folded_by(out: &mut String, indent: &str, table: &Table, is_left: &dyn Fn(usize) -> bool) -> fmt::Result {
    let width = |column: usize| {
        let cells = table.rows.iter().map(|row| &row[column].text).chain([&table.columns[column]]);
        2 + cells.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let mut begin = 1;
    while begin < table.columns.len() {
        let (mut end, mut total) = (begin, (indent.chars().count() + width(0)).saturating_sub(2));
        while end < table.columns.len() && (end == begin || total + width(end) <= COLUMNS) {
            total += width(end);
            end += 1;
        }
        let places: Vec<usize> = std::iter::once(0).chain(begin..end).collect();
        let cells = |row: &Vec<Cell>| places.iter().map(|&place| row[place].clone()).collect();
        let columns = places.iter().map(|&place| table.columns[place].clone()).collect();
        aligned_by(out, indent, &Table { columns, rows: table.rows.iter().map(cells).collect() }, &|column| is_left(places[column]))?;
        begin = end;
    }
    Ok(())
}

/// Writes a table with aligned columns: to the left if `is_left` returns true. Every line begins with `indent`.
pub(super) fn aligned_by(out: &mut String, indent: &str, table: &Table, is_left: &dyn Fn(usize) -> bool) -> fmt::Result {
    let head: Vec<&str> = table.columns.iter().map(String::as_str).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect());
    let lines: Vec<Vec<&str>> = std::iter::once(head).chain(rows).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    for line in &lines {
        let cell = |(column, (cell, width)): (usize, (&&str, &usize))| match is_left(column) {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        };
        let cells: Vec<String> = line.iter().zip(&widths).enumerate().map(cell).collect();
        writeln!(out, "{}", format!("{indent}{}", cells.join("  ")).trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks() {
        assert_eq!(wrapped("one two three", 13), ["one two three"]);
        assert_eq!(wrapped("one two three", 12), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("unbreakable one", 4), ["unbreakable", "one"]);
        assert_eq!(wrapped("", 4), [""]);
        let text = hanging("Name", "a ".repeat(60).trim_end());
        assert!(text.lines().count() == 2 && text.lines().all(|line| line.len() <= COLUMNS), "{text}");
    }

    #[test]
    fn columns_that_do_not_fit_follow_below() {
        let cells = |texts: [&str; 4]| texts.map(|text| Cell::word(text.repeat(30))).to_vec();
        let table = Table { columns: ["a", "b", "c", "d"].map(str::to_owned).to_vec(), rows: vec![cells(["w", "x", "y", "z"])] };
        let mut text = String::new();
        folded_by(&mut text, "  ", &table, &|_| true).unwrap();
        let heads: Vec<&str> = text.lines().step_by(2).map(|line| line.split_whitespace().nth(1).unwrap()).collect();
        assert_eq!(heads, ["b", "c", "d"], "{text}");
        assert!(text.lines().all(|line| line.len() <= COLUMNS), "{text}");
        let one = Table { columns: vec!["a".into(), "b".into()], rows: vec![vec![Cell::word("1"), Cell::word("2")]] };
        let [mut folded, mut whole] = [String::new(), String::new()];
        folded_by(&mut folded, "", &one, &|_| false).unwrap();
        aligned_by(&mut whole, "", &one, &|_| false).unwrap();
        assert_eq!(folded, whole);
    }

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

    #[test]
    fn joules_have_a_fitting_unit() {
        for (value, text) in [(0.0, "0 J"), (12.5, "12.5 J"), (0.0042, "4.2 mJ"), (3.1e-5, "31 uJ")] {
            assert_eq!(joules(value), text);
        }
    }
}
