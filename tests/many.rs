//! Many roots in one pass, searches that end early, and concurrent searches over one layout, against the serial reference.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{
    borrow::Borrow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use proptest::prelude::*;
use socbfs::{
    Output, Run,
    graph::{BuildOptions, EdgeList, Layout, Listing, NONE, Order},
    search::{End, Search, SearchError, SearchOptions},
};
use socbfs_algo::{
    ManySearch,
    many::{ROOTS, Visitor},
};

use crate::{
    reference::Reference,
    searches::{all_combinations, edges as random},
};

/// Checks the levels, in both widths, and the parents of a search from many roots.
fn check_many(n: usize, edges: &[[u32; 2]], directed: bool, roots: &[u32]) {
    let reference = Reference::new(n, edges, directed, roots);
    let list = EdgeList::new(n, edges.to_vec(), Listing::Unknown).unwrap();
    for order in [Order::Original, Order::Degree, Order::Bfs] {
        let layout = Layout::build(&list, &BuildOptions { directed, order, ..BuildOptions::default() }).unwrap();
        for threads in [1, 3] {
            let mut search = ManySearch::new(&layout, threads, &[]).unwrap();
            let (mut bytes, mut levels, mut parents) = (vec![7u8; n * roots.len()], vec![7; n * roots.len()], vec![7; n * roots.len()]);
            let outcome = search.trees_into(roots, &mut levels, &mut parents).unwrap();
            let wanted: Vec<&[u32]> = roots.iter().map(|&root| reference.levels(root)).collect();
            for v in 0..n {
                for i in 0..roots.len() {
                    assert_eq!(levels[v * roots.len() + i], wanted[i][v], "vertex {v} root {} {order:?} {threads} threads", roots[i]);
                }
            }
            for (i, &root) in roots.iter().enumerate() {
                let tree: Vec<u32> = (0..n).map(|v| parents[v * roots.len() + i]).collect();
                reference.compare_tree(root, &tree);
                assert!(tree.iter().zip(reference.levels(root)).all(|(&parent, &level)| (parent == NONE) == (level == NONE)));
            }
            assert_eq!(outcome.reached, levels.iter().filter(|&&level| level != NONE).count() as u64);
            let deepest = levels.iter().filter(|&&level| level != NONE).max().map_or(0, |&level| level);
            assert_eq!(outcome.levels, if roots.is_empty() { 0 } else { deepest + 1 });
            match search.levels_into(roots, &mut bytes) {
                Ok(again) => {
                    assert_eq!((again.reached, again.levels), (outcome.reached, outcome.levels));
                    assert!(bytes.iter().zip(&levels).all(|(&byte, &level)| if level == NONE {
                        byte == 255
                    } else {
                        u32::from(byte) == level
                    }));
                }
                Err(error) => assert!(deepest > 254 && matches!(error, SearchError::TooDeep { deepest: 254 }), "{error}"),
            }
        }
    }
}

/// Checks depth limits up to the depth of the whole tree, and some targets.
fn check_until(n: usize, edges: &[[u32; 2]], directed: bool, root: u32, targets: &[u32], options: &SearchOptions) {
    for order in [Order::Original, Order::Degree, Order::Bfs] {
        check_until_by(order, n, edges, directed, root, targets, options);
    }
}

fn check_until_by(order: Order, n: usize, edges: &[[u32; 2]], directed: bool, root: u32, targets: &[u32], options: &SearchOptions) {
    let reference = Reference::new(n, edges, directed, &[root]);
    let list = EdgeList::new(n, edges.to_vec(), Listing::Unknown).unwrap();
    let layout = Layout::build(&list, &BuildOptions { directed, order, ..Default::default() }).unwrap();
    let mut search = Search::new(&layout, options).unwrap();
    let whole = search.run(root).unwrap();
    let level = reference.levels(root);
    // The last level may have only leaves, which are not searched: then a search up to it may know that there are no more levels.
    let leaves_are_last =
        (0..).zip(level).filter(|&(_, &level)| level.wrapping_add(1) == whole.levels).all(|(v, _)| layout.to_internal(v) == NONE);
    let check = |search: &mut Search<'_>, until: (Option<u32>, Option<u32>), cut: u32, end: End| {
        let (depth, target) = until;
        let partial = search.run(Run { depth, target, ..root.into() }).unwrap();
        let end = if end == End::Depth && cut + 1 == whole.levels && leaves_are_last { partial.end } else { end };
        assert_eq!(partial.end, end, "{until:?}");
        let tree = search.result(root);
        let wanted: Vec<u32> = level.iter().map(|&level| if level <= cut { level } else { NONE }).collect();
        assert_eq!(tree.level, wanted, "{until:?}");
        assert_eq!(partial.reached, level.iter().filter(|&&level| level <= cut).count() as u64);
        assert_eq!(partial.levels, whole.levels.min(cut.saturating_add(1)), "{until:?}");
        // The same with arrays of the caller for parents, levels, both, or neither.
        for (with_parents, with_levels) in [(true, true), (false, true), (true, false), (false, false)] {
            let (mut parents, mut levels) = (vec![7; n], vec![7; n]);
            let output = Output {
                parents: with_parents.then_some(&mut parents[..]),
                levels: with_levels.then_some(&mut levels[..]),
                ..Output::default()
            };
            let is_counted = with_parents || with_levels;
            let again = search.run(Run { depth, target, output: Some(output), ..root.into() }).unwrap();
            assert_eq!((again.end, again.levels), (partial.end, partial.levels), "{until:?}");
            assert_eq!((again.reached, again.edges), if is_counted { (partial.reached, partial.edges) } else { (0, 0) }, "{until:?}");
            assert!(search.parents().is_empty());
            let counts = (partial.reached, partial.edges);
            if with_levels {
                assert_eq!(levels, wanted, "{until:?}");
                assert_eq!(search.counts(&levels), counts);
            }
            if with_parents {
                let is_child = |v: usize| wanted[parents[v] as usize] + 1 == wanted[v] || v == root as usize && parents[v] == root;
                assert!((0..n).all(|v| if wanted[v] == NONE { parents[v] == NONE } else { is_child(v) }), "{until:?}");
                assert_eq!(search.counts(&parents), counts);
            }
        }
    };
    for depth in (0..whole.levels + 2).step_by(1 + whole.levels as usize / 9) {
        // A search that stops at the deepest level does not know yet that it is the last, except from a root without an edge.
        let end = if depth >= whole.levels || whole.levels == 1 && layout.to_internal(root) == NONE { End::Complete } else { End::Depth };
        check(&mut search, (Some(depth), None), depth, end);
    }
    for &target in targets {
        let far = level[target as usize];
        let end = if far == NONE { End::Complete } else { End::Target };
        let cut = if far == NONE { NONE - 1 } else { far };
        check(&mut search, (None, Some(target)), cut, end);
        if far != NONE && far > 1 {
            check(&mut search, (Some(far - 1), Some(target)), far - 1, End::Depth);
        }
        // The whole tree is right again afterwards.
        assert_eq!(search.run(root).unwrap().reached, whole.reached);
        assert_eq!(search.result(root).level, level);
    }
    check(&mut search, (None, None), NONE - 1, End::Complete);
    let error = search.run(Run { target: Some(n as u32), ..root.into() }).unwrap_err();
    assert!(matches!(error, SearchError::TargetOutOfRange { .. }), "{error}");
    // A refused call does not change the last tree.
    search.run(root).unwrap();
    let (mut short, mut right) = (vec![0; n - 1], vec![0; n]);
    let output = Output { parents: Some(&mut right), levels: Some(&mut short), ..Output::default() };
    let error = search.run(Run { output: Some(output), ..root.into() }).unwrap_err();
    assert!(matches!(error, SearchError::Length { what: "levels", .. }), "{error}");
    let error = search.run(Run { output: Some(Output::default()), ..(n as u32).into() }).unwrap_err();
    assert!(matches!(error, SearchError::RootOutOfRange { .. }), "{error}");
    assert_eq!(search.result(root).level, level);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn many_roots_on_random_graphs(n in 1u64..300, m in 0usize..900, kind in 0u8..3, directed: bool, seed: u64, count in 0usize..400) {
        let roots: Vec<u32> = (0..count as u64).map(|i| ((seed >> 7).wrapping_add(i * i) % n) as u32).collect();
        check_many(n as usize, &random(n, m, seed, kind), directed, &roots);
    }

    #[test]
    fn early_ends_on_random_graphs(n in 1u64..300, m in 0usize..900, kind in 0u8..3, directed: bool, seed: u64, threads in 1usize..3) {
        let (root, options) = ((seed % n) as u32, SearchOptions { threads, ..SearchOptions::default() });
        let targets = [root, 0, (seed / 7 % n) as u32];
        check_until(n as usize, &random(n, m, seed, kind), directed, root, &targets, &options);
    }
}

#[test]
fn odd_graphs() {
    let path: Vec<[u32; 2]> = (1..3000).map(|v| [v - 1, v]).collect();
    let star: Vec<[u32; 2]> = (1..5000).map(|v| [0, v]).collect();
    let grid: Vec<[u32; 2]> =
        (0..4900).flat_map(|v| [(v % 70 + 1 < 70).then_some([v, v + 1]), (v / 70 + 1 < 70).then_some([v, v + 70])]).flatten().collect();
    let ends: Vec<u32> = (0..70).map(|i| i * 41).collect();
    for directed in [false, true] {
        check_many(1, &[], directed, &[0, 0]);
        check_many(3, &[[0, 0], [1, 1]], directed, &[2, 0]);
        check_many(70, &[[3, 4], [4, 3], [3, 4]], directed, &[3, 5, 4]);
        check_many(5000, &star, directed, &ends);
        check_many(3000, &path, directed, &[0, 1500, 2999]);
        check_many(4900, &grid, directed, &ends);
        check_until(1, &[], directed, 0, &[0], &SearchOptions::default());
        check_until(70, &[[3, 4], [4, 3], [3, 4]], directed, 5, &[5, 3], &SearchOptions::default());
        check_until(3000, &path, directed, 1000, &[0, 1000, 2999, 1300], &SearchOptions::default());
        check_until(4900, &grid, directed, 70, &[0, 4899], &SearchOptions { threads: 3, ..SearchOptions::default() });
    }
}

#[test]
fn larger_graphs_share_their_levels() {
    for (number, (skewed, directed)) in [(1, false), (0, false), (1, true)].into_iter().enumerate() {
        let n = if number == 0 || all_combinations() { 20_000 } else { 5_000 };
        // A pass of 256 roots, and one of the others.
        let roots: Vec<u32> = (0..263).map(|i| i * (n / 265)).collect();
        let edges = random(u64::from(n), 10 * n as usize, 7, skewed);
        check_many(n as usize, &edges, directed, &roots);
        check_until(n as usize, &edges, directed, 290, &[11, 0], &SearchOptions { threads: 3, ..SearchOptions::default() });
        check_until(n as usize, &edges, directed, 0, &[0, n - 1, 5], &SearchOptions { threads: 2, ..SearchOptions::default() });
    }
}

/// Accepts no level deeper than this.
struct Shallow(u32);

impl Visitor for Shallow {
    fn reached(&self, _: u32, _: u32, _: u64) {}

    fn deepest(&self) -> u32 {
        self.0
    }
}

/// Also if nothing is searched: in the order of degrees, not even two vertices that have only each other.
#[test]
fn passes_end_at_the_deepest_level_that_is_accepted() {
    // A pair, a star, and a vertex without an edge.
    let list = EdgeList::new(7, vec![[0, 1], [2, 3], [2, 4], [2, 5]], Listing::Once).unwrap();
    for order in [Order::Original, Order::Degree, Order::Bfs] {
        let layout = Layout::build(&list, &BuildOptions { order, ..BuildOptions::default() }).unwrap();
        let mut search = ManySearch::new(&layout, 1, &[]).unwrap();
        for (roots, levels) in [(&[][..], 0), (&[6], 1), (&[0], 2), (&[6, 1], 2), (&[2], 2), (&[2, 3], 3)] {
            for deepest in 0..4 {
                let outcome = search.run(roots, &Shallow(deepest));
                if levels > deepest + 1 {
                    assert!(matches!(outcome, Err(SearchError::TooDeep { deepest: found }) if found == deepest), "{roots:?} {outcome:?}");
                } else {
                    assert_eq!(outcome.unwrap().levels, levels, "{roots:?} {order:?}");
                }
            }
        }
    }
}

/// Each search of a deep graph reports each vertex once, at its level and with its parent.
#[test]
fn visitors_hear_of_deep_graphs() {
    struct Heard(Mutex<Vec<(usize, u32, u32)>>, Mutex<Vec<(usize, u32, u32)>>);
    impl Visitor for Heard {
        const PARENTS: bool = true;
        fn reached(&self, vertex: u32, level: u32, searches: u64) {
            assert_eq!(searches.count_ones(), 1);
            self.0.lock().unwrap().push((searches.trailing_zeros() as usize, vertex, level));
        }
        fn parent(&self, vertex: u32, parent: u32, searches: u64) {
            self.1.lock().unwrap().push((searches.trailing_zeros() as usize, vertex, parent));
        }
    }
    let list = EdgeList::new(201, (1..200).map(|v| [v - 1, v]).collect(), Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions::default()).unwrap();
    let roots = [0, 150, 199, 200, 7];
    for threads in [1, 2] {
        let mut search = ManySearch::new(&layout, threads, &[]).unwrap();
        let heard = Heard(Mutex::default(), Mutex::default());
        let outcome = search.run(&roots, &heard).unwrap();
        assert_eq!((outcome.reached, outcome.levels), (4 * 200 + 1, 200));
        let [mut levels, mut parents] = [heard.0, heard.1].map(|heard| heard.into_inner().unwrap());
        levels.sort_unstable();
        parents.sort_unstable();
        let wanted = roots.iter().enumerate().flat_map(|(search, &root)| {
            let reached = if root == 200 { 200..201 } else { 0..200 };
            reached.map(move |v: u32| (search, v, v.abs_diff(root), if v < root { v + 1 } else { v - u32::from(v > root) }))
        });
        assert!(wanted.clone().map(|(search, v, level, _)| (search, v, level)).eq(levels), "{threads} threads");
        assert!(wanted.map(|(search, v, _, parent)| (search, v, parent)).eq(parents), "{threads} threads");
        assert!(matches!(search.run(&roots, &Shallow(198)), Err(SearchError::TooDeep { deepest: 198 })));
        assert_eq!(search.run(&roots, &Shallow(199)).unwrap().levels, 200);
        search.stopper().stop();
        assert!(matches!(search.run(&roots, &Shallow(199)), Err(SearchError::Stopped(0))));
    }
}

#[test]
fn arguments_of_many_searches_are_checked() {
    let layout = Arc::new(Layout::build(&EdgeList::new(3, vec![[0, 1]], Listing::Once).unwrap(), &BuildOptions::default()).unwrap());
    let mut search = ManySearch::new(Arc::clone(&layout), 2, &[]).unwrap();
    let ignore = |_: u32, _: u32, _: u64| ();
    assert!(matches!(search.run(&[0, 3], &ignore), Err(SearchError::RootOutOfRange { root: 3, vertices: 3 })));
    assert!(matches!(search.run(&[0; ROOTS + 1], &ignore), Err(SearchError::Length { .. })));
    assert!(matches!(search.levels_into(&[0, 1], &mut [0u8; 5]), Err(SearchError::Length { given: 5, wanted: 6, .. })));
    assert!(matches!(search.trees_into(&[0], &mut [0u32; 3], &mut [0; 2]), Err(SearchError::Length { .. })));
    let stopper = search.stopper();
    stopper.stop();
    assert!(matches!(search.run(&[0], &ignore), Err(SearchError::Stopped(0))));
    // Vertex 2 has no edge, so there is nothing to search.
    assert!(matches!(search.run(&[2], &ignore), Err(SearchError::Stopped(2))));
    stopper.reset();
    search.set_deadline(Some(Instant::now()));
    assert!(matches!(search.run(&[0], &ignore), Err(SearchError::Stopped(0))));
    search.set_deadline(None);
    let heard = Mutex::new(Vec::new());
    let outcome = search.run(&[0, 1, 2], &|v: u32, level: u32, searches: u64| heard.lock().unwrap().push((level, v, searches))).unwrap();
    let mut heard = heard.into_inner().unwrap();
    heard.sort_unstable();
    assert_eq!(heard, [(0, 0, 1), (0, 1, 2), (0, 2, 4), (1, 0, 2), (1, 1, 1)]);
    assert_eq!((outcome.reached, outcome.levels), (5, 2));
}

#[test]
fn several_threads_search_one_layout() {
    let edges = random(20_000, 100_000, 11, 1);
    let roots: Vec<u32> = (0..4).map(|i| i * 4999).collect();
    let reference = Reference::new(20_000, &edges, false, &roots);
    let layout = Layout::build(&EdgeList::new(20_000, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for &root in &roots {
            let (layout, reference) = (&layout, &reference);
            scope.spawn(move || {
                let mut search = Search::new(layout, &SearchOptions { threads: 2, ..SearchOptions::default() }).unwrap();
                for _ in 0..20 {
                    search.run(root).unwrap();
                    assert_eq!(search.result(root).level, reference.levels(root));
                }
            });
        }
    });
}

/// Safe code can lend another layout at each call.
struct Changing<'a> {
    layouts: [&'a Layout; 2],
    calls: AtomicUsize,
}

impl Borrow<Layout> for Changing<'_> {
    fn borrow(&self) -> &Layout {
        self.layouts[usize::from(self.calls.fetch_add(1, Relaxed) % 2 == 1)]
    }
}

#[test]
#[should_panic(expected = "became another one")]
fn a_layout_that_changes_between_calls_causes_a_panic() {
    let build =
        |n: usize, edges: Vec<[u32; 2]>| Layout::build(&EdgeList::new(n, edges, Listing::Once).unwrap(), &BuildOptions::default()).unwrap();
    let (small, large) = (build(3, vec![[0, 1], [1, 2], [2, 0]]), build(1 << 20, random(1 << 20, 4 << 20, 5, 1)));
    let mut search = ManySearch::new(Changing { layouts: [&small, &large], calls: AtomicUsize::new(0) }, 1, &[]).unwrap();
    let _ = search.run(&[0], &|_: u32, _: u32, _: u64| ());
}

/// A level may take seconds. Here it is that of the leaves of a star.
#[test]
fn a_pass_is_stopped_within_a_level() {
    let list = EdgeList::new(1 << 20, (1..1 << 20).map(|v| [0, v]).collect(), Listing::Once).unwrap();
    let layout = Layout::build(&list, &BuildOptions { keep_leaves: true, ..BuildOptions::default() }).unwrap();
    let mut search = ManySearch::new(&layout, 2, &[]).unwrap();
    // The visitor stops the search at the first vertex of the level of all leaves: few of them are reported after it.
    let (stopper, seen) = (search.stopper(), AtomicU64::new(0));
    let visit = |_: u32, level: u32, _: u64| {
        if level == 1 && seen.fetch_add(1, Relaxed) == 0 {
            stopper.stop();
        }
    };
    assert!(matches!(search.run(&[0], &visit), Err(SearchError::Stopped(0))));
    let seen_of = seen.load(Relaxed);
    assert!(seen_of > 0 && seen_of < 1 << 19, "{seen_of}");
    search.stopper().reset();
    assert_eq!(search.run(&[0], &|_: u32, _: u32, _: u64| ()).unwrap().reached, 1 << 20);
}
