//! Conversions of the state: parents to a bitmap, a bitmap to a queue, and parents to the order of the original vertices.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};

use super::{
    CpuEngine,
    simd::{MapBack, Visited},
    tuning::{MAPPED, SHARED_WORDS, WORDS},
};
use crate::{
    engine::Frontier,
    graph::{NONE, Vertex},
    memory::{Shared, as_atomics},
    threads::{Pieces, share, share_and_sum},
};

impl CpuEngine<'_> {
    /// Writes the parents in the order of the original vertices, if that order differs. Unless `all` was searched, the frontier is at the
    /// greatest depth that was asked for, and the leaves of its vertices get no parent.
    pub(crate) fn map_back(&mut self, all: bool) {
        if self.layout.internal_places().is_empty() {
            return;
        }
        self.enter_leaves(all);
        let mapped = Shared::new(&mut self.state.mapped);
        self.map_into(&self.state.parent, mapped);
        let mapped = &mut self.state.mapped;
        self.leaf_sources.each(|leaf| mapped[leaf as usize] = leaf);
    }

    /// Writes the parents in the order of the original vertices into the caller's array, one entry for each. `all`: see
    /// [`CpuEngine::map_back`].
    pub(crate) fn parents_into(&mut self, out: &mut [Vertex], all: bool) {
        assert_eq!(out.len(), self.layout.vertices(), "one parent for each vertex");
        if !self.layout.internal_places().is_empty() {
            self.enter_leaves(all);
            self.map_into(&self.state.parent, Shared::new(out));
            self.leaf_sources.each(|leaf| out[leaf as usize] = leaf);
            return;
        }
        let out = Shared::new(out);
        let parents = &self.state.parent[..self.layout.vertices()];
        share(&self.team, parents.len(), MAPPED.end, parents.len() < SHARED_WORDS * 64, &|_, range| {
            // SAFETY: ranges are handed out once and lie inside the array, whose length was checked.
            unsafe { std::slice::from_raw_parts_mut(out.get().add(range.start), range.len()) }.copy_from_slice(&parents[range]);
        });
    }

    /// Whether `holds` for all ranges of the parents after [`map_back`](Self::map_back), or after a device has done that.
    pub(crate) fn parents_hold(&self, holds: impl Fn(&[Vertex]) -> bool + Sync) -> bool {
        let (parents, all_hold) = (self.parents(), AtomicBool::new(true));
        // The threads sleep while a device searches: a smaller array is read before they are awake.
        share(&self.team, parents.len(), MAPPED.end, parents.len() < 4 * MAPPED.end, &|_, range| {
            if !holds(&parents[range]) {
                all_hold.store(false, Relaxed);
            }
        });
        all_hold.into_inner()
    }

    /// Writes what `parent` has in the place of each original vertex to `out`.
    pub(super) fn map_into(&self, parent: &[Vertex], out: Shared<Vertex>) {
        let place = self.layout.internal_places();
        let work = MapBack { place, parent, out };
        let kernel = self.kernels.map_back;
        let grain = (place.len() / (4 * self.team.size())).clamp(MAPPED.start, MAPPED.end);
        share(&self.team, place.len(), grain, place.len() < SHARED_WORDS * 64, &|_, vertices| {
            // SAFETY: the layout made the places (each has an entry in the parents), ranges are handed out once, and the kernel was chosen
            // for this CPU.
            unsafe { kernel(&work, vertices) };
        });
    }

    /// The number of vertices with a parent, and the sum of their `degrees`; both slices have one entry for each original vertex.
    /// (`parents` may also hold levels: a vertex that was not reached is [`NONE`] in both.)
    pub(crate) fn count_reached(&self, parents: &[Vertex], degrees: &[u32]) -> (u64, u64) {
        let parents = &parents[..degrees.len()];
        let alone = parents.len() < SHARED_WORDS * 64;
        let ([reached, arcs], _) = share_and_sum(&self.team, parents.len(), MAPPED.end, alone, &|_, vertices| {
            // A count of 32 bits (a range has few vertices) takes half the instructions of one of 64.
            let (mut some, mut sum) = (0_u32, 0);
            for (&parent, &degree) in parents[vertices.clone()].iter().zip(&degrees[vertices]) {
                let is_reached = u32::from(parent != NONE);
                some += is_reached;
                // No branch, since it would be mispredicted (one thread on an R-MAT graph: 5 ns per vertex with a branch).
                sum += u64::from(degree & is_reached.wrapping_neg());
            }
            [some.into(), sum]
        });
        (reached, arcs)
    }

    /// Writes the level of every original vertex ([`NONE`]: not reached). Returns `false` if the parents are not a tree; the levels are
    /// then useless.
    pub(crate) fn levels_into(&self, levels: &mut [u32]) -> bool {
        let (parents, vertices) = (self.parents(), levels.len());
        self.reset(levels);
        self.pass_down(as_atomics(levels), vertices, |v| parents[v], |_| 0, 1)
    }

    /// Sets all entries to [`NONE`].
    pub(super) fn reset(&self, entries: &mut [u32]) {
        let entries = as_atomics(entries);
        share(&self.team, entries.len(), MAPPED.end, entries.len() < SHARED_WORDS * 64, &|_, range| {
            entries[range].iter().for_each(|entry| entry.store(NONE, Relaxed));
        });
    }

    /// Writes a number for each of the first `vertices` that were reached: that of its parent and `step`, or `of_source` for a source,
    /// which is its own parent. Numbers are [`NONE`] before, except for vertices whose number is known. Returns `false` if the parents are
    /// not a forest; the numbers are then useless.
    pub(super) fn pass_down(
        &self,
        numbers: &[AtomicU32],
        vertices: usize,
        parent: impl Fn(usize) -> Vertex + Sync,
        of_source: impl Fn(Vertex) -> u32 + Sync,
        step: u32,
    ) -> bool {
        let (is_forest, last) = (AtomicBool::new(true), numbers.len().saturating_sub(1));
        // Finds the number of a vertex from its nearest ancestor that has one. Threads share numbers without order: one that a thread does
        // not see only makes its walk longer, and two threads that find the same number store the same.
        let walk = |v: usize| {
            let (mut at, mut steps) = (v, 0);
            let above = loop {
                let (number, parent) = (numbers[at].load(Relaxed), parent(at));
                if number != NONE {
                    break number;
                }
                if parent as usize == at {
                    break of_source(parent);
                }
                steps += 1;
                // A cycle, or a parent that was not reached.
                if parent as usize > last || steps as usize > last || !is_forest.load(Relaxed) {
                    return is_forest.store(false, Relaxed);
                }
                at = parent as usize;
            };
            // Its ancestors get their numbers too, so that no path is walked twice.
            at = v;
            for below in (0..=steps).rev() {
                numbers[at].store(above + below * step, Relaxed);
                at = parent(at) as usize;
            }
        };
        let pieces = Pieces::new(vertices, MAPPED.end, self.team.size());
        let work = |_| {
            // From the front on every thread: the first vertices are the parents of most others.
            for v in std::iter::from_fn(|| pieces.next(0)).flatten() {
                let parent = parent(v);
                let number = numbers[last.min(parent as usize)].load(Relaxed);
                // No branch on whether the vertex was reached, which can't be predicted.
                if (parent == NONE) | (number != NONE) & (parent as usize != v) {
                    numbers[v].store(if parent == NONE { NONE } else { number + step }, Relaxed);
                } else {
                    walk(v);
                }
            }
        };
        if vertices < SHARED_WORDS * 64 {
            work(0)
        } else {
            self.team.run(&work)
        }
        is_forest.into_inner()
    }

    /// Makes the visited bitmap from the parents; returns the number of vertices visited.
    fn make_bitmap(&mut self) -> u64 {
        let words = self.excluded.len();
        let work = Visited {
            parent: &self.state.parent,
            excluded: &self.excluded,
            words: Shared::new(&mut self.state.visited[self.state.current]),
        };
        let kernel = self.kernels.visited;
        let ([total, _], _) = share_and_sum(&self.team, words, 8 * WORDS, words < 4 * SHARED_WORDS, &|_, range| {
            // SAFETY: every word is handed out once, parents cover all words, and the kernel was chosen for this CPU.
            [unsafe { kernel(&work, range) }, 0]
        });
        total - self.excluded_count
    }

    /// Brings the visited bitmap up to date, and with it the number of visited vertices, of which a device may have counted too few.
    pub(crate) fn bring_bitmap_up_to_date(&mut self) {
        self.enter_frontier();
        if !self.state.bitmap_is_current {
            self.state.visited_count = self.make_bitmap();
            self.state.bitmap_is_current = true;
        }
        self.lacks_frontier = false;
    }

    /// Adds a small frontier to a visited bitmap that lacks nothing else. (For a large one, reading all parents in order takes less time
    /// than setting scattered bits.)
    pub(super) fn enter_frontier(&mut self) {
        let Frontier::Queue { len } = self.state.frontier else { return };
        if !self.lacks_frontier || self.state.bitmap_is_current || len >= self.layout.padded() / 16 {
            return;
        }
        let words = &mut self.state.visited[self.state.current];
        self.state.queue[..len].iter().for_each(|&v| words[v as usize / 64] |= 1 << (v % 64));
        (self.state.bitmap_is_current, self.lacks_frontier) = (true, false);
    }

    /// Makes the frontier queue from the two visited bitmaps; returns its length.
    pub(super) fn make_queue(&mut self) -> usize {
        let (now, before) = (&self.state.visited[self.state.current], &self.state.visited[1 - self.state.current]);
        let tail = AtomicUsize::new(0);
        let words = self.excluded.len();
        let capacity = self.state.queue.len();
        let queue = Shared::new(&mut self.state.queue);
        share(&self.team, words, 8 * WORDS, words < 16 * SHARED_WORDS, &|_, range| {
            let count: u32 = range.clone().map(|word| (now[word] & !before[word]).count_ones()).sum();
            let mut at = tail.fetch_add(count as usize, Relaxed);
            assert!(at + count as usize <= capacity, "the queue overflows");
            for word in range {
                let mut bits = now[word] & !before[word];
                while bits != 0 {
                    // SAFETY: `fetch_add` reserved this place for this thread, and the room was checked.
                    unsafe { *queue.get().add(at) = (word * 64) as Vertex + bits.trailing_zeros() };
                    at += 1;
                    bits &= bits - 1;
                }
            }
        });
        tail.into_inner()
    }
}
