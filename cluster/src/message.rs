//! After a level, each rank sends the others a message of few bytes, which says which of its vertices it found.
//!
//! All ranks know which vertices were visited before the level, so a message is about unvisited vertices only. It has one of two forms:
//!
//! - *rows*: the rows of the vertices found, as gaps in groups of seven bits (LEB128). The writer counts no bits, so a level that finds few
//!   vertices costs few instructions.
//! - *chunks*: the rank's words in chunks, each coded separately. Vertices are in the order of degrees, and a level finds most vertices of
//!   high degree long before those of low degree, so neighbouring chunks differ. A chunk is a number of six bits and what that announces:
//!   nothing or everything was found; one bit for each unvisited vertex; or the places, among the unvisited vertices of the chunk, of those
//!   found or of those not found, as gaps in a Golomb-Rice code whose parameter is in the number. A last gap leads to the end of the chunk.
//!
//! A rank whose device failed at the level sends a message without vertices that reports the failure: the search begins again, or ends.
//!
//! Lv et al. 2012 ("Compression and sieve") send fewer bytes for the same reason. Golomb-Rice: Rice and Plaunt 1971.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::deal::Deal;
use socbfs::graph::Vertex;

/// Bytes before the payload of a message: its form and the payload's length.
pub(super) const HEADER: usize = 5;
/// Words of a chunk: 2048 vertices. On Kronecker graphs, chunks of half or twice as many words take as many bytes within 1 %.
const CHUNK: usize = 32;
/// Bits of the number that begins a chunk.
const CODE_BITS: u32 = 6;
/// A list is chosen only if it is shorter than the chunk's bits by this many bits an entry: sending a bit takes 1 ns at 1 Gbit/s, and
/// reading an entry takes 2 ns.
const LEAST_GAIN: u64 = 2;

/// A malformed message: one that no rank writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageKind {
    Rows = 0,
    /// Chunks of [`CHUNK`] words.
    Chunks = 1,
    /// One chunk of all words.
    Whole = 2,
    /// The rank's device failed at the level; the search begins again without it.
    Again = 3,
    /// The rank's device failed at the level, and the rank may not continue without it: the search ends.
    Failed = 4,
}

/// Most bytes of a message of a rank with `words` words.
pub(super) fn longest(words: usize) -> usize {
    // A bit for each vertex, the numbers of the chunks, and the word that the writer fills last.
    HEADER + 8 * words + words.div_ceil(CHUNK) + 16
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
        let forms = [MessageKind::Rows, MessageKind::Chunks, MessageKind::Whole, MessageKind::Again, MessageKind::Failed];
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
    let (mut at, mut next) = (HEADER, 0);
    for &row in rows {
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
    finish(MessageKind::Rows, at, out)
}

/// The code of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Nothing,
    Everything,
    Bits,
    /// Places of the vertices found, or of those not found, as gaps with so many low bits (the Golomb-Rice parameter).
    List {
        of_found: bool,
        low: u32,
    },
}

/// Number of Golomb-Rice parameters of each kind of list. With them, the codes fit [`CODE_BITS`] bits.
const PARAMETERS: u32 = 30;

impl Code {
    /// Chooses the code of a chunk in which `found` of `unvisited` vertices were found. Also returns the most bits that follow its number.
    fn choose(unvisited: u64, found: u64) -> (Self, u64) {
        if found == 0 {
            return (Self::Nothing, 0);
        }
        let missing = unvisited - found;
        if missing == 0 {
            return (Self::Everything, 0);
        }
        let (entries, skipped) = (found.min(missing), found.max(missing));
        // The best parameter is near the logarithm of the mean gap. One more gap leads to the end.
        let near = (skipped / (entries + 1)).max(1).ilog2();
        let bits = |low: u32| (entries + 1) * u64::from(low + 1) + (skipped >> low);
        let (listed, low) = (near.saturating_sub(1)..(near + 2).min(PARAMETERS)).map(|low| (bits(low), low)).min().unwrap_or((u64::MAX, 0));
        if listed.saturating_add(LEAST_GAIN * entries) > unvisited {
            (Self::Bits, unvisited)
        } else {
            (Self::List { of_found: found <= missing, low }, listed)
        }
    }

    fn number(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Everything => 1,
            Self::Bits => 2,
            Self::List { of_found, low } => u64::from(3 + low + if of_found { 0 } else { PARAMETERS }),
        }
    }

    fn of(number: u64) -> Result<Self, Malformed> {
        match number as u32 {
            0 => Ok(Self::Nothing),
            1 => Ok(Self::Everything),
            2 => Ok(Self::Bits),
            number if number >= 3 + 2 * PARAMETERS => Err(Malformed),
            number => Ok(Self::List { of_found: number < 3 + PARAMETERS, low: (number - 3) % PARAMETERS }),
        }
    }
}

/// Writes numbers of any width, lowest bits first.
struct BitWriter<'m> {
    out: &'m mut [u8],
    at: usize,
    held: u64,
    count: u32,
}

impl BitWriter<'_> {
    /// Writes the lowest `width` bits of `bits`. The other bits of `bits` must be 0.
    #[inline(always)]
    fn put(&mut self, bits: u64, width: u32) {
        self.held |= bits << self.count;
        let count = self.count + width;
        if count >= 64 {
            self.out[self.at..self.at + 8].copy_from_slice(&self.held.to_le_bytes());
            self.at += 8;
            self.held = if self.count == 0 { 0 } else { bits >> (64 - self.count) };
        }
        self.count = count % 64;
    }

    /// Writes a gap in the Golomb-Rice code: `gap >> low` in unary (that many bits of 0, and a 1), and then the `low` lowest bits.
    #[inline(always)]
    fn put_gap(&mut self, gap: u32, low: u32) {
        let (mut high, lowest) = (gap >> low, u64::from(gap) & ((1 << low) - 1));
        while high >= 32 {
            self.put(0, 32);
            high -= 32;
        }
        // Up to 31 bits of 0, a 1, and up to 29 bits.
        self.put((lowest << 1 | 1) << high, high + 1 + low);
    }

    /// Writes the remaining bits. Returns where the message ends.
    fn end(self) -> usize {
        self.out[self.at..self.at + 8].copy_from_slice(&self.held.to_le_bytes());
        self.at + self.count.div_ceil(8) as usize
    }
}

/// Reads what [`BitWriter`] wrote. Bits past the end read as 0.
struct BitReader<'m> {
    bytes: &'m [u8],
    /// Bits read.
    at: usize,
}

impl BitReader<'_> {
    /// Least number of bits that [`peek`](Self::peek) returns.
    const SHOWN: u32 = 57;

    #[inline(always)]
    fn peek(&self) -> u64 {
        eight(self.bytes, self.at / 8) >> (self.at % 8)
    }

    /// The next `width` bits, up to 64.
    #[inline(always)]
    fn take(&mut self, width: u32) -> u64 {
        let (byte, shift) = (self.at / 8, self.at % 8);
        let low = eight(self.bytes, byte) >> shift;
        let high = match shift {
            0 => 0,
            shift => u64::from(self.bytes.get(byte + 8).copied().unwrap_or(0)) << (64 - shift),
        };
        self.at += width as usize;
        let all = low | high;
        if width == 64 { all } else { all & ((1 << width) - 1) }
    }

    /// The next gap.
    #[inline(always)]
    fn take_gap(&mut self, low: u32) -> Result<u32, Malformed> {
        let shown = self.peek();
        let high = shown.trailing_zeros();
        if high + 1 + low <= Self::SHOWN {
            self.at += (high + 1 + low) as usize;
            let gap = u64::from(high) << low | (shown >> high >> 1) & ((1 << low) - 1);
            return u32::try_from(gap).map_err(|_| Malformed);
        }
        self.take_long_gap(low)
    }

    #[cold]
    fn take_long_gap(&mut self, low: u32) -> Result<u32, Malformed> {
        let mut high = 0;
        loop {
            let zeros = self.peek().trailing_zeros().min(32);
            high += u64::from(zeros);
            self.at += zeros as usize;
            if zeros < 32 {
                break;
            }
            if self.at > 8 * self.bytes.len() {
                return Err(Malformed);
            }
        }
        self.at += 1;
        let gap = (high << low) | self.take(low);
        u32::try_from(gap).map_err(|_| Malformed)
    }
}

/// Moves bits between a word and its compressed form.
trait Pack {
    /// The bits of `word` at the places of `mask`, moved together to the lowest places.
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

/// Writes the message about what a level found. Returns its length.
///
/// `before` and `after` are the rank's own words of the visited bitmap before and after the level.
pub(super) fn write(before: &[u64], after: &[u64], out: &mut [u8]) -> usize {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has both.
        return unsafe { write_bmi2(before, after, out) };
    }
    // SAFETY: `Portable` needs no special instructions.
    unsafe { write_by::<Portable>(before, after, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2,popcnt")]
unsafe fn write_bmi2(before: &[u64], after: &[u64], out: &mut [u8]) -> usize {
    // SAFETY: the caller guarantees that the CPU has BMI2 and popcnt.
    unsafe { write_by::<Bmi2>(before, after, out) }
}

/// Number of vertices that were unvisited, and number of them that were found.
#[inline(always)]
fn count(before: &[u64], after: &[u64]) -> (u64, u64) {
    before.iter().zip(after).fold((0, 0), |(unvisited, found), (&before, &after)| {
        (unvisited + u64::from((!before).count_ones()), found + u64::from((after & !before).count_ones()))
    })
}

/// # Safety
/// The CPU has the instructions of `P`.
#[inline(always)]
unsafe fn write_by<P: Pack>(before: &[u64], after: &[u64], out: &mut [u8]) -> usize {
    let (mut unvisited, mut found, mut chunked) = (0, 0, 0);
    for (before, after) in before.chunks(CHUNK).zip(after.chunks(CHUNK)) {
        let counts = count(before, after);
        unvisited += counts.0;
        found += counts.1;
        chunked += u64::from(CODE_BITS) + Code::choose(counts.0, counts.1).1;
    }
    if found == 0 {
        return finish(MessageKind::Rows, HEADER, out);
    }
    let (form, words) = if u64::from(CODE_BITS) + Code::choose(unvisited, found).1 < chunked {
        (MessageKind::Whole, before.len())
    } else {
        (MessageKind::Chunks, CHUNK)
    };
    let mut bits = BitWriter { out, at: HEADER, held: 0, count: 0 };
    for (before, after) in before.chunks(words).zip(after.chunks(words)) {
        let (unvisited, found) = count(before, after);
        let code = Code::choose(unvisited, found).0;
        bits.put(code.number(), CODE_BITS);
        let words = before.iter().zip(after).map(|(&before, &after)| (!before, after & !before));
        match code {
            Code::Nothing | Code::Everything => {}
            Code::Bits => {
                for (open, found) in words {
                    // SAFETY: the caller guarantees that the CPU has the instructions of `P`.
                    bits.put(unsafe { P::extract(found, open) }, open.count_ones());
                }
            }
            Code::List { of_found, low } => {
                let (mut first, mut next) = (0, 0);
                for (open, found) in words {
                    let mut listed = if of_found { found } else { open & !found };
                    while listed != 0 {
                        let below = (listed & listed.wrapping_neg()) - 1;
                        let place = first + (open & below).count_ones();
                        bits.put_gap(place - next, low);
                        next = place + 1;
                        listed &= listed - 1;
                    }
                    first += open.count_ones();
                }
                bits.put_gap(first - next, low);
            }
        }
    }
    let end = bits.end();
    finish(form, end, out)
}

/// Calls `new` with every word of the rank that sent `message`, and the bits that it found in that word.
///
/// `visited` is the bitmap of all vertices before the level. `new` may change the word that it is called with, and no other.
pub(super) fn read(message: Message<'_>, from: Deal, visited: &[AtomicU64], new: impl FnMut(usize, u64)) -> Result<(), Malformed> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt") {
        // SAFETY: the CPU has both.
        return unsafe { read_bmi2(message, from, visited, new) };
    }
    // SAFETY: `Portable` needs no special instructions.
    unsafe { read_by::<Portable>(message, from, visited, new) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi2,popcnt")]
unsafe fn read_bmi2(message: Message<'_>, from: Deal, visited: &[AtomicU64], new: impl FnMut(usize, u64)) -> Result<(), Malformed> {
    // SAFETY: the caller guarantees that the CPU has BMI2 and popcnt.
    unsafe { read_by::<Bmi2>(message, from, visited, new) }
}

/// # Safety
/// The CPU has the instructions of `P`.
#[inline(always)]
unsafe fn read_by<P: Pack>(
    message: Message<'_>,
    from: Deal,
    visited: &[AtomicU64],
    mut new: impl FnMut(usize, u64),
) -> Result<(), Malformed> {
    let words = from.words(visited.len());
    let chunk = match message.form {
        MessageKind::Rows => {
            let mut rows = message.rows().peekable();
            for own in 0..words {
                let mut bits = 0;
                while let Some(row) = rows.next_if(|&row| (row >> 6) as usize == own) {
                    bits |= 1 << (row & 63);
                }
                let word = from.word(own);
                new(word, bits & !visited[word].load(Relaxed));
            }
            return if rows.next().is_none() { Ok(()) } else { Err(Malformed) };
        }
        MessageKind::Chunks => CHUNK,
        MessageKind::Whole => words.max(1),
        // These messages have no vertices.
        MessageKind::Again | MessageKind::Failed => return Err(Malformed),
    };
    let mut bits = BitReader { bytes: message.payload, at: 0 };
    for begin in (0..words).step_by(chunk) {
        let code = Code::of(bits.take(CODE_BITS))?;
        let own = (begin..words.min(begin + chunk)).map(|own| {
            let word = from.word(own);
            (word, !visited[word].load(Relaxed))
        });
        match code {
            Code::Nothing => own.for_each(|(word, _)| new(word, 0)),
            Code::Everything => own.for_each(|(word, open)| new(word, open)),
            Code::Bits => own.for_each(|(word, open)| {
                // SAFETY: the caller guarantees that the CPU has the instructions of `P`.
                new(word, unsafe { P::deposit(bits.take(open.count_ones()), open) });
            }),
            Code::List { of_found, low } => {
                let mut first = 0u32;
                let mut next = bits.take_gap(low)?;
                for (word, open) in own {
                    let end = first + open.count_ones();
                    let mut places = 0;
                    while next < end {
                        places |= 1 << (next - first);
                        next = bits.take_gap(low)?.checked_add(next + 1).ok_or(Malformed)?;
                    }
                    first = end;
                    // SAFETY: the caller guarantees that the CPU has the instructions of `P`.
                    let listed = unsafe { P::deposit(places, open) };
                    new(word, if of_found { listed } else { open & !listed });
                }
                if next != first {
                    return Err(Malformed);
                }
            }
        }
    }
    if bits.at.div_ceil(8) == message.payload.len() { Ok(()) } else { Err(Malformed) }
}

/// The eight bytes at `at`. Bytes past the end read as 0.
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

    const DEAL: Deal = Deal { ranks: 3, rank: 1 };

    /// The bitmap of all vertices, with words of other ranks between those of `before`.
    fn bitmap(before: &[u64]) -> Vec<AtomicU64> {
        let all: Vec<AtomicU64> = (0..3 * before.len()).map(|_| AtomicU64::new(7)).collect();
        before.iter().enumerate().for_each(|(own, &word)| all[DEAL.word(own)].store(word, Relaxed));
        all
    }

    /// Reads `bytes` with and without BMI2, and checks that both give the same words.
    fn read_both(bytes: &[u8], before: &[u64]) -> Result<Vec<(usize, u64)>, Malformed> {
        let message = Message::read(bytes)?;
        let visited = bitmap(before);
        let mut plain = Vec::new();
        // SAFETY: `Portable` needs no special instructions.
        let ended = unsafe { read_by::<Portable>(message, DEAL, &visited, |word, bits| plain.push((word, bits))) };
        let mut seen = Vec::new();
        assert_eq!(read(message, DEAL, &visited, |word, bits| seen.push((word, bits))), ended);
        assert_eq!(seen, plain);
        ended.map(|()| seen)
    }

    fn check(before: &[u64], found: &[u64]) -> MessageKind {
        let after: Vec<u64> = before.iter().zip(found).map(|(before, found)| before | found).collect();
        let want: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after & !before).collect();
        let mut out = vec![0xaa; longest(before.len())];
        // SAFETY: `Portable` needs no special instructions.
        let end = unsafe { write_by::<Portable>(before, &after, &mut out) };
        let mut other = vec![0xaa; longest(before.len())];
        assert_eq!(write(before, &after, &mut other), end);
        assert_eq!((length(&out), &out[..end]), (end, &other[..end]), "every instruction set writes the same");
        let unvisited: u32 = before.iter().map(|word| (!word).count_ones()).sum();
        let most = unvisited as usize + CODE_BITS as usize * before.len().div_ceil(CHUNK);
        assert!(end <= HEADER + most.div_ceil(8), "never longer than one bit for each unvisited vertex and a number for each chunk");
        let expected: Vec<_> = want.iter().enumerate().map(|(own, &bits)| (DEAL.word(own), bits)).collect();
        assert_eq!(read_both(&out[..end], before).as_ref(), Ok(&expected));

        let rows: Vec<Vertex> = (0..64 * want.len() as u32).filter(|&row| want[(row >> 6) as usize] >> (row & 63) & 1 == 1).collect();
        let mut listed = vec![0; HEADER + 5 * rows.len()];
        write_rows(&rows, &mut listed);
        assert_eq!(Message::read(&listed).map(|message| message.rows().collect()), Ok(rows));
        Message::read(&out).map(|message| message.form).unwrap()
    }

    #[test]
    fn each_form_is_taken_where_it_is_the_shortest() {
        let open = vec![0; 100];
        let mut few = open.clone();
        few[3] = 1 << 17;
        few[99] = 1 << 63;
        assert_eq!(check(&open, &few), MessageKind::Whole);
        let nearly: Vec<u64> = few.iter().map(|word| !word).collect();
        assert_eq!(check(&open, &nearly), MessageKind::Whole);
        assert_eq!(check(&open, &[0x5555_5555_5555_5555; 100]), MessageKind::Whole);
        // Dense at the front, where the hubs are.
        let falling: Vec<u64> = (0..100).map(|word| if word < 32 { 0xffff_ff7f_ffff_feff } else { u64::from(word % 7 == 0) }).collect();
        assert_eq!(check(&open, &falling), MessageKind::Chunks);
        assert_eq!(check(&open, &open), MessageKind::Rows);
        assert_eq!(check(&[u64::MAX; 40], &[0; 40]), MessageKind::Rows);
        assert_eq!(check(&[], &[]), MessageKind::Rows);
    }

    #[test]
    fn the_chosen_code_has_the_expected_length() {
        assert_eq!(Code::choose(0, 0), (Code::Nothing, 0));
        assert_eq!(Code::choose(9, 9), (Code::Everything, 0));
        assert_eq!(Code::choose(2048, 1000), (Code::Bits, 2048));
        // 11 gaps of 7 low bits and a 1, and one bit for each 128 places.
        assert_eq!(Code::choose(2048, 10), (Code::List { of_found: true, low: 7 }, 11 * 8 + (2038 >> 7)));
        assert_eq!(Code::choose(2048, 2038), (Code::List { of_found: false, low: 7 }, 11 * 8 + (2038 >> 7)));
        for number in 0..64 {
            assert_eq!(Code::of(number).map(Code::number), if number < 63 { Ok(number) } else { Err(Malformed) });
        }
        // One vertex at the end of very many: a gap of many bits.
        let (before, mut found) = (vec![0; 40_000], vec![0; 40_000]);
        found[39_999] = 1 << 60;
        check(&before, &found);
    }

    #[test]
    fn malformed_messages_are_refused() {
        let before = [0u64; 40];
        let refused = |form: u8, payload: &[u8]| {
            let mut message = vec![form];
            message.extend((payload.len() as u32).to_le_bytes());
            message.extend(payload);
            assert_eq!(read_both(&message, &before), Err(Malformed), "{form} {payload:?}");
        };
        refused(3, &[]);
        // A row that the rank does not have; missing chunks; a number that no code has; too many bytes.
        refused(0, &[0xff, 0xff, 0xff, 0xff, 0x0f]);
        refused(0, &[0x80 | 0x7f, 0x7f]);
        refused(1, &[]);
        refused(1, &[0b11_1111, 0]);
        refused(1, &[0, 0, 0]);
        // A list without an end, and one that goes past the end of the chunk.
        refused(2, &[3]);
        refused(2, &[3 + 29, 0xff, 0xff, 0xff, 0xff, 0xff]);
        // A gap that does not fit 32 bits: 8 bits of 0 and a 1, and then 29 bits.
        for bits in [1_u64 << 8, 1 << 8 | 5 << 9] {
            assert_eq!(BitReader { bytes: &bits.to_le_bytes(), at: 0 }.take_gap(29), Err(Malformed));
        }
        assert_eq!(BitReader { bytes: &(1_u64 << 7 | 5 << 8).to_le_bytes(), at: 0 }.take_gap(29), Ok(7 << 29 | 5));
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
            if let Ok(seen) = read_both(&out, &before) {
                prop_assert_eq!(seen.len(), before.len());
                for ((_, bits), before) in seen.iter().zip(&before) {
                    prop_assert_eq!(bits & before, 0);
                }
            }
        }
    }
}
