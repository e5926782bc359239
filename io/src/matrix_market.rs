//! MatrixMarket coordinate files (<https://math.nist.gov/MatrixMarket/formats.html>): banner, comments, a size line, and one
//! entry `row column [value [value]]` per line, 1-based. A symmetric (or skew-symmetric, or hermitian) matrix lists one
//! triangle, so every edge once for both directions.

use super::error::Fault;
use super::lines::{Syntax, check_vertices, header_fields};
use super::scan::{Field, field, fields, shown};
use super::tallies::Note;
use super::text::{Header, HeaderReader, TextReader};
use socbfs::{graph::Listing, words::plural};

/// Whether `word` is the one that every file starts with, `%%MatrixMarket`. Files of Network Repository have one sign.
pub(super) fn is_banner(word: &[u8]) -> bool {
    let name = word.strip_prefix(b"%%").or_else(|| word.strip_prefix(b"%"));
    name.is_some_and(|name| name.eq_ignore_ascii_case(b"MatrixMarket"))
}

pub(super) fn reader() -> impl TextReader {
    let mut banner = None;
    let missing = ["the file ends before its size line", "is it cut off?"];
    HeaderReader::new(move |line: &[u8]| header(line, &mut banner), missing, ("the size line", ["entry", "entries"]))
}

/// What the first line says.
struct Banner {
    listing: Listing,
    /// Number of values per entry.
    values: usize,
}

/// Parses the first line, or an empty line before it.
fn banner(line: &[u8]) -> Result<Option<Banner>, Box<Fault>> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let words: Vec<String> = fields(line).map(|(_, word)| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let &[banner, object, layout, value, symmetry] = words.as_slice() else {
        return Err(Fault::at(0, format!("{} is not a MatrixMarket banner", shown(line.trim_ascii_end())))
            .cure("the first line is '%%MatrixMarket matrix coordinate pattern general' or the like"));
    };
    if !is_banner(banner.as_bytes()) {
        return Err(Fault::at(0, format!("{} is not '%%MatrixMarket'", shown(banner.as_bytes()))));
    }
    if object != "matrix" || layout != "coordinate" {
        let reason = format!(
            "a MatrixMarket {object} in {layout} layout is not a sparse matrix, so it holds no graph to search; only 'matrix coordinate' is read"
        );
        return Err(Fault::Unsupported(reason).into());
    }
    let values = match value {
        "pattern" => 0,
        "real" | "double" | "integer" | "unsigned-integer" => 1,
        "complex" => 2,
        _ => {
            return Err(Fault::at(0, format!("unknown kind of values {}", shown(value.as_bytes())))
                .cure("it is one of pattern, real, integer, unsigned-integer, complex"));
        }
    };
    let listing = match symmetry {
        "general" => Listing::Unknown,
        "symmetric" | "skew-symmetric" | "hermitian" => Listing::Symmetric,
        _ => {
            return Err(Fault::at(0, format!("unknown symmetry {}", shown(symmetry.as_bytes())))
                .cure("it is one of general, symmetric, skew-symmetric, hermitian"));
        }
    };
    Ok(Some(Banner { listing, values }))
}

/// Parses a line before the entries: the banner, a comment, an empty line, or the size line.
fn header(line: &[u8], begun: &mut Option<Banner>) -> Result<Option<Header>, Box<Fault>> {
    let Some(Banner { listing, values }) = begun else {
        *begun = banner(line)?;
        return Ok(None);
    };
    let words = header_fields(line)?;
    let Some(&(at, first)) = words.first() else { return Ok(None) };
    if first[0] == b'%' {
        let note = Note::parse(&line[at + 1..]).map_err(|reason| Fault::at(at, reason).cure("correct it, or remove the line"))?;
        *listing = note.and_then(|note| note.listing).unwrap_or(*listing);
        return Ok(None);
    }
    let numbers: Vec<Field> = words.iter().map(|&(_, word)| field(word)).collect();
    let &[Field::Number(rows), Field::Number(columns), Field::Number(count)] = numbers.as_slice() else {
        return Err(Fault::at(at, format!("{} is not a size line", shown(line.trim_ascii()))).cure("it is 'rows columns entries'"));
    };
    if rows != columns {
        let (rows, columns) = (plural(rows, "row", "rows"), plural(columns, "column", "columns"));
        return Err(Fault::at(at, format!("the matrix has {rows} and {columns}, but a graph is a square matrix")));
    }
    check_vertices(rows)?;
    let syntax = Syntax { tag: None, comments: b"%", base: 1, vertices: rows, weights: Some(*values..*values + 1) };
    Ok(Some(Header { syntax, listing: *listing, count }))
}
