//! Tests of graph information, on generated and on real graphs.

// Clippy does not count the helper functions of an integration test as tests.
#![allow(clippy::unwrap_used)]

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
};

use socbfs::graph::{EdgeList, GraphInfo, Listing, info};
use socbfs_io::generate::Generator;

/// The numbers of isolated vertices were counted in the edges of the Graph500 reference code 3.0.1.
#[test]
fn kronecker() {
    for (scale, isolated) in [(10, 125), (16, 18_721)] {
        let edges = Generator::graph500(scale).generate(&|_| ()).unwrap();
        let info = info(&edges).unwrap();
        let vertices = 1 << scale;
        assert_eq!((info.vertices, info.listed, info.isolated), (vertices, 16 * vertices, isolated));
        assert_eq!((info.remapping.original, info.remapping.optimized), (vertices, vertices - isolated));
        assert!(!info.both_directions && info.repeats > 0 && info.self_loops > 0);
        assert_eq!(info.self_loops + info.repeats + info.distinct_edges, info.listed);
    }
}

/// Table 6 of Zhang et al. 2018 for its smallest graph: 4.19 million vertices, 2.40 million of them kept, 42.87 % saved. Their graph is
/// another sample of the same distribution.
#[test]
#[ignore = "67 million edges and 2 GB: run with --release and --ignored"]
fn remapping_matches_table_6_of_zhang_2018() {
    let edges = Generator::graph500(22).generate(&|_| ()).unwrap();
    let remapping = info(&edges).unwrap().remapping;
    assert_eq!((remapping.original, remapping.optimized), (4_194_304, 2_396_646));
    assert!((remapping.saved_percent - 42.87).abs() < 0.02, "{remapping:?}");
}

/// Folder of the real graphs: `SOCBFS_DATA`, else `shared/data` next to the checkout.
fn data() -> PathBuf {
    std::env::var_os("SOCBFS_DATA").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from)
}

/// Reads a compressed text with one edge per line after comments and, in a MatrixMarket file, the line of sizes. Prints SKIPPED and
/// returns `None` if the file is absent.
fn read(test: &str, name: &str) -> Option<EdgeList> {
    let path = data().join(name);
    let Ok(file) = std::fs::File::open(&path) else {
        // Written without a print macro, whose output the test harness would capture.
        let line = format!("SKIPPED {test}: {} is absent (set SOCBFS_DATA to the folder of the real graphs)\n", path.display());
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    };
    let mut text = String::new();
    if name.ends_with(".xz") {
        lzma_rust2::XzReader::new(file, true).read_to_string(&mut text).unwrap();
    } else {
        flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
    }
    let matrix = name.contains(".mtx");
    let mut lines = text.lines().filter(|line| !line.starts_with(['#', '%']));
    let numbers = |line: &str| -> Vec<u32> { line.split_whitespace().take(2).map(|word| word.parse().unwrap()).collect() };
    let vertices = matrix.then(|| numbers(lines.next().unwrap())[0] as usize);
    let edges: Vec<[u32; 2]> = lines.map(numbers).map(|pair| [pair[0] - u32::from(matrix), pair[1] - u32::from(matrix)]).collect();
    let largest = edges.iter().flatten().max().copied().unwrap();
    Some(EdgeList::new(vertices.unwrap_or(largest as usize + 1), edges, Listing::Unknown).unwrap())
}

/// Vertices, lines, distinct edges, largest degree and components. The expected values were counted by other programs.
fn counts(info: &GraphInfo) -> [u64; 5] {
    [info.vertices, info.listed, info.distinct_edges, u64::from(info.degree.max), info.components]
}

#[test]
fn facebook() {
    let Some(edges) = read("facebook", "facebook_combined.txt.xz") else { return };
    let info = info(&edges).unwrap();
    assert_eq!(counts(&info), [4039, 88_234, 88_234, 1045, 1]);
    assert_eq!((info.isolated, info.repeats, info.self_loops, info.both_directions), (0, 0, 0, false));
    assert_eq!(info.largest_component, 4039);
}

#[test]
fn enron_lists_both_directions() {
    let Some(edges) = read("enron_lists_both_directions", "email-Enron.txt.gz") else { return };
    let info = info(&edges).unwrap();
    assert_eq!(counts(&info), [36_692, 367_662, 183_831, 1383, 1065]);
    assert!(info.both_directions && info.repeats == 0);
}

#[test]
fn wiki_vote_has_gaps_in_its_numbering() {
    let Some(edges) = read("wiki_vote_has_gaps_in_its_numbering", "wiki-Vote.txt.xz") else { return };
    let info = info(&edges).unwrap();
    assert_eq!(counts(&info), [8298, 103_689, 100_762, 1065, 1207]);
    assert_eq!((info.distinct_arcs, info.repeats, info.both_directions), (103_689, 2927, false));
    assert!(info.isolated > 0);
}

#[test]
fn luxembourg() {
    let Some(edges) = read("luxembourg", "luxembourg_osm.mtx.xz") else { return };
    let info = info(&edges).unwrap();
    assert_eq!(counts(&info), [114_599, 119_666, 119_666, 6, 1]);
}

#[test]
fn bips98_has_self_loops() {
    let Some(edges) = read("bips98_has_self_loops", "bips98_606.mtx.xz") else { return };
    let info = info(&edges).unwrap();
    assert_eq!(counts(&info), [7135, 34_738, 15_190, 111, 542]);
    assert_eq!(info.self_loops + info.repeats + info.distinct_edges * if info.both_directions { 2 } else { 1 }, 34_738);
}
