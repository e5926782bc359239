//! One search after another over one layout.

use std::time::{Duration, Instant};

use super::{BfsResult, LevelRecord};
use crate::{
    graph::{Layout, NONE, Vertex},
    policy::Policy,
};

/// How to search.
#[derive(Debug, Clone, Default)]
pub struct SearchOptions {
    /// Who decides the direction of each level.
    pub policy: Policy,
    /// Threads (0: one for every CPU the process may run on).
    pub threads: usize,
    /// CPUs the threads are bound to, one each in turn (empty: not bound).
    pub cpus: Vec<usize>,
}

/// Why a search can't be set up or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The root is not a vertex of the graph.
    #[error("root {root} is not a vertex: the graph has {vertices} vertices (0..{vertices})")]
    RootOutOfRange {
        /// The root asked for.
        root: Vertex,
        /// Vertices of the graph.
        vertices: usize,
    },
    /// Threads could not be started or bound.
    #[error("{0}")]
    Threads(String),
    /// The system refused the memory.
    #[error("no memory for the search state: {0}")]
    Memory(String),
}

/// What one search did. The tree itself is read through [`Search::parents`].
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// Root, as an original number.
    pub root: Vertex,
    /// Vertices reached, the root included.
    pub reached: u64,
    /// Levels of the tree: the root alone is 1.
    pub levels: u32,
    /// Edges for TEPS (both ends reached; repeats counted, self-loops not).
    pub edges: u64,
    /// From the call to the parents in original numbers.
    #[serde(skip)]
    pub elapsed: Duration,
    /// The part of `elapsed` that mapped parents back to original numbers.
    #[serde(skip)]
    pub mapping: Duration,
}

/// Searches one layout, again and again, without allocating in [`run`](Search::run).
#[derive(Debug)]
pub struct Search<'g> {
    layout: &'g Layout,
    parent: Vec<Vertex>,
    level: Vec<u32>,
    records: Vec<LevelRecord>,
}

impl<'g> Search<'g> {
    /// Allocates everything a search needs and starts its threads.
    ///
    /// # Errors
    /// [`SearchError`] where memory or threads are refused.
    pub fn new(layout: &'g Layout, options: &SearchOptions) -> Result<Self, SearchError> {
        let _ = options;
        let n = layout.vertices();
        Ok(Self { layout, parent: vec![NONE; n], level: vec![NONE; n], records: Vec::new() })
    }

    /// Threads the search uses.
    pub fn threads(&self) -> usize {
        1
    }

    /// Searches from `root` (an original number).
    ///
    /// # Errors
    /// [`SearchError::RootOutOfRange`].
    pub fn run(&mut self, root: Vertex) -> Result<Outcome, SearchError> {
        if root as usize >= self.layout.vertices() {
            return Err(SearchError::RootOutOfRange { root, vertices: self.layout.vertices() });
        }
        let start = Instant::now();
        self.parent.fill(NONE);
        self.level.fill(NONE);
        self.parent[root as usize] = root;
        self.level[root as usize] = 0;
        let mut frontier = vec![root];
        let (mut reached, mut levels) = (0, 0);
        let mut edges = 0;
        while !frontier.is_empty() {
            levels += 1;
            let mut next = Vec::new();
            for &u in &frontier {
                reached += 1;
                edges += u64::from(self.layout.input_degree(u));
                for v in self.layout.neighbours(u) {
                    if self.parent[v as usize] == NONE {
                        self.parent[v as usize] = u;
                        self.level[v as usize] = levels;
                        next.push(v);
                    }
                }
            }
            frontier = next;
        }
        if !self.layout.directed() {
            edges /= 2;
        }
        Ok(Outcome { root, reached, levels, edges, elapsed: start.elapsed(), mapping: Duration::ZERO })
    }

    /// Parents of the last search, by original vertex: the root's is itself, [`NONE`] where not reached.
    pub fn parents(&self) -> &[Vertex] {
        &self.parent
    }

    /// Levels of the last search, by original vertex ([`NONE`] where not reached), into `levels` (one per vertex).
    ///
    /// # Panics
    /// If `levels` has not exactly one entry per vertex.
    pub fn levels_into(&self, levels: &mut [u32]) {
        levels.copy_from_slice(&self.level);
    }

    /// What happened at each level of the last search.
    pub fn records(&self) -> &[LevelRecord] {
        &self.records
    }

    /// The last search's tree as owned arrays.
    pub fn result(&self, root: Vertex) -> BfsResult {
        let mut level = vec![NONE; self.parent.len()];
        self.levels_into(&mut level);
        BfsResult { root, parent: self.parent.clone(), level }
    }
}
