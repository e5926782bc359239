//! Text that is a sequence of numbers, with line ends anywhere between them, parsed in parallel: the Ligra and Rodinia formats.

use std::ops::Range;

use rayon::prelude::*;

use super::error::Fault;
use super::scan::{CHUNK, Cut, Field, MARGIN, count_fields, field, fields, is_space, is_weight, number, shown};
use socbfs::graph::Vertex;

/// The numbers of a block of text. The memory is used again for the next block.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// The numbers; 0 for a field that is not a 32-bit number.
    pub(super) values: Vec<Vertex>,
    /// Positions in `values` of fields that are a weight, but not a 32-bit number; ascending.
    strange: Vec<usize>,
}

impl Tokens {
    /// Parses a block.
    pub(super) fn parse(&mut self, text: &[u8]) -> Result<(), Box<Fault>> {
        let chunks = Cut::Fields.chunks(text, CHUNK);
        let counts: Vec<usize> = chunks.par_iter().map(|chunk| count_fields(&text[chunk.clone()])).collect();
        let total: usize = counts.iter().sum();
        self.values.clear();
        self.values.try_reserve(total).map_err(|_| Fault::OutOfMemory(total as u64 * 4))?;
        self.values.resize(total, 0);
        let mut rest = &mut self.values[..];
        let mut tasks = Vec::with_capacity(chunks.len());
        let mut first = 0;
        for (chunk, &count) in chunks.iter().zip(&counts) {
            let (out, tail) = rest.split_at_mut(count);
            tasks.push((chunk.clone(), first, out));
            rest = tail;
            first += count;
        }
        let parts: Vec<Result<Vec<usize>, Box<Fault>>> =
            tasks.into_par_iter().map(|(chunk, first, out)| parse(text, chunk, first, out)).collect();
        self.strange.clear();
        for part in parts {
            self.strange.extend(part?);
        }
        Ok(())
    }

    /// The first field that is not a 32-bit number, among every `step`th field of `range`.
    pub(super) fn strange(&self, range: Range<usize>, step: usize) -> Option<usize> {
        let from = self.strange.partition_point(|&index| index < range.start);
        self.strange[from..].iter().copied().take_while(|&index| index < range.end).find(|index| (index - range.start) % step == 0)
    }
}

/// Parses the fields of a chunk into `out`; returns the positions that [`Tokens`] keeps in `strange`.
fn parse(text: &[u8], chunk: Range<usize>, first: usize, out: &mut [Vertex]) -> Result<Vec<usize>, Box<Fault>> {
    let mut strange = Vec::new();
    let mut at = chunk.start;
    let mut filled = 0;
    while at < chunk.end {
        if is_space(text[at]) {
            at += 1;
            continue;
        }
        if at + MARGIN <= text.len() {
            // SAFETY: MARGIN bytes follow.
            let (value, length) = unsafe { number(text, at) };
            if length > 0 && is_space(text[at + length]) && value <= u64::from(Vertex::MAX) {
                out[filled] = value as Vertex;
                filled += 1;
                at += length + 1;
                continue;
            }
        }
        let length = text[at..chunk.end].iter().position(|&byte| is_space(byte)).unwrap_or(chunk.end - at);
        let word = &text[at..at + length];
        match field(word) {
            Field::Number(value) if value <= u64::from(Vertex::MAX) => out[filled] = value as Vertex,
            _ if is_weight(word) => strange.push(first + filled),
            _ => {
                return Err(
                    Fault::at(at, format!("{} is not a number", shown(word))).cure("is the file damaged, or in another format (--format)?")
                );
            }
        }
        filled += 1;
        at += length;
    }
    Ok(strange)
}

/// The start and the text of field `index`, for messages.
#[cold]
pub(super) fn locate(text: &[u8], index: usize) -> (usize, String) {
    fields(text).nth(index).map_or_else(|| (0, String::new()), |(at, word)| (at, shown(word)))
}
