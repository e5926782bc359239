//! The whole list of a generator, made in parallel: the generator can make any part of its list without the others.

use std::{mem, ops::Range};

use rayon::prelude::*;

use super::GenerateError;
use crate::{
    graph::{EdgeStream, GraphError, Listing, Vertex},
    memory::{self, OutOfMemory},
};

/// Most edges a list may have: no allocation may be larger than `isize::MAX` bytes.
pub(super) const MAX_EDGES: usize = isize::MAX as usize / size_of::<[Vertex; 2]>();

/// Units of work in one part. Small enough to keep threads evenly busy and the buffer in the first-level cache,
/// large enough that what starting a part costs does not show.
const PART: u64 = 4096;

/// A generator, able to make the edges of any range of its units of work (edges, or vertices that bring edges along)
/// without having made the others.
pub(super) trait Source: Sync {
    /// Number of vertices.
    fn vertices(&self) -> u64;

    /// Units of work: the ranges passed to the other methods are parts of `0..units`.
    fn units(&self) -> u64;

    /// Number of edges of all units, where that is known without going through them. As written here, a unit is an edge.
    fn known_edges(&self) -> Option<u64> {
        Some(self.units())
    }

    /// Number of edges of these units. As written here, a unit is an edge.
    fn count(&self, units: Range<u64>) -> usize {
        (units.end - units.start) as usize
    }

    /// Appends the edges of these units: exactly `count` of them.
    fn fill(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>);
}

/// Makes the whole list on the current rayon pool.
pub(super) fn collect(source: &dyn Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Vec<[Vertex; 2]>, GenerateError> {
    let mut edges = Vec::new();
    // Memory first where the size is known, before anything else grows with it.
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
    // In 64 bits: the edges of 2^32 vertices are more than 32 can count.
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
    // SAFETY: the slots cover the first `total` places of the spare capacity without gaps (their lengths sum to `total`),
    // and each was written from end to end, or the assertion above would have stopped us.
    unsafe { edges.set_len(total) };
    Ok(edges)
}

/// Edges of a generator, made again each time they are read: nothing of the list is kept.
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
        // `Generator::validate` found that it fits 32 bits.
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

/// Makes room for `count` edges, and gives their number as one of this machine's.
fn reserve(edges: &mut Vec<[Vertex; 2]>, count: u128) -> Result<usize, GenerateError> {
    let count = usize::try_from(count).ok().filter(|&count| count <= MAX_EDGES).ok_or(GenerateError::TooManyEdges(count))?;
    let bytes = (count * size_of::<[Vertex; 2]>()) as u64;
    // What the system promises it need not have: touching it would end the process, or another one.
    if edges.capacity() < count {
        memory::check_available(bytes, "the edge list").map_err(GraphError::OutOfMemory)?;
    }
    edges.try_reserve_exact(count).map_err(|error| {
        GenerateError::from(GraphError::OutOfMemory(OutOfMemory { what: "the edge list", bytes, reason: error.to_string() }))
    })?;
    Ok(count)
}
