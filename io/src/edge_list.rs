//! Edge lists: one edge `source target` per line, 0-based, separated by blanks, tabs or a comma; lines that start with `#` or `%` are
//! comments; further columns (weights, dates, `{}`) are ignored. The format of SNAP, KONECT and GAP's `.el` and `.wel`. The number of
//! vertices is one more than the largest vertex, or that of SNAP's comment `# Nodes: n` (or of socbfs's own comment) if it is larger. A
//! file with neither an edge nor such a comment is refused.

use rayon::prelude::*;

use super::error::Fault;
use super::lines::{Records, Syntax, check_count};
use super::tallies::Tallies;
use super::text::TextReader;
use socbfs::graph::{Listing, MAX_VERTICES, Vertex};

pub(super) struct EdgeListReader {
    records: Records,
    syntax: Syntax,
    /// The format was recognised by the look of the content alone, so the content must not look like another format.
    by_content: bool,
}

impl EdgeListReader {
    pub(super) fn new(by_content: bool) -> Self {
        let syntax = Syntax { tag: None, comments: b"#%", base: 0, vertices: MAX_VERTICES as u64, weights: None };
        Self { records: Records::default(), syntax, by_content }
    }

    /// The first edge, and the largest vertex of all other edges, for [`may_be_a_header`].
    fn first_and_others(&self) -> (Option<[Vertex; 2]>, Option<Vertex>) {
        let Some((&first, rest)) = self.records.edges.split_first() else { return (None, None) };
        let largest = self.records.vertices.saturating_sub(1);
        // In nearly every file the largest vertex is beyond both ends of the first edge, and therefore in another edge.
        let of_others = if largest > u64::from(first[0].max(first[1])) {
            Some(largest as Vertex)
        } else {
            rest.par_iter().map(|&[source, target]| source.max(target)).max()
        };
        (Some(first), of_others)
    }
}

/// The first edge, if its line may be a header "vertices, edges" that edges or METIS rows follow.
fn may_be_a_header(found: &Tallies) -> Option<[Vertex; 2]> {
    let first @ [vertices, entries] = found.first?;
    let others = found.entries - 1;
    let counts = u64::from(entries) == others || u64::from(vertices) == others;
    (counts && found.largest_but_first.is_none_or(|largest| largest <= vertices)).then_some(first)
}

impl TextReader for EdgeListReader {
    fn block(&mut self, text: &[u8], ahead: f64) -> Result<(), Box<Fault>> {
        self.records.append(text, &self.syntax, ahead)
    }

    fn is_past_header(&self) -> bool {
        true
    }

    fn take(&mut self) -> (Tallies, Vec<[Vertex; 2]>) {
        let (first, largest_but_first) = if self.by_content { self.first_and_others() } else { (None, None) };
        let (found, edges) = self.records.take();
        (Tallies { first, largest_but_first, ..found }, edges)
    }

    fn conclude(&mut self, found: &Tallies) -> Result<(u64, Listing), Box<Fault>> {
        if let Some([first, second]) = may_be_a_header(found) {
            return Err(Fault::whole(format!(
                "the first line '{first} {second}' may be an edge, or a header that gives the numbers of vertices and edges"
            ))
            .cure(
                "say which: --format el (or the ending .el) where it is an edge, --format metis (or .graph) where rows of neighbours \
                 follow; otherwise remove that line",
            ));
        }
        let &Tallies { entries: found, vertices, note, .. } = found;
        // As an empty file, such a file is more likely the rest of another than a graph without vertices.
        if found == 0 && note.vertices.is_none() {
            return Err(Fault::whole("there is no edge in it, and no comment that gives the number of vertices")
                .cure("is it cut off? (a graph without edges has the line '# socbfs vertices 5')"));
        }
        if let Some(entries) = note.entries {
            check_count(found, entries, "a comment", ["edge", "edges"])?;
        }
        Ok((vertices.max(note.vertices.unwrap_or(0)), note.listing.unwrap_or(Listing::Unknown)))
    }
}
