//! TC for *wide* levels: the positions in the frontier fit into 16 bits, and its arcs lead to much of the graph. The largest level of a
//! uniform graph is wide.
//!
//! For each neighbour, visited or not, the level stores a note: the *place* in the queue of the vertex that led to it. It need not read the
//! old note or the parent, since any vertex of the frontier is a valid parent of a new vertex. Then it goes through all vertices in order:
//! a vertex with a note but without a parent gets the vertex at the noted place as its parent. Notes of 16 bits take half of the parents'
//! memory, so more of the random accesses hit the second-level cache. A store that nothing waits for costs less than a load, a comparison
//! and a store. The level writes no queue, since it leaves the vertices found as a bitmap. If two threads meet a vertex at once, both store
//! a valid place, so no atomic operation is needed.

use std::{
    ops::Range,
    sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed},
};

use super::{
    CpuEngine,
    simd::{NOT_MET, Settle},
    top_down::look_ahead,
    tuning::{WIDE_ARCS, WIDE_VERTICES, WIDE_WORDS},
};
use crate::{
    bfs::LevelWork,
    engine::Frontier,
    graph::{Csr, Layout, NONE, Vertex},
    memory::{OutOfMemory, Shared, Slab, as_short_atomics},
    threads::{Pieces, share_and_sum},
};

/// Whether levels of this graph may be wide. In a layout that is mapped, a frontier that leads to so much of the graph is expanded
/// bottom-up.
fn may_be_wide(layout: &Layout) -> bool {
    !layout.is_mapped() && layout.rows().is_empty() && layout.csr().vertices() >= WIDE_VERTICES
}

/// The notes, all [`NOT_MET`] between levels; empty if no level of this graph is wide.
pub(super) fn notes(layout: &Layout) -> Result<Slab<u16>, OutOfMemory> {
    let mut notes = Slab::zeroed(if may_be_wide(layout) { layout.padded() } else { 0 }, "places in the frontier")?;
    notes.fill(NOT_MET);
    Ok(notes)
}

/// Stores the places of the vertices `queue[piece]` as notes of their neighbours.
#[inline(always)] // compiled alone it is slower, by 3 % of a search of a uniform graph
fn note(csr: &Csr, queue: &[Vertex], notes: &[AtomicU16], piece: Range<usize>) {
    for place in piece {
        // SAFETY: the queue holds vertices.
        unsafe { look_ahead((&csr.offsets, &csr.targets), queue, place, 0) };
        // The notes are not prefetched: several stores that miss the caches can wait at the same time (measured: 3.3 ns per arc, with
        // prefetches 3.8).
        for &v in csr.neighbours(queue[place]) {
            // SAFETY: lists hold vertices, and every vertex has a note.
            unsafe { notes.get_unchecked(v as usize) }.store(place as u16, Relaxed);
        }
    }
}

impl CpuEngine<'_> {
    /// Whether a level with a queue of `len` vertices, which `edges` arcs leave, is wide.
    pub(super) fn level_is_wide(&self, len: usize, edges: u64) -> bool {
        let searched = self.searched();
        may_be_wide(self.layout) && len <= NOT_MET.into() && edges >= searched / WIDE_ARCS && self.state.visited_count <= searched / 2
    }

    /// Runs a wide level, whose frontier is a queue.
    pub(super) fn run_wide(&mut self, conversion_ns: u64) -> LevelWork {
        let Frontier::Queue { len } = self.state.frontier else { unreachable!("the frontier of a wide level is a queue") };
        let csr = self.layout.csr();
        let queue = &mut self.state.queue[..];
        let pieces = Pieces::new(len, (len / (8 * self.team.size())).clamp(16, 1024), self.team.size());
        let notes = as_short_atomics(&mut self.notes);
        let threads = AtomicU32::new(0);
        self.team.run(&|thread| {
            threads.fetch_add(1, Relaxed);
            while let Some(piece) = pieces.next(thread) {
                note(csr, &queue[..len], notes, piece);
            }
        });
        // A vertex that was not met gets no parent.
        queue[usize::from(NOT_MET)] = NONE;
        let [first, second] = &mut self.state.visited;
        let (before, now) = if self.state.current == 0 { (first, second) } else { (second, first) };
        let work = Settle {
            names: queue,
            excluded: &self.excluded,
            notes: Shared::new(&mut self.notes),
            parent: Shared::new(&mut self.state.parent),
            before: Shared::new(before),
            now: Shared::new(now),
        };
        let kernel = self.kernels.settle;
        let ([before, now], _) = share_and_sum(&self.team, self.excluded.len(), WIDE_WORDS, false, &|_, words| {
            // SAFETY: words are handed out once; notes, parents and bitmaps cover all of them; each note is a place of the queue or
            // `NOT_MET`, which has a name too; the kernel was chosen for this CPU.
            unsafe { kernel(&work, words) }
        });
        self.state.visited_count = before - self.excluded_count;
        self.state.current = 1 - self.state.current;
        self.state.bitmap_is_current = true;
        self.lacks_frontier = false;
        self.state.previous_frontier = len as u64;
        let found = now - before;
        self.state.frontier = Frontier::Bitmap { len: found };
        // A late helper may enter twice, and is then counted twice.
        let threads = threads.into_inner().min(self.team.size() as u32);
        LevelWork { levels: 1, found, finished: found == 0, conversion_ns, threads, ..LevelWork::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bfs::{Direction, Engine, LevelPlan, Placement},
        cpu::{Simd, tests::engine},
        graph::{BuildOptions, EdgeList, Listing, Order},
    };

    fn random_edges(vertices: usize, edges: usize) -> EdgeList {
        let mut state = 1u64;
        let mut end = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (((state >> 32) * vertices as u64) >> 32) as Vertex
        };
        EdgeList::new(vertices, (0..edges).map(|_| [end(), end()]).collect(), Listing::Once).unwrap()
    }

    fn levels_from(csr: &Csr, root: Vertex) -> Vec<u32> {
        let mut levels = vec![NONE; csr.vertices()];
        levels[root as usize] = 0;
        let mut queue = vec![root];
        let mut at = 0;
        while let Some(&u) = queue.get(at) {
            at += 1;
            for &v in csr.neighbours(u) {
                if levels[v as usize] == NONE {
                    levels[v as usize] = levels[u as usize] + 1;
                    queue.push(v);
                }
            }
        }
        levels
    }

    /// Checks that the vertices up to `level` have a parent one level above, and the others none.
    fn check_parents(cpu: &CpuEngine<'_>, levels: &[u32], root: Vertex, level: u32) {
        for v in 0..levels.len() {
            let parent = cpu.state.parent[v];
            assert_eq!(parent != NONE, levels[v] != NONE && levels[v] <= level, "{v} at level {level}");
            if parent != NONE && v != root as usize {
                let is_neighbour = cpu.layout.csr().neighbours(parent).contains(&(v as Vertex));
                assert!(levels[parent as usize] + 1 == levels[v] && is_neighbour);
            }
        }
    }

    /// Each level, wide or not, finds the vertices at that distance from the root, and every parent is a neighbour one level above.
    #[test]
    fn a_wide_level_finds_exactly_the_next_level() {
        let graph = random_edges(WIDE_VERTICES, 6 * WIDE_VERTICES);
        let layout = Layout::build(&graph, &BuildOptions { order: Order::Original, ..BuildOptions::default() }).unwrap();
        let csr = layout.csr();
        for (threads, simd) in [(1, Simd::Scalar), (1, Simd::detect()), (2, Simd::detect())] {
            let mut cpu = engine(&layout, threads, simd);
            // The second search uses the notes that the first left behind.
            for root in [7, 70_000] {
                let levels = levels_from(csr, root);
                let Ok(_) = cpu.begin(&[root]);
                let (mut wide, mut visited) = (0, 1);
                for level in 1.. {
                    let stats = cpu.stats();
                    let is_wide = cpu.level_is_wide(stats.frontier_vertices as usize, stats.frontier_edges);
                    wide += u32::from(is_wide);
                    let Ok(work) = cpu.run(LevelPlan { direction: Direction::TopDown, placement: Placement::Cpu });
                    let reached = levels.iter().filter(|&&of| of != NONE && of <= level).count() as u64;
                    visited += work.found;
                    if is_wide {
                        assert_eq!((visited, cpu.state.visited_count), (reached, reached), "level {level}, {threads} threads");
                        assert!(cpu.notes.iter().all(|&note| note == NOT_MET));
                    }
                    // Checks the state that a wide level leaves behind, and the state at the end of the search.
                    if is_wide || work.finished {
                        check_parents(&cpu, &levels, root, level);
                    }
                    if work.finished {
                        break;
                    }
                }
                assert_eq!(wide, 1, "one level leads to half of the graph from few enough vertices");
            }
        }
    }

    /// If other devices run a part of such a level, what they find is merged into a queue.
    #[test]
    fn a_part_of_a_wide_level_leaves_its_vertices_in_a_queue() {
        let hub: Vec<[Vertex; 2]> = (1..WIDE_VERTICES as Vertex).map(|v| [0, v]).collect();
        let graph = EdgeList::new(WIDE_VERTICES, hub, Listing::Once).unwrap();
        let options = BuildOptions { order: Order::Original, keep_leaves: true, ..BuildOptions::default() };
        let layout = Layout::build(&graph, &options).unwrap();
        for threads in [1, 2] {
            let mut cpu = engine(&layout, threads, Simd::detect());
            let Ok(_) = cpu.begin(&[0]);
            let edges = cpu.stats().frontier_edges;
            assert!(cpu.level_is_wide(1, edges));
            let work = cpu.top_down_part(1, edges);
            assert_eq!(work.found, WIDE_VERTICES as u64 - 1);
            assert!(matches!(cpu.state.frontier, Frontier::Queue { .. }), "{:?}", cpu.state.frontier);
        }
    }

    #[test]
    fn small_graphs_and_those_in_the_order_of_degrees_have_no_notes() {
        let notes = |vertices: usize, order| {
            // A ring with chords: no vertex is left out.
            let n = vertices as Vertex;
            let arcs = (0..n).flat_map(|v| [1, 7, 1000, 5000, 9000, 30_000].map(|chord| [v, (v + chord) % n])).collect();
            let graph = EdgeList::new(vertices, arcs, Listing::Once).unwrap();
            notes(&Layout::build(&graph, &BuildOptions { order, ..BuildOptions::default() }).unwrap()).unwrap().len()
        };
        assert_eq!(notes(WIDE_VERTICES / 2, Order::Original), 0);
        assert_eq!(notes(WIDE_VERTICES, Order::Degree), 0);
        assert!(notes(WIDE_VERTICES, Order::Original) >= WIDE_VERTICES);
    }
}
