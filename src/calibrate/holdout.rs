//! What models are worth on graphs that they were not fitted to.

use serde::Serialize;

use super::{
    LevelTable,
    fit::{fit, fit_zhang},
    plan::table_regret,
};
use crate::policy::{CostModel, Policy};

/// Parts into which the graphs are divided: each is judged by a model fitted to all others.
const PARTS: usize = 5;

/// The model that decides against the plain form of Zhang 2018, on graphs held out of the fit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Gain {
    /// Graphs held out, one part after the other.
    pub graphs: usize,
    /// Mean over the graphs of the time beyond the per-level oracle's, as a share of it, by the table of levels.
    pub regret: f64,
    /// The same of the graph on which it is largest.
    pub worst_regret: f64,
    /// The same as `regret` by Zhang's form.
    pub regret_zhang: f64,
    /// The same as `worst_regret` by Zhang's form.
    pub worst_regret_zhang: f64,
}

/// Fits models to all graphs but a fifth of them, and lets them plan the searches of that fifth, and so on in turn. `graphs` holds the
/// tables of each graph. `None` where there are too few graphs to divide, or to fit.
pub fn held_out(graphs: &[&[LevelTable]]) -> Option<Gain> {
    if graphs.len() < 2 {
        return None;
    }
    let (mut own, mut zhang) = (Vec::new(), Vec::new());
    for part in 0..PARTS.min(graphs.len()) {
        let is_out = |place: usize| place % PARTS == part;
        let fitted: Vec<LevelTable> =
            graphs.iter().enumerate().filter(|(place, _)| !is_out(*place)).flat_map(|(_, tables)| tables.iter().cloned()).collect();
        let (model, plain) = (fit(&fitted)?, fit_zhang(&fitted)?);
        for (_, tables) in graphs.iter().enumerate().filter(|(place, _)| is_out(*place)) {
            let regret = |model: &CostModel| table_regret(tables, &Policy::CostModel(Box::new(*model)));
            if let (Some(regret), Some(plain)) = (regret(&model), regret(&plain)) {
                own.push(regret);
                zhang.push(plain);
            }
        }
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let worst = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    (!own.is_empty()).then(|| Gain {
        graphs: own.len(),
        regret: mean(&own),
        worst_regret: worst(&own),
        regret_zhang: mean(&zhang),
        worst_regret_zhang: worst(&zhang),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        bfs::Strategy,
        calibrate::{Turns, measure_levels},
        graph::{BuildOptions, Layout},
        input::generate::Generator,
        search::{Search, SearchOptions},
    };

    #[test]
    fn every_graph_is_held_out_once() {
        let how = Turns { turns: 1, patience: Duration::ZERO };
        let table = |seed: u64| {
            let edges = Generator::Uniform { vertices: 1 << 10, edges: 8 << 10, seed }.generate(&|_| ()).unwrap();
            let layout = Layout::build(&edges, &BuildOptions::default()).unwrap();
            let mut search = Search::new(&layout, &SearchOptions { threads: 1, ..SearchOptions::default() }).unwrap();
            vec![measure_levels(&mut search, 0, &Strategy::CPU, &how).unwrap()]
        };
        let tables: Vec<Vec<LevelTable>> = (1..8).map(table).collect();
        let graphs: Vec<&[LevelTable]> = tables.iter().map(Vec::as_slice).collect();
        let gain = held_out(&graphs).unwrap();
        assert_eq!(gain.graphs, 7);
        for (mean, worst) in [(gain.regret, gain.worst_regret), (gain.regret_zhang, gain.worst_regret_zhang)] {
            assert!(mean.is_finite() && mean >= -1e-9 && worst >= mean - 1e-9, "{gain:?}");
        }
        assert_eq!(held_out(&graphs[..1]), None);
    }
}
