//! Gunrock's direction rule (release 1.2, `gunrock/app/bfs`; SURF 2022, algorithm 5, has it in an older form).
//!
//! The rule estimates arcs from the sizes of frontiers: a push looks at `F * m / n` arcs, and each of the `U` unvisited vertices of a pull
//! looks at `n / V` neighbours until it meets one of the `V` visited vertices (`V` and `U` count the frontier as visited). Level 0 is
//! always a push. A search pushes until the push would cost more than `do_a` times the pull, pulls while the push would cost more than
//! `do_b` times the pull, and never pulls again after that.

use super::{
    Policy,
    rule::{History, Known, Parameter, Rule, Value},
};
use crate::bfs::LevelStats;

pub(super) const KNOWN: &[Known] = &[Known {
    kind: "gunrock",
    parameters: "DO_A,DO_B",
    summary: "direction as in Gunrock 1.2, with its 0.001,0.2",
    default: || Ok(Policy::Gunrock(Gunrock::default())),
}];

/// The two factors. The release's defaults are 0.001 and 0.2; its published runs set the first between 0.00005 and 100 per graph, and
/// the second to -1 where a pull is to be final.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gunrock {
    /// A push turns into a pull if it would cost more than this many pulls.
    pub do_a: f64,
    /// A search keeps pulling while a push would cost more than this many pulls.
    pub do_b: f64,
}

impl Default for Gunrock {
    fn default() -> Self {
        Self { do_a: 0.001, do_b: 0.2 }
    }
}

impl Rule for Gunrock {
    fn known(&self) -> &'static Known {
        &KNOWN[0]
    }

    /// Factors of 0 and less are valid: with them the release expresses "always".
    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        vec![Value::Finite(&mut self.do_a).named("do_a"), Value::Finite(&mut self.do_b).named("do_b")]
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &History) -> bool {
        let (n, m) = (stats.vertices as f64, stats.arcs as f64);
        let unvisited = stats.unvisited_vertices as f64;
        let push = stats.frontier_vertices as f64 * m / n;
        // The root is visited, so this does not divide by 0.
        let pull = unvisited * n / (n - unvisited);
        if memory.was_bottom_up { push > self.do_b * pull } else { stats.level > 0 && !memory.been_bottom_up && push > self.do_a * pull }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 vertices of 10 arcs each.
    fn stats(level: u32, frontier_vertices: u64, unvisited_vertices: u64) -> LevelStats {
        LevelStats { level, vertices: 1000, arcs: 10_000, frontier_vertices, unvisited_vertices, ..LevelStats::default() }
    }

    fn pushed() -> History {
        History { was_bottom_up: false, been_bottom_up: false, ..History::default() }
    }
    fn pulled() -> History {
        History { was_bottom_up: true, been_bottom_up: true, ..History::default() }
    }
    fn back() -> History {
        History { was_bottom_up: false, been_bottom_up: true, ..History::default() }
    }

    #[test]
    fn a_push_turns_into_a_pull_above_do_a() {
        // F 30: a push of 300. U 900, V 100: a pull of 900 * 1000 / 100 = 9000. 300 / 9000 = 1 / 30.
        let at = |do_a| Gunrock { do_a, do_b: 1.0 }.is_bottom_up(&stats(2, 30, 900), &pushed());
        assert!(at(0.033) && !at(0.034));
        // With the defaults and U 990, F 9 does not pull: 90 is below 0.001 * 990 * 1000 / 10 = 99. F 10 pulls: 100 is above 99.
        let rule = Gunrock::default();
        assert!(!rule.is_bottom_up(&stats(1, 9, 990), &pushed()) && rule.is_bottom_up(&stats(1, 10, 990), &pushed()));
    }

    #[test]
    fn a_pull_goes_on_above_do_b() {
        // U 500, V 500: a pull of 500 * 1000 / 500 = 1000. By 0.2 a push must cost more than 200: more than 20 vertices.
        let rule = Gunrock::default();
        assert!(!rule.is_bottom_up(&stats(4, 20, 500), &pulled()) && rule.is_bottom_up(&stats(4, 21, 500), &pulled()));
        // -1, as in the release's scripts: it pulls to the end.
        assert!(Gunrock { do_a: 0.1, do_b: -1.0 }.is_bottom_up(&stats(9, 1, 500), &pulled()));
    }

    #[test]
    fn a_search_never_pulls_a_second_time_and_never_at_level_0() {
        let rule = Gunrock::default();
        assert!(rule.is_bottom_up(&stats(4, 300, 500), &pushed()) && !rule.is_bottom_up(&stats(4, 300, 500), &back()));
        // F 1, U 1, V 1 of two vertices with one arc each: a push of 1, a pull of 2.
        let two = |level| LevelStats { level, vertices: 2, arcs: 2, frontier_vertices: 1, unvisited_vertices: 1, ..LevelStats::default() };
        assert!(!rule.is_bottom_up(&two(0), &pushed()) && rule.is_bottom_up(&two(1), &pushed()));
    }

    #[test]
    fn a_pull_without_unvisited_vertices_costs_nothing() {
        assert!(Gunrock::default().is_bottom_up(&stats(5, 1, 0), &pushed()));
    }
}
