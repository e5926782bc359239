//! Tests of the analyses: their counts against plain definitions and golden values, and identities on the shared graphs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that can't go on has failed")]

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use socbfs::{
    graph::{BuildOptions, EdgeList, Layout, Listing, NONE, Order},
    search::{Search, SearchOptions},
};
use socbfs_io::{ReadOptions, generate::Generator, read};
use socbfs_tools::{
    analysis::{Levels, count, redundant, repeated},
    record::ExactLevel,
};

use crate::searches::edges;

fn levels(layout: &Layout, root: u32) -> Levels {
    let options = SearchOptions { threads: 2, ..SearchOptions::default() };
    Levels::search(&mut Search::new(layout, &options).unwrap(), root).unwrap()
}

fn generated(generator: &Generator, order: Order) -> Layout {
    let edges = generator.generate(&|_| ()).unwrap();
    Layout::build(&edges, &BuildOptions { order, keep_leaves: true, ..BuildOptions::default() }).unwrap()
}

/// The counts of a level: t, |F|, E, discovering, repeat, backward, probes.
fn row(level: &ExactLevel) -> [u64; 7] {
    [u64::from(level.level), level.vertices, level.arcs, level.discovering, level.repeat, level.backward, level.probes]
}

const KRONECKER: Generator = Generator::Kronecker { scale: 14, edge_factor: 16, seed1: 2, seed2: 3 };

/// Counts of another program: t, |F|, E, discovering, repeat, backward, probes. It sorts adjacency lists by descending distinct degree of
/// the neighbour, ties by number.
const GOLDEN: [[u64; 7]; 4] = [
    [1, 2, 398, 373, 23, 2, 343_225],
    [2, 373, 116_657, 9_851, 82_358, 24_448, 15_170],
    [3, 9_851, 304_729, 2_310, 2_010, 300_409, 2_323],
    [4, 2_310, 4_377, 13, 0, 4_364, 13],
];
/// Probes in the order of socbfs layouts, where repeated edges count in the degree by which a list is sorted.
const STORED: [u64; 4] = [350_084, 15_297, 2_323, 13];

#[test]
fn redundant_work_of_a_kronecker_graph_has_the_golden_values() {
    for order in [Order::Degree, Order::Original] {
        let layout = generated(&KRONECKER, order);
        let levels = levels(&layout, 5);
        let found = count(&layout, &levels);
        let rows: Vec<_> = found.iter().map(row).collect();
        for ((row, golden), stored) in rows[1..5].iter().zip(GOLDEN).zip(STORED) {
            assert_eq!((&row[..6], row[6]), (&golden[..6], stored), "{order:?}");
        }
        if order == Order::Original {
            // With lists in the order of the other program, the definition gives its probes.
            let sorted = |v: u32| {
                let mut list = layout.csr().neighbours(v).to_vec();
                list.sort_by_key(|&w| (std::cmp::Reverse(layout.csr().degree(w)), w));
                list
            };
            let golden: Vec<_> = by_definition(&layout, &levels, sorted).iter().map(row).collect();
            assert_eq!(golden[1..5], GOLDEN);
        }
        assert_eq!((rows[0][1], rows[0][2], rows.len()), (1, 2, 6));
        let shares = redundant(&found);
        assert!((shares.levels[3].excess.unwrap() - (304_729.0 - 2_310.0) / 304_729.0).abs() < 1e-12);
        assert_eq!(shares.levels[3].counts, found[3]);
    }
}

/// The splits at the levels `wanted` as text: three shares in per cent, the depths of both halves, and the levels left without the split.
fn splits(layout: &Layout, root: u32, wanted: &[u32]) -> Vec<String> {
    let found = repeated(layout, &levels(layout, root), 500);
    let shown = |k: &u32| {
        let split = found.splits.iter().find(|split| split.level == *k).unwrap();
        let [y2, y1, ours] = [split.traversed, split.repeated_thesis, split.repeated_ours].map(|share| format!("{:.1}", 100.0 * share));
        assert_eq!(split.extra_levels, i64::from(split.depth_a.max(split.depth_b)) - i64::from(split.left));
        format!("{y2} {y1} {ours} {} {} {}", split.depth_a, split.depth_b, split.left)
    };
    wanted.iter().map(shown).collect()
}

#[test]
fn repeated_work_has_the_golden_values() {
    let layout = generated(&KRONECKER, Order::Auto);
    assert_eq!(splits(&layout, 5, &[2, 3]), ["3.0 89.8 97.0 3 4 3", "81.5 5.3 18.5 2 3 2"]);
    let layout = generated(&Generator::Rodinia { vertices: 65_536, seed: 7 }, Order::Auto);
    assert_eq!(splits(&layout, 5, &[6, 7]), ["38.5 61.3 61.5 5 4 3", "91.0 8.3 9.0 4 4 2"]);
}

/// Counts level by level and vertex by vertex, as the definitions are written.
fn by_definition(layout: &Layout, levels: &Levels, list: impl Fn(u32) -> Vec<u32>) -> Vec<ExactLevel> {
    let (csr, incoming, of) = (layout.csr(), layout.incoming(), &levels.of);
    let vertices = 0..csr.vertices() as u32;
    let sum = |values: Vec<u64>| values.into_iter().sum::<u64>();
    (0..=levels.last)
        .map(|t| {
            let frontier: Vec<u32> = vertices.clone().filter(|&v| of[v as usize] == t).collect();
            let to = |keep: &dyn Fn(u32) -> bool| {
                sum(frontier.iter().map(|&u| csr.neighbours(u).iter().filter(|&&w| keep(of[w as usize])).count() as u64).collect())
            };
            let next = vertices.clone().filter(|&v| of[v as usize] == t + 1).count() as u64;
            let unvisited: Vec<u32> =
                vertices.clone().filter(|&v| incoming.degree(v) > 0 && (of[v as usize] == NONE || of[v as usize] > t)).collect();
            let probes = |&v: &u32| {
                let list = list(v);
                list.iter().position(|&w| of[w as usize] == t).map_or(list.len(), |place| place + 1) as u64
            };
            ExactLevel {
                level: t,
                vertices: (frontier.len() as u64).max(u64::from(t == 0)),
                arcs: sum(frontier.iter().map(|&v| u64::from(csr.degree(v))).collect()),
                discovering: next,
                repeat: to(&|level| level == t + 1) - next,
                backward: to(&|level| level <= t),
                probes: sum(unvisited.iter().map(probes).collect()),
                unvisited_vertices: unvisited.len() as u64,
                unvisited_arcs: sum(unvisited.iter().map(|&v| u64::from(incoming.degree(v))).collect()),
            }
        })
        .collect()
}

fn check(layout: &Layout, root: u32) {
    let levels = levels(layout, root);
    let found = count(layout, &levels);
    assert_eq!(found, by_definition(layout, &levels, |v| layout.incoming().neighbours(v).to_vec()), "root {root}");
    identities(layout, &levels, &found);
}

/// Checks identities that hold for every search.
fn identities(layout: &Layout, levels: &Levels, found: &[ExactLevel]) {
    for level in found {
        assert_eq!(level.arcs, level.discovering + level.repeat + level.backward, "{level:?}");
        assert!(level.probes <= level.unvisited_arcs && level.probes >= level.unvisited_vertices, "{level:?}");
    }
    for pair in found.windows(2) {
        assert_eq!(pair[0].discovering, pair[1].vertices);
    }
    assert_eq!(found.iter().map(|level| level.vertices).sum::<u64>(), levels.reached());
    for split in repeated(layout, levels, 500).splits {
        assert!(split.repeated_thesis <= split.repeated_ours && split.repeated_ours <= 1.0 && split.extra_levels >= 0, "{split:?}");
        // Both halves together find exactly the vertices that are left, so at most all of these are found twice.
        assert!(split.repeated_thesis <= 1.0 - split.traversed + 1e-12, "{split:?}");
        assert!(split.level > 0 || split.left == levels.last);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn counts_match_the_definitions(
        (n, m, kind, seed) in (1_u32..70, 0_usize..160, 0_u8..3, any::<u64>()),
        directed: bool,
        root in 0_u32..70,
        by_degree: bool,
        keep_leaves: bool,
    ) {
        let list = EdgeList::new(n as usize, edges(n.into(), m, seed, kind), Listing::Once).unwrap();
        let order = if by_degree { Order::Degree } else { Order::Original };
        let layout = Layout::build(&list, &BuildOptions { directed, order, keep_leaves, ..BuildOptions::default() }).unwrap();
        check(&layout, root % n);
    }
}

#[test]
fn counts_of_small_graphs_match_the_definitions() {
    let path: Vec<[u32; 2]> = (0..99).map(|v| [v, v + 1]).collect();
    let star: Vec<[u32; 2]> = (1..80).map(|v| [0, v]).collect();
    for (n, edges) in [(1, vec![]), (1, vec![[0, 0]]), (2, vec![[0, 1]]), (5, vec![[1, 2]]), (100, path), (80, star)] {
        for order in [Order::Degree, Order::Original] {
            let list = EdgeList::new(n, edges.clone(), Listing::Once).unwrap();
            let layout = Layout::build(&list, &BuildOptions { order, keep_leaves: true, ..BuildOptions::default() }).unwrap();
            for root in [0, n as u32 - 1] {
                check(&layout, root);
            }
        }
    }
}

#[test]
fn counts_of_real_graphs_satisfy_the_identities() {
    let folder = env::var_os("SOCBFS_DATA").map_or_else(|| Path::new(crate::REPOSITORY).join("../shared/data"), PathBuf::from);
    let skipped = |why: &str| {
        std::io::stderr().write_all(format!("SKIPPED counts_of_real_graphs_satisfy_the_identities: {why}\n").as_bytes()).unwrap();
    };
    if !folder.is_dir() {
        return skipped(&format!("no data folder at {} (set SOCBFS_DATA)", folder.display()));
    }
    let small = 1 << 20;
    let mut counted = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension == "md") {
            continue;
        }
        let all = env::var_os("SOCBFS_TEST_ALL").is_some_and(|all| all == "1");
        if !all && path.metadata().unwrap().len() > small {
            skipped(&format!("{} is large: SOCBFS_TEST_ALL=1 takes it", path.display()));
            continue;
        }
        let list = read(&path, &ReadOptions::default()).unwrap();
        let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
        let root = (0..layout.vertices() as u32).find(|&v| layout.input_degree(v) > 0).unwrap();
        let levels = levels(&layout, root);
        identities(&layout, &levels, &count(&layout, &levels));
        counted += 1;
    }
    assert!(counted > 3, "{counted} graphs");
}
