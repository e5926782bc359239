//! Text formats: what they have in common, and how their text reaches them.

use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::{Fault, Place};
use super::scan::{Cut, count_lines};
use super::source::{Content, LONGEST, Source, Stopped, for_each_block};
use super::{InputError, Progress};
use crate::graph::{EdgeList, GraphError, Listing, Vertex};

/// A parser of a text format. It is given the text in blocks that end where [`cut`](Self::cut) allows (the last one: anywhere).
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

    /// Parses the next block. Offsets of faults count from its start.
    fn block(&mut self, text: &[u8], tick: &Tick<'_>) -> Result<(), Box<Fault>>;

    /// Checks that nothing is missing, and gives the graph.
    fn finish(self: Box<Self>) -> Result<Parsed, Box<Fault>>;
}

/// What a parser has found.
pub(super) struct Parsed {
    pub(super) vertices: u64,
    pub(super) edges: Vec<[Vertex; 2]>,
    pub(super) listing: Listing,
}

impl Parsed {
    pub(super) fn into_edge_list(self) -> Result<EdgeList, Box<Fault>> {
        let too_many = |_| GraphError::TooManyVertices(self.vertices);
        let list = usize::try_from(self.vertices).map_err(too_many).and_then(|vertices| EdgeList::new(vertices, self.edges, self.listing));
        list.map_err(|error| Box::new(Fault::Graph(error)))
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
pub(super) fn read(source: Source, mut parser: Box<dyn TextReader + '_>, progress: Option<&dyn Progress>) -> Result<EdgeList, InputError> {
    let path = source.path.clone();
    let tick = Tick::new(progress, source.size, matches!(source.content, Content::Mapped(_)));
    match &source.content {
        Content::Mapped(map) => {
            for piece in parser.cut().chunks(map, parser.most()) {
                let start = piece.start;
                parser.block(&map[piece], &tick).map_err(|fault| {
                    let line = |offset: usize| Place::Line(count_lines(&map[..start + offset]) as u64 + 1);
                    fault.into_error(path.clone(), line)
                })?;
            }
            if map.has_changed() {
                return Err(InputError::Changed { path });
            }
        }
        Content::Stream { .. } => {
            let cut = parser.cut();
            let mut lines = 0;
            stream(source, cut, parser.longest(), |text, consumed| {
                parser.block(text, &tick).map_err(|fault| {
                    fault.into_error(path.clone(), |offset| Place::Line(lines + count_lines(&text[..offset]) as u64 + 1))
                })?;
                lines += count_lines(text) as u64;
                tick.at(consumed);
                Ok(())
            })?;
        }
    }
    tick.end();
    parser.finish().and_then(Parsed::into_edge_list).map_err(|fault| fault.into_error(path, |_| Place::Whole))
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
