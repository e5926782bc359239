//! Daga, Nutter and Meswani's hybrid++ (Efficient breadth-first search on a heterogeneous processor, IEEE Big Data 2014), as Zhang et al.
//! 2018 describe it (sections 1 and 5.1): top-down levels run on the CPU, bottom-up levels on the GPU, and the direction is switched by
//! fixed thresholds: Beamer's alpha and beta.
//!
//! Top-down is TC; bottom-up is BG, for hubs in local memory came with Zhang. What hybrid++ adds for graphs whose degrees hardly differ
//! (a search of these never turns bottom-up) is no part of Zhang's description, and none here.

use super::{
    AlphaBeta, Policy,
    rule::{Known, Memory, Parameter, Rule, Runs, Uses},
};
use crate::bfs::{Direction, LevelStats, Placement, Strategy};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "daga",
    parameters: "ALPHA,BETA",
    summary: "Daga's: top-down on the CPU, bottom-up on the device, with 14,24",
    default: || Ok(Policy::Daga(Daga(AlphaBeta::PAPER))),
}];

/// The rule for the direction; the direction says where a level runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Daga(pub AlphaBeta);

impl Rule for Daga {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        self.0.parameters()
    }

    fn uses(&self, _runs: Runs) -> Uses {
        Uses::EITHER
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &Memory) -> bool {
        self.0.is_bottom_up(stats, memory)
    }

    fn placement(&self, direction: Direction, _stats: &LevelStats, _runs: Runs) -> Placement {
        match direction {
            Direction::TopDown => Strategy::Tc.placement(),
            Direction::BottomUp => Strategy::Bg.placement(),
        }
    }
}
