//! The GAP Benchmark Suite's serialised graph (`.sg`, its `src/writer.h`), little-endian: a byte that is 1 for a directed graph; the number
//! of entries and of vertices (64 bits each); vertices + 1 offsets (64 bits); the neighbours (32 bits). A directed graph has offsets and
//! neighbours a second time, for incoming edges. An undirected graph lists every edge at both ends. The header has 17 bytes, so nothing
//! after it is aligned.

use std::io::{Cursor, ErrorKind, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::error::{Fault, Place};
use super::source::{Content, Source, read_all};
use super::text::{Take, Tick};
use super::{Compression, InputError, Progress};
use crate::graph::{
    EdgeList, EdgeSlice, GraphError, Listing, MAX_VERTICES, RowBytes, RowsError, SerializedRows, Vertex, arrays, check_offsets,
};
use crate::{files::MappedFile, words::plural};

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

/// Whether the bytes are proven to be a `.sg` file: header, size and both ends of the offsets agree.
pub(super) fn proves(bytes: &[u8]) -> bool {
    let Ok(header) = Header::parse(bytes) else { return false };
    if header.check(bytes.len() as u64).is_err() {
        return false;
    }
    let last = HEADER + 8 * header.vertices as usize; // within the bytes, as just checked
    bytes[HEADER..HEADER + 8] == [0; 8] && bytes[last..last + 8] == header.entries.to_le_bytes()
}

/// Reads a source. The rows of a mapped file are not copied.
pub(super) fn read(mut source: Source, progress: Option<&dyn Progress>) -> Result<EdgeList, InputError> {
    let path = source.path.clone();
    let fail = |fault: Box<Fault>| fault.into_error(path.clone(), |offset| Place::Byte(offset as u64));
    let tick = Tick::new(progress, source.size, false);
    let (bytes, size) = match std::mem::replace(&mut source.content, Content::Stream { head: Vec::new(), rest: None }) {
        Content::Mapped(map) => {
            let size = map.len() as u64;
            (RowBytes::Mapped(map), size)
        }
        Content::Stream { head, rest } => {
            // Memory grows with the data that is read, not with what the header announces. Incoming edges are skipped.
            let header = Header::parse(&head).map_err(fail)?;
            let half = Header { directed: false, ..header }.size(4).unwrap_or(u64::MAX);
            let no_memory = || InputError::OutOfMemory { path: path.clone(), bytes: half };
            if source.compression == Compression::None && source.size > 0 {
                // A file that could not be mapped: check that memory can hold it before gigabytes are read.
                header.check(source.size).map_err(fail)?;
                if half > isize::MAX as u64 {
                    return Err(no_memory());
                }
            }
            let mut reader = Cursor::new(head).chain(rest.unwrap_or_else(|| Box::new(std::io::empty())));
            let mut bytes = Vec::new();
            let rest = read_all(&mut reader, &mut bytes, half).and_then(|()| std::io::copy(&mut reader, &mut std::io::sink()));
            let rest = rest.map_err(|reason| match reason.kind() {
                ErrorKind::OutOfMemory => no_memory(),
                _ => source.stream_error(reason),
            })?;
            let size = bytes.len() as u64 + rest;
            (RowBytes::Owned(bytes), size)
        }
    };
    let header = Header::parse(bytes.as_ref()).map_err(fail)?;
    header.check(size).map_err(fail)?;
    let range = 0..usize::try_from(header.entries).unwrap_or(usize::MAX);
    let list = rows(bytes, header, range, &path)?;
    tick.end();
    Ok(list)
}

/// How the file lists an undirected edge.
fn listing(header: Header) -> Listing {
    if header.directed { Listing::Unknown } else { Listing::BothDirections }
}

/// The graph of a file whose size has been checked. Only the targets of the entries `range` are checked.
fn rows(bytes: RowBytes, header: Header, range: Range<usize>, path: &Path) -> Result<EdgeList, InputError> {
    let rows =
        SerializedRows::checked_in(range, bytes, HEADER, header.vertices, header.entries).map_err(|error| rows_error(error, path))?;
    Ok(EdgeList::from_rows(rows, listing(header)))
}

fn rows_error(error: RowsError, path: &Path) -> InputError {
    match error {
        RowsError::Graph(reason) => InputError::Graph { path: path.to_owned(), reason },
        RowsError::Offset { byte, .. } | RowsError::Target { byte, .. } => InputError::Malformed {
            path: path.to_owned(),
            place: Place::Byte(byte),
            reason: error.to_string(),
            cure: "is the file damaged?".into(),
        },
        RowsError::TooShort { .. } => Fault::whole(error.to_string()).into_error(path.to_owned(), |_| Place::Whole),
    }
}

/// The header of a mapped file, whose size is checked, and the byte at which its targets begin.
pub(super) fn begin(map: &MappedFile, path: &Path) -> Result<(Header, usize), InputError> {
    let header = Header::parse(map).and_then(|header| header.check(map.len() as u64).map(|()| header));
    let header = header.map_err(|fault| fault.into_error(path.to_owned(), |offset| Place::Byte(offset as u64)))?;
    // Within the bytes, as just checked.
    Ok((header, HEADER + 8 * (header.vertices as usize + 1)))
}

/// The entries `range` of a mapped file with this header.
pub(super) fn slice(map: MappedFile, header: Header, range: Range<usize>, path: &Path) -> Result<EdgeSlice, InputError> {
    Ok(EdgeSlice::new(rows(RowBytes::Mapped(map), header, range.clone(), path)?, range))
}

/// Entries per piece.
const PIECE: usize = 1 << 20;

/// Gives the entries to `take` piece by piece. If the source is a stream, its offsets are held in memory, but not its targets.
pub(super) fn in_pieces(mut source: Source, progress: Option<&dyn Progress>, take: &mut Take<'_>) -> Result<(u64, Listing), InputError> {
    let mut piece = Vec::new();
    if let Content::Mapped(_) = source.content {
        let list = read(source, progress)?;
        for begin in (0..list.len()).step_by(PIECE) {
            piece.clear();
            list.for_each(begin..list.len().min(begin + PIECE), |source, target| piece.push([source, target]));
            take(&piece)?;
        }
        return Ok((list.vertices() as u64, list.listing()));
    }
    let path = source.path.clone();
    let fail = |fault: Box<Fault>| fault.into_error(path.clone(), |offset| Place::Byte(offset as u64));
    let tick = Tick::new(progress, source.size, false);
    let Content::Stream { head, rest } = std::mem::replace(&mut source.content, Content::Stream { head: Vec::new(), rest: None }) else {
        return Ok((0, Listing::Unknown)); // mapped: see above
    };
    let header = Header::parse(&head).map_err(fail)?;
    if header.vertices > MAX_VERTICES as u64 {
        return Err(InputError::Graph { path, reason: GraphError::TooManyVertices(header.vertices) });
    }
    let mut reader = Cursor::new(head).chain(rest.unwrap_or_else(|| Box::new(std::io::empty())));
    let stream_error = |bytes: u64, reason: std::io::Error| match reason.kind() {
        ErrorKind::OutOfMemory => InputError::OutOfMemory { path: path.clone(), bytes },
        _ => source.stream_error(reason),
    };
    let mut offsets = Vec::new();
    let wanted = 8 * (header.vertices + 1);
    read_all(&mut reader.by_ref().take(HEADER as u64), &mut offsets, HEADER as u64).map_err(|reason| stream_error(0, reason))?;
    offsets.clear();
    read_all(&mut reader, &mut offsets, wanted).map_err(|reason| stream_error(wanted, reason))?;
    let mut size = (HEADER + offsets.len()) as u64;
    if offsets.len() as u64 == wanted {
        let offsets = arrays::<8>(&offsets, header.vertices as usize + 1);
        let entries = usize::try_from(header.entries).unwrap_or(usize::MAX);
        check_offsets(offsets, entries, HEADER).map_err(|error| rows_error(error, &path))?;
        let end = |row: usize| u64::from_le_bytes(offsets[row + 1]) as usize;
        let (mut entry, mut row, mut bytes) = (0, 0, Vec::new());
        while entry < entries {
            bytes.clear();
            let want = 4 * PIECE.min(entries - entry) as u64;
            read_all(&mut reader, &mut bytes, want).map_err(|reason| stream_error(want, reason))?;
            piece.clear();
            for target in bytes.chunks_exact(4) {
                let target = Vertex::from_le_bytes([target[0], target[1], target[2], target[3]]);
                if u64::from(target) >= header.vertices {
                    let (byte, vertices) = (size + 4 * piece.len() as u64, header.vertices as usize);
                    return Err(rows_error(RowsError::Target { byte, entry, target: target.into(), vertices }, &path));
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
            tick.at(source.consumed.load(Ordering::Relaxed));
            if (bytes.len() as u64) < want {
                break;
            }
        }
    }
    // Incoming edges are skipped.
    size += std::io::copy(&mut reader, &mut std::io::sink()).map_err(|reason| stream_error(0, reason))?;
    header.check(size).map_err(fail)?;
    tick.end();
    Ok((header.vertices, listing(header)))
}
