//! Files that several processes read together. If a file can be cut, each process reads a part of it. Otherwise each process reads the
//! whole file piece by piece, and keeps a share of every piece.
//!
//! Text with one edge or row per line can be cut after any line end, edges of a fixed number of bytes after each edge, and the targets of
//! a `.sg` file after each target. Files that are compressed or not mapped can't be cut. Ligra's and Rodinia's formats can't be cut either,
//! since the meaning of a number depends on how many numbers precede it.

use std::{
    cell::OnceCell,
    ops::Range,
    path::{Path, PathBuf},
};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use super::{
    Compression, Format, InputError, Progress, gap, parser,
    recognise::{Recognised, recognise},
    source::{Content, Source},
    text::{Take, Tallies, TextReader, Tick, concluded, edge_list, go_through, mapped_block},
};
use crate::{
    files::MappedFile,
    graph::{EdgeSlice, Listing, Stopper, Vertex},
};

/// Bytes of a block of a file that is read piece by piece.
const BLOCK: usize = 8 << 20;

/// Bytes that one task hashes.
const SUMMED: usize = 1 << 20;

/// An open file, of which only the first bytes have been read.
pub(crate) struct OpenFile(Source);

/// The recognised format, in a form that can be sent to other processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Chosen {
    format: String,
    by_structure: bool,
}

/// The counts and the listing of a graph whose edges were given away piece by piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Whole {
    pub(crate) vertices: u64,
    pub(crate) entries: u64,
    pub(crate) listing: Listing,
}

impl OpenFile {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Result<Self, InputError> {
        Source::open(path, &Stopper::default()).map(Self)
    }

    /// Path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Bytes of the file, 0 for a pipe.
    pub(crate) fn size(&self) -> u64 {
        self.0.size
    }

    /// Recognises the format, unless `wanted` gives it.
    pub(crate) fn recognise(&self, wanted: Option<Format>) -> Result<Chosen, InputError> {
        let Recognised { format, compression, reason, by_structure } = recognise(&self.0, wanted)?;
        log::info!("{}: read as {format} ({compression}), {reason}", self.0.path.display());
        Ok(Chosen { format: format.name().to_owned(), by_structure })
    }

    /// Whether this process can cut the file. Another process may be unable to, because it can't map the file.
    pub(crate) fn can_be_cut(&self, chosen: &Chosen) -> bool {
        let mapped = self.0.compression == Compression::None && matches!(self.0.content, Content::Mapped(_));
        mapped && !matches!(self.format(chosen), Ok(Format::Ligra | Format::Rodinia | Format::Parboil))
    }

    fn format(&self, chosen: &Chosen) -> Result<Format, InputError> {
        let unknown = |error: super::UnknownFormat| InputError::Unsupported { path: self.0.path.clone(), reason: error.to_string() };
        chosen.format.parse().map_err(unknown)
    }

    /// Part `part` of `parts` of a file that can be cut. Reads everything before the edges.
    pub(crate) fn cut(self, chosen: &Chosen, part: usize, parts: usize) -> Result<FilePart, InputError> {
        let format = self.format(chosen)?;
        let path = self.0.path;
        let Content::Mapped(map) = self.0.content else {
            return Err(InputError::Unsupported { path, reason: "it can't be mapped into memory, so it can't be cut into parts".into() });
        };
        let Some(mut parser) = parser(format, chosen.by_structure) else {
            let (header, body) = gap::begin(&map, &path)?;
            return Ok(FilePart { path, map, body, head: OnceCell::new(), part, parts, reader: Reader::Rows(header) });
        };
        let tick = Tick::new(None, 0, true);
        let mut body = 0;
        while !parser.is_past_header() && body < map.len() {
            let end = parser.cut().next(&map, body);
            mapped_block(&mut *parser, &map, body..end, &tick, &path)?;
            body = end;
        }
        Ok(FilePart { path, map, body, head: OnceCell::new(), part, parts, reader: Reader::Sequence { parser, edges: Vec::new() } })
    }

    /// Gives all edges to `take`, piece by piece in the order of the file, and keeps none.
    pub(crate) fn in_pieces(self, chosen: &Chosen, progress: Option<&dyn Progress>, take: &mut Take<'_>) -> Result<Whole, InputError> {
        let format = self.format(chosen)?;
        let path = self.0.path.clone();
        let mut found = Tallies::default();
        let (vertices, listing) = match parser(format, chosen.by_structure) {
            Some(mut parser) => {
                go_through(self.0, &mut *parser, BLOCK, progress, &mut |parser| {
                    let (more, edges) = parser.take();
                    found.join(&more);
                    take(&edges)
                })?;
                concluded(&mut *parser, &found, &path)?
            }
            None => gap::in_pieces(self.0, progress, &mut |edges| {
                found.entries += edges.len() as u64;
                take(edges)
            })?,
        };
        // Refuses too many vertices.
        edge_list(vertices, Vec::new(), listing, &path)?;
        Ok(Whole { vertices, entries: found.entries, listing })
    }
}

/// One of the parts that a file is cut into.
pub(crate) struct FilePart {
    path: PathBuf,
    map: MappedFile,
    /// Byte at which the edges begin.
    body: usize,
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
    fn begin(&self, part: usize) -> (usize, usize) {
        let share = |all: usize| (all as u128 * part as u128 / self.parts as u128) as usize;
        match &self.reader {
            Reader::Rows(header) => {
                let entry = share(header.entries as usize);
                (self.body + 4 * entry, entry)
            }
            Reader::Sequence { .. } if part == 0 => (self.body, 0),
            Reader::Sequence { parser, .. } => (parser.cut().next(&self.map, self.body + share(self.map.len() - self.body)), 0),
        }
    }

    fn bytes(&self, part: usize) -> Range<usize> {
        self.begin(part).0..self.begin(part + 1).0
    }

    /// A hash of part `part` and of everything before the edges. Parts with the same hash hold the same bytes at the same place.
    pub(crate) fn checksum(&self, part: usize) -> u128 {
        let head = *self.head.get_or_init(|| self.sum(0..self.body));
        let bytes: Vec<u8> = [head, self.sum(self.bytes(part))].into_iter().flat_map(u128::to_le_bytes).collect();
        XxHash3_128::oneshot(&bytes)
    }

    /// A hash of the bytes in `range` and of their place.
    fn sum(&self, range: Range<usize>) -> u128 {
        let mut sums = vec![range.start as u128, range.end as u128];
        sums.extend(self.map[range].par_chunks(SUMMED).map(XxHash3_128::oneshot).collect::<Vec<_>>());
        let bytes: Vec<u8> = sums.into_iter().flat_map(u128::to_le_bytes).collect();
        XxHash3_128::oneshot(&bytes)
    }

    /// Number of METIS rows in the part, which the parts after it need to know.
    pub(crate) fn rows(&self) -> u64 {
        match &self.reader {
            Reader::Sequence { parser, .. } => parser.rows(&self.map[self.bytes(self.part)]),
            Reader::Rows(_) => 0,
        }
    }

    /// Reads the part, which follows `rows_before` rows.
    pub(crate) fn read(&mut self, rows_before: u64, progress: Option<&dyn Progress>) -> Result<Tallies, InputError> {
        let range = self.bytes(self.part);
        let Reader::Sequence { parser, edges } = &mut self.reader else { return Ok(Tallies::default()) };
        let tick = Tick::new(progress, range.len() as u64, true);
        // Every part has parsed the header: its tallies must not be counted once per part.
        parser.take();
        parser.skip_rows(rows_before);
        if !range.is_empty() {
            mapped_block(&mut **parser, &self.map, range, &tick, &self.path)?;
        }
        if self.map.has_changed() {
            return Err(InputError::Changed { path: self.path.clone() });
        }
        tick.end();
        let (found, read) = parser.take();
        *edges = read;
        Ok(found)
    }

    /// The edges of the part; `found` are the joined tallies of all parts.
    pub(crate) fn conclude(self, found: &Tallies) -> Result<EdgeSlice, InputError> {
        let range = self.begin(self.part).1..self.begin(self.part + 1).1;
        match self.reader {
            Reader::Rows(header) => gap::slice(self.map, header, range, &self.path),
            Reader::Sequence { mut parser, edges } => {
                let (vertices, listing) = concluded(&mut *parser, found, &self.path)?;
                let range = 0..edges.len();
                Ok(EdgeSlice::new(edge_list(vertices, edges, listing, &self.path)?, range))
            }
        }
    }
}
