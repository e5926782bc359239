//! Grids and their searches.

use std::sync::Arc;

use bfs::{Stopper, words::with_causes};
use numpy::{Ix2, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{
    exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTimeoutError, PyValueError},
    prelude::*,
};
use socbfs_algo::grid::{Cell, Connectivity, Distances, Grid, GridError, GridOptions, GridSearch, GridUntil};

use crate::{
    Lent, Room,
    call::{Failure, Kept, Lock, at_once, lasting},
    end_name, vector,
};

/// A search over fewer cells is over before Ctrl-C could be missed, also in a maze on a slow board.
const SHORT: usize = 1 << 19;

impl From<GridError> for Failure {
    fn from(error: GridError) -> Self {
        let text = with_causes("", &error);
        Self(match error {
            GridError::Outside { .. } => PyIndexError::new_err(text),
            GridError::Stopped => PyTimeoutError::new_err(text),
            GridError::Memory(_) => PyMemoryError::new_err(text),
            GridError::Threads(_) | GridError::Simd(_) => PyRuntimeError::new_err(text),
            _ => PyValueError::new_err(text),
        })
    }
}

/// A cell from Python; one with a negative number lies outside, like one beyond the last.
fn cell(row: i64, column: i64) -> Cell {
    Cell::new(usize::try_from(row).unwrap_or(usize::MAX), usize::try_from(column).unwrap_or(usize::MAX))
}

type Array<T> = Py<PyArray2<T>>;
/// Distances of 16 bits, those of 32 bits in their place if they are needed, steps, sources; reached, levels, seconds, why it ended.
type Found = (Array<u16>, Option<Array<u32>>, Option<Array<u8>>, Option<Array<u32>>, (u64, u32, f64, &'static str));

/// A grid and its searches.
#[pyclass(frozen, module = "socbfs._socbfs")]
pub(crate) struct GridCore(Arc<Searched>);

struct Searched {
    shape: [usize; 2],
    options: GridOptions,
    /// The cells as they are for the next search; none if the process was forked while a thread changed them.
    cells: Lock<Option<Grid>>,
    /// Searches that no thread uses at the moment.
    idle: Lock<Vec<GridSearch>>,
}

impl Searched {
    fn cells<T>(&self, changes: bool, work: impl FnOnce(&mut Grid) -> Result<T, GridError>) -> Result<T, Failure> {
        let lost = || PyRuntimeError::new_err("the process was forked while a thread changed this grid: make a new Grid in the child");
        Ok(self.cells.hold(changes, |cells| cells.as_mut().map(work)).ok_or_else(lost)??)
    }

    /// The cells as they are now.
    fn copied(&self) -> Result<Grid, Failure> {
        let mut copy = Grid::blocked(self.shape[0], self.shape[1])?;
        self.cells(false, |cells| copy.copy_from(cells)).map(|()| copy)
    }

    /// A search of the cells as they are now.
    fn take(&self) -> Result<GridSearch, Failure> {
        let Some(mut search) = self.idle.with(Vec::pop) else { return Ok(GridSearch::new(self.copied()?, &self.options)?) };
        self.cells(false, |cells| search.grid_mut().copy_from(cells))?;
        Ok(search)
    }

    /// Whether a look at every cell is over at once.
    fn is_short(&self) -> bool {
        self.shape[0] * self.shape[1] < SHORT
    }
}

/// [`GridError::Stopped`] if the call has ended: what it left behind changes nothing.
fn goes_on(stopper: &Stopper) -> Result<(), GridError> {
    if stopper.is_stopped() { Err(GridError::Stopped) } else { Ok(()) }
}

/// Copies the first `columns` of lines of `line` entries.
fn rows<T: Copy>(room: &mut [T], cells: &[T], line: usize, columns: usize) {
    for (row, cells) in room.chunks_exact_mut(columns).zip(cells.chunks(line)) {
        row.copy_from_slice(&cells[..columns]);
    }
}

#[pymethods]
impl GridCore {
    #[new]
    fn new(cells: PyReadonlyArray2<'_, u8>, connectivity: u8, cut_corners: bool, threads: usize, timeout: Option<f64>) -> PyResult<Self> {
        at_once(|| {
            let (py, [rows, columns]) = (cells.py(), [cells.shape()[0], cells.shape()[1]]);
            let cells = Lent::new(&cells, || PyValueError::new_err("the cells are not contiguous"))?;
            let connectivity = match (connectivity, cut_corners) {
                (4, _) => Connectivity::Four,
                (8, true) => Connectivity::Eight,
                (8, false) => Connectivity::EightAroundCorners,
                (other, _) => return Err(PyValueError::new_err(format!("connectivity must be 4 or 8, not {other}"))),
            };
            let options = GridOptions { connectivity, threads, ..GridOptions::default() };
            let made = lasting(py, timeout, rows * columns < SHORT, move |_| {
                let grid = Grid::from_cells(rows, columns, cells.numbers())?;
                let mut first = Grid::blocked(rows, columns)?;
                first.copy_from(&grid)?;
                let search = GridSearch::new(first, &options)?;
                Ok(Searched { shape: [rows, columns], options, cells: Lock::new(Some(grid)), idle: Lock::new(vec![search]) })
            })?;
            Ok(Self(Arc::new(made)))
        })
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.0.shape.into()
    }

    /// Replaces all cells.
    fn assign(&self, py: Python<'_>, cells: PyReadonlyArray2<'_, u8>) -> PyResult<()> {
        at_once(|| {
            let (given, searched) = ([cells.shape()[0], cells.shape()[1]], Arc::clone(&self.0));
            if given != searched.shape {
                return Err(PyValueError::new_err(format!("cells of shape {given:?} are given for a grid of {:?}", searched.shape)));
            }
            let cells = Lent::new(&cells, || PyValueError::new_err("the cells are not contiguous"))?;
            lasting(py, None, searched.is_short(), move |stopper| {
                let made = Grid::from_cells(given[0], given[1], cells.numbers())?;
                searched.cells(true, |cells| goes_on(stopper).and_then(|()| cells.copy_from(&made)))
            })
        })
    }

    /// Makes the cells of a rectangle free or blocked.
    fn fill(&self, py: Python<'_>, rows: (usize, usize), columns: (usize, usize), free: bool) -> PyResult<()> {
        at_once(|| {
            let searched = Arc::clone(&self.0);
            let area = rows.1.saturating_sub(rows.0).saturating_mul(columns.1.saturating_sub(columns.0));
            lasting(py, None, area < SHORT, move |stopper| {
                searched.cells(true, |cells| goes_on(stopper).and_then(|()| cells.fill(rows.0..rows.1, columns.0..columns.1, free)))
            })
        })
    }

    /// 1 for each free cell, 0 for the others.
    fn free(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        at_once(|| {
            let (mut room, searched) = (Room::<u8, Ix2>::new(py, self.0.shape)?, Arc::clone(&self.0));
            let array = lasting(py, None, searched.is_short(), move |stopper| {
                let cells = searched.copied()?;
                for (row, entries) in room.entries().chunks_exact_mut(searched.shape[1]).enumerate() {
                    goes_on(stopper)?;
                    for (column, free) in entries.iter_mut().enumerate() {
                        *free = u8::from(cells.is_free(Cell::new(row, column)));
                    }
                }
                Ok(room.array)
            })?;
            Ok(array.into_py().into_any())
        })
    }

    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn bfs(
        &self,
        py: Python<'_>,
        sources: PyReadonlyArray2<'_, i64>,
        with_steps: bool,
        with_sources: bool,
        target: Option<(i64, i64)>,
        depth: Option<u32>,
        timeout: Option<f64>,
    ) -> PyResult<Found> {
        at_once(|| {
            let sources = Lent::new(&sources, || PyValueError::new_err("the sources are not contiguous"))?;
            let until = GridUntil { depth, target: target.map(|(row, column)| cell(row, column)) };
            let (shape, searched) = (self.0.shape, Arc::clone(&self.0));
            let [height, columns] = shape;
            let mut short = Room::<u16, Ix2>::new(py, shape)?;
            let mut steps = with_steps.then(|| Room::<u8, Ix2>::new(py, shape)).transpose()?;
            let mut nearest = with_sources.then(|| Room::<u32, Ix2>::new(py, shape)).transpose()?;
            let is_short = searched.is_short() && sources.length < SHORT;
            let run = move |stopper: &Stopper| {
                let mut from = Vec::new();
                from.try_reserve_exact(sources.length / 2).map_err(|_| Failure::memory("the sources"))?;
                for part in sources.numbers().chunks(2 << 20) {
                    goes_on(stopper)?;
                    from.extend(part.chunks_exact(2).map(|pair| cell(pair[0], pair[1])));
                }
                let mut search = searched.take()?;
                search.set_stopper(stopper.clone());
                let found = search.run_until(&from, until).map_err(Failure::from).and_then(|outcome| {
                    // Rarely a distance does not fit 16 bits.
                    let (mut long, line) = (Vec::new(), search.line());
                    match search.distances() {
                        Distances::Short(cells) => rows(short.entries(), cells, line, columns),
                        Distances::Long(cells) => {
                            long = vector(height * columns, 0, "distances of 32 bits")?;
                            rows(&mut long, cells, line, columns);
                        }
                    }
                    if let Some(steps) = &mut steps {
                        rows(steps.entries(), search.steps()?, line, columns);
                    }
                    if let Some(nearest) = &mut nearest {
                        rows(nearest.entries(), search.sources()?, line, columns);
                    }
                    let arrays = (short.array, long, steps.map(|room| room.array), nearest.map(|room| room.array));
                    Ok((arrays, (outcome.reached, outcome.levels, outcome.elapsed.as_secs_f64(), end_name(outcome.end))))
                });
                searched.idle.with(|idle| idle.push(search));
                found
            };
            let ((short, long, steps, nearest), counts) = lasting(py, timeout, is_short, run)?;
            let long = (!long.is_empty()).then(|| PyArray1::from_vec(py, long).reshape(shape)).transpose()?;
            Ok((short.into_py(), long.map(Bound::unbind), steps.map(Kept::into_py), nearest.map(Kept::into_py), counts))
        })
    }
}
