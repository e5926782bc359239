//! After a level, each rank sends the others a message of few bytes, which says which of its vertices it found.
//!
//! All ranks know which vertices were visited before the level. A message has one of two forms:
//!
//! - *rows*: the rows of the vertices found, as gaps in groups of seven bits (LEB128).
//! - *chunks*: the rank's words in chunks, each in the form that takes the fewest bytes. Vertices are in the order of degrees, and a level
//!   finds most vertices of high degree long before those of low degree, so neighbouring chunks differ. A chunk is the number of its form,
//!   and what that announces: none or all of its unvisited vertices were found; the words; or the rows found, or those not found, as gaps.
//!
//! A rank whose device failed at the level sends a message without vertices that reports the failure: the search begins again, or ends.
//!
//! Lv et al. 2012 ("Compression and sieve") send fewer bytes for the same reason.

use std::{
    ops::Range,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use super::deal::Deal;
use socbfs::graph::Vertex;

/// Bytes before the payload of a message: its form and the payload's length.
pub(super) const HEADER: usize = 5;
/// Words of a chunk: 2048 vertices. On Kronecker graphs, chunks of half or twice as many words take as many bytes within 3 %.
const CHUNK: usize = 32;

/// Forms of a chunk: none or all of its unvisited vertices were found, words, and lists of the rows found or not found.
const NOTHING: u8 = 0;
const EVERYTHING: u8 = 1;
const WORDS: u8 = 2;
const FOUND: u8 = 3;
const MISSING: u8 = 4;

/// A malformed message: one that no rank writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Rows = 0,
    Chunks = 1,
    /// The rank's device failed at the level; the search begins again without it.
    Again = 2,
    /// The rank's device failed at the level, and the rank may not continue without it: the search ends.
    Failed = 3,
}

/// Most bytes of a message of a rank with `words` words.
pub(super) fn longest(words: usize) -> usize {
    HEADER + 8 * words + words.div_ceil(CHUNK)
}

/// Most vertices that a rank with `words` words sends as rows.
pub(super) fn few(words: usize) -> usize {
    words / 8
}

/// A message that was received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'m> {
    pub(super) form: MessageKind,
    pub(super) payload: &'m [u8],
}

/// The length of a message as its header gives it, including the header.
pub(super) fn length(message: &[u8]) -> usize {
    HEADER + u32::from_le_bytes([message[1], message[2], message[3], message[4]]) as usize
}

impl<'m> Message<'m> {
    /// Reads the message at the beginning of `bytes`, which contain at least a header.
    pub(super) fn read(bytes: &'m [u8]) -> Result<Self, Malformed> {
        let forms = [MessageKind::Rows, MessageKind::Chunks, MessageKind::Again, MessageKind::Failed];
        let form = *forms.get(usize::from(bytes[0])).ok_or(Malformed)?;
        Ok(Self { form, payload: bytes.get(HEADER..length(bytes)).ok_or(Malformed)? })
    }

    /// Whether no vertex was found.
    pub(super) fn is_empty(self) -> bool {
        self.payload.is_empty()
    }

    /// The rows of a message of the form [`MessageKind::Rows`], in ascending order.
    pub(super) fn rows(self) -> Rows<'m> {
        Rows { bytes: self.payload, next: 0 }
    }
}

/// Decodes rows, in ascending order, from gaps.
#[derive(Debug, Clone)]
pub(super) struct Rows<'m> {
    bytes: &'m [u8],
    next: u32,
}

impl Iterator for Rows<'_> {
    type Item = Vertex;

    #[inline(always)]
    fn next(&mut self) -> Option<Vertex> {
        let (&first, mut rest) = self.bytes.split_first()?;
        let mut gap = u32::from(first & 0x7f);
        let (mut byte, mut shift) = (first, 7);
        while byte >> 7 == 1 && shift < 32 {
            let Some((&more, after)) = rest.split_first() else { break };
            gap |= u32::from(more & 0x7f) << shift;
            (byte, rest, shift) = (more, after, shift + 7);
        }
        self.bytes = rest;
        // A sum that overflows becomes a row beyond those of every rank, which readers refuse.
        let row = self.next.saturating_add(gap);
        self.next = row.saturating_add(1);
        Some(row)
    }
}

fn finish(form: MessageKind, end: usize, out: &mut [u8]) -> usize {
    out[0] = form as u8;
    out[1..HEADER].copy_from_slice(&((end - HEADER) as u32).to_le_bytes());
    end
}

/// Writes a message that consists of its form only. Returns its length.
pub(super) fn write_form(form: MessageKind, out: &mut [u8]) -> usize {
    finish(form, HEADER, out)
}

/// Writes the message about `rows`, which are in ascending order and at most [`few`]. Returns its length.
pub(super) fn write_rows(rows: &[Vertex], out: &mut [u8]) -> usize {
    let end = HEADER + write_gaps(rows.iter().copied(), &mut out[HEADER..]);
    finish(MessageKind::Rows, end, out)
}

/// Writes rows in ascending order as gaps. Returns the number of bytes.
fn write_gaps(rows: impl Iterator<Item = Vertex>, out: &mut [u8]) -> usize {
    let (mut at, mut next) = (0, 0);
    for row in rows {
        let mut gap = row - next;
        next = row + 1;
        while gap >= 0x80 {
            out[at] = gap as u8 | 0x80;
            at += 1;
            gap >>= 7;
        }
        out[at] = gap as u8;
        at += 1;
    }
    at
}

/// The set bits of words, as rows.
pub(super) fn rows_of(words: impl IntoIterator<Item = u64>) -> impl Iterator<Item = Vertex> {
    words.into_iter().zip(0..).flat_map(|(word, at)| Bits(word).map(move |bit| at * 64 + bit))
}

/// Writes the message about what a level found. Returns its length.
///
/// `before` and `after` are the rank's own words of the visited bitmap before and after the level.
pub(super) fn write(before: &[u64], after: &[u64], out: &mut [u8]) -> usize {
    if before == after {
        return finish(MessageKind::Rows, HEADER, out);
    }
    let mut at = HEADER;
    for (before, after) in before.chunks(CHUNK).zip(after.chunks(CHUNK)) {
        let new = || before.iter().zip(after).map(|(before, after)| after & !before);
        let found = new().map(u64::count_ones).sum::<u32>() as usize;
        let missing = after.iter().map(|word| word.count_zeros()).sum::<u32>() as usize;
        // The length of a list, and a byte for each gap, or two for one of 128 rows or more.
        let is_short = 1 + found.min(missing) + before.len() / 2 < 8 * before.len();
        let form = match (found, missing) {
            (0, _) => NOTHING,
            (_, 0) => EVERYTHING,
            _ if !is_short => WORDS,
            _ if found <= missing => FOUND,
            _ => MISSING,
        };
        out[at] = form;
        let chunk = &mut out[at + 1..];
        at += 1 + match form {
            FOUND => write_list(rows_of(new()), chunk),
            MISSING => write_list(rows_of(after.iter().map(|word| !word)), chunk),
            WORDS => {
                chunk.chunks_exact_mut(8).zip(new()).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
                8 * before.len()
            }
            _ => 0,
        };
    }
    finish(MessageKind::Chunks, at, out)
}

/// Writes a list of a chunk: the number of bytes, and the gaps. Returns the number of bytes of both.
fn write_list(rows: impl Iterator<Item = Vertex>, out: &mut [u8]) -> usize {
    let bytes = write_gaps(rows, &mut out[1..]);
    out[0] = bytes as u8;
    1 + bytes
}

/// Calls `new` with every word of the rank that sent `message`, and the bits that it found in that word.
///
/// `visited` is the bitmap of all vertices before the level. `new` may change the word that it is called with, and no other.
pub(super) fn read(message: Message<'_>, from: Deal, visited: &[AtomicU64], mut new: impl FnMut(usize, u64)) -> Result<(), Malformed> {
    let words = from.words(visited.len());
    let mut put = |own: usize, bits: u64| {
        let word = from.word(own);
        new(word, bits & !visited[word].load(Relaxed));
    };
    match message.form {
        MessageKind::Rows => return read_list(message.payload, 0..words, put),
        MessageKind::Chunks => {}
        // These messages have no vertices.
        MessageKind::Again | MessageKind::Failed => return Err(Malformed),
    }
    let mut bytes = message.payload;
    let mut take = |count: usize| {
        let (taken, rest) = bytes.split_at_checked(count)?;
        bytes = rest;
        Some(taken)
    };
    for begin in (0..words).step_by(CHUNK) {
        let own = begin..words.min(begin + CHUNK);
        match take(1).ok_or(Malformed)?[0] {
            NOTHING => own.for_each(|own| put(own, 0)),
            EVERYTHING => own.for_each(|own| put(own, u64::MAX)),
            WORDS => {
                let words = take(8 * own.len()).ok_or(Malformed)?.chunks_exact(8);
                own.zip(words).for_each(|(own, word)| put(own, word.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))));
            }
            form @ (FOUND | MISSING) => {
                let list = take(1).and_then(|length| take(length[0].into())).ok_or(Malformed)?;
                read_list(list, own, |own, listed| put(own, if form == FOUND { listed } else { !listed }))?;
            }
            _ => return Err(Malformed),
        }
    }
    if bytes.is_empty() { Ok(()) } else { Err(Malformed) }
}

/// Calls `word` with each of `words`, and the bits of the rows that a list has there. Rows count from the first of these words.
fn read_list(bytes: &[u8], words: Range<usize>, mut word: impl FnMut(usize, u64)) -> Result<(), Malformed> {
    let mut rows = Rows { bytes, next: 0 }.peekable();
    for (at, own) in words.enumerate() {
        let mut bits = 0;
        while let Some(row) = rows.next_if(|&row| (row >> 6) as usize == at) {
            bits |= 1 << (row & 63);
        }
        word(own, bits);
    }
    if rows.next().is_none() { Ok(()) } else { Err(Malformed) }
}

/// The set bits of a word, lowest first.
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let bit = self.0.trailing_zeros();
        (self.0 != 0).then(|| {
            self.0 &= self.0 - 1;
            bit
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEAL: Deal = Deal { ranks: 3, rank: 1 };

    /// The bitmap of all vertices, with words of other ranks between those of `before`.
    fn bitmap(before: &[u64]) -> Vec<AtomicU64> {
        let all: Vec<AtomicU64> = (0..3 * before.len()).map(|_| AtomicU64::new(7)).collect();
        before.iter().enumerate().for_each(|(own, &word)| all[DEAL.word(own)].store(word, Relaxed));
        all
    }

    /// The words that `bytes` give.
    fn words_of(bytes: &[u8], before: &[u64]) -> Result<Vec<(usize, u64)>, Malformed> {
        let mut seen = Vec::new();
        read(Message::read(bytes)?, DEAL, &bitmap(before), |word, bits| seen.push((word, bits)))?;
        Ok(seen)
    }

    fn check(before: &[u64], found: &[u64]) -> Vec<u8> {
        let after: Vec<u64> = before.iter().zip(found).map(|(before, found)| before | found).collect();
        let want: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after & !before).collect();
        let mut out = vec![0xaa; longest(before.len())];
        let end = write(before, &after, &mut out);
        assert_eq!(length(&out), end);
        let expected: Vec<_> = want.iter().enumerate().map(|(own, &bits)| (DEAL.word(own), bits)).collect();
        assert_eq!(words_of(&out[..end], before).as_ref(), Ok(&expected));

        let rows: Vec<Vertex> = (0..64 * want.len() as u32).filter(|&row| want[(row >> 6) as usize] >> (row & 63) & 1 == 1).collect();
        let mut listed = vec![0; HEADER + 5 * rows.len()];
        write_rows(&rows, &mut listed);
        assert_eq!(Message::read(&listed).map(|message| message.rows().collect()), Ok(rows));
        out.truncate(end);
        out
    }

    #[test]
    fn each_form_is_taken_where_it_is_the_shortest() {
        let open = vec![0; 64];
        let check = |before: &[u64], found: &[u64]| check(before, found).split_off(HEADER);
        // Row 17 of word 3 of a chunk, and the last row of the other chunk: gaps of 209 and 2047 rows.
        let mut few = open.clone();
        (few[3], few[63]) = (1 << 17, 1 << 63);
        assert_eq!(check(&open, &few), [FOUND, 2, 0x80 | 81, 1, FOUND, 2, 0xff, 15]);
        let nearly: Vec<u64> = few.iter().map(|word| !word).collect();
        assert_eq!(check(&open, &nearly), [MISSING, 2, 0x80 | 81, 1, MISSING, 2, 0xff, 15]);
        let half = check(&open, &[0x5555_5555_5555_5555; 64]);
        assert_eq!((half.len(), half[0], half[257]), (2 * 257, WORDS, WORDS));
        // Dense at the front, where the hubs are.
        let front: Vec<u64> = (0..64).map(|word| if word < 32 { u64::MAX } else { 0 }).collect();
        assert_eq!(check(&open, &front), [EVERYTHING, NOTHING]);
        for before in [&open[..], &[u64::MAX; 40], &[]] {
            assert!(check(before, &vec![0; before.len()]).is_empty());
        }
    }

    #[test]
    fn malformed_messages_are_refused() {
        let before = [0u64; 40];
        let refused = |form: u8, payload: &[u8]| {
            let mut message = vec![form];
            message.extend((payload.len() as u32).to_le_bytes());
            message.extend(payload);
            assert_eq!(words_of(&message, &before), Err(Malformed), "{form} {payload:?}");
        };
        refused(2, &[]);
        refused(4, &[]);
        // A row that the rank does not have; missing chunks; a form that no chunk has; too many bytes.
        refused(0, &[0xff, 0xff, 0xff, 0xff, 0x0f]);
        refused(0, &[0x80 | 0x7f, 0x7f]);
        refused(1, &[]);
        refused(1, &[NOTHING]);
        refused(1, &[5, NOTHING]);
        refused(1, &[NOTHING, NOTHING, NOTHING]);
        // Words and lists without an end, and a row past the end of the chunk.
        refused(1, &[NOTHING, WORDS, 1, 2, 3]);
        refused(1, &[NOTHING, FOUND]);
        refused(1, &[NOTHING, MISSING, 2, 0]);
        refused(1, &[FOUND, 2, 0x80, 16, NOTHING]);
        // A payload that ends before it should.
        assert_eq!(Message::read(&[1, 9, 0, 0, 0, 1]).map(|_| ()), Err(Malformed));
    }

    proptest! {
        #[test]
        fn messages_are_read_as_written_and_damage_finds_no_visited_vertex(
            words in prop::collection::vec((any::<u64>(), any::<u64>(), 0u32..6), 0..120),
            density in 0u32..6,
            flipped in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 1..4),
        ) {
            let thin = |word: u64, by: u32| (0..by).fold(word, |word, by| word & word.rotate_left(7 * by + 1));
            let before: Vec<u64> = words.iter().map(|&(word, _, by)| thin(word, by)).collect();
            // Denser at the front than at the back; `most` is the opposite.
            let found: Vec<u64> =
                words.iter().enumerate().map(|(at, &(_, word, _))| thin(word, density * at as u32 / words.len() as u32)).collect();
            check(&before, &found);
            let most: Vec<u64> = found.iter().map(|word| !word).collect();
            check(&before, &most);

            // A damaged message is refused, or contains unvisited vertices only.
            let after: Vec<u64> = before.iter().zip(&found).map(|(before, found)| before | found).collect();
            let mut out = vec![0; longest(before.len())];
            let end = write(&before, &after, &mut out);
            out.truncate(end);
            for (place, bits) in &flipped {
                out[place.index(end)] ^= bits;
            }
            if let Ok(seen) = words_of(&out, &before) {
                prop_assert_eq!(seen.len(), before.len());
                for ((_, bits), before) in seen.iter().zip(&before) {
                    prop_assert_eq!(bits & before, 0);
                }
            }
        }
    }
}
