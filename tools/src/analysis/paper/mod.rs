//! Compares the figures of a paper with those of this machine.

mod zhang;

use serde::Deserialize;

use crate::record::{Analysis, Claim, GraphAnalysis, Judged, Paper, PaperComparison, PolicyComparison};
use socbfs::stats::Summary;

const NO_DEVICE: &str = "needs an OpenCL device";

impl PaperComparison {
    /// Compares `analysis` with `paper`. `searched` and `missing` are the paper's graphs.
    pub fn new(paper: Paper, quick: bool, analysis: &Analysis, searched: Vec<(String, String)>, missing: Vec<(String, String)>) -> Self {
        let found = Ours { analysis, searched: &searched };
        let published = Published::of(paper);
        let claims = published.claims.iter().flat_map(|group| group.compared(&found)).collect();
        let mut cells = if paper == Paper::Zhang { zhang::table_5(&found) } else { Vec::new() };
        cells.extend(published.tables.iter().flat_map(|table| table.compared(&found)));
        Self { paper, quick, claims, cells, searched, missing }
    }
}

/// The figures of a paper, from its file beside this one.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Published {
    claims: Vec<Group>,
    tables: Vec<Table>,
}

/// Claims that are compared in the same way.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    what: String,
    place: String,
    measure: Measure,
    #[serde(default)]
    of: Statistic,
    /// How the names of the graphs begin (empty: all graphs).
    #[serde(default)]
    graphs: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    without: String,
    figures: Vec<Figure>,
}

/// A claim: what it adds to the name of its group, and the paper's value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    #[serde(default)]
    name: String,
    paper: f64,
    /// The policy with the largest value counts (empty: no policy).
    #[serde(default)]
    best: Vec<String>,
    /// The value is divided by the largest one of these (empty: it is not divided).
    #[serde(default)]
    over: Vec<String>,
    /// The paper's name of the only graph that counts.
    graph: Option<String>,
    /// The iteration, from 1, of which the value is.
    #[serde(default)]
    iteration: u32,
}

/// A table with a row for each graph.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    place: String,
    #[serde(default)]
    note: String,
    /// What is said if the graph is not here.
    without: String,
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    name: String,
    measure: Measure,
    #[serde(default)]
    policy: String,
    /// Takes the place of the table's.
    note: Option<String>,
}

/// The values of a graph: the paper's name of it, or "scale N" for a Kronecker graph.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    graph: String,
    values: Vec<f64>,
}

/// Which number over the graphs is compared.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Statistic {
    #[default]
    Mean,
    Deviation,
    Most,
}

/// What is measured on a graph: by a policy, at an iteration, or of the graph itself.
#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Measure {
    Mteps,
    Gteps,
    /// As the program of SURF counts: both arcs of an undirected edge.
    GtepsInArcs,
    MtepsPerWatt,
    Accuracy,
    ReducedTime,
    /// Milliseconds from the call to the tree, as pages and MTEPS have them.
    RunTime,
    Deciding,
    DecidingShare,
    Iterations,
    Left,
    Traversed,
    BothHalves,
    Crossing,
    Contention,
    RemappingShare,
    VerticesAfter,
    VerticesSaved,
    Vertices,
    VerticesWithAnEdge,
    EdgesListed,
    Arcs,
}

impl Measure {
    fn value(self, graph: &GraphAnalysis, policy: &str, iteration: u32) -> Option<f64> {
        let compared = graph.policies.as_ref();
        let ms = |of: fn(&Judged) -> f64| Some(compared?.mean_ns(policy, of)? / 1e6);
        let directions = || {
            let place = compared?.place(policy)?;
            compared?.directions(|root| &root.policies[place])
        };
        let split = || graph.repeated.as_ref()?.splits.iter().find(|split| split.level + 1 == iteration);
        let top_down = || graph.split.as_ref()?.directions.first();
        let counts = &graph.graph.counts;
        Some(match self {
            Self::Mteps => compared?.mteps(policy)?,
            Self::Gteps => compared?.mteps(policy)? / 1e3,
            Self::GtepsInArcs => compared?.mteps(policy)? / if graph.graph.directed { 1e3 } else { 500.0 },
            Self::MtepsPerWatt => compared?.mteps_per_watt(policy)?,
            Self::Accuracy => 100.0 * directions()?.accuracy(),
            Self::ReducedTime => 100.0 * directions()?.reduced_time(),
            Self::RunTime => ms(|judged| judged.total_ns)?,
            Self::Deciding => ms(|judged| judged.decision_ns)?,
            Self::DecidingShare => 100.0 * ms(|judged| judged.decision_ns)? / ms(|judged| judged.total_ns)?,
            Self::Iterations => graph.profile.as_ref()?.mean_levels,
            Self::Left => 100.0 * (1.0 - split()?.traversed),
            Self::Traversed => 100.0 * split()?.traversed,
            Self::BothHalves => 100.0 * split()?.repeated_thesis,
            Self::Crossing => top_down()?.crossing_permille? / 10.0,
            Self::Contention => top_down()?.shares.iter().find(|share| share.gpu_permille == 500)?.contention,
            Self::RemappingShare => 100.0 * graph.remapped?.share,
            Self::VerticesAfter => graph.remapped?.after as f64 / 1e6,
            Self::VerticesSaved => 100.0 * graph.remapped?.saved,
            Self::Vertices => counts.vertices as f64 / 1e6,
            Self::VerticesWithAnEdge => counts.vertices.saturating_sub(counts.isolated) as f64 / 1e6,
            Self::EdgesListed => counts.listed as f64 / if counts.both_directions { 2e6 } else { 1e6 },
            Self::Arcs => 2.0 * counts.unique_edges as f64 / 1e6,
        })
    }

    /// The largest value by one of `policies`.
    fn best(self, graph: &GraphAnalysis, policies: &[String], iteration: u32) -> Option<f64> {
        if policies.is_empty() {
            return self.value(graph, "", iteration);
        }
        policies.iter().filter_map(|policy| self.value(graph, policy, iteration)).max_by(f64::total_cmp)
    }
}

impl Published {
    fn of(paper: Paper) -> Self {
        let text = match paper {
            Paper::Zhang => include_str!("zhang.toml"),
            Paper::Remis => include_str!("remis.toml"),
            Paper::Surf => include_str!("surf.toml"),
            // The paper shows its speeds in a picture without numbers.
            Paper::Sunway => return Self::default(),
        };
        // A test reads every file.
        toml::from_str(text).unwrap_or_default()
    }
}

impl Group {
    fn compared(&self, found: &Ours<'_>) -> Vec<Claim> {
        let (note, without) = match self.measure {
            Measure::MtepsPerWatt => (found.energy_note().to_owned(), found.no_energy()),
            _ => (self.note.clone(), self.without.clone()),
        };
        let claim = |figure: &Figure| {
            let what = if figure.name.is_empty() { self.what.clone() } else { format!("{}, {}", figure.name, self.what) };
            claim(what, &self.place, figure.paper, self.ours(figure, found), &note, &without)
        };
        self.figures.iter().map(claim).collect()
    }

    fn ours(&self, figure: &Figure, found: &Ours<'_>) -> Option<f64> {
        let value = |graph: &GraphAnalysis| {
            let value = self.measure.best(graph, &figure.best, figure.iteration)?;
            Some(if figure.over.is_empty() { value } else { value / self.measure.best(graph, &figure.over, figure.iteration)? })
        };
        let all = || found.analysis.graphs.iter().filter(|graph| graph.name.starts_with(&self.graphs));
        let values: Vec<f64> = match &figure.graph {
            Some(name) => found.graph(name).and_then(value).into_iter().collect(),
            None => all().filter_map(value).collect(),
        };
        let summary = Summary::of(&values)?;
        match self.of {
            Statistic::Mean => Some(summary.mean),
            Statistic::Deviation => summary.stddev,
            Statistic::Most => Some(summary.max),
        }
    }
}

impl Table {
    fn compared(&self, found: &Ours<'_>) -> Vec<Claim> {
        let mut cells = Vec::new();
        for row in &self.rows {
            let graph = found.graph(&row.graph);
            let without = if graph.is_some() { "not compared" } else { &self.without };
            for (column, &paper) in self.columns.iter().zip(&row.values) {
                let ours = graph.and_then(|graph| column.measure.value(graph, &column.policy, 0));
                let (what, note) = (format!("{}, {}", row.graph, column.name), column.note.as_ref().unwrap_or(&self.note));
                cells.push(claim(what, &self.place, paper, ours, note, without));
            }
        }
        cells
    }
}

/// The analyses of this machine, to compare with.
struct Ours<'a> {
    analysis: &'a Analysis,
    searched: &'a [(String, String)],
}

impl Ours<'_> {
    /// The graph that the paper calls `name`. "scale N" is the Kronecker graph of that scale.
    fn graph(&self, name: &str) -> Option<&GraphAnalysis> {
        let mut graphs = self.analysis.graphs.iter();
        if let Some(scale) = name.strip_prefix("scale ") {
            return graphs.find(|graph| graph.name.starts_with("kronecker") && graph.graph.scale.to_string() == scale);
        }
        let (_, ours) = self.searched.iter().find(|(paper, _)| paper == name)?;
        graphs.find(|graph| graph.name == *ours)
    }

    fn compared(&self) -> impl Iterator<Item = &PolicyComparison> {
        self.analysis.graphs.iter().filter_map(|graph| graph.policies.as_ref())
    }

    /// The reason why there is no energy.
    fn no_energy(&self) -> String {
        let reason = self.compared().find_map(|graph| graph.no_energy.clone());
        reason.map_or_else(|| "no policies that need it were compared here".to_owned(), |reason| format!("no energy: {reason}"))
    }

    /// Where the energy is from.
    fn energy_note(&self) -> &'static str {
        match self.compared().any(|graph| graph.energy.is_some()) {
            true => "windows of searches in turn, by the sensor of this machine",
            false => "modelled: powers of the strategies times what each level takes",
        }
    }
}

fn claim(what: String, place: &str, paper: f64, ours: Option<f64>, note: &str, without: &str) -> Claim {
    let note = if ours.is_some() { note } else { without };
    Claim { what, place: place.to_owned(), paper, ours, note: note.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Environment, GraphRecord};
    use socbfs::graph::LayoutStats;
    use socbfs_policy::Policy;

    const PAPERS: [(Paper, &str); 3] =
        [(Paper::Zhang, include_str!("zhang.toml")), (Paper::Remis, include_str!("remis.toml")), (Paper::Surf, include_str!("surf.toml"))];

    #[test]
    fn every_file_is_read_and_names_policies_that_exist() {
        for (paper, text) in PAPERS {
            let found: Published = toml::from_str(text).unwrap_or_else(|error| panic!("{paper:?}: {error}"));
            let of_claims = found.claims.iter().flat_map(|group| &group.figures).flat_map(|figure| figure.best.iter().chain(&figure.over));
            let of_tables =
                found.tables.iter().flat_map(|table| &table.columns).map(|column| &column.policy).filter(|name| !name.is_empty());
            for name in of_claims.chain(of_tables) {
                assert!(name.parse::<Policy>().is_ok(), "{paper:?}: {name}");
            }
            for table in &found.tables {
                assert!(table.rows.iter().all(|row| row.values.len() == table.columns.len()), "{paper:?}: {}", table.place);
            }
        }
    }

    /// The claims and cells of `paper`, if its graph `name` is here and has this analysis.
    fn ours(paper: Paper, name: &str, graph: GraphRecord, policies: Option<PolicyComparison>) -> PaperComparison {
        let mut analysis = Analysis::new(Environment::default(), Vec::new());
        analysis.graphs.push(GraphAnalysis { name: "g.txt".to_owned(), graph, policies, ..GraphAnalysis::default() });
        PaperComparison::new(paper, false, &analysis, vec![(name.to_owned(), "g.txt".to_owned())], Vec::new())
    }

    fn cell(found: &PaperComparison, what: &str) -> Option<f64> {
        found.cells.iter().find(|cell| cell.what == what).unwrap().ours
    }

    #[test]
    fn table_2_1_of_the_thesis_counts_as_the_thesis_does() {
        let counted = |name: &str, counts: LayoutStats, what: &str| {
            let graph = GraphRecord { counts, ..GraphRecord::default() };
            cell(&ours(Paper::Remis, name, graph, None), &format!("{name}, million {what}"))
        };
        // An edge that is listed in both directions counts once.
        let edges = |listed, both_directions| counted("roadCA", LayoutStats { listed, both_directions, ..LayoutStats::default() }, "edges");
        assert_eq!((edges(5_500_000, true), edges(2_750_000, false)), (Some(2.75), Some(2.75)));
        // Only SNAP's files have numbers that no vertex has.
        let counts = || LayoutStats { vertices: 750_000, isolated: 250_000, ..LayoutStats::default() };
        assert_eq!((counted("amazon", counts(), "vertices"), counted("NY", counts(), "vertices")), (Some(0.5), Some(0.75)));
    }

    /// A search of 6000 edges: 2 ms for the levels, of which it decides for 1 ms, and 1 ms to map the parents back.
    fn by_surf() -> PolicyComparison {
        PolicyComparison::by_surf(6000, Judged { total_ns: 3e6, decision_ns: 1e6, ..Judged::taking(2e6) })
    }

    #[test]
    fn tables_4_and_5_of_surf_include_mapping_and_count_both_arcs_of_an_undirected_edge() {
        let name = "soc-livejournal (LJ)";
        for (directed, gteps) in [(true, 0.002), (false, 0.004)] {
            let found = ours(Paper::Surf, name, GraphRecord { directed, ..GraphRecord::default() }, Some(by_surf()));
            let cells = ["run time, ms", "deciding, ms", "GTEPS"].map(|what| cell(&found, &format!("{name}, SURF, {what}")));
            // 6000 edges in 3 ms.
            assert_eq!(cells, [Some(3.0), Some(1.0), Some(gteps)]);
        }
    }

    #[test]
    fn the_claims_of_surf_are_the_means_of_its_tables() {
        let found = Published::of(Paper::Surf);
        let column = |place: &str, name: &str| -> Vec<f64> {
            let of = |table: &&Table| table.place == place && table.columns.iter().any(|column| column.name == name);
            let table = found.tables.iter().find(of).unwrap();
            let at = table.columns.iter().position(|column| column.name == name).unwrap();
            table.rows.iter().map(|row| row.values[at]).collect()
        };
        let quotients = |a: Vec<f64>, b: Vec<f64>| Summary::of(&a.iter().zip(&b).map(|(a, b)| a / b).collect::<Vec<_>>()).unwrap().mean;
        for group in &found.claims {
            for figure in &group.figures {
                let all = |place, what: &str| column(place, &format!("{}, {what}", figure.name));
                let own = |place, what| Summary::of(&all(place, what)).unwrap();
                let (mean, near) = match (group.place.as_str(), group.what.as_str()) {
                    ("table 3, mean", what) => (own("table 3", what).mean, 0.02),
                    ("table 3, standard deviation", what) => (own("table 3", what).stddev.unwrap(), 0.1),
                    (_, "deciding as a share of the run time, %") => {
                        (100.0 * quotients(all("table 4", "deciding, ms"), all("table 4", "run time, ms")), 0.001)
                    }
                    (_, what) => {
                        let other = figure.name.strip_prefix("SURF over ").unwrap();
                        let [surf, other] = ["SURF", other].map(|name| match what {
                            "speed" => column("table 4", &format!("{name}, run time, ms")),
                            _ => column("table 5", &format!("{name}, GTEPS")),
                        });
                        (if what == "speed" { quotients(other, surf) } else { quotients(surf, other) }, 0.01)
                    }
                };
                assert!((mean - figure.paper).abs() < near, "{}, {}: {mean} {}", figure.name, group.what, figure.paper);
            }
        }
    }
}
