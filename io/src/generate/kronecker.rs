//! The Kronecker graph of Graph500, exactly as version 3 of its reference code generates it.
//!
//! Each edge has a stream of random numbers of its own, 2^64 numbers after that of the edge before. The edge falls into one of the four
//! quadrants of the adjacency matrix, then of that quadrant, and so on, with probabilities .57, .19, .19 and .05 in units of 1/10000. The
//! graph is undirected, so edges below the diagonal are flipped above it. The recursion would give low numbers high degrees, so a fixed
//! bijection scrambles the vertices.
//!
//! The reference code finds each edge's stream by multiplying up to eight matrices. Here one matrix leads from an edge to the next. Several
//! edges are generated side by side, because the time of one edge is a chain of dependent multiplications, one per quadrant.

use std::ops::Range;

use super::{
    mrg::{Matrix, Mrg, ORDER, next},
    source::Source,
};
use socbfs::graph::Vertex;

/// Quadrants are drawn in units of 1 / `UNITS`.
const UNITS: u64 = 10_000;
/// Upper end, in a draw's units, of the quadrant right of the diagonal (source 0, target 1).
const END_RIGHT: u64 = 1_900;
/// Upper end of the quadrant below the diagonal (source 1, target 0).
const END_BELOW: u64 = 3_800;
/// Upper end of the quadrant of low numbers (source 0, target 0). The quadrant of high numbers (source 1, target 1) lies above it.
const END_LOW: u64 = 9_500;
/// Numbers below this are drawn again, so that the rest, 2^31 - 1 less this, is a multiple of the units.
const REJECTED: u64 = 0x7fff_ffff % UNITS;

/// Edges generated side by side. Rows of this many 64-bit numbers vectorise on any processor, and the eight rows in use fill a small part
/// of its first-level cache.
const LANES: usize = 64;

/// One number per lane.
type Row = [u64; LANES];

/// Quadrants of `LANES` edges.
struct Quadrants {
    /// Sources before the flip.
    source: Row,
    /// Targets before the flip.
    target: Row,
    /// Negative as a signed number if a random number was rejected: source and target are then invalid.
    rejected: Row,
}

impl Quadrants {
    /// Draws the next quadrant of every lane, without a branch. The new numbers replace the oldest.
    #[inline(always)]
    fn draw(&mut self, newest: &Row, oldest: &mut Row) {
        for lane in 0..LANES {
            let number = next(newest[lane], oldest[lane]);
            oldest[lane] = number;
            self.rejected[lane] |= number.wrapping_sub(REJECTED);
            // Division by 10000 as a multiplication, exact for every number below 2^31.
            let draw = number - ((number * 0xd1b7_1759) >> 45) * UNITS;
            // The sign of the difference: 1 if the draw is below the end, else 0. If one of the three is 1, so are those after it.
            let right = draw.wrapping_sub(END_RIGHT) >> 63;
            let right_or_below = draw.wrapping_sub(END_BELOW) >> 63;
            let not_high = draw.wrapping_sub(END_LOW) >> 63;
            self.source[lane] = (self.source[lane] << 1) | (right ^ right_or_below ^ not_high ^ 1);
            self.target[lane] = (self.target[lane] << 1) | (right ^ not_high ^ 1);
        }
    }
}

pub(super) struct Kronecker {
    scale: u32,
    edges: u64,
    /// Stream of edge 0.
    first: Mrg,
    /// `jumps[i]` leads from an edge's stream to that of the edge `2^i` further on.
    jumps: Vec<Matrix>,
    /// The two numbers that define the bijection of vertices.
    scramble: [u64; 2],
}

impl Kronecker {
    pub(super) fn new(scale: u32, edges: u64, seed1: u64, seed2: u64) -> Self {
        let first = Mrg::new(seed1, seed2);
        let mut jumps = vec![Matrix::STEP.doubled(64)];
        while jumps.len() < 64 {
            jumps.push(jumps[jumps.len() - 1].squared());
        }
        let mut stream = first.clone();
        stream.skip(50, 7, 0);
        // The reference code multiplies by 2^32 - 1 where one would expect 2^32.
        let mut word = || stream.number().wrapping_mul(0xffff_ffff).wrapping_add(stream.number());
        Self { scale, edges, first, jumps, scramble: [word(), word()] }
    }

    pub(super) fn source(self) -> Source {
        Source::of_edges(1 << self.scale, self.edges, move |units, edges| self.fill(units, edges))
    }

    fn fill(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>) {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { self.fill_avx2(units, edges) };
        }
        self.fill_lanes(units, edges);
    }

    /// Stream of an edge.
    fn stream(&self, edge: u64) -> [u64; ORDER] {
        let bits = (0..64).filter(|bit| (edge >> bit) & 1 == 1);
        bits.fold(self.first.state, |state, bit| self.jumps[bit].apply(&state))
    }

    /// Quadrants of one edge, drawn one after the other. For an edge with a rejected number, which must be drawn again.
    fn quadrants_one(&self, state: [u64; ORDER]) -> [u64; 2] {
        let mut stream = Mrg { state };
        let (mut source, mut target) = (0, 0);
        for _ in 0..self.scale {
            let mut number = stream.number();
            while number < REJECTED {
                number = stream.number();
            }
            let draw = number % UNITS;
            let (down, right) = match draw {
                0..END_RIGHT => (0, 1),
                END_RIGHT..END_BELOW => (1, 0),
                END_BELOW..END_LOW => (0, 0),
                _ => (1, 1),
            };
            source = source << 1 | down;
            target = target << 1 | right;
        }
        [source, target]
    }

    /// Quadrants of `LANES` edges side by side. `streams[i][lane]` is number `i` of the state of `lane`.
    #[inline(always)]
    fn quadrants(&self, streams: &[Row; ORDER]) -> Quadrants {
        let mut numbers = *streams;
        let [mut a, mut b, mut c, mut d, mut e] = numbers.each_mut();
        let mut quadrants = Quadrants { source: [0; LANES], target: [0; LANES], rejected: [0; LANES] };
        for _ in 0..self.scale {
            quadrants.draw(a, e);
            (a, b, c, d, e) = (e, a, b, c, d);
        }
        quadrants
    }

    /// Flips an edge above the diagonal. Along the recursion an edge leaves the diagonal at the first quadrant where source and
    /// target differ; if it leaves downwards, that one quadrant is mirrored, and those after it stay as drawn.
    #[inline(always)]
    fn flip(source: u64, target: u64) -> [u64; 2] {
        let leaves = 1_u64.checked_shl((source ^ target).checked_ilog2().unwrap_or(64)).unwrap_or(0);
        [source & !leaves, target | leaves]
    }

    /// The bijection of the vertices: two rounds of multiplication by an odd number and reversal of the bits.
    #[inline(always)]
    fn scrambled(&self, vertex: u64) -> Vertex {
        let [first, second] = self.scramble;
        let reversed = |bits: u64| bits.reverse_bits() >> (64 - self.scale);
        let once = reversed(vertex.wrapping_add(first).wrapping_add(second).wrapping_mul(first | 0x4519_8402_1149_3211));
        reversed(once.wrapping_mul(second | 0x3050_8521_02c8_43a5)) as Vertex
    }

    #[inline(always)]
    fn fill_lanes(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>) {
        let mut streams = [[0; LANES]; ORDER];
        let mut state = self.stream(units.start);
        for lane in 0..LANES {
            for (row, &number) in streams.iter_mut().zip(&state) {
                row[lane] = number;
            }
            state = self.jumps[0].apply(&state);
        }
        let jump = &self.jumps[LANES.trailing_zeros() as usize];
        let mut left = (units.end - units.start) as usize;
        while left > 0 {
            let quadrants = self.quadrants(&streams);
            let count = left.min(LANES);
            edges.extend((0..count).map(|lane| {
                let [source, target] = if quadrants.rejected[lane] >> 63 == 1 {
                    self.quadrants_one(streams.map(|row| row[lane]))
                } else {
                    [quadrants.source[lane], quadrants.target[lane]]
                };
                Self::flip(source, target).map(|vertex| self.scrambled(vertex))
            }));
            left -= count;
            jump.apply_rows(&mut streams);
        }
    }

    /// `fill_lanes` compiled for AVX2.
    ///
    /// # Safety
    /// The processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn fill_avx2(&self, units: Range<u64>, edges: &mut Vec<[Vertex; 2]>) {
        self.fill_lanes(units, edges);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_multiplication_is_exact() {
        let numbers =
            (0..=0x7fff_ffff_u64).step_by(9_973).chain((0..200_000).map(|k| k * UNITS)).chain((1..200_000).map(|k| k * UNITS - 1));
        for number in numbers.filter(|&number| number <= 0x7fff_ffff) {
            assert_eq!((number * 0xd1b7_1759) >> 45, number / UNITS, "{number}");
        }
    }

    #[test]
    fn all_lanes_match_the_scalar_computation() {
        let graph = Kronecker::new(9, 1000, 2, 3);
        let mut streams: Vec<[u64; ORDER]> = (1..LANES as u64).map(|edge| graph.stream(edge)).collect();
        // A state whose next number is rejected: X * 0 + Y * 0 = 0.
        streams.push([0, 5, 6, 7, 0]);
        let quadrants = graph.quadrants(&std::array::from_fn(|i| std::array::from_fn(|lane| streams[lane][i])));
        for (lane, &stream) in streams[..LANES - 1].iter().enumerate() {
            assert_eq!(quadrants.rejected[lane] >> 63, 0);
            assert_eq!([quadrants.source[lane], quadrants.target[lane]], graph.quadrants_one(stream));
        }
        assert_eq!(quadrants.rejected[LANES - 1] >> 63, 1);

        // The rejected number is drawn again: the edge is that of the state one step on.
        let mut stream = Mrg { state: streams[LANES - 1] };
        assert_eq!(stream.number(), 0);
        assert_eq!(graph.quadrants_one(streams[LANES - 1]), graph.quadrants_one(stream.state));
    }

    #[test]
    fn every_instruction_set_makes_the_same_edges() {
        let graph = Kronecker::new(17, 1000, 2, 3);
        let (mut portable, mut best) = (Vec::new(), Vec::new());
        graph.fill_lanes(1..1000, &mut portable);
        graph.fill(1..1000, &mut best);
        assert!(portable == best && portable.len() == 999);
        let one = |edge| {
            let [source, target] = graph.quadrants_one(graph.stream(edge));
            Kronecker::flip(source, target).map(|vertex| graph.scrambled(vertex))
        };
        assert!((1..1000).map(one).eq(portable));
    }

    #[test]
    fn flip_mirrors_the_first_difference_only() {
        assert_eq!(Kronecker::flip(0b1010, 0b1010), [0b1010, 0b1010]);
        assert_eq!(Kronecker::flip(0b1010, 0b1001), [0b1000, 0b1011]);
        assert_eq!(Kronecker::flip(0b0001, 0b1000), [0b0001, 0b1000]);
        assert_eq!(Kronecker::flip(0b1001, 0b0011), [0b0001, 0b1011]);
    }

    #[test]
    fn scramble_is_a_bijection() {
        let graph = Kronecker::new(12, 0, 2, 3);
        let mut seen = vec![false; 1 << 12];
        for vertex in 0..1 << 12 {
            assert!(!std::mem::replace(&mut seen[graph.scrambled(vertex) as usize], true));
        }
    }
}
