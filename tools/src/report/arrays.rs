//! Files of parents and levels: one number for every vertex, -1 if it was not reached.
//!
//! `.npy` is NumPy's format (one dimension, written with little-endian 64-bit integers). `.csv` has a header line and rows `vertex,value`.
//! It is read without the header too, with rows in any order, and a vertex without a row was not reached. Its last line must end like the
//! others, since a file that is cut off within a number would otherwise pass as another tree. `.txt` has one value per line; line n,
//! counted from 0, is vertex n.

use std::{
    fmt::Display,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    path::Path,
};

use super::npy::{self, Head};
use socbfs::{
    NONE, Vertex,
    words::{numbered, plural},
};

/// The format of an array in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayFormat {
    /// NumPy.
    Npy,
    /// Rows `vertex,value` after a header line.
    Csv,
    /// One value per line.
    Text,
}

/// What the values are, which is the header of the second column in CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Parents.
    Parent,
    /// Levels.
    Level,
    /// Sources.
    Source,
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::Parent => "parent",
            Self::Level => "level",
            Self::Source => "source",
        }
    }
}

/// Why an array can't be read: with the file, the line if there is one, and what would be right.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ArrayError(String);

/// Advice for an error of the system.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; check the spelling, and that the folder exists",
        io::ErrorKind::PermissionDenied => "; change its permissions (`ls -l` shows them), or run as its owner",
        io::ErrorKind::IsADirectory => "; name a file in it",
        _ => "",
    }
}

impl ArrayFormat {
    /// The format that the extension of `path` names.
    ///
    /// # Errors
    /// [`ArrayError`] if it names none.
    pub fn of_path(path: &Path) -> Result<Self, ArrayError> {
        match path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("npy") => Ok(Self::Npy),
            Some("csv") => Ok(Self::Csv),
            Some("txt") => Ok(Self::Text),
            _ => {
                Err(ArrayError(format!("{}: the file name must end with .npy, .csv or .txt, which determines the format", path.display())))
            }
        }
    }
}

/// Writes one number for each vertex, [`NONE`] as -1.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_array(out: &mut dyn Write, format: ArrayFormat, column: Column, values: &[u32]) -> io::Result<()> {
    match format {
        ArrayFormat::Npy => out.write_all(&npy::head("<i8", &[values.len() as u64]))?,
        ArrayFormat::Csv => writeln!(out, "vertex,{}", column.name())?,
        ArrayFormat::Text => {}
    }
    for (vertex, &value) in values.iter().enumerate() {
        let value = if value == NONE { -1 } else { i64::from(value) };
        match format {
            ArrayFormat::Npy => out.write_all(&value.to_le_bytes())?,
            ArrayFormat::Csv => writeln!(out, "{vertex},{value}")?,
            ArrayFormat::Text => writeln!(out, "{value}")?,
        }
    }
    Ok(())
}

/// Reads the parents of `vertices` vertices, one number for each. -1 and the largest number of an unsigned type mean "not reached" and
/// become [`NONE`]. A vertex without a row in CSV was not reached.
///
/// # Errors
/// [`ArrayError`].
pub fn read_array(path: &Path, vertices: usize) -> Result<Vec<Vertex>, ArrayError> {
    let format = ArrayFormat::of_path(path)?;
    let name = path.display().to_string();
    let file = File::open(path).map_err(|error| ArrayError(format!("{name}: can't open it: {error}{}", advice(&error))))?;
    let mut source = Source { name, reader: BufReader::new(file), line: 0, text: String::new() };
    match format {
        ArrayFormat::Npy => source.npy(vertices),
        ArrayFormat::Csv => source.csv(vertices),
        ArrayFormat::Text => source.text(vertices),
    }
}

struct Source<R> {
    name: String,
    reader: R,
    line: usize,
    text: String,
}

/// What some editors write before the first character of a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const MARK: &str = "the file starts with a UTF-8 byte-order mark; save it without one, or remove it: tail -c +4 FILE >NEW";

/// Longest line in bytes: more than two 20-digit numbers and some space. A file without line feeds must not fill the memory.
const LONGEST_LINE: u64 = 256;

impl<R: BufRead> Source<R> {
    fn bad(&self, reason: impl Display) -> ArrayError {
        ArrayError(format!("{}: {reason}", self.name))
    }

    fn bad_line(&self, reason: impl Display) -> ArrayError {
        ArrayError(format!("{}:{}: {reason}", self.name, self.line))
    }

    fn io(&self, error: &io::Error) -> ArrayError {
        self.bad(format_args!("can't read it: {error}{}", advice(error)))
    }

    fn empty(&self) -> ArrayError {
        self.bad("the file is empty; was it cut off while it was written?")
    }

    fn wrong_length(&self, found: &str, vertices: usize) -> ArrayError {
        let needed = plural(vertices as u64, "vertex", "vertices");
        ArrayError(format!("{} has {found}, but the graph has {needed} (one value is needed for each)", self.name))
    }

    /// Reads the next line into `self.text`; false at the end of the file.
    fn next_line(&mut self) -> Result<bool, ArrayError> {
        self.line += 1;
        self.text.clear();
        let mut bytes = Vec::new();
        let count = self.reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut bytes).map_err(|error| self.io(&error))?;
        if count as u64 == LONGEST_LINE && bytes.last() != Some(&b'\n') {
            return Err(self.bad_line("the line is too long for a number"));
        }
        if self.line == 1 && bytes.starts_with(BYTE_ORDER_MARK) {
            return Err(self.bad_line(MARK));
        }
        self.text = String::from_utf8(bytes).map_err(|_| self.bad_line("not text"))?;
        Ok(count > 0)
    }

    /// Refuses a line without a line end: the file may have been cut off inside its last number, and what is left is a number too.
    fn refuse_cut_line(&self) -> Result<(), ArrayError> {
        if self.text.ends_with('\n') {
            return Ok(());
        }
        Err(self.bad_line("the last line has no line end: is the file cut off? (if it is whole, add a line end)"))
    }

    fn number(&self, text: &str) -> Result<i64, ArrayError> {
        text.trim().parse().map_err(|_| self.bad_line(format!("{:?} is not a whole number", text.trim())))
    }

    fn value(&self, text: &str) -> Result<Vertex, ArrayError> {
        narrow(self.number(text)?).map_err(|reason| self.bad_line(reason))
    }

    fn text(&mut self, vertices: usize) -> Result<Vec<Vertex>, ArrayError> {
        let mut values = Vec::with_capacity(vertices);
        while self.next_line()? {
            if values.len() == vertices {
                return Err(self.wrong_length(&format!("at least {}", values_of(vertices as u64 + 1)), vertices));
            }
            self.refuse_cut_line()?;
            values.push(self.value(&self.text)?);
        }
        match values.len() {
            found if found == vertices => Ok(values),
            0 => Err(self.empty()),
            found => Err(self.wrong_length(&values_of(found as u64), vertices)),
        }
    }

    fn csv(&mut self, vertices: usize) -> Result<Vec<Vertex>, ArrayError> {
        let mut values = vec![NONE; vertices];
        let mut seen = vec![false; vertices];
        while self.next_line()? {
            self.refuse_cut_line()?;
            let Some((vertex, value)) = self.text.split_once(',') else {
                return Err(self.bad_line("a row is vertex,value"));
            };
            if self.line == 1 && vertex.trim().parse::<i64>().is_err() {
                self.header(vertex, value)?;
                continue;
            }
            let value = self.value(value)?;
            let number = self.number(vertex)?;
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            match seen.get_mut(index) {
                None => {
                    return Err(self.bad_line(format!("vertex {number} is not in the graph: it has {}", numbered(vertices as u64))));
                }
                Some(true) => return Err(self.bad_line(format!("vertex {index} already has a row"))),
                Some(seen) => *seen = true,
            }
            values[index] = value;
        }
        // Also the line after the last one has been counted.
        if self.line == 1 { Err(self.empty()) } else { Ok(values) }
    }

    /// Checks the header line of CSV.
    fn header(&self, vertex: &str, value: &str) -> Result<(), ArrayError> {
        let is = |text: &str, name: &str| text.trim().eq_ignore_ascii_case(name);
        if is(vertex, "vertex") && is(value, Column::Parent.name()) {
            return Ok(());
        }
        if is(vertex, "vertex") && is(value, Column::Level.name()) {
            return Err(self.bad_line("these are levels, but parents are needed; `socbfs run --parents FILE` writes them"));
        }
        let shown = self.text.trim();
        Err(self.bad_line(format!("{shown:?} is neither the header \"vertex,parent\" nor a row of two numbers; correct or remove it")))
    }

    fn npy(&mut self, vertices: usize) -> Result<Vec<Vertex>, ArrayError> {
        let is_empty = self.reader.fill_buf().map(<[u8]>::is_empty);
        if is_empty.map_err(|error| self.io(&error))? {
            return Err(self.empty());
        }
        let head = Head::read(&mut self.reader).map_err(|error| self.ended(&error))?.map_err(|reason| self.bad(reason))?;
        let descr = &*head.descr;
        let &[order @ (b'<' | b'>'), kind @ (b'i' | b'u'), size @ (b'4' | b'8')] = descr.as_bytes() else {
            let reason = format!("its numbers are {descr:?}; they must be int32, int64, uint32 or uint64 (use .astype(\"int64\"))");
            return Err(self.bad(reason));
        };
        let found = match head.dimensions().as_deref() {
            Some(&[found]) => found,
            _ => return Err(self.bad(format!("its shape is {}; it must have one dimension (use .ravel())", head.shape))),
        };
        if found != vertices as u64 {
            return Err(self.wrong_length(&values_of(found), vertices));
        }
        let mut values = Vec::with_capacity(vertices);
        let (mut bytes, size) = ([0; 8], usize::from(size - b'0'));
        for index in 0..vertices {
            self.reader.read_exact(&mut bytes[..size]).map_err(|error| self.ended(&error))?;
            if order == b'>' {
                bytes[..size].reverse();
            }
            let value = u64::from_le_bytes(bytes);
            let value = match (kind, size) {
                (b'i', 4) => i64::from(value as i32),
                // The largest value also means "not reached". Any other value that does not fit is too large, and stays so.
                (b'u', 8) if value != u64::MAX => i64::try_from(value).unwrap_or(i64::MAX),
                _ => value as i64,
            };
            values.push(narrow(value).map_err(|reason| self.bad(format!("entry {index}: {reason}")))?);
        }
        Ok(values)
    }

    fn ended(&self, error: &io::Error) -> ArrayError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.bad("the file ends before its array does; is it cut off?"),
            _ => self.io(error),
        }
    }
}

/// Converts a number to a vertex or level: -1 and 2^32 - 1 become [`NONE`]. The error says why it is neither.
fn narrow(value: i64) -> Result<u32, String> {
    match value {
        -1 => Ok(NONE),
        ..-1 => Err(format!("{value} is neither a vertex nor -1, which means that it was not reached")),
        _ => u32::try_from(value).map_err(|_| format!("{value} is too large for a vertex or a level")),
    }
}

fn values_of(count: u64) -> String {
    plural(count, "value", "values")
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [u32; 5] = [0, 0, NONE, 1, 4_000_000_000];

    fn read(name: &str, bytes: &[u8], vertices: usize) -> Result<Vec<u32>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read_array(&path, vertices).map_err(|error| error.to_string().replace(&format!("{}/", folder.path().display()), ""))
    }

    fn written(format: ArrayFormat, values: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_array(&mut bytes, format, Column::Parent, values).unwrap();
        bytes
    }

    #[test]
    fn every_format_is_read_back() {
        for (name, format) in [("a.npy", ArrayFormat::Npy), ("a.csv", ArrayFormat::Csv), ("a.TXT", ArrayFormat::Text)] {
            for values in [&VALUES[..], &[]] {
                assert_eq!(read(name, &written(format, values), values.len()).unwrap(), values, "{name}");
            }
        }
    }

    #[test]
    fn written_arrays_have_the_documented_form() {
        assert_eq!(written(ArrayFormat::Text, &VALUES[1..4]), b"0\n-1\n1\n");
        assert_eq!(written(ArrayFormat::Csv, &VALUES[1..3]), b"vertex,parent\n0,0\n1,-1\n");
        let npy = written(ArrayFormat::Npy, &VALUES);
        assert_eq!(npy.len(), 128 + 5 * 8);
        assert!(npy.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<i8', 'fortran_order': False, 'shape': (5,), }"));
        assert_eq!(npy[127], b'\n');
    }

    #[test]
    fn other_numpy_types_are_read() {
        let with = |descr: &str, data: &[u8]| {
            let mut bytes = written(ArrayFormat::Npy, &[0; 2]);
            bytes.truncate(128);
            let head = String::from_utf8_lossy(&bytes[10..]).replace("<i8", descr);
            bytes.truncate(10);
            bytes.extend(head.bytes());
            bytes.extend(data);
            read("x.npy", &bytes, 2)
        };
        assert_eq!(with("<i4", &[7, 0, 0, 0, 255, 255, 255, 255]).unwrap(), [7, NONE]);
        assert_eq!(with("<u4", &[7, 0, 0, 0, 255, 255, 255, 255]).unwrap(), [7, NONE]);
        assert_eq!(with(">i4", &[0, 0, 1, 0, 255, 255, 255, 255]).unwrap(), [256, NONE]);
        assert_eq!(with("<u8", &[7, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]).unwrap(), [7, NONE]);
        // A number that needs all 64 bits is not one of the negative numbers.
        assert!(with("<u8", &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128]).unwrap_err().contains("entry 1"));
        assert!(with("<f8", &[0; 16]).unwrap_err().contains("int64"));
        assert!(with("<i8", &[0; 15]).unwrap_err().contains("ends before"));
        assert!(with("<i8", &[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap_err().contains("entry 0"));
    }

    #[test]
    fn csv_rows_may_come_in_any_order() {
        assert_eq!(read("a.csv", b"2,1\n0,0\n", 3).unwrap(), [0, NONE, 1]);
        assert_eq!(read("a.csv", b"vertex,parent\r\n1,0\r\n", 2).unwrap(), [NONE, 0]);
        assert_eq!(read("a.csv", b"Vertex, Parent\n1,0\n", 2).unwrap(), [NONE, 0]);
    }

    #[test]
    fn errors_name_file_and_line() {
        for (name, text, error) in [
            ("a.txt", "0\nx\n", "a.txt:2: \"x\" is not a whole number"),
            ("a.txt", "0\n", "a.txt has 1 value, but the graph has 2 vertices (one value is needed for each)"),
            ("a.txt", "0\n0\n0\n", "a.txt has at least 3 values, but the graph has 2 vertices (one value is needed for each)"),
            ("a.txt", "0\n99999999999\n", "a.txt:2: 99999999999 is too large for a vertex or a level"),
            ("a.csv", "vertex,parent\n0,0\n0,1\n", "a.csv:3: vertex 0 already has a row"),
            ("a.csv", "vertex,parent\n2,0\n", "a.csv:2: vertex 2 is not in the graph: it has 2 vertices (0 to 1)"),
            ("a.csv", "0 1\n", "a.csv:1: a row is vertex,value"),
            ("a.npy", "0\n0\n", "a.npy: the file ends before its array does; is it cut off?"),
            ("a.npy", "0123456789", "a.npy: not a NumPy file (it does not start as one)"),
            ("a.dat", "", "a.dat: the file name must end with .npy, .csv or .txt, which determines the format"),
        ] {
            assert_eq!(read(name, text.as_bytes(), 2).unwrap_err(), error);
        }
        let empty = "the file is empty; was it cut off while it was written?";
        for name in ["a.txt", "a.csv", "a.npy"] {
            assert_eq!(read(name, b"", 2).unwrap_err(), format!("{name}: {empty}"));
            let folder = tempfile::tempdir().unwrap();
            let error = read_array(&folder.path().join(name), 2).unwrap_err().to_string();
            assert!(error.contains(&format!("{name}: can't open it: ")) && error.contains("; check the spelling"), "{error}");
        }
        for name in ["a.txt", "a.csv"] {
            let error = read(name, b"\xef\xbb\xbf0,0\n1,0\n", 2).unwrap_err();
            assert!(error.starts_with(&format!("{name}:1: the file starts with a UTF-8 byte-order mark; save it")), "{error}");
        }
        assert!(read("a.txt", &[b'1'; 10_000], 2).unwrap_err().contains("too long"));
        assert!(read("a.txt", b"\xff\n", 1).unwrap_err().contains("not text"));
    }

    #[test]
    fn a_csv_that_is_cut_off_or_holds_something_else_is_refused() {
        let whole = written(ArrayFormat::Csv, &[0, 0, 1, 12, 12]);
        for end in 0..whole.len() {
            let result = read("a.csv", &whole[..end], 5);
            // Rows may be missing; a line may not.
            assert_eq!(result.is_ok(), whole[..end].ends_with(b"\n"), "cut to {end}: {result:?}");
        }
        assert!(read("a.csv", &whole[..whole.len() - 2], 5).unwrap_err().starts_with("a.csv:6: the last line has no line end"));
        for (header, reason) in [
            ("vertex,level", "these are levels, but parents are needed"),
            ("foo,bar", "\"foo,bar\" is neither the header"),
            ("vertex,parent,level", "\"vertex,parent,level\" is neither the header"),
            ("parent,vertex", "\"parent,vertex\" is neither the header"),
            ("1.0,0", "\"1.0,0\" is neither the header"),
        ] {
            let error = read("a.csv", format!("{header}\n0,0\n1,0\n").as_bytes(), 2).unwrap_err();
            assert!(error.starts_with(&format!("a.csv:1: {reason}")), "{error}");
        }
    }

    #[test]
    fn a_text_that_is_cut_off_is_refused_also_within_its_last_number() {
        let whole = written(ArrayFormat::Text, &[0, 0, 1, 12, 12]);
        for end in 0..whole.len() {
            assert!(read("a.txt", &whole[..end], 5).is_err(), "cut to {end}");
        }
        assert!(read("a.txt", &whole[..whole.len() - 2], 5).unwrap_err().starts_with("a.txt:5: the last line has no line end"));
    }

    #[test]
    fn only_minus_one_is_a_vertex_that_was_not_reached() {
        let reason = "-7 is neither a vertex nor -1, which means that it was not reached";
        assert_eq!(read("a.txt", b"0\n-7\n", 2).unwrap_err(), format!("a.txt:2: {reason}"));
        assert_eq!(read("a.csv", b"0,0\n1,-7\n", 2).unwrap_err(), format!("a.csv:2: {reason}"));
        assert_eq!(read("a.csv", b"-7,0\n", 1).unwrap_err(), "a.csv:1: vertex -7 is not in the graph: it has 1 vertex (0)");
        let mut npy = npy::head("<i8", &[2]);
        npy.extend([0_i64, -7].iter().flat_map(|value| value.to_le_bytes()));
        assert_eq!(read("a.npy", &npy, 2).unwrap_err(), format!("a.npy: entry 1: {reason}"));
    }

    #[test]
    fn false_headers_are_refused_before_memory_is_allocated() {
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend(u32::MAX.to_le_bytes());
        assert!(read("a.npy", &bytes, 2).unwrap_err().contains("claims 4294967295 bytes"));
        let mut bytes = npy::head("<i8", &[1 << 40]);
        bytes.extend([0; 16]);
        assert!(read("a.npy", &bytes, 2).unwrap_err().contains("1099511627776 values"));
    }
}
