//! Searches over ranks that are threads, so that one counter of allocations covers them all.

use socbfs_cluster::{ClusterSearch, Ranks};

#[path = "../../../tests/counting/mod.rs"]
mod counting;

/// Searches from `sources` on every rank, which must not allocate on any.
pub fn allocates_nothing<R: Ranks>(search: &mut ClusterSearch<'_, R>, ranks: &R, sources: &[u32], what: &str) {
    // No rank begins before every rank has read the count, and none continues before every rank has read it again.
    ranks.barrier();
    let mut good = false;
    let calls = counting::calls(|| {
        ranks.barrier();
        good = search.run_uncounted(sources).is_ok();
        ranks.barrier();
    });
    ranks.barrier();
    assert_eq!((good, calls), (true, 0), "{what}, rank {}, from {sources:?}", ranks.rank());
}
