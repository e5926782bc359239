//! Fast scanning of text for integers, blanks and lines.

use std::ops::Range;

use memchr::{memchr, memrchr};

/// Bytes from a position on that the fast paths may read. If fewer bytes follow, a careful path parses them.
pub(super) const MARGIN: usize = 96;

/// Bytes of text that one task parses: large compared with the cost of a task, small compared with a cache.
pub(super) const CHUNK: usize = 1 << 20;

/// White space, line ends included.
#[inline(always)]
pub(super) fn is_space(byte: u8) -> bool {
    byte == b' ' || byte.wrapping_sub(b'\t') < 5
}

/// Eight bytes of text as a little-endian word: the first byte is the lowest.
///
/// # Safety
/// `at + 8 <= text.len()`.
#[inline(always)]
unsafe fn word(text: &[u8], at: usize) -> u64 {
    debug_assert!(at + 8 <= text.len());
    // SAFETY: the caller promises that eight bytes follow; read_unaligned needs no alignment.
    u64::from_le(unsafe { text.as_ptr().add(at).cast::<u64>().read_unaligned() })
}

/// The digits at the start of a word, as the low nibbles of its bytes (the bytes after the digits are undefined), and their number.
#[inline(always)]
fn digits(word: u64) -> (u64, u32) {
    let nibbles = word ^ 0x3030_3030_3030_3030;
    // A byte above 9 gets a bit in its high nibble, by itself or by adding 6. A carry can only disturb bytes after the
    // first one that is not a digit.
    let other = (nibbles.wrapping_add(0x0606_0606_0606_0606) | nibbles) & 0xf0f0_f0f0_f0f0_f0f0;
    (nibbles, other.trailing_zeros() / 8)
}

/// The value of the first `count` (1 to 8) digits of a word of nibbles: neighbours are combined, then pairs, then fours.
#[inline(always)]
fn value(nibbles: u64, count: u32) -> u64 {
    let aligned = nibbles << (64 - 8 * count); // zeros come in front
    let pairs = (aligned & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(2561) >> 8;
    let fours = (pairs & 0x00ff_00ff_00ff_00ff).wrapping_mul(6_553_601) >> 16;
    (fours & 0x0000_ffff_0000_ffff).wrapping_mul(42_949_672_960_001) >> 32
}

/// The number at `at` and its length in digits. The length is 0 if there is no number, or one of more than 15 digits.
///
/// # Safety
/// `at + 16 <= text.len()`.
#[inline(always)]
pub(super) unsafe fn number(text: &[u8], at: usize) -> (u64, usize) {
    const POWERS: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];
    // SAFETY: sixteen bytes follow.
    let (nibbles, count) = digits(unsafe { word(text, at) });
    if count == 0 {
        return (0, 0);
    }
    let first = value(nibbles, count);
    if count < 8 {
        return (first, count as usize);
    }
    // SAFETY: as above.
    let (nibbles, more) = digits(unsafe { word(text, at + 8) });
    match more {
        0 => (first, 8),
        8 => (0, 0),
        _ => (first * POWERS[more as usize] + value(nibbles, more), 8 + more as usize),
    }
}

/// The content of a field in which a number is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Number(u64),
    /// A number that does not fit 64 bits.
    Huge,
    /// A minus sign and digits.
    Negative,
    /// Something else.
    Other,
}

/// Reads a whole field (without white space) as a number.
pub(super) fn field(text: &[u8]) -> Field {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Field::Other;
    }
    if negative {
        return Field::Negative;
    }
    digits
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .map_or(Field::Huge, Field::Number)
}

/// The bytes that a weight is made of: an integer, a decimal number, `inf`, `nan`.
pub(super) const WEIGHT: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"0123456789+-.eEdDiInNfFaA";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// Whether the field is a weight: an integer, a decimal number, `inf` or `nan`.
pub(super) fn is_weight(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unsigned = |text: &'_ [u8]| usize::from(matches!(text, [b'+' | b'-', ..]));
    let text = &text[unsigned(text)..];
    if [&b"inf"[..], b"infinity", b"nan"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return true;
    }
    let whole = digits(text);
    let text = &text[whole..];
    let (fraction, text) = match text {
        [b'.', rest @ ..] => (digits(rest), &rest[digits(rest)..]),
        _ => (0, text),
    };
    match text {
        _ if whole + fraction == 0 => false,
        [] => true,
        // Fortran writes D for the exponent.
        [b'e' | b'E' | b'd' | b'D', rest @ ..] => {
            let rest = &rest[unsigned(rest)..];
            !rest.is_empty() && digits(rest) == rest.len()
        }
        _ => false,
    }
}

/// The fields of a line, which white space separates, with their offsets in it.
pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    columns(line, false)
}

/// As [`fields`]. With `commas`, a comma with or without white space around it separates fields too, and a field may be empty.
pub(super) fn columns(line: &[u8], commas: bool) -> impl Iterator<Item = (usize, &[u8])> {
    let ends = move |byte: u8| is_space(byte) || commas && byte == b',';
    let mut at = 0;
    std::iter::from_fn(move || {
        at += line[at..].iter().position(|&byte| !is_space(byte))?;
        let start = at;
        at += line[at..].iter().position(|&byte| ends(byte)).unwrap_or(line.len() - at);
        let field = (start, &line[start..at]);
        if commas {
            let next = line[at..].iter().position(|&byte| !is_space(byte)).map(|blanks| at + blanks);
            at = next.filter(|&next| line[next] == b',').map_or(at, |next| next + 1);
        }
        Some(field)
    })
}

/// A piece of text for a message: in quotes, shortened, with control characters escaped.
pub(super) fn shown(text: &[u8]) -> String {
    const MOST: usize = 40;
    let cut = &text[..text.len().min(MOST)];
    format!("'{}{}'", cut.escape_ascii(), if text.len() > MOST { "..." } else { "" })
}

/// The end of the line that starts at `at`: after its `\n`, or the end of the text.
pub(super) fn line_end(text: &[u8], at: usize) -> usize {
    memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length + 1)
}

/// Number of line ends.
pub(super) fn count_lines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// Number of fields: places where white space, or the end, follows something else.
pub(super) fn count_fields(text: &[u8]) -> usize {
    let Some(&last) = text.last() else { return 0 };
    // The count of a block fits a byte, so that sixteen or more bytes are compared and added up at once.
    let mut ends = usize::from(!is_space(last));
    let mut at = 0;
    while at + 1 < text.len() {
        let end = (at + 255).min(text.len() - 1);
        let block: u8 = text[at..end].iter().zip(&text[at + 1..=end]).map(|(&a, &b)| u8::from(!is_space(a) & is_space(b))).sum();
        ends += usize::from(block);
        at = end;
    }
    ends
}

/// Where a text may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// After a line end.
    Lines,
    /// After any white space.
    Fields,
    /// At multiples of this many bytes.
    Bytes(usize),
}

impl Cut {
    /// The last place in the text where it may be cut (0: none).
    pub(super) fn last(self, text: &[u8]) -> usize {
        match self {
            Self::Lines => memrchr(b'\n', text).map_or(0, |at| at + 1),
            Self::Fields => text.iter().rposition(|&byte| is_space(byte)).map_or(0, |at| at + 1),
            Self::Bytes(size) => text.len() - text.len() % size,
        }
    }

    /// The first place at or after `at` where it may be cut (the end: always).
    pub(super) fn next(self, text: &[u8], at: usize) -> usize {
        match self {
            _ if at >= text.len() => text.len(),
            Self::Lines => line_end(text, at),
            Self::Fields => text[at..].iter().position(|&byte| is_space(byte)).map_or(text.len(), |length| at + length + 1),
            Self::Bytes(size) => at.next_multiple_of(size).min(text.len()),
        }
    }

    /// Cuts the text into chunks of about `size` bytes.
    pub(super) fn chunks(self, text: &[u8], size: usize) -> Vec<Range<usize>> {
        let mut chunks = Vec::with_capacity(text.len() / size + 1);
        let mut start = 0;
        while start < text.len() {
            let end = self.next(text, start.saturating_add(size));
            chunks.push(start..end);
            start = end;
        }
        chunks
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn padded(text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(bytes.len() + 16, b' ');
        bytes
    }

    fn at_start(text: &str) -> (u64, usize) {
        // SAFETY: sixteen bytes of padding.
        unsafe { number(&padded(text), 0) }
    }

    #[test]
    fn numbers_of_up_to_15_digits_are_read() {
        let mut text = String::new();
        for length in 1..=15 {
            text.push(char::from(b'0' + (length % 10) as u8));
            assert_eq!(at_start(&text), (text.parse().unwrap(), length));
        }
        assert_eq!(at_start("1234567890123456"), (0, 0));
        assert_eq!(at_start("12345678901234567890"), (0, 0));
        assert_eq!(at_start("000"), (0, 3));
        assert_eq!(at_start(""), (0, 0));
        assert_eq!(at_start("-1"), (0, 0));
    }

    proptest! {
        #[test]
        fn any_byte_but_a_digit_ends_a_number(
            value in 0_u64..1_000_000_000_000, end in any::<u8>(), rest in proptest::collection::vec(any::<u8>(), 32),
        ) {
            prop_assume!(!end.is_ascii_digit());
            let mut text = value.to_string().into_bytes();
            let length = text.len();
            text.push(end);
            text.extend(rest);
            // SAFETY: more than sixteen bytes follow.
            prop_assert_eq!(unsafe { number(&text, 0) }, (value, length));
        }

        #[test]
        fn counts_of_fields_and_lines_match_those_read(
            text in proptest::collection::vec(prop_oneof![Just(b' '), Just(b'\n'), Just(b'7'), any::<u8>()], 0..900),
        ) {
            prop_assert_eq!(count_fields(&text), fields(&text).count());
            prop_assert_eq!(count_lines(&text), text.iter().filter(|&&byte| byte == b'\n').count());
        }

        #[test]
        fn chunks_cover_the_text_and_end_where_it_may_be_cut(
            text in proptest::collection::vec(prop_oneof![Just(b' '), Just(b'\n'), Just(b'x')], 0..300), size in 1_usize..50, width in 1_usize..20,
        ) {
            for cut in [Cut::Lines, Cut::Fields, Cut::Bytes(width)] {
                let mut at = 0;
                for chunk in cut.chunks(&text, size) {
                    prop_assert_eq!(chunk.start, at);
                    prop_assert!(chunk.end > at);
                    at = chunk.end;
                    prop_assert!(at == text.len() || cut.last(&text[..at]) == at);
                }
                prop_assert_eq!(at, text.len());
            }
        }
    }

    #[test]
    fn fields_that_are_not_numbers_are_classified() {
        assert_eq!(field(b"18446744073709551615"), Field::Number(u64::MAX));
        assert_eq!(field(b"18446744073709551616"), Field::Huge);
        assert_eq!(field(b"-3"), Field::Negative);
        for other in [&b""[..], b"-", b"+1", b"1.5", b"1,2", b"0x1", b"\xff"] {
            assert_eq!(field(other), Field::Other);
        }
        for weight in [&b"-1.5e+3"[..], b"nan", b"-Inf", b"1", b".5", b"1.", b"+2D-7", b"1e5"] {
            assert!(is_weight(weight), "{weight:?}");
        }
        for other in [&b""[..], b"1;2", b"-", b"e", b".", b"1e", b"1e+", b"1-2", b"--1", b"na", b"5f", b"1.2.3"] {
            assert!(!is_weight(other), "{other:?}");
        }
    }
}
