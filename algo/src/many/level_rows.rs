//! Writes levels and parents of many searches into arrays, vertex by vertex.
//!
//! Several levels reach the same vertex, each for some of the searches, and a vertex's row of levels is a cache line or more. So levels are
//! first kept as bits: a plane for each bit of `level + 1`, all planes of a vertex side by side, in the order of internal vertices. After
//! the last level that fits the planes, every row is written once, from the first to the last. Deeper levels are written directly to the
//! rows, and so are all levels if rows are so short that this is faster.

use std::ops::Range;

use super::{AHEAD, Bits, Limits, ManyOutcome, SearchError, Sink, VERTICES, Words, fill, late};
use socbfs::{
    graph::{Layout, Place, Vertex},
    kernels::SPREAD,
    memory::{Pod, Shared, prefetch},
    threads::{Team, share},
};

/// Planes: bits of `level + 1`.
pub(super) const PLANES: usize = 4;
/// Levels from this one on do not fit [`PLANES`] bits, in which 0 means "not reached".
const TOO_DEEP: u32 = (1 << PLANES) - 1;
/// Rows with fewer entries than this are written directly, without planes.
pub(super) const ENOUGH: usize = 16;
/// Entries of a row that one word covers.
const WORD: usize = u64::BITS as usize;
/// Arrays with more bytes than this are written past the caches.
const LARGE: usize = 8 << 20;

/// A number type for written levels; its largest value means "not reached".
pub trait LevelNumber: Pod + PartialEq {
    /// The value for "not reached".
    const NONE: Self;
    /// The deepest level that the type can hold.
    const DEEPEST: u32;

    /// One level deeper; "not reached" stays "not reached".
    fn deeper(self) -> Self;

    /// The level `code - 1`, or "not reached" if `code` is 0.
    fn of_code(code: u32) -> Self;
}

macro_rules! level_numbers {
    ($($number:ty)*) => {$(
        impl LevelNumber for $number {
            const NONE: Self = Self::MAX;
            const DEEPEST: u32 = Self::MAX as u32 - 1;

            #[inline]
            fn deeper(self) -> Self {
                self.saturating_add(1)
            }

            #[inline]
            fn of_code(code: u32) -> Self {
                (code as Self).wrapping_sub(1)
            }
        }
    )*};
}

level_numbers!(u8 u32);

/// The place of a pass's entries in the caller's arrays.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// Entries per vertex.
    pub(super) stride: usize,
    /// The first entry of this pass.
    pub(super) first: usize,
    /// Number of entries of this pass.
    pub(super) columns: usize,
}

impl Rows {
    fn of(self, vertex: Vertex) -> usize {
        vertex as usize * self.stride + self.first
    }
}

/// Runs a pass of `W` words a vertex, and writes what it finds into the rows of `levels`, and of `parents` if `with_parents`. Levels are
/// kept in `planes` first if these are given; otherwise all entries are initialised.
pub(super) fn pass<N: LevelNumber, const W: usize>(
    words: &mut Words,
    (layout, team, limits): (&Layout, &Team, &Limits<'_>),
    roots: &[Vertex],
    rows: Rows,
    (levels, parents, planes): (Shared<N>, Shared<Vertex>, Option<&mut [u64]>),
    with_parents: bool,
) -> Result<ManyOutcome, SearchError> {
    let planes = planes.map(|planes| {
        let planes = &mut Bits::of_words(planes)[..PLANES * layout.csr().vertices()];
        fill(team, planes, Bits::NONE);
        Shared::new(planes)
    });
    let late = late(layout, roots);
    if with_parents {
        Written::<N, W, true> { layout, roots, rows, levels, parents, planes, late }.pass(words, team, limits)
    } else {
        Written::<N, W, false> { layout, roots, rows, levels, parents, planes, late }.pass(words, team, limits)
    }
}

/// The arrays that a pass writes. They have a row for every vertex (`trees_into` checks this), except `parents` without `PARENTS`.
struct Written<'a, N, const W: usize, const PARENTS: bool> {
    layout: &'a Layout,
    roots: &'a [Vertex],
    rows: Rows,
    levels: Shared<N>,
    parents: Shared<Vertex>,
    /// [`PLANES`] entries, empty at first, for every searched vertex. `None`: levels go directly to the rows, all entries of which are
    /// initialised.
    planes: Option<Shared<Bits<W>>>,
    /// See [`late`].
    late: Bits<W>,
}

impl<N: LevelNumber, const W: usize, const PARENTS: bool> Written<'_, N, W, PARENTS> {
    /// Runs the pass, then writes what is left: rows from planes, left-out leaves, and roots that are not searched.
    fn pass(mut self, words: &mut Words, team: &Team, limits: &Limits<'_>) -> Result<ManyOutcome, SearchError> {
        let outcome = words.pass(self.layout, team, self.roots, &mut self, limits)?;
        let in_planes = self.planes.is_some();
        self.write_rows(team);
        if PARENTS || !in_planes {
            self.write_leaves(team);
        }
        self.write_roots();
        Ok(outcome)
    }

    /// Records that these searches have reached `v` at `level`.
    #[inline]
    fn enter(&self, v: Vertex, level: u32, searches: Bits<W>) {
        if let Some(planes) = self.planes {
            for plane in 0..PLANES {
                if (level + 1) >> plane & 1 == 1 {
                    // SAFETY: every searched vertex has this many entries, and no two threads report the same vertex at once.
                    unsafe { *planes.get().add(v as usize * PLANES + plane) |= searches };
                }
            }
        } else if level <= N::DEEPEST {
            // SAFETY: no two threads report the same vertex at once.
            unsafe { self.write(self.layout.to_original(v), level, searches) };
        }
    }

    /// Writes `level` into the row of a vertex, for these searches.
    ///
    /// # Safety
    /// No other thread uses the row.
    unsafe fn write(&self, vertex: Vertex, level: u32, searches: Bits<W>) {
        let (row, level) = (self.rows.of(vertex), N::of_code(level + 1));
        // SAFETY: the array has a row for every vertex, with an entry for each search.
        searches.each(|search| unsafe { *self.levels.get().add(row + search) = level });
    }

    /// Writes the rows of left-out leaves: their parents, and their levels, one more than those of their hosts.
    fn write_leaves(&self, team: &Team) {
        let (layout, rows, leaves) = (self.layout, self.rows, self.layout.leaves());
        let hosts = leaves.hosts().len();
        share(team, hosts, VERTICES, hosts < VERTICES, &|_, range| {
            for index in range {
                let host = layout.to_original(leaves.hosts()[index]);
                for &leaf in leaves.of(index) {
                    for column in 0..rows.columns {
                        // SAFETY: the arrays have a row for every vertex; a leaf has one host, whose row is only read now.
                        unsafe {
                            let above = *self.levels.get().add(rows.of(host) + column);
                            *self.levels.get().add(rows.of(leaf) + column) = above.deeper();
                            if PARENTS && above != N::NONE {
                                *self.parents.get().add(rows.of(leaf) + column) = host;
                            }
                        }
                    }
                }
            }
        });
    }

    /// Writes the entries of the roots, of which not all are searched.
    fn write_roots(&self) {
        let (layout, rows) = (self.layout, self.rows);
        for (column, &root) in self.roots.iter().enumerate() {
            let write = |vertex: Vertex, level: u32| {
                // SAFETY: the arrays have a row for every vertex, and the team has ended its work.
                unsafe {
                    self.write(vertex, level, Bits::one(column));
                    if PARENTS {
                        *self.parents.get().add(rows.of(vertex) + column) = root;
                    }
                }
            };
            write(root, 0);
            if let Place::Paired(other) = layout.place(root) {
                write(other, 1);
            }
        }
    }

    /// Writes the rows from the planes, which are then no longer needed. The row of a leaf is made from the planes of its host.
    fn write_rows(&mut self, team: &Team) {
        let Some(planes) = self.planes.take() else { return };
        let vertices = self.layout.vertices();
        share(team, vertices, VERTICES, vertices < VERTICES, &|_, range| {
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has AVX2; ranges are handed out once.
                return unsafe { self.write_range_avx2(planes, range) };
            }
            // SAFETY: ranges are handed out once.
            unsafe { self.write_range::<false>(planes, range) };
        });
    }

    /// # Safety
    /// As [`Self::write_range`], on a processor that has AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn write_range_avx2(&self, planes: Shared<Bits<W>>, range: Range<usize>) {
        // SAFETY: the caller's promise, passed on.
        unsafe { self.write_range::<true>(planes, range) };
    }

    /// Writes the rows of these vertices.
    ///
    /// # Safety
    /// No other thread uses the rows, and the planes are only read now. If `AVX2`, the processor has it.
    #[inline(always)]
    unsafe fn write_range<const AVX2: bool>(&self, planes: Shared<Bits<W>>, range: Range<usize>) {
        let (layout, rows) = (self.layout, self.rows);
        let (places, searched, first_leaf) = (layout.internal_places(), layout.csr().vertices(), layout.first_leaf());
        let host_of = layout.leaves().host_of();
        // The place of a vertex's planes, and whether the vertex is a leaf of the vertex at that place.
        let of = |v: usize| {
            let place = places.get(v).map_or(v, |&place| place as usize);
            if place < searched {
                return Some((place, false));
            }
            place.checked_sub(first_leaf).and_then(|slot| host_of.get(slot)).map(|&host| (host as usize, true))
        };
        // A line of which only a part were written past the caches would be read first.
        let large = rows.stride % WORD == 0 && layout.vertices() * rows.columns * size_of::<N>() > LARGE;
        for v in range {
            if v + AHEAD < layout.vertices() {
                if let Some((ahead, _)) = of(v + AHEAD) {
                    prefetch(planes.get().wrapping_add(ahead * PLANES).cast_const());
                }
            }
            let (planes, is_leaf) = match of(v) {
                // SAFETY: a searched vertex has this many entries.
                Some((at, is_leaf)) => (unsafe { planes.get().add(at * PLANES).cast::<[Bits<W>; PLANES]>().read() }, is_leaf),
                None => ([Bits::NONE; PLANES], false),
            };
            // SAFETY: the array has a row for every vertex, and this row belongs to the caller.
            let row = unsafe { std::slice::from_raw_parts_mut(self.levels.get().add(rows.of(v as Vertex)), rows.columns) };
            for (word, row) in row.chunks_mut(WORD).enumerate() {
                let words = [planes[0].0[word], planes[1].0[word], planes[2].0[word], planes[3].0[word]];
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the processor has AVX2 (caller).
                let mut codes = if AVX2 { unsafe { codes_avx2(words) } } else { codes(words) };
                #[cfg(not(target_arch = "x86_64"))]
                let mut codes = codes(words);
                if is_leaf {
                    codes.iter_mut().for_each(|code| *code += u8::from(*code != 0));
                }
                // Most rows are whole: the compiler then knows their length.
                if let Ok(whole) = <&mut [N; WORD]>::try_from(&mut *row) {
                    let mut levels = [N::NONE; WORD];
                    for (level, code) in levels.iter_mut().zip(codes) {
                        *level = N::of_code(code.into());
                    }
                    if large { past_caches(whole, &levels) } else { *whole = levels }
                } else {
                    for (entry, code) in row.iter_mut().zip(codes) {
                        *entry = N::of_code(code.into());
                    }
                }
            }
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: SSE is part of x86-64. The fence orders the stores past the caches before this thread reports that it is done.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

impl<N: LevelNumber, const W: usize, const PARENTS: bool> Sink<W> for Written<'_, N, W, PARENTS> {
    const PARENTS: bool = PARENTS;

    fn begins(&self, root: Vertex, place: Place, search: usize) {
        // What is not searched is written after the pass.
        if let Place::Searched(internal) | Place::LeafOf(internal) = place {
            self.reached(internal, 0, Bits::one(search));
            if PARENTS {
                let row = self.rows.of(self.layout.to_original(internal));
                // SAFETY: the array has a row for every vertex, and every search has a column.
                unsafe { *self.parents.get().add(row + search) = root };
            }
        }
    }

    #[inline]
    fn reached(&self, v: Vertex, level: u32, searches: Bits<W>) {
        let late = searches & self.late;
        if !late.is_empty() {
            self.enter(v, level + 1, late);
        }
        self.enter(v, level, searches - late);
    }

    #[inline]
    fn parent(&self, v: Vertex, parent: Vertex, searches: Bits<W>) {
        let (row, parent) = (self.rows.of(self.layout.to_original(v)), self.layout.to_original(parent));
        // SAFETY: the array has a row for every vertex, every set bit is one of the columns, and a search has one parent of a vertex.
        searches.each(|column| unsafe { *self.parents.get().add(row + column) = parent });
    }

    #[inline]
    fn soon(&self, v: Vertex) {
        // Planes are written in the order of the vertices, so only rows are prefetched.
        if self.planes.is_none() {
            prefetch(self.levels.get().wrapping_add(self.rows.of(self.layout.to_original(v))));
        }
    }

    fn deepest(&self) -> u32 {
        N::DEEPEST
    }

    fn next_level(&mut self, team: &Team, level: u32) {
        if level + u32::from(!self.late.is_empty()) >= TOO_DEEP {
            self.write_rows(team);
        }
    }
}

/// Decodes the words of a vertex: for each search its level plus 1, or 0 if it was not reached.
#[inline]
fn codes(words: [u64; PLANES]) -> [u8; WORD] {
    let mut codes = [0_u8; WORD];
    for (eight, codes) in codes.chunks_exact_mut(8).enumerate() {
        let mut sum = 0;
        for (plane, word) in words.iter().enumerate() {
            let bits = (word >> (8 * eight)) as u8;
            // Sets one bit in each of eight bytes.
            sum |= u64::from_ne_bytes(SPREAD[bits as usize]) & (0x0101_0101_0101_0101 << plane);
        }
        codes.copy_from_slice(&sum.to_ne_bytes());
    }
    codes
}

/// As [`codes`], with AVX2.
///
/// # Safety
/// The processor has AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn codes_avx2(words: [u64; PLANES]) -> [u8; WORD] {
    use std::arch::x86_64::*;
    let mut codes = [0_u8; WORD];
    // SAFETY: the processor has AVX2 (caller), and 32 bytes at offsets 0 and 32 lie in the array.
    unsafe {
        // For each byte of the result: the byte of the 32 bits that has its bit (within halves of the vector), and that bit of the byte.
        let from = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
        let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
        for half in 0..2 {
            let mut sum = _mm256_setzero_si256();
            for (plane, word) in words.iter().enumerate() {
                let bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((word >> (32 * half)) as i32), from);
                let is_set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, bit), bit);
                sum = _mm256_or_si256(sum, _mm256_and_si256(is_set, _mm256_set1_epi8(1 << plane)));
            }
            _mm256_storeu_si256(codes.as_mut_ptr().add(32 * half).cast(), sum);
        }
    }
    codes
}

/// Writes a row that is not read again soon. The stores go past the caches, so that the row is not read from memory first.
#[inline(always)]
fn past_caches<N: LevelNumber>(row: &mut [N; WORD], levels: &[N; WORD]) {
    #[cfg(target_arch = "x86_64")]
    if row.as_ptr().addr() % 16 == 0 {
        use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
        let (to, from) = (row.as_mut_ptr().cast::<__m128i>(), levels.as_ptr().cast::<__m128i>());
        for at in 0..size_of::<[N; WORD]>() / size_of::<__m128i>() {
            // SAFETY: SSE2 is part of x86-64; 64 numbers fill the vectors without a remainder, and the row is aligned for these.
            unsafe { _mm_stream_si128(to.add(at), _mm_loadu_si128(from.add(at))) };
        }
        return;
    }
    *row = *levels;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn codes_are_the_same_with_avx2() {
        if !is_x86_feature_detected!("avx2") {
            // Not a print macro, whose output the test harness would capture.
            std::io::Write::write_all(&mut std::io::stderr(), b"SKIPPED codes_are_the_same_with_avx2: no AVX2 here\n").unwrap();
            return;
        }
        let mut state = 1_u64;
        for _ in 0..1000 {
            let words = [(); PLANES].map(|()| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state ^ state >> 31
            });
            let wanted: Vec<u8> = (0..WORD).map(|bit| (0..PLANES).map(|plane| ((words[plane] >> bit & 1) as u8) << plane).sum()).collect();
            assert_eq!(codes(words)[..], wanted);
            // SAFETY: the processor has AVX2.
            assert_eq!(unsafe { codes_avx2(words) }[..], wanted);
        }
    }

    #[test]
    fn rows_written_past_the_caches_are_complete() {
        let levels: [u32; WORD] = std::array::from_fn(|at| at as u32 * 0x0101_0101);
        let mut room = [[7; WORD]; 3];
        for shift in 0..5 {
            let flat = room.as_flattened_mut();
            flat.fill(7);
            let (_, from) = flat.split_at_mut(shift);
            past_caches(from.first_chunk_mut().unwrap(), &levels);
            assert_eq!(flat[shift..shift + WORD], levels);
            assert!(flat[..shift].iter().chain(&flat[shift + WORD..]).all(|&entry| entry == 7));
        }
    }
}
