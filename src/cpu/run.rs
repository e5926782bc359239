//! One level, top-down or bottom-up, run by one thread or by the team.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    time::Instant,
};

use crossbeam_utils::CachePadded;

use super::{
    CpuEngine,
    bottom_up::{BottomUp, FoundCounts},
    top_down::{self, Entry, TopDown},
    tuning::{CUT_ARCS, DEEP, HUB_LISTS, MEDIUM_LISTS, MOST_AT_ONCE, SHARED_UNVISITED, SHARED_UNVISITED_AWAKE, SHARED_WORDS},
};
use crate::{
    bfs::LevelWork,
    engine::Frontier,
    graph::{Adjacency, Lists, Vertex},
    memory::Shared,
    threads::{Pieces, SharedBuffers, share_and_sum},
};

impl CpuEngine<'_> {
    /// Runs one level, and from level `DEEP` on also the small levels after it, until the frontier is empty or large or `MOST_AT_ONCE`
    /// vertices were found. Returns (levels, found).
    fn run_small(&mut self, mut len: usize, alone: bool) -> (u32, u64) {
        let layout = self.layout;
        let (mut levels, mut total) = (0, 0);
        let mean_degree = layout.csr().arcs() as u64 / self.searched().max(1) + 1;
        // The caller of a team goes on alone while levels are too small for helpers to be woken in time. A lone thread stops where
        // bottom-up may be faster, except in a graph with rows.
        let enough = if self.single_levels || self.distances.are_noted() {
            0
        } else if alone && layout.rows().is_empty() {
            self.searched() / 64
        } else if alone {
            u64::MAX
        } else {
            self.parallel.arcs / mean_degree
        };
        loop {
            let (parent, queue, next) = (&mut self.state.parent[..], &self.state.queue[..len], &mut self.state.next[..]);
            let visited = &mut self.state.visited[self.state.current];
            // SAFETY: `parent` covers all vertices and "no neighbour", the bitmap covers all vertices, the queue holds vertices, `next` has
            // room for more than all of them (four entries more), and no helper is working.
            let found = unsafe {
                let originals = layout.original_numbers();
                match layout.lists() {
                    _ if !layout.rows().is_empty() => top_down::expand_rows(layout.rows(), layout.csr(), parent, queue, next),
                    Lists::Numbers(lists) => top_down::expand(lists, originals, visited, parent, queue, next),
                    Lists::Blocks(lists) => top_down::expand(lists, originals, visited, parent, queue, next),
                }
            };
            if found == 0 {
                self.note_deepest();
            }
            std::mem::swap(&mut self.state.queue, &mut self.state.next);
            levels += 1;
            total += found as u64;
            self.state.previous_frontier = len as u64;
            len = found;
            self.state.frontier = Frontier::Queue { len };
            if len == 0 || self.state.level + levels < DEEP || len as u64 > enough || total >= MOST_AT_ONCE {
                break;
            }
            // `stats` counts the arcs of the first level only. Rows hold no degrees, but the degrees in graphs with rows hardly differ, so
            // the mean is used.
            self.state.expanded_edges += if layout.rows().is_empty() {
                self.count_queue_edges()
            } else {
                len as u64 * layout.csr().arcs() as u64 / self.searched().max(1)
            };
        }
        (levels, total)
    }

    /// Ends the level before it begins if all vertices that take part have been visited.
    fn all_is_found(&mut self) -> Option<LevelWork> {
        if !self.counts_alone || self.state.visited_count < self.searched() {
            return None;
        }
        self.state.previous_frontier = self.state.frontier.len();
        self.state.frontier = Frontier::Queue { len: 0 };
        Some(LevelWork { levels: 1, finished: true, threads: 1, ..LevelWork::default() })
    }

    pub(super) fn run_top_down(&mut self) -> LevelWork {
        self.top_down(true)
    }

    /// Runs a top-down level. Unless it `is_whole`, other devices run a part of it, and the next frontier is a queue.
    pub(super) fn top_down(&mut self, is_whole: bool) -> LevelWork {
        self.note_deepest();
        if let Some(over) = self.all_is_found() {
            return over;
        }
        self.enter_frontier();
        let mut conversion_ns = 0;
        if let Frontier::Bitmap { .. } = self.state.frontier {
            let begin = Instant::now();
            let len = self.make_queue();
            self.state.frontier = Frontier::Queue { len };
            conversion_ns = begin.elapsed().as_nanos() as u64;
        }
        let Frontier::Queue { len } = self.state.frontier else { unreachable!("made a queue above") };
        let edges = self.state.frontier_edges;
        if is_whole && self.level_is_wide(len, edges) {
            return self.run_wide(conversion_ns);
        }
        let (alone, has_rows) = (self.team.size() == 1, !self.layout.rows().is_empty());
        let degree = edges / len.max(1) as u64;
        let enough = match degree {
            _ if has_rows => self.parallel.row_arcs,
            HUB_LISTS.. => self.parallel.hub_arcs,
            MEDIUM_LISTS.. => self.parallel.medium_arcs(),
            _ => self.parallel.arcs,
        };
        let is_shared = !alone && edges >= enough;
        // One thread goes by the parents where there are rows.
        if is_shared || !has_rows {
            self.bring_bitmap_up_to_date();
        }
        if !is_shared {
            let was_current = self.state.bitmap_is_current;
            let (levels, found) = self.run_small(len, alone);
            // What other devices find of their parts of the level is not in the bitmap.
            self.state.bitmap_is_current &= is_whole && !has_rows;
            self.lacks_frontier = was_current && levels == 1 && !self.state.bitmap_is_current;
            let finished = self.state.frontier.len() == 0;
            return LevelWork { levels, found, finished, conversion_ns, threads: 1, ..LevelWork::default() };
        }
        let layout = self.layout;
        let (found, threads) = match layout.lists() {
            Lists::Numbers(lists) => self.share_top_down(len, lists),
            Lists::Blocks(lists) => self.share_top_down(len, lists),
        };
        std::mem::swap(&mut self.state.queue, &mut self.state.next);
        (self.state.bitmap_is_current, self.lacks_frontier) = (is_whole, !is_whole);
        self.state.previous_frontier = len as u64;
        self.state.frontier = Frontier::Queue { len: found };
        LevelWork { levels: 1, found: found as u64, finished: found == 0, conversion_ns, threads, ..LevelWork::default() }
    }

    /// Runs a top-down level with a queue of `len` vertices on all threads. Returns the length of the next queue, and the number of threads
    /// that took part.
    fn share_top_down<T: Entry + Sync>(&mut self, len: usize, lists: Adjacency<'_, T>) -> (usize, u32) {
        // Each on its own cache line, since every thread writes them.
        let (tail, used) = (CachePadded::new(AtomicUsize::new(0)), CachePadded::new(AtomicUsize::new(0)));
        let arrived = AtomicU32::new(0);
        let queue = &self.state.queue[..len];
        let starts = top_down::starts(lists.0, queue, &mut self.starts);
        let entries = starts.last().map_or(0, |&entries| entries as usize);
        let (size, words) = (self.team.size(), self.excluded.len());
        let (visited, search) = (Shared::new(&mut self.state.visited[self.state.current]), self.search);
        let level = TopDown {
            lists,
            to_original: self.layout.original_numbers(),
            parent: Shared::new(&mut self.state.parent),
            visited,
            queue,
            capacity: self.state.next.len(),
            next: Shared::new(&mut self.state.next),
            tail: &tail,
            pieces: if starts.is_empty() {
                Pieces::new(len, (len / (8 * size)).clamp(16, 1024), size)
            } else {
                Pieces::new(entries, (entries / (8 * size)).max(CUT_ARCS), size)
            },
            starts,
            most: self.chunks.len(),
            met: Shared::new(&mut self.met),
            chunks: Shared::new(&mut self.chunks),
            used: &used,
            partitions: top_down::partitions(size),
        };
        let filters = SharedBuffers(&self.filters);
        self.team.run(&|thread| {
            arrived.fetch_add(1, Relaxed);
            // SAFETY: this is the only thread of this number, and it requests its filter here alone.
            let filter = unsafe { filters.of(thread) };
            // A filter learns what other threads have found where copying the bitmap costs little, and in any case at the first level.
            if filter[words] != search || 8 * words as u64 <= self.state.frontier_edges {
                // SAFETY: the bitmap has so many words, and none is written in this step.
                filter[..words].copy_from_slice(unsafe { std::slice::from_raw_parts(visited.get(), words) });
                filter[words] = search;
            }
            level.expand_pieces(thread, filter);
        });
        self.team.run(&|thread| level.settle_partitions(thread));
        // A late helper may enter twice, and is then counted twice.
        (tail.into_inner().into_inner(), arrived.into_inner().min(size as u32))
    }

    pub(super) fn run_bottom_up(&mut self) -> LevelWork {
        let mut conversion_ns = 0;
        self.note_deepest();
        if let Some(over) = self.all_is_found() {
            return over;
        }
        self.enter_frontier();
        if !self.state.bitmap_is_current {
            let begin = Instant::now();
            self.bring_bitmap_up_to_date();
            conversion_ns = begin.elapsed().as_nanos() as u64;
        }
        let (FoundCounts { vertices: found, edges }, threads) = self.bottom_up_over(0..self.excluded.len());
        self.state.current = 1 - self.state.current;
        if !self.degrees.is_empty() {
            let (now, before) = (&self.state.visited[self.state.current], &self.state.visited[1 - self.state.current]);
            let new = now[0] & !before[0];
            // The kernel used the mean degree of every word. For the first word, the exact degrees replace it here.
            let edges = edges + self.edges_of(0, new) - u64::from(new.count_ones()) * u64::from(self.degrees[0]);
            let hubs = self.hubs.len();
            self.hubs.copy_from_slice(&now[..hubs]);
            let is_new = |&word: &u32| now[word as usize] & !before[word as usize] != 0;
            self.state.next_are_estimated = match &self.mixed {
                Some(words) => words.iter().any(is_new),
                None => found > u64::from(new.count_ones()),
            };
            self.state.next_edges = Some(edges.min(self.layout.csr().arcs() as u64));
        }
        self.state.bitmap_is_current = true;
        self.state.previous_frontier = self.state.frontier.len();
        self.state.frontier = Frontier::Bitmap { len: found };
        LevelWork { levels: 1, found, finished: found == 0, conversion_ns, threads, ..LevelWork::default() }
    }

    /// Runs a bottom-up level for the vertices of `words` of the bitmap; their words of the next visited bitmap are then in
    /// `visited[1 - current]`. Returns what was found, and the number of threads that took part.
    pub(super) fn bottom_up_over(&mut self, words: Range<usize>) -> (FoundCounts, u32) {
        let unvisited = self.searched().saturating_sub(self.state.visited_count);
        let [first, second] = &mut self.state.visited;
        let (now, next) = if self.state.current == 0 { (first, second) } else { (second, first) };
        let level = BottomUp {
            visited: now,
            own: &now[..self.excluded.len()],
            next: Shared::new(&mut next[..self.excluded.len()]),
            parent: Shared::new(&mut self.state.parent),
            columns: self.layout.columns(),
            originals: self.layout.column_originals(),
            lists: self.layout.incoming_lists(),
            degrees: &self.degrees,
            to_original: self.layout.original_numbers(),
            none: self.layout.padded() as Vertex,
        };
        let remaining = SharedBuffers(&self.remaining);
        let kernel = self.kernels.bottom_up;
        let (least, least_words) = if self.team.sleeps() { (SHARED_UNVISITED, SHARED_WORDS) } else { (SHARED_UNVISITED_AWAKE, 0) };
        let alone = self.team.size() == 1 || unvisited < least || words.len() < least_words;
        let quarter = words.len() / (4 * self.team.size());
        let piece = if alone { self.parallel.words() } else { self.parallel.words().min(quarter.max(4)) };
        let ([vertices, edges], threads) = share_and_sum(&self.team, words.len(), piece, alone, &|thread, range| {
            let range = words.start + range.start..words.start + range.end;
            // SAFETY: words are handed out once; the slabs have the sizes that `BottomUp` requires (see `new`); the kernel was chosen for
            // this CPU; buffer `thread` is this thread's own.
            let found = unsafe { kernel(&level, range, remaining.of(thread)) };
            [found.vertices, found.edges]
        });
        (FoundCounts { vertices, edges }, threads)
    }
}
