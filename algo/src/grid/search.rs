//! The search: one wave after another over one grid.

use std::time::{Duration, Instant};

use super::{
    Cell, Connectivity, Grid, GridError, ROWS, Shape,
    answers::{self, DIRECTIONS, GridPath, STAY},
    distances::Distance,
    tiles::{BORDER_CELL, Queue, TileState, WRITTEN},
    wave::{CORNERS, EDGE_CELLS, EIGHT, FOUR, Kernels, Wave},
};
use socbfs::{
    Simd,
    graph::{NONE, Stopper},
    memory::{Shared, Slab, as_atomics, check_available},
    search::{End, threads_of},
    threads::{Team, share, share_and_sum},
};

/// Threads share the visits of at least this many tiles.
const SHARED_TILES: usize = 24;
/// Tiles that a thread visits at a time.
const VISITED: usize = 8;
/// Tiles that a thread turns into distances at a time.
const FINISHED: usize = 256;
/// Rows that a thread answers for at a time.
const ANSWERED: usize = 64;

/// How grids are searched.
#[derive(Debug, Clone, Default)]
pub struct GridOptions {
    /// To which cells a step may lead.
    pub connectivity: Connectivity,
    /// Number of threads (0: one for each of `cpus`; if that is empty, one for every CPU the process may run on).
    pub threads: usize,
    /// CPUs the threads are bound to, one each in turn, the calling thread first (empty: not bound).
    pub cpus: Vec<usize>,
    /// Vector instructions (`None`: the best this CPU has).
    pub simd: Option<Simd>,
    /// Stops searches, between visits of tiles.
    pub stopper: Stopper,
}

/// Conditions that end a search before it has reached everything (default: none).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GridUntil {
    /// End at this distance from the sources.
    pub depth: Option<u32>,
    /// End after the level that reaches this cell.
    pub target: Option<Cell>,
}

/// What one search did.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct GridOutcome {
    /// Number of sources, as given: repeats count.
    pub sources: u64,
    /// Cells reached, the sources included.
    pub reached: u64,
    /// Levels: sources alone are 1.
    pub levels: u32,
    /// Visits of tiles (16 rows of 32 columns), the work of the search.
    pub visits: u64,
    /// Why the search ended.
    pub end: End,
    /// Time from the call to the distances.
    #[serde(skip)]
    pub elapsed: Duration,
}

/// Distances by cell, row by row: from a row to the next are [`GridSearch::line`] entries, of which the first [`Grid::columns`] count.
#[derive(Debug, Clone, Copy)]
pub enum Distances<'a> {
    /// Of 16 bits; `u16::MAX` where not reached.
    Short(&'a [u16]),
    /// Of 32 bits, from the first search on of which a distance does not fit 16; `u32::MAX` where not reached.
    Long(&'a [u32]),
}

/// Distances, of all cells and of those on the edges of tiles.
#[derive(Debug, Default)]
struct Times<D: Distance> {
    cells: Slab<D>,
    /// [`Wave::edges`].
    edges: Slab<D>,
}

impl<D: Distance> Times<D> {
    fn new(shape: Shape) -> Result<Self, GridError> {
        let mut cells = Slab::zeroed(shape.padded(), "distances")?;
        cells.fill(D::NONE);
        Ok(Self { cells, edges: Slab::zeroed(shape.tiles() * EDGE_CELLS, "distances")? })
    }
}

/// Searches one grid, again and again; the grid may change between two searches. After the first search of a kind nothing is allocated.
#[derive(Debug)]
pub struct GridSearch {
    grid: Grid,
    /// The shape that everything else here has, whatever grid was put in the place of the first one.
    shape: Shape,
    connectivity: Connectivity,
    team: Team,
    simd: Simd,
    stopper: Stopper,
    deadline: Option<Instant>,
    states: Slab<TileState>,
    unvisited: Slab<u32>,
    queue: Queue,
    /// The tiles that are visited together.
    list: Slab<u32>,
    /// Least number of tiles whose visits threads share.
    pub(super) shared_tiles: usize,
    /// The most threads that shared visits of the last search.
    pub(super) workers: u32,
    short: Times<u16>,
    /// In place of `short` once a search went deeper than 16 bits allow.
    long: Times<u32>,
    has_distances: bool,
    /// Steps and sources of the last search, once they were asked for.
    steps: Slab<u8>,
    sources: Slab<u32>,
    has_steps: bool,
    has_sources: bool,
}

impl GridSearch {
    /// Allocates everything that searches need and starts the threads.
    ///
    /// # Errors
    /// [`GridError`] if memory, threads or vector instructions are refused.
    pub fn new(grid: Grid, options: &GridOptions) -> Result<Self, GridError> {
        let shape = grid.shape;
        let simd = options.simd.unwrap_or_else(Simd::detect);
        simd.kernels()?; // whether this CPU has the instructions
        let mut states = Slab::zeroed(shape.tiles(), "the tiles of a grid")?;
        states.fill(TileState::new(BORDER_CELL));
        for strip in 0..shape.strips {
            for tile in 0..shape.height {
                let cell = Cell::new(tile * ROWS, strip * super::COLUMNS);
                states[shape.tile(cell)] = TileState::new((cell.row * shape.line() + cell.column) as u32);
            }
        }
        Ok(Self {
            connectivity: options.connectivity,
            simd,
            stopper: options.stopper.clone(),
            deadline: None,
            states,
            unvisited: Slab::zeroed(shape.words(), "the bitmaps of a grid")?,
            queue: Queue::new(shape.strips * shape.height)?,
            list: Slab::zeroed(shape.strips * shape.height, "the tiles of a level")?,
            shared_tiles: SHARED_TILES,
            workers: 0,
            short: Times::new(shape)?,
            long: Times::default(),
            has_distances: false,
            steps: Slab::default(),
            sources: Slab::default(),
            has_steps: false,
            has_sources: false,
            team: Team::new(threads_of(options.threads, &options.cpus), &options.cpus).map_err(GridError::Threads)?,
            shape,
            grid,
        })
    }

    /// The grid.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// The grid, to change it before the next search. It may be replaced by another one of the same shape.
    pub fn grid_mut(&mut self) -> &mut Grid {
        &mut self.grid
    }

    /// To which cells a step may lead.
    pub fn connectivity(&self) -> Connectivity {
        self.connectivity
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.team.size()
    }

    /// The vector instructions in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// What stops searches from other threads.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Lets `stopper` stop searches, in place of the one before.
    pub fn set_stopper(&mut self, stopper: Stopper) {
        self.stopper = stopper;
    }

    /// Stops searches, as a [`Stopper`] does, as soon as visits of tiles end after `deadline` (`None`: never).
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Searches from `sources` until everything is reached.
    ///
    /// # Errors
    /// [`GridError::NoSource`], [`GridError::Outside`], [`GridError::Blocked`], [`GridError::Stopped`]; [`GridError::Memory`] if the first
    /// search that needs distances of 32 bits does not get them.
    pub fn run(&mut self, sources: &[Cell]) -> Result<GridOutcome, GridError> {
        self.run_until(sources, GridUntil::default())
    }

    /// As [`run`](Self::run), but the search may end early: then cells farther away than its last level have no distance.
    ///
    /// # Errors
    /// As [`run`](Self::run); they hold for a target, too.
    pub fn run_until(&mut self, sources: &[Cell], until: GridUntil) -> Result<GridOutcome, GridError> {
        let begin = Instant::now();
        let shape = self.shape;
        if self.grid.shape != shape {
            return Err(GridError::Replaced { rows: self.grid.rows(), columns: self.grid.columns() });
        }
        for &cell in sources.iter().chain(&until.target) {
            if !self.grid.is_free(shape.check(cell)?) {
                return Err(GridError::Blocked(cell));
            }
        }
        if sources.is_empty() {
            return Err(GridError::NoSource);
        }
        (self.has_distances, self.has_steps, self.has_sources) = (false, false, false);
        let (mut short, mut long) = (std::mem::take(&mut self.short), std::mem::take(&mut self.long));
        let found = if long.cells.is_empty() { self.wave(&mut short, sources, until) } else { Ok(None) };
        let found = match found {
            // The path is too long for distances of 16 bits. So it is for later searches of most such grids.
            Ok(None) if long.cells.is_empty() => {
                check_available(4 * shape.padded() as u64, "distances").map_err(GridError::from).and_then(|()| {
                    let times = Times::new(shape)?;
                    self.states.iter_mut().for_each(|state| state.blank = 1);
                    (short, long) = (Times::default(), times);
                    self.wave(&mut long, sources, until)
                })
            }
            Ok(None) => self.wave(&mut long, sources, until),
            found => found,
        };
        (self.short, self.long) = (short, long);
        let (end, levels, reached, visits) = found?.unwrap_or((End::Complete, 0, 0, 0));
        self.has_distances = true;
        Ok(GridOutcome { sources: sources.len() as u64, reached, levels, visits, end, elapsed: begin.elapsed() })
    }

    /// Lets the wave run. Returns why and after how many levels it ended, and the numbers of cells and of visits; `None` if a distance does
    /// not fit.
    #[allow(clippy::type_complexity, reason = "results of one private function")]
    fn wave<D: Distance>(
        &mut self,
        times: &mut Times<D>,
        sources: &[Cell],
        until: GridUntil,
    ) -> Result<Option<(End, u32, u64, u64)>, GridError> {
        let shape = self.shape;
        let kernels = match self.connectivity {
            Connectivity::Four => Kernels::<D>::of::<FOUR>(self.simd),
            Connectivity::Eight => Kernels::<D>::of::<EIGHT>(self.simd),
            Connectivity::EightAroundCorners => Kernels::<D>::of::<CORNERS>(self.simd),
        };
        self.states.iter_mut().for_each(TileState::reset);
        self.workers = 1;
        let depth = until.depth.unwrap_or(NONE);
        let queue = &mut self.queue;
        queue.reset(depth.min(D::DEEPEST));
        let wave = Wave {
            shape,
            free: &self.grid.free,
            unvisited: Shared::new(&mut self.unvisited),
            states: Shared::new(&mut self.states),
            cells: Shared::new(&mut times.cells[shape.first()..]),
            edges: Shared::new(&mut times.edges),
        };
        let tile_and_cell = |cell: Cell| [shape.tile(cell), cell.row % ROWS, cell.column % super::COLUMNS];
        // SAFETY: all arrays are of this shape, and the cells were checked. No other thread is at work.
        let (mut reached, mut visits) = (sources.iter().map(|&cell| u64::from(unsafe { wave.begin(tile_and_cell(cell), queue) })).sum(), 0);
        // SAFETY: as above, whenever it is called.
        let target = || until.target.and_then(|cell| unsafe { wave.distance(tile_and_cell(cell)) });
        let mut level = 0;
        let end = loop {
            if let Some(distance) = target() {
                // What is further does not count. It may get nearer yet.
                queue.until = queue.until.min(distance);
            }
            if self.stopper.is_stopped() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(GridError::Stopped);
            }
            // SAFETY: no other thread is at work.
            let Some((first, len)) = (unsafe { queue.pop(wave.states.get(), level, &mut self.list) }) else { break queue.until };
            if first > queue.until {
                break queue.until;
            }
            level = first;
            let (list, most) = (&self.list[..len], queue.until);
            if len >= self.shared_tiles && self.team.size() > 1 {
                // Neighbours are of different colours.
                for colour in 0..4 {
                    let ([found, _], workers) = share_and_sum(&self.team, len, VISITED, false, &|_, range| {
                        let is_next = |&&tile: &&u32| shape.colour(tile as usize) == colour;
                        // SAFETY: tiles are in the list once, and neighbours of none has this colour.
                        let visit = |&tile: &u32| unsafe { (kernels.visit)(&wave, &[tile], most) };
                        [list[range].iter().filter(is_next).map(visit).sum(), 0]
                    });
                    reached += found;
                    self.workers = self.workers.max(workers);
                }
            } else {
                // SAFETY: as above.
                reached += unsafe { (kernels.visit)(&wave, list, most) };
            }
            // SAFETY: no other thread is at work.
            unsafe { (kernels.offer)(&wave, list, queue) };
            visits += len as u64;
        };
        if queue.beyond && end == D::DEEPEST && depth > end {
            return Ok(None);
        }
        let alone = shape.height * shape.strips < FINISHED;
        let ([further, _], _) = share_and_sum(&self.team, self.states.len(), FINISHED, alone, &|_, range| {
            // SAFETY: ranges are disjoint, and the search has ended.
            [range.map(|tile| unsafe { wave.finish(tile, end) }).sum(), 0]
        });
        reached -= further;
        let last = self.states.iter().filter(|state| state.phase == WRITTEN).map(|state| state.last.min(end)).max().unwrap_or(0);
        let why = if target().is_some() {
            End::Target
        } else if last == depth {
            End::Depth
        } else {
            End::Complete
        };
        Ok(Some((why, last + 1, reached, visits)))
    }

    /// Entries from a row to the next in [`distances`](Self::distances), [`steps`](Self::steps) and [`sources`](Self::sources).
    pub fn line(&self) -> usize {
        self.shape.line()
    }

    /// The distances of the last search (empty before the first one, and if it was stopped).
    pub fn distances(&self) -> Distances<'_> {
        let shape = self.shape;
        let (first, len) = (shape.first(), if self.has_distances { shape.line() * shape.rows } else { 0 });
        if self.long.cells.is_empty() {
            Distances::Short(&self.short.cells[first..first + len])
        } else {
            Distances::Long(&self.long.cells[first..first + len])
        }
    }

    /// Writes the distance of each cell, row by row without padding; [`NONE`] where not reached, and everywhere before the first search.
    ///
    /// # Panics
    /// If `levels` does not have an entry for each cell.
    pub fn levels_into(&self, levels: &mut [u32]) {
        let Shape { rows, columns, .. } = self.shape;
        assert_eq!(levels.len(), rows * columns, "one level per cell");
        if !self.has_distances {
            levels.fill(NONE);
        }
        let lines = levels.chunks_exact_mut(columns);
        match self.distances() {
            Distances::Short(cells) => lines.zip(cells.chunks(self.line())).for_each(|(line, cells)| {
                let wide = |distance: u16| if distance == u16::NONE { NONE } else { distance.into() };
                line.iter_mut().zip(cells).for_each(|(level, &distance)| *level = wide(distance));
            }),
            Distances::Long(cells) => {
                lines.zip(cells.chunks(self.line())).for_each(|(line, cells)| line.copy_from_slice(&cells[..columns]))
            }
        }
    }

    /// The distance of `cell` from the nearest source, in steps (`None`: not reached).
    pub fn distance(&self, cell: Cell) -> Option<u32> {
        let shape = self.shape;
        if !self.has_distances || shape.check(cell).is_err() {
            return None;
        }
        let at = cell.row * shape.line() + cell.column;
        match self.distances() {
            Distances::Short(cells) => Some(cells[at]).filter(|&distance| distance != u16::NONE).map(u32::from),
            Distances::Long(cells) => Some(cells[at]).filter(|&distance| distance != u32::NONE),
        }
    }

    /// The direction (0 up, then clockwise to 7) of the step from `cell` to the nearest source; `None` at a source and where not reached.
    pub(super) fn step(&self, cell: Cell) -> Option<usize> {
        let own = self.distance(cell).filter(|&own| own > 0)?;
        let to = |direction: usize| {
            let (rows, columns) = DIRECTIONS[direction % 8];
            self.distance(Cell::new(cell.row.wrapping_add_signed(rows), cell.column.wrapping_add_signed(columns)))
        };
        let around = self.connectivity == Connectivity::EightAroundCorners;
        answers::directions(self.connectivity).iter().copied().find(|&direction| {
            let is_open = direction % 2 == 0 || !around || (to(direction + 7).is_some() && to(direction + 1).is_some());
            to(direction) == Some(own - 1) && is_open
        })
    }

    /// The cells from `cell` to its nearest source, both included (`None`: not reached).
    pub fn path(&self, cell: Cell) -> Option<GridPath<'_>> {
        self.distance(cell).map(|_| GridPath { search: self, at: Some(cell) })
    }

    /// For each cell the direction of the next step to the nearest source: 0 up, 1 up and right, and so on clockwise to 7; [`STAY`] at a
    /// source, [`NO_STEP`](super::NO_STEP) where not reached. Rows are those of [`distances`](Self::distances). Computed when
    /// it is first asked for after a search, on all threads (empty before the first search).
    ///
    /// # Errors
    /// [`GridError::Memory`], the first time.
    pub fn steps(&mut self) -> Result<&[u8], GridError> {
        let shape = self.shape;
        let line = shape.line();
        if !self.has_distances {
            return Ok(&[]);
        }
        if self.steps.is_empty() {
            self.steps = Slab::zeroed(line * shape.rows, "steps")?;
        }
        if !self.has_steps {
            let steps = Shared::new(&mut self.steps);
            let (connectivity, short, long) = (self.connectivity, &self.short.cells, &self.long.cells);
            self.team_over_rows(&|rows| {
                // SAFETY: ranges are disjoint, and the slab has a line for each row.
                let own = unsafe { std::slice::from_raw_parts_mut(steps.get().add(rows.start * line), rows.len() * line) };
                if long.is_empty() {
                    answers::steps(shape, connectivity, short, rows, own);
                } else {
                    answers::steps(shape, connectivity, long, rows, own);
                }
            });
            self.has_steps = true;
        }
        Ok(&self.steps)
    }

    /// For each cell the nearest source (row * columns + column), one of the nearest: that to which [`steps`](Self::steps) lead;
    /// `u32::MAX` where not reached. Rows, time and place as there.
    ///
    /// # Errors
    /// [`GridError::Memory`], the first time.
    pub fn sources(&mut self) -> Result<&[u32], GridError> {
        let shape = self.shape;
        self.steps()?;
        if !self.has_distances {
            return Ok(&[]);
        }
        if self.sources.is_empty() {
            self.sources = Slab::zeroed(shape.line() * shape.rows, "sources")?;
        }
        if !self.has_sources {
            let mut sources = std::mem::take(&mut self.sources);
            sources.fill(NONE);
            let (shared, steps) = (as_atomics(&mut sources), &self.steps);
            self.team_over_rows(&|rows| answers::sources(shape, steps, rows, shared));
            self.sources = sources;
            self.has_sources = true;
        }
        Ok(&self.sources)
    }

    fn team_over_rows(&self, work: &(dyn Fn(std::ops::Range<usize>) + Sync)) {
        let Shape { rows, columns, .. } = self.shape;
        share(&self.team, rows, ANSWERED, rows * columns < 1 << 16, &|_, range| work(range));
    }
}

const _: () = assert!(STAY as usize == DIRECTIONS.len());
