//! The numbers by which the CPU engine divides and samples its work, each with its measurement.

use std::ops::Range;

/// The amounts of work from which the threads of the CPU share a level, and the size of a piece: the numbers in which machines differ most.
/// A board file sets them (table `[cpu]`), `socbfs calibrate` measures them. The defaults were measured on two cores with 1 MiB of cache
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParallelThresholds {
    /// Top-down levels with at least this many arcs are shared: waking and meeting others takes longer than fewer.
    pub arcs: u64,
    /// The same where the frontier has hubs with long lists: the caller has just reset the parents, so that they lie in its own cache, and
    /// another thread has to fetch every line from there. (Measured on two cores: with two threads twice to four times the time for 15 Ki
    /// to 500 Ki arcs, as much time at some millions.)
    pub hub_arcs: u64,
    /// The same where the graph has rows of neighbours: one thread needs a few nanoseconds a vertex, and two would move the cache lines of
    /// a small frontier between them.
    pub row_arcs: u64,
    /// Vertices that a thread takes at a time in a bottom-up level, a multiple of 64.
    pub piece: usize,
}

impl Default for ParallelThresholds {
    fn default() -> Self {
        Self { arcs: 8 << 10, hub_arcs: 2 << 20, row_arcs: 256 << 10, piece: 4 << 10 }
    }
}

impl ParallelThresholds {
    /// The defaults for a second-level cache of `bytes` bytes (`None`: unknown), which is `shared` by the cores of the team or not. Up to
    /// two arcs a byte of a core's own cache, the parents that arcs lead to should stay there; where the cores share the cache, they need
    /// not fetch them from each other.
    pub fn for_cache(bytes: Option<u64>, shared: bool) -> Self {
        let usual = Self::default();
        let hub_arcs = match bytes {
            _ if shared => MEDIUM_ARCS,
            Some(bytes) => (2 * bytes).clamp(MEDIUM_ARCS, usual.hub_arcs),
            None => usual.hub_arcs,
        };
        Self { hub_arcs, ..usual }
    }

    /// As `arcs`, where the lists of the frontier are not short on average ([`MEDIUM_LISTS`]): the caller goes through them at 1 to 2 ns
    /// an arc, and the vertices that lists share are vertices whose cache lines threads take from each other.
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
/// Words of the bitmap that a thread takes at a time of other work on it.
pub(super) const WORDS: usize = 64;
/// Original vertices that a thread maps back at a time, at least and at most; between these, a quarter of its share. Fewer pieces leave
/// threads idle, more pieces move the output's cache lines between cores (two threads on Kronecker 20: 64 Ki take a fifth less time than
/// 16 Ki).
pub(super) const MAPPED: Range<usize> = 16 << 10..64 << 10;
/// Fewer original vertices than this are mapped back into the cache, where their reader finds them; more are written past the caches,
/// where the processor can (x86-64; measured on Zen 4 with AVX-512 against a gather and plain stores, one thread on Kronecker 20: 0.36 ms
/// instead of 0.82 at best, 0.79 instead of 1.29 in the median; Kronecker 22: 2.9 instead of 4.9, 4.0 instead of 6.1).
#[cfg(any(target_arch = "x86_64", test))]
pub(super) const PAST_CACHES: usize = 256 << 10;
/// Words of the bitmap whose vertices' leaves a thread gives their parents at a time.
pub(super) const HOST_WORDS: usize = 4 << 10;
/// Fewer words of them are done by the caller alone.
pub(super) const SHARED_HOST_WORDS: usize = 32 << 10;
/// Parents that a thread resets at a time.
pub(super) const RESET: usize = 256 << 10;
/// Fewer parents than this are reset by the caller alone.
pub(super) const SHARED_RESET: usize = 64 << 10;
/// The same where the graph has rows of neighbours: the caller searches such a graph almost alone, and then has the parents in its cache.
pub(super) const SHARED_ROW_RESET: usize = 256 << 10;
/// Frontiers of up to this many vertices have their edges counted exactly.
pub(super) const COUNTED: usize = 96;
/// Words of the bitmap with the vertices of highest degree, whose arcs are always counted and never sampled.
pub(super) const HUB_WORDS: usize = 16;
/// Words of the bitmap sampled after a bottom-up level, to find out whether mean degrees hold for the vertices that it found.
pub(super) const MIXED_WORDS: usize = 32;
/// Vertices sampled for an estimate of a frontier's edges.
pub(super) const DEGREES_SAMPLED: usize = 64;
/// Unvisited vertices sampled for an estimate of a bottom-up level.
pub(super) const VERTICES_SAMPLED: usize = 64;
/// Places tried to find them.
pub(super) const PLACES_TRIED: usize = 256;
/// Neighbours tested of each, at most.
pub(super) const PROBES: usize = 64;
/// Where several threads share a frontier of up to this many vertices, its pieces are cut by arcs, so that several threads share the list
/// of a hub. In a larger frontier one list is a small part of the work.
pub(super) const CUT_VERTICES: usize = 1 << 10;
/// Arcs handed out at a time there, at least.
pub(super) const CUT_ARCS: usize = 4 << 10;
/// In a graph of fewer vertices, the parents that arcs lead to anywhere stay in a cache near by (512 KiB), and 16 bits save nothing.
pub(super) const WIDE_VERTICES: usize = 128 << 10;
/// A level notes places in the frontier (see `wide`) where at least one arc in so many vertices of the graph leads on: it goes through
/// all vertices at its end.
pub(super) const WIDE_ARCS: u64 = 2;
/// Words of the bitmap whose vertices a thread gives their parents there at a time.
pub(super) const WIDE_WORDS: usize = 64;
/// Mean degree of a frontier whose lists are not short.
pub(super) const MEDIUM_LISTS: u64 = 16;
/// Mean degree of a frontier with hubs.
pub(super) const HUB_LISTS: u64 = 48;
/// Arcs per vertex of the graph up to which threads hardly meet at a parent's cache line.
pub(super) const FEW_MEETINGS: u64 = 4;
/// If at least one arc in this many led to an unvisited vertex at the level before, the processor can't predict which arcs do now.
pub(super) const OFTEN_FOUND: u64 = 4;
/// Bottom-up levels and mapping of fewer words than this are run by the caller alone, and conversions of a few times as many.
pub(super) const SHARED_WORDS: usize = 256;
/// The same of bottom-up levels with fewer unvisited vertices than this.
pub(super) const SHARED_UNVISITED: u64 = 8 << 10;
/// From this level on, runs of small levels are one call: a graph this deep has thousands of them.
pub(super) const DEEP: u32 = 16;

/// Vertices that one call for a run of small levels finds, at most: some 10 ms, after which a search may be stopped.
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
    fn levels_of_medium_lists_lie_between_the_others() {
        let with = |arcs, hub_arcs| ParallelThresholds { arcs, hub_arcs, ..ParallelThresholds::default() }.medium_arcs();
        assert_eq!(with(8 << 10, 2 << 20), 64 << 10);
        assert_eq!(with(8 << 10, 16 << 10), 16 << 10);
        assert_eq!(with(1 << 20, 2 << 20), 1 << 20);
        assert_eq!(with(1 << 20, 1), 1 << 20);
    }
}
