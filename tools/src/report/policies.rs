//! Policies side by side, as text and as markdown.

use crate::record::{GIVEN_UP, OUTLIER_FACTOR, PoliciesReport, PolicyGraph, QUIET};
use std::fmt::{self, Write};

use super::{
    cells::{COLUMNS, Cell, Col, Table, aligned, piped, wrapped, written},
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

    /// The graph with numbers as names of the rules that a user wrote, whose text is too long for a table: each is called by its place
    /// among `rules`, to which new ones are added.
    pub(super) fn numbered(&self, rules: &mut Vec<String>) -> Self {
        let mut graph = self.clone();
        let PolicyComparison { policies, given_up, energy, .. } = &mut graph.compared;
        let names = policies.iter_mut().chain(given_up.iter_mut().map(|given_up| &mut given_up.policy));
        names.for_each(|name| number(name, rules));
        if let Some(energy) = energy {
            number(&mut energy.baseline, rules);
            energy.policies.iter_mut().for_each(|of| number(&mut of.policy, rules));
        }
        graph
    }
}

/// Replaces the `name` of a policy if it is a rule.
fn number(name: &mut String, rules: &mut Vec<String>) {
    if name.starts_with("rule:") {
        let place = rules.iter().position(|rule| rule == name).unwrap_or(rules.len());
        let text = std::mem::replace(name, numbered_rule(place));
        if place == rules.len() {
            rules.push(text);
        }
    }
}

/// The name of the rule at `place`.
pub(super) fn numbered_rule(place: usize) -> String {
    format!("rule {}", place + 1)
}

/// A policy on one graph.
struct Line {
    name: String,
    /// Nanoseconds of the searches from all roots, with mapping of the parents.
    total_ns: f64,
    /// Time of the levels beyond that of the oracle's levels, as a share of the latter. Mapping takes the same time after every policy.
    regret: f64,
    /// The spread of the turns, between their quartiles, as a share of the time of the levels.
    spread: f64,
    /// Regret by the table of levels, not by the measured searches.
    table_regret: Option<f64>,
    directions: Option<Directions>,
    as_oracle: f64,
    /// Time spent deciding, as a share of `total_ns`.
    deciding: f64,
    /// Joules of the searches from all roots, by the table of levels.
    joules: Option<f64>,
}

/// The lines of one graph: the oracle first, then the policies by their time.
fn lines(graph: &PolicyComparison) -> Vec<Line> {
    let policies = graph.policies.iter().enumerate().map(|(index, name)| line(name, graph, |root| &root.policies[index]));
    let mut lines: Vec<Line> = policies.collect();
    lines.sort_by(|a, b| a.total_ns.total_cmp(&b.total_ns));
    lines.insert(0, line("oracle", graph, |root| &root.oracle));
    lines
}

/// Sums up the searches of one policy from all roots of a graph.
fn line(name: &str, graph: &PolicyComparison, judged: impl Fn(&RootEvaluation) -> &Judged) -> Line {
    let roots = &graph.evaluation.roots;
    let sum = |of: &dyn Fn(&RootEvaluation) -> f64| roots.iter().map(of).sum::<f64>();
    let total_ns = sum(&|root| judged(root).total_ns);
    let tables: Option<f64> = roots.iter().map(|root| judged(root).table_ns).sum();
    let quartiles =
        |root: &RootEvaluation| Summary::of(&judged(root).turns_ns).map_or(0.0, |turns| turns.third_quartile - turns.first_quartile);
    let directions: Option<Vec<Directions>> = roots.iter().map(|root| judged(root).directions).collect();
    Line {
        name: name.to_owned(),
        total_ns,
        regret: sum(&|root| judged(root).elapsed_ns) / sum(&|root| root.oracle.elapsed_ns).max(1.0) - 1.0,
        spread: sum(&quartiles) / sum(&|root| judged(root).elapsed_ns).max(1.0),
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

/// How tables of policies are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyTables {
    /// The columns that fit 80 characters.
    Narrow,
    /// All columns.
    Wide,
    /// All columns, as markdown.
    Markdown,
}

impl PolicyTables {
    /// The name of a policy in a first column, of no more than `most` characters where columns have to fit.
    fn name(self, name: &str, most: usize) -> Cell {
        match name.char_indices().nth(most) {
            Some(_) if self == Self::Narrow => Cell::word(format!("{}...", name.chars().take(most - 3).collect::<String>())),
            _ => Cell::word(name),
        }
    }

    /// The columns `wide`, or of these the ones that `narrow` names, with the names that they have there.
    fn columns<'a, T>(self, wide: &[Col<'a, T>], narrow: &[(&str, &'a str)]) -> Vec<Col<'a, T>> {
        let find = |&(head, shown): &(&str, &'a str)| Some((shown, wide.iter().find(|(name, _)| *name == head)?.1));
        if self == Self::Narrow { narrow.iter().filter_map(find).collect() } else { wide.to_vec() }
    }

    fn table(self, out: &mut String, table: &Table) -> fmt::Result {
        if self == Self::Markdown { piped(out, table) } else { aligned(out, table) }
    }
}

/// The oracle's plan is made of measured levels, so that plans as good as it may be a little faster. A spread above the second share is
/// noise itself.
const TOLERATED: (f64, f64) = (0.02, 0.1);
/// One outlier in so many searches says nothing of the machine.
const MOST_OUTLIERS: usize = 64;

/// Most characters of a policy's name where columns have to fit.
const NAME: usize = 32;
/// The same where the columns have spreads.
const NAME_WITH_ENERGY: usize = 24;

/// The table of one graph, from this number of roots, and below it the policies that were given up.
fn table_of(form: PolicyTables, graph: &PolicyComparison, lines: &[Line], default: &str) -> Table {
    let each = graph.evaluation.roots.len().max(1) as f64;
    let directions = |line: &Line, of: fn(&Directions) -> f64| Cell::of(line.directions.as_ref().map(of), Cell::share);
    let mark = |line: &Line| if line.name == default { format!("{} (default)", line.name) } else { line.name.clone() };
    let wide: [Col<'_, &Line>; 9] = [
        ("policy", &|line| form.name(&mark(line), NAME)),
        ("time", &|line| Cell::ns(line.total_ns / each)),
        ("regret of levels", &|line| Cell::share(line.regret)),
        ("by table", &|line| Cell::of(line.table_regret, Cell::share)),
        ("accuracy", &|line| directions(line, Directions::accuracy)),
        ("reduced time", &|line| directions(line, Directions::reduced_time)),
        ("as oracle", &|line| Cell::share(line.as_oracle)),
        ("deciding", &|line| fine(line.deciding)),
        ("energy", &|line| Cell::of(line.joules, |joules| Cell::word(format!("{} J", general(joules / each, 4))))),
    ];
    let last = if graph.watts.is_some() { "energy" } else { "deciding" };
    let narrow = [("policy", "policy"), ("time", "time"), ("regret of levels", "regret"), ("accuracy", "accuracy"), (last, last)];
    let mut table = Table::of(lines, &form.columns(&wide, &narrow));
    table.rows.extend(graph.given_up.iter().map(|given_up| {
        let mut row = vec![Cell::word(""); table.columns.len()];
        row[0] = form.name(&given_up.policy, NAME);
        row[1] = Cell::word(format!("> {}", Cell::ns(given_up.elapsed_ns).text));
        row[2] = Cell::word(format!("> {:.0} %", 100.0 * (given_up.over_oracle - 1.0)));
        row
    }));
    table
}

/// Means over the graphs, which all have the same weight, of the policies that every graph has.
fn means(form: PolicyTables, graphs: &[Vec<Line>]) -> Table {
    type Row<'a> = (&'a str, Vec<&'a Line>);
    let of_all = |line: &'_ Line| graphs.iter().map(|lines| lines.iter().find(|other| other.name == line.name)).collect::<Option<Vec<_>>>();
    let mean = |of: fn(&Line) -> f64, (_, lines): &Row<'_>| lines.iter().map(|line| of(line)).sum::<f64>() / lines.len() as f64;
    let mut rows: Vec<Row<'_>> =
        graphs.first().into_iter().flatten().filter_map(|line| Some((line.name.as_str(), of_all(line)?))).collect();
    rows.sort_by(|a, b| mean(|line| line.regret, a).total_cmp(&mean(|line| line.regret, b)));
    rows.sort_by_key(|(name, _)| *name != "oracle");
    let directions = |of: fn(&Directions) -> f64, (_, lines): &Row<'_>| {
        let sum = lines.iter().map(|line| line.directions.as_ref().map(of)).sum::<Option<f64>>();
        Cell::of(sum, |sum| Cell::share(sum / lines.len() as f64))
    };
    let wide: [Col<'_, Row<'_>>; 7] = [
        ("policy", &|(name, _)| form.name(name, NAME)),
        ("mean regret of levels", &|row| Cell::share(mean(|line| line.regret, row))),
        ("worst", &|(_, lines)| Cell::share(lines.iter().map(|line| line.regret).fold(f64::NEG_INFINITY, f64::max))),
        ("accuracy", &|row| directions(Directions::accuracy, row)),
        ("reduced time", &|row| directions(Directions::reduced_time, row)),
        ("as oracle", &|row| Cell::share(mean(|line| line.as_oracle, row))),
        ("deciding", &|row| fine(mean(|line| line.deciding, row))),
    ];
    let narrow = [("policy", "policy"), ("mean regret of levels", "regret"), ("worst", "worst"), ("accuracy", "accuracy")];
    Table::of(rows, &form.columns(&wide, &narrow))
}

/// The table of the graph that was measured last.
pub fn policies_of_last(report: &PoliciesReport, form: PolicyTables) -> String {
    report.graphs.len().checked_sub(1).map_or_else(String::new, |last| of_graph(report, last, form))
}

/// The table of the graph at this place. Below it stand the rules that no earlier graph has.
fn of_graph(report: &PoliciesReport, place: usize, form: PolicyTables) -> String {
    written(|out| {
        let mut rules = Vec::new();
        report.graphs[..place].iter().for_each(|graph| drop(graph.numbered(&mut rules)));
        let told = rules.len();
        let PolicyGraph { name, compared: graph, .. } = &report.graphs[place].numbered(&mut rules);
        let mut default = report.default_policy.clone();
        number(&mut default, &mut rules.clone());
        let roots = graph.evaluation.roots.len();
        let levels: usize = graph.evaluation.roots.iter().map(|root| root.table.levels.len()).sum();
        writeln!(out, "{name}, {}, {}\n", counted(roots as u64, "root", "roots"), counted(levels as u64, "level", "levels"))?;
        let lines = lines(graph);
        form.table(out, &table_of(form, graph, &lines, &default))?;
        writeln!(out)?;
        for (place, rule) in rules.iter().enumerate().skip(told) {
            let said = format!("{} is {rule}", numbered_rule(place));
            wrapped(&said, COLUMNS - 2).iter().try_for_each(|line| writeln!(out, "  {line}"))?;
        }
        if told < rules.len() {
            writeln!(out)?;
        }
        hopeless(out, graph, &lines)?;
        for said in noise(graph) {
            wrapped(&said, COLUMNS).iter().try_for_each(|line| writeln!(out, "{line}"))?;
            writeln!(out)?;
        }
        energy(out, graph, form)
    })
}

/// What follows the tables of the graphs: the means over several, and the warnings.
pub fn policies_end(report: &PoliciesReport, form: PolicyTables) -> String {
    written(|out| {
        let mut rules = Vec::new();
        let all: Vec<Vec<Line>> = report.graphs.iter().map(|graph| lines(&graph.numbered(&mut rules).compared)).collect();
        if all.len() > 1 {
            let means = means(form, &all);
            let is_whole =
                |(lines, graph): (&Vec<Line>, &PolicyGraph)| lines.len() == means.rows.len() && graph.compared.given_up.is_empty();
            let which = if all.iter().zip(&report.graphs).all(is_whole) { "" } else { ", of the policies that all of them have" };
            writeln!(out, "Mean over {}{which}\n", counted(all.len() as u64, "graph", "graphs"))?;
            form.table(out, &means)?;
            writeln!(out)?;
        }
        for warning in &report.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        Ok(())
    })
}

/// Names the policies that the graph makes hopeless.
fn hopeless(out: &mut String, graph: &PolicyComparison, lines: &[Line]) -> fmt::Result {
    // By its searches, and by the table of levels, which a disturbed search does not touch.
    let is_slow = |line: &&Line| line.regret + 1.0 > GIVEN_UP && line.table_regret.is_none_or(|regret| regret + 1.0 > GIVEN_UP);
    let slow: Vec<&str> = lines.iter().filter(is_slow).map(|line| line.name.as_str()).collect();
    let given_up: Vec<&str> = graph.given_up.iter().map(|given_up| given_up.policy.as_str()).collect();
    if !slow.is_empty() || !given_up.is_empty() {
        let names = [slow, given_up].concat();
        let said = format!("Hopeless here, with more than {GIVEN_UP} times the oracle's time: {}", names.join("; "));
        wrapped(&said, COLUMNS).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        writeln!(out)?;
    }
    Ok(())
}

/// What the times of a graph say of the machine: that policies beat the oracle by more than the spread of the turns, or that many searches
/// are outliers.
pub(super) fn noise(graph: &PolicyComparison) -> Vec<String> {
    if graph.evaluation.roots.is_empty() {
        return Vec::new();
    }
    let lines = lines(graph);
    let beats = |line: &&Line| -line.regret > line.spread.max(lines[0].spread).clamp(TOLERATED.0, TOLERATED.1);
    let names: Vec<&str> = lines.iter().filter(beats).map(|line| line.name.as_str()).collect();
    let beaten = (!names.is_empty()).then(|| {
        let names = names.join("; ");
        format!(
            "The machine was too noisy to tell which plan is the fastest: the oracle is beaten by more than the spread, by {names}; {QUIET}"
        )
    });
    let judged = graph.evaluation.roots.iter().flat_map(|root| root.policies.iter().chain([&root.oracle]));
    let (mut searches, mut slow) = (0, 0);
    for judged in judged {
        searches += judged.turns_ns.len();
        slow += judged.turns_ns.iter().filter(|&&ns| ns > OUTLIER_FACTOR * judged.elapsed_ns).count();
    }
    let outliers = (slow > searches / MOST_OUTLIERS)
        .then(|| format!("{slow} of {searches} searches took more than {OUTLIER_FACTOR} times the median: the machine is noisy; {QUIET}"));
    beaten.into_iter().chain(outliers).collect()
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
fn energy(out: &mut String, graph: &PolicyComparison, form: PolicyTables) -> fmt::Result {
    if let Some(reason) = &graph.no_energy {
        return writeln!(out, "Energy: n/a: {reason}\n");
    }
    let Some(energy) = &graph.energy else { return Ok(()) };
    let with_spread = |of: Option<&Summary>| {
        let spread = |of: &Summary| of.stddev.map_or_else(String::new, |spread| format!(" +/- {}", like(of.mean, spread)));
        Cell::of(of, |of| Cell::word(format!("{}{}", general(of.mean, 4), spread(of))))
    };
    let mteps = |of: &PolicyEnergy| Summary::of(&of.windows.iter().map(|window| window.teps / 1e6).collect::<Vec<_>>());
    let wide: [Col<'_, &PolicyEnergy>; 6] = [
        ("policy", &|of| form.name(&of.policy, NAME_WITH_ENERGY)),
        ("MTEPS", &|of| with_spread(mteps(of).as_ref())),
        ("MTEPS/W", &|of| with_spread(of.summary.as_ref().map(|of| &of.mteps_per_watt))),
        ("W", &|of| with_spread(of.summary.as_ref().map(|of| &of.watts))),
        ("energy of a search", &|of| Cell::of(of.summary.as_ref(), |of| Cell::word(joules_with_spread(&of.joules_per_search)))),
        ("over baseline", &|of| with_spread(of.over_baseline.as_ref())),
    ];
    writeln!(out, "Energy of {}, in windows in turn; baseline {}\n", energy.scope, energy.baseline)?;
    let narrow = ["policy", "MTEPS/W", "energy of a search", "over baseline"].map(|head| (head, head));
    form.table(out, &Table::of(&energy.policies, &form.columns(&wide, &narrow)))?;
    if let Some(problem) = energy.policies.iter().find_map(|of| of.problem.as_ref()) {
        writeln!(out, "\nn/a: {problem}")?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::{GivenUp, LevelTable, LevelTimes},
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
            default_policy: "auto".into(),
            graphs,
            warnings: Vec::new(),
        }
    }

    fn whole(report: &PoliciesReport, form: PolicyTables) -> String {
        (0..report.graphs.len()).map(|place| of_graph(report, place, form)).collect::<String>() + &policies_end(report, form)
    }

    fn markdown(report: &PoliciesReport) -> String {
        whole(report, PolicyTables::Markdown)
    }

    #[test]
    fn each_graph_has_its_own_policies() {
        // The device can't be used for one of the graphs.
        let (both, cpu) = (|| graph("both", &[("tg", 4.0), ("tc", 2.0)]), || graph("cpu", &[("tc", 3.0)]));
        for graphs in [vec![both(), cpu()], vec![cpu(), both()]] {
            let report = report(graphs);
            let text = markdown(&report);
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
        let text = markdown(&report(vec![cpu(), cpu()]));
        assert!(text.contains("Mean over 2 graphs\n"), "{text}");
    }

    #[test]
    fn narrow_tables_fit_80_columns_and_begin_with_the_fastest() {
        let rule = "rule:frontier_edges > unvisited_edges / 14 and level > 1 or not been_bottom_up and level > 3 then gpu";
        let mut found = graph("a", &[(rule, 4.0), ("tg", 30.0), ("auto", 2.0)]);
        found.compared.evaluation.roots[0].policies[1].table_ns = None;
        found.compared.given_up = vec![GivenUp { policy: "bc".into(), elapsed_ns: 1e9, over_oracle: 500.0 }];
        let mut report = report(vec![found, graph("b", &[("auto", 2.0), (rule, 4.0), ("rule:level > 2", 5.0)])]);
        let text = whole(&report, PolicyTables::Narrow);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).collect();
        let begins: Vec<String> = rows.iter().map(|row| row.trim().split("  ").next().unwrap_or_default().to_owned()).collect();
        let told = |begin: &str| begins.iter().filter(|row| row.starts_with(begin)).count();
        assert_eq!(begins[..6], ["policy", "oracle", "auto (default)", "rule 1", "tg", "bc"], "{text}");
        assert_eq!(["rule 1 is rule:frontier_edges", "rule 2 is rule:level > 2"].map(told), [1, 1], "{text}");
        // With each graph, and in the mean.
        assert_eq!(begins.iter().filter(|row| *row == "rule 1").count(), 3, "{text}");
        for part in ["> 1.000 s", "> 49900 %", "Hopeless here, with more than 8 times the oracle's time: tg; bc"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let wide = whole(&report, PolicyTables::Wide);
        assert!(wide.contains("reduced time") && wide.contains(", of the policies that all of them have"), "{wide}");
        report.default_policy = rule.to_owned();
        assert!(whole(&report, PolicyTables::Narrow).contains("rule 1 (default)"));
        let document = figures::document("p.json", &serde_json::to_value(&report).unwrap()).unwrap();
        let facts: Vec<&str> = document.sections.iter().flat_map(|section| &section.facts).map(|(name, _)| name.as_str()).collect();
        assert_eq!(facts, ["rule 1", "rule 2"]);
        let shown = figures::text(&document, false, false);
        assert!(shown.lines().all(|line| !line.contains("rule 1") || line.chars().count() <= 80), "{shown}");
        assert_eq!(shown.matches("rule:frontier_edges").count(), 1, "{shown}");
    }

    #[test]
    fn a_beaten_oracle_and_outliers_say_that_the_machine_was_noisy() {
        // The oracle takes 1 ms.
        let said = |ms: f64, turns: &[f64]| {
            let mut found = graph("a", &[("tc", ms)]);
            found.compared.evaluation.roots[0].policies[0].turns_ns = turns.iter().map(|turn| 1e6 * turn).collect();
            let report = report(vec![found]);
            let document = figures::document("p.json", &serde_json::to_value(&report).unwrap()).unwrap();
            let facts = document.sections[0].facts.iter().map(|(name, cell)| format!("{name}: {}", cell.text)).collect::<Vec<_>>();
            let text = whole(&report, PolicyTables::Narrow);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            (text.split_whitespace().collect::<Vec<_>>().join(" "), facts)
        };
        for (ms, turns) in [(0.49, &[][..]), (0.49, &[0.4, 0.4, 0.49, 0.9, 0.9]), (0.97, &[0.97, 0.97, 0.97])] {
            let (text, facts) = said(ms, turns);
            assert!(text.contains("The machine was too noisy to tell") && text.contains("by tc; end other"), "{text}");
            assert!(facts.len() == 1 && facts[0].starts_with("noise: The machine was too noisy to tell"), "{facts:?}");
        }
        // Within the spread, or as close as the levels of the plan are measured.
        for (ms, turns) in [(0.95, &[0.9, 0.9, 0.95, 1.0, 1.0][..]), (0.99, &[]), (1.5, &[1.5, 1.6])] {
            let (text, facts) = said(ms, turns);
            assert!(!text.contains("nois") && facts.is_empty(), "{text}");
        }
        let (text, _) = said(2.0, &[2.0, 2.0, 4.1]);
        assert!(text.contains("1 of 3 searches took more than 2 times the median: the machine is noisy; end other"), "{text}");
    }

    #[test]
    fn the_time_includes_mapping_and_the_regret_does_not() {
        let report = report(vec![graph("a", &[("tc", 3.0)])]);
        let text = markdown(&report);
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
