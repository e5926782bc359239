//! The structure that is searched: adjacency, vertex order, and the columns of first neighbours.
//!
//! Construction follows section 4 of Zhang et al. 2018 (sorted destinations, zero-degree vertices dropped) and Yasui and Fujisawa 2015
//! (vertices by descending degree); vertices of a graph with communities are numbered by neighbourhood instead (`bfs`). It adds columns:
//! the k-th neighbour of every vertex in one array, so that a bottom-up step handles up to 16 vertices at a time and rarely reads a list.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use rayon::prelude::*;

use super::{
    Blocks, Columns, Csr, EdgeList, EdgeStream, GraphError, Listing, Lists, MAX_VERTICES, NONE, Stopper, Vertex,
    build::{Arcs, Naming, adjacency, by_degree, count_degrees, skew},
    leaves::{Leaves, first_place},
    order::{self, Renumbering},
};
use crate::memory::{self, Slab};

/// The order in which the searched structure numbers the vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Chosen by the skew of the degrees and by a sample of neighbours; the choice is in the record.
    #[default]
    Auto,
    /// The order of the input: parents need no mapping back.
    Original,
    /// By descending degree. Vertices without edges are dropped; in an undirected graph, so are those with a single edge unless
    /// [`BuildOptions::keep_leaves`] is set.
    Degree,
    /// Breadth-first from the vertex of highest degree: neighbours have near numbers. The same vertices are dropped as in the order by
    /// degree, and the lists are those of that order. It pays in graphs with communities.
    Bfs,
}

impl Order {
    /// Whether vertices of a graph with degrees of this skew are numbered anew.
    pub fn renumbers(self, skew: f64) -> bool {
        match self {
            Self::Auto => skew >= SKEWED,
            asked => asked != Self::Original,
        }
    }
}

/// How to build a [`Layout`].
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// Keep arcs as they are instead of making every edge undirected. An entry of a [`Listing::Symmetric`] list is two arcs.
    pub directed: bool,
    /// Vertex order.
    pub order: Order,
    /// Search vertices with a single edge like any other. By default, in an undirected graph that is not searched in its original order,
    /// they are left out of the search and get their parents at its end. (A vertex whose single edge is listed more than once is always
    /// searched.)
    pub keep_leaves: bool,
    /// Whether the CPU reads neighbours in blocks of bits (`None`: where a sample says that they pay). Graphs with rows have none.
    pub blocks: Option<bool>,
    /// Ends the building early, with [`GraphError::Stopped`].
    pub stopper: Stopper,
}

/// The place of a vertex in a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The vertex is searched under this internal number.
    Searched(Vertex),
    /// The vertex is a leaf that is left out of the search; its host has this internal number.
    LeafOf(Vertex),
    /// The vertex and the one of this original number are each other's only neighbour; both are left out.
    Paired(Vertex),
    /// The vertex has no edge and was dropped.
    Alone,
}

/// One step of construction.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct StepRecord {
    /// Name of the step.
    pub step: Cow<'static, str>,
    /// Time of the step, in seconds.
    pub seconds: f64,
    /// Peak resident memory of the process up to the end of the step, in bytes (`None`: not readable).
    pub peak_bytes: Option<u64>,
}

/// Counts taken while the layout was built.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct LayoutStats {
    /// Vertices of the input.
    pub vertices: u64,
    /// Vertices of the searched structure.
    pub searched_vertices: u64,
    /// Vertices without an edge to another vertex.
    pub isolated: u64,
    /// Vertices with a single edge that are left out of the searched structure.
    pub leaves: u64,
    /// Entries of the input, as listed.
    pub listed: u64,
    /// Self-loops among the entries.
    pub self_loops: u64,
    /// Edges for TEPS: repeats are counted, self-loops are not; if a file lists both directions, a pair of entries counts once.
    pub edges: u64,
    /// Distinct edges (arcs of a directed graph) without self-loops.
    pub unique_edges: u64,
    /// Largest number of distinct neighbours of a vertex.
    pub max_degree: u32,
    /// Mean of the squared degrees over the square of the mean degree, over vertices with an edge: 1 if all degrees are equal, about
    /// 1 + 1/degree in a uniform random graph, two to thousands in a social graph.
    pub skew: f64,
    /// The input lists every undirected edge in both directions.
    pub both_directions: bool,
}

/// A graph ready to be searched.
///
/// Internal numbers are those of the searched structure, original numbers those of the input. Vertices are padded to a multiple of 64; the
/// first number past the padding stands for "no neighbour" in columns and rows.
///
/// ```
/// use socbfs::{BuildOptions, Layout, graph::{EdgeList, Listing, Order}};
///
/// let edges = EdgeList::new(4, vec![[0, 1], [1, 2], [2, 0], [2, 0]], Listing::Once)?;
/// let layout = Layout::build(&edges, &BuildOptions { order: Order::Degree, ..BuildOptions::default() })?;
/// // Repeats count for TEPS, but the search sees an edge once. Vertex 3 is not searched, since it has no edge.
/// assert_eq!((layout.stats().edges, layout.stats().unique_edges, layout.stats().searched_vertices), (4, 3, 3));
/// let mut neighbours: Vec<u32> = layout.neighbours(2).collect();
/// neighbours.sort();
/// assert_eq!(neighbours, [0, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Layout {
    csr: Csr,
    incoming: Option<Csr>,
    blocks: Option<Blocks>,
    incoming_blocks: Option<Blocks>,
    to_original: Slab<Vertex>,
    /// Original vertex to internal number. A vertex that was dropped has the number `padded + 1`; a leaf that is left out has a number of
    /// its own after that.
    places: Slab<Vertex>,
    leaves: Leaves,
    input_degree: Slab<u32>,
    columns: Columns,
    rows: Slab<[Vertex; 4]>,
    stats: LayoutStats,
    order: Order,
    directed: bool,
    steps: Vec<StepRecord>,
    construction: Duration,
}

/// Skew from which vertices are renumbered. Uniform random graphs, meshes and roads stay below 1.3 and are faster in their own order; power
/// grids, peers and small social graphs have 1.6 to 2.5, other social graphs and web crawls more. (Between 1.5 and 3 a search takes 0.65 to
/// 0.97 of the time, but 1.05 to 1.1 where there are neither communities nor leaves.)
const SKEWED: f64 = 1.5;
/// Mean degree up to which a graph of small degrees (roads, grids, meshes) is searched by rows of four neighbours.
const ROWS_MEAN_DEGREE: f64 = 4.5;
/// Largest degree of a graph searched by rows.
const ROWS_MAX_DEGREE: u32 = 64;
/// Flag in the first entry of a row of [`Layout::rows`]: the vertex has more than four neighbours.
pub const ROW_CONTINUES: Vertex = 1 << 31;

struct Steps {
    begin: Instant,
    last: Instant,
    records: Vec<StepRecord>,
}

impl Steps {
    fn done(&mut self, step: &'static str) {
        let now = Instant::now();
        self.records.push(StepRecord {
            step: step.into(),
            seconds: now.duration_since(self.last).as_secs_f64(),
            peak_bytes: memory::peak_resident_bytes(),
        });
        self.last = now;
    }
}

/// Vertices with more arcs than the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hubs {
    /// The mean, rounded down.
    pub arcs: u32,
    /// Number of hubs.
    pub count: usize,
    /// Share of hubs among the vertices that have arcs.
    pub share: f32,
}

impl Layout {
    /// Builds the searched structure on the current rayon pool.
    ///
    /// A list whose format does not say how it lists undirected edges is taken to list both directions if every entry's reverse is listed
    /// equally often. Any other list is made symmetric. No edge is lost either way.
    ///
    /// # Errors
    /// [`GraphError`] if an edge is out of range, or the graph does not fit 32-bit numbers or memory.
    pub fn build(edges: &EdgeList, options: &BuildOptions) -> Result<Self, GraphError> {
        Self::build_from(edges, options)
    }

    /// As [`Layout::build`], from any source of edges, such as [`RowArrays`](super::RowArrays), which reads arrays of another program in
    /// place.
    ///
    /// # Errors
    /// As [`Layout::build`].
    pub fn build_from(edges: &impl EdgeStream, options: &BuildOptions) -> Result<Self, GraphError> {
        let begin = Instant::now();
        let mut steps = Steps { begin, last: begin, records: Vec::new() };
        let n = edges.vertices();
        if n > MAX_VERTICES {
            return Err(GraphError::TooManyVertices(n as u64));
        }
        let mut degrees = count_degrees(edges, n, &options.stopper)?;
        let listed = degrees.entries;
        let mirrored = edges.listing().is_mirrored(options.directed);
        let both_directions = !options.directed && degrees.symmetric();
        if !options.directed && edges.listing() == Listing::BothDirections && !degrees.symmetric() && listed > degrees.self_loops {
            log::warn!("the format lists every edge in both directions, but this file does not: the graph is made symmetric");
        }
        // Without self-loops; an entry of a mirrored list counts as two arcs.
        let entries = (listed - degrees.self_loops) * if mirrored { 2 } else { 1 };
        let raw_arcs = if options.directed || both_directions { entries } else { 2 * entries };
        if raw_arcs > u64::from(u32::MAX) {
            return Err(GraphError::TooManyArcs(raw_arcs));
        }
        // Checked before the arcs are allocated: they take 8 bytes each while they are sorted, and then 4. In a directed graph the lists of
        // one direction are complete while those of the other are sorted.
        let bytes = if options.directed && !mirrored { 4 + 8 } else { 8 };
        memory::check_available(bytes * raw_arcs + 24 * n as u64, "the graph's adjacency")?;
        // A row takes neighbours from both ends of the entries.
        let both_ends = mirrored || !options.directed && !both_directions;
        if both_ends {
            degrees.outgoing.par_iter_mut().zip(&degrees.incoming[..]).for_each(|(out, &arriving)| *out += arriving);
        }
        if mirrored {
            degrees.incoming.copy_from_slice(&degrees.outgoing);
        }
        let ends = |v: usize| if options.directed { degrees.outgoing[v] + degrees.incoming[v] } else { degrees.outgoing[v] };
        let (with_edges, skew) = skew((0..n).into_par_iter().map(ends));
        let is_mapped = options.order.renumbers(skew);
        steps.done("count degrees");

        let ranking: Slab<u32> = if options.directed {
            let mut ranking = Slab::zeroed(n, "vertex order")?;
            ranking.par_iter_mut().enumerate().for_each(|(v, ranking)| *ranking = ends(v));
            ranking
        } else {
            Slab::default()
        };
        let (mut by_rank, mut rank) = by_degree(if options.directed { &ranking } else { &degrees.outgoing })?;
        drop(ranking);
        options.stopper.check()?;
        steps.done("order vertices");

        // Vertices of degree 1 come last in this order.
        let without_leaves = is_mapped && !options.directed && !options.keep_leaves;
        let core = if without_leaves { by_rank.partition_point(|&v| degrees.outgoing[v as usize] > 1) } else { usize::MAX };
        let build = |arcs: Arcs, degree: &Slab<u32>| -> Result<Csr, GraphError> {
            let of = (&degrees, &options.stopper);
            if is_mapped {
                let mut ordered = Slab::zeroed(by_rank.len(), "vertex degrees")?;
                ordered.par_iter_mut().zip(&by_rank[..]).for_each(|(ordered, &v)| *ordered = degree[v as usize]);
                adjacency(edges, arcs, &ordered, core, Naming { row: &rank, key: &rank, stored: &[] }, of)
            } else {
                adjacency(edges, arcs, degree, usize::MAX, Naming { row: &[], key: &rank, stored: &by_rank }, of)
            }
        };
        let mut csr = build(if both_ends { Arcs::Both } else { Arcs::Forward }, &degrees.outgoing)?;
        let mut incoming = match options.directed {
            // Every arc has its reverse, so both adjacencies are equal.
            true if mirrored => Some(csr.copy()?),
            true => Some(build(Arcs::Backward, &degrees.incoming)?),
            false => None,
        };
        options.stopper.check()?;
        steps.done("sort adjacency");

        let rows = core.min(csr.vertices());
        let order = match options.order {
            _ if !is_mapped => Order::Original,
            Order::Auto if order::has_communities(&csr, rows) => Order::Bfs,
            Order::Auto => Order::Degree,
            asked => asked,
        };
        if order == Order::Bfs {
            // Equal lists are neither walked nor renumbered twice.
            let other = incoming.take().filter(|_| !mirrored);
            let numbers = Renumbering::breadth_first([Some(&csr), other.as_ref()], rows, &options.stopper)?;
            csr = numbers.lists(&csr)?;
            incoming = match other {
                Some(other) => Some(numbers.lists(&other)?),
                None if options.directed => Some(csr.copy()?),
                None => None,
            };
            numbers.rename(&mut by_rank, &mut rank)?;
            steps.done("renumber vertices");
        }

        let leaves = if without_leaves { Leaves::take_off(&mut csr, core, &mut by_rank, &mut rank)? } else { Leaves::default() };
        let vertices = csr.vertices();
        let (to_original, places) = if is_mapped {
            let (dropped, mut places) = (vertices.next_multiple_of(64) as Vertex + 1, rank);
            places.par_iter_mut().for_each(|place| *place = if *place == NONE { dropped } else { *place });
            (by_rank, places)
        } else {
            Default::default()
        };
        let most_searched = csr.offsets.par_windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        let of_hosts = leaves.hosts().iter().enumerate().map(|(index, &host)| csr.degree(host) + leaves.of(index).len() as u32);
        let max_degree = of_hosts.max().unwrap_or(0).max(most_searched).max(u32::from(leaves.count() > 0));
        let mean_degree = csr.arcs() as f64 / (with_edges.max(1) as f64);
        let unique_edges = if options.directed { csr.arcs() as u64 } else { csr.arcs() as u64 / 2 + leaves.edges() };
        let mut layout = Self {
            csr,
            incoming,
            blocks: None,
            incoming_blocks: None,
            to_original,
            places,
            leaves,
            input_degree: degrees.outgoing,
            columns: Columns::default(),
            rows: Slab::default(),
            stats: LayoutStats {
                vertices: n as u64,
                searched_vertices: vertices as u64,
                isolated: n as u64 - with_edges,
                leaves: 0,
                listed,
                self_loops: degrees.self_loops,
                edges: if both_directions { entries / 2 } else { entries },
                unique_edges,
                max_degree,
                skew,
                both_directions,
            },
            order,
            directed: options.directed,
            steps: Vec::new(),
            construction: Duration::ZERO,
        };
        layout.stats.leaves = layout.leaves.count() as u64;
        let by_rows = !options.directed
            && mean_degree <= ROWS_MEAN_DEGREE
            && max_degree <= ROWS_MAX_DEGREE
            && !is_mapped
            && layout.padded() < ROW_CONTINUES as usize;
        if by_rows {
            layout.make_rows()?;
        } else {
            if options.blocks.map_or_else(|| Blocks::pay(&layout.csr), Ok)? {
                layout.blocks = Some(Blocks::new(&layout.csr)?);
                layout.incoming_blocks = layout.incoming.as_ref().map(Blocks::new).transpose()?;
                steps.done("blocks of neighbours");
            }
            let (padded, blocks) = (layout.padded(), layout.blocks.is_some());
            layout.columns = Columns::new(layout.incoming(), blocks, padded, padded as Vertex, order, &layout.to_original)?;
        }
        steps.done("first neighbours");
        layout.construction = steps.begin.elapsed();
        layout.steps = steps.records;
        Ok(layout)
    }

    fn make_rows(&mut self) -> Result<(), GraphError> {
        let none = self.padded() as Vertex;
        let mut rows: Slab<[Vertex; 4]> = Slab::zeroed(self.csr.vertices(), "rows of neighbours")?;
        rows.par_iter_mut().enumerate().with_min_len(4096).for_each(|(v, row)| {
            let list = self.csr.neighbours(v as Vertex);
            for (k, entry) in row.iter_mut().enumerate() {
                *entry = list.get(k).copied().unwrap_or(none);
            }
            if list.len() > row.len() {
                row[0] |= ROW_CONTINUES;
            }
        });
        self.rows = rows;
        Ok(())
    }

    /// Vertices of the input (original numbers are `0..vertices`).
    pub fn vertices(&self) -> usize {
        self.stats.vertices as usize
    }

    /// Vertices of the searched structure, rounded up to a multiple of 64.
    pub fn padded(&self) -> usize {
        self.csr.vertices().next_multiple_of(64)
    }

    /// Whether arcs keep their direction.
    pub fn directed(&self) -> bool {
        self.directed
    }

    /// Counts taken while the layout was built.
    pub fn stats(&self) -> &LayoutStats {
        &self.stats
    }

    /// The order that was chosen (never [`Order::Auto`]).
    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether internal numbers are other than original ones, so that parents are mapped back.
    pub fn is_mapped(&self) -> bool {
        self.order != Order::Original
    }

    /// Whether vertices are numbered by descending degree: hubs come first, vertices with near numbers have similar degrees, and lists are
    /// sorted by number.
    pub fn is_by_degree(&self) -> bool {
        self.order == Order::Degree
    }

    /// The steps of construction with time and peak memory.
    pub fn steps(&self) -> &[StepRecord] {
        &self.steps
    }

    /// The time from edge list to searchable structure.
    pub fn construction_time(&self) -> Duration {
        self.construction
    }

    /// Bytes that the searched structure holds.
    pub fn bytes(&self) -> u64 {
        self.csr.bytes()
            + self.incoming.as_ref().map_or(0, Csr::bytes)
            + [&self.blocks, &self.incoming_blocks].into_iter().flatten().map(Blocks::bytes).sum::<u64>()
            + self.to_original.bytes()
            + self.places.bytes()
            + self.leaves.bytes()
            + self.input_degree.bytes()
            + self.columns.bytes()
            + self.rows.bytes()
    }

    /// The internal number of an original vertex, or [`NONE`] if it is not searched (it has no edge, or is a leaf that is left out).
    ///
    /// # Panics
    /// If `original` is not a vertex.
    pub fn to_internal(&self, original: Vertex) -> Vertex {
        assert!((original as usize) < self.vertices(), "vertex {original} of {}", self.vertices());
        match self.places.get(original as usize) {
            Some(&place) if (place as usize) < self.csr.vertices() => place,
            Some(_) => NONE,
            None => original,
        }
    }

    /// The place of an original vertex in the layout.
    ///
    /// # Panics
    /// If `original` is not a vertex.
    pub fn place(&self, original: Vertex) -> Place {
        let internal = self.to_internal(original);
        if internal != NONE {
            return Place::Searched(internal);
        }
        let past = (self.places[original as usize] as usize).checked_sub(self.first_leaf());
        match past.and_then(|slot| self.leaves.host_of().get(slot)) {
            Some(&host) => Place::LeafOf(host),
            None => self.leaves.paired_with(original).map_or(Place::Alone, Place::Paired),
        }
    }

    /// The first number in [`internal_places`](Self::internal_places) that stands for a leaf. It comes after the numbers of all internal
    /// vertices, of "no neighbour", and of dropped vertices.
    pub fn first_leaf(&self) -> usize {
        first_place(self.csr.vertices())
    }

    /// The leaves that are left out.
    pub fn leaves(&self) -> &Leaves {
        &self.leaves
    }

    /// The original number of an internal vertex.
    ///
    /// # Panics
    /// If `internal` is not a vertex of the searched structure.
    pub fn to_original(&self, internal: Vertex) -> Vertex {
        if self.is_mapped() { self.to_original[internal as usize] } else { internal }
    }

    /// Original vertex to internal number (`padded + 1`: dropped; `first_leaf + i`: the `i`-th leaf). Empty in the
    /// original order.
    pub fn internal_places(&self) -> &[Vertex] {
        &self.places
    }

    /// Internal vertex to original number. Empty in the original order.
    pub fn original_numbers(&self) -> &[Vertex] {
        &self.to_original
    }

    /// The vertices with more arcs than the mean.
    pub fn hubs(&self) -> Hubs {
        let csr = self.csr();
        let degrees = || (0..csr.vertices() as Vertex).map(|v| csr.degree(v));
        // The mean is over the vertices with arcs, since only some layouts hold the others.
        let with_arcs = degrees().filter(|&degree| degree > 0).count().max(1);
        let arcs = (csr.arcs() / with_arcs) as u32;
        let count = degrees().filter(|&degree| degree > arcs).count();
        Hubs { arcs, count, share: count as f32 / with_arcs as f32 }
    }

    /// Out-adjacency in internal numbers (all adjacency of an undirected graph), without self-loops, repeats, and leaves that are left out.
    /// Each list is sorted by descending degree of the neighbour.
    pub fn csr(&self) -> &Csr {
        &self.csr
    }

    /// [`csr`](Self::csr) as levels of the CPU read it: in blocks where they pay, else itself.
    pub fn lists(&self) -> Lists<'_> {
        Lists::new(&self.csr, self.blocks.as_ref())
    }

    /// [`incoming`](Self::incoming), as [`lists`](Self::lists).
    pub fn incoming_lists(&self) -> Lists<'_> {
        self.incoming.as_ref().map_or(self.lists(), |incoming| Lists::new(incoming, self.incoming_blocks.as_ref()))
    }

    /// In-adjacency in internal numbers: the same as [`Layout::csr`] if the graph is undirected.
    pub fn incoming(&self) -> &Csr {
        self.incoming.as_ref().unwrap_or(&self.csr)
    }

    /// Columns of first in-neighbours: `columns()[k][v]` is the k-th entry of v's list, or [`Layout::padded`] if the list is shorter.
    /// Each column has `padded` entries.
    pub fn columns(&self) -> &[Slab<Vertex>] {
        self.columns.numbers()
    }

    /// The neighbours in [`columns`](Self::columns) as original numbers ([`NONE`]: no such entry).
    pub fn column_originals(&self) -> &[Slab<Vertex>] {
        self.columns.originals()
    }

    /// Rows of the first four neighbours of every vertex. Missing ones are [`Layout::padded`]; the first entry carries [`ROW_CONTINUES`]
    /// if the list is longer. Empty if the graph is not searched by rows.
    pub fn rows(&self) -> &[[Vertex; 4]] {
        &self.rows
    }

    /// Distinct neighbours (successors in a directed graph) of an original vertex, as original numbers, by descending degree.
    ///
    /// # Panics
    /// If `original` is not a vertex.
    pub fn neighbours(&self, original: Vertex) -> impl Iterator<Item = Vertex> + '_ {
        let (list, leaves, only) = match self.place(original) {
            Place::Searched(internal) => (self.csr.neighbours(internal), self.leaves.of_host(internal), None),
            Place::LeafOf(host) => (&[][..], &[][..], Some(self.to_original(host))),
            Place::Paired(other) => (&[][..], &[][..], Some(other)),
            Place::Alone => (&[][..], &[][..], None),
        };
        list.iter().map(|&w| self.to_original(w)).chain(leaves.iter().copied()).chain(only)
    }

    /// Degree of an original vertex for TEPS: listed edges that touch it (in a directed graph, leave it), with repeats, without self-loops.
    /// The TEPS numerator of a search is half the sum over reached vertices (in a directed graph, the whole sum).
    ///
    /// # Panics
    /// If `original` is not a vertex.
    pub fn input_degree(&self, original: Vertex) -> u32 {
        self.input_degree[original as usize]
    }

    /// Replaces what counts for TEPS, in a layout that was built from another list of the same edges: one without its repeats, for example.
    ///
    /// # Panics
    /// If there is not one degree for each vertex.
    pub fn set_listed(&mut self, input_degrees: &[u32], edges: u64) {
        self.input_degree.copy_from_slice(input_degrees);
        self.stats.edges = edges;
    }

    /// [`Layout::input_degree`] of every original vertex.
    pub fn input_degrees(&self) -> &[u32] {
        &self.input_degree
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use proptest::prelude::*;

    use super::*;

    fn naive(n: usize, edges: &[[u32; 2]], directed: bool) -> Vec<Vec<u32>> {
        let mut lists = vec![Vec::new(); n];
        for &[u, v] in edges {
            if u != v {
                lists[u as usize].push(v);
                if !directed {
                    lists[v as usize].push(u);
                }
            }
        }
        for list in &mut lists {
            list.sort_unstable();
            list.dedup();
        }
        lists
    }

    fn check(n: usize, edges: Vec<[u32; 2]>, directed: bool, order: Order, listing: Listing) {
        let want = naive(n, &edges, directed && listing != Listing::Symmetric);
        let list = EdgeList::new(n, edges, listing).unwrap();
        for keep_leaves in [false, true] {
            check_layout(
                &Layout::build(&list, &BuildOptions { directed, order, keep_leaves, ..BuildOptions::default() }).unwrap(),
                &list,
                &want,
                keep_leaves,
            );
        }
    }

    fn check_layout(layout: &Layout, list: &EdgeList, want: &[Vec<u32>], keep_leaves: bool) {
        let (n, directed) = (want.len(), layout.directed());
        assert_ne!(layout.order(), Order::Auto);
        for v in 0..n as u32 {
            let mut got: Vec<u32> = layout.neighbours(v).collect();
            let degrees: Vec<usize> = got.iter().map(|&w| layout.neighbours(w).count()).collect();
            if !directed && list.listing() == Listing::Once && layout.stats().edges == layout.stats().unique_edges {
                assert!(degrees.is_sorted_by(|a, b| a >= b), "neighbours of {v} by descending degree: {degrees:?}");
            }
            got.sort_unstable();
            assert_eq!(got, want[v as usize], "neighbours of {v}");
            let internal = layout.to_internal(v);
            if internal != NONE {
                assert_eq!(layout.to_original(internal), v);
            }
        }
        for (k, (column, originals)) in layout.columns().iter().zip(layout.column_originals()).enumerate() {
            for v in 0..layout.padded() {
                let list = if v < layout.csr().vertices() { layout.incoming().neighbours(v as u32) } else { &[] };
                assert_eq!(column[v], list.get(k).copied().unwrap_or(layout.padded() as u32));
                if let Some(&w) = list.get(k) {
                    assert_eq!(originals[v], layout.to_original(w));
                }
            }
        }
        let alone = |v: &u32| layout.to_internal(*v) == NONE && !want[*v as usize].is_empty();
        let leaves: Vec<u32> = (0..n as u32).filter(alone).collect();
        assert_eq!(layout.stats().leaves as usize, leaves.len());
        assert!(leaves.iter().all(|&leaf| want[leaf as usize].len() == 1), "{leaves:?} of {want:?}");
        let degrees = layout.input_degrees().iter().filter(|&&degree| degree == 1).count();
        let out = layout.is_mapped() && !directed && !keep_leaves;
        assert_eq!(leaves.len(), if out { degrees } else { 0 });
        assert_eq!(layout.csr().vertices(), if layout.is_mapped() { n - layout.stats().isolated as usize - leaves.len() } else { n });
        assert_eq!(layout.stats().max_degree as usize, want.iter().map(Vec::len).max().unwrap_or(0));
        let unique: usize = want.iter().map(Vec::len).sum();
        assert_eq!(layout.stats().unique_edges as usize, if directed { unique } else { unique / 2 });
    }

    proptest! {
        #[test]
        fn adjacency_equals_a_naive_one(
            n in 1usize..200,
            seeds in prop::collection::vec((any::<u32>(), any::<u32>()), 0..600),
            directed: bool,
            order in prop::sample::select(vec![Order::Auto, Order::Original, Order::Degree, Order::Bfs]),
            listing in prop::sample::select(vec![Listing::Once, Listing::Symmetric]),
        ) {
            let edges = seeds.iter().map(|&(a, b)| [a % n as u32, b % n as u32]).collect();
            check(n, edges, directed, order, listing);
        }

        #[test]
        fn both_directions_are_recognised(n in 2usize..100, seeds in prop::collection::vec((any::<u32>(), any::<u32>()), 1..300)) {
            let mut edges = Vec::new();
            for (a, b) in seeds {
                let (u, v) = (a % n as u32, b % n as u32);
                edges.push([u, v]);
                if u != v {
                    edges.push([v, u]);
                }
            }
            let list = EdgeList::new(n, edges.clone(), Listing::Unknown).unwrap();
            let stats = Layout::build(&list, &BuildOptions::default()).unwrap().stats().clone();
            prop_assert_eq!(stats.both_directions, stats.listed > stats.self_loops);
            prop_assert_eq!(stats.edges * 2 + stats.self_loops, stats.listed);
            check(n, edges, false, Order::Auto, Listing::BothDirections);
        }
    }

    /// Edges that depend on how often they have been read before, and a number of vertices that depends on how often it has been asked.
    struct Changing {
        listing: Listing,
        vertices: fn(usize) -> usize,
        edges: fn(usize) -> Vec<[u32; 2]>,
        asked: AtomicUsize,
        read: AtomicUsize,
    }

    impl Changing {
        fn new(listing: Listing, vertices: fn(usize) -> usize, edges: fn(usize) -> Vec<[u32; 2]>) -> Self {
            Self { listing, vertices, edges, asked: AtomicUsize::new(0), read: AtomicUsize::new(0) }
        }
    }

    impl EdgeStream for Changing {
        fn vertices(&self) -> usize {
            (self.vertices)(self.asked.fetch_add(1, Relaxed))
        }
        fn listing(&self) -> Listing {
            self.listing
        }
        fn parts(&self) -> usize {
            1
        }
        fn may_change(&self) -> bool {
            true
        }
        fn for_each_of(&self, _: usize, mut visit: impl FnMut(u32, u32)) {
            (self.edges)(self.read.fetch_add(1, Relaxed)).into_iter().for_each(|[u, v]| visit(u, v));
        }
    }

    /// Edges that change from the second reading on: an error, or a graph in which every arc of an undirected edge has its reverse.
    #[test]
    fn edges_that_change_between_readings_are_an_error() {
        type Edges = fn(usize) -> Vec<[u32; 2]>;
        let build = |vertices: fn(usize) -> usize, edges: Edges, directed, order, listing| {
            let options = BuildOptions { directed, order, ..BuildOptions::default() };
            Layout::build_from(&Changing::new(listing, vertices, edges), &options).map(|layout| layout.stats().unique_edges)
        };
        let changes: [Edges; 6] = [
            // The first edge of a star leads to a vertex that had no edge.
            |before| [[0, if before == 0 { 1 } else { 41 }]].into_iter().chain((2..41).map(|v| [0, v])).chain([[1, 2]]).collect(),
            // The edge of the first leaf leads to the second.
            |before| vec![[0, if before == 0 { 1 } else { 2 }], [0, 2], [0, 3], [0, 4]],
            // An edge leads to a number that is no vertex.
            |before| vec![[0, 1], [1, if before == 0 { 2 } else { 4_000_000_000 }], [2, 3]],
            // Fewer edges, and more.
            |before| (1..40).take(if before == 0 { 39 } else { 38 }).map(|v| [0, v]).collect(),
            |before| (1..40).take(if before == 0 { 38 } else { 39 }).map(|v| [0, v]).collect(),
            // The ends of two edges are exchanged, so that all degrees are as before.
            |before| if before == 0 { vec![[0, 1], [1, 0], [2, 3], [3, 2]] } else { vec![[0, 3], [1, 0], [2, 1], [3, 2]] },
        ];
        for (change, edges) in changes.into_iter().enumerate() {
            for directed in [false, true] {
                for order in [Order::Original, Order::Degree, Order::Bfs] {
                    for listing in [Listing::Once, Listing::Unknown] {
                        let built = build(|_| 42, edges, directed, order, listing);
                        assert_eq!(built, Err(GraphError::EdgesChanged), "{change} {directed} {order:?} {listing:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_stopped_build_ends_with_an_error() {
        let list = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
        let options = BuildOptions::default();
        options.stopper.stop();
        assert_eq!(Layout::build(&list, &options).unwrap_err(), GraphError::Stopped);
        options.stopper.reset();
        assert!(Layout::build(&list, &options).is_ok());
        let late = BuildOptions { stopper: Stopper::at(Some(Instant::now())), ..BuildOptions::default() };
        assert_eq!(Layout::build(&list, &late).unwrap_err(), GraphError::Stopped);
    }

    /// A path that has more vertices each time it is asked for their number.
    #[test]
    fn a_source_that_changes_its_number_of_vertices_is_asked_once() {
        for order in [Order::Original, Order::Degree, Order::Bfs] {
            let options = BuildOptions { order, ..BuildOptions::default() };
            let path = Changing::new(Listing::Once, |before| 10 + 1000 * before, |_| (1..10).map(|v| [v - 1, v]).collect());
            let layout = Layout::build_from(&path, &options).unwrap();
            assert_eq!((layout.vertices(), layout.input_degrees().len()), (10, 10));
        }
    }

    #[test]
    fn an_entry_of_a_symmetric_list_is_two_arcs() {
        let list = EdgeList::new(4, vec![[1, 0], [2, 1], [2, 2]], Listing::Symmetric).unwrap();
        for order in [Order::Original, Order::Degree, Order::Bfs] {
            let layout = Layout::build(&list, &BuildOptions { directed: true, order, ..BuildOptions::default() }).unwrap();
            assert_eq!((layout.stats().edges, layout.stats().listed, layout.stats().self_loops), (4, 3, 1));
            assert_eq!(layout.input_degrees(), [1, 2, 1, 0]);
            assert_eq!(layout.incoming().arcs(), 4);
        }
    }

    #[test]
    fn a_large_skewed_graph_crosses_many_buckets() {
        let n = 1 << 16;
        let mut x = 1u64;
        let mut next = |bound: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (x >> 33) % bound
        };
        let edges: Vec<[u32; 2]> = (0..400_000)
            .map(|_| {
                let bound = 1 + next(n);
                [next(bound) as u32, next(n) as u32]
            })
            .collect();
        for order in [Order::Original, Order::Degree, Order::Bfs] {
            for directed in [false, true] {
                check(n as usize, edges.clone(), directed, order, Listing::Unknown);
            }
        }
    }

    #[test]
    fn odd_graphs() {
        for order in [Order::Auto, Order::Original, Order::Degree, Order::Bfs] {
            check(0, vec![], false, order, Listing::Once);
            check(1, vec![], false, order, Listing::Once);
            check(1, vec![[0, 0]; 5], false, order, Listing::Unknown);
            check(3, vec![[1, 1], [2, 2]], true, order, Listing::Unknown);
            check(2, vec![[0, 1]; 1 << 20], false, order, Listing::Unknown);
            check(1000, (1..1000).map(|v| [0, v]).collect(), false, order, Listing::Once);
            check(1000, (1..1000).map(|v| [v - 1, v]).collect(), true, order, Listing::Once);
        }
    }

    #[test]
    fn an_edge_out_of_range_is_named() {
        let list = EdgeList::new(3, vec![[0, 1], [1, 3], [9, 9]], Listing::Once).unwrap();
        let error = Layout::build(&list, &BuildOptions::default()).unwrap_err();
        assert_eq!(error, GraphError::VertexOutOfRange { index: 1, source_vertex: 1, target_vertex: 3, vertices: 3 });
    }
}
