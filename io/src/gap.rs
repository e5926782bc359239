//! The GAP Benchmark Suite's serialised graph (`.sg`, its `src/writer.h`), little-endian: a byte that is 1 for a directed graph; the number
//! of entries and of vertices (64 bits each); vertices + 1 offsets (64 bits); the neighbours (32 bits). A directed graph has offsets and
//! neighbours a second time, for incoming edges. An undirected graph lists every edge at both ends. The header has 17 bytes, so nothing
//! after it is aligned.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::atomic::Ordering;

use super::Progress;
use super::error::Fault;
use super::fill::reserve;
use super::source::{Source, read_all, unchanged};
use super::text::{Take, edge_list};
use socbfs::graph::{
    EdgeList, EdgeSlice, GraphError, Listing, MAX_VERTICES, RowsError, SerializedRows, Stopper, Vertex, arrays, check_offsets,
};
use socbfs::{
    files::RegularFile,
    memory::{self, Slab},
    words::plural,
};

/// Bytes that are read between two looks whether the reading is stopped.
const FILLED: usize = 16 << 20;

/// Bytes before the offsets.
pub(super) const HEADER: usize = 17;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) directed: bool,
    pub(super) entries: u64,
    pub(super) vertices: u64,
}

impl Header {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Box<Fault>> {
        let Some((&[directed, ref counts @ ..], _)) = bytes.split_first_chunk::<HEADER>() else {
            return Err(Fault::at(
                0,
                format!("{} are too few for the header of a GAP .sg file", plural(bytes.len() as u64, "byte", "bytes")),
            ));
        };
        let count = |at: usize| counts[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let (entries, vertices) = (count(0), count(8));
        if directed > 1 {
            return Err(Fault::at(0, format!("the first byte of a GAP .sg file is 0 or 1, this one is {directed}")));
        }
        if entries > i64::MAX as u64 || vertices > i64::MAX as u64 {
            return Err(Fault::at(1, "a number of edges or vertices is negative").cure("is this a GAP .sg file?"));
        }
        Ok(Self { directed: directed == 1, entries, vertices })
    }

    /// Bytes of a file whose targets have `target` bytes each; `None` if 64 bits can't count them.
    fn size(self, target: u64) -> Option<u64> {
        let part = self.vertices.checked_add(1)?.checked_mul(8)?.checked_add(self.entries.checked_mul(target)?)?;
        part.checked_mul(if self.directed { 2 } else { 1 })?.checked_add(HEADER as u64)
    }

    /// Checks that the file has the size that its header requires.
    fn check(self, size: u64) -> Result<(), Box<Fault>> {
        let (vertices, entries) = (plural(self.vertices, "vertex", "vertices"), plural(self.entries, "entry", "entries"));
        match self.size(4) {
            Some(need) if need == size => Ok(()),
            _ if self.size(8) == Some(size) => Err(Box::new(Fault::Unsupported(
                "this is a weighted graph of GAP (.wsg); breadth-first search needs none: write it without weights with GAP's `converter -b`".into(),
            ))),
            Some(need) => Err(Fault::at(1, format!(
                "the header announces {vertices} and {entries}, which need {need} bytes, but the file has {size}"
            ))
            .cure(if need > size { "is it cut off?" } else { "is this a GAP .sg file?" })),
            None => Err(Fault::at(1, format!("the header announces {vertices} and {entries}, more than any file can hold"))
                .cure("is this a GAP .sg file?")),
        }
    }
}

/// Whether the file is proven to be a `.sg` file: header, size and both ends of the offsets agree.
///
/// # Errors
/// If the file can't be read.
pub(super) fn proves(file: &RegularFile) -> io::Result<bool> {
    let bytes = |at: u64| {
        let mut bytes = [0; HEADER];
        let most = file.size().saturating_sub(at).min(HEADER as u64) as usize;
        file.fill(&mut bytes[..most], at).map(|()| bytes)
    };
    let Ok(header) = Header::parse(&bytes(0)?) else { return Ok(false) };
    if file.size() < HEADER as u64 || header.check(file.size()).is_err() {
        return Ok(false);
    }
    let last = HEADER as u64 + 8 * header.vertices; // within the file, as just checked
    Ok(bytes(HEADER as u64)?[..8] == [0; 8] && bytes(last)?[..8] == header.entries.to_le_bytes())
}

/// Reads a source.
pub(super) fn read(source: Source, progress: Option<&dyn Progress>) -> Result<EdgeList, Box<Fault>> {
    let Some(file) = source.plain() else {
        let mut edges = Vec::new();
        let (vertices, listing) = in_pieces(source, progress, &mut |piece| {
            reserve(&mut edges, piece.len(), 0.0, "edges")?;
            edges.extend_from_slice(piece);
            Ok(())
        })?;
        return edge_list(vertices, edges, listing);
    };
    let (header, _) = begin(&source.head, file)?;
    let list = rows(file, header, 0..usize::try_from(header.entries).unwrap_or(usize::MAX), &source.stopper)?;
    if let Some(progress) = progress {
        progress.update(source.size(), source.size());
    }
    Ok(list)
}

/// How the file lists an undirected edge.
fn listing(header: Header) -> Listing {
    if header.directed { Listing::Unknown } else { Listing::BothDirections }
}

/// The graph of a file whose size has been checked. Of the targets, only those of the entries `held` are read.
fn rows(file: &RegularFile, header: Header, held: Range<usize>, stopper: &Stopper) -> Result<EdgeList, Box<Fault>> {
    let body = body(header);
    let bytes = body + 4 * held.len() as u64;
    memory::check_available(bytes, "rows").map_err(|_| Fault::OutOfMemory(bytes))?;
    let mut slab = Slab::zeroed(usize::try_from(bytes).unwrap_or(usize::MAX), "rows").map_err(|_| Fault::OutOfMemory(bytes))?;
    let (offsets, targets) = slab.split_at_mut(body as usize);
    let fill = |bytes: &mut [u8], at: u64| {
        bytes.chunks_mut(FILLED).zip((at..).step_by(FILLED)).try_for_each(|(piece, at)| match stopper.is_stopped() {
            true => Err(Fault::Stopped.into()),
            false => Ok(file.fill(piece, at)?),
        })
    };
    unchanged(Some(file), fill(offsets, 0).and_then(|()| fill(targets, body + 4 * held.start as u64)))?;
    let rows = SerializedRows::new(held, slab, HEADER, header.vertices, header.entries);
    Ok(EdgeList::from_rows(rows.map_err(rows_error)?, listing(header)))
}

/// The byte at which the targets begin.
fn body(header: Header) -> u64 {
    HEADER as u64 + 8 * (header.vertices + 1)
}

fn rows_error(error: RowsError) -> Box<Fault> {
    match error {
        RowsError::Graph(reason) => Fault::Graph(reason).into(),
        RowsError::Offset { byte, .. } | RowsError::Target { byte, .. } => {
            Fault::at(byte as usize, error.to_string()).cure("is the file damaged?")
        }
        _ => Fault::whole(error.to_string()),
    }
}

/// The header of a plain file that starts with `head`, whose size is checked, and the byte at which its targets begin.
pub(super) fn begin(head: &[u8], file: &RegularFile) -> Result<(Header, u64), Box<Fault>> {
    let header = Header::parse(head)?;
    header.check(file.size())?;
    Ok((header, body(header)))
}

/// The entries `range` of a plain file with this header.
pub(super) fn slice(file: &RegularFile, header: Header, range: Range<usize>) -> Result<EdgeSlice, Box<Fault>> {
    Ok(EdgeSlice::new(rows(file, header, range.clone(), &Stopper::default())?, range))
}

/// Entries per piece.
const PIECE: usize = 1 << 20;

/// Gives the entries to `take` piece by piece. The offsets are held in memory, but not the targets.
pub(super) fn in_pieces(mut source: Source, progress: Option<&dyn Progress>, take: &mut Take<'_>) -> Result<(u64, Listing), Box<Fault>> {
    let read = pieces(&mut source, progress, take);
    source.unchanged(read)
}

fn pieces(source: &mut Source, progress: Option<&dyn Progress>, take: &mut Take<'_>) -> Result<(u64, Listing), Box<Fault>> {
    let mut piece = Vec::new();
    let total = source.size();
    let update = |done: u64| {
        if let Some(progress) = progress {
            progress.update(done, total);
        }
    };
    let header = Header::parse(&source.head)?;
    if header.size(4).is_none() {
        header.check(0)?;
    }
    if header.vertices > MAX_VERTICES as u64 {
        return Err(Fault::Graph(GraphError::TooManyVertices(header.vertices)).into());
    }
    let mut reader = source.reader();
    let mut offsets = Vec::new();
    let wanted = 8 * (header.vertices + 1);
    read_all(&mut reader.by_ref().take(HEADER as u64), &mut offsets, HEADER as u64)?;
    offsets.clear();
    read_all(&mut reader, &mut offsets, wanted)?;
    let mut size = (HEADER + offsets.len()) as u64;
    if offsets.len() as u64 == wanted {
        let offsets = arrays::<8>(&offsets, header.vertices as usize + 1);
        let entries = usize::try_from(header.entries).unwrap_or(usize::MAX);
        check_offsets(offsets, entries, HEADER).map_err(rows_error)?;
        let end = |row: usize| u64::from_le_bytes(offsets[row + 1]) as usize;
        let (mut entry, mut row, mut bytes) = (0, 0, Vec::new());
        while entry < entries {
            bytes.clear();
            let want = 4 * PIECE.min(entries - entry) as u64;
            read_all(&mut reader, &mut bytes, want)?;
            piece.clear();
            for target in bytes.chunks_exact(4) {
                let target = Vertex::from_le_bytes([target[0], target[1], target[2], target[3]]);
                if u64::from(target) >= header.vertices {
                    let (byte, vertices) = (size + 4 * piece.len() as u64, header.vertices as usize);
                    return Err(rows_error(RowsError::Target { byte, entry, target: target.into(), vertices }));
                }
                // The offsets rise to the number of entries, so some row ends after this entry.
                while end(row) <= entry {
                    row += 1;
                }
                piece.push([row as Vertex, target]);
                entry += 1;
            }
            size += bytes.len() as u64;
            take(&piece)?;
            update(source.consumed.load(Ordering::Relaxed));
            if (bytes.len() as u64) < want {
                break;
            }
        }
    }
    // Incoming edges are skipped.
    size += io::copy(&mut reader, &mut io::sink())?;
    header.check(size)?;
    update(total);
    Ok((header.vertices, listing(header)))
}
