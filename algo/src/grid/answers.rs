//! What a search over a grid is asked for besides distances: the way to the nearest source, and which source that is.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::{COLUMNS, Cell, Connectivity, GridSearch, Shape, distances::Distance};
use socbfs::graph::NONE;

/// Directions of steps, clockwise from up: each is the way (rows, columns) to a neighbour.
pub(super) const DIRECTIONS: [(isize, isize); 8] = [(-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1)];
/// The step of a source.
pub const STAY: u8 = 8;
/// The step of a cell that was not reached.
pub const NO_STEP: u8 = u8::MAX;

/// Which of [`DIRECTIONS`] a step may take, in the order in which they are tried: straight ones first, and those within a row before all
/// others, so that the ways of many cells run along rows, which lie together in memory.
pub(super) fn directions(connectivity: Connectivity) -> &'static [usize] {
    if connectivity == Connectivity::Four { &[2, 6, 0, 4] } else { &[2, 6, 0, 4, 1, 3, 5, 7] }
}

/// The distance between a cell and its neighbour in an array of distances.
fn offset(shape: Shape, direction: usize) -> isize {
    let (rows, columns) = DIRECTIONS[direction];
    rows * shape.line() as isize + columns
}

/// Writes the step of each cell of `rows` towards the nearest source: the first of the directions that leads to a cell one step nearer.
/// `distances` is an array with its padding; `steps` has a line for each of `rows`.
pub(super) fn steps<D: Distance>(shape: Shape, connectivity: Connectivity, distances: &[D], rows: Range<usize>, steps: &mut [u8]) {
    let line = shape.line();
    for (row, steps) in rows.zip(steps.chunks_exact_mut(line)) {
        let first = shape.first() + row * line;
        for (strip, steps) in steps.chunks_exact_mut(COLUMNS).enumerate() {
            let at = first + strip * COLUMNS;
            let beside = |offset: isize| {
                let (begin, mut cells) = (at.wrapping_add_signed(offset), [D::NONE; COLUMNS]);
                cells.copy_from_slice(&distances[begin..begin + COLUMNS]); // padding surrounds the rows
                cells
            };
            let own = beside(0);
            let mut step = [NO_STEP; COLUMNS];
            for &direction in directions(connectivity).iter().rev() {
                let to = beside(offset(shape, direction));
                if direction % 2 == 1 && connectivity == Connectivity::EightAroundCorners {
                    let (one, other) = (beside(offset(shape, direction - 1)), beside(offset(shape, (direction + 1) % 8)));
                    for i in 0..COLUMNS {
                        let leads = (to[i] == own[i].nearer()) & (one[i] != D::NONE) & (other[i] != D::NONE);
                        step[i] = if leads { direction as u8 } else { step[i] };
                    }
                } else {
                    for i in 0..COLUMNS {
                        step[i] = if to[i] == own[i].nearer() { direction as u8 } else { step[i] };
                    }
                }
            }
            for i in 0..COLUMNS {
                // A cell that was not reached has no neighbour that is nearer by one: no distance is as large.
                steps[i] = if own[i].into() == 0 { STAY } else { step[i] };
            }
        }
    }
}

/// Writes the source to which the steps of each cell of `rows` lead, as row * columns + column. All entries must be [`NONE`] before the
/// first range; several threads may work on ranges at the same time, since they write the same values.
pub(super) fn sources(shape: Shape, steps: &[u8], rows: Range<usize>, sources: &[AtomicU32]) {
    let line = shape.line();
    let turn: [isize; 8] = std::array::from_fn(|direction| offset(shape, direction));
    let follow = |cell: usize| cell.wrapping_add_signed(turn[usize::from(steps[cell]) % turn.len()]);
    for row in rows {
        for column in 0..shape.columns {
            let cell = row * line + column;
            if steps[cell] == NO_STEP {
                continue;
            }
            let mut at = cell;
            let source = loop {
                let known = sources[at].load(Relaxed);
                if known != NONE {
                    break known;
                }
                if steps[at] == STAY {
                    break (at / line * shape.columns + at % line) as u32;
                }
                at = follow(at);
            };
            // Once more along the same way, for all cells that did not know it.
            let mut at = cell;
            while sources[at].load(Relaxed) == NONE {
                sources[at].store(source, Relaxed);
                if steps[at] == STAY {
                    break;
                }
                at = follow(at);
            }
        }
    }
}

/// The cells from one that was reached to its nearest source, both included ([`GridSearch::path`]).
#[derive(Debug, Clone)]
pub struct GridPath<'a> {
    pub(super) search: &'a GridSearch,
    pub(super) at: Option<Cell>,
}

impl Iterator for GridPath<'_> {
    type Item = Cell;

    fn next(&mut self) -> Option<Cell> {
        let cell = self.at?;
        self.at = self.search.step(cell).map(|direction| {
            let (rows, columns) = DIRECTIONS[direction];
            Cell::new(cell.row.wrapping_add_signed(rows), cell.column.wrapping_add_signed(columns))
        });
        Some(cell)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.at.and_then(|cell| self.search.distance(cell)).map_or(0, |distance| distance as usize + 1);
        (left, Some(left))
    }
}

impl ExactSizeIterator for GridPath<'_> {}
