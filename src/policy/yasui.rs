//! Yasui and Fujisawa's search (Fast and scalable NUMA-based thread parallel breadth-first search, HPCS 2015): on the CPU alone,
//! whatever devices there are, with Beamer's rule for the direction. Zhang et al. 2018 (section 5.1) compare themselves with it, without
//! what it does for several memory nodes.
//!
//! Most of what makes it fast is the layout: vertices renumbered by descending degree, those without an edge dropped, every list
//! sorted. That is the layout of `--order degree`, which `--order auto` chooses for skewed graphs; the policy takes the layout it is
//! given.

use super::{
    AlphaBeta, Policy,
    rule::{Known, Memory, Parameter, Rule, Runs, Uses},
};
use crate::bfs::{Direction, LevelStats, Placement};

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "yasui",
    parameters: "ALPHA,BETA",
    summary: "Yasui's: alpha-beta on the CPU, with 14,24; its layout is --order degree",
    default: || Ok(Policy::Yasui(Yasui(AlphaBeta::PAPER))),
}];

/// The rule for the direction, with Beamer's own numbers, which the paper tunes to each of its machines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Yasui(pub AlphaBeta);

impl Rule for Yasui {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        self.0.parameters()
    }

    fn uses(&self, _runs: Runs) -> Uses {
        Uses::CPU
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &Memory) -> bool {
        self.0.is_bottom_up(stats, memory)
    }

    fn placement(&self, _direction: Direction, _stats: &LevelStats, _runs: Runs) -> Placement {
        Placement::Cpu
    }
}
