//! TC: frontier vertices look for unvisited neighbours.
//!
//! A visited bitmap, which takes a 32nd of the parents' memory, tells which neighbours are new. A level of one thread keeps it up to date.
//!
//! Threads share a level in two steps, without an atomic operation for each vertex (one takes 20 cycles, and keeps the processor from
//! overlapping the misses around it). In the first, a thread expands its pieces of the frontier and notes the neighbours that it has not
//! met before, each with its parent; its *filter*, a bitmap of its own, tells which these are. It sorts them by partition: blocks of
//! vertices belong to partitions in turn. In the second step a partition has one thread, which gives those of its vertices that are new
//! their parents. So no parent and no word of the bitmap is written by two threads, or moves between their caches within a level.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use crate::{
    graph::{Adjacency, Block, Csr, NONE, ROW_CONTINUES, Vertex},
    memory::{Shared, prefetch},
    threads::Pieces,
};

/// Vertices that a thread collects before it appends them to the next queue at once (GAP's QueueBuffer).
const BUFFER: usize = 512;
/// Entries of a chunk.
pub(super) const CHUNK: usize = 256;
/// The most vertices that are new in a run of a list.
const NEW: usize = 256;
/// The most partitions, a power of two.
const MOST_PARTITIONS: usize = 64;
/// Vertices of a block, as a power of two: those of a cache line of the bitmap, so that partitions share no line.
const BLOCK: u32 = 9;
/// How far ahead of the vertex being expanded offsets are prefetched, in vertices.
const AHEAD_OFFSETS: usize = 24;
/// How far ahead lists are prefetched.
const AHEAD_LIST: usize = 12;
/// How far ahead rows of neighbours are prefetched. In a search of a grid, each row of the frontier is in a different cache line.
const AHEAD_ROW: usize = 40;
/// How far ahead the parents of the neighbours in a row are prefetched.
const AHEAD_ROW_PARENTS: usize = 16;

/// An entry of a list: a neighbour, or a block of neighbours.
pub(super) trait Entry: Copy {
    /// The most neighbours of an entry.
    const MOST: usize;

    /// Enters the neighbours in `list` that are not in `bitmap` into it, writes them to `out`, from place `count` on, and calls `visit`
    /// with each. Returns the place after them.
    ///
    /// # Safety
    /// `bitmap` has a bit for every neighbour, and `out` room for one vertex more than are not in it. No neighbour is in `list` twice.
    unsafe fn enter(bitmap: &mut [u64], list: &[Self], out: &mut [Vertex], count: usize, visit: impl FnMut(Vertex)) -> usize;
}

impl Entry for Vertex {
    const MOST: usize = 1;

    /// The first loop has no branch: the processor can't predict which vertices are new. (Both go by places: the compiler unrolls them.)
    #[inline(always)]
    unsafe fn enter(bitmap: &mut [u64], list: &[Self], out: &mut [Vertex], count: usize, mut visit: impl FnMut(Vertex)) -> usize {
        let mut end = count;
        // SAFETY: as promised by the caller.
        unsafe {
            for at in 0..list.len() {
                let v = *list.get_unchecked(at);
                *out.get_unchecked_mut(end) = v;
                end += usize::from(*bitmap.get_unchecked((v >> 6) as usize) >> (v & 63) & 1 == 0);
            }
            for at in count..end {
                let v = *out.get_unchecked(at);
                *bitmap.get_unchecked_mut((v >> 6) as usize) |= 1 << (v & 63);
                visit(v);
            }
        }
        end
    }
}

impl Entry for Block {
    const MOST: usize = 32;

    #[inline(always)]
    unsafe fn enter(bitmap: &mut [u64], list: &[Self], out: &mut [Vertex], mut count: usize, mut visit: impl FnMut(Vertex)) -> usize {
        for block in list {
            // SAFETY: as promised by the caller.
            let mut new = unsafe { block.enter(bitmap) };
            while let Some(v) = block.first(new) {
                // SAFETY: as promised by the caller.
                unsafe { *out.get_unchecked_mut(count) = v };
                count += 1;
                new &= new - 1;
                visit(v);
            }
        }
        count
    }
}

/// Prefetches what the vertices after place `at` of `queue` need of their lists, beyond the first entries, of which there are `tested`.
///
/// # Safety
/// The queue holds vertices, which have lists.
#[inline(always)]
pub(super) unsafe fn look_ahead<T>((offsets, entries): Adjacency<'_, T>, queue: &[Vertex], at: usize, tested: usize) {
    if let Some(&ahead) = queue.get(at + AHEAD_OFFSETS) {
        prefetch(offsets.as_ptr().wrapping_add(ahead as usize));
    }
    if let Some(&ahead) = queue.get(at + AHEAD_LIST) {
        // SAFETY: as promised by the caller.
        let start = entries.as_ptr().wrapping_add(unsafe { *offsets.get_unchecked(ahead as usize) } as usize + tested);
        prefetch(start);
        if size_of::<T>() == size_of::<Vertex>() {
            prefetch(start.cast::<u8>().wrapping_add(64));
        }
    }
}

/// A top-down level run by one thread over a visited bitmap. Returns the length of the next queue, whose vertices are then in the bitmap.
///
/// # Safety
/// `parent` has an entry and `visited` a bit for every vertex of `lists`; `queue` holds vertices of it; `next` has room for every vertex
/// plus one; nothing else accesses them. No list has repeats.
pub(super) unsafe fn expand<T: Entry>(
    lists: Adjacency<'_, T>,
    to_original: &[Vertex],
    visited: &mut [u64],
    parent: &mut [Vertex],
    queue: &[Vertex],
    next: &mut [Vertex],
) -> usize {
    let mut found = 0;
    for (i, &u) in queue.iter().enumerate() {
        // SAFETY: the queue and lists hold vertices, the bitmap covers all of them, and `next` has room for one more than can be found.
        unsafe {
            look_ahead(lists, queue, i, 0);
            let list = *lists.0.get_unchecked(u as usize) as usize..*lists.0.get_unchecked(u as usize + 1) as usize;
            let original = if to_original.is_empty() { u } else { *to_original.get_unchecked(u as usize) };
            let visit = |v: Vertex| *parent.get_unchecked_mut(v as usize) = original;
            found = T::enter(visited, lists.1.get_unchecked(list), next, found, visit);
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
pub(super) struct TopDown<'a, T> {
    /// Adjacency.
    pub(super) lists: Adjacency<'a, T>,
    /// Internal to original numbers; empty where they are the same.
    pub(super) to_original: &'a [Vertex],
    /// Parents (original numbers) by internal vertex.
    pub(super) parent: Shared<Vertex>,
    /// The visited bitmap.
    pub(super) visited: Shared<u64>,
    /// The frontier.
    pub(super) queue: &'a [Vertex],
    /// The next queue.
    pub(super) next: Shared<Vertex>,
    /// Number of entries that `next` has room for.
    pub(super) capacity: usize,
    /// Number of entries in `next` so far.
    pub(super) tail: &'a AtomicUsize,
    /// The work handed out in the first step: entries of the queue, or of their lists if there are `starts`.
    pub(super) pieces: Pieces,
    /// Number of entries in the lists before that of each entry of the queue, and in all at the end, if lists may be cut; empty if pieces
    /// are whole lists.
    pub(super) starts: &'a [u64],
    /// Chunks of vertices that threads met, each with its parent.
    pub(super) met: Shared<[Vertex; 2]>,
    /// The partition of each chunk, and the number of its entries.
    pub(super) chunks: Shared<[u32; 2]>,
    /// Number of chunks that there is room for.
    pub(super) most: usize,
    /// Number of chunks in use.
    pub(super) used: &'a AtomicUsize,
    /// Number of partitions, a power of two, and the work handed out in the second step: all of these.
    pub(super) partitions: (usize, Pieces),
}

/// [`TopDown::partitions`] for so many threads: some for each.
pub(super) fn partitions(threads: usize) -> (usize, Pieces) {
    let count = (4 * threads).next_power_of_two().min(MOST_PARTITIONS);
    (count, Pieces::new(count, 1, threads))
}

/// Fills `room` with the prefix sums for [`TopDown::starts`] if the frontier is so small that one of its vertices may occupy a thread for
/// long; returns an empty slice for a larger one. `queue` is the frontier.
pub(super) fn starts<'a>(offsets: &[u32], queue: &[Vertex], room: &'a mut [u64]) -> &'a [u64] {
    let Some(starts) = room.get_mut(..queue.len() + 1) else { return &[] };
    let mut sum = 0;
    for (start, &v) in starts.iter_mut().zip(queue) {
        *start = sum;
        sum += u64::from(offsets[v as usize + 1] - offsets[v as usize]);
    }
    if let Some(end) = starts.last_mut() {
        *end = sum;
    }
    starts
}

/// A thread's places in the chunks, on its stack.
struct Met {
    /// The place of the next entry of each partition; at the beginning of a chunk if the partition has no chunk that is not full.
    places: [usize; MOST_PARTITIONS],
    new: [Vertex; NEW],
}

impl<T: Entry> TopDown<'_, T> {
    /// One thread's share of the first step. All threads together expand every frontier vertex once. `filter` has a bit for every vertex,
    /// set only if the vertex is visited.
    pub(super) fn expand_pieces(&self, thread: usize, filter: &mut [u64]) {
        let mut met = Met { places: [0; MOST_PARTITIONS], new: [0; NEW] };
        while let Some(piece) = self.pieces.next(thread) {
            if !self.starts.is_empty() {
                self.expand_entries(piece.start as u64..piece.end as u64, filter, &mut met);
                continue;
            }
            for i in piece {
                // SAFETY: the queue holds vertices.
                unsafe { look_ahead(self.lists, self.queue, i, 0) };
                self.expand(self.queue[i], self.list(self.queue[i]), filter, &mut met);
            }
        }
        for (partition, place) in met.places.into_iter().enumerate().filter(|place| place.1 % CHUNK != 0) {
            // SAFETY: the chunk is this thread's.
            unsafe { *self.chunks.get().add(place / CHUNK) = [partition as u32, (place % CHUNK) as u32] };
        }
    }

    /// The list of `u`.
    fn list(&self, u: Vertex) -> &[T] {
        &self.lists.1[self.lists.0[u as usize] as usize..self.lists.0[u as usize + 1] as usize]
    }

    /// Expands a piece of the lists: parts of the lists in which it begins and ends, and all lists between.
    fn expand_entries(&self, entries: Range<u64>, filter: &mut [u64], met: &mut Met) {
        let first = self.starts.partition_point(|&start| start <= entries.start) - 1;
        for (&u, around) in self.queue[first..].iter().zip(self.starts[first..].windows(2)) {
            let (start, end) = (around[0], around[1].min(entries.end));
            if start >= entries.end {
                break;
            }
            let part = (entries.start.max(start) - start) as usize..(end - start) as usize;
            self.expand(u, self.list(u).get(part).unwrap_or_default(), filter, met);
        }
    }

    /// Expands (a part of) the list of `u`.
    #[inline(always)]
    fn expand(&self, u: Vertex, list: &[T], filter: &mut [u64], met: &mut Met) {
        let original = if self.to_original.is_empty() { u } else { self.to_original[u as usize] };
        let (partitions, Met { places, new }) = (self.partitions.0 - 1, met);
        for run in list.chunks(NEW / T::MOST) {
            let visit = |v: Vertex| {
                let partition = (v >> BLOCK) as usize & partitions;
                // SAFETY: each partition has a place, which lies in a chunk that this thread has opened.
                unsafe {
                    let place = places.get_unchecked_mut(partition);
                    if *place % CHUNK == 0 {
                        *place = self.open(partition);
                    }
                    *self.met.get().add(*place) = [v, original];
                    *place += 1;
                }
            };
            // SAFETY: lists hold vertices, each of which has a bit and is in the list once, and there is room for the whole run.
            unsafe { T::enter(filter, run, new, 0, visit) };
        }
    }

    /// Opens a chunk; returns its first place.
    #[cold]
    fn open(&self, partition: usize) -> usize {
        let chunk = self.used.fetch_add(1, Relaxed);
        assert!(chunk < self.most, "no chunk is left");
        // SAFETY: there is such a chunk, and `fetch_add` hands it out once.
        unsafe { *self.chunks.get().add(chunk) = [partition as u32, CHUNK as u32] };
        chunk * CHUNK
    }

    /// One thread's share of the second step. All threads together enter every vertex that was met and is new.
    pub(super) fn settle_partitions(&self, thread: usize) {
        let (mut found, mut len) = ([0; BUFFER], 0);
        while let Some(partition) = self.partitions.1.next(thread) {
            for chunk in 0..self.used.load(Relaxed) {
                // SAFETY: the first step has written the chunks. The partition, with its parents and words of the bitmap, is this thread's.
                // The buffer has room for a chunk.
                unsafe {
                    let [of, entries] = *self.chunks.get().add(chunk);
                    if of as usize != partition.start {
                        continue;
                    }
                    for at in chunk * CHUNK..chunk * CHUNK + entries as usize {
                        let [v, by] = *self.met.get().add(at);
                        let (word, bit) = ((v >> 6) as usize, 1 << (v & 63));
                        let bits = *self.visited.get().add(word);
                        if bits & bit == 0 {
                            *self.visited.get().add(word) = bits | bit;
                            *self.parent.get().add(v as usize) = by;
                            *found.get_unchecked_mut(len) = v;
                            len += 1;
                        }
                    }
                }
                if len + CHUNK > BUFFER {
                    self.append(&found[..std::mem::take(&mut len)]);
                }
            }
        }
        self.append(&found[..len]);
    }

    /// Appends to the next queue.
    fn append(&self, found: &[Vertex]) {
        // Relaxed is enough: `fetch_add` gives each thread its own places, and the end of the team's work orders the entries in them.
        let at = self.tail.fetch_add(found.len(), Relaxed);
        assert!(at + found.len() <= self.capacity, "the next queue overflows");
        // SAFETY: `fetch_add` hands out every place once, and the room was checked.
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), self.next.get().add(at), found.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::{Blocks, BuildOptions, EdgeList, Layout, Listing, Order},
        threads::Team,
    };

    /// Lists cut at any place lead to the same vertices as whole lists, each once, whatever the filters of the threads lack.
    #[test]
    fn lists_cut_at_any_place_lead_to_the_same_vertices() {
        const N: u32 = 300;
        // Hubs of 290 neighbours, and lists of no, one and two neighbours.
        let edges: Vec<[Vertex; 2]> = (0..3).flat_map(|hub| (10..N).map(move |v| [hub, v])).chain([[3, 4], [4, 5], [10, 11]]).collect();
        let edges = EdgeList::new(N as usize, edges, Listing::Once).unwrap();
        let layout = Layout::build(&edges, &BuildOptions { order: Order::Original, ..BuildOptions::default() }).unwrap();
        let (csr, blocks) = (layout.csr(), Blocks::new(layout.csr()).unwrap());
        lead_to_the_same(&layout, (&csr.offsets, &csr.targets));
        lead_to_the_same(&layout, (&blocks.offsets, &blocks.blocks));
    }

    fn lead_to_the_same<T: Entry + Sync>(layout: &Layout, lists: Adjacency<'_, T>) {
        let (csr, n) = (layout.csr(), layout.vertices());
        let queue = [6, 0, 1, 4, 7, 2, 10, 11, 9];
        for (size, most) in [1, 3].into_iter().flat_map(|size| [1, 5, 64, 10_000].map(|most| (size, most))) {
            let team = Team::new(size, &[]).unwrap();
            for is_cut in [false, true] {
                let mut parent = vec![NONE; layout.padded() + 2];
                queue.iter().for_each(|&v| parent[v as usize] = 50);
                parent[20] = 8;
                let (mut next, mut room) = (vec![0; n], vec![0; queue.len() + 1]);
                let starts = if is_cut { starts(lists.0, &queue, &mut room) } else { &[] };
                let entries = queue.iter().map(|&v| (lists.0[v as usize + 1] - lists.0[v as usize]) as usize).sum::<usize>();
                assert!(!is_cut || starts[queue.len()] == entries as u64);
                let mut visited = vec![0; layout.padded() / 64];
                (0..n).filter(|&v| parent[v] != NONE).for_each(|v| visited[v / 64] |= 1 << (v % 64));
                let (tail, used) = (AtomicUsize::new(0), AtomicUsize::new(0));
                let (mut met, mut chunks) = (vec![[0; 2]; CHUNK * 100], vec![[0; 2]; 100]);
                let level = TopDown {
                    lists,
                    to_original: &[],
                    parent: Shared::new(&mut parent),
                    visited: Shared::new(&mut visited),
                    met: Shared::new(&mut met),
                    chunks: Shared::new(&mut chunks),
                    most: 100,
                    used: &used,
                    partitions: partitions(size),
                    queue: &queue,
                    capacity: next.len(),
                    next: Shared::new(&mut next),
                    tail: &tail,
                    pieces: Pieces::new(if is_cut { entries } else { queue.len() }, most, size),
                    starts,
                };
                team.run(&|thread| {
                    let mut filter = vec![0; layout.padded() / 64];
                    // The first thread has met one of the vertices that are visited, and the others have met none.
                    filter[0] |= u64::from(thread == 0) << 20;
                    level.expand_pieces(thread, &mut filter);
                });
                team.run(&|thread| level.settle_partitions(thread));
                let mut found = next[..tail.into_inner()].to_vec();
                found.sort_unstable();
                let wanted: Vec<Vertex> = [3, 5].into_iter().chain((12..n as Vertex).filter(|&v| v != 20)).collect();
                assert_eq!(found, wanted, "{size} threads, {most} at a time");
                for v in wanted {
                    let by = parent[v as usize];
                    assert!([0, 1, 2, 4].contains(&by) && csr.neighbours(by).contains(&v), "{v} by {by}");
                }
                assert!(parent[20] == 8 && (0..n).all(|v| (visited[v / 64] >> (v % 64) & 1 == 1) == (parent[v] != NONE)));
            }
        }
        assert!(starts(lists.0, &queue, &mut [0; 9]).is_empty(), "there is no room for so many");
    }
}
