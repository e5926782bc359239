//! The CPU's part of levels that it shares with a GPU, and the merging of both parts.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use super::CpuEngine;
use crate::{
    bfs::LevelWork,
    engine::Frontier,
    graph::{NONE, Vertex},
    memory::Shared,
    threads::share,
};

/// Vertices or words that a thread takes at a time.
const GRAIN: usize = 4096;
/// Blocks whose arcs are summed to find the place where a queue is cut.
const BLOCKS: usize = 256;

/// How many thousandths of both parts together `part` is: at least 1 unless it is empty, and at most 999 unless it is all.
pub fn thousandths(part: u64, rest: u64) -> u16 {
    let permille = (u128::from(part) * 1000 / u128::from(part + rest).max(1)) as u16;
    permille.max(u16::from(part > 0))
}

/// The result of [`CpuEngine::merge_apart`].
#[derive(Debug, Default)]
pub(crate) struct Merged {
    /// Vertices reached.
    pub(crate) reached: u64,
    /// The deepest level of a vertex found after the searches parted (0: no vertex was found).
    pub(crate) deepest: u32,
    /// Vertices that both searches found: repeated work (Remis 2016, section 5.3).
    pub(crate) repeated: u64,
}

impl CpuEngine<'_> {
    /// Turns the frontier into a queue, and brings the visited bitmap up to date. Returns the queue's length.
    pub(crate) fn frontier_to_queue(&mut self) -> usize {
        self.bring_bitmap_up_to_date();
        if let Frontier::Bitmap { .. } = self.state.frontier {
            let len = self.make_queue();
            self.state.frontier = Frontier::Queue { len };
        }
        self.state.frontier.len() as usize
    }

    /// Finds where to cut the first `len` entries of the queue so that about `permille` thousandths of their arcs lie behind the cut.
    /// Returns the place of the cut, and the numbers of arcs before and behind it.
    pub(crate) fn cut_queue(&self, len: usize, permille: u16) -> (usize, u64, u64) {
        let (queue, csr) = (&self.state.queue[..len], self.layout.csr());
        let sums: [AtomicU64; BLOCKS] = std::array::from_fn(|_| AtomicU64::new(0));
        let block = len.div_ceil(BLOCKS).max(1);
        let arcs = |range: Range<usize>| queue[range].iter().map(|&v| u64::from(csr.degree(v))).sum::<u64>();
        share(&self.team, BLOCKS, 8, len < GRAIN, &|_, blocks| {
            for b in blocks {
                sums[b].store(arcs((b * block).min(len)..((b + 1) * block).min(len)), Relaxed);
            }
        });
        let total: u64 = sums.iter().map(|sum| sum.load(Relaxed)).sum();
        let wanted = total - total * u64::from(permille.min(1000)) / 1000;
        let (mut before, mut cut) = (0, 0);
        for sum in &sums {
            let sum = sum.load(Relaxed);
            if before + sum > wanted {
                break;
            }
            before += sum;
            cut = (cut + block).min(len);
        }
        while cut < len && before < wanted {
            before += u64::from(csr.degree(queue[cut]));
            cut += 1;
        }
        (cut, before, total - before)
    }

    /// Finds the word at which to cut the bitmap so that about `permille` thousandths of the unvisited vertices' arcs lie behind the cut.
    /// Also returns how many thousandths these are.
    pub(crate) fn cut_words(&self, permille: u16) -> (usize, u16) {
        let (words, offsets) = (self.excluded.len(), &self.layout.incoming().offsets);
        let visited = &self.state.visited[self.state.current];
        let vertices = self.layout.csr().vertices();
        // Vertices with adjacent numbers have similar degrees, so the unvisited vertices of a word are given a proportional share of its
        // arcs.
        let weight = |word: usize| {
            let arcs = offsets[(word * 64 + 64).min(vertices)] - offsets[word * 64];
            u64::from((!visited[word]).count_ones()) * (u64::from(arcs) + 64)
        };
        let total: u64 = (0..words).map(weight).sum();
        let wanted = total - (total as f64 * f64::from(permille.min(1000)) / 1000.0) as u64;
        let mut before = 0;
        let cut = (0..words).find(|&word| {
            let is_cut = before >= wanted;
            before += if is_cut { 0 } else { weight(word) };
            is_cut
        });
        (cut.unwrap_or(words), thousandths(total - before, before))
    }

    /// Runs the CPU's part of a top-down level: the first `len` entries of the queue, which `edges` arcs leave.
    pub(crate) fn top_down_part(&mut self, len: usize, edges: u64) -> LevelWork {
        let (all, single) = (self.state.frontier_edges, self.single_levels);
        self.state.frontier_edges = edges;
        self.state.frontier = Frontier::Queue { len };
        self.single_levels = true;
        // The next frontier must be a queue, since what the devices find is merged into it.
        let work = self.top_down(false);
        self.single_levels = single;
        self.state.frontier_edges = all;
        work
    }

    /// Runs the CPU's part of a bottom-up level: the vertices of `words`. [`CpuEngine::end_bottom_up`] ends the level.
    pub(crate) fn bottom_up_part(&mut self, words: Range<usize>) -> (u64, u32) {
        let (found, threads) = self.bottom_up_over(words);
        (found.vertices, threads)
    }

    /// Adds what a device found to the next frontier: the vertices `found`, each once, with their `parents`. A vertex that already has a
    /// parent was found by another device or the CPU too. Returns the number of new vertices.
    pub(crate) fn merge_queue(&mut self, found: &[Vertex], parents: &[Vertex]) -> u64 {
        let Frontier::Queue { len } = self.state.frontier else { return 0 };
        let capacity = self.state.queue.len();
        let tail = AtomicUsize::new(len);
        let (parent, queue) = (Shared::new(&mut self.state.parent), Shared::new(&mut self.state.queue));
        share(&self.team, found.len(), GRAIN, found.len() < GRAIN, &|_, range| {
            let (found, parents) = (&found[range.clone()], &parents[range]);
            // SAFETY: `found` holds vertices, each once, so no other thread touches these parents; `fetch_add` hands out every place once,
            // and the room is checked.
            let is_new = |v: Vertex| unsafe { *parent.get().add(v as usize) == NONE };
            let new = found.iter().filter(|&&v| is_new(v)).count();
            let first = tail.fetch_add(new, Relaxed);
            assert!(first + new <= capacity, "the queue overflows");
            for (at, (&v, &by)) in (first..).zip(found.iter().zip(parents).filter(|&(&v, _)| is_new(v))) {
                // SAFETY: as above.
                unsafe {
                    *parent.get().add(v as usize) = by;
                    *queue.get().add(at) = v;
                }
            }
        });
        let merged = tail.into_inner();
        self.state.frontier = Frontier::Queue { len: merged };
        (merged - len) as u64
    }

    /// Merges what a device found in a bottom-up level for the vertices of `words`: copies their words of the next visited bitmap from
    /// `next`, and the parents of new vertices from `parents`.
    pub(crate) fn merge_words(&mut self, words: Range<usize>, next: &[u64], parents: &[Vertex]) {
        let [first, second] = &mut self.state.visited;
        let (now, into) = if self.state.current == 0 { (&*first, second) } else { (&*second, first) };
        let (into, parent) = (Shared::new(into), Shared::new(&mut self.state.parent));
        share(&self.team, words.len(), GRAIN / 64, words.len() < GRAIN / 64, &|_, range| {
            for word in words.start + range.start..words.start + range.end {
                let found = next[word - words.start];
                let mut bits = found & !now[word];
                // SAFETY: words are handed out once, and parents belong to their words.
                unsafe {
                    *into.get().add(word) = found;
                    while bits != 0 {
                        let v = word * 64 + bits.trailing_zeros() as usize;
                        *parent.get().add(v) = parents[v - words.start * 64];
                        bits &= bits - 1;
                    }
                }
            }
        });
    }

    /// Ends a bottom-up level after all of its words are written.
    pub(crate) fn end_bottom_up(&mut self, found: u64) {
        self.state.current = 1 - self.state.current;
        self.state.bitmap_is_current = true;
        self.state.previous_frontier = self.state.frontier.len();
        self.state.frontier = Frontier::Bitmap { len: found };
    }

    /// Stores `level` in `level_of` for every vertex of the frontier.
    pub(crate) fn stamp(&self, level_of: &mut [u32], level: u32) {
        match self.state.frontier {
            Frontier::Queue { .. } => {
                for &v in self.frontier_queue() {
                    level_of[v as usize] = level;
                }
            }
            Frontier::Bitmap { .. } | Frontier::Mask { .. } => {
                let (now, before) = (&self.state.visited[self.state.current], &self.state.visited[1 - self.state.current]);
                let into = Shared::new(level_of);
                share(&self.team, self.excluded.len(), GRAIN / 64, false, &|_, words| {
                    for word in words {
                        let mut bits = now[word] & !before[word];
                        while bits != 0 {
                            // SAFETY: words are handed out once, and there is a level for every vertex of a word.
                            unsafe { *into.get().add(word * 64 + bits.trailing_zeros() as usize) = level };
                            bits &= bits - 1;
                        }
                    }
                });
            }
        }
    }

    /// Copies all of `from` to the beginning of `into`, on all threads.
    pub(crate) fn copy(&self, from: &[u32], into: &mut [u32]) {
        let into = Shared::new(&mut into[..from.len()]);
        share(&self.team, from.len(), 16 * GRAIN, from.len() < 16 * GRAIN, &|_, range| {
            // SAFETY: ranges are handed out once and lie inside both.
            unsafe { std::ptr::copy_nonoverlapping(from[range.clone()].as_ptr(), into.get().add(range.start), range.len()) };
        });
    }

    /// Merges two searches: every vertex gets the smaller of its two levels, and the parent that belongs to that level. A vertex found
    /// before the searches parted has level 0 in both.
    pub(crate) fn merge_apart(&mut self, parents: &[Vertex], levels: &[u32], others: &[u32]) -> Merged {
        let padded = self.layout.padded();
        let parent = Shared::new(&mut self.state.parent);
        let (reached, deepest, repeated) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        share(&self.team, padded, GRAIN, padded < GRAIN, &|_, range| {
            let (mut count, mut deep, mut twice) = (0, 0, 0);
            for v in range {
                // SAFETY: vertices are handed out once.
                let mine = unsafe { &mut *parent.get().add(v) };
                let theirs = parents[v];
                let (found_here, found_there) = (*mine != NONE, theirs != NONE);
                count += u64::from((found_here || found_there) && self.excluded[v / 64] >> (v % 64) & 1 == 0);
                if found_here && found_there {
                    twice += u64::from(levels[v] > 0 && others[v] > 0);
                    if others[v] < levels[v] {
                        *mine = theirs;
                    }
                    deep = deep.max(others[v].min(levels[v]));
                } else if found_there {
                    *mine = theirs;
                    deep = deep.max(others[v]);
                } else if found_here {
                    deep = deep.max(levels[v]);
                }
            }
            reached.fetch_add(count, Relaxed);
            deepest.fetch_max(u64::from(deep), Relaxed);
            repeated.fetch_add(twice, Relaxed);
        });
        Merged { reached: reached.into_inner(), deepest: deepest.into_inner() as u32, repeated: repeated.into_inner() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bfs::{Direction, Engine, LevelPlan, Placement},
        cpu::{Simd, tests::engine},
        graph::{BuildOptions, EdgeList, Layout, Listing},
    };

    #[test]
    fn a_part_counts_unless_it_is_empty() {
        for (part, rest, permille) in [(0, 7, 0), (1, u64::MAX - 1, 1), (1, 1, 500), (999_999, 1, 999), (7, 0, 1000), (0, 0, 0)] {
            assert_eq!(thousandths(part, rest), permille, "{part} and {rest}");
        }
    }

    /// After a top-down level that began with an up-to-date bitmap, the bitmap is updated from the frontier alone, without reading all
    /// parents.
    #[test]
    fn a_bitmap_that_lacks_the_frontier_is_updated_from_it_alone() {
        const N: u32 = 4000;
        // A tree in which every vertex has two children, and a pair that no search reaches.
        let mut edges: Vec<[Vertex; 2]> = (1..N).map(|v| [(v - 1) / 2, v]).collect();
        edges.push([N, N + 1]);
        let layout = Layout::build(&EdgeList::new(N as usize + 2, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let apart = layout.to_internal(N) as usize;
        for threads in [1, 2] {
            let mut cpu = engine(&layout, threads, Simd::detect());
            let plan = LevelPlan { direction: Direction::TopDown, placement: Placement::Cpu };
            let Ok(_) = cpu.begin(&[0]);
            let (mut reached, mut levels_entered) = (1, 0);
            loop {
                let _ = cpu.stats();
                let len = cpu.frontier_to_queue();
                let state = cpu.state_ref();
                assert!(state.bitmap_is_current);
                let parents = state.parent[..layout.padded()].iter().enumerate().filter(|&(v, &parent)| parent != NONE && v != apart);
                let wanted: u64 = parents.clone().count() as u64;
                let visited = &state.visited[state.current];
                assert!(parents.clone().all(|(v, _)| visited[v / 64] >> (v % 64) & 1 == 1));
                assert_eq!((state.visited_count, wanted), (reached, reached), "{threads} threads");
                assert_eq!(visited[apart / 64] >> (apart % 64) & 1, 0, "all parents were read");
                let small = len < layout.padded() / 32;
                levels_entered += u32::from(small);
                if len == 0 {
                    break;
                }
                let edges = cpu.state_ref().frontier_edges;
                let work = cpu.top_down_part(len, edges);
                reached += work.found;
                cpu.state().done(plan, &work);
                // A search never does this. It shows whether all parents are read, as they are with a large frontier.
                cpu.state().parent[apart] = if (work.found as usize) < layout.padded() / 32 { 0 } else { NONE };
            }
            assert_eq!(reached, u64::from(N));
            assert!(levels_entered >= 6);
        }
    }
}
