//! Values of all ranks on one rank, for tests of the cluster and of its commands.
#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use socbfs_cluster::{Part, Ranks, Sources, in_slices};

/// Gathers the value of every vertex on rank 0.
pub fn whole(ranks: &impl Ranks, part: &Part, by_row: &[u32], sources: Sources<'_>, slice: usize) -> Vec<u32> {
    let mut all = Vec::new();
    in_slices(ranks, part, by_row, sources, slice, &mut |values| {
        assert!(values.len() <= slice);
        all.extend_from_slice(values);
        Ok(())
    })
    .unwrap();
    assert_eq!(all.len(), if ranks.rank() == 0 { part.vertices() } else { 0 });
    all
}
