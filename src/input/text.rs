//! Formats that are a sequence, most of them text: what they have in common, and how their content reaches them.

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
use crate::graph::{EdgeList, GraphError, Listing, Vertex};

/// A parser of a format that is a sequence: text, or edges of a fixed number of bytes. It gets the file in blocks that end where
/// [`cut`](Self::cut) allows (the last one: anywhere).
pub(super) trait TextReader {
    /// Where blocks may end.
    fn cut(&self) -> Cut {
        Cut::Lines
    }

    /// The most text it wants in a block, for parsers that need memory in proportion to it.
    fn most(&self) -> usize {
        usize::MAX
    }

    /// The longest line.
    fn longest(&self) -> usize {
        LONGEST
    }

    /// Faults lie at a byte, not on a line.
    fn is_binary(&self) -> bool {
        false
    }

    /// Parses the next block. Offsets of faults count from its start.
    fn block(&mut self, text: &[u8], tick: &Tick<'_>) -> Result<(), Box<Fault>>;

    /// All that stands before the edges has been read, and from here on any piece can be parsed for itself: what the pieces before it
    /// hold does not matter, but for [`rows`](Self::rows).
    fn is_past_header(&self) -> bool {
        false
    }

    /// How much of what the pieces behind it must know a piece holds: rows of METIS.
    fn rows(&self, _piece: &[u8]) -> u64 {
        0
    }

    /// The next piece follows this many rows.
    fn skip_rows(&mut self, _rows: u64) {}

    /// What has been read since it was last asked: the edges leave the parser.
    fn take(&mut self) -> (Tallies, Vec<[Vertex; 2]>);

    /// Checks that nothing is missing where `found` is all there is; gives the number of vertices, and how edges are listed.
    fn conclude(&mut self, found: &Tallies) -> Result<(u64, Listing), Box<Fault>>;
}

/// Takes edges piece by piece; an error ends the reading.
pub(super) type Take<'a> = dyn FnMut(&[[Vertex; 2]]) -> Result<(), InputError> + 'a;

/// What a piece of a file says of the whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tallies {
    /// Edges.
    pub(crate) entries: u64,
    /// One more than the largest vertex.
    pub(super) vertices: u64,
    /// Rows of METIS.
    pub(super) rows: u64,
    /// What comments say.
    pub(super) note: Note,
    /// The first edge, where it may be none.
    pub(super) first: Option<[Vertex; 2]>,
    /// The largest vertex of the others.
    pub(super) largest_but_first: Option<Vertex>,
}

impl Tallies {
    /// Adds what was found in the piece that follows.
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

/// Reports how much has been read.
pub(super) struct Tick<'a> {
    progress: Option<&'a dyn Progress>,
    done: AtomicU64,
    total: u64,
    /// False where the bytes of text are not the bytes of the file (compressed): then only [`at`](Self::at) reports.
    plain: bool,
}

impl<'a> Tick<'a> {
    pub(super) fn new(progress: Option<&'a dyn Progress>, total: u64, plain: bool) -> Self {
        Self { progress, done: AtomicU64::new(0), total, plain }
    }

    /// So many bytes more of the text have been parsed.
    pub(super) fn advance(&self, bytes: u64) {
        if let (true, Some(progress)) = (self.plain, self.progress) {
            let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes; // a number to show, nothing hangs on it
            progress.update(done.min(self.total), self.total);
        }
    }

    /// All has been read.
    pub(super) fn end(&self) {
        if let Some(progress) = self.progress {
            progress.update(self.total, self.total);
        }
    }

    /// So many bytes of the file have been read.
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

/// What a parser says of all that was found in the file at `path`.
pub(super) fn concluded(parser: &mut dyn TextReader, found: &Tallies, path: &Path) -> Result<(u64, Listing), InputError> {
    parser.conclude(found).map_err(|fault| fault.into_error(path.to_owned(), |_| Place::Whole))
}

/// The edges of the file at `path`, with the number of its vertices.
pub(super) fn edge_list(vertices: u64, edges: Vec<[Vertex; 2]>, listing: Listing, path: &Path) -> Result<EdgeList, InputError> {
    let too_many = |_| GraphError::TooManyVertices(vertices);
    let list = usize::try_from(vertices).map_err(too_many).and_then(|vertices| EdgeList::new(vertices, edges, listing));
    list.map_err(|reason| InputError::Graph { path: path.to_owned(), reason })
}

/// Gives the whole source to a parser, in blocks of at most about `most` bytes where that is a choice; `after` each block.
pub(super) fn go_through(
    source: Source,
    parser: &mut dyn TextReader,
    most: usize,
    progress: Option<&dyn Progress>,
    after: &mut dyn FnMut(&mut dyn TextReader) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let path = source.path.clone();
    let tick = Tick::new(progress, source.size, matches!(source.content, Content::Mapped(_)));
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

/// Parses a block of a file that is mapped.
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
        return Ok(()); // a mapped source: the callers have taken another way
    };
    let rest = rest.unwrap_or_else(|| Box::new(std::io::empty()));
    let consumed = &source.consumed;
    let result = for_each_block(Cursor::new(head).chain(rest), cut, longest, |block| consume(block, consumed.load(Ordering::Relaxed)));
    result.map_err(|stopped| match stopped {
        Stopped::Stream(reason) => source.stream_error(reason),
        Stopped::Consumer(error) => error,
    })
}
