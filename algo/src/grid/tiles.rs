//! What a search knows of its tiles, and which of them have something to do.

use socbfs::{
    graph::NONE,
    memory::{OutOfMemory, Pod, Slab},
};

/// Levels of a bucket: tiles whose waves begin within as many are visited together. No more than rows of a tile, so that a wave that
/// crosses a tile comes to the next one in a later bucket.
const WIDTH: u32 = 16;
/// A bucket, those that a visit in it can reach, and the one before, which is empty.
const BUCKETS: usize = 8;

/// [`TileState::phase`]: nothing has come to the tile in this search.
pub(super) const UNTOUCHED: u8 = 0;
/// Something has come to it, but its distances are still those of another search.
pub(super) const TOUCHED: u8 = 1;
/// It has distances.
pub(super) const WRITTEN: u8 = 2;

/// [`TileState::cell`] of tiles of the border.
pub(super) const BORDER_CELL: u32 = u32::MAX;

/// What the search knows of a tile.
#[derive(Debug, Clone, Copy)]
pub(super) struct TileState {
    /// The first level that something which came to the tile may reach; [`NONE`]: nothing has come since its last visit.
    pub(super) pending: u32,
    /// The last level that reached a cell of it.
    pub(super) last: u32,
    /// Where its first cell stands among the distances, from [`Shape::first`] on; [`BORDER_CELL`] for tiles of the border.
    pub(super) cell: u32,
    /// The buckets in which it stands, a bit for each.
    buckets: u8,
    /// Edges whose distances have changed since they were last offered.
    pub(super) edges: u8,
    pub(super) phase: u8,
    /// Not 0 if none of its distances was written since all were made [`NONE`].
    pub(super) blank: u8,
}

// All bytes are numbers.
impl Pod for TileState {}

impl TileState {
    /// A tile without distances.
    pub(super) fn new(cell: u32) -> Self {
        Self { pending: NONE, last: 0, cell, buckets: 0, edges: 0, phase: UNTOUCHED, blank: 1 }
    }

    /// Prepares it for a search.
    pub(super) fn reset(&mut self) {
        (self.pending, self.buckets, self.edges, self.phase) = (NONE, 0, 0, UNTOUCHED);
    }
}

/// The tiles that have something to do, in buckets by [`TileState::pending`].
#[derive(Debug)]
pub(super) struct Queue {
    /// The tiles of each bucket, with room for all. A tile that has moved to an earlier bucket is still in the other, too.
    slots: Slab<u32>,
    tiles: usize,
    lens: [usize; BUCKETS],
    /// The last level that counts.
    pub(super) until: u32,
    /// Whether a wave went on beyond it.
    pub(super) beyond: bool,
}

impl Queue {
    /// Room for `tiles` tiles.
    pub(super) fn new(tiles: usize) -> Result<Self, OutOfMemory> {
        let slots = Slab::zeroed(BUCKETS * tiles, "the tiles of a level")?;
        Ok(Self { slots, tiles, lens: [0; BUCKETS], until: 0, beyond: false })
    }

    /// Prepares it for a search.
    pub(super) fn reset(&mut self, until: u32) {
        (self.lens, self.until, self.beyond) = ([0; BUCKETS], until, false);
    }

    /// Notes that a visit of `tile` from `level` on finds something.
    pub(super) fn push(&mut self, tile: u32, state: &mut TileState, level: u32) {
        if level > self.until {
            self.beyond = true;
            return;
        }
        state.pending = state.pending.min(level);
        let bucket = (state.pending / WIDTH) as usize % BUCKETS;
        if state.buckets >> bucket & 1 == 0 {
            state.buckets |= 1 << bucket;
            self.slots[bucket * self.tiles + self.lens[bucket]] = tile;
            self.lens[bucket] += 1;
        }
    }

    /// Moves the tiles of the first bucket that has some to `list`; none is before that of `level`. Returns the first level of that bucket,
    /// and how many tiles are to be visited.
    ///
    /// # Safety
    /// `states` has all tiles that were pushed, and no other thread uses them.
    pub(super) unsafe fn pop(&mut self, states: *mut TileState, level: u32, list: &mut [u32]) -> Option<(u32, usize)> {
        let first = level / WIDTH;
        let number = (first..first + BUCKETS as u32).find(|&number| self.lens[number as usize % BUCKETS] > 0)?;
        let bucket = number as usize % BUCKETS;
        let mut len = 0;
        for &tile in &self.slots[bucket * self.tiles..][..self.lens[bucket]] {
            // SAFETY: the caller's promise.
            let state = unsafe { &mut *states.add(tile as usize) };
            state.buckets &= !(1 << bucket);
            list[len] = tile;
            len += usize::from(state.pending / WIDTH == number);
        }
        self.lens[bucket] = 0;
        Some((number * WIDTH, len))
    }
}
