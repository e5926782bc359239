//! The size and shape of a graph, as text.

use socbfs::{
    GraphInfo,
    words::{counted, general, grouped},
};

/// The counts of a graph as a table.
pub fn info(info: &GraphInfo) -> String {
    let d = &info.degree;
    let listed = match info.both_directions {
        true => format!("{} (every edge in both directions)", grouped(info.listed)),
        false => grouped(info.listed),
    };
    let rows = [
        ("vertices", grouped(info.vertices)),
        ("edges listed", listed),
        ("distinct edges", grouped(info.distinct_edges)),
        ("distinct arcs", format!("{} (as a directed graph)", grouped(info.distinct_arcs))),
        ("self-loops", grouped(info.self_loops)),
        ("repeats", grouped(info.repeats)),
        ("isolated", grouped(info.isolated)),
        (
            "degree",
            format!("min {}, 25 % {}, median {}, 75 % {}, 90 % {}, 99 % {}, max {}", d.min, d.p25, d.p50, d.p75, d.p90, d.p99, d.max),
        ),
        ("components", format!("{}, the largest has {}", grouped(info.components), counted(info.largest_component, "vertex", "vertices"))),
        (
            "remapping",
            format!(
                "{} before, {} after ({} % saved)",
                counted(info.remapping.original, "vertex", "vertices"),
                grouped(info.remapping.optimized),
                general(info.remapping.saved_percent, 4)
            ),
        ),
    ];
    rows.into_iter().map(|(name, value)| format!("{name:<16}{value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use socbfs::graph::{EdgeList, Listing, info as count};

    #[test]
    fn every_count_has_its_line() {
        // A path 0 - 1 - 2 with 0 - 1 listed again, a self-loop, and vertices 3 and 4 apart.
        let edges = EdgeList::new(5, vec![[0, 1], [1, 0], [1, 2], [2, 2]], Listing::Unknown).unwrap();
        let expected = "\
vertices        5
edges listed    4
distinct edges  2
distinct arcs   3 (as a directed graph)
self-loops      1
repeats         1
isolated        2
degree          min 0, 25 % 0, median 1, 75 % 1, 90 % 2, 99 % 2, max 2
components      3, the largest has 3 vertices
remapping       5 vertices before, 3 after (40 % saved)
";
        assert_eq!(info(&count(&edges).unwrap()), expected);
        let one = EdgeList::new(1, vec![[0, 0]], Listing::Unknown).unwrap();
        assert!(info(&count(&one).unwrap()).contains("remapping       1 vertex before, 0 after"));
    }
}
