//! Direction by alpha and beta (Beamer, Asanović and Patterson 2012, section 5).

use crate::bfs::LevelStats;

/// Bottom-up from the level at which more than 1/alpha of the unexplored edges leave the frontier, until the frontier
/// shrinks and holds fewer than 1/beta of the vertices. `was` is the direction of the level before.
pub(super) fn bottom_up(alpha: f64, beta: f64, was: bool, stats: &LevelStats) -> bool {
    if was {
        let shrinks = stats.frontier_vertices < stats.previous_frontier_vertices;
        !(shrinks && (stats.frontier_vertices as f64) < stats.vertices as f64 / beta)
    } else {
        stats.frontier_edges as f64 > stats.unvisited_edges as f64 / alpha
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(frontier_vertices: u64, previous: u64, frontier_edges: u64, unvisited_edges: u64) -> LevelStats {
        LevelStats {
            level: 3,
            vertices: 1800,
            arcs: 30_000,
            frontier_vertices,
            frontier_edges,
            unvisited_vertices: 900,
            unvisited_edges,
            previous_frontier_vertices: previous,
            previous_direction: None,
            previous_placement: None,
            previous_cpu_ns: 0,
            previous_gpu_ns: 0,
            sampled_probes: None,
            ..LevelStats::default()
        }
    }

    #[test]
    fn turns_bottom_up_above_one_alphath_of_the_unexplored_edges() {
        assert!(!bottom_up(15.0, 18.0, false, &stats(10, 1, 1000, 15_000)));
        assert!(bottom_up(15.0, 18.0, false, &stats(10, 1, 1001, 15_000)));
    }

    #[test]
    fn turns_back_when_the_frontier_shrinks_below_one_betath_of_the_vertices() {
        assert!(bottom_up(15.0, 18.0, true, &stats(100, 200, 5, 10)), "not below n / beta");
        assert!(!bottom_up(15.0, 18.0, true, &stats(99, 200, 5, 10)));
        assert!(bottom_up(15.0, 18.0, true, &stats(99, 50, 5, 10)), "the frontier grows");
    }
}
