//! Figures of strategies and policies compared level by level.

use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Heat, Section, Series, Table, begin, number};
use crate::{
    record::{Directions, LevelTable, PoliciesReport, PolicyComparison, PolicyEnergy, PolicyGraph, RootEvaluation},
    report::{
        policies::{Line, lines, number as as_rule, numbered_rule, remarks},
        trace::about,
    },
};
use socbfs::{
    Direction, GpuKernel, LevelPlan, Placement, Strategy,
    stats::Summary,
    words::{counted, general, seconds},
};

const MS: f64 = 1e6;

pub(super) fn document(report: &PoliciesReport, record: &Value) -> Result<Document, String> {
    report.graphs.iter().try_for_each(|graph| check(&graph.name, &graph.compared))?;
    Ok(Document { sections: sections(report), ..begin("Policies compared", record, &[]) })
}

/// The graph that was measured last, as text.
pub fn policies_of_last(report: &PoliciesReport) -> Document {
    let mut sections = sections(report);
    sections.truncate(report.graphs.len());
    let brief = |section: Section| section.brief(|figure| ["regret", "policy-energy"].contains(&figure.id));
    Document { sections: sections.pop().map(brief).into_iter().collect(), ..Document::default() }
}

/// What follows the graphs as text: the comparison over several, and the warnings.
pub fn policies_end(report: &PoliciesReport) -> Document {
    let several = sections(report).into_iter().skip(report.graphs.len()).filter(|_| report.graphs.len() > 1);
    Document {
        sections: several.map(|section| section.brief(|_| true)).collect(),
        warnings: report.warnings.clone(),
        ..Document::default()
    }
}

/// A section for each graph, and one for all together. A rule is told with the first graph that has it.
fn sections(report: &PoliciesReport) -> Vec<Section> {
    let (mut rules, mut graphs, mut sections) = (Vec::new(), Vec::new(), Vec::new());
    for graph in &report.graphs {
        let told = rules.len();
        let PolicyGraph { name, compared, .. } = graph.numbered(&mut rules);
        let mut default = report.default_policy.clone();
        as_rule(&mut default, &mut rules.clone());
        let new = rules.iter().enumerate().skip(told).map(|(place, rule)| (numbered_rule(place), Cell::word(rule)));
        let facts = new.chain(remarks(&compared)).collect();
        let figures = [performance, energy].map(|figure| figure(&compared)).into_iter().chain([regret(&compared, &default)]);
        let figures = figures.chain([heat, histogram].map(|figure| figure(&compared))).flatten().collect();
        sections.push(Section { title: name, facts, figures });
        graphs.push(compared);
    }
    sections.extend(over_graphs(&graphs.iter().collect::<Vec<_>>()));
    sections
}

/// Refuses a graph whose results are not those of its policies: figures find the results of a policy by its place.
pub(super) fn check(name: &str, graph: &PolicyComparison) -> Result<(), String> {
    let count = graph.policies.len();
    let Some(root) = graph.evaluation.roots.iter().find(|root| root.policies.len() != count) else { return Ok(()) };
    Err(format!("{name}: root {} has {} results, and the graph {count} policies", root.table.root, root.policies.len()))
}

/// The section with the comparison over all graphs (`None`: it has no figure).
pub(super) fn over_graphs(graphs: &[&PolicyComparison]) -> Option<Section> {
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
    let edges = stats.frontier_edges;
    [Cell::count(stats.frontier_vertices), Cell { text: about(edges, stats.frontier_is_estimated), ..Cell::count(edges) }]
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

/// Zhang 2018, figures 4 and 5; Remis 2016, figures 5.9 to 5.12.
pub(super) fn performance(graph: &PolicyComparison) -> Option<Figure> {
    first(graph)?;
    // The oracle comes last.
    let all: Vec<(Line, f64)> = lines(graph).into_iter().filter_map(|line| line.mteps.map(|mteps| (line, mteps))).collect();
    let faster = |a: &&(Line, f64), b: &&(Line, f64)| a.1.total_cmp(&b.1);
    let is_single = |(line, _): &&(Line, f64)| Strategy::ALL.iter().any(|strategy| strategy.name() == line.name);
    let best = all.iter().filter(is_single).max_by(faster);
    let (fastest, most) = all.split_last()?.1.iter().max_by(faster)?;
    let efficiency = if graph.watts.is_some() {
        ""
    } else if graph.energy.is_some() {
        " Measured MTEPS/W is below."
    } else {
        " MTEPS/W is n/a: the power of the strategies is not known (a calibration with a sensor, or the board's profile, has it)."
    };
    let against = best.map_or_else(String::new, |(single, mteps)| {
        format!(", {} times the best single strategy, {}", general(most / mteps, 3), single.name)
    });
    let sentence = format!("The fastest is {} with {} MTEPS{against}.{efficiency}", fastest.name, number(*most));
    let whole = |line: &Line| 1e3 * graph.edges as f64 / line.ns;
    let mut series = vec![
        Series::bars("MTEPS (Graph500's rule)", all.iter().map(|(_, mteps)| *mteps)),
        Series::bars("whole-graph edges / mean time", all.iter().map(|(line, _)| whole(line))),
    ];
    if graph.watts.is_some() {
        let points = all.iter().enumerate().filter_map(|(at, (line, _))| Some((at as f64, line.per_watt?)));
        series.push(Series::new("MTEPS/W, modelled", points));
    }
    let source = "Zhang 2018, figures 4 and 5; Remis 2016, figures 5.9 to 5.12";
    Some(
        Figure::new("performance", source, "Speed of the policies", sentence)
            .chart(Chart::bars("policy", "million edges/s", all.iter().map(|(line, _)| line.name.clone()), series))
            .table(Table::of(
                &all,
                &[
                    ("policy", &|(line, _)| Cell::word(&line.name)),
                    ("MTEPS", &|(_, mteps)| Cell::number(*mteps)),
                    ("whole-graph million edges/s", &|(line, _)| Cell::number(whole(line))),
                    ("mean time", &|(line, _)| Cell::ns(line.ns)),
                    ("over the best single strategy", &|(_, mteps)| Cell::of(best, |(_, best)| Cell::number(mteps / best))),
                    ("MTEPS/W, modelled", &|(line, _)| Cell::of(line.per_watt, Cell::number)),
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
    let baseline = graph.energy.as_ref().map_or_else(String::new, |energy| format!("; baseline {}", energy.baseline));
    let figure = |sentence| Figure::new("policy-energy", source, format!("Energy of the policies, in windows in turn{baseline}"), sentence);
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

fn fine(share: f64) -> Cell {
    Cell { text: format!("{:.2} %", 100.0 * share), value: Some(share) }
}

/// Every policy, the oracle first and then by their time. Below are those that were given up.
pub(super) fn regret(graph: &PolicyComparison, default: &str) -> Option<Figure> {
    let mut all = lines(graph);
    let oracle = all.pop()?;
    all.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    let sentence = all.iter().min_by(|a, b| a.by_root.mean.total_cmp(&b.by_root.mean)).map(|closest| {
        let (roots, levels) = (&graph.evaluation.roots, graph.evaluation.roots.iter().map(|root| root.table.levels.len()).sum::<usize>());
        format!(
            "{} comes closest to the oracle, with {} % in the mean over {} ({}).",
            closest.name,
            general(closest.by_root.mean, 3),
            counted(roots.len() as u64, "root", "roots"),
            counted(levels as u64, "level", "levels")
        )
    })?;
    let bars = all.iter().map(|line| (line.by_root.mean, (line.by_root.min, line.by_root.max)));
    let chart = Chart::bars(
        "policy",
        "% beyond the oracle",
        all.iter().map(|line| line.name.clone()),
        vec![Series::spread("mean over the roots, with the range", bars)],
    );
    all.insert(0, oracle);
    let directions = |line: &Line, of: fn(&Directions) -> f64| Cell::of(line.directions.as_ref().map(of), Cell::share);
    let mut table = Table::of(
        &all,
        &[
            ("policy", &|line| Cell::word(if line.name == default { format!("{default} (default)") } else { line.name.clone() })),
            ("time", &|line| Cell::ns(line.ns)),
            ("regret", &|line| Cell::share(line.regret)),
            ("accuracy", &|line| directions(line, Directions::accuracy)),
            ("deciding", &|line| fine(line.deciding)),
            ("energy", &|line| Cell::of(line.joules, Cell::joules)),
            ("reduced time", &|line| directions(line, Directions::reduced_time)),
            ("as oracle", &|line| Cell::share(line.as_oracle)),
            ("regret by table", &|line| Cell::of(line.table_regret, Cell::share)),
            ("least regret", &|line| Cell::share(line.by_root.min / 100.0)),
            ("most", &|line| Cell::share(line.by_root.max / 100.0)),
        ],
    );
    table.rows.extend(graph.given_up.iter().map(|given_up| {
        let (time, regret) = (Cell::ns(given_up.elapsed_ns).text, Cell::share(given_up.over_oracle - 1.0).text);
        let known = [given_up.policy.clone(), format!("> {time}"), format!("> {regret}")];
        known.into_iter().chain(std::iter::repeat(String::new())).take(table.columns.len()).map(Cell::word).collect()
    }));
    let title = "Regret: time of the levels beyond the oracle's plan";
    Some(Figure::new("regret", "socbfs policies", title, sentence).chart(chart).table(table))
}

/// The mean of `of` and its spread over the lines of a policy (`None`: one has no value).
fn over<'a>(lines: &[&'a Line], of: impl Fn(&'a Line) -> Option<f64>) -> Option<Summary> {
    Summary::of(&lines.iter().map(|&line| of(line)).collect::<Option<Vec<_>>>()?)
}

/// SURF 2022, tables 3 and 4: means over the graphs that a policy searched, which all have the same weight.
fn surf(graphs: &[&PolicyComparison]) -> Option<Figure> {
    type Row<'a> = (&'a str, Vec<&'a Line>);
    let all: Vec<Line> = graphs.iter().flat_map(|graph| lines(graph)).collect();
    let mut rows: Vec<Row<'_>> = Vec::new();
    for line in &all {
        match rows.iter_mut().find(|(name, _)| *name == line.name) {
            Some((_, lines)) => lines.push(line),
            None => rows.push((&line.name, vec![line])),
        }
    }
    let mean = |lines: &[&Line], of: fn(&Line) -> f64| lines.iter().map(|line| of(line)).sum::<f64>() / lines.len() as f64;
    rows.sort_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then(mean(a, |line| line.regret).total_cmp(&mean(b, |line| line.regret))));
    rows.sort_by_key(|(name, _)| *name != "oracle");
    let directions = |lines: &[&Line], of: fn(&Directions) -> f64| over(lines, |line| line.directions.as_ref().map(of));
    let shares = |of: fn(&Directions) -> f64| rows.iter().filter_map(move |(name, lines)| Some((*name, directions(lines, of)?)));
    let best = shares(Directions::accuracy).filter(|(name, _)| *name != "oracle").max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    let sentence = best.map_or_else(
        || "No policy has directions to compare on every graph.".to_owned(),
        |(name, share)| {
            let over = if graphs.len() == 1 { String::new() } else { format!(" in the mean over {} graphs", graphs.len()) };
            format!("{name} takes the faster direction most often: at {:.1} % of the levels{over}.", 100.0 * share.mean)
        },
    );
    let bars = |name, of: fn(&Directions) -> f64| Series::spread(name, shares(of).map(|(_, share)| bar(&share, 100.0)));
    let cell = |lines: &[&Line], of: fn(&Directions) -> f64| Cell::of(directions(lines, of), |of| Cell::share(of.mean));
    let spread = |lines: &[&Line], of: fn(&Directions) -> f64| deviation(directions(lines, of).as_ref(), Cell::share);
    Some(
        Figure::new("surf", "SURF 2022, tables 3 and 4", "Right directions and time saved, by policy", sentence)
            .chart(Chart::bars(
                "policy",
                if graphs.len() == 1 { "%" } else { "%, mean and standard deviation over graphs" },
                shares(Directions::accuracy).map(|(name, _)| name.to_owned()),
                vec![bars("accuracy", Directions::accuracy), bars("reduced time", Directions::reduced_time)],
            ))
            .table(Table::of(
                &rows,
                &[
                    ("policy", &|(name, _)| Cell::word(*name)),
                    ("graphs", &|(_, lines)| Cell::count(lines.len() as u64)),
                    ("mean regret", &|(_, lines)| Cell::share(mean(lines, |line| line.regret))),
                    ("worst", &|(_, lines)| Cell::share(lines.iter().map(|line| line.regret).fold(f64::NEG_INFINITY, f64::max))),
                    ("accuracy", &|(_, lines)| cell(lines, Directions::accuracy)),
                    ("+/-", &|(_, lines)| spread(lines, Directions::accuracy)),
                    ("reduced time", &|(_, lines)| cell(lines, Directions::reduced_time)),
                    ("+/-", &|(_, lines)| spread(lines, Directions::reduced_time)),
                    ("as oracle", &|(_, lines)| Cell::share(mean(lines, |line| line.as_oracle))),
                    ("run time", &|(_, lines)| Cell::ns(mean(lines, |line| line.ns))),
                    ("deciding", &|(_, lines)| fine(mean(lines, |line| line.deciding))),
                ],
            )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Judged, LevelTimes};
    use socbfs::bfs::LevelStats;

    /// A graph on which the one policy takes `ms`, and whose directions were compared or not.
    fn graph(ms: f64, directions: Option<Directions>) -> PolicyComparison {
        PolicyComparison::by_surf(1, Judged { directions, ..Judged::taking(ms * MS) })
    }

    #[test]
    fn a_mean_is_unknown_if_a_graph_lacks_its_value() {
        let right = |right| Some(Directions { levels: 4, right, saveable_ns: 8.0, saved_ns: 2.0 });
        let (a, b, c) = (graph(1.0, None), graph(2.0, right(4)), graph(4.0, right(2)));
        let row = |graphs: &[&PolicyComparison]| [0, 1, 4, 9].map(|column| surf(graphs).unwrap().table.rows[1][column].text.clone());
        assert_eq!(row(&[&a, &b, &c]), ["surf", "3", "n/a", "2.333 ms"]);
        assert_eq!(row(&[&b, &c]), ["surf", "2", "75.0 %", "3.000 ms"]);
    }

    #[test]
    fn estimated_counts_are_marked() {
        let mut graph = graph(1.0, None);
        let stats = LevelStats { frontier_vertices: 12, frontier_edges: 3456, ..LevelStats::default() };
        let estimated = LevelStats { frontier_is_estimated: true, ..stats };
        let simulated = |stats| LevelTimes::simulated(stats, 0, |_| Some(MS), |_, _| 0.0);
        let root = &mut graph.evaluation.roots[0];
        root.table.levels = [stats, estimated].map(simulated).into();
        root.table.strategies = Strategy::CPU.to_vec();
        let figure = heat(&graph).unwrap();
        let counts = |level: usize| [1, 2].map(|column: usize| figure.table.rows[level][column].text.clone());
        assert_eq!([counts(0), counts(1)], [["12", "3,456"], ["12", "~3,456"]].map(|row| row.map(str::to_owned)));
        let Some(Chart::Heat(chart)) = figure.chart else { panic!("no heat map") };
        assert_eq!(chart.rows, ["level 0: |F| 12, E 3,456", "level 1: |F| 12, E ~3,456", "sum"]);
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
        let table = surf(&[&a, &b]).unwrap().table;
        let cells = |row: &Vec<Cell>| [0, 1, 4].map(|column| row[column].text.clone());
        let expected = [["oracle", "2", "75.0 %"], ["surf", "2", "75.0 %"], ["tg", "1", "25.0 %"]];
        assert_eq!(table.rows.iter().map(cells).collect::<Vec<_>>(), expected.map(|row| row.map(str::to_owned)));
    }
}
