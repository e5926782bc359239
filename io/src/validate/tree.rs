//! Levels from parents: checks 1 and 2.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::Violation;
use socbfs::graph::{NONE, Vertex};

/// Level of a vertex whose parents don't lead to a source. No real level is that large, since a graph has at most `MAX_VERTICES`
/// vertices, fewer than `NONE - 1`.
const ASTRAY: u32 = NONE - 1;

/// Vertices per task.
const CHUNK: usize = 1 << 14;

/// Summary of the levels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Depths {
    pub(super) reached: u64,
    pub(super) deepest: u32,
}

/// Finds the level of every vertex of the forest `parent` and writes it to `level`. Also writes it to `short`, where it is limited to 255,
/// the value of vertices that were not reached.
///
/// The walk from a vertex goes up to the first vertex whose level is known, and then once more along the same path to number it. Every
/// vertex is thus numbered once, and the work is linear. The threads share `level` without order: any thread gives a vertex the same
/// number, and a number that a thread does not see yet only makes its walk longer.
pub(super) fn find_levels(sources: &[Vertex], parent: &[Vertex], level: &[AtomicU32], short: &mut [u8]) -> Result<Depths, Violation> {
    if let Some(&root) = sources.iter().find(|&&source| parent[source as usize] != source) {
        return Err(Violation::RootParent { root, parent: parent[root as usize] });
    }
    level.par_iter().with_min_len(CHUNK).for_each(|level| level.store(NONE, Relaxed));
    sources.iter().for_each(|&source| level[source as usize].store(0, Relaxed));
    (0..parent.len()).into_par_iter().with_min_len(CHUNK).for_each(|v| {
        if parent[v] != NONE && level[v].load(Relaxed) == NONE {
            number_path(v as Vertex, parent, level);
        }
    });

    let chunks = level.par_chunks(CHUNK).zip(short.par_chunks_mut(CHUNK)).map(|(level, short)| {
        let mut depths = Depths { reached: 0, deepest: 0 };
        for (level, short) in level.iter().zip(short) {
            let level = level.load(Relaxed);
            *short = level.min(255) as u8;
            if level != NONE {
                depths.reached += 1;
                depths.deepest = depths.deepest.max(level);
            }
        }
        depths
    });
    let depths = chunks
        .reduce(|| Depths { reached: 0, deepest: 0 }, |a, b| Depths { reached: a.reached + b.reached, deepest: a.deepest.max(b.deepest) });
    if depths.deepest == ASTRAY {
        return Err(explain(parent, level));
    }
    Ok(depths)
}

/// Compares levels that came with the parents.
pub(super) fn compare_levels(given: &[u32], level: &[AtomicU32]) -> Result<(), Violation> {
    let wrong = given.par_iter().zip(level).position_first(|(given, found)| *given != found.load(Relaxed));
    wrong.map_or(Ok(()), |v| Err(Violation::Level { vertex: v as Vertex, given: given[v], found: level[v].load(Relaxed) }))
}

/// The end of a walk along the parents.
enum End {
    /// The walk ends at this vertex, for which its condition holds.
    Stop(Vertex),
    /// The walk ends at this vertex, whose parent does not exist or has none of its own.
    Dead(Vertex),
    /// The walk ends in a cycle through this vertex, of this length.
    Cycle(Vertex, u64),
}

/// Walks from `start`, which has a parent, until `stop` holds. Also returns the number of vertices passed, without the one at which `stop`
/// holds.
///
/// Finds cycles by Brent's method, without marks that threads would have to share: it remembers one vertex of the path, and replaces it
/// whenever the walk since then has become twice as long.
fn walk(start: Vertex, parent: &[Vertex], stop: impl Fn(Vertex) -> bool) -> (End, u64) {
    let (mut remembered, mut since, mut limit) = (start, 0, 1);
    let (mut v, mut passed) = (start, 0);
    loop {
        if stop(v) {
            return (End::Stop(v), passed);
        }
        let next = parent[v as usize];
        passed += 1;
        if next as usize >= parent.len() || parent[next as usize] == NONE {
            return (End::Dead(v), passed);
        }
        v = next;
        since += 1;
        if v == remembered {
            return (End::Cycle(v, since), passed);
        }
        if since == limit {
            (remembered, since, limit) = (v, 0, 2 * limit);
        }
    }
}

fn number_path(start: Vertex, parent: &[Vertex], level: &[AtomicU32]) {
    let (end, passed) = walk(start, parent, |v| level[v as usize].load(Relaxed) != NONE);
    let base = match end {
        End::Stop(v) => level[v as usize].load(Relaxed),
        End::Dead(_) | End::Cycle(..) => ASTRAY,
    };
    let mut v = start;
    for i in 0..passed {
        // A path to a source repeats no vertex, so its length fits 32 bits.
        let found = if base == ASTRAY { ASTRAY } else { base + (passed - i) as u32 };
        level[v as usize].store(found, Relaxed);
        v = parent[v as usize];
    }
}

/// The fault of the smallest vertex whose parents do not lead to a source.
fn explain(parent: &[Vertex], level: &[AtomicU32]) -> Violation {
    // The caller has found such a vertex, so the 0 is not used.
    let vertex = level.par_iter().position_first(|level| level.load(Relaxed) == ASTRAY).unwrap_or(0) as Vertex;
    match walk(vertex, parent, |_| false).0 {
        End::Cycle(on_cycle, length) => {
            let mut cycle = on_cycle;
            let mut v = parent[on_cycle as usize];
            while v != on_cycle {
                cycle = cycle.min(v);
                v = parent[v as usize];
            }
            Violation::Cycle { vertex, cycle, length }
        }
        End::Dead(last) | End::Stop(last) => {
            let parent_of_last = parent[last as usize];
            Violation::DeadEnd { vertex, last, parent: parent_of_last, exists: (parent_of_last as usize) < parent.len() }
        }
    }
}
