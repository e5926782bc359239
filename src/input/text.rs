//! The parts that the parsers of sequential formats (most of them text) have in common, and the way the content of a file reaches them.

use std::io::{Cursor, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::error::{Fault, Place};
use super::lines::Note;
use super::scan::{Cut, count_lines};
use super::source::{Content, LONGEST, Source, Stopped, for_each_block};
use super::{InputError, Progress};
use crate::graph::{EdgeList, GraphError, Listing, Stopper, Vertex};

/// A parser of a sequential format: text, or edges of a fixed number of bytes. It gets the file in blocks that end where
/// [`cut`](Self::cut) allows; the last block may end anywhere.
pub(super) trait TextReader {
    /// Where blocks may end.
    fn cut(&self) -> Cut {
        Cut::Lines
    }

    /// Bytes of the largest block of a mapped file, for parsers that need memory in proportion to it.
    fn most(&self) -> usize {
        usize::MAX
    }

    /// Bytes of the longest line of a stream.
    fn longest(&self) -> usize {
        LONGEST
    }

    /// Whether faults are reported by byte instead of by line.
    fn is_binary(&self) -> bool {
        false
    }

    /// Parses the next block. Offsets of faults count from its start.
    fn block(&mut self, text: &[u8], tick: &Tick<'_>) -> Result<(), Box<Fault>>;

    /// Whether everything before the edges has been read. From there on any piece can be parsed without the pieces before it, except that
    /// the number of their [`rows`](Self::rows) must be known.
    fn is_past_header(&self) -> bool {
        false
    }

    /// Number of METIS rows in a piece, which the parsers of later pieces must know (0 for other formats).
    fn rows(&self, _piece: &[u8]) -> u64 {
        0
    }

    /// Skips this many rows, which lie before the next piece.
    fn skip_rows(&mut self, _rows: u64) {}

    /// Takes out of the parser the tallies and the edges of everything read since the last call.
    fn take(&mut self) -> (Tallies, Vec<[Vertex; 2]>);

    /// Checks that nothing is missing, given the tallies of the whole file; returns the number of vertices, and how edges are listed.
    fn conclude(&mut self, found: &Tallies) -> Result<(u64, Listing), Box<Fault>>;
}

/// Receives edges piece by piece; an error ends the reading.
pub(super) type Take<'a> = dyn FnMut(&[[Vertex; 2]]) -> Result<(), InputError> + 'a;

/// Counts and notes of a piece of a file. Those of all pieces together decide about the whole file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tallies {
    /// Number of edges.
    pub(crate) entries: u64,
    /// One more than the largest vertex.
    pub(super) vertices: u64,
    /// Rows of METIS.
    pub(super) rows: u64,
    /// Notes in comments.
    pub(super) note: Note,
    /// The first edge, if its line may be a header.
    pub(super) first: Option<[Vertex; 2]>,
    /// Largest vertex of all edges but the first, if the first may be a header.
    pub(super) largest_but_first: Option<Vertex>,
}

impl Tallies {
    /// Adds the tallies of the piece that follows.
    pub(crate) fn join(&mut self, next: &Self) {
        self.entries += next.entries;
        self.vertices = self.vertices.max(next.vertices);
        self.rows += next.rows;
        self.note.merge(next.note);
        if self.first.is_none() {
            (self.first, self.largest_but_first) = (next.first, next.largest_but_first);
        } else {
            let first = next.first.map(|[source, target]| source.max(target));
            self.largest_but_first = self.largest_but_first.max(first).max(next.largest_but_first);
        }
    }
}

/// Reports how much has been read, and ends the reading if it is stopped.
pub(super) struct Tick<'a> {
    progress: Option<&'a dyn Progress>,
    done: AtomicU64,
    total: u64,
    /// Whether the bytes of text are the bytes of the file (not of a stream). [`advance`](Self::advance) reports if so, otherwise
    /// [`at`](Self::at).
    plain: bool,
    stopper: Stopper,
}

impl<'a> Tick<'a> {
    pub(super) fn new(progress: Option<&'a dyn Progress>, total: u64, plain: bool) -> Self {
        Self { progress, done: AtomicU64::new(0), total, plain, stopper: Stopper::default() }
    }

    /// Reports that `bytes` more bytes of the text have been parsed.
    ///
    /// # Errors
    /// [`Fault::Stopped`].
    pub(super) fn advance(&self, bytes: u64) -> Result<(), Box<Fault>> {
        if let (true, Some(progress)) = (self.plain, self.progress) {
            let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes; // a number to show; nothing depends on it
            progress.update(done.min(self.total), self.total);
        }
        if self.stopper.is_stopped() { Err(Box::new(Fault::Stopped)) } else { Ok(()) }
    }

    /// Reports that everything has been read.
    pub(super) fn end(&self) {
        if let Some(progress) = self.progress {
            progress.update(self.total, self.total);
        }
    }

    /// Reports that `done` bytes of the file have been read.
    pub(super) fn at(&self, done: u64) {
        if let (false, Some(progress)) = (self.plain, self.progress) {
            progress.update(done, self.total);
        }
    }
}

/// Reads a source with a parser.
pub(super) fn read(source: Source, parser: &mut dyn TextReader, progress: Option<&dyn Progress>) -> Result<EdgeList, InputError> {
    let path = source.path.clone();
    go_through(source, parser, usize::MAX, progress, &mut |_| Ok(()))?;
    let (found, edges) = parser.take();
    let (vertices, listing) = concluded(parser, &found, &path)?;
    edge_list(vertices, edges, listing, &path)
}

/// The conclusion of the parser from the tallies of the whole file at `path`.
pub(super) fn concluded(parser: &mut dyn TextReader, found: &Tallies, path: &Path) -> Result<(u64, Listing), InputError> {
    parser.conclude(found).map_err(|fault| fault.into_error(path.to_owned(), |_| Place::Whole))
}

/// Makes the edge list of the file at `path`.
pub(super) fn edge_list(vertices: u64, edges: Vec<[Vertex; 2]>, listing: Listing, path: &Path) -> Result<EdgeList, InputError> {
    let too_many = |_| GraphError::TooManyVertices(vertices);
    let list = usize::try_from(vertices).map_err(too_many).and_then(|vertices| EdgeList::new(vertices, edges, listing));
    list.map_err(|reason| InputError::Graph { path: path.to_owned(), reason })
}

/// Gives the whole source to a parser block by block, and calls `after` after each block. Blocks of a mapped file have at most about `most`
/// bytes.
pub(super) fn go_through(
    source: Source,
    parser: &mut dyn TextReader,
    most: usize,
    progress: Option<&dyn Progress>,
    after: &mut dyn FnMut(&mut dyn TextReader) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let path = source.path.clone();
    let plain = matches!(source.content, Content::Mapped(_));
    let tick = Tick { stopper: source.stopper.clone(), ..Tick::new(progress, source.size, plain) };
    match &source.content {
        Content::Mapped(map) => {
            for piece in parser.cut().chunks(map, parser.most().min(most)) {
                mapped_block(parser, map, piece, &tick, &path)?;
                after(parser)?;
            }
            if map.has_changed() {
                return Err(InputError::Changed { path });
            }
        }
        Content::Stream { .. } => {
            let (cut, longest) = (parser.cut(), parser.longest());
            let (mut start, mut lines) = (0, 0);
            stream(source, cut, longest, |text, consumed| {
                let binary = parser.is_binary();
                parser.block(text, &tick).map_err(|fault| {
                    fault.into_error(path.clone(), |offset| match binary {
                        true => Place::Byte(start + offset as u64),
                        false => Place::Line(lines + count_lines(&text[..offset]) as u64 + 1),
                    })
                })?;
                if !binary {
                    lines += count_lines(text) as u64;
                }
                start += text.len() as u64;
                tick.at(consumed);
                after(parser)
            })?;
        }
    }
    tick.end();
    Ok(())
}

/// Parses a block of a mapped file.
pub(super) fn mapped_block(
    parser: &mut dyn TextReader,
    map: &[u8],
    block: Range<usize>,
    tick: &Tick<'_>,
    path: &Path,
) -> Result<(), InputError> {
    let start = block.start;
    parser.block(&map[block], tick).map_err(|fault| {
        fault.into_error(path.to_owned(), |offset| match parser.is_binary() {
            true => Place::Byte((start + offset) as u64),
            false => Place::Line(count_lines(&map[..start + offset]) as u64 + 1),
        })
    })
}

/// Feeds the blocks of a stream to `consume`, with the bytes of the file consumed so far.
pub(super) fn stream(
    mut source: Source,
    cut: Cut,
    longest: usize,
    mut consume: impl FnMut(&[u8], u64) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let Content::Stream { head, rest } = std::mem::replace(&mut source.content, Content::Stream { head: Vec::new(), rest: None }) else {
        return Ok(()); // a mapped source, which the caller reads without this function
    };
    let rest = rest.unwrap_or_else(|| Box::new(std::io::empty()));
    let consumed = &source.consumed;
    let result = for_each_block(Cursor::new(head).chain(rest), cut, longest, |block| consume(block, consumed.load(Ordering::Relaxed)));
    result.map_err(|stopped| match stopped {
        Stopped::Stream(reason) => source.stream_error(reason),
        Stopped::Consumer(error) => error,
    })
}
