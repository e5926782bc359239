//! Policies side by side, as text and as markdown.

use std::{
    borrow::Cow,
    fmt::{self, Write},
};

use serde::{Deserialize, Serialize};

use super::energy::joules;
use crate::{
    analysis::PolicyComparison,
    bench::{Environment, PolicyEnergy},
    calibrate::{Directions, Judged, RootEvaluation},
};
use socbfs::{
    graph::LayoutStats,
    stats::Summary,
    words::{counted, general, seconds},
};

/// Name of the record format.
pub const POLICIES_SCHEMA: &str = "socbfs-policies";

/// Version of the record format.
pub const POLICIES_SCHEMA_VERSION: u32 = 2;

/// The record of `socbfs policies`.
#[derive(Debug, Serialize, Deserialize)]
pub struct PoliciesReport {
    /// [`POLICIES_SCHEMA`].
    pub schema: Cow<'static, str>,
    /// [`POLICIES_SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Machine, system, build, command, time.
    pub environment: Environment,
    /// The results by graph.
    pub graphs: Vec<PolicyGraph>,
    /// What a reader has to know, such as an error that ended the comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The results on one graph.
#[derive(Debug, Serialize, Deserialize)]
pub struct PolicyGraph {
    /// File or generator.
    pub name: String,
    /// Counts of the searched structure.
    pub layout: LayoutStats,
    /// The policies: those that need a device are missing if it can't be used for this graph.
    #[serde(flatten)]
    pub compared: PolicyComparison,
}

impl PolicyGraph {
    /// Whether every root has a result of every policy. A record that was edited may lack some.
    pub fn fits(&self) -> bool {
        self.compared.evaluation.roots.iter().all(|root| root.policies.len() == self.compared.policies.len())
    }
}

/// A policy on one graph.
struct Line {
    name: String,
    /// Nanoseconds of the searches from all roots, with mapping of the parents.
    total_ns: f64,
    /// Time of the levels beyond that of the oracle's levels, as a share of the latter. Mapping takes the same time after every policy.
    regret: f64,
    /// Regret by the table of levels, not by the measured searches.
    table_regret: Option<f64>,
    directions: Option<Directions>,
    as_oracle: f64,
    /// Time spent deciding, as a share of `total_ns`.
    deciding: f64,
    /// Joules of the searches from all roots, by the table of levels.
    joules: Option<f64>,
}

/// The lines of one graph, the oracle first.
fn lines(graph: &PolicyComparison) -> Vec<Line> {
    let oracle = line("oracle", graph, |root| &root.oracle);
    let policies = graph.policies.iter().enumerate().map(|(index, name)| line(name, graph, |root| &root.policies[index]));
    std::iter::once(oracle).chain(policies).collect()
}

/// Sums up the searches of one policy from all roots of a graph.
fn line(name: &str, graph: &PolicyComparison, judged: impl Fn(&RootEvaluation) -> &Judged) -> Line {
    let roots = &graph.evaluation.roots;
    let sum = |of: &dyn Fn(&RootEvaluation) -> f64| roots.iter().map(of).sum::<f64>();
    let total_ns = sum(&|root| judged(root).total_ns);
    let tables: Option<f64> = roots.iter().map(|root| judged(root).table_ns).sum();
    let directions: Option<Vec<Directions>> = roots.iter().map(|root| judged(root).directions).collect();
    Line {
        name: name.to_owned(),
        total_ns,
        regret: sum(&|root| judged(root).elapsed_ns) / sum(&|root| root.oracle.elapsed_ns).max(1.0) - 1.0,
        table_regret: tables.map(|ns| ns / sum(&|root| root.table.oracle().1).max(1.0) - 1.0),
        directions: directions.map(|all| all.into_iter().fold(Directions::default(), Directions::and)),
        as_oracle: sum(&|root| judged(root).as_oracle as f64) / sum(&|root| root.table.levels.len() as f64).max(1.0),
        deciding: sum(&|root| judged(root).decision_ns) / total_ns.max(1.0),
        joules: graph.watts.and_then(|watts| roots.iter().map(|root| root.table.joules(&judged(root).plans, &watts)).sum()),
    }
}

/// A policy over all graphs.
struct Overall {
    name: String,
    mean_regret: f64,
    worst_regret: f64,
    accuracy: Option<f64>,
    reduced_time: Option<f64>,
    as_oracle: f64,
    deciding: f64,
}

/// Means over the graphs, which all have the same weight, of the policies that every graph has.
fn overall(graphs: &[Vec<Line>]) -> Vec<Overall> {
    let count = graphs.len().max(1) as f64;
    let of_all = |line: &Line| {
        let lines: Option<Vec<&Line>> = graphs.iter().map(|lines| lines.iter().find(|other| other.name == line.name)).collect();
        let lines = lines?;
        let mean = |of: &dyn Fn(&Line) -> f64| lines.iter().copied().map(of).sum::<f64>() / count;
        let directions = |of: fn(&Directions) -> f64| lines.iter().map(|line| line.directions.as_ref().map(of)).sum::<Option<f64>>();
        Some(Overall {
            name: line.name.clone(),
            mean_regret: mean(&|line| line.regret),
            worst_regret: lines.iter().map(|line| line.regret).fold(f64::NEG_INFINITY, f64::max),
            accuracy: directions(Directions::accuracy).map(|sum| sum / count),
            reduced_time: directions(Directions::reduced_time).map(|sum| sum / count),
            as_oracle: mean(&|line| line.as_oracle),
            deciding: mean(&|line| line.deciding),
        })
    };
    graphs.first().into_iter().flatten().filter_map(of_all).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn percent_or_none(share: Option<f64>) -> String {
    share.map_or_else(|| "n/a".to_owned(), percent)
}

fn fine(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

const COLUMNS: [&str; 9] =
    ["policy", "time", "regret of levels", "by table", "accuracy", "reduced time", "as oracle", "deciding", "energy"];
const OVERALL: [&str; 7] = ["policy", "mean regret of levels", "worst", "accuracy", "reduced time", "as oracle", "deciding"];

fn cells(line: &Line, searches: usize) -> Vec<String> {
    vec![
        line.name.clone(),
        seconds(line.total_ns / 1e9 / searches.max(1) as f64),
        percent(line.regret),
        percent_or_none(line.table_regret),
        percent_or_none(line.directions.as_ref().map(Directions::accuracy)),
        percent_or_none(line.directions.as_ref().map(Directions::reduced_time)),
        percent(line.as_oracle),
        fine(line.deciding),
        line.joules.map_or_else(|| "n/a".to_owned(), |joules| format!("{} J", general(joules / searches.max(1) as f64, 4))),
    ]
}

fn overall_cells(line: &Overall) -> Vec<String> {
    vec![
        line.name.clone(),
        percent(line.mean_regret),
        percent(line.worst_regret),
        percent_or_none(line.accuracy),
        percent_or_none(line.reduced_time),
        percent(line.as_oracle),
        fine(line.deciding),
    ]
}

/// Writes a table with this head and these rows.
type Writer = fn(&mut String, &[&str], &[Vec<String>]) -> fmt::Result;

/// The report as text.
pub fn policies(report: &PoliciesReport) -> String {
    let mut text = String::new();
    // Writing to a String can't fail.
    let _ = write(&mut text, report, aligned);
    text
}

/// The report as markdown.
pub fn policies_markdown(report: &PoliciesReport) -> String {
    let mut text = String::new();
    let _ = write(&mut text, report, piped);
    text
}

fn write(out: &mut String, report: &PoliciesReport, table: Writer) -> fmt::Result {
    let mut all = Vec::new();
    for graph in &report.graphs {
        let (name, graph) = (&graph.name, &graph.compared);
        let roots = graph.evaluation.roots.len();
        let levels: usize = graph.evaluation.roots.iter().map(|root| root.table.levels.len()).sum();
        writeln!(out, "{name}, {}, {}\n", counted(roots as u64, "root", "roots"), counted(levels as u64, "level", "levels"))?;
        let lines = lines(graph);
        table(out, &COLUMNS, &lines.iter().map(|line| cells(line, roots)).collect::<Vec<_>>())?;
        writeln!(out)?;
        energy(out, graph, table)?;
        all.push(lines);
    }
    if all.len() > 1 {
        let means = overall(&all);
        let which = if all.iter().all(|lines| lines.len() == means.len()) { "" } else { ", of the policies that all of them have" };
        writeln!(out, "Mean over {}{which}\n", counted(all.len() as u64, "graph", "graphs"))?;
        table(out, &OVERALL, &means.iter().map(overall_cells).collect::<Vec<_>>())?;
        writeln!(out)?;
    }
    for warning in &report.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

const ENERGY: [&str; 6] = ["policy", "MTEPS", "MTEPS/W", "W", "energy of a search", "over baseline"];

/// Formats `spread` with as many decimals as `mean` has with four significant digits.
fn like(mean: f64, spread: f64) -> String {
    let before = if mean == 0.0 { 1 } else { mean.abs().log10().floor() as i32 + 1 };
    format!("{spread:.*}", (4 - before).clamp(0, 12) as usize)
}

/// Formats the mean and the standard deviation of joules, both in the unit that fits the mean.
fn joules_with_spread(of: &Summary) -> String {
    let mean = joules(of.mean);
    let Some((number, unit)) = mean.split_once(' ') else { return mean };
    match (of.stddev, number.parse::<f64>()) {
        (Some(spread), Ok(number)) if of.mean != 0.0 => format!("{mean} +/- {} {unit}", like(number, spread * number / of.mean)),
        _ => mean,
    }
}

/// Writes the energy of the policies, or why there is none.
fn energy(out: &mut String, graph: &PolicyComparison, table: Writer) -> fmt::Result {
    if let Some(reason) = &graph.no_energy {
        return writeln!(out, "Energy: n/a: {reason}\n");
    }
    let Some(energy) = &graph.energy else { return Ok(()) };
    let with_spread = |of: Option<&Summary>| {
        let spread = |of: &Summary| of.stddev.map_or_else(String::new, |spread| format!(" +/- {}", like(of.mean, spread)));
        of.map_or_else(|| "n/a".to_owned(), |of| format!("{}{}", general(of.mean, 4), spread(of)))
    };
    let row = |policy: &PolicyEnergy| {
        let teps: Vec<f64> = policy.windows.iter().map(|window| window.teps / 1e6).collect();
        let summary = policy.summary.as_ref();
        vec![
            policy.policy.clone(),
            with_spread(Summary::of(&teps).as_ref()),
            with_spread(summary.map(|summary| &summary.mteps_per_watt)),
            with_spread(summary.map(|summary| &summary.watts)),
            summary.map_or_else(|| "n/a".to_owned(), |summary| joules_with_spread(&summary.joules_per_search)),
            with_spread(policy.over_baseline.as_ref()),
        ]
    };
    writeln!(out, "Energy of {}, in windows in turn; baseline {}\n", energy.scope, energy.baseline)?;
    table(out, &ENERGY, &energy.policies.iter().map(row).collect::<Vec<_>>())?;
    writeln!(out)
}

/// Writes a table with aligned columns, the first one to the left and the others to the right.
pub(super) fn aligned(out: &mut String, head: &[&str], rows: &[Vec<String>]) -> fmt::Result {
    aligned_by(out, head, rows, &|column| column == 0)
}

/// As [`aligned`], but the columns for which `is_left` returns true are aligned to the left.
pub(super) fn aligned_by(out: &mut String, head: &[&str], rows: &[Vec<String>], is_left: &dyn Fn(usize) -> bool) -> fmt::Result {
    let widths: Vec<usize> = (0..head.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).chain([head[column].len()]).max().unwrap_or(0))
        .collect();
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            match is_left(column) {
                true => write!(line, "  {cell:<width$}")?,
                false => write!(line, "  {cell:>width$}")?,
            }
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn piped(out: &mut String, head: &[&str], rows: &[Vec<String>]) -> fmt::Result {
    writeln!(out, "| {} |", head.join(" | "))?;
    writeln!(out, "|---|{}", "---:|".repeat(head.len() - 1))?;
    for row in rows {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        calibrate::{Evaluation, LevelTable, LevelTimes},
        report::{figures, tests::record},
    };
    use socbfs::bfs::{LevelStats, Strategy};

    /// Levels that take `ms`, of a search whose mapping takes 1 ms more.
    fn judged(ms: f64) -> Judged {
        Judged {
            plans: vec![Strategy::Tc.plan()],
            elapsed_ns: 1e6 * ms,
            total_ns: 1e6 * (ms + 1.0),
            over_oracle: ms,
            decision_ns: 0.0,
            table_ns: Some(1e6),
            directions: None,
            as_oracle: 1,
        }
    }

    /// A graph of one root, with the time in ms of the levels of each policy. Those of the oracle take 1 ms.
    fn graph(name: &str, policies: &[(&str, f64)]) -> PolicyGraph {
        let levels = vec![LevelTimes::simulated(LevelStats::default(), 0, |_| Some(1e6), |_, _| 0.0)];
        let table = LevelTable { root: 7, strategies: Strategy::CPU.to_vec(), levels };
        let (oracle, judged) = (judged(1.0), policies.iter().map(|(_, ms)| judged(*ms)).collect());
        let compared = PolicyComparison {
            policies: policies.iter().map(|(name, _)| (*name).to_owned()).collect(),
            turns: 1,
            edges: 10,
            watts: None,
            exact: Vec::new(),
            evaluation: Evaluation { roots: vec![RootEvaluation { edges: 10, table, oracle, policies: judged, turns: 1 }] },
            energy: None,
            no_energy: None,
        };
        PolicyGraph { name: name.to_owned(), layout: LayoutStats { edges: 10, ..LayoutStats::default() }, compared }
    }

    fn report(graphs: Vec<PolicyGraph>) -> PoliciesReport {
        let environment = record(&[0.001]).environment;
        PoliciesReport {
            schema: POLICIES_SCHEMA.into(),
            schema_version: POLICIES_SCHEMA_VERSION,
            environment,
            graphs,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn each_graph_has_its_own_policies() {
        // The device can't be used for one of the graphs.
        let (both, cpu) = (|| graph("both", &[("tg", 4.0), ("tc", 2.0)]), || graph("cpu", &[("tc", 3.0)]));
        for graphs in [vec![both(), cpu()], vec![cpu(), both()]] {
            let report = report(graphs);
            let text = policies_markdown(&report);
            assert_eq!(["| tg |", "| tc |", "| oracle |"].map(|row| text.matches(row).count()), [1, 3, 3], "{text}");
            for part in ["Mean over 2 graphs, of the policies that all of them have\n", "| tc | 150.0 % | 200.0 % |"] {
                assert!(text.contains(part), "{part} in {text}");
            }
            let document = figures::document("p.json", &serde_json::to_value(&report).unwrap()).unwrap();
            for section in &document.sections[..2] {
                let speeds = section.figures.iter().find(|figure| figure.id == "performance").unwrap();
                let names: Vec<&str> = speeds.table.rows.iter().map(|row| row[0].text.as_str()).collect();
                assert_eq!(names, if section.title == "cpu" { &["tc", "oracle"][..] } else { &["tg", "tc", "oracle"] });
            }
        }
        let text = policies_markdown(&report(vec![cpu(), cpu()]));
        assert!(text.contains("Mean over 2 graphs\n"), "{text}");
    }

    #[test]
    fn the_time_includes_mapping_and_the_regret_does_not() {
        let report = report(vec![graph("a", &[("tc", 3.0)])]);
        let text = policies_markdown(&report);
        for part in ["| policy | time | regret of levels |", "| oracle | 2.000 ms | 0.0 % |", "| tc | 4.000 ms | 200.0 % |"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // The page has the same times.
        let document = figures::document("p.json", &serde_json::to_value(&report).unwrap()).unwrap();
        let figure = |id: &str| document.sections[0].figures.iter().find(|figure| figure.id == id).unwrap();
        assert_eq!(figure("performance").table.rows[0][3].text, "4.000 ms");
        assert_eq!(figure("regret").table.rows[0][1].text, "200");
    }

    #[test]
    fn a_record_without_a_result_for_every_policy_is_refused() {
        let mut record = serde_json::to_value(report(vec![graph("a", &[("tg", 4.0), ("tc", 2.0)])])).unwrap();
        assert_eq!(figures::document("p.json", &record).unwrap().sections[0].title, "a");
        record["graphs"][0]["policies"].as_array_mut().unwrap().pop();
        let error = figures::document("p.json", &record).unwrap_err().to_string();
        assert!(error.contains("a: root 7 has 2 results, and the graph 1 policies"), "{error}");
    }
}
