//! The search: one wave after another over one grid.

use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed},
    time::{Duration, Instant},
};

use super::{
    Cell, Connectivity, Grid, GridError, ROWS, Shape,
    answers::{self, DIRECTIONS, GridPath, STAY},
    distances::{Decode, Distance, decoder},
    ones,
    wave::{AT_BORDER, BORDER_CELL, CORNERS, EIGHT, FOUR, Level, Part, TileState, Visit, kernels},
};
use socbfs::{
    Simd,
    graph::{NONE, Stopper},
    memory::{Shared, Slab, as_atomics, check_available},
    search::{End, threads_of},
    threads::{Team, share, share_and_sum},
};

/// Threads share a level that visits at least this many tiles, and the decoding of as many. (Two threads need 21 us for a level of 700
/// tiles, as one does alone, and 38 us instead of 65 for one of 1,400: a meeting takes 2 us, and what a thread visits is further away.)
const SHARED_TILES: usize = 1024;
/// Tiles of a block, in both directions (256 rows, 512 columns): a block belongs to one thread, and so do those diagonally below it to the
/// left. The sides of a block are not equal, so that a wave that runs in diagonals crosses the blocks of all threads too.
const BLOCK: usize = 16;
/// Rows of tiles that a thread turns into distances at a time.
const TILE_ROWS: usize = 2;
/// Rows that a thread answers for at a time.
const ANSWERED: usize = 64;
/// The longest distance that 16 bits hold: one more would be taken for the neighbour of a cell that was not reached.
const DEEPEST_SHORT: u32 = u16::MAX as u32 - 2;

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
    /// Stops searches between two levels.
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

/// One level of a traced search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct GridLevel {
    /// Distance of the cells that it found.
    pub level: u32,
    /// Cells found.
    pub found: u64,
    /// Tiles visited.
    pub tiles: u64,
    /// Threads that found cells.
    pub threads: u32,
    /// Its time in nanoseconds.
    pub elapsed_ns: u64,
}

/// Distances by cell, row by row: from a row to the next are [`GridSearch::line`] entries, of which the first [`Grid::columns`] count.
#[derive(Debug, Clone, Copy)]
pub enum Distances<'a> {
    /// Of 16 bits; `u16::MAX` where not reached.
    Short(&'a [u16]),
    /// Of 32 bits, from the first search on of which a distance does not fit 16; `u32::MAX` where not reached.
    Long(&'a [u32]),
}

/// Searches one grid, again and again; the grid may change between two searches. After the first search of a kind nothing is allocated.
#[derive(Debug)]
pub struct GridSearch {
    grid: Grid,
    /// The shape that everything else here has, whatever grid was put in the place of the first one.
    shape: Shape,
    connectivity: Connectivity,
    team: Team,
    kernels: [Visit; 2],
    simd: Simd,
    stopper: Stopper,
    deadline: Option<Instant>,
    states: Box<[TileState]>,
    unvisited: Slab<u32>,
    /// The cells of the last level and of the next, in turn.
    waves: [Slab<u32>; 2],
    lists: [Slab<u32>; 2],
    /// Least number of tiles of a level that threads share.
    pub(super) shared_tiles: usize,
    /// In place of the lists, if threads share the level.
    parts: [Vec<Part>; 2],
    short: Slab<u16>,
    /// In place of `short` once a search went deeper than 16 bits allow.
    long: Slab<u32>,
    has_distances: bool,
    /// Steps and sources of the last search, once they were asked for.
    steps: Slab<u8>,
    sources: Slab<u32>,
    has_steps: bool,
    has_sources: bool,
    trace: Vec<GridLevel>,
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
        let kernels = match options.connectivity {
            Connectivity::Four => kernels::<FOUR>(simd),
            Connectivity::Eight => kernels::<EIGHT>(simd),
            Connectivity::EightAroundCorners => kernels::<CORNERS>(simd),
        };
        let mut states: Box<[TileState]> = (0..shape.tiles()).map(|_| TileState { cell: BORDER_CELL, ..TileState::default() }).collect();
        let team = Team::new(threads_of(options.threads, &options.cpus), &options.cpus).map_err(GridError::Threads)?;
        let part = |strip: usize, tile: usize| (tile / BLOCK + strip / BLOCK) % team.size();
        let mut counts = vec![0; team.size()];
        for strip in 0..shape.strips {
            for tile in 0..shape.height {
                let (cell, own) = (Cell::new(tile * ROWS, strip * super::COLUMNS), part(strip, tile));
                let beside = |at: usize, sides: usize| at.saturating_sub(1)..=(at + 1).min(sides - 1);
                let mut around = beside(strip, shape.strips).flat_map(|strip| beside(tile, shape.height).map(move |tile| (strip, tile)));
                let border = if around.any(|(strip, tile)| part(strip, tile) != own) { AT_BORDER } else { 0 };
                let state = &mut states[shape.tile(cell)];
                (state.cell, state.part) = ((cell.row * shape.line() + cell.column) as u32, own as u32 | border);
                counts[own] += 1;
            }
        }
        let parts = || if team.size() > 1 { counts.iter().map(|&count| Part::new(count)).collect() } else { Ok(Vec::new()) };
        let bitmap = || Slab::zeroed(shape.words(), "the bitmaps of a grid");
        let list = || Slab::zeroed(shape.strips * shape.height + 1, "the tiles of a level");
        let mut short = Slab::zeroed(shape.padded(), "distances")?;
        short.fill(u16::NONE);
        Ok(Self {
            connectivity: options.connectivity,
            kernels,
            simd,
            stopper: options.stopper.clone(),
            deadline: None,
            states,
            unvisited: bitmap()?,
            waves: [bitmap()?, bitmap()?],
            lists: [list()?, list()?],
            shared_tiles: SHARED_TILES,
            parts: [parts()?, parts()?],
            short,
            long: Slab::default(),
            has_distances: false,
            steps: Slab::default(),
            sources: Slab::default(),
            has_steps: false,
            has_sources: false,
            trace: Vec::new(),
            team,
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

    /// Stops searches, as a [`Stopper`] does, as soon as a level ends after `deadline` (`None`: never).
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Keeps an account of up to `levels` levels of each search from now on ([`trace`](Self::trace)); 0 ends it. It counts the cells of
    /// each level, which takes time.
    pub fn set_traced(&mut self, levels: usize) {
        self.trace = Vec::with_capacity(levels);
    }

    /// The account of the last search.
    pub fn trace(&self) -> &[GridLevel] {
        &self.trace
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
        let (mut ended, mut visits) = self.wave(sources, until.depth, until.target)?;
        if ended.is_none() {
            // The path is too long for distances of 16 bits. So it is for later searches of most such grids.
            check_available(4 * shape.padded() as u64, "distances")?;
            self.long = Slab::zeroed(shape.padded(), "distances")?;
            self.long.fill(u32::NONE);
            self.short = Slab::default();
            (ended, visits) = self.wave(sources, until.depth, until.target)?;
        }
        let (end, levels) = ended.unwrap_or((End::Complete, 0));
        let reached = self.decode();
        self.has_distances = true;
        Ok(GridOutcome { sources: sources.len() as u64, reached, levels, visits, end, elapsed: begin.elapsed() })
    }

    /// The array of distances as words, behind its first padding, and the half-words of a cell.
    fn planes(&mut self) -> (Shared<u32>, usize) {
        let first = self.shape.first();
        if self.long.is_empty() {
            // SAFETY: the cells are aligned to pages, and `first` is a multiple of 32: words of two cells each.
            let words = unsafe { self.short.align_to_mut::<u32>().1 };
            (Shared::new(&mut words[first / 2..]), 1)
        } else {
            (Shared::new(&mut self.long[first..]), 2)
        }
    }

    /// Lets the wave run. Returns why and after how many levels it ended (`None`: a distance does not fit), and the number of visits.
    #[allow(clippy::type_complexity, reason = "two results of one private function")]
    fn wave(&mut self, sources: &[Cell], depth: Option<u32>, target: Option<Cell>) -> Result<(Option<(End, u32)>, u64), GridError> {
        let shape = self.shape;
        let ((planes, halves), decode) = (self.planes(), self.decoder());
        self.trace.clear();
        self.states.iter_mut().for_each(TileState::reset);
        self.unvisited.copy_from_slice(&self.grid.free);
        self.waves.iter_mut().for_each(|wave| wave.fill(0));
        let mut len = 0;
        for &source in sources {
            let (word, bit) = shape.place(source);
            self.unvisited[word] &= !bit;
            self.waves[0][word] |= bit;
            let (tile, pitch) = (word / ROWS, shape.pitch());
            self.states[tile].reach(0);
            for strip in [tile - pitch, tile, tile + pitch] {
                for tile in strip - 1..=strip + 1 {
                    let stamp = self.states[tile].stamp.get_mut();
                    if *stamp == 0 {
                        *stamp = 1;
                        self.lists[0][len] = tile as u32;
                        len += 1;
                    }
                }
            }
        }
        let target = target.map(|target| shape.place(target));
        let reached = |unvisited: &[u32]| target.is_some_and(|(word, bit)| unvisited[word] & bit == 0 && self.grid.free[word] & bit != 0);
        let (mut level, mut visits, mut in_parts) = (0, 0, false);
        let end = loop {
            if reached(&self.unvisited) {
                break Ok(Some(End::Target));
            }
            if depth.is_some_and(|depth| level >= depth) {
                break Ok(Some(End::Depth));
            }
            if self.stopper.is_stopped() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                break Err(GridError::Stopped);
            }
            level += 1;
            let begin = (self.trace.capacity() > self.trace.len()).then(Instant::now);
            let [frontier, next] = &mut self.waves;
            let [list, listed] = &mut self.lists;
            let listed_len = AtomicUsize::new(0);
            let is_shared = len >= self.shared_tiles && self.team.size() > 1;
            if is_shared && !in_parts {
                self.parts[0].iter().for_each(Part::clear);
                list[..len].iter().for_each(|&tile| self.parts[0][(self.states[tile as usize].part & !AT_BORDER) as usize].append(&[tile]));
            } else if in_parts && !is_shared {
                gather(&self.parts[0], list);
            }
            in_parts = is_shared;
            let [parts, parts_after] = &self.parts;
            parts_after.iter().for_each(Part::clear);
            let work = Level {
                parts: [parts, parts_after],
                shape,
                level,
                list: &list[..len],
                free: &self.grid.free,
                frontier,
                next: Shared::new(next),
                unvisited: Shared::new(&mut self.unvisited),
                states: &self.states,
                planes,
                halves,
                decode,
                listed: Shared::new(listed),
                listed_len: &listed_len,
            };
            let [alone, beside] = self.kernels;
            let mut threads = 1;
            let any = if is_shared {
                let (any, worked) = (AtomicBool::new(false), AtomicU32::new(0));
                self.team.run(&|thread| {
                    // SAFETY: all arrays are of this shape, no tile is listed twice (stamps), and each part is taken once.
                    if unsafe { beside(&work, thread) } {
                        any.store(true, Relaxed);
                        worked.fetch_add(1, Relaxed);
                    }
                });
                threads = worked.into_inner().clamp(1, self.team.size() as u32);
                any.into_inner()
            } else {
                // SAFETY: as above, and no other thread takes part.
                unsafe { alone(&work, 0) }
            };
            visits += len as u64;
            if let Some(begin) = begin {
                let elapsed_ns = begin.elapsed().as_nanos() as u64;
                let cells = |&tile: &u32| ones(&next[tile as usize * ROWS..][..ROWS]);
                let found =
                    if in_parts { parts.iter().flat_map(Part::listed).map(cells).sum() } else { list[..len].iter().map(cells).sum() };
                if found > 0 {
                    self.trace.push(GridLevel { level, found, tiles: len as u64, threads, elapsed_ns });
                }
            }
            len = if in_parts { parts_after.iter().map(|part| part.listed().len()).sum() } else { listed_len.into_inner() };
            self.waves.swap(0, 1);
            self.lists.swap(0, 1);
            self.parts.swap(0, 1);
            if !any {
                level -= 1;
                break Ok(Some(End::Complete));
            }
            if halves == 1 && level > DEEPEST_SHORT {
                break Ok(None);
            }
        };
        Ok((end?.map(|end| (end, level + 1)), visits))
    }

    /// What turns planes into distances.
    fn decoder(&self) -> Decode {
        if self.long.is_empty() { decoder::<u16>(self.simd) } else { decoder::<u32>(self.simd) }
    }

    /// Turns the planes of all tiles into distances; returns the number of cells reached.
    fn decode(&mut self) -> u64 {
        let (shape, (words, _), decode) = (self.shape, self.planes(), self.decoder());
        let (states, free, unvisited) = (&self.states, &self.grid.free, &self.unvisited);
        let alone = shape.height * shape.strips < SHARED_TILES;
        let ([reached, _], _) = share_and_sum(&self.team, shape.height, TILE_ROWS, alone, &|_, range| {
            let tiles = range.flat_map(|number| (0..shape.strips).map(move |strip| Cell::new(number * ROWS, strip * super::COLUMNS)));
            let reached = tiles.map(|cell| {
                let tile = shape.tile(cell);
                let at = tile * ROWS;
                let (free, mut left) = (&free[at..at + ROWS], [0; ROWS]);
                left.copy_from_slice(&unvisited[at..at + ROWS]);
                // SAFETY: the arrays are of this shape, ranges are disjoint, and the wave has ended.
                unsafe { decode(&states[tile], words.get(), shape.line(), free, &left) }.unwrap_or_else(|| ones(free))
            });
            [reached.sum(), 0]
        });
        reached
    }

    /// Entries from a row to the next in [`distances`](Self::distances), [`steps`](Self::steps) and [`sources`](Self::sources).
    pub fn line(&self) -> usize {
        self.shape.line()
    }

    /// The distances of the last search (empty before the first one, and if it was stopped).
    pub fn distances(&self) -> Distances<'_> {
        let shape = self.shape;
        let (first, len) = (shape.first(), if self.has_distances { shape.line() * shape.rows } else { 0 });
        if self.long.is_empty() {
            Distances::Short(&self.short[first..first + len])
        } else {
            Distances::Long(&self.long[first..first + len])
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
            let (connectivity, short, long) = (self.connectivity, &self.short, &self.long);
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

/// Writes the tiles of all parts to `list`.
fn gather(parts: &[Part], list: &mut [u32]) {
    list.iter_mut().zip(parts.iter().flat_map(Part::listed)).for_each(|(to, &tile)| *to = tile);
}

const _: () = assert!(STAY as usize == DIRECTIONS.len());
