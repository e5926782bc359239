//! Estimates of the cost of a level before it runs: arcs that leave the frontier, and the result of a sample of vertices.

use super::{
    CpuEngine,
    simd::Visited,
    tuning::{COUNTED, DEGREES_SAMPLED, HUB_WORDS, MOST_SAMPLED, MOST_STEP, PLACES_TRIED, PROBES, PROBES_SAMPLED, VERTICES_SAMPLED},
};
use crate::{
    engine::Frontier,
    graph::{NONE, Vertex},
    memory::{Shared, prefetch},
};

impl CpuEngine<'_> {
    /// Whether the frontier is a queue so short that its arcs are counted exactly.
    pub(super) fn counts_frontier(&self) -> bool {
        matches!(self.state.frontier, Frontier::Queue { len, .. } if len <= COUNTED)
    }

    /// The number of arcs that leave the frontier: exact for a queue of up to [`COUNTED`] vertices; above, all hubs are counted, if they
    /// come first, and the others are estimated from a sample. (A sample alone is worth little if a few vertices have most arcs.)
    pub(super) fn count_frontier_edges(&mut self) -> u64 {
        if self.counts_frontier() {
            return self.count_queue_edges();
        }
        let (mut hub_edges, mut hubs) = (0, 0);
        let visited = self.visited_hubs();
        for (word, &visited) in visited.iter().enumerate().take(self.hubs.len()) {
            // Hubs visited since the previous frontier was counted are in this frontier.
            let new = visited & !self.hubs[word];
            hub_edges += self.edges_of(word, new);
            hubs += u64::from(new.count_ones());
            self.hubs[word] = visited;
        }
        let others = self.state.frontier.len().saturating_sub(hubs);
        let first = (self.hubs.len() * 64) as Vertex;
        let (mut sum, mut count) = (0, 0);
        self.look_at_frontier(self.hubs.len(), |v, weight| {
            // No branch: the processor can't predict which vertices are hubs.
            let weight = weight * u64::from(v >= first);
            sum += weight * self.degree_like(v);
            count += weight;
        });
        hub_edges + if count == 0 { others } else { (sum as f64 * others as f64 / count as f64) as u64 }
    }

    /// Calls `look` with about [`DEGREES_SAMPLED`] vertices of the frontier, spread evenly, and the number of vertices that each
    /// represents. Of a long queue, one in [`MOST_STEP`] is taken, and hardly more than [`MOST_SAMPLED`]. In a bitmap, the sample begins at
    /// word `first`, and a vertex represents its word, whose mean degree is known.
    #[inline(always)]
    fn look_at_frontier(&self, first: usize, mut look: impl FnMut(Vertex, u64)) {
        let state = &self.state;
        match state.frontier {
            Frontier::Queue { len, .. } => {
                let step = len.div_ceil(DEGREES_SAMPLED).clamp(1, MOST_STEP.max(len / MOST_SAMPLED));
                // Lists begin with the highest degrees.
                self.frontier_queue().iter().skip(step / 2).step_by(step).for_each(|&v| look(v, 1));
            }
            Frontier::Bitmap { .. } | Frontier::Mask { .. } => {
                let (now, before) = (&state.visited[state.current], &state.visited[1 - state.current]);
                let words = first..self.excluded.len();
                let stride = (words.len() / DEGREES_SAMPLED).max(1);
                for word in words.step_by(stride) {
                    let bits = now[word] & !before[word];
                    if bits != 0 {
                        look((word * 64) as Vertex + bits.trailing_zeros(), bits.count_ones().into());
                    }
                }
            }
        }
    }

    /// The mean degree of the vertices in the word of `v`, if it is known; else the degree of `v`. (The mean is as good, and nearer in
    /// memory.)
    fn degree_like(&self, v: Vertex) -> u64 {
        u64::from(self.degrees.get(v as usize / 64).copied().unwrap_or_else(|| self.layout.csr().degree(v)))
    }

    /// The arcs of the vertices `bits` of `word`, in a layout that is mapped: exact in the first word, whose degrees differ most in an
    /// order by degree, and from the mean degree elsewhere.
    pub(super) fn edges_of(&self, word: usize, mut bits: u64) -> u64 {
        if word > 0 {
            return u64::from(bits.count_ones()) * u64::from(self.degrees[word]);
        }
        let mut edges = 0;
        while bits != 0 {
            edges += u64::from(self.layout.csr().degree(bits.trailing_zeros()));
            bits &= bits - 1;
        }
        edges
    }

    /// Counts the arcs that leave the frontier if it is a queue (else 0), and marks its vertices in [`hubs`](Self::hubs).
    pub(super) fn count_queue_edges(&mut self) -> u64 {
        let mut sum = 0;
        let Frontier::Queue { len } = self.state.frontier else { return 0 };
        for &u in &self.state.queue[..len] {
            sum += u64::from(self.layout.csr().degree(u));
            if let Some(word) = self.hubs.get_mut(u as usize / 64) {
                *word |= 1 << (u % 64);
            }
        }
        sum
    }

    /// The first words of the visited bitmap, as many as there are [`hubs`](Self::hubs), computed from the parents.
    fn visited_hubs(&self) -> [u64; HUB_WORDS] {
        let mut words = [0; HUB_WORDS];
        let work = Visited { parent: &self.state.parent, excluded: &self.excluded, words: Shared::new(&mut words) };
        // SAFETY: parents and `excluded` cover all words, of which there are at least as many as of hubs; `words` has room for these and no
        // other thread uses it; the kernel was chosen for this CPU.
        unsafe { (self.kernels.visited)(&work, 0..self.hubs.len()) };
        words
    }

    /// Adapts what this engine remembers of the search to a state that another engine has changed.
    pub(crate) fn state_was_changed(&mut self) {
        let (visited, hubs) = (self.visited_hubs(), self.hubs.len());
        self.hubs.copy_from_slice(&visited[..hubs]);
        self.search += 1;
    }

    /// Mean number of neighbours that an unvisited vertex tests before it finds one in the frontier, from a sample; `None` if the sample
    /// has no unvisited vertex.
    pub(super) fn sampled_probes(&self) -> Option<f32> {
        let vertices = self.layout.csr().vertices() as u64;
        let (lists, parent) = (self.layout.incoming(), &self.state.parent);
        let (mut sampled, mut probes) = (0, 0);
        // Multiples of the golden ratio are spread evenly, whatever the order of the vertices.
        let mut place = 0u64;
        let mut batch = [0; VERTICES_SAMPLED];
        // Nearly every access misses the caches, so each step runs for a whole batch, and prefetches what the next step needs.
        'places: for _ in 0..PLACES_TRIED / VERTICES_SAMPLED {
            for v in &mut batch {
                place = place.wrapping_add(0x9e37_79b9_7f4a_7c15);
                *v = ((u128::from(place) * u128::from(vertices)) >> 64) as Vertex;
                prefetch(&raw const parent[*v as usize]);
                prefetch(&raw const lists.offsets[*v as usize]);
            }
            let mut unvisited = 0;
            for i in 0..batch.len() {
                let v = batch[i];
                if parent[v as usize] == NONE && lists.degree(v) > 0 {
                    prefetch(&raw const lists.targets[lists.offsets[v as usize] as usize]);
                    batch[unvisited] = v;
                    unvisited += 1;
                }
            }
            for &v in &batch[..unvisited] {
                for &w in lists.neighbours(v).iter().take(2) {
                    prefetch(&raw const parent[w as usize]);
                }
            }
            for &v in &batch[..unvisited.min(VERTICES_SAMPLED - sampled)] {
                let list = lists.neighbours(v);
                // A visited neighbour of an unvisited vertex is in the frontier.
                let looked = list.iter().take(PROBES).position(|&w| parent[w as usize] != NONE);
                probes += looked.map_or(list.len().min(PROBES), |position| position + 1);
                sampled += 1;
                if probes >= PROBES_SAMPLED {
                    break 'places;
                }
            }
            // Half of a full sample is good enough: more would take another round of cache misses.
            if sampled >= VERTICES_SAMPLED / 2 {
                break;
            }
        }
        (sampled > 0).then(|| probes as f32 / sampled as f32)
    }

    /// Estimated share of the graph's hubs that the frontier holds; `None` in a graph without hubs.
    pub(super) fn sampled_hubs(&self) -> Option<f32> {
        let (csr, state) = (self.layout.csr(), &self.state);
        let (mut sum, mut count) = (0, 0);
        self.look_at_frontier(0, |v, weight| {
            sum += weight * u64::from(csr.degree(v) > state.hub_arcs);
            count += weight;
        });
        let in_frontier = state.frontier.len() as f64 * sum as f64 / count.max(1) as f64;
        (state.hubs > 0).then(|| (in_frontier / state.hubs as f64).min(1.0) as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bfs::Engine,
        cpu::{Simd, tests::engine},
        graph::{BuildOptions, EdgeList, Layout, Listing, Order},
    };

    #[test]
    fn a_sample_ends_after_enough_neighbours() {
        let n: Vertex = 1002;
        // A path whose first four sampled vertices have long lists, and an edge apart from it, where the search begins.
        let sampled = |i: u64| ((u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)) * u128::from(n)) >> 64) as Vertex;
        let long = (1..=4).flat_map(|i| (0..n - 2).step_by(7).map(move |v| [sampled(i), v]));
        let edges = long.chain((1..n - 2).map(|v| [v - 1, v])).chain([[n - 2, n - 1]]).collect();
        let edges = EdgeList::new(n as usize, edges, Listing::Unknown).unwrap();
        let layout = Layout::build(&edges, &BuildOptions { order: Order::Original, ..BuildOptions::default() }).unwrap();
        let mut cpu = engine(&layout, 1, Simd::Scalar);
        cpu.begin(&[n - 2]).unwrap();
        // None of the four finds a visited neighbour among those that are tested, and no other vertex is.
        assert_eq!(cpu.sampled_probes(), Some(PROBES as f32));
    }
}
