//! What the parts of a file say about the whole of it: counts, and notes in comments.

use serde::{Deserialize, Serialize};

use super::scan::{Field, field, fields, shown};
use socbfs::graph::{Listing, Vertex};

/// Facts in a comment, for which the format has no other place: a comment by socbfs (` socbfs ...`), or by SNAP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Number of vertices. SNAP's ` Nodes: 5` does not count gaps in the numbering, so it is a lower bound.
    pub(super) vertices: Option<u64>,
    /// How edges are listed.
    pub(super) listing: Option<Listing>,
    /// Number of entries.
    pub(super) entries: Option<u64>,
}

impl Note {
    /// Parses a comment without its sign, ` socbfs vertices 5 entries 8 listing once` or ` Nodes: 5 Edges: 8`; `None` for any other.
    ///
    /// # Errors
    /// A message, if a note of socbfs is damaged.
    pub(super) fn parse(comment: &[u8]) -> Result<Option<Self>, String> {
        let mut words = fields(comment).map(|(_, word)| word);
        let mut note = Self::default();
        match words.next() {
            Some(b"Nodes:") => {
                let Some(Field::Number(vertices)) = words.next().map(field) else { return Ok(None) };
                let entries = match (words.next(), words.next().map(field)) {
                    (Some(b"Edges:"), Some(Field::Number(entries))) => Some(entries),
                    _ => None,
                };
                return Ok(Some(Self { vertices: Some(vertices), listing: None, entries }));
            }
            Some(b"socbfs") => {}
            _ => return Ok(None),
        }
        let damaged = |word: &[u8]| Err(format!("this note of socbfs is damaged at {}", shown(word)));
        while let Some(key) = words.next() {
            let Some(value) = words.next() else { return damaged(key) };
            match (key, field(value)) {
                (b"vertices", Field::Number(vertices)) => note.vertices = Some(vertices),
                (b"entries", Field::Number(entries)) => note.entries = Some(entries),
                (b"listing", _) if value == b"once" => note.listing = Some(Listing::Once),
                (b"listing", _) if value == b"symmetric" => note.listing = Some(Listing::Symmetric),
                (b"listing", _) if value == b"both-directions" => note.listing = Some(Listing::BothDirections),
                _ => return damaged(value),
            }
        }
        Ok(Some(note))
    }

    /// The text that [`parse`](Self::parse) reads; `None` if the note is empty.
    pub(super) fn text(self) -> Option<String> {
        let vertices = self.vertices.map(|vertices| format!(" vertices {vertices}"));
        let listing = match self.listing {
            Some(Listing::Once) => " listing once",
            Some(Listing::Symmetric) => " listing symmetric",
            Some(Listing::BothDirections) => " listing both-directions",
            Some(Listing::Unknown) | None => "",
        };
        let entries = self.entries.map(|entries| format!(" entries {entries}"));
        let text = vertices.unwrap_or_default() + &entries.unwrap_or_default() + listing;
        (!text.is_empty()).then(|| format!(" socbfs{text}"))
    }

    /// Merges two notes. Where both have a value, the later one counts.
    pub(super) fn merge(&mut self, later: Self) {
        self.vertices = later.vertices.or(self.vertices);
        self.listing = later.listing.or(self.listing);
        self.entries = later.entries.or(self.entries);
    }
}

/// Counts and notes of a piece of a file. Those of all pieces together decide about the whole file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tallies {
    /// Number of edges.
    pub(crate) entries: u64,
    /// One more than the largest vertex.
    pub(super) vertices: u64,
    /// Rows of METIS.
    pub(super) rows: u64,
    /// Notes in comments.
    pub(super) note: Note,
    /// The first edge, if its line may be a header.
    pub(super) first: Option<[Vertex; 2]>,
    /// Largest vertex of all edges but the first, if the first may be a header.
    pub(super) largest_but_first: Option<Vertex>,
}

impl Tallies {
    /// Adds the tallies of the piece that follows.
    pub fn join(&mut self, next: &Self) {
        self.entries += next.entries;
        self.vertices = self.vertices.max(next.vertices);
        self.rows += next.rows;
        self.note.merge(next.note);
        if self.first.is_none() {
            (self.first, self.largest_but_first) = (next.first, next.largest_but_first);
        } else {
            let first = next.first.map(|[source, target]| source.max(target));
            self.largest_but_first = self.largest_but_first.max(first).max(next.largest_but_first);
        }
    }
}
