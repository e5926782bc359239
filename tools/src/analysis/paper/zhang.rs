//! Zhang et al. 2018.

use super::{Claim, NO_DEVICE, OTHER_MACHINE, Ours, best, claim, mean};
use crate::analysis::{GraphAnalysis, PolicyComparison};
use socbfs::bfs::Strategy;

/// Our policies: the faster one counts.
const OURS: [&str; 2] = ["adaptive", "auto"];
/// Table 6, from scale 22 on: millions of vertices after remapping, and per cent saved.
const TABLE_6: [(f64, f64); 5] = [(2.40, 42.87), (4.61, 45.03), (8.87, 47.12), (17.06, 49.15), (32.80, 51.12)];
/// Table 5, scale 26: seconds by level (from 1) and strategy.
const TABLE_5: [[f64; 5]; 8] = [
    [0.02, 0.03, 4.37, 9.42, 9.44],
    [0.02, 0.05, 4.34, 8.53, 8.47],
    [1.81, 3.44, 3.16, 0.29, 0.27],
    [9.76, 17.35, 2.66, 0.08, 0.07],
    [0.30, 0.97, 2.84, 0.06, 0.06],
    [0.03, 0.08, 2.82, 0.05, 0.05],
    [0.02, 0.02, 2.83, 0.05, 0.05],
    [0.02, 0.02, 0.03, 0.05, 0.05],
];
/// The strategies of the columns of table 5.
const STRATEGIES: [Strategy; 5] = [Strategy::Tc, Strategy::Tg, Strategy::Bc, Strategy::Bg, Strategy::Bgc];
/// Row in table 5 of the level that takes longest top-down: the one with most arcs.
const HEAVIEST: usize = 3;
const NO_GRAPH: &str = "no graph was compared";

pub(super) fn claims(found: &Ours<'_>) -> Vec<Claim> {
    let speed = PolicyComparison::mteps;
    let gteps = |names: &[&str]| mean(found.compared().map(|graph| best(graph, names, speed).map(|mteps| mteps / 1e3)));
    let rule = |name: &str| format!("the faster of adaptive and auto; our kernels under the rule of {name}");
    let mut claims = vec![
        claim("adaptive over Daga's, speed", "section 5.2, mean", 2.3, found.ratio(&OURS, &["daga"], speed), &rule("Daga"), NO_DEVICE),
        claim("adaptive over Yasui's, speed", "section 5.2, mean", 1.1, found.ratio(&OURS, &["yasui"], speed), &rule("Yasui"), NO_GRAPH),
    ];
    for (machine, figures) in [("figure 4a, A10-7850K", [2.1, 0.9, 1.9]), ("figure 4b, Ryzen 5 2400G", [1.4, 0.6, 1.3])] {
        for ((name, names), paper) in [("adaptive", &OURS[..]), ("Daga's", &["daga"]), ("Yasui's", &["yasui"])].into_iter().zip(figures) {
            let without = if name == "Daga's" { NO_DEVICE } else { NO_GRAPH };
            claims.push(claim(format!("{name}, GTEPS"), machine, paper, gteps(names), OTHER_MACHINE, without));
        }
    }
    for (machine, daga, yasui) in [("figure 5a, A10-7850K", 2.3, 1.6), ("figure 5b, Ryzen 5 2400G", 2.5, 1.3)] {
        claims.push(found.efficiency("adaptive over Daga's, MTEPS/W", machine, daga, &OURS, &["daga"]));
        claims.push(found.efficiency("adaptive over Yasui's, MTEPS/W", machine, yasui, &OURS, &["yasui"]));
    }
    claims.push(claim(
        "remapping's share of preprocessing, %",
        "section 5.4",
        41.5,
        mean(found.analysis.graphs.iter().map(|graph| Some(100.0 * graph.remapped?.share))),
        "here: the step that orders vertices; the rest of construction differs",
        "not analysed",
    ));
    claims
}

/// Tables 5 and 6.
pub(super) fn cells(found: &Ours<'_>) -> Vec<Claim> {
    let mut cells = table_5(found);
    for ((after, saved), scale) in TABLE_6.into_iter().zip(22..) {
        let remapped = found.kronecker(scale).and_then(|graph| graph.remapped);
        let without = "this scale was not searched";
        let what = format!("scale {scale}, million vertices after remapping");
        claim_pair(&mut cells, &what, after, remapped.map(|found| found.after as f64 / 1e6), without);
        claim_pair(&mut cells, &format!("scale {scale}, vertices saved, %"), saved, remapped.map(|found| 100.0 * found.saved), without);
    }
    cells
}

fn claim_pair(cells: &mut Vec<Claim>, what: &str, paper: f64, ours: Option<f64>, without: &str) {
    cells.push(claim(what, "table 6", paper, ours, "another random graph of the same generator", without));
}

/// Compares table 5 with the largest Kronecker graph that was searched. Rows are matched by their distance from the level with most arcs,
/// since the number of levels before that one depends on the root.
fn table_5(found: &Ours<'_>) -> Vec<Claim> {
    let graphs = found.analysis.graphs.iter().filter(|graph| graph.name.starts_with("kronecker") && graph.policies.is_some());
    let largest = graphs.max_by_key(|graph| graph.graph.scale);
    let mut cells = Vec::new();
    for (row, times) in TABLE_5.iter().enumerate() {
        let ours = largest.and_then(|graph| Row::of(graph, row));
        let fastest = times.iter().copied().fold(f64::INFINITY, f64::min);
        for (&strategy, &paper) in STRATEGIES.iter().zip(times) {
            let what = format!("level {}, {}, s", row + 1, strategy.name().to_uppercase());
            let place = "table 5, scale 26";
            let seconds = ours.as_ref().and_then(|ours| ours.seconds(strategy));
            let note = match (&ours, seconds) {
                (None, _) => "the search here has no such level".to_owned(),
                (Some(_), None) => NO_DEVICE.to_owned(),
                (Some(ours), Some(seconds)) => format!(
                    "our level {} at scale {}; relative to the fastest of the level: {:.3} in the paper, {:.3} here",
                    ours.level,
                    ours.scale,
                    paper / fastest,
                    seconds / ours.fastest
                ),
            };
            cells.push(Claim { what, place: place.to_owned(), paper, ours: seconds, note });
        }
    }
    cells
}

/// A level measured on this machine.
struct Row<'a> {
    level: usize,
    scale: u32,
    fastest: f64,
    times: &'a crate::calibrate::LevelTimes,
}

impl<'a> Row<'a> {
    /// The level of `graph` that matches row `row` of table 5.
    fn of(graph: &'a GraphAnalysis, row: usize) -> Option<Self> {
        let compared = graph.policies.as_ref()?;
        let heaviest = compared.exact.iter().enumerate().max_by_key(|(_, level)| level.arcs)?.0;
        let level = (heaviest + row).checked_sub(HEAVIEST)?;
        let times = compared.evaluation.roots.first()?.table.levels.get(level)?;
        let scale = graph.graph.scale;
        let found = Self { level, scale, fastest: 0.0, times };
        let fastest = STRATEGIES.iter().filter_map(|&strategy| found.seconds(strategy)).min_by(f64::total_cmp)?;
        Some(Self { fastest, ..found })
    }

    fn seconds(&self, strategy: Strategy) -> Option<f64> {
        self.times.own_ns(strategy).map(|ns| ns / 1e9)
    }
}
