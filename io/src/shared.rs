//! Files that several processes read together. If a file can be cut, each process reads a part of it. Otherwise each process reads the
//! whole file piece by piece, and keeps a share of every piece.
//!
//! Text with one edge or row per line can be cut after any line end, edges of a fixed number of bytes after each edge, and the targets of
//! a `.sg` file after each target. Files that are compressed, and pipes, can't be cut. Ligra's and Rodinia's formats can't be cut either,
//! since the meaning of a number depends on how many numbers precede it.

use std::{
    cell::OnceCell,
    io::{self, BufRead, BufReader, Read},
    ops::Range,
    path::Path,
};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use super::{
    Fault, Format, Place, Progress, gap, parser,
    recognise::{Recognised, recognise},
    scan::{Cut, count_lines},
    source::{Source, for_each_block, unchanged},
    tallies::Tallies,
    text::{Stretch, Take, TextReader, edge_list, go_through},
};
use socbfs::{
    files::RegularFile,
    graph::{EdgeSlice, Listing, Stopper, Vertex},
};

/// Bytes that one task hashes.
const SUMMED: usize = 1 << 20;

/// An open file, of which only the first bytes have been read.
pub struct OpenFile(Source);

/// The recognised format, in a form that can be sent to other processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Chosen {
    format: String,
    by_structure: bool,
}

/// The counts and the listing of a graph whose edges were given away piece by piece.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Whole {
    /// Number of vertices.
    pub vertices: u64,
    /// How edges are listed.
    pub listing: Listing,
}

impl OpenFile {
    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, Box<Fault>> {
        Source::open(path, &Stopper::default()).map(Self)
    }

    /// Bytes of the file, 0 for a pipe.
    pub fn size(&self) -> u64 {
        self.0.size()
    }

    /// Recognises the format, unless `wanted` gives it.
    pub fn recognise(&self, wanted: Option<Format>) -> Result<Chosen, Box<Fault>> {
        let Recognised { format, compression, reason, by_structure } = recognise(&self.0, wanted)?;
        log::info!("{}: read as {format} ({compression}), {reason}", self.0.path.display());
        Ok(Chosen { format: format.name().to_owned(), by_structure })
    }

    /// Whether the file can be cut.
    pub fn can_be_cut(&self, chosen: &Chosen) -> bool {
        self.0.plain().is_some() && !matches!(self.format(chosen), Ok(Format::Ligra | Format::Rodinia | Format::Parboil))
    }

    fn format(&self, chosen: &Chosen) -> Result<Format, Box<Fault>> {
        Ok(chosen.format.parse().map_err(|error: super::UnknownFormat| Fault::Unsupported(error.to_string()))?)
    }

    /// Part `part` of `parts` of a file that can be cut. Reads everything before the edges.
    pub fn cut(self, chosen: &Chosen, part: usize, parts: usize) -> Result<FilePart, Box<Fault>> {
        let format = self.format(chosen)?;
        let is_plain = self.0.plain().is_some();
        let Some(file) = self.0.file.filter(|_| is_plain) else {
            return Err(Fault::Unsupported("it is compressed or a pipe, so it can't be cut into parts".into()).into());
        };
        let begun = match parser(format, chosen.by_structure) {
            Some(mut parser) => header(&mut *parser, &file).map(|body| (body, Reader::Sequence { parser, edges: Vec::new() })),
            None => gap::begin(&self.0.head, &file).map(|(header, body)| (body, Reader::Rows(header))),
        };
        let (body, reader) = unchanged(Some(&file), begun)?;
        Ok(FilePart { file, body, head: OnceCell::new(), part, parts, reader })
    }

    /// Gives all edges to `take`, piece by piece in the order of the file, and keeps none.
    pub fn in_pieces(self, chosen: &Chosen, progress: Option<&dyn Progress>, take: &mut Take<'_>) -> Result<Whole, Box<Fault>> {
        let format = self.format(chosen)?;
        let mut found = Tallies::default();
        let (vertices, listing) = match parser(format, chosen.by_structure) {
            Some(mut parser) => {
                go_through(self.0, &mut *parser, 0, progress, |parser| {
                    let (more, edges) = parser.take();
                    found.join(&more);
                    take(&edges)
                })?;
                parser.conclude(&found)?
            }
            None => gap::in_pieces(self.0, progress, &mut |edges| {
                found.entries += edges.len() as u64;
                take(edges)
            })?,
        };
        // Refuses too many vertices.
        edge_list(vertices, Vec::new(), listing)?;
        Ok(Whole { vertices, listing })
    }
}

/// Gives everything before the edges to the parser, and returns the byte at which the edges begin.
fn header(parser: &mut dyn TextReader, file: &RegularFile) -> Result<u64, Box<Fault>> {
    let mut lines = BufReader::new(file.section(0..file.size()));
    let (mut bytes, mut number, mut line) = (0, 0, Vec::new());
    while !parser.is_past_header() {
        line.clear();
        let count = lines.by_ref().take(parser.longest() as u64).read_until(b'\n', &mut line)?;
        if count == 0 {
            break;
        }
        number += 1;
        parser.block(&line, 0.0).map_err(|fault| fault.placed(|_| Place::Line(number)))?;
        bytes += count as u64;
    }
    Ok(bytes)
}

/// One of the parts that a file is cut into.
pub struct FilePart {
    file: RegularFile,
    /// Byte at which the edges begin.
    body: u64,
    /// Hash of everything before the edges, computed once: rank 0 needs the checksums of all parts, and all of them include this hash.
    /// (In a `.sg` file it covers all offsets.)
    head: OnceCell<u128>,
    part: usize,
    parts: usize,
    reader: Reader,
}

enum Reader {
    Sequence { parser: Box<dyn TextReader>, edges: Vec<[Vertex; 2]> },
    Rows(gap::Header),
}

impl FilePart {
    /// Start of part `part` in bytes and, for rows, in entries (otherwise 0).
    fn begin(&self, part: usize) -> io::Result<(u64, usize)> {
        let share = |all: u64| (u128::from(all) * part as u128 / self.parts as u128) as u64;
        let size = self.file.size();
        Ok(match &self.reader {
            Reader::Rows(header) => {
                let entry = share(header.entries);
                (self.body + 4 * entry, entry as usize)
            }
            Reader::Sequence { .. } if part == 0 => (self.body, 0),
            Reader::Sequence { parser, .. } => {
                let at = self.body + share(size - self.body);
                let begin = match parser.cut() {
                    Cut::Bytes(width) => at.next_multiple_of(width as u64).min(size),
                    // Fields are not cut (see `can_be_cut`).
                    Cut::Lines | Cut::Fields => at + BufReader::new(self.file.section(at..size)).skip_until(b'\n')? as u64,
                };
                (begin, 0)
            }
        })
    }

    fn bytes(&self, part: usize) -> io::Result<Range<u64>> {
        Ok(self.begin(part)?.0..self.begin(part + 1)?.0)
    }

    /// A hash of part `part` and of everything before the edges. Parts with the same hash hold the same bytes at the same place.
    ///
    /// # Errors
    /// [`Fault::Read`].
    pub fn checksum(&self, part: usize) -> Result<u128, Box<Fault>> {
        let head = match self.head.get() {
            Some(head) => *head,
            None => {
                let sum = self.sum(0..self.body)?;
                *self.head.get_or_init(|| sum)
            }
        };
        let bytes = [head, self.sum(self.bytes(part)?)?].map(u128::to_le_bytes).concat();
        Ok(XxHash3_128::oneshot(&bytes))
    }

    /// A hash of the bytes in `range` and of their place.
    fn sum(&self, range: Range<u64>) -> io::Result<u128> {
        let mut sums = vec![range.start.into(), range.end.into()];
        sums.extend(self.file.in_blocks(range, SUMMED, XxHash3_128::oneshot)?);
        let bytes: Vec<u8> = sums.into_iter().flat_map(u128::to_le_bytes).collect();
        Ok(XxHash3_128::oneshot(&bytes))
    }

    /// Number of METIS rows in the part, which the parts after it need to know.
    ///
    /// # Errors
    /// [`Fault::Read`].
    pub fn rows(&self) -> Result<u64, Box<Fault>> {
        let Reader::Sequence { parser, .. } = &self.reader else { return Ok(0) };
        let mut rows = 0;
        for_each_block(self.file.section(self.bytes(self.part)?), parser.cut(), parser.longest(), |text| {
            rows += parser.rows(text);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Reads the part, which follows `rows_before` rows.
    pub fn read(&mut self, rows_before: u64, progress: Option<&dyn Progress>) -> Result<Tallies, Box<Fault>> {
        let range = self.bytes(self.part)?;
        let Reader::Sequence { parser, .. } = &mut self.reader else { return Ok(Tallies::default()) };
        // Every part has parsed the header: its tallies must not be counted once per part.
        parser.take();
        parser.skip_rows(rows_before);
        let total = range.end - range.start;
        let lines =
            || self.file.in_blocks(0..range.start, SUMMED, count_lines).map_or(0, |counts| counts.into_iter().sum::<usize>() as u64);
        let stretch = Stretch { reader: self.file.section(range.clone()), expected: total, start: range.start, lines: &lines };
        let read = stretch.parse(&mut **parser, |_, done| {
            if let Some(progress) = progress {
                progress.update(done, total);
            }
            Ok(())
        });
        let (found, read_edges) = parser.take();
        unchanged(Some(&self.file), read)?;
        if let Reader::Sequence { edges, .. } = &mut self.reader {
            *edges = read_edges;
        }
        Ok(found)
    }

    /// The edges of the part; `found` are the joined tallies of all parts.
    pub fn conclude(self, found: &Tallies) -> Result<EdgeSlice, Box<Fault>> {
        let range = self.begin(self.part)?.1..self.begin(self.part + 1)?.1;
        match self.reader {
            Reader::Rows(header) => gap::slice(&self.file, header, range),
            Reader::Sequence { mut parser, edges } => {
                let (vertices, listing) = parser.conclude(found)?;
                let range = 0..edges.len();
                Ok(EdgeSlice::new(edge_list(vertices, edges, listing)?, range))
            }
        }
    }
}
