//! Graph files for the search runtime [`socbfs`]: readers, writers, generators, and the five checks of Graph500.
//!
//! [`read`] turns a graph file of any [`Format`], compressed or not, into an [`EdgeList`]; [`write()`] writes one. Text is parsed block by
//! block, in parallel, while the next blocks are read and decompressed. Allocations grow with the data that has been read, never with what
//! a header announces.

mod adjacency;
mod archive;
mod damage;
mod dimacs;
mod edge_list;
mod error;
mod fill;
mod format;
mod gap;
pub mod generate;
mod graph500;
mod lines;
mod matrix_market;
mod metis;
mod recognise;
mod scan;
mod shared;
mod source;
mod tallies;
mod text;
mod tokens;
pub mod validate;
mod write;

// The tests write compressed files.
#[cfg(test)]
#[cfg(feature = "compression")]
mod tests;

use std::path::Path;

pub use error::{Fault, InputError, Place};
pub use format::{Compression, Format, UnknownFormat};
pub use generate::{GenerateError, Generator};
pub use recognise::Recognised;
pub use shared::{Chosen, FilePart, OpenFile, Whole};
pub use source::READING;
pub use tallies::Tallies;
pub use validate::{Check, ValidateError, Validated, Validator, Violation, validate, validate_forest};
pub use write::{WriteOptions, lines_of, write};

use self::adjacency::AdjacencyReader;
use self::edge_list::EdgeListReader;
use self::error::InFile;
use self::graph500::{EdgeFormat, Graph500Reader};
use self::metis::MetisReader;
use self::source::Source;
use self::text::TextReader;
use socbfs::graph::{EdgeList, Stopper};

/// Receives the progress of reading or writing from time to time, from any thread.
pub trait Progress: Sync {
    /// `done` of `total` bytes (reading) or entries (writing). `total` is 0 if it is not known (a pipe); calls from several threads may
    /// arrive out of order.
    fn update(&self, done: u64, total: u64);
}

impl<F: Fn(u64, u64) + Sync> Progress for F {
    fn update(&self, done: u64, total: u64) {
        self(done, total);
    }
}

/// Options of [`read`].
#[derive(Default)]
pub struct ReadOptions<'a> {
    /// The format, if the user named it; otherwise it is recognised.
    pub format: Option<Format>,
    /// Called with the number of bytes read so far.
    pub progress: Option<&'a dyn Progress>,
    /// Ends the reading early, with [`Fault::Stopped`], also while it waits for a pipe.
    pub stopper: Stopper,
}

/// Reads a graph file on the current rayon pool.
///
/// The format is the one in `options`; or else the one that the first bytes announce (`%%MatrixMarket`, `AdjacencyGraph`, `p sp`, `p tw`);
/// or else the one that the extension stands for; or else the only one that the content can be. A file that may be in two formats is
/// refused. The choice and its reason are logged.
///
/// # Errors
/// [`InputError`]; its text names the file, the line or byte, and a cure.
///
/// ```
/// use socbfs_io::{ReadOptions, read};
///
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("triangle.el");
/// std::fs::write(&file, "# a triangle\n0 1\n1 2\n2 0\n")?;
/// let edges = read(&file, &ReadOptions::default())?;
/// assert_eq!((edges.vertices(), edges.len()), (3, 3));
///
/// std::fs::write(&file, "0 1\n1 two\n")?;
/// let error = read(&file, &ReadOptions::default()).unwrap_err();
/// assert!(error.to_string().contains("triangle.el:2"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: &Path, options: &ReadOptions<'_>) -> Result<EdgeList, InputError> {
    let read = Source::open(path, &options.stopper).and_then(|source| read_from(source, options));
    // A failed read and what follows from it is no fault of the file if the reading was stopped.
    read.map_err(|fault| if options.stopper.is_stopped() { Fault::Stopped.into() } else { fault }).in_file(path)
}

fn read_from(source: Source, options: &ReadOptions<'_>) -> Result<EdgeList, Box<Fault>> {
    let path = source.path.clone();
    let Recognised { format, compression, reason, by_structure } = recognise::recognise(&source, options.format)?;
    log::info!("{}: read as {format} ({compression}), {reason}", path.display());
    let progress = options.progress;
    let edges = match parser(format, by_structure) {
        Some(mut parser) => text::read(source, &mut *parser, progress)?,
        None => gap::read(source, progress)?,
    };
    log::info!("{}: {} vertices, {} entries", path.display(), edges.vertices(), edges.len());
    Ok(edges)
}

/// The parser of a format that is read in sequence; `None` for GAP's `.sg`, which has a reader of its own.
fn parser(format: Format, by_structure: bool) -> Option<Box<dyn TextReader>> {
    Some(match format {
        Format::EdgeListText => Box::new(EdgeListReader::new(by_structure)),
        Format::MatrixMarket => Box::new(matrix_market::reader()),
        Format::Dimacs => Box::new(dimacs::reader()),
        Format::Metis => Box::new(MetisReader::default()),
        Format::Ligra => Box::new(AdjacencyReader::ligra()),
        Format::Rodinia | Format::Parboil => Box::new(AdjacencyReader::rodinia()),
        Format::GapSg => return None,
        Format::Graph500Packed => Box::new(Graph500Reader::new(EdgeFormat::Packed)),
        Format::Graph500Int64 => Box::new(Graph500Reader::new(EdgeFormat::Int64)),
    })
}

/// Determines the format of a file without reading all of it (unless the file is binary and its name stands for no format).
///
/// # Errors
/// As [`read`], as far as they concern opening the file and its format.
pub fn recognise(path: &Path, format: Option<Format>) -> Result<Recognised, InputError> {
    Source::open(path, &Stopper::default()).and_then(|source| recognise::recognise(&source, format)).in_file(path)
}
