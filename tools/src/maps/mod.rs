//! Maps as files: which cells of a grid are free. Distances as pictures and arrays.
//!
//! A map is read whole, and nothing is allocated before the bytes that need it are known to be there: a header that lies costs nothing.
//! Only a PNG may hold more cells than bytes; their number has a limit.

mod image;
mod moving_ai;
mod npy;
mod output;
mod ros;

use std::{
    fmt::Display,
    path::{Path, PathBuf},
};

use socbfs::{
    files::{self, Kind},
    memory::check_available,
    words,
};
use socbfs_algo::grid::{Cell, Grid};

pub use output::{kind_of, levels, write_array, write_distances, write_picture};
use ros::Occupancy;

/// The largest file that is read: a cell is 2 bytes of a PGM at most, or of text, and a grid has fewer than 2^32 cells.
const MOST: u64 = 1 << 34;

/// What a map says of a cell.
const BLOCKED: u8 = 0;
const FREE: u8 = 1;
const UNKNOWN: u8 = 2;

/// A map.
#[derive(Debug)]
pub struct Map {
    /// Its free cells.
    pub grid: Grid,
    /// Name of its format.
    pub format: &'static str,
    /// Cells of which the map does not say whether they are free.
    pub unknown: u64,
    /// Where it lies (`None`: the format does not say it).
    pub frame: Option<Frame>,
}

/// Where a map of ROS lies in the world, whose axes are in metres. Row 0 of the image is at its top, and the origin at the bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// The side of a cell in metres.
    pub resolution: f64,
    /// The lower left corner, x and y in metres, and the angle by which the map is turned about it, counterclockwise in radians.
    pub origin: [f64; 3],
}

impl Frame {
    /// The middle of a cell of a map with this number of rows: x and y in metres.
    pub fn point(&self, cell: Cell, rows: usize) -> [f64; 2] {
        let [x, y, yaw] = self.origin;
        let (right, up) = ((cell.column as f64 + 0.5) * self.resolution, (rows as f64 - 0.5 - cell.row as f64) * self.resolution);
        [x + yaw.cos() * right - yaw.sin() * up, y + yaw.sin() * right + yaw.cos() * up]
    }

    /// The cell of a map with these rows and columns in which a point lies, if it lies in one.
    pub fn cell(&self, [x, y]: [f64; 2], rows: usize, columns: usize) -> Option<Cell> {
        let [left, bottom, yaw] = self.origin;
        let (x, y) = (x - left, y - bottom);
        // A point that is on a border but for its rounding is on it.
        let cells = |metres: f64| (metres / self.resolution + 1e-9).floor();
        let (right, up) = (cells(yaw.cos() * x + yaw.sin() * y), cells(yaw.cos() * y - yaw.sin() * x));
        let is_inside = (0.0..columns as f64).contains(&right) && (0.0..rows as f64).contains(&up);
        is_inside.then(|| Cell::new(rows - 1 - up as usize, right as usize))
    }
}

/// A reason why a map can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct MapError {
    /// The file, the line or byte if there is one, and what is wrong.
    message: String,
    cure: String,
}

impl MapError {
    /// What the user can do about it.
    pub fn cure(&self) -> &str {
        &self.cure
    }
}

/// What is wrong with the content of a file.
#[derive(Debug)]
struct Fault {
    /// ":LINE" or ", byte N" after the name of the file, or nothing.
    place: String,
    reason: String,
    cure: String,
}

impl Fault {
    fn new(reason: impl Display, cure: impl Display) -> Self {
        Self { place: String::new(), reason: reason.to_string(), cure: cure.to_string() }
    }

    /// In this line, from 1.
    fn in_line(line: usize, reason: impl Display, cure: impl Display) -> Self {
        Self { place: format!(":{line}"), ..Self::new(reason, cure) }
    }

    /// In the line of `text` that has the byte `at`.
    fn in_text(text: &[u8], at: usize, reason: impl Display, cure: impl Display) -> Self {
        let line = 1 + text[..at.min(text.len())].iter().filter(|&&byte| byte == b'\n').count();
        Self::in_line(line, reason, cure)
    }

    fn at_byte(at: usize, reason: impl Display, cure: impl Display) -> Self {
        Self { place: format!(", byte {at}"), ..Self::new(reason, cure) }
    }

    /// The file ends, or goes on, elsewhere than its header says.
    fn length(at: usize, what: impl Display, has: usize, needs: usize) -> Self {
        let cure = match has < needs {
            true => "the file was cut off: copy or save it again",
            false => "correct the size in the header, or remove what follows the cells",
        };
        Self::at_byte(at, format!("{what} need {needs} bytes, and {has} are there"), cure)
    }

    fn at(self, path: &Path) -> MapError {
        MapError { message: format!("{}{}: {}", path.display(), self.place, self.reason), cure: self.cure }
    }
}

/// The cells of a map, row by row: each is [`BLOCKED`], [`FREE`] or [`UNKNOWN`].
#[derive(Debug)]
struct Cells {
    format: &'static str,
    rows: usize,
    columns: usize,
    cells: Vec<u8>,
}

/// Reads the map at `path` in any of the formats, recognised by content (YAML: by the name of the file). Unknown cells are blocked unless
/// `unknown_is_free`. No output of this process may replace the file, nor an image that it names.
///
/// # Errors
/// [`MapError`].
pub fn read(path: &Path, unknown_is_free: bool) -> Result<Map, MapError> {
    let bytes = content(path, Kind::Stream)?;
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    let (image, cells, frame) = if is_yaml {
        let (image, occupancy) = Occupancy::parse(&bytes, path).map_err(|fault| fault.at(path))?;
        let image = path.parent().map_or_else(|| PathBuf::from(&image), |folder| folder.join(&image));
        let bytes = content(&image, Kind::Regular)?;
        let cells = image::read(&bytes, &occupancy).unwrap_or_else(|| Err(Fault::new("neither PGM nor PNG", IMAGES)));
        (image, cells.map(|cells| Cells { format: "ROS map", ..cells }), occupancy.frame)
    } else {
        (path.to_owned(), recognised(&bytes), None)
    };
    let Cells { format, rows, columns, mut cells } = cells.map_err(|fault| fault.at(&image))?;
    let mut unknown = 0;
    for cell in cells.iter_mut().filter(|cell| **cell == UNKNOWN) {
        (*cell, unknown) = (if unknown_is_free { FREE } else { BLOCKED }, unknown + 1);
    }
    let grid = Grid::from_cells(rows, columns, &cells);
    let grid = grid.map_err(|error| Fault::new(error, "cut the map into parts, or lower its resolution").at(&image))?;
    Ok(Map { grid, format, unknown, frame })
}

const IMAGES: &str = "convert the image: to PGM (`convert a.gif a.pgm` of ImageMagick) or PNG";

fn recognised(bytes: &[u8]) -> Result<Cells, Fault> {
    if let Some(cells) = image::read(bytes, &Occupancy::default()) {
        cells
    } else if bytes.starts_with(crate::report::npy::MAGIC) {
        npy::read(bytes)
    } else if bytes.starts_with(b"type") {
        moving_ai::read(bytes)
    } else if bytes.is_empty() {
        Err(Fault::new("the file is empty", "was it cut off while it was written? Save it again"))
    } else {
        let cure = "a map is a PGM (P2, P5), PNG or NumPy file, a MovingAI map, or the .yaml file of a ROS map";
        Err(Fault::new("the content is of no known format", cure))
    }
}

fn content(path: &Path, kind: Kind) -> Result<Vec<u8>, MapError> {
    let failed = |error| Fault::new(format!("can't read it: {error}"), "name a file that exists and that you may read").at(path);
    files::protect(path).map_err(failed)?;
    // The cells take a byte each beside the file, in which they have one at least.
    let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    room_for(size.min(MOST).saturating_mul(2)).map_err(|fault| fault.at(path))?;
    files::read(path, kind, MOST).map_err(failed)
}

fn no_memory(bytes: u64, reason: impl Display) -> Fault {
    Fault::new(format!("no memory for the {} of a map: {reason}", words::bytes(bytes)), "use a smaller map, or free some memory")
}

/// Refuses what does not fit the memory that is available.
fn room_for(bytes: u64) -> Result<(), Fault> {
    check_available(bytes, "a map").map_err(|error| no_memory(bytes, error.reason))
}

/// Room for `more` cells.
fn reserve(cells: &mut Vec<u8>, more: usize) -> Result<(), Fault> {
    cells.try_reserve(more).map_err(|error| no_memory(more as u64, error))
}

/// A number of rows or columns.
fn length(word: &[u8]) -> Option<usize> {
    let number: u32 = std::str::from_utf8(word).ok()?.parse().ok()?;
    usize::try_from(number).ok().filter(|&number| number > 0 && word[0] != b'+')
}

const LENGTH: &str = "it must be a number from 1 to 4294967295";

/// A word of a file, so that a message about it is short.
fn shown(word: &[u8]) -> String {
    format!("{:?}", words::cut(&String::from_utf8_lossy(word), 24))
}

#[cfg(test)]
mod tests;
