//! TC: frontier vertices look for unvisited neighbours.
//!
//! The parent array is the visited test: a neighbour without a parent gets one and joins the next queue. Threads
//! write parents without atomic read-modify-writes, since two that find a vertex at once write equally good parents,
//! and an atomic exchange for every vertex found would cost more than the level (measured: 20 cycles, and it keeps the
//! processor from overlapping the misses around it). Such a vertex enters the queue twice. Each entry therefore comes
//! with the parent its thread wrote, its *claim*: when the entry is expanded, only the one whose claim stands in the
//! parent array is expanded.

use std::{
    ops::Range,
    sync::atomic::{
        AtomicU32, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Relaxed},
    },
};

use super::{prefetch::prefetch, share::Pieces};
use crate::{
    graph::{Csr, NONE, ROW_CONTINUES, Vertex},
    memory::Shared,
};

/// Vertices a thread collects before it appends them to the next queue in one go (GAP's QueueBuffer).
const BUFFER: usize = 512;
/// How far ahead of the vertex being expanded its offsets are prefetched, in vertices.
const AHEAD_OFFSETS: usize = 24;
/// How far ahead its list is prefetched.
const AHEAD_LIST: usize = 12;
/// How far ahead the parents of its neighbours are prefetched.
const AHEAD_PARENTS: usize = 4;
/// How far ahead a row of neighbours is prefetched: a wave over a grid meets each row in a cache line of its own.
const AHEAD_ROW: usize = 40;
/// How far ahead the parents of a row are prefetched.
const AHEAD_ROW_PARENTS: usize = 16;
/// Neighbours whose parents are prefetched, at most.
const PARENTS: usize = 32;

/// A top-down level run by one thread. Returns the length of the next queue.
///
/// # Safety
/// `parent` has an entry for every vertex of `csr`; `queue` holds vertices of it; `next` has room for every vertex
/// plus one; nothing else accesses them.
pub(super) unsafe fn expand(csr: &Csr, to_original: &[Vertex], parent: &mut [Vertex], queue: &[Vertex], next: &mut [Vertex]) -> usize {
    let mut found = 0;
    let (offsets, targets) = (csr.offsets.as_ptr(), csr.targets.as_ptr());
    for (i, &u) in queue.iter().enumerate() {
        // SAFETY: the queue holds vertices, lists hold vertices, and `next` has room for one more than can be found.
        unsafe {
            if let Some(&ahead) = queue.get(i + AHEAD_OFFSETS) {
                prefetch(offsets.add(ahead as usize));
            }
            if let Some(&ahead) = queue.get(i + AHEAD_LIST) {
                prefetch(targets.wrapping_add(*offsets.add(ahead as usize) as usize));
                prefetch(targets.wrapping_add(*offsets.add(ahead as usize) as usize + 16));
            }
            if let Some(&ahead) = queue.get(i + AHEAD_PARENTS) {
                for &v in csr.neighbours(ahead).iter().take(PARENTS) {
                    prefetch(parent.as_ptr().add(v as usize));
                }
            }
            let original = if to_original.is_empty() { u } else { *to_original.get_unchecked(u as usize) };
            for k in *offsets.add(u as usize) as usize..*offsets.add(u as usize + 1) as usize {
                let v = *targets.add(k);
                let slot = parent.get_unchecked_mut(v as usize);
                let new = *slot == NONE;
                *next.get_unchecked_mut(found) = v;
                found += usize::from(new);
                *slot = if new { original } else { *slot };
            }
        }
    }
    found
}

/// A top-down level over rows of four neighbours, run by one thread. Returns the length of the next queue.
///
/// # Safety
/// As for [`expand`], but with room for three more than can be found; `parent` also has an entry that is not [`NONE`] for "no neighbour";
/// `rows` has one row per vertex.
#[inline(never)] // among the rest of the level it would run out of registers
pub(super) unsafe fn expand_rows(rows: &[[Vertex; 4]], csr: &Csr, parent: &mut [Vertex], queue: &[Vertex], next: &mut [Vertex]) -> usize {
    let mut found = 0;
    for (i, &u) in queue.iter().enumerate() {
        // SAFETY: as in `expand`; "no neighbour" has a parent entry and is never new.
        unsafe {
            if let Some(&ahead) = queue.get(i + AHEAD_ROW) {
                prefetch(rows.as_ptr().add(ahead as usize));
            }
            if let Some(&ahead) = queue.get(i + AHEAD_ROW_PARENTS) {
                let row = rows.get_unchecked(ahead as usize);
                for v in [row[0] & !ROW_CONTINUES, row[1], row[2], row[3]] {
                    prefetch(parent.as_ptr().add(v as usize));
                }
            }
            let row = rows.get_unchecked(u as usize);
            let (a, b, c, d) = (row[0] & !ROW_CONTINUES, row[1], row[2], row[3]);
            let slots = parent.as_mut_ptr();
            let [at_a, at_b, at_c, at_d] = [a, b, c, d].map(|v| slots.add(v as usize));
            // All four are read before anything is written: a load behind a store whose address depends on the load
            // before it would wait for both. (The four are different, or "no neighbour", which is never new.)
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
    /// Where the next queue and its claims go.
    pub(super) next: Shared<Vertex>,
    /// See `next`.
    pub(super) next_claims: Shared<Vertex>,
    /// Entries there is room for.
    pub(super) capacity: usize,
    /// Entries so far.
    pub(super) tail: &'a AtomicUsize,
    /// What is handed out: entries of the queue, or units of `starts`.
    pub(super) pieces: Pieces,
    /// Units of the entries before each, and of all at the end, where a list may be cut; empty where pieces are of whole lists. An entry is
    /// a unit by itself, so that its claim is looked at once even if nothing leaves it, and each arc is one.
    pub(super) starts: &'a [u64],
    /// Entries whose claim does not stand: repeats of the level before.
    pub(super) repeats: &'a AtomicU64,
    /// Whether parents are written where there is nothing to write: see [`TopDown::list`].
    pub(super) store_all: bool,
}

/// For [`TopDown::starts`], where the frontier has so few vertices that one of them may keep a thread for long: the units before each
/// entry of `queue`, in `room`. Else nothing.
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

    /// A piece of the units: a part of the lists in which it begins and ends, and all of those between. Returns the repeats among the
    /// entries that begin in it.
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

    /// Expands one list. With `STORE_ALL` the inner loop has no branch: among far neighbours it would be taken or not at
    /// random, and depend on a load that misses. But a store takes the parent's cache line away from the other threads, which pays
    /// only where they will hardly want it: among more parents than a cache holds, each met a few times. (Measured on two cores, by
    /// the time of one thread alone: with all stores 2 to 4.5 where hubs are met again and again, without 0.6 to 1; on 4 M
    /// vertices of degree 6 it is 0.6 with all stores and 0.85 without.)
    #[inline(always)]
    fn list<const STORE_ALL: bool>(&self, u: Vertex, list: &[Vertex], found: &mut FoundBuffer) {
        let original = if self.to_original.is_empty() { u } else { self.to_original[u as usize] };
        // In runs that fit the buffer, so that the inner loop checks nothing.
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
                // SAFETY: before the run there was room for all of it.
                unsafe {
                    *found.vertices.get_unchecked_mut(len) = v;
                    *found.claims.get_unchecked_mut(len) = original;
                }
                if STORE_ALL {
                    // A parent once written is only ever replaced by another thread's claim to the same vertex, so
                    // that writing back what was read loses nothing.
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
        let at = self.tail.fetch_add(found.len, AcqRel);
        assert!(at + found.len <= self.capacity, "the next queue overflows");
        // SAFETY: `fetch_add` hands every place out once, and the room was checked.
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
        engine::Team,
        graph::{BuildOptions, EdgeList, Layout, Listing, Order},
        memory::as_atomics,
    };

    /// Lists that are cut anywhere lead to what whole ones do, and each repeat is counted once.
    #[test]
    fn lists_may_be_shared() {
        const N: u32 = 300;
        // Hubs of 290 neighbours, and lists of none, one and two.
        let edges: Vec<[Vertex; 2]> = (0..3).flat_map(|hub| (10..N).map(move |v| [hub, v])).chain([[3, 4], [4, 5], [10, 11]]).collect();
        let edges = EdgeList::new(N as usize, edges, Listing::Once).unwrap();
        let layout = Layout::build(&edges, &BuildOptions { order: Order::Original, ..BuildOptions::default() }).unwrap();
        let csr = layout.csr();
        let queue = [0, 6, 1, 4, 7, 2, 10, 11];
        // A hub and two of the others, one of which nothing leaves, are repeats: their parents are not what was claimed.
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
