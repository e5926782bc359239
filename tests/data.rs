//! Reads every real graph of the shared data folder, and compares it with the folder's table.
//!
//! The folder is `$SOCBFS_DATA`, or `shared/data` next to the checkout. If it is absent, the test prints SKIPPED and passes.
#![allow(clippy::expect_used, clippy::unwrap_used)] // a test may stop

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use socbfs::graph::{BuildOptions, EdgeList, Layout, Listing, info};
use socbfs::search::{Search, SearchOptions};
use socbfs_io::validate::Validator;
use socbfs_io::{Format, ReadOptions, read, recognise};

/// A row of the folder's table: vertices, entries as listed, distinct undirected edges without self-loops, largest degree,
/// components.
struct Known {
    file: &'static str,
    format: Format,
    listing: Listing,
    vertices: usize,
    entries: usize,
    edges: usize,
    degree: usize,
    components: u64,
}

#[rustfmt::skip]
const GRAPHS: [Known; 15] = [
    Known { file: "dimacs-NE.gr.xz", format: Format::Dimacs, listing: Listing::Symmetric, vertices: 1_524_453, entries: 1_934_010, edges: 1_934_010, degree: 9, components: 1 },
    Known { file: "dimacs-NY.gr.xz", format: Format::Dimacs, listing: Listing::Symmetric, vertices: 264_346, entries: 365_050, edges: 365_050, degree: 8, components: 1 },
    Known { file: "luxembourg_osm.mtx.xz", format: Format::MatrixMarket, listing: Listing::Symmetric, vertices: 114_599, entries: 119_666, edges: 119_666, degree: 6, components: 1 },
    Known { file: "cnr-2000.txt.xz", format: Format::EdgeListText, listing: Listing::Unknown, vertices: 325_557, entries: 3_216_152, edges: 2_738_969, degree: 18_236, components: 1 },
    Known { file: "dblp-2010.txt.xz", format: Format::EdgeListText, listing: Listing::Unknown, vertices: 326_186, entries: 1_615_400, edges: 807_700, degree: 238, components: 48_493 },
    Known { file: "ego-Twitter.txt.xz", format: Format::EdgeListText, listing: Listing::Unknown, vertices: 81_306, entries: 1_342_310, edges: 1_342_296, degree: 3_383, components: 1 },
    Known { file: "soc-Slashdot0902.txt.gz", format: Format::EdgeListText, listing: Listing::Unknown, vertices: 82_168, entries: 948_464, edges: 504_230, degree: 2_552, components: 1 },
    Known { file: "email-Enron.txt.gz", format: Format::EdgeListText, listing: Listing::Unknown, vertices: 36_692, entries: 367_662, edges: 183_831, degree: 1_383, components: 1_065 },
    Known { file: "metis-mdual.graph.xz", format: Format::Metis, listing: Listing::BothDirections, vertices: 258_569, entries: 2 * 513_132, edges: 513_132, degree: 4, components: 1 },
    Known { file: "p2p-Gnutella31.txt.xz", format: Format::EdgeListText, listing: Listing::Unknown, vertices: 62_586, entries: 147_892, edges: 147_892, degree: 95, components: 12 },
    Known { file: "facebook_combined.txt.xz", format: Format::EdgeListText, listing: Listing::Unknown, vertices: 4_039, entries: 88_234, edges: 88_234, degree: 1_045, components: 1 },
    Known { file: "wiki-Vote.txt.xz", format: Format::EdgeListText, listing: Listing::Unknown, vertices: 8_298, entries: 103_689, edges: 100_762, degree: 1_065, components: 1_207 },
    Known { file: "bips98_606.mtx.xz", format: Format::MatrixMarket, listing: Listing::Unknown, vertices: 7_135, entries: 34_738, edges: 15_190, degree: 111, components: 542 },
    Known { file: "chesapeake.mtx.xz", format: Format::MatrixMarket, listing: Listing::Symmetric, vertices: 39, entries: 170, edges: 170, degree: 33, components: 1 },
    Known { file: "rodinia-graph4096.txt.xz", format: Format::Rodinia, listing: Listing::Unknown, vertices: 4_096, entries: 24_576, edges: 12_288, degree: 19, components: 1 },
];

fn folder() -> PathBuf {
    env::var_os("SOCBFS_DATA").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from)
}

fn skipped(why: &str) {
    // Written without a print macro, whose output the test harness would capture.
    std::io::stderr().write_all(format!("SKIPPED real_graphs_match_the_table_of_known_values: {why}\n").as_bytes()).unwrap();
}

#[test]
fn real_graphs_match_the_table_of_known_values() {
    let folder = folder();
    if !folder.is_dir() {
        return skipped(&format!("no data folder at {} (set SOCBFS_DATA)", folder.display()));
    }
    for known in &GRAPHS {
        let path = folder.join(known.file);
        if !path.is_file() {
            skipped(&format!("{} is absent", path.display()));
            continue;
        }
        // Under emulation all graphs together take half an hour. The smaller ones cover every format but METIS.
        if known.entries > 500_000 && env::var_os("SOCBFS_TEST_EMULATED").is_some() {
            skipped(&format!("{} is large, and this processor is emulated", path.display()));
            continue;
        }
        // `tests/run` prints that it leaves these out. The smaller ones cover every format but METIS.
        if known.entries > 500_000 && known.format != Format::Metis && env::var_os("SOCBFS_TEST_ALL").is_none() {
            continue;
        }
        assert_eq!(recognise(&path, None).unwrap().format, known.format, "{}", known.file);
        let list = read(&path, &ReadOptions::default()).unwrap();
        assert_eq!((list.vertices(), list.len(), list.listing()), (known.vertices, known.entries, known.listing), "{}", known.file);
        // Edges and degrees are counted by sorting, unlike in the library.
        let mut edges = Vec::new();
        list.for_each(0..list.len(), |source, target| {
            if source != target {
                edges.push((source.min(target), source.max(target)));
            }
        });
        edges.sort_unstable();
        edges.dedup();
        let mut degrees = vec![0_usize; list.vertices()];
        for &(low, high) in &edges {
            degrees[low as usize] += 1;
            degrees[high as usize] += 1;
        }
        assert_eq!((edges.len(), degrees.into_iter().max()), (known.edges, Some(known.degree)), "{}", known.file);
        assert_eq!(info(&list).unwrap().components, known.components, "{}", known.file);
        searched_and_validated(known.file, &list);
    }
}

/// Searches and validates, undirected and directed, from the first, the middle and the last vertex.
fn searched_and_validated(file: &str, list: &EdgeList) {
    for directed in [false, true] {
        let layout = Layout::build(list, &BuildOptions { directed, ..BuildOptions::default() }).unwrap();
        let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
        let mut validator = Validator::new(list, directed).unwrap();
        let vertices = list.vertices() as u32;
        for root in [0, vertices / 2, vertices - 1] {
            let outcome = search.run(root).unwrap();
            let tree = search.result(root);
            let valid = validator.validate(root, &tree.parent, Some(&tree.level));
            assert_eq!(valid.unwrap().reached, outcome.reached, "{file} directed {directed} root {root}");
        }
    }
}
