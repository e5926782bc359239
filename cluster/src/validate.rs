//! The five checks of Graph500 over ranks.
//!
//! Each rank has the parents of its own vertices. Levels are computed from them, level by level: all ranks learn which vertices are on a
//! level, and each finds their children among its own vertices. Every rank then has the levels of all vertices. It visits all edges as
//! listed, which it generates or reads again, and checks those that touch its own vertices. No rank needs the parents of all vertices.

use std::{
    path::Path,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use rayon::prelude::*;

use super::{
    ClusterError,
    edges::{Edges, Needs},
    host::{Host, all_gather},
    part::{Part, grouped},
    ranks::{Ranks, all_or_none, gathered, gathered_varying, max, sum, texts, values},
};
use socbfs::{
    graph::{EdgeStream, NONE, Vertex},
    memory::{self, Slab},
};

/// A tree to check, or a forest.
#[derive(Debug, Clone)]
pub struct RankTree {
    /// Its root, or its sources: the same on every rank, in any order, each once or more.
    pub sources: Vec<Vertex>,
    /// Parents of this rank's vertices, by row.
    pub parents: Vec<Vertex>,
}

/// The summary of a tree that passed, or the fault of one that did not; the same on every rank.
pub type Verdict = Result<socbfs_io::validate::Validated, String>;

/// Checks trees over ranks, several in one pass over the edges.
#[derive(Debug)]
pub struct ClusterValidator<'p, R: Ranks> {
    part: &'p Part,
    ranks: &'p R,
    /// Vertices of a level that a rank sends at once.
    piece: usize,
}

/// Vertices of a level that all ranks together send at once: 256 MiB.
const MOST_AT_ONCE: usize = 1 << 26;
/// Parents that all ranks together send at once to gather a tree: 256 KiB.
const GATHERED: usize = 1 << 16;

/// Levels of a tree, computed from its parents.
struct Levels {
    /// The level of every vertex, by original number; [`NONE`] if it was not reached. Only sources are on level 0.
    of: Vec<u32>,
    depth: u32,
}

/// A level as the pass over the edges stores it. `ABSENT` differs by more than one from every stored level.
trait Stored: Copy + Eq + Send + Sync {
    const ABSENT: Self;
    const DEEPEST: u32;
    fn from(level: u32) -> Self;
    fn apart(self, other: Self) -> bool;
}

macro_rules! stored {
    ($kind:ty) => {
        impl Stored for $kind {
            const ABSENT: Self = <$kind>::MAX;
            const DEEPEST: u32 = <$kind>::MAX as u32 - 2;
            fn from(level: u32) -> Self {
                if level == NONE { Self::ABSENT } else { level as Self }
            }
            fn apart(self, other: Self) -> bool {
                self.abs_diff(other) > 1
            }
        }
    };
}
stored!(u8);
stored!(u32);

/// The result of a pass over the edges.
struct Passed {
    /// Edges and self-loops of each tree that this rank counted.
    counts: Vec<[AtomicU64; 2]>,
    /// The first fault that this rank found in each tree.
    faults: Vec<Mutex<Option<String>>>,
    /// By row and tree: whether a listed edge joins the parent to the vertex.
    confirmed: Vec<AtomicBool>,
}

impl<'p, R: Ranks> ClusterValidator<'p, R> {
    /// A validator for trees of the graph of `part`.
    pub fn new(part: &'p Part, ranks: &'p R) -> Self {
        Self { part, ranks, piece: (MOST_AT_ONCE / ranks.size()).max(1) }
    }

    /// Number of trees to check at a time: as many as fit a quarter of the available memory of every host, shared by its ranks; at least
    /// one.
    pub fn batch(&self, trees: usize) -> usize {
        let own = Host::read(Path::new("/"));
        // If the hosts can't be exchanged, all ranks may share one.
        let here = all_gather(self.ranks, &own).map_or(self.ranks.size(), |all| all.iter().filter(|host| **host == own).count());
        let fit = self.fitting(memory::available_bytes().unwrap_or(256 << 20) / 4 / here.max(1) as u64);
        let smallest = values(self.ranks, fit).into_iter().min().unwrap_or(1);
        usize::try_from(smallest).unwrap_or(usize::MAX).clamp(1, trees.max(1))
    }

    /// How many trees fit `bytes` with their check. Their parents, which the caller keeps for it, count as well.
    fn fitting(&self, bytes: u64) -> u64 {
        let parents = 4 * self.part.input_degrees().len() as u64;
        let [finding, comparing] = self.stages().map(|(fixed, one)| bytes.saturating_sub(fixed) / (one + parents).max(1));
        finding.min(comparing)
    }

    /// The most memory that the check of `trees` trees takes.
    fn bytes(&self, trees: usize) -> u64 {
        let [finding, comparing] = self.stages().map(|(fixed, one)| one.saturating_mul(trees as u64).saturating_add(fixed));
        finding.max(comparing)
    }

    /// The most memory of both stages of a check: once, and for each tree. First the levels of each tree are found one after the other,
    /// with its children and, if most vertices are on one level, with that level as it arrives and as the frontier. Then all edges are
    /// compared with the levels and parents of all trees.
    fn stages(&self) -> [(u64, u64); 2] {
        let (n, owned) = (self.part.vertices() as u64, self.part.input_degrees().len() as u64);
        [(12 * n + 20 * owned, 4 * n), (4 * n, 8 * n + 5 * owned)]
    }

    /// The part of a whole tree that belongs to this rank. All ranks pass the same tree, as read from a file. All get the same error if a
    /// vertex that no rank owns, since it has no edge, has a wrong parent.
    ///
    /// # Panics
    /// If `parents` does not have one entry for every vertex, or a source is not a vertex.
    pub fn tree_of(&self, sources: &[Vertex], parents: &[Vertex]) -> Result<RankTree, String> {
        assert_eq!(parents.len(), self.part.vertices(), "a parent for every vertex");
        let alone = self.part.without_owner(sources);
        let fault = parents.iter().zip(0..).find_map(|(&parent, vertex)| match parent {
            _ if self.part.has_owner(vertex) => None,
            parent if alone.binary_search(&vertex).is_ok() => fault_of_source(vertex, parent),
            NONE => None,
            parent => Some(format!("vertex {vertex} has parent {parent}, but no edge joins them")),
        });
        let all = texts(self.ranks, fault.as_deref().unwrap_or("")).map_err(|error| error.to_string())?;
        if let Some(fault) = all.into_iter().find(|fault| !fault.is_empty()) {
            return Err(fault);
        }
        let mut own = vec![NONE; self.part.input_degrees().len()];
        for (row, vertex) in self.part.own_vertices() {
            own[row] = parents[vertex as usize];
        }
        Ok(RankTree { sources: sources.to_vec(), parents: own })
    }

    /// The parents of all vertices on rank 0, and none on the other ranks: the reverse of [`tree_of`](Self::tree_of). All ranks call it.
    ///
    /// # Errors
    /// [`ClusterError`], on all ranks, if rank 0 has too little memory.
    pub fn parents(&self, tree: &RankTree) -> Result<Slab<Vertex>, ClusterError> {
        let (part, ranks) = (self.part, self.ranks);
        let (is_first, size) = (ranks.rank() == 0, ranks.size());
        let n = if is_first { part.vertices() } else { 0 };
        let room = memory::check_available(4 * n as u64, "the whole tree").and_then(|()| Slab::zeroed(n, "the whole tree"));
        let mut parents: Slab<Vertex> = all_or_none(ranks, room)?;
        parents.fill(NONE);
        if is_first {
            // Also those that no rank owns.
            tree.sources.iter().for_each(|&source| parents[source as usize] = source);
        }
        let turn = (GATHERED / size).max(1);
        let mut own = tree.parents.chunks(turn);
        let mut vertices: Vec<_> = (0..size).map(|rank| part.vertices_of(rank)).collect();
        for _ in (0..64 * part.words.div_ceil(size)).step_by(turn) {
            let mut rows = own.next().unwrap_or_default().to_vec();
            rows.resize(turn, NONE);
            let all = gathered(ranks, &rows);
            if is_first {
                for (rows, vertices) in all.chunks_exact(turn).zip(&mut vertices) {
                    rows.iter().zip(vertices).for_each(|(&parent, (_, vertex))| parents[vertex as usize] = parent);
                }
            }
        }
        Ok(parents)
    }

    /// The levels of all vertices in a tree that has passed, on every rank: 0 for a source, [`NONE`] if not reached.
    ///
    /// # Errors
    /// [`ClusterError::Message`].
    pub fn levels(&self, tree: &RankTree) -> Result<Vec<u32>, ClusterError> {
        Ok(self.find_levels(tree)?.0.of)
    }

    /// Checks `trees` against the edges that the part was built from.
    ///
    /// # Errors
    /// [`ClusterError`], on all ranks if one of them has too little memory; [`ClusterError::Message`].
    pub fn validate<'e, E: EdgeStream + 'e>(
        &self,
        edges: impl Into<Edges<'e, E>>,
        trees: &[RankTree],
    ) -> Result<Vec<Verdict>, ClusterError> {
        let edges = &edges.into();
        let room = memory::check_available(self.bytes(trees.len()), "levels of the trees");
        all_or_none(self.ranks, room)?;
        let mut levels = Vec::with_capacity(trees.len());
        let mut faults: Vec<Option<String>> = Vec::with_capacity(trees.len());
        for tree in trees {
            let (found, fault) = self.find_levels(tree)?;
            levels.push(found);
            faults.push(fault);
        }
        let deepest = levels.iter().map(|levels| levels.depth).max().unwrap_or(0);
        let passed =
            if deepest <= u8::DEEPEST { self.pass::<u8, _>(edges, trees, &levels)? } else { self.pass::<u32, _>(edges, trees, &levels)? };
        let mut verdicts = Vec::with_capacity(trees.len());
        for (k, (tree, levels)) in trees.iter().zip(&levels).enumerate() {
            let mut fault = faults[k].take();
            let noted = passed.faults[k].lock().unwrap_or_else(PoisonError::into_inner).take();
            fault = fault.or(noted).or_else(|| self.stranger(tree, levels, |row| passed.confirmed[row * trees.len() + k].load(Relaxed)));
            // All ranks report the fault of the lowest rank that has one.
            let all = texts(self.ranks, fault.as_deref().unwrap_or(""))?;
            let [edges, self_loops] = &passed.counts[k];
            let (edges, self_loops) = (sum(self.ranks, edges.load(Relaxed)), sum(self.ranks, self_loops.load(Relaxed)));
            verdicts.push(match all.into_iter().find(|fault| !fault.is_empty()) {
                Some(fault) => Err(fault),
                None => Ok(socbfs_io::validate::Validated {
                    root: tree.sources.first().copied().unwrap_or(NONE),
                    reached: levels.of.iter().filter(|&&level| level != NONE).count() as u64,
                    levels: if tree.sources.is_empty() { 0 } else { levels.depth + 1 },
                    edges: if self.part.counts().both_directions { edges / 2 } else { edges },
                    self_loops,
                }),
            });
        }
        Ok(verdicts)
    }

    /// Visits all edges once for all trees. The levels of a vertex in all trees are adjacent in memory, and so are its parents, so an edge
    /// reads memory at few places, however many trees there are.
    fn pass<L: Stored, E: EdgeStream>(&self, edges: &Edges<'_, E>, trees: &[RankTree], levels: &[Levels]) -> Result<Passed, ClusterError> {
        let (size, n) = (trees.len(), self.part.vertices());
        let mut level = vec![L::ABSENT; n * size];
        level.par_chunks_mut(size.max(1)).enumerate().for_each(|(v, of_vertex)| {
            of_vertex.iter_mut().zip(levels).for_each(|(level, levels)| *level = L::from(levels.of[v]));
        });
        let owned = trees.first().map_or(0, |tree| tree.parents.len());
        let mut parents = vec![NONE; owned * size];
        parents.par_chunks_mut(size.max(1)).enumerate().for_each(|(row, of_row)| {
            of_row.iter_mut().zip(trees).for_each(|(parent, tree)| *parent = tree.parents[row]);
        });
        let passed = Passed {
            counts: trees.iter().map(|_| Default::default()).collect(),
            faults: trees.iter().map(|_| Mutex::default()).collect(),
            confirmed: parents.iter().map(|_| AtomicBool::new(false)).collect(),
        };
        let rows = self.rows_of_originals();
        let confirm = |row: Vertex, other: Vertex| {
            let places = row as usize * size..(row as usize + 1) * size;
            let of_row = &parents[places.clone()];
            // `fold` takes no branch per entry, so that one instruction can compare many.
            if of_row.iter().fold(false, |any, &parent| any | (parent == other)) {
                for (&parent, confirmed) in of_row.iter().zip(&passed.confirmed[places]) {
                    if parent == other {
                        confirmed.store(true, Relaxed);
                    }
                }
            }
        };
        // If both directions are listed, the other owner gets the reverse of an edge.
        let needs = if self.part.counts().both_directions { Needs::First } else { Needs::Both };
        // A vertex without an owner has no edges but self-loops. Rank 0 counts them.
        let (of_graph, is_first) = (self.part, self.part.deal.rank == 0);
        let owner = |v: Vertex| Some(if of_graph.has_owner(v) { of_graph.deal.owner(of_graph.internal(v)) } else { 0 });
        edges.for_each_needed(self.ranks, needs, owner, |edges| {
            (0..edges.parts()).into_par_iter().with_max_len(1).for_each(|part| {
                let mut own = vec![[0u64; 2]; size];
                edges.for_each_of(part, |u, v| {
                    // The owner of the first end counts the edge and compares levels; the owner of each end confirms parents.
                    let (row_u, row_v) = (rows[u as usize], rows[v as usize]);
                    if row_u != NONE {
                        let (of_u, of_v) = (&level[u as usize * size..][..size], &level[v as usize * size..][..size]);
                        for (own, &level) in own.iter_mut().zip(of_u) {
                            own[usize::from(u == v)] += u64::from(level != L::ABSENT);
                        }
                        if of_u.iter().zip(of_v).fold(false, |any, (&u, &v)| any | u.apart(v)) {
                            for (k, levels) in levels.iter().enumerate().filter(|&(k, _)| of_u[k].apart(of_v[k])) {
                                note(&passed.faults[k], || fault_of_edge(u, v, levels.of[u as usize], levels.of[v as usize]));
                            }
                        }
                        confirm(row_u, v);
                    } else if u == v && is_first && !of_graph.has_owner(u) {
                        for (own, levels) in own.iter_mut().zip(levels) {
                            own[1] += u64::from(levels.of[u as usize] != NONE);
                        }
                    }
                    if row_v != NONE {
                        confirm(row_v, u);
                    }
                });
                for (sums, own) in passed.counts.iter().zip(own) {
                    for (sum, own) in sums.iter().zip(own) {
                        sum.fetch_add(own, Relaxed);
                    }
                }
            })
        })?;
        Ok(passed)
    }

    /// Rows of this rank by original vertex; [`NONE`] for vertices of other ranks.
    fn rows_of_originals(&self) -> Vec<Vertex> {
        let mut rows = vec![NONE; self.part.vertices()];
        for (row, original) in self.part.own_vertices() {
            rows[original as usize] = row as Vertex;
        }
        rows
    }

    /// The fault of a vertex of this rank that no edge joins to its parent.
    fn stranger(&self, tree: &RankTree, levels: &Levels, confirmed: impl Fn(usize) -> bool) -> Option<String> {
        let is_stranger =
            |&(row, vertex): &(usize, Vertex)| levels.of[vertex as usize] != 0 && tree.parents[row] != NONE && !confirmed(row);
        let (row, vertex) = self.part.own_vertices().find(is_stranger)?;
        Some(format!("vertex {vertex} has parent {}, but no edge joins them", tree.parents[row]))
    }

    /// Computes levels from parents. Also returns a fault, such as a vertex that has a parent but no level: its parents form a cycle, or do
    /// not lead to a source.
    ///
    /// # Errors
    /// [`ClusterError::Message`].
    fn find_levels(&self, tree: &RankTree) -> Result<(Levels, Option<String>), ClusterError> {
        let (part, n) = (self.part, self.part.vertices());
        let mut fault = None;
        let mut level = vec![NONE; n];
        let mut frontier = Vec::new();
        for &source in &tree.sources {
            if std::mem::take(&mut level[source as usize]) != 0 {
                frontier.push(source);
            }
        }
        // Parents with their children.
        let mut pairs = Vec::new();
        for (row, vertex) in part.own_vertices() {
            match tree.parents[row] {
                parent if level[vertex as usize] == 0 => fault = fault_of_source(vertex, parent).or(fault),
                NONE => {}
                parent if parent as usize >= n => fault = Some(format!("vertex {vertex} has parent {parent}, which is not a vertex")),
                parent => pairs.push([parent, vertex]),
            }
        }
        let children = all_or_none(self.ranks, grouped(pairs.iter().copied(), n))?;
        let (mut depth, mut found) = (0, 0);
        loop {
            let mut own = Vec::new();
            for &v in &frontier {
                own.extend_from_slice(children.neighbours(v));
            }
            found += own.len();
            // MPI counts bytes in signed 32-bit numbers, so large levels are exchanged in pieces.
            let rounds = max(self.ranks, own.len().div_ceil(self.piece) as u64);
            if rounds == 0 {
                break;
            }
            depth += 1;
            frontier.clear();
            let mut pieces = own.chunks(self.piece);
            for _ in 0..rounds {
                let arrived = gathered_varying(self.ranks, pieces.next().unwrap_or_default(), self.piece)?;
                for (rank, vertices) in arrived.of_ranks() {
                    for &v in vertices {
                        // No vertex is found twice: a vertex has one parent, and a source is the child of none.
                        let found = level.get_mut(v as usize).filter(|level| **level == NONE);
                        *found.ok_or(ClusterError::Message { rank })? = depth;
                        frontier.push(v);
                    }
                }
            }
        }
        if found < pairs.len() && fault.is_none() {
            let astray = pairs.iter().find(|[_, child]| level[*child as usize] == NONE);
            fault = astray.map(|[parent, child]| {
                format!("from vertex {child} its parent {parent} does not lead to the root: a cycle, or a vertex that was not reached")
            });
        }
        Ok((Levels { of: level, depth }, fault))
    }
}

/// Describes the fault of a source whose parent is not itself.
fn fault_of_source(source: Vertex, parent: Vertex) -> Option<String> {
    match parent {
        NONE => Some(format!("the root {source} has no parent; its parent is itself")),
        parent => (parent != source).then(|| format!("the root {source} has parent {parent} instead of itself")),
    }
}

/// Describes the fault of an edge whose ends are on levels more than one apart.
fn fault_of_edge(u: Vertex, v: Vertex, level_u: u32, level_v: u32) -> String {
    if (level_u == NONE) != (level_v == NONE) {
        format!("the edge {u} - {v} leads from a vertex that was reached to one that was not: the tree does not span the component")
    } else {
        format!("the ends of the edge {u} - {v} are on levels {level_u} and {level_v}: more than one apart")
    }
}

fn note(fault: &Mutex<Option<String>>, text: impl FnOnce() -> String) {
    let mut fault = fault.lock().unwrap_or_else(PoisonError::into_inner);
    if fault.is_none() {
        *fault = Some(text());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ThreadRanks,
        damaged::{Damaged, Operation},
    };
    use socbfs::graph::{EdgeList, EdgeSlice, GraphError, Listing, Order};

    /// The leaves of a star are one level, and each rank sends two or three of its vertices at a time.
    #[test]
    fn a_large_level_is_exchanged_in_pieces() {
        let mut star: Vec<[Vertex; 2]> = (1..300).map(|v| [0, v]).collect();
        star.push([299, 300]);
        let edges = EdgeList::new(302, star, Listing::Once).unwrap();
        ThreadRanks::run(3, |ranks| {
            let part = Part::build(&edges, Order::Auto, ranks).unwrap();
            let parent = |vertex| if vertex == 300 { 299 } else { 0 };
            let mut tree = RankTree { sources: vec![0], parents: vec![NONE; part.input_degrees().len()] };
            part.own_vertices().for_each(|(row, vertex)| tree.parents[row] = parent(vertex));
            for piece in [2, 3, MOST_AT_ONCE] {
                let validator = ClusterValidator { piece, ..ClusterValidator::new(&part, ranks) };
                let levels = validator.levels(&tree).unwrap();
                for vertex in 0..301 {
                    assert_eq!(levels[vertex], [0, 1, 2][usize::from(vertex > 0) + usize::from(vertex == 300)], "vertex {vertex}");
                }
                let found = validator.validate(&edges, std::slice::from_ref(&tree)).unwrap().remove(0).unwrap();
                assert_eq!((found.reached, found.levels, found.edges), (301, 3, 300));
            }
        });
    }
    /// The root has no edge to another vertex, so in the order of degrees no rank owns it.
    #[test]
    fn self_loops_of_a_root_without_an_edge_are_counted() {
        let entries = vec![[0, 1], [3, 3], [1, 2], [3, 3], [2, 2], [2, 0]];
        let all = EdgeList::new(5, entries.clone(), Listing::Once).unwrap();
        for (size, order) in [1, 2, 3].into_iter().flat_map(|size| [(size, Order::Original), (size, Order::Degree)]) {
            ThreadRanks::run(size, |ranks| {
                let begin = |rank: usize| entries.len() * rank / size;
                let slice =
                    EdgeSlice::new(EdgeList::new(5, entries.clone(), Listing::Once).unwrap(), begin(ranks.rank())..begin(ranks.rank() + 1));
                let part = Part::build(&all, order, ranks).unwrap();
                let validator = ClusterValidator::new(&part, ranks);
                for (root, parents, loops) in [(3, [NONE, NONE, NONE, 3, NONE], 2), (0, [0, 0, 0, NONE, NONE], 1)] {
                    let tree = [validator.tree_of(&[root], &parents).unwrap()];
                    for verdicts in [validator.validate(&all, &tree), validator.validate(&slice, &tree)] {
                        let found = verdicts.unwrap().remove(0).unwrap();
                        assert_eq!(found.self_loops, loops, "root {root}, {order:?}, {size} ranks");
                    }
                }
            });
        }
    }

    #[test]
    fn as_many_trees_are_checked_at_a_time_as_fit() {
        let edges = EdgeList::new(1000, (0..1000).map(|v| [v, (v + 1) % 1000]).collect(), Listing::Once).unwrap();
        ThreadRanks::run(1, |ranks| {
            let part = Part::build(&edges, Order::Original, ranks).unwrap();
            let validator = ClusterValidator::new(&part, ranks);
            let (n, owned) = (1000, part.input_degrees().len() as u64);
            // For each tree two arrays of levels, two of parents, and whether these are confirmed; and the rows of all vertices.
            let ten = 10 * (8 * n + 9 * owned) + 4 * n;
            assert_eq!([ten, ten - 1].map(|bytes| validator.fitting(bytes)), [10, 9]);
            assert_eq!(validator.bytes(10), ten - 10 * 4 * owned);
            // A single tree needs most memory while its levels are found.
            let one = 16 * n + 24 * owned;
            assert_eq!([one, one - 1].map(|bytes| validator.fitting(bytes)), [1, 0]);
            assert_eq!(validator.bytes(1), one - 4 * owned);
        });
    }

    /// One rank has to check far more trees than fit its memory: the others do not wait for it.
    #[test]
    fn all_ranks_fail_if_one_has_too_little_memory() {
        let edges = EdgeList::new(1 << 20, vec![[0, 1]], Listing::Once).unwrap();
        let errors = ThreadRanks::run(2, |ranks| {
            let part = Part::build(&edges, Order::Degree, ranks).unwrap();
            let trees = vec![RankTree { sources: vec![0], parents: Vec::new() }; [1, 1 << 20][ranks.rank()]];
            ClusterValidator::new(&part, ranks).validate(&edges, &trees).unwrap_err()
        });
        assert!(matches!(errors[0], ClusterError::SetUp { rank: 1, .. }), "{errors:?}");
        assert!(matches!(errors[1], ClusterError::Graph(GraphError::OutOfMemory(_))), "{errors:?}");
    }

    /// Validates the tree of a cycle of five vertices on a rank with this damage.
    fn validate(damage: impl Fn(Operation, &mut [u8]) + Sync) -> Result<(), ClusterError> {
        let edges = EdgeList::new(5, (0..5).map(|v| [v, (v + 1) % 5]).collect(), Listing::Once).unwrap();
        let of_ranks = ThreadRanks::run(1, |ranks| {
            let part = Part::build(&edges, Order::Original, ranks).unwrap();
            let ranks = Damaged { ranks, damage: &damage };
            let validator = ClusterValidator::new(&part, &ranks);
            let tree = validator.tree_of(&[0], &[0, 0, 1, 4, 0]).unwrap();
            let verdict = validator.validate(&edges, &[tree])?.remove(0);
            assert_eq!(verdict.unwrap().reached, 5);
            Ok(())
        });
        of_ranks.into_iter().next().unwrap()
    }

    #[test]
    fn damaged_levels_are_errors() {
        validate(|_, _| ()).unwrap();
        // The lengths of the two vertices of the first level: 8 bytes.
        for length in [u64::MAX, i32::MAX as u64 + 1, 1 << 60] {
            let damaged = validate(|operation, bytes| {
                if operation == Operation::AllGather && bytes[..] == 8_u64.to_le_bytes() {
                    bytes.copy_from_slice(&length.to_le_bytes());
                }
            });
            assert!(matches!(damaged, Err(ClusterError::Message { rank: 0 })), "{length}");
        }
        // A vertex of the first level: the root, which has a level, and numbers that are not vertices.
        for vertex in [0, 5, NONE] {
            let damaged = validate(|operation, bytes| {
                if operation == Operation::AllGatherVarying && !bytes.is_empty() {
                    bytes[..4].copy_from_slice(&u32::to_le_bytes(vertex));
                }
            });
            assert!(matches!(damaged, Err(ClusterError::Message { rank: 0 })), "{vertex}");
        }
    }
}
