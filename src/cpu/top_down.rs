//! TC: frontier vertices look for unvisited neighbours.
//!
//! A level of one thread tests the visited bitmap and keeps it up to date. Where threads share a level, the parent array is the visited
//! test: a neighbour without a parent gets one and joins the next queue. Threads write parents without atomic read-modify-writes, since
//! two threads that find a vertex at once write equally good parents, and an atomic exchange for every vertex found would cost more than
//! the level (measured: 20 cycles, and it keeps the processor from overlapping the misses around it). Such a vertex enters the queue
//! twice. Each entry therefore comes with the parent that its thread wrote, its *claim*: an entry is expanded only if the parent array
//! holds its claim.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use crate::{
    graph::{Csr, NONE, ROW_CONTINUES, Vertex},
    memory::{Shared, prefetch},
    threads::Pieces,
};

/// Vertices that a thread collects before it appends them to the next queue at once (GAP's QueueBuffer).
const BUFFER: usize = 512;
/// How far ahead of the vertex being expanded offsets are prefetched, in vertices.
const AHEAD_OFFSETS: usize = 24;
/// How far ahead lists are prefetched.
const AHEAD_LIST: usize = 12;
/// How far ahead the parents of neighbours are prefetched.
const AHEAD_PARENTS: usize = 4;
/// How far ahead rows of neighbours are prefetched. In a search of a grid, each row of the frontier is in a different cache line.
const AHEAD_ROW: usize = 40;
/// How far ahead the parents of the neighbours in a row are prefetched.
const AHEAD_ROW_PARENTS: usize = 16;
/// Neighbours of a vertex whose parents are prefetched, at most.
const PARENTS: usize = 32;

/// A top-down level run by one thread over a visited bitmap, which takes a 32nd of the parents' memory. Returns the length of the next
/// queue, whose vertices are then in the bitmap.
///
/// # Safety
/// `parent` has an entry and `visited` a bit for every vertex of `csr`; `queue` holds vertices of it; `next` has room for every vertex plus
/// one; nothing else accesses them. No list has repeats.
pub(super) unsafe fn expand(
    csr: &Csr,
    to_original: &[Vertex],
    visited: &mut [u64],
    parent: &mut [Vertex],
    queue: &[Vertex],
    next: &mut [Vertex],
) -> usize {
    let mut found = 0;
    let (offsets, targets) = (csr.offsets.as_ptr(), csr.targets.as_ptr());
    for (i, &u) in queue.iter().enumerate() {
        // SAFETY: the queue and lists hold vertices, the bitmap covers all of them, and `next` has room for one more than can be found.
        unsafe {
            if let Some(&ahead) = queue.get(i + AHEAD_OFFSETS) {
                prefetch(offsets.add(ahead as usize));
            }
            if let Some(&ahead) = queue.get(i + AHEAD_LIST) {
                prefetch(targets.wrapping_add(*offsets.add(ahead as usize) as usize));
                prefetch(targets.wrapping_add(*offsets.add(ahead as usize) as usize + 16));
            }
            let begin = found;
            for k in *offsets.add(u as usize) as usize..*offsets.add(u as usize + 1) as usize {
                let v = *targets.add(k);
                *next.get_unchecked_mut(found) = v;
                found += usize::from(*visited.get_unchecked((v >> 6) as usize) >> (v & 63) & 1 == 0);
            }
            let original = if to_original.is_empty() { u } else { *to_original.get_unchecked(u as usize) };
            for k in begin..found {
                let v = *next.get_unchecked(k);
                *visited.get_unchecked_mut((v >> 6) as usize) |= 1 << (v & 63);
                *parent.get_unchecked_mut(v as usize) = original;
            }
        }
    }
    found
}

/// A top-down level over rows of four neighbours, run by one thread. Returns the length of the next queue.
///
/// # Safety
/// As for `expand`, but with room for three more than can be found; `parent` also has an entry that is not [`NONE`] for "no neighbour";
/// `rows` has one row per vertex.
#[inline(never)] // inlined into the level, it would run out of registers
pub unsafe fn expand_rows(rows: &[[Vertex; 4]], csr: &Csr, parent: &mut [Vertex], queue: &[Vertex], next: &mut [Vertex]) -> usize {
    let mut found = 0;
    for (i, &u) in queue.iter().enumerate() {
        // SAFETY: as in `expand`; "no neighbour" has a parent entry and is never new.
        unsafe {
            if let Some(&ahead) = queue.get(i + AHEAD_ROW) {
                prefetch(rows.as_ptr().add(ahead as usize));
            }
            if let Some(&ahead) = queue.get(i + AHEAD_ROW_PARENTS) {
                let row = rows.get_unchecked(ahead as usize);
                // One by one: Rust 1.85 calls a function for each step of a loop over an array.
                prefetch(parent.as_ptr().add((row[0] & !ROW_CONTINUES) as usize));
                prefetch(parent.as_ptr().add(row[1] as usize));
                prefetch(parent.as_ptr().add(row[2] as usize));
                prefetch(parent.as_ptr().add(row[3] as usize));
            }
            let row = rows.get_unchecked(u as usize);
            let (a, b, c, d) = (row[0] & !ROW_CONTINUES, row[1], row[2], row[3]);
            let slots = parent.as_mut_ptr();
            // Not by `map` over an array, which is not inlined in every build: grids then take twice as long.
            let (at_a, at_b, at_c, at_d) = (slots.add(a as usize), slots.add(b as usize), slots.add(c as usize), slots.add(d as usize));
            // All four parents are read before any is written: a load after a store whose address depends on an earlier load would wait for
            // both. (The four neighbours are different, or "no neighbour", which is never new.)
            let [old_a, old_b, old_c, old_d] = [*at_a, *at_b, *at_c, *at_d];
            let (new_a, new_b, new_c, new_d) = (old_a == NONE, old_b == NONE, old_c == NONE, old_d == NONE);
            let to = next.as_mut_ptr().add(found);
            let second = usize::from(new_a);
            let third = second + usize::from(new_b);
            let fourth = third + usize::from(new_c);
            *to = a;
            *to.add(second) = b;
            *to.add(third) = c;
            *to.add(fourth) = d;
            *at_a = if new_a { u } else { old_a };
            *at_b = if new_b { u } else { old_b };
            *at_c = if new_c { u } else { old_c };
            *at_d = if new_d { u } else { old_d };
            found += fourth + usize::from(new_d);
            if row[0] & ROW_CONTINUES != 0 {
                for &v in csr.neighbours(u).get(4..).unwrap_or_default() {
                    let slot = parent.get_unchecked_mut(v as usize);
                    let new = *slot == NONE;
                    *next.get_unchecked_mut(found) = v;
                    found += usize::from(new);
                    *slot = if new { u } else { *slot };
                }
            }
        }
    }
    found
}

/// A top-down level run by a team.
#[derive(Debug)]
pub(super) struct TopDown<'a> {
    /// Adjacency.
    pub(super) csr: &'a Csr,
    /// Internal to original numbers; empty where they are the same.
    pub(super) to_original: &'a [Vertex],
    /// Parents (original numbers) by internal vertex, written by any thread.
    pub(super) parent: &'a [AtomicU32],
    /// The frontier.
    pub(super) queue: &'a [Vertex],
    /// The claim of each entry; empty where no vertex is in the queue twice.
    pub(super) claims: &'a [Vertex],
    /// The next queue.
    pub(super) next: Shared<Vertex>,
    /// The claim of each entry of `next`.
    pub(super) next_claims: Shared<Vertex>,
    /// Number of entries that `next` has room for.
    pub(super) capacity: usize,
    /// Number of entries in `next` so far.
    pub(super) tail: &'a AtomicUsize,
    /// The work handed out: entries of the queue, or units of `starts`.
    pub(super) pieces: Pieces,
    /// Number of units before each entry, and in all entries at the end, if lists may be cut; empty if pieces are whole lists. Each arc is
    /// a unit, and so is each entry, so that its claim is checked even if no arc leaves it.
    pub(super) starts: &'a [u64],
    /// Number of entries whose claim is not in the parent array: repeats from the previous level.
    pub(super) repeats: &'a AtomicU64,
    /// Whether a parent is stored even if it does not change: see [`TopDown::list`].
    pub(super) store_all: bool,
}

/// Fills `room` with the prefix sums for [`TopDown::starts`] if the frontier is so small that one of its vertices may occupy a thread for
/// long; returns an empty slice for a larger one. `queue` is the frontier.
pub(super) fn starts<'a>(csr: &Csr, queue: &[Vertex], room: &'a mut [u64]) -> &'a [u64] {
    let Some(starts) = room.get_mut(..queue.len() + 1) else { return &[] };
    let mut units = 0;
    for (start, &v) in starts.iter_mut().zip(queue) {
        *start = units;
        units += 1 + u64::from(csr.degree(v));
    }
    if let Some(end) = starts.last_mut() {
        *end = units;
    }
    starts
}

/// A thread's part of the next queue, on its stack.
struct FoundBuffer {
    vertices: [Vertex; BUFFER],
    claims: [Vertex; BUFFER],
    len: usize,
}

impl TopDown<'_> {
    /// One thread's share. All threads together expand every frontier vertex once.
    pub(super) fn work(&self) {
        let mut found = FoundBuffer { vertices: [0; BUFFER], claims: [0; BUFFER], len: 0 };
        self.expand(&mut found);
        self.flush(&mut found);
    }

    /// Expands a piece of the units: parts of the lists in which it begins and ends, and all lists between. Returns the number of repeats
    /// among the entries that begin in the piece.
    fn expand_units(&self, units: Range<u64>, found: &mut FoundBuffer) -> u64 {
        let mut repeats = 0;
        let first = self.starts.partition_point(|&start| start <= units.start) - 1;
        for (at, around) in (first..).zip(self.starts[first..].windows(2)) {
            let (start, end) = (around[0], around[1].min(units.end));
            if start >= units.end {
                break;
            }
            let u = self.queue[at];
            if self.claims.get(at).is_some_and(|&claim| self.parent[u as usize].load(Relaxed) != claim) {
                repeats += u64::from(start >= units.start);
                continue;
            }
            // Unit 0 is the entry itself.
            let part = (units.start.max(start + 1) - start - 1) as usize..(end - start - 1) as usize;
            let list = self.csr.neighbours(u).get(part).unwrap_or_default();
            if self.store_all { self.list::<true>(u, list, found) } else { self.list::<false>(u, list, found) }
        }
        repeats
    }

    fn expand(&self, found: &mut FoundBuffer) {
        let (mut repeats, offsets) = (0, &self.csr.offsets);
        while let Some(piece) = self.pieces.next() {
            if !self.starts.is_empty() {
                repeats += self.expand_units(piece.start as u64..piece.end as u64, found);
                continue;
            }
            for i in piece {
                if let Some(&ahead) = self.queue.get(i + AHEAD_OFFSETS) {
                    prefetch(&raw const offsets[ahead as usize]);
                    if !self.claims.is_empty() {
                        prefetch(&raw const self.parent[ahead as usize]);
                    }
                }
                if let Some(&ahead) = self.queue.get(i + AHEAD_LIST) {
                    let start = self.csr.targets.as_ptr().wrapping_add(offsets[ahead as usize] as usize);
                    prefetch(start);
                    prefetch(start.wrapping_add(16));
                }
                if let Some(&ahead) = self.queue.get(i + AHEAD_PARENTS) {
                    for &v in self.csr.neighbours(ahead).iter().take(PARENTS) {
                        prefetch(&raw const self.parent[v as usize]);
                    }
                }
                let u = self.queue[i];
                if self.claims.get(i).is_some_and(|&claim| self.parent[u as usize].load(Relaxed) != claim) {
                    repeats += 1;
                    continue;
                }
                if self.store_all {
                    self.list::<true>(u, self.csr.neighbours(u), found);
                } else {
                    self.list::<false>(u, self.csr.neighbours(u), found);
                }
            }
        }
        self.repeats.fetch_add(repeats, Relaxed);
    }

    /// Expands one list. With `STORE_ALL` the inner loop has no branch. If neighbours are spread over memory, the branch would be
    /// unpredictable, and would depend on a load that misses the caches. But a store takes the parent's cache line away from the other
    /// threads. So storing all parents pays only if the other threads rarely need the line: if there are more parents than a cache holds,
    /// and each is met only a few times. (Measured on two cores, relative to the time of one thread alone: if hubs are met again and again,
    /// 2 to 4.5 with all stores and 0.6 to 1 without; on 4 M vertices of degree 6, 0.6 with all stores and 0.85 without.)
    #[inline(always)]
    fn list<const STORE_ALL: bool>(&self, u: Vertex, list: &[Vertex], found: &mut FoundBuffer) {
        let original = if self.to_original.is_empty() { u } else { self.to_original[u as usize] };
        // The list is expanded in runs that fit into the buffer, so that the inner loop has no checks.
        let mut rest = list;
        while !rest.is_empty() {
            if found.len + rest.len().min(64) > BUFFER {
                self.flush(found);
            }
            let (run, after) = rest.split_at(rest.len().min(64));
            let mut len = found.len;
            for &v in run {
                // SAFETY: lists hold vertices, and every vertex has a parent entry.
                let slot = unsafe { self.parent.get_unchecked(v as usize) };
                let old = slot.load(Relaxed);
                let new = old == NONE;
                // SAFETY: before the run, the buffer had room for all of it.
                unsafe {
                    *found.vertices.get_unchecked_mut(len) = v;
                    *found.claims.get_unchecked_mut(len) = original;
                }
                if STORE_ALL {
                    // A parent that was written is replaced only by another thread's claim to the same vertex, so writing back what was
                    // read loses nothing.
                    slot.store(if new { original } else { old }, Relaxed);
                } else if new {
                    slot.store(original, Relaxed);
                }
                len += usize::from(new);
            }
            found.len = len;
            rest = after;
        }
    }

    fn flush(&self, found: &mut FoundBuffer) {
        // Relaxed is enough: `fetch_add` gives each thread its own places, and the end of the team's work orders the entries in them.
        let at = self.tail.fetch_add(found.len, Relaxed);
        assert!(at + found.len <= self.capacity, "the next queue overflows");
        // SAFETY: `fetch_add` hands out every place once, and the room was checked.
        unsafe {
            std::ptr::copy_nonoverlapping(found.vertices.as_ptr(), self.next.get().add(at), found.len);
            std::ptr::copy_nonoverlapping(found.claims.as_ptr(), self.next_claims.get().add(at), found.len);
        }
        found.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        graph::{BuildOptions, EdgeList, Layout, Listing, Order},
        memory::as_atomics,
        threads::Team,
    };

    /// Lists cut at any place lead to the same vertices as whole lists, and each repeat is counted once.
    #[test]
    fn lists_cut_at_any_place_lead_to_the_same_vertices() {
        const N: u32 = 300;
        // Hubs of 290 neighbours, and lists of no, one and two neighbours.
        let edges: Vec<[Vertex; 2]> = (0..3).flat_map(|hub| (10..N).map(move |v| [hub, v])).chain([[3, 4], [4, 5], [10, 11]]).collect();
        let edges = EdgeList::new(N as usize, edges, Listing::Once).unwrap();
        let layout = Layout::build(&edges, &BuildOptions { order: Order::Original, ..BuildOptions::default() }).unwrap();
        let csr = layout.csr();
        let queue = [0, 6, 1, 4, 7, 2, 10, 11];
        // A hub and two other entries, one of which no arc leaves, are repeats: their parents are not their claims.
        let claims = [50, 50, 51, 50, 49, 50, 50, 49];
        for size in [1, 3] {
            let team = Team::new(size, &[]).unwrap();
            for most in [1, 5, 64, 10_000] {
                for store_all in [false, true] {
                    let mut parent = vec![NONE; layout.padded() + 2];
                    queue.iter().for_each(|&v| parent[v as usize] = 50);
                    parent[20] = 8;
                    let (mut next, mut next_claims, mut room) = (vec![0; 2000], vec![0; 2000], vec![0; queue.len() + 1]);
                    let starts = starts(csr, &queue, &mut room);
                    let units = starts[queue.len()] as usize;
                    assert_eq!(units, queue.iter().map(|&v| 1 + csr.degree(v) as usize).sum::<usize>());
                    let (tail, repeats) = (AtomicUsize::new(0), AtomicU64::new(0));
                    let level = TopDown {
                        csr,
                        to_original: &[],
                        parent: as_atomics(&mut parent),
                        queue: &queue,
                        claims: &claims,
                        capacity: next.len(),
                        next: Shared::new(&mut next),
                        next_claims: Shared::new(&mut next_claims),
                        tail: &tail,
                        pieces: Pieces::new(units, most, size),
                        starts,
                        repeats: &repeats,
                        store_all,
                    };
                    team.run(&|_| level.work());
                    let found: BTreeSet<Vertex> = next[..tail.into_inner()].iter().copied().collect();
                    let wanted: BTreeSet<Vertex> = (12..N).filter(|&v| v != 20).chain([3, 5]).collect();
                    assert_eq!((found, repeats.into_inner()), (wanted.clone(), 3), "{size} threads, {most} units");
                    for v in wanted {
                        let by = parent[v as usize];
                        assert!([0, 2, 4].contains(&by) && csr.neighbours(by).contains(&v), "{v} by {by}");
                    }
                    assert_eq!(parent[20], 8);
                }
            }
        }
        assert!(starts(csr, &queue, &mut [0; 8]).is_empty(), "there is no room for so many");
    }
}
