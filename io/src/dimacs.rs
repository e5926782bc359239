//! DIMACS `.gr`, 1-based, `c` starts a comment. Two kinds: the shortest-path challenge's `p sp vertices arcs` with arcs
//! `a source target weight` (<http://www.diag.uniroma1.it/challenge9/format.shtml>; its road files list both directions, but the
//! format does not promise it), and PACE's `p tw vertices edges` with lines `u v`, every undirected edge once.

use super::error::Fault;
use super::lines::{Records, Syntax, after_header, check_count, check_vertices, header_fields};
use super::scan::{Field, field, shown};
use super::tallies::Tallies;
use super::text::TextReader;
use socbfs::graph::{Listing, Vertex};

#[derive(Default)]
pub(super) struct DimacsReader {
    header: Option<Header>,
    records: Records,
}

struct Header {
    syntax: Syntax,
    listing: Listing,
    count: u64,
}

/// Parses a line before the arcs: the header, or `None` for a comment or an empty line.
fn header(line: &[u8]) -> Result<Option<Header>, Box<Fault>> {
    let words = header_fields(line)?;
    let Some(&(at, first)) = words.first() else { return Ok(None) };
    if first[0] == b'c' {
        return Ok(None);
    }
    let wanted = "it is 'p sp vertices arcs' or 'p tw vertices edges'";
    if first != b"p" || words.len() != 4 {
        let reason = format!("{} is found where the header of a DIMACS .gr file is expected", shown(line.trim_ascii()));
        let other = if line.contains(&0) { "; Galois' binary .gr is another format, which socbfs does not read" } else { "" };
        return Err(Fault::at(at, reason).cure(format!("{wanted}{other}")));
    }
    let (tag, weights, listing) = match words[1].1 {
        b"sp" => (Some(b'a'), 0..2, Listing::Unknown),
        b"tw" => (None, 0..1, Listing::Symmetric),
        kind => return Err(Fault::at(words[1].0, format!("a DIMACS file of kind {} is not read", shown(kind))).cure(wanted)),
    };
    let (Field::Number(vertices), Field::Number(count)) = (field(words[2].1), field(words[3].1)) else {
        return Err(Fault::at(words[2].0, format!("{} does not have two numbers", shown(line.trim_ascii()))).cure(wanted));
    };
    check_vertices(vertices)?;
    Ok(Some(Header { syntax: Syntax { tag, comments: b"c", base: 1, vertices, weights: Some(weights) }, listing, count }))
}

impl TextReader for DimacsReader {
    fn block(&mut self, text: &[u8], ahead: f64) -> Result<(), Box<Fault>> {
        let at = after_header(text, &mut self.header, header)?;
        let Some(header) = &self.header else { return Ok(()) };
        self.records.append(&text[at..], &header.syntax, ahead).map_err(|fault| fault.shift(at))
    }

    fn is_past_header(&self) -> bool {
        self.header.is_some()
    }

    fn take(&mut self) -> (Tallies, Vec<[Vertex; 2]>) {
        self.records.take()
    }

    fn conclude(&mut self, found: &Tallies) -> Result<(u64, Listing), Box<Fault>> {
        let Some(Header { syntax, listing, count }) = &self.header else {
            return Err(Fault::whole("there is no header line").cure("it is 'p sp vertices arcs' or 'p tw vertices edges'"));
        };
        check_count(found.entries, *count, "the header", ["edge", "edges"])?;
        Ok((syntax.vertices, *listing))
    }
}
