//! Errors of graph files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::{Compression, Format};
use crate::files;
use crate::graph::GraphError;
use crate::memory::CURE;
use crate::words;

/// Why a graph file could not be read or written. The text names the file, the place in it, and a cure.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// The file can't be opened.
    #[error("{}: can't open it: {reason}{}", .path.display(), generator(.path, .reason).unwrap_or_else(|| cure(.reason).to_owned()))]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// The path is a folder.
    #[error("{}: is a directory; name a graph file in it", .path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{}: the file is empty, so it holds no graph in any format; was it cut off while it was downloaded or written?", .path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Reading failed after the file was opened.
    #[error("{}: can't read it: {reason}{}", .path.display(), cure(.reason))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Another process wrote to the file while it was read.
    #[error("{}: it changed while it was read; wait until no program writes to it, or read a copy", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A [`Stopper`](crate::graph::Stopper) ended the reading.
    #[error("{}: the reading was stopped before it finished", .path.display())]
    Stopped {
        /// The file.
        path: PathBuf,
    },
    /// The compressed data is damaged, truncated, or needs more memory than is granted.
    #[error("{}: can't decompress it as {compression}: {reason}", .path.display())]
    Decompress {
        /// The file.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
        /// What is wrong with the data, and the cure.
        reason: io::Error,
    },
    /// Neither the name nor the content proves a format.
    #[error(
        "{}: can't determine the format: {reason}; name it with --format, one of {}, or by the ending of its name, as in .el",
        .path.display(),
        Format::names()
    )]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// What the content shows instead.
        reason: String,
    },
    /// The format, or this variant of it, is not supported or does not suit breadth-first search.
    #[error("{}: {reason}", .path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Why, and what to do instead.
        reason: String,
    },
    /// The content breaks the format.
    #[error("{}{place} {reason}{}{cure}", .path.display(), if .cure.is_empty() { "" } else { "; " })]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Place of the fault.
        place: Place,
        /// What is wrong.
        reason: String,
        /// What to do about it (may be empty).
        cure: String,
    },
    /// The graph is too large, or an edge names a vertex that the graph does not have.
    #[error("{}: {reason}", .path.display())]
    Graph {
        /// The file.
        path: PathBuf,
        /// The error of the graph.
        reason: GraphError,
    },
    /// There is not enough memory for the edges.
    #[error("{}: no memory for {} of the graph; {CURE}", .path.display(), words::bytes(*.bytes))]
    OutOfMemory {
        /// The file.
        path: PathBuf,
        /// Bytes that were requested.
        bytes: u64,
    },
    /// Writing failed; nothing was left at the path.
    #[error("{}: can't write it: {reason}{}", .path.display(), write_cure(.reason))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
}

impl InputError {
    /// Whether the cause is a lack of memory.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::OutOfMemory { .. } | Self::Graph { reason: GraphError::OutOfMemory(_), .. } => true,
            Self::Open { reason, .. } | Self::Read { reason, .. } | Self::Decompress { reason, .. } => {
                reason.kind() == io::ErrorKind::OutOfMemory
            }
            _ => false,
        }
    }
}

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Byte(u64),
    /// The file as a whole.
    Whole,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(out, ":{line}:"),
            Self::Byte(byte) => write!(out, ": byte {byte}:"),
            Self::Whole => write!(out, ":"),
        }
    }
}

/// Advice for an error of writing.
fn write_cure(error: &io::Error) -> String {
    files::write_cure(error).map_or_else(|| cure(error).to_owned(), |cure| format!("; {cure}"))
}

/// Advice if a missing file has the name of a generator.
fn generator(path: &Path, error: &io::Error) -> Option<String> {
    let (name, size) = *super::generate::NAMES.iter().find(|(name, _)| path.as_os_str() == *name)?;
    (error.kind() == io::ErrorKind::NotFound).then(|| format!("; the command line names the generator {name}:{size}"))
}

/// Advice for an error of the system.
fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; check the spelling, and that the folder exists",
        io::ErrorKind::PermissionDenied => "; change its permissions (`ls -l` shows them), or run as its owner",
        io::ErrorKind::ReadOnlyFilesystem => "; write to another folder",
        _ => "",
    }
}

/// A fault that a parser found; the caller adds the file and turns the offset into a line or byte.
#[derive(Debug)]
pub(super) enum Fault {
    /// At an offset (in bytes) of the text that the parser was given.
    At { offset: usize, reason: String, cure: String },
    /// In the file as a whole.
    Whole { reason: String, cure: String },
    /// Not supported.
    Unsupported(String),
    /// More vertices than a graph can have.
    Graph(GraphError),
    /// No memory for this many bytes.
    Memory(u64),
}

impl Fault {
    #[cold]
    pub(super) fn at(offset: usize, reason: impl Into<String>) -> Box<Self> {
        Box::new(Self::At { offset, reason: reason.into(), cure: String::new() })
    }

    #[cold]
    pub(super) fn whole(reason: impl Into<String>) -> Box<Self> {
        Box::new(Self::Whole { reason: reason.into(), cure: String::new() })
    }

    #[cold]
    pub(super) fn cure(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        if let Self::At { cure, .. } | Self::Whole { cure, .. } = &mut *self {
            *cure = text.into();
        }
        self
    }

    /// The same fault in a text that starts `by` bytes earlier.
    pub(super) fn shift(mut self: Box<Self>, by: usize) -> Box<Self> {
        if let Self::At { offset, .. } = &mut *self {
            *offset += by;
        }
        self
    }

    /// The error for the user; `place` turns an offset into a place.
    pub(super) fn into_error(self, path: PathBuf, place: impl FnOnce(usize) -> Place) -> InputError {
        match self {
            Self::At { offset, reason, cure } => InputError::Malformed { path, place: place(offset), reason, cure },
            Self::Whole { reason, cure } => InputError::Malformed { path, place: Place::Whole, reason, cure },
            Self::Unsupported(reason) => InputError::Unsupported { path, reason },
            Self::Graph(reason) => InputError::Graph { path, reason },
            Self::Memory(bytes) => InputError::OutOfMemory { path, bytes },
        }
    }
}
