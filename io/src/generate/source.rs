//! Generates the whole list of a generator in parallel. A generator can generate any part of its list without the other parts.

use std::{mem, ops::Range};

use rayon::prelude::*;

use super::GenerateError;
use socbfs::{
    graph::{EdgeStream, GraphError, Listing, Vertex},
    memory::{self, OutOfMemory},
};

/// Most edges a list may have: no allocation may be larger than `isize::MAX` bytes.
pub(super) const MAX_EDGES: usize = isize::MAX as usize / size_of::<[Vertex; 2]>();

/// Units of work in one part: small enough to keep threads evenly busy and the buffer in the first-level cache, large enough that the cost
/// of starting a part does not matter.
const PART: u64 = 4096;

type Count = dyn Fn(Range<u64>) -> usize + Send + Sync;
type Fill = dyn Fn(Range<u64>, &mut Vec<[Vertex; 2]>) + Send + Sync;

/// A generator that can generate the edges of any range of its units of work without the others. A unit is an edge, or a vertex with the
/// edges it draws.
pub(super) struct Source {
    /// Number of vertices.
    pub(super) vertices: u64,
    /// Number of units.
    pub(super) units: u64,
    /// The number of edges of some units. `None`: every unit is an edge.
    count: Option<Box<Count>>,
    /// Appends the edges of some units.
    fill: Box<Fill>,
}

impl Source {
    /// A generator in which a unit is an edge; `fill` appends the edges of a range.
    pub(super) fn of_edges(vertices: u64, edges: u64, fill: impl Fn(Range<u64>, &mut Vec<[Vertex; 2]>) + Send + Sync + 'static) -> Self {
        Self { vertices, units: edges, count: None, fill: Box::new(fill) }
    }

    /// A generator in which a unit is a vertex; `edges` draws those of a vertex, and its iterator knows how many there are.
    pub(super) fn of_vertices<E: Iterator<Item = [Vertex; 2]>>(
        vertices: u64,
        edges: impl Fn(u64) -> E + Copy + Send + Sync + 'static,
    ) -> Self {
        let count = move |units: Range<u64>| units.map(|vertex| edges(vertex).size_hint().0).sum();
        let fill = move |units: Range<u64>, list: &mut Vec<[Vertex; 2]>| list.extend(units.flat_map(edges));
        Self { vertices, units: vertices, count: Some(Box::new(count)), fill: Box::new(fill) }
    }
}

/// Generates the whole list on the current rayon pool.
pub(super) fn collect(source: &Source, progress: &(dyn Fn(u64) + Sync)) -> Result<Vec<[Vertex; 2]>, GenerateError> {
    let mut edges = Vec::new();
    // If the number of edges is known, their memory is reserved before anything else that grows with it.
    if source.count.is_none() {
        reserve(&mut edges, u128::from(source.units))?;
    }
    let units = source.units;
    let part = |index: usize| {
        let start = index as u64 * PART;
        start..(start + PART).min(units)
    };
    let parts = units.div_ceil(PART) as usize;
    let count = |units: Range<u64>| source.count.as_ref().map_or((units.end - units.start) as usize, |count| count(units));
    let counts: Vec<usize> = (0..parts).into_par_iter().map(|index| count(part(index))).collect();
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
        (source.fill)(range, buffer);
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
pub struct GeneratedEdges(pub(super) Source);

impl std::fmt::Debug for GeneratedEdges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GeneratedEdges").field("vertices", &self.0.vertices).field("units", &self.0.units).finish()
    }
}

/// Units of work in one part of [`GeneratedEdges`].
const STREAM_PART: u64 = 64 * PART;

impl EdgeStream for GeneratedEdges {
    fn vertices(&self) -> usize {
        // `Generator::validate` has checked that it fits 32 bits.
        self.0.vertices as usize
    }

    fn listing(&self) -> Listing {
        Listing::Once
    }

    fn parts(&self) -> usize {
        self.0.units.div_ceil(STREAM_PART) as usize
    }

    fn for_each_of(&self, part: usize, mut visit: impl FnMut(Vertex, Vertex)) {
        let begin = part as u64 * STREAM_PART;
        let end = self.0.units.min(begin + STREAM_PART);
        let mut buffer = Vec::with_capacity(PART as usize);
        for start in (begin..end).step_by(PART as usize) {
            buffer.clear();
            (self.0.fill)(start..end.min(start + PART), &mut buffer);
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
