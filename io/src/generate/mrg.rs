//! The random number generator of Graph500: a multiple recursive generator of L'Ecuyer, Blouin and Couture ("A search for
//! good multiple recursive random number generators", ACM TOMACS 3(2), 1993, table 3, k = 5),
//! `x[n] = (X x[n-1] + Y x[n-5]) mod (2^31 - 1)`.
//!
//! The state is the column vector of the last five numbers, newest first, and one step multiplies it by a matrix `A`. Any number of steps
//! is therefore one multiplication by a power of `A`, and streams that are far apart in the same sequence are cheap.

/// The modulus, 2^31 - 1, a Mersenne prime: numbers are folded instead of divided, because 2^31 is congruent to 1.
pub const MODULUS: u64 = (1 << 31) - 1;
/// Weight of the newest number.
pub const X: u64 = 107_374_182;
/// Weight of the oldest number.
pub const Y: u64 = 104_480;

/// Count of numbers in the state.
pub const ORDER: usize = 5;

/// A smaller number congruent to `value`: below 2^31 + `value` / 2^31.
#[inline(always)]
const fn fold(value: u64) -> u64 {
    (value & MODULUS) + (value >> 31)
}

/// The remainder of `value`, which must be below twice the modulus: adds 1 exactly if `value` has reached the modulus, and drops bit 31.
#[inline(always)]
pub const fn reduce_once(value: u64) -> u64 {
    (value + ((value + 1) >> 31)) & MODULUS
}

/// The next number after `newest` and, five steps back, `oldest` (both below the modulus).
#[inline(always)]
pub const fn next(newest: u64, oldest: u64) -> u64 {
    // The masks change nothing, but tell the compiler that 32-bit multiplications suffice, so that it can vectorise.
    // X * newest < 2^58, so one fold leaves less than 2^31 + 2^27.
    reduce_once(fold(X * (newest & MODULUS) + Y * (oldest & MODULUS)))
}

/// A power of the generator's matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix([[u64; ORDER]; ORDER]);

impl Matrix {
    /// The matrix of one step.
    pub(crate) const STEP: Self = Self([[X, 0, 0, 0, Y], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]);

    /// The matrix of twice as many steps.
    pub(crate) fn squared(&self) -> Self {
        let mut product = [[0; ORDER]; ORDER];
        for column in 0..ORDER {
            let image = self.apply(&self.0.map(|row| row[column]));
            for row in 0..ORDER {
                product[row][column] = image[row];
            }
        }
        Self(product)
    }

    /// The matrix of `2^exponent` times as many steps.
    pub(crate) fn doubled(&self, exponent: u32) -> Self {
        (0..exponent).fold(*self, |matrix, _| matrix.squared())
    }

    /// The state after the steps of this matrix.
    #[inline(always)]
    pub(crate) fn apply(&self, state: &[u64; ORDER]) -> [u64; ORDER] {
        let mut image = [0; ORDER];
        for (number, row) in image.iter_mut().zip(&self.0) {
            *number = product(row, state);
        }
        image
    }
}

/// Row times column.
#[inline(always)]
fn product(row: &[u64; ORDER], state: &[u64; ORDER]) -> u64 {
    // Four products of numbers below 2^31 - 1 sum to less than 2^64, five do not: fold in between. Then `sum` is below
    // 2^62 + 2^34, the first fold leaves less than 2^32 + 8, the second less than 2^31 + 2.
    let mut four = 0;
    for i in 0..4 {
        four += (row[i] & MODULUS) * (state[i] & MODULUS);
    }
    let sum = fold(four) + (row[4] & MODULUS) * (state[4] & MODULUS);
    reduce_once(fold(fold(sum)))
}

impl Matrix {
    /// [`apply`](Self::apply) to `N` states side by side: `rows[i][lane]` is number `i` of the state of `lane`.
    #[inline(always)]
    pub(crate) fn apply_rows<const N: usize>(&self, rows: &mut [[u64; N]; ORDER]) {
        for lane in 0..N {
            let mut state = [0; ORDER];
            for (number, row) in state.iter_mut().zip(&*rows) {
                *number = row[lane];
            }
            for (number, row) in rows.iter_mut().zip(&self.0) {
                number[lane] = product(row, &state);
            }
        }
    }
}

/// A stream of numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mrg {
    /// The last five numbers, newest first, each below the modulus and not all zero.
    pub(crate) state: [u64; ORDER],
}

impl Mrg {
    /// Spreads two seeds of 64 bits over the state as Graph500 does: 30 bits each for four of the numbers, the eight bits that
    /// remain for the fifth, and 1 added to all so that none is zero.
    pub fn new(seed1: u64, seed2: u64) -> Self {
        let low = |bits: u64| (bits & 0x3fff_ffff) + 1;
        Self { state: [low(seed1), low(seed1 >> 30), low(seed2), low(seed2 >> 30), ((seed2 >> 60) << 4) + (seed1 >> 60) + 1] }
    }

    /// Skips `high * 2^128 + middle * 2^64 + low` numbers.
    pub fn skip(&mut self, high: u64, middle: u64, low: u64) {
        let mut matrix = Matrix::STEP;
        let last = if high != 0 {
            192 - high.leading_zeros()
        } else if middle != 0 {
            128 - middle.leading_zeros()
        } else {
            64 - low.leading_zeros()
        };
        for bit in 0..last {
            let word = [low, middle, high][bit as usize / 64];
            if (word >> (bit % 64)) & 1 == 1 {
                self.state = matrix.apply(&self.state);
            }
            if bit + 1 < last {
                matrix = matrix.squared();
            }
        }
    }

    /// The next number, from 0 to 2^31 - 2.
    pub(crate) fn number(&mut self) -> u64 {
        let [a, b, c, d, e] = self.state;
        let new = next(a, e);
        self.state = [new, a, b, c, d];
        new
    }

    /// A number from 0 to 1, made of two numbers as digits to the base 2^31 - 1. The factors are those of the
    /// reference code, whose rounding decides which vertices become roots.
    pub fn fraction(&mut self) -> f64 {
        let first = self.number() as f64 * 4.656_612_875_245_797e-10;
        let second = self.number() as f64 * 2.168_404_346_990_493e-19;
        first + second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduce_once_gives_the_remainder() {
        for value in [0, 1, MODULUS - 1, MODULUS, MODULUS + 1, 2 * MODULUS - 1] {
            assert_eq!(reduce_once(value), value % MODULUS, "{value}");
        }
    }

    #[test]
    fn a_step_follows_the_recurrence() {
        let largest = MODULUS - 1;
        for state in [[1, 2, 3, 4, 5], [largest; 5], [0, 0, 0, 0, largest], [largest, 0, 7, 0, 1]] {
            let naive = ((u128::from(X) * u128::from(state[0]) + u128::from(Y) * u128::from(state[4])) % u128::from(MODULUS)) as u64;
            assert_eq!(next(state[0], state[4]), naive);
            assert_eq!(Matrix::STEP.apply(&state), [naive, state[0], state[1], state[2], state[3]]);
        }
    }

    #[test]
    fn apply_does_not_overflow_with_the_largest_numbers() {
        let largest = MODULUS - 1;
        let matrix = Matrix([[largest; ORDER]; ORDER]);
        // (-1)(-1) five times.
        assert_eq!(matrix.apply(&[largest; ORDER]), [5; ORDER]);
    }

    #[test]
    fn skipping_equals_repeated_stepping() {
        let start = Mrg::new(2, 3);
        for steps in [0, 1, 2, 7, 64, 1000] {
            let (mut skipped, mut stepped) = (start.clone(), start.clone());
            skipped.skip(0, 0, steps);
            for _ in 0..steps {
                stepped.number();
            }
            assert_eq!(skipped, stepped, "{steps} steps");
        }
        // 2^128 + 2^64 + 2^64 - 1 + 1 by two routes.
        let (mut once, mut twice) = (start.clone(), start);
        once.skip(1, 2, 0);
        twice.skip(0, 1, u64::MAX);
        twice.skip(1, 0, 1);
        assert_eq!(once, twice);
    }

    #[test]
    fn seeds_fill_the_state() {
        assert_eq!(Mrg::new(2, 3).state, [3, 1, 4, 1, 1]);
        assert_eq!(Mrg::new(u64::MAX, u64::MAX).state, [1 << 30, 1 << 30, 1 << 30, 1 << 30, 15 * 16 + 15 + 1]);
    }
}
