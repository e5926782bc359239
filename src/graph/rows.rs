//! Adjacency rows in the memory of another program: compressed sparse rows of SciPy or C.

use super::{EdgeStream, GraphError, Listing, MAX_VERTICES, RowsError, Vertex, stream::PART};
use crate::memory::Pod;

/// Integers of 32 or 64 bits. A negative number, read as unsigned, is out of every range checked here and is refused.
#[derive(Debug, Clone, Copy)]
pub enum Numbers<'a> {
    /// 32-bit integers.
    Bits32(&'a [u32]),
    /// 64-bit integers.
    Bits64(&'a [u64]),
}

impl Numbers<'_> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Bits32(numbers) => numbers.len(),
            Self::Bits64(numbers) => numbers.len(),
        }
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at index `at`.
    ///
    /// # Panics
    /// If `at` is out of range.
    #[inline]
    pub fn get(&self, at: usize) -> u64 {
        match self {
            Self::Bits32(numbers) => read_once(&numbers[at]).into(),
            Self::Bits64(numbers) => read_once(&numbers[at]),
        }
    }
}

/// Reads a number that another thread of the program may change at any time. The compiler must not read it a second time after it was
/// checked.
#[inline(always)]
fn read_once<T: Pod>(number: &T) -> T {
    // SAFETY: a reference is valid for reading, and every value of these bits is a number.
    unsafe { std::ptr::from_ref(number).read_volatile() }
}

/// Compressed sparse rows that are read in place: the targets of vertex `v` are `targets[offsets[v]..offsets[v + 1]]`. An entry is one
/// listed edge; [`Layout::build_from`](super::Layout::build_from) sorts the entries into arrays of its own.
///
/// ```
/// use socbfs::graph::{BuildOptions, Layout, Listing, Numbers, RowArrays};
///
/// // The path 0 - 1 - 2, every edge in both directions, in the arrays of another program.
/// let (offsets, targets) = ([0_u64, 1, 3, 4], [1_u32, 0, 2, 1]);
/// let rows = RowArrays::new(Numbers::Bits64(&offsets), Numbers::Bits32(&targets), Listing::BothDirections)?;
/// let layout = Layout::build_from(&rows, &BuildOptions::default())?;
/// assert_eq!(layout.stats().edges, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RowArrays<'a> {
    offsets: Numbers<'a>,
    targets: Numbers<'a>,
    listing: Listing,
}

impl<'a> RowArrays<'a> {
    /// Takes `vertices + 1` offsets and the targets, whose number the last offset must equal. Checks the offsets, and that targets fit 32
    /// bits; the builder checks that they are vertices.
    ///
    /// # Errors
    /// [`RowsError`]; its `byte` counts from the beginning of the offsets.
    pub fn new(offsets: Numbers<'a>, targets: Numbers<'a>, listing: Listing) -> Result<Self, RowsError> {
        let (count, entries) = (offsets.len(), targets.len());
        let Some(vertices) = count.checked_sub(1) else {
            return Err(RowsError::TooShort { vertices: 0, entries: entries as u64, bytes: 0 });
        };
        if vertices > MAX_VERTICES {
            return Err(GraphError::TooManyVertices(vertices as u64).into());
        }
        let mut before = 0;
        for vertex in 0..count {
            let offset = offsets.get(vertex);
            let expected = if vertex == 0 { 0..=0 } else { before..=entries as u64 };
            if !expected.contains(&offset) || (vertex == vertices && offset != entries as u64) {
                let bytes = if matches!(offsets, Numbers::Bits32(_)) { 4 } else { 8 };
                return Err(RowsError::Offset { byte: bytes * vertex as u64, vertex, offset, entries });
            }
            before = offset;
        }
        // The others are checked by the builder, which reads them as numbers of 32 bits.
        if let Numbers::Bits64(wide) = targets {
            // Not in parallel: the caller may not be in a pool of ours, and a library must not start the global one.
            let too_large = |(_, target): &(usize, u64)| *target > u64::from(Vertex::MAX);
            if let Some((entry, target)) = wide.iter().map(read_once).enumerate().find(too_large) {
                return Err(RowsError::Target { byte: 8 * (count + entry) as u64, entry, target, vertices });
            }
        }
        Ok(Self { offsets, targets, listing })
    }
}

impl EdgeStream for RowArrays<'_> {
    fn vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    fn listing(&self) -> Listing {
        self.listing
    }

    fn parts(&self) -> usize {
        self.targets.len().div_ceil(PART)
    }

    #[inline]
    fn for_each_of(&self, part: usize, mut visit: impl FnMut(Vertex, Vertex)) {
        let end = self.targets.len().min((part + 1) * PART);
        let mut entry = part * PART;
        // The last row that starts at or before the first entry. This skips empty rows before it.
        let (mut row, mut last) = (0, self.offsets.len());
        while row < last {
            let middle = row + (last - row) / 2;
            if self.offsets.get(middle) as usize <= entry { row = middle + 1 } else { last = middle }
        }
        row = row.saturating_sub(1);
        // Another thread may change the arrays: an offset may now be lower than the one before it, or the last one lower than the number of
        // entries. The builder finds that other edges come than before.
        while entry < end && row + 1 < self.offsets.len() {
            let until = usize::try_from(self.offsets.get(row + 1)).unwrap_or(usize::MAX).clamp(entry, end);
            match self.targets {
                Numbers::Bits32(targets) => targets[entry..until].iter().for_each(|target| visit(row as Vertex, read_once(target))),
                // `new` has checked that they fit 32 bits.
                Numbers::Bits64(targets) => {
                    targets[entry..until].iter().for_each(|target| visit(row as Vertex, read_once(target) as Vertex))
                }
            }
            entry = until;
            row += 1;
        }
    }

    fn may_change(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BuildOptions, EdgeList, Layout};

    #[test]
    fn arrays_of_either_width_make_the_same_layout_as_a_list() {
        // Rows that cross the bounds of parts, and rows without entries.
        let vertices = 3000;
        let mut x = 1u64;
        let mut rows: Vec<Vec<u32>> = vec![Vec::new(); vertices];
        for _ in 0..PART + 70_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            rows[(x >> 33) as usize % vertices / 7 * 7].push((x >> 13) as u32 % vertices as u32);
        }
        let pairs: Vec<[u32; 2]> = rows.iter().zip(0..).flat_map(|(row, u)| row.iter().map(move |&v| [u, v])).collect();
        let mut offsets = vec![0u64];
        for row in &rows {
            offsets.push(offsets[offsets.len() - 1] + row.len() as u64);
        }
        let targets: Vec<u32> = pairs.iter().map(|pair| pair[1]).collect();
        let narrow: Vec<u32> = offsets.iter().map(|&offset| offset as u32).collect();
        let wide: Vec<u64> = targets.iter().map(|&target| target.into()).collect();
        for directed in [false, true] {
            let options = BuildOptions { directed, ..BuildOptions::default() };
            let wanted = Layout::build(&EdgeList::new(vertices, pairs.clone(), Listing::Unknown).unwrap(), &options).unwrap();
            // The direction has no effect on how arrays are read, so each direction takes two of the four combinations of widths.
            let same = [(Numbers::Bits32(&narrow), Numbers::Bits32(&targets)), (Numbers::Bits64(&offsets), Numbers::Bits64(&wide))];
            let mixed = [(Numbers::Bits32(&narrow), Numbers::Bits64(&wide)), (Numbers::Bits64(&offsets), Numbers::Bits32(&targets))];
            for (offsets, targets) in if directed { mixed } else { same } {
                let layout = Layout::build_from(&RowArrays::new(offsets, targets, Listing::Unknown).unwrap(), &options).unwrap();
                assert_eq!(layout.csr().offsets[..], wanted.csr().offsets[..]);
                assert_eq!(layout.csr().targets[..], wanted.csr().targets[..]);
                assert_eq!(layout.stats().listed, wanted.stats().listed);
            }
        }
    }

    #[test]
    fn malformed_arrays_are_refused() {
        let rows = |offsets: &[u32], targets: &[u32]| {
            let rows = RowArrays::new(Numbers::Bits32(offsets), Numbers::Bits32(targets), Listing::Unknown)?;
            Ok::<_, RowsError>(Layout::build_from(&rows, &BuildOptions::default()).map(|layout| layout.csr().arcs()))
        };
        assert_eq!(rows(&[0, 1, 2], &[1, 0]).unwrap(), Ok(2));
        assert_eq!(rows(&[0], &[]).unwrap(), Ok(0));
        assert!(matches!(rows(&[], &[]), Err(RowsError::TooShort { .. })));
        assert!(matches!(rows(&[1, 1], &[0]), Err(RowsError::Offset { vertex: 0, offset: 1, byte: 0, .. })));
        assert!(matches!(rows(&[0, 2, 1], &[0]), Err(RowsError::Offset { vertex: 1, offset: 2, byte: 4, .. })));
        assert!(matches!(rows(&[0, 0], &[0]), Err(RowsError::Offset { vertex: 1, offset: 0, .. })));
        assert!(matches!(rows(&[0, u32::MAX], &[0]), Err(RowsError::Offset { vertex: 1, .. })));
        let error = rows(&[0, 1, 2], &[1, u32::MAX]).unwrap().unwrap_err();
        assert_eq!(error, GraphError::VertexOutOfRange { index: 1, source_vertex: 1, target_vertex: u32::MAX, vertices: 2 });
        let wide = [1 << 40];
        let error = RowArrays::new(Numbers::Bits32(&[0, 1]), Numbers::Bits64(&wide), Listing::Unknown).unwrap_err();
        assert_eq!(error.to_string(), "entry 0 names vertex 1099511627776, but the graph has 1 vertex (0)");
    }
}
