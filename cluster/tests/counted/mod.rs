//! Searches over ranks that are threads, so that one counter of allocations covers them all.

use socbfs_cluster::{ClusterSearch, Ranks};

#[path = "../../../tests/counting/mod.rs"]
mod counting;

/// Searches from `root` on every rank, which must not allocate on any.
pub fn allocates_nothing<R: Ranks>(search: &mut ClusterSearch<'_, R>, ranks: &R, root: u32, what: &str) {
    // No rank begins before every rank has read the count, and none continues before every rank has read it again.
    ranks.barrier();
    let mut good = false;
    let calls = counting::calls(|| {
        ranks.barrier();
        good = search.run_uncounted(root).is_ok();
        ranks.barrier();
    });
    ranks.barrier();
    assert_eq!((good, calls), (true, 0), "{what}, rank {}, root {root}", ranks.rank());
}
