//! Connected components against union-find.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::{collections::HashMap, time::Instant};

use proptest::prelude::*;
use socbfs::{
    graph::{BuildOptions, EdgeList, Layout, Listing, NONE, Order},
    search::{Search, SearchError, SearchOptions},
};
use socbfs_algo::Components;

use crate::searches::edges as random;

/// The components, numbered in the order of their first vertices.
fn components(n: usize, edges: &[[u32; 2]]) -> Vec<u32> {
    let mut above: Vec<usize> = (0..n).collect();
    fn root(above: &mut [usize], mut v: usize) -> usize {
        while above[v] != v {
            above[v] = above[above[v]];
            v = above[v];
        }
        v
    }
    for &[u, v] in edges {
        let (u, v) = (root(&mut above, u as usize), root(&mut above, v as usize));
        above[u] = v;
    }
    let mut numbers = HashMap::new();
    (0..n)
        .map(|v| {
            let next = numbers.len() as u32;
            *numbers.entry(root(&mut above, v)).or_insert(next)
        })
        .collect()
}

/// Compares in all layouts, large graphs in those that may leave leaves out, with these numbers of threads.
fn compare(n: usize, edges: Vec<[u32; 2]>, threads: &[usize]) {
    let wanted = components(n, &edges);
    let count = wanted.iter().max().map_or(0, |last| *last as usize + 1);
    let edges = EdgeList::new(n, edges, Listing::Once).unwrap();
    let layouts = [(Order::Original, false), (Order::Degree, false), (Order::Bfs, false), (Order::Degree, true), (Order::Bfs, true)];
    let tried = if n < 1000 { &layouts[..] } else { &layouts[..3] };
    for directed in [false, true] {
        for &(order, keep_leaves) in tried {
            let layout = Layout::build(&edges, &BuildOptions { directed, order, keep_leaves, ..BuildOptions::default() }).unwrap();
            for &threads in threads {
                let search = Search::new(&layout, &SearchOptions { threads, ..SearchOptions::default() }).unwrap();
                let mut components = Components::default();
                // Twice, since the second call finds what the first has left.
                for _ in 0..2 {
                    let mut labels = vec![7; n];
                    assert_eq!(components.find(&search, &mut labels).unwrap(), count, "{order:?} directed {directed} {threads} threads");
                    assert!(labels == wanted, "{order:?} directed {directed} {threads} threads");
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn components_of_small_graphs_are_right(n in 1_usize..300, per_vertex in 0_usize..40, seed: u64, kind in 0_u8..3) {
        compare(n, random(n as u64, n * per_vertex / 20, seed, kind), &[1]);
    }
}

/// Large enough for several threads, for pairs that are joined in rounds, and for pairs that are not.
#[test]
fn components_of_large_graphs_are_right() {
    for (seed, halves) in [(1, 1), (2, 3), (3, 8)] {
        for kind in [0, 1] {
            let n = 40_000 + 1_000 * seed as usize;
            compare(n, random(n as u64, n * halves / 2, seed, kind), &[1, 3]);
        }
    }
    let n = 70_000_u32;
    // A path in order, one whose vertices are in no order, and lists longer than a row between them.
    let place = |v: u32| (u64::from(v) * 48_271 % u64::from(n)) as u32;
    compare(n as usize, (1..n).map(|v| [v - 1, v]).collect(), &[1, 2]);
    compare(n as usize, (1..n).filter(|v| v % 1000 != 0).map(|v| [place(v - 1), place(v)]).collect(), &[1, 2]);
    let stars = (0..n / 20).flat_map(|star| (1..20).map(move |leaf| [20 * star + 7, 20 * star + (7 + leaf) % 20]));
    compare(n as usize, stars.chain((1..n / 40).map(|star| [20 * star, 20 * star - 20])).map(|ends| ends.map(place)).collect(), &[1, 2]);
    // Two components of the same size, and equal ones of a few vertices.
    compare(n as usize, random(35_000, 100_000, 6, 0).into_iter().flat_map(|[u, v]| [[u, v], [u + 35_000, v + 35_000]]).collect(), &[1, 2]);
    compare(n as usize, (0..n).filter(|v| v % 7 != 6).map(|v| [place(v), place(v + 1)]).collect(), &[1, 2]);
}

#[test]
fn components_of_odd_graphs_are_right() {
    compare(0, vec![], &[1, 2]);
    compare(1, vec![], &[1]);
    compare(1, vec![[0, 0]], &[1]);
    compare(100_000, vec![], &[2]);
    compare(5, vec![[3, 1]], &[1]);
    // Pairs of leaves beside vertices without an edge, and beside a component that has searched vertices.
    compare(9, vec![[1, 8], [7, 2], [3, 6]], &[1]);
    compare(9, vec![[1, 8], [0, 2], [2, 3], [3, 0], [3, 5]], &[1]);
}

#[test]
fn components_refuse_wrong_lengths_stop_and_leave_the_tree() {
    let edges = EdgeList::new(100, (1..90).map(|v| [v - 1, v]).collect(), Listing::Once).unwrap();
    let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
    let mut search = Search::new(&layout, &SearchOptions::default()).unwrap();
    let mut components = Components::default();
    let wrong = SearchError::Length { what: "labels", given: 99, wanted: 100 }.to_string();
    assert_eq!(components.find(&search, &mut [0; 99]).unwrap_err().to_string(), wrong);
    search.run(3).unwrap();
    let mut labels = [0; 100];
    assert_eq!(components.find(&search, &mut labels).unwrap(), 11);
    assert_eq!((search.parents()[0], search.parents()[89], search.parents()[90]), (1, 88, NONE));
    search.set_deadline(Some(Instant::now()));
    let stopped = components.find(&search, &mut labels).unwrap_err();
    assert!(matches!(stopped, SearchError::Stopped(NONE)));
    assert_eq!(stopped.to_string(), "the search was stopped before it finished");
    search.set_deadline(None);
    search.stopper().stop();
    assert!(matches!(components.find(&search, &mut labels), Err(SearchError::Stopped(NONE))));
    search.stopper().reset();
    assert_eq!(components.find(&search, &mut labels).unwrap(), 11);
}
