//! Policies side by side, as text and as markdown.

use crate::record::{PoliciesReport, PolicyGraph};
use std::fmt::{self, Write};

use super::{
    cells::{Cell, Col, Table, aligned, piped, written},
    energy::joules,
};
use crate::{
    record::PolicyComparison,
    record::PolicyEnergy,
    record::{Directions, Judged, RootEvaluation},
};
use socbfs::{
    stats::Summary,
    words::{counted, general},
};

/// Name of the record format.
pub const POLICIES_SCHEMA: &str = "socbfs-policies";

/// Version of the record format.
pub const POLICIES_SCHEMA_VERSION: u32 = 2;

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

fn fine(share: f64) -> Cell {
    Cell::word(format!("{:.2} %", 100.0 * share))
}

/// The table of one graph, from this number of roots.
fn table_of(lines: &[Line], roots: usize) -> Table {
    let each = roots.max(1) as f64;
    let directions = |line: &Line, of: fn(&Directions) -> f64| Cell::of(line.directions.as_ref().map(of), Cell::share);
    Table::of(
        lines,
        &[
            ("policy", &|line| Cell::word(&line.name)),
            ("time", &|line| Cell::ns(line.total_ns / each)),
            ("regret of levels", &|line| Cell::share(line.regret)),
            ("by table", &|line| Cell::of(line.table_regret, Cell::share)),
            ("accuracy", &|line| directions(line, Directions::accuracy)),
            ("reduced time", &|line| directions(line, Directions::reduced_time)),
            ("as oracle", &|line| Cell::share(line.as_oracle)),
            ("deciding", &|line| fine(line.deciding)),
            ("energy", &|line| Cell::of(line.joules, |joules| Cell::word(format!("{} J", general(joules / each, 4))))),
        ],
    )
}

/// Means over the graphs, which all have the same weight, of the policies that every graph has.
fn means(graphs: &[Vec<Line>]) -> Table {
    type Row<'a> = (&'a str, Vec<&'a Line>);
    let of_all = |line: &'_ Line| graphs.iter().map(|lines| lines.iter().find(|other| other.name == line.name)).collect::<Option<Vec<_>>>();
    let rows = graphs.first().into_iter().flatten().filter_map(|line| Some((line.name.as_str(), of_all(line)?)));
    let mean = |of: fn(&Line) -> f64, (_, lines): &Row<'_>| lines.iter().map(|line| of(line)).sum::<f64>() / lines.len() as f64;
    let directions = |of: fn(&Directions) -> f64, (_, lines): &Row<'_>| {
        let sum = lines.iter().map(|line| line.directions.as_ref().map(of)).sum::<Option<f64>>();
        Cell::of(sum, |sum| Cell::share(sum / lines.len() as f64))
    };
    Table::of(
        rows,
        &[
            ("policy", &|(name, _)| Cell::word(*name)),
            ("mean regret of levels", &|row| Cell::share(mean(|line| line.regret, row))),
            ("worst", &|(_, lines)| Cell::share(lines.iter().map(|line| line.regret).fold(f64::NEG_INFINITY, f64::max))),
            ("accuracy", &|row| directions(Directions::accuracy, row)),
            ("reduced time", &|row| directions(Directions::reduced_time, row)),
            ("as oracle", &|row| Cell::share(mean(|line| line.as_oracle, row))),
            ("deciding", &|row| fine(mean(|line| line.deciding, row))),
        ],
    )
}

/// Writes a table.
type Writer = fn(&mut String, &Table) -> fmt::Result;

/// The report as text.
pub fn policies(report: &PoliciesReport) -> String {
    written(|out| write(out, report, aligned))
}

/// The report as markdown.
pub fn policies_markdown(report: &PoliciesReport) -> String {
    written(|out| write(out, report, piped))
}

fn write(out: &mut String, report: &PoliciesReport, table: Writer) -> fmt::Result {
    let mut all = Vec::new();
    for graph in &report.graphs {
        let (name, graph) = (&graph.name, &graph.compared);
        let roots = graph.evaluation.roots.len();
        let levels: usize = graph.evaluation.roots.iter().map(|root| root.table.levels.len()).sum();
        writeln!(out, "{name}, {}, {}\n", counted(roots as u64, "root", "roots"), counted(levels as u64, "level", "levels"))?;
        let lines = lines(graph);
        table(out, &table_of(&lines, roots))?;
        writeln!(out)?;
        energy(out, graph, table)?;
        all.push(lines);
    }
    if all.len() > 1 {
        let means = means(&all);
        let which = if all.iter().all(|lines| lines.len() == means.rows.len()) { "" } else { ", of the policies that all of them have" };
        writeln!(out, "Mean over {}{which}\n", counted(all.len() as u64, "graph", "graphs"))?;
        table(out, &means)?;
        writeln!(out)?;
    }
    for warning in &report.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

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
        Cell::of(of, |of| Cell::word(format!("{}{}", general(of.mean, 4), spread(of))))
    };
    let mteps = |of: &PolicyEnergy| Summary::of(&of.windows.iter().map(|window| window.teps / 1e6).collect::<Vec<_>>());
    let columns: [Col<'_, &PolicyEnergy>; 6] = [
        ("policy", &|of| Cell::word(&of.policy)),
        ("MTEPS", &|of| with_spread(mteps(of).as_ref())),
        ("MTEPS/W", &|of| with_spread(of.summary.as_ref().map(|of| &of.mteps_per_watt))),
        ("W", &|of| with_spread(of.summary.as_ref().map(|of| &of.watts))),
        ("energy of a search", &|of| Cell::of(of.summary.as_ref(), |of| Cell::word(joules_with_spread(&of.joules_per_search)))),
        ("over baseline", &|of| with_spread(of.over_baseline.as_ref())),
    ];
    writeln!(out, "Energy of {}, in windows in turn; baseline {}\n", energy.scope, energy.baseline)?;
    table(out, &Table::of(&energy.policies, &columns))?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::{LevelTable, LevelTimes},
        report::{figures, tests::record},
    };
    use socbfs::bfs::{LevelStats, Strategy};
    use socbfs::graph::LayoutStats;

    /// Levels that take `ms`, of a search whose mapping takes 1 ms more.
    fn judged(ms: f64) -> Judged {
        Judged {
            plans: vec![Strategy::Tc.plan()],
            total_ns: 1e6 * (ms + 1.0),
            over_oracle: ms,
            table_ns: Some(1e6),
            as_oracle: 1,
            ..Judged::taking(1e6 * ms)
        }
    }

    /// A graph of one root, with the time in ms of the levels of each policy. Those of the oracle take 1 ms.
    fn graph(name: &str, policies: &[(&str, f64)]) -> PolicyGraph {
        let levels = vec![LevelTimes::simulated(LevelStats::default(), 0, |_| Some(1e6), |_, _| 0.0)];
        let table = LevelTable { root: 7, strategies: Strategy::CPU.to_vec(), levels };
        let (oracle, judged) = (judged(1.0), policies.iter().map(|(_, ms)| judged(*ms)).collect());
        let names = policies.iter().map(|(name, _)| (*name).to_owned()).collect();
        let compared = PolicyComparison::of_root(names, RootEvaluation { edges: 10, table, oracle, policies: judged, turns: 1 });
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
