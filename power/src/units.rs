//! Joules and watts.

use std::{
    fmt,
    iter::Sum,
    ops::{Add, AddAssign, Sub},
};

use serde::{Deserialize, Serialize};

/// An energy.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Joules(pub f64);

/// A power.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watts(pub f64);

impl Joules {
    /// The mean power that gives this energy in `seconds` (`None` if no time has passed).
    pub fn over(self, seconds: f64) -> Option<Watts> {
        (seconds > 0.0).then_some(Watts(self.0 / seconds))
    }
}

impl Watts {
    /// The energy of this power held for `seconds`.
    pub fn during(self, seconds: f64) -> Joules {
        Joules(self.0 * seconds)
    }
}

macro_rules! quantity {
    ($name:ident, $symbol:literal) => {
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
                all.fold(Self::default(), Add::add)
            }
        }

        impl fmt::Display for $name {
            /// Shows about four significant digits: three decimals at most.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let decimals = match self.0.abs() {
                    v if v >= 1000.0 => 0,
                    v if v >= 100.0 => 1,
                    v if v >= 10.0 => 2,
                    _ => 3,
                };
                f.pad(&format!("{:.decimals$} {}", self.0, $symbol))
            }
        }
    };
}

quantity!(Joules, "J");
quantity!(Watts, "W");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_and_energy_are_converted_into_each_other() {
        assert_eq!(Joules(30.0).over(10.0), Some(Watts(3.0)));
        assert_eq!(Joules(30.0).over(0.0), None);
        assert_eq!(Watts(3.0).during(10.0), Joules(30.0));
        assert_eq!([Joules(1.0), Joules(2.5)].into_iter().sum::<Joules>(), Joules(3.5));
        assert_eq!(Joules(5.0) - Joules(2.0), Joules(3.0));
    }

    #[test]
    fn four_digits_are_shown() {
        assert_eq!(Watts(0.0625).to_string(), "0.062 W");
        assert_eq!(Watts(18.0).to_string(), "18.00 W");
        assert_eq!(Joules(123.456).to_string(), "123.5 J");
        assert_eq!(Joules(54321.0).to_string(), "54321 J");
    }
}
