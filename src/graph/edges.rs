//! Edge lists as files and generators give them.

use std::ops::Range;

use rayon::prelude::*;

use super::{GraphError, MAX_VERTICES, Vertex};
use crate::{
    memory::Slab,
    words::{numbered, plural},
};

/// How the source of an edge list lists an undirected edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Listing {
    /// Once, in either direction (edges of a generator, or a Graph500 edge list). In a directed graph, an entry is one arc, from its source
    /// to its target.
    Once,
    /// Once for both directions (by the format: MatrixMarket stores one triangle of a symmetric matrix, PACE's `p tw` an undirected graph).
    /// In a directed graph, an entry is two arcs.
    Symmetric,
    /// Twice, once in each direction (by the format: METIS, an undirected `.sg`).
    BothDirections,
    /// Not determined by the format; the builder finds out (see [`Layout::build`](super::Layout::build)).
    Unknown,
}

impl Listing {
    /// Whether every undirected edge is listed once.
    pub fn is_once(self) -> bool {
        matches!(self, Self::Once | Self::Symmetric)
    }

    /// Whether each entry is an arc in both directions although the graph is `directed`.
    pub fn is_mirrored(self, directed: bool) -> bool {
        directed && self == Self::Symmetric
    }
}

/// Edges exactly as a file or a generator lists them, with self-loops, repeats and original vertex numbers.
///
/// ```
/// use socbfs::graph::{EdgeList, Listing};
///
/// // A square; vertex 4 has no edge.
/// let edges = EdgeList::new(5, vec![[0, 1], [1, 2], [2, 3], [3, 0]], Listing::Once)?;
/// assert_eq!((edges.vertices(), edges.len()), (5, 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EdgeList {
    vertices: usize,
    entries: Entries,
    listing: Listing,
}

/// Storage of the entries of an [`EdgeList`].
#[derive(Debug)]
enum Entries {
    Pairs(Vec<[Vertex; 2]>),
    Rows(SerializedRows),
}

impl EdgeList {
    /// Takes `edges` over `0..vertices`.
    ///
    /// # Errors
    /// [`GraphError::TooManyVertices`]. Ends out of range are found by the builder, which reads every edge anyway.
    pub fn new(vertices: usize, edges: Vec<[Vertex; 2]>, listing: Listing) -> Result<Self, GraphError> {
        if vertices > MAX_VERTICES {
            return Err(GraphError::TooManyVertices(vertices as u64));
        }
        Ok(Self { vertices, entries: Entries::Pairs(edges), listing })
    }

    /// Takes adjacency rows as they lie in a file, without copying them: one entry per target, row by row.
    pub fn from_rows(rows: SerializedRows, listing: Listing) -> Self {
        Self { vertices: rows.vertices, entries: Entries::Rows(rows), listing }
    }

    /// Number of vertices, isolated ones included.
    pub fn vertices(&self) -> usize {
        self.vertices
    }

    /// Number of entries as listed (an undirected edge that is listed in both directions counts twice).
    pub fn len(&self) -> usize {
        match &self.entries {
            Entries::Pairs(pairs) => pairs.len(),
            Entries::Rows(rows) => rows.entries,
        }
    }

    /// Whether no edge is listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the source lists an undirected edge.
    pub fn listing(&self) -> Listing {
        self.listing
    }

    /// Calls `visit(source, target)` for the entries `range` in the order of the source.
    ///
    /// # Panics
    /// If `range` reaches beyond [`len`](Self::len).
    #[inline]
    pub fn for_each(&self, range: Range<usize>, mut visit: impl FnMut(Vertex, Vertex)) {
        match &self.entries {
            Entries::Pairs(pairs) => {
                for &[source, target] in &pairs[range] {
                    visit(source, target);
                }
            }
            Entries::Rows(rows) => rows.for_each(range, visit),
        }
    }
}

/// Adjacency rows as they lie in a file: `vertices + 1` offsets (64-bit little-endian) somewhere in the bytes, directly followed by the
/// targets (32-bit little-endian). Neither array needs to be aligned. Both are decoded while they are visited.
///
/// Invariant (checked once by [`SerializedRows::new`]): offsets start at 0, never decrease and end at `entries`; targets are below
/// `vertices`.
#[derive(Debug)]
pub struct SerializedRows {
    bytes: Slab<u8>,
    offsets_at: usize,
    vertices: usize,
    entries: usize,
    /// The entries whose targets are held: all, or the slice of a rank.
    held: Range<usize>,
}

/// A reason why serialised rows are not a graph. Positions are byte offsets into the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// More vertices than 32-bit numbers can name.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The arrays don't fit into the bytes.
    #[error(
        "the arrays of {} and {} need more than the file's {bytes} bytes",
        plural(*.vertices, "vertex", "vertices"),
        plural(*.entries, "entry", "entries")
    )]
    TooShort {
        /// Number of vertices.
        vertices: u64,
        /// Number of entries.
        entries: u64,
        /// Size of the file in bytes.
        bytes: u64,
    },
    /// An offset is out of order or out of range.
    #[error("the offset of vertex {vertex} is {offset}, which is not a position in 0..={entries} at or after the offset before it")]
    Offset {
        /// Position in the file.
        byte: u64,
        /// Vertex of the offset.
        vertex: usize,
        /// Value of the offset.
        offset: u64,
        /// Number of entries.
        entries: usize,
    },
    /// A target is not a vertex.
    #[error("entry {entry} names vertex {target}, but the graph has {}", numbered(*.vertices as u64))]
    Target {
        /// Position in the file.
        byte: u64,
        /// Index of the entry.
        entry: usize,
        /// The vertex that the entry names.
        target: u64,
        /// Number of vertices.
        vertices: usize,
    },
}

/// Number of values that one task checks.
const BLOCK: usize = 1 << 16;

impl SerializedRows {
    /// Takes `bytes` that hold `vertices + 1` offsets at `offsets_at`, directly followed by the targets of the entries `held`: all
    /// `entries`, or a slice of them; then the caller must not read the others. Checks every offset and every target, in parallel on the
    /// current rayon pool.
    ///
    /// # Errors
    /// [`RowsError`].
    pub fn new(held: Range<usize>, bytes: Slab<u8>, offsets_at: usize, vertices: u64, entries: u64) -> Result<Self, RowsError> {
        if vertices > MAX_VERTICES as u64 {
            return Err(GraphError::TooManyVertices(vertices).into());
        }
        let targets = (held.len() as u64).checked_mul(4);
        let need = targets.and_then(|targets| targets.checked_add((vertices + 1) * 8)?.checked_add(offsets_at as u64));
        if need.is_none_or(|need| need > bytes.len() as u64) {
            return Err(RowsError::TooShort { vertices, entries, bytes: bytes.len() as u64 });
        }
        let entries = usize::try_from(entries).unwrap_or(usize::MAX);
        let rows = Self { bytes, offsets_at, vertices: vertices as usize, entries, held };
        rows.check()?;
        Ok(rows)
    }

    fn check(&self) -> Result<(), RowsError> {
        let targets = self.targets();
        let first = self.held.start;
        check_offsets(self.offsets(), self.entries, self.offsets_at)?;
        let strange = targets.par_chunks(BLOCK).enumerate().find_map_first(|(block, part)| {
            // The first pass takes the maximum, since a loop without an exit is vectorised.
            let largest = part.iter().map(|&target| Vertex::from_le_bytes(target)).max()?;
            if (largest as usize) < self.vertices {
                return None;
            }
            let strange = |&target: &[u8; 4]| Vertex::from_le_bytes(target) as usize >= self.vertices;
            part.iter().position(strange).map(|at| first + block * BLOCK + at)
        });
        match strange {
            None => Ok(()),
            Some(entry) => {
                let byte = (self.offsets_at + 8 * (self.vertices + 1) + 4 * entry) as u64;
                Err(RowsError::Target {
                    byte,
                    entry,
                    target: Vertex::from_le_bytes(targets[entry - first]).into(),
                    vertices: self.vertices,
                })
            }
        }
    }

    fn offsets(&self) -> &[[u8; 8]] {
        arrays(&self.bytes[self.offsets_at..], self.vertices + 1)
    }

    /// The targets that are held.
    fn targets(&self) -> &[[u8; 4]] {
        arrays(&self.bytes[self.offsets_at + 8 * (self.vertices + 1)..], self.held.len())
    }

    #[inline]
    fn for_each(&self, range: Range<usize>, mut visit: impl FnMut(Vertex, Vertex)) {
        let (offsets, first) = (self.offsets(), self.held.start);
        let targets = &self.targets()[..range.end - first];
        let offset = |vertex: usize| u64::from_le_bytes(offsets[vertex]) as usize;
        let mut entry = range.start;
        // The last row that starts at or before the first entry. This skips empty rows before it.
        let mut row = offsets.partition_point(|&offset| u64::from_le_bytes(offset) as usize <= entry).saturating_sub(1);
        while entry < range.end {
            let end = offset(row + 1).min(range.end);
            for &target in &targets[entry - first..end - first] {
                visit(row as Vertex, Vertex::from_le_bytes(target));
            }
            entry = end;
            row += 1;
        }
    }
}

/// Checks offsets that lie at byte `at` of a file.
pub fn check_offsets(offsets: &[[u8; 8]], entries: usize, at: usize) -> Result<(), RowsError> {
    let vertices = offsets.len() - 1;
    let bad_offset = |vertex: usize| {
        let offset = u64::from_le_bytes(offsets[vertex]);
        RowsError::Offset { byte: (at + 8 * vertex) as u64, vertex, offset, entries }
    };
    if u64::from_le_bytes(offsets[0]) != 0 {
        return Err(bad_offset(0));
    }
    let rising = |pair: &[[u8; 8]]| u64::from_le_bytes(pair[0]) <= u64::from_le_bytes(pair[1]);
    let fall = (0..vertices.div_ceil(BLOCK)).into_par_iter().find_map_first(|block| {
        let start = block * BLOCK;
        let part = &offsets[start..=(start + BLOCK).min(vertices)];
        part.windows(2).position(|pair| !rising(pair)).map(|at| start + at + 1)
    });
    if let Some(vertex) = fall {
        return Err(bad_offset(vertex));
    }
    // The offsets never decrease, so the last one bounds them all.
    if u64::from_le_bytes(offsets[vertices]) == entries as u64 { Ok(()) } else { Err(bad_offset(vertices)) }
}

/// The first `count` arrays of `N` bytes in `bytes`.
pub fn arrays<const N: usize>(bytes: &[u8], count: usize) -> &[[u8; N]] {
    let bytes = &bytes[..count * N];
    // SAFETY: the pointer comes from a slice of count * N initialised bytes, [u8; N] has size N and alignment 1, and the
    // result borrows from `bytes`.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(offsets: &[u64], targets: &[u32]) -> Result<SerializedRows, RowsError> {
        let mut bytes = vec![7_u8; 3];
        bytes.extend(offsets.iter().flat_map(|offset| offset.to_le_bytes()));
        bytes.extend(targets.iter().flat_map(|target| target.to_le_bytes()));
        SerializedRows::new(0..targets.len(), Slab::copy_of(&bytes, "rows").unwrap(), 3, offsets.len() as u64 - 1, targets.len() as u64)
    }

    #[test]
    fn rows_are_visited_in_order_from_any_entry() {
        let list = EdgeList::from_rows(rows(&[0, 0, 2, 2, 5, 5], &[4, 0, 1, 2, 3]).unwrap(), Listing::Unknown);
        let all = [(1, 4), (1, 0), (3, 1), (3, 2), (3, 3)];
        assert_eq!((list.vertices(), list.len(), list.is_empty()), (5, 5, false));
        for start in 0..=5 {
            for end in start..=5 {
                let mut seen = Vec::new();
                list.for_each(start..end, |u, v| seen.push((u, v)));
                assert_eq!(seen, all[start..end]);
            }
        }
    }

    #[test]
    fn malformed_rows_are_refused() {
        assert_eq!(rows(&[1, 1], &[0]).unwrap_err(), RowsError::Offset { byte: 3, vertex: 0, offset: 1, entries: 1 });
        assert_eq!(rows(&[0, 2, 1], &[0]).unwrap_err(), RowsError::Offset { byte: 19, vertex: 2, offset: 1, entries: 1 });
        assert_eq!(rows(&[0, 2], &[0]).unwrap_err(), RowsError::Offset { byte: 11, vertex: 1, offset: 2, entries: 1 });
        assert_eq!(rows(&[0, 2], &[0, 1]).unwrap_err(), RowsError::Target { byte: 23, entry: 1, target: 1, vertices: 1 });
        let short = |vertices, entries| {
            let held = 0..usize::try_from(entries).unwrap();
            SerializedRows::new(held, Slab::zeroed(24, "rows").unwrap(), 0, vertices, entries).unwrap_err()
        };
        assert_eq!(short(2, 1), RowsError::TooShort { vertices: 2, entries: 1, bytes: 24 });
        assert_eq!(short(1, u64::MAX), RowsError::TooShort { vertices: 1, entries: u64::MAX, bytes: 24 });
        assert_eq!(short(1 << 40, 0), GraphError::TooManyVertices(1 << 40).into());
    }

    #[test]
    fn rows_without_vertices_are_an_empty_graph() {
        assert!(EdgeList::from_rows(rows(&[0], &[]).unwrap(), Listing::BothDirections).is_empty());
    }
}
