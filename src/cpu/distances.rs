//! Levels, recorded while a search runs, for callers that need distances.
//!
//! Computing a level from the parents takes a walk to the nearest ancestor with a known level, with random accesses. The search itself
//! knows the level of a whole frontier. So it writes a byte for each vertex that it finds (in a bottom-up level for eight vertices at a
//! time, from the new bits), and brings the bytes into the original order at the end. The bytes take a quarter of the memory of parents.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use super::{
    CpuEngine,
    tuning::{MAPPED, RESET, SHARED_WORDS, WORDS},
};
use crate::{
    engine::Frontier,
    graph::{Layout, NONE, Vertex},
    memory::{OutOfMemory, Shared, Slab, as_byte_atomics},
    threads::share,
};

/// The level of a vertex that was not found.
const FAR: u8 = u8::MAX;
/// Vertices of a frontier queue that a thread takes at a time.
const QUEUED: usize = 4 << 10;

/// For every value of a byte, eight bytes: each is all ones if the corresponding bit is set, else zero.
pub const SPREAD: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            table[byte][bit] = if byte >> bit & 1 == 1 { 0xff } else { 0 };
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// The recorded levels.
#[derive(Debug)]
pub(super) struct Distances {
    /// The level of every internal vertex. As in the parents, entries follow for "no neighbour", for dropped vertices, and for left-out
    /// leaves.
    levels: Slab<u8>,
    /// Whether the caller wants levels.
    are_wanted: bool,
    /// Whether levels are recorded, and all levels so far fitted into a byte.
    are_known: bool,
}

impl Distances {
    /// Allocates room for the vertices of a layout; the first search that records levels touches its pages.
    pub(super) fn new(layout: &Layout) -> Result<Self, OutOfMemory> {
        let len = layout.first_leaf() + layout.leaves().host_of().len();
        Ok(Self { levels: Slab::zeroed(len, "levels")?, are_wanted: false, are_known: false })
    }

    /// Records the level of one vertex.
    pub(super) fn set(&mut self, v: Vertex, level: u8) {
        if self.are_known {
            self.levels[v as usize] = level;
        }
    }

    /// Whether the current search records levels.
    pub(super) fn are_noted(&self) -> bool {
        self.are_known
    }
}

impl CpuEngine<'_> {
    /// Sets whether searches record levels, from the next one on.
    pub(crate) fn note_distances(&mut self, are_wanted: bool) {
        (self.distances.are_wanted, self.distances.are_known) = (are_wanted, false);
    }

    /// Forgets the levels of the last search, and records those of the vertices from which the search begins.
    pub(super) fn begin_distances(&mut self) {
        let distances = &mut self.distances;
        distances.are_known = distances.are_wanted;
        if !distances.are_wanted {
            return;
        }
        let (len, levels) = (distances.levels.len(), Shared::new(&mut distances.levels));
        share(&self.team, len, 64 * RESET, len < 64 * RESET, &|_, range| {
            // SAFETY: ranges are handed out once and lie inside the slab.
            unsafe { std::slice::from_raw_parts_mut(levels.get().add(range.start), range.len()) }.fill(FAR);
        });
        for &v in &self.state.queue[..self.state.frontier.len() as usize + self.state.idle] {
            self.distances.levels[v as usize] = u8::from(self.state.is_late);
        }
    }

    /// Records the level of the frontier that a level has just found.
    pub(super) fn note_frontier(&mut self) {
        if !self.distances.are_known {
            return;
        }
        // A search from left-out leaves alone begins at their neighbours, one level late.
        let level = match u8::try_from(self.state.level + u32::from(self.state.is_late)) {
            Ok(level) if level < FAR => level,
            _ => {
                self.distances.are_known = self.state.frontier.len() == 0;
                return;
            }
        };
        match self.state.frontier {
            Frontier::Queue { len } => {
                let queue = &self.state.queue[..len];
                let levels = as_byte_atomics(&mut self.distances.levels);
                share(&self.team, len, QUEUED, len < 2 * QUEUED, &|_, range| {
                    queue[range].iter().for_each(|&v| levels[v as usize].store(level, Relaxed));
                });
            }
            Frontier::Bitmap { .. } => {
                let (now, before) = (&self.state.visited[self.state.current], &self.state.visited[1 - self.state.current]);
                let (words, levels) = (self.excluded.len(), Shared::new(&mut self.distances.levels));
                share(&self.team, words, 8 * WORDS, words < 4 * SHARED_WORDS, &|_, range| {
                    for word in range {
                        let new = now[word] & !before[word];
                        if new != 0 {
                            // SAFETY: there are 64 levels for each word, and every word is handed out once.
                            let levels = unsafe { &mut *levels.get().add(64 * word).cast::<[[u8; 8]; 8]>() };
                            write_bits(levels, new, level);
                        }
                    }
                });
            }
            // Only devices make masks, and searches with devices record no levels here.
            Frontier::Mask { .. } => self.distances.are_known = false,
        }
    }

    /// Records the levels of all left-out leaves. Unless `all` was searched, the leaves of frontier vertices count as not reached. Returns
    /// `false` if a level does not fit into a byte.
    fn note_leaves(&mut self, all: bool) -> bool {
        let last = self.state.level + u32::from(self.state.is_late);
        let (levels, of_leaves) = self.distances.levels.split_at_mut(self.layout.first_leaf());
        let mut deepest = 0;
        for (leaf, &host) in of_leaves.iter_mut().zip(self.layout.leaves().host_of()) {
            let level = levels[host as usize];
            let is_beyond = level == FAR || !all && u32::from(level) == last;
            *leaf = if is_beyond { FAR } else { level + 1 };
            deepest = deepest.max(if is_beyond { 0 } else { level + 1 });
        }
        deepest < FAR
    }

    /// Writes the recorded level of every original vertex ([`NONE`]: not reached); `all` as for the parents. Returns `false` if levels were
    /// not recorded or one did not fit.
    pub(crate) fn noted_distances_into(&mut self, out: &mut [u32], all: bool) -> bool {
        if !self.distances.are_known || !self.note_leaves(all) {
            return false;
        }
        let (vertices, place) = (out.len(), self.layout.internal_places());
        let (levels, whole) = (&self.distances.levels[..], out);
        let out = Shared::new(whole);
        let grain = (vertices / (4 * self.team.size())).clamp(MAPPED.start, MAPPED.end);
        share(&self.team, vertices, grain, vertices < SHARED_WORDS * 64, &|_, range| {
            // SAFETY: ranges are handed out once and lie inside the array.
            let out = unsafe { std::slice::from_raw_parts_mut(out.get().add(range.start), range.len()) };
            // FAR becomes NONE.
            let widened = |level: u8| u32::from(level.wrapping_add(1)).wrapping_sub(1);
            if place.is_empty() {
                out.iter_mut().zip(&levels[range]).for_each(|(out, &level)| *out = widened(level));
            } else {
                for (out, &place) in out.iter_mut().zip(&place[range]) {
                    // SAFETY: the layout checks places (all have a level).
                    *out = widened(unsafe { *levels.get_unchecked(place as usize) });
                }
            }
        });
        self.leaf_sources.each(|leaf| whole[leaf as usize] = 0);
        true
    }
}

/// Sets the entries whose bit is set in `bits` to `level`.
#[inline]
fn write_bits(levels: &mut [[u8; 8]; 8], bits: u64, level: u8) {
    let level = u64::from_ne_bytes([level; 8]);
    for (eight, bits) in levels.iter_mut().zip(bits.to_le_bytes()) {
        let mask = u64::from_ne_bytes(SPREAD[usize::from(bits)]);
        *eight = (u64::from_ne_bytes(*eight) & !mask | level & mask).to_ne_bytes();
    }
}

const _: () = assert!(FAR as u32 + 1 == 256 && NONE == u32::MAX);
const _: () = assert!(size_of::<AtomicU8>() == 1);
