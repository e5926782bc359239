//! Generates the whole list of a generator in parallel. A generator can generate any part of its list without the other parts.

use std::{mem, ops::Range};

use rayon::prelude::*;

use super::GenerateError;
use crate::{
    graph::{EdgeStream, GraphError, Listing, Vertex},
    memory::{self, OutOfMemory},
};

/// Most edges a list may have: no allocation may be larger than `isize::MAX` bytes.
pub(super) const MAX_EDGES: usize = isize::MAX as usize / size_of::<[Vertex; 2]>();

/// Units of work in one part: small enough to keep threads evenly busy and the buffer in the first-level cache, large enough that the cost
/// of starting a part does not matter.
const PART: u64 = 4096;

/// A generator that can generate the edges of any range of its units of work without the others. A unit is an edge, or a vertex with the
/// edges it draws.
pub(super) trait Source: Sync {
    /// Number of vertices.
    fn vertices(&self) -> u64;

    /// Units of work: the ranges passed to the other methods are parts of `0..units`.
    fn units(&self) -> u64;

    /// Number of edges of all units, if it is known without going through them. By default a unit is an edge.
    fn known_edges(&self) -> Option<u64> {
        Some(self.units())
    }

    /// Number of edges of these units. By default a unit is an edge.
    fn count(&self, units: Range<u64>) -> usize {
        (units.end - units.start) as usize
    }

    /// Appends the edges of these units: exactly `count` of them.
    fn fill(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>);
}

/// Generates the whole list on the current rayon pool.
pub(super) fn collect(source: &dyn Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Vec<[Vertex; 2]>, GenerateError> {
    let mut edges = Vec::new();
    // If the number of edges is known, their memory is reserved before anything else that grows with it.
    if let Some(known) = source.known_edges() {
        reserve(&mut edges, u128::from(known))?;
    }
    let units = source.units();
    let part = |index: usize| {
        let start = index as u64 * PART;
        start..(start + PART).min(units)
    };
    let parts = units.div_ceil(PART) as usize;
    let counts: Vec<usize> = (0..parts).into_par_iter().map(|index| source.count(part(index))).collect();
    // The sum has 64 bits: 2^32 vertices have more edges than 32 bits can count.
    let total: u64 = counts.iter().map(|&count| count as u64).sum();
    let total = reserve(&mut edges, total.into())?;

    let mut rest = &mut edges.spare_capacity_mut()[..total];
    let mut slots = Vec::with_capacity(parts);
    for &count in &counts {
        let (slot, tail) = mem::take(&mut rest).split_at_mut(count);
        slots.push(slot);
        rest = tail;
    }
    slots.into_par_iter().enumerate().for_each_init(Vec::new, |buffer, (index, slot)| {
        let range = part(index);
        let work = range.end - range.start;
        buffer.clear();
        source.fill(range, buffer);
        assert_eq!(buffer.len(), slot.len(), "a generator made another number of edges than it counted");
        for (place, &edge) in slot.iter_mut().zip(&*buffer) {
            place.write(edge);
        }
        progress(work);
    });
    // SAFETY: the slots cover the first `total` places of the spare capacity without gaps (their lengths sum to `total`), and each was
    // written from end to end, or the assertion above would have panicked.
    unsafe { edges.set_len(total) };
    Ok(edges)
}

/// Edges of a generator, generated again each time they are read. No list of them is kept.
pub struct GeneratedEdges(Box<dyn Source>);

impl std::fmt::Debug for GeneratedEdges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GeneratedEdges").field("vertices", &self.0.vertices()).field("units", &self.0.units()).finish()
    }
}

/// Units of work in one part of [`GeneratedEdges`].
const STREAM_PART: u64 = 64 * PART;

impl GeneratedEdges {
    pub(super) fn new(source: Box<dyn Source>) -> Self {
        Self(source)
    }
}

impl EdgeStream for GeneratedEdges {
    fn vertices(&self) -> usize {
        // `Generator::validate` has checked that it fits 32 bits.
        self.0.vertices() as usize
    }

    fn listing(&self) -> Listing {
        Listing::Once
    }

    fn parts(&self) -> usize {
        self.0.units().div_ceil(STREAM_PART) as usize
    }

    fn for_each_of(&self, part: usize, mut visit: impl FnMut(Vertex, Vertex)) {
        let begin = part as u64 * STREAM_PART;
        let end = self.0.units().min(begin + STREAM_PART);
        let mut buffer = Vec::with_capacity(PART as usize);
        for start in (begin..end).step_by(PART as usize) {
            buffer.clear();
            self.0.fill(start..end.min(start + PART), &mut buffer);
            for &[source, target] in &buffer {
                visit(source, target);
            }
        }
    }
}

/// Makes room for `count` edges, and returns `count` as a `usize`.
fn reserve(edges: &mut Vec<[Vertex; 2]>, count: u128) -> Result<usize, GenerateError> {
    let count = usize::try_from(count).ok().filter(|&count| count <= MAX_EDGES).ok_or(GenerateError::TooManyEdges(count))?;
    let bytes = (count * size_of::<[Vertex; 2]>()) as u64;
    // The system may grant more memory than it has, and end this or another process when the memory is touched.
    if edges.capacity() < count {
        memory::check_available(bytes, "the edge list").map_err(GraphError::OutOfMemory)?;
    }
    edges.try_reserve_exact(count).map_err(|error| {
        GenerateError::from(GraphError::OutOfMemory(OutOfMemory { what: "the edge list", bytes, reason: error.to_string() }))
    })?;
    Ok(count)
}
