//! METIS `.graph` (METIS 5.1 manual, section 4.1.1; also the format of the tenth DIMACS challenge): a header
//! `vertices edges [fmt [ncon]]`, then one line per vertex with its neighbours, 1-based. `%` starts a comment line; an empty line is a
//! vertex without neighbours. The three digits of `fmt` say whether vertices have sizes, whether they have (`ncon`) weights, and whether
//! edges have weights. Every edge is listed at both of its ends.

use std::ops::Range;

use memchr::memchr;
use rayon::prelude::*;

use super::error::Fault;
use super::fill::{Slots, fill};
use super::lines::{after_header, check_vertices, header_fields, no_lone_return};
use super::scan::{CHUNK, Cut, Field, MARGIN, count_fields, count_lines, field, fields, is_weight, line_end, number, shown};
use super::tallies::Tallies;
use super::text::TextReader;
use socbfs::{
    graph::{Listing, Vertex},
    words::plural,
};

#[derive(Default)]
pub(super) struct MetisReader {
    header: Option<Header>,
    /// Vertex lines seen so far.
    lines: u64,
    /// Vertex lines that `take` has reported.
    taken: u64,
    edges: Vec<[Vertex; 2]>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    vertices: u64,
    edges: u64,
    /// Fields before the neighbours: size and weights of the vertex.
    skip: usize,
    edge_weights: bool,
}

impl Header {
    /// Parses a line before the rows: the header, or `None` for a comment or an empty line.
    fn parse(line: &[u8]) -> Result<Option<Self>, Box<Fault>> {
        let words = header_fields(line)?;
        let Some(&(at, first)) = words.first() else { return Ok(None) };
        if first[0] == b'%' {
            return Ok(None);
        }
        let wrong =
            || Fault::at(at, format!("{} is not a METIS header", shown(line.trim_ascii()))).cure("it is 'vertices edges [fmt [ncon]]'");
        let numbers: Vec<Field> = words.iter().map(|&(_, word)| field(word)).collect();
        let (vertices, edges, constraints) = match numbers[..] {
            [Field::Number(vertices), Field::Number(edges)] | [Field::Number(vertices), Field::Number(edges), _] => (vertices, edges, None),
            [Field::Number(vertices), Field::Number(edges), _, Field::Number(constraints)] => (vertices, edges, Some(constraints)),
            _ => return Err(wrong()),
        };
        let fmt = words.get(2).map_or(&b""[..], |&(_, word)| word);
        if fmt.len() > 3 || !fmt.iter().all(|digit| matches!(digit, b'0' | b'1')) {
            return Err(wrong());
        }
        let flag = |from_right: usize| fmt.len() > from_right && fmt[fmt.len() - 1 - from_right] == b'1';
        // Without the flag for vertex weights ncon has no meaning.
        let weights = if flag(1) { constraints.unwrap_or(1) } else { 0 };
        check_vertices(vertices)?;
        let skip = usize::try_from(weights).unwrap_or(usize::MAX).saturating_add(usize::from(flag(2)));
        Ok(Some(Self { vertices, edges, skip, edge_weights: flag(0) }))
    }
}

impl MetisReader {
    fn rows(&mut self, text: &[u8], header: Header, ahead: f64) -> Result<(), Box<Fault>> {
        let chunks = Cut::Lines.chunks(text, CHUNK);
        let counts: Vec<(u64, usize)> = chunks.par_iter().map(|chunk| count(&text[chunk.clone()])).collect();
        let room: Vec<usize> = counts.iter().map(|&(_, fields)| if header.edge_weights { fields.div_ceil(2) } else { fields }).collect();
        let mut next = self.lines;
        let mut firsts = Vec::with_capacity(chunks.len());
        for &(lines, _) in &counts {
            firsts.push(next);
            next += lines;
        }
        fill(&mut self.edges, &room, ahead, |index, out| parse(text, chunks[index].clone(), firsts[index], header, out))?;
        self.lines = next;
        Ok(())
    }
}

/// Counts the vertex lines and the fields of whole lines. Fields of comments are included.
fn count(text: &[u8]) -> (u64, usize) {
    (count_rows(text), count_fields(text))
}

/// Counts the vertex lines among whole lines.
fn count_rows(text: &[u8]) -> u64 {
    let mut lines = count_lines(text) as u64 + u64::from(text.last().is_some_and(|&last| last != b'\n'));
    if memchr(b'%', text).is_some() {
        let mut at = 0;
        while at < text.len() {
            lines -= u64::from(text[at] == b'%');
            at = line_end(text, at);
        }
    }
    lines
}

/// Parses the rows of a chunk; `vertex` is the vertex of its first row.
fn parse(text: &[u8], chunk: Range<usize>, mut vertex: u64, header: Header, out: &mut Slots<'_>) -> Result<(), Box<Fault>> {
    let plain = header.skip == 0 && !header.edge_weights;
    let mut at = chunk.start;
    while at < chunk.end {
        let end = line_end(text, at);
        if text[at] == b'%' {
            at = end;
            continue;
        }
        let source = vertex as Vertex; // below header.vertices where it is used
        if plain && vertex < header.vertices {
            // The fast path takes single blanks between neighbours; `row` parses anything else.
            while at + MARGIN <= text.len() {
                // SAFETY: MARGIN bytes follow, and `number` reads 16 of them.
                let (target, length) = unsafe { number(text, at) };
                if length == 0 || !matches!(text[at + length], b' ' | b'\n') || target.wrapping_sub(1) >= header.vertices {
                    break;
                }
                out.push([source, (target - 1) as Vertex]);
                at += length + 1;
                if at >= end || text[at] == b'\n' {
                    break;
                }
            }
        }
        if at < end {
            row(&text[at..end], vertex, header, out).map_err(|fault| fault.shift(at))?;
        }
        at = end;
        vertex += 1;
    }
    Ok(())
}

/// Parses a row, or the rest of one, and checks every field.
fn row(line: &[u8], vertex: u64, header: Header, out: &mut Slots<'_>) -> Result<(), Box<Fault>> {
    no_lone_return(line)?;
    let mut fields = fields(line);
    if vertex >= header.vertices {
        return match fields.next() {
            None => Ok(()), // empty lines at the end
            Some((at, _)) => {
                let vertices = plural(header.vertices, "vertex", "vertices");
                Err(Fault::at(at, format!("a row more than the {vertices} that the header announces")).cure("correct the header"))
            }
        };
    }
    let weight = |field: Option<(usize, &[u8])>, what: &str| match field {
        Some((_, text)) if is_weight(text) => Ok(()),
        Some((at, text)) => Err(Fault::at(at, format!("{} is not a {what}", shown(text)))),
        None => Err(Fault::at(0, format!("the {what} is missing at vertex {}", vertex + 1)).cure("is fmt in the header right?")),
    };
    for _ in 0..header.skip {
        weight(fields.next(), "size or weight")?;
    }
    while let Some((at, text)) = fields.next() {
        match field(text) {
            Field::Number(0) => return Err(Fault::at(at, "vertex 0, but this format counts vertices from 1")),
            Field::Number(target) if target <= header.vertices => out.push([vertex as Vertex, (target - 1) as Vertex]),
            Field::Number(_) | Field::Huge => {
                let reason = format!("vertex {}, but the header says that there are {}", String::from_utf8_lossy(text), header.vertices);
                return Err(Fault::at(at, reason));
            }
            Field::Negative | Field::Other => {
                return Err(Fault::at(at, format!("{} is not a vertex number", shown(text)))
                    .cure("is the file damaged, or in another format (--format)?"));
            }
        }
        if header.edge_weights {
            weight(fields.next(), "weight of an edge")?;
        }
    }
    Ok(())
}

impl TextReader for MetisReader {
    fn longest(&self) -> usize {
        1 << 30 // a vertex of 100 million neighbours
    }

    fn block(&mut self, text: &[u8], ahead: f64) -> Result<(), Box<Fault>> {
        let at = after_header(text, &mut self.header, Header::parse)?;
        let Some(header) = self.header else { return Ok(()) };
        self.rows(&text[at..], header, ahead).map_err(|fault| fault.shift(at))
    }

    fn is_past_header(&self) -> bool {
        self.header.is_some()
    }

    fn rows(&self, piece: &[u8]) -> u64 {
        Cut::Lines.chunks(piece, CHUNK).par_iter().map(|chunk| count_rows(&piece[chunk.clone()])).sum()
    }

    fn skip_rows(&mut self, rows: u64) {
        self.lines += rows;
        self.taken = self.lines;
    }

    fn take(&mut self) -> (Tallies, Vec<[Vertex; 2]>) {
        let edges = std::mem::take(&mut self.edges);
        let rows = self.lines - std::mem::replace(&mut self.taken, self.lines);
        (Tallies { entries: edges.len() as u64, rows, ..Tallies::default() }, edges)
    }

    fn conclude(&mut self, found: &Tallies) -> Result<(u64, Listing), Box<Fault>> {
        let Some(header) = self.header else {
            return Err(Fault::whole("there is no header line").cure("it is 'vertices edges [fmt [ncon]]'"));
        };
        if found.rows < header.vertices {
            return Err(Fault::whole(format!(
                "the header announces {}, but only {} {}",
                plural(header.vertices, "vertex", "vertices"),
                plural(found.rows, "row", "rows"),
                if found.rows == 1 { "follows" } else { "follow" }
            ))
            .cure("is the file cut off?"));
        }
        let found = found.entries;
        if Some(found) != header.edges.checked_mul(2) {
            return Err(Fault::whole(format!(
                "the header announces {}, so {} neighbours (each edge at both ends), but the rows hold {found}",
                plural(header.edges, "edge", "edges"),
                u128::from(header.edges) * 2
            ))
            .cure("is the file cut off, or is fmt in the header wrong?"));
        }
        Ok((header.vertices, Listing::BothDirections))
    }
}
