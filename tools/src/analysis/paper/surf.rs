//! SURF 2022.

use super::{Claim, OTHER_MACHINE, Ours, claim, mean};
use crate::analysis::{GraphAnalysis, PolicyComparison};
use socbfs::stats::Summary;

/// The methods by the paper's names and by the names of our policies, in the order of the paper's tables.
const METHODS: [(&str, &str); 4] = [("SURF", "surf"), ("Enterprise", "enterprise"), ("HBFS", "alpha-beta"), ("Gunrock", "gunrock")];
/// The paper's graphs, as `reproduce` names them.
const GRAPHS: [&str; 8] = [
    "soc-livejournal (LJ)",
    "soc-orkut (OR)",
    "soc-pokec (PK)",
    "cit-patent (PT)",
    "bio-mouse-gene (MG)",
    "bio-human-gene1 (HG)",
    "socfb-uci-uni (UU)",
    "indochina-2004 (IC)",
];
/// Values of a table, by graph and method.
type ByGraph = [[f64; 4]; 8];
/// Table 3: accuracy in per cent.
const ACCURACY: ByGraph = [
    [99.38, 93.48, 87.52, 55.76],
    [96.94, 90.25, 91.59, 63.00],
    [92.96, 91.35, 87.30, 51.42],
    [96.01, 93.14, 86.28, 56.11],
    [98.01, 42.46, 53.64, 89.93],
    [93.37, 43.78, 63.91, 92.04],
    [90.90, 90.39, 67.29, 47.69],
    [92.10, 94.93, 74.95, 23.87],
];
/// Table 3: reduced time in per cent.
const REDUCED: ByGraph = [
    [99.97, 98.19, 92.51, 82.28],
    [99.77, 97.93, 95.80, 85.40],
    [98.36, 96.84, 91.98, 76.67],
    [98.99, 98.36, 89.59, 75.05],
    [97.88, 83.32, 92.10, 79.99],
    [93.29, 78.06, 92.87, 84.09],
    [96.20, 93.77, 80.48, 78.29],
    [96.51, 98.25, 89.68, 68.21],
];
/// Table 3, last rows: mean and standard deviation of the accuracy, and of the reduced time.
const OVER_GRAPHS: [[(f64, f64); 4]; 2] =
    [[(94.96, 3.0), (79.97, 22.8), (76.56, 13.8), (59.98, 22.3)], [(97.62, 2.2), (93.09, 7.9), (90.63, 4.5), (78.75, 5.6)]];
/// Table 4: run time in milliseconds.
const RUN_TIME: ByGraph = [
    [4.81, 8.19, 6.87, 8.18],
    [3.93, 6.40, 5.61, 9.02],
    [1.68, 2.90, 2.26, 2.45],
    [4.49, 7.20, 7.46, 8.65],
    [0.49, 0.82, 0.75, 0.55],
    [0.36, 0.61, 0.51, 0.37],
    [58.76, 106.38, 154.44, 130.89],
    [17.38, 20.70, 21.96, 31.21],
];
/// Table 4: time spent on decisions, in milliseconds.
const OVERHEAD: ByGraph = [
    [0.04, 3.02, 0.53, 0.0],
    [0.02, 1.88, 0.24, 0.0],
    [0.02, 1.11, 0.27, 0.0],
    [0.04, 2.57, 0.67, 0.0],
    [0.01, 0.23, 0.18, 0.0],
    [0.01, 0.17, 0.12, 0.0],
    [0.03, 33.01, 4.50, 0.0],
    [0.03, 4.62, 1.37, 0.0],
];
/// Table 5: GTEPS of SURF, Enterprise and Gunrock, each with its own program.
const GTEPS: [[f64; 3]; 8] = [
    [29.63, 20.25, 22.59],
    [56.57, 49.27, 22.10],
    [27.02, 20.15, 26.44],
    [7.41, 5.10, 3.50],
    [60.15, 26.38, 13.16],
    [69.39, 29.55, 15.85],
    [3.73, 1.18, 3.65],
    [22.52, 23.51, 4.01],
];
const OTHER_GRAPHS: &str = "mean over the graphs searched here, on the CPU, our kernels under each rule";
const NOT_COMPARED: &str = "not compared";
const IN_ARCS: &str = "arcs, as the paper's program counts; another machine: speeds distinguish machines, not methods";

type Of = fn(&PolicyComparison, &str) -> Option<f64>;

fn accuracy(graph: &PolicyComparison, policy: &str) -> Option<f64> {
    Some(100.0 * graph.directions(graph.place(policy)?)?.accuracy())
}

fn reduced(graph: &PolicyComparison, policy: &str) -> Option<f64> {
    Some(100.0 * graph.directions(graph.place(policy)?)?.reduced_time())
}

/// Milliseconds from the call to the tree, as pages and MTEPS have them.
fn run_time(graph: &PolicyComparison, policy: &str) -> Option<f64> {
    graph.mean_ns(policy, |judged| judged.total_ns).map(|ns| ns / 1e6)
}

fn overhead(graph: &PolicyComparison, policy: &str) -> Option<f64> {
    graph.mean_ns(policy, |judged| judged.decision_ns).map(|ns| ns / 1e6)
}

pub(super) fn claims(found: &Ours<'_>) -> Vec<Claim> {
    let mut claims = Vec::new();
    for ((what, of), paper) in [("accuracy, %", accuracy as Of), ("reduced time, %", reduced)].into_iter().zip(OVER_GRAPHS) {
        for ((name, ours), (paper_mean, paper_deviation)) in METHODS.into_iter().zip(paper) {
            let values: Vec<f64> = found.compared().filter_map(|graph| of(graph, ours)).collect();
            let summary = Summary::of(&values);
            let mean = summary.as_ref().map(|summary| summary.mean);
            claims.push(claim(format!("{name}, {what}"), "table 3, mean", paper_mean, mean, OTHER_GRAPHS, NOT_COMPARED));
            let deviation = summary.and_then(|summary| summary.stddev);
            let without = "takes two graphs";
            let note = "over the graphs searched here";
            claims.push(claim(format!("{name}, {what}"), "table 3, standard deviation", paper_deviation, deviation, note, without));
        }
    }
    for (method, (name, ours)) in METHODS.into_iter().enumerate() {
        let shares = RUN_TIME.iter().zip(OVERHEAD).map(|(times, spent)| Some(100.0 * spent[method] / times[method]));
        let share = |graph: &PolicyComparison| Some(100.0 * overhead(graph, ours)? / run_time(graph, ours)?);
        let what = format!("{name}, deciding as a share of the run time, %");
        let note = "here with the sample that a rule may ask for; counts that every search makes are not included";
        claims.push(claim(
            what,
            "table 4, mean of the quotients",
            mean(shares).unwrap_or(0.0),
            mean(found.compared().map(share)),
            note,
            NOT_COMPARED,
        ));
    }
    for (method, (name, ours)) in METHODS.into_iter().enumerate().skip(1) {
        let paper = mean(RUN_TIME.iter().map(|times| Some(times[method] / times[0]))).unwrap_or(0.0);
        let here = mean(found.compared().map(|graph| Some(run_time(graph, ours)? / run_time(graph, "surf")?)));
        claims.push(claim(format!("SURF over {name}, speed"), "table 4, mean of the quotients", paper, here, OTHER_GRAPHS, NOT_COMPARED));
    }
    for (name, ours, paper) in [("Gunrock", "gunrock", 2.82), ("Enterprise", "enterprise", 1.77)] {
        let here = found.ratio(&["surf"], &[ours], PolicyComparison::mteps);
        let note = "the paper compares programs with kernels of their own; here the rules decide over the same kernels";
        claims.push(claim(format!("SURF over {name}, GTEPS"), "section 5.4, mean of table 5", paper, here, note, NOT_COMPARED));
    }
    claims
}

/// Tables 3 to 5, graph by graph.
pub(super) fn cells(found: &Ours<'_>) -> Vec<Claim> {
    let mut cells = Vec::new();
    let mut add = |row: usize, what: String, place: &str, paper: f64, of: &dyn Fn(&PolicyComparison) -> Option<f64>, note: &str| {
        let graph = found.graph(GRAPHS[row]).and_then(|graph: &GraphAnalysis| graph.policies.as_ref());
        let ours = graph.and_then(of);
        let without = if graph.is_some() { NOT_COMPARED } else { "the graph was not searched" };
        cells.push(claim(format!("{}, {what}", GRAPHS[row]), place, paper, ours, note, without));
    };
    let tables: [(&str, &str, ByGraph, Of, &str); 4] = [
        ("accuracy, %", "table 3", ACCURACY, accuracy, "on the CPU"),
        ("reduced time, %", "table 3", REDUCED, reduced, "on the CPU"),
        ("run time, ms", "table 4", RUN_TIME, run_time, OTHER_MACHINE),
        ("deciding, ms", "table 4", OVERHEAD, overhead, OTHER_MACHINE),
    ];
    for (what, place, values, of, note) in tables {
        for (row, methods) in values.iter().enumerate() {
            for ((name, ours), &paper) in METHODS.into_iter().zip(methods) {
                add(row, format!("{name}, {what}"), place, paper, &|graph| of(graph, ours), note);
            }
        }
    }
    for (row, programs) in GTEPS.iter().enumerate() {
        // The paper's program adds up the degrees of the vertices reached, so it counts both arcs of an undirected edge.
        let is_directed = found.graph(GRAPHS[row]).is_some_and(|graph| graph.graph.directed);
        let arcs = if is_directed { 1.0 } else { 2.0 };
        for ((name, ours), &paper) in [METHODS[0], METHODS[1], METHODS[3]].into_iter().zip(programs) {
            let gteps = |graph: &PolicyComparison| graph.mteps(ours).map(|mteps| arcs * mteps / 1e3);
            add(row, format!("{name}, GTEPS"), "table 5", paper, &gteps, IN_ARCS);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        analysis::Analysis,
        bench::{Environment, GraphRecord, LayoutRecord},
        calibrate::{Evaluation, Judged, LevelTable, RootEvaluation},
    };

    /// A search of 6000 edges by `surf`: 2 ms for the levels, of which it decides for 1 ms, and 1 ms to map the parents back.
    fn compared() -> PolicyComparison {
        let judged = Judged {
            plans: Vec::new(),
            elapsed_ns: 2e6,
            total_ns: 3e6,
            over_oracle: 1.0,
            decision_ns: 1e6,
            table_ns: None,
            directions: None,
            as_oracle: 0,
        };
        let table = LevelTable { root: 0, strategies: Vec::new(), levels: Vec::new() };
        let root = RootEvaluation { edges: 6000, table, oracle: judged.clone(), policies: vec![judged], turns: 1 };
        PolicyComparison {
            policies: vec!["surf".to_owned()],
            turns: 1,
            edges: 6000,
            watts: None,
            exact: Vec::new(),
            evaluation: Evaluation { roots: vec![root] },
            energy: None,
            no_energy: None,
        }
    }

    #[test]
    fn the_run_time_includes_mapping() {
        let graph = compared();
        assert_eq!((run_time(&graph, "surf"), overhead(&graph, "surf"), graph.mteps("surf")), (Some(3.0), Some(1.0), Some(2.0)));
    }

    #[test]
    fn table_5_counts_both_arcs_of_an_undirected_edge() {
        let gteps = |is_directed: bool| {
            let mut analysis = Analysis::new(Environment::default(), Vec::new());
            let graph = GraphRecord { directed: is_directed, ..GraphRecord::default() };
            let graph = GraphAnalysis::new("lj.txt".to_owned(), graph, LayoutRecord::default(), vec![0]);
            analysis.graphs.push(GraphAnalysis { policies: Some(compared()), ..graph });
            let searched = [(GRAPHS[0].to_owned(), "lj.txt".to_owned())];
            let cells = cells(&Ours { analysis: &analysis, searched: &searched });
            cells.into_iter().find(|cell| cell.place == "table 5").unwrap().ours
        };
        // 6000 edges in 3 ms.
        assert_eq!([true, false].map(gteps), [Some(0.002), Some(0.004)]);
    }

    #[test]
    fn the_tables_have_the_means_printed_in_the_paper() {
        let near = |values: &ByGraph, method: usize, mean: f64, deviation: f64| {
            let summary = Summary::of(&values.map(|row| row[method])).unwrap();
            assert!((summary.mean - mean).abs() < 0.02, "{} {mean}", summary.mean);
            assert!((summary.stddev.unwrap() - deviation).abs() < 0.1, "{:?} {deviation}", summary.stddev);
        };
        for method in 0..METHODS.len() {
            for (values, means) in [&ACCURACY, &REDUCED].into_iter().zip(OVER_GRAPHS) {
                near(values, method, means[method].0, means[method].1);
            }
        }
        // "On average 2.82x and 1.77x".
        for (program, speedup) in [(2, 2.82), (1, 1.77)] {
            let mean = mean(GTEPS.iter().map(|row| Some(row[0] / row[program]))).unwrap();
            assert!((mean - speedup).abs() < 0.01, "{mean} {speedup}");
        }
    }
}
