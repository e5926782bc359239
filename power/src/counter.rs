//! An energy counter: its gain since the last read, also across a wrap.

/// A counter that starts again at zero after `range`. Every zone has a counter of its own. Never add counters before taking the
/// difference: their sum does not wrap at a fixed value.
///
/// ```
/// use socbfs_power::{Advance, Counter};
///
/// let mut counter = Counter::new(1000);
/// assert_eq!(counter.advance(990), Advance::First);
/// assert_eq!(counter.advance(5), Advance::Wrapped(15));
/// assert_eq!(counter.advance(25), Advance::Forward(20));
/// ```
#[derive(Debug, Clone)]
pub struct Counter {
    range: u64,
    last: Option<u64>,
}

/// The change of a counter between two reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advance {
    /// This was the first read, so there is no change.
    First,
    /// The counter gained this much.
    Forward(u64),
    /// The counter wrapped, and gained this much in all.
    Wrapped(u64),
}

impl Counter {
    /// A counter whose highest value is `range` ([`u64::MAX`] if it never wraps).
    pub fn new(range: u64) -> Self {
        Self { range, last: None }
    }

    /// Highest value of the counter.
    pub fn range(&self) -> u64 {
        self.range
    }

    /// Takes the value just read, and returns the change since the last one.
    pub fn advance(&mut self, value: u64) -> Advance {
        let Some(last) = self.last.replace(value) else { return Advance::First };
        match value.checked_sub(last) {
            Some(gain) => Advance::Forward(gain),
            // The kernel gives `range` in the units of the counter, not in those of the hardware register. The counter passed it once.
            None => Advance::Wrapped((self.range.max(last) - last).saturating_add(value)),
        }
    }

    /// Forgets the last value, so that the next read counts as the first.
    pub fn forget(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_wrap_adds_the_range() {
        let mut counter = Counter::new(1000);
        assert_eq!(counter.advance(990), Advance::First);
        assert_eq!(counter.advance(1000), Advance::Forward(10));
        assert_eq!(counter.advance(5), Advance::Wrapped(5));
        assert_eq!(counter.advance(5), Advance::Forward(0));
        counter.forget();
        assert_eq!(counter.advance(3), Advance::First);
    }

    proptest! {
        /// Every gain equals its step, for any start, range and steps.
        #[test]
        fn gains_add_up_across_wraps(range in 2_u64..=u64::MAX / 4, start: u64, steps in prop::collection::vec(0_u64..=u64::MAX / 4, 1..50)) {
            let start = start % range;
            let mut counter = Counter::new(range);
            counter.advance(start);
            let (mut position, mut wraps) = (start, 0);
            for step in steps {
                let step = step % range;
                // In this register `range` and 0 are the same moment: it shows 0.
                let wrapped = step >= range - position;
                position = if wrapped { step - (range - position) } else { position + step };
                match counter.advance(position) {
                    Advance::Forward(gain) => prop_assert!(!wrapped && gain == step),
                    Advance::Wrapped(gain) => {
                        wraps += 1;
                        prop_assert!(wrapped && gain == step);
                    }
                    Advance::First => prop_assert!(false, "not the first"),
                }
            }
            prop_assert!(wraps <= 50);
        }
    }
}
