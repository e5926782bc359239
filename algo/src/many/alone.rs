//! Searches one after another in deep graphs of small degrees (roads, grids, meshes). At any level the frontiers of two searches have few
//! vertices in common, so a pass for all would look at nearly each vertex once for each search, and at the words of all vertices at each
//! level. (64 roots of metis-mdual, 120 levels, on two threads: 0.83 s by a pass, 0.12 s here. Of a uniform graph of the same size and
//! degree, 20 levels: 0.04 s by a pass, 0.31 s here.)
//!
//! Each thread takes roots one by one, and searches top-down with a queue.
//!
//! Space: 40 bytes per vertex for each thread.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
};

use super::{Limits, ManyOutcome};
use socbfs::{
    graph::{Layout, NONE, Vertex},
    kernels::expand_rows,
    memory::{OutOfMemory, Slab},
    search::{SearchError, Stopper},
    threads::{Team, share},
};

/// Trees that a thread keeps before it hands them over: the rows of a caller's array are then written for several searches at once.
const TREES: usize = 4;
/// Bytes of an [`Alone`] for each vertex.
pub(super) const BYTES: u64 = 4 * 2 * (1 + TREES as u64);

/// A graph with more levels than this is deep.
const DEEP: u32 = super::ROOTS as u32;
/// Vertices from which the depth is measured, at most.
const TRIED: usize = 8;
/// This many searches that are deep, or are not, decide.
const ENOUGH: usize = 3;

/// What one search has found.
#[derive(Debug)]
pub(super) struct Tree {
    /// By vertex, its level ([`NONE`]: not reached).
    pub(super) levels: Slab<Vertex>,
    /// By vertex, its parent ([`NONE`]: not reached); that of the root is itself.
    pub(super) parents: Slab<Vertex>,
}

/// The arrays of a thread.
#[derive(Debug)]
pub(super) struct Alone {
    trees: [Tree; TREES],
    queues: [Slab<Vertex>; 2],
}

/// The entries of an array: for all vertices, for "no neighbour", and for the neighbours that a row writes after the last one that is new.
fn entries(layout: &Layout) -> usize {
    layout.padded() + 5
}

fn array(layout: &Layout) -> Result<Slab<Vertex>, OutOfMemory> {
    Slab::zeroed(entries(layout), "a search")
}

impl Alone {
    pub(super) fn new(layout: &Layout) -> Result<Self, OutOfMemory> {
        let tree = || Tree::new(layout);
        Ok(Self { trees: [tree()?, tree()?, tree()?, tree()?], queues: [array(layout)?, array(layout)?] })
    }

    /// Whether the arrays are made for this layout.
    pub(super) fn fits(&self, layout: &Layout) -> bool {
        !layout.rows().is_empty() && self.queues[0].len() == entries(layout)
    }
}

impl Tree {
    fn new(layout: &Layout) -> Result<Self, OutOfMemory> {
        Ok(Self { levels: array(layout)?, parents: array(layout)? })
    }

    /// Searches from `root`. Returns the numbers of vertices reached and of levels. The last of these was not searched if it is deeper than
    /// `deepest`, or if `limits` were reached.
    fn search(
        &mut self,
        [queue, next]: [&mut [Vertex]; 2],
        layout: &Layout,
        root: Vertex,
        deepest: u32,
        limits: &Limits<'_>,
    ) -> (usize, u32) {
        let Self { levels, parents } = self;
        let (rows, none) = (layout.rows(), layout.padded());
        let room = queue.len().min(next.len()).min(parents.len());
        assert!(room >= entries(layout) && rows.len() <= none, "room for all vertices");
        assert!((root as usize) < rows.len(), "the root is a vertex");
        levels.fill(NONE);
        parents.fill(NONE);
        (parents[none], levels[root as usize], parents[root as usize], queue[0]) = (0, 0, root, root);
        let (mut queues, mut len, mut reached, mut level) = ([queue, next], 1, 1, 0);
        while len > 0 && level <= deepest && !limits.are_reached() {
            let [queue, next] = &mut queues;
            level += 1;
            // SAFETY: there are a row and a parent for each vertex, a parent for "no neighbour", and room for all vertices and some more
            // (asserted). The queue holds vertices.
            len = unsafe { expand_rows(rows, layout.csr(), parents, &queue[..len], next) };
            next[..len].iter().for_each(|&v| levels[v as usize] = level);
            reached += len;
            queues.swap(0, 1);
        }
        (reached, level + u32::from(len > 0))
    }
}

/// Whether the layout has rows, and most searches have more levels than a pass has searches. (Those that end in a small component do not
/// count.)
pub(super) fn is_deep(layout: &Layout) -> Result<bool, OutOfMemory> {
    let vertices = layout.rows().len();
    if vertices <= DEEP as usize {
        return Ok(false);
    }
    let (mut tree, mut queues) = (Tree::new(layout)?, [array(layout)?, array(layout)?]);
    let [mut deep, mut shallow] = [0; 2];
    for root in (0..vertices).step_by(vertices.div_ceil(TRIED)) {
        let [queue, next] = &mut queues;
        let (stopper, root) = (Stopper::default(), root as Vertex);
        let (reached, levels) = tree.search([queue, next], layout, root, DEEP, &Limits::new(&stopper, None));
        deep += usize::from(levels > DEEP);
        shallow += usize::from(levels <= DEEP && reached > vertices / 2);
        if deep.max(shallow) == ENOUGH {
            break;
        }
    }
    Ok(deep > shallow)
}

/// Searches from all `roots`, which are in range, and calls `tell` with some trees at a time, and the place of the first one's root. The
/// layout has rows, and `searches` are as many as threads and fit it.
pub(super) fn pass(
    searches: &[Mutex<Alone>],
    (layout, team, limits): (&Layout, &Team, &Limits<'_>),
    roots: &[Vertex],
    deepest: u32,
    tell: &(dyn Fn(usize, &[Tree]) + Sync),
) -> Result<ManyOutcome, SearchError> {
    let (all_reached, most_levels) = (AtomicU64::new(0), AtomicU32::new(0));
    let is_over = || limits.are_reached() || most_levels.load(Relaxed) > deepest.saturating_add(1);
    share(team, roots.len(), TREES, roots.len() < 2, &|thread, range| {
        let mut search = searches[thread].lock().unwrap_or_else(PoisonError::into_inner);
        let Alone { trees, queues: [queue, next] } = &mut *search;
        let roots = &roots[range.clone()];
        for (tree, &root) in trees.iter_mut().zip(roots) {
            if is_over() {
                return;
            }
            let (reached, levels) = tree.search([queue, next], layout, root, deepest, limits);
            all_reached.fetch_add(reached as u64, Relaxed);
            most_levels.fetch_max(levels, Relaxed);
        }
        if !is_over() {
            tell(range.start, &trees[..roots.len()]);
        }
    });
    match (most_levels.into_inner(), roots.first()) {
        (_, Some(&first)) if limits.are_reached() => Err(SearchError::Stopped(first)),
        (levels, _) if levels > deepest.saturating_add(1) => Err(SearchError::TooDeep { deepest }),
        (levels, _) => Ok(ManyOutcome { reached: all_reached.into_inner(), levels, ..ManyOutcome::default() }),
    }
}
