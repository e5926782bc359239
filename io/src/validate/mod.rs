//! Validates search trees: the five checks of Graph500 on the parents found by any program, and a serial search to compare with.
//!
//! The checks use the edge list as the source gave it, sorted once for all trees of a graph. They do not use the searched structure, so
//! they also find faults of that structure. Levels are computed from the parents. The checks, in the numbering of the Graph500
//! specification, are:
//!
//! 1. the tree has no cycle, and all parents lead to the given root (in a forest: to one of the sources, each its own parent);
//! 2. each tree edge spans exactly one level: always true of computed levels, so this checks levels that come with the parents;
//! 3. the ends of each input edge are at most one level apart (in a directed graph: an arc leads at most one level down);
//! 4. the tree spans the component: no input edge leads from a reached vertex to one that was not reached;
//! 5. each vertex and its parent are joined by an input edge (in a directed graph: an arc from the parent to the vertex).
//!
//! The fault that is reported does not depend on the number of threads: it is of the first check that fails, and is the one with the
//! smallest vertex or the edge that is listed first.

mod edge_checks;
mod serial;
mod tree;
mod violation;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rayon::prelude::*;

pub use serial::SerialBfs;
pub use violation::{Check, ValidateError, Violation};

use socbfs::{
    graph::{EdgeList, GraphError, NONE, Vertex, buckets::Buckets},
    memory,
};

/// The summary of a tree that passed all five checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Validated {
    /// The root, or the first source of a forest ([`NONE`]: it has none).
    pub root: Vertex,
    /// Vertices of the tree or forest, the sources included.
    pub reached: u64,
    /// Levels: 1 for sources alone.
    pub levels: u32,
    /// Entries of the edge list with both ends in the tree, repeats counted, self-loops not: the numerator of TEPS as Graph500 3.x counts
    /// it. If the list holds every undirected edge in both directions, this is twice the number of edges, and the caller must halve it.
    /// In a directed graph, an entry of a [`Listing::Symmetric`](socbfs::graph::Listing::Symmetric) list is two arcs and counts twice.
    pub edges: u64,
    /// Self-loops at vertices of the tree, which Graph500 1.2 and 2.1 add to `edges`.
    pub self_loops: u64,
}

/// Checks any number of trees of one graph in the same memory: 22 bytes for each vertex and 4 for each listed edge.
#[derive(Debug)]
pub struct Validator<'e> {
    edges: &'e EdgeList,
    directed: bool,
    /// Arcs for each entry of the list: 1 or 2.
    arcs: u64,
    /// The edges without self-loops: an arc at its source, an undirected edge at its smaller end.
    adjacency: Buckets,
    /// The vertex of every listed self-loop.
    self_loops: Vec<Vertex>,
    /// Level of every vertex, [`NONE`] where not reached.
    level: Vec<AtomicU32>,
    /// Levels of one byte, used for shallow trees: a cache holds four times as many of them.
    short: Vec<u8>,
    /// Vertices whose parent was found at the other end of an input edge.
    confirmed: Vec<AtomicBool>,
}

impl<'e> Validator<'e> {
    /// Sorts `edges` and allocates memory for checking trees, on the current rayon pool. `directed` must be as in the search.
    ///
    /// # Errors
    /// [`GraphError::VertexOutOfRange`] with the first edge that names a vertex the graph does not have; [`GraphError::OutOfMemory`] if the
    /// graph needs more memory than there is.
    pub fn new(edges: &'e EdgeList, directed: bool) -> Result<Self, GraphError> {
        let n = edges.vertices();
        // If every arc has its reverse, the checks are those of an undirected graph; only the count of arcs differs.
        let mirrored = edges.listing().is_mirrored(directed);
        let directed = directed && !mirrored;
        // Without this check, a failed allocation would end the program.
        let of_vertices = n as u64 * (2 * size_of::<usize>() as u64 + 6);
        memory::check_available(of_vertices + 12 * edges.len() as u64, "the validation of the tree")?;
        let adjacency = Buckets::sort(edges, n, |u, v| match u.cmp(&v) {
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater if !directed => Some((v as usize, u)),
            _ => Some((u as usize, v)),
        })?;
        let mut self_loops = Vec::new();
        edges.for_each(0..edges.len(), |u, v| {
            if u == v {
                self_loops.push(u);
            }
        });
        Ok(Self {
            edges,
            directed,
            arcs: if mirrored { 2 } else { 1 },
            adjacency,
            self_loops,
            level: (0..n).into_par_iter().map(|_| AtomicU32::new(NONE)).collect(),
            short: vec![0; n],
            confirmed: (0..n).into_par_iter().map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// Checks the tree given by `parent`, in parallel on the current rayon pool. `parent` holds the parent of each vertex: the root's is
    /// itself, [`NONE`] where not reached. If `claimed` gives levels ([`NONE`] where not reached), they are checked too.
    ///
    /// # Errors
    /// [`ValidateError::Violation`] if a check fails; other variants if the arrays or the root don't fit the graph.
    pub fn validate(&mut self, root: Vertex, parent: &[Vertex], claimed: Option<&[u32]>) -> Result<Validated, ValidateError> {
        self.validate_forest(&[root], parent, claimed)
    }

    /// As [`validate`](Self::validate), for the forest of a search from any number of `sources`, in which each source is its own parent.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn validate_forest(&mut self, sources: &[Vertex], parent: &[Vertex], claimed: Option<&[u32]>) -> Result<Validated, ValidateError> {
        let vertices = self.edges.vertices();
        for (what, found) in [("parents", parent.len()), ("levels", claimed.map_or(vertices, <[u32]>::len))] {
            if found != vertices {
                return Err(ValidateError::Length { what, found, vertices });
            }
        }
        if let Some(&root) = sources.iter().find(|&&source| source as usize >= vertices) {
            return Err(ValidateError::RootOutOfRange { root, vertices });
        }

        let tree = tree::find_levels(sources, parent, &self.level, &mut self.short)?;
        if let Some(claimed) = claimed {
            tree::compare_levels(claimed, &self.level)?;
        }

        self.confirmed.par_iter_mut().for_each(|confirmed| *confirmed.get_mut() = false);
        let edges = if tree.deepest <= edge_checks::Short::DEEPEST {
            self.scan(edge_checks::Short(&self.short), parent).run()?
        } else {
            self.scan(edge_checks::Long(&self.level), parent).run()?
        };
        // A source is its own parent, so it needs no edge to its parent.
        sources.iter().for_each(|&source| self.confirmed[source as usize].store(true, Ordering::Relaxed));
        let stranger =
            self.confirmed.par_iter().zip(parent).position_first(|(confirmed, &p)| p != NONE && !confirmed.load(Ordering::Relaxed));
        if let Some(vertex) = stranger {
            return Err(Violation::NotAnEdge { vertex: vertex as Vertex, parent: parent[vertex] }.into());
        }
        let self_loops = self.self_loops.iter().filter(|&&v| parent[v as usize] != NONE).count() as u64;
        let (root, levels) = sources.first().map_or((NONE, 0), |&first| (first, tree.deepest + 1));
        Ok(Validated { root, reached: tree.reached, levels, edges: edges * self.arcs, self_loops })
    }

    fn scan<'a, L>(&'a self, levels: L, parent: &'a [Vertex]) -> edge_checks::Scan<'a, L> {
        let Self { edges, directed, ref adjacency, ref confirmed, .. } = *self;
        edge_checks::Scan { edges, adjacency, directed, levels, parent, confirmed }
    }

    /// Levels of the tree that [`validate`](Self::validate) checked last, by vertex; [`NONE`] where not reached. They have no meaning if
    /// the tree failed check 1.
    pub fn levels(&self) -> Vec<u32> {
        self.level.par_iter().map(|level| level.load(Ordering::Relaxed)).collect()
    }
}

/// Checks one tree: calls [`Validator::new`] and [`Validator::validate`].
///
/// # Errors
/// As [`Validator::new`] and [`Validator::validate`].
///
/// ```
/// use socbfs::graph::{EdgeList, Listing};
/// use socbfs_io::validate::{ValidateError, validate};
///
/// let edges = EdgeList::new(4, vec![[0, 1], [1, 2], [2, 3], [0, 3]], Listing::Once)?;
/// let tree = validate(&edges, false, 0, &[0, 0, 1, 0])?;
/// assert_eq!((tree.reached, tree.levels, tree.edges), (4, 3, 4));
/// // 2 and 0 are not joined by an edge.
/// let Err(ValidateError::Violation(fault)) = validate(&edges, false, 0, &[0, 0, 0, 0]) else { panic!("a wrong tree was accepted") };
/// println!("{fault}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn validate(edges: &EdgeList, directed: bool, root: Vertex, parent: &[Vertex]) -> Result<Validated, ValidateError> {
    Validator::new(edges, directed)?.validate(root, parent, None)
}

/// Checks one forest: calls [`Validator::new`] and [`Validator::validate_forest`].
///
/// # Errors
/// As [`Validator::new`] and [`Validator::validate_forest`].
pub fn validate_forest(edges: &EdgeList, directed: bool, sources: &[Vertex], parent: &[Vertex]) -> Result<Validated, ValidateError> {
    Validator::new(edges, directed)?.validate_forest(sources, parent, None)
}

#[cfg(test)]
mod tests;
