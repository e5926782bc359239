//! What a rank tells the others after a level: which of its vertices it found, in as few bytes as one of four forms needs.
//!
//! All ranks know which vertices were visited before the level, so a message speaks of the unvisited ones only. The forms are
//!
//! - *bits*: one bit for each unvisited vertex of the rank;
//! - *found*: the places of those found among the unvisited ones, as gaps;
//! - *missing*: the same of those not found, for the level at which nearly everything is found;
//! - *rows*: the rows of those found, as gaps: nothing is counted, so that a level of few vertices costs few instructions.
//!
//! Gaps are written in groups of seven bits (LEB128). Lv et al. 2012 ("Compression and sieve") send fewer bytes for the same reason.

use super::deal::Deal;
use crate::graph::Vertex;

/// Bytes before what a message says: its form and its length.
pub(super) const HEADER: usize = 5;

/// How a message says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Bits = 0,
    Found = 1,
    Missing = 2,
    Rows = 3,
}

impl Form {
    fn of(byte: u8) -> Self {
        match byte {
            0 => Self::Bits,
            1 => Self::Found,
            2 => Self::Missing,
            _ => Self::Rows,
        }
    }
}

/// Most bytes a message of a rank with `words` words may have.
pub(super) fn longest(words: usize) -> usize {
    // Bits of all vertices; or a list that was given up when it was longer than that, by a gap of five bytes.
    HEADER + 8 * words + 16
}

/// Up to this many vertices of `words` words are sent as rows.
pub(super) fn few(words: usize) -> usize {
    words / 8
}

/// A message read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'m> {
    pub(super) form: Form,
    pub(super) payload: &'m [u8],
}

/// The length that the header of a message announces, header included.
pub(super) fn length(message: &[u8]) -> usize {
    HEADER + u32::from_le_bytes([message[1], message[2], message[3], message[4]]) as usize
}

impl<'m> Message<'m> {
    /// Reads the message at the front of `bytes`.
    pub(super) fn read(bytes: &'m [u8]) -> Self {
        Self { form: Form::of(bytes[0]), payload: &bytes[HEADER..length(bytes)] }
    }

    /// The gaps of a list, summed up: rows or places in ascending order.
    pub(super) fn numbers(self) -> Numbers<'m> {
        Numbers { bytes: self.payload, next: 0 }
    }
}

/// Numbers in ascending order, read from gaps.
#[derive(Debug, Clone)]
pub(super) struct Numbers<'m> {
    bytes: &'m [u8],
    next: u32,
}

impl Iterator for Numbers<'_> {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let (&first, mut rest) = self.bytes.split_first()?;
        let mut gap = u32::from(first & 0x7f);
        let (mut byte, mut shift) = (first, 7);
        while byte >> 7 == 1 && shift < 32 {
            let Some((&more, after)) = rest.split_first() else { break };
            gap |= u32::from(more & 0x7f) << shift;
            (byte, rest, shift) = (more, after, shift + 7);
        }
        self.bytes = rest;
        let number = self.next.wrapping_add(gap);
        self.next = number.wrapping_add(1);
        Some(number)
    }
}

/// Writes numbers as gaps, up to a limit of bytes.
struct Gaps<'m> {
    out: &'m mut [u8],
    at: usize,
    limit: usize,
    next: u32,
}

impl Gaps<'_> {
    /// False where the list became too long.
    #[inline(always)]
    fn push(&mut self, number: u32) -> bool {
        let mut gap = number - self.next;
        self.next = number + 1;
        while gap >= 0x80 {
            self.out[self.at] = gap as u8 | 0x80;
            self.at += 1;
            gap >>= 7;
        }
        self.out[self.at] = gap as u8;
        self.at += 1;
        self.at <= self.limit
    }
}

fn finish(form: Form, end: usize, out: &mut [u8]) -> usize {
    out[0] = form as u8;
    out[1..HEADER].copy_from_slice(&((end - HEADER) as u32).to_le_bytes());
    end
}

/// Writes the message about `rows`, which are in ascending order and at most [`few`]; gives its length.
pub(super) fn write_rows(rows: &[Vertex], out: &mut [u8]) -> usize {
    let mut gaps = Gaps { limit: usize::MAX, at: HEADER, next: 0, out };
    for &row in rows {
        gaps.push(row);
    }
    let end = gaps.at;
    finish(Form::Rows, end, out)
}

/// Moves bits between a word and its compressed form.
trait Pack {
    /// The bits of `word` at the places of `mask`, side by side.
    unsafe fn extract(word: u64, mask: u64) -> u64;
    /// The lowest bits of `packed`, at the places of `mask`.
    unsafe fn deposit(packed: u64, mask: u64) -> u64;
}

struct Portable;

impl Pack for Portable {
    #[inline(always)]
    unsafe fn extract(word: u64, mut mask: u64) -> u64 {
        if mask == u64::MAX {
            return word;
        }
        let (mut packed, mut place) = (0, 0);
        while mask != 0 {
            packed |= (word >> mask.trailing_zeros() & 1) << place;
            place += 1;
            mask &= mask - 1;
        }
        packed
    }

    #[inline(always)]
    unsafe fn deposit(mut packed: u64, mut mask: u64) -> u64 {
        if mask == u64::MAX {
            return packed;
        }
        let mut word = 0;
        while mask != 0 && packed != 0 {
            word |= (packed & 1) << mask.trailing_zeros();
            packed >>= 1;
            mask &= mask - 1;
        }
        word
    }
}

#[cfg(target_arch = "x86_64")]
struct Bmi2;

#[cfg(target_arch = "x86_64")]
impl Pack for Bmi2 {
    #[inline(always)]
    unsafe fn extract(word: u64, mask: u64) -> u64 {
        // SAFETY: the CPU has BMI2 (caller).
        unsafe { std::arch::x86_64::_pext_u64(word, mask) }
    }

    #[inline(always)]
    unsafe fn deposit(packed: u64, mask: u64) -> u64 {
        // SAFETY: the CPU has BMI2 (caller).
        unsafe { std::arch::x86_64::_pdep_u64(packed, mask) }
    }
}

/// Writes the message about what a level found, in the shortest form; gives its length.
///
/// `before` and `after` are the rank's own words of the visited bitmap before and after the level.
pub(super) fn write(before: &[u64], after: &[u64], out: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has both.
        return unsafe { write_bmi2(before, after, out) };
    }
    // SAFETY: plain code asks for no instructions.
    unsafe { write_by::<Portable>(before, after, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2,popcnt")]
unsafe fn write_bmi2(before: &[u64], after: &[u64], out: &mut [u8]) -> usize {
    // SAFETY: the caller's promise, passed on.
    unsafe { write_by::<Bmi2>(before, after, out) }
}

/// # Safety
/// The CPU has the instructions of `P`.
#[inline(always)]
unsafe fn write_by<P: Pack>(before: &[u64], after: &[u64], out: &mut [u8]) -> usize {
    let (mut unvisited, mut found) = (0u64, 0u64);
    for (&before, &after) in before.iter().zip(after) {
        unvisited += u64::from((!before).count_ones());
        found += u64::from((after & !before).count_ones());
    }
    let bits = unvisited.div_ceil(8) as usize;
    let missing = unvisited - found;
    // A list needs a byte an entry at least.
    for (form, entries) in [(Form::Found, found), (Form::Missing, missing)] {
        if entries as usize > bits.saturating_sub(1) || entries > unvisited / 2 + 1 {
            continue;
        }
        let mut gaps = Gaps { limit: HEADER + bits, at: HEADER, next: 0, out };
        let mut place = 0;
        let fits = before.iter().zip(after).all(|(&before, &after)| {
            let open = !before;
            let mut listed = match form {
                Form::Missing => open & !after,
                _ => open & after,
            };
            let mut fits = true;
            while listed != 0 {
                let below = (listed & listed.wrapping_neg()) - 1;
                fits &= gaps.push(place + (open & below).count_ones());
                listed &= listed - 1;
                if !fits {
                    break;
                }
            }
            place += open.count_ones();
            fits
        });
        if fits {
            let end = gaps.at;
            return finish(form, end, out);
        }
    }
    let (mut held, mut count, mut at) = (0u64, 0u32, HEADER);
    for (&before, &after) in before.iter().zip(after) {
        let open = !before;
        let width = open.count_ones();
        if width == 0 {
            continue;
        }
        // SAFETY: the caller's promise.
        let packed = unsafe { P::extract(after, open) };
        held |= packed << count;
        if count + width >= 64 {
            out[at..at + 8].copy_from_slice(&held.to_le_bytes());
            at += 8;
            held = if count == 0 { 0 } else { packed >> (64 - count) };
            count = count + width - 64;
        } else {
            count += width;
        }
    }
    out[at..at + 8].copy_from_slice(&held.to_le_bytes());
    finish(Form::Bits, at + count.div_ceil(8) as usize, out)
}

/// Shows `new` every word of the rank that `message` is from, with what was found in it.
///
/// `visited` is the bitmap of all vertices before the level; `new` may change the word that it is shown, not another.
pub(super) fn read(message: Message<'_>, from: Deal, visited: &mut [u64], new: impl FnMut(usize, u64, &mut u64)) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has both.
        return unsafe { read_bmi2(message, from, visited, new) };
    }
    // SAFETY: plain code asks for no instructions.
    unsafe { read_by::<Portable>(message, from, visited, new) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2,popcnt")]
unsafe fn read_bmi2(message: Message<'_>, from: Deal, visited: &mut [u64], new: impl FnMut(usize, u64, &mut u64)) {
    // SAFETY: the caller's promise, passed on.
    unsafe { read_by::<Bmi2>(message, from, visited, new) }
}

/// # Safety
/// The CPU has the instructions of `P`.
#[inline(always)]
unsafe fn read_by<P: Pack>(message: Message<'_>, from: Deal, visited: &mut [u64], mut new: impl FnMut(usize, u64, &mut u64)) {
    let words = visited.len();
    let own = (from.rank..words).step_by(from.ranks);
    match message.form {
        Form::Bits => {
            let mut at = 0u64;
            for word in own {
                let open = !visited[word];
                let width = open.count_ones();
                let bits = if width == 0 {
                    0
                } else {
                    let byte = (at / 8) as usize;
                    let low = eight(message.payload, byte) >> (at % 8);
                    let high = match at % 8 {
                        0 => 0,
                        shift => u64::from(message.payload.get(byte + 8).copied().unwrap_or(0)) << (64 - shift),
                    };
                    // SAFETY: the caller's promise.
                    unsafe { P::deposit(low | high, open) }
                };
                at += u64::from(width);
                new(word, bits, &mut visited[word]);
            }
        }
        Form::Found | Form::Missing => {
            let mut numbers = message.numbers();
            let mut next = numbers.next();
            let mut first = 0u32;
            for word in own {
                let open = !visited[word];
                let end = first + open.count_ones();
                let mut listed = 0u64;
                while let Some(place) = next.filter(|&place| place < end) {
                    // A message of our own form lists ascending places.
                    // SAFETY: the caller's promise.
                    listed |= unsafe { P::deposit(1 << (place.wrapping_sub(first) & 63), open) };
                    next = numbers.next();
                }
                let bits = if message.form == Form::Missing { open & !listed } else { listed };
                first = end;
                new(word, bits, &mut visited[word]);
            }
        }
        Form::Rows => {
            let mut rows = message.numbers().peekable();
            for (own, word) in own.enumerate() {
                let mut bits = 0;
                while let Some(row) = rows.next_if(|&row| (row >> 6) as usize <= own) {
                    bits |= 1 << (row & 63);
                }
                new(word, bits, &mut visited[word]);
            }
        }
    }
}

/// The eight bytes at `at`; what is past the end reads as 0.
#[inline(always)]
fn eight(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..at + 8) {
        Some(bytes) => u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]),
        None => bytes.iter().skip(at).take(8).enumerate().fold(0, |word, (i, &byte)| word | u64::from(byte) << (8 * i)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(before: &[u64], found: &[u64]) -> Form {
        let after: Vec<u64> = before.iter().zip(found).map(|(before, found)| before | found).collect();
        let want: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after & !before).collect();
        let deal = Deal { ranks: 3, rank: 1 };
        let mut out = vec![0xaa; longest(before.len())];
        let mut lengths = Vec::new();
        let mut form = Form::Bits;
        for plain in [true, false] {
            // SAFETY: plain code asks for no instructions.
            let end = if plain { unsafe { write_by::<Portable>(before, &after, &mut out) } } else { write(before, &after, &mut out) };
            assert_eq!(length(&out), end);
            lengths.push(end);
            let message = Message::read(&out);
            form = message.form;
            let unvisited: u32 = before.iter().map(|word| (!word).count_ones()).sum();
            assert!(end <= HEADER + unvisited.div_ceil(8) as usize, "never longer than one bit for each unvisited vertex");
            // Words of other ranks lie between.
            let mut visited = vec![7; 3 * before.len()];
            before.iter().enumerate().for_each(|(own, &word)| visited[deal.word(own)] = word);
            for plain in [true, false] {
                let mut seen = Vec::new();
                let mut look = |word: usize, bits: u64, _: &mut u64| seen.push((word, bits));
                if plain {
                    // SAFETY: plain code asks for no instructions.
                    unsafe { read_by::<Portable>(message, deal, &mut visited, &mut look) }
                } else {
                    read(message, deal, &mut visited, &mut look)
                }
                assert_eq!(seen, want.iter().enumerate().map(|(own, &bits)| (deal.word(own), bits)).collect::<Vec<_>>(), "{form:?}");
            }
        }
        assert_eq!(lengths[0], lengths[1], "every instruction set writes the same");

        let rows: Vec<Vertex> = (0..64 * want.len() as u32).filter(|&row| want[(row >> 6) as usize] >> (row & 63) & 1 == 1).collect();
        let mut out = vec![0; HEADER + 5 * rows.len()];
        write_rows(&rows, &mut out);
        assert_eq!(Message::read(&out).numbers().collect::<Vec<_>>(), rows);
        form
    }

    #[test]
    fn each_form_is_taken_where_it_is_the_shortest() {
        let open = vec![0; 40];
        let mut few = open.clone();
        few[3] = 1 << 17;
        few[39] = 1 << 63;
        assert_eq!(check(&open, &few), Form::Found);
        let nearly: Vec<u64> = few.iter().map(|word| !word).collect();
        assert_eq!(check(&open, &nearly), Form::Missing);
        assert_eq!(check(&open, &[0x5555_5555_5555_5555; 40]), Form::Bits);
        assert_eq!(check(&open, &open), Form::Found);
        assert_eq!(check(&[u64::MAX; 40], &open), Form::Found);
        assert_eq!(check(&[], &[]), Form::Found);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            words in prop::collection::vec((any::<u64>(), any::<u64>(), 0u32..6), 0..60),
            density in 0u32..6,
        ) {
            let thin = |word: u64, by: u32| (0..by).fold(word, |word, by| word & word.rotate_left(7 * by + 1));
            let before: Vec<u64> = words.iter().map(|&(word, _, by)| thin(word, by)).collect();
            let found: Vec<u64> = words.iter().map(|&(_, word, _)| thin(word, density)).collect();
            check(&before, &found);
            let most: Vec<u64> = found.iter().map(|word| !word).collect();
            check(&before, &most);
        }
    }
}
