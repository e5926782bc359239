//! Checks of a search tree: the five of Graph500, on the parents of any program, and a serial search to compare with.
//!
//! The checks go by the edge list as the source gave it, sorted once for all trees of a graph, and not by the structure that was
//! searched, so that a fault of that structure shows. Levels are computed from the parents. Then, in the numbering of the Graph500
//! specification,
//!
//! 1. the tree is a tree with the given root: no cycle, and all parents lead to the root;
//! 2. each tree edge spans exactly one level: true of computed levels, so this checks levels that come with the parents;
//! 3. the ends of each input edge are at most one level apart (in a directed graph: an arc leads at most one level down);
//! 4. the tree spans the component: no input edge leads from a reached vertex to one that was not reached;
//! 5. each vertex and its parent are joined by an input edge (in a directed graph: an arc from the parent to the vertex).
//!
//! Which fault is reported does not depend on the number of threads: the first check that fails, and in it the vertex of the
//! smallest number or the edge that is listed first.

mod edge_checks;
mod serial;
mod tree;
mod violation;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rayon::prelude::*;

pub use serial::SerialBfs;
pub use violation::{Check, ValidateError, Violation};

use crate::{
    graph::{EdgeList, GraphError, NONE, Vertex, buckets::Buckets},
    memory,
};

/// The summary of a tree that passed all five checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Validated {
    /// Root.
    pub root: Vertex,
    /// Vertices of the tree, the root included.
    pub reached: u64,
    /// Levels of the tree: a root alone is 1.
    pub levels: u32,
    /// Entries of the edge list with both ends in the tree, repeats counted, self-loops not: the numerator of TEPS as Graph500
    /// 3.x counts it. A list that holds every undirected edge in both directions makes this twice the number of edges, and
    /// the caller, which knows the list, halves it. Searched as a directed graph, an entry of a list that is
    /// [`Listing::Symmetric`](crate::graph::Listing::Symmetric) counts twice: it is two arcs.
    pub edges: u64,
    /// Self-loops at vertices of the tree: what Graph500 1.2 and 2.1 add to `edges`.
    pub self_loops: u64,
}

/// Checks trees of one graph, again and again in the same memory: 22 bytes for each vertex and 4 for each listed edge.
#[derive(Debug)]
pub struct Validator<'e> {
    edges: &'e EdgeList,
    directed: bool,
    /// Arcs that an entry of the list is.
    arcs: u64,
    /// The edges without self-loops: an arc with its source, an undirected edge with its smaller end.
    adjacency: Buckets,
    /// Vertices that have self-loops, as often as they have them.
    self_loops: Vec<Vertex>,
    /// Level of every vertex, [`NONE`] where not reached.
    level: Vec<AtomicU32>,
    /// The same in a byte where the tree is shallow enough, as it stays in the cache for four times as many vertices.
    short: Vec<u8>,
    /// Vertices whose parent was found at the other end of an input edge.
    confirmed: Vec<AtomicBool>,
}

impl<'e> Validator<'e> {
    /// Sorts `edges` and allocates for their trees, on the current rayon pool; `directed` as it was searched.
    ///
    /// # Errors
    /// [`GraphError::VertexOutOfRange`] with the first edge that names a vertex the graph does not have;
    /// [`GraphError::OutOfMemory`] where the graph needs more than there is.
    pub fn new(edges: &'e EdgeList, directed: bool) -> Result<Self, GraphError> {
        let n = edges.vertices();
        // Where every arc has its mirror, the checks are those of an undirected graph; only the count of arcs differs.
        let mirrored = edges.listing().is_mirrored(directed);
        let directed = directed && !mirrored;
        // What is refused here would not be allocated but end the program.
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

    /// Checks the tree given by `parent`, in parallel on the current rayon pool: for each vertex its parent, the root's itself,
    /// [`NONE`] where not reached. Where `claimed` gives levels, with [`NONE`] where not reached, they are checked too.
    ///
    /// # Errors
    /// [`ValidateError::Violation`] where a check fails; other variants where the arrays or the root don't fit the graph.
    pub fn validate(&mut self, root: Vertex, parent: &[Vertex], claimed: Option<&[u32]>) -> Result<Validated, ValidateError> {
        let vertices = self.edges.vertices();
        for (what, found) in [("parents", parent.len()), ("levels", claimed.map_or(vertices, <[u32]>::len))] {
            if found != vertices {
                return Err(ValidateError::Length { what, found, vertices });
            }
        }
        if root as usize >= vertices {
            return Err(ValidateError::RootOutOfRange { root, vertices });
        }

        let tree = tree::find_levels(root, parent, &self.level, &mut self.short)?;
        if let Some(claimed) = claimed {
            tree::compare_levels(claimed, &self.level)?;
        }

        self.confirmed.par_iter_mut().for_each(|confirmed| *confirmed.get_mut() = false);
        let edges = if tree.deepest <= edge_checks::Short::DEEPEST {
            self.scan(edge_checks::Short(&self.short), parent).run()?
        } else {
            self.scan(edge_checks::Long(&self.level), parent).run()?
        };
        // The root has no parent to be joined to.
        self.confirmed[root as usize].store(true, Ordering::Relaxed);
        let stranger =
            self.confirmed.par_iter().zip(parent).position_first(|(confirmed, &p)| p != NONE && !confirmed.load(Ordering::Relaxed));
        if let Some(vertex) = stranger {
            return Err(Violation::NotAnEdge { vertex: vertex as Vertex, parent: parent[vertex] }.into());
        }
        let self_loops = self.self_loops.iter().filter(|&&v| parent[v as usize] != NONE).count() as u64;
        Ok(Validated { root, reached: tree.reached, levels: tree.deepest + 1, edges: edges * self.arcs, self_loops })
    }

    fn scan<'a, L>(&'a self, levels: L, parent: &'a [Vertex]) -> edge_checks::Scan<'a, L> {
        let Self { edges, directed, ref adjacency, ref confirmed, .. } = *self;
        edge_checks::Scan { edges, adjacency, directed, levels, parent, confirmed }
    }

    /// Levels of the tree that [`validate`](Self::validate) checked last, by vertex, [`NONE`] where not reached. Without meaning
    /// where the tree failed check 1.
    pub fn levels(&self) -> Vec<u32> {
        self.level.par_iter().map(|level| level.load(Ordering::Relaxed)).collect()
    }
}

/// Checks one tree: [`Validator::new`] and [`Validator::validate`] in one.
///
/// # Errors
/// Those of both.
pub fn validate(edges: &EdgeList, directed: bool, root: Vertex, parent: &[Vertex]) -> Result<Validated, ValidateError> {
    Validator::new(edges, directed)?.validate(root, parent, None)
}

#[cfg(test)]
mod tests;
