//! Table 5 of Zhang et al. 2018.

use super::{NO_DEVICE, Ours};
use crate::record::{Claim, GraphAnalysis};
use socbfs::Strategy;

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

/// Compares table 5 with the largest Kronecker graph that was searched. Rows are matched by their distance from the level with most arcs,
/// since the number of levels before that one depends on the root.
pub(super) fn table_5(found: &Ours<'_>) -> Vec<Claim> {
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
    times: &'a crate::record::LevelTimes,
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
