//! Counts in messages.

/// A count and its noun: "1 edge", "2 edges".
pub(crate) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The number of vertices of a graph, and the numbers that they have: "39 vertices (0 to 38)".
pub(crate) fn numbered(vertices: u64) -> String {
    match vertices {
        0 => "no vertices".to_owned(),
        1 => "1 vertex (0)".to_owned(),
        _ => format!("{vertices} vertices (0 to {})", vertices - 1),
    }
}

/// Bytes with a fitting unit: "4.7 GiB".
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match UNITS.iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => plural(bytes, "byte", "bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_their_nouns_and_vertices_their_numbers() {
        assert_eq!([0, 1, 2].map(|count| plural(count, "edge", "edges")), ["0 edges", "1 edge", "2 edges"]);
        assert_eq!([0, 1, 39].map(numbered), ["no vertices", "1 vertex (0)", "39 vertices (0 to 38)"]);
        assert_eq!([1, 1023, 1024, 5_000_000_033].map(size), ["1 byte", "1023 bytes", "1.0 KiB", "4.7 GiB"]);
        assert_eq!(size(1 << 40), "1.0 TiB");
    }
}
