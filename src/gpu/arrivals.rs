//! Checks of the values that a device has written, before they index memory of the host: a bug in a driver must lead to an error, not to
//! wrong accesses.

use super::{
    GpuEngine, RUN_LEVELS,
    slots::{
        BEFORE, COMPLETIONS, EDGES, EXPANDED, FLIP_BITMAP, FLIP_MASK, FLIP_QUEUE, IS_BITMAP, IS_MASK, IS_QUEUE, LEVELS, STATE, Slot, TAIL,
        VISITED,
    },
};
use crate::{
    engine::{Frontier, SearchState},
    graph::{NONE, Vertex},
    opencl::DeviceError,
};

/// Refuses values that no search can have written.
pub(super) fn demand(is_possible: bool) -> Result<(), DeviceError> {
    if is_possible { Ok(()) } else { Err(DeviceError::WRONG) }
}

/// Vertices visited, including those of the frontier.
pub(super) fn visited(slot: &Slot) -> u64 {
    u64::from(slot.get(VISITED)) + u64::from(slot.get(TAIL))
}

/// Arcs of all earlier frontiers.
pub(super) fn expanded(slot: &Slot) -> u64 {
    u64::from(slot.get(EXPANDED))
}

impl GpuEngine<'_> {
    /// Checks the counters of a step: no more vertices, arcs and levels than there can be. (Before the first level of the device, the arcs
    /// are the host's count, and not checked.)
    pub(super) fn check_counts(&self, slot: &Slot) -> Result<(), DeviceError> {
        let at_most = |word, most: usize| slot.get(word) as usize <= most;
        let levels = slot.get(LEVELS);
        demand(
            at_most(TAIL, self.layout.csr().vertices())
                && levels <= RUN_LEVELS
                && (levels == 0 || at_most(EDGES, self.layout.csr().arcs())),
        )
    }

    /// Checks the counters of a step whose predecessor left `before`: the frontier has one form, and the search has advanced from `before`
    /// or not changed.
    pub(super) fn check_step(&self, before: &Slot, after: &Slot) -> Result<(), DeviceError> {
        self.check_counts(after)?;
        let state = after.get(STATE);
        let forms = (state & (IS_QUEUE | IS_BITMAP | IS_MASK)).count_ones();
        let is_known = state & !(IS_QUEUE | IS_BITMAP | IS_MASK | FLIP_QUEUE | FLIP_BITMAP | FLIP_MASK) == 0;
        let goes_on = match after.get(LEVELS) {
            0 => [TAIL, EDGES, VISITED, EXPANDED, BEFORE].iter().all(|&word| after.get(word) == before.get(word)),
            _ => visited(after) >= visited(before),
        };
        demand(forms == 1 && is_known && goes_on)
    }

    /// Checks that a queue holds only vertices, none of them twice.
    pub(crate) fn check_queue(&mut self, queue: &[Vertex]) -> Result<(), DeviceError> {
        let vertices = self.layout.csr().vertices();
        let mut is_possible = true;
        let mut entered = 0;
        for &v in queue {
            let (v, seen) = (v as usize, &mut self.seen);
            if v >= vertices || seen[v / 64] >> (v % 64) & 1 == 1 {
                is_possible = false;
                break;
            }
            seen[v / 64] |= 1 << (v % 64);
            entered += 1;
        }
        for &v in &queue[..entered] {
            self.seen[v as usize / 64] = 0;
        }
        demand(is_possible)
    }

    /// Checks the bitmaps of a state that was handed back: padding and vertices without an edge count as visited, and where the bitmaps
    /// hold the frontier, it has as many vertices as were counted.
    pub(super) fn check_bitmaps(&self, state: &SearchState) -> Result<(), DeviceError> {
        let (now, before) = (&state.visited[state.current], &state.visited[1 - state.current]);
        match state.frontier {
            Frontier::Bitmap { len } => demand(self.new_in(0..self.host_closed.len(), now, before)? == len),
            Frontier::Queue { .. } | Frontier::Mask { .. } => {
                demand(self.host_closed.iter().zip(now.iter()).all(|(&excluded, &now)| excluded & !now == 0))
            }
        }
    }

    /// Number of vertices of the words `words` that are set in `now` (these words alone) but not in `before` (a whole bitmap). Excluded
    /// vertices must be set in both, and visited vertices stay visited.
    pub(crate) fn new_in(&self, words: std::ops::Range<usize>, now: &[u64], before: &[u64]) -> Result<u64, DeviceError> {
        new_bits(&self.host_closed[words.clone()], now, &before[words])
    }

    /// Checks levels of vertices: none is above the number of vertices.
    pub(crate) fn check_levels(&self, levels: &[u32]) -> Result<(), DeviceError> {
        let most = self.layout.padded();
        demand(levels.iter().fold(0, |deepest, &level| deepest.max(level)) as usize <= most)
    }
}

/// Number of bits that are set in `now` but not in `before`. Those of `excluded` must be set in `before`, and those of `before` in `now`:
/// the words of a kernel that a driver ended too early hold an older bitmap.
fn new_bits(excluded: &[u64], now: &[u64], before: &[u64]) -> Result<u64, DeviceError> {
    let (mut missing, mut new) = (0, 0);
    for ((&excluded, &now), &before) in excluded.iter().zip(now).zip(before) {
        missing |= excluded & !before | before & !now;
        new += u64::from((now & !before).count_ones());
    }
    demand(missing == 0)?;
    Ok(new)
}

/// The host's number of launches of kernels that complete the work of another one; see [`COMPLETIONS`].
#[derive(Debug, Default)]
pub(super) struct Completions(u32);

impl Completions {
    /// Counts launches.
    pub(super) fn add(&mut self, launches: u32) {
        self.0 = self.0.wrapping_add(launches);
    }

    /// Checks that all launches have run, given the counters as they were read.
    pub(super) fn check(&self, counters: &[u32]) -> Result<(), DeviceError> {
        demand(counters[COMPLETIONS as usize] == self.0)
    }
}

/// Checks parents by original vertex: each is below `vertices`, or [`NONE`].
pub fn check_parents(parents: &[Vertex], vertices: usize) -> Result<(), DeviceError> {
    // Without a branch, so that several parents can be compared at once.
    let wrong = parents.iter().fold(0u32, |wrong, &parent| wrong | u32::from(parent != NONE && parent as usize >= vertices));
    demand(wrong == 0)
}

/// Checks that at most `searched` vertices were visited, or the root alone, which may be a vertex without an edge.
pub(crate) fn check_total(visited: u64, searched: u64) -> Result<(), DeviceError> {
    demand(visited <= searched.max(1))
}

/// Checks that the number of vertices found is that of the new bits.
pub(crate) fn check_found(found: u64, bits: u64) -> Result<(), DeviceError> {
    demand(found == bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visited_and_excluded_vertices_stay_visited() {
        let (excluded, before) = ([0, 0b1100], [0b0001, 0b1101]);
        assert_eq!(new_bits(&excluded, &[0b0111, 0b1101], &before), Ok(2));
        assert_eq!(new_bits(&excluded, &before, &before), Ok(0));
        // A vertex that was visited before is lost, or an excluded one, from either bitmap.
        for (now, before) in
            [([0b0110, 0b1101], before), ([0b0001, 0b1100], before), ([0b0001, 0b0101], before), ([0b0001, 0b1101], [0b0001, 0b0101])]
        {
            assert_eq!(new_bits(&excluded, &now, &before), Err(DeviceError::WRONG), "{now:x?} after {before:x?}");
        }
    }
}
