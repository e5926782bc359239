//! A search over several ranks does not call the allocator, on any rank (design rule 1).
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod counted;
#[path = "../../tests/implementations/mod.rs"]
mod implementations;
#[path = "../../tests/reference/mod.rs"]
mod reference;
#[path = "../../tests/searches/mod.rs"]
mod searches;

use socbfs::graph::{EdgeList, Listing, Order};
use socbfs_cluster::{ClusterOptions, ClusterSearch, Exchange, Part, ThreadRanks};

// There is no test harness, since its allocations would be counted.
fn main() {
    let mut combinations = 0;
    for (kind, edges) in searches::large() {
        let list = EdgeList::new(searches::LARGE as usize, edges, Listing::Once).unwrap();
        for order in [Order::Original, Order::Degree] {
            for size in [1, 2, 3] {
                for (exchange, threads, sorted) in [(Exchange::Found, 1, true), (Exchange::Found, 2, false), (Exchange::Pairs, 1, true)] {
                    ThreadRanks::run(size, |ranks| {
                        let part = Part::build(&list, order, ranks).unwrap();
                        let options = ClusterOptions { exchange, threads, sorted, ..ClusterOptions::default() };
                        let mut search = ClusterSearch::new(&part, ranks, &options).unwrap();
                        let what = format!("{kind} {order:?} {size} ranks {exchange:?} {threads} threads");
                        // Every fifth vertex: more than the queue of the frontier holds.
                        let many: Vec<u32> = (0..searches::LARGE).step_by(5).collect();
                        for sources in [&[0][..], &[17], &[searches::LARGE - 1], &[], &[17, 3, 17], &many] {
                            counted::allocates_nothing(&mut search, ranks, sources, &what);
                        }
                    });
                    combinations += 1;
                }
            }
        }
    }
    assert!(combinations >= 50);
    println!("a_search_over_ranks_allocates_nothing: {combinations} combinations\n1 passed, 0 failed");
}
