//! Searches over grids of free and blocked cells: occupancy maps, mazes, images. There is no graph: free cells are bits, and the cells
//! that a level reaches are found by shifts and masks of whole words.
//!
//! Bits lie in strips of 32 columns. Within a strip, the word of each row follows that of the row before, so 16 rows of a strip (a *tile*,
//! 512 cells) are one vector of 64 bytes. A visit of a tile runs the wave for many levels in registers (`wave`), and what then stands on
//! its edges decides which tiles are visited next (`tiles`): docs/grids.md describes the method.
//!
//! Space: a quarter of a byte per cell for two bitmaps, 0.4 for the edges of tiles, and the distances (2 bytes, or 4 from the first search
//! on in which a path is longer than 65,533 steps, and 0.8 for edges then); on request a byte for steps and 4 for sources. Rows are padded
//! by up to 64 cells.

mod answers;
mod distances;
mod lanes;
mod search;
#[cfg(test)]
mod tests;
mod tiles;
mod wave;

pub use answers::{GridPath, NO_STEP, STAY};
pub use search::{Distances, GridOptions, GridOutcome, GridSearch, GridUntil};

use std::ops::Range;

use socbfs::{
    SimdError,
    memory::{OutOfMemory, Slab},
};

/// Rows of a tile.
const ROWS: usize = 16;
/// Columns of a tile: the bits of a word.
const COLUMNS: usize = 32;
/// Tiles of empty cells around the grid, so that every tile has neighbours.
const BORDER: usize = 1;

/// A cell of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct Cell {
    /// The row, from 0 at the top.
    pub row: usize,
    /// The column, from 0 on the left.
    pub column: usize,
}

impl Cell {
    /// The cell at `row` and `column`.
    pub fn new(row: usize, column: usize) -> Self {
        Self { row, column }
    }
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}, {})", self.row, self.column)
    }
}

/// To which free cells a step may lead. A step of either kind counts as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Connectivity {
    /// Up, down, left, right.
    #[default]
    Four,
    /// Diagonal steps as well, also between two blocked cells.
    Eight,
    /// Diagonal steps only where both cells beside them are free: a robot of some width does not cut corners.
    EightAroundCorners,
}

/// A reason why a grid can't be made or searched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// The grid has no cell, or too many.
    #[error("a grid of {rows} by {columns} cells: there must be at least one cell and, with some padding, fewer than 2^32")]
    Shape {
        /// Rows asked for.
        rows: usize,
        /// Columns asked for.
        columns: usize,
    },
    /// An array does not have one entry per cell.
    #[error("{given} values are given, {wanted} are needed, one for each cell")]
    Length {
        /// Its length.
        given: usize,
        /// The number of cells.
        wanted: usize,
    },
    /// A value is neither that of a free cell nor that of a blocked one.
    #[error("cell {cell} (row, column) is {value}, and 1 is free and 0 blocked: give what is free (in an occupancy grid of ROS, 0 to 19)")]
    Value {
        /// The first such cell.
        cell: Cell,
        /// Its value.
        value: u8,
    },
    /// A cell lies outside of the grid.
    #[error("cell {cell} (row, column) lies outside of the grid of {rows} by {columns} cells")]
    Outside {
        /// The cell.
        cell: Cell,
        /// Rows of the grid.
        rows: usize,
        /// Columns of the grid.
        columns: usize,
    },
    /// The grid was replaced by one of another shape.
    #[error("the grid was replaced by one of {rows} by {columns} cells, another shape: make a new search for it")]
    Replaced {
        /// Rows of the new grid.
        rows: usize,
        /// Columns of the new grid.
        columns: usize,
    },
    /// A source or the target is not free.
    #[error("cell {0} (row, column) is blocked, so no search begins or ends there: set it free, or leave it out")]
    Blocked(Cell),
    /// There is no source.
    #[error("a search needs at least one source")]
    NoSource,
    /// A [`Stopper`](socbfs::graph::Stopper) or the deadline ended the search before it was done.
    #[error("the search was stopped before it finished")]
    Stopped,
    /// Threads could not be started or bound.
    #[error("{0}")]
    Threads(String),
    /// The CPU has no such vector instructions.
    #[error(transparent)]
    Simd(#[from] SimdError),
    /// The system refused memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// Where cells, words and tiles of a grid lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    rows: usize,
    columns: usize,
    /// Strips of [`COLUMNS`] columns, without the border.
    strips: usize,
    /// Tiles of a strip, without the border.
    height: usize,
}

impl Shape {
    fn new(rows: usize, columns: usize) -> Result<Self, GridError> {
        let shape = Self { rows, columns, strips: columns.div_ceil(COLUMNS), height: rows.div_ceil(ROWS) };
        // Cells, those of the padding and the border included, are numbered by u32.
        let padded = (columns as u128 + 3 * COLUMNS as u128).saturating_mul(rows as u128 + 3 * ROWS as u128);
        if rows == 0 || columns == 0 || padded >= 1 << 32 {
            return Err(GridError::Shape { rows, columns });
        }
        Ok(shape)
    }

    /// Tiles of a strip, and of its border: from a tile to its neighbour on the right.
    fn pitch(self) -> usize {
        self.height + 2 * BORDER
    }

    /// Tiles, those of the border included.
    fn tiles(self) -> usize {
        (self.strips + 2 * BORDER) * self.pitch()
    }

    /// Words of a bitmap.
    fn words(self) -> usize {
        self.tiles() * ROWS
    }

    /// The tile of `cell`.
    fn tile(self, cell: Cell) -> usize {
        (cell.column / COLUMNS + BORDER) * self.pitch() + cell.row / ROWS + BORDER
    }

    /// A number below 4 that differs from those of the eight tiles around.
    fn colour(self, tile: usize) -> usize {
        tile % self.pitch() % 2 + tile / self.pitch() % 2 * 2
    }

    /// The word of `cell`, and its bit.
    fn place(self, cell: Cell) -> (usize, u32) {
        (self.tile(cell) * ROWS + cell.row % ROWS, 1 << (cell.column % COLUMNS))
    }

    /// Cells from a row to the next in arrays of distances: at least one more than there are columns, so that the last column has no
    /// neighbour on its right, and no multiple of 512 bytes, which would map the rows of a tile to the same few lines of a cache.
    fn line(self) -> usize {
        let strips = self.columns / COLUMNS + 1;
        (strips + usize::from(strips % 8 == 0)) * COLUMNS
    }

    /// Cells before the first in arrays of distances: a row of padding, and some columns.
    fn first(self) -> usize {
        self.line() + COLUMNS
    }

    /// Cells of an array of distances: those of all tiles, and the padding before and after.
    fn padded(self) -> usize {
        self.line() * self.height * ROWS + 2 * self.first()
    }

    fn check(self, cell: Cell) -> Result<Cell, GridError> {
        if cell.row < self.rows && cell.column < self.columns {
            return Ok(cell);
        }
        Err(GridError::Outside { cell, rows: self.rows, columns: self.columns })
    }
}

/// A grid of cells, each free or blocked.
///
/// ```
/// use socbfs_algo::grid::{Cell, Grid, GridOptions, GridSearch};
///
/// // A wall with a gap: #####.##
/// let mut grid = Grid::free(100, 80)?;
/// grid.fill(50..51, 0..80, false)?;
/// grid.set(Cell::new(50, 70), true)?;
/// let mut search = GridSearch::new(grid, &GridOptions::default())?;
/// search.run(&[Cell::new(0, 0)])?;
/// assert_eq!(search.distance(Cell::new(99, 0)), Some(70 + 99 + 70));
/// search.grid_mut().set(Cell::new(50, 70), false)?;
/// search.run(&[Cell::new(0, 0)])?;
/// assert_eq!(search.distance(Cell::new(99, 0)), None);
/// # Ok::<(), socbfs_algo::grid::GridError>(())
/// ```
#[derive(Debug)]
pub struct Grid {
    shape: Shape,
    /// A bit for each free cell.
    free: Slab<u32>,
}

impl Grid {
    /// A grid of free cells.
    ///
    /// # Errors
    /// [`GridError::Shape`] and [`GridError::Memory`].
    pub fn free(rows: usize, columns: usize) -> Result<Self, GridError> {
        let mut grid = Self::blocked(rows, columns)?;
        grid.fill(0..rows, 0..columns, true)?;
        Ok(grid)
    }

    /// A grid of blocked cells.
    ///
    /// # Errors
    /// As [`Grid::free`].
    pub fn blocked(rows: usize, columns: usize) -> Result<Self, GridError> {
        let shape = Shape::new(rows, columns)?;
        Ok(Self { shape, free: Slab::zeroed(shape.words(), "the cells of a grid")? })
    }

    /// A grid whose cells are free where `free` is 1, and blocked where it is 0, row by row.
    ///
    /// # Errors
    /// As [`Grid::free`], and [`GridError::Length`] and [`GridError::Value`].
    pub fn from_cells(rows: usize, columns: usize, free: &[u8]) -> Result<Self, GridError> {
        let mut grid = Self::blocked(rows, columns)?;
        grid.assign(free)?;
        Ok(grid)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.shape.columns
    }

    /// Whether `cell` is free. Cells outside of the grid are not.
    pub fn is_free(&self, cell: Cell) -> bool {
        self.shape.check(cell).is_ok_and(|cell| {
            let (word, bit) = self.shape.place(cell);
            self.free[word] & bit != 0
        })
    }

    /// Number of free cells.
    pub fn free_cells(&self) -> u64 {
        ones(&self.free)
    }

    /// Makes `cell` free or blocked.
    ///
    /// # Errors
    /// [`GridError::Outside`].
    pub fn set(&mut self, cell: Cell, free: bool) -> Result<(), GridError> {
        let (word, bit) = self.shape.place(self.shape.check(cell)?);
        if free {
            self.free[word] |= bit;
        } else {
            self.free[word] &= !bit;
        }
        Ok(())
    }

    /// Makes all cells of a rectangle free or blocked.
    ///
    /// # Errors
    /// [`GridError::Outside`].
    pub fn fill(&mut self, rows: Range<usize>, columns: Range<usize>, free: bool) -> Result<(), GridError> {
        if rows.is_empty() || columns.is_empty() {
            return Ok(());
        }
        self.shape.check(Cell::new(rows.end - 1, columns.end - 1))?;
        for strip in columns.start / COLUMNS..columns.end.div_ceil(COLUMNS) {
            let (begin, end) = (columns.start.saturating_sub(strip * COLUMNS), (columns.end - strip * COLUMNS).min(COLUMNS));
            let bits = (u32::MAX >> (COLUMNS - end)) & (u32::MAX << begin);
            let (first, _) = self.shape.place(Cell::new(rows.start, strip * COLUMNS));
            for word in &mut self.free[first..first + rows.len()] {
                *word = if free { *word | bits } else { *word & !bits };
            }
        }
        Ok(())
    }

    /// Makes the cells those of `other`, without allocating.
    ///
    /// # Errors
    /// [`GridError::Replaced`] if that grid has another shape.
    pub fn copy_from(&mut self, other: &Self) -> Result<(), GridError> {
        if self.shape != other.shape {
            return Err(GridError::Replaced { rows: other.rows(), columns: other.columns() });
        }
        self.free.copy_from_slice(&other.free);
        Ok(())
    }

    /// Makes cells free where `free` is 1, and blocks those where it is 0, row by row.
    ///
    /// # Errors
    /// [`GridError::Length`], and [`GridError::Value`] for any other value: nothing is changed then.
    pub fn assign(&mut self, free: &[u8]) -> Result<(), GridError> {
        let Shape { rows, columns, .. } = self.shape;
        if free.len() != rows * columns {
            return Err(GridError::Length { given: free.len(), wanted: rows * columns });
        }
        for (row, cells) in free.chunks_exact(columns).enumerate() {
            if cells.iter().fold(0, |all, &cell| all | cell) > 1 {
                let column = cells.iter().position(|&cell| cell > 1).unwrap_or_default();
                return Err(GridError::Value { cell: Cell::new(row, column), value: cells[column] });
            }
        }
        for (row, cells) in free.chunks_exact(columns).enumerate() {
            for (strip, cells) in cells.chunks(COLUMNS).enumerate() {
                let (word, _) = self.shape.place(Cell::new(row, strip * COLUMNS));
                self.free[word] = pack(cells);
            }
        }
        Ok(())
    }

    /// The grid with the cells blocked, too, to which at most `radius` steps lead from a blocked cell, diagonal ones included: for a robot
    /// with this radius, whose circle the square of these steps contains. The search is that of `options`, from the blocked cells beside
    /// free ones.
    ///
    /// # Errors
    /// As [`GridSearch::new`] and [`GridSearch::run`].
    pub fn inflated(&self, radius: u32, options: &GridOptions) -> Result<Self, GridError> {
        let cells =
            |rows: Range<usize>, columns: Range<usize>| rows.flat_map(move |row| columns.clone().map(move |column| Cell::new(row, column)));
        let all = || cells(0..self.rows(), 0..self.columns());
        let near = |at: usize| at.saturating_sub(1)..at + 2;
        let is_edge = |cell: &Cell| !self.is_free(*cell) && cells(near(cell.row), near(cell.column)).any(|cell| self.is_free(cell));
        let edge: Vec<Cell> = all().filter(is_edge).collect();
        let mut inflated = Self::free(self.rows(), self.columns())?;
        all().filter(|&cell| !self.is_free(cell)).try_for_each(|cell| inflated.set(cell, false))?;
        if !edge.is_empty() {
            let options = GridOptions { connectivity: Connectivity::Eight, ..options.clone() };
            let mut search = GridSearch::new(Self::free(self.rows(), self.columns())?, &options)?;
            search.run_until(&edge, GridUntil { depth: Some(radius), target: None })?;
            all().filter(|&cell| search.distance(cell).is_some()).try_for_each(|cell| inflated.set(cell, false))?;
        }
        Ok(inflated)
    }
}

/// Number of bits set.
fn ones(words: &[u32]) -> u64 {
    words.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// A bit for each of up to 32 bytes, set where the byte is not 0.
#[inline]
fn pack(cells: &[u8]) -> u32 {
    if let Ok(cells) = <&[u8; COLUMNS]>::try_from(cells) {
        // Eight bytes at a time: 0x01 where a byte is set; the multiplication gathers these bits in the top byte.
        let eight = |at: usize| {
            let bytes = u64::from_le_bytes(std::array::from_fn(|i| u8::from(cells[at + i] != 0)));
            (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
        };
        return eight(0) | eight(8) << 8 | eight(16) << 16 | eight(24) << 24;
    }
    cells.iter().enumerate().fold(0, |word, (i, &cell)| word | u32::from(cell != 0) << i)
}
