//! Adjacency as bits: where neighbours have near numbers, one test of a word of the bitmap answers for several.

use rayon::prelude::*;

use super::{Csr, Vertex, accumulate};
use crate::memory::{OutOfMemory, Pod, Shared, Slab};

/// Vertices of a block, as a power of two.
const BITS: u32 = 5;
/// Rows that a task takes, at least.
const ROWS: usize = 4096;
/// Tasks for each thread.
const SHARES: usize = 4;
/// One in so many lists is sampled.
const SAMPLED: usize = 16;
/// Neighbours for each block from which blocks pay. Time of searches by blocks over that by numbers, one thread, AVX2, in the orders of
/// 2026-11-29: 0.4 at 3.8 (cnr-2000), 0.65 at 2.9 (facebook), 0.8 at 1.9 to 2.0 (dblp-2010, wiki-Vote), 0.95 to 1.0 at 1.5 to 1.9
/// (ego-Twitter, metis-mdual, email-Enron, Kronecker 16), 1.15 at 1.2 (Slashdot, Gnutella).
const DENSE: f64 = 1.8;

/// Half of a word of a bitmap, in which one bit is one vertex, and the bits of the vertices that are meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Block {
    half: u32,
    bits: u32,
}

impl Pod for Block {}

impl Block {
    /// The vertex of the lowest of `bits`; `None` without a bit.
    #[inline(always)]
    pub fn first(self, bits: u32) -> Option<Vertex> {
        (bits != 0).then(|| self.half << BITS | bits.trailing_zeros())
    }

    /// Which of the vertices are in `bitmap`.
    ///
    /// # Safety
    /// `bitmap` has a bit for each of them.
    #[inline(always)]
    pub unsafe fn met(self, bitmap: &[u64]) -> u32 {
        // SAFETY: as promised by the caller.
        unsafe { *bitmap.as_ptr().cast::<u32>().add(self.place()) & self.bits }
    }

    /// Enters the vertices into `bitmap`. Returns which of them were not in it.
    ///
    /// # Safety
    /// `bitmap` has a bit for each of them.
    #[inline(always)]
    pub unsafe fn enter(self, bitmap: &mut [u64]) -> u32 {
        // SAFETY: as promised by the caller.
        unsafe {
            let half = bitmap.as_mut_ptr().cast::<u32>().add(self.place());
            let new = self.bits & !*half;
            if new != 0 {
                *half |= new;
            }
            new
        }
    }

    /// The place of the half among those of the bitmap.
    #[inline(always)]
    fn place(self) -> usize {
        // The first half of a word is the less significant one.
        self.half as usize ^ usize::from(cfg!(target_endian = "big"))
    }
}

/// Adjacency in blocks: the neighbours of `v` are those of `blocks[offsets[v]..offsets[v + 1]]`. Blocks are in the order of their first
/// neighbours in the list.
#[derive(Debug)]
pub struct Blocks {
    /// `vertices + 1` offsets into `blocks`.
    pub offsets: Slab<u32>,
    /// Neighbours, each half word of a vertex once.
    pub blocks: Slab<Block>,
}

/// Offsets and entries: those of `v` are `entries[offsets[v]..offsets[v + 1]]`.
pub type Adjacency<'a, T> = (&'a [u32], &'a [T]);

/// The lists that levels read.
#[derive(Debug, Clone, Copy)]
pub enum Lists<'a> {
    /// Neighbours by number.
    Numbers(Adjacency<'a, Vertex>),
    /// Neighbours by blocks.
    Blocks(Adjacency<'a, Block>),
}

impl<'a> Lists<'a> {
    /// The `blocks` if there are any, else the numbers in `lists`.
    pub fn new(lists: &'a Csr, blocks: Option<&'a Blocks>) -> Self {
        blocks.map_or(Self::Numbers((&lists.offsets, &lists.targets)), |blocks| Self::Blocks((&blocks.offsets, &blocks.blocks)))
    }
}

/// Walks over the lists of `rows`. Calls `visit` with each row, neighbour, and place of the neighbour's block among those of the row.
/// Returns the number of blocks.
#[inline(always)]
fn group(lists: &Csr, rows: impl Iterator<Item = usize>, mut visit: impl FnMut(usize, Vertex, u32)) -> Result<u32, OutOfMemory> {
    // The place of each half word among all blocks, plus 1; what other rows have left is not more than `begin`.
    let mut places = Slab::zeroed((lists.vertices() >> BITS) + 1, "places of blocks")?;
    let mut end = 0;
    for row in rows {
        let begin = end;
        for &v in lists.neighbours(row as Vertex) {
            let place = &mut places[(v >> BITS) as usize];
            if *place <= begin {
                end += 1;
                *place = end;
            }
            visit(row, v, *place - 1 - begin);
        }
    }
    Ok(end)
}

impl Blocks {
    /// Whether blocks pay: by a sample of `lists`, they have [`DENSE`] neighbours.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub(super) fn pay(lists: &Csr) -> Result<bool, OutOfMemory> {
        let mut neighbours = 0_u64;
        let blocks = group(lists, (0..lists.vertices()).step_by(SAMPLED), |_, _, _| neighbours += 1)?;
        Ok(blocks > 0 && neighbours as f64 >= DENSE * f64::from(blocks))
    }

    /// The blocks of `lists`, made on the current rayon pool.
    ///
    /// # Errors
    /// [`OutOfMemory`].
    pub fn new(lists: &Csr) -> Result<Self, OutOfMemory> {
        let vertices = lists.vertices();
        let rows = vertices.div_ceil(SHARES * rayon::current_num_threads()).max(ROWS);
        let mut offsets: Slab<u32> = Slab::zeroed(vertices + 1, "offsets of blocks")?;
        offsets[1..].par_chunks_mut(rows).enumerate().try_for_each(|(part, counts)| {
            let first = part * rows;
            group(lists, first..first + counts.len(), |row, _, place| counts[row - first] = counts[row - first].max(place + 1)).map(drop)
        })?;
        let sum = accumulate(&mut offsets);
        let mut blocks: Slab<Block> = Slab::zeroed(sum as usize, "blocks of neighbours")?;
        let out = Shared::new(&mut blocks);
        (0..vertices.div_ceil(rows)).into_par_iter().try_for_each(|part| {
            group(lists, part * rows..vertices.min((part + 1) * rows), |row, v, place| {
                // SAFETY: the row has so many blocks by the same walk, which no other part writes.
                let block: &mut Block = unsafe { &mut *out.get().add((offsets[row] + place) as usize) };
                *block = Block { half: v >> BITS, bits: block.bits | 1 << (v & ((1 << BITS) - 1)) };
            })
            .map(drop)
        })?;
        Ok(Self { offsets, blocks })
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.offsets.bytes() + self.blocks.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BuildOptions, EdgeList, Layout, Listing, Order};

    /// Blocks have the neighbours of the lists, each half word once, in the order in which lists name them, whatever their number of tasks.
    #[test]
    fn blocks_have_the_neighbours_of_the_lists() {
        let n = 20_000;
        let edges: Vec<[Vertex; 2]> = (0..n).flat_map(|v| [1, 2, 3, 40, 700, 9_000].map(|step| [v, (v * 3 + step) % n])).collect();
        let edges = EdgeList::new(n as usize, edges, Listing::Once).unwrap();
        for (order, directed) in [(Order::Original, false), (Order::Degree, false), (Order::Bfs, true)] {
            let options = BuildOptions { order, directed, blocks: Some(true), ..BuildOptions::default() };
            let layout = Layout::build(&edges, &options).unwrap();
            for (csr, lists) in [(layout.csr(), layout.lists()), (layout.incoming(), layout.incoming_lists())] {
                let Lists::Blocks((offsets, blocks)) = lists else { panic!("blocks were asked for") };
                for v in 0..csr.vertices() {
                    let list = csr.neighbours(v as Vertex);
                    let blocks = &blocks[offsets[v] as usize..offsets[v + 1] as usize];
                    let mut halves: Vec<Vertex> = Vec::new();
                    list.iter().map(|w| w / 32).for_each(|half| {
                        if !halves.contains(&half) {
                            halves.push(half)
                        }
                    });
                    assert_eq!(blocks.iter().map(|block| block.half).collect::<Vec<_>>(), halves);
                    let mut named: Vec<Vertex> = blocks
                        .iter()
                        .flat_map(|block| (0..32).filter(|&bit| block.bits >> bit & 1 == 1).map(|bit| 32 * block.half + bit))
                        .collect();
                    let mut wanted = list.to_vec();
                    named.sort_unstable();
                    wanted.sort_unstable();
                    assert_eq!(named, wanted);
                }
            }
        }
    }

    /// A block reads and writes the bits of its vertices alone.
    #[test]
    fn a_block_enters_what_is_new() {
        let block = Block { half: 3, bits: 0b1010_0001 };
        let mut bitmap = [u64::MAX, 1 << 37];
        // SAFETY: the bitmap covers vertices 96 to 127.
        unsafe {
            assert_eq!((block.met(&bitmap), block.first(block.met(&bitmap))), (0b10_0000, Some(101)));
            assert_eq!((block.enter(&mut bitmap), bitmap), (0b1000_0001, [u64::MAX, 0b1010_0001 << 32]));
            assert_eq!((block.enter(&mut bitmap), block.first(0)), (0, None));
        }
    }

    #[test]
    fn blocks_are_made_where_neighbours_lie_together() {
        let build = |steps: &[u32]| {
            let edges = (0..4096).flat_map(|v| steps.iter().map(move |step| [v, (v + step) % 4096])).collect();
            let options = BuildOptions { order: Order::Original, keep_leaves: true, ..BuildOptions::default() };
            Layout::build(&EdgeList::new(4096, edges, Listing::Once).unwrap(), &options).unwrap()
        };
        assert!(matches!(build(&[1, 2, 3, 4]).lists(), Lists::Blocks(_)));
        assert!(matches!(build(&[1, 100, 1000, 2000]).lists(), Lists::Numbers(_)));
        // Rows come before.
        assert!(!build(&[1, 2]).rows().is_empty() && matches!(build(&[1, 2]).lists(), Lists::Numbers(_)));
    }
}
