//! Edges sorted into buckets, for code that needs the edges of each vertex but no [`Layout`](super::Layout).

use std::{
    mem,
    ops::Range,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use rayon::prelude::*;

use super::{EdgeList, GraphError, Vertex};

/// Edges per task, in passes that only read.
const EDGES: usize = 1 << 13;
/// Maximum number of partitions. The first pass writes one stream for each. In the second pass, the counters of a partition fit in the
/// cache even for graphs of many million vertices.
const PARTITIONS: usize = 512;
/// Tasks per thread of the first pass.
const TASKS_PER_THREAD: usize = 4;

/// Buckets of distinct vertices, each in ascending order.
#[derive(Debug)]
pub struct Buckets {
    /// Start of each bucket in `values`, and at the end the length of `values`.
    starts: Vec<usize>,
    /// End of the distinct vertices of each bucket. A gap may follow up to the next start.
    ends: Vec<usize>,
    values: Vec<Vertex>,
}

impl Buckets {
    /// Sorts `edges` into `count` buckets on the current rayon pool. `place` returns the bucket of an edge and the vertex to store there,
    /// or `None` to skip the edge. Takes 4 bytes for each edge and 16 for each bucket, and 8 more for each edge while it runs.
    ///
    /// There are two passes, neither with an atomic exchange. The first pass distributes the edges to partitions of neighbouring buckets,
    /// where each task has its own places to write to. The second pass sorts each partition by itself.
    ///
    /// # Errors
    /// [`GraphError::VertexOutOfRange`] with the first edge that names a vertex the graph does not have. `place` is called only after this
    /// check.
    pub fn sort(
        edges: &EdgeList,
        count: usize,
        place: impl Fn(Vertex, Vertex) -> Option<(usize, Vertex)> + Sync,
    ) -> Result<Self, GraphError> {
        check_range(edges)?;
        let shift = (0..).find(|shift| count >> shift < PARTITIONS).unwrap_or(0);
        let width = 1_usize << shift;
        let partitions = count.div_ceil(width);

        let task_len = edges.len().div_ceil(rayon::current_num_threads() * TASKS_PER_THREAD).max(EDGES);
        let tasks: Vec<Range<usize>> = (0..edges.len()).step_by(task_len).map(|start| start..(start + task_len).min(edges.len())).collect();
        // For each task and partition: first the number of edges, then the position of the next edge.
        let mut cursors: Vec<Vec<usize>> = tasks
            .par_iter()
            .map(|range| {
                let mut sizes = vec![0; partitions];
                edges.for_each(range.clone(), |u, v| {
                    if let Some((bucket, _)) = place(u, v) {
                        sizes[bucket >> shift] += 1;
                    }
                });
                sizes
            })
            .collect();
        let mut total = 0;
        let mut bounds = Vec::with_capacity(partitions + 1);
        for partition in 0..partitions {
            bounds.push(total);
            for cursor in &mut cursors {
                total += mem::replace(&mut cursor[partition], total);
            }
        }
        bounds.push(total);
        let pairs: Vec<AtomicU64> = (0..total).into_par_iter().map(|_| AtomicU64::new(0)).collect();
        tasks.into_par_iter().zip(cursors).for_each(|(range, mut cursor)| {
            edges.for_each(range, |u, v| {
                if let Some((bucket, value)) = place(u, v) {
                    let next = &mut cursor[bucket >> shift];
                    // The pair holds the bucket within the partition and the vertex. Each place is written once, so no ordering is needed.
                    pairs[*next].store(((bucket & (width - 1)) as u64) << 32 | u64::from(value), Relaxed);
                    *next += 1;
                }
            });
        });

        let mut values = vec![0; total];
        let mut starts = vec![0; count + 1];
        starts[count] = total;
        let mut ends = vec![0; count];
        let mut rest = &mut values[..];
        let mut work = Vec::with_capacity(partitions);
        for ((bounds, starts), ends) in bounds.windows(2).zip(starts.chunks_mut(width)).zip(ends.chunks_mut(width)) {
            let (values, tail) = mem::take(&mut rest).split_at_mut(bounds[1] - bounds[0]);
            rest = tail;
            work.push((&pairs[bounds[0]..bounds[1]], bounds[0], starts, ends, values));
        }
        work.into_par_iter().for_each(|(pairs, base, starts, ends, values)| {
            let pairs = pairs.iter().map(|pair| pair.load(Relaxed)).map(|pair| ((pair >> 32) as usize, pair as Vertex));
            // `ends` first holds the sizes, then the starts; each vertex then moves its entry on by one.
            pairs.clone().for_each(|(bucket, _)| ends[bucket] += 1);
            let mut start = 0;
            for (bucket_start, end) in starts.iter_mut().zip(&mut *ends) {
                *bucket_start = base + start;
                start += mem::replace(end, start);
            }
            for (bucket, value) in pairs {
                values[ends[bucket]] = value;
                ends[bucket] += 1;
            }
            // The order of the tasks' writes depends on the number of tasks; sorting makes the result independent of it.
            for (start, end) in starts.iter().zip(ends) {
                let bucket = &mut values[start - base..*end];
                bucket.sort_unstable();
                *end = start + dedup(bucket);
            }
        });
        Ok(Self { starts, ends, values })
    }

    /// The number of buckets.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// The vertices in `bucket`, ascending.
    #[inline]
    pub fn distinct(&self, bucket: usize) -> &[Vertex] {
        &self.values[self.starts[bucket]..self.ends[bucket]]
    }

    /// Number of edges put into `bucket`, repeats included.
    #[inline]
    pub fn listed(&self, bucket: usize) -> usize {
        self.starts[bucket + 1] - self.starts[bucket]
    }
}

/// Moves the distinct vertices of an ascending list to its front and returns their number.
fn dedup(sorted: &mut [Vertex]) -> usize {
    let mut kept = 0;
    for i in 0..sorted.len() {
        if i == 0 || sorted[i] != sorted[i - 1] {
            sorted[kept] = sorted[i];
            kept += 1;
        }
    }
    kept
}

/// Calls `visit` for every edge, on the current rayon pool, in any order.
pub fn for_each(edges: &EdgeList, visit: impl Fn(Vertex, Vertex) + Sync) {
    (0..edges.len().div_ceil(EDGES)).into_par_iter().for_each(|task| {
        let start = task * EDGES;
        edges.for_each(start..(start + EDGES).min(edges.len()), &visit);
    });
}

/// Checks, on the current rayon pool, that all edges join vertices of the graph.
///
/// # Errors
/// [`GraphError::VertexOutOfRange`] with the first edge that does not.
pub fn check_range(edges: &EdgeList) -> Result<(), GraphError> {
    let (listed, vertices) = (edges.len(), edges.vertices());
    let outside = (0..listed.div_ceil(EDGES)).into_par_iter().find_map_first(|task| {
        let range = task * EDGES..(task * EDGES + EDGES).min(listed);
        let mut largest = 0;
        edges.for_each(range.clone(), |u, v| largest = largest.max(u).max(v));
        if (largest as usize) < vertices {
            return None;
        }
        let (mut index, mut found) = (range.start, None);
        edges.for_each(range, |source_vertex, target_vertex| {
            if found.is_none() && source_vertex.max(target_vertex) as usize >= vertices {
                found = Some(GraphError::VertexOutOfRange { index, source_vertex, target_vertex, vertices });
            }
            index += 1;
        });
        found
    });
    outside.map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Listing;

    #[test]
    fn buckets_are_sorted_and_distinct_on_any_number_of_threads() {
        let n = 5000_u32;
        let edges: Vec<[Vertex; 2]> = (0..200_000_u32).map(|i| [i.wrapping_mul(0x9e37_79b9) % n, i.wrapping_mul(i) % n]).collect();
        let mut expected = vec![Vec::new(); n as usize];
        edges.iter().filter(|[u, _]| u % 3 > 0).for_each(|&[u, v]| expected[u as usize].push(v));
        let list = EdgeList::new(n as usize, edges, Listing::Once).unwrap();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let place = |u: Vertex, v| (u % 3 > 0).then_some((u as usize, v));
            let buckets = pool.install(|| Buckets::sort(&list, n as usize, place)).unwrap();
            assert_eq!(buckets.count(), n as usize);
            for (bucket, expected) in expected.iter().enumerate() {
                assert_eq!(buckets.listed(bucket), expected.len());
                let mut distinct = expected.clone();
                distinct.sort_unstable();
                distinct.dedup();
                assert_eq!(buckets.distinct(bucket), distinct);
            }
        }
    }

    #[test]
    fn edges_out_of_range_are_refused() {
        let mut edges = vec![[0, 1]; 30_000];
        edges[25_000] = [9, 0];
        edges[20_000] = [2, 3];
        let list = EdgeList::new(3, edges, Listing::Once).unwrap();
        let expected = GraphError::VertexOutOfRange { index: 20_000, source_vertex: 2, target_vertex: 3, vertices: 3 };
        assert_eq!(Buckets::sort(&list, 3, |u, v| Some((u as usize, v))).unwrap_err(), expected);
        let none = EdgeList::new(0, Vec::new(), Listing::Once).unwrap();
        assert_eq!(Buckets::sort(&none, 0, |u, v| Some((u as usize, v))).unwrap().count(), 0);
    }
}
