//! Grids and their searches.

use std::sync::Mutex;

use bfs::{search::Stopper, words::with_causes};
use socbfs_algo::grid::{Cell, Connectivity, Distances, Grid, GridError, GridOptions, GridSearch, GridUntil};

use crate::{
    SOCBFS_NONE, code_of, deadline,
    handle::{array, array_mut, free, give, lock, out, pointer},
    hold,
    message::{Failure, entry},
    refuse_too_many, socbfs_code, socbfs_outcome, stopped_by,
};

/// A cell of a grid.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct socbfs_cell {
    /// The row, from 0 at the top.
    pub row: u32,
    /// The column, from 0 on the left.
    pub column: u32,
}

/// Steps lead up, down, left and right.
pub const SOCBFS_FOUR: u32 = 4;
/// Diagonal steps as well. A step of either kind counts as one.
pub const SOCBFS_EIGHT: u32 = 8;
/// Diagonal steps as well, but only where both cells beside them are free.
pub const SOCBFS_EIGHT_AROUND_CORNERS: u32 = 9;
/// The step of a source. Other steps are 0 (up) and so on clockwise to 7 (up and left).
pub const SOCBFS_STAY: u8 = 8;
/// The step of a cell that was not reached.
pub const SOCBFS_NO_STEP: u8 = 255;

const _: () = assert!(SOCBFS_STAY == socbfs_algo::grid::STAY && SOCBFS_NO_STEP == socbfs_algo::grid::NO_STEP);

/// A grid of free and blocked cells, and searches over it without a graph.
pub struct socbfs_grid {
    /// The search, and the sources of the last one.
    search: Mutex<(GridSearch, Vec<Cell>)>,
    stopper: Stopper,
}

impl From<GridError> for Failure {
    fn from(error: GridError) -> Self {
        let text = with_causes("", &error);
        match error {
            GridError::Memory(_) | GridError::Threads(_) => Self::memory(text),
            GridError::Stopped => Self::stopped(text),
            GridError::Simd(_) => Self::device(text),
            _ => Self::argument(text),
        }
    }
}

fn cell(cell: socbfs_cell) -> Cell {
    Cell::new(cell.row as usize, cell.column as usize)
}

/// Makes a grid of `rows` by `columns` cells. Cells are free where `cells` (row by row, rows * columns bytes) is 1, and blocked where it is
/// 0; any other value is SOCBFS_ARGUMENT (in an occupancy grid of ROS, 0 to 19 is free); null: all are free. `connectivity` is SOCBFS_FOUR,
/// SOCBFS_EIGHT or SOCBFS_EIGHT_AROUND_CORNERS. `threads`: 0 for one on each CPU.
///
/// # Safety
/// `cells` is null or has rows * columns bytes; `grid` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_new(
    rows: u32,
    columns: u32,
    cells: *const u8,
    connectivity: u32,
    threads: u32,
    grid: *mut *mut socbfs_grid,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let grid = unsafe { out(grid, "grid") }?;
        let connectivity = match connectivity {
            SOCBFS_FOUR => Connectivity::Four,
            SOCBFS_EIGHT => Connectivity::Eight,
            SOCBFS_EIGHT_AROUND_CORNERS => Connectivity::EightAroundCorners,
            other => return Err(Failure::argument(format!("connectivity {other} is none of 4, 8 and 9"))),
        };
        refuse_too_many(threads)?;
        let made = if cells.is_null() {
            Grid::free(rows as usize, columns as usize)?
        } else {
            let mut made = Grid::blocked(rows as usize, columns as usize)?;
            // SAFETY: the caller's promise.
            made.assign(unsafe { array(cells, rows as usize * columns as usize, "cells") }?)?;
            made
        };
        let stopper = Stopper::default();
        let options = GridOptions { connectivity, threads: threads as usize, stopper: stopper.clone(), ..GridOptions::default() };
        if stopped_by().is_stopped() {
            return Err(GridError::Stopped.into());
        }
        let search = GridSearch::new(made, &options)?;
        give(grid, socbfs_grid { search: Mutex::new((search, Vec::new())), stopper });
        Ok(())
    })
}

/// Frees a grid, as socbfs_graph_free frees a graph. No call with it may be running.
///
/// # Safety
/// As for socbfs_graph_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_free(grid: *mut *mut socbfs_grid) {
    // SAFETY: the caller's promise.
    unsafe { free(grid) }
}

/// Replaces all cells by `cells`, as socbfs_grid_new takes them. `length` must be rows * columns. It allocates nothing.
///
/// # Safety
/// `grid` is a grid, `cells` has `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_assign(grid: *const socbfs_grid, cells: *const u8, length: usize) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (grid, cells) = unsafe { (pointer(grid, "grid")?, array(cells, length, "cells")?) };
        Ok(lock(&grid.search)?.0.grid_mut().assign(cells)?)
    })
}

/// Makes the cells of a rectangle of `rows` by `columns` cells, whose first one is `first`, free (or blocked, if `is_free` is 0). It
/// allocates nothing.
///
/// # Safety
/// `grid` is a grid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_fill(
    grid: *const socbfs_grid,
    first: socbfs_cell,
    rows: u32,
    columns: u32,
    is_free: u32,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let grid = unsafe { pointer(grid, "grid") }?;
        let range = |begin: u32, length: u32| begin as usize..(begin as usize).saturating_add(length as usize);
        let (rows, columns) = (range(first.row, rows), range(first.column, columns));
        Ok(lock(&grid.search)?.0.grid_mut().fill(rows, columns, is_free != 0)?)
    })
}

/// Searches from the `count` cells of `sources` at once: distances are those from the nearest. It ends at distance `depth` (SOCBFS_NONE: no
/// such limit), or with the level that reaches `target` (null: none). It allocates nothing, unless `count` is larger than before, or a
/// distance is larger than 65,533 for the first time. `outcome` may be null; its `edges` are 0.
///
/// # Safety
/// `grid` is a grid, `sources` has `count` cells, `target` and `outcome` are null or point to one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_run(
    grid: *const socbfs_grid,
    sources: *const socbfs_cell,
    count: usize,
    depth: u32,
    target: *const socbfs_cell,
    outcome: *mut socbfs_outcome,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (grid, given) = unsafe { (pointer(grid, "grid")?, array(sources, count, "sources")?) };
        // SAFETY: the caller's promise.
        let (target, outcome) = unsafe { (target.as_ref(), outcome.as_mut()) };
        let (search, sources) = &mut *lock(&grid.search)?;
        sources.clear();
        sources.try_reserve(count).map_err(|_| Failure::memory(format!("no memory for {count} sources")))?;
        sources.extend(given.iter().copied().map(cell));
        let until = GridUntil { depth: (depth != SOCBFS_NONE).then_some(depth), target: target.copied().map(cell) };
        let done = search.run_until(sources, until)?;
        if let Some(outcome) = outcome {
            let (nanoseconds, end) = (done.elapsed.as_nanos() as u64, code_of(done.end));
            *outcome = socbfs_outcome { reached: done.reached, edges: 0, nanoseconds, levels: done.levels, end };
        }
        Ok(())
    })
}

/// Checks that an array has `length` entries, one for each cell.
fn fits(search: &GridSearch, length: usize, what: &str) -> Result<(), Failure> {
    let cells = search.grid().rows() * search.grid().columns();
    if length == cells { Ok(()) } else { Err(Failure::argument(format!("{length} {what} are given for {cells} cells"))) }
}

fn no_search() -> Failure {
    Failure::argument("no search was run, or the last one was stopped".to_owned())
}

/// Copies the first `columns` of lines of `line` entries to `to`.
fn copy<T: Copy>(from: &[T], [columns, line]: [usize; 2], to: &mut [T]) -> Result<(), Failure> {
    if from.is_empty() {
        return Err(no_search());
    }
    to.chunks_exact_mut(columns).zip(from.chunks(line)).for_each(|(to, from)| to.copy_from_slice(&from[..columns]));
    Ok(())
}

/// Writes the distance of each cell, row by row, to `levels`: SOCBFS_NONE for a cell not reached. `length` must be rows * columns. It
/// allocates nothing.
///
/// # Safety
/// `grid` is a grid, `levels` has room for `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_levels(grid: *const socbfs_grid, levels: *mut u32, length: usize) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (grid, levels) = unsafe { (pointer(grid, "grid")?, array_mut(levels, length, "levels")?) };
        let (search, _) = &*lock(&grid.search)?;
        fits(search, length, "levels")?;
        if matches!(search.distances(), Distances::Short([]) | Distances::Long([])) {
            return Err(no_search());
        }
        search.levels_into(levels);
        Ok(())
    })
}

/// Writes the direction of the next step from each cell to its nearest source, row by row, to `steps`. It allocates nothing but the first
/// time.
///
/// # Safety
/// `grid` is a grid, `steps` has room for `length` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_steps(grid: *const socbfs_grid, steps: *mut u8, length: usize) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (grid, steps) = unsafe { (pointer(grid, "grid")?, array_mut(steps, length, "steps")?) };
        let (search, _) = &mut *lock(&grid.search)?;
        fits(search, length, "steps")?;
        let lines = [search.grid().columns(), search.line()];
        copy(search.steps()?, lines, steps)
    })
}

/// Writes the nearest source of each cell (row * columns + column), row by row, to `sources`: SOCBFS_NONE for a cell not reached. It
/// allocates nothing but the first time.
///
/// # Safety
/// `grid` is a grid, `sources` has room for `length` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_sources(grid: *const socbfs_grid, sources: *mut u32, length: usize) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (grid, sources) = unsafe { (pointer(grid, "grid")?, array_mut(sources, length, "sources")?) };
        let (search, _) = &mut *lock(&grid.search)?;
        fits(search, length, "sources")?;
        let lines = [search.grid().columns(), search.line()];
        copy(search.sources()?, lines, sources)
    })
}

/// Writes the cells from `from` to its nearest source, both included, to `path`: at most `room` of them. `path` may be null if `room` is 0.
/// `count` receives their number (0: not reached) and may be null. It allocates nothing.
///
/// # Safety
/// `grid` is a grid, `path` has room for `room` cells, `count` is null or points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_path(
    grid: *const socbfs_grid,
    from: socbfs_cell,
    path: *mut socbfs_cell,
    room: usize,
    count: *mut usize,
) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let (grid, path, count) = unsafe { (pointer(grid, "grid")?, array_mut(path, room, "path")?, count.as_mut()) };
        let (search, _) = &*lock(&grid.search)?;
        let way = search.path(cell(from));
        if let Some(count) = count {
            *count = way.as_ref().map_or(0, ExactSizeIterator::len);
        }
        for (entry, at) in path.iter_mut().zip(way.into_iter().flatten()) {
            *entry = socbfs_cell { row: at.row as u32, column: at.column as u32 };
        }
        Ok(())
    })
}

/// Stops the running search between two levels, and all later ones until socbfs_grid_go_on. May be called from any thread at any time.
///
/// # Safety
/// `grid` is null or a grid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_stop(grid: *const socbfs_grid) {
    // SAFETY: the caller's promise.
    hold(unsafe { grid.as_ref() }.map(|grid| &grid.stopper), true);
}

/// Lets searches run again.
///
/// # Safety
/// `grid` is null or a grid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_go_on(grid: *const socbfs_grid) {
    // SAFETY: the caller's promise.
    hold(unsafe { grid.as_ref() }.map(|grid| &grid.stopper), false);
}

/// Stops searches that have not ended `seconds` from now (a negative number: no deadline).
///
/// # Safety
/// `grid` is a grid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socbfs_grid_deadline(grid: *const socbfs_grid, seconds: f64) -> socbfs_code {
    entry(|| {
        // SAFETY: the caller's promise.
        let grid = unsafe { pointer(grid, "grid") }?;
        lock(&grid.search)?.0.set_deadline(deadline(seconds)?);
        Ok(())
    })
}
