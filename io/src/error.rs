//! Errors of graph files.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::damage::Damage;
use super::{Compression, Format};
use socbfs::files;
use socbfs::graph::GraphError;
use socbfs::memory::CURE;
use socbfs::words;

/// Why a graph file could not be read or written. The text names the file, the place in it, and a cure.
#[derive(Debug, thiserror::Error)]
#[error("{}{} {fault}", .path.display(), .fault.place())]
pub struct InputError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub fault: Box<Fault>,
}

impl InputError {
    /// Whether the cause is a lack of memory.
    pub fn is_out_of_memory(&self) -> bool {
        match &*self.fault {
            Fault::OutOfMemory(_) | Fault::Graph(GraphError::OutOfMemory(_)) => true,
            Fault::Open { reason, .. } | Fault::Read(reason) => reason.kind() == io::ErrorKind::OutOfMemory,
            _ => false,
        }
    }
}

/// Names the file in which there is a fault.
pub(super) trait InFile<T> {
    fn in_file(self, path: &Path) -> Result<T, InputError>;
}

impl<T> InFile<T> for Result<T, Box<Fault>> {
    fn in_file(self, path: &Path) -> Result<T, InputError> {
        self.map_err(|fault| InputError { path: path.to_owned(), fault })
    }
}

/// What is wrong with a graph file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file can't be opened.
    #[error("can't open it: {reason}{cure}")]
    Open {
        /// The system's error.
        reason: io::Error,
        /// What to do about it (may be empty).
        cure: String,
    },
    /// The path is a folder.
    #[error("is a directory; name a graph file in it")]
    Directory,
    /// The file is empty.
    #[error("the file is empty, so it holds no graph in any format; was it cut off while it was downloaded or written?")]
    Empty,
    /// Reading failed after the file was opened.
    #[error("can't read it: {}{}", .0, cure(.0))]
    Read(io::Error),
    /// Another process wrote to the file while it was read.
    #[error("it changed while it was read; wait until no program writes to it, or read a copy")]
    Changed,
    /// A [`Stopper`](socbfs::graph::Stopper) ended the reading.
    #[error("the reading was stopped before it finished")]
    Stopped,
    /// The compressed data is damaged, truncated, or needs more memory than is granted.
    #[error("can't decompress it as {compression}: {reason}")]
    Decompress {
        /// How it is compressed.
        compression: Compression,
        /// What is wrong with the data, and the cure.
        reason: String,
    },
    /// Neither the name nor the content proves a format. The text says what the content shows instead.
    #[error(
        "can't determine the format: {}; name it with --format, one of {}, or by the ending of its name, as in .el",
        .0,
        Format::names()
    )]
    Unrecognised(String),
    /// The format, or this variant of it, is not supported or does not suit breadth-first search. The text says why, and what to do
    /// instead.
    #[error("{0}")]
    Unsupported(String),
    /// The content breaks the format.
    #[error("{reason}{}{cure}", if .cure.is_empty() { "" } else { "; " })]
    Malformed {
        /// Place of the fault.
        place: Place,
        /// What is wrong.
        reason: String,
        /// What to do about it (may be empty).
        cure: String,
    },
    /// The graph is too large, or an edge names a vertex that the graph does not have.
    #[error("{0}")]
    Graph(GraphError),
    /// There is not enough memory for this many bytes of the graph.
    #[error("no memory for {} of the graph; {CURE}", words::bytes(*.0))]
    OutOfMemory(u64),
    /// Writing failed; nothing was left at the path.
    #[error("can't write it: {}{}", .0, write_cure(.0))]
    Write(io::Error),
}

/// An error of reading a stream, whose data may be damaged.
impl From<io::Error> for Box<Fault> {
    fn from(error: io::Error) -> Self {
        Self::new(match error.downcast::<Damage>() {
            Ok(Damage { compression, reason }) => Fault::Decompress { compression, reason },
            Err(error) => Fault::Read(error),
        })
    }
}

impl Fault {
    /// The fault of a file that can't be opened.
    pub(super) fn open(path: &Path, error: io::Error) -> Self {
        let reason = files::explained(path, error);
        // A missing file may have the name of a generator.
        let generator = super::generate::NAMES.iter().find(|(name, _)| path.as_os_str() == *name);
        let cure = match generator.filter(|_| reason.kind() == io::ErrorKind::NotFound) {
            Some((name, size)) => format!("; the command line names the generator {name}:{size}"),
            None => cure(&reason).to_owned(),
        };
        Self::Open { reason, cure }
    }

    /// A fault at an offset (in bytes) of the text that a parser was given.
    #[cold]
    pub(super) fn at(offset: usize, reason: impl Into<String>) -> Box<Self> {
        Box::new(Self::Malformed { place: Place::Byte(offset as u64), reason: reason.into(), cure: String::new() })
    }

    /// A fault of the file as a whole.
    #[cold]
    pub(super) fn whole(reason: impl Into<String>) -> Box<Self> {
        Box::new(Self::Malformed { place: Place::Whole, reason: reason.into(), cure: String::new() })
    }

    #[cold]
    pub(super) fn cure(mut self: Box<Self>, text: impl Into<String>) -> Box<Self> {
        if let Self::Malformed { cure, .. } = &mut *self {
            *cure = text.into();
        }
        self
    }

    /// The same fault in a text that starts `by` bytes earlier.
    pub(super) fn shift(self: Box<Self>, by: usize) -> Box<Self> {
        self.placed(|offset| Place::Byte(offset + by as u64))
    }

    /// The same fault, with the place that its offset stands for.
    pub(super) fn placed(mut self: Box<Self>, of: impl FnOnce(u64) -> Place) -> Box<Self> {
        if let Self::Malformed { place, .. } = &mut *self {
            if let Place::Byte(offset) = *place {
                *place = of(offset);
            }
        }
        self
    }

    /// Its place in the file.
    pub fn place(&self) -> Place {
        if let Self::Malformed { place, .. } = self { *place } else { Place::Whole }
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

/// Advice for an error of the system.
fn cure(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; check the spelling, and that the folder exists",
        io::ErrorKind::PermissionDenied => "; change its permissions (`ls -l` shows them), or run as its owner",
        io::ErrorKind::ReadOnlyFilesystem => "; write to another folder",
        _ => "",
    }
}
