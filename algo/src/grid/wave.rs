//! The kernel of a level: every tile of a list finds the cells that are one step from the frontier.

use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};

use crossbeam_utils::CachePadded;

use super::{
    ROWS, Shape,
    distances::Decode,
    lanes::{self, Lanes},
};
use socbfs::{
    Simd,
    memory::{OutOfMemory, Shared, Slab},
};

/// 16 rows of a strip: a vector.
pub(super) type Tile = [u32; ROWS];

/// The stamp of a tile that is never visited.
pub(super) const CLOSED: u32 = u32::MAX;
/// [`TileState::planes`] of a tile that has distances already.
pub(super) const DECODED: u32 = u32::MAX;
/// [`TileState::begin`] before the wave has reached the tile.
pub(super) const UNTOUCHED: u32 = u32::MAX;
/// Tiles that a thread visits before it appends what it has listed to the parts.
const PIECE: usize = 32;

/// What the search knows of a tile. Only `stamp` is written by threads that do not visit the tile.
#[derive(Debug, Default)]
pub(super) struct TileState {
    /// The last level for which the tile was listed.
    pub(super) stamp: AtomicU32,
    /// The level that first reached a cell of it. Times in planes count from here.
    pub(super) begin: AtomicU32,
    /// The last level that reached a cell of it.
    pub(super) last: AtomicU32,
    /// Number of planes in use: the others hold what was there before.
    pub(super) planes: AtomicU32,
    /// Where its first cell stands in an array of distances; [`BORDER_CELL`] for tiles of the border.
    pub(super) cell: u32,
    /// The [`Part`] that it belongs to, and [`AT_BORDER`].
    pub(super) part: u32,
}

/// Set in [`TileState::part`] if a neighbour belongs to another part, whose thread may list this tile too.
pub(super) const AT_BORDER: u32 = 1 << 31;

/// The tiles of a level that one thread visits, if it is in time. A tile always belongs to the same part, so that what a level writes stays
/// in the cache of the thread that reads it in the next one. (Tiles that any thread could take were slower on two threads than on one.)
#[derive(Debug)]
pub(super) struct Part {
    pub(super) tiles: Slab<u32>,
    pub(super) len: CachePadded<AtomicUsize>,
    /// Whether a thread has taken it.
    pub(super) taken: AtomicBool,
}

impl Part {
    /// With room for `tiles` tiles.
    pub(super) fn new(tiles: usize) -> Result<Self, OutOfMemory> {
        let tiles = Slab::zeroed(tiles, "the tiles of a level")?;
        Ok(Self { tiles, len: CachePadded::new(AtomicUsize::new(0)), taken: AtomicBool::new(false) })
    }

    /// The tiles that it has.
    pub(super) fn listed(&self) -> &[u32] {
        &self.tiles[..self.len.load(Relaxed)]
    }

    /// Appends tiles, while other threads do.
    pub(super) fn append(&self, tiles: &[u32]) {
        let at = self.len.fetch_add(tiles.len(), Relaxed);
        debug_assert!(at + tiles.len() <= self.tiles.len());
        // SAFETY: each tile of the part is listed once in a level, so there is room; no thread has the same place.
        unsafe { self.tiles.shared().get().add(at).copy_from_nonoverlapping(tiles.as_ptr(), tiles.len()) };
    }

    /// Makes it empty.
    pub(super) fn clear(&self) {
        self.len.store(0, Relaxed);
        self.taken.store(false, Relaxed);
    }
}

/// [`TileState::cell`] of tiles of the border.
pub(super) const BORDER_CELL: u32 = u32::MAX;

impl TileState {
    /// Prepares it for a search.
    pub(super) fn reset(&mut self) {
        *self.stamp.get_mut() = if self.cell == BORDER_CELL { CLOSED } else { 0 };
        *self.begin.get_mut() = UNTOUCHED;
        *self.planes.get_mut() = 0;
    }

    /// Notes that `level` reaches a cell of it. Returns the planes that change, a bit for each: those in which the Gray codes of the times
    /// of the last change and of this one differ. Consecutive times differ in one.
    #[inline(always)]
    pub(super) fn reach(&self, level: u32) -> u32 {
        let mut begin = self.begin.load(Relaxed);
        if begin == UNTOUCHED {
            begin = level;
            self.begin.store(level, Relaxed);
            self.last.store(level, Relaxed);
        }
        let gray = |time: u32| time ^ (time >> 1);
        let flips = gray(self.last.load(Relaxed) - begin) ^ gray(level - begin);
        self.last.store(level, Relaxed);
        flips
    }
}

/// One level.
///
/// # Safety (of [`Level::visit`])
/// All bitmaps have [`Shape::words`] words, and `planes` has the cells of an array of distances of the same shape from [`Shape::first`] on.
/// List and parts hold tiles inside the border, none of them twice; so a tile has one visitor, and only that visitor writes its words and
/// planes. No one writes `frontier`.
#[derive(Debug)]
pub(super) struct Level<'a> {
    pub(super) shape: Shape,
    pub(super) level: u32,
    /// The tiles to visit, if one thread visits them all.
    pub(super) list: &'a [u32],
    /// Otherwise the parts that they are in, and those of the next level, both as many as there are threads.
    pub(super) parts: [&'a [Part]; 2],
    pub(super) free: &'a [u32],
    /// The cells that the level before has reached.
    pub(super) frontier: &'a [u32],
    /// The cells that this level reaches. Before it, those of the level before the last.
    pub(super) next: Shared<u32>,
    pub(super) unvisited: Shared<u32>,
    pub(super) states: &'a [TileState],
    /// The array of distances, as words.
    pub(super) planes: Shared<u32>,
    /// Half-words per cell of that array: 1 for u16, 2 for u32.
    pub(super) halves: usize,
    /// Turns the planes of a tile into distances.
    pub(super) decode: Decode,
    /// The tiles of the next level, with room for one more than there are tiles.
    pub(super) listed: Shared<u32>,
    pub(super) listed_len: &'a AtomicUsize,
}

impl Level<'_> {
    /// Visits all tiles of the list or, unless it is `ALONE`, of the parts that no other thread has taken, beginning with that of `thread`.
    /// Returns whether it has reached a cell. `KIND` is the connectivity.
    #[inline(always)]
    unsafe fn visit<V: Lanes, const KIND: u8, const ALONE: bool>(&self, thread: usize) -> bool {
        let mut any = false;
        if ALONE {
            let mut len = 0;
            for &tile in self.list {
                // SAFETY: the caller's promise. A tile is listed once, so there is room for it, and for one entry that does not count.
                any |= unsafe { self.tile::<V, KIND, true>(tile as usize, self.listed.get(), &mut len) };
            }
            self.listed_len.store(len, Relaxed);
            return any;
        }
        // A tile lists itself and eight neighbours.
        let (mut own, [parts, next]) = ([0; 9 * PIECE + 1], self.parts);
        for number in (0..parts.len()).map(|i| (thread + i) % parts.len()) {
            if parts[number].taken.swap(true, AcqRel) {
                continue;
            }
            for piece in parts[number].listed().chunks(PIECE) {
                let (mut len, mut same) = (0, 0);
                for &tile in piece {
                    // SAFETY: the caller's promise.
                    any |= unsafe { self.tile::<V, KIND, false>(tile as usize, own.as_mut_ptr(), &mut len) };
                }
                for i in 0..len {
                    let part = (self.states[own[i] as usize].part & !AT_BORDER) as usize;
                    if part == number {
                        own[same] = own[i];
                        same += 1;
                    } else {
                        next[part].append(&own[i..=i]);
                    }
                }
                next[number].append(&own[..same]);
            }
        }
        any
    }

    /// Visits one tile, and appends the tiles that its new cells can reach to `listed`.
    #[inline(always)]
    unsafe fn tile<V: Lanes, const KIND: u8, const ALONE: bool>(&self, tile: usize, listed: *mut u32, len: &mut usize) -> bool {
        let (pitch, at) = (self.shape.pitch(), tile * ROWS);
        // SAFETY: the tile has neighbours on all sides, so the words around it are inside the bitmaps; it is this thread's own.
        unsafe {
            let unvisited = V::load(self.unvisited.get().add(at));
            let next = self.step::<V, KIND>(at).and(unvisited);
            let own = self.next.get().add(at);
            next.store(own);
            let found = next.union();
            if found == 0 {
                // The cells of the last level must also leave the other bitmap.
                let before = V::load(self.frontier.as_ptr().add(at)).union();
                self.list::<ALONE>(tile, before != 0, listed, len);
                if before != 0 && unvisited.union() == 0 {
                    // Distances are made while the planes are in the cache. Tiles with cells that are not reached wait for the end.
                    let (state, free) = (&self.states[tile], &self.free[at..at + ROWS]);
                    (self.decode)(state, self.planes.get(), self.shape.line(), free, &[0; ROWS]);
                }
                return false;
            }
            self.arrive(tile, unvisited);
            unvisited.xor(next).store(self.unvisited.get().add(at));
            let (first, last) = (*own, *own.add(ROWS - 1));
            self.list::<ALONE>(tile, true, listed, len);
            self.list::<ALONE>(tile - 1, first != 0, listed, len);
            self.list::<ALONE>(tile + 1, last != 0, listed, len);
            self.list::<ALONE>(tile - pitch, found & 1 != 0, listed, len);
            self.list::<ALONE>(tile + pitch, found >> 31 != 0, listed, len);
            if KIND != FOUR {
                self.list::<ALONE>(tile - pitch - 1, first & 1 != 0, listed, len);
                self.list::<ALONE>(tile - pitch + 1, last & 1 != 0, listed, len);
                self.list::<ALONE>(tile + pitch - 1, first >> 31 != 0, listed, len);
                self.list::<ALONE>(tile + pitch + 1, last >> 31 != 0, listed, len);
            }
        }
        true
    }

    /// The cells one step from the frontier in the tile whose words begin at `at`, blocked ones and the frontier among them.
    #[inline(always)]
    unsafe fn step<V: Lanes, const KIND: u8>(&self, at: usize) -> V {
        let (frontier, free, strip) = (self.frontier.as_ptr(), self.free.as_ptr(), self.shape.pitch() * ROWS);
        // SAFETY: as in `tile`.
        unsafe {
            let (up, down) = (V::load(frontier.add(at - 1)), V::load(frontier.add(at + 1)));
            let straight = up.or(down).or(west::<V>(frontier.add(at), strip)).or(east::<V>(frontier.add(at), strip));
            if KIND == FOUR {
                return straight;
            }
            let (up_west, up_east) = (west::<V>(frontier.add(at - 1), strip), east::<V>(frontier.add(at - 1), strip));
            let (down_west, down_east) = (west::<V>(frontier.add(at + 1), strip), east::<V>(frontier.add(at + 1), strip));
            if KIND == EIGHT {
                return straight.or(up_west).or(up_east).or(down_west).or(down_east);
            }
            let (free_west, free_east) = (west::<V>(free.add(at), strip), east::<V>(free.add(at), strip));
            let from_above = up_west.and(free_west).or(up_east.and(free_east)).and(V::load(free.add(at - 1)));
            let from_below = down_west.and(free_west).or(down_east.and(free_east)).and(V::load(free.add(at + 1)));
            straight.or(from_above).or(from_below)
        }
    }

    /// Appends `tile` to `listed` if it is `wanted` and not listed yet.
    #[inline(always)]
    unsafe fn list<const ALONE: bool>(&self, tile: usize, wanted: bool, listed: *mut u32, len: &mut usize) {
        let after = self.level + 1;
        // SAFETY: tiles around a tile inside the border exist, and there is room for one more.
        unsafe {
            let state = self.states.get_unchecked(tile);
            let first = if ALONE || state.part & AT_BORDER == 0 {
                // Without a branch: whether a wave leaves its tile is hard to predict.
                let before = state.stamp.load(Relaxed);
                let first = (before < after) & wanted;
                state.stamp.store(if first { after } else { before }, Relaxed);
                first
            } else {
                // AcqRel: it orders nothing but itself; each tile must be listed by one thread.
                wanted && state.stamp.load(Relaxed) < after && state.stamp.fetch_max(after, AcqRel) < after
            };
            *listed.add(*len) = tile as u32;
            *len += usize::from(first);
        }
    }

    /// Notes that some of the `unvisited` cells of `tile` are reached now. A plane changes at all cells that are unvisited then. So those
    /// that are reached later see the change undone, or another one: what stays in the planes of a cell is the Gray code of its own time.
    #[inline(always)]
    unsafe fn arrive<V: Lanes>(&self, tile: usize, unvisited: V) {
        // SAFETY: the tile is this thread's own, and its 16 rows, of 16 words or 32 each, have room for 16 planes or 32.
        unsafe {
            let state = self.states.get_unchecked(tile);
            let mut flips = state.reach(self.level);
            let start = self.planes.get().add(state.cell as usize / 2 * self.halves);
            let line = self.shape.line() / 2 * self.halves;
            while flips != 0 {
                let changed = flips.trailing_zeros();
                flips &= flips - 1;
                let used = state.planes.load(Relaxed);
                if changed >= used {
                    for k in used..=changed {
                        start.add(plane(k as usize, line)).cast::<Tile>().write_unaligned([0; ROWS]);
                    }
                    state.planes.store(changed + 1, Relaxed);
                }
                let changed = start.add(plane(changed as usize, line));
                V::load(changed).xor(unvisited).store(changed);
            }
        }
    }
}

/// The words at `from`, moved one column to the right: for each cell, that on its left. `strip` is the number of words from a strip to the
/// next.
#[inline(always)]
unsafe fn west<V: Lanes>(from: *const u32, strip: usize) -> V {
    // SAFETY: the caller's promise: there is a strip on the left.
    unsafe { V::load(from).left::<1>().or(V::load(from.sub(strip)).right::<31>()) }
}

/// As [`west`], for the cell on the right.
#[inline(always)]
unsafe fn east<V: Lanes>(from: *const u32, strip: usize) -> V {
    // SAFETY: the caller's promise: there is a strip on the right.
    unsafe { V::load(from).right::<1>().or(V::load(from.add(strip)).left::<31>()) }
}

/// Where plane `k` of a tile begins, in words from its first cell: in the row of that number, or behind the first 16 of them. `line` is the
/// number of words from a row to the next.
#[inline(always)]
pub(super) fn plane(k: usize, line: usize) -> usize {
    k % ROWS * line + k / ROWS * ROWS
}

pub(super) const FOUR: u8 = 4;
pub(super) const EIGHT: u8 = 8;
pub(super) const CORNERS: u8 = 9;

/// [`Level::visit`] for one kind of vector instructions.
pub(super) type Visit = unsafe fn(&Level<'_>, usize) -> bool;

/// The kernels of one connectivity: alone, and beside other threads.
pub(super) fn kernels<const KIND: u8>(simd: Simd) -> [Visit; 2] {
    match simd {
        #[cfg(target_arch = "x86_64")]
        Simd::Avx2 | Simd::Avx512 => [avx2::<KIND, true>, avx2::<KIND, false>],
        #[cfg(target_arch = "aarch64")]
        Simd::Neon => [neon::<KIND, true>, neon::<KIND, false>],
        _ => [plain::<KIND, true>, plain::<KIND, false>],
    }
}

unsafe fn plain<const KIND: u8, const ALONE: bool>(level: &Level<'_>, thread: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { level.visit::<lanes::Plain, KIND, ALONE>(thread) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,popcnt")]
unsafe fn avx2<const KIND: u8, const ALONE: bool>(level: &Level<'_>, thread: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { level.visit::<lanes::Avx2, KIND, ALONE>(thread) }
}

#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
unsafe fn neon<const KIND: u8, const ALONE: bool>(level: &Level<'_>, thread: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { level.visit::<lanes::Neon, KIND, ALONE>(thread) }
}
