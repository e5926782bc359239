//! Daga, Nutter and Meswani's hybrid++ (Efficient breadth-first search on a heterogeneous processor, IEEE Big Data 2014), as Zhang et al.
//! 2018 describe it (sections 1 and 5.1): top-down levels run on the CPU, bottom-up levels on the GPU, and the direction is switched by
//! fixed thresholds: Beamer's alpha and beta.
//!
//! Top-down is TC; bottom-up is BG, for hubs in local memory came with Zhang. What hybrid++ adds for graphs whose degrees hardly differ
//! (a search of these never turns bottom-up) is no part of Zhang's description, and none here.

use crate::bfs::{Direction, Strategy};

/// Alpha of Beamer et al. 2012, of which hybrid++ is a placement.
pub const DEFAULT_ALPHA: f64 = 14.0;

/// Beta of Beamer et al. 2012.
pub const DEFAULT_BETA: f64 = 24.0;

/// How levels of a direction run.
pub(super) fn strategy(direction: Direction) -> Strategy {
    match direction {
        Direction::TopDown => Strategy::Tc,
        Direction::BottomUp => Strategy::Bg,
    }
}
