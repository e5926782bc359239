//! Rules of published systems that follow from a few numbers of a level. Each is a row of [`ROWS`] with its parameters and their published
//! values.

use super::{
    Policy, PolicyError,
    history::History,
    rule::{Known, LevelDevice, Parameter, Range, Rule, Value},
};
use socbfs::bfs::{Ahead, Direction, LevelPlan, LevelStats, Linear, Placement, SampledCosts, Strategy, Surely, Uses};

/// A published rule.
struct Row {
    known: Known,
    /// The names, ranges and published values of its parameters.
    takes: &'static [(&'static str, Range, f64)],
    /// Decides the direction, with these values of the parameters.
    is_bottom_up: fn([f64; 2], &LevelStats, &History) -> bool,
    /// Decides where a level of this direction runs.
    placement: fn([f64; 2], Direction, &LevelStats, LevelDevice) -> Placement,
    uses: fn(LevelDevice) -> Uses,
    /// A form that is above 0 only where later levels are bottom-up, and below 0 only where they are top-down, whatever the direction of
    /// the levels before. With it a device runs levels ahead.
    surely: Option<fn([f64; 2], &LevelStats) -> Linear>,
    /// It needs the share of hubs in the frontier.
    hubs: bool,
    /// It needs the sample of unvisited vertices with which `sampled` decides.
    sample: bool,
    /// Records name its parameters even if all have their published values.
    shows_defaults: bool,
}

/// What most rules have in common: levels run on the device in use.
const DIRECTION: Row = Row {
    known: Known { kind: "", parameters: "", summary: "", from: "", default: Published::named },
    takes: &[],
    is_bottom_up: |_, _, _| false,
    placement: |_, direction, _, runs| runs.placement(direction),
    uses: LevelDevice::uses,
    surely: None,
    hubs: false,
    sample: false,
    shows_defaults: true,
};

const fn known(kind: &'static str, parameters: &'static str, summary: &'static str, from: &'static str) -> Known {
    Known { kind, parameters, summary, from, default: Published::named }
}

const ROWS: &[Row] = &[
    // Beamer, Asanović and Patterson 2012, section 5, have 14 and 24, which the papers below took over; GAP ships 15 and 18.
    Row {
        known: known("alpha-beta", "ALPHA,BETA", "direction by Beamer's rule, with GAP's 15,18", "Beamer 2012, GAP"),
        takes: &[("alpha", Range::Positive, 15.0), ("beta", Range::Positive, 18.0)],
        is_bottom_up: alpha_beta,
        ..DIRECTION
    },
    // Yasui and Fujisawa's search runs on the CPU alone, even if there are devices. Zhang et al. 2018 (section 5.1) compare their policy
    // with it, without its support for several memory nodes. Most of its speed comes from the layout: vertices renumbered by descending
    // degree, those without an edge dropped, every list sorted. That is the layout of `--order degree`, which `--order auto` chooses for
    // skewed graphs; the policy uses the layout it is given. The paper tunes alpha and beta to each of its machines.
    Row {
        known: known("yasui", "ALPHA,BETA", "Yasui's: alpha-beta on the CPU, with 14,24; its layout is --order degree", "Yasui 2015"),
        takes: &[("alpha", Range::Positive, 14.0), ("beta", Range::Positive, 24.0)],
        is_bottom_up: alpha_beta,
        placement: |_, _, _, _| Placement::Cpu,
        uses: |_| Uses::CPU,
        ..DIRECTION
    },
    // Daga, Nutter and Meswani's hybrid++, as Zhang et al. 2018 describe it (sections 1 and 5.1): top-down levels run on the CPU (TC),
    // bottom-up levels on the GPU (BG, since hubs in local memory came with Zhang). hybrid++ has an addition for graphs whose degrees
    // hardly differ (their searches never turn bottom-up). Zhang does not describe it, so it is not implemented here.
    Row {
        known: known("daga", "ALPHA,BETA", "Daga's: top-down on the CPU, bottom-up on the device, with 14,24", "Daga 2014"),
        takes: &[("alpha", Range::Positive, 14.0), ("beta", Range::Positive, 24.0)],
        is_bottom_up: alpha_beta,
        placement: |_, direction, _, _| if direction == Direction::TopDown { Placement::Cpu } else { Strategy::Bg.placement() },
        uses: |_| Uses::EITHER,
        ..DIRECTION
    },
    // Release 1.2, `gunrock/app/bfs`; SURF 2022, algorithm 5, has it in an older form. The release's published runs set the first factor
    // between 0.00005 and 100 per graph, and the second to -1 where a pull is to be final: with 0 and less it expresses "always".
    Row {
        known: known("gunrock", "DO_A,DO_B", "direction as in Gunrock 1.2, with its 0.001,0.2", "Gunrock 1.2"),
        takes: &[("do_a", Range::Finite, 0.001), ("do_b", Range::Finite, 0.2)],
        is_bottom_up: gunrock,
        ..DIRECTION
    },
    // More than 30 % (gamma) of all hubs, the vertices above the mean degree, are in the frontier; SURF 2022, section 2.2 and algorithm 6,
    // decides that again at every level. Top-down if the graph has no hubs or the frontier was not sampled.
    Row {
        known: known(
            "enterprise",
            "GAMMA",
            "direction as in Enterprise's paper: bottom-up above 0.3 of all hubs",
            "Enterprise, the paper (2015)",
        ),
        takes: &[("gamma", Range::Fraction, 0.3)],
        is_bottom_up: |[gamma, _], stats, _| stats.sampled_hubs.is_some_and(|hubs| f64::from(hubs) > gamma),
        hubs: true,
        ..DIRECTION
    },
    // The released code (iHeartGraph/Enterprise) does not use hubs: a search turns bottom-up at the first level after level 0 at which this
    // share of all arcs leaves the frontier, and stays bottom-up to its end.
    Row {
        known: known(
            "enterprise-released",
            "SHARE",
            "direction as in Enterprise's code: bottom-up from 0.3 of all arcs to the end",
            "Enterprise, its code",
        ),
        takes: &[("edge_share", Range::Fraction, 0.3)],
        is_bottom_up: |[share, _], stats, memory| memory.was_bottom_up || (stats.level > 0 && leaving(stats) >= share),
        ..DIRECTION
    },
    // The released code (hpda-lab/XBFS) is run with 0.1: a level, level 0 too, is bottom-up if this share of all arcs leaves its frontier.
    Row {
        known: known("xbfs", "RATIO", "direction as in XBFS: bottom-up from 0.1 of all arcs", "XBFS (2019)"),
        takes: &[("ratio", Range::Fraction, 0.1)],
        is_bottom_up: |[ratio, _], stats, _| leaving(stats) >= ratio,
        surely: Some(|[ratio, _], stats| Linear {
            constant: -(ratio * stats.arcs as f64) as f32,
            frontier_edges: 1.0,
            ..Linear::default()
        }),
        ..DIRECTION
    },
    // Selective as in the thesis (section 3.1): the CPU runs levels below one threshold, in vertices of the frontier, and the GPU the
    // others. For the direction the thesis names one possible rule: the first levels top-down, large ones in either direction, the last
    // ones bottom-up. Here large levels are bottom-up too, since searches of skewed graphs gain most by that. The thesis measures the
    // threshold on each platform, and so must a user of this policy; the value is our own starting value. `adaptive`, `selective` and
    // `concurrent` follow the same idea, but measure their thresholds, count work in the unit of the direction, include the cost of a
    // handover, and adapt the shares.
    Row {
        known: known("remis-selective", "VERTICES", "Remis' Selective: frontiers of 10000 vertices or more on the device", "Remis 2016"),
        takes: &[("gpu_from_vertices", Range::Count, 10_000.0)],
        is_bottom_up: first_large_frontier,
        placement: |[from, _], direction, stats, runs| {
            if is_large(from, stats) { runs.on_gpu().placement(direction) } else { Placement::Cpu }
        },
        uses: |_| Uses::EITHER,
        ..DIRECTION
    },
    // Concurrent as in the thesis (section 3.2): both devices run the levels above the threshold, with a fixed share.
    Row {
        known: known("remis-concurrent", "VERTICES,PERMILLE", "Remis' Concurrent: such frontiers on both, by a fixed share", "Remis 2016"),
        takes: &[("split_from_vertices", Range::Count, 10_000.0), ("gpu_permille", Range::Permille, 500.0)],
        is_bottom_up: first_large_frontier,
        placement: |[from, share], direction, stats, runs| {
            let split = Placement::Split { gpu_permille: share as u16, kernel: runs.kernel(direction) };
            if is_large(from, stats) { split } else { Placement::Cpu }
        },
        uses: |_| Uses::TOGETHER,
        ..DIRECTION
    },
    // From one level on, both devices search to the end independently (section 3.3). In the thesis they part after a quarter of the graph
    // at most. A frontier of some thousand arcs occurs a level or two before.
    Row {
        known: known("asynchronous", "EDGES,PERMILLE", "CPU and device search to the end independently", "Remis 2016"),
        takes: &[("from_edges", Range::Count, 4096.0), ("gpu_permille", Range::Permille, 500.0)],
        is_bottom_up: |_, stats, _| SampledCosts::default().is_bottom_up(stats),
        placement: |[from, share], _, stats, _| {
            let is_now = stats.frontier_edges as f64 >= from && stats.frontier_vertices > 1;
            if is_now { Placement::Apart { gpu_permille: share as u16 } } else { Placement::Cpu }
        },
        uses: |_| Uses::TOGETHER,
        sample: true,
        shows_defaults: false,
        ..DIRECTION
    },
];

/// The names of the rules, in the order of [`ROWS`].
pub(super) const KNOWN: &[Known] = &{
    let mut known = [DIRECTION.known; ROWS.len()];
    let mut place = 0;
    while place < known.len() {
        known[place] = ROWS[place].known;
        place += 1;
    }
    known
};

/// Beamer's rule: bottom-up from the level at which more than 1/alpha of the unexplored arcs leave the frontier, until the frontier shrinks
/// and holds fewer than 1/beta of the vertices.
fn alpha_beta([alpha, beta]: [f64; 2], stats: &LevelStats, memory: &History) -> bool {
    if memory.was_bottom_up {
        let shrinks = stats.frontier_vertices < stats.previous_frontier_vertices;
        !(shrinks && (stats.frontier_vertices as f64) < stats.vertices as f64 / beta)
    } else {
        stats.frontier_edges as f64 > stats.unvisited_edges as f64 / alpha
    }
}

/// Gunrock's rule estimates arcs from the sizes of frontiers: a push looks at `F * m / n` arcs, and each of the `U` unvisited vertices of a
/// pull looks at `n / V` neighbours until it meets one of the `V` visited vertices (`V` and `U` count the frontier as visited). Level 0 is
/// always a push. A search pushes until the push would cost more than `do_a` times the pull, pulls while the push would cost more than
/// `do_b` times the pull, and never pulls again after that.
fn gunrock([do_a, do_b]: [f64; 2], stats: &LevelStats, memory: &History) -> bool {
    let (n, m) = (stats.vertices as f64, stats.arcs as f64);
    let unvisited = stats.unvisited_vertices as f64;
    let push = stats.frontier_vertices as f64 * m / n;
    // The root is visited, so this does not divide by 0.
    let pull = unvisited * n / (n - unvisited);
    if memory.was_bottom_up { push > do_b * pull } else { stats.level > 0 && !memory.been_bottom_up && push > do_a * pull }
}

/// The share of all arcs that leaves the frontier.
fn leaving(stats: &LevelStats) -> f64 {
    stats.frontier_edges as f64 / stats.arcs as f64
}

fn is_large(from: f64, stats: &LevelStats) -> bool {
    stats.frontier_vertices as f64 >= from
}

/// Bottom-up from the first large frontier on.
fn first_large_frontier([from, _]: [f64; 2], stats: &LevelStats, memory: &History) -> bool {
    memory.been_bottom_up || is_large(from, stats)
}

/// A published rule with values of its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Its place among [`ROWS`].
    place: usize,
    values: [f64; 2],
}

impl Published {
    fn named(kind: &str) -> Result<Policy, PolicyError> {
        let place = KNOWN.iter().position(|known| known.kind == kind).ok_or_else(|| PolicyError::Unknown(kind.to_owned()))?;
        Ok(Policy::Published(Self::of(place)))
    }

    fn of(place: usize) -> Self {
        let mut values = [0.0; 2];
        for (value, (.., published)) in values.iter_mut().zip(ROWS[place].takes) {
            *value = *published;
        }
        Self { place, values }
    }

    /// Beamer's rule with GAP's values: it decides by counts alone, without a sample.
    pub fn alpha_beta() -> Self {
        Self::of(KNOWN.iter().position(|known| known.kind == "alpha-beta").unwrap_or_default())
    }

    fn row(&self) -> &'static Row {
        &ROWS[self.place]
    }
}

impl Rule for Published {
    fn known(&self) -> &'static Known {
        &KNOWN[self.place]
    }

    fn parameters(&mut self) -> Vec<Parameter<'_>> {
        let row = self.row();
        row.takes.iter().zip(&mut self.values).map(|(&(name, range, _), value)| Value::Number(range, value).named(name)).collect()
    }

    fn shows_defaults(&self) -> bool {
        self.row().shows_defaults
    }

    fn uses(&self, runs: LevelDevice) -> Uses {
        (self.row().uses)(runs)
    }

    fn may_sample(&self) -> bool {
        self.row().sample
    }

    fn wants_sample(&self, stats: &LevelStats, _runs: LevelDevice, _memory: &History) -> bool {
        self.row().sample && SampledCosts::default().wants_sample(stats)
    }

    fn wants_hubs(&self) -> bool {
        self.row().hubs
    }

    fn surely(&self, stats: &LevelStats, _plan: LevelPlan, runs: LevelDevice) -> [Option<Surely>; Ahead::PLANS] {
        let Some(form) = self.row().surely.map(|surely| surely(self.values, stats)) else { return [None; Ahead::PLANS] };
        [(Direction::TopDown, form * -1.0), (Direction::BottomUp, form)]
            .map(|(direction, above_zero)| Surely::when(LevelPlan { direction, placement: runs.placement(direction) }, [above_zero]))
    }

    fn is_bottom_up(&self, stats: &LevelStats, memory: &History) -> bool {
        (self.row().is_bottom_up)(self.values, stats, memory)
    }

    fn placement(&self, direction: Direction, stats: &LevelStats, runs: LevelDevice) -> Placement {
        (self.row().placement)(self.values, direction, stats, runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> History {
        History::default()
    }

    fn was_bottom_up() -> History {
        History { was_bottom_up: true, been_bottom_up: true, ..first() }
    }

    /// Whether the rule that this text names turns bottom-up.
    fn bottom_up(rule: &str, stats: &LevelStats, memory: &History) -> bool {
        let Policy::Published(rule) = rule.parse().unwrap() else { panic!("{rule}") };
        rule.is_bottom_up(stats, memory)
    }

    #[test]
    fn alpha_beta_turns_above_one_alphath_of_the_unexplored_edges_and_back_below_one_betath_of_the_vertices() {
        let at = |memory: &History, frontier_vertices, previous_frontier_vertices, frontier_edges, unvisited_edges| {
            let counts = LevelStats { level: 3, vertices: 1800, arcs: 30_000, unvisited_vertices: 900, ..LevelStats::default() };
            let stats = LevelStats { frontier_vertices, previous_frontier_vertices, frontier_edges, unvisited_edges, ..counts };
            bottom_up("alpha-beta", &stats, memory)
        };
        assert!(!at(&first(), 10, 1, 1000, 15_000) && at(&first(), 10, 1, 1001, 15_000));
        let memory = was_bottom_up();
        assert!(at(&memory, 100, 200, 5, 10), "not below n / beta");
        assert!(!at(&memory, 99, 200, 5, 10));
        assert!(at(&memory, 99, 50, 5, 10), "the frontier grows");
    }

    #[test]
    fn gunrock_pulls_above_do_a_as_long_as_above_do_b_and_only_once() {
        // 1000 vertices of 10 arcs each.
        let at = |rule: &str, memory: &History, level, frontier_vertices, unvisited_vertices| {
            let counts = LevelStats { level, vertices: 1000, arcs: 10_000, ..LevelStats::default() };
            bottom_up(rule, &LevelStats { frontier_vertices, unvisited_vertices, ..counts }, memory)
        };
        // F 30: a push of 300. U 900, V 100: a pull of 900 * 1000 / 100 = 9000. 300 / 9000 = 1 / 30.
        assert!(at("gunrock:0.033,1", &first(), 2, 30, 900) && !at("gunrock:0.034,1", &first(), 2, 30, 900));
        // With the defaults and U 990, F 9 does not pull: 90 is below 0.001 * 990 * 1000 / 10 = 99. F 10 pulls: 100 is above 99.
        assert!(!at("gunrock", &first(), 1, 9, 990) && at("gunrock", &first(), 1, 10, 990));
        // U 500, V 500: a pull of 500 * 1000 / 500 = 1000. By 0.2 a push must cost more than 200: more than 20 vertices.
        assert!(!at("gunrock", &was_bottom_up(), 4, 20, 500) && at("gunrock", &was_bottom_up(), 4, 21, 500));
        // -1, as in the release's scripts: it pulls to the end.
        assert!(at("gunrock:0.1,-1", &was_bottom_up(), 9, 1, 500));
        let back = History { been_bottom_up: true, ..first() };
        assert!(at("gunrock", &first(), 4, 300, 500) && !at("gunrock", &back, 4, 300, 500), "never a second time");
        // F 1, U 1, V 1 of two vertices with one arc each: a push of 1, a pull of 2.
        let two = |level| LevelStats { level, vertices: 2, arcs: 2, frontier_vertices: 1, unvisited_vertices: 1, ..LevelStats::default() };
        assert!(!bottom_up("gunrock", &two(0), &first()) && bottom_up("gunrock", &two(1), &first()), "never at level 0");
        assert!(at("gunrock", &first(), 5, 1, 0), "a pull without unvisited vertices costs nothing");
    }

    #[test]
    fn enterprise_turns_bottom_up_above_gamma_of_the_hubs() {
        let at = |rule: &str, sampled_hubs| bottom_up(rule, &LevelStats { level: 2, sampled_hubs, ..LevelStats::default() }, &first());
        // 31 and 29 of 100 hubs; exactly half by a gamma of one half.
        assert!(at("enterprise", Some(0.31)) && !at("enterprise", Some(0.29)));
        assert!(!at("enterprise:0.5", Some(0.5)) && !at("enterprise", None));
    }

    #[test]
    fn the_release_of_enterprise_turns_bottom_up_once_at_its_share_of_the_arcs() {
        let at = |memory: &History, level, frontier_edges| {
            bottom_up("enterprise-released", &LevelStats { level, arcs: 1000, frontier_edges, ..LevelStats::default() }, memory)
        };
        // 30 % of 1000.
        assert!(!at(&first(), 1, 299) && at(&first(), 1, 300));
        assert!(!at(&first(), 0, 900), "never at the root");
        assert!(at(&was_bottom_up(), 5, 1), "and stays");
    }

    #[test]
    fn xbfs_turns_bottom_up_at_a_tenth_of_the_arcs_at_every_level() {
        let at =
            |level, frontier_edges| bottom_up("xbfs", &LevelStats { level, arcs: 5000, frontier_edges, ..LevelStats::default() }, &first());
        // 5000 / 10 = 500.
        assert!(!at(3, 499) && at(3, 500) && at(4, 5000) && !at(5, 10));
        assert!(at(0, 500), "a root with a tenth of the arcs");
    }

    #[test]
    fn the_first_large_frontier_ends_the_top_down_levels_of_remis() {
        let at = |memory: &History, frontier_vertices| {
            bottom_up("remis-selective:100", &LevelStats { frontier_vertices, ..LevelStats::default() }, memory)
        };
        let once = History { been_bottom_up: true, ..first() };
        assert!(!at(&first(), 99) && at(&first(), 100) && at(&once, 3));
    }
}
