//! The kernels of a search: a tile runs on, level after level, until its wave ends, and then offers its neighbours what has come to its
//! edges. That may come too early, when a shorter way leads through another tile: then the tile is visited again, from that level on.

use super::{
    COLUMNS, ROWS, Shape,
    distances::Distance,
    lanes::{self, Lanes},
    tiles::{BORDER_CELL, Queue, TOUCHED, TileState, UNTOUCHED, WRITTEN},
};
use socbfs::{
    Simd,
    graph::NONE,
    memory::{Shared, prefetch},
};

/// 16 rows of a strip: a vector.
pub(super) type Tile = [u32; ROWS];

/// Levels that one visit runs at most.
const HORIZON: u32 = 64;
/// Planes of bits that hold that many times.
pub(super) const PLANES: usize = HORIZON.ilog2() as usize;

/// The four edges of a tile. As [`TileState::edges`], a bit for each.
const UP: usize = 0;
const DOWN: usize = 1;
const LEFT: usize = 2;
const RIGHT: usize = 3;
/// Where the cells of an edge begin among those of a tile, and how many there are.
const EDGES: [(usize, usize); 4] = [(0, COLUMNS), (COLUMNS, COLUMNS), (2 * COLUMNS, ROWS), (2 * COLUMNS + ROWS, ROWS)];
/// Cells on the edges of a tile.
pub(super) const EDGE_CELLS: usize = 2 * (COLUMNS + ROWS);

/// What comes to a tile at each level of a visit, as bits of its cells: to the first row, to the last one, and to the first column (bits 0
/// to 15 for the rows) and the last (bits 16 to 31). The last entry is for what comes at other times.
struct Arrivals([[u32; 3]; HORIZON as usize + 1]);

/// Cells beside an edge and at its ends, rounded up to whole vectors.
const BESIDE: usize = 48;

/// The cells beside an edge, and those at its ends.
struct Beside<D> {
    /// One more than the distance of each; 0 if it is blocked, [`Distance::NONE`] if it was not reached.
    cells: [D; BESIDE],
    /// A bit for each of them that is free.
    free: u64,
    /// A bit for each cell of the edge, and at its ends, that is free.
    own: u64,
}

/// One search.
///
/// # Safety (of [`Kernels`])
/// All bitmaps have [`Shape::words`] words, states and edges are those of [`Shape::tiles`] tiles, and `cells` is an array of distances of
/// the same shape from [`Shape::first`] on. Lists hold tiles inside the border. Only one thread visits a tile, and none its neighbours
/// meanwhile; only one thread offers.
#[derive(Debug)]
pub(super) struct Wave<'a, D: Distance> {
    pub(super) shape: Shape,
    pub(super) free: &'a [u32],
    pub(super) unvisited: Shared<u32>,
    pub(super) states: Shared<TileState>,
    pub(super) cells: Shared<D>,
    /// For each cell on an edge of a touched tile one more than its distance, 0 if it is blocked, [`Distance::NONE`] if it was not reached.
    pub(super) edges: Shared<D>,
}

// SAFETY (of all unsafe functions): the promises of `Wave`. A tile inside the border has neighbours on all sides, so words, states and
// edges around it are inside their arrays.
#[allow(clippy::undocumented_unsafe_blocks, reason = "documented for all of them")]
impl<D: Distance> Wave<'_, D> {
    #[inline(always)]
    unsafe fn edge(&self, tile: usize, edge: usize) -> *mut D {
        unsafe { self.edges.get().add(tile * EDGE_CELLS + EDGES[edge].0) }
    }

    /// The distances of row `i` of the tile whose first cell is `cell`.
    #[inline(always)]
    unsafe fn row(&self, cell: u32, i: usize) -> *mut [D; COLUMNS] {
        unsafe { self.cells.get().add(cell as usize + i * self.shape.line()).cast() }
    }

    /// Prepares a tile to which something comes for the first time.
    unsafe fn touch(&self, tile: usize, state: &mut TileState) {
        (state.last, state.phase) = (0, TOUCHED);
        unsafe {
            let free = &self.free[tile * ROWS..][..ROWS];
            self.unvisited.get().add(tile * ROWS).copy_from_nonoverlapping(free.as_ptr(), ROWS);
            let open = |is_free: u32| if is_free & 1 == 1 { D::NONE } else { D::BLOCKED };
            let [top, bottom, left, right] = [UP, DOWN, LEFT, RIGHT].map(|edge| self.edge(tile, edge));
            for column in 0..COLUMNS {
                *top.add(column) = open(free[0] >> column);
                *bottom.add(column) = open(free[ROWS - 1] >> column);
            }
            for (row, &word) in free.iter().enumerate() {
                *left.add(row) = open(word);
                *right.add(row) = open(word >> (COLUMNS - 1));
            }
        }
    }

    /// The tile beside an edge of `tile`.
    #[inline(always)]
    fn next<const EDGE: usize>(&self, tile: usize) -> usize {
        let steps = if EDGE < LEFT { 1 } else { self.shape.pitch() };
        if EDGE % 2 == 0 { tile - steps } else { tile + steps }
    }

    /// Whether something of `tile` may come to a neighbour `from` a level on.
    #[inline(always)]
    unsafe fn is_behind(&self, tile: usize, from: u32) -> bool {
        let state = unsafe { *self.states.get().add(tile) };
        state.phase == WRITTEN && state.last + 1 >= from
    }

    /// The cells beside an edge of `tile`.
    #[inline(always)]
    unsafe fn beside<const KIND: u8, const EDGE: usize>(&self, tile: usize) -> Beside<D> {
        let (pitch, at, len) = (self.shape.pitch(), tile * ROWS, EDGES[EDGE].1);
        let (next, facing) = (self.next::<EDGE>(tile), EDGE ^ 1);
        let mut beside = Beside { cells: [D::BLOCKED; BESIDE], free: u64::MAX, own: u64::MAX };
        unsafe {
            // Edges of tiles that nothing has come to are of another search.
            let states = self.states.get();
            if (*states.add(next)).phase != UNTOUCHED {
                beside.cells.as_mut_ptr().add(1).copy_from_nonoverlapping(self.edge(next, facing), len);
            }
            if KIND != FOUR && EDGE < LEFT {
                if (*states.add(next - pitch)).phase != UNTOUCHED {
                    beside.cells[0] = *self.edge(next - pitch, facing).add(COLUMNS - 1);
                }
                if (*states.add(next + pitch)).phase != UNTOUCHED {
                    beside.cells[COLUMNS + 1] = *self.edge(next + pitch, facing);
                }
            }
            if KIND == CORNERS {
                (beside.free, beside.own) = match EDGE {
                    UP => (self.free_row(at - 1), self.free_row(at)),
                    DOWN => (self.free_row(at + ROWS), self.free_row(at + ROWS - 1)),
                    LEFT => (self.free_column(next, COLUMNS - 1), self.free_column(tile, 0)),
                    _ => (self.free_column(next, 0), self.free_column(tile, COLUMNS - 1)),
                };
            }
        }
        beside
    }

    /// The free cells of a row of a tile, from bit 1 on, and those at its ends.
    #[inline(always)]
    unsafe fn free_row(&self, word: usize) -> u64 {
        let (strip, free) = (self.shape.pitch() * ROWS, self.free.as_ptr());
        unsafe {
            let (before, own, after) = (*free.add(word - strip), *free.add(word), *free.add(word + strip));
            u64::from(before >> (COLUMNS - 1)) | u64::from(own) << 1 | u64::from(after & 1) << (COLUMNS + 1)
        }
    }

    /// The free cells of a column of a tile, from bit 1 on.
    #[inline(always)]
    unsafe fn free_column(&self, tile: usize, column: usize) -> u64 {
        let (mut bits, at) = (0, tile * ROWS);
        for row in 0..ROWS {
            bits |= u64::from(unsafe { self.free.get_unchecked(at + row) } >> column & 1) << (row + 1);
        }
        bits
    }

    /// The least level at which something comes to an edge of `tile` that is nearer than what is there; [`NONE`] if there is nothing.
    #[inline(always)]
    unsafe fn comes<const KIND: u8, const EDGE: usize>(&self, tile: usize) -> u32 {
        let Beside { cells, free, own } = unsafe { self.beside::<KIND, EDGE>(tile) };
        let here = unsafe { self.edge(tile, EDGE) };
        // Diagonal steps to a cell, from that before and from that after.
        let (from_before, from_after) = (own & free >> 1, own >> 2 & free >> 1);
        let mut least = D::NONE;
        for i in 0..EDGES[EDGE].1 {
            let mut comes = cells[i + 1].further();
            if KIND == EIGHT || KIND == CORNERS && from_before >> i & 1 == 1 {
                comes = comes.min(cells[i].further());
            }
            if KIND == EIGHT || KIND == CORNERS && from_after >> i & 1 == 1 {
                comes = comes.min(cells[i + 2].further());
            }
            least = least.min(if comes < unsafe { *here.add(i) } { comes } else { D::NONE });
        }
        if least == D::NONE { NONE } else { least.into() - 1 }
    }

    /// Notes what comes to an edge of `tile`, `from` a level on: for each level the cells. Returns after how many levels nothing comes, and
    /// whether something comes beyond the horizon.
    #[inline(always)]
    unsafe fn arrive<const KIND: u8, const EDGE: usize>(&self, tile: usize, from: u32, arrivals: &mut Arrivals) -> (u32, bool) {
        unsafe {
            let next = self.next::<EDGE>(tile);
            let sides = usize::from(KIND != FOUR && EDGE < LEFT) * self.shape.pitch();
            if !(self.is_behind(next, from) || sides != 0 && (self.is_behind(next - sides, from) || self.is_behind(next + sides, from))) {
                return (0, false);
            }
        }
        let Beside { cells, free, own } = unsafe { self.beside::<KIND, EDGE>(tile) };
        // Levels count from 0, and cells one more than their distance: a step further.
        let (from, horizon, len) = (D::of(from), D::of(HORIZON), EDGES[EDGE].1);
        let (mut levels, mut end, mut last) = ([horizon; BESIDE], D::BLOCKED, D::BLOCKED);
        for i in 0..BESIDE {
            levels[i] = cells[i].minus(from).min(horizon);
            end = end.max(if levels[i] == horizon { D::BLOCKED } else { levels[i].behind() });
            last = last.max(if cells[i] == D::NONE { D::BLOCKED } else { cells[i] });
        }
        if end != D::BLOCKED {
            let (to, shift) = if EDGE < LEFT { (EDGE, 0) } else { (2, (EDGE - LEFT) * ROWS) };
            for (i, &level) in levels[..len + 2].iter().enumerate() {
                let mut bits = 1_u64 << i;
                if KIND == EIGHT {
                    bits |= bits << 1 | bits >> 1;
                } else if KIND == CORNERS {
                    bits |= ((bits & own) << 1 | (bits & own) >> 1) & free;
                }
                // SAFETY: a level is at most the horizon.
                let entry = unsafe { arrivals.0.get_unchecked_mut(level.into() as usize) };
                entry[to] |= ((bits >> 1 & ((1 << len) - 1)) << shift) as u32;
            }
        }
        (end.into(), last > from && last.minus(from) >= horizon)
    }

    /// What comes to `tile` `from` a level on, after how many levels nothing comes, and whether something comes beyond the horizon.
    #[inline(always)]
    unsafe fn arrivals<const KIND: u8>(&self, tile: usize, from: u32) -> (Arrivals, u32, bool) {
        let mut arrivals = Arrivals([[0; 3]; HORIZON as usize + 1]);
        let (up, down, left, right) = unsafe {
            (
                self.arrive::<KIND, UP>(tile, from, &mut arrivals),
                self.arrive::<KIND, DOWN>(tile, from, &mut arrivals),
                self.arrive::<KIND, LEFT>(tile, from, &mut arrivals),
                self.arrive::<KIND, RIGHT>(tile, from, &mut arrivals),
            )
        };
        arrivals.0[HORIZON as usize] = [0; 3];
        (arrivals, up.0.max(down.0).max(left.0).max(right.0), up.1 | down.1 | left.1 | right.1)
    }

    /// The cells one step from the `wave` in a tile with these `free` cells, and those that `[up, down, sides]` adds.
    #[inline(always)]
    unsafe fn step<V: Lanes, const KIND: u8>(wave: V, free: V, [up, down, sides]: [u32; 3]) -> V {
        unsafe {
            let (from_left, from_right) = (wave.left::<1>(), wave.right::<1>());
            let in_row = from_left.or(from_right);
            let column = if KIND == EIGHT { in_row.or(wave) } else { wave };
            let next = in_row.or(V::columns(sides)).or(column.down(up)).or(column.up(down));
            if KIND != CORNERS {
                return next;
            }
            // A row up or down, if the cells on both sides of the step are free.
            let (from_left, from_right) = (from_left.and(free), from_right.and(free));
            let from_left = from_left.down(0).or(from_left.up(0)).and(free.left::<1>());
            next.or(from_left).or(from_right.down(0).or(from_right.up(0)).and(free.right::<1>()))
        }
    }

    /// Runs the wave of `tile` from the level on for which it was pushed. Returns the number of cells that were not reached before.
    #[inline(always)]
    unsafe fn visit<V: Lanes, const KIND: u8>(&self, tile: usize, until: u32) -> u64 {
        let at = tile * ROWS;
        unsafe {
            let state = &mut *self.states.get().add(tile);
            let (from, cell) = (std::mem::replace(&mut state.pending, NONE), state.cell);
            if from > until {
                return 0;
            }
            let row = |i: usize| self.row(cell, i);
            for i in 0..ROWS {
                prefetch(row(i));
            }
            let (free, open) = (V::load(self.free.as_ptr().add(at)), self.unvisited.get().add(at));
            let unvisited = V::load(open);
            let (mut left, mut wave) = (unvisited, unvisited.xor(unvisited));
            if state.phase == WRITTEN && from <= state.last + 1 {
                // Cells that were reached at this level or later may be nearer.
                let (mut later, mut before) = ([0; ROWS], [0; ROWS]);
                for i in 0..ROWS {
                    (later[i], before[i]) = D::compare::<V>(&row(i).read_unaligned(), from);
                }
                (left, wave) = (V::load(later.as_ptr()).and(free), V::load(before.as_ptr()));
            }
            let all = left;
            let (arrivals, end, comes_later) = self.arrivals::<KIND>(tile, from);
            // Times of arrival, in Gray code: two in succession differ in one digit, so a level changes one plane, at all cells that are
            // left then.
            let mut planes = [[0; ROWS]; PLANES];
            let (levels, mut level, mut last) = (HORIZON.min(until - from + 1), 0, None);
            loop {
                let next = Self::step::<V, KIND>(wave, free, *arrivals.0.get_unchecked(level as usize)).and(left);
                if level == levels {
                    if !next.is_empty() {
                        state.pending = from + levels;
                    }
                    break;
                }
                if level > 0 {
                    let plane = planes[level.trailing_zeros() as usize].as_mut_ptr();
                    V::load(plane).xor(left).store(plane);
                }
                (left, wave) = (left.xor(next), next);
                let is_empty = next.is_empty();
                last = if is_empty { last } else { Some(level) };
                level += 1;
                if is_empty && level >= end {
                    break;
                }
            }
            let found = unvisited.and(all.xor(left));
            if let Some(last) = last {
                unvisited.xor(found).store(open);
                let mut reached = [0; ROWS];
                all.xor(left).store(reached.as_mut_ptr());
                self.write::<V>(tile, state, from, &mut planes, &reached);
                state.last = from + last;
                if !left.and(unvisited).xor(left).is_empty() {
                    // Cells whose way comes to the tile later than this visit looks are as near as before.
                    let far = |i: usize| row(i).read_unaligned().into_iter().filter(|&cell| cell != D::NONE).fold(D::of(0), D::max);
                    state.last = (0..ROWS).map(far).fold(D::of(0), D::max).into();
                }
            }
            if comes_later {
                let in_rows = self.comes::<KIND, UP>(tile).min(self.comes::<KIND, DOWN>(tile));
                let in_columns = self.comes::<KIND, LEFT>(tile).min(self.comes::<KIND, RIGHT>(tile));
                state.pending = state.pending.min(in_rows).min(in_columns);
            }
            let mut words = [0; ROWS];
            found.store(words.as_mut_ptr());
            super::ones(&words)
        }
    }

    /// Writes the distances of the cells that a visit which began at level `from` has `reached`, from planes of their times.
    #[inline(always)]
    unsafe fn write<V: Lanes>(&self, tile: usize, state: &mut TileState, from: u32, planes: &mut [Tile; PLANES], reached: &Tile) {
        let is_new = state.phase == TOUCHED;
        unsafe {
            // From Gray codes to numbers: a bit is the sum of the bits above and its own.
            for k in (1..PLANES).rev() {
                V::load(planes[k - 1].as_ptr()).xor(V::load(planes[k].as_ptr())).store(planes[k - 1].as_mut_ptr());
            }
            let (first, end) = (self.edge(tile, LEFT), self.edge(tile, RIGHT));
            let (mut rows, mut columns) = (0_u32, 0);
            for (i, &reached) in reached.iter().enumerate() {
                rows |= u32::from(is_new || reached != 0) << i;
                columns |= reached;
            }
            while rows != 0 {
                let i = rows.trailing_zeros() as usize;
                rows &= rows - 1;
                let (times, row) = (V::times(planes, i, reached[i]), self.row(state.cell, i));
                let mut cells = [D::NONE; COLUMNS];
                for column in 0..COLUMNS {
                    cells[column] = if times[column] > 127 { D::NONE } else { D::of(from + u32::from(times[column])) };
                }
                lower(first.add(i).cast(), &[cells[0]]);
                lower(end.add(i).cast(), &[cells[COLUMNS - 1]]);
                if !is_new {
                    let old = row.read_unaligned();
                    for column in 0..COLUMNS {
                        cells[column] = cells[column].min(old[column]);
                    }
                }
                row.write_unaligned(cells);
            }
            for (edge, i) in [(UP, 0), (DOWN, ROWS - 1)] {
                if reached[i] != 0 {
                    lower(self.edge(tile, edge).cast(), &self.row(state.cell, i).read_unaligned());
                }
            }
            (state.phase, state.blank) = (WRITTEN, 0);
            state.edges |= u8::from(reached[0] != 0) << UP
                | u8::from(reached[ROWS - 1] != 0) << DOWN
                | (columns as u8 & 1) << LEFT
                | ((columns >> (COLUMNS - 1)) as u8) << RIGHT;
        }
    }

    /// Pushes `tile` if what is beside that edge reaches it.
    #[inline(always)]
    unsafe fn offer_to<const KIND: u8, const EDGE: usize>(&self, tile: usize, queue: &mut Queue) {
        unsafe {
            let state = &mut *self.states.get().add(tile);
            if state.cell == BORDER_CELL {
                return;
            }
            if state.phase == UNTOUCHED {
                self.touch(tile, state);
            }
            let level = self.comes::<KIND, EDGE>(tile);
            if level != NONE {
                queue.push(tile as u32, state, level);
            }
        }
    }

    /// Pushes `tile` if its wave goes on, and its neighbours if what has come to its edges reaches them.
    #[inline(always)]
    unsafe fn offer<const KIND: u8>(&self, tile: usize, queue: &mut Queue) {
        let (states, pitch) = (self.states.get(), self.shape.pitch());
        unsafe {
            let state = &mut *states.add(tile);
            let (edges, pending) = (std::mem::take(&mut state.edges), state.pending);
            if pending != NONE {
                queue.push(tile as u32, state, pending);
            }
            if edges >> UP & 1 == 1 {
                self.offer_row::<KIND, DOWN>(tile - 1, queue);
            }
            if edges >> DOWN & 1 == 1 {
                self.offer_row::<KIND, UP>(tile + 1, queue);
            }
            if edges >> LEFT & 1 == 1 {
                self.offer_to::<KIND, RIGHT>(tile - pitch, queue);
            }
            if edges >> RIGHT & 1 == 1 {
                self.offer_to::<KIND, LEFT>(tile + pitch, queue);
            }
        }
    }

    /// As [`Self::offer_to`], also to the tiles on both sides if diagonal steps lead there.
    #[inline(always)]
    unsafe fn offer_row<const KIND: u8, const EDGE: usize>(&self, tile: usize, queue: &mut Queue) {
        let (sides, pitch) = (usize::from(KIND != FOUR), self.shape.pitch());
        for tile in (tile - sides * pitch..=tile + sides * pitch).step_by(pitch) {
            unsafe { self.offer_to::<KIND, EDGE>(tile, queue) };
        }
    }

    /// The distance of a cell, by its row and column in `tile`, if it was reached.
    pub(super) unsafe fn distance(&self, [tile, row, column]: [usize; 3]) -> Option<u32> {
        unsafe {
            let state = *self.states.get().add(tile);
            let distance = (state.phase == WRITTEN).then(|| *self.row(state.cell, row).cast::<D>().add(column));
            distance.filter(|&distance| distance != D::NONE).map(D::into)
        }
    }

    /// Removes distances of `tile` beyond `until`, and those of searches before. Returns how many it removed of this one.
    pub(super) unsafe fn finish(&self, tile: usize, until: u32) -> u64 {
        unsafe {
            let state = &mut *self.states.get().add(tile);
            let is_written = state.phase == WRITTEN;
            let is_done = if is_written { state.last <= until } else { state.blank != 0 };
            if is_done || state.cell == BORDER_CELL {
                return 0;
            }
            state.blank = u8::from(!is_written);
            let (mut removed, until) = (0, if is_written { D::of(until).behind() } else { D::BLOCKED });
            for i in 0..ROWS {
                for cell in &mut *self.row(state.cell, i) {
                    removed += u64::from(cell.behind() > until && *cell != D::NONE);
                    *cell = if cell.behind() > until { D::NONE } else { *cell };
                }
            }
            if is_written { removed } else { 0 }
        }
    }

    /// Makes a cell, by its row and column in `tile`, a source. Returns whether it was none before.
    pub(super) unsafe fn begin(&self, [tile, row, column]: [usize; 3], queue: &mut Queue) -> bool {
        let bit = 1 << column;
        unsafe {
            let state = &mut *self.states.get().add(tile);
            if state.phase == UNTOUCHED {
                self.touch(tile, state);
                (state.phase, state.blank) = (WRITTEN, 0);
                for i in 0..ROWS {
                    self.row(state.cell, i).write_unaligned([D::NONE; COLUMNS]);
                }
            }
            let word = self.unvisited.get().add(tile * ROWS + row);
            let is_new = *word & bit != 0;
            *word &= !bit;
            *self.row(state.cell, row).cast::<D>().add(column) = D::of(0);
            let edges =
                [(UP, row == 0, column), (DOWN, row == ROWS - 1, column), (LEFT, column == 0, row), (RIGHT, column == COLUMNS - 1, row)];
            for (edge, is_on, place) in edges {
                if is_on {
                    *self.edge(tile, edge).add(place) = D::of(1);
                    state.edges |= 1 << edge;
                }
            }
            queue.push(tile as u32, state, 1);
            is_new
        }
    }
}

/// Lowers entries of an edge to one more than the distances of its cells.
#[inline(always)]
unsafe fn lower<D: Distance, const LEN: usize>(edge: *mut [D; LEN], cells: &[D; LEN]) {
    // SAFETY: the caller's promise: the edge is the caller's own.
    let entries = unsafe { &mut *edge };
    for i in 0..LEN {
        entries[i] = entries[i].min(cells[i].behind());
    }
}

pub(super) const FOUR: u8 = 4;
pub(super) const EIGHT: u8 = 8;
pub(super) const CORNERS: u8 = 9;

/// The kernels of one connectivity, for one kind of vector instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kernels<D: Distance> {
    /// Visits tiles. Returns the number of cells that were not reached before.
    pub(super) visit: unsafe fn(&Wave<'_, D>, &[u32], u32) -> u64,
    /// Pushes the neighbours of tiles.
    pub(super) offer: unsafe fn(&Wave<'_, D>, &[u32], &mut Queue),
}

impl<D: Distance> Kernels<D> {
    pub(super) fn of<const KIND: u8>(simd: Simd) -> Self {
        match simd {
            #[cfg(target_arch = "x86_64")]
            Simd::Avx2 | Simd::Avx512 => Self { visit: avx2_visit::<D, KIND>, offer: avx2_offer::<D, KIND> },
            #[cfg(target_arch = "aarch64")]
            Simd::Neon => Self { visit: visit::<D, lanes::Neon, KIND>, offer: offer::<D, KIND> },
            _ => Self { visit: visit::<D, lanes::Plain, KIND>, offer: offer::<D, KIND> },
        }
    }
}

#[inline(always)]
unsafe fn visit<D: Distance, V: Lanes, const KIND: u8>(wave: &Wave<'_, D>, tiles: &[u32], until: u32) -> u64 {
    let mut found = 0;
    // A loop: a closure does not have the vector instructions of the function it is in.
    for &tile in tiles {
        // SAFETY: the caller's promise.
        found += unsafe { wave.visit::<V, KIND>(tile as usize, until) };
    }
    found
}

#[inline(always)]
unsafe fn offer<D: Distance, const KIND: u8>(wave: &Wave<'_, D>, tiles: &[u32], queue: &mut Queue) {
    for &tile in tiles {
        // SAFETY: the caller's promise.
        unsafe { wave.offer::<KIND>(tile as usize, queue) };
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn avx2_visit<D: Distance, const KIND: u8>(wave: &Wave<'_, D>, tiles: &[u32], until: u32) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { visit::<D, lanes::Avx2, KIND>(wave, tiles, until) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn avx2_offer<D: Distance, const KIND: u8>(wave: &Wave<'_, D>, tiles: &[u32], queue: &mut Queue) {
    // SAFETY: the caller's promise.
    unsafe { offer::<D, KIND>(wave, tiles, queue) }
}
