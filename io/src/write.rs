//! Writers of graph files.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rayon::prelude::*;

use super::error::InFile;
use super::tallies::Note;
use super::{Compression, Fault, Format, InputError, Progress};
use socbfs::files::AtomicFile;
use socbfs::graph::{EdgeList, Listing, Vertex, check_range};
use socbfs::memory;

/// Options of [`write()`].
#[derive(Default)]
pub struct WriteOptions<'a> {
    /// Whether the graph is directed: every arc is then written as it is, without its reverse. An entry of a [`Listing::Symmetric`] list is
    /// two arcs.
    pub directed: bool,
    /// Called with the number of entries written so far.
    pub progress: Option<&'a dyn Progress>,
}

/// Writes `edges` to `path`, which appears only when it is complete (see [`AtomicFile`]).
///
/// [`read`](super::read()) then returns:
/// - [`Format::EdgeListText`]: the same entries in the same order. A comment on the first line records their number, the number of vertices
///   if the last vertices have no edge, and a known [`Listing`]. (GAP's reader expects numbers only: remove the line with `tail -n +2`.)
/// - [`Format::MatrixMarket`]: the same entries in the same order, as `pattern general`. If the list has every edge once and is not
///   `directed`, it is `pattern symmetric`, with the larger vertex first.
/// - [`Format::GapSg`]: the same graph, row by row, with neighbours ascending, repeats and self-loops kept. If `directed`, arcs stay as
///   they are. Otherwise entries stay as they are if both directions are listed already; if not, each entry is written in both directions
///   (a self-loop once). GAP's own converter drops repeats and self-loops; its programs read files with and without them.
///
/// In text, an entry that is two arcs makes two lines, one after the other; a self-loop makes one.
///
/// # Errors
/// [`Fault::Write`]; [`Fault::Unsupported`] for a format that can't be written, a name with the suffix of a
/// compression, or too many vertices for `.sg`; [`Fault::Graph`] for a vertex out of range; [`Fault::OutOfMemory`] (`.sg` is
/// sorted in memory).
pub fn write(path: &Path, format: Format, edges: &EdgeList, options: &WriteOptions<'_>) -> Result<(), InputError> {
    write_to(path, format, edges, options).in_file(path)
}

fn write_to(path: &Path, format: Format, edges: &EdgeList, options: &WriteOptions<'_>) -> Result<(), Box<Fault>> {
    let unsupported = |reason: String| Err(Fault::Unsupported(reason).into());
    let compression = Compression::of_path(path);
    if compression != Compression::None {
        let command = compression.command();
        return unsupported(format!("compressed files are read, but not written; write it without the suffix, then run `{command}`"));
    }
    if !Format::WRITABLE.contains(&format) {
        return unsupported(format!("{format} is read, but not written; write {}", Format::WRITABLE.map(Format::name).join(" or ")));
    }
    let vertices = edges.vertices();
    if format == Format::GapSg && vertices > i32::MAX as usize {
        return unsupported(format!("GAP numbers vertices with 31 bits, too few for {vertices}; write el or mtx"));
    }
    // A vertex out of range is an error here, before anything is written.
    check_range(edges).map_err(Fault::Graph)?;
    let graph = if format == Format::GapSg { Some(Serialised::new(edges, options.directed).map_err(Fault::OutOfMemory)?) } else { None };
    let mut file = AtomicFile::create(path).map_err(Fault::Write)?;
    let lines = || Lines::new(edges, options.directed);
    let written = match graph {
        Some(graph) => graph.write(&mut file, options.progress),
        None if format == Format::MatrixMarket => matrix_market(&mut file, &lines(), options.progress),
        None => edge_list(&mut file, &lines(), options.progress),
    };
    Ok(written.and_then(|()| file.commit()).map_err(Fault::Write)?)
}

/// Entries that one task formats.
const BLOCK: usize = 1 << 16;

/// `0..len` in blocks of `size`.
fn blocks(len: usize, size: usize) -> Vec<std::ops::Range<usize>> {
    (0..len).step_by(size).map(|start| start..(start + size).min(len)).collect()
}

/// Writes the entries `0..len` block by block. `format` renders a block; four blocks per thread are rendered in parallel at a time.
fn in_blocks(
    out: &mut impl Write,
    len: usize,
    progress: Option<&dyn Progress>,
    format: impl Fn(std::ops::Range<usize>, &mut Vec<u8>) + Sync,
) -> io::Result<()> {
    let mut buffers = vec![Vec::new(); 4 * rayon::current_num_threads()];
    for batch in blocks(len, BLOCK).chunks(buffers.len()) {
        buffers.par_iter_mut().zip(batch).for_each(|(buffer, block)| {
            buffer.clear();
            format(block.clone(), buffer);
        });
        for (buffer, block) in buffers.iter().zip(batch) {
            out.write_all(buffer)?;
            if let Some(progress) = progress {
                progress.update(block.end as u64, len as u64);
            }
        }
    }
    Ok(())
}

/// Appends `first second\n`.
fn push_line(buffer: &mut Vec<u8>, first: Vertex, second: Vertex) {
    let mut digits = itoa::Buffer::new();
    buffer.extend_from_slice(digits.format(first).as_bytes());
    buffer.push(b' ');
    buffer.extend_from_slice(digits.format(second).as_bytes());
    buffer.push(b'\n');
}

/// A list in the form in which text holds it.
struct Lines<'a> {
    edges: &'a EdgeList,
    /// Whether each entry that is not a self-loop is followed by its mirror.
    mirrored: bool,
    /// Number of lines.
    count: u64,
    /// How the lines list an undirected edge.
    listing: Listing,
}

impl<'a> Lines<'a> {
    fn new(edges: &'a EdgeList, directed: bool) -> Self {
        let mirrored = edges.listing().is_mirrored(directed);
        let listing = match edges.listing() {
            Listing::Symmetric if directed => Listing::BothDirections,
            // As a list of arcs it says nothing about the opposite direction.
            Listing::Once if directed => Listing::Unknown,
            listing => listing,
        };
        Self { edges, mirrored, count: lines_of(edges, directed), listing }
    }

    fn for_each(&self, block: std::ops::Range<usize>, mut visit: impl FnMut(Vertex, Vertex)) {
        self.edges.for_each(block, |source, target| {
            visit(source, target);
            if self.mirrored && source != target {
                visit(target, source);
            }
        });
    }
}

/// Number of lines that text has for `edges`: for a directed graph, the number of arcs in every format.
pub fn lines_of(edges: &EdgeList, directed: bool) -> u64 {
    let entries = edges.len() as u64;
    if edges.listing().is_mirrored(directed) { 2 * entries - self_loops(edges) } else { entries }
}

fn self_loops(edges: &EdgeList) -> u64 {
    let of = |block| {
        let mut loops = 0;
        edges.for_each(block, |source, target| loops += u64::from(source == target));
        loops
    };
    blocks(edges.len(), BLOCK).into_par_iter().map(of).sum()
}

fn edge_list(out: &mut impl Write, lines: &Lines<'_>, progress: Option<&dyn Progress>) -> io::Result<()> {
    let edges = lines.edges;
    let seen = blocks(edges.len(), BLOCK).into_par_iter().map(|block| {
        let mut seen = 0;
        edges.for_each(block, |source, target| seen = seen.max(source.max(target) as usize + 1));
        seen
    });
    let isolated_behind = seen.max().unwrap_or(0) < edges.vertices() || edges.is_empty();
    let vertices = isolated_behind.then_some(edges.vertices() as u64);
    // The note is on the first line, so that a file that is cut off still has it.
    if let Some(text) = (Note { vertices, listing: Some(lines.listing), entries: Some(lines.count) }).text() {
        writeln!(out, "#{text}")?;
    }
    in_blocks(out, edges.len(), progress, |block, buffer| lines.for_each(block, |source, target| push_line(buffer, source, target)))
}

fn matrix_market(out: &mut impl Write, lines: &Lines<'_>, progress: Option<&dyn Progress>) -> io::Result<()> {
    let (edges, listing) = (lines.edges, lines.listing);
    let symmetric = listing.is_once();
    writeln!(out, "%%MatrixMarket matrix coordinate pattern {}", if symmetric { "symmetric" } else { "general" })?;
    if listing == Listing::BothDirections {
        if let Some(text) = (Note { vertices: None, listing: Some(listing), entries: None }).text() {
            writeln!(out, "%{text}")?;
        }
    }
    writeln!(out, "{0} {0} {1}", edges.vertices(), lines.count)?;
    in_blocks(out, edges.len(), progress, |block, buffer| {
        lines.for_each(block, |source, target| {
            // The lower triangle: row >= column. A vertex is below u32::MAX, so adding 1 can't overflow.
            let (row, column) = if symmetric && source < target { (target, source) } else { (source, target) };
            push_line(buffer, row + 1, column + 1);
        });
    })
}

/// A graph in the form in which `.sg` holds it.
struct Serialised {
    out: Rows,
    incoming: Incoming,
}

/// The incoming arcs of a `.sg` file.
enum Incoming {
    /// None: the graph is undirected.
    None,
    /// The outgoing arcs again: in this directed graph every arc has its mirror.
    Same,
    Rows(Rows),
}

/// Sorted adjacency with 64-bit offsets.
#[derive(PartialEq, Eq)]
struct Rows {
    offsets: Vec<u64>,
    targets: Vec<Vertex>,
}

/// The ends of an entry whose rows get an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Source,
    Target,
    /// A self-loop has one end.
    Both,
}

impl Serialised {
    /// The error is the number of bytes for which there is no memory.
    fn new(edges: &EdgeList, directed: bool) -> Result<Self, u64> {
        if edges.listing().is_mirrored(directed) {
            return Ok(Self { out: Rows::new(edges, Side::Both)?, incoming: Incoming::Same });
        }
        if !directed && edges.listing().is_once() {
            return Ok(Self { out: Rows::new(edges, Side::Both)?, incoming: Incoming::None });
        }
        let (out, incoming) = (Rows::new(edges, Side::Source)?, Rows::new(edges, Side::Target)?);
        if directed {
            return Ok(Self { out, incoming: Incoming::Rows(incoming) });
        }
        // Both directions are listed exactly if every row equals its transposed twin.
        if out == incoming {
            return Ok(Self { out, incoming: Incoming::None });
        }
        drop((out, incoming));
        if edges.listing() == Listing::BothDirections {
            log::warn!(
                "not every edge is listed in both directions, though the format of the input promises it; each entry is written in both"
            );
        }
        Ok(Self { out: Rows::new(edges, Side::Both)?, incoming: Incoming::None })
    }

    fn write(&self, out: &mut impl Write, progress: Option<&dyn Progress>) -> io::Result<()> {
        let incoming = match &self.incoming {
            Incoming::None => None,
            Incoming::Same => Some(&self.out),
            Incoming::Rows(rows) => Some(rows),
        };
        out.write_all(&[u8::from(incoming.is_some())])?;
        out.write_all(&(self.out.targets.len() as u64).to_le_bytes())?;
        out.write_all(&(self.out.offsets.len() as u64 - 1).to_le_bytes())?;
        for rows in std::iter::once(&self.out).chain(incoming) {
            in_blocks(out, rows.offsets.len(), None, |block, buffer| {
                buffer.extend(rows.offsets[block].iter().flat_map(|offset| offset.to_le_bytes()));
            })?;
            in_blocks(out, rows.targets.len(), progress, |block, buffer| {
                buffer.extend(rows.targets[block].iter().flat_map(|target| target.to_le_bytes()));
            })?;
        }
        Ok(())
    }
}

impl Rows {
    /// Rows of the vertices on `side` of the entries, all of which must be in range. The error is as for [`Serialised::new`].
    fn new(edges: &EdgeList, side: Side) -> Result<Self, u64> {
        let vertices = edges.vertices();
        let entries = if side == Side::Both { 2 * edges.len() - self_loops(edges) as usize } else { edges.len() };
        // Counters and offsets, targets, and a slice for every row that is sorted, of which there are at most half as many as entries.
        let sorted = (entries as u64 / 2).min(vertices as u64);
        let bytes = (vertices as u64 + 1) * 16 + entries as u64 * 4 + sorted * size_of::<&[Vertex]>() as u64;
        // The system may grant more memory than it has, and end a process that touches it.
        memory::check_available(bytes, "the rows of the graph").map_err(|_| bytes)?;
        let each = |visit: &(dyn Fn(usize, Vertex) + Sync)| {
            blocks(edges.len(), BLOCK).into_par_iter().for_each(|block| match side {
                Side::Source => edges.for_each(block, |source, target| visit(source as usize, target)),
                Side::Target => edges.for_each(block, |source, target| visit(target as usize, source)),
                Side::Both => edges.for_each(block, |source, target| {
                    visit(source as usize, target);
                    if source != target {
                        visit(target as usize, source);
                    }
                }),
            });
        };
        // The counters are relaxed: the end of each parallel loop orders them before the next.
        let mut next: Vec<AtomicU64> = with_capacity(vertices).ok_or(bytes)?;
        next.resize_with(vertices, AtomicU64::default);
        each(&|row, _| {
            next[row].fetch_add(1, Ordering::Relaxed);
        });
        let mut offsets = with_capacity(vertices + 1).ok_or(bytes)?;
        offsets.push(0);
        let mut sum = 0;
        for counter in &mut next {
            sum += std::mem::replace(counter.get_mut(), sum);
            offsets.push(sum);
        }
        let mut slots: Vec<AtomicU32> = with_capacity(entries).ok_or(bytes)?;
        slots.resize_with(entries, AtomicU32::default);
        each(&|row, target| {
            let slot = next[row].fetch_add(1, Ordering::Relaxed);
            slots[slot as usize].store(target, Ordering::Relaxed);
        });
        drop(next);
        let mut targets: Vec<Vertex> = slots.into_iter().map(AtomicU32::into_inner).collect(); // in place
        let mut rest = &mut targets[..];
        let mut rows = Vec::new();
        for pair in offsets.windows(2) {
            let (row, tail) = rest.split_at_mut((pair[1] - pair[0]) as usize);
            if row.len() > 1 {
                rows.push(row);
            }
            rest = tail;
        }
        rows.into_par_iter().for_each(|row| row.sort_unstable());
        Ok(Self { offsets, targets })
    }
}

/// An empty vector with room for `capacity` elements, if there is memory.
fn with_capacity<T>(capacity: usize) -> Option<Vec<T>> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(capacity).ok()?;
    Some(vector)
}
