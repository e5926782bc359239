//! The five checks of Graph500 over ranks.
//!
//! Each rank has the parents of its own vertices. Levels are computed from them, level by level: a rank that learns which vertices lie on
//! a level finds their children among its own. Every rank then has all levels, which are no part of the tree, and goes through all edges
//! as listed, which it makes or reads anew: it checks those that touch its own vertices. No rank holds the tree.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use rayon::prelude::*;

use super::{
    ClusterError,
    part::Part,
    ranks::{Ranks, sum, texts, values},
};
use crate::{
    graph::{EdgeStream, GraphError, NONE, Vertex},
    memory,
};

/// A tree that is to be checked.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Its root.
    pub root: Vertex,
    /// Parents of this rank's vertices, by row.
    pub parents: Vec<Vertex>,
}

/// What a tree that passed looks like, or what is wrong with it: the same on every rank.
pub type Verdict = Result<crate::validate::Validated, String>;

/// Checks trees over ranks, several in one pass over the edges.
#[derive(Debug)]
pub struct ClusterValidator<'p, R: Ranks> {
    part: &'p Part,
    ranks: &'p R,
}

/// A tree and its levels.
struct Levelled<'t> {
    tree: &'t Tree,
    /// Level of every vertex, by original number; [`NONE`] where not reached.
    level: Vec<u32>,
    depth: u32,
    /// By row: the parent is joined to the vertex by a listed edge.
    confirmed: Vec<AtomicBool>,
}

impl<'p, R: Ranks> ClusterValidator<'p, R> {
    /// A validator for trees of the graph that `part` is of.
    pub fn new(part: &'p Part, ranks: &'p R) -> Self {
        Self { part, ranks }
    }

    /// Trees that fit a quarter of the memory of every rank at a time, at least one.
    pub fn batch(&self, trees: usize) -> usize {
        let one = 4 * self.part.vertices() as u64 + 5 * self.part.input_degrees().len() as u64;
        let fit = memory::available_bytes().unwrap_or(256 << 20) / 4 / one.max(1);
        let smallest = values(self.ranks, fit).into_iter().min().unwrap_or(1);
        usize::try_from(smallest).unwrap_or(usize::MAX).clamp(1, trees.max(1))
    }

    /// Checks `trees` against the edges that the part was built from.
    ///
    /// # Errors
    /// [`ClusterError`] where the memory is not there.
    pub fn validate(&self, edges: &impl EdgeStream, trees: &[Tree]) -> Result<Vec<Verdict>, ClusterError> {
        let bytes = trees.len() as u64 * 4 * self.part.vertices() as u64;
        memory::check_available(bytes, "levels of the trees").map_err(GraphError::from)?;
        let mut levelled = Vec::with_capacity(trees.len());
        let mut faults: Vec<Option<String>> = Vec::with_capacity(trees.len());
        for tree in trees {
            let (found, fault) = self.find_levels(tree);
            levelled.push(found);
            faults.push(fault);
        }
        let counts: Vec<[AtomicU64; 2]> = trees.iter().map(|_| Default::default()).collect();
        let first_fault: Vec<Mutex<Option<String>>> = trees.iter().map(|_| Mutex::default()).collect();
        let rows = self.rows_of_originals();
        (0..edges.parts()).into_par_iter().with_max_len(1).for_each(|part| {
            let mut own = vec![[0u64; 2]; trees.len()];
            edges.for_each_of(part, |u, v| {
                // An edge is counted by the owner of its first end, and each end is looked at by its owner.
                let (row_u, row_v) = (rows[u as usize], rows[v as usize]);
                if row_u == NONE && row_v == NONE {
                    return;
                }
                for (k, tree) in levelled.iter().enumerate() {
                    let (level_u, level_v) = (tree.level[u as usize], tree.level[v as usize]);
                    if row_u != NONE {
                        let reached = level_u != NONE;
                        own[k][usize::from(u == v)] += u64::from(reached);
                        if (level_u == NONE) != (level_v == NONE) {
                            note(&first_fault[k], || {
                                format!("the edge {u} - {v} leads from a vertex that was reached to one that was not: the tree does not span the component")
                            });
                        } else if reached && level_u.abs_diff(level_v) > 1 {
                            note(&first_fault[k], || format!("the ends of the edge {u} - {v} are on levels {level_u} and {level_v}: more than one apart"));
                        }
                        if tree.tree.parents[row_u as usize] == v {
                            tree.confirmed[row_u as usize].store(true, Relaxed);
                        }
                    }
                    if row_v != NONE && tree.tree.parents[row_v as usize] == u {
                        tree.confirmed[row_v as usize].store(true, Relaxed);
                    }
                }
            });
            for (sums, own) in counts.iter().zip(own) {
                for (sum, own) in sums.iter().zip(own) {
                    sum.fetch_add(own, Relaxed);
                }
            }
        });
        let mut verdicts = Vec::with_capacity(trees.len());
        for (k, tree) in levelled.iter().enumerate() {
            let mut fault = faults[k].take();
            let noted = first_fault[k].lock().unwrap_or_else(PoisonError::into_inner).take();
            fault = fault.or(noted).or_else(|| self.stranger(tree));
            // All ranks report the fault of the lowest rank that has one.
            let all = texts(self.ranks, fault.as_deref().unwrap_or(""));
            let [edges, self_loops] = &counts[k];
            let (edges, self_loops) = (sum(self.ranks, edges.load(Relaxed)), sum(self.ranks, self_loops.load(Relaxed)));
            verdicts.push(match all.into_iter().find(|fault| !fault.is_empty()) {
                Some(fault) => Err(fault),
                None => Ok(crate::validate::Validated {
                    root: tree.tree.root,
                    reached: tree.level.iter().filter(|&&level| level != NONE).count() as u64,
                    levels: tree.depth + 1,
                    edges: if self.part.counts().both_directions { edges / 2 } else { edges },
                    self_loops,
                }),
            });
        }
        Ok(verdicts)
    }

    /// Rows of this rank by original vertex; [`NONE`] where another rank's.
    fn rows_of_originals(&self) -> Vec<Vertex> {
        let mut rows = vec![NONE; self.part.vertices()];
        for (row, original) in self.part.own_vertices() {
            rows[original as usize] = row as Vertex;
        }
        rows
    }

    /// A vertex of this rank whose parent is not joined to it.
    fn stranger(&self, tree: &Levelled<'_>) -> Option<String> {
        let vertex = self
            .part
            .own_vertices()
            .find(|&(row, vertex)| vertex != tree.tree.root && tree.tree.parents[row] != NONE && !tree.confirmed[row].load(Relaxed));
        vertex.map(|(row, vertex)| format!("vertex {vertex} has parent {}, but no edge joins them", tree.tree.parents[row]))
    }

    /// Levels from parents; and what is wrong where some vertex has a parent but no level: a cycle, or a way that does not lead to the root.
    fn find_levels<'t>(&self, tree: &'t Tree) -> (Levelled<'t>, Option<String>) {
        let (part, n) = (self.part, self.part.vertices());
        let mut fault = None;
        // Own children by parent: sorted, so that those of a vertex lie together.
        let mut children: Vec<(Vertex, Vertex)> = Vec::new();
        let mut rooted = false;
        for (row, vertex) in part.own_vertices() {
            match tree.parents[row] {
                NONE => {}
                parent if vertex == tree.root => {
                    rooted = true;
                    if parent != vertex {
                        fault = Some(format!("the root {vertex} has parent {parent} instead of itself"));
                    }
                }
                parent if parent as usize >= n => fault = Some(format!("vertex {vertex} has parent {parent}, which is no vertex")),
                parent => children.push((parent, vertex)),
            }
        }
        if part.own_row(tree.root).is_some() && !rooted {
            fault = Some(format!("the root {} has no parent; its parent is itself", tree.root));
        }
        children.par_sort_unstable();
        let mut level = vec![NONE; n];
        level[tree.root as usize] = 0;
        let mut frontier = vec![tree.root];
        let (mut depth, mut found) = (0, 0);
        loop {
            let mut own = Vec::new();
            for &v in &frontier {
                let begin = children.partition_point(|&(parent, _)| parent < v);
                own.extend(children[begin..].iter().take_while(|&&(parent, _)| parent == v).map(|&(_, child)| child));
            }
            found += own.len();
            let bytes: Vec<u8> = own.iter().flat_map(|v| v.to_le_bytes()).collect();
            let lengths: Vec<i32> = values(self.ranks, bytes.len() as u64).into_iter().map(|length| length as i32).collect();
            let offsets: Vec<i32> = (0..lengths.len()).map(|rank| lengths[..rank].iter().sum()).collect();
            let mut all = vec![0; lengths.iter().map(|&length| length as usize).sum()];
            if all.is_empty() {
                break;
            }
            self.ranks.all_gather_varying(&bytes, &mut all, &lengths, &offsets);
            depth += 1;
            frontier.clear();
            for bytes in all.chunks_exact(4) {
                let v = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                // Nothing is found twice: a vertex has one parent, and the root is the child of none.
                level[v as usize] = depth;
                frontier.push(v);
            }
        }
        if found < children.len() && fault.is_none() {
            let astray = children.iter().find(|&&(_, child)| level[child as usize] == NONE);
            fault = astray.map(|(parent, child)| {
                format!("from vertex {child} its parent {parent} does not lead to the root: a cycle, or a vertex that was not reached")
            });
        }
        let confirmed = tree.parents.iter().map(|_| AtomicBool::new(false)).collect();
        (Levelled { tree, level, depth, confirmed }, fault)
    }
}

fn note(fault: &Mutex<Option<String>>, text: impl FnOnce() -> String) {
    let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
    if fault.is_none() {
        *fault = Some(text());
    }
}
