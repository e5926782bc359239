//! Where results go.

use std::{
    io::{self, BufWriter, IsTerminal as _, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{error::Failure, shown};
use crate::{
    files::AtomicFile,
    report::{
        figures::{self, COLOURS, Document, PLAIN},
        html,
    },
};

/// Prints a result on standard output.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    to_stdout(|out| out.write_all(shown::text(text).as_bytes()))
}

/// Prints documents, in colours on a terminal.
pub(super) fn print_documents(documents: &[Document]) -> Result<(), Failure> {
    let colours = io::stdout().is_terminal();
    let text: String = documents.iter().map(|document| figures::text(document, colours)).collect();
    if !colours {
        return print(&text);
    }
    let mut safe = shown::text(&text).into_owned();
    for colour in COLOURS.into_iter().chain([PLAIN]) {
        safe = safe.replace(&*shown::text(colour), colour);
    }
    to_stdout(|out| out.write_all(safe.as_bytes()))
}

/// Writes the page of `record`.
pub(super) fn write_page(output: Output, record: &impl Serialize) -> Result<(), Failure> {
    let record = value(record)?;
    let document = figures::document("this run", &record).map_err(|error| Failure::because("", &error))?;
    output.finish(|out| out.write_all(html::page(&[document]).as_bytes()))
}

/// A record as JSON text.
pub(super) fn value(record: &impl Serialize) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(record).map_err(|error| Failure::because("can't write JSON", &error))
}

/// Writes `report` as JSON if a file is named, and prints it as text unless the JSON goes to standard output.
pub(super) fn publish(json: Option<Output>, report: &impl Serialize, words: impl FnOnce() -> String) -> Result<(), Failure> {
    let in_place = matches!(json, Some(Output::Stdout));
    let written = json.map_or(Ok(()), |json| {
        json.finish(|out| {
            serde_json::to_writer(&mut *out, report)?;
            out.write_all(b"\n")
        })
    });
    both(written, if in_place { Ok(()) } else { print(&words()) })
}

/// The result of two outputs that were both tried: the first error is returned, the second one is printed.
pub(super) fn both(first: Result<(), Failure>, second: Result<(), Failure>) -> Result<(), Failure> {
    if let (Err(_), Err(second)) = (&first, &second) {
        super::tell(second);
    }
    first.and(second)
}

fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    write(&mut out).and_then(|()| out.flush()).map_err(|error| Failure::stdout(&error))
}

/// A result that goes to a file or, named `-`, to standard output. It is opened before the work begins, so that a misspelt path does not
/// cost hours of work. The file exists only when it is complete.
#[derive(Debug)]
pub(super) enum Output {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf, AtomicFile),
}

impl Output {
    /// Opens `path`, `-` for standard output.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Ok(Self::Stdout);
        }
        match AtomicFile::create(path) {
            Ok(file) => Ok(Self::File(path.to_owned(), file)),
            Err(error) => Err(Failure::because(&format!("can't write {}", path.display()), &error).cure(match error.kind() {
                // It is an input, or another output.
                io::ErrorKind::ResourceBusy => "give the output a name of its own",
                _ => "name a file in a folder that exists and that you may write to",
            })),
        }
    }

    /// A name of its own for the file that is written, by which other ranks can open it; `None` where there is none.
    #[cfg(feature = "mpi")]
    pub(super) fn named(&mut self) -> Option<PathBuf> {
        match self {
            Self::Stdout => None,
            Self::File(_, file) => file.named(),
        }
    }

    /// Lets `write` write everything and puts the file in its place.
    pub(super) fn finish(self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        match self {
            Self::Stdout => to_stdout(write),
            Self::File(path, file) => {
                let mut buffered = BufWriter::new(file);
                write(&mut buffered)
                    .and_then(|()| buffered.into_inner().map_err(io::IntoInnerError::into_error)?.commit())
                    .map_err(|error| Failure::because(&format!("can't write {}", path.display()), &error))
            }
        }
    }
}
