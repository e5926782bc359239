//! Parallel tasks that write their edges into one vector, in place.

use std::mem::MaybeUninit;
use std::ptr::NonNull;

use nix::sys::mman::{MmapAdvise, madvise};
use rayon::prelude::*;

use super::error::Fault;
use socbfs::graph::Vertex;
use socbfs::memory;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// The slots of one task.
pub(super) struct Slots<'a> {
    slots: &'a mut [MaybeUninit<[Vertex; 2]>],
    filled: usize,
}

impl Slots<'_> {
    /// Adds an edge.
    ///
    /// # Panics
    /// If the task pushes more edges than it has room for.
    #[inline(always)]
    pub(super) fn push(&mut self, edge: [Vertex; 2]) {
        self.slots[self.filled].write(edge);
        self.filled += 1;
    }

    /// Whether no edge has been added.
    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }
}

/// Runs the tasks `0..room.len()` in parallel and appends the edges that they push to `edges`, in the order of the tasks. Task `i` may push
/// up to `room[i]` edges; if it pushes fewer, the gap is closed. About `ahead` times as many edges will follow (0 if that is not known).
/// Returns the results of the tasks, or the first fault in their order.
pub(super) fn fill<P: Send>(
    edges: &mut Vec<[Vertex; 2]>,
    room: &[usize],
    ahead: f64,
    task: impl Fn(usize, &mut Slots<'_>) -> Result<P, Box<Fault>> + Sync,
) -> Result<Vec<P>, Box<Fault>> {
    let total: usize = room.iter().sum();
    let old = edges.len();
    let capacity = edges.capacity();
    reserve(edges, total, ahead, "edges")?;
    if edges.capacity() > capacity {
        ask_for_huge_pages(edges.spare_capacity_mut());
    }
    let mut spare = &mut edges.spare_capacity_mut()[..total];
    let mut tasks = Vec::with_capacity(room.len());
    for &room in room {
        let (slots, rest) = spare.split_at_mut(room);
        tasks.push(Slots { slots, filled: 0 });
        spare = rest;
    }
    let done: Vec<(usize, Result<P, Box<Fault>>)> = tasks
        .into_par_iter()
        .enumerate()
        .map(|(index, mut slots)| {
            let result = task(index, &mut slots);
            (slots.filled, result)
        })
        .collect();
    let mut results = Vec::with_capacity(room.len());
    let (mut from, mut to) = (old, old);
    let start = edges.as_mut_ptr();
    for ((filled, result), room) in done.into_iter().zip(room) {
        results.push(result?);
        if from != to {
            // SAFETY: both ranges lie within the capacity reserved above (to <= from, from + room <= old + total), and the
            // first `filled` slots at `from` are initialised: Slots::push counts them. `copy` allows overlap.
            unsafe { std::ptr::copy(start.add(from), start.add(to), filled) };
        }
        from += room;
        to += filled;
    }
    // SAFETY: everything below `to` is initialised: the old edges, and those that the tasks pushed, with the gaps closed.
    unsafe { edges.set_len(to) };
    Ok(results)
}

/// Makes room for `more` elements, which `what` names, and for the `ahead` times as many that will follow. If that is not known (0), it at
/// least doubles the number of elements that there are. If memory does not allow this, it makes less room, down to `more` elements.
pub(super) fn reserve<T>(vector: &mut Vec<T>, more: usize, ahead: f64, what: &'static str) -> Result<(), Box<Fault>> {
    if vector.capacity() - vector.len() >= more {
        return Ok(());
    }
    let bytes = |count: usize| count as u64 * size_of::<T>() as u64;
    let old = vector.len();
    let mut reserve = |count: usize| {
        // The system may grant more memory than it has, and end a process that touches it. A vector that grows may hold the old
        // elements twice while it copies them.
        memory::check_available(bytes(old + count), what).is_ok() && vector.try_reserve_exact(count).is_ok()
    };
    // Later lines may be a little shorter.
    let expected = if ahead > 0.0 { more.saturating_add((more as f64 * ahead * 1.02) as usize) } else { old };
    if [expected, expected / 2, old / 8, 0].into_iter().any(|count| reserve(count.max(more))) {
        return Ok(());
    }
    Err(Fault::OutOfMemory(bytes(old + more)).into())
}

/// Requests huge pages for memory that is about to be written for the first time: the system then clears 2 MiB per fault instead of 4 KiB.
/// Clearing pages took a quarter of the time of reading a plain edge list. This is a hint: a refusal costs speed only.
fn ask_for_huge_pages(slots: &mut [MaybeUninit<[Vertex; 2]>]) {
    let range = slots.as_mut_ptr_range();
    let start = (range.start as usize).next_multiple_of(HUGE_PAGE);
    let end = range.end as usize / HUGE_PAGE * HUGE_PAGE;
    if let (true, Some(aligned)) = (start < end, NonNull::new(start as *mut _)) {
        // SAFETY: the range lies inside `slots`, and this advice leaves its contents alone.
        let _ = unsafe { madvise(aligned, end - start, MmapAdvise::MADV_HUGEPAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Place;

    #[test]
    fn gaps_are_closed_and_the_order_is_kept() {
        let mut edges = vec![[9, 9]];
        let room = [2, 3, 0, 1];
        let results = fill(&mut edges, &room, 0.0, |index, out| {
            (0..[1, 3, 0, 0][index]).for_each(|k| out.push([index as u32, k]));
            Ok(index)
        });
        assert_eq!(results.unwrap(), [0, 1, 2, 3]);
        assert_eq!(edges, [[9, 9], [0, 0], [1, 0], [1, 1], [1, 2]]);
    }

    #[test]
    fn the_first_fault_in_order_is_returned() {
        let fault =
            fill(&mut Vec::new(), &[0; 100], 0.0, |index, _| if index >= 40 { Err(Fault::at(index, "")) } else { Ok(()) }).unwrap_err();
        assert_eq!(fault.place(), Place::Byte(40));
    }
}
