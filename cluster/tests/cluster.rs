//! Searches over ranks, which are threads here, against a serial reference; counts of the traffic between ranks; wrong trees.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use proptest::prelude::*;
use socbfs::{
    Simd,
    bfs::Strategy,
    graph::{BuildOptions, EdgeList, EdgeSlice, Layout, Listing, NONE, Order},
    search::{Search, SearchOptions},
};
use socbfs_cluster::{
    ClusterError, ClusterOptions, ClusterSearch, ClusterValidator, Exchange, Part, RankTree, Ranks, ThreadRanks, read, read_on_first,
};
use socbfs_io::{Format, ReadOptions, WriteOptions, generate::Generator, validate::validate_forest, write};
use socbfs_policy::Policy;

use crate::{
    reference::Reference,
    searches::{all_combinations, edges, is_tried},
};

/// Options that cover every way to search over ranks.
fn ways() -> Vec<ClusterOptions> {
    let by = |policy: Policy| ClusterOptions { policy, ..ClusterOptions::default() };
    vec![
        by(Policy::Fixed(Strategy::Tc)),
        by(Policy::Fixed(Strategy::Bc)),
        ClusterOptions { threads: 2, ..ClusterOptions::default() },
        ClusterOptions { batch: 3, sorted: false, ..by("alpha-beta:1000,1".parse().unwrap()) },
        by("rule:was_bottom_up and level < 6 or frontier_edges > unvisited_edges / 14 and level > 1".parse().unwrap()),
        ClusterOptions { exchange: Exchange::Pairs, ..ClusterOptions::default() },
        ClusterOptions { exchange: Exchange::Pairs, batch: 2, sorted: false, ..ClusterOptions::default() },
    ]
}

/// The tree of the last search, on rank 0.
pub fn whole_tree<R: Ranks>(ranks: &R, part: &Part, search: &ClusterSearch<'_, R>, sources: &[u32]) -> Vec<u32> {
    let tree = RankTree { sources: sources.to_vec(), parents: search.parents_by_row().to_vec() };
    ClusterValidator::new(part, ranks).parents(&tree).unwrap().to_vec()
}

/// A tree of several turns arrives whole on rank 0, also what no rank owns: a source without an edge.
#[test]
fn rank_0_gathers_the_parents_of_all_vertices() {
    let vertices = 150_000;
    let list = Generator::Uniform { vertices, edges: vertices / 2, seed: 3 }.generate(&|_| ()).unwrap();
    let parent = |vertex: u32| vertex.wrapping_mul(0x9e37_79b9) >> (vertex % 32);
    for order in [Order::Degree, Order::Original] {
        for size in [1, 2, 3, 5] {
            let of_ranks = ThreadRanks::run(size, |ranks| {
                let part = Part::build(&list, order, ranks).unwrap();
                let source = (0..150_000).find(|&vertex| !part.has_edge(vertex)).unwrap();
                let is_owned = |vertex| order == Order::Original || part.has_edge(vertex);
                let expected: Vec<u32> = (0..150_000).map(|vertex| if is_owned(vertex) { parent(vertex) } else { NONE }).collect();
                let mut tree = RankTree { sources: vec![source], parents: Vec::new() };
                tree.parents = part.own_vertices().map(|(_, vertex)| if vertex == source { source } else { parent(vertex) }).collect();
                let whole = ClusterValidator::new(&part, ranks).parents(&tree).unwrap().to_vec();
                (source, expected, whole)
            });
            for (rank, (source, mut expected, whole)) in of_ranks.into_iter().enumerate() {
                expected[source as usize] = source;
                assert!(whole == if rank == 0 { expected } else { Vec::new() }, "rank {rank} of {size}, {order:?}");
            }
        }
    }
}

/// Searches from each of `roots`, and from sets of sources, which have the least levels of searches from each of them.
fn check(n: usize, edges: &[[u32; 2]], roots: &[u32], sizes: &[usize]) {
    let mut sets: Vec<Vec<u32>> = roots.iter().map(|&root| vec![root]).collect();
    // All roots, the last one twice; every seventh vertex, downwards.
    sets.push([roots, &roots[roots.len() - 1..]].concat());
    sets.push((0..n as u32).rev().step_by(7).collect());
    let reference = Reference::new(n, edges, false, &sets.concat());
    let mut right: Vec<_> = sets.iter().map(|sources| reference.least(sources)).collect();
    // Every vertex (in a large graph, more than the queue of the frontier holds), and none.
    sets.extend([(0..n as u32).collect(), Vec::new()]);
    right.extend([vec![0; n], vec![NONE; n]]);
    check_sets(n, edges, &sets, &right, sizes);
}

/// Compares searches from each set with the right levels.
fn check_sets(n: usize, edges: &[[u32; 2]], sets: &[Vec<u32>], right: &[Vec<u32>], sizes: &[usize]) {
    let list = EdgeList::new(n, edges.to_vec(), Listing::Unknown).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    let mut alone = Search::new(&layout, &SearchOptions::default()).unwrap();
    let expected: Vec<_> = sets.iter().map(|sources| alone.run(sources).unwrap()).collect();
    let lengths = [sizes.len(), 2, ways().len()];
    for (a, &size) in sizes.iter().enumerate() {
        for (b, order) in [Order::Original, Order::Degree].into_iter().enumerate() {
            for (_, options) in ways().into_iter().enumerate().filter(|&(c, _)| is_tried(&[a, b, c], &lengths)) {
                let trees = ThreadRanks::run(size, |ranks| {
                    let part = Part::build(&list, order, ranks).unwrap();
                    let mut search = ClusterSearch::new(&part, ranks, &options).unwrap();
                    let mut trees = Vec::new();
                    let mut own = Vec::new();
                    for (sources, expected) in sets.iter().zip(&expected) {
                        let outcome = search.run(sources).unwrap();
                        let what = || format!("{size} ranks, {order:?}, {options:?}, from {sources:?}, {edges:?}");
                        assert_eq!(
                            (outcome.root, outcome.sources, outcome.reached, outcome.levels, outcome.edges),
                            (expected.root, expected.sources, expected.reached, expected.levels, expected.edges),
                            "{}",
                            what()
                        );
                        own.push(RankTree { sources: sources.clone(), parents: search.parents_by_row().to_vec() });
                        trees.push(whole_tree(ranks, &part, &search, sources));
                    }
                    let validator = ClusterValidator::new(&part, ranks);
                    let levels: Vec<_> = own.iter().map(|tree| validator.levels(tree).unwrap()).collect();
                    let verdicts = validator.validate(&list, &own).unwrap();
                    for (verdict, expected) in verdicts.iter().zip(&expected) {
                        let found = verdict.as_ref().unwrap();
                        assert_eq!(
                            (found.root, found.reached, found.levels, found.edges),
                            (expected.root, expected.reached, expected.levels, expected.edges)
                        );
                    }
                    (trees, levels)
                });
                let (trees, levels) = &trees[0];
                for (k, sources) in sets.iter().enumerate() {
                    validate_forest(&list, false, sources, &trees[k]).unwrap();
                    assert_eq!(levels[k], right[k], "levels from {sources:?} are read off the parents");
                }
            }
        }
    }
}

const SIZES: [usize; 5] = [1, 2, 3, 4, 7];

#[test]
fn odd_graphs() {
    check(1, &[], &[0], &SIZES);
    check(1, &[[0, 0], [0, 0]], &[0], &SIZES);
    check(5, &[], &[3], &SIZES);
    // Fewer vertices than ranks, and two vertices joined only to each other, by one edge and by many.
    check(2, &[[0, 1]], &[0, 1], &SIZES);
    check(3, &[[2, 0]; 9], &[0, 1, 2], &SIZES);
    // A star, from its middle and from leaves; all other vertices are leaves.
    let star: Vec<[u32; 2]> = (1..300).map(|v| [0, v]).collect();
    check(300, &star, &[0, 7, 299], &SIZES);
    // A path: each end is a leaf. From an end it has more levels than one byte can count.
    let path: Vec<[u32; 2]> = (1..300).map(|v| [v - 1, v]).collect();
    // Few roots, since the ranks synchronise at each of its many levels.
    let ends: &[u32] = if all_combinations() { &[0, 1, 150, 298, 299] } else { &[1, 299] };
    check(300, &path, ends, &[1, 2, 3]);
    // Two components, a self-loop, repeats, and an isolated vertex.
    check(9, &[[0, 1], [1, 2], [2, 0], [0, 1], [4, 5], [5, 6], [6, 6], [6, 7]], &[0, 3, 4, 7, 8], &SIZES);
    // A grid.
    let (w, h) = (17, 13);
    let mut grid = Vec::new();
    for v in 0..w * h {
        if v % w + 1 < w {
            grid.push([v, v + 1]);
        }
        if v + w < w * h {
            grid.push([v, v + w]);
        }
    }
    check((w * h) as usize, &grid, &[0, 100, w * h - 1], &[2, 3, 7]);
    // A caterpillar: every vertex of a path has a leaf, and the last level has leaves only.
    let caterpillar: Vec<[u32; 2]> = (1..20).map(|v| [v - 1, v]).chain((0..20).map(|v| [v, 20 + v])).collect();
    check(40, &caterpillar, &[0, 10, 20, 39], &SIZES);
}

#[test]
fn larger_graphs_are_searched_right() {
    let edges = Generator::graph500(11).generate(&|_| ()).unwrap();
    let mut pairs = Vec::new();
    edges.for_each(0..edges.len(), |u, v| pairs.push([u, v]));
    check(edges.vertices(), &pairs, &[pairs[0][0], pairs[77][1], 5], &[2, 3, 4, 7]);
    let uniform = Generator::Uniform { vertices: 5000, edges: 12_000, seed: 5 }.generate(&|_| ()).unwrap();
    let mut pairs = Vec::new();
    uniform.for_each(0..uniform.len(), |u, v| pairs.push([u, v]));
    check(5000, &pairs, &[1, 4999], &[2, 3]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_graph(
        n in 1usize..400,
        m in 0usize..500,
        kind in 0u8..3,
        seed: u64,
        roots in prop::collection::vec(any::<u32>(), 1..5),
        ranks in 1usize..6,
    ) {
        let edges = edges(n as u64, m, seed, kind);
        let roots: Vec<u32> = roots.iter().map(|root| root % n as u32).collect();
        check(n, &edges, &roots, &[ranks]);
    }
}

#[test]
fn a_streamed_graph_equals_the_generated_list() {
    let generator = Generator::graph500(10);
    let list = generator.generate(&|_| ()).unwrap();
    let stream = generator.stream().unwrap();
    let roots = [3, 1000];
    let of_list = ThreadRanks::run(3, |ranks| {
        let part = Part::build(&list, Order::Auto, ranks).unwrap();
        let mut search = ClusterSearch::new(&part, ranks, &ClusterOptions::default()).unwrap();
        roots.map(|root| (search.run(root).unwrap().reached, search.parents_by_row().to_vec()))
    });
    let of_stream = ThreadRanks::run(3, |ranks| {
        let part = Part::build(&stream, Order::Auto, ranks).unwrap();
        let mut search = ClusterSearch::new(&part, ranks, &ClusterOptions::default()).unwrap();
        roots.map(|root| (search.run(root).unwrap().reached, search.parents_by_row().to_vec()))
    });
    assert_eq!(of_list, of_stream);
}

/// Wrong trees on one rank are found by all ranks.
#[test]
fn wrong_trees_fail_on_every_rank() {
    let edges: Vec<[u32; 2]> = (1..200).map(|v| [v - 1, v]).chain([[0, 150], [3, 200], [200, 201], [201, 202], [202, 3]]).collect();
    let list = EdgeList::new(210, edges, Listing::Once).unwrap();
    type Damage = (&'static str, fn(u32, &mut u32));
    let damages: [Damage; 6] = [
        ("does not lead to the root", |v, parent| {
            if v == 40 {
                *parent = 41
            }
        }),
        ("no edge joins them", |v, parent| {
            if v == 40 {
                *parent = 38
            }
        }),
        ("which is not a vertex", |v, parent| {
            if v == 40 {
                *parent = 4000
            }
        }),
        ("does not span", |v, parent| {
            if v == 199 {
                *parent = NONE
            }
        }),
        ("the root 3 has parent", |v, parent| {
            if v == 3 {
                *parent = 2
            }
        }),
        ("more than one apart", |v, parent| match v {
            201 => *parent = 200,
            202 => *parent = 201,
            _ => {}
        }),
    ];
    for (message, damage) in damages {
        let verdicts = ThreadRanks::run(3, |ranks| {
            let part = Part::build(&list, Order::Original, ranks).unwrap();
            let mut search = ClusterSearch::new(&part, ranks, &ClusterOptions::default()).unwrap();
            search.run(3).unwrap();
            let mut parents = search.parents_by_row().to_vec();
            for (row, vertex) in part.own_vertices() {
                damage(vertex, &mut parents[row]);
            }
            ClusterValidator::new(&part, ranks).validate(&list, &[RankTree { sources: vec![3], parents }]).unwrap().remove(0).map(|_| ())
        });
        assert!(verdicts.iter().all(|verdict| verdict == &verdicts[0]), "{verdicts:?}");
        let fault = verdicts[0].as_ref().unwrap_err();
        assert!(fault.contains(message), "{fault:?} instead of {message:?}");
    }
}

/// A whole tree, as from a file, also has vertices that no rank owns.
#[test]
fn whole_trees_are_checked_by_all_ranks() {
    // Vertices 5 and 6 have no edge.
    let list = EdgeList::new(7, vec![[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]], Listing::Once).unwrap();
    let verdict = |sources: &[u32], parents: [u32; 7], order: Order| {
        let of_ranks = ThreadRanks::run(3, |ranks| {
            let part = Part::build(&list, order, ranks).unwrap();
            let validator = ClusterValidator::new(&part, ranks);
            let tree = validator.tree_of(sources, &parents)?;
            validator.validate(&list, &[tree]).unwrap().remove(0).map(|found| (found.reached, found.levels))
        });
        assert!(of_ranks.iter().all(|verdict| verdict == &of_ranks[0]), "{of_ranks:?}");
        of_ranks[0].clone()
    };
    for order in [Order::Original, Order::Degree] {
        assert_eq!(verdict(&[0], [0, 0, 1, 0, 3, NONE, NONE], order), Ok((5, 3)));
        assert_eq!(verdict(&[5], [NONE, NONE, NONE, NONE, NONE, 5, NONE], order), Ok((1, 1)));
        let forest = [3, 2, 2, 3, 3, 5, NONE];
        assert_eq!(verdict(&[5, 2, 3, 2], forest, order), Ok((6, 2)));
        assert_eq!(verdict(&[], [NONE; 7], order), Ok((0, 0)));
        for (sources, parents, fault) in [
            (&[5, 2, 3, 1][..], forest, "the root 1 has parent 2"),
            (&[6, 5, 2, 3], forest, "the root 6 has no parent"),
            (&[5, 2], forest, "does not lead to the root"),
            (&[2, 3], forest, "vertex 5 "),
            (&[5, 2, 3], [1, 2, 2, 3, 3, 5, NONE], "more than one apart"),
            (&[], [3, 2, 2, 3, 3, NONE, NONE], "does not lead to the root"),
            (&[0], [0, 0, 1, 0, 3, NONE, 0], "vertex 6 has parent 0, but no edge joins them"),
            (&[5], [NONE, NONE, NONE, NONE, NONE, 6, NONE], "the root 5 has parent 6"),
            (&[5], [NONE; 7], "the root 5 has no parent"),
            (&[0], [0, 0, 1, 0, 2, NONE, NONE], "more than one apart"),
        ] {
            let found = verdict(sources, parents, order).unwrap_err();
            assert!(found.contains(fault), "{found:?} instead of {fault:?}");
        }
    }
}

/// Number of vertices, and the edges of all slices in ascending order.
fn read_by_ranks(size: usize, read: impl Fn(&ThreadRanks<'_>) -> Result<EdgeSlice, ClusterError> + Sync) -> (usize, Vec<[u32; 2]>) {
    let slices = ThreadRanks::run(size, |ranks| {
        let slice = read(ranks).unwrap();
        let mut edges = Vec::new();
        slice.for_each(0..slice.len(), |source, target| edges.push([source, target]));
        (slice.vertices(), edges)
    });
    let longest = slices.iter().map(|(_, edges)| edges.len()).max().unwrap();
    let mut all: Vec<[u32; 2]> = slices.iter().flat_map(|(_, edges)| edges).copied().collect();
    assert!(longest <= all.len() * 2 / size + 2, "a rank has {longest} of {} edges, over {size} ranks", all.len());
    all.sort_unstable();
    (slices[0].0, all)
}

/// Reads files that can be cut, one that can't, and files that only rank 0 has.
#[test]
fn files_are_read_by_all_ranks_together() {
    let folder = tempfile::tempdir().unwrap();
    let list = Generator::graph500(9).generate(&|_| ()).unwrap();
    let path = |name: &str| folder.path().join(name);
    for (format, name) in [(Format::EdgeListText, "g.el"), (Format::MatrixMarket, "g.mtx"), (Format::GapSg, "g.sg")] {
        write(&path(name), format, &list, &WriteOptions::default()).unwrap();
    }
    let mut ligra = "AdjacencyGraph\n4\n5\n0\n2\n3\n3\n".to_owned();
    ligra.push_str("1\n2\n3\n0\n1\n");
    std::fs::write(path("g.adj"), ligra).unwrap();
    let options = ReadOptions::default();
    for name in ["g.el", "g.mtx", "g.sg", "g.adj"] {
        let path = path(name);
        let whole = socbfs_io::read(&path, &options).unwrap();
        let mut edges = Vec::new();
        whole.for_each(0..whole.len(), |source, target| edges.push([source, target]));
        edges.sort_unstable();
        let expected = (whole.vertices(), edges);
        for size in SIZES {
            assert!(read_by_ranks(size, |ranks| read(&path, &options, ranks)) == expected, "{name} over {size} ranks");
            // The other ranks do not open the file.
            let absent = folder.path().join("absent").join(name);
            let of_rank = |ranks: &ThreadRanks<'_>| {
                let path = if ranks.rank() == 0 { &path } else { &absent };
                read_on_first(path, &options, ranks)
            };
            assert!(read_by_ranks(size, of_rank) == expected, "{name} from rank 0 to {size} ranks");
        }
        // The whole way from the file to a validated tree.
        let reference = Reference::new(expected.0, &expected.1, false, &[1]);
        let trees = ThreadRanks::run(3, |ranks| {
            let slice = read(&path, &options, ranks).unwrap();
            let part = Part::build(&slice, Order::Auto, ranks).unwrap();
            let mut search = ClusterSearch::new(&part, ranks, &ClusterOptions::default()).unwrap();
            let outcome = search.run(1).unwrap();
            let tree = RankTree { sources: vec![1], parents: search.parents_by_row().to_vec() };
            let found = ClusterValidator::new(&part, ranks).validate(&slice, &[tree]).unwrap().remove(0).unwrap();
            assert_eq!((found.reached, found.edges), (outcome.reached, outcome.edges));
            whole_tree(ranks, &part, &search, &[1])
        });
        reference.compare_tree(1, &trees[0]);
    }
}

/// Real graphs, which the ranks read together from their files: the level of every vertex equals that of the serial reference.
#[test]
fn real_graphs_are_searched_over_ranks() {
    let folder = std::env::var_os("SOCBFS_DATA")
        .map_or_else(|| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"), std::path::PathBuf::from);
    // Written without a print macro, whose output the test harness would capture.
    let skipped = |why: &str| {
        std::io::Write::write_all(
            &mut std::io::stderr(),
            format!("SKIPPED cluster::real_graphs_are_searched_over_ranks: {why}\n").as_bytes(),
        )
        .unwrap();
    };
    if !folder.is_dir() {
        return skipped(&format!("no data folder at {} (set SOCBFS_DATA)", folder.display()));
    }
    let small = ["chesapeake.mtx.xz", "wiki-Vote.txt.xz", "bips98_606.mtx.xz", "rodinia-graph4096.txt.xz", "facebook_combined.txt.xz"];
    let large = [
        "p2p-Gnutella31.txt.xz",
        "luxembourg_osm.mtx.xz",
        "email-Enron.txt.gz",
        "dimacs-NY.gr.xz",
        "soc-Slashdot0902.txt.gz",
        "metis-mdual.graph.xz",
        "ego-Twitter.txt.xz",
        "dblp-2010.txt.xz",
        "cnr-2000.txt.xz",
        "dimacs-NE.gr.xz",
    ];
    let all = std::env::var_os("SOCBFS_TEST_ALL").is_some();
    if !all {
        skipped(&format!("{} are large: SOCBFS_TEST_ALL=1 takes them", large.join(", ")));
    }
    for name in small.iter().chain(large.iter().filter(|_| all)) {
        let path = folder.join(name);
        if !path.is_file() {
            skipped(&format!("{} is absent", path.display()));
            continue;
        }
        let list = socbfs_io::read(&path, &ReadOptions::default()).unwrap();
        let mut edges = Vec::new();
        list.for_each(0..list.len(), |source, target| edges.push([source, target]));
        let roots = [0, list.vertices() as u32 / 2, list.vertices() as u32 - 1];
        let reference = Reference::new(list.vertices(), &edges, false, &roots);
        for &size in if all { &SIZES[..] } else { &[1, 3] } {
            let of_ranks = ThreadRanks::run(size, |ranks| {
                let slice = read(&path, &ReadOptions::default(), ranks).unwrap();
                let part = Part::build(&slice, Order::Auto, ranks).unwrap();
                let mut search = ClusterSearch::new(&part, ranks, &ClusterOptions::default()).unwrap();
                let trees = roots.map(|root| {
                    search.run(root).unwrap();
                    RankTree { sources: vec![root], parents: search.parents_by_row().to_vec() }
                });
                let validator = ClusterValidator::new(&part, ranks);
                for verdict in validator.validate(&slice, &trees).unwrap() {
                    verdict.unwrap_or_else(|fault| panic!("{name} over {size} ranks: {fault}"));
                }
                trees.each_ref().map(|tree| validator.levels(tree).unwrap())
            });
            for (root, levels) in roots.iter().zip(&of_ranks[0]) {
                assert!(reference.levels(*root).iter().eq(levels), "{name} over {size} ranks from {root}");
            }
        }
    }
}

/// Every rank reports what is wrong with a file on one rank: which rank, which file, which line.
#[test]
fn every_rank_reports_a_file_that_one_rank_can_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let lines: String = (0..2000).map(|v| format!("{v} {}\n", v + 1)).collect();
    let good = file("good.el", &lines);
    let wrong = file("wrong.el", &lines.replace("\n1500 1501\n", "\n1500 x\n"));
    let longer = file("longer.el", &(lines.clone() + "0 1\n"));
    // Two files of the same length as `good.el` with other content: one in the slice of the last rank, one in that of the first, which the
    // last rank does not use.
    let other = file("other.el", &lines.replace("\n1990 1991\n", "\n1990 1992\n"));
    let unused = file("unused.el", &lines.replace("\n100 101\n", "\n100 102\n"));
    let absent = folder.path().join("absent.el");
    // Nothing writes to this pipe, so a rank that opened it would wait for ever.
    let pipe = folder.path().join("pipe.el");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let packed = folder.path().join("packed.adj");
    std::fs::write(&packed, "AdjacencyGraph\n2\n1\n0\n1\n").unwrap();
    let told = |paths: [&std::path::Path; 3], on_first: bool| {
        let of_ranks = ThreadRanks::run(3, |ranks| {
            let (path, options) = (paths[ranks.rank()], ReadOptions::default());
            let slice = if on_first { read_on_first(path, &options, ranks) } else { read(path, &options, ranks) };
            slice.map(|slice| slice.vertices()).map_err(|error| error.to_string())
        });
        assert!(of_ranks.iter().all(|told| *told == of_ranks[0]), "{of_ranks:?}");
        of_ranks[0].clone()
    };
    assert_eq!(told([&good, &good, &good], false), Ok(2001));
    assert_eq!(told([&good, &absent, &absent], true), Ok(2001));
    // The part of a file that a rank does not use may be wrong.
    assert_eq!(told([&good, &good, &unused], false), Ok(2001));
    for (paths, on_first, expected) in [
        ([&wrong, &wrong, &wrong], false, &["rank 2: ", "wrong.el:1501: 'x' is not a vertex number"][..]),
        ([&wrong, &absent, &absent], true, &["rank 0: ", "wrong.el:1501: 'x'"]),
        ([&good, &absent, &good], false, &["rank 1: ", "absent.el: can't open it", "--from-rank-0"]),
        ([&absent, &good, &good], true, &["rank 0: ", "absent.el: can't open it"]),
        (
            [&good, &good, &longer],
            false,
            &["rank 2: ", "longer.el: the file has ", " bytes, but that of rank 0 has ", "copy rank 0's file there, or give --from-rank-0"],
        ),
        (
            [&good, &good, &other],
            false,
            &["rank 2: ", "other.el: the content of the file differs from that of rank 0; copy rank 0's file there"],
        ),
        ([&good, &pipe, &good], false, &["rank 1: ", "pipe.el: it is not a regular file, but that of rank 0 is", "give --from-rank-0"]),
        ([&packed, &packed, &packed], false, &["rank 0: ", "packed.adj: the file ends before the edges"]),
    ] {
        let error = told(paths.map(|path| path.as_path()), on_first).unwrap_err();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn ranks_with_different_graphs_are_refused() {
    let lists: Vec<EdgeList> =
        [[0u32, 1], [0, 2]].iter().map(|&edge| EdgeList::new(4, vec![edge, [2, 3]], Listing::Once).unwrap()).collect();
    let errors = ThreadRanks::run(3, |ranks| Part::build(&lists[usize::from(ranks.rank() == 2)], Order::Auto, ranks).unwrap_err());
    for error in errors {
        assert!(matches!(error, ClusterError::Different { rank: 2, .. }), "{error}");
    }
}

/// A rank that can't be set up reports why, and the others do not wait for it.
#[test]
fn all_ranks_fail_if_one_can_not_be_set_up() {
    let absent = Simd::ALL.into_iter().find(|simd| !simd.available()).unwrap();
    let list = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Unknown).unwrap();
    let errors = ThreadRanks::run(3, |ranks| {
        let part = Part::build(&list, Order::Auto, ranks).unwrap();
        let simd = Some(absent).filter(|_| ranks.rank() == 1);
        ClusterSearch::new(&part, ranks, &ClusterOptions { simd, ..ClusterOptions::default() }).unwrap_err()
    });
    for (rank, error) in errors.iter().enumerate() {
        match error {
            ClusterError::Simd(_) => assert_eq!(rank, 1),
            ClusterError::SetUp { rank: 1, reason } => assert_eq!((rank != 1, reason), (true, &errors[1].to_string())),
            other => panic!("rank {rank}: {other}"),
        }
    }
}

#[test]
fn roots_out_of_range_are_refused() {
    let list = EdgeList::new(4, vec![[0, 1]], Listing::Once).unwrap();
    ThreadRanks::run(2, |ranks| {
        let part = Part::build(&list, Order::Auto, ranks).unwrap();
        let mut search = ClusterSearch::new(&part, ranks, &ClusterOptions::default()).unwrap();
        assert!(matches!(search.run(4), Err(ClusterError::RootOutOfRange { root: 4, vertices: 4 })));
        // Every rank has the error of one.
        for root in [4, u32::MAX] {
            let asked = if ranks.rank() == 1 { root } else { 1 };
            let refused = search.run(asked).unwrap_err();
            assert!(matches!(refused, ClusterError::RootOutOfRange { root: wrong, .. } if wrong == root), "{refused}");
        }
        let refused = search.run(ranks.rank() as u32).unwrap_err();
        assert!(matches!(refused, ClusterError::OtherSources { rank: 1 }), "{refused}");
        assert_eq!(search.run(1).unwrap().reached, 2);
    });
}
