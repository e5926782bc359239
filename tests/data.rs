//! Every real graph of the shared data folder is read, and holds what its table says.
//!
//! The folder is `$SOCBFS_DATA`, or `../shared/data` beside the checkout. Where it is absent the test says so and passes.
#![allow(clippy::expect_used, clippy::unwrap_used)] // a test may stop

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use socbfs::graph::{BuildOptions, EdgeList, Layout, Listing, info};
use socbfs::input::{Format, ReadOptions, read, recognise};
use socbfs::search::{Search, SearchOptions};
use socbfs::validate::Validator;

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

#[allow(clippy::too_many_arguments)] // a row of the table
const fn known(
    file: &'static str,
    format: Format,
    listing: Listing,
    vertices: usize,
    entries: usize,
    edges: usize,
    degree: usize,
    components: u64,
) -> Known {
    Known { file, format, listing, vertices, entries, edges, degree, components }
}

#[rustfmt::skip]
const GRAPHS: [Known; 15] = [
    known("dimacs-NE.gr.xz", Format::Dimacs, Listing::Once, 1_524_453, 1_934_010, 1_934_010, 9, 1),
    known("dimacs-NY.gr.xz", Format::Dimacs, Listing::Once, 264_346, 365_050, 365_050, 8, 1),
    known("luxembourg_osm.mtx.xz", Format::MatrixMarket, Listing::Once, 114_599, 119_666, 119_666, 6, 1),
    known("cnr-2000.txt.xz", Format::EdgeListText, Listing::Unknown, 325_557, 3_216_152, 2_738_969, 18_236, 1),
    known("dblp-2010.txt.xz", Format::EdgeListText, Listing::Unknown, 326_186, 1_615_400, 807_700, 238, 48_493),
    known("ego-Twitter.txt.xz", Format::EdgeListText, Listing::Unknown, 81_306, 1_342_310, 1_342_296, 3_383, 1),
    known("soc-Slashdot0902.txt.gz", Format::EdgeListText, Listing::Unknown, 82_168, 948_464, 504_230, 2_552, 1),
    known("email-Enron.txt.gz", Format::EdgeListText, Listing::Unknown, 36_692, 367_662, 183_831, 1_383, 1_065),
    known("metis-mdual.graph.xz", Format::Metis, Listing::BothDirections, 258_569, 2 * 513_132, 513_132, 4, 1),
    known("p2p-Gnutella31.txt.xz", Format::EdgeListText, Listing::Unknown, 62_586, 147_892, 147_892, 95, 12),
    known("facebook_combined.txt.xz", Format::EdgeListText, Listing::Unknown, 4_039, 88_234, 88_234, 1_045, 1),
    known("wiki-Vote.txt.xz", Format::EdgeListText, Listing::Unknown, 8_298, 103_689, 100_762, 1_065, 1_207),
    known("bips98_606.mtx.xz", Format::MatrixMarket, Listing::Unknown, 7_135, 34_738, 15_190, 111, 542),
    known("chesapeake.mtx.xz", Format::MatrixMarket, Listing::Once, 39, 170, 170, 33, 1),
    known("rodinia-graph4096.txt.xz", Format::Rodinia, Listing::Unknown, 4_096, 24_576, 12_288, 19, 1),
];

fn folder() -> PathBuf {
    env::var_os("SOCBFS_DATA").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from)
}

fn skipped(why: &str) {
    // Not by a macro: the test harness would swallow it.
    std::io::stderr().write_all(format!("SKIPPED real_graphs_hold_what_their_table_says: {why}\n").as_bytes()).unwrap();
}

#[test]
fn real_graphs_hold_what_their_table_says() {
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
        // All together they take half an hour there. The smaller ones are of every format but METIS.
        if known.entries > 500_000 && env::var_os("SOCBFS_TEST_EMULATED").is_some() {
            skipped(&format!("{} is large, and this processor is emulated", path.display()));
            continue;
        }
        assert_eq!(recognise(&path, None).unwrap().format, known.format, "{}", known.file);
        let list = read(&path, &ReadOptions::default()).unwrap();
        assert_eq!((list.vertices(), list.len(), list.listing()), (known.vertices, known.entries, known.listing), "{}", known.file);
        // Edges and degrees counted by sorting, not as the library counts them.
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

/// Undirected and directed, from the first, the middle and the last vertex.
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
