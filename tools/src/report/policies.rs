//! Policies side by side in numbers, of which figures and sentences are made.

use super::cells::Cell;
use crate::record::{Directions, GIVEN_UP, Judged, OUTLIER_FACTOR, PolicyComparison, PolicyGraph, QUIET, RootEvaluation, told_apart};
use socbfs::stats::Summary;

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
pub(super) fn number(name: &mut String, rules: &mut Vec<String>) {
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
pub(super) struct Line {
    pub(super) name: String,
    /// Nanoseconds of a search, with mapping of the parents: mean over the roots.
    pub(super) ns: f64,
    /// Time of the levels beyond that of the oracle's levels, as a share of the latter. Mapping takes the same time after every policy.
    pub(super) regret: f64,
    /// The same from each root, in per cent.
    pub(super) by_root: Summary,
    /// The spread of the turns, between their quartiles, as a share of the time of the levels.
    spread: f64,
    /// Regret by the table of levels, not by the measured searches.
    pub(super) table_regret: Option<f64>,
    pub(super) directions: Option<Directions>,
    pub(super) as_oracle: f64,
    /// Time spent deciding, as a share of `ns`.
    pub(super) deciding: f64,
    /// Joules of a search by the table of levels.
    pub(super) joules: Option<f64>,
    /// By Graph500's rule.
    pub(super) mteps: Option<f64>,
    pub(super) per_watt: Option<f64>,
}

/// The lines of one graph: those of the policies, and the oracle's last.
pub(super) fn lines(graph: &PolicyComparison) -> Vec<Line> {
    let policies = graph.policies.iter().enumerate().map(|(index, name)| line(name, graph, |root| &root.policies[index]));
    policies.chain([line("oracle", graph, |root| &root.oracle)]).flatten().collect()
}

/// Sums up the searches of one policy from all roots of a graph (`None`: there are no roots).
fn line(name: &str, graph: &PolicyComparison, judged: impl Fn(&RootEvaluation) -> &Judged) -> Option<Line> {
    let roots = &graph.evaluation.roots;
    let sum = |of: &dyn Fn(&RootEvaluation) -> f64| roots.iter().map(of).sum::<f64>();
    let (each, total_ns) = (roots.len() as f64, sum(&|root| judged(root).total_ns));
    let tables: Option<f64> = roots.iter().map(|root| judged(root).table_ns).sum();
    let quartiles =
        |root: &RootEvaluation| Summary::of(&judged(root).turns_ns).map_or(0.0, |turns| turns.third_quartile - turns.first_quartile);
    let joules: Option<f64> = graph.watts.and_then(|watts| roots.iter().map(|root| root.table.joules(&judged(root).plans, &watts)).sum());
    let mteps = graph.mteps_of(&judged);
    Some(Line {
        name: name.to_owned(),
        ns: total_ns / each,
        regret: sum(&|root| judged(root).elapsed_ns) / sum(&|root| root.oracle.elapsed_ns).max(1.0) - 1.0,
        by_root: Summary::of(&roots.iter().map(|root| 100.0 * (judged(root).over_oracle - 1.0)).collect::<Vec<_>>())?,
        spread: sum(&quartiles) / sum(&|root| judged(root).elapsed_ns).max(1.0),
        table_regret: tables.map(|ns| ns / sum(&|root| root.table.oracle().1).max(1.0) - 1.0),
        directions: graph.directions(&judged),
        as_oracle: sum(&|root| judged(root).as_oracle as f64) / sum(&|root| root.table.levels.len() as f64).max(1.0),
        deciding: sum(&|root| judged(root).decision_ns) / total_ns.max(1.0),
        joules: joules.map(|joules| joules / each),
        mteps,
        per_watt: mteps.zip(graph.watts_of(&judged)).map(|(mteps, watts)| mteps / watts),
    })
}

/// The oracle's plan is made of measured levels, so that plans as good as it may be a little faster. A spread above the second share is
/// noise itself.
const TOLERATED: (f64, f64) = (0.02, 0.1);
/// One outlier in so many searches says nothing of the machine.
const MOST_OUTLIERS: usize = 64;

/// What the times of a graph say of its policies and of the machine: that policies are hopeless here, that the turns do not tell some of
/// them apart, that they beat the oracle by more than the spread of the turns, or that many searches are outliers.
pub(super) fn remarks(graph: &PolicyComparison) -> Vec<(String, Cell)> {
    let lines = lines(graph);
    let named = |names: Vec<&str>, say: &dyn Fn(String) -> String| (!names.is_empty()).then(|| say(names.join("; ")));
    // By its searches, and by the table of levels, which a disturbed search does not touch.
    let is_slow = |line: &&Line| line.regret + 1.0 > GIVEN_UP && line.table_regret.is_none_or(|regret| regret + 1.0 > GIVEN_UP);
    let slow = lines.iter().filter(is_slow).map(|line| line.name.as_str());
    let slow = slow.chain(graph.given_up.iter().map(|given_up| given_up.policy.as_str())).collect();
    let slow = named(slow, &|names| format!("more than {GIVEN_UP} times the oracle's time: {names}"));
    let oracle = lines.last().map_or(0.0, |oracle| oracle.spread);
    let beats = |line: &&Line| -line.regret > line.spread.max(oracle).clamp(TOLERATED.0, TOLERATED.1);
    let beaten = named(lines.iter().filter(beats).map(|line| line.name.as_str()).collect(), &|names| {
        format!(
            "The machine was too noisy to tell which plan is the fastest: the oracle is beaten by more than the spread, by {names}; {QUIET}"
        )
    });
    let (mut searches, mut late) = (0, 0);
    for judged in graph.evaluation.roots.iter().flat_map(|root| root.policies.iter().chain([&root.oracle])) {
        searches += judged.turns_ns.len();
        late += judged.turns_ns.iter().filter(|&&ns| ns > OUTLIER_FACTOR * judged.elapsed_ns).count();
    }
    let outliers = (late > searches / MOST_OUTLIERS)
        .then(|| format!("{late} of {searches} searches took more than {OUTLIER_FACTOR} times the median: the machine is noisy; {QUIET}"));
    let all = [("hopeless here", slow), ("within the spread", alike(graph, &lines)), ("noise", beaten), ("noise", outliers)];
    all.into_iter().filter_map(|(name, said)| Some((name.to_owned(), Cell::word(said?)))).collect()
}

/// Groups of policies, in the order of their times: the turns, each summed over the roots, do not tell the first of a group from the
/// others.
fn alike(graph: &PolicyComparison, lines: &[Line]) -> Option<String> {
    let times = |at: usize| -> Vec<f64> {
        let roots = graph.evaluation.roots.iter().map(|root| &root.policies.get(at).unwrap_or(&root.oracle).turns_ns);
        let turns = 0..roots.clone().map(Vec::len).min().unwrap_or(0);
        turns.map(|turn| roots.clone().map(|times| times[turn]).sum()).collect()
    };
    let mut order: Vec<(&Line, Vec<f64>)> = lines.iter().enumerate().map(|(at, line)| (line, times(at))).collect();
    order.sort_by(|(one, _), (other, _)| one.ns.total_cmp(&other.ns));
    let mut groups: Vec<Vec<&str>> = Vec::new();
    let mut first: &[f64] = &[];
    for (line, times) in &order {
        match groups.last_mut() {
            Some(group) if !told_apart(first.iter().zip(times)) => group.push(&line.name),
            _ => (first, _) = (times, groups.push(vec![&line.name])),
        }
    }
    let named: Vec<String> = groups.iter().filter(|group| group.len() > 1).map(|group| group.join(", ")).collect();
    (!named.is_empty()).then(|| format!("{}: more turns did not tell the first from the others", named.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        record::{GivenUp, LevelTable, LevelTimes, PoliciesReport},
        report::{
            figures::{self, Document, markdown, policies_end, policies_of_last, text},
            tests::record,
        },
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

    /// What `socbfs policies` prints.
    fn whole(report: &PoliciesReport, form: fn(&Document) -> String) -> String {
        let until = |place: usize| PoliciesReport {
            default_policy: report.default_policy.clone(),
            ..self::report(report.graphs[..=place].to_vec())
        };
        let graphs = (0..report.graphs.len()).map(|place| form(&policies_of_last(&until(place))));
        graphs.collect::<String>() + &form(&policies_end(report))
    }

    fn narrow(document: &Document) -> String {
        text(document, false, false)
    }

    #[test]
    fn each_graph_has_its_own_policies() {
        // The device can't be used for one of the graphs.
        let (both, cpu) = (|| graph("both", &[("tg", 4.0), ("tc", 2.0)]), || graph("cpu", &[("tc", 3.0)]));
        for graphs in [vec![both(), cpu()], vec![cpu(), both()]] {
            let report = report(graphs);
            let text = whole(&report, markdown);
            assert_eq!(["| tg |", "| tc |", "| oracle |"].map(|row| text.matches(row).count()), [2, 3, 3], "{text}");
            for part in ["| tc | 2 | 150.0 % | 200.0 % |", "| tg | 1 | 300.0 % | 300.0 % |"] {
                assert!(text.contains(part), "{part} in {text}");
            }
            let document = figures::document("p.json", &serde_json::to_value(&report).unwrap()).unwrap();
            for section in &document.sections[..2] {
                let speeds = section.figures.iter().find(|figure| figure.id == "performance").unwrap();
                let names: Vec<&str> = speeds.table.rows.iter().map(|row| row[0].text.as_str()).collect();
                assert_eq!(names, if section.title == "cpu" { &["tc", "oracle"][..] } else { &["tg", "tc", "oracle"] });
            }
        }
        let text = whole(&report(vec![cpu(), cpu()]), markdown);
        assert!(text.contains("| tc | 2 | 200.0 % | 200.0 % |"), "{text}");
    }

    #[test]
    fn narrow_tables_fit_80_columns_and_begin_with_the_fastest() {
        let rule = "rule:frontier_edges > unvisited_edges / 14 and level > 1 or not been_bottom_up and level > 3 then gpu";
        let mut found = graph("a", &[(rule, 4.0), ("tg", 30.0), ("auto", 2.0)]);
        found.compared.evaluation.roots[0].policies[1].table_ns = None;
        found.compared.given_up = vec![GivenUp { policy: "bc".into(), elapsed_ns: 1e9, over_oracle: 500.0 }];
        let mut report = report(vec![found, graph("b", &[("auto", 2.0), (rule, 4.0), ("rule:level > 2", 5.0)])]);
        let text = whole(&report, narrow);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).collect();
        let begins: Vec<String> = rows.iter().map(|row| row.trim().split("  ").next().unwrap_or_default().to_owned()).collect();
        let table = begins.iter().position(|begin| begin == "policy").unwrap();
        assert_eq!(begins[table..table + 6], ["policy", "oracle", "auto (default)", "rule 1", "tg", "bc"], "{text}");
        let told = |number: &str, rule: &str| rows.iter().filter(|row| row.contains(number) && row.contains(rule)).count();
        assert_eq!([told("rule 1  ", "  rule:frontier_edges"), told("rule 2  ", "  rule:level > 2")], [1, 1], "{text}");
        // Its text, with each graph, and in the mean.
        assert_eq!(begins.iter().filter(|row| *row == "rule 1").count(), 4, "{text}");
        for part in ["> 1.000 s", "> 49900.0 %", "more than 8 times the oracle's time: tg; bc"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let wide = whole(&report, |document| figures::text(document, false, true));
        assert!(wide.contains("least regret") && !text.contains("  least regret"), "{wide}");
        report.default_policy = rule.to_owned();
        assert!(whole(&report, narrow).contains("rule 1 (default)"));
        let document = figures::document("p.json", &serde_json::to_value(&report).unwrap()).unwrap();
        let facts: Vec<&str> = document.sections.iter().flat_map(|section| &section.facts).map(|(name, _)| name.as_str()).collect();
        assert_eq!(facts, ["rule 1", "hopeless here", "rule 2"]);
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
            let text = whole(&report, narrow);
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
    fn policies_that_the_turns_do_not_tell_apart_are_named() {
        let mut found = graph("a", &[("tc", 3.0), ("tg", 9.0), ("auto", 2.9), ("bc", 3.1)]);
        let root = &mut found.compared.evaluation.roots[0];
        root.oracle.turns_ns = vec![1e6; 8];
        for (judged, ms) in root.policies.iter_mut().zip([3.0, 9.0, 2.9, 3.1]) {
            judged.turns_ns = (0..8).map(|turn| 1e6 * (ms + 0.2 * f64::from(turn % 2))).collect();
        }
        // Each is faster than the other in half of the turns.
        root.policies[0].turns_ns.rotate_left(1);
        let facts = remarks(&found.compared).into_iter().map(|(name, cell)| format!("{name}: {}", cell.text)).collect::<Vec<_>>();
        assert_eq!(facts, ["within the spread: auto, tc: more turns did not tell the first from the others"]);
    }

    #[test]
    fn the_time_includes_mapping_and_the_regret_does_not() {
        let report = report(vec![graph("a", &[("tc", 3.0)])]);
        let text = whole(&report, markdown);
        for part in ["| policy | time | regret |", "| oracle | 2.000 ms | 0.0 % |", "| tc | 4.000 ms | 200.0 % |"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // The page has the same times.
        let document = figures::document("p.json", &serde_json::to_value(&report).unwrap()).unwrap();
        let figure = |id: &str| document.sections[0].figures.iter().find(|figure| figure.id == id).unwrap();
        assert_eq!(figure("performance").table.rows[0][3].text, "4.000 ms");
        assert_eq!(figure("regret").table.rows[1][2].text, "200.0 %");
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
