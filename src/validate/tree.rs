//! Levels from parents: checks 1 and 2.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rayon::prelude::*;

use super::Violation;
use crate::graph::{NONE, Vertex};

/// In place of a level: the parents of this vertex don't lead to the root. No level is that large, as a graph has at most
/// `MAX_VERTICES` < `NONE` - 1 vertices.
const ASTRAY: u32 = NONE - 1;

/// Vertices per task.
const CHUNK: usize = 1 << 14;

/// What the levels have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tree {
    pub(super) reached: u64,
    pub(super) deepest: u32,
}

/// Finds the level of every vertex of the tree `parent`, leaves it in `level`, and, cut off at 255 with 255 for vertices that
/// were not reached, in `short`.
///
/// Each vertex walks up to the first one whose level is known and then once more, numbering its path, so that every vertex is
/// numbered once and the work is linear. The threads share `level` without order: whichever of them numbers a vertex, the number
/// is the same, and one that is not seen yet only costs a longer walk.
pub(super) fn find_levels(root: Vertex, parent: &[Vertex], level: &[AtomicU32], short: &mut [u8]) -> Result<Tree, Violation> {
    if parent[root as usize] != root {
        return Err(Violation::RootParent { root, parent: parent[root as usize] });
    }
    level.par_iter().with_min_len(CHUNK).for_each(|level| level.store(NONE, Relaxed));
    level[root as usize].store(0, Relaxed);
    (0..parent.len()).into_par_iter().with_min_len(CHUNK).for_each(|v| {
        if parent[v] != NONE && level[v].load(Relaxed) == NONE {
            number_path(v as Vertex, parent, level);
        }
    });

    let chunks = level.par_chunks(CHUNK).zip(short.par_chunks_mut(CHUNK)).map(|(level, short)| {
        let mut tree = Tree { reached: 0, deepest: 0 };
        for (level, short) in level.iter().zip(short) {
            let level = level.load(Relaxed);
            *short = level.min(255) as u8;
            if level != NONE {
                tree.reached += 1;
                tree.deepest = tree.deepest.max(level);
            }
        }
        tree
    });
    let tree = chunks
        .reduce(|| Tree { reached: 0, deepest: 0 }, |a, b| Tree { reached: a.reached + b.reached, deepest: a.deepest.max(b.deepest) });
    if tree.deepest == ASTRAY {
        return Err(explain(parent, level));
    }
    Ok(tree)
}

/// Compares levels that came with the parents.
pub(super) fn compare_levels(given: &[u32], level: &[AtomicU32]) -> Result<(), Violation> {
    match given.par_iter().zip(level).position_first(|(given, found)| *given != found.load(Relaxed)) {
        None => Ok(()),
        Some(v) => Err(Violation::Level { vertex: v as Vertex, given: given[v], found: level[v].load(Relaxed) }),
    }
}

/// Where a walk along the parents ends.
enum End {
    /// At a vertex for which the condition of the walk holds.
    Stop(Vertex),
    /// At this vertex, whose parent does not exist or has none of its own.
    Dead(Vertex),
    /// In a cycle through this vertex, of this length.
    Cycle(Vertex, u64),
}

/// Walks from `start`, which has a parent, until `stop` holds; also returns the vertices passed, the one it ends at not counted
/// if that is a stop.
///
/// Cycles are found by Brent's method, without marks that threads would have to share: one vertex of the path is remembered, and
/// replaced whenever the walk since has doubled in length.
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
        // A path to the root repeats no vertex, so that its length is a number of 32 bits.
        let found = if base == ASTRAY { ASTRAY } else { base + (passed - i) as u32 };
        level[v as usize].store(found, Relaxed);
        v = parent[v as usize];
    }
}

/// The fault of the smallest vertex whose parents do not lead to the root.
fn explain(parent: &[Vertex], level: &[AtomicU32]) -> Violation {
    // The caller found one; vertex 0 would be as good an answer as any if it hadn't.
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
