//! Edge lists: one edge `source target` per line, 0-based; lines that start with `#` or `%` are comments; further columns
//! (weights, times) are ignored. The format of SNAP, KONECT and GAP's `.el` and `.wel`. Vertices go up to the largest one
//! named, or further where SNAP's comment `# Nodes: n` (or our own) says so.

use super::error::Fault;
use super::lines::{Records, Syntax};
use super::text::{Parsed, TextReader, Tick};
use crate::graph::{Listing, MAX_VERTICES};

pub(super) struct EdgeListReader {
    records: Records,
    syntax: Syntax,
    /// The content alone speaks for the format: then it must not look like another one either.
    by_content: bool,
}

impl EdgeListReader {
    pub(super) fn new(by_content: bool) -> Self {
        let syntax = Syntax { tag: None, comments: b"#%", base: 0, vertices: MAX_VERTICES as u64, extra: 0..usize::MAX };
        Self { records: Records::default(), syntax, by_content }
    }

    /// Might the first line be a header "vertices, edges", with edges or METIS rows behind it? Rare, and costs nothing
    /// but a look at the first edge where it is not so.
    fn first_line_may_be_a_header(&self) -> bool {
        let Some((&[vertices, entries], rest)) = self.records.edges.split_first() else { return false };
        let within = || rest.iter().flatten().all(|&end| end <= vertices);
        (entries as usize == rest.len() || vertices as usize == rest.len()) && within()
    }
}

impl TextReader for EdgeListReader {
    fn block(&mut self, text: &[u8], tick: &Tick<'_>) -> Result<(), Box<Fault>> {
        self.records.append(text, &self.syntax, tick)
    }

    fn finish(self: Box<Self>) -> Result<Parsed, Box<Fault>> {
        if self.by_content && self.first_line_may_be_a_header() {
            let [first, second] = self.records.edges[0];
            return Err(Fault::whole(format!(
                "the first line '{first} {second}' may be an edge, or a header that gives the numbers of vertices and edges"
            ))
            .cure(
                "say which: --format el where it is an edge, --format metis where rows of neighbours follow; otherwise remove that line",
            ));
        }
        let Records { edges, vertices, note } = self.records;
        let found = edges.len() as u64;
        if let Some(entries) = note.entries.filter(|&entries| entries != found) {
            let cure = if found < entries { "is it cut off?" } else { "correct or remove the comment" };
            return Err(Fault::whole(format!("a comment announces {entries} edges, but the file holds {found}")).cure(cure));
        }
        let vertices = vertices.max(note.vertices.unwrap_or(0));
        Ok(Parsed { vertices, edges, listing: note.listing.unwrap_or(Listing::Unknown) })
    }
}
