//! The parts that the parsers of sequential formats (most of them text) have in common, and the way the content of a file reaches them.

use std::io::Read;
use std::sync::atomic::Ordering;

use super::Progress;
use super::error::{Fault, Place};
use super::lines::{Records, Syntax, after_header, check_count};
use super::scan::{Cut, count_lines};
use super::source::{LONGEST, Source, for_each_block};
use super::tallies::Tallies;
use socbfs::files::RegularFile;
use socbfs::graph::{EdgeList, GraphError, Listing, Vertex};

/// A parser of a sequential format: text, or edges of a fixed number of bytes. It gets the file in blocks that end where
/// [`cut`](Self::cut) allows; the last block may end anywhere.
pub(super) trait TextReader {
    /// Where blocks may end.
    fn cut(&self) -> Cut {
        Cut::Lines
    }

    /// Bytes of the longest line.
    fn longest(&self) -> usize {
        LONGEST
    }

    /// Whether faults are reported by byte instead of by line.
    fn is_binary(&self) -> bool {
        false
    }

    /// Parses the next block. `ahead` times as many bytes follow, whose edges will be kept too (0 if that is not known). Offsets of faults
    /// count from the start of the block.
    fn block(&mut self, text: &[u8], ahead: f64) -> Result<(), Box<Fault>>;

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

/// What a file says before its edges.
pub(super) struct Header {
    pub(super) syntax: Syntax,
    pub(super) listing: Listing,
    /// Number of entries.
    pub(super) count: u64,
}

/// A parser of lines of edges after a header that announces their number.
pub(super) struct HeaderReader<P> {
    /// Parses a line before the edges: `None` if it is not the last one of the header.
    parse: P,
    header: Option<Header>,
    records: Records,
    /// What is said of a file without a header, and its cure.
    missing: [&'static str; 2],
    /// What the line is called that announces the number, and an entry, and entries.
    names: (&'static str, [&'static str; 2]),
}

impl<P> HeaderReader<P> {
    pub(super) fn new(parse: P, missing: [&'static str; 2], names: (&'static str, [&'static str; 2])) -> Self {
        Self { parse, header: None, records: Records::default(), missing, names }
    }
}

impl<P: FnMut(&[u8]) -> Result<Option<Header>, Box<Fault>>> TextReader for HeaderReader<P> {
    fn block(&mut self, text: &[u8], ahead: f64) -> Result<(), Box<Fault>> {
        let at = after_header(text, &mut self.header, &mut self.parse)?;
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
        let [missing, cure] = self.missing;
        let header = self.header.as_ref().ok_or_else(|| Fault::whole(missing).cure(cure))?;
        check_count(found.entries, header.count, self.names.0, self.names.1)?;
        Ok((header.syntax.vertices, header.listing))
    }
}

/// Receives edges piece by piece; an error ends the reading.
pub(super) type Take<'a> = dyn FnMut(&[[Vertex; 2]]) -> Result<(), Box<Fault>> + 'a;

/// Reads a source with a parser.
pub(super) fn read(source: Source, parser: &mut dyn TextReader, progress: Option<&dyn Progress>) -> Result<EdgeList, Box<Fault>> {
    let expected = source.plain().map_or(0, RegularFile::size);
    go_through(source, parser, expected, progress, |_| Ok(()))?;
    let (found, mut edges) = parser.take();
    edges.shrink_to_fit(); // the number of edges was an estimate
    let (vertices, listing) = parser.conclude(&found)?;
    edge_list(vertices, edges, listing)
}

/// Makes the edge list of a file.
pub(super) fn edge_list(vertices: u64, edges: Vec<[Vertex; 2]>, listing: Listing) -> Result<EdgeList, Box<Fault>> {
    let too_many = |_| GraphError::TooManyVertices(vertices);
    let list = usize::try_from(vertices).map_err(too_many).and_then(|vertices| EdgeList::new(vertices, edges, listing));
    Ok(list.map_err(Fault::Graph)?)
}

/// Gives the whole source to a parser block by block, and calls `after` after each block. `expected` is as in [`Stretch`].
pub(super) fn go_through(
    mut source: Source,
    parser: &mut dyn TextReader,
    expected: u64,
    progress: Option<&dyn Progress>,
    mut after: impl FnMut(&mut dyn TextReader) -> Result<(), Box<Fault>>,
) -> Result<(), Box<Fault>> {
    let (reader, total) = (source.reader(), source.size());
    let stretch = Stretch { reader, expected, start: 0, lines: &|| 0 };
    let result = stretch.parse(parser, |parser, _| {
        if let Some(progress) = progress {
            progress.update(source.consumed.load(Ordering::Relaxed), total);
        }
        if source.stopper.is_stopped() {
            return Err(Fault::Stopped.into());
        }
        after(parser)
    });
    source.unchanged(result)?;
    if let Some(progress) = progress {
        progress.update(total, total);
    }
    Ok(())
}

/// What is parsed block by block: the content of a source, or a part of a file.
pub(super) struct Stretch<'a, R> {
    pub(super) reader: R,
    /// Bytes that the reader gives; 0 if that is not known, or if `after` takes the edges of each block out of the parser.
    pub(super) expected: u64,
    /// Bytes before the stretch.
    pub(super) start: u64,
    /// Counts the lines before the stretch.
    pub(super) lines: &'a dyn Fn() -> u64,
}

impl<R: Read + Send> Stretch<'_, R> {
    /// Gives the stretch to a parser, and calls `after` after each block with the number of bytes so far.
    pub(super) fn parse(
        self,
        parser: &mut dyn TextReader,
        mut after: impl FnMut(&mut dyn TextReader, u64) -> Result<(), Box<Fault>>,
    ) -> Result<(), Box<Fault>> {
        let (mut bytes, mut lines) = (0, 0);
        for_each_block(self.reader, parser.cut(), parser.longest(), |text| {
            let ahead = self.expected.saturating_sub(bytes + text.len() as u64) as f64 / text.len() as f64;
            parser.block(text, ahead).map_err(|fault| {
                fault.placed(|offset| match parser.is_binary() {
                    true => Place::Byte(self.start + bytes + offset),
                    false => Place::Line((self.lines)() + lines + count_lines(&text[..offset as usize]) as u64 + 1),
                })
            })?;
            if !parser.is_binary() {
                lines += count_lines(text) as u64;
            }
            bytes += text.len() as u64;
            after(parser, bytes)
        })
    }
}
