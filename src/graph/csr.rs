//! Compressed sparse rows.

use super::Vertex;
use crate::memory::{OutOfMemory, Slab};

/// Adds to each number those before it, as offsets are made from the lengths of lists. Returns the sum of all.
pub fn accumulate(lengths: &mut [u32]) -> u32 {
    let mut sum = 0;
    for length in lengths {
        sum += *length;
        *length = sum;
    }
    sum
}

/// Adjacency as two arrays: the neighbours of `v` are `targets[offsets[v]..offsets[v + 1]]`.
#[derive(Debug, Default)]
pub struct Csr {
    /// `vertices + 1` offsets into `targets`.
    pub offsets: Slab<u32>,
    /// Neighbours.
    pub targets: Slab<Vertex>,
}

impl Csr {
    /// A copy of both arrays.
    pub(crate) fn copy(&self) -> Result<Self, OutOfMemory> {
        Ok(Self { offsets: Slab::copy_of(&self.offsets, "offsets")?, targets: Slab::copy_of(&self.targets, "neighbours")? })
    }

    /// Number of vertices.
    pub fn vertices(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Number of entries (arcs).
    pub fn arcs(&self) -> usize {
        self.targets.len()
    }

    /// The neighbours of `v`.
    ///
    /// # Panics
    /// If `v` is not a vertex.
    #[inline]
    pub fn neighbours(&self, v: Vertex) -> &[Vertex] {
        &self.targets[self.offsets[v as usize] as usize..self.offsets[v as usize + 1] as usize]
    }

    /// The number of neighbours of `v`.
    ///
    /// # Panics
    /// If `v` is not a vertex.
    #[inline]
    pub fn degree(&self, v: Vertex) -> u32 {
        self.offsets[v as usize + 1] - self.offsets[v as usize]
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.offsets.bytes() + self.targets.bytes()
    }
}
