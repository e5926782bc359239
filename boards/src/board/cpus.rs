//! Lists of CPUs as the Linux kernel writes them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// CPU numbers in the order in which threads are bound to them, written as `0-3,6`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(Vec<usize>);

/// A text that is not a list of CPUs, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CpuListError {
    /// A text that is neither a number nor a range.
    #[error("{0:?} is not a CPU number or range; a list of CPUs looks like 0-3,6")]
    NotACpu(String),
    /// A range that ends before it starts.
    #[error("the range {0} ends before it starts")]
    Backwards(String),
    /// A number that no system has.
    #[error("CPU {0} is beyond the {max} CPUs a system may have", max = CpuList::MOST)]
    TooLarge(usize),
    /// A CPU that is listed twice.
    #[error("CPU {0} is listed twice")]
    Twice(usize),
}

impl CpuList {
    /// Limit of CPU numbers: the most CPUs that a Linux kernel can be built for.
    pub const MOST: usize = 8192;

    /// A list of these numbers. `None` if a number is not below [`CpuList::MOST`], or is listed twice.
    pub fn from_numbers(numbers: Vec<usize>) -> Option<Self> {
        let good = numbers.iter().enumerate().all(|(place, cpu)| *cpu < Self::MOST && !numbers[..place].contains(cpu));
        good.then_some(Self(numbers))
    }

    /// The numbers in the order given.
    pub fn numbers(&self) -> &[usize] {
        &self.0
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let number = |text: &str| -> Result<usize, CpuListError> {
            let cpu = text.trim().parse().map_err(|_| CpuListError::NotACpu(text.trim().to_owned()))?;
            if cpu < Self::MOST { Ok(cpu) } else { Err(CpuListError::TooLarge(cpu)) }
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            let (first, last) = match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            };
            if first > last {
                return Err(CpuListError::Backwards(part.trim().to_owned()));
            }
            for cpu in first..=last {
                if cpus.contains(&cpu) {
                    return Err(CpuListError::Twice(cpu));
                }
                cpus.push(cpu);
            }
        }
        Ok(Self(cpus))
    }
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;

    fn try_from(text: String) -> Result<Self, CpuListError> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.to_string()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ranges(&self.0))
    }
}

/// CPUs as ranges in the given order, such as `4-7` or `0-3,6`.
pub(crate) fn ranges(cpus: &[usize]) -> String {
    let text = |run: &[usize]| match run {
        [first, .., last] => format!("{first}-{last}"),
        one => one.iter().map(usize::to_string).collect(),
    };
    cpus.chunk_by(|&cpu, &next| next == cpu + 1).map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_in_the_order_given() {
        let read = |text: &str| text.parse::<CpuList>().unwrap();
        assert_eq!(read("0").numbers(), [0]);
        assert_eq!(read("4-6, 1").numbers(), [4, 5, 6, 1]);
        for text in ["0", "0-3", "4-6,1", "7,5,3"] {
            assert_eq!(read(text).to_string(), text);
        }
        assert_eq!(read("0,1,2").to_string(), "0-2");
    }

    #[test]
    fn bad_lists_are_refused() {
        let refused = |text: &str| text.parse::<CpuList>().unwrap_err();
        assert_eq!(refused(""), CpuListError::NotACpu(String::new()));
        assert_eq!(refused("0,,1"), CpuListError::NotACpu(String::new()));
        assert_eq!(refused("a-3"), CpuListError::NotACpu("a".into()));
        assert_eq!(refused("3-1"), CpuListError::Backwards("3-1".into()));
        assert_eq!(refused("0-2,1"), CpuListError::Twice(1));
        assert_eq!(refused("0-99999999"), CpuListError::TooLarge(99_999_999));
    }
}
