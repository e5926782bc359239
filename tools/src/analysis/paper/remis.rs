//! Remis 2016.

use super::{Claim, NO_DEVICE, Ours, claim, mean};
use crate::analysis::{GraphAnalysis, PolicyComparison, SplitLevel, SplitShare};
use socbfs::graph::LayoutStats;

/// Policies that use both devices.
const TOGETHER: [&str; 5] = ["selective", "concurrent", "adaptive", "remis-selective", "remis-concurrent"];
/// Policies with one strategy for all levels.
const SINGLE: [&str; 6] = ["tc", "bc", "tg", "tgm", "bg", "bgc"];
/// Table 2.1: millions of vertices and of edges.
const TABLE_2_1: [(&str, f64, f64); 13] = [
    ("google", 0.875, 5.105),
    ("youtube", 1.13, 2.98),
    ("amazon", 0.33, 0.92),
    ("roadCA", 1.96, 2.76),
    ("graph1M", 1.04, 6.3),
    ("graph2M", 2.09, 12.58),
    ("graph4M", 4.19, 25.16),
    ("graph8M", 8.38, 50.34),
    ("graph16M", 16.77, 100.62),
    ("NY", 0.27, 0.74),
    ("SF", 1.25, 7.23),
    ("rmat", 2.13, 81.16),
    ("kron", 1.75, 41.10),
];
/// The graphs of table 2.1 that are SNAP's.
const SNAP: [&str; 4] = ["google", "youtube", "amazon", "roadCA"];
const NOT_THERE: &str = "the graph was not searched";

pub(super) fn claims(found: &Ours<'_>) -> Vec<Claim> {
    let speed = PolicyComparison::mteps;
    let gain = found.ratio(&TOGETHER, &SINGLE, speed);
    let best = "the best policy for both devices over the best single strategy";
    let mut claims: Vec<Claim> =
        [("Odroid", "figure 5.10a, mean", 1.7), ("Core i7", "figure 5.11, mean", 1.17), ("Core i5", "figure 5.12, mean", 1.3)]
            .into_iter()
            .map(|(machine, place, paper)| {
                claim(format!("both devices over the best single one, {machine}"), place, paper, gain, best, NO_DEVICE)
            })
            .collect();
    let rodinia = mean(found.analysis.graphs.iter().filter(|graph| graph.name.starts_with("rodinia")).map(|graph| {
        let of = |names: &[&str]| super::best(graph.policies.as_ref()?, names, speed);
        Some(of(&TOGETHER)? / of(&SINGLE)?)
    }));
    claims.push(claim(
        "the same, Rodinia's graphs, Odroid",
        "section 5.5: up to",
        2.25,
        rodinia,
        "the mean over those searched here",
        NO_DEVICE,
    ));
    for (place, paper) in [("chapter 6", 1.3), ("section 5.5", 1.14)] {
        claims.push(found.efficiency("both devices over the best single one, MTEPS/W, Odroid", place, paper, &TOGETHER, &SINGLE));
    }
    claims.extend(contention(found));
    let iterations = |graph: Option<&GraphAnalysis>| graph.and_then(|graph| Some(graph.profile.as_ref()?.mean_levels));
    let most = found.analysis.graphs.iter().filter(|graph| graph.name.starts_with("rodinia"));
    let most = most.filter_map(|graph| iterations(Some(graph))).max_by(f64::total_cmp);
    claims.push(claim(
        "Rodinia's graphs, iterations",
        "section 2.1: fewer than",
        15.0,
        most,
        "the graph with most, mean over the roots",
        NOT_THERE,
    ));
    for (name, place, paper) in
        [("NY", "section 2.1: around", 600.0), ("SF", "section 2.1: around", 1000.0), ("youtube", "figure 2.2", 14.0)]
    {
        let note = "mean over the roots";
        claims.push(claim(format!("{name}, iterations"), place, paper, iterations(found.graph(name)), note, NOT_THERE));
    }
    let split = |name: &str, iteration: u32| {
        found.graph(name)?.repeated.as_ref()?.splits.iter().find(|split| split.level + 1 == iteration).copied()
    };
    let left = |split: SplitLevel| 100.0 * (1.0 - split.traversed);
    for (name, iteration) in [("graph8M", 11), ("google", 7)] {
        let ours = split(name, iteration).map(left);
        let what = format!("{name}, % of vertices left at iteration {iteration}");
        claims.push(claim(what, "section 5.3: more than", 50.0, ours, "another root: levels may be off by one", NOT_THERE));
    }
    let youtube = split("youtube", 5);
    let note = "another root";
    let what = "youtube, % traversed at iteration 5";
    claims.push(claim(what, "figure 5.5: less than", 25.0, youtube.map(|split| 100.0 * split.traversed), note, NOT_THERE));
    let what = "youtube, % that both halves visit, split there";
    claims.push(claim(what, "figure 5.5: less than", 5.0, youtube.map(|split| 100.0 * split.repeated_thesis), note, NOT_THERE));
    claims
}

/// Figure 5.13: the level with most edges, split between both devices.
fn contention(found: &Ours<'_>) -> Vec<Claim> {
    let sweeps = || found.analysis.graphs.iter().filter_map(|graph| graph.split.as_ref());
    let top_down = || sweeps().filter_map(|sweep| sweep.directions.first());
    let half = |shares: &[SplitShare]| shares.iter().find(|share| share.gpu_permille == 500).map(|share| share.contention);
    vec![
        claim(
            "GPU's share at which both take equally long, %",
            "section 5.5.1, Core i7: 50 to 60",
            55.0,
            mean(top_down().map(|direction| direction.crossing_permille.map(|permille| permille / 10.0))),
            "top-down, mean over the graphs; the thesis has Rodinia's 16M",
            NO_DEVICE,
        ),
        claim(
            "both at once over the longer part alone, at 50 %",
            "figure 5.13, Core i7: above",
            1.0,
            mean(top_down().map(|direction| half(&direction.shares))),
            "top-down, mean over the graphs",
            NO_DEVICE,
        ),
    ]
}

/// Table 2.1.
pub(super) fn cells(found: &Ours<'_>) -> Vec<Claim> {
    let mut cells = Vec::new();
    for (name, vertices, edges) in TABLE_2_1 {
        let counts = found.graph(name).map(|graph| &graph.graph.counts);
        let million = |of: fn(&LayoutStats) -> u64, times: f64| counts.map(|counts| times * of(counts) as f64 / 1e6);
        // Rodinia's files and the DIMACS road files (NY, SF) list both arcs of an edge.
        let arcs = name.starts_with("graph") || name == "NY" || name == "SF";
        let counted = if arcs { "both arcs of an edge counted, as the thesis does" } else { "edges as listed, once if in both directions" };
        // SNAP's file of roadCA lists every edge in both directions, and the thesis counts it once.
        let in_both = counts.is_some_and(|counts| counts.both_directions);
        let listed = if arcs { million(|of| of.unique_edges, 2.0) } else { million(|of| of.listed, if in_both { 0.5 } else { 1.0 }) };
        // SNAP counts the vertices that occur in its files, whose numbers have gaps.
        let (here, which) = if SNAP.contains(&name) {
            (million(|of| of.vertices - of.isolated, 1.0), "those with an edge, as SNAP counts")
        } else {
            (million(|of| of.vertices, 1.0), "")
        };
        cells.push(claim(format!("{name}, million vertices"), "table 2.1", vertices, here, which, NOT_THERE));
        cells.push(claim(format!("{name}, million edges"), "table 2.1", edges, listed, counted, NOT_THERE));
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::Analysis,
        bench::{Environment, GraphRecord, LayoutRecord},
    };

    /// The value of this machine in the cell `what`, if the paper's graph `name` has these counts here.
    fn ours(name: &str, counts: LayoutStats, what: &str) -> Option<f64> {
        let mut analysis = Analysis::new(Environment::default(), Vec::new());
        let graph = GraphRecord { counts, ..GraphRecord::default() };
        analysis.graphs.push(GraphAnalysis::new("g.txt".to_owned(), graph, LayoutRecord::default(), vec![0]));
        let searched = [(name.to_owned(), "g.txt".to_owned())];
        let cells = cells(&Ours { analysis: &analysis, searched: &searched });
        cells.into_iter().find(|cell| cell.what == what).unwrap().ours
    }

    #[test]
    fn table_2_1_counts_an_edge_listed_in_both_directions_once() {
        let edges = |listed: u64, both_directions: bool| {
            ours("roadCA", LayoutStats { listed, both_directions, ..LayoutStats::default() }, "roadCA, million edges")
        };
        assert_eq!((edges(5_500_000, true), edges(2_750_000, false)), (Some(2.75), Some(2.75)));
    }

    #[test]
    fn table_2_1_counts_the_vertices_that_occur_in_files_of_snap() {
        let counts = || LayoutStats { vertices: 750_000, isolated: 250_000, ..LayoutStats::default() };
        assert_eq!(ours("amazon", counts(), "amazon, million vertices"), Some(0.5));
        assert_eq!(ours("NY", counts(), "NY, million vertices"), Some(0.75));
    }
}
