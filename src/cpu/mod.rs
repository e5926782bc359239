//! The CPU engine: TC and BC on a team of threads. `run` runs one level, with the kernels in `top_down` and `bottom_up`.

mod bottom_up;
mod convert;
mod distances;
mod estimate;
mod leaves;
mod run;
mod simd;
mod sources;
mod split;
mod top_down;
mod tuning;
mod wide;

use std::{convert::Infallible, time::Instant};

pub use self::{
    bottom_up::{BottomUp, FoundCounts},
    distances::SPREAD,
    simd::SimdKernels,
    split::thousandths,
    top_down::expand_rows,
};
pub use simd::{Simd, SimdError};
pub use tuning::ParallelThresholds;

use self::tuning::{CUT_VERTICES, HUB_WORDS, MIXED_WORDS, RESET, SHARED_RESET, SHARED_ROW_RESET, SOON};
use self::{distances::Distances, sources::LeafSources, top_down::CHUNK};
use crate::{
    bfs::{Direction, Engine, LevelPlan, LevelStats, LevelWork},
    engine::{Frontier, SearchState},
    graph::{Layout, Lists, NONE, Place, Vertex},
    memory::{OutOfMemory, Shared, Slab, prefetch},
    threads::{Team, share},
};

/// Runs levels on a team of CPU threads. Holds the memory and counters of one search at a time.
#[derive(Debug)]
pub struct CpuEngine<'g> {
    layout: &'g Layout,
    team: Team,
    simd: Simd,
    kernels: SimdKernels,
    state: SearchState,
    /// Bits of padding and of vertices without an edge.
    excluded: Slab<u64>,
    excluded_count: u64,
    /// A filter for each thread, if there are several: the vertices that it has met in top-down levels (see `top_down`). A word at the end
    /// has the number of the search for which the others hold.
    filters: Vec<Slab<u64>>,
    /// Chunks of vertices that threads met in a top-down level, and the partition and the number of entries of each (see `top_down`).
    met: Slab<[Vertex; 2]>,
    chunks: Slab<[u32; 2]>,
    /// The number of the search. It changes too when another engine may have removed vertices from those that are visited.
    search: u64,
    /// Prefix sums over a small frontier that threads share (see `top_down::starts`).
    starts: Vec<u64>,
    /// For each vertex, the position in the frontier from which a `wide` level met it.
    notes: Slab<u16>,
    /// A buffer for each thread: vertices that found no frontier neighbour in the columns.
    remaining: Vec<Slab<Vertex>>,
    /// Mean degree of the vertices of each bitmap word in a layout that is mapped or has blocks (else empty). It is exact for most words of
    /// an order by degree, and for words whose vertices are found together.
    degrees: Slab<u32>,
    /// Bitmap words, except the first, whose vertices differ in degree (`None`: too many to check after a level).
    mixed: Option<Vec<u32>>,
    /// The first words of the visited bitmap (at most [`HUB_WORDS`]; none if hubs do not come first) as of the last count of the frontier's
    /// arcs.
    hubs: Vec<u64>,
    /// The amounts of work from which threads share a level.
    parallel: ParallelThresholds,
    /// Whether each small level runs by itself, so that it gets its own record.
    pub(super) single_levels: bool,
    /// A bit for each vertex whose leaves have no parent in `state.parent` now (empty: the layout leaves no leaf out).
    absent: Slab<u64>,
    /// Whether `state.parent` holds the parents of the other leaves, behind those of searched vertices.
    leaves_are_entered: bool,
    leaf_sources: LeafSources,
    /// Whether a vertex of the last frontier has a left-out leaf; `None`: unknown.
    leaf_is_deepest: Option<bool>,
    /// Whether all levels run on this engine, so that the number of visited vertices is exact.
    pub(super) counts_alone: bool,
    /// Whether the frontier is all that the visited bitmap lacks.
    lacks_frontier: bool,
    /// Levels of the vertices, recorded if the caller wants them.
    distances: Distances,
    /// A number for each place of the layout, of the length of `state.parent`. Allocated when labels are first asked for.
    table: Slab<Vertex>,
    /// When the last search began, if there are threads to wake.
    begun: Option<Instant>,
}

impl<'g> CpuEngine<'g> {
    /// Allocates what a search over `layout` needs beside its `state`.
    ///
    /// # Errors
    /// [`OutOfMemory`], or [`SimdError`] if `simd` is not available here.
    pub(super) fn new(
        layout: &'g Layout,
        team: Team,
        parallel: ParallelThresholds,
        simd: Simd,
        state: SearchState,
    ) -> Result<Self, CpuEngineError> {
        let kernels = simd.kernels()?;
        let (vertices, padded) = (layout.csr().vertices(), layout.padded());
        let words = padded / 64;
        let mut excluded: Slab<u64> = Slab::zeroed(words, "bitmaps")?;
        for v in 0..padded {
            if v >= vertices || (layout.csr().degree(v as Vertex) == 0 && layout.incoming().degree(v as Vertex) == 0) {
                excluded[v / 64] |= 1 << (v % 64);
            }
        }
        let remaining = (0..team.size()).map(|_| Slab::zeroed(parallel.words() * 64, "per-thread buffers")).collect::<Result<_, _>>()?;
        let shares = if team.size() == 1 { 0 } else { team.size() };
        // A level meets at most as many vertices as there are arcs, and each thread a vertex once. Each thread may leave a chunk of each
        // partition that is not full.
        let most = vertices.saturating_mul(shares).min(layout.csr().arcs());
        let chunks = most.div_ceil(CHUNK) + shares * top_down::partitions(shares).0;
        let filters = (0..shares).map(|_| Slab::zeroed(words + 1, "bitmaps")).collect::<Result<_, _>>()?;
        // A queue made from blocks is not in the order of degrees, so a sample of its vertices would see too few of high degree.
        let has_means = layout.is_mapped() || matches!(layout.lists(), Lists::Blocks(_));
        // In the order of the input a vertex of very high degree has others beside it, whose level is not its own.
        let heaviest = if layout.is_mapped() { u64::MAX } else { 64 * (layout.csr().arcs() / vertices.max(1)) as u64 };
        let mut degrees = Slab::zeroed(if has_means { words } else { 0 }, "bitmaps")?;
        for (word, mean) in degrees.iter_mut().enumerate() {
            let range = word * 64..(word * 64 + 64).min(vertices);
            let arcs: u64 = range.clone().map(|v| u64::from(layout.csr().degree(v as Vertex))).filter(|&degree| degree <= heaviest).sum();
            *mean = (arcs as f64 / range.len().max(1) as f64).round() as u32;
        }
        Ok(Self {
            layout,
            simd,
            kernels,
            state,
            excluded_count: excluded.iter().map(|word| u64::from(word.count_ones())).sum(),
            excluded,
            filters,
            met: Slab::zeroed(chunks * CHUNK, "frontier queue")?,
            chunks: Slab::zeroed(chunks, "frontier queue")?,
            search: 0,
            remaining,
            starts: vec![0; if team.size() == 1 { 0 } else { CUT_VERTICES + 1 }],
            notes: wide::notes(layout)?,
            mixed: mixed_words(layout, &degrees),
            degrees,
            hubs: vec![0; if layout.is_by_degree() { words.min(HUB_WORDS) } else { 0 }],
            parallel,
            single_levels: false,
            absent: Slab::zeroed(layout.leaves().bits().len(), "bitmaps")?,
            leaves_are_entered: false,
            leaf_sources: LeafSources::new(layout)?,
            leaf_is_deepest: None,
            counts_alone: true,
            lacks_frontier: false,
            distances: Distances::new(layout)?,
            table: Slab::default(),
            begun: None,
            team,
        })
    }

    /// The threads.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// Vector instructions in use.
    pub fn simd(&self) -> Simd {
        self.simd
    }

    /// Parents by original vertex, after [`CpuEngine::map_back`].
    pub fn parents(&self) -> &[Vertex] {
        if self.layout.internal_places().is_empty() { &self.state.parent[..self.layout.vertices()] } else { &self.state.mapped }
    }

    /// Begins and ends a search that reaches no searched vertex.
    pub fn begin_dropped(&mut self) {
        self.note_leaf_sources(&[]);
        self.state.parent[..self.layout.padded()].fill(NONE);
        self.state.restart();
        self.state.frontier = Frontier::Queue { len: 0 };
        self.begin_distances();
    }

    /// Sets the parent of a vertex that is not searched, after [`CpuEngine::map_back`]; both are original numbers.
    pub fn enter_parent(&mut self, vertex: Vertex, parent: Vertex) {
        if let Some(entry) = self.state.mapped.get_mut(vertex as usize) {
            *entry = parent;
        }
    }

    /// Number of vertices that take part in a search: all that have a successor or a predecessor.
    pub(super) fn searched(&self) -> u64 {
        self.layout.padded() as u64 - self.excluded_count
    }

    /// The frontier if it is a queue; else an empty slice.
    pub(super) fn frontier_queue(&self) -> &[Vertex] {
        let Frontier::Queue { len } = self.state.frontier else { return &[] };
        &self.state.queue[..len]
    }

    /// The state, for the engines that share it.
    pub(super) fn state(&mut self) -> &mut SearchState {
        &mut self.state
    }

    /// The state, read-only.
    pub(super) fn state_ref(&self) -> &SearchState {
        &self.state
    }

    /// Bits of padding and of vertices without an edge.
    pub(super) fn excluded(&self) -> &[u64] {
        &self.excluded
    }
}

impl Engine for CpuEngine<'_> {
    type Error = Infallible;

    fn begin(&mut self, sources: &[Vertex]) -> Result<u64, Infallible> {
        if let Some(Place::Searched(root) | Place::LeafOf(root)) = sources.first().map(|&source| self.layout.place(source)) {
            // These offsets are read right after the parents are reset.
            prefetch(&raw const self.layout.csr().offsets[root as usize]);
        }
        let padded = self.layout.padded();
        // In graphs with rows, threads share hardly any level.
        if self.team.size() > 1 && self.layout.rows().is_empty() {
            let now = Instant::now();
            if self.begun.replace(now).is_some_and(|before| now.duration_since(before) < SOON) {
                self.team.wake();
            }
        }
        let parent = Shared::new(&mut self.state.parent);
        let part = if self.team.sleeps() { 1 } else { 8 };
        let shared = if self.layout.rows().is_empty() { SHARED_RESET / part } else { SHARED_ROW_RESET };
        share(&self.team, padded, RESET, padded < shared, &|_, range| {
            // SAFETY: ranges are handed out once and lie inside the slab.
            unsafe { std::slice::from_raw_parts_mut(parent.get().add(range.start), range.len()) }.fill(NONE);
        });
        self.state.restart();
        self.enter_sources(sources);
        self.leaf_is_deepest = None;
        self.search += 1;
        self.lacks_frontier = self.layout.rows().is_empty();
        if self.layout.rows().is_empty() {
            self.state.visited[self.state.current][..self.excluded.len()].copy_from_slice(&self.excluded);
            self.state.bitmap_is_of_search = true;
        }
        let hubs = self.hubs.len();
        self.hubs.copy_from_slice(&self.excluded[..hubs]);
        self.begin_distances();
        Ok(0)
    }

    fn stats(&mut self) -> LevelStats {
        let edges = match self.state.counted_edges {
            Some(edges) => edges,
            None => self.count_frontier_edges().min(self.layout.csr().arcs() as u64),
        };
        self.state.edges_are_estimated = match self.state.counted_edges {
            Some(_) => self.state.counted_are_estimated,
            None => !self.counts_frontier(),
        };
        self.state.stats(edges, self.searched(), self.layout)
    }

    fn sample(&mut self) -> Result<Option<f32>, Infallible> {
        Ok(self.sampled_probes())
    }

    fn sample_hubs(&mut self) -> Result<Option<f32>, Infallible> {
        Ok(self.sampled_hubs())
    }

    fn run(&mut self, plan: LevelPlan) -> Result<LevelWork, Infallible> {
        let mut work = match plan.direction {
            Direction::TopDown => self.run_top_down(),
            Direction::BottomUp => self.run_bottom_up(),
        };
        self.state.done(plan, &work);
        self.note_frontier();
        self.join_hosts(&mut work);
        Ok(work)
    }
}

/// The words, except the first, that hold a vertex whose degree is not the mean in `degrees`; `None`: more than [`MIXED_WORDS`].
fn mixed_words(layout: &Layout, degrees: &[u32]) -> Option<Vec<u32>> {
    let csr = layout.csr();
    let differs = |word: &usize| (64 * word..csr.vertices().min(64 * (word + 1))).any(|v| csr.degree(v as Vertex) != degrees[*word]);
    let words: Vec<u32> = (1..degrees.len()).filter(differs).take(MIXED_WORDS + 1).map(|word| word as u32).collect();
    (words.len() <= MIXED_WORDS).then_some(words)
}

/// A reason why the CPU engine can't be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CpuEngineError {
    /// Memory could not be allocated.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The vector instructions are not available.
    #[error(transparent)]
    Simd(#[from] SimdError),
    /// Threads could not be started.
    #[error("{0}")]
    Threads(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::OnHost;

    /// An engine with a state of its own.
    pub(super) fn engine(layout: &Layout, threads: usize, simd: Simd) -> CpuEngine<'_> {
        let state = SearchState::new(layout, &OnHost, true).unwrap();
        CpuEngine::new(layout, Team::new(threads, &[]).unwrap(), ParallelThresholds::default(), simd, state).unwrap()
    }
}
