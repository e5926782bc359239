//! The GAP Benchmark Suite's serialised graph (`.sg`, `src/writer.h` there), little-endian: a byte that is 1 for a directed
//! graph; the number of entries and of vertices (64 bits each); vertices + 1 offsets (64 bits); the neighbours (32 bits). A
//! directed graph has offsets and neighbours a second time, for incoming edges. An undirected graph lists every edge at both
//! ends. The header has 17 bytes, so nothing behind it is aligned.

use std::io::{Cursor, ErrorKind, Read};

use super::error::{Fault, Place};
use super::source::{Content, Source, read_all};
use super::text::Tick;
use super::{Compression, InputError, Progress};
use crate::graph::{EdgeList, Listing, RowBytes, RowsError, SerializedRows};

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
            return Err(Fault::at(0, format!("{} bytes are too few for the header of a GAP .sg file", bytes.len())));
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

    /// Bytes of a file with targets of `target` bytes, where they can be counted.
    fn size(self, target: u64) -> Option<u64> {
        let part = self.vertices.checked_add(1)?.checked_mul(8)?.checked_add(self.entries.checked_mul(target)?)?;
        part.checked_mul(if self.directed { 2 } else { 1 })?.checked_add(HEADER as u64)
    }

    /// The header against the size of the file (which [`Header::size`] must equal).
    fn check(self, size: u64) -> Result<(), Box<Fault>> {
        let Self { entries, vertices, .. } = self;
        match self.size(4) {
            Some(need) if need == size => Ok(()),
            _ if self.size(8) == Some(size) => Err(Box::new(Fault::Unsupported(
                "this is a weighted graph of GAP (.wsg); breadth-first search needs none: write it without weights with GAP's `converter -b`".into(),
            ))),
            Some(need) => Err(Fault::at(1, format!(
                "the header announces {vertices} vertices and {entries} entries, which makes {need} bytes, but the file has {size}"
            ))
            .cure(if need > size { "is it cut off?" } else { "is this a GAP .sg file?" })),
            None => Err(Fault::at(1, format!("the header announces {vertices} vertices and {entries} entries, more than any file can hold"))
                .cure("is this a GAP .sg file?")),
        }
    }
}

/// Do the bytes have to be a `.sg` file? Header, size and both ends of the offsets agree.
pub(super) fn proves(bytes: &[u8]) -> bool {
    let Ok(header) = Header::parse(bytes) else { return false };
    if header.check(bytes.len() as u64).is_err() {
        return false;
    }
    let last = HEADER + 8 * header.vertices as usize; // within the bytes, as just checked
    bytes[HEADER..HEADER + 8] == [0; 8] && bytes[last..last + 8] == header.entries.to_le_bytes()
}

/// Reads a source: a mapped file stays where it is.
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
            // Only what is there is allocated, whatever the header says; incoming edges are read past.
            let header = Header::parse(&head).map_err(fail)?;
            let half = Header { directed: false, ..header }.size(4).unwrap_or(u64::MAX);
            let no_memory = || InputError::OutOfMemory { path: path.clone(), bytes: half };
            if source.compression == Compression::None && source.size > 0 {
                // A file that could not be mapped: before gigabytes are read in vain, is it one that memory can hold?
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
    let listing = if header.directed { Listing::Unknown } else { Listing::BothDirections };
    let rows = SerializedRows::new(bytes, HEADER, header.vertices, header.entries).map_err(|error| match error {
        RowsError::Graph(reason) => InputError::Graph { path: path.clone(), reason },
        RowsError::Offset { byte, .. } | RowsError::Target { byte, .. } => InputError::Malformed {
            path: path.clone(),
            place: Place::Byte(byte),
            reason: error.to_string(),
            cure: "is the file damaged?".into(),
        },
        RowsError::TooShort { .. } => fail(Fault::whole(error.to_string())),
    })?;
    tick.end();
    Ok(EdgeList::from_rows(rows, listing))
}
