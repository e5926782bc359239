//! Which Kronecker graph `bench` takes where nothing is asked for.

/// The largest scale that `threads` threads generate, build, search 64 times and validate in well under a minute, and that fits
/// `available` bytes.
///
/// Two threads of a current core take about 15 seconds at scale 20; every doubling of the threads allows one scale more, up to
/// 22: beyond that the shared memory bus and not the cores sets the pace. The graph may take half of the memory.
pub fn default_scale(threads: usize, available: Option<u64>) -> u32 {
    let by_threads = 19 + threads.max(1).ilog2().min(3);
    let fits = |scale: u32| available.is_none_or(|bytes| PEAK_BYTES_PER_VERTEX << scale <= bytes / 2);
    (SMALLEST..=by_threads).rev().find(|&scale| fits(scale)).unwrap_or(SMALLEST)
}

/// Below this a search is so short that it measures the clock.
const SMALLEST: u32 = 10;

/// Peak memory at edge factor 16: 8 bytes for each of 16 listed edges, the same again for the adjacency, as much while it is
/// built, and some words for each vertex.
const PEAK_BYTES_PER_VERTEX: u64 = 448;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_memory_bound_the_scale() {
        assert_eq!(default_scale(1, None), 19);
        assert_eq!(default_scale(2, None), 20);
        assert_eq!(default_scale(3, None), 20);
        assert_eq!(default_scale(4, None), 21);
        assert_eq!(default_scale(64, None), 22);
        assert_eq!(default_scale(2, Some(16 << 30)), 20);
        assert_eq!(default_scale(8, Some(1 << 30)), 20);
        assert_eq!(default_scale(2, Some(512 << 20)), 19);
        assert_eq!(default_scale(0, Some(0)), SMALLEST);
    }
}
