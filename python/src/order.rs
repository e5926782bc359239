//! SciPy's breadth-first order of rows as they are given: a single search is over before a layout for faster ones would be built.

use bfs::{
    graph::{EdgeStream, NONE, Numbers, RowsError, Stopper},
    memory::prefetch,
    search::SearchError,
};

use crate::{Failure, check_vertices, rows_of, vector};

/// What SciPy gives a vertex that has no predecessor.
const NO_PREDECESSOR: i32 = -9999;
/// From this many vertices on, predecessors no longer fit a processor's own cache: rows and their predecessors are prefetched.
const LARGE: usize = 1 << 17;
/// How many vertices ahead predecessors are prefetched, of twice as many neighbours; rows twice as far ahead.
const AHEAD: usize = 6;

/// The vertices in the order in which a search with a queue visits them from `root`, which is a vertex, and their predecessors. Arcs count
/// in both directions unless the graph is `directed`: at each vertex, those that leave it come first, in the order of its row, then those
/// that enter it, in the order of the rows. So both arrays are those of SciPy 1.18.
///
/// # Errors
/// The arrays are not rows, there is no memory, or the stopper is set.
pub(crate) fn breadth_first(
    (offsets, targets): (Numbers<'_>, Numbers<'_>),
    root: u32,
    directed: bool,
    stopper: &Stopper,
) -> Result<(Vec<i32>, Vec<i32>), Failure> {
    let (targets, rows) = rows_of(offsets, targets)?;
    check_vertices(rows.vertices())?;
    let (vertices, entries, what) = (rows.vertices(), targets.len(), "the order of the vertices");
    let goes_on = |at: usize| if at % (1 << 16) == 0 && stopper.is_stopped() { Err(SearchError::Stopped(root)) } else { Ok(()) };
    // The rows of the arcs that enter each vertex: sources[starts[v]..starts[v + 1]].
    let (mut starts, mut sources) = (vector(if directed { 0 } else { vertices + 2 }, 0_usize, what)?, Vec::new());
    if !directed {
        sources = vector(entries, NONE, what)?;
        for part in 0..rows.parts() {
            goes_on(0)?;
            rows.for_each_of(part, |_, target| starts.get_mut(target as usize + 2).into_iter().for_each(|count| *count += 1));
        }
        (2..starts.len()).for_each(|v| starts[v] += starts[v - 1]);
        for part in 0..rows.parts() {
            goes_on(0)?;
            rows.for_each_of(part, |source, target| {
                let Some(place) = starts.get_mut(target as usize + 1) else { return };
                sources.get_mut(*place).into_iter().for_each(|entry| *entry = source);
                *place += 1;
            });
        }
    }
    // Another thread may change the arrays: what was checked before is checked again.
    let row = |v: i32| offsets.get(v as usize) as usize..entries.min(offsets.get(v as usize + 1) as usize);
    let (mut order, mut predecessors) = (vector(vertices, 0, what)?, vector(vertices, NO_PREDECESSOR, what)?);
    let (mut at, mut found) = (0, 1);
    (order[0], predecessors[root as usize]) = (root as i32, 0);
    while at < found {
        goes_on(at)?;
        if vertices >= LARGE && at + 2 * AHEAD < found {
            let far = row(order[at + 2 * AHEAD]).start;
            match targets {
                Numbers::Bits32(narrow) => prefetch(narrow.as_ptr().wrapping_add(far)),
                Numbers::Bits64(wide) => prefetch(wide.as_ptr().wrapping_add(far)),
            }
            let ahead = row(order[at + AHEAD]).take(2 * AHEAD);
            ahead.for_each(|entry| prefetch(predecessors.as_ptr().wrapping_add(targets.get(entry) as usize)));
        }
        let v = order[at];
        let mut meet = |neighbour: u64, entry: usize| match predecessors.get_mut(neighbour as usize) {
            Some(predecessor) if *predecessor == NO_PREDECESSOR => {
                (*predecessor, order[found]) = (v, neighbour as i32);
                found += 1;
                Ok(())
            }
            Some(_) => Ok(()),
            None => Err(RowsError::Target { byte: 0, entry, target: neighbour, vertices }),
        };
        row(v).try_for_each(|entry| meet(targets.get(entry), entry))?;
        let entering = if directed { 0..0 } else { starts[v as usize]..starts[v as usize + 1] };
        sources.get(entering).unwrap_or_default().iter().try_for_each(|&source| meet(source.into(), entries))?;
        at += 1;
    }
    order.truncate(found);
    predecessors[root as usize] = NO_PREDECESSOR;
    Ok((order, predecessors))
}
