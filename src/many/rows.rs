//! Levels and parents of many searches as arrays, vertex by vertex.
//!
//! A vertex is told of at several levels, each time of some of the searches, and its row of levels is a cache line or more. So levels
//! are kept as bits first: one word for each bit of `level + 1`, all of a vertex side by side, in the order of the search. When it is done
//! every row is written once, from the first to the last. Levels that do not fit are written where they belong at once, and rows so
//! short that this pays from the beginning.

use super::{AHEAD, Limits, ManyOutcome, SearchError, Sink, VERTICES, Words, each_bit};
use crate::{
    engine::{SPREAD, Team, prefetch, share},
    graph::{Layout, NONE, Place, Vertex},
    memory::{Plain, Shared},
};

/// Words of a vertex for its levels.
pub(super) const PLANES: usize = 4;
/// Levels from this one on do not fit these words, in which 0 stands for "not reached".
const TOO_DEEP: u32 = (1 << PLANES) - 1;
/// Rows of fewer entries are written at once.
pub(super) const ENOUGH: usize = 16;
/// Entries that one word fills.
const WORD: usize = u64::BITS as usize;

/// A type that levels are written as; its largest value stands for "not reached".
pub trait LevelNumber: Plain + PartialEq {
    /// Not reached.
    const NONE: Self;
    /// The deepest level it can hold.
    const DEEPEST: u32;

    /// Writes `level` into those of the `columns` entries at `row` whose bit is set in `searches`.
    ///
    /// # Safety
    /// `row` points to `columns` entries, and no other thread uses them.
    unsafe fn write(row: *mut Self, columns: usize, searches: u64, level: u32);

    /// One level deeper; "not reached" stays that.
    fn deeper(self) -> Self;

    /// The level below `code`, or "not reached" of 0.
    fn of_code(code: u8) -> Self;
}

impl LevelNumber for u32 {
    const NONE: Self = NONE;
    const DEEPEST: u32 = NONE - 1;

    unsafe fn write(row: *mut Self, _: usize, searches: u64, level: u32) {
        // SAFETY: a bit that is set is a column (see `write`).
        each_bit(searches, |column| unsafe { *row.add(column) = level });
    }

    #[inline]
    fn deeper(self) -> Self {
        self.saturating_add(1)
    }

    #[inline]
    fn of_code(code: u8) -> Self {
        Self::from(code).wrapping_sub(1)
    }
}

impl LevelNumber for u8 {
    const NONE: Self = Self::MAX;
    const DEEPEST: u32 = 254;

    unsafe fn write(row: *mut Self, columns: usize, searches: u64, level: u32) {
        let (whole, level) = (columns / 8, level as u8);
        for eight in 0..whole {
            let bits = (searches >> (8 * eight)) as u8;
            if bits != 0 {
                let mask = SPREAD[bits as usize];
                // SAFETY: these are eight of the columns.
                let entries = unsafe { &mut *row.add(8 * eight).cast::<[u8; 8]>() };
                for (entry, mask) in entries.iter_mut().zip(mask) {
                    *entry = *entry & !mask | level & mask;
                }
            }
        }
        let rest = searches.checked_shr(8 * whole as u32).unwrap_or(0);
        // SAFETY: a bit that is set is a column.
        each_bit(rest, |column| unsafe { *row.add(8 * whole + column) = level });
    }

    #[inline]
    fn deeper(self) -> Self {
        self.saturating_add(1)
    }

    #[inline]
    fn of_code(code: u8) -> Self {
        code.wrapping_sub(1)
    }
}

/// Where in the caller's arrays the entries of a pass lie.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// Entries of a vertex.
    pub(super) stride: usize,
    /// The first of this pass.
    pub(super) first: usize,
    /// Their number.
    pub(super) columns: usize,
}

impl Rows {
    fn of(self, vertex: Vertex) -> usize {
        vertex as usize * self.stride + self.first
    }
}

/// What a pass writes. The arrays have a row for every vertex (`trees_into` checks it), but `parents` of `Written<N, false>`.
pub(super) struct Written<'a, N, const PARENTS: bool> {
    pub(super) layout: &'a Layout,
    pub(super) roots: &'a [Vertex],
    pub(super) rows: Rows,
    pub(super) levels: Shared<N>,
    pub(super) parents: Shared<Vertex>,
    /// [`PLANES`] words, zero at first, for every vertex that is searched; `None`: the rows say of every vertex that it was not reached,
    /// or what was.
    pub(super) planes: Option<Shared<u64>>,
    /// See [`late`](super::late).
    pub(super) late: u64,
}

impl<N: LevelNumber, const PARENTS: bool> Written<'_, N, PARENTS> {
    /// The pass, and all that is left to be written after it.
    pub(super) fn pass(mut self, words: &mut Words, team: &Team, limits: &Limits<'_>) -> Result<ManyOutcome, SearchError> {
        let outcome = words.pass(self.layout, team, self.roots, &mut self, limits)?;
        self.write_rows(team);
        self.write_leaves(team);
        Ok(outcome)
    }

    /// These searches have reached `v` at `level`.
    #[inline]
    fn enter(&self, v: Vertex, level: u32, searches: u64) {
        if let Some(planes) = self.planes {
            for plane in (0..PLANES).filter(|plane| (level + 1) >> plane & 1 == 1) {
                // SAFETY: a vertex that is searched has so many words, and no two threads are told of one at once.
                unsafe { *planes.get().add(v as usize * PLANES + plane) |= searches };
            }
        } else if level <= N::DEEPEST {
            let row = self.rows.of(self.layout.to_original(v));
            // SAFETY: the array has a row for every vertex, and no two threads are told of one at once.
            unsafe { N::write(self.levels.get().add(row), self.rows.columns, searches, level) };
        }
    }

    /// Writes the rows of leaves that are not searched, by those of the vertices on which they hang, and what is said of roots that are
    /// not searched.
    fn write_leaves(&self, team: &Team) {
        let (layout, rows) = (self.layout, self.rows);
        let leaves = layout.leaves();
        let hosts = leaves.hosts().len();
        share(team, hosts, VERTICES, hosts < VERTICES, &|_, range| {
            for index in range {
                let host = layout.to_original(leaves.hosts()[index]);
                // SAFETY: the array has a row for every vertex; that of a host is only read now, and those of leaves, each of which hangs
                // on one host, are handed out once.
                let levels = unsafe { std::slice::from_raw_parts(self.levels.get().add(rows.of(host)), rows.columns) };
                for &leaf in leaves.of(index) {
                    // SAFETY: as above.
                    let row = unsafe { std::slice::from_raw_parts_mut(self.levels.get().add(rows.of(leaf)), rows.columns) };
                    for (column, (level, above)) in row.iter_mut().zip(levels).enumerate() {
                        *level = above.deeper();
                        if PARENTS && *above != N::NONE {
                            // SAFETY: as above, of the array of parents.
                            unsafe { *self.parents.get().add(rows.of(leaf) + column) = host };
                        }
                    }
                }
            }
        });
        for (column, &root) in self.roots.iter().enumerate() {
            let write = |vertex: Vertex, level: u32| {
                // SAFETY: the arrays have a row for every vertex, and the team has ended its work.
                unsafe {
                    N::write(self.levels.get().add(rows.of(vertex)), rows.columns, 1 << column, level);
                    if PARENTS {
                        *self.parents.get().add(rows.of(vertex) + column) = root;
                    }
                }
            };
            match layout.place(root) {
                Place::Searched(_) => {}
                Place::LeafOf(_) | Place::Alone => write(root, 0),
                Place::Paired(other) => {
                    write(root, 0);
                    write(other, 1);
                }
            }
        }
    }

    /// Writes the rows of what is in the planes, which are not needed any more.
    fn write_rows(&mut self, team: &Team) {
        let Some(planes) = self.planes.take() else { return };
        let (layout, rows, levels) = (self.layout, self.rows, self.levels);
        let vertices = layout.vertices();
        let words_of = |original: Vertex| match layout.to_internal(original) {
            NONE => None,
            // SAFETY: a vertex that is searched has so many words, and only this call uses them.
            v => Some(unsafe { planes.get().add(v as usize * PLANES) }),
        };
        share(team, vertices, VERTICES, vertices < VERTICES, &|_, range| {
            for v in range {
                if v + AHEAD < vertices {
                    if let Some(ahead) = words_of((v + AHEAD) as Vertex) {
                        prefetch(ahead.cast_const());
                    }
                }
                let words = words_of(v as Vertex);
                if words.is_none() && matches!(layout.place(v as Vertex), Place::LeafOf(_)) {
                    continue; // see `write_leaves`
                }
                // SAFETY: see `words_of`.
                let words = words.map_or([0; PLANES], |words| unsafe { words.cast::<[u64; PLANES]>().read() });
                // SAFETY: the array has a row for every vertex, and each is handed out once.
                let row = unsafe { std::slice::from_raw_parts_mut(levels.get().add(rows.of(v as Vertex)), rows.columns) };
                write_row(row, words);
            }
        });
    }
}

impl<N: LevelNumber, const PARENTS: bool> Sink for Written<'_, N, PARENTS> {
    const PARENTS: bool = PARENTS;

    fn begins(&self, root: Vertex, place: Place, search: usize) {
        // What is not searched is written in the end.
        if let Place::Searched(internal) | Place::LeafOf(internal) = place {
            self.reached(internal, 0, 1 << search);
            if PARENTS {
                let row = self.rows.of(self.layout.to_original(internal));
                // SAFETY: the array has a row for every vertex, and a search is one of the columns.
                unsafe { *self.parents.get().add(row + search) = root };
            }
        }
    }

    #[inline]
    fn reached(&self, v: Vertex, level: u32, searches: u64) {
        if self.late & searches != 0 {
            self.enter(v, level + 1, searches & self.late);
        }
        if searches & !self.late != 0 {
            self.enter(v, level, searches & !self.late);
        }
    }

    #[inline]
    fn parent(&self, v: Vertex, parent: Vertex, searches: u64) {
        let (row, parent) = (self.rows.of(self.layout.to_original(v)), self.layout.to_original(parent));
        // SAFETY: the array has a row for every vertex, a bit that is set is one of the columns, and a search has one parent of a vertex.
        each_bit(searches, |column| unsafe { *self.parents.get().add(row + column) = parent });
    }

    #[inline]
    fn soon(&self, v: Vertex) {
        // Planes lie in the order in which they are written.
        if self.planes.is_none() {
            prefetch(self.levels.get().wrapping_add(self.rows.of(self.layout.to_original(v))));
        }
    }

    fn deepest(&self) -> u32 {
        N::DEEPEST
    }

    fn next_level(&mut self, team: &Team, level: u32) {
        if level + u32::from(self.late != 0) >= TOO_DEEP {
            self.write_rows(team);
        }
    }
}

/// The levels that the words of a vertex hold.
#[inline]
fn write_row<N: LevelNumber>(row: &mut [N], words: [u64; PLANES]) {
    let mut codes = [0_u8; WORD];
    for (eight, codes) in codes.chunks_exact_mut(8).enumerate() {
        let mut sum = 0;
        for (plane, word) in words.iter().enumerate() {
            let bits = (word >> (8 * eight)) as u8;
            // One bit of each of eight bytes.
            sum |= u64::from_ne_bytes(SPREAD[bits as usize]) & (0x0101_0101_0101_0101 << plane);
        }
        codes.copy_from_slice(&sum.to_ne_bytes());
    }
    // Of a length that the compiler knows, for most rows are whole.
    if let Ok(whole) = <&mut [N; WORD]>::try_from(&mut *row) {
        for (entry, code) in whole.iter_mut().zip(codes) {
            *entry = N::of_code(code);
        }
    } else {
        for (entry, code) in row.iter_mut().zip(codes) {
            *entry = N::of_code(code);
        }
    }
}
