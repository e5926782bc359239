//! Exact counts of the levels of one search.

use crate::record::ExactLevel;
use rayon::prelude::*;

use socbfs::{Layout, NONE, Run, Search, SearchError, Vertex, graph::Place};

/// With more levels than this, one thread counts them all, since every thread has its own counters for each level.
const MOST_LEVELS_SHARED: usize = 1 << 16;

/// The level of every vertex of the searched structure, from a root or a set of sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    /// The root or the first source, as an original number ([`NONE`]: there is none).
    pub root: Vertex,
    /// Number of the last level, D; 0 where the sources reach nothing.
    pub last: u32,
    /// Level of each internal vertex; [`NONE`] where not reached. A source that is not searched has no entry (it has no edge, or is a leaf
    /// that the layout leaves out). If all that have an edge are such leaves, levels count from their neighbours.
    pub of: Vec<u32>,
}

impl Levels {
    /// Searches from `root` (an original number) and returns the level of every vertex.
    ///
    /// # Errors
    /// As [`Search::run`].
    pub fn search(search: &mut Search<'_>, root: Vertex) -> Result<Self, SearchError> {
        search.run(Run { uncounted: true, ..root.into() })?;
        Ok(Self::of_last(search, &[root]))
    }

    /// The levels of the last search of `search`, which was from `sources`.
    pub fn of_last(search: &Search<'_>, sources: &[Vertex]) -> Self {
        let layout = search.layout();
        let mut original = vec![NONE; layout.vertices()];
        search.levels_into(&mut original);
        let any = |is: fn(Place) -> bool| sources.iter().any(|&source| is(layout.place(source)));
        let above = u32::from(any(|place| matches!(place, Place::LeafOf(_))) && !any(|place| matches!(place, Place::Searched(_))));
        let of_original = |v: Vertex| match original[layout.to_original(v) as usize] {
            NONE => NONE,
            level => level - above,
        };
        let of: Vec<u32> = (0..layout.csr().vertices() as Vertex).into_par_iter().map(of_original).collect();
        let last = of.par_iter().copied().filter(|&level| level != NONE).max().unwrap_or(0);
        Self { root: sources.first().copied().unwrap_or(NONE), last, of }
    }

    /// Vertices reached, the root included.
    pub fn reached(&self) -> u64 {
        (self.of.par_iter().filter(|&&level| level != NONE).count() as u64).max(1)
    }

    /// The vertices of level `level` as internal numbers, in ascending order.
    pub fn frontier(&self, level: u32) -> Vec<Vertex> {
        (0..self.of.len() as Vertex).into_par_iter().filter(|&v| self.of[v as usize] == level).collect()
    }
}

/// Counts of one level by one thread.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    vertices: u64,
    arcs: u64,
    /// Arcs to the next level, and arcs to levels up to this one.
    forward: u64,
    backward: u64,
    /// Over the vertices of this level that have incoming arcs: positions of the first neighbour on the level before; the vertices; their
    /// arcs.
    places: u64,
    lookers: u64,
    incoming: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.vertices += other.vertices;
        self.arcs += other.arcs;
        self.forward += other.forward;
        self.backward += other.backward;
        self.places += other.places;
        self.lookers += other.lookers;
        self.incoming += other.incoming;
    }
}

/// Counts every level of a search in one pass over the arcs, on the current rayon pool. A vertex of level L finds no neighbour in F_t
/// before t = L - 1 (else it would be on level t + 1), so bottom-up steps before that look at all of its incoming arcs.
pub fn count(layout: &Layout, levels: &Levels) -> Vec<ExactLevel> {
    let (csr, incoming) = (layout.csr(), layout.incoming());
    let depth = levels.last as usize + 1;
    let threads = if depth > MOST_LEVELS_SHARED { 1 } else { rayon::current_num_threads() };
    let piece = levels.of.len().div_ceil(threads.max(1)).max(1);
    let mut all = levels
        .of
        .par_chunks(piece)
        .enumerate()
        .map(|(index, own)| {
            // The entry after the last level counts the vertices that are never reached.
            let mut counts = vec![Counts::default(); depth + 1];
            for (place, &level) in own.iter().enumerate() {
                let v = (index * piece + place) as Vertex;
                let into = u64::from(incoming.degree(v));
                let Some(reached) = (level != NONE).then_some(level as usize) else {
                    counts[depth].lookers += u64::from(into > 0);
                    counts[depth].incoming += into;
                    continue;
                };
                let count = &mut counts[reached];
                count.vertices += 1;
                count.arcs += u64::from(csr.degree(v));
                for &w in csr.neighbours(v) {
                    let ahead = levels.of[w as usize] == level + 1;
                    count.forward += u64::from(ahead);
                    count.backward += u64::from(!ahead);
                }
                count.lookers += u64::from(into > 0);
                count.incoming += into;
                if let Some(above) = level.checked_sub(1) {
                    let first = incoming.neighbours(v).iter().position(|&w| levels.of[w as usize] == above);
                    count.places += first.map_or(into, |place| place as u64 + 1);
                }
            }
            counts
        })
        .reduce(
            || vec![Counts::default(); depth + 1],
            |mut sum, other| {
                sum.iter_mut().zip(&other).for_each(|(sum, other)| sum.add(other));
                sum
            },
        );
    // A root without edges is not in the searched structure.
    all[0].vertices = all[0].vertices.max(1);
    let mut found = vec![ExactLevel::default(); depth];
    let mut rest = all[depth];
    for level in (0..depth).rev() {
        let next = if level + 1 < depth { all[level + 1] } else { Counts::default() };
        let own = all[level];
        // At this level, the vertices of the next level find a neighbour; those of later levels and the unreached ones find none.
        found[level] = ExactLevel {
            level: level as u32,
            vertices: own.vertices,
            arcs: own.arcs,
            discovering: next.vertices,
            repeat: own.forward.saturating_sub(next.vertices),
            backward: own.backward,
            probes: next.places + rest.incoming,
            unvisited_vertices: rest.lookers + next.lookers,
            unvisited_arcs: rest.incoming + next.incoming,
        };
        if level + 1 < depth {
            // At the levels before this one, the vertices of the next level find no neighbour either.
            rest.lookers += next.lookers;
            rest.incoming += next.incoming;
        }
    }
    found
}

/// As [`count`], but with the unvisited vertices and arcs that policies count: all vertices with an arc, and the arcs that leave them. In
/// an undirected graph both counts are the same.
pub fn count_as_policies(layout: &Layout, levels: &Levels) -> Vec<ExactLevel> {
    let mut found = count(layout, levels);
    if !layout.directed() {
        return found;
    }
    let (csr, incoming) = (layout.csr(), layout.incoming());
    let is_searched = |v: Vertex| csr.degree(v) > 0 || incoming.degree(v) > 0;
    let sources = levels.of.par_iter().enumerate().filter(|&(v, &level)| level == 0 && is_searched(v as Vertex)).count() as u64;
    let mut vertices = (0..csr.vertices() as Vertex).into_par_iter().filter(|&v| is_searched(v)).count() as u64;
    let mut arcs = csr.arcs() as u64;
    for level in &mut found {
        // Every vertex but a source has an incoming arc, over which it was found.
        let own = if level.level == 0 { sources } else { level.vertices };
        vertices = vertices.saturating_sub(own);
        arcs = arcs.saturating_sub(level.arcs);
        (level.unvisited_vertices, level.unvisited_arcs) = (vertices, arcs);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::{
        graph::{BuildOptions, EdgeList, Listing, Order},
        search::SearchOptions,
    };

    #[test]
    fn unvisited_vertices_of_a_directed_graph_are_those_that_policies_count() {
        // From 0 a search finds 1 and 2. Arcs lead from 3, which it does not find, to 0 and 4; 5 has no arc.
        let edges = EdgeList::new(6, vec![[0, 1], [1, 2], [3, 0], [3, 4]], Listing::Unknown).unwrap();
        for order in [Order::Original, Order::Degree] {
            let layout = Layout::build(&edges, &BuildOptions { directed: true, order, ..BuildOptions::default() }).unwrap();
            let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
            search.set_single_levels(true);
            let levels = Levels::search(&mut search, 0).unwrap();
            let unvisited = |found: &[ExactLevel]| -> Vec<[u64; 2]> {
                found.iter().map(|level| [level.unvisited_vertices, level.unvisited_arcs]).collect()
            };
            let found = count_as_policies(&layout, &levels);
            assert_eq!(unvisited(&found), [[4, 3], [3, 2], [2, 2]]);
            for record in search.records() {
                let (stats, exact) = (&record.stats, &found[record.stats.level as usize]);
                assert_eq!((stats.unvisited_vertices, stats.unvisited_edges), (exact.unvisited_vertices, exact.unvisited_arcs));
            }
            // Vertices with an incoming arc, and the arcs into them.
            assert_eq!(unvisited(&count(&layout, &levels)), [[3, 3], [2, 2], [1, 1]]);
        }
    }
}
