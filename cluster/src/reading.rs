//! Graph files that ranks read together.
//!
//! If every rank has the file, each reads a slice of it: slices have equally many bytes and are cut after a line end, or at an entry. If a
//! file can't be cut, every rank reads all of it and keeps a part. (If one rank sent it instead, the others would wait as long.) If only
//! rank 0 has the file, it sends each rank a share of every piece. No rank holds all edges.

use std::path::Path;

use bytemuck::{cast_slice, cast_slice_mut};
use rayon::prelude::*;

use super::{
    ClusterError,
    host::all_gather,
    ranks::{Messages, Ranks, starts, texts, values},
    search::first_of,
};
use socbfs::{
    graph::{EdgeList, EdgeSlice, Vertex},
    input::{Chosen, Fault, FilePart, InputError, OpenFile, ReadOptions, Tallies, Whole},
    memory,
};

/// Returns this rank's result if all ranks succeeded; otherwise, on every rank, the error of the first rank that failed.
fn agreed<T>(ranks: &impl Ranks, own: Result<T, String>) -> Result<T, ClusterError> {
    let first = first_of(texts(ranks, own.as_ref().err().map_or("", |reason| reason))?);
    match (own, first) {
        (Ok(made), None) => Ok(made),
        (_, Some((rank, reason))) => Err(ClusterError::File { rank, reason }),
        (Err(reason), None) => Err(ClusterError::File { rank: ranks.rank(), reason }),
    }
}

/// Returns rank 0's value, or its error, on every rank.
fn of_first<T: serde::Serialize + for<'t> serde::Deserialize<'t> + Clone>(
    ranks: &impl Ranks,
    own: Option<Result<T, String>>,
) -> Result<T, ClusterError> {
    let own = agreed(ranks, own.transpose())?;
    all_gather(ranks, &own)?.swap_remove(0).ok_or(ClusterError::Message { rank: 0 })
}

/// Refuses a file that differs from rank 0's. `difference` describes the difference between rank 0's value and the other rank's.
fn same<T: PartialEq>(ranks: &impl Ranks, path: &Path, all: &[T], difference: impl FnOnce(&T, &T) -> String) -> Result<(), ClusterError> {
    let Some(rank) = all.iter().position(|other| *other != all[0]) else { return Ok(()) };
    // The rank that differs may have been given another path.
    let path = texts(ranks, &path.display().to_string())?.swap_remove(rank);
    Err(ClusterError::OtherFile { path, difference: difference(&all[0], &all[rank]), rank })
}

/// Describes the difference of files of the same size.
fn content<T>(_: &T, _: &T) -> String {
    "the content of the file differs from that of rank 0".into()
}

/// Refuses a file that only one rank can read. It is called before the file is opened, since opening a pipe waits for its writer.
fn readable_by_many(path: &Path, ranks: &impl Ranks) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(metadata) if ranks.size() > 1 && !metadata.is_file() && !metadata.is_dir() => {
            Err(format!("{}: it is not a regular file, and a pipe can be read by one rank only: give --from-rank-0", path.display()))
        }
        // Opening the file reports other errors.
        _ => Ok(()),
    }
}

/// The text of a fault in the file `path`.
fn text(path: &Path) -> impl Fn(Box<Fault>) -> String + use<'_> {
    |fault| InputError { path: path.to_owned(), fault }.to_string()
}

/// Reads a file that every rank has at the same path: each rank reads a slice. All ranks call it, on their own rayon pools.
///
/// What each rank reads is compared with rank 0's file.
///
/// # Errors
/// On every rank [`ClusterError::File`] if one of them can't read the file, and [`ClusterError::OtherFile`] if one has a different file.
pub fn read(path: &Path, options: &ReadOptions<'_>, ranks: &impl Ranks) -> Result<EdgeSlice, ClusterError> {
    agreed(ranks, readable_by_many(path, ranks))?;
    let opened = OpenFile::open(path).map_err(|fault| match &*fault {
        Fault::Open { reason, .. } if reason.kind() == std::io::ErrorKind::NotFound && ranks.rank() > 0 => {
            let copies = "each rank reads its slice of its own copy: copy the file there, or give --from-rank-0 where rank 0 has it";
            format!("{}; {copies}", text(path)(fault))
        }
        _ => text(path)(fault),
    });
    let opened = agreed(ranks, opened)?;
    same(ranks, path, &values(ranks, opened.size()), |of_first, own| {
        format!("the file has {own} bytes, but that of rank 0 has {of_first}")
    })?;
    let first = ranks.rank() == 0;
    let chosen = of_first(ranks, first.then(|| opened.recognise(options.format).map_err(text(path))))?;
    if values(ranks, opened.can_be_cut(&chosen).into()).contains(&0) {
        return read_whole(opened, &chosen, options, ranks);
    }
    let mut part = agreed(ranks, opened.cut(&chosen, ranks.rank(), ranks.size()).map_err(text(path)))?;
    compare(&part, path, ranks)?;
    let rows = values(ranks, agreed(ranks, part.rows().map_err(text(path)))?);
    let found = part.read(rows[..ranks.rank()].iter().sum(), options.progress);
    let found = all_gather(ranks, &agreed(ranks, found.map_err(text(path)))?)?;
    let mut all = Tallies::default();
    found.iter().for_each(|found| all.join(found));
    agreed(ranks, part.conclude(&all).map_err(text(path)))
}

/// Compares each rank's slice with the same bytes of rank 0's file.
fn compare(part: &FilePart, path: &Path, ranks: &impl Ranks) -> Result<(), ClusterError> {
    let wanted = if ranks.rank() == 0 { 0..ranks.size() } else { ranks.rank()..ranks.rank() + 1 };
    let sums: Result<Vec<u128>, Box<Fault>> = wanted.map(|rank| part.checksum(rank)).collect();
    let mut sums = agreed(ranks, sums.map_err(text(path)))?;
    let own = sums[0];
    sums.resize(ranks.size(), 0);
    ranks.broadcast(0, cast_slice_mut(&mut sums));
    same(ranks, path, &values(ranks, (own == sums[ranks.rank()]).into()), content)
}

/// The edges that a rank keeps of a piece of `count` edges.
fn share(count: usize, rank: usize, size: usize) -> std::ops::Range<usize> {
    let begin = |rank: usize| (count as u64 * rank as u64 / size as u64) as usize;
    begin(rank)..begin(rank + 1)
}

/// Appends edges to `kept`, or fails if there is not enough memory.
fn keep(kept: &mut Vec<[Vertex; 2]>, edges: impl ExactSizeIterator<Item = [Vertex; 2]>) -> Result<(), Box<Fault>> {
    let more = edges.len();
    if kept.capacity() - kept.len() < more {
        let held = kept.len();
        let bytes = |count: usize| 8 * (held + count) as u64;
        // Growing holds the edges twice while they are moved, so it adds at least half of their number at a time.
        let wanted = more.max(held / 2);
        if memory::check_available(bytes(wanted), "edges").is_err() || kept.try_reserve_exact(wanted).is_err() {
            return Err(Fault::OutOfMemory(bytes(more)).into());
        }
    }
    kept.extend(edges);
    Ok(())
}

/// A sum over edges that does not depend on their order.
fn sum_of(edges: &[[Vertex; 2]]) -> u64 {
    let mixed = |&[source, target]: &[Vertex; 2]| {
        let mut x = (u64::from(source) << 32 | u64::from(target)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    edges.par_iter().map(mixed).reduce(|| 0, u64::wrapping_add)
}

/// Each rank reads the whole file and keeps its share of every piece.
fn read_whole(opened: OpenFile, chosen: &Chosen, options: &ReadOptions<'_>, ranks: &impl Ranks) -> Result<EdgeSlice, ClusterError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let path = opened.path().to_owned();
    let (mut kept, mut sum) = (Vec::new(), 0u64);
    let whole = opened.in_pieces(chosen, options.progress, &mut |edges| {
        sum = sum.wrapping_add(sum_of(edges));
        keep(&mut kept, edges[share(edges.len(), rank, size)].iter().copied())
    });
    let whole = agreed(ranks, whole.map_err(text(&path)))?;
    same(ranks, &path, &all_gather(ranks, &(whole, sum))?, content)?;
    slice_of(kept, whole)
}

fn slice_of(kept: Vec<[Vertex; 2]>, whole: Whole) -> Result<EdgeSlice, ClusterError> {
    let range = 0..kept.len();
    // The reader has checked that the number fits 32 bits.
    let vertices = usize::try_from(whole.vertices).unwrap_or(usize::MAX);
    Ok(EdgeSlice::new(EdgeList::new(vertices, kept, whole.listing)?, range))
}

/// Edges that rank 0 sends at a time.
const PIECE: usize = 1 << 20;

/// Reads a file that only rank 0 has: rank 0 sends every rank its share. All ranks call it, with the same path.
///
/// # Errors
/// On every rank [`ClusterError::File`] if rank 0 can't read the file, or if a rank does not have enough memory for its share.
pub fn read_on_first(path: &Path, options: &ReadOptions<'_>, ranks: &impl Ranks) -> Result<EdgeSlice, ClusterError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let (mut kept, mut failed) = (Vec::new(), Ok(()));
    let mut whole = None;
    if rank == 0 {
        whole = Some(OpenFile::open(path).and_then(|opened| {
            let chosen = opened.recognise(options.format)?;
            opened.in_pieces(&chosen, options.progress, &mut |edges| {
                for edges in edges.chunks(PIECE) {
                    send(edges, ranks);
                    keep(&mut kept, edges[share(edges.len(), 0, size)].iter().copied())?;
                }
                Ok(())
            })
        }));
        ranks.broadcast(0, &mut [0; 8]);
    } else {
        let mut edges = Vec::new();
        while receive(ranks, &mut edges)? {
            if failed.is_ok() {
                // The other ranks learn of an error after rank 0 has sent all edges.
                failed = keep(&mut kept, edges.iter().copied());
            }
        }
    }
    let whole = of_first(ranks, whole.map(|whole| whole.map_err(text(path))))?;
    agreed(ranks, failed.map_err(text(path)))?;
    slice_of(kept, whole)
}

/// Rank 0 sends the other ranks their shares of some edges.
fn send(edges: &[[Vertex; 2]], ranks: &impl Ranks) {
    let size = ranks.size();
    ranks.broadcast(0, &mut (edges.len() as u64).to_le_bytes());
    let own = share(edges.len(), 0, size).len();
    let lengths: Vec<i32> = (0..size).map(|rank| if rank == 0 { 0 } else { 8 * share(edges.len(), rank, size).len() as i32 }).collect();
    let nothing = vec![0; size];
    let shares = Messages { bytes: cast_slice(&edges[own..]), lengths: &lengths, offsets: &starts(&lengths) };
    ranks.all_to_all(shares, &mut [], &nothing, &nothing);
}

/// Receives what [`send`] sends this rank. Returns false at the end.
fn receive(ranks: &impl Ranks, edges: &mut Vec<[Vertex; 2]>) -> Result<bool, ClusterError> {
    let mut count = [0; 8];
    ranks.broadcast(0, &mut count);
    let count = u64::from_le_bytes(count);
    if count > PIECE as u64 {
        return Err(ClusterError::Message { rank: 0 });
    }
    let count = count as usize;
    let size = ranks.size();
    if count > 0 {
        edges.resize(share(count, ranks.rank(), size).len(), [0; 2]);
        let nothing = vec![0; size];
        let mut expected = vec![0; size];
        expected[0] = 8 * edges.len() as i32;
        ranks.all_to_all(Messages { bytes: &[], lengths: &nothing, offsets: &nothing }, cast_slice_mut(edges), &expected, &nothing);
    }
    Ok(count > 0)
}
