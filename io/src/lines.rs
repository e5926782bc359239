//! Text with one edge per line, parsed in parallel into one vector. The edge lines of the edge list, MatrixMarket and DIMACS formats differ
//! only in their [`Syntax`].

use std::cmp::Ordering;
use std::ops::Range;

use memchr::{memchr, memchr2};
use rayon::prelude::*;

use super::error::Fault;
use super::fill::{Slots, fill};
use super::scan::{CHUNK, Cut, Field, MARGIN, WEIGHT, columns, count_lines, field, fields, is_weight, line_end, number, shown};
use super::tallies::{Note, Tallies};
use socbfs::graph::{GraphError, MAX_VERTICES, Vertex};
use socbfs::words::plural;

/// The form of an edge line in a format.
#[derive(Debug, Clone)]
pub(super) struct Syntax {
    /// The letter that every edge line starts with.
    pub(super) tag: Option<u8>,
    /// First bytes of a comment line.
    pub(super) comments: &'static [u8],
    /// The number of the first vertex.
    pub(super) base: u32,
    /// Number of vertices that the format or the header allows.
    pub(super) vertices: u64,
    /// Allowed numbers of weights (ignored) after the two ends. `None`: anything may follow them, and commas separate fields too.
    pub(super) weights: Option<Range<usize>>,
}

/// Whether a comment without its sign is the first line of a bipartite graph of KONECT, `% bip unweighted`: the vertices of either side are
/// numbered from 1 (Kunegis: Handbook of network analysis, the KONECT project).
fn is_bipartite(comment: &[u8]) -> bool {
    let mut words = fields(comment).map(|(_, word)| word);
    words.next() == Some(b"bip") && words.next().is_some_and(|weights| weights.iter().all(u8::is_ascii_lowercase)) && words.next().is_none()
}

/// The edges read so far.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Both ends counted from 0.
    pub(super) edges: Vec<[Vertex; 2]>,
    /// One more than the largest vertex seen.
    pub(super) vertices: u64,
    /// Notes in comments.
    pub(super) note: Note,
}

/// What one task found besides edges.
#[derive(Debug, Default)]
struct Found {
    vertices: u64,
    note: Note,
}

/// The fewest bytes an edge takes: two digits, a blank and a line end.
const SHORTEST: usize = 4;

impl Records {
    /// Takes the tallies and the edges of everything read since the last call.
    pub(super) fn take(&mut self) -> (Tallies, Vec<[Vertex; 2]>) {
        let Self { edges, vertices, note } = std::mem::take(self);
        (Tallies { entries: edges.len() as u64, vertices, note, ..Tallies::default() }, edges)
    }

    /// Parses whole lines and appends their edges. Offsets in faults count from the start of `text`.
    pub(super) fn append(&mut self, text: &[u8], syntax: &Syntax, ahead: f64) -> Result<(), Box<Fault>> {
        let chunks = Cut::Lines.chunks(text, CHUNK);
        // Room for as many edges as there are lines, but not for more than the bytes can hold.
        let room: Vec<usize> = chunks
            .par_iter()
            .map(|chunk| {
                let part = &text[chunk.clone()];
                let lines = count_lines(part) + usize::from(part.last() != Some(&b'\n'));
                lines.min(part.len() / SHORTEST + 1)
            })
            .collect();
        let parts = fill(&mut self.edges, &room, ahead, |index, out| {
            let chunk = chunks[index].clone();
            match syntax.tag {
                Some(_) => parse::<true>(text, chunk, syntax, out),
                None => parse::<false>(text, chunk, syntax, out),
            }
        })?;
        for part in parts {
            self.vertices = self.vertices.max(part.vertices);
            self.note.merge(part.note);
        }
        Ok(())
    }
}

/// Parses the lines of one chunk into `out`.
fn parse<const TAGGED: bool>(text: &[u8], chunk: Range<usize>, syntax: &Syntax, out: &mut Slots<'_>) -> Result<Found, Box<Fault>> {
    let tag = syntax.tag.unwrap_or_default();
    let base = u64::from(syntax.base);
    let mut part = Found::default();
    let mut largest = 0; // largest number less base; with base 1, vertex 0 wraps around to the largest number of 64 bits
    let mut at = chunk.start;
    while at < chunk.end {
        if at + MARGIN <= text.len() {
            // SAFETY: MARGIN bytes follow.
            let next = unsafe { fast_line::<TAGGED>(text, at, tag, syntax.weights.as_ref()) };
            if let Some((source, target, next)) = next {
                let (source, target) = (source.wrapping_sub(base), target.wrapping_sub(base));
                largest = largest.max(source.max(target));
                out.push([source as Vertex, target as Vertex]);
                at = next;
                continue;
            }
        }
        let end = line_end(text, at).min(chunk.end);
        // On a fault the chunk is parsed again: the fast path may have accepted a vertex out of range on an earlier line.
        match slow_line(&text[at..end], syntax).map_err(|_| first_fault(text, chunk.clone(), syntax))? {
            Line::Edge([source, target]) => {
                largest = largest.max(source.max(target));
                out.push([source as Vertex, target as Vertex]);
            }
            Line::Note(note) => part.note.merge(note),
            Line::Nothing => {}
        }
        at = end;
    }
    if !out.is_empty() {
        if largest >= syntax.vertices {
            return Err(first_fault(text, chunk, syntax));
        }
        part.vertices = largest + 1;
    }
    Ok(part)
}

/// Parses a line of the usual form: numbers of at most 15 digits with single blanks between them, no blanks at either end. Returns both
/// numbers and the start of the next line, or `None` for any other line, which [`slow_line`] parses.
///
/// # Safety
/// [`MARGIN`] bytes follow `at`.
#[inline(always)]
unsafe fn fast_line<const TAGGED: bool>(text: &[u8], mut at: usize, tag: u8, allowed: Option<&Range<usize>>) -> Option<(u64, u64, usize)> {
    let limit = at + MARGIN - 2;
    // A tag and its blank, two numbers of at most 15 digits and their separators are 35 bytes; `number` reads 16 bytes; the loop over the
    // weights stops at `limit`.
    // SAFETY: so all positions that are read are below `at + MARGIN`.
    let byte = |at: usize| unsafe { *text.get_unchecked(at) };
    // SAFETY: as above.
    let number = |at: usize| unsafe { number(text, at) };
    if TAGGED {
        if byte(at) != tag || byte(at + 1) != b' ' {
            return None;
        }
        at += 2;
    }
    let (source, length) = number(at);
    at += length;
    let separates = |byte: u8| matches!(byte, b' ' | b'\t') || byte == b',' && allowed.is_none();
    if length == 0 || !separates(byte(at)) {
        return None;
    }
    at += if byte(at) == b',' && byte(at + 1) == b' ' { 2 } else { 1 };
    let (target, length) = number(at);
    at += length;
    if length == 0 {
        return None;
    }
    let Some(allowed) = allowed else {
        if !separates(byte(at)) && !matches!(byte(at), b'\n' | b'\r') {
            return None;
        }
        let end = at + memchr2(b'\n', b'\r', &text[at..])?;
        return match text[end..] {
            [b'\n', ..] => Some((source, target, end + 1)),
            [b'\r', b'\n', ..] => Some((source, target, end + 2)),
            _ => None,
        };
    };
    let mut weights = 0;
    loop {
        match byte(at) {
            b'\n' => return allowed.contains(&weights).then_some((source, target, at + 1)),
            b'\r' if byte(at + 1) == b'\n' => return allowed.contains(&weights).then_some((source, target, at + 2)),
            b' ' | b'\t' => {}
            _ => return None,
        }
        at += 1;
        let start = at;
        while at < limit && WEIGHT[usize::from(byte(at))] {
            at += 1;
        }
        // A weight that is more than digits is checked in full.
        if at == start || at == limit || !text[start..at].iter().all(u8::is_ascii_digit) && !is_weight(&text[start..at]) {
            return None;
        }
        weights += 1;
    }
}

/// Refuses a carriage return in the middle of a line. The text that follows it would be lost.
pub(super) fn no_lone_return(line: &[u8]) -> Result<(), Box<Fault>> {
    match memchr(b'\r', line) {
        Some(at) if !line[at..].trim_ascii().is_empty() => {
            let reason = "a carriage return without a line feed does not end a line";
            Err(Fault::at(at, reason).cure("convert the line ends: tr '\\r' '\\n' <FILE"))
        }
        _ => Ok(()),
    }
}

/// Gives the lines of a block to `parse` until it returns the `header`, and returns where the lines after it begin.
pub(super) fn after_header<H>(
    text: &[u8],
    header: &mut Option<H>,
    mut parse: impl FnMut(&[u8]) -> Result<Option<H>, Box<Fault>>,
) -> Result<usize, Box<Fault>> {
    let mut at = 0;
    while header.is_none() && at < text.len() {
        let end = line_end(text, at);
        *header = parse(&text[at..end]).map_err(|fault| fault.shift(at))?;
        at = end;
    }
    Ok(at)
}

/// The fields of a line before the edges, with their offsets in it.
pub(super) fn header_fields(line: &[u8]) -> Result<Vec<(usize, &[u8])>, Box<Fault>> {
    no_lone_return(line).map(|()| fields(line).collect())
}

/// Refuses a number of vertices that no graph can have.
pub(super) fn check_vertices(vertices: u64) -> Result<(), Box<Fault>> {
    if vertices <= MAX_VERTICES as u64 { Ok(()) } else { Err(Fault::Graph(GraphError::TooManyVertices(vertices)).into()) }
}

/// Compares the number of entries, which `noun` names, with the `count` that `line` announces.
pub(super) fn check_count(found: u64, count: u64, line: &str, noun: [&str; 2]) -> Result<(), Box<Fault>> {
    let fault = || Fault::whole(format!("{line} announces {}, but the file holds {found}", plural(count, noun[0], noun[1])));
    match found.cmp(&count) {
        Ordering::Equal => Ok(()),
        Ordering::Less => Err(fault().cure("is it cut off?")),
        Ordering::Greater => Err(fault().cure(format!("correct {line}"))),
    }
}

/// The meaning of a line.
enum Line {
    /// An edge; ends counted from 0, not checked against the number of vertices.
    Edge([u64; 2]),
    Note(Note),
    /// A comment, or only blanks.
    Nothing,
}

/// Parses any line; the fault says what is wrong with it.
#[cold]
fn slow_line(line: &[u8], syntax: &Syntax) -> Result<Line, Box<Fault>> {
    no_lone_return(line)?;
    let mut fields = columns(line, syntax.weights.is_none());
    let Some((at, first)) = fields.next() else { return Ok(Line::Nothing) };
    if first.first().is_some_and(|sign| syntax.comments.contains(sign)) {
        if is_bipartite(&line[at + 1..]) {
            let reason = "this is a bipartite graph of KONECT, in which one number stands for a vertex of either side";
            return Err(Fault::at(at, reason).cure("add the size of the left side to every number of the right side, and remove the line"));
        }
        let note = Note::parse(&line[at + 1..]).map_err(|reason| Fault::at(at, reason).cure("correct it, or remove the line"))?;
        return Ok(note.map_or(Line::Nothing, Line::Note));
    }
    let mut next = Some((at, first));
    if let Some(tag) = syntax.tag {
        if first != [tag] {
            return Err(Fault::at(at, format!("an edge line starts with '{}', this one with {}", char::from(tag), shown(first))));
        }
        next = fields.next();
    }
    let mut ends = [0; 2];
    for (end, name) in ends.iter_mut().zip(["first", "second"]) {
        let Some((at, text)) = next else {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            return Err(Fault::at(at, format!("the {name} vertex of the edge is missing in {}", shown(text)))
                .cure("is the file cut off, or in another format (--format)?"));
        };
        *end = match field(text) {
            Field::Number(0) if syntax.base == 1 => {
                return Err(Fault::at(at, "vertex 0, but this format counts vertices from 1"));
            }
            Field::Number(value) => value - u64::from(syntax.base),
            Field::Huge => u64::MAX,
            Field::Negative => {
                return Err(Fault::at(at, format!("{} is negative; vertices are counted from {}", shown(text), syntax.base)));
            }
            Field::Other => {
                let fault = Fault::at(at, format!("{} is not a vertex number", shown(text)));
                return Err(if memchr(b',', text).is_some() {
                    fault.cure("fields are separated by blanks or tabs, not by commas")
                } else {
                    fault.cure("is the file damaged, or in another format (--format)?")
                });
            }
        };
        next = fields.next();
    }
    if let Some(&end) = ends.iter().find(|&&end| end >= syntax.vertices) {
        return Err(out_of_range(at, end, syntax));
    }
    let Some(allowed) = &syntax.weights else { return Ok(Line::Edge(ends)) };
    let mut weights = 0;
    while let Some((at, text)) = next {
        weights += 1;
        if weights >= allowed.end {
            return Err(Fault::at(at, format!("unexpected {} after the edge", shown(text))));
        }
        if !is_weight(text) {
            return Err(Fault::at(at, format!("{} is not a weight", shown(text)))
                .cure("only numbers may follow the two vertices; is the file in another format (--format)?"));
        }
        next = fields.next();
    }
    if weights < allowed.start {
        let reason = match (allowed.start - weights, allowed.start) {
            (_, 1) => "the value of the edge is missing".to_owned(),
            (1, of) => format!("1 of the {of} values of the edge is missing"),
            (missing, of) => format!("{missing} of the {of} values of the edge are missing"),
        };
        return Err(Fault::at(at, reason).cure("is the file cut off?"));
    }
    Ok(Line::Edge(ends))
}

/// The fault of a vertex out of range.
fn out_of_range(at: usize, vertex: u64, syntax: &Syntax) -> Box<Fault> {
    let base = u64::from(syntax.base);
    let name = if vertex == u64::MAX { "a vertex beyond 64 bits".to_owned() } else { format!("vertex {}", vertex + base) };
    if syntax.vertices >= MAX_VERTICES as u64 {
        Fault::at(at, format!("{name}, but socbfs numbers vertices with 32 bits and takes at most {}", MAX_VERTICES as u64 - 1 + base))
            .cure("renumber the vertices without gaps")
    } else {
        let last = (syntax.vertices + base).saturating_sub(1);
        Fault::at(at, format!("{name}, but the header says that vertices go from {base} to {last}"))
    }
}

/// The first fault of a chunk. The fast path only finds that some vertex is out of range, not on which line.
#[cold]
fn first_fault(text: &[u8], chunk: Range<usize>, syntax: &Syntax) -> Box<Fault> {
    let mut at = chunk.start;
    while at < chunk.end {
        let end = line_end(text, at).min(chunk.end);
        if let Err(fault) = slow_line(&text[at..end], syntax) {
            return fault.shift(at);
        }
        at = end;
    }
    Fault::whole("a vertex is out of range")
}
