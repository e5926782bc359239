//! The memory that a Kronecker graph takes, and the graph that `bench` takes by default.

/// The largest scale that `threads` threads generate, build, search 64 times and validate in well under a minute, and that fits half of
/// `available` bytes.
///
/// Two threads of a current core take about 15 seconds at scale 20. Every doubling of the threads allows one scale more, up to 22: beyond
/// that, the shared memory bus limits the speed, not the cores.
pub fn default_scale(threads: usize, available: Option<u64>) -> u32 {
    let by_threads = 19 + threads.max(1).ilog2().min(3);
    let fits = |scale: u32| available.is_none_or(|bytes| kronecker_bytes(scale, EDGE_FACTOR) <= bytes / 2);
    (SMALLEST..=by_threads).rev().find(|&scale| fits(scale)).unwrap_or(SMALLEST)
}

/// Approximate peak memory of a benchmark of a Kronecker graph, in bytes. For every listed edge: its two ends, and both of its arcs while
/// they are sorted. For every vertex: degree, offset, both numberings, and the trees that are kept until they are validated. (Measured with
/// 64 roots at edge factor 16: 650 and 647 bytes for each vertex at scales 18 and 20.) Saturates at `u64::MAX`.
pub fn kronecker_bytes(scale: u32, edge_factor: u64) -> u64 {
    let each = edge_factor.saturating_mul(PER_EDGE).saturating_add(PER_VERTEX);
    1_u64.checked_shl(scale).map_or(u64::MAX, |vertices| vertices.saturating_mul(each))
}

/// The smallest scale: below it, a search is so short that its time depends on the clock.
const SMALLEST: u32 = 10;

/// Graph500's edges per vertex.
const EDGE_FACTOR: u64 = 16;

/// Bytes for each listed edge at the peak.
const PER_EDGE: u64 = 28;

/// Bytes for each vertex at the peak.
const PER_VERTEX: u64 = 208;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_memory_limit_the_scale() {
        assert_eq!(default_scale(1, None), 19);
        assert_eq!(default_scale(2, None), 20);
        assert_eq!(default_scale(3, None), 20);
        assert_eq!(default_scale(4, None), 21);
        assert_eq!(default_scale(64, None), 22);
        assert_eq!(default_scale(2, Some(16 << 30)), 20);
        assert_eq!(default_scale(8, Some(1 << 30)), 19);
        assert_eq!(default_scale(2, Some(512 << 20)), 18);
        assert_eq!(default_scale(0, Some(0)), SMALLEST);
    }

    #[test]
    fn memory_grows_with_vertices_and_edges() {
        assert_eq!(kronecker_bytes(20, 16), 656 << 20);
        assert_eq!(kronecker_bytes(21, 16), 1312 << 20);
        assert!(kronecker_bytes(20, 32) > kronecker_bytes(20, 16));
        assert_eq!((kronecker_bytes(63, 16), kronecker_bytes(64, 16)), (u64::MAX, u64::MAX));
    }
}
