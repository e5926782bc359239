//! The breadth-first order, in which neighbours have near numbers, and the choice between it and the order by degree.
//!
//! A breadth-first search from a vertex of highest degree numbers each component, the neighbours of a vertex by descending degree (in a
//! directed graph those to which its arcs lead before the others). The lists are sorted by degree already, so the time is linear in the
//! arcs. (Cuthill and McKee 1969 begin at a vertex of least degree, and go by ascending degree; the order is often reversed.)

use rayon::prelude::*;

use super::{Csr, GraphError, NONE, Stopper, Vertex, accumulate};
use crate::memory::{Shared, Slab};

/// Vertices of which two neighbours are tested by [`has_communities`].
const SAMPLED: usize = 1024;
/// Share of neighbours that are each other's neighbours from which a graph has communities. Measured: 0.30 to 0.72 in facebook_combined,
/// ego-Twitter, cnr-2000, email-Enron and dblp-2010, above 0.2 in bips98_606, below 0.08 in wiki-Vote, soc-Slashdot0902, p2p-Gnutella31
/// and Kronecker 16 to 20.
const CLOSED: f64 = 0.2;
/// Vertices between two looks at the stopper.
const CHECKED: usize = 64 << 10;
/// Rows that a thread renumbers at a time.
const ROWS: usize = 1024;

/// Whether neighbours of a vertex are often neighbours of each other. Two neighbours of each sampled vertex are tested, that of least
/// degree and that of median degree: hubs are neighbours of most vertices in any graph.
///
/// The first `rows` lists must be sorted by descending degree, which must be the order of the rows, and hold no other rows.
pub(super) fn has_communities(lists: &Csr, rows: usize) -> bool {
    let (mut tested, mut closed) = (0, 0);
    let mut place = 0u64;
    for _ in 0..SAMPLED.min(rows) {
        // Multiples of the golden ratio are spread evenly.
        place = place.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let sampled = ((u128::from(place) * rows as u128) >> 64) as usize;
        if let [others @ .., least] = lists.neighbours(sampled as Vertex) {
            if let Some(median) = others.get(others.len() / 2) {
                tested += 1;
                let leads = |from: Vertex, to: Vertex| lists.neighbours(from).binary_search(&to).is_ok();
                closed += u32::from(leads(*least, *median) || leads(*median, *least));
            }
        }
    }
    f64::from(closed) > CLOSED * f64::from(tested)
}

/// Other numbers for the first rows of a layout.
pub(super) struct Renumbering {
    /// New row to old row.
    old: Slab<Vertex>,
    /// Old row to new row.
    new: Slab<Vertex>,
}

impl Renumbering {
    /// The breadth-first order of the first `rows` rows of `lists`, in a directed graph those of both directions. Rows and lists must be as
    /// in [`has_communities`].
    pub(super) fn breadth_first(lists: [Option<&Csr>; 2], rows: usize, stopper: &Stopper) -> Result<Self, GraphError> {
        let mut old: Slab<Vertex> = Slab::zeroed(rows, "vertex order")?;
        let mut new: Slab<Vertex> = Slab::zeroed(rows, "vertex order")?;
        new.fill(NONE);
        // `old[at..len]` is the queue of the search.
        let (mut at, mut len) = (0, 0);
        for start in 0..rows as Vertex {
            let mut enter = |v: Vertex, old: &mut [Vertex]| {
                if new[v as usize] == NONE {
                    new[v as usize] = len as Vertex;
                    old[len] = v;
                    len += 1;
                }
                len
            };
            let mut end = enter(start, &mut old);
            while at < end {
                if at % CHECKED == 0 {
                    stopper.check()?;
                }
                let u = old[at];
                at += 1;
                for lists in lists.into_iter().flatten() {
                    for &v in lists.neighbours(u) {
                        end = enter(v, &mut old);
                    }
                }
            }
        }
        Ok(Self { old, new })
    }

    /// `lists` under the new numbers. Neighbours keep their places in the lists, so these stay sorted by degree.
    pub(super) fn lists(&self, lists: &Csr) -> Result<Csr, GraphError> {
        let row = |new: usize| self.old.get(new).copied().unwrap_or(new as Vertex);
        let mut offsets: Slab<u32> = Slab::zeroed(lists.offsets.len(), "adjacency offsets")?;
        offsets[1..].par_iter_mut().enumerate().with_min_len(ROWS).for_each(|(new, entries)| *entries = lists.degree(row(new)));
        accumulate(&mut offsets);
        let mut targets: Slab<Vertex> = Slab::zeroed(lists.arcs(), "adjacency")?;
        let out = Shared::new(&mut targets);
        (0..lists.vertices()).into_par_iter().with_min_len(ROWS).for_each(|new| {
            let range = offsets[new] as usize..offsets[new + 1] as usize;
            // SAFETY: the ranges of different rows are disjoint, and the last one ends with the targets, since every row is counted once.
            let list = unsafe { std::slice::from_raw_parts_mut(out.get().add(range.start), range.len()) };
            for (target, &old) in list.iter_mut().zip(lists.neighbours(row(new))) {
                *target = self.new.get(old as usize).copied().unwrap_or(old);
            }
        });
        Ok(Csr { offsets, targets })
    }

    /// Enters the new numbers into `to_original`, row to original number, and `to_internal`, the reverse.
    pub(super) fn rename(&self, to_original: &mut [Vertex], to_internal: &mut [Vertex]) -> Result<(), GraphError> {
        let rows = &mut to_original[..self.old.len()];
        let before = Slab::copy_of(rows, "vertex order")?;
        rows.par_iter_mut().zip(&self.old[..]).with_min_len(ROWS).for_each(|(original, &old)| *original = before[old as usize]);
        to_internal.par_iter_mut().with_min_len(ROWS).for_each(|row| *row = self.new.get(*row as usize).copied().unwrap_or(*row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::{BuildOptions, EdgeList, Layout, Listing, Order};

    fn layout(n: u32, edges: Vec<[u32; 2]>, order: Order, directed: bool) -> Layout {
        let edges = EdgeList::new(n as usize, edges, Listing::Once).unwrap();
        Layout::build(&edges, &BuildOptions { order, directed, keep_leaves: true, ..BuildOptions::default() }).unwrap()
    }

    #[test]
    fn hubs_come_before_their_neighbours_and_these_by_degree() {
        // A tree, and a smaller one.
        let trees = vec![[5, 0], [5, 1], [5, 2], [5, 7], [1, 3], [1, 4], [2, 6], [9, 8], [8, 10]];
        let both = layout(11, trees, Order::Bfs, false);
        assert_eq!(both.original_numbers(), [5, 1, 2, 0, 7, 3, 4, 6, 8, 9, 10]);
        // Successors come before predecessors.
        let arcs = layout(5, vec![[0, 1], [2, 0], [0, 3], [4, 0]], Order::Bfs, true);
        assert_eq!(arcs.original_numbers(), [0, 1, 3, 2, 4]);
    }

    #[test]
    fn the_automatic_order_depends_on_skew_and_communities() {
        let n = 20_001;
        let mut x = 1u64;
        let mut next = |bound: u32| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) as u32 % bound
        };
        // A hub of all vertices, and one of few: skews of 200 and 2.
        for step in [1, 17] {
            let hub = |v: u32| [n - 1, v * step];
            // Groups of ten neighbours that lie apart.
            let member = |group: u32, place: u32| place * (n / 10) + group;
            let inside = |group| (0..10).flat_map(move |a| (0..a).map(move |b| [member(group, a), member(group, b)]));
            let communities = layout(n, (0..n / 10).flat_map(inside).chain((0..n / step).map(hub)).collect(), Order::Auto, false);
            let without = layout(n, (0..90_000).map(|_| [next(n), next(n)]).chain((0..n / step).map(hub)).collect(), Order::Auto, false);
            assert_eq!((communities.order(), without.order()), (Order::Bfs, Order::Degree), "every {step}-th: {}", without.stats().skew);
            assert_eq!(communities.stats().skew > 3.0, step == 1);
        }
        let sparse = layout(n, (0..n).map(|_| [next(n), next(n)]).collect(), Order::Auto, false);
        assert!(sparse.order() == Order::Original && sparse.stats().skew > 1.25, "{}", sparse.stats().skew);
    }
}
