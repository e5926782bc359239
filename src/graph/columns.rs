//! Columns of first neighbours: the k-th neighbour of every row in one array.

use rayon::prelude::*;

use super::{Csr, NONE, Order, Vertex};
use crate::memory::{OutOfMemory, Slab};

/// Columns in an order by degree, in which most vertices find a hub at once (measured: 4 are no faster), and with blocks, whose first one
/// answers for several neighbours.
const FEW: usize = 2;
/// Columns in other orders. (Measured in graphs with communities: 0.80 to 0.99 of the time with 2. In graphs without hubs all neighbours
/// are equally likely to be visited: four instead of none double the speed, eight lower it.)
const EVEN: usize = 4;
/// Rows that a task takes, at least.
const ROWS: usize = 4096;

/// The first neighbours of the rows of an adjacency.
#[derive(Debug, Default)]
pub struct Columns {
    numbers: Vec<Slab<Vertex>>,
    originals: Vec<Slab<Vertex>>,
}

impl Columns {
    /// As many columns of `rows` rows as pay in `order`, and beside `blocks`. `none` stands for a missing neighbour. `to_original` maps the
    /// numbers in `lists` to original ones; it is empty where they are the same.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn new(lists: &Csr, blocks: bool, rows: usize, none: Vertex, order: Order, to_original: &[Vertex]) -> Result<Self, OutOfMemory> {
        let mut columns = Self::default();
        for k in 0..if order == Order::Degree || blocks { FEW } else { EVEN } {
            let mut column = Slab::zeroed(rows, "columns of first neighbours")?;
            column.par_iter_mut().enumerate().with_min_len(ROWS).for_each(|(v, entry)| {
                let list = if v < lists.vertices() { lists.neighbours(v as Vertex) } else { &[] };
                *entry = list.get(k).copied().unwrap_or(none);
            });
            if order != Order::Original {
                let mut originals = Slab::zeroed(rows, "columns of first neighbours")?;
                originals.par_iter_mut().zip(&column[..]).with_min_len(ROWS).for_each(|(original, &neighbour)| {
                    *original = to_original.get(neighbour as usize).copied().unwrap_or(NONE);
                });
                columns.originals.push(originals);
            }
            columns.numbers.push(column);
        }
        Ok(columns)
    }

    /// The neighbours by the numbers of the lists.
    pub fn numbers(&self) -> &[Slab<Vertex>] {
        &self.numbers
    }

    /// The neighbours by original numbers ([`NONE`]: no such neighbour, in another order than the original one).
    pub fn originals(&self) -> &[Slab<Vertex>] {
        if self.originals.is_empty() { &self.numbers } else { &self.originals }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.numbers.iter().chain(&self.originals).map(Slab::bytes).sum()
    }
}
