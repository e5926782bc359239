//! Searches from sets of sources, on the CPU and on devices, against the least of the levels from each source.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{cell::Cell, collections::HashSet, sync::Arc, time::Instant};

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use socbfs::{
    GpuOptions, GpuSetup, Output, ParallelThresholds, Run, Simd,
    graph::{BuildOptions, EdgeList, Layout, Listing, NONE, Order},
    memory::SharingMode,
    opencl::Limits,
    search::{End, Search, SearchError, SearchOptions},
};
use socbfs_algo::ManySearch;
use socbfs_io::validate::{Check, ValidateError, validate_forest};

use crate::searches::{all_combinations, devices, edges as random, is_rusticl, is_slow, policies, policies_in_turn, turn_of_commit};

/// What is searched, and the right levels.
struct Case {
    n: usize,
    edges: Vec<[u32; 2]>,
    arcs: HashSet<[u32; 2]>,
    directed: bool,
    sources: Vec<u32>,
    /// The least level of each vertex over searches from each source.
    level: Vec<u32>,
    /// The level of each vertex in the search from each source: a row for each vertex.
    each: Vec<u32>,
}

impl Case {
    fn new(n: usize, edges: Vec<[u32; 2]>, directed: bool, sources: Vec<u32>) -> Self {
        let layout = layout(n, &edges, directed, Order::Auto, false);
        let mut each = vec![0; n * sources.len()];
        ManySearch::new(&layout, 1, &[]).unwrap().levels_into(&sources, &mut each).unwrap();
        let level =
            if sources.is_empty() { vec![NONE; n] } else { each.chunks(sources.len()).map(|row| *row.iter().min().unwrap()).collect() };
        let reverse = edges.iter().filter(|_| !directed).map(|&[u, v]| [v, u]);
        let arcs = edges.iter().copied().chain(reverse).collect();
        Self { n, edges, arcs, directed, sources, level, each }
    }

    fn layout(&self, order: Order, keep_leaves: bool) -> Layout {
        layout(self.n, &self.edges, self.directed, order, keep_leaves)
    }

    fn levels(&self) -> u32 {
        self.level.iter().filter(|&&level| level != NONE).max().map_or(0, |deepest| deepest + 1)
    }

    /// Checks a forest that has the levels up to `cut`.
    fn check(&self, parents: &[u32], levels: &[u32], labels: &[u32], cut: u32) {
        for v in 0..self.n {
            let wanted = if self.level[v] <= cut { self.level[v] } else { NONE };
            assert_eq!(levels[v], wanted, "level of {v}");
            let (parent, label) = (parents[v] as usize, labels[v]);
            if wanted == NONE {
                assert_eq!((parents[v], label), (NONE, NONE), "{v} is not reached");
                continue;
            }
            assert_eq!(wanted == 0, parent == v, "sources are their own parents");
            if wanted == 0 {
                assert!(self.sources.contains(&(v as u32)) && label == v as u32);
            } else {
                assert!(self.arcs.contains(&[parents[v], v as u32]), "{parent} and {v} are not joined");
                assert_eq!(levels[parent] + 1, wanted);
            }
            assert_eq!(label, labels[parent], "the label is that of the parent");
            let column = self.sources.iter().position(|&source| source == label).unwrap();
            assert_eq!(self.each[v * self.sources.len() + column], wanted, "{label} is as near to {v} as its level says");
        }
    }

    /// Searches to the end, up to a depth, and up to a target, with the tree in the search's own arrays and in those of the caller.
    fn compare(&self, search: &mut Search<'_>, depth: u32, target: u32) {
        let n = self.n;
        let outcome = search.run(&self.sources).unwrap();
        let (mut levels, mut labels) = (vec![7; n], vec![7; n]);
        search.levels_into(&mut levels);
        search.sources_into(&mut labels);
        self.check(search.parents(), &levels, &labels, NONE - 1);
        let list = EdgeList::new(n, self.edges.clone(), Listing::Unknown).unwrap();
        let found = validate_forest(&list, self.directed, &self.sources, search.parents()).unwrap();
        assert_eq!((found.reached, found.levels), (outcome.reached, outcome.levels));
        let reached = self.level.iter().filter(|&&level| level != NONE).count() as u64;
        assert_eq!((outcome.sources, outcome.reached, outcome.levels), (self.sources.len() as u64, reached, self.levels()));
        assert_eq!(outcome.root, self.sources.first().copied().unwrap_or(NONE));
        let far = self.level[target as usize];
        let to_target = if far == NONE { NONE - 1 } else { far };
        for (until, cut) in [
            ((None, None), NONE - 1),
            ((Some(depth), None), depth),
            ((None, Some(target)), to_target),
            ((Some(depth), Some(target)), depth.min(to_target)),
        ] {
            let (depth, target) = until;
            let partial = search.run(Run { depth, target, ..(&self.sources).into() }).unwrap();
            search.levels_into(&mut levels);
            search.sources_into(&mut labels);
            self.check(search.parents(), &levels, &labels, cut);
            let cut_levels = self.levels().min(cut.saturating_add(1));
            assert_eq!(partial.levels, cut_levels, "{until:?}");
            let hits = target.is_some() && far <= cut && far != NONE;
            assert_eq!(partial.end == End::Target, hits, "{until:?}");
            if !hits && cut < self.levels().saturating_sub(1) {
                assert_eq!(partial.end, End::Depth, "{until:?}");
            }
            let [mut parents, mut levels, mut labels] = [vec![7; n], vec![7; n], vec![7; n]];
            let output = Output { parents: Some(&mut parents), levels: Some(&mut levels), sources: Some(&mut labels) };
            let into = search.run(Run { depth, target, output: Some(output), ..(&self.sources).into() }).unwrap();
            assert_eq!((into.end, into.levels), (partial.end, cut_levels), "{until:?}");
            self.check(&parents, &levels, &labels, cut);
            // Labels and levels alone, and levels alone.
            let [mut fewer, mut again] = [vec![7; n], vec![7; n]];
            let output = Output { levels: Some(&mut fewer), sources: Some(&mut again), ..Output::default() };
            search.run(Run { depth, target, output: Some(output), ..(&self.sources).into() }).unwrap();
            let of = |v: usize| if again[v] == NONE { NONE } else { self.each[v * self.sources.len() + self.at(again[v])] };
            assert!((0..n).all(|v| of(v) == levels[v] && fewer[v] == levels[v]), "{until:?}");
            let output = Output { levels: Some(&mut fewer), ..Output::default() };
            search.run(Run { depth, target, output: Some(output), ..(&self.sources).into() }).unwrap();
            assert_eq!(fewer, levels, "{until:?}");
        }
    }

    fn at(&self, label: u32) -> usize {
        self.sources.iter().position(|&source| source == label).unwrap()
    }
}

fn layout(n: usize, edges: &[[u32; 2]], directed: bool, order: Order, keep_leaves: bool) -> Layout {
    let list = EdgeList::new(n, edges.to_vec(), Listing::Unknown).unwrap();
    Layout::build(&list, &BuildOptions { directed, order, keep_leaves, ..BuildOptions::default() }).unwrap()
}

/// Graphs with many leaves, pairs and vertices without an edge, and any number of sources.
fn cases() -> impl Strategy<Value = (usize, usize, u8, bool, u64, Vec<u32>, u32, u32)> {
    (1usize..90).prop_flat_map(|n| {
        let vertex = 0..n as u32;
        let sources = prop_oneof![prop::collection::vec(vertex.clone(), 0..6), prop::collection::vec(vertex.clone(), 0..60)];
        (Just(n), 0..2 * n, 0u8..3, any::<bool>(), any::<u64>(), sources, 0u32..5, vertex)
    })
}

/// Levels of these amounts of work are shared by threads.
const SMALL: ParallelThresholds = ParallelThresholds { arcs: 1, hub_arcs: 1, row_arcs: 1, piece: 64 };

#[test]
fn the_distance_is_the_least_over_all_sources() {
    let policies: Vec<_> = policies().into_iter().filter(|(policy, _)| !policy.needs_device()).map(|(policy, _)| policy).collect();
    let simds: Vec<Simd> = Simd::ALL.into_iter().filter(|simd| simd.available()).collect();
    let turn = Cell::new(0usize);
    let cases_tried = if all_combinations() { 10_000 } else { 400 };
    TestRunner::new(Config { cases: cases_tried, ..Config::default() })
        .run(&cases(), |(n, m, kind, directed, seed, sources, depth, target)| {
            let case = Case::new(n, random(n as u64, m, seed, kind), directed, sources);
            for order in [Order::Original, Order::Degree, Order::Bfs] {
                let number = turn.replace(turn.get() + 1);
                let layout = case.layout(order, number % 7 == 0);
                let options = SearchOptions {
                    planner: policies[number / 2 % policies.len()].clone().into(),
                    threads: 1 + number / 4 % 3,
                    simd: Some(simds[number % simds.len()]),
                    parallel: (number % 5 > 0).then_some(SMALL),
                    ..SearchOptions::default()
                };
                let mut search = Search::new(&layout, &options).unwrap();
                case.compare(&mut search, depth, target);
                // What is left of the set does not spoil a search from one root, nor that another one from the set.
                let alone = Case::new(n, case.edges.clone(), directed, vec![target]);
                alone.compare(&mut search, depth, 0);
                case.compare(&mut search, depth, target);
            }
            Ok(())
        })
        .unwrap();
}

/// Sets that meet the rules for left-out leaves: stars, pairs, hosts without an arc, and all of them together.
#[test]
fn leaves_pairs_and_lone_vertices_are_sources_like_any_other() {
    // A triangle with leaves 3 and 4 at 0 and 5 at 1; a star of centre 6; a pair 10, 11; vertex 12 alone; a path of four.
    let edges = vec![[0, 1], [1, 2], [2, 0], [0, 3], [0, 4], [1, 5], [6, 7], [6, 8], [6, 9], [10, 11], [13, 14], [14, 15], [15, 16]];
    let layout = layout(17, &edges, false, Order::Degree, false);
    assert_eq!((layout.stats().leaves, layout.stats().isolated), (10, 1));
    for threads in [1, 2] {
        let options = SearchOptions { threads, parallel: Some(SMALL), ..SearchOptions::default() };
        let mut search = Search::new(&layout, &options).unwrap();
        for set in 0..1u32 << 17 {
            // Every pair and triple of vertices, and one set in 97.
            if set.count_ones() > 3 && set % 97 != 0 || set.count_ones() == 3 && !all_combinations() && set % 5 != 0 {
                continue;
            }
            let sources = (0..17).filter(|v| set >> v & 1 == 1).collect();
            let case = Case::new(17, edges.clone(), false, sources);
            case.compare(&mut search, set % 4, set / 7 % 17);
        }
    }
}

/// A ring with a leaf, beside a star: from sources without an arc and a leaf, all but one vertex have been found before the last level.
fn ring_and_star() -> (Vec<[u32; 2]>, [Vec<u32>; 4]) {
    let edges = (0..6).map(|v| [v, (v + 1) % 6]).chain([[0, 6], [7, 8], [7, 9]]).collect();
    (edges, [vec![7, 6], vec![7, 0], vec![8, 9, 6, 10], vec![7, 10]])
}

#[test]
fn sources_without_an_arc_do_not_count_as_found() {
    let (edges, sets) = ring_and_star();
    for (sources, threads) in sets.into_iter().flat_map(|set| [(set.clone(), 1), (set, 2)]) {
        let case = Case::new(11, edges.clone(), false, sources);
        for order in [Order::Original, Order::Degree, Order::Bfs] {
            let layout = case.layout(order, false);
            for (policy, _) in policies().into_iter().filter(|(policy, _)| !policy.needs_device()) {
                let options = SearchOptions { planner: policy.into(), threads, parallel: Some(SMALL), ..SearchOptions::default() };
                case.compare(&mut Search::new(&layout, &options).unwrap(), 2, 3);
            }
        }
    }
}

#[test]
fn a_wrong_forest_fails_the_right_check() {
    // The path 0 - 1 - 2 - 3 - 4 - 5 from 0 and 5.
    let list = EdgeList::new(6, (0..5).map(|v| [v, v + 1]).collect(), Listing::Once).unwrap();
    let check = |sources: &[u32], parents: &[u32; 6]| match validate_forest(&list, false, sources, parents) {
        Err(ValidateError::Violation(fault)) => Some(fault.check()),
        result => result.map(|_| None).unwrap(),
    };
    let right = [0, 0, 1, 4, 5, 5];
    assert_eq!(check(&[0, 5], &right), None);
    assert_eq!(check(&[5, 0, 5], &right), None);
    // A source that is not its own parent; a vertex that is, but is no source; a source left out of the call.
    assert_eq!(check(&[0, 5, 1], &right), Some(Check::Tree));
    assert_eq!(check(&[0, 5], &[0, 0, 2, 4, 5, 5]), Some(Check::Tree));
    assert_eq!(check(&[0], &right), Some(Check::Tree));
    assert_eq!(check(&[0, 5], &[0, 0, 1, 2, 3, 5]), Some(Check::EdgeLevels));
    assert_eq!(check(&[0, 5], &[0, 0, NONE, 4, 5, 5]), Some(Check::Component));
    assert_eq!(check(&[0, 5], &[0, 0, 1, 1, 5, 5]), Some(Check::TreeEdges));
    assert_eq!(check(&[], &[NONE; 6]), None);
    assert_eq!(check(&[], &right), Some(Check::Tree));
    assert!(matches!(validate_forest(&list, false, &[0, 6], &right), Err(ValidateError::RootOutOfRange { root: 6, vertices: 6 })));
}

#[test]
fn a_search_from_sources_can_be_stopped_and_refused() {
    let case = Case::new(6, vec![[0, 1], [1, 2], [3, 4]], false, vec![0, 3, 5]);
    let layout = case.layout(Order::Degree, false);
    let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
    search.stopper().stop();
    assert!(matches!(search.run(&case.sources), Err(SearchError::Stopped(0))));
    assert!(matches!(search.run(&[5]), Err(SearchError::Stopped(5))));
    search.stopper().reset();
    search.set_deadline(Some(Instant::now()));
    assert!(matches!(search.run(&case.sources), Err(SearchError::Stopped(0))));
    search.set_deadline(None);
    assert!(matches!(search.run(&[0, 6]), Err(SearchError::RootOutOfRange { root: 6, vertices: 6 })));
    case.compare(&mut search, 1, 4);
}

/// Large levels, which threads share, and a source list with every vertex several times.
#[test]
fn large_sets_are_searched() {
    let n = 20_000;
    for (kind, directed) in [(0, false), (1, false), (1, true)] {
        let edges = random(n, 60_000, 7, kind);
        let sources: Vec<u32> = (0..200_000u64).map(|i| (i * 7919 % n) as u32).collect();
        for order in [Order::Original, Order::Degree, Order::Bfs] {
            let layout = layout(n as usize, &edges, directed, order, false);
            let mut search = Search::new(&layout, &SearchOptions { threads: 3, ..SearchOptions::default() }).unwrap();
            let outcome = search.run(&sources).unwrap();
            assert_eq!((outcome.reached, outcome.levels), (n, 1));
            assert!(search.parents().iter().enumerate().all(|(v, &parent)| parent == v as u32));
            let few: Vec<u32> = sources[..40].to_vec();
            Case::new(n as usize, edges.clone(), directed, few).compare(&mut search, 2, 11);
        }
    }
}

/// Policies with a device, in turn, on each implementation.
#[test]
fn devices_search_from_sets_of_sources() {
    for device in &devices("devices_search_from_sets_of_sources", Limits::default()).all {
        let slow = is_slow(device) || is_rusticl(device.info());
        let (n, sets) = if slow { (150u64, 2) } else { (600, 5) };
        let setup = GpuSetup { device: Arc::clone(device), way: SharingMode::AllocHostPtr, options: GpuOptions::default() };
        let options = SearchOptions { threads: 2, devices: vec![setup], every_planner: true, ..SearchOptions::default() };
        let (edges, odd) = ring_and_star();
        let ring = layout(11, &edges, false, Order::Degree, false);
        let mut search = Search::new(&ring, &options).unwrap();
        for (number, (policy, runs)) in policies_in_turn(&options.devices).into_iter().enumerate() {
            search.set_planner(policy.on(runs)).unwrap();
            for sources in odd.iter().skip((number + turn_of_commit()) % 2).step_by(if all_combinations() { 1 } else { 2 }) {
                Case::new(11, edges.clone(), false, sources.clone()).compare(&mut search, 2, 3);
            }
        }
        for (kind, directed) in [(2, false), (1, false), (1, true)] {
            let edges = random(n, 2 * n as usize, 3, kind);
            for order in [Order::Original, Order::Bfs] {
                let layout = layout(n as usize, &edges, directed, order, false);
                let mut search = Search::new(&layout, &options).unwrap();
                for (number, (policy, runs)) in policies_in_turn(&options.devices).into_iter().enumerate() {
                    if slow && !all_combinations() && (number + turn_of_commit()) % 5 != 0 {
                        continue;
                    }
                    search.set_planner(policy.on(runs)).unwrap();
                    for set in (0..sets).filter(|set| all_combinations() || slow || (number + turn_of_commit()) as u64 % 2 == set % 2) {
                        let sources = (0..set * set).map(|i| ((i * 131 + 7 * set + 3 * number as u64) % n) as u32).collect();
                        Case::new(n as usize, edges.clone(), directed, sources).compare(&mut search, 2, (5 * set) as u32);
                    }
                }
            }
        }
    }
}
