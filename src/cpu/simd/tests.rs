//! Compares every kernel of every kind with a plain model of its result, and so with the scalar kernel, which is one of the kinds. The
//! memory that a kernel reads ends at an unreadable page, so that a read past the end crashes.

use std::{
    ffi::c_void,
    fmt::Debug,
    num::NonZeroUsize,
    ops::{Deref, Range},
    ptr::NonNull,
};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use proptest::prelude::*;

use super::{
    super::{
        bottom_up::{BottomUp, FoundCounts},
        tuning::PAST_CACHES,
    },
    MapBack, NOT_MET, Settle, Simd, SimdKernels, Visited,
};
use crate::{
    graph::{Block, Blocks, Csr, Lists, NONE, Vertex},
    memory::{Pod, Shared, Slab},
};

/// A multiple of every page size.
const PAGE: usize = 64 << 10;
/// The content of memory that no kernel may write.
const UNTOUCHED: u32 = 0xdead_beef;
/// Length of the longest list.
const LONGEST: usize = 70;

/// A copy of values that ends right before an unreadable page.
struct Guarded<T: Pod> {
    base: NonNull<c_void>,
    mapped: usize,
    start: *const T,
    len: usize,
}

impl<T: Pod> Guarded<T> {
    fn new(values: &[T]) -> Self {
        let bytes = size_of_val(values);
        let readable = bytes.next_multiple_of(PAGE).max(PAGE);
        let mapped = readable + PAGE;
        // SAFETY: an anonymous mapping at an address of the kernel's choice aliases nothing; its last page is the guard, and the values,
        // whose length is a multiple of their alignment, lie right before that page.
        unsafe {
            let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
            let base = mmap_anonymous(None, NonZeroUsize::new(mapped).unwrap(), access, MapFlags::MAP_PRIVATE).unwrap();
            mprotect(base.byte_add(readable), PAGE, ProtFlags::PROT_NONE).unwrap();
            let start = base.byte_add(readable - bytes).cast::<T>().as_ptr();
            start.copy_from_nonoverlapping(values.as_ptr(), values.len());
            Self { base, mapped, start, len: values.len() }
        }
    }
}

impl<T: Pod> Deref for Guarded<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` wrote `len` values there.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl<T: Pod> Drop for Guarded<T> {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` and nothing refers to it any more.
        unsafe { munmap(self.base, self.mapped) }.unwrap();
    }
}

/// Pseudo-random numbers (SplitMix64 by Steele, Lea and Flood).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A bit that is set with probability `of_8` / 8.
    fn chance(&mut self, of_8: usize) -> bool {
        self.below(8) < of_8
    }
}

fn each_kind(mut run: impl FnMut(Simd, SimdKernels)) {
    for simd in Simd::ALL.into_iter().filter(|simd| simd.available()) {
        run(simd, simd.kernels().unwrap());
    }
}

/// A graph and a search in progress, as the engine holds them.
struct State {
    visited: Guarded<u64>,
    parent: Guarded<Vertex>,
    columns: Vec<Slab<Vertex>>,
    originals: Vec<Slab<Vertex>>,
    offsets: Guarded<u32>,
    targets: Guarded<Vertex>,
    /// Offsets and blocks of the same lists.
    blocks: (Guarded<u32>, Guarded<Block>),
    to_original: Guarded<Vertex>,
    degrees: Guarded<u32>,
}

/// The result of a bottom-up level.
#[derive(Debug, PartialEq)]
struct Level {
    found: FoundCounts,
    parent: Vec<Vertex>,
    next: Vec<u64>,
}

impl State {
    /// `lists` has the neighbours of every vertex, and `visited` whether it was visited; both are padded here. `to_original` is empty if
    /// internal and original numbers are the same.
    fn new(lists: &[Vec<Vertex>], visited: &[bool], columns: usize, to_original: &[Vertex]) -> Self {
        let padded = lists.len().next_multiple_of(64);
        let none = padded as Vertex;
        let mut words = vec![0u64; padded / 64 + 1];
        let mut parent = vec![UNTOUCHED; padded + 2];
        for v in 0..padded {
            if visited.get(v).copied().unwrap_or(true) {
                words[v / 64] |= 1 << (v % 64);
            } else {
                parent[v] = NONE;
            }
        }
        let mut offsets = vec![0];
        for list in lists {
            offsets.push(offsets[offsets.len() - 1] + list.len() as u32);
        }
        let slab = |numbers: &[u32]| Slab::copy_of(numbers, "lists").unwrap();
        let blocks = Blocks::new(&Csr { offsets: slab(&offsets), targets: slab(&lists.concat()) }).unwrap();
        let column = |k: usize, entry: &dyn Fn(Option<Vertex>) -> Vertex| {
            let entries: Vec<Vertex> = (0..padded).map(|v| entry(lists.get(v).and_then(|list| list.get(k)).copied())).collect();
            slab(&entries)
        };
        let original = |entry: Option<Vertex>| match entry {
            Some(neighbour) if to_original.is_empty() => neighbour,
            Some(neighbour) => to_original[neighbour as usize],
            None => NONE,
        };
        Self {
            visited: Guarded::new(&words),
            parent: Guarded::new(&parent),
            columns: (0..columns).map(|k| column(k, &|entry| entry.unwrap_or(none))).collect(),
            originals: (0..columns).map(|k| column(k, &original)).collect(),
            offsets: Guarded::new(&offsets),
            targets: Guarded::new(&lists.concat()),
            blocks: (Guarded::new(&blocks.offsets), Guarded::new(&blocks.blocks)),
            to_original: Guarded::new(to_original),
            // Larger than the length of any list, so that the test notices a kernel that uses the length of a list instead. Empty in some
            // states.
            degrees: Guarded::new(
                &(0..padded as u32 / 64).map(|word| 1000 + 7 * word).take(if columns == 1 { 0 } else { padded }).collect::<Vec<_>>(),
            ),
        }
    }

    fn words(&self) -> usize {
        self.visited.len() - 1
    }

    fn before(&self) -> Level {
        Level { found: FoundCounts::default(), parent: self.parent.to_vec(), next: vec![u64::from(UNTOUCHED); self.words()] }
    }

    /// The result of a level, computed by its definition. In blocks, vertices of one half word follow one another.
    fn model(&self, words: Range<usize>, in_blocks: bool) -> Level {
        let mut level = self.before();
        for word in words {
            level.next[word] = self.visited[word];
            for v in (word * 64..word * 64 + 64).filter(|v| self.visited[word] >> (v % 64) & 1 == 0) {
                let mut list = self.targets[self.offsets[v] as usize..self.offsets[v + 1] as usize].to_vec();
                if in_blocks {
                    let whole = list.clone();
                    let first = |w: Vertex| whole.iter().position(|&other| other / 32 == w / 32);
                    let mut blocks = whole.clone();
                    blocks.sort_by_key(|&w| (first(w), w));
                    // Columns come before.
                    list.truncate(self.columns.len());
                    list.extend(blocks);
                }
                if let Some(&hit) = list.iter().find(|&&w| self.visited[w as usize / 64] >> (w % 64) & 1 == 1) {
                    level.parent[v] = self.to_original.get(hit as usize).copied().unwrap_or(hit);
                    level.next[word] |= 1 << (v % 64);
                    level.found.vertices += 1;
                    level.found.edges += u64::from(self.degrees.get(word).copied().unwrap_or(0));
                }
            }
        }
        level
    }

    fn run(&self, kernels: SimdKernels, words: Range<usize>, in_blocks: bool) -> Level {
        let mut level = self.before();
        let mut remaining = vec![0; 64 * words.len()];
        let work = BottomUp {
            visited: &self.visited,
            own: &self.visited[..self.visited.len() - 1],
            next: Shared::new(&mut level.next),
            parent: Shared::new(&mut level.parent),
            columns: &self.columns,
            originals: &self.originals,
            lists: if in_blocks { Lists::Blocks((&self.blocks.0, &self.blocks.1)) } else { Lists::Numbers((&self.offsets, &self.targets)) },
            degrees: &self.degrees,
            to_original: &self.to_original,
            none: (64 * self.words()) as Vertex,
        };
        // SAFETY: `each_kind` yields available kernels only, `new` keeps the invariants of `BottomUp`, no other thread is working.
        level.found = unsafe { (kernels.bottom_up)(&work, words, &mut remaining) };
        level
    }

    /// Compares every kind with the model over `words`.
    fn check(&self, words: Range<usize>, what: &dyn Debug) {
        for in_blocks in [false, true] {
            let wanted = self.model(words.clone(), in_blocks);
            each_kind(|simd, kernels| {
                let got = self.run(kernels, words.clone(), in_blocks);
                assert_eq!(got, wanted, "{simd}, in blocks: {in_blocks}, {what:?}");
            });
        }
    }
}

/// Original numbers, all different from the internal ones.
fn renumbered(vertices: usize) -> Vec<Vertex> {
    (0..vertices).map(|v| 1_000_000 - v as Vertex).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bottom_up_matches_the_model_on_random_states(
        vertices in 1_usize..450,
        columns in 0_usize..5,
        longest in prop::sample::select(vec![0, 1, 3, 6, 20, LONGEST]),
        visited_of_8 in 0_usize..9,
        full_words_of_8 in 0_usize..5,
        rename: bool,
        seed: u64,
    ) {
        let mut random = Random(seed);
        let mut visited: Vec<bool> = (0..vertices).map(|_| random.chance(visited_of_8)).collect();
        for word in visited.chunks_mut(64) {
            if random.chance(full_words_of_8) {
                word.fill(true);
            }
        }
        let mut lists = Vec::new();
        for _ in 0..vertices {
            let len = random.below(longest + 1);
            lists.push((0..len).map(|_| random.below(vertices) as Vertex).collect::<Vec<_>>());
        }
        let state = State::new(&lists, &visited, columns, &if rename { renumbered(vertices) } else { vec![] });
        state.check(0..state.words(), &"all words");
        let begin = random.below(state.words());
        let end = begin + random.below(state.words() - begin + 1);
        state.check(begin..end, &(begin..end));
    }
}

#[test]
fn bottom_up_finds_nothing_where_no_or_every_vertex_was_visited() {
    let vertices = 200;
    let lists: Vec<Vec<Vertex>> = (0..vertices).map(|v| (0..v % 9).map(|k| (v * 7 + k * 31) % vertices).collect()).collect();
    for columns in 0..5 {
        for (is_visited, next) in [(false, [0, 0, 0, !0 << 8]), (true, [!0; 4])] {
            let state = State::new(&lists, &vec![is_visited; vertices as usize], columns, &[]);
            let wanted = Level { found: FoundCounts::default(), parent: state.parent.to_vec(), next: next.to_vec() };
            each_kind(|simd, kernels| assert_eq!(state.run(kernels, 0..4, false), wanted, "{simd}, all visited: {is_visited}"));
        }
    }
}

/// One vertex looks for a parent; its first visited neighbour is at every place of lists of every length, and visited ones follow it.
#[test]
fn bottom_up_finds_the_first_visited_neighbour_of_lists_of_every_length() {
    for columns in [0, 2] {
        for len in 0..=LONGEST {
            for first in 0..=len {
                // The neighbours are vertices from 1 on: the first ones unvisited, all later ones visited, so that a list holds each vertex
                // once.
                let vertices = 1 + 2 * LONGEST;
                let visited: Vec<bool> = (0..vertices).map(|v| v > LONGEST).collect();
                let list = (0..len).map(|k| (1 + k + if k < first { 0 } else { LONGEST }) as Vertex).collect();
                let mut lists = vec![vec![]; vertices];
                lists[0] = list;
                let state = State::new(&lists, &visited, columns, &renumbered(vertices));
                state.check(0..1, &(columns, len, first));
            }
        }
    }
}

/// Six vertices side by side, in every combination of: already visited, no neighbour, a visited neighbour, an unvisited neighbour. They lie
/// at every place of a word in turn, among vertices without neighbours.
#[test]
fn bottom_up_matches_the_model_on_every_mixture_of_columns() {
    for mixture in 0..4_usize.pow(6) {
        let mut lists = vec![vec![]; 128];
        let mut visited = vec![false; 128];
        visited[100] = true;
        for v in 0..6 {
            let place = mixture % 59 + v;
            match mixture >> (2 * v) & 3 {
                0 => visited[place] = true,
                1 => {}
                2 => lists[place] = vec![100],
                _ => lists[place] = vec![101],
            }
        }
        State::new(&lists, &visited, 1, &[]).check(0..1, &mixture);
    }
}

/// Parents that signed comparisons or signed arithmetic would get wrong.
const PARENTS: [Vertex; 6] = [0, 1, 0x7fff_ffff, 0x8000_0000, NONE - 1, NONE];

fn check_visited(parent: &[Vertex], excluded: &[u64], words: Range<usize>) {
    let before = vec![u64::from(UNTOUCHED); excluded.len()];
    let mut wanted = before.clone();
    for word in words.clone() {
        wanted[word] = (0..64).fold(excluded[word], |bits, lane| bits | u64::from(parent[word * 64 + lane] != NONE) << lane);
    }
    let count: u64 = wanted[words.clone()].iter().map(|bits| u64::from(bits.count_ones())).sum();
    let (parent, excluded) = (Guarded::new(parent), Guarded::new(excluded));
    each_kind(|simd, kernels| {
        let mut bits = before.clone();
        let work = Visited { parent: &parent, excluded: &excluded, words: Shared::new(&mut bits) };
        // SAFETY: the kind is available; there are 64 parents and a word for each word of `excluded`; no other thread is working.
        let got = unsafe { (kernels.visited)(&work, words.clone()) };
        assert_eq!((got, bits), (count, wanted.clone()), "{simd} {words:?}");
    });
}

#[test]
fn visited_bitmaps_of_equal_parents_are_right() {
    for words in 0..4 {
        for parent in PARENTS {
            for excluded in [0, 1 << 63, 0x00ff_00ff_1234_5678, u64::MAX] {
                check_visited(&vec![parent; 64 * words], &vec![excluded; words], 0..words);
            }
        }
    }
}

proptest! {
    #[test]
    fn visited_bitmaps_of_random_parents_are_right(words in 1_usize..9, none_of_8 in 0_usize..9, closed_of_8 in 0_usize..9, seed: u64) {
        let mut random = Random(seed);
        let parent: Vec<Vertex> = (0..64 * words)
            .map(|_| if random.chance(none_of_8) { NONE } else { PARENTS[random.below(PARENTS.len())] })
            .collect();
        let excluded: Vec<u64> = (0..words).map(|_| (0..64).fold(0, |bits, lane| bits | u64::from(random.chance(closed_of_8)) << lane)).collect();
        check_visited(&parent, &excluded, 0..words);
        let begin = random.below(words);
        check_visited(&parent, &excluded, begin..begin + random.below(words - begin + 1));
    }
}

fn check_settle(names: &[Vertex], parent: &[Vertex], excluded: &[u64], notes: &[u16], words: Range<usize>) {
    let untouched = vec![u64::from(UNTOUCHED); excluded.len()];
    let (mut parents, mut left, mut before, mut now) = (parent.to_vec(), notes.to_vec(), untouched.clone(), untouched.clone());
    for word in words.clone() {
        (before[word], now[word]) = (excluded[word], excluded[word]);
        for v in 64 * word..64 * word + 64 {
            let (visited, met) = (parent[v] != NONE, notes[v] != NOT_MET);
            before[word] |= u64::from(visited) << (v % 64);
            now[word] |= u64::from(visited || met) << (v % 64);
            if met && !visited {
                parents[v] = names[usize::from(notes[v])];
            }
            left[v] = NOT_MET;
        }
    }
    let count = |bits: &[u64]| bits[words.clone()].iter().map(|bits| u64::from(bits.count_ones())).sum::<u64>();
    let counts = [count(&before), count(&now)];
    each_kind(|simd, kernels| {
        let (mut parent, mut notes, mut was, mut is) = (parent.to_vec(), notes.to_vec(), untouched.clone(), untouched.clone());
        let work = Settle {
            names,
            excluded,
            notes: Shared::new(&mut notes),
            parent: Shared::new(&mut parent),
            before: Shared::new(&mut was),
            now: Shared::new(&mut is),
        };
        // SAFETY: the kind is available; every note has a name; all arrays cover the words; no other thread is working.
        let got = unsafe { (kernels.settle)(&work, words.clone()) };
        let wanted = (counts, &parents, &left, &before, &now);
        assert!((got, &parent, &notes, &was, &is) == wanted, "{simd} {words:?}");
    });
}

proptest! {
    #[test]
    fn settled_parents_of_random_notes_are_right(words in 1_usize..20, visited_of_8 in 0_usize..9, met_of_8 in 0_usize..9, seed: u64) {
        let mut random = Random(seed);
        let mut names: Vec<Vertex> = (0..=u32::from(NOT_MET)).map(|place| place ^ 0x8000_1234).collect();
        names[usize::from(NOT_MET)] = NONE;
        let parent: Vec<Vertex> = (0..64 * words)
            .map(|_| if random.chance(visited_of_8) { PARENTS[random.below(PARENTS.len())] } else { NONE })
            .collect();
        let notes: Vec<u16> = (0..64 * words)
            .map(|_| if random.chance(met_of_8) { [0, 1, 0x7fff, 0x8000, NOT_MET - 1][random.below(5)] } else { NOT_MET })
            .collect();
        let excluded: Vec<u64> = (0..words).map(|_| (0..64).fold(0, |bits, lane| bits | u64::from(random.chance(1)) << lane)).collect();
        check_settle(&names, &parent, &excluded, &notes, 0..words);
        let begin = random.below(words);
        check_settle(&names, &parent, &excluded, &notes, begin..begin + random.below(words - begin + 1));
    }
}

fn check_map_back(place: &[Vertex], parent: &[Vertex], vertices: Range<usize>) {
    let before = vec![UNTOUCHED; place.len()];
    let mut wanted = before.clone();
    for v in vertices.clone() {
        wanted[v] = parent[place[v] as usize];
    }
    let (place, parent) = (Guarded::new(place), Guarded::new(parent));
    each_kind(|simd, kernels| {
        let mut out = before.clone();
        let work = MapBack { place: &place, parent: &parent, out: Shared::new(&mut out) };
        // SAFETY: the kind is available; places are below the number of parents; no other thread is working.
        unsafe { (kernels.map_back)(&work, vertices.clone()) };
        assert_eq!(out, wanted, "{simd} {vertices:?} of {}", place.len());
    });
}

/// Ranges of every length up to a few vectors and a remainder, beginning at every place of a vector, and ending at the array's end or
/// before.
#[test]
fn map_back_handles_ranges_of_every_length() {
    let mut random = Random(1);
    for begin in 0..17 {
        for len in 0..70 {
            for after in [0, 5] {
                let parents = 128 + 2; // the last two are "no neighbour" and dropped vertices
                let parent: Vec<Vertex> = (0..parents).map(|_| PARENTS[random.below(PARENTS.len())]).collect();
                let place: Vec<Vertex> = (0..begin + len + after).map(|_| random.below(parents) as Vertex).collect();
                check_map_back(&place, &parent, begin..begin + len);
            }
        }
    }
}

/// Enough vertices for kernels to write past the caches, in whole cache lines, with remainders before and after.
#[test]
fn map_back_handles_more_vertices_than_caches_hold() {
    let mut random = Random(2);
    let parent: Vec<Vertex> = (0..1000).map(|v| if random.chance(2) { NONE } else { v }).collect();
    let vertices = PAST_CACHES + 37;
    let place: Vec<Vertex> = (0..vertices).map(|_| random.below(parent.len()) as Vertex).collect();
    for (begin, end) in [(0, vertices), (0, 5), (1, 16), (3, 40), (16, 32), (15, vertices - 1), (PAST_CACHES, vertices)] {
        check_map_back(&place, &parent, begin..end);
    }
}

#[test]
fn map_back_handles_arrays_of_equal_parents() {
    for parent in PARENTS {
        let place: Vec<Vertex> = (0..100).map(|v| (v * 37 + 65) % 66).collect();
        check_map_back(&place, &[parent; 66], 0..100);
    }
}

/// Otherwise the tests above would compare the scalar kernels with themselves.
#[test]
fn only_the_scalar_kind_has_the_scalar_kernels() {
    let scalar = Simd::Scalar.kernels().unwrap().bottom_up as usize;
    each_kind(|simd, kernels| assert_eq!(kernels.bottom_up as usize == scalar, simd == Simd::Scalar, "{simd}"));
}
