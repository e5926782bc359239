//! Writes values of all vertices to one file: by all ranks at once if they see the same file, else through rank 0.
//!
//! Values are stored by row at their owners, but the file is in the order of original vertices. So every rank receives the values of a run
//! of vertices at a time, and encodes them. Their offset follows from the lengths before them, which all ranks exchange. A rank then writes
//! whole blocks of the file. The block in which a run ends is written by the rank of that run; the rank of the next run sends it the bytes
//! that it has of that block. So no two machines write to the same page of a network file system.

use std::{
    fs::{File, OpenOptions},
    hash::{BuildHasher, RandomState},
    io,
    ops::Range,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

use super::{
    ClusterError,
    host::{Host, all_gather},
    part::Part,
    ranks::{Arrived, Ranks, all_to_all, values},
    reading::agreed,
};
use socbfs::graph::{NONE, Vertex};

/// Vertices of a run by default: values of 4 MiB on a rank.
pub const SLICE: usize = 1 << 20;

/// Most vertices of a run. A rank then sends less than 2^31 bytes at once, the most that MPI can count: with up to 16 ranks, 8 bytes for
/// each vertex of a run for every rank, and with more ranks, 8 bytes for each vertex that it owns.
const LONGEST: usize = 1 << 23;

/// The region of the file that a rank writes begins and ends at multiples of this: at least a page on any machine.
const BLOCK: u64 = 64 << 10;

/// The values of this rank's vertices in the order of original numbers, which are sent run by run to the ranks that write the runs.
struct Sorted<'v> {
    pairs: &'v [[u32; 2]],
}

/// On rank 0 also the values of the `sources` that no rank owns, by `of_source`.
fn sorted(part: &Part, by_row: &[u32], (sources, of_source): Sources<'_>) -> Vec<[u32; 2]> {
    let mut pairs: Vec<[u32; 2]> = part.own_vertices().map(|(row, vertex)| [vertex, by_row[row]]).collect();
    if part.deal.rank == 0 {
        pairs.extend(part.without_owner(sources).into_iter().map(|source| [source, of_source(source)]));
    }
    pairs.sort_unstable();
    pairs
}

/// The sources of a search, and the value of a source. No rank has the value of a source that has no edge.
pub type Sources<'s> = (&'s [Vertex], fn(Vertex) -> u32);

impl Sorted<'_> {
    /// Sends rank `r` the values of the vertices `runs[r]`. Runs are consecutive. Returns the values of this rank's run. A vertex that no
    /// rank owns gets [`NONE`].
    ///
    /// # Errors
    /// [`ClusterError::Message`].
    fn deal(&mut self, ranks: &impl Ranks, runs: &[Range<usize>]) -> Result<Vec<u32>, ClusterError> {
        let (all, mut arrived) = (self.pairs, Arrived::default());
        let cut = |run: &Range<usize>| {
            let (piece, rest) = self.pairs.split_at(self.pairs.partition_point(|&[vertex, _]| (vertex as usize) < run.end));
            self.pairs = rest;
            piece.len()
        };
        let counts: Vec<usize> = runs.iter().map(cut).collect();
        let own = runs[ranks.rank()].clone();
        all_to_all(ranks, &all[..counts.iter().sum()], &counts, own.len(), &mut arrived)?;
        let mut of_run = vec![NONE; own.len()];
        for (rank, pairs) in arrived.of_ranks() {
            for &[vertex, value] in pairs {
                let place = (vertex as usize).checked_sub(own.start).and_then(|at| of_run.get_mut(at));
                *place.ok_or(ClusterError::Message { rank })? = value;
            }
        }
        Ok(of_run)
    }
}

/// Calls `to` on rank 0 with a value for every vertex, in the order of original numbers, `slice` vertices at a time: no rank holds all
/// values.
///
/// Every rank calls it with the values of its rows, and with the same sources. Any other vertex that no rank owns gets [`NONE`]. A `slice`
/// of more than 2^23 vertices counts as 2^23, since MPI can't count longer messages.
///
/// # Errors
/// The first error of `to`, on rank 0, after all slices have arrived; [`ClusterError::Message`], as the source of the error.
pub fn in_slices(
    ranks: &impl Ranks,
    part: &Part,
    by_row: &[u32],
    sources: Sources<'_>,
    slice: usize,
    to: &mut dyn FnMut(&[u32]) -> io::Result<()>,
) -> io::Result<()> {
    let pairs = sorted(part, by_row, sources);
    let mut sorted = Sorted { pairs: &pairs };
    let (slice, mut written) = (slice.clamp(1, LONGEST), Ok(()));
    for begin in (0..part.vertices()).step_by(slice) {
        let end = (begin + slice).min(part.vertices());
        // The whole slice goes to rank 0.
        let mut runs = vec![end..end; ranks.size()];
        runs[0] = begin..end;
        let of_slice = sorted.deal(ranks, &runs).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if ranks.rank() == 0 && written.is_ok() {
            written = to(&of_slice);
        }
    }
    written
}

/// A file that all ranks have opened, and that is the same file on all of them.
#[derive(Debug)]
pub struct SharedFile {
    file: File,
    /// This rank runs on another machine than rank 0, which sees its writes only after they were synced.
    sync: bool,
}

impl SharedFile {
    /// Opens the file that rank 0 has at `path` (`None`: rank 0 has no file) on all ranks, if they see the same file there; otherwise
    /// returns `None` on all of them. All ranks call it; only rank 0's `path` is used. The file is empty before and after.
    ///
    /// Rank 0 writes a random number into the file. Each other rank looks for that number, and writes a number of its own after it. Rank 0
    /// then looks for those. So two files are distinguished even if their folders have the same name or the same content.
    ///
    /// # Errors
    /// [`ClusterError::Message`], and [`ClusterError::File`] if rank 0 can't empty its file.
    pub fn open(ranks: &impl Ranks, path: Option<&Path>) -> Result<Option<Self>, ClusterError> {
        let (rank, host) = (ranks.rank(), Host::read(Path::new("/")));
        let token = RandomState::new().hash_one(rank).to_le_bytes();
        let first = path.filter(|_| rank == 0).and_then(|path| {
            // Only a path that is valid UTF-8 can be sent to the other ranks.
            let name = path.to_str()?.to_owned();
            let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
            if file.write_all_at(&token, 0).and_then(|()| file.sync_data()).is_err() {
                // Rank 0 then writes the whole file itself, and reports the errors of that.
                let _ = file.set_len(0);
                return None;
            }
            Some((file, name))
        });
        let heads = all_gather(ranks, &(first.as_ref().map(|(_, path)| path.clone()), token, host.boot.clone()))?;
        let Some((Some(path), of_first, boot)) = heads.first().cloned() else { return Ok(None) };
        let own = match first {
            Some((file, _)) => Some(file),
            None => OpenOptions::new().read(true).write(true).custom_flags(nix::libc::O_NOFOLLOW).open(&path).ok().filter(|file| {
                let mut found = [0; 8];
                file.read_exact_at(&mut found, 0).is_ok()
                    && found == of_first
                    && file.write_all_at(&token, 8 * rank as u64).and_then(|()| file.sync_data()).is_ok()
            }),
        };
        let all_there = !values(ranks, own.is_some().into()).contains(&0);
        // Rank 0 opens the file again, since a network file system may have cached what rank 0 saw of it before.
        let all_seen = rank > 0
            || all_there && {
                let mut found = vec![0; 8 * ranks.size()];
                let read = File::open(&path).and_then(|file| file.read_exact_at(&mut found, 0));
                read.is_ok() && found.chunks_exact(8).zip(&heads).all(|(found, (_, token, _))| found == token)
            };
        let same = all_there && !values(ranks, all_seen.into()).contains(&0);
        let emptied = match &own {
            Some(file) if rank == 0 => file.set_len(0).map_err(|error| format!("{path}: {error}")),
            _ => Ok(()),
        };
        agreed(ranks, emptied)?;
        Ok(own.filter(|_| same).map(|file| Self { file, sync: host.boot != boot }))
    }
}

/// Writes a value for every vertex to a file, in turns: of each `size` runs of `slice` vertices, every rank writes one. `encode` encodes
/// values, given the vertex of the first. `head` is written before them. All ranks call it, with the same `head` and `slice`. As in
/// [`in_slices`], a `slice` has at most 2^23 vertices.
///
/// # Errors
/// [`ClusterError::File`] on every rank if one of them can't write, and [`ClusterError::Message`]. The file is then not complete.
pub fn write_together(
    ranks: &impl Ranks,
    part: &Part,
    by_row: &[u32],
    sources: Sources<'_>,
    slice: usize,
    (file, head): (&SharedFile, &[u8]),
    encode: impl Fn(Vertex, &[u32]) -> io::Result<Vec<u8>>,
) -> Result<(), ClusterError> {
    let (rank, size, slice) = (ranks.rank(), ranks.size(), slice.clamp(1, LONGEST));
    let pairs = sorted(part, by_row, sources);
    let mut sorted = Sorted { pairs: &pairs };
    let mut written = Ok(());
    // On rank 0, `carry` holds the bytes from `base`, the beginning of a block, to the next run.
    let (mut base, mut carry, mut block) = (0, Arrived::default(), Arrived::default());
    if rank == 0 {
        carry.all = head.to_vec();
    }
    for begin in (0..part.vertices()).step_by(slice * size) {
        let at = |rank: usize| (begin + rank * slice).min(part.vertices());
        let runs: Vec<Range<usize>> = (0..size).map(|rank| at(rank)..at(rank + 1)).collect();
        let own = sorted.deal(ranks, &runs)?;
        let mut bytes = std::mem::take(&mut carry.all);
        match encode(runs[rank].start as Vertex, &own) {
            Ok(encoded) => bytes.extend(encoded),
            Err(error) => written = written.and(Err(error)),
        }
        let lengths = values(ranks, bytes.len() as u64);
        if let Some(rank) = lengths.iter().position(|&length| length > i32::MAX as u64) {
            return Err(ClusterError::Message { rank });
        }
        // Offsets where the bytes of each rank begin, and last the offset where all end.
        let starts: Vec<u64> = (0..=size).map(|rank| base + lengths[..rank].iter().sum::<u64>()).collect();
        // Each rank writes the whole blocks from its entry to the next.
        let mut regions: Vec<u64> = starts.iter().map(|start| start.next_multiple_of(BLOCK)).collect();
        regions[size] = starts[size] / BLOCK * BLOCK;
        let end = regions[size];
        regions.iter_mut().for_each(|region| *region = (*region).min(end));
        let within = |region: Range<u64>| {
            let of = |at: u64| (at.clamp(starts[rank], starts[rank + 1]) - starts[rank]) as usize;
            of(region.start)..of(region.end.max(region.start))
        };
        let to: Vec<usize> = (0..size).map(|rank| within(regions[rank]..regions[rank + 1]).len()).collect();
        let first = within(regions[0]..regions[1]).start;
        let last = within(end..end).start;
        all_to_all(ranks, &bytes[first..last], &to, (regions[rank + 1] - regions[rank]) as usize, &mut block)?;
        written = written.and_then(|()| file.file.write_all_at(&block.all, regions[rank]));
        // The rest is less than a block. Rank 0 keeps it for the next run.
        let mut rest = vec![0; size];
        rest[0] = bytes.len() - last;
        all_to_all(ranks, &bytes[last..], &rest, BLOCK as usize, &mut carry)?;
        base = end;
    }
    written = written.and_then(|()| file.file.write_all_at(&carry.all, base));
    if file.sync {
        written = written.and_then(|()| file.file.sync_data());
    }
    agreed(ranks, written.map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ThreadRanks,
        damaged::{Damaged, Operation},
    };
    use socbfs::graph::{EdgeList, Listing, Order};

    /// Writes the numbers of 130 vertices in one run, over `size` ranks with this damage. Returns the bytes of the file, and what
    /// [`in_slices`] passes on.
    fn write(size: usize, damage: impl Fn(&mut [u8]) + Sync) -> (Result<Vec<u8>, ClusterError>, io::Result<Vec<u32>>) {
        let damage = |operation: Operation, bytes: &mut [u8]| {
            if operation == Operation::AllToAll {
                damage(bytes);
            }
        };
        let list = EdgeList::new(130, vec![[0, 1], [1, 128], [128, 0]], Listing::Once).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers");
        std::fs::write(&path, "").unwrap();
        let of_ranks = ThreadRanks::run(size, |ranks| {
            let part = Part::build(&list, Order::Original, ranks).unwrap();
            let mut by_row = vec![NONE; part.input_degrees().len()];
            part.own_vertices().for_each(|(row, vertex)| by_row[row] = vertex);
            let file = SharedFile::open(ranks, Some(&path)).unwrap().unwrap();
            let ranks = Damaged { ranks, damage: &damage };
            let encode = |_: Vertex, values: &[u32]| Ok(values.iter().flat_map(|value| value.to_le_bytes()).collect());
            let written = write_together(&ranks, &part, &by_row, (&[], |v| v), usize::MAX, (&file, b"head"), encode);
            let mut passed = Vec::new();
            let sliced = in_slices(&ranks, &part, &by_row, (&[], |v| v), usize::MAX, &mut |values| {
                passed.extend_from_slice(values);
                Ok(())
            });
            (written.map(|()| std::fs::read(&path).unwrap()), sliced.map(|()| passed))
        });
        of_ranks.into_iter().next().unwrap()
    }

    #[test]
    fn a_run_may_be_longer_than_the_graph() {
        let (written, passed) = write(2, |_| ());
        let numbers: Vec<u32> = (0..130).collect();
        let bytes: Vec<u8> = b"head".iter().copied().chain(numbers.iter().flat_map(|number| number.to_le_bytes())).collect();
        assert_eq!((written.unwrap(), passed.unwrap()), (bytes, numbers));
    }

    #[test]
    fn damaged_values_are_errors() {
        let check = |what: &str, damage: &(dyn Fn(&mut [u8]) + Sync)| {
            let (written, passed) = write(1, damage);
            assert!(matches!(written, Err(ClusterError::Message { rank: 0 })), "{what}: {written:?}");
            let passed = passed.unwrap_err();
            let source = passed.get_ref().and_then(|source| source.downcast_ref());
            assert!(matches!(source, Some(ClusterError::Message { rank: 0 })), "{what}: {passed}");
        };
        // The announced length, which is sent alone.
        for length in [-8, i32::MIN, i32::MAX, 8 * 131] {
            check(&format!("length {length}"), &|bytes| {
                if bytes.len() == 4 {
                    bytes.copy_from_slice(&i32::to_le_bytes(length));
                }
            });
        }
        for vertex in [130, NONE] {
            check(&format!("vertex {vertex}"), &|bytes| {
                if bytes.len() > 4 {
                    bytes[8..12].copy_from_slice(&u32::to_le_bytes(vertex));
                }
            });
        }
    }
}
