//! Counter-based random numbers: any number of the sequence can be computed without those before it, so that edges can be generated in any
//! order and on any number of threads.
//!
//! Number `k` of item `i` under `seed` is `mix(item(seed, i) + (k + 1) * GOLDEN)`, with `item(seed, i) = mix(mix(seed + GOLDEN) +
//! (i + 1) * GOLDEN)`, all modulo 2^64. `mix` is the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast Splittable
//! Pseudorandom Number Generators", 2014, with Stafford's variant 13), a bijection of 64 bits; so an item's numbers are
//! SplitMix64 started at a point that depends on the seed and the item.

/// The odd integer nearest to 2^64 / golden ratio: the increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The random numbers of all items under one seed.
#[derive(Debug, Clone, Copy)]
pub struct Seeded(u64);

impl Seeded {
    /// The function with this seed.
    pub fn new(seed: u64) -> Self {
        Self(mix(seed.wrapping_add(GOLDEN)))
    }

    /// The numbers of one item (an edge, a vertex).
    #[inline]
    pub fn item(self, index: u64) -> Numbers {
        Numbers(mix(self.0.wrapping_add((index.wrapping_add(1)).wrapping_mul(GOLDEN))))
    }
}

/// The numbers of one item, one after another.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// SplitMix64 from this state.
    pub fn new(state: u64) -> Self {
        Self(state)
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// A number below `bound`: the high half of a 128-bit product. The frequency of a number is off by at most 1 in 2^64 / `bound`, which
    /// can't be observed for bounds of 32 bits.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `threshold` / 2^64 (see [`threshold`]).
    #[inline]
    pub(crate) fn chance(&mut self, threshold: u128) -> bool {
        u128::from(self.bits()) < threshold
    }
}

/// A probability from 0 to 1 as a number from 0 to 2^64, both included, so that "never" and "always" are exact.
pub fn threshold(probability: f64) -> u128 {
    (probability * 18_446_744_073_709_551_616.0) as u128
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64's published sequence for the state 1234567 (the test vector of several implementations).
    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        let mut numbers = Numbers::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(expected.map(|_| numbers.bits()), expected);
    }

    #[test]
    fn bounded_numbers_are_spread_evenly_and_thresholds_are_exact() {
        let mut numbers = Seeded::new(1).item(0);
        let mut seen = [0_u32; 5];
        for _ in 0..5000 {
            seen[numbers.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
        assert!((0..1000).all(|_| !numbers.chance(threshold(0.0)) && numbers.chance(threshold(1.0))));
        assert_eq!(threshold(0.5), 1 << 63);
    }
}
