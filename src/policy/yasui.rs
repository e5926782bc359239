//! Yasui and Fujisawa's search (Fast and scalable NUMA-based thread parallel breadth-first search, HPCS 2015): on the CPU alone,
//! whatever devices there are, with Beamer's rule for the direction. Zhang et al. 2018 (section 5.1) compare themselves with it, without
//! what it does for several memory nodes.
//!
//! Most of what makes it fast is the layout: vertices renumbered by descending degree, those without an edge dropped, every list
//! sorted. That is the layout of `--order degree`, which `--order auto` chooses for skewed graphs; the policy takes the layout it is
//! given.

/// Alpha of Beamer et al. 2012, whose rule it is; the paper tunes it to each of its machines.
pub const DEFAULT_ALPHA: f64 = 14.0;

/// Beta of Beamer et al. 2012.
pub const DEFAULT_BETA: f64 = 24.0;
