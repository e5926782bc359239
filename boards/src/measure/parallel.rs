//! How much work a level needs for it to be faster if threads share it, as a calibration has it.

use serde::{Deserialize, Serialize};

use super::GAIN;
use crate::board::MOST_PIECE;
use socbfs::ParallelThresholds;

/// A threshold of [`ParallelThresholds`], named as its key in the table `[cpu]` of a board file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ParallelKey {
    /// [`ParallelThresholds::arcs`].
    ParallelArcs,
    /// [`ParallelThresholds::hub_arcs`].
    ParallelHubArcs,
    /// [`ParallelThresholds::row_arcs`].
    ParallelRowArcs,
    /// [`ParallelThresholds::piece`].
    Piece,
}

impl ParallelKey {
    /// All keys.
    pub const ALL: [Self; 4] = [Self::ParallelArcs, Self::ParallelHubArcs, Self::ParallelRowArcs, Self::Piece];

    /// The key in a board file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ParallelArcs => "parallel_arcs",
            Self::ParallelHubArcs => "parallel_hub_arcs",
            Self::ParallelRowArcs => "parallel_row_arcs",
            Self::Piece => "piece",
        }
    }

    /// The value of this threshold.
    pub const fn of(self, thresholds: &ParallelThresholds) -> u64 {
        match self {
            Self::ParallelArcs => thresholds.arcs,
            Self::ParallelHubArcs => thresholds.hub_arcs,
            Self::ParallelRowArcs => thresholds.row_arcs,
            Self::Piece => thresholds.piece as u64,
        }
    }

    /// Sets this threshold. A piece is rounded down to a multiple of 64 within the range that an engine takes.
    pub fn set(self, thresholds: &mut ParallelThresholds, value: u64) {
        match self {
            Self::ParallelArcs => thresholds.arcs = value,
            Self::ParallelHubArcs => thresholds.hub_arcs = value,
            Self::ParallelRowArcs => thresholds.row_arcs = value,
            Self::Piece => thresholds.piece = (value.min(MOST_PIECE as u64) as usize / 64).max(1) * 64,
        }
    }
}

/// One value of a threshold, measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParallelTimes {
    /// The threshold.
    pub key: ParallelKey,
    /// Its value.
    pub value: u64,
    /// Time of searches with this value divided by the time with the usual one, measured in turn. The usual value comes first for its key,
    /// with 1.
    pub relative: f64,
}

/// The value of `key` to use, if one is faster than the usual value by more than noise.
pub fn best_parallel(measured: &[ParallelTimes], key: ParallelKey) -> Option<u64> {
    let best = measured.iter().filter(|times| times.key == key).min_by(|a, b| a.relative.total_cmp(&b.relative))?;
    (best.relative <= GAIN).then_some(best.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_value_must_be_faster_by_more_than_noise() {
        let key = ParallelKey::ParallelHubArcs;
        let times = |value, relative| ParallelTimes { key, value, relative };
        let other = ParallelTimes { key: ParallelKey::Piece, value: 64, relative: 0.1 };
        assert_eq!(best_parallel(&[times(8, 1.0), times(2, 0.97), other], key), None);
        assert_eq!(best_parallel(&[times(8, 1.0), times(2, 0.9), times(1, 0.8), other], key), Some(1));
        assert_eq!(best_parallel(&[], key), None);
    }

    #[test]
    fn a_threshold_is_set_by_its_key() {
        for key in ParallelKey::ALL {
            let mut thresholds = ParallelThresholds::default();
            key.set(&mut thresholds, 640);
            assert_eq!(key.of(&thresholds), 640);
            for other in ParallelKey::ALL.into_iter().filter(|&other| other != key) {
                assert_eq!(other.of(&thresholds), other.of(&ParallelThresholds::default()));
            }
        }
        let mut thresholds = ParallelThresholds::default();
        for (asked, taken) in [(0, 64), (63, 64), (130, 128), (u64::MAX, MOST_PIECE as u64)] {
            ParallelKey::Piece.set(&mut thresholds, asked);
            assert_eq!(thresholds.piece as u64, taken);
        }
    }
}
