//! Grids and their searches.

use std::sync::{Arc, Mutex};

use bfs::{
    grid::{Cell, Connectivity, Distances, Grid, GridError, GridOptions, GridSearch, GridUntil},
    words::with_causes,
};
use numpy::{Ix2, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::{
    exceptions::{PyIndexError, PyMemoryError, PyRuntimeError, PyTimeoutError, PyValueError},
    prelude::*,
};

use crate::{
    Lent, Room,
    call::{Failure, at_once, lasting, locked},
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
pub(crate) struct GridCore {
    shape: [usize; 2],
    search: Arc<Mutex<GridSearch>>,
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
            let search = lasting(py, timeout, rows * columns < SHORT, move |stopper| {
                let options = GridOptions { connectivity, threads, stopper: stopper.clone(), ..GridOptions::default() };
                Ok(GridSearch::new(Grid::from_cells(rows, columns, cells.numbers())?, &options)?)
            })?;
            Ok(Self { shape: [rows, columns], search: Arc::new(Mutex::new(search)) })
        })
    }

    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.shape[0], self.shape[1])
    }

    /// Replaces all cells.
    fn assign(&self, py: Python<'_>, cells: PyReadonlyArray2<'_, u8>) -> PyResult<()> {
        at_once(|| {
            let given = [cells.shape()[0], cells.shape()[1]];
            if given != self.shape {
                return Err(PyValueError::new_err(format!("cells of shape {given:?} are given for a grid of {:?}", self.shape)));
            }
            let cells = Lent::new(&cells, || PyValueError::new_err("the cells are not contiguous"))?;
            let search = Arc::clone(&self.search);
            py.detach(move || locked(&search).grid_mut().assign(cells.numbers()).map_err(Failure::from))?;
            Ok(())
        })
    }

    /// Makes the cells of a rectangle free or blocked.
    fn fill(&self, py: Python<'_>, rows: (usize, usize), columns: (usize, usize), free: bool) -> PyResult<()> {
        at_once(|| {
            let search = Arc::clone(&self.search);
            py.detach(move || locked(&search).grid_mut().fill(rows.0..rows.1, columns.0..columns.1, free).map_err(Failure::from))?;
            Ok(())
        })
    }

    /// 1 for each free cell, 0 for the others.
    fn free(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        at_once(|| {
            let mut room = Room::<u8, Ix2>::new(py, self.shape)?;
            let ([_, columns], search) = (self.shape, Arc::clone(&self.search));
            let room = py.detach(move || {
                let search = locked(&search);
                for (at, free) in room.entries().iter_mut().enumerate() {
                    *free = u8::from(search.grid().is_free(Cell::new(at / columns, at % columns)));
                }
                room
            });
            Ok(room.array.into_any())
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
            let from: Vec<Cell> = sources.as_array().rows().into_iter().map(|pair| cell(pair[0], pair[1])).collect();
            let until = GridUntil { depth, target: target.map(|(row, column)| cell(row, column)) };
            let ([height, columns], search) = (self.shape, Arc::clone(&self.search));
            let shape = [height, columns];
            let mut short = Room::<u16, Ix2>::new(py, shape)?;
            let mut steps = with_steps.then(|| Room::<u8, Ix2>::new(py, shape)).transpose()?;
            let mut nearest = with_sources.then(|| Room::<u32, Ix2>::new(py, shape)).transpose()?;
            let run = move |stopper: &bfs::Stopper| {
                let mut search = locked(&search);
                search.set_stopper(stopper.clone());
                let outcome = search.run_until(&from, until)?;
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
            };
            let ((short, long, steps, nearest), counts) = lasting(py, timeout, height * columns < SHORT, run)?;
            let long = (!long.is_empty()).then(|| PyArray1::from_vec(py, long).reshape(shape)).transpose()?;
            Ok((short, long.map(Bound::unbind), steps, nearest, counts))
        })
    }
}
