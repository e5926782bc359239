//! Edge files of the Graph500 reference codes, little-endian, without any header.
//!
//! - 3.x (its `graph_generator.h`): 12 bytes per edge, the low 32 bits of the first and of the second vertex, then a word with the high
//!   16 bits of the first (low half) and of the second (high half);
//! - 2.1: two 64-bit integers per edge.
//!
//! The number of vertices is not in the file. By the specification it is a power of two (2^SCALE), so the reader takes the smallest power
//! of two above every vertex. The roots of the benchmark are drawn from all vertices, isolated ones included.

use std::io;

use super::error::Fault;
use super::fill::{Slots, fill};
use super::scan::Cut;
use super::tallies::Tallies;
use super::text::TextReader;
use socbfs::{
    files::RegularFile,
    graph::{Listing, MAX_VERTICES, Vertex},
    words::plural,
};

/// One of the two layouts of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeFormat {
    Packed,
    Int64,
}

impl EdgeFormat {
    /// Bytes per edge.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Packed => 12,
            Self::Int64 => 16,
        }
    }

    fn edge(self, bytes: &[u8]) -> [u64; 2] {
        let word = |at: usize| u64::from(u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        match self {
            Self::Packed => [word(0) | (word(8) & 0xffff) << 32, word(4) | (word(8) >> 16) << 32],
            Self::Int64 => [word(0) | word(4) << 32, word(8) | word(12) << 32],
        }
    }

    /// Whether the file may hold edges of this layout with vertices that fit 32 bits. For random bytes this is true with a probability of
    /// at most 2^-32 per edge.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(super) fn fits(self, file: &RegularFile) -> io::Result<bool> {
        if file.size() % self.size() as u64 != 0 {
            return Ok(false);
        }
        let fit =
            |bytes: &[u8]| bytes.chunks_exact(self.size()).all(|edge| self.edge(edge).iter().all(|&vertex| vertex < MAX_VERTICES as u64));
        Ok(file.in_blocks(0..file.size(), self.size() << 16, fit)?.into_iter().all(|fits| fits))
    }

    /// Parses edges; returns one more than the largest vertex.
    fn parse(self, bytes: &[u8], out: &mut Slots<'_>) -> Result<u64, Box<Fault>> {
        let mut vertices = 0;
        for (index, edge) in bytes.chunks_exact(self.size()).enumerate() {
            let [source, target] = self.edge(edge);
            let largest = source.max(target);
            if largest >= MAX_VERTICES as u64 {
                let at = index * self.size();
                return Err(if largest > i64::MAX as u64 {
                    Fault::at(at, "a vertex is negative")
                        .cure("edges that the generator left out must be removed; or is the file in another format (--format)?")
                } else {
                    Fault::at(
                        at,
                        format!("vertex {largest}, but socbfs numbers vertices with 32 bits and takes at most {}", MAX_VERTICES - 1),
                    )
                    .cure("is the file in another format (--format)?")
                });
            }
            vertices = vertices.max(largest + 1);
            out.push([source as Vertex, target as Vertex]);
        }
        Ok(vertices)
    }
}

/// The parser of Graph500 edges, with the edges read so far.
pub(super) struct Graph500Reader {
    layout: EdgeFormat,
    edges: Vec<[Vertex; 2]>,
    vertices: u64,
}

impl Graph500Reader {
    pub(super) fn new(layout: EdgeFormat) -> Self {
        Self { layout, edges: Vec::new(), vertices: 0 }
    }
}

impl TextReader for Graph500Reader {
    fn cut(&self) -> Cut {
        Cut::Bytes(self.layout.size())
    }

    fn is_binary(&self) -> bool {
        true
    }

    fn is_past_header(&self) -> bool {
        true
    }

    fn block(&mut self, bytes: &[u8], ahead: f64) -> Result<(), Box<Fault>> {
        let layout = self.layout;
        let task = layout.size() << 16;
        let chunks: Vec<&[u8]> = bytes.chunks(task).collect();
        let room: Vec<usize> = chunks.iter().map(|chunk| chunk.len() / layout.size()).collect();
        let vertices =
            fill(&mut self.edges, &room, ahead, |index, out| layout.parse(chunks[index], out).map_err(|fault| fault.shift(index * task)))?;
        self.vertices = vertices.into_iter().fold(self.vertices, u64::max);
        // Reported after any fault in the edges before it, so that the error does not depend on the length of the blocks.
        let excess = bytes.len() % layout.size();
        if excess != 0 {
            let reason = format!("the file ends with {} of an edge of {} bytes", plural(excess as u64, "byte", "bytes"), layout.size());
            return Err(Fault::at(bytes.len() - excess, reason).cure("is it cut off, or in another format (--format)?"));
        }
        Ok(())
    }

    fn take(&mut self) -> (Tallies, Vec<[Vertex; 2]>) {
        let edges = std::mem::take(&mut self.edges);
        (Tallies { entries: edges.len() as u64, vertices: std::mem::take(&mut self.vertices), ..Tallies::default() }, edges)
    }

    fn conclude(&mut self, found: &Tallies) -> Result<(u64, Listing), Box<Fault>> {
        Ok((found.vertices.next_power_of_two(), Listing::Once))
    }
}
