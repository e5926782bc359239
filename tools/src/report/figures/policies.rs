//! Figures of strategies and policies compared level by level.

use serde::{Deserialize, de::Error as _};
use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Heat, Plot, Section, Series, Table, number, read};
use crate::{
    analysis::{Dropped, DroppedInput, PolicyComparison},
    calibrate::{Directions, Evaluation, Judged, LevelTable, RootEvaluation},
};
use socbfs::{
    bfs::{Direction, GpuKernel, LevelPlan, Placement, Strategy},
    stats::Summary,
    words::{general, seconds},
};

const MS: f64 = 1e6;

/// A graph in the output of `socbfs policies --json`.
#[derive(Deserialize)]
struct Graph {
    name: String,
    /// `None`: the record is older than this field.
    policies: Option<Vec<String>>,
    watts: Option<socbfs::board::StrategyWatts>,
    layout: Counts,
    evaluation: Evaluation,
    #[serde(default)]
    energy: Option<Value>,
    #[serde(default)]
    no_energy: Option<String>,
}

/// What is shown of the energy of policies, a [`bench::PoliciesEnergy`](crate::bench::PoliciesEnergy).
#[derive(Deserialize)]
pub(in crate::report) struct Energy {
    pub(in crate::report) scope: String,
    pub(in crate::report) baseline: String,
    pub(in crate::report) policies: Vec<PolicyEnergy>,
}

#[derive(Deserialize)]
pub(in crate::report) struct PolicyEnergy {
    pub(in crate::report) policy: String,
    pub(in crate::report) windows: Vec<Window>,
    pub(in crate::report) summary: Option<EnergySummary>,
    pub(in crate::report) over_baseline: Option<Spread>,
}

#[derive(Deserialize)]
pub(in crate::report) struct Window {
    pub(in crate::report) teps: f64,
}

#[derive(Deserialize)]
pub(in crate::report) struct EnergySummary {
    pub(in crate::report) mteps_per_watt: Spread,
    pub(in crate::report) watts: Spread,
    pub(in crate::report) joules_per_search: Spread,
}

#[derive(Deserialize)]
pub(in crate::report) struct Spread {
    pub(in crate::report) mean: f64,
    pub(in crate::report) stddev: Option<f64>,
}

#[derive(Deserialize)]
struct Counts {
    edges: u64,
}

#[derive(Deserialize)]
struct Record {
    /// The policies of all graphs, in records that are older than the policies of a graph.
    #[serde(default)]
    policies: Vec<String>,
    graphs: Vec<Graph>,
}

pub(super) fn document(record: &Value) -> Result<Document, serde_json::Error> {
    let read = Record::deserialize(record)?;
    let graphs: Vec<(String, PolicyComparison)> = read
        .graphs
        .into_iter()
        .map(|graph| {
            let Graph { name, policies, watts, layout, evaluation, energy, no_energy } = graph;
            let policies = policies.unwrap_or_else(|| read.policies.clone());
            let (turns, edges, exact) = (0, layout.edges, Vec::new());
            let graph = PolicyComparison { policies, turns, edges, watts, exact, evaluation, energy, no_energy };
            check(&name, &graph)?;
            Ok((name, graph))
        })
        .collect::<Result<_, serde_json::Error>>()?;
    let mut document = read::begin("Policies compared", record);
    for (name, graph) in &graphs {
        let figures = [performance(graph), energy(graph)?, regret(graph), heat(graph), histogram(graph)].into_iter().flatten().collect();
        document.sections.push(Section { title: name.clone(), figures, ..Section::default() });
    }
    let all: Vec<(&str, &PolicyComparison)> = graphs.iter().map(|(name, graph)| (name.as_str(), graph)).collect();
    document.sections.extend(over_graphs(&all, None));
    Ok(document)
}

/// Refuses a graph whose results are not those of its policies: figures find the results of a policy by its place.
pub(super) fn check(name: &str, graph: &PolicyComparison) -> Result<(), serde_json::Error> {
    let count = graph.policies.len();
    match graph.evaluation.roots.iter().find(|root| root.policies.len() != count) {
        None => Ok(()),
        Some(root) => Err(serde_json::Error::custom(format!(
            "{name}: root {} has {} results, and the graph {count} policies",
            root.table.root,
            root.policies.len()
        ))),
    }
}

/// The section with the comparison over all graphs (`None`: it has no figures).
pub(super) fn over_graphs(graphs: &[(&str, &PolicyComparison)], dropped: Option<&Dropped>) -> Option<Section> {
    let figures: Vec<Figure> = surf(graphs).into_iter().chain(drop_one(graphs, dropped)).collect();
    (!figures.is_empty()).then(|| Section { title: "All graphs".to_owned(), figures, ..Section::default() })
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

fn name_of(place: Option<usize>, plans: &[LevelPlan]) -> String {
    place.map_or_else(|| "n/a".to_owned(), |place| plan_name(plans[place]))
}

/// Remis 2016, figures 5.1 to 5.4 and 5.8.
pub(super) fn histogram(graph: &PolicyComparison) -> Option<Figure> {
    let table = &first(graph)?.table;
    let half = table.plans().into_iter().filter(|plan| matches!(plan.placement, Placement::Split { gpu_permille: 500, .. }));
    let plans: Vec<LevelPlan> = table.strategies.iter().map(|strategy| strategy.plan()).chain(half).collect();
    let levels = 0..table.levels.len();
    let fastest = |level: usize, gpu: Option<bool>| {
        let times = plans.iter().filter(|plan| gpu.is_none_or(|gpu| Strategy::of(**plan).is_some_and(|s| s.is_gpu() == gpu)));
        times.filter_map(|&plan| Some((plan, own_ns(table, level, plan)?))).min_by(|a, b| a.1.total_cmp(&b.1))
    };
    let ratio = |level: usize| Some(fastest(level, Some(false))?.1 / fastest(level, Some(true))?.1.max(1.0));
    let wins = |plan: LevelPlan| levels.clone().filter(|&level| fastest(level, None).is_some_and(|(best, _)| best == plan)).count();
    let summary: Vec<String> =
        plans.iter().filter(|&&plan| wins(plan) > 0).map(|&plan| format!("{} {}", plan_name(plan), wins(plan))).collect();
    let series = |&plan: &LevelPlan| Series {
        name: plan_name(plan),
        points: levels.clone().filter_map(|level| Some((level as f64, own_ns(table, level, plan)? / MS))).collect(),
        spread: Vec::new(),
    };
    let mut columns = vec!["level".to_owned()];
    columns.extend(plans.iter().flat_map(|&plan| [format!("{} first quartile", plan_name(plan)), "mean".to_owned()]));
    columns.extend(["fastest".to_owned(), "best CPU / best GPU".to_owned()]);
    let row = |level: usize| {
        let mut row = vec![Cell::count(level as u64)];
        for &plan in &plans {
            let mean = Strategy::of(plan).and_then(|strategy| table.levels[level].mean_ns(strategy));
            row.extend([Cell::of(own_ns(table, level, plan), Cell::ns), Cell::of(mean, Cell::ns)]);
        }
        row.push(Cell::of(fastest(level, None), |(plan, _)| Cell::word(plan_name(plan))));
        row.push(Cell::of(ratio(level), Cell::number));
        row
    };
    Some(Figure {
        id: "levels",
        title: "Time of each level by each strategy".into(),
        source: "Remis 2016, figures 5.1 to 5.4, 5.8",
        sentence: format!("Levels, of {}, at which each is the fastest: {}.", table.levels.len(), summary.join(", ")),
        chart: Some(Chart::Bars(Plot {
            x: "level (the root is 0)".into(),
            y: "first quartile of the level's own time, ms".into(),
            log_y: true,
            categories: levels.clone().map(|level| level.to_string()).collect(),
            series: plans.iter().map(series).collect(),
            ..Plot::default()
        })),
        table: Table { columns, rows: levels.clone().map(row).collect() },
    })
}

/// Vertices and arcs of the frontier of a level: exact counts, or the estimates that policies read, with `~`.
fn sizes(graph: &PolicyComparison, table: &LevelTable, level: usize) -> [Cell; 2] {
    if let Some(exact) = graph.exact.get(level) {
        return [exact.vertices, exact.arcs].map(Cell::count);
    }
    let stats = &table.levels[level].stats;
    let about = |count: u64, estimated: bool| {
        let exact = Cell::count(count);
        if estimated { Cell { text: format!("~{}", exact.text), ..exact } } else { exact }
    };
    [about(stats.frontier_vertices, stats.vertices_are_estimated), about(stats.frontier_edges, stats.frontier_is_estimated)]
}

/// Zhang 2018, table 5.
pub(super) fn heat(graph: &PolicyComparison) -> Option<Figure> {
    let root = first(graph)?;
    let table = &root.table;
    let plans = table.plans();
    let (policy, judged) = (graph.policies.first()?, root.policies.first()?);
    let place = |chosen: &[LevelPlan], level: usize| {
        let chosen = chosen.get(level).or(chosen.last())?;
        plans.iter().position(|plan| plan == chosen)
    };
    let (oracle, oracle_ns) = table.oracle();
    let levels: Vec<usize> = (0..table.levels.len()).collect();
    let cells: Vec<Vec<Option<f64>>> =
        levels.iter().map(|&level| plans.iter().map(|&plan| own_ns(table, level, plan).map(|ns| ns / MS)).collect()).collect();
    let sums: Vec<Option<f64>> = (0..plans.len()).map(|column| cells.iter().map(|row| row[column]).sum()).collect();
    // The strategies come first among the plans, and split levels after them.
    let best = sums.iter().take(table.strategies.len()).flatten().copied().fold(f64::INFINITY, f64::min) * MS;
    let named = |level: usize| {
        let [vertices, arcs] = sizes(graph, table, level);
        format!("level {level}: |F| {}, E {}", vertices.text, arcs.text)
    };
    let mut columns: Vec<String> = ["level", "vertices |F|", "arcs E"].map(str::to_owned).into();
    columns.extend(plans.iter().map(|&plan| plan_name(plan)));
    columns.extend(["oracle".to_owned(), policy.clone()]);
    let mut rows: Vec<Vec<Cell>> = levels
        .iter()
        .map(|&level| {
            let mut row = vec![Cell::count(level as u64)];
            row.extend(sizes(graph, table, level));
            row.extend(plans.iter().map(|&plan| Cell::of(own_ns(table, level, plan), Cell::ns)));
            row.extend([place(&oracle, level), place(&judged.plans, level)].map(|at| Cell::word(name_of(at, &plans))));
            row
        })
        .collect();
    let mut last = vec![Cell::word("sum"), Cell::word(""), Cell::word("")];
    last.extend(sums.iter().map(|sum| Cell::of(*sum, |ms| Cell::ns(ms * MS))));
    last.extend([Cell::ns(oracle_ns), Cell::of(judged.table_ns, Cell::ns)]);
    rows.push(last);
    Some(Figure {
        id: "heat",
        title: "Strategies by level, with the choices of oracle and policy".into(),
        source: "Zhang 2018, table 5 (its frontier size cannot be vertices: both counts are here)",
        sentence: format!(
            "The fastest single strategy takes {}, the oracle's plan {} with the cost of changing{}.",
            seconds(best / 1e9),
            seconds(oracle_ns / 1e9),
            judged.table_ns.map_or_else(String::new, |ns| format!(", {policy} {}", seconds(ns / 1e9))),
        ),
        chart: Some(Chart::Heat(Heat {
            rows: levels.iter().map(|&level| named(level)).chain(["sum".to_owned()]).collect(),
            columns: plans.iter().map(|&plan| plan_name(plan)).collect(),
            unit: "milliseconds; shade: times the fastest of the row".into(),
            framed: levels.iter().map(|&level| place(&oracle, level)).chain([None]).collect(),
            dotted: levels.iter().map(|&level| place(&judged.plans, level)).chain([None]).collect(),
            cells: cells.into_iter().chain([sums]).collect(),
            legend: ["the oracle".into(), policy.clone()],
        })),
        table: Table { columns, rows },
    })
}

/// The speed of a policy over all its searches of a graph.
struct Speed {
    mteps: f64,
    whole: f64,
    ms: f64,
    watts: Option<f64>,
}

fn speed(graph: &PolicyComparison, judged: impl Fn(&RootEvaluation) -> &Judged) -> Option<Speed> {
    let roots = &graph.evaluation.roots;
    let count = roots.len() as f64;
    let seconds: f64 = roots.iter().map(|root| judged(root).total_ns / 1e9).sum();
    let speed = Speed {
        mteps: graph.mteps_of(&judged)?,
        whole: graph.edges as f64 / (seconds / count) / 1e6,
        ms: 1e3 * seconds / count,
        watts: graph.watts_of(&judged),
    };
    Some(speed)
}

/// Zhang 2018, figures 4 and 5; Remis 2016, figures 5.9 to 5.12.
pub(super) fn performance(graph: &PolicyComparison) -> Option<Figure> {
    first(graph)?;
    let oracle = ("oracle".to_owned(), speed(graph, |root| &root.oracle)?);
    let policies = graph.policies.iter().enumerate();
    let policies = policies.filter_map(|(index, name)| Some((name.clone(), speed(graph, |root| &root.policies[index])?)));
    let all: Vec<(String, Speed)> = policies.chain([oracle]).collect();
    let single = |(name, _): &&(String, Speed)| Strategy::ALL.iter().any(|strategy| strategy.name() == name);
    let best = all.iter().filter(single).max_by(|a, b| a.1.mteps.total_cmp(&b.1.mteps)).map(|(name, speed)| (name, speed.mteps));
    let fastest = all.iter().filter(|(name, _)| name != "oracle").max_by(|a, b| a.1.mteps.total_cmp(&b.1.mteps))?;
    let efficiency = if graph.watts.is_some() {
        ""
    } else if graph.energy.is_some() {
        " Measured MTEPS/W is below."
    } else {
        " MTEPS/W is n/a: the power of the strategies is not known (a calibration with a sensor, or the board's profile, has it)."
    };
    let against = best.map_or_else(String::new, |(name, mteps)| {
        format!(", {} times the best single strategy, {name}", general(fastest.1.mteps / mteps, 3))
    });
    let line = |name: &str, of: fn(&Speed) -> f64| Series::new(name, all.iter().enumerate().map(|(at, (_, speed))| (at as f64, of(speed))));
    let per_watt = |speed: &Speed| speed.watts.map(|watts| speed.mteps / watts);
    let mut series = vec![line("MTEPS (Graph500's rule)", |speed| speed.mteps), line("whole-graph edges / mean time", |speed| speed.whole)];
    if graph.watts.is_some() {
        series.push(Series::new(
            "MTEPS/W, modelled",
            all.iter().enumerate().filter_map(|(at, (_, speed))| Some((at as f64, per_watt(speed)?))),
        ));
    }
    Some(Figure {
        id: "performance",
        title: "Speed of the policies".into(),
        source: "Zhang 2018, figures 4 and 5; Remis 2016, figures 5.9 to 5.12",
        sentence: format!("The fastest is {} with {} MTEPS{against}.{efficiency}", fastest.0, number(fastest.1.mteps)),
        chart: Some(Chart::bars("policy", "million edges/s", all.iter().map(|(name, _)| name.clone()), series)),
        table: Table {
            columns: ["policy", "MTEPS", "whole-graph million edges/s", "mean time", "over the best single strategy", "MTEPS/W, modelled"]
                .map(str::to_owned)
                .into(),
            rows: all
                .iter()
                .map(|(name, speed)| {
                    vec![
                        Cell::word(name),
                        Cell::number(speed.mteps),
                        Cell::number(speed.whole),
                        Cell::seconds(speed.ms / 1e3),
                        Cell::of(best, |(_, best)| Cell::number(speed.mteps / best)),
                        Cell::of(per_watt(speed), Cell::number),
                    ]
                })
                .collect(),
        },
    })
}

/// Zhang 2018, figure 5; Remis 2016, figure 5.10b (`None`: energy was not requested).
pub(super) fn energy(graph: &PolicyComparison) -> Result<Option<Figure>, serde_json::Error> {
    let mut figure = Figure {
        id: "policy-energy",
        title: "Energy of the policies, in windows in turn".into(),
        source: "Zhang 2018, figure 5 (which defines its speed-up upside down); Remis 2016, figure 5.10b",
        sentence: String::new(),
        chart: None,
        table: Table::default(),
    };
    let Some(energy) = &graph.energy else {
        let Some(reason) = &graph.no_energy else { return Ok(None) };
        figure.sentence = format!("MTEPS/W is n/a: {reason}.");
        return Ok(Some(figure));
    };
    let energy = Energy::deserialize(energy)?;
    let known: Vec<(&PolicyEnergy, &EnergySummary)> =
        energy.policies.iter().filter_map(|policy| Some((policy, policy.summary.as_ref()?))).collect();
    let best = known.iter().max_by(|a, b| a.1.mteps_per_watt.mean.total_cmp(&b.1.mteps_per_watt.mean));
    figure.sentence = best.map_or_else(
        || "MTEPS/W is n/a: no policy has complete windows.".to_owned(),
        |(policy, summary)| {
            let ratio = match &policy.over_baseline {
                _ if policy.policy == energy.baseline => ", and is the baseline".to_owned(),
                Some(ratio) => format!(", {} times that of {}", general(ratio.mean, 3), energy.baseline),
                None => String::new(),
            };
            format!(
                "{} has the best efficiency: {} MTEPS/W of {}{ratio}.",
                policy.policy,
                general(summary.mteps_per_watt.mean, 4),
                energy.scope
            )
        },
    );
    let ends = |spread: &Spread| {
        let by = spread.stddev.unwrap_or(0.0);
        (spread.mean - by, spread.mean + by)
    };
    let efficiencies = known.iter().map(|(_, summary)| (summary.mteps_per_watt.mean, ends(&summary.mteps_per_watt)));
    figure.chart = Some(Chart::bars(
        "policy",
        "MTEPS/W, mean and standard deviation over windows",
        known.iter().map(|(policy, _)| policy.policy.clone()),
        vec![Series::spread("MTEPS/W", efficiencies)],
    ));
    let deviation = |of: Option<&Spread>| Cell::of(of.and_then(|of| of.stddev), Cell::number);
    figure.table = Table {
        columns: ["policy", "MTEPS", "MTEPS/W", "+/-", "W", "J per search", "over the baseline", "+/-"].map(str::to_owned).into(),
        rows: energy
            .policies
            .iter()
            .map(|policy| {
                let summary = policy.summary.as_ref();
                let mean = |of: Option<&Spread>| Cell::of(of, |of| Cell::number(of.mean));
                let mteps = policy.windows.iter().map(|window| window.teps / 1e6).sum::<f64>() / policy.windows.len().max(1) as f64;
                vec![
                    Cell::word(&policy.policy),
                    Cell::number(mteps),
                    mean(summary.map(|summary| &summary.mteps_per_watt)),
                    deviation(summary.map(|summary| &summary.mteps_per_watt)),
                    mean(summary.map(|summary| &summary.watts)),
                    mean(summary.map(|summary| &summary.joules_per_search)),
                    mean(policy.over_baseline.as_ref()),
                    deviation(policy.over_baseline.as_ref()),
                ]
            })
            .collect(),
    };
    Ok(Some(figure))
}

/// Time of each policy's levels beyond that of the oracle's. Mapping of the parents is left out.
fn regret(graph: &PolicyComparison) -> Option<Figure> {
    first(graph)?;
    let roots = &graph.evaluation.roots;
    let over = |index: usize| Summary::of(&roots.iter().map(|root| 100.0 * (root.policies[index].over_oracle - 1.0)).collect::<Vec<_>>());
    let all: Vec<(&String, Summary)> = graph.policies.iter().enumerate().filter_map(|(index, name)| Some((name, over(index)?))).collect();
    let least = all.iter().min_by(|a, b| a.1.mean.total_cmp(&b.1.mean))?;
    Some(Figure {
        id: "regret",
        title: "Regret: time of the levels beyond the oracle's plan".into(),
        source: "socbfs policies",
        sentence: format!("{} comes closest to the oracle, with {} % in the mean over the roots.", least.0, general(least.1.mean, 3)),
        chart: Some(Chart::bars(
            "policy",
            "% beyond the oracle",
            all.iter().map(|(name, _)| (*name).clone()),
            vec![Series::spread("mean over the roots, with the range", all.iter().map(|(_, over)| (over.mean, (over.min, over.max))))],
        )),
        table: Table {
            columns: ["policy", "mean regret of levels, %", "least", "most", "standard deviation"].map(str::to_owned).into(),
            rows: all
                .iter()
                .map(|(name, over)| {
                    let cells = [over.mean, over.min, over.max].map(Cell::number);
                    [Cell::word(*name)].into_iter().chain(cells).chain([Cell::of(over.stddev, Cell::number)]).collect()
                })
                .collect(),
        },
    })
}

/// SURF 2022, tables 3 and 4.
fn surf<'a>(graphs: &[(&'a str, &'a PolicyComparison)]) -> Option<Figure> {
    let mut policies: Vec<&String> = Vec::new();
    for name in graphs.iter().flat_map(|(_, graph)| &graph.policies) {
        if !policies.contains(&name) {
            policies.push(name);
        }
    }
    let mean_ms = |graph: &PolicyComparison, of: &dyn Fn(&Judged) -> f64, policy: usize| {
        let roots = &graph.evaluation.roots;
        roots.iter().map(|root| of(&root.policies[policy])).sum::<f64>() / roots.len().max(1) as f64
    };
    let mut rows = Vec::new();
    let (mut accuracy, mut reduced) = (Vec::new(), Vec::new());
    for name in policies {
        let of = |&(graph, compared): &(&'a str, &'a PolicyComparison)| {
            let index = compared.policies.iter().position(|policy| policy == name)?;
            Some((graph, compared, index, compared.directions(index)?))
        };
        let found: Vec<_> = graphs.iter().filter_map(of).collect();
        for &(graph, compared, index, directions) in &found {
            rows.push(vec![
                Cell::word(name),
                Cell::word(graph),
                Cell::share(directions.accuracy()),
                Cell::word(""),
                Cell::share(directions.reduced_time()),
                Cell::word(""),
                Cell::ns(mean_ms(compared, &|judged| judged.total_ns, index)),
                Cell::ns(mean_ms(compared, &|judged| judged.decision_ns, index)),
            ]);
        }
        let summary = |of: fn(&Directions) -> f64| Summary::of(&found.iter().map(|(.., directions)| of(directions)).collect::<Vec<_>>());
        let (Some(right), Some(saved)) = (summary(Directions::accuracy), summary(Directions::reduced_time)) else { continue };
        let over_graphs = |of: &dyn Fn(&Judged) -> f64| {
            found.iter().map(|&(_, graph, index, _)| mean_ms(graph, of, index)).sum::<f64>() / found.len() as f64
        };
        let which = if found.len() == graphs.len() { String::new() } else { format!("{} of {} ", found.len(), graphs.len()) };
        rows.push(vec![
            Cell::word(name),
            Cell::word(format!("mean over {which}graphs")),
            Cell::share(right.mean),
            Cell::of(right.stddev, Cell::share),
            Cell::share(saved.mean),
            Cell::of(saved.stddev, Cell::share),
            Cell::ns(over_graphs(&|judged| judged.total_ns)),
            Cell::ns(over_graphs(&|judged| judged.decision_ns)),
        ]);
        accuracy.push((name.clone(), right));
        reduced.push(saved);
    }
    let best = accuracy.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean))?;
    let ends = |summary: &Summary| {
        let by = summary.stddev.unwrap_or(0.0);
        (100.0 * (summary.mean - by), 100.0 * (summary.mean + by))
    };
    let bar = |summary: &Summary| (100.0 * summary.mean, ends(summary));
    Some(Figure {
        id: "surf",
        title: "Right directions and time saved, by policy".into(),
        source: "SURF 2022, tables 3 and 4",
        sentence: format!(
            "{} takes the faster direction most often: at {:.1} % of the levels in the mean over the graphs.",
            best.0,
            100.0 * best.1.mean
        ),
        chart: Some(Chart::bars(
            "policy",
            "%, mean and standard deviation over graphs",
            accuracy.iter().map(|(name, _)| name.clone()),
            vec![
                Series::spread("accuracy", accuracy.iter().map(|(_, summary)| bar(summary))),
                Series::spread("reduced time", reduced.iter().map(bar)),
            ],
        )),
        table: Table {
            columns: ["policy", "graph", "accuracy", "+/-", "reduced time", "+/-", "run time", "deciding"].map(str::to_owned).into(),
            rows,
        },
    })
}

/// An input, the accuracy of the shipped network without it, and that of networks trained again without it.
type DroppedRow<'a> = (&'a DroppedInput, Summary, Option<Summary>);

/// SURF 2022, section 6 (future work): the network with one input dropped.
fn drop_one(graphs: &[(&str, &PolicyComparison)], dropped: Option<&Dropped>) -> Option<Figure> {
    let dropped = dropped?;
    let summary = |of: &[Option<f64>]| Summary::of(&of.iter().copied().flatten().collect::<Vec<_>>());
    let all: Vec<DroppedRow<'_>> =
        dropped.inputs.iter().filter_map(|of| Some((of, summary(&of.accuracy)?, summary(&of.retrained)))).collect();
    let least = |of: &dyn Fn(&DroppedRow<'_>) -> Option<f64>| {
        let values: Vec<(&str, f64)> = all.iter().filter_map(|row| Some((row.0.input.as_str(), of(row)?))).collect();
        let whole = values.first()?.1;
        let worst = values.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(if worst.1 >= whole {
            format!("is right at {:.1} % of the levels, and no input is missed", 100.0 * whole)
        } else {
            format!("is right at {:.1} % of the levels, and misses {} most: {:.1} % without it", 100.0 * whole, worst.0, 100.0 * worst.1)
        })
    };
    let held = least(&|row| Some(row.1.mean))?;
    let retrained = match (least(&|row| Some(row.2.as_ref()?.mean)), &dropped.not_retrained) {
        (Some(found), _) => format!("Trained again on the other graphs, it {found}."),
        (None, Some(reason)) => format!("Networks trained again are n/a: {reason}."),
        (None, None) => String::new(),
    };
    let mut columns: Vec<String> =
        ["input dropped", "held at its mean: accuracy", "+/-", "trained without it: accuracy", "+/-"].map(str::to_owned).into();
    columns.extend(graphs.iter().flat_map(|(name, _)| [format!("{name}, held"), "trained".to_owned()]));
    let bars = |name: &str, of: &dyn Fn(&DroppedRow<'_>) -> Option<Summary>| {
        let bar = |summary: Summary| {
            let (mean, by) = (100.0 * summary.mean, 100.0 * summary.stddev.unwrap_or(0.0));
            (mean, (mean - by, (mean + by).min(100.0)))
        };
        Series::spread(name, all.iter().filter_map(of).map(bar))
    };
    let mut series = vec![bars("network as shipped, input held at its mean", &|row| Some(row.1))];
    if all.iter().all(|row| row.2.is_some()) {
        series.push(bars("trained without the input, on the other graphs", &|row| row.2));
    }
    let deviation = |of: Option<&Summary>| Cell::of(of.and_then(|of| of.stddev), Cell::share);
    Some(Figure {
        id: "surf-inputs",
        title: "SURF's network with one input dropped".into(),
        source: "SURF 2022, section 6 (future work); mean and standard deviation over graphs",
        sentence: format!("The network as shipped {held}. {retrained}"),
        chart: Some(Chart::bars("input dropped", "accuracy, %", all.iter().map(|row| row.0.input.clone()), series)),
        table: Table {
            columns,
            rows: all
                .iter()
                .map(|(of, held, retrained)| {
                    let mut row = vec![Cell::word(&of.input), Cell::share(held.mean), deviation(Some(held))];
                    row.extend([Cell::of(retrained.as_ref(), |of| Cell::share(of.mean)), deviation(retrained.as_ref())]);
                    for (place, accuracy) in of.accuracy.iter().enumerate() {
                        row.extend([*accuracy, of.retrained.get(place).copied().flatten()].map(|share| Cell::of(share, Cell::share)));
                    }
                    row
                })
                .collect(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::LevelTimes;
    use socbfs::bfs::LevelStats;

    /// A graph on which the one policy takes `ms`, and whose directions were compared or not.
    fn graph(ms: f64, directions: Option<Directions>) -> PolicyComparison {
        let judged = Judged {
            plans: Vec::new(),
            elapsed_ns: ms * MS,
            total_ns: ms * MS,
            over_oracle: 1.0,
            decision_ns: 0.0,
            table_ns: None,
            directions,
            as_oracle: 0,
        };
        let table = LevelTable { root: 0, strategies: Vec::new(), levels: Vec::new() };
        let root = RootEvaluation { edges: 1, table, oracle: judged.clone(), policies: vec![judged], turns: 1 };
        PolicyComparison {
            policies: vec!["surf".to_owned()],
            turns: 1,
            edges: 1,
            watts: None,
            exact: Vec::new(),
            evaluation: Evaluation { roots: vec![root] },
            energy: None,
            no_energy: None,
        }
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
