//! Constants that control how the CPU engine divides and samples its work, with the measurements behind them.

use std::{ops::Range, time::Duration};

/// The amounts of work from which CPU threads share a level, and the size of a piece. The defaults were measured on two cores with 1 MiB
/// of cache each; [`for_cache`](Self::for_cache) has those of other caches. (On two cores with 512 KiB each, searches of graphs of 2^17
/// vertices take 0.98 to 1.08 times as long if a value is 1/64 to 32 times of the default.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParallelThresholds {
    /// Threads share top-down levels with at least this many arcs. With fewer, waking the other threads and waiting for them costs more
    /// than they save.
    pub arcs: u64,
    /// As `arcs`, for frontiers with hubs, which have long lists. The caller has written all or half of the parents last, and another
    /// thread has to fetch these cache lines from its cache. (Measured on two cores: two threads take two to four times as long as one for
    /// 15 Ki to 500 Ki arcs, and as long as one for some millions.)
    pub hub_arcs: u64,
    /// As `arcs`, for graphs with rows of neighbours: one thread needs a few nanoseconds per vertex, and two would move the cache lines of
    /// a small frontier between them.
    pub row_arcs: u64,
    /// Vertices that a thread takes at a time in a bottom-up level, a multiple of 64.
    pub piece: usize,
}

impl Default for ParallelThresholds {
    fn default() -> Self {
        Self { arcs: 16 << 10, hub_arcs: 2 << 20, row_arcs: 256 << 10, piece: 4 << 10 }
    }
}

impl ParallelThresholds {
    /// The defaults for a second-level cache of `bytes` bytes (`None`: unknown); `shared`: the cores of the team share it. For frontiers of
    /// up to two arcs per byte of a core's own cache, the parents that the arcs lead to should stay in that cache. Cores that share the
    /// cache need not fetch the parents from each other.
    pub fn for_cache(bytes: Option<u64>, shared: bool) -> Self {
        let usual = Self::default();
        let hub_arcs = match bytes {
            _ if shared => MEDIUM_ARCS,
            Some(bytes) => (2 * bytes).clamp(MEDIUM_ARCS, usual.hub_arcs),
            None => usual.hub_arcs,
        };
        Self { hub_arcs, ..usual }
    }

    /// As `arcs`, for frontiers whose lists are not short on average ([`MEDIUM_LISTS`]): the caller needs 1 to 2 ns per arc, and threads
    /// take from each other the cache lines of vertices that are on several lists.
    pub(super) fn medium_arcs(&self) -> u64 {
        MEDIUM_ARCS.min(self.hub_arcs).max(self.arcs)
    }

    /// Words of the bitmap that a thread takes at a time.
    pub(super) fn words(&self) -> usize {
        (self.piece / 64).max(1)
    }
}

/// See [`ParallelThresholds::medium_arcs`].
const MEDIUM_ARCS: u64 = 64 << 10;
/// Words of the bitmap that a thread takes at a time in work other than bottom-up levels.
pub(super) const WORDS: usize = 64;
/// The least and the largest number of original vertices that a thread maps back at a time. Between these limits, a thread takes a quarter
/// of its share at a time. Fewer pieces leave threads idle. More pieces move the output's cache lines between cores (two threads on
/// Kronecker 20: 64 Ki take a fifth less time than 16 Ki).
pub(super) const MAPPED: Range<usize> = 16 << 10..64 << 10;
/// For fewer original vertices than this, parents are mapped back into the cache, where they are read next. For more, they are written past
/// the caches if the processor can do that (x86-64). Measured on Zen 4 with AVX-512, one thread, against a gather and plain stores:
/// Kronecker 20 takes 0.36 ms instead of 0.82 at best, 0.79 instead of 1.29 in the median; Kronecker 22 takes 2.9 instead of 4.9, 4.0
/// instead of 6.1.
#[cfg(any(target_arch = "x86_64", test))]
pub(super) const PAST_CACHES: usize = 256 << 10;
/// Words of the bitmap that a thread takes at a time when it writes the parents of left-out leaves.
pub(super) const HOST_WORDS: usize = 4 << 10;
/// With fewer words than this, the caller alone writes the parents of left-out leaves.
pub(super) const SHARED_HOST_WORDS: usize = 32 << 10;
/// Parents that a thread resets at a time, at most.
pub(super) const RESET: usize = 16 << 10;
/// While a helper sleeps, threads share resets from this many parents on, which also wakes it for the levels that follow. While none
/// sleeps, they share them from an eighth of it on: each of two threads then resets much of what it wrote in the last search.
pub(super) const SHARED_RESET: usize = 64 << 10;
/// As `SHARED_RESET`, for graphs with rows of neighbours: the caller searches them almost alone, and then has the parents in its cache.
pub(super) const SHARED_ROW_RESET: usize = 256 << 10;
/// The arcs of frontiers with up to this many vertices are counted exactly.
pub(super) const COUNTED: usize = 96;
/// Words of the bitmap with the vertices of highest degree, whose arcs are always counted and never sampled.
pub(super) const HUB_WORDS: usize = 16;
/// After a bottom-up level, the words whose vertices differ in degree are checked for new vertices. The check shows whether mean degrees
/// are exact for the vertices found. If there are more such words than this, none is checked.
pub(super) const MIXED_WORDS: usize = 32;
/// Vertices sampled for an estimate of a frontier's edges.
pub(super) const DEGREES_SAMPLED: usize = 64;
/// One in this many vertices of a long queue is sampled. In a graph of pages of the web, a few vertices have most arcs of a level: from
/// 64 vertices, the estimate of a level was 4.4 times the truth.
pub(super) const MOST_STEP: usize = 32;
/// Of a queue, hardly more vertices than this are sampled, since the other threads wait.
pub(super) const MOST_SAMPLED: usize = 4096;
/// Unvisited vertices sampled for an estimate of a bottom-up level, at most; half of them are enough.
pub(super) const VERTICES_SAMPLED: usize = 64;
/// The most places that are tried to find [`VERTICES_SAMPLED`] unvisited vertices.
pub(super) const PLACES_TRIED: usize = 128;
/// The most neighbours that are tested of each sampled vertex.
pub(super) const PROBES: usize = 64;
/// A sample ends with the vertex with which this many neighbours have been tested, which makes the mean a little higher. Without this, and
/// with twice the places, samples of facebook_combined took 34,000 instructions, a tenth of the search. (With half of [`VERTICES_SAMPLED`],
/// other graphs take up to 1.06 of the time.)
pub(super) const PROBES_SAMPLED: usize = 256;
/// If several threads share a frontier of up to this many vertices, its pieces are cut by arcs, so that several threads can share the list
/// of a hub. In a larger frontier one list is a small part of the work.
pub(super) const CUT_VERTICES: usize = 1 << 10;
/// The least number of arcs in a piece of a frontier that is cut by arcs.
pub(super) const CUT_ARCS: usize = 4 << 10;
/// In a graph with fewer vertices than this, the parents stay in a near cache (512 KiB), although arcs reach them in no order. 16-bit notes
/// then save nothing.
pub(super) const WIDE_VERTICES: usize = 128 << 10;
/// A level stores places in the frontier (see `wide`) only if at least one arc per this many vertices leaves the frontier, since the level
/// goes through all vertices at its end.
pub(super) const WIDE_ARCS: u64 = 2;
/// Words of the bitmap that a thread takes at a time when it turns places in the frontier into parents (see `wide`).
pub(super) const WIDE_WORDS: usize = 64;
/// Mean degree from which the lists of a frontier are not short.
pub(super) const MEDIUM_LISTS: u64 = 16;
/// Mean degree from which a frontier has hubs.
pub(super) const HUB_LISTS: u64 = 48;
/// The caller alone runs mappings of fewer words than this, conversions of a few times as many and, while a helper sleeps, bottom-up
/// levels.
pub(super) const SHARED_WORDS: usize = 256;
/// The caller alone runs bottom-up levels with fewer unvisited vertices than this, while a helper sleeps.
pub(super) const SHARED_UNVISITED: u64 = 8 << 10;
/// As `SHARED_UNVISITED`, while no helper sleeps. A vertex costs 4 to 12 ns, and a meeting of two threads that spin about 300 ns.
pub(super) const SHARED_UNVISITED_AWAKE: u64 = 1500;
/// The helpers are woken at the beginning of a search that begins so soon after the one before. Then they are there for its small levels,
/// and go on spinning from search to search: two threads take 0.7 to 0.9 of the time before on graphs of 4,000 to 40,000 vertices. A
/// search now and then does not wake them, since that may take as long as all of it.
pub(super) const SOON: Duration = Duration::from_micros(200);
/// From this level on, one call runs several small levels, because a graph this deep has thousands of them.
pub(super) const DEEP: u32 = 16;

/// A call for several small levels ends when it has found this many vertices. That takes some 10 ms, after which the search may be stopped.
pub(super) const MOST_AT_ONCE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hubs_are_shared_sooner_where_caches_are_small_or_shared() {
        let hubs = |bytes, shared| ParallelThresholds::for_cache(bytes, shared).hub_arcs;
        // The machine on which the default was measured, a Cortex-A76 with 512 KiB, and four Cortex-A53 that share 512 KiB.
        assert_eq!(hubs(Some(1 << 20), false), ParallelThresholds::default().hub_arcs);
        assert_eq!(hubs(Some(512 << 10), false), 1 << 20);
        assert_eq!(hubs(Some(512 << 10), true), 64 << 10);
        assert_eq!(hubs(None, false), ParallelThresholds::default().hub_arcs);
        assert_eq!(hubs(Some(1), false), 64 << 10);
    }

    #[test]
    fn the_threshold_for_medium_lists_lies_between_the_others() {
        let with = |arcs, hub_arcs| ParallelThresholds { arcs, hub_arcs, ..ParallelThresholds::default() }.medium_arcs();
        assert_eq!(with(8 << 10, 2 << 20), 64 << 10);
        assert_eq!(with(8 << 10, 16 << 10), 16 << 10);
        assert_eq!(with(1 << 20, 2 << 20), 1 << 20);
        assert_eq!(with(1 << 20, 1), 1 << 20);
    }
}
