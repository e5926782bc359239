//! The vector instructions of the CPU, and the kernels written for them.
//!
//! 32-bit ARM has only the scalar kernels. Stable Rust has no NEON there: the intrinsics (`core::arch::arm`) and
//! `#[target_feature(enable = "neon")]` are unstable, and the target has no NEON by default, since some ARMv7 chips lack it. If the
//! board has NEON, the compiler can use it in plain code, with `RUSTFLAGS="-C target-feature=+neon"`.

use std::{fmt, ops::Range, str::FromStr};

use super::bottom_up::{BottomUp, FoundCounts, Probe};
use crate::{
    graph::{NONE, Vertex},
    memory::Shared,
};

/// The kernels of a form, compiled for its instructions.
macro_rules! kernels {
    ($form:ty, $map_back:path $(, $features:literal)?) => {{
        use $crate::cpu::{
            bottom_up::{BottomUp, FoundCounts, bottom_up},
            simd::{Settle, Visited, settle_by, visited_by},
        };
        use std::ops::Range;
        $(#[target_feature(enable = $features)])?
        unsafe fn level(level: &BottomUp<'_>, words: Range<usize>, remaining: &mut [Vertex]) -> FoundCounts {
            // SAFETY: the caller's promise, passed on.
            unsafe { bottom_up::<$form>(level, words, remaining) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn visited(work: &Visited<'_>, words: Range<usize>) -> u64 {
            // SAFETY: the caller's promise, passed on.
            unsafe { visited_by::<$form>(work, words) }
        }
        $(#[target_feature(enable = $features)])?
        unsafe fn settle(work: &Settle<'_>, words: Range<usize>) -> [u64; 2] {
            // SAFETY: the caller's promise, passed on.
            unsafe { settle_by(work, words, visited) }
        }
        SimdKernels { bottom_up: level, visited, settle, map_back: $map_back }
    }};
}

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "x86_64", socbfs_avx512))]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(test)]
mod tests;

/// The note of a vertex that was not met; larger than every place.
pub(super) const NOT_MET: u16 = u16::MAX;

/// Kinds of vector instructions that a search can use. Each kind finds the same levels as the scalar one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Simd {
    /// None, except where the compiler uses them in plain code.
    Scalar,
    /// AVX2 (x86-64): 8 vertices at a time.
    Avx2,
    /// AVX-512 F, BW, VL, DQ (x86-64; needs a build by Rust 1.89 or later): 16 vertices at a time.
    Avx512,
    /// NEON (aarch64): 16 vertices at a time, as four vectors of 4.
    Neon,
}

/// A kind of vector instructions that is unknown or not available.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SimdError(String);

impl Simd {
    /// All kinds, the plainest first.
    pub const ALL: [Self; 4] = [Self::Scalar, Self::Neon, Self::Avx2, Self::Avx512];

    /// The best kind that this CPU and this build offer.
    pub fn detect() -> Self {
        Self::ALL.into_iter().rev().find(|simd| simd.available()).unwrap_or(Self::Scalar)
    }

    /// Whether this CPU and this build offer these instructions.
    pub fn available(self) -> bool {
        match self {
            Self::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt"),
            #[cfg(all(target_arch = "x86_64", socbfs_avx512))]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && Self::Avx2.available()
            }
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[allow(unreachable_patterns, reason = "which kinds are left depends on the target")]
            _ => false,
        }
    }

    /// The kernels for these instructions.
    ///
    /// # Errors
    /// [`SimdError`] if the CPU or the build does not offer them.
    pub fn kernels(self) -> Result<SimdKernels, SimdError> {
        if !self.available() {
            return Err(SimdError(format!("this CPU or this build has no {self}; the best it has is {}", Self::detect())));
        }
        Ok(match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => avx2::KERNELS,
            #[cfg(all(target_arch = "x86_64", socbfs_avx512))]
            Self::Avx512 => avx512::KERNELS,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => neon::KERNELS,
            _ => scalar::KERNELS,
        })
    }
}

impl fmt::Display for Simd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Neon => "neon",
        })
    }
}

impl FromStr for Simd {
    type Err = SimdError;

    fn from_str(text: &str) -> Result<Self, SimdError> {
        Self::ALL
            .into_iter()
            .find(|simd| simd.to_string() == text)
            .ok_or_else(|| SimdError(format!("unknown vector instructions {text:?}; known: scalar, neon, avx2, avx512")))
    }
}

/// The kernels of one kind. All are `unsafe`: the CPU must have the instructions, and the arguments must be as
/// [`BottomUp`], `Visited`, `Settle` and `MapBack` say.
#[derive(Debug, Clone, Copy)]
pub struct SimdKernels {
    /// Runs a bottom-up level over a range of words, and counts what it finds. The last argument has room for every vertex of the range.
    pub bottom_up: unsafe fn(&BottomUp<'_>, Range<usize>, &mut [Vertex]) -> FoundCounts,
    /// Builds words of the visited bitmap; returns the number of bits set.
    pub(super) visited: unsafe fn(&Visited<'_>, Range<usize>) -> u64,
    /// Gives the vertices that were met their parents, for a range of words; returns the numbers of bits set in `before` and in `now`.
    pub(super) settle: unsafe fn(&Settle<'_>, Range<usize>) -> [u64; 2],
    /// Writes parents in the order of the original vertices, for a range of these.
    pub(super) map_back: unsafe fn(&MapBack<'_>, Range<usize>),
}

/// Arguments of a kernel that builds the visited bitmap from the parents.
#[derive(Debug)]
pub(super) struct Visited<'a> {
    /// Parents by internal vertex, at least 64 for every word.
    pub(super) parent: &'a [Vertex],
    /// Bits that are always set: padding and vertices without an edge. One word for every 64 vertices.
    pub(super) excluded: &'a [u64],
    /// The bitmap; each word is written by the thread that has it in its range.
    pub(super) words: Shared<u64>,
}

/// Arguments of a kernel that derives parents from notes: places in the frontier from which vertices were met (see `wide`).
#[derive(Debug)]
pub(super) struct Settle<'a> {
    /// The vertex at each place, and [`NONE`](crate::graph::NONE) at [`NOT_MET`].
    pub(super) names: &'a [Vertex],
    /// Bits that are always set; one word for every 64 vertices.
    pub(super) excluded: &'a [u64],
    /// For each vertex, a place that has a name. The kernel sets it to `NOT_MET`. Notes, parents and bitmaps belong to the calling thread
    /// if their word is in its range.
    pub(super) notes: Shared<u16>,
    /// Parents by internal vertex.
    pub(super) parent: Shared<Vertex>,
    /// The visited bitmap as it was before the level.
    pub(super) before: Shared<u64>,
    /// The visited bitmap after the level.
    pub(super) now: Shared<u64>,
}

/// Arguments of a kernel that maps parents from internal to original places.
#[derive(Debug)]
pub(super) struct MapBack<'a> {
    /// Place in `parent` of every original vertex; all are in range.
    pub(super) place: &'a [Vertex],
    /// Parents (original numbers) by internal vertex.
    pub(super) parent: &'a [Vertex],
    /// Parents by original vertex; each is written by the thread that has it in its range.
    pub(super) out: Shared<Vertex>,
}

/// See [`SimdKernels::visited`].
///
/// # Safety
/// As the kernels of [`SimdKernels`].
#[inline(always)]
unsafe fn visited_by<P: Probe>(work: &Visited<'_>, words: Range<usize>) -> u64 {
    let mut count = 0;
    for word in words {
        // SAFETY: 64 parents were sliced; this thread owns the word (caller), and the bitmap has one for each of `excluded`.
        unsafe {
            let bits = P::reached(work.parent[word * 64..][..64].as_ptr()) | work.excluded[word];
            *work.words.get().add(word) = bits;
            count += u64::from(bits.count_ones());
        }
    }
    count
}

/// See [`SimdKernels::settle`]. The kernel `visited` makes the bitmaps while the parents are in the first-level cache.
/// (If `visited_by` is
/// called here instead, the closure is compiled without the instructions: a search of a uniform graph takes 1.3 times as long.)
///
/// # Safety
/// As the kernels of [`SimdKernels`].
#[inline(always)]
unsafe fn settle_by(work: &Settle<'_>, words: Range<usize>, visited: unsafe fn(&Visited<'_>, Range<usize>) -> u64) -> [u64; 2] {
    /// Words at a time: they have 2 KiB of parents.
    const AT_ONCE: usize = 8;
    let mut counts = [0; 2];
    for begin in words.clone().step_by(AT_ONCE) {
        let words = begin..words.end.min(begin + AT_ONCE);
        let (first, len) = (64 * words.start, 64 * words.len());
        let excluded = &work.excluded[words.clone()];
        // SAFETY: this thread owns the notes, parents and bitmaps of the words (caller), no other borrow of them is alive, and every note
        // has a name.
        unsafe {
            let bitmap = |bits: Shared<u64>| {
                let parent = std::slice::from_raw_parts(work.parent.get().add(first), len);
                let of_words = std::slice::from_raw_parts_mut(bits.get().add(words.start), words.len());
                visited(&Visited { parent, excluded, words: Shared::new(of_words) }, 0..words.len())
            };
            counts[0] += bitmap(work.before);
            let notes = std::slice::from_raw_parts_mut(work.notes.get().add(first), len);
            let parents = std::slice::from_raw_parts_mut(work.parent.get().add(first), len);
            for (&note, parent) in notes.iter().zip(parents) {
                // No branch: the processor can't predict which vertices were met.
                let name = *work.names.get_unchecked(usize::from(note));
                *parent = if *parent == NONE { name } else { *parent };
            }
            notes.fill(NOT_MET);
            counts[1] += bitmap(work.now);
        }
    }
    counts
}
