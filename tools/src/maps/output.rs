//! Distances as pictures and arrays.

use std::{
    io::{self, Write},
    path::Path,
};

use socbfs::NONE;
use socbfs_algo::grid::{Cell, Distances, GridSearch};

use super::{Fault, MapError};
use crate::report::npy;

/// The extension of `path`, if it is one of `known`.
///
/// # Errors
/// [`MapError`] if it is not.
pub fn kind_of(path: &Path, known: &[&'static str]) -> Result<&'static str, MapError> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    known.iter().copied().find(|&known| known == extension).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|known| format!(".{known}")).collect();
        let cure = format!("end its name with {}, which determines the format", names.join(" or "));
        Fault::new("no known format for this output", cure).at(path)
    })
}

/// The distances of the last search, row by row; [`NONE`] where it did not reach a cell.
pub fn levels(search: &GridSearch) -> Vec<u32> {
    let mut levels = vec![0; search.grid().rows() * search.grid().columns()];
    search.levels_into(&mut levels);
    levels
}

/// Writes the distances of the last search as a NumPy array of 16 bits, or 32 if it went so deep; the largest number where it did not reach
/// a cell.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_distances(out: &mut dyn Write, search: &GridSearch) -> io::Result<()> {
    let (shape, line) = ([search.grid().rows(), search.grid().columns()], search.line());
    match search.distances() {
        Distances::Short(cells) => write_array(out, "<u2", shape, cells, line, u16::to_le_bytes),
        Distances::Long(cells) => write_array(out, "<u4", shape, cells, line, u32::to_le_bytes),
    }
}

/// Writes a NumPy array of `shape`, rows and columns. The rows of `cells` follow each other at a distance of `line`.
///
/// # Errors
/// Errors of writing to `out`.
pub fn write_array<T: Copy, const N: usize>(
    out: &mut dyn Write,
    descr: &str,
    shape: [usize; 2],
    cells: &[T],
    line: usize,
    bytes: fn(T) -> [u8; N],
) -> io::Result<()> {
    out.write_all(&npy::head(descr, &shape.map(|length| length as u64)))?;
    cells.chunks(line).try_for_each(|row| row[..shape[1]].iter().try_for_each(|&cell| out.write_all(&bytes(cell))))
}

/// The deepest level that a PGM of 16 bits holds: the largest number means "not reached".
const DEEPEST: u32 = u16::MAX as u32 - 1;
/// A smaller map is drawn with several pixels for a cell, until the picture has about this width or height.
const LEAST: usize = 512;
/// Colours of a PNG before those of distances: blocked cells, free ones that were not reached, the path and the sources.
pub(super) const OTHERS: [[u8; 3]; 3] = [[0, 0, 0], [150, 150, 150], [225, 35, 45]];
/// Number of colours of distances.
const SHADES: usize = 256 - OTHERS.len();

/// Writes `levels`, those of `search`, as a picture. A PGM has the distances themselves, as numbers of 16 bits, and 65535 where no distance
/// is known. A PNG has colours: from light at the sources to dark far away, with `path` and the sources in red, blocked cells in black and
/// cells that were not reached in grey.
///
/// # Errors
/// Errors of writing to `out`, and a level that is too deep for a PGM.
pub fn write_picture(out: &mut dyn Write, kind: &str, search: &GridSearch, levels: &[u32], path: &[Cell]) -> io::Result<()> {
    let (rows, columns) = (search.grid().rows(), search.grid().columns());
    let deepest = levels.iter().copied().filter(|&level| level != NONE).max().unwrap_or(0);
    if kind == "pgm" {
        if deepest > DEEPEST {
            return Err(io::Error::other(format!("a PGM has numbers up to {DEEPEST}, and there are distances up to {deepest}: use .npy")));
        }
        write!(out, "P5\n{columns} {rows}\n65535\n")?;
        return levels.iter().try_for_each(|&level| out.write_all(&(level.min(u16::MAX.into()) as u16).to_be_bytes()));
    }
    let scale = (LEAST / rows.max(columns)).max(1);
    let size = |cells: usize| u32::try_from(cells * scale).map_err(io::Error::other);
    let mut encoder = png::Encoder::new(&mut *out, size(columns)?, size(rows)?);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(OTHERS.into_iter().chain((0..SHADES).map(shade)).flatten().collect::<Vec<u8>>());
    let mut writer = encoder.write_header()?;
    let mut pixels = writer.stream_writer()?;
    let share = |level: u32| u64::from(level) * (SHADES as u64 - 1) / u64::from(deepest.max(1));
    let shade = |level: u32| (OTHERS.len() as u64 + share(level)) as u8;
    let mut line = vec![0; columns];
    let mut marked: Vec<Cell> = path.to_vec();
    marked.sort_unstable();
    let mut marked = marked.into_iter().peekable();
    for (row, levels) in levels.chunks_exact(columns).enumerate() {
        for (column, (pixel, &level)) in line.iter_mut().zip(levels).enumerate() {
            *pixel = match level {
                0 => 2,
                NONE => u8::from(search.grid().is_free(Cell::new(row, column))),
                level => shade(level),
            };
        }
        while let Some(cell) = marked.next_if(|cell| cell.row == row) {
            line[cell.column] = 2;
        }
        let wide: Vec<u8> = line.iter().flat_map(|&pixel| std::iter::repeat_n(pixel, scale)).collect();
        (0..scale).try_for_each(|_| pixels.write_all(&wide))?;
    }
    pixels.finish()?;
    Ok(writer.finish()?)
}

/// The colour of a distance. Equal steps of distance look equally different: in Oklab (<https://bottosson.github.io/posts/oklab>) lightness
/// falls and the hue turns evenly, from yellow to blue.
fn shade(step: usize) -> [u8; 3] {
    let share = step as f64 / (SHADES - 1) as f64;
    let (light, chroma, hue) = (0.96 - 0.56 * share, 0.1 + 0.03 * share, (105.0 + 165.0 * share).to_radians());
    let (a, b) = (chroma * hue.cos(), chroma * hue.sin());
    let [l, m, s] = [[0.396_337_777_4, 0.215_803_757_3], [-0.105_561_345_8, -0.063_854_172_8], [-0.089_484_177_5, -1.291_485_548]]
        .map(|[of_a, of_b]| (light + of_a * a + of_b * b).powi(3));
    let linear = [
        [4.076_741_662_1, -3.307_711_591_3, 0.230_969_929_2],
        [-1.268_438_004_6, 2.609_757_401_1, -0.341_319_396_5],
        [-0.004_196_086_3, -0.703_418_614_7, 1.707_614_701],
    ];
    linear.map(|[of_l, of_m, of_s]| {
        let value = (of_l * l + of_m * m + of_s * s).clamp(0.0, 1.0);
        let value = if value <= 0.003_130_8 { 12.92 * value } else { 1.055 * value.powf(1.0 / 2.4) - 0.055 };
        (255.0 * value).round() as u8
    })
}
