//! The serial reference: the simplest search, with which the others are compared.

use socbfs::{
    bfs::BfsResult,
    graph::{EdgeList, GraphError, NONE, Vertex, buckets},
};

/// Breadth-first search with a queue on one thread. It shares no code with the layout and the engines: its adjacency has the order of the
/// edge list, with self-loops and repeats.
///
/// ```
/// use socbfs::graph::{EdgeList, Listing, NONE};
/// use socbfs_io::validate::SerialBfs;
///
/// let edges = EdgeList::new(4, vec![[0, 1], [1, 2]], Listing::Once)?;
/// let tree = SerialBfs::new(&edges, false)?.search(0).unwrap();
/// assert_eq!((tree.parent, tree.level), (vec![0, 0, 1, NONE], vec![0, 1, 2, NONE]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SerialBfs {
    offsets: Vec<usize>,
    targets: Vec<Vertex>,
}

impl SerialBfs {
    /// Sorts the adjacency of `edges` by counting: 8 bytes per vertex and 4 per arc. An undirected edge is two arcs.
    ///
    /// # Errors
    /// [`GraphError::VertexOutOfRange`] with the first edge that names a vertex the graph does not have.
    pub fn new(edges: &EdgeList, directed: bool) -> Result<Self, GraphError> {
        buckets::check_range(edges)?;
        let directed = directed && !edges.listing().is_mirrored(directed);
        let all = 0..edges.len();
        // `ends[v + 1]` first counts the arcs of v. After the sums, `ends[v]` is the start of the arcs of v; each arc that is placed moves
        // it on, up to their end.
        let mut ends = vec![0_usize; edges.vertices() + 1];
        edges.for_each(all.clone(), |u, v| {
            ends[u as usize + 1] += 1;
            ends[v as usize + 1] += usize::from(!directed);
        });
        for v in 1..ends.len() {
            ends[v] += ends[v - 1];
        }
        let offsets = ends.clone();
        let mut targets = vec![0; ends[edges.vertices()]];
        let mut place = |u: Vertex, v: Vertex| {
            targets[ends[u as usize]] = v;
            ends[u as usize] += 1;
        };
        edges.for_each(all, |u, v| {
            place(u, v);
            if !directed {
                place(v, u);
            }
        });
        Ok(Self { offsets, targets })
    }

    /// The tree from `root`; `None` if `root` is not a vertex of the graph.
    pub fn search(&self, root: Vertex) -> Option<BfsResult> {
        let vertices = self.offsets.len() - 1;
        if root as usize >= vertices {
            return None;
        }
        let (mut parent, mut level) = (vec![NONE; vertices], vec![NONE; vertices]);
        (parent[root as usize], level[root as usize]) = (root, 0);
        let mut queue = vec![root];
        let mut head = 0;
        while let Some(&u) = queue.get(head) {
            head += 1;
            for &v in &self.targets[self.offsets[u as usize]..self.offsets[u as usize + 1]] {
                if parent[v as usize] == NONE {
                    (parent[v as usize], level[v as usize]) = (u, level[u as usize] + 1);
                    queue.push(v);
                }
            }
        }
        Some(BfsResult { root, parent, level })
    }
}
