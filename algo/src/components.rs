//! Connected components, of a directed graph the weak ones, without a search: searches would need one level after another where a graph is
//! deep, and one search after another where it has many components.
//!
//! The vertices form trees, in which each points to a lesser one or is a root. At the end every component is a tree. As in Afforest
//! (Sutton, Ben-Nun and Barak 2018), trees join along a few edges of each vertex first, and the vertices of the largest tree look at no
//! others:
//! 1. Every vertex points to the least of its first neighbours (the rows of the layout, or two columns), if that is less. No pointer needs
//!    another one, and all point downwards, so nothing is synchronised. Of Kronecker 20, two trees are left.
//! 2. If no tree has nearly all vertices, rounds (`Joining::round`) join trees along the other first neighbours, without a branch that
//!    depends on the trees. (Roads of the north-east of the USA: 330,000 trees of 1.5 million vertices become 23,000, 1,700, 60 and 5.
//!    Walks up the trees for each edge, as in Afforest, take four times as long.)
//! 3. Vertices outside of the largest tree look at all their neighbours.
//!
//! "Less" is by number. In other orders than the original one hubs come early, so that trees grow towards them.
//!
//! Space, from the first call on: 20 bytes per vertex of the layout, 36 if it has rows.

use std::{
    ops::Range,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use socbfs::{
    EngineError, Layout, NONE, OutOfMemory, Search, SearchError, Team, Vertex,
    graph::ROW_CONTINUES,
    memory::{Shared, Slab, as_atomics},
    threads::{share, share_and_sum},
};

/// Vertices whose pairs and roots have a place together.
const BLOCK: usize = 4 << 10;
/// Blocks that a thread takes at a time, at most.
const BLOCKS: usize = 16;
/// Rounds end when this few pairs are left, or after [`ROUNDS`], and each pair is then joined by itself.
const FEW_PAIRS: u64 = 4 << 10;
/// See [`FEW_PAIRS`]. Eight leave no pair on any graph that was tried, but there are graphs that need many.
const ROUNDS: usize = 8;
/// Vertices sampled to find the largest tree.
const SAMPLED: usize = 256;
/// There are no rounds if the largest tree has at least this many of the sampled vertices.
const NEARLY_ALL: usize = SAMPLED - SAMPLED / 16;
/// Pairs for which there is room, for each vertex of a layout with rows (mean degree up to 4.5).
const PAIRS_OF_ROW: usize = 3;

/// Entries that a thread maps at a time, at most.
const MAPPED: usize = 64 << 10;
/// The fewest entries or vertices for which threads share the work.
const SHARED: usize = 16 << 10;

/// Finds the connected components of a graph; in a directed graph the weak ones, for which arcs count in both directions.
///
/// ```
/// # use socbfs::{BuildOptions, Layout, Search, SearchOptions, graph::{EdgeList, Listing}};
/// # use socbfs_algo::Components;
/// # let edges = EdgeList::new(6, vec![[4, 5], [0, 2], [2, 3]], Listing::Once)?;
/// # let layout = Layout::build(&edges, &BuildOptions::default())?;
/// # let search = Search::new(&layout, &SearchOptions::default())?;
/// // The path 0 - 2 - 3, the edge 4 - 5, and vertex 1 without an edge.
/// let mut labels = [0; 6];
/// assert_eq!(Components::default().find(&search, &mut labels)?, 3);
/// assert_eq!(labels, [0, 1, 0, 0, 2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Components {
    /// A number for each place of the layout: the trees.
    tree: Slab<Vertex>,
    /// Pairs of vertices to be joined: as much room for each block as for any other.
    pairs: Slab<[Vertex; 2]>,
    /// Roots in the same arrangement, and at last the number of each component.
    roots: Slab<Vertex>,
    /// The numbers of pairs and of roots of each block.
    counts: Slab<[u32; 2]>,
}

/// Pairs for which there is room, for each vertex.
fn pairs_of(layout: &Layout) -> usize {
    if layout.rows().is_empty() { 1 } else { PAIRS_OF_ROW }
}

impl Components {
    /// Makes room for a layout, unless it is there.
    fn fit(&mut self, layout: &Layout) -> Result<(), OutOfMemory> {
        let (vertices, leaves, what) = (layout.csr().vertices(), layout.leaves(), "components");
        let (tree, pairs) = (layout.first_leaf() + leaves.host_of().len(), vertices * pairs_of(layout));
        let (roots, counts) = (layout.first_leaf() + leaves.pairs().len(), vertices.div_ceil(BLOCK));
        if [tree, pairs, roots, counts] != [self.tree.len(), self.pairs.len(), self.roots.len(), self.counts.len()] {
            *self = Self {
                tree: Slab::zeroed(tree, what)?,
                pairs: Slab::zeroed(pairs, what)?,
                roots: Slab::zeroed(roots, what)?,
                counts: Slab::zeroed(counts, what)?,
            };
        }
        Ok(())
    }

    /// Writes the number of each vertex's component to `labels`, by original vertex, and returns how many components there are. They are
    /// numbered from 0 in the order of their first vertices; a vertex without an edge is a component. It works on the layout of `search`
    /// with its threads, and ends early as its searches do. The first call allocates 20 bytes for each vertex of the layout (36 in roads
    /// and grids), later ones for the same layout nothing.
    ///
    /// # Errors
    /// [`SearchError::Length`] if `labels` has not one entry per vertex, [`SearchError::Engine`] if memory is refused, and
    /// [`SearchError::Stopped`].
    pub fn find(&mut self, search: &Search<'_>, labels: &mut [Vertex]) -> Result<usize, SearchError> {
        let layout = search.layout();
        let (given, wanted) = (labels.len(), layout.vertices());
        if given != wanted {
            return Err(SearchError::Length { what: "labels", given, wanted });
        }
        self.fit(layout).map_err(EngineError::from)?;
        self.number(search, labels).ok_or(SearchError::Stopped(NONE))
    }

    /// As [`find`](Self::find); `None` if it was stopped.
    fn number(&mut self, search: &Search<'_>, labels: &mut [Vertex]) -> Option<usize> {
        let (layout, team, is_stopped) = (search.layout(), search.team(), &|| search.is_stopped());
        let (searched, places, leaves) = (layout.csr().vertices(), layout.internal_places(), layout.leaves());
        let (of_searched, others) = self.tree.split_at_mut(searched);
        let joining = Joining {
            layout,
            team,
            trees: Trees(as_atomics(of_searched)),
            pairs: Shared::new(&mut self.pairs),
            roots: Shared::new(&mut self.roots),
            counts: Shared::new(&mut self.counts),
        };
        let roots = joining.join(is_stopped)?;
        if is_stopped() {
            return None;
        }
        let (alone, first_leaf) = (layout.padded() + 1, layout.first_leaf());
        if places.is_empty() {
            if roots == 1 {
                labels.fill(0);
                return Some(1);
            }
            let labels = as_atomics(labels);
            joining.each_vertex(&|v, root| labels[v].store(root, Relaxed));
        } else {
            let trees = joining.trees;
            joining.each_vertex(&|v, root| trees.point(v as Vertex, root));
            let of_leaves = as_atomics(&mut others[first_leaf - searched..]);
            share(team, of_leaves.len(), MAPPED, of_leaves.len() < SHARED, &|_, range| {
                for (of_leaf, &host) in of_leaves[range.clone()].iter().zip(&leaves.host_of()[range]) {
                    of_leaf.store(trees.at(host), Relaxed);
                }
            });
            others[alone - searched] = alone as Vertex;
            let (tree, numbers) = (&self.tree, as_atomics(labels));
            share(team, numbers.len(), MAPPED, numbers.len() < SHARED, &|_, range| {
                for (number, &place) in numbers[range.clone()].iter().zip(&places[range]) {
                    number.store(tree[place as usize], Relaxed);
                }
            });
            for (number, &[leaf, other]) in (first_leaf as Vertex..).zip(leaves.pairs()) {
                // Each pair is listed from both ends.
                if leaf < other {
                    (labels[leaf as usize], labels[other as usize]) = (number, number);
                }
            }
        }
        let numbers = &mut self.roots[..];
        numbers.fill(NONE);
        let mut next = 0;
        for label in labels {
            let (root, number) = (*label as usize, numbers[*label as usize]);
            let is_new = number == NONE;
            *label = if is_new { next } else { number };
            // Several components have the root `alone`.
            if is_new && root != alone {
                numbers[root] = next;
            }
            next += Vertex::from(is_new);
        }
        Some(next as usize)
    }
}

/// The least of a vertex and the neighbours in its row.
#[inline(always)]
fn least_of(v: Vertex, &[first, second, third, fourth]: &[Vertex; 4]) -> Vertex {
    v.min(first & !ROW_CONTINUES).min(second).min(third.min(fourth))
}

/// For each vertex a lesser one of its tree, or itself.
#[derive(Clone, Copy)]
struct Trees<'a>(&'a [AtomicU32]);

impl Trees<'_> {
    #[inline]
    fn at(self, v: Vertex) -> Vertex {
        self.0[v as usize].load(Relaxed)
    }

    #[inline]
    fn point(self, v: Vertex, to: Vertex) {
        self.0[v as usize].store(to, Relaxed);
    }

    /// The root of the tree of `v`. Vertices on the way point to what their pointees point to, so that the next way is shorter.
    #[inline]
    fn root(self, v: Vertex) -> Vertex {
        // The first of these is the root, if all lesser vertices point to theirs.
        let first = self.at(v);
        let (mut v, mut above) = (first, self.at(first));
        loop {
            let next = self.at(above);
            if next == above {
                return above;
            }
            self.point(v, next);
            (v, above) = (above, next);
        }
    }

    /// As [`root`](Self::root), without a change: no pointer is written but by the thread whose vertex it is.
    #[inline]
    fn found(self, v: Vertex) -> Vertex {
        let (mut root, mut above) = (v, self.at(v));
        while above != root {
            (root, above) = (above, self.at(above));
        }
        root
    }

    /// Joins the trees of two vertices; returns whether they were two.
    fn link(self, one: Vertex, other: Vertex) -> bool {
        let (mut one, mut other) = (self.root(one), self.root(other));
        while one != other {
            let (lesser, greater) = (one.min(other), one.max(other));
            // Only a root is written, and only once: others may join it at the same time.
            if self.0[greater as usize].compare_exchange(greater, lesser, Relaxed, Relaxed).is_ok() {
                return true;
            }
            (one, other) = (self.root(greater), self.root(lesser));
        }
        false
    }
}

/// Trees that are being joined.
struct Joining<'a> {
    layout: &'a Layout,
    team: &'a Team,
    trees: Trees<'a>,
    pairs: Shared<[Vertex; 2]>,
    roots: Shared<Vertex>,
    counts: Shared<[u32; 2]>,
}

/// What one block has: the places of its pairs and of its roots, and how many there are now.
struct Block<'a> {
    vertices: Range<usize>,
    pairs: &'a mut [[Vertex; 2]],
    roots: &'a mut [Vertex],
    counts: &'a mut [u32; 2],
}

impl Block<'_> {
    /// Lets `count` vertices point to their roots, and notes which of them are roots. Vertex `i` is what `vertex` returns, which is given
    /// the roots noted before. Returns how many are roots.
    #[inline]
    fn keep_roots(&mut self, trees: Trees<'_>, count: usize, vertex: impl Fn(&[Vertex], usize) -> Vertex) -> u64 {
        let mut left = 0;
        for i in 0..count {
            let v = vertex(self.roots, i);
            let root = trees.root(v);
            trees.point(v, root);
            self.roots[left] = v;
            left += usize::from(root == v);
        }
        self.counts[1] = left as u32;
        left as u64
    }
}

impl Joining<'_> {
    /// Joins all trees of a component, and returns the number of trees (`None`: stopped).
    fn join(&self, is_stopped: &impl Fn() -> bool) -> Option<u64> {
        let layout = self.layout;
        if self.trees.0.is_empty() {
            return Some(0);
        }
        self.point();
        let mut roots = self.find_roots();
        if roots > 1 && self.largest().1 < NEARLY_ALL && !is_stopped() {
            let mut pairs = if layout.rows().is_empty() { self.pair_columns() } else { self.pair_rows() };
            for _ in 0..ROUNDS {
                if pairs <= FEW_PAIRS || is_stopped() {
                    break;
                }
                [pairs, roots] = self.round();
            }
            let trees = self.trees;
            let [joined, _] = self.blocks(&|Block { pairs, counts, .. }| {
                [pairs[..counts[0] as usize].iter().filter(|[one, other]| trees.link(*one, *other)).count() as u64, 0]
            });
            roots -= joined;
        }
        if is_stopped() {
            return None;
        }
        if roots > 1 {
            roots -= self.join_rest();
        }
        Some(roots)
    }

    /// Every vertex points to the least of its first neighbours.
    fn point(&self) {
        let (trees, rows, columns) = (self.trees, self.layout.rows(), self.layout.columns());
        self.blocks(&|Block { vertices, .. }| {
            let start = trees.0[vertices.clone()].as_ptr();
            // SAFETY: no thread looks at the vertices of another one's block. As plain numbers they are handled by vector instructions.
            let own = unsafe { std::slice::from_raw_parts_mut(start.cast_mut().cast::<Vertex>(), vertices.len()) };
            let own = own.iter_mut().zip(vertices.start as Vertex..);
            if let [first, second, ..] = columns {
                // "No neighbour" has a greater number than any vertex.
                for ((tree, v), (&first, &second)) in own.zip(first[vertices.clone()].iter().zip(&second[vertices])) {
                    *tree = v.min(first).min(second);
                }
            } else {
                for ((tree, v), row) in own.zip(&rows[vertices]) {
                    *tree = least_of(v, row);
                }
            }
            [0; 2]
        });
    }

    /// Every vertex forms a pair with the other one of its first two neighbours. (Lists are longer than that, so the neighbour's first two
    /// may lack the vertex.) Returns the number of pairs.
    fn pair_columns(&self) -> u64 {
        let (columns, none) = (self.layout.columns(), self.layout.padded() as Vertex);
        let [pairs, _] = self.blocks(&|Block { vertices, pairs, counts, .. }| {
            let mut count = 0;
            for v in vertices {
                let (first, second) = (columns[0][v], columns[1][v]);
                let [lesser, other] = if second == none { [first; 2] } else { [first.min(second), first.max(second)] };
                pairs[count] = [v as Vertex, other];
                count += usize::from(other != none && (other != lesser || other > v as Vertex));
            }
            counts[0] = count as u32;
            [count as u64, 0]
        });
        pairs
    }

    /// Every vertex forms pairs with all neighbours that are less, except the least. (Neighbours that are greater have the vertex among
    /// theirs.) Returns the number of pairs.
    fn pair_rows(&self) -> u64 {
        let layout = self.layout;
        let [pairs, _] = self.blocks(&|Block { vertices, pairs, counts, .. }| {
            let mut count = 0;
            for begin in vertices.clone().step_by(64) {
                // A bit for each vertex with two such neighbours or a long list. They are too many, and too few, to predict a branch.
                let mut bits = 0_u64;
                for (v, row) in (begin as Vertex..).zip(&layout.rows()[begin..vertices.end.min(begin + 64)]) {
                    let less = row.iter().map(|&w| u32::from(w < v)).sum::<u32>() + (row[0] >> 30 & 2);
                    bits |= u64::from(less > 1) << (v as usize - begin);
                }
                while bits != 0 {
                    let v = begin as Vertex + bits.trailing_zeros();
                    bits &= bits - 1;
                    let row = &layout.rows()[v as usize];
                    let least = least_of(v, row);
                    let mut add = |list: &[Vertex]| {
                        for &w in list {
                            if let Some(pair) = pairs.get_mut(count) {
                                *pair = [v, w];
                                count += usize::from(w < v && w != least);
                            }
                        }
                    };
                    if row[0] & ROW_CONTINUES == 0 { add(row) } else { add(layout.csr().neighbours(v)) }
                }
            }
            counts[0] = count as u32;
            [count as u64, 0]
        });
        pairs
    }

    /// Lets every vertex point to its root and notes the roots. Returns their number.
    fn find_roots(&self) -> u64 {
        let trees = self.trees;
        let [found, _] = self.blocks(&|mut block| {
            let Range { start, end } = block.vertices;
            [block.keep_roots(trees, end - start, |_, i| (start + i) as Vertex), 0]
        });
        found
    }

    /// For each pair whose roots differ, the greater root points to the lesser or to a lesser one still, and the roots become the pair.
    /// Then all vertices that were roots point to their new roots. Returns the numbers of pairs and of roots that are left.
    ///
    /// A pointer that was written may be overwritten, by this thread or another one: the root is then pointed to the root of another pair.
    /// What it meant is not lost, since the pair is still there. A pair is dropped only if both ends point to the same vertex: each of
    /// these two pointers is either older than the round, and is not overwritten, or belongs to a pair that stays.
    fn round(&self) -> [u64; 2] {
        let trees = self.trees;
        self.blocks(&|Block { pairs, counts, .. }| {
            let mut left = 0;
            for i in 0..counts[0] as usize {
                let [one, other] = pairs[i].map(|v| trees.at(v));
                let (lesser, greater) = (one.min(other), one.max(other));
                pairs[left] = [greater, lesser];
                left += usize::from(greater != lesser);
                trees.point(greater, trees.at(greater).min(lesser));
            }
            counts[0] = left as u32;
            [0; 2]
        });
        self.blocks(&|mut block| {
            let [pairs, roots] = *block.counts;
            [u64::from(pairs), block.keep_roots(trees, roots as usize, |roots, i| roots[i])]
        })
    }

    /// Joins the trees of all neighbours, but does not look at the neighbours of the vertices of the largest tree: an edge to another tree
    /// is found at its other end. Returns the number of trees that were joined to others.
    fn join_rest(&self) -> u64 {
        let (layout, trees, (largest, _)) = (self.layout, self.trees, self.largest());
        let [joined, _] = self.blocks(&|Block { vertices, .. }| {
            let mut joined = 0;
            for v in vertices.start as Vertex..vertices.end as Vertex {
                // The largest tree may have been joined to a lesser one.
                let root = trees.root(v);
                if root == largest || root == trees.root(largest) {
                    continue;
                }
                let incoming = if layout.directed() { layout.incoming().neighbours(v) } else { &[] };
                joined += layout.csr().neighbours(v).iter().chain(incoming).filter(|&&w| trees.link(v, w)).count() as u64;
            }
            [joined, 0]
        });
        joined
    }

    /// The root of the largest tree, and how many of [`SAMPLED`] vertices are in it.
    fn largest(&self) -> (Vertex, usize) {
        let mut sample = [0; SAMPLED];
        for (i, root) in (0..).zip(&mut sample) {
            *root = self.trees.root((i * self.trees.0.len() as u64 / SAMPLED as u64) as Vertex);
        }
        sample.sort_unstable();
        sample.chunk_by(Vertex::eq).map(|same| (same[0], same.len())).max_by_key(|&(_, count)| count).unwrap_or_default()
    }

    /// Calls `visit` with every vertex and its root.
    fn each_vertex(&self, visit: &(dyn Fn(usize, Vertex) + Sync)) {
        let trees = self.trees;
        self.blocks(&|Block { vertices, .. }| {
            vertices.for_each(|v| visit(v, trees.found(v as Vertex)));
            [0; 2]
        });
    }

    /// Hands the blocks out to the threads, and adds up what `work` returns.
    fn blocks(&self, work: &(dyn Fn(Block<'_>) -> [u64; 2] + Sync)) -> [u64; 2] {
        let (pairs, roots, counts, vertices) = (self.pairs, self.roots, self.counts, self.trees.0.len());
        let pairs_of = pairs_of(self.layout);
        let (sums, _) = share_and_sum(self.team, vertices.div_ceil(BLOCK), BLOCKS, vertices < SHARED, &|_, range| {
            let mut sums = [0; 2];
            for block in range {
                let vertices = block * BLOCK..vertices.min((block + 1) * BLOCK);
                // SAFETY: the arrays have a place for each vertex and each block, and each block is handed out once.
                let block = unsafe {
                    let of = |start: *mut Vertex| std::slice::from_raw_parts_mut(start.add(vertices.start), vertices.len());
                    let pairs = std::slice::from_raw_parts_mut(pairs.get().add(vertices.start * pairs_of), vertices.len() * pairs_of);
                    Block { pairs, roots: of(roots.get()), counts: &mut *counts.get().add(block), vertices }
                };
                let [first, second] = work(block);
                sums = [sums[0] + first, sums[1] + second];
            }
            sums
        });
        sums
    }
}
