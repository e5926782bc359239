//! Graph files that ranks read together.
//!
//! If every rank has the file, each reads a slice of it: slices have equally many bytes and are cut after a line end, or at an entry. Of a
//! file that can't be cut, or that only rank 0 has, rank 0 sends each rank a share of every piece. No rank holds all edges.

use std::{io::ErrorKind, path::Path};

use bytemuck::{cast_slice, cast_slice_mut};

use super::{
    ClusterError,
    host::all_gather,
    ranks::{Messages, Ranks, first_of, starts, texts, values},
};
use socbfs::{
    graph::{EdgeList, EdgeSlice, Vertex},
    memory,
};
use socbfs_io::{Chosen, Fault, FilePart, InputError, OpenFile, ReadOptions, Tallies, Whole};

/// Returns this rank's result if all ranks succeeded; otherwise, on every rank, the error of the first rank that failed.
fn agreed<T>(ranks: &impl Ranks, own: Result<T, String>) -> Result<T, ClusterError> {
    let first = first_of(texts(ranks, own.as_ref().err().map_or("", |reason| reason))?);
    match (own, first) {
        (Ok(made), None) => Ok(made),
        (_, Some((rank, reason))) => Err(ClusterError::File { rank, reason }),
        (Err(reason), None) => Err(ClusterError::File { rank: ranks.rank(), reason }),
    }
}

/// Returns rank 0's value on every rank.
fn of_first<T: serde::Serialize + for<'t> serde::Deserialize<'t>>(ranks: &impl Ranks, own: &Option<T>) -> Result<T, ClusterError> {
    all_gather(ranks, own)?.swap_remove(0).ok_or(ClusterError::Message { rank: 0 })
}

/// Refuses a file that differs from rank 0's. `difference` describes the difference between rank 0's value and the other rank's.
fn same<T: PartialEq>(ranks: &impl Ranks, path: &Path, all: &[T], difference: impl FnOnce(&T, &T) -> String) -> Result<(), ClusterError> {
    let Some(rank) = all.iter().position(|other| *other != all[0]) else { return Ok(()) };
    // The rank that differs may have been given another path.
    let path = texts(ranks, &path.display().to_string())?.swap_remove(rank);
    Err(ClusterError::OtherFile { path, difference: difference(&all[0], &all[rank]), rank })
}

/// The text of a fault in the file `path`.
fn text(path: &Path) -> impl Fn(Box<Fault>) -> String + use<'_> {
    |fault| InputError { path: path.to_owned(), fault }.to_string()
}

/// Opens the file at `path` and recognises its format.
fn open(path: &Path, options: &ReadOptions<'_>) -> Result<(OpenFile, Chosen), String> {
    let opened = OpenFile::open(path).and_then(|file| Ok((file.recognise(options.format)?, file)));
    opened.map(|(chosen, file)| (file, chosen)).map_err(text(path))
}

/// The cure if a rank has no copy of the file.
const COPIES: &str = "each rank reads its slice of its own copy: copy the file there, or give --from-rank-0 where rank 0 has it";

/// Reads a file that every rank has at the same path: each rank reads a slice. All ranks call it, on their own rayon pools.
///
/// What each rank reads is compared with rank 0's file. A file that can't be cut (compressed, a pipe, Ligra's and Rodinia's formats) is
/// read as by [`read_on_first`].
///
/// # Errors
/// On every rank [`ClusterError::File`] if one of them can't read the file, and [`ClusterError::OtherFile`] if one has a different file.
pub fn read(path: &Path, options: &ReadOptions<'_>, ranks: &impl Ranks) -> Result<EdgeSlice, ClusterError> {
    let first = agreed(ranks, (ranks.rank() == 0).then(|| open(path, options)).transpose())?;
    let (chosen, can_be_cut) = of_first(ranks, &first.as_ref().map(|(file, chosen)| (chosen.clone(), file.can_be_cut(chosen))))?;
    if !can_be_cut {
        return read_shares(path, first.map(Ok), options, ranks);
    }
    let opened = match first {
        Some((file, _)) => Ok(file),
        // Opening a pipe would wait for its writer.
        None if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) => {
            Err(format!("{}: it is not a regular file, but that of rank 0 is; {COPIES}", path.display()))
        }
        None => OpenFile::open(path).map_err(|fault| match &*fault {
            Fault::Open { reason, .. } if reason.kind() == ErrorKind::NotFound => format!("{}; {COPIES}", text(path)(fault)),
            _ => text(path)(fault),
        }),
    };
    let opened = agreed(ranks, opened)?;
    same(ranks, path, &values(ranks, opened.size()), |of_first, own| {
        format!("the file has {own} bytes, but that of rank 0 has {of_first}")
    })?;
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
    same(ranks, path, &values(ranks, (own == sums[ranks.rank()]).into()), |_, _| {
        "the content of the file differs from that of rank 0".into()
    })
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

/// Edges that rank 0 sends at a time.
const PIECE: usize = 1 << 20;

/// Reads a file that only rank 0 has: rank 0 sends every rank its share. All ranks call it, with the same path.
///
/// # Errors
/// On every rank [`ClusterError::File`] if rank 0 can't read the file, or if a rank does not have enough memory for its share.
pub fn read_on_first(path: &Path, options: &ReadOptions<'_>, ranks: &impl Ranks) -> Result<EdgeSlice, ClusterError> {
    read_shares(path, (ranks.rank() == 0).then(|| open(path, options)), options, ranks)
}

/// Reads `opened` on rank 0 and sends every rank its share.
fn read_shares(
    path: &Path,
    opened: Option<Result<(OpenFile, Chosen), String>>,
    options: &ReadOptions<'_>,
    ranks: &impl Ranks,
) -> Result<EdgeSlice, ClusterError> {
    let (rank, size) = (ranks.rank(), ranks.size());
    let (mut kept, mut failed) = (Vec::new(), Ok(()));
    let mut whole = None;
    if rank == 0 {
        whole = opened.map(|opened| {
            let (file, chosen) = opened?;
            let sent = file.in_pieces(&chosen, options.progress, &mut |edges| {
                for edges in edges.chunks(PIECE) {
                    send(edges, ranks);
                    keep(&mut kept, edges[share(edges.len(), 0, size)].iter().copied())?;
                }
                Ok(())
            });
            sent.map_err(text(path))
        });
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
    let whole: Option<Whole> = agreed(ranks, whole.transpose())?;
    agreed(ranks, failed.map_err(text(path)))?;
    let whole = of_first(ranks, &whole)?;
    let range = 0..kept.len();
    // The reader has checked that the number fits 32 bits.
    let vertices = usize::try_from(whole.vertices).unwrap_or(usize::MAX);
    Ok(EdgeSlice::new(EdgeList::new(vertices, kept, whole.listing)?, range))
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
