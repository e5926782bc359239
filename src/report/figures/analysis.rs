//! Figures of `socbfs analyze`.

use serde::Deserialize;
use serde_json::Value;

use super::{Cell, Chart, Document, Figure, Plot, Section, Series, Table, read};
use crate::{
    analysis::{Analysis, ExactLevel, GraphAnalysis, Profile, Redundant, Repeated},
    report::numbers::{counted, grouped},
};

pub(super) fn document(record: &Value) -> Result<Document, serde_json::Error> {
    let analysis = Analysis::deserialize(record)?;
    let mut document = read::begin("Analyses of breadth-first searches", record);
    document.sections = analysis.graphs.iter().map(section).collect();
    Ok(document)
}

fn section(graph: &GraphAnalysis) -> Section {
    let mut section = Section { title: graph.name.clone(), ..Section::default() };
    if let Some(&root) = graph.roots.first() {
        section.facts.push(("root".into(), Cell::count(u64::from(root))));
    }
    if let Some(found) = &graph.profile {
        section.facts.extend(facts(found));
        section.figures.push(profile(found));
    }
    if let Some(found) = &graph.redundant {
        section.figures.extend([top_down(found), bottom_up(found)]);
    }
    section.figures.extend(graph.repeated.as_ref().map(repeated));
    section
}

fn facts(profile: &Profile) -> Vec<(String, Cell)> {
    let reached = profile.searches.first().map(|search| search.reached);
    [
        ("vertices n", Cell::count(profile.vertices)),
        ("vertices with an edge", Cell::count(profile.with_edges)),
        ("distinct edges m", Cell::count(profile.edges)),
        ("mean degree m_d", Cell::number(profile.mean_degree)),
        ("share of vertices above the mean degree p_h", Cell::share(profile.hub_share)),
        ("vertices reached", Cell::of(reached, Cell::count)),
        ("levels D + 1", Cell::count(profile.levels.len() as u64)),
        ("mean levels over the roots", Cell::number(profile.mean_levels)),
        ("roots", Cell::count(profile.searches.len() as u64)),
    ]
    .map(|(name, cell)| (name.to_owned(), cell))
    .into()
}

/// The level with most of something (the first of several).
fn most<T: Copy>(levels: &[T], of: impl Fn(&T) -> u64) -> Option<T> {
    levels.iter().rev().copied().max_by_key(|level| of(level))
}

fn part(of: u64, all: u64) -> String {
    format!("{:.1} %", 100.0 * of as f64 / all.max(1) as f64)
}

fn series(name: &str, levels: &[ExactLevel], of: impl Fn(&ExactLevel) -> u64) -> Series {
    Series::new(name, levels.iter().map(|level| (f64::from(level.level), of(level) as f64)))
}

fn over_levels(y: &str, log_y: bool, series: Vec<Series>) -> Option<Chart> {
    Some(Chart::Lines(Plot { x: "level (the root is 0)".into(), y: y.into(), log_y, series, ..Plot::default() }))
}

fn columns(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn count_rows(levels: &[ExactLevel], cells: impl Fn(&ExactLevel) -> Vec<Cell>) -> Vec<Vec<Cell>> {
    let numbered = |level: &ExactLevel| [Cell::count(u64::from(level.level)), Cell::count(u64::from(level.level) + 1)];
    levels.iter().map(|level| numbered(level).into_iter().chain(cells(level)).collect()).collect()
}

fn profile(profile: &Profile) -> Figure {
    let levels = &profile.levels;
    let (reached, arcs) = (levels.iter().map(|l| l.vertices).sum(), levels.iter().map(|l| l.arcs).sum());
    let sentence = match (most(levels, |l| l.vertices), most(levels, |l| l.arcs)) {
        (Some(wide), Some(heavy)) if levels.len() > 1 => format!(
            "The search has {}. The frontier is widest at level {}, with {} of {} reached vertices ({}); level {} has {} of the arcs.",
            counted(levels.len() as u64, "level", "levels"),
            wide.level,
            grouped(wide.vertices),
            grouped(reached),
            part(wide.vertices, reached),
            heavy.level,
            part(heavy.arcs, arcs),
        ),
        _ => "The root reaches no other vertex: the search has one level.".to_owned(),
    };
    Figure {
        id: "profile",
        title: "Frontier and its arcs, level by level".into(),
        source: "Remis 2016, figures 2.1, 2.2, 2.4; SURF 2022, table 2",
        sentence,
        chart: over_levels(
            "vertices, arcs",
            true,
            vec![series("vertices of the frontier |F|", levels, |l| l.vertices), series("arcs that leave it E", levels, |l| l.arcs)],
        ),
        table: Table {
            columns: columns(&["level", "iteration", "vertices |F|", "arcs E", "unvisited vertices", "their arcs"]),
            rows: count_rows(levels, |l| [l.vertices, l.arcs, l.unvisited_vertices, l.unvisited_arcs].map(Cell::count).into()),
        },
    }
}

fn top_down(redundant: &Redundant) -> Figure {
    let levels: Vec<ExactLevel> = redundant.levels.iter().map(|level| level.counts).collect();
    let (arcs, found): (u64, u64) = (levels.iter().map(|l| l.arcs).sum(), levels.iter().map(|l| l.discovering).sum());
    let sentence = match most(&levels, |l| l.arcs - l.discovering) {
        Some(worst) if arcs > 0 => format!(
            "{} of {} explored arcs ({}) discover no vertex. Most of these are at level {}, where {} of the arcs lead to vertices that are known already.",
            grouped(arcs - found),
            grouped(arcs),
            part(arcs - found, arcs),
            worst.level,
            part(worst.arcs - worst.discovering, worst.arcs),
        ),
        _ => "No arc is explored: the root has no neighbour.".to_owned(),
    };
    let excess = |level: u32| redundant.levels.get(level as usize).and_then(|found| found.excess);
    Figure {
        id: "redundant",
        title: "Redundant work of top-down levels".into(),
        source: "Remis 2016, figure 2.3",
        sentence,
        chart: over_levels(
            "arcs",
            true,
            vec![series("explored", &levels, |l| l.arcs), series("discovering a vertex", &levels, |l| l.discovering)],
        ),
        table: Table {
            columns: columns(&["level", "iteration", "explored E", "discovering", "repeat", "backward", "excess"]),
            rows: count_rows(&levels, |l| {
                let counts = [l.arcs, l.discovering, l.repeat, l.backward].map(Cell::count);
                counts.into_iter().chain([Cell::of(excess(l.level), Cell::share)]).collect()
            }),
        },
    }
}

fn bottom_up(redundant: &Redundant) -> Figure {
    let levels: Vec<ExactLevel> = redundant.levels.iter().map(|level| level.counts).collect();
    let fewer: Vec<String> = levels.iter().filter(|l| l.probes < l.arcs).map(|l| l.level.to_string()).collect();
    let best: u64 = levels.iter().map(|l| l.probes.min(l.arcs)).sum();
    let arcs: u64 = levels.iter().map(|l| l.arcs).sum();
    let sentence = if fewer.is_empty() {
        "No level looks at fewer neighbours bottom-up than it explores arcs top-down.".to_owned()
    } else {
        let many = if fewer.len() > 12 { format!("{} levels", fewer.len()) } else { format!("level {}", fewer.join(", ")) };
        format!(
            "Bottom-up looks at fewer neighbours than top-down explores at {many}. The better direction of each level looks at {} of the arcs that top-down alone explores.",
            part(best, arcs)
        )
    };
    Figure {
        id: "redundant-bottom-up",
        title: "Neighbours looked at, top-down and bottom-up".into(),
        source: "Remis 2016, figure 2.3, extended to bottom-up",
        sentence,
        chart: over_levels(
            "neighbours looked at",
            true,
            vec![series("top-down (arcs E)", &levels, |l| l.arcs), series("bottom-up (probes)", &levels, |l| l.probes)],
        ),
        table: Table {
            columns: columns(&["level", "iteration", "top-down E", "bottom-up probes", "unvisited vertices", "their arcs"]),
            rows: count_rows(&levels, |l| [l.arcs, l.probes, l.unvisited_vertices, l.unvisited_arcs].map(Cell::count).into()),
        },
    }
}

fn repeated(repeated: &Repeated) -> Figure {
    let splits = &repeated.splits;
    let least = splits.iter().min_by(|a, b| a.repeated_ours.total_cmp(&b.repeated_ours));
    let most = splits.iter().max_by(|a, b| a.repeated_ours.total_cmp(&b.repeated_ours));
    let sentence = match (least, most) {
        (Some(least), Some(most)) => format!(
            "Both halves find {:.1} % of the reached vertices twice if the search parts at level {}, and {:.1} % if it parts at level {}, where {:.1} % have been traversed.",
            100.0 * most.repeated_ours,
            most.level,
            100.0 * least.repeated_ours,
            least.level,
            100.0 * least.traversed,
        ),
        _ => "No level before the last has two vertices: the search can't part.".to_owned(),
    };
    let line = |name: &str, of: fn(&crate::analysis::SplitLevel) -> f64| {
        Series::new(name, splits.iter().map(|split| (f64::from(split.level), 100.0 * of(split))))
    };
    Figure {
        id: "repeated",
        title: format!("Repeated work of an asynchronous search, parted at {} % of the arcs", f64::from(repeated.share_permille) / 10.0),
        source: "Remis 2016, figures 5.5 to 5.7",
        sentence,
        chart: Some(Chart::Lines(Plot {
            x: "level at which the search parts".into(),
            y: "% of reached vertices".into(),
            series: vec![
                line("repeated, the thesis' rule", |split| split.repeated_thesis),
                line("repeated, as socbfs parts", |split| split.repeated_ours),
                line("traversed before", |split| split.traversed),
            ],
            ..Plot::default()
        })),
        table: Table {
            columns: columns(&[
                "level",
                "iteration",
                "traversed",
                "repeated, thesis",
                "repeated, ours",
                "depth A",
                "depth B",
                "D - k",
                "extra levels",
            ]),
            rows: splits
                .iter()
                .map(|s| {
                    let mut row = vec![Cell::count(u64::from(s.level)), Cell::count(u64::from(s.level) + 1)];
                    row.extend([s.traversed, s.repeated_thesis, s.repeated_ours].map(Cell::share));
                    row.extend([s.depth_a, s.depth_b, s.left].map(|depth| Cell::count(u64::from(depth))));
                    row.push(Cell { text: s.extra_levels.to_string(), value: Some(s.extra_levels as f64) });
                    row
                })
                .collect(),
        },
    }
}
