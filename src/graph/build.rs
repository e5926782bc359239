//! Builds sorted adjacency from an edge list, in parallel.
//!
//! Every arc is first written to the bucket of its source (a bucket is a run of vertices whose arcs fit the second level cache). Then one
//! thread sorts each bucket, without atomics. Random writes thus stay inside a cache, and the result does not depend on the number of
//! threads.

use std::{
    collections::TryReserveError,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use rayon::prelude::*;

use super::{Csr, EdgeStream, GraphError, NONE, Stopper, Vertex, accumulate};
use crate::memory::{OutOfMemory, Shared, Slab, as_atomics, check_available, prefetch};

/// Arcs of one bucket, which one thread sorts at a time: 64 Ki arcs take 768 KiB with their scratch space.
const BUCKET_ARCS: u64 = 64 << 10;
/// Maximum number of buckets: each thread has a small buffer for every bucket.
const MAX_BUCKETS: u64 = 1024;
/// Arcs that a thread collects for a bucket before it appends them all at once.
const BUFFER: usize = 32;
/// Entries whose ends a thread looks up at once, so that the memory is asked for many of them before the first one arrives.
const BATCH: usize = 64;
/// Entries of the table that maps a row to its bucket: small enough for the first level cache.
const TABLE: usize = 8 << 10;

/// Which of the two ends of an edge become the source of an arc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arcs {
    /// Source to target, as listed.
    Forward,
    /// Target to source.
    Backward,
    /// Both ends: two arcs.
    Both,
}

/// The result of the first pass over the edges.
#[derive(Debug)]
pub struct Degrees {
    /// Entries that leave each vertex, self-loops not counted.
    pub outgoing: Slab<u32>,
    /// Entries that arrive at each vertex, self-loops not counted.
    pub incoming: Slab<u32>,
    /// Entries, self-loops included.
    pub entries: u64,
    /// Self-loops.
    pub self_loops: u64,
    /// Sums of the fingerprints of entries with u < v, and of those with u > v; `None` if the list is known to have each edge once.
    pub up_and_down: Option<[u64; 2]>,
    /// The same sums, if the entries may change before they are read again.
    pub(crate) to_compare: Option<[u64; 2]>,
}

impl Degrees {
    /// Whether the reverse of every entry is listed equally often.
    ///
    /// Compares sums of 64-bit fingerprints: equal sets always compare equal, different sets with a probability of 2^-64.
    pub fn symmetric(&self) -> bool {
        self.entries > self.self_loops && self.up_and_down.is_some_and(|[up, down]| up == down)
    }
}

/// Calls `work` up to once for each thread of the pool, with those of `0..count` that this call takes, one by one. (Rayon's `for_each_init`
/// makes new scratch space for every job, and the system new pages for it.) An error ends all calls.
fn share_out(count: usize, work: impl Fn(&mut dyn Iterator<Item = usize>) -> Result<(), GraphError> + Sync) -> Result<(), GraphError> {
    let next = AtomicUsize::new(0);
    let take = || Some(next.fetch_add(1, Relaxed)).filter(|&index| index < count);
    let one = |_| work(&mut std::iter::from_fn(take)).inspect_err(|_| next.store(count, Relaxed));
    (0..rayon::current_num_threads().min(count)).into_par_iter().with_max_len(1).try_for_each(one)
}

/// Calls `visit` with the entries of `part`, in order and up to [`BATCH`] at a time.
#[inline]
fn in_batches(edges: &impl EdgeStream, part: usize, mut visit: impl FnMut(&[[Vertex; 2]])) {
    let (mut batch, mut held) = ([[0; 2]; BATCH], 0);
    edges.for_each_of(part, |u, v| {
        batch[held] = [u, v];
        held += 1;
        if held == BATCH {
            visit(&batch);
            held = 0;
        }
    });
    visit(&batch[..held]);
}

/// A 64-bit hash (the finaliser of MurmurHash3) of an unordered pair. The sum over a set of pairs is the set's fingerprint.
fn fingerprint(low: Vertex, high: Vertex) -> u64 {
    let mut x = (u64::from(low) << 32 | u64::from(high)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// Sums of fingerprints, as in [`Degrees::up_and_down`].
#[derive(Default)]
struct Fingerprints {
    up: u64,
    down: u64,
}

impl Fingerprints {
    fn add(&mut self, u: Vertex, v: Vertex) {
        let mix = fingerprint(u.min(v), u.max(v));
        let sum = if u < v { &mut self.up } else { &mut self.down };
        *sum = sum.wrapping_add(mix);
    }

    fn add_to(&self, [up, down]: &[AtomicU64; 2]) {
        up.fetch_add(self.up, Relaxed);
        down.fetch_add(self.down, Relaxed);
    }
}

/// Counts the degrees of the vertices `0..n`, checks every end, and finds out whether the list is symmetric. It does not ask `edges` for
/// the number of vertices: safe code may give another one each time, and the searches rely on one number in all arrays.
pub fn count_degrees(edges: &impl EdgeStream, n: usize, stopper: &Stopper) -> Result<Degrees, GraphError> {
    let mut outgoing = Slab::zeroed(n, "vertex degrees")?;
    let mut incoming = Slab::zeroed(n, "vertex degrees")?;
    // The first entry that names a vertex the graph does not have: its position and its ends.
    let first_bad: Mutex<Option<(usize, Vertex, Vertex)>> = Mutex::new(None);
    let ([entries, self_loops], sums) = ([const { AtomicU64::new(0) }; 2], [const { AtomicU64::new(0) }; 2]);
    let (ask_symmetry, may_change) = (!edges.listing().is_once(), edges.may_change());
    let with_sums = ask_symmetry || may_change;
    {
        let out = as_atomics(&mut outgoing);
        let arriving = as_atomics(&mut incoming);
        (0..edges.parts()).into_par_iter().with_max_len(1).try_for_each(|part| {
            stopper.check()?;
            let (mut loops, mut own_sums) = (0u64, Fingerprints::default());
            let mut index = 0;
            let mut bad = None;
            in_batches(edges, part, |batch| {
                for &[u, v] in batch {
                    prefetch(out.as_ptr().wrapping_add(u as usize));
                    prefetch(arriving.as_ptr().wrapping_add(v as usize));
                }
                for &[u, v] in batch {
                    // A plain atomic increment costs the same for files, whose neighbouring entries often share a source, and for random
                    // edges.
                    if let (Some(from), Some(to)) = (out.get(u as usize), arriving.get(v as usize)) {
                        if u == v {
                            loops += 1;
                        } else {
                            from.fetch_add(1, Relaxed);
                            to.fetch_add(1, Relaxed);
                            if with_sums {
                                own_sums.add(u, v);
                            }
                        }
                    } else if bad.is_none() {
                        bad = Some((edges.position(part, index), u, v));
                    }
                    index += 1;
                }
            });
            if let Some(bad) = bad {
                let mut first = first_bad.lock().unwrap_or_else(PoisonError::into_inner);
                if first.is_none_or(|first| bad.0 < first.0) {
                    *first = Some(bad);
                }
            }
            entries.fetch_add(index as u64, Relaxed);
            self_loops.fetch_add(loops, Relaxed);
            own_sums.add_to(&sums);
            Ok::<_, GraphError>(())
        })?;
    }
    if let Some((index, source_vertex, target_vertex)) = first_bad.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(GraphError::VertexOutOfRange { index, source_vertex, target_vertex, vertices: n });
    }
    let (entries, self_loops) = (entries.into_inner(), self_loops.into_inner());
    let sums = sums.map(AtomicU64::into_inner);
    let (up_and_down, to_compare) = (ask_symmetry.then_some(sums), may_change.then_some(sums));
    Ok(Degrees { outgoing, incoming, entries, self_loops, up_and_down, to_compare })
}

/// Number of vertices with an edge, and the [skew](super::LayoutStats::skew) of the degrees.
pub fn skew(degrees: impl ParallelIterator<Item = u32>) -> (u64, f64) {
    let (count, sum, squares) = degrees
        .filter(|&degree| degree > 0)
        .fold(|| (0u64, 0u64, 0.0), |(count, sum, squares), d| (count + 1, sum + u64::from(d), squares + f64::from(d) * f64::from(d)))
        .reduce(|| (0, 0, 0.0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2));
    (count, if count == 0 { 1.0 } else { squares * count as f64 / (sum as f64 * sum as f64) })
}

/// Vertices that have an edge, by descending degree (ties by number), as `(to_original, to_internal)`. The others map to [`NONE`].
pub fn by_degree(degree: &[u32]) -> Result<(Slab<Vertex>, Slab<Vertex>), GraphError> {
    let mut keys = Slab::zeroed(degree.par_iter().filter(|&&degree| degree > 0).count(), "vertex order")?;
    let with_edges = degree.iter().enumerate().filter(|&(_, &degree)| degree > 0);
    for (key, (v, &degree)) in keys.iter_mut().zip(with_edges) {
        *key = u64::from(!degree) << 32 | v as u64;
    }
    keys.par_sort_unstable();
    let mut to_original = Slab::zeroed(keys.len(), "vertex order")?;
    let mut to_internal = Slab::zeroed(degree.len(), "vertex order")?;
    to_internal.par_iter_mut().for_each(|internal| *internal = NONE);
    for (internal, &key) in keys.iter().enumerate() {
        to_original[internal] = key as u32;
        to_internal[key as u32 as usize] = internal as u32;
    }
    Ok((to_original, to_internal))
}

/// The renumbering of vertices for the adjacency.
#[derive(Debug, Clone, Copy)]
pub struct Naming<'a> {
    /// Original vertex to row of the adjacency, or [`NONE`] if its arcs are left out. Empty: the row is the vertex itself.
    pub row: &'a [Vertex],
    /// Original vertex to the key by which lists are sorted.
    pub key: &'a [Vertex],
    /// Key to the number that is stored in the lists. Empty: the key itself.
    pub stored: &'a [Vertex],
}

impl Naming<'_> {
    fn row(&self, v: Vertex) -> Vertex {
        if self.row.is_empty() { v } else { self.row[v as usize] }
    }
}

/// The rows divided into buckets.
struct RowBuckets {
    /// Bucket of a row, by `row >> shift`.
    table: Vec<u16>,
    shift: u32,
    /// First row of each bucket and, at the end, the number of rows.
    rows: Vec<usize>,
    /// First arc of each bucket and, at the end, the number of arcs.
    arcs: Vec<usize>,
}

impl RowBuckets {
    fn new(degree: &[u32]) -> Self {
        let rows = degree.len();
        let mut shift = 0;
        while rows >> shift > TABLE {
            shift += 1;
        }
        let sums: Vec<u64> = degree.par_chunks(1 << shift).map(|granule| granule.iter().map(|&d| u64::from(d)).sum()).collect();
        let total: u64 = sums.iter().sum();
        let target = BUCKET_ARCS.max(total / MAX_BUCKETS);
        let mut buckets = Self { table: Vec::with_capacity(sums.len()), shift, rows: vec![0], arcs: vec![0] };
        let (mut arcs, mut in_bucket) = (0, 0);
        for (granule, &sum) in sums.iter().enumerate() {
            if in_bucket > 0 && in_bucket + sum > target && buckets.rows.len() < usize::from(u16::MAX) {
                buckets.rows.push(granule << shift);
                buckets.arcs.push(arcs as usize);
                in_bucket = 0;
            }
            buckets.table.push((buckets.rows.len() - 1) as u16);
            in_bucket += sum;
            arcs += sum;
        }
        buckets.rows.push(rows);
        buckets.arcs.push(arcs as usize);
        buckets
    }

    fn len(&self) -> usize {
        self.rows.len() - 1
    }
}

/// Builds adjacency with sorted lists, without repeats and self-loops. `degree` holds the number of arcs of each row. The lists of rows
/// below `core` keep only keys below `core`.
///
/// # Errors
/// [`GraphError::OutOfMemory`], [`GraphError::Stopped`], and [`GraphError::EdgesChanged`] if other edges are read than `counted` ones.
pub fn adjacency(
    edges: &impl EdgeStream,
    arcs: Arcs,
    degree: &[u32],
    core: usize,
    naming: Naming<'_>,
    (counted, stopper): (&Degrees, &Stopper),
) -> Result<Csr, GraphError> {
    let mut collected = Collected::begin(arcs, degree, naming)?;
    let read = collected.add(edges, stopper)?;
    // Other edges of the same degrees would leave the two adjacencies of a directed graph, or both arcs of an edge, at odds.
    if counted.to_compare.is_some_and(|counted| counted != read) {
        return Err(GraphError::EdgesChanged);
    }
    collected.into_lists(core, stopper)
}

/// Collects the arcs of an adjacency from one or several streams of edges.
pub struct Collected<'a> {
    arcs: Arcs,
    degree: &'a [u32],
    naming: Naming<'a>,
    buckets: RowBuckets,
    /// Position of the next arc of each bucket.
    cursors: Vec<AtomicUsize>,
    pairs: Slab<[u32; 2]>,
}

impl<'a> Collected<'a> {
    /// Allocates room for the arcs; `degree` holds the number of arcs of each row.
    pub fn begin(arcs: Arcs, degree: &'a [u32], naming: Naming<'a>) -> Result<Self, GraphError> {
        let buckets = RowBuckets::new(degree);
        // A thread that sorts a bucket has room for its arcs once more.
        let largest = buckets.arcs.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        check_available(8 * buckets.arcs[buckets.len()] as u64 + 4 * largest as u64, "sorting the adjacency")?;
        let pairs = Slab::zeroed(buckets.arcs[buckets.len()], "arcs of the graph")?;
        let cursors = buckets.arcs.iter().map(|&first| AtomicUsize::new(first)).collect();
        Ok(Self { arcs, degree, naming, buckets, cursors, pairs })
    }

    /// Adds the arcs of `edges`. If these may change, returns the sums of their fingerprints.
    pub fn add(&mut self, edges: &impl EdgeStream, stopper: &Stopper) -> Result<[u64; 2], GraphError> {
        distribute(edges, self.arcs, self.naming, &self.buckets, &self.cursors, &mut self.pairs, stopper)
    }

    /// Sorts the lists after all edges have been added; see [`adjacency`].
    pub fn into_lists(self, core: usize, stopper: &Stopper) -> Result<Csr, GraphError> {
        let Self { degree, naming, buckets, mut pairs, mut cursors, .. } = self;
        // A bucket that was not filled would hold arcs that no edge has.
        if cursors.iter_mut().zip(&buckets.arcs[1..]).any(|(cursor, &end)| *cursor.get_mut() != end) {
            return Err(GraphError::EdgesChanged);
        }
        let mut offsets = Slab::zeroed(degree.len() + 1, "adjacency offsets")?;
        sort_buckets(&buckets, degree, core, &mut pairs, &mut offsets[1..], stopper)?;
        // Now the front of each bucket holds its lists, one after the other.
        let sum = accumulate(&mut offsets);
        // They move together in place: new memory would have to be zeroed first, which takes longer.
        let mut targets = pairs.into_flattened();
        for (rows, &at) in buckets.rows.windows(2).zip(&buckets.arcs) {
            let [begin, end] = [rows[0], rows[1]].map(|row| offsets[row] as usize);
            targets.copy_within(2 * at..2 * at + (end - begin), begin);
        }
        targets.truncate(sum as usize);
        if !naming.stored.is_empty() {
            targets.par_iter_mut().with_min_len(4096).for_each(|key| *key = naming.stored[*key as usize]);
        }
        Ok(Csr { offsets, targets })
    }
}

/// Writes every arc as (row, key) to the bucket of its row. If the edges may change, returns the sums of their fingerprints.
fn distribute(
    edges: &impl EdgeStream,
    arcs: Arcs,
    naming: Naming<'_>,
    buckets: &RowBuckets,
    cursors: &[AtomicUsize],
    pairs: &mut [[u32; 2]],
    stopper: &Stopper,
) -> Result<[u64; 2], GraphError> {
    // The end of the last bucket; the ends of the others are lower.
    assert_eq!(pairs.len(), buckets.arcs[buckets.len()], "room for every arc");
    let out = Shared::new(pairs);
    // Set if other edges are read than were counted: another thread or program may change them at any time.
    let has_changed = AtomicBool::new(false);
    let changed = || has_changed.store(true, Relaxed); // it is read when all threads are done
    let append = |bucket: usize, held: &[[u32; 2]]| {
        let at = cursors[bucket].fetch_add(held.len(), Relaxed);
        if at + held.len() > buckets.arcs[bucket + 1] {
            return changed();
        }
        // SAFETY: `fetch_add` hands every position of a bucket out once. The range ends inside the bucket, and buckets do not overlap.
        unsafe { std::ptr::copy_nonoverlapping(held.as_ptr(), out.get().add(at), held.len()) };
    };
    let (with_sums, sums) = (edges.may_change(), [const { AtomicU64::new(0) }; 2]);
    share_out(edges.parts(), |parts| {
        let mut own_sums = Fingerprints::default();
        let (mut buffers, mut lengths) = (vec![[[0u32; 2]; BUFFER]; buckets.len()], vec![0u8; buckets.len()]);
        let mut push = |row: Vertex, key: Vertex| {
            if row == NONE {
                return;
            }
            // A vertex that had no edge when they were counted. The searches rely on it that no list holds such a key.
            if key == NONE {
                return changed();
            }
            let bucket = usize::from(buckets.table[(row >> buckets.shift) as usize]);
            let (buffer, length) = (&mut buffers[bucket], &mut lengths[bucket]);
            buffer[usize::from(*length) % BUFFER] = [row, key];
            *length += 1;
            if usize::from(*length) == BUFFER {
                append(bucket, buffer);
                *length = 0;
            }
        };
        for part in parts {
            stopper.check()?;
            in_batches(edges, part, |batch| {
                for v in batch.as_flattened() {
                    prefetch(naming.key.as_ptr().wrapping_add(*v as usize));
                }
                for &[u, v] in batch.iter().filter(|[u, v]| u != v) {
                    // Every vertex has a key, so this also refuses an end that is no vertex any more.
                    let (Some(&key_of_u), Some(&key_of_v)) = (naming.key.get(u as usize), naming.key.get(v as usize)) else {
                        return changed();
                    };
                    if with_sums {
                        own_sums.add(u, v);
                    }
                    if arcs != Arcs::Backward {
                        push(naming.row(u), key_of_v);
                    }
                    if arcs != Arcs::Forward {
                        push(naming.row(v), key_of_u);
                    }
                }
            });
        }
        for (bucket, length) in lengths.iter().enumerate() {
            append(bucket, &buffers[bucket][..usize::from(*length)]);
        }
        own_sums.add_to(&sums);
        Ok(())
    })?;
    if has_changed.into_inner() { Err(GraphError::EdgesChanged) } else { Ok(sums.map(AtomicU64::into_inner)) }
}

/// Sorts the lists of every bucket and removes repeats. The lists end up at the front of their bucket, one after the other, and `unique`
/// receives their lengths. Rows below `core` keep only keys below `core`.
fn sort_buckets(
    buckets: &RowBuckets,
    degree: &[u32],
    core: usize,
    pairs: &mut [[u32; 2]],
    unique: &mut [u32],
    stopper: &Stopper,
) -> Result<(), GraphError> {
    let pairs = Shared::new(pairs);
    let unique = Shared::new(unique);
    share_out(buckets.len(), |taken| {
        let (mut scratch, mut cursors): (Vec<u32>, Vec<u32>) = Default::default();
        for bucket in taken {
            stopper.check()?;
            let rows = buckets.rows[bucket]..buckets.rows[bucket + 1];
            let arcs = buckets.arcs[bucket]..buckets.arcs[bucket + 1];
            // SAFETY: buckets are disjoint ranges of arcs and of rows; each is visited by one thread.
            let (pairs, unique) = unsafe {
                (
                    std::slice::from_raw_parts_mut(pairs.get().add(arcs.start), arcs.len()),
                    std::slice::from_raw_parts_mut(unique.get().add(rows.start), rows.len()),
                )
            };
            // A vertex of many arcs, or many vertices of few, have a bucket as large as the graph.
            make_room(&mut scratch, arcs.len())?;
            scratch.resize(scratch.len().max(arcs.len()), 0);
            cursors.clear();
            make_room(&mut cursors, rows.len())?;
            let mut first = 0;
            for &degree in &degree[rows.clone()] {
                cursors.push(first);
                first += degree;
            }
            for &[row, key] in &*pairs {
                let cursor = &mut cursors[row as usize - rows.start];
                let at = *cursor as usize;
                *cursor += 1;
                // A row with more arcs than were counted, which is found below, may come to the end of all.
                if let Some(entry) = scratch.get_mut(at) {
                    *entry = key;
                }
            }
            let lists = pairs.as_flattened_mut();
            let mut at = 0;
            let mut begin = 0;
            for ((&end, unique), row) in cursors.iter().zip(unique).zip(rows) {
                if end as usize != begin + degree[row] as usize {
                    return Err(GraphError::EdgesChanged);
                }
                let list = &mut scratch[begin..end as usize];
                begin = end as usize;
                list.sort_unstable();
                let kept = if row < core { list.partition_point(|&key| (key as usize) < core) } else { list.len() };
                let list = &list[..kept];
                let start = at;
                let mut last = NONE;
                for &key in list {
                    lists[at] = key;
                    at += usize::from(key != last);
                    last = key;
                }
                *unique = (at - start) as u32;
            }
        }
        Ok(())
    })
}

/// Makes room for `count` numbers. A lack of memory must not end the process.
fn make_room(numbers: &mut Vec<u32>, count: usize) -> Result<(), OutOfMemory> {
    let bytes = 4 * count as u64;
    let refused = |error: TryReserveError| OutOfMemory { what: "sorting the adjacency", bytes, reason: error.to_string() };
    numbers.try_reserve_exact(count.saturating_sub(numbers.len())).map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{EdgeList, Listing};

    /// Other edges are read than were counted, as many in total: they spill over neither into the next bucket nor into the next row.
    #[test]
    fn a_bucket_or_a_row_with_too_many_or_too_few_arcs_is_refused() {
        let read = |counted: [u32; 3], buckets: usize, lists: [usize; 3]| {
            assert_eq!(RowBuckets::new(&counted).len(), buckets);
            let edges = (0..3).flat_map(|row| vec![[row, (row + 1) % 3]; lists[row as usize]]).collect();
            let edges = EdgeList::new(3, edges, Listing::Once).unwrap();
            let stopper = Stopper::default();
            let mut collected = Collected::begin(Arcs::Forward, &counted, Naming { row: &[], key: &[0, 1, 2], stored: &[] })?;
            collected.add(&edges, &stopper)?;
            collected.into_lists(usize::MAX, &stopper).map(|lists| lists.arcs())
        };
        assert_eq!(read([50_000, 50_000, 0], 2, [50_000, 50_000, 0]), Ok(2));
        assert_eq!(read([2, 3, 1], 1, [2, 3, 1]), Ok(3));
        for lists in [[60_000, 40_000, 0], [50_000, 49_999, 0], [40_000, 60_000, 0]] {
            assert_eq!(read([50_000, 50_000, 0], 2, lists), Err(GraphError::EdgesChanged), "{lists:?}");
        }
        for lists in [[3, 2, 1], [1, 4, 1], [2, 2, 2], [6, 0, 0], [0, 0, 6], [2, 3, 0], [2, 3, 2]] {
            assert_eq!(read([2, 3, 1], 1, lists), Err(GraphError::EdgesChanged), "{lists:?}");
        }
    }
}
