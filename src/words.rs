//! Numbers and errors as text: C's `%g`, counts with their nouns, times and sizes with a fitting unit, an error with its causes.

use std::{borrow::Cow, error::Error};

/// `value` as C's `printf("%.{digits}g")` writes it (`%g` is 6 digits): what tools that read Graph500 reports expect.
pub fn general(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let digits = digits.max(1);
    // The exponent after rounding to the digits asked for decides the form, so round first.
    let scientific = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_trailing_zeros(mantissa), exponent.abs());
    }
    without_trailing_zeros(&format!("{:.*}", (digits as i32 - 1 - exponent) as usize, value)).to_owned()
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// 1234567 as "1,234,567".
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// A count and its noun, with digits in groups: "1 edge", "2,000 edges".
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// A count and its noun, with the digits as a file or a flag has them: "1 edge", "2000 edges".
pub fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A number of threads as settings have it: "2 threads", or "a thread for every CPU" for 0.
pub fn threads(count: usize) -> String {
    if count == 0 { "a thread for every CPU".to_owned() } else { plural(count as u64, "thread", "threads") }
}

/// The number of vertices of a graph, and the numbers that they have: "39 vertices (0 to 38)".
pub fn numbered(vertices: u64) -> String {
    match vertices {
        0 => "no vertices".to_owned(),
        1 => "1 vertex (0)".to_owned(),
        _ => format!("{vertices} vertices (0 to {})", vertices - 1),
    }
}

/// Seconds with a fitting unit and four significant digits: "1.042 ms".
pub fn seconds(value: f64) -> String {
    if value == 0.0 {
        return "0 s".to_owned();
    }
    let (scale, unit) = match value.abs() {
        v if v >= 1.0 => (1.0, "s"),
        v if v >= 1e-3 => (1e3, "ms"),
        v if v >= 1e-6 => (1e6, "us"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", significant(value * scale, 4))
}

/// Bytes with a fitting binary unit: "1.5 GiB".
pub fn bytes(value: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (value.max(1).ilog2() as usize / 10).min(UNITS.len() - 1);
    if unit == 0 { format!("{value} B") } else { format!("{:.1} {}", value as f64 / 1024f64.powi(unit as i32), UNITS[unit]) }
}

/// Traversed edges per second as millions: "10,712 MTEPS" or "56.21 MTEPS".
pub fn mteps(teps: f64) -> String {
    let millions = teps / 1e6;
    if millions >= 1e3 { format!("{} MTEPS", grouped(millions.round() as u64)) } else { format!("{} MTEPS", significant(millions, 4)) }
}

/// The longest message that people read, in characters.
pub const LONGEST: usize = 2000;

/// Leaves out the middle of a `text` that has more than `most` characters: a message may repeat a file, or an argument, of any size.
pub fn cut(text: &str, most: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= most {
        return Cow::Borrowed(text);
    }
    let (head, tail): (String, String) = (text.chars().take(most / 2).collect(), text.chars().skip(count - most / 2).collect());
    Cow::Owned(format!("{head} [...] {tail}"))
}

/// `context`, the error and its causes, in one line, [`cut`]. If `context` is empty, the line begins with the error.
pub fn with_causes(context: &str, error: &(dyn Error + 'static)) -> String {
    let mut message = context.to_owned();
    for error in std::iter::successors(Some(error), |&error| error.source()) {
        let text = error.to_string();
        // Some errors repeat their cause in their own text.
        if !message.contains(&text) {
            message += if message.is_empty() { "" } else { ": " };
            message += &text;
        }
    }
    cut(&message, LONGEST).into_owned()
}

/// The text of an `error` of this device. It begins with the device's name, unless it has the name already.
pub fn naming(device: &str, error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    if text.contains(device) { text } else { format!("{device}: {text}") }
}

/// The error, its causes and its cure, in one line.
pub fn with_cure(error: &(dyn Error + 'static), cure: Option<String>) -> String {
    with_causes("", error) + &cure.map_or_else(String::new, |cure| format!("; {cure}"))
}

/// That many significant digits (up to 4) without an exponent, but all digits before the point.
pub fn significant(value: f64, digits: usize) -> String {
    let before_the_point = match value.abs() {
        v if v >= 1000.0 => 4,
        v if v >= 100.0 => 3,
        v if v >= 10.0 => 2,
        _ => 1,
    };
    format!("{value:.*}", digits.saturating_sub(before_the_point))
}

/// The name in `known` that `given` may be a misspelling of: the one with the fewest letters inserted, removed or replaced, if these are at
/// most two in five.
pub fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |name: &str| {
        // A row of the table of distances between the beginnings of both names.
        let mut row: Vec<usize> = (0..=name.len()).collect();
        for (i, a) in given.bytes().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, b) in name.bytes().enumerate() {
                let least = (diagonal + usize::from(!a.eq_ignore_ascii_case(&b))).min(row[j] + 1).min(row[j + 1] + 1);
                diagonal = std::mem::replace(&mut row[j + 1], least);
            }
        }
        row[name.len()]
    };
    let near = known.map(|name| (distance(name), name)).filter(|&(changes, name)| 5 * changes <= 2 * name.len().max(given.len()));
    near.min_by_key(|&(changes, _)| changes).map(|(_, name)| name)
}

/// Line of a byte offset in a text, from 1.
pub fn line_at(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|&byte| byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_prints_numbers_like_printf() {
        // Right-hand sides are the output of C's printf with %g and %.11g.
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (100_000.0, "100000"),
            (1_000_000.0, "1e+06"),
            (999_999.5, "1e+06"),
            (123_456_789.0, "1.23457e+08"),
            (0.000_123_456_789, "0.000123457"),
            (0.000_012_345_678_9, "1.23457e-05"),
            (0.001_042, "0.001042"),
            (-2.5, "-2.5"),
            (1.234_567_89e-100, "1.23457e-100"),
            (10_712_345_678.9, "1.07123e+10"),
        ] {
            assert_eq!(general(value, 6), text, "{value}");
        }
        assert_eq!(general(16_775_818.0, 11), "16775818");
        assert_eq!(general(16_775_818.25, 11), "16775818.25");
        assert_eq!(general(1e11, 11), "1e+11");
        assert_eq!(general(f64::NAN, 6), "nan");
        assert_eq!(general(f64::NEG_INFINITY, 6), "-inf");
    }

    #[test]
    fn numbers_for_people_have_groups_and_units() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_048_576), "1,048,576");
        assert_eq!(counted(1, "edge", "edges"), "1 edge");
        assert_eq!(counted(2_000, "edge", "edges"), "2,000 edges");
        assert_eq!([0, 1, 2_000].map(|count| plural(count, "edge", "edges")), ["0 edges", "1 edge", "2000 edges"]);
        assert_eq!([0, 1, 39].map(numbered), ["no vertices", "1 vertex (0)", "39 vertices (0 to 38)"]);
        assert_eq!([0, 1, 8].map(threads), ["a thread for every CPU", "1 thread", "8 threads"]);
        assert_eq!(seconds(0.0), "0 s");
        assert_eq!(seconds(1.5), "1.500 s");
        assert_eq!(seconds(0.001_042), "1.042 ms");
        assert_eq!(seconds(45.6e-6), "45.60 us");
        assert_eq!(seconds(300e-9), "300.0 ns");
        assert_eq!(bytes(1000), "1000 B");
        assert_eq!(bytes(1_610_612_736), "1.5 GiB");
        assert_eq!(mteps(10_712e6), "10,712 MTEPS");
        assert_eq!(mteps(56.214e6), "56.21 MTEPS");
    }

    #[test]
    fn messages_have_a_limit() {
        assert_eq!(cut("0123456789", 10), "0123456789");
        assert_eq!(cut("0123\u{e9}6789xx", 6), "012 [...] 9xx");
        let error = std::io::Error::other("why ".repeat(1 << 18));
        let message = with_causes("reading", &error);
        assert!(message.len() < LONGEST + 20 && message.starts_with("reading: why ") && message.ends_with("why "), "{}", message.len());
    }

    #[test]
    fn the_nearest_name_is_a_similar_one_or_none() {
        let nearest = |given| nearest(given, ["threads", "cpus", "clusters"].into_iter());
        assert_eq!(nearest("thread"), Some("threads"));
        assert_eq!(nearest("cluster"), Some("clusters"));
        assert_eq!(nearest("colour"), None);
    }
}
