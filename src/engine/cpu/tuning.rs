//! The numbers by which the CPU engine divides and samples its work, each with what it was measured by.

use std::ops::Range;

/// Words of the bitmap that a thread takes at a time in a bottom-up level: 4096 vertices.
pub(super) const WORDS: usize = 64;
/// Original vertices that a thread maps back at a time, at least and at most (a quarter of its share between: fewer pieces than that
/// leave threads idle, more move the output's cache lines about; measured, two threads on Kronecker 20: a fifth less time by 64 Ki than by
/// 16 Ki).
pub(super) const MAPPED: Range<usize> = 16 << 10..64 << 10;
/// Fewer original vertices than this are mapped back into a cache near by, where their reader finds them; more are written past the caches,
/// where the processor can (x86-64; measured on Zen 4 with AVX-512 against a gather and plain stores, one thread on Kronecker 20: 0.36 ms
/// instead of 0.82 at best, 0.79 instead of 1.29 in the median; Kronecker 22: 2.9 instead of 4.9, 4.0 instead of 6.1).
#[cfg(any(target_arch = "x86_64", test))]
pub(super) const PAST_CACHES: usize = 256 << 10;
/// Words of the bitmap whose vertices' leaves a thread gives their parents at a time.
pub(super) const HOST_WORDS: usize = 4 << 10;
/// The same of fewer words are left to the caller alone.
pub(super) const SHARED_HOST_WORDS: usize = 32 << 10;
/// Parents that a thread resets at a time.
pub(super) const RESET: usize = 256 << 10;
/// Fewer parents than this are reset by the caller alone.
pub(super) const SHARED_RESET: usize = 64 << 10;
/// The same where the graph has rows of neighbours: the caller, which searches such a graph almost alone, has them in its cache then.
pub(super) const SHARED_ROW_RESET: usize = 256 << 10;
/// Frontiers of up to this many vertices have their edges counted exactly.
pub(super) const COUNTED: usize = 96;
/// Words of the bitmap that hold the vertices of highest degree, whose arcs are never left to a sample.
pub(super) const HUB_WORDS: usize = 16;
/// Words of the bitmap that are looked at after a bottom-up level to find out whether mean degrees were right for what it found.
pub(super) const MIXED_WORDS: usize = 32;
/// Vertices whose degrees are looked at where a frontier's edges are estimated.
pub(super) const DEGREES_SAMPLED: usize = 64;
/// Unvisited vertices looked at to estimate a bottom-up level.
pub(super) const VERTICES_SAMPLED: usize = 64;
/// Places tried to find them.
pub(super) const PLACES_TRIED: usize = 256;
/// Neighbours of each looked at, at most.
pub(super) const PROBES: usize = 64;
/// Top-down levels with fewer arcs than this are run by the caller alone: waking and meeting others takes longer.
pub(super) const SHARED_ARCS: u64 = 8 << 10;
/// The same where the graph has rows of neighbours: one thread needs a few nanoseconds a vertex, and two would move
/// the cache lines of a small frontier between them.
pub(super) const SHARED_ROW_ARCS: u64 = 256 << 10;
/// The same where the lists of the frontier are not short on average ([`MEDIUM_LISTS`]): the caller goes through them at 1 to 2 ns
/// an arc, and the vertices that lists share are vertices whose cache lines threads take from each other.
pub(super) const SHARED_MEDIUM_ARCS: u64 = 64 << 10;
/// The same where the frontier has hubs with long lists ([`HUB_LISTS`]): the caller has just reset the parents, so that they lie
/// in its own cache, and another thread has to fetch every line from there (measured on two cores: from twice to four times as
/// long with two threads for 15 Ki to 500 Ki arcs, equally long at some millions).
pub(super) const SHARED_HUB_ARCS: u64 = 2 << 20;
/// Frontiers of up to this many vertices are handed out by arcs where several threads share them, so that a hub's list is no single
/// thread's: in larger ones a list is one of many.
pub(super) const CUT_VERTICES: usize = 1 << 10;
/// Arcs handed out at a time there, at least.
pub(super) const CUT_ARCS: usize = 4 << 10;
/// Mean degree of a frontier whose lists are not short.
pub(super) const MEDIUM_LISTS: u64 = 16;
/// Mean degree of a frontier with hubs.
pub(super) const HUB_LISTS: u64 = 48;
/// Arcs per vertex of the graph up to which threads hardly meet at a parent's cache line.
pub(super) const FEW_MEETINGS: u64 = 4;
/// At the level before, one in so many arcs led to an unvisited vertex: then it can't be foretold which do now.
pub(super) const OFTEN_FOUND: u64 = 4;
/// Bottom-up levels and mapping of fewer words than this are run by the caller alone, and conversions of a few times as many.
pub(super) const SHARED_WORDS: usize = 256;
/// The same of bottom-up levels with fewer unvisited vertices than this.
pub(super) const SHARED_UNVISITED: u64 = 8 << 10;
/// From this level on, runs of small levels are one call: a graph this deep has thousands of them.
pub(super) const DEEP: u32 = 16;

/// Vertices that a run of small levels finds at most in one go: some 10 ms, after which a search may be stopped.
pub(super) const MOST_AT_ONCE: u64 = 1 << 20;
