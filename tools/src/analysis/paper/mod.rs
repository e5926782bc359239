//! Compares the figures of a paper with those of this machine.

mod remis;
mod surf;
mod zhang;

use serde::{Deserialize, Serialize};

use super::{Analysis, GraphAnalysis, PolicyComparison};

/// A paper whose experiments are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Zhang et al. 2018, "An adaptive breadth-first search algorithm on integrated architectures".
    Zhang,
    /// Remis 2016, "Breadth-first search for social network graphs on heterogenous platforms" (thesis).
    Remis,
    /// Yoon and Oh 2022, "SURF: direction-optimizing breadth-first search using workload state on GPUs".
    Surf,
    /// Zhou et al. 2021, "BFS parallel algorithm based on Sunway TaihuLight".
    Sunway,
}

/// The figures of a paper, each with that of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PaperComparison {
    /// The paper.
    pub paper: Paper,
    /// Whether smaller graphs than the paper's were searched.
    pub quick: bool,
    /// Claims of its text, figures and means.
    pub claims: Vec<Claim>,
    /// The cells of its tables.
    #[serde(default)]
    pub cells: Vec<Claim>,
    /// Graphs of the paper that were searched: the paper's name, and the name here.
    #[serde(default)]
    pub searched: Vec<(String, String)>,
    /// Graphs of the paper that were not searched: the name, and the reason or where to get the graph.
    pub missing: Vec<(String, String)>,
}

/// One figure of a paper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The quantity, with its unit.
    pub what: String,
    /// The table, figure or section of the paper.
    pub place: String,
    /// The paper's value.
    pub paper: f64,
    /// The value of this machine (`None`: it can't be compared).
    pub ours: Option<f64>,
    /// Why the values can't be compared, or how far they can.
    pub note: String,
}

const NO_DEVICE: &str = "needs an OpenCL device";
const OTHER_MACHINE: &str = "another machine: speeds distinguish machines, not methods";

impl PaperComparison {
    /// Compares `analysis` with `paper`. `searched` and `missing` are the paper's graphs.
    pub fn new(paper: Paper, quick: bool, analysis: &Analysis, searched: Vec<(String, String)>, missing: Vec<(String, String)>) -> Self {
        let found = Ours { analysis, searched: &searched };
        let (claims, cells) = match paper {
            Paper::Zhang => (zhang::claims(&found), zhang::cells(&found)),
            Paper::Remis => (remis::claims(&found), remis::cells(&found)),
            Paper::Surf => (surf::claims(&found), surf::cells(&found)),
            // The paper shows its speeds in a picture without numbers.
            Paper::Sunway => (Vec::new(), Vec::new()),
        };
        Self { paper, quick, claims, cells, searched, missing }
    }
}

/// The analyses of this machine, to compare with.
struct Ours<'a> {
    analysis: &'a Analysis,
    searched: &'a [(String, String)],
}

impl Ours<'_> {
    /// The graph that the paper calls `name`.
    fn graph(&self, name: &str) -> Option<&GraphAnalysis> {
        let (_, ours) = self.searched.iter().find(|(paper, _)| paper == name)?;
        self.analysis.graphs.iter().find(|graph| graph.name == *ours)
    }

    /// The Kronecker graph of `scale`.
    fn kronecker(&self, scale: u32) -> Option<&GraphAnalysis> {
        self.analysis.graphs.iter().find(|graph| graph.name.starts_with("kronecker") && graph.graph.scale == scale)
    }

    fn compared(&self) -> impl Iterator<Item = &PolicyComparison> {
        self.analysis.graphs.iter().filter_map(|graph| graph.policies.as_ref())
    }

    /// The best value of `of` among `names` over the best among `others`: mean over the graphs.
    fn ratio(&self, names: &[&str], others: &[&str], of: fn(&PolicyComparison, &str) -> Option<f64>) -> Option<f64> {
        mean(self.compared().map(|graph| Some(best(graph, names, of)? / best(graph, others, of)?)))
    }

    /// The reason why there is no energy.
    fn no_energy(&self) -> String {
        let reason = self.compared().find_map(|graph| graph.no_energy.clone());
        reason.map_or_else(|| "no policies that need it were compared here".to_owned(), |reason| format!("no energy: {reason}"))
    }

    /// Energy efficiency of the best of `names` over that of the best of `others`.
    fn efficiency(&self, what: &str, place: &str, paper: f64, names: &[&str], others: &[&str]) -> Claim {
        let ours = self.ratio(names, others, PolicyComparison::mteps_per_watt);
        let measured = self.compared().any(|graph| graph.energy.is_some());
        let note = if measured {
            "windows of searches in turn, by the sensor of this machine"
        } else {
            "modelled: powers of the strategies times what each level takes"
        };
        claim(what, place, paper, ours, note, &self.no_energy())
    }
}

/// The largest value of `of` among `names`.
fn best(graph: &PolicyComparison, names: &[&str], of: fn(&PolicyComparison, &str) -> Option<f64>) -> Option<f64> {
    names.iter().filter_map(|name| of(graph, name)).max_by(f64::total_cmp)
}

fn claim(what: impl Into<String>, place: impl Into<String>, paper: f64, ours: Option<f64>, note: &str, without: &str) -> Claim {
    let note = if ours.is_some() { note } else { without };
    Claim { what: what.into(), place: place.into(), paper, ours, note: note.to_owned() }
}

/// Mean over the graphs that have a value.
fn mean(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let all: Vec<f64> = values.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}
