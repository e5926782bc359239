//! Searches with every policy, order, thread count and kind of vector instructions, directed and undirected, against a serial reference.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::time::{Duration, Instant};

use proptest::prelude::*;
use socbfs::{
    ParallelThresholds, Simd,
    bfs::{LevelRecord, Strategy},
    graph::{BuildOptions, EdgeList, Layout, Listing, NONE, Order},
    search::{End, Run, Search, SearchError, SearchOptions},
};
use socbfs_policy::{Known, Policy, Replay};

use crate::{
    examples::own_policy,
    reference::Reference,
    searches::{all_combinations, edges as random, is_tried},
};

/// Every named policy that needs no device, and some with other thresholds, which change direction earlier or later. Policies that decide
/// by shares of a graph also change direction on small graphs.
fn policies() -> Vec<Policy> {
    let named = socbfs_policy::known().filter_map(Known::policy);
    let tuned = [
        "rule:unvisited_vertices < 2 * frontier_vertices or sampled_probes < 2 and level > 1",
        "gunrock:0.5,10",
        "enterprise-released:0.1",
        "yasui:2,2",
        "cost-model:zhang",
        "alpha-beta:1000,1",
    ];
    let own = [Policy::planner(own_policy::Once::new(0.05, Strategy::Bc))];
    named.filter(|policy| !policy.needs_device()).chain(tuned.map(|text| text.parse().unwrap())).chain(own).collect()
}

fn check(n: usize, edges: &[[u32; 2]], directed: bool, roots: &[u32]) {
    let reference = Reference::new(n, edges, directed, roots);
    let list = EdgeList::new(n, edges.to_vec(), Listing::Unknown).unwrap();
    let build = |order, blocks| Layout::build(&list, &BuildOptions { directed, order, blocks, ..BuildOptions::default() }).unwrap();
    let simds: Vec<Simd> = Simd::ALL.into_iter().filter(|simd| simd.available()).collect();
    let orders =
        [Order::Original, Order::Degree, Order::Bfs].into_iter().flat_map(|order| [false, true].map(|blocks| (order, Some(blocks))));
    let (layouts, threads, policies) = (orders.collect::<Vec<_>>(), [1, 2, 3], policies());
    let lengths = [layouts.len(), threads.len(), simds.len(), policies.len()];
    for (a, &(order, blocks)) in layouts.iter().enumerate() {
        let layout = build(order, blocks);
        assert_eq!(layout.order(), order);
        for (b, &threads) in threads.iter().enumerate() {
            for (c, &simd) in simds.iter().enumerate() {
                // Some of the combinations ([`is_tried`]); all of them with `SOCBFS_TEST_ALL`.
                for (_, policy) in policies.iter().enumerate().filter(|&(d, _)| is_tried(&[a, b, c, d], &lengths)) {
                    let options = SearchOptions { planner: policy.clone().into(), threads, simd: Some(simd), ..SearchOptions::default() };
                    reference.compare(&layout, &options);
                }
            }
        }
    }
    // The automatic choice is one of the orders above, so one search with default options is enough.
    let layout = build(Order::Auto, None);
    assert_ne!(layout.order(), Order::Auto);
    reference.compare(&layout, &SearchOptions::default());
}

/// All threads compute the levels from the parents, on a tree of a few levels and on a long path whose vertices are out of order.
#[test]
fn large_trees_have_right_levels_and_counts() {
    let n = 300_000u32;
    let mixed = |v: u32| (u64::from(v) * 7_919 % u64::from(n)) as u32;
    let path: Vec<_> = (1..n).map(|v| [mixed(v - 1), mixed(v)]).collect();
    for edges in [path, random(u64::from(n), 900_000, 3, 1)] {
        let reference = Reference::new(n as usize, &edges, false, &[0]);
        let layout = Layout::build(&EdgeList::new(n as usize, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions { threads: 3, ..SearchOptions::default() }).unwrap();
        let outcome = search.run(0).unwrap();
        let tree = search.result(0);
        assert_eq!(tree.level, reference.levels(0));
        assert_eq!(outcome.reached, tree.parent.iter().filter(|&&parent| parent != NONE).count() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn small_random_graphs(n in 1u64..300, m in 0usize..900, kind in 0u8..3, directed: bool, seed: u64) {
        check(n as usize, &random(n, m, seed, kind), directed, &[0, (seed % n) as u32]);
    }
}

#[test]
fn odd_graphs() {
    check(1, &[], false, &[0]);
    check(2, &[], false, &[1]);
    check(3, &[[0, 0], [1, 1]], true, &[0, 2]);
    check(70, &[[3, 4], [4, 3], [3, 4]], false, &[3, 5]);
    check(2, &vec![[0, 1]; if all_combinations() { 1 << 20 } else { 1 << 17 }], false, &[0, 1]);
    let star: Vec<[u32; 2]> = (1..5000).map(|v| [0, v]).collect();
    check(5000, &star, false, &[0, 17]);
    check(5000, &star, true, &[0, 17]);
    // Bottom-up has as many levels as there are vertices, and each visits all unvisited vertices.
    let long = if all_combinations() { 5000 } else { 1200 };
    let path: Vec<[u32; 2]> = (1..long).map(|v| [v - 1, v]).collect();
    check(long as usize, &path, false, &[0, long / 2]);
    check(long as usize, &path, true, &[0, long - 1]);
    let side = 70;
    let grid: Vec<[u32; 2]> = (0..side * side)
        .flat_map(|v| [(v % side + 1 < side).then_some([v, v + 1]), (v / side + 1 < side).then_some([v, v + side])])
        .flatten()
        .collect();
    check((side * side) as usize, &grid, false, &[0, 2485]);
    let two: Vec<[u32; 2]> =
        path.iter().map(|&[u, v]| [u / 2 * 2, v / 2 * 2]).chain(star.iter().map(|&[u, v]| [u * 2 + 1, v | 1])).collect();
    check(5000, &two, false, &[0, 1]);
}

#[test]
fn larger_graphs_share_their_levels() {
    for (number, (kind, directed)) in [(1, false), (0, false), (1, true)].into_iter().enumerate() {
        let n = if number == 0 || all_combinations() { 20_000 } else { 5_000 };
        check(n, &random(n as u64, 10 * n, 7, kind), directed, &[0, n as u32 - 1]);
    }
}

/// Graphs large enough for levels that record positions in the frontier (`cpu/wide.rs`), with isolated vertices, repeats and
/// self-loops.
#[test]
fn wide_levels_of_graphs_in_original_order() {
    let n = 140_000;
    let simds: Vec<Simd> = Simd::ALL.into_iter().filter(|simd| simd.available()).collect();
    for (directed, kind) in [(false, 0), (true, 0), (false, 1)] {
        let mut edges = random(130_000, 450_000, 9, kind);
        edges.extend((0..1000).flat_map(|v| [[v, v], [v, v + 1], [v + 1, v]]));
        let reference = Reference::new(n, &edges, directed, &[0, 77_777, 135_000]);
        let list = EdgeList::new(n, edges, Listing::Unknown).unwrap();
        let layout = Layout::build(&list, &BuildOptions { directed, order: Order::Original, ..BuildOptions::default() }).unwrap();
        for (number, policy) in ["tc", "auto", "alpha-beta"].into_iter().enumerate() {
            for threads in [1, 3] {
                let simd = Some(simds[(number + threads) % simds.len()]);
                let options =
                    SearchOptions { planner: policy.parse::<Policy>().unwrap().into(), threads, simd, ..SearchOptions::default() };
                reference.compare(&layout, &options);
            }
        }
    }
}

/// Thresholds that make threads share everything or nothing, and pieces of any size, change no result.
#[test]
fn thresholds_of_threads_change_no_result() {
    let graphs = [
        (3000, random(3000, 30_000, 5, 1)),
        (5000, random(5000, 12_000, 6, 0)),
        (1, vec![[0, 0]]),
        (800, (1..800).map(|v| [0, v]).collect()),
        // A grid, whose layout has rows of neighbours.
        (
            1600,
            (0..1600)
                .flat_map(|v| [(v, v + 40), (v, v + u32::from(v % 40 < 39))])
                .filter(|&(_, v)| v < 1600)
                .map(|(u, v)| [u, v])
                .collect(),
        ),
    ];
    for (n, edges) in graphs {
        let reference = Reference::new(n, &edges, false, &[0, n as u32 / 2]);
        let list = EdgeList::new(n, edges, Listing::Unknown).unwrap();
        for order in [Order::Original, Order::Degree, Order::Bfs] {
            let layout = Layout::build(&list, &BuildOptions { order, ..BuildOptions::default() }).unwrap();
            for (arcs, hub_arcs, row_arcs, piece) in [(0, 0, 0, 64), (1, 1 << 40, 1, 192), (u64::MAX, 1, u64::MAX, 1 << 20), (1, 100, 1, 0)]
            {
                for (threads, policy) in [(2, "tc"), (3, "auto"), (2, "bc")] {
                    let parallel = Some(ParallelThresholds { arcs, hub_arcs, row_arcs, piece });
                    let policy = policy.parse::<Policy>().unwrap();
                    reference.compare(&layout, &SearchOptions { planner: policy.into(), threads, parallel, ..SearchOptions::default() });
                }
            }
        }
    }
}

#[test]
fn a_root_out_of_range_is_refused() {
    let list = EdgeList::new(3, vec![[0, 1]], Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    let error = Search::new(&layout, &SearchOptions::default()).unwrap().run(3).unwrap_err();
    assert!(error.to_string().contains("root 3"), "{error}");
}

#[test]
fn a_search_without_an_outcome_has_no_tree() {
    // In the order of degrees the parents are in an array of their own.
    let star: Vec<[u32; 2]> = (1..200).map(|v| [0, v]).chain([[1, 2], [2, 3]]).collect();
    let list = EdgeList::new(200, star, Listing::Once).unwrap();
    for order in [Order::Original, Order::Degree, Order::Bfs] {
        let layout = Layout::build(&list, &BuildOptions { order, ..BuildOptions::default() }).unwrap();
        let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
        assert!(search.parents().is_empty() && search.result(5).parent.is_empty(), "{order:?}");
        search.run(200).unwrap_err();
        assert!(search.parents().is_empty(), "{order:?}");
        search.run(5).unwrap();
        assert_eq!((search.parents()[5], search.parents()[0]), (5, 5));
        // A refused call does not change the last tree.
        search.run(200).unwrap_err();
        assert_eq!(search.parents()[0], 5);
    }
}

#[test]
fn a_search_can_be_stopped_and_the_next_one_is_right() {
    // A path, where a single thread runs many levels at a time, and a graph of few levels. (The path is shorter under an emulator, where
    // the stop in the middle of a search is not tested.)
    let is_emulated = std::env::var_os("SOCBFS_TEST_EMULATED").is_some();
    let length = if is_emulated { 100_000 } else { 2_500_000 };
    let path: Vec<[u32; 2]> = (1..length).map(|v| [v - 1, v]).collect();
    for (vertices, edges, threads) in [(length as usize, path, 1), (20_000, random(20_000, 200_000, 7, 1), 2)] {
        let layout = Layout::build(&EdgeList::new(vertices, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
        let mut search = Search::new(&layout, &SearchOptions { threads, ..SearchOptions::default() }).unwrap();
        let stopper = search.stopper();
        let whole = search.run(0).unwrap();
        let tree = search.result(0);
        let stopped = |search: &mut Search| {
            let error = search.run(0).unwrap_err();
            assert!(matches!(error, SearchError::Stopped(0)), "{error}");
            assert!(search.parents().is_empty());
        };
        // Stopped before it begins, until the stopper is reset.
        stopper.stop();
        stopped(&mut search);
        stopped(&mut search);
        stopper.reset();
        // Stopped by a deadline in the past, and not by one in the future.
        search.set_deadline(Some(Instant::now()));
        stopped(&mut search);
        search.set_deadline(Some(Instant::now() + Duration::from_secs(3600)));
        assert_eq!(search.run(0).unwrap().reached, whole.reached);
        // Stopped while it runs, by another thread.
        if threads == 1 && !is_emulated {
            let after = whole.elapsed / 4;
            let begin = Instant::now();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(after);
                    stopper.stop();
                });
                stopped(&mut search);
            });
            assert!(begin.elapsed() >= after && !search.records().is_empty(), "it had not begun");
            let done: u64 = search.records().iter().map(|record| record.found).sum();
            assert!(done > 0 && done < vertices as u64 - 1, "{done} vertices were found");
            stopper.reset();
        }
        search.set_deadline(None);
        assert_eq!(search.run(0).unwrap().levels, whole.levels);
        assert_eq!(search.result(0), tree);
    }
}

#[test]
fn a_search_that_has_nothing_to_search_is_stopped_too() {
    // Vertex 0 has no edge, 1 and 2 have one with each other.
    let layout = Layout::build(&EdgeList::new(3, vec![[1, 2]], Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
    let stopper = search.stopper();
    for root in 0..3 {
        stopper.stop();
        assert!(matches!(search.run(root), Err(SearchError::Stopped(stopped)) if stopped == root));
        stopper.reset();
        search.set_deadline(Some(Instant::now()));
        assert!(matches!(search.run(root), Err(SearchError::Stopped(_))) && search.parents().is_empty());
        search.set_deadline(None);
        assert_eq!(search.run(root).unwrap().reached, 1 + u64::from(root > 0));
    }
}

#[test]
fn a_search_up_to_no_limit_joins_small_levels_as_one_without_limits_does() {
    let path = (1..3000).map(|v| [v - 1, v]).collect();
    let layout = Layout::build(&EdgeList::new(3000, path, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    let mut search = Search::new(&layout, &SearchOptions { threads: 2, ..SearchOptions::default() }).unwrap();
    let whole = search.run(0).unwrap();
    let records = search.records().len();
    let partial = search.run(Run::from(&[0])).unwrap();
    assert_eq!((partial.reached, partial.levels, partial.end), (whole.reached, whole.levels, End::Complete));
    assert_eq!(search.records().len(), records);
    // With a limit that is never reached, every level is run by itself.
    search.run(Run { depth: Some(3000), ..0.into() }).unwrap();
    assert!(search.records().len() > records);
}

#[test]
fn a_replay_by_roots_searches_from_its_roots_only() {
    let list = EdgeList::new(3, vec![[0, 1], [1, 2]], Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    let plans = |strategy: Strategy| [LevelRecord { plan: strategy.plan(), ..LevelRecord::default() }];
    let (top_down, bottom_up) = (plans(Strategy::Tc), plans(Strategy::Bc));
    let policy = Policy::Replay(Replay::of_roots([(2, &top_down[..]), (0, &bottom_up[..])]));
    let mut search = Search::new(&layout, &SearchOptions { planner: policy.into(), threads: 1, ..SearchOptions::default() }).unwrap();
    for (root, strategy) in [(0, Strategy::Bc), (2, Strategy::Tc), (0, Strategy::Bc)] {
        search.run(root).unwrap();
        assert!(search.records().iter().all(|record| record.plan == strategy.plan()), "{root}");
    }
    assert!(matches!(search.run(1), Err(SearchError::NotRecorded(1))));
    // The search is still usable after that.
    assert_eq!(search.run(2).unwrap().reached, 3);
}

#[test]
fn levels_run_together_count_their_edges() {
    // A path of 1,000 vertices, followed by two levels of 10,000 vertices, which threads share.
    let mut edges: Vec<[u32; 2]> = (1..1000).map(|v| [v - 1, v]).collect();
    edges.extend((0..10_000).flat_map(|leaf| [[999, 1000 + leaf], [1000 + leaf, 11_000 + leaf]]));
    let list = EdgeList::new(21_000, edges, Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions { directed: false, order: Order::Original, ..BuildOptions::default() }).unwrap();
    for threads in [1, 2] {
        let mut search =
            Search::new(&layout, &SearchOptions { planner: Policy::Fixed(Strategy::Tc).into(), threads, ..Default::default() }).unwrap();
        search.run(0).unwrap();
        let records = search.records();
        let wide = records.iter().find(|record| record.stats.frontier_vertices == 10_000).unwrap();
        assert!(records.iter().any(|record| record.levels > 900), "{records:?}");
        // The 10,000 vertices of the last level have one arc each, those of the frontier two.
        assert_eq!((wide.stats.frontier_edges, wide.stats.unvisited_edges), (20_000, 10_000), "{threads} threads");
    }
}

/// Without a device there is nothing to hand over, so the levels have the counts and plans that they have otherwise.
#[test]
fn a_handover_before_each_level_changes_nothing_without_a_device() {
    let list = EdgeList::new(20_000, random(20_000, 200_000, 7, 1), Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions { order: Order::Degree, ..BuildOptions::default() }).unwrap();
    let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
    search.set_single_levels(true);
    let levels = |search: &mut Search| {
        search.run(0).unwrap();
        let of = |record: &LevelRecord| (record.plan, record.found, record.stats.frontier_edges, record.stats.unvisited_edges);
        search.records().iter().map(of).collect::<Vec<_>>()
    };
    let wanted = levels(&mut search);
    assert!(wanted.len() > 2, "{wanted:?}");
    search.set_handover_round_levels(true);
    assert_eq!(levels(&mut search), wanted);
    assert!(search.records().iter().all(|record| record.handover_ns == 0));
}
