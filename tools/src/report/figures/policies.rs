//! Figures of strategies and policies compared level by level.

use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Heat, Section, Series, Table, begin, number};
use crate::{
    record::LevelTable,
    record::PoliciesReport,
    record::PolicyComparison,
    record::PolicyEnergy,
    record::{Judged, RootEvaluation},
    report::{policies::numbered_rule, trace::about},
};
use socbfs::{
    bfs::{Direction, GpuKernel, LevelPlan, Placement, Strategy},
    stats::Summary,
    words::{general, seconds},
};

const MS: f64 = 1e6;

pub(super) fn document(report: &PoliciesReport, record: &Value) -> Result<Document, String> {
    let mut document = begin("Policies compared", record, &[]);
    let (mut rules, mut graphs) = (Vec::new(), Vec::new());
    for graph in &report.graphs {
        let told = rules.len();
        let graph = graph.numbered(&mut rules);
        check(&graph.name, &graph.compared)?;
        let rules = rules.iter().enumerate().skip(told).map(|(place, rule)| (numbered_rule(place), Cell::word(rule)));
        let facts = rules.chain(noise(&graph.compared)).collect();
        let figures = [performance, energy, regret, heat, histogram].into_iter().filter_map(|figure| figure(&graph.compared)).collect();
        document.sections.push(Section { title: graph.name.clone(), facts, figures });
        graphs.push(graph);
    }
    let all: Vec<(&str, &PolicyComparison)> = graphs.iter().map(|graph| (graph.name.as_str(), &graph.compared)).collect();
    document.sections.extend(over_graphs(&all));
    Ok(document)
}

/// What a reader of the figures has to know of the machine.
pub(super) fn noise(graph: &PolicyComparison) -> impl Iterator<Item = (String, Cell)> {
    crate::report::policies::noise(graph).into_iter().map(|said| ("noise".to_owned(), Cell::word(said)))
}

/// Refuses a graph whose results are not those of its policies: figures find the results of a policy by its place.
pub(super) fn check(name: &str, graph: &PolicyComparison) -> Result<(), String> {
    let count = graph.policies.len();
    let Some(root) = graph.evaluation.roots.iter().find(|root| root.policies.len() != count) else { return Ok(()) };
    Err(format!("{name}: root {} has {} results, and the graph {count} policies", root.table.root, root.policies.len()))
}

/// The section with the comparison over all graphs (`None`: it has no figure).
pub(super) fn over_graphs(graphs: &[(&str, &PolicyComparison)]) -> Option<Section> {
    surf(graphs).map(|figure| Section { title: "All graphs".to_owned(), figures: vec![figure], ..Section::default() })
}

fn plan_name(plan: LevelPlan) -> String {
    let direction = match plan.direction {
        Direction::TopDown => "td",
        Direction::BottomUp => "bu",
    };
    match (Strategy::of(plan), plan.placement) {
        (Some(strategy), _) => strategy.name().to_uppercase(),
        (None, Placement::Split { gpu_permille, .. }) => {
            let kernel = plan.kernel().map_or("", GpuKernel::name).to_uppercase();
            format!("{direction} {kernel} {} %", f64::from(gpu_permille) / 10.0)
        }
        (None, _) => "apart".to_owned(),
    }
}

/// The time of a level by `plan` after another level by the same strategy, in nanoseconds.
fn own_ns(table: &LevelTable, level: usize, plan: LevelPlan) -> Option<f64> {
    let times = &table.levels[level];
    match (Strategy::of(plan), plan.placement) {
        (Some(strategy), _) => times.own_ns(strategy),
        (None, Placement::Split { gpu_permille, .. }) => times.split_ns(plan.kernel()?, gpu_permille),
        _ => None,
    }
}

/// The evaluation of the first root, if its table has levels.
fn first(graph: &PolicyComparison) -> Option<&RootEvaluation> {
    graph.evaluation.roots.first().filter(|root| !root.table.levels.is_empty())
}

/// Remis 2016, figures 5.1 to 5.4 and 5.8.
pub(super) fn histogram(graph: &PolicyComparison) -> Option<Figure> {
    let table = &first(graph)?.table;
    let half = table.plans().into_iter().filter(|plan| matches!(plan.placement, Placement::Split { gpu_permille: 500, .. }));
    let plans: Vec<LevelPlan> = table.strategies.iter().map(|strategy| strategy.plan()).chain(half).collect();
    let levels = || 0..table.levels.len();
    let fastest = |level: usize, gpu: Option<bool>| {
        let times = plans.iter().filter(|plan| gpu.is_none_or(|gpu| Strategy::of(**plan).is_some_and(|s| s.is_gpu() == gpu)));
        times.filter_map(|&plan| Some((plan, own_ns(table, level, plan)?))).min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let ratio = |level: usize| Some(fastest(level, Some(false))?.1 / fastest(level, Some(true))?.1.max(1.0));
    let wins = |plan: LevelPlan| levels().filter(|&level| fastest(level, None).is_some_and(|(best, _)| best == plan)).count();
    let summary: Vec<String> =
        plans.iter().filter(|&&plan| wins(plan) > 0).map(|&plan| format!("{} {}", plan_name(plan), wins(plan))).collect();
    let bars = |&plan: &LevelPlan| {
        Series::new(plan_name(plan), levels().filter_map(|level| Some((level as f64, own_ns(table, level, plan)? / MS))))
    };
    let mut shown = Table::of(levels(), &[("level", &|&level| Cell::count(level as u64))]);
    shown.add("fastest", levels().map(|level| Cell::of(fastest(level, None), |(plan, _)| Cell::word(plan_name(plan)))));
    shown.add("best CPU / best GPU", levels().map(|level| Cell::of(ratio(level), Cell::number)));
    for &plan in &plans {
        let mean = |level: usize| Strategy::of(plan).and_then(|strategy| table.levels[level].mean_ns(strategy));
        shown.add(format!("{} first quartile", plan_name(plan)), levels().map(|level| Cell::of(own_ns(table, level, plan), Cell::ns)));
        shown.add("mean", levels().map(|level| Cell::of(mean(level), Cell::ns)));
    }
    let sentence = format!("Levels, of {}, at which each is the fastest: {}.", table.levels.len(), summary.join(", "));
    let y = "first quartile of the level's own time, ms";
    Some(
        Figure::new("levels", "Remis 2016, figures 5.1 to 5.4, 5.8", "Time of each level by each strategy", sentence)
            .chart(
                Chart::bars("level (the root is 0)", y, levels().map(|level| level.to_string()), plans.iter().map(bars).collect()).log_y(),
            )
            .table(shown),
    )
}

/// Vertices and arcs of the frontier of a level: exact counts, or the estimates that policies read, with `~`.
fn sizes(graph: &PolicyComparison, table: &LevelTable, level: usize) -> [Cell; 2] {
    if let Some(exact) = graph.exact.get(level) {
        return [exact.vertices, exact.arcs].map(Cell::count);
    }
    let stats = &table.levels[level].stats;
    [(stats.frontier_vertices, stats.vertices_are_estimated), (stats.frontier_edges, stats.frontier_is_estimated)]
        .map(|(count, estimated)| Cell { text: about(count, estimated), ..Cell::count(count) })
}

/// Zhang 2018, table 5.
pub(super) fn heat(graph: &PolicyComparison) -> Option<Figure> {
    let root = first(graph)?;
    let table = &root.table;
    let plans = table.plans();
    let (policy, judged) = (graph.policies.first()?, root.policies.first()?);
    let (oracle, oracle_ns) = table.oracle();
    let levels = || 0..table.levels.len();
    let places = |chosen: &[LevelPlan]| -> Vec<Option<usize>> {
        let place = |level| plans.iter().position(|plan| Some(plan) == chosen.get(level).or(chosen.last()));
        levels().map(place).chain([None]).collect()
    };
    let (framed, dotted) = (places(&oracle), places(&judged.plans));
    // The last row has the sums.
    let mut cells: Vec<Vec<Option<f64>>> = levels().map(|level| plans.iter().map(|&plan| own_ns(table, level, plan)).collect()).collect();
    cells.push((0..plans.len()).map(|column| cells.iter().map(|row| row[column]).sum()).collect());
    let sums = &cells[table.levels.len()];
    // The strategies come first among the plans, and split levels after them.
    let best = sums.iter().take(table.strategies.len()).flatten().copied().fold(f64::INFINITY, f64::min);
    let sentence = format!(
        "The fastest single strategy takes {}, the oracle's plan {} with the cost of changing{}.",
        seconds(best / 1e9),
        seconds(oracle_ns / 1e9),
        judged.table_ns.map_or_else(String::new, |ns| format!(", {policy} {}", seconds(ns / 1e9))),
    );
    let sizes: Vec<[Cell; 2]> = levels().map(|level| sizes(graph, table, level)).collect();
    let names = |[vertices, arcs]: &[Cell; 2], level: usize| format!("level {level}: |F| {}, E {}", vertices.text, arcs.text);
    let mut shown = Table::default();
    shown.add("level", levels().map(|level| Cell::count(level as u64)).chain([Cell::word("sum")]));
    for (place, head) in ["vertices |F|", "arcs E"].into_iter().enumerate() {
        shown.add(head, sizes.iter().map(|sizes| sizes[place].clone()).chain([Cell::word("")]));
    }
    for (head, places, sum) in [("oracle", &framed, Some(oracle_ns)), (policy, &dotted, judged.table_ns)] {
        let chosen = levels().map(|level| Cell::word(places[level].map_or_else(|| "n/a".to_owned(), |place| plan_name(plans[place]))));
        shown.add(head, chosen.chain([Cell::of(sum, Cell::ns)]));
    }
    for (column, &plan) in plans.iter().enumerate() {
        shown.add(plan_name(plan), cells.iter().map(|row| Cell::of(row[column], Cell::ns)));
    }
    let chart = Heat {
        rows: sizes.iter().zip(0..).map(|(sizes, level)| names(sizes, level)).chain(["sum".to_owned()]).collect(),
        columns: plans.iter().map(|&plan| plan_name(plan)).collect(),
        unit: "milliseconds; shade: times the fastest of the row".into(),
        framed,
        dotted,
        cells: cells.into_iter().map(|row| row.into_iter().map(|ns| Some(ns? / MS)).collect()).collect(),
        legend: ["the oracle".into(), policy.clone()],
    };
    let source = "Zhang 2018, table 5 (its frontier size cannot be vertices: both counts are here)";
    let title = "Strategies by level, with the choices of oracle and policy";
    Some(Figure::new("heat", source, title, sentence).chart(Chart::Heat(chart)).table(shown))
}

/// The speed of a policy over all its searches of a graph.
struct Speed {
    name: String,
    mteps: f64,
    whole: f64,
    ms: f64,
    per_watt: Option<f64>,
}

fn speed(name: &str, graph: &PolicyComparison, judged: impl Fn(&RootEvaluation) -> &Judged) -> Option<Speed> {
    let mteps = graph.mteps_of(&judged)?;
    let ms = graph.evaluation.roots.iter().map(|root| judged(root).total_ns / MS).sum::<f64>() / graph.evaluation.roots.len() as f64;
    let per_watt = graph.watts_of(&judged).map(|watts| mteps / watts);
    Some(Speed { name: name.to_owned(), mteps, whole: graph.edges as f64 / (1e3 * ms), ms, per_watt })
}

/// Zhang 2018, figures 4 and 5; Remis 2016, figures 5.9 to 5.12.
pub(super) fn performance(graph: &PolicyComparison) -> Option<Figure> {
    first(graph)?;
    let policies = graph.policies.iter().enumerate();
    let mut all: Vec<Speed> = policies.filter_map(|(index, name)| speed(name, graph, |root| &root.policies[index])).collect();
    let faster = |a: &&Speed, b: &&Speed| a.mteps.total_cmp(&b.mteps);
    let is_single = |speed: &&Speed| Strategy::ALL.iter().any(|strategy| strategy.name() == speed.name);
    let best = all.iter().filter(is_single).max_by(faster).map(|speed| (speed.name.clone(), speed.mteps));
    let fastest = all.iter().max_by(faster)?;
    let efficiency = if graph.watts.is_some() {
        ""
    } else if graph.energy.is_some() {
        " Measured MTEPS/W is below."
    } else {
        " MTEPS/W is n/a: the power of the strategies is not known (a calibration with a sensor, or the board's profile, has it)."
    };
    let against = best.as_ref().map_or_else(String::new, |(name, mteps)| {
        format!(", {} times the best single strategy, {name}", general(fastest.mteps / mteps, 3))
    });
    let sentence = format!("The fastest is {} with {} MTEPS{against}.{efficiency}", fastest.name, number(fastest.mteps));
    all.push(speed("oracle", graph, |root| &root.oracle)?);
    let mut series = vec![
        Series::bars("MTEPS (Graph500's rule)", all.iter().map(|speed| speed.mteps)),
        Series::bars("whole-graph edges / mean time", all.iter().map(|speed| speed.whole)),
    ];
    if graph.watts.is_some() {
        let points = all.iter().enumerate().filter_map(|(at, speed)| Some((at as f64, speed.per_watt?)));
        series.push(Series::new("MTEPS/W, modelled", points));
    }
    let source = "Zhang 2018, figures 4 and 5; Remis 2016, figures 5.9 to 5.12";
    Some(
        Figure::new("performance", source, "Speed of the policies", sentence)
            .chart(Chart::bars("policy", "million edges/s", all.iter().map(|speed| speed.name.clone()), series))
            .table(Table::of(
                &all,
                &[
                    ("policy", &|speed| Cell::word(&speed.name)),
                    ("MTEPS", &|speed| Cell::number(speed.mteps)),
                    ("whole-graph million edges/s", &|speed| Cell::number(speed.whole)),
                    ("mean time", &|speed| Cell::seconds(speed.ms / 1e3)),
                    ("over the best single strategy", &|speed| Cell::of(best.as_ref(), |(_, best)| Cell::number(speed.mteps / best))),
                    ("MTEPS/W, modelled", &|speed| Cell::of(speed.per_watt, Cell::number)),
                ],
            )),
    )
}

/// The standard deviation as a cell.
fn deviation(of: Option<&Summary>, cell: fn(f64) -> Cell) -> Cell {
    Cell::of(of.and_then(|of| of.stddev), cell)
}

/// A bar of the mean, in the unit of which `scale` are one, with its standard deviation.
fn bar(of: &Summary, scale: f64) -> (f64, (f64, f64)) {
    let (mean, by) = (scale * of.mean, scale * of.stddev.unwrap_or(0.0));
    (mean, (mean - by, mean + by))
}

/// Zhang 2018, figure 5; Remis 2016, figure 5.10b (`None`: energy was not requested).
pub(super) fn energy(graph: &PolicyComparison) -> Option<Figure> {
    let source = "Zhang 2018, figure 5 (which defines its speed-up upside down); Remis 2016, figure 5.10b";
    let figure = |sentence| Figure::new("policy-energy", source, "Energy of the policies, in windows in turn", sentence);
    let Some(energy) = &graph.energy else {
        return graph.no_energy.as_ref().map(|reason| figure(format!("MTEPS/W is n/a: {reason}.")));
    };
    let known: Vec<(&PolicyEnergy, &Summary)> =
        energy.policies.iter().filter_map(|policy| Some((policy, &policy.summary.as_ref()?.mteps_per_watt))).collect();
    let best = known.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let sentence = best.map_or_else(
        || {
            let why = energy.policies.iter().find_map(|policy| policy.problem.as_deref());
            format!("MTEPS/W is n/a: {}.", why.unwrap_or("no policy has complete windows"))
        },
        |(policy, efficiency)| {
            let ratio = match &policy.over_baseline {
                _ if policy.policy == energy.baseline => ", and is the baseline".to_owned(),
                Some(ratio) => format!(", {} times that of {}", general(ratio.mean, 3), energy.baseline),
                None => String::new(),
            };
            let mean = general(efficiency.mean, 4);
            format!("{} has the best efficiency: {mean} MTEPS/W of {}{ratio}.", policy.policy, energy.scope)
        },
    );
    let mteps = |of: &PolicyEnergy| of.windows.iter().map(|window| window.teps / 1e6).sum::<f64>() / of.windows.len().max(1) as f64;
    let mean = |of: Option<&Summary>| Cell::of(of, |of| Cell::number(of.mean));
    Some(
        figure(sentence)
            .chart(Chart::bars(
                "policy",
                "MTEPS/W, mean and standard deviation over windows",
                known.iter().map(|(policy, _)| policy.policy.clone()),
                vec![Series::spread("MTEPS/W", known.iter().map(|(_, efficiency)| bar(efficiency, 1.0)))],
            ))
            .table(Table::of(
                &energy.policies,
                &[
                    ("policy", &|of| Cell::word(&of.policy)),
                    ("MTEPS", &|of| Cell::number(mteps(of))),
                    ("MTEPS/W", &|of| mean(of.summary.as_ref().map(|of| &of.mteps_per_watt))),
                    ("+/-", &|of| deviation(of.summary.as_ref().map(|of| &of.mteps_per_watt), Cell::number)),
                    ("W", &|of| mean(of.summary.as_ref().map(|of| &of.watts))),
                    ("J per search", &|of| mean(of.summary.as_ref().map(|of| &of.joules_per_search))),
                    ("over the baseline", &|of| mean(of.over_baseline.as_ref())),
                    ("+/-", &|of| deviation(of.over_baseline.as_ref(), Cell::number)),
                ],
            )),
    )
}

/// Time of each policy's levels beyond that of the oracle's. Mapping of the parents is left out.
fn regret(graph: &PolicyComparison) -> Option<Figure> {
    first(graph)?;
    let roots = &graph.evaluation.roots;
    let over = |index: usize| Summary::of(&roots.iter().map(|root| 100.0 * (root.policies[index].over_oracle - 1.0)).collect::<Vec<_>>());
    let all: Vec<(&String, Summary)> = graph.policies.iter().enumerate().filter_map(|(index, name)| Some((name, over(index)?))).collect();
    let least = all.iter().min_by(|a, b| a.1.mean.total_cmp(&b.1.mean))?;
    let sentence = format!("{} comes closest to the oracle, with {} % in the mean over the roots.", least.0, general(least.1.mean, 3));
    let bars = all.iter().map(|(_, over)| (over.mean, (over.min, over.max)));
    let series = vec![Series::spread("mean over the roots, with the range", bars)];
    Some(
        Figure::new("regret", "socbfs policies", "Regret: time of the levels beyond the oracle's plan", sentence)
            .chart(Chart::bars("policy", "% beyond the oracle", all.iter().map(|(name, _)| (*name).clone()), series))
            .table(Table::of(
                &all,
                &[
                    ("policy", &|(name, _)| Cell::word(*name)),
                    ("mean regret of levels, %", &|(_, over)| Cell::number(over.mean)),
                    ("least", &|(_, over)| Cell::number(over.min)),
                    ("most", &|(_, over)| Cell::number(over.max)),
                    ("standard deviation", &|(_, over)| deviation(Some(over), Cell::number)),
                ],
            )),
    )
}

/// A row of [`surf`]: a policy on one graph, or over graphs.
struct Judgement {
    policy: String,
    graph: String,
    is_mean: bool,
    accuracy: Summary,
    reduced: Summary,
    total_ns: f64,
    decision_ns: f64,
}

/// SURF 2022, tables 3 and 4.
fn surf(graphs: &[(&str, &PolicyComparison)]) -> Option<Figure> {
    let mut policies: Vec<&String> = Vec::new();
    for name in graphs.iter().flat_map(|(_, graph)| &graph.policies) {
        if !policies.contains(&name) {
            policies.push(name);
        }
    }
    let (mut rows, mut means) = (Vec::new(), Vec::new());
    for name in policies {
        let of = |&(graph, compared): &(&str, &PolicyComparison)| {
            let index = compared.policies.iter().position(|policy| policy == name)?;
            let directions = compared.directions(index)?;
            Some(Judgement {
                policy: name.clone(),
                graph: graph.to_owned(),
                is_mean: false,
                accuracy: Summary::of(&[directions.accuracy()])?,
                reduced: Summary::of(&[directions.reduced_time()])?,
                total_ns: compared.mean_of(index, |judged| judged.total_ns)?,
                decision_ns: compared.mean_of(index, |judged| judged.decision_ns)?,
            })
        };
        let found: Vec<Judgement> = graphs.iter().filter_map(of).collect();
        let summary = |of: fn(&Judgement) -> f64| Summary::of(&found.iter().map(of).collect::<Vec<_>>());
        let (Some(accuracy), Some(reduced)) = (summary(|of| of.accuracy.mean), summary(|of| of.reduced.mean)) else { continue };
        let mean = |of: fn(&Judgement) -> f64| found.iter().map(of).sum::<f64>() / found.len() as f64;
        let (total_ns, decision_ns) = (mean(|of| of.total_ns), mean(|of| of.decision_ns));
        let which = if found.len() == graphs.len() { String::new() } else { format!("{} of {} ", found.len(), graphs.len()) };
        rows.extend(found);
        let graph = format!("mean over {which}graphs");
        rows.push(Judgement { policy: name.clone(), graph, is_mean: true, accuracy, reduced, total_ns, decision_ns });
        means.push((name.clone(), accuracy, reduced));
    }
    let best = means.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean))?;
    let mean = 100.0 * best.1.mean;
    let sentence = format!("{} takes the faster direction most often: at {mean:.1} % of the levels in the mean over the graphs.", best.0);
    let spread = |of: &Judgement, summary: &Summary| {
        if of.is_mean { deviation(Some(summary), Cell::share) } else { Cell::word("") }
    };
    Some(
        Figure::new("surf", "SURF 2022, tables 3 and 4", "Right directions and time saved, by policy", sentence)
            .chart(Chart::bars(
                "policy",
                "%, mean and standard deviation over graphs",
                means.iter().map(|(name, ..)| name.clone()),
                vec![
                    Series::spread("accuracy", means.iter().map(|(_, accuracy, _)| bar(accuracy, 100.0))),
                    Series::spread("reduced time", means.iter().map(|(.., reduced)| bar(reduced, 100.0))),
                ],
            ))
            .table(Table::of(
                &rows,
                &[
                    ("policy", &|of| Cell::word(&of.policy)),
                    ("graph", &|of| Cell::word(&of.graph)),
                    ("accuracy", &|of| Cell::share(of.accuracy.mean)),
                    ("+/-", &|of| spread(of, &of.accuracy)),
                    ("reduced time", &|of| Cell::share(of.reduced.mean)),
                    ("+/-", &|of| spread(of, &of.reduced)),
                    ("run time", &|of| Cell::ns(of.total_ns)),
                    ("deciding", &|of| Cell::ns(of.decision_ns)),
                ],
            )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{record::Directions, record::LevelTimes};
    use socbfs::bfs::LevelStats;

    /// A graph on which the one policy takes `ms`, and whose directions were compared or not.
    fn graph(ms: f64, directions: Option<Directions>) -> PolicyComparison {
        PolicyComparison::by_surf(1, Judged { directions, ..Judged::taking(ms * MS) })
    }

    #[test]
    fn rows_keep_their_graph_if_another_graph_has_no_directions() {
        let right = |right| Some(Directions { levels: 4, right, saveable_ns: 8.0, saved_ns: 2.0 });
        let (a, b, c) = (graph(1.0, None), graph(2.0, right(4)), graph(4.0, right(2)));
        let table = surf(&[("a", &a), ("b", &b), ("c", &c)]).unwrap().table;
        let cells = |row: &Vec<Cell>| [1, 2, 6].map(|column| row[column].text.clone());
        let expected = [["b", "100.0 %", "2.000 ms"], ["c", "50.0 %", "4.000 ms"], ["mean over 2 of 3 graphs", "75.0 %", "3.000 ms"]]
            .map(|row| row.map(str::to_owned));
        assert_eq!(table.rows.iter().map(cells).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn estimated_counts_are_marked() {
        let mut graph = graph(1.0, None);
        let stats = LevelStats { frontier_vertices: 12, frontier_edges: 3456, ..LevelStats::default() };
        let estimated = LevelStats { vertices_are_estimated: true, frontier_is_estimated: true, ..stats };
        let simulated = |stats| LevelTimes::simulated(stats, 0, |_| Some(MS), |_, _| 0.0);
        let root = &mut graph.evaluation.roots[0];
        root.table.levels = [stats, estimated].map(simulated).into();
        root.table.strategies = Strategy::CPU.to_vec();
        let figure = heat(&graph).unwrap();
        let counts = |level: usize| [1, 2].map(|column: usize| figure.table.rows[level][column].text.clone());
        assert_eq!([counts(0), counts(1)], [["12", "3,456"], ["~12", "~3,456"]].map(|row| row.map(str::to_owned)));
        let Some(Chart::Heat(chart)) = figure.chart else { panic!("no heat map") };
        assert_eq!(chart.rows, ["level 0: |F| 12, E 3,456", "level 1: |F| ~12, E ~3,456", "sum"]);
    }

    #[test]
    fn a_split_of_all_levels_is_no_single_strategy() {
        let mut graph = graph(1.0, None);
        let split = |plan: LevelPlan| matches!(plan.placement, Placement::Split { .. });
        let own = |plan: LevelPlan| Some(if split(plan) { 1.5 * MS } else { 2.0 * MS });
        let root = &mut graph.evaluation.roots[0];
        root.table.levels = vec![LevelTimes::simulated(LevelStats::default(), 0, own, |_, _| 0.0)];
        root.table.strategies = vec![Strategy::Tc, Strategy::Tg];
        let sentence = heat(&graph).unwrap().sentence;
        assert!(sentence.starts_with("The fastest single strategy takes 2.000 ms, the oracle's plan 1.500 ms "), "{sentence}");
    }

    #[test]
    fn a_policy_that_a_graph_lacks_has_rows_for_the_others() {
        let right = |right| Some(Directions { levels: 4, right, saveable_ns: 8.0, saved_ns: 2.0 });
        let (a, mut b) = (graph(1.0, right(4)), graph(2.0, right(2)));
        b.policies.insert(0, "tg".to_owned());
        let of_tg = b.evaluation.roots[0].policies[0].clone();
        b.evaluation.roots[0].policies.insert(0, Judged { directions: right(1), ..of_tg });
        let table = surf(&[("a", &a), ("b", &b)]).unwrap().table;
        let cells = |row: &Vec<Cell>| [0, 1, 2].map(|column| row[column].text.clone());
        let expected = [
            ["surf", "a", "100.0 %"],
            ["surf", "b", "50.0 %"],
            ["surf", "mean over graphs", "75.0 %"],
            ["tg", "b", "25.0 %"],
            ["tg", "mean over 1 of 2 graphs", "25.0 %"],
        ];
        assert_eq!(table.rows.iter().map(cells).collect::<Vec<_>>(), expected.map(|row| row.map(str::to_owned)));
    }
}
