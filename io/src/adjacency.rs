//! Adjacency as text: numbers in a fixed order, with line ends anywhere between them. There are two layouts:
//!
//! - Ligra (and PBBS): the word `AdjacencyGraph` or `WeightedAdjacencyGraph`, n, m, n offsets, m targets, and m weights;
//! - Rodinia's and Parboil's bfs: n, n pairs `start degree`, a source, m, m pairs `target weight`.
//!
//! Neither says whether an undirected edge is listed at both ends. Weights and the source are ignored.

use std::ops::Range;

use super::error::Fault;
use super::fill::{fill, reserve};
use super::lines::check_vertices;
use super::scan::{Cut, is_space, shown};
use super::tallies::Tallies;
use super::text::TextReader;
use super::tokens::{Tokens, locate};
use socbfs::{
    graph::{Listing, Vertex},
    words::{numbered, plural},
};

/// Ligra's first word.
pub(super) const LIGRA: &[u8] = b"AdjacencyGraph";
/// Ligra's first word if edges have weights.
pub(super) const LIGRA_WEIGHTED: &[u8] = b"WeightedAdjacencyGraph";

/// A section of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    /// Ligra's first word.
    #[default]
    Word,
    Vertices,
    Entries,
    /// Ligra: where each vertex's targets start.
    Offsets,
    /// Rodinia: start and degree of each vertex.
    Rows,
    /// Rodinia: where the search starts.
    Source,
    /// Rodinia: number of entries, known from the degrees already.
    Total,
    Targets,
    /// Ligra: after the targets.
    Weights,
    End,
}

#[derive(Default)]
pub(super) struct AdjacencyReader {
    section: Section,
    /// Numbers of the section that have been read.
    seen: u64,
    /// Numbers per entry: 2 if a weight follows each target.
    stride: usize,
    weighted: bool,
    vertices: u64,
    entries: u64,
    /// Start of each vertex's targets, as far as read. Once complete, the end of the last vertex's targets follows.
    offsets: Vec<Vertex>,
    /// Rodinia: sum of the degrees.
    sum: u64,
    edges: Vec<[Vertex; 2]>,
    /// Number of edges that `take` has removed.
    taken: usize,
    tokens: Tokens,
}

impl AdjacencyReader {
    pub(super) fn ligra() -> Self {
        Self { section: Section::Word, stride: 1, ..Self::default() }
    }

    pub(super) fn rodinia() -> Self {
        Self { section: Section::Vertices, stride: 2, ..Self::default() }
    }

    /// Count of numbers in the section.
    fn length(&self) -> u64 {
        match self.section {
            Section::Word | Section::End => 0,
            Section::Vertices | Section::Entries | Section::Source | Section::Total => 1,
            Section::Offsets => self.vertices,
            Section::Rows => 2 * self.vertices,
            Section::Targets => self.entries * self.stride as u64,
            Section::Weights => self.entries,
        }
    }

    /// Moves on to the next section if this one is complete, past any empty ones.
    fn advance(&mut self) {
        while self.seen == self.length() && self.section != Section::End {
            self.seen = 0;
            self.section = match self.section {
                Section::Word => Section::Vertices,
                Section::Vertices if self.stride == 1 => Section::Entries,
                Section::Vertices => Section::Rows,
                Section::Entries => Section::Offsets,
                Section::Rows => {
                    self.entries = self.sum;
                    self.offsets.push(self.sum as Vertex); // `rows` has checked that it fits 32 bits
                    Section::Source
                }
                Section::Offsets => {
                    self.offsets.push(self.entries as Vertex); // a 32-bit number in the file
                    Section::Targets
                }
                Section::Source => Section::Total,
                Section::Total => Section::Targets,
                Section::Targets if self.weighted => Section::Weights,
                Section::Targets | Section::Weights | Section::End => Section::End,
            };
        }
    }

    /// Parses the first word of a Ligra file and returns the position after it.
    fn word(&mut self, text: &[u8]) -> Result<usize, Box<Fault>> {
        let Some(start) = text.iter().position(|&byte| !is_space(byte)) else { return Ok(text.len()) };
        let end = text[start..].iter().position(|&byte| is_space(byte)).map_or(text.len(), |length| start + length);
        self.weighted = match &text[start..end] {
            LIGRA => false,
            LIGRA_WEIGHTED => true,
            other => {
                return Err(Fault::at(
                    start,
                    format!("{} is found where 'AdjacencyGraph' or 'WeightedAdjacencyGraph' is expected", shown(other)),
                ));
            }
        };
        self.section = Section::Vertices;
        Ok(end)
    }

    /// Reads the numbers of a block, section by section.
    fn numbers(&mut self, text: &[u8], tokens: &Tokens, ahead: f64) -> Result<(), Box<Fault>> {
        let mut at = 0;
        self.advance();
        while at < tokens.values.len() {
            let left = usize::try_from(self.length() - self.seen).unwrap_or(usize::MAX);
            let end = tokens.values.len().min(at.saturating_add(left));
            let step = if self.section == Section::Targets { self.stride } else { 1 };
            // The first target among the numbers: if the block starts with a weight, it is the second number.
            let first = at + (self.seen as usize) % step;
            if self.section != Section::Weights {
                if let Some(index) = tokens.strange(first..end, step) {
                    let (offset, shown) = locate(text, index);
                    return Err(Fault::at(offset, format!("{shown} is found where a number below 2^32 is expected")));
                }
            }
            let values = &tokens.values[at..end];
            match self.section {
                Section::Word => return Err(Fault::at(0, "the first word is missing")), // `block` parses it before any number
                Section::End => return Err(Fault::at(locate(text, at).0, "more numbers follow the last one that the header announces")),
                Section::Vertices => {
                    self.vertices = values[0].into();
                    check_vertices(self.vertices)?;
                }
                Section::Entries => self.entries = values[0].into(),
                Section::Source if u64::from(values[0]) >= self.vertices => {
                    let reason = format!("the source {} is not one of the {}", values[0], numbered(self.vertices));
                    return Err(Fault::at(locate(text, at).0, reason));
                }
                Section::Total if u64::from(values[0]) != self.entries => {
                    let reason = format!(
                        "{} announced, but the degrees add up to {}",
                        plural(values[0].into(), "edge is", "edges are"),
                        self.entries
                    );
                    return Err(Fault::at(locate(text, at).0, reason));
                }
                Section::Source | Section::Total | Section::Weights => {}
                Section::Offsets => {
                    // One more for the offset that follows the last vertex's.
                    reserve(&mut self.offsets, values.len() + 1, 0.0, "offsets")?;
                    self.offsets(values).map_err(|(index, reason)| Fault::at(locate(text, at + index).0, reason))?;
                }
                Section::Rows => {
                    reserve(&mut self.offsets, values.len() + 1, 0.0, "offsets")?;
                    self.rows(values).map_err(|(index, reason)| Fault::at(locate(text, at + index).0, reason))?;
                }
                Section::Targets => self.targets(text, tokens, first..end, ahead)?,
            }
            self.seen += (end - at) as u64;
            at = end;
            self.advance();
        }
        Ok(())
    }

    /// Ligra's offsets: they start at 0, never decrease, and stay within the entries.
    fn offsets(&mut self, values: &[Vertex]) -> Result<(), (usize, String)> {
        for (index, &offset) in values.iter().enumerate() {
            let before = self.offsets.last().copied();
            if before.is_none() && offset != 0 || before.is_some_and(|before| offset < before) || u64::from(offset) > self.entries {
                return Err((
                    index,
                    format!(
                        "the offset of vertex {} is {offset}; offsets start at 0, never decrease, and are at most {}",
                        self.offsets.len(),
                        self.entries
                    ),
                ));
            }
            self.offsets.push(offset);
        }
        Ok(())
    }

    /// Rodinia's pairs: the start of each vertex must be the end of the vertex before.
    fn rows(&mut self, values: &[Vertex]) -> Result<(), (usize, String)> {
        for (index, &value) in values.iter().enumerate() {
            let position = self.seen + index as u64;
            if position % 2 == 0 {
                if u64::from(value) != self.sum {
                    return Err((
                        index,
                        format!(
                            "the edges of vertex {} start at {value}, but those of the vertices before it end at {}",
                            position / 2,
                            self.sum
                        ),
                    ));
                }
                self.offsets.push(value);
            } else {
                self.sum += u64::from(value);
                if self.sum > u64::from(u32::MAX) {
                    return Err((index, format!("the degrees add up to {}, more than 32 bits can count", self.sum)));
                }
            }
        }
        Ok(())
    }

    /// Targets (those of `range` that are not weights): each becomes an edge of the row it lies in.
    fn targets(&mut self, text: &[u8], tokens: &Tokens, range: Range<usize>, ahead: f64) -> Result<(), Box<Fault>> {
        const TASK: usize = 1 << 16;
        let first = range.start;
        if self.vertices == 0 {
            return Err(Fault::at(locate(text, first).0, "edges follow, but the graph has no vertices"));
        }
        let Self { stride, vertices, .. } = *self;
        let offsets = &self.offsets[..];
        let values = tokens.values.get(range).unwrap_or_default();
        let count = values.len().div_ceil(stride);
        let entry = self.taken + self.edges.len(); // of the first target
        let room: Vec<usize> = (0..count.div_ceil(TASK)).map(|task| TASK.min(count - task * TASK)).collect();
        fill(&mut self.edges, &room, ahead, |task, out| {
            let start = task * TASK;
            // The last row that starts at or before the entry. There is one, because the first row starts at 0.
            let mut row = offsets.partition_point(|&offset| offset as usize <= entry + start) - 1;
            for (index, &target) in values[start * stride..].iter().step_by(stride).take(room[task]).enumerate() {
                while offsets[row + 1] as usize <= entry + start + index {
                    row += 1;
                }
                if u64::from(target) >= vertices {
                    let (offset, shown) = locate(text, first + (start + index) * stride);
                    return Err(Fault::at(offset, format!("{shown} is not one of the {}", numbered(vertices))));
                }
                out.push([row as Vertex, target]);
            }
            Ok(())
        })?;
        Ok(())
    }
}

impl TextReader for AdjacencyReader {
    fn cut(&self) -> Cut {
        Cut::Fields
    }

    fn block(&mut self, text: &[u8], ahead: f64) -> Result<(), Box<Fault>> {
        let start = if self.section == Section::Word { self.word(text)? } else { 0 };
        let text = &text[start..];
        let mut tokens = std::mem::take(&mut self.tokens);
        let result = tokens.parse(text).and_then(|()| self.numbers(text, &tokens, ahead));
        self.tokens = tokens;
        result.map_err(|fault| fault.shift(start))
    }

    fn take(&mut self) -> (Tallies, Vec<[Vertex; 2]>) {
        let edges = std::mem::take(&mut self.edges);
        self.taken += edges.len();
        (Tallies { entries: edges.len() as u64, ..Tallies::default() }, edges)
    }

    fn conclude(&mut self, _found: &Tallies) -> Result<(u64, Listing), Box<Fault>> {
        if self.section != Section::Word {
            self.advance();
        }
        let what = match self.section {
            Section::End => return Ok((self.vertices, Listing::Unknown)),
            Section::Word => "its first word",
            Section::Vertices => "the number of vertices",
            Section::Entries | Section::Total => "the number of edges",
            Section::Offsets => "the offsets",
            Section::Rows => "the starts and degrees of the vertices",
            Section::Source => "the source",
            Section::Targets => "the edges",
            Section::Weights => "the weights",
        };
        let length = self.length();
        Err(Fault::whole(format!("the file ends before {what} ({} of {length} numbers read)", self.seen)).cure("is it cut off?"))
    }
}
