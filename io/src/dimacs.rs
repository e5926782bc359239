//! DIMACS `.gr`, 1-based, `c` starts a comment. Two kinds: the shortest-path challenge's `p sp vertices arcs` with arcs
//! `a source target weight` (<http://www.diag.uniroma1.it/challenge9/format.shtml>; its road files list both directions, but the
//! format does not promise it), and PACE's `p tw vertices edges` with lines `u v`, every undirected edge once.

use super::error::Fault;
use super::lines::{Syntax, check_vertices, header_fields};
use super::scan::{Field, field, shown};
use super::text::{Header, HeaderReader, TextReader};
use socbfs::graph::Listing;

const WANTED: &str = "it is 'p sp vertices arcs' or 'p tw vertices edges'";

pub(super) fn reader() -> impl TextReader {
    HeaderReader::new(header, ["there is no header line", WANTED], ("the header", ["edge", "edges"]))
}

/// Parses a line before the arcs: the header, or `None` for a comment or an empty line.
fn header(line: &[u8]) -> Result<Option<Header>, Box<Fault>> {
    let words = header_fields(line)?;
    let Some(&(at, first)) = words.first() else { return Ok(None) };
    if first[0] == b'c' {
        return Ok(None);
    }
    if first != b"p" || words.len() != 4 {
        let reason = format!("{} is found where the header of a DIMACS .gr file is expected", shown(line.trim_ascii()));
        let other = if line.contains(&0) { "; Galois' binary .gr is another format, which socbfs does not read" } else { "" };
        return Err(Fault::at(at, reason).cure(format!("{WANTED}{other}")));
    }
    let (tag, weights, listing) = match words[1].1 {
        b"sp" => (Some(b'a'), 0..2, Listing::Unknown),
        b"tw" => (None, 0..1, Listing::Symmetric),
        kind => return Err(Fault::at(words[1].0, format!("a DIMACS file of kind {} is not read", shown(kind))).cure(WANTED)),
    };
    let (Field::Number(vertices), Field::Number(count)) = (field(words[2].1), field(words[3].1)) else {
        return Err(Fault::at(words[2].0, format!("{} does not have two numbers", shown(line.trim_ascii()))).cure(WANTED));
    };
    check_vertices(vertices)?;
    Ok(Some(Header { syntax: Syntax { tag, comments: b"c", base: 1, vertices, weights: Some(weights) }, listing, count }))
}
