//! A paper's figures beside those of this machine.

use serde::{Deserialize, Serialize};

use super::{Analysis, GraphAnalysis, PolicyComparison};
use crate::calibrate::Directions;

/// A paper of which experiments are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Zhang et al. 2018, "An adaptive breadth-first search algorithm on integrated architectures".
    Zhang,
    /// Remis 2016, "Breadth-first search on heterogeneous platforms" (thesis).
    Remis,
    /// Yoon and Oh 2022, "SURF: direction-optimizing breadth-first search using workload state on GPUs".
    Surf,
    /// Zhou et al. 2021, "BFS parallel algorithm based on Sunway TaihuLight".
    Sunway,
}

/// What a paper says and what was found here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaperComparison {
    /// The paper.
    pub paper: Paper,
    /// Smaller graphs than the paper's were searched.
    pub quick: bool,
    /// Its figures.
    pub claims: Vec<Claim>,
    /// Graphs of the paper that were not searched: name, and why or where to get it.
    pub missing: Vec<(String, String)>,
}

/// One figure of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// What it is of.
    pub what: String,
    /// Where it stands in the paper.
    pub place: String,
    /// The paper's value.
    pub paper: f64,
    /// Ours (`None`: it can't be compared).
    pub ours: Option<f64>,
    /// Why it can't be compared, or how far it can.
    pub note: String,
}

/// Vertices with edges in millions of Kronecker graphs from scale 22 on (Zhang, table 6).
const OPTIMIZED: [f64; 5] = [2.40, 4.61, 8.87, 17.06, 32.80];
/// SURF, table 3: policy, accuracy and reduced time in per cent.
const SURF: [(&str, f64, f64); 4] =
    [("surf", 94.96, 97.62), ("enterprise", 79.97, 93.09), ("alpha-beta", 76.56, 90.63), ("gunrock", 59.98, 78.75)];
const NO_DEVICE: &str = "needs an OpenCL device";
const NO_SENSOR: &str = "needs the power of every policy: a sensor, and `socbfs policies --energy`";

impl PaperComparison {
    /// The figures of `paper` beside those of `analysis`.
    pub fn new(paper: Paper, quick: bool, analysis: &Analysis, missing: Vec<(String, String)>) -> Self {
        let claims = match paper {
            Paper::Zhang => zhang(analysis),
            Paper::Remis => remis(analysis),
            Paper::Surf => surf(analysis),
            Paper::Sunway => Vec::new(),
        };
        Self { paper, quick, claims, missing }
    }
}

fn claim(what: impl Into<String>, place: &str, paper: f64, ours: Option<f64>, note: &str, without: &str) -> Claim {
    let note = if ours.is_some() { note } else { without };
    Claim { what: what.into(), place: place.to_owned(), paper, ours, note: note.to_owned() }
}

/// Mean over the graphs that have a value.
fn mean(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let all: Vec<f64> = values.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn compared(analysis: &Analysis) -> impl Iterator<Item = &PolicyComparison> {
    analysis.graphs.iter().filter_map(|graph| graph.policies.as_ref())
}

/// The speed of the first of `names` over that of the best of `others`, in the mean over the graphs.
fn ratio(analysis: &Analysis, names: &[&str], others: &[&str]) -> Option<f64> {
    let best = |graph: &PolicyComparison, names: &[&str]| names.iter().filter_map(|name| graph.mteps(name)).max_by(f64::total_cmp);
    mean(compared(analysis).map(|graph| Some(best(graph, names)? / best(graph, others)?)))
}

fn zhang(analysis: &Analysis) -> Vec<Claim> {
    let ours = ["adaptive", "auto"];
    let mut claims = vec![
        claim(
            "adaptive over Daga's, speed",
            "figure 4, A10-7850K",
            2.3,
            ratio(analysis, &ours, &["daga"]),
            "the faster of adaptive and auto; our kernels under Daga's rule",
            NO_DEVICE,
        ),
        claim(
            "adaptive over Yasui's, speed",
            "figure 4, A10-7850K",
            1.1,
            ratio(analysis, &ours, &["yasui"]),
            "the faster of adaptive and auto; our kernels under Yasui's rule",
            "no graph was compared",
        ),
        claim(
            "adaptive, GTEPS",
            "figure 4, A10-7850K",
            2.1,
            mean(
                compared(analysis)
                    .map(|graph| ours.iter().filter_map(|name| graph.mteps(name)).max_by(f64::total_cmp).map(|mteps| mteps / 1e3)),
            ),
            "another machine: not a comparison of methods",
            "no graph was compared",
        ),
        claim("adaptive over Daga's, energy efficiency", "figure 5, A10-7850K", 2.3, None, "", NO_SENSOR),
        claim("adaptive over Yasui's, energy efficiency", "figure 5, A10-7850K", 1.6, None, "", NO_SENSOR),
        claim(
            "remapping's share of preprocessing, %",
            "section 5.4",
            41.5,
            mean(analysis.graphs.iter().map(|graph| Some(100.0 * graph.remapped?.share))),
            "here: the step that orders vertices; the rest of construction differs",
            "not analysed",
        ),
    ];
    for (paper, scale) in OPTIMIZED.into_iter().zip(22_u64..) {
        let of = analysis.graphs.iter().find(|graph| graph.graph["scale"] == scale && graph.graph["generated"] == true);
        let ours = of.and_then(|graph| Some(graph.remapped?.after as f64 / 1e6));
        claims.push(claim(
            format!("scale {scale}, million vertices after remapping"),
            "table 6",
            paper,
            ours,
            "",
            "this scale was not searched",
        ));
    }
    claims
}

fn remis(analysis: &Analysis) -> Vec<Claim> {
    let together = ["selective", "concurrent", "adaptive", "remis-selective", "remis-concurrent"];
    let single = ["tc", "bc", "tg", "tgm", "bg", "bgc"];
    let levels = |part: &str| {
        let graph = analysis.graphs.iter().find(|graph| graph.name.contains(part))?;
        graph.profile.as_ref().map(|profile| profile.levels.len() as f64)
    };
    let left = |graph: &GraphAnalysis, iteration: u32| {
        let split = graph.repeated.as_ref()?.splits.iter().find(|split| split.level + 1 == iteration)?;
        Some(100.0 * (1.0 - split.traversed))
    };
    let eight = analysis.graphs.iter().find(|graph| graph.name.contains("8388608"));
    vec![
        claim(
            "heterogeneous over the best single device, Odroid",
            "figure 5.9, mean",
            1.7,
            ratio(analysis, &together, &single),
            "the best of our heterogeneous policies over the best single strategy; the thesis has no direction optimisation in its baseline",
            NO_DEVICE,
        ),
        claim("the same, Core i7", "figure 5.11, mean", 1.17, ratio(analysis, &together, &single), "as above", NO_DEVICE),
        claim("energy efficiency, gain", "chapter 6 (section 5.5 says 1.14)", 1.3, None, "", NO_SENSOR),
        claim(
            "Rodinia 8M, % left at iteration 11",
            "section 5.4: more than",
            50.0,
            eight.and_then(|graph| left(graph, 11)),
            "another root",
            "this size was not searched",
        ),
        claim("Rodinia, iterations", "section 2.1: fewer than", 15.0, levels("rodinia"), "another root", "no such graph was searched"),
        claim(
            "New York roads, iterations",
            "section 2.1: around",
            600.0,
            levels("dimacs-NY"),
            "another root and edition of the graph",
            "the graph is not there",
        ),
    ]
}

fn surf(analysis: &Analysis) -> Vec<Claim> {
    let of = |policy: &str, value: fn(&Directions) -> f64| {
        mean(compared(analysis).map(|graph| Some(100.0 * value(&graph.directions(graph.place(policy)?)?))))
    };
    let note = "other graphs, on the device of the policy (the CPU unless it names another), our kernels";
    SURF.into_iter()
        .flat_map(|(policy, accuracy, reduced)| {
            [
                claim(format!("{policy}, accuracy, %"), "table 3, mean", accuracy, of(policy, Directions::accuracy), note, "not compared"),
                claim(
                    format!("{policy}, reduced time, %"),
                    "table 3, mean",
                    reduced,
                    of(policy, Directions::reduced_time),
                    note,
                    "not compared",
                ),
            ]
        })
        .collect()
}
